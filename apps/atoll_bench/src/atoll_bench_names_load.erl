%% @doc The load of the benchmark {@link atoll_bench_names}, on its nodes. A name is
%% `{Batch, Caller, Number}'; a caller keeps its names until its batch is forgotten.
-module(atoll_bench_names_load).

-export([begin_with/1, register/4, see/4, forget/2, gone/3]).

-export_type([system/0, batch/0]).

-type system() :: global | pg.
-type batch() :: {probe, node()} | {round, pos_integer()}.

-define(SCOPE, ?MODULE).
-define(EXTRA_MS, 30000).

%% @doc What the system needs on this node.
-spec begin_with(system()) -> ok.
begin_with(global) ->
    %% Names are only given out when this node and the others are in one mesh.
    ok = global:sync();
begin_with(pg) ->
    {ok, Pid} = pg:start(?SCOPE),
    %% It was linked to the process of this call, which is about to end.
    true = unlink(Pid),
    ok.

%% @doc Callers register names until the time is over, each at least one. How many
%% each has registered, how long that took, and how long each took.
-spec register(system(), batch(), Callers :: pos_integer(), Ms :: non_neg_integer()) ->
    {Counts :: [pos_integer()], Us :: pos_integer(), atoll_bench_hist:export()}.
register(System, Batch, Callers, Ms) ->
    Hist = atoll_bench_hist:new(),
    Begin = erlang:monotonic_time(),
    Until = Begin + erlang:convert_time_unit(Ms, millisecond, native),
    Self = self(),
    Tag = make_ref(),
    Keeper = spawn(fun() ->
        true = erlang:register(keeper(Batch), self()),
        Callings = [
            spawn_link(fun() ->
                Count = naming(System, Batch, Caller, Until, Hist, 0),
                Self ! {Tag, Caller, Count},
                keep(System, Batch, Caller, Count)
            end)
         || Caller <- lists:seq(1, Callers)
        ],
        keeping(Callings)
    end),
    Ref = monitor(process, Keeper),
    Counts = [counted(Tag, Caller, Ref, Ms + ?EXTRA_MS) || Caller <- lists:seq(1, Callers)],
    true = demonitor(Ref, [flush]),
    Us = erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, microsecond),
    {Counts, Us, atoll_bench_hist:export(Hist)}.

counted(Tag, Caller, Ref, Ms) ->
    receive
        {Tag, Caller, Count} -> Count;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    after Ms -> exit({late, Caller})
    end.

%% Each name is another process's, which is there for that alone and ends with the
%% caller: global gives a process one name.
naming(System, Batch, Caller, Until, Hist, Count) ->
    Named = spawn_link(timer, sleep, [infinity]),
    Begin = erlang:monotonic_time(),
    case Begin < Until orelse Count =:= 0 of
        true ->
            ok = name(System, {Batch, Caller, Count + 1}, Named),
            Ns = erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, nanosecond),
            ok = atoll_bench_hist:record(Ns, Hist),
            naming(System, Batch, Caller, Until, Hist, Count + 1);
        false ->
            Count
    end.

name(global, Name, Named) ->
    yes = global:register_name(Name, Named),
    ok;
name(pg, Name, Named) ->
    pg:join(?SCOPE, Name, Named).

%% Asked to, a caller takes its names away: from global itself, since for processes
%% that end nobody would know when that is done.
keep(System, Batch, Caller, Count) ->
    receive
        {forget, From, Tag} ->
            ok = unname(System, Batch, Caller, Count),
            From ! {Tag, self()},
            true = unlink(From),
            %% What has the names is linked, and ends too.
            true = exit(self(), shutdown)
    end.

unname(global, Batch, Caller, Count) ->
    lists:foreach(fun(N) -> global:unregister_name({Batch, Caller, N}) end, lists:seq(1, Count));
unname(pg, _Batch, _Caller, _Count) ->
    ok.

keeping(Callings) ->
    receive
        {forget, From, Tag} ->
            Refs = [monitor(process, Pid) || Pid <- Callings],
            _ = [Pid ! {forget, self(), Tag} || Pid <- Callings],
            _ = [receive {Tag, Pid} -> ok end || Pid <- Callings],
            _ = [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Refs],
            From ! Tag
    end.

%% @doc Waits until all names of a batch can be looked up here.
-spec see(system(), batch(), Counts :: [pos_integer()], Ms :: pos_integer()) -> ok | {unseen, pos_integer()}.
see(System, Batch, Counts, Ms) ->
    Callers = lists:zip(lists:seq(1, length(Counts)), Counts),
    Names = [{Batch, Caller, N} || {Caller, Count} <- Callers, N <- lists:seq(1, Count)],
    seeing(System, Names, erlang:monotonic_time(millisecond) + Ms).

%% They come in about this order, so the first that is missing is looked at again.
seeing(_System, [], _Deadline) ->
    ok;
seeing(System, [Name | Names] = All, Deadline) ->
    case is_seen(System, Name) of
        true ->
            seeing(System, Names, Deadline);
        false ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    %% Neither system tells of a name that has come.
                    receive
                    after 1 -> seeing(System, All, Deadline)
                    end;
                false ->
                    {unseen, length(All)}
            end
    end.

is_seen(global, Name) -> is_pid(global:whereis_name(Name));
is_seen(pg, Name) -> pg:get_members(?SCOPE, Name) =/= [].

%% @doc Takes the names of a batch away. On the node that registered them.
-spec forget(system(), batch()) -> ok.
forget(_System, Batch) ->
    Keeper = keeper(Batch),
    Ref = monitor(process, Keeper),
    Keeper ! {forget, self(), Ref},
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
    going(System, Batch, erlang:monotonic_time(millisecond) + Ms).

going(System, Batch, Deadline) ->
    case [Name || {B, _, _} = Name <- names(System), B =:= Batch] of
        [] ->
            ok;
        Left ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    %% Neither system tells of a name that has gone.
                    receive
                    after 1 -> going(System, Batch, Deadline)
                    end;
                false ->
                    {left, length(Left)}
            end
    end.

names(global) -> global:registered_names();
names(pg) -> pg:which_groups(?SCOPE).

keeper({probe, _Node}) -> atoll_bench_names_probe;
keeper({round, _Number}) -> atoll_bench_names_round.
