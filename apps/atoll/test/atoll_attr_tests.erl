%% SPDX-License-Identifier: Apache-2.0
%% The attributes of one real node: evaluation, ownership, and choosing alone.
-module(atoll_attr_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WAIT_MS, 5000).

-compile([export_all, nowarn_export_all]).

attr_test_() ->
    {foreach, fun start/0, fun stop/1, [
        {atom_to_list(Name), {timeout, 30, fun ?MODULE:Name/0}}
     || {Name, 0} <- ?MODULE:module_info(exports), lists:prefix("it_", atom_to_list(Name))
    ]}.

start() ->
    %% What is lost and refused here is meant to be.
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    _ = application:load(atoll),
    ok = application:set_env(atoll, attributes, [
        {colour, blue},
        {counted, {dynamic, {?MODULE, next, [dynamic]}}},
        {once, {automatic, {?MODULE, next, [automatic]}}}
    ]),
    ok = application:set_env(atoll, attribute_options, #{evaluate_ms => 300}),
    persistent_term:put(?MODULE, {counters:new(1, []), counters:new(1, [])}),
    {ok, _} = application:ensure_all_started(atoll),
    Level.

stop(Level) ->
    ok = application:stop(atoll),
    [ok = application:unset_env(atoll, Key) || Key <- [attributes, attribute_options]],
    _ = persistent_term:erase(?MODULE),
    ok = logger:set_primary_config(level, Level).

%% Functions of attributes

next(Which) ->
    {Dynamic, Automatic} = persistent_term:get(?MODULE),
    Counter = case Which of dynamic -> Dynamic; automatic -> Automatic end,
    ok = counters:add(Counter, 1, 1),
    counters:get(Counter, 1).

hang(To) ->
    To ! {hanging, self()},
    receive never -> ok end.

crash() -> error(oops).

big() -> lists:seq(1, 100000).

pid_of(To) ->
    To ! {evaluating, self()},
    receive {value, Value} -> Value end.

it_evaluates_a_dynamic_attribute_at_each_question() ->
    ?assertEqual([1, 2, 3], [value(counted) || _ <- [1, 2, 3]]).

it_evaluates_an_automatic_attribute_once() ->
    ?assertEqual([1, 1, 1], [value(once) || _ <- [1, 2, 3]]).

it_has_what_comes_with_every_node() ->
    {ok, #{os_type := Type, num_erlang_processes := N}} = atoll_attr:attributes(),
    ?assertEqual(os:type(), Type),
    ?assert(N > 10).

it_gives_undefined_for_what_hangs_and_ends_it() ->
    ok = atoll_attr:insert(slow, {dynamic, {?MODULE, hang, [self()]}}),
    ?assertEqual({ok, #{slow => undefined, colour => blue}}, atoll_attr:attributes([slow, colour])),
    receive
        {hanging, Pid} ->
            Ref = erlang:monitor(process, Pid),
            receive {'DOWN', Ref, process, Pid, _} -> ok after ?WAIT_MS -> error(lives) end
    end,
    #{evaluations := #{late := 1}} = atoll_attr:info(),
    %% No sign of it is left in the server.
    ?assertEqual(blue, value(colour)),
    ?assertMatch({message_queue_len, 0}, erlang:process_info(whereis(atoll_attr), message_queue_len)).

it_gives_undefined_for_what_crashes() ->
    Server = whereis(atoll_attr),
    ok = atoll_attr:insert(bad, {dynamic, {?MODULE, crash}}),
    ok = atoll_attr:insert(missing, {dynamic, {no_such_module, f}}),
    ok = atoll_attr:insert(bad_once, {automatic, {?MODULE, crash}}),
    ok = atoll_attr:insert(large, {dynamic, {?MODULE, big}}),
    ?assertEqual(
        {ok, #{bad => undefined, missing => undefined, bad_once => undefined, large => undefined}},
        atoll_attr:attributes([bad, missing, bad_once, large])
    ),
    %% On a busy machine any of them may be late.
    #{evaluations := #{failed := Failed, too_large := Large, late := Late}} = atoll_attr:info(),
    ?assertEqual(4, Failed + Large + Late),
    ?assertEqual(Server, whereis(atoll_attr)).

it_leaves_what_is_too_large_where_it_was_made() ->
    ok = atoll_attr:insert(large, {dynamic, {?MODULE, big}}),
    large_is_left(0).

%% On a busy machine it may be late before it is too large.
large_is_left(Late) ->
    Server = whereis(atoll_attr),
    1 = erlang:trace(Server, true, ['receive']),
    {ok, #{large := undefined}} = atoll_attr:attributes([large]),
    1 = erlang:trace(Server, false, ['receive']),
    Delivered = erlang:trace_delivered(Server),
    receive {trace_delivered, Server, Delivered} -> ok end,
    Sizes = received(Server),
    ?assert(length(Sizes) > 0),
    ?assert(lists:max(Sizes) < 4096, Sizes),
    case atoll_attr:info() of
        #{evaluations := #{too_large := 1}} -> ok;
        #{evaluations := #{too_large := 0, late := More}} when More > Late -> large_is_left(More)
    end.

received(Server) ->
    receive
        {trace, Server, 'receive', Message} -> [erlang:external_size(Message) | received(Server)]
    after 0 -> []
    end.

it_answers_others_while_something_hangs() ->
    ok = atoll_attr:insert(slow, {dynamic, {?MODULE, pid_of, [self()]}}),
    others_are_answered(0).

%% On a busy machine it may be late, and say nothing.
others_are_answered(Late) ->
    ok = flush(),
    {_, Ref} = spawn_monitor(fun() -> exit({slow, value(slow)}) end),
    Evaluating = receive {evaluating, Pid} -> Pid end,
    ?assertEqual(blue, value(colour)),
    %% Who asks meanwhile shares what comes out.
    {OtherPid, Other} = spawn_monitor(fun() -> exit({slow, value(slow)}) end),
    await(fun() -> lists:member(process_info(OtherPid, status), [{status, waiting}, undefined]) end),
    %% This question is behind that of the other.
    ?assertEqual(blue, value(colour)),
    Evaluating ! {value, 7},
    Values = [receive {'DOWN', R, process, _, {slow, V}} -> V after ?WAIT_MS -> error(silent) end || R <- [Ref, Other]],
    case atoll_attr:info() of
        #{evaluations := #{late := Late}} -> ?assertEqual([7, 7], Values);
        #{evaluations := #{late := More}} when More > Late -> others_are_answered(More)
    end.

%% What was evaluated too late has said so, too.
flush() ->
    receive
        {evaluating, _} -> flush()
    after 0 -> ok
    end.

it_takes_away_what_a_process_owned() ->
    {Pid, Ref} = spawn_monitor(fun() ->
        ok = atoll_attr:insert(mine, 1),
        receive {go, From} -> From ! gone end
    end),
    await(fun() -> value(mine) =:= 1 end),
    Pid ! {go, self()},
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    await(fun() -> value(mine) =:= undefined end),
    ok = atoll_attr:insert(stays, 2, permanent),
    ?assertEqual(2, value(stays)).

it_lets_any_process_add_change_and_remove() ->
    Self = self(),
    spawn(fun() -> Self ! atoll_attr:insert(job, worker, permanent) end),
    receive Answer -> ?assertEqual(ok, Answer) end,
    ?assertMatch({error, {book, {attr_exists, job}}}, atoll_attr:insert(job, x)),
    ok = atoll_attr:update(job, boss),
    ?assertEqual(boss, value(job)),
    ok = atoll_attr:delete(job),
    ?assertMatch({error, {book, {attr_not_set, job}}}, atoll_attr:delete(job)),
    ?assertMatch({error, {book, {attr_not_set, job}}}, atoll_attr:update(job, 1)),
    ?assertMatch({error, {value_too_large, _, 4096}}, atoll_attr:insert(job, lists:seq(1, 5000))),
    ?assertMatch({error, {book, {not_a_function, job, x}}}, atoll_attr:insert(job, {dynamic, x})),
    ?assertMatch({error, {book, {not_a_name, "job", _}}}, atoll_attr:insert("job", 1)).

it_keeps_what_was_added_when_its_process_is_lost() ->
    ok = atoll_attr:insert(stays, 1, permanent),
    {Owner, _} = spawn_monitor(fun() -> receive stop -> ok end end),
    ok = atoll_attr:insert(owned, 2, Owner),
    Old = whereis(atoll_attr),
    exit(Old, kill),
    await(fun() -> is_pid(whereis(atoll_attr)) andalso whereis(atoll_attr) =/= Old end),
    ?assertEqual({ok, #{stays => 1, owned => 2, colour => blue}}, atoll_attr:attributes([stays, owned, colour])),
    Owner ! stop,
    await(fun() -> value(owned) =:= undefined end).

it_says_that_it_is_started_again() ->
    %% Nobody starts it meanwhile.
    ok = sys:suspend(atoll_rooms_sup),
    {Server, Ref} = {whereis(atoll_attr), erlang:monitor(process, whereis(atoll_attr))},
    exit(Server, kill),
    receive {'DOWN', Ref, process, Server, killed} -> ok end,
    Answer = atoll_attr:attributes(),
    ok = sys:resume(atoll_rooms_sup),
    ?assertEqual({error, restarting}, Answer),
    await(fun() -> value(colour) =:= blue end),
    ok = application:stop(atoll),
    ?assertEqual({error, not_running}, atoll_attr:attributes()),
    ok = application:start(atoll).

its_application_says_which_names_it_takes_test() ->
    Before = erlang:registered(),
    Level = start(),
    Taken = [Name || Name <- erlang:registered() -- Before, lists:prefix("atoll_", atom_to_list(Name))],
    {ok, Said} = application:get_key(atoll, registered),
    stop(Level),
    ?assert(lists:member(atoll_attr, Taken)),
    ?assertEqual([], Taken -- Said).

it_chooses_itself() ->
    Node = node(),
    {ok, #{nodes := [Node], silent := [], age_ms := 0}} = atoll_attr:choose_nodes("colour == blue and counted > 0"),
    {ok, #{nodes := []}} = atoll_attr:choose_nodes({colour, eq, red}),
    {ok, Node, #{place := 1, nodes := [Node]}} = atoll_attr:choose_node([{colour, eq, blue}]),
    {ok, Node, #{place := 2}} = atoll_attr:choose_node({}),
    {none, #{nodes := []}} = atoll_attr:choose_node({colour, ne, blue}),
    {none, #{nodes := []}} = atoll_attr:choose_node({unknown, ne, blue}),
    {ok, #{values := #{Node := #{colour := blue}}}} = atoll_attr:request_attrs([Node], colour),
    {ok, #{nodes := [Node]}} = atoll_attr:choose_nodes(members, {}, #{rank => {nearest, #{Node => 0.5}}, within => 1}),
    {ok, #{nodes := []}} = atoll_attr:choose_nodes(members, {}, #{rank => {nearest, fun(_) -> 2.0 end}, within => 1}).

it_says_what_is_wrong_in_a_sentence() ->
    [
        begin
            {error, Error} = Answer,
            Said = unicode:characters_to_list(atoll_attr:format_error(Error)),
            ?assertMatch({match, _}, re:run(Said, Words), Said)
        end
     || {Answer, Words} <- [
            {atoll_attr:choose_nodes("colour =="), "at character 10"},
            {atoll_attr:choose_nodes({s_group, none_such}, {}), "in no s_group none_such"},
            {atoll_attr:choose_nodes(everywhere, {}), "neither members"},
            {atoll_attr:choose_nodes([a, "b"], {}), "neither members"},
            {atoll_attr:choose_nodes(members, {}, #{deadline => 0}), "no option deadline"},
            {atoll_attr:choose_nodes(members, {}, #{speed => 1}), "no option speed"},
            {atoll_attr:insert(a, 1, me), "and me is neither"},
            {atoll_attr:request_attrs(members, ["a"]), "no list of names"},
            {atoll_attr:request_attrs(members, [a | b]), "no list of names"},
            {atoll_attr:attributes([a | b]), "no list of names"},
            {{error, restarting}, "is being started again"}
        ]
    ].

it_refuses_a_wrong_configuration() ->
    ok = application:stop(atoll),
    ok = application:set_env(atoll, attributes, [{a, 1}, {a, 2}]),
    {error, {{bad_option, attributes, _} = Error, _}} = application:start(atoll),
    ?assertEqual("the option attributes: the attribute a is defined twice", lists:flatten(atoll_config:format_error(Error))),
    ok = application:set_env(atoll, attributes, []),
    ok = application:set_env(atoll, attributes_file, "/nowhere/at/all"),
    {error, {{bad_option, attributes_file, _} = Missing, _}} = application:start(atoll),
    ?assertEqual(
        "the option attributes_file: /nowhere/at/all cannot be read: no such file or directory",
        lists:flatten(atoll_config:format_error(Missing))
    ),
    ok = application:unset_env(atoll, attributes_file),
    ok = application:start(atoll).

it_reads_its_file_once() ->
    ok = application:stop(atoll),
    Path = atoll_test_file:temporary("atoll_attr"),
    ok = file:write_file(Path, "[{colour, green}]."),
    ok = application:set_env(atoll, attributes_file, Path),
    try
        ok = application:start(atoll),
        ?assertEqual(green, value(colour)),
        ok = file:write_file(Path, "[{colour,"),
        Old = whereis(atoll_attr),
        exit(Old, kill),
        await(fun() -> whereis(atoll_attr) =/= Old andalso value(colour) =:= green end)
    after
        ok = application:unset_env(atoll, attributes_file),
        ok = file:delete(Path)
    end.

value(Name) ->
    {ok, #{Name := Value}} = atoll_attr:attributes([Name]),
    Value.

await(Done) ->
    await(Done, erlang:monotonic_time(millisecond) + ?WAIT_MS).

await(Done, Deadline) ->
    case try Done() catch error:{badmatch, _} -> false end of
        true ->
            ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            erlang:yield(),
            await(Done, Deadline)
    end.
