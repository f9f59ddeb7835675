%% @doc Simulations side by side. One world runs in one process, so the other cores are for
%% other seeds: as many at a time as there are schedulers, and memory for.
-module(atoll_sim_parallel).

-export([map/2, map/3]).

-export_type([options/0]).

-type options() :: #{
    %% What one takes of memory at most. Where the system says how much it has left, no more
    %% run at a time than that is enough for, but always one.
    bytes => pos_integer()
}.

%% @doc The same as map/3, without a bound on memory.
-spec map(fun((Input) -> Result), [Input]) -> [Result].
map(Fun, Inputs) ->
    map(Fun, Inputs, #{}).

%% @doc What Fun gives for each, in their order. Each runs in a process with a heap for a
%% world ({@link atoll_sim_cluster:isolated/1}); as one ends the next begins. If one fails so
%% does the caller, and the others end with it.
-spec map(fun((Input) -> Result), [Input], options()) -> [Result].
map(Fun, Inputs, Options) ->
    Numbered = lists:zip(lists:seq(1, length(Inputs)), Inputs),
    Results = fill(places(Options), Fun, Numbered, #{}, #{}),
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
    {Pid, Ref} = spawn_monitor(fun() -> exit({result, atoll_sim_cluster:isolated(fun() -> Fun(Input) end)}) end),
    fill(Places, Fun, Inputs, Running#{Ref => {N, Pid}}, Results);
fill(_Places, _Fun, [], Running, Results) when map_size(Running) =:= 0 ->
    Results;
fill(Places, Fun, Inputs, Running, Results) ->
    receive
        {'DOWN', Ref, process, _, {result, Result}} when is_map_key(Ref, Running) ->
            {{N, _}, Left} = maps:take(Ref, Running),
            fill(Places, Fun, Inputs, Left, Results#{N => Result});
        {'DOWN', Ref, process, _, Reason} when is_map_key(Ref, Running) ->
            lists:foreach(
                fun({Other, {_, Pid}}) ->
                    true = erlang:demonitor(Other, [flush]),
                    exit(Pid, kill)
                end,
                maps:to_list(maps:remove(Ref, Running))
            ),
            exit(Reason)
    end.
