%% SPDX-License-Identifier: Apache-2.0
%% @doc Which change comes next, and whether it has helped: the service before it beside the service after it.
%%
%% The two are measured in turns, each time on a service that was started anew, in an order that goes to and fro (before, after, after, before, ...): what slows the
%% machine for a while slows both. A sample is the limit of one search, so all samples of a side are independent as far as
%% starts are. The verdict is that of {@link atoll_bench_compare}: with fewer than five samples of each side
%% it is always `unclear'. A limit is known to the precision of the search alone, so limits are often equal: equal ones count
%% for neither side.
%%
%% A change that the user makes by hand cannot be undone and made again by turns: its two sides are measured one after the other, which is told as `in_turns'
%% false. A machine that has changed meanwhile looks like the change then.
-module(atoll_scale_tune).

-export([next/3, tried/3, order/1, compare/4]).

-export_type([change/0, compared/0, tried/0]).

-type change() :: #{
    switch := atom(),
    from := atoll_scale_plan:value(),
    to := atoll_scale_plan:value(),
    %% What it may help with; of one that was asked for there is none.
    cause => atoll_scale_advise:cause()
}.

-type compared() :: #{
    before := [non_neg_integer(), ...],
    'after' := [non_neg_integer(), ...],
    verdict := better | worse | same | unclear,
    ratio := float() | none,
    low := float() | none,
    high := float() | none,
    in_turns := boolean()
}.

-type tried() :: [{Switch :: atom(), atoll_scale_plan:value()}].

%% @doc The next change: the next value, of those not tried, of the first switch that may help with the likeliest cause; none if no
%% switch is left for any.
-spec next([atoll_scale_advise:finding()], tried(), {[atoll_scale_plan:switch()], atoll_scale_plan:settings()}) -> {ok, change()} | none.
next(Findings, Tried, {Switches, Settings}) ->
    Changes = [
        #{switch => Name, from => map_get(Name, Settings), to => Value, cause => Cause}
     || #{cause := Cause} <- Findings,
        #{name := Name, helps := Helps, values := Values} <- Switches,
        lists:member(Cause, Helps),
        Value <- later(map_get(Name, Settings), Values),
        not lists:member({Name, Value}, Tried)
    ],
    case Changes of
        [Change | _] -> {ok, Change};
        [] -> none
    end.

%% Those after the one that it has.
later(Value, [Value | Values]) -> Values;
later(Value, [_ | Values]) -> later(Value, Values).

%% @doc What counts as tried after a change. When one was kept something else may limit the service: what did not help before may help now.
-spec tried(change(), Kept :: boolean(), tried()) -> tried().
tried(_, true, _) -> [];
tried(#{switch := Switch, to := To}, false, Tried) -> [{Switch, To} | Tried].

%% @doc In which order the two sides are measured, so many times each.
-spec order(pos_integer()) -> [before | 'after', ...].
order(Rounds) ->
    lists:append([case Round rem 2 of 1 -> [before, 'after']; 0 -> ['after', before] end || Round <- lists:seq(1, Rounds)]).

%% @doc What so many measurements of both sides say. Measure gives the limit of a side, or why there is none.
-spec compare(Rounds :: pos_integer(), InTurns :: boolean(), Switched :: fun((before | 'after') -> ok | {error, Why}),
    fun((before | 'after') -> {ok, non_neg_integer()} | {error, Why})) -> {ok, compared()} | {error, Why}.
compare(Rounds, InTurns, Switched, Measure) ->
    Order = order(Rounds),
    Sides = case InTurns of true -> Order; false -> lists:reverse(lists:sort(Order)) end,
    case measured(Sides, none, Switched, Measure, []) of
        {ok, Samples} ->
            Before = [Limit || {before, Limit} <- Samples],
            After = [Limit || {'after', Limit} <- Samples],
            #{verdict := Verdict} = Result = atoll_bench_compare:two(Before, After, more, #{}),
            {ok, (maps:with([ratio, low, high], Result))#{before => Before, 'after' => After, verdict => verdict(Verdict), in_turns => InTurns}};
        {error, _} = Error ->
            Error
    end.

verdict(faster) -> better;
verdict(slower) -> worse;
verdict(Verdict) -> Verdict.

measured([], _, _, _, Samples) ->
    {ok, lists:reverse(Samples)};
measured([Side | Sides], Last, Switched, Measure, Samples) ->
    case Side =:= Last orelse Switched(Side) of
        {error, _} = Error ->
            Error;
        _ ->
            case Measure(Side) of
                {ok, Limit} -> measured(Sides, Side, Switched, Measure, [{Side, Limit} | Samples]);
                {error, _} = Error -> Error
            end
    end.
