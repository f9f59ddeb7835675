%% SPDX-License-Identifier: Apache-2.0
%% Two ends of a protocol speak the newest version that both have, whatever is lost.
-module(atoll_versions_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(V, atoll_versions).
%% As many as are said again.
-define(HELD, 16).

properties_test_() ->
    atoll_prop:tests([
        {"each end reads all that it is sent, and nothing twice, where it has a version in common", prop_reads(), 3000},
        {"in the end they speak the newest that both have, or each knows that there is none", prop_agrees(), 5000},
        {"two with the same oldest version say hello twice at most for a connection, and never where both have version 1 alone", prop_cheap(), 1000},
        {"of those that are gone nothing is kept", prop_forgets(), 1000}
    ]).

%% Two ends, a and b. What is on its way: {Envelope, {Version, Message} | none}, in order.

range() -> ?LET({A, B}, {choose(1, 4), choose(0, 2)}, {A, A + B}).

%% One of the first releases reads and writes nothing but envelope 1.
kind() -> frequency([{5, range()}, {1, first}]).

side() -> oneof([a, b]).

world(Kinds) ->
    maps:merge(#{n => 1, sent => [], busy => false}, maps:from_list([{S, fresh(S, Kind)} || {S, Kind} <- lists:zip([a, b], Kinds)])).

fresh(Side, Kind) ->
    #{
        kind => Kind,
        versions => ?V:new(Side, case Kind of first -> {1, 1}; _ -> Kind end),
        way => [],
        read => [],
        unread => 0,
        hellos => 0,
        apart => 0,
        together => 0
    }.

other(a) -> b;
other(b) -> a.

%% Says something.
do({say, Side}, #{n := N, sent := Sent} = World) ->
    #{Side := #{kind := Kind, versions := Versions} = End} = World,
    {Effects, Next} =
        case Kind of
            first -> {[{put, other(Side), 1, 1, N}], Versions};
            _ -> ?V:out(other(Side), N, Versions)
        end,
    perform(Effects, Side, World#{n := N + 1, sent := [{Side, N} | Sent], Side := End#{versions := Next}});
do({arrive, Side}, World) ->
    %% What the side has sent arrives at the other.
    case World of
        #{Side := #{way := []}} -> World;
        #{Side := #{way := [What | Way]} = End} -> take(What, other(Side), World#{Side := End#{way := Way}})
    end;
%% The process was not there when it came, and knows nothing.
do({restart, Side}, World) ->
    Other = other(Side),
    #{Side := #{kind := Kind, way := Way}, Other := Lost} = World,
    World#{Side := (fresh(Side, Kind))#{way := Way}, Other := Lost#{way := []}};
do({busy, Is}, World) ->
    World#{busy := Is};
do(lost, World) ->
    lists:foldl(
        fun(S, W) -> change(S, fun(#{versions := V} = End) -> End#{way := [], versions := ?V:down(other(S), V)} end, W) end,
        World,
        [a, b]
    ).

change(Side, Fun, World) ->
    #{Side := End} = World,
    World#{Side := Fun(End)}.

take({Envelope, In}, Side, World) ->
    #{Side := #{kind := Kind, versions := Versions} = End} = World,
    case Kind of
        first when Envelope =:= 1 ->
            read(In, Side, World);
        first ->
            World;
        {Oldest, Newest} ->
            {Reading, Effects, Next} = ?V:in(other(Side), Envelope, Versions),
            Done = perform(Effects, Side, World#{Side := End#{versions := Next}}),
            case {Reading, In} of
                {hello, none} -> Done;
                {{read, Version}, {Version, _}} when Oldest =< Version, Version =< Newest -> read(In, Side, Done);
                {unread, {Version, _}} when Version < Oldest; Version > Newest ->
                    change(Side, fun(#{unread := N} = E) -> E#{unread := N + 1} end, Done)
            end
    end.

read({_Version, Message}, Side, World) ->
    change(Side, fun(#{read := Read} = End) -> End#{read := [Message | Read]} end, World).

%% As the interpreter does: what follows a hello that was not sent is not sent.
perform(Effects, Side, World) ->
    lists:foldl(fun(Effect, W) -> perform_one(Effect, Side, W) end, World, reached(Effects, Side, World)).

reached([{hello, _, _} | Effects], _Side, #{busy := true}) -> [untold | [E || E <- Effects, element(1, E) =/= put]];
reached(Effects, _Side, #{busy := true}) -> [E || E <- Effects, element(1, E) =/= put];
reached(Effects, _Side, _World) -> Effects.

perform_one(untold, Side, World) ->
    change(Side, fun(#{versions := V} = End) -> End#{versions := ?V:untold(other(Side), V)} end, World);
perform_one({hello, _, Envelope}, Side, World) ->
    change(Side, fun(#{way := Way, hellos := N} = End) -> End#{way := Way ++ [{Envelope, none}], hellos := N + 1} end, World);
perform_one({put, _, Envelope, Version, Message}, Side, World) ->
    change(Side, fun(#{way := Way} = End) -> End#{way := Way ++ [{Envelope, {Version, Message}}]} end, World);
perform_one({apart, _, _}, Side, World) ->
    change(Side, fun(#{apart := N} = End) -> End#{apart := N + 1} end, World);
perform_one({together, _}, Side, World) ->
    change(Side, fun(#{together := N} = End) -> End#{together := N + 1} end, World).

%% All arrives that is on its way.
calm(#{a := #{way := []}, b := #{way := []}} = World) -> World;
calm(World) -> calm(do({arrive, b}, do({arrive, a}, World))).

%% Each says something and hears the other, after all is calm.
talk(World) -> calm(do({say, b}, calm(do({say, a}, calm(World#{busy := false}))))).

%% Who cannot read is told ever more seldom.
talk_on(World) -> lists:foldl(fun(_, W) -> talk(W) end, World, lists:seq(1, 64)).

common([A, B]) ->
    {A1, A2} = of_kind(A),
    {B1, B2} = of_kind(B),
    case min(A2, B2) of
        V when V >= A1, V >= B1 -> V;
        _ -> none
    end.

of_kind(first) -> {1, 1};
of_kind(Range) -> Range.

prop_reads() ->
    ?FORALL(
        {Kinds, Deeds},
        {[kind(), kind()], list(frequency([{2, {say, side()}}, {3, {arrive, side()}}]))},
        begin
            Early = lists:sublist([D || D <- Deeds], 4 * ?HELD),
            #{a := #{read := ReadA} = A, b := #{read := ReadB} = B, sent := Sent} = calm(lists:foldl(fun do/2, world(Kinds), Early)),
            Few = lists:max([length([x || {S, _} <- Sent, S =:= Side]) || Side <- [a, b]]) =< ?HELD,
            ?WHENFAIL(
                io:format("~p~n~p~n", [A, B]),
                case common(Kinds) of
                    none -> ReadA =:= [] andalso ReadB =:= [];
                    _ when Few -> ReadA =:= [N || {b, N} <- Sent] andalso ReadB =:= [N || {a, N} <- Sent];
                    _ -> ordered(ReadA) andalso ordered(ReadB)
                end
            )
        end
    ).

ordered(NewestFirst) -> lists:usort(NewestFirst) =:= lists:reverse(NewestFirst).

prop_agrees() ->
    ?FORALL(
        {Kinds, Deeds},
        {[kind(), kind()], list(frequency([{8, {say, side()}}, {12, {arrive, side()}}, {1, {restart, side()}}, {3, {busy, boolean()}}, {1, lost}]))},
        begin
            World = talk_on(lists:foldl(fun do/2, world(Kinds), Deeds)),
            #{a := #{read := ReadA, unread := UnreadA, apart := ApartA, together := TogetherA}} = World,
            #{b := #{read := ReadB, unread := UnreadB}} = World,
            Common = common(Kinds),
            #{n := N} = World,
            Said = do({say, b}, do({say, a}, World)),
            Versions = [[V || {_, {V, _}} <- maps:get(way, maps:get(S, Said))] || S <- [a, b]],
            #{a := #{read := NextA, unread := U1}, b := #{read := NextB, unread := U2}} = calm(Said),
            ?WHENFAIL(
                io:format("~p~nthen ~p~n", [World, Said]),
                ordered(ReadA) andalso ordered(ReadB) andalso
                    case Common of
                        none ->
                            NextA =:= [] andalso NextB =:= [] andalso
                                (lists:member(first, Kinds) orelse (Versions =:= [[], []] andalso ApartA > TogetherA));
                        V ->
                            Versions =:= [[V], [V]] andalso hd(NextA) =:= N + 1 andalso hd(NextB) =:= N andalso
                                {U1, U2} =:= {UnreadA, UnreadB}
                    end
            )
        end
    ).

prop_cheap() ->
    ?FORALL(
        {[A0, B0] = Kinds, Deeds},
        {[range(), range()], list(frequency([{2, {say, side()}}, {3, {arrive, side()}}]))},
        begin
            #{a := #{hellos := A, apart := ApartA, together := TogetherA}, b := #{hellos := B}} = talk(lists:foldl(fun do/2, world(Kinds), Deeds)),
            ?WHENFAIL(
                io:format("~p~n", [{A, B, ApartA}]),
                max(A, B) =< 2 * (case element(1, A0) =:= element(1, B0) of false -> 1 + ceil(math:log2(length(Deeds) + 2)); true -> 1 end) andalso TogetherA =:= 0 andalso ApartA =< 1 andalso
                    (Kinds =/= [{1, 1}, {1, 1}] orelse {A, B} =:= {0, 0})
            )
        end
    ).

prop_forgets() ->
    ?FORALL(
        {Kinds, Deeds},
        {[range(), range()], list(frequency([{8, {say, side()}}, {12, {arrive, side()}}, {1, {busy, boolean()}}]))},
        begin
            #{a := #{versions := Versions}} = do(lost, lists:foldl(fun do/2, world(Kinds), Deeds)),
            Versions =:= ?V:new(a, hd(Kinds))
        end
    ).

%% What a node sends that knows nothing of the other is read by the first releases.
who_has_version_1_alone_writes_as_ever_test() ->
    V = ?V:new(a, {1, 1}),
    {[{put, b, 1, 1, m}], V} = ?V:out(b, m, V),
    {{read, 1}, [], V} = ?V:in(b, 1, V).

two_of_the_next_release_agree_test() ->
    A0 = ?V:new(a, {1, 2}),
    {[{hello, b, Asks}, {put, b, 1, 1, m}], A1} = ?V:out(b, m, A0),
    {hello, [{hello, a, Tells}], B} = ?V:in(a, Asks, ?V:new(b, {1, 2})),
    {{read, 1}, [], B} = ?V:in(a, 1, B),
    {hello, [], A} = ?V:in(b, Tells, A1),
    {[{put, b, Envelope, 2, m2}], A} = ?V:out(b, m2, A),
    {{read, 2}, [], B} = ?V:in(a, Envelope, B),
    %% It takes four bytes at most beside a message of the first release.
    ?assert(byte_size(term_to_binary({atoll, Envelope, node(), m2})) - byte_size(term_to_binary({atoll, 1, node(), m2})) =< 4),
    ?assertEqual(#{a => 2, b => 2}, ?V:peers(A)).

what_was_said_too_early_is_said_again_test() ->
    A0 = ?V:new(a, {1, 2}),
    {_, A1} = ?V:out(b, m1, A0),
    {_, A2} = ?V:out(b, m2, A1),
    {_, [{hello, a, Asks} | _], _} = ?V:in(a, 1, ?V:new(b, {2, 3})),
    {hello, [{hello, b, _}, {put, b, E, 2, m1}, {put, b, E, 2, m2}], _} = ?V:in(b, Asks, A2).

who_is_too_new_is_told_of_once_test() ->
    A0 = ?V:new(a, {1, 1}),
    {[{hello, a, Asks}, {put, a, E, 3, m}], _} = ?V:out(a, m, ?V:new(b, {3, 4})),
    {hello, [{hello, b, _}, {apart, b, {3, 4}}], A} = ?V:in(b, Asks, A0),
    {unread, [{hello, b, _}], A1} = ?V:in(b, E, A),
    {unread, [{hello, b, _}], A2} = ?V:in(b, E, A1),
    {unread, [], A3} = ?V:in(b, E, A2),
    {[], A3} = ?V:out(b, m, A3),
    ?assertEqual(#{b => {none, {3, 4}}}, ?V:peers(A3)),
    ?assertEqual(
        "the peer is too new: this node has version 1 of this protocol, and the peer versions 3 to 4",
        lists:flatten(?V:format({3, 4}, {1, 1}))
    ).

who_is_held_for_a_newer_release_says_what_it_is_test() ->
    %% b was of the next release, and a has not heard that it ended.
    {hello, _, A1} = ?V:in(b, 16#020100, ?V:new(a, {1, 2})),
    {[{put, b, E, 2, m}], A1} = ?V:out(b, m, A1),
    {unread, [{hello, a, Tells}], _} = ?V:in(a, E, ?V:new(b, {1, 1})),
    {hello, [], A2} = ?V:in(b, Tells, A1),
    {[{put, b, 1, 1, m}], A2} = ?V:out(b, m, A2).

an_envelope_of_a_release_to_come_is_not_read_test() ->
    V0 = ?V:new(a, {1, 1}),
    [
        ?assertMatch({unread, [{hello, b, _}, {apart, b, newer}], _}, ?V:in(b, Envelope, V0))
     || Envelope <- [2, 1000, 16#020103, 16#010201, 16#2010101, 1 bsl 32 + 16#010101, 1 bsl 100]
    ].
