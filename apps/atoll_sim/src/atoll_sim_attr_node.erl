%% SPDX-License-Identifier: Apache-2.0
%% @doc A simulated node with attributes ({@link atoll_attr_core}), and what is around it on a
%% real one: functions that give values, and somebody who wants links with some peers.
%%
%% The source of a dynamic attribute is `{sim, Name, []}'; its value is what a function of the
%% configuration says for the node, the name and the time.
-module(atoll_sim_attr_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3, core/1]).

-export_type([config/0, state/0]).

-type config() :: #{
    attr := atoll_attr_core:config(),
    %% Those that it is to be linked with, whoever else it asks.
    peers := [node()],
    value := fun((node(), atoll_predicate:name(), atoll_protocol:now_ms()) -> term())
}.

-record(state, {self :: node(), core :: atoll_attr_core:state(), peers :: #{node() => []}, value :: fun()}).

-opaque state() :: #state{}.

%% @doc It wants its links, once and for all.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{attr := #{self := Self} = Config, peers := Peers, value := Value}, Now) ->
    {Core, Effects} = atoll_attr_core:init(Config, Now),
    State = #state{self = Self, core = Core, peers = maps:from_keys(Peers, []), value = Value},
    {Evaluated, More} = perform(Effects, Now, State, []),
    {Evaluated, [{want, Peer} || Peer <- Peers] ++ More}.

%% @doc All is the core's, but the evaluations, which take no time.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle(Event, Now, State) ->
    step(Event, Now, State, []).

%% @doc Its attributes.
-spec core(state()) -> atoll_attr_core:state().
core(#state{core = Core}) ->
    Core.

step(Event, Now, #state{core = Core0} = State, Done) ->
    {Core, Effects} = atoll_attr_core:handle(Event, Now, Core0),
    perform(Effects, Now, State#state{core = Core}, Done).

perform([], _Now, State, Done) ->
    {State, lists:reverse(Done)};
perform([{act, {evaluate, {_, {sim, Name, []}} = Key, _}} | Effects], Now, #state{self = Self, value = Value} = State, Done) ->
    %% Its timer is set right behind it.
    {Timers, Others} = lists:splitwith(fun(E) -> element(1, E) =:= timer end, Effects),
    {Stepped, More} = step({cast, {evaluated, Key, {ok, Value(Self, Name, Now)}}}, Now, State, lists:reverse(Timers, Done)),
    perform(Others, Now, Stepped, lists:reverse(More));
perform([{act, _} | Effects], Now, State, Done) ->
    perform(Effects, Now, State, Done);
perform([{unwant, Peer} | Effects], Now, #state{peers = Peers} = State, Done) when is_map_key(Peer, Peers) ->
    %% Somebody else wants it still.
    perform(Effects, Now, State, Done);
perform([Effect | Effects], Now, State, Done) ->
    perform(Effects, Now, State, [Effect | Done]).
