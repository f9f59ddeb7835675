%% SPDX-License-Identifier: Apache-2.0
%% What is put into a node that is watched: that it says what the table has, and that it leaves nothing.
-module(atoll_watch_agent_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    it_leaves_a_node_as_it_was/1,
    it_goes_though_one_before_it_was_killed/1,
    it_goes_when_its_watcher_is_killed/1,
    it_goes_when_its_watcher_is_killed_before_it_asks/1,
    it_goes_when_the_connection_is_lost/1,
    it_stays_for_another_watcher/1,
    one_of_another_version_is_left_alone/1,
    it_sees_what_is_logged_and_what_waits/1,
    it_takes_some_texts_and_counts_the_others/1,
    a_flood_of_events_costs_who_logs_little/1,
    a_supervisor_that_gives_up_is_told/1,
    what_logs_harm_nobody/1,
    it_says_what_the_table_has/1,
    modules_are_told_to_who_does_not_know_them/1,
    an_application_that_hangs_costs_its_own_readings/1
]).

-import(atoll_watch_peers, [call/4, known/1, await/2]).

-define(ANSWER_MS, 20000).

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [it_leaves_a_node_as_it_was, it_goes_though_one_before_it_was_killed, it_goes_when_its_watcher_is_killed, it_goes_when_its_watcher_is_killed_before_it_asks, it_goes_when_the_connection_is_lost, it_stays_for_another_watcher, one_of_another_version_is_left_alone,
     it_sees_what_is_logged_and_what_waits, it_takes_some_texts_and_counts_the_others, a_flood_of_events_costs_who_logs_little, a_supervisor_that_gives_up_is_told,
     what_logs_harm_nobody, it_says_what_the_table_has, modules_are_told_to_who_does_not_know_them, an_application_that_hangs_costs_its_own_readings].

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
sample(Watcher, Node) -> sample(Watcher, Node, none).

sample(Watcher, Node, Has) ->
    {ok, Sample, Ms} = call(Watcher, atoll_watch_node, sample, [Node, call(Watcher, erlang, whereis, [init]), Has, ?ANSWER_MS]),
    ?assert(Ms > 0),
    Sample.

leave(Watcher, Node) ->
    ok = call(Watcher, atoll_watch_node, leave, [Node, call(Watcher, erlang, whereis, [init]), ?ANSWER_MS]).

is_there(Peer) ->
    is_pid(call(Peer, erlang, whereis, [atoll_watch_agent])) andalso maps:get(filters, known(Peer)) =:= [atoll_watch_agent]
        andalso call(Peer, erlang, module_loaded, [atoll_watch_agent]).

%% What is otherwise now.
is_as(Before, Peer) ->
    await(fun() -> Now = known(Peer), [{Key, Was, map_get(Key, Now)} || {Key, Was} <- maps:to_list(Before), map_get(Key, Now) =/= Was] end, fun(Others) -> Others =:= [] end).

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

%% The code of the one before is old code then.
it_goes_though_one_before_it_was_killed(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    Before = known(Peer),
    _ = sample(watcher(Config), Node),
    Killed = call(Peer, erlang, whereis, [atoll_watch_agent]),
    true = call(Peer, erlang, exit, [Killed, kill]),
    Lost = await(fun() -> call(Peer, erlang, whereis, [atoll_watch_agent]) end, fun(Is) -> Is =/= Killed end),
    ?assertEqual(undefined, Lost),
    _ = sample(watcher(Config), Node),
    ok = leave(watcher(Config), Node),
    is_as(Before, Peer).

%% The answer may have been lost, so it is the watcher that says what it knows.
modules_are_told_to_who_does_not_know_them(Config) ->
    [{_, Node} | _] = watched(Config),
    %% Facts may be too late for a look.
    Told = fun(Has) ->
        #{facts := #{modules := Modules, code := Code}} = await(fun() -> sample(watcher(Config), Node, Has) end, fun(#{facts := Facts}) -> Facts =/= none end),
        {Modules, Code}
    end,
    {[_ | _] = Modules, Code} = Told(none),
    ?assertEqual([{Modules, Code}, {same, Code}, {Modules, Code}, {Modules, Code}], [Told(Has) || Has <- [none, Code, Code + 1, none]]),
    ok = leave(watcher(Config), Node).

it_goes_when_its_watcher_is_killed(Config) ->
    Other = atoll_watch_peers:watcher(),
    [{_, Node} = Peer | _] = watched(Config),
    Before = known(Peer),
    _ = sample(Other, Node),
    ?assert(is_there(Peer)),
    ok = atoll_watch_peers:kill(Other),
    is_as(Before, Peer).

it_goes_when_its_watcher_is_killed_before_it_asks(Config) ->
    {_, Name} = Other = atoll_watch_peers:watcher(),
    [{_, Node} = Peer | _] = watched(Config),
    Before = known(Peer),
    true = call(Other, net_kernel, connect_node, [Node]),
    Code = atoll_view_put:code(atoll_watch_agent:modules()),
    ok = call(watcher(Config), atoll_view_put, put, [Node, Code, atoll_watch_agent, call(Other, erlang, whereis, [init]), ?ANSWER_MS]),
    ?assert(is_there(Peer)),
    ?assert(lists:member(Name, call(Peer, erlang, nodes, [connected]))),
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
    Others = atoll_watch_agent:modules() -- [atoll_watch_agent],
    [{module, Module} = call(Peer, code, load_binary, [Module, "other", element(2, code:get_object_code(Module))]) || Module <- Others],
    Version = [Module:module_info(md5) || Module <- Others] ++ [Md5],
    {module, atoll_watch_agent} = call(Peer, code, load_binary, [atoll_watch_agent, "other", Code]),
    Init = call(Peer, erlang, whereis, [init]),
    ok = call(Peer, atoll_watch_agent, start, [atoll_view_put:guest(Init, atoll_watch_agent:modules())]),
    _ = call(Peer, erlang, send, [atoll_watch_agent, {atoll_watch_agent, make_ref(), {sample, Init, Version, none}}]),
    {error, {refused, Sentence}} = call(watcher(Config), atoll_watch_node, sample, [Node, call(watcher(Config), erlang, whereis, [init]), none, ?ANSWER_MS]),
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

texts(#{log := Log}) -> [{Level, Text} || {Ago, Level, Text} <- Log, Ago >= 0, Ago < 60000].

it_takes_some_texts_and_counts_the_others(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    ?assertEqual([], texts(sample(watcher(Config), Node))),
    ok = call(Peer, logger, error, ["desk ~ts is ~p", ["seven", on_fire]]),
    ok = call(Peer, logger, notice, ["nothing to see"]),
    [ok = call(Peer, logger, warning, ["warned ~b", [N]]) || N <- lists:seq(1, 25)],
    Sample = sample(watcher(Config), Node),
    ?assertEqual([{error, <<"desk seven is on_fire">>} | [{warning, <<"warned ", (integer_to_binary(N))/binary>>} || N <- lists:seq(1, 10)]], texts(Sample)),
    ?assertEqual([15, 25, 1], [value(Key, Sample) || Key <- [log_left_out, {log_events, warning}, {log_events, error}]]),
    %% There is room again, and nothing is told twice.
    ok = call(Peer, logger, warning, ["again"]),
    ?assertEqual([{warning, <<"again">>}], texts(sample(watcher(Config), Node))),
    %% Another watcher is told from when it comes on; each is told all.
    Other = atoll_watch_peers:watcher(),
    ?assertEqual([], texts(sample(Other, Node))),
    ok = call(Peer, logger, critical, ["for both"]),
    [?assertEqual([{critical, <<"for both">>}], texts(sample(Watcher, Node))) || Watcher <- [Other, watcher(Config)]],
    ok = leave(Other, Node),
    ok = atoll_watch_peers:kill(Other),
    ok = leave(watcher(Config), Node).

%% What it costs is of the node's processor time, which other work on this machine does not change much. Nobody else handles the events, as no
%% handler of OTP's could take so many.
a_flood_of_events_costs_who_logs_little(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    Handled = unhandled(Peer),
    %% What is logged in half a second.
    Events = 50000,
    Flood = fun() ->
        Begun = runtime(Peer),
        _ = call(Peer, lists, foreach, [fun logger:error/1, lists:duplicate(Events, "x")]),
        (runtime(Peer) - Begun) / Events
    end,
    Rounds = [begin
        Without = Flood(),
        Before = value({log_events, error}, sample(watcher(Config), Node)),
        With = Flood(),
        Sample = sample(watcher(Config), Node),
        ?assertEqual(Events, value({log_events, error}, Sample) - Before),
        ?assertEqual(Events - 10, value(log_left_out, Sample)),
        ?assertEqual(10, length(texts(Sample))),
        ok = leave(watcher(Config), Node),
        _ = await(fun() -> call(Peer, erlang, module_loaded, [atoll_watch_agent]) end, fun(Is) -> not Is end),
        {Without, With}
    end || _ <- [1, 2, 3]],
    ok = handled(Peer, Handled),
    Added = lists:sort([With - Without || {Without, With} <- Rounds]),
    Median = lists:nth(2, Added),
    ct:pal("an event costs ~p us without; the agent adds ~p us, median ~p: at 100,000 a second ~.2f % of one scheduler",
           [[Without || {Without, _} <- Rounds], Added, Median, Median * 100000 / 1.0e4]),
    %% A few tenths as a rule, and more where other work takes the caches. To write each text would add ten and more.
    ?assert(Median < 3.0, Added).

%% No handler writes events, until handled/2.
unhandled(Peer) ->
    {ok, Handler} = call(Peer, logger, get_handler_config, [default]),
    ok = call(Peer, logger, remove_handler, [default]),
    Handler.

handled(Peer, #{module := Default} = Handler) -> call(Peer, logger, add_handler, [default, Default, Handler]).

%% Microseconds.
runtime(Peer) -> element(1, call(Peer, erlang, statistics, [runtime])) * 1000.

a_supervisor_that_gives_up_is_told(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    _ = sample(watcher(Config), Node),
    {ok, Brief} = call(Peer, supervisor, start_child, [kernel_safe_sup, #{id => brief, start => {gen_event, start_link, []}}]),
    true = call(Peer, erlang, exit, [Brief, kill]),
    Ended = await(fun() -> value({supervisor_ended, <<"kernel_safe_sup">>}, sample(watcher(Config), Node)) end, fun(N) -> N =/= none end),
    ?assertEqual(1, Ended),
    ?assertEqual(0, value({supervisor_gave_up, <<"kernel_safe_sup">>}, sample(watcher(Config), Node))),
    ok = call(Peer, supervisor, terminate_child, [kernel_safe_sup, brief]),
    ok = call(Peer, supervisor, delete_child, [kernel_safe_sup, brief]),
    %% As a supervisor says that it gives up.
    Report = #{label => {supervisor, shutdown}, report => [{supervisor, {local, shop_sup}}, {errorContext, shutdown}, {reason, reached_max_restart_intensity}, {offender, []}]},
    ok = call(Peer, logger, error, [Report]),
    ?assertEqual(1, value({supervisor_gave_up, <<"shop_sup">>}, sample(watcher(Config), Node))),
    ok = leave(watcher(Config), Node).

%% Formats that do not fit, a formatter of a user, and what is larger than anybody would write. Who logs goes on, and the filter stays. OTP's
%% handler would write all of it, for as long as it takes.
what_logs_harm_nobody(Config) ->
    [{_, Node} = Peer | _] = watched(Config),
    Handled = unhandled(Peer),
    _ = sample(watcher(Config), Node),
    Huge = binary:copy(<<"x">>, 1000000),
    [ok = call(Peer, logger, error, Args) || Args <- [["~p ~p", [one]], ["~1000000c", [$x]], ["~ts", [Huge]], ["~ts", [<<255, 254>>]], [#{state => lists:seq(1, 50000), why => Huge}]]],
    ok = call(Peer, logger, error, [#{a => b}, #{report_cb => fun erlang:error/1}]),
    Sample = sample(watcher(Config), Node),
    ?assertEqual(6, length(texts(Sample))),
    [?assert(string:length(Text) =< 1000) || {_, Text} <- texts(Sample)],
    ?assertMatch({error, <<"#{a => b}">>}, lists:last(texts(Sample))),
    ?assert(is_there(Peer)),
    ok = leave(watcher(Config), Node),
    ok = handled(Peer, Handled).

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
    Dump = filename:join(proplists:get_value(priv_dir, Config), "erl_crash.dump"),
    ok = file:write_file(Dump, "=erl_crash_dump:0.5\n"),
    true = call(Peer, os, putenv, ["ERL_CRASH_DUMP", Dump]),
    %% As a program there has them.
    Metrics = [{orders, counter}, {stock, gauge}, {visits, meter}, {waits, histogram}],
    [ok = call(Peer, atoll_metric, new, [Name, Kind]) || {Name, Kind} <- Metrics],
    [ok = call(Peer, atoll_metric, F, [Name, N]) || {F, Name, N} <- [{add, orders, 3}, {set, stock, 1.5}, {add, visits, 2}, {record, waits, 100}]],
    ok = call(Peer, logger, error, [#{label => {supervisor, child_terminated}, report => [{supervisor, {local, shop_sup}}, {errorContext, child_terminated}, {reason, shutdown}, {offender, []}]}]),
    %% What only the carrier knows, which the node does not speak over, and what is not installed. On a busy machine an application may be
    %% too late for a look.
    Not = ["atoll_relay_", "atoll_round_trip" | ["os_" || os_mon() =:= []]],
    Lacks = fun(Sample) ->
        Has = lists:usort([case Key of {Name, _} -> Name; Name -> Name end || Key <- maps:keys(atoll_watch_metric:readings(First, Sample))]),
        [Name || Name <- maps:keys(Table) -- Has, not lists:any(fun(Part) -> lists:prefix(Part, atom_to_list(Name)) end, Not)]
    end,
    #{readings := Raw} = Second = await(fun() -> sample(watcher(Config), Node) end, fun(Sample) -> Lacks(Sample) =:= [] end),
    %% No name is unknown, and none has a label that has none, or the other way round.
    [?assertEqual({Reading, true}, {Reading, case maps:find(element(1, Reading), Table) of
        {ok, none} -> tuple_size(Reading) =:= 2;
        {ok, _} -> tuple_size(Reading) =:= 3;
        error -> false
    end}) || Reading <- Raw],
    Readings = atoll_watch_metric:readings(First, Second),
    ?assertEqual([Stock], maps:get(peers, Second)),
    [?assert(Value >= 0, {Key, Value}) || {Key, Value} <- maps:to_list(Readings), Key =/= clock_offset],
    %% Of one machine there is one clock.
    ?assert(abs(maps:get(clock_offset, Readings)) =< maps:get(clock_uncertainty, Readings) + 1, Readings),
    ?assert(maps:get(utilisation, Readings) =< 1),
    ?assert(maps:get({dist_in, Stock}, Readings) > 0),
    ?assertEqual(call(Peer, erlang, system_info, [process_limit]), maps:get(processes_limit, Readings)),
    ?assertMatch(#{{user_counter, <<"orders">>} := 3, {user_gauge, <<"stock">>} := 1.5, {user_counter, <<"visits">>} := 2, {user_counter, <<"waits">>} := 1, {user_p99, <<"waits">>} := 100}, Readings),
    [ok = call(Peer, atoll_metric, delete, [Name]) || {Name, _} <- Metrics],
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
    %% On a busy machine an application that does not hang may be too late for a look.
    Of = fun(Key) -> await(fun() -> Sample = sample(watcher(Config), Node), {value(Key, Sample), Sample} end, fun({Is, _}) -> Is =/= none end) end,
    {0, _} = Of(atoll_groups),
    ok = call(Peer, sys, suspend, [atoll_name]),
    {1, Sample} = Of(mnesia_nodes),
    ?assertEqual(none, value(atoll_groups, Sample)),
    ok = call(Peer, sys, resume, [atoll_name]),
    {0, _} = Of(atoll_groups).
