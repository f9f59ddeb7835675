%% A run of aco_branch without processes: a whole tree of submasters over made-up colonies,
%% messages that are delivered in any order, and processes and nodes that are killed
%% in between. A colony's best hangs on its number, the round and what it was told, so a
%% round that is lost, run twice with other news or answered too early shows in all later ones.
-module(aco_branch_world).

-export([run/4, expected/2]).

%% One life of a process.
-type life() :: {aco_tree:id(), pos_integer()}.

-type children() :: #{aco_tree:id() => aco_tree:child()}.

-record(world, {
    rounds :: pos_integer(),
    draw :: rand:state(),
    lives = 1 :: pos_integer(),
    %% where each life is, and with what state; colonies have none
    alive = #{} :: #{life() => {node(), aco_branch:branch() | colony, children()}},
    %% whom each submaster's life takes for those below it
    watched = #{} :: #{{life(), aco_tree:id()} => life()},
    %% who has asked each life for its present round
    askers = #{} :: #{life() => {aco_branch:round_number(), [life()]}},
    messages = [] :: [{life(), term()}],
    lost = [] :: [node()],
    kills :: non_neg_integer(),
    node_kills :: non_neg_integer(),
    answers = [] :: [term()]
}).

%% The answers of all rounds, the first round first; or {failed, Reason}.
run(Tree, Rounds, {Kills, NodeKills}, Seed) ->
    Root = {[], 0},
    World = #world{
        rounds = Rounds, draw = rand:seed_s(exsss, Seed), kills = Kills, node_kills = NodeKills,
        alive = #{Root => started(Tree)}
    },
    steps(event(Root, {ask, 0, none}, World)).

%% The same by one loop over the colonies.
expected(Tree, Rounds) ->
    Colonies = aco_tree:colonies(Tree),
    Round = fun(N, Told) ->
        {Cost, Id, Order} = lists:min([offer(Id, N, Told) || Id <- Colonies]),
        {{Cost, Id, Order}, {{Cost, Order}, Id}}
    end,
    {Answers, _} = lists:mapfoldl(Round, none, lists:seq(1, Rounds)),
    Answers.

offer(Id, Round, Told) ->
    Cost = erlang:phash2({Id, Round, Told}, 1000),
    {Cost, Id, [Cost]}.

started(#{node := Node} = Branch) ->
    Children = aco_tree:children(Branch),
    {Node, aco_branch:new(Children, true), maps:from_list([{Id, Child} || #{id := Id} = Child <- Children])}.

steps(#world{answers = Answers, rounds = Rounds}) when length(Answers) > Rounds ->
    [none | Best] = lists:reverse(Answers),
    Best;
steps(#world{answers = [{failed, _} = Failed | _]}) ->
    Failed;
steps(#world{messages = [], kills = 0, node_kills = 0}) ->
    {failed, stuck};
steps(World) ->
    {Draw, Next} = draw(10, World),
    steps(step(Draw, Next)).

step(1, #world{kills = Kills} = World) when Kills > 0 ->
    case [Life || {Id, _} = Life <- lists:sort(maps:keys(World#world.alive)), Id =/= []] of
        [] -> World;
        Lives ->
            {Life, Next} = one_of(Lives, World),
            killed(Life, process, Next#world{kills = Kills - 1})
    end;
%% The master's node is not lost, and no node before all are there.
step(2, #world{node_kills = Kills, answers = [_ | _], alive = #{{[], 0} := {Master, _, _}}} = World) when Kills > 0 ->
    case lists:usort([Node || {Node, _, _} <- maps:values(World#world.alive), Node =/= Master]) of
        [] -> World#world{node_kills = 0};
        Nodes ->
            {Node, Next} = one_of(Nodes, World),
            Lost = Next#world{node_kills = Kills - 1, lost = [Node | Next#world.lost]},
            Lives = [Life || {Life, {At, _, _}} <- lists:sort(maps:to_list(Lost#world.alive)), At =:= Node],
            lists:foldl(fun(Life, W) -> killed(Life, node, W) end, Lost, Lives)
    end;
step(_, #world{messages = []} = World) ->
    World;
step(_, #world{messages = Messages} = World) ->
    {{To, What} = Message, Next} = one_of(Messages, World),
    delivered(To, What, Next#world{messages = Messages -- [Message]}).

killed(Life, What, #world{alive = Alive, watched = Watched} = World) ->
    Gone = World#world{alive = maps:remove(Life, Alive)},
    lists:foldl(fun(Watcher, W) -> send(Watcher, {down, Life, What}, W) end, Gone,
                [Watcher || {{Watcher, _}, L} <- lists:sort(maps:to_list(Watched)), L =:= Life]).

%% As the process of a submaster, or a colony, does it.
delivered(To, _, #world{alive = Alive} = World) when not is_map_key(To, Alive) ->
    World;
delivered(To, {ask, From, Round, Told}, #world{alive = Alive, askers = Askers} = World) ->
    case Alive of
        #{To := {_, colony, _}} ->
            {Id, _} = To,
            Best = case Round of 0 -> none; _ -> offer(Id, Round, Told) end,
            send(From, {best, Id, Round, Best}, World);
        #{} ->
            Now = case Askers of
                      #{To := {Round, Others}} -> Askers#{To := {Round, [From | Others]}};
                      #{To := {Later, _}} when Later > Round -> Askers;
                      #{} -> Askers#{To => {Round, [From]}}
                  end,
            event(To, {ask, Round, Told}, World#world{askers = Now})
    end;
delivered(To, {started, {Id, _} = Life, Node}, #world{watched = Watched, alive = Alive, lost = Lost} = World) ->
    Seen = World#world{watched = Watched#{{To, Id} => Life}},
    Up = event(To, {up, Id, Node}, Seen),
    case is_map_key(Life, Alive) of
        true -> Up;
        false -> send(To, {down, Life, case lists:member(Node, Lost) of true -> node; false -> process end}, Up)
    end;
delivered(To, {down, {Id, _} = Life, What}, #world{watched = Watched} = World) ->
    case Watched of
        #{{To, Id} := Life} ->
            Left = World#world{watched = maps:remove({To, Id}, Watched)},
            event(To, {down, Id, present(To, Id, Left), What}, Left);
        #{} ->
            World
    end;
delivered(To, {not_started, Id, Node}, World) ->
    event(To, {down, Id, Node, node}, World);
delivered(To, {best, _, _, _} = Best, World) ->
    event(To, Best, World).

%% On which node the one below was last started.
present(To, Id, #world{alive = Alive}) ->
    #{To := {_, _, #{Id := #{node := Node}}}} = Alive,
    Node.

event(Life, Event, #world{alive = Alive} = World) ->
    #{Life := {Node, Branch, Children}} = Alive,
    {Next, Effects} = aco_branch:handle(Event, Branch),
    Put = World#world{alive = Alive#{Life := {Node, Next, Children}}},
    lists:foldl(fun(Effect, W) -> act(Effect, Life, W) end, Put, Effects).

act({start, Id, Node, _}, Life, #world{lost = Lost, alive = Alive, lives = Lives} = World) ->
    #{Life := {At, Branch, #{Id := Child} = Children}} = Alive,
    There = World#world{alive = Alive#{Life := {At, Branch, Children#{Id := Child#{node := Node}}}}},
    Living = [L || {{I, _} = L, {N, _, _}} <- maps:to_list(Alive), I =:= Id, N =:= Node],
    case {lists:member(Node, Lost), Living} of
        {true, _} ->
            send(Life, {not_started, Id, Node}, There);
        {false, [Found | _]} ->
            send(Life, {started, Found, Node}, There);
        {false, []} ->
            New = {Id, Lives},
            Process = case Child of
                          #{branch := none} -> {Node, colony, #{}};
                          #{branch := Below} -> started(aco_tree:moved(Below, Node))
                      end,
            #world{alive = All} = There,
            send(Life, {started, New, Node}, There#world{alive = All#{New => Process}, lives = Lives + 1})
    end;
act({ask, Id, Round, Told}, Life, #world{watched = Watched} = World) ->
    send(maps:get({Life, Id}, Watched), {ask, Life, Round, Told}, World);
act({answer, Round, Best}, {[], _} = Master, #world{answers = Answers, rounds = Rounds} = World) ->
    Answered = World#world{answers = [Best | Answers]},
    case Round of
        Rounds -> Answered;
        0 -> event(Master, {ask, 1, none}, Answered);
        _ ->
            {Cost, Owner, Order} = Best,
            event(Master, {ask, Round + 1, {{Cost, Order}, Owner}}, Answered)
    end;
act({answer, Round, Best}, {Id, _} = Life, #world{askers = Askers} = World) ->
    #{Life := {Round, All}} = Askers,
    lists:foldl(fun(Asker, W) -> send(Asker, {best, Id, Round, Best}, W) end, World, lists:usort(All));
act({fail, Reason}, _, World) ->
    World#world{answers = [{failed, Reason}]}.

send(To, Message, #world{messages = Messages} = World) ->
    World#world{messages = [{To, Message} | Messages]}.

one_of(List, World) ->
    {N, Next} = draw(length(List), World),
    {lists:nth(N, List), Next}.

draw(Most, #world{draw = State} = World) ->
    {N, Next} = rand:uniform_s(Most, State),
    {N, World#world{draw = Next}}.
