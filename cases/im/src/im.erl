%% SPDX-License-Identifier: Apache-2.0
%% @doc The instant messenger: what runs where, and what this node says of itself.
%%
%% A router node has router processes, to which clients send what they want. A server node has
%% databases, of the clients that are logged in and of the conversations, one main one and one replica of
%% each kind as a rule; a supervisor; a monitor for each client, and a session for each conversation, of the
%% shards of which it has the main database. {@link im_plan} says which node is what, {@link im_cluster} how
%% nodes are started, {@link im_client} is a client.
%% ```
%% router node   im_sup - router_supervisor - router_1, router_2, ...
%% server node   im_sup - server_supervisor
%%                      - im_monitored_db
%%                      - im_client_monitor_sup - im_client_monitor, ...
%%                      - im_chat_session_sup - im_chat_session, ...
%%                      - im_db_sup - server_1_Client_DB, server_1_Chat_DB, ...
%% '''
%% The names of the paper's processes stand for the same things here, but for these: its
%% router_supervisor_monitor is im_sup, OTP's supervisor, so the two need no copy of each other's
%% data; routers keep no lists of each other or of servers, as they find databases by their names; and there
%% is no routers_db, since a client knows the router nodes, whose processes have fixed names.
-module(im).

-export([status/0, roles/0]).

-export_type([inc/0, role/0, status/0]).

-type inc() :: im_chat_table:inc().
%% Which conversation of the same two clients it is.

-type status() :: #{
    role := {router | server, pos_integer()},
    settings := im_plan:settings(),
    %% connections of its own with nodes that are not hidden
    links := [node()],
    %% those that may have a copy here, with what im_db:info/2 says
    databases := [map()],
    %% monitors of clients, and sessions: of server nodes
    clients => non_neg_integer(),
    sessions => non_neg_integer(),
    %% in its group
    names => non_neg_integer(),
    processes := pos_integer(),
    counters := #{atom() => non_neg_integer()}
}.

-type role() :: router_supervisor | router | server_supervisor | monitored_db | client_db | chat_db | client_monitor | chat_session.

%% @doc What this node has. On a node without a part `{error, no_part}'.
-spec status() -> {ok, status()} | {error, not_started | no_part}.
status() ->
    try im_plan:this() of
        Plan ->
            case im_plan:role(node(), Plan) of
                none -> {error, no_part};
                Role -> {ok, (own(Role, Plan))#{role => Role, links => im_cluster:links(), processes => erlang:system_info(process_count), settings => im_plan:settings(Plan)}}
            end
    catch
        error:badarg -> {error, not_started}
    end.

own({router, _}, _Plan) ->
    #{databases => [], counters => im_router:counters()};
own({server, Own}, Plan) ->
    #{
        names => im_names:count(Own),
        databases => [Info#{server => Server, kind => Kind} || {Server, Kind} <- im_db:here(Plan), Info <- [asked(fun() -> im_db:info(Server, Kind) end)], Info =/= #{}],
        clients => watched(client_monitor),
        sessions => watched(chat_session),
        counters => maps:merge(im_router:counters(), asked(fun im_server_supervisor:info/0))
    }.

%% Who is started again just now says nothing.
asked(Fun) ->
    try Fun() catch exit:_ -> #{} end.

watched(Type) ->
    try
        ets:select_count(monitored_processes, [{{'_', Type, '_'}, [], [true]}])
    catch
        error:badarg -> 0
    end.

%% @doc The processes of this node that a monkey may kill, by the paper's kinds. The paper's DBs are
%% those with a name in the group: mains and replicas.
-spec roles() -> [{role(), pid()}].
roles() ->
    Plan = im_plan:this(),
    Named = [{router_supervisor, router_supervisor}, {server_supervisor, server_supervisor}, {monitored_db, im_monitored_db}]
        ++ [{Kind, im_plan:local_name(Server, Kind, Plan)} || {Server, Kind} <- im_db:here(Plan)],
    [{Role, Pid} || {Role, Name} <- Named, Pid <- [whereis(Name)], is_pid(Pid)]
        ++ [{router, Pid} || whereis(router_supervisor) =/= undefined, {_, Pid, _, _} <- supervisor:which_children(router_supervisor), is_pid(Pid)]
        ++ [{client_monitor, Pid} || Pid <- im_dynamic_sup:children(im_client_monitor)]
        ++ [{chat_session, Pid} || Pid <- im_dynamic_sup:children(im_chat_session)].
