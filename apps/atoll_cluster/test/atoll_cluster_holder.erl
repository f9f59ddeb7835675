%% SPDX-License-Identifier: Apache-2.0
%% A VM of its own that holds a cluster, for the tests that end such a VM.
%% It says on standard output what happens, one term a line, and does what it
%% is told on standard input.
-module(atoll_cluster_holder).

-export([start/1, next/1, wait_for/2, tell/2, os_pid/1, close/1]).
-export([main/1]).

-define(LINE_MS, 30000).

%% The side of the test. Options: `cluster', the options of the cluster, whose nodes are
%% in the ends of a wire if `wire' is among them, the options of that, and in the groups of a
%% quota if `quota' is; `env', the VM's environment; `flags' for its erl.
start(Options) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Paths = [filename:absname(filename:dirname(code:which(M))) || M <- [?MODULE, atoll_cluster]],
    Encoded = base64:encode_to_string(term_to_binary(maps:get(cluster, Options))),
    Args = maps:get(flags, Options, []) ++ ["-noshell", "-pa" | Paths] ++
        ["-run", atom_to_list(?MODULE), "main", Encoded],
    %% A script's background ignores SIGINT, and so would what it starts.
    open_port({spawn_executable, os:find_executable("env")},
        [{args, ["--default-signal=INT", Erl | Args]}, {env, [{"ERL_CRASH_DUMP_BYTES", "0"} | maps:get(env, Options, [])]}, {line, 10000}, binary, exit_status]).

%% What the VM says next.
next(Port) ->
    receive
        {Port, {data, {eol, Line}}} ->
            {ok, Tokens, _} = erl_scan:string(binary_to_list(Line) ++ "."),
            {ok, Term} = erl_parse:parse_term(Tokens),
            Term;
        {Port, {exit_status, Status}} ->
            {exit_status, Status}
    after ?LINE_MS ->
        error(silent)
    end.

wait_for(Port, Key) ->
    case next(Port) of
        {Key, Value} -> Value;
        {progress, _} -> wait_for(Port, Key)
    end.

tell(Port, Word) ->
    true = port_command(Port, [Word, $\n]).

os_pid(Port) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Pid.

close(Port) ->
    try port_close(Port) of
        true -> ok
    catch
        error:badarg -> ok
    end.

%% The side of the VM.
main([Encoded]) ->
    Given = binary_to_term(base64:decode(Encoded)),
    Options = wired(maps:remove(quota, Given)),
    Progress = fun(Started, _) -> say({progress, Started}) end,
    case atoll_cluster:start(Options#{progress => Progress}) of
        {ok, Cluster} ->
            Info = atoll_cluster:info(Cluster),
            ok = bounded(Given, Info),
            say({started, Info}),
            obey(Cluster);
        {error, Reason} ->
            say({error, lists:flatten(io_lib:format("~0p", [Reason]))}),
            halt(1)
    end.

wired(#{wire := Path} = Options) ->
    {ok, Wire} = atoll_wire:start(Path),
    say({wire, atoll_wire:os_pid(Wire)}),
    (maps:remove(wire, Options))#{hosts => atoll_wire:ends(Wire)};
wired(Options) ->
    Options.

bounded(#{quota := Options}, #{nodes := Nodes}) ->
    {ok, Quota} = atoll_quota:start(Options),
    [ok = atoll_quota:enter(Quota, N, Pid) || {N, #{os_pid := Pid}} <- lists:zip(lists:seq(1, length(Nodes)), Nodes)],
    say({quota, {atoll_quota:os_pid(Quota), atoll_quota:groups(Quota)}});
bounded(#{}, _Info) ->
    ok.

obey(Cluster) ->
    case io:get_line("") of
        "print\n" ->
            Nodes = atoll_cluster:nodes(Cluster),
            [atoll_cluster:call(Cluster, N, io, put_chars, [user, "from a node\n"]) || N <- Nodes],
            [atoll_cluster:call(Cluster, N, logger, error, ["from a node"]) || N <- Nodes],
            say({printed, ok}),
            obey(Cluster);
        "halt\n" ->
            halt(0);
        "stop\n" ->
            init:stop(),
            obey(Cluster);
        eof ->
            halt(0)
    end.

say(Term) ->
    io:format("~0p~n", [Term]).
