%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Acknowledgements of broadcasts, on their way to the sender.
%%
%% A node that delivers a message whose sender wants to know tells the neighbour that the message
%% came from first, and that one its own, so that they go up the tree that the message came down.
%% They are gathered for `ack_ms' on each step: the sender hears from its neighbours, and not
%% from everyone. Where that neighbour is lost the sender itself is told, of all that came through
%% here. Another neighbour would not do: it may have the message by way of this node, and the
%% acknowledgements would go round. That neighbour had the message before this node, so they go in
%% no circle.
%%
%% Any of it may be lost. The sender asks some of those that it has not heard of, each
%% `ask_ms', and they answer it directly, with all that they know. So there are connections of the sender with
%% a few stragglers, and with those that have lost a neighbour meanwhile, for a while.
%%
%% Bounded: a node knows of the last `acks_max' messages that are to be acknowledged, and of each
%% for five times `ask_ms'. What comes of others it does not send on. Of 16 times as many it knows that it has
%% delivered them itself, and says so when it is asked. No more than `waits_max' callers wait.
-module(atoll_plumtree_acks).

-export([new/2, is_full/1, request/5, came/4, delivered/3, received/2, wanted/3, gone/2, lost/3]).
-export([flush/2, ask/3, expired/2, left/1, summary/1, dropped/1]).

-export_type([acks/0, message/0, id/0]).

-type id() :: {Root :: node(), atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq()}.

-type message() ::
    %% These nodes have delivered these messages.
    {acks, [{id(), ordsets:ordset(node())}]}
    %% To a node that is not known to have delivered these messages of the sender.
    | {acks_wanted, [atoll_plumtree_waits:id()]}.

-record(entry, {
    first = none :: none | node(),
    %% Who was told.
    told = none :: none | node(),
    nodes = [] :: ordsets:ordset(node()),
    %% Those of them that are to be told of.
    new = [] :: ordsets:ordset(node())
}).

-record(acks, {
    self :: node(),
    options :: atoll_options:options(),
    entries = #{} :: #{id() => #entry{}},
    %% Their keys, oldest first, and since when there is an entry.
    order = queue:new() :: queue:queue({id(), atoll_protocol:now_ms()}),
    %% What this node has delivered, and the same, oldest first.
    own = #{} :: #{id() => []},
    own_order = queue:new() :: queue:queue(id()),
    %% Whether the timer runs.
    gathers = false :: boolean(),
    waits = atoll_plumtree_waits:new() :: atoll_plumtree_waits:waits(),
    refused = 0 :: non_neg_integer(),
    %% What came of messages without an entry.
    strays = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer()
}).

-opaque acks() :: #acks{}.

%% How many are asked at a time.
-define(ASKED, 16).
%% For how many times ask_ms there is an entry: those who have not been heard of are asked then.
-define(KEPT, 5).
%% How many times as many messages are known as delivered.
-define(OWN, 16).

%% @doc Nothing is to be acknowledged.
-spec new(node(), atoll_options:options()) -> acks().
new(Self, Options) ->
    #acks{self = Self, options = maps:with([ack_ms, ask_ms, acks_max, waits_max], Options)}.

%% @doc Do as many wait as may? The caller is refused then.
-spec is_full(acks()) -> {boolean(), acks()}.
is_full(#acks{waits = Waits, options = #{waits_max := Max}, refused = Refused} = Acks) ->
    case atoll_plumtree_waits:size(Waits) >= Max of
        true -> {true, Acks#acks{refused = Refused + 1}};
        false -> {false, Acks}
    end.

%% @doc Somebody waits for what becomes of an own message, so long at most.
-spec request(
    atoll_plumtree_waits:id(),
    atoll_protocol:from(),
    {atoll_plumtree_waits:need(), Ms :: pos_integer()},
    Members :: [node(), ...],
    acks()
) -> {acks(), [atoll_protocol:effect()]}.
request(Id, From, {Need, Ms}, Members, #acks{self = Self, waits = Waits0, options = #{ask_ms := AskMs}} = Acks) ->
    Waits = atoll_plumtree_waits:start(Id, From, Need, Members, Waits0),
    {Answered, Ended} = ended(atoll_plumtree_waits:acked(Id, [Self], Waits), Acks),
    {Answered, [{timer, {ack, Id}, Ms}, {timer, {ask, Id}, AskMs} | Ended]}.

%% @doc A message that is to be acknowledged has come, from there first.
-spec came(id(), node(), atoll_protocol:now_ms(), acks()) -> acks().
came(Id, First, Now, Acks0) ->
    {Entry, Acks} = begin_entry(Id, Now, Acks0),
    store(Id, Entry#entry{first = First}, Acks).

%% @doc This node has delivered it.
-spec delivered(id(), atoll_protocol:now_ms(), acks()) -> {acks(), [atoll_protocol:effect()]}.
delivered(Id, Now, #acks{self = Self} = Acks0) ->
    {Entry, Acks} = begin_entry(Id, Now, delivered_here(Id, Acks0)),
    add(Id, [Self], Entry, Acks).

delivered_here(Id, #acks{own = Own} = Acks) when is_map_key(Id, Own) ->
    Acks;
delivered_here(Id, #acks{own = Own, own_order = Order, options = #{acks_max := Max}} = Acks) when map_size(Own) < ?OWN * Max ->
    Acks#acks{own = Own#{Id => []}, own_order = queue:in(Id, Order)};
delivered_here(Id, #acks{own = Own, own_order = Order} = Acks) ->
    {{value, Oldest}, Rest} = queue:out(Order),
    delivered_here(Id, Acks#acks{own = maps:remove(Oldest, Own), own_order = Rest}).

%% @doc These have, as a node says.
-spec received([{id(), ordsets:ordset(node())}], acks()) -> {acks(), [atoll_protocol:effect()]}.
received(List, Acks) ->
    lists:foldl(
        fun({Id, Nodes}, {A0, Effects}) ->
            {A, More} = received(Id, Nodes, A0),
            {A, Effects ++ More}
        end,
        {Acks, []},
        List
    ).

received({Self, Life, Seq}, Nodes, #acks{self = Self, waits = Waits} = Acks) ->
    ended(atoll_plumtree_waits:acked({Life, Seq}, Nodes, Waits), Acks);
received(Id, Nodes, #acks{entries = Entries, strays = Strays} = Acks) ->
    case Entries of
        #{Id := Entry} -> add(Id, Nodes, Entry, Acks);
        #{} -> {Acks#acks{strays = Strays + 1}, []}
    end.

add(Id, Nodes, #entry{nodes = Known, new = New} = Entry, Acks) ->
    case ordsets:subtract(Nodes, Known) of
        [] -> {Acks, []};
        More -> gather(store(Id, Entry#entry{nodes = ordsets:union(More, Known), new = ordsets:union(More, New)}, Acks))
    end.

gather(#acks{gathers = true} = Acks) -> {Acks, []};
gather(#acks{options = #{ack_ms := Ms}} = Acks) -> {Acks#acks{gathers = true}, [{timer, acks, Ms}]}.

%% @doc The sender of these asks for what is known of them.
-spec wanted(node(), [atoll_plumtree_waits:id()], acks()) -> [atoll_protocol:effect()].
wanted(Root, Ids, Acks) ->
    Known = [{Id, Nodes} || {Life, Seq} <- Ids, Id <- [{Root, Life, Seq}], [_ | _] = Nodes <- [known(Id, Acks)]],
    [{send, Root, {acks, Known}} || Known =/= []].

known(Id, #acks{self = Self, entries = Entries, own = Own}) ->
    ordsets:union([Self || is_map_key(Id, Own)], (maps:get(Id, Entries, #entry{}))#entry.nodes).

%% @doc A node is no member any more.
-spec gone(node(), acks()) -> {acks(), [atoll_protocol:effect()]}.
gone(Node, #acks{waits = Waits} = Acks) ->
    ended(atoll_plumtree_waits:gone(Node, Waits), Acks).

%% @doc A neighbour is lost: what it was told the sender is told.
-spec lost(node(), atoll_protocol:now_ms(), acks()) -> {acks(), [atoll_protocol:effect()]}.
lost(Node, Now, Acks0) ->
    #acks{entries = Entries} = Acks = forget_old(Now, Acks0),
    Again = maps:map(
        fun(_Id, #entry{told = Told, nodes = Nodes} = Entry) ->
            case Told of
                Node -> Entry#entry{told = none, new = Nodes};
                _ -> Entry
            end
        end,
        Entries
    ),
    case Again of
        Entries -> {Acks, []};
        _ -> gather(Acks#acks{entries = Again})
    end.

%% @doc Sends what was gathered, in one message to each.
-spec flush(Neighbours :: [node()], acks()) -> {acks(), [atoll_protocol:effect()]}.
flush(Up, #acks{entries = Entries} = Acks) ->
    New = [{to(Root, First, Up), Id, Entry} || {{Root, _, _} = Id, #entry{first = First, new = [_ | _]} = Entry} <- lists:sort(maps:to_list(Entries))],
    {
        Acks#acks{
            gathers = false,
            entries = lists:foldl(fun({To, Id, Entry}, All) -> All#{Id := Entry#entry{told = To, new = []}} end, Entries, New)
        },
        [
            {send, To, {acks, [{Id, Nodes} || {Told, Id, #entry{new = Nodes}} <- New, Told =:= To]}}
         || To <- lists:usort([To || {To, _, _} <- New])
        ]
    }.

to(Root, First, Up) ->
    case lists:member(First, Up) of
        true -> First;
        false -> Root
    end.

%% @doc Asks some of those who have not acknowledged this message.
-spec ask(atoll_plumtree_waits:id(), rand:state(), acks()) -> {rand:state(), [atoll_protocol:effect()]}.
ask(Id, Rand0, #acks{waits = Waits, options = #{ask_ms := Ms}}) ->
    case atoll_plumtree_waits:waiting(Id, Waits) of
        [] ->
            {Rand0, []};
        Waiting ->
            {Asked, Rand} = atoll_random:sample(?ASKED, Waiting, Rand0),
            {Rand, [{timer, {ask, Id}, Ms} | [{send, Node, {acks_wanted, [Id]}} || Node <- Asked]]}
    end.

%% @doc The time of a caller is over.
-spec expired(atoll_plumtree_waits:id(), acks()) -> {acks(), [atoll_protocol:effect()]}.
expired(Id, #acks{waits = Waits0} = Acks) ->
    {Ended, Waits} = atoll_plumtree_waits:expired(Id, Waits0),
    ended({[Ended], Waits}, Acks).

%% @doc This node has left: its callers are told so.
-spec left(acks()) -> {acks(), [atoll_protocol:effect()]}.
left(#acks{waits = Waits} = Acks) ->
    ended(atoll_plumtree_waits:left(Waits), Acks).

%% @doc In numbers.
-spec summary(acks()) -> #{acknowledged | waiting | waiting_refused | strays => non_neg_integer()}.
summary(#acks{entries = Entries, waits = Waits, refused = Refused, strays = Strays}) ->
    #{
        acknowledged => map_size(Entries),
        waiting => atoll_plumtree_waits:size(Waits),
        waiting_refused => Refused,
        strays => Strays
    }.

%% @doc How many messages were forgotten for newer ones.
-spec dropped(acks()) -> non_neg_integer().
dropped(#acks{dropped = Dropped}) ->
    Dropped.

ended({Ended, Waits}, Acks) ->
    {
        Acks#acks{waits = Waits},
        lists:append([[{reply, From, Answer}, {cancel, {ack, Id}}, {cancel, {ask, Id}}] || {Id, From, Answer} <- Ended])
    }.

begin_entry(Id, Now, Acks0) ->
    case forget_old(Now, Acks0) of
        #acks{entries = #{Id := Entry}} = Acks -> {Entry, Acks};
        #acks{order = Order} = Acks -> {#entry{}, store(Id, #entry{}, trim(Acks#acks{order = queue:in({Id, Now}, Order)}))}
    end.

store(Id, Entry, #acks{entries = Entries} = Acks) ->
    Acks#acks{entries = Entries#{Id => Entry}}.

trim(#acks{entries = Entries, dropped = Dropped, options = #{acks_max := Max}} = Acks) when map_size(Entries) >= Max ->
    forget_oldest(Acks#acks{dropped = Dropped + 1});
trim(Acks) ->
    Acks.

forget_old(Now, #acks{order = Order, options = #{ask_ms := Ms}} = Acks) ->
    case queue:peek(Order) of
        {value, {_, Since}} when Since + ?KEPT * Ms =< Now -> forget_old(Now, forget_oldest(Acks));
        _ -> Acks
    end.

forget_oldest(#acks{entries = Entries, order = Order} = Acks) ->
    {{value, {Oldest, _}}, Rest} = queue:out(Order),
    Acks#acks{entries = maps:remove(Oldest, Entries), order = Rest}.
