%% SPDX-License-Identifier: Apache-2.0
%% @doc What an overlay looks like from above.
%%
%% A graph is a list of nodes, each with the neighbours that it names; the order
%% of the list decides between equals, so that the same list gives the same
%% answer. Neighbours that are not in the list themselves (they are dead) connect
%% nothing and count as dangling.
-module(atoll_sim_graph).

-export([components/1, connected/1, symmetric/1, one_sided/1, summary/1]).

-export_type([graph/0]).

-type graph() :: [{node(), [node()]}].
%% Each node once, no node its own neighbour, no neighbour twice.

%% @doc The connected parts, the largest first. A link joins two nodes even if
%% only one of them names the other. Nodes are in the order of the graph.
-spec components(graph()) -> [[node(), ...]].
components(Graph) ->
    {_, Parts} = lists:foldl(
        fun({{Node, _}, Root}, {Last, Parts}) ->
            {Last + 1, maps:update_with(Root, fun({At, Ns}) -> {At, [Node | Ns]} end, {Last, [Node]}, Parts)}
        end,
        {0, #{}},
        lists:zip(Graph, roots(Graph))
    ),
    Sized = [{-length(Nodes), At, Nodes} || {At, Nodes} <- maps:values(Parts)],
    [lists:reverse(Nodes) || {_, _, Nodes} <- lists:sort(Sized)].

%% @doc The share of the nodes that are in the largest part; 1.0 of no nodes.
-spec connected(graph()) -> float().
connected(Graph) ->
    Sizes = lists:foldl(fun atoll_sim_stats:add/2, #{}, roots(Graph)),
    atoll_sim_stats:share(lists:max([0 | maps:values(Sizes)]), length(Graph)).

%% @doc The share of the links between listed nodes that both ends name.
-spec symmetric(graph()) -> float().
symmetric(Graph) ->
    {Both, Single, _Dangling} = links(Graph),
    atoll_sim_stats:share(Both, Both + Single).

%% @doc The links that only their first node names, dangling ones among them, in
%% the order of the graph.
-spec one_sided(graph()) -> [{node(), node()}].
one_sided(Graph) ->
    Views = views(Graph),
    [{Node, Peer} || {Node, Peers} <- Graph, Peer <- Peers, link(Node, Peer, Views) =/= both].

%% @doc All of it in numbers. A node's degree is how many neighbours it names.
-spec summary(graph()) ->
    #{
        nodes := non_neg_integer(),
        components := non_neg_integer(),
        connected := float(),
        degree_min := non_neg_integer(),
        degree_max := non_neg_integer(),
        degree_mean := float(),
        symmetric := float(),
        %% Neighbours that are not in the list.
        dangling := non_neg_integer()
    }.
summary(Graph) ->
    Sizes = lists:foldl(fun atoll_sim_stats:add/2, #{}, roots(Graph)),
    Degrees = [length(Peers) || {_, Peers} <- Graph],
    {Both, Single, Dangling} = links(Graph),
    Nodes = length(Graph),
    #{
        nodes => Nodes,
        components => map_size(Sizes),
        connected => atoll_sim_stats:share(lists:max([0 | maps:values(Sizes)]), Nodes),
        degree_min => lists:foldl(fun min/2, lists:max([0 | Degrees]), Degrees),
        degree_max => lists:max([0 | Degrees]),
        degree_mean => lists:sum(Degrees) / max(1, Nodes),
        symmetric => atoll_sim_stats:share(Both, Both + Single),
        dangling => Dangling
    }.

%% Ends of links: of those that both ends name, that one does, and dangling.
links(Graph) ->
    Views = views(Graph),
    lists:foldl(
        fun({Node, Peers}, Counts) ->
            lists:foldl(
                fun(Peer, {Both, Single, Dangling}) ->
                    case link(Node, Peer, Views) of
                        both -> {Both + 1, Single, Dangling};
                        single -> {Both, Single + 1, Dangling};
                        dangling -> {Both, Single, Dangling + 1}
                    end
                end,
                Counts,
                Peers
            )
        end,
        {0, 0, 0},
        Graph
    ).

views(Graph) ->
    maps:from_list([{Node, maps:from_keys(Peers, [])} || {Node, Peers} <- Graph]).

link(Node, Peer, Views) ->
    case Views of
        #{Peer := #{Node := _}} -> both;
        #{Peer := _} -> single;
        #{} -> dangling
    end.

%% A number for each node, equal for nodes of one part: union-find with path
%% halving. The atomics are no state, they live as long as this call.
roots(Graph) ->
    Numbers = lists:seq(1, length(Graph)),
    Index = maps:from_list(lists:zip([Node || {Node, _} <- Graph], Numbers)),
    Parents = atomics:new(length(Graph) + 1, []),
    lists:foreach(fun(N) -> atomics:put(Parents, N, N) end, Numbers),
    lists:foreach(
        fun({Node, Peers}) ->
            From = map_get(Node, Index),
            lists:foreach(fun(Peer) -> unite(From, Peer, Index, Parents) end, Peers)
        end,
        Graph
    ),
    [root(N, Parents) || N <- Numbers].

unite(From, Peer, Index, Parents) ->
    case Index of
        #{Peer := To} ->
            case {root(From, Parents), root(To, Parents)} of
                {Root, Root} -> ok;
                {A, B} -> atomics:put(Parents, max(A, B), min(A, B))
            end;
        #{} ->
            ok
    end.

root(N, Parents) ->
    case atomics:get(Parents, N) of
        N ->
            N;
        Parent ->
            Grand = atomics:get(Parents, Parent),
            atomics:put(Parents, N, Grand),
            root(Grand, Parents)
    end.
