%% @doc A run of ACO's tree over any number of nodes without nodes: the protocol of submasters
%% ({@link aco_branch}), the very module that real ones run, with messages that are delivered in
%% order and colonies that answer at once. What crosses from node to node is counted; who is
%% connected with whom follows from the mode.
-module(atoll_experiments_tree).

-export([run/4]).

-type result() :: #{
    nodes := pos_integer(),
    mode := aco_tree:mode(),
    %% of all rounds
    messages := non_neg_integer(),
    connections := non_neg_integer(),
    %% of the node that has most
    connections_max := non_neg_integer(),
    groups := non_neg_integer(),
    %% the nodes that know the name of a node's keeper, summed up over all nodes
    names_held := non_neg_integer()
}.

-record(world, {
    rounds :: pos_integer(),
    branches :: #{aco_tree:path() => {aco_branch:branch(), node(), Children :: #{aco_tree:id() => aco_tree:child()}}},
    parents :: #{aco_tree:id() => aco_tree:path()},
    messages = 0 :: non_neg_integer(),
    %% of the master
    answers = 0 :: non_neg_integer()
}).

%% @doc Runs so many rounds over so many nodes.
-spec run(aco_tree:mode(), Nodes :: pos_integer(), Degree :: pos_integer(), Rounds :: pos_integer()) -> result().
run(Mode, Count, Degree, Rounds) ->
    Nodes = atoll_sim_cluster:names_of(Count),
    {ok, Tree} = aco_tree:new(Mode, Nodes, Degree, 1),
    Branches = branches(Tree),
    World0 = #world{
        rounds = Rounds,
        branches = maps:from_list([{Path, Branch} || {Path, Branch} <- Branches]),
        parents = maps:from_list([{Id, Path} || {Path, {_, _, Children}} <- Branches, Id <- maps:keys(Children)])
    },
    #world{messages = Messages, answers = Answers} = deliver(queue:from_list([{[], {ask, 0, none}}]), World0),
    Answers = Rounds + 1,
    maps:merge(#{nodes => Count, mode => Mode, messages => Messages}, connected(Mode, Count, Tree)).

branches(#{path := Path, node := Node} = Branch) ->
    Children = aco_tree:children(Branch),
    Below = [Below || #{branch := Below} <- Children, Below =/= none],
    [{Path, {aco_branch:new(Children, true), Node, maps:from_list([{Id, Child} || #{id := Id} = Child <- Children])}}
     | lists:append([branches(B) || B <- Below])].

deliver(Queue0, World0) ->
    case queue:out(Queue0) of
        {empty, _} ->
            World0;
        {{value, {Path, Event}}, Queue} ->
            #world{branches = #{Path := {Branch0, Node, Children}} = Branches} = World0,
            {Branch, Effects} = aco_branch:handle(Event, Branch0),
            World1 = World0#world{branches = Branches#{Path := {Branch, Node, Children}}},
            {Next, World} = lists:foldl(fun(Effect, Acc) -> effect(Effect, Path, Acc) end, {Queue, World1}, Effects),
            deliver(Next, World)
    end.

%% A start is no message of the protocol: it is over when the child is there.
effect({start, Id, Node, _}, Path, {Queue, World}) ->
    {queue:in({Path, {up, Id, Node}}, Queue), World};
effect({ask, Id, Round, Told}, Path, {Queue, World}) ->
    #world{branches = #{Path := {_, From, #{Id := #{node := To, branch := Below}}}}} = World,
    Sent = sent(From, To, World),
    case Below of
        none -> {queue:in({Path, {best, Id, Round, offer(Id, Round)}}, Queue), sent(To, From, Sent)};
        _ -> {queue:in({Id, {ask, Round, Told}}, Queue), Sent}
    end;
effect({answer, Round, Best}, [], {Queue, #world{rounds = Rounds, answers = Answers} = World}) ->
    Next = case {Best, Round < Rounds} of
        {_, false} -> Queue;
        {none, true} -> queue:in({[], {ask, Round + 1, none}}, Queue);
        {{Cost, Id, Order}, true} -> queue:in({[], {ask, Round + 1, {{Cost, Order}, Id}}}, Queue)
    end,
    {Next, World#world{answers = Answers + 1}};
effect({answer, Round, Best}, Path, {Queue, #world{parents = Parents, branches = Branches} = World}) ->
    #{Path := Parent} = Parents,
    #{Path := {_, From, _}, Parent := {_, To, _}} = Branches,
    {queue:in({Parent, {best, Path, Round, Best}}, Queue), sent(From, To, World)}.

sent(Node, Node, World) -> World;
sent(_From, _To, #world{messages = Messages} = World) -> World#world{messages = Messages + 1}.

%% What a colony would find, made up.
offer(_Id, 0) -> none;
offer(Id, Round) -> {erlang:phash2({Id, Round}, 1000), Id, []}.

connected(sr, _Count, Tree) ->
    Groups = [Nodes || #{nodes := Nodes} <- aco_tree:groups(Tree)],
    Pairs = lists:usort([{A, B} || Nodes <- Groups, A <- Nodes, B <- Nodes, A < B]),
    Degrees = lists:foldl(
        fun({A, B}, Acc0) ->
            Acc = maps:update_with(A, fun(N) -> N + 1 end, 1, Acc0),
            maps:update_with(B, fun(N) -> N + 1 end, 1, Acc)
        end,
        #{},
        Pairs
    ),
    #{
        connections => length(Pairs),
        connections_max => lists:max(maps:values(Degrees)),
        groups => length(Groups),
        names_held => lists:sum([length(Nodes) * length(Nodes) || Nodes <- Groups])
    };
connected(Mode, Count, _Tree) ->
    #{
        connections => Count * (Count - 1) div 2,
        connections_max => Count - 1,
        groups => 0,
        names_held => case Mode of gr -> Count * Count; _ -> 0 end
    }.
