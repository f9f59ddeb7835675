%% SPDX-License-Identifier: Apache-2.0
%% @doc What the emulator of a node counts of itself during a run: what part of the work of its schedulers was garbage collection
%% (`erlang:statistics(microstate_accounting)'), and where it waited for locks, if it is one that counts them (`erl -emu_type lcnt').
%% `collecting/2' and `locks/1' are pure.
%%
%% Counting the states of schedulers is switched on for the run, and off again at its end, also when this VM is no more; where it was on
%% it stays on. Of a node that does not answer nothing is known.
-module(atoll_scale_emulator).

-export([start/1, stop/1, collecting/2, locks/1]).

-export_type([counting/0, counted/0, lock/0]).

-type counting() :: #{node := node(), first := states(), keeper := pid() | none, has_locks := boolean()}.

-type counted() :: #{
    %% of the time that schedulers were at work
    collecting := float() | none,
    %% those that were waited for longest; none if the emulator does not count them
    locks := [lock()] | none
}.

%% How long was waited for locks of that name, all together, as a share of the time of the run; how often, of how many times that they were taken.
-type lock() :: #{name := binary(), share := float(), collisions := non_neg_integer(), tries := non_neg_integer()}.

-type states() :: [#{type := atom(), counters := #{atom() => non_neg_integer()}, _ => _}].

-define(ASK_MS, 3000).
-define(SHOWN, 3).
-define(KINDS, [scheduler, dirty_cpu_scheduler]).
%% Runs there, on OTP alone.
-define(KEEP, "true = erlang:monitor_node(Node, true), receive {nodedown, Node} -> ok; stop -> ok end, erlang:system_flag(microstate_accounting, false).").

%% @doc Begins to count.
-spec start(node()) -> counting().
start(Node) ->
    Keeper = case asked(Node, erlang, system_flag, [microstate_accounting, true]) of {ok, false} -> keeper(Node); _ -> none end,
    HasLocks = asked(Node, erlang, system_info, [emu_type]) =:= {ok, lcnt},
    _ = [asked(Node, erts_debug, lock_counters, [clear]) || HasLocks],
    #{node => Node, first => states(Node), keeper => Keeper, has_locks => HasLocks}.

keeper(Node) ->
    {ok, Tokens, _} = erl_scan:string(?KEEP),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    spawn(Node, erl_eval, exprs, [Expressions, [{'Node', node()}]]).

states(Node) ->
    case asked(Node, erlang, statistics, [microstate_accounting]) of
        {ok, [_ | _] = States} -> States;
        _ -> []
    end.

asked(Node, Module, Function, Args) ->
    try
        {ok, erpc:call(Node, Module, Function, Args, ?ASK_MS)}
    catch
        error:{erpc, _} -> error;
        error:{exception, _, _} -> error
    end.

%% @doc What was counted.
-spec stop(counting()) -> counted().
stop(#{node := Node, first := First, keeper := Keeper, has_locks := HasLocks}) ->
    Counted = #{
        collecting => collecting(First, states(Node)),
        locks => case HasLocks andalso asked(Node, erts_debug, lock_counters, [info]) of {ok, Data} -> locks(Data); _ -> none end
    },
    ok = kept(Keeper),
    Counted.

%% The next run finds it off.
kept(none) -> ok;
kept(Keeper) ->
    Ref = monitor(process, Keeper),
    Keeper ! stop,
    receive {'DOWN', Ref, process, Keeper, _} -> ok after ?ASK_MS -> true = demonitor(Ref, [flush]), ok end.

%% @doc The share of garbage collection in the work between two looks.
-spec collecting(states(), states()) -> float() | none.
collecting(First, Last) ->
    Grown = fun(States) -> lists:sum([N || #{type := Type, counters := Counters} <- Last, lists:member(Type, ?KINDS), {State, N} <- maps:to_list(Counters), States(State)])
        - lists:sum([N || #{type := Type, counters := Counters} <- First, lists:member(Type, ?KINDS), {State, N} <- maps:to_list(Counters), States(State)]) end,
    case Grown(fun(State) -> State =/= sleep end) of
        Work when First =/= [], Work > 0 -> Grown(fun is_collection/1) / Work;
        _ -> none
    end.

%% An emulator with more states has two of them.
is_collection(State) -> State =:= gc orelse State =:= gc_full.

%% @doc The locks that were waited for longest, of what `erts_debug:lock_counters(info)' says.
-spec locks([{duration | locks, term()}]) -> [lock()].
locks(Data) ->
    {duration, {Seconds, Nanoseconds}} = lists:keyfind(duration, 1, Data),
    {locks, Locks} = lists:keyfind(locks, 1, Data),
    Ns = max(1, Seconds * 1_000_000_000 + Nanoseconds),
    ByName = lists:foldl(
        fun({Name, _Id, _Type, Stats}, All) ->
            lists:foldl(fun(Stat, Acc) ->
                %% {{File, Line}, {Tries, Collisions, {Seconds, Nanoseconds, Waits}}, Histogram}
                {Tries, Collisions, {S, N, _}} = element(2, Stat),
                maps:update_with(Name, fun({A, B, C}) -> {A + Tries, B + Collisions, C + S * 1_000_000_000 + N} end, {Tries, Collisions, S * 1_000_000_000 + N}, Acc)
            end, All, Stats)
        end, #{}, Locks),
    Longest = lists:sublist(lists:reverse(lists:sort([{Waited, Name, Tries, Collisions} || {Name, {Tries, Collisions, Waited}} <- maps:to_list(ByName), Waited > 0])), ?SHOWN),
    [#{name => called(Name), share => Waited / Ns, collisions => Collisions, tries => Tries} || {Waited, Name, Tries, Collisions} <- Longest].

called(Name) -> unicode:characters_to_binary(io_lib:format("~0tp", [Name])).
