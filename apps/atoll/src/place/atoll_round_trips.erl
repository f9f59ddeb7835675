%% @doc Measures the round trips between all pairs of some nodes, all at once: each node sends
%% a number of batches of messages there and back to each other node, one message of a pair at a time, and the
%% mean of the batches is told. That nodes talk at once is on purpose: it shows what
%% they share more clearly than one pair after the other (MacKenzie, Chechina, Trinder, Erlang'15).
%%
%% It is a tool for a quiet cluster, called from a node outside of it, say. Connections that are missing
%% are made for it: it is all with all for a while. A node that does not answer, or is lost, is
%% told of as silent, and in no pair. When the caller ends, so do its processes on the nodes.
-module(atoll_round_trips).

-export([measure/2, respond/1, ask/4]).

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
    %% Both ways.
    pairs := #{{From :: node(), To :: node()} => pair()},
    silent := [node()]
}.

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
        Awaited = maps:from_keys([{A, B} || A <- Here, B <- Here, A =/= B], []),
        exit({measured, collect(Awaited, #{}, Waiting, Deadline), lists:usort(Nodes)})
    end),
    receive
        {'DOWN', Ref, process, Pid, {measured, Pairs, All}} -> whole(Pairs, All);
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
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

collect(Awaited, Pairs, _Waiting, _Deadline) when map_size(Awaited) =:= 0 ->
    Pairs;
collect(Awaited, Pairs, Waiting, Deadline) ->
    receive
        {'DOWN', Waiting, process, _, _} ->
            exit(normal);
        {round_trips, From, To, Result} when is_map_key({From, To}, Awaited) ->
            Rest = maps:remove({From, To}, Awaited),
            case Result of
                lost -> collect(Rest, Pairs, Waiting, Deadline);
                #{} -> collect(Rest, Pairs#{{From, To} => Result}, Waiting, Deadline)
            end;
        {round_trips, _, _, _} ->
            collect(Awaited, Pairs, Waiting, Deadline)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> Pairs
    end.

%% Whoever lacks most is left out, until nothing is lacking.
whole(Pairs, Nodes) -> whole(Pairs, Nodes, []).

whole(Pairs, Nodes, Silent) ->
    Lacks = [
        {length([B || B <- Nodes, B =/= A, not (is_map_key({A, B}, Pairs) andalso is_map_key({B, A}, Pairs))]), A}
     || A <- Nodes
    ],
    case lists:max([{0, none} | Lacks]) of
        {0, _} -> #{pairs => maps:filter(fun({A, B}, _) -> lists:member(A, Nodes) andalso lists:member(B, Nodes) end, Pairs), silent => lists:sort(Silent)};
        {_, Worst} -> whole(Pairs, lists:delete(Worst, Nodes), [Worst | Silent])
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
