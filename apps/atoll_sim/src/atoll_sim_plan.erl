%% SPDX-License-Identifier: Apache-2.0
%% @doc What a fault script does to which nodes, and when: a script
%% ({@link atoll_sim_script}) with all its choices made. Whoever plays it, on
%% simulated nodes or on real ones, does the same deeds to the same nodes.
%%
%% A choice hangs on the seed and on the steps before it: a node is dead because
%% a step has killed it, and alive because one has started it. What nodes do of
%% their own accord makes no difference.
%%
%% Steps that are not about the overlay draw from a source of their own, and so do paces, so
%% that they change no other step's choice.
-module(atoll_sim_plan).

-export([new/2, script/3, add/4, next/1, due/1]).

-export_type([plan/0, options/0, deed/0]).

-type options() :: #{
    contacts := pos_integer(),
    %% Who runs from the beginning.
    start := atoll_sim_who:who(),
    seed := integer()
}.

-type deed() ::
    {start | restart, [node()], fresh | remembered | alone}
    %% The source of contacts lists these.
    | {source, [node()]}
    | {kill | leave | pause | stall | resume, [node()]}
    | {slow, [node()], atoll_sim_step:ms()}
    | {partition, [[node()]]}
    | {cut | mend, From :: [node()], To :: [node()]}
    %% From one to the other and back; `fill' ends one such hole.
    | {black_hole | fill, [node()], [node()]}
    | {delay, From :: [node()], To :: [node()], atoll_sim_step:ms()}
    | {bulk, From :: [node()], To :: [node()], 0 | atoll_sim_bulk:rate()}
    | {lane, [node()], [node()], Number :: 0..63, cut | black_hole}
    | heal
    %% On each of them, or by name on all of them together, one of all that there are is to
    %% be taken: that far from the first of them, 0, to the last, 1.
    | {kill_process, [node()], atoll_sim_step:what(), Which :: float()}
    | {group, [node()], atoll_sim_step:operation([node()])}
    | {name, [node()], atoll_sim_node:name_operation()}
    %% A step names these, and it cannot happen to them.
    | {passed_over, Step :: atom(), [node()], dead | alive | paused}
    | {loss, From :: [node()], To :: [node()], atoll_sim_step:share()}
    | {broadcast, [node()], Count :: pos_integer(), Every :: atoll_sim_step:ms()}
    %% A step that is not about some of the nodes.
    | {other, atoll_sim_step:step()}.

-type place() :: atoll_sim_script:place() | none.

-type item() ::
    {step, atoll_sim_step:step()}
    | {resume, [node()]}
    | {mend | fill, From :: [node()], To :: [node()]}
    | {gone, [{node(), Life :: non_neg_integer()}]}
    | {churn, Share :: number(), Until :: integer()}
    %% An `every' that has begun then, and how many intervals have gone by.
    | {again, atoll_sim_step:step(), Begun :: integer(), atoll_sim_pace:intervals()}.

-record(plan, {
    nodes :: [node(), ...],
    contacts :: [node()],
    alive :: #{node() => []},
    %% How often each was started.
    lives = #{} :: #{node() => pos_integer()},
    %% Until when who stands still stays so.
    paused = #{} :: #{node() => integer() | forever},
    rand :: rand:state(),
    %% Of the steps that are not about the overlay, and of paces.
    aside :: rand:state(),
    %% By time; of one time in the order in which it came in.
    agenda = gb_trees:empty() :: gb_trees:tree({integer(), pos_integer()}, {item(), place()}),
    items = 0 :: non_neg_integer(),
    churn = atoll_sim_churn:new() :: atoll_sim_churn:churn()
}).

-opaque plan() :: #plan{}.

-define(LEAVE_MS, 1000).

%% @doc A plan without steps, and the nodes that run at time 0.
-spec new([node(), ...], options()) -> {[node()], plan()}.
new(Nodes, #{contacts := Contacts, start := Who, seed := Seed}) ->
    Empty = #plan{
        nodes = Nodes,
        contacts = lists:sublist(Nodes, Contacts),
        alive = #{},
        rand = rand:seed_s(exsss, erlang:phash2({play, Seed})),
        aside = rand:seed_s(exsss, erlang:phash2({aside, Seed}))
    },
    {Started, Plan} = targets({start, Who}, Empty),
    {Started, started(Started, Plan)}.

%% @doc The plan of a script on these nodes, whose numbers are their places in the
%% list, and the nodes that run at time 0.
-spec script(atoll_sim_script:script(), [node(), ...], Seed :: integer()) -> {[node()], plan()}.
script(#{cluster := Cluster, steps := Steps}, Nodes, Seed) ->
    {Started, Plan} = new(Nodes, (maps:with([contacts, start], Cluster))#{seed => Seed}),
    {Started, lists:foldl(fun({Ms, Step, Place}, P) -> add(Ms, Step, Place, P) end, Plan, Steps)}.

%% @doc Adds a step at a time; not before the last that was taken.
-spec add(atoll_sim_step:ms(), atoll_sim_step:step(), place(), plan()) -> plan().
add(Ms, Step, Place, Plan) ->
    later(Ms, {step, Step}, Place, Plan).

%% @doc When the next deeds are due.
-spec due(plan()) -> {ok, atoll_sim_step:ms()} | none.
due(#plan{agenda = Agenda}) ->
    case gb_trees:is_empty(Agenda) of
        true ->
            none;
        false ->
            {{Ms, _}, _} = gb_trees:smallest(Agenda),
            {ok, Ms}
    end.

%% @doc Takes what comes next: deeds of one moment, in order; there may be none,
%% where a step finds nobody. They are those of that step, or what one brings with it later.
-spec next(plan()) -> {atoll_sim_step:ms(), [deed()], {atoll_sim_step:step() | later, place()}, plan()} | none.
next(#plan{agenda = Agenda0} = Plan0) ->
    case gb_trees:is_empty(Agenda0) of
        true ->
            none;
        false ->
            {{Ms, _}, {Item, Place}, Agenda} = gb_trees:take_smallest(Agenda0),
            {Done, Deeds, Plan} = item(Item, Ms, Place, Plan0#plan{agenda = Agenda}),
            {Ms, [Deed || Deed <- Deeds, is_something(Deed)], {Done, Place}, Plan}
    end.

is_something({source, _}) -> true;
is_something({_, []}) -> false;
is_something({Name, [], _}) -> lists:member(Name, [cut, mend, black_hole, fill]);
is_something({kill_process, [], _, _}) -> false;
is_something({passed_over, _, [], _}) -> false;
is_something(_) -> true.

later(Ms, Item, Place, #plan{agenda = Agenda, items = N} = Plan) ->
    Plan#plan{agenda = gb_trees:insert({Ms, N + 1}, {Item, Place}, Agenda), items = N + 1}.

item({step, {every, _, _, _} = Every}, Ms, Place, Plan) ->
    item({again, Every, Ms, atoll_sim_pace:first()}, Ms, Place, Plan);
item({again, {every, Pace, Lasts, Step} = Every, Begun, Intervals}, Ms, Place, #plan{aside = Aside0} = Plan0) ->
    {Next, Aside} = atoll_sim_pace:next(Intervals, Pace, Aside0),
    Plan = Plan0#plan{aside = Aside},
    item({step, Step}, Ms, Place, case atoll_sim_pace:due(Next, Pace, Lasts) of
        %% No atom is less than a number.
        Due when Due < Lasts -> later(Begun + Due, {again, Every, Begun, Next}, Place, Plan);
        _ -> Plan
    end);
item({step, {one_of, Weighted}}, Ms, Place, #plan{aside = Aside0} = Plan) ->
    {Step, Aside} = atoll_sim_who:weighed(Weighted, Aside0),
    item({step, Step}, Ms, Place, Plan#plan{aside = Aside});
item({step, Step}, Ms, Place, Plan0) ->
    {Deeds, Plan} = step(Step, Ms, Place, Plan0),
    {Step, Deeds ++ unable(Step, Plan0), Plan};
item({resume, Nodes}, Ms, _Place, #plan{paused = Paused} = Plan) ->
    %% Not in a longer pause. No time is after `forever': numbers are less than atoms.
    Over = [Node || Node <- Nodes, maps:get(Node, Paused, forever) =< Ms],
    {later, [{resume, Over}], resumed(Over, Plan)};
item({End, _, _} = Deed, _Ms, _Place, Plan) when End =:= mend; End =:= fill ->
    {later, [Deed], Plan};
item({gone, Lives}, _Ms, _Place, Plan) ->
    %% Who was started again meanwhile has not left.
    Living = [Node || {Node, _} = Life <- Lives, is_alive(Node, Plan), life(Node, Plan) =:= Life],
    {later, [{kill, Living}], killed(Living, Plan)};
item({churn, _Share, Until}, Ms, _Place, Plan) when Ms >= Until ->
    {later, [], Plan};
item({churn, Share, Until} = Churn, Ms, Place, Plan0) ->
    {Deeds, Plan} = churn(Share, later(atoll_sim_churn:next_ms(Ms, Until), Churn, Place, Plan0)),
    {later, Deeds, Plan}.

%% To resume a dead node, or end its being slow, is to do nothing.
unable({slow, _, 0}, _Plan) ->
    [];
unable(Step, #plan{contacts = Contacts} = Plan) when is_tuple(Step) ->
    Fault = element(1, Step),
    case lists:member(Fault, [start, kill, leave, pause, stall, slow, broadcast, kill_process, group, name]) of
        true ->
            Unable = atoll_sim_who:unable(Step, living_and_dead(Plan), Contacts),
            [{passed_over, Fault, [Node || {Node, L} <- Unable, L =:= Liveness], Liveness} || Liveness <- [dead, alive]];
        false ->
            []
    end;
unable(heal, _Plan) ->
    [].

step({start, _} = Step, _Ms, _Place, Plan0) ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{start, Nodes, fresh}], started(Nodes, Plan)};
step({kill, _} = Step, _Ms, _Place, Plan0) ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{kill, Nodes}], killed(Nodes, Plan)};
step({restart, _, Memory} = Step, _Ms, _Place, Plan0) ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{restart, Nodes, Memory}], started(Nodes, killed(Nodes, Plan))};
step({source, Who}, _Ms, _Place, Plan0) ->
    {Nodes, Plan} = resolve(Who, Plan0),
    {[{source, Nodes}], Plan};
step({leave, _} = Step, Ms, Place, Plan0) ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{leave, Nodes}], later(Ms + ?LEAVE_MS, {gone, [life(Node, Plan) || Node <- Nodes]}, Place, Plan)};
step({Still, _} = Step, _Ms, _Place, Plan0) when Still =:= pause; Still =:= stall ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{Still, Nodes}], paused(Nodes, forever, Plan)};
step({Still, _, Time} = Step, Ms, Place, Plan0) when Still =:= pause; Still =:= stall ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{Still, Nodes}], later(Ms + Time, {resume, Nodes}, Place, paused(Nodes, Ms + Time, Plan))};
step({resume, _} = Step, _Ms, _Place, Plan0) ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{resume, Nodes}], resumed(Nodes, Plan)};
step({slow, _, Time} = Step, _Ms, _Place, Plan0) ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{slow, Nodes, Time}], Plan};
step({partition, Whos}, _Ms, _Place, #plan{contacts = Contacts, rand = Rand0} = Plan) ->
    {Parts, Rand} = atoll_sim_who:parts(Whos, living_and_dead(Plan), Contacts, Rand0),
    {[{partition, Parts}], Plan#plan{rand = Rand}};
step({cut, From, To}, _Ms, _Place, Plan0) ->
    {A, B, Plan} = resolve_two(From, To, Plan0),
    {[{cut, A, B}], Plan};
step({cut, From, To, Time}, Ms, Place, Plan0) ->
    {A, B, Plan} = resolve_two(From, To, Plan0),
    {[{cut, A, B}], later(Ms + Time, {mend, A, B}, Place, Plan)};
step({black_hole, One, Other}, _Ms, _Place, Plan0) ->
    {A, B, Plan} = resolve_two(One, Other, Plan0),
    {[{black_hole, A, B}], Plan};
step({black_hole, One, Other, Time}, Ms, Place, Plan0) ->
    {A, B, Plan} = resolve_two(One, Other, Plan0),
    {[{black_hole, A, B}], later(Ms + Time, {fill, A, B}, Place, Plan)};
step({Between, From, To, HowMuch}, _Ms, _Place, Plan0) when Between =:= delay; Between =:= bulk; Between =:= loss ->
    {A, B, Plan} = resolve_two(From, To, Plan0),
    {[{Between, A, B, HowMuch}], Plan};
step({lane, One, Other, Number, Fault}, _Ms, _Place, Plan0) ->
    {A, B, Plan} = resolve_two(One, Other, Plan0),
    {[{lane, A, B, Number, Fault}], Plan};
step({broadcast, _, Count, Every} = Step, _Ms, _Place, Plan0) ->
    {Nodes, Plan} = targets(Step, Plan0),
    {[{broadcast, Nodes, Count, Every}], Plan};
step({churn, Share, Time}, Ms, Place, Plan) ->
    {[], later(Ms, {churn, Share, Ms + Time}, Place, Plan)};
step({kill_process, _, What} = Step, _Ms, _Place, Plan) ->
    aside(
        fun(Plan0) ->
            {Nodes, Plan1} = targets(Step, Plan0),
            {Weighed, Plan2} = weigh(What, Plan1),
            {Which, Plan3} = uniform(Plan2),
            {
                [
                    {kill_process, awake(Nodes, Plan3), Weighed, Which},
                    {passed_over, kill_process, Nodes -- awake(Nodes, Plan3), paused}
                ],
                Plan3
            }
        end,
        Plan
    );
step({group, _, Operation} = Step, _Ms, _Place, Plan) ->
    aside(
        fun(Plan0) ->
            {Nodes, Plan1} = targets(Step, Plan0),
            {Resolved, Plan2} = operation(Operation, Plan1),
            {[{group, awake(Nodes, Plan2), Resolved}, {passed_over, group, Nodes -- awake(Nodes, Plan2), paused}], Plan2}
        end,
        Plan
    );
step({name, _, Operation} = Step, _Ms, _Place, Plan) ->
    aside(
        fun(Plan0) ->
            {Nodes, Plan1} = targets(Step, Plan0),
            {[{name, awake(Nodes, Plan1), Operation}, {passed_over, name, Nodes -- awake(Nodes, Plan1), paused}], Plan1}
        end,
        Plan
    );
step({expect, Expectation}, _Ms, _Place, Plan) ->
    aside(
        fun(Plan0) ->
            {Resolved, Plan1} = expectation(Expectation, Plan0),
            {[{other, {expect, Resolved}}], Plan1}
        end,
        Plan
    );
step(heal, _Ms, _Place, #plan{agenda = Agenda} = Plan) ->
    Kept = [Entry || {_, {Item, _}} = Entry <- gb_trees:to_list(Agenda), not is_healed(Item)],
    {[heal], Plan#plan{paused = #{}, churn = atoll_sim_churn:new(), agenda = gb_trees:from_orddict(Kept)}};
step(Step, _Ms, _Place, Plan) ->
    {[{other, Step}], Plan}.

is_healed({churn, _, _}) -> true;
is_healed({again, _, _, _}) -> true;
is_healed(_) -> false.

operation({Verb, Name, Who}, Plan0) ->
    {Nodes, Plan} = resolve(Who, Plan0),
    {{Verb, Name, Nodes}, Plan};
operation({delete, _} = Operation, Plan) ->
    {Operation, Plan}.

expectation({group, Group, Who}, Plan0) ->
    {Nodes, Plan} = resolve(Who, Plan0),
    {{group, Group, Nodes}, Plan};
expectation({name, Group, Name, Who}, Plan0) ->
    {Nodes, Plan} = resolve(Who, Plan0),
    {{name, Group, Name, Nodes}, Plan};
expectation(Expectation, Plan) ->
    {Expectation, Plan}.

churn(Share, #plan{churn = Churn0} = Plan0) ->
    {Killed, Back, Plan, Churn} = atoll_sim_churn:step(
        Share,
        length(awake(alive(Plan0), Plan0)),
        fun(Node) -> is_alive(Node, Plan0) end,
        fun(Count) -> resolve({random, Count}, Plan0) end,
        Churn0
    ),
    {[{kill, Killed}, {start, Back, fresh}], started(Back, killed(Killed, Plan#plan{churn = Churn}))}.

%% One of a weighted list.
weigh(What, #plan{rand = Rand0} = Plan) ->
    {One, Rand} = atoll_sim_who:weighed(What, Rand0),
    {One, Plan#plan{rand = Rand}}.

%% Nodes

started(Nodes, #plan{alive = Alive, lives = Lives} = Plan) ->
    More = lists:foldl(fun(Node, L) -> L#{Node => maps:get(Node, L, 0) + 1} end, Lives, Nodes),
    Plan#plan{alive = maps:merge(Alive, maps:from_keys(Nodes, [])), lives = More}.

life(Node, #plan{lives = Lives}) -> {Node, maps:get(Node, Lives, 0)}.

killed(Nodes, #plan{alive = Alive, paused = Paused} = Plan) ->
    Plan#plan{alive = maps:without(Nodes, Alive), paused = maps:without(Nodes, Paused)}.

%% Of several pauses the longest counts.
paused(Nodes, Until, #plan{paused = Paused} = Plan) ->
    Plan#plan{
        paused = lists:foldl(fun(Node, P) -> P#{Node => max(Until, maps:get(Node, P, Until))} end, Paused, Nodes)
    }.

resumed(Nodes, #plan{paused = Paused} = Plan) ->
    Plan#plan{paused = maps:without(Nodes, Paused)}.

awake(Nodes, #plan{paused = Paused}) ->
    [Node || Node <- Nodes, not is_map_key(Node, Paused)].

alive(#plan{nodes = Nodes, alive = Alive}) -> [Node || Node <- Nodes, is_map_key(Node, Alive)].

is_alive(Node, #plan{alive = Alive}) -> is_map_key(Node, Alive).

living_and_dead(#plan{nodes = Nodes, alive = Alive}) ->
    [
        case Alive of
            #{Node := _} -> {Node, alive};
            #{} -> {Node, dead}
        end
     || Node <- Nodes
    ].

targets(Step, #plan{contacts = Contacts, rand = Rand0} = Plan) ->
    {Nodes, Rand} = atoll_sim_who:targets(Step, living_and_dead(Plan), Contacts, Rand0),
    {Nodes, Plan#plan{rand = Rand}}.

resolve(Who, #plan{contacts = Contacts, rand = Rand0} = Plan) ->
    {Nodes, Rand} = atoll_sim_who:resolve(Who, living_and_dead(Plan), Contacts, Rand0),
    {Nodes, Plan#plan{rand = Rand}}.

resolve_two(From, To, Plan0) ->
    {A, Plan1} = resolve(From, Plan0),
    {B, Plan} = resolve(To, Plan1),
    {A, B, Plan}.

uniform(#plan{rand = Rand0} = Plan) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {X, Plan#plan{rand = Rand}}.

aside(Fun, #plan{rand = Rand, aside = Aside} = Plan0) ->
    {Deeds, #plan{rand = Used} = Plan} = Fun(Plan0#plan{rand = Aside}),
    {Deeds, Plan#plan{rand = Rand, aside = Used}}.
