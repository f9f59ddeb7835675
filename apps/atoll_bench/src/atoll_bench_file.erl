%% SPDX-License-Identifier: Apache-2.0
%% @doc The file of a run: one JSON object a line, so that whatever ends a run
%% leaves what was measured so far.
%%
%% The first line says what was measured, on what and how, with the version of this
%% form under the key `atoll_bench'; then a line for each round, or for a point that
%% failed; the last one says how it ended:
%% ```
%% {"atoll_bench":1,"benchmark":"dist","points":[{"size":100,...},...],...}
%% {"point":0,"round":1,"start":1,"at_ms":2113,"wall_ms":1004,"others_cpu":0.02,"values":{...},"histograms":{...}}
%% {"point":1,"error":"..."}
%% {"end":"complete"}
%% '''
%% A value that is a median, such as that of all nodes of a cluster, stands in the
%% round's `values'; what it is the median of, in the same order every time, stands
%% under the same name in its `samples'.
%%
%% A file without the last line is partial, and so is one whose last line is cut:
%% that line is left out. A fault anywhere else is an error.
-module(atoll_bench_file).

-export([create/2, append/2, close/2, read/1, format_error/1]).

-export_type([file/0, run/0, status/0, error/0]).

-opaque file() :: file:io_device().

-type status() :: complete | partial.

-type run() :: #{
    file := file:filename_all(),
    %% The first line, keys as binaries.
    header := map(),
    %% In the order in which they were measured.
    rounds := [map()],
    %% Of points that failed.
    errors := [map()],
    status := status()
}.

-type error() :: {file:filename_all(), reason()}.

-type reason() ::
    {file, file:posix() | badarg | terminated | system_limit}
    | empty
    | not_a_run
    | too_large
    | {version, term()}
    | {line, pos_integer(), broken | unexpected}.

-define(VERSION, 1).
%% Hours of rounds with all of their histograms are a few MB.
-define(MAX_BYTES, 1 bsl 26).

%% @doc A new file; one that is there already is not touched.
-spec create(file:filename_all(), Header :: map()) -> {ok, file()} | {error, error()}.
create(Name, Header) ->
    First = line(Header#{atoll_bench => ?VERSION}),
    case file:open(Name, [write, exclusive, raw]) of
        {ok, File} ->
            case file:write(File, First) of
                ok ->
                    {ok, File};
                {error, Reason} ->
                    _ = file:close(File),
                    %% It is ours, and would be in the way of the next try.
                    _ = file:delete(Name),
                    {error, {Name, {file, Reason}}}
            end;
        {error, Reason} ->
            {error, {Name, {file, Reason}}}
    end.

%% @doc One line more, on the disk's way when this returns.
-spec append(file(), map()) -> ok | {error, file:posix() | badarg | terminated}.
append(File, Line) ->
    file:write(File, line(Line)).

line(Line) ->
    [atoll_bench_json:encode(Line), $\n].

%% @doc The run is over.
-spec close(file(), status()) -> ok | {error, file:posix() | badarg | terminated}.
close(File, complete) ->
    case append(File, #{'end' => complete}) of
        ok -> file:close(File);
        {error, _} = Error -> Error
    end;
close(File, partial) ->
    file:close(File).

%% @doc Reads what was measured; of a file without an end no more than the bound.
-spec read(file:filename_all()) -> {ok, run()} | {error, error()}.
read(Name) ->
    case text(Name) of
        {ok, Text} ->
            case parse(binary:split(Text, <<"\n">>, [global])) of
                {ok, Run} -> {ok, Run#{file => Name}};
                {error, Reason} -> {error, {Name, Reason}}
            end;
        {error, Reason} ->
            {error, {Name, Reason}}
    end.

text(Name) ->
    case file:open(Name, [read, raw, binary]) of
        {ok, Device} ->
            Text = chunks(Device, []),
            _ = file:close(Device),
            Text;
        {error, Reason} ->
            {error, {file, Reason}}
    end.

chunks(Device, Read) ->
    case {iolist_size(Read) > ?MAX_BYTES, file:read(Device, 1 bsl 20)} of
        {true, _} -> {error, too_large};
        {false, {ok, Bytes}} -> chunks(Device, [Read, Bytes]);
        {false, eof} -> {ok, iolist_to_binary(Read)};
        {false, {error, Reason}} -> {error, {file, Reason}}
    end.

%% What follows the last line feed is nothing, or a line that was cut.
parse([<<>>]) ->
    {error, empty};
parse(Lines) ->
    Whole = lists:droplast(Lines),
    case Whole of
        [] ->
            {error, not_a_run};
        [First | Rest] ->
            case atoll_bench_json:decode(First) of
                {ok, #{<<"atoll_bench">> := ?VERSION} = Header} -> header(Header, Rest);
                {ok, #{<<"atoll_bench">> := Version}} -> {error, {version, Version}};
                _ -> {error, not_a_run}
            end
    end.

header(Header, Rest) ->
    case is_whole(Header) of
        true ->
            Points = length(map_get(<<"points">>, Header)),
            lines(Rest, 2, Points, #{header => Header, rounds => [], errors => [], status => partial});
        false ->
            {error, {line, 1, unexpected}}
    end.

%% Whoever has read a file may take for granted what is looked at here.
is_whole(#{
    <<"benchmark">> := Name, <<"variant">> := Variant, <<"parameters">> := Parameters, <<"metrics">> := Metrics,
    <<"points">> := Points
}) ->
    is_binary(Name) andalso is_binary(Variant) andalso
        each(fun is_parameter/1, Parameters) andalso
        each(fun is_metric/1, Metrics) andalso
        each(fun(Point) -> is_point(Point, Parameters) end, Points);
is_whole(_Header) ->
    false.

each(Is, List) ->
    is_list(List) andalso lists:all(Is, List).

is_parameter(#{<<"name">> := Name}) -> is_binary(Name);
is_parameter(_) -> false.

is_metric(#{<<"name">> := Name, <<"label">> := Label, <<"unit">> := Unit, <<"better">> := Better, <<"kind">> := Kind}) ->
    is_binary(Name) andalso is_binary(Label) andalso is_binary(Unit) andalso
        lists:member(Better, [<<"more">>, <<"less">>]) andalso lists:member(Kind, [<<"value">>, <<"latency">>]);
is_metric(_) ->
    false.

%% Of each parameter one value.
is_point(Point, Parameters) ->
    is_map(Point) andalso
        lists:sort(maps:keys(Point)) =:= lists:sort([Name || #{<<"name">> := Name} <- Parameters]) andalso
        lists:all(fun(Value) -> is_number(Value) orelse is_binary(Value) end, maps:values(Point)).

is_round(Values, Histograms) ->
    is_map(Values) andalso is_map(Histograms) andalso
        lists:all(fun is_number/1, maps:values(Values)) andalso
        lists:all(fun(Export) -> atoll_histogram:import(Export) =/= error end, maps:values(Histograms)).

lines([], _Number, _Points, #{rounds := Rounds, errors := Errors} = Run) ->
    {ok, Run#{rounds := lists:reverse(Rounds), errors := lists:reverse(Errors)}};
lines([Line | Lines], Number, Points, #{rounds := Rounds, errors := Errors} = Run) ->
    case atoll_bench_json:decode(Line) of
        {ok, #{<<"end">> := <<"complete">>}} when Lines =:= [] ->
            lines([], Number, Points, Run#{status := complete});
        {ok, #{<<"point">> := Point, <<"error">> := Error} = Failed} when
            is_integer(Point), Point >= 0, Point < Points, is_binary(Error)
        ->
            lines(Lines, Number + 1, Points, Run#{errors := [Failed | Errors]});
        {ok, #{<<"point">> := Point, <<"values">> := Values, <<"histograms">> := Histograms} = Round} when
            is_integer(Point), Point >= 0, Point < Points
        ->
            case is_round(Values, Histograms) of
                true -> lines(Lines, Number + 1, Points, Run#{rounds := [Round | Rounds]});
                false -> {error, {line, Number, unexpected}}
            end;
        {ok, _} ->
            {error, {line, Number, unexpected}};
        {error, _} ->
            {error, {line, Number, broken}}
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({Name, Reason}) ->
    [io_lib:format("~ts: ", [Name]), reason(Reason)].

reason({file, Reason}) ->
    file:format_error(Reason);
reason(empty) ->
    "the file is empty";
reason(not_a_run) ->
    "this is not the file of a run";
reason(too_large) ->
    io_lib:format("it is larger than ~b bytes", [?MAX_BYTES]);
reason({version, Version}) ->
    io_lib:format("this is a result file of version ~tp, and only version ~b can be read", [Version, ?VERSION]);
reason({line, Number, broken}) ->
    io_lib:format("line ~b is no JSON", [Number]);
reason({line, Number, unexpected}) ->
    io_lib:format("line ~b is none of a result file", [Number]).
