%% SPDX-License-Identifier: Apache-2.0
%% What members say of themselves merges to the same whatever the order, the last word of
%% each wins, and its size is bounded.
-module(atoll_roster_meta_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 1000)
     || {Title, Property} <- [
            {"the order of merging does not matter, nor how often",
                ?FORALL({A, B}, {said(), said()}, all(put_all(A ++ B)) =:= all(put_all(B ++ A ++ B)))},
            {"the last word of each is kept",
                ?FORALL(Said, said(), all(put_all(Said)) =:= last_words(Said))},
            {"the hashes are equal where the words are, and nowhere else",
                ?FORALL({A, B}, {said(), said()}, hashes_tell(put_all(A), put_all(B)))},
            {"what is newer is what the other lacks",
                ?FORALL({A, B}, {said(), said()}, newer_is_enough(put_all(A), put_all(B)))},
            {"what is dropped leaves no trace",
                ?FORALL(
                    {A, N},
                    {said(), name()},
                    atoll_roster_meta:drop(N, put_all(A)) =:= put_all([E || {Node, _} = E <- A, Node =/= N])
                )}
        ]
    ].

name() -> oneof([n1, n2, n3, n4]).

%% As only the node itself gives stamps, there is one map for each.
said() -> list(?LET({Node, Stamp}, {name(), {choose(1, 3), choose(1, 3)}}, {Node, {Stamp, #{said => Stamp}}})).

put_all(Said) ->
    lists:foldl(fun({N, Entry}, M) -> element(2, atoll_roster_meta:put(N, Entry, M)) end, atoll_roster_meta:new(), Said).

all(Metas) -> lists:sort(lists:append([atoll_roster_meta:bucket(I, Metas) || I <- lists:seq(1, 128)])).

last_words(Said) -> lists:sort(maps:to_list(maps:from_list(lists:sort(Said)))).

hashes_tell(A, B) ->
    Same = all(A) =:= all(B),
    Differing = atoll_roster_meta:differing(atoll_roster_meta:hashes(A), B),
    (atoll_roster_meta:root(A) =:= atoll_roster_meta:root(B)) =:= Same andalso (Differing =:= []) =:= Same andalso
        (atoll_roster_meta:root(A) =:= none) =:= (all(A) =:= []).

newer_is_enough(A, B) ->
    Sent = lists:append([atoll_roster_meta:newer(I, atoll_roster_meta:bucket(I, B), A) || I <- lists:seq(1, 128)]),
    Merged = lists:foldl(fun({N, Entry}, M) -> element(2, atoll_roster_meta:put(N, Entry, M)) end, B, Sent),
    all(Merged) =:= last_words(all(A) ++ all(B)) andalso Sent -- all(B) =:= Sent.

what_is_no_map_or_too_large_is_said_in_a_sentence_test() ->
    Fits = #{k => binary:copy(<<"x">>, 1024 - erlang:external_size(#{k => <<>>}))},
    ?assertEqual(ok, atoll_roster_meta:check(#{})),
    ?assertEqual(ok, atoll_roster_meta:check(Fits)),
    ?assertEqual("the metadata of a node must be a map", said(atoll_roster_meta:check([{a, 1}]))),
    ?assertEqual(
        "the metadata of a node must be 1024 bytes at most in the external term format, not 1025",
        said(atoll_roster_meta:check(maps:map(fun(k, X) -> <<X/binary, "x">> end, Fits)))
    ).

said({error, Error}) -> lists:flatten(atoll:format_error(Error)).
