%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The strategy `star': clients and servers.
%%
%% The nodes of the option `servers' are servers; it is to be the same everywhere.
%% Servers link with each other. A client links with a few servers only, one by
%% default. Which ones it prefers is decided by rendezvous hashing (Thaler and
%% Ravishankar, 1998): by the hash of both names, so that clients spread evenly and
%% only those of a lost server move. A client says hello to the server it chose,
%% and is its neighbour from the server's answer on; the client alone wants the
%% link.
%%
%% A server that is lost, or that cannot be reached, or that does not answer, is
%% put aside, and the client turns to the next of its own order at once. When all
%% have been put aside it begins again after a pause that doubles from time to
%% time. It asks its server for a hello every few seconds: the failure detector
%% does not help where all but a few of a silent server's clients know only that
%% server. Every `rebalance_ms' those put aside get another chance: the client goes
%% back to a server that it prefers, and parts from the other once the new one has
%% answered.
%%
%% Promised: while any server is reachable a client finds one, after as many
%% failed attempts as it has servers at most. Not promised: that a client follows
%% within a period when a preferred server returns, or that the spread is even
%% while servers are missing. Contacts mean nothing here: a contact that is a
%% server is in the list, and another one cannot help. After `leave' a node stays
%% outside until it is started again.
-module(atoll_star).

-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

-export_type([state/0, message/0]).

-type message() :: atoll_peers:hello().

-record(state, {
    self :: node(),
    role :: client | server,
    options :: atoll_options:options(),
    %% The other servers; a client's own order of preference.
    servers :: [node()],
    %% A client's servers that have failed since the last chance.
    aside = [] :: [node()],
    %% How often a client's server was asked since it last answered.
    unanswered = #{} :: #{node() => pos_integer()},
    %% A client's last pause when all had failed.
    pause = 0 :: non_neg_integer(),
    peers :: atoll_peers:peers(),
    left = false :: boolean(),
    %% Clients that a server had no room for.
    refused = 0 :: non_neg_integer(),
    %% Terms that it was told and does not know.
    not_understood = 0 :: non_neg_integer(),
    rand :: rand:state()
}).

-opaque state() :: #state{}.

-define(UNANSWERED, 3).

%% @doc The servers, and to how many of them a client links; how soon a server put
%% aside gets another chance; how often a client asks its server for a sign, and
%% how long a server that was just chosen may take to answer; the pauses when none
%% answers; and how many clients one server takes.
-spec options() -> atoll_options:known().
options() ->
    #{
        servers => {nodes, []},
        links => {pos_integer, 1},
        rebalance_ms => {pos_integer, 30000},
        check_ms => {pos_integer, 2000},
        answer_ms => {pos_integer, 5000},
        retry_min_ms => {pos_integer, 1000},
        retry_max_ms => {pos_integer, 30000},
        max_clients => {pos_integer, 10000}
    }.

%% @doc A server that wants the others, or a client that tries its first.
-spec init(atoll_strategy:config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, seed := Seed, options := #{servers := Servers, answer_ms := Ms} = Options}, _Now) ->
    State = #state{
        self = Self,
        role = role(lists:member(Self, Servers)),
        options = Options,
        servers = preferred(Self, lists:usort(Servers) -- [Self]),
        peers = atoll_peers:new(both, Ms),
        rand = rand:seed_s(exsss, Seed)
    },
    done(
        case State of
            #state{role = server, servers = Others} -> lists:foldl(fun choose/2, State, Others);
            #state{role = client} -> later(check, check_ms, later(rebalance, rebalance_ms, turn(State)))
        end
    ).

role(true) -> server;
role(false) -> client.

preferred(Self, Servers) ->
    [Server || {_, Server} <- lists:sort([{erlang:phash2({Self, S}, 1 bsl 32), S} || S <- Servers])].

%% @doc Takes one event.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({message, From, {hello, Answer, Offer}}, _Now, State) ->
    done(hello(From, Answer, Offer, State));
handle({up, Node}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:up(Node, P) end, State));
handle({down, Node, _Reason}, _Now, State) ->
    done(lost(Node, peers(fun(P) -> atoll_peers:down(Node, P) end, State)));
handle({timeout, hello}, _Now, State) ->
    done(peers(fun atoll_peers:remind/1, State));
handle({timeout, {answer, Server}}, _Now, State) ->
    done(failed(Server, State));
handle({timeout, check}, _Now, State) ->
    done(later(check, check_ms, check(State)));
handle({timeout, retry}, _Now, State) ->
    done(turn(State#state{aside = []}));
handle({timeout, rebalance}, _Now, State) ->
    done(later(rebalance, rebalance_ms, turn(State#state{aside = []})));
handle({cast, {dead, Node}}, _Now, State) ->
    done(failed(Node, State));
handle({cast, {unreachable, Node}}, _Now, #state{peers = Peers} = State) ->
    case atoll_peers:is_up(Node, Peers) of
        true -> {State, []};
        false -> done(failed(Node, State))
    end;
handle({cast, {stranger, Node}}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:ask(Node, P) end, State));
handle({cast, {join, _Contacts}}, _Now, State) ->
    {State, []};
handle({cast, leave}, _Now, #state{servers = Servers, peers = Peers} = State) ->
    Others = lists:usort(Servers ++ atoll_peers:neighbours(Peers)),
    done(lists:foldl(fun release/2, State#state{left = true}, Others));
handle({cast, {tell, _Unknown}}, _Now, #state{not_understood = N} = State) ->
    {State#state{not_understood = N + 1}, []}.

%% @doc In the order of their names.
-spec neighbours(state()) -> [node()].
neighbours(#state{peers = Peers}) ->
    atoll_peers:neighbours(Peers).

%% @doc Nobody: the servers are in the options.
-spec known(state()) -> [node()].
known(#state{}) ->
    [].

%% @doc The role, sizes, and what was refused.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{role = Role, servers = Servers, aside = Aside, peers = Peers, refused = Refused} = State) ->
    #{
        strategy => star,
        role => Role,
        servers => length(Servers),
        aside => Aside,
        neighbours => atoll_peers:count(Peers),
        refused => Refused,
        not_understood => State#state.not_understood,
        hellos => atoll_peers:summary(Peers)
    }.

%% A server takes whoever says hello, while there is room, and lets go of who
%% parts. A client takes nobody but whom it chose.
hello(From, Answer, Offer, #state{role = server, left = false, servers = Servers} = State0) ->
    IsServer = lists:member(From, Servers),
    State =
        case Offer of
            false when IsServer -> State0;
            false -> peers(fun(P) -> atoll_peers:offer(From, false, P) end, State0);
            _ when IsServer -> State0;
            _ -> take_in(From, State0)
        end,
    heard(From, Answer, Offer, State);
hello(From, Answer, Offer, #state{role = client, peers = Peers} = State0) ->
    State = heard(From, Answer, Offer, State0),
    case {atoll_peers:offered(From, Peers), Offer} of
        {false, _} -> State;
        {_, false} -> failed(From, State);
        {_, _} -> answered(From, State)
    end;
hello(From, Answer, Offer, State) ->
    heard(From, Answer, Offer, State).

heard(From, Answer, Offer, State) ->
    peers(fun(P) -> atoll_peers:heard(From, Answer, Offer, P) end, State).

take_in(From, #state{peers = Peers, options = #{max_clients := Max}, refused = Refused} = State) ->
    case atoll_peers:offered(From, Peers) =/= false orelse atoll_peers:count(Peers) < Max of
        true -> peers(fun(P) -> atoll_peers:offer(From, true, P) end, State);
        false -> State#state{refused = Refused + 1}
    end.

lost(Node, #state{role = client} = State) ->
    failed(Node, State);
lost(Node, #state{servers = Servers} = State) ->
    case lists:member(Node, Servers) of
        true -> State;
        %% The client comes back by itself, here or elsewhere.
        false -> peers(fun(P) -> atoll_peers:offer(Node, false, P) end, State)
    end.

%% The client's choice

failed(Server, #state{role = client, peers = Peers, aside = Aside} = State) ->
    case atoll_peers:offered(Server, Peers) of
        false -> State;
        _ -> turn(release(Server, State#state{aside = lists:usort([Server | Aside])}))
    end;
failed(_Node, State) ->
    State.

%% Tries the servers that it prefers of those not put aside.
turn(#state{left = true} = State) ->
    State;
turn(#state{servers = Servers, aside = Aside, options = #{links := Links}} = State0) ->
    Chosen = lists:sublist([S || S <- Servers, not lists:member(S, Aside)], Links),
    State = spare(lists:foldl(fun choose/2, State0, Chosen)),
    case {Chosen, Servers} of
        {[], [_ | _]} -> retry_later(State);
        _ -> State
    end.

choose(Server, #state{role = Role, peers = Peers, options = #{answer_ms := Ms}} = State0) ->
    case atoll_peers:offered(Server, Peers) of
        false ->
            State = peers(fun(P) -> atoll_peers:want(Server, atoll_peers:offer(Server, true, P)) end, State0),
            case Role of
                client -> emit({timer, {answer, Server}, Ms}, State);
                server -> State
            end;
        _ ->
            State0
    end.

answered(Server, #state{unanswered = Unanswered} = State) ->
    Answered = State#state{pause = 0, unanswered = maps:remove(Server, Unanswered)},
    emit({cancel, {answer, Server}}, spare(Answered)).

%% Parts from those that are not needed beside better ones that have answered.
spare(#state{servers = Servers, peers = Peers, options = #{links := Links}} = State) ->
    Linked = [S || S <- Servers, atoll_peers:is_neighbour(S, Peers)],
    case length(Linked) > Links of
        true -> lists:foldl(fun release/2, State, lists:nthtail(Links, Linked));
        false -> State
    end.

%% One or two answers may be lost.
check(#state{peers = Peers} = State) ->
    lists:foldl(fun check/2, State, atoll_peers:neighbours(Peers)).

check(Server, #state{unanswered = Unanswered} = State) ->
    case maps:get(Server, Unanswered, 0) of
        ?UNANSWERED ->
            failed(Server, State);
        Asked ->
            Asking = State#state{unanswered = Unanswered#{Server => Asked + 1}},
            peers(fun(P) -> atoll_peers:ask(Server, P) end, Asking)
    end.

release(Node, #state{role = Role, unanswered = Unanswered} = State0) ->
    State1 = State0#state{unanswered = maps:remove(Node, Unanswered)},
    State = peers(fun(P) -> atoll_peers:unwant(Node, atoll_peers:offer(Node, false, P)) end, State1),
    case Role of
        client -> emit({cancel, {answer, Node}}, State);
        server -> State
    end.

retry_later(#state{pause = Last, rand = Rand0, options = #{retry_min_ms := Min, retry_max_ms := Max}} = State) ->
    Ms = max(Min, min(Max, 2 * Last)),
    {Less, Rand} = rand:uniform_s(max(1, Ms div 4), Rand0),
    emit({timer, retry, Ms - Less + 1}, State#state{pause = Ms, rand = Rand}).

%% Up to half as long again, so that clients do not go in step.
later(Key, Option, #state{rand = Rand0, options = Options} = State) ->
    #{Option := Ms} = Options,
    {More, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    emit({timer, Key, Ms + More - 1}, State#state{rand = Rand}).

%% Effects

done(#state{peers = Peers0} = State) ->
    {Peers, Effects} = atoll_peers:take(Peers0),
    {State#state{peers = Peers}, Effects}.

peers(Fun, #state{peers = Peers} = State) ->
    State#state{peers = Fun(Peers)}.

emit(Effect, State) ->
    peers(fun(P) -> atoll_peers:emit(Effect, P) end, State).
