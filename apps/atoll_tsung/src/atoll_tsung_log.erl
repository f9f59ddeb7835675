%% SPDX-License-Identifier: Apache-2.0
%% @doc What Tsung has written of a run: `tsung.log', and every single time where the scenario's backend
%% is `fullstats'.
%%
%% The log has a line for each statistic in each interval: of what has a time how many, mean, deviation,
%% greatest, least, and mean and number of all before; of what is counted how many and how many in all.
%% What is said here is of the whole run, put together from the intervals.
-module(atoll_tsung_log).

-export([find/1, read/1, parse/1, format_error/1]).

-export_type([log/0, sample/0, error/0]).

-type sample() :: #{
    count := non_neg_integer(),
    %% Milliseconds; the deviation is that of all single values.
    mean := float(),
    sd := float(),
    min := number(),
    max := number()
}.

-type log() :: #{
    %% By name: request, connect, page, session, and transactions.
    samples := #{binary() => sample()},
    %% How many in all, by name: users_count, finish_users_count, errors and others.
    counts := #{binary() => number()},
    %% Most users at a time.
    users_max := non_neg_integer(),
    %% From the first interval's end to that of the last in which a user went.
    seconds := non_neg_integer(),
    %% Whether Tsung came to its end.
    complete := boolean(),
    %% Of every single request, in nanoseconds, where that was kept.
    times => atoll_histogram:export()
}.

-type error() :: {file:filename_all(), {file, file:posix() | badarg | terminated | system_limit} | {line, pos_integer()} | empty}.

-define(LOG, "tsung.log").
-define(TIMES, "tsung-fullstats.log").
-define(CHUNK, 1 bsl 20).

%% @doc The folders below these in which Tsung has written logs, in order.
-spec find([file:filename()]) -> [file:filename()].
find(Dirs) ->
    [filename:dirname(File) || Dir <- Dirs, File <- lists:sort([filename:join(Dir, F) || F <- filelib:wildcard("**/" ?LOG, Dir)])].

%% @doc Reads the logs of a folder.
-spec read(file:filename()) -> {ok, log()} | {error, error()}.
read(Dir) ->
    File = filename:join(Dir, ?LOG),
    case file:read_file(File) of
        {ok, Text} ->
            case parse(Text) of
                {ok, Log} -> {ok, with_times(Log, filename:join(Dir, ?TIMES))};
                {error, Reason} -> {error, {File, Reason}}
            end;
        {error, Reason} ->
            {error, {File, {file, Reason}}}
    end.

%% It may be long.
with_times(Log, File) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Device} ->
            Histogram = atoll_histogram:new(few),
            ok = times(file:read(Device, ?CHUNK), <<>>, Device, Histogram),
            ok = file:close(Device),
            case atoll_histogram:count(Histogram) of
                0 -> Log;
                _ -> Log#{times => atoll_histogram:export(Histogram)}
            end;
        {error, _} ->
            Log
    end.

times({ok, Bytes}, Before, Device, Histogram) ->
    Text = <<Before/binary, Bytes/binary>>,
    %% A list of times may go over several lines, and be cut.
    case binary:matches(Text, <<"]}\n">>) of
        [] ->
            times(file:read(Device, ?CHUNK), Text, Device, Histogram);
        Ends ->
            {At, Length} = lists:last(Ends),
            <<Whole:(At + Length)/binary, Rest/binary>> = Text,
            ok = recorded(Whole, Histogram),
            times(file:read(Device, ?CHUNK), Rest, Device, Histogram)
    end;
times(_End, Rest, _Device, Histogram) ->
    recorded(Rest, Histogram).

recorded(Text, Histogram) ->
    case re:run(Text, "\\{sample,\\s*request,\\s*\\[([^\\]]*)\\]", [global, {capture, all_but_first, binary}]) of
        {match, Found} ->
            Times = lists:append([string:lexemes(List, ", \n") || [List] <- Found]),
            lists:foreach(fun(Ms) -> atoll_histogram:record(round(number(Ms) * 1000000), Histogram) end, Times);
        nomatch ->
            ok
    end.

%% @doc The text of `tsung.log'. What stands behind the last line feed is a line that was cut.
-spec parse(binary()) -> {ok, log()} | {error, {line, pos_integer()} | empty}.
parse(Text) ->
    Lines = lists:droplast(binary:split(Text, <<"\n">>, [global])),
    Read = #{samples => #{}, counts => #{}, users_max => 0, seconds => 0, complete => false, first => none, at => 0},
    lines(Lines, 1, Read).

lines([], 1, _Read) ->
    {error, empty};
lines([], _Number, #{samples := Samples} = Read) ->
    {ok, maps:without([first, at], Read#{samples := maps:map(fun(_, Sample) -> whole(Sample) end, Samples)})};
lines([Line | Lines], Number, Read) ->
    try line(string:lexemes(Line, " "), Read) of
        Next -> lines(Lines, Number + 1, Next)
    catch
        error:_ -> {error, {line, Number}}
    end.

line([], Read) ->
    Read;
line([<<"#">>, <<"stats:">>, <<"dump">>, <<"at">>, Text], #{first := First} = Read) ->
    At = binary_to_integer(Text),
    Read#{first := case First of none -> At; _ -> First end, at := At};
line([<<"EndMonitor:", _/binary>>], Read) ->
    Read#{complete := true};
line([<<"stats:">>, <<"users">>, _Now, Max], #{users_max := Before} = Read) ->
    Read#{users_max := max(Before, binary_to_integer(Max))};
line([<<"stats:">>, Name, Now, All], #{counts := Counts, first := First, at := At, seconds := Seconds} = Read) ->
    Until = case {Name, Now} of {<<"finish_users_count">>, N} when N =/= <<"0">> -> At - First; _ -> Seconds end,
    Read#{counts := Counts#{Name => number(All)}, seconds := Until};
line([<<"stats:">>, Name | Numbers], #{samples := Samples} = Read) ->
    [Count, Mean, Sd, Max, Min, _MeanBefore, _CountBefore] = [number(N) || N <- Numbers],
    case Count of
        0 -> Read;
        _ -> Read#{samples := Samples#{Name => together({Count, Mean, Count * Sd * Sd, Max, Min}, maps:get(Name, Samples, none))}}
    end.

%% Chan, Golub and LeVeque: Algorithms for computing the sample variance, 1983.
together(Part, none) ->
    Part;
together({Count1, Mean1, Squares1, Max1, Min1}, {Count2, Mean2, Squares2, Max2, Min2}) ->
    Count = Count1 + Count2,
    Apart = Mean1 - Mean2,
    {
        Count, (Count1 * Mean1 + Count2 * Mean2) / Count, Squares1 + Squares2 + Apart * Apart * Count1 * Count2 / Count,
        max(Max1, Max2), min(Min1, Min2)
    }.

whole({Count, Mean, Squares, Max, Min}) ->
    #{count => Count, mean => float(Mean), sd => math:sqrt(Squares / Count), max => Max, min => Min}.

number(Text) ->
    case string:to_float(Text) of
        {N, <<>>} when is_float(N) -> N;
        _ -> binary_to_integer(Text)
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({File, {file, Reason}}) -> [File, ": ", file:format_error(Reason)];
format_error({File, empty}) -> [File, ": Tsung has written nothing there yet"];
format_error({File, {line, Number}}) -> [File, ": line ", integer_to_list(Number), " is none of Tsung's"].
