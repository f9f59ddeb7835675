%% SPDX-License-Identifier: Apache-2.0
%% @doc One queue for all jobs: so many at once, each in a place of its own that it shares
%% with none beside it. What runs a job, and what hears of its end, are the caller's.
-module(atoll_test_queue).

-export([run/4]).
%% For spawn_monitor/3.
-export([work/3]).

%% @doc Runs all, in their order, and gives their results in the order in which they ended.
%% `Run' is called in a process of its own for each, with the number of its place; `Ended'
%% in the caller, with the job, its result, and how many are left. A `Run' that crashes
%% crashes the caller.
-spec run([Job], Places :: pos_integer(), fun((Job, Place :: pos_integer()) -> Result), fun((Job, Result, non_neg_integer()) -> term())) ->
    [{Job, Result}].
run(Jobs, Places, Run, Ended) ->
    loop(Jobs, lists:seq(1, Places), #{}, Run, Ended, []).

loop([], _Free, Running, _Run, _Ended, Results) when map_size(Running) =:= 0 ->
    lists:reverse(Results);
loop([Job | Jobs], [Place | Free], Running, Run, Ended, Results) ->
    {_, Ref} = spawn_monitor(?MODULE, work, [Run, Job, Place]),
    loop(Jobs, Free, Running#{Ref => {Job, Place}}, Run, Ended, Results);
loop(Jobs, Free, Running, Run, Ended, Results) ->
    receive
        {'DOWN', Ref, process, _, Reason} when is_map_key(Ref, Running) ->
            {{Job, Place}, Others} = maps:take(Ref, Running),
            case Reason of
                {result, Result} ->
                    _ = Ended(Job, Result, length(Jobs) + map_size(Others)),
                    loop(Jobs, [Place | Free], Others, Run, Ended, [{Job, Result} | Results]);
                _ ->
                    error({job, Job, Reason})
            end
    end.

%% @private
-spec work(fun((Job, Place :: pos_integer()) -> _), Job, pos_integer()) -> no_return().
work(Run, Job, Place) -> exit({result, Run(Job, Place)}).
