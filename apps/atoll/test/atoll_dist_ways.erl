%% SPDX-License-Identifier: Apache-2.0
%% A router by hand for the suites of the carrier: it answers a way that the test has set,
%% or one over those that may not be avoided.
-module(atoll_dist_ways).
-behaviour(gen_server).

-export([start/0, set/2, asked/0]).
-export([init/1, handle_call/3, handle_cast/2]).

%% Registers itself with the carrier, and has it relay for all.
start() ->
    {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
    ok = atoll_dist:relay_policy(all),
    atoll_dist:router(?MODULE).

%% The way to a node: over the first of these gateways that is not to be avoided (each a
%% node or a list of nodes), or an error as it stands.
set(Node, Gateways) ->
    gen_server:call(?MODULE, {set, Node, Gateways}).

%% What was asked for, the latest last.
asked() ->
    gen_server:call(?MODULE, asked).

init([]) ->
    {ok, {#{}, []}}.

handle_call({set, Node, Gateways}, _From, {Ways, Asked}) ->
    {reply, ok, {Ways#{Node => Gateways}, Asked}};
handle_call(asked, _From, {_, Asked} = State) ->
    {reply, lists:reverse(Asked), State};
handle_call({protocol, {route, To, #{avoid := Avoid}}}, _From, {Ways, Asked}) ->
    {reply, way(To, maps:get(To, Ways, link), Avoid), {Ways, [{To, Avoid} | Asked]}}.

handle_cast(_, State) ->
    {noreply, State}.

way(To, link, _Avoid) -> {ok, [node(), To]};
way(_To, {error, _} = Error, _Avoid) -> Error;
way(To, Gateways, Avoid) ->
    Lists = [case G of _ when is_list(G) -> G; _ -> [G] end || G <- Gateways],
    case [G || G <- Lists, not lists:any(fun(N) -> lists:member(N, Avoid) end, G)] of
        [G | _] -> {ok, [node() | G] ++ [To]};
        [] -> {error, {no_route, "there is no way by hand"}}
    end.
