%% SPDX-License-Identifier: Apache-2.0
%% @doc The alarms of a cluster: raised and cleared by rules, acknowledged and commented on by people.
%% Pure: looks at nodes, what people do, and the time come in.
%%
%% Promised: for each rule, node and instance there is at most one alarm that stands; raised
%% again it is another one, with another number. While a node does not answer its other alarms stay as they were,
%% and there is one for its silence, in place of all that it does not say; of `node_down', `node_silent' and
%% `node_refused' one at most stands. An alarm about several nodes is one alarm, which names them; when nothing is found any more
%% it stays until each of them that is still watched has said so. What is cleared is kept in a history of a bounded length; more
%% alarms than a bound do not stand at once, and what is left out is counted.
-module(atoll_watch_alarm).

-export([new/1, restored/3, look/3, compare/3, forget/3, acknowledge/4, comment/5, standing/1, history/1, omitted/1, format_error/1]).

-export_type([alarms/0, alarm/0, event/0, error/0, options/0]).

-type options() :: #{rules => [atoll_watch_rule:rule()], history => pos_integer(), standing => pos_integer(), comments => pos_integer()}.

-type alarm() :: #{
    id := pos_integer(),
    rule := atoll_watch_rule:id(),
    %% Of several, the first.
    node := node(),
    %% All that it is about, as of the last look.
    nodes := [node(), ...],
    %% What was found, where the value does not say it.
    information := binary() | none,
    instance := atoll_watch_rule:instance(),
    state := new | acknowledged | cleared,
    severity := atoll_watch_rule:severity(),
    cause := string(),
    repair := string(),
    %% At the last look; of a state there is none.
    value := number() | none,
    %% In milliseconds, by whatever clock the caller has.
    raised := integer(),
    cleared := integer() | none,
    acknowledged := none | {Time :: integer(), Who :: binary()},
    %% Newest first.
    comments := [{Time :: integer(), Who :: binary(), Text :: binary()}]
}.

-type event() :: {raised | cleared | acknowledged | commented, alarm()}.

-type error() :: {no_alarm, Id :: integer()} | {is_cleared, Id :: pos_integer()} | {too_many_comments, Id :: pos_integer()}.

%% How many looks in a row were so, and the alarm if it stands. Neither: there is no slot.
-type slot() :: {Row :: {raises | clears, pos_integer()} | none, alarm() | none}.

-type subject() :: node() | {several}.

-record(alarms, {
    options :: options(),
    next = 1 :: pos_integer(),
    %% Those about several nodes are in one place.
    slots = #{} :: #{subject() => #{{atoll_watch_rule:id(), atoll_watch_rule:instance()} => slot()}},
    standing = 0 :: non_neg_integer(),
    %% Newest first.
    history = [] :: [alarm()],
    omitted = 0 :: non_neg_integer()
}).

-opaque alarms() :: #alarms{}.

%% @doc None stands.
-spec new(options()) -> alarms().
new(Options) ->
    #alarms{options = maps:merge(#{rules => atoll_watch_rule:all(), history => 1000, standing => 10000, comments => 100}, Options)}.

%% @doc As it was when these were all that stood or had been cleared. What stood by a rule that there is no more, nobody would
%% clear.
-spec restored([alarm()], Now :: integer(), options()) -> alarms().
restored(Alarms, Now, Options) ->
    #alarms{options = #{rules := Rules, history := Most}} = New = new(Options),
    Whats = maps:from_list([{Id, What} || #{id := Id, what := What} <- Rules]),
    Known = [maps:merge(#{nodes => [Node], information => none}, Alarm) || #{node := Node} = Alarm <- Alarms],
    {Gone, Old} = lists:partition(fun(#{state := State, rule := Rule}) -> State =:= cleared orelse not is_map_key(Rule, Whats) end, Known),
    History = [case Alarm of #{state := cleared} -> Alarm; _ -> Alarm#{state := cleared, cleared := Now} end || Alarm <- Gone],
    Slots = maps:groups_from_list(fun(#{node := Node, rule := Rule}) -> case map_get(Rule, Whats) of {nodes, _} -> {several}; _ -> Node end end, fun(#{rule := Rule, instance := Instance} = Alarm) -> {{Rule, Instance}, {none, Alarm}} end, Old),
    New#alarms{
        next = 1 + lists:max([0 | [Id || #{id := Id} <- Known]]),
        slots = maps:map(fun(_, Here) -> maps:from_list(Here) end, Slots),
        standing = length(Old),
        history = lists:sublist([Alarm || {_, _, Alarm} <- lists:reverse(lists:sort([{Cleared, Id, Alarm} || #{cleared := Cleared, id := Id} = Alarm <- History]))], Most)
    }.

%% @doc A node was looked at.
-spec look(atoll_watch_core:seen(), Now :: integer(), alarms()) -> {[event()], alarms()}.
look(#{node := Node, state := State} = Seen, Now, #alarms{options = #{rules := Rules}} = Alarms) ->
    lists:foldl(fun(Rule, Acc) ->
        Said = [{Instance, Value, Is, {[Node], none}} || {Instance, Value, Is} <- atoll_watch_rule:looks(Rule, Seen)],
        IsZero = atoll_watch_rule:is_zero(Rule, State),
        ruled(Rule, Node, Said, fun(_) -> IsZero end, Now, Acc)
    end, {[], Alarms}, Rules).

%% @doc All nodes were looked at, side by side.
-spec compare([atoll_watch_compare:about()], Now :: integer(), alarms()) -> {[event()], alarms()}.
compare(Abouts, Now, #alarms{options = #{rules := Rules}} = Alarms) ->
    lists:foldl(fun(#{what := {nodes, Kind}} = Rule, Acc) ->
        Said = [{Instance, Value, atoll_watch_rule:judged(Value, Rule), {Nodes, Text}} || {Instance, Value, Nodes, Text} <- atoll_watch_compare:findings(Kind, Abouts)],
        Mute = maps:from_keys([Node || #{node := Node} = About <- Abouts, not atoll_watch_compare:has_said(Kind, About)], mute),
        IsOver = fun({_, none}) -> true; ({_, #{nodes := Nodes}}) -> not lists:any(fun(Node) -> is_map_key(Node, Mute) end, Nodes) end,
        ruled(Rule, {several}, Said, IsOver, Now, Acc)
    end, {[], Alarms}, [Rule || #{what := {nodes, _}} = Rule <- Rules]).

%% Where that of which nothing is said is not over, its slot stays as it was.
ruled(#{id := Id} = Rule, Subject, Said, IsOver, Now, {_, #alarms{slots = Slots}} = Acc0) ->
    Known = [{Instance, Slot} || {{R, Instance}, Slot} <- maps:to_list(maps:get(Subject, Slots, #{})), R =:= Id],
    Absent = [{Instance, 0, clears, was(Slot)} || {Instance, Slot} <- lists:sort(Known), not lists:keymember(Instance, 1, Said), IsOver(Slot)],
    lists:foldl(fun({Instance, Value, Is, About}, Acc) -> slot({Id, Instance}, Value, Is, Rule, Subject, About, Now, Acc) end, Acc0, Said ++ Absent).

%% What was told of it last.
was({_, #{nodes := Nodes, information := Information}}) -> {Nodes, Information};
was({_, none}) -> none.

slot(Key, Value, Is, #{looks := Looks} = Rule, Node, About, Now, {Events, #alarms{slots = Slots} = Alarms}) ->
    Here = maps:get(Node, Slots, #{}),
    {Row0, Alarm0} = maps:get(Key, Here, {none, none}),
    Row = row(Is, Row0),
    case {Alarm0, Row} of
        {none, {raises, N}} when N >= Looks -> raised(Key, Value, Rule, Node, About, Now, Events, Alarms);
        {none, {raises, _}} -> {Events, with(Node, Here#{Key => {Row, none}}, Alarms)};
        {none, _} -> {Events, with(Node, maps:remove(Key, Here), Alarms)};
        {#{}, {clears, N}} when N >= Looks -> cleared(Key, Value, Node, Now, Events, Alarms);
        {#{}, {clears, _}} when element(1, map_get(what, Rule)) =:= state -> cleared(Key, Value, Node, Now, Events, Alarms);
        {#{}, _} -> {Events, with(Node, Here#{Key => {Row, about(About, Alarm0#{value := Value})}}, Alarms)}
    end.

about({Nodes, Information}, Alarm) -> Alarm#{nodes := Nodes, information := Information}.

row(between, _) -> none;
row(Is, {Is, N}) -> {Is, N + 1};
row(Is, _) -> {Is, 1}.

with(Node, Here, #alarms{slots = Slots} = Alarms) when map_size(Here) =:= 0 -> Alarms#alarms{slots = maps:remove(Node, Slots)};
with(Node, Here, #alarms{slots = Slots} = Alarms) -> Alarms#alarms{slots = Slots#{Node => Here}}.

raised(Key, _, _, Node, _, _, Events, #alarms{standing = N, options = #{standing := Most}, slots = Slots, omitted = Omitted} = Alarms) when N >= Most ->
    {Events, with(Node, maps:remove(Key, maps:get(Node, Slots, #{})), Alarms#alarms{omitted = Omitted + 1})};
raised({Id, Instance} = Key, Value, #{severity := Severity, cause := Cause, repair := Repair}, Node, {[First | _] = Nodes, Information}, Now, Events, Alarms) ->
    #alarms{next = Next, slots = Slots, standing = Standing} = Alarms,
    Alarm = #{
        id => Next, rule => Id, node => First, nodes => Nodes, information => Information, instance => Instance, state => new, severity => Severity, cause => Cause, repair => Repair,
        value => Value, raised => Now, cleared => none, acknowledged => none, comments => []
    },
    Here = maps:get(Node, Slots, #{}),
    {Events ++ [{raised, Alarm}], with(Node, Here#{Key => {none, Alarm}}, Alarms#alarms{next = Next + 1, standing = Standing + 1})}.

cleared(Key, Value, Node, Now, Events, #alarms{slots = Slots, standing = Standing, history = History, options = #{history := Most}} = Alarms) ->
    #{Node := #{Key := {_, Alarm0}} = Here} = Slots,
    Alarm = Alarm0#{state := cleared, cleared := Now, value := Value},
    Kept = lists:sublist([Alarm | History], Most),
    {Events ++ [{cleared, Alarm}], with(Node, maps:remove(Key, Here), Alarms#alarms{standing = Standing - 1, history = Kept})}.

%% @doc A node is watched no more: what stands of it is cleared.
-spec forget(node(), Now :: integer(), alarms()) -> {[event()], alarms()}.
forget(Node, Now, #alarms{slots = Slots} = Alarms) ->
    Standing = [{Key, Value} || {Key, {_, #{value := Value}}} <- lists:sort(maps:to_list(maps:get(Node, Slots, #{})))],
    {Events, #alarms{slots = Left} = Cleared} =
        lists:foldl(fun({Key, Value}, {Es, As}) -> cleared(Key, Value, Node, Now, Es, As) end, {[], Alarms}, Standing),
    {Events, Cleared#alarms{slots = maps:remove(Node, Left)}}.

%% @doc Somebody has seen it. The first one to say so is kept.
-spec acknowledge(Id :: integer(), Who :: binary(), Now :: integer(), alarms()) -> {ok, [event()], alarms()} | {error, error()}.
acknowledge(Id, Who, Now, Alarms) ->
    changed(Id, Alarms, fun
        (#{state := new} = Alarm) -> {acknowledged, Alarm#{state := acknowledged, acknowledged := {Now, Who}}};
        (#{state := acknowledged}) -> same;
        (#{state := cleared}) -> {error, {is_cleared, Id}}
    end).

%% @doc Somebody says something of it, while it stands or later.
-spec comment(Id :: integer(), Who :: binary(), Text :: binary(), Now :: integer(), alarms()) ->
    {ok, [event()], alarms()} | {error, error()}.
comment(Id, Who, Text, Now, #alarms{options = #{comments := Most}} = Alarms) ->
    changed(Id, Alarms, fun
        (#{comments := Comments}) when length(Comments) >= Most -> {error, {too_many_comments, Id}};
        (#{comments := Comments} = Alarm) -> {commented, Alarm#{comments := [{Now, Who, Text} | Comments]}}
    end).

changed(Id, #alarms{slots = Slots, history = History} = Alarms, Change) ->
    Places =
        [{slot, Node, Key, Row, Alarm} || {Node, Here} <- maps:to_list(Slots), {Key, {Row, #{id := Is} = Alarm}} <- maps:to_list(Here), Is =:= Id] ++
        [{history, Alarm} || #{id := Is} = Alarm <- History, Is =:= Id],
    case Places of
        [] ->
            {error, {no_alarm, Id}};
        [Place] ->
            Alarm = element(tuple_size(Place), Place),
            case Change(Alarm) of
                same -> {ok, [], Alarms};
                {error, _} = Error -> Error;
                {What, Changed} -> {ok, [{What, Changed}], in_place(Place, Alarm, Changed, Alarms)}
            end
    end.

in_place({slot, Node, Key, Row, _}, _, Changed, #alarms{slots = Slots} = Alarms) ->
    #{Node := Here} = Slots,
    with(Node, Here#{Key := {Row, Changed}}, Alarms);
in_place({history, _}, Was, Changed, #alarms{history = History} = Alarms) ->
    Alarms#alarms{history = [case Alarm of Was -> Changed; _ -> Alarm end || Alarm <- History]}.

%% @doc Those that stand, in the order in which they were raised.
-spec standing(alarms()) -> [alarm()].
standing(#alarms{slots = Slots}) ->
    [Alarm || {_, Alarm} <- lists:sort([{Id, Alarm} || Here <- maps:values(Slots), {_, #{id := Id} = Alarm} <- maps:values(Here)])].

%% @doc Those that were cleared, the last one first.
-spec history(alarms()) -> [alarm()].
history(#alarms{history = History}) -> History.

%% @doc How often one was left out since too many stood.
-spec omitted(alarms()) -> non_neg_integer().
omitted(#alarms{omitted = Omitted}) -> Omitted.

%% @doc What is wrong, in a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error({no_alarm, Id}) -> ["There is no alarm ", integer_to_list(Id), $.];
format_error({is_cleared, Id}) -> ["Alarm ", integer_to_list(Id), " is cleared already."];
format_error({too_many_comments, Id}) -> ["Alarm ", integer_to_list(Id), " has as many comments as it may have."].
