%% SPDX-License-Identifier: Apache-2.0
%% @doc What a colony has learned: for each place in the order and each job,
%% how good it has been to do the job there.
-module(aco_pheromone).

-export([new/2, row/2, update/3]).

-export_type([pheromone/0, row/0]).

%% By job number.
-type row() :: tuple().

%% By place, from 1.
-opaque pheromone() :: tuple().

%% @doc The same everywhere.
-spec new(pos_integer(), float()) -> pheromone().
new(Size, Value) ->
    erlang:make_tuple(Size, erlang:make_tuple(Size, Value)).

%% @doc What is known of one place.
-spec row(pos_integer(), pheromone()) -> row().
row(Place, Pheromone) -> element(Place, Pheromone).

%% @doc One update with a solution: everything evaporates by the share `rho', and along the order comes
%% `rho' over the cost.
-spec update(aco_schedule:solution(), aco_options:options(), pheromone()) -> pheromone().
update({Cost, Order}, #{rho := Rho}, Pheromone) ->
    Deposit = Rho / max(Cost, 1),
    Rows = lists:zip(Order, tuple_to_list(Pheromone)),
    list_to_tuple([add(Number, Deposit, evaporated(1 - Rho, Row)) || {Number, Row} <- Rows]).

evaporated(Kept, Row) -> list_to_tuple([Kept * Value || Value <- tuple_to_list(Row)]).

add(Number, Deposit, Row) ->
    setelement(Number, Row, element(Number, Row) + Deposit).
