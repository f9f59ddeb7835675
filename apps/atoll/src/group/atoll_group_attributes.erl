%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What nodes say of themselves, in any terms, so that others can choose among
%% them: `{gpu, 2}', `storage'. Each node holds its own; nobody is told, whoever wants to
%% know asks those that are connected.
%%
%% The table is the supervisor's: attributes end with the application.
-module(atoll_group_attributes).

-export([create_table/0, add/1, remove/1, own/0, with_all/1]).

%% How long a silent node can hold up a choice.
-define(ASK_MS, 3000).

%% @doc Makes the table; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc This node has these too.
-spec add([term()]) -> ok.
add(Attributes) ->
    true = ets:insert(?MODULE, [{Attribute} || Attribute <- Attributes]),
    ok.

%% @doc This node has these no more.
-spec remove([term()]) -> ok.
remove(Attributes) ->
    lists:foreach(fun(Attribute) -> true = ets:delete(?MODULE, Attribute) end, Attributes).

%% @doc Those of this node, sorted.
-spec own() -> [term()].
own() ->
    case ets:whereis(?MODULE) of
        undefined -> [];
        Table -> lists:sort([Attribute || {Attribute} <- ets:tab2list(Table)])
    end.

%% @doc The connected nodes that have all of these, sorted; one that does not answer
%% has none.
-spec with_all([term()]) -> [node()].
with_all(Attributes) ->
    Nodes = lists:sort(nodes(connected)),
    Answers = erpc:multicall(Nodes, ?MODULE, own, [], ?ASK_MS),
    [Node || {Node, {ok, Has}} <- lists:zip(Nodes, Answers), Attributes -- Has =:= []].
