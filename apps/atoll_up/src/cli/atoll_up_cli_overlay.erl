%% SPDX-License-Identifier: Apache-2.0
%% @doc The options that say which overlay the nodes run that are started.
-module(atoll_up_cli_overlay).

-export([options/1, read/1]).

%% @doc The options that say which overlay, and what there is without.
-spec options(Without :: string()) -> [atoll_cli_options:option()].
options(Without) ->
    [
        #{name => overlay, value => "STRATEGY",
          help => [lists:join(", ", [atom_to_list(Name) || Name <- atoll_strategy:names()]),
                   ", or a module of your own; without, ", Without]},
        atoll_sim_cli_strategy:option(),
        atoll_sim_cli_strategy:code()
    ].

%% @doc The overlay that the options ask for, or what is wrong with them.
-spec read(atoll_cli_options:values()) -> {ok, atoll_up_overlay:overlay() | none} | {error, unicode:chardata()}.
read(#{overlay := Typed, option := Settings} = Values) ->
    case atoll_sim_cli_strategy:read("--overlay", Typed, Settings, Values) of
        {ok, Strategy} -> {ok, atoll_up_overlay:new(Strategy, #{})};
        {error, _} = Error -> Error
    end;
read(#{option := [_ | _]}) ->
    {error, "--option is for a strategy, and --overlay, which says which one, is missing"};
read(#{}) ->
    {ok, none}.
