%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The membership of s_groups: who is in which group, agreed among the
%% group's own nodes and nobody else.
%%
%% <b>How an operation runs.</b> The node that is asked takes a lock
%% ({@link atoll_group_lock}) at each node the operation concerns: the members,
%% and those that are to be. With a lock comes what that node knows of the
%% group. When all have answered, the node looks once more whether the operation
%% still makes sense, writes the new view ({@link atoll_group_view}), sends it,
%% and gives the locks back. It answers its caller when every node that agreed
%% has the view and is connected with the members it can reach. Until then it asks
%% and tells again every fiftieth of `answer_ms', so that messages lost on a
%% congested connection cost time only. To ask again is also what keeps a lock, so
%% nothing here needs the order of an {@link atoll_session}.
%%
%% <b>Promises.</b>
%% <ul>
%% <li>Operations that change a group, run by nodes that are connected, happen one
%%   after the other: each has the answer and the effect it would have had alone
%%   at that moment, and whoever asks after it was answered sees it. An answer
%%   that changes nothing says what the asked node knew.</li>
%% <li>No two operations wait for each other for ever (see the lock), and no node
%%   waits for another inside its own process: every step is a message.</li>
%% <li>A node that is down is left out of a new group, or hears of a change when
%%   it is back. A node that is silent is taken for down after `answer_ms'. A lock
%%   ends when its operation says so, when the connection with its node is lost, or
%%   when it was not asked for again during `answer_ms': so a silent node that was
%%   in the middle of an operation holds up others as long, once. After
%%   `operation_ms' an operation that still could not get its locks answers
%%   `{error, timeout}', and nothing has changed.</li>
%% <li>A change is made only while all its locks are known to last for another half
%%   of `answer_ms'; a node that was stopped and goes on asks anew before it
%%   changes anything. Where messages take longer than that, two changes may pass
%%   each other, and are merged.</li>
%% <li>A node is in at most one group of a name.</li>
%% <li>Nodes that were cut off from each other hold the same view again soon after
%%   they are connected: they exchange digests when a connection comes up, and
%%   with a random node that is or was in one of their groups every `gossip_ms'.</li>
%% <li>A member that was killed and started again is back in its groups as soon
%%   as one member is connected with it, and at once in those that it is
%%   configured for or kept in a file.</li>
%% </ul>
%%
%% <b>Not promised.</b> A node that dies while it sends a change has told some and
%% not others; these hear of it from their co-members. There is no quorum: both sides of a partition may change a
%% group, and the changes are merged when nodes of both are connected again (a
%% deletion wins; for each node the later operation wins). Members look for each
%% other. Members that do not answer are removed by more than half of all, or by half with the first
%% by name: so one side at most can remove the other. With the option `removal' as `always'
%% each can, and keeps its part until a program connects them: then all who were removed are
%% out. Two sides that each made a group of one name keep
%% both, unless a node finds itself in two: it leaves the younger. A node
%% remembers `max_tombstones' groups that it left or that were deleted; a member that
%% was cut off while more than that many were deleted may bring one back. Of former
%% members a group remembers a few more than it has members: what those who are forgotten have
%% changed since, among themselves, is lost when they meet the others.
%%
%% The module is long because its three parts, this node's operations, the locks
%% of others at this node, and the views, are one state: what one part learns
%% moves the others within the same event. What can stand alone does, in the
%% modules beside it.
-module(atoll_group_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3]).

-export_type([config/0, options/0, state/0, message/0]).

-type config() :: #{
    self := node(),
    %% When this node's group process started; makes its stamps unique.
    incarnation := integer(),
    seed := integer(),
    options := options(),
    %% The groups of the configuration, none unless told.
    configured => atoll_group_config:groups(),
    %% What an earlier life of this node or of this process has kept, and what readers find
    %% by it.
    kept => [atoll_group_view:view()],
    published => [atoll_group_rules:published()],
    has_file => boolean()
}.

-type options() :: #{
    %% How long a silent node can hold up an operation.
    answer_ms := pos_integer(),
    %% How long an operation may take to get all its locks.
    operation_ms := pos_integer(),
    %% How long an operation waits for the members to be ready.
    settle_ms := pos_integer(),
    %% How often a digest goes to a random node of this node's groups.
    gossip_ms := pos_integer(),
    %% Bounds: operations run here at once, locks asked of this node at once,
    %% groups remembered that this node is not in.
    max_operations := pos_integer(),
    max_asks := pos_integer(),
    max_tombstones := pos_integer(),
    %% Who may remove members that do not answer.
    removal := atoll_group_rules:removal()
}.

-type stamp() :: atoll_group_view:stamp().
-type id() :: atoll_group_view:id().
-type view() :: atoll_group_view:view().

-type message() ::
    %% To take a lock, or to keep it, as a future member or as a present one.
    {take, stamp(), atoll_group_locks:tag(), atoll_group_locks:purpose()}
    %% The answers.
    | {lock, stamp(), atoll_group_locks:tag(), granted, none | view()}
    | {lock, stamp(), atoll_group_locks:tag(), waiting | refused | die}
    %% The lock is over; with a changed group, the node is to say when it is ready.
    | {release, stamp(), none | view()}
    | {ready, stamp()}
    %% What the sender knows of one group.
    | {view, view()}
    %% The digests of the groups that both nodes have to do with; `ask' wants the
    %% same back if they differ.
    | {digests, ask | tell, atoll_group_store:digests()}.

-record(state, {
    self :: node(),
    incarnation :: integer(),
    options :: options(),
    %% The time of this event, and the Lamport clock of the stamps.
    now :: atoll_protocol:now_ms(),
    clock = 0 :: non_neg_integer(),
    rand :: rand:state(),
    %% Connected nodes, and wanted ones whose last attempt to connect failed.
    up = #{} :: #{node() => []},
    unreachable = #{} :: #{node() => []},
    store :: atoll_group_store:store(),
    locks :: atoll_group_locks:locks(),
    %% Operations of this node.
    ops = #{} :: #{stamp() => atoll_group_op:op()},
    %% Operations with nothing to do, as soon as changes of this node have settled; the
    %% latest first.
    behind = [] :: [{atoll_group_rules:operation(), atoll_protocol:from()}],
    %% Operations that wait for this node to be ready for a group.
    readies = #{} :: #{stamp() => id()},
    %% What readers, subscribers and the link room were told last.
    published = [] :: [atoll_group_rules:published()],
    %% Whether they were told that this node, being free, makes a group.
    making = false :: boolean(),
    wanted = [] :: [node()],
    gossiping = false :: boolean(),
    %% Callers that wait for this node to be ready for all its groups.
    syncs = #{} :: #{stamp() => atoll_protocol:from()},
    %% What was kept last.
    kept :: atoll_group_store:store(),
    %% Messages of this node to itself that have not been handled yet, and the
    %% effects of this event so far, both newest first.
    inbox = [] :: [message()],
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque state() :: #state{}.

%% How often a node says what was not answered before it takes a peer for silent.
-define(SAYINGS, 50).
%% How long an operation backs off after it gave way: from the first to the longest.
-define(BACK_OFF_MIN_MS, 5).
-define(BACK_OFF_MAX_MS, 100).
%% So many former members are remembered at least.
-define(MIN_FORMER, 16).

%% @doc The state of a node that is in the groups of its configuration, and in those
%% that it was in when it kept what it knew.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, options := Options} = Config, Now) ->
    #{max_tombstones := MaxTombstones, max_asks := MaxAsks} = Options,
    Store = atoll_group_store:new(Self, MaxTombstones),
    State0 = #state{
        self = Self,
        incarnation = Incarnation,
        options = Options,
        now = Now,
        rand = rand:seed_s(exsss, Seed),
        store = Store,
        kept = Store,
        published = maps:get(published, Config, []),
        locks = atoll_group_locks:new(MaxAsks)
    },
    #state{store = Kept} = State = lists:foldl(fun learn/2, State0, maps:get(kept, Config, [])),
    finish_event(configure(maps:get(configured, Config, []), State#state{kept = Kept})).

%% @doc Takes one event. Requests are `{new, Name, Nodes}', `{add, Name, Nodes}',
%% `{remove, Name, Nodes}', `{delete, Name}', `{sync, Configured}' and `info'; the one
%% cast is `{unreachable, Node}'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle(Event, Now, State) ->
    finish_event(event(Event, State#state{now = Now})).

finish_event(State0) ->
    #state{effects = Newest} = State = publish(answer_syncs(run(State0))),
    %% Whoever is answered must find the tables of each node as the answer says, and its other
    %% rooms told: what lets somebody answer comes last, here or on the node that waits for this one.
    {Answers, Others} = lists:partition(fun is_answer/1, lists:reverse(Newest)),
    {State#state{effects = []}, Others ++ Answers}.

is_answer({reply, _, _}) -> true;
is_answer({send, _, {ready, _}}) -> true;
is_answer(_) -> false.

%% Until this node has nothing more to say to itself.
run(#state{inbox = [], readies = Readies} = State0) ->
    case lists:foldl(fun answer_if_ready/2, State0, lists:sort(maps:to_list(Readies))) of
        #state{inbox = []} = State -> State;
        State -> run(State)
    end;
run(#state{inbox = Newest, self = Self} = State) ->
    Messages = lists:reverse(Newest),
    run(lists:foldl(fun(M, S) -> message(M, Self, S) end, State#state{inbox = []}, Messages)).

event({call, From, info}, #state{self = Self, published = Groups, store = Store} = State) ->
    Connected = maps:keys(State#state.up),
    Forgotten = atoll_group_store:tombstones_dropped(Store),
    effect({reply, From, atoll_group_rules:info(Self, Groups, Connected, Forgotten)}, State);
event({call, From, {sync, Configured}}, State) ->
    sync(Configured, From, State);
event({call, From, Request}, State) ->
    start(Request, From, State);
event({message, Peer, Message}, State) ->
    message(Message, Peer, State);
event({up, Peer}, #state{up = Up, unreachable = Unreachable, ops = Ops} = State0) ->
    State1 = State0#state{up = Up#{Peer => []}, unreachable = maps:remove(Peer, Unreachable)},
    State2 = tell_digests(Peer, ask, State1),
    for_each_op(fun(Op, S) -> reached(Peer, Op, S) end, Ops, State2);
event({down, Peer, _Reason}, #state{up = Up, ops = Ops} = State0) ->
    State1 = for_each_op(
        fun(Op, S) -> lost(Peer, Op, S) end, Ops, State0#state{up = maps:remove(Peer, Up)}
    ),
    Asks = atoll_group_locks:of_node(Peer, State1#state.locks),
    lists:foldl(fun end_lock/2, State1, Asks);
event({cast, {unreachable, Peer}}, #state{unreachable = Unreachable, ops = Ops} = State0) ->
    State = State0#state{unreachable = Unreachable#{Peer => []}},
    for_each_op(fun(Op, S) -> not_reached(Peer, Op, S) end, Ops, State);
event({timeout, gossip}, State) ->
    gossip(State);
event({timeout, {lease, Stamp}}, State) ->
    end_lock(Stamp, State);
event({timeout, {sync, Stamp}}, State) ->
    answer_sync(Stamp, State);
event({timeout, {Timer, Stamp}}, #state{ops = Ops} = State) ->
    #{Stamp := Op} = Ops,
    case Timer of
        answers -> unanswered(Op, State);
        again -> say_again(Op, State);
        operation -> finish({error, timeout}, give_back(Op, State), Op);
        back_off -> take(atoll_group_op:again(Op), State);
        settle -> finish(atoll_group_op:result(Op), State, Op)
    end.

-spec message(message(), node(), #state{}) -> #state{}.
message({take, {Counter, _, _} = Stamp, Tag, Purpose}, _Peer, State) ->
    asked(Stamp, Tag, Purpose, tick(Counter, State));
message({lock, Stamp, Tag, granted, none}, Peer, State) ->
    answered(granted, Peer, Stamp, Tag, State);
message({lock, Stamp, Tag, granted, View}, Peer, State) ->
    answered(granted, Peer, Stamp, Tag, learn(View, State));
message({lock, Stamp, Tag, Answer}, Peer, State) ->
    answered(Answer, Peer, Stamp, Tag, State);
message({release, Stamp, none}, _Peer, State) ->
    end_lock(Stamp, State);
message({release, Stamp, View}, _Peer, State0) ->
    #state{readies = Readies} = State = end_lock(Stamp, learn(View, State0)),
    State#state{readies = Readies#{Stamp => atoll_group_view:id(View)}};
message({ready, Stamp}, Peer, #state{ops = Ops} = State) ->
    case Ops of
        #{Stamp := Op} -> settled(Peer, Op, State);
        #{} -> State
    end;
message({view, View}, _Peer, State) ->
    learn(View, State);
message({digests, Kind, Theirs}, Peer, State) ->
    compare(Kind, Theirs, Peer, State).

%% Operations of this node

start({Kind, Name, Nodes}, From, #state{ops = Ops, options = Options} = State0) ->
    #{max_operations := Max, operation_ms := Ms} = Options,
    Operation = {Kind, Name, lists:usort(Nodes)},
    case check(Operation, State0) of
        {done, Answer} ->
            done(Answer, Operation, From, State0);
        {go, _} when map_size(Ops) >= Max ->
            effect({reply, From, {error, overloaded}}, State0);
        {go, _} ->
            {Stamp, State} = next_stamp(State0),
            Op = atoll_group_op:new(Operation, Stamp, From),
            take(Op, effect({timer, {operation, Stamp}, Ms}, State))
    end.

%% There is nothing to do. Where that is so because of a change that has not settled, its
%% answer is waited for: only then all that it concerns know.
done(Answer, {_, Name, _} = Operation, From, #state{behind = Behind, options = #{max_operations := Max}} = State) ->
    case is_success(Answer) andalso is_settling(Name, State) of
        true when length(Behind) >= Max -> effect({reply, From, {error, overloaded}}, State);
        true -> State#state{behind = [{Operation, From} | Behind]};
        false -> effect({reply, From, Answer}, State)
    end.

is_success(Answer) -> not (is_tuple(Answer) andalso element(1, Answer) =:= error).

is_settling(Name, #state{ops = Ops}) ->
    lists:any(
        fun(Op) -> atoll_group_op:phase(Op) =:= settling andalso element(2, atoll_group_op:operation(Op)) =:= Name end,
        maps:values(Ops)
    ).

%% An operation has ended, for which others may have waited: they begin again.
go_on(#state{behind = []} = State) ->
    State;
go_on(#state{behind = Behind} = State) ->
    lists:foldr(fun({Operation, From}, S) -> start(Operation, From, S) end, State#state{behind = []}, Behind).

check({_, Name, _} = Operation, #state{store = Store, self = Self}) ->
    atoll_group_rules:check(Operation, Self, atoll_group_store:own(Name, Store)).

%% An attempt: ask every node concerned for a lock.
take(Op, State) ->
    case check(atoll_group_op:operation(Op), State) of
        {done, Answer} ->
            Ended = ended(State, Op),
            go_on(done(Answer, atoll_group_op:operation(Op), atoll_group_op:from(Op), Ended));
        {go, View} ->
            Id = group_id(View, Op),
            ask_more(View, atoll_group_op:set_id(Id, Op), set_again(Op, State))
    end.

%% What may have been lost is said again.
say_again(Op, State0) ->
    State = set_again(Op, State0),
    case atoll_group_op:phase(Op) of
        taking ->
            View = atoll_group_store:find(atoll_group_op:id(Op), State#state.store),
            Retake = fun(Node, S) -> post(Node, take_message(Node, View, Op, S), S) end,
            lists:foldl(Retake, State, atoll_group_op:asked(Op));
        settling ->
            View = atoll_group_op:view(Op),
            Retell = fun(Node, S) -> release(Node, View, Op, S) end,
            lists:foldl(Retell, State, atoll_group_op:unsettled(Op))
    end.

set_again(Op, #state{options = #{answer_ms := Ms}} = State) ->
    effect({timer, {again, atoll_group_op:stamp(Op)}, max(1, Ms div ?SAYINGS)}, State).

set_answers(Op, #state{now = Now, options = #{answer_ms := Ms}} = State) ->
    Timer = {timer, {answers, atoll_group_op:stamp(Op)}, Ms},
    {atoll_group_op:expect(Now + Ms, Op), effect(Timer, State)}.

%% A new group's identity is the operation that makes it.
group_id(none, Op) ->
    {_, Name, _} = atoll_group_op:operation(Op),
    {Name, atoll_group_op:stamp(Op)};
group_id(View, _Op) ->
    atoll_group_view:id(View).

%% Asks the nodes concerned that were not asked yet; there are more when an
%% answer has shown a member that was unknown here.
ask_more(View, Op0, State0) ->
    {New, Op1} = atoll_group_op:concern(concerned(View, Op0), Op0),
    {Op, State} = lists:foldl(
        fun(Node, {Op2, S}) -> ask(Node, View, Op2, S) end, set_answers(Op1, State0), New
    ),
    decided(Op, State).

concerned(View, Op) ->
    atoll_group_rules:concerned(atoll_group_op:operation(Op), View).

ask(Node, View, Op, #state{unreachable = Unreachable} = State) ->
    %% A member that could not be reached a moment ago is not waited for again;
    %% for a new one the attempt is made.
    case {is_up(Node, State), purpose(Node, View)} of
        {true, _} -> send_take(Node, View, Op, State);
        {false, change} when is_map_key(Node, Unreachable) -> {answer(Node, gone, Op), State};
        {false, _} -> {Op, State}
    end.

send_take(Node, View, Op, State) ->
    {answer(Node, asked, Op), post(Node, take_message(Node, View, Op, State), State)}.

take_message(Node, View, Op, #state{now = Now}) ->
    Tag = {atoll_group_op:attempt(Op), Now},
    {take, atoll_group_op:stamp(Op), Tag, {purpose(Node, View), atoll_group_op:id(Op)}}.

purpose(_Node, none) ->
    join;
purpose(Node, View) ->
    case atoll_group_view:is_member(Node, View) of
        true -> change;
        false -> join
    end.

reached(Peer, Op0, State0) ->
    case atoll_group_op:status(Peer, Op0) of
        connecting ->
            View = atoll_group_store:find(atoll_group_op:id(Op0), State0#state.store),
            {Op, State} = send_take(Peer, View, Op0, State0),
            store_op(Op, State);
        _ ->
            State0
    end.

not_reached(Peer, Op, State) ->
    case atoll_group_op:status(Peer, Op) of
        connecting -> decided(answer(Peer, gone, Op), State);
        _ -> State
    end.

answer(Node, Status, Op) ->
    atoll_group_op:answer(Node, Status, Op).

lost(Peer, Op, State) ->
    case {atoll_group_op:phase(Op), atoll_group_op:status(Peer, Op)} of
        {settling, _} ->
            settled(Peer, Op, State);
        {taking, Status} when Status =/= connecting, Status =/= none, Status =/= gone ->
            %% Its lock is lost with the connection. The node may not be: a
            %% connection also ends because nobody needed it until now.
            {Waiting, Set} = set_answers(answer(Peer, connecting, Op), State),
            store_op(Waiting, Set);
        _ ->
            State
    end.

unanswered(Op, #state{now = Now, options = #{answer_ms := Ms}} = State0) ->
    case Now > atoll_group_op:expected(Op) + Ms div 2 of
        true ->
            %% The timer is late: it was this node that was silent.
            {Waiting, State} = set_answers(Op, State0),
            store_op(Waiting, State);
        false ->
            give_up_silent(Op, State0)
    end.

give_up_silent(Op0, State0) ->
    Silent = atoll_group_op:in_status([connecting, asked], Op0),
    {Op, State} = lists:foldl(
        fun(Node, {Op1, S}) ->
            {answer(Node, gone, Op1), release(Node, none, Op1, S)}
        end,
        {Op0, State0},
        Silent
    ),
    decided(Op, State).

answered(Answer, Peer, Stamp, {Attempt, Sent}, #state{ops = Ops} = State) ->
    case Ops of
        #{Stamp := Op} ->
            case {atoll_group_op:phase(Op), atoll_group_op:attempt(Op)} of
                {taking, Attempt} -> answered_now(Answer, Sent, Peer, Op, State);
                %% An answer to an earlier attempt.
                _ -> State
            end;
        #{} ->
            State
    end.

answered_now(Answer, Sent, Peer, Op, State) ->
    case {atoll_group_op:status(Peer, Op), Answer} of
        {gone, _} -> State;
        {_, die} -> back_off(answer(Peer, gone, Op), State);
        {_, waiting} -> store_op(answer(Peer, waiting, Op), State);
        {_, Status} -> decided(atoll_group_op:hold(Peer, Status, Sent, Op), State)
    end.

%% An older operation has or wants a lock: give way to it.
back_off(Op0, #state{rand = Rand0} = State0) ->
    Op = atoll_group_op:back_off(Op0),
    Longest = min(?BACK_OFF_MAX_MS, ?BACK_OFF_MIN_MS bsl min(atoll_group_op:attempt(Op), 10)),
    {Ms, Rand} = rand:uniform_s(Longest, Rand0),
    Stamp = atoll_group_op:stamp(Op),
    State1 = give_back(Op0, State0#state{rand = Rand}),
    Cancelled = [{cancel, {Timer, Stamp}} || Timer <- [answers, again]],
    store_op(Op, effects(Cancelled ++ [{timer, {back_off, Stamp}, Ms}], State1)).

give_back(Op, State) ->
    lists:foldl(fun(Node, S) -> release(Node, none, Op, S) end, State, atoll_group_op:asked(Op)).

release(Node, View, Op, State) ->
    post(Node, {release, atoll_group_op:stamp(Op), View}, State).

decided(Op, State) ->
    case atoll_group_op:is_decided(Op) of
        true -> commit(Op, State);
        false -> store_op(Op, State)
    end.

commit(Op0, State0) ->
    Id = atoll_group_op:id(Op0),
    case check(atoll_group_op:operation(Op0), State0) of
        {done, Answer} ->
            finish(Answer, give_back(Op0, State0), Op0);
        {go, View} ->
            case {group_id(View, Op0), concerned(View, Op0) -- atoll_group_op:concerned(Op0)} of
                {Id, []} -> change_if_held(View, Op0, State0);
                {Id, _More} -> ask_more(View, Op0, State0);
                %% Another group has the name now.
                {_Other, _} -> back_off(Op0, State0)
            end
    end.

%% A lock lasts for `answer_ms' from when it was asked for, and the change must
%% arrive before it ends.
change_if_held(View, Op0, #state{now = Now, options = #{answer_ms := Ms}} = State0) ->
    case atoll_group_op:held_before(Now - Ms div 2, Op0) of
        [] ->
            change(View, Op0, State0);
        Old ->
            {Op, State} = lists:foldl(
                fun(Node, {Op1, S}) -> ask(Node, View, Op1, S) end, set_answers(Op0, State0), Old
            ),
            store_op(Op, State)
    end.

change(View, Op, #state{options = #{removal := Removal}} = State) ->
    Granted = atoll_group_op:in_status([granted], Op),
    case atoll_group_rules:allows(atoll_group_op:operation(Op), View, Granted, Removal) of
        ok -> change(View, Granted, Op, State);
        {error, _} = Error -> finish(Error, give_back(Op, State), Op)
    end.

change(View0, Granted, Op0, #state{options = #{settle_ms := Ms}} = State0) ->
    Others = atoll_group_op:asked(Op0) -- Granted,
    OpStamp = atoll_group_op:stamp(Op0),
    {Stamp, State1} = stamp_of_change(View0, OpStamp, State0),
    Operation = atoll_group_op:operation(Op0),
    {Changed, Result} = atoll_group_rules:change(Operation, View0, Granted, Stamp),
    View = bounded(Changed, Granted, Stamp),
    Op = atoll_group_op:settle(Granted, View, Result, Op0),
    State2 = share(Changed, View, Granted, learn(View, State1)),
    State3 = lists:foldl(fun(Node, S) -> release(Node, View, Op, S) end, State2, Granted),
    State4 = lists:foldl(fun(Node, S) -> release(Node, none, Op, S) end, State3, Others),
    Cancelled = [{cancel, {Timer, OpStamp}} || Timer <- [answers, operation]],
    store_op(Op, effects(Cancelled ++ [{timer, {settle, OpStamp}, Ms}], set_again(Op, State4))).

%% Former members are forgotten when there are many, and all members have said what they know.
bounded(View, Granted, Stamp) ->
    Members = atoll_group_view:members(View),
    case atoll_group_view:former(View) > max(?MIN_FORMER, length(Members)) andalso Members -- Granted =:= [] of
        true -> atoll_group_view:raise(Stamp, View);
        false -> View
    end.

%% A change is later than all that its author knows of the group; a new group has
%% the stamp of the operation, which is its identity.
stamp_of_change(none, OpStamp, State) -> {OpStamp, State};
stamp_of_change(_View, _OpStamp, State) -> next_stamp(State).

settled(Peer, Op0, State) ->
    case atoll_group_op:settled(Peer, Op0) of
        {true, Op} -> finish(atoll_group_op:result(Op), State, Op);
        {false, Op} -> store_op(Op, State)
    end.

finish(Answer, State, Op) ->
    go_on(effect({reply, atoll_group_op:from(Op), Answer}, ended(State, Op))).

ended(#state{ops = Ops} = State, Op) ->
    Stamp = atoll_group_op:stamp(Op),
    Timers = [{cancel, {Timer, Stamp}} || Timer <- [answers, again, operation, back_off, settle]],
    effects(Timers, State#state{ops = maps:remove(Stamp, Ops)}).

store_op(Op, #state{ops = Ops} = State) ->
    State#state{ops = Ops#{atoll_group_op:stamp(Op) => Op}}.

%% The function may end operations, also others than its own.
for_each_op(Fun, Ops, State) ->
    lists:foldl(
        fun(Stamp, #state{ops = Now} = S) ->
            case Now of
                #{Stamp := Op} -> Fun(Op, S);
                #{} -> S
            end
        end,
        State,
        lists:sort(maps:keys(Ops))
    ).

%% Locks at this node

asked(Stamp, Tag, Purpose, #state{locks = Locks0, options = Options} = State0) ->
    case atoll_group_locks:ask(Stamp, Tag, Purpose, Locks0) of
        {die, Locks} ->
            tell(Stamp, {lock, Stamp, Tag, die}, State0#state{locks = Locks});
        {Lock, Locks} ->
            #{answer_ms := Ms} = Options,
            State = effect({timer, {lease, Stamp}, Ms}, State0#state{locks = Locks}),
            case Lock of
                granted -> grant(Stamp, State);
                waiting -> tell(Stamp, {lock, Stamp, Tag, waiting}, State)
            end
    end.

grant(Stamp, #state{locks = Locks, store = Store} = State) ->
    {Tag, {Kind, {Name, _} = Id}} = atoll_group_locks:find(Stamp, Locks),
    case {Kind, atoll_group_store:own(Name, Store)} of
        {join, Own} when Own =/= none ->
            case atoll_group_view:id(Own) of
                Id -> tell(Stamp, {lock, Stamp, Tag, granted, Own}, State);
                %% It keeps the lock: what made us refuse must still be true
                %% when the others have answered.
                _ -> tell(Stamp, {lock, Stamp, Tag, refused}, State)
            end;
        _ ->
            View = atoll_group_store:find(Id, Store),
            tell(Stamp, {lock, Stamp, Tag, granted, View}, State)
    end.

%% The second element of a stamp is the node that runs the operation.
tell({_, Node, _}, Message, State) ->
    post(Node, Message, State).

end_lock(Stamp, #state{locks = Locks0, readies = Readies} = State0) ->
    {Next, Locks} = atoll_group_locks:release(Stamp, Locks0),
    State1 = State0#state{locks = Locks, readies = maps:remove(Stamp, Readies)},
    State = effect({cancel, {lease, Stamp}}, State1),
    case Next of
        none -> State;
        _ -> grant(Next, State)
    end.

answer_if_ready({Stamp, Id}, #state{readies = Readies} = State) ->
    case is_ready(Id, State) of
        true -> tell(Stamp, {ready, Stamp}, State#state{readies = maps:remove(Stamp, Readies)});
        false -> State
    end.

%% Connected with every member that can be reached, or not a member.
is_ready(Id, #state{store = Store, self = Self, unreachable = Unreachable} = State) ->
    case atoll_group_store:find(Id, Store) of
        none ->
            true;
        View ->
            not atoll_group_view:is_member(Self, View) orelse
                lists:all(
                    fun(N) -> is_up(N, State) orelse maps:is_key(N, Unreachable) end,
                    atoll_group_view:members(View)
                )
    end.

%% Views

learn(View, #state{store = Store0} = State0) ->
    Store = atoll_group_store:learn(View, Store0),
    State1 = tick(atoll_group_view:counter(View), State0#state{store = Store}),
    lists:foldl(fun leave/2, State1, atoll_group_store:rivals(Store)).

leave(View0, #state{self = Self} = State0) ->
    {Stamp, #state{store = Store} = State} = next_stamp(State0),
    View = atoll_group_view:remove([Self], Stamp, View0),
    share(View, [Self], State#state{store = atoll_group_store:learn(View, Store)}).

%% The groups of the configuration that this node is in.
configure(Groups, #state{self = Self} = State) ->
    lists:foldl(
        fun({Name, Nodes}, S) ->
            View = atoll_group_view:configured(Name, Nodes),
            share(View, [Self], learn(View, S))
        end,
        State,
        atoll_group_config:of_node(Self, Groups)
    ).

sync(_Configured, From, #state{syncs = Syncs, options = #{max_operations := Max}} = State) when
    map_size(Syncs) >= Max
->
    effect({reply, From, {error, overloaded}}, State);
sync(Configured, From, #state{options = #{settle_ms := Ms}} = State0) ->
    {Stamp, State1} = next_stamp(configure(Configured, State0)),
    #state{store = Store, syncs = Syncs} = State1,
    Peers = [Peer || Peer <- atoll_group_store:known_nodes(Store), is_up(Peer, State1)],
    State2 = lists:foldl(fun(Peer, S) -> tell_digests(Peer, ask, S) end, seek_again(State1), Peers),
    effects(
        [{act, {configured, Configured}}, {timer, {sync, Stamp}, Ms}],
        State2#state{syncs = Syncs#{Stamp => From}}
    ).

%% Who could not be reached a while ago may be there now.
seek_again(#state{wanted = Wanted, unreachable = Unreachable} = State) ->
    Sought = [Node || Node <- Wanted, is_map_key(Node, Unreachable)],
    effects([{want, Node} || Node <- Sought], State#state{unreachable = maps:without(Sought, Unreachable)}).

answer_syncs(#state{syncs = Syncs} = State) when map_size(Syncs) =:= 0 ->
    State;
answer_syncs(#state{syncs = Syncs, store = Store} = State) ->
    Ids = [atoll_group_view:id(View) || View <- atoll_group_store:own(Store)],
    case lists:all(fun(Id) -> is_ready(Id, State) end, Ids) of
        true -> lists:foldl(fun answer_sync/2, State, lists:sort(maps:keys(Syncs)));
        false -> State
    end.

answer_sync(Stamp, #state{syncs = Syncs0} = State) ->
    {From, Syncs} = maps:take(Stamp, Syncs0),
    effects([{cancel, {sync, Stamp}}, {reply, From, ok}], State#state{syncs = Syncs}).

share(View, Told, State) ->
    share(View, View, Told, State).

%% Also to those who are forgotten by it.
share(Before, View, Told, State) ->
    Peers = [N || N <- atoll_group_view:nodes(Before) -- Told, is_up(N, State)],
    lists:foldl(fun(Peer, S) -> post(Peer, {view, View}, S) end, State, Peers).

tell_digests(Peer, Kind, #state{store = Store} = State) ->
    post(Peer, {digests, Kind, atoll_group_store:digests(Peer, Store)}, State).

compare(Kind, Theirs, Peer, #state{store = Store} = State0) ->
    Missing = atoll_group_store:missing(Theirs, Peer, Store),
    State = lists:foldl(fun(View, S) -> post(Peer, {view, View}, S) end, State0, Missing),
    case Kind =:= ask andalso atoll_group_store:differs(Theirs, Peer, Store) of
        %% A node that has forgotten its groups does not gossip: this is how it
        %% says so, should its first word have been lost.
        true -> tell_digests(Peer, tell, State);
        false -> State
    end.

gossip(#state{rand = Rand0, store = Store} = State0) ->
    State = State0#state{gossiping = false},
    case [Peer || Peer <- atoll_group_store:known_nodes(Store), is_up(Peer, State)] of
        [] ->
            State;
        Peers ->
            {N, Rand} = rand:uniform_s(length(Peers), Rand0),
            tell_digests(lists:nth(N, Peers), ask, State#state{rand = Rand})
    end.

%% After each event: tell the other rooms what has changed.

publish(State0) ->
    State = want(announce_making(announce(keep(State0)))),
    #state{gossiping = Gossiping, options = #{gossip_ms := Ms}, store = Store} = State,
    %% Also one that wants nobody: it may be connected with a node that it removed.
    case not Gossiping andalso atoll_group_store:known_nodes(Store) =/= [] of
        true -> effect({timer, gossip, Ms}, State#state{gossiping = true});
        false -> State
    end.

keep(#state{kept = Store, store = Store} = State) ->
    State;
keep(#state{store = Store} = State) ->
    effect({act, {keep, atoll_group_store:views(Store)}}, State#state{kept = Store}).

announce(#state{published = Old, store = Store} = State) ->
    New = atoll_group_store:published(Store),
    case New of
        Old ->
            State;
        _ ->
            Act = {act, {publish, New}},
            Notices = [{notify, Notice} || Notice <- atoll_group_rules:notices(Old, New)],
            effects([Act | Notices], State#state{published = New})
    end.

%% A free node that makes a group gets connected with nodes that may be free too. Said
%% before these are wanted: it is not as a free node that this one meets them.
announce_making(#state{making = Before, ops = Ops, published = Published} = State) ->
    IsNew = fun(Op) -> element(1, atoll_group_op:operation(Op)) =:= new end,
    case Published =:= [] andalso lists:any(IsNew, maps:values(Ops)) of
        Before -> State;
        Now -> effect({notify, {making, Now}}, State#state{making = Now})
    end.

%% The members of this node's groups, and whom its operations concern.
want(#state{wanted = Old, store = Store, ops = Ops, unreachable = Unreachable} = State) ->
    Concerned = lists:append([atoll_group_op:concerned(Op) || Op <- maps:values(Ops)]),
    New = lists:delete(State#state.self, lists:usort(Concerned ++ atoll_group_store:co_members(Store))),
    case New of
        Old ->
            State;
        _ ->
            Gone = Old -- New,
            Effects = [{want, N} || N <- New -- Old] ++ [{unwant, N} || N <- Gone],
            effects(Effects, State#state{
                wanted = New, unreachable = maps:without(Gone, Unreachable)
            })
    end.

%% Small things

is_up(Node, #state{up = Up, self = Self}) ->
    Node =:= Self orelse maps:is_key(Node, Up).

tick(Counter, #state{clock = Clock} = State) ->
    State#state{clock = max(Counter, Clock)}.

next_stamp(#state{clock = Clock, self = Self, incarnation = Incarnation} = State) ->
    {{Clock + 1, Self, Incarnation}, State#state{clock = Clock + 1}}.

post(Self, Message, #state{self = Self, inbox = Inbox} = State) ->
    State#state{inbox = [Message | Inbox]};
post(Peer, Message, State) ->
    effect({send, Peer, Message}, State).

effect(Effect, #state{effects = Effects} = State) ->
    State#state{effects = [Effect | Effects]}.

effects(Effects, State) ->
    lists:foldl(fun effect/2, State, Effects).
