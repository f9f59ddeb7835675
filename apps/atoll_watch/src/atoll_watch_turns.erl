%% SPDX-License-Identifier: Apache-2.0
%% @doc Whom a manager asks, when, and what it has to say of them. Pure: what has happened comes in, what is to be done comes
%% out.
%%
%% Each node is asked once in a period, and one that was up and is not more often, so that it is soon seen to be back. Not
%% more than so many are asked at once, and as many that are not up: these may take long to
%% say so, and hold up no other. None is asked twice at once: a turn that comes while the one before is under
%% way is missed, and counted.
%%
%% Of each node the last look is told, as what has changed since the look told before. A look of which nobody asked in
%% time is overtaken, and counted. What was gained by then is told with the next one, and what was logged there, the last 50 texts.
-module(atoll_watch_turns).

-export([new/1, step/2, code/2, report/1, has_news/1]).

-export_type([turns/0, input/0, effect/0]).

-type input() ::
    %% A period begins.
    tick
    %% A part of one, in which those are asked that are not up.
    | again
    | {answered, node(), atoll_watch_agent:sample()}
    | {failed, node(), atoll_watch_node:failure()}
    %% It is this manager's, from now on; what it said last to another one.
    | {give, node(), atoll_watch_shares:lease(), Before :: none | atoll_watch_agent:sample()}
    | {take, node()}.

-type effect() ::
    {ask, node()}
    %% A question that is under way is given up.
    | {leave, node()}.

-type line() :: up | other.

-record(node, {
    lease :: atoll_watch_shares:lease(),
    state = unknown :: unknown | up | silent | down | refused,
    is_asked = no :: no | line(),
    %% Its last answer, and the one that was told last, since which it gains.
    last :: none | atoll_watch_agent:sample(),
    before :: none | atoll_watch_agent:sample(),
    %% How it is set up, as it has said last.
    facts = none :: none | atoll_watch_agent_facts:facts(),
    %% What the last report said that is up.
    told = none :: none | {atoll_watch_metric:readings(), Rates :: atoll_watch_metric:readings(), none | atoll_watch_agent_facts:facts()},
    %% What is not told yet: what was logged there, newest first, and the last look.
    log = [] :: [atoll_watch_agent:said()],
    look = none :: none | {up, Sample :: map(), atoll_watch_metric:readings(), Rates :: atoll_watch_metric:readings()} | {silent | down | refused, Why :: none | unicode:chardata()}
}).

-record(turns, {
    at_once :: pos_integer(),
    nodes = #{} :: #{node() => #node{}},
    %% Who is still to be asked, and how many are, of those that are up and of the others.
    waiting = #{up => [], other => []} :: #{line() := [node()]},
    asked = #{up => 0, other => 0} :: #{line() := non_neg_integer()},
    missed = 0 :: non_neg_integer(),
    overtaken = 0 :: non_neg_integer()
}).

-opaque turns() :: #turns{}.

-define(LOG, 50).

%% @doc It has no node yet. So many are asked at once.
-spec new(AtOnce :: pos_integer()) -> turns().
new(AtOnce) -> #turns{at_once = AtOnce}.

%% @doc Something has happened.
-spec step(input(), turns()) -> {[effect()], turns()}.
step(tick, #turns{nodes = Nodes, waiting = #{up := Up, other := Other}, asked = #{up := N, other := M}, missed = Missed} = Turns) ->
    Free = lists:sort([{order(State), Node} || {Node, #node{state = State, is_asked = no}} <- maps:to_list(Nodes)]),
    {Now, Later} = lists:partition(fun({Order, _}) -> Order =:= 0 end, Free),
    asking(Turns#turns{
        waiting = #{up => [Node || {_, Node} <- Now], other => [Node || {_, Node} <- Later]},
        missed = Missed + length(Up) + length(Other) + N + M
    });
step(again, #turns{nodes = Nodes, waiting = #{up := Up, other := Other} = Waiting} = Turns) ->
    %% One that never was up may not let anybody in, and log each attempt.
    Lost = [Node || {Node, #node{state = State, is_asked = no, last = #{}}} <- lists:sort(maps:to_list(Nodes)), State =:= silent orelse State =:= down],
    asking(Turns#turns{waiting = Waiting#{other := Other ++ ((Lost -- Other) -- Up)}});
step({answered, Node, #{log := New} = Answer}, Turns) ->
    {#node{before = Before, log = Untold, facts = Facts} = Was, Ended} = ended(Node, Turns),
    Sample = maps:without([log, facts], Answer),
    Log = lists:sublist(lists:reverse(New, Untold), ?LOG),
    Look = {up, maps:remove(readings, Sample), atoll_watch_metric:readings(Before, Sample), atoll_watch_metric:rates(Before, Sample)},
    asking(looked(Node, Was#node{state = up, last = Sample, log = Log, facts = atoll_watch_report:known(maps:get(facts, Answer, none), Facts)}, Look, Ended));
step({failed, Node, Failure}, Turns) ->
    {Was, Ended} = ended(Node, Turns),
    {State, _} = Look = case Failure of {refused, Why} -> {refused, Why}; _ -> {Failure, none} end,
    asking(looked(Node, Was#node{state = State}, Look, Ended));
step({give, Node, Lease, Before}, #turns{nodes = Nodes, waiting = #{other := Other} = Waiting} = Turns) ->
    asking(Turns#turns{nodes = Nodes#{Node => #node{lease = Lease, last = Before, before = Before}}, waiting = Waiting#{other := Other ++ [Node]}});
step({take, Node}, #turns{nodes = Nodes, waiting = Waiting, asked = Asked} = Turns) ->
    {#node{is_asked = IsAsked}, Others} = maps:take(Node, Nodes),
    {Asks, Left} = asking(Turns#turns{
        nodes = Others,
        waiting = maps:map(fun(_, In) -> In -- [Node] end, Waiting),
        asked = case IsAsked of no -> Asked; Line -> maps:update_with(Line, fun(N) -> N - 1 end, Asked) end
    }),
    {[{leave, Node} | Asks], Left}.

%% Which of them come first.
order(up) -> 0;
order(unknown) -> 1;
order(refused) -> 2;
order(silent) -> 3;
order(down) -> 4.

ended(Node, #turns{nodes = Nodes, asked = Asked} = Turns) ->
    #{Node := #node{is_asked = Line} = Was} = Nodes,
    {Was#node{is_asked = no}, Turns#turns{asked = maps:update_with(Line, fun(N) when N > 0 -> N - 1 end, Asked)}}.

looked(Node, #node{look = Before} = Is, Look, #turns{nodes = Nodes, overtaken = Overtaken} = Turns) ->
    Turns#turns{nodes = Nodes#{Node := Is#node{look = Look}}, overtaken = Overtaken + case Before of none -> 0; _ -> 1 end}.

asking(Turns0) ->
    {Ups, Turns1} = asking(up, Turns0),
    {Others, Turns} = asking(other, Turns1),
    {Ups ++ Others, Turns}.

asking(Line, #turns{nodes = Nodes, waiting = Waiting, asked = Asked, at_once = Most} = Turns) ->
    #{Line := In} = Waiting,
    #{Line := N} = Asked,
    {Now, Later} = lists:split(max(0, min(length(In), Most - N)), In),
    {
        [{ask, Node} || Node <- Now],
        Turns#turns{
            nodes = lists:foldl(fun(Node, Acc) -> #{Node := #node{is_asked = no} = Is} = Acc, Acc#{Node := Is#node{is_asked = Line}} end, Nodes, Now),
            waiting = Waiting#{Line := Later},
            asked = Asked#{Line := N + length(Now)}
        }
    }.

%% @doc Which modules of a node are known.
-spec code(node(), turns()) -> atoll_watch_agent:code().
code(Node, #turns{nodes = Nodes}) ->
    case Nodes of
        #{Node := #node{facts = #{code := Code}}} -> Code;
        #{} -> none
    end.

%% @doc Whether there is something to be told.
-spec has_news(turns()) -> boolean().
has_news(#turns{nodes = Nodes}) -> lists:any(fun(#node{look = Look}) -> Look =/= none end, maps:values(Nodes)).

%% @doc All that was not told yet.
-spec report(turns()) -> {#{looks := [atoll_watch_report:look()], missed := non_neg_integer(), overtaken := non_neg_integer()}, turns()}.
report(#turns{nodes = Nodes, missed = Missed, overtaken = Overtaken} = Turns) ->
    News = [{Node, told(Node, Is)} || {Node, #node{look = Look} = Is} <- lists:sort(maps:to_list(Nodes)), Look =/= none],
    {
        #{looks => [Look || {_, {Look, _}} <- News], missed => Missed, overtaken => Overtaken},
        Turns#turns{nodes = maps:merge(Nodes, maps:from_list([{Node, Is} || {Node, {_, Is}} <- News])), missed = 0, overtaken = 0}
    }.

told(Node, #node{lease = Lease, last = Last, look = {up, Sample, Readings, Rates}, told = Told, log = Log, facts = Facts} = Is) ->
    {Readings0, Rates0, Facts0} = case Told of none -> {none, none, none}; _ -> Told end,
    {
        #{node => Node, lease => Lease, state => up, why => none, log => lists:reverse(Log), sample => Sample#{facts => atoll_watch_report:news(Facts, Facts0)},
          readings => atoll_watch_report:change(Readings0, Readings), rates => atoll_watch_report:change(Rates0, Rates)},
        Is#node{look = none, before = Last, told = {Readings, Rates, Facts}, log = []}
    };
told(Node, #node{lease = Lease, look = {State, Why}, log = Log} = Is) ->
    {#{node => Node, lease => Lease, state => State, why => Why, log => lists:reverse(Log)}, Is#node{look = none, log = []}}.
