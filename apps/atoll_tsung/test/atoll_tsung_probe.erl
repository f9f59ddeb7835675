%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes that Tsung calls: counts who has called, and how.
-module(atoll_tsung_probe).

-export([start/0, count/1, count_caller/0, hang/1, counted/1, counted/0]).

%% @doc Begins to count, from nothing.
-spec start() -> ok.
start() ->
    Self = self(),
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        ?MODULE = ets:new(?MODULE, [named_table, public, {write_concurrency, true}]),
        Self ! counting,
        receive stop -> ok end
    end),
    receive counting -> ok end.

%% @doc One more of that kind.
-spec count(term()) -> pos_integer().
count(What) -> ets:update_counter(?MODULE, What, 1, {What, 0}).

%% @doc One more of the node that has called.
-spec count_caller() -> pos_integer().
count_caller() -> count(node(group_leader())).

%% @doc One more, and it does not return as long as the node lives.
-spec hang(term()) -> no_return().
hang(What) ->
    _ = count(What),
    receive after infinity -> ok end.

%% @doc How many there were.
-spec counted(term()) -> non_neg_integer().
counted(What) ->
    case ets:lookup(?MODULE, What) of
        [{What, N}] -> N;
        [] -> 0
    end.

%% @doc All kinds, and how many of each.
-spec counted() -> [{term(), pos_integer()}].
counted() -> lists:sort(ets:tab2list(?MODULE)).
