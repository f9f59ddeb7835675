%% SPDX-License-Identifier: Apache-2.0
%% The demonstration with its page, as a program, in the deep tier: what it shows, and that nothing is left of it.
-module(atoll_cases_demo_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([the_page_shows_the_colonies_and_all_of_it_goes_with_the_program/1]).

-define(LATE_MS, 120000).

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [the_page_shows_the_colonies_and_all_of_it_goes_with_the_program || atoll_tier:tier() =:= deep].

init_per_suite(Config) ->
    case atoll_watch_yaws:find() of
        none -> {skip, "Yaws is not installed: scripts/setup erlang-yaws"};
        ok -> [{dir, atoll_cli_os:new_dir()} | Config]
    end.

end_per_suite(Config) ->
    atoll_cli_os:remove_dir(proplists:get_value(dir, Config)).

the_page_shows_the_colonies_and_all_of_it_goes_with_the_program(Config) ->
    Dir = proplists:get_value(dir, Config),
    %% A browser, that keeps what it was to open.
    Opened = filename:join(Dir, "opened.html"),
    Browser = filename:join(Dir, "xdg-open"),
    ok = file:write_file(Browser, ["#!/bin/sh\nstat -c %a \"$1\" >", Opened, ".new && cat \"$1\" >>", Opened, ".new && mv ", Opened, ".new ", Opened, "\n"]),
    ok = file:change_mode(Browser, 8#755),
    Demo = atoll_cli_os:start(Dir, {sh, "DISPLAY=:9 PATH=\"" ++ Dir ++ ":$PATH\" XDG_CACHE_HOME=\"" ++ Dir ++ "/cache\" exec bin/atoll demo --watch"}),
    Said = atoll_cli_os:await_line(Demo, stdout, <<"Ctrl-C ends it">>),
    {match, [Link, Port, Token]} = re:run(Said, "(http://127.0.0.1:([0-9]+)/#token=(\\S+))\n", [{capture, [1, 2, 3], binary}]),
    ok = atoll_cli_os:await(fun() -> filelib:is_regular(Opened) end, ?LATE_MS),
    {ok, <<"600\n", Page/binary>>} = file:read_file(Opened),
    ?assertMatch({match, _}, re:run(Page, [$", ".*", Link, $"])),
    Watch = #{port => binary_to_integer(Port), token => Token},
    Up = fun() -> {200, _, #{<<"items">> := Nodes}} = atoll_watch_web:get("/api/v1/nodes", Watch), length([up || #{<<"state">> := <<"up">>} <- Nodes]) end,
    12 = atoll_watch_peers:await(Up, fun(N) -> N =:= 12 end),
    ok = atoll_cli_os:signal(Demo, "KILL"),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).
