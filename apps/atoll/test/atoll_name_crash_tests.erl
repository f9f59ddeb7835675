%% SPDX-License-Identifier: Apache-2.0
%% Somebody fails at each step of an operation on a name, and rivals want the name at the
%% same time. Everybody who is left hears an answer, no two are told `yes' for good, and
%% nothing is left over.
%%
%% Each case is one history of four members: a scenario, who fails and how, and after how many
%% events of the whole world. The fast tier has one history and each fifth step of it, the
%% first of which is drawn.
-module(atoll_name_crash_tests).

-include_lib("eunit/include/eunit.hrl").

-define(W, atoll_name_world).
-define(NODES, [n1, n2, n3, n4]).

each_step_test_() ->
    [
        {lists:flatten(io_lib:format("~s, ~s of ~s", [Scenario, Deed, Victim])), {timeout, 600, fun() ->
            [each(Scenario, Deed, Victim, Seed) || Seed <- seeds({Scenario, Deed, Victim})]
        end}}
     || Scenario <- [register, re_register, unregister, swap],
        Deed <- [kill, restart, pause, reboot, die, cut, leave],
        Victim <- ?NODES
    ].

seeds(What) -> [atoll_tier:seed({What, N}) || N <- lists:seq(1, atoll_tier:size(name_seeds))].

each(Scenario, Deed, Victim, Seed) ->
    [one(Scenario, Deed, Victim, Seed, Step) || Step <- steps(atoll_tier:tier(), Seed, length_of(Scenario, Seed))].

steps(fast, Seed, Last) -> lists:seq(Seed rem 5, Last, 5);
steps(deep, _Seed, Last) -> lists:seq(0, Last).

%% n1 calls for a process of n2; n3 and n4 are rivals, or have the name.
before(register) -> [];
before(swap) -> [{n3, reg(?W:pid(n3, 1))}];
before(_) -> [{n3, reg(?W:pid(n3, 1))}].

calls(register) ->
    [{n1, reg(?W:pid(n2, 1))}, {n3, reg(?W:pid(n3, 2))}, {n4, reg(?W:pid(n4, 1))}];
calls(re_register) ->
    [{n1, re(?W:pid(n2, 1))}, {n4, re(?W:pid(n4, 1))}, {n2, reg(?W:pid(n2, 2))}];
calls(unregister) ->
    [{n1, {unregister, g, a}}, {n2, reg(?W:pid(n2, 1))}, {n4, re(?W:pid(n4, 1))}];
%% The holder's own node replaces it, while it is unregistered.
calls(swap) ->
    [{n3, re(?W:pid(n3, 2))}, {n1, {unregister, g, a}}, {n1, re(?W:pid(n2, 1))}].

reg(Pid) -> {register, g, a, Pid, none}.
re(Pid) -> {re_register, g, a, Pid, none}.

begun(Scenario, Seed) ->
    World0 = ?W:run(2000, ?W:members(g, ?NODES, ?W:new(?NODES, Seed))),
    World1 = ?W:run(500, asked(before(Scenario), World0)),
    asked(calls(Scenario), World1).

asked(Calls, World) ->
    lists:foldl(fun({Node, Request}, W) -> element(2, ?W:call(Node, Request, W)) end, World, Calls).

%% So many events until all is answered, if nobody fails, and some more.
length_of(Scenario, Seed) -> events(0, begun(Scenario, Seed)).

events(N, World) ->
    case ?W:pending(World) of
        None when map_size(None) =:= 0 -> N + 10;
        _ -> events(N + 1, ?W:step(World))
    end.

one(Scenario, Deed, Victim, Seed, Step) ->
    Case = {Scenario, Deed, Victim, Seed, Step},
    Begun = begun(Scenario, Seed),
    Failed = fails(Deed, Victim, ?W:steps(Step, Begun)),
    World = ?W:run(13500, Failed),
    %% Whoever is left and runs has an answer; where nobody is silent at once.
    Silent = [Call || Call = {_, {Node, _, _}} <- maps:to_list(?W:pending(World)), Node =/= Victim],
    ?assertEqual({Case, []}, {Case, Silent}),
    Waited = [At - Asked || {_, _, Asked, At} <- maps:values(?W:replies(World))],
    ?assertEqual({Case, []}, {Case, [Ms || Ms <- Waited, Ms > 1500, Deed =/= pause, Deed =/= cut]}),
    %% When all are back, they agree.
    Quiet = ?W:quiet(?W:quiet(returns(Deed, Victim, World))),
    ?assertEqual({Case, [], #{}}, {Case, ?W:faults(Quiet), ?W:pending(Quiet)}),
    [Table] = agreed(Case, Quiet),
    Holder = [Pid || {{g, a}, {Pid, _}} <- maps:to_list(Table)],
    ?assertEqual({Case, []}, {Case, [Pid || Pid <- Holder, not ?W:is_alive(Pid, Quiet)]}),
    %% Where all were connected nobody clashes.
    ?assertEqual({Case, []}, {Case, [Told || Told <- ?W:told(Quiet), Deed =/= pause, Deed =/= cut, Deed =/= leave]}),
    ?assertEqual({Case, ?W:told(Quiet)}, {Case, lists:ukeysort(1, ?W:told(Quiet))}),
    once(Case, Holder, Quiet),
    %% And nothing is left over: the name, and each process, can be had.
    Last = ?W:run(1000, asked([{n4, {unregister, g, a}}], Quiet)),
    Again = ?W:run(1000, asked([{Node, {register, g, Node, ?W:pid(Node, 1), none}} || Node <- alive(Deed, Victim)], Last)),
    [?assertMatch({Case, {ok, Pid, _}}, {Case, at(N, Node, Again)}) || Node <- alive(Deed, Victim), N <- ?NODES, Pid <- [?W:pid(Node, 1)]],
    Fresh = ?W:run(1000, asked([{n1, reg(?W:pid(n1, 9))}], Again)),
    Pid9 = ?W:pid(n1, 9),
    [?assertMatch({Case, #{{g, a} := {Pid9, _}}}, {Case, maps:get(N, ?W:tables(Fresh))}) || N <- ?NODES],
    [?assertMatch({Case, #{operations := 0, asks := 0}}, {Case, Info}) || Info <- maps:values(?W:infos(Fresh))].

%% A process with that number is dead there, or the node was never touched.
alive(die, Victim) -> ?NODES -- [Victim];
alive(_, _) -> ?NODES.

at(Node, Name, World) ->
    case maps:get(Node, ?W:tables(World)) of
        #{{g, Name} := {Pid, Meta}} -> {ok, Pid, Meta};
        #{} -> none
    end.

fails(kill, Victim, World) -> ?W:kill(Victim, World);
%% It is back before the others have settled.
fails(restart, Victim, World) -> ?W:start(Victim, ?W:kill(Victim, World));
fails(pause, Victim, World) -> ?W:pause(Victim, World);
fails(reboot, Victim, World) -> ?W:reboot(Victim, World);
fails(die, Victim, World) -> ?W:die(?W:pid(Victim, 2), ?W:die(?W:pid(Victim, 1), World));
fails(cut, Victim, World) -> ?W:cut([[Victim], ?NODES -- [Victim]], World);
fails(leave, Victim, World) -> ?W:members(g, ?NODES -- [Victim], World).

returns(kill, Victim, World) -> ?W:start(Victim, World);
returns(leave, _Victim, World) -> ?W:members(g, ?NODES, World);
returns(_, _Victim, World) -> World.

agreed(Case, World) ->
    Tables = lists:usort(maps:values(?W:tables(World))),
    ?assertMatch({Case, [_]}, {Case, Tables}),
    Tables.

%% Who was told `yes' and lives has the name, or lost it to somebody who may have taken it.
once({Scenario, Deed, Victim, _, _} = Case, Holder, World) ->
    Lost = [Pid || {Pid, _} <- ?W:told(World)],
    Yes = [
        Pid
     || {yes, Request, _, _} <- maps:values(?W:replies(World)),
        Pid <- [element(4, Request)],
        ?W:is_alive(Pid, World),
        %% A name goes with its node, and with its membership.
        not (lists:member(Deed, [kill, restart, leave]) andalso node(Pid) =:= Victim),
        not lists:member(Pid, Lost)
    ],
    case Scenario of
        register -> ?assertEqual({Case, Yes -- Holder}, {Case, []});
        _ -> ok
    end,
    ?assertEqual({Case, []}, {Case, [Pid || Pid <- Holder, lists:member(Pid, Lost)]}).
