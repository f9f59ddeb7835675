%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on the nodes of {@link atoll_bench_overlay} when all talk to all: a process on
%% each that answers, and one that asks every other one by a plain `!', at intended times.
%%
%% Latency counts from the intended time, so whatever holds up the asker counts for all that it
%% holds up.
-module(atoll_bench_overlay_words).

-export([answer/0, ask/4, relayed/0]).

-export_type([asked/0]).

-type asked() :: #{
    latency := atoll_histogram:export(),
    asked := non_neg_integer(),
    %% To whom no answer came.
    silent := [node()]
}.

-define(PAYLOAD_BYTES, 100).

%% @doc Starts the process that answers, for as long as this node is there.
-spec answer() -> ok.
answer() ->
    Self = self(),
    Tag = make_ref(),
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        Self ! Tag,
        answering()
    end),
    receive
        Tag -> ok
    end.

answering() ->
    receive
        {ask, From, Tag, Payload} ->
            From ! {answer, Tag, Payload},
            answering()
    end.

%% @doc Asks these nodes, each so many times, at even intervals within so many milliseconds.
%% What was not answered is waited for as long as answers come, and so long after the last one.
-spec ask([node(), ...], Times :: pos_integer(), Ms :: pos_integer(), PatienceMs :: pos_integer()) -> asked().
ask(Nodes, Times, Ms, PatienceMs) ->
    Self = self(),
    {Pid, Ref} = spawn_opt(fun() -> Self ! {self(), asked(Nodes, Times, Ms, PatienceMs)} end, [link, monitor]),
    receive
        {Pid, Asked} ->
            true = erlang:demonitor(Ref, [flush]),
            Asked;
        {'DOWN', Ref, process, Pid, Why} ->
            exit(Why)
    end.

%% In another order each time, that not all ask the same node at once. The runtime's timers are
%% of whole milliseconds, and so are the intended times.
asked(Nodes, Times, Ms, PatienceMs) ->
    Order = lists:append([shuffled(Nodes) || _ <- lists:seq(1, Times)]),
    Pause = Ms / length(Order),
    Begin = erlang:monotonic_time(millisecond) + 1 + rand:uniform() * Pause,
    Plan = [{trunc(Begin + I * Pause), I, Node} || {I, Node} <- lists:zip(lists:seq(0, length(Order) - 1), Order)],
    _ = [erlang:start_timer(At, self(), Question, [{abs, true}]) || {At, _, _} = Question <- Plan],
    Hist = atoll_histogram:new(),
    Open = asking(length(Plan), #{}, {rand:bytes(?PAYLOAD_BYTES), PatienceMs, Hist}),
    #{latency => atoll_histogram:export(Hist), asked => length(Order), silent => lists:usort([Node || {_, _, Node} <- maps:keys(Open)])}.

shuffled(Nodes) ->
    [Node || {_, Node} <- lists:sort([{rand:uniform(), Node} || Node <- Nodes])].

%% How many are still to be asked, and who was and has not answered.
asking(0, Open, _Rest) when map_size(Open) =:= 0 ->
    Open;
asking(Later, Open, {Payload, PatienceMs, Hist} = Rest) ->
    receive
        {timeout, _, {_, _, Node} = Question} ->
            {?MODULE, Node} ! {ask, self(), Question, Payload},
            asking(Later - 1, Open#{Question => []}, Rest);
        {answer, {At, _, _} = Question, _} ->
            #{Question := []} = Open,
            Ns = max(0, erlang:monotonic_time(nanosecond) - erlang:convert_time_unit(At, millisecond, nanosecond)),
            ok = atoll_histogram:record(Ns, Hist),
            asking(Later, maps:remove(Question, Open), Rest)
    after case Later of 0 -> PatienceMs; _ -> infinity end ->
        Open
    end.

%% @doc How many circuits go over this node.
-spec relayed() -> non_neg_integer().
relayed() ->
    maps:get(circuits, atoll_dist:relay(), 0).
