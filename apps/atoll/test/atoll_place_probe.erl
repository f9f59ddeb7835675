%% SPDX-License-Identifier: Apache-2.0
%% What the suites of placing have their nodes do, a supervisor among it.
-module(atoll_place_probe).

-behaviour(supervisor).

-export([start_losing/3, await_unregistered/1, on_full_connection/1]).
-export([start_supervisor/0, start_supervisor/1, end_supervisors/0, children/1, stop_worker/2, lives/1]).
-export([nothing/0, subscribe_misplaced/0, spawned/1, spread/2, await_no_bridge/0, await_count/2]).
-export([init/1, here/1]).

-define(DEADLINE_MS, 20000).

%% @doc A supervisor with nobody, that nobody is linked with.
start_supervisor() ->
    unlinked([]).

%% @doc One of `simple_one_for_one'.
start_supervisor(Spec) ->
    unlinked([Spec]).

unlinked(Specs) ->
    {ok, Pid} = supervisor:start_link(?MODULE, Specs),
    true = unlink(Pid),
    Pid.

%% @doc Ends those of this node, with all that they have.
end_supervisors() ->
    Pids = [P || P <- processes(), {supervisor, ?MODULE, _} <- [proc_lib:translate_initial_call(P)]],
    lists:foreach(
        fun(Pid) ->
            Ref = erlang:monitor(process, Pid),
            true = exit(Pid, kill),
            receive
                {'DOWN', Ref, process, Pid, _} -> ok
            end
        end,
        Pids
    ).

%% @doc The true processes of a supervisor, by their names.
children(Supervisor) ->
    maps:from_list([
        {Id, Pid}
     || {Id, Child, _, _} <- supervisor:which_children(Supervisor), is_pid(Child), {ok, Pid} <- [atoll_place:child(Child)]
    ]).

%% @doc Has a worker end.
stop_worker(Pid, Reason) ->
    gen_server:cast(Pid, {stop, Reason}).

%% @doc Whether a process of this node lives, once it has had the time to end.
lives(Pid) ->
    Ref = erlang:monitor(process, Pid),
    receive
        {'DOWN', Ref, process, Pid, _} -> false
    after ?DEADLINE_MS -> true
    end.

nothing() -> ok.

subscribe_misplaced() -> ok = atoll:subscribe(misplaced).

%% @doc The node on which a process is that was spawned on one that fits; or what was raised.
spawned(Params) ->
    try spawn(atoll_place:node(Params), ?MODULE, here, [self()]) of
        Pid ->
            receive
                {Pid, Node} -> Node
            after ?DEADLINE_MS -> error(no_process)
            end
    catch
        error:Reason:Stack ->
            #{general := Text} = atoll_place:format_error(Reason, Stack),
            {raised, Reason, unicode:characters_to_list(Text)}
    end.

here(To) -> To ! {self(), node()}.

%% @doc So many callers place a process at the same moment; the nodes.
spread(Count, Params) ->
    Callers = [spawn_monitor(fun() -> exit({on, spawned(Params)}) end) || _ <- lists:seq(1, Count)],
    [
        receive
            {'DOWN', Ref, process, Pid, {on, Node}} -> Node
        end
     || {Pid, Ref} <- Callers
    ].

%% @doc No process of this node is a bridge, or guards one.
await_no_bridge() ->
    wait(
        fun() ->
            [P || P <- processes(), {_, {M, _, _}} <- [process_info(P, initial_call)], M =:= atoll_place_bridge]
        end,
        [],
        erlang:monotonic_time(millisecond) + ?DEADLINE_MS
    ).

%% @doc A start function: on one node it returns when the connection with another was lost and is
%% there again. What it starts there would stay for ever.
start_losing(First, Parent, _Ear) when First =:= node() ->
    true = erlang:disconnect_node(Parent),
    ok = wait(fun() -> net_adm:ping(Parent) end, pong, deadline()),
    Pid = spawn_link(fun() -> receive never -> ok end end),
    true = register(atoll_place_lost, Pid),
    {ok, Pid};
start_losing(_First, _Parent, Ear) ->
    atoll_place_worker:start_link(Ear).

%% @doc Nobody has this name any more.
await_unregistered(Name) ->
    wait(fun() -> whereis(Name) end, undefined, deadline()).

%% @doc What comes of a start on a node that takes nothing from a connection that is full.
on_full_connection(Node) ->
    Flood = [spawn(fun() -> flood({atoll_place_nobody, Node}, binary:copy(<<1>>, 1 bsl 20)) end) || _ <- [1, 2, 3]],
    ok = wait(fun() -> is_full(Node, 20) end, true, deadline()),
    {Pid, Ref} = spawn_monitor(fun() ->
        exit(atoll_place_bridge:start(Node, {erlang, node, []}, #{answer => 500, all => 2000, shutdown => 5000}))
    end),
    Outcome =
        receive
            {'DOWN', Ref, process, Pid, Reason} -> Reason
        after ?DEADLINE_MS -> {held, process_info(Pid, status)}
        end,
    [true = exit(P, kill) || P <- [Pid | Flood]],
    Outcome.

flood(To, Bin) ->
    To ! Bin,
    flood(To, Bin).

%% For so many looks: it may be full for a moment only.
is_full(_Node, 0) ->
    true;
is_full(Node, Looks) ->
    case erlang:send({atoll_place_nobody, Node}, full, [nosuspend, noconnect]) of
        nosuspend -> receive after 5 -> is_full(Node, Looks - 1) end;
        _ -> false
    end.

deadline() -> erlang:monotonic_time(millisecond) + ?DEADLINE_MS.

%% @doc So much was counted of the watch of this node.
await_count(What, Count) ->
    wait(
        fun() ->
            #{counts := #{What := N}} = atoll_place_watch:status(),
            N >= Count
        end,
        true,
        erlang:monotonic_time(millisecond) + ?DEADLINE_MS
    ).

%% For what no notice tells: it is looked at until it is so.
wait(Look, Expected, Deadline) ->
    case {Look(), erlang:monotonic_time(millisecond) < Deadline} of
        {Expected, _} -> ok;
        {_, true} -> receive after 5 -> wait(Look, Expected, Deadline) end;
        {Seen, false} -> {still, Seen, instead_of, Expected}
    end.

%% @private
init([]) ->
    {ok, {#{intensity => 10}, []}};
init([Spec]) ->
    {ok, {#{strategy => simple_one_for_one}, [Spec]}}.
