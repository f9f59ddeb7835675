%% @doc Names in groups: a name stands for one process, on a member node, and every
%% member reads it from its own table. No lock, no leader, no quorum.
%%
%% <b>Who says what.</b> A name belongs to the node of its process, the owner. Only
%% the owner puts it into the world and takes it back; what another member holds of it
%% is what the owner said over the connection that is up now
%% ({@link atoll_name_channel} keeps the order, repeats what is lost, and notices
%% silence). When that connection ends, everybody forgets what the owner said; when it
%% is up, the owner says all of it again.
%%
%% <b>A registration.</b> The owner H puts an entry into its own table and sends it to
%% every live member: every member of the group, as H knows it, that is connected with
%% H. A member where nobody has the name shows the entry to its readers and
%% acknowledges. Where another process has it, the entry waits behind that one
%% ({@link atoll_name_slot}). When all live members have acknowledged, the answer
%% is `yes'. A member that is lost meanwhile does not count; one that comes up is sent
%% the entry and does.
%%
%% <b>Two at once.</b> Two owners that are connected get each other's entries. For each
%% name there is an order of the nodes ({@link atoll_name_rules:outranks/3}): the
%% lower one takes its entry back, everywhere, acknowledges the other, and waits for how
%% that ends. An owner that has answered `yes' gives way to nobody: it refuses.
%% Who stands in the way of another without being connected with it is told
%% so by the member that sees both (`contest'), and gives way by the same order.
%%
%% <b>Why two never both get `yes'</b> for one name, when H1 and H2 are members for
%% each other and connected the whole time: each needs the other's acknowledgement.
%% H2 acknowledges only while H1's entry is in front in its table, and so its own is
%% not. H1's entry leaves the front only when H1 takes it back (then it has not
%% answered `yes', or holds the name no more: an attempt has a number of its own, and
%% an acknowledgement of an earlier one counts nothing) or when one is no longer
%% connected with or a member for the other. So H2's entry got to the front before, and
%% H1 has acknowledged it before; and the same is true with H1 and H2 changed. Only one
%% of two can be first.
%%
%% <b>Why after `yes' each live member has it:</b> it acknowledged after it had shown the
%% entry, and an entry in front stays there until its owner, its connection or its
%% membership goes. What H calls live is what H has heard of connections.
%%
%% <b>Re-registering</b> is without a gap. The new owner tells the holder's owner to give
%% the name up, which hands it to that one node; from then on the new entry is firm: it gives
%% way to nobody but a holder, and takes the old one's place in each table at once. So nobody
%% can register the name in between, also if the holder's `del' comes late.
%%
%% <b>How long.</b> A member that acknowledges nothing at all for `answer_ms' is
%% disconnected, and so is no live member any more: that long can it hold up a `yes', once,
%% and twice as long one for a name that a silent owner has (whoever asks finds out first,
%% then the members). A call is answered within `operation_ms', or, for a process on another node,
%% within `operation_ms' and `answer_ms'; what was not done by then is taken back.
%%
%% <b>Partitions.</b> Each part registers as it likes. When two owners that have answered
%% `yes' for one name meet, the higher of them in the order of that name decides by
%% the group's rule, alone; the loser's owner takes its entry back, and tells or kills the
%% process, once, because an entry can be taken back once. Until then each
%% reader keeps what it had first.
%%
%% <b>The free nodes.</b> While this node is in no group it is in one called `undefined',
%% whose members are itself and its fellows: the connected nodes that have said that they are
%% free too ({@link atoll_name_free} finds them, and has them connected all with
%% all). Each says so first in its stream, before any entry, and at each change before what
%% follows from it: who holds an entry of the other has heard that the other is a member. So
%% all that is said above of groups is true of this one, with members that come and go at once
%% with their connections. Where two parts of it meet, clashes are resolved as after a
%% partition. Who joins a group loses these names at once, and so do the others his. A free
%% node that makes a group meets nobody as a free node meanwhile.
%%
%% <b>Who does not speak.</b> A connected node that is in no group with this one is let be
%% if it acknowledges nothing: it may be a shell, or a node on which the application does not
%% run. While it has never said anything it is as one that is not connected, until it does,
%% or is in a group; from time to time it is spoken to again.
%%
%% <b>A restart of this process</b> on a member, with the connections staying up, is as the
%% loss of all its connections: its table is empty until it has been told again, and a
%% `yes' given before the others have heard of the restart does not hold for it. The names of
%% its own processes are not lost.
%%
%% <b>Not promised.</b> Between the death of a process (or a change of holder) and the news
%% of it a reader finds the old pid, or none. A `no' may be given for a name whose holder
%% is just going. `{no, connection_lost}' for a process on another node leaves
%% open whether it has the name. A rule that is a function must make an order:
%% if A beats B, B beats C and C beats A, none of the three may be left.
%%
%% This module is long because it is one state: each event ends in settle/3, which
%% makes true what has to be true of a name, and moves whoever waits for it.
-module(atoll_name_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3, remote_group/1]).

-export_type([config/0, options/0, state/0, message/0, request/0, answer/0, reason/0, counters/0]).

-type config() :: #{
    self := node(),
    %% When this process started, in microseconds: makes its numbers unique, of which it
    %% uses fewer than one in each.
    incarnation := non_neg_integer(),
    options := options()
}.

-type options() :: #{
    %% How long a silent member is waited for, how long an operation may take.
    answer_ms := pos_integer(),
    operation_ms := pos_integer(),
    %% How often what is owed is looked at; when a batch is said again.
    tick_ms := pos_integer(),
    resend_ms := pos_integer(),
    %% Items in one message, messages not acknowledged, and items that wait for one
    %% peer before it is taken for silent.
    batch := pos_integer(),
    window := pos_integer(),
    max_backlog := pos_integer(),
    %% Operations under way at this node, names in one group, and the size in bytes of
    %% a name with its metadata.
    max_operations := pos_integer(),
    max_names := pos_integer(),
    max_bytes := pos_integer(),
    %% Whether this node shares its names while it is free; how long other free nodes are
    %% sought, how many at once, and how often they are told of.
    free := atoll_name_free:kind(),
    seek_ms := pos_integer(),
    max_sought := pos_integer(),
    remind_ms := pos_integer(),
    %% Whom a clash leaves the name: for each group, and where nothing is said.
    rules := #{Group :: atom() => atoll_name_rules:rule()},
    rule := atoll_name_rules:rule()
}.

-type id() :: atoll_group_view:id().
-type name() :: term().
-type ref() :: pos_integer().
%% An entry that is sent to a member a second time has another one, for the answer to
%% the first may be on its way still.
-type tag() :: pos_integer().
-type kind() :: register | re_register | unregister.

-type request() ::
    {register | re_register, Group :: atom(), name(), pid(), Meta :: term()}
    | {unregister, Group :: atom(), name()}
    %% With whom this node shares the names of the group `undefined'; itself included.
    | free_nodes
    | info.

-type reason() ::
    cannot_register_in_remote_group
    | cannot_re_register_in_remote_group
    | cannot_unregister_from_remote_group
    | name_or_pid_already_registered
    | pid_is_already_registered
    %% The process is not on a member that is connected; is dead.
    | pid_is_not_on_a_member
    | no_process
    | timeout
    | connection_lost
    %% Bounds.
    | overloaded
    | too_many_names
    | name_too_large.

-type answer() :: yes | ok | {no, reason()}.

-type counters() :: #{atom() => non_neg_integer()}.

-type message() :: atoll_name_channel:wire().

-type item() ::
    %% The first thing of each stream, and said again at each change: whether the sender
    %% shares the namespace of the free nodes. And with whom.
    {hello, boolean()}
    | {know, [node()]}
    %% The owner's entry: to be acknowledged; the same, firm, or in place of that one,
    %% which was given up for it; held for certain.
    | {put | firm | {over, node(), ref()}, id(), name(), ref(), pid(), Meta :: term(), tag()}
    | {have, id(), name(), ref(), pid(), Meta :: term()}
    | {ack, ref(), tag()}
    | {taken, id(), name(), ref()}
    %% The owner's entry is gone; an operation wants to know that it was heard.
    | {del, id(), name(), ref(), none | ref()}
    %% The same, to the one node that told it to give the name up.
    | {handed, id(), name(), ref()}
    | {gone, ref()}
    %% All entries of the sender in that group are gone.
    | {forget, id()}
    %% To the owner: this entry stands in the way of these nodes'. And its answer, when
    %% it holds the name for certain.
    | {contest, id(), name(), ref(), [node()]}
    | {kept, id(), name(), ref()}
    %% To the owner: give it up, because it is re-registered / has lost.
    | {drop, id(), name(), ref()}
    | {lose, id(), name(), ref(), Winner :: none | pid(), exit | notify}
    %% To do for a caller of the sender's; the answer; it is not wanted any more.
    | {ask, ref(), kind(), id(), name(), none | pid(), Meta :: term()}
    | {answer, ref(), answer()}
    | {cancel, ref()}.

-record(op, {
    ref :: ref(),
    kind :: kind(),
    id :: id(),
    name :: name(),
    pid :: none | pid(),
    meta :: term(),
    from :: {local, atoll_protocol:from()} | {remote, node(), ref()},
    %% waiting: for the name; putting: its entry is in front; resting: it gave way;
    %% dropping: all are to hear that the name is gone.
    phase = waiting :: waiting | putting | resting | dropping,
    %% The number of the entry, once there is one.
    entry = none :: none | ref(),
    %% Who has not answered yet, and what the answer has to be.
    await = #{} :: #{node() => tag()},
    %% Members that want to hear how it ends.
    contested = [] :: [node()],
    rests = 0 :: non_neg_integer()
}).

-record(state, {
    self :: node(),
    incarnation :: non_neg_integer(),
    options :: options(),
    now :: atoll_protocol:now_ms(),
    %% Numbers of sessions, entries and operations.
    last :: non_neg_integer(),
    free :: atoll_name_free:free(),
    %% What the group room said last; nothing yet.
    published = none :: none | [atoll_group_rules:published()],
    %% This node's groups, that of the free nodes among them, by identity and by name.
    groups = #{} :: #{id() => #{node() => []}},
    names = #{} :: #{atom() => id()},
    channels = #{} :: #{node() => atoll_name_channel:channel()},
    %% Connected, in no group of this node's, and have never said anything.
    mute = #{} :: #{node() => []},
    %% While this free node makes a group: who came up meanwhile, and whether they have
    %% said that they are free.
    strangers = none :: none | #{node() => boolean()},
    %% Peers that something is to be sent to, when the mailbox is empty.
    dirty = #{} :: #{node() => []},
    %% When the next look at what is owed is due.
    ticking = false :: false | atoll_protocol:now_ms(),
    %% Peers that are being disconnected.
    condemned = #{} :: #{node() => []},
    table = #{} :: #{id() => #{name() => atoll_name_slot:slot()}},
    %% The names that are this node's, held or put.
    own = #{} :: #{id() => #{name() => []}},
    %% What each process has in each group: a name, or an operation under way.
    pids = #{} :: #{pid() => #{id() => {name, name()} | {op, ref()}}},
    ops = #{} :: #{ref() => #op{}},
    %% Entries that are put, with their operations; who waits for a name.
    puts = #{} :: #{ref() => ref()},
    waiting = #{} :: #{{id(), name()} => [ref()]},
    %% Calls that another node does for us.
    asks = #{} :: #{ref() => {node(), id(), kind(), atoll_protocol:from()}},
    counters = #{} :: counters(),
    %% Of this event so far, newest first.
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque state() :: #state{}.

%% After how many times `answer_ms' a mute node is spoken to again.
-define(MUTE, 20).
%% How long an operation rests after it gave way to a node it is not connected with.
-define(REST_MIN_MS, 10).
-define(REST_MAX_MS, 200).

%% @doc A node that knows of no group and no name.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, options := Options}, Now) ->
    %% What was meant for this process's earlier life has other numbers.
    State = #state{
        self = Self, incarnation = Incarnation, last = Incarnation, options = Options, now = Now,
        free = atoll_name_free:new(maps:get(free, Options), Options)
    },
    {State, []}.

%% @doc Takes one event. Casts are `{groups, Groups}' (what the group room publishes),
%% `{recover, Rows}' (names of processes here from this process's earlier life, told after
%% the groups and before any connection), `{making, boolean()}' (whether this node, being
%% free, makes a group), `{died, Pid}' and `{decided, Key, Winner}' (what a rule's function said).
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle(Event, Now, State0) ->
    #state{effects = Newest} = State = tick_on(event(Event, State0#state{now = Now})),
    %% A caller must find the table as its answer says: replies come last.
    {Replies, Others} = lists:partition(fun is_reply/1, lists:reverse(Newest)),
    {State#state{effects = []}, Others ++ Replies}.

is_reply({reply, _, _}) -> true;
is_reply(_) -> false.

event({call, From, free_nodes}, #state{groups = Groups} = State) ->
    effect({reply, From, lists:sort(maps:keys(maps:get(atoll_name_free:id(), Groups, #{})))}, State);
event({call, From, info}, State) ->
    effect({reply, From, info(State)}, State);
event({call, From, Request}, State) ->
    call(Request, From, State);
event({message, Peer, Wire}, State) ->
    wire(Wire, Peer, State);
event({up, Peer}, #state{channels = Channels} = State) when is_map_key(Peer, Channels) ->
    State;
event({up, Peer}, State) ->
    up(Peer, State);
event({down, Peer, _Reason}, State) ->
    down(Peer, mute_no_more(Peer, State));
event({cast, {groups, Groups}}, State) ->
    groups(Groups, State);
event({cast, {making, true}}, #state{strangers = none} = State) ->
    State#state{strangers = #{}};
event({cast, {making, false}}, #state{strangers = #{}} = State) ->
    meet_strangers(State);
event({cast, {making, _Same}}, State) ->
    State;
event({cast, {recover, Rows}}, State) ->
    lists:foldl(fun recover/2, State, Rows);
event({cast, {died, Pid}}, State) ->
    died(Pid, State);
event({cast, {decided, Key, Winner}}, State) ->
    decided(Key, Winner, State);
event({timeout, flush}, #state{dirty = Dirty} = State) ->
    lists:foldl(fun flush/2, State#state{dirty = #{}}, lists:sort(maps:keys(Dirty)));
event({timeout, {mute, Peer}}, State) ->
    up(Peer, State);
event({timeout, {seek, Node}}, State) ->
    free(fun(Free) -> atoll_name_free:give_up(Node, Free) end, State);
event({timeout, remind}, State) ->
    free(fun atoll_name_free:remind/1, State);
event({timeout, tick}, State) ->
    tick(State);
event({timeout, {op, Ref}}, #state{ops = Ops} = State) ->
    #{Ref := Op} = Ops,
    case Op of
        %% The name is gone here, and from all that could be reached.
        #op{phase = dropping} -> finish(ok, Op, State);
        _ -> give_up({no, timeout}, Op, State)
    end;
event({timeout, {rest, Ref}}, #state{ops = Ops} = State) ->
    #{Ref := #op{id = Id, name = Name} = Op} = Ops,
    settle(Id, Name, wait(Op, State));
event({timeout, {ask, Ref}}, #state{asks = Asks} = State) ->
    #{Ref := {Node, _, _, _}} = Asks,
    answered(Ref, {no, timeout}, push(Node, {cancel, Ref}, State)).

%% Calls

call({unregister, Group, Name}, From, State) ->
    call(unregister, Group, Name, none, none, From, State);
call({Kind, Group, Name, Pid, Meta}, From, State) ->
    call(Kind, Group, Name, Pid, Meta, From, State).

call(Kind, Group, Name, Pid, Meta, From, #state{names = Names} = State) ->
    case Names of
        #{Group := Id} ->
            case owner(Kind, Id, Name, Pid, State) of
                none -> effect({reply, From, ok}, State);
                Owner -> route(Owner, Kind, Id, Name, Pid, Meta, From, State)
            end;
        #{} ->
            effect({reply, From, {no, remote_group(Kind)}}, State)
    end.

%% @doc Why not, at a node that is not in the group.
-spec remote_group(register) -> cannot_register_in_remote_group;
    (re_register) -> cannot_re_register_in_remote_group;
    (unregister) -> cannot_unregister_from_remote_group.
remote_group(register) -> cannot_register_in_remote_group;
remote_group(re_register) -> cannot_re_register_in_remote_group;
remote_group(unregister) -> cannot_unregister_from_remote_group.

%% Whose affair it is.
owner(unregister, Id, Name, none, State) ->
    case atoll_name_slot:front(slot(Id, Name, State)) of
        none -> none;
        #{owner := Owner} -> Owner
    end;
owner(_Kind, _Id, _Name, Pid, _State) ->
    node(Pid).

route(Self, Kind, Id, Name, Pid, Meta, From, #state{self = Self} = State) ->
    start(Kind, Id, Name, Pid, Meta, {local, From}, State);
route(Owner, Kind, Id, Name, Pid, Meta, From, #state{options = Options} = State0) ->
    case {is_live(Id, Owner, State0), has_room(State0)} of
        {false, _} ->
            effect({reply, From, {no, pid_is_not_on_a_member}}, State0);
        {true, false} ->
            effect({reply, From, {no, overloaded}}, count(refused_overloaded, State0));
        {true, true} ->
            #{operation_ms := OperationMs, answer_ms := AnswerMs} = Options,
            {Ref, #state{asks = Asks} = State} = number(State0),
            Asked = State#state{asks = Asks#{Ref => {Owner, Id, Kind, From}}},
            Timer = {timer, {ask, Ref}, OperationMs + AnswerMs},
            push(Owner, {ask, Ref, Kind, Id, Name, Pid, Meta}, effect(Timer, Asked))
    end.

answered(Ref, Answer, #state{asks = Asks0} = State) ->
    case maps:take(Ref, Asks0) of
        {{_, _, _, From}, Asks} ->
            effects([{cancel, {ask, Ref}}, {reply, From, Answer}], State#state{asks = Asks});
        error ->
            State
    end.

has_room(#state{ops = Ops, asks = Asks, options = #{max_operations := Max}}) ->
    map_size(Ops) + map_size(Asks) < Max.

%% Operations at the owner

start(Kind, Id, Name, Pid, Meta, From, State) ->
    case refusal(Kind, Id, Name, Pid, Meta, State) of
        none -> begin_op(Kind, Id, Name, Pid, Meta, From, State);
        {Counter, Reason} -> answer(From, {no, Reason}, count(Counter, State));
        Reason -> answer(From, {no, Reason}, State)
    end.

refusal(unregister, _Id, _Name, none, _Meta, State) ->
    case has_room(State) of
        true -> none;
        false -> {refused_overloaded, overloaded}
    end;
refusal(Kind, Id, Name, Pid, Meta, #state{pids = Pids, table = Table, options = Options} = State) ->
    #{max_names := MaxNames, max_bytes := MaxBytes} = Options,
    IsTaken = is_map_key(Id, maps:get(Pid, Pids, #{})),
    Known = maps:get(Id, Table, #{}),
    IsFull = map_size(Known) >= MaxNames andalso not is_map_key(Name, Known),
    IsLarge = erlang:external_size({Name, Meta}) > MaxBytes,
    HasRoom = has_room(State),
    if
        IsTaken -> pid_taken(Kind);
        IsLarge -> {refused_size, name_too_large};
        IsFull -> {refused_names, too_many_names};
        not HasRoom -> {refused_overloaded, overloaded};
        true -> none
    end.

pid_taken(register) -> name_or_pid_already_registered;
pid_taken(re_register) -> pid_is_already_registered.

begin_op(Kind, Id, Name, Pid, Meta, From, #state{options = #{operation_ms := Ms}} = State0) ->
    {Ref, State} = number(State0),
    Op = #op{ref = Ref, kind = Kind, id = Id, name = Name, pid = Pid, meta = Meta, from = From},
    Timed = effect({timer, {op, Ref}, Ms}, reserve(Op, State)),
    settle(Id, Name, wait(Op, Timed)).

%% A process has one name in a group.
reserve(#op{kind = unregister}, State) ->
    State;
reserve(#op{pid = Pid, id = Id, ref = Ref}, State) ->
    has(Pid, Id, {op, Ref}, State).

has(Pid, Id, What, #state{pids = Pids} = State) ->
    case Pids of
        #{Pid := Has} ->
            State#state{pids = Pids#{Pid := Has#{Id => What}}};
        #{} ->
            effect({act, {monitor, Pid}}, State#state{pids = Pids#{Pid => #{Id => What}}})
    end.

has_not(Pid, Id, #state{pids = Pids} = State) ->
    case Pids of
        #{Pid := Has0} ->
            case maps:remove(Id, Has0) of
                Has when map_size(Has) =:= 0 ->
                    effect({act, {demonitor, Pid}}, State#state{pids = maps:remove(Pid, Pids)});
                Has ->
                    State#state{pids = Pids#{Pid := Has}}
            end;
        #{} ->
            State
    end.

%% It waits for the name; settle/3 moves it.
wait(#op{id = Id, name = Name, ref = Ref} = Op, #state{waiting = Waiting} = State) ->
    Refs = maps:get({Id, Name}, Waiting, []),
    store(Op#op{phase = waiting}, State#state{waiting = Waiting#{{Id, Name} => Refs ++ [Ref]}}).

wait_no_more(#op{id = Id, name = Name, ref = Ref}, #state{waiting = Waiting} = State) ->
    case Waiting of
        #{{Id, Name} := [Ref]} -> State#state{waiting = maps:remove({Id, Name}, Waiting)};
        #{{Id, Name} := Refs} -> State#state{waiting = Waiting#{{Id, Name} := lists:delete(Ref, Refs)}};
        #{} -> State
    end.

%% What it can do now, with this entry in front.
move(#op{id = Id, from = From} = Op, Front, #state{self = Self, groups = Groups} = State) ->
    case {is_map_key(Id, Groups), From} of
        {true, _} -> move(Op#op.kind, Front, Self, Op, State);
        {false, {local, _}} -> finish({no, remote_group(Op#op.kind)}, Op, State);
        %% The caller's node knows of the group already.
        {false, {remote, _, _}} -> State
    end.

move(unregister, none, _Self, Op, State) ->
    finish(ok, Op, State);
move(_Kind, none, _Self, Op, State) ->
    put_entry(put, Op, State);
move(_Kind, #{owner := Self, committed := false}, Self, _Op, State) ->
    State;
move(unregister, #{owner := Self}, Self, Op, State) ->
    drop_and_hear(Op, State);
move(unregister, _Front, _Self, #op{from = {remote, _, _}} = Op, State) ->
    %% It was here, and is no more.
    finish(ok, Op, State);
move(unregister, #{owner := Owner}, _Self, #op{from = {local, From}} = Op, State) ->
    #op{id = Id, name = Name} = Op,
    route(Owner, unregister, Id, Name, none, none, From, forget_op(Op, State));
move(register, #{committed := true}, _Self, Op, State) ->
    finish({no, name_or_pid_already_registered}, Op, State);
move(re_register, #{owner := Self, pid := Pid}, Self, #op{id = Id} = Op, State) ->
    %% In the same place: nobody else can come between.
    put_entry(firm, Op, count(replaced, has_not(Pid, Id, State)));
move(re_register, #{committed := true, ordered := false} = Front, _Self, Op, State) ->
    #op{id = Id, name = Name} = Op,
    #{owner := Owner, ref := Ref} = Front,
    Told = set_slot(Id, Name, atoll_name_slot:update(Front#{ordered := true}, slot(Id, Name, State)), State),
    push(Owner, {drop, Id, Name, Ref}, Told);
move(_Kind, _Front, _Self, _Op, State) ->
    State.

put_entry(How, #op{id = Id, name = Name, pid = Pid, meta = Meta, ref = Ref} = Op0, State0) ->
    {Number, State1} = number(wait_no_more(Op0, State0)),
    Kind =
        case How of
            put -> put;
            _ -> firm
        end,
    Entry = atoll_name_slot:entry(Kind, State1#state.self, Number, Pid, Meta),
    State2 = set_slot(Id, Name, atoll_name_slot:to_front(Entry, slot(Id, Name, State1)), State1),
    Live = live(Id, State2),
    Op = Op0#op{
        phase = putting, entry = Number, await = maps:from_keys(Live, Number), contested = []
    },
    #state{puts = Puts} = State3 = owns(Id, Name, store(Op, State2)),
    State4 = push_all(Live, {How, Id, Name, Number, Pid, Meta, Number}, State3#state{puts = Puts#{Number => Ref}}),
    progress(Ref, settle(Id, Name, State4)).

%% Has it all it needs?
progress(Ref, #state{ops = Ops} = State) ->
    case Ops of
        #{Ref := #op{phase = putting, await = Await} = Op} when map_size(Await) =:= 0 ->
            commit(Op, State);
        #{Ref := #op{phase = dropping, await = Await} = Op} when map_size(Await) =:= 0 ->
            finish(ok, Op, State);
        #{} ->
            State
    end.

commit(#op{id = Id, name = Name, entry = Number, pid = Pid, contested = Peers} = Op, State0) ->
    Slot = slot(Id, Name, State0),
    Entry = atoll_name_slot:front(Slot),
    State1 = set_slot(Id, Name, atoll_name_slot:update(Entry#{committed := true}, Slot), State0),
    State2 = push_all([P || P <- Peers, is_up(P, State1)], {kept, Id, Name, Number}, State1),
    Told = effect({notify, {registered, element(1, Id), Name, Pid}}, count(registered, State2)),
    State3 = finish(yes, Op, Told),
    settle(Id, Name, has(Pid, Id, {name, Name}, State3)).

%% Its entry is taken back everywhere; the operation is as before it was put.
withdraw(#op{id = Id, name = Name, entry = Number} = Op, #state{self = Self, puts = Puts} = State0) ->
    Slot = atoll_name_slot:remove(Self, slot(Id, Name, State0)),
    State1 = owns_not(Id, Name, set_slot(Id, Name, Slot, State0)),
    State2 = push_all(live(Id, State1), {del, Id, Name, Number, none}, State1),
    store(Op#op{entry = none, await = #{}, phase = resting}, State2#state{puts = maps:remove(Number, Puts)}).

give_up(Answer, #op{phase = putting, id = Id, name = Name, ref = Ref} = Op, State0) ->
    #state{ops = #{Ref := Without}} = State = withdraw(Op, State0),
    settle(Id, Name, finish(Answer, Without, State));
give_up(Answer, #op{phase = dropping} = Op, State) ->
    finish(Answer, Op, State);
give_up(Answer, #op{id = Id, name = Name} = Op, State) ->
    settle(Id, Name, finish(Answer, Op, State)).

%% It gives way to a node that this one is not connected with, and tries again.
rest(#op{ref = Ref, id = Id, name = Name, rests = Rests} = Op, State0) ->
    #state{ops = #{Ref := Without} = Ops} = State = withdraw(Op, State0),
    Resting = Without#op{rests = Rests + 1},
    Ms = min(?REST_MAX_MS, ?REST_MIN_MS bsl min(Rests, 10)),
    settle(Id, Name, effect({timer, {rest, Ref}, Ms}, State#state{ops = Ops#{Ref := Resting}})).

finish(Answer, #op{from = From, pid = Pid, id = Id, kind = Kind} = Op, State0) ->
    State = answer(From, Answer, forget_op(Op, State0)),
    case Kind of
        unregister -> State;
        _ when Answer =:= yes -> State;
        _ -> has_not(Pid, Id, State)
    end.

forget_op(#op{ref = Ref, entry = Number, phase = Phase} = Op, State0) ->
    #state{ops = Ops, puts = Puts} = State = wait_no_more(Op, State0),
    Rest = [{cancel, {rest, Ref}} || Phase =:= resting],
    effects([{cancel, {op, Ref}} | Rest], State#state{
        ops = maps:remove(Ref, Ops), puts = maps:remove(Number, Puts)
    }).

answer({local, From}, Answer, State) -> effect({reply, From, Answer}, State);
answer({remote, Node, Ref}, Answer, State) -> push(Node, {answer, Ref, Answer}, State).

store(#op{ref = Ref} = Op, #state{ops = Ops} = State) ->
    State#state{ops = Ops#{Ref => Op}}.

%% This node's process loses its name.
drop(Id, Name, State) ->
    drop(Id, Name, live(Id, State), none, State).

drop(Id, Name, Peers, OpRef, #state{self = Self} = State0) ->
    Slot = slot(Id, Name, State0),
    #{ref := Number, pid := Pid, committed := true} = atoll_name_slot:find(Self, Slot),
    State1 = set_slot(Id, Name, atoll_name_slot:remove(Self, Slot), owns_not(Id, Name, State0)),
    State2 = push_all(Peers, {del, Id, Name, Number, OpRef}, has_not(Pid, Id, State1)),
    settle(Id, Name, State2).

drop_and_hear(#op{id = Id, name = Name, ref = Ref} = Op, State0) ->
    State = wait_no_more(Op, State0),
    Live = live(Id, State),
    Dropping = Op#op{phase = dropping, await = maps:from_keys(Live, Ref)},
    progress(Ref, drop(Id, Name, Live, Ref, store(Dropping, State))).

owns(Id, Name, #state{own = Own} = State) ->
    State#state{own = Own#{Id => (maps:get(Id, Own, #{}))#{Name => []}}}.

owns_not(Id, Name, #state{own = Own} = State) ->
    #{Id := Names0} = Own,
    case maps:remove(Name, Names0) of
        Names when map_size(Names) =:= 0 -> State#state{own = maps:remove(Id, Own)};
        Names -> State#state{own = Own#{Id := Names}}
    end.

died(Pid, #state{pids = Pids} = State) ->
    Has = maps:get(Pid, Pids, #{}),
    lists:foldl(
        fun
            ({Id, {name, Name}}, S) ->
                drop(Id, Name, S);
            ({_Id, {op, Ref}}, #state{ops = Ops} = S) ->
                #{Ref := Op} = Ops,
                give_up({no, no_process}, Op, S)
        end,
        State,
        lists:sort(maps:to_list(Has))
    ).

%% As after a partition: it holds what it held, and a clash is resolved when it meets.
recover({Group, Name, Pid, Meta}, #state{names = Names, self = Self} = State0) ->
    case Names of
        #{Group := Id} ->
            {Number, State1} = number(has(Pid, Id, {name, Name}, State0)),
            Entry = atoll_name_slot:entry(held, Self, Number, Pid, Meta),
            Slot = atoll_name_slot:to_front(Entry, slot(Id, Name, State1)),
            settle(Id, Name, owns(Id, Name, set_slot(Id, Name, Slot, State1)));
        #{} ->
            State0
    end.

%% What has to be true of a name

settle(Id, Name, #state{self = Self} = State0) ->
    Slot0 = slot(Id, Name, State0),
    MayBe = fun(Owner) -> is_member(Id, Owner, State0) end,
    Slot = atoll_name_slot:settle(MayBe, Slot0),
    Behind = [Entry || #{owner := Owner} = Entry <- atoll_name_slot:rest(Slot), MayBe(Owner)],
    State = show(Id, Name, Slot, State0),
    case atoll_name_slot:front(Slot) of
        none ->
            move_waiting(Id, Name, State);
        #{owner := Self, committed := false} = Front ->
            case [E || E <- Behind, gives_way(Front, E, Name)] of
                [] -> move_waiting(Id, Name, State);
                _ -> yield(Front, State)
            end;
        #{committed := true} = Front ->
            Refused = lists:foldl(fun(E, S) -> refuse(Id, Name, E, S) end, State, Behind),
            move_waiting(Id, Name, clash(Id, Name, Front, Behind, Refused));
        Front ->
            contest(Id, Name, [O || #{owner := O} <- Behind], move_waiting(Id, Name, acknowledge(Id, Name, Front, State)))
    end.

show(Id, Name, Slot, State) ->
    Group = element(1, Id),
    case atoll_name_slot:shown(Slot) of
        same ->
            set_slot(Id, Name, Slot, State);
        none ->
            Act = {act, {delete, Group, Name}},
            effect(Act, set_slot(Id, Name, atoll_name_slot:show(Slot), State));
        {Pid, Meta} ->
            Act = {act, {insert, Group, Name, Pid, Meta}},
            effect(Act, set_slot(Id, Name, atoll_name_slot:show(Slot), State))
    end.

%% What holds the name goes first, then what was given it by the last holder.
gives_way(_Mine, #{committed := true}, _Name) -> true;
gives_way(#{firm := true}, #{firm := false}, _Name) -> false;
gives_way(#{firm := false}, #{firm := true}, _Name) -> true;
gives_way(#{owner := Self}, #{owner := Owner}, Name) -> atoll_name_rules:outranks(Owner, Self, Name).

yield(#{ref := Number}, #state{puts = Puts, ops = Ops} = State0) ->
    #{Number := Ref} = Puts,
    #{Ref := #op{id = Id, name = Name} = Op} = Ops,
    #state{ops = #{Ref := Without}} = State = withdraw(Op, count(yielded, State0)),
    settle(Id, Name, wait(Without, State)).

refuse(Id, Name, #{owner := Owner, ref := Ref, committed := false, firm := false}, State0) ->
    Slot = atoll_name_slot:remove(Owner, slot(Id, Name, State0)),
    push(Owner, {taken, Id, Name, Ref}, set_slot(Id, Name, Slot, State0));
refuse(_Id, _Name, _HeldOrGiven, State) ->
    %% What was given the name waits: the last holder's word is on its way.
    State.

acknowledge(_Id, _Name, #{ack := none}, State) ->
    State;
acknowledge(Id, Name, #{owner := Owner, ref := Ref, ack := Tag} = Front, State) ->
    Slot = atoll_name_slot:update(Front#{ack := none}, slot(Id, Name, State)),
    push(Owner, {ack, Ref, Tag}, set_slot(Id, Name, Slot, State)).

%% Whoever waits for the name hears how the other's operation ends.
contest(Id, Name, Others, #state{self = Self, waiting = Waiting} = State) ->
    Slot = slot(Id, Name, State),
    case atoll_name_slot:front(Slot) of
        #{owner := Owner, committed := false, ref := Ref, contested := Told} = Front when Owner =/= Self ->
            Us = [Self || is_map_key({Id, Name}, Waiting)],
            case (Us ++ Others) -- Told of
                [] ->
                    State;
                New ->
                    Contested = Front#{contested := Told ++ New},
                    Set = set_slot(Id, Name, atoll_name_slot:update(Contested, Slot), State),
                    push(Owner, {contest, Id, Name, Ref, New}, Set)
            end;
        _ ->
            State
    end.

move_waiting(Id, Name, #state{waiting = Waiting} = State) ->
    lists:foldl(
        fun(Ref, #state{waiting = Now} = S) ->
            case lists:member(Ref, maps:get({Id, Name}, Now, [])) of
                true -> move(maps:get(Ref, S#state.ops), atoll_name_slot:front(slot(Id, Name, S)), S);
                false -> S
            end
        end,
        State,
        maps:get({Id, Name}, Waiting, [])
    ).

%% Two hold the name for certain: the higher of the two owners decides.

clash(Id, Name, #{owner := Self} = Own, Behind, #state{self = Self} = State) ->
    Ours = [
        E
     || #{owner := Owner, committed := true, judged := false} = E <- Behind,
        atoll_name_rules:outranks(Self, Owner, Name)
    ],
    case Ours of
        [] -> State;
        [Rival | _] -> judge(Id, Name, Own, Rival, count(clashes, State))
    end;
clash(_Id, _Name, _Front, _Behind, State) ->
    State.

judge(Id, Name, Own, Rival, #state{options = #{rules := Rules, rule := Default}} = State0) ->
    Slot = atoll_name_slot:update(Rival#{judged := true}, slot(Id, Name, State0)),
    State = set_slot(Id, Name, Slot, State0),
    case atoll_name_rules:judge(maps:get(element(1, Id), Rules, Default), Own, Rival) of
        {ask, Module, Function} ->
            #{ref := Ref1, pid := Pid1, meta := Meta1} = Own,
            #{owner := Owner, ref := Ref2, pid := Pid2, meta := Meta2} = Rival,
            Key = {Id, Name, Ref1, Owner, Ref2},
            effect({act, {decide, Key, {Module, Function}, Name, {Pid1, Meta1}, {Pid2, Meta2}}}, State);
        {Winner, How} ->
            %% The next clash, if there is one, is looked at then.
            settle(Id, Name, verdict(Winner, How, Id, Name, Own, Rival, State))
    end.

decided({Id, Name, Ref1, Owner, Ref2}, Pid, #state{self = Self} = State) ->
    Slot = slot(Id, Name, State),
    case {atoll_name_slot:find(Self, Slot), atoll_name_slot:find(Owner, Slot)} of
        {#{ref := Ref1, pid := Pid1} = Own, #{ref := Ref2, pid := Pid2} = Rival} ->
            Winner =
                case Pid of
                    Pid1 -> first;
                    Pid2 -> second;
                    _ -> none
                end,
            settle(Id, Name, verdict(Winner, notify, Id, Name, Own, Rival, State));
        _ ->
            %% One of the two went meanwhile.
            settle(Id, Name, State)
    end.

verdict(Winner, How, Id, Name, #{pid := Pid1}, #{pid := Pid2} = Rival, State) ->
    #{owner := Owner, ref := Ref} = Rival,
    case Winner of
        first ->
            push(Owner, {lose, Id, Name, Ref, Pid1, How}, State);
        second ->
            lose(Id, Name, Pid2, How, State);
        none ->
            lose(Id, Name, none, How, push(Owner, {lose, Id, Name, Ref, none, How}, State))
    end.

lose(Id, Name, Winner, How, #state{self = Self} = State) ->
    #{pid := Pid} = atoll_name_slot:find(Self, slot(Id, Name, State)),
    Message = {name_conflict, element(1, Id), Name, Winner},
    Deed =
        case How of
            notify -> {tell, Pid, Message};
            exit -> {kill, Pid, Message}
        end,
    effect({act, Deed}, drop(Id, Name, count(lost, State))).

%% What peers say

wire(Wire, Peer, #state{channels = Channels, now = Now} = State0) ->
    case Channels of
        #{Peer := Channel0} ->
            {Session, State} = session(State0),
            {What, Items, Channel} = atoll_name_channel:take(Wire, {Session, Now}, Channel0),
            Started = dirty(Peer, began(What, Peer, Channel, State)),
            lists:foldl(fun(Item, S) -> item(Item, Peer, S) end, Started, Items);
        #{} when is_map_key(Peer, State0#state.mute) ->
            wire(Wire, Peer, up(Peer, State0));
        #{} ->
            State0
    end.

began(same, Peer, Channel, #state{channels = Channels} = State) ->
    State#state{channels = Channels#{Peer := Channel}};
began(reset, Peer, Channel, #state{channels = Channels} = State) ->
    forsaken(Peer, forget_all(Peer, State#state{channels = Channels#{Peer := Channel}}));
began(restart, Peer, Channel, State) ->
    %% All is said again before what it said is forgotten: an operation that
    %% waits for this peer must go on doing so, its readers have nothing yet.
    abandoned(Peer, met(Peer, Channel, State), dropping).

-spec item(item(), node(), #state{}) -> #state{}.
item({hello, Shares}, Peer, #state{strangers = Strangers} = State) when is_map_key(Peer, Strangers) ->
    State#state{strangers = Strangers#{Peer := Shares}};
item({hello, Shares}, Peer, State) ->
    regroup(free(fun(Free) -> atoll_name_free:said(Peer, Shares, Free) end, State));
item({know, Nodes}, _Peer, #state{self = Self} = State) ->
    free(fun(Free) -> atoll_name_free:told(Self, Nodes, Free) end, State);
item({{over, Owner, Number}, Id, Name, Ref, Pid, Meta, Tag}, Peer, State) ->
    Entry = atoll_name_slot:entry(firm, Peer, Ref, Pid, Meta),
    Slot = atoll_name_slot:replace({Owner, Number}, Entry#{ack := Tag}, slot(Id, Name, State)),
    settle(Id, Name, set_slot(Id, Name, Slot, State));
item({How, Id, Name, Ref, Pid, Meta, Tag}, Peer, State) when How =:= put; How =:= firm ->
    Entry = atoll_name_slot:entry(How, Peer, Ref, Pid, Meta),
    enter(Id, Name, Entry#{ack := Tag}, State);
item({have, Id, Name, Ref, Pid, Meta}, Peer, State) ->
    enter(Id, Name, atoll_name_slot:entry(held, Peer, Ref, Pid, Meta), State);
item({ack, Number, Tag}, Peer, State) ->
    heard_put(Number, Tag, Peer, State);
item({taken, Id, Name, Number}, Peer, State) ->
    taken(Id, Name, Number, Peer, State);
item({del, Id, Name, Number, OpRef}, Peer, State0) ->
    State = remove(Id, Name, Number, Peer, State0),
    case OpRef of
        none -> State;
        _ -> push(Peer, {gone, OpRef}, State)
    end;
item({gone, Ref}, Peer, State) ->
    heard(Ref, Peer, State);
item({forget, Id}, Peer, #state{table = Table} = State) ->
    forget(Id, Peer, maps:get(Id, Table, #{}), State);
item({contest, Id, Name, Number, Rivals}, Peer, State) ->
    contested(Id, Name, Number, Rivals, Peer, State);
item({kept, Id, Name, Number}, Peer, State) ->
    Slot = slot(Id, Name, State),
    case atoll_name_slot:find(Peer, Slot) of
        #{ref := Number} = Entry ->
            Kept = atoll_name_slot:update(Entry#{committed := true}, Slot),
            settle(Id, Name, set_slot(Id, Name, Kept, State));
        _ ->
            State
    end;
item({handed, Id, Name, Number}, Peer, State) ->
    handed(Id, Name, Number, Peer, State);
item({drop, Id, Name, Number}, Peer, State) ->
    case own_entry(Id, Name, State) of
        #{ref := Number, committed := true} ->
            Handed = push(Peer, {handed, Id, Name, Number}, State),
            drop(Id, Name, lists:delete(Peer, live(Id, State)), none, Handed);
        _ ->
            State
    end;
item({lose, Id, Name, Number, Winner, How}, _Peer, State) ->
    case own_entry(Id, Name, State) of
        #{ref := Number, committed := true} -> lose(Id, Name, Winner, How, State);
        _ -> State
    end;
item({ask, Ref, Kind, Id, Name, Pid, Meta}, Peer, State) ->
    start(Kind, Id, Name, Pid, Meta, {remote, Peer, Ref}, State);
item({answer, Ref, Answer}, _Peer, State) ->
    answered(Ref, Answer, State);
item({cancel, Ref}, Peer, #state{ops = Ops} = State) ->
    Cancelled = [Op || #op{from = {remote, P, R}} = Op <- maps:values(Ops), P =:= Peer, R =:= Ref],
    lists:foldl(fun(Op, S) -> give_up({no, timeout}, Op, S) end, State, Cancelled).

own_entry(Id, Name, #state{self = Self} = State) ->
    atoll_name_slot:find(Self, slot(Id, Name, State)).

enter(Id, Name, Entry, State) ->
    settle(Id, Name, set_slot(Id, Name, atoll_name_slot:add(Entry, slot(Id, Name, State)), State)).

remove(Id, Name, Number, Peer, State) ->
    Slot = slot(Id, Name, State),
    case atoll_name_slot:find(Peer, Slot) of
        #{ref := Number} ->
            settle(Id, Name, set_slot(Id, Name, atoll_name_slot:remove(Peer, Slot), State));
        _ ->
            State
    end.

%% The holder gave the name up for this node: who waits to take it does so before
%% anybody else can.
handed(Id, Name, Number, Peer, #state{waiting = Waiting, ops = Ops} = State) ->
    Slot = slot(Id, Name, State),
    Refs = [R || R <- maps:get({Id, Name}, Waiting, []), (maps:get(R, Ops))#op.kind =:= re_register],
    case {atoll_name_slot:front(Slot), Refs} of
        {#{owner := Peer, ref := Number}, [Ref | _]} ->
            Free = set_slot(Id, Name, atoll_name_slot:remove(Peer, Slot), State),
            put_entry({over, Peer, Number}, maps:get(Ref, Ops), Free);
        _ ->
            remove(Id, Name, Number, Peer, State)
    end.

heard_put(Number, Tag, Peer, #state{puts = Puts, ops = Ops} = State) ->
    case Puts of
        #{Number := Ref} ->
            case Ops of
                #{Ref := #op{await = #{Peer := Tag}}} -> heard(Ref, Peer, State);
                #{} -> State
            end;
        %% Of an entry that was taken back.
        #{} ->
            State
    end.

heard(Ref, Peer, #state{ops = Ops} = State) ->
    case Ops of
        #{Ref := #op{await = Await} = Op} ->
            progress(Ref, store(Op#op{await = maps:remove(Peer, Await)}, State));
        #{} ->
            State
    end.

taken(Id, Name, Number, Peer, #state{puts = Puts, ops = Ops} = State) ->
    case {Puts, own_entry(Id, Name, State)} of
        {#{Number := Ref}, _} ->
            case maps:get(Ref, Ops) of
                #op{kind = register} = Op -> give_up({no, name_or_pid_already_registered}, Op, State);
                Op -> rest(Op, State)
            end;
        {_, #{ref := Number, pid := Pid, meta := Meta}} ->
            %% The peer thought that this was under way still: two hold the name.
            push(Peer, {have, Id, Name, Number, Pid, Meta}, State);
        _ ->
            State
    end.

contested(Id, Name, Number, Rivals, Peer, #state{self = Self, puts = Puts, ops = Ops} = State) ->
    case {Puts, own_entry(Id, Name, State)} of
        {#{Number := Ref}, #{firm := IsFirm}} ->
            #{Ref := #op{contested = Told} = Op0} = Ops,
            Op = Op0#op{contested = lists:usort([Peer | Told])},
            Above = [
                R
             || not IsFirm, R <- Rivals, R =/= Self, not is_live(Id, R, State),
                atoll_name_rules:outranks(R, Self, Name)
            ],
            case Above of
                [] -> store(Op, State);
                _ -> rest(Op, State)
            end;
        {_, #{ref := Number}} ->
            push(Peer, {kept, Id, Name, Number}, State);
        _ ->
            State
    end.

%% Peers come and go

up(Peer, #state{now = Now, options = Options} = State0) ->
    {Session, State} = session(mute_no_more(Peer, State0)),
    met(Peer, atoll_name_channel:new(Session, Options, Now), estrange(Peer, State)).

%% This node makes a group, and that may be why it is connected with that one: not as one
%% free node with another. As such both would tell all their fellows, and these would get
%% connected and lose names to each other, for nothing.
estrange(_Peer, #state{strangers = none} = State) ->
    State;
estrange(Peer, #state{strangers = Strangers} = State) ->
    State#state{strangers = Strangers#{Peer => false}}.

%% The group is made, or not: then they are free nodes that are connected.
meet_strangers(#state{strangers = Strangers, free = Free} = State) ->
    Shares = atoll_name_free:shares(Free),
    lists:foldl(
        fun({Peer, Said}, S) ->
            Greeted = push_all([Peer || Shares], {hello, true}, S),
            item({hello, Said}, Peer, Greeted)
        end,
        State#state{strangers = none},
        lists:sort(maps:to_list(Strangers))
    ).

mute_no_more(Peer, #state{mute = Mute} = State) when is_map_key(Peer, Mute) ->
    effect({cancel, {mute, Peer}}, State#state{mute = maps:remove(Peer, Mute)});
mute_no_more(_Peer, State) ->
    State.

met(Peer, Channel, #state{channels = Channels, groups = Groups, free = Free, strangers = Strangers} = State0) ->
    IsStranger = Strangers =/= none andalso is_map_key(Peer, Strangers),
    Hello = {hello, atoll_name_free:shares(Free) andalso not IsStranger},
    State = push(Peer, Hello, State0#state{channels = Channels#{Peer => Channel}}),
    Common = [Id || {Id, Members} <- maps:to_list(Groups), is_map_key(Peer, Members)],
    lists:foldl(fun(Id, S) -> share(Id, Peer, S) end, State, lists:sort(Common)).

%% All that this node has in the group.
share(Id, Peer, #state{own = Own, self = Self} = State) ->
    Shared = maps:fold(
        fun(Name, [], S) ->
            Entry = atoll_name_slot:find(Self, slot(Id, Name, S)),
            share(Entry, Id, Name, Peer, S)
        end,
        State,
        maps:get(Id, Own, #{})
    ),
    #state{channels = #{Peer := Channel} = Channels} = Shared,
    Shared#state{channels = Channels#{Peer := atoll_name_channel:allow(Channel)}}.

share(#{committed := true, ref := Number, pid := Pid, meta := Meta}, Id, Name, Peer, State) ->
    push(Peer, {have, Id, Name, Number, Pid, Meta}, State);
share(#{ref := Number, pid := Pid, meta := Meta, firm := IsFirm}, Id, Name, Peer, State) ->
    #state{puts = #{Number := Ref}, ops = Ops} = State,
    #{Ref := #op{await = Await} = Op} = Ops,
    How =
        case IsFirm of
            true -> firm;
            false -> put
        end,
    {Tag, Numbered} = number(State),
    Put = {How, Id, Name, Number, Pid, Meta, Tag},
    push(Peer, Put, store(Op#op{await = Await#{Peer => Tag}}, Numbered)).

%% The connection is lost; or it is as good as that.
down(Peer, #state{channels = Channels, dirty = Dirty, condemned = Condemned} = State0) ->
    State = State0#state{
        channels = maps:remove(Peer, Channels),
        dirty = maps:remove(Peer, Dirty),
        condemned = maps:remove(Peer, Condemned)
    },
    Lost = strange_no_more(Peer, abandoned(Peer, abandoned(Peer, State, dropping), putting)),
    regroup(free(fun(Free) -> atoll_name_free:gone(Peer, Free) end, Lost)).

strange_no_more(Peer, #state{strangers = Strangers} = State) when is_map_key(Peer, Strangers) ->
    State#state{strangers = maps:remove(Peer, Strangers)};
strange_no_more(_Peer, State) ->
    State.

%% What was said to it was in vain, what it said is void.
abandoned(Peer, #state{asks = Asks} = State0, Phase) ->
    State1 = forsaken(Peer, forget_all(Peer, State0)),
    State2 = lists:foldl(
        fun({Ref, _}, S) -> answered(Ref, {no, connection_lost}, S) end,
        State1,
        lists:sort([A || {_, {Node, _, _, _}} = A <- maps:to_list(Asks), Node =:= Peer])
    ),
    #state{ops = Ops} = State2,
    Refs = lists:sort([R || {R, #op{await = A, phase = P}} <- maps:to_list(Ops), P =:= Phase, is_map_key(Peer, A)]),
    lists:foldl(fun(Ref, S) -> heard(Ref, Peer, S) end, State2, Refs).

%% What it had asked this node to do.
forsaken(Peer, #state{ops = Ops} = State) ->
    Refs = lists:sort([R || {R, #op{from = {remote, P, _}}} <- maps:to_list(Ops), P =:= Peer]),
    lists:foldl(
        fun(Ref, #state{ops = Now} = S) ->
            case Now of
                #{Ref := Op} -> give_up({no, connection_lost}, Op, S);
                #{} -> S
            end
        end,
        State,
        Refs
    ).

forget_all(Peer, #state{table = Table} = State) ->
    lists:foldl(
        fun({Id, Slots}, S) -> forget(Id, Peer, Slots, S) end, State, lists:sort(maps:to_list(Table))
    ).

%% Costs a look at each name of the group: the loss of a node is rare.
forget(Id, Peer, Slots, State) ->
    maps:fold(
        fun(Name, Slot, S) ->
            case atoll_name_slot:find(Peer, Slot) of
                none -> S;
                #{ref := Number} -> remove(Id, Name, Number, Peer, S)
            end
        end,
        State,
        Slots
    ).

%% The groups of this node

groups(Published, #state{free = Before} = State0) ->
    Stand = fun(Free) -> atoll_name_free:stand(Published =:= [], Free) end,
    #state{free = Free} = State = free(Stand, State0#state{published = Published}),
    Shares = atoll_name_free:shares(Free),
    case atoll_name_free:shares(Before) of
        Shares -> regroup(State);
        _ -> regroup(push_all(connected(State), {hello, Shares}, State))
    end.

%% What the free nodes' group asks for.
free(Change, #state{free = Free0} = State) ->
    {Effects, Free} = Change(Free0),
    lists:foldl(
        fun
            ({know, Node, Nodes}, S) -> push(Node, {know, Nodes}, S);
            (Effect, S) -> effect(Effect, S)
        end,
        State#state{free = Free},
        Effects
    ).

own_groups(#state{published = Published, free = Free, self = Self}) ->
    Free0 =
        case atoll_name_free:members(Self, Free) of
            none -> [];
            Members -> [{undefined, atoll_name_free:id(), Members}]
        end,
    Free0 ++ [{Name, Id, Members} || Published =/= none, {Name, Id, _, Members} <- Published].

%% The groups of this node are others, or their members are.
regroup(#state{groups = Old} = State0) ->
    Own = own_groups(State0),
    New = maps:from_list([{Id, maps:from_keys(Members, [])} || {_, Id, Members} <- Own]),
    Names = maps:from_list([{Name, Id} || {Name, Id, _} <- Own]),
    Up = connected(State0),
    Gone = lists:sort(maps:keys(maps:without(maps:keys(New), Old))),
    Changed = [{Id, Ms} || {Id, Ms} <- lists:sort(maps:to_list(New)), maps:get(Id, Old, none) =/= Ms],
    State1 = lists:foldl(
        fun(Id, S) -> part(Id, peers(Id, Old, Up), S) end, State0#state{groups = New, names = Names}, Gone
    ),
    State2 = lists:foldl(
        fun({Id, _}, S) ->
            Before = peers(Id, Old, Up),
            After = peers(Id, New, Up),
            S1 = push_all(Before -- After, {forget, Id}, S),
            S2 = lists:foldl(fun(Peer, S0) -> share(Id, Peer, S0) end, S1, After -- Before),
            await_no_more(Id, Before -- After, settle_all(Id, S2))
        end,
        State1,
        Changed
    ),
    heard_again(asks_no_more(State2)).

%% A mute node is a fellow now: it is waited for as the others are.
heard_again(#state{mute = Mute} = State) ->
    lists:foldl(fun up/2, State, [Peer || Peer <- lists:sort(maps:keys(Mute)), is_fellow(Peer, State)]).

peers(Id, Groups, Up) ->
    Members = maps:get(Id, Groups, #{}),
    [Peer || Peer <- Up, is_map_key(Peer, Members)].

%% This node is in the group no more.
part(Id, Peers, #state{self = Self, own = Own, ops = Ops} = State0) ->
    State1 = push_all(Peers, {forget, Id}, State0),
    Refs = lists:sort([R || {R, #op{id = I}} <- maps:to_list(Ops), I =:= Id]),
    State2 = lists:foldl(
        fun(Ref, #state{ops = Now} = S) ->
            case Now of
                #{Ref := #op{phase = dropping} = Op} -> finish(ok, Op, S);
                #{Ref := #op{kind = Kind} = Op} -> give_up({no, remote_group(Kind)}, Op, S);
                #{} -> S
            end
        end,
        State1,
        Refs
    ),
    Names = lists:sort(maps:keys(maps:get(Id, Own, #{}))),
    State = lists:foldl(
        fun(Name, S) ->
            case atoll_name_slot:find(Self, slot(Id, Name, S)) of
                none -> S;
                _ -> drop(Id, Name, [], none, S)
            end
        end,
        State2,
        Names
    ),
    settle_all(Id, State).

settle_all(Id, #state{table = Table, waiting = Waiting} = State) ->
    Waited = [Name || {I, Name} <- maps:keys(Waiting), I =:= Id],
    Names = lists:usort(maps:keys(maps:get(Id, Table, #{})) ++ Waited),
    lists:foldl(fun(Name, S) -> settle(Id, Name, S) end, State, Names).

await_no_more(Id, Peers, #state{ops = Ops} = State) ->
    Refs = lists:sort([R || {R, #op{id = I}} <- maps:to_list(Ops), I =:= Id]),
    lists:foldl(
        fun({Ref, Peer}, S) -> heard(Ref, Peer, S) end, State, [{R, P} || R <- Refs, P <- Peers]
    ).

%% A node that is no member any more does nothing for callers here.
asks_no_more(#state{asks = Asks} = State) ->
    lists:foldl(
        fun({Ref, {Node, Id, _, _}}, S) ->
            case is_live(Id, Node, S) of
                true -> S;
                false -> answered(Ref, {no, pid_is_not_on_a_member}, push(Node, {cancel, Ref}, S))
            end
        end,
        State,
        lists:sort(maps:to_list(Asks))
    ).

%% Sending

push(Peer, Item, #state{channels = Channels} = State) ->
    case Channels of
        #{Peer := Channel} ->
            Pushed = atoll_name_channel:push(Item, Channel),
            dirty(Peer, State#state{channels = Channels#{Peer := Pushed}});
        #{} ->
            State
    end.

push_all(Peers, Item, State) ->
    lists:foldl(fun(Peer, S) -> push(Peer, Item, S) end, State, Peers).

%% The timer comes after what is in the mailbox already: many names, one message.
dirty(Peer, #state{dirty = Dirty} = State) when map_size(Dirty) =:= 0 ->
    effect({timer, flush, 0}, State#state{dirty = #{Peer => []}});
dirty(Peer, #state{dirty = Dirty} = State) ->
    State#state{dirty = Dirty#{Peer => []}}.

flush(Peer, #state{channels = Channels, now = Now, options = #{max_backlog := Max}} = State) ->
    case Channels of
        #{Peer := Channel0} ->
            {Wires, Channel} = atoll_name_channel:flush(Now, Channel0),
            Sent = send(Peer, Wires, State#state{channels = Channels#{Peer := Channel}}),
            case atoll_name_channel:backlog(Channel) > Max andalso not is_map_key(Peer, Sent#state.condemned) of
                true -> disconnect(Peer, Sent);
                false -> Sent
            end;
        #{} ->
            State
    end.

send(Peer, Wires, State) ->
    effects([{send, Peer, Wire} || Wire <- Wires], State).

disconnect(Peer, #state{condemned = Condemned} = State0) ->
    State = State0#state{condemned = Condemned#{Peer => []}},
    effect({act, {disconnect, Peer}}, count(disconnected, State)).

tick_on(#state{ticking = false, channels = Channels, now = Now, options = #{tick_ms := Ms}} = State) ->
    case lists:all(fun atoll_name_channel:is_quiet/1, maps:values(Channels)) of
        true -> State;
        false -> effect({timer, tick, Ms}, State#state{ticking = Now + Ms})
    end;
tick_on(State) ->
    State.

tick(#state{ticking = Due, now = Now, channels = Channels, options = #{answer_ms := Ms}} = State) ->
    IsLate = Now - Due > Ms div 2,
    lists:foldl(
        fun({Peer, Channel}, S) -> tick(Peer, Channel, IsLate, S) end,
        State#state{ticking = false},
        lists:sort(maps:to_list(Channels))
    ).

tick(Peer, Channel0, IsLate, #state{now = Now, channels = Channels} = State) ->
    Excused =
        case IsLate of
            true -> atoll_name_channel:excuse(Now, Channel0);
            false -> Channel0
        end,
    {Verdict, Wires, Channel} = atoll_name_channel:tick(Now, Excused),
    Sent = send(Peer, Wires, State#state{channels = Channels#{Peer := Channel}}),
    case {Verdict, is_fellow(Peer, State), atoll_name_channel:has_spoken(Channel)} of
        {ok, _, _} -> Sent;
        {silent, true, _} -> disconnect(Peer, Sent);
        %% It holds for true what it has heard, and must hear the rest.
        {silent, false, true} -> Sent;
        {silent, false, false} -> hush(Peer, down(Peer, Sent))
    end.

%% A shell, a tool, or a node where the application does not run.
hush(Peer, #state{mute = Mute, options = #{answer_ms := Ms}} = State) ->
    effect({timer, {mute, Peer}, ?MUTE * Ms}, State#state{mute = Mute#{Peer => []}}).

%% Small things

slot(Id, Name, #state{table = Table}) ->
    case Table of
        #{Id := #{Name := Slot}} -> Slot;
        #{} -> atoll_name_slot:new()
    end.

set_slot(Id, Name, Slot, #state{table = Table} = State) ->
    Slots = maps:get(Id, Table, #{}),
    case atoll_name_slot:is_empty(Slot) of
        false ->
            State#state{table = Table#{Id => Slots#{Name => Slot}}};
        true ->
            case maps:remove(Name, Slots) of
                Left when map_size(Left) =:= 0 -> State#state{table = maps:remove(Id, Table)};
                Left -> State#state{table = Table#{Id => Left}}
            end
    end.

is_member(Id, Node, #state{groups = Groups}) ->
    case Groups of
        #{Id := #{Node := []}} -> true;
        #{} -> false
    end.

%% Whether it is a member of any of this node's groups.
is_fellow(Node, #state{groups = Groups}) ->
    lists:any(fun(Members) -> is_map_key(Node, Members) end, maps:values(Groups)).

is_up(Node, #state{channels = Channels}) ->
    is_map_key(Node, Channels).

is_live(Id, Node, State) ->
    is_member(Id, Node, State) andalso is_up(Node, State).

connected(#state{channels = Channels}) -> lists:sort(maps:keys(Channels)).

live(Id, #state{groups = Groups, channels = Channels}) ->
    [Node || Node <- lists:sort(maps:keys(maps:get(Id, Groups, #{}))), is_map_key(Node, Channels)].

number(#state{last = Last} = State) ->
    {Last + 1, State#state{last = Last + 1}}.

session(#state{incarnation = Incarnation} = State0) ->
    {Number, State} = number(State0),
    {{Incarnation, Number}, State}.

info(#state{ops = Ops, asks = Asks, table = Table, own = Own, counters = Counters}) ->
    Counters#{
        operations => map_size(Ops),
        asks => map_size(Asks),
        names => lists:sum([map_size(Slots) || Slots <- maps:values(Table)]),
        own => lists:sum([map_size(Names) || Names <- maps:values(Own)])
    }.

count(Counter, #state{counters = Counters} = State) ->
    State#state{counters = maps:update_with(Counter, fun(N) -> N + 1 end, 1, Counters)}.

effect(Effect, #state{effects = Effects} = State) ->
    State#state{effects = [Effect | Effects]}.

effects(Effects, State) ->
    lists:foldl(fun effect/2, State, Effects).
