%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `matchstream': what a service of match events delivers, how soon, and how many clients it holds, stage by stage
%% of a paper (Benavides, Scaling Erlang, 2011), and each change of it alone beside the stage before.
%%
%% With `find' each round looks for a limit, by the search of `atoll scale' ({@link atoll_scale_search}): of clients that follow a match,
%% or of clients that connect at once. A level passes if at most a hundredth of its clients have failed, and 99 of 100 were served within the
%% time that `within' says. All variants are up at once, and take turns; the clients share the processors with them.
-module(atoll_bench_matchstream).
-compile({no_auto_import, [round/1]}).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).
-export([switches/1]).

-define(STAGES, [{stage1, 1}, {stage2, 2}, {stage3, 3}, {stage4, 4}, {stage5, 5}]).
%% Where the first search of a start begins: at so many clients that connect at once, or at this part of the most that may follow and at
%% FROM at least. The next ones begin where the last has ended.
-define(FROM, 16).
-define(FROM_PART, 8).
-define(PRECISION, 0.1).
-define(FAILURES, 0.01).
%% Of a burst.
-define(BURST_MS, 500).
-define(CALL_MS, 10_000).

-spec summary() -> string().
summary() -> "match events to many clients, stage by stage: delivered, latency, clients held, limits".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    [
        #{name => store, type => atom, values => [mnesia], one_of => [mnesia, redis], help => "where matches are kept"},
        #{name => find, type => atom, values => [no], one_of => [no, clients, at_once], help => "no; or the limit that each round looks for"},
        #{name => clients, type => integer, values => [200], max => 200000, help => "clients that follow a match; with find, the most that are tried"},
        #{name => at_once, type => integer, values => [4], max => 20000, help => "clients that connect at a time"},
        #{name => events, type => integer, values => [10], max => 9000, help => "events of a match"},
        #{name => rate, type => number, values => [10], min => 0, max => 10000, unit => "1/s", help => "events in a second; 0: each when the one before was acknowledged"},
        #{name => within, type => integer, values => [1000], max => 60000, unit => "ms", help => "with find: within what 99 of 100 must be served"},
        #{name => change, type => atom, values => [stage1, stage3, stage4, stage5], one_of => words(),
          help => "a stage with all that came up to it, or one change more than the stage before its own has"}
    ].

words() -> [Word || {Word, _} <- ?STAGES] ++ [Name || {Name, _, _} <- matchstream_switches:names()].

%% @doc The switches that a word stands for.
-spec switches(atom()) -> [matchstream_switches:name()].
switches(Word) ->
    case lists:keyfind(Word, 1, ?STAGES) of
        {Word, Stage} -> matchstream_switches:of_stage(Stage);
        false ->
            {Word, Stage, _} = lists:keyfind(Word, 1, matchstream_switches:names()),
            matchstream_switches:chosen(Stage - 1, [Word], [])
    end.

-spec variant() -> atom().
variant() -> change.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    Value = fun(Name, Label, Unit, Better) -> #{name => Name, label => Label, unit => Unit, better => Better, kind => value} end,
    [
        #{name => latency, label => "From a watcher to a client", unit => "ns", better => less, kind => latency},
        Value(delivered_per_s, "Events delivered", "1/s", more),
        Value(held, "Clients that got all", "", more),
        Value(lost, "Clients that did not", "", less),
        Value(following_ms, "Until all follow", "ms", less),
        Value(kib_per_client, "Memory of a client", "KiB", less),
        Value(limit, "The most clients that pass", "", more)
    ].

%% A search has its own bursts, and what is not one has no bound.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points([#{at_once := AtOnce, events := Events, rate := Rate, within := Within} | _] = Points) ->
    lists:uniq([
        case Point of
            #{find := at_once} -> Point#{at_once := AtOnce, events := Events, rate := Rate};
            #{find := no} -> Point#{within := Within};
            #{} -> Point
        end
     || Point <- Points
    ]).

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{change := connections, store := mnesia}) -> {error, "The connections are those with Redis: --store redis."};
check(_) -> ok.

-spec flags(atoll_bench:point()) -> [string()].
flags(_) -> ["+sbwt", "none"].

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{change := Change, store := Store} = Point) ->
    case atoll_bench_matchstream_run:start(#{switches => switches(Change), store => Store}, #{}) of
        {ok, #{cluster := Cluster} = Ready} -> {ok, #{cluster => Cluster, ready => Ready, point => Point, from => from(Point)}};
        {error, _} = Error -> Error
    end.

from(#{find := clients, clients := Clients}) -> max(?FROM, Clients div ?FROM_PART);
from(#{}) -> ?FROM.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{point := #{find := no, clients := Clients} = Point, ready := #{cluster := Cluster}} = State) ->
    Before = memory(Cluster),
    case followed(Clients, Point, fun() -> memory(Cluster) - Before end, State) of
        {ok, #{complete := Complete, latency := Latency, delivered_per_s := Delivered, following_ms := Ms, held := Bytes}} ->
            {ok, #{
                latency => Latency, delivered_per_s => Delivered, held => Complete, lost => Clients - Complete, following_ms => Ms,
                kib_per_client => Bytes / 1024 / Clients
            }, State};
        {error, _} = Error ->
            Error
    end;
round(#{point := #{clients := To}, from := From} = State) ->
    Limit = search(atoll_scale_search:new(#{from => min(From, To), to => To, precision => ?PRECISION}), State),
    {ok, #{limit => Limit}, State#{from := max(1, Limit)}}.

memory(Cluster) -> lists:sum([Bytes || {_, {ok, Bytes}} <- atoll_cluster:multicall(Cluster, erlang, memory, [total], ?CALL_MS)]).

followed(Clients, #{at_once := AtOnce, events := Events, rate := Rate}, Held, #{ready := #{webs := Webs}}) ->
    atoll_bench_matchstream_run:follow(#{webs => Webs, clients => Clients, at_once => AtOnce, events => Events, rate => Rate, held => Held}).

search(Search, State) ->
    case atoll_scale_search:next(Search) of
        {found, #{limit := Limit}} -> Limit;
        {run, Level} -> search(atoll_scale_search:told(Level, passes(Level, State), Search), State)
    end.

%% A service that does not answer beside its clients has failed too.
passes(Level, #{point := #{find := clients, within := Ms} = Point} = State) ->
    case followed(Level, Point, fun() -> none end, State) of
        {ok, #{complete := Complete, latency := Latency}} -> is_served(Level - Complete, Level, Latency, Ms);
        {error, _} -> false
    end;
passes(Level, #{point := #{find := at_once, within := Ms}, ready := #{webs := Webs}}) ->
    case atoll_bench_matchstream_run:connect(#{webs => Webs, clients => Level, ms => ?BURST_MS}) of
        {ok, #{requests := Requests, failures := Failures, times := Times}} -> is_served(Failures, Requests, Times, Ms);
        {error, _} -> false
    end.

is_served(Failed, All, Times, Ms) -> Failed =< ?FAILURES * All andalso atoll_histogram:percentile(Times, 99) =< Ms * 1_000_000.

-spec teardown(map()) -> ok.
teardown(#{ready := Ready}) -> atoll_bench_matchstream_run:stop(Ready).
