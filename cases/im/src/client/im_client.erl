%% SPDX-License-Identifier: Apache-2.0
%% @doc A client of the messenger as a process: it does what {@link im_client_core} decides. Whose it is, is a module of this
%% behaviour, which runs in the same process, or a process that gets `{im_client, Client, Event}'
%% ({@link im_client_owner}).
%%
%% It ends, normally, when it has logged out or its login was refused. When it dies, its owner's process does too, and the other way round.
-module(im_client).

-behaviour(gen_server).

-export([start_link/3, chat/2, say/3, say/4, finish/2, received/3, logout/1, call/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0, action/0]).

-type options() :: #{
    %% whose it is; without it the process that calls
    owner => pid(),
    callback => {module(), Args :: term()},
    routers_per_node => pos_integer(),
    %% after so many milliseconds without a message it gives back its memory
    hibernate_after => pos_integer() | infinity,
    max_body => pos_integer(),
    max_waiting => pos_integer(),
    max_chats => pos_integer(),
    resume => im_client_core:resume() | none
}.

%% What a module wants to be done.
-type action() ::
    {chat, im_client_core:name()}
    | {say, im_client_core:name(), Seq :: pos_integer() | next, Body :: binary(), Meta :: term()}
    | {finish, im_client_core:name()}
    | {received, im_client_core:name(), UpTo :: non_neg_integer()}
    %% once more, after a refusal
    | start
    | logout
    | stop.

%% In the process of the client.
-callback init(Args :: term()) -> State :: term().

%% What has happened. A say that fails comes as `{refused, Peer, Seq, Reason}'.
-callback handle_im(im_client_core:told(), State :: term()) -> {[action()], State :: term()}.

%% Any other message.
-callback handle_info(term(), State :: term()) -> {[action()], State :: term()}.

%% A call of {@link call/2}.
-callback handle_call(term(), State :: term()) -> {Reply :: term(), [action()], State :: term()}.

-optional_callbacks([handle_info/2, handle_call/2]).

-record(state, {
    core :: im_client_core:core(),
    module :: module(),
    own :: term(),
    %% the `tick' to come
    timer = none :: {reference(), integer()} | none,
    %% messages since what was received was last acknowledged
    busy = 0 :: non_neg_integer(),
    ends = false :: boolean()
}).

-define(ROUTERS, 4).
-define(HIBERNATE_MS, 2000).
%% So many messages may come one after the other before what was received is acknowledged.
-define(BUSY, 32).

%% @doc A client who logs in, with the router nodes that it may ask.
-spec start_link(im_client_core:name(), [node(), ...], options()) -> gen_server:start_ret().
start_link(Name, RouterNodes, Options0) ->
    Options = maps:merge(#{owner => self()}, Options0),
    gen_server:start_link(?MODULE, {Name, RouterNodes, Options}, [{hibernate_after, maps:get(hibernate_after, Options, ?HIBERNATE_MS)}]).

%% @doc Has a chat with a peer; `{session, Peer, _}' follows, or `{ended, Peer, Reason}'.
-spec chat(pid(), im_client_core:name()) -> ok.
chat(Client, Peer) -> gen_server:cast(Client, {chat, Peer}).

%% @doc Says something to a peer, to whom a chat is opened if there is none.
-spec say(pid(), im_client_core:name(), Body :: binary()) -> {ok, Seq :: pos_integer()} | {error, im_client_core:reason()}.
say(Client, Peer, Body) -> say(Client, Peer, Body, none).

%% @doc The same with something for the receiver's owner besides.
-spec say(pid(), im_client_core:name(), Body :: binary(), Meta :: term()) -> {ok, Seq :: pos_integer()} | {error, im_client_core:reason()}.
say(Client, Peer, Body, Meta) -> gen_server:call(Client, {?MODULE, say, Peer, Body, Meta}).

%% @doc Ends a chat, as soon as all that was said is delivered.
-spec finish(pid(), im_client_core:name()) -> ok.
finish(Client, Peer) -> gen_server:cast(Client, {finish, Peer}).

%% @doc All messages of the peer up to this one are done with. For an owner with `resume' only.
-spec received(pid(), im_client_core:name(), UpTo :: pos_integer()) -> ok.
received(Client, Peer, UpTo) -> gen_server:cast(Client, {received, Peer, UpTo}).

%% @doc Logs out; `logged_out' follows, and the client ends.
-spec logout(pid()) -> ok.
logout(Client) -> gen_server:cast(Client, logout).

%% @doc Asks the module whose client it is.
-spec call(pid(), term()) -> term().
call(Client, Request) -> gen_server:call(Client, Request).

%% @private
-spec init({im_client_core:name(), [node(), ...], options()}) -> {ok, #state{}}.
init({Name, RouterNodes, #{owner := Owner} = Options}) ->
    %% An atom for each router process of a node, of which there are a few.
    Routers = [{im_plan:router_name(I), Node} || Node <- RouterNodes, I <- lists:seq(1, maps:get(routers_per_node, Options, ?ROUTERS))],
    Shuffled = [Router || {_, Router} <- lists:sort([{rand:uniform(), Router} || Router <- Routers])],
    Core = im_client_core:new(Name, (maps:with([max_body, max_waiting, max_chats, resume], Options))#{self => self(), routers => Shuffled}),
    {Module, Args} = maps:get(callback, Options, {im_client_owner, Owner}),
    {ok, happened(start, #state{core = Core, module = Module, own = Module:init(Args)})}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}} | {reply, term(), #state{}, 0} | {stop, normal, term(), #state{}}.
handle_call({?MODULE, say, Peer, Body, Meta}, _, S) ->
    {[{said, Peer, Seq, Is} | Effects], Core} = im_client_core:handle({say, Peer, next, Body, Meta}, now_ms(), S#state.core),
    Reply = case Is of ok -> {ok, Seq}; Reason -> {error, Reason} end,
    replied(Reply, effects(Effects, S#state{core = Core}));
handle_call(Request, _, #state{module = Module, own = Own} = S) ->
    {Reply, Actions, Next} = Module:handle_call(Request, Own),
    replied(Reply, actions(Actions, S#state{own = Next})).

%% @private
-spec handle_cast(action(), #state{}) -> {noreply, #state{}} | {noreply, #state{}, 0} | {stop, normal, #state{}}.
handle_cast(Action, S) -> next(action(Action, S)).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {noreply, #state{}, 0} | {stop, normal, #state{}}.
handle_info(Message, S) when element(1, Message) =:= im -> next(happened(Message, S));
handle_info(timeout, S) -> idle(happened(flush, S#state{busy = 0}));
handle_info({timeout, Ref, tick}, #state{timer = {Ref, _}} = S) -> next(happened(tick, S#state{timer = none}));
handle_info({timeout, _, tick}, S) -> next(S);
handle_info({'DOWN', _, process, Pid, _}, S) -> next(happened({down, Pid}, S));
handle_info(Message, #state{module = Module, own = Own} = S) ->
    {Actions, Next} = Module:handle_info(Message, Own),
    next(actions(Actions, S#state{own = Next})).

replied(Reply, #state{ends = true} = S) -> {stop, normal, Reply, S};
replied(Reply, #state{busy = 0} = S) -> {reply, Reply, S};
replied(Reply, S) -> {reply, Reply, S, 0}.

%% What came in is acknowledged when no other message is waiting, or when many have come.
next(#state{ends = true} = S) -> {stop, normal, S};
next(#state{busy = Busy} = S) when Busy >= ?BUSY -> idle(happened(flush, S#state{busy = 0}));
next(#state{busy = 0} = S) -> {noreply, S};
next(S) -> {noreply, S, 0}.

idle(#state{ends = true} = S) -> {stop, normal, S};
idle(S) -> {noreply, S}.

%% What happens, and all that follows of it.
happened(Event, #state{core = Core} = S) ->
    {Effects, Next} = im_client_core:handle(Event, now_ms(), Core),
    effects(Effects, S#state{core = Next}).

effects(Effects, S) -> lists:foldl(fun effect/2, S, Effects).

effect({send, To, Message}, S) ->
    To ! Message,
    S;
effect({tell, {message, _, _, _, _} = Told}, #state{busy = Busy} = S) -> told(Told, S#state{busy = Busy + 1});
effect({tell, Told}, S) -> told(Told, S);
effect({said, _, _, ok}, S) -> S;
effect({said, Peer, Seq, Reason}, S) -> told({refused, Peer, Seq, Reason}, S);
effect({monitor, Pid}, S) ->
    _ = monitor(process, Pid),
    S;
effect({wake, At}, #state{timer = Before} = S) ->
    case Before of
        {_, Earlier} when Earlier =< At -> S;
        {Ref, _} -> _ = erlang:cancel_timer(Ref), wake(At, S);
        none -> wake(At, S)
    end.

wake(At, S) -> S#state{timer = {erlang:start_timer(max(0, At - now_ms()), self(), tick), At}}.

%% The owner may want something at once.
told(Told, #state{module = Module, own = Own} = S) ->
    {Actions, Next} = Module:handle_im(Told, Own),
    Is = actions(Actions, S#state{own = Next}),
    case Told of
        logged_out -> Is#state{ends = true};
        _ -> Is
    end.

actions(Actions, S) -> lists:foldl(fun action/2, S, Actions).

action(stop, S) -> S#state{ends = true};
action({received, _, _} = Event, #state{busy = Busy} = S) -> happened(Event, S#state{busy = Busy + 1});
action(Event, S) -> happened(Event, S).

now_ms() -> erlang:monotonic_time(millisecond).
