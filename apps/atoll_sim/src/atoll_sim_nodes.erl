%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes of a world, by their names.
%%
%% A table is a value, but while it is open its nodes lie in the dictionary of the process that
%% has opened it, where they are changed in place, as with {@link atoll_sim_queue}: in a map of
%% a thousand each change copies some forty words. So of an open table there is only the
%% latest, and a process has one open table at a time.
-module(atoll_sim_nodes).

-export([new/0, find/2, put/3, map/2, names/1, open/1, close/1, drop/0]).

-export_type([nodes/1]).

-record(nodes, {
    %% All of them. While it is open only the names count.
    nodes = #{} :: #{node() => term()},
    %% Whether the nodes are in the dictionary.
    is_open = false :: boolean()
}).

-opaque nodes(_Node) :: #nodes{}.

-define(KEY(Name), {?MODULE, Name}).

%% @doc There are none.
-spec new() -> nodes(none()).
new() ->
    #nodes{}.

%% @doc The node of that name, or `undefined'.
-spec find(node(), nodes(Node)) -> Node | undefined.
find(Name, #nodes{is_open = true}) -> get(?KEY(Name));
find(Name, #nodes{nodes = Nodes}) -> maps:get(Name, Nodes, undefined).

%% @doc Puts a node in the place of the one of that name, if there is one. An open table stays
%% the same term, unless the node is new.
-spec put(node(), Node, nodes(Node)) -> nodes(Node).
put(Name, Node, #nodes{is_open = true} = Table) ->
    case put(?KEY(Name), Node) of
        undefined -> Table#nodes{nodes = (Table#nodes.nodes)#{Name => []}};
        _ -> Table
    end;
put(Name, Node, #nodes{nodes = Nodes} = Table) ->
    Table#nodes{nodes = Nodes#{Name => Node}}.

%% @doc What Fun makes of each, in a table that is not open.
-spec map(fun((Node) -> Other), nodes(Node)) -> nodes(Other).
map(Fun, #nodes{nodes = Nodes, is_open = false}) ->
    #nodes{nodes = maps:map(fun(_Name, Node) -> Fun(Node) end, Nodes)}.

%% @doc The names, in their order.
-spec names(nodes(_)) -> [node()].
names(#nodes{nodes = Nodes}) -> lists:sort(maps:keys(Nodes)).

%% @doc From now on this process changes it in place.
-spec open(nodes(Node)) -> nodes(Node).
open(#nodes{nodes = Nodes, is_open = false} = Table) ->
    maps:foreach(fun(Name, Node) -> put(?KEY(Name), Node) end, Nodes),
    Table#nodes{is_open = true}.

%% @doc It is a value again.
-spec close(nodes(Node)) -> nodes(Node).
close(#nodes{nodes = Nodes, is_open = true}) ->
    #nodes{nodes = maps:map(fun(Name, _) -> erase(?KEY(Name)) end, Nodes)}.

%% @doc The one that this process has open is of no use any more.
-spec drop() -> ok.
drop() ->
    lists:foreach(fun erase/1, [Key || {?MODULE, _} = Key <- get_keys()]).
