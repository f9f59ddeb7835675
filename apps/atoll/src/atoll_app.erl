%% @doc The application: validates its configuration and starts the rooms.
-module(atoll_app).

-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case atoll_config:new(application:get_all_env(atoll)) of
        {ok, Config} ->
            ok = warn_of_mesh(init:get_argument(connect_all)),
            case atoll_sup:start_link(Config) of
                {ok, Pid} -> {ok, Pid};
                {error, Reason} -> {error, Reason}
            end;
        {error, Bad} ->
            Why = unicode:characters_to_list(atoll_config:format_error(Bad)),
            logger:error(#{what => bad_configuration, why => Why}),
            {error, Bad}
    end.

%% Groups work in a mesh too, but save nothing there.
warn_of_mesh({ok, [["false"] | _]}) ->
    ok;
warn_of_mesh(_) ->
    Why = "nodes make a full mesh, whatever groups they are in; start them with -connect_all false",
    logger:warning(#{what => connect_all_is_true, why => Why}).

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    ok.
