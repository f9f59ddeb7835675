%% SPDX-License-Identifier: Apache-2.0
%% Programs that know nothing of the carrier, over it: what a program does with another
%% node, rpc and erpc, pg, global in a mesh, mnesia, and Elixir; on each kind of
%% connection.
-module(atoll_dist_programs_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, node/4, args/2, kernel/2, name/1, name/2, call/4, call/5, connect/2, until/1, until/2]).

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([
    processes_send_link_monitor_and_spawn/1,
    large_terms_come_whole/1,
    a_reply_is_not_overtaken_by_the_end_of_its_server/1,
    rpc_and_erpc_work/1,
    process_groups_work/1,
    global_names_and_locks_work_in_a_mesh/1,
    mnesia_replicates_and_loads_after_a_restart/1,
    an_elixir_node_works/1,
    an_elixir_release_works_in_embedded_mode/1
]).

%% An Elixir program has so long to boot.
-define(BOOT_MS, 60000).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, Kind} || {Kind, _, _} <- groups()].

groups() -> groups(atoll_tier:tier()).

%% Each program over some kind of connection, and each kind with some program.
groups(fast) ->
    Direct = [
        processes_send_link_monitor_and_spawn,
        large_terms_come_whole,
        global_names_and_locks_work_in_a_mesh,
        an_elixir_node_works
    ],
    One = [large_terms_come_whole, a_reply_is_not_overtaken_by_the_end_of_its_server],
    Both = [processes_send_link_monitor_and_spawn, large_terms_come_whole, a_reply_is_not_overtaken_by_the_end_of_its_server],
    [{direct, [], Direct}, {one_lane, [], One}, {four_lanes, [], Both ++ (cases() -- (Direct ++ One))}];
groups(deep) ->
    Kinds = [direct, one_lane, four_lanes],
    [{Kind, [], cases()} || Kind <- Kinds] ++ [{Over, [], [{group, Kind} || Kind <- Kinds]} || Over <- [tls, ipv6]].

cases() ->
    [
        processes_send_link_monitor_and_spawn,
        large_terms_come_whole,
        a_reply_is_not_overtaken_by_the_end_of_its_server,
        rpc_and_erpc_work,
        process_groups_work,
        global_names_and_locks_work_in_a_mesh,
        mnesia_replicates_and_loads_after_a_restart,
        an_elixir_node_works,
        an_elixir_release_works_in_embedded_mode
    ].

init_per_group(Over, Config) when Over =:= tls; Over =:= ipv6 ->
    atoll_dist_nodes:over(Over, Config);
init_per_group(Group, Config) ->
    Kind = case Group of
        direct -> direct;
        one_lane -> {lanes, 1};
        four_lanes -> {lanes, 4}
    end,
    [{kind, Kind} | Config].

end_per_group(_Group, _Config) -> ok.

init_per_suite(Config) ->
    [{release, release(Config)} | atoll_dist_nodes:begin_suite(Config)].

end_per_suite(Config) ->
    atoll_dist_nodes:end_suite(Config).

init_per_testcase(_Case, Config) ->
    atoll_dist_nodes:begin_case(Config).

end_per_testcase(_Case, Config) ->
    atoll_dist_nodes:end_case(Config).

pair(Config) ->
    A = node(Config, "a", carrier(Config)),
    B = node(Config, "b", carrier(Config)),
    _ = call(B, atoll_dist_probe, echo, [echo]),
    true = connect(A, B),
    {A, B}.

carrier(Config) -> atoll_dist_nodes:carrier([{kind, ?config(kind, Config)}]).

processes_send_link_monitor_and_spawn(Config) ->
    {A, B} = pair(Config),
    ?assertEqual({some, "term", 1.5}, call(A, atoll_dist_probe, ask, [name(B), echo, {some, "term", 1.5}])),
    ?assertEqual([over, over, noproc, spawned], call(A, atoll_dist_probe, ends, [name(B)])).

large_terms_come_whole(Config) ->
    {A, B} = pair(Config),
    Sizes = [1, 1000, 65536, 65537, 1000000, 8000000],
    ?assertEqual([true || _ <- Sizes], call(A, atoll_dist_probe, big, [name(B), Sizes], 60000)).

a_reply_is_not_overtaken_by_the_end_of_its_server(Config) ->
    {A, B} = pair(Config),
    [
        begin
            _ = call(B, atoll_dist_probe, echo, [ending]),
            ?assertEqual(3000000, call(A, atoll_dist_probe, asks_last, [name(B), ending])),
            until(fun() -> call(B, erlang, whereis, [ending]) =:= undefined end)
        end
     || _ <- lists:seq(1, 20)
    ].

rpc_and_erpc_work(Config) ->
    {A, B} = pair(Config),
    C = node(Config, "c", carrier(Config)),
    true = connect(A, C),
    ?assertEqual(name(B), call(A, rpc, call, [name(B), erlang, node, []])),
    ?assertEqual({[name(B), name(C)], []}, call(A, rpc, multicall, [[name(B), name(C)], erlang, node, []])),
    ?assertEqual(name(B), call(A, erpc, call, [name(B), erlang, node, []])),
    ?assertError({exception, badarith, _}, call(A, erpc, call, [name(B), erlang, '/', [1, 0]])),
    ?assertEqual([{ok, name(B)}, {ok, name(C)}], call(A, erpc, multicall, [[name(B), name(C)], erlang, node, []])),
    ok = call(A, erpc, cast, [name(B), persistent_term, put, [was, here]]),
    until(fun() -> call(B, persistent_term, get, [was, none]) =:= here end),
    ok = atoll_dist_nodes:kill(C),
    ?assertError({erpc, noconnection}, call(A, erpc, call, [name(C), erlang, node, []])),
    ?assertEqual({badrpc, nodedown}, call(A, rpc, call, [name(C), erlang, node, []])).

process_groups_work(Config) ->
    {A, B} = pair(Config),
    [{ok, _} = call(N, pg, start, [scope]) || N <- [A, B]],
    Members = fun(N) -> lists:sort(call(N, pg, get_members, [scope, group])) end,
    Pids = [
        begin
            Pid = call(N, atoll_dist_probe, echo, [member]),
            ok = call(N, pg, join, [scope, group, Pid]),
            Pid
        end
     || N <- [A, B]
    ],
    [until(fun() -> Members(N) =:= lists:sort(Pids) end) || N <- [A, B]],
    ok = atoll_dist_nodes:kill(B),
    until(fun() -> Members(A) =:= [hd(Pids)] end).

global_names_and_locks_work_in_a_mesh(Config) ->
    [A, B, C] = Nodes = [node(Config, Name, carrier(Config)) || Name <- ["a", "b", "c"]],
    true = connect(A, B),
    true = connect(B, C),
    [until(fun() -> length(call(N, erlang, nodes, [])) =:= 2 end) || N <- Nodes],
    [ok = call(N, global, sync, []) || N <- Nodes],
    ?assertEqual(yes, call(A, atoll_dist_probe, global_name, [one])),
    ?assertEqual(no, call(B, atoll_dist_probe, global_name, [one])),
    Pid = call(C, global, whereis_name, [one]),
    ?assertEqual(name(A), node(Pid)),
    ?assertEqual(true, call(A, atoll_dist_probe, hold_lock, [lock, me])),
    ?assertEqual(false, call(B, global, set_lock, [{lock, you}, [name(N) || N <- Nodes], 0])),
    ok = atoll_dist_nodes:kill(A),
    until(fun() -> call(C, global, whereis_name, [one]) =:= undefined end),
    ?assertEqual(yes, call(B, atoll_dist_probe, global_name, [one])),
    ?assertEqual(true, call(C, global, set_lock, [{lock, you}, [name(B), name(C)], 1])).

mnesia_replicates_and_loads_after_a_restart(Config) ->
    case code:which(mnesia) of
        non_existing -> {skip, "mnesia is not installed"};
        _ -> mnesia(Config)
    end.

mnesia(Config) ->
    Dir = fun(Name) -> ["-mnesia", "dir", lists:flatten(io_lib:format("~0tp", [filename:join(?config(priv_dir, Config), Name)]))] end,
    Unique = integer_to_list(erlang:unique_integer([positive])),
    NameB = name(Config, "mb" ++ Unique),
    StartB = fun() -> node(Config, "mb", carrier(Config) ++ Dir("mnesia_b" ++ Unique), #{whole_name => NameB}) end,
    A = node(Config, "ma", carrier(Config) ++ Dir("mnesia_a" ++ Unique)),
    B = StartB(),
    true = connect(A, B),
    Both = [name(A), name(B)],
    ok = call(A, mnesia, create_schema, [Both]),
    [ok = call(N, mnesia, start, []) || N <- [A, B]],
    {atomic, ok} = call(A, mnesia, create_table, [table, [{disc_copies, Both}]]),
    Write = fun(N, From, To) -> [ok = call(N, mnesia, dirty_write, [{table, I, binary:copy(<<I:32>>, 250)}]) || I <- lists:seq(From, To)] end,
    _ = Write(A, 1, 500),
    %% A dirty write waits for one node only.
    Has = fun(N, Size) -> until(fun() -> call(N, mnesia, table_info, [table, size]) =:= Size end) end,
    Has(B, 500),
    ?assertEqual({atomic, ok}, call(B, mnesia, sync_transaction, [fun mnesia:write/1, [{table, 501, by_b}]])),
    ?assertEqual([{table, 501, by_b}], call(A, mnesia, dirty_read, [table, 501])),
    ok = atoll_dist_nodes:kill(B),
    until(fun() -> call(A, mnesia, system_info, [running_db_nodes]) =:= [name(A)] end),
    _ = Write(A, 502, 2000),
    Again = StartB(),
    ok = call(Again, mnesia, start, []),
    ?assertEqual(ok, call(Again, mnesia, wait_for_tables, [[table], 30000], 40000)),
    ?assertEqual(2000, call(Again, mnesia, table_info, [table, size])),
    ?assertEqual(lists:sort(Both), lists:sort(call(A, mnesia, system_info, [running_db_nodes]))),
    _ = Write(Again, 2001, 2100),
    Has(A, 2100).

an_elixir_node_works(Config) ->
    case os:find_executable("elixir") of
        false -> {skip, "Elixir is not installed"};
        Elixir -> elixir(Elixir, Config)
    end.

%% All modules are loaded before kernel starts the carrier, and none later; their on_load
%% functions run after kernel has waited for the nodes to synchronize with.
an_elixir_release_works_in_embedded_mode(Config) ->
    case ?config(release, Config) of
        none -> {skip, "Elixir is not installed"};
        Program -> elixir_release(Program, Config)
    end.

elixir_release(Program, Config) ->
    A = node(Config, "a", carrier(Config), #{cookie => "elixir"}),
    _ = call(A, atoll_dist_probe, echo, [echo]),
    Name = name(Config, "rel" ++ integer_to_list(erlang:unique_integer([positive]))),
    Node = list_to_atom(Name),
    Synchronized = kernel(sync_nodes_mandatory, [name(A)]) ++ kernel(sync_nodes_timeout, 60000),
    Options = string:join(["-start_epmd", "false" | args(Config, carrier(Config) ++ Synchronized)], " "),
    Env = [
        {"RELEASE_DISTRIBUTION", "name"}, {"RELEASE_NODE", Name}, {"RELEASE_COOKIE", "elixir"}, {"ELIXIR_ERL_OPTIONS", Options}
    ],
    Port = open_port({spawn_executable, Program}, [
        {args, ["start"]}, {env, Env ++ ?config(epmd, Config)}, exit_status, stderr_to_stdout, {line, 1000}
    ]),
    reached(A, Node, Port),
    until(fun() -> [{N, K} || #{node := N, kind := K} <- call(A, atoll_dist, links, [])] =:= [{Node, ?config(kind, Config)}] end),
    ?assertEqual(embedded, call(A, rpc, call, [Node, code, get_mode, []])),
    %% The node is reached before its application has started.
    until(fun() -> is_pid(call(A, rpc, call, [Node, erlang, whereis, ['Elixir.Ponger']])) end),
    ?assertEqual({pong, 17}, call(A, gen_server, call, [{'Elixir.Ponger', Node}, {ping, 17}])),
    ?assertEqual({back, here}, call(A, gen_server, call, [{'Elixir.Ponger', Node}, {ask, name(A), {back, here}}])),
    ok = call(A, rpc, call, [Node, init, stop, []]),
    ?assertEqual([{exit_status, 0}], lines(Port)).

%% The time for the connection begins when the release listens: how long a machine takes to boot
%% it promises nothing. What it has said by then is told with a failure.
reached(A, Node, Port) ->
    [Short, _] = string:split(atom_to_list(Node), "@"),
    try
        until(fun() -> {ok, Names} = call(A, erl_epmd, names, ["127.0.0.1"]), lists:keymember(Short, 1, Names) end, ?BOOT_MS),
        until(fun() -> call(A, net_kernel, connect_node, [Node]) end)
    catch
        error:deadline -> error({deadline, [Said || {P, Said} <- element(2, process_info(self(), messages)), P =:= Port]})
    end.

%% All that it still says, until it has ended.
lines(Port) ->
    case line(Port) of
        [_ | _] = Line -> [Line | lines(Port)];
        Last -> [Last]
    end.

%% A release as mix makes it, with ssl for where the carrier wants TLS. Nothing is fetched: the
%% library lies where mix has its own builds.
release(Config) ->
    case os:find_executable("mix") of
        false -> none;
        Mix -> release(Mix, Config)
    end.

release(Mix, Config) ->
    Dir = filename:join(?config(priv_dir, Config), "ponger"),
    Ebin = filename:dirname(code:which(atoll_dist)),
    Built = filename:join([Dir, "_build", "prod", "lib", "atoll", "ebin"]),
    Files = [{filename:join(Built, filename:basename(File)), element(2, file:read_file(File))} || File <- filelib:wildcard(Ebin ++ "/*.{beam,app}")],
    lists:foreach(
        fun({File, Text}) ->
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, Text)
        end,
        Files ++ [{filename:join(Dir, File), Text} || {File, Text} <- project(filename:dirname(Built))]
    ),
    Port = open_port({spawn_executable, Mix}, [
        {args, ["release", "--quiet"]}, {cd, Dir}, {env, [{"MIX_ENV", "prod"}]}, exit_status, stderr_to_stdout
    ]),
    {0, _} = said(Port, []),
    filename:join(Dir, "_build/prod/rel/ponger/bin/ponger").

said(Port, Said) ->
    receive
        {Port, {data, Data}} -> said(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, lists:flatten(Said)}
    end.

project(Atoll) ->
    [
        {"mix.exs", [
            "defmodule Ponger.MixProject do\n"
            "  use Mix.Project\n"
            "  def project do\n"
            "    [app: :ponger, version: \"1.0.0\",\n"
            "     deps: [{:atoll, path: \"", Atoll, "\", compile: false, runtime: false}],\n"
            "     releases: [ponger: [include_executables_for: [:unix], applications: [atoll: :load, ssl: :load]]]]\n"
            "  end\n"
            "  def application, do: [mod: {Ponger.Application, []}]\n"
            "end\n"
        ]},
        {"rel/vm.args.eex", "+S 1:1\n"},
        {"lib/ponger.ex",
            "defmodule Ponger do\n"
            "  use GenServer\n"
            "  def start_link(_), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)\n"
            "  def init(s), do: {:ok, s}\n"
            "  def handle_call({:ping, n}, _from, s), do: {:reply, {:pong, n}, s}\n"
            "  def handle_call({:ask, node, x}, _from, s), do: {:reply, GenServer.call({:echo, node}, x), s}\n"
            "end\n"
            "defmodule Ponger.Application do\n"
            "  use Application\n"
            "  def start(_, _), do: Supervisor.start_link([Ponger], strategy: :one_for_one)\n"
            "end\n"
        }
    ].

%% The Elixir node calls a server here and serves itself, until it is told to stop.
elixir(Elixir, Config) ->
    A = node(Config, "a", carrier(Config), #{cookie => "elixir"}),
    _ = call(A, atoll_dist_probe, echo, [echo]),
    Script = filename:join(?config(priv_dir, Config), "carrier.exs"),
    ok = file:write_file(Script, elixir_script(name(A))),
    Name = name(Config, "ex" ++ integer_to_list(erlang:unique_integer([positive]))),
    Path = filename:dirname(code:which(atoll_dist)),
    Erl = string:join(args(Config, ["-proto_dist", "atoll"]) ++ ["-start_epmd", "false", "-pa", Path], " "),
    Args = ["--name", Name, "--cookie", "elixir", "--erl", Erl, Script],
    Port = open_port({spawn_executable, Elixir}, [
        {args, Args}, {env, ?config(epmd, Config)}, exit_status, stderr_to_stdout, {line, 1000}
    ]),
    ?assertEqual("echoed {:from, :elixir}", line(Port)),
    ?assertEqual("ready", line(Port)),
    Node = list_to_atom(Name),
    until(fun() -> [{N, Kind} || #{node := N, kind := Kind} <- call(A, atoll_dist, links, [])] =:= [{Node, ?config(kind, Config)}] end),
    ?assertEqual({pong, 17}, call(A, gen_server, call, [{'Elixir.Ponger', Node}, {ping, 17}])),
    ?assertEqual(ok, call(A, gen_server, call, [{'Elixir.Ponger', Node}, stop])),
    ?assertEqual("stopped", line(Port)),
    ?assertEqual({exit_status, 0}, receive {Port, Last} -> Last after 20000 -> none end).

line(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> Line;
        {Port, Other} -> Other
    after ?BOOT_MS -> timeout
    end.

elixir_script(Node) ->
    [
        "defmodule Ponger do\n"
        "  use GenServer\n"
        "  def init(parent), do: {:ok, parent}\n"
        "  def handle_call({:ping, n}, _from, s), do: {:reply, {:pong, n}, s}\n"
        "  def handle_call(:stop, _from, parent) do\n"
        "    send(parent, :stop)\n"
        "    {:reply, :ok, parent}\n"
        "  end\n"
        "end\n"
        "node = :\"", atom_to_list(Node), "\"\n"
        "true = Node.connect(node)\n"
        "IO.puts(\"echoed \" <> inspect(GenServer.call({:echo, node}, {:from, :elixir})))\n"
        "{:ok, _} = GenServer.start_link(Ponger, self(), name: Ponger)\n"
        "IO.puts(\"ready\")\n"
        "receive do\n"
        "  :stop -> IO.puts(\"stopped\")\n"
        "end\n"
    ].
