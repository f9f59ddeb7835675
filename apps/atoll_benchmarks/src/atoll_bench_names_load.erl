%% SPDX-License-Identifier: Apache-2.0
%% @doc The load of the benchmark {@link atoll_bench_names}, on its nodes. A name is
%% `{Batch, {Node, Caller}, Number}'; whoever registered it keeps it until its batch is
%% forgotten.
-module(atoll_bench_names_load).

-export([begin_with/1, register/3, see/5, visible/3, look_up/3, forget/3, gone/3]).

-export_type([batch/0, load/0, registered/0]).

-type system() :: atoll_bench_names_system:system().
-type batch() :: {probe, node()} | {round, pos_integer()}.

-type load() :: #{
    %% Processes that register at the same time.
    callers := pos_integer(),
    %% How long they begin to.
    ms := non_neg_integer(),
    %% Registrations a second that begin whatever becomes of the others; 0 for callers
    %% that begin when they have their answer.
    rate := non_neg_integer()
}.

-type registered() :: [{node(), Counts :: [pos_integer()]}].
%% How many names each caller of each node has registered.

-define(WATCH, atoll_bench_names_watch).
-define(EXTRA_MS, 30000).
%% A system that does not come after the rate is not waited for as long.
-define(GRACE_MS, 5000).
%% Nobody tells of a name that has come or gone, so it is looked again after a while.
-define(SEE_MS, 1).
-define(GONE_MS, 10).

%% @doc What the system needs on this node.
-spec begin_with(system()) -> ok.
begin_with(System) ->
    ok = atoll_bench_names_system:begin_with(System),
    Self = self(),
    Tag = make_ref(),
    _ = spawn(fun() ->
        true = erlang:register(?WATCH, self()),
        Self ! Tag,
        watch()
    end),
    receive
        Tag -> ok
    end.

%% @doc Registers names until the time is over, each caller at least one. How many each
%% has registered, how long that took, and how long each took.
-spec register(system(), batch(), load()) ->
    {Counts :: [pos_integer()], Us :: pos_integer(), atoll_histogram:export()} | {unfinished, pos_integer()}.
register(System, Batch, #{rate := 0, callers := Callers, ms := Ms}) ->
    Here = atoll_bench_names_system:here(System),
    Hist = atoll_histogram:new(),
    Begin = erlang:monotonic_time(),
    Until = Begin + erlang:convert_time_unit(Ms, millisecond, native),
    Self = self(),
    Tag = make_ref(),
    Keeper = keeper(Here, Batch, fun() ->
        [
            spawn_link(fun() ->
                Self ! {Tag, Caller, naming(Here, {Batch, {node(), Caller}}, Until, Hist, 0)},
                timer:sleep(infinity)
            end)
         || Caller <- lists:seq(1, Callers)
        ]
    end),
    Ref = monitor(process, Keeper),
    Counts = [counted(Tag, Caller, Ref, Ms + ?EXTRA_MS) || Caller <- lists:seq(1, Callers)],
    true = demonitor(Ref, [flush]),
    Us = erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, microsecond),
    {Counts, Us, atoll_histogram:export(Hist)};
register(System, Batch, #{rate := Rate, callers := Callers, ms := Ms}) ->
    Here = atoll_bench_names_system:here(System),
    Keeper = keeper(Here, Batch, fun() -> [] end),
    Count = atomics:new(1, []),
    Operation = fun() ->
        %% Its name stays when the worker ends.
        Named = spawn(fun() ->
            true = link(Keeper),
            timer:sleep(infinity)
        end),
        atoll_bench_names_system:give(Here, {Batch, {node(), 1}, atomics:add_get(Count, 1, 1)}, Named)
    end,
    Options = #{rate => Rate, ms => max(1, Ms), workers_max => Callers, grace => ?GRACE_MS},
    case atoll_bench_load:open(Operation, Options) of
        #{unfinished := 0, failed := 0, finished := Finished, took_ns := Ns, latency := Hist} ->
            {[Finished], Ns div 1000, atoll_histogram:export(Hist)};
        #{unfinished := Unfinished} ->
            {unfinished, Unfinished}
    end.

counted(Tag, Caller, Ref, Ms) ->
    receive
        {Tag, Caller, Count} -> Count;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    after Ms -> exit({late, Caller})
    end.

%% Each name is another process's, which is there for that alone and ends with the
%% caller: global gives a process one name, and so do groups.
naming(Here, {Batch, Caller} = Of, Until, Hist, Count) ->
    Named = spawn_link(timer, sleep, [infinity]),
    Begin = erlang:monotonic_time(),
    case Begin < Until orelse Count =:= 0 of
        true ->
            ok = atoll_bench_names_system:give(Here, {Batch, Caller, Count + 1}, Named),
            Ns = erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, nanosecond),
            ok = atoll_histogram:record(Ns, Hist),
            naming(Here, Of, Until, Hist, Count + 1);
        false ->
            Count
    end.

%% The process that all which has names of a batch is linked to.
keeper(Here, Batch, Begin) ->
    Self = self(),
    Tag = make_ref(),
    Pid = spawn(fun() ->
        true = erlang:register(name_of_keeper(Batch), self()),
        Self ! Tag,
        _ = Begin(),
        receive
            {forget, From, Asked, Counts} ->
                lists:foreach(
                    fun(Name) -> ok = atoll_bench_names_system:take(Here, Name) end,
                    names(Batch, [{node(), Counts}], every)
                ),
                From ! Asked,
                %% All that is linked ends too.
                true = exit(self(), shutdown)
        end
    end),
    receive
        Tag -> Pid
    end.

name_of_keeper({probe, _Node}) -> atoll_bench_names_probe;
name_of_keeper({round, _Number}) -> atoll_bench_names_round.

names(Batch, Registered, Which) ->
    [
        {Batch, {Node, Caller}, Number}
     || {Node, Counts} <- Registered,
        {Caller, Count} <- lists:zip(lists:seq(1, length(Counts)), Counts),
        Number <- lists:seq(case Which of every -> 1; last -> Count end, Count)
    ].

%% @doc Waits until the names of a batch that concern this node can be looked up here:
%% every one, or the last of each caller.
-spec see(system(), batch(), registered(), every | last, Ms :: pos_integer()) -> ok | {unseen, pos_integer()}.
see(System, Batch, Registered, Which, Ms) ->
    Here = atoll_bench_names_system:here(System),
    CoMembers = atoll_bench_names_system:co_members(Here),
    Names = names(Batch, [R || {Node, _} = R <- Registered, lists:member(Node, CoMembers)], Which),
    seeing(Here, Names, erlang:monotonic_time(millisecond) + Ms).

%% They come in about this order, so the first that is missing is looked at again.
seeing(_Here, [], _Deadline) ->
    ok;
seeing(Here, [Name | Names] = All, Deadline) ->
    case is_pid(atoll_bench_names_system:whereis(Here, Name)) of
        true ->
            seeing(Here, Names, Deadline);
        false ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    receive
                    after ?SEE_MS -> seeing(Here, All, Deadline)
                    end;
                false ->
                    {unseen, length(All)}
            end
    end.

%% @doc Registers so many names more, one after the other, and has every node that is to
%% see a name say so. How long that took for each, in milliseconds.
-spec visible(system(), batch(), Count :: pos_integer()) -> [float()].
visible(System, Batch, Count) ->
    Here = atoll_bench_names_system:here(System),
    CoMembers = lists:delete(node(), atoll_bench_names_system:co_members(Here)),
    Refs = [{monitor(process, {?WATCH, Node}), Node} || Node <- CoMembers],
    Times = [seen_by(Refs, System, Here, {Batch, visible, Number}) || Number <- lists:seq(1, Count)],
    lists:foreach(fun({Ref, _}) -> true = demonitor(Ref, [flush]) end, Refs),
    Times.

seen_by(Refs, System, Here, Name) ->
    Named = spawn(timer, sleep, [infinity]),
    Begin = erlang:monotonic_time(),
    ok = atoll_bench_names_system:give(Here, Name, Named),
    lists:foreach(fun({Ref, Node}) -> {?WATCH, Node} ! {see, self(), Ref, System, Name} end, Refs),
    lists:foreach(
        fun({Ref, _}) ->
            receive
                Ref -> ok;
                {'DOWN', Ref, process, _, Reason} -> exit(Reason)
            end
        end,
        Refs
    ),
    Ms = erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, microsecond) / 1000,
    ok = atoll_bench_names_system:take(Here, Name),
    true = exit(Named, kill),
    Ms.

watch() ->
    receive
        {see, From, Ref, System, Name} ->
            ok = seeing(atoll_bench_names_system:here(System), [Name], erlang:monotonic_time(millisecond) + ?EXTRA_MS),
            From ! Ref,
            watch()
    end.

%% @doc How long a look-up of the names of this node takes, and a bare read.
-spec look_up(system(), batch(), registered()) -> {LookUpNs :: float(), BareNs :: float()}.
look_up(System, Batch, Registered) ->
    Names = names(Batch, [lists:keyfind(node(), 1, Registered)], every),
    atoll_bench_names_lookup:measure(atoll_bench_names_system:here(System), Names).

%% @doc Takes the names of a batch away that were registered here, if there are any.
-spec forget(system(), batch(), registered()) -> ok.
forget(_System, Batch, Registered) ->
    case lists:keyfind(node(), 1, Registered) of
        {_, Counts} -> forgotten(name_of_keeper(Batch), Counts);
        false -> ok
    end.

forgotten(Keeper, Counts) ->
    Ref = monitor(process, Keeper),
    Keeper ! {forget, self(), Ref, Counts},
    receive
        Ref -> ok;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    end,
    receive
        {'DOWN', Ref, process, _, _} -> ok
    end.

%% @doc Waits until no name of a batch can be looked up here. On any node: the others
%% hear in their own time that the names were taken away.
-spec gone(system(), batch(), Ms :: pos_integer()) -> ok | {left, pos_integer()}.
gone(System, Batch, Ms) ->
    going(atoll_bench_names_system:here(System), Batch, erlang:monotonic_time(millisecond) + Ms).

going(Here, Batch, Deadline) ->
    case [Name || {B, _, _} = Name <- atoll_bench_names_system:names(Here), B =:= Batch] of
        [] ->
            ok;
        Left ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    receive
                    after ?GONE_MS -> going(Here, Batch, Deadline)
                    end;
                false ->
                    {left, length(Left)}
            end
    end.
