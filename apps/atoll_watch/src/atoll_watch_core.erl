%% SPDX-License-Identifier: Apache-2.0
%% @doc Which nodes a watched cluster has, how each is, and whom to ask when. Pure: what is known
%% and the time come in, what is to be done comes out.
%%
%% A node is `up' when it has answered the last question, `silent' when it is connected and has not
%% answered in time, `down' when no connection can be made, `refused' when it answers and cannot be
%% watched, and `unknown' before its first answer. Each node is asked once in a period, those that
%% are up first; not more than so many are asked at once, and none twice at once: a turn that comes
%% while the one before is under way is missed, and counted.
%%
%% Who is known is asked of the nodes themselves: whom they are connected with, and who are members
%% of their overlay and groups. One that is down and that no other one knows is forgotten after an hour, unless
%% it was named at the start.
-module(atoll_watch_core).

-export([new/2, step/3, nodes/1, node/2, turns/1, counts/1]).

-compile({no_auto_import, [nodes/1, node/2]}).

-export_type([core/0, options/0, input/0, effect/0, event/0, seen/0, state/0]).

-type state() :: unknown | up | silent | down | refused.

-type options() :: #{
    %% How many are asked at once.
    at_once => pos_integer(),
    %% More nodes are not watched.
    max_nodes => pos_integer(),
    %% After so many milliseconds a node that is down and that nobody knows is forgotten.
    forget => pos_integer(),
    %% Nodes that were known before, and are asked too.
    known => [node()],
    %% Nodes that are not to be watched, whoever knows them.
    removed => [node()]
}.

-type input() ::
    %% A period begins.
    tick
    | {answered, node(), atoll_watch_agent:sample()}
    | {failed, node(), atoll_watch_node:failure()}
    %% By people: a node is named, or not to be watched until it is named.
    | {add | remove, node()}.

-type effect() ::
    {ask, node()}
    %% It is not to be asked any more, and a question that is under way is given up.
    | {leave, node()}
    %% These are new.
    | {meet, [node(), ...]}
    %% A period begins: what all nodes have said last, side by side.
    | {compare, [atoll_watch_compare:about()]}
    | {tell, event()}.

-type event() ::
    {state, node(), Was :: state(), Is :: state()}
    %% It is another life of the node than at the last answer.
    | {restarted, node()}
    | {forgotten, node()}
    | {removed, node()}
    %% What was logged there.
    | {said, node(), [atoll_watch_agent:said(), ...]}
    %% A question has ended, with or without an answer.
    | {looked, seen()}.

-type seen() :: #{
    node := node(),
    state := state(),
    %% Of the state, by the clock of the watcher, in milliseconds.
    since := integer(),
    %% Why it is refused.
    why := none | unicode:chardata(),
    %% Of the last answer.
    readings := atoll_watch_metric:readings(),
    rates := atoll_watch_metric:readings()
}.

-record(node, {
    state = unknown :: state(),
    since :: integer(),
    why = none :: none | unicode:chardata(),
    is_asked = false :: boolean(),
    %% How many questions have ended.
    turns = 0 :: non_neg_integer(),
    last = none :: none | atoll_watch_agent:sample(),
    readings = #{} :: atoll_watch_metric:readings(),
    rates = #{} :: atoll_watch_metric:readings(),
    facts = none :: atoll_watch_agent_facts:facts() | none
}).

-record(core, {
    options :: options(),
    named :: [node()],
    %% To be met in the first period.
    known :: [node()],
    removed :: [node()],
    nodes = #{} :: #{node() => #node{}},
    %% Who is still to be asked in this period.
    waiting = [] :: [node()],
    asked = 0 :: non_neg_integer(),
    missed = 0 :: non_neg_integer(),
    %% Nodes that were found beyond the most, each time.
    beyond = 0 :: non_neg_integer()
}).

-opaque core() :: #core{}.

-define(DEFAULTS, #{at_once => 32, max_nodes => 2000, forget => 3600000, known => [], removed => []}).

%% @doc Nobody has been asked yet.
-spec new([node()], options()) -> core().
new(Named, Options0) ->
    #{known := Known, removed := Removed} = Options = maps:merge(?DEFAULTS, Options0),
    #core{options = Options, named = Named -- Removed, known = Known, removed = Removed}.

%% @doc Something has happened at that time.
-spec step(input(), Now :: integer(), core()) -> {[effect()], core()}.
step(tick, Now, Core0) ->
    {Gone, Core1} = forgotten(Now, Core0),
    {Met, #core{nodes = Nodes, missed = Missed} = Core2} = met(Core1#core.named ++ Core1#core.known, Now, Core1#core{known = []}),
    Turn = [{state_order(State), Node} || {Node, #node{state = State, is_asked = false}} <- maps:to_list(Nodes)],
    Late = Core0#core.asked + length(Core0#core.waiting),
    {Asks, Core} = asking(Core2#core{waiting = [Node || {_, Node} <- lists:sort(Turn)], missed = Missed + Late}),
    Abouts = [#{node => Node, state => State, readings => Readings, facts => Facts} || {Node, #node{state = State, readings = Readings, facts = Facts}} <- maps:to_list(Core#core.nodes)],
    {Gone ++ [{compare, Abouts}] ++ Met ++ Asks, Core};
step({answered, Node, #{life := Life, peers := Peers, log := Log, facts := Facts} = Whole}, Now, Core0) ->
    Sample = Whole#{log := [], facts := none},
    {#node{last = Last} = Was, Core1} = ended(Node, Core0),
    Rates = atoll_watch_metric:rates(Last, Sample),
    Readings = atoll_watch_metric:readings(Last, Sample),
    {Told, Is} = turned(Node, up, none, Now, Was#node{last = Sample, readings = Readings, rates = Rates, facts = known(Facts, Was)}),
    {Met, Core2} = met(Peers, Now, put_node(Node, Is, Core1)),
    {Asks, Core} = asking(Core2),
    Again = [{tell, {restarted, Node}} || #{life := Other} <- [Last], Other =/= Life],
    Said = [{tell, {said, Node, Log}} || Log =/= []],
    {Again ++ Said ++ Told ++ Met ++ Asks, Core};
step({failed, Node, Failure}, Now, Core0) ->
    {Was, Core1} = ended(Node, Core0),
    {State, Why} =
        case Failure of
            {refused, Sentence} -> {refused, Sentence};
            _ -> {Failure, none}
        end,
    {Told, Is} = turned(Node, State, Why, Now, Was),
    {Asks, Core} = asking(put_node(Node, Is, Core1)),
    {Told ++ Asks, Core};

step({add, Node}, Now, #core{named = Named, removed = Removed} = Core0) ->
    {Met, Core1} = met([Node], Now, Core0#core{named = [Node | Named -- [Node]], removed = Removed -- [Node]}),
    {Asks, Core} = asking(Core1),
    {Met ++ Asks, Core};
step({remove, Node}, _Now, #core{nodes = Nodes, named = Named, removed = Removed, waiting = Waiting, asked = Asked} = Core0) ->
    Core1 = Core0#core{named = Named -- [Node], removed = [Node | Removed -- [Node]], waiting = Waiting -- [Node]},
    case maps:take(Node, Nodes) of
        {#node{is_asked = IsAsked}, Others} ->
            {Asks, Core} = asking(Core1#core{nodes = Others, asked = case IsAsked of true -> Asked - 1; false -> Asked end}),
            {[{leave, Node}, {tell, {removed, Node}} | Asks], Core};
        error ->
            {[], Core1}
    end.

%% The modules come when they are others.
known(#{modules := same} = Facts, #node{facts = #{modules := Modules}}) -> Facts#{modules := Modules};
known(#{modules := same} = Facts, _) -> Facts#{modules := []};
known(#{} = Facts, _) -> Facts;
%% It did not say in time.
known(none, #node{facts = Facts}) -> Facts.

%% A node that is down may take long to say so.
state_order(up) -> 0;
state_order(unknown) -> 1;
state_order(refused) -> 2;
state_order(silent) -> 3;
state_order(down) -> 4.

put_node(Node, Is, #core{nodes = Nodes} = Core) -> Core#core{nodes = Nodes#{Node => Is}}.

ended(Node, #core{nodes = Nodes, asked = Asked} = Core) ->
    #{Node := #node{is_asked = true, turns = Turns} = Was} = Nodes,
    {Was#node{is_asked = false, turns = Turns + 1}, Core#core{asked = Asked - 1}}.

turned(Node, State, Why, _Now, #node{state = State} = Was) ->
    Is = Was#node{why = Why},
    {[{tell, {looked, seen(Node, Is)}}], Is};
turned(Node, State, Why, Now, #node{state = Before} = Was) ->
    Is = Was#node{state = State, since = Now, why = Why},
    {[{tell, {state, Node, Before, State}}, {tell, {looked, seen(Node, Is)}}], Is}.

met(Found, Now, #core{nodes = Nodes, removed = Removed, options = #{max_nodes := Most}, waiting = Waiting, beyond = Beyond} = Core) ->
    New = [Node || Node <- lists:usort(Found), not is_map_key(Node, Nodes), not lists:member(Node, Removed)],
    {In, Out} = lists:split(min(length(New), max(0, Most - map_size(Nodes))), New),
    {
        [{meet, In} || In =/= []],
        Core#core{
            nodes = maps:merge(Nodes, maps:from_keys(In, #node{since = Now})),
            waiting = Waiting ++ In,
            beyond = Beyond + length(Out)
        }
    }.

asking(#core{waiting = [Node | Waiting], asked = Asked, options = #{at_once := Most}} = Core) when Asked < Most ->
    #core{nodes = #{Node := #node{is_asked = false} = Is}} = Core,
    {Asks, Next} = asking(put_node(Node, Is#node{is_asked = true}, Core#core{waiting = Waiting, asked = Asked + 1})),
    {[{ask, Node} | Asks], Next};
asking(Core) ->
    {[], Core}.

forgotten(Now, #core{nodes = Nodes, named = Named, waiting = Waiting, options = #{forget := Ms}} = Core) ->
    Known = lists:append([Named | [Peers || #node{state = up, last = #{peers := Peers}} <- maps:values(Nodes)]]),
    Gone = [Node || {Node, #node{state = down, since = Since, is_asked = false}} <- lists:sort(maps:to_list(Nodes)), Now - Since >= Ms] -- Known,
    {[{tell, {forgotten, Node}} || Node <- Gone], Core#core{nodes = maps:without(Gone, Nodes), waiting = Waiting -- Gone}}.

%% @doc All nodes that are known, sorted.
-spec nodes(core()) -> [seen()].
nodes(#core{nodes = Nodes}) -> [seen(Node, Is) || {Node, Is} <- lists:sort(maps:to_list(Nodes))].

%% @doc One of them.
-spec node(node(), core()) -> {ok, seen()} | error.
node(Node, #core{nodes = Nodes}) ->
    case Nodes of
        #{Node := Is} -> {ok, seen(Node, Is)};
        #{} -> error
    end.

seen(Node, #node{state = State, since = Since, why = Why, readings = Readings, rates = Rates}) ->
    #{node => Node, state => State, since => Since, why => Why, readings => Readings, rates => Rates}.

%% @doc How often the node that was asked least has been asked to the end.
-spec turns(core()) -> non_neg_integer().
turns(#core{nodes = Nodes}) -> lists:min([Turns || #node{turns = Turns} <- maps:values(Nodes)] ++ [0 || Nodes =:= #{}]).

%% @doc What was counted: turns that were missed, and times that a node was found beyond the most.
-spec counts(core()) -> #{missed := non_neg_integer(), beyond := non_neg_integer()}.
counts(#core{missed = Missed, beyond = Beyond}) -> #{missed => Missed, beyond => Beyond}.
