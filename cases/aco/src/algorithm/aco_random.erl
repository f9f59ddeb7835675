%% @doc Where an ant's draws come from. A generator is made of a key and gives
%% the same draws for the same key, on any node and however often it is made:
%% so what an ant finds hangs on who it is and not on where and when it runs.
-module(aco_random).

-export([new/2, draw/1]).

-export_type([kind/0, key/0, generator/0]).

%% `cyclic' goes round .09, .19, ... .99, for comparisons in which chance must
%% have no part.
-type kind() :: seeded | cyclic.

-type key() :: {
    Seed :: integer(),
    Colony :: pos_integer(),
    Round :: pos_integer(),
    Generation :: pos_integer(),
    Ant :: pos_integer()
}.

-opaque generator() :: rand:state() | 0..9.

%% @doc The generator of one ant. The cyclic ones of a generation's ants begin
%% one place apart, in every generation at the same place.
-spec new(kind(), key()) -> generator().
new(seeded, Key) ->
    %% More bits than one hash of 32 has.
    [A, B, C] = [erlang:phash2({Part, Key}, 1 bsl 32) || Part <- [1, 2, 3]],
    rand:seed_s(exsss, {A, B, C});
new(cyclic, {_, _, _, _, Ant}) ->
    (Ant - 1) rem 10.

%% @doc The next draw, from 0.0 on and below 1.0.
-spec draw(generator()) -> {float(), generator()}.
draw(Place) when is_integer(Place) ->
    {(Place * 10 + 9) / 100, (Place + 1) rem 10};
draw(State) ->
    rand:uniform_s(State).
