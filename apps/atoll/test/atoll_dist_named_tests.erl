%% SPDX-License-Identifier: Apache-2.0
%% Channels with a name: both ends come to the same lanes, and there are never too many.
-module(atoll_dist_named_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(atoll_dist_named, [offer/1, agree/2, sum/1, layout/3, check/1]).

properties_test_() ->
    [
        atoll_prop:test(Name, Property, 500)
     || {Name, Property} <- [{both_ends_agree, prop_agree()}, {each_channel_has_lanes_of_its_own, prop_layout()}]
    ].

channels() ->
    ?SUCHTHAT(
        Channels,
        ?LET(
            List,
            list({oneof([a, b, c, d]), oneof([#{}, #{monotonic => true}, #{causal => true}, ?LET(N, range(1, 31), #{lanes => N})])}),
            maps:from_list(List)
        ),
        check(Channels) =:= ok
    ).

wish() -> oneof([direct, {auto, 5000, 16}, ?LET(N, range(1, 64), {lanes, N})]).

prop_agree() ->
    ?FORALL({One, Other}, {channels(), channels()}, begin
        Agreed = agree(offer(One), offer(Other)),
        Names = lists:usort(maps:keys(One) ++ maps:keys(Other)),
        Most = fun(Name) -> lists:max([maps:get(lanes, C, 1) || Cs <- [One, Other], {N, C} <- maps:to_list(Cs), N =:= Name]) end,
        conjunction([
            {same, equals(Agreed, agree(offer(Other), offer(One)))},
            {larger, equals([{atom_to_binary(Name), Most(Name)} || Name <- Names], Agreed)},
            {old_peer, equals(none, agree(offer(One), none))}
        ])
    end).

%% Whatever kind it is, all that is in a channel, and what is in none, has lanes, and nobody
%% else has them; a channel of the other end alone has none here.
prop_layout() ->
    ?FORALL({One, Other, Wishes}, {channels(), channels(), {wish(), wish()}}, begin
        {OneWish, OtherWish} = Wishes,
        Kind0 = atoll_dist_kind:agree(OneWish, OtherWish, 0),
        {Kind, Agreed} = atoll_dist_kind:with_channels(Kind0, [OneWish, OtherWish], agree(offer(One), offer(Other))),
        case Kind of
            direct ->
                conjunction([{none, Agreed =:= [] }, {why, lists:member(direct, [OneWish, OtherWish]) orelse map_size(maps:merge(One, Other)) =:= 0}]);
            {lanes, N} ->
                [#{name := default, first := 0} | Own] = Groups = layout(N, Agreed, One),
                Lanes = [Lane || #{first := First, lanes := Count} <- Groups, Lane <- lists:seq(First, First + Count - 1)],
                conjunction([
                    {bound, N =< 64},
                    {apart, equals(lists:usort(Lanes), lists:sort(Lanes))},
                    {within, lists:all(fun(Lane) -> Lane < N end, Lanes)},
                    {known, equals(lists:sort(maps:keys(One)), lists:sort([Name || #{name := Name} <- Own]))},
                    {causal, lists:all(fun(#{name := Name, lanes := Count}) -> Count =:= 1 orelse not causal(Name, One) end, Own)},
                    {sum, N >= sum(Agreed) + 1}
                ])
        end
    end).

causal(Name, Channels) -> maps:get(causal, maps:get(Name, Channels), false).

channels_make_lanes_of_what_is_left_open_and_not_of_direct_test() ->
    Auto = {auto, 5000, 16},
    Agreed = [{<<"a">>, 2}],
    ?assertEqual({{lanes, 3}, Agreed}, atoll_dist_kind:with_channels(direct, [Auto, Auto], Agreed)),
    ?assertEqual({direct, []}, atoll_dist_kind:with_channels(direct, [Auto, direct], Agreed)),
    ?assertEqual({{lanes, 64}, Agreed}, atoll_dist_kind:with_channels({lanes, 64}, [Auto, {lanes, 64}], Agreed)),
    ?assertEqual({direct, []}, atoll_dist_kind:with_channels(direct, [Auto, Auto], [])),
    ?assertEqual({direct, none}, atoll_dist_kind:with_channels(direct, [Auto, Auto], none)).
