%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `adcounter': the advertisement counter, on real nodes and in the simulator, what it sends, how far it counts
%% over, and how long the end takes to come to all. A round is one run.
%%
%% Bytes are those of the replicas' messages in the external term format, without what distribution and overlay add.
-module(atoll_bench_adcounter).
-compile({no_auto_import, [round/1]}).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-spec summary() -> string().
summary() -> "an advertisement counter on replicated data types, client-server and peer to peer: bytes, overcount, convergence".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    [
        #{name => nodes, type => integer, values => [12], min => 2, max => 100000, help => "nodes, the server among them"},
        #{name => mode, type => atom, values => [server, peer], one_of => [server, peer], help => "all with the server, or peer to peer"},
        #{name => world, type => atom, values => [real], one_of => [real, simulated], help => "real nodes, or simulated ones"},
        #{name => budget, type => integer, values => [10], max => 100000, help => "impressions that are paid for, for each client"},
        #{name => impression_ms, type => integer, values => [200], max => 3600000, unit => "ms", help => "from one impression of a client to the next"},
        #{name => propagation_ms, type => integer, values => [200], max => 3600000, unit => "ms", help => "from one propagation of a replica to the next"},
        #{name => offline, type => integer, values => [0], min => 0, max => 90, unit => "%", help => "part of the time that a client is off line"},
        #{name => how, type => atom, values => [state, delta], one_of => [state, delta], help => "whether states or deltas are sent"}
    ].

-spec variant() -> atom().
variant() -> how.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    Value = fun(Name, Label, Unit) -> #{name => Name, label => Label, unit => Unit, better => less, kind => value} end,
    [
        Value(bytes, "Sent, all nodes", "B"),
        Value(state_bytes, "Sent as states", "B"),
        Value(delta_bytes, "Sent as deltas", "B"),
        Value(other_bytes, "Sent as hashes, acknowledgements and the like", "B"),
        Value(bytes_max, "Sent by the busiest node", "B"),
        Value(messages, "Messages", ""),
        Value(overcount_percent, "Impressions over what was paid for", "%"),
        Value(disabled_ms, "Until it is disabled", "ms"),
        Value(seen_ms, "Until all clients have seen it", "ms"),
        Value(equal_ms, "Until all counters are equal", "ms")
    ].

-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) -> Points.

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{world := real, nodes := Nodes}) -> atoll_bench_adcounter_run:enough(Nodes);
check(_) -> ok.

-spec flags(atoll_bench:point()) -> [string()].
flags(#{world := real}) -> atoll_bench_nodes:flags();
flags(_) -> [].

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{world := simulated} = Point) ->
    {ok, #{point => Point, ready => none}};
setup(#{world := real} = Point) ->
    case atoll_bench_adcounter_run:start(maps:with([nodes, mode], Point), #{}) of
        {ok, Ready} -> {ok, #{point => Point, ready => Ready}};
        {error, _} = Error -> Error
    end.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{point := #{seed := Seed} = Point, ready := Ready} = State) ->
    Ran =
        case Ready of
            none -> {ok, atoll_bench_adcounter_sim:run((maps:with([nodes, mode, seed], Point))#{settings => settings(Point)})};
            _ -> atoll_bench_adcounter_run:run(Ready, settings(Point))
        end,
    case Ran of
        {ok, Result} ->
            case adcounter_result:judge(Result) of
                ok -> {ok, measures(Result), State#{point := Point#{seed := Seed + 1}}};
                {failed, Sentence} -> {error, Sentence}
            end;
        {error, _} = Error ->
            Error
    end.

settings(#{nodes := Nodes, budget := Budget} = Point) ->
    {ok, Settings} = adcounter_options:check((maps:with([how, impression_ms, propagation_ms, offline], Point))#{budget => Budget * (Nodes - 1)}),
    Settings.

measures(#{sent := Sent, bytes := Bytes} = Result) ->
    Of = fun(Kind) -> maps:get(bytes, maps:get(Kind, Sent, #{bytes => 0})) end,
    (maps:filter(fun(_, Ms) -> Ms =/= never end, maps:with([bytes_max, overcount_percent, disabled_ms, seen_ms, equal_ms], Result)))#{
        bytes => Bytes,
        state_bytes => Of(state),
        delta_bytes => Of(delta),
        other_bytes => Bytes - Of(state) - Of(delta),
        messages => lists:sum([Messages || #{messages := Messages} <- maps:values(Sent)])
    }.

-spec teardown(map()) -> ok.
teardown(#{ready := none}) -> ok;
teardown(#{ready := Ready}) -> atoll_bench_adcounter_run:stop(Ready).
