%% SPDX-License-Identifier: Apache-2.0
%% @doc A relay between groups, several of them on each gateway node. It hands vertices on: to the
%% worker that owns them if that is near, and otherwise to a gateway process of the next hop. It keeps
%% nothing; the credit travels inside the message.
-module(orbit_gateway).
-behaviour(gen_server).

-export([start_link/0, route/3, send/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([routes/0]).

%% For each part its worker, or the gateway processes of the next hop, any of which will do.
-type routes() :: #{orbit_part:id() => pid() | {pid()}}.

-record(state, {epoch = 0 :: orbit_part:epoch(), routes = #{} :: routes(), early = [] :: [term()]}).

%% @doc Starts one, for a host.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link(?MODULE, [], []).

%% @doc Tells it the ways of an epoch.
-spec route(pid(), orbit_part:epoch(), routes()) -> ok.
route(Gateway, Epoch, Routes) -> gen_server:cast(Gateway, {route, Epoch, Routes}).

%% @doc Sends vertices on their way, from this node. They are lost if there is no connection, which is
%% not made: whoever watches it has heard of it, and the next epoch is to come.
-spec send(orbit_part:id(), routes(), {vertices, orbit_part:epoch(), [orbit_generators:vertex(), ...], orbit_credit:unit()}) -> ok.
send(Part, Routes, {vertices, _, [X | _], _} = Message) ->
    _ = case Routes of
            #{Part := Worker} when is_pid(Worker) -> erlang:send(Worker, Message, [noconnect]);
            #{Part := Gateways} -> erlang:send(element(1 + X rem tuple_size(Gateways), Gateways), {relay, Part, Message}, [noconnect])
        end,
    ok.

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) -> {ok, #state{}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast({route, orbit_part:epoch(), routes()}, #state{}) -> {noreply, #state{}}.
handle_cast({route, Epoch, Routes}, #state{early = Early}) ->
    {noreply, lists:foldl(fun handed_on/2, #state{epoch = Epoch, routes = Routes}, Early)}.

%% @private
-spec handle_info({relay, orbit_part:id(), tuple()}, #state{}) -> {noreply, #state{}}.
handle_info({relay, _, _} = Message, S) -> {noreply, handed_on(Message, S)}.

handed_on({relay, Part, {vertices, Epoch, _, _} = Message}, #state{epoch = Epoch, routes = Routes} = S) ->
    ok = send(Part, Routes, Message),
    S;
handed_on({relay, _, {vertices, Epoch, _, _}} = Message, #state{epoch = Now, early = Early} = S) when Epoch > Now ->
    S#state{early = [Message | Early]};
handed_on(_, S) ->
    S.
