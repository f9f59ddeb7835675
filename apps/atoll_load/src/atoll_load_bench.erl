%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `stores': the same load on our ring, Mnesia, a table of ETS, Redis and MariaDB, side by side; in a closed loop, or in an open one, in which operations begin at a rate.
%%
%% Keys are the same for all, and are there before the first round; so are values. The workers run in a node of their own, but for Mnesia and ETS, whose tables are in their VM. What
%% a write has come to when it is answered differs, and is the store's own default here: with Redis and MariaDB it is on the disk, on the ring in the memory of two nodes of three, with
%% Mnesia and ETS in that of one. With `kill' a node of the ring is killed so long after a round began, and is back a second later.
-module(atoll_load_bench).
-compile({no_auto_import, [round/1]}).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, setup/1, round/1, teardown/1]).
-export([fill/3, errors/1]).

-define(STORES, [ets, mnesia, ring, redis, mariadb]).
-define(PARTITIONS, 64).
-define(FILL_MS, 300_000).
%% Errors of a round that are told apart.
-define(TOLD, 5).
%% Of all values.
-define(MOST_BYTES, 1_000_000_000).

-spec summary() -> string().
summary() -> "one load on the ring, Mnesia, ETS, Redis and MariaDB, in a closed or an open loop, and with a node killed".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    [
        #{name => rate, type => integer, values => [0], min => 0, max => 1000000, unit => "1/s", help => "operations that begin in a second; 0: one of a worker when its last has ended"},
        #{name => workers, type => integer, values => [16], max => 10000, help => "workers, all together"},
        #{name => nodes, type => integer, values => [3], max => 50, help => "nodes of the ring"},
        #{name => writes, type => integer, values => [20], min => 0, max => 100, unit => "%", help => "of the operations; all others read"},
        #{name => keys, type => integer, values => [10000], max => 10000000, help => "keys, each as likely as the others"},
        #{name => size, type => integer, values => [1000], min => 0, max => 1000000, unit => "bytes", help => "of a value"},
        #{name => seconds, type => number, values => [2], min => 0, max => 600, unit => "s", help => "of a round"},
        #{name => kill, type => integer, values => [0], min => 0, max => 600, unit => "s", help => "after which a node of the ring is killed; 0: none is"},
        #{name => store, type => atom, values => [ets, mnesia, ring], one_of => ?STORES, help => "what is loaded"}
    ].

-spec variant() -> atom().
variant() -> store.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    Value = fun(Name, Label, Unit, Better) -> #{name => Name, label => Label, unit => Unit, better => Better, kind => value} end,
    [
        Value(ops_per_s, "Operations that went well", "1/s", more),
        #{name => latency, label => "Operation", unit => "ms", better => less, kind => latency},
        Value(failed, "Failed", "%", less),
        Value(shed, "Not begun in time", "%", less)
    ].

%% How many nodes there are only the ring asks, and a node of it can be killed.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points([#{nodes := Nodes} | _] = Points) ->
    lists:uniq([case Point of #{store := ring} -> Point; #{} -> Point#{nodes := Nodes} end || #{store := Store, kill := Kill} = Point <- Points, Store =:= ring orelse Kill =:= 0]).

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{keys := Keys, size := Size}) when Keys * Size > ?MOST_BYTES ->
    {error, io_lib:format("~b keys of ~b bytes would take more memory than ~b MB: take fewer keys.", [Keys, Size, ?MOST_BYTES div 1_000_000])};
check(#{kill := Kill, nodes := Nodes}) when Kill > 0, Nodes < 3 ->
    {error, io_lib:format("A ring of ~b has no node to spare: three at least, where one is killed.", [Nodes])};
check(#{store := redis}) -> matchstream_redis:find();
check(#{store := mariadb}) ->
    case atoll_bench_mariadb:missing() of
        [] -> ok;
        [Package | _] -> {error, ["Not installed: ", Package]}
    end;
check(_) -> ok.

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(Point) ->
    #{driver := Driver} = Config = config(Point),
    case atoll_load:start(Config) of
        {ok, #{store := #{settings := Settings}, workers := Workers} = Started} ->
            Args = [Driver, Settings, maps:with([keys, size], Point)],
            Filled = case Workers of
                here -> {ok, apply(?MODULE, fill, Args)};
                #{cluster := Cluster, nodes := [Node | _]} -> atoll_bench_nodes:call(Cluster, Node, {?MODULE, fill}, Args, ?FILL_MS)
            end,
            case Filled of
                {ok, ok} -> {ok, #{started => Started, point => Point}};
                Other ->
                    ok = atoll_load:stop(Started),
                    case Other of
                        {ok, {error, Why}} -> {error, io_lib:format("The store takes no key: ~0tP", [Why, 9])};
                        {error, _} = Error -> Error
                    end
            end;
        {error, _} = Error -> Error
    end.

config(#{store := Store, rate := Rate, workers := Workers, writes := Writes, seconds := Seconds, seed := Seed} = Point) ->
    Write = case Store of ring -> update; _ -> put end,
    Terms = [
        {driver, Store}, {concurrent, Workers}, {duration, max(0.001, Seconds) / 60}, {report_interval, max(1, Seconds)}, {rng_seed, {Seed, 2, 3}},
        {offered_load, case Rate of 0 -> closed; _ -> Rate end},
        {operations, [{get, get, 100 - Writes} || Writes < 100] ++ [{put, Write, Writes} || Writes > 0]},
        {key_generator, key(uniform_int, Point)}, {value_generator, value(Point)}
    ] ++ case Store of
        ring -> ring(Point);
        _ -> []
    end ++ [Term || lists:member(Store, [redis, mariadb]), Term <- [{distribute_work, true}, {remote_nodes, [{localhost, client}]}]],
    {ok, Config} = atoll_load_config:check([{1, Term} || Term <- Terms]),
    Config.

ring(#{nodes := Nodes, kill := Kill}) ->
    Quorum = min(2, Nodes),
    [{ring_nodes, Nodes}, {ring_settings, [{partitions, ?PARTITIONS}, {copies, min(3, Nodes)}, {read, Quorum}, {write, Quorum}]}, {ring_kill, Kill}].

key(Kind, #{keys := Keys}) -> {int_to_bin_bigendian, {Kind, Keys}}.

value(#{size := Size}) -> {fixed_bin, Size}.

%% @doc Writes each key once, where the workers will run.
-spec fill(module(), #{atom() => term()}, #{keys := pos_integer(), size := non_neg_integer()}) -> ok | {error, term()}.
fill(Driver, Settings, #{keys := Keys} = Of) ->
    case atoll_load_driver:new(Driver, 1, Settings) of
        {ok, State} -> fill(Keys, Driver, atoll_load_keys:key(key(sequential_int, Of), {1, 1}), (atoll_load_keys:value(value(Of)))(1), State);
        {error, _} = Error -> Error
    end.

fill(0, Driver, _, _, State) -> atoll_load_driver:terminate(Driver, normal, State);
fill(N, Driver, Key, Value, State) ->
    case atoll_load_driver:run(Driver, put, Key, Value, State) of
        {ok, Now} -> fill(N - 1, Driver, Key, Value, Now);
        {Wrong, Now} ->
            ok = atoll_load_driver:terminate(Driver, Wrong, Now),
            {error, Wrong}
    end.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{started := Started, point := #{seed := Seed} = Point} = State) ->
    case atoll_load:load(Started, config(Point)) of
        {ok, #{looks := Looks, servers := Servers}} ->
            {ok, measures(lists:last(Looks), Servers), State#{point := Point#{seed := Seed + 1}}};
        {error, _} = Error -> Error
    end.

measures(#{elapsed_ms := Ms, labels := Labels, completed := Ok, shed := Shed, offered := Offered}, Servers) ->
    Errors = [{N, Label, Reason} || {Label, #{errors := Of}} <- Labels, {Reason, N} <- Of],
    Failed = lists:sum([N || {N, _, _} <- Errors]),
    Percent = fun(N) -> 100 * N / max(1, Offered) end,
    #{
        ops_per_s => 1000 * Ok / Ms, failed => Percent(Failed), shed => Percent(Shed),
        latency => atoll_histogram:merge([Of || {_, #{latency := Latency, failed := Late}} <- Labels, Of <- [Latency, Late]]),
        servers => unicode:characters_to_binary(atoll_bench_servers:says(Servers)), errors => unicode:characters_to_binary(errors(Errors))
    }.

%% @doc Which errors there were, the most frequent ones first.
-spec errors([{pos_integer(), Label :: atom(), Reason :: atom() | binary()}]) -> unicode:chardata().
errors([]) -> "Nothing failed.";
errors(Errors) -> ["Failed: ", lists:join(", ", [io_lib:format("~b ~ts (~ts)", [N, Label, Reason]) || {N, Label, Reason} <- lists:sublist(lists:reverse(lists:sort(Errors)), ?TOLD)]), $.].

-spec teardown(map()) -> ok.
teardown(#{started := Started}) -> atoll_load:stop(Started).
