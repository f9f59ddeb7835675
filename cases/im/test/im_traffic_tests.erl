%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs of traffic on this node with a messenger that keeps its promise, or breaks it: the
%% clients are the real ones, and the history finds it.
-module(im_traffic_tests).

-include_lib("eunit/include/eunit.hrl").

-define(S, 60).

traffic_test_() ->
    [
        {Promise, {timeout, ?S, Test}}
     || {Promise, Test} <- [
            {"the paper's conversations, faster: all that is sent is received and delivered", fun conversations/0},
            {"a closed loop with a window", fun closed/0},
            {"an open loop says what it is to say", fun open/0},
            {"a promise that is broken is found, by its kind", fun broken/0},
            {"a name that two processes have at a time is found", fun rivals/0},
            {"the files of the loggers add up to what was done", fun files/0},
            {"a run that is stopped is drained all the same", fun stopped/0},
            {"a client that stands still when all are to stop says nothing in a conversation that was finished meanwhile", fun still/0},
            {"a result is there whenever it is asked for, and its clients are gone before", fun result/0},
            {"a run ends with its caller, and its clients with it", fun caller/0},
            {"clients that cannot log in are told of", fun no_login/0},
            {"the end of a node's traffic is said alike, whether the run waits for its answer or not", fun ended/0},
            {"each option that is wrong is one sentence", fun options/0}
        ]
    ].

options(Mode, More) ->
    maps:merge(
        #{
            client_nodes => [node()], routers => [node()], routers_per_node => 1, clients => 20, mode => Mode, ms => 300, ramp_ms => 100,
            drain_ms => 20000, seed => atoll_tier:seed(?MODULE)
        },
        More
    ).

with(Fault, Test) ->
    Toy = im_toy:start_link(Fault),
    try
        Test()
    after
        Ref = monitor(process, Toy),
        Toy ! stop,
        receive {'DOWN', Ref, process, Toy, _} -> ok end
    end.

run(Fault, Options) ->
    with(Fault, fun() ->
        {ok, Result} = im_traffic:run(Options),
        Result
    end).

is_whole(#{total := #{sent := Sent, received := Received, delivered := Delivered}, history := History} = Result) ->
    #{messages := Told, counts := Counts, logins := Logins} = History,
    ?assertEqual({#{}, Sent, Sent, Sent}, {Counts, Received, Delivered, Told}),
    ?assert(Sent > 0),
    ?assertMatch(#{is_drained := true, conversations := #{running := 0}, clients := #{refused := 0, died := 0}}, Result),
    ?assertEqual(maps:get(logins, Result), Logins).

conversations() ->
    %% Until there must have been more than those of the ten pairs, which have six messages at most.
    Result = with(none, fun() ->
        {ok, Run} = im_traffic:start(options(paper, #{time_scale => 1000, messages => {3, 6}, ms => 3600000})),
        ok = until(fun() -> maps:get(delivered, im_traffic:look(Run)) > 10 * 6 end),
        {ok, Stopped} = im_traffic:stop(Run),
        Stopped
    end),
    is_whole(Result),
    #{conversations := #{'begun' := Begun, ended := #{finished := Finished}}, logins := 20} = Result,
    %% Those that had ended were replaced.
    ?assert(Begun > 10),
    ?assertEqual(Begun, Finished).

closed() ->
    Result = run(none, options(closed, #{window => 4, messages => {13, 60}})),
    is_whole(Result),
    #{delivered := Delivered, latency := Latency, seconds := Seconds, delivered_per_minute := PerMinute} = Result,
    ?assert(Delivered > 0),
    ?assert(abs(PerMinute - Delivered * 60 / Seconds) < 1),
    %% Some of the first were sent before the measured time, and some of the last delivered after it.
    ?assert(abs(atoll_histogram:count(Latency) - Delivered) =< 4 * 10 + Delivered div 10).

open() ->
    #{sent := Sent, shed := Shed, seconds := Seconds, latency := Latency} = Result = run(none, options(open, #{rate => 1000, arrivals => even, ms => 500})),
    is_whole(Result),
    %% What was to be said about when the time began or ended may be on either side. On a busy machine it lasts for longer.
    ?assertEqual(0, Shed),
    [?assert(abs(N - 1000 * Seconds) < 250, {N, Seconds}) || N <- [Sent, atoll_histogram:count(Latency)]].

broken() ->
    Found = fun(Fault, Options) -> maps:keys(maps:get(counts, maps:get(history, run(Fault, Options)))) end,
    %% What is lost is waited for in vain; all else comes, and then it ends.
    Whole = options(open, #{rate => 2000, ms => 100}),
    Monologue = Whole#{drain_ms := 200},
    ?assertEqual([gap, lost], Found({lose, 7}, Monologue) -- [undelivered]),
    ?assertEqual([twice], Found({repeat, 7}, Whole)),
    ?assert(lists:member(disorder, Found({swap, 7}, Monologue))),
    ?assertEqual([altered], Found({alter, 7}, Whole)),
    %% The first that is lost in a dialogue stops it.
    ?assert(lists:member(lost, Found({lose, 10}, options(closed, #{ms => 100, drain_ms => 200})))).

an_open_loop_has_its_rate_evenly_or_by_chance_test() ->
    Gaps = fun(Arrivals) ->
        Options = #{rate => 500, arrivals => Arrivals, seed => 1},
        {Times, _} = lists:mapfoldl(
            fun(_, {At, R0}) -> {Next, R} = im_pacer:next(At, Options, R0), {Next - At, {Next, R}} end,
            {0, rand:seed_s(exsss, 1)},
            lists:seq(1, 10000)
        ),
        Times
    end,
    ?assertEqual([2000.0], lists:usort([float(round(Gap)) || Gap <- Gaps(even)])),
    Poisson = Gaps(poisson),
    %% Mean and deviation of an exponential distribution are the same.
    Mean = lists:sum(Poisson) / 10000,
    Deviation = math:sqrt(lists:sum([(G - Mean) * (G - Mean) || G <- Poisson]) / 10000),
    [?assert(abs(X - 2000) < 100) || X <- [Mean, Deviation]].

rivals() ->
    Options = options(paper, #{time_scale => 1000, rivals => 50, ms => 500}),
    #{clients := #{rivals := Rivals, rivals_refused := Refused}} = Good = run(none, Options),
    is_whole(Good),
    ?assert(Rivals > 0),
    ?assertEqual(Rivals, Refused),
    #{history := #{counts := #{two_logins := _}}} = run(generous, Options).

files() ->
    Dir = atoll_test_file:temporary("traffic"),
    Log = #{dir => Dir, technology => "TOY", servers => 1, seconds => 1, trials => 2, latency => true},
    #{windows := [{1, Windows}]} = Result = run(none, options(closed, #{log => Log, ms => 2300})),
    is_whole(Result),
    Read = fun(Name) ->
        {ok, Text} = file:read_file(filename:join(Dir, Name)),
        binary:split(Text, <<"\n">>, [global, trim])
    end,
    Rows = [binary:split(Row, <<",">>, [global]) || Row <- Read("TOY_Throughput_1_1_20_Node_1.csv")],
    ?assertMatch([[<<"2">>, _, _, <<"10000">>, _, _, _, _, _], [<<"1">>, _, _, _, _, _, _, _, _]], Rows),
    ?assertEqual([[integer_to_binary(N) || N <- [S, R, D, B]] || #{sent := S, received := R, delivered := D, below := B} <- Windows], [lists:sublist(Row, 5, 4) || Row <- Rows]),
    Latencies = Read("TOY_Latency_1_1_20_Node_1_1.csv"),
    #{delivered := InFirst} = hd(Windows),
    %% Clients hear of the log one after the other when the window has begun.
    ?assert(length(Latencies) > min(10000, InFirst) div 2),
    ?assert(length(Latencies) =< 10000),
    ?assertMatch([_, _, <<"chat_session_tc", _/binary>>, _, _, _], binary:split(hd(Latencies), <<",">>, [global])),
    [_ | _] = Read("TOY_Throughput_1_1_20_Summary.txt").

stopped() ->
    with(none, fun() ->
        {ok, Run} = im_traffic:start(options(closed, #{ms => 3600000})),
        ok = until(fun() -> maps:get(delivered, im_traffic:look(Run)) > 0 end),
        {ok, Result} = im_traffic:stop(Run),
        is_whole(Result)
    end).

still() ->
    with(none, fun() ->
        {ok, Run} = im_traffic:start(options(paper, #{clients => 200, time_scale => 1000, messages => {1000, 1000}, ms => 3600000})),
        ok = until(fun() -> maps:get(delivered, im_traffic:look(Run)) > 0 end),
        {links, Clients} = process_info(traffic(Run), links),
        {Half, _} = lists:split(length(Clients) div 2, Clients),
        Self = self(),
        Holder = spawn_link(fun() ->
            _ = [true = erlang:suspend_process(Client) || Client <- Half],
            Self ! held,
            %% Longer than a run waits for more to be delivered.
            receive stopping -> receive after 3000 -> ok end end
        end),
        Ref = monitor(process, Holder),
        receive held -> ok end,
        %% Each is about to say something, or waits for the other, that does. Among ten there is one whose conversation another finishes.
        ok = until(fun() -> length([Client || Client <- Half, {messages, Messages} <- [process_info(Client, messages)], {im_doped, {next, _, _, _}} <- Messages]) > 10 end),
        Holder ! stopping,
        {ok, Result} = im_traffic:stop(Run),
        receive {'DOWN', Ref, process, Holder, normal} -> ok end,
        is_whole(Result)
    end).

result() ->
    with(none, fun() ->
        Before = length(processes()),
        {ok, Run} = im_traffic:start(options(closed, #{ms => 50})),
        ok = until(fun() -> length(processes()) =< Before + 1 andalso im_traffic:look(Run) =:= #{} end),
        {ok, Result} = im_traffic:await(Run),
        is_whole(Result),
        {ok, Failed} = im_traffic:start(options(closed, #{clients => 1, login_ms => 1, log => #{dir => "/nowhere/\0", technology => "", servers => 1, seconds => 1, trials => 1}})),
        ok = until(fun() -> length(processes()) =< Before + 1 andalso im_traffic:look(Failed) =:= #{} end),
        {error, _} = im_traffic:await(Failed)
    end).

caller() ->
    with(none, fun() ->
        Before = length(processes()),
        Self = self(),
        {Caller, _} = spawn_monitor(fun() ->
            {ok, Run} = im_traffic:start(options(closed, #{ms => 3600000})),
            ok = until(fun() -> maps:get(delivered, im_traffic:look(Run)) > 0 end),
            Self ! going,
            receive after infinity -> ok end
        end),
        receive going -> ok after 1000 * ?S -> error(timeout) end,
        true = exit(Caller, kill),
        ok = until(fun() -> length(processes()) =< Before end)
    end).

no_login() ->
    ?assertEqual({error, {login, 0, 20}}, im_traffic:run(options(closed, #{login_ms => 200}))).

ended() ->
    [
        with(none, fun() ->
            {ok, Run} = im_traffic:start(options(closed, #{ms => 3600000})),
            ok = until(fun() -> maps:get(delivered, im_traffic:look(Run)) > 0 end),
            Traffic = traffic(Run),
            ok = Before(Run, Traffic),
            true = exit(Traffic, kill),
            ?assertEqual({Title, {error, {node, node(), killed}}}, {Title, im_traffic:await(Run)})
        end)
     || {Title, Before} <- [{idle, fun(_, _) -> ok end}, {asking, fun asking/2}]
    ].

%% The process of its clients' node. A second monitor is that of a call which has just been answered.
traffic(Run) ->
    {monitors, Monitors} = process_info(Run, monitors),
    [Traffic] = lists:usort([Pid || {process, Pid} <- Monitors, proc_lib:translate_initial_call(Pid) =:= {im_traffic_node, init, 1}]),
    Traffic.

%% The run waits for an answer that does not come.
asking(Run, Traffic) ->
    true = erlang:suspend_process(Traffic),
    _ = spawn(fun() -> im_traffic:look(Run) end),
    until(fun() ->
        {messages, Messages} = process_info(Traffic, messages),
        lists:any(fun(Message) -> is_tuple(Message) andalso element(1, Message) =:= '$gen_call' end, Messages)
    end).

options() ->
    Good = options(closed, #{}),
    [
        begin
            {error, Error} = im_traffic:start(Bad),
            ?assertEqual(Sentence, lists:flatten(io_lib:format("~ts", [im_traffic:format_error(Error)])))
        end
     || {Bad, Sentence} <- [
            {Good#{window => 65}, "window must be a whole number from 1 to 64"},
            {Good#{colour => red}, "colour is not known"},
            {maps:remove(clients, Good), "clients must be a whole number above 0"},
            {Good#{rate => 5}, "rate is how many messages begin in a second in the mode open, and in no other"},
            {Good#{time_scale => 5}, "time_scale is for the mode paper"},
            {Good#{clients => 4, conversations => 7}, "conversations must not be more than there are pairs of clients"},
            {Good#{messages => {5, 4}}, "messages must be {From, To}, two whole numbers above 0, the second not the smaller one"},
            {[], "options must be a map"}
        ]
    ],
    {error, {node, 'nobody@nowhere', _}} = im_traffic:run(Good#{client_nodes => ['nobody@nowhere']}).

until(Is) -> until(Is, erlang:monotonic_time(millisecond) + 1000 * ?S).

until(Is, Deadline) ->
    case Is() of
        true -> ok;
        false ->
            true = erlang:monotonic_time(millisecond) < Deadline,
            receive after 5 -> until(Is, Deadline) end
    end.
