%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a benchmark: sets up the points of a group, warms each up with a round
%% that is not counted, measures round after round in turns, takes them down, does so
%% again for every start, and goes on to the next group. Each round is written to the result file
%% ({@link atoll_bench_file}) as soon as it is over.
%%
%% A point that fails, by an error or an exception, is written as failed and left out
%% from then on; the others are measured all the same. Whatever ends a run, but the end
%% of this process, what was set up is taken down.
-module(atoll_bench_run).

-export([run/2, header/3, line/5, format_error/1]).

-export_type([options/0, error/0, summary/0]).

-type options() :: #{
    %% What differs from the benchmark's own values.
    sweep => atoll_bench:sweep(),
    rounds => pos_integer(),
    %% How often the points are set up anew, at most once a round.
    starts => pos_integer(),
    seed => integer(),
    %% The result file, which must not be there yet.
    file := file:filename_all(),
    %% How this run is repeated.
    command => unicode:chardata(),
    %% Called with how many rounds, warming up included, are over.
    progress => fun((Done :: non_neg_integer(), Total :: pos_integer()) -> _)
}.

-type summary() :: #{
    file := file:filename_all(),
    points := pos_integer(),
    rounds := non_neg_integer(),
    failed := [{atoll_bench:point(), unicode:chardata()}],
    wall_ms := non_neg_integer()
}.

-type error() :: atoll_bench:error() | {file, atoll_bench_file:error()} | {write, file:filename_all(), term()}.

-record(run, {
    module :: module(),
    points :: #{atoll_bench_plan:index() => atoll_bench:point()},
    file :: atoll_bench_file:file(),
    name :: file:filename_all(),
    begun :: integer(),
    rounds = 0 :: non_neg_integer(),
    failed = [] :: [{atoll_bench_plan:index(), unicode:chardata()}],
    progress :: fun((non_neg_integer(), pos_integer()) -> _),
    done = 0 :: non_neg_integer(),
    total :: pos_integer()
}).

-define(ROUNDS, 10).
%% As few as a comparison can do with.
-define(STARTS, 5).

%% @doc Runs a benchmark, one of our own or any other module that is one. What is
%% wrong with the sweep or with the file is known before anything starts.
-spec run(module(), options()) -> {ok, summary()} | {error, error()}.
run(Module, #{file := FileName} = Options) ->
    case atoll_bench:sweep(Module, maps:get(sweep, Options, #{})) of
        {ok, Points} ->
            case atoll_bench_file:create(FileName, header(Module, Points, Options)) of
                {ok, File} -> measure(Module, Points, File, Options);
                {error, Error} -> {error, {file, Error}}
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc The first line of the result file of such a run, of {@link atoll_bench_file}.
-spec header(module(), [atoll_bench:point(), ...], options()) -> #{atom() => term()}.
header(Module, Points, Options) ->
    #{
        benchmark => list_to_binary(atoll_bench:name(Module)),
        summary => unicode:characters_to_binary(Module:summary()),
        started => list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(second), [{offset, "Z"}])),
        parameters => [described(P) || P <- Module:parameters()],
        variant => Module:variant(),
        metrics => [described(M) || M <- Module:metrics()],
        points => Points,
        rounds => maps:get(rounds, Options, ?ROUNDS),
        starts => starts(Options),
        seed => maps:get(seed, Options, 1),
        flags => [[list_to_binary(Flag) || Flag <- atoll_bench:flags(Module, Point)] || Point <- Points],
        machine => atoll_bench_machine:describe(),
        atoll => version(),
        commit => atoll_bench_commit:describe(),
        command => unicode:characters_to_binary(maps:get(command, Options, ""))
    }.

starts(Options) ->
    min(maps:get(starts, Options, ?STARTS), maps:get(rounds, Options, ?ROUNDS)).

version() ->
    list_to_binary(atoll:version()).

%% Texts are binaries in JSON.
described(Map) ->
    maps:map(
        fun
            (Key, Text) when Key =:= help; Key =:= unit; Key =:= label -> unicode:characters_to_binary(Text);
            (_Key, Value) -> Value
        end,
        Map
    ).

measure(Module, Points, File, #{file := FileName} = Options) ->
    #{rounds := Rounds, seed := Seed} = maps:merge(#{rounds => ?ROUNDS, seed => 1}, Options),
    Indices = lists:seq(0, length(Points) - 1),
    Run0 = #run{
        module = Module,
        points = maps:from_list(lists:zip(Indices, Points)),
        file = File,
        name = FileName,
        begun = erlang:monotonic_time(millisecond),
        progress = maps:get(progress, Options, fun(_, _) -> ok end),
        total = length(Points) * (Rounds + starts(Options))
    },
    _ = (Run0#run.progress)(0, Run0#run.total),
    try
        Run = lists:foldl(
            fun(Group, Run) ->
                Turns = atoll_bench_plan:rounds(Group, Rounds, Seed),
                lists:foldl(
                    fun({Start, Own}, Before) -> start({Start, atoll_bench_plan:seed(Start, Rounds, Seed)}, Group, Own, Before) end,
                    Run,
                    atoll_bench_plan:starts(Turns, Rounds, starts(Options))
                )
            end,
            Run0,
            atoll_bench_plan:groups(Points, Module:variant())
        ),
        #run{} = written(atoll_bench_file:close(File, complete), Run),
        {ok, #{
            file => FileName,
            points => length(Points),
            rounds => Run#run.rounds,
            failed => [{maps:get(Index, Run#run.points), Why} || {Index, Why} <- lists:reverse(Run#run.failed)],
            wall_ms => erlang:monotonic_time(millisecond) - Run#run.begun
        }}
    catch
        throw:{write, Reason} ->
            _ = atoll_bench_file:close(File, partial),
            {error, {write, FileName, Reason}};
        Class:Reason:Stack ->
            _ = atoll_bench_file:close(File, partial),
            erlang:raise(Class, Reason, Stack)
    end.

start({Start, Seed}, Group, Turns, #run{failed = Failed} = Run) ->
    steps(
        [fun(S, R) -> set_up(Index, Seed, S, R) end || Index <- Group, not lists:keymember(Index, 1, Failed)] ++
            [fun(S, R) -> turn(Index, {Start, Round}, S, R) end || {Round, Index} <- [{0, Index} || Index <- Group] ++ Turns],
        #{},
        Run
    ).

steps([], States, #run{module = Module} = Run) ->
    ok = take_down(maps:values(States), Module),
    Run;
steps([Step | Steps], States0, #run{module = Module} = Run0) ->
    try Step(States0, Run0) of
        {States, Run} -> steps(Steps, States, Run)
    catch
        Class:Reason:Stack ->
            ok = take_down(maps:values(States0), Module),
            erlang:raise(Class, Reason, Stack)
    end.

take_down([], _Module) ->
    ok;
take_down([State | States], Module) ->
    try
        ok = Module:teardown(State)
    after
        ok = take_down(States, Module)
    end.

set_up(Index, Seed, States, #run{module = Module, points = Points} = Run) ->
    case caught(setup, fun() -> Module:setup((maps:get(Index, Points))#{seed => Seed}) end) of
        {ok, State} -> {States#{Index => State}, Run};
        {error, Why} -> {States, failed(Index, Why, Run)}
    end.

%% One benchmark's fault is not the end of the others' points.
caught(What, Fun) ->
    try
        Fun()
    catch
        Class:Reason -> {error, io_lib:format("~ts ended with ~ts ~0tp", [What, Class, Reason])}
    end.

failed(Index, Why, #run{failed = Failed, file = File} = Run) ->
    Line = #{point => Index, error => unicode:characters_to_binary(Why)},
    written(atoll_bench_file:append(File, Line), Run#run{failed = [{Index, Why} | Failed]}).

%% Round 0 warms up. A point that has failed is passed over.
turn(Index, Round, States, Run) ->
    case States of
        #{Index := State} -> round(Index, Round, State, States, Run);
        #{} -> {States, passed(Run)}
    end.

round(Index, Round, State0, States, #run{module = Module, begun = Begun} = Run) ->
    At = erlang:monotonic_time(millisecond),
    Before = atoll_bench_machine:look(),
    case caught(round, fun() -> Module:round(State0) end) of
        {ok, Measures, State} ->
            WallMs = erlang:monotonic_time(millisecond) - At,
            Others = atoll_bench_machine:others(Before, atoll_bench_machine:look(), WallMs),
            {Start, Number} = Round,
            Line = line(Index, Number, Measures, Module, #{
                start => Start, at_ms => At - Begun, wall_ms => WallMs, others_cpu => Others
            }),
            {States#{Index := State}, passed(counted(Round, Line, Run))};
        {error, Why} ->
            %% Should it not be written, all that is in States is taken down.
            Failed = failed(Index, Why, Run),
            ok = Module:teardown(State0),
            {maps:remove(Index, States), passed(Failed)}
    end.

counted({_Start, 0}, _Line, Run) -> Run;
counted(_Round, Line, #run{file = File, rounds = N} = Run) ->
    written(atoll_bench_file:append(File, Line), Run#run{rounds = N + 1}).

%% @doc The line of a round in the result file, over what is the same for all that were measured
%% with it.
-spec line(atoll_bench_plan:index(), non_neg_integer(), #{atom() => atoll_bench:measure()}, module(), #{atom() => term()}) ->
    #{atom() => term()}.
line(Index, Round, Measures, Module, Base) ->
    Latencies = [Name || #{name := Name, kind := latency} <- Module:metrics()],
    Said = maps:filter(fun(_Name, Value) -> is_binary(Value) end, Measures),
    Values = maps:without(Latencies ++ maps:keys(Said), Measures),
    with_samples(maps:filter(fun(_Name, Value) -> is_list(Value) end, Values), (maps:merge(Said, Base))#{
        point => Index,
        round => Round,
        values => maps:map(fun(_Name, Value) -> one(Value) end, Values),
        histograms => maps:with(Latencies, Measures)
    }).

with_samples(None, Line) when map_size(None) =:= 0 -> Line;
with_samples(Samples, Line) -> Line#{samples => Samples}.

one(Values) when is_list(Values) -> atoll_bench_stats:median(Values);
one(Value) -> Value.

written(ok, Run) -> Run;
written({error, Reason}, _Run) -> throw({write, Reason}).

passed(#run{done = Done, total = Total, progress = Progress} = Run) ->
    _ = Progress(Done + 1, Total),
    Run#run{done = Done + 1}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({file, Error}) -> atoll_bench_file:format_error(Error);
format_error({write, Name, Reason}) -> io_lib:format("~ts: ~ts", [Name, file:format_error(Reason)]);
format_error(Error) -> atoll_bench:format_error(Error).
