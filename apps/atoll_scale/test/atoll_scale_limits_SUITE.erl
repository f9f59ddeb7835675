%% SPDX-License-Identifier: Apache-2.0
%% What limits the shop of priv/example is found, and changed, where nothing else limits it: it has the machine for itself.
-module(atoll_scale_limits_SUITE).

-include_lib("stdlib/include/assert.hrl").

-import(atoll_scale_shop, [dir/1, plan/2, found/2]).

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([three_limits_are_found_and_named/1, what_limits_is_changed_step_by_step/1]).

suite() -> [{timetrap, {minutes, 20}}, {userdata, quiet}].

all() -> [Case || atoll_tier:tier() =:= deep, Case <- [three_limits_are_found_and_named, what_limits_is_changed_step_by_step]].

init_per_testcase(_, Config) -> atoll_scale_shop:begin_case(Config).

end_per_testcase(_, Config) -> atoll_scale_shop:end_case(Config).

%% Each alone, the two others far away.
three_limits_are_found_and_named(Config) ->
    {File, Port} = plan([], Config),
    Far = #{"files" => "16384", "backlog" => "1024", "servers" => "16"},
    Subject = integer_to_binary(Port),
    _ = [
        begin
            Args = lists:append([["--set", Switch ++ "=" ++ Value] || {Switch, Value} <- maps:to_list(Far#{Planted => Value0})]),
            #{<<"findings">> := [#{<<"cause">> := Cause, <<"subject">> := About} = First | _], <<"limit">> := Limit} = found([File, "--searches", "1" | Args], Config),
            ct:log("~ts: limit ~p, ~p", [Planted, Limit, First]),
            ?assertEqual({Planted, Expected}, {Planted, {Cause, About}})
        end
     || {Planted, Value0, Expected} <- [
            {"files", "64", {<<"files">>, <<"beam.smp">>}},
            {"backlog", "5", {<<"backlog">>, Subject}},
            {"servers", "1", {<<"process">>, <<"stock">>}}
        ]
    ],
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% All three at once: each is changed for another cause, and kept. What finds the queue full comes again after a second; with
%% a bound just below, one server bears several times as many clients as there are files for, on a busy machine too.
what_limits_is_changed_step_by_step(Config) ->
    {File, _} = plan([{seconds, 1}, {to, 2048}, {precision, 1}, {p99_ms, 900}], Config),
    #{status := 0, stdout := Json, stderr := Said} = atoll_cli_line:run(dir(Config), ["scale", "tune", File, "--json"], 1100000),
    ct:log("~ts", [Said]),
    ?assertMatch(#{<<"settings">> := #{<<"files">> := <<"16384">>, <<"backlog">> := <<"1024">>, <<"servers">> := <<"16">>}}, atoll_cli_os:decode(Json)),
    {ok, Entries, 0} = atoll_scale_journal:read(File ++ ".journal"),
    Changes = [{Switch, Kept} || #{<<"what">> := <<"change">>, <<"switch">> := Switch, <<"kept">> := Kept} <- Entries],
    ?assertEqual([{<<"backlog">>, true}, {<<"files">>, true}, {<<"servers">>, true}], lists:sort(Changes)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).
