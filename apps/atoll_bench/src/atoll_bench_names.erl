%% @doc The benchmark `names': what it costs to give a process a name that every node
%% of a mesh can look up, and how long until every node can.
%%
%% Callers on one node register names of their own, one after the other, for a
%% while. The latency is that of a caller's registration; `visible_per_s' counts
%% until the last name is seen on the last node, which for a system that answers
%% before that is the rate that it keeps up with. Between rounds the names are
%% taken away again, until no node sees one any more, and that is not counted.
-module(atoll_bench_names).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-define(ROUND_MS, 1000).
%% A registration that has begun is waited for, and so is the last name's way.
-define(DRAIN_MS, 60000).

-spec summary() -> string().
summary() -> "what a name costs that every node can look up".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    [
        #{name => nodes, type => integer, values => [2, 4, 8, 16], min => 2, max => 64, help => "nodes of the mesh"},
        #{name => callers, type => integer, values => [1, 100], max => 10000,
          help => "processes of one node that register at the same time"},
        #{name => system, type => atom, values => [global, pg], one_of => [global, pg],
          help => "who keeps the names"}
    ].

-spec variant() -> atom().
variant() -> system.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        #{name => names_per_s, label => "Names registered", unit => "1/s", better => more, kind => value},
        #{name => visible_per_s, label => "Names visible on every node", unit => "1/s", better => more, kind => value},
        #{name => cpu_us_per_name, label => "Processor time per name, all nodes", unit => "\x{b5}s", better => less,
          kind => value},
        #{name => latency, label => "Registration", unit => "ns", better => less, kind => latency}
    ].

-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) -> Points.

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(_Point) -> ok.

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) -> ["+S", "1:1", "+sbwt", "none"].

%% Each system has a mesh of its own; nodes have one scheduler, so that a mesh on a
%% small machine is no crowd of threads. Before anything is timed every node sees
%% every other, and a name given on each is seen on all.
-spec setup(atoll_bench:point()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{nodes := Count, callers := Callers, system := System} = Point) ->
    Options = #{nodes => Count, connect_all => true, args => flags(Point)},
    atoll_bench_nodes:start(Options, fun(Cluster) ->
        State = #{cluster => Cluster, callers => Callers, system => System, round => 1},
        case ready(State) of
            ok -> {ok, State};
            {error, _} = Error -> Error
        end
    end).

ready(#{cluster := Cluster, system := System} = State) ->
    Nodes = atoll_cluster:nodes(Cluster),
    case atoll_bench_nodes:meshed(Cluster) of
        {ok, meshed} ->
            each([
                fun() -> all(Cluster, begin_with, [System]) end
                | [fun() -> seen_from(Node, State) end || Node <- Nodes]
            ]);
        {error, _} = Error ->
            Error
    end.

seen_from(Node, #{cluster := Cluster, system := System} = State) ->
    Batch = {probe, Node},
    each([
        fun() -> call(Cluster, Node, register, [System, Batch, 1, 0]) end,
        fun() -> all(Cluster, see, [System, Batch, [1], ?DRAIN_MS]) end,
        fun() -> forgotten(Node, Batch, State) end
    ]).

forgotten(Node, Batch, #{cluster := Cluster, system := System}) ->
    each([
        fun() -> call(Cluster, Node, forget, [System, Batch]) end,
        fun() -> all(Cluster, gone, [System, Batch, ?DRAIN_MS]) end
    ]).

each([]) -> ok;
each([Step | Steps]) ->
    case Step() of
        {error, _} = Error -> Error;
        _ -> each(Steps)
    end.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{cluster := Cluster, callers := Callers, system := System, round := Number} = State) ->
    [Node | _] = atoll_cluster:nodes(Cluster),
    Batch = {round, Number},
    Cpu0 = atoll_bench_nodes:cpu_us(Cluster),
    Begin = erlang:monotonic_time(microsecond),
    case call(Cluster, Node, register, [System, Batch, Callers, ?ROUND_MS]) of
        {ok, {Counts, Us, Latency}} ->
            case all(Cluster, see, [System, Batch, Counts, ?DRAIN_MS]) of
                ok ->
                    Visible = erlang:monotonic_time(microsecond) - Begin,
                    Cpu = atoll_bench_nodes:cpu_us(Cluster) - Cpu0,
                    Names = lists:sum(Counts),
                    Measures = #{
                        names_per_s => Names * 1000000 / Us,
                        visible_per_s => Names * 1000000 / Visible,
                        cpu_us_per_name => Cpu / max(1, Names),
                        latency => Latency
                    },
                    case forgotten(Node, Batch, State) of
                        ok -> {ok, Measures, State#{round := Number + 1}};
                        {error, _} = Error -> Error
                    end;
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end.


call(Cluster, Node, Function, Args) ->
    atoll_bench_nodes:call(Cluster, Node, {atoll_bench_names_load, Function}, Args, ?ROUND_MS + ?DRAIN_MS).

%% On all nodes at once; ok if each says so.
all(Cluster, Function, Args) ->
    Answers = atoll_cluster:multicall(Cluster, atoll_bench_names_load, Function, Args, ?ROUND_MS + ?DRAIN_MS),
    case [Answer || {_, Said} = Answer <- Answers, Said =/= {ok, ok}] of
        [] -> ok;
        [{Node, {ok, {unseen, Count}}} | _] -> {error, io_lib:format("~b names did not come to ~ts", [Count, Node])};
        [{Node, {ok, {left, Count}}} | _] -> {error, io_lib:format("~b names did not go from ~ts", [Count, Node])};
        [{_, {error, Reason}} | _] -> {error, atoll_cluster:format_error(Reason)}
    end.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) ->
    atoll_bench_nodes:stop(Cluster).
