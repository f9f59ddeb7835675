%% SPDX-License-Identifier: Apache-2.0
%% @doc The application. Its environment is the settings of {@link ring_options}.
-module(ring_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    %% OTP keeps the applications that a release includes in the same place.
    case ring_options:check(maps:remove(included_applications, maps:from_list(application:get_all_env(ring)))) of
        {ok, Options} ->
            case (ring_store:module(Options)):check(Options) of
                ok -> started(Options);
                {error, Sentence} -> {error, {bad_settings, lists:flatten(Sentence)}}
            end;
        {error, Error} -> {error, {bad_settings, lists:flatten(ring_options:format_error(Error))}}
    end.

started(Options) ->
    ok = ring_options:install(Options),
    case ring_sup:start_link(Options) of
        {ok, Sup} -> {ok, Sup};
        {error, _} = Error -> Error
    end.

%% @private
-spec stop(term()) -> ok.
stop(_) -> ring_options:uninstall().
