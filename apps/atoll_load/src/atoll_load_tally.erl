%% SPDX-License-Identifier: Apache-2.0
%% @doc What a load has come to so far, for each operation: times in a histogram, those of errors in another one, and errors by their reason. All workers write at once.
-module(atoll_load_tally).

-export([new/1, ok/3, failed/4, shed/1, look/2]).

-export_type([tally/0]).

-opaque tally() :: #{labels := #{atom() => {Ok :: atoll_histogram:hist(), Failed :: atoll_histogram:hist()}}, errors := ets:table(), shed := counters:counters_ref()}.

%% Reasons of an operation that are told apart; all others are one.
-define(REASONS, 50).

%% @doc An empty one for these operations; the caller owns it.
-spec new([Label :: atom()]) -> tally().
new(Labels) ->
    #{
        labels => maps:from_list([{Label, {atoll_histogram:new(), atoll_histogram:new()}} || Label <- Labels]),
        errors => ets:new(?MODULE, [ordered_set, public, {write_concurrency, true}]), shed => counters:new(1, [atomics])
    }.

%% @doc An operation has taken so long.
-spec ok(Label :: atom(), Ns :: non_neg_integer(), tally()) -> ok.
ok(Label, Ns, #{labels := Labels}) -> atoll_histogram:record(Ns, element(1, map_get(Label, Labels))).

%% @doc An operation had an error, after so long.
-spec failed(Label :: atom(), Reason :: term(), Ns :: non_neg_integer(), tally()) -> ok.
failed(Label, Reason, Ns, #{labels := Labels, errors := Errors}) ->
    ok = atoll_histogram:record(Ns, element(2, map_get(Label, Labels))),
    Key = {Label, word(Reason)},
    Kept = case ets:member(Errors, Key) orelse ets:info(Errors, size) < ?REASONS of true -> Key; false -> {Label, other} end,
    _ = ets:update_counter(Errors, Kept, 1, {Kept, 0}),
    ok.

word(Reason) when is_atom(Reason) -> Reason;
word(Reason) when is_binary(Reason), byte_size(Reason) < 200 -> Reason;
word({Reason, _}) when is_atom(Reason) -> Reason;
word({Reason, _, _}) when is_atom(Reason) -> Reason;
word(Reason) -> unicode:characters_to_binary(io_lib:format("~0tP", [Reason, 6])).

%% @doc An operation was not begun, since no worker was free for it in time.
-spec shed(tally()) -> ok.
shed(#{shed := Shed}) -> counters:add(Shed, 1, 1).

%% @doc What it comes to, so long after the start.
-spec look(ElapsedMs :: non_neg_integer(), tally()) -> atoll_bench_window:look().
look(ElapsedMs, #{labels := Labels, errors := Errors, shed := Shed}) ->
    All = ets:tab2list(Errors),
    Of = [{Label, of_label(atoll_histogram:export(Latency), atoll_histogram:export(Failed), [{Reason, N} || {{L, Reason}, N} <- All, L =:= Label])} || {Label, {Latency, Failed}} <- lists:sort(maps:to_list(Labels))],
    #{
        elapsed_ms => ElapsedMs, restarts => 0, labels => Of, shed => counters:get(Shed, 1),
        completed => lists:sum([Ok || {_, #{ok := Ok}} <- Of]), offered => counters:get(Shed, 1) + lists:sum([N || {_, #{drawn := N}} <- Of])
    }.

of_label(#{count := Ok} = Latency, Failed, Errors) ->
    Done = Ok + lists:sum([N || {_, N} <- Errors]),
    #{latency => Latency, failed => Failed, ok => Ok, errors => Errors, drawn => Done, done => Ok}.
