%% SPDX-License-Identifier: Apache-2.0
%% @doc Simulations side by side. One world runs in one process, so the other cores are for
%% other seeds: as many at a time as there are schedulers, and memory for.
-module(atoll_sim_parallel).

-export([map/2, map/3]).

-export_type([options/0]).

-type options() :: #{
    %% What one takes of memory at most. Where the system says how much it has left, no more
    %% run at a time than that is enough for, but always one.
    bytes => pos_integer(),
    %% How large one is: see atoll_sim_cluster:isolated/2.
    nodes => pos_integer(),
    roster => map() | off
}.

%% @doc The same as map/3, without a bound on memory.
-spec map(fun((Input) -> Result), [Input]) -> [Result].
map(Fun, Inputs) ->
    map(Fun, Inputs, #{}).

%% @doc What Fun gives for each, in their order. Each runs in a process with a heap for a
%% world ({@link atoll_sim_cluster:isolated/2}); as one ends the next begins. If one fails so
%% does the caller, and the others end with it.
-spec map(fun((Input) -> Result), [Input], options()) -> [Result].
map(Fun, Inputs, Options) ->
    Numbered = lists:zip(lists:seq(1, length(Inputs)), Inputs),
    Isolated = fun(Input) -> atoll_sim_cluster:isolated(fun() -> Fun(Input) end, Options) end,
    Results = fill(places(Options), Isolated, Numbered, #{}, #{}),
    [map_get(N, Results) || {N, _} <- Numbered].

places(Options) ->
    Schedulers = erlang:system_info(schedulers_online),
    case {Options, available()} of
        {#{bytes := Bytes}, Available} when is_integer(Available) -> max(1, min(Schedulers, Available div Bytes));
        {#{}, _} -> Schedulers
    end.

%% Linux says what can be had without swapping.
available() ->
    case file:read_file("/proc/meminfo") of
        {ok, Lines} ->
            case re:run(Lines, "MemAvailable: +([0-9]+) kB", [{capture, [1], list}]) of
                {match, [KiB]} -> list_to_integer(KiB) * 1024;
                nomatch -> unknown
            end;
        {error, _} ->
            unknown
    end.

fill(Places, Fun, [{N, Input} | Inputs], Running, Results) when map_size(Running) < Places ->
    Caller = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Caller ! {?MODULE, self(), Fun(Input)}
    end),
    fill(Places, Fun, Inputs, Running#{Pid => {N, Ref}}, Results);
fill(_Places, _Fun, [], Running, Results) when map_size(Running) =:= 0 ->
    Results;
fill(Places, Fun, Inputs, Running, Results) ->
    receive
        {?MODULE, Pid, Result} when is_map_key(Pid, Running) ->
            {{N, Ref}, Left} = maps:take(Pid, Running),
            true = erlang:demonitor(Ref, [flush]),
            fill(Places, Fun, Inputs, Left, Results#{N => Result});
        {'DOWN', _, process, Failed, Reason} when is_map_key(Failed, Running) ->
            lists:foreach(
                fun({Pid, {_, Ref}}) ->
                    true = erlang:demonitor(Ref, [flush]),
                    exit(Pid, kill)
                end,
                maps:to_list(maps:remove(Failed, Running))
            ),
            exit(Reason)
    end.
