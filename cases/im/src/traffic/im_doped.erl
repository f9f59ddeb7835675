%% SPDX-License-Identifier: Apache-2.0
%% @doc A doped client as an owner of {@link im_client}: does what {@link im_doped_core} decides, in
%% the process of the client, counts, and tells its node what has ended.
-module(im_doped).

-behaviour(im_client).

-export([start_link/3, heard/2]).
-export([init/1, handle_im/2, handle_info/2, handle_call/2]).

-export_type([options/0]).

-type options() :: #{
    %% {@link im_traffic_node}: gets `{im_doped, Pid, Name, Report}'.
    node := pid(),
    settings := im_doped_core:settings(),
    seed := term(),
    count := im_traffic_count:count()
}.

-record(state, {
    name :: im_history_side:client(),
    core :: im_doped_core:doped(),
    node :: pid(),
    count :: im_traffic_count:count(),
    %% Who writes latencies down.
    logger = none :: im_logger:quota() | none
}).

%% @doc A client that logs in, and waits for what it is told.
-spec start_link(im_history_side:client(), {Routers :: [node(), ...], im_client:options()}, options()) -> gen_server:start_ret().
start_link(Name, {Routers, Client}, Options) ->
    im_client:start_link(Name, Routers, Client#{callback => {?MODULE, {Name, Options}}}).

%% @doc It hears of that: it says no more, or all that is still open is told to the node as it is. Then this returns.
-spec heard(stop | drained, pid()) -> ok.
heard(Event, Pid) ->
    try im_client:call(Pid, Event) of
        ok -> ok
    catch
        %% It has ended, which the node hears.
        exit:_ -> ok
    end.

%% @private
-spec init({im_history_side:client(), options()}) -> #state{}.
init({Name, #{node := Node, settings := Settings, seed := Seed, count := Count}}) ->
    #state{name = Name, core = im_doped_core:new(Name, Settings, Seed), node = Node, count = Count}.

%% @private
-spec handle_im(im_doped_core:event(), #state{}) -> {[im_client:action()], #state{}}.
handle_im(Event, #state{core = Core0} = State) ->
    Now = im_traffic_count:now_us(),
    {Effects, Core} = im_doped_core:event(Event, Now, Core0),
    {actions(Effects, Now, State), State#state{core = Core}}.

%% @private
-spec handle_info({im_doped, im_doped_core:event() | logout | {log, im_logger:quota()}}, #state{}) -> {[im_client:action()], #state{}}.
handle_info({im_doped, logout}, State) -> {[logout], State};
handle_info({im_doped, {log, Quota}}, State) -> {[], State#state{logger = Quota}};
handle_info({im_doped, Event}, State) -> handle_im(Event, State).

%% @private
-spec handle_call(stop | drained, #state{}) -> {ok, [im_client:action()], #state{}}.
handle_call(Event, State0) ->
    {Actions, State} = handle_im(Event, State0),
    {ok, Actions, State}.

actions([Effect | Effects], Now, State) ->
    case action(Effect, Now, State) of
        ok -> actions(Effects, Now, State);
        Action -> [Action | actions(Effects, Now, State)]
    end;
actions([], _Now, _State) ->
    [].

action({say, Peer, N, Body}, _Now, _State) ->
    {say, Peer, N, Body, none};
action({delivered, Id, Peer, N, Us}, Now, #state{name = Name, count = Count, logger = Logger}) ->
    _ = [im_logger:latency({Id, N}, {Name, Peer}, Us div 2, Logger) || Logger =/= none],
    im_traffic_count:delivered(Us, Now, Count);
action({later, Ms, Event}, _Now, _State) ->
    _ = erlang:send_after(Ms, self(), {im_doped, Event}),
    ok;
action({report, login_refused}, _Now, State) ->
    report(login_refused, State),
    stop;
action({report, Report}, _Now, State) ->
    report(Report, State);
action({_, _} = Action, _Now, _State) ->
    Action;
action(What, _Now, #state{count = Count}) ->
    im_traffic_count:add(What, Count).

report(Report, #state{node = Node, name = Name}) ->
    Node ! {im_doped, self(), Name, Report},
    ok.
