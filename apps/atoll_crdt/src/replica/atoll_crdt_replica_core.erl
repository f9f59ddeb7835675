%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A replica: named objects of this node, and how its neighbours in the overlay come to the same. Pure.
%%
%% There are three ways, `how':
%% <dl>
%% <dt>`state'</dt><dd>Each `interval_ms' all objects go to each neighbour, whole, and it acknowledges them.</dd>
%% <dt>`delta'</dt><dd>Each `interval_ms' a neighbour gets what it has not acknowledged, of each object one delta: algorithm 2
%%   of Almeida, Shoker and Baquero. What came from a neighbour does not go back to it, and what goes on of a delta
%%   is what was new here ({@link atoll_crdt:difference/2}). A neighbour that is new, or lacks a delta that is forgotten
%%   ({@link atoll_crdt_buffer}), is told a hash of each object; it asks for those that differ, and gets their
%%   states.</dd>
%% <dt>`broadcast'</dt><dd>A delta goes to all members at once, by a broadcast of the overlay. Each `interval_ms' hashes go to one neighbour,
%%   as above, which brings what was missed.</dd>
%% </dl>
%% A message names the sender's life, a number that no other replica has: one that was started anew has lost what it
%% acknowledged before.
%%
%% A replica may go `offline'. It says good-bye, and its neighbours leave it alone until it says hello. It goes on
%% changing its objects.
%%
%% A neighbour that leaves unanswered what it was told is told the next thing later and later ({@link atoll_crdt_peers}), and that has all that was new meanwhile.
%%
%% Promised: when nothing changes any more, all replicas that are linked by neighbours that are on line become equal, whatever
%% was lost, came twice or came late. What is kept for neighbours is bounded and counted.
%%
%% That a name has one type each node checks for itself. Where two have given it different ones at once, the one that is later by its name stays, and what was done with the other is gone.
%%
%% Not promised: a bound on the size of an object, nor an order between the changes of two objects. A state travels whole.
-module(atoll_crdt_replica_core).
-behaviour(atoll_protocol).

-export([options/0, init/2, handle/3, value/2, object/2, names/1, summary/1]).

-export_type([config/0, state/0, name/0, message/0, notice/0]).

-type name() :: term().
%% Of an object.

-type life() :: atoll_crdt_peers:life().

-type config() :: #{self := node(), life := life(), seed := integer(), options := atoll_options:options()}.

-type message() :: {life(), body()}.

-type number_of() :: atoll_crdt_peers:number_of().

-type body() ::
    %% Whole objects; to be acknowledged with that number, unless it is 0.
    {state, number_of(), [{name(), atoll_crdt:crdt()}]}
    %% What of them is new up to that number.
    | {delta, number_of(), [{name(), atoll_crdt:crdt()}]}
    %% Hashes of all objects at that number.
    | {digest, number_of(), [{name(), non_neg_integer()}]}
    %% The objects that differ from those hashes.
    | {wanted, number_of(), [name()]}
    %% All is here up to that number, which was that life's.
    | {ack, life(), number_of()}
    %% On line again; off line.
    | hello
    | bye.

-type notice() ::
    %% An object is another than before, by a change of this node or of one that told it.
    {changed, name()}.

-record(state, {
    self :: node(),
    life :: life(),
    options :: atoll_options:options(),
    objects = #{} :: #{name() => atoll_crdt:crdt()},
    %% The neighbours.
    peers = atoll_crdt_peers:new() :: atoll_crdt_peers:peers(),
    is_online = true :: boolean(),
    buffer :: atoll_crdt_buffer:buffer(),
    intervals = 0 :: number_of(),
    %% Of each kind of message how many were sent, and their bytes.
    sent = #{} :: #{atom() => {non_neg_integer(), non_neg_integer()}},
    counts = #{merged => 0, redundant => 0, fallbacks => 0, refused => 0, unheard => 0} :: #{atom() => non_neg_integer()},
    rand :: rand:state()
}).

-opaque state() :: #state{}.

%% @doc The options with their defaults; times are in milliseconds.
-spec options() -> atoll_options:known().
options() ->
    #{
        how => {{one_of, [state, delta, broadcast]}, delta},
        %% A quarter more or less.
        interval_ms => {pos_integer, 1000},
        %% Objects at most.
        objects_max => {pos_integer, 1000},
        %% Deltas that are kept for neighbours, and their bytes.
        buffer_max => {pos_integer, 1000},
        buffer_bytes => {pos_integer, 1048576},
        %% Broadcasts that may wait for the process.
        queue_max => {pos_integer, 1000}
    }.

%% @doc Without objects and neighbours.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, life := Life, seed := Seed, options := Given}, _Now) ->
    {ok, #{buffer_max := Max, buffer_bytes := Bytes} = Options} = atoll_options:complete(?MODULE, Given),
    tick_timer(#state{
        self = Self, life = Life, options = Options, buffer = atoll_crdt_buffer:new(Max, Bytes), rand = rand:seed_s(exsss, Seed)
    }).

%% @doc Takes one event. `up' and `down' are of neighbours. Casts are `{update, Name, Type, Operation}' and
%% `{online, IsOnline}', where nobody needs an answer; `{told, Name, Delta}', a broadcast, and `{missed, N}', that some of those are not to be had. Calls: `{update, Name, Type, Operation}' is answered
%% with `ok' or with an error; `{value, Name}' with `{ok, Value}' or `none'; `{online, IsOnline}' with `ok'; `status' with the
%% summary. The deed `{broadcast, {Name, Delta}}' is to broadcast that.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({call, From, {update, Name, Type, Operation}}, _Now, State0) ->
    {Answer, State, Effects} = update(Name, Type, Operation, State0),
    {State, [{reply, From, Answer} | Effects]};
handle({call, From, {value, Name}}, _Now, State) ->
    {State, [{reply, From, value(Name, State)}]};
handle({call, From, {online, IsOnline}}, _Now, State0) ->
    {State, Effects} = online(IsOnline, State0),
    {State, [{reply, From, ok} | Effects]};
handle({cast, {update, Name, Type, Operation}}, _Now, State0) ->
    {ok, State, Effects} = update(Name, Type, Operation, State0),
    {State, Effects};
handle({cast, {online, IsOnline}}, _Now, State) ->
    online(IsOnline, State);
handle({call, From, status}, _Now, State) ->
    {State, [{reply, From, summary(State)}]};
handle({up, Node}, _Now, #state{peers = Peers, is_online = IsOnline} = State) ->
    Word =
        case IsOnline of
            true -> hello;
            false -> bye
        end,
    send_all(Word, [Node], State#state{peers = atoll_crdt_peers:up(Node, Peers)});
handle({down, Node, _Why}, _Now, #state{peers = Peers} = State) ->
    {State#state{peers = atoll_crdt_peers:down(Node, Peers)}, []};
handle({cast, _}, _Now, #state{is_online = false} = State) ->
    {count(unheard, State), []};
handle({cast, {told, Name, Delta}}, _Now, State) ->
    merge_all([{Name, Delta}], none, State);
handle({cast, {missed, _}}, _Now, #state{peers = Peers} = State) ->
    one_digest(atoll_crdt_peers:due(Peers), State);
handle({timeout, tick}, _Now, #state{is_online = false} = State) ->
    {State, []};
handle({timeout, tick}, _Now, State0) ->
    {State1, Effects} = tick(State0),
    {State, Timer} = tick_timer(State1),
    {State, Effects ++ Timer};
handle({message, _, _}, _Now, #state{is_online = false} = State) ->
    {count(unheard, State), []};
handle({message, From, {Life, Body}}, _Now, #state{peers = Peers} = State) ->
    heard(From, Life, Body, State#state{peers = atoll_crdt_peers:speaks(From, Life, Body, Peers)}).

%% @doc What a user sees of an object.
-spec value(name(), state()) -> {ok, term()} | none.
value(Name, State) ->
    case object(Name, State) of
        none -> none;
        Object -> {ok, atoll_crdt:value(Object)}
    end.

%% @doc The object itself.
-spec object(name(), state()) -> atoll_crdt:crdt() | none.
object(Name, #state{objects = Objects}) -> maps:get(Name, Objects, none).

%% @doc The names of all objects, in order.
-spec names(state()) -> [name()].
names(#state{objects = Objects}) -> lists:sort(maps:keys(Objects)).

%% @doc For people: `sent', of each kind of message how many and how many `bytes'; deltas and states that were `merged', and those
%% that were known (`redundant'); neighbours that had to be told hashes because deltas were forgotten (`fallbacks'); objects that
%% were `refused', being too many or of another type; what came while this replica was off line (`unheard'); what the buffer
%% holds (`buffered', `buffered_bytes') and has `forgotten' before all neighbours had it; `objects' and `neighbours'.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{sent = Sent, counts = Counts, objects = Objects, peers = Peers, buffer = Buffer}) ->
    maps:merge(maps:merge(Counts, atoll_crdt_buffer:figures(Buffer)), #{
        sent => maps:map(fun(_, {Messages, Bytes}) -> #{messages => Messages, bytes => Bytes} end, Sent),
        objects => map_size(Objects),
        neighbours => length(atoll_crdt_peers:nodes(Peers))
    }).

%% Changes of this node

update(Name, Type, Operation, #state{life = Life, self = Self, is_online = IsOnline, options = #{how := How}} = State) ->
    case known(Name, Type, State) of
        {ok, Object} ->
            case atoll_crdt:update(Operation, Life, Object) of
                {ok, Next, Delta} ->
                    {Changed, Effects} = put_object(Name, Object, Next, Delta, Self, State),
                    {ok, Changed, Effects ++ [{act, {broadcast, {Name, Delta}}} || How =:= broadcast, IsOnline, Effects =/= []]};
                {error, Error} ->
                    {{error, {crdt, Error}}, State, []}
            end;
        {error, _} = Error ->
            {Error, State, []}
    end.

known(Name, Type, #state{objects = Objects, options = #{objects_max := Max}}) ->
    case Objects of
        #{Name := Object} ->
            case atoll_crdt:type(Object) of
                Type -> {ok, Object};
                Other -> {error, {other_type, Name, Other, Type}}
            end;
        #{} when map_size(Objects) < Max ->
            case lists:member(Type, atoll_crdt:types()) of
                true -> {ok, atoll_crdt:new(Type)};
                false -> {error, {no_such_type, Type}}
            end;
        #{} ->
            {error, {too_many_objects, Max}}
    end.

%% With what of it is new to be handed on, and not to whom it came from.
put_object(_, Object, Object, _, _, State) ->
    {State, []};
put_object(Name, Object, Next, Told, From, #state{objects = Objects, buffer = Buffer, options = #{how := How}} = State) ->
    Kept =
        case How of
            delta -> atoll_crdt_buffer:add(Name, atoll_crdt:difference(Told, Object), From, Buffer);
            _ -> Buffer
        end,
    {State#state{objects = Objects#{Name => Next}, buffer = Kept}, [{notify, {changed, Name}}]}.

online(IsOnline, #state{is_online = IsOnline} = State) ->
    {State, []};
online(false, #state{peers = Peers} = State0) ->
    {State, Effects} = send_all(bye, atoll_crdt_peers:nodes(Peers), State0),
    {State#state{is_online = false}, [{cancel, tick} | Effects]};
online(true, #state{peers = Peers} = State0) ->
    %% What they have answered meanwhile it did not hear.
    {State1, Effects} = send_all(hello, atoll_crdt_peers:nodes(Peers), State0#state{is_online = true, peers = atoll_crdt_peers:anew(Peers)}),
    {State, Timer} = tick_timer(State1),
    {State, Effects ++ Timer}.

%% Each interval

tick_timer(#state{options = #{interval_ms := Ms}, rand = Rand0} = State) ->
    {Extra, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    {State#state{rand = Rand}, [{timer, tick, max(1, Ms - Ms div 4 + Extra - 1)}]}.

tick(#state{intervals = N, peers = Peers, options = #{how := How}} = State) ->
    tell(How, atoll_crdt_peers:due(Peers), State#state{intervals = N + 1, peers = atoll_crdt_peers:rested(Peers)}).

tell(state, Due, #state{objects = Objects} = State) when map_size(Objects) > 0 ->
    awaiting(Due, send_all({state, newest(State), all(State)}, Due, State));
tell(state, _, State) ->
    {State, []};
tell(delta, Due, State0) ->
    {State, Effects} = lists:foldl(
        fun(Node, {S0, Acc}) ->
            {S, Sends} = awaiting([Node], what_it_lacks(Node, S0)),
            {S, Acc ++ Sends}
        end,
        {State0, []},
        Due
    ),
    {forget(State), Effects};
tell(broadcast, Due, State) ->
    one_digest(Due, State).

%% Of what was sent just now, if anything was, answers are to come.
awaiting(_, {State, []}) ->
    {State, []};
awaiting(Nodes, {#state{peers = Peers} = State, Sends}) ->
    {State#state{peers = atoll_crdt_peers:told(Nodes, newest(State), Peers)}, Sends}.

all(#state{objects = Objects}) -> lists:sort(maps:to_list(Objects)).

what_it_lacks(Node, #state{peers = Peers, buffer = Buffer} = State) ->
    Newest = newest(State),
    case atoll_crdt_peers:acked(Node, Peers) of
        %% It may have got no hello, and may have nothing to say.
        stranger -> send_all(hello, [Node], State);
        unknown -> tell_digest(Node, State);
        Newest -> {State, []};
        Acked ->
            case atoll_crdt_buffer:since(Acked, Node, Buffer) of
                {ok, []} -> {State#state{peers = atoll_crdt_peers:has(Node, Newest, Peers)}, []};
                {ok, Deltas} -> send_all({delta, Newest, Deltas}, [Node], State);
                gone -> tell_digest(Node, count(fallbacks, State#state{peers = atoll_crdt_peers:lost(Node, Peers)}))
            end
    end.

tell_digest(Node, #state{objects = Objects} = State) ->
    case map_size(Objects) of
        0 -> {State, []};
        _ -> send_all({digest, newest(State), [{Name, atoll_crdt:hash(Object)} || {Name, Object} <- all(State)]}, [Node], State)
    end.

one_digest([], State) ->
    {State, []};
one_digest(Nodes, #state{rand = Rand0} = State) ->
    {N, Rand} = rand:uniform_s(length(Nodes), Rand0),
    Node = lists:nth(N, Nodes),
    awaiting([Node], tell_digest(Node, State#state{rand = Rand})).

newest(#state{buffer = Buffer, options = #{how := delta}}) -> atoll_crdt_buffer:newest(Buffer);
newest(#state{intervals = N}) -> N.

%% What all neighbours have acknowledged is needed by nobody. Who is off line comes back with what it had, so it is waited
%% for, as far as the buffer goes; who has acknowledged nothing gets states.
forget(#state{peers = Peers, buffer = Buffer} = State) ->
    State#state{buffer = atoll_crdt_buffer:acknowledged(atoll_crdt_peers:least(newest(State), Peers), Buffer)}.

%% What neighbours say

heard(From, Life, {What, Number, Objects}, State0) when What =:= state; What =:= delta ->
    {State1, Notices} = merge_all(Objects, From, State0),
    {State2, Effects} = answer(From, What, Objects, State1),
    {State, Acks} = acknowledge(From, Life, Number, State2),
    {State, Notices ++ Effects ++ Acks};
heard(From, Life, {digest, Number, Hashes}, State) ->
    case [Name || {Name, Hash} <- Hashes, differs(Name, Hash, State)] of
        [] -> acknowledge(From, Life, Number, State);
        Differ -> send_all({wanted, Number, Differ}, [From], State)
    end;
heard(From, _, {wanted, Number, Names}, #state{objects = Objects} = State) ->
    send_all({state, Number, lists:sort(maps:to_list(maps:with(Names, Objects)))}, [From], State);
heard(From, _, {ack, Life, Number}, #state{life = Life, peers = Peers} = State) when Number > 0 ->
    {State#state{peers = atoll_crdt_peers:acknowledges(From, Number, Peers)}, []};
heard(_, _, {ack, _, _}, State) ->
    {State, []};
heard(From, Life, hello, #state{options = #{how := How}} = State) ->
    case How of
        %% So that it knows whom it talks to.
        delta -> send_all({ack, Life, 0}, [From], State);
        broadcast -> tell_digest(From, State);
        state -> {State, []}
    end;
heard(_, _, bye, State) ->
    {State, []}.

differs(Name, Hash, State) ->
    case object(Name, State) of
        none -> true;
        Object -> atoll_crdt:hash(Object) =/= Hash
    end.

acknowledge(_, _, 0, State) -> {State, []};
acknowledge(From, Life, Number, State) -> send_all({ack, Life, Number}, [From], State).

%% A state that was asked for says what the other side has: what it lacks goes back at once. With deltas it goes by itself.
answer(From, state, Objects, #state{options = #{how := broadcast}} = State) ->
    case [{Name, Own} || {Name, Theirs} <- Objects, Own <- [object(Name, State)], Own =/= none, Own =/= Theirs] of
        [] -> {State, []};
        More -> send_all({state, 0, More}, [From], State)
    end;
answer(_, _, _, State) ->
    {State, []}.

merge_all(Objects, From, State) ->
    lists:foldl(
        fun({Name, Theirs}, {S0, Acc}) ->
            case own(Name, Theirs, S0) of
                {ok, Object} ->
                    {S, Notices} = put_object(Name, Object, atoll_crdt:join(Object, Theirs), Theirs, From, S0),
                    {count(of_notices(Notices), S), Acc ++ Notices};
                {error, _} ->
                    {count(refused, S0), Acc}
            end
        end,
        {State, []},
        Objects
    ).

%% What somebody else's is joined with. Of two types that nodes have given one name at once the later one by name stays, everywhere.
own(Name, Theirs, State) ->
    Type = atoll_crdt:type(Theirs),
    case known(Name, Type, State) of
        {error, {other_type, Name, Has, Type}} when Type > Has -> {ok, atoll_crdt:new(Type)};
        Known -> Known
    end.

of_notices([]) -> redundant;
of_notices([_]) -> merged.

%% Sending

send_all(_, [], State) ->
    {State, []};
send_all(Body, Nodes, #state{life = Life, sent = Sent} = State) ->
    Message = {Life, Body},
    Kind = kind(Body),
    {Messages, Bytes} = maps:get(Kind, Sent, {0, 0}),
    Count = length(Nodes),
    {
        State#state{sent = Sent#{Kind => {Messages + Count, Bytes + Count * erlang:external_size(Message)}}},
        [{send, Node, Message} || Node <- Nodes]
    }.

kind(Body) when is_atom(Body) -> Body;
kind(Body) -> element(1, Body).

count(Count, #state{counts = Counts} = State) ->
    #{Count := N} = Counts,
    State#state{counts = Counts#{Count := N + 1}}.
