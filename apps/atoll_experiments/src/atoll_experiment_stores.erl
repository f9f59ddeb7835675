%% SPDX-License-Identifier: Apache-2.0
%% @doc Persistent stores at scale (paper 000, section IV): one load on a ring of more and more nodes and on other stores, with a node killed, and which server callers stand in a row behind.
-module(atoll_experiment_stores).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [cell/1]).

-define(PAPER, "section IV").
-define(BENCH, "stores").
-define(NODES, [1, 3, 6]).
-define(WORKERS, [4, 64]).
-define(STARTS, 5).
-define(STORES, [ets, mnesia, ring, redis, mariadb]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => stores,
        title => "Persistent stores at scale",
        question => "What does a store get done with more nodes and more clients, which of its servers is in the way, and what do clients see of a node that is killed?",
        minutes => 6,
        cannot => "that more nodes get more done: all of them, and their clients, share two processors. Nor what a disc takes: the ring's values are in memory, Redis and MariaDB write to the disc before they answer."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    Of = fun(Sweep) -> {bench, ?BENCH, #{sweep => Sweep#{keys => [50], seconds => [0.3], workers => [2]}, rounds => 1, starts => 1}} end,
    [
        #{key => nodes, do => Of(#{store => [ring], nodes => [1, 2]})}, #{key => beside, do => Of(#{store => [ets, mnesia]})},
        #{key => killed, do => Of(#{store => [ring], nodes => [3], rate => [100], kill => [1], seconds => [3]})}
    ];
asks(#{size := full}) ->
    Of = fun(Rounds, Starts, Sweep) -> {bench, ?BENCH, #{sweep => Sweep#{keys => [1000]}, rounds => Rounds, starts => Starts}} end,
    [
        #{key => nodes, do => Of(?STARTS, ?STARTS, #{store => [ring], nodes => ?NODES, workers => ?WORKERS, seconds => [1]})},
        #{key => beside, do => Of(?STARTS, ?STARTS, #{store => installed(), workers => [16], seconds => [1]})},
        #{key => killed, do => Of(2, 2, #{store => [ring], workers => [64], rate => [300], kill => [3], seconds => [10]})}
    ].

%% Those of Debian's that are not there are left out.
installed() -> [Store || Store <- ?STORES, atoll_load_bench:check(#{store => Store, keys => 1, size => 1, kill => 0, nodes => 3}) =:= ok].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => "The ring, operations a second, by nodes and workers:", from => nodes, down => nodes, across => {workers, ?WORKERS}, quantity => ops_per_s},
        #{caption => "The ring, the median of an operation in nanoseconds, by nodes and workers:", from => nodes, down => nodes, across => {workers, ?WORKERS}, quantity => latency},
        #{caption => "Stores side by side with 16 workers, operations a second:", from => beside, down => workers, across => {store, ?STORES}, quantity => ops_per_s},
        #{caption => "The same, the median of an operation in nanoseconds:", from => beside, down => workers, across => {store, ?STORES}, quantity => latency},
        #{caption => "Behind whom callers stand in a row:", from => nodes, kind => counted, head => ["nodes", "workers", "the tool says"], rows => fun in_a_row/1}
    ].

in_a_row({run, #{header := #{<<"points">> := Points}, rounds := Rounds}}) ->
    lists:uniq([
        [integer_to_list(Nodes), integer_to_list(Workers), Says]
     || #{<<"point">> := N, <<"servers">> := Says} <- Rounds, #{<<"nodes">> := Nodes, <<"workers">> := Workers} <- [lists:nth(N + 1, Points)]
    ]).

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => ?PAPER,
            says => "Riak 1.1.1 gets more done with more nodes, up to 60.",
            kind => counted,
            from => none,
            why => "Six nodes of a ring share two processors here. What one of them does less than the others is seen all the same."
        },
        #{
            figure => ?PAPER,
            says => "Neither memory nor disc nor network is in the way, but one server, which instrumented calls find.",
            kind => counted,
            from => nodes,
            by => fun(Answer) ->
                case lists:usort([Name || [_, _, Says] <- in_a_row(Answer), Name <- named(Says)]) of
                    [] -> {false, "No server had callers standing in a row."};
                    Names -> {true, ["Callers stood in a row behind ", lists:join(", ", Names), "."]}
                end
            end
        },
        #{
            figure => none,
            says => "With one node of three killed and back, fewer than one operation of a hundred fails.",
            kind => counted,
            from => killed,
            by => fun({run, #{rounds := Rounds} = Run}) ->
                case atoll_experiments_samples:by_start(failed, #{kill => 3}, Run) of
                    [] -> {unknown, "Nothing was measured."};
                    Samples ->
                        Errors = lists:join(" ", lists:usort([Says || #{<<"errors">> := Says} <- Rounds])),
                        {lists:all(fun({_, Percent}) -> Percent < 1 end, Samples), lists:join(" ", [["Of a hundred failed ", cell(Samples), "."] | [Errors || Errors =/= []]])}
                end
            end
        }
    ].

named(Says) ->
    case re:run(Says, "^Callers stand in a row behind (\\S+),", [{capture, [1], binary}]) of
        {match, [Name]} -> [Name];
        nomatch -> []
    end.
