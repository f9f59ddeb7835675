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
%% {@link im_traffic_options} has all that can be told. Everything is drawn from `seed'. The run ends with its caller, and all that was started on client
%% nodes ends with the run. What waits here is bounded by the load: an event for each side of a
%% conversation that has ended, and for each login.
-module(im_traffic).

-export([run/1, start/1, await/1, stop/1, look/1, format_error/1]).

-export_type([result/0, error/0, running/0]).

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
    im_traffic_options:error()
    | {node, node(), Reason :: term()}
    %% So many clients of all were logged in, or conversations there, when the time was over.
    | {login, non_neg_integer(), pos_integer()}
    | {open, non_neg_integer(), pos_integer()}
    | {log, {file:filename(), file:posix() | badarg | system_limit}}.

-type running() :: pid().

-record(run, {
    options :: im_traffic_options:options(),
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
-spec run(im_traffic_options:asked()) -> {ok, result()} | {error, error()}.
run(Options) ->
    case start(Options) of
        {ok, Run} -> await(Run);
        {error, _} = Error -> Error
    end.

%% @doc Starts a run, which ends with the calling process if not before.
-spec start(im_traffic_options:asked()) -> {ok, running()} | {error, error()}.
start(Asked) ->
    case im_traffic_options:new(Asked) of
        {ok, Options} ->
            Caller = self(),
            {ok, spawn(fun() ->
                Ref = monitor(process, Caller),
                done(catch_error(fun() -> on_nodes(#run{options = Options}) end), Ref)
            end)};
        {error, _} = Error ->
            Error
    end.

%% @doc Waits for the result.
-spec await(running()) -> {ok, result()} | {error, error()}.
await(Run) -> ask(await, Run).

%% @doc Ends the measured time now, drains, and gives the result.
-spec stop(running()) -> {ok, result()} | {error, error()}.
stop(Run) ->
    Run ! stop,
    await(Run).

%% @doc What the clients have done so far, of all nodes.
-spec look(running()) -> im_traffic_count:look() | #{atom() => term()}.
look(Run) -> ask(look, Run).

ask(What, Run) ->
    Ref = monitor(process, Run),
    Run ! {What, self(), Ref},
    receive
        {Ref, Answer} ->
            demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, Run, Reason} ->
            exit(Reason)
    end.

%% Until somebody wants the result, or nobody can any more.
done(Result, Caller) ->
    receive
        {await, Pid, Ref} -> Pid ! {Ref, Result};
        {look, Pid, Ref} -> Pid ! {Ref, #{}}, done(Result, Caller);
        {'DOWN', Caller, process, _, _} -> ok;
        _ -> done(Result, Caller)
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
    Run1 = logged_in(within(LoginMs), Run0),
    _ = all(converse, Run1),
    Run2 = opened(within(LoginMs), Run1),
    _ = Mode =:= open andalso all(speak, Run2),
    Run3 = until(fun(#run{is_stopped = Stopped}) -> Stopped end, within(RampMs), Run2),
    Before = beginning(all('begin', Run3)),
    Begun = im_traffic_count:now_us(),
    Run4 = logged(within(DrainMs), until(fun(#run{is_stopped = Stopped}) -> Stopped end, within(Ms), Run3)),
    After = all('end', Run4),
    Seconds = (im_traffic_count:now_us() - Begun) / 1000000,
    _ = all(stop, Run4),
    Draining = erlang:monotonic_time(millisecond),
    {IsDrained, Run5} = drained(within(DrainMs), Run4),
    Drained = erlang:monotonic_time(millisecond),
    Looks = all(look, Run5),
    _ = all(logout, Run5),
    Run = windows(Options, until(fun are_out/1, within(DrainMs), Run5)),
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

on_nodes(#run{options = #{client_nodes := Nodes} = Options} = Run) ->
    Settings = im_traffic_options:settings(self(), Options),
    N = length(Nodes),
    on_nodes([{Node, Settings#{place => {K, N}}} || {K, Node} <- lists:zip(lists:seq(1, N), Nodes)], Run).

%% Whatever comes of it, nothing is left there.
on_nodes([{Node, Settings} | Nodes], #run{nodes = Before} = Run) ->
    Pid = on_node(Node, Settings),
    try
        on_nodes(Nodes, Run#run{nodes = Before ++ [{Node, Pid}]})
    after
        exit(Pid, kill)
    end;
on_nodes([], Run) ->
    traffic(Run).

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

all(Request, #run{nodes = Nodes}) ->
    [
        try
            im_traffic_node:call(Pid, Request)
        catch
            exit:{timeout, _} -> bad({node, Node, timeout});
            exit:_ -> bad({node, Node, why(Pid)})
        end
     || {Node, Pid} <- Nodes
    ].

%% It has ended: the run's own monitor says why, in the same words as to a run that asks for nothing.
why(Pid) ->
    receive {'DOWN', _, process, Pid, Reason} -> Reason end.

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

%% Loggers begin when they hear of the measured time. Where their windows fit into it traffic goes on until
%% they have them all.
logged(Deadline, #run{options = #{ms := Ms, log := #{seconds := Seconds, trials := Trials}}} = Run) when 1000 * Seconds * Trials =< Ms ->
    until(fun(#run{is_stopped = Stopped, windows = Windows, nodes = Nodes}) -> Stopped orelse length(Windows) =:= length(Nodes) end, Deadline, Run);
logged(_Deadline, Run) ->
    Run.

%% A run that was stopped before its loggers had all their windows has no summary.
windows(#{log := #{dir := Dir}} = Options, #run{windows = Windows, nodes = Nodes} = Run) when length(Windows) =:= length(Nodes) ->
    Csv = im_traffic_options:csv(Options),
    Name = filename:join(Dir, im_csv:name(summary, Csv)),
    case file:write_file(Name, unicode:characters_to_binary(im_csv:summary(lists:sort(Windows), Csv))) of
        ok -> Run;
        {error, Reason} -> bad({log, {Name, Reason}})
    end;
windows(_Options, Run) ->
    Run.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({option, _, _} = Error) ->
    im_traffic_options:format_error(Error);
format_error({node, Node, Reason}) ->
    io_lib:format("the traffic of ~ts has ended: ~0tp", [Node, Reason]);
format_error({login, In, All}) ->
    io_lib:format("~b of ~b clients were logged in when the time for that was over", [In, All]);
format_error({open, Open, All}) ->
    io_lib:format("~b of ~b conversations had begun when the time for that was over", [Open, All]);
format_error({log, {Name, Reason}}) ->
    ["cannot write ", Name, ": ", file:format_error(Reason)].
