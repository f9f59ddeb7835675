%% SPDX-License-Identifier: Apache-2.0
%% Placing on the one node that there is: what is asked for, how it is refused, and the watch.
-module(atoll_place_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WAIT_MS, 5000).

-compile([export_all, nowarn_export_all]).

place_test_() ->
    {foreach, fun start/0, fun stop/1, [
        {atom_to_list(Name), {timeout, 30, fun ?MODULE:Name/0}}
     || {Name, 0} <- ?MODULE:module_info(exports), lists:prefix("it_", atom_to_list(Name))
    ]}.

start() ->
    %% What is lost and refused here is meant to be.
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    _ = application:load(atoll),
    ok = application:set_env(atoll, attributes, [{colour, blue}]),
    ok = application:set_env(atoll, network, {network, [{network, [{node, node()}]}, {node, far@h}]}),
    ok = application:set_env(atoll, place_check_ms, 20),
    ok = application:set_env(atoll, max_placed, 2),
    {ok, _} = application:ensure_all_started(atoll),
    Level.

stop(Level) ->
    ok = application:stop(atoll),
    [ok = application:unset_env(atoll, Key) || Key <- [attributes, network, place_check_ms, max_placed]],
    ok = logger:set_primary_config(level, Level).

it_chooses_by_attributes_and_distance_in_one_call() ->
    Node = node(),
    {ok, #{nodes := [Node], distances := #{Node := 0.5}}} =
        atoll_place:nodes(#{where => "colour == blue", near => far_sibling(), within => 1}),
    {ok, #{nodes := []}} = atoll_place:nodes(#{where => "colour == blue", near => far_sibling(), within => 0.25}),
    {ok, #{nodes := []}} = atoll_place:nodes(#{where => "colour == red", near => far_sibling(), within => 1}),
    {ok, Node, #{place := 1, distances := #{Node := D}}} = atoll_place:choose(#{near => Node}),
    ?assertEqual(0, trunc(D)),
    {none, #{nodes := []}} = atoll_place:choose({colour, ne, blue}),
    ?assertEqual(Node, atoll_place:node("colour == blue")),
    ?assertEqual(Node, atoll_place:node(#{})).

far_sibling() ->
    {ok, Network} = atoll_network:new({network, [{network, [{node, node()}, {node, sibling@h}]}, {node, far@h}]}),
    ok = atoll_distance:declare(Network),
    sibling@h.

it_raises_one_sentence_where_a_node_is_needed() ->
    Said = fun(Params) ->
        try atoll_place:node(Params) of
            Node -> {chose, Node}
        catch
            error:Reason:Stack ->
                [{_, _, _, Info} | _] = Stack,
                #{module := Module} = proplists:get_value(error_info, Info),
                #{general := Text} = Module:format_error(Reason, Stack),
                {element(1, Reason), unicode:characters_to_list(Text)}
        end
    end,
    ?assertEqual({no_node_fits, "no node fits colour == red and size > 3"}, Said("colour == red and size > 3")),
    {no_node_fits, Missing} = Said(#{among => [node(), 'none@127.0.0.1'], where => "colour == red"}),
    ?assertEqual("no node fits colour == red; none@127.0.0.1 could not be reached", Missing),
    ?assertMatch({place, "at character 10" ++ _}, Said("colour ==")).

it_says_what_is_wrong_in_a_sentence() ->
    Error = fun({error, Why}) -> unicode:characters_to_list(atoll_place:format_error(Why)) end,
    [
        begin
            Said = Error(Answer),
            ?assertMatch({match, _}, re:run(Said, Words), Said)
        end
     || {Answer, Words} <- [
            {atoll_place:choose(nonsense), "nonsense is no condition"},
            {atoll_place:choose(#{speed => 3}), "not placed with speed that is 3"},
            {atoll_place:choose(#{near => "x"}), "not placed with near"},
            {atoll_place:choose(#{deadline => 0}), "not placed with deadline that is 0"},
            {atoll_place:choose(#{near => a@h, rank => {least, loadavg1}}), "not by both"},
            {atoll_place:choose(#{within => 1}), "neither is there"},
            {atoll_place:choose(#{how => declared}), "there is no near"},
            {atoll_place:choose(#{near => nowhere@h}), "nowhere@h is not in the declared network"},
            {atoll_place:choose(#{near => a@h, how => measured}), "what a@h has measured"},
            {atoll_place:choose(#{near => a@h, how => estimated}), "measures no distances"},
            {atoll_place:choose(#{among => {s_group, none_such}}), "in no s_group none_such"},
            {atoll_place:watch(me, {}), "me is no process"},
            {atoll_place:watch(self(), #{on_misfit => off}), "with on_misfit => off nobody looks"},
            {atoll_place:start_link(#{shutdown => soon}, {m, f, []}), "not placed with shutdown that is soon"},
            {{error, {none_has_answered, [a@h, b@h]}}, "none that was asked has answered in time: a@h, b@h$"},
            {{error, {none_has_answered, [list_to_atom(lists:concat([n, N, "@h"])) || N <- lists:seq(1, 9)]}}, "n5@h and 4 more"},
            {atoll_place:watch(self(), "colour =="), "at character"},
            {atoll_place:start_link("colour == red", {m, f, []}), "no node fits colour == red"},
            {atoll_place:start_link("colour == blue", {no_such_module, go, [1]}),
                "has no function no_such_module:go/1: the code of the application is not there"},
            {atoll_place:start_link(#{start_timeout => 1000}, {timer, sleep, [infinity]}), "did not end within start_timeout, 1000 ms"},
            {atoll_place:start_child(sup, "colour == blue", [1, 2]), "is no child specification"},
            {atoll_place:start_child(sup, "colour =", #{id => a, start => {m, f, []}}), "at character"}
        ]
    ].

it_starts_under_a_supervisor_and_tells_the_true_process() ->
    {ok, Supervisor} = supervisor:start_link(atoll_place_probe, []),
    Spec = #{id => counter, start => {atoll_place_worker, start_link, [self()]}, restart => permanent},
    {ok, Child, Pid} = atoll_place:start_child(Supervisor, "colour == blue", Spec),
    ?assertMatch([{counter, Child, worker, _}], supervisor:which_children(Supervisor)),
    ?assertEqual({ok, Pid}, atoll_place:child(Child)),
    {ok, Old, Other} = atoll_place:start_child(Supervisor, {}, {old, {atoll_place_worker, start_link, [self()]}, temporary, 100, worker, [m]}),
    ?assertMatch({error, {already_started, Child}}, atoll_place:start_child(Supervisor, {}, Spec)),
    receive {started, Pid} -> ok end,
    true = exit(Pid, kill),
    Next = receive {started, N} when N =/= Pid, N =/= Other -> N after ?WAIT_MS -> error(not_restarted) end,
    ?assertNotEqual(Pid, Next),
    ok = supervisor:terminate_child(Supervisor, counter),
    ok = supervisor:terminate_child(Supervisor, old),
    ?assertEqual(none, atoll_place:child(Old)),
    true = unlink(Supervisor),
    true = exit(Supervisor, shutdown).

it_tells_of_a_misfit_once_and_forgets_who_ends() ->
    ok = atoll:subscribe(misplaced),
    {Pid, Monitor} = spawn_monitor(fun() -> receive stop -> ok end end),
    {ok, Ref} = atoll_place:watch(Pid, #{where => "colour == blue", on_misfit => event}),
    {ok, Other} = atoll_place:watch(self(), "colour == red or colour == blue"),
    {error, {too_many_watched, 2}} = atoll_place:watch(self(), {}),
    ok = atoll_attr:update(colour, red),
    Node = node(),
    receive
        {atoll, misplaced, Details} ->
            ?assertEqual(
                #{pid => Pid, node => Node, where => "colour == blue", values => #{colour => red}, watch => Ref}, Details
            )
    after ?WAIT_MS -> error(not_told)
    end,
    %% Its table outlives the process, and it is told no second time.
    Rounds = rounds(),
    exit(whereis(atoll_place_watch), kill),
    await(fun() -> rounds() > 3 end),
    receive {atoll, misplaced, Again} -> error({told_again, Rounds, Again}) after 0 -> ok end,
    #{place := #{watched := 2, misplaced := 1}} = atoll:status(),
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    await(fun() -> map_get(watched, atoll_place_watch:status()) =:= 1 end),
    ok = atoll_place:unwatch(Other),
    ?assertMatch(#{watched := 0, misplaced := 0}, atoll_place_watch:status()),
    ?assertEqual([], ets:tab2list(atoll_place_watch)).

it_ends_nobody_who_fits_nowhere_else() ->
    ok = atoll:subscribe(misplaced),
    {Pid, Monitor} = spawn_monitor(fun() -> receive stop -> ok end end),
    {ok, _} = atoll_place:watch(Pid, #{where => "colour == blue", on_misfit => stop}),
    ok = atoll_attr:update(colour, red),
    await(fun() -> map_get(kept, counts()) > 1 end),
    ?assert(is_process_alive(Pid)),
    true = exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, killed} -> ok end.

it_ends_nobody_whose_own_node_fits() ->
    %% What the watch has found twice may be over when it comes to it.
    Weighed = fun(Where) ->
        {ok, Wish} = atoll_place_choice:new(#{where => Where, among => [node()], max_age => 600000}),
        Watch = #{pid => self(), node => node(), wish => Wish, ending => direct, misplaced => true},
        World = atoll_place_watch:act({act, {weigh, ref, Watch}}, atoll_place_watch:open(#{})),
        {[{cast, Answer}], _} = atoll_place_watch:event(receive {'DOWN', _, _, _, _} = Down -> Down end, World),
        Answer
    end,
    ?assertEqual({weighed, ref, kept}, Weighed("colour == blue")),
    %% By what it is like now.
    ok = atoll_attr:update(colour, red),
    ?assertEqual({weighed, ref, kept}, Weighed("colour == blue")),
    ?assertEqual({weighed, ref, kept}, Weighed("colour == red")).

it_is_not_running_when_the_application_is_not() ->
    ok = application:stop(atoll),
    ?assertEqual({error, {attributes, not_running}}, atoll_place:choose(#{among => [node()]})),
    ?assertEqual({error, not_running}, atoll_place:watch(self(), {})),
    ok = application:start(atoll).

counts() -> map_get(counts, atoll_place_watch:status()).

rounds() -> map_get(rounds, counts()).

await(Done) ->
    await(Done, erlang:monotonic_time(millisecond) + ?WAIT_MS).

await(Done, Deadline) ->
    case try Done() catch error:{badmap, _} -> false end of
        true ->
            ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            receive after 5 -> ok end,
            await(Done, Deadline)
    end.
