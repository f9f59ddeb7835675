%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts clusters whose nodes run Atoll: all connected with all, or in groups that gateways
%% join; with an overlay or without; on Erlang's distribution or on the carrier. A cluster is there
%% when its nodes are what they shall be, and whoever started it owns it, see {@link atoll_cluster}.
-module(atoll_up).

-export([start/2]).

-export_type([plan/0, members/0, tell/0]).

-type plan() :: #{
    nodes := pos_integer(),
    name := string(),
    %% How many groups, and how many gateways in each.
    groups := none | {pos_integer(), pos_integer()},
    overlay := atoll_up_overlay:overlay() | none,
    carrier := atoll_up_carrier:carrier(),
    %% Further arguments of the nodes.
    args := [string()]
}.

-type members() :: [{s_group:name(), [node()]}].

-type tell() :: fun(({started, non_neg_integer(), pos_integer()} | {waiting, unicode:chardata()} | waited) -> term()).
%% Is told how far it is.

%% @doc Starts it; an error is a sentence, and nothing is left of it then.
-spec start(plan(), tell()) -> {ok, atoll_cluster:cluster(), members()} | {error, unicode:chardata()}.
start(#{nodes := Count, name := Name, groups := Groups, overlay := Overlay, carrier := Carrier, args := Args}, Tell) ->
    Options = #{
        nodes => Count,
        name => Name,
        connect_all => Groups =:= none,
        progress => fun(Done, All) -> Tell({started, Done, All}) end
    },
    Nodes = atoll_up_carrier:cluster(Carrier, maps:merge(Options, atoll_up_overlay:cluster(Overlay))),
    case atoll_cluster:start(atoll_up_carrier:with_args(Args, Nodes)) of
        {ok, Cluster} ->
            case ready(Cluster, Groups, Overlay, relays(Carrier), Tell) of
                {ok, Members} ->
                    {ok, Cluster, Members};
                {error, _} = Error ->
                    ok = atoll_cluster:stop(Cluster),
                    Error
            end;
        {error, Reason} ->
            {error, atoll_cluster:format_error(Reason)}
    end.

relays({atoll, _, _, Relay, _}) -> Relay =/= no;
relays(stock) -> false.

ready(Cluster, Groups, Overlay, Relays, Tell) ->
    case join(Cluster, Groups, Overlay) of
        {ok, Members} ->
            Waits =
                [{"Waiting until all nodes know each other", fun() -> settle(Cluster, Overlay, Members) end} || Overlay =/= none] ++
                [{"Waiting until all nodes know how to reach each other", fun() -> atoll_up_overlay:reach(Cluster) end} || Relays],
            wait(Waits, Members, Tell);
        {error, _} = Error ->
            Error
    end.

join(Cluster, none, none) -> atoll_up_join:mesh(Cluster);
join(_Cluster, none, _Overlay) -> {ok, []};
join(Cluster, {Count, Each}, _Overlay) -> atoll_up_join:groups(Cluster, Count, Each).

wait([], Members, _Tell) ->
    {ok, Members};
wait([{What, Wait} | Waits], Members, Tell) ->
    _ = Tell({waiting, What}),
    Waited = Wait(),
    _ = Tell(waited),
    case Waited of
        ok -> wait(Waits, Members, Tell);
        {error, _} = Error -> Error
    end.

settle(Cluster, Overlay, Members) ->
    case atoll_up_overlay:tell(Cluster, Overlay, Members =/= []) of
        ok -> atoll_up_overlay:settle(Cluster);
        {error, _} = Error -> Error
    end.
