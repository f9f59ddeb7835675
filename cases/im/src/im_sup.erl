%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor at the top, with what the node's part in the plan needs. On a router node it is the
%% paper's router_supervisor_monitor.
%% ```
%% router   router_supervisor, and where databases are reached over relays im_relay_sup
%% server   im_monitored_db, im_client_monitor_sup, im_chat_session_sup, server_supervisor, im_db_sup
%% '''
%% No other node needs anything: a client is a process of whoever starts it.
-module(im_sup).
-behaviour(supervisor).

-export([start_link/1, start_relays/0, init/1]).

%% @doc Starts it under its name.
-spec start_link(im_plan:plan()) -> supervisor:startlink_ret().
start_link(Plan) -> supervisor:start_link({local, ?MODULE}, ?MODULE, {?MODULE, Plan}).

%% @doc The supervisor of the relays, for this one.
-spec start_relays() -> supervisor:startlink_ret().
start_relays() -> supervisor:start_link({local, im_relay_sup}, ?MODULE, {im_relay_sup, im_plan:this()}).

%% @private
-spec init({module(), im_plan:plan()}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({im_sup, Plan}) ->
    {ok, {flags(), children(im_plan:role(node(), Plan), Plan)}};
init({im_relay_sup, Plan}) ->
    {ok, {flags(), [#{id => K, start => {im_relay, start_link, [K]}} || K <- lists:seq(1, im_plan:setting(relays, Plan))]}}.

%% A kill each few milliseconds is no reason to give up.
flags() -> #{strategy => one_for_one, intensity => 1000, period => 10}.

children({router, _}, Plan) ->
    [supervisor(im_router_supervisor, {im_router_supervisor, start_link, []})
     | [supervisor(im_relay_sup, {?MODULE, start_relays, []}) || im_plan:setting(mode, Plan) =:= rsd, im_plan:setting(reach, Plan) =:= relays]];
children({server, _}, _) ->
    [#{id => im_monitored_db, start => {im_monitored_db, start_link, []}},
     supervisor(im_client_monitor, {im_dynamic_sup, start_link, [im_client_monitor]}),
     supervisor(im_chat_session, {im_dynamic_sup, start_link, [im_chat_session]}),
     #{id => server_supervisor, start => {im_server_supervisor, start_link, []}},
     supervisor(im_db_sup, {im_db_sup, start_link, []})];
children(none, _) ->
    [].

supervisor(Id, Start) -> #{id => Id, start => Start, type => supervisor}.
