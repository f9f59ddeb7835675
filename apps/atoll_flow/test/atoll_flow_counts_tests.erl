%% SPDX-License-Identifier: Apache-2.0
%% What is counted, and what windows are taken for: beside senders of whom all is known.
-module(atoll_flow_counts_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([
        {what_is_traced_is_counted_exactly, exactly(), 500},
        {windows_are_taken_for_what_the_connection_has_carried, windows(), 500}
    ]).

total(Peer, Counts) -> lists:sum([Count || {{Its, _, _, _}, Count, _} <- atoll_flow_counts:totals(Counts), Its =:= Peer]).

exactly() ->
    Key = {oneof([p, q]), oneof([{[], none}, {[g], none}, {[g], {ok, g}}]), oneof([message, call, monitor]), oneof([any, x])},
    ?FORALL(Sent, list({Key, range(0, 100)}), begin
        Counts = lists:foldl(fun({{Peer, Way, Kind, By}, Size}, Acc) -> atoll_flow_counts:add(Peer, Way, Kind, By, Size, Acc) end, atoll_flow_counts:new({0, #{}}), Sent),
        Sum = fun(Is) -> Found = [Size || {K, Size} <- Sent, K =:= Is], {Is, length(Found), lists:sum(Found)} end,
        lists:sort(atoll_flow_counts:totals(Counts)) =:= [Sum(Is) || Is <- lists:usort([K || {K, _} <- Sent])]
    end).

%% Messages of one size: however fast they come in a window or outside of one, they are counted as they are, where the
%% connection's bytes are known.
windows() ->
    Part = {range(1, 50), range(0, 500)},
    ?FORALL({Whole, Windows}, {range(0, 100), non_empty(list(Part))}, begin
        Send = fun(N, Traced, {Counts, Bytes}) ->
            {case Traced of true -> lists:foldl(fun(_, C) -> atoll_flow_counts:add(p, {[], none}, message, any, 10, C) end, Counts, lists:seq(1, N)); false -> Counts end, Bytes + 40 * N}
        end,
        Meters = fun(Bytes) -> {0, #{p => {Bytes div 40, Bytes}}} end,
        {Counts0, Bytes0} = Send(Whole, true, {atoll_flow_counts:new(Meters(1000)), 1000}),
        {Counts, Bytes} = lists:foldl(fun({In, Out}, {C, B}) ->
            {C1, B1} = Send(In, true, {atoll_flow_counts:opened(Meters(B), C), B}),
            Send(Out, false, {atoll_flow_counts:folded(atoll_flow_counts:closed(Meters(B1), C1)), B1})
        end, {atoll_flow_counts:closed(Meters(Bytes0), Counts0), Bytes0}, Windows),
        %% All that was sent since the last window, too.
        Done = atoll_flow_counts:whole(Meters(Bytes), Counts),
        Seen = Whole + lists:sum([In || {In, _} <- Windows]),
        abs(total(p, Done) - (Bytes - 1000) / 40) < 1.0e-6 andalso abs(total(p, Done) - Seen - atoll_flow_counts:estimated(Done)) < 1.0e-6
    end).

%% Small messages in each window, large ones of two fragments outside of them: the packets of the connection tell how many, its bytes how large.
where_sizes_differ_by_time_packets_are_taken_test() ->
    Round = fun(_, {C, {P, B}}) ->
        Small = lists:foldl(fun(_, Acc) -> atoll_flow_counts:add(p, {[], none}, message, any, 50, Acc) end, atoll_flow_counts:opened({0, #{p => {P, B}}}, C), lists:seq(1, 1000)),
        Within = {P + 1000, B + 1000 * 70},
        {atoll_flow_counts:folded(atoll_flow_counts:closed({0, #{p => Within}}, Small)), {P + 1000 + 40, B + 1000 * 70 + 20 * 100100}}
    end,
    Begun = {1, 1},
    {Counts, Meter} = lists:foldl(Round, {atoll_flow_counts:closed({0, #{p => Begun}}, atoll_flow_counts:new({0, #{p => Begun}})), Begun}, lists:seq(1, 50)),
    Done = atoll_flow_counts:whole({0, #{p => Meter}}, Counts),
    [{_, Count, Bytes}] = atoll_flow_counts:totals(Done),
    ?assert(abs(Count / (50 * 1020) - 1) < 0.03, Count),
    ?assert(Bytes / (50 * (1000 * 50 + 20 * 100000)) < 1.1, Bytes).

where_no_bytes_are_known_time_is_taken_test() ->
    Add = fun(N, C) -> lists:foldl(fun(_, Acc) -> atoll_flow_counts:add(p, {[], none}, message, any, 1, Acc) end, C, lists:seq(1, N)) end,
    C0 = atoll_flow_counts:closed({1000, #{}}, Add(10, atoll_flow_counts:new({0, #{}}))),
    %% A tenth of the time is a window.
    C1 = atoll_flow_counts:folded(atoll_flow_counts:closed({1100, #{}}, Add(5, atoll_flow_counts:opened({1000, #{}}, C0)))),
    C2 = atoll_flow_counts:folded(atoll_flow_counts:closed({2100, #{}}, Add(5, atoll_flow_counts:opened({2000, #{}}, C1)))),
    ?assertEqual(10 + 5 + 50.0, total(p, C2)).

a_connection_that_is_a_new_one_is_not_taken_for_an_old_one_test() ->
    Add = fun(N, C) -> lists:foldl(fun(_, Acc) -> atoll_flow_counts:add(p, {[], none}, message, any, 1, Acc) end, C, lists:seq(1, N)) end,
    C0 = atoll_flow_counts:closed({0, #{p => {10000, 1000000}}}, atoll_flow_counts:new({0, #{p => {0, 0}}})),
    C1 = atoll_flow_counts:folded(atoll_flow_counts:closed({0, #{p => {6, 300}}}, Add(5, atoll_flow_counts:opened({0, #{p => {1, 100}}}, C0)))),
    ?assertEqual(5, total(p, C1)).

what_is_beyond_is_sent_by_others_test() ->
    Counts = lists:foldl(fun(N, C) -> atoll_flow_counts:add(p, {[], none}, message, list_to_atom("by" ++ integer_to_list(N)), 1, C) end, atoll_flow_counts:new({0, #{}}), lists:seq(1, 5010)),
    ?assertEqual(5010, total(p, Counts)),
    ?assertMatch([{{p, _, message, others}, 10, 10}], [Is || {{_, _, _, others}, _, _} = Is <- atoll_flow_counts:totals(Counts)]).
