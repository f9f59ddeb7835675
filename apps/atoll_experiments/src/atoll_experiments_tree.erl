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
    %% how many nodes know a name, summed up over all names
    names_held := non_neg_integer()
}.

-record(world, {
    rounds :: pos_integer(),
    tree :: aco_tree:tree(),
    branches :: #{aco_tree:path() => aco_branch:branch()},
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
    World0 = #world{
        rounds = Rounds,
        tree = Tree,
        branches = maps:from_list([{Path, aco_branch:new([{Id, nodes_of(Id, Tree)} || Id <- Below])} || {Path, Below} <- above(Tree)]),
        parents = maps:from_list([{Id, Path} || {Path, Below} <- above(Tree), Id <- Below])
    },
    #world{messages = Messages, answers = Answers} = deliver(queue:from_list([{[], {ask, 0, []}}]), World0),
    Answers = Rounds + 1,
    maps:merge(#{nodes => Count, mode => Mode, messages => Messages}, connected(Mode, Count, Tree)).

above(Tree) ->
    [{Path, Below} || {Path, #{below := Below}} <- maps:to_list(Tree), is_list(Path)].

nodes_of(Id, Tree) ->
    #{nodes := Nodes} = aco_tree:place(Id, Tree),
    Nodes.

deliver(Queue0, World0) ->
    case queue:out(Queue0) of
        {empty, _} ->
            World0;
        {{value, {Path, Event}}, Queue} ->
            #world{branches = #{Path := Branch0} = Branches} = World0,
            {Branch, Effects} = aco_branch:handle(Event, Branch0),
            World1 = World0#world{branches = Branches#{Path := Branch}},
            {Next, World} = lists:foldl(fun(Effect, Acc) -> effect(Effect, Path, Acc) end, {Queue, World1}, Effects),
            deliver(Next, World)
    end.

effect({ask, Id, Round, Told}, Path, {Queue, World}) ->
    Sent = sent(Path, Id, World),
    case is_integer(Id) of
        true -> {queue:in({Path, {answer, Id, Round, offer(Id, Round)}}, Queue), sent(Id, Path, Sent)};
        false -> {queue:in({Id, {ask, Round, Told}}, Queue), Sent}
    end;
effect({answer, Round, Best}, [], {Queue, #world{rounds = Rounds, answers = Answers} = World}) ->
    Told = case Best of none -> []; {Cost, Id, Order} -> [{Round, {{Cost, Order}, Id}}] end,
    Next = case Round < Rounds of
        true -> queue:in({[], {ask, Round + 1, Told}}, Queue);
        false -> Queue
    end,
    {Next, World#world{answers = Answers + 1}};
effect({answer, Round, Best}, Path, {Queue, #world{parents = Parents} = World}) ->
    #{Path := Parent} = Parents,
    {queue:in({Parent, {answer, Path, Round, Best}}, Queue), sent(Path, Parent, World)}.

sent(From, To, #world{tree = Tree, messages = Messages} = World) ->
    case hd(nodes_of(From, Tree)) =:= hd(nodes_of(To, Tree)) of
        true -> World;
        false -> World#world{messages = Messages + 1}
    end.

%% What a colony would find, made up.
offer(_Id, 0) -> none;
offer(Id, Round) -> {erlang:phash2({Id, Round}, 1000), Id, []}.

connected(sr, _Count, Tree) ->
    Groups = maps:to_list(aco_tree:groups(Tree)),
    Connections = atoll_topology:connections(atoll_topology:of_groups(Groups)),
    Names = maps:map(fun(_, Ids) -> length(Ids) end, maps:groups_from_list(fun(#{group := Group}) -> Group end, maps:values(Tree))),
    #{
        connections => lists:sum(maps:values(Connections)) div 2,
        connections_max => lists:max(maps:values(Connections)),
        groups => length(Groups),
        names_held => lists:sum([length(Nodes) * maps:get(Group, Names) || {Group, Nodes} <- Groups])
    };
connected(Mode, Count, Tree) ->
    #{
        connections => Count * (Count - 1) div 2,
        connections_max => Count - 1,
        groups => 0,
        names_held => case Mode of gr -> Count * map_size(Tree); _ -> 0 end
    }.
