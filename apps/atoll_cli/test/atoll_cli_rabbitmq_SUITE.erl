%% SPDX-License-Identifier: Apache-2.0
%% docs/howto-rabbitmq.md, with three nodes of Debian's RabbitMQ: over lanes, with TLS, and with
%% a gateway between two of them; and what a broker promises its publishers when a node is
%% killed, is cut off for a minute, or is far away. Each node is on a host of its own ({@link
%% atoll_cli_network}). It is skipped where RabbitMQ is not installed.
-module(atoll_cli_rabbitmq_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_cli_amqp, [declared/3, is_known/2, publisher/4, more/2, finished/1, taken/3]).

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([
    the_page_makes_a_cluster/1,
    no_confirmed_message_is_lost_when_a_node_is_killed/1,
    no_confirmed_message_is_lost_when_a_node_is_cut_off_for_a_minute/1,
    a_path_of_20_ms_loses_nothing_and_takes_less_time_over_lanes/1
]).

-define(BIN, "/usr/lib/rabbitmq/bin").
-define(PLUGINS, "/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins/*/ebin").
-define(PAGE, "docs/howto-rabbitmq.md").
-define(NODES, [1, 2, 3]).
-define(AMQP, 5672).
-define(DIST, 25672).
-define(MS, 180000).
-define(CUT_MS, 60000).
%% So many are on their way at a time.
-define(WINDOW, 100).
-define(ROUNDS, 4).

%% A broker, and what it is told by its environment.
-type broker() :: #{
    name := string(),
    folder := file:filename(),
    env := [{string(), string()}],
    %% What runs a shell's command on its host, where sockets to it are opened, and at which port.
    within := fun((string()) -> [string(), ...]),
    netns := file:filename(),
    amqp := inet:port_number()
}.

suite() -> [{timetrap, {minutes, 15}}].

all() -> [{group, Group} || {Group, _, _} <- groups()].

%% Each starts three brokers at least, which takes a minute.
groups() -> groups(atoll_tier:tier()).

groups(fast) ->
    [];
groups(deep) ->
    Page = [the_page_makes_a_cluster, no_confirmed_message_is_lost_when_a_node_is_killed],
    [
        {lanes, [], Page ++ [no_confirmed_message_is_lost_when_a_node_is_cut_off_for_a_minute]},
        {tls, [], Page},
        {gateway, [], Page},
        {far, [], [a_path_of_20_ms_loses_nothing_and_takes_less_time_over_lanes]}
    ].

init_per_suite(Config) ->
    Installed = {filelib:is_regular(?BIN ++ "/rabbitmq-server"), filelib:wildcard(?PLUGINS)},
    case {Installed, atoll_cli_network:can()} of
        {{true, [_ | _] = Plugins}, ok} ->
            ok = code:add_pathsz(Plugins),
            {ok, _} = application:ensure_all_started(amqp_client),
            Config;
        {{true, _}, {skip, _} = Skip} ->
            Skip;
        _ ->
            {skip, "RabbitMQ is not installed (rabbitmq-server of Debian)"}
    end.

end_per_suite(_Config) ->
    application:stop(amqp_client).

%% Of the first and the third node of `gateway' neither can send the other a packet.
init_per_group(far, Config) ->
    Config;
init_per_group(Group, Config) ->
    Network = atoll_cli_network:start(case Group of gateway -> [[1, 2], [2, 3]]; _ -> [[1, 2, 3]] end),
    Home = home(Group, Config),
    #{Group := Env, cut := Conf} = files(Home),
    Brokers = maps:from_list([{N, broker(N, Network, Home, Env, Conf)} || N <- ?NODES]),
    _ = [started(Broker) || Broker <- maps:values(Brokers)],
    [{group, Group}, {network, Network}, {brokers, Brokers} | Config].

end_per_group(far, _Config) ->
    ok;
end_per_group(_Group, Config) ->
    atoll_cli_network:stop(?config(network, Config)).

broker(N, Network, Home, Env, Conf) ->
    Name = "rabbit@" ++ atoll_cli_network:address(N),
    Within = fun(Line) -> atoll_cli_network:shell(Network, N, Line) end,
    broker(Name, #{home => Home, env => Env, conf => Conf, within => Within, netns => atoll_cli_network:netns(Network, N), amqp => ?AMQP, dist => ?DIST}).

%% From a folder of its own, with what the page has in its two files.
-spec broker(string(), map()) -> broker().
broker(Name, #{home := Home, env := Env, conf := Conf, within := Within, netns := Netns, amqp := Amqp, dist := Dist}) ->
    Folder = filename:join(Home, Name),
    ok = filelib:ensure_path(Folder),
    ok = file:write_file(Folder ++ "/env.conf", replaced("^NODENAME=.*$", "NODENAME=" ++ Name, Env)),
    ok = file:write_file(Folder ++ "/rabbitmq.conf", ["listeners.tcp.default = ", integer_to_list(Amqp), "\n", Conf]),
    ok = file:write_file(Folder ++ "/plugins", "[]."),
    #{
        name => Name, folder => Folder, within => Within, netns => Netns, amqp => Amqp,
        env => [
            {"HOME", Home}, {"CONF_ENV_FILE", Folder ++ "/env.conf"}, {"RABBITMQ_CONF_ENV_FILE", Folder ++ "/env.conf"},
            {"RABBITMQ_NODENAME", Name}, {"RABBITMQ_CONFIG_FILE", Folder ++ "/rabbitmq"},
            {"RABBITMQ_MNESIA_BASE", Folder ++ "/mnesia"}, {"RABBITMQ_LOG_BASE", Folder},
            {"RABBITMQ_ENABLED_PLUGINS_FILE", Folder ++ "/plugins"}, {"RABBITMQ_PID_FILE", Folder ++ "/pid"},
            {"RABBITMQ_DIST_PORT", integer_to_list(Dist)}, {"PATH", ?BIN ++ ":" ++ os:getenv("PATH")}
        ]
    }.

%% The folder of a cluster, with its cookie.
home(Name, Config) ->
    Home = filename:join([?config(priv_dir, Config), "rabbitmq", Name]),
    ok = filelib:ensure_path(Home),
    Cookie = filename:join(Home, ".erlang.cookie"),
    ok = file:write_file(Cookie, "rabbitmq_over_atoll"),
    ok = file:change_mode(Cookie, 8#400),
    Home.

%% The page

steps() -> atoll_cli_page:steps(atoll_cli_page:read(?PAGE)).

joins() ->
    [{commands, Join}, {commands, [Look]}] = [Step || {commands, _} = Step <- steps()],
    {Join, Look}.

%% As a reader writes them: those of the three kinds of clusters, and of how a cut is handled.
files(Home) ->
    Certificates = filename:join(Home, "certificates"),
    Identity = atoll_certificates:identity(#{hosts => [atoll_cli_network:address(N) || N <- ?NODES]}),
    ok = atoll_certificates:files(Certificates, Identity, [Identity]),
    Files = [{filename:basename(Path), with(Text, Certificates)} || {file, Path, Text} <- steps()],
    [
        {"rabbitmq-env.conf", Lanes}, {"rabbitmq-env.conf", Tls}, {"rabbitmq-env.conf", Gateway}, {"rabbitmq.conf", Cut}
    ] = Files,
    #{lanes => Lanes, tls => Tls, gateway => Gateway, cut => Cut}.

with(Text, Certificates) ->
    lists:foldl(fun({Of, By}, T) -> replaced(Of, By, T) end, here(Text), [
        {"/opt/atoll/ebin", filename:dirname(code:which(atoll_dist))}, {"/etc/rabbitmq/ssl_dist.conf", Certificates ++ "/ssl_dist.conf"}
    ]).

here(Text) -> lists:foldl(fun(N, T) -> replaced("@host" ++ integer_to_list(N), "@" ++ atoll_cli_network:address(N), T) end, Text, ?NODES).

replaced(Of, By, Text) -> re:replace(Text, Of, By, [global, multiline, {return, list}]).

the_page_makes_a_cluster(Config) ->
    #{1 := First} = Brokers = ?config(brokers, Config),
    {Join, Look} = joins(),
    _ = [{0, _} = ran(here(Command), Broker) || {N, Broker} <- lists:sort(maps:to_list(Brokers)), N > 1, Command <- Join],
    {0, Links} = ran(Look, First),
    Kinds =
        case ?config(group, Config) of
            gateway -> [{2, "{lanes,4}"}, {3, "relay"}];
            _ -> [{2, "{lanes,4}"}, {3, "{lanes,4}"}]
        end,
    [?assertNotEqual(nomatch, string:find(Links, ["{'", maps:get(name, maps:get(N, Brokers)), "',", Kind, "}"])) || {N, Kind} <- Kinds],
    %% Of these two the one can have no way but over the second.
    {Status, _} = ran("ip route get " ++ atoll_cli_network:address(3), First),
    ?assertEqual(?config(group, Config) =:= gateway, Status =/= 0).

%% Faults

%% The third node, which leads the quorum queue; with a gateway it is the one behind that.
no_confirmed_message_is_lost_when_a_node_is_killed(Config) ->
    #{1 := First, 2 := Second, 3 := Third} = ?config(brokers, Config),
    lists:foreach(
        fun({Bytes, Count}) ->
            Queues = [
                {<<"killed_", Type/binary, (integer_to_binary(Bytes))/binary>>, Type, Leader}
             || {Type, Leader} <- [{<<"classic">>, Second}, {<<"quorum">>, Third}]
            ],
            [ok = declared(Queue, Type, Leader) || {Queue, Type, Leader} <- Queues],
            Publishers = [
                {Queue, publisher(Queue, Bytes, #{count => Count, window => ?WINDOW}, First)}
             || {Queue, _, _} <- Queues
            ],
            [ok = more(Publisher, Count div 3) || {_, Publisher} <- Publishers],
            ok = killed(Third),
            All = lists:seq(1, Count),
            [
                ?assertMatch({Queue, #{confirmed := All, refused := [], returned := []}}, {Queue, finished(Publisher)})
             || {Queue, Publisher} <- Publishers
            ],
            ok = started(Third),
            [?assertEqual({Queue, All}, {Queue, taken(Queue, All, First)}) || {Queue, _} <- Publishers]
        end,
        [{1024, 6000}, {1048576, 60}]
    ).

%% The same node is cut off, and stops by itself, as the page has it. What comes for a classic
%% queue that is there meanwhile is refused or given back, and not confirmed.
no_confirmed_message_is_lost_when_a_node_is_cut_off_for_a_minute(Config) ->
    #{1 := First, 2 := Second, 3 := Third} = ?config(brokers, Config),
    Network = ?config(network, Config),
    Queues = [{<<"cut_quorum">>, <<"quorum">>, Third}, {<<"cut_classic">>, <<"classic">>, Second}, {<<"cut_there">>, <<"classic">>, Third}],
    [ok = declared(Queue, Type, Leader) || {Queue, Type, Leader} <- Queues],
    Publishers = [{Queue, publisher(Queue, 1024, #{count => infinity, window => ?WINDOW, every_ms => 5}, First)} || {Queue, _, _} <- Queues],
    [ok = more(Publisher, 500) || {_, Publisher} <- Publishers],
    Begin = erlang:monotonic_time(millisecond),
    ok = atoll_cli_network:unplug(Network, 3),
    ok = atoll_cli_os:await(fun() -> running(First) =:= 2 end, ?CUT_MS),
    ct:pal("seen after ~b ms", [erlang:monotonic_time(millisecond) - Begin]),
    receive after max(0, ?CUT_MS - (erlang:monotonic_time(millisecond) - Begin)) -> ok end,
    ok = atoll_cli_network:plug(Network, 3),
    ok = atoll_cli_os:await(fun() -> running(First) =:= 3 end, ?MS),
    [ok = more(Publisher, 500) || {_, Publisher} <- Publishers],
    [
        begin
            #{sent := Sent, confirmed := Confirmed, refused := Refused, returned := Returned} = finished(Publisher),
            Taken = taken(Queue, Confirmed, First),
            ct:pal("~ts: ~b sent, ~b confirmed, ~b refused, ~b returned, ~b taken", [
                Queue, Sent, length(Confirmed), length(Refused), length(Returned), length(Taken)
            ]),
            ?assertEqual({Queue, lists:sort(Taken)}, {Queue, Taken}),
            case Queue of
                <<"cut_there">> ->
                    ?assertNotEqual([], Refused ++ Returned),
                    ?assertEqual([], Taken -- (Confirmed ++ Refused));
                _ ->
                    ?assertEqual({Queue, lists:seq(1, Sent)}, {Queue, Confirmed}),
                    ?assertEqual({Queue, Confirmed}, {Queue, Taken})
            end
        end
     || {Queue, Publisher} <- Publishers
    ].

running(Broker) ->
    {0, Said} = ran("rabbitmqctl eval 'length(rabbit_mnesia:cluster_nodes(running)).'", Broker),
    list_to_integer(string:trim(Said)).

%% A cluster over stock and one over 16 lanes, by turns. Two nodes of each are at one end of the
%% path, the third one at the other: it leads the quorum queue, and the first one the classic one.
a_path_of_20_ms_loses_nothing_and_takes_less_time_over_lanes(Config) ->
    case atoll_wire:start(#{rtt_ms => 20}) of
        {ok, Wire} ->
            try
                far(atoll_wire:ends(Wire), Config)
            after
                ok = atoll_wire:stop(Wire)
            end;
        {error, Error} ->
            {skip, lists:flatten(io_lib:format("~ts", [atoll_wire:format_error(Error)]))}
    end.

far(Ends, Config) ->
    Env = replaced("lanes,4", "lanes,16", maps:get(lanes, files(home(far, Config)))),
    Systems = [{stock, "USE_LONGNAME=true\n", 0}, {lanes16, Env, 10}],
    Clusters = [{System, far_cluster(System, Ends, Text, Plus, Config)} || {System, Text, Plus} <- Systems],
    try
        Cells = [{Type, Bytes} || Type <- [<<"quorum">>, <<"classic">>], Bytes <- [1024, 1048576]],
        Rates = [
            {Cell, [{System, far_cell(Cell, Round, Brokers)} || {System, Brokers} <- Clusters]}
         || Cell <- Cells, Round <- lists:seq(1, ?ROUNDS)
        ],
        ct:pal("messages a second: ~p", [Rates]),
        Large = [Lanes / Stock || {{<<"classic">>, 1048576}, [{stock, Stock}, {lanes16, Lanes}]} <- Rates],
        ?assert(lists:nth((?ROUNDS + 1) div 2, lists:sort(Large)) > 1)
    after
        [ok = killed(Broker) || {_, Brokers} <- Clusters, Broker <- maps:values(Brokers)]
    end.

far_cluster(System, [Here, There], Env, Plus, Config) ->
    Home = home(System, Config),
    Brokers = maps:from_list([
        {N, broker(lists:concat(["rabbit", N + Plus, "@", inet:ntoa(Address)]), #{
            home => Home, env => Env, conf => "", within => fun(Line) -> Wrap ++ ["sh", "-c", Line] end,
            netns => string:prefix(lists:last(Wrap), "--net="), amqp => ?AMQP + N + Plus, dist => ?DIST + N + Plus
        })}
     || {N, #{address := Address, wrap := Wrap}} <- [{1, Here}, {2, Here}, {3, There}]
    ]),
    _ = [started(Broker) || Broker <- maps:values(Brokers)],
    #{1 := #{name := First}, 2 := Second, 3 := Third} = Brokers,
    {Join, _} = joins(),
    _ = [{0, _} = ran(replaced("rabbit@host1", First, Command), Broker) || Broker <- [Second, Third], Command <- Join],
    Brokers.

%% Messages a second until all are confirmed. All of them are there, in their order.
far_cell({Type, Bytes}, Round, #{1 := First, 3 := Third}) ->
    Queue = <<"far_", Type/binary, (integer_to_binary(Bytes))/binary, "_", (integer_to_binary(Round))/binary>>,
    ok = declared(Queue, Type, case Type of <<"quorum">> -> Third; <<"classic">> -> First end),
    %% That there is such a queue takes its time over the path, too.
    ok = atoll_cli_os:await(fun() -> is_known(Queue, Third) end, ?MS),
    Count = case Bytes of 1024 -> 6000; _ -> 60 end,
    All = lists:seq(1, Count),
    Begin = erlang:monotonic_time(millisecond),
    #{confirmed := All} = finished(publisher(Queue, Bytes, #{count => Count, window => 2 * ?WINDOW}, Third)),
    Took = erlang:monotonic_time(millisecond) - Begin,
    ?assertEqual({Queue, All}, {Queue, taken(Queue, All, Third)}),
    1000 * Count div Took.

%% Brokers

%% Up, and ready.
started(#{folder := Folder} = Broker) ->
    %% That of the one before tells nothing of this one.
    _ = file:delete(Folder ++ "/pid"),
    {0, _} = ran("exec setsid " ?BIN "/rabbitmq-server > " ++ Folder ++ "/out 2>&1 &", Broker),
    {0, _} = ran("rabbitmqctl wait \"$RABBITMQ_PID_FILE\" --timeout 120", Broker),
    ok.

killed(#{folder := Folder} = Broker) ->
    {ok, Pid} = file:read_file(Folder ++ "/pid"),
    {0, _} = ran(["kill -KILL ", string:trim(Pid)], Broker),
    ok.

%% A shell's command on the host of a broker: its status and what it says.
-spec ran(unicode:chardata(), broker()) -> {non_neg_integer(), string()}.
ran(Line, #{within := Within, env := Env}) ->
    [Program | Args] = Within(unicode:characters_to_list(["exec </dev/null; ", Line])),
    Port = open_port({spawn_executable, Program}, [{args, Args}, {env, Env}, exit_status, stderr_to_stdout, use_stdio]),
    {Status, Said} = said(Port, []),
    ct:pal("~ts~n~ts~b", [Line, Said, Status]),
    {Status, Said}.

said(Port, Said) ->
    receive
        {Port, {data, Data}} -> said(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, lists:flatten(Said)}
    after ?MS -> error({silent, lists:flatten(Said)})
    end.
