%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Names in groups: a name stands for one process, on a member node, and every
%% member reads it from its own table. No lock, no leader, no quorum.
%%
%% <b>Who says what.</b> A name belongs to the node of its process, the owner. Only
%% the owner puts it into the world and takes it back; what another member holds of it
%% is what the owner said over the connection that is up now
%% ({@link atoll_session} keeps the order, repeats what is lost, and notices
%% silence). When that connection ends, everybody forgets what the owner said; when it
%% is up, the owner says all of it again.
%%
%% <b>A registration.</b> The owner H puts an entry in front of its own slot of the name and
%% sends it to every live member: every member of the group, as H knows it, that is connected with
%% H. A member where nobody has the name shows the entry to its readers and
%% acknowledges. Where another process has it, the entry waits behind that one
%% ({@link atoll_name_slot}). When all live members that are not silent have acknowledged, the answer
%% is `yes', and H's own readers find it: so their table tells what was answered for from
%% what was not, should this process be started anew. A member that is lost meanwhile does
%% not count; one that comes up is sent the entry and does.
%%
%% <b>Two at once.</b> Two owners that are connected get each other's entries. For each
%% name there is an order of the nodes ({@link atoll_name_rules:outranks/3}): the
%% lower one takes its entry back, everywhere, acknowledges the other, and waits for how
%% that ends. An owner that has answered `yes' gives way to nobody: it refuses.
%% Who stands in the way of another without being connected with it is told
%% so by the member that sees both (`contest'), and gives way by the same order.
%%
%% <b>Why two never both get `yes'</b> for one name, when H1 and H2 are members for
%% each other and connected the whole time, and neither is silent for the other: each needs the
%% other's acknowledgement.
%% H2 acknowledges only while H1's entry is in front in its table, and so its own is
%% not. (If H2 alone is silent, H1 does without its acknowledgement, but H2 needs that of H1, which
%% has none to give while its own entry is in front; and while that of H2 is in front at H1, H1 waits.)
%% H1's entry leaves the front only when H1 takes it back (then it has not
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
%% way to nobody but a holder, who says so himself, and takes the old one's place in each table at once. So nobody
%% can register the name in between, also if the holder's word (`moved') comes late. Where that comes first, readers
%% find the old process until the new entry is there, for `answer_ms' at most. (Of several at once one may be seen and
%% give way to another, with nobody in between.)
%%
%% <b>Silence.</b> A member that acknowledges nothing at all for `answer_ms' is silent, and is not
%% waited for until it acknowledges something again: that long can it hold up a `yes', once. It
%% keeps its connection and its names, since its processes may be well; what it has to hear
%% waits for it. So no name that a silent member holds, or was about to hold, is given to another,
%% and to take it back needs the member: such a call ends with `{no, timeout}'. Two that are
%% silent for each other may both get `yes' for one name, as the parts of a partition may, and
%% the clash is resolved as soon as they hear each other. Where more than `max_backlog' waits
%% for a peer, that is given up, and the two tell each other anew all that is true then.
%%
%% <b>How long.</b> A call is answered within `operation_ms', or, for a process on another node,
%% within `operation_ms' and `answer_ms'; what was not done by then is taken back.
%%
%% <b>Partitions.</b> Each part registers as it likes. When two owners that have answered
%% `yes' for one name meet, the higher of them in the order of that name decides by
%% the group's rule, alone; the loser's owner takes its entry back, and tells or kills the
%% process, once, because an entry can be taken back once. Until then each
%% reader keeps what it had first.
%%
%% <b>The free nodes.</b> While this node is in no group it is in one called `undefined',
%% whose members are itself and its co-members: the connected nodes that have said that they are
%% free too ({@link atoll_name_free} finds them, and has them connected all with
%% all). Each says so first in its stream, before any entry, and at each change before what
%% follows from it: who holds an entry of the other has heard that the other is a member. So
%% all that is said above of groups is true of this one, with members that come and go at once
%% with their connections. Where two parts of it meet, clashes are resolved as after a
%% partition. A free node that makes a group meets nobody as a free node meanwhile. Who
%% joins a group loses these names at once, and so do the others his.
%%
%% <b>Who does not speak.</b> A connected node that is in no group with this one is let be
%% if it acknowledges nothing: it may be a shell, or a node on which the application does not
%% run. While it has never said anything it is as one that is not connected, until it does,
%% or is in a group; from time to time it is spoken to again.
%%
%% <b>A member without this process</b>, where the application was stopped or not started, is
%% no live member until it speaks again: it says so when it stops, and its names go. One that
%% could not say so falls silent for whoever tells it something, and then its runtime is asked
%% whether the process is there. Who finds it gone has the other members ask too.
%%
%% <b>A restart of this process</b> on a member, with the connections staying up, is as the
%% loss of all its connections: its table is empty until it has been told again, and a
%% `yes' given before the others have heard of the restart does not hold for it. The names of
%% its own processes are not lost.
%%
%% <b>Not promised.</b> Between the death of a process (or a change of holder) and the news
%% of it a reader finds the old pid, or none. A `no' may be given for a name whose holder
%% is just going. For a process on another node `{no, connection_lost}' leaves open
%% whether it has the name, and so does any other `no' that is given because the answer is
%% too late or the caller's node leaves the group. A re-registration that fails may leave
%% the name to nobody. A member that has lost the connection with a name's owner does not
%% know the name, and answers `ok' when it is to unregister it. A rule that is a function
%% must make an order:
%% if A beats B, B beats C and C beats A, none of the three may be left.
%%
%% The module is long because it is one knot: whatever happens to a name ends in settle/3, which
%% makes true what has to be true of it and moves whoever waits for it, and what moves happens to
%% the name again. Who comes and goes settles names too. What can stand alone does, in the modules
%% beside it: the slot of a name, the operations, what the processes have, clashes, sessions.
-module(atoll_name_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3, remote_group/1]).

-export_type([config/0, options/0, state/0, message/0, item/0, request/0, answer/0, reason/0, counters/0]).

-type config() :: #{
    self := node(),
    %% When this process started, in microseconds: makes its numbers unique, of which it
    %% uses fewer than one in each.
    incarnation := non_neg_integer(),
    options := options(),
    %% This node's groups, and the names of processes here from an earlier life of the process.
    published => [atoll_group_rules:published()],
    held => [{id(), name(), pid(), Meta :: term()}]
}.

-type options() :: #{
    %% How long a silent member is waited for, how long an operation may take.
    answer_ms := pos_integer(),
    operation_ms := pos_integer(),
    %% How often what is owed is looked at; when a batch is said again.
    tick_ms := pos_integer(),
    resend_ms := pos_integer(),
    %% Items in one message, messages not acknowledged, and items that wait for one
    %% peer before they are given up, and all is said anew.
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
%% Numbers an entry or an operation, for ever.
-type ref() :: pos_integer().
-type tag() :: atoll_name_ops:tag().
-type kind() :: atoll_name_ops:kind().

-type request() ::
    {register | external | re_register, Group :: atom(), name(), pid(), Meta :: term()}
    | {unregister, Group :: atom(), name()}
    %% With whom this node shares the names of the group `undefined'; itself included.
    | free_nodes
    %% This process is about to be stopped.
    | bye
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
    %% The process of the names here is being started anew.
    | restarting
    %% Bounds.
    | overloaded
    | too_many_names
    | name_too_large.

-type answer() :: yes | ok | {no, reason()}.

-type counters() :: #{atom() => non_neg_integer()}.

-type message() :: atoll_session:wire().

-type item() ::
    %% The first thing of each stream, and said again at each change: whether the sender
    %% shares the namespace of the free nodes. And with whom.
    {hello, boolean()}
    | {know, [node()]}
    %% The last thing: the application stops there, and the node may go on.
    | bye
    %% The process of the names is gone from that node, as the sender has found.
    | {look_for, node()}
    %% The owner's entry: to be acknowledged; the same, firm, or in place of that one,
    %% which was given up for it; held for certain.
    | {put | firm | {over, node(), ref()}, id(), name(), ref(), pid(), Meta :: term(), tag()}
    | {have, id(), name(), ref(), pid(), Meta :: term()}
    | {ack, ref(), tag()}
    | {taken, id(), name(), ref()}
    %% The owner's entry is gone; an operation wants to know that it was heard.
    | {del, id(), name(), ref(), none | ref()}
    %% The same, and another owner's will come.
    | {moved, id(), name(), ref()}
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
    | {lose, id(), name(), ref(), Winner :: none | pid(), Other :: pid(), exit | notify}
    %% To do for a caller of the sender's; the answer; it is not wanted any more.
    | {ask, ref(), kind(), id(), name(), none | pid(), Meta :: term()}
    | {answer, ref(), answer()}
    | {cancel, ref()}.

-opaque state() :: #{
    self := node(),
    options := options(),
    now := atoll_protocol:now_ms(),
    %% Numbers of entries and operations.
    last := non_neg_integer(),
    free := atoll_name_free:free(),
    %% What the group room said last; nothing yet.
    published := none | [atoll_group_rules:published()],
    %% This node's groups, that of the free nodes among them, by identity and by name.
    groups := #{id() => #{node() => []}},
    names := #{atom() => id()},
    peers := atoll_sessions:sessions(),
    table := atoll_name_table:table(),
    pids := atoll_name_pids:pids(),
    ops := atoll_name_ops:ops(),
    %% Calls that another node does for us.
    asks := #{ref() => {node(), id(), atoll_name_ops:kind(), atoll_protocol:from()}},
    counters := #{atom() => non_neg_integer()},
    %% Of this event so far, newest first.
    effects := [atoll_protocol:effect()]
}.

%% How long an operation backs off after it gave way to a node it is not connected with.
-define(BACK_OFF_MIN_MS, 10).
-define(BACK_OFF_MAX_MS, 200).

%% @doc A node that is connected with nobody.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{published := Published, held := Held} = Config, Now) ->
    State = groups(Published, new(Config, Now)),
    done(lists:foldl(fun recover/2, State, Held));
init(Config, Now) ->
    {new(Config, Now), []}.

%% @doc Takes one event. Casts are `{groups, Groups}' (what the group room publishes), `{making, boolean()}' (whether this node, being
%% free, makes a group), `{died, Pid}', `{absent, Node, Mark}' (this did not run on that node when it was looked for) and
%% `{decided, Key, Winner}' (what a rule's function said).
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle(Event, Now, State) ->
    done(event(Event, State#{now := Now})).

%% @doc Why not, at a node that is not in the group.
-spec remote_group(register) -> cannot_register_in_remote_group;
    (re_register) -> cannot_re_register_in_remote_group;
    (unregister) -> cannot_unregister_from_remote_group.
remote_group(register) -> cannot_register_in_remote_group;
remote_group(re_register) -> cannot_re_register_in_remote_group;
remote_group(unregister) -> cannot_unregister_from_remote_group.

event({call, From, free_nodes}, #{groups := Groups} = State) ->
    effect({reply, From, lists:sort(maps:keys(maps:get(atoll_name_free:id(), Groups, #{})))}, State);
event({call, From, bye}, #{peers := Peers} = State) ->
    effect({reply, From, ok}, push_all(atoll_sessions:connected(Peers), bye, State));
event({call, From, info}, State) ->
    effect({reply, From, info(State)}, State);
event({call, From, {unregister, Group, Name}}, State) ->
    call(unregister, Group, Name, none, none, From, State);
event({call, From, {Kind, Group, Name, Pid, Meta}}, State) ->
    call(Kind, Group, Name, Pid, Meta, From, State);
event({message, Peer, Wire}, State0) ->
    {Items, State} = take(Wire, Peer, State0),
    lists:foldl(fun(Item, S) -> item(Item, Peer, S) end, State, Items);
event({up, Peer}, #{peers := Peers} = State) ->
    case {atoll_sessions:is_up(Peer, Peers), atoll_sessions:is_absent(Peer, Peers)} of
        {true, _} -> State;
        %% It is not waited for over this connection either, until it is heard.
        {false, true} -> up(Peer, effect({notify, {silent, Peer}}, State));
        {false, false} -> up(Peer, State)
    end;
event({down, Peer, _Reason}, State) ->
    down(Peer, State);
event({cast, {groups, Groups}}, State) ->
    groups(Groups, State);
event({cast, {making, Flag}}, State) ->
    making(Flag, State);
event({cast, {absent, Peer, Mark}}, State) ->
    found_absent(Peer, Mark, State);
event({cast, {died, Pid}}, State) ->
    died(Pid, State);
event({cast, {decided, Key, Winner}}, State) ->
    decided(Key, Winner, State);
event({timeout, flush}, State) ->
    flush(State);
event({timeout, tick}, State) ->
    tick(State);
event({timeout, {unresponsive, Peer}}, State) ->
    up(Peer, State);
event({timeout, {seek, Node}}, State) ->
    free(fun(Free) -> atoll_name_free:give_up(Node, Free) end, State);
event({timeout, remind}, State) ->
    free(fun atoll_name_free:remind/1, State);
event({timeout, {op, Ref}}, State) ->
    case op(Ref, State) of
        %% The name is gone here, and from all that could be reached.
        #{phase := dropping} = Op -> finish(ok, Op, State);
        Op -> give_up({no, timeout}, Op, State)
    end;
event({timeout, {moved, Id, Name}}, State) ->
    settle(Id, Name, set_slot(Id, Name, atoll_name_slot:wait_no_more(slot(Id, Name, State)), State));
event({timeout, {back_off, Ref}}, State) ->
    wait(op(Ref, State), State);
event({timeout, {ask, Ref}}, #{asks := Asks} = State) ->
    #{Ref := {Node, _, _, _}} = Asks,
    answered(Ref, {no, timeout}, push(Node, {cancel, Ref}, State)).

died(Pid, #{pids := Pids} = State) ->
    lists:foldl(
        fun
            ({Id, {name, Name}}, S) -> drop(Id, Name, S);
            ({_Id, {op, Ref}}, S) -> give_up({no, no_process}, op(Ref, S), S)
        end,
        State,
        atoll_name_pids:all(Pid, Pids)
    ).

info(#{ops := Ops, asks := Asks, table := Table, counters := Counters}) ->
    {Names, Own} = atoll_name_table:sizes(Table),
    Counters#{operations => atoll_name_ops:size(Ops), asks => map_size(Asks), names => Names, own => Own}.

%% What peers say

-spec item(item(), node(), state()) -> state().
item({hello, Shares}, Peer, State) ->
    said(Peer, Shares, State);
item(bye, Peer, State) ->
    absent(Peer, State);
item({look_for, Node}, _Peer, State) ->
    case is_up(Node, State) andalso shares_group(Node, State) of
        true -> look_for(Node, State);
        false -> State
    end;
item({know, Nodes}, _Peer, #{self := Self} = State) ->
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
item({ack, Number, Tag}, Peer, #{ops := Ops} = State) ->
    case atoll_name_ops:of_entry(Number, Ops) of
        {ok, #{ref := Ref, await := #{Peer := Tag}}} -> heard(Ref, Peer, State);
        %% Of an entry that was taken back; or to one that was sent before.
        _ -> State
    end;
item({taken, Id, Name, Number}, Peer, State) ->
    taken(Id, Name, Number, Peer, State);
item({del, Id, Name, Number, OpRef}, Peer, State0) ->
    State = remove(Id, Name, Number, Peer, State0),
    case OpRef of
        none -> State;
        _ -> push(Peer, {gone, OpRef}, State)
    end;
item({moved, Id, Name, Number}, Peer, State) ->
    Slot = slot(Id, Name, State),
    case atoll_name_slot:find(Peer, Slot) of
        #{ref := Number} -> settle(Id, Name, hand_over(Id, Name, Peer, State));
        _ -> State
    end;
item({gone, Ref}, Peer, State) ->
    heard(Ref, Peer, State);
item({forget, Id}, Peer, State) ->
    forget(Id, Peer, State);
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
    case is_live(Id, Peer, State) andalso own_entry(Id, Name, State) of
        #{ref := Number, committed := true} ->
            give(Id, Name, Peer, push(Peer, {handed, Id, Name, Number}, State));
        _ ->
            State
    end;
item({lose, Id, Name, Number, Winner, Other, How}, Peer, State) ->
    case is_live(Id, Peer, State) andalso own_entry(Id, Name, State) of
        #{ref := Number, committed := true} -> lose(Id, Name, Winner, Other, How, State);
        _ -> State
    end;
item({ask, Ref, Kind, Id, Name, Pid, Meta}, Peer, State) ->
    start(Kind, Id, Name, Pid, Meta, {remote, Peer, Ref}, State);
item({answer, Ref, Answer}, _Peer, State) ->
    answered(Ref, Answer, State);
item({cancel, Ref}, Peer, #{ops := Ops} = State) ->
    Cancelled = atoll_name_ops:all(fun(#{from := From}) -> From =:= {remote, Peer, Ref} end, Ops),
    lists:foldl(fun(R, S) -> give_up({no, timeout}, op(R, S), S) end, State, Cancelled).

%% A member says that somebody holds the name.
taken(Id, Name, Number, Peer, #{ops := Ops} = State) ->
    case {atoll_name_ops:of_entry(Number, Ops), own_entry(Id, Name, State)} of
        {{ok, #{kind := register} = Op}, _} ->
            give_up({no, name_or_pid_already_registered}, Op, State);
        {{ok, Op}, _} ->
            back_off(Op, State);
        {none, #{ref := Number, pid := Pid, meta := Meta}} ->
            %% The peer thought that this was under way still: two hold the name. Who is no
            %% member would not be told of the end of it, and is told all when it is one.
            case is_live(Id, Peer, State) of
                true -> push(Peer, {have, Id, Name, Number, Pid, Meta}, State);
                false -> State
            end;
        _ ->
            State
    end.

%% A member says that this entry stands in the way of these nodes'.
contested(Id, Name, Number, Rivals, Peer, #{self := Self, ops := Ops} = State) ->
    case {atoll_name_ops:of_entry(Number, Ops), own_entry(Id, Name, State)} of
        {{ok, #{contested := Told} = Op0}, #{firm := IsFirm}} ->
            Op = Op0#{contested := lists:usort([Peer | Told])},
            Above = [
                R
             || not IsFirm, R <- Rivals, R =/= Self, not (is_live(Id, R, State) andalso is_waited_for(R, State)),
                atoll_name_rules:outranks(R, Self, Name)
            ],
            case Above of
                [] -> store(Op, State);
                _ -> back_off(Op, State)
            end;
        {none, #{ref := Number}} ->
            push(Peer, {kept, Id, Name, Number}, State);
        _ ->
            State
    end.

%% Calls

%% A caller here wants that. An `external' process, on no member, is this node's affair.
call(Kind, Group, Name, Pid, Meta, From, #{names := Names} = State) ->
    case Names of
        #{Group := Id} ->
            case owner(Kind, Id, Name, Pid, State) of
                none -> effect({reply, From, ok}, State);
                Owner -> route(Owner, plain(Kind), Id, Name, Pid, Meta, From, State)
            end;
        #{} ->
            effect({reply, From, {no, remote_group(plain(Kind))}}, State)
    end.

plain(external) -> register;
plain(Kind) -> Kind.

%% Whose affair it is.
owner(unregister, Id, Name, none, State) ->
    case atoll_name_slot:front(slot(Id, Name, State)) of
        none -> none;
        #{owner := Owner} -> Owner
    end;
owner(external, Id, _Name, Pid, #{self := Self} = State) ->
    case is_member(Id, node(Pid), State) of
        true -> node(Pid);
        false -> Self
    end;
owner(_Kind, _Id, _Name, Pid, _State) ->
    node(Pid).

route(Self, Kind, Id, Name, Pid, Meta, From, #{self := Self} = State) ->
    start(Kind, Id, Name, Pid, Meta, {local, From}, State);
route(Owner, Kind, Id, Name, Pid, Meta, From, #{options := Options} = State0) ->
    case {is_live(Id, Owner, State0), has_room(State0)} of
        {false, _} ->
            effect({reply, From, {no, pid_is_not_on_a_member}}, State0);
        {true, false} ->
            effect({reply, From, {no, overloaded}}, count(refused_overloaded, State0));
        {true, true} ->
            #{operation_ms := OperationMs, answer_ms := AnswerMs} = Options,
            {Ref, #{asks := Asks} = State} = number(State0),
            Asked = State#{asks := Asks#{Ref => {Owner, Id, Kind, From}}},
            Timer = {timer, {ask, Ref}, OperationMs + AnswerMs},
            push(Owner, {ask, Ref, Kind, Id, Name, Pid, Meta}, effect(Timer, Asked))
    end.

%% What another node has said to a call that it did for us.
answered(Ref, Answer, #{asks := Asks0} = State) ->
    case maps:take(Ref, Asks0) of
        {{_, _, _, From}, Asks} ->
            effect({reply, From, Answer}, effect({cancel, {ask, Ref}}, State#{asks := Asks}));
        error ->
            State
    end.

%% Operations at the owner

%% One begins, or is refused.
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
refusal(Kind, Id, Name, Pid, Meta, #{pids := Pids, table := Table, options := Options} = State) ->
    #{max_names := MaxNames, max_bytes := MaxBytes} = Options,
    IsFree = atoll_name_pids:is_free(Pid, Id, Pids),
    Known = atoll_name_table:slots(Id, Table),
    IsFull = map_size(Known) >= MaxNames andalso not is_map_key(Name, Known),
    IsLarge = erlang:external_size({Name, Meta}) > MaxBytes,
    HasRoom = has_room(State),
    if
        not IsFree -> pid_taken(Kind);
        IsLarge -> {refused_size, name_too_large};
        IsFull -> {refused_names, too_many_names};
        not HasRoom -> {refused_overloaded, overloaded};
        true -> none
    end.

pid_taken(register) -> name_or_pid_already_registered;
pid_taken(re_register) -> pid_is_already_registered.

begin_op(Kind, Id, Name, Pid, Meta, From, #{options := #{operation_ms := Ms}} = State0) ->
    {Ref, State} = number(State0),
    Op = #{
        ref => Ref,
        kind => Kind,
        id => Id,
        name => Name,
        pid => Pid,
        meta => Meta,
        from => From,
        phase => waiting,
        entry => none,
        await => #{},
        contested => [],
        retries => 0
    },
    Begun = effect({timer, {op, Ref}, Ms}, reserve(Op, State)),
    case From of
        %% That the process is dead the caller's node cannot know: here the news of it comes
        %% before this timer, and nothing has been changed by then.
        {remote, _, _} when Pid =/= none ->
            effect({timer, {back_off, Ref}, 0}, store(Op#{phase := backing_off}, Begun));
        _ ->
            wait(Op, Begun)
    end.

%% A process has one name in a group.
reserve(#{kind := unregister}, State) ->
    State;
reserve(#{pid := Pid, id := Id, ref := Ref}, State) ->
    has(Pid, Id, {op, Ref}, State).

%% It waits for the name; settle/3 moves it.
wait(#{id := Id, name := Name} = Op, #{ops := Ops} = State) ->
    settle(Id, Name, State#{ops := atoll_name_ops:wait(Op, Ops)}).

%% What it can do now, with this entry in front.
move(#{id := Id, kind := Kind, from := From} = Op, Front, #{self := Self, groups := Groups} = State) ->
    case {is_map_key(Id, Groups), From} of
        {true, _} -> move(Kind, Front, Self, Op, State);
        {false, {local, _}} -> finish({no, remote_group(Kind)}, Op, State);
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
move(unregister, _Front, _Self, #{from := {remote, _, _}} = Op, State) ->
    %% It was here, and is no more.
    finish(ok, Op, State);
move(unregister, #{owner := Owner}, _Self, #{from := {local, From}, id := Id, name := Name} = Op, State) ->
    route(Owner, unregister, Id, Name, none, none, From, forget_op(Op, State));
move(register, #{committed := true}, _Self, Op, State) ->
    finish({no, name_or_pid_already_registered}, Op, State);
move(re_register, #{owner := Self, pid := Pid}, Self, #{id := Id} = Op, State) ->
    %% In the same place: nobody else can come between.
    put_entry(firm, Op, count(replaced, has_not(Pid, Id, State)));
move(re_register, #{committed := true, ordered := false} = Front, _Self, #{id := Id, name := Name}, State) ->
    #{owner := Owner, ref := Ref} = Front,
    push(Owner, {drop, Id, Name, Ref}, update(Id, Name, Front#{ordered := true}, State));
move(_Kind, _Front, _Self, _Op, State) ->
    State.

put_entry(How, #{id := Id, name := Name, pid := Pid, meta := Meta, ref := Ref} = Op0, State0) ->
    {Number, #{self := Self, ops := Ops} = State1} = number(State0),
    Kind =
        case How of
            put -> put;
            _ -> firm
        end,
    Entry = atoll_name_slot:entry(Kind, Self, Number, Pid, Meta),
    State2 = set_slot(Id, Name, atoll_name_slot:to_front(Entry, slot(Id, Name, State1)), State1),
    Live = live(Id, State2),
    Op = Op0#{phase := putting, entry := Number, await := maps:from_keys(Live, Number), contested := []},
    State3 = owns(Id, Name, State2#{ops := atoll_name_ops:put(Op, Ops)}),
    State4 = push_all(Live, {How, Id, Name, Number, Pid, Meta, Number}, State3),
    progress(Ref, settle(Id, Name, State4)).

%% It goes on if it has all it needs: what it awaits, but from silent members.
progress(Ref, #{ops := Ops} = State) ->
    case atoll_name_ops:find(Ref, Ops) of
        {ok, #{phase := Phase, await := Await} = Op} when Phase =:= putting; Phase =:= dropping ->
            case {lists:any(fun(Peer) -> is_waited_for(Peer, State) end, maps:keys(Await)), Phase} of
                {true, _} -> State;
                {false, putting} -> commit(Op, State);
                {false, dropping} -> finish(ok, Op, State)
            end;
        _ ->
            State
    end.

commit(#{id := Id, name := Name, entry := Number, pid := Pid, contested := Peers} = Op, State0) ->
    Entry = atoll_name_slot:front(slot(Id, Name, State0)),
    State1 = update(Id, Name, Entry#{committed := true}, State0),
    State2 = push_all([P || P <- Peers, is_up(P, State1)], {kept, Id, Name, Number}, State1),
    State3 = has(Pid, Id, {name, Name}, finish(yes, Op, count(registered, State2))),
    %% Readers find it before anybody hears of it.
    State = show(Id, Name, slot(Id, Name, State3), State3),
    settle(Id, Name, effect({notify, {registered, element(1, Id), Name, Pid}}, State)).

%% Its entry is taken back everywhere; the operation is as before it was put.
withdraw(#{id := Id, name := Name, entry := Number} = Op0, #{self := Self, ops := Ops0} = State0) ->
    Slot = atoll_name_slot:remove(Self, slot(Id, Name, State0)),
    State1 = owns_not(Id, Name, set_slot(Id, Name, Slot, State0)),
    State2 = push_all(live(Id, State1), {del, Id, Name, Number, none}, State1),
    {Op, Ops} = atoll_name_ops:taken_back(Op0, Ops0),
    {Op, State2#{ops := Ops}}.

%% It ends with this answer, and what it has done is taken back.
give_up(Answer, #{phase := putting, id := Id, name := Name} = Op0, State0) ->
    {Op, State} = withdraw(Op0, State0),
    settle(Id, Name, finish(Answer, Op, State));
give_up(Answer, #{phase := dropping} = Op, State) ->
    finish(Answer, Op, State);
give_up(Answer, #{id := Id, name := Name} = Op, State) ->
    settle(Id, Name, finish(Answer, Op, State)).

%% It gives way to a node that this one is not connected with, and tries again.
back_off(#{ref := Ref, id := Id, name := Name, retries := Retries} = Op0, State0) ->
    {Op, State} = withdraw(Op0, State0),
    Ms = min(?BACK_OFF_MAX_MS, ?BACK_OFF_MIN_MS bsl min(Retries, 10)),
    settle(Id, Name, effect({timer, {back_off, Ref}, Ms}, store(Op#{retries := Retries + 1}, State))).

%% It ends with this answer.
finish(Answer, #{from := From, pid := Pid, id := Id, kind := Kind} = Op, State0) ->
    State = answer(From, Answer, forget_op(Op, State0)),
    case Kind of
        unregister -> State;
        _ when Answer =:= yes -> State;
        _ -> has_not(Pid, Id, State)
    end.

forget_op(#{ref := Ref, phase := Phase} = Op, #{ops := Ops} = State0) ->
    State = effect({cancel, {op, Ref}}, State0#{ops := atoll_name_ops:remove(Op, Ops)}),
    case Phase of
        backing_off -> effect({cancel, {back_off, Ref}}, State);
        _ -> State
    end.

answer({local, From}, Answer, State) -> effect({reply, From, Answer}, State);
answer({remote, Node, Ref}, Answer, State) -> push(Node, {answer, Ref, Answer}, State).

%% A peer has said what that operation waits for.
heard(Ref, Peer, #{ops := Ops} = State) ->
    case atoll_name_ops:find(Ref, Ops) of
        {ok, #{await := Await} = Op} -> progress(Ref, store(Op#{await := maps:remove(Peer, Await)}, State));
        none -> State
    end.

%% The holder gave the name up for this node: who waits to take it does so before
%% anybody else can.
handed(Id, Name, Number, Peer, #{ops := Ops} = State) ->
    Slot = slot(Id, Name, State),
    Takers = [
        Op
     || Ref <- atoll_name_ops:waiting(Id, Name, Ops), #{kind := re_register} = Op <- [atoll_name_ops:get(Ref, Ops)]
    ],
    case {atoll_name_slot:find(Peer, Slot), atoll_name_slot:front(Slot), Takers} of
        {#{ref := Number}, #{owner := Peer}, [Op | _]} ->
            put_entry({over, Peer, Number}, Op, set_slot(Id, Name, atoll_name_slot:remove(Peer, Slot), State));
        {#{ref := Number}, _, _} ->
            settle(Id, Name, set_slot(Id, Name, atoll_name_slot:remove(Peer, Slot), State));
        _ ->
            State
    end.

%% This node's process loses its name to one of that member's.
give({Group, _} = Id, Name, To, #{self := Self} = State0) ->
    #{ref := Number, pid := Pid, meta := Meta} = own_entry(Id, Name, State0),
    State1 = hand_over(Id, Name, Self, owns_not(Id, Name, has_not(Pid, Id, State0))),
    %% It is nobody's to say again, should this process be started anew.
    State2 = effect({act, {insert, Group, Name, Pid, Meta, other}}, State1),
    settle(Id, Name, push_all(lists:delete(To, live(Id, State2)), {moved, Id, Name, Number}, State2)).

%% Readers find who had it until they find who has it next.
hand_over(Id, Name, Owner, #{options := #{answer_ms := Ms}} = State) ->
    Slot = atoll_name_slot:hand_over(Owner, slot(Id, Name, State)),
    effect({timer, {moved, Id, Name}, Ms}, set_slot(Id, Name, Slot, State)).

%% This node's process loses its name.
drop(Id, Name, State) ->
    drop(Id, Name, live(Id, State), none, State).

%% The same, and these are told.
drop_for(Peers, Id, Name, State) ->
    drop(Id, Name, Peers, none, State).

drop(Id, Name, Peers, OpRef, #{self := Self} = State0) ->
    Slot = slot(Id, Name, State0),
    #{ref := Number, pid := Pid, committed := true} = atoll_name_slot:find(Self, Slot),
    State1 = set_slot(Id, Name, atoll_name_slot:remove(Self, Slot), owns_not(Id, Name, State0)),
    State2 = push_all(Peers, {del, Id, Name, Number, OpRef}, has_not(Pid, Id, State1)),
    settle(Id, Name, State2).

drop_and_hear(#{id := Id, name := Name, ref := Ref} = Op, #{ops := Ops} = State0) ->
    Live = live(Id, State0),
    Dropping = Op#{phase := dropping, await := maps:from_keys(Live, Ref)},
    State = State0#{ops := atoll_name_ops:wait_no_more(Op, Ops)},
    progress(Ref, drop(Id, Name, Live, Ref, store(Dropping, State))).

%% A process has a name since this process's earlier life. As after a partition: it
%% holds what it held, and a clash is resolved when it meets.
recover({{Group, _} = Id, Name, Pid, Meta}, #{names := Names, self := Self} = State0) ->
    case Names of
        #{Group := Id} ->
            {Number, State1} = number(has(Pid, Id, {name, Name}, State0)),
            Entry = atoll_name_slot:entry(held, Self, Number, Pid, Meta),
            Slot = atoll_name_slot:to_front(Entry, slot(Id, Name, State1)),
            settle(Id, Name, owns(Id, Name, set_slot(Id, Name, Slot, State1)));
        #{} ->
            %% The node has left the group meanwhile, and so has the name.
            effect({act, {delete, Group, Name}}, State0)
    end.

%% What has to be true of a name

%% Makes it true.
settle(Id, Name, #{self := Self} = State0) ->
    MayBe = fun(Owner) -> is_member(Id, Owner, State0) end,
    Slot = atoll_name_slot:settle(MayBe, slot(Id, Name, State0)),
    Behind = [Entry || #{owner := Owner} = Entry <- atoll_name_slot:rest(Slot), MayBe(Owner)],
    State = show(Id, Name, Slot, State0),
    case atoll_name_slot:front(Slot) of
        none ->
            move_waiting(Id, Name, State);
        #{owner := Self, committed := false} = Front ->
            case [E || E <- Behind, atoll_name_clash:gives_way(Front, E, Name)] of
                %% Whoever waits goes on doing so, as many as they are.
                [] -> State;
                _ -> yield(Front, State)
            end;
        #{committed := true} = Front ->
            Refused = lists:foldl(fun(E, S) -> refuse(Id, Name, Front, E, S) end, State, Behind),
            move_waiting(Id, Name, clash(Id, Name, Front, Behind, Refused));
        Front ->
            contest(Id, Name, [O || #{owner := O} <- Behind], move_waiting(Id, Name, acknowledge(Id, Name, Front, State)))
    end.

show(Id, Name, Slot, #{self := Self} = State) ->
    Group = element(1, Id),
    case atoll_name_slot:shown(Self, Slot) of
        same ->
            set_slot(Id, Name, Slot, State);
        none ->
            effect({act, {delete, Group, Name}}, set_slot(Id, Name, atoll_name_slot:show(Self, Slot), State));
        {Pid, Meta} ->
            Whose =
                case atoll_name_slot:front(Slot) of
                    #{owner := Self} -> {own, Id};
                    _ -> other
                end,
            effect({act, {insert, Group, Name, Pid, Meta, Whose}}, set_slot(Id, Name, atoll_name_slot:show(Self, Slot), State))
    end.

update(Id, Name, Entry, State) ->
    set_slot(Id, Name, atoll_name_slot:update(Entry, slot(Id, Name, State)), State).

yield(#{ref := Number}, #{ops := Ops} = State0) ->
    {ok, Op0} = atoll_name_ops:of_entry(Number, Ops),
    {Op, State} = withdraw(Op0, count(yielded, State0)),
    wait(Op, State).

%% What was given the name (firm) waits: the last holder's word is on its way. But where this node is the
%% holder it has given nothing: another one has, in another part of a partition.
refuse(Id, Name, #{owner := Holder}, #{owner := Owner, ref := Ref, committed := false, firm := IsFirm}, #{self := Self} = State0) when
    not IsFirm; Holder =:= Self
->
    Slot = atoll_name_slot:remove(Owner, slot(Id, Name, State0)),
    push(Owner, {taken, Id, Name, Ref}, set_slot(Id, Name, Slot, State0));
refuse(_Id, _Name, _Front, _HeldOrGiven, State) ->
    State.

acknowledge(_Id, _Name, #{ack := none}, State) ->
    State;
acknowledge(Id, Name, #{owner := Owner, ref := Ref, ack := Tag} = Front, State) ->
    push(Owner, {ack, Ref, Tag}, update(Id, Name, Front#{ack := none}, State)).

%% Whoever waits for the name hears how the other's operation ends.
contest(Id, Name, Others, #{self := Self, ops := Ops} = State) ->
    case atoll_name_slot:front(slot(Id, Name, State)) of
        #{owner := Owner, committed := false, ref := Ref, contested := Told} = Front when Owner =/= Self ->
            Us = [Self || atoll_name_ops:waiting(Id, Name, Ops) =/= []],
            case (Us ++ Others) -- Told of
                [] ->
                    State;
                New ->
                    Contested = update(Id, Name, Front#{contested := Told ++ New}, State),
                    push(Owner, {contest, Id, Name, Ref, New}, Contested)
            end;
        _ ->
            State
    end.

move_waiting(Id, Name, #{ops := Ops} = State) ->
    lists:foldl(
        fun(Ref, #{ops := Now} = S) ->
            %% Those before it may have ended its waiting.
            case atoll_name_ops:find(Ref, Now) of
                {ok, #{phase := waiting} = Op} -> move(Op, atoll_name_slot:front(slot(Id, Name, S)), S);
                _ -> S
            end
        end,
        State,
        atoll_name_ops:waiting(Id, Name, Ops)
    ).

%% Two hold the name for certain: the higher of the two owners decides.
clash(Id, Name, Front, Behind, #{self := Self} = State) ->
    case atoll_name_clash:rival(Self, Name, Front, Behind) of
        none -> State;
        Rival -> judge(Id, Name, Front, Rival, count(clashes, State))
    end.

judge(Id, Name, Own, Rival, #{options := #{rules := Rules, rule := Default}} = State0) ->
    State = update(Id, Name, Rival#{judged := true}, State0),
    Rule = maps:get(element(1, Id), Rules, Default),
    case atoll_name_clash:judge(Rule, {Id, Name}, Own, Rival) of
        {ask, Deed} -> effect({act, Deed}, State);
        %% The next clash, if there is one, is looked at then.
        Verdict -> settle(Id, Name, execute(Verdict, Id, Name, Rival, State))
    end.

%% What a rule's function has said, if both are still there.
decided({Id, Name, Ref1, Owner, Ref2}, Winner, State) ->
    case {own_entry(Id, Name, State), atoll_name_slot:find(Owner, slot(Id, Name, State))} of
        {#{ref := Ref1} = Own, #{ref := Ref2} = Rival} ->
            settle(Id, Name, execute(atoll_name_clash:decided(Winner, Own, Rival), Id, Name, Rival, State));
        _ ->
            settle(Id, Name, State)
    end.

execute(#{first := First, second := Second, how := How}, Id, Name, #{owner := Owner, ref := Ref}, State0) ->
    State =
        case Second of
            {loses, ToFirst, Other} -> push(Owner, {lose, Id, Name, Ref, ToFirst, Other, How}, State0);
            keeps -> State0
        end,
    case First of
        {loses, ToSecond, Rival} -> lose(Id, Name, ToSecond, Rival, How, State);
        keeps -> State
    end.

%% This node's process has lost the name, in a clash with that other one.
lose({Group, _} = Id, Name, Winner, Other, How, State) ->
    #{pid := Pid, meta := Meta} = own_entry(Id, Name, State),
    Conflict = {name_conflict, Group, Name, Winner},
    Deed =
        case How of
            notify -> {tell, Pid, atoll_name_rules:told(Meta, Group, Name, Winner, Other), Conflict};
            exit -> {kill, Pid, Conflict}
        end,
    effect({act, Deed}, drop(Id, Name, count(lost, State))).

%% Peers

%% A peer is connected.
up(Peer, #{peers := Peers} = State) ->
    case atoll_sessions:is_absent(Peer, Peers) of
        true -> probe(Peer, State);
        false -> is_there(Peer, State)
    end.

probe(Peer, #{peers := Peers0, now := Now, free := Free} = State) ->
    {Said, Peers} = atoll_sessions:probe(Peer, {hello, atoll_name_free:shares_with(Peer, Free)}, Now, Peers0),
    silenced(Peer, effects(Said, State#{peers := Peers})).

is_there(Peer, #{peers := Peers0, now := Now, free := Free} = State) ->
    {Effects, Peers} = atoll_sessions:clear_unresponsive(Peer, Peers0),
    Up = State#{peers := atoll_sessions:up(Peer, Now, Peers), free := atoll_name_free:met(Peer, Free)},
    met(Peer, effects(Effects, Up)).

%% The first that it hears, and all that it has to know.
met(Peer, #{groups := Groups, free := Free} = State) ->
    Common = [Id || {Id, Members} <- maps:to_list(Groups), is_map_key(Peer, Members)],
    Hello = {hello, atoll_name_free:shares_with(Peer, Free)},
    lists:foldl(fun(Id, S) -> share(Id, Peer, S) end, push(Peer, Hello, State), lists:sort(Common)).

%% All that this node has in the group.
share(Id, Peer, #{table := Table} = State) ->
    Shared = lists:foldl(
        fun(Name, S) -> share(own_entry(Id, Name, S), Id, Name, Peer, S) end, State, atoll_name_table:own(Id, Table)
    ),
    #{peers := Peers} = Shared,
    Shared#{peers := atoll_sessions:allow(Peer, Peers)}.

share(#{committed := true, ref := Number, pid := Pid, meta := Meta}, Id, Name, Peer, State) ->
    push(Peer, {have, Id, Name, Number, Pid, Meta}, State);
share(#{ref := Number, pid := Pid, meta := Meta, firm := IsFirm}, Id, Name, Peer, #{ops := Ops} = State) ->
    {ok, #{await := Await} = Op} = atoll_name_ops:of_entry(Number, Ops),
    How =
        case IsFirm of
            true -> firm;
            false -> put
        end,
    {Tag, Numbered} = number(State),
    push(Peer, {How, Id, Name, Number, Pid, Meta, Tag}, store(Op#{await := Await#{Peer => Tag}}, Numbered)).

%% The connection is lost; or it is as good as that.
down(Peer, #{peers := Peers0} = State) ->
    {Effects, Peers} = atoll_sessions:clear_unresponsive(Peer, Peers0),
    gone(Peer, effects(Effects, State#{peers := atoll_sessions:down(Peer, Peers)})).

%% The room does not run there any more, as it says itself: it is no live member.
absent(Peer, #{peers := Peers} = State) ->
    silenced(Peer, down(Peer, State#{peers := atoll_sessions:absent(Peer, Peers)})).

silenced(Peer, #{peers := Peers0} = State) ->
    {Effects, Peers} = atoll_sessions:leave_alone(Peer, Peers0),
    effects(Effects, State#{peers := Peers}).

%% The room does not run on that node: it is as if it had said so. Whoever had nothing to tell
%% it has not found out.
found_absent(Peer, Mark, #{peers := Peers, groups := Groups} = State) ->
    Members = lists:usort(lists:append([maps:keys(G) || G <- maps:values(Groups), is_map_key(Peer, G)])),
    %% What has come from it since is of another life of the process there.
    IsSo = atoll_sessions:mark(Peer, Peers) =:= Mark andalso Members =/= [],
    case {IsSo, atoll_sessions:is_silent(Peer, Peers)} of
        {true, true} -> push_all(Members -- [Peer], {look_for, Peer}, absent(Peer, State));
        {true, false} -> absent(Peer, State);
        {false, _} -> State
    end.

%% Whether the room runs there is asked of its runtime.
look_for(Peer, #{peers := Peers} = State) ->
    effect({act, {look_for, Peer, atoll_sessions:mark(Peer, Peers)}}, State).

gone(Peer, State) ->
    Lost = abandoned(Peer, abandoned(Peer, State, dropping), putting),
    regroup(free(fun(Free) -> atoll_name_free:gone(Peer, Free) end, Lost)).

%% What was said to it was in vain, what it said is void.
abandoned(Peer, State, Phase) ->
    in_vain(Peer, forsaken(Peer, forget_all(Peer, State)), Phase).

in_vain(Peer, #{asks := Asks} = State0, Phase) ->
    State = lists:foldl(
        fun({Ref, _}, S) -> answered(Ref, {no, connection_lost}, S) end,
        State0,
        lists:sort([A || {_, {Node, _, _, _}} = A <- maps:to_list(Asks), Node =:= Peer])
    ),
    #{ops := Ops} = State,
    Refs = atoll_name_ops:all(fun(#{await := A, phase := P}) -> P =:= Phase andalso is_map_key(Peer, A) end, Ops),
    lists:foldl(fun(Ref, S) -> heard(Ref, Peer, S) end, State, Refs).

%% What it had asked this node to do.
forsaken(Peer, #{ops := Ops} = State) ->
    IsIts = fun
        (#{from := {remote, P, _}}) -> P =:= Peer;
        (#{from := {local, _}}) -> false
    end,
    each(fun(Op, S) -> give_up({no, connection_lost}, Op, S) end, atoll_name_ops:all(IsIts, Ops), State).

%% Those of the operations that are still under way.
each(Do, Refs, State) ->
    lists:foldl(
        fun(Ref, #{ops := Ops} = S) ->
            case atoll_name_ops:find(Ref, Ops) of
                {ok, Op} -> Do(Op, S);
                none -> S
            end
        end,
        State,
        Refs
    ).

forget_all(Peer, #{table := Table} = State) ->
    lists:foldl(fun(Id, S) -> forget(Id, Peer, S) end, State, atoll_name_table:ids(Table)).

%% All that a peer has said in that group is void. Costs a look at each name of the
%% group: the loss of a node is rare.
forget(Id, Peer, #{table := Table} = State) ->
    Slots = maps:to_list(atoll_name_table:slots(Id, Table)),
    Said = [{Name, Ref} || {Name, Slot} <- Slots, #{ref := Ref} <- [atoll_name_slot:find(Peer, Slot)]],
    Waits = [{Name, Slot} || {Name, Slot} <- Slots, atoll_name_slot:waits(Peer, Slot)],
    Found = lists:foldl(
        fun({Name, Slot}, S) -> settle(Id, Name, set_slot(Id, Name, atoll_name_slot:wait_no_more(Slot), S)) end, State, lists:sort(Waits)
    ),
    %% The order of a map is another one in each VM.
    lists:foldl(fun({Name, Number}, S) -> remove(Id, Name, Number, Peer, S) end, Found, lists:sort(Said)).

%% A peer has an entry.
enter(Id, Name, Entry, State) ->
    settle(Id, Name, set_slot(Id, Name, atoll_name_slot:add(Entry, slot(Id, Name, State)), State)).

%% A peer has that entry no more.
remove(Id, Name, Number, Peer, State) ->
    Slot = slot(Id, Name, State),
    case atoll_name_slot:find(Peer, Slot) of
        #{ref := Number} -> settle(Id, Name, set_slot(Id, Name, atoll_name_slot:remove(Peer, Slot), State));
        _ -> State
    end.

%% What they send, and what is sent

%% A message has come: what it says, and what its beginning anew means.
take(Wire, Peer, #{peers := Peers0, now := Now} = State) ->
    case atoll_sessions:is_up(Peer, Peers0) of
        true ->
            {What, Items, Peers} = atoll_sessions:take(Wire, Peer, Now, Peers0),
            {Items, began(What, Peer, told_of_silence(Peer, Peers0, State#{peers := Peers}))};
        false ->
            case lists:member(Peer, atoll_sessions:unresponsive(Peers0)) of
                true ->
                    Heard = effect({notify, {heard, Peer}}, State#{peers := atoll_sessions:present(Peer, Peers0)}),
                    take(Wire, Peer, up(Peer, Heard));
                false -> {[], State}
            end
    end.

began(same, _Peer, State) ->
    State;
began(reset, Peer, State) ->
    forsaken(Peer, forget_all(Peer, State));
began(restart, Peer, State) ->
    %% All is said again before what it said is forgotten: an operation that
    %% waits for this peer must go on doing so, its readers have nothing yet.
    abandoned(Peer, met(Peer, State), dropping).

%% What is to be sent is sent.
flush(#{peers := Peers0, now := Now} = State) ->
    {Effects, Slow, Peers} = atoll_sessions:flush(Now, Peers0),
    lists:foldl(fun slow/2, effects(Effects, State#{peers := Peers}), Slow).

%% More waits for it than may: of all that, only what is true now is said.
slow(Peer, #{peers := Peers, now := Now} = State) ->
    Anew = count(said_anew, State#{peers := atoll_sessions:begin_anew(Peer, Now, Peers)}),
    in_vain(Peer, met(Peer, Anew), dropping).

%% Some time has passed.
tick(#{peers := Peers0, now := Now} = State) ->
    {Effects, Silent, Peers} = atoll_sessions:tick(Now, Peers0),
    Known = [Peer || {Peer, HasSpoken} <- Silent, HasSpoken orelse shares_group(Peer, State)],
    %% What goes on now does so without any of them.
    Told = lists:foldl(
        fun(Peer, S) -> told_of_silence(Peer, Peers0, S) end, effects(Effects, State#{peers := Peers}), Known
    ),
    lists:foldl(fun silent/2, Told, Silent).

told_of_silence(Peer, Before, #{peers := Peers} = State) ->
    case {atoll_sessions:is_silent(Peer, Before), atoll_sessions:is_silent(Peer, Peers)} of
        {false, true} -> effect({notify, {silent, Peer}}, count(silent, State));
        {true, false} -> effect({notify, {heard, Peer}}, State);
        {Same, Same} -> State
    end.

%% It holds for true what it has heard, must hear the rest, and is not waited for.
silent({Peer, true}, #{ops := Ops} = State) ->
    Refs = atoll_name_ops:all(fun(#{await := Await}) -> is_map_key(Peer, Await) end, Ops),
    Without = lists:foldl(fun progress/2, State, Refs),
    case shares_group(Peer, State) of
        true -> look_for(Peer, Without);
        false -> Without
    end;
%% A shell, a tool, or a node where this does not run.
silent({Peer, false}, State) ->
    case shares_group(Peer, State) of
        true -> absent(Peer, State);
        false -> silenced(Peer, down(Peer, State))
    end.

%% Groups

%% What the group room says of this node's groups.
groups(Published, #{free := Before} = State0) ->
    Stand = fun(Free) -> atoll_name_free:stand(Published =:= [], Free) end,
    #{free := Free, peers := Peers} = State = free(Stand, State0#{published := Published}),
    Shares = atoll_name_free:shares(Free),
    case atoll_name_free:shares(Before) of
        Shares -> regroup(State);
        _ -> regroup(push_all(atoll_sessions:connected(Peers), {hello, Shares}, State))
    end.

%% Whether this node, being free, makes a group.
making(Flag, State) ->
    regroup(free(fun(Free) -> atoll_name_free:making(Flag, Free) end, State)).

%% A peer says whether it shares the namespace of the free nodes.
said(Peer, Shares, State) ->
    regroup(free(fun(Free) -> atoll_name_free:said(Peer, Shares, Free) end, State)).

%% Something happens in the group of the free nodes.
free(Change, #{free := Free0} = State) ->
    {Effects, Free} = Change(Free0),
    lists:foldl(
        fun
            ({know, Node, Nodes}, S) -> push(Node, {know, Nodes}, S);
            ({greet, Node}, S) -> push(Node, {hello, true}, S);
            (Effect, S) -> effect(Effect, S)
        end,
        State#{free := Free},
        Effects
    ).

own_groups(#{published := Published, free := Free, self := Self}) ->
    Shared =
        case atoll_name_free:members(Self, Free) of
            none -> [];
            Members -> [{undefined, atoll_name_free:id(), Members}]
        end,
    Shared ++ [{Name, Id, Members} || Published =/= none, {Name, Id, Members} <- Published].

%% The groups of this node are others, or their members are.
regroup(#{groups := Old, peers := Peers} = State0) ->
    Own = own_groups(State0),
    New = maps:from_list([{Id, maps:from_keys(Members, [])} || {_, Id, Members} <- Own]),
    Names = maps:from_list([{Name, Id} || {Name, Id, _} <- Own]),
    Up = atoll_sessions:connected(Peers),
    Gone = lists:sort(maps:keys(maps:without(maps:keys(New), Old))),
    Changed = [Id || {Id, Members} <- lists:sort(maps:to_list(New)), maps:get(Id, Old, none) =/= Members],
    State1 = lists:foldl(
        fun(Id, S) -> part(Id, members(Id, Old, Up), S) end, State0#{groups := New, names := Names}, Gone
    ),
    State2 = lists:foldl(fun(Id, S) -> change(Id, members(Id, Old, Up), members(Id, New, Up), S) end, State1, Changed),
    heard_again(asks_no_more(State2)).

members(Id, Groups, Up) ->
    Members = maps:get(Id, Groups, #{}),
    [Peer || Peer <- Up, is_map_key(Peer, Members)].

%% The group has other members.
change(Id, Before, After, State0) ->
    Left = Before -- After,
    State1 = push_all(Left, {forget, Id}, State0),
    #{ops := Ops} = State2 = settle_all(Id, lists:foldl(fun(Peer, S) -> share(Id, Peer, S) end, State1, After -- Before)),
    Refs = atoll_name_ops:all(fun(#{id := I}) -> I =:= Id end, Ops),
    lists:foldl(fun({Ref, Peer}, S) -> heard(Ref, Peer, S) end, State2, [{R, P} || R <- Refs, P <- Left]).

%% This node is in the group no more.
part(Id, Peers, #{ops := Ops} = State0) ->
    State1 = push_all(Peers, {forget, Id}, State0),
    End = fun
        (#{phase := dropping} = Op, S) -> finish(ok, Op, S);
        (#{kind := Kind} = Op, S) -> give_up({no, remote_group(Kind)}, Op, S)
    end,
    #{table := Table} = State2 = each(End, atoll_name_ops:all(fun(#{id := I}) -> I =:= Id end, Ops), State1),
    State = lists:foldl(
        fun(Name, S) ->
            case own_entry(Id, Name, S) of
                none -> S;
                _ -> drop_for([], Id, Name, S)
            end
        end,
        State2,
        atoll_name_table:own(Id, Table)
    ),
    settle_all(Id, State).

settle_all(Id, #{table := Table, ops := Ops} = State) ->
    Names = lists:usort(maps:keys(atoll_name_table:slots(Id, Table)) ++ atoll_name_ops:waited(Id, Ops)),
    lists:foldl(fun(Name, S) -> settle(Id, Name, S) end, State, Names).

%% A node that is no member any more does nothing for callers here.
asks_no_more(#{asks := Asks} = State) ->
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

%% An unresponsive node is a co-member now: it is waited for as the others are.
heard_again(#{peers := Peers} = State) ->
    Unresponsive = [Peer || Peer <- atoll_sessions:unresponsive(Peers), shares_group(Peer, State), not atoll_sessions:is_absent(Peer, Peers)],
    lists:foldl(fun up/2, State#{peers := atoll_sessions:absent_only(fun(Peer) -> shares_group(Peer, State) end, Peers)}, Unresponsive).

%% The state

%% A node that knows of no group and no name.
new(#{self := Self, incarnation := Incarnation, options := #{free := Free} = Options}, Now) ->
    #{
        self => Self,
        options => Options,
        now => Now,
        %% What was meant for this process's earlier life has other numbers.
        last => Incarnation,
        free => atoll_name_free:new(Free, Options),
        published => none,
        groups => #{},
        names => #{},
        peers => atoll_sessions:new(Incarnation, Options),
        table => atoll_name_table:new(),
        pids => atoll_name_pids:new(),
        ops => atoll_name_ops:new(),
        asks => #{},
        counters => #{},
        effects => []
    }.

%% What it had for effects. A caller must find the table as its answer says: replies
%% come last.
done(#{now := Now, peers := Peers0} = State) ->
    {Timers, Peers} = atoll_sessions:timers(Now, Peers0),
    #{effects := Newest} = Done = effects(Timers, State#{peers := Peers}),
    {Replies, Others} = lists:partition(fun is_reply/1, lists:reverse(Newest)),
    {Done#{effects := []}, Others ++ Replies}.

is_reply({reply, _, _}) -> true;
is_reply(_) -> false.

%% One more effect.
effect(Effect, #{effects := Effects} = State) -> State#{effects := [Effect | Effects]}.

%% Some more, in this order.
effects(New, #{effects := Effects} = State) -> State#{effects := lists:reverse(New, Effects)}.

%% Once more.
count(Counter, #{counters := Counters} = State) ->
    State#{counters := maps:update_with(Counter, fun(N) -> N + 1 end, 1, Counters)}.

%% A number that was not used before, by an earlier life neither.
number(#{last := Last} = State) -> {Last + 1, State#{last := Last + 1}}.

%% Something to say to that peer, if it is there.
-spec push(node(), item(), state()) -> state().
push(Peer, Item, #{peers := Peers} = State) ->
    State#{peers := atoll_sessions:push(Peer, Item, Peers)}.

%% The same to these.
-spec push_all([node()], item(), state()) -> state().
push_all(To, Item, #{peers := Peers} = State) ->
    State#{peers := lists:foldl(fun(Peer, P) -> atoll_sessions:push(Peer, Item, P) end, Peers, To)}.

%% Whether that node is a member of this group of ours.
is_member(Id, Node, #{groups := Groups}) ->
    case Groups of
        #{Id := #{Node := []}} -> true;
        #{} -> false
    end.

%% Whether it is connected and may speak.
is_up(Node, #{peers := Peers}) -> atoll_sessions:is_up(Node, Peers).

%% Both.
is_live(Id, Node, State) -> is_member(Id, Node, State) andalso is_up(Node, State).

%% Whether it may speak, and is not silent.
is_waited_for(Node, #{peers := Peers} = State) ->
    is_up(Node, State) andalso not atoll_sessions:is_silent(Node, Peers).

%% The live members, without this node, sorted.
live(Id, #{groups := Groups, peers := Peers}) ->
    [Node || Node <- lists:sort(maps:keys(maps:get(Id, Groups, #{}))), atoll_sessions:is_up(Node, Peers)].

%% Whether it is a member of any of this node's groups.
shares_group(Node, #{groups := Groups}) ->
    lists:any(fun(Members) -> is_map_key(Node, Members) end, maps:values(Groups)).

%% What is known of that name.
slot(Id, Name, #{table := Table}) -> atoll_name_table:slot(Id, Name, Table).

%% This is known of it now.
set_slot(Id, Name, Slot, #{table := Table} = State) ->
    State#{table := atoll_name_table:set(Id, Name, Slot, Table)}.

%% The entry of this node.
own_entry(Id, Name, #{self := Self} = State) -> atoll_name_slot:find(Self, slot(Id, Name, State)).

%% There is one now.
owns(Id, Name, #{table := Table} = State) -> State#{table := atoll_name_table:owns(Id, Name, Table)}.

%% There is none any more.
owns_not(Id, Name, #{table := Table} = State) -> State#{table := atoll_name_table:owns_not(Id, Name, Table)}.

%% A process of this node has that in the group.
has(Pid, Id, What, #{pids := Pids0} = State) ->
    {Effects, Pids} = atoll_name_pids:has(Pid, Id, What, Pids0),
    effects(Effects, State#{pids := Pids}).

%% It has nothing there.
has_not(Pid, Id, #{pids := Pids0} = State) ->
    {Effects, Pids} = atoll_name_pids:has_not(Pid, Id, Pids0),
    effects(Effects, State#{pids := Pids}).

%% The operation of that number, which is under way.
op(Ref, #{ops := Ops}) -> atoll_name_ops:get(Ref, Ops).

%% What has become of an operation.
store(Op, #{ops := Ops} = State) -> State#{ops := atoll_name_ops:store(Op, Ops)}.

%% Whether another operation may begin.
has_room(#{ops := Ops, asks := Asks, options := #{max_operations := Max}}) ->
    atoll_name_ops:size(Ops) + map_size(Asks) < Max.
