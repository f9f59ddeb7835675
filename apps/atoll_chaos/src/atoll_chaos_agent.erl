%% SPDX-License-Identifier: Apache-2.0
%% @doc The hand of atoll_chaos on a node under test: it keeps the node from some
%% of its peers, and knows which processes are being killed just now.
%%
%% A peer is <b>closed</b> when nothing passes in either direction: the node has
%% another cookie for it, one that nobody can guess, and the connection is taken
%% away, so that no new one can be made as long as one of the two nodes does so. A peer is <b>unheard</b> when
%% the node does not read what comes from it, while what it sends goes out: the
%% socket of the connection is not read from. What the peer sent meanwhile is not
%% lost but comes when it is heard again, unless the connection ended before,
%% which the net tick time sees to. A connection that is made meanwhile is not
%% read from once it is up; the first messages over it may pass. Stock
%% distribution has nothing nearer to a cut in one direction. With a carrier that
%% is a process, such as TLS, there is none.
%%
%% Over Atoll's carrier, with faults configured, the carrier does it: the sockets of a
%% peer that is closed are shut, as by a network that fails, and messages to a peer may
%% be <b>lost</b> or <b>late</b>, or the connection a <b>black hole</b>: nothing passes
%% either way, no socket closes, and when somebody has found that out and ended it, no
%% new one can be made. A connection that is made meanwhile is harmed once it is up; the
%% first messages over it may pass. One that is made without faults, with a peer that has
%% the carrier no longer, cannot be harmed: the node's log says so, once for each peer.
%% What a black hole held back comes when it is no more. A lane that is one stays one until
%% lanes are mended or the connection ends, whatever else is said of the connection; only
%% when a black hole of the whole connection begins or ends, what such a lane has held back
%% so far may come.
%%
%% It may also have the node send bulk to peers, over the connections that there are: messages
%% to a name that nobody has there.
%%
%% Nodes that connect with all by themselves (`connect_all') do so when they meet another
%% one, and not again after a cut; they even leave others because of it. So the agent of
%% such a node remembers with whom it was connected while it worked, and connects again
%% when none is closed any more. Elsewhere whoever wants a connection makes it.
%%
%% It works for one run, and for no other until that has stopped it: two runs would undo
%% each other's cuts. Whatever it did is undone when its owner is gone. The module stands alone: it
%% may be loaded into a node that has nothing else of Atoll.
-module(atoll_chaos_agent).

-behaviour(gen_server).

-export([ensure/1, keep_from/3, harm/2, bulk/2, lane/4, mend_lanes/1, stop/1]).
-export([take/2, free/1, taken/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([claim/0, run/0, trouble/0, harms/0, bulk/0]).

-type harms() :: #{node() => #{drop => number(), delay => pos_integer(), black_hole => true}}.
%% Of what goes to a peer: which share is lost, and by how many milliseconds it is late.

-type bulk() :: #{node() => pos_integer() | full}.
%% To whom how many bytes are sent in a second, or as many as the connection takes.

-type run() :: term().
%% Unlike that of any other run, whichever VM it has.

-type claim() :: {run(), Owner :: pid() | none}.

-type trouble() :: {not_a_socket | no_faults | no_lane, node()} | {taken, run()}.

-record(state, {
    %% The one whose end undoes all, if there is one.
    owner :: reference() | none,
    %% For peers that are closed.
    cookie :: atom(),
    %% Peer => the cookie that it had.
    closed = #{} :: #{node() => atom()},
    unheard = #{} :: #{node() => []},
    harms = #{} :: harms(),
    %% Who sends bulk.
    senders = [] :: [pid()],
    %% Peer => the lanes that are black holes, sorted.
    laned = #{} :: #{node() => [non_neg_integer()]},
    %% Peers of which the log says that they are not harmed.
    told_of = #{} :: #{node() => []},
    %% Black holes that have ended, each with the cookie that it had.
    barred = #{} :: #{node() => atom()},
    %% Those it was ever connected with, if it is to be connected with all.
    mesh :: #{node() => []} | none
}).

%% How soon the carrier is asked again.
-define(AGAIN_MS, 10).
%% A message of bulk, and how often there is one at least where that is less.
-define(BULK_BYTES, 8000000).
-define(BULK_PER_S, 10).

%% @doc Starts it, unless it runs; another run's is left alone.
-spec ensure(claim()) -> ok | {error, {taken, run()}}.
ensure({Run, _} = Claim) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, Claim, []) of
        {ok, _} ->
            ok;
        {error, {already_started, _}} ->
            case run() of
                {ok, Run} -> ok;
                {ok, Other} -> {error, {taken, Other}};
                none -> ensure(Claim)
            end
    end.

%% Whose it is. Not asked itself: it may be at something that takes long, and end
%% meanwhile; then it would be started again by who waited.
run() ->
    try ets:lookup(?MODULE, run) of
        [{run, Run}] -> {ok, Run};
        [] -> none
    catch
        error:badarg -> none
    end.

%% @doc From now on these peers are closed, those unheard, and no others. If it
%% does not run yet it starts.
-spec keep_from(Closed :: [node()], Unheard :: [node()], claim()) -> ok | {error, trouble()}.
keep_from(Closed, Unheard, Claim) ->
    case ensure(Claim) of
        ok -> gen_server:call(?MODULE, {keep_from, Closed, Unheard});
        {error, _} = Error -> Error
    end.

%% @doc From now on the connections with these peers are harmed in that way, and no
%% others; lanes stay as they are.
-spec harm(harms(), claim()) -> ok | {error, trouble()}.
harm(Harms, Claim) ->
    case ensure(Claim) of
        ok -> gen_server:call(?MODULE, {harm, Harms});
        {error, _} = Error -> Error
    end.

%% @doc From now on the node sends so much to these peers, and to no others.
-spec bulk(bulk(), claim()) -> ok | {error, trouble()}.
bulk(Bulk, Claim) ->
    case ensure(Claim) of
        ok -> gen_server:call(?MODULE, {bulk, Bulk});
        {error, _} = Error -> Error
    end.

%% @doc Cuts a lane of the connection with a peer, or makes it a black hole.
-spec lane(node(), Number :: non_neg_integer(), cut | black_hole, claim()) -> ok | {error, trouble()}.
lane(Peer, Number, Fault, Claim) ->
    case ensure(Claim) of
        ok -> gen_server:call(?MODULE, {lane, Peer, Number, Fault});
        {error, _} = Error -> Error
    end.

%% @doc No lane is a black hole any more.
-spec mend_lanes(claim()) -> ok | {error, trouble()}.
mend_lanes(Claim) ->
    case ensure(Claim) of
        ok -> gen_server:call(?MODULE, mend_lanes);
        {error, _} = Error -> Error
    end.

%% @doc Undoes everything and ends, if it works for that run.
-spec stop(run()) -> ok | {error, {taken, run()}}.
stop(Run) ->
    case run() of
        {ok, Run} -> gen_server:stop(?MODULE);
        {ok, Other} -> {error, {taken, Other}};
        none -> ok
    end.

%% @doc Says that the calling process is about to kill a process of that
%% supervisor; `false' if that very one is being killed.
-spec take(Supervisor :: pid() | none, Child :: term()) -> boolean().
take(Supervisor, Child) ->
    ets:insert_new(?MODULE, {{Supervisor, Child}}).

%% @doc It is over.
-spec free({Supervisor :: pid() | none, Child :: term()}) -> ok.
free(Key) ->
    true = ets:delete(?MODULE, Key),
    ok.

%% @doc What is being killed, each with its supervisor.
-spec taken() -> [{Supervisor :: pid() | none, Child :: term()}].
taken() ->
    [Key || {{_, _} = Key} <- ets:tab2list(?MODULE)].

%% @private
-spec init(claim()) -> {ok, #state{}}.
init({Run, Owner}) ->
    %% Not that of whoever asked for it: it may be on another node.
    true = group_leader(whereis(init), self()),
    _ = process_flag(trap_exit, true),
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    true = ets:insert(?MODULE, {run, Run}),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    {ok, #state{owner = watch(Owner), cookie = cookie(), mesh = mesh()}}.

mesh() ->
    case application:get_env(kernel, connect_all) of
        {ok, false} -> none;
        _ -> maps:from_keys(nodes(), [])
    end.

%% Whoever knew it could connect with the node during a cut.
cookie() ->
    binary_to_atom(<<"atoll_chaos_", <<<<(hex(Half))>> || <<Half:4>> <= random(16)>>/binary>>).

hex(N) when N < 10 -> $0 + N;
hex(N) -> $a + N - 10.

%% A node under test may lack the application crypto.
random(Size) ->
    try
        crypto:strong_rand_bytes(Size)
    catch
        error:undef ->
            {ok, File} = file:open("/dev/urandom", [read, raw, binary]),
            {ok, Bytes} = file:read(File, Size),
            ok = file:close(File),
            Bytes
    end.

watch(none) -> none;
watch(Owner) -> monitor(process, Owner).

%% @private
-spec handle_call(Request, gen_server:from(), #state{}) -> {reply, ok | {error, trouble()}, #state{}} when
    Request ::
        {keep_from, [node()], [node()]}
        | {harm, harms()}
        | {bulk, bulk()}
        | {lane, node(), Number :: non_neg_integer(), cut | black_hole}
        | mend_lanes.
handle_call({harm, Harms}, _From, #state{harms = Before} = State0) ->
    Mended = mended([Peer || {Peer, #{black_hole := true}} <- maps:to_list(Before), not is_hole(Peer, Harms)], State0),
    Changed = [
        Peer
     || Peer <- maps:keys(maps:merge(Before, Harms)), maps:get(Peer, Before, none) =/= maps:get(Peer, Harms, none)
    ],
    State = lists:foldl(fun bar_if_gone/2, Mended#state{harms = Harms}, Changed),
    {reply, injected(Changed, State0, State), State};
handle_call({bulk, Bulk}, _From, State) ->
    Silent = silent(State),
    {reply, ok, Silent#state{senders = [spawn_link(sender(Peer, Rate)) || {Peer, Rate} <- maps:to_list(Bulk)]}};
handle_call(mend_lanes, _From, #state{laned = Laned} = State0) ->
    State = State0#state{laned = #{}},
    {reply, injected(maps:keys(Laned), State0, State), State};
handle_call({lane, Peer, Number, Fault}, _From, #state{laned = Laned} = State) ->
    case lane_fault(Peer, Number, Fault, State) of
        ok when Fault =:= black_hole ->
            {reply, ok, State#state{laned = Laned#{Peer => lists:usort([Number | maps:get(Peer, Laned, [])])}}};
        ok ->
            {reply, ok, State};
        {error, faults_off} ->
            {reply, {error, {no_faults, Peer}}, State};
        {error, _} ->
            {reply, {error, {no_lane, Peer}}, State}
    end;
handle_call({keep_from, Closed, Unheard}, _From, State0) ->
    State1 = opened(lists:foldl(fun open/2, State0, maps:keys(State0#state.closed) -- Closed), State0),
    State2 = lists:foldl(fun hear/2, State1, maps:keys(State1#state.unheard) -- Unheard),
    State3 = lists:foldl(fun close/2, State2, Closed),
    State = State3#state{unheard = maps:from_keys(Unheard, [])},
    case [Trouble || {error, Trouble} <- [set_active(Peer, false) || Peer <- Unheard]] of
        [] -> {reply, ok, State};
        [Trouble | _] -> {reply, {error, Trouble}, State}
    end.

%% @private
-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}} when
    Message ::
        {nodeup | nodedown, node(), term()}
        | {inject, node()}
        | {'DOWN', reference(), process, pid(), term()}
        | {'EXIT', pid(), term()}.
handle_info({nodeup, Peer, Info}, #state{closed = Closed, unheard = Unheard, harms = Harms} = State) ->
    %% Its handshake was under way when it was closed; or it is a new connection.
    _ = [erlang:disconnect_node(Peer) || is_map_key(Peer, Closed)],
    _ = [set_active(Peer, false) || is_map_key(Peer, Unheard)],
    case is_map_key(Peer, Harms) of
        true -> {noreply, injected_anew(Peer, met(Peer, Info, State))};
        false -> {noreply, met(Peer, Info, State)}
    end;
handle_info({nodedown, Peer, _}, #state{laned = Laned} = State) ->
    %% Its lanes have ended with it. It is still mended: the next connection may be up
    %% before this is heard, and have been told of a lane already.
    Left = maps:map(fun(Of, Lanes) -> [Lane || Of =/= Peer, Lane <- Lanes] end, Laned),
    {noreply, bar_if_gone(Peer, State#state{laned = Left})};
handle_info({inject, Peer}, State) ->
    {noreply, injected_anew(Peer, State)};
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) ->
    {stop, normal, undo(State)};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, Reason, undo(State)}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, State) ->
    #state{} = undo(State),
    ok.

undo(#state{closed = Closed, unheard = Unheard, harms = Harms, laned = Laned, barred = Barred} = State) ->
    Whole = State#state{harms = #{}, laned = #{}},
    _ = injected(maps:keys(maps:merge(Harms, Laned)), State, Whole),
    Mended = mended(maps:keys(Barred), Whole),
    Opened = opened(lists:foldl(fun open/2, Mended, maps:keys(Closed)), Mended),
    silent(lists:foldl(fun hear/2, Opened, maps:keys(Unheard))).

%% One that waits for a connection is ended too.
silent(#state{senders = Senders} = State) ->
    lists:foreach(
        fun(Sender) ->
            true = unlink(Sender),
            true = exit(Sender, kill)
        end,
        Senders
    ),
    State#state{senders = []}.

%% It ends with the agent.
sender(Peer, Rate) ->
    {Bytes, EveryMs} =
        case Rate of
            full ->
                {?BULK_BYTES, 0};
            _ ->
                Size = max(1, min(?BULK_BYTES, Rate div ?BULK_PER_S)),
                {Size, Size * 1000 / Rate}
        end,
    fun() -> send({atoll_chaos_nobody, Peer}, <<0:Bytes/unit:8>>, EveryMs, erlang:monotonic_time(millisecond)) end.

%% Who has waited for room is not behind for that.
send(To, Binary, EveryMs, Due) ->
    Sent = erlang:send(To, Binary, [noconnect]),
    Now = erlang:monotonic_time(millisecond),
    Next =
        case Sent of
            ok -> max(Now, Due + EveryMs);
            noconnect -> Now + 1000 div ?BULK_PER_S
        end,
    receive
    after max(0, round(Next - Now)) -> send(To, Binary, EveryMs, Next)
    end.

%% What is wrong now with the connections with these peers, and nothing else.
injected(Peers, Before, State) ->
    case [Trouble || Peer <- Peers, {error, Trouble} <- [inject(Peer, holes(Peer, Before), State)]] of
        [] -> ok;
        [Trouble | _] -> {error, Trouble}
    end.

%% Nobody waits to hear that a connection made meanwhile cannot be harmed.
injected_anew(Peer, #state{told_of = ToldOf} = State) ->
    case inject(Peer, [], State) of
        {error, {no_faults, Peer}} when not is_map_key(Peer, ToldOf) ->
            ok = logger:warning("The new connection with ~p is not harmed, though it should be: it was made without faults.", [Peer]),
            State#state{told_of = ToldOf#{Peer => []}};
        _ ->
            State
    end.

%% Where there is no connection it comes with the next one.
inject(Peer, HolesBefore, State) ->
    Faults = faults(Peer, HolesBefore, State),
    case lists:usort([Why || Fault <- Faults, {error, Why} <- [fault(Peer, Fault)]]) of
        [] ->
            ok;
        [not_connected] ->
            %% One that is up from this moment on is known to the carrier in the next.
            _ = [erlang:send_after(?AGAIN_MS, self(), {inject, Peer}) || lists:member(Peer, nodes(connected))],
            ok;
        %% What cannot be harmed need not be mended.
        [_ | _] when Faults =:= [heal] ->
            ok;
        [_ | _] ->
            {error, {no_faults, Peer}}
    end.

%% A black hole that goes on is not told again: mending it first, as what is told as a
%% whole is, would let through what it holds back, and twice told is not mended by once.
faults(Peer, HolesBefore, #state{harms = Harms} = State) ->
    Harm = maps:get(Peer, Harms, #{}),
    case holes(Peer, State) of
        [] -> [heal | maps:to_list(Harm)];
        HolesBefore -> [{Key, maps:get(Key, Harm, 0)} || Key <- [drop, delay]];
        all -> [heal | maps:to_list(maps:remove(black_hole, Harm))] ++ [black_hole];
        Lanes -> [heal | maps:to_list(Harm)] ++ [{black_hole, Lane} || Lane <- Lanes]
    end.

%% Which lanes of the connection are black holes.
holes(Peer, #state{harms = Harms, laned = Laned}) ->
    case is_hole(Peer, Harms) of
        true -> all;
        false -> maps:get(Peer, Laned, [])
    end.

lane_fault(Peer, Number, black_hole, State) ->
    case holes(Peer, State) of
        all -> has_lane(Peer, Number);
        Lanes ->
            case lists:member(Number, Lanes) of
                true -> ok;
                false -> fault(Peer, {black_hole, Number})
            end
    end;
lane_fault(Peer, Number, cut, _State) ->
    fault(Peer, {cut, Number}).

has_lane(Peer, Number) ->
    try atoll_dist:lanes(Peer) of
        {ok, #{lanes := Lanes}} when Number < length(Lanes) -> ok;
        {ok, _} -> {error, bad_fault};
        {error, _} = Error -> Error
    catch
        error:undef -> {error, no_carrier}
    end.

fault(Peer, Fault) ->
    try
        atoll_dist:fault(Peer, Fault)
    catch
        %% Nothing of Atoll is there.
        error:undef -> {error, no_carrier}
    end.

is_hole(Peer, Harms) ->
    case Harms of
        #{Peer := #{black_hole := true}} -> true;
        #{} -> false
    end.

%% There is no way through a black hole for a new connection either.
bar_if_gone(Peer, #state{harms = Harms, barred = Barred, cookie = Cookie} = State) ->
    case is_hole(Peer, Harms) andalso not is_map_key(Peer, Barred) andalso not lists:member(Peer, nodes(connected)) of
        true ->
            Before = own_cookie(Peer, State),
            true = erlang:set_cookie(Peer, Cookie),
            State#state{barred = Barred#{Peer => Before}};
        false ->
            State
    end.

%% A peer may be closed and behind a black hole.
own_cookie(Peer, #state{closed = Closed, barred = Barred}) ->
    case maps:merge(Closed, Barred) of
        #{Peer := Before} -> Before;
        #{} -> erlang:get_cookie(Peer)
    end.

%% Black holes that are none any more.
mended(Peers, #state{barred = Barred, closed = Closed, mesh = Mesh} = State) ->
    Ended = [{Peer, Before} || Peer <- Peers, #{Peer := Before} <- [Barred], not is_map_key(Peer, Closed)],
    _ = [true = erlang:set_cookie(Peer, Before) || {Peer, Before} <- Ended],
    _ = [connect(Peer) || {Peer, _} <- Ended, Mesh =/= none, is_map_key(Peer, Mesh)],
    State#state{barred = maps:without(Peers, Barred)}.

connect(Peer) ->
    spawn(lists, any, [fun net_kernel:connect_node/1, [Peer, Peer, Peer]]).

met(Peer, Info, #state{mesh = #{} = Mesh} = State) ->
    case proplists:get_value(node_type, Info) of
        visible -> State#state{mesh = Mesh#{Peer => []}};
        _ -> State
    end;
met(_Peer, _Info, State) ->
    State.

%% The first of two that are opened tries in vain. The other one, which comes while that
%% handshake is under way, gets what becomes of it, and has to try once more: that is a
%% handshake that began when both were open. A third time is to be sure. This takes its
%% time where a node does not answer, and goes on without this module.
opened(#state{closed = Closed, mesh = #{} = Mesh} = State, #state{closed = Before}) when Closed =:= #{}, Before =/= #{} ->
    _ = [connect(Peer) || Peer <- maps:keys(Mesh) -- nodes()],
    State;
opened(State, _Before) ->
    State.

close(Peer, #state{closed = Closed} = State) when is_map_key(Peer, Closed) ->
    State;
close(Peer, #state{closed = Closed, cookie = Cookie} = State) ->
    Before = own_cookie(Peer, State),
    %% Another one than the peer has for this node.
    true = erlang:set_cookie(Peer, Cookie),
    _ = [erlang:disconnect_node(Peer) || fault(Peer, cut) =/= ok],
    State#state{closed = Closed#{Peer => Before}}.

open(Peer, #state{closed = Closed, barred = Barred} = State) ->
    {Before, Left} = maps:take(Peer, Closed),
    _ = [true = erlang:set_cookie(Peer, Before) || not is_map_key(Peer, Barred)],
    State#state{closed = Left}.

hear(Peer, #state{unheard = Unheard} = State) ->
    _ = set_active(Peer, true),
    State#state{unheard = maps:remove(Peer, Unheard)}.

set_active(Peer, Active) ->
    case lists:keyfind(Peer, 1, erlang:system_info(dist_ctrl)) of
        {Peer, Socket} when is_port(Socket) ->
            %% One that is being closed at this moment is as good as gone.
            _ = inet:setopts(Socket, [{active, Active}]),
            ok;
        {Peer, _Process} ->
            {error, {not_a_socket, Peer}};
        false ->
            ok
    end.
