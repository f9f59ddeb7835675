%% SPDX-License-Identifier: Apache-2.0
%% @doc What this node knows of the ring, in a table that everybody reads without asking a process: each partition's owner, and who is well.
%%
%% The gossip writes the first ({@link ring_gossip}), the manager the second ({@link ring_manager}). The table belongs to the supervisor, so it outlives both.
-module(ring_view).

-export([new/0, install/1, ring/0, owner/1, set_up/2, up/0, is_up/1, is_begun/0, preflist/2, owners/2, count/1, count/2, counts/0]).

-define(COUNTS, [handed, taken, repaired, exchanged, differing, lost_vnodes, overloaded, misrouted]).

%% @doc Makes the table; the caller owns it.
-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    true = ets:insert(?MODULE, [{up, [node()]}, {{up, node()}} | [{{count, What}, 0} || What <- ?COUNTS]]),
    ok.

%% @doc This is the ring from now on.
-spec install(ring_state:ring()) -> ok.
install(Ring) ->
    Owners = ring_state:owners(Ring),
    Before = case ring() of {ok, Old} -> ring_state:owners(Old); none -> {} end,
    Changed = case tuple_size(Before) =:= tuple_size(Owners) of
        true -> [P || P <- lists:seq(0, tuple_size(Owners) - 1), element(P + 1, Before) =/= element(P + 1, Owners)];
        false -> lists:seq(0, tuple_size(Owners) - 1)
    end,
    true = ets:insert(?MODULE, [{ring, Ring}, {partitions, tuple_size(Owners)} | [{P, element(P + 1, Owners)} || P <- Changed]]),
    ok.

%% @doc The ring, once there is one.
-spec ring() -> {ok, ring_state:ring()} | none.
ring() ->
    try ets:lookup(?MODULE, ring) of
        [{ring, Ring}] -> {ok, Ring};
        [] -> none
    catch
        error:badarg -> none
    end.

%% @doc Who answers for a partition.
-spec owner(ring_hash:partition()) -> node() | none.
owner(Partition) -> ets:lookup_element(?MODULE, Partition, 2).

%% @doc These nodes are well, and no others; and whether this one takes requests from now on, which it does until it ends.
-spec set_up([node()], Begins :: boolean()) -> ok.
set_up(Nodes, Begins) ->
    Before = up(),
    true = ets:insert(?MODULE, [{up, Nodes} | [{begun} || Begins] ++ [{{up, Node}} || Node <- Nodes]]),
    _ = [ets:delete(?MODULE, {up, Node}) || Node <- Before -- Nodes],
    ok.

%% @doc Who is well, this node among them.
-spec up() -> [node()].
up() -> ets:lookup_element(?MODULE, up, 2).

%% @doc Whether a node is.
-spec is_up(node()) -> boolean().
is_up(Node) -> ets:member(?MODULE, {up, Node}).

%% @doc Whether this node takes requests: before that those whom it does not know yet would count as lost.
-spec is_begun() -> boolean().
is_begun() ->
    try
        ets:member(?MODULE, begun)
    catch
        error:badarg -> false
    end.

%% @doc Whom to ask for a key, with the partition that it belongs to; nobody where there is no ring yet.
-spec preflist(Key :: term(), N :: pos_integer()) -> {ok, ring_hash:partition(), [ring_preflist:entry()]} | none.
preflist(Key, N) ->
    try ets:lookup(?MODULE, partitions) of
        [{partitions, Count}] ->
            Partition = ring_hash:partition(Key, Count),
            case owner(Partition) of
                none -> none;
                _ -> {ok, Partition, ring_preflist:of_partition(Partition, N, Count, fun owner/1, fun is_up/1)}
            end;
        [] -> none
    catch
        error:badarg -> none
    end.

%% @doc How many nodes have this partition and those that follow it, so many in all.
-spec owners(ring_hash:partition(), N :: pos_integer()) -> pos_integer().
owners(Partition, N) ->
    [{partitions, Count}] = ets:lookup(?MODULE, partitions),
    length(lists:usort([owner(P) || P <- ring_hash:successors(Partition, N, Count)])).

%% @doc Counts something that has happened.
-spec count(atom()) -> ok.
count(What) -> count(What, 1).

%% @doc Counts so many of it.
-spec count(atom(), non_neg_integer()) -> ok.
count(What, N) ->
    _ = ets:update_counter(?MODULE, {count, What}, N),
    ok.

%% @doc How often what has happened since the start.
-spec counts() -> #{atom() => non_neg_integer()}.
counts() -> maps:from_list(ets:select(?MODULE, [{{{count, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}])).
