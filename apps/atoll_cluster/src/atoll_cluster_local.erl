%% SPDX-License-Identifier: Apache-2.0
%% @doc The driver that starts nodes as processes of this machine.
%%
%% Nodes are started and controlled with OTP's `peer' over their standard
%% input and output. They are `NAMEi@127.0.0.1', listen on loopback only (or are named by
%% the address of their host, and listen on that), are
%% small (about 22 MB each), use the user's ordinary cookie, and find the
%% modules that the calling VM finds. They log to the run directory and never
%% to their standard output, which belongs to the control connection.
-module(atoll_cluster_local).
-behaviour(atoll_cluster_driver).

-export([nodes/2, prepare/1, start_node/2, call/4, signal/2, state/1, release/1]).

-type place() :: #{
    %% the emulator's start script, of the OTP this VM runs
    erl := file:filename(),
    dir := file:filename(),
    pids := file:filename()
}.

-type handle() :: #{
    control := pid(),
    os_pid := pos_integer(),
    process := atoll_cluster_os:process()
}.

%% What a small node takes with nothing but kernel and stdlib, with some room.
-define(NODE_BYTES, (32 * 1024 * 1024)).
%% A log file is turned over when it has this size, and one old one is kept.
-define(LOG_BYTES, 1000000).
-define(SIGNAL_MS, 2000).
-define(COOKIE_LETTERS, 20).

-spec nodes(string(), [atoll_cluster_driver:host(), ...]) -> [node(), ...].
nodes(Name, Hosts) ->
    [
        list_to_atom(lists:concat([Name, I, "@", host_name(Host)]))
     || {I, Host} <- lists:zip(lists:seq(1, length(Hosts)), Hosts)
    ].

host_name(#{name := Name}) -> Name;
host_name(#{address := Address}) -> inet:ntoa(Address).

-spec prepare(atoll_cluster_driver:context()) -> {ok, place()} | {error, term()}.
prepare(#{nodes := Nodes, dir := Dir, pids := Pids}) ->
    Place = #{erl => erl(), dir => Dir, pids => Pids},
    Checks = [
        fun() -> check_memory(length(Nodes)) end,
        fun() -> atoll_cluster_epmd:ensure(filename:dirname(Dir)) end,
        fun() -> atoll_cluster_epmd:check_free(Nodes) end,
        fun ensure_cookie/0
    ],
    case checks(Checks) of
        ok -> {ok, Place};
        {error, _} = Error -> Error
    end.

-spec start_node(atoll_cluster_driver:spec(), place()) -> {ok, handle()} | {error, term()}.
start_node(#{node := Node, host := #{wrap := Wrap} = Host, boot_timeout := Timeout} = Spec, #{pids := Pids} = Place) ->
    ok = atoll_cluster_rundir:forget(Pids, Node),
    {Program, Args} = launcher(Node, Wrap, Place),
    Options = #{
        name => atom_to_list(Node),
        longnames => lists:member($., host_name(Host)),
        connection => standard_io,
        exec => {Program, Args},
        args => node_args(Spec, Place),
        wait_boot => Timeout
    },
    try peer:start(Options) of
        {ok, Peer, Node} ->
            case atoll_cluster_rundir:find(Pids, Node) of
                {ok, {OsPid, _} = Process} ->
                    {ok, #{control => Peer, os_pid => OsPid, process => Process}};
                gone ->
                    %% The cluster is going down at this moment.
                    true = exit(Peer, kill),
                    {error, gone}
            end
    catch
        exit:Reason ->
            %% peer only closed the connection; a node that hangs may not see it.
            ok = kill_registered(Pids, Node),
            {error, boot_error(Reason)}
    end.

-spec call(handle(), module(), atom(), [term()]) -> atoll_cluster_driver:reply().
call(#{control := Peer}, M, F, A) ->
    try
        {ok, peer:call(Peer, M, F, A, infinity)}
    catch
        %% The call of our own control process failed, not one on the node.
        exit:{_, {gen_server, call, [Peer | _]}} -> down;
        Class:Reason:Stack -> {raised, Class, Reason, Stack}
    end.

-spec signal(handle(), kill | pause | resume) -> ok | {error, down}.
signal(#{control := Peer, process := Process}, Signal) ->
    %% The control process goes first: one that waits to write to the pipe of a
    %% silent node would crash, and say so at length, when the node is killed.
    _ = [exit(Peer, kill) || Signal =:= kill],
    {Name, Reached} =
        case Signal of
            kill -> {kill, gone};
            pause -> {stop, stopped};
            resume -> {cont, running}
        end,
    case atoll_cluster_os:signal(Process, Name) of
        ok -> await(Process, Reached, deadline(?SIGNAL_MS));
        gone -> {error, down}
    end.

-spec state(handle()) -> up | paused | down.
state(#{process := Process}) ->
    case atoll_cluster_os:state(Process) of
        running -> up;
        stopped -> paused;
        gone -> down
    end.

-spec release(place()) -> ok.
release(_Place) ->
    ok.

%% The run directory's path reaches the shell as an argument of its own, never
%% as text to be parsed; and no exec bit is needed on an installed script.
launcher(Node, Wrap, #{erl := Erl, dir := Dir, pids := Pids}) ->
    Launch = filename:join(code:priv_dir(atoll_cluster), "launch"),
    Out = atoll_cluster_rundir:out(Dir, Node),
    {"/bin/sh", [Launch, Pids, atom_to_list(Node), Out | Wrap ++ [Erl]]}.

node_args(#{node := Node, host := #{address := Address}, connect_all := ConnectAll, args := Args}, #{dir := Dir}) ->
    Small = ["+S", "1:1", "+SDio", "1", "+A", "1",
        "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"],
    %% epmd runs already, see prepare/1.
    Kernel = ["-start_epmd", "false",
        "-kernel", "inet_dist_use_interface", lists:flatten(io_lib:format("~0p", [Address])),
        "-kernel", "prevent_overlapping_partitions", "false",
        "-kernel", "logger", logger(atoll_cluster_rundir:log(Dir, Node))],
    Mesh = case ConnectAll of
        true -> [];
        false -> ["-connect_all", "false"]
    end,
    Small ++ code_path() ++ Kernel ++ Mesh ++ Args.

logger(File) ->
    Config = #{file => File, max_no_bytes => ?LOG_BYTES, max_no_files => 1},
    Handlers = [{handler, default, logger_std_h, #{config => Config}}],
    lists:flatten(io_lib:format("~0tp", [Handlers])).

%% The directories that the calling VM has and a plain one has not, in order; and those of stdlib and
%% kernel before them, if they stand there.
code_path() ->
    Base = [filename:join(code:lib_dir(App), "ebin") || App <- [stdlib, kernel]],
    Otp = filename:split(code:root_dir()),
    IsOwn = fun(Dir) -> not lists:prefix(Otp, filename:split(Dir)) andalso filelib:is_dir(Dir) end,
    Dirs = [filename:absname(Dir) || Dir <- code:get_path(), Dir =/= ".", lists:member(Dir, Base) orelse IsOwn(Dir)],
    case lists:dropwhile(fun(Dir) -> lists:member(Dir, Base) end, lists:reverse(Dirs)) of
        [] -> [];
        %% The last one given comes first on the node. While that boots it is the other way round, and
        %% what it loads then would be looked for in all of them.
        Reversed -> ["-pa" | Base ++ Reversed]
    end.

erl() ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    case filelib:is_regular(Erl) of
        true -> Erl;
        false -> os:find_executable("erl")
    end.

%% Nodes that start at the same moment without a cookie file would each make
%% one, and could not connect. So it is made before them, as OTP would make it.
ensure_cookie() ->
    case init:get_argument(home) of
        {ok, [[Home]]} ->
            Files = [filename:join(Dir, ".erlang.cookie") || Dir <- [Home, filename:basedir(user_config, "erlang")]],
            case lists:any(fun filelib:is_regular/1, Files) of
                true -> ok;
                false -> make_cookie(hd(Files))
            end;
        error ->
            {error, {cookie, no_home}}
    end.

%% Whoever reads it meanwhile sees all of it, and whoever makes one meanwhile has made it.
make_cookie(File) ->
    New = lists:concat([File, ".", os:getpid()]),
    Letters = [$A + Byte rem 26 || <<Byte>> <= crypto:strong_rand_bytes(?COOKIE_LETTERS)],
    Steps = [
        fun() -> file:write_file(New, Letters, [exclusive]) end,
        fun() -> file:change_mode(New, 8#400) end,
        fun() -> file:make_link(New, File) end
    ],
    Made = lists:foldl(fun(Step, ok) -> Step(); (_, Error) -> Error end, ok, Steps),
    _ = file:delete(New),
    case Made of
        {error, Reason} when Reason =/= eexist -> {error, {cookie, {File, Reason}}};
        _ -> ok
    end.

check_memory(Count) ->
    case atoll_cluster_os:available_memory() of
        {ok, Bytes} when Count * ?NODE_BYTES > Bytes ->
            {error, {too_many_nodes, Count, Bytes div ?NODE_BYTES}};
        _ ->
            ok
    end.

kill_registered(Pids, Node) ->
    case atoll_cluster_rundir:find(Pids, Node) of
        {ok, Process} ->
            _ = atoll_cluster_os:signal(Process, kill),
            _ = await(Process, gone, deadline(?SIGNAL_MS)),
            ok;
        gone ->
            ok
    end.

boot_error(timeout) -> boot_timeout;
boot_error({boot_failed, {exit_status, Status}}) -> {exit_status, Status};
boot_error(Reason) -> Reason.

%% No event tells when a signal has taken effect on a process that is not our
%% child, so its state is read until it has.
await(Process, Reached, Deadline) ->
    case {atoll_cluster_os:state(Process), Deadline - erlang:monotonic_time(millisecond)} of
        {Reached, _} -> ok;
        {gone, _} -> {error, down};
        {_, Left} when Left =< 0 -> ok;
        _ ->
            receive after 2 -> ok end,
            await(Process, Reached, Deadline)
    end.

deadline(Ms) ->
    erlang:monotonic_time(millisecond) + Ms.

checks([]) ->
    ok;
checks([Check | Checks]) ->
    case Check() of
        ok -> checks(Checks);
        {error, _} = Error -> Error
    end.
