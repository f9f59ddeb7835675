%% SPDX-License-Identifier: Apache-2.0
%% The list of planted faults keeps up with the sources.
-module(atoll_test_faults_tests).

-include_lib("eunit/include/eunit.hrl").

root() -> filename:join(filename:absname(code:lib_dir(atoll_test)), "../../../..").

every_fault_can_be_planted_test() ->
    ?assertEqual([], [Wrong || Fault <- atoll_test_faults:read(), Wrong <- [atoll_test_faults:wrong(root(), Fault)], Wrong =/= none]).

%% A tenth of them in the fast tier. A script is run where it stands.
every_planted_module_compiles_test_() ->
    Erl = [F || #{file := File} = F <- atoll_test_faults:read(), filename:extension(File) =:= ".erl"],
    Names = [{erlang:phash2({atoll_tier:seed(?MODULE), F}), F} || F <- Erl],
    Some = lists:sublist([F || {_, F} <- lists:sort(Names)], atoll_tier:tests(length(Erl))),
    {timeout, 900, ?_assertEqual([], [{File, Why} || #{file := File} = F <- Some, {error, Why, _} <- [compiled(F)]])}.

%% All passes that can refuse a source; no code is made.
compiled(#{file := File, replace := Replace, by := By}) ->
    {ok, Text} = file:read_file(filename:join(root(), File)),
    Planted = atoll_test_file:temporary(filename:basename(File, ".erl")) ++ ".erl",
    ok = file:write_file(Planted, string:replace(Text, Replace, unicode:characters_to_binary(By))),
    Compiled = compile:file(Planted, [strong_validation, return_errors]),
    ok = file:delete(Planted),
    Compiled.

%% Rooms of the library, and applications.
every_room_and_every_tool_has_two_or_more_test() ->
    Places = [place(filename:split(File)) || #{file := File} <- atoll_test_faults:read()],
    Rooms = [["apps", "atoll", "src", filename:basename(Dir)] || Dir <- dirs("apps/atoll/src/*")],
    Tools = [filename:split(Dir) || Dir <- dirs("{apps,cases}/*") -- ["apps/atoll"]],
    ?assertEqual([], [filename:join(P) || P <- Rooms ++ Tools, length([Q || Q <- Places, Q =:= P]) < 2]).

dirs(Pattern) ->
    [Dir || Dir <- filelib:wildcard(Pattern, root()), filelib:is_dir(filename:join(root(), Dir))].

place(["apps", "atoll", "src", Room, _]) -> ["apps", "atoll", "src", Room];
place([Top, App | _]) -> [Top, App].

no_two_are_the_same_test() ->
    All = [{File, Replace, By} || #{file := File, replace := Replace, by := By} <- atoll_test_faults:read()],
    ?assertEqual([], All -- lists:usort(All)).

what_cannot_be_planted_is_told_test_() ->
    Fault = #{
        file => "apps/atoll_test/src/atoll_tier.erl",
        replace => "-module(atoll_tier)",
        by => "-module(other)",
        breaks => "all",
        suites => [atoll_tier_tests]
    },
    Wrong = fun(Changes) -> atoll_test_faults:wrong(root(), maps:merge(Fault, Changes)) end,
    [
        ?_assertEqual(none, Wrong(#{})),
        ?_assertMatch([_ | _], Wrong(#{file => "apps/atoll_test/src/nowhere.erl"})),
        ?_assertMatch([_ | _], Wrong(#{replace => "stands nowhere there"})),
        ?_assertMatch([_ | _], Wrong(#{replace => "tier"})),
        ?_assertMatch([_ | _], Wrong(#{by => "-module(atoll_tier)"})),
        ?_assertMatch([_ | _], Wrong(#{suites => [atoll_ring_tests]})),
        ?_assertMatch([_ | _], Wrong(#{suites => []}))
    ].
