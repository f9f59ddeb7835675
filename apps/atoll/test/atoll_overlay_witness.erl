%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: writes down the events of the overlay, and what its
%% monitors say, with the machine's time, and lets a caller wait for what it is to see.
-module(atoll_overlay_witness).

-export([start/0, stop/0, seen/0, forget/0]).
-export([await/2, await/3, await_neighbour/0, await_metas/1, await_event/2, await_alone/0, await_heard/0, await_sources/0, await_history/0]).
-export([monitor_nodes/1, monitors/0]).
-export([broadcast/3, broadcast_to_busy/0, chatter/2]).
-export([busy/2, search/0]).
-export([start_timed/3]).

-define(DEADLINE_MS, 15000).

-type entry() :: {Ms :: integer(), Kind :: atom(), Details :: map()}.

%% @doc Starts the witness of this node, or the one that there is goes on.
-spec start() -> ok.
start() ->
    case whereis(?MODULE) of
        undefined ->
            Caller = self(),
            {Pid, Ref} = spawn_monitor(fun() ->
                true = register(?MODULE, self()),
                ok = atoll:subscribe(all),
                Caller ! {self(), ready},
                loop([], [])
            end),
            receive
                {Pid, ready} ->
                    true = erlang:demonitor(Ref, [flush]),
                    ok;
                {'DOWN', Ref, process, Pid, Reason} ->
                    {error, Reason}
            end;
        _ ->
            ok
    end.

%% @doc Ends the witness of this node, if there is one.
-spec stop() -> ok.
stop() ->
    case whereis(?MODULE) of
        undefined ->
            ok;
        Pid ->
            Ref = monitor(process, Pid),
            true = exit(Pid, kill),
            receive
                {'DOWN', Ref, process, Pid, _} -> ok
            end
    end.

%% Entries are newest first; some wait for one that has not come.
loop(Entries, Waits) ->
    receive
        {seen, From} ->
            From ! {?MODULE, lists:reverse(Entries)},
            loop(Entries, Waits);
        {forget, From} ->
            From ! {?MODULE, ok},
            loop([], Waits);
        {await, _, _, _} = Wait ->
            loop(Entries, answer_all(Entries, [Wait | Waits]));
        {monitor_nodes, From, Nodes} ->
            %% By name, so that nobody has to be asked for a pid.
            _ = [erlang:monitor(process, {?MODULE, Node}) || Node <- Nodes],
            From ! {?MODULE, ok},
            loop(Entries, Waits);
        {atoll, Kind, Details} ->
            happened(Kind, Details, Entries, Waits);
        {'DOWN', _Ref, process, {?MODULE, Node}, Reason} ->
            happened(down, #{node => Node, reason => Reason}, Entries, Waits)
    end.

happened(Kind, Details, Entries, Waits) ->
    Entry = {now_ms(), Kind, Details},
    loop([Entry | Entries], answer_all([Entry], Waits)).

%% Those who still wait.
answer_all(Entries, Waits) ->
    [Wait || Wait <- Waits, not answer(Entries, Wait)].

answer(Entries, {await, Alias, Kind, Details}) ->
    Fits = fun({_, K, D}) -> K =:= Kind andalso maps:with(maps:keys(Details), D) =:= Details end,
    Seen = lists:any(Fits, Entries),
    _ = [Alias ! {Alias, ok} || Seen],
    Seen.

%% The nodes of one machine have this clock in common.
now_ms() ->
    os:system_time(millisecond).

%% @doc What was seen since the start, or since it was told to forget, oldest first.
-spec seen() -> [entry()].
seen() -> ask({seen, self()}).

%% @doc What was seen so far does not count.
-spec forget() -> ok.
forget() -> ask({forget, self()}).

%% @doc The witness monitors those of these nodes, over connections that are there when this returns: while
%% one is being made a monitor waits for that, seven seconds if the node does not answer.
-spec monitor_nodes([node()]) -> ok.
monitor_nodes(Nodes) ->
    _ = [true = net_kernel:connect_node(Node) || Node <- Nodes],
    ask({monitor_nodes, self(), Nodes}).

ask(Request) ->
    ?MODULE ! Request,
    receive
        {?MODULE, Answer} -> Answer
    after ?DEADLINE_MS -> error(no_answer)
    end.

%% @doc The nodes whose witness was heard to be down.
-spec monitors() -> [{node(), Reason :: term()}].
monitors() ->
    [{Node, Reason} || {_, down, #{node := Node, reason := Reason}} <- seen()].

%% @doc Waits until this function of atoll gives these nodes; says which it lacks and
%% which it has too many.
-spec await(members | neighbours, [node()]) -> ok | {lacks, [node()], beyond, [node()]}.
await(What, Nodes) ->
    await(What, Nodes, ?DEADLINE_MS).

%% @doc As await/2, so long at most.
-spec await(members | neighbours, [node()], Ms :: pos_integer()) -> ok | {lacks, [node()], beyond, [node()]}.
await(What, Nodes, Ms) ->
    Expected = lists:sort(Nodes),
    until(
        fun() ->
            case atoll:What() of
                Expected -> ok;
                Other -> {lacks, Expected -- Other, beyond, Other -- Expected}
            end
        end,
        Ms
    ).

%% @doc Waits until this node has a neighbour: a member without one is watched by nobody.
-spec await_neighbour() -> ok | no_neighbour.
await_neighbour() ->
    until(fun() ->
        case atoll:neighbours() of
            [_ | _] -> ok;
            [] -> no_neighbour
        end
    end).

%% @doc Waits until the members say this of themselves.
-spec await_metas([{node(), map()}]) -> ok | [{node(), map()}].
await_metas(Expected) ->
    until(fun() ->
        case atoll:members(#{meta => true}) of
            Expected -> ok;
            Other -> Other
        end
    end).

%% @doc Waits until no connection with another visible node is left.
-spec await_alone() -> ok | {still, [map()]}.
await_alone() ->
    until(fun() ->
        case nodes() of
            [] -> ok;
            %% And why it is there: who wants it, or how far it is with closing.
            Nodes -> {still, [Link || #{node := Node} = Link <- maps:get(links, atoll:status()), lists:member(Node, Nodes)]}
        end
    end).

%% @doc Waits until the witness has seen an event of this kind with these details.
-spec await_event(atom(), map()) -> ok | {not_seen, Kind :: atom(), map()}.
await_event(Kind, Details) ->
    %% The witness says so: what its monitors hear is no event that this process could hear too.
    Alias = erlang:monitor(process, ?MODULE, [{alias, reply_demonitor}]),
    ?MODULE ! {await, Alias, Kind, Details},
    receive
        {Alias, ok} -> ok;
        {'DOWN', Alias, process, _, Reason} -> error({no_witness, Reason})
    after ?DEADLINE_MS ->
        true = erlang:demonitor(Alias, [flush]),
        {not_seen, Kind, Details}
    end.

%% @doc Waits until this node knows what was broadcast before it came: of what is sent
%% earlier it is promised nothing. There is no event for that either.
-spec await_history() -> ok | still_fresh.
await_history() ->
    again(
        fun() ->
            case atoll:status() of
                #{overlay := #{broadcast := #{fresh := true}}} -> still_fresh;
                #{} -> ok
            end
        end,
        erlang:monotonic_time(millisecond) + ?DEADLINE_MS
    ).

%% @doc Waits until this node has heard all those that its detector, atoll_detector_plain, watches.
-spec await_heard() -> ok | {unheard, non_neg_integer()}.
await_heard() ->
    again(
        fun() ->
            case atoll:status() of
                #{overlay := #{detector := #{watched := Watched, unheard := 0}}} when Watched > 0 -> ok;
                #{overlay := #{detector := #{unheard := Unheard}}} -> {unheard, Unheard}
            end
        end,
        erlang:monotonic_time(millisecond) + ?DEADLINE_MS
    ).

%% @doc Waits until all discovery sources are read as they should be. There is no event
%% for that: it looks again and again.
-spec await_sources() -> ok | {still, [term()]}.
await_sources() ->
    again(
        fun() ->
            #{sources := Sources} = atoll:status(),
            case [Last || #{last := Last} <- Sources, Last =/= works] of
                [] -> ok;
                Still -> {still, Still}
            end
        end,
        erlang:monotonic_time(millisecond) + ?DEADLINE_MS
    ).

%% Each look is a question to the processes that are waited for.
again(Look, Deadline) ->
    case Look() of
        ok ->
            ok;
        Not ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true -> receive after 5 -> again(Look, Deadline) end;
                false -> Not
            end
    end.

%% Looks again after each event, which this process hears too.
until(Look) ->
    until(Look, ?DEADLINE_MS).

until(Look, Ms) ->
    ok = atoll:subscribe(all),
    Answer = looking(Look, erlang:monotonic_time(millisecond) + Ms),
    ok = atoll:unsubscribe(),
    Answer.

looking(Look, Deadline) ->
    case Look() of
        ok ->
            ok;
        Not ->
            Left = max(0, Deadline - erlang:monotonic_time(millisecond)),
            receive
                {atoll, Kind, Details} when is_atom(Kind), is_map(Details) -> looking(Look, Deadline)
            after Left -> Not
            end
    end.

%% @doc Broadcasts the payloads {Tag, From} to {Tag, To}.
-spec broadcast(term(), From :: integer(), To :: integer()) -> ok.
broadcast(Tag, From, To) ->
    lists:foreach(fun(N) -> ok = atoll:broadcast(test, {Tag, N}) end, lists:seq(From, To)).

%% @doc What a broadcast answers while the process of the overlay stands still and has much to do.
-spec broadcast_to_busy() -> ok | {error, term()}.
broadcast_to_busy() ->
    ok = sys:suspend(atoll_overlay),
    try
        _ = [atoll_interpreter:cast(atoll_overlay, {contacts, []}) || _ <- lists:seq(1, 1500)],
        atoll:broadcast(test, busy)
    after
        ok = sys:resume(atoll_overlay)
    end.

%% @doc From now on a process broadcasts {Tag, 1}, {Tag, 2} and so on, one in each Ms.
-spec chatter(term(), Ms :: pos_integer()) -> pid().
chatter(Tag, Ms) ->
    spawn(fun() ->
        {ok, _} = timer:send_interval(Ms, say),
        chatter_on(Tag, 1)
    end).

chatter_on(Tag, N) ->
    receive
        say ->
            _ = atoll:broadcast(test, {Tag, N}),
            chatter_on(Tag, N + 1)
    end.

%% @doc So many processes want to run all the time, for Ms milliseconds. What they do counts as
%% little work, so that each has the scheduler for long, and who waits for a turn waits for seconds.
-spec busy(Processes :: pos_integer(), Ms :: pos_integer()) -> ok.
busy(Processes, Ms) ->
    ok = persistent_term:put(?MODULE, [{N, []} || N <- lists:seq(1, 20000)]),
    {_, Ref} = spawn_opt(
        fun() ->
            Pids = [spawn(?MODULE, search, []) || _ <- lists:seq(1, Processes)],
            receive
            after Ms -> lists:foreach(fun(Pid) -> exit(Pid, kill) end, Pids)
            end
        end,
        [monitor, {priority, max}]
    ),
    receive
        {'DOWN', Ref, process, _, normal} -> ok
    end.

%% @private
search() ->
    false = lists:keyfind(none, 1, persistent_term:get(?MODULE)),
    search().

%% @doc Starts the application: after how many milliseconds is this node in the group with these
%% members, and after how many does it know that these are the members of the cluster?
-spec start_timed(Group :: atom(), Team :: [node()], Nodes :: [node()]) -> {pos_integer(), pos_integer()} | timeout.
start_timed(Group, Team, Nodes) ->
    Begun = erlang:monotonic_time(millisecond),
    {ok, _} = application:ensure_all_started(atoll),
    After = fun(Look, Expected) ->
        {_, Ref} = spawn_monitor(fun() -> exit({after_ms, passed(Look, Expected, Begun)}) end),
        Ref
    end,
    Refs = [After(fun() -> lists:sort(s_group:own_nodes(Group)) end, Team), After(fun atoll:members/0, Nodes)],
    [Grouped, Member] = [receive {'DOWN', Ref, process, _, {after_ms, Ms}} -> Ms end || Ref <- Refs],
    case is_integer(Grouped) andalso is_integer(Member) of
        true -> {Grouped, Member};
        false -> timeout
    end.

passed(Look, Expected, Begun) ->
    Ms = erlang:monotonic_time(millisecond) - Begun,
    case Look() of
        Expected -> max(1, Ms);
        _ when Ms > ?DEADLINE_MS -> timeout;
        _ -> receive after 2 -> passed(Look, Expected, Begun) end
    end.
