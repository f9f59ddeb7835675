%% SPDX-License-Identifier: Apache-2.0
%% @doc The application. Its environment is the settings of {@link subscribers_options}.
-module(subscribers_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    %% OTP keeps the applications that a release includes in the same place.
    case subscribers_options:check(maps:remove(included_applications, maps:from_list(application:get_all_env(subscribers)))) of
        {ok, Options} ->
            Store = subscribers_options:store(Options),
            case Store:start(Options) of
                ok -> supervised(Store, Options);
                {error, Sentence} -> {error, {cannot_start, lists:flatten(io_lib:format("~ts", [Sentence]))}}
            end;
        {error, Error} ->
            {error, {bad_settings, lists:flatten(subscribers_options:format_error(Error))}}
    end.

supervised(Store, Options) ->
    case subscribers_sup:start_link(Store, Options) of
        {ok, Sup} ->
            ok = subscribers_options:install(Options),
            {ok, Sup};
        {error, _} = Error ->
            Error
    end.

%% @private
-spec stop(term()) -> ok.
stop(_) ->
    {Store, Options} = subscribers_options:installed(),
    ok = subscribers_options:uninstall(),
    Store:stop(Options).
