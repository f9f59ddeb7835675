%% @doc A submaster, or the master: asks those below it for a round's best, and
%% answers with the best of them.
%%
%% A round is asked for with the best of all colonies in the round before. Round 0
%% is there to build: each answers it as soon as all below it are there.
%%
%% What is below may be lost and started again; it is asked again then, and its
%% first answer of a round counts. A late answer of an earlier round, one that comes
%% twice, and news of a process that has been replaced change nothing. So
%%
%% - a round is answered if and only if each of those below has answered it;
%% - the answer hangs on what they found, not on the order in which they spoke, nor on
%%   what was lost meanwhile;
%% - a submaster that starts with nothing but its place in the tree is where the lost
%%   one was as soon as it is asked: whoever is below is found (`again'), or starts.
%%
%% A process that ends is started again where it was. If its node is lost, it is
%% started on the next spare node; but who is not there from the beginning is not replaced
%% in silence: that ends the run. Where nothing is reliable any loss does. How often one may
%% be started again is its host's business, which sees whether it gets on in between
%% ({@link aco_keep}).
%%
%% There are no processes and there is no clock in here.
-module(aco_branch).

-export([new/2, handle/2, is_at/3]).

-export_type([branch/0, event/0, effect/0, how/0, round_number/0, told/0, reason/0, lost/0]).

-type round_number() :: non_neg_integer().

%% The best of all colonies in the round before, and whose it is.
-type told() :: {aco_schedule:solution(), Owner :: aco_colony:id()} | none.

-type lost() :: process | node.

-type event() ::
    %% from above
    {ask, round_number(), told()}
    %% the one below is on that node now
    | {up, aco_tree:id(), node()}
    | {best, aco_tree:id(), round_number(), aco_colony:offer() | none}
    %% it is not on that node any more, or could not be started there
    | {down, aco_tree:id(), node(), lost()}.

%% build: it has never been. again: it has been there, or is there still. idle: the same,
%% and nobody waits for it, as it has answered the present round. moved: it has been
%% elsewhere, and is brought to where it was by what was told in all rounds.
-type how() :: build | again | idle | moved.

-type effect() ::
    {start, aco_tree:id(), node(), how()}
    | {ask, aco_tree:id(), round_number(), told()}
    | {answer, round_number(), aco_colony:offer() | none}
    | {fail, reason()}.

-type reason() ::
    {process_lost, aco_tree:id(), node()}
    | {node_lost, aco_tree:id(), node()}
    | {unreachable, node()}.

-record(child, {
    node :: node(),
    spare :: [node()],
    is_up = false :: boolean(),
    %% it has been up, there or elsewhere
    was_up = false :: boolean(),
    %% in the present round
    answered = false :: boolean()
}).

-record(branch, {
    reliable :: boolean(),
    children :: #{aco_tree:id() => #child{}},
    round = none :: round_number() | none,
    told = none :: told(),
    %% the best of the answers of the present round
    best = none :: aco_colony:offer() | none
}).

-opaque branch() :: #branch{}.

%% @doc One that has not been asked yet.
-spec new([aco_tree:child(), ...], Reliable :: boolean()) -> branch().
new(Children, Reliable) ->
    All = [{Id, #child{node = Node, spare = Spare}} || #{id := Id, node := Node, spare := Spare} <- Children],
    #branch{reliable = Reliable, children = maps:from_list(All)}.

%% @doc Whether that node is the one where the one below is, or is to be started.
-spec is_at(aco_tree:id(), node(), branch()) -> boolean().
is_at(Id, Node, #branch{children = Children}) ->
    #{Id := #child{node = Present}} = Children,
    Node =:= Present.

%% @doc What an event leads to.
-spec handle(event(), branch()) -> {branch(), [effect()]}.
handle({ask, Round, Told}, #branch{round = Before} = Branch) when Before =:= none; Round > Before ->
    next(Round, Told, Branch);
handle({ask, Round, _}, #branch{round = Round} = Branch) ->
    {Branch, answer(Branch)};
handle({ask, _, _}, Branch) ->
    {Branch, []};
handle({up, Id, Node}, #branch{children = Children} = Branch) ->
    case Children of
        #{Id := #child{node = Node, answered = Answered} = Child} ->
            {put_child(Id, Child#child{is_up = true, was_up = true}, Branch), [ask(Id, Branch) || not Answered]};
        _ ->
            {Branch, []}
    end;
handle({best, Id, Round, Offer}, #branch{round = Round, children = Children, best = Best} = Branch) ->
    case Children of
        #{Id := #child{answered = false} = Child} ->
            Heard = put_child(Id, Child#child{answered = true}, Branch#branch{best = better(Offer, Best)}),
            {Heard, answer(Heard)};
        _ ->
            {Branch, []}
    end;
handle({best, _, _, _}, Branch) ->
    {Branch, []};
handle({down, Id, Node, What}, #branch{children = Children} = Branch) ->
    case Children of
        #{Id := #child{node = Node} = Child} -> lost(What, Id, Child#child{is_up = false}, Branch);
        _ -> {Branch, []}
    end.

next(Round, Told, #branch{round = Before, children = Children} = Branch) ->
    Asked = Branch#branch{
        round = Round,
        told = Told,
        best = none,
        children = maps:map(fun(_, Child) -> Child#child{answered = false} end, Children)
    },
    How = case Round of 0 -> build; _ -> again end,
    %% Who was started before, and is not up, is asked when it is.
    Effects = [case IsUp of true -> ask(Id, Asked); false -> {start, Id, Node, How} end
               || {Id, #child{node = Node, is_up = IsUp}} <- lists:sort(maps:to_list(Children)),
                  IsUp orelse Before =:= none],
    {Asked, Effects}.

lost(process, Id, #child{node = Node}, #branch{reliable = false} = Branch) ->
    {Branch, [{fail, {process_lost, Id, Node}}]};
lost(node, _, #child{node = Node, was_up = false}, #branch{round = 0} = Branch) ->
    {Branch, [{fail, {unreachable, Node}}]};
lost(node, Id, #child{node = Node, spare = Spare}, #branch{reliable = Reliable} = Branch)
  when not Reliable; Spare =:= [] ->
    {Branch, [{fail, {node_lost, Id, Node}}]};
lost(node, Id, #child{spare = [Node | Spare]} = Child, Branch) ->
    {put_child(Id, Child#child{node = Node, spare = Spare}, Branch), [{start, Id, Node, moved}]};
lost(process, Id, #child{node = Node} = Child, Branch) ->
    How = case Child of #child{answered = true} -> idle; #child{} -> again end,
    {put_child(Id, Child, Branch), [{start, Id, Node, How}]}.

answer(#branch{children = Children, round = Round, best = Best}) ->
    [{answer, Round, Best} || lists:all(fun(#child{answered = Answered}) -> Answered end, maps:values(Children))].

ask(Id, #branch{round = Round, told = Told}) ->
    {ask, Id, Round, Told}.

better(none, Best) -> Best;
better(Offer, none) -> Offer;
better(Offer, Best) -> aco_colony:better(Offer, Best).

put_child(Id, Child, #branch{children = Children} = Branch) ->
    Branch#branch{children = Children#{Id := Child}}.
