%% SPDX-License-Identifier: Apache-2.0
%% @doc One queue for all jobs: so many at once, each in a place of its own that it shares
%% with none beside it. A place may have some jobs that it takes before others. What runs a job, and what hears of its
%% end, are the caller's.
-module(atoll_test_queue).

-export([run/4]).
%% For spawn_monitor/3.
-export([work/3]).

%% How many places there are, or which jobs each of them takes before all others.
-type places(Job) :: pos_integer() | [fun((Job) -> boolean()), ...].

%% @doc Runs all, and gives their results in the order in which they ended. A place that is free
%% takes the first of its own jobs, or else the first of all. `Run' is called in a process of its own for each, with the
%% number of its place; `Ended' in the caller, with the job, its result, and how many are left. A
%% `Run' that crashes crashes the caller.
-spec run([Job], places(Job), fun((Job, Place :: pos_integer()) -> Result), fun((Job, Result, non_neg_integer()) -> term())) ->
    [{Job, Result}].
run(Jobs, Many, Run, Ended) when is_integer(Many) ->
    run(Jobs, lists:duplicate(Many, fun(_) -> true end), Run, Ended);
run(Jobs, Firsts, Run, Ended) ->
    loop(Jobs, lists:zip(lists:seq(1, length(Firsts)), Firsts), #{}, Run, Ended, []).

loop([], _Free, Running, _Run, _Ended, Results) when map_size(Running) =:= 0 ->
    lists:reverse(Results);
loop([_ | _] = Jobs, [{Number, IsFirst} = Place | Free], Running, Run, Ended, Results) ->
    Job = next(IsFirst, Jobs),
    {_, Ref} = spawn_monitor(?MODULE, work, [Run, Job, Number]),
    loop(lists:delete(Job, Jobs), Free, Running#{Ref => {Job, Place}}, Run, Ended, Results);
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

next(IsFirst, [Job | _] = Jobs) ->
    case lists:search(IsFirst, Jobs) of
        {value, Own} -> Own;
        false -> Job
    end.

%% @private
-spec work(fun((Job, Place :: pos_integer()) -> _), Job, pos_integer()) -> no_return().
work(Run, Job, Place) -> exit({result, Run(Job, Place)}).
