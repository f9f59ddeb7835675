%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs as they might have been: throughput that levels off, latencies with a
%% tail, a neighbour who was busy for a while.
-module(atoll_bench_sample).

-export([all/0, run/0, run/1, scaling/0, names/0, text/1]).

-export_type([run/0]).

-type run() :: atoll_bench_report:run().

-define(ACTORS, [1, 2, 4, 8, 16, 32, 64]).
-define(SIZES, [100, 1024, 65536]).
-define(SYSTEMS, [<<"atoll">>, <<"global">>, <<"sharded">>]).
-define(ROUNDS, 7).

%% @doc All of them, the first twice, and one that ended before its first round.
-spec all() -> [run(), ...].
all() ->
    [run(), scaling(), names(), run(), (run())#{rounds := [], status := partial}].

%% @doc Three systems, two swept parameters, latencies.
-spec run() -> run().
run() ->
    run(2000).

%% @doc The same with so many latencies a round.
-spec run(Latencies :: pos_integer()) -> run().
run(Latencies) ->
    Points = [
        #{<<"system">> => System, <<"actors">> => Actors, <<"size">> => Size}
     || Size <- ?SIZES, Actors <- ?ACTORS, System <- ?SYSTEMS
    ],
    made(Points, fun(Point, Rand) -> measured(Point, Latencies, Rand) end, header(Points)).

header(Points) ->
    #{
        <<"atoll_bench">> => 1,
        <<"benchmark">> => <<"dist">>,
        <<"summary">> => <<"messages between two nodes, from many actors at once">>,
        <<"started">> => <<"2026-11-21T14:03:12Z">>,
        <<"parameters">> => [
            #{<<"name">> => <<"system">>, <<"type">> => <<"atom">>, <<"values">> => ?SYSTEMS, <<"help">> => <<"what carries the messages">>},
            #{<<"name">> => <<"actors">>, <<"type">> => <<"integer">>, <<"values">> => ?ACTORS, <<"help">> => <<"how many send at once">>},
            #{<<"name">> => <<"size">>, <<"type">> => <<"integer">>, <<"values">> => ?SIZES, <<"unit">> => <<"bytes">>, <<"help">> => <<"of a message">>}
        ],
        <<"variant">> => <<"system">>,
        <<"metrics">> => [
            #{<<"name">> => <<"msgs_per_s">>, <<"label">> => <<"Throughput">>, <<"unit">> => <<"messages/s">>, <<"better">> => <<"more">>, <<"kind">> => <<"value">>},
            #{<<"name">> => <<"latency">>, <<"label">> => <<"Round trip">>, <<"unit">> => <<"ns">>, <<"better">> => <<"less">>, <<"kind">> => <<"latency">>}
        ],
        <<"points">> => Points,
        <<"rounds">> => ?ROUNDS,
        <<"seed">> => 1,
        <<"machine">> => machine(),
        <<"atoll">> => <<"0.1.0">>,
        <<"command">> => <<"atoll bench run dist --actors 1,2,4,8,16,32,64 --size 100,1024,65536 --rounds 7 --seed 1">>
    }.

machine() ->
    #{
        <<"cpu">> => <<"AMD EPYC 7B13">>, <<"cores">> => 8, <<"memory_bytes">> => 33554432000,
        <<"kernel">> => <<"linux 6.1.0">>, <<"otp">> => <<"25">>, <<"erts">> => <<"13.1.5">>,
        <<"emulator">> => <<"jit">>, <<"schedulers">> => 8, <<"flags">> => [<<"+sbwt">>, <<"none">>]
    }.

measured(#{<<"system">> := System, <<"actors">> := Actors, <<"size">> := Size}, Latencies, Rand0) ->
    Fast = #{<<"atoll">> => 1.0, <<"global">> => 0.83, <<"sharded">> => 0.55},
    Limit = #{<<"atoll">> => 30.0, <<"global">> => 5.0, <<"sharded">> => 60.0},
    Factor = maps:get(System, Fast) / (1 + (Actors - 1) / maps:get(System, Limit)),
    PerActor = 41000 / (1 + Size / 6000) * Factor,
    {Noise, Rand1} = rand:normal_s(Rand0),
    {Hist, Rand} = latencies(1.0e9 / PerActor, Latencies, Rand1),
    {#{<<"msgs_per_s">> => max(1.0, PerActor * Actors * (1 + 0.05 * Noise))}, #{<<"latency">> => Hist}, Rand}.

%% Log-normal, one in a hundred much later.
latencies(Ns, N, Rand0) ->
    Hist = atoll_histogram:new(),
    Rand = lists:foldl(
        fun(_, R0) ->
            {X, R1} = rand:normal_s(R0),
            {Late, R} = rand:uniform_s(R1),
            Slow = case Late < 0.03 of true -> math:pow(0.03 / Late, 0.6) * 1.4; false -> 1 end,
            ok = atoll_histogram:record(max(1, round(Ns * math:exp(0.22 * X) * Slow)), Hist),
            R
        end,
        Rand0,
        lists:seq(1, N)
    ),
    {through_json(atoll_histogram:export(Hist)), Rand}.

through_json(Value) ->
    {ok, Read} = atoll_bench_json:decode(atoll_bench_json:encode(Value)),
    Read.

%% Interleaved: each round of all points before the next.
made(Points, Measure, Header) ->
    Numbered = lists:zip(lists:seq(0, length(Points) - 1), Points),
    {Rounds, _} = lists:mapfoldl(
        fun({Round, {Index, Point}}, {At, Rand0}) ->
            {Values, Histograms, Rand1} = Measure(Point, Rand0),
            {X, Rand} = rand:uniform_s(Rand1),
            Others = case At > 250000 andalso At < 275000 of true -> 0.15 + 0.3 * X; false -> 0.01 + 0.035 * X * X end,
            {
                #{
                    <<"point">> => Index, <<"round">> => Round, <<"at_ms">> => At, <<"wall_ms">> => 1001,
                    <<"others_cpu">> => Others, <<"values">> => Values, <<"histograms">> => Histograms
                },
                {At + 1040, Rand}
            }
        end,
        {2000, rand:seed_s(exsss, 7)},
        [{Round, Point} || Round <- lists:seq(1, ?ROUNDS), Point <- Numbered]
    ),
    #{file => "atoll-bench-dist-2026-11-21.jsonl", header => Header, rounds => Rounds, errors => [], status => complete}.

%% @doc A throughput that grows with the schedulers; the run was cut short.
-spec scaling() -> run().
scaling() ->
    Points = [
        #{<<"mode">> => Mode, <<"schedulers">> => N}
     || N <- [1, 2, 4, 6, 8], Mode <- [<<"par">>, <<"par_seq">>]
    ],
    Header = #{
        <<"atoll_bench">> => 1,
        <<"benchmark">> => <<"orbit">>,
        <<"summary">> => <<"the orbit of a space, by workers that share a hash table">>,
        <<"started">> => <<"2026-11-21T15:40:02Z">>,
        <<"parameters">> => [
            #{<<"name">> => <<"mode">>, <<"type">> => <<"atom">>, <<"values">> => [<<"par">>, <<"par_seq">>]},
            #{<<"name">> => <<"schedulers">>, <<"type">> => <<"integer">>, <<"values">> => [1, 2, 4, 6, 8], <<"scales">> => true}
        ],
        <<"variant">> => <<"mode">>,
        <<"metrics">> => [
            #{<<"name">> => <<"vertices_per_s">>, <<"label">> => <<"Vertices">>, <<"unit">> => <<"1/s">>, <<"better">> => <<"more">>, <<"kind">> => <<"value">>}
        ],
        <<"points">> => Points,
        <<"rounds">> => ?ROUNDS,
        <<"seed">> => 3,
        <<"machine">> => machine(),
        <<"atoll">> => <<"0.1.0">>,
        <<"command">> => <<"atoll bench run orbit --schedulers 1,2,4,6,8 --rounds 7 --seed 3">>
    },
    Measure = fun(#{<<"mode">> := Mode, <<"schedulers">> := N}, Rand0) ->
        {Noise, Rand} = rand:normal_s(Rand0),
        Serial = case Mode of <<"par">> -> 0.03; _ -> 0.09 end,
        {#{<<"vertices_per_s">> => 91000 / (Serial + (1 - Serial) / N) * (1 + 0.03 * Noise)}, #{}, Rand}
    end,
    Whole = #{rounds := Rounds} = made(Points, Measure, Header),
    Whole#{
        rounds := lists:sublist(Rounds, 57), status := partial, file := "atoll-bench-orbit-2026-11-21.jsonl",
        errors := [#{<<"point">> => 9, <<"error">> => <<"The node worker@127.0.0.1 did not start within 10 s.">>}]
    }.

%% @doc What is swept has names, and texts are such as would like to be markup.
-spec names() -> run().
names() ->
    Bad = <<"</script><img src=x onerror=alert(1)>">>,
    Points = [
        #{<<"table">> => Table, <<"type">> => Type}
     || Type <- [<<"set">>, <<"ordered_set">>, <<"bag">>], Table <- [<<"ets">>, Bad]
    ],
    Header = #{
        <<"atoll_bench">> => 1,
        <<"benchmark">> => <<"tables \"&\" ", Bad/binary>>,
        <<"started">> => <<"2026-11-21T16:02:40Z">>,
        <<"parameters">> => [
            #{<<"name">> => <<"table">>, <<"type">> => <<"atom">>, <<"values">> => [<<"ets">>, Bad]},
            #{<<"name">> => <<"type">>, <<"type">> => <<"atom">>, <<"values">> => [<<"set">>, <<"ordered_set">>, <<"bag">>]}
        ],
        <<"variant">> => <<"table">>,
        <<"metrics">> => [
            #{<<"name">> => <<"us">>, <<"label">> => <<"Insert ", Bad/binary>>, <<"unit">> => <<"\x{b5}s"/utf8>>, <<"better">> => <<"less">>, <<"kind">> => <<"value">>}
        ],
        <<"points">> => Points,
        <<"rounds">> => ?ROUNDS,
        <<"seed">> => 5,
        <<"machine">> => machine(),
        <<"atoll">> => <<"0.1.0">>,
        <<"command">> => <<"atoll bench run tables '", Bad/binary, "'">>
    },
    Measure = fun(#{<<"table">> := Table, <<"type">> := Type}, Rand0) ->
        {Noise, Rand} = rand:normal_s(Rand0),
        {#{<<"us">> => byte_size(Type) * (0.1 + 0.001 * byte_size(Table)) * (1 + 0.08 * Noise)}, #{}, Rand}
    end,
    Run = made(Points, Measure, Header),
    Run#{file := "<b>tables</b>.jsonl", status := partial}.

%% @doc The text of a file with the run.
-spec text(run()) -> iodata().
text(#{header := Header, rounds := Rounds, errors := Errors, status := Status}) ->
    End = [#{<<"end">> => atom_to_binary(Status)} || Status =/= partial],
    [[atoll_bench_json:encode(Line), $\n] || Line <- [Header | Rounds ++ Errors ++ End]].
