%% SPDX-License-Identifier: Apache-2.0
%% Nodes that know nothing of Atoll, of each kind that there is: a plain erl, a release in embedded mode as systools
%% makes it, and in the deep tier one of another OTP release, in a Debian root of its own. Watched, left alone, and
%% then as they were: the same modules, the same processes.
-module(atoll_watch_stock_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([they_are_watched_and_then_as_before/1, one_of_another_otp_release_too/1]).

-import(atoll_watch_peers, [call/4, known/1, await/2]).

-define(LATE_MS, 30000).
-define(PERIOD_MS, 200).
%% Where it is not there yet it is made, once.
-define(OTHER, {"stock-27", "trixie", "27"}).

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [they_are_watched_and_then_as_before] ++ [one_of_another_otp_release_too || atoll_tier:tier() =:= deep].

init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, atoll_watch_peers:cookie()),
    [{dir, Dir}, {cookie, Cookie} | Config].

end_per_suite(Config) ->
    atoll_cli_os:remove_dir(proplists:get_value(dir, Config)).

they_are_watched_and_then_as_before(Config) ->
    Release = ["-mode", "embedded", "-boot", release(proplists:get_value(dir, Config))],
    with([fun() -> atoll_watch_peers:watched([]) end, fun() -> atoll_watch_peers:watched(Release) end], fun([_, Embedded] = Peers) ->
        ?assertEqual({{"shop", "1.0"}, embedded}, {call(Embedded, init, script_id, []), call(Embedded, code, get_mode, [])}),
        watched(Peers, Config)
    end).

one_of_another_otp_release_too(Config) ->
    {Name, Suite, Otp} = ?OTHER,
    case string:trim(os:cmd("id -u")) of
        "0" ->
            Root = lists:last(string:lexemes(os:cmd(lists:join($\s, [filename:join([atoll_cli_os:root(), "scripts", "debian-root"]), Name, Suite, "erlang-base"])), "\n")),
            with([fun() -> atoll_watch_peers:watched([]) end, fun() -> other(Root) end], fun([_, Other] = Peers) ->
                ?assertEqual(Otp, call(Other, erlang, system_info, [otp_release])),
                watched(Peers, Config)
            end);
        _ ->
            {skip, "another root takes root"}
    end.

with(Starts, Fun) ->
    {Holder, Peers} = atoll_watch_peers:start(fun() -> [Start() || Start <- Starts] end),
    try Fun(Peers) after atoll_watch_peers:stop(Holder) end.

other(Root) ->
    {ok, Peer, Node} = peer:start_link(#{
        name => peer:random_name(), host => "127.0.0.1", longnames => true, connection => standard_io, wait_boot => ?LATE_MS,
        exec => {os:find_executable("chroot"), [Root, "/usr/bin/erl"]}, args => ["-setcookie", atoll_watch_peers:cookie()],
        env => [{Name, ""} || Name <- ["ERL_LIBS", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ROOTDIR", "BINDIR"]]
    }),
    {Peer, Node}.

%% A release of OTP alone: boot file, and the versions of its applications.
release(Dir) ->
    Releases = filename:join([Dir, "releases", "1.0"]),
    ok = filelib:ensure_path(Releases),
    Vsn = fun(App) -> _ = application:load(App), {ok, Is} = application:get_key(App, vsn), Is end,
    Rel = {release, {"shop", "1.0"}, {erts, erlang:system_info(version)}, [{App, Vsn(App)} || App <- [kernel, stdlib, sasl]]},
    Name = filename:join(Releases, "shop"),
    ok = file:write_file(Name ++ ".rel", io_lib:format("~tp.\n", [Rel])),
    {ok, _, _} = systools:make_script(Name, [silent, {outdir, Releases}, no_warn_sasl]),
    Name.

watched([{_, First} | _] = Peers, Config) ->
    atoll_cli_line:as_node(fun() ->
        Target = {joined, "stock", #{nodes => [Node || {_, Node} <- Peers], cookie_file => proplists:get_value(cookie, Config)}},
        %% A node's first connection and first call load modules of OTP's.
        {ok, _} = atoll_view:open(Target),
        [?assertEqual(Node, erpc:call(Node, erlang, node, [])) || {_, Node} <- Peers],
        Before = [known(Peer) || Peer <- Peers],
        [begin
             {ok, Watch} = atoll_watch:start_link(Target, #{period => ?PERIOD_MS}),
             ok = atoll_watch:await(Watch, 3, ?LATE_MS),
             Seen = atoll_watch:nodes(Watch),
             ?assertEqual([{Node, up} || Node <- lists:sort([Node || {_, Node} <- Peers])], [{Node, State} || #{node := Node, state := State} <- Seen]),
             [?assert(maps:get(memory_total, Readings) > 0 andalso maps:get(reductions, Rates) > 0 andalso map_size(Readings) > 60) || #{readings := Readings, rates := Rates} <- Seen],
             [?assert(call(Peer, erlang, module_loaded, [atoll_watch_agent])) || Peer <- Peers],
             %% What runs there can be asked.
             #{items := [_ | _]} = erpc:call(First, atoll_watch_agent_explore, explore, [{supervision, top}]),
             ok = gen_server:stop(Watch),
             [await(fun() -> known(Peer) end, fun(Now) -> Now =:= Was end) || {Peer, Was} <- lists:zip(Peers, Before)]
         end || _ <- [put_in, put_in_again]]
    end).
