%% @doc The state of the protocol of names ({@link atoll_name_core}): its parts, each with
%% a module that keeps it whole, and the small steps that concern more than one of
%% them or have effects. No decisions are made here.
-module(atoll_name_state).

-export([new/2, at/2, done/1, effect/2, effects/2, count/2, number/1]).
-export([push/3, push_all/3, is_member/3, is_up/2, is_live/3, live/2, is_waited_for/2, shares_group/2]).
-export([slot/3, set_slot/4, own_entry/3, owns/3, owns_not/3, has/4, has_not/3]).
-export([op/2, store/2, has_room/1]).

-export_type([state/0, options/0, id/0, name/0, ref/0]).

-type id() :: atoll_group_view:id().
-type name() :: term().
-type ref() :: pos_integer().

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

-type state() :: #{
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
    peers := atoll_name_peers:peers(),
    table := atoll_name_table:table(),
    pids := atoll_name_pids:pids(),
    ops := atoll_name_ops:ops(),
    %% Calls that another node does for us.
    asks := #{ref() => {node(), id(), atoll_name_ops:kind(), atoll_protocol:from()}},
    counters := #{atom() => non_neg_integer()},
    %% Of this event so far, newest first.
    effects := [atoll_protocol:effect()]
}.

%% @doc A node that knows of no group and no name.
-spec new(#{self := node(), incarnation := non_neg_integer(), options := options(), _ => _}, atoll_protocol:now_ms()) -> state().
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
        peers => atoll_name_peers:new(Incarnation, Options),
        table => atoll_name_table:new(),
        pids => atoll_name_pids:new(),
        ops => atoll_name_ops:new(),
        asks => #{},
        counters => #{},
        effects => []
    }.

%% @doc An event happens at that time.
-spec at(atoll_protocol:now_ms(), state()) -> state().
at(Now, State) -> State#{now := Now}.

%% @doc What it had for effects. A caller must find the table as its answer says: replies
%% come last.
-spec done(state()) -> {state(), [atoll_protocol:effect()]}.
done(#{now := Now, peers := Peers0} = State) ->
    {Timers, Peers} = atoll_name_peers:timers(Now, Peers0),
    #{effects := Newest} = Done = effects(Timers, State#{peers := Peers}),
    {Replies, Others} = lists:partition(fun is_reply/1, lists:reverse(Newest)),
    {Done#{effects := []}, Others ++ Replies}.

is_reply({reply, _, _}) -> true;
is_reply(_) -> false.

%% @doc One more effect.
-spec effect(atoll_protocol:effect(), state()) -> state().
effect(Effect, #{effects := Effects} = State) -> State#{effects := [Effect | Effects]}.

%% @doc Some more, in this order.
-spec effects([atoll_protocol:effect()], state()) -> state().
effects(New, #{effects := Effects} = State) -> State#{effects := lists:reverse(New, Effects)}.

%% @doc Once more.
-spec count(atom(), state()) -> state().
count(Counter, #{counters := Counters} = State) ->
    State#{counters := maps:update_with(Counter, fun(N) -> N + 1 end, 1, Counters)}.

%% @doc A number that was not used before, by an earlier life neither.
-spec number(state()) -> {ref(), state()}.
number(#{last := Last} = State) -> {Last + 1, State#{last := Last + 1}}.

%% @doc Something to say to that peer, if it is there.
-spec push(node(), atoll_name_core:item(), state()) -> state().
push(Peer, Item, #{peers := Peers} = State) ->
    State#{peers := atoll_name_peers:push(Peer, Item, Peers)}.

%% @doc The same to these.
-spec push_all([node()], atoll_name_core:item(), state()) -> state().
push_all(To, Item, #{peers := Peers} = State) ->
    State#{peers := lists:foldl(fun(Peer, P) -> atoll_name_peers:push(Peer, Item, P) end, Peers, To)}.

%% @doc Whether that node is a member of this group of ours.
-spec is_member(id(), node(), state()) -> boolean().
is_member(Id, Node, #{groups := Groups}) ->
    case Groups of
        #{Id := #{Node := []}} -> true;
        #{} -> false
    end.

%% @doc Whether it is connected and may speak.
-spec is_up(node(), state()) -> boolean().
is_up(Node, #{peers := Peers}) -> atoll_name_peers:is_up(Node, Peers).

%% @doc Both.
-spec is_live(id(), node(), state()) -> boolean().
is_live(Id, Node, State) -> is_member(Id, Node, State) andalso is_up(Node, State).

%% @doc Whether it may speak, and is not silent.
-spec is_waited_for(node(), state()) -> boolean().
is_waited_for(Node, #{peers := Peers} = State) ->
    is_up(Node, State) andalso not atoll_name_peers:is_silent(Node, Peers).

%% @doc The live members, without this node, sorted.
-spec live(id(), state()) -> [node()].
live(Id, #{groups := Groups, peers := Peers}) ->
    [Node || Node <- lists:sort(maps:keys(maps:get(Id, Groups, #{}))), atoll_name_peers:is_up(Node, Peers)].

%% @doc Whether it is a member of any of this node's groups.
-spec shares_group(node(), state()) -> boolean().
shares_group(Node, #{groups := Groups}) ->
    lists:any(fun(Members) -> is_map_key(Node, Members) end, maps:values(Groups)).

%% @doc What is known of that name.
-spec slot(id(), name(), state()) -> atoll_name_slot:slot().
slot(Id, Name, #{table := Table}) -> atoll_name_table:slot(Id, Name, Table).

%% @doc This is known of it now.
-spec set_slot(id(), name(), atoll_name_slot:slot(), state()) -> state().
set_slot(Id, Name, Slot, #{table := Table} = State) ->
    State#{table := atoll_name_table:set(Id, Name, Slot, Table)}.

%% @doc The entry of this node.
-spec own_entry(id(), name(), state()) -> none | atoll_name_slot:entry().
own_entry(Id, Name, #{self := Self} = State) -> atoll_name_slot:find(Self, slot(Id, Name, State)).

%% @doc There is one now.
-spec owns(id(), name(), state()) -> state().
owns(Id, Name, #{table := Table} = State) -> State#{table := atoll_name_table:owns(Id, Name, Table)}.

%% @doc There is none any more.
-spec owns_not(id(), name(), state()) -> state().
owns_not(Id, Name, #{table := Table} = State) -> State#{table := atoll_name_table:owns_not(Id, Name, Table)}.

%% @doc A process of this node has that in the group.
-spec has(pid(), id(), atoll_name_pids:what(), state()) -> state().
has(Pid, Id, What, #{pids := Pids0} = State) ->
    {Effects, Pids} = atoll_name_pids:has(Pid, Id, What, Pids0),
    effects(Effects, State#{pids := Pids}).

%% @doc It has nothing there.
-spec has_not(pid(), id(), state()) -> state().
has_not(Pid, Id, #{pids := Pids0} = State) ->
    {Effects, Pids} = atoll_name_pids:has_not(Pid, Id, Pids0),
    effects(Effects, State#{pids := Pids}).

%% @doc The operation of that number, which is under way.
-spec op(ref(), state()) -> atoll_name_ops:op().
op(Ref, #{ops := Ops}) -> atoll_name_ops:get(Ref, Ops).

%% @doc What has become of an operation.
-spec store(atoll_name_ops:op(), state()) -> state().
store(Op, #{ops := Ops} = State) -> State#{ops := atoll_name_ops:store(Op, Ops)}.

%% @doc Whether another operation may begin.
-spec has_room(state()) -> boolean().
has_room(#{ops := Ops, asks := Asks, options := #{max_operations := Max}}) ->
    atoll_name_ops:size(Ops) + map_size(Asks) < Max.
