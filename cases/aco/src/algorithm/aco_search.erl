%% SPDX-License-Identifier: Apache-2.0
%% @doc Local search: makes an order better, step by step, until no step of its
%% kind makes it better.
%%
%%   none  leaves it as it is
%%   o1    interchange: any two jobs change places
%%   o2    insertion: any job goes to any other place
%%   o12   o1 until it finds nothing, then o2, and again, until neither does
%%         (variable neighbourhood descent); o21 the other way round
%%
%% A pass goes along the order once and takes at each place the best step for
%% the job that stands there. The order is held open at that place: the jobs
%% before it, the nearest first, and the jobs after it. A step changes nothing
%% outside of the places between which it happens, so what it would change in
%% the cost is added up along the way from the open place, without making the
%% new order: an insertion takes one addition for each place it goes, an
%% interchange one for each job between the two, and is given up as soon as
%% nothing that may still come can make it better than the best found.
-module(aco_search).

-export([names/0, run/3]).

-export_type([search/0]).

-type search() :: none | o1 | o2 | o12 | o21.

%% One neighbourhood.
-type step() :: interchange | insertion.

%% The job at the open place.
-record(open, {
    begins :: non_neg_integer(),
    duration :: pos_integer(),
    weight :: non_neg_integer(),
    due :: non_neg_integer(),
    %% what it costs now
    cost :: aco_schedule:cost(),
    %% the jobs after it
    later :: [aco_problem:job()]
}).

%% @doc The searches that there are.
-spec names() -> [search(), ...].
names() -> [none, o1, o2, o12, o21].

%% @doc Searches from a solution on to a local optimum.
-spec run(search(), aco_schedule:solution(), aco_problem:problem()) -> aco_schedule:solution().
run(none, Solution, _) ->
    Solution;
run(Search, {Cost, Order}, Problem) ->
    Jobs = [aco_problem:job(Number, Problem) || Number <- Order],
    {Gain, Best} = descend(steps(Search), Jobs, 0),
    {Cost + Gain, [Number || {Number, _, _, _} <- Best]}.

-spec steps(search()) -> [step(), ...].
steps(o1) -> [interchange];
steps(o2) -> [insertion];
steps(o12) -> [interchange, insertion];
steps(o21) -> [insertion, interchange].

%% A gain is what is added to the cost: never more than 0.
descend(Steps, Jobs, Gain) ->
    case lists:foldl(fun exhaust/2, {0, Jobs}, Steps) of
        {0, _} -> {Gain, Jobs};
        {More, Better} -> descend(Steps, Better, Gain + More)
    end.

exhaust(Step, {Gain, Jobs}) ->
    case pass(Step, Jobs) of
        {0, _} -> {Gain, Jobs};
        {More, Better} -> exhaust(Step, {Gain + More, Better})
    end.

pass(interchange, Jobs) -> interchange([], 0, Jobs, 0);
pass(insertion, Jobs) -> insertion([], 0, Jobs, 0).

%% The jobs before, when the next one begins, the jobs from here on, and the
%% gain so far.
interchange(Before, Time, [{_, Duration, Weight, Due} = Job | After], Gain) ->
    Ends = Time + Duration,
    Open = #open{begins = Time, duration = Duration, weight = Weight, due = Due,
                 cost = late(Ends, Due, Weight), later = After},
    case partner(After, 1, Ends, 0, 0, none, Open) of
        {_, none} ->
            interchange([Job | Before], Ends, After, Gain);
        {More, Place} ->
            {Between, [Other | Rest]} = lists:split(Place - 1, After),
            interchange([Other | Before], Time + element(2, Other), Between ++ [Job | Rest], Gain + More)
    end;
interchange(Before, _, [], Gain) ->
    {Gain, lists:reverse(Before)}.

%% The best partner of the job at the open place among those after it. `Held'
%% is what the jobs between cost now: no more can be won of them.
partner([{_, Duration, Weight, Due} | Rest], Place, Ended, Held, Best, Found, Open) ->
    #open{begins = Begins, duration = OpenDuration, weight = OpenWeight, due = OpenDue, cost = OpenCost} = Open,
    Ends = Ended + Duration,
    Cost = late(Ends, Due, Weight),
    Shift = Duration - OpenDuration,
    Gain = late(Begins + Duration, Due, Weight) - Cost + late(Ends, OpenDue, OpenWeight) - OpenCost,
    case between(Place, Shift, Gain, Held, Best, Open) of
        Total when Total < Best -> partner(Rest, Place + 1, Ends, Held + Cost, Total, Place, Open);
        _ -> partner(Rest, Place + 1, Ends, Held + Cost, Best, Found, Open)
    end;
partner([], _, _, _, Best, Found, _) ->
    {Best, Found}.

%% The gain with what comes of the jobs between, which begin so much later; or the best so far, if it
%% cannot be better. Who begins later costs no less than now. Of who begins earlier all that it costs
%% now is counted as won first, and what it still costs comes back.
between(_, 0, Gain, _, _, _) ->
    Gain;
between(Place, Shift, Gain, Held, Best, #open{begins = Begins, duration = Duration, later = Later}) ->
    Won = case Shift > 0 of true -> 0; false -> Held end,
    moved(Place, Later, Begins + Duration, Shift, Best, Gain - Won).

moved(_, _, _, _, Best, Gain) when Gain >= Best -> Best;
moved(1, _, _, _, _, Gain) -> Gain;
moved(Left, [{_, Duration, Weight, Due} | Rest], Time, Shift, Best, Gain) ->
    Ends = Time + Duration,
    Counted = case Shift > 0 of true -> late(Ends, Due, Weight); false -> 0 end,
    moved(Left - 1, Rest, Ends, Shift, Best, Gain + late(Ends + Shift, Due, Weight) - Counted).

insertion(Before, Time, [{_, Duration, Weight, Due} = Job | After], Gain) ->
    Ends = Time + Duration,
    Cost = late(Ends, Due, Weight),
    Open = #open{begins = Time, duration = Duration, weight = Weight, due = Due, cost = Cost, later = After},
    {Least, Place} = later(After, 1, Ends, -Cost, 0, none, Open),
    case earlier(Before, -1, Time, -Cost, Least, Place, Open) of
        {_, none} ->
            insertion([Job | Before], Ends, After, Gain);
        {More, To} when To > 0 ->
            {Passed, Rest} = lists:split(To, After),
            insertion(Before, Time, Passed ++ [Job | Rest], Gain + More);
        {More, To} ->
            {Passed, Rest} = lists:split(-To, Before),
            insertion(Passed ++ [Job | Rest], Ends, After, Gain + More)
    end;
insertion(Before, _, [], Gain) ->
    {Gain, lists:reverse(Before)}.

%% The job goes behind one more of those after it, which then ends earlier by
%% the job's duration. `Gain' counts those that are passed, and the job not there.
later([{_, Duration, Weight, Due} | Rest], Place, Ended, Gain, Best, Found, Open) ->
    #open{duration = OpenDuration, weight = OpenWeight, due = OpenDue} = Open,
    Ends = Ended + Duration,
    Passed = Gain + late(Ends - OpenDuration, Due, Weight) - late(Ends, Due, Weight),
    case Passed + late(Ends, OpenDue, OpenWeight) of
        Total when Total < Best -> later(Rest, Place + 1, Ends, Passed, Total, Place, Open);
        _ -> later(Rest, Place + 1, Ends, Passed, Best, Found, Open)
    end;
later([], _, _, _, Best, Found, _) ->
    {Best, Found}.

%% The job goes before one more of those before it, which then ends later:
%% nothing is won of these, so it is over when they have used up what the job
%% itself can win.
earlier([{_, Duration, Weight, Due} | Rest], Place, Ends, Gain, Best, Found, Open) ->
    #open{duration = OpenDuration, weight = OpenWeight, due = OpenDue} = Open,
    Begins = Ends - Duration,
    Passed = Gain + late(Ends + OpenDuration, Due, Weight) - late(Ends, Due, Weight),
    case Passed + late(Begins + OpenDuration, OpenDue, OpenWeight) of
        Total when Total < Best -> earlier(Rest, Place - 1, Begins, Passed, Total, Place, Open);
        _ when Passed >= Best -> {Best, Found};
        _ -> earlier(Rest, Place - 1, Begins, Passed, Best, Found, Open)
    end;
earlier([], _, _, _, Best, Found, _) ->
    {Best, Found}.

-compile({inline, [late/3]}).
late(Ends, Due, Weight) when Ends > Due -> Weight * (Ends - Due);
late(_, _, _) -> 0.
