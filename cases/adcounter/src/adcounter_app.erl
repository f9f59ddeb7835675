%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The application. Its environment is the settings of {@link adcounter_options}. It supervises the replica of this node, and after it whoever uses it.
-module(adcounter_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    %% OTP keeps the applications that a release includes in the same place.
    case adcounter_options:check(maps:remove(included_applications, maps:from_list(application:get_all_env(adcounter)))) of
        {ok, Options} ->
            case supervisor:start_link({local, ?MODULE}, ?MODULE, Options) of
                {ok, _} = Started -> Started;
                {error, _} = Error -> Error
            end;
        {error, Wrong} ->
            {error, {bad_settings, lists:flatten(adcounter_options:format_error(Wrong))}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_) -> ok.

%% @private
-spec init(adcounter_options:options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{role := Role, how := How, propagation_ms := Ms, buffer_max := Max} = Options) ->
    Module = case Role of server -> adcounter_server; client -> adcounter_client end,
    %% A replica that was lost has lost what it had not told; so has who stands on it.
    {ok, {#{strategy => one_for_all}, [
        atoll_crdt_replica:child_spec({adcounter_replica, #{how => How, interval_ms => Ms, buffer_max => Max}}),
        #{id => Role, start => {Module, start_link, [Options]}}
    ]}}.
