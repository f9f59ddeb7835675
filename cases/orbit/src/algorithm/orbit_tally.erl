%% SPDX-License-Identifier: Apache-2.0
%% @doc A partial result, and how two of them make one.
%%
%% Every worker has one, and they are added in whatever order they come: `add/2' is associative and
%% commutative up to the order of the lists, and `none/0' is its zero.
-module(orbit_tally).

-export([none/0, of_vertices/3, of_worker/4, add/2, fingerprint/1]).

-export_type([tally/0, worker/0]).

-type tally() :: #{
    %% vertices in the set
    size := non_neg_integer(),
    %% vertices that came in messages, known ones too
    received := non_neg_integer(),
    %% see fingerprint/1
    checksum := non_neg_integer(),
    %% the set itself, if it was asked for
    vertices := [orbit_generators:vertex()],
    %% how often workers gave credit back, and the exponent of the smallest unit that came in
    credit_returned := non_neg_integer(),
    least_credit := orbit_credit:unit(),
    workers := [worker()]
}.

%% What one worker has to say of itself, as in the original. A table there is an array of slots; here
%% `fill' says how full such an array would be.
-type worker() :: #{
    node := node(),
    part := orbit_part:id(),
    size := non_neg_integer(),
    received := non_neg_integer(),
    credit_returned := non_neg_integer(),
    least_credit := orbit_credit:unit(),
    %% without a vertex: until the first one came, at the longest after that, and after the last one
    init_idle_ms := float(), max_idle_ms := float(), tail_idle_ms := float(),
    %% how many slots, how many of them with vertices, and with how many at most
    fill := #{slots := pos_integer(), nonempty := non_neg_integer(), fullest := non_neg_integer()}
}.

-define(MODULUS, (1 bsl 32)).

%% @doc The tally of nobody.
-spec none() -> tally().
none() ->
    #{size => 0, received => 0, checksum => 0, vertices => [], credit_returned => 0, least_credit => 0, workers => []}.

%% @doc The tally of one who holds these vertices, and has received so many. The list itself goes in
%% only if `Keep' says so.
-spec of_vertices([orbit_generators:vertex()], non_neg_integer(), Keep :: boolean()) -> tally().
of_vertices(Vertices, Received, Keep) ->
    (none())#{size := length(Vertices), received := Received, checksum := fingerprint(Vertices), vertices := [V || Keep, V <- Vertices]}.

%% @doc With what a worker says of itself: its part, of so many slots, and how long it had nothing to
%% do (native time units). The tally has its vertices, which stay if `Keep' says so.
-spec of_worker(orbit_part:id(), Slots :: pos_integer(), {Init :: integer(), Max :: integer(), Tail :: integer()}, tally()) -> tally().
of_worker(Part, Slots, {Init, Max, Tail}, #{vertices := Vertices} = Tally) ->
    Filled = lists:foldl(fun(X, Acc) -> maps:update_with(erlang:phash2(X, Slots), fun(N) -> N + 1 end, 1, Acc) end, #{}, Vertices),
    Ms = fun(Time) -> erlang:convert_time_unit(Time, native, microsecond) / 1000 end,
    Worker = (maps:with([size, received, credit_returned, least_credit], Tally))#{
        node => node(), part => Part, init_idle_ms => Ms(Init), max_idle_ms => Ms(Max), tail_idle_ms => Ms(Tail),
        fill => #{slots => Slots, nonempty => map_size(Filled), fullest => lists:max([0 | maps:values(Filled)])}},
    Tally#{workers := [Worker]}.

%% @doc Both together. They must be of different workers.
-spec add(tally(), tally()) -> tally().
add(A, B) ->
    maps:map(fun(checksum, Sum) -> (Sum + maps:get(checksum, B)) rem ?MODULUS;
                (least_credit, Unit) -> max(Unit, maps:get(least_credit, B));
                (Key, Some) when is_list(Some) -> Some ++ maps:get(Key, B);
                (Key, Count) -> Count + maps:get(Key, B)
             end, A).

%% @doc A number that is equal for equal sets, in whatever order and on however many workers the
%% vertices lie: the sum of their hashes.
-spec fingerprint([orbit_generators:vertex()]) -> non_neg_integer().
fingerprint(Vertices) ->
    lists:foldl(fun(X, Sum) -> (Sum + erlang:phash2(X, ?MODULUS)) rem ?MODULUS end, 0, Vertices).
