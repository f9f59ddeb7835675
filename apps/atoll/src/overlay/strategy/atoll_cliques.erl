%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The strategy `cliques': the user says who is to be linked with whom.
%%
%% A clique is a set of nodes that are all linked with each other. All that this node is in are
%% handed in from above at once, with `{tell, {cliques, [{Id, [Node]}]}}': what is not among
%% them is a clique of this node no more. So it does not matter what was told before, or how
%% often. A node wants a link with everybody who shares a clique with it; who stands in two
%% cliques is a gateway between them.
%%
%% For a while two nodes may have been told different things. Each offers the other what its
%% own data say ({@link atoll_peers}), and they are neighbours when both do. A node
%% that hears of its new clique late therefore becomes a neighbour late; until then
%% the other one keeps the link and asks.
%%
%% Promised: once two nodes were told the same, they are neighbours exactly if they
%% share a clique and their link is up. Not promised: that the cliques are
%% connected with each other; that nodes learn of cliques from one another (the
%% owner of the data tells each). Contacts and verdicts change nothing: a dead
%% member is wanted until its clique says otherwise. `leave' forgets all cliques.
-module(atoll_cliques).

-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

-export_type([state/0, clique/0, message/0]).

-type clique() :: {Id :: term(), [node()]}.

-type message() :: atoll_peers:hello().

-record(state, {
    self :: node(),
    %% Cliques that this node is in.
    cliques = 0 :: non_neg_integer(),
    %% Terms that it was told and does not know.
    not_understood = 0 :: non_neg_integer(),
    %% Who shares a clique with this node.
    co_members = [] :: ordsets:ordset(node()),
    peers :: atoll_peers:peers()
}).

-opaque state() :: #state{}.

%% @doc After which time an unanswered hello is said again.
-spec options() -> atoll_options:known().
options() ->
    #{hello_ms => {pos_integer, 5000}}.

%% @doc In no clique.
-spec init(atoll_strategy:config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, options := #{hello_ms := HelloMs}}, _Now) ->
    {#state{self = Self, peers = atoll_peers:new(both, HelloMs)}, []}.

%% @doc Takes one event.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({message, From, {hello, Answer, Offer}}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:heard(From, Answer, Offer, P) end, State));
handle({up, Node}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:up(Node, P) end, State));
handle({down, Node, _Reason}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:down(Node, P) end, State));
handle({timeout, hello}, _Now, State) ->
    done(peers(fun atoll_peers:remind/1, State));
handle({cast, {tell, Term}}, _Now, #state{not_understood = N} = State) ->
    case cliques_in(Term) of
        {ok, Cliques} -> done(told(Cliques, State));
        error -> {State#state{not_understood = N + 1}, []}
    end;
handle({cast, {stranger, Node}}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:ask(Node, P) end, State));
handle({cast, leave}, _Now, State) ->
    done(told([], State));
handle({cast, {Notice, _}}, _Now, State) when Notice =:= join; Notice =:= unreachable; Notice =:= dead ->
    {State, []}.

%% @doc In the order of their names.
-spec neighbours(state()) -> [node()].
neighbours(#state{peers = Peers}) ->
    atoll_peers:neighbours(Peers).

%% @doc Nobody: cliques are handed in again after a restart.
-spec known(state()) -> [node()].
known(#state{}) ->
    [].

%% @doc Sizes, and what was dropped.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{cliques = Cliques, co_members = CoMembers, peers = Peers} = State) ->
    #{
        strategy => cliques,
        cliques => Cliques,
        is_gateway => Cliques > 1,
        not_understood => State#state.not_understood,
        hellos => atoll_peers:summary(Peers),
        co_members => length(CoMembers),
        neighbours => atoll_peers:count(Peers)
    }.

%% Guards by the length, which only a proper list has.
cliques_in({cliques, Cliques}) when length(Cliques) >= 0 ->
    case lists:all(fun is_clique/1, Cliques) of
        true -> {ok, Cliques};
        false -> error
    end;
cliques_in(_) ->
    error.

is_clique({_Id, Nodes}) when length(Nodes) >= 0 -> lists:all(fun is_atom/1, Nodes);
is_clique(_) -> false.

%% Brings the links in line with the cliques.
told(Told, #state{self = Self, co_members = Before} = State0) ->
    Cliques = lists:usort([Clique || {_, Nodes} = Clique <- Told, lists:member(Self, Nodes)]),
    CoMembers = lists:usort(lists:append([Nodes || {_, Nodes} <- Cliques])) -- [Self],
    peers(
        fun(P0) ->
            P1 = lists:foldl(fun part/2, P0, ordsets:subtract(Before, CoMembers)),
            lists:foldl(fun meet/2, P1, ordsets:subtract(CoMembers, Before))
        end,
        State0#state{cliques = length(Cliques), co_members = CoMembers}
    ).

meet(Node, Peers) ->
    atoll_peers:offer(Node, true, atoll_peers:want(Node, Peers)).

part(Node, Peers) ->
    atoll_peers:unwant(Node, atoll_peers:offer(Node, false, Peers)).

done(#state{peers = Peers0} = State) ->
    {Peers, Effects} = atoll_peers:take(Peers0),
    {State#state{peers = Peers}, Effects}.

peers(Fun, #state{peers = Peers} = State) ->
    State#state{peers = Fun(Peers)}.
