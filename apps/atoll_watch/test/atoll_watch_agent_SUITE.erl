%% SPDX-License-Identifier: Apache-2.0
%% What is put into a node that is watched: that it says what the table has, and that it leaves nothing.
-module(atoll_watch_agent_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    it_leaves_a_node_as_it_was/1,
    it_goes_when_its_watcher_is_killed/1,
    it_goes_when_the_connection_is_lost/1,
    it_stays_for_another_watcher/1,
    one_of_another_version_is_left_alone/1,
    it_sees_what_is_logged_and_what_waits/1,
    it_says_what_the_table_has/1,
    an_application_that_hangs_costs_its_own_readings/1
]).

-import(atoll_watch_peers, [call/4, known/1, await/2]).

-define(ANSWER_MS, 20000).

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [it_leaves_a_node_as_it_was, it_goes_when_its_watcher_is_killed, it_goes_when_the_connection_is_lost, it_stays_for_another_watcher, one_of_another_version_is_left_alone,
     it_sees_what_is_logged_and_what_waits, it_says_what_the_table_has, an_application_that_hangs_costs_its_own_readings].

%% One in each mode, one with all that an agent knows to ask, and one that watches. The first connection loads OTP's modules for it.
init_per_suite(Config) ->
    {Holder, Peers} = atoll_watch_peers:start(fun() ->
        Watched = [atoll_watch_peers:watched(Args) || Args <- [[], ["-mode", "embedded"]]],
        {Watched, atoll_watch_peers:watcher(), atoll_watch_peers:watched([])}
    end),
    {Watched, Watcher, Full} = Peers,
    _ = [call(Watcher, erpc, call, [Node, erlang, node, []]) || {_, Node} <- Watched],
    ok = call(Full, code, add_paths, [[filename:dirname(code:which(atoll))]]),
    [{ok, _} = call(Full, application, ensure_all_started, [App]) || App <- [mnesia, atoll | os_mon()]],
    [{holder, Holder}, {peers, Peers} | Config].

end_per_suite(Config) ->
    atoll_watch_peers:stop(proplists:get_value(holder, Config)).

watched(Config) -> element(1, proplists:get_value(peers, Config)).

watcher(Config) -> element(2, proplists:get_value(peers, Config)).

full(Config) -> element(3, proplists:get_value(peers, Config)).

%% The process that is there as long as its node is.
sample(Watcher, Node) ->
    {ok, Sample, Ms} = call(Watcher, atoll_watch_node, sample, [Node, call(Watcher, erlang, whereis, [init]), ?ANSWER_MS]),
    ?assert(Ms > 0),
    Sample.

leave(Watcher, Node) ->
    ok = call(Watcher, atoll_watch_node, leave, [Node, call(Watcher, erlang, whereis, [init]), ?ANSWER_MS]).

is_there(Peer) ->
    is_pid(call(Peer, erlang, whereis, [atoll_watch_agent])) andalso lists:member(atoll_watch_agent, call(Peer, logger, get_handler_ids, []))
        andalso call(Peer, erlang, module_loaded, [atoll_watch_agent]).

is_as(Before, Peer) -> await(fun() -> known(Peer) end, fun(Now) -> Now =:= Before end).

it_leaves_a_node_as_it_was(Config) ->
    [
        begin
            Before = known(Peer),
            ?assertMatch(#{counting := false, old := false}, Before),
            _ = sample(watcher(Config), Node),
            _ = sample(watcher(Config), Node),
            ?assert(is_there(Peer)),
            ?assertMatch(#{counting := true}, known(Peer)),
            ok = leave(watcher(Config), Node),
            is_as(Before, Peer)
        end
     || {_, Node} = Peer <- watched(Config), _ <- [once, again]
    ].

it_goes_when_its_watcher_is_killed(Config) ->
    Other = atoll_watch_peers:watcher(),
    [{_, Node} = Peer | _] = watched(Config),
    Before = known(Peer),
    _ = sample(Other, Node),
    ?assert(is_there(Peer)),
    ok = atoll_watch_peers:kill(Other),
    is_as(Before, Peer).

it_goes_when_the_connection_is_lost(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    Before = known(Peer),
    _ = sample(watcher(Config), Node),
    true = call(watcher(Config), erlang, disconnect_node, [Node]),
    is_as(Before, Peer).

it_stays_for_another_watcher(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    Other = atoll_watch_peers:watcher(),
    Before = known(Peer),
    #{life := Life} = sample(watcher(Config), Node),
    Agent = call(Peer, erlang, whereis, [atoll_watch_agent]),
    #{life := Life} = sample(Other, Node),
    ok = atoll_watch_peers:kill(Other),
    %% It has seen that when it does not know the other one any more.
    await(fun() -> call(Peer, erlang, process_info, [Agent, monitors]) end, fun({monitors, Monitors}) -> length(Monitors) =:= 1 end),
    _ = sample(watcher(Config), Node),
    ?assertEqual(Agent, call(Peer, erlang, whereis, [atoll_watch_agent])),
    ok = leave(watcher(Config), Node),
    is_as(Before, Peer).

%% Another program put it there, and goes on with it.
one_of_another_version_is_left_alone(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    Before = known(Peer),
    {Code, Md5} = another_version(),
    {module, atoll_watch_agent} = call(Peer, code, load_binary, [atoll_watch_agent, "other", Code]),
    ok = call(Peer, atoll_watch_agent, start, []),
    Init = call(Peer, erlang, whereis, [init]),
    _ = call(Peer, erlang, send, [atoll_watch_agent, {atoll_watch_agent, make_ref(), {sample, Init, Md5}}]),
    {error, {refused, Sentence}} = call(watcher(Config), atoll_watch_node, sample, [Node, call(watcher(Config), erlang, whereis, [init]), ?ANSWER_MS]),
    ?assertMatch({match, _}, re:run(Sentence, " cannot be watched: another version of this program watches it")),
    ?assertEqual(Md5, call(Peer, atoll_watch_agent, module_info, [md5])),
    _ = call(Peer, erlang, send, [atoll_watch_agent, {atoll_watch_agent, make_ref(), {leave, Init}}]),
    is_as(Before, Peer).

another_version() ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(atoll_watch_agent), [abstract_code]),
    {Before, [Module | After]} = lists:splitwith(fun(Form) -> not is_tuple(Form) orelse element(3, Form) =/= module end, Forms),
    More = {function, 1, more, 0, [{clause, 1, [], [], [{atom, 1, yes}]}]},
    {ok, _, Code} = compile:forms(Before ++ [Module, {attribute, 1, export, [{more, 0}]} | lists:droplast(After)] ++ [More, lists:last(After)], [binary]),
    {ok, {_, Md5}} = beam_lib:md5(Code),
    {Code, Md5}.

value(Key, #{readings := Readings}) ->
    case [Value || Reading <- Readings, {K, Value} <- [case Reading of {N, V} -> {N, V}; {N, L, V} -> {{N, L}, V} end], K =:= Key] of
        [Value] -> Value;
        [] -> none
    end.

it_sees_what_is_logged_and_what_waits(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    ?assertEqual(0, value({log_events, error}, sample(watcher(Config), Node))),
    [ok = call(Peer, logger, Level, ["said"]) || Level <- [error, error, warning]],
    %% It reads nothing of what it is sent.
    Sleeper = call(Peer, erlang, spawn, [timer, sleep, [infinity]]),
    [call(Peer, erlang, send, [Sleeper, N]) || N <- lists:seq(1, 7)],
    true = call(Peer, erlang, register, [sleeper, Sleeper]),
    Sample = sample(watcher(Config), Node),
    ?assertEqual([2, 1, 0], [value({log_events, Level}, Sample) || Level <- [error, warning, alert]]),
    ?assertEqual([7, 7], [value(Key, Sample) || Key <- [mailbox_longest, {mailbox, <<"sleeper">>}]]),
    ?assert(value(mailbox_messages, Sample) >= 7),
    true = call(Peer, erlang, exit, [Sleeper, kill]),
    ok = leave(watcher(Config), Node).

%% Of the one with all that it knows to ask, connected with another one.
it_says_what_the_table_has(Config) ->
    {_, Node} = Peer = full(Config),
    [{_, Stock} | _] = watched(Config),
    true = call(Peer, net_kernel, connect_node, [Stock]),
    %% Longest mailbox: somebody has messages.
    Sleeper = call(Peer, erlang, spawn, [timer, sleep, [infinity]]),
    _ = call(Peer, erlang, send, [Sleeper, one]),
    Table = maps:from_list([{Name, Label} || #{name := Name, label := Label} <- atoll_watch_metric:all()]),
    First = sample(watcher(Config), Node),
    Second = await(fun() -> sample(watcher(Config), Node) end, fun(Sample) -> is_map_key(utilisation, atoll_watch_metric:readings(First, Sample)) end),
    #{readings := Raw} = Second,
    %% No name is unknown, and none has a label that has none, or the other way round.
    [?assertEqual({Reading, true}, {Reading, case maps:find(element(1, Reading), Table) of
        {ok, none} -> tuple_size(Reading) =:= 2;
        {ok, _} -> tuple_size(Reading) =:= 3;
        error -> false
    end}) || Reading <- Raw],
    Readings = atoll_watch_metric:readings(First, Second),
    Said = lists:usort([case Key of {Name, _} -> Name; Name -> Name end || Key <- maps:keys(Readings)]),
    %% What only the carrier knows, which the node does not speak over, and what is not installed.
    Not = ["atoll_relay_", "atoll_round_trip" | ["os_" || os_mon() =:= []]],
    ?assertEqual([], [Name || Name <- maps:keys(Table) -- Said, not lists:any(fun(Part) -> lists:prefix(Part, atom_to_list(Name)) end, Not)]),
    ?assertEqual([Stock], maps:get(peers, Second)),
    [?assert(Value >= 0, {Key, Value}) || {Key, Value} <- maps:to_list(Readings)],
    ?assert(maps:get(utilisation, Readings) =< 1),
    ?assert(maps:get({dist_in, Stock}, Readings) > 0),
    ?assertEqual(call(Peer, erlang, system_info, [process_limit]), maps:get(processes_limit, Readings)),
    #{reductions := Rate} = atoll_watch_metric:rates(First, Second),
    ?assert(Rate > 0).

%% A part of OTP that Debian packages alone.
os_mon() ->
    case code:lib_dir(os_mon) of
        {error, bad_name} -> [];
        _ -> [os_mon]
    end.

an_application_that_hangs_costs_its_own_readings(Config) ->
    {_, Node} = Peer = full(Config),
    ?assertEqual(0, value(atoll_groups, sample(watcher(Config), Node))),
    ok = call(Peer, sys, suspend, [atoll_name]),
    Sample = sample(watcher(Config), Node),
    ?assertEqual(none, value(atoll_groups, Sample)),
    ?assertEqual(1, value(mnesia_nodes, Sample)),
    ok = call(Peer, sys, resume, [atoll_name]),
    ?assertEqual(0, value(atoll_groups, sample(watcher(Config), Node))).
