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
%% way to nobody but a holder, and takes the old one's place in each table at once. So nobody
%% can register the name in between, also if the holder's `del' comes late.
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
%% This module takes the events and what peers say. What has to be true of a name, and
%% the operations, are in {@link atoll_name_settle}; who comes and goes in {@link
%% atoll_name_members}; the state and its parts in {@link atoll_name_state}.
-module(atoll_name_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3, remote_group/1]).

-export_type([config/0, options/0, state/0, message/0, item/0, request/0, answer/0, reason/0, counters/0]).

-import(atoll_name_state, [effect/2, is_live/3, is_up/2, is_waited_for/2, live/2, own_entry/3, push/3, set_slot/4, shares_group/2, slot/3, store/2]).
-import(atoll_name_settle, [answered/3, give_up/3, heard/3, back_off/2, settle/3]).

-type config() :: #{
    self := node(),
    %% When this process started, in microseconds: makes its numbers unique, of which it
    %% uses fewer than one in each.
    incarnation := non_neg_integer(),
    options := options(),
    %% This node's groups, and the names of processes here from an earlier life of the process.
    published => [atoll_group_rules:published()],
    held => [{Group :: atom(), name(), pid(), Meta :: term()}]
}.

-type options() :: atoll_name_state:options().
-type id() :: atoll_name_state:id().
-type name() :: atoll_name_state:name().
-type ref() :: atoll_name_state:ref().
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

-type message() :: atoll_name_channel:wire().

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

-opaque state() :: atoll_name_state:state().

%% @doc A node that is connected with nobody.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{published := Published, held := Held} = Config, Now) ->
    State = atoll_name_members:groups(Published, atoll_name_state:new(Config, Now)),
    atoll_name_state:done(lists:foldl(fun atoll_name_settle:recover/2, State, Held));
init(Config, Now) ->
    {atoll_name_state:new(Config, Now), []}.

%% @doc Takes one event. Casts are `{groups, Groups}' (what the group room publishes), `{making, boolean()}' (whether this node, being
%% free, makes a group), `{died, Pid}', `{absent, Node}' (this does not run on that node, which was silent) and
%% `{decided, Key, Winner}' (what a rule's function said).
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle(Event, Now, State) ->
    atoll_name_state:done(event(Event, atoll_name_state:at(Now, State))).

%% @doc Why not, at a node that is not in the group.
-spec remote_group(register) -> cannot_register_in_remote_group;
    (re_register) -> cannot_re_register_in_remote_group;
    (unregister) -> cannot_unregister_from_remote_group.
remote_group(Kind) -> atoll_name_settle:remote_group(Kind).

event({call, From, free_nodes}, #{groups := Groups} = State) ->
    effect({reply, From, lists:sort(maps:keys(maps:get(atoll_name_free:id(), Groups, #{})))}, State);
event({call, From, bye}, #{peers := Peers} = State) ->
    effect({reply, From, ok}, atoll_name_state:push_all(atoll_name_peers:connected(Peers), bye, State));
event({call, From, info}, State) ->
    effect({reply, From, info(State)}, State);
event({call, From, {unregister, Group, Name}}, State) ->
    atoll_name_settle:call(unregister, Group, Name, none, none, From, State);
event({call, From, {Kind, Group, Name, Pid, Meta}}, State) ->
    atoll_name_settle:call(Kind, Group, Name, Pid, Meta, From, State);
event({message, Peer, Wire}, State0) ->
    {Items, State} = atoll_name_members:take(Wire, Peer, State0),
    lists:foldl(fun(Item, S) -> item(Item, Peer, S) end, State, Items);
event({up, Peer}, #{peers := Peers} = State) ->
    case atoll_name_peers:is_up(Peer, Peers) of
        true -> State;
        false -> atoll_name_members:up(Peer, State)
    end;
event({down, Peer, _Reason}, State) ->
    atoll_name_members:down(Peer, State);
event({cast, {groups, Groups}}, State) ->
    atoll_name_members:groups(Groups, State);
event({cast, {making, Flag}}, State) ->
    atoll_name_members:making(Flag, State);
event({cast, {absent, Peer}}, State) ->
    atoll_name_members:found_absent(Peer, State);
event({cast, {died, Pid}}, State) ->
    died(Pid, State);
event({cast, {decided, Key, Winner}}, State) ->
    atoll_name_settle:decided(Key, Winner, State);
event({timeout, flush}, State) ->
    atoll_name_members:flush(State);
event({timeout, tick}, State) ->
    atoll_name_members:tick(State);
event({timeout, {unresponsive, Peer}}, State) ->
    atoll_name_members:up(Peer, State);
event({timeout, {seek, Node}}, State) ->
    atoll_name_members:free(fun(Free) -> atoll_name_free:give_up(Node, Free) end, State);
event({timeout, remind}, State) ->
    atoll_name_members:free(fun atoll_name_free:remind/1, State);
event({timeout, {op, Ref}}, State) ->
    case atoll_name_state:op(Ref, State) of
        %% The name is gone here, and from all that could be reached.
        #{phase := dropping} = Op -> atoll_name_settle:finish(ok, Op, State);
        Op -> give_up({no, timeout}, Op, State)
    end;
event({timeout, {back_off, Ref}}, State) ->
    atoll_name_settle:wait(atoll_name_state:op(Ref, State), State);
event({timeout, {ask, Ref}}, #{asks := Asks} = State) ->
    #{Ref := {Node, _, _, _}} = Asks,
    answered(Ref, {no, timeout}, push(Node, {cancel, Ref}, State)).

died(Pid, #{pids := Pids} = State) ->
    lists:foldl(
        fun
            ({Id, {name, Name}}, S) -> atoll_name_settle:drop(Id, Name, S);
            ({_Id, {op, Ref}}, S) -> give_up({no, no_process}, atoll_name_state:op(Ref, S), S)
        end,
        State,
        atoll_name_pids:all(Pid, Pids)
    ).

info(#{ops := Ops, asks := Asks, table := Table, counters := Counters}) ->
    {Names, Own} = atoll_name_table:sizes(Table),
    Counters#{operations => atoll_name_ops:size(Ops), asks => map_size(Asks), names => Names, own => Own}.

%% What peers say

-spec item(item(), node(), atoll_name_state:state()) -> atoll_name_state:state().
item({hello, Shares}, Peer, State) ->
    atoll_name_members:said(Peer, Shares, State);
item(bye, Peer, State) ->
    atoll_name_members:absent(Peer, State);
item({look_for, Node}, _Peer, State) ->
    case is_up(Node, State) andalso shares_group(Node, State) of
        true -> effect({act, {look_for, Node}}, State);
        false -> State
    end;
item({know, Nodes}, _Peer, #{self := Self} = State) ->
    atoll_name_members:free(fun(Free) -> atoll_name_free:told(Self, Nodes, Free) end, State);
item({{over, Owner, Number}, Id, Name, Ref, Pid, Meta, Tag}, Peer, State) ->
    Entry = atoll_name_slot:entry(firm, Peer, Ref, Pid, Meta),
    Slot = atoll_name_slot:replace({Owner, Number}, Entry#{ack := Tag}, slot(Id, Name, State)),
    settle(Id, Name, set_slot(Id, Name, Slot, State));
item({How, Id, Name, Ref, Pid, Meta, Tag}, Peer, State) when How =:= put; How =:= firm ->
    Entry = atoll_name_slot:entry(How, Peer, Ref, Pid, Meta),
    atoll_name_members:enter(Id, Name, Entry#{ack := Tag}, State);
item({have, Id, Name, Ref, Pid, Meta}, Peer, State) ->
    atoll_name_members:enter(Id, Name, atoll_name_slot:entry(held, Peer, Ref, Pid, Meta), State);
item({ack, Number, Tag}, Peer, #{ops := Ops} = State) ->
    case atoll_name_ops:of_entry(Number, Ops) of
        {ok, #{ref := Ref, await := #{Peer := Tag}}} -> heard(Ref, Peer, State);
        %% Of an entry that was taken back; or to one that was sent before.
        _ -> State
    end;
item({taken, Id, Name, Number}, Peer, State) ->
    taken(Id, Name, Number, Peer, State);
item({del, Id, Name, Number, OpRef}, Peer, State0) ->
    State = atoll_name_members:remove(Id, Name, Number, Peer, State0),
    case OpRef of
        none -> State;
        _ -> push(Peer, {gone, OpRef}, State)
    end;
item({gone, Ref}, Peer, State) ->
    heard(Ref, Peer, State);
item({forget, Id}, Peer, State) ->
    atoll_name_members:forget(Id, Peer, State);
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
    atoll_name_settle:handed(Id, Name, Number, Peer, State);
item({drop, Id, Name, Number}, Peer, State) ->
    case is_live(Id, Peer, State) andalso own_entry(Id, Name, State) of
        #{ref := Number, committed := true} ->
            Handed = push(Peer, {handed, Id, Name, Number}, State),
            atoll_name_settle:drop_for(lists:delete(Peer, live(Id, State)), Id, Name, Handed);
        _ ->
            State
    end;
item({lose, Id, Name, Number, Winner, Other, How}, Peer, State) ->
    case is_live(Id, Peer, State) andalso own_entry(Id, Name, State) of
        #{ref := Number, committed := true} -> atoll_name_settle:lose(Id, Name, Winner, Other, How, State);
        _ -> State
    end;
item({ask, Ref, Kind, Id, Name, Pid, Meta}, Peer, State) ->
    atoll_name_settle:start(Kind, Id, Name, Pid, Meta, {remote, Peer, Ref}, State);
item({answer, Ref, Answer}, _Peer, State) ->
    answered(Ref, Answer, State);
item({cancel, Ref}, Peer, #{ops := Ops} = State) ->
    Cancelled = atoll_name_ops:all(fun(#{from := From}) -> From =:= {remote, Peer, Ref} end, Ops),
    lists:foldl(fun(R, S) -> give_up({no, timeout}, atoll_name_state:op(R, S), S) end, State, Cancelled).

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
