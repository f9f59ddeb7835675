%% SPDX-License-Identifier: Apache-2.0
%% Histories of replicas for the properties: operations, states that are joined with others, and single deltas that arrive
%% late, twice, in any order, or never.
-module(atoll_crdt_history).

-include_lib("proper/include/proper.hrl").

-export([type/0, operation/1, steps/2, run/3, states/1, know/2, spread/1]).

-define(REPLICAS, [1, 2, 3, 4]).

-record(history, {
    type,
    %% Replica => its state, and the events that it knows of.
    replicas = #{},
    events = [],
    %% The deltas, newest first, each with its event.
    deltas = [],
    %% Whether each replica's value has been what it was to be.
    agrees = true
}).

type() -> oneof(atoll_crdt:types()).

operation(gcounter) -> oneof([increment, {increment, range(1, 5)}]);
operation(pncounter) -> oneof([increment, decrement, {increment, range(1, 5)}, {decrement, range(1, 5)}]);
operation(max) -> {put, element()};
operation(lww) -> {put, element(), range(1, 3)};
operation(mv) -> frequency([{5, {put, element()}}, {1, clear}]);
operation(enable_wins) -> oneof([enable, disable, clear]);
operation(disable_wins) -> oneof([enable, disable, clear]);
operation(set) -> frequency([{5, {add, element()}}, {4, {remove, element()}}, {1, clear}]);
operation(map) -> map_operation(3).

%% A map in a map in a map, and no deeper.
map_operation(Depth) ->
    Types = [mv, enable_wins, disable_wins, set] ++ [map || Depth > 1],
    frequency([
        {6, ?LET(Type, oneof(Types), {update, {oneof([x, y]), Type}, inner(Type, Depth)})},
        {3, {remove, {oneof([x, y]), oneof(Types)}}},
        {1, clear}
    ]).

inner(map, Depth) -> map_operation(Depth - 1);
inner(Type, _) -> operation(Type).

%% Of these some compare equal and are not the same.
element() -> oneof([a, b, 1, 1.0, {1}, {1.0}]).

%% `Ways' are how replicas hear of each other: `state', `delta'.
steps(Type, Ways) ->
    list(frequency(
        [{4, {change, oneof(?REPLICAS), operation(Type)}}] ++
            [{2, {state, oneof(?REPLICAS), oneof(?REPLICAS)}} || state <- Ways] ++
            [{3, {delta, oneof(?REPLICAS), range(0, 1000)}} || delta <- Ways]
    )).

%% Each step; with `checked' each replica's value is compared with the specification.
run(Type, Checked, Steps) ->
    New = maps:from_list([{Replica, {atoll_crdt:new(Type), []}} || Replica <- ?REPLICAS]),
    lists:foldl(fun(Step, History) -> check(Checked, step(Step, History)) end, #history{type = Type, replicas = New}, Steps).

step({change, Replica, Operation}, #history{replicas = Replicas, events = Events, deltas = Deltas} = History) ->
    #{Replica := {State, Known}} = Replicas,
    {ok, Next, Delta} = atoll_crdt:update(Operation, Replica, State),
    Id = length(Events) + 1,
    %% It only grows, and it is what the delta says.
    true = atoll_crdt:includes(Next, State),
    true = atoll_crdt:includes(Next, Delta),
    History#history{
        replicas = Replicas#{Replica := {Next, [Id | Known]}},
        events = [{Id, Operation, Known} | Events],
        deltas = [{Delta, Id} | Deltas]
    };
step({state, From, To}, #history{replicas = Replicas} = History) ->
    #{From := {Theirs, TheyKnow}, To := {Own, Known}} = Replicas,
    History#history{replicas = Replicas#{To := {atoll_crdt:join(Own, Theirs), lists:usort(TheyKnow ++ Known)}}};
step({delta, _, _}, #history{deltas = []} = History) ->
    History;
step({delta, To, Number}, #history{replicas = Replicas, deltas = Deltas} = History) ->
    #{To := {Own, Known}} = Replicas,
    {Delta, Id} = lists:nth(1 + Number rem length(Deltas), Deltas),
    History#history{replicas = Replicas#{To := {atoll_crdt:join(Own, Delta), lists:usort([Id | Known])}}}.

check(unchecked, History) ->
    History;
check(checked, #history{type = Type, replicas = Replicas, events = Events, agrees = Agrees} = History) ->
    Agree = [atoll_crdt:value(State) =:= atoll_crdt_spec:value(Type, [E || {Id, _, _} = E <- Events, lists:member(Id, Known)]) || {State, Known} <- maps:values(Replicas)],
    History#history{agrees = Agrees andalso lists:all(fun(A) -> A end, Agree)}.

states(#history{replicas = Replicas}) -> [State || {_, {State, _}} <- lists:sort(maps:to_list(Replicas))].

%% `agrees', or the value that all events are to have.
know(agrees, #history{agrees = Agrees}) -> Agrees;
know(value, #history{type = Type, events = Events}) -> atoll_crdt_spec:value(Type, Events);
know(deltas, #history{deltas = Deltas}) -> [Delta || {Delta, _} <- Deltas].

%% All hear of all, by states.
spread(#history{replicas = Replicas} = History) ->
    lists:foldl(fun step/2, History, [{state, From, To} || _ <- [1, 2], From <- maps:keys(Replicas), To <- maps:keys(Replicas)]).
