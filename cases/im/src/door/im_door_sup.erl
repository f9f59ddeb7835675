%% SPDX-License-Identifier: Apache-2.0
%% @doc A door on a node that runs nothing else of the messenger: a hidden client node, so that what
%% comes in from outside does not run among the databases. It stays until its node ends.
-module(im_door_sup).
-behaviour(supervisor).

-export([start/1, init/1]).

%% @doc Opens it, and says on which port.
-spec start(im_door:options()) -> {ok, inet:port_number()} | {error, term()}.
start(Options) ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, []) of
        {ok, Pid} ->
            %% Whoever asked for it ends. It would end as well with a supervisor that cannot start its child, and say nothing.
            true = unlink(Pid),
            case supervisor:start_child(Pid, #{id => im_door, start => {im_door, start_link, [Options]}}) of
                {ok, Door} ->
                    {ok, im_door:port(Door)};
                {error, {Why, _Child}} ->
                    ok = gen_server:stop(Pid, shutdown, infinity),
                    {error, Why}
            end;
        {error, _} = Error ->
            Error
    end.

-spec init([]) -> {ok, {supervisor:sup_flags(), []}}.
init([]) -> {ok, {#{intensity => 5, period => 10}, []}}.
