%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `dist': what a connection between two nodes carries.
%%
%% Kinds of load:
%% <dl>
%% <dt>`ping_pong'</dt><dd>one process and its echo: the message goes there and comes
%%   back, over and over.</dd>
%% <dt>`request'</dt><dd>so many actors on one node each send a message to one of
%%   their own on the other, and the next when it is acknowledged.</dd>
%% <dt>`flood'</dt><dd>so many actors send, and nobody answers before the end.</dd>
%% <dt>`ping_beside_bulk'</dt><dd>actors as in `request'; the latency is that of small
%%   pings beside them.</dd>
%% </dl>
%% Latencies are those of a closed loop: each actor waits for its answer, as the
%% callers of a server do. Those of the pings beside bulk are of an open one, 200 a
%% second, from their intended starts: so a stall counts for all that it held up
%% ({@link atoll_bench_load}). Megabytes are those of the messages' payload, one way.
%%
%% The systems whose names begin with `relay' or `own' have a third node, a gateway, and no
%% other way between the two at first. On a long path that is beside the first one.
%%
%% With a round trip of 0 the nodes are connected over loopback, otherwise over a path that
%% takes so long ({@link atoll_wire}), for which it takes Linux and root. Each system has a
%% path of its own. What carries the packets uses processor time too; it is not counted as
%% the nodes', nor as that of others.
-module(atoll_bench_dist).
-behaviour(atoll_bench).

-import(atoll_bench_nodes, [sure/1]).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-define(ROUND_MS, 1000).
%% What is on its way when the time is over may be a lot.
-define(DRAIN_MS, 60000).
-define(SETUP_MS, 15000).
%% Payloads under way at once: beyond, the machine swaps and nothing is measured.
-define(MAX_BYTES, 4294967296).

-spec summary() -> string().
summary() -> "what a connection between two nodes carries, and how fast".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Kinds = [request, ping_beside_bulk, flood],
    [
        #{name => kind, type => atom, values => Kinds, one_of => [ping_pong | Kinds], help => "the kind of load"},
        #{name => rtt, row => rtt_ms, type => number, values => [0], min => 0, max => 60000, unit => "ms",
          help => "the round trip; 0: over loopback, more needs root"},
        #{name => actors, type => integer, values => [1, 16, 128], max => 10000,
          help => "processes that send at the same time"},
        #{name => size, type => integer, values => [100, 1024, 524288], max => 134217728, unit => "bytes",
          help => "the payload of a message"},
        #{name => system, type => atom, values => atoll_bench_dist_system:usual(),
          one_of => atoll_bench_dist_system:all(),
          help => "stock distribution, as it is or with large buffers, and the carrier's kinds of connections"}
    ].

-spec variant() -> atom().
variant() -> system.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        #{name => ops_per_s, label => "Messages", unit => "1/s", better => more, kind => value},
        #{name => mb_per_s, label => "Throughput", unit => "MB/s", better => more, kind => value,
          derived => true},
        #{name => cpu_us_per_op, label => "Processor time per message", unit => "\x{b5}s", better => less, kind => value},
        #{name => cpu, label => "Processors in use", unit => "", better => less, kind => value, derived => true},
        #{name => latency, row => '', label => "Latency", unit => "ns", better => less, kind => latency}
    ].

%% A ping-pong has one actor, whatever is swept, and a flood of large messages is what
%% request is.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    lists:uniq([
        case Kind of
            ping_pong -> Point#{actors := 1};
            _ -> Point
        end
     || #{kind := Kind, size := Size} = Point <- Points, Kind =/= flood orelse Size =< 65536
    ]).

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{actors := Actors, size := Size}) when Actors * Size > ?MAX_BYTES ->
    {error, "that is more than 4 GiB under way at once"};
check(#{rtt := Ms, system := System}) when Ms > 0, System =:= forwarded orelse System =:= own_forwarded ->
    {error, io_lib:format("the program that forwards is for loopback: the system ~ts takes no round trip", [System])};
check(#{rtt := Ms}) when Ms > 0 ->
    case atoll_wire:allowed() of
        ok -> ok;
        {error, Error} -> {error, atoll_wire:format_error(Error)}
    end;
check(_Point) ->
    ok.

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{rtt := Ms} = Point) when Ms > 0 ->
    case atoll_wire:start(#{rtt_ms => Ms}) of
        {ok, Wire} ->
            case setup(Point, #{hosts => atoll_wire:ends(Wire)}) of
                {ok, State} ->
                    {ok, State#{wire => Wire}};
                {error, _} = Error ->
                    ok = atoll_wire:stop(Wire),
                    Error
            end;
        {error, Error} ->
            {error, atoll_wire:format_error(Error)}
    end;
setup(Point) ->
    setup(Point, #{}).

setup(#{system := System} = Point, Where) ->
    Count = case atoll_bench_dist_system:way(System) of link -> 2; forwarded -> 2; _ -> 3 end,
    Options = Where#{nodes => Count, connect_all => false, args => flags(Point), tls => atoll_bench_dist_system:has_tls(System)},
    atoll_bench_nodes:start(Options, fun(Cluster) -> load(Cluster, Point) end).

-spec flags(atoll_bench:point()) -> [string()].
flags(#{system := System}) ->
    atoll_bench_dist_system:args(System).

load(Cluster, #{kind := Kind, actors := Actors, size := Size, system := System}) ->
    [Here, There | _] = atoll_cluster:nodes(Cluster),
    Load = #{cluster => Cluster, node => Here, kind => Kind, actors => Actors, size => Size, ms => ?ROUND_MS},
    atoll_bench_nodes:answer(fun() ->
        Way = connected(atoll_bench_dist_system:way(System), Cluster, System),
        Load#{
            way => Way,
            peers => sure(atoll_bench_nodes:call(Cluster, There, {atoll_bench_dist_load, answer}, [Actors + 1], ?SETUP_MS))
        }
    end).

%% What is between the two nodes and ends with this process.
connected(link, Cluster, _System) ->
    meshed = sure(atoll_bench_nodes:meshed(Cluster)),
    none;
connected(forwarded, Cluster, _System) ->
    [Here, There] = atoll_cluster:nodes(Cluster),
    Forward = forward(Cluster, Here, There),
    ok = done(way(Cluster, Here, connect, [There])),
    meshed = sure(atoll_bench_nodes:meshed(Cluster)),
    Forward;
connected(Relayed, Cluster, System) ->
    [Here, There, Gateway] = atoll_cluster:nodes(Cluster),
    Pairs = [{Here, There}, {There, Here}],
    ok = sure(atoll_bench_nodes:call(Cluster, Gateway, {atoll_dist, relay_policy}, [all], ?SETUP_MS)),
    [ok = done(way(Cluster, End, over, [Gateway, Other])) || {End, Other} <- Pairs],
    meshed = sure(atoll_bench_nodes:meshed(Cluster)),
    [ok = relayed(Cluster, System, End, Other) || {End, Other} <- Pairs],
    case Relayed of
        relayed ->
            none;
        own ->
            ok = done(way(Cluster, Here, own, [There])),
            none;
        own_forwarded ->
            Forward = forward(Cluster, Here, There),
            ok = done(way(Cluster, Here, own, [There])),
            Forward
    end.

%% From now on the first node takes the program for the other one.
forward(Cluster, Here, There) ->
    Forward = sure(atoll_bench_dist_way:forward(sure(sure(way(Cluster, Here, port, [There]))))),
    ok = sure(way(Cluster, Here, through, [There, Forward])),
    Forward.

way(Cluster, Node, Function, Args) ->
    atoll_bench_nodes:call(Cluster, Node, {atoll_bench_dist_way, Function}, Args, ?SETUP_MS).

done({ok, ok}) -> ok;
done({ok, {error, Why}}) -> throw({failed, Why});
done({error, Why}) -> throw({failed, Why}).

%% That it is not another connection that is measured.
relayed(Cluster, System, End, Other) ->
    Sealed = System =:= relay_sealed,
    case sure(way(Cluster, End, relayed, [Other])) of
        {relayed, Sealed} -> ok;
        _ -> throw({failed, io_lib:format("~ts and ~ts are not connected as ~ts says", [End, Other, System])})
    end.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{cluster := Cluster, node := Node, kind := Kind, peers := Peers, size := Size, ms := Ms} = State) ->
    Run = fun() ->
        atoll_bench_nodes:call(Cluster, Node, {atoll_bench_dist_load, run}, [Kind, Peers, Size, Ms], Ms + ?DRAIN_MS)
    end,
    case atoll_bench_nodes:spending(Cluster, Run) of
        {ok, {{Ops, Us, Latency}, Cpu}} ->
            Values = #{
                ops_per_s => Ops * 1000000 / Us,
                mb_per_s => Ops * Size / Us,
                cpu => Cpu / Us,
                cpu_us_per_op => Cpu / max(1, Ops)
            },
            {ok, maps:merge(Values, maps:from_list([{latency, Export} || {ok, Export} <- [Latency]])), State};
        {error, _} = Error ->
            Error
    end.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster, way := Way} = State) ->
    ok = atoll_bench_nodes:stop(Cluster),
    _ = [ok = atoll_bench_dist_way:stop(Forward) || Forward <- [Way], Forward =/= none],
    case State of
        #{wire := Wire} -> atoll_wire:stop(Wire);
        #{} -> ok
    end.
