%% SPDX-License-Identifier: Apache-2.0
%% @doc What an experiment of the simulator has found, for people and for
%% programs. What is told of real nodes too is told alike.
-module(atoll_sim_cli_result).

-export([json/3, groups/1, names/1, table/1, table/2]).

-export_type([fact/0]).

-type result() :: #{atom() => term()}.

-type fact() :: {Key :: atom(), Label :: string(), Unit :: count | share | decimal | ms | seconds | bytes | parts | plain}.

%% @doc The object that `--json' prints: these keys first, then the others, then
%% the line that repeats the run.
-spec json([atom()], result(), Again :: string()) -> atoll_cli_json:object().
json(First, Result, Again) ->
    Keys = First ++ (keys(facts(), Result) -- First),
    {[{Key, value(map_get(Key, Result))} || Key <- Keys] ++ [{again, unicode:characters_to_binary(Again)}]}.

value(none) -> null;
value(never) -> null;
value(Map) when is_map(Map) -> {lists:sort(maps:to_list(Map))};
value(Value) -> Value.

%% @doc Who sees whom in which groups, as objects of JSON.
-spec groups(#{Node :: atom() => [{Group :: atom(), Members :: [atom()]}]}) -> [atoll_cli_json:object()].
groups(Groups) ->
    [
        {[{node, Node}, {groups, [{[{name, Name}, {members, Members}]} || {Name, Members} <- Own]}]}
     || {Node, Own} <- lists:keysort(1, maps:to_list(Groups))
    ].

%% @doc Who sees which names, as objects of JSON.
-spec names(atoll_sim_expect:names()) -> [atoll_cli_json:object()].
names(Names) ->
    [
        {[{node, Node}, {names, [{[{group, Group}, {name, unicode:characters_to_binary(atoll_sim_term:text(Name))}, {at, At}]} || {Group, Name, At} <- Own]}]}
     || {Node, Own} <- lists:keysort(1, maps:to_list(Names))
    ].

%% @doc The facts, each on a line.
-spec table(result()) -> iolist().
table(Result) ->
    table(facts(), Result).

%% @doc The same, of an experiment with facts of its own.
-spec table([fact()], result()) -> iolist().
table(Facts, Result) ->
    Known = maps:from_list([{Key, {Label, Unit}} || {Key, Label, Unit} <- Facts]),
    Rows = [
        begin
            {Label, Unit} = maps:get(Key, Known, {string:replace(atom_to_list(Key), "_", " ", all), plain}),
            [Label, text(Unit, map_get(Key, Result))]
        end
     || Key <- keys(Facts, Result)
    ],
    atoll_cli_table:lines([left, right], Rows).

%% In the order of the facts; of what is not among them nothing is lost.
keys(Facts, Result) ->
    Known = [Key || {Key, _, _} <- Facts, is_map_key(Key, Result)],
    Known ++ lists:sort(maps:keys(Result) -- Known).

facts() ->
    [
        {strategy, "strategy", plain},
        {nodes, "nodes", count},
        {killed, "nodes killed", count},
        {messages, "messages", count},
        {senders, "senders", count},
        {seed, "seed", plain},
        {steps, "steps of the script", count},
        {expectations, "expectations", count},
        {failed, "expectations that failed", count},
        {alive, "nodes alive at the end", count},
        {connected, "connected at the end", share},
        {components, "components at the end", count},
        {connected_before, "connected before the kill", share},
        {connected_after, "connected after the kill", share},
        {rejoined_ms, "all survivors connected again after", seconds},
        {active_min, "neighbours of a node, at least", count},
        {active_max, "neighbours of a node, at most", count},
        {active_mean, "neighbours of a node, on average", decimal},
        {symmetric, "links that both ends name", share},
        {link_ms_mean, "latency of a link, on average", ms},
        {delivered, "delivered", share},
        {redundancy, "copies beyond one per node", share},
        {hops_max, "hops, at most", count},
        {latency_ms_p50, "latency, median", ms},
        {latency_ms_p99, "latency, 99th percentile", ms},
        {silent, "nodes that fell silent", count},
        {missed, "of these, not heard of by all", count},
        {detect_ms_p50, "time until a node hears of it, median", seconds},
        {detect_ms_p99, "time until a node hears of it, 99th percentile", seconds},
        {first_ms_p99, "time until the first hears of it, 99th percentile", seconds},
        {false_deaths, "false deaths", count},
        {passed_over, "process kills that found nobody", count},
        {groups, "groups at the end", count},
        {names, "names at the end", count},
        {false_deaths_per_hour, "false deaths per hour", decimal},
        {messages_per_node_per_s, "messages of a node per second", decimal},
        {virtual_ms, "virtual time", seconds},
        {events_per_s, "events per second", count},
        {wall_ms, "time", seconds}
    ].

text(_, none) -> "-";
text(_, never) -> "never";
text(count, N) -> atoll_cli_table:count(N);
text(share, Share) -> atoll_cli_table:percent(Share);
text(decimal, N) -> atoll_cli_table:decimal(N);
text(ms, N) -> [atoll_cli_table:decimal(N), " ms"];
text(seconds, Ms) -> atoll_cli_table:seconds(round(Ms));
text(parts, Parts) ->
    lists:join(", ", [[atom_to_list(Part), $\s, atoll_cli_table:decimal(N)] || {Part, N} <- lists:sort(maps:to_list(Parts))]);
text(bytes, N) -> [atoll_cli_table:decimal(N / 1000), " kB"];
text(plain, Term) -> io_lib:format("~tp", [Term]).
