%% SPDX-License-Identifier: Apache-2.0
%% @doc What a submaster decides: it asks those below it, and answers with the best of their answers
%% when all have given one.
%%
%% A round is asked for with the best of all rounds before. Round 0 is there to build: each answers
%% it as soon as all below it are there. Round `finish' comes last, and its answers are put
%% together. Whoever is below may be killed, started again and asked again: its first answer of a
%% round counts, and a late one of an earlier round changes nothing. So
%%
%% - a round is answered if and only if each of those below has answered it;
%% - the answer hangs on what they found, not on the order in which they spoke, nor on what was
%%   killed meanwhile;
%% - a submaster that starts with nothing but its place in the tree is where the killed one
%%   was as soon as it is asked.
%%
%% One whose node is lost goes on on the next of its nodes, but who is not there from the beginning
%% is not replaced in silence: that ends the run. There are no processes and there is no clock in
%% here.
-module(aco_branch).

-export([new/1, handle/2, is_open/3, node_of/2]).

-export_type([branch/0, event/0, effect/0, round_number/0, told/0, value/0, reason/0]).

%% `finish' is greater than any number, as atoms are.
-type round_number() :: non_neg_integer() | finish.

%% The best of all colonies, whose it is, and the first round that it was the best of; the newest first.
-type told() :: [{pos_integer(), {aco_schedule:solution(), Owner :: aco_colony:id()}}].

%% Of round 0 none; of a round the best; of `finish' what each node has to say.
-type value() :: none | aco_colony:offer() | #{node() => map()}.

-type event() ::
    {ask, round_number()}
    | {answer, aco_tree:id(), round_number(), value()}
    %% it is not found, and that node of its cannot be reached
    | {unreachable, aco_tree:id(), node(), Why :: term()}.

-type effect() ::
    {ask, aco_tree:id(), round_number()}
    | {answer, round_number(), value()}
    | {fail, reason() | term()}.

-type reason() :: {node_lost, aco_tree:id(), node()}.

-record(child, {nodes :: [node(), ...], was_there = false :: boolean(), answered = false :: boolean()}).

-record(branch, {
    children :: #{aco_tree:id() => #child{}},
    round = none :: round_number() | none,
    value = none :: value()
}).

-opaque branch() :: #branch{}.

%% @doc One that has not been asked yet, over these, each with the nodes for it.
-spec new([{aco_tree:id(), [node(), ...]}, ...]) -> branch().
new(Children) ->
    #branch{children = maps:from_list([{Id, #child{nodes = Nodes}} || {Id, Nodes} <- Children])}.

%% @doc Whether that one has still to answer that round.
-spec is_open(aco_tree:id(), round_number(), branch()) -> boolean().
is_open(Id, Round, #branch{round = Present, children = Children}) ->
    Round =:= Present andalso not (maps:get(Id, Children))#child.answered.

%% @doc Where that one is, or is to be started.
-spec node_of(aco_tree:id(), branch()) -> node().
node_of(Id, #branch{children = Children}) ->
    hd((maps:get(Id, Children))#child.nodes).

%% @doc What an event leads to.
-spec handle(event(), branch()) -> {branch(), [effect()]}.
handle({ask, Round}, #branch{round = Before, children = Children} = Branch) when Before =:= none; Round > Before ->
    Asked = Branch#branch{round = Round, value = none,
                          children = maps:map(fun(_, Child) -> Child#child{answered = false} end, Children)},
    {Asked, [{ask, Id, Round} || Id <- lists:sort(maps:keys(Children))]};
handle({ask, Round}, #branch{round = Round} = Branch) ->
    {Branch, answer(Branch)};
handle({answer, Id, Round, Value}, #branch{round = Round, children = Children, value = Before} = Branch) ->
    case Children of
        #{Id := #child{answered = false} = Child} ->
            Heard = Branch#branch{value = combined(Value, Before),
                                  children = Children#{Id := Child#child{answered = true, was_there = true}}},
            {Heard, answer(Heard)};
        #{} ->
            {Branch, []}
    end;
handle({unreachable, Id, Node, Why}, #branch{children = Children, round = Round} = Branch) ->
    case Children of
        #{Id := #child{nodes = [Node | _], was_there = false}} when Round =:= 0 -> {Branch, [{fail, Why}]};
        #{Id := #child{nodes = [Node]}} -> {Branch, [{fail, {node_lost, Id, Node}}]};
        #{Id := #child{nodes = [Node | Nodes]} = Child} ->
            {Branch#branch{children = Children#{Id := Child#child{nodes = Nodes}}}, [{ask, Id, Round}]};
        #{} -> {Branch, []}
    end;
handle(_, Branch) ->
    {Branch, []}.

answer(#branch{children = Children, round = Round, value = Value}) ->
    [{answer, Round, Value} || lists:all(fun(#child{answered = Answered}) -> Answered end, maps:values(Children))].

combined(Value, none) -> Value;
combined(Reports, Others) when is_map(Reports) -> maps:merge(Others, Reports);
combined(Offer, Best) -> aco_colony:better(Offer, Best).
