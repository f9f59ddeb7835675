%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The strategy `static': links only where somebody asked for them.
%%
%% `{tell, {join, Node}}' links this node with that one, and the other learns of it
%% by the first hello and holds the link as its own from then on. It is wanted by
%% both until `{tell, {part, Node}}' or `leave' at either end, however often it
%% breaks. Contacts are joined, all of them, by a node that has no peers at all.
%%
%% What two nodes are to each other has a version, as in {@link atoll_mesh_members}: each
%% join is one higher than what was known, and at equal versions the parting wins.
%% The version is what a hello offers. So a parting that was lost is told again when
%% the other end says hello, and a join after it is not taken for an old one.
%%
%% Promised: when messages get through again, both ends of a pair hold the same
%% about it. Not promised: that the graph is connected, or that a node survives a
%% restart of both ends with its links (what nobody remembers has to be asked for
%% again).
-module(atoll_static).

-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

-export_type([state/0, message/0]).

-type message() ::
    %% Offers are versions.
    atoll_peers:hello()
    | {part, Version :: pos_integer()}.

-record(state, {
    self :: node(),
    options :: atoll_options:options(),
    %% The others: alive is joined, gone is parted, incarnations are versions.
    pairs = atoll_mesh_members:from_list([]) :: atoll_mesh_members:members(),
    %% Joined from here, and not heard of since: an old parting is overruled once.
    asked = [] :: ordsets:ordset(node()),
    peers :: atoll_peers:peers(),
    left = false :: boolean(),
    refused = 0 :: non_neg_integer(),
    forgotten = 0 :: non_neg_integer(),
    %% Terms that it was told and does not know.
    not_understood = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

%% @doc After which time an unanswered hello is said again; how many peers a node
%% has at most by the wish of others; and how many partings are remembered.
-spec options() -> atoll_options:known().
options() ->
    #{
        hello_ms => {pos_integer, 5000},
        max_peers => {pos_integer, 1000},
        max_parted => {non_neg_integer, 1000}
    }.

%% @doc No peers; those of an earlier life are joined again.
-spec init(atoll_strategy:config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, options := #{hello_ms := HelloMs} = Options, remembered := Remembered}, _Now) ->
    State = #state{self = Self, options = Options, peers = atoll_peers:new(both, HelloMs)},
    done(lists:foldl(fun join/2, State, lists:usort(Remembered) -- [Self])).

%% @doc Takes one event.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({message, From, {hello, Answer, Offer}}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:heard(From, Answer, Offer, P) end, hello(From, Offer, State)));
handle({message, From, {part, Version}}, _Now, State) ->
    done(parted(From, Version, State));
handle({up, Node}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:up(Node, P) end, State));
handle({down, Node, _Reason}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:down(Node, P) end, State));
handle({timeout, hello}, _Now, State) ->
    done(peers(fun atoll_peers:remind/1, State));
handle({cast, {tell, {join, Self}}}, _Now, #state{self = Self} = State) ->
    {State, []};
handle({cast, {tell, {join, Node}}}, _Now, State) when is_atom(Node) ->
    done(join(Node, State#state{left = false}));
handle({cast, {tell, {part, Node}}}, _Now, State) when is_atom(Node) ->
    done(part(Node, State));
handle({cast, {join, Contacts}}, _Now, #state{self = Self, pairs = Pairs, left = Left} = State) ->
    case Left orelse atoll_mesh_members:alive(Pairs) =/= [] of
        true -> {State, []};
        false -> done(lists:foldl(fun join/2, State, lists:usort(Contacts) -- [Self]))
    end;
handle({cast, {stranger, Node}}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:ask(Node, P) end, State));
handle({cast, leave}, _Now, #state{pairs = Pairs} = State) ->
    done(lists:foldl(fun part/2, State#state{left = true}, atoll_mesh_members:alive(Pairs)));
handle({cast, {Notice, _}}, _Now, State) when Notice =:= unreachable; Notice =:= dead ->
    {State, []};
handle({cast, {tell, _Unknown}}, _Now, #state{not_understood = N} = State) ->
    {State#state{not_understood = N + 1}, []}.

%% @doc In the order of their names.
-spec neighbours(state()) -> [node()].
neighbours(#state{peers = Peers}) ->
    atoll_peers:neighbours(Peers).

%% @doc Peers whose link is down.
-spec known(state()) -> [node()].
known(#state{pairs = Pairs, peers = Peers}) ->
    atoll_mesh_members:alive(Pairs) -- atoll_peers:neighbours(Peers).

%% @doc Sizes, and what was dropped.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{pairs = Pairs, peers = Peers, refused = Refused, forgotten = Forgotten} = State) ->
    #{
        strategy => static,
        peers => length(atoll_mesh_members:alive(Pairs)),
        parted => length(atoll_mesh_members:gone(Pairs)),
        neighbours => atoll_peers:count(Peers),
        refused => Refused,
        forgotten => Forgotten,
        not_understood => State#state.not_understood,
        hellos => atoll_peers:summary(Peers)
    }.

join(Node, #state{pairs = Pairs, asked = Asked} = State) ->
    case atoll_mesh_members:entry(Node, Pairs) of
        {_, alive} -> State;
        Entry -> agree(Node, version(Entry) + 1, State#state{asked = ordsets:add_element(Node, Asked)})
    end.

version(unknown) -> 0;
version({Version, _}) -> Version.

part(Node, #state{pairs = Pairs} = State) ->
    case atoll_mesh_members:entry(Node, Pairs) of
        {Version, alive} ->
            Told = peers(fun(P) -> atoll_peers:emit({send, Node, {part, Version}}, P) end, State),
            disagree(Node, Version, Told);
        _ ->
            State
    end.

%% The other end wants the link.
hello(_From, false, State) ->
    State;
hello(From, Offer, #state{pairs = Pairs, asked = Asked, left = Left, options = #{max_peers := Max}} = State) ->
    case atoll_mesh_members:entry(From, Pairs) of
        {Version, alive} ->
            agree(From, max(Version, Offer), State#state{asked = ordsets:del_element(From, Asked)});
        {Version, gone} when Version >= Offer ->
            peers(fun(P) -> atoll_peers:emit({send, From, {part, Version}}, P) end, State);
        _ when Left ->
            peers(fun(P) -> atoll_peers:emit({send, From, {part, Offer}}, P) end, State);
        _ ->
            case length(atoll_mesh_members:alive(Pairs)) < Max of
                true -> agree(From, Offer, State);
                false -> State#state{refused = State#state.refused + 1}
            end
    end.

%% The other end parted, perhaps before we joined.
parted(From, Version, #state{pairs = Pairs, asked = Asked} = State) ->
    case {atoll_mesh_members:entry(From, Pairs), ordsets:is_element(From, Asked)} of
        {{Known, alive}, _} when Known > Version ->
            peers(fun(P) -> atoll_peers:ask(From, P) end, State);
        {{_, alive}, true} ->
            agree(From, Version + 1, State#state{asked = ordsets:del_element(From, Asked)});
        {{_, alive}, false} ->
            disagree(From, Version, State);
        _ ->
            State
    end.

agree(Node, Version, State) ->
    Linked = peers(fun(P) -> atoll_peers:offer(Node, Version, atoll_peers:want(Node, P)) end, State),
    record(Node, {Version, alive}, Linked).

disagree(Node, Version, #state{asked = Asked} = State) ->
    Unlinked = peers(fun(P) -> atoll_peers:unwant(Node, atoll_peers:offer(Node, false, P)) end, State),
    record(Node, {Version, gone}, Unlinked#state{asked = ordsets:del_element(Node, Asked)}).

record(Node, Entry, #state{pairs = Pairs, options = #{max_parted := Max}, forgotten = Forgotten} = State) ->
    Merged = atoll_mesh_members:merge(Pairs, atoll_mesh_members:from_list([{Node, Entry}])),
    {Kept, Dropped} = atoll_mesh_members:forget(Max, Merged),
    State#state{pairs = Kept, forgotten = Forgotten + Dropped}.

done(#state{peers = Peers0} = State) ->
    {Peers, Effects} = atoll_peers:take(Peers0),
    {State#state{peers = Peers}, Effects}.

peers(Fun, #state{peers = Peers} = State) ->
    State#state{peers = Fun(Peers)}.
