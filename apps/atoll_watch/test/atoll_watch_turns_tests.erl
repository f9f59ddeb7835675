%% SPDX-License-Identifier: Apache-2.0
%% Whom a manager asks, and that who reads its reports knows what it knows, without a node.
-module(atoll_watch_turns_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([{whatever_happens, whatever_happens(), 2000}, {a_change_makes_the_second_of_the_first, a_change_makes_the_second_of_the_first(), 1000}]).

-define(NODES, [a, b, c, d, e, f]).
-define(AT_ONCE, 2).

sample(Life, Readings) -> #{at => erlang:unique_integer([monotonic]), life => Life, peers => [], readings => Readings, log => [], more => unknown}.

readings() -> list({oneof([processes, ports, atoms]), range(0, 3)}).

%% No node is asked twice at once or without being this manager's, nor are more than so many of those that are up, or of the others. Who puts
%% reports together knows of each node its last look; and at the end of a period in which all answer everybody was asked.
whatever_happens() ->
    Outcome = oneof([{up, oneof([1, 2]), readings()}, down, silent, {refused, "no"}]),
    ?FORALL(Steps, list(frequency([{3, tick}, {2, again}, {8, {nth, pos_integer(), Outcome}}, {3, {give, oneof(?NODES)}}, {1, {take, oneof(?NODES)}}, {3, report}])), begin
        World0 = #{turns => atoll_watch_turns:new(?AT_ONCE), asked => #{}, has => #{}, true => #{}, known => #{}, lease => 1, looks => 0, told => 0},
        Quiet = drained(20, lists:foldl(fun play/2, World0, Steps)),
        #{turns := Turns, true := True, known := Known, looks := Looks, told := Told} = All = play(report, drained(20, play(tick, Quiet))),
        Known =:= True andalso lists:all(fun({State, _}) -> State =:= up end, maps:values(Known)) andalso maps:size(Known) =:= maps:size(maps:get(has, All)) andalso
            %% What was not told was counted, but for what was of a node that is not this manager's any more.
            Looks >= Told andalso not atoll_watch_turns:has_news(Turns)
    end).

drained(N, World) -> lists:foldl(fun(_, W) -> play({nth, 1, {up, 1, [{processes, 1}]}}, W) end, World, lists:seq(1, N)).

play({nth, _, _}, #{asked := Asked} = World) when map_size(Asked) =:= 0 ->
    World;
play({nth, N, Outcome}, #{asked := Asked, true := True, looks := Looks} = World) ->
    Node = lists:nth(1 + N rem map_size(Asked), lists:sort(maps:keys(Asked))),
    {Input, Is} =
        case {Outcome, True} of
            {{up, Life, Readings}, _} -> {{answered, Node, sample(Life, maps:to_list(maps:from_list(Readings)))}, {up, maps:from_list(Readings)}};
            {Failure, #{Node := {_, Before}}} -> {{failed, Node, Failure}, {state(Failure), Before}};
            {Failure, _} -> {{failed, Node, Failure}, {state(Failure), #{}}}
        end,
    stepped(Input, World#{asked := maps:remove(Node, Asked), true := True#{Node => Is}, looks := Looks + 1});
play({give, Node}, #{has := Has} = World) when is_map_key(Node, Has) ->
    World;
play({give, Node}, #{has := Has, lease := Lease} = World) ->
    stepped({give, Node, Lease, none}, World#{has := Has#{Node => Lease}, lease := Lease + 1});
play({take, Node}, #{has := Has} = World) when not is_map_key(Node, Has) ->
    World;
play({take, Node}, #{has := Has, true := True, known := Known} = World) ->
    stepped({take, Node}, World#{has := maps:remove(Node, Has), true := maps:remove(Node, True), known := maps:remove(Node, Known)});
play(report, #{turns := Turns0, known := Known, has := Has, told := Told} = World) ->
    {#{looks := Looks, overtaken := Overtaken}, Turns} = atoll_watch_turns:report(Turns0),
    World#{turns := Turns, told := Told + length(Looks) + Overtaken, known := lists:foldl(fun(#{node := Node, lease := Lease, state := State} = Look, Acc) ->
        #{Node := Lease} = Has,
        {_, Before} = maps:get(Node, Acc, {unknown, #{}}),
        Acc#{Node => {State, case Look of #{readings := Change, sample := #{more := unknown}} -> atoll_watch_report:changed(Change, Before); #{} -> Before end}}
    end, Known, Looks)};
play(Input, World) ->
    stepped(Input, World).

state({refused, _}) -> refused;
state(State) -> State.

stepped(Input, #{turns := Turns0} = World) ->
    {Effects, Turns} = atoll_watch_turns:step(Input, Turns0),
    lists:foldl(fun done/2, World#{turns := Turns}, Effects).

done({ask, Node}, #{asked := Asked, has := Has, true := True} = World) ->
    true = is_map_key(Node, Has),
    false = is_map_key(Node, Asked),
    Line = case True of #{Node := {up, _}} -> up; #{} -> other end,
    true = length([same || Is <- maps:values(Asked), Is =:= Line]) < ?AT_ONCE,
    World#{asked := Asked#{Node => Line}};
done({leave, Node}, #{asked := Asked} = World) ->
    World#{asked := maps:remove(Node, Asked)}.

a_change_makes_the_second_of_the_first() ->
    Readings = ?LET(List, list({oneof([a, b, {c, x}, {c, y}]), oneof([0, 1, 1.0])}), maps:from_list(List)),
    ?FORALL({Was, Is}, {oneof([none, Readings]), Readings}, begin
        Change = atoll_watch_report:change(Was, Is),
        atoll_watch_report:changed(Change, case Was of none -> #{other => 1}; _ -> Was end) =:= Is andalso
            %% And no more than that.
            case Change of
                {whole, _} -> Was =:= none;
                {New, Gone} -> lists:all(fun({Key, Value}) -> maps:find(Key, Was) =/= {ok, Value} end, maps:to_list(New)) andalso Gone -- maps:keys(Was) =:= []
            end
    end).

run(Inputs, Turns) -> lists:mapfoldl(fun atoll_watch_turns:step/2, Turns, Inputs).

given(Nodes) -> [{give, Node, 1, none} || Node <- Nodes].

a_turn_that_comes_too_early_is_missed_and_counted_once_test() ->
    {Effects, Turns} = run(given([a]) ++ [tick, tick], atoll_watch_turns:new(?AT_ONCE)),
    ?assertEqual([[{ask, a}], [], []], Effects),
    {Report, Told} = atoll_watch_turns:report(Turns),
    ?assertMatch(#{missed := 2}, Report),
    ?assertMatch({#{missed := 0, overtaken := 0, looks := []}, _}, atoll_watch_turns:report(Told)).

those_that_are_not_up_hold_up_no_other_test() ->
    Fails = [{failed, Node, down} || Node <- [a, b, c]],
    {Effects, _} = run(given(?NODES) ++ Fails ++ [{answered, Node, sample(1, [])} || Node <- [d, e, f]] ++ [tick], atoll_watch_turns:new(?AT_ONCE)),
    ?assertEqual([{ask, d}, {ask, e}, {ask, a}, {ask, b}], lists:last(Effects)).

one_that_was_up_is_asked_more_often_until_it_is_again_test() ->
    {Effects, _} = run(given([a, b]) ++ [{answered, a, sample(1, [])}, {failed, b, down}, again, tick, {failed, a, silent}, again, {answered, a, sample(1, [])}, again],
                       atoll_watch_turns:new(?AT_ONCE)),
    ?assertEqual([[], [{ask, a}, {ask, b}], [], [{ask, a}], [], []], lists:nthtail(4, Effects)).

%% It was another manager's until now: what it has gained since that one's last look it gains once.
what_another_manager_said_last_is_gone_on_from_test() ->
    Before = #{at => 1000000, life => 1, peers => [], readings => [{reductions, 100}], log => []},
    {_, Turns} = run([{give, a, 1, Before}, {answered, a, #{at => 3000000, life => 1, peers => [], readings => [{reductions, 700}], log => []}}], atoll_watch_turns:new(?AT_ONCE)),
    {#{looks := [#{rates := Rates, readings := Readings}]}, _} = atoll_watch_turns:report(Turns),
    ?assertEqual([{whole, #{reductions => 300.0}}, {whole, #{reductions => 700}}], [Rates, Readings]).

%% Oldest first, and each once.
what_was_logged_at_a_look_that_is_overtaken_is_told_test() ->
    Logs = fun(Text) -> {answered, a, (sample(1, []))#{log := [{1, error, Text}]}} end,
    {_, Turns0} = run(given([a]) ++ [Logs(<<"x">>), tick, Logs(<<"y">>), tick, {failed, a, down}], atoll_watch_turns:new(?AT_ONCE)),
    {Report, Turns1} = atoll_watch_turns:report(Turns0),
    ?assertMatch(#{overtaken := 2, looks := [#{state := down, log := [{1, error, <<"x">>}, {1, error, <<"y">>}]}]}, Report),
    {_, Turns} = run([tick, Logs(<<"z">>)], Turns1),
    ?assertMatch({#{looks := [#{state := up, log := [{1, error, <<"z">>}]}]}, _}, atoll_watch_turns:report(Turns)).

a_look_that_nobody_asked_for_in_time_is_overtaken_and_counted_test() ->
    {_, Turns} = run(given([a]) ++ [{answered, a, sample(1, [{processes, 1}])}, tick, {answered, a, sample(1, [{processes, 2}])}], atoll_watch_turns:new(?AT_ONCE)),
    ?assertMatch({#{overtaken := 1, looks := [#{readings := {whole, #{processes := 2}}}]}, _}, atoll_watch_turns:report(Turns)).

%% What it has gained is told since the look told before, so that nothing of it is lost.
what_was_gained_at_a_look_that_is_overtaken_is_told_with_the_next_test() ->
    Answered = fun(At, Reductions) -> {answered, a, #{at => At, life => 1, peers => [], readings => [{reductions, Reductions}], log => []}} end,
    {_, Turns0} = run([{give, a, 1, none}, Answered(1000000, 100), tick], atoll_watch_turns:new(?AT_ONCE)),
    {_, Turns1} = atoll_watch_turns:report(Turns0),
    {_, Turns2} = run([Answered(2000000, 400), tick, Answered(3000000, 500), tick], Turns1),
    {Report, Turns3} = atoll_watch_turns:report(Turns2),
    ?assertMatch(#{overtaken := 1, looks := [#{rates := {#{reductions := 200.0}, []}}]}, Report),
    {_, Turns4} = run([Answered(4000000, 600), tick, {failed, a, silent}, tick], Turns3),
    {_, Turns5} = atoll_watch_turns:report(Turns4),
    {_, Turns} = run([Answered(5000000, 900)], Turns5),
    %% 200 a second again.
    ?assertMatch({#{looks := [#{rates := {New, []}}]}, _} when map_size(New) =:= 0, atoll_watch_turns:report(Turns)).

what_has_not_changed_is_not_told_again_test() ->
    Answered = fun(Processes) -> {answered, a, sample(1, [{processes, Processes}, {ports, 3}])} end,
    {_, First} = run(given([a]) ++ [Answered(1), tick], atoll_watch_turns:new(?AT_ONCE)),
    {#{looks := [#{readings := {whole, #{processes := 1, ports := 3}}}]}, Told} = atoll_watch_turns:report(First),
    {_, Second} = run([Answered(2)], Told),
    ?assertMatch({#{looks := [#{readings := {#{processes := 2} = New, []}}]}, _} when map_size(New) =:= 1, atoll_watch_turns:report(Second)).

%% It is asked by that whether they are others: what an answer said that was lost comes again.
which_modules_are_known_is_known_test() ->
    Says = fun(Code) -> {answered, a, (sample(1, []))#{facts => #{otp => <<"25">>, modules => [m], code => Code}}} end,
    {_, New} = run(given([a]), atoll_watch_turns:new(?AT_ONCE)),
    {_, Turns} = run([Says(1), tick, {failed, a, silent}], New),
    ?assertEqual({none, 1, none}, {atoll_watch_turns:code(a, New), atoll_watch_turns:code(a, Turns), atoll_watch_turns:code(b, Turns)}).

%% Also when the look that had them was overtaken, and whole to who knows nothing yet.
modules_are_told_once_test() ->
    Says = fun(Modules, Code) -> {answered, a, (sample(1, []))#{facts => #{otp => <<"25">>, modules => Modules, code => Code}}} end,
    Told = fun(Turns) -> {#{looks := [#{sample := #{facts := #{modules := Modules}}}]}, Next} = atoll_watch_turns:report(Turns), {Modules, Next} end,
    {_, Turns0} = run(given([a]) ++ [Says([m], 1), tick, Says(same, 1)], atoll_watch_turns:new(?AT_ONCE)),
    {[m], Turns1} = Told(Turns0),
    {_, Turns2} = run([tick, Says(same, 1)], Turns1),
    {same, Turns3} = Told(Turns2),
    {_, Turns4} = run([tick, Says([n], 2), tick, Says(same, 2)], Turns3),
    ?assertMatch({[n], _}, Told(Turns4)).
