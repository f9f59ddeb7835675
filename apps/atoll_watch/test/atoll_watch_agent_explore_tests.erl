%% SPDX-License-Identifier: Apache-2.0
%% What runs on a node, asked of this one.
-module(atoll_watch_agent_explore_tests).

-behaviour(gen_server).

-include_lib("eunit/include/eunit.hrl").

-export([start_link/0, init/1, handle_call/3, handle_cast/2]).

%% A server that knows no question but its own.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, server, []).

init(server) -> {ok, none};
init(supervisor) -> {ok, {#{}, [#{id => told_otherwise, start => {?MODULE, start_link, []}, type => supervisor}]}}.

handle_call(mine, _From, State) -> {reply, ok, State}.

handle_cast(mine, State) -> {noreply, State}.

%% It sets bounds for the process that calls it.
explored(Question) ->
    {_, Ref} = spawn_monitor(fun() -> exit({told, atoll_watch_agent_explore:explore(Question)}) end),
    receive {'DOWN', Ref, process, _, {told, Told}} -> Told end.

%% As the root that somebody types, and as a child that was declared to be what it is not.
only_supervisors_are_asked_for_their_children_test() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, supervisor),
    Server = whereis(?MODULE),
    Ref = monitor(process, Server),
    ?assertMatch(#{items := [#{type := worker, name := <<"atoll_watch_agent_explore_tests">>, children := [], count := null}]}, explored({supervision, atom_to_list(?MODULE)})),
    ?assertMatch(#{items := [#{type := supervisor, count := 1, children := [#{type := worker, children := []}]}]}, explored({supervision, pid_to_list(Supervisor)})),
    ok = gen_server:call(Server, mine),
    ?assertEqual(Server, whereis(?MODULE)),
    ?assertMatch(#{items := [#{type := supervisor, children := [_ | _]}]}, explored({supervision, "kernel_sup"})),
    true = unlink(Supervisor),
    true = exit(Supervisor, shutdown),
    receive {'DOWN', Ref, process, Server, Reason} -> ?assertEqual(shutdown, Reason) end.
