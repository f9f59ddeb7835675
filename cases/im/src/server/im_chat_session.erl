%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a conversation: does what {@link im_chat_session_core} decides. It runs on the node
%% of the main chat database of its shard, or on another of the same group until it is moved.
-module(im_chat_session).
-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type session() :: {binary(), binary()}.

-record(state, {
    session :: session(),
    core :: im_chat_session_core:core() | over,
    plan :: im_plan:plan(),
    server :: im_plan:server(),
    watched = #{} :: #{reference() => {im_chat_session_core:watched(), pid()}},
    %% the database that was asked last
    main = none :: none | {pid(), reference()},
    beat :: reference() | undefined,
    resting = false :: boolean()
}).

%% @doc Starts it, for a supervisor: from its row (`again'), or as this client has asked for it.
-spec start_link(session(), im_server_supervisor_core:how()) -> gen_server:start_ret().
start_link(Session, How) ->
    %% Long lived, and small between two messages.
    gen_server:start_link(?MODULE, {Session, How}, [{spawn_opt, [{fullsweep_after, 20}]}]).

%% @private
-spec init({session(), im_server_supervisor_core:how()}) -> {ok, #state{}}.
init({Session, How}) ->
    Plan = im_plan:this(),
    {Mode, Asker} = case How of
        {chat, Client, Pid} -> {new, {ask, chat, Client, Pid}};
        {open, Client, Pid} -> {again, {ask, open, Client, Pid}};
        again -> {again, none}
    end,
    Settings = maps:from_list([{Key, im_plan:setting(Key, Plan)} || Key <- [away_ms, away_messages, idle_ms, max_body]]),
    Config = Settings#{session => Session, self => self(), inc => os:system_time(microsecond), mode => Mode},
    {Core, Effects} = im_chat_session_core:new(Config, now_ms()),
    S = perform(Effects, #state{session = Session, core = Core, plan = Plan, server = im_plan:server_of_session(Session, Plan)}),
    {ok, case Asker of none -> S; _ -> event(Asker, S) end}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {noreply, #state{}, hibernate} | {stop, Reason, #state{}} when
    Message ::
        {im, say, Inc :: integer(), Client :: binary(), im_direction:seq(), Body :: binary(), Meta :: term(), pid()}
        | {im, received, Inc :: integer(), Client :: binary(), im_direction:seq()}
        | {im, hello, Inc :: integer(), Client :: binary(), pid(), im_direction:seq()}
        | {im, finish, Inc :: integer(), Client :: binary()}
        %% from the supervisor
        | {im, ask, chat | open, Client :: binary(), pid()}
        | {im, gone, Client :: binary(), finished | expired}
        | {im_who, pid()}
        %% from the process that takes this one's place
        | {im_replace, pid()}
        | {im_db, im_chat_session_core:tag(), Reply :: term()}
        | {timeout, reference(), beat}
        | {'DOWN', reference(), process, pid(), term()},
    Reason :: normal | {shutdown, replaced}.
handle_info({im_db, Tag, Reply}, S) ->
    handled({db, Tag, Reply}, S);
handle_info({im, say, Inc, Client, Seq, Body, Meta, Pid}, S) ->
    of_inc(Inc, {say, Client, Seq, Body, Meta, Pid}, S);
handle_info({im, received, Inc, Client, UpTo}, S) ->
    of_inc(Inc, {received, Client, UpTo}, S);
handle_info({im, hello, Inc, Client, Pid, UpTo}, S) ->
    of_inc(Inc, {hello, Client, Pid, UpTo}, S);
handle_info({im, finish, Inc, Client}, S) ->
    of_inc(Inc, {finish, Client}, S);
handle_info({im, ask, How, Client, Pid}, S) ->
    handled({ask, How, Client, Pid}, S);
handle_info({im, gone, Client, Why}, S) ->
    handled({gone, Client, Why}, S);
handle_info({timeout, Ref, beat}, #state{beat = Ref} = S) ->
    handled(beat, S#state{beat = undefined});
handle_info({timeout, _, beat}, S) ->
    {noreply, S};
handle_info({'DOWN', Ref, process, Pid, _}, #state{main = {Pid, Ref}} = S) ->
    handled(no_main, S#state{main = none});
handle_info({'DOWN', Ref, process, Pid, _}, #state{watched = Watched} = S) ->
    case maps:take(Ref, Watched) of
        {{Side, Pid}, Others} -> handled({down, Side, Pid}, S#state{watched = Others});
        error -> {noreply, S}
    end;
handle_info({im_replace, _}, S) ->
    {stop, {shutdown, replaced}, S};
handle_info({im_who, Pid}, #state{session = Session} = S) ->
    Pid ! {im_up, {session, Session}, self()},
    {noreply, S}.

of_inc(Inc, Event, #state{core = Core} = S) ->
    case im_chat_session_core:is_current(Inc, Core) of
        true -> handled(Event, S);
        false -> {noreply, S}
    end.

handled(Event, S) ->
    case event(Event, S) of
        #state{core = over} = Next -> {stop, normal, Next};
        #state{resting = true} = Next -> {noreply, Next#state{resting = false}, hibernate};
        Next -> {noreply, Next}
    end.

event(Event, #state{core = Core} = S) ->
    {Next, Effects} = im_chat_session_core:handle(Event, now_ms(), Core),
    perform(Effects, S#state{core = Next}).

perform([], S) -> S;
perform([Effect | Effects], S) -> perform(Effects, perform1(Effect, S)).

perform1({send, Pid, Message}, S) ->
    %% A client whose connection is lost is told nothing: it is down for us, and comes back itself.
    _ = erlang:send(Pid, Message, [noconnect]),
    S;
perform1({tell, Pid, Message}, S) ->
    ok = im_router:tell(Pid, Message),
    S;
perform1({ask, chat, Tag, Op}, #state{server = Server} = S) ->
    ok = im_names:cast(Server, chat_db, Op, {self(), Tag}),
    watch_main(im_names:whereis(Server, 1, chat_db), S);
perform1({ask, {client, Client}, Tag, Op}, #state{plan = Plan} = S) ->
    ok = im_names:cast(im_plan:server_of_client(Client, Plan), client_db, Op, {self(), Tag}),
    S;
perform1({beat, Ms}, #state{beat = Before} = S) ->
    _ = Before =:= undefined orelse erlang:cancel_timer(Before, [{async, true}, {info, false}]),
    S#state{beat = erlang:start_timer(Ms, self(), beat)};
perform1({watch, Side, Pid}, S) ->
    watch(Side, Pid, S);
perform1({replace, Pid}, S) ->
    %% If its node is lost there is nobody to wait for.
    case im_router:is_connected(Pid) of
        true ->
            Pid ! {im_replace, self()},
            watch(before, Pid, S);
        false ->
            event({down, before, Pid}, S)
    end;
perform1({kill, Pid}, S) ->
    exit(Pid, kill),
    S;
perform1(up, #state{session = Session} = S) ->
    ok = im_server_supervisor:up({session, Session}),
    S;
perform1(rest, S) -> S#state{resting = true};
perform1(stop, S) -> S#state{core = over}.

watch(Side, Pid, #state{watched = Watched} = S) ->
    case lists:member({Side, Pid}, maps:values(Watched)) orelse is_pid(Pid) andalso not im_router:is_connected(Pid) of
        true -> S;
        false -> watched(Side, Pid, S)
    end.

watched(Side, Pid, #state{watched = Watched} = S) ->
    Others = maps:filter(fun(Ref, {Is, _}) when Is =:= Side -> not demonitor(Ref, [flush]);
                            (_, _) -> true end, Watched),
    S#state{watched = case Pid of none -> Others; _ -> Others#{monitor(process, Pid) => {Side, Pid}} end}.

watch_main(undefined, S) -> S;
watch_main(Pid, #state{main = {Pid, _}} = S) -> S;
watch_main(Pid, #state{main = Before} = S) ->
    _ = case Before of {_, Ref} -> demonitor(Ref, [flush]); none -> true end,
    S#state{main = {Pid, monitor(process, Pid)}}.

now_ms() -> erlang:monotonic_time(millisecond).
