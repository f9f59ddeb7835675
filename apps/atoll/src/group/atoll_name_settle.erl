%% @doc What has to be true of a name, and the operations that wait for it: the part
%% of {@link atoll_name_core} that decides. The argument for it is there.
%%
%% It is one module because it is one knot: whatever happens to a name ends in
%% settle/3, which makes true what has to be true of it and moves whoever waits for it, and what
%% moves happens to the name again. What the steps are about has modules of its own: the
%% slot of a name, the operations, what the processes have, clashes.
-module(atoll_name_settle).

-export([settle/3, call/7, answered/3, remote_group/1, start/7, give_up/3, wait/2, back_off/2, finish/3]).
-export([progress/2, heard/3, handed/5, drop/3, drop_for/4, lose/6, decided/3, recover/2]).

-import(atoll_name_state, [
    count/2, effect/2, has/4, has_not/3, has_room/1, is_live/3, is_member/3, is_up/2, is_waited_for/2, live/2, number/1,
    own_entry/3, owns/3, owns_not/3, push/3, push_all/3, set_slot/4, slot/3, store/2
]).

-type state() :: atoll_name_state:state().
-type id() :: atoll_name_state:id().
-type name() :: atoll_name_state:name().
-type ref() :: atoll_name_state:ref().
-type op() :: atoll_name_ops:op().
-type kind() :: atoll_name_ops:kind().
-type answer() :: atoll_name_core:answer().

%% How long an operation backs off after it gave way to a node it is not connected with.
-define(BACK_OFF_MIN_MS, 10).
-define(BACK_OFF_MAX_MS, 200).

%% Calls

%% @doc A caller here wants that. An `external' process, on no member, is this node's affair.
-spec call(kind() | external, atom(), name(), none | pid(), Meta :: term(), atoll_protocol:from(), state()) -> state().
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

%% @doc What another node has said to a call that it did for us.
-spec answered(ref(), answer(), state()) -> state().
answered(Ref, Answer, #{asks := Asks0} = State) ->
    case maps:take(Ref, Asks0) of
        {{_, _, _, From}, Asks} ->
            effect({reply, From, Answer}, effect({cancel, {ask, Ref}}, State#{asks := Asks}));
        error ->
            State
    end.

%% Operations at the owner

%% @doc One begins, or is refused.
-spec start(kind(), id(), name(), none | pid(), Meta :: term(), atoll_name_ops:asker(), state()) -> state().
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

%% @doc It waits for the name; settle/3 moves it.
-spec wait(op(), state()) -> state().
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

%% @doc It goes on if it has all it needs: what it awaits, but from silent members.
-spec progress(ref(), state()) -> state().
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

%% @doc It ends with this answer, and what it has done is taken back.
-spec give_up(answer(), op(), state()) -> state().
give_up(Answer, #{phase := putting, id := Id, name := Name} = Op0, State0) ->
    {Op, State} = withdraw(Op0, State0),
    settle(Id, Name, finish(Answer, Op, State));
give_up(Answer, #{phase := dropping} = Op, State) ->
    finish(Answer, Op, State);
give_up(Answer, #{id := Id, name := Name} = Op, State) ->
    settle(Id, Name, finish(Answer, Op, State)).

%% @doc It gives way to a node that this one is not connected with, and tries again.
-spec back_off(op(), state()) -> state().
back_off(#{ref := Ref, id := Id, name := Name, retries := Retries} = Op0, State0) ->
    {Op, State} = withdraw(Op0, State0),
    Ms = min(?BACK_OFF_MAX_MS, ?BACK_OFF_MIN_MS bsl min(Retries, 10)),
    settle(Id, Name, effect({timer, {back_off, Ref}, Ms}, store(Op#{retries := Retries + 1}, State))).

%% @doc It ends with this answer.
-spec finish(answer(), op(), state()) -> state().
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

%% @doc A peer has said what that operation waits for.
-spec heard(ref(), node(), state()) -> state().
heard(Ref, Peer, #{ops := Ops} = State) ->
    case atoll_name_ops:find(Ref, Ops) of
        {ok, #{await := Await} = Op} -> progress(Ref, store(Op#{await := maps:remove(Peer, Await)}, State));
        none -> State
    end.

%% @doc The holder gave the name up for this node: who waits to take it does so before
%% anybody else can.
-spec handed(id(), name(), ref(), node(), state()) -> state().
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

%% @doc This node's process loses its name.
-spec drop(id(), name(), state()) -> state().
drop(Id, Name, State) ->
    drop(Id, Name, live(Id, State), none, State).

%% @doc The same, and these are told.
-spec drop_for([node()], id(), name(), state()) -> state().
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

%% @doc A process has a name since this process's earlier life. As after a partition: it
%% holds what it held, and a clash is resolved when it meets.
-spec recover({Group :: atom(), name(), pid(), Meta :: term()}, state()) -> state().
recover({Group, Name, Pid, Meta}, #{names := Names, self := Self} = State0) ->
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

%% @doc Makes it true.
-spec settle(id(), name(), state()) -> state().
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
            Refused = lists:foldl(fun(E, S) -> refuse(Id, Name, E, S) end, State, Behind),
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
            effect({act, {insert, Group, Name, Pid, Meta}}, set_slot(Id, Name, atoll_name_slot:show(Self, Slot), State))
    end.

update(Id, Name, Entry, State) ->
    set_slot(Id, Name, atoll_name_slot:update(Entry, slot(Id, Name, State)), State).

yield(#{ref := Number}, #{ops := Ops} = State0) ->
    {ok, Op0} = atoll_name_ops:of_entry(Number, Ops),
    {Op, State} = withdraw(Op0, count(yielded, State0)),
    wait(Op, State).

refuse(Id, Name, #{owner := Owner, ref := Ref, committed := false, firm := false}, State0) ->
    Slot = atoll_name_slot:remove(Owner, slot(Id, Name, State0)),
    push(Owner, {taken, Id, Name, Ref}, set_slot(Id, Name, Slot, State0));
refuse(_Id, _Name, _HeldOrGiven, State) ->
    %% What was given the name waits: the last holder's word is on its way.
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

%% @doc What a rule's function has said, if both are still there.
-spec decided(atoll_name_clash:key(), Winner :: term(), state()) -> state().
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

%% @doc This node's process has lost the name, in a clash with that other one.
-spec lose(id(), name(), Winner :: none | pid(), Other :: pid(), exit | notify, state()) -> state().
lose({Group, _} = Id, Name, Winner, Other, How, State) ->
    #{pid := Pid, meta := Meta} = own_entry(Id, Name, State),
    Conflict = {name_conflict, Group, Name, Winner},
    Deed =
        case How of
            notify -> {tell, Pid, atoll_name_rules:told(Meta, Group, Name, Winner, Other), Conflict};
            exit -> {kill, Pid, Conflict}
        end,
    effect({act, Deed}, drop(Id, Name, count(lost, State))).
