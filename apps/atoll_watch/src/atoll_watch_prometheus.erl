%% SPDX-License-Identifier: Apache-2.0
%% @doc What is known of a cluster as text that Prometheus reads (its exposition format 0.0.4). Pure.
%%
%% Of a node that is not up there is its state alone: `erlang_node_up' is 1 for one that is, and 0 for
%% all others, but for those that have not been asked yet.
-module(atoll_watch_prometheus).

-export([text/2]).

%% @doc The text, with those metrics.
-spec text([atoll_watch_metric:metric()], [atoll_watch_core:seen()]) -> iolist().
text(Metrics, Seen) ->
    Up = [{[{"node", Node}], case State of up -> 1; _ -> 0 end} || #{node := Node, state := State} <- Seen, State =/= unknown],
    Readings = [{Node, maps:groups_from_list(fun name/1, maps:to_list(Readings))} || #{node := Node, state := up, readings := Readings} <- Seen],
    [family("erlang_node_up", gauge, "whether the node has answered", Up) | [metric(Metric, Readings) || Metric <- Metrics]].

name({{Name, _}, _}) -> Name;
name({Name, _}) -> Name.

metric(#{name := Name, kind := Kind, label := Label, help := Help} = Metric, Readings) ->
    {Called, Factor} = atoll_watch_metric:prometheus(Metric),
    family(Called, Kind, Help, [
        {[{"node", Node} | [{atom_to_list(Label), Is} || {_, Is} <- [Key]]], times(Value, Factor)}
     || {Node, #{Name := Values}} <- Readings, {Key, Value} <- lists:sort(Values)
    ]).

times(Value, 1) -> Value;
times(Value, Factor) -> Value * Factor.

family(_, _, _, []) ->
    [];
family(Name, Kind, Help, Samples) ->
    [
        ["# HELP ", Name, $\s, Help, $\n, "# TYPE ", Name, $\s, atom_to_list(Kind), $\n]
        | [[Name, ${, lists:join($,, [[Key, "=\"", escaped(Label), $"] || {Key, Label} <- Labels]), "} ", number(Value), $\n] || {Labels, Value} <- Samples]
    ].

number(N) when is_integer(N) -> integer_to_list(N);
number(N) -> float_to_list(N, [short]).

escaped(Label) when is_atom(Label) -> escaped(atom_to_binary(Label));
escaped(Label) -> lists:foldl(fun({C, By}, Text) -> binary:replace(Text, C, By, [global]) end, Label, [{<<"\\">>, <<"\\\\">>}, {<<"\"">>, <<"\\\"">>}, {<<"\n">>, <<"\\n">>}]).
