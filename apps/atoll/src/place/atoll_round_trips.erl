%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Measures the round trips between all pairs of some nodes, all at once: each node sends
%% a number of batches of messages there and back to each other node, one message of a pair at a time, and the
%% mean of the batches is told. That nodes talk at once is on purpose: it shows what
%% they share more clearly than one pair after the other (MacKenzie, Chechina, Trinder, Erlang'15).
%%
%% It is a tool for a quiet cluster, called from a node outside of it, say. Connections that are missing
%% are made for it: it is all with all for a while.
%%
%% While they measure, the nodes are looked at every five seconds. One that does not answer by the next
%% look, or is lost, is told of as silent: it costs its own pairs, and of the time ten seconds. Two that
%% answer, but not each other, are not in one result: whoever lacks most is left out, and told of
%% as silent too. One that has not measured all when the time is up is told of as late. When the caller
%% ends, so do its processes on the nodes.
-module(atoll_round_trips).

-export([measure/2, left/4, respond/1, ask/4]).

-export_type([options/0, measured/0, pair/0]).

-type options() :: #{
    batches => pos_integer(),
    %% Round trips in each.
    messages => pos_integer(),
    %% When what has not come is given up.
    deadline_ms => pos_integer()
}.

-type pair() :: #{
    %% One round trip in microseconds: the mean of all, and that of the best batch.
    mean := float(),
    best := float()
}.

-type measured() :: #{
    %% Both ways, of all that are neither silent nor late. One node alone is in no pair.
    pairs := #{{From :: node(), To :: node()} => pair()},
    %% Did not answer, or not some of the others.
    silent := [node()],
    %% Answered, and had not measured all when the time was up.
    late := [node()]
}.

-type a_pair() :: {From :: node(), To :: node()}.

-record(run, {
    %% Whose end ends all, by the monitor on it.
    caller :: reference(),
    %% What is still to come, what has, and what its node has given up.
    awaited :: #{a_pair() => []},
    pairs = #{} :: #{a_pair() => pair()},
    lost = [] :: [a_pair()],
    %% The nodes that measure, with who answers there, and the monitors on these.
    responders :: #{node() => pid()},
    monitors :: #{reference() => node()},
    %% Who has not answered the last look yet; looks are numbered.
    unseen = [] :: [node()],
    look = 0 :: non_neg_integer()
}).

%% Its process ends with exit/1 by design.
-dialyzer({nowarn_function, measure/2}).

-define(DEFAULTS, #{batches => 100, messages => 100, deadline_ms => 60000}).
-define(ANSWER_MS, 5000).

%% @doc The round trips between these nodes.
-spec measure([node()], options()) -> measured().
measure(Nodes, Given) ->
    #{batches := Batches, messages := Messages, deadline_ms := Ms} = maps:merge(?DEFAULTS, Given),
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    Caller = self(),
    %% In a process of its own: what comes late finds nobody.
    {Pid, Ref} = spawn_monitor(fun() ->
        Waiting = monitor(process, Caller),
        Responders = called([{Node, {respond, [self()]}} || Node <- lists:usort(Nodes)]),
        Asked = called([
            {Node, {ask, [self(), [R || {Other, _} = R <- Responders, Other =/= Node], Batches, Messages]}}
         || {Node, _} <- Responders
        ]),
        Here = [Node || {Node, _} <- Asked],
        Measuring = maps:with(Here, maps:from_list(Responders)),
        #run{pairs = Pairs, lost = Lost, awaited = Unfinished, responders = Seen} = collect(
            look(#run{
                caller = Waiting,
                awaited = maps:from_keys([{A, B} || A <- Here, B <- Here, A =/= B], []),
                responders = Measuring,
                monitors = maps:from_list([{monitor(process, R), Node} || {Node, R} <- maps:to_list(Measuring)])
            }),
            Deadline
        ),
        exit({measured, Pairs, left(lists:usort(Nodes), maps:keys(Seen), Lost, maps:keys(Unfinished))})
    end),
    receive
        {'DOWN', Ref, process, Pid, {measured, Pairs, {Left, Silent, Late}}} ->
            Both = maps:from_keys(Left, []),
            IsLeft = fun({A, B}, _) -> is_map_key(A, Both) andalso is_map_key(B, Both) end,
            #{pairs => maps:filter(IsLeft, Pairs), silent => Silent, late => Late};
        {'DOWN', Ref, process, Pid, Reason} ->
            error(Reason)
    end.

%% What the nodes answer that do.
called(Calls) ->
    Requests = [{Node, erpc:send_request(Node, ?MODULE, Function, Args)} || {Node, {Function, Args}} <- Calls],
    Deadline = erlang:monotonic_time(millisecond) + ?ANSWER_MS,
    [{Node, Answer} || {Node, Request} <- Requests, {ok, Answer} <- [answer(Request, Deadline)]].

answer(Request, Deadline) ->
    try
        {ok, erpc:receive_response(Request, max(0, Deadline - erlang:monotonic_time(millisecond)))}
    catch
        %% It is silent or gone.
        _:{_, _} -> silent;
        %% It does not know this module.
        error:{exception, undef, [{?MODULE, _, _, _} | _]} -> silent
    end.

collect(#run{awaited = Awaited} = Run, _Deadline) when map_size(Awaited) =:= 0 ->
    Run;
collect(#run{caller = Caller, awaited = Awaited, pairs = Pairs, lost = Lost, look = Look} = Run, Deadline) ->
    receive
        {'DOWN', Caller, process, _, _} ->
            exit(normal);
        {'DOWN', Ref, process, _, _} ->
            collect(given_up([map_get(Ref, Run#run.monitors)], Run), Deadline);
        {round_trips, From, To, Result} when is_map_key({From, To}, Awaited) ->
            Rest = maps:remove({From, To}, Awaited),
            case Result of
                lost -> collect(Run#run{awaited = Rest, lost = [{From, To} | Lost]}, Deadline);
                #{} -> collect(Run#run{awaited = Rest, pairs = Pairs#{{From, To} => Result}}, Deadline)
            end;
        {round_trips, _, _, _} ->
            collect(Run, Deadline);
        {back, {Look, Node}} ->
            collect(Run#run{unseen = lists:delete(Node, Run#run.unseen)}, Deadline);
        %% To an earlier look: too late.
        {back, _} ->
            collect(Run, Deadline);
        {look, Look} ->
            collect(look(given_up(Run#run.unseen, Run)), Deadline)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> Run
    end.

%% A connection that is gone is not made again, and one that is stuck holds up nobody.
look(#run{responders = Responders, look = Last} = Run) ->
    Look = Last + 1,
    _ = [erlang:send(Pid, {there, self(), {Look, Node}}, [noconnect, nosuspend]) || {Node, Pid} <- maps:to_list(Responders)],
    _ = erlang:send_after(?ANSWER_MS, self(), {look, Look}),
    Run#run{look = Look, unseen = maps:keys(Responders)}.

%% Nobody waits for these any more.
given_up(Nodes, #run{awaited = Awaited, responders = Responders} = Run) ->
    Run#run{
        awaited = maps:filter(fun({A, B}, _) -> not (lists:member(A, Nodes) orelse lists:member(B, Nodes)) end, Awaited),
        responders = maps:without(Nodes, Responders)
    }.

%% @private Who is in the result, who is silent, and who is late: of these nodes some were seen to
%% the end, and some pairs of them were lost or not finished.
-spec left([node()], Seen :: [node()], Lost :: [a_pair()], Unfinished :: [a_pair()]) ->
    {Left :: [node()], Silent :: [node()], Late :: [node()]}.
left(Nodes, Seen, Lost, Unfinished) ->
    Answering = without(Lost, [Node || Node <- Nodes, lists:member(Node, Seen)]),
    Left = without(Unfinished, Answering),
    {Left, Nodes -- Answering, Answering -- Left}.

%% Whoever lacks most is left out, until nothing is lacking. If but one would be left, it is no better.
without(Lacking, Nodes) ->
    case {fewer(Lacking, Nodes), Nodes} of
        {[_], [_, _ | _]} -> [];
        {Left, _} -> Left
    end.

fewer(Lacking, Nodes) ->
    Known = [Pair || {A, B} = Pair <- Lacking, lists:member(A, Nodes), lists:member(B, Nodes)],
    case Known of
        [] ->
            Nodes;
        _ ->
            Counts = lists:foldl(
                fun(Node, Counts) -> maps:update_with(Node, fun(N) -> N + 1 end, 1, Counts) end,
                #{},
                lists:append([[A, B] || {A, B} <- Known])
            ),
            {_, Worst} = lists:max([{N, Node} || {Node, N} <- maps:to_list(Counts)]),
            fewer(Known, lists:delete(Worst, Nodes))
    end.

%% On the nodes

%% @private Starts a process of this node that answers, until the other ends.
-spec respond(pid()) -> pid().
respond(Coordinator) ->
    spawn(fun() -> answer_all(monitor(process, Coordinator)) end).

answer_all(Ref) ->
    receive
        {there, From, Number} ->
            From ! {back, Number},
            answer_all(Ref);
        {'DOWN', Ref, process, _, _} ->
            ok
    end.

%% @private Starts a process of this node for each responder, which tells how long it took.
-spec ask(pid(), [{node(), pid()}], pos_integer(), pos_integer()) -> ok.
ask(Coordinator, Responders, Batches, Messages) ->
    lists:foreach(
        fun({Node, Responder}) ->
            spawn(fun() ->
                Ref = monitor(process, Responder),
                %% The first connects, and brings code into the caches.
                Result =
                    case batch(Responder, Ref, 0, 10) of
                        lost -> lost;
                        _ -> batches(Responder, Ref, Batches, Messages, [])
                    end,
                Coordinator ! {round_trips, node(), Node, Result}
            end)
        end,
        Responders
    ).

batches(_Responder, _Ref, 0, _Messages, Times) ->
    #{mean => lists:sum(Times) / length(Times), best => lists:min(Times)};
batches(Responder, Ref, Left, Messages, Times) ->
    case batch(Responder, Ref, Left, Messages) of
        lost -> lost;
        Us -> batches(Responder, Ref, Left - 1, Messages, [Us / Messages | Times])
    end.

%% In microseconds.
batch(Responder, Ref, Batch, Messages) ->
    Since = erlang:monotonic_time(),
    case there_and_back(Responder, Ref, Batch, Messages) of
        ok -> erlang:convert_time_unit(erlang:monotonic_time() - Since, native, nanosecond) / 1000;
        lost -> lost
    end.

there_and_back(_Responder, _Ref, _Batch, 0) ->
    ok;
there_and_back(Responder, Ref, Batch, Left) ->
    Responder ! {there, self(), {Batch, Left}},
    receive
        {back, {Batch, Left}} -> there_and_back(Responder, Ref, Batch, Left - 1);
        {'DOWN', Ref, process, _, _} -> lost
    after ?ANSWER_MS -> lost
    end.
