%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll metrics': what the nodes of a running cluster measure.
-module(atoll_watch_cli_metrics).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% Shares of time and rates take two.
-define(LOOKS, 2).

-spec summary() -> string().
summary() -> "show what the nodes of a running cluster measure".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(looks) ++
    [
        atoll_watch_cli:period("1"),
        #{name => list, help => "say which metrics there are, and ask no node"},
        #{name => prometheus, help => "print text that Prometheus reads"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["[NAME...]"].

-spec examples() -> [string()].
examples() ->
    ["atoll metrics", "atoll metrics memory_total processes -c reef --json", "atoll metrics --prometheus --node shop@10.0.0.7 --cookie-file prod.cookie",
     "atoll metrics --list"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := true, prometheus := true}, _) ->
    {usage, "--json and --prometheus are two ways to print it: not both"};
run(#{list := true, prometheus := true}, _) ->
    {usage, "--prometheus is for what nodes measure, and --list asks none"};
run(#{list := List} = Values, Names) ->
    case chosen(Names) of
        {ok, Metrics} when List -> listed(Values, Metrics);
        {ok, Metrics} -> atoll_watch_cli:looked(?LOOKS, Values, fun(Name, Watch) -> measured(Values, Name, Metrics, atoll_watch:nodes(Watch)) end);
        {error, Sentence} -> {usage, Sentence}
    end.

chosen([]) ->
    {ok, atoll_watch_metric:all()};
chosen(Names) ->
    Known = [{atom_to_list(Name), Metric} || #{name := Name} = Metric <- atoll_watch_metric:all()],
    case [Name || Name <- Names, not lists:keymember(Name, 1, Known)] of
        [] ->
            {ok, [Metric || {Name, Metric} <- Known, lists:member(Name, Names)]};
        [Unknown | _] ->
            Near =
                case atoll_cli_nearest:of_words(Unknown, [Name || {Name, _} <- Known]) of
                    {ok, Word} -> ["; did you mean ", Word, "?"];
                    none -> "; \"atoll metrics --list\" lists them"
                end,
            {error, ["there is no metric \"", Unknown, $", Near]}
    end.

listed(#{json := true}, Metrics) ->
    atoll_cli_io:print_json({[{metrics, [
        {[{name, Name}, {unit, null(Unit)}, {kind, Kind}, {label, null(Label)}, {help, list_to_binary(Help)}]}
     || #{name := Name, unit := Unit, kind := Kind, label := Label, help := Help} <- Metrics
    ]}]});
listed(_, Metrics) ->
    Columns = [{left, "metric"}, {left, "kind"}, {left, "unit"}, {left, "for each"}, {left, "what it is"}],
    atoll_cli_io:print(atoll_cli_table:format(Columns, [
        [atom_to_list(Name), atom_to_list(Kind), dash(Unit), dash(Label), Help]
     || #{name := Name, unit := Unit, kind := Kind, label := Label, help := Help} <- Metrics
    ])).

measured(Values, Name, Metrics, Seen) ->
    ok = show(Values, Name, Metrics, Seen),
    atoll_watch_cli:judged(Seen, ok).

show(#{prometheus := true}, _Name, Metrics, Seen) ->
    atoll_cli_io:print(atoll_watch_prometheus:text(Metrics, Seen));
show(#{json := true}, Name, Metrics, Seen) ->
    atoll_cli_io:print_json({[
        {cluster, unicode:characters_to_binary(Name)},
        {nodes, [atoll_watch_cli:node_json(only(Metrics, Is)) || Is <- Seen]}
    ]});
show(_, _Name, Metrics, Seen) ->
    Columns = [{left, "node"}, {left, "metric"}, {left, "of"}, {right, "value"}, {left, "unit"}, {right, "per second"}],
    atoll_cli_io:print(atoll_cli_table:format(Columns, [
        [atom_to_list(Node), atom_to_list(Metric), atoll_watch_cli:key_text(Label), number(Value), dash(Unit),
         case Rates of #{Key := Rate} -> number(Rate); #{} -> "" end]
     || #{node := Node, state := up, readings := Readings, rates := Rates} <- Seen, #{name := Metric, unit := Unit} <- Metrics,
        {Label, Key, Value} <- of_metric(Metric, Readings)
    ])).

of_metric(Name, Readings) ->
    lists:sort([{none, Key, Value} || {Key, Value} <- maps:to_list(Readings), Key =:= Name] ++
               [{Label, Key, Value} || {{Is, Label} = Key, Value} <- maps:to_list(Readings), Is =:= Name]).

only(Metrics, #{readings := Readings, rates := Rates} = Is) ->
    Names = maps:from_list([{Name, []} || #{name := Name} <- Metrics]),
    Chosen = fun({Name, _}, _) -> is_map_key(Name, Names); (Name, _) -> is_map_key(Name, Names) end,
    Is#{readings := maps:filter(Chosen, Readings), rates := maps:filter(Chosen, Rates)}.

number(N) when is_integer(N) -> atoll_cli_table:count(N);
number(N) when N < 10 -> float_to_list(N, [{decimals, 6}, compact]);
number(N) -> atoll_cli_table:decimal(N).

dash(none) -> "-";
dash(Atom) -> atom_to_list(Atom).

null(none) -> null;
null(Atom) -> Atom.
