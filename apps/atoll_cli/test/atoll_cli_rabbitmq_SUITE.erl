%% SPDX-License-Identifier: Apache-2.0
%% docs/howto-rabbitmq.md, with three nodes of Debian's RabbitMQ on this machine; and what a broker over lanes promises its
%% publishers when a node is killed. It is skipped where RabbitMQ is not installed. The client is RabbitMQ's own, which stands
%% among its plugins, so its records are written here as the tuples that they are.
-module(atoll_cli_rabbitmq_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([the_page_makes_a_cluster_over_lanes/1, no_confirmed_message_is_lost_when_a_node_is_killed/1]).

-define(BIN, "/usr/lib/rabbitmq/bin").
-define(PLUGINS, "/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins/*/ebin").
-define(PAGE, "docs/howto-rabbitmq.md").
-define(NODES, [1, 2, 3]).
-define(MS, 120000).
%% So many are on their way at a time.
-define(WINDOW, 100).

suite() -> [{timetrap, {minutes, 10}}].

all() -> cases(atoll_tier:tier()).

%% A broker takes half a minute to start three times.
cases(fast) -> [];
cases(deep) -> [the_page_makes_a_cluster_over_lanes, no_confirmed_message_is_lost_when_a_node_is_killed].

init_per_suite(Config) ->
    case {filelib:is_regular(?BIN ++ "/rabbitmq-server"), filelib:wildcard(?PLUGINS)} of
        {true, [_ | _] = Plugins} ->
            ok = code:add_pathsz(Plugins),
            Keeper = atoll_dist_nodes:keeper(),
            [{_, EpmdPort}] = atoll_dist_nodes:epmd(Keeper),
            Ports = ports(2 * length(?NODES)),
            Home = filename:join(?config(priv_dir, Config), "rabbitmq"),
            ok = filelib:ensure_path(Home),
            Cookie = filename:join(Home, ".erlang.cookie"),
            ok = file:write_file(Cookie, "rabbitmq_over_atoll"),
            ok = file:change_mode(Cookie, 8#400),
            [{file, Path, Text} | _] = steps(),
            Conf = filename:join(Home, filename:basename(Path)),
            ok = file:write_file(Conf, string:replace(Text, "/opt/atoll/ebin", filename:dirname(code:which(atoll_dist)))),
            {Listen, Dist} = lists:split(length(?NODES), Ports),
            More = [{keeper, Keeper}, {home, Home}, {conf, Conf}, {epmd_port, EpmdPort}, {listen, Listen}, {dist, Dist} | Config],
            _ = [started(N, More) || N <- ?NODES],
            {ok, _} = application:ensure_all_started(amqp_client),
            More;
        _ ->
            {skip, "RabbitMQ is not installed (rabbitmq-server of Debian)"}
    end.

end_per_suite(Config) ->
    _ = [killed(N, Config) || N <- ?NODES],
    _ = application:stop(amqp_client),
    atoll_dist_nodes:stop(?config(keeper, Config)).

steps() -> atoll_cli_page:steps(atoll_cli_page:read(?PAGE)).

%% Other than those that are in use, and each another.
ports(Count) ->
    Sockets = [
        begin
            {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
            Socket
        end
     || _ <- lists:seq(1, Count)
    ],
    [
        begin
            {ok, Port} = inet:port(Socket),
            ok = gen_tcp:close(Socket),
            Port
        end
     || Socket <- Sockets
    ].

the_page_makes_a_cluster_over_lanes(Config) ->
    [{file, _, _}, {commands, Join}, {commands, [Look]}] = steps(),
    _ = [{0, _} = ran(Command, N, Config) || N <- tl(?NODES), Command <- Join],
    {0, Links} = ran(Look, 1, Config),
    [?assertNotEqual(nomatch, string:find(Links, ["{'", name(N), "',{lanes,4}}"])) || N <- tl(?NODES)].

no_confirmed_message_is_lost_when_a_node_is_killed(Config) ->
    lists:foreach(
        fun({Bytes, Count}) ->
            Self = self(),
            Queues = [{<<Type/binary, (integer_to_binary(Bytes))/binary>>, Type, Leader} || {Type, Leader} <- [{<<"classic">>, 2}, {<<"quorum">>, 3}]],
            [ok = declared(Queue, Type, Leader, Config) || {Queue, Type, Leader} <- Queues],
            Publishers = [
                {Queue, spawn_link(fun() -> Self ! {self(), published(Queue, Bytes, Count, Self, Config)} end)}
             || {Queue, _, _} <- Queues
            ],
            %% When each has had a third confirmed.
            [receive {third, Queue} -> ok after ?MS -> error({no_third, Queue}) end || {Queue, _} <- Publishers],
            ok = killed(3, Config),
            [receive {Pid, Confirmed} -> ?assertEqual(Count, Confirmed) after ?MS -> error({not_confirmed, Queue}) end
             || {Queue, Pid} <- Publishers],
            ok = started(3, Config),
            [?assertEqual(lists:seq(1, Count), taken(Queue, Count, Config)) || {Queue, _} <- Publishers]
        end,
        [{1024, 6000}, {1048576, 60}]
    ).

%% A node of the broker, from a folder of its own, up.
started(N, Config) ->
    Folder = filename:join(?config(home, Config), integer_to_list(N)),
    ok = filelib:ensure_path(Folder),
    ok = file:write_file(Folder ++ "/plugins", "[]."),
    Listen = integer_to_list(lists:nth(N, ?config(listen, Config))),
    ok = file:write_file(Folder ++ "/rabbitmq.conf", ["listeners.tcp.1 = 127.0.0.1:", Listen, "\n"]),
    %% That of the one before tells nothing of this one.
    _ = file:delete(Folder ++ "/pid"),
    Started = io_lib:format("exec setsid ~ts/rabbitmq-server > ~ts/out 2>&1 < /dev/null &", [?BIN, Folder]),
    [] = shell(Started, N, Config),
    {0, _} = ran(<<"rabbitmqctl wait \"$RABBITMQ_PID_FILE\" --timeout 120">>, N, Config),
    ok.

killed(N, Config) ->
    case file:read_file(filename:join([?config(home, Config), integer_to_list(N), "pid"])) of
        {ok, Pid} -> [] = shell("kill -KILL " ++ string:trim(binary_to_list(Pid)) ++ " 2> /dev/null || true", N, Config), ok;
        {error, enoent} -> ok
    end.

name(N) -> "rabbit" ++ integer_to_list(N) ++ "@127.0.0.1".

%% A command of the page, on the host of a node: its status and what it says.
ran(Line, N, Config) ->
    Said = shell([string:replace(Line, "rabbit@host1", name(1)), "; echo \" $?\""], N, Config),
    {match, [Text, Status]} = re:run(Said, "^(.*) ([0-9]+)\n$", [dotall, {capture, all_but_first, list}]),
    ct:pal("~ts~n~ts", [Line, Said]),
    {list_to_integer(Status), Text}.

shell(Line, N, Config) ->
    Folder = filename:join(?config(home, Config), integer_to_list(N)),
    Env = [
        {"HOME", ?config(home, Config)}, {"ERL_EPMD_PORT", ?config(epmd_port, Config)}, {"CONF_ENV_FILE", ?config(conf, Config)},
        {"RABBITMQ_CONF_ENV_FILE", ?config(conf, Config)}, {"RABBITMQ_NODENAME", name(N)},
        {"RABBITMQ_CONFIG_FILE", Folder ++ "/rabbitmq"}, {"RABBITMQ_MNESIA_BASE", Folder ++ "/mnesia"},
        {"RABBITMQ_LOG_BASE", Folder}, {"RABBITMQ_ENABLED_PLUGINS_FILE", Folder ++ "/plugins"},
        {"RABBITMQ_PID_FILE", Folder ++ "/pid"}, {"RABBITMQ_DIST_PORT", integer_to_list(lists:nth(N, ?config(dist, Config)))},
        {"PATH", ?BIN ++ ":" ++ os:getenv("PATH")}
    ],
    Exports = [["export ", Key, "='", Value, "'; "] || {Key, Value} <- Env],
    os:cmd(unicode:characters_to_list([Exports, Line])).

%% The client

channel(N, Config) ->
    Uri = "amqp://guest:guest@127.0.0.1:" ++ integer_to_list(lists:nth(N, ?config(listen, Config))),
    {ok, Params} = amqp_uri:parse(Uri),
    {ok, Connection} = amqp_connection:start(Params),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    {Connection, Channel}.

declared(Queue, Type, N, Config) ->
    {Connection, Channel} = channel(N, Config),
    Arguments = [{<<"x-queue-type">>, longstr, Type}],
    Declare = {'queue.declare', 0, Queue, false, true, false, false, false, Arguments},
    {'queue.declare_ok', Queue, 0, _} = amqp_channel:call(Channel, Declare),
    amqp_connection:close(Connection).

%% Numbered messages, over the first node; how many of them were confirmed.
published(Queue, Bytes, Count, Tell, Config) ->
    {Connection, Channel} = channel(1, Config),
    {'confirm.select_ok'} = amqp_channel:call(Channel, {'confirm.select', false}),
    ok = amqp_channel:register_confirm_handler(Channel, self()),
    Publish = fun(I) ->
        Properties = {'P_basic', undefined, undefined, undefined, 2, undefined, undefined, undefined, undefined, undefined,
            undefined, undefined, undefined, undefined, undefined},
        Payload = <<I:64, 0:((Bytes - 8) * 8)>>,
        ok = amqp_channel:cast(Channel, {'basic.publish', 0, <<>>, Queue, false, false}, {amqp_msg, Properties, Payload})
    end,
    Third = {Count div 3, fun() -> Tell ! {third, Queue} end},
    Confirmed = publish(1, Count, Publish, #{}, 0, Third),
    ok = amqp_connection:close(Connection),
    Confirmed.

publish(I, Count, _Publish, Out, Confirmed, _Third) when I > Count, map_size(Out) =:= 0 ->
    Confirmed;
publish(I, Count, Publish, Out, Confirmed, Third) when I =< Count, map_size(Out) < ?WINDOW ->
    ok = Publish(I),
    publish(I + 1, Count, Publish, Out#{I => waits}, Confirmed, Third);
publish(I, Count, Publish, Out, Confirmed, {At, Say} = Third) ->
    receive
        {'basic.ack', Tag, Multiple} ->
            Done = [T || T <- maps:keys(Out), T =:= Tag orelse (Multiple andalso T < Tag)],
            Now = Confirmed + length(Done),
            _ = Confirmed < At andalso Now >= At andalso Say(),
            publish(I, Count, Publish, maps:without(Done, Out), Now, Third);
        {'basic.nack', _, _, _} = Refused ->
            error(Refused)
    after ?MS -> error({never_confirmed, map_size(Out)})
    end.

%% The numbers of so many messages as they come at the first node, each where it came first.
taken(Queue, Count, Config) ->
    {Connection, Channel} = channel(1, Config),
    {'basic.qos_ok'} = amqp_channel:call(Channel, {'basic.qos', 0, ?WINDOW, false}),
    Consume = {'basic.consume', 0, Queue, <<>>, false, false, false, false, []},
    {'basic.consume_ok', _} = amqp_channel:subscribe(Channel, Consume, self()),
    Taken = take(Channel, Count, []),
    ok = amqp_connection:close(Connection),
    lists:reverse(Taken).

take(_Channel, Count, Taken) when length(Taken) =:= Count ->
    Taken;
take(Channel, Count, Taken) ->
    receive
        {{'basic.deliver', _, Tag, _, _, _}, {amqp_msg, _, <<I:64, _/binary>>}} ->
            ok = amqp_channel:cast(Channel, {'basic.ack', Tag, false}),
            take(Channel, Count, case lists:member(I, Taken) of true -> Taken; false -> [I | Taken] end);
        {'basic.consume_ok', _} ->
            take(Channel, Count, Taken)
    after ?MS -> error({not_there, Count - length(Taken)})
    end.
