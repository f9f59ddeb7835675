%% SPDX-License-Identifier: Apache-2.0
%% What is answered to another VM is read there without making an atom.
-module(atoll_cluster_plain_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(plain(Term), atoll_cluster_plain:term(Term)).

atoms_become_binaries_wherever_they_stand_test() ->
    ?assertEqual(
        #{<<"a">> => [<<"n@h">>, {<<"ok">>, 1}], 2.5 => true, <<"undefined">> => "text"},
        ?plain(#{a => ['n@h', {ok, 1}], 2.5 => true, undefined => "text"})
    ).

what_means_nothing_elsewhere_is_text_test() ->
    ?assertMatch(<<"<0.", _/binary>>, ?plain(self())),
    ?assertMatch([<<"#Ref<", _/binary>>, <<"#Fun<", _/binary>>], ?plain([make_ref(), fun() -> ok end])),
    ?assertEqual(<<"[a|b]">>, ?plain([a | b])).

it_has_no_atoms_and_is_plain_already_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_plain(), 300).

prop_plain() ->
    ?FORALL(Term, any(), begin
        Plain = ?plain(Term),
        is_plain(Plain) andalso ?plain(Plain) =:= Plain
    end).

is_plain(Map) when is_map(Map) -> is_plain(maps:to_list(Map));
is_plain(Tuple) when is_tuple(Tuple) -> is_plain(tuple_to_list(Tuple));
is_plain(List) when is_list(List) -> lists:all(fun is_plain/1, List);
is_plain(Term) -> is_number(Term) orelse is_bitstring(Term) orelse is_boolean(Term).
