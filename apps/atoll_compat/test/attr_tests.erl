%% SPDX-License-Identifier: Apache-2.0
%% The module attr as programs know it, on one node.
-module(attr_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WAIT_MS, 5000).

attr_test_() ->
    {foreach, fun start/0, fun stop/1, [
        {"starting and stopping", fun starting/0},
        {"a file defines attributes", fun a_file/0},
        {"attributes are inserted, updated and deleted by any process", fun changing/0},
        {"requests and choices", fun choosing/0},
        {"the wire of the original", fun wire/0}
    ]}.

start() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Level.

stop(Level) ->
    _ = attr:stop(),
    _ = application:stop(atoll),
    ok = logger:set_primary_config(level, Level).

starting() ->
    ?assertEqual({error, not_running}, attr:stop()),
    ?assertEqual(ok, attr:start()),
    ?assertEqual({error, already_running}, attr:start()),
    ?assertMatch([{_, [{os_type, {unix, _}}]}], attr:request_attrs([node()], os_type)),
    ?assertEqual(ok, attr:stop()),
    ?assertEqual(ok, attr:start(nobuiltins)),
    ?assertEqual([{node(), [{os_type, undefined}]}], attr:request_attrs([node()], os_type)),
    ?assertEqual(ok, attr:stop()).

a_file() ->
    ?assertEqual({error, {attr_config_error, enoent}}, attr:start("/nowhere/at/all")),
    File = atoll_test_file:temporary("attr_tests"),
    ok = file:write_file(File, "[{colour, blue}, {os_type, mine}, {n, {automatic, {erlang, node}}}]."),
    Node = node(),
    try
        ok = attr:start(File),
        ?assertEqual(
            [{Node, [{colour, blue}, {os_type, mine}, {n, Node}, {mem, undefined}]}],
            attr:request_attrs([Node], [colour, os_type, n, mem], 1000)
        ),
        [{Node, [{num_erlang_processes, N}]}] = attr:request_attrs([Node], num_erlang_processes),
        ?assert(is_integer(N)),
        ok = attr:stop(),
        ok = attr:start(File, nobuiltins),
        [{Node, [{num_erlang_processes, undefined}]}] = attr:request_attrs([Node], num_erlang_processes),
        ok = attr:stop(),
        ok = attr:start(nobuiltins, File)
    after
        file:delete(File)
    end.

changing() ->
    ok = attr:start(),
    {_, Ref} = spawn_monitor(fun() -> exit(attr:insert(db, yes)) end),
    receive {'DOWN', Ref, process, _, Answer} -> ?assertEqual(ok, Answer) end,
    ?assertEqual({error, {attr_exists, db}}, attr:insert_attr(db, no)),
    ?assertEqual(ok, attr:update_attr(db, no)),
    ?assertEqual([{node(), [{db, no}]}], attr:request_attrs([node()], db)),
    ?assertEqual(ok, attr:delete_attr(db)),
    ?assertEqual({error, {attr_not_set, db}}, attr:delete(db)),
    ?assertEqual({error, {attr_not_set, db}}, attr:update(db, 1)).

choosing() ->
    ok = attr:start(),
    Node = node(),
    ok = attr:insert(speed, 2000.0),
    ok = attr:insert(db, yes),
    ?assertEqual([Node], attr:choose_nodes([Node], {speed, eq, 2000})),
    ?assertEqual([Node], attr:choose_nodes([Node], [{speed, ge, 2000}, {db, yes}], 1000)),
    ?assertEqual([], attr:choose_nodes([Node], {db, no})),
    ?assertEqual([], attr:choose_nodes([Node], {nothing, ne, 1})),
    ?assertEqual([Node], attr:choose_nodes([Node], {})),
    ?assertEqual(Node, attr:choose_node({speed, gt, 1})),
    ?assertEqual(none, attr:choose_node([Node], {speed, lt, 1})),
    ?assertError({bad_predicate, "in {speed,above,1} there is above" ++ _}, attr:choose_nodes([Node], {speed, above, 1})),
    %% What is not there does not keep the others from being chosen.
    ?assertEqual([Node], attr:choose_nodes([Node, 'none@127.0.0.1'], {})),
    ?assertEqual({error, {node_not_found, 'none@127.0.0.1'}}, attr:request_attrs([Node, 'none@127.0.0.1'], db)).

wire() ->
    ok = attr:start(),
    Node = node(),
    ok = attr:insert(speed, 1),
    Key = make_ref(),
    attr_server ! {self(), {report, Key, speed}},
    ?assertEqual({attr_vals, Key, Node, [{speed, 1}]}, heard()),
    attr_server ! {self(), {report, Key, [speed, nothing]}},
    ?assertEqual({attr_vals, Key, Node, [{speed, 1}, {nothing, undefined}]}, heard()),
    attr_server ! {self(), dance},
    ?assertEqual({unknown_action, Node, dance}, heard()),
    attr_server ! rubbish,
    ok = gen_server:cast(attr_server, rubbish),
    ?assertEqual({error, unknown_call}, gen_server:call(attr_server, rubbish, ?WAIT_MS)),
    Ref = erlang:monitor(process, attr_server),
    attr_server ! stop,
    ?assertMatch({'DOWN', Ref, process, _, normal}, heard()).

heard() ->
    receive
        Message -> Message
    after ?WAIT_MS -> error(silence)
    end.
