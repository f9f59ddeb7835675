%% SPDX-License-Identifier: Apache-2.0
%% @doc A simulated node with network coordinates ({@link atoll_distance_core}), and what is
%% around it on a real one: somebody who wants the links over which it talks, and whoever measures
%% a round trip. It may lie about where it is.
-module(atoll_sim_distance_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3, core/1]).

-export_type([config/0, state/0]).

-type config() :: #{
    core := atoll_distance_core:config(),
    %% Those that it is to be linked with.
    peers := [node()],
    %% Whether it says each time that it is somewhere else, and is sure of it.
    lies := boolean()
}.

-record(state, {
    core :: atoll_distance_core:state(),
    lies :: rand:state() | no,
    %% The measurement under way: its number, with whom, and since when.
    number = 0 :: non_neg_integer(),
    measuring = none :: none | {node(), Since :: integer()}
}).

-opaque state() :: #state{}.

-define(SILENT_MS, 2000).
%% How far away a liar says it is, at most.
-define(LIE_MS, 500).

%% @doc It wants its links, once and for all.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{core := #{seed := Seed} = Config, peers := Peers, lies := Lies}, Now) ->
    {Core, Effects} = atoll_distance_core:init(Config, Now),
    State = #state{
        core = Core,
        lies =
            case Lies of
                true -> rand:seed_s(exsss, Seed + 1);
                false -> no
            end
    },
    {Wanting, Out} = perform(Effects, Now, State, []),
    {Wanting, Out ++ [{want, Peer} || Peer <- Peers]}.

%% @doc What is not the measurer's is the protocol's.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({cast, {unreachable, _Peer}}, _Now, State) ->
    {State, []};
handle({message, From, {echoed, Number}}, Now, #state{number = Number, measuring = {From, Since}} = State) ->
    {Next, Out} = core({cast, {measured, From, 1000 * max(1, Now - Since)}}, Now, State#state{measuring = none}),
    {Next, [{cancel, silent} | Out]};
handle({message, _From, {echoed, _Late}}, _Now, State) ->
    {State, []};
handle({timeout, silent}, Now, #state{measuring = {Node, _}} = State) ->
    core({cast, {silent, Node}}, Now, State#state{measuring = none});
handle({message, From, {1, {echo, me, Number}}}, _Now, State) ->
    {State, [{send, From, {echoed, Number}}]};
handle(Event, Now, State) ->
    core(Event, Now, State).

core(Event, Now, #state{core = Core0} = State) ->
    {Core, Effects} = atoll_distance_core:handle(Event, Now, Core0),
    perform(Effects, Now, State#state{core = Core}, []).

perform([], _Now, State, Out) ->
    {State, lists:reverse(Out)};
perform([{act, {measure, [{Node, _} | _]}} | Effects], Now, #state{number = Number} = State, Out) ->
    Echo = {send, Node, {1, {echo, me, Number + 1}}},
    perform(Effects, Now, State#state{number = Number + 1, measuring = {Node, Now}}, [
        {timer, silent, ?SILENT_MS}, Echo | Out
    ]);
perform([{send, Node, {1, {Kind, {Version, Coordinate}, Others}}} | Effects], Now, #state{lies = Rand0} = State, Out) when
    Rand0 =/= no
->
    {Lie, Rand} = lie(Coordinate, Rand0),
    perform(Effects, Now, State#state{lies = Rand}, [{send, Node, {1, {Kind, {Version, Lie}, Others}}} | Out]);
perform([Effect | Effects], Now, State, Out) ->
    perform(Effects, Now, State, [Effect | Out]).

lie({Point, _, _}, Rand0) ->
    {Lie, Rand} = lists:mapfoldl(
        fun(_, R0) ->
            {X, R} = rand:uniform_s(R0),
            {?LIE_MS * (2 * X - 1), R}
        end,
        Rand0,
        Point
    ),
    {{Lie, 1.0, 0.01}, Rand}.

%% @doc Its protocol.
-spec core(state()) -> atoll_distance_core:state().
core(#state{core = Core}) ->
    Core.
