%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The line at a node: who has said lately that it will use the node, in the order in
%% which they came.
%%
%% A claim holds nothing back. It is there for others to see, from the moment in which a
%% node is chosen until what was placed there shows in the node's attributes; so it ends by
%% itself after a while. Pure; there are at most as many claims as the bound says, and who
%% comes then is told a place beyond it and is not entered.
-module(atoll_claims).

-export([new/1, take/3, leave/2, place/3, count/2]).

-export_type([claims/0, id/0]).

-type id() :: term().

-record(claims, {
    hold_ms :: pos_integer(),
    max :: pos_integer(),
    next = 1 :: pos_integer(),
    line = gb_trees:empty() :: gb_trees:tree(pos_integer(), {id(), Until :: integer()}),
    numbers = #{} :: #{id() => pos_integer()}
}).

-opaque claims() :: #claims{}.

%% @doc An empty line, for so many claims, each for so long.
-spec new(#{hold_ms := pos_integer(), max_claims := pos_integer()}) -> claims().
new(#{hold_ms := HoldMs, max_claims := Max}) ->
    #claims{hold_ms = HoldMs, max = Max}.

%% @doc Somebody comes, and hears its place, from 1 on. Who is there already stays where it is.
-spec take(id(), atoll_protocol:now_ms(), claims()) -> {Place :: pos_integer(), claims()}.
take(Id, Now, Claims0) ->
    Claims = #claims{next = Next, line = Line, numbers = Numbers, max = Max, hold_ms = Ms} = ended(Now, Claims0),
    case Numbers of
        #{Id := Number} ->
            {place_of(Number, Line), Claims};
        #{} when map_size(Numbers) >= Max ->
            {Max + 1, Claims};
        #{} ->
            Entered = Claims#claims{
                next = Next + 1,
                line = gb_trees:insert(Next, {Id, Now + Ms}, Line),
                numbers = Numbers#{Id => Next}
            },
            {map_size(Numbers) + 1, Entered}
    end.

%% @doc Somebody goes.
-spec leave(id(), claims()) -> claims().
leave(Id, #claims{line = Line, numbers = Numbers} = Claims) ->
    case maps:take(Id, Numbers) of
        {Number, Rest} -> Claims#claims{line = gb_trees:delete(Number, Line), numbers = Rest};
        error -> Claims
    end.

%% @doc Where somebody stands now, and how long the line is.
-spec place(id(), atoll_protocol:now_ms(), claims()) -> {Place :: pos_integer() | none, Length :: non_neg_integer()}.
place(Id, Now, Claims) ->
    #claims{line = Line, numbers = Numbers} = ended(Now, Claims),
    Place =
        case Numbers of
            #{Id := Number} -> place_of(Number, Line);
            #{} -> none
        end,
    {Place, map_size(Numbers)}.

%% @doc How long the line is.
-spec count(atoll_protocol:now_ms(), claims()) -> non_neg_integer().
count(Now, Claims) ->
    #claims{numbers = Numbers} = ended(Now, Claims),
    map_size(Numbers).

%% All are held for the same time, so they end in the order in which they came.
ended(Now, #claims{line = Line, numbers = Numbers} = Claims) ->
    case gb_trees:is_empty(Line) orelse gb_trees:smallest(Line) of
        {_, {Id, Until}} when Until =< Now ->
            {_, _, Rest} = gb_trees:take_smallest(Line),
            ended(Now, Claims#claims{line = Rest, numbers = maps:remove(Id, Numbers)});
        _ ->
            Claims
    end.

place_of(Number, Line) ->
    place_of(Number, gb_trees:next(gb_trees:iterator(Line)), 1).

place_of(Number, {Number, _, _}, Place) -> Place;
place_of(Number, {_, _, Iterator}, Place) -> place_of(Number, gb_trees:next(Iterator), Place + 1).
