%% SPDX-License-Identifier: Apache-2.0
%% The kind of a connection: both ends agree on one, whatever each of them asks for.
-module(atoll_dist_kind_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(atoll_dist_kind, [agree/3, wish/3]).

auto() -> {auto, 5000, 16}.

short_paths_left_open_are_direct_test() ->
    ?assertEqual(direct, agree(auto(), auto(), 4999)).

long_paths_left_open_get_lanes_test() ->
    ?assertEqual({lanes, 16}, agree(auto(), auto(), 5000)).

what_is_asked_for_beats_what_is_left_open_test() ->
    ?assertEqual(direct, agree(auto(), direct, 100000)),
    ?assertEqual({lanes, 2}, agree({lanes, 2}, auto(), 0)).

lanes_beat_direct_and_more_beat_fewer_test() ->
    ?assertEqual({lanes, 3}, agree(direct, {lanes, 3}, 0)),
    ?assertEqual({lanes, 8}, agree({lanes, 8}, {lanes, 3}, 0)).

what_is_configured_for_a_peer_comes_first_test() ->
    {ok, Config} = atoll_dist_config:new([{kind, direct}, {peers, [{a@h, {lanes, 2}}]}]),
    Preferred = #{<<"a@h">> => {lanes, 3}, <<"b@h">> => auto},
    ?assertEqual({lanes, 2}, wish(<<"a@h">>, Config, Preferred)),
    ?assertEqual({auto, 5000, 16}, wish(<<"b@h">>, Config, Preferred)),
    ?assertEqual(direct, wish(<<"c@h">>, Config, Preferred)).

properties_test_() ->
    [
        atoll_prop:test(Name, Property, 500)
     || {Name, Property} <- [{both_ends_agree, prop_both_ends_agree()}, {nobody_gets_lanes_unasked, prop_unasked()}]
    ].

lanes() -> integer(1, 64).
rtt() -> integer(0, 20000).
wish() -> oneof([direct, {lanes, lanes()}, {auto, rtt(), lanes()}]).

prop_both_ends_agree() ->
    ?FORALL({One, Other, Rtt}, {wish(), wish(), rtt()}, agree(One, Other, Rtt) =:= agree(Other, One, Rtt)).

prop_unasked() ->
    ?FORALL(
        {One, Other, Rtt},
        {wish(), wish(), rtt()},
        case agree(One, Other, Rtt) of
            direct ->
                true;
            {lanes, N} ->
                lists:any(
                    fun
                        ({lanes, Asked}) -> Asked =:= N;
                        ({auto, From, Lanes}) -> Rtt >= From andalso Lanes =:= N;
                        (direct) -> false
                    end,
                    [One, Other]
                )
        end
    ).
