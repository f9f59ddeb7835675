%% @doc Peers and groups come and go: with whom this node shares which names. It brings to
%% each new member what is this node's, and forgets what each that is lost has said.
-module(atoll_name_members).

-export([up/2, down/2, absent/2, found_absent/2, take/3, tick/1, flush/1, groups/2, making/2, said/3, free/2, enter/4, remove/5, forget/3]).

-import(atoll_name_state, [
    count/2, effect/2, effects/2, shares_group/2, is_live/3, number/1, own_entry/3, push/3, push_all/3,
    set_slot/4, slot/3, store/2
]).
-import(atoll_name_settle, [answered/3, drop_for/4, finish/3, give_up/3, heard/3, remote_group/1, settle/3]).

-type state() :: atoll_name_state:state().
-type id() :: atoll_name_state:id().
-type name() :: atoll_name_state:name().

%% Peers

%% @doc A peer is connected.
-spec up(node(), state()) -> state().
up(Peer, #{peers := Peers} = State) ->
    case atoll_name_peers:is_absent(Peer, Peers) of
        true -> probe(Peer, State);
        false -> is_there(Peer, State)
    end.

probe(Peer, #{peers := Peers0, now := Now, free := Free} = State) ->
    {Said, Peers} = atoll_name_peers:probe(Peer, {hello, atoll_name_free:shares_with(Peer, Free)}, Now, Peers0),
    silenced(Peer, effects(Said, State#{peers := Peers})).

is_there(Peer, #{peers := Peers0, now := Now, free := Free} = State) ->
    {Effects, Peers} = atoll_name_peers:clear_unresponsive(Peer, Peers0),
    Up = State#{peers := atoll_name_peers:up(Peer, Now, Peers), free := atoll_name_free:met(Peer, Free)},
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
    Shared#{peers := atoll_name_peers:allow(Peer, Peers)}.

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

%% @doc The connection is lost; or it is as good as that.
-spec down(node(), state()) -> state().
down(Peer, #{peers := Peers0} = State) ->
    {Effects, Peers} = atoll_name_peers:clear_unresponsive(Peer, Peers0),
    gone(Peer, effects(Effects, State#{peers := atoll_name_peers:down(Peer, Peers)})).

%% @doc The room does not run there any more, as it says itself: it is no live member.
-spec absent(node(), state()) -> state().
absent(Peer, #{peers := Peers} = State) ->
    silenced(Peer, down(Peer, State#{peers := atoll_name_peers:absent(Peer, Peers)})).

silenced(Peer, #{peers := Peers0} = State) ->
    {Effects, Peers} = atoll_name_peers:leave_alone(Peer, Peers0),
    effects(Effects, State#{peers := Peers}).

%% @doc The room does not run on that node: it is as if it had said so. Whoever had nothing to tell
%% it has not found out.
-spec found_absent(node(), state()) -> state().
found_absent(Peer, #{peers := Peers, groups := Groups} = State) ->
    Members = lists:usort(lists:append([maps:keys(G) || G <- maps:values(Groups), is_map_key(Peer, G)])),
    case {atoll_name_peers:is_up(Peer, Peers) andalso Members =/= [], atoll_name_peers:is_silent(Peer, Peers)} of
        {true, true} -> push_all(Members -- [Peer], {look_for, Peer}, absent(Peer, State));
        {true, false} -> absent(Peer, State);
        {false, _} -> State
    end.

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

%% @doc All that a peer has said in that group is void. Costs a look at each name of the
%% group: the loss of a node is rare.
-spec forget(id(), node(), state()) -> state().
forget(Id, Peer, #{table := Table} = State) ->
    Slots = maps:to_list(atoll_name_table:slots(Id, Table)),
    Said = [{Name, Ref} || {Name, Slot} <- Slots, #{ref := Ref} <- [atoll_name_slot:find(Peer, Slot)]],
    %% The order of a map is another one in each VM.
    lists:foldl(fun({Name, Number}, S) -> remove(Id, Name, Number, Peer, S) end, State, lists:sort(Said)).

%% @doc A peer has an entry.
-spec enter(id(), name(), atoll_name_slot:entry(), state()) -> state().
enter(Id, Name, Entry, State) ->
    settle(Id, Name, set_slot(Id, Name, atoll_name_slot:add(Entry, slot(Id, Name, State)), State)).

%% @doc A peer has that entry no more.
-spec remove(id(), name(), atoll_name_state:ref(), node(), state()) -> state().
remove(Id, Name, Number, Peer, State) ->
    Slot = slot(Id, Name, State),
    case atoll_name_slot:find(Peer, Slot) of
        #{ref := Number} -> settle(Id, Name, set_slot(Id, Name, atoll_name_slot:remove(Peer, Slot), State));
        _ -> State
    end.

%% What they send, and what is sent

%% @doc A message has come: what it says, and what its beginning anew means.
-spec take(atoll_name_channel:wire(), node(), state()) -> {[atoll_name_core:item()], state()}.
take(Wire, Peer, #{peers := Peers0, now := Now} = State) ->
    case atoll_name_peers:is_up(Peer, Peers0) of
        true ->
            {What, Items, Peers} = atoll_name_peers:take(Wire, Peer, Now, Peers0),
            {Items, began(What, Peer, told_of_silence(Peer, Peers0, State#{peers := Peers}))};
        false ->
            case lists:member(Peer, atoll_name_peers:unresponsive(Peers0)) of
                true ->
                    Heard = effect({notify, {heard, Peer}}, State#{peers := atoll_name_peers:present(Peer, Peers0)}),
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

%% @doc What is to be sent is sent.
-spec flush(state()) -> state().
flush(#{peers := Peers0, now := Now} = State) ->
    {Effects, Slow, Peers} = atoll_name_peers:flush(Now, Peers0),
    lists:foldl(fun slow/2, effects(Effects, State#{peers := Peers}), Slow).

%% More waits for it than may: of all that, only what is true now is said.
slow(Peer, #{peers := Peers, now := Now} = State) ->
    Anew = count(said_anew, State#{peers := atoll_name_peers:begin_anew(Peer, Now, Peers)}),
    in_vain(Peer, met(Peer, Anew), dropping).

%% @doc Some time has passed.
-spec tick(state()) -> state().
tick(#{peers := Peers0, now := Now} = State) ->
    {Effects, Silent, Peers} = atoll_name_peers:tick(Now, Peers0),
    Known = [Peer || {Peer, HasSpoken} <- Silent, HasSpoken orelse shares_group(Peer, State)],
    %% What goes on now does so without any of them.
    Told = lists:foldl(
        fun(Peer, S) -> told_of_silence(Peer, Peers0, S) end, effects(Effects, State#{peers := Peers}), Known
    ),
    lists:foldl(fun silent/2, Told, Silent).

told_of_silence(Peer, Before, #{peers := Peers} = State) ->
    case {atoll_name_peers:is_silent(Peer, Before), atoll_name_peers:is_silent(Peer, Peers)} of
        {false, true} -> effect({notify, {silent, Peer}}, count(silent, State));
        {true, false} -> effect({notify, {heard, Peer}}, State);
        {Same, Same} -> State
    end.

%% It holds for true what it has heard, must hear the rest, and is not waited for.
silent({Peer, true}, #{ops := Ops} = State) ->
    Refs = atoll_name_ops:all(fun(#{await := Await}) -> is_map_key(Peer, Await) end, Ops),
    Without = lists:foldl(fun atoll_name_settle:progress/2, State, Refs),
    case shares_group(Peer, State) of
        true -> effect({act, {look_for, Peer}}, Without);
        false -> Without
    end;
%% A shell, a tool, or a node where this does not run.
silent({Peer, false}, State) ->
    case shares_group(Peer, State) of
        true -> absent(Peer, State);
        false -> silenced(Peer, down(Peer, State))
    end.

%% Groups

%% @doc What the group room says of this node's groups.
-spec groups([atoll_group_rules:published()], state()) -> state().
groups(Published, #{free := Before} = State0) ->
    Stand = fun(Free) -> atoll_name_free:stand(Published =:= [], Free) end,
    #{free := Free, peers := Peers} = State = free(Stand, State0#{published := Published}),
    Shares = atoll_name_free:shares(Free),
    case atoll_name_free:shares(Before) of
        Shares -> regroup(State);
        _ -> regroup(push_all(atoll_name_peers:connected(Peers), {hello, Shares}, State))
    end.

%% @doc Whether this node, being free, makes a group.
-spec making(boolean(), state()) -> state().
making(Flag, State) ->
    regroup(free(fun(Free) -> atoll_name_free:making(Flag, Free) end, State)).

%% @doc A peer says whether it shares the namespace of the free nodes.
-spec said(node(), boolean(), state()) -> state().
said(Peer, Shares, State) ->
    regroup(free(fun(Free) -> atoll_name_free:said(Peer, Shares, Free) end, State)).

%% @doc Something happens in the group of the free nodes.
-spec free(fun((atoll_name_free:free()) -> {[atoll_name_free:effect()], atoll_name_free:free()}), state()) -> state().
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
    Up = atoll_name_peers:connected(Peers),
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
    Unresponsive = [Peer || Peer <- atoll_name_peers:unresponsive(Peers), shares_group(Peer, State), not atoll_name_peers:is_absent(Peer, Peers)],
    lists:foldl(fun up/2, State#{peers := atoll_name_peers:absent_only(fun(Peer) -> shares_group(Peer, State) end, Peers)}, Unresponsive).
