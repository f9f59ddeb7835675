%% SPDX-License-Identifier: Apache-2.0
%% @doc The application, which runs on every router node and server node. Its environment is the settings of
%% {@link im_plan}, the same on all of them.
-module(im_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    %% OTP keeps the applications that a release includes in the same place.
    case im_plan:new(maps:remove(included_applications, maps:from_list(application:get_all_env(im)))) of
        {ok, Plan} ->
            ok = im_plan:install(Plan),
            {ok, _} = im_sup:start_link(Plan);
        {error, Reason} ->
            {error, {bad_settings, lists:flatten(im_plan:format_error(Reason))}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_) -> ok.
