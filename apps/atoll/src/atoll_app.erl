%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The application: validates its configuration and starts the rooms. A node
%% that is stopped in order leaves the overlay first, so that nobody holds it for a
%% failure, and takes its names with it.
-module(atoll_app).

-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

%% How long leaving in order may take: two seconds, if all goes well.
-define(STOP_MS, 5000).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid(), atoll_config:config()} | {error, term()}.
start(_Type, _Args) ->
    ConnectAll = connects_all(),
    case atoll_config:new(application:get_all_env(atoll), ConnectAll) of
        {ok, Config} -> start(Config, ConnectAll, atoll_config:overlay(Config));
        {error, Bad} -> refuse(Bad)
    end.

%% Without a name a node is called as all others without one are.
start(_Config, _ConnectAll, {ok, _Overlay}) when node() =:= nonode@nohost ->
    refuse({bad_option, overlay, no_name});
start(Config, ConnectAll, Overlay) ->
    case {atoll_config:route(Config), atoll_config:strangers(Config, name_domain())} of
        {{ok, _}, _} when node() =:= nonode@nohost -> refuse({bad_option, directory, no_name});
        {_, [Contact | _]} -> refuse({bad_option, contacts, {other_name, Contact}});
        {_, []} -> start_rooms(Config, ConnectAll, Overlay)
    end.

name_domain() ->
    case net_kernel:get_state() of
        #{started := no} -> none;
        #{name_domain := Domain} -> Domain
    end.

start_rooms(Config, ConnectAll, Overlay) ->
    ok = warn_of_mesh(ConnectAll, Overlay),
    case atoll_sup:start_link(Config) of
        {ok, Pid} -> {ok, Pid, Config};
        {error, Reason} -> {error, Reason}
    end.

refuse(Bad) ->
    Why = unicode:characters_to_list(atoll_config:format_error(Bad)),
    logger:error(#{what => bad_configuration, why => Why}),
    {error, Bad}.

%% Whether OTP's global connects all nodes: it reads its parameter, else the flag.
connects_all() ->
    case application:get_env(kernel, connect_all) of
        {ok, ConnectAll} ->
            ConnectAll;
        undefined ->
            case init:get_argument(connect_all) of
                {ok, [["false" | _] | _]} -> false;
                _ -> true
            end
    end.

%% Groups work in a mesh too, but save nothing there. Who has chosen the overlay
%% mesh knows.
warn_of_mesh(true, off) ->
    Why = "nodes make a full mesh, whatever groups they are in; start them with -connect_all false",
    logger:warning(#{what => connect_all_is_true, why => Why});
warn_of_mesh(_ConnectAll, _Overlay) ->
    ok.

%% @private
-spec prep_stop(State) -> State.
prep_stop(State) ->
    ok = atoll_singleton:leave(),
    %% What is stuck does not hold up the end of the node.
    {Pid, Ref} = spawn_monitor(fun() ->
        ok = atoll_name:bye(),
        _ = atoll_route:leave(),
        _ = atoll:leave(),
        _ = atoll:record(off)
    end),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    after ?STOP_MS ->
        true = exit(Pid, kill)
    end,
    State.

%% @private
-spec stop(atoll_config:config()) -> ok.
stop(Config) ->
    ok = atoll_metric:stopped(),
    case atoll_config:route(Config) of
        off -> ok;
        {ok, _} -> atoll_route:stopped()
    end.
