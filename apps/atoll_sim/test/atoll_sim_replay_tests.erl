%% SPDX-License-Identifier: Apache-2.0
%% What was recorded has the same effects when it is replayed, or it is told.
-module(atoll_sim_replay_tests).

-include_lib("eunit/include/eunit.hrl").

all_test_() ->
    {foreach, fun folder/0, fun(Dir) -> ok = file:del_dir_r(Dir) end, [
        fun(Dir) -> {Title, fun() -> Test(filename:join(Dir, "recording")) end} end
     || {Title, Test} <- [
            {"a recording of the link protocol is identical", fun link_replays/1},
            {"a recording of the overlay is identical", fun overlay_replays/1},
            {"a recording of the names is identical", fun name_replays/1},
            {"the first difference is told", fun differs/1},
            {"what is left of a cut recording is replayed", fun cut/1},
            {"a state that the protocol does not take is told", fun crashes/1},
            {"a module that is no protocol is not called", fun no_protocol/1},
            {"a file that is no recording is told", fun no_recording/1}
        ]
    ]}.

folder() ->
    Dir = filename:join(filename:basedir(user_cache, "atoll_test"), "replay-" ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Dir.

link_replays(Path) ->
    Count = atoll_sim_recorded:link(Path),
    ?assertEqual(
        {ok, #{
            protocol => atoll_link_core,
            node => 'n1@reef',
            otp => "25",
            events => Count,
            lost => 0,
            cut => false,
            outcome => identical
        }},
        atoll_sim_replay:run(Path)
    ).

overlay_replays(Path) ->
    Count = atoll_sim_recorded:overlay(Path),
    ?assert(Count > 100),
    ?assertMatch(
        {ok, #{protocol := atoll_overlay_core, events := Count, outcome := identical}}, atoll_sim_replay:run(Path)
    ).

name_replays(Path) ->
    Count = atoll_sim_recorded:name(Path),
    ?assertMatch({ok, #{protocol := atoll_name_core, events := Count, outcome := identical}}, atoll_sim_replay:run(Path)).

differs(Path) ->
    lists:foreach(
        fun({Record, At}) ->
            _ = atoll_sim_recorded:Record(Path),
            ok = atoll_sim_recorded:tampered(Path, At),
            {ok, #{outcome := Outcome}} = atoll_sim_replay:run(Path),
            ?assertMatch(#{at := At, recorded := [{notify, tampered} | Same], replayed := Same}, Outcome)
        end,
        [{link, 1}, {link, 9}, {overlay, 50}, {name, 5}]
    ).

cut(Path) ->
    Count = atoll_sim_recorded:overlay(Path),
    {ok, Whole} = file:read_file(Path),
    ok = file:write_file(Path, binary:part(Whole, 0, byte_size(Whole) * 3 div 4)),
    {ok, #{events := Events, cut := true, outcome := identical}} = atoll_sim_replay:run(Path),
    ?assert(Events > Count div 2 andalso Events < Count).

crashes(Path) ->
    strange(Path, atoll_link_core),
    ?assertMatch({ok, #{outcome := #{crashed := _}}}, atoll_sim_replay:run(Path)).

no_protocol(Path) ->
    [
        begin
            strange(Path, Module),
            {error, Error} = atoll_sim_replay:run(Path),
            ?assertEqual({Path, {no_protocol, Module}}, Error),
            ?assertNotEqual(nomatch, string:find(atoll_sim_replay:format_error(Error), "there is no such protocol here"))
        end
     || Module <- [lists, no_such_module]
    ].

strange(Path, Protocol) ->
    {ok, New} = atoll_recording:open(Path, 10000, #{protocol => Protocol, state => strange, node => n1, otp => "25"}),
    {ok, Writer} = atoll_recording:add({{up, n2}, 1, []}, New),
    {ok, _} = atoll_recording:close(Writer).

no_recording(Path) ->
    ok = file:write_file(Path, "reef"),
    {error, Error} = atoll_sim_replay:run(Path),
    ?assertEqual([Path, ": this is no recording of Atoll"], [Path, lists:nthtail(length(Path), lists:flatten(atoll_sim_replay:format_error(Error)))]).
