%% SPDX-License-Identifier: Apache-2.0
%% @doc One client's behaviour, pure: when it shows an advertisement and which one, when it is on line, and what it keeps of that.
%% {@link adcounter_client} is its process; the simulator calls it too.
-module(adcounter_phone).

-export([new/3, first/1, pause/1, show/3, look/3, turn/1, shown/1, seen_at/1]).

-export_type([phone/0]).

-record(phone, {
    name :: node(),
    impression_ms :: pos_integer(),
    offline :: non_neg_integer(),
    offline_ms :: pos_integer(),
    report :: boolean(),
    is_online = true :: boolean(),
    %% When it has shown one, newest first, and when it saw that none is left.
    shown = [] :: [integer()],
    seen_at = never :: never | integer(),
    rand :: rand:state()
}).

-opaque phone() :: #phone{}.

%% @doc One that has shown nothing.
-spec new(node(), Seed :: integer(), adcounter_options:options()) -> phone().
new(Name, Seed, #{impression_ms := ImpressionMs, offline := Offline, offline_ms := OfflineMs, report := Report}) ->
    #phone{
        name = Name, impression_ms = ImpressionMs, offline = Offline, offline_ms = OfflineMs, report = Report, rand = rand:seed_s(exsss, Seed)
    }.

%% @doc When it shows the first one, within an interval, so that not all clients go in step; in milliseconds.
-spec first(phone()) -> {pos_integer(), phone()}.
first(#phone{impression_ms = Ms, rand = Rand0} = Phone) ->
    {First, Rand} = rand:uniform_s(Ms, Rand0),
    {First, Phone#phone{rand = Rand}}.

%% @doc How long it then waits before the next one.
-spec pause(phone()) -> {pos_integer(), phone()}.
pause(#phone{impression_ms = Ms, rand = Rand0} = Phone) ->
    {Extra, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    {max(1, Ms - Ms div 4 + Extra - 1), Phone#phone{rand = Rand}}.

%% @doc It shows one of those that may be shown, if there is one. Of none it waits for some; when there were some and all are disabled, it is
%% done.
-spec show(adcounter_program:read(), Now :: integer(), phone()) -> {showing | done, [adcounter_program:change()], phone()}.
show(_, _, #phone{seen_at = At} = Phone) when At =/= never ->
    {done, [], Phone};
show(Read, Now, #phone{shown = Shown, rand = Rand0} = Phone) ->
    case adcounter_program:to_show(Read) of
        [] ->
            look(Read, Now, Phone);
        Ads ->
            {N, Rand} = rand:uniform_s(length(Ads), Rand0),
            {showing, adcounter_program:shown(lists:nth(N, Ads), Read), Phone#phone{shown = [Now | Shown], rand = Rand}}
    end.

%% @doc What may be shown has changed: if that is nothing any more, it is done, and reports that once.
-spec look(adcounter_program:read(), Now :: integer(), phone()) -> {showing | done, [adcounter_program:change()], phone()}.
look(Read, Now, #phone{name = Name, report = Report, seen_at = never} = Phone) ->
    case adcounter_program:is_over(Read) of
        true -> {done, [Change || Report, Change <- adcounter_program:seen(Name)], Phone#phone{seen_at = Now}};
        false -> {showing, [], Phone}
    end;
look(_, _, Phone) ->
    {done, [], Phone}.

%% @doc It goes off line, or on line again, and for how long. One that never is off line stays on line for good.
-spec turn(phone()) -> {IsOnline :: boolean(), Ms :: pos_integer() | infinity, phone()}.
turn(#phone{offline = 0} = Phone) ->
    {true, infinity, Phone};
turn(#phone{is_online = WasOnline, offline = Percent, offline_ms = Ms, rand = Rand0} = Phone) ->
    Mean =
        case WasOnline of
            true -> Ms;
            false -> max(1, Ms * (100 - Percent) div Percent)
        end,
    {N, Rand} = rand:uniform_s(Mean, Rand0),
    {not WasOnline, max(1, Mean div 2 + N), Phone#phone{is_online = not WasOnline, rand = Rand}}.

%% @doc When it has shown one, newest first.
-spec shown(phone()) -> [integer()].
shown(#phone{shown = Shown}) -> Shown.

%% @doc When it saw that all are disabled.
-spec seen_at(phone()) -> never | integer().
seen_at(#phone{seen_at = At}) -> At.
