%% SPDX-License-Identifier: Apache-2.0
%% @doc The application. Its environment is what {@link matchstream_settings} reads, the same on all nodes.
-module(matchstream_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    case matchstream_settings:read(application:get_all_env(matchstream)) of
        {ok, #{switches := Switches} = Settings} ->
            ok = matchstream_switches:install(Switches),
            ok = matchstream_settings:install(Settings),
            ok = matchstream_count:new(),
            case matchstream_sup:start_link(Settings) of
                {ok, _} = Ok -> Ok;
                {error, _} = Error -> Error;
                ignore -> {error, ignore}
            end;
        {error, _} = Error -> Error
    end.

%% @private
-spec stop(term()) -> ok.
stop(_) -> ok.
