%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The application. Its environment is the settings of {@link adcounter_options}.
-module(adcounter_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    %% OTP keeps the applications that a release includes in the same place.
    case adcounter_options:check(maps:remove(included_applications, maps:from_list(application:get_all_env(adcounter)))) of
        {ok, Options} ->
            case adcounter_sup:start_link(Options) of
                {ok, _} = Started -> Started;
                {error, _} = Error -> Error
            end;
        {error, Wrong} ->
            {error, {bad_settings, lists:flatten(adcounter_options:format_error(Wrong))}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_) -> ok.
