%% SPDX-License-Identifier: Apache-2.0
%% Alarms beside what their rules say of all looks so far, kept naively.
-module(atoll_watch_alarm_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LOOKS, 2).
-define(RAISE, 10).
-define(CLEAR, 5).
-define(HISTORY, 3).

properties_test_() ->
    atoll_prop:tests([{alarms_are_what_their_rules_say, alarms_are_what_their_rules_say(), 3000}]).

rules() ->
    Same = #{looks => ?LOOKS, severity => minor, cause => "c", repair => "r", raise => ?RAISE, clear => ?CLEAR},
    [Same#{id => long, what => {each, mailbox, zero}}, Same#{id => many, what => {value, processes}}, Same#{id => gone, what => {state, down}},
     Same#{id => mute, what => {state, silent}}].

%% Instances p and q are known to have nothing where they are not said.
steps() ->
    Value = oneof([0, 4, 5, 9, 10, 20]),
    Up = {oneof([a, b]), {up, Value, maps(oneof([p, q]), Value)}},
    list(oneof([Up, Up, Up, {oneof([a, b]), oneof([down, silent, unknown])}, {oneof([a, b]), forget}])).

maps(Key, Value) -> ?LET(Pairs, list({Key, Value}), maps:from_list(Pairs)).

seen(Node, {up, Processes, Mailboxes}) ->
    Readings = maps:from_list([{processes, Processes} | [{{mailbox, Label}, N} || {Label, N} <- maps:to_list(Mailboxes)]]),
    (seen(Node, up))#{readings := Readings};
%% With what it said last.
seen(Node, State) ->
    #{node => Node, state => State, since => 0, why => none, readings => #{processes => 20, {mailbox, p} => 20}, rates => #{}}.

%% What each rule makes of a look, told anew: of the state at any time, of values only while it is up.
told(Node, {up, Processes, Mailboxes}) ->
    [{{Node, many, none}, value(Processes)}, {{Node, long, p}, value(maps:get(p, Mailboxes, 0))}, {{Node, long, q}, value(maps:get(q, Mailboxes, 0))},
     {{Node, gone, none}, clears}, {{Node, mute, none}, clears}];
told(Node, State) ->
    [{{Node, gone, none}, state(State, down)}, {{Node, mute, none}, state(State, silent)}].

value(N) when N >= ?RAISE -> raises;
value(N) when N < ?CLEAR -> clears;
value(_) -> between.

state(State, State) -> raises;
state(_, _) -> clears.

%% All looks at a key, newest first, say whether its alarm stands.
stands([], _) -> false;
stands(Looks, Rule) ->
    Was = stands(tl(Looks), Rule),
    case {Was, lists:sublist(Looks, ?LOOKS), hd(Looks)} of
        {false, [raises, raises], _} -> true;
        {true, _, clears} when Rule =:= gone; Rule =:= mute -> false;
        {true, [clears, clears], _} -> false;
        _ -> Was
    end.

alarms_are_what_their_rules_say() ->
    ?FORALL(Steps, steps(), begin
        {Alarms, Model, Events, _} = lists:foldl(fun step/2, {atoll_watch_alarm:new(#{rules => rules(), history => ?HISTORY}), #{}, [], 1}, Steps),
        Standing = atoll_watch_alarm:standing(Alarms),
        Keys = lists:sort([{Node, Rule, Instance} || #{node := Node, rule := Rule, instance := Instance} <- Standing]),
        Raised = [Id || {raised, #{id := Id}} <- Events],
        Cleared = [Id || {cleared, #{id := Id}} <- Events],
        History = [Id || #{id := Id, state := cleared} <- atoll_watch_alarm:history(Alarms)],
        Keys =:= lists:sort([Key || {{_, Rule, _} = Key, Looks} <- maps:to_list(Model), stands(Looks, Rule)]) andalso
            Raised =:= lists:seq(1, length(Raised)) andalso
            length(Cleared) =:= length(lists:usort(Cleared)) andalso
            lists:sort([Id || #{id := Id} <- Standing]) =:= lists:sort(Raised -- Cleared) andalso
            History =:= lists:sublist(lists:reverse(Cleared), ?HISTORY)
    end).

step({Node, forget}, {Alarms, Model, Events, Now}) ->
    {New, Next} = atoll_watch_alarm:forget(Node, Now, Alarms),
    {Next, maps:filter(fun({N, _, _}, _) -> N =/= Node end, Model), Events ++ New, Now + 1};
step({Node, Is}, {Alarms, Model0, Events, Now}) ->
    {New, Next} = atoll_watch_alarm:look(seen(Node, Is), Now, Alarms),
    Model = lists:foldl(fun({Key, Look}, M) -> maps:update_with(Key, fun(Looks) -> [Look | Looks] end, [Look], M) end, Model0, told(Node, Is)),
    {Next, Model, Events ++ New, Now + 1}.

looked(Looks, Alarms) ->
    lists:foldl(fun(Seen, {Events, As}) -> {New, Next} = atoll_watch_alarm:look(Seen, 0, As), {Events ++ New, Next} end, {[], Alarms}, Looks).

%% By the rules that there are.
a_node_that_falls_silent_and_is_down_has_one_alarm_test() ->
    {Events, Alarms} = looked([seen(a, State) || State <- [silent, silent, down, down]], atoll_watch_alarm:new(#{})),
    ?assertMatch([{raised, #{rule := node_silent}}, {cleared, #{rule := node_silent}}, {raised, #{rule := node_down, severity := critical, state := new}}],
                 lists:sort(fun({_, #{id := A}}, {_, #{id := B}}) -> A =< B end, Events)),
    ?assertMatch([#{rule := node_down, node := a}], atoll_watch_alarm:standing(Alarms)).

each_rule_is_raised_by_what_it_is_about_test() ->
    Bad = (seen(a, up))#{readings := #{
        processes => 90, processes_limit => 100, ports => 90, ports_limit => 100, atoms => 90, atoms_limit => 100, ets_tables => 90,
        ets_tables_limit => 100, memory_total => 90, os_memory => 100, {os_disk_used, <<"/">>} => 0.95, {mailbox, <<"p">>} => 20000,
        run_queue_total => 50, schedulers_online => 2, {dist_queue, b} => 100000, {supervisor_ended, <<"s">>} => 9, {supervisor_gave_up, <<"s">>} => 1
    }},
    %% Two nodes that agree in nothing, and one with both.
    Facts = fun(N) -> #{otp => <<N>>, cookie => N, flags => [{net_ticktime, <<N>>}], mesh => [e], names => [{<<"n">>, N, e}], modules => [], code => N} end,
    About = fun(Node, N, More) -> #{node => Node, state => up, readings => #{clock_offset => N * 10000, clock_uncertainty => 1, {crash_dump, <<"f">>} => 7}, facts => maps:merge(Facts(N), More)} end,
    Abouts = [About(e, 1, #{mesh => [f, g], modules => [{<<"m">>, 1}]}), About(f, 1, #{modules => [{<<"m">>, 2}], code => 2}), About(g, 2, #{})],
    {Events, Alarms} = looked([Bad, Bad, Bad] ++ [seen(b, down)] ++ [seen(N, S) || {N, S} <- [{c, silent}, {d, refused}], _ <- [1, 2]], atoll_watch_alarm:new(#{})),
    {More, Both} = compared([Abouts, Abouts, Abouts], Alarms),
    ?assertEqual(lists:sort([Id || #{id := Id} <- atoll_watch_rule:all()]), lists:sort([Rule || {raised, #{rule := Rule}} <- Events ++ More])),
    ?assertEqual([b, <<"/">>, <<"p">>, <<"s">>, <<"s">>], lists:sort([I || #{instance := I} <- atoll_watch_alarm:standing(Alarms), I =/= none])),
    ?assertEqual([f, net_ticktime, <<"f">>, <<"g">>, <<"m">>, <<"n">>], lists:sort([I || #{instance := I, information := Said} <- atoll_watch_alarm:standing(Both), Said =/= none, I =/= none])).

compared(Looks, Alarms) ->
    lists:foldl(fun(Abouts, {Events, As}) -> {New, Next} = atoll_watch_alarm:compare(Abouts, 0, As), {Events ++ New, Next} end, {[], Alarms}, Looks).

%% One alarm for one cause, and with hysteresis as any other.
what_is_wrong_between_nodes_is_one_alarm_that_names_them_test() ->
    Of = fun(Node, Version) -> #{node => Node, state => up, readings => #{}, facts => #{otp => <<"25">>, cookie => 1, flags => [], mesh => none, names => [], modules => [{<<"m">>, Version}], code => Version}} end,
    Wrong = [Of(a, 1), Of(b, 1), Of(c, 2)],
    Right = [Of(a, 1), Of(b, 1), Of(c, 1)],
    {[], Alarms0} = compared([Wrong, Wrong, Right, Wrong, Wrong], atoll_watch_alarm:new(#{})),
    {[{raised, #{rule := module_versions, node := c, nodes := [c], instance := <<"m">>, value := 2, information := <<"2 versions: another one on c">>} = Alarm}], Alarms1} = compared([Wrong], Alarms0),
    %% It says how it is now.
    {[], Alarms2} = compared([[Of(a, 1), Of(b, 2), Of(c, 2), Of(d, 2)]], Alarms1),
    ?assertMatch([#{node := c, nodes := [a], value := 2}], atoll_watch_alarm:standing(Alarms2)),
    %% Another watch goes on from it, and a node that is forgotten takes none away.
    {[], Alarms3} = atoll_watch_alarm:forget(c, 1, atoll_watch_alarm:restored([Alarm], 0, #{})),
    {[], Alarms4} = compared([Right, Right, Wrong, Right, Right], Alarms3),
    ?assertMatch({[{cleared, #{rule := module_versions, nodes := [c], information := <<"2 versions: another one on c">>}}], _}, compared([Right], Alarms4)),
    %% One that an earlier version has kept is of its node.
    Old = (maps:without([nodes, information], Alarm))#{rule := mailbox, instance := p},
    ?assertMatch([#{node := c, nodes := [c], information := none}], atoll_watch_alarm:standing(atoll_watch_alarm:restored([Old], 0, #{}))).

about(Node, State, Readings, Facts) -> #{node => Node, state => State, readings => Readings, facts => Facts}.

%% A dump alarm is raised and cleared at the first look. Whoever has not answered a watch that has begun again, or is silent for a look, has mended nothing.
what_is_wrong_between_nodes_stands_until_they_say_that_it_is_over_test() ->
    Dump = about(a, up, #{processes => 1, {crash_dump, <<"f">>} => 7}, none),
    Away = about(a, up, #{processes => 1}, none),
    Other = about(b, up, #{processes => 1}, none),
    {[{raised, #{id := 1, rule := crash_dump} = Alarm}], Raised} = compared([[Dump, Other]], atoll_watch_alarm:new(#{})),
    [begin
        {[], Held} = compared([[about(a, State, Readings, none), Other] || {State, Readings} <- [{unknown, #{}}, {silent, #{{crash_dump, <<"f">>} => 7}}, {down, #{}}, {refused, #{}}, {up, #{}}]], Alarms),
        ?assertEqual([Alarm], atoll_watch_alarm:standing(Held)),
        ?assertMatch({[], _}, compared([[Dump, Other]], Held)),
        ?assertMatch({[{cleared, #{id := 1}}], _}, compared([[Away, Other]], Held)),
        %% Whoever is watched no more will not say so.
        ?assertMatch({[{cleared, #{id := 1}}], _}, compared([[Other]], Held))
     end || Alarms <- [Raised, atoll_watch_alarm:restored([Alarm], 0, #{})]].

%% Of each kind that is what the node would say of it.
what_is_over_is_said_by_what_was_compared_test() ->
    Facts = #{otp => <<"25">>, cookie => 1, flags => [], mesh => none, names => [], modules => [], code => 0},
    Stands = fun(Rule, Readings, Known) ->
        Standing = (alarm())#{rule := Rule, nodes := [a, gone], instance := <<"i">>},
        {Events, _} = compared(lists:duplicate(3, [about(a, up, Readings, Known)]), atoll_watch_alarm:restored([Standing], 0, #{})),
        Events =:= []
    end,
    [?assertEqual({Id, false}, {Id, Stands(Id, #{clock_offset => 0, clock_uncertainty => 1}, Facts)}) || #{id := Id, what := {nodes, _}} <- atoll_watch_rule:all()],
    ?assertEqual([clock_skew], [Id || #{id := Id, what := {nodes, _}} <- atoll_watch_rule:all(), Stands(Id, #{processes => 1}, Facts)]),
    ?assertEqual([crash_dump, clock_skew], [Id || #{id := Id, what := {nodes, _}} <- atoll_watch_rule:all(), not Stands(Id, #{clock_offset => 0, clock_uncertainty => 1}, none)]).

alarm() ->
    {[{raised, Alarm}], _} = looked([seen(a, down)], atoll_watch_alarm:new(#{})),
    Alarm.

every_metric_of_a_rule_is_in_the_table_test() ->
    Names = lists:append([tl(tuple_to_list(What)) -- [zero, unknown] || #{what := What} <- atoll_watch_rule:all(), not lists:member(element(1, What), [state, nodes])]),
    Compared = [Kind || #{what := {nodes, Kind}} <- atoll_watch_rule:all()],
    ?assertEqual(lists:sort(atoll_watch_compare:kinds()), lists:sort(Compared)),
    [?assertMatch({Name, {ok, _}}, {Name, atoll_watch_metric:find(Name)}) || Name <- Names],
    [?assert(Raise >= Clear) || #{raise := Raise, clear := Clear} <- atoll_watch_rule:all()].

people_acknowledge_and_comment_and_the_history_keeps_it_test() ->
    {_, Alarms0} = looked([seen(a, down)], atoll_watch_alarm:new(#{comments => 2})),
    {ok, [{commented, _}], Alarms1} = atoll_watch_alarm:comment(1, <<"ann">>, <<"its disk">>, 5, Alarms0),
    {ok, [{acknowledged, #{state := acknowledged}}], Alarms2} = atoll_watch_alarm:acknowledge(1, <<"ann">>, 6, Alarms1),
    %% Who was first stays.
    {ok, [], Alarms2} = atoll_watch_alarm:acknowledge(1, <<"bob">>, 7, Alarms2),
    {[{cleared, _}], Alarms3} = atoll_watch_alarm:look(seen(a, up), 9, Alarms2),
    ?assertEqual([], atoll_watch_alarm:standing(Alarms3)),
    {ok, _, Alarms} = atoll_watch_alarm:comment(1, <<"bob">>, <<"a new disk">>, 10, Alarms3),
    ?assertMatch([#{state := cleared, raised := 0, cleared := 9, acknowledged := {6, <<"ann">>},
                    comments := [{10, <<"bob">>, <<"a new disk">>}, {5, <<"ann">>, <<"its disk">>}]}], atoll_watch_alarm:history(Alarms)),
    ?assertEqual({error, {too_many_comments, 1}}, atoll_watch_alarm:comment(1, <<"bob">>, <<"more">>, 11, Alarms)),
    ?assertEqual({error, {is_cleared, 1}}, atoll_watch_alarm:acknowledge(1, <<"bob">>, 11, Alarms)),
    ?assertEqual({error, {no_alarm, 7}}, atoll_watch_alarm:acknowledge(7, <<"bob">>, 11, Alarms)),
    ?assertEqual("There is no alarm 7.", lists:flatten(atoll_watch_alarm:format_error({no_alarm, 7}))).

raised_again_it_is_another_one_test() ->
    {Events, _} = looked([seen(a, State) || State <- [down, up, down]], atoll_watch_alarm:new(#{})),
    ?assertEqual([{raised, 1}, {cleared, 1}, {raised, 2}], [{What, Id} || {What, #{id := Id}} <- Events]).

more_than_the_bound_do_not_stand_and_are_counted_test() ->
    {_, Alarms} = looked([seen(N, down) || N <- [a, b, c]], atoll_watch_alarm:new(#{standing => 2})),
    ?assertMatch([#{node := a}, #{node := b}], atoll_watch_alarm:standing(Alarms)),
    ?assertEqual(1, atoll_watch_alarm:omitted(Alarms)),
    %% When there is room it is raised.
    {_, Room} = atoll_watch_alarm:look(seen(a, up), 1, Alarms),
    {[{raised, _}], _} = atoll_watch_alarm:look(seen(c, down), 2, Room).
