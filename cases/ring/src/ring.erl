%% SPDX-License-Identifier: Apache-2.0
%% @doc The ring as its users and operators see it: who is in it, and what it does. {@link ring_kvs} has keys and values.
-module(ring).

-export([join/1, leave/0, remove/1, status/0, is_settled/0, partitions/0, stored/0, format_error/1]).

-export_type([error/0, status/0]).

-type error() ::
    not_started
    | {cannot_join, atoll:error()}
    %% The node has answered and is in no ring itself.
    | {no_ring, node()}
    | {already_in, node()}
    | {not_in, node()}
    %% Others are to have what it has, and there are none.
    | last_one.

-type status() :: #{
    epoch := non_neg_integer(),
    partitions := ring_hash:count(),
    copies := pos_integer(),
    members := [{node(), ring_state:status()}],
    %% Those that are well, as this node sees it.
    up := [node()],
    %% How many partitions each has.
    owned := #{node() => pos_integer()},
    %% Partitions that are on their way; and what this node hands over now.
    pending := non_neg_integer(),
    handoffs := non_neg_integer(),
    %% Partitions that run here.
    running := non_neg_integer(),
    counts := #{atom() => non_neg_integer()}
}.

-define(JOIN_MS, 15_000).
-define(LOOK_MS, 20).

%% @doc Has this node join the ring of another one; returns when this node knows the ring. It has partitions some time later ({@link is_settled/0}).
-spec join(node()) -> ok | {error, error()}.
join(Node) ->
    case ring_view:ring() of
        none -> {error, not_started};
        {ok, Ring} ->
            case ring_state:status_of(node(), Ring) of
                gone ->
                    case atoll:join(Node) of
                        ok -> joining(Node, erlang:monotonic_time(millisecond) + ?JOIN_MS);
                        {error, Error} -> {error, {cannot_join, Error}}
                    end;
                _ -> {error, {already_in, node()}}
            end
    end.

%% The ring comes when neighbours compare.
joining(Node, Deadline) ->
    {ok, Ring} = ring_view:ring(),
    case {ring_state:epoch(Ring), erlang:monotonic_time(millisecond) < Deadline} of
        {Epoch, _} when Epoch > 0 -> ring_gossip:put([ring_state:set_member(node(), joining, Ring)]);
        {0, true} ->
            receive after ?LOOK_MS -> ok end,
            joining(Node, Deadline);
        {0, false} -> {error, {no_ring, Node}}
    end.

%% @doc Has this node leave: what it has goes to others, and when nothing is left it is out.
-spec leave() -> ok | {error, error()}.
leave() -> gone(node(), leaving).

%% @doc A node is lost for good: others have its partitions from now on, and get what is in them from the other copies.
-spec remove(node()) -> ok | {error, error()}.
remove(Node) -> gone(Node, gone).

gone(Node, Status) ->
    case ring_view:ring() of
        none -> {error, not_started};
        {ok, Ring} ->
            case {ring_state:status_of(Node, Ring), ring_state:members([joining, valid], Ring) -- [Node]} of
                {gone, _} -> {error, {not_in, Node}};
                {_, []} -> {error, last_one};
                {_, _} -> ring_gossip:put([ring_state:set_member(Node, Status, Ring)])
            end
    end.

%% @doc Whether each partition is with the owner that it is to have, and all members are in or out, as this node knows it.
-spec is_settled() -> boolean().
is_settled() ->
    case ring_view:ring() of
        {ok, Ring} -> ring_state:epoch(Ring) > 0 andalso ring_state:is_settled(Ring) andalso ring_state:members([joining, leaving], Ring) =:= [];
        none -> false
    end.

%% @doc Each partition with its owner.
-spec partitions() -> [{ring_hash:partition(), node()}].
partitions() ->
    case ring_view:ring() of
        {ok, Ring} -> [{P, ring_state:owner(P, Ring)} || P <- lists:seq(0, ring_state:partitions(Ring) - 1)];
        none -> []
    end.

%% @doc Of each partition of the store that runs here, how many keys it has.
-spec stored() -> [{ring_hash:partition(), non_neg_integer()}].
stored() -> [{P, Keys} || {{ring_kvs_vnode, P}, Pid} <- ring_master:vnodes(), #{keys := Keys} <- [look(Pid)]].

look(Pid) ->
    try
        gen_server:call(Pid, look)
    catch
        exit:_ -> none
    end.

%% @doc What this node knows and does.
-spec status() -> {ok, status()} | {error, not_started}.
status() ->
    case ring_view:ring() of
        none -> {error, not_started};
        {ok, Ring} ->
            Owners = [Owner || Owner <- tuple_to_list(ring_state:owners(Ring)), Owner =/= none],
            {ok, #{
                epoch => ring_state:epoch(Ring), partitions => ring_state:partitions(Ring), copies => ring_state:copies(Ring),
                members => ring_state:members(Ring), up => ring_view:up(),
                owned => lists:foldl(fun(Owner, All) -> maps:update_with(Owner, fun(N) -> N + 1 end, 1, All) end, #{}, Owners),
                pending => map_size(ring_state:pending(Ring)), handoffs => length(ring_manager:look()), running => length(ring_master:vnodes()),
                counts => ring_view:counts()
            }}
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(not_started) -> "The ring does not run on this node.";
format_error({cannot_join, Error}) -> ["The node cannot join the cluster: ", atoll:format_error(Error), "."];
format_error({no_ring, Node}) -> io_lib:format("The node ~ts is in no ring.", [Node]);
format_error({already_in, Node}) -> io_lib:format("The node ~ts is in a ring already.", [Node]);
format_error({not_in, Node}) -> io_lib:format("The node ~ts is not in the ring.", [Node]);
format_error(last_one) -> "No other node could take what this one has.".
