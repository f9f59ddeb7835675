%% SPDX-License-Identifier: Apache-2.0
%% One handler alone: what it says and does for each event.
-module(atoll_handler_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

new(Elements, Options) ->
    {State, _} = atoll_handler_core:init(
        #{self => n2, seed => 1, module => atoll_handler_set, args => Elements, options => Options}, 0
    ),
    State.

%% Each effect of the last event, of several.
run(Events, State) ->
    lists:foldl(fun(Event, {S, _}) -> atoll_handler_core:handle(Event, 0, S) end, {State, []}, Events).

up(Nodes, State) ->
    {Up, _} = run([{up, Node} || Node <- Nodes], State),
    Up.

%% It has asked the first of its neighbours.
asking(Nodes, Elements, Options) ->
    {State, Effects} = run([{timeout, next}], up(Nodes, new(Elements, Options))),
    [{send, _, {compare, Salt, Hash}}] = [E || {send, _, _} = E <- Effects],
    {State, Salt, Hash}.

has(State) -> atoll_handler_core:state(State).
sent(Effects) -> [{To, Message} || {send, To, Message} <- Effects].
count(Key, State) -> maps:get(Key, atoll_handler_core:summary(State)).

a_value_is_told_once_and_a_stale_one_never_test() ->
    {State, Effects} = run([{call, from, {put, a, in}}], new([], #{})),
    ?assertEqual([{reply, from, new}, {notify, {new, a, in}}], Effects),
    ?assertMatch({_, [{reply, from, stale}]}, run([{call, from, {put, a, in}}], State)),
    ?assertMatch({_, []}, run([{cast, {told, a, in}}], State)),
    {Got, Said} = run([{message, n1, {piece, [{a, in}, {b, in}], last}}], State),
    ?assertEqual([{notify, {new, b, in}}], [E || {notify, _} = E <- Said]),
    ?assertEqual([a, b], has(Got)),
    ?assertEqual({2, 1}, {count(new, Got), count(stale, Got)}).

it_compares_itself_with_each_neighbour_that_comes_one_at_a_time_test() ->
    {State, _, _} = asking([n1, n3], [a], #{}),
    ?assertMatch({_, []}, run([{timeout, next}], State)),
    {Same, Effects} = run([{message, n1, same}], State),
    ?assertMatch([{timer, next, _}], [E || {timer, _, _} = E <- Effects]),
    ?assertMatch({_, [{n3, {compare, _, _}}]}, begin {S, E} = run([{timeout, next}], Same), {S, sent(E)} end).

one_that_does_not_answer_is_waited_for_no_longer_test() ->
    {State, _, _} = asking([n1, n3], [a], #{}),
    {Given, Effects} = run([{timeout, answer}], State),
    ?assertMatch([{timer, next, _}], Effects),
    ?assertEqual(1, count(unanswered, Given)),
    {_, Asked} = run([{timeout, next}], Given),
    ?assertMatch([{n3, _}], sent(Asked)),
    %% Nor one that is gone.
    {_, Gone} = run([{down, n1, lost}], State),
    ?assertMatch([{cancel, answer}, {timer, next, _}], Gone).

equal_states_are_the_same_whatever_the_salt_test() ->
    {_, Salt, Hash} = asking([n1], [a, b], #{}),
    {_, Other, OtherHash} = asking([n1, n3], [a, b, c], #{}),
    Equal = new([b, a], #{}),
    ?assertMatch({_, [{n1, same}]}, begin {S, E} = run([{message, n1, {compare, Salt, Hash}}], Equal), {S, sent(E)} end),
    {_, Effects} = run([{message, n1, {compare, Other, OtherHash}}], Equal),
    ?assertEqual([{n1, {digest, [a, b], true}}], sent(Effects)).

both_get_what_they_lack_test() ->
    {State, _, _} = asking([n1], [a, b], #{}),
    {Giving, Effects} = run([{message, n1, {digest, [b, c], true}}], State),
    ?assertEqual([{n1, {digest, [a, b], false}}, {n1, {piece, [{a, in}], last}}], sent(Effects)),
    {Got, _} = run([{message, n1, {piece, [{c, in}], last}}], Giving),
    ?assertEqual([a, b, c], has(Got)).

%% It says that it has nothing, asked and asking, and both get all, in pieces.
a_digest_that_is_too_large_is_not_sent_and_both_are_equal_all_the_same_test() ->
    Many = lists:seq(1000, 1100),
    {Has, _} = run([{cast, {told, N, in}} || N <- Many], new([], #{digest_bytes => 200, piece_max => 200})),
    {State, _} = run([{timeout, next}], up([n1], Has)),
    {Giving, Effects} = run([{message, n1, {digest, [7], true}}], State),
    ?assertEqual({n1, {digest, [], false}}, hd(sent(Effects))),
    ?assertEqual(1, count(large, Giving)),
    {Got, _} = run([{message, n1, {piece, [{N, in} || N <- [7 | Many]], last}}], Giving),
    ?assertEqual([7 | Many], has(Got)),
    {_, Asked} = run([{message, n3, {compare, 7, 1}}], up([n3], Has)),
    ?assertEqual([{n3, {digest, [], true}}], sent(Asked)),
    %% A small one is.
    {_, Small} = run([{message, n3, {compare, 7, 1}}], up([n3], new([a], #{digest_bytes => 200}))),
    ?assertEqual([{n3, {digest, [a], true}}], sent(Small)).

%% Of the two that ask each other at once the first by name is answered.
who_ask_each_other_at_once_compare_once_test() ->
    {State, _, _} = asking([n1], [a], #{}),
    {_, Answered} = run([{message, n1, {compare, 7, 1}}], State),
    ?assertEqual([{n1, {digest, [a], true}}], sent(Answered)),
    {After, _, _} = asking([n3], [a], #{}),
    ?assertMatch({_, []}, run([{message, n3, {compare, 7, 1}}], After)).

who_is_being_told_asks_others_later_test() ->
    %% It has compared itself with n1, and is being told by n3.
    {State, _} = run([{timeout, next}, {message, n1, same}, {timeout, next}], up([n1, n3], new([a], #{}))),
    {Told, Effects} = run([{message, n3, {digest, [a, b], true}}, {message, n1, {compare, 7, 1}}], State),
    ?assertEqual([{n1, later}], sent(Effects)),
    {_, Next} = run([{message, n3, {piece, [], last}}, {timeout, next}], Told),
    ?assertMatch([{n1, {compare, _, _}}], sent(Next)),
    %% One that is no neighbour would not be asked.
    {_, Stranger} = run([{message, n9, {compare, 7, 1}}], Told),
    ?assertMatch([{n9, {digest, _, true}}], sent(Stranger)).

the_next_piece_comes_when_it_is_asked_for_test() ->
    Mores = fun(N) -> [{message, n1, more} || _ <- lists:seq(1, N)] end,
    Five = new([1, 2, 3, 4, 5], #{piece_max => 2}),
    Ask = {message, n1, {digest, [], false}},
    Say = fun(Events) -> {_, Effects} = run(Events, Five), sent(Effects) end,
    ?assertEqual([{n1, {piece, [{1, in}, {2, in}], more}}], Say([Ask])),
    ?assertEqual([{n1, {piece, [{3, in}, {4, in}], more}}], Say([Ask | Mores(1)])),
    ?assertEqual([{n1, {piece, [{5, in}], last}}], Say([Ask | Mores(2)])),
    ?assertEqual([], Say([Ask | Mores(3)])),
    %% Who is gone, or has not asked for long, is told no more.
    ?assertEqual([], Say([Ask, {down, n1, lost} | Mores(1)])),
    {Asked, _} = run([Ask], Five),
    {Later, _} = atoll_handler_core:handle({timeout, exchange}, 60000, Asked),
    ?assertMatch({_, []}, run(Mores(1), Later)).

so_many_are_told_at_a_time_test() ->
    State = new([1, 2, 3], #{piece_max => 1, gives_max => 2}),
    Asks = [{message, N, {digest, [], false}} || N <- [n1, n3, n4]],
    {Full, Effects} = run(Asks, State),
    ?assertEqual([], sent(Effects)),
    ?assertEqual({2, 1}, {count(giving, Full), count(refused, Full)}),
    %% What is left for one that asks anew is not a second one.
    ?assertMatch({_, [{send, n3, {piece, [{1, in}], more}}]}, run([{message, n3, {digest, [], false}}], Full)).

what_a_comparison_brought_goes_on_to_others_test() ->
    Met = [{timeout, next}, {message, n1, same}, {timeout, next}, {message, n3, same}],
    {State, _} = run(Met, up([n1, n3], new([a], #{}))),
    {_, Nothing} = run([{timeout, next}], State),
    ?assertEqual([], sent(Nothing)),
    {Got, _} = run([{message, n1, {piece, [{b, in}], last}}], State),
    ?assertMatch({_, [{n3, {compare, _, _}}]}, begin {S, E} = run([{timeout, next}], Got), {S, sent(E)} end),
    {Stale, _} = run([{message, n1, {piece, [{a, in}], last}}], State),
    ?assertMatch({_, []}, run([{timeout, next}], Stale)).

what_is_missed_is_asked_for_test() ->
    {State, _} = run([{timeout, next}, {message, n1, same}], up([n1], new([a], #{}))),
    {Missing, [{timer, next, Ms}]} = run([{cast, {missed, 3}}], State),
    ?assert(Ms =< 200),
    ?assertEqual(3, count(dropped, Missing)),
    {_, Effects} = run([{timeout, next}], Missing),
    ?assertMatch([{n1, {compare, _, _}}], sent(Effects)).

who_does_not_answer_is_not_the_only_one_asked_test() ->
    Met = [{timeout, next}, {message, n1, same}, {timeout, next}, {message, n3, same}],
    {Missing, _} = run([{cast, {missed, 1}}, {timeout, next}], element(1, run(Met, up([n1, n3], new([a], #{}))))),
    {First, Effects} = run([{timeout, answer}, {timeout, next}], Missing),
    ?assertMatch([{_, {compare, _, _}}], sent(Effects)),
    %% Each of them once, until the next interval.
    {Second, Silence} = run([{timeout, answer}, {timeout, next}], First),
    ?assertEqual([], sent(Silence)),
    {_, Again} = run([{timeout, exchange}, {timeout, next}], Second),
    ?assertMatch([{_, {compare, _, _}}], sent(Again)).

pieces_test_() ->
    atoll_prop:test("pieces are bounded and whole", prop_pieces(), 300).

prop_pieces() ->
    ?FORALL({Sizes, Max, Bytes}, {list(range(0, 200)), range(1, 5), range(1, 400)}, begin
        Elements = [{N, binary:copy(<<0>>, Size)} || {N, Size} <- lists:zip(lists:seq(1, length(Sizes)), Sizes)],
        Pieces = pieces({message, n1, {digest, [], false}}, new(Elements, #{piece_max => Max, piece_bytes => Bytes})),
        [Element || Piece <- Pieces, {Element, in} <- Piece] =:= ordsets:from_list(Elements) andalso
            lists:all(
                fun(Piece) ->
                    length(Piece) =< Max andalso
                        (length(Piece) =< 1 orelse lists:sum([erlang:external_size(Said) || Said <- Piece]) =< Bytes)
                end,
                Pieces
            )
    end).

pieces(Event, State0) ->
    {State, [{send, n1, {piece, Piece, Rest}}]} = run([Event], State0),
    case Rest of
        more -> [Piece | pieces({message, n1, more}, State)];
        last -> [Piece]
    end.
