%% SPDX-License-Identifier: Apache-2.0
%% A node that broadcasts and does nothing else: its neighbours are the peers that it
%% is given, as long as the link with them is up.
-module(atoll_sim_plumtree_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3, summary/1]).
-export([world/3, random_graph/3, names/1]).

init(#{peers := Peers} = Config, Now) ->
    {State, Effects} = atoll_plumtree:init(maps:remove(peers, Config), Now),
    {{Peers, State}, [{want, Peer} || Peer <- Peers] ++ Effects}.

handle({up, Peer}, Now, {Peers, State}) ->
    case lists:member(Peer, Peers) of
        true -> inner({up, Peer}, Now, {Peers, State});
        false -> {{Peers, State}, []}
    end;
handle({cast, {unreachable, _}}, _Now, Node) ->
    {Node, []};
handle(Event, Now, Node) ->
    inner(Event, Now, Node).

inner(Event, Now, {Peers, State0}) ->
    {State, Effects} = atoll_plumtree:handle(Event, Now, State0),
    {{Peers, State}, Effects}.

summary({_Peers, State}) ->
    atoll_plumtree:summary(State).

%% A world whose nodes are not started yet; a graph has the peers of each node.
world(Graph, Options, Seed) ->
    atoll_sim_world:new(
        maps:merge(
            #{
                protocol => ?MODULE,
                seed => Seed,
                config => fun(Name, Incarnation, NodeSeed) ->
                    #{
                        self => Name,
                        incarnation => Incarnation,
                        seed => NodeSeed,
                        options => maps:get(options, Options, #{}),
                        peers => maps:get(Name, Graph)
                    }
                end
            },
            maps:remove(options, Options)
        )
    ).

names(Count) ->
    Width = length(integer_to_list(Count)),
    [list_to_atom(lists:flatten(io_lib:format("n~*..0b", [Width, N]))) || N <- lists:seq(1, Count)].

%% Connected: a ring, in which each node draws more peers until it has Degree of them,
%% as far as that is possible.
random_graph(Count, Degree, Seed) ->
    Names = names(Count),
    Ring = lists:foldl(
        fun({A, B}, Graph) -> edge(A, B, Graph) end,
        maps:from_list([{Name, []} || Name <- Names]),
        lists:zip(Names, tl(Names) ++ [hd(Names)])
    ),
    Stubs = lists:append([lists:duplicate(max(0, Degree - 2), Name) || Name <- Names]),
    {Keyed, _} = lists:mapfoldl(
        fun(Stub, R0) ->
            {X, R} = rand:uniform_s(R0),
            {{X, Stub}, R}
        end,
        rand:seed_s(exsss, Seed),
        Stubs
    ),
    join([Stub || {_, Stub} <- lists:sort(Keyed)], Ring).

join([A, B | Stubs], Graph) -> join(Stubs, edge(A, B, Graph));
join(_, Graph) -> Graph.

edge(A, A, Graph) ->
    Graph;
edge(A, B, Graph) ->
    #{A := As, B := Bs} = Graph,
    case lists:member(B, As) of
        true -> Graph;
        false -> Graph#{A := As ++ [B], B := Bs ++ [A]}
    end.
