%% @doc The problem that `atoll aco' is to solve, and the cost that it may reach:
%% read from files, or drawn where no file is named.
-module(atoll_cli_aco_problem).

-export([options/0, read/1]).

-define(MOST_JOBS, 2000).
-define(MOST_PROBLEMS, 1000000).
-define(JOBS, 40).

%% @doc The options that say which.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => input, value => "FILE",
          help => "the problem, plain or in a collection as OR-Library's (one is drawn unless told)"},
        #{name => problem, value => "K", default => "1", read => atoll_cli_read:whole(1, ?MOST_PROBLEMS),
          help => "which problem of the collection, or of those drawn"},
        #{name => jobs, value => "N", read => atoll_cli_read:whole(1, ?MOST_JOBS),
          help => io_lib:format("jobs of each problem there, or of the one drawn (~b unless told)", [?JOBS])},
        #{name => optimum, value => "COST", read => atoll_cli_read:whole(0, 1 bsl 50),
          help => "the least cost, if it is known"},
        #{name => optima, value => "FILE", help => "the least cost of each problem of the collection"}
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

problem(#{input := File} = Values) ->
    read_file("--input", File, fun(Text) -> aco_problem:parse(Text, maps:with([problem, jobs], Values)) end);
problem(#{problem := Number} = Values) ->
    {ok, aco_sample:problem(maps:get(jobs, Values, ?JOBS), Number)}.

optimum(#{optimum := Cost}) ->
    {ok, Cost};
optimum(#{optima := File, problem := Number}) ->
    case read_file("--optima", File, fun aco_problem:parse_optima/1) of
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
    case file:read_file(File) of
        {ok, Text} ->
            case Parse(Text) of
                {ok, Value} -> {ok, Value};
                {error, Reason} -> {error, [Flag, $\s, File, $\s, aco_problem:format_error(Reason)]}
            end;
        {error, Reason} ->
            {error, [Flag, $\s, File, " cannot be read: ", file:format_error(Reason)]}
    end.
