%% SPDX-License-Identifier: Apache-2.0
%% Real nodes for the suites of the carrier: each with arguments of its own, controlled
%% over its standard input and output, with a port mapper that is the suite's own. What
%% is started is kept by a process, which takes it down whatever becomes of the case.
%%
%% In the fast tier a node that a case has done with is used by the next one that wants
%% such a node ({@link atoll_dist_spares}); in the deep one each is booted.
-module(atoll_dist_nodes).

-include_lib("stdlib/include/assert.hrl").

-export([over/2, args/2, loopback/1, name/2, begin_suite/1, end_suite/1, begin_case/1, end_case/1, keeper/0, stop/1, epmd/1]).
-export([node/3, node/4, carrier/0, carrier/1, kernel/2, name/1, call/4, call/5, connect/2, works/2, apart/2, kill/1, signal/2]).
-export([kinds/1, listed/2, has_ipv6/0]).
-export([said/2, said/3, logged/2, until/1, until/2]).

-type remote() :: #{
    peer := pid(),
    node := node(),
    %% What it logs, and where in it what concerns the case begins.
    log := {file:filename(), non_neg_integer()},
    os_pid := string()
}.
-export_type([remote/0]).

-define(CALL_MS, 20000).

%% From now on all nodes have TLS: those on the carrier with `tls' on, others on OTP's own
%% distribution over it; peers made by hand have none. Or all nodes are on IPv6, and on nothing
%% else.
over(tls, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "certificates"),
    {ok, Host} = inet:gethostname(),
    Hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "::1", Host],
    Identity = atoll_certificates:identity(#{hosts => Hosts}),
    ok = atoll_certificates:files(Dir, Identity, [Identity]),
    [{tls, atoll_certificates:arguments(Dir)} | Config];
over(ipv6, Config) ->
    case has_ipv6() of
        true -> [{family, inet6} | Config];
        false -> {skip, "no IPv6 on loopback"}
    end.

%% What a node has with that, which would have these arguments.
args(Config, Plain) ->
    Args =
        case proplists:get_value(tls, Config, none) of
            none -> Plain;
            Tls -> secured(Plain) ++ Tls
        end,
    case loopback(Config) of
        {_, _, inet} -> Args;
        {_, _, inet6} -> on_ipv6(Args)
    end.

%% The address of all nodes, as it stands in their names, and its family.
loopback(Config) ->
    case proplists:get_value(family, Config, inet) of
        inet -> {{127, 0, 0, 1}, "127.0.0.1", inet};
        inet6 -> {{0, 0, 0, 0, 0, 0, 0, 1}, "::1", inet6}
    end.

%% The name of a node there.
name(Config, Name) ->
    {_, Host, _} = loopback(Config),
    Name ++ "@" ++ Host.

on_ipv6(Args) ->
    case lists:splitwith(fun(Arg) -> Arg =/= "-proto_dist" end, Args) of
        {Before, [Flag, "inet_tls" | After]} -> Before ++ [Flag, "inet6_tls" | After];
        {Before, [Flag, Carrier | After]} -> Before ++ [Flag, Carrier ++ "6" | After];
        {_, []} -> ["-proto_dist", "inet6_tcp" | Args]
    end.

secured(Args) ->
    case lists:dropwhile(fun(Arg) -> Arg =/= "-proto_dist" end, Args) of
        [_, "atoll" ++ _ | _] -> on(Args, []);
        _ -> ["-proto_dist", "inet_tls" | Args]
    end.

on(["-kernel", "atoll_dist", "[" ++ Options | Args], Before) ->
    More = case Options of "]" -> ""; _ -> "," end,
    lists:reverse(Before) ++ ["-kernel", "atoll_dist", "[{tls,on}" ++ More ++ Options | Args];
on([Arg | Args], Before) ->
    on(Args, [Arg | Before]);
on([], Before) ->
    lists:reverse(Before) ++ kernel(atoll_dist, [{tls, on}]).

%% What a suite, and each of its cases, begins and ends with.
begin_suite(Config) ->
    Keeper = keeper(),
    Epmd = epmd(Keeper),
    [{epmd, Epmd}, {suite_keeper, Keeper}, {spares, {Epmd, atoll_dist_spares:start()}} | Config].

end_suite(Config) ->
    {_, Spares} = proplists:get_value(spares, Config),
    _ = [stop_node(Booted) || Booted <- atoll_dist_spares:stop(Spares)],
    stop(proplists:get_value(suite_keeper, Config)).

begin_case(Config) ->
    [{keeper, keeper()} | Config].

end_case(Config) ->
    stop(proplists:get_value(keeper, Config)).

%% What takes things down again.
keeper() ->
    spawn(fun() -> keep([]) end).

stop(Keeper) ->
    Ref = monitor(process, Keeper),
    Keeper ! stop,
    receive
        {'DOWN', Ref, process, Keeper, normal} -> ok;
        {'DOWN', Ref, process, Keeper, Reason} -> error(Reason)
    end.

%% Runs in the keeper, so that what is linked to its starter lives as long as that.
start(Keeper, Start) ->
    Ref = monitor(process, Keeper),
    Keeper ! {start, self(), Ref, Start},
    receive
        {Ref, {ok, Started}} ->
            demonitor(Ref, [flush]),
            Started;
        {Ref, {failed, Reason}} ->
            demonitor(Ref, [flush]),
            error(Reason);
        {'DOWN', Ref, process, Keeper, Reason} ->
            error(Reason)
    end.

keep(Stops) ->
    receive
        {start, From, Ref, Start} ->
            try Start() of
                {Started, Stop} ->
                    From ! {Ref, {ok, Started}},
                    keep([Stop | Stops])
            catch
                _:Reason ->
                    From ! {Ref, {failed, Reason}},
                    keep(Stops)
            end;
        stop ->
            lists:foreach(fun(Stop) -> Stop() end, Stops)
    end.

%% A port mapper on loopback; gives what nodes need in their environment to use it. It
%% ends when its standard input does, so with this VM at the latest.
epmd(Keeper) ->
    Number = atoll_test_port:free({0, 0, 0, 0}),
    %% Where there is IPv6, on its loopback too.
    Addresses = case has_ipv6() of true -> "127.0.0.1,::1"; false -> "127.0.0.1" end,
    Script = "\"$0\" -address " ++ Addresses ++ " -port \"$1\" & read -r _; kill $!; wait",
    Args = ["-c", Script, os:find_executable("epmd"), integer_to_list(Number)],
    ok = start(Keeper, fun() ->
        Port = open_port({spawn_executable, "/bin/sh"}, [{args, Args}, exit_status, stderr_to_stdout]),
        until(fun() ->
            case gen_tcp:connect({127, 0, 0, 1}, Number, []) of
                {ok, Socket} -> ok =:= gen_tcp:close(Socket);
                {error, econnrefused} -> false
            end
        end),
        {ok, fun() -> stop_epmd(Port) end}
    end),
    [{"ERL_EPMD_PORT", integer_to_list(Number)}].

%% Whether this machine has IPv6 on its loopback.
has_ipv6() ->
    case gen_tcp:listen(0, [inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}]) of
        {ok, Socket} -> ok =:= gen_tcp:close(Socket);
        {error, _} -> false
    end.

stop_epmd(Port) ->
    true = port_command(Port, "\n"),
    receive
        {Port, {exit_status, _}} -> ok
    end.

%% The arguments that select the carrier, with such a configuration.
carrier() ->
    carrier([]).

carrier(Options) ->
    ["-proto_dist", "atoll"] ++ kernel(atoll_dist, Options).

%% The arguments that set a key of the application kernel.
kernel(Key, Value) ->
    ["-kernel", atom_to_list(Key), text(Value)].

text(Term) ->
    lists:flatten(io_lib:format("~0tp", [Term])).

%% A node `Name...' on the loopback with these arguments. Options: `host', `short' for a short
%% name, `whole_name' for a name as it stands, `cookie', `nameless', `booted' for one that
%% is started with its distribution in each tier.
-spec node(list(), string(), [string()]) -> remote().
node(Config, Name, Args) ->
    node(Config, Name, Args, #{}).

node(Config, Name, PlainArgs, Options) ->
    Args = args(Config, PlainArgs),
    Unique = Name ++ integer_to_list(erlang:unique_integer([positive])),
    Named =
        case Options of
            #{nameless := true} -> nameless;
            #{whole_name := Whole} -> {Whole, longnames};
            #{short := true} -> {Unique, shortnames};
            #{host := Host} -> {Unique ++ "@" ++ Host, longnames};
            _ -> {name(Config, Unique), longnames}
        end,
    start(proplists:get_value(keeper, Config), fun() ->
        case spares(Config, Args, Options) of
            none -> boot(Config, Unique, Named, Args, Options);
            {Spares, Plain, Env} -> spare(Spares, Config, Unique, Named, Plain, Env, Options)
        end
    end).

boot(Config, Unique, Named, Args, Options) ->
    Booted = boot(Config, Unique, Named, cookie(Options) ++ Args),
    {Booted, fun() -> stop_node(Booted) end}.

boot(Config, Unique, Named, Args) ->
    Log = filename:join(proplists:get_value(priv_dir, Config), Unique ++ ".log"),
    Default = #{
        connection => standard_io,
        wait_boot => ?CALL_MS,
        env => proplists:get_value(epmd, Config),
        args =>
            ["-start_epmd", "false", "-kernel", "logger", logger(Log)] ++
            ["-kernel", "prevent_overlapping_partitions", "false"] ++
            ["+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "-pa" | code_path()] ++ Args
    },
    Started =
        case Named of
            nameless -> peer:start(Default);
            {Whole, Kind} -> peer:start(Default#{name => Whole, longnames => Kind =:= longnames})
        end,
    {Peer, Node} =
        case Started of
            {ok, Pid} -> {Pid, nonode@nohost};
            {ok, Pid, Is} -> {Pid, Is}
        end,
    #{peer => Peer, node => Node, log => {Log, 0}, os_pid => peer:call(Peer, os, getpid, [], ?CALL_MS)}.

%% Where such a node may come from and go to: with arguments that many have, and besides
%% them settings of kernel's.
spares(Config, Args, Options) ->
    {Env, Plain} = settings(Args, [], []),
    {Epmd, Spares} = proplists:get_value(spares, Config, {none, none}),
    Usual = lists:member(Plain, [[], ["-proto_dist", "atoll"], ["-proto_dist", "atoll", "-connect_all", "false"]]),
    IsPlain = atoll_tier:tier() =:= fast andalso not maps:is_key(booted, Options) andalso not is_odd(Options),
    case Usual andalso IsPlain andalso Epmd =:= proplists:get_value(epmd, Config) of
        true -> {Spares, Plain, Env};
        false -> none
    end.

is_odd(#{cookie := none}) -> true;
is_odd(#{cookie := _, nameless := true}) -> true;
is_odd(_) -> false.

settings(["-kernel", Key, Value | Args], Env, Plain) ->
    {ok, Tokens, _} = erl_scan:string(Value ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    settings(Args, [{list_to_atom(Key), Term} | Env], Plain);
settings([Arg | Args], Env, Plain) ->
    settings(Args, Env, [Arg | Plain]);
settings([], Env, Plain) ->
    {lists:reverse(Env), lists:reverse(Plain)}.

spare(Spares, Config, Unique, Named, Plain, Env, Options) ->
    #{log := {Log, _}} = Booted =
        case atoll_dist_spares:take(Spares, Plain) of
            {ok, Spare} ->
                Spare;
            none ->
                New = boot(Config, Unique, nameless, cookie(#{}) ++ Plain),
                ok = call(New, atoll_dist_spares, booted, []),
                New
        end,
    Stop = fun() -> give_back(Spares, Plain, Booted) end,
    try
        ok = call(Booted, logger_std_h, filesync, [default]),
        Remote = Booted#{log := {Log, filelib:file_size(Log)}},
        case named(Booted, Named, Env, Options) of
            {ok, Node} -> {Remote#{node := Node}, Stop};
            {error, Reason} -> error(Reason)
        end
    catch
        Class:Why:Stack ->
            ok = Stop(),
            erlang:raise(Class, Why, Stack)
    end.

named(Booted, nameless, Env, _Options) ->
    _ = [ok = call(Booted, application, set_env, [kernel, Key, Value]) || {Key, Value} <- Env],
    {ok, nonode@nohost};
named(Booted, {Name, Kind}, Env, Options) ->
    Cookie =
        case Options of
            #{cookie := Asked} -> list_to_atom(Asked);
            _ -> none
        end,
    call(Booted, atoll_dist_spares, named, [list_to_atom(Name), Kind, Cookie, Env]).

%% One that was killed cannot be, nor one that something is left on.
give_back(Spares, Plain, #{os_pid := OsPid} = Booted) ->
    _ = os:cmd("kill -CONT " ++ OsPid),
    IsAsBefore = try call(Booted, atoll_dist_spares, cleared, []) catch _:_ -> false end,
    case IsAsBefore of
        true -> atoll_dist_spares:give(Spares, Plain, Booted);
        false -> stop_node(Booted)
    end.

cookie(#{cookie := none}) -> [];
cookie(#{cookie := Cookie}) -> ["-setcookie", Cookie];
cookie(_) -> ["-setcookie", "atoll_dist_nodes"].

%% A paused node does not end by itself.
stop_node(#{peer := Peer, os_pid := OsPid}) ->
    _ = os:cmd("kill -CONT " ++ OsPid),
    try peer:stop(Peer) catch exit:_ -> ok end,
    _ = os:cmd("kill -KILL " ++ OsPid),
    ok.

%% Standard output belongs to the control connection.
logger(File) ->
    text([{handler, default, logger_std_h, #{config => #{file => File}}}]).

code_path() ->
    [filename:dirname(code:which(Module)) || Module <- [atoll_dist, ?MODULE]].

call(Remote, M, F, A) ->
    call(Remote, M, F, A, ?CALL_MS).

call(#{peer := Peer}, M, F, A, Timeout) ->
    peer:call(Peer, M, F, A, Timeout).

connect(From, #{node := Node}) ->
    call(From, net_kernel, connect_node, [Node]).

%% They are connected, and each does what the other one asks for.
works(A, B) ->
    ?assertEqual(true, connect(A, B)),
    ?assertEqual(name(B), call(A, rpc, call, [name(B), erlang, node, []])),
    ?assertEqual(name(A), call(B, rpc, call, [name(A), erlang, node, []])).

%% Ends their connection. What `global' sends to a node that has just been found may come behind the end, and
%% connects again: so with 4 of 100 connections of stock that were ended at once. Twice in a row neither is connected.
apart(A, B) ->
    Apart = fun() ->
        _ = call(A, erlang, disconnect_node, [name(B)]),
        not lists:any(fun({At, Other}) -> lists:member(name(Other), call(At, erlang, nodes, [connected])) end, [{A, B}, {B, A}])
    end,
    until(fun() -> Apart() andalso Apart() end).

name(#{node := Node}) -> Node.

%% Its connections, as the carrier lists them: a moment after the nodes are up.
kinds(Remote) -> [{Node, Kind} || #{node := Node, kind := Kind} <- call(Remote, atoll_dist, links, [])].

listed(Remote, Kinds) -> until(fun() -> kinds(Remote) =:= lists:sort(Kinds) end).

kill(Remote) ->
    signal(Remote, "KILL").

signal(#{os_pid := OsPid}, Signal) ->
    "" = os:cmd("kill -" ++ Signal ++ " " ++ OsPid),
    ok.

%% How often that is said in a node's log by now; and until it is said so often.
logged(#{log := {Log, From}} = Remote, What) ->
    ok = call(Remote, logger_std_h, filesync, [default]),
    {ok, <<_:From/binary, Text/binary>>} = file:read_file(Log),
    length(binary:matches(Text, unicode:characters_to_binary(What))).

said(Remote, What) ->
    said(Remote, What, 1).

said(Remote, What, Times) ->
    until(fun() -> logged(Remote, What) >= Times end),
    Times = logged(Remote, What),
    ok.

until(Test) ->
    until(Test, ?CALL_MS).

until(Test, Ms) ->
    until_at(Test, erlang:monotonic_time(millisecond) + Ms).

%% What another program does tells nobody here.
until_at(Test, Deadline) ->
    case Test() of
        true ->
            ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse error(deadline),
            receive after 10 -> ok end,
            until_at(Test, Deadline)
    end.
