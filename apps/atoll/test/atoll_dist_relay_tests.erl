%% SPDX-License-Identifier: Apache-2.0
%% A relay: what it refuses, what it holds, and what its clients can do to it.
-module(atoll_dist_relay_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(F, atoll_dist_circuit_frame).
-define(R, atoll_dist_relay).
-define(W, atoll_dist_circuit_world).
-define(ID, <<"0123456789abcdef">>).

%% A relay g between a, b and c.
relay(Config) ->
    {Relay, []} = ?R:init(Config#{name => <<"g">>}, 0),
    lists:foldl(fun(N, R) -> {R1, []} = ?R:handle({cast, {up, N}}, 0, R), R1 end, Relay, [<<"a">>, <<"b">>, <<"c">>]).

cast(Event, Relay) -> ?R:handle({cast, Event}, 0, Relay).

%% What it sends, at once out of its hands. Nothing ends here.
frame(From, Frame, Relay0) ->
    {Relay, Acts} = nobody(cast({frame, From, ?F:make(Frame)}, Relay0)),
    {lists:foldl(fun(Act, R) -> sent(Act, R) end, Relay, Acts), out(Acts)}.

nobody({Relay, [{act, {here, From, Frame}}]}) -> cast({nobody, From, Frame}, Relay);
nobody(Other) -> Other.

sent({act, {send, To, _, Bytes}}, Relay0) -> {Relay, []} = cast({sent, To, Bytes}, Relay0), Relay;
sent(_, Relay) -> Relay.

out(Acts) ->
    [{To, Parsed} || {act, {send, To, Frames, _}} <- Acts, Frame <- Frames, {ok, Parsed} <- [?F:parse(Frame)]].

key() -> key(1).
key(N) -> ?F:key(<<N:128>>, 1).

opening(Path) -> opening(key(), Path, 1 bsl 20).
opening(Key, Path, Window) -> {open, Key, #{window => Window, can => 1, fresh => true, hello => <<>>, path => Path}}.
opened(Key, Window) -> {opened, Key, #{window => Window, can => 1, received => 0, consumed => 0, answer => <<>>}}.
confirm(Key) -> {confirm, Key, #{received => 0, consumed => 0, proof => <<>>}}.
ack(N, Asks) -> {ack, key(), #{received => N, consumed => N, asks => Asks, narrow => false}}.

established(Config) -> established(1 bsl 20, Config).

established(Want, Config) ->
    {R1, [{<<"b">>, {open, _, #{window := Window}}}]} = frame(<<"a">>, opening(key(), [<<"a">>, <<"g">>, <<"b">>], Want), relay(Config)),
    {R2, [{<<"a">>, {opened, _, _}}]} = frame(<<"b">>, opened(key(), Window), R1),
    {R3, [{<<"b">>, {confirm, _, _}}]} = frame(<<"a">>, confirm(key()), R2),
    {Window, R3}.

it_goes_along_only_with_a_path_that_can_be_test_() ->
    Long = [<<"a">>, <<"g">>, <<"b">>, <<"n1">>, <<"n2">>, <<"n3">>, <<"n4">>, <<"n5">>],
    [
        {lists:flatten(io_lib:format("~p", [Why])),
            ?_assertMatch([{From, {refused, _, {<<"g">>, Why, About}}}], element(2, frame(From, opening(Path), relay(#{}))))}
     || {From, Path, Why, About} <- [
            {<<"a">>, [<<"a">>, <<"g">>, <<"x">>], no_link, <<"x">>},
            {<<"a">>, [<<"a">>, <<"g">>, <<"b">>, <<"a">>], loop, <<>>},
            {<<"a">>, [<<"a">>, <<"g">>, <<"a">>], loop, <<>>},
            {<<"a">>, [<<"g">>, <<"b">>], not_on_path, <<>>},
            {<<"a">>, [<<"c">>, <<"g">>, <<"b">>], not_on_path, <<>>},
            {<<"a">>, [<<"a">>, <<"b">>], not_on_path, <<>>},
            {<<"a">>, [<<"c">>, <<"a">>, <<"x">>, <<"g">>, <<"b">>], not_on_path, <<>>},
            {<<"a">>, Long, hops, <<>>}
        ]
    ].

an_open_to_this_node_is_given_to_it_test() ->
    Open = ?F:make(opening([<<"a">>, <<"g">>])),
    ?assertMatch({_, [{act, {here, <<"a">>, Open}}]}, cast({frame, <<"a">>, Open}, relay(#{}))).

the_policy_holds_in_both_directions_and_ends_paths_when_it_changes_test() ->
    Policy = [{#{<<"a">> => x}, #{<<"b">> => x}}],
    {_, R} = established(#{policy => Policy}),
    ?assertMatch({_, [{<<"a">>, {open, _, _}}]}, frame(<<"b">>, opening(key(2), [<<"b">>, <<"g">>, <<"a">>], 1 bsl 20), R)),
    ?assertMatch({_, [{<<"a">>, {refused, _, {_, policy, _}}}]}, frame(<<"a">>, opening(key(2), [<<"a">>, <<"g">>, <<"c">>], 1 bsl 20), R)),
    {R1, Acts} = cast({policy, none}, R),
    ?assertMatch([{<<"b">>, {path_lost, _, {_, policy, _}}}, {<<"a">>, {path_lost, _, {_, policy, _}}}], out(Acts)),
    ?assertMatch(#{circuits := 0}, ?R:figures(R1)).

the_window_is_what_all_allow_test() ->
    ?assertMatch({200000, _}, established(200000, #{})),
    ?assertMatch({150000, _}, established(1 bsl 20, #{max_window => 150000})),
    {R1, [_]} = frame(<<"a">>, opening([<<"a">>, <<"g">>, <<"b">>]), relay(#{})),
    #{reserved := Before} = ?R:figures(R1),
    {R2, [{<<"a">>, {opened, _, #{window := 100000}}}]} = frame(<<"b">>, opened(key(), 100000), R1),
    #{reserved := After} = ?R:figures(R2),
    ?assertEqual(2 * ((1 bsl 20) - 100000), Before - After),
    %% The other end cannot make it more.
    ?assertMatch({_, [{<<"b">>, {close, _, {<<"g">>, bad_frame, _}}}, {<<"a">>, {close, _, _}}]}, frame(<<"b">>, opened(key(), 1 bsl 21), R1)),
    ?assertMatch({_, [{<<"a">>, {refused, _, {_, window, _}}}]}, frame(<<"a">>, opening(key(), [<<"a">>, <<"g">>, <<"b">>], 1000), relay(#{}))).

as_many_circuits_as_are_allowed_get_a_window_test() ->
    Max = 256,
    {R, Windows} = lists:foldl(
        fun(N, {R0, Windows}) ->
            [From, To] = case N rem 2 of 0 -> [<<"a">>, <<"b">>]; 1 -> [<<"c">>, <<"a">>] end,
            {R1, [{To, {open, _, #{window := Window}}}]} = frame(From, opening(key(N), [From, <<"g">>, To], 1 bsl 30), R0),
            {R1, [Window | Windows]}
        end,
        {relay(#{}), []},
        lists:seq(1, Max)
    ),
    #{budget := Budget, reserved := Reserved, circuits := Max} = ?R:figures(R),
    ?assert(Reserved =< Budget),
    ?assertEqual(131072, lists:min(Windows)),
    ?assert(lists:max(Windows) > 1 bsl 20),
    ?assertMatch({_, [{<<"a">>, {refused, _, {_, circuits, _}}}]}, frame(<<"a">>, opening(key(999), [<<"a">>, <<"g">>, <<"b">>], 1 bsl 20), R)).

%% Also where each is another neighbour's, whose share nobody has used.
the_last_one_has_the_least_window_whatever_the_others_want_test_() ->
    Min = 131072,
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Wants, Most}, {non_empty(list(range(Min, 1 bsl 22))), range(0, 1 bsl 24)}, begin
            Max = length(Wants),
            Limits = #{max_circuits => Max, share => 100, min_window => Min, max_window => 1 bsl 30, max_hops => 8},
            Budget = Max * atoll_dist_admission:cost(Min, Limits) + Most,
            {Windows, #{reserved := Reserved}} = lists:mapfoldl(
                fun(Want, #{circuits := Count, reserved := R} = Used) ->
                    case atoll_dist_admission:window(Want, Used, Limits#{budget => Budget}) of
                        {refuse, _} = No -> {No, Used};
                        Window -> {Window, Used#{circuits := Count + 1, reserved := R + atoll_dist_admission:cost(Window, Limits)}}
                    end
                end,
                #{circuits => 0, reserved => 0, theirs => 0},
                Wants
            ),
            Reserved =< Budget andalso lists:all(fun(Window) -> is_integer(Window) andalso Window >= Min end, Windows)
        end),
        1000
    ).

one_neighbour_does_not_get_all_test() ->
    {R, Refused} = lists:foldl(
        fun(N, {R0, Refused}) ->
            case frame(<<"a">>, opening(key(N), [<<"a">>, <<"g">>, <<"b">>], 1 bsl 30), R0) of
                {R1, [{<<"b">>, {open, _, _}}]} -> {R1, Refused};
                {R1, [{<<"a">>, {refused, _, {_, busy, _}}}]} -> {R1, Refused + 1}
            end
        end,
        {relay(#{}), 0},
        lists:seq(1, 250)
    ),
    ?assert(Refused > 0),
    ?assertMatch({_, [{<<"b">>, {open, _, _}}]}, frame(<<"c">>, opening(key(999), [<<"c">>, <<"g">>, <<"b">>], 1 bsl 20), R)).

when_the_budget_is_given_away_it_refuses_test() ->
    {R0, [_]} = frame(<<"a">>, opening(key(1), [<<"a">>, <<"g">>, <<"b">>], 1 bsl 20), relay(#{budget => 1200000})),
    {R, Out} = frame(<<"c">>, opening(key(2), [<<"c">>, <<"g">>, <<"b">>], 1 bsl 20), R0),
    ?assertMatch([{<<"c">>, {refused, _, {_, busy, _}}}], Out),
    ?assertMatch(#{reserved := Reserved} when Reserved =< 1200000, ?R:figures(R)).

more_than_the_window_closes_the_circuit_with_a_reason_test() ->
    {Window, R0} = established(200000, #{handed => 1}),
    {R1, [_]} = {element(1, cast({frame, <<"a">>, ?F:data(kept, key(), 0, <<0:8000>>)}, R0)), [x]},
    {R2, Acts} = flood(R1, Window div (1000 + 64) + 1, []),
    ?assertMatch([{<<"a">>, {close, _, {<<"g">>, window_exceeded, <<>>}}}], [O || {<<"a">>, _} = O <- out(Acts)]),
    ?assertMatch(#{held := Held} when Held < 210000, ?R:figures(R2)).

%% Nothing of it gets out.
flood(R, 0, Acts) -> {R, Acts};
flood(R0, N, Acts) ->
    {R, More} = cast({frame, <<"a">>, ?F:data(kept, key(), 0, <<0:8000>>)}, R0),
    flood(R, N - 1, Acts ++ More).

small_frames_count_for_more_than_their_bytes_test() ->
    {Window, R0} = established(200000, #{handed => 1}),
    Small = ?F:data(kept, key(), 0, <<1>>),
    R1 = lists:foldl(fun(_, R) -> element(1, cast({frame, <<"a">>, Small}, R)) end, R0, lists:seq(1, Window div 65 + 10)),
    ?assertMatch(#{lost := #{window_exceeded := 1}}, ?R:figures(R1)).

a_later_ack_takes_the_place_of_an_earlier_test() ->
    {_, R0} = established(#{handed => 1}),
    %% Its trunk is busy.
    {R1, [{act, {send, <<"b">>, _, Bytes}}]} = cast({frame, <<"a">>, ?F:data(kept, key(), 0, <<0:8000>>)}, R0),
    R2 = lists:foldl(fun(N, R) -> element(1, cast({frame, <<"a">>, ?F:make(ack(N, N =:= 7))}, R)) end, R1, lists:seq(1, 1000)),
    {_, Acts} = cast({sent, <<"b">>, Bytes}, R2),
    ?assertEqual([{<<"b">>, ack(1000, true)}], out(Acts)).

when_a_neighbour_goes_the_others_hear_it_behind_what_was_sent_test() ->
    {_, R0} = established(#{handed => 1}),
    Data = fun(N) -> {data, key(), N, <<N>>} end,
    {R1, Acts1} = cast({frame, <<"b">>, ?F:make(Data(1))}, R0),
    {R2, []} = cast({frame, <<"b">>, ?F:make(Data(2))}, R1),
    {R3, []} = cast({down, <<"b">>}, R2),
    {_, [Last, Data2]} = lists:foldl(
        fun(_, {R, Out}) ->
            {RNext, Acts} = cast({sent, <<"a">>, 1000}, R),
            {RNext, out(Acts) ++ Out}
        end,
        {R3, []},
        lists:seq(1, 3)
    ),
    ?assertEqual({[{<<"a">>, Data(1)}], {<<"a">>, Data(2)}}, {out(Acts1), Data2}),
    ?assertMatch({<<"a">>, {path_lost, _, {<<"g">>, link_down, <<"b">>}}}, Last).

an_unknown_path_is_answered_but_not_without_end_test() ->
    {R1, [{<<"a">>, {path_lost, _, {_, unknown_path, _}}}]} = frame(<<"a">>, {data, key(), 0, <<1>>}, relay(#{})),
    R2 = lists:foldl(fun(_, R) -> element(1, nobody(cast({frame, <<"a">>, ?F:data(kept, key(), 0, <<1>>)}, R))) end, R1, lists:seq(1, 10000)),
    ?assertMatch(#{held := Held, dropped := #{strays := _}} when Held < 140000, ?R:figures(R2)),
    %% Never an answer to an answer.
    [?assertMatch({_, []}, frame(<<"a">>, {Type, key(), {<<"a">>, moved, <<>>}}, R1)) || Type <- [refused, path_lost, close]].

nobody_else_can_use_a_path_test() ->
    {_, R0} = established(#{}),
    [
        ?assertMatch({_, Out} when Out =:= [] orelse element(1, hd(Out)) =:= <<"c">>, frame(<<"c">>, Frame, R0))
     || Frame <- [{data, key(), 0, <<1>>}, ack(1, true), {close, key(), {<<"a">>, closed, <<>>}}, {path_lost, key(), {<<"a">>, moved, <<>>}},
            opening(key(), [<<"c">>, <<"g">>, <<"b">>], 1 bsl 20), opened(key(), 100000), confirm(key())]
    ].

a_path_that_nobody_uses_is_forgotten_test() ->
    {_, R0} = established(#{idle_ms => 1000, open_ms => 500}),
    {R1, [_]} = frame(<<"a">>, opening(key(2), [<<"a">>, <<"g">>, <<"c">>], 1 bsl 20), R0),
    {R2, Acts2} = ?R:handle({timeout, sweep}, 500, R1),
    ?assertMatch([{timer, sweep, 500}], [T || {timer, _, _} = T <- Acts2]),
    ?assertMatch([{<<"c">>, {path_lost, _, {_, idle, _}}}, {<<"a">>, {path_lost, _, _}}], out(Acts2)),
    {R3, Acts3} = ?R:handle({timeout, sweep}, 1000, R2),
    ?assertEqual(2, length(out(Acts3))),
    ?assertMatch(#{circuits := 0}, ?R:figures(R3)),
    %% It has only what its trunks may hold.
    ?assertEqual(maps:get(reserved, ?R:figures(relay(#{}))), maps:get(reserved, ?R:figures(R3))).

%% Hostile clients

hostile_test_() ->
    atoll_prop:test(?FUNCTION_NAME, hostile(), 200, [{max_size, 60}]).

%% Whatever m sends: the relay and the ends stand, the relay's memory is bounded, and the
%% circuit of a and b is not hurt.
hostile() ->
    ?FORALL({Ops, Budget}, {list(op()), oneof([134217728, 2097152, 1200000])}, begin
        Names = [<<"a">>, <<"b">>, <<"g">>, <<"m">>],
        W0 = lists:foldl(fun ?W:start/2, ?W:new(#{relay => #{budget => Budget, max_circuits => 4, idle_ms => 5000}}), Names),
        W1 = lists:foldl(fun(N, W) -> ?W:link(N, <<"g">>, via, W) end, W0, Names -- [<<"g">>]),
        W2 = ?W:run_for(10000, ?W:circuit(<<"a">>, <<"b">>, ?ID, W1)),
        W4 = ?W:freeze(<<"m">>, W2),
        W5 = lists:foldl(
            fun({Us, Op}, W) -> op(Op, ?W:push({<<"b">>, ?ID}, [9], ?W:push({<<"a">>, ?ID}, [10, 20000], ?W:run_for(Us, W)))) end,
            W4,
            Ops
        ),
        W = ?W:run_for(60000000, ?W:unblock(<<"g">>, <<"b">>, W5)),
        N = length(Ops),
        ?WHENFAIL(
            io:format("~p~n~p~n~p~n", [?W:wrong(W), [{E, ?W:notices(E, W), ?W:figures(E, W), ?W:got(E, W)} || E <- ?W:ends(W)], ?W:relay(<<"g">>, W)]),
            conjunction([
                {nothing_wrong, equals([], ?W:wrong(W))},
                {unhurt, equals({2 * N, N}, {?W:got({<<"b">>, ?ID}, W), ?W:got({<<"a">>, ?ID}, W)})},
                {alone, equals(1, maps:get(circuits, ?W:relay(<<"g">>, W)))}
            ])
        )
    end).

op() -> {range(0, 2000), {oneof([m, n, q, a]), range(1, 2), a_frame()}}.

a_frame() ->
    frequency([
        {4, {open, oneof([[<<"m">>, <<"g">>, <<"b">>], [<<"m">>, <<"g">>, <<"m">>], [<<"m">>, <<"g">>], [<<"a">>, <<"g">>, <<"b">>],
            [<<"m">>, <<"g">>, <<"a">>]]), oneof([100, 74000, 131072, 1 bsl 31])}},
        {3, confirm},
        {3, establish},
        {2, block},
        {2, unblock},
        {6, {data, oneof([0, 65, 1064, range(0, 100000)]), oneof([1, 1000, 60000, 64000]), oneof([1, 3, 100])}},
        {2, {ack, range(0, 100000), range(1, 300)}},
        {1, opened},
        {1, {say, oneof([refused, path_lost, close])}},
        {1, {noise, binary()}}
    ]).

op({_, _, block}, W) -> ?W:block(<<"g">>, <<"b">>, W);
op({_, _, unblock}, W) -> ?W:unblock(<<"g">>, <<"b">>, W);
op({Whose, Epoch, establish}, W0) ->
    W = op({Whose, Epoch, {open, [<<"m">>, <<"g">>, <<"b">>], 1 bsl 20}}, W0),
    op({Whose, Epoch, confirm}, ?W:run_for(2000, W));
op({Whose, Epoch, What}, W0) ->
    Id = case Whose of m -> <<"mmmmmmmmmmmmmmmm">>; n -> <<"nnnnnnnnnnnnnnnn">>; q -> <<"qqqqqqqqqqqqqqqq">>; a -> ?ID end,
    Key = ?F:key(Id, Epoch),
    Frames =
        case What of
            {open, Path, Window} -> [?F:make(opening(Key, Path, Window))];
            confirm -> [?F:make(confirm(Key))];
            {data, At, Size, N} -> lists:duplicate(N, ?F:data(case At rem 2 of 0 -> kept; 1 -> free end, Key, At, <<0:(8 * Size)>>));
            {ack, At, N} -> lists:duplicate(N, ?F:make({ack, Key, #{received => At, consumed => At, asks => true, narrow => true}}));
            opened -> [?F:make(opened(Key, 100000))];
            {say, Type} -> [?F:make({Type, Key, {<<"m">>, moved, <<>>}})];
            {noise, Bytes} -> [Bytes]
        end,
    lists:foldl(fun(Frame, W) -> ?W:inject(<<"m">>, <<"g">>, Frame, W) end, W0, Frames).

%% Data of an open circuit where nothing waits goes the short way, and all else does not.
the_short_way_does_what_the_long_one_does_test() ->
    {_, R} = established(#{handed => 2000}),
    Data = ?F:make({data, key(), 0, <<0:8000>>}),
    {<<"b">>, none, Straight} = ?R:straight(<<"a">>, Data, 0, R),
    {Long, [{act, {send, <<"b">>, [Data], Bytes}}]} = cast({frame, <<"a">>, Data}, R),
    ?assertEqual(?R:figures(element(1, cast({sent, <<"b">>, Bytes}, Long))), ?R:figures(Straight)),
    %% If it stays there it counts as what the long way handed.
    {Waits, []} = cast({waits, <<"b">>, Bytes}, Straight),
    ?assertEqual(?R:figures(Long), ?R:figures(Waits)),
    ?assertEqual(no, ?R:straight(<<"a">>, Data, 0, Waits)),
    {<<"a">>, none, _} = ?R:straight(<<"b">>, Data, 0, Waits),
    %% Past the other one's hub goes only what may overtake.
    {At, []} = cast({at, <<"b">>, key(), place_there}, R),
    Free = ?F:data(free, key(), 0, <<0:8000>>),
    ?assertMatch({{<<"b">>, none, _}, {<<"b">>, place_there, _}}, {?R:straight(<<"a">>, Data, 0, At), ?R:straight(<<"a">>, Free, 0, At)}),
    ?assertMatch({<<"a">>, none, _}, ?R:straight(<<"b">>, Free, 0, At)),
    {Both, []} = cast({at, <<"a">>, key(), place_here}, At),
    ?assertMatch({<<"a">>, place_here, _}, ?R:straight(<<"b">>, Free, 0, Both)),
    %% Nobody says so for another one's side.
    [?assertEqual({R, []}, cast({at, From, Key, elsewhere}, R)) || {From, Key} <- [{<<"c">>, key()}, {<<"b">>, key(7)}]],
    [
        ?assertEqual(no, ?R:straight(From, Frame, 0, R))
     || {From, Frame} <- [
            {<<"c">>, Data},
            {<<"a">>, ?F:make({data, key(7), 0, <<"x">>})},
            {<<"a">>, ?F:make(ack(0, true))},
            {<<"a">>, binary:part(Data, 0, 30)},
            {<<"a">>, <<Data/binary, 0:600000>>}
        ]
    ].
