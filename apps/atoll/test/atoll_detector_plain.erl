%% SPDX-License-Identifier: Apache-2.0
%% A detector written outside of the library: each node sends beats to all its neighbours,
%% and who was not heard for a fixed time is dead. A neighbour alone decides, so unlike ours it
%% takes a bad link for a death.
-module(atoll_detector_plain).

-behaviour(atoll_detector).

-export([options/0, init/2, handle/3, summary/1]).

-record(state, {
    options :: #{atom() => pos_integer()},
    life :: atoll_detector:life(),
    cargo = none :: term(),
    %% When the next beat is due.
    due :: atoll_protocol:now_ms(),
    neighbours = [] :: [node()],
    %% When each was heard last and in which life, if it ever was, and whether that is long ago.
    watched = #{} :: #{node() => {HeardAt :: atoll_protocol:now_ms(), atoll_detector:life() | unknown, IsSuspect :: boolean()}}
}).

options() -> #{beat_ms => {pos_integer, 500}, suspect_ms => {pos_integer, 1500}, dead_ms => {pos_integer, 3000}}.

init(#{incarnation := Life, options := #{beat_ms := Ms} = Options}, Now) ->
    {#state{options = Options, life = Life, due = Now + Ms}, [{timer, beat, Ms}]}.

handle({up, Node}, Now, #state{neighbours = Neighbours, watched = Watched} = State) ->
    {State#state{neighbours = [Node | Neighbours], watched = maps:merge(#{Node => {Now, unknown, false}}, Watched)}, []};
handle({down, Node, lost}, _Now, #state{neighbours = Neighbours} = State) ->
    %% Dead, or it will be heard again.
    {State#state{neighbours = Neighbours -- [Node]}, []};
handle({down, Node, dropped}, _Now, #state{neighbours = Neighbours} = State) ->
    forget(Node, State#state{neighbours = Neighbours -- [Node]});
handle({message, Node, {beat, Life, Cargo}}, Now, #state{watched = Watched} = State) ->
    case Watched of
        #{Node := {_, _, IsSuspect}} ->
            Heard = State#state{watched = Watched#{Node := {Now, Life, false}}},
            {Heard, [{notify, {cleared, Node}} || IsSuspect] ++ [{notify, {cargo, Node, Cargo}}]};
        #{} ->
            {State, []}
    end;
handle({timeout, beat}, Now, #state{options = #{beat_ms := Ms}} = State0) ->
    #state{life = Life, cargo = Cargo, neighbours = Neighbours} = State1 = excuse(Now, State0),
    {State, Effects} = maps:fold(
        fun(Node, Watch, {S, Acc}) ->
            {Judged, More} = judge(Node, Watch, Now, S),
            {Judged, Acc ++ More}
        end,
        {State1#state{due = Now + Ms}, []},
        State1#state.watched
    ),
    {State, [{send, Node, {beat, Life, Cargo}} || Node <- Neighbours] ++ Effects ++ [{timer, beat, Ms}]};
handle({cast, {cargo, Cargo}}, _Now, State) ->
    {State#state{cargo = Cargo}, []};
handle({cast, {incarnation, Life}}, _Now, State) ->
    {State#state{life = Life}, []};
handle({cast, _}, _Now, State) ->
    {State, []}.

%% By how much a beat is late, so long this node did nothing, and that is nobody's silence.
excuse(Now, #state{due = Due, options = #{beat_ms := Ms}, watched = Watched} = State) when Now - Due > Ms ->
    State#state{watched = maps:map(fun(_, {Heard, Life, IsSuspect}) -> {min(Now, Heard + Now - Due), Life, IsSuspect} end, Watched)};
excuse(_Now, State) ->
    State.

judge(Node, {Heard, Life, IsSuspect}, Now, #state{options = #{suspect_ms := SuspectMs, dead_ms := DeadMs}} = State) ->
    case Now - Heard of
        Ms when Ms >= DeadMs, Life =:= unknown -> forget(Node, State);
        Ms when Ms >= DeadMs -> {remove(Node, State), [{notify, {found_dead, Node, Life}}]};
        Ms when Ms >= SuspectMs, not IsSuspect ->
            {State#state{watched = (State#state.watched)#{Node := {Heard, Life, true}}}, [{notify, {suspect, Node, Ms}}]};
        _ -> {State, []}
    end.

forget(Node, #state{watched = Watched} = State) ->
    {remove(Node, State), [{notify, {cleared, Node}} || #{Node := {_, _, true}} <- [Watched]]}.

remove(Node, #state{watched = Watched} = State) -> State#state{watched = maps:remove(Node, Watched)}.

%% Of who is unheard it is not known which life would end.
summary(#state{watched = Watched}) ->
    #{watched => map_size(Watched), unheard => length([x || {_, unknown, _} <- maps:values(Watched)])}.
