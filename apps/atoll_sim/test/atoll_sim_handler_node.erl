%% SPDX-License-Identifier: Apache-2.0
%% A node with an overlay and the two handlers of the tests, put together as on a real one: what
%% the overlay says of neighbours and broadcasts goes to the handlers, what a handler puts goes
%% to the overlay. A handler can be started late, stopped, and lost.
-module(atoll_sim_handler_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3]).
-export([world/3, names/1, values/2, summary/3]).

-record(node, {overlay, config, up = [], handlers = #{}}).

-define(HANDLERS, #{registers => {atoll_handler_registers, []}, set => {atoll_handler_set, []}}).

init(#{overlay := Overlay, start := Start} = Config, Now) ->
    {State, Effects} = atoll_overlay_core:init(Overlay, Now),
    around(Start, Now, heard(Effects, Now, {#node{overlay = State, config = Config}, []})).

around(Names, Now, Acc) ->
    {Node, Effects} = lists:foldl(fun(Name, A) -> start(Name, Now, A) end, Acc, Names),
    {Node, lists:reverse(Effects)}.

handle({message, From, {overlay, Message}}, Now, Node) -> overlay({message, From, Message}, Now, Node);
handle({message, From, {Name, Message}}, Now, Node) -> handler(Name, {message, From, Message}, Now, {Node, []});
handle({timeout, {overlay, Key}}, Now, Node) -> overlay({timeout, Key}, Now, Node);
handle({timeout, {Name, Key}}, Now, Node) -> handler(Name, {timeout, Key}, Now, {Node, []});
handle({cast, {start, Name}}, Now, Node) -> around([Name], Now, {Node, []});
handle({cast, {stop, Name}}, _Now, Node) -> around([], 0, stop(Name, {Node, []}));
handle({cast, {lose, Name}}, Now, Node) -> around([Name], Now, stop(Name, {Node, []}));
handle({cast, {put, Name, Id, Value}}, Now, Node) -> put(Name, Id, Value, Now, Node);
handle(Event, Now, Node) -> overlay(Event, Now, Node).

start(Name, Now, {#node{handlers = Handlers, config = Config, up = Up} = Node, Acc}) ->
    #{overlay := #{self := Self, seed := Seed}, options := Options} = Config,
    #{Name := {Module, Args}} = ?HANDLERS,
    {State, Effects} = atoll_handler_core:init(
        #{self => Self, seed => erlang:phash2({Name, Now, Seed}), module => Module, args => Args, options => Options}, Now
    ),
    Started = said(Name, Effects, Now, {Node#node{handlers = Handlers#{Name => State}}, Acc}),
    lists:foldl(fun(Peer, A) -> tell(Name, {up, Peer}, Now, A) end, Started, Up).

stop(Name, {#node{handlers = Handlers} = Node, Acc}) ->
    Timers = [{cancel, {Name, Key}} || Key <- [exchange, next, answer]],
    {Node#node{handlers = maps:remove(Name, Handlers)}, Timers ++ Acc}.

overlay(Event, Now, #node{overlay = State0} = Node) ->
    {State, Effects} = atoll_overlay_core:handle(Event, Now, State0),
    around([], Now, heard(Effects, Now, {Node#node{overlay = State}, []})).

handler(Name, Event, Now, Acc) ->
    around([], Now, tell(Name, Event, Now, Acc)).

%% As atoll_handler:put/3 does it.
put(Name, Id, Value, Now, #node{handlers = Handlers} = Node) ->
    case Handlers of
        #{Name := State0} ->
            {State, [{reply, from, Outcome} | Effects]} = atoll_handler_core:handle({call, from, {put, Id, Value}}, Now, State0),
            {Merged, Acc} = said(Name, Effects, Now, {Node#node{handlers = Handlers#{Name := State}}, []}),
            {Put, More} = broadcast(Outcome, {Name, {Id, Value}}, Now, Merged),
            {Put, lists:reverse(Acc, More)};
        #{} ->
            {Node, []}
    end.

broadcast(new, Payload, Now, Node) -> overlay({cast, {broadcast, Payload}}, Now, Node);
broadcast(stale, _Payload, _Now, Node) -> {Node, []}.

tell(Name, Event, Now, {#node{handlers = Handlers} = Node, Acc}) ->
    case Handlers of
        #{Name := State0} ->
            {State, Effects} = atoll_handler_core:handle(Event, Now, State0),
            said(Name, Effects, Now, {Node#node{handlers = Handlers#{Name := State}}, Acc});
        #{} ->
            {Node, Acc}
    end.

tell_all(Event, Now, {#node{handlers = Handlers}, _} = Acc) ->
    lists:foldl(fun(Name, A) -> tell(Name, Event, Now, A) end, Acc, lists:sort(maps:keys(Handlers))).

%% Effects of the overlay.
heard(Effects, Now, Acc) ->
    lists:foldl(fun(Effect, A) -> hear(Effect, Now, A) end, Acc, Effects).

hear({send, To, Message}, _Now, {Node, Acc}) ->
    {Node, [{send, To, {overlay, Message}} | Acc]};
hear({timer, Key, Ms}, _Now, {Node, Acc}) ->
    {Node, [{timer, {overlay, Key}, Ms} | Acc]};
hear({cancel, Key}, _Now, {Node, Acc}) ->
    {Node, [{cancel, {overlay, Key}} | Acc]};
hear({notify, {neighbour_up, Peer}}, Now, {#node{up = Up} = Node, Acc}) ->
    tell_all({up, Peer}, Now, {Node#node{up = Up ++ [Peer]}, Acc});
hear({notify, {neighbour_down, Peer, Why}}, Now, {#node{up = Up} = Node, Acc}) ->
    tell_all({down, Peer, Why}, Now, {Node#node{up = lists:delete(Peer, Up)}, Acc});
hear({notify, {broadcast, _From, {Name, {Id, Value}}}}, Now, Acc) ->
    tell(Name, {cast, {told, Id, Value}}, Now, Acc);
hear({notify, {missed, _From, _Count}}, Now, Acc) ->
    tell_all({cast, {missed, 0}}, Now, Acc);
hear(Effect, _Now, {Node, Acc}) ->
    {Node, [Effect | Acc]}.

%% Effects of a handler.
said(Name, Effects, Now, Acc) ->
    lists:foldl(fun(Effect, A) -> say(Name, Effect, Now, A) end, Acc, Effects).

say(Name, {send, To, Message}, _Now, {Node, Acc}) ->
    {Node, [{send, To, {Name, Message}} | Acc]};
say(Name, {timer, Key, Ms}, _Now, {Node, Acc}) ->
    {Node, [{timer, {Name, Key}, Ms} | Acc]};
say(Name, {cancel, Key}, _Now, {Node, Acc}) ->
    {Node, [{cancel, {Name, Key}} | Acc]};
say(Name, {notify, {new, _, _} = New}, _Now, {Node, Acc}) ->
    {Node, [{notify, {Name, New}} | Acc]}.

%% A world whose nodes are not started. `options' are of the handlers, `start' says which ones
%% a node starts with.
world(Count, Options, Seed) ->
    Contacts = lists:sublist(names(Count), 3),
    Strategy = strategy(maps:get(strategy, Options, hyparview), Contacts),
    atoll_sim_world:new(
        maps:merge(
            #{
                protocol => ?MODULE,
                seed => Seed,
                messages => true,
                config => fun(Name, Incarnation, NodeSeed) ->
                    #{
                        start => maps:get(start, Options, [registers, set]),
                        options => maps:get(options, Options, #{}),
                        overlay => (maps:merge(atoll_sim_defaults:parts(), maps:with([broadcast], Options)))#{
                            self => Name,
                            incarnation => Incarnation,
                            seed => NodeSeed,
                            strategy => Strategy,
                            contacts => Contacts
                        }
                    }
                end
            },
            maps:with([latency, watch], Options)
        )
    ).

strategy(Name, Contacts) ->
    {ok, Module} = atoll_strategy:module(Name),
    {ok, Options} = atoll_options:complete(Module, maps:from_list([{servers, Contacts} || Name =:= star])),
    {Module, Options}.

names(Count) ->
    atoll_sim_cluster:names_of(Count).

%% What the handler of a node has; `none' where there is no handler.
values(Name, #node{handlers = Handlers}) ->
    case Handlers of
        #{Name := Core} -> contents(Name, atoll_handler_core:state(Core));
        #{} -> none
    end.

contents(registers, Table) -> ets:tab2list(Table);
contents(set, Set) -> Set.

summary(Name, Key, #node{handlers = Handlers}) ->
    maps:get(Key, atoll_handler_core:summary(maps:get(Name, Handlers))).
