%% SPDX-License-Identifier: Apache-2.0
%% @doc The problem that `atoll aco' is to solve, and the cost that it may reach:
%% read from files, or drawn where no file is named.
-module(atoll_cases_aco_problem).

-export([options/0, read/1, read_all/1]).

-define(MOST_PROBLEMS, 1000000).
%% OR-Library's largest collection is a hundredth of it.
-define(MOST_BYTES, 33554432).
-define(CHUNK_BYTES, 65536).

%% @doc The options that say which.
-spec options() -> [atoll_cli_options:option()].
options() ->
    #{jobs := Jobs, most_jobs := MostJobs, most_cost := MostCost} = atoll_bench_aco_file:limits(),
    [
        #{name => input, value => "FILE", is_read => true,
          help => "the problem, plain or in a collection as OR-Library's (one is drawn unless told)"},
        #{name => problem, value => "K", default => "1", read => atoll_cli_read:whole(1, ?MOST_PROBLEMS),
          help => "which problem of the collection, or of those drawn"},
        #{name => jobs, value => "N", read => atoll_cli_read:whole(1, MostJobs),
          help => io_lib:format("jobs of each problem there, or of the one drawn (~b unless told)", [Jobs])},
        #{name => optimum, value => "COST", read => atoll_cli_read:whole(0, MostCost),
          help => "the least cost, if it is known"},
        #{name => optima, value => "FILE", is_read => true, help => "the least cost of each problem of the collection"}
    ].

%% @doc Reads it.
-spec read(atoll_cli_options:values()) ->
    {ok, aco_problem:problem(), Optimum :: aco_schedule:cost() | none} | {error, unicode:chardata()}.
read(#{optimum := _, optima := _}) ->
    {error, "--optimum and --optima say the same, so one of them is enough"};
read(#{optima := _} = Values) when not is_map_key(input, Values) ->
    {error, "--optima is for the problems of --input FILE"};
read(Values) ->
    case problem(Values) of
        {ok, Problem} ->
            case optimum(Values) of
                {ok, Optimum} -> {ok, Problem, Optimum};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc Reads all problems of a collection for which there is a least cost.
-spec read_all(atoll_cli_options:values()) ->
    {ok, [{aco_problem:problem(), aco_schedule:cost()}, ...]} | {error, unicode:chardata()}.
read_all(#{input := File, optima := Optima} = Values) ->
    case read_file("--optima", Optima, fun atoll_bench_aco_file:parse_optima/1) of
        {ok, Costs} ->
            Of = fun(Text, K) -> atoll_bench_aco_file:parse(Text, (maps:with([jobs], Values))#{problem => K}) end,
            read_file("--input", File, fun(Text) -> each(Text, lists:zip(lists:seq(1, length(Costs)), Costs), Of, []) end);
        {error, _} = Error ->
            Error
    end;
read_all(_) ->
    {error, "--against-optima wants --input FILE and --optima FILE"}.

each(Text, [{K, Cost} | More], Of, Read) ->
    case Of(Text, K) of
        {ok, Problem} -> each(Text, More, Of, [{Problem, Cost} | Read]);
        {error, _} = Error -> Error
    end;
each(_, [], _, Read) ->
    {ok, lists:reverse(Read)}.

problem(#{input := File} = Values) ->
    read_file("--input", File, fun(Text) -> atoll_bench_aco_file:parse(Text, maps:with([problem, jobs], Values)) end);
problem(#{problem := Number} = Values) ->
    #{jobs := Jobs} = maps:merge(atoll_bench_aco_file:limits(), Values),
    {ok, atoll_bench_aco_sample:problem(Jobs, Number)}.

optimum(#{optimum := Cost}) ->
    {ok, Cost};
optimum(#{optima := File, problem := Number}) ->
    case read_file("--optima", File, fun atoll_bench_aco_file:parse_optima/1) of
        {ok, Costs} when Number =< length(Costs) ->
            {ok, lists:nth(Number, Costs)};
        {ok, Costs} ->
            {error, io_lib:format("--optima ~ts has ~b costs, and none for problem ~b", [File, length(Costs), Number])};
        {error, _} = Error ->
            Error
    end;
optimum(_) ->
    {ok, none}.

read_file(Flag, File, Parse) ->
    case read_bytes(File) of
        {ok, Text} when byte_size(Text) > ?MOST_BYTES ->
            {error, io_lib:format("~ts ~ts is larger than ~ts bytes", [Flag, File, atoll_cli_table:count(?MOST_BYTES)])};
        {ok, Text} ->
            case Parse(Text) of
                {ok, Value} -> {ok, Value};
                {error, Reason} -> {error, [Flag, $\s, File, $\s, atoll_bench_aco_file:format_error(Reason)]}
            end;
        {error, Reason} ->
            {error, [Flag, $\s, File, " cannot be read: ", file:format_error(Reason)]}
    end.

%% A byte more than is read at most, whatever the file is.
read_bytes(Name) ->
    case file:open(Name, [read, raw, binary]) of
        {ok, File} ->
            Read = read_on(File, ?MOST_BYTES + 1, []),
            _ = file:close(File),
            Read;
        {error, _} = Error ->
            Error
    end.

%% A pipe gives less at a time than it is asked for.
read_on(File, Left, Chunks) ->
    case file:read(File, min(Left, ?CHUNK_BYTES)) of
        {ok, Chunk} when byte_size(Chunk) < Left -> read_on(File, Left - byte_size(Chunk), [Chunk | Chunks]);
        {ok, Chunk} -> {ok, iolist_to_binary(lists:reverse(Chunks, [Chunk]))};
        eof -> {ok, iolist_to_binary(lists:reverse(Chunks))};
        {error, _} = Error -> Error
    end.
