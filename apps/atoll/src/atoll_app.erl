%% @doc The application: validates its configuration and starts the rooms. A node
%% that is stopped in order leaves the overlay first, so that nobody holds it for a
%% failure.
-module(atoll_app).

-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    ConnectAll = connects_all(),
    case atoll_config:new(application:get_all_env(atoll), ConnectAll) of
        {ok, Config} ->
            ok = warn_of_mesh(ConnectAll, atoll_config:overlay(Config)),
            case atoll_sup:start_link(Config) of
                {ok, Pid} -> {ok, Pid};
                {error, Reason} -> {error, Reason}
            end;
        {error, Bad} ->
            Why = unicode:characters_to_list(atoll_config:format_error(Bad)),
            logger:error(#{what => bad_configuration, why => Why}),
            {error, Bad}
    end.

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
    _ = atoll:leave(),
    State.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    ok.
