%% SPDX-License-Identifier: Apache-2.0
%% @doc The traffic of one client node: its doped clients, and the conversations that they begin.
%%
%% It logs its clients in, so many at a time, and then, when it is told, keeps so many conversations
%% going: one that has ended is replaced by one of another pair at once. It tells the run ({@link
%% im_traffic}) what a history needs: one event for each side of a conversation that has ended, and
%% for each login.
%%
%% All that it starts is linked to it, and it ends with the run's process, or with the connection to
%% that one's node.
-module(im_traffic_node).

-behaviour(gen_server).

-export([start/1, call/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([settings/0, request/0, told/0]).

-type settings() :: #{
    run := pid(),
    %% The Kth of N client nodes.
    place := {K :: pos_integer(), N :: pos_integer()},
    routers := [node(), ...],
    routers_per_node := pos_integer(),
    %% Of all nodes.
    clients := pos_integer(),
    conversations := non_neg_integer(),
    %% From so many to so many messages in a chain of a dialogue.
    messages := {pos_integer(), pos_integer()} | monologue,
    doped := im_doped_core:settings(),
    %% Of all nodes in a second, and how.
    rate := number() | none,
    arrivals := even | poisson,
    %% How many clients may wait for their login at once.
    logins := pos_integer(),
    %% So many a second, of all nodes, try to log in with a name that somebody has.
    rivals := number(),
    threshold_us := pos_integer(),
    log := im_logger:options() | none,
    seed := integer()
}.

-type request() ::
    %% The conversations; what is to be said at a rate; and the measured time.
    converse
    | speak
    | 'begin'
    | 'end'
    %% Nothing more is said; all is finished; what is still open is told as it is.
    | stop
    | finish
    | drained
    | logout
    | look.

-type told() ::
    {logged_in, Ms :: non_neg_integer()}
    %% All conversations of an open loop are there.
    | open
    | {history, im_history:event()}
    | {windows, [im_csv:window()]}
    %% All clients have logged out.
    | logged_out.

-record(state, {
    settings :: settings(),
    count :: im_traffic_count:count(),
    logger = none :: pid() | none,
    rand :: rand:state(),
    begun_ms :: integer(),
    is_told = false :: boolean(),
    %% Those that are to be started, those that wait for their login, all by process, and those
    %% that are logged in.
    coming :: [im_traffic_pairs:index()],
    asking = #{} :: #{pid() => []},
    clients = #{} :: #{pid() => {im_traffic_pairs:index(), im_history_side:client()}},
    present = #{} :: #{im_traffic_pairs:index() => pid()},
    rivals = #{} :: #{pid() => []},
    %% What goes on.
    conversing = false :: boolean(),
    number = 0 :: non_neg_integer(),
    running = #{} :: #{im_history_side:conversation() => {im_traffic_pairs:index(), im_traffic_pairs:index()}},
    pairs = #{} :: #{{im_traffic_pairs:index(), im_traffic_pairs:index()} => []},
    slots = #{} :: #{im_history_side:conversation() => im_pacer:slot()},
    pacer = none :: pid() | none,
    is_leaving = false :: boolean(),
    %% Numbers for the result.
    numbers = #{begun => 0, refused => 0, died => 0, rivals => 0, rivals_refused => 0} :: #{atom() => non_neg_integer()},
    ended = #{} :: #{Reason :: atom() => pos_integer()}
}).

%% Until a conversation is begun in place of one that could not be.
-define(AGAIN_MS, 100).
-define(CALL_MS, 60000).

%% @doc Starts it on this node. It tells the run `{im_traffic_node, Pid, Told}'.
-spec start(settings()) -> gen_server:start_ret().
start(Settings) -> gen_server:start(?MODULE, Settings, []).

%% @doc Asks for something; `look' and the end of the measured time give numbers.
-spec call(pid(), request()) -> map().
call(Pid, Request) -> gen_server:call(Pid, Request, ?CALL_MS).

%% @private
-spec init(settings()) -> {ok, #state{}, {continue, login}}.
init(#{run := Run, place := {K, N}, clients := Clients, seed := Seed, threshold_us := Threshold} = Settings) ->
    process_flag(trap_exit, true),
    _ = monitor(process, Run),
    State = #state{
        settings = Settings,
        count = im_traffic_count:new(Threshold),
        rand = rand:seed_s(exsss, erlang:phash2({Seed, K})),
        begun_ms = erlang:monotonic_time(millisecond),
        coming = lists:seq(K, Clients, N)
    },
    {ok, State, {continue, login}}.

%% @private
-spec handle_continue(login, #state{}) -> {noreply, #state{}}.
handle_continue(login, State) ->
    {noreply, logged_in(more(rivals(State)))}.

%% Starts clients, as long as few enough wait for their login.
more(#state{coming = [Index | Coming], asking = Asking, clients = Clients, settings = #{logins := Most, place := {_, N}}} = State) when map_size(Asking) < Most ->
    Name = im_traffic_pairs:name(Index, N),
    Pid = client(Name, State),
    more(State#state{coming = Coming, asking = Asking#{Pid => []}, clients = Clients#{Pid => {Index, Name}}});
more(State) ->
    State.

client(Name, #state{count = Count, settings = #{routers := Routers, routers_per_node := PerNode, doped := Doped, seed := Seed}}) ->
    Options = #{node => self(), settings => Doped, seed => Seed, count => Count},
    {ok, Pid} = im_doped:start_link(Name, {Routers, #{routers_per_node => PerNode}}, Options),
    Pid.

logged_in(#state{coming = [], asking = Asking, begun_ms = Begun, is_told = false} = State) when map_size(Asking) =:= 0 ->
    tell({logged_in, erlang:monotonic_time(millisecond) - Begun}, State#state{is_told = true});
logged_in(State) ->
    State.

tell(Told, #state{settings = #{run := Run}} = State) ->
    Run ! {?MODULE, self(), Told},
    State.

%% @private
-spec handle_call(request(), gen_server:from(), #state{}) -> {reply, map(), #state{}}.
handle_call(converse, _From, #state{settings = #{conversations := All, place := {K, N}}} = State) ->
    Share = im_traffic_pairs:share(All, K, N),
    Begun = lists:foldl(fun(_, S) -> another(S) end, State#state{conversing = true}, lists:seq(1, Share)),
    {reply, #{}, opened(Begun)};
handle_call(speak, _From, #state{slots = Slots} = State) when map_size(Slots) =:= 0 ->
    {reply, #{}, State};
handle_call(speak, _From, #state{slots = Slots, settings = #{rate := Rate, arrivals := Arrivals, seed := Seed, place := {K, N}}} = State) ->
    Pacer = im_pacer:start_link(#{rate => Rate / N, arrivals => Arrivals, seed => {Seed, K}}, maps:values(Slots)),
    {reply, #{}, State#state{pacer = Pacer}};
handle_call('begin', _From, #state{count = Count} = State0) ->
    ok = im_traffic_count:measure('begin', Count),
    case logger(State0) of
        {ok, State} -> {reply, look(State), State};
        {error, Reason} -> {reply, #{error => Reason}, State0}
    end;
handle_call('end', _From, #state{count = Count} = State) ->
    ok = im_traffic_count:measure('end', Count),
    {reply, look(State), State};
handle_call(look, _From, State) ->
    {reply, look(State), State};
handle_call(stop, _From, #state{pacer = Pacer} = State) ->
    _ = [exit(Pacer, kill) || is_pid(Pacer)],
    %% One that has not heard so would go on in a conversation that another one finishes.
    {reply, #{}, heard_by_all(stop, State#state{conversing = false})};
handle_call(finish, _From, State) ->
    {reply, #{}, to_all(finish, State)};
handle_call(drained, _From, State) ->
    %% Each one's reports are here before its answer.
    {reply, #{}, heard_by_all(drained, State)};
handle_call(logout, _From, #state{clients = Clients, present = Present} = State0) ->
    Now = wall_us(),
    Told = maps:fold(
        fun(Index, Pid, S) when is_map_key(Pid, Clients) ->
            #{Pid := {Index, Name}} = Clients,
            tell({history, {logout, Name, Pid, Now}}, S)
        end,
        State0,
        Present
    ),
    {reply, #{}, left(to_all(logout, Told#state{is_leaving = true}))}.

%% The logger begins with the measured time.
logger(#state{settings = #{log := none}} = State) ->
    {ok, State};
logger(#state{settings = #{log := #{latency := Latency} = Log, place := {K, _}}, count = Count, clients = Clients} = State) ->
    case im_logger:start_link(Log#{node => K}, Count) of
        {ok, Logger} when Latency ->
            Quota = im_logger:quota(Logger),
            _ = [Pid ! {im_doped, {log, Quota}} || Pid <- maps:keys(Clients)],
            {ok, State#state{logger = Logger}};
        {ok, Logger} ->
            {ok, State#state{logger = Logger}};
        {error, _} = Error ->
            Error
    end.

look(#state{count = Count, numbers = Numbers, running = Running, slots = Slots, present = Present, ended = Ended}) ->
    maps:merge(im_traffic_count:look(Count), Numbers#{
        running => map_size(Running), open => map_size(Slots), present => map_size(Present), ended => Ended, latency => im_traffic_count:latency(Count)
    }).

to_all(Event, #state{clients = Clients} = State) ->
    _ = [Pid ! {im_doped, Event} || Pid <- maps:keys(Clients)],
    State.

heard_by_all(Event, #state{clients = Clients} = State) ->
    ok = lists:foreach(fun(Pid) -> im_doped:heard(Event, Pid) end, maps:keys(Clients)),
    State.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Unknown, _State) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(tuple() | another | rival, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({im_doped, Pid, Name, Report}, #state{rivals = Rivals} = State) when is_map_key(Pid, Rivals) ->
    {noreply, rival(Report, Pid, Name, State)};
handle_info({im_doped, Pid, Name, Report}, State) ->
    {noreply, report(Report, Pid, Name, State)};
handle_info(another, State) ->
    {noreply, another(State)};
handle_info(rival, State) ->
    {noreply, rivals(begin_rival(State))};
handle_info({'EXIT', Logger, normal}, #state{logger = Logger} = State) ->
    {noreply, State};
handle_info({im_logger, Logger, Windows}, #state{logger = Logger} = State) ->
    {noreply, tell({windows, Windows}, State)};
handle_info({'EXIT', Pacer, killed}, #state{pacer = Pacer} = State) ->
    {noreply, State#state{pacer = none}};
handle_info({'EXIT', Pid, Reason}, #state{clients = Clients, rivals = Rivals} = State) ->
    case {Clients, Rivals} of
        {#{Pid := {Index, Name}}, _} -> {noreply, left(gone(Pid, Index, Name, State))};
        {_, #{Pid := _}} -> {noreply, State#state{rivals = maps:remove(Pid, Rivals)}};
        _ -> {stop, Reason, State}
    end;
handle_info({'DOWN', _, process, Run, _}, #state{settings = #{run := Run}} = State) ->
    %% A normal end would leave its clients.
    {stop, shutdown, State}.

report(logged_in, Pid, Name, #state{clients = Clients, present = Present, asking = Asking} = State) ->
    #{Pid := {Index, Name}} = Clients,
    Told = tell({history, {login, Name, Pid, wall_us()}}, State),
    logged_in(more(Told#state{present = Present#{Index => Pid}, asking = maps:remove(Pid, Asking)}));
report(login_refused, _Pid, _Name, State) ->
    %% It ends by itself.
    counted(refused, State);
report({connection, lost}, Pid, Name, State) ->
    tell({history, {logout, Name, Pid, wall_us()}}, State);
report({connection, back}, Pid, Name, State) ->
    tell({history, {login, Name, Pid, wall_us()}}, State);
report({open, Id, Peer}, Pid, _Name, #state{slots = Slots} = State) ->
    opened(State#state{slots = Slots#{Id => {Pid, Peer, Id}}});
report({not_begun, Id, _Reason}, _Pid, _Name, State) ->
    later(without(Id, State));
report({ended, Id, Whose, Side, Reason}, _Pid, _Name, #state{ended = Ended} = State) ->
    Told = tell({history, {side, Side}}, State),
    case {Whose, Reason} of
        {other, _} -> Told;
        {mine, finished} -> another(without(Id, Told#state{ended = increased(Reason, Ended)}));
        {mine, _} -> later(without(Id, Told#state{ended = increased(Reason, Ended)}))
    end.

%% Of the node's own clock, which all nodes of a machine have.
wall_us() -> os:system_time(microsecond).

counted(Key, #state{numbers = Numbers} = State) -> State#state{numbers = increased(Key, Numbers)}.

increased(Key, Map) -> maps:update_with(Key, fun(N) -> N + 1 end, 1, Map).

%% Conversations

another(#state{conversing = false} = State) ->
    State;
another(#state{settings = #{clients := Clients, place := {K, N} = Place, messages := Messages}, present = Present, pairs = Pairs, rand = Rand0} = State) ->
    IsFree = fun(One, Other) -> is_map_key(One, Present) andalso not is_map_key(pair(One, Other), Pairs) end,
    case im_traffic_pairs:draw(Clients, Place, IsFree, Rand0) of
        {{One, Other} = Both, Rand1} ->
            {Length, Rand} = how_long(Messages, Rand1),
            #state{number = Number, running = Running} = State,
            Id = {K, Number + 1},
            map_get(One, Present) ! {im_doped, {converse, Id, im_traffic_pairs:name(Other, N), Length}},
            counted('begun', State#state{
                rand = Rand, number = Number + 1, running = Running#{Id => Both}, pairs = Pairs#{pair(One, Other) => []}
            });
        {none, Rand} ->
            later(State#state{rand = Rand})
    end.

pair(One, Other) -> {min(One, Other), max(One, Other)}.

how_long(monologue, Rand) ->
    {monologue, Rand};
how_long({Min, Max}, Rand0) ->
    {X, Rand} = rand:uniform_s(Max - Min + 1, Rand0),
    {Min + X - 1, Rand}.

later(State) ->
    _ = erlang:send_after(?AGAIN_MS, self(), another),
    State.

without(Id, #state{running = Running, pairs = Pairs, slots = Slots} = State) ->
    case maps:take(Id, Running) of
        {{One, Other}, Others} ->
            State#state{running = Others, pairs = maps:remove(pair(One, Other), Pairs), slots = maps:remove(Id, Slots)};
        error ->
            State
    end.

opened(#state{settings = #{messages := monologue, conversations := All, place := {K, N}}, slots = Slots, conversing = true} = State) ->
    case map_size(Slots) =:= im_traffic_pairs:share(All, K, N) of
        true -> tell(open, State);
        false -> State
    end;
opened(State) ->
    State.

%% Clients that are gone

gone(Pid, Index, Name, #state{clients = Clients, present = Present, asking = Asking, running = Running, is_leaving = Leaving} = State0) ->
    State = State0#state{clients = maps:remove(Pid, Clients), present = maps:remove(Index, Present), asking = maps:remove(Pid, Asking)},
    case Leaving orelse is_map_key(Pid, Asking) of
        true ->
            logged_in(more(State));
        false ->
            Told = tell({history, {gone, Name}}, tell({history, {logout, Name, Pid, wall_us()}}, State)),
            Its = [Id || {Id, {One, _}} <- maps:to_list(Running), One =:= Index],
            lists:foldl(fun(Id, S) -> later(without(Id, S)) end, counted(died, Told), Its)
    end.

left(#state{is_leaving = true, clients = Clients} = State) when map_size(Clients) =:= 0 -> tell(logged_out, State);
left(State) -> State.

%% Rivals, who are refused if all is well; they count when they have their answer

rivals(#state{settings = #{rivals := 0}} = State) ->
    State;
rivals(#state{settings = #{rivals := PerSecond, place := {_, N}}} = State) ->
    _ = erlang:send_after(round(1000 * N / PerSecond), self(), rival),
    State.

begin_rival(#state{present = Present, is_leaving = Leaving} = State) when map_size(Present) =:= 0; Leaving ->
    State;
begin_rival(#state{present = Present, clients = Clients, rivals = Rivals, rand = Rand0} = State) ->
    {I, Rand} = rand:uniform_s(map_size(Clients), Rand0),
    case lists:nth(I, maps:values(Clients)) of
        {Index, Name} when is_map_key(Index, Present) ->
            Pid = client(Name, State),
            State#state{rand = Rand, rivals = Rivals#{Pid => []}};
        _ ->
            State#state{rand = Rand}
    end.

rival(logged_in, Pid, Name, State) ->
    Told = tell({history, {login, Name, Pid, wall_us()}}, counted(rivals, State)),
    Pid ! {im_doped, logout},
    tell({history, {logout, Name, Pid, wall_us()}}, Told);
rival(login_refused, _Pid, _Name, State) ->
    counted(rivals, counted(rivals_refused, State));
rival(_, _Pid, _Name, State) ->
    State.
