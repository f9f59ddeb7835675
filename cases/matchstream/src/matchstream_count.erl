%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node counts, without a process: clients, events, what was refused. The watch room reads the same numbers as metrics of Atoll.
-module(matchstream_count).

-export([new/0, add/2, get/1, all/0, prometheus/0]).

-export_type([name/0]).

-type name() :: connections | clients | accepted | events | delivered | refused | slow | unstored | unrecorded.

-define(NAMES, [
    {connections, gauge, "connections that are open"},
    {clients, gauge, "clients that follow a match"},
    {accepted, counter, "connections that were accepted"},
    {events, counter, "events that this node has taken from watchers"},
    {delivered, counter, "events that were written to clients"},
    {refused, counter, "connections that were ended with an ERROR"},
    {slow, counter, "clients that were closed because they read too slowly"},
    {unstored, counter, "events that the store could not take"},
    {unrecorded, counter, "requests that the record could not take"}
]).

%% @doc Begins, with the metrics of Atoll if that runs.
-spec new() -> ok.
new() ->
    Counters = counters:new(length(?NAMES), [write_concurrency]),
    ok = persistent_term:put(?MODULE, {Counters, maps:from_list([{Name, Index} || {Index, {Name, _, _}} <- indexed()])}),
    %% Without the application there are none, and with it these names may be those of an earlier life.
    _ = [{atoll_metric:delete(metric(Name)), atoll_metric:new(metric(Name), {counters, Counters, Index})} || {Index, {Name, _, _}} <- indexed()],
    ok.

indexed() -> lists:zip(lists:seq(1, length(?NAMES)), ?NAMES).

metric(Name) -> list_to_atom("matchstream." ++ atom_to_list(Name)).

%% @doc Counts.
-spec add(name(), integer()) -> ok.
add(Name, N) ->
    {Counters, #{Name := Index}} = persistent_term:get(?MODULE),
    counters:add(Counters, Index, N).

%% @doc How many there are.
-spec get(name()) -> integer().
get(Name) ->
    {Counters, #{Name := Index}} = persistent_term:get(?MODULE),
    counters:get(Counters, Index).

%% @doc All of them.
-spec all() -> #{name() => integer()}.
all() -> maps:from_list([{Name, ?MODULE:get(Name)} || {Name, _, _} <- ?NAMES]).

%% @doc All of them as Prometheus reads them.
-spec prometheus() -> iolist().
prometheus() ->
    [
        begin
            Called = ["matchstream_", atom_to_list(Name), case Kind of counter -> "_total"; gauge -> "" end],
            ["# HELP ", Called, $\s, Help, "\n# TYPE ", Called, $\s, atom_to_list(Kind), $\n, Called, $\s, integer_to_list(?MODULE:get(Name)), $\n]
        end
     || {Name, Kind, Help} <- ?NAMES
    ].
