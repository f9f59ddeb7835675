%% SPDX-License-Identifier: Apache-2.0
%% @doc What came of a run, of what clients and the server have kept: the same for real nodes and for simulated ones.
-module(adcounter_result).

-export([new/3, judge/1]).

-export_type([said/0, result/0]).

-type said() :: #{
    %% When each client has shown one, and when it saw all disabled.
    clients := [{Shown :: [integer()], SeenAt :: integer() | never}],
    %% When the server, or whoever was first, took the last advertisement away.
    disabled_at := integer() | never,
    %% When all counters were the same everywhere; and the count of each advertisement on each node.
    equal_at := integer() | never,
    counts := [[non_neg_integer()]],
    %% Of each node what its replica sent, by kind.
    sent := [#{atom() => #{messages | bytes := non_neg_integer()}}],
    %% What the replicas have counted.
    counted := [#{atom() => non_neg_integer()}],
    %% Over how many neighbours news goes at most from the first to the last; and for how long a machine with other work to do may hold up all of it.
    hops := pos_integer(),
    slack_ms := non_neg_integer()
}.

-type result() :: #{
    %% Impressions, all together; and what the counters say, `differ' if they are not the same everywhere.
    shown := non_neg_integer(),
    counted := non_neg_integer() | differ,
    overcount := non_neg_integer(),
    overcount_percent := float(),
    %% How many could be too many at most: those of all clients while the count goes to the server and the end comes back, each over so many neighbours.
    bound := non_neg_integer(),
    clients := pos_integer(),
    seen := non_neg_integer(),
    %% After the moment at which so many had been shown as were paid for, in milliseconds: the last advertisement was taken away;
    %% the last client has seen that; all counters were the same everywhere.
    disabled_ms := number() | never,
    seen_ms := number() | never,
    equal_ms := number() | never,
    %% What was sent, all nodes together, and by the busiest one.
    sent := #{atom() => #{messages | bytes := non_neg_integer()}},
    bytes := non_neg_integer(),
    bytes_max := non_neg_integer(),
    %% The sums of what replicas count: `merged', `redundant', `fallbacks', `forgotten', `unheard'.
    replicas := #{atom() => non_neg_integer()},
    %% Of real nodes: the memory of the server, and of a client on the average; and of the server's replica in which part of all looks it was at work, and how many messages
    %% waited for it, on the average and at most.
    memory_mb => #{server | client => float()},
    server => #{busy := float(), waiting := float(), waiting_max := non_neg_integer()}
}.

-define(COUNTED, [merged, redundant, fallbacks, forgotten, unheard]).

%% @doc Puts it together.
-spec new(adcounter_options:options(), Clients :: pos_integer(), said()) -> result().
new(#{ads := Ads, budget := Budget} = Settings, Clients, Said) ->
    #{clients := Of, disabled_at := DisabledAt, equal_at := EqualAt, counts := Counts, sent := Sent, counted := Counted} = Said,
    Times = lists:sort(lists:append([Shown || {Shown, _} <- Of])),
    Seen = [At || {_, At} <- Of, At =/= never],
    Same = lists:usort(Counts),
    %% Of several advertisements the budgets end one after the other.
    Last = nth(Ads * Budget, Times),
    SeenAt = case length(Seen) of Clients -> lists:max(Seen); _ -> never end,
    {Over, Percent} =
        case Same of
            [[_ | _] = Each] -> adcounter_program:overcount(Each, Budget);
            _ -> {max(0, length(Times) - Ads * Budget), max(0, length(Times) - Ads * Budget) * 100 / (Ads * Budget)}
        end,
    #{
        shown => length(Times),
        counted => case Same of [Each1] -> lists:sum(Each1); _ -> differ end,
        overcount => Over,
        overcount_percent => Percent,
        bound => Ads * Clients * each(Settings, Said),
        clients => Clients,
        seen => length(Seen),
        disabled_ms => since(Last, DisabledAt),
        seen_ms => since(Last, SeenAt),
        equal_ms => since(Last, EqualAt),
        sent => lists:foldl(fun added/2, #{}, Sent),
        bytes => lists:sum([bytes(Kinds) || Kinds <- Sent]),
        bytes_max => lists:max([0 | [bytes(Kinds) || Kinds <- Sent]]),
        replicas => maps:from_list([{Key, lists:sum([maps:get(Key, C, 0) || C <- Counted])} || Key <- ?COUNTED])
    }.

nth(N, Times) when length(Times) >= N -> lists:nth(N, Times);
nth(_, _) -> never.

since(never, _) -> never;
since(_, never) -> never;
since(From, To) -> max(0, To - From).

%% What a client shows while the news travels. A pause is three quarters of the interval at least; a replica tells what is new after five quarters of its own at most, and
%% who is off line is so for one and a half times the mean at most.
each(#{impression_ms := ImpressionMs, propagation_ms := PropagationMs, offline := Offline, offline_ms := OfflineMs}, #{hops := Hops, slack_ms := SlackMs}) ->
    Away = case Offline of 0 -> 0; _ -> 3 * OfflineMs div 2 end,
    1 + ceil((2 * Hops * (5 * PropagationMs div 4 + Away) + SlackMs) * 4 / (3 * ImpressionMs)).

bytes(Kinds) -> lists:sum([Bytes || #{bytes := Bytes} <- maps:values(Kinds)]).

added(Kinds, Sum) ->
    maps:fold(
        fun(Kind, #{messages := Messages, bytes := Bytes}, Acc) ->
            #{messages := M, bytes := B} = maps:get(Kind, Acc, #{messages => 0, bytes => 0}),
            Acc#{Kind => #{messages => M + Messages, bytes => B + Bytes}}
        end,
        Sum,
        Kinds
    ).

%% @doc Whether it is as promised; the first thing that is not.
-spec judge(result()) -> ok | {failed, unicode:chardata()}.
judge(#{clients := Clients, seen := Seen}) when Seen < Clients ->
    {failed, io_lib:format("~b of ~b clients have not seen that all advertisements are disabled", [Clients - Seen, Clients])};
judge(#{counted := differ}) ->
    {failed, "the counters are not the same everywhere"};
judge(#{counted := Counted, shown := Shown}) when Counted =/= Shown ->
    {failed, io_lib:format("~b impressions were shown, and ~b counted", [Shown, Counted])};
judge(#{overcount := Over, bound := Bound}) when Over > Bound ->
    {failed, io_lib:format("~b impressions were too many, and ~b could be at most", [Over, Bound])};
judge(_) ->
    ok.
