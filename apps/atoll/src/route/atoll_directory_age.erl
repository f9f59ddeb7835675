%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Entries of the directory that nobody vouches for: no chain of cliques and links
%% leads from here to where they say that they stand. A clique whose members all died at
%% once leaves such ones, since its members vouch for each other. Pure data.
%%
%% What is cut off at two sweeps, one after the other, with the same version, is forgotten. It is
%% not said to be gone: it may live on the other side of a partition. So that a neighbour
%% which has not swept yet does not bring it back, it is refused for some sweeps, unless by
%% then, with all that comes with it, a chain leads there again: then the sides have met.
%%
%% Bounded by the number of places.
-module(atoll_directory_age).

-export([new/0, sweep/3, credible/4]).

-export_type([age/0]).

-record(age, {
    sweeps = 0 :: non_neg_integer(),
    %% Cut off at the last sweep.
    adrift = #{} :: #{node() => atoll_directory_table:version()},
    %% And the sweep by which it was forgotten.
    forgotten = #{} :: #{node() => {atoll_directory_table:version(), non_neg_integer()}}
}).

-opaque age() :: #age{}.

%% For so many sweeps what is forgotten is refused: others sweep within one and a half.
-define(REFUSED, 4).

%% @doc Nothing is cut off.
-spec new() -> age().
new() ->
    #age{}.

%% @doc The nodes to be forgotten now, in the order of their names. Starts are this node and
%% those that it has links with.
-spec sweep(Starts :: [node()], atoll_directory_table:table(), age()) -> {[node()], age()}.
sweep(Starts, Table, #age{sweeps = Sweeps, adrift = Before, forgotten = Forgotten0} = Age) ->
    Reach = atoll_reach:new(Starts, Table),
    Adrift = atoll_directory_table:fold(
        fun(Node, Version, Standing, Acc) ->
            case atoll_reach:is_reached(Node, Standing, Reach) of
                true -> Acc;
                false -> Acc#{Node => Version}
            end
        end,
        #{},
        Table
    ),
    Aged = [Node || {Node, Version} <- maps:to_list(Adrift), maps:get(Node, Before, none) =:= Version],
    Forgotten1 = maps:filter(fun(_, {_, At}) -> At + ?REFUSED > Sweeps end, Forgotten0),
    Forgotten = lists:foldl(fun(Node, F) -> F#{Node => {map_get(Node, Adrift), Sweeps}} end, Forgotten1, Aged),
    {lists:sort(Aged), Age#age{sweeps = Sweeps + 1, adrift = maps:without(Aged, Adrift), forgotten = Forgotten}}.

%% @doc What may be believed of what somebody tells.
-spec credible(Entries, Starts :: [node()], atoll_directory_table:table(), age()) -> {Entries, age()} when
    Entries :: [{node(), atoll_directory_table:entry()}].
credible(Entries, _Starts, _Table, #age{forgotten = Forgotten} = Age) when map_size(Forgotten) =:= 0 ->
    {Entries, Age};
credible(Entries, Starts, Table, #age{forgotten = Forgotten} = Age) ->
    case lists:partition(fun(Entry) -> is_doubtful(Entry, Forgotten) end, Entries) of
        {[], _} ->
            {Entries, Age};
        {Doubtful, Others} ->
            Trial = lists:foldl(
                fun({Node, Entry}, T) -> element(2, atoll_directory_table:put(Node, Entry, T)) end, Table, Entries
            ),
            Reach = atoll_reach:new(Starts, Trial),
            Good = [
                Entry
             || {Node, _} = Entry <- Doubtful,
                Standing <- [atoll_directory_table:standing(Node, Trial)],
                Standing =/= unknown,
                atoll_reach:is_reached(Node, Standing, Reach)
            ],
            {Good ++ Others, Age#age{forgotten = maps:without([Node || {Node, _} <- Good], Forgotten)}}
    end.

is_doubtful({Node, {Version, What}}, Forgotten) ->
    case Forgotten of
        #{Node := {Known, _}} when What =/= gone -> Version =< Known;
        #{} -> false
    end.
