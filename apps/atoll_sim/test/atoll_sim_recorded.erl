%% SPDX-License-Identifier: Apache-2.0
%% Recordings for the tests of replays, made by hand: a protocol is run in a time
%% of its own, and what happens is written as the interpreter writes it.
-module(atoll_sim_recorded).

-export([link/1, overlay/1, name/1, tampered/2]).

-define(MAX, 10000000).

%% Wants, a lost connection, one on demand that is closed, and a cut.
link(Path) ->
    Options = #{
        retry_min_ms => 100,
        retry_max_ms => 2000,
        linger_ms => 1000,
        linger_max_ms => 30000,
        on_demand_ms => 60000
    },
    {State, []} = atoll_link_core:init(#{self => n1, seed => 7, options => Options}, 0),
    Used = fun(Uses) -> #{uses => Uses, traffic => 10, payload => 500} end,
    Events = [
        {cast, {want, owner, n2}},
        {cast, {connected, n2, false}},
        {timeout, {retry, n2}},
        {up, n2},
        {down, n2, lost},
        {up, n3},
        {timeout, {linger, n3}},
        {cast, {usage, traffic, n3, maps:remove(uses, Used(0))}},
        {timeout, {linger, n3}},
        {cast, {usage, traffic, n3, maps:remove(uses, Used(0))}},
        {cast, {usage, reading, n3, Used(0)}},
        {message, n3, {close, 1, true}},
        {cast, {usage, agreed, n3, Used(0)}},
        {down, n3, disconnect},
        {call, {self(), make_ref()}, status},
        {up, n2},
        {cast, {disconnect, n2}}
    ],
    write(Path, atoll_link_core, State, lists:zip(lists:seq(10, 10 * length(Events), 10), Events)).

%% A minute of HyParView with all other parts, alone with one that answers nothing.
overlay(Path) ->
    {ok, Options} = atoll_options:complete(atoll_hyparview, #{}),
    Config = #{
        self => n1,
        incarnation => 1,
        seed => 7,
        strategy => {atoll_hyparview, Options},
        contacts => [n2]
    },
    {State, Effects} = atoll_overlay_core:init(Config, 0),
    write(Path, atoll_overlay_core, State, played(Effects, State)).

%% Names in a group of two, of which the other acknowledges nothing.
name(Path) ->
    Options = (atoll_name:defaults())#{answer_ms := 1000},
    {State, []} = atoll_name_core:init(#{self => node(), incarnation => 1, options => Options}, 0),
    Register = fun(Name, Pid) -> {call, {self(), make_ref()}, {register, g, Name, Pid, undefined}} end,
    [One, Two] = [spawn(fun() -> ok end) || _ <- [1, 2]],
    Events = [
        {10, {cast, {groups, [{g, {g, {1, n1, 1}}, [n2, node()]}]}}},
        {20, Register(alone, One)},
        {30, {up, n2}},
        {30, {timeout, flush}},
        {40, Register({any, "term"}, Two)},
        {40, {timeout, flush}},
        {80, {timeout, tick}},
        {90, Register(alone, Two)},
        {1100, {timeout, tick}},
        {1110, {down, n2, disconnect}},
        {1120, {call, {self(), make_ref()}, {re_register, g, alone, Two, undefined}}},
        {1130, {cast, {died, One}}},
        {1140, {call, {self(), make_ref()}, info}}
    ],
    write(Path, atoll_name_core, State, Events).

played(Effects, State) ->
    played(due(Effects, 0, #{}), State, []).

%% The timers that were set fire, one after the other; what is wanted comes up.
played(Due, State0, Played) ->
    case lists:sort([{At, Event} || {Event, At} <- maps:to_list(Due)]) of
        [{At, Event} | _] when At =< 60000 ->
            {State, Effects} = atoll_overlay_core:handle(Event, At, State0),
            played(due(Effects, At, maps:remove(Event, Due)), State, [{At, Event} | Played]);
        _ ->
            lists:reverse(Played)
    end.

due(Effects, Now, Due) ->
    lists:foldl(
        fun
            ({timer, Key, Ms}, D) -> D#{{timeout, Key} => Now + Ms};
            ({cancel, Key}, D) -> maps:remove({timeout, Key}, D);
            ({want, Peer}, D) -> D#{{up, Peer} => Now + 5};
            (_, D) -> D
        end,
        Due,
        Effects
    ).

write(Path, Protocol, State, Events) ->
    Head = #{protocol => Protocol, state => State, node => 'n1@reef', otp => "25"},
    {ok, New} = atoll_recording:open(Path, ?MAX, Head),
    {Writer, _} = lists:foldl(
        fun({Now, Event}, {Writer0, S0}) ->
            {S, Effects} = Protocol:handle(Event, Now, S0),
            {ok, Writer} = atoll_recording:add({Event, Now, Effects}, Writer0),
            {Writer, S}
        end,
        {New, State},
        Events
    ),
    {ok, #{events := Count}} = atoll_recording:close(Writer),
    Count.

%% The same recording, with another effect at that event.
tampered(Path, At) ->
    {ok, #{events := Events, lost := 0} = Recording, complete} = atoll_recording:read(Path),
    {Before, [{Event, Now, Effects} | After]} = lists:split(At - 1, Events),
    {ok, New} = atoll_recording:open(Path, ?MAX, maps:without([events, lost], Recording)),
    Writer = lists:foldl(
        fun(Entry, Writer) -> element(2, {ok, _} = atoll_recording:add(Entry, Writer)) end,
        New,
        Before ++ [{Event, Now, [{notify, tampered} | Effects]} | After]
    ),
    {ok, _} = atoll_recording:close(Writer),
    ok.
