%% @doc What is counted in a run: on one node, and of a node with those below it.
-module(aco_report).

-export([traffic/0, own/2, lost/1, sum/2]).

-export_type([report/0, traffic/0, seen/0]).

%% Of a node and those below.
-type report() :: #{
    packets := non_neg_integer() | unknown,
    connections := #{node() => non_neg_integer()},
    kills := non_neg_integer(),
    restarts := non_neg_integer(),
    names := non_neg_integer(),
    %% whose own report is missing
    lost := [node()]
}.

%% What the connections of a node have carried.
-type traffic() :: non_neg_integer() | unknown.

%% What its host knows of a node.
-type seen() :: #{
    %% at the start
    before := traffic(),
    %% the most connections at once
    peak := non_neg_integer(),
    names := non_neg_integer(),
    lost := [node()]
}.

%% @doc What the connections of this node have carried so far.
-spec traffic() -> traffic().
traffic() ->
    atoll_traffic:packets().

%% @doc Of this node alone, now.
-spec own(seen(), aco_keep:keep()) -> report().
own(#{before := Before, peak := Peak, names := Names, lost := Lost}, Keep) ->
    #{
        packets => since(Before, traffic()),
        connections => #{node() => Peak},
        kills => aco_keep:counted(kills, Keep),
        restarts => aco_keep:counted(restarts, Keep),
        names => Names,
        lost => lists:usort(Lost)
    }.

%% A connection that was closed since has taken along what it had carried before, too.
since(Before, Now) when is_integer(Before), is_integer(Now) -> max(0, Now - Before);
since(_, _) -> unknown.

%% @doc Of a node that is silent.
-spec lost(node()) -> report().
lost(Node) ->
    #{packets => 0, connections => #{}, kills => 0, restarts => 0, names => 0, lost => [Node]}.

%% @doc Of the nodes of both.
-spec sum(report(), report()) -> report().
sum(#{connections := Connections} = Report, #{connections := Others} = Sum) ->
    Added = maps:from_list([{Key, plus(maps:get(Key, Report), maps:get(Key, Sum))}
                            || Key <- [packets, kills, restarts, names, lost]]),
    Added#{connections => maps:merge(Connections, Others)}.

plus(A, B) when is_list(A) -> lists:umerge(A, B);
plus(A, B) when is_integer(A), is_integer(B) -> A + B;
plus(_, _) -> unknown.
