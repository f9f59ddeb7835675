%% SPDX-License-Identifier: Apache-2.0
%% @doc A router process, and the way of a message to whoever it is for.
%%
%% A client sends what it wants to any router. The router finds the main database of the client's shard,
%% or the session's, and passes it on to the supervisor of that node. In mode rsd it does so within its
%% own group, and passes what is for another one to a router of that group.
%%
%% A router knows the plan and the names of its group and nothing else. So where the paper keeps
%% lists of servers and routers in each router, and tells all others when one dies, nobody is told
%% anything here: the next message finds whoever is there. What finds nobody is dropped and counted;
%% clients ask again.
%%
%% The other way round: a server node that has no connection with a client's node yet tells it
%% something over the routers, to one of which the client is connected. Then the client connects
%% itself with the server node. No node of the messenger opens a connection to a client's node.
-module(im_router).
-behaviour(gen_server).

-export([start_link/1, route/3, tell/2, is_connected/1, counters/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([request/0]).

-type request() ::
    {im, login, im_plan:client(), pid()}
    | {im, chat, From :: im_plan:client(), To :: im_plan:client(), pid()}
    | {im, open, im_plan:session(), im_plan:client(), pid()}
    %% of a client's monitor: it leaves its conversations
    | {im, gone, im_plan:session(), im_plan:client(), finished | expired}.

-define(COUNTERS, {?MODULE, counters}).

%% @doc Starts it under the name `router_K', for a supervisor.
-spec start_link(pos_integer()) -> gen_server:start_ret().
start_link(K) -> gen_server:start_link({local, im_plan:router_name(K)}, ?MODULE, [], []).

%% @doc Sends a request on its way to the main database of that shard, from any node of the messenger.
-spec route(im_plan:server(), im_plan:kind(), request()) -> ok.
route(Server, Kind, Request) ->
    Plan = im_plan:this(),
    case {lists:member(node(), im_plan:members(Server, Plan)), im_plan:role(node(), Plan)} of
        {true, _} ->
            case im_names:whereis(Server, 1, Kind) of
                undefined -> count(dropped);
                Pid -> to({server_supervisor, node(Pid)}, Request)
            end;
        {false, {router, _}} -> to({any(Plan), im_plan:router_of(Server, Plan)}, Request);
        {false, _} -> to({any(Plan), own_router(Plan)}, Request)
    end.

%% @doc Tells a client something, over the routers if there is no connection with its node.
-spec tell(pid(), tuple()) -> ok.
tell(Pid, Message) ->
    case is_connected(Pid) of
        true -> to(Pid, Message);
        false ->
            Plan = im_plan:this(),
            lists:foreach(fun(Node) -> to({any(Plan), Node}, {im, tell, Pid, Message}) end, tellers(Plan))
    end.

%% From a server its own router, which asks the others; in a mesh all of them.
tellers(Plan) ->
    case {im_plan:setting(mode, Plan), im_plan:role(node(), Plan)} of
        {rsd, {server, _}} -> [own_router(Plan)];
        _ -> im_plan:routers(Plan) -- [node()]
    end.

own_router(Plan) ->
    {server, J} = im_plan:role(node(), Plan),
    im_plan:router_of(J, Plan).

%% A process of a router node.
any(Plan) -> im_plan:router_name(rand:uniform(im_plan:setting(routers_per_node, Plan))).

%% @doc Whether there is a connection with the process's node now.
-spec is_connected(pid()) -> boolean().
is_connected(Pid) when node(Pid) =:= node() -> true;
is_connected(Pid) -> lists:member(node(Pid), nodes([visible, hidden])).

%% No connection is opened for it; over the carrier what has a way needs none.
to(To, Message) ->
    _ = erlang:send(To, Message, options(To)),
    ok.

options(Pid) when is_pid(Pid) -> [noconnect];
options(_) -> [].

%% @doc What the routers of this node have passed on, and what they have dropped.
-spec counters() -> #{passed := non_neg_integer(), dropped := non_neg_integer(), malformed := non_neg_integer()}.
counters() ->
    Counters = counters_ref(),
    maps:from_list([{What, counters:get(Counters, I)} || {What, I} <- [{passed, 1}, {dropped, 2}, {malformed, 3}]]).

count(What) ->
    I = case What of passed -> 1; dropped -> 2; malformed -> 3 end,
    counters:add(counters_ref(), I, 1).

%% Of the node, so that they outlive each router.
counters_ref() ->
    case persistent_term:get(?COUNTERS, none) of
        none ->
            ok = persistent_term:put(?COUNTERS, counters:new(3, [write_concurrency])),
            counters_ref();
        Ref -> Ref
    end.

%% @private
-spec init([]) -> {ok, im_plan:plan()}.
init([]) -> {ok, im_plan:this()}.

%% @private
-spec handle_call(term(), gen_server:from(), im_plan:plan()) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast(term(), im_plan:plan()) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
%% What a client sends may be anything: what is no request is counted, and hurts nobody.
-spec handle_info(request() | {im, tell | pass, pid(), tuple()} | term(), im_plan:plan()) -> {noreply, im_plan:plan()}.
handle_info({im, tell, Pid, Message}, Plan) when is_pid(Pid) ->
    case is_connected(Pid) of
        true -> to(Pid, Message);
        false -> lists:foreach(fun(Node) -> to({any(Plan), Node}, {im, pass, Pid, Message}) end, im_plan:routers(Plan) -- [node()])
    end,
    {noreply, Plan};
handle_info({im, pass, Pid, Message}, Plan) when is_pid(Pid) ->
    _ = is_connected(Pid) andalso to(Pid, Message),
    {noreply, Plan};
handle_info({im, forward, _, _, _} = Forward, Plan) ->
    ok = im_names:relay(Forward),
    {noreply, Plan};
handle_info({im_db, {hops, _}, _} = Answer, Plan) ->
    ok = im_names:relay(Answer),
    {noreply, Plan};
handle_info(Request, Plan) ->
    case shard(Request, Plan) of
        {Server, Kind} ->
            ok = count(passed),
            ok = route(Server, Kind, Request);
        none ->
            ok = count(malformed)
    end,
    {noreply, Plan}.

shard({im, login, Client, Pid}, Plan) when is_pid(Pid) ->
    case im_plan:is_client(Client) of
        true -> {im_plan:server_of_client(Client, Plan), client_db};
        false -> none
    end;
shard({im, chat, From, To, Pid}, Plan) when is_pid(Pid), From =/= To ->
    case im_plan:is_client(From) andalso im_plan:is_client(To) of
        true -> {im_plan:server_of_session(im_plan:session(From, To), Plan), chat_db};
        false -> none
    end;
shard({im, open, Session, Client, Pid}, Plan) when is_pid(Pid) -> of_session(Session, Client, Plan);
shard({im, gone, Session, Client, Why}, Plan) when Why =:= finished; Why =:= expired -> of_session(Session, Client, Plan);
shard(_, _) -> none.

of_session({A, B} = Session, Client, Plan) when A < B, Client =:= A orelse Client =:= B ->
    case im_plan:is_client(A) andalso im_plan:is_client(B) of
        true -> {im_plan:server_of_session(Session, Plan), chat_db};
        false -> none
    end;
of_session(_, _, _) -> none.
