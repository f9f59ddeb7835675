%% SPDX-License-Identifier: Apache-2.0
%% Who may ask and what of the page is served, without a socket.
-module(atoll_watch_http_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TOKEN, <<"0123456789012345678901234567890123456789">>).

with_page(Fun) ->
    Dir = atoll_cli_os:new_dir(),
    Page = filename:join(Dir, "page"),
    ok = filelib:ensure_path(filename:join(Page, "assets")),
    [ok = file:write_file(filename:join(Page, Name), Text) || {Name, Text} <- [{"index.html", "<p>"}, {"assets/a-1.js", "1"}, {"../secret.txt", "s"}, {".hidden", "h"}]],
    ok = file:make_symlink("../secret.txt", filename:join(Page, "link.txt")),
    try Fun(config(Page)) after atoll_cli_os:remove_dir(Dir) end.

config(Page) -> #{token => ?TOKEN, port => 8080, loopback => true, tls => false, page => Page, openapi => <<"{}">>}.

asked(Method, Path, Headers, Config) ->
    atoll_watch_http:answer(#{method => Method, path => Path, query => <<>>, headers => Headers, body => <<>>, peer => <<"127.0.0.1">>}, Config).

host() -> [{<<"host">>, <<"127.0.0.1:8080">>}].

files_of_the_page_are_served_and_no_others_test() ->
    with_page(fun(Config) ->
        ?assertMatch({200, [{<<"Content-Type">>, "text/html; charset=utf-8"}], <<"<p>">>}, asked(<<"GET">>, <<"/">>, host(), Config)),
        {200, Headers, <<"1">>} = asked(<<"GET">>, <<"/assets/a-1.js">>, host(), Config),
        ?assertMatch("text/javascript" ++ _, proplists:get_value(<<"Content-Type">>, Headers)),
        ?assertMatch("public" ++ _, proplists:get_value(<<"Cache-Control">>, Headers)),
        [?assertMatch({_, {404, _, _}}, {Path, asked(<<"GET">>, Path, host(), Config)})
         || Path <- [<<"/../secret.txt">>, <<"/assets/../../secret.txt">>, <<"/%2e%2e/secret.txt">>, <<"/..\\secret.txt">>, <<"/.hidden">>, <<"/link.txt">>, <<"/assets">>, <<"/assets/">>, <<"/index.html\n">>, <<"/index.html", 0>>, <<"//index.html">>]],
        ?assertMatch({405, _, _}, asked(<<"POST">>, <<"/index.html">>, host(), Config))
    end).

a_page_that_is_not_built_is_a_sentence_test() ->
    {200, [{<<"Content-Type">>, "text/plain" ++ _}], Text} = asked(<<"GET">>, <<"/">>, host(), config("/nowhere")),
    ?assertMatch({match, _}, re:run(Text, "^The page is not built")).

on_loopback_the_name_is_one_of_loopback_test() ->
    Asked = fun(Hosts, Loopback) -> element(1, asked(<<"GET">>, <<"/openapi.json">>, [{<<"host">>, Host} || Host <- Hosts], (config("/nowhere"))#{loopback := Loopback})) end,
    ?assertEqual([200, 200, 200, 200], [Asked([Host], true) || Host <- [<<"localhost">>, <<"LOCALHOST:1">>, <<"127.0.0.1:8080">>, <<"[::1]:8080">>]]),
    ?assertEqual([403, 403, 403, 403], [Asked(Hosts, true) || Hosts <- [[], [<<"evil.example">>], [<<"127.0.0.1.evil.example">>], [<<"localhost">>, <<"evil.example">>]]]),
    ?assertEqual(200, Asked([<<"watch.example">>], false)).

the_cookie_is_not_the_token_and_does_for_it_test() ->
    Cookie = atoll_watch_http:cookie_value(?TOKEN),
    ?assertEqual(nomatch, binary:match(Cookie, ?TOKEN)),
    %% Of what is allowed it is asked first; there is nothing at that path.
    Asked = fun(Method, Headers) -> try element(1, asked(Method, <<"/api/">>, host() ++ Headers, config("/nowhere"))) catch error:badarg -> allowed end end,
    With = {<<"cookie">>, <<"other=1; atoll_watch_8080=", Cookie/binary>>},
    ?assertEqual([401, allowed, allowed, 401, 403, 401, allowed], [Asked(Method, Headers) || {Method, Headers} <- [
        {<<"GET">>, []}, {<<"GET">>, [With]}, {<<"GET">>, [{<<"authorization">>, <<"bearer ", ?TOKEN/binary>>}]}, {<<"GET">>, [{<<"cookie">>, <<"atoll_watch_8080=", ?TOKEN/binary>>}]},
        {<<"POST">>, [With, {<<"origin">>, <<"http://127.0.0.1:9">>}]}, {<<"GET">>, [With, {<<"authorization">>, <<"Bearer x">>}]}, {<<"POST">>, [With, {<<"origin">>, <<"http://127.0.0.1:8080">>}]}
    ]]).

%% It makes the nodes trace; a cookie is the same for all ports of a machine.
only_the_page_and_who_has_the_token_look_at_what_flows_test() ->
    Cookie = {<<"cookie">>, <<"atoll_watch_8080=", (atoll_watch_http:cookie_value(?TOKEN))/binary>>},
    %% There is no watch here whose nodes it could be of.
    Asked = fun(Headers) -> try element(1, asked(<<"GET">>, <<"/api/v1/traffic">>, host() ++ Headers, config("/nowhere"))) catch error:badarg -> allowed end end,
    ?assertEqual([allowed, allowed, allowed, 403, 403, 403], [Asked(Headers) || Headers <- [
        [Cookie, {<<"sec-fetch-site">>, <<"same-origin">>}], [Cookie, {<<"origin">>, <<"http://127.0.0.1:8080">>}], [{<<"authorization">>, <<"Bearer ", ?TOKEN/binary>>}],
        [Cookie, {<<"sec-fetch-site">>, <<"same-site">>}], [Cookie, {<<"sec-fetch-site">>, <<"cross-site">>}], [Cookie, {<<"origin">>, <<"http://localhost:3000">>}, {<<"sec-fetch-site">>, <<"same-site">>}]
    ]]).

every_answer_says_of_what_type_it_is_and_that_no_other_script_runs_test() ->
    Text = iolist_to_binary(atoll_watch_http:headers([{<<"Content-Type">>, "application/json"}])),
    [?assertMatch({_, {match, _}}, {Line, re:run(Text, Line)}) || Line <- ["X-Content-Type-Options: nosniff\r\n", "Content-Security-Policy: default-src 'none'; script-src 'self';", "Cache-Control: no-store\r\n"]].
