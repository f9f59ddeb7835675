%% @doc The top supervisor: one process per room, a lower one before the upper.
%%
%% When a room's process ends, the rooms above start anew too (rest_for_one):
%% they have told it what they want, and must tell it again.
-module(atoll_sup).

-behaviour(supervisor).

-export([start_link/1, init/1]).

%% @doc Starts the rooms with this configuration.
-spec start_link(atoll_config:config()) -> supervisor:startlink_ret().
start_link(Config) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(atoll_config:config()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    ok = atoll_group:create_table(),
    Rooms = [
        #{id => link, start => {atoll_link, start_link, [atoll_config:link(Config)]}},
        #{id => group, start => {atoll_group, start_link, [atoll_config:group(Config)]}}
    ],
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 10}, Rooms}}.
