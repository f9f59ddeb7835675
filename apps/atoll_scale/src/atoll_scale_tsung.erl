%% SPDX-License-Identifier: Apache-2.0
%% @doc A scenario of Tsung as a load ({@link atoll_tsung}): what stands in its file, with the level, the seconds and the switches
%% filled in, as in `arrivalrate="{level}"'. `told/1' is pure.
%%
%% A request that Tsung counts as an error has failed, and one whose answer has a status of 400 or more. Single times are there where
%% the scenario has `backend="fullstats"'.
-module(atoll_scale_tsung).

-export([check/1, run/3, told/1]).

%% @doc What can be known to be wrong with the scenario of a description before anything is started.
-spec check(atoll_scale_plan:plan()) -> ok | {error, unicode:chardata()}.
check(#{load := {tsung, Name}, dir := Dir, from := From, seconds := Seconds} = Plan) ->
    File = filename:join(Dir, Name),
    case file:read_file(File) of
        {ok, Bytes} ->
            Text = unicode:characters_to_list(Bytes),
            case is_list(Text) andalso {has("{level}", Text), has("fullstats", Text) orelse not is_map_key(p99_ms, Plan)} of
                false -> {error, [File, ": it is not UTF-8"]};
                {false, _} -> {error, [File, ": it has no {level}, which is what it is run with, as in arrivalrate=\"{level}\""]};
                {_, false} -> {error, [File, ": the key p99_ms takes single times, which Tsung keeps with backend=\"fullstats\" alone"]};
                {true, true} -> scenario(File, filled(Text, From, Seconds, atoll_scale_plan:settings(Plan)))
            end;
        {error, Reason} ->
            {error, [File, ": ", file:format_error(Reason)]}
    end.

has(Part, Text) -> string:find(Text, Part) =/= nomatch.

scenario(File, Text) ->
    case atoll_tsung:check({text, Text}) of
        ok -> ok;
        {error, Sentence} -> {error, [File, ": ", Sentence]}
    end.

filled(Text, Level, Seconds, Settings) -> atoll_scale_plan:filled(Text, Settings#{level => Level, seconds => Seconds}).

%% @doc Runs it. All that it starts ends with the caller.
-spec run(pos_integer(), pos_integer(), atoll_scale_system:system()) -> {ok, atoll_scale_driver:load()} | {error, unicode:chardata()}.
run(Level, Seconds, System) ->
    #{load := {tsung, Name}, dir := Dir} = Plan = atoll_scale_system:plan(System),
    {ok, Bytes} = file:read_file(filename:join(Dir, Name)),
    Text = filled(unicode:characters_to_list(Bytes), Level, Seconds, atoll_scale_system:settings(System)),
    Cookie = maps:from_list([{cookie_file, filename:join(Dir, File)} || #{cookie_file := File} <- [Plan]]),
    case atoll_tsung:run(Cookie#{scenario => {text, Text}, out => atoll_scale_programs:folder(atoll_scale_system:session(System))}) of
        {ok, #{runs := [Log]}} -> {ok, told(Log)};
        {error, _} = Error -> Error
    end.

%% @doc What came of it.
-spec told(atoll_tsung_log:log()) -> atoll_scale_driver:load().
told(#{counts := Counts} = Log) ->
    #{requests := Ended, failed := Errors, rate := Rate} = atoll_tsung_result:measures(Log),
    Reasons = maps:from_list([{Word, N} || {Name, N} <- maps:to_list(Counts), N > 0, {true, Word} <- [reason(Name)]]),
    %% A connection that was not made has no request that ended.
    Failures = Errors + lists:sum([N || {<<C, _, _>>, N} <- maps:to_list(Reasons), C =:= $4 orelse C =:= $5]),
    maps:merge(
        #{requests => max(Ended, Failures), failures => Failures, refused => maps:get(<<"econnrefused">>, Reasons, 0), per_second => Rate, reasons => Reasons},
        maps:from_list([{Key, atoll_histogram:percentile(Times, Percent) / 1.0e6} || #{times := Times} <- [Log], {Key, Percent} <- [{p50_ms, 50}, {p99_ms, 99}]])
    ).

reason(<<"error_connect_", Word/binary>>) -> {true, Word};
reason(<<"error_", Word/binary>>) -> {true, Word};
%% A status of HTTP.
reason(<<C, _, _>> = Status) when C =:= $4; C =:= $5 -> {true, Status};
reason(_) -> false.
