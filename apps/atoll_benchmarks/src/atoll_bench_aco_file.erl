%% SPDX-License-Identifier: Apache-2.0
%% @doc Problems of the ant colonies from text. Two forms are read, numbers between white space in
%% both. A plain file has the number of jobs, then all durations, all weights, all due dates. A
%% collection, as OR-Library's, has problems one after another without that number, which the caller
%% says. A plain file has 3n + 1 numbers and a collection a multiple of 3, so neither is taken for
%% the other.
-module(atoll_bench_aco_file).

-export([parse/2, parse_optima/1, limits/0, format_error/1]).

-export_type([options/0, limits/0, reason/0]).

-type options() :: #{
    %% which problem of a collection, 1 unless told; a plain file has one
    problem => pos_integer(),
    %% jobs of each problem of a collection, 40 unless told
    jobs => pos_integer()
}.

-type limits() :: #{
    %% jobs of a problem: unless told, and at most
    jobs := pos_integer(),
    most_jobs := pos_integer(),
    %% what a schedule of a problem that is read costs at most
    most_cost := pos_integer()
}.

-type line() :: pos_integer().

-type reason() ::
    not_text
    | no_numbers
    | {not_a_number, line(), Text :: string()}
    | {negative, line(), integer()}
    | {too_great, line(), Text :: string(), Most :: pos_integer()}
    | {no_duration, aco_problem:job_number()}
    | {too_many_jobs, integer()}
    %% a plain file
    | {wrong_count, Jobs :: integer(), Count :: pos_integer()}
    %% a collection
    | {no_whole_problems, Jobs :: pos_integer(), Count :: pos_integer()}
    | {no_such_problem, Asked :: pos_integer(), Has :: pos_integer()}.

-define(JOBS, 40).
%% The pheromone has the square of it.
-define(MOST_JOBS, 2000).
%% Durations, weights and due dates. The costs of up to 700 such jobs are whole numbers that one
%% word holds; those of more are as exact, and slower to count with.
-define(GREATEST, 1000000).
%% All jobs done after all others, and with the greatest weight.
-define(MOST_COST, (?MOST_JOBS * ?MOST_JOBS * ?GREATEST * ?GREATEST)).

%% @doc Reads a problem.
-spec parse(unicode:chardata(), options()) -> {ok, aco_problem:problem()} | {error, reason()}.
parse(Text, Options) ->
    Asked = maps:get(problem, Options, 1),
    maybe_then(numbers(Text, ?GREATEST), fun(Numbers) ->
        maybe_then(cut(Numbers, length(Numbers), Options), fun({Size, Problems}) ->
            case Asked =< length(Numbers) div (3 * Size) of
                true -> of_numbers(Size, lists:nthtail((Asked - 1) * 3 * Size, Problems));
                false -> {error, {no_such_problem, Asked, length(Numbers) div (3 * Size)}}
            end
        end)
    end).

%% The size of the problems, and their numbers.
cut([Size | Rest], Count, _) when Count =:= 3 * Size + 1, Size > 0 ->
    bounded(Size, Rest);
cut([Size | _], Count, _) when Count rem 3 =:= 1 ->
    {error, {wrong_count, Size, Count}};
cut(Numbers, Count, Options) ->
    case maps:get(jobs, Options, ?JOBS) of
        Size when Count rem (3 * Size) =:= 0 -> bounded(Size, Numbers);
        Size -> {error, {no_whole_problems, Size, Count}}
    end.

bounded(Size, _) when Size > ?MOST_JOBS -> {error, {too_many_jobs, Size}};
bounded(Size, Numbers) -> {ok, {Size, Numbers}}.

of_numbers(Size, Numbers) ->
    {Durations, Others} = lists:split(Size, Numbers),
    {Weights, Rest} = lists:split(Size, Others),
    aco_problem:new(lists:zip3(Durations, Weights, lists:sublist(Rest, Size))).

%% @doc Reads the least known costs of the problems of a collection, in their order.
-spec parse_optima(unicode:chardata()) -> {ok, [aco_schedule:cost(), ...]} | {error, reason()}.
parse_optima(Text) ->
    numbers(Text, ?MOST_COST).

%% @doc What is read at most, and the jobs that a problem of a collection has unless told.
-spec limits() -> limits().
limits() ->
    #{jobs => ?JOBS, most_jobs => ?MOST_JOBS, most_cost => ?MOST_COST}.

numbers(Text, Most) ->
    case unicode:characters_to_list(Text) of
        Characters when is_list(Characters) ->
            Lines = string:split(Characters, "\n", all),
            in_lines(lists:zip(lists:seq(1, length(Lines)), Lines), Most, []);
        _ ->
            {error, not_text}
    end.

in_lines([{Number, Line} | Lines], Most, Numbers) ->
    case in_line(string:lexemes(Line, " \t\r\f\v"), Number, Most, Numbers) of
        {ok, More} -> in_lines(Lines, Most, More);
        {error, _} = Error -> Error
    end;
in_lines([], _, []) ->
    {error, no_numbers};
in_lines([], _, Numbers) ->
    {ok, lists:reverse(Numbers)}.

in_line([Text | Texts], Line, Most, Numbers) ->
    try list_to_integer(Text) of
        N when N < 0 -> {error, {negative, Line, N}};
        N when N > Most -> {error, {too_great, Line, Text, Most}};
        N -> in_line(Texts, Line, Most, [N | Numbers])
    catch
        error:badarg -> {error, {not_a_number, Line, Text}}
    end;
in_line([], _, _, Numbers) ->
    {ok, Numbers}.

maybe_then({ok, Value}, Next) -> Next(Value);
maybe_then({error, _} = Error, _) -> Error.

%% @doc What is wrong with the text, in a sentence that goes on after its name.
-spec format_error(reason()) -> unicode:chardata().
format_error(not_text) ->
    "is not text in UTF-8";
format_error(no_numbers) ->
    "has no numbers";
format_error({not_a_number, Line, Text}) ->
    io_lib:format("has \"~ts\" in line ~b where a whole number must be", [string:slice(Text, 0, 40), Line]);
format_error({negative, Line, N}) ->
    io_lib:format("has the negative number ~b in line ~b", [N, Line]);
format_error({too_great, Line, Text, Most}) ->
    io_lib:format("has ~ts in line ~b, and numbers up to ~b are read", [string:slice(Text, 0, 40), Line, Most]);
format_error({no_duration, Number}) ->
    io_lib:format("has a job, the ~b. of its problem, that takes no time", [Number]);
format_error({too_many_jobs, Jobs}) ->
    io_lib:format("has problems of ~b jobs, and up to ~b are read", [Jobs, ?MOST_JOBS]);
format_error({wrong_count, 0, _}) ->
    "begins with 0, and a problem has one job at least";
format_error({wrong_count, Jobs, Count}) ->
    io_lib:format("begins with ~b, and so many jobs need ~b numbers after it, not ~b", [Jobs, 3 * Jobs, Count - 1]);
format_error({no_whole_problems, Jobs, Count}) ->
    io_lib:format("has ~b numbers, which is no multiple of the ~b that a problem of ~b jobs needs",
                  [Count, 3 * Jobs, Jobs]);
format_error({no_such_problem, Asked, 1}) ->
    io_lib:format("has one problem, and no ~b", [Asked]);
format_error({no_such_problem, Asked, Has}) ->
    io_lib:format("has ~b problems, and no ~b", [Has, Asked]).
