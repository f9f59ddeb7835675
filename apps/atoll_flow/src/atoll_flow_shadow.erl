%% SPDX-License-Identifier: Apache-2.0
%% @doc The shadow network of SD-Mon: which agent owns which node of a cluster that is observed. Pure: what happened to
%% groups, nodes and agents comes in, what is to be done comes out.
%%
%% There is an agent for each s_group and one for each free node, which is in no group. Promised, at every moment: each
%% node that is observed has one owner, which is the agent of a group that it is in, or its own agent if it
%% is in none. A node keeps its owner for as long as it may. One that needs a new owner gets the agent of the first of its groups, in the
%% order in which groups became known. Effects are in an order in which a node is given up before somebody else gets it.
%%
%% What an agent is to own has a token, a number that grows with each change. A change says the token before it, too: who has another one
%% has missed something, and is to leave the change. An agent that says another token than the one that is kept here gets its
%% whole configuration again.
%%
%% Source: the tool SD-Mon of RefactoringTools, and section VII.iii of the seed paper.
-module(atoll_flow_shadow).

-export([new/0, step/2, groups/1, agents/1, owner/2, owners/1, token/2, kept/1, restored/1, format_error/1]).

-export_type([shadow/0, agent/0, group/0, token/0, change/0, event/0, effect/0, owned/0, kept/0, error/0]).

-type group() :: term().
-type agent() :: {group, group()} | {free, node()}.
-type token() :: pos_integer().
-type change() :: {Before :: token(), token()}.

%% A node that is to be traced, or that is lost and is looked for until it is back.
-type owned() :: {node(), up | down}.

-type event() ::
    {new_group, group(), [node()]}
    | {delete_group, group()}
    | {add_nodes | remove_nodes, group(), [node()]}
    %% What all nodes say: the differences from what is known here are events of the kinds above. A node that is in
    %% neither list is observed no more.
    | {picture, [{group(), [node()]}], Free :: [node()]}
    %% A free node is observed from now on, or no more.
    | {found | forgotten, node()}
    | {node_down | node_up, node()}
    %% An agent is there, and says which configuration it has; 0 is none.
    | {agent_up, agent(), token() | 0}
    | {agent_lost, agent()}.

-type effect() ::
    {start | configure, agent(), token(), [owned()]}
    | {stop, agent()}
    | {trace | untrace | look_for, agent(), change(), node()}
    %% What kept/1 says is another thing now.
    | keep.

-record(shadow, {
    %% The first is the one that was known first.
    groups = [] :: [{group(), [node()]}],
    %% With the configuration that each is to have.
    agents = #{} :: #{agent() => token()},
    owners = #{} :: #{node() => agent()},
    down = #{} :: #{node() => []},
    free = #{} :: #{node() => []},
    last = 0 :: non_neg_integer()
}).

-opaque shadow() :: #shadow{}.

%% To be written to a file, and read by a later version.
-type kept() :: {atoll_flow_shadow, 1, #{
    groups := [{group(), [node()]}],
    free := [node()],
    owners := [{node(), agent()}],
    agents := [{agent(), token()}]
}}.

-type error() :: {not_kept, term()} | {owner, node() | term()} | {agent, agent()}.

%% @doc Nothing is observed.
-spec new() -> shadow().
new() -> #shadow{}.

%% @doc Something has happened.
-spec step(event(), shadow()) -> {[effect()], shadow()}.
step({new_group, Group, Nodes}, #shadow{groups = Groups} = Shadow) ->
    case lists:keymember(Group, 1, Groups) of
        true -> step({add_nodes, Group, Nodes}, Shadow);
        false -> settled(Shadow#shadow{groups = Groups ++ [{Group, lists:usort(Nodes)}]}, Shadow)
    end;
step({delete_group, Group}, #shadow{groups = Groups, free = Free} = Shadow) ->
    Left = [Node || {Its, Nodes} <- Groups, Its =:= Group, Node <- Nodes],
    settled(Shadow#shadow{groups = lists:keydelete(Group, 1, Groups), free = maps:merge(Free, maps:from_keys(Left, []))}, Shadow);
step({add_nodes, Group, Nodes}, #shadow{groups = Groups} = Shadow) ->
    settled(Shadow#shadow{groups = changed(Group, fun(Is) -> lists:usort(Is ++ Nodes) end, Groups)}, Shadow);
step({remove_nodes, Group, Nodes}, #shadow{groups = Groups, free = Free} = Shadow) ->
    Left = [Node || {Its, Is} <- Groups, Its =:= Group, Node <- Is, lists:member(Node, Nodes)],
    settled(Shadow#shadow{groups = changed(Group, fun(Is) -> Is -- Nodes end, Groups), free = maps:merge(Free, maps:from_keys(Left, []))}, Shadow);
step({picture, Told, Free}, #shadow{groups = Groups} = Shadow) ->
    Kept = [{Group, lists:usort(Nodes)} || {Group, _} <- Groups, {Its, Nodes} <- Told, Its =:= Group],
    New = [{Group, lists:usort(Nodes)} || {Group, Nodes} <- lists:sort(Told), not lists:keymember(Group, 1, Groups)],
    settled(Shadow#shadow{groups = Kept ++ New, free = maps:from_keys(Free, [])}, Shadow);
step({found, Node}, #shadow{free = Free} = Shadow) ->
    settled(Shadow#shadow{free = Free#{Node => []}}, Shadow);
step({forgotten, Node}, #shadow{free = Free} = Shadow) ->
    settled(Shadow#shadow{free = maps:remove(Node, Free)}, Shadow);
step({node_down, Node}, #shadow{owners = Owners, down = Down} = Shadow) ->
    case Owners of
        #{Node := Agent} when not is_map_key(Node, Down) -> given(look_for, Agent, Node, Shadow#shadow{down = Down#{Node => []}});
        #{} -> {[], Shadow}
    end;
step({node_up, Node}, #shadow{owners = Owners, down = Down} = Shadow) ->
    case Owners of
        #{Node := Agent} when is_map_key(Node, Down) -> given(trace, Agent, Node, Shadow#shadow{down = maps:remove(Node, Down)});
        #{} -> {[], Shadow}
    end;
step({agent_up, Agent, Says}, #shadow{agents = Agents} = Shadow) ->
    case Agents of
        #{Agent := Says} -> {[], Shadow};
        #{Agent := Token} -> {[{configure, Agent, Token, owned(Agent, Shadow)}], Shadow};
        #{} -> {[{stop, Agent}], Shadow}
    end;
step({agent_lost, Agent}, #shadow{agents = Agents} = Shadow) ->
    case Agents of
        #{Agent := Token} -> {[{start, Agent, Token, owned(Agent, Shadow)}], Shadow};
        #{} -> {[], Shadow}
    end.

changed(Group, Change, Groups) ->
    [case Its of Group -> {Its, Change(Nodes)}; _ -> {Its, Nodes} end || {Its, Nodes} <- Groups].

given(What, Agent, Node, #shadow{agents = Agents, last = Last} = Shadow) ->
    #{Agent := Before} = Agents,
    Token = Last + 1,
    {[{What, Agent, {Before, Token}, Node}], Shadow#shadow{agents = Agents#{Agent := Token}, last = Token}}.

%% Groups and free nodes are others: so are owners and agents, maybe. A group without nodes is none.
settled(#shadow{groups = Groups0, free = Free0, down = Down0} = Shadow, #shadow{owners = Before, agents = Agents0, last = Last} = Was) ->
    Groups = [Group || {_, [_ | _]} = Group <- Groups0],
    Grouped = maps:from_keys(lists:append([Nodes || {_, Nodes} <- Groups]), []),
    Free = maps:without(maps:keys(Grouped), Free0),
    Owners = maps:merge(maps:map(fun(Node, _) -> owner_of(Node, Groups, Before) end, Grouped), maps:map(fun(Node, _) -> {free, Node} end, Free)),
    Is = Shadow#shadow{groups = Groups, free = Free, owners = Owners, down = maps:with(maps:keys(Owners), Down0)},
    Wanted = [{group, Group} || {Group, _} <- Groups] ++ [{free, Node} || Node <- lists:sort(maps:keys(Free))],
    Gone = lists:sort(maps:keys(maps:without(Wanted, Agents0))),
    Left = [{Agent, Node} || {Node, Agent} <- lists:sort(maps:to_list(Before)), maps:get(Node, Owners, none) =/= Agent, not lists:member(Agent, Gone)],
    Got = [{Agent, Node} || {Node, Agent} <- lists:sort(maps:to_list(Owners)), maps:get(Node, Before, none) =/= Agent, is_map_key(Agent, Agents0)],
    New = [Agent || Agent <- Wanted, not is_map_key(Agent, Agents0)],
    %% Each change of an agent has a number of its own.
    Changes = [{untrace, Agent, Node} || {Agent, Node} <- Left] ++
        [{case is_map_key(Node, Is#shadow.down) of true -> look_for; false -> trace end, Agent, Node} || {Agent, Node} <- Got],
    {Changed, {Last1, Agents1}} = lists:mapfoldl(fun({What, Agent, Node}, {N, Agents}) ->
        #{Agent := Token} = Agents,
        {{What, Agent, {Token, N + 1}, Node}, {N + 1, Agents#{Agent := N + 1}}}
    end, {Last, maps:without(Gone, Agents0)}, Changes),
    {Started, Last2} = lists:mapfoldl(fun(Agent, N) -> {{start, Agent, N + 1, owned(Agent, Is)}, N + 1} end, Last1, New),
    Now = Is#shadow{agents = maps:merge(Agents1, maps:from_list([{Agent, Token} || {start, Agent, Token, _} <- Started])), last = Last2},
    {[{stop, Agent} || Agent <- Gone] ++ Changed ++ Started ++ [keep || kept(Now) =/= kept(Was)], Now}.

owner_of(Node, Groups, Before) ->
    Own = [{group, Group} || {Group, Nodes} <- Groups, lists:member(Node, Nodes)],
    case Before of
        #{Node := Agent} -> case lists:member(Agent, Own) of true -> Agent; false -> hd(Own) end;
        #{} -> hd(Own)
    end.

owned(Agent, #shadow{owners = Owners, down = Down}) ->
    [{Node, case is_map_key(Node, Down) of true -> down; false -> up end} || {Node, Its} <- lists:sort(maps:to_list(Owners)), Its =:= Agent].

%% @doc The groups that are known, in the order in which they became known.
-spec groups(shadow()) -> [{group(), [node()]}].
groups(#shadow{groups = Groups}) -> Groups.

%% @doc All agents that there are to be, with what each owns.
-spec agents(shadow()) -> [{agent(), [owned()]}].
agents(#shadow{agents = Agents} = Shadow) -> [{Agent, owned(Agent, Shadow)} || Agent <- lists:sort(maps:keys(Agents))].

%% @doc Who owns a node.
-spec owner(node(), shadow()) -> {ok, agent()} | error.
owner(Node, #shadow{owners = Owners}) -> maps:find(Node, Owners).

%% @doc Each node that is observed, with its owner.
-spec owners(shadow()) -> #{node() => agent()}.
owners(#shadow{owners = Owners}) -> Owners.

%% @doc The token of what an agent is to have.
-spec token(agent(), shadow()) -> {ok, token()} | error.
token(Agent, #shadow{agents = Agents}) -> maps:find(Agent, Agents).

%% @doc What a restart needs to know.
-spec kept(shadow()) -> kept().
kept(#shadow{groups = Groups, free = Free, owners = Owners, agents = Agents}) ->
    {?MODULE, 1, #{groups => Groups, free => lists:sort(maps:keys(Free)), owners => lists:sort(maps:to_list(Owners)), agents => lists:sort(maps:to_list(Agents))}}.

%% @doc As it was when that was kept: all agents are to be started. Which nodes are lost is found out again.
-spec restored(term()) -> {ok, [effect()], shadow()} | {error, error()}.
restored({?MODULE, 1, #{groups := Groups, free := Free, owners := Owners, agents := Agents}} = Kept) ->
    try
        Shadow = #shadow{
            groups = Groups, free = maps:from_keys(Free, []), owners = maps:from_list(Owners), agents = maps:from_list(Agents),
            last = lists:max([0 | [Token || {_, Token} <- Agents, is_integer(Token)]])
        },
        true = lists:all(fun({_, Token}) -> is_integer(Token) andalso Token > 0 end, Agents),
        case wrong(Shadow) of
            none -> {ok, [{start, Agent, Token, owned(Agent, Shadow)} || {Agent, Token} <- Agents], Shadow};
            Error -> {error, Error}
        end
    catch
        error:_ -> {error, {not_kept, Kept}}
    end;
restored(Term) ->
    {error, {not_kept, Term}}.

%% What is promised above must hold of it.
wrong(#shadow{groups = Groups, free = Free, owners = Owners, agents = Agents}) ->
    Nodes = lists:usort(maps:keys(Free) ++ lists:append([Its || {_, Its} <- Groups])),
    MayOwn = fun
        (Node, {group, Group}) -> lists:member(Node, proplists:get_value(Group, Groups, []));
        (Node, {free, Node}) -> is_map_key(Node, Free);
        (_, _) -> false
    end,
    Wanted = lists:sort([{group, Group} || {Group, _} <- Groups] ++ [{free, Node} || Node <- maps:keys(Free)]),
    Badly = [Node || Node <- lists:usort(Nodes ++ maps:keys(Owners)), not is_atom(Node) orelse not MayOwn(Node, maps:get(Node, Owners, none))],
    case {Badly, (Wanted -- maps:keys(Agents)) ++ (maps:keys(Agents) -- Wanted)} of
        {[Node | _], _} -> {owner, Node};
        {[], [Agent | _]} -> {agent, Agent};
        {[], []} -> none
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({not_kept, Term}) -> io_lib:format("what was kept of the agents cannot be read: ~0tP", [Term, 8]);
format_error({owner, Node}) -> io_lib:format("what was kept of the agents gives ~0tP an owner that it cannot have, or none", [Node, 8]);
format_error({agent, Agent}) -> io_lib:format("what was kept of the agents has one too many, or lacks one: ~0tP", [Agent, 8]).
