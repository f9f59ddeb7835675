%% SPDX-License-Identifier: Apache-2.0
%% @doc What the workers of a node have done in DE-Bench. All of them write into it at once,
%% and whoever looks gets plain data.
%%
%% An operation belongs to the window if it was to begin in it. `ok' and the errors of a label are
%% those of the window, and its times are those of the ones that went well. `drawn' and
%% `done' count whatever was drawn and went well, within the window or not. `completed'
%% counts what went well and ended in the window: over its length, that is the goodput of
%% the node, also where operations wait for a time that is longer than the window.
-module(debench_tally).

-export([new/1, drawn/2, record/5, shed/1, look/1]).

-export_type([tally/0, look/0]).

-record(tally, {
    labels :: #{atom() => {pos_integer(), atoll_histogram:hist()}},
    counts :: counters:counters_ref()
}).

-opaque tally() :: #tally{}.

-type look() :: #{
    labels := [{Label :: atom(), atoll_bench_window:done()}],
    completed := non_neg_integer(),
    %% Not begun, since too many before them were waiting.
    shed := non_neg_integer()
}.

%% Counters of all labels, and then of each.
-define(COMPLETED, 1).
-define(SHED, 2).
-define(FIRST, 2).
-define(OK, 1).
-define(DRAWN, 2).
-define(DONE, 3).
-define(ERRORS, 3).

%% @doc An empty one, for these labels.
-spec new([Label :: atom()]) -> tally().
new(Labels) ->
    Width = ?ERRORS + length(debench_op:reasons()),
    Numbered = lists:zip(Labels, lists:seq(0, length(Labels) - 1)),
    #tally{
        labels = maps:from_list([{Label, {?FIRST + N * Width, atoll_histogram:new()}} || {Label, N} <- Numbered]),
        counts = counters:new(?FIRST + length(Labels) * Width, [atomics])
    }.

%% @doc An operation was drawn.
-spec drawn(Label :: atom(), tally()) -> ok.
drawn(Label, #tally{labels = Labels, counts = Counts}) ->
    {Base, _} = maps:get(Label, Labels),
    counters:add(Counts, Base + ?DRAWN, 1).

%% @doc An operation has ended: so long after it was to begin. Which of its begin and its end lie in
%% the window?
-spec record(Label :: atom(), Outcome, Ns :: non_neg_integer(), In :: {Begun :: boolean(), Ended :: boolean()}, tally()) -> ok when
    Outcome :: ok | {error, debench_op:reason()}.
record(Label, Outcome, Ns, {Begun, Ended}, #tally{labels = Labels, counts = Counts}) ->
    {Base, Latency} = maps:get(Label, Labels),
    case Outcome of
        ok ->
            counters:add(Counts, Base + ?DONE, 1),
            _ = [counters:add(Counts, ?COMPLETED, 1) || Ended],
            _ = [counters:add(Counts, Base + ?OK, 1) || Begun],
            _ = [atoll_histogram:record(Ns, Latency) || Begun],
            ok;
        {error, Reason} ->
            _ = [counters:add(Counts, Base + ?ERRORS + number(Reason), 1) || Begun],
            ok
    end.

number(Reason) -> length(lists:takewhile(fun(R) -> R =/= Reason end, debench_op:reasons())) + 1.

%% @doc An operation of the window was not begun.
-spec shed(tally()) -> ok.
shed(#tally{counts = Counts}) ->
    counters:add(Counts, ?SHED, 1).

%% @doc What it comes to so far.
-spec look(tally()) -> look().
look(#tally{labels = Labels, counts = Counts}) ->
    Get = fun(Field) -> counters:get(Counts, Field) end,
    #{
        labels => [
            {Label, #{
                latency => atoll_histogram:export(Latency),
                ok => Get(Base + ?OK),
                errors => [{R, N} || R <- debench_op:reasons(), N <- [Get(Base + ?ERRORS + number(R))], N > 0],
                drawn => Get(Base + ?DRAWN),
                done => Get(Base + ?DONE)
            }}
         || {Label, {Base, Latency}} <- lists:sort(maps:to_list(Labels))
        ],
        completed => Get(?COMPLETED),
        shed => Get(?SHED)
    }.
