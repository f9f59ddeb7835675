%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Which nodes a chain of cliques and links leads to, from some nodes on, by what a
%% table of the directory says. Pure.
-module(atoll_reach).

-export([new/2, is_reached/3]).

-export_type([reach/0]).

-record(reach, {
    %% Nodes that were passed through or that somebody on the way has a link with; all
    %% others are reached if one of their cliques is.
    nodes = #{} :: #{node() => []},
    cliques = #{} :: #{atoll_directory_table:clique_number() => []}
}).

-opaque reach() :: #reach{}.

%% @doc All that is reached from these.
-spec new([node()], atoll_directory_table:table()) -> reach().
new(Starts, Table) ->
    close(spread(Starts, Table, #reach{}), Table).

%% A link is told of by one of its ends, perhaps the far one: what leads on from there is
%% found by another look at those that have links and are not reached, as often as that finds more.
close(Reach, Table) ->
    More = atoll_directory_table:fold(
        fun
            (_Node, _, {_, _, []}, Nodes) -> Nodes;
            (Node, _, Standing, Nodes) -> [Node || leads_here(Node, Standing, Reach)] ++ Nodes
        end,
        [],
        Table
    ),
    case More of
        [] -> Reach;
        _ -> close(spread(lists:sort(More), Table, Reach), Table)
    end.

leads_here(Node, Standing, #reach{nodes = Nodes} = Reach) ->
    not is_map_key(Node, Nodes) andalso is_reached(Node, Standing, Reach).

spread([], _Table, Reach) ->
    Reach;
spread([Node | Nodes], Table, #reach{nodes = Reached} = Reach) ->
    case Reached of
        #{Node := _} ->
            spread(Nodes, Table, Reach);
        #{} ->
            Entered = Reach#reach{nodes = Reached#{Node => []}},
            case atoll_directory_table:standing(Node, Table) of
                unknown -> spread(Nodes, Table, Entered);
                {Cliques, _, Links} -> enter(Cliques, Links ++ Nodes, Table, Entered)
            end
    end.

enter([], Nodes, Table, Reach) ->
    spread(Nodes, Table, Reach);
enter([Clique | Cliques], Nodes, Table, #reach{cliques = Reached} = Reach) ->
    case Reached of
        #{Clique := _} ->
            enter(Cliques, Nodes, Table, Reach);
        #{} ->
            Bridges = atoll_directory_table:bridges(Clique, Table),
            enter(Cliques, Bridges ++ Nodes, Table, Reach#reach{cliques = Reached#{Clique => []}})
    end.

%% @doc Whether a node that stands so is among them.
-spec is_reached(node(), atoll_directory_table:standing(), reach()) -> boolean().
is_reached(Node, {Cliques, _, Links}, #reach{nodes = Nodes, cliques = Reached}) ->
    is_map_key(Node, Nodes) orelse lists:any(fun(Clique) -> is_map_key(Clique, Reached) end, Cliques) orelse
        lists:any(fun(Link) -> is_map_key(Link, Nodes) end, Links).
