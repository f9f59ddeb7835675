%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process at an end of a circuit: it gives the VM what comes over it, and takes
%% what the VM has for the other node; to the VM it is the connection's distribution
%% controller and its input handler. It runs {@link atoll_dist_circuit}.
%%
%% Before the connection is up what goes over the circuit is Erlang's handshake, packet by
%% packet ({@link atoll_dist_relayed}). The end that opens is started by the process of the
%% connection; the end that accepts is started by the hub when an `open' comes, and once
%% the circuit stands it knocks at the kernel's process like a connection that was
%% accepted.
%%
%% It sends its frames itself, to the hub of the first node of the path. It ends with the
%% connection's process, or with the hub, and the connection with it.
-module(atoll_dist_end).

-export([open/3, accept/5]).
-export([await_up/1, await_place/1, send/2, recv/1, up/3, tick/1]).
-export([init_opener/4, init_acceptor/5, loop/1]).

-record(state, {
    id :: atoll_dist_circuit_frame:id(),
    %% The other end: as it calls itself, and once it is known who that is.
    there :: atoll_dist_circuit_frame:name(),
    node = none :: none | node(),
    role :: opener | acceptor,
    core :: atoll_dist_circuit:state(),
    %% The process of the connection; that end's kernel until it has started one.
    connection = none :: none | pid(),
    %% Whether it is linked with that process, and the circuit stands.
    stands = false :: boolean(),
    %% The way that is known before anybody has to be asked, and who has asked last.
    known = none :: none | [node(), ...],
    asker = none :: none | pid(),
    trunks = #{} :: #{node() => atoll_dist_trunk:trunk()},
    %% Which helper waits for which of them.
    helpers = #{} :: #{reference() => node()},
    timers = #{} :: #{atom() => reference()},
    %% What has come and nobody has taken, and whether somebody waits for it; or it is up.
    phase = {shaking, queue:new(), false} :: {shaking, queue:queue(binary()), boolean()} | {up, erlang:dist_handle()},
    %% Whether the VM may have more now, or will tell.
    vm = tells :: tells | has,
    counters :: counters:counters_ref(),
    began_us :: integer(),
    %% Whether it has, or is to have, a connection of its own: once it is up. The process
    %% that makes it or lets it in, and that of the connection.
    own = none :: none | atoll_dist_own:own(),
    attempt = none :: none | {pid(), reference()},
    link = none :: none | {pid(), reference()},
    %% What was said last when there was no way.
    said = none :: none | unicode:chardata(),
    ended = no :: no | {ended, atoll_dist_circuit_reason:reason()}
}).

%% How much is taken from the VM at once: some of its pieces of large messages, which share
%% payloads.
-define(ROUND, 262144).

%% @doc Starts the end that opens a circuit with a node, over that path, linked to the
%% calling process, which is the connection's.
-spec open(node(), [node(), ...], atoll_dist_config:config()) -> atoll_dist_circuits:circuit().
open(Node, Path, Config) ->
    Counters = atoll_dist_circuits:counters(),
    case atoll_dist_process:start(?MODULE, init_opener, [{self(), Counters}, Node, Path, Config], [link]) of
        Pid when is_pid(Pid) -> {circuit, Pid, Counters}
    end.

%% @doc Starts the end that was opened by who calls itself so, with a frame that came from
%% that neighbour; called by the hub.
-spec accept(
    atoll_dist_circuit_frame:id(), atoll_dist_circuit_frame:name(), node(), binary(), atoll_dist_config:config()
) -> pid().
accept(Id, Opener, Leg, Frame, Config) ->
    case atoll_dist_process:start(?MODULE, init_acceptor, [Id, Opener, Leg, Frame, Config], []) of
        Pid when is_pid(Pid) -> Pid
    end.

%% @doc Waits until the circuit stands. If it does not come to that, the end ends, and the
%% caller with it.
-spec await_up(atoll_dist_circuits:circuit()) -> ok.
await_up({circuit, End, _}) ->
    receive
        {End, stands} -> ok
    end.

%% @doc Takes the place of the kernel's process for a circuit that was accepted: who the
%% other end says to be.
-spec await_place(atoll_dist_circuits:circuit()) -> ok.
await_place({circuit, End, _}) ->
    receive
        {End, controller} -> ok
    end.

%% @doc Sends a packet of Erlang's handshake.
-spec send(atoll_dist_circuits:circuit(), iodata()) -> ok.
send({circuit, End, _}, Data) ->
    End ! {send, iolist_to_binary(Data)},
    ok.

%% @doc The next packet of Erlang's handshake.
-spec recv(atoll_dist_circuits:circuit()) -> {ok, string()} | {error, closed}.
recv({circuit, End, _}) ->
    End ! recv,
    receive
        {End, packet, Packet} -> {ok, binary_to_list(Packet)};
        {End, closed} -> {error, closed}
    end.

%% @doc The connection is up: from now on packets are taken and given.
-spec up(atoll_dist_circuits:circuit(), node(), erlang:dist_handle()) -> ok.
up({circuit, End, _}, Node, Handle) ->
    End ! {up, Node, Handle},
    ok.

%% @doc Has a sign of life sent.
-spec tick(atoll_dist_circuits:circuit()) -> ok.
tick({circuit, End, _}) ->
    End ! tick,
    ok.

%% @private
-spec init_opener({pid(), counters:counters_ref()}, node(), [node(), ...], atoll_dist_config:config()) -> no_return().
init_opener({Connection, Counters}, Node, Path, Config) ->
    _ = process_flag(trap_exit, true),
    Id = crypto:strong_rand_bytes(16),
    There = atom_to_binary(Node),
    _ = monitor(process, atoll_dist_hub),
    ok = atoll_dist_circuits:attach(Id, self()),
    Made = atoll_dist_circuit:init(config(Id, There, opener, Config), now_ms()),
    start(Made, #state{
        id = Id, there = There, node = Node, role = opener, connection = Connection, known = Path,
        core = element(1, Made), counters = Counters, began_us = now_us()
    }).

%% @private
-spec init_acceptor(
    atoll_dist_circuit_frame:id(), atoll_dist_circuit_frame:name(), node(), binary(), atoll_dist_config:config()
) -> no_return().
init_acceptor(Id, Opener, Leg, Frame, Config) ->
    _ = process_flag(trap_exit, true),
    _ = monitor(process, atoll_dist_hub),
    Made = atoll_dist_circuit:init(config(Id, Opener, {acceptor, Leg, Frame}, Config), now_ms()),
    start(Made, #state{
        id = Id, there = Opener, role = acceptor, core = element(1, Made),
        counters = atoll_dist_circuits:counters(), began_us = now_us()
    }).

config(Id, There, Role, #{seal := Seal, circuit_window := Window}) ->
    #{
        id => Id, here => atom_to_binary(node()), there => There, role => Role, window => Window,
        consumption => told, seal => Seal, keys => atoll_dist_seal:keys(), cookie => atoll_dist_hello:cookie(There)
    }.

start({Core, Acts}, State) ->
    loop(run(Acts, State#state{core = Core})).

now_ms() -> erlang:monotonic_time(millisecond).

now_us() -> erlang:monotonic_time(microsecond).

%% @private
-spec loop(#state{}) -> no_return().
loop(#state{ended = {ended, Reason}} = State) ->
    ended(Reason, State);
loop(#state{vm = has, core = Core} = State) ->
    case atoll_dist_circuit:wants(Core) of
        more ->
            receive
                Message -> loop(message(Message, State))
            after 0 -> loop(pull(State))
            end;
        wait ->
            receive
                Message -> loop(message(Message, State))
            end
    end;
loop(State) ->
    receive
        Message -> ?MODULE:loop(message(Message, State))
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, loop, [State])
    end.

message({circuit, Leg, Frame}, #state{counters = Counters} = State) ->
    ok = atoll_dist_circuits:count(in, {1, byte_size(Frame)}, Counters),
    cast({frame, Leg, Frame}, State);
message(dist_data, State) ->
    State#state{vm = has};
message({timeout, Ref, Key}, #state{timers = Timers} = State) ->
    case Timers of
        #{Key := Ref} when Key =:= own -> own(timeout, State#state{timers = maps:remove(Key, Timers)});
        #{Key := Ref} -> event({timeout, Key}, State#state{timers = maps:remove(Key, Timers)});
        #{} -> State
    end;
message({link_down, Leg}, #state{trunks = Trunks} = State) ->
    cast({down, Leg}, State#state{trunks = maps:remove(Leg, Trunks)});
message({written, Writer, Leg, Bytes}, #state{trunks = Trunks} = State) ->
    case Trunks of
        #{Leg := Trunk} ->
            case atoll_dist_trunk:written(Writer, Bytes, Trunk) of
                {ok, Less} -> cast({sent, Leg, Bytes}, State#state{trunks = Trunks#{Leg := Less}});
                no -> State
            end;
        #{} ->
            State
    end;
message({own, Wants}, State) ->
    own({wants, Wants}, State);
message({got_so_far, Link, Lane}, State) ->
    ok = atoll_dist_own_link:read_on(Link, Lane),
    State;
message({own_theirs, Link, Wants}, #state{link = {Link, _}} = State) ->
    own({theirs, Wants}, State);
message({own_theirs, _Earlier, _Wants}, State) ->
    State;
message({own_knock, Doorkeeper, Name}, #state{there = Name, own = Own} = State) when Own =/= none ->
    {Acts, Knocked} = atoll_dist_own:handle(knock, Own),
    owns(Acts, Doorkeeper, State#state{own = Knocked});
message({own_knock, Doorkeeper, _Name}, State) ->
    Doorkeeper ! {self(), refused},
    State;
message({own_up, Attempt, Link}, #state{attempt = {Attempt, Ref}} = State) ->
    true = demonitor(Ref, [flush]),
    own(up, State#state{attempt = none, link = {Link, monitor(process, Link)}});
message({own_up, _GivenUp, Link}, State) ->
    ok = atoll_dist_own_link:close(Link),
    State;
message({back, {ok, [_, Leg, _ | _] = Path}}, #state{own = Own} = State) ->
    %% Meanwhile it may be wanted again.
    case not atoll_dist_own:is_up(Own) andalso atoll_dist_circuits:is_linked(Leg) of
        true -> cast({better, Leg, [atom_to_binary(Node) || Node <- Path]}, State);
        false -> State
    end;
message({back, _}, State) ->
    State;
message({moved, _} = Moved, State) ->
    own(Moved, State);
message(not_moved, State) ->
    own(not_moved, State);
message({'DOWN', Ref, process, _, _}, #state{attempt = {_, Ref}} = State) ->
    own(failed, State#state{attempt = none});
message({'DOWN', Ref, process, _, _}, #state{link = {_, Ref}} = State) ->
    own(lost, State#state{link = none});
message({'DOWN', Ref, process, _, Reason}, #state{helpers = Helpers} = State) ->
    case maps:take(Ref, Helpers) of
        {Leg, Left} -> freed(Leg, State#state{helpers = Left});
        %% The hub's, or the kernel's.
        error -> atoll_dist_process:over(Reason)
    end;
message(tick, State) ->
    cast(tick, State);
message({way, Asker, Way}, State) ->
    way(Asker, Way, State);
message({send, Packet}, State) ->
    cast({packets, [{byte_size(Packet), Packet}]}, State);
message(recv, #state{phase = {shaking, Packets, false}} = State) ->
    handed(State#state{phase = {shaking, Packets, true}});
message({up, Node, Handle}, #state{phase = {shaking, Packets, _}, id = Id, there = There, role = Role} = State) ->
    false = erlang:dist_ctrl_set_opt(Handle, get_size, true),
    ok = atoll_dist_keeper:awaits(atoll_dist_own_link:key(Id), self()),
    ok = atoll_dist_circuits:up(Id, Node),
    Own = atoll_dist_own:new(#{here => atom_to_binary(node()), there => There, role => Role}),
    Up = deliver(queue:to_list(Packets), State#state{phase = {up, Handle}, node = Node, own = Own}),
    pull(Up);
message({Kernel, controller, Connection}, #state{connection = Kernel} = State) ->
    true = link(Connection),
    Connection ! {self(), controller},
    State#state{connection = Connection, stands = true};
message({Kernel, unsupported_protocol}, #state{connection = Kernel} = State) ->
    cast({close, this_node_does_not_listen}, State);
message({'EXIT', _, Reason}, State) ->
    cast({close, Reason}, State).

cast(Event, State) ->
    event({cast, Event}, State).

event(Event, #state{core = Core0} = State) ->
    {Core, Acts} = atoll_dist_circuit:handle(Event, now_ms(), Core0),
    run(Acts, State#state{core = Core}).

%% What comes of an act is done after all that were to be done before.
run([], State) ->
    State;
run([{act, {send, Leg, Frame}} | Acts], State) ->
    {Frames, Bytes, Rest} = sends(Acts, Leg, [Frame], byte_size(Frame)),
    then(Rest, sent(Leg, atoll_dist_trunk:send(Frames, trunk(Leg, State)), counted(length(Frames), Bytes, State)));
run([{act, {deliver, Packets}} | Acts], State) ->
    run(Acts, deliver(Packets, State));
run([{act, {route, Failed}} | Acts], State) ->
    then(Acts, route(Failed, State));
run([{timer, Key, Ms} | Acts], #state{timers = Timers} = State) ->
    run(Acts, State#state{timers = (cancelled(Key, Timers))#{Key => erlang:start_timer(Ms, self(), Key)}});
run([{cancel, Key} | Acts], #state{timers = Timers} = State) ->
    run(Acts, State#state{timers = cancelled(Key, Timers)});
run([{notify, Notice} | Acts], State) ->
    run(Acts, notice(Notice, State)).

then(Acts, {Events, #state{core = Core0} = State}) ->
    {Core, More} = lists:foldl(
        fun(Event, {C0, As}) ->
            {C, A} = atoll_dist_circuit:handle({cast, Event}, now_ms(), C0),
            {C, As ++ A}
        end,
        {Core0, []},
        Events
    ),
    run(Acts ++ More, State#state{core = Core}).

cancelled(Key, Timers) ->
    case maps:take(Key, Timers) of
        {Ref, Left} ->
            %% One that has fired already is not known any more when it comes.
            _ = erlang:cancel_timer(Ref, [{async, true}, {info, false}]),
            Left;
        error ->
            Timers
    end.

%% Sending

sends([{act, {send, Leg, Frame}} | Acts], Leg, Frames, Bytes) ->
    sends(Acts, Leg, [Frame | Frames], Bytes + byte_size(Frame));
sends(Acts, _Leg, Frames, Bytes) ->
    {lists:reverse(Frames), Bytes, Acts}.

counted(Frames, Bytes, #state{counters = Counters} = State) ->
    ok = atoll_dist_circuits:count(out, {Frames, Bytes}, Counters),
    State.

trunk(Leg, #state{trunks = Trunks}) ->
    case Trunks of
        #{Leg := Trunk} -> Trunk;
        #{} -> atoll_dist_trunk:new(Leg, self())
    end.

sent(Leg, {ok, Gone, Trunk}, #state{trunks = Trunks, helpers = Helpers} = State) ->
    Known =
        case atoll_dist_trunk:helper(Trunk) of
            none -> Helpers;
            Ref -> Helpers#{Ref => Leg}
        end,
    {[{sent, Leg, Gone} || Gone > 0], State#state{trunks = Trunks#{Leg => Trunk}, helpers = Known}};
sent(Leg, down, #state{trunks = Trunks} = State) ->
    {[{down, Leg}], State#state{trunks = maps:remove(Leg, Trunks)}}.

freed(Leg, #state{trunks = Trunks} = State) ->
    case Trunks of
        #{Leg := Trunk} -> then([], sent(Leg, atoll_dist_trunk:freed(Trunk), State));
        #{} -> State
    end.

%% Ways

route(_Failed, #state{known = [_ | _] = Path} = State) ->
    taken(Path, State#state{known = none});
route(_Failed, #state{node = none} = State) ->
    {[no_answer], State};
route(Failed, #state{node = Node, id = Id, own = Own} = State) ->
    case Own =/= none andalso atoll_dist_own:is_up(Own) andalso [] =:= [Path || {[_, _] = Path, _Why} <- Failed] of
        true ->
            taken([node(), Node], State);
        false ->
            Self = self(),
            Ask = atoll_dist_router:asker(Node, Id),
            Around = fun(Texts) -> Ask([Name || Text <- Texts, Name <- [shown_name(Text)], is_atom(Name)]) end,
            %% As soon as anything here: it is the load that has cost the path, perhaps.
            Asker = spawn_opt(fun() -> Self ! {way, self(), atoll_dist_router:around(Around, Failed)} end, [{priority, high}]),
            {[], State#state{asker = Asker}}
    end.

%% A late answer to an earlier question is good if it is a way, and says nothing if it is none:
%% that one was about other failures.
way(_Asker, {ok, [_, _, _ | _] = Path}, State) ->
    then([], taken(Path, State));
way(Asker, {ok, _Link}, #state{asker = Asker} = State) ->
    cast(no_answer, State);
way(Asker, {error, {Why, Said}}, #state{asker = Asker} = State) ->
    cast(case Why of no_answer -> no_answer; _ -> no_route end, State#state{said = Said});
way(_Earlier, _None, State) ->
    State.

taken([_, Leg | _] = Path, State) ->
    Names = [atom_to_binary(Node) || Node <- Path],
    %% What goes there by a circuit would be a stranger's.
    {[{route, Leg, Names} | [{down, Leg} || not atoll_dist_circuits:is_linked(Leg)]], State}.

shown_name(Text) ->
    try
        binary_to_existing_atom(Text)
    catch
        error:badarg -> Text
    end.

%% A connection of its own

own(_Event, #state{own = none} = State) ->
    State;
own(Event, #state{own = Own0} = State) ->
    {Acts, Own} = atoll_dist_own:handle(Event, Own0),
    owns(Acts, none, State#state{own = Own}).

owns([], _Doorkeeper, State) ->
    State;
owns([connect | Acts], Doorkeeper, #state{node = Node, id = Id} = State) ->
    owns(Acts, Doorkeeper, State#state{attempt = atoll_dist_own_link:connect(Node, Id, self())});
owns([stop | Acts], Doorkeeper, #state{attempt = {Attempt, Ref}} = State) ->
    true = demonitor(Ref, [flush]),
    true = exit(Attempt, kill),
    owns(Acts, Doorkeeper, State#state{attempt = none});
owns([{answer, come_in} | Acts], Doorkeeper, #state{node = Node} = State) ->
    Ref = monitor(process, Doorkeeper),
    Doorkeeper ! {self(), {come_in, Node}},
    owns(Acts, Doorkeeper, State#state{attempt = {Doorkeeper, Ref}});
owns([{answer, refused} | Acts], Doorkeeper, State) ->
    Doorkeeper ! {self(), busy},
    owns(Acts, Doorkeeper, State);
owns([{tell, Wants} | Acts], Doorkeeper, #state{link = {Link, _}} = State) ->
    ok = atoll_dist_own_link:tell(Link, Wants),
    owns(Acts, Doorkeeper, State);
owns([{counts, Counts} | Acts], Doorkeeper, #state{link = {Link, _}, node = Node} = State) ->
    ok = atoll_dist_circuits:counts(Node, Link, Counts),
    owns(Acts, Doorkeeper, State);
owns([better | Acts], Doorkeeper, #state{node = Node, there = There} = State) ->
    owns(Acts, Doorkeeper, cast({better, Node, [atom_to_binary(node()), There]}, State));
owns([back | Acts], Doorkeeper, #state{node = Node, id = Id} = State) ->
    Self = self(),
    _ = spawn(fun() -> Self ! {back, atoll_dist_router:ask(Node, [], Id)} end),
    owns(Acts, Doorkeeper, State);
owns([close | Acts], Doorkeeper, #state{link = {Link, _}} = State) ->
    ok = atoll_dist_own_link:close(Link),
    owns(Acts, Doorkeeper, State);
owns([{timer, Ms} | Acts], Doorkeeper, #state{timers = Timers} = State) ->
    owns(Acts, Doorkeeper, State#state{timers = (cancelled(own, Timers))#{own => erlang:start_timer(Ms, self(), own)}});
owns([cancel | Acts], Doorkeeper, #state{timers = Timers} = State) ->
    owns(Acts, Doorkeeper, State#state{timers = cancelled(own, Timers)}).

%% What comes

deliver([], State) ->
    State;
deliver(Packets, #state{phase = {up, Handle}, counters = Counters} = State) ->
    put_all(Packets, Handle),
    ok = atoll_dist_circuits:carry(in, length(Packets), Counters),
    cast({consumed, length(Packets)}, State);
deliver(Packets, #state{phase = {shaking, Waiting, Reader}} = State) ->
    More = lists:foldl(fun(Packet, Q) -> queue:in(iolist_to_binary(Packet), Q) end, Waiting, Packets),
    handed(State#state{phase = {shaking, More, Reader}}).

put_all([Packet | Packets], Handle) ->
    ok = erlang:dist_ctrl_put_data(Handle, alone(Packet)),
    put_all(Packets, Handle);
put_all([], _Handle) ->
    ok.

%% One that came in pieces is put together by the VM.
alone(Packet) when is_binary(Packet) -> atoll_dist_frame:alone(Packet);
alone(Pieces) -> Pieces.

handed(#state{phase = {shaking, Packets0, true}, connection = Connection} = State) ->
    case queue:out(Packets0) of
        {{value, Packet}, Packets} ->
            Connection ! {self(), packet, Packet},
            cast({consumed, 1}, State#state{phase = {shaking, Packets, false}});
        {empty, _} ->
            State
    end;
handed(State) ->
    State.

%% What the VM has

pull(#state{phase = {up, Handle}} = State) ->
    case pull(Handle, 0, []) of
        {none, []} -> State#state{vm = tells};
        {none, Packets} -> pulled(Packets, State#state{vm = tells});
        {more, Packets} -> pulled(Packets, State#state{vm = has})
    end.

pulled(Packets, #state{counters = Counters} = State) ->
    ok = atoll_dist_circuits:carry(out, length(Packets), Counters),
    cast({packets, lists:reverse(Packets)}, State).

pull(_Handle, Bytes, Packets) when Bytes >= ?ROUND ->
    {more, Packets};
pull(Handle, Bytes, Packets) ->
    case erlang:dist_ctrl_get_data(Handle) of
        {Size, Packet} ->
            pull(Handle, Bytes + Size, [{Size, Packet} | Packets]);
        none ->
            ok = erlang:dist_ctrl_get_data_notification(Handle),
            {none, Packets}
    end.

%% What becomes of the circuit

notice({up, #{path := Path, sealed := IsSealed}}, #state{began_us = Began, counters = Counters} = State) ->
    ok = atoll_dist_circuits:show(#{rtt_us => now_us() - Began, path => [shown_name(Name) || Name <- Path], sealed => IsSealed, moves => 0}, Counters),
    stands(at_hub(Path, State));
notice({moved, Path}, #state{core = Core, counters = Counters} = State) ->
    #{moves := Moves} = atoll_dist_circuit:figures(Core),
    ok = atoll_dist_circuits:show(#{path => [shown_name(Name) || Name <- Path], moves => Moves}, Counters),
    %% After what is still to be done of this event.
    self() ! {moved, case Path of [_, _] -> own; _ -> others end},
    at_hub(Path, State);
notice({widened, Path}, State) ->
    at_hub(Path, State);
notice({ended, Reason}, State) ->
    State#state{ended = {ended, Reason}};
notice({lost, _}, State) ->
    State;
notice({not_moved, _}, State) ->
    self() ! not_moved,
    State.

%% Which tells the other end if this one dies.
at_hub(Path, #state{id = Id, core = Core, role = Role} = State) ->
    #{epoch := Epoch} = atoll_dist_circuit:figures(Core),
    Neighbour =
        case Role of
            opener -> lists:nth(2, Path);
            acceptor -> lists:nth(2, lists:reverse(Path))
        end,
    ok = atoll_dist_circuits:path(Id, shown_name(Neighbour), atoll_dist_circuit_frame:key(Id, Epoch)),
    State.

stands(#state{role = opener, connection = Connection} = State) ->
    Connection ! {self(), stands},
    State#state{stands = true};
stands(#state{role = acceptor, there = There, counters = Counters} = State) ->
    case whereis(net_kernel) of
        undefined ->
            self() ! {'EXIT', self(), noproc},
            State;
        Kernel ->
            _ = monitor(process, Kernel),
            Kernel ! {accept, self(), {{circuit, self(), Counters}, There}, atoll_dist_address:family(), atoll},
            State#state{connection = Kernel}
    end.

-spec ended(atoll_dist_circuit_reason:reason(), #state{}) -> no_return().
ended(Reason, #state{id = Id, trunks = Trunks} = State) ->
    %% What waits is lost with this process, and may be what tells the other end.
    _ = [ok = atoll_dist_circuits:detach(Id) || lists:all(fun(T) -> atoll_dist_trunk:helper(T) =:= none end, maps:values(Trunks))],
    ok = say(Reason, State),
    case State of
        #state{phase = {shaking, Packets, Reader}, stands = true, connection = Connection} when element(1, Reason) =/= closed_here ->
            closed(Packets, Reader, Connection, exit_reason(Reason));
        #state{} ->
            atoll_dist_process:over(exit_reason(Reason))
    end.

%% As a socket that the other end has closed: who is told amid Erlang's handshake that the
%% other one of two connections is taken waits for that, and does not look at this one.
-spec closed(queue:queue(binary()), boolean(), pid(), term()) -> no_return().
closed(Packets0, true, Connection, Reason) ->
    case queue:out(Packets0) of
        {{value, Packet}, Packets} ->
            Connection ! {self(), packet, Packet},
            closed(Packets, false, Connection, Reason);
        {empty, _} ->
            Connection ! {self(), closed},
            closed(Packets0, false, Connection, Reason)
    end;
closed(Packets, false, Connection, Reason) ->
    receive
        recv -> closed(Packets, true, Connection, Reason);
        %% It came just so far.
        {up, _, _} -> atoll_dist_process:over(Reason);
        {'EXIT', _, Why} -> atoll_dist_process:over(Why);
        _ -> closed(Packets, false, Connection, Reason)
    end.

exit_reason({closed_here, normal}) -> connection_closed;
exit_reason({closed_here, Reason}) -> Reason;
exit_reason({closed, {_, closed, _}}) -> connection_closed;
exit_reason(Reason) -> {circuit, Reason}.

%% That it was closed is said by who does that.
say({closed_here, _}, _State) ->
    ok;
say({closed, {_, closed, _}}, _State) ->
    ok;
say(Reason, #state{role = opener, phase = {shaking, _, _}, there = There, said = Said}) ->
    More = [[" ", S, "."] || Reason =:= no_route, S <- [Said], S =/= none],
    Why = ["Cannot connect with ", There, " over other nodes: ", atoll_dist_circuit_reason:format_error(Reason), More],
    atoll_dist_keeper:say_once(carrier_no_circuit, There, Why);
say(Reason, #state{there = There}) ->
    case is_loss(Reason) of
        true ->
            ok;
        false ->
            Why = ["Ended the connection with ", There, " over other nodes: ", atoll_dist_circuit_reason:format_error(Reason)],
            atoll_dist_keeper:say_once(carrier_circuit_ended, There, Why)
    end.

%% Such as befalls any connection.
is_loss({path_lost, {_, Why, _}}) -> Why =/= policy;
is_loss({refused, {_, Why, _}}) -> lists:member(Why, [no_link, unknown_circuit]);
is_loss({down, _}) -> true;
is_loss({silent, _}) -> true;
is_loss({gap, _}) -> true;
is_loss(no_route) -> true;
is_loss(_) -> false.
