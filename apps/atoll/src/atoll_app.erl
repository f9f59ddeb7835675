%% @doc The application: validates its configuration and starts the rooms.
-module(atoll_app).

-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case atoll_config:new(application:get_all_env(atoll)) of
        {ok, Config} ->
            case atoll_sup:start_link(Config) of
                {ok, Pid} -> {ok, Pid};
                {error, Reason} -> {error, Reason}
            end;
        {error, Bad} ->
            Why = unicode:characters_to_list(atoll_config:format_error(Bad)),
            logger:error(#{what => bad_configuration, why => Why}),
            {error, Bad}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    ok.
