%% SPDX-License-Identifier: Apache-2.0
-module(atoll_tsung_dtd_tests).

-include_lib("eunit/include/eunit.hrl").

%% What Tsung's document type has of what is edited, and some of what is not.
dtd() ->
    <<"<!ELEMENT sessions (session+)>\n"
      "<!ELEMENT session ( request | thinktime )*>\n"
      "<!ATTLIST session\n"
      "    name         CDATA #REQUIRED\n"
      "    probability   NMTOKEN #IMPLIED\n"
      "    type         (ts_jabber | ts_http | ts_job) #REQUIRED>\n"
      "<!ELEMENT change_type EMPTY>\n"
      "<!ATTLIST change_type\n"
      "     new_type   (ts_jabber | ts_http | ts_job) #REQUIRED\n"
      "     host NMTOKEN #REQUIRED\n"
      "     store  ( true | false ) \"false\">\n"
      "<!ELEMENT request ( match*, dyn_variable*, ( http | jabber |\n          job ) )>\n"
      "<!ATTLIST request\n    subst (true|false|all_except_body) \"false\">\n"
      "<!-- <!ATTLIST request gone CDATA #IMPLIED> -->\n"
      "<!ELEMENT thinktime EMPTY>\n">>.

each_of_the_edits_is_made_test() ->
    {ok, Dtd} = atoll_tsung_dtd:with_rpc(dtd()),
    Known = atoll_tsung_dtd:attributes(Dtd),
    ?assertEqual({"type", ["ts_rpc", "ts_jabber", "ts_http", "ts_job"], true}, lists:keyfind("type", 1, map_get("session", Known))),
    ?assertEqual({"new_type", ["ts_rpc", "ts_jabber", "ts_http", "ts_job"], true}, lists:keyfind("new_type", 1, map_get("change_type", Known))),
    ?assertMatch({_, _}, binary:match(Dtd, <<"dyn_variable*, ( rpc | http | jabber |">>)),
    ?assertEqual(lists:sort(atoll_tsung_rpc:attributes()), lists:sort([Name || {Name, _, _} <- map_get("rpc", Known)])).

what_is_not_edited_stays_test() ->
    {ok, Dtd} = atoll_tsung_dtd:with_rpc(dtd()),
    Back = lists:foldl(fun(Added, Text) -> iolist_to_binary(string:replace(Text, Added, "", all)) end, Dtd, ["ts_rpc | ", "rpc | "]),
    ?assertEqual(dtd(), binary:part(Back, 0, byte_size(dtd()))).

a_place_that_is_not_found_is_named_and_nothing_is_half_done_test_() ->
    [
        {Lost, ?_assertEqual({error, "Tsung's DTD does not list " ++ What ++ " as version 1.7 does."},
            atoll_tsung_dtd:with_rpc(iolist_to_binary(string:replace(dtd(), Lost, By))))}
     || {Lost, By, What} <- [
            {"    type         (ts_jabber", "    type         CDATA (", "the types of a session"},
            {"new_type   (ts_jabber", "new_type   CDATA (", "the types that a session can change to"},
            {"( http | jabber", "( jabber | http", "the kinds of requests"}
        ]
    ] ++ [?_assertEqual({error, "Tsung's DTD has an element rpc of its own."}, atoll_tsung_dtd:with_rpc(<<(dtd())/binary, "<!ELEMENT rpc EMPTY>\n">>))].

attributes_are_read_with_their_values_test() ->
    Known = atoll_tsung_dtd:attributes(dtd()),
    ?assertEqual([{"subst", ["true", "false", "all_except_body"], false}], map_get("request", Known)),
    ?assertEqual([], map_get("thinktime", Known)),
    ?assertEqual([{"name", any, true}, {"probability", any, false}], lists:keydelete("type", 1, map_get("session", Known))).

%% Where it is installed.
the_installed_one_has_all_places_test_() ->
    case atoll_tsung_place:find() of
        {ok, Place} ->
            [?_assertMatch({ok, <<_/binary>>}, atoll_tsung_place:dtd(Place))];
        {error, _} ->
            []
    end.
