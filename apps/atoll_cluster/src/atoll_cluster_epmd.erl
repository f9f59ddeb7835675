%% SPDX-License-Identifier: Apache-2.0
%% @doc The port mapper that local nodes register with.
%%
%% One that runs is used. Otherwise one is started, on loopback, and marked in
%% the directory of all run directories as ours; the watchdog of the last
%% cluster there takes it down again, unless somebody else has registered with
%% it meanwhile. Its port is the VM's own, `ERL_EPMD_PORT' or 4369.
-module(atoll_cluster_epmd).

-export([ensure/1, check_free/1, executable/0]).

-define(START_MS, 5000).

%% @doc Makes sure that epmd runs.
-spec ensure(Base :: file:filename()) -> ok | {error, {epmd, term()}}.
ensure(Base) ->
    case names() of
        {ok, _} -> ok;
        down -> start(Base)
    end.

%% @doc Checks that no node of these is registered.
-spec check_free([node()]) -> ok | {error, {node_name_in_use, node()}}.
check_free(Nodes) ->
    case names() of
        {ok, Names} ->
            case [Node || Node <- Nodes, lists:member(short(Node), Names)] of
                [] -> ok;
                [Node | _] -> {error, {node_name_in_use, Node}}
            end;
        down ->
            ok
    end.

start(Base) ->
    case executable() of
        false ->
            {error, {epmd, not_found}};
        Epmd ->
            ok = file:write_file(filename:join(Base, "epmd"), [Epmd, $\n]),
            Port = open_port({spawn_executable, Epmd},
                [{args, ["-daemon"]}, {env, [{"ERL_EPMD_ADDRESS", "127.0.0.1"}]}, exit_status]),
            receive
                %% The parent exits once the daemon has its own process.
                {Port, {exit_status, _}} -> await(erlang:monotonic_time(millisecond) + ?START_MS)
            after ?START_MS ->
                {error, {epmd, timeout}}
            end
    end.

%% The daemon tells nobody when it listens.
await(Deadline) ->
    case {names(), Deadline - erlang:monotonic_time(millisecond)} of
        {{ok, _}, _} -> ok;
        {down, Left} when Left =< 0 -> {error, {epmd, timeout}};
        {down, _} ->
            receive after 10 -> ok end,
            await(Deadline)
    end.

names() ->
    case erl_epmd:names({127, 0, 0, 1}) of
        {ok, Names} -> {ok, [Name || {Name, _Port} <- Names]};
        {error, _} -> down
    end.

%% @doc The program, of the OTP that this VM runs where it has one.
-spec executable() -> file:filename_all() | false.
executable() ->
    Erts = "erts-" ++ erlang:system_info(version),
    Candidates = [
        filename:join([code:root_dir(), Erts, "bin", "epmd"]),
        filename:join([code:root_dir(), "bin", "epmd"])
    ],
    case lists:filter(fun filelib:is_regular/1, Candidates) of
        [Epmd | _] -> Epmd;
        [] -> os:find_executable("epmd")
    end.

short(Node) ->
    hd(string:split(atom_to_list(Node), "@")).
