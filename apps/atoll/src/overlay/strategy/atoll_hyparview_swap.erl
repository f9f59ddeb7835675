%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Exchanges links of {@link atoll_hyparview} for shorter ones, and leaves each
%% node as many neighbours as it had. After Leitao, Marques, Pereira, Rodrigues,
%% "X-BOT: a protocol for resilient optimization of unstructured overlay networks"
%% (SRDS 2009; TPDS 2012).
%%
%% Four nodes take part. The initiator `i' knows a candidate `c' that is nearer than
%% its neighbour `o'. As `c' has no room, it gives up its neighbour `d', and those
%% who lost one, `o' and `d', become neighbours:
%% ```
%%    i --- o          i     o
%%               =>    |     |
%%    c --- d          c     d
%%
%%    i: optimise -> c: replace -> d: switch -> o
%%    i <- optimised :c <- replaced :d <- switched :o
%% '''
%% Nothing changes on the way there. `o' is the first to change its view, then `d',
%% `c' and `i', each as the answer reaches it, so that every link is made as in a
%% plain request: who is asked takes the asker in and answers, the asker takes it in
%% if it still waits for the answer, and sends `disconnect' if not. A message lost
%% costs somebody a link, which is repaired as any other is. A node takes part
%% in one exchange at a time, and waits for at most `xbot_timeout_ms'.
%%
%% Costs are round trips that each node measures itself, by pings: those to its
%% neighbours, and in each period to a few nodes of the passive view. The first ping
%% may include connecting, so the shortest of two counts. The cost of the link
%% between `i' and `c' is taken from `i', as it is the same from both ends.
%%
%% Where it differs from the papers: there `d' agrees if `o' is nearer to it than
%% `c'. Here it agrees if the two new links are together shorter than the two old
%% ones: with regions far from each other, most exchanges would otherwise fail since
%% `d' and `o' are not in the same one, though nothing is lost for them.
%%
%% The `xbot_unbiased' farthest neighbours of a node are not what it offers to give
%% up, as `i' or as `c', or regions would lose each other. It is no promise that it
%% has so many far ones: `d' and `o' do not choose.
-module(atoll_hyparview_swap).

-export([new/2, tick/4, message/5, gone/2, expired/1, summary/1]).

-export_type([state/0, message/0, deed/0]).

-import(atoll_random, [sample/3]).

-type cost() :: non_neg_integer().
%% A round trip in milliseconds.

-type id() :: {Initiator :: node(), pos_integer()}.
%% Of an exchange.

-type message() ::
    {ping, pos_integer()}
    | {pong, pos_integer()}
    %% i to c, with the cost of i to c and of i to o.
    | {optimise, id(), O :: node(), cost(), cost()}
    %% c to d. The limit is what the link between d and o may cost to gain nothing.
    | {replace, id(), I :: node(), O :: node(), Limit :: cost()}
    %% d to o, with the cost of d to o.
    | {switch, id(), I :: node(), cost()}
    %% The answers of o, d and c.
    | {switched, id(), boolean()}
    | {replaced, id(), boolean()}
    | {optimised, id(), boolean()}.

%% What {@link atoll_hyparview} is to do, in order.
-type deed() ::
    {tell, node(), message()}
    %% Make or unmake a neighbour; the other end of one that is dropped is told.
    | {adopt, node()}
    | {drop, node()}
    %% Call `expired/1' after that time; or not.
    | {wait, pos_integer()}
    | wait_no_longer.

-type phase() ::
    idle
    %% As i, for c.
    | {optimising, id(), C :: node(), O :: node()}
    %% As c, for d.
    | {replacing, id(), D :: node(), I :: node()}
    %% As d, for the pongs of o, and then for o.
    | {measuring, id(), O :: node(), C :: node(), I :: node(), Limit :: cost()}
    | {switching, id(), O :: node(), C :: node()}.

-record(state, {
    self :: node(),
    options :: atoll_options:options(),
    phase = idle :: phase(),
    %% Of neighbours, and of others that were measured lately; the newest first. At
    %% most `?COSTS_MAX'. A passive view changes too fast for its costs to be known
    %% when one is needed, so others are kept when they are not in it any more.
    costs = [] :: [{node(), cost()}],
    %% The ping that is on its way, when it went off, what the one before it took.
    %% At most `?PINGS_MAX'.
    pings = [] :: [{node(), pos_integer(), atoll_protocol:now_ms(), none | cost()}],
    %% Numbers pings and exchanges.
    number = 0 :: non_neg_integer(),
    begun = 0 :: non_neg_integer(),
    done = 0 :: non_neg_integer(),
    expired = 0 :: non_neg_integer(),
    %% Pings without an answer, those that were not sent since ?PINGS_MAX were on
    %% their way, and costs that were forgotten for newer ones.
    unanswered = 0 :: non_neg_integer(),
    pings_dropped = 0 :: non_neg_integer(),
    costs_dropped = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

-define(PINGS_MAX, 20).
-define(COSTS_MAX, 40).
%% Of others, after each tick.
-define(CANDIDATES, 10).

%% @doc Nothing is measured yet.
-spec new(node(), atoll_options:options()) -> state().
new(Self, Options) ->
    #state{self = Self, options = Options}.

%% @doc Sizes and counts: `begun' as initiator, `done' in any part, `expired' without
%% an answer; `unanswered' are pings.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{phase = Phase, costs = Costs, pings = Pings} = State) ->
    #{
        phase =>
            case Phase of
                idle -> idle;
                _ -> element(1, Phase)
            end,
        costs => length(Costs),
        pings => length(Pings),
        begun => State#state.begun,
        done => State#state.done,
        expired => State#state.expired,
        unanswered => State#state.unanswered,
        dropped => #{pings => State#state.pings_dropped, costs => State#state.costs_dropped}
    }.

%% @doc Once in each period: begins an exchange if one is worth it, and measures more.
-spec tick(atoll_hyparview_views:views(), atoll_protocol:now_ms(), rand:state(), state()) ->
    {state(), [deed()], rand:state()}.
tick(Views, Now, Rand0, State0) ->
    State1 = tidy(Views, Now, State0),
    {State2, Deeds} = begin_exchange(Views, State1),
    {Nodes, Rand} = to_measure(Views, Rand0, State2),
    {State, Pings} = lists:foldl(
        fun(Node, {S0, Ps}) ->
            {S, P} = ping(Node, none, Now, S0),
            {S, P ++ Ps}
        end,
        {State2, []},
        Nodes
    ),
    {State, Deeds ++ lists:reverse(Pings), Rand}.

tidy(Views, Now, #state{costs = Costs, pings = Pings, options = Options} = State) ->
    #{xbot_timeout_ms := Timeout} = Options,
    {Neighbours, Others} = lists:partition(
        fun({Node, _}) -> atoll_hyparview_views:is_active(Node, Views) end, Costs
    ),
    {Candidates, Dropped} = at_most(?CANDIDATES, Others),
    Awaited = [Ping || {_, _, Sent, _} = Ping <- Pings, Now - Sent < Timeout],
    State#state{
        costs = Neighbours ++ Candidates,
        costs_dropped = State#state.costs_dropped + Dropped,
        pings = Awaited,
        unanswered = State#state.unanswered + length(Pings) - length(Awaited)
    }.

%% The first so many of a list, and how many there were beyond.
at_most(Max, List) ->
    {lists:sublist(List, Max), max(0, length(List) - Max)}.

%% Neighbours whose cost is not known, and one whose cost may have changed; and some
%% others, those first that were not measured.
to_measure(Views, Rand0, #state{costs = Costs, options = #{xbot_probes := Probes}}) ->
    Active = atoll_hyparview_views:active(Views),
    Passive = atoll_hyparview_views:passive(Views),
    {Known, Unknown} = lists:partition(fun(Node) -> lists:keymember(Node, 1, Costs) end, Active),
    {Again, Rand1} = sample(1, Known, Rand0),
    New = [Node || Node <- Passive, not lists:keymember(Node, 1, Costs)],
    {Others, Rand} = sample(
        Probes,
        case New of
            [] -> Passive;
            _ -> New
        end,
        Rand1
    ),
    {Unknown ++ Again ++ Others, Rand}.

begin_exchange(Views, #state{phase = idle} = State) ->
    Candidates = lists:sort([
        {Cost, Node}
     || {Node, Cost} <- State#state.costs, not atoll_hyparview_views:is_active(Node, Views)
    ]),
    case {Candidates, to_give_up(Views, [], State)} of
        {[{Near, C} | _], {Far, O}} ->
            case is_shorter(Near, Far, State) of
                true ->
                    N = State#state.number + 1,
                    Id = {State#state.self, N},
                    Begun = State#state{
                        phase = {optimising, Id, C, O},
                        number = N,
                        begun = State#state.begun + 1
                    },
                    {Begun, [wait(State), {tell, C, {optimise, Id, O, Near, Far}}]};
                false ->
                    {State, []}
            end;
        _ ->
            {State, []}
    end;
begin_exchange(_Views, State) ->
    {State, []}.

%% @doc Takes a message of the same module on another node.
-spec message(node(), message(), atoll_hyparview_views:views(), atoll_protocol:now_ms(), state()) ->
    {state(), [deed()]}.
message(From, {ping, N}, _Views, _Now, State) ->
    {State, [{tell, From, {pong, N}}]};
message(From, {pong, N}, Views, Now, #state{pings = Pings} = State0) ->
    case lists:keyfind(From, 1, Pings) of
        {From, N, Sent, Before} ->
            State = State0#state{pings = lists:keydelete(From, 1, Pings)},
            case Before of
                none -> ping(From, Now - Sent, Now, State);
                _ -> measured(From, min(Before, Now - Sent), Views, State)
            end;
        _ ->
            {State0, []}
    end;
%% c
message(I, {optimise, Id, O, IC, IO}, Views, _Now, #state{phase = idle} = State) ->
    case {atoll_hyparview_views:is_active(I, Views), to_give_up(Views, [O], State)} of
        {false, {CD, D}} ->
            case is_shorter(IC, CD, State) of
                true ->
                    Limit = IO + CD - IC,
                    Deeds = [wait(State), {tell, D, {replace, Id, I, O, Limit}}],
                    {State#state{phase = {replacing, Id, D, I}}, Deeds};
                false ->
                    {State, [{tell, I, {optimised, Id, false}}]}
            end;
        _ ->
            {State, [{tell, I, {optimised, Id, false}}]}
    end;
message(I, {optimise, Id, _O, _IC, _IO}, _Views, _Now, State) ->
    {State, [{tell, I, {optimised, Id, false}}]};
%% d
message(C, {replace, Id, I, O, Limit}, Views, Now, #state{phase = idle} = State0) ->
    Possible =
        atoll_hyparview_views:is_active(C, Views) andalso
            not atoll_hyparview_views:is_active(O, Views) andalso
            O =/= State0#state.self,
    case Possible of
        true ->
            {State, Ping} = ping(O, none, Now, State0),
            Deeds = [wait(State) | Ping],
            {State#state{phase = {measuring, Id, O, C, I, Limit}}, Deeds};
        false ->
            {State0, [{tell, C, {replaced, Id, false}}]}
    end;
message(C, {replace, Id, _I, _O, _Limit}, _Views, _Now, State) ->
    {State, [{tell, C, {replaced, Id, false}}]};
%% o
message(D, {switch, Id, I, DO}, Views, _Now, State) ->
    Possible =
        State#state.phase =:= idle andalso
            atoll_hyparview_views:is_active(I, Views) andalso
            not atoll_hyparview_views:is_active(D, Views),
    case Possible of
        true ->
            Deeds = [{drop, I}, {tell, D, {switched, Id, true}}, {adopt, D}],
            {cost(D, DO, State#state{done = State#state.done + 1}), Deeds};
        false ->
            {State, [{tell, D, {switched, Id, false}}]}
    end;
message(O, {switched, Id, true}, _Views, _Now, #state{phase = {switching, Id, O, C}} = State) ->
    {finished(State), [
        wait_no_longer, {tell, C, {replaced, Id, true}}, {drop, C}, {adopt, O}
    ]};
message(O, {switched, Id, false}, _Views, _Now, #state{phase = {switching, Id, O, C}} = State) ->
    {State#state{phase = idle}, [wait_no_longer, {tell, C, {replaced, Id, false}}]};
message(D, {replaced, Id, true}, _Views, _Now, #state{phase = {replacing, Id, D, I}} = State) ->
    {finished(State), [
        wait_no_longer, {drop, D}, {tell, I, {optimised, Id, true}}, {adopt, I}
    ]};
message(D, {replaced, Id, false}, _Views, _Now, #state{phase = {replacing, Id, D, I}} = State) ->
    {State#state{phase = idle}, [wait_no_longer, {tell, I, {optimised, Id, false}}]};
message(C, {optimised, Id, true}, Views, _Now, #state{phase = {optimising, Id, C, O}} = State) ->
    %% Mostly o has told us already.
    Drop = [{drop, O} || atoll_hyparview_views:is_active(O, Views)],
    {finished(State), [wait_no_longer | Drop ++ [{adopt, C}]]};
message(C, {optimised, Id, false}, _Views, _Now, #state{phase = {optimising, Id, C, _O}} = State) ->
    %% Others have their turn before it is measured, and asked, again.
    {forget(C, State#state{phase = idle}), [wait_no_longer]};
%% Answers that came too late. Who said yes takes us for a neighbour, but for d, which
%% has given us up.
message(From, {Answer, _Id, true}, Views, _Now, State) when
    Answer =:= switched; Answer =:= optimised
->
    case atoll_hyparview_views:is_active(From, Views) of
        true -> {State, []};
        false -> {State, [{drop, From}]}
    end;
message(_From, {Answer, _Id, _}, _Views, _Now, State) when
    Answer =:= switched; Answer =:= replaced; Answer =:= optimised
->
    {State, []}.

%% @doc This node cannot be reached.
-spec gone(node(), state()) -> state().
gone(Node, #state{costs = Costs, pings = Pings} = State) ->
    %% An exchange that it had a part in runs into its timeout.
    case lists:keymember(Node, 1, Costs) orelse lists:keymember(Node, 1, Pings) of
        true -> (forget(Node, State))#state{pings = lists:keydelete(Node, 1, Pings)};
        false -> State
    end.

%% @doc The time to wait is over. Whom we asked to be our neighbour may have said
%% yes.
-spec expired(state()) -> {state(), [deed()]}.
expired(#state{phase = idle} = State) ->
    {State, []};
expired(#state{phase = Phase, expired = Expired} = State0) ->
    State = State0#state{phase = idle, expired = Expired + 1},
    case Phase of
        {optimising, _Id, C, _O} -> {forget(C, State), [{drop, C}]};
        {replacing, Id, _D, I} -> {State, [{tell, I, {optimised, Id, false}}]};
        {measuring, Id, _O, C, _I, _Limit} -> {State, [{tell, C, {replaced, Id, false}}]};
        {switching, Id, O, C} -> {State, [{drop, O}, {tell, C, {replaced, Id, false}}]}
    end.

%% Measuring

ping(Node, Before, Now, #state{pings = Pings, number = Number} = State) ->
    case lists:keymember(Node, 1, Pings) of
        true ->
            {State, []};
        false when length(Pings) >= ?PINGS_MAX ->
            {State#state{pings_dropped = State#state.pings_dropped + 1}, []};
        false ->
            N = Number + 1,
            {State#state{pings = [{Node, N, Now, Before} | Pings], number = N}, [
                {tell, Node, {ping, N}}
            ]}
    end.

measured(O, DO, Views, #state{phase = {measuring, Id, O, C, I, Limit}} = State0) ->
    State = cost(O, DO, State0),
    Agreed =
        is_shorter(DO, Limit, State) andalso
            atoll_hyparview_views:is_active(C, Views) andalso
            not atoll_hyparview_views:is_active(O, Views),
    case Agreed of
        true ->
            {State#state{phase = {switching, Id, O, C}}, [{tell, O, {switch, Id, I, DO}}]};
        false ->
            {State#state{phase = idle}, [wait_no_longer, {tell, C, {replaced, Id, false}}]}
    end;
measured(Node, Cost, _Views, State) ->
    {cost(Node, Cost, State), []}.

cost(Node, Cost, #state{costs = Costs} = State) ->
    {Others, Dropped} = at_most(?COSTS_MAX - 1, lists:keydelete(Node, 1, Costs)),
    State#state{costs = [{Node, Cost} | Others], costs_dropped = State#state.costs_dropped + Dropped}.

forget(Node, #state{costs = Costs} = State) ->
    State#state{costs = lists:keydelete(Node, 1, Costs)}.

%% Choosing

%% The farthest neighbour that is not kept, and not one of these.
to_give_up(Views, But, State) ->
    case ranked(Views, State) of
        {ok, Ranked} ->
            case [Neighbour || {_, Node} = Neighbour <- Ranked, not lists:member(Node, But)] of
                [Neighbour | _] -> Neighbour;
                [] -> none
            end;
        unknown ->
            none
    end.

%% The neighbours that are not kept, farthest first, if there is no room for more and
%% all are measured.
ranked(Views, #state{costs = Costs, options = #{xbot_unbiased := Unbiased}}) ->
    Active = atoll_hyparview_views:active(Views),
    Known = [{Cost, Node} || Node <- Active, {_, Cost} <- [lists:keyfind(Node, 1, Costs)]],
    case length(Known) =:= length(Active) andalso atoll_hyparview_views:room(Views) =:= 0 of
        true ->
            Ranked = lists:reverse(lists:sort(Known)),
            {ok, lists:nthtail(min(Unbiased, length(Ranked)), Ranked)};
        false ->
            unknown
    end.

%% By so much that it is worth a change of links, and no chance of measuring.
is_shorter(Cost, Than, #state{options = #{xbot_gain_ms := Gain}}) ->
    Than - Cost >= Gain.

wait(#state{options = #{xbot_timeout_ms := Ms}}) ->
    {wait, Ms}.

finished(#state{done = Done} = State) ->
    State#state{phase = idle, done = Done + 1}.
