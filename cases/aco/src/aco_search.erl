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

%% @doc The searches that there are.
-spec names() -> [search(), ...].
names() -> [none, o1, o2, o12, o21].

%% @doc Searches from a solution on to a local optimum.
-spec run(search(), aco_schedule:solution(), aco_problem:problem()) -> aco_schedule:solution().
run(none, Solution, _) ->
    Solution;
run(Search, {Cost, Order}, Problem) ->
    Jobs = [aco_problem:job(Number, Problem) || Number <- Order],
    {Gain, Best} = descend(steps(Search), Jobs),
    {Cost + Gain, [Number || {Number, _, _, _} <- Best]}.

-spec steps(search()) -> [step(), ...].
steps(o1) -> [interchange];
steps(o2) -> [insertion];
steps(o12) -> [interchange, insertion];
steps(o21) -> [insertion, interchange].

%% A gain is what is added to the cost: never more than 0.
descend([Step], Jobs) ->
    exhaust(Step, Jobs, 0);
descend([First, Second], Jobs) ->
    {Gain1, Jobs1} = exhaust(First, Jobs, 0),
    alternate(Second, First, Jobs1, Gain1).

%% `Jobs' are at the end of `Other'.
alternate(Step, Other, Jobs, Gain) ->
    case exhaust(Step, Jobs, 0) of
        {0, Same} -> {Gain, Same};
        {More, Better} -> alternate(Other, Step, Better, Gain + More)
    end.

exhaust(Step, Jobs, Gain) ->
    case pass(Step, Jobs) of
        {0, Same} -> {Gain, Same};
        {More, Better} -> exhaust(Step, Better, Gain + More)
    end.

pass(interchange, Jobs) -> interchange([], 0, Jobs, 0);
pass(insertion, Jobs) -> insertion([], 0, Jobs, 0).

%% The jobs before, when the next one begins, the jobs from here on, and the
%% gain so far.
interchange(Before, Time, [{_, Duration, Weight, Due} = Job | After], Gain) ->
    Ends = Time + Duration,
    case partner(After, 1, After, Ends, Duration, Weight, Due, Time, late(Ends, Due, Weight), 0, 0, none) of
        {_, none} ->
            interchange([Job | Before], Ends, After, Gain);
        {More, Place} ->
            {Between, [Other | Rest]} = lists:split(Place - 1, After),
            interchange([Other | Before], Time + element(2, Other), Between ++ [Job | Rest], Gain + More)
    end;
interchange(Before, _, [], Gain) ->
    {Gain, lists:reverse(Before)}.

%% The best partner of the job that begins at `Time' and costs `Cost'. `Held'
%% is what the jobs between cost now: no more can be won of them.
partner([{_, D, W, Due} | Rest], Place, After, Ended, Duration, Weight, JobDue, Time, Cost, Held, Best, Found) ->
    Ends = Ended + D,
    Own = late(Ends, Due, W),
    Shift = D - Duration,
    Gain = late(Time + D, Due, W) - Own + late(Ends, JobDue, Weight) - Cost,
    Least = case Shift < 0 of true -> Gain - Held; false -> Gain end,
    Total =
        case Least < Best of
            true when Shift =:= 0 -> Gain;
            true -> shifted(Place, After, Time + Duration, Shift, Best, Gain, Least);
            false -> Best
        end,
    case Total < Best of
        true -> partner(Rest, Place + 1, After, Ends, Duration, Weight, JobDue, Time, Cost, Held + Own, Total, Place);
        false -> partner(Rest, Place + 1, After, Ends, Duration, Weight, JobDue, Time, Cost, Held + Own, Best, Found)
    end;
partner([], _, _, _, _, _, _, _, _, _, Best, Found) ->
    {Best, Found}.

%% What comes to the gain when the jobs between begin so much later. `Least' is
%% what it may still come down to.
shifted(1, _, _, _, _, Gain, _) ->
    Gain;
shifted(Left, [{_, D, W, Due} | Rest], Time, Shift, Best, Gain, Least) ->
    Ends = Time + D,
    Now = late(Ends, Due, W),
    Then = late(Ends + Shift, Due, W),
    %% Later: it costs no less than now. Earlier: it has been counted as won whole.
    Least1 = case Shift < 0 of true -> Least + Then; false -> Least + Then - Now end,
    case Least1 < Best of
        true -> shifted(Left - 1, Rest, Ends, Shift, Best, Gain + Then - Now, Least1);
        false -> Best
    end.

insertion(Before, Time, [{_, Duration, Weight, Due} = Job | After], Gain) ->
    Ends = Time + Duration,
    Cost = late(Ends, Due, Weight),
    {Least, Place} = later(After, 1, Ends, Duration, Weight, Due, -Cost, 0, none),
    case earlier(Before, -1, Time, Duration, Weight, Due, -Cost, Least, Place) of
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
later([{_, D, W, Due} | Rest], Place, Ended, Duration, Weight, JobDue, Gain, Best, Found) ->
    Ends = Ended + D,
    Passed = Gain + late(Ends - Duration, Due, W) - late(Ends, Due, W),
    case Passed + late(Ends, JobDue, Weight) of
        Total when Total < Best -> later(Rest, Place + 1, Ends, Duration, Weight, JobDue, Passed, Total, Place);
        _ -> later(Rest, Place + 1, Ends, Duration, Weight, JobDue, Passed, Best, Found)
    end;
later([], _, _, _, _, _, _, Best, Found) ->
    {Best, Found}.

%% The job goes before one more of those before it. Nothing is won of them: it
%% ends when nothing can be won of the job itself any more.
earlier([{_, D, W, Due} | Rest], Place, Ended, Duration, Weight, JobDue, Gain, Best, Found) ->
    Passed = Gain + late(Ended + Duration, Due, W) - late(Ended, Due, W),
    case Passed + late(Ended - D + Duration, JobDue, Weight) of
        Total when Total < Best -> earlier(Rest, Place - 1, Ended - D, Duration, Weight, JobDue, Passed, Total, Place);
        _ when Passed >= Best -> {Best, Found};
        _ -> earlier(Rest, Place - 1, Ended - D, Duration, Weight, JobDue, Passed, Best, Found)
    end;
earlier([], _, _, _, _, _, _, Best, Found) ->
    {Best, Found}.

-compile({inline, [late/3]}).
late(Ends, Due, Weight) when Ends > Due -> Weight * (Ends - Due);
late(_, _, _) -> 0.
