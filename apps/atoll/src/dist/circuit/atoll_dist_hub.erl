%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process through which frames of circuits come in: each goes to the end of its
%% circuit on this node, or on to the next node of its path, as {@link atoll_dist_relay}
%% says.
%%
%% Neighbours are the nodes with which there is a link, a connection of its own of
%% Atoll's; circuits make no neighbours unless they got one, and neither do nodes on Erlang's own distribution.
%% The process of a link tells of itself before anything can come over it. Neighbours send
%% `{circuit, From, Frame}' to this process's name, over the link; ends send theirs
%% themselves, to the hub of the first node on their path, and say with what agrees on a
%% path who they are: free data goes from that node to the end, past its hub.
%%
%% It knows the ends by their circuits' ids: an opener's end attaches, an acceptor's is
%% started when a fresh `open' comes. One whose connection is up is told whether a link
%% with its node is wanted, and may get one of its own. When an end dies without a word the other end is
%% told in its stead.
%%
%% Promised: it waits for nobody. Whatever a peer sends is counted and otherwise left
%% alone if it means nothing here, since the supervisor would take distribution down with
%% this process. What it holds of others is the relay's budget, and how many circuits are on
%% their way to be accepted is bounded too. Not bounded is what neighbours send faster than
%% it reads, but over circuits' own connections: clients that keep to their windows have no more on its way than these, others'
%% circuits are closed as soon as it is read, and `queue' in its figures is what waits.
%%
%% It ends with distribution. Those who are told of links hear then that there are none, and
%% of those that there are again when distribution is started anew.
-module(atoll_dist_hub).
-behaviour(gen_server).

-export([child_spec/0, start_link/0]).
-export([watch_links/0, own/2, disown/0, policy/1, figures/0, fault/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([fault/0]).

%% Every so many'th forwarded frame of data has a byte changed.
-type fault() :: {alter, pos_integer()} | heal.

-type name() :: atoll_dist_circuit_frame:name().
-type id() :: atoll_dist_circuit_frame:id().

-record(link, {
    name :: name(),
    %% The process of the connection, and the monitor on it.
    pid :: pid(),
    ref :: reference(),
    trunk :: atoll_dist_trunk:trunk(),
    via :: atoll_dist_circuits:via(),
    %% Whether it counts, for those who are told of links.
    counts = true :: boolean()
}).

-record(circuit, {
    pid :: pid(),
    ref :: reference(),
    %% Over which link its path goes, and the path's key, once there is one.
    path = none :: none | {node(), atoll_dist_circuit_frame:key()},
    %% The other end, once the connection is up.
    node = none :: none | node(),
    %% Whether it is on its way to be accepted.
    is_new :: boolean()
}).

-record(state, {
    config :: atoll_dist_config:config(),
    %% None before the first neighbour, since the node may have no name yet.
    relay = none :: none | atoll_dist_relay:state(),
    links = #{} :: #{node() => #link{}},
    nodes = #{} :: #{name() => node()},
    ends = #{} :: #{id() => #circuit{}},
    new = 0 :: non_neg_integer(),
    %% What each monitor is on; and who is told of links.
    monitors = #{} :: #{reference() => {link | trunk, node()} | {circuit, id()} | {watcher, pid()}},
    watchers = #{} :: #{pid() => reference()},
    %% Which frame of data is altered, and how many were forwarded since.
    alter = none :: none | {pos_integer(), non_neg_integer()},
    %% Messages that mean nothing here.
    strange = 0 :: non_neg_integer()
}).

%% What a distribution that is started again keeps: for whom to relay, and whom to tell of
%% links.
-define(POLICY, atoll_dist_relay_policy).
-define(WATCHERS, atoll_dist_watchers).

%% Circuits that are on their way to be accepted: each step has its deadline.
-define(MAX_NEW, 256).

%% @doc For the supervisor of distribution.
-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?MODULE, start => {?MODULE, start_link, []}, shutdown => 2000}.

%% @doc Starts the process.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    %% So that it holds no frames when it has nothing to do.
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], [{hibernate_after, atoll_dist_process:quiet_ms()}]).

%% @doc From now on the caller gets `{atoll_dist, linked | unlinked, Node}'; those that are
%% linked now. So it does when distribution was stopped and started again.
-spec watch_links() -> [node()].
watch_links() ->
    asked(watch_links, []).

%% @doc Whether a room above wants a link with that node.
-spec own(node(), boolean()) -> ok.
own(Node, Wants) ->
    asked({own, Node, Wants}, ok).

%% @doc No room above wants a link with any node.
-spec disown() -> ok.
disown() ->
    asked(disown, ok).

%% @doc For whom this node relays.
-spec policy(atoll_dist_relay:policy()) -> ok.
policy(Policy) ->
    ok = persistent_term:put(?POLICY, kept(Policy)),
    asked({policy, Policy}, ok).

%% What a distribution that is started again begins with. A list of nodes changes with the
%% cluster, and each time all processes of this node would be looked at; the room above
%% is asked to say it again.
kept(Word) when is_atom(Word) -> Word;
kept(List) when is_list(List) -> told.

policy_at_first(#{relay := off}) ->
    none;
policy_at_first(#{relay := on}) ->
    case persistent_term:get(?POLICY, none) of
        told ->
            ok = atoll_dist_router:tell({atoll_dist, relay_policy}),
            none;
        Word ->
            Word
    end.

%% @doc What it relays, and has refused and dropped.
-spec figures() -> map().
figures() ->
    asked(figures, #{}).

%% @doc Has what is forwarded altered, or no more.
-spec fault(fault() | term()) -> ok | {error, faults_off | bad_fault}.
fault(Fault) ->
    asked({fault, Fault}, {error, faults_off}).

%% A node without the carrier has none.
asked(Request, Else) ->
    case whereis(?MODULE) of
        undefined ->
            Else;
        Pid ->
            try
                gen_server:call(Pid, Request, infinity)
            catch
                exit:_ -> Else
            end
    end.

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    _ = process_flag(priority, high),
    _ = process_flag(message_queue_data, off_heap),
    %% It has something to say when it ends.
    _ = process_flag(trap_exit, true),
    ok = atoll_dist_circuits:tables(),
    {ok, Config} =
        case atoll_dist_keeper:config() of
            {ok, _} = Good -> Good;
            %% The node will not listen, and say why.
            {error, _} -> atoll_dist_config:new([{relay, off}])
        end,
    {ok, lists:foldl(fun watches/2, #state{config = Config}, watchers())}.

watchers() -> [Pid || Pid <- persistent_term:get(?WATCHERS, []), is_process_alive(Pid)].

watches(Pid, #state{watchers = Watchers, monitors = Monitors} = State) ->
    Ref = monitor(process, Pid),
    State#state{watchers = Watchers#{Pid => Ref}, monitors = Monitors#{Ref => {watcher, Pid}}}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{links = Links, watchers = Watchers}) ->
    lists:foreach(fun(Node) -> tell(unlinked, Node, Watchers) end, [Node || {Node, #link{counts = true}} <- maps:to_list(Links)]).

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({linked, Node, Pid, Via}, _From, #state{links = Links} = State) ->
    case {Via, Links} of
        %% Its circuit has ended, and it has not yet heard of that.
        {{own, _}, #{Node := #link{via = messages}}} -> {reply, taken, State};
        {{own, _}, #{Node := #link{via = {spokes, _}}}} -> {reply, taken, State};
        _ -> {reply, ok, linked(Node, Pid, Via, run(unlinked(Node, State)))}
    end;
handle_call({counts, Node, Pid, Counts}, _From, #state{links = Links} = State) ->
    case Links of
        #{Node := #link{pid = Pid, counts = Before} = Link} when Before =/= Counts -> {reply, ok, counts(Counts, Node, Link, State)};
        #{} -> {reply, ok, State}
    end;
handle_call({attach, Id, Pid}, _From, #state{ends = Ends} = State) ->
    case is_map_key(Id, Ends) of
        true -> {reply, taken, State};
        false -> {reply, ok, attached(Id, Pid, false, State)}
    end;
handle_call(watch_links, {Pid, _}, #state{watchers = Watchers, links = Links} = State) ->
    Now = lists:sort([Node || {Node, #link{counts = true}} <- maps:to_list(Links)]),
    case Watchers of
        #{Pid := _} ->
            {reply, Now, State};
        #{} ->
            ok = persistent_term:put(?WATCHERS, [Pid | watchers()]),
            {reply, Now, watches(Pid, State)}
    end;
handle_call({own, Node, Wants}, _From, State) ->
    ok = atoll_dist_circuits:own(Node, Wants),
    {reply, tell_own(Node, Wants, State), State};
handle_call(disown, _From, State) ->
    _ = [tell_own(Node, false, State) || Node <- atoll_dist_circuits:disown()],
    {reply, ok, State};
handle_call({policy, Policy}, _From, #state{config = #{relay := on}} = State) ->
    {reply, ok, relay({policy, Policy}, State)};
handle_call({policy, _Policy}, _From, State) ->
    {reply, ok, State};
handle_call(figures, _From, #state{relay = Relay, ends = Ends, new = New, strange = Strange} = State) ->
    Figures =
        case Relay of
            none -> #{};
            _ -> atoll_dist_relay:figures(Relay)
        end,
    {message_queue_len, Queue} = process_info(self(), message_queue_len),
    {reply, Figures#{ends => map_size(Ends), accepting => New, strange => Strange, queue => Queue}, State};
handle_call({fault, _}, _From, #state{config = #{faults := false}} = State) ->
    {reply, {error, faults_off}, State};
handle_call({fault, {alter, N}}, _From, State) when is_integer(N), N > 0 ->
    {reply, ok, State#state{alter = {N, 0}}};
handle_call({fault, heal}, _From, State) ->
    {reply, ok, State#state{alter = none}};
handle_call({fault, _}, _From, State) ->
    {reply, {error, bad_fault}, State};
handle_call(_, _From, State) ->
    {noreply, strange(State)}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({path, Id, Pid, Leg, Key}, #state{ends = Ends} = State) ->
    case Ends of
        #{Id := #circuit{pid = Pid} = Circuit} -> {noreply, State#state{ends = Ends#{Id := Circuit#circuit{path = {Leg, Key}}}}};
        #{} -> {noreply, State}
    end;
handle_cast({up, Id, Pid, Node}, #state{ends = Ends, new = New} = State) ->
    case Ends of
        #{Id := #circuit{pid = Pid, is_new = IsNew} = Circuit} ->
            Pid ! {own, atoll_dist_circuits:is_own(Node)},
            {noreply, State#state{
                ends = Ends#{Id := Circuit#circuit{is_new = false, node = Node}},
                new = case IsNew of true -> New - 1; false -> New end
            }};
        #{} ->
            {noreply, State}
    end;
handle_cast({detach, Id, Pid}, #state{ends = Ends} = State) ->
    case Ends of
        #{Id := #circuit{pid = Pid}} -> {noreply, detached(Id, State)};
        #{} -> {noreply, State}
    end;
handle_cast(_, State) ->
    {noreply, strange(State)}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({circuit, From, Frame}, #state{links = Links} = State) when is_binary(Frame) ->
    case Links of
        #{From := #link{name = Name}} -> {noreply, frame(Name, Frame, State)};
        #{} -> {noreply, strange(State)}
    end;
handle_info({circuit, From, Frame, End}, #state{links = Links} = State) when is_binary(Frame), node(End) =:= From ->
    case {Links, atoll_dist_circuit_frame:head(Frame)} of
        {#{From := #link{name = Name}}, {ok, _, Key}} -> {noreply, relay({at, Name, Key, End}, frame(Name, Frame, State))};
        _ -> {noreply, strange(State)}
    end;
handle_info({got_so_far, Link, Lane}, State) when is_pid(Link), node(Link) =:= node() ->
    ok = atoll_dist_own_link:read_on(Link, Lane),
    {noreply, State};
handle_info({written, Writer, Node, Bytes}, #state{links = Links} = State) ->
    case Links of
        #{Node := #link{name = Name, trunk = Trunk} = Link} ->
            case atoll_dist_trunk:written(Writer, Bytes, Trunk) of
                {ok, Less} -> {noreply, relay({sent, Name, Bytes}, State#state{links = Links#{Node := Link#link{trunk = Less}}})};
                no -> {noreply, State}
            end;
        #{} ->
            {noreply, State}
    end;
handle_info({'DOWN', Ref, process, Pid, _}, #state{monitors = Monitors} = State) ->
    case maps:take(Ref, Monitors) of
        {What, Left} -> {noreply, down(What, Pid, State#state{monitors = Left})};
        error -> {noreply, State}
    end;
handle_info({timeout, _, sweep}, State) ->
    {noreply, run(event({timeout, sweep}, State))};
handle_info(_, State) ->
    {noreply, strange(State)}.

strange(#state{strange = Strange} = State) -> State#state{strange = Strange + 1}.

down({link, Node}, Pid, State) ->
    case State of
        #state{links = #{Node := #link{pid = Pid}}} -> run(unlinked(Node, State));
        _ -> State
    end;
down({trunk, Node}, _Pid, #state{links = Links} = State) ->
    case Links of
        #{Node := #link{trunk = Trunk}} -> run(sent(Node, atoll_dist_trunk:freed(Trunk), State));
        #{} -> State
    end;
down({watcher, Pid}, Pid, #state{watchers = Watchers} = State) ->
    State#state{watchers = maps:remove(Pid, Watchers)};
down({circuit, Id}, Pid, #state{ends = Ends} = State) ->
    case Ends of
        #{Id := #circuit{pid = Pid, path = Path}} -> closed(Path, detached(Id, State));
        #{} -> State
    end.

%% Neighbours

linked(Node, Pid, Via, #state{links = Links, nodes = Nodes, monitors = Monitors, watchers = Watchers} = State) ->
    Name = atom_to_binary(Node),
    Ref = monitor(process, Pid),
    ok = atoll_dist_circuits:note_link(Node, {Via, true}),
    Link = #link{name = Name, pid = Pid, ref = Ref, trunk = atoll_dist_trunk:new(Node), via = Via},
    tell(linked, Node, Watchers),
    relay({up, Name}, with_relay(State#state{
        links = Links#{Node => Link}, nodes = Nodes#{Name => Node}, monitors = Monitors#{Ref => {link, Node}}
    })).

with_relay(#state{relay = none, config = #{relay_budget := Budget, relay_circuits := Most, circuit_window := Window} = Config} = State) ->
    {Relay, []} = atoll_dist_relay:init(
        #{
            name => atom_to_binary(node()), policy => policy_at_first(Config), budget => Budget, max_circuits => Most,
            max_window => max(33554432, Window)
        },
        now_ms()
    ),
    State#state{relay = Relay};
with_relay(State) ->
    State.

unlinked(Node, #state{links = Links, nodes = Nodes, monitors = Monitors, watchers = Watchers, ends = Ends} = State) ->
    case Links of
        #{Node := #link{name = Name, ref = Ref, counts = Counts}} ->
            true = demonitor(Ref, [flush]),
            ok = atoll_dist_circuits:note_link(Node, none),
            _ = [tell(unlinked, Node, Watchers) || Counts],
            _ = [Pid ! {link_down, Node} || #circuit{pid = Pid} <- maps:values(Ends)],
            cast({down, Name}, State#state{
                links = maps:remove(Node, Links), nodes = maps:remove(Name, Nodes), monitors = maps:remove(Ref, Monitors)
            });
        #{} ->
            {[], State}
    end.

counts(Counts, Node, #link{via = Via} = Link, #state{links = Links, watchers = Watchers} = State) ->
    ok = atoll_dist_circuits:note_link(Node, {Via, Counts}),
    tell(case Counts of true -> linked; false -> unlinked end, Node, Watchers),
    State#state{links = Links#{Node := Link#link{counts = Counts}}}.

tell_own(Node, Wants, #state{ends = Ends}) ->
    _ = [Pid ! {own, Wants} || #circuit{pid = Pid, node = Of} <- maps:values(Ends), Of =:= Node],
    ok.

tell(What, Node, Watchers) ->
    _ = [Pid ! {atoll_dist, What, Node} || Pid <- maps:keys(Watchers)],
    ok.

%% Relaying

now_ms() -> erlang:monotonic_time(millisecond).

relay(Event, State) ->
    run(cast(Event, State)).

cast(Event, State) ->
    event({cast, Event}, State).

event(_Event, #state{relay = none} = State) ->
    {[], State};
event(Event, #state{relay = Relay0} = State) ->
    {Relay, Acts} = atoll_dist_relay:handle(Event, now_ms(), Relay0),
    {Acts, State#state{relay = Relay}}.

%% Most are data that can go on at once.
frame(From, Frame, #state{relay = Relay0, alter = none, nodes = Nodes, links = Links} = State) ->
    case atoll_dist_relay:straight(From, Frame, now_ms(), Relay0) of
        {To, Place, Relay} ->
            #{To := Node} = Nodes,
            #{Node := #link{trunk = Trunk}} = Links,
            case atoll_dist_trunk:pass(Frame, Place, Trunk) of
                {ok, Gone, Trunk} when Gone > 0 ->
                    State#state{relay = Relay};
                Sent ->
                    {[], Waits} = cast({waits, To, byte_size(Frame)}, State#state{relay = Relay}),
                    run(sent(Node, Sent, Waits))
            end;
        no ->
            relay({frame, From, Frame}, State)
    end;
frame(From, Frame, State) ->
    relay({frame, From, Frame}, State).

%% What comes of an act is done after all that were to be done before: frames of a trunk
%% stay in order.
run({[], State}) ->
    State;
run({[Act | Acts], State0}) ->
    case act(Act, State0) of
        {[], State} -> run({Acts, State});
        {More, State} -> run({Acts ++ More, State})
    end.

act({act, {send, Name, Frames, _Bytes}}, #state{nodes = Nodes, links = Links} = State0) ->
    case Nodes of
        #{Name := Node} ->
            #{Node := #link{trunk = Trunk}} = Links,
            {Given, State} = altered(Frames, State0),
            sent(Node, atoll_dist_trunk:send(Given, Trunk), State);
        %% It has gone amid all this.
        #{} ->
            {[], State0}
    end;
act({act, {here, From, Frame}}, #state{nodes = Nodes} = State) ->
    case Nodes of
        #{From := Node} -> here(From, Node, Frame, State);
        #{} -> {[], State}
    end;
act({timer, sweep, Ms}, State) ->
    _ = erlang:start_timer(Ms, self(), sweep),
    {[], State}.

sent(Node, {ok, Gone, Trunk}, #state{links = Links, monitors = Monitors} = State0) ->
    #{Node := #link{name = Name} = Link} = Links,
    Known =
        case atoll_dist_trunk:helper(Trunk) of
            none -> Monitors;
            Ref -> Monitors#{Ref => {trunk, Node}}
        end,
    State = State0#state{links = Links#{Node := Link#link{trunk = Trunk}}, monitors = Known},
    case Gone of
        0 -> {[], State};
        _ -> cast({sent, Name, Gone}, State)
    end;
sent(Node, down, State) ->
    unlinked(Node, State).

altered(Frames, #state{alter = none} = State) ->
    {Frames, State};
altered(Frames, #state{alter = {N, Count0}} = State) ->
    {Altered, Count} = lists:mapfoldl(
        fun
            (<<_, Letter, _/binary>> = Frame, C) when Letter =:= $D; Letter =:= $E ->
                case C + 1 >= N of
                    true -> {alter(Frame), 0};
                    false -> {Frame, C + 1}
                end;
            (Frame, C) ->
                {Frame, C}
        end,
        Count0,
        Frames
    ),
    {Altered, State#state{alter = {N, Count}}}.

alter(Frame) ->
    Before = byte_size(Frame) - 1,
    <<Kept:Before/binary, Last>> = Frame,
    <<Kept/binary, (Last bxor 1)>>.

%% Ends

here(From, Node, Frame, #state{ends = Ends} = State) ->
    {ok, Type, Key} = atoll_dist_circuit_frame:head(Frame),
    Id = atoll_dist_circuit_frame:id(Key),
    case Ends of
        #{Id := #circuit{pid = Pid}} ->
            Pid ! {circuit, Node, Frame},
            {[], State};
        #{} when Type =:= open ->
            opened(From, Node, Id, Key, Frame, State);
        #{} ->
            cast({nobody, From, Frame}, State)
    end.

opened(From, Node, Id, Key, Frame, #state{config = #{relay := On} = Config, new = New} = State) ->
    case atoll_dist_circuit_frame:parse(Frame) of
        {ok, {open, _, #{fresh := false}}} ->
            refuse(From, Key, unknown_circuit, <<>>, State);
        _ when On =:= off ->
            refuse(From, Key, not_accepted, <<"it is told to have none">>, State);
        _ when New >= ?MAX_NEW ->
            refuse(From, Key, not_accepted, <<"too many are on their way">>, State);
        {ok, {open, _, #{path := [Opener | _]}}} ->
            Pid = atoll_dist_end:accept(Id, Opener, Node, Frame, Config),
            {[], attached(Id, Pid, true, State)}
    end.

refuse(From, Key, Why, About, State) ->
    cast({say, From, {refused, Key, {atom_to_binary(node()), Why, About}}}, State).

attached(Id, Pid, IsNew, #state{ends = Ends, monitors = Monitors, new = New} = State) ->
    Ref = monitor(process, Pid),
    Circuit = #circuit{pid = Pid, ref = Ref, is_new = IsNew},
    State#state{
        ends = Ends#{Id => Circuit},
        monitors = Monitors#{Ref => {circuit, Id}},
        new = case IsNew of true -> New + 1; false -> New end
    }.

detached(Id, #state{ends = Ends, monitors = Monitors, new = New} = State) ->
    #{Id := #circuit{pid = Pid, ref = Ref, is_new = IsNew}} = Ends,
    true = demonitor(Ref, [flush]),
    ok = atoll_dist_circuits:forget(Pid),
    State#state{
        ends = maps:remove(Id, Ends),
        monitors = maps:remove(Ref, Monitors),
        new = case IsNew of true -> New - 1; false -> New end
    }.

%% An end died without a word.
closed({Leg, Key}, #state{links = Links} = State) when is_map_key(Leg, Links) ->
    #{Leg := #link{name = Name}} = Links,
    relay({say, Name, {close, Key, {atom_to_binary(node()), closed, <<"its end has died">>}}}, State);
closed(_Path, State) ->
    State.
