%% SPDX-License-Identifier: Apache-2.0
%% @doc Traffic of the instant messenger: a run of doped clients on client nodes, with what it came
%% to, and whether the messenger kept its promise meanwhile.
%% ```
%% {ok, Run} = im_traffic:start(#{client_nodes => [C1, C2], routers => [R1, R2], clients => 1000, mode => paper, ms => 60000}).
%% #{delivered_per_minute := PerMinute, history := #{counts := #{}}} = im_traffic:await(Run).
%% '''
%% Modes:
%% <dl>
%% <dt>`paper'</dt><dd>conversations of 13 to 60 messages, with 1 to 20 s to think before each;
%%   `time_scale' makes that so many times shorter.</dd>
%% <dt>`closed'</dt><dd>the same without a time to think: as many messages as the messenger takes,
%%   with `window' under way in each conversation. For throughput.</dd>
%% <dt>`open'</dt><dd>so many messages a second (`rate'), whatever becomes of them, each in a
%%   conversation that is drawn. Latency counts from the intended time, so what the messenger holds
%%   up shows in that of all that had to wait. For latency, up to where it no longer follows: then
%%   `delivered' stays behind `rate'.</dd>
%% </dl>
%% A run logs all clients in, begins the conversations, lets them go on for `ramp_ms', measures for
%% `ms', and then drains: nothing more is said, what was said is delivered, all conversations are
%% finished, and all clients log out.
%%
%% Everything is drawn from `seed'. The run ends with its caller, and all that was started on client
%% nodes ends with the run. What waits here is bounded by the load: an event for each side of a
%% conversation that has ended, and for each login.
-module(im_traffic).

-export([run/1, start/1, await/1, stop/1, look/1, new/1, format_error/1]).

-export_type([options/0, result/0, error/0, running/0]).

-type options() :: #{
    client_nodes := [node(), ...],
    routers := [node(), ...],
    clients := pos_integer(),
    mode := paper | closed | open,
    %% That are measured; before them so many of load that is not (1000).
    ms := pos_integer(),
    ramp_ms => non_neg_integer(),
    %% Half of the clients, rounded up.
    conversations => non_neg_integer(),
    time_scale => number(),
    %% Messages under way in a conversation: in a closed loop 1, in an open one 64.
    window => 1..64,
    %% Messages of a chain, 13 to 60.
    messages => {pos_integer(), pos_integer()},
    %% Of an open loop: messages in a second, in time evenly or as they come (poisson).
    rate => number(),
    arrivals => even | poisson,
    %% How many clients of a node may wait for their login at once (100), and how many a second try
    %% to log in under a name that somebody has (0).
    logins => pos_integer(),
    rivals => number(),
    %% For the quality of service (10,000).
    threshold_us => pos_integer(),
    %% Until all are logged in (300,000), and until all conversations are finished (30,000).
    login_ms => pos_integer(),
    drain_ms => pos_integer(),
    routers_per_node => pos_integer(),
    %% The paper's files, with what they are called after, in windows that begin with the measured time.
    log => #{dir := file:filename(), technology := string(), servers := pos_integer(), seconds := pos_integer(), trials := pos_integer(), latency => boolean()},
    seed => integer()
}.

-type result() :: #{
    %% Clients that were logged in, and how long that took.
    logins := non_neg_integer(),
    login_ms := non_neg_integer(),
    %% In the measured time, which was so long.
    seconds := float(),
    sent := non_neg_integer(),
    received := non_neg_integer(),
    delivered := non_neg_integer(),
    below := non_neg_integer(),
    shed := non_neg_integer(),
    delivered_per_minute := float(),
    %% Nanoseconds from the intended time until the sender knew of the delivery, of what was to be
    %% said in the measured time.
    latency := atoll_histogram:export(),
    %% In the whole run.
    total := #{sent | received | delivered | below | shed := non_neg_integer()},
    conversations := #{'begun' := non_neg_integer(), running := non_neg_integer(), ended := #{atom() => pos_integer()}},
    clients := #{refused | died | rivals | rivals_refused := non_neg_integer()},
    drain_ms := non_neg_integer(),
    %% Whether all conversations and all logins have ended in time.
    is_drained := boolean(),
    history := im_history:report(),
    %% Of the loggers, by client node.
    windows := [{pos_integer(), [im_csv:window()]}],
    seed := integer()
}.

-type error() ::
    {option, Key :: term(), Must :: string()}
    | {node, node(), Reason :: term()}
    %% So many clients of all were logged in, or conversations there, when the time was over.
    | {login, non_neg_integer(), pos_integer()}
    | {open, non_neg_integer(), pos_integer()}
    | {log, {file:filename(), file:posix() | badarg | system_limit}}.

-type running() :: pid().

-record(run, {
    options :: map(),
    nodes = [] :: [{node(), pid()}],
    history = im_history:new() :: im_history:history(),
    %% What the nodes have said.
    logged_in = #{} :: #{pid() => non_neg_integer()},
    open = #{} :: #{pid() => []},
    logged_out = #{} :: #{pid() => []},
    windows = [] :: [{pos_integer(), [im_csv:window()]}],
    %% Someone wants the end of the measured time.
    is_stopped = false :: boolean()
}).

-define(CALL_MS, 60000).
-define(POLL_MS, 50).
%% Nothing more is delivered, while something is missing.
-define(STILL_MS, 2000).

%% @doc Runs to the end.
-spec run(options()) -> {ok, result()} | {error, error()}.
run(Options) ->
    case start(Options) of
        {ok, Run} -> await(Run);
        {error, _} = Error -> Error
    end.

%% @doc Starts a run, which ends with the calling process if not before.
-spec start(options()) -> {ok, running()} | {error, error()}.
start(Asked) ->
    case new(Asked) of
        {ok, Options} ->
            Caller = self(),
            {ok, spawn(fun() ->
                _ = monitor(process, Caller),
                done(catch_error(fun() -> traffic(#run{options = Options}) end))
            end)};
        {error, _} = Error ->
            Error
    end.

%% @doc Waits for the result.
-spec await(running()) -> {ok, result()} | {error, error()}.
await(Run) ->
    Ref = monitor(process, Run),
    Run ! {await, self(), Ref},
    receive
        {Ref, Result} ->
            demonitor(Ref, [flush]),
            Result;
        {'DOWN', Ref, process, Run, Reason} ->
            exit(Reason)
    end.

%% @doc Ends the measured time now, drains, and gives the result.
-spec stop(running()) -> {ok, result()} | {error, error()}.
stop(Run) ->
    Run ! stop,
    await(Run).

%% @doc What the clients have done so far, of all nodes.
-spec look(running()) -> im_traffic_count:look() | #{atom() => term()}.
look(Run) ->
    Ref = monitor(process, Run),
    Run ! {look, self(), Ref},
    receive
        {Ref, Look} ->
            demonitor(Ref, [flush]),
            Look;
        {'DOWN', Ref, process, Run, Reason} ->
            exit(Reason)
    end.

done(Result) ->
    receive
        {await, Pid, Ref} -> Pid ! {Ref, Result};
        {look, Pid, Ref} -> Pid ! {Ref, #{}}, done(Result);
        {'DOWN', _, process, _, _} -> ok;
        _ -> done(Result)
    end.

-spec bad(error()) -> no_return().
bad(Error) -> throw({traffic, Error}).

catch_error(Fun) ->
    try
        {ok, Fun()}
    catch
        throw:{traffic, Error} -> {error, Error}
    end.

traffic(#run{options = #{mode := Mode, ms := Ms, ramp_ms := RampMs, login_ms := LoginMs, drain_ms := DrainMs, seed := Seed} = Options} = Run0) ->
    Run1 = logged_in(within(LoginMs), started(Run0)),
    _ = all(converse, Run1),
    Run2 = opened(within(LoginMs), Run1),
    _ = Mode =:= open andalso all(speak, Run2),
    Run3 = until(fun(#run{is_stopped = Stopped}) -> Stopped end, within(RampMs), Run2),
    Before = beginning(all('begin', Run3)),
    Begun = im_traffic_count:now_us(),
    Run4 = until(fun(#run{is_stopped = Stopped}) -> Stopped end, within(Ms), Run3),
    After = all('end', Run4),
    Seconds = (im_traffic_count:now_us() - Begun) / 1000000,
    _ = all(stop, Run4),
    Draining = erlang:monotonic_time(millisecond),
    {IsDrained, Run5} = drained(within(DrainMs), Run4),
    Drained = erlang:monotonic_time(millisecond),
    Looks = all(look, Run5),
    _ = all(logout, Run5),
    Run = windows(Options, until(fun are_out/1, within(DrainMs), Run5)),
    _ = [exit(Pid, kill) || {_, Pid} <- Run#run.nodes],
    Measured = less(sum(After), sum(Before)),
    #{delivered := Delivered} = Measured,
    Total = sum(Looks),
    Of = fun(Keys) -> maps:from_list([{Key, lists:sum([N || #{Key := N} <- Looks])} || Key <- Keys]) end,
    (maps:with([sent, received, delivered, below, shed], Measured))#{
        logins => lists:sum([N || #{present := N} <- Looks]),
        login_ms => lists:max(maps:values(Run#run.logged_in)),
        seconds => Seconds,
        delivered_per_minute => Delivered * 60 / Seconds,
        latency => atoll_histogram:merge([Latency || #{latency := Latency} <- Looks]),
        total => Total,
        conversations => (Of(['begun', running]))#{ended => ended(Looks)},
        clients => Of([refused, died, rivals, rivals_refused]),
        drain_ms => Drained - Draining,
        is_drained => IsDrained andalso are_out(Run),
        history => im_history:close(Run#run.history),
        windows => lists:sort(Run#run.windows),
        seed => Seed
    }.

sum(Looks) ->
    maps:from_list([{Key, lists:sum([N || #{Key := N} <- Looks])} || Key <- [sent, received, delivered, below, shed]]).

less(After, Before) -> maps:map(fun(Key, N) -> N - map_get(Key, Before) end, After).

ended(Looks) ->
    lists:foldl(
        fun(#{ended := Ended}, All) -> maps:fold(fun(Reason, N, A) -> maps:update_with(Reason, fun(M) -> M + N end, N, A) end, All, Ended) end,
        #{},
        Looks
    ).

beginning(Looks) ->
    _ = [bad({log, Reason}) || #{error := Reason} <- Looks],
    Looks.

%% The nodes

started(#run{options = #{client_nodes := Nodes} = Options} = Run) ->
    Settings = settings(Options),
    N = length(Nodes),
    Run#run{nodes = [{Node, on_node(Node, Settings#{place => {K, N}})} || {K, Node} <- lists:zip(lists:seq(1, N), Nodes)]}.

on_node(Node, Settings) ->
    try erpc:call(Node, im_traffic_node, start, [Settings], ?CALL_MS) of
        {ok, Pid} ->
            _ = monitor(process, Pid),
            Pid;
        {error, Reason} ->
            bad({node, Node, Reason})
    catch
        error:{erpc, Reason} -> bad({node, Node, Reason});
        error:{exception, Reason, _} -> bad({node, Node, Reason})
    end.

settings(#{mode := Mode} = Options) ->
    Messages = case Mode of open -> monologue; _ -> maps:get(messages, Options) end,
    Log = maps:get(log, Options, none),
    (maps:with([routers, routers_per_node, clients, conversations, rate, arrivals, logins, rivals, threshold_us, seed], Options))#{
        run => self(),
        messages => Messages,
        doped => #{think_ms => think(Options), window => maps:get(window, Options)},
        log => case Log of none -> none; _ -> #{dir => maps:get(dir, Log), latency => maps:get(latency, Log, false), run => csv(Options)} end
    }.

think(#{mode := paper, time_scale := Scale}) -> {round(1000 / Scale), round(20000 / Scale)};
think(_) -> {0, 0}.

csv(#{log := Log, routers := Routers, clients := Clients, threshold_us := Threshold}) ->
    (maps:with([technology, servers, seconds, trials], Log))#{routers => length(Routers), clients => Clients, threshold_us => Threshold}.

all(Request, #run{nodes = Nodes}) ->
    [
        try
            im_traffic_node:call(Pid, Request)
        catch
            exit:Reason -> bad({node, Node, Reason})
        end
     || {Node, Pid} <- Nodes
    ].

%% Waiting, while nodes tell what has happened

within(Ms) -> erlang:monotonic_time(millisecond) + Ms.

%% Until it is so, or the time is over.
until(Is, Deadline, Run) ->
    case Is(Run) orelse erlang:monotonic_time(millisecond) >= Deadline of
        true -> Run;
        false -> until(Is, Deadline, heard(max(0, Deadline - erlang:monotonic_time(millisecond)), Run))
    end.

heard(Ms, #run{nodes = Nodes, history = History} = Run) ->
    receive
        {im_traffic_node, _, {history, Event}} ->
            Run#run{history = im_history:event(Event, History)};
        {im_traffic_node, Pid, {logged_in, LoginMs}} ->
            Run#run{logged_in = (Run#run.logged_in)#{Pid => LoginMs}};
        {im_traffic_node, Pid, open} ->
            Run#run{open = (Run#run.open)#{Pid => []}};
        {im_traffic_node, Pid, logged_out} ->
            Run#run{logged_out = (Run#run.logged_out)#{Pid => []}};
        {im_traffic_node, Pid, {windows, Windows}} ->
            {K, _} = lists:keyfind(Pid, 2, lists:zip(lists:seq(1, length(Nodes)), [P || {_, P} <- Nodes])),
            Run#run{windows = [{K, Windows} | Run#run.windows]};
        stop ->
            Run#run{is_stopped = true};
        {look, Pid, Ref} ->
            Pid ! {Ref, sum(all(look, Run))},
            Run;
        {'DOWN', _, process, Pid, Reason} ->
            case lists:keyfind(Pid, 2, Nodes) of
                {Node, Pid} -> bad({node, Node, Reason});
                %% The caller, without whom nobody wants the result.
                false -> exit(shutdown)
            end
    after Ms ->
        Run
    end.

logged_in(Deadline, #run{options = #{clients := Clients}} = Run0) ->
    Are = fun(#run{logged_in = In, nodes = Nodes}) -> map_size(In) =:= length(Nodes) end,
    Run = until(Are, Deadline, Run0),
    Are(Run) orelse bad({login, lists:sum([N || #{present := N} <- all(look, Run)]), Clients}),
    Run.

opened(Deadline, #run{options = #{mode := open, conversations := All}} = Run0) ->
    Are = fun(#run{open = Open, nodes = Nodes}) -> map_size(Open) =:= length(Nodes) end,
    Run = until(Are, Deadline, Run0),
    Are(Run) orelse bad({open, lists:sum([N || #{open := N} <- all(look, Run)]), All}),
    Run;
opened(_Deadline, Run) ->
    Run.

%% What was said is delivered, or nothing more comes; then all is finished.
drained(Deadline, Run0) ->
    Run1 = settled(Deadline, none, within(?STILL_MS), Run0),
    _ = all(finish, Run1),
    {IsDrained, Run2} = finished(Deadline, Run1),
    _ = all(drained, Run2),
    %% The nodes have passed on what the clients told before.
    _ = all(look, Run2),
    {IsDrained, recorded(Run2)}.

recorded(#run{history = History} = Run) ->
    receive
        {im_traffic_node, _, {history, Event}} -> recorded(Run#run{history = im_history:event(Event, History)})
    after 0 ->
        Run
    end.

settled(Deadline, Last, Still, Run) ->
    #{sent := Sent, delivered := Delivered} = sum(all(look, Run)),
    Now = erlang:monotonic_time(millisecond),
    if
        Delivered >= Sent; Now >= Deadline -> Run;
        Delivered =/= Last -> settled(Deadline, Delivered, within(?STILL_MS), pause(Run));
        Now >= Still -> Run;
        true -> settled(Deadline, Last, Still, pause(Run))
    end.

finished(Deadline, Run) ->
    case lists:sum([N || #{running := N} <- all(look, Run)]) of
        0 -> {true, Run};
        _ ->
            case erlang:monotonic_time(millisecond) >= Deadline of
                true -> {false, Run};
                false -> finished(Deadline, pause(Run))
            end
    end.

pause(Run) -> until(fun(_) -> false end, within(?POLL_MS), Run).

are_out(#run{logged_out = Out, nodes = Nodes}) -> map_size(Out) =:= length(Nodes).

%% A run that was stopped before its loggers had all their windows has no summary.
windows(#{log := #{dir := Dir}} = Options, #run{windows = Windows, nodes = Nodes} = Run) when length(Windows) =:= length(Nodes) ->
    Csv = csv(Options),
    Name = filename:join(Dir, im_csv:name(summary, Csv)),
    case file:write_file(Name, unicode:characters_to_binary(im_csv:summary(lists:sort(Windows), Csv))) of
        ok -> Run;
        {error, Reason} -> bad({log, {Name, Reason}})
    end;
windows(_Options, Run) ->
    Run.

%% Options

%% @doc The options with all that was not said.
-spec new(map()) -> {ok, map()} | {error, error()}.
new(Asked) ->
    catch_error(fun() -> checked(Asked) end).

checked(Asked) when is_map(Asked) ->
    Keys = keys(),
    _ = [bad({option, Key, "is not known"}) || Key <- maps:keys(Asked), not lists:keymember(Key, 1, Keys)],
    _ = [bad({option, Key, Must}) || {Key, Must, Is} <- Keys, #{Key := Value} <- [Asked], not Is(Value)],
    _ = [bad({option, Key, Must}) || {Key, Must, _} <- Keys, lists:member(Key, [client_nodes, routers, clients, mode, ms]), not is_map_key(Key, Asked)],
    #{mode := Mode, clients := Clients} = Asked,
    _ = [bad({option, rate, "is how many messages begin in a second in the mode open, and in no other"}) || (Mode =:= open) =/= is_map_key(rate, Asked)],
    _ = [bad({option, Key, "is for the mode paper"}) || Key <- [time_scale], is_map_key(Key, Asked), Mode =/= paper],
    Window = case Mode of open -> 64; _ -> 1 end,
    Defaults = #{
        ramp_ms => 1000, conversations => (Clients + 1) div 2, time_scale => 1, window => Window, messages => {13, 60}, rate => none,
        arrivals => poisson, logins => 100, rivals => 0, threshold_us => 10000, login_ms => 300000, drain_ms => 30000,
        routers_per_node => 4, seed => 1
    },
    maps:merge(Defaults, Asked);
checked(_) ->
    bad({option, options, "must be a map"}).

keys() ->
    Positive = fun(N) -> is_integer(N) andalso N > 0 end,
    From0 = fun(N) -> is_integer(N) andalso N >= 0 end,
    Above0 = fun(N) -> is_number(N) andalso N > 0 end,
    Nodes = fun(L) -> is_list(L) andalso L =/= [] andalso lists:all(fun is_atom/1, L) andalso length(lists:usort(L)) =:= length(L) end,
    Whole = "must be a whole number above 0",
    Ms = "must be a whole number of milliseconds above 0",
    [
        {client_nodes, "must be a list of nodes, each once", Nodes},
        {routers, "must be a list of router nodes, each once", Nodes},
        {clients, Whole, Positive},
        {mode, "must be paper, closed or open", fun(M) -> lists:member(M, [paper, closed, open]) end},
        {ms, Ms, Positive},
        {ramp_ms, "must be a whole number of milliseconds", From0},
        {conversations, "must be a whole number", From0},
        {time_scale, "must be a number above 0", Above0},
        {window, "must be a whole number from 1 to 64", fun(W) -> Positive(W) andalso W =< 64 end},
        {messages, "must be {From, To}, two whole numbers above 0, the second not the smaller one",
            fun({From, To}) -> Positive(From) andalso Positive(To) andalso From =< To; (_) -> false end},
        {rate, "must be a number above 0", Above0},
        {arrivals, "must be even or poisson", fun(A) -> lists:member(A, [even, poisson]) end},
        {logins, Whole, Positive},
        {rivals, "must be a number, 0 or more", fun(R) -> is_number(R) andalso R >= 0 end},
        {threshold_us, "must be a whole number of microseconds above 0", Positive},
        {login_ms, Ms, Positive},
        {drain_ms, Ms, Positive},
        {routers_per_node, Whole, Positive},
        {log, "must be a map with dir, technology, servers, seconds and trials, the last three whole numbers above 0, and latency, true or false, if wanted",
            fun
                (#{dir := Dir, technology := Technology, servers := Servers, seconds := Seconds, trials := Trials} = Log) ->
                    is_list(Dir) andalso is_list(Technology) andalso lists:all(Positive, [Servers, Seconds, Trials]) andalso
                        is_boolean(maps:get(latency, Log, false)) andalso
                        maps:keys(Log) -- [dir, technology, servers, seconds, trials, latency] =:= [];
                (_) ->
                    false
            end},
        {seed, "must be a whole number", fun is_integer/1}
    ].

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({option, Key, Must}) ->
    io_lib:format("~0tp ~ts", [Key, Must]);
format_error({node, Node, Reason}) ->
    io_lib:format("the traffic of ~ts has ended: ~0tp", [Node, Reason]);
format_error({login, In, All}) ->
    io_lib:format("~b of ~b clients were logged in when the time for that was over", [In, All]);
format_error({open, Open, All}) ->
    io_lib:format("~b of ~b conversations had begun when the time for that was over", [Open, All]);
format_error({log, {Name, Reason}}) ->
    ["cannot write ", Name, ": ", file:format_error(Reason)].
