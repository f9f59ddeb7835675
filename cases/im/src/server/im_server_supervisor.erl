%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor of a server node, in the sense of the paper: it has the client monitors and the chat
%% sessions started that are asked for, and starts those again that die. It does what
%% {@link im_server_supervisor_core} decides.
%%
%% Killed itself, it has the table of {@link im_monitored_db}, asks the processes that stand in no table who they
%% are, and the databases of this node which rows they are the main ones of.
-module(im_server_supervisor).
-behaviour(gen_server).

-export([start_link/0, up/1, fill/0, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {
    core :: im_server_supervisor_core:core(),
    plan :: im_plan:plan(),
    refs = #{} :: #{pid() => reference()},
    %% of which databases this node has the main one; its name may come a little later
    mains = #{} :: #{{im_plan:server(), im_plan:kind()} => []}
}).

-define(NAME, server_supervisor).
%% How long a supervisor of OTP's that was killed may take to be there again.
-define(AGAIN_MS, 50).

%% @doc Starts it under the name `server_supervisor'.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?NAME}, ?MODULE, [], []).

%% @doc The calling process goes on as that.
-spec up(im_server_supervisor_core:key()) -> ok.
up(Key) -> notify({im_up, Key, self()}).

%% @doc The table of what is watched is there, and empty.
-spec fill() -> ok.
fill() -> notify(im_fill).

%% If it is not there it looks when it is.
notify(Message) ->
    _ = case whereis(?NAME) of undefined -> ok; Pid -> Pid ! Message end,
    ok.

%% @doc How many processes it watches, starts and has started again, on this node.
-spec info() -> #{atom() => non_neg_integer()}.
info() -> gen_server:call(?NAME, info).

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    S = event({watched, im_monitored_db:all()}, #state{core = im_server_supervisor_core:new(), plan = im_plan:this()}),
    _ = [Pid ! {im_who, self()} || Module <- [im_client_monitor, im_chat_session], Pid <- im_dynamic_sup:children(Module),
                                   not is_map_key(Pid, S#state.refs)],
    ok = im_db:tell(),
    {ok, S}.

%% @private
-spec handle_call(info, gen_server:from(), #state{}) -> {reply, map(), #state{}}.
handle_call(info, _, #state{core = Core} = S) -> {reply, im_server_supervisor_core:info(Core), S}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} when
    Message ::
        im_router:request()
        | {im_up, im_server_supervisor_core:key(), pid()}
        | im_fill
        %% of another supervisor, whose node is not the main one any more
        | {im_again, im_server_supervisor_core:key()}
        %% of a database here: what it is from now on
        | {im_db, role, im_plan:server(), im_plan:kind(), im_replica:role()}
        %% of one which is the main one from now on
        | {im_db, main, im_plan:server(), im_plan:kind(), Lost :: [node()] | handed_over, Rows :: [{term(), map()}]}
        | {start, im_server_supervisor_core:key(), im_server_supervisor_core:how()}
        | {'DOWN', reference(), process, pid(), term()}.
handle_info({im, login, Client, Pid} = Login, S) ->
    {noreply, event({request, {client, Client}, {login, Client, Pid}, Login}, S)};
handle_info({im, chat, From, To, Pid}, S) ->
    {noreply, event({request, {session, im_plan:session(From, To)}, {chat, From, Pid}, {im, ask, chat, From, Pid}}, S)};
handle_info({im, open, Session, Client, Pid}, S) ->
    {noreply, event({request, {session, Session}, {open, Client, Pid}, {im, ask, open, Client, Pid}}, S)};
handle_info({im, gone, Session, Client, Why}, S) ->
    {noreply, event({request, {session, Session}, again, {im, gone, Client, Why}}, S)};
handle_info({im_up, Key, Pid}, S) ->
    {noreply, event({up, Key, Pid}, S)};
handle_info({'DOWN', _, process, Pid, Reason}, S) ->
    {noreply, event({down, Pid, Reason}, S)};
handle_info({im_db, role, Server, Kind, main}, #state{mains = Mains} = S) ->
    {noreply, S#state{mains = Mains#{{Server, Kind} => []}}};
handle_info({im_db, role, Server, Kind, _}, #state{mains = Mains} = S) ->
    {noreply, S#state{mains = maps:remove({Server, Kind}, Mains)}};
handle_info({im_db, main, _, Kind, Lost, Rows}, S) ->
    {noreply, event({rows, [row(Kind, Row, Lost) || Row <- Rows]}, S)};
handle_info({im_again, Key}, #state{core = Core} = S) ->
    case im_server_supervisor_core:where(Key, Core) of
        undefined -> {noreply, event({rows, [{Key, lost}]}, S)};
        _ -> {noreply, S}
    end;
handle_info({start, Key, How}, S) ->
    {noreply, start(Key, How, S)};
handle_info(im_fill, #state{core = Core} = S) ->
    _ = [ok = im_monitored_db:put(Key, Pid) || {Key, Pid} <- im_server_supervisor_core:all(Core)],
    {noreply, S}.

row(client_db, {Client, Row}, Lost) -> {{client, Client}, place(im_client_table:pid(Row), Lost)};
row(chat_db, {Session, Row}, Lost) -> {{session, Session}, place(im_chat_table:pid(Row), Lost)}.

place(Pid, _) when node(Pid) =:= node() -> {keep, Pid};
place(Pid, Lost) ->
    case im_router:is_connected(Pid) of
        false -> lost;
        true when Lost =:= handed_over -> move;
        true -> case lists:member(node(Pid), Lost) of true -> lost; false -> {keep, Pid} end
    end.

event(Event, #state{core = Core} = S) ->
    {Next, Effects} = im_server_supervisor_core:handle(Event, Core),
    lists:foldl(fun effect/2, S#state{core = Next}, Effects).

effect({send, Pid, Message}, S) ->
    Pid ! Message,
    S;
effect({watch, Key, Pid}, #state{refs = Refs} = S) ->
    ok = im_monitored_db:put(Key, Pid),
    S#state{refs = Refs#{Pid => monitor(process, Pid)}};
effect({unwatch, Pid}, #state{refs = Refs} = S) ->
    ok = im_monitored_db:remove(Pid),
    {Ref, Others} = maps:take(Pid, Refs),
    true = demonitor(Ref, [flush]),
    S#state{refs = Others};
effect({start, Key, How}, S) ->
    start(Key, How, S).

%% Only the node with the main database: another one would have the same process twice.
start(Key, How, #state{plan = Plan, mains = Mains} = S) ->
    {Server, Kind, Module, Name} = case Key of
        {client, Client} -> {im_plan:server_of_client(Client, Plan), client_db, im_client_monitor, Client};
        {session, Session} -> {im_plan:server_of_session(Session, Plan), chat_db, im_chat_session, Session}
    end,
    case is_map_key({Server, Kind}, Mains) of
        true ->
            case im_dynamic_sup:start_child(Module, [Name, How]) of
                {ok, Started} -> event({started, Key, Started}, S);
                again ->
                    _ = erlang:send_after(?AGAIN_MS, self(), {start, Key, How}),
                    S
            end;
        false ->
            %% One that has died while its shard was elsewhere.
            Main = im_names:whereis(Server, 1, Kind),
            _ = is_pid(Main) andalso node(Main) =/= node() andalso How =:= again andalso erlang:send({?NAME, node(Main)}, {im_again, Key}, [noconnect]),
            event({not_here, Key}, S)
    end.
