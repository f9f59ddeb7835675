%% SPDX-License-Identifier: Apache-2.0
%% A run of aco_branch without processes: a whole tree of submasters over made-up colonies, messages
%% that are delivered in any order, and processes and nodes that are killed in between. As the
%% process of a submaster does it, whoever asked one that is gone asks whoever has its name then, or
%% has it started. A colony's best hangs on its number, the round and what it was told, so a round
%% that is lost, run twice with other news or answered too early shows in all later ones.
-module(aco_branch_world).

-export([run/4, expected/2]).

%% One life of a process.
-type life() :: {aco_tree:id(), pos_integer()}.

-record(world, {
    tree :: aco_tree:tree(),
    rounds :: pos_integer(),
    draw :: rand:state(),
    lives = 1 :: pos_integer(),
    %% who has the name of each now, where, and with what state; colonies have none
    alive = #{} :: #{aco_tree:id() => {life(), node(), aco_branch:branch() | colony}},
    %% who has asked each life
    askers = #{} :: #{life() => [life()]},
    %% requests that are out: an answer comes, or the news that there will be none
    messages = [] :: [{To :: life(), term()}],
    lost = [] :: [node()],
    kills :: non_neg_integer(),
    node_kills :: non_neg_integer(),
    answers = [] :: [term()]
}).

%% The answers of all rounds, the first round first; or {failed, Reason}.
run(Tree, Rounds, {Kills, NodeKills}, Seed) ->
    World = #world{tree = Tree, rounds = Rounds, draw = rand:seed_s(exsss, Seed), kills = Kills, node_kills = NodeKills},
    steps(asked_by_caller(0, [], World)).

%% The same by one loop over the colonies.
expected(Tree, Rounds) ->
    Round = fun(N, Told) ->
        {Cost, Id, Order} = Best = lists:min([offer(Id, N, Told) || Id <- aco_tree:colonies(Tree)]),
        {Best, [{N, {{Cost, Order}, Id}}]}
    end,
    {Answers, _} = lists:mapfoldl(Round, [], lists:seq(1, Rounds)),
    Answers.

offer(Id, Round, Told) ->
    Cost = erlang:phash2({Id, Round, Told}, 1000),
    {Cost, Id, [Cost]}.

steps(#world{answers = [{failed, _} = Failed | _]}) -> Failed;
steps(#world{answers = Answers, rounds = Rounds}) when length(Answers) > Rounds ->
    [none | Best] = lists:reverse(Answers),
    Best;
steps(#world{messages = []}) -> {failed, stuck};
steps(World) ->
    {Draw, Next} = draw(10, World),
    steps(step(Draw, Next)).

step(1, #world{kills = Kills, alive = Alive} = World) when Kills > 0, map_size(Alive) > 0 ->
    {Id, Next} = one_of(lists:sort(maps:keys(Alive)), World),
    killed(Id, Next#world{kills = Kills - 1});
%% The master's node is not lost, and no node before all are there.
step(2, #world{node_kills = Kills, answers = [_ | _], tree = Tree, alive = Alive} = World) when Kills > 0 ->
    #{nodes := [Master | _]} = aco_tree:place([], Tree),
    case lists:usort([Node || {_, Node, _} <- maps:values(Alive), Node =/= Master]) of
        [] -> World;
        Nodes ->
            {Node, Next} = one_of(Nodes, World),
            Ids = [Id || {Id, {_, At, _}} <- lists:sort(maps:to_list(Alive)), At =:= Node],
            lists:foldl(fun killed/2, Next#world{node_kills = Kills - 1, lost = [Node | Next#world.lost]}, Ids)
    end;
step(_, #world{messages = Messages} = World) ->
    {{To, What} = Message, Next} = one_of(Messages, World),
    delivered(To, What, Next#world{messages = Messages -- [Message]}).

killed(Id, #world{alive = Alive, askers = Askers, messages = Messages} = World) ->
    #{Id := {Life, _, _}} = Alive,
    %% What it was asked comes to nothing: whoever has asked hears of it.
    Waiting = maps:get(Life, Askers, []) ++ [From || {To, {ask, From, _, _}} <- Messages, To =:= Life],
    Gone = World#world{alive = maps:remove(Id, Alive), askers = maps:remove(Life, Askers),
                       messages = [M || {To, _} = M <- Messages, To =/= Life]},
    lists:foldl(fun(From, W) -> send(From, {no_answer, Id}, W) end, Gone, Waiting).

delivered(caller, {no_answer, []}, World) -> asked_again(World);
delivered(caller, {answer, [], Round, Best}, #world{answers = Answers, rounds = Rounds} = World) when length(Answers) =:= Round ->
    Answered = World#world{answers = [Best | Answers]},
    case {Round, Best} of
        {Rounds, _} -> Answered;
        {0, none} -> asked_by_caller(1, [], Answered);
        {_, {Cost, Owner, Order}} -> asked_by_caller(Round + 1, [{Round, {{Cost, Order}, Owner}}], Answered)
    end;
delivered(caller, _, World) -> World;
delivered({Id, _} = To, What, #world{alive = Alive} = World) ->
    case Alive of
        #{Id := {To, Node, State}} -> living(To, Node, State, What, World);
        #{} -> World
    end.

living({Id, _}, _, colony, {ask, From, Round, Told}, World) ->
    send(From, {answer, Id, Round, case Round of 0 -> none; _ -> offer(Id, Round, Told) end}, World);
living(Life, _, _, {ask, From, Round, Told}, #world{askers = Askers} = World) ->
    event(Life, {ask, Round}, put_told(Life, Told, World#world{askers = Askers#{Life => [From | maps:get(Life, Askers, [])]}}));
living(Life, _, _, {answer, _, _, _} = Answer, World) ->
    event(Life, Answer, World);
living(Life, _, Branch, {no_answer, Id}, World) ->
    %% Of an earlier round it does not matter any more.
    case [Round || Round <- lists:seq(0, World#world.rounds), aco_branch:is_open(Id, Round, Branch)] of
        [Round] -> ask(Life, Id, Round, World);
        [] -> World
    end.

event({Id, _} = Life, Event, #world{alive = Alive} = World) ->
    #{Id := {Life, Node, Branch}} = Alive,
    {Next, Effects} = aco_branch:handle(Event, Branch),
    lists:foldl(fun(Effect, W) -> act(Effect, Life, W) end, World#world{alive = Alive#{Id := {Life, Node, Next}}}, Effects).

act({ask, Id, Round}, Life, World) -> ask(Life, Id, Round, World);
act({answer, Round, Best}, {Id, _} = Life, #world{askers = Askers} = World) ->
    lists:foldl(fun(From, W) -> send(From, {answer, Id, Round, Best}, W) end,
                World#world{askers = maps:remove(Life, Askers)}, maps:get(Life, Askers, []));
act({fail, Reason}, _, World) -> World#world{answers = [{failed, Reason}]}.

put_told(Life, Told, #world{askers = Askers} = World) -> World#world{askers = Askers#{{told, Life} => Told}}.

%% By the name; or it is started on its node, or on the next one.
ask({Own, _} = Life, Id, Round, #world{alive = Alive, lost = Lost} = World) ->
    #{Own := {Life, _, Branch}} = Alive,
    Told = maps:get({told, Life}, World#world.askers),
    case Alive of
        #{Id := {Below, _, _}} -> send(Below, {ask, Life, Round, Told}, World);
        #{} ->
            Node = aco_branch:node_of(Id, Branch),
            case lists:member(Node, Lost) of
                true -> event(Life, {unreachable, Id, Node, gone}, World);
                false ->
                    {Below, Started} = started(Id, Node, World),
                    send(Below, {ask, Life, Round, Told}, Started)
            end
    end.

started(Id, Node, #world{alive = Alive, lives = Lives, tree = Tree} = World) ->
    State = case aco_tree:place(Id, Tree) of
                #{below := []} -> colony;
                #{below := Below} -> aco_branch:new([{B, Nodes} || B <- Below, #{nodes := Nodes} <- [aco_tree:place(B, Tree)]])
            end,
    {{Id, Lives}, World#world{alive = Alive#{Id => {{Id, Lives}, Node, State}}, lives = Lives + 1}}.

asked_by_caller(Round, Told, #world{askers = Askers} = World) ->
    asked_again(World#world{askers = Askers#{caller => {Round, Told}}}).

asked_again(#world{alive = Alive, tree = Tree, askers = #{caller := {Round, Told}}} = World) ->
    case Alive of
        #{[] := {Life, _, _}} -> send(Life, {ask, caller, Round, Told}, World);
        #{} ->
            #{nodes := [Node | _]} = aco_tree:place([], Tree),
            {Life, Started} = started([], Node, World),
            send(Life, {ask, caller, Round, Told}, Started)
    end.

send(To, Message, #world{messages = Messages} = World) -> World#world{messages = [{To, Message} | Messages]}.

one_of(List, World) ->
    {N, Next} = draw(length(List), World),
    {lists:nth(N, List), Next}.

draw(Most, #world{draw = State} = World) ->
    {N, Next} = rand:uniform_s(Most, State),
    {N, World#world{draw = Next}}.
