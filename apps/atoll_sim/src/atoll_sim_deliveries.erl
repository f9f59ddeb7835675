%% SPDX-License-Identifier: Apache-2.0
%% @doc What a watcher of a world keeps of broadcasts: what was sent, who was owed
%% it, who got it, how often, over how many hops and how late.
%%
%% A broadcast is told by its payload, which is a number of whoever drives the
%% world ({@link send/3}). It is owed to every life that had a neighbour when it
%% was sent, for as long as that life lasts: one that began later is owed nothing
%% of what was before it.
-module(atoll_sim_deliveries).

-export([new/0, forget/1, send/3, see/4, owed/1, summary/1]).

-export_type([deliveries/0]).

-type id() :: non_neg_integer().

-record(deliveries, {
    %% Since when each life has had a neighbour.
    joined = #{} :: #{node() => integer()},
    sent = #{} :: #{id() => integer()},
    got = #{} :: #{id() => #{node() => []}},
    latencies = #{} :: atoll_sim_stats:tally(),
    %% Payloads that arrived anywhere, and the first ones of each node.
    copies = 0 :: non_neg_integer(),
    firsts = 0 :: non_neg_integer(),
    %% Of the copy that a node just got: what it delivers next came with it.
    hops = 0 :: non_neg_integer(),
    hops_max = 0 :: non_neg_integer()
}).

-opaque deliveries() :: #deliveries{}.

%% @doc Nothing was sent.
-spec new() -> deliveries().
new() ->
    #deliveries{}.

%% @doc Forgets the broadcasts so far, not who has joined.
-spec forget(deliveries()) -> deliveries().
forget(#deliveries{joined = Joined}) ->
    #deliveries{joined = Joined}.

%% @doc A node broadcasts that number.
-spec send(id(), node(), atoll_sim_world:world()) -> atoll_sim_world:world().
send(Id, Node, World) ->
    atoll_sim_world:cast(Node, {broadcast, Id}, atoll_sim_world:note(Node, {sends, Id}, World)).

%% @doc Takes what a watcher sees. Copies are counted if it sees messages.
-spec see(integer(), node() | world, atoll_sim_world:sight(), deliveries()) -> deliveries().
see(_Now, _Node, {got, _From, {_Start, _Life, broadcast, Message}}, #deliveries{copies = Copies} = D) ->
    case atoll_plumtree:payloads(Message) of
        [] -> D;
        Hops -> D#deliveries{copies = Copies + length(Hops), hops = lists:max(Hops)}
    end;
see(Now, Node, {notice, {broadcast, Sender, Id}}, D) ->
    delivered(Now, Node, Sender, Id, D);
see(Now, _Node, {note, {sends, Id}}, #deliveries{sent = Sent} = D) ->
    D#deliveries{sent = Sent#{Id => Now}};
see(Now, Node, {notice, {neighbour_up, _}}, #deliveries{joined = Joined} = D) ->
    case Joined of
        #{Node := _} -> D;
        #{} -> D#deliveries{joined = Joined#{Node => Now}}
    end;
see(_Now, Node, killed, #deliveries{joined = Joined, got = Got} = D) ->
    D#deliveries{joined = maps:remove(Node, Joined), got = maps:map(fun(_, Who) -> maps:remove(Node, Who) end, Got)};
see(_Now, _Node, _Sight, D) ->
    D.

%% One that was sent before it was told to forget is not counted.
delivered(Now, Node, Sender, Id, #deliveries{sent = Sent, got = Got} = D) ->
    case Sent of
        #{Id := _} when Node =:= Sender ->
            D#deliveries{got = add(Id, Node, Got)};
        #{Id := At} ->
            D#deliveries{
                got = add(Id, Node, Got),
                firsts = D#deliveries.firsts + 1,
                hops_max = max(D#deliveries.hops, D#deliveries.hops_max),
                latencies = atoll_sim_stats:add(Now - At, D#deliveries.latencies)
            };
        #{} ->
            D
    end.

add(Id, Node, Got) ->
    Who = maps:get(Id, Got, #{}),
    Got#{Id => Who#{Node => []}}.

%% @doc How many deliveries are owed, and how many of these were made.
-spec owed(deliveries()) -> {Owed :: non_neg_integer(), Made :: non_neg_integer()}.
owed(#deliveries{joined = Joined, sent = Sent, got = Got}) ->
    maps:fold(
        fun(Id, At, {Owed, Made}) ->
            Having = maps:get(Id, Got, #{}),
            Entitled = [Node || {Node, Since} <- maps:to_list(Joined), Since < At],
            {Owed + length(Entitled), Made + length([N || N <- Entitled, is_map_key(N, Having)])}
        end,
        {0, 0},
        Sent
    ).

%% @doc All of it in numbers. `redundancy' is how many copies came beyond the first
%% of each node, relative.
-spec summary(deliveries()) -> #{atom() => number() | none}.
summary(#deliveries{latencies = Latencies, copies = Copies, firsts = Firsts, hops_max = HopsMax} = D) ->
    {Owed, Made} = owed(D),
    #{
        delivered => atoll_sim_stats:share(Made, Owed),
        redundancy => (Copies - Firsts) / max(1, Firsts),
        hops_max => HopsMax,
        latency_ms_p50 => atoll_sim_stats:percentile(Latencies, 50),
        latency_ms_p99 => atoll_sim_stats:percentile(Latencies, 99)
    }.
