%% SPDX-License-Identifier: Apache-2.0
%% @doc What a benchmark is made of, and which there are.
%%
%% A benchmark has parameters, each with the values that it is swept over, and
%% measures at every point, which has one value of each. One parameter is its
%% *variant*: what is compared. Points that differ in it alone are a group; they
%% are set up together and measured in turns, so that whatever else happens on
%% the machine happens to all of them.
%%
%% A benchmark measures, and nothing else: warming up, the order of the rounds,
%% repeating, writing and drawing are the harness's ({@link atoll_bench_run}).
-module(atoll_bench).

-export([all/0, find/1, name/1, sweep/2, flags/2, format_error/1]).

-export_type([name/0, parameter/0, point/0, start/0, metric/0, measure/0, sweep/0, error/0]).

-type name() :: string().

-type parameter() :: #{
    name := atom(),
    %% What it is called in a row of the result, if not by its name.
    row => atom(),
    type := integer | number | atom,
    %% Swept over unless told otherwise.
    values := [value(), ...],
    help := string(),
    unit => string(),
    %% What an integer or a number may be; from 1 unless told.
    min => integer(),
    max => integer(),
    %% What an atom may be.
    one_of => [atom(), ...],
    %% That so many times as much of it should do so many times as much work: a report
    %% draws the speed-up beside the ideal.
    scales => boolean()
}.

-type value() :: number() | atom().

-type point() :: #{atom() => value()}.
%% One value of each parameter.

-type start() :: #{seed := pos_integer(), atom() => value()}.
%% A point with the seed of its first round after a start; the next round's is one more, and so on.
%% No other start has any of them, and all points of a group have the same: so each round draws
%% something new, and its variants draw alike.

-type sweep() :: #{atom() => [value(), ...]}.
%% The values that are not the default ones.

-type metric() :: #{
    name := atom(),
    %% What it is called in a row of the result, if not by its name; nothing ('') leaves a
    %% latency's percentiles.
    row => atom(),
    label := string(),
    unit := string(),
    better := more | less,
    %% That another metric says the same in another unit: a comparison leaves it out.
    derived => boolean(),
    %% A number for each round, or one for each of many alike; or a histogram of
    %% nanoseconds.
    kind := value | latency
}.

-type measure() :: number() | [number(), ...] | atoll_histogram:export() | (Sentence :: binary()).
%% Of many alike, such as all nodes of a cluster, the round's value is the median. A sentence is no
%% metric: it is kept beside the values under its name.

-type error() ::
    {no_benchmark, name()}
    | {no_parameter, atom(), [atom()]}
    | {bad_value, atom(), term(), Must :: unicode:chardata()}
    | {twice, atom(), term()}
    | {point, point(), Sentence :: unicode:chardata()}
    %% By which one other value of a parameter that takes words there would be some.
    | {no_points, [{atom(), [atom(), ...]}]}.

%% What it measures, in less than a line.
-callback summary() -> string().

-callback parameters() -> [parameter(), ...].

%% The parameter whose values are compared with each other.
-callback variant() -> atom().

-callback metrics() -> [metric(), ...].

%% Those of the combinations of values that make sense.
-callback points([point(), ...]) -> [point()].

%% What can be known to be wrong with a point before anything starts.
-callback check(point()) -> ok | {error, Sentence :: unicode:chardata()}.

%% The flags that the nodes of a point are given, over those of every cluster
%% ({@link atoll_cluster:start/1}); the result file keeps them. No paths.
-callback flags(point()) -> [string()].

-optional_callbacks([flags/1]).

%% Starts what the rounds of a point need. After an error nothing is left.
-callback setup(start()) -> {ok, State :: term()} | {error, Sentence :: unicode:chardata()}.

%% One round, a second or so.
-callback round(State) -> {ok, #{atom() => measure()}, State} | {error, Sentence :: unicode:chardata()} when
    State :: term().

%% Takes everything down that setup has started; also after an error.
-callback teardown(State :: term()) -> ok.

%% @doc All benchmarks.
-spec all() -> [{name(), module()}].
all() ->
    [
        {"orbit", atoll_bench_orbit},
        {"aco", atoll_bench_aco},
        {"dist", atoll_bench_dist},
        {"names", atoll_bench_names},
        {"overlay", atoll_bench_overlay},
        {"debench", atoll_bench_debench},
        {"place", atoll_bench_place},
        {"aco_place", atoll_bench_aco_place},
        {"im", atoll_bench_im},
        {"subscribers", atoll_bench_subscribers},
        {"io", atoll_bench_io},
        {"matchstream", atoll_bench_matchstream},
        {"adcounter", atoll_bench_adcounter},
        {"ring", atoll_bench_ring},
        {"stores", atoll_load_bench}
    ].

%% @doc The module of a benchmark.
-spec find(name()) -> {ok, module()} | {error, error()}.
find(Name) ->
    case lists:keyfind(Name, 1, all()) of
        {Name, Module} -> {ok, Module};
        false -> {error, {no_benchmark, Name}}
    end.

%% @doc What a benchmark is called: one that is not among ours, like its module.
-spec name(module()) -> name().
name(Module) ->
    case lists:keyfind(Module, 2, all()) of
        {Name, Module} -> Name;
        false -> atom_to_list(Module)
    end.

%% @doc The flags of a point's nodes; none if the benchmark does not say.
-spec flags(module(), point()) -> [string()].
flags(Module, Point) ->
    case erlang:function_exported(Module, flags, 1) of
        true -> Module:flags(Point);
        false -> []
    end.

%% @doc The points of a sweep, in the order of the parameters' values, the
%% variant's last; or the first thing that is wrong with it.
-spec sweep(module(), sweep()) -> {ok, [point(), ...]} | {error, error()}.
sweep(Module, Sweep) ->
    Parameters = Module:parameters(),
    Names = [Name || #{name := Name} <- Parameters],
    case maps:keys(maps:without(Names, Sweep)) of
        [] ->
            case [Error || Parameter <- Parameters, {error, Error} <- [check_values(Parameter, Sweep)]] of
                [] -> checked(Module, last(Module:variant(), Parameters), Sweep);
                [Error | _] -> {error, Error}
            end;
        [Unknown | _] ->
            {error, {no_parameter, Unknown, Names}}
    end.

last(Variant, Parameters) ->
    {Last, Others} = lists:partition(fun(#{name := Name}) -> Name =:= Variant end, Parameters),
    Others ++ Last.

combine([], _Sweep) ->
    [#{}];
combine([#{name := Name, values := Default} | Parameters], Sweep) ->
    Rest = combine(Parameters, Sweep),
    [Point#{Name => Value} || Value <- maps:get(Name, Sweep, Default), Point <- Rest].

check_values(#{name := Name} = Parameter, Sweep) ->
    Values = maps:get(Name, Sweep, []),
    case {[V || V <- Values, not is_value(V, Parameter)], Values -- lists:usort(Values)} of
        {[], []} -> ok;
        {[Bad | _], _} -> {error, {bad_value, Name, Bad, must(Parameter)}};
        {[], [Twice | _]} -> {error, {twice, Name, Twice}}
    end.

is_value(Value, #{type := atom, one_of := Words}) -> lists:member(Value, Words);
is_value(Value, #{type := Type} = Parameter) ->
    {Min, Max} = range(Parameter),
    (is_integer(Value) orelse (Type =:= number andalso is_float(Value))) andalso Value >= Min andalso Value =< Max.

range(Parameter) -> {maps:get(min, Parameter, 1), maps:get(max, Parameter, 1000000000)}.

must(#{type := atom, one_of := Words}) ->
    ["must be one of ", lists:join(", ", [atom_to_list(Word) || Word <- Words])];
must(#{type := Type} = Parameter) ->
    {Min, Max} = range(Parameter),
    io_lib:format("must be a ~ts from ~b to ~b", [case Type of integer -> "whole number"; number -> "number" end, Min, Max]).

checked(Module, Parameters, Sweep) ->
    Points = Module:points(combine(Parameters, Sweep)),
    case [{Point, Why} || Point <- Points, {error, Why} <- [Module:check(Point)]] of
        [] when Points =:= [] -> {error, {no_points, instead(Module, Parameters, Sweep)}};
        [] -> {ok, Points};
        [{Point, Why} | _] -> {error, {point, Point, Why}}
    end.

instead(Module, Parameters, Sweep) ->
    Words = [
        {Name, [Word || Word <- OneOf, Module:points(combine(Parameters, Sweep#{Name => [Word]})) =/= []]}
     || #{name := Name, type := atom, one_of := OneOf} <- Parameters
    ],
    [{Name, Some} || {Name, [_ | _] = Some} <- Words].

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({no_benchmark, Name}) ->
    ["there is no benchmark \"", Name, "\"; there are ", lists:join(", ", [N || {N, _} <- all()])];
format_error({no_parameter, Name, Names}) ->
    ["there is no parameter ", atom_to_list(Name), "; there are ", lists:join(", ", [atom_to_list(N) || N <- Names])];
format_error({bad_value, Name, Value, Must}) ->
    io_lib:format("~ts ~ts, not \"~tp\"", [Name, Must, Value]);
format_error({twice, Name, Value}) ->
    io_lib:format("~ts has the value ~tp twice", [Name, Value]);
format_error({point, Point, Why}) ->
    Of = [io_lib:format("~ts ~tp", [Name, Value]) || {Name, Value} <- lists:sort(maps:to_list(Point))],
    ["with ", lists:join(", ", Of), ": ", Why];
format_error({no_points, Instead}) ->
    [
        "none of the combinations of these values can be measured",
        [["; they can with ", lists:join(", or with ", [words(Name, Words) || {Name, Words} <- Instead])] || Instead =/= []]
    ].

words(Name, [Word]) ->
    [atom_to_list(Name), $\s, atom_to_list(Word)];
words(Name, Words) ->
    {Others, [Last]} = lists:split(length(Words) - 1, [atom_to_list(Word) || Word <- Words]),
    [atom_to_list(Name), $\s, lists:join(", ", Others), " or ", Last].
