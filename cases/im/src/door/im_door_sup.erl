%% SPDX-License-Identifier: Apache-2.0
%% @doc A door on a node that runs nothing else of the messenger: a hidden client node, so that what
%% comes in from outside does not run among the databases. It stays until its node ends.
-module(im_door_sup).
-behaviour(supervisor).

-export([start/1, init/1]).

%% @doc Opens it, and says on which port.
-spec start(im_door:options()) -> {ok, inet:port_number()} | {error, term()}.
start(Options) ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, Options) of
        {ok, Pid} ->
            %% Whoever asked for it ends.
            true = unlink(Pid),
            [{im_door, Door, worker, _}] = supervisor:which_children(Pid),
            {ok, im_door:port(Door)};
        {error, {shutdown, {failed_to_start_child, im_door, Why}}} ->
            {error, Why};
        {error, _} = Error ->
            Error
    end.

-spec init(im_door:options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Options) ->
    {ok, {#{intensity => 5, period => 10}, [#{id => im_door, start => {im_door, start_link, [Options]}}]}}.
