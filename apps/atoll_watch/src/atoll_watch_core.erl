%% SPDX-License-Identifier: Apache-2.0
%% @doc Which nodes a watched cluster has, and how each is, by what managers say of them. Pure: what is known
%% and the time come in, what is to be done comes out.
%%
%% A node is `up' when it has answered the last question, `silent' when it is connected and has not
%% answered in time, `down' when no connection can be made, `refused' when it answers and cannot be
%% watched, and `unknown' before its first answer. What is known of a node outlives the manager that said so.
%%
%% Who is known is asked of the nodes themselves: whom they are connected with, and who are members
%% of their overlay and groups. One that is down and that no other one knows is forgotten after an hour, unless
%% it was named at the start.
-module(atoll_watch_core).

-export([new/2, step/3, nodes/1, node/2, abouts/1, before/2, turns/1, counts/1]).

-compile({no_auto_import, [nodes/1, node/2]}).

-export_type([core/0, options/0, input/0, effect/0, event/0, seen/0, state/0]).

-type state() :: unknown | up | silent | down | refused.

-type options() :: #{
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
    %% By the manager that has the node.
    | {looked, atoll_watch_report:look()}
    %% By people: a node is named, or not to be watched until it is named.
    | {add | remove, node()}.

-type effect() ::
    %% These are new.
    {meet, [node(), ...]}
    %% It is watched no more.
    | {leave, node()}
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
    %% Of the last answer: all that the agent said, but its readings, what was logged, and how the node is set up.
    sample := none | map(),
    readings := atoll_watch_metric:readings(),
    rates := atoll_watch_metric:readings()
}.

-record(node, {
    state = unknown :: state(),
    since :: integer(),
    why = none :: none | unicode:chardata(),
    %% How many questions have ended.
    turns = 0 :: non_neg_integer(),
    sample = none :: none | map(),
    readings = #{} :: atoll_watch_metric:readings(),
    rates = #{} :: atoll_watch_metric:readings(),
    facts = none :: none | atoll_watch_agent_facts:facts()
}).

-record(core, {
    options :: options(),
    named :: [node()],
    %% To be met in the first period.
    known :: [node()],
    removed :: [node()],
    nodes = #{} :: #{node() => #node{}},
    %% Nodes that were found beyond the most, each time.
    beyond = 0 :: non_neg_integer()
}).

-opaque core() :: #core{}.

-define(DEFAULTS, #{max_nodes => 2000, forget => 3600000, known => [], removed => []}).

%% @doc Nobody has been asked yet.
-spec new([node()], options()) -> core().
new(Named, Options0) ->
    #{known := Known, removed := Removed} = Options = maps:merge(?DEFAULTS, Options0),
    #core{options = Options, named = Named -- Removed, known = Known, removed = Removed}.

%% @doc Something has happened at that time.
-spec step(input(), Now :: integer(), core()) -> {[effect()], core()}.
step(tick, Now, Core0) ->
    {Gone, Core1} = forgotten(Now, Core0),
    {Met, Core} = met(Core1#core.named ++ Core1#core.known, Now, Core1#core{known = []}),
    {Gone ++ Met, Core};
step({looked, #{node := Node, state := State, why := Why} = Look}, Now, #core{nodes = Nodes} = Core0) ->
    #{Node := #node{sample = Before, turns = Turns} = Was} = Nodes,
    #node{sample = Sample} = Answered = answered(Look, Was#node{turns = Turns + 1}),
    {Told, Is} = turned(Node, State, Why, Now, Answered),
    {Met, Core} = met([Peer || #{sample := #{peers := Peers}} <- [Look], Peer <- Peers], Now, Core0#core{nodes = Nodes#{Node := Is}}),
    Again = [{tell, {restarted, Node}} || #{life := Last} <- [Before], #{life := Life} <- [Sample], Life =/= Last],
    Said = [{tell, {said, Node, Log}} || #{log := [_ | _] = Log} <- [Look]],
    {Again ++ Said ++ Told ++ Met, Core};
step({add, Node}, Now, #core{named = Named, removed = Removed} = Core) ->
    met([Node], Now, Core#core{named = [Node | Named -- [Node]], removed = Removed -- [Node]});
step({remove, Node}, _Now, #core{nodes = Nodes, named = Named, removed = Removed} = Core) ->
    {
        [Effect || is_map_key(Node, Nodes), Effect <- [{leave, Node}, {tell, {removed, Node}}]],
        Core#core{named = Named -- [Node], removed = [Node | Removed -- [Node]], nodes = maps:remove(Node, Nodes)}
    }.

answered(#{sample := Sample, readings := Readings, rates := Rates}, #node{readings = Readings0, rates = Rates0, facts = Facts0} = Was) ->
    Facts = atoll_watch_report:known(maps:get(facts, Sample, none), Facts0),
    Was#node{sample = maps:remove(facts, Sample), facts = Facts, readings = atoll_watch_report:changed(Readings, Readings0), rates = atoll_watch_report:changed(Rates, Rates0)};
answered(#{}, Was) ->
    Was.

turned(Node, State, Why, _Now, #node{state = State} = Was) ->
    Is = Was#node{why = Why},
    {[{tell, {looked, seen(Node, Is)}}], Is};
turned(Node, State, Why, Now, #node{state = Before} = Was) ->
    Is = Was#node{state = State, since = Now, why = Why},
    {[{tell, {state, Node, Before, State}}, {tell, {looked, seen(Node, Is)}}], Is}.

met(Found, Now, #core{nodes = Nodes, removed = Removed, options = #{max_nodes := Most}, beyond = Beyond} = Core) ->
    New = [Node || Node <- lists:usort(Found), not is_map_key(Node, Nodes), not lists:member(Node, Removed)],
    {In, Out} = lists:split(min(length(New), max(0, Most - map_size(Nodes))), New),
    {[{meet, In} || In =/= []], Core#core{nodes = maps:merge(Nodes, maps:from_keys(In, #node{since = Now})), beyond = Beyond + length(Out)}}.

forgotten(Now, #core{nodes = Nodes, named = Named, options = #{forget := Ms}} = Core) ->
    Known = lists:append([Named | [Peers || #node{state = up, sample = #{peers := Peers}} <- maps:values(Nodes)]]),
    Gone = [Node || {Node, #node{state = down, since = Since}} <- lists:sort(maps:to_list(Nodes)), Now - Since >= Ms] -- Known,
    {lists:append([[{leave, Node}, {tell, {forgotten, Node}}] || Node <- Gone]), Core#core{nodes = maps:without(Gone, Nodes)}}.

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

seen(Node, #node{state = State, since = Since, why = Why, sample = Sample, readings = Readings, rates = Rates}) ->
    #{node => Node, state => State, since => Since, why => Why, sample => Sample, readings => Readings, rates => Rates}.

%% @doc What all nodes have said last, to be compared; how they are set up stands here alone, as it is long.
-spec abouts(core()) -> [atoll_watch_compare:about()].
abouts(#core{nodes = Nodes}) ->
    [#{node => Node, state => State, readings => Readings, facts => Facts} || {Node, #node{state = State, readings = Readings, facts = Facts}} <- maps:to_list(Nodes)].

%% @doc What a node said last, for a manager that goes on with it: what it gains from then on is counted once.
-spec before(node(), core()) -> none | atoll_watch_agent:sample().
before(Node, #core{nodes = Nodes}) ->
    case Nodes of
        #{Node := #node{sample = #{} = Sample, readings = Readings}} ->
            Sample#{log => [], facts => none, readings => [case Key of {Name, Label} -> {Name, Label, Value}; Name -> {Name, Value} end || {Key, Value} <- maps:to_list(Readings)]};
        #{} ->
            none
    end.

%% @doc How often the node that was asked least has been asked to the end.
-spec turns(core()) -> non_neg_integer().
turns(#core{nodes = Nodes}) -> lists:min([Turns || #node{turns = Turns} <- maps:values(Nodes)] ++ [0 || Nodes =:= #{}]).

%% @doc What was counted: times that a node was found beyond the most.
-spec counts(core()) -> #{beyond := non_neg_integer()}.
counts(#core{beyond = Beyond}) -> #{beyond => Beyond}.
