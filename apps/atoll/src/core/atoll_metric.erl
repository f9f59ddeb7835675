%% SPDX-License-Identifier: Apache-2.0
%% @doc Metrics of a program: counters, gauges, meters and histograms, which whoever watches the node reads with its own
%% (`bin/atoll watch').
%%
%% A metric has a name, an atom of 60 characters at most: letters, digits, `_', `.', `-' and `:', and a letter first. There are
%% 200 at most. To make one that is there already does nothing, so a process that is started again may.
%%
%% <dl>
%% <dt>`counter'</dt><dd>counts up: add/2.</dd>
%% <dt>`gauge'</dt><dd>is set, or goes up and down: set/2, add/2.</dd>
%% <dt>`meter'</dt><dd>counts up, and knows how much that was in a second of the last minute: add/2.</dd>
%% <dt>`histogram'</dt><dd>has the mean and percentiles of whole numbers from 0, each at most 1/256 off: record/2, see
%%   {@link atoll_histogram}. It takes 37 KB.</dd>
%% <dt>`{counters, Ref, Index}'</dt><dd>reads a counter that the program has, of the module `counters'.</dd>
%% </dl>
%%
%% Promised: writing asks no process and takes no lock; it looks into a table and adds to an atomic number. Nothing is lost
%% when many write at once.
%%
%% Not promised: that metrics outlive the application `atoll', whose supervisor has the table. A write that cannot be done
%% answers an error, and raises none. telemetry/2 and telemetry_off/1 take no lock: events that have a counter in common
%% are for one process to begin and end.
-module(atoll_metric).

-export([new/2, delete/1, add/2, set/2, record/2, value/1, names/0]).
-export([telemetry/2, telemetry_off/1, format_error/1]).
-export([create_table/0, stopped/0, readings/0, measured/4, marked/3]).

-export_type([name/0, kind/0, value/0, error/0]).

-type name() :: atom().
-type kind() :: counter | gauge | meter | histogram | {counters, counters:counters_ref(), Index :: pos_integer()}.

%% Of a histogram since it was made; without values there are none of them but `count'.
-type value() ::
    number()
    | #{count := integer(), rate := float()}
    | #{count := non_neg_integer(), mean => float(), min => non_neg_integer(), max => non_neg_integer(), p50 => non_neg_integer(),
        p90 => non_neg_integer(), p99 => non_neg_integer(), p999 => non_neg_integer()}.

-type error() ::
    {bad_name, term()}
    | {bad_kind, term()}
    | {bad_value, name(), term()}
    %% There is one of another kind.
    | {is_there, name()}
    | {no_metric, name()}
    %% That is not done to one of its kind.
    | {is_a, counter | gauge | meter | histogram | counters, name()}
    | {bad_event, term()}
    | too_many
    | no_telemetry
    %% The application is not there.
    | not_running.

%% Rows: `{Name, Kind, Ref}', `{{recent, Name}, {Ref, Old, Later}}' of a histogram that was read, `{{event, Event}, Names}'
%% with the counters that telemetry/2 made, and `{?PLACES, Taken}'.
-define(PLACES, {places, taken}).
-define(MOST, 200).
-define(NAME, 60).
-define(MEASUREMENTS, 10).
-define(READ_MS, 60000).

%% A meter has so many slots of so many seconds; those of the last minute are read.
-define(SLOTS, 16).
-define(SLOT_S, 5).
-define(MINUTE, 12).
%% When a slot is, in 20 bits, of 44 that count: it is taken for another one after two months in which nothing was added.
-define(STAMP, 16#fffff).
-define(COUNT, 44).
-define(MOST_MARKS, (1 bsl 31)).
-define(MOST_GAUGE, 1.0e300).

%% @private The caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, set, {read_concurrency, true}]),
    true = ets:insert(?MODULE, {?PLACES, 0}),
    ok.

%% @private The table is gone, or is about to be: nobody is to write into it for telemetry.
-spec stopped() -> ok.
stopped() ->
    case telemetry() of
        {ok, Telemetry} ->
            try
                [Telemetry:detach(Id) || #{id := {?MODULE, _} = Id} <- Telemetry:list_handlers([])]
            of
                _ -> ok
            catch
                %% It may have ended before.
                _:_ -> ok
            end;
        none ->
            ok
    end.

%% The library does not depend on it: it is found at run time.
telemetry() ->
    case code:ensure_loaded(telemetry) of
        {module, Telemetry} -> {ok, Telemetry};
        {error, _} -> none
    end.

%% @doc Makes a metric.
-spec new(name(), kind()) -> ok | {error, error()}.
new(Name, Kind) ->
    case is_name(Name) of
        true -> running(fun() -> case made(Name, Kind) of {ok, _} -> ok; Error -> Error end end);
        false -> {error, {bad_name, Name}}
    end.

is_name(Name) -> is_atom(Name) andalso names_one(atom_to_list(Name)).

names_one(Text) ->
    length(Text) =< ?NAME andalso Text =/= [] andalso is_letter(hd(Text)) andalso lists:all(fun(C) -> is_letter(C) orelse (C >= $0 andalso C =< $9) orelse lists:member(C, "_.-:") end, Text).

is_letter(C) -> (C >= $a andalso C =< $z) orelse (C >= $A andalso C =< $Z).

%% The table is there as long as the application is.
running(Fun) ->
    case ets:whereis(?MODULE) of
        undefined -> {error, not_running};
        _ -> Fun()
    end.

made(Name, Kind) ->
    case {ets:lookup(?MODULE, Name), ref(Kind)} of
        {_, error} -> {error, {bad_kind, Kind}};
        {[{_, counters, Ref}], {counters, Ref}} -> {ok, there};
        {[{_, Kind, _}], _} -> {ok, there};
        {[_], _} -> {error, {is_there, Name}};
        {[], {Is, Ref}} ->
            case is_place_taken() of
                true -> inserted(Name, Kind, {Name, Is, Ref});
                false -> {error, too_many}
            end
    end.

inserted(Name, Kind, Row) ->
    case ets:insert_new(?MODULE, Row) of
        true ->
            {ok, made};
        false ->
            ok = place_given_back(),
            made(Name, Kind)
    end.

%% It is taken before the metric is there, so whoever finds a metric may keep it. Of two that make the same one at once where one
%% place is left, one may be refused; and a process that is killed in between leaves its place taken.
is_place_taken() ->
    [Before, Taken] = ets:update_counter(?MODULE, ?PLACES, [{2, 0}, {2, 1, ?MOST, ?MOST}]),
    Taken > Before.

place_given_back() ->
    _ = ets:update_counter(?MODULE, ?PLACES, -1),
    ok.

ref(counter) -> {counter, counters:new(1, [write_concurrency])};
ref(gauge) -> {gauge, atomics:new(1, [{signed, false}])};
ref(meter) -> {meter, {counters:new(1, [write_concurrency]), atomics:new(?SLOTS, [{signed, false}])}};
ref(histogram) -> {histogram, atoll_histogram:new(few)};
ref({counters, Ref, Index}) when is_integer(Index), Index > 0 ->
    try counters:info(Ref) of
        #{size := Size} when Index =< Size -> {counters, {Ref, Index}};
        #{} -> error
    catch error:_ -> error
    end;
ref(_) -> error.

%% @doc There is such a metric no more.
-spec delete(name()) -> ok | {error, not_running}.
delete(Name) ->
    running(fun() ->
        %% In this order: who reads it keeps nothing of a metric that is no more there.
        lists:foreach(fun(_) -> place_given_back() end, ets:take(?MODULE, Name)),
        true = ets:delete(?MODULE, {recent, Name}),
        ok
    end).

%% @doc Adds to a counter or a meter, whose values only go up, or to a gauge.
-spec add(name(), number()) -> ok | {error, error()}.
add(Name, N) ->
    case found(Name) of
        {counter, Ref} when is_integer(N), N >= 0, N < 1 bsl 62 -> counters:add(Ref, 1, N);
        {meter, {Ref, Slots}} when is_integer(N), N >= 0, N =< ?MOST_MARKS ->
            ok = counters:add(Ref, 1, N),
            marked(Slots, slot(), N);
        {gauge, Ref} when is_number(N), N =< ?MOST_GAUGE, N >= -?MOST_GAUGE -> raised(Name, Ref, N);
        Other -> refused(Other, Name, N, [counter, meter, gauge])
    end.

%% @doc Sets a gauge.
-spec set(name(), number()) -> ok | {error, error()}.
set(Name, N) ->
    case found(Name) of
        {gauge, Ref} when is_number(N), N =< ?MOST_GAUGE, N >= -?MOST_GAUGE -> atomics:put(Ref, 1, bits(N));
        Other -> refused(Other, Name, N, [gauge])
    end.

%% @doc Records a value in a histogram.
-spec record(name(), non_neg_integer()) -> ok | {error, error()}.
record(Name, N) ->
    case found(Name) of
        {histogram, Ref} when is_integer(N), N >= 0 -> atoll_histogram:record(N, Ref);
        Other -> refused(Other, Name, N, [histogram])
    end.

found(Name) ->
    try ets:lookup(?MODULE, Name) of
        [{_, Kind, Ref}] -> {Kind, Ref};
        _ -> none
    catch
        error:badarg -> not_running
    end.

refused(not_running, _, _, _) -> {error, not_running};
refused(none, Name, _, _) -> {error, {no_metric, Name}};
refused({Kind, _}, Name, N, Kinds) ->
    case lists:member(Kind, Kinds) of
        true -> {error, {bad_value, Name, N}};
        false -> {error, {is_a, Kind, Name}}
    end.

%% A gauge is the bits of a float.

bits(N) ->
    <<Bits:64>> = <<N:64/float>>,
    Bits.

number(Bits) ->
    <<N:64/float>> = <<Bits:64>>,
    case trunc(N) of
        Whole when Whole == N -> Whole;
        _ -> N
    end.

raised(Name, Ref, By) ->
    Before = atomics:get(Ref, 1),
    case number(Before) + By of
        Sum when Sum =< ?MOST_GAUGE, Sum >= -?MOST_GAUGE ->
            case atomics:compare_exchange(Ref, 1, Before, bits(Sum)) of
                ok -> ok;
                _ -> raised(Name, Ref, By)
            end;
        _ ->
            {error, {bad_value, Name, By}}
    end.

%% A slot of a meter is when it is, and what was added then, in one number, so that nobody adds to a slot
%% that another one empties.

slot() -> erlang:monotonic_time(second) div ?SLOT_S.

stamp(Slot) -> Slot band ?STAMP.
place(Slot) -> Slot band (?SLOTS - 1) + 1.

%% @private
-spec marked(atomics:atomics_ref(), Slot :: integer(), N :: non_neg_integer()) -> ok.
marked(Slots, Slot, N) ->
    Stamp = stamp(Slot),
    case atomics:get(Slots, place(Slot)) of
        Is when Is bsr ?COUNT =:= Stamp ->
            atomics:add(Slots, place(Slot), N);
        Old ->
            case atomics:compare_exchange(Slots, place(Slot), Old, Stamp bsl ?COUNT bor N) of
                ok -> ok;
                _ -> marked(Slots, Slot, N)
            end
    end.

rate(Slots, Now) ->
    lists:sum([
        Is band (1 bsl ?COUNT - 1)
     || Slot <- lists:seq(Now - ?MINUTE, Now - 1), Is <- [atomics:get(Slots, place(Slot))], Is bsr ?COUNT =:= stamp(Slot)
    ]) / (?MINUTE * ?SLOT_S).

%% @doc What a metric says.
-spec value(name()) -> {ok, value()} | {error, error()}.
value(Name) ->
    case found(Name) of
        {histogram, Ref} -> {ok, summary(atoll_histogram:export(Ref))};
        {meter, {_, Slots} = Ref} -> {ok, #{count => count(meter, Ref), rate => rate(Slots, slot())}};
        {gauge, Ref} -> {ok, number(atomics:get(Ref, 1))};
        {Kind, Ref} -> {ok, count(Kind, Ref)};
        Other -> refused(Other, Name, none, [])
    end.

count(counters, {Ref, Index}) -> counters:get(Ref, Index);
count(meter, {Ref, _}) -> counters:get(Ref, 1);
count(counter, Ref) -> counters:get(Ref, 1).

summary(#{count := 0}) ->
    #{count => 0};
summary(#{count := Count} = Export) ->
    maps:from_list([{count, Count}, {mean, atoll_histogram:mean(Export)} | [{Key, atoll_histogram:percentile(Export, P)} || {Key, P} <- percentiles()]]).

percentiles() -> [{min, 0}, {p50, 50}, {p90, 90}, {p99, 99}, {p999, 99.9}, {max, 100}].

%% @doc The metrics that there are, sorted; without the application there are none.
-spec names() -> [name()].
names() ->
    case running(fun() -> ets:select(?MODULE, [{{'$1', '_', '_'}, [], ['$1']}]) end) of
        {error, not_running} -> [];
        Names -> lists:sort(Names)
    end.

%% @private What an agent reads. Of a histogram that is read at least every minute it is what was recorded in the last one to two.
%% A histogram keeps no times: where the last reading was longer ago it is since then, and at the first one all.
-spec readings() -> [{Name :: atom(), Label :: binary(), number()}].
readings() ->
    Now = erlang:monotonic_time(millisecond),
    lists:append([reading(Kind, atom_to_binary(Name), Name, Ref, Now) || Name <- names(), {Kind, Ref} <- [found(Name)]]).

reading(gauge, Label, _, Ref, _) ->
    [{user_gauge, Label, number(atomics:get(Ref, 1))}];
reading(meter, Label, _, {_, Slots} = Ref, _) ->
    [{user_counter, Label, count(meter, Ref)}, {user_rate, Label, rate(Slots, slot())}];
reading(histogram, Label, Name, Ref, Now) ->
    %% This is read first, so that the export is not older.
    Kept = ets:lookup(?MODULE, {recent, Name}),
    Export = atoll_histogram:export(Ref),
    {_, {_, Old}, _} = Recent = recent(Kept, Ref, {Now, Export}),
    true = ets:insert(?MODULE, {{recent, Name}, Recent}),
    %% It may have been deleted before.
    _ = [ets:delete(?MODULE, {recent, Name}) || found(Name) =/= {histogram, Ref}],
    Summary = summary(atoll_histogram:since(Old, Export)),
    [{user_counter, Label, maps:get(count, Export)} |
     [{Metric, Label, Value} || {Metric, Key} <- [{user_mean, mean}, {user_p50, p50}, {user_p90, p90}, {user_p99, p99}, {user_p999, p999}, {user_max, max}], #{Key := Value} <- [Summary]]];
reading(Kind, Label, _, Ref, _) ->
    [{user_counter, Label, count(Kind, Ref)}].

%% What the histogram had at two times, the later one not more than a minute ago. It begins anew with another one of the same name.
recent([{_, {Ref, _, {Then, _} = Later}}], Ref, {Now, _} = Is) when Now - Then >= ?READ_MS -> {Ref, Later, Is};
recent([{_, {Ref, _, _} = Recent}], Ref, _) -> Recent;
recent(_, Ref, {Now, _} = Is) -> {Ref, {Now, atoll_histogram:merge([])}, Is}.

%% @doc Counts an event of the library `telemetry', and sums these measurements of it: `telemetry([shop, order, stop], [duration])'
%% makes the counters `shop.order.stop' and `shop.order.stop.duration'. What is no number, or below 0, is left out of the sum. Ten
%% measurements of one event at most; asked again, the new ones are in place of the old. A counter that is there already is counted on.
-spec telemetry(Event :: [atom(), ...], Measurements :: [atom()]) -> ok | {error, error()}.
telemetry(Event, Measurements) ->
    case is_event(Event) andalso are_atoms(Measurements) andalso length(Measurements) =< ?MEASUREMENTS of
        true ->
            case telemetry() of
                {ok, Telemetry} -> running(fun() -> named(Telemetry, Event, lists:usort(Measurements)) end);
                none -> {error, no_telemetry}
            end;
        false ->
            {error, {bad_event, {Event, Measurements}}}
    end.

is_event(Event) -> are_atoms(Event) andalso Event =/= [].

are_atoms(List) -> is_list(List) andalso [] =:= [Part || Part <- proper(List), not is_atom(Part)].

proper(List) -> try length(List) of _ -> List catch error:badarg -> [List] end.

%% They are atoms only when they are names: an atom takes 255 characters at most, and is never freed.
named(Telemetry, Event, Measurements) ->
    Texts = [text(Event) | [text(Event ++ [Key]) || Key <- Measurements]],
    case [Text || Text <- Texts, not names_one(Text)] of
        [] ->
            ok = telemetry_off(Event),
            attached(Telemetry, Event, Measurements, [list_to_atom(Text) || Text <- Texts]);
        [Text | _] ->
            {error, {bad_name, Text}}
    end.

text(Event) -> lists:flatten(lists:join(".", [atom_to_list(Part) || Part <- Event])).

attached(Telemetry, Event, Measurements, Names) ->
    Answers = [{Name, made(Name, counter)} || Name <- Names],
    Made = [Name || {Name, {ok, made}} <- Answers],
    case [Error || {_, {error, _} = Error} <- Answers] of
        [] ->
            %% One that another event has is not the program's, and goes with the last event that has it.
            Shared = [Name || {Name, {ok, there}} <- Answers, lists:member(Name, of_events())],
            true = ets:insert(?MODULE, {{event, Event}, Made ++ Shared}),
            [Count | Sums] = [Ref || Name <- Names, {counter, Ref} <- [found(Name)]],
            Telemetry:attach({?MODULE, Event}, Event, fun ?MODULE:measured/4, {Count, lists:zip(Measurements, Sums)});
        [Error | _] ->
            lists:foreach(fun delete/1, Made),
            Error
    end.

of_events() -> lists:append(ets:select(?MODULE, [{{{event, '_'}, '$1'}, [], ['$1']}])).

%% @private Called by whoever executes the event.
-spec measured([atom()], map(), map(), {counters:counters_ref(), [{atom(), counters:counters_ref()}]}) -> ok.
measured(_Event, Measurements, _Metadata, {Count, Sums}) ->
    ok = counters:add(Count, 1, 1),
    lists:foreach(fun({Key, Ref}) ->
        case Measurements of
            #{Key := N} when is_number(N), N >= 0, N < 1 bsl 60 -> counters:add(Ref, 1, round(N));
            #{} -> ok
        end
    end, Sums).

%% @doc Counts an event of telemetry no more. The counters that telemetry/2 made for it go, but for those that another event has.
-spec telemetry_off(Event :: [atom(), ...]) -> ok | {error, not_running}.
telemetry_off(Event) ->
    running(fun() ->
        lists:foreach(fun({_, Names}) ->
            _ = [Telemetry:detach({?MODULE, Event}) || {ok, Telemetry} <- [telemetry()]],
            true = ets:delete(?MODULE, {event, Event}),
            lists:foreach(fun delete/1, Names -- of_events())
        end, ets:lookup(?MODULE, {event, Event}))
    end).

%% @doc What is wrong, in a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_name, Name}) -> io_lib:format("~0tP is no name of a metric: that is an atom of a letter and at most 59 letters, digits, _, ., - and :.", [Name, 10]);
format_error({bad_kind, Kind}) -> io_lib:format("~0tP is no kind of metric: there are counter, gauge, meter, histogram and {counters, Ref, Index}.", [Kind, 10]);
format_error({bad_value, Name, N}) -> io_lib:format("~ts does not take ~0tP.", [Name, N, 10]);
format_error({is_there, Name}) -> io_lib:format("There is a metric ~ts of another kind.", [Name]);
format_error({no_metric, Name}) -> io_lib:format("There is no metric ~0tP.", [Name, 10]);
format_error({is_a, Kind, Name}) -> io_lib:format("~ts is a ~ts, to which that is not done.", [Name, Kind]);
format_error({bad_event, What}) -> io_lib:format("~0tP is no event with measurements of telemetry: that is a list of atoms, and one of ten atoms at most.", [What, 10]);
format_error(too_many) -> io_lib:format("There are ~b metrics, and there may be no more.", [?MOST]);
format_error(no_telemetry) -> "The library telemetry is not loaded on this node.";
format_error(not_running) -> "The application atoll is not running on this node.".
