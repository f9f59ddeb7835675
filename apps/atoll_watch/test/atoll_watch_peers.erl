%% SPDX-License-Identifier: Apache-2.0
%% Nodes of a plain erl with a cookie, for the suites: some to be watched, and one that watches, hidden
%% as the program is. They are driven over their standard input, so the VM of the test need be no node.
-module(atoll_watch_peers).

-behaviour(supervisor).

-export([init/1]).
-export([start/1, stop/1, watched/1, watched/2, restarted/2, watcher/0, watcher/1, watch/2, call/4, call/5, kill/1, known/1, await/2, cookie/0]).

-export_type([peer/0]).

-type peer() :: {Control :: pid(), node()}.

-define(COOKIE, "tell-tale").
%% The machine may be busy.
-define(LATE_MS, 30000).
-define(LOOK_MS, 20).

%% @doc Starts peers in a process that lives until stop/1, as a suite's own does not.
-spec start(fun(() -> Peers)) -> {Holder :: pid(), Peers}.
start(Make) ->
    Self = self(),
    {Holder, Ref} = spawn_monitor(fun() ->
        Peers = Make(),
        Self ! {self(), Peers},
        receive stop -> ok end
    end),
    receive
        {Holder, Peers} -> true = demonitor(Ref), {Holder, Peers};
        {'DOWN', Ref, process, Holder, Reason} -> error(Reason)
    end.

%% @doc They are linked with it.
-spec stop(pid()) -> ok.
stop(Holder) ->
    Ref = monitor(process, Holder),
    _ = exit(Holder, shutdown),
    receive {'DOWN', Ref, process, Holder, _} -> ok end.

%% @doc A node without anything of ours.
-spec watched(Args :: [string()]) -> peer().
watched(Args) -> watched(Args, here()).

%% @doc And elsewhere.
-spec watched(Args :: [string()], atoll_cluster_driver:host()) -> peer().
watched(Args, Host) ->
    Started = new(peer:random_name(), Args, Host),
    non_existing = call(Started, code, which, [atoll_watch_agent]),
    Started.

%% @doc One of the same name as that, which is gone. A watcher may be there at once.
-spec restarted(peer(), Args :: [string()]) -> peer().
restarted({_, Node}, Args) ->
    [Name, _] = string:split(atom_to_list(Node), "@"),
    new(Name, Args, here()).

%% @doc A hidden node with the room.
-spec watcher() -> peer().
watcher() -> watcher(here()).

%% @doc And elsewhere.
-spec watcher(atoll_cluster_driver:host()) -> peer().
watcher(Host) ->
    Paths = lists:append([["-pa", filename:dirname(code:which(M))] || M <- [atoll_watch_node, atoll_view, atoll_cluster, atoll, ?MODULE]]),
    new(peer:random_name(), ["-hidden" | Paths], Host).

%% @doc Has this VM, which is such a node, watch a cluster until it ends, by a process that has the name of this module.
-spec watch(atoll_view:target(), atoll_watch:options()) -> ok.
watch(Target, Options) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        {ok, Watch} = atoll_watch:start_link(Target, Options),
        true = register(?MODULE, Watch),
        Self ! {self(), watching},
        receive never -> ok end
    end),
    receive
        {Pid, watching} -> ok;
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    end.

%% @private A supervisor of one child.
-spec init(supervisor:child_spec()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Child) -> {ok, {#{}, [Child]}}.

here() -> #{address => {127, 0, 0, 1}, wrap => []}.

new(Name, Args, #{address := Address, wrap := Wrap}) ->
    [Program | Before] = Wrap ++ [os:find_executable("erl")],
    {ok, Peer, Node} = peer:start_link(#{
        name => Name, host => inet:ntoa(Address), exec => {os:find_executable(Program), Before}, longnames => true, connection => standard_io, wait_boot => ?LATE_MS,
        args => ["-setcookie", ?COOKIE | Args], env => [{"ERL_LIBS", ""}, {"ERL_FLAGS", ""}, {"ERL_AFLAGS", ""}, {"ERL_ZFLAGS", ""}]
    }),
    %% OTP starts what looks up hosts when a node first connects to another, if only to answer one that has gone: here it is there before
    %% known/1 looks.
    {ok, _} = call({Peer, Node}, inet, gethostbyname, ["localhost"]),
    {Peer, Node}.

%% @doc The cookie of all of them.
-spec cookie() -> string().
cookie() -> ?COOKIE.

%% @doc Calls a function there.
-spec call(peer(), module(), atom(), [term()]) -> term().
call(Peer, M, F, A) -> call(Peer, M, F, A, ?LATE_MS).

-spec call(peer(), module(), atom(), [term()], timeout()) -> term().
call({Peer, _}, M, F, A, Ms) -> peer:call(Peer, M, F, A, Ms).

%% @doc Ends a node as a power failure does. Whoever started it is to live on.
-spec kill(peer()) -> ok.
kill({Peer, _} = Started) ->
    Pid = call(Started, os, getpid, []),
    true = unlink(Peer),
    Ref = monitor(process, Peer),
    [] = os:cmd("kill -9 " ++ Pid),
    receive {'DOWN', Ref, process, Peer, _} -> ok end.

%% @doc What a node has of what an agent might leave there.
-spec known(peer()) -> #{atom() => term()}.
known(Peer) ->
    #{
        modules => lists:sort([M || {M, _} <- call(Peer, code, all_loaded, [])]),
        old => call(Peer, erlang, check_old_code, [atoll_watch_agent]),
        registered => lists:sort(call(Peer, erlang, registered, [])),
        handlers => lists:sort(call(Peer, logger, get_handler_ids, [])),
        filters => [Id || {Id, _} <- maps:get(filters, call(Peer, logger, get_primary_config, []))],
        counting => call(Peer, erlang, statistics, [scheduler_wall_time]) =/= undefined,
        tables => length(call(Peer, ets, all, [])),
        %% Each connection has one of its own.
        processes => call(Peer, erlang, system_info, [process_count]) - length(call(Peer, erlang, nodes, [connected])),
        visible => lists:sort(call(Peer, erlang, nodes, []))
    }.

%% @doc Waits until something holds of which nothing tells.
-spec await(fun(() -> Is), fun((Is) -> boolean())) -> Is.
await(Look, Test) ->
    await(Look, Test, erlang:monotonic_time(millisecond) + ?LATE_MS).

await(Look, Test, Deadline) ->
    Is = Look(),
    case {Test(Is), erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} -> Is;
        {false, true} -> receive after ?LOOK_MS -> await(Look, Test, Deadline) end;
        {false, false} -> error({late, Is})
    end.
