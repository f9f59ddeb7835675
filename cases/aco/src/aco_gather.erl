%% @doc Does what {@link aco_branch} decides, for the process of a submaster or of the
%% master: starts those below through the node's host, watches them, asks them,
%% and says when a round is answered.
%%
%% Nothing is sent to a node that is not connected, because the attempt would connect
%% it.
-module(aco_gather).

-export([new/4, ask/3, handle/2, told/2, send/2]).

-export_type([gather/0, message/0, outcome/0]).

-type message() ::
    %% from the host
    {started, aco_tree:id(), node(), pid()}
    | {not_started, aco_tree:id(), node()}
    %% from below
    | {best, aco_tree:id(), aco_branch:round_number(), aco_colony:offer() | none}
    %% it does not know what was told after this round and later ones
    | {behind, pid(), pos_integer()}
    %% from the runtime
    | {'DOWN', reference(), process, pid(), term()}.

%% What became of it: nothing yet; the round is answered; the run cannot go on; or what was
%% told after this round and later ones is not known here either.
-type outcome() ::
    none
    | {answer, aco_branch:round_number(), aco_colony:offer() | none}
    | {fail, aco_branch:reason()}
    | {behind, pos_integer()}.

-record(gather, {
    id :: aco_tree:path(),
    reliable :: boolean(),
    host :: pid(),
    keep :: aco_keep:keep(),
    group :: aco_tree:group() | none,
    children :: #{aco_tree:id() => aco_tree:child()},
    branch :: aco_branch:branch(),
    round = 0 :: aco_branch:round_number(),
    %% the processes below, with their monitors
    pids = #{} :: #{aco_tree:id() => {pid(), reference()}},
    watched = #{} :: #{reference() => {aco_tree:id(), node()}},
    %% who waits for what was told, and from which round on
    behind = [] :: [{pid(), pos_integer()}]
}).

-opaque gather() :: #gather{}.

%% @doc For a submaster of this place in the tree, on the calling process's node.
-spec new(Host :: pid(), aco_keep:keep(), aco_tree:branch(), Reliable :: boolean()) -> gather().
new(Host, Keep, #{path := Path, group := Group} = Branch, Reliable) ->
    Children = aco_tree:children(Branch),
    #gather{id = Path, reliable = Reliable, host = Host, keep = Keep, group = Group,
            children = maps:from_list([{Id, Child} || #{id := Id} = Child <- Children]),
            branch = aco_branch:new(Children, Reliable)}.

%% @doc Asks all below for a round.
-spec ask(aco_branch:round_number(), aco_branch:told(), gather()) -> {outcome(), gather()}.
ask(Round, Told, #gather{round = Before} = G) ->
    ok = keep_told(Round - 1, Told, G),
    event({ask, Round, Told}, G#gather{round = max(Round, Before)}).

%% @doc What a message leads to.
-spec handle(message(), gather()) -> {outcome(), gather()}.
handle({started, Id, Node, Pid}, #gather{branch = Branch} = G) ->
    %% It may have left that node meanwhile.
    case aco_branch:is_at(Id, Node, Branch) of
        true -> event({up, Id, Node}, got_on(watched(Id, Node, Pid, G)));
        false -> {none, G}
    end;
handle({not_started, Id, Node}, G) ->
    event({down, Id, Node, node}, G);
handle({best, Id, Round, Offer}, G) ->
    event({best, Id, Round, Offer}, G);
handle({behind, Pid, Round}, #gather{behind = Behind} = G) ->
    supply(G#gather{behind = [{Pid, Round} | Behind]});
handle({'DOWN', Ref, process, _, Why}, #gather{watched = Watched, pids = Pids} = G) ->
    case maps:take(Ref, Watched) of
        {{Id, Node}, Left} ->
            What = case Why of noconnection -> node; _ -> process end,
            event({down, Id, Node, What}, G#gather{watched = Left, pids = maps:remove(Id, Pids)});
        error ->
            {none, G}
    end.

%% @doc What was told is known now.
-spec told([aco_keep:span()], gather()) -> gather().
told(Rows, #gather{keep = Keep} = G) ->
    lists:foreach(fun(Span) -> ok = aco_keep:put_told(Span, Keep) end, Rows),
    {_, Supplied} = supply(G),
    Supplied.

%% @doc Sends without connecting.
-spec send(pid(), term()) -> ok.
send(To, Message) ->
    _ = erlang:send(To, Message, [noconnect]),
    ok.

watched(Id, Node, Pid, #gather{pids = Pids, watched = Watched} = G) ->
    Left = case Pids of
               #{Id := {_, Before}} ->
                   true = demonitor(Before, [flush]),
                   maps:remove(Before, Watched);
               #{} ->
                   Watched
           end,
    Ref = monitor(process, Pid),
    G#gather{pids = Pids#{Id => {Pid, Ref}}, watched = Left#{Ref => {Id, Node}}}.

%% Who has found all below has not been started in vain.
got_on(#gather{id = Id, keep = Keep, pids = Pids, children = Children} = G) ->
    _ = map_size(Pids) =:= map_size(Children) andalso aco_keep:got_on(Id, Keep),
    G.

%% Nobody asks for it where nothing is replaced.
keep_told(Round, Told, #gather{reliable = Reliable}) when Told =:= none; Round < 1; not Reliable -> ok;
keep_told(Round, Told, #gather{keep = Keep}) -> aco_keep:put_told({Round, Round, Told}, Keep).

supply(#gather{behind = Behind, round = Round, keep = Keep} = G) ->
    Known = [{Waiting, aco_keep:told(First, Round - 1, Keep)} || {_, First} = Waiting <- Behind],
    _ = [send(Pid, {told, Rows}) || {{Pid, _}, {ok, Rows}} <- Known],
    case [Waiting || {Waiting, none} <- Known] of
        [] -> {none, G#gather{behind = []}};
        Left -> {{behind, lists:min([First || {_, First} <- Left])}, G#gather{behind = Left}}
    end.

event(Event, #gather{branch = Branch} = G) ->
    {Next, Effects} = aco_branch:handle(Event, Branch),
    {lists:foldl(fun(Effect, Outcome) -> act(Effect, Outcome, G) end, none, Effects), G#gather{branch = Next}}.

act({start, Id, Node, How}, Outcome, #gather{host = Host, children = Children, group = Group}) ->
    #{Id := Child} = Children,
    Host ! {start, #{asker => self(), child => Child, node => Node, how => How, group => Group}},
    Outcome;
act({ask, Id, Round, Told}, Outcome, #gather{pids = Pids}) ->
    #{Id := {Pid, _}} = Pids,
    ok = send(Pid, {round, self(), Round, Told}),
    Outcome;
act({answer, _, _} = Answer, none, _) ->
    Answer;
act({fail, _} = Failure, _, _) ->
    Failure.
