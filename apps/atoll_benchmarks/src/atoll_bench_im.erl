%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `im': what the messenger delivers, and how soon, over routers and servers, over a mesh and
%% over groups; and in storms.
%%
%% In a closed loop each conversation says the next message when the last one is delivered, so
%% what is delivered in a minute is what the messenger takes. In an open one messages begin at a rate
%% whatever becomes of them, and latency counts from the time that was meant. A round logs all
%% clients in, lets them talk, and drains; what is measured is the time between. A run whose history is
%% broken is a fault, and ends the benchmark, but with the paper's replication, whose loss is
%% what it is for: `broken' counts what was.
-module(atoll_bench_im).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-define(CALL_MS, 10_000).

-spec summary() -> string().
summary() -> "An instant messenger over a mesh and over groups: throughput, latency, storms".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Modes = [rd, rsd, 'rsd-relays'],
    [
        #{name => routers, type => integer, values => [2], max => 16, help => "router nodes"},
        #{name => servers, type => integer, values => [6], max => 64, help => "server nodes"},
        #{name => client_nodes, type => integer, values => [2], max => 16, help => "hidden nodes of clients"},
        #{name => clients, type => integer, values => [400], min => 2, max => 100000, help => "clients, all of them in conversations"},
        #{name => window, type => integer, values => [1], max => 64, help => "in a closed loop, messages under way in a conversation"},
        #{name => rate, type => integer, values => [0], min => 0, max => 1000000, unit => "/s", help => "messages that begin in a second; 0: a closed loop"},
        #{name => seconds, type => integer, values => [10], max => 3600, unit => "s", help => "that are measured in a round"},
        #{name => rhesus, type => integer, values => [0], min => 0, max => 3600000, unit => "ms", help => "between two processes that are killed; 0: none is"},
        #{name => baboon, type => integer, values => [0], min => 0, max => 3600000, unit => "ms", help => "between two processes with names that are killed; 0: none is"},
        #{name => node_every, type => integer, values => [0], min => 0, max => 3600, unit => "s", help => "between two server nodes that are killed, and started again; 0: none is"},
        #{name => replication, type => atom, values => [acknowledged], one_of => [acknowledged, paper], help => "when the second copy has a change"},
        #{name => mode, type => atom, values => [rd, rsd], one_of => Modes, help => "a mesh; groups over the carrier; groups with relay processes"}
    ].

-spec variant() -> atom().
variant() -> mode.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    Value = fun(Name, Label, Unit, Better) -> #{name => Name, label => Label, unit => Unit, better => Better, kind => value} end,
    [
        Value(per_minute, "Delivered in a minute", "", more),
        #{name => latency, label => "Until the sender knows of the delivery", unit => "ms", better => less, kind => latency},
        Value(quality, "Delivered within 10 ms, of all sent", "%", more),
        Value(cpu_us, "Processor time of a message, all nodes", "\x{b5}s", less),
        Value(connections, "Connections of routers and servers", "", less),
        Value(login_ms, "Until all clients are logged in", "ms", less),
        Value(kills, "Processes killed", "", less),
        Value(node_kills, "Nodes killed", "", less),
        Value(broken, "Messages and logins of a broken promise", "", less)
    ].

%% An open loop has its own window.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    lists:usort([case Point of #{rate := 0} -> Point; _ -> Point#{window := 64} end || Point <- Points]).

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{mode := Mode, routers := Routers, servers := Servers}) when Mode =/= rd, Servers < Routers ->
    {error, io_lib:format("In mode ~ts each router has a server at least, and ~b routers have ~b.", [Mode, Routers, Servers])};
check(#{node_every := Every}) when Every =:= 1 ->
    {error, "A node that is killed is down for a second: one can be killed each 2 s at most."};
check(_) ->
    ok.

shape(#{mode := Mode, routers := Routers, servers := Servers, client_nodes := Clients, replication := Replication}) ->
    Of = case Mode of rd -> #{mode => rd}; rsd -> #{mode => rsd, reach => atoll}; 'rsd-relays' -> #{mode => rsd, reach => relays} end,
    Of#{routers => Routers, servers => Servers, clients => Clients, settings => #{replication => Replication}}.

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) -> atoll_bench_nodes:flags().

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{seed := Seed} = Point) ->
    Shape = shape(Point),
    atoll_bench_nodes:start(im_cluster:options(Shape), fun(Cluster) ->
        case atoll_bench_im_run:ready(Cluster, Shape) of
            {ok, Ready} -> {ok, #{ready => Ready, point => Point, seed => Seed}};
            {error, _} = Error -> Error
        end
    end).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{ready := #{cluster := Cluster} = Ready, point := Point, seed := Seed} = State) ->
    Harm = maps:filter(fun(_, Every) -> Every > 0 end, maps:with([rhesus, baboon, node_every], Point)),
    case atoll_bench_nodes:spending(Cluster, fun() -> atoll_bench_im_run:traffic(Ready, traffic(Point), Harm, Seed) end) of
        {ok, {#{traffic := Traffic, storm := #{kills := Kills, node_kills := NodeKills}}, Us}} ->
            #{delivered_per_minute := PerMinute, latency := Latency, sent := Sent, below := Below, total := #{delivered := Delivered}, login_ms := LoginMs} = Traffic,
            Measures = #{
                per_minute => PerMinute,
                latency => Latency,
                quality => 100 * Below / max(1, Sent),
                %% A node that was killed has taken its time with it.
                cpu_us => Us / max(1, Delivered),
                connections => connections(Ready),
                login_ms => LoginMs,
                kills => Kills,
                node_kills => NodeKills,
                broken => broken(Traffic)
            },
            judged(Traffic, Point, Measures, State#{seed := Seed + 1});
        {error, _} = Error ->
            Error
    end.

traffic(#{clients := Clients, seconds := Seconds, rate := 0, window := Window}) ->
    #{clients => Clients, mode => closed, ms => 1000 * Seconds, window => Window};
traffic(#{clients := Clients, seconds := Seconds, rate := Rate}) ->
    #{clients => Clients, mode => open, ms => 1000 * Seconds, rate => Rate}.

broken(#{history := #{counts := Counts}}) -> lists:sum(maps:values(Counts)).

judged(#{history := History, is_drained := IsDrained}, #{replication := Replication}, Measures, State) ->
    case {Replication, im_history:is_clean(History), IsDrained} of
        {acknowledged, false, _} -> {error, io_lib:format("The promise is broken: ~0tp.", [maps:get(counts, History)])};
        {acknowledged, true, false} -> {error, "Not all that was said was delivered in time after the end."};
        _ -> {ok, Measures, State}
    end.

connections(#{cluster := Cluster, routers := Routers, servers := Servers}) ->
    im_cluster:links([{Node, atoll_cluster:call(Cluster, Node, im_cluster, links, [], ?CALL_MS)} || Node <- Routers ++ Servers]).

-spec teardown(map()) -> ok.
teardown(#{ready := #{cluster := Cluster}}) ->
    atoll_bench_nodes:stop(Cluster).
