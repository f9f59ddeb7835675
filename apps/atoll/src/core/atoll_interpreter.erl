%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Runs a pure protocol against the real world: one process per instance.
%%
%% The interpreter performs the effects that mean the same for every protocol
%% (messages, timers, replies, notices). What only one protocol knows is done by
%% its process module, which implements this behaviour: `act/2' performs the other
%% effects, `event/2' turns a message that reached the process into an event.
%% Of peers that are connected in hiding the protocol hears as {@link atoll_hidden} says.
%%
%% Promises:
%% <ul>
%% <li>It never waits for another node, nor for a process that waits for one: but for the disk
%%   while it records to a file ({@link atoll_recording} says how long), and, where `act/2' does
%%   so, for processes of this node that wait for nobody (the carrier's, when a room says whom
%%   it needs). A send to a node that is not
%%   connected is dropped and counted; it never makes a connection ({@link atoll_protocol} says so to the
%%   protocols). Where the connection is full one message waits for room, in a process of
%%   its own, and what is sent behind it until then is dropped and counted: so messages stay in
%%   their order, and of a connection that is full all the time each moment in which it is
%%   not carries one. So two nodes cannot wait for each other here.</li>
%% <li>A message that neither it nor the process module knows ends the process:
%%   that is a fault of ours.</li>
%% <li>With each peer the protocol speaks the newest version that both have
%%   ({@link atoll_versions}). That a peer has none in common is logged once for a connection;
%%   what is not said to it, or not read from it, is counted. Other protocols go on with it.</li>
%% <li>Recording costs nothing while it is off, and is bounded while it is on. One
%%   that goes to a file and cannot be written ends with a line in the log; the
%%   protocol goes on. The event that a process dies of is in no recording.</li>
%% </ul>
%% It does not bound its own message queue, nor what it sends to subscribers. Its
%% senders are local callers, each waiting for one answer, the rooms above, which
%% say a thing when it changes, and the peers' protocols, which bound what they
%% have in flight; a subscriber has to read.
-module(atoll_interpreter).

-behaviour(gen_server).

-export([start_link/1, call/2, ask/2, asking/2, cast/2, subscribe/1, unsubscribe/1]).
-export([record/2, recording/1, counters/1, versions/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0, counters/0]).

-type options() :: #{
    %% The registered name, the same on every node: peers are reached by it.
    name := atom(),
    protocol := module(),
    %% Implements this behaviour.
    process := module(),
    %% Given to the protocol's init/2.
    config := term(),
    %% Of the process among those of this node; default normal.
    priority => normal | high
}.

-type counters() :: #{
    sent := non_neg_integer(),
    %% Of these, those that had to wait for room.
    waited := non_neg_integer(),
    received := non_neg_integer(),
    %% Sends that were dropped: no connection; a congested one.
    dropped_noconnection := non_neg_integer(),
    dropped_busy := non_neg_integer(),
    %% Messages of a version that this node does not have, and sends to who has no version
    %% in common with it.
    dropped_version := non_neg_integer()
}.

%% Opens what the process needs; runs before the protocol's init/2.
-callback open(Config :: term()) -> World :: term().
%% Performs a want, an unwant or an act.
-callback act(atoll_protocol:effect(), World) -> World.
%% Makes an event of a message to the process. An unknown one must crash.
-callback event(Message :: term(), World) ->
    {[atoll_hidden:outside()], World}.
%% A notice of the protocol, before its subscribers get it: to publish what it says.
-callback notice(Notice :: term(), World) -> World.
-optional_callbacks([notice/2]).

-record(state, {
    name :: atom(),
    protocol :: module(),
    process :: module(),
    %% Whether the process module publishes notices.
    publishes :: boolean(),
    %% The protocol's own state.
    inner :: term(),
    %% The process module's.
    world :: term(),
    %% Who speaks which versions, and whether there is something to do for that.
    versions :: atoll_versions:versions(),
    encodes :: boolean(),
    decodes :: boolean(),
    %% Who is connected in hiding, or has no version in common.
    hidden = atoll_hidden:new() :: atoll_hidden:hidden(),
    %% Those to whom a message waits for room.
    full = #{} :: #{node() => []},
    %% Key => the reference of the timer that runs for it; or it is due.
    timers = #{} :: #{term() => due | reference()},
    %% Timers of no time that were set by this event, newest first.
    due = [] :: [Key :: term()],
    %% Subscriber => the monitor on it.
    subscribers = #{} :: #{pid() => reference()},
    counters :: counters(),
    recording = off ::
        off
        | {on, Room :: non_neg_integer(), atoll_protocol:recording()}
        | {file, atoll_recording:writer()}
        %% It could not be written any more.
        | {failed, atoll_recording:error()}
}).

%% @doc Starts the process of one protocol under its name.
-spec start_link(options()) -> gen_server:start_ret().
start_link(#{name := Name} = Options) ->
    gen_server:start_link({local, Name}, ?MODULE, Options, []).

%% @doc Puts a request to the protocol and waits for its reply. The protocol
%% bounds how long that takes.
-spec call(atom() | pid(), Request :: term()) -> Answer :: term().
call(Server, Request) ->
    gen_server:call(Server, {protocol, Request}, infinity).

%% @doc The same for callers outside of the rooms, who are told why there is nobody to answer.
-spec ask(atom(), Request :: term()) -> {ok, Answer :: term()} | {error, not_running | restarting}.
ask(Room, Request) ->
    asking(Room, fun() -> call(Room, Request) end).

%% @doc What a function answers that calls the process of a room, this one's or another. A room has a
%% table of its name, which the supervisor keeps as long as the application runs: so who finds
%% no process knows why. Where the process ends in the midst of the request nobody knows how
%% far it got: `restarting' too.
-spec asking(atom(), fun(() -> Answer)) -> {ok, Answer} | {error, not_running | restarting}.
asking(Room, Fun) ->
    try
        {ok, Fun()}
    catch
        exit:{_, {gen_server, call, _}} ->
            case ets:whereis(Room) of
                undefined -> {error, not_running};
                _ -> {error, restarting}
            end
    end.

%% @doc Tells the protocol that something happened.
-spec cast(atom() | pid(), Notice :: term()) -> ok.
cast(Server, Notice) ->
    gen_server:cast(Server, {protocol, Notice}).

%% @doc From now on the caller gets `{atoll, Name, Notice}' for each notice of
%% the protocol called Name. Subscribing twice is the same as once.
-spec subscribe(atom()) -> ok.
subscribe(Server) ->
    gen_server:call(Server, {subscribe, self()}).

%% @doc Ends the caller's subscription.
-spec unsubscribe(atom()) -> ok.
unsubscribe(Server) ->
    gen_server:call(Server, {unsubscribe, self()}).

%% @doc Records the next events with their effects, forgetting what was recorded
%% before: `Max' of them in memory, or `MaxBytes' of them in a file. `off' ends it,
%% and says of a file what it holds.
-spec record(atom(), Max :: pos_integer() | {file, file:filename_all(), MaxBytes :: pos_integer()} | off) ->
    ok | {ok, atoll_recording:held()} | {error, atoll_recording:error()}.
record(Server, How) ->
    %% A disk may be slow.
    gen_server:call(Server, {record, How}, infinity).

%% @doc What was recorded in memory so far; or what the file holds so far.
-spec recording(atom()) ->
    {ok, atoll_protocol:recording()}
    | {file, atoll_recording:held()}
    | {error, not_recording | atoll_recording:error()}.
recording(Server) ->
    gen_server:call(Server, recording).

%% @doc What was sent, received and dropped since the start.
-spec counters(atom()) -> counters().
counters(Server) ->
    gen_server:call(Server, counters).

%% @doc In which version the protocol speaks with whom, or which versions those have with whom it
%% has none in common. Who is not there has said nothing of it: with those it is version 1, or the
%% oldest that there is.
-spec versions(atom()) -> #{node() => atoll_versions:version() | {none, atoll_versions:theirs()}}.
versions(Server) ->
    gen_server:call(Server, versions).

%% @private
-spec init(options()) -> {ok, #state{}}.
init(#{name := Name, protocol := Protocol, process := Process, config := Config} = Options) ->
    _ = process_flag(priority, maps:get(priority, Options, normal)),
    World = Process:open(Config),
    {Inner, Effects} = Protocol:init(Config, now_ms()),
    Counters = #{
        sent => 0,
        waited => 0,
        received => 0,
        dropped_noconnection => 0,
        dropped_busy => 0,
        dropped_version => 0
    },
    State = #state{
        name = Name,
        protocol = Protocol,
        process = Process,
        publishes = erlang:function_exported(Process, notice, 2),
        versions = atoll_versions:new(node(), wire(Protocol)),
        encodes = erlang:function_exported(Protocol, encode, 2),
        decodes = erlang:function_exported(Protocol, decode, 2),
        inner = Inner,
        world = World,
        counters = Counters
    },
    {ok, handled(perform(Effects, State))}.

wire(Protocol) ->
    case erlang:function_exported(Protocol, wire, 0) of
        true -> Protocol:wire();
        false -> {1, 1}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({protocol, Request}, From, State) ->
    {noreply, handled(handle({call, From, Request}, State))};
handle_call({subscribe, Pid}, _From, #state{subscribers = Subscribers} = State) ->
    case Subscribers of
        #{Pid := _} ->
            {reply, ok, State};
        #{} ->
            Ref = erlang:monitor(process, Pid),
            {reply, ok, State#state{subscribers = Subscribers#{Pid => Ref}}}
    end;
handle_call({unsubscribe, Pid}, _From, #state{subscribers = Subscribers} = State) ->
    case maps:take(Pid, Subscribers) of
        {Ref, Rest} ->
            true = erlang:demonitor(Ref, [flush]),
            {reply, ok, State#state{subscribers = Rest}};
        error ->
            {reply, ok, State}
    end;
handle_call({record, off}, _From, State) ->
    {Answer, Off} = record_off(State),
    {reply, Answer, Off};
handle_call({record, {file, Path, MaxBytes}}, _From, State) ->
    {_, Off} = record_off(State),
    #state{protocol = Protocol, inner = Inner} = Off,
    Otp = erlang:system_info(otp_release),
    Head = #{protocol => Protocol, state => Inner, node => node(), otp => Otp},
    case atoll_recording:open(Path, MaxBytes, Head) of
        {ok, Writer} -> {reply, ok, Off#state{recording = {file, Writer}}};
        {error, _} = Error -> {reply, Error, Off}
    end;
handle_call({record, Max}, _From, State) ->
    {_, #state{protocol = Protocol, inner = Inner} = Off} = record_off(State),
    Recording = #{protocol => Protocol, state => Inner, events => [], lost => 0},
    {reply, ok, Off#state{recording = {on, Max, Recording}}};
handle_call(recording, _From, #state{recording = off} = State) ->
    {reply, {error, not_recording}, State};
handle_call(recording, _From, #state{recording = {failed, Error}} = State) ->
    {reply, {error, Error}, State};
handle_call(recording, _From, #state{recording = {file, Writer}} = State) ->
    {reply, {file, atoll_recording:held(Writer)}, State};
handle_call(recording, _From, #state{recording = {on, _, Recording}} = State) ->
    #{events := Newest} = Recording,
    {reply, {ok, Recording#{events := lists:reverse(Newest)}}, State};
handle_call(counters, _From, #state{counters = Counters} = State) ->
    {reply, Counters, State};
handle_call(versions, _From, #state{versions = Versions} = State) ->
    {reply, atoll_versions:peers(Versions), State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({protocol, Notice}, State) ->
    {noreply, handled(handle({cast, Notice}, State))}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({atoll, Envelope, Peer, Wire}, #state{versions = Versions0} = State0) when
    is_integer(Envelope), Envelope > 0
->
    {Reading, Effects, Versions} = atoll_versions:in(Peer, Envelope, Versions0),
    State = agree(Effects, State0#state{versions = Versions}),
    case Reading of
        {read, Version} -> {noreply, handled(happened({message, Peer, decode(Wire, Version, State)}, count(received, State)))};
        hello -> {noreply, handled(State)};
        unread -> {noreply, handled(count(dropped_version, State))}
    end;
handle_info({timeout, Ref, {?MODULE, Key}}, #state{timers = Timers} = State) ->
    case Timers of
        #{Key := Ref} ->
            {noreply, handled(handle({timeout, Key}, State#state{timers = maps:remove(Key, Timers)}))};
        #{} ->
            %% It fired while it was being cancelled or set again.
            {noreply, State}
    end;
handle_info({'DOWN', Ref, process, Pid, _} = Down, #state{subscribers = Subscribers} = State) ->
    case Subscribers of
        #{Pid := Ref} -> {noreply, State#state{subscribers = maps:remove(Pid, Subscribers)}};
        #{} -> {noreply, handle_other(Down, State)}
    end;
handle_info({{?MODULE, put, Peer}, _Ref, process, _Pid, _}, #state{full = Full} = State) ->
    {noreply, State#state{full = maps:remove(Peer, Full)}};
handle_info(Message, State) ->
    {noreply, handle_other(Message, State)}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, State) ->
    _ = record_off(State),
    ok.

handle_other(Message, #state{process = Process, world = World0} = State) ->
    {Events, World} = Process:event(Message, World0),
    handled(lists:foldl(fun happened/2, State#state{world = World}, Events)).

happened({down, Peer, _} = Down, #state{versions = Versions} = State) ->
    told(Down, State#state{versions = atoll_versions:down(Peer, Versions)});
happened(Outside, State) ->
    told(Outside, State).

told(Outside, #state{hidden = Hidden0} = State) ->
    {Events, Hidden} = atoll_hidden:events(Outside, Hidden0),
    lists:foldl(fun handle/2, State#state{hidden = Hidden}, Events).

handle(Event, #state{protocol = Protocol, inner = Inner0} = State) ->
    Now = now_ms(),
    {Inner, Effects} = Protocol:handle(Event, Now, Inner0),
    perform(Effects, remember({Event, Now, Effects}, State#state{inner = Inner})).

remember(_Entry, #state{recording = off} = State) ->
    State;
remember(_Entry, #state{recording = {on, 0, #{lost := Lost} = Recording}} = State) ->
    State#state{recording = {on, 0, Recording#{lost := Lost + 1}}};
remember(Entry, #state{recording = {on, Room, #{events := Events} = Recording}} = State) ->
    State#state{recording = {on, Room - 1, Recording#{events := [Entry | Events]}}};
remember(Entry, #state{recording = {file, Writer0}} = State) ->
    case atoll_recording:add(Entry, Writer0) of
        {ok, Writer} -> State#state{recording = {file, Writer}};
        {error, Error} -> record_failed(Error, State)
    end;
remember(_Entry, #state{recording = {failed, _}} = State) ->
    State.

record_failed(Error, #state{name = Name} = State) ->
    Why = unicode:characters_to_list(atoll_recording:format_error(Error)),
    logger:warning(#{what => recording_ended, protocol => Name, why => Why}),
    State#state{recording = {failed, Error}}.

record_off(#state{recording = {file, Writer}} = State) ->
    case atoll_recording:close(Writer) of
        {ok, _} = Held ->
            {Held, State#state{recording = off}};
        {error, Error} ->
            {{error, Error}, (record_failed(Error, State))#state{recording = off}}
    end;
record_off(#state{recording = {failed, Error}} = State) ->
    {{error, Error}, State#state{recording = off}};
record_off(State) ->
    {ok, State#state{recording = off}}.

perform(Effects, State) ->
    lists:foldl(fun perform_one/2, State, Effects).

perform_one({send, Peer, Message}, #state{versions = Versions0} = State) ->
    {Effects, Versions} = atoll_versions:out(Peer, Message, Versions0),
    Agreed = agree(Effects, State#state{versions = Versions}),
    case lists:keymember(put, 1, Effects) of
        true -> Agreed;
        false -> count(dropped_version, Agreed)
    end;
perform_one({timer, Key, 0}, State) ->
    #state{timers = Timers, due = Due} = Cancelled = cancel(Key, State),
    Cancelled#state{timers = Timers#{Key => due}, due = [Key | Due]};
perform_one({timer, Key, Ms}, State) ->
    #state{timers = Timers} = Cancelled = cancel(Key, State),
    Ref = erlang:start_timer(Ms, self(), {?MODULE, Key}),
    Cancelled#state{timers = Timers#{Key => Ref}};
perform_one({cancel, Key}, State) ->
    cancel(Key, State);
perform_one({reply, From, Answer}, State) ->
    gen_server:reply(From, Answer),
    State;
perform_one({notify, Notice}, #state{name = Name, subscribers = Subscribers} = State) ->
    Published = publish(Notice, State),
    maps:foreach(fun(Pid, _) -> Pid ! {atoll, Name, Notice} end, Subscribers),
    Published;
perform_one(Effect, #state{process = Process, world = World} = State) ->
    State#state{world = Process:act(Effect, World)}.

%% Does what follows from what is known of a peer's versions.
agree([], State) ->
    State;
agree([{hello, Peer, Envelope} | Effects], State0) ->
    case transmit(Peer, Envelope, [], State0) of
        {ok, State} ->
            agree(Effects, State);
        {Why, #state{versions = Versions} = State} ->
            %% Messages that come after it make sense after it alone.
            {Puts, Others} = lists:partition(fun(Effect) -> element(1, Effect) =:= put end, Effects),
            Untold = State#state{versions = atoll_versions:untold(Peer, Versions)},
            agree(Others, lists:foldl(fun(_, S) -> count(dropped(Why), S) end, Untold, Puts))
    end;
agree([{put, Peer, Envelope, Version, Message} | Effects], State0) ->
    case transmit(Peer, Envelope, encode(Message, Version, State0), State0) of
        {ok, State} -> agree(Effects, count(sent, State));
        {Why, State} -> agree(Effects, count(dropped(Why), State))
    end;
agree([{apart, Peer, Theirs} | Effects], #state{name = Name, versions = Versions} = State) ->
    Ours = atoll_versions:own(Versions),
    logger:warning(#{
        what => no_common_version,
        protocol => Name,
        peer => Peer,
        ours => Ours,
        theirs => Theirs,
        why => unicode:characters_to_list(atoll_versions:format(Theirs, Ours))
    }),
    agree(Effects, told({apart, Peer}, State));
agree([{together, Peer} = Together | Effects], #state{name = Name} = State) ->
    logger:notice(#{what => common_version, protocol => Name, peer => Peer}),
    agree(Effects, told(Together, State)).

transmit(Peer, _Envelope, _Wire, #state{full = Full} = State) when is_map_key(Peer, Full) ->
    {nosuspend, State};
transmit(Peer, Envelope, Wire, #state{name = Name, full = Full} = State) ->
    To = {Name, Peer},
    Message = {atoll, Envelope, node(), Wire},
    case erlang:send(To, Message, [noconnect, nosuspend]) of
        nosuspend ->
            %% It ends when there is room, or when the connection does. Those who fill the
            %% connection wait for room too.
            _ = spawn_opt(fun() -> erlang:send(To, Message, [noconnect]) end, [{monitor, [{tag, {?MODULE, put, Peer}}]}, {priority, high}]),
            {ok, count(waited, State#state{full = Full#{Peer => []}})};
        Sent ->
            {Sent, State}
    end.

dropped(noconnect) -> dropped_noconnection;
dropped(nosuspend) -> dropped_busy.

encode(Message, _Version, #state{encodes = false}) -> Message;
encode(Message, Version, #state{protocol = Protocol}) -> Protocol:encode(Message, Version).

decode(Wire, _Version, #state{decodes = false}) -> Wire;
decode(Wire, Version, #state{protocol = Protocol}) -> Protocol:decode(Wire, Version).

%% A timer of no time comes after what is in the mailbox already, and at once if there is
%% nothing. The runtime would take a millisecond or more for it, and a message to
%% oneself is as much work as one of a peer's.
handled(#state{due = []} = State) ->
    State;
handled(#state{due = Due} = State) ->
    {message_queue_len, Waiting} = erlang:process_info(self(), message_queue_len),
    Keys = lists:reverse(Due),
    case Waiting of
        0 -> handled(lists:foldl(fun now_due/2, State#state{due = []}, Keys));
        _ -> lists:foldl(fun later_due/2, State#state{due = []}, Keys)
    end.

now_due(Key, #state{timers = Timers} = State) ->
    case Timers of
        #{Key := due} -> handle({timeout, Key}, State#state{timers = maps:remove(Key, Timers)});
        %% It was cancelled, or set anew.
        #{} -> State
    end.

later_due(Key, #state{timers = Timers} = State) ->
    case Timers of
        #{Key := due} ->
            Ref = make_ref(),
            _ = self() ! {timeout, Ref, {?MODULE, Key}},
            State#state{timers = Timers#{Key := Ref}};
        #{} ->
            State
    end.

publish(_Notice, #state{publishes = false} = State) ->
    State;
publish(Notice, #state{process = Process, world = World} = State) ->
    State#state{world = Process:notice(Notice, World)}.

cancel(Key, #state{timers = Timers} = State) ->
    case maps:take(Key, Timers) of
        {due, Rest} ->
            State#state{timers = Rest};
        {Ref, Rest} ->
            _ = erlang:cancel_timer(Ref, [{async, true}, {info, false}]),
            State#state{timers = Rest};
        error ->
            State
    end.

count(Counter, #state{counters = Counters} = State) ->
    #{Counter := N} = Counters,
    State#state{counters = Counters#{Counter := N + 1}}.

now_ms() ->
    erlang:monotonic_time(millisecond).
