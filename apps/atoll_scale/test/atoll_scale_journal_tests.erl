%% SPDX-License-Identifier: Apache-2.0
%% The journal, and the table that is made of it.
-module(atoll_scale_journal_tests).

-include_lib("eunit/include/eunit.hrl").

journal_test_() ->
    {foreach, fun() -> atoll_test_file:temporary("atoll_scale_journal_tests") end, fun(File) -> _ = file:delete(File), ok end, [
        fun(File) -> {"what is added is there, and after it what is added later", fun() -> kept(File) end} end,
        fun(File) -> {"a line that was cut is left out, and the next one is whole", fun() -> cut(File) end} end,
        fun(File) -> {"what is no journal is said", fun() -> none(File) end} end
    ]}.

add(Entries, File) ->
    {ok, Journal} = atoll_scale_journal:open(File),
    _ = [ok = atoll_scale_journal:add(Entry, Journal) || Entry <- Entries],
    ok = atoll_scale_journal:close(Journal).

kept(File) ->
    ok = add([#{what => begun, name => <<"shop">>}], File),
    ok = add([#{what => limit, low => none, limits => [4, 8], runs => #{4 => [1, 0]}}], File),
    {ok, [Begun, Limit], 0} = atoll_scale_journal:read(File),
    ?assertMatch(#{<<"what">> := <<"begun">>, <<"name">> := <<"shop">>, <<"at">> := <<_:10/binary, "T", _/binary>>}, Begun),
    ?assertMatch(#{<<"low">> := null, <<"limits">> := [4, 8], <<"runs">> := #{<<"4">> := [1, 0]}}, Limit).

cut(File) ->
    ok = add([#{what => begun}, #{what => run}], File),
    {ok, Text} = file:read_file(File),
    ok = file:write_file(File, binary:part(Text, 0, byte_size(Text) - 10)),
    ok = add([#{what => limit}], File),
    {ok, Entries, 1} = atoll_scale_journal:read(File),
    ?assertEqual([<<"begun">>, <<"limit">>], [What || #{<<"what">> := What} <- Entries]).

none(File) ->
    ok = file:write_file(File, "hello\n"),
    {error, Sentence} = atoll_scale_journal:read(File),
    ?assertMatch({match, _}, re:run(Sentence, "is no journal of atoll scale$")),
    ok = file:delete(File),
    ?assertMatch({error, _}, atoll_scale_journal:read(File)).

limit(Limit, Findings) ->
    #{<<"what">> => <<"limit">>, <<"at">> => <<"2026-11-24T22:00:00Z">>, <<"limit">> => Limit, <<"low">> => null, <<"high">> => null,
      <<"findings">> => [#{<<"says">> => Says} || Says <- Findings], <<"settings">> => #{<<"backlog">> => 5}}.

change(Verdict, Kept) ->
    #{<<"what">> => <<"change">>, <<"at">> => <<"2026-11-24T22:10:00Z">>, <<"switch">> => <<"backlog">>, <<"from">> => 5, <<"to">> => 1024, <<"before">> => [4, 4, 4, 4, 4],
      <<"after">> => [64, 64, 72, 64, 64], <<"ratio">> => 16.0, <<"low">> => 15.5, <<"high">> => 18.0, <<"verdict">> => Verdict, <<"kept">> => Kept}.

a_journal_is_a_table_of_stages_test() ->
    Stages = atoll_scale_report:stages([#{<<"what">> => <<"begun">>}, limit(4, [<<"the queue <of> port 9 overflowed">>]), change(<<"better">>, true), limit(64, []), change(<<"same">>, false)]),
    Text = unicode:characters_to_list(atoll_scale_report:text(Stages)),
    [Head, One, Two, Three, Four | More] = string:split(Text, "\n", all),
    ?assertEqual(["stage", "what", "limit", "95", "%", "factor", "95", "%", "verdict"], string:lexemes(Head, " ")),
    ?assertEqual("    1  limit with backlog 5      4", One),
    ?assertEqual("    2  backlog: 5 to 1024       64         16.00  15.50 - 18.00  better, kept", Two),
    ?assertEqual("    3  limit with backlog 5     64", Three),
    ?assertMatch({match, _}, re:run(Four, "same, taken back$")),
    ?assert(lists:member("  the queue <of> port 9 overflowed", More)),
    Html = unicode:characters_to_list(atoll_scale_report:html("a & b", Stages)),
    ?assertMatch({match, _}, re:run(Html, "<h1>a &amp; b</h1>")),
    ?assertMatch({match, _}, re:run(Html, "<li>the queue &lt;of&gt; port 9 overflowed</li>")),
    ?assertEqual(nomatch, re:run(Html, "<of>")).
