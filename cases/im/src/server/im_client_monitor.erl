%% SPDX-License-Identifier: Apache-2.0
%% @doc The monitor of a client that is logged in: a process on the node of the main client database of its
%% shard. It watches the client's process. If that dies, or cannot be reached, the client is away, and
%% has so long to come back until it is logged out (`away_ms'). What there is to know is in the client's
%% row: who is started in place of a killed monitor goes on from that, and tells the client.
%%
%% A client that logs out, or is away for too long, leaves its conversations first: their processes are
%% told, again and again, until its row has none of them. Only then it is out, and its name free.
-module(im_client_monitor).
-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type client() :: im_plan:client().

%% What was not answered for so long was lost.
-define(AGAIN_MS, 500).
%% Where the database said that it is not the main one.
-define(SOON_MS, 50).
%% How often the conversations are told that the client leaves, and the pause.
-define(TIMES, 20).
-define(LEAVE_MS, 100).
%% How often it is looked whether the client has connected itself with this node, and the pause.
-define(CONNECTS, 20).
-define(CONNECT_MS, 200).

-record(state, {
    client :: client(),
    server :: im_plan:server(),
    %% the client's process, and the monitor on it; none while it is away
    pid = none :: pid() | none,
    ref :: reference() | undefined,
    phase = starting :: starting | replacing | in | leaving,
    %% why it leaves, and how often its conversations are told yet
    why = finished :: finished | expired,
    times = ?TIMES :: non_neg_integer(),
    %% what the database was asked and has not answered, and the timer after which it is asked again
    asked = none :: none | {Tag :: reference(), Op :: tuple(), Timer :: reference()},
    %% what is to be done when it has answered: the last that the client wanted, or that it died
    next = none :: none | {login, pid()} | logout | away,
    %% until the client has been away for too long, is connected, or its conversations are told again
    timer :: reference() | undefined,
    %% the monitor before this one, which is to end
    before :: reference() | undefined
}).

%% @doc Starts it, for a supervisor: as this process of the client wants to log in, or from its row.
-spec start_link(client(), im_server_supervisor_core:how()) -> gen_server:start_ret().
start_link(Client, How) ->
    gen_server:start_link(?MODULE, {Client, How}, [{spawn_opt, [{fullsweep_after, 0}]}]).

%% @private
-spec init({client(), im_server_supervisor_core:how()}) -> {ok, #state{}, hibernate}.
init({Client, How}) ->
    S = #state{client = Client, server = im_plan:server_of_client(Client, im_plan:this())},
    {ok, case How of
             {login, _, Pid} -> ask({login, Client, Pid, self()}, S);
             again -> ask({peek, Client}, S)
         end, hibernate}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}, hibernate} | {stop, normal | {shutdown, replaced}, #state{}} when
    Message ::
        {im, login | logout, client(), pid()}
        | {im_db, Tag :: reference(), Reply :: term()}
        | {im_who, pid()}
        | {im_replace, pid()}
        | {timeout, reference(), ask | expired | {connected, non_neg_integer()} | leave}
        | {'DOWN', reference(), process, pid(), term()}.
handle_info({im_db, Tag, not_main}, #state{asked = {Tag, Op, Timer}} = S) ->
    _ = erlang:cancel_timer(Timer),
    rest(S#state{asked = {Tag, Op, erlang:start_timer(?SOON_MS, self(), ask)}});
handle_info({im_db, Tag, {error, Why}}, #state{asked = {Tag, _, _}} = S) when Why =/= already_logged_in, Why =/= not_logged_in ->
    %% It cannot just now. The timer asks again.
    rest(S);
handle_info({im_db, Tag, Reply}, #state{asked = {Tag, Op, Timer}} = S) ->
    _ = erlang:cancel_timer(Timer),
    case answered(Op, Reply, S#state{asked = none}) of
        over -> {stop, normal, S};
        Next -> rest(next(Next))
    end;
handle_info({timeout, Timer, ask}, #state{asked = {_, Op, Timer}} = S) ->
    rest(ask(Op, S));
handle_info({im, login, _, Pid}, #state{phase = Phase, pid = Is} = S) when Phase =/= leaving, is_pid(Is), Is =/= Pid ->
    ok = im_router:tell(Pid, {im, login_error, already_logged_in}),
    rest(S);
handle_info({im, login, _, Pid}, #state{phase = Phase} = S) when Phase =/= leaving ->
    rest(next(S#state{next = {login, Pid}}));
handle_info({im, logout, _, Pid}, #state{phase = in, pid = Pid} = S) ->
    rest(next(S#state{next = logout}));
handle_info({im, What, _, _}, S) when What =:= login; What =:= logout ->
    %% Its name is not free yet, or it is not the one: it asks again.
    rest(S);
handle_info({'DOWN', Ref, process, _, _}, #state{ref = Ref} = S) ->
    rest(lost(S));
handle_info({'DOWN', Ref, process, _, _}, #state{before = Ref, client = Client} = S) ->
    rest(ask({peek, Client}, S#state{before = undefined}));
handle_info({timeout, Timer, {connected, Times}}, #state{timer = Timer} = S) ->
    rest(watched(Times, S#state{timer = undefined}));
handle_info({timeout, Timer, expired}, #state{timer = Timer, phase = in} = S) ->
    rest(next(S#state{timer = undefined, why = expired, next = logout}));
handle_info({timeout, Timer, leave}, #state{timer = Timer, client = Client} = S) ->
    rest(ask({peek, Client}, S#state{timer = undefined}));
handle_info({im_replace, _}, S) ->
    {stop, {shutdown, replaced}, S};
handle_info({im_who, Pid}, #state{client = Client} = S) ->
    Pid ! {im_up, {client, Client}, self()},
    rest(S);
%% Timers and monitors of what is over.
handle_info({im_db, _, _}, S) -> rest(S);
handle_info({timeout, _, _}, S) -> rest(S);
handle_info({'DOWN', _, process, _, _}, S) -> rest(S).

rest(S) -> {noreply, S, hibernate}.

%% The database is asked one thing at a time.
ask(Op, #state{server = Server} = S) ->
    Tag = make_ref(),
    ok = im_names:cast(Server, client_db, Op, {self(), Tag}),
    S#state{asked = {Tag, Op, erlang:start_timer(?AGAIN_MS, self(), ask)}}.

%% What was to wait for an answer.
next(#state{asked = none, phase = in, next = Next, client = Client, pid = Pid} = S) when Next =/= none ->
    Now = S#state{next = none},
    case Next of
        {login, New} -> ask({login, Client, New, self()}, Now);
        away when is_pid(Pid) -> ask({away, Client, Pid, os:system_time(millisecond)}, Now#state{pid = none});
        away -> Now;
        logout -> ask({peek, Client}, Now#state{phase = leaving})
    end;
next(S) -> S.

%% As long as it leaves its process is remembered, and told when it is out.
lost(#state{phase = leaving} = S) -> S#state{ref = undefined};
lost(S) -> next(S#state{ref = undefined, next = away}).

answered({login, _, Pid, _}, {ok, Sessions}, S) ->
    ok = im_router:tell(Pid, {im, login_success, self(), Sessions}),
    up(watched(?CONNECTS, stopped(S#state{phase = in, pid = Pid})));
answered({login, _, Pid, _}, {error, already_logged_in}, #state{phase = Phase} = S) ->
    ok = im_router:tell(Pid, {im, login_error, already_logged_in}),
    case Phase of
        starting -> over;
        _ -> S
    end;
answered({peek, _}, none, #state{phase = leaving, pid = Pid} = S) ->
    told_out(Pid, S);
answered({peek, _}, none, _) ->
    over;
answered({peek, Client}, {ok, #{sessions := Sessions, pid := Pid}}, #state{phase = leaving, times = Times} = S)
  when Sessions =:= []; Times =:= 0 ->
    ask({logout, Client, Pid}, S);
answered({peek, Client}, {ok, #{sessions := Sessions}}, #state{phase = leaving, times = Times, why = Why} = S) ->
    Plan = im_plan:this(),
    lists:foreach(fun(Session) ->
        im_router:route(im_plan:server_of_session(Session, Plan), chat_db, {im, gone, Session, Client, Why})
    end, Sessions),
    S#state{times = Times - 1, timer = erlang:start_timer(?LEAVE_MS, self(), leave)};
answered({peek, _}, {ok, #{monitor := Before}}, #state{phase = starting} = S) when Before =/= self() ->
    replace(Before, S#state{phase = replacing});
answered({peek, Client}, {ok, #{pid := Pid, since := Since}}, S) ->
    Is = S#state{phase = replacing, why = case Since of none -> finished; _ -> expired end, pid = case Pid of away -> none; _ -> Pid end},
    ask({monitor, Client, Pid, self()}, away_until(Since, Is));
answered({monitor, _, away, _}, ok, S) ->
    up(S#state{phase = in, why = finished});
answered({monitor, _, Pid, _}, ok, S) ->
    ok = im_router:tell(Pid, {im, new_monitor, self()}),
    up(watched(?CONNECTS, S#state{phase = in}));
answered({monitor, Client, _, _}, _, S) ->
    %% Its row is another one by now.
    ask({peek, Client}, S);
answered({away, _, _, Since}, _, S) ->
    away_until(Since, S);
answered({logout, _, _}, {ok, _}, #state{pid = Pid} = S) ->
    told_out(Pid, S).

told_out(Pid, _) ->
    _ = is_pid(Pid) andalso im_router:tell(Pid, {im, logged_out}),
    over.

up(#state{client = Client} = S) ->
    ok = im_server_supervisor:up({client, Client}),
    S.

replace(Before, #state{client = Client} = S) ->
    case im_router:is_connected(Before) of
        true ->
            Ref = monitor(process, Before),
            Before ! {im_replace, self()},
            S#state{before = Ref};
        false ->
            ask({peek, Client}, S)
    end.

%% The client connects itself with this node when it has heard of this process.
watched(_, #state{pid = none} = S) -> S;
watched(Times, #state{pid = Pid, ref = Ref} = S) ->
    case im_router:is_connected(Pid) of
        true ->
            _ = Ref =:= undefined orelse demonitor(Ref, [flush]),
            S#state{ref = monitor(process, Pid)};
        false when Times =:= 0 -> lost(S);
        false -> (stopped(S))#state{timer = erlang:start_timer(?CONNECT_MS, self(), {connected, Times - 1})}
    end.

away_until(none, S) -> S;
away_until(Since, S) ->
    Left = Since + im_plan:setting(away_ms, im_plan:this()) - os:system_time(millisecond),
    (stopped(S))#state{timer = erlang:start_timer(max(0, Left), self(), expired)}.

stopped(#state{timer = undefined} = S) -> S;
stopped(#state{timer = Timer} = S) ->
    _ = erlang:cancel_timer(Timer),
    S#state{timer = undefined}.
