%% SPDX-License-Identifier: Apache-2.0
%% @doc The part of the agent that runs in whoever logs: a primary filter of logger, which lets everything through, counts events by
%% level and takes the text of some. It is put into a node with {@link atoll_watch_agent}, and as that one stands alone.
%%
%% A filter and no handler, since for each handler logger searches a table once more for each event: that costs what all of the rest costs.
%%
%% Promised: it never waits. Between two looks it takes the text of ten events of level `error' and above, of ten
%% warnings, and ten reports of supervisors; all others it counts. Taking a text costs the same however large
%% the event is: no more of it than so many parts is looked at, before anything is written. A function
%% that a user has written to format his reports is not called.
%%
%% Not promised: that a text is as the node's own log has it. What is large or deep is cut.
-module(atoll_watch_agent_log).

-export([new/0, opened/1, counts/1, log/2, text/1]).
-export([seen/4, standing/2]).

-export_type([places/0, taken/0, supervisors/0]).

-type places() :: {Agent :: pid(), Counts :: counters:counters_ref(), Places :: atomics:atomics_ref()}.

%% What the agent gets as a message. Times are system times, in microseconds.
-type taken() ::
    {?MODULE, said, logger:level(), Time :: integer(), Text :: binary()}
    | {?MODULE, supervisor, child_terminated | shutdown, Name :: binary()}.

%% When children ended in the last minute, newest first, and when it gave up; in seconds.
-type supervisors() :: #{Name :: binary() => {Ended :: [integer()], GaveUp :: integer() | none}}.

-define(LEVELS, [emergency, alert, critical, error, warning, notice, info, debug]).
%% Counters: one for each level, and the events of `warning' and above whose text was taken.
-define(TAKEN, 9).
-define(ERROR, 4).
-define(WARNING, 5).
%% Whose places these are.
-define(SEVERE, 1).
-define(WARNINGS, 2).
-define(SUPERVISORS, 3).
-define(PLACES, 10).

%% Of a text, in characters; of an event, in parts; of a binary in it, in bytes.
-define(TEXT, 1000).
-define(PARTS, 2000).
-define(BYTES, 2000).
-define(DEPTH, 20).
%% To write a number takes the square of its digits.
-define(HUGE, (1 bsl 1024)).
-define(NAME, 60).

%% Whose functions format their own reports.
-define(OTP, [supervisor, supervisor_bridge, gen_server, gen_statem, gen_event, proc_lib, application_controller, logger]).

-define(MINUTE_S, 60).
-define(GAVE_UP_S, 600).
-define(MOST_ENDED, 100).
-define(MOST_SUPERVISORS, 20).

%% @doc For the calling process, as what the filter is called with.
-spec new() -> places().
new() ->
    Made = {self(), counters:new(?TAKEN, [write_concurrency]), atomics:new(3, [])},
    ok = opened(Made),
    Made.

%% @doc There is room again.
-spec opened(places()) -> ok.
opened({_, _, Places}) -> lists:foreach(fun(Of) -> atomics:put(Places, Of, ?PLACES) end, [?SEVERE, ?WARNINGS, ?SUPERVISORS]).

%% @doc How many events there were of each level, and how many of `warning' and above whose text was not taken.
-spec counts(places()) -> [atoll_watch_agent:reading()].
counts({_, Counts, _}) ->
    Taken = counters:get(Counts, ?TAKEN),
    Events = [{Level, counters:get(Counts, number(Level))} || Level <- ?LEVELS],
    Told = lists:sum([N || {Level, N} <- Events, number(Level) =< ?WARNING]),
    [{log_left_out, max(0, Told - Taken)} | [{log_events, Level, N} || {Level, N} <- Events]].

number(emergency) -> 1;
number(alert) -> 2;
number(critical) -> 3;
number(error) -> ?ERROR;
number(warning) -> ?WARNING;
number(notice) -> 6;
number(info) -> 7;
number(debug) -> 8.

%% @private Called by whoever logs.
-spec log(logger:log_event(), places()) -> ignore.
log(#{level := Level} = Event, {_, Counts, _} = To) ->
    Number = number(Level),
    ok = counters:add(Counts, Number, 1),
    if
        Number =< ?ERROR ->
            ok = supervisor(Event, To),
            said(?SEVERE, Event, To);
        Number =:= ?WARNING ->
            said(?WARNINGS, Event, To);
        true ->
            ok
    end,
    ignore.

said(Of, #{level := Level} = Event, {Agent, Counts, _} = To) ->
    case is_place(Of, To) of
        true ->
            ok = counters:add(Counts, ?TAKEN, 1),
            Agent ! {?MODULE, said, Level, time(Event), text(Event)},
            ok;
        false ->
            ok
    end.

%% In a flood it is read alone: to write would make all schedulers wait for each other.
is_place(Of, {_, _, Places}) ->
    atomics:get(Places, Of) > 0 andalso atomics:sub_get(Places, Of, 1) >= 0.

time(#{meta := #{time := Time}}) when is_integer(Time) -> Time;
time(#{}) -> erlang:system_time(microsecond).

supervisor(#{msg := {report, #{label := {supervisor, Context}, report := [{supervisor, Of} | _]}}}, {Agent, _, _} = To) when Context =:= child_terminated; Context =:= shutdown ->
    case is_place(?SUPERVISORS, To) of
        true ->
            Agent ! {?MODULE, supervisor, Context, written(Of, ?NAME)},
            ok;
        false ->
            ok
    end;
supervisor(_, _) ->
    ok.

%% Whatever is wrong with an event, who logs it goes on.
written({_, Name}, Most) when is_atom(Name) -> written(Name, Most);
written(Name, Most) -> line(io_lib:format("~0tP", [part(Name), ?DEPTH]), Most).

%% @doc An event as one line.
-spec text(logger:log_event()) -> binary().
text(#{msg := Message} = Event) ->
    try
        line(said(Message, maps:get(meta, Event, #{})), ?TEXT)
    catch
        _:_ ->
            try line(plain(Message), ?TEXT) catch _:_ -> <<"an event that cannot be written">> end
    end.

said({string, String}, _) ->
    said({"~ts", [String]}, none);
said({report, Report}, #{report_cb := Write}) when is_function(Write) ->
    case lists:member(element(2, erlang:fun_info(Write, module)), ?OTP) andalso erlang:fun_info(Write, type) =:= {type, external} of
        true when is_function(Write, 1) -> said(Write(part(Report)), none);
        true when is_function(Write, 2) -> Write(part(Report), #{depth => ?DEPTH, chars_limit => ?TEXT, single_line => true});
        _ -> plain(Report)
    end;
said({report, Report}, _) ->
    plain(Report);
said({Format, Args}, _) ->
    io_lib:build_text([narrow(Spec) || Spec <- io_lib:scan_format(part(Format), part(Args))], [{chars_limit, ?TEXT}]).

narrow(#{width := Width, precision := Precision} = Spec) -> Spec#{width := narrow(Width), precision := narrow(Precision)};
narrow(N) when is_integer(N) -> min(N, ?TEXT);
narrow(Other) -> Other.

plain(Term) -> io_lib:format("~0tP", [part(Term), ?DEPTH], [{chars_limit, ?TEXT}]).

%% So many characters, and none that ends a line.
line(Text, Most) ->
    Chars = [if C >= 32, C =/= 127 -> C; true -> $\s end || C <- unicode:characters_to_list(Text)],
    <<_/binary>> = unicode:characters_to_binary(lists:sublist(squeezed(Chars), Most)).

squeezed([$\s, $\s | Chars]) -> squeezed([$\s | Chars]);
squeezed([C | Chars]) -> [C | squeezed(Chars)];
squeezed([]) -> [].

%% As much of a term as may be looked at. A part of it gets half of what is left, so that one that is large leaves
%% room for the next.
part(Term) ->
    {Part, _} = part(Term, ?PARTS),
    Part.

part(_, Left) when Left =< 0 -> {'...', 0};
part(Binary, Left) when is_binary(Binary), byte_size(Binary) > ?BYTES ->
    Begun = binary:part(Binary, 0, ?BYTES),
    Whole = case unicode:characters_to_binary(Begun) of {incomplete, Is, _} -> Is; _ -> Begun end,
    {<<Whole/binary, "...">>, Left - 1};
part(Bits, Left) when is_bitstring(Bits), not is_binary(Bits) -> {'...', Left - 1};
part([_ | _] = List, Left) -> elements(List, Left);
part(Tuple, Left) when is_tuple(Tuple) ->
    {Elements, Less} = lists:mapfoldl(fun(N, L) -> half(element(N, Tuple), L) end, Left - 1, lists:seq(1, min(tuple_size(Tuple), Left))),
    {list_to_tuple(Elements), Less};
part(Map, Left) when is_map(Map) ->
    {Pairs, Less} = pairs(maps:next(maps:iterator(Map)), Left - 1),
    {maps:from_list(Pairs), Less};
part(Number, Left) when is_integer(Number), (Number > ?HUGE orelse Number < -?HUGE) -> {'...', Left - 1};
part(Other, Left) -> {Other, Left - 1}.

half(Term, Left) ->
    Most = (Left + 1) div 2,
    {Part, Less} = part(Term, Most),
    {Part, Left - (Most - Less)}.

%% Most lists are text.
elements([C | More], Left) when is_integer(C), C >= 0, C < 16#110000, Left > 0 ->
    {Part, Less} = elements(More, Left - 1),
    {[C | Part], Less};
elements([C | _], Left) when is_integer(C) ->
    {"...", Left};
elements([Term | More], Left) when Left > 0 ->
    {Part, Less} = half(Term, Left),
    {Parts, Least} = elements(More, Less),
    {[Part | Parts], Least};
elements([_ | _], Left) ->
    {['...'], Left};
elements([], Left) ->
    {[], Left};
elements(Tail, Left) ->
    part(Tail, Left).

pairs({Key, Value, More}, Left) when Left > 0 ->
    {Name, Less} = half(Key, Left),
    {Part, Least} = half(Value, Less),
    {Pairs, Last} = pairs(maps:next(More), Least),
    {[{Name, Part} | Pairs], Last};
pairs(_, Left) ->
    {[], Left}.

%% @doc A supervisor has said that a child has ended, or that it gives up, at a time in seconds. Some supervisors
%% are known; what is said of more is left out until there is room.
-spec seen(child_terminated | shutdown, Name :: binary(), Now :: integer(), supervisors()) -> supervisors().
seen(What, Name, Now, Known0) ->
    Known = recent(Now, Known0),
    case Known of
        #{Name := {Ended, GaveUp}} -> Known#{Name := added(What, Now, Ended, GaveUp)};
        #{} when map_size(Known) < ?MOST_SUPERVISORS -> Known#{Name => added(What, Now, [], none)};
        #{} -> Known
    end.

added(child_terminated, Now, Ended, GaveUp) -> {lists:sublist([Now | Ended], ?MOST_ENDED), GaveUp};
added(shutdown, Now, Ended, _) -> {Ended, Now}.

recent(Now, Known) ->
    Recent = maps:map(fun(_, {Ended, GaveUp}) ->
        {[Time || Time <- Ended, Now - Time < ?MINUTE_S], case GaveUp of Time when is_integer(Time), Now - Time < ?GAVE_UP_S -> Time; _ -> none end}
    end, Known),
    maps:filter(fun(_, Is) -> Is =/= {[], none} end, Recent).

%% @doc What stands of them at a time.
-spec standing(Now :: integer(), supervisors()) -> {[atoll_watch_agent:reading()], supervisors()}.
standing(Now, Known) ->
    Recent = recent(Now, Known),
    {lists:append([
        [{supervisor_ended, Name, length(Ended)}, {supervisor_gave_up, Name, case GaveUp of none -> 0; _ -> 1 end}]
     || {Name, {Ended, GaveUp}} <- lists:sort(maps:to_list(Recent))
    ]), Recent}.
