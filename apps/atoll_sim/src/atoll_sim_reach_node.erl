%% SPDX-License-Identifier: Apache-2.0
%% @doc A simulated node that talks to any other: with those that it has a link with over that,
%% with all others over a circuit. Its circuits and its relay are the very modules of the carrier
%% ({@link atoll_dist_circuit}, {@link atoll_dist_relay}), its routes come from the directory
%% ({@link atoll_routes}), and whom to avoid after a loss is said as there ({@link atoll_dist_router}); played is the process that ties them together, and the links.
%%
%% A link takes whatever it is handed at once, so nothing waits for a link here. The handshake of
%% Erlang's distribution, which is the first thing to go over a circuit, is left out.
-module(atoll_sim_reach_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3, figures/1]).

-export_type([config/0, state/0, notice/0, figures/0]).

-type config() :: #{
    self := node(),
    %% Those that it makes a link with; others may make one with it.
    links := [node()],
    table := atoll_directory_table:table(),
    relay := map(),
    circuit := map()
}.

%% What is cast is `{ask, Node, Number}': a word to that node, which answers.
-type notice() ::
    {answered, node(), Number :: non_neg_integer(), Ms :: non_neg_integer()}
    %% A circuit that this node opened is up; or its path is another now.
    | {path, node(), Hops :: pos_integer()}
    | {lost, node(), atoll_dist_circuit_reason:failure()}
    | {ended, node(), atoll_dist_circuit_reason:reason()}.

-type figures() :: #{
    links := non_neg_integer(),
    circuits := non_neg_integer(),
    %% Of the terms that it keeps for its ends, and for what it relays.
    end_bytes := non_neg_integer(),
    relay_bytes := non_neg_integer(),
    %% What its relay says of itself.
    relay := map()
}.

-record(state, {
    config :: config(),
    name :: binary(),
    linked = [] :: ordsets:ordset(node()),
    relay :: atoll_dist_relay:state(),
    ends = #{} :: #{atoll_dist_circuit_frame:id() => {node(), atoll_dist_circuit:state()}},
    %% The circuit to each node.
    ids = #{} :: #{node() => atoll_dist_circuit_frame:id()},
    %% How many it has opened.
    opened = 0 :: non_neg_integer(),
    %% Newest first, until the event is done with.
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque state() :: #state{}.

%% @doc It makes its links, once and for all.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, links := Links, relay := Relay} = Config, Now) ->
    Name = atom_to_binary(Self),
    {Core, []} = atoll_dist_relay:init(Relay#{name => Name}, Now),
    {#state{config = Config, name = Name, relay = Core}, [{want, Peer} || Peer <- Links]}.

%% @doc What happens to a node.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle(Event, Now, State0) ->
    #state{effects = Effects} = State = event(Event, Now, State0),
    {State#state{effects = []}, lists:reverse(Effects)}.

event({up, Peer}, Now, #state{linked = Linked} = State) ->
    relay({cast, {up, atom_to_binary(Peer)}}, Now, State#state{linked = ordsets:add_element(Peer, Linked)});
event({down, Peer, _Reason}, Now, #state{linked = Linked, ends = Ends} = State0) ->
    State = relay({cast, {down, atom_to_binary(Peer)}}, Now, State0#state{linked = ordsets:del_element(Peer, Linked)}),
    lists:foldl(fun(Id, S) -> at_end(Id, {cast, {down, Peer}}, Now, S) end, State, lists:sort(maps:keys(Ends)));
event({message, From, {frames, Frames}}, Now, State) ->
    Name = atom_to_binary(From),
    lists:foldl(fun(Frame, S) -> relay({cast, {frame, Name, Frame}}, Now, S) end, State, Frames);
event({message, From, {word, Word}}, Now, State) ->
    word(From, Word, Now, State);
event({timeout, relay}, Now, State) ->
    relay({timeout, sweep}, Now, State);
event({timeout, {Id, Key}}, Now, State) ->
    at_end(Id, {timeout, Key}, Now, State);
event({cast, {unreachable, _Peer}}, _Now, State) ->
    State;
event({cast, {ask, To, Number}}, Now, State) ->
    say(To, <<$?, Number:32, Now:64>>, Now, State).

%% Words

say(To, Word, Now, #state{linked = Linked, ids = Ids} = State) ->
    case Ids of
        #{To := Id} ->
            at_end(Id, {cast, {packets, [{byte_size(Word), [Word]}]}}, Now, State);
        #{} ->
            case ordsets:is_element(To, Linked) of
                true -> effect({send, To, {word, Word}}, State);
                false -> say(To, Word, Now, open(To, Now, State))
            end
    end.

word(From, <<$?, Asked/binary>>, Now, State) ->
    say(From, <<$!, Asked/binary>>, Now, State);
word(From, <<$!, Number:32, Then:64>>, Now, State) ->
    effect({notify, {answered, From, Number, Now - Then}}, State).

%% Circuits

open(To, Now, #state{name = Name, opened = Opened, config = #{circuit := Circuit}} = State) ->
    There = atom_to_binary(To),
    Id = erlang:md5(<<Opened:32, Name/binary, $\s, There/binary>>),
    Config = Circuit#{id => Id, here => Name, there => There, role => opener},
    started(Id, To, atoll_dist_circuit:init(Config, Now), Now, State#state{opened = Opened + 1}).

started(Id, With, {Core, Acts}, Now, #state{ends = Ends, ids = Ids} = State) ->
    end_acts(Acts, Id, Now, State#state{ends = Ends#{Id => {With, Core}}, ids = Ids#{With => Id}}).

at_end(Id, Event, Now, #state{ends = Ends} = State) ->
    case Ends of
        #{Id := {With, Core0}} ->
            {Core, Acts} = atoll_dist_circuit:handle(Event, Now, Core0),
            end_acts(Acts, Id, Now, State#state{ends = Ends#{Id := {With, Core}}});
        #{} ->
            State
    end.

end_acts(Acts, Id, Now, State) ->
    lists:foldl(fun(Act, S) -> end_act(Act, Id, Now, S) end, State, Acts).

end_act({act, {send, Leg, Frame}}, Id, Now, State) ->
    at_end(Id, {cast, {sent, Leg, byte_size(Frame)}}, Now, effect({send, Leg, {frames, [Frame]}}, State));
end_act({act, {route, Failed}}, Id, Now, State) ->
    at_end(Id, {cast, route(with(Id, State), Failed, State)}, Now, State);
end_act({act, {deliver, Packets}}, Id, Now, State) ->
    With = with(Id, State),
    lists:foldl(fun(Packet, S) -> word(With, iolist_to_binary(Packet), Now, S) end, State, Packets);
end_act({notify, {ended, Why}}, Id, _Now, #state{ends = Ends, ids = Ids} = State) ->
    {With, _} = map_get(Id, Ends),
    Left = State#state{ends = maps:remove(Id, Ends), ids = maps:filter(fun(_, I) -> I =/= Id end, Ids)},
    effect({notify, {ended, With, Why}}, Left);
end_act({notify, {up, #{path := Path}}}, Id, _Now, State) ->
    path(Id, Path, State);
end_act({notify, {moved, Path}}, Id, _Now, State) ->
    path(Id, Path, State);
end_act({notify, {lost, Why}}, Id, _Now, State) ->
    effect({notify, {lost, with(Id, State), Why}}, State);
end_act({notify, {not_moved, _Why}}, _Id, _Now, State) ->
    State;
end_act({timer, Key, Ms}, Id, _Now, State) ->
    effect({timer, {Id, Key}, Ms}, State);
end_act({cancel, Key}, Id, _Now, State) ->
    effect({cancel, {Id, Key}}, State).

with(Id, #state{ends = Ends}) -> element(1, map_get(Id, Ends)).

%% Both ends say so; the one that opened is heard.
path(Id, [Name | _] = Path, #state{name = Name} = State) ->
    effect({notify, {path, with(Id, State), length(Path) - 1}}, State);
path(_Id, _Path, State) ->
    State.

route(To, Failed, #state{linked = Linked, config = #{self := Self, table := Table}}) ->
    Around = fun(Names) ->
        atoll_routes:find(Self, To, #{linked => Linked, avoid => [binary_to_atom(Name) || Name <- Names]}, Table)
    end,
    case atoll_dist_router:around(Around, Failed) of
        {ok, [_, Next | _] = Route} -> {route, Next, [atom_to_binary(Node) || Node <- Route]};
        {error, _} -> no_route
    end.

%% The relay

relay(Event, Now, #state{relay = Relay0} = State) ->
    {Relay, Acts} = atoll_dist_relay:handle(Event, Now, Relay0),
    lists:foldl(fun(Act, S) -> relay_act(Act, Now, S) end, State#state{relay = Relay}, Acts).

relay_act({act, {send, Name, Frames, Bytes}}, Now, State) ->
    relay({cast, {sent, Name, Bytes}}, Now, effect({send, binary_to_atom(Name), {frames, Frames}}, State));
relay_act({act, {here, From, Frame}}, Now, State) ->
    here(From, Frame, Now, State);
relay_act({timer, sweep, Ms}, _Now, State) ->
    effect({timer, relay, Ms}, State).

here(From, Frame, Now, #state{ends = Ends, config = #{circuit := Circuit}, name = Name} = State) ->
    {ok, Type, Key} = atoll_dist_circuit_frame:head(Frame),
    Id = binary:copy(atoll_dist_circuit_frame:id(Key)),
    Leg = binary_to_atom(From),
    case Type of
        _ when is_map_key(Id, Ends) ->
            at_end(Id, {cast, {frame, Leg, Frame}}, Now, State);
        open ->
            {ok, {open, _, #{path := [There | _], fresh := IsFresh}}} = atoll_dist_circuit_frame:parse(Frame),
            Config = Circuit#{id => Id, here => Name, there => There, role => {acceptor, Leg, Frame}},
            case IsFresh of
                true ->
                    started(Id, binary_to_atom(There), atoll_dist_circuit:init(Config, Now), Now, State);
                false ->
                    Refused = atoll_dist_circuit_frame:make({refused, binary:copy(Key), {Name, unknown_circuit, <<>>}}),
                    effect({send, Leg, {frames, [Refused]}}, State)
            end;
        _ ->
            relay({cast, {nobody, From, Frame}}, Now, State)
    end.

effect(Effect, #state{effects = Effects} = State) -> State#state{effects = [Effect | Effects]}.

%% @doc What it has.
-spec figures(state()) -> figures().
figures(#state{linked = Linked, ends = Ends, relay = Relay}) ->
    #{
        links => length(Linked),
        circuits => map_size(Ends),
        end_bytes => bytes(Ends),
        relay_bytes => bytes(Relay),
        relay => atoll_dist_relay:figures(Relay)
    }.

bytes(Term) -> erts_debug:flat_size(Term) * erlang:system_info(wordsize).
