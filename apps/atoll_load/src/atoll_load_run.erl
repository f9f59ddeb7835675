%% SPDX-License-Identifier: Apache-2.0
%% @doc The workers of a load, in the VM that calls: from the start of all of them to the end of the last. When operations begin says {@link atoll_bench_pace}.
%%
%% What has not ended ten seconds after the time is over is an error `unfinished', and its worker is killed. All workers end with the caller.
-module(atoll_load_run).

-export([run/2, part/3]).

-export_type([ended/0]).

%% A worker ends by exit, with why.
-dialyzer({nowarn_function, [begun/2, worker/4]}).

-type ended() :: whole | {stopped, Reason :: term()}.
%% `stopped': by a worker, at an error.

-define(GRACE_MS, 10_000).
-define(AHEAD_MS, 20).

%% @doc Runs it; what it came to after each interval. `Settings' are the driver's, as it has prepared them.
-spec run(atoll_load_config:config(), #{atom() => term()}) -> {ok, [atoll_bench_window:look(), ...], ended()} | {error, unicode:chardata()}.
run(#{concurrent := Count, offered_load := Rate} = Config, Settings) -> run(lists:seq(1, Count), Rate, Config, Settings).

%% @doc On each of several nodes: its part of the workers and of the operations. Where one is stopped by an error, all are.
-spec part([node(), ...], atoll_load_config:config(), #{atom() => term()}) -> {ok, [atoll_bench_window:look(), ...], ended()} | {error, unicode:chardata()}.
part(Nodes, #{concurrent := Count, offered_load := Rate} = Config, Settings) ->
    true = register(?MODULE, self()),
    Others = length(lists:takewhile(fun(Node) -> Node =/= node() end, Nodes)),
    Own = fun(N) -> (N - 1) rem length(Nodes) =:= Others end,
    Rated = case Rate of closed -> closed; _ -> length([N || N <- lists:seq(1, Rate), Own(N)]) end,
    Said = run([Id || Id <- lists:seq(1, Count), Own(Id)], Rated, Config, Settings),
    _ = [{?MODULE, Node} ! stop || {ok, _, {stopped, _}} <- [Said], Node <- Nodes, Node =/= node()],
    true = unregister(?MODULE),
    Said.

run([First | _] = Ids, Rate, #{operations := Operations, value_generator := Value, duration := Minutes, report_interval := Interval, code_paths := Paths} = Config, Settings) ->
    ok = code:add_pathsz(Paths),
    Tally = atoll_load_tally:new([Label || {Label, _, _} <- Operations]),
    {A, B, C} = Seed = seed(Config),
    _ = rand:seed(exsss, {A, B, C}),
    Shared = Config#{settings := Settings, tally => Tally, seed => Seed, value => atoll_load_keys:value(Value)},
    ok = hook(First, pre_hook, Config),
    Workers = maps:from_list([begin {Pid, Ref} = begun(Id, Shared), {Ref, Pid} end || Id <- Ids]),
    case ready(maps:to_list(Workers)) of
        ok ->
            StartMs = erlang:monotonic_time(millisecond) + ?AHEAD_MS,
            UntilMs = max(1, round(60_000 * Minutes)),
            Pace = atoll_bench_pace:new(#{rate => Rate, start_ns => StartMs * 1_000_000, from_ms => 0, until_ms => UntilMs}),
            _ = [Pid ! {begin_at, Pace} || Pid <- maps:values(Workers)],
            {Looks, Ended} = watched(Workers, StartMs, UntilMs, max(1, round(1000 * Interval)), Tally),
            ok = hook(First, post_hook, Config),
            {ok, Looks, Ended};
        {error, Why} ->
            _ = [exit(Pid, kill) || Pid <- maps:values(Workers)],
            {error, io_lib:format("A worker does not start: ~0tP", [Why, 20])}
    end.

%% Once, where the first worker is.
hook(1, Which, Config) ->
    _ = case maps:get(Which, Config) of
        none -> ok;
        {Module, Function} -> Module:Function()
    end,
    ok;
hook(_, _, _) ->
    ok.

seed(#{rng_seed := now}) -> {erlang:phash2(make_ref()), erlang:phash2(self()), erlang:unique_integer([positive])};
seed(#{rng_seed := Seed}) -> Seed.

%% Not linked: a worker that ends says why by that, and must not take the caller along.
begun(Id, #{seed := {A, B, C}} = Shared) ->
    Owner = self(),
    spawn_monitor(fun() ->
        Guard = monitor(process, Owner),
        %% A worker may wait in its driver when the caller ends.
        Self = self(),
        _ = spawn(fun() ->
            Of = monitor(process, Self),
            On = monitor(process, Owner),
            receive
                {'DOWN', Of, process, _, _} -> ok;
                {'DOWN', On, process, _, _} -> exit(Self, kill)
            end
        end),
        _ = rand:seed(exsss, {A, B, C + Id}),
        worker(Id, Owner, Guard, Shared)
    end).

worker(Id, Owner, Guard, #{driver := Driver, settings := Settings, concurrent := Count, key_generator := Key, value := Value, operations := Operations} = Shared) ->
    case atoll_load_driver:new(Driver, Id, Settings) of
        {ok, State} ->
            All = lists:append([lists:duplicate(Weight, {Label, Operation}) || {Label, Operation, Weight} <- lowered(Operations)]),
            Work = #{operations => list_to_tuple(All), key => atoll_load_keys:key(Key, {Id, Count}), value => Value(Id)},
            _ = Owner ! {ready, self()},
            receive
                {begin_at, Pace} -> exit(turns(Work#{pace => Pace}, State, Shared));
                {'DOWN', Guard, process, _, _} -> exit(normal)
            end;
        {error, Why} -> exit({not_new, Why})
    end.

%% Weights of which none is larger than it has to be, so that a draw is an element.
lowered(Operations) ->
    Common = lists:foldl(fun({_, _, Weight}, All) -> gcd(Weight, All) end, 0, Operations),
    [{Label, Operation, Weight div Common} || {Label, Operation, Weight} <- Operations].

gcd(A, 0) -> A;
gcd(A, B) -> gcd(B, A rem B).

turns(#{pace := Pace} = Work, State, #{driver := Driver, tally := Tally, mode := Mode} = Shared) ->
    ok = paused(Mode),
    case atoll_bench_pace:next(Pace) of
        over ->
            ok = atoll_load_driver:terminate(Driver, normal, State),
            normal;
        {shed, _} ->
            ok = atoll_load_tally:shed(Tally),
            turns(Work, State, Shared);
        {'begin', Intended, _} ->
            case turn(Intended, Work, State, Shared) of
                {go_on, Now} -> turns(Work, Now, Shared);
                {stop, Reason, Now} ->
                    ok = atoll_load_driver:terminate(Driver, Reason, Now),
                    {stopped, Reason}
            end
    end.

%% Exponential, so that so many begin in a second on average.
paused(max) -> ok;
paused({rate, N}) ->
    receive after round(-math:log(1 - rand:uniform()) * 1000 / N) -> ok end.

turn(Intended, #{operations := Operations, key := Key, value := Value}, State, #{driver := Driver, tally := Tally, shutdown_on_error := Stops}) ->
    {Label, Operation} = element(rand:uniform(tuple_size(Operations)), Operations),
    _ = put(label, {Label, Intended}),
    {Said, Now} = atoll_load_driver:run(Driver, Operation, Key, Value, State),
    _ = erase(label),
    Ns = max(0, erlang:monotonic_time(nanosecond) - Intended),
    case Said of
        ok ->
            ok = atoll_load_tally:ok(Label, Ns, Tally),
            {go_on, Now};
        silent -> {go_on, Now};
        {error, Reason} ->
            ok = atoll_load_tally:failed(Label, Reason, Ns, Tally),
            case Stops of true -> {stop, Reason, Now}; false -> {go_on, Now} end;
        {stop, Reason} -> {stop, Reason, Now}
    end.

ready([]) -> ok;
ready([{Ref, Pid} | Workers]) ->
    receive
        {ready, Pid} -> ready(Workers);
        {'DOWN', Ref, process, Pid, Why} -> {error, Why}
    end.

%% A look after each interval, and one when the last has ended.
watched(Workers, StartMs, UntilMs, Interval, Tally) ->
    Over = erlang:start_timer(StartMs + UntilMs + ?GRACE_MS, self(), grace, [{abs, true}]),
    watched(Workers, StartMs, StartMs + UntilMs, StartMs + Interval, Interval, Tally, Over, [], whole).

watched(Workers, StartMs, _, _, _, Tally, Over, Looks, Ended) when map_size(Workers) =:= 0 ->
    _ = erlang:cancel_timer(Over),
    receive {timeout, Over, grace} -> ok after 0 -> ok end,
    {lists:reverse([look(StartMs, Tally) | Looks]), Ended};
watched(Workers, StartMs, EndMs, NextMs, Interval, Tally, Over, Looks, Ended) ->
    Wait = case NextMs < EndMs of true -> max(0, NextMs - erlang:monotonic_time(millisecond)); false -> infinity end,
    receive
        {'DOWN', Ref, process, _, Why} when is_map_key(Ref, Workers) ->
            Left = maps:remove(Ref, Workers),
            case Why of
                normal -> watched(Left, StartMs, EndMs, NextMs, Interval, Tally, Over, Looks, Ended);
                {stopped, _} ->
                    ok = killed(Left),
                    watched(#{}, StartMs, EndMs, NextMs, Interval, Tally, Over, Looks, Why);
                _ ->
                    _ = [exit(Pid, kill) || Pid <- maps:values(Left)],
                    exit({worker, Why})
            end;
        {timeout, Over, grace} ->
            _ = [unfinished(Pid, Tally) || Pid <- maps:values(Workers)],
            ok = killed(Workers),
            watched(#{}, StartMs, EndMs, NextMs, Interval, Tally, Over, Looks, Ended);
        stop ->
            ok = killed(Workers),
            watched(#{}, StartMs, EndMs, NextMs, Interval, Tally, Over, Looks, Ended)
    after Wait ->
        watched(Workers, StartMs, EndMs, NextMs + Interval, Interval, Tally, Over, [look(StartMs, Tally) | Looks], Ended)
    end.

unfinished(Pid, Tally) ->
    _ = case process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            case lists:keyfind(label, 1, Dictionary) of
                {label, {Label, Intended}} -> atoll_load_tally:failed(Label, unfinished, max(0, erlang:monotonic_time(nanosecond) - Intended), Tally);
                false -> ok
            end;
        undefined -> ok
    end.

killed(Workers) ->
    _ = [exit(Pid, kill) || Pid <- maps:values(Workers)],
    _ = [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- maps:keys(Workers)],
    ok.

look(StartMs, Tally) -> atoll_load_tally:look(max(1, erlang:monotonic_time(millisecond) - StartMs), Tally).
