%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc One handler of broadcasts ({@link atoll_handler}) on one node, as a pure protocol: it merges
%% what it is told, and compares its state with that of the same handler on a neighbour.
%%
%% Comparing. A node sends a neighbour a hash of its digest. If the neighbour has the same, it says
%% so, and that is all. If not it sends its digest; the node answers with its own, and with what
%% the neighbour lacks, and the neighbour with what the node lacks: in pieces of a bounded size, of
%% which the next is sent when it is asked for. So one comparison makes both equal. The hash is
%% salted anew each time: two states whose hashes are equal by chance are told apart by the next.
%%
%% A node compares itself with each neighbour that comes, one at a time, with one at random
%% each `exchange_ms', and soon after something was missed; where that one does not answer, with
%% another. When a comparison has brought something
%% new, it goes on to some other neighbours, so that what one side of a healed partition has
%% runs through the other one. A node that is being told what it lacks does not let others
%% tell it the same at the same time: it says `later', and asks them when it is done.
%%
%% The handler's callbacks are called here. As far as they are pure this module is.
%%
%% Promised: as long as handlers are linked, by neighbours that have the handler too, and merging
%% hangs on no order ({@link atoll_handler}), all of them come to the same state when nothing new
%% is said. Nothing waits for a neighbour without a handler, or for one that does not answer, longer
%% than `answer_ms'. At most `gives_max' neighbours are told in pieces at a time.
%%
%% A digest travels whole. One that is larger than `digest_bytes' does not: the node sends that of
%% `init/1', as if it had nothing, and so gets all of the neighbour's values, in pieces.
%%
%% Not promised: a bound on a single value, nor that a digest is made quickly.
-module(atoll_handler_core).

-behaviour(atoll_protocol).

-export([options/0, init/2, handle/3, state/1, summary/1]).

-export_type([config/0, message/0, notice/0, state/0]).

-type config() :: #{
    self := node(),
    seed := integer(),
    %% The behaviour atoll_handler, and what its init/1 is given.
    module := module(),
    args := term(),
    options := atoll_options:options()
}.

-type said() :: {Id :: term(), Value :: term()}.

-type message() ::
    %% Is your digest, hashed with this, the same as mine?
    {compare, Salt :: pos_integer(), Hash :: non_neg_integer()}
    | same
    %% I shall ask you.
    | later
    %% This is my digest; and send me yours.
    | {digest, Digest :: term(), Answer :: boolean()}
    %% You lack these; and ask for more.
    | {piece, [said()], more | last}
    | more.

-type notice() ::
    %% It was merged and was not stale.
    {new, Id :: term(), Value :: term()}.

-record(state, {
    self :: node(),
    module :: module(),
    %% The handler's own state.
    handler :: term(),
    %% The digest of the state that it began with, which has no value.
    nothing :: term(),
    options :: atoll_options:options(),
    up = [] :: [node()],
    %% The neighbours to compare with, in this order.
    unmet = [] :: [node()],
    %% Those among the neighbours that have not answered since another one did, or since the last
    %% interval.
    silent = [] :: [node()],
    %% With whom a comparison is under way, of which this node has not got all.
    busy = none :: none | node(),
    %% Whether the timer of the next one runs.
    soon = false :: boolean(),
    %% What others are still to be told, and when each asked last.
    giving = #{} :: #{node() => {AtMs :: integer(), [said(), ...]}},
    %% Whether a comparison has brought something that other neighbours may lack.
    news = false :: boolean(),
    counts :: #{atom() => non_neg_integer()},
    rand :: rand:state()
}).

-opaque state() :: #state{}.

%% The longest pause before a comparison, so that neighbours do not go in step.
-define(PAUSE_MS, 200).
%% With how many others a node compares itself when it has got something new.
-define(SPREAD, 4).
-define(HASHES, (1 bsl 32)).

%% @doc The options with their defaults; times are in milliseconds.
-spec options() -> atoll_options:known().
options() ->
    #{
        %% From one comparison to the next, where nothing else asks for one; a quarter more or less.
        exchange_ms => {pos_integer, 10000},
        %% How long a neighbour may take to answer.
        answer_ms => {pos_integer, 2000},
        %% Values in one piece, and their bytes.
        piece_max => {pos_integer, 100},
        piece_bytes => {pos_integer, 65536},
        %% The largest digest that is sent.
        digest_bytes => {pos_integer, 1048576},
        %% How many neighbours are told at a time.
        gives_max => {pos_integer, 16},
        %% How many broadcasts may wait for the handler's process.
        queue_max => {pos_integer, 1000}
    }.

%% @doc The handler without neighbours, its options complete.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, seed := Seed, module := Module, args := Args, options := Given}, _Now) ->
    {ok, Options} = atoll_options:complete(?MODULE, Given),
    Counts = [new, stale, dropped, compared, unanswered, exchanged, large, given, got, refused],
    Handler = Module:init(Args),
    exchange_timer(#state{
        self = Self,
        module = Module,
        handler = Handler,
        nothing = Module:digest(Handler),
        options = Options,
        counts = maps:from_list([{Count, 0} || Count <- Counts]),
        rand = rand:seed_s(exsss, Seed)
    }).

%% @doc Takes one event. `up' and `down' are of neighbours. Casts are `{told, Id, Value}', a broadcast,
%% and `{missed, N}', that some are not to be had, N of them because the handler was slow. The call `{put, Id, Value}' is answered with `new' or
%% `stale', and `status' with the summary.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({cast, {told, Id, Value}}, _Now, State0) ->
    {_, State, Effects} = merge({Id, Value}, State0),
    {State, Effects};
handle({call, From, {put, Id, Value}}, _Now, State0) ->
    {Outcome, State, Effects} = merge({Id, Value}, State0),
    {State, [{reply, From, Outcome} | Effects]};
handle({call, From, status}, _Now, State) ->
    {State, [{reply, From, summary(State)}]};
handle({cast, {missed, Dropped}}, _Now, State) ->
    go_on(meet_anybody(count(dropped, Dropped, State)));
handle({up, Node}, _Now, #state{up = Up} = State) ->
    case lists:member(Node, Up) of
        true -> {State, []};
        false -> go_on(meet(Node, State#state{up = Up ++ [Node]}))
    end;
handle({down, Node, _Why}, _Now, #state{up = Up, giving = Giving} = State) ->
    done(Node, met(Node, State#state{up = lists:delete(Node, Up), giving = maps:remove(Node, Giving)}));
handle({timeout, next}, _Now, #state{unmet = [Node | _], busy = none} = State) ->
    compare(Node, State#state{soon = false});
handle({timeout, next}, _Now, State) ->
    {State#state{soon = false}, []};
handle({timeout, answer}, _Now, #state{busy = Busy, silent = Silent} = State) ->
    go_on(meet_anybody(count(unanswered, 1, State#state{busy = none, silent = [Busy | Silent]})));
handle({timeout, exchange}, Now, State0) ->
    {State1, Timer} = exchange_timer(spread([], forget(Now, State0#state{silent = []}))),
    {State, Effects} = go_on(meet_anybody(State1)),
    {State, Timer ++ Effects};
handle({message, From, {compare, Salt, Hash}}, _Now, State) ->
    compared(From, Salt, Hash, State);
handle({message, From, Answer}, _Now, State) when Answer =:= same; Answer =:= later ->
    done(From, State);
handle({message, From, {digest, Theirs, Answer}}, Now, #state{module = Module, handler = Handler} = State0) ->
    {State1, Timer} = goes_on(From, Answer, count(exchanged, 1, State0)),
    {State2, Answers} =
        case Answer of
            true -> tell_digest(From, false, State1);
            false -> {State1, []}
        end,
    {State, Effects} = give(From, Module:since(Theirs, Handler), Now, State2),
    {State, Answers ++ Effects ++ Timer};
handle({message, From, {piece, Piece, Rest}}, _Now, State) ->
    got(From, Piece, Rest, State);
handle({message, From, more}, Now, #state{giving = Giving} = State) ->
    case maps:take(From, Giving) of
        {{_, Left}, Others} -> give(From, Left, Now, State#state{giving = Others});
        error -> {State, []}
    end.

%% @doc The handler's own state.
-spec state(state()) -> term().
state(#state{handler = Handler}) -> Handler.

%% @doc For people: values that were `new' and `stale', and broadcasts that were `dropped' because
%% the handler was slow; comparisons that this node began (`compared'), those that came to no end
%% (`unanswered'), digests of others that differed (`exchanged'), and own ones that were too `large' to be sent; values `given' and `got' in
%% pieces, how many neighbours wait for more (`giving'), and how often one was `refused' because
%% too many did.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{counts = Counts, up = Up, giving = Giving}) ->
    Counts#{neighbours => length(Up), giving => map_size(Giving)}.

%% Merging

merge({Id, Value}, #state{module = Module, handler = Handler0} = State) ->
    case Module:merge(Id, Value, Handler0) of
        {new, Handler} -> {new, count(new, 1, State#state{handler = Handler}), [{notify, {new, Id, Value}}]};
        {stale, Handler} -> {stale, count(stale, 1, State#state{handler = Handler}), []}
    end.

%% Whom to compare with

meet(Node, #state{unmet = Unmet} = State) ->
    case lists:member(Node, Unmet) of
        true -> State;
        false -> State#state{unmet = Unmet ++ [Node]}
    end.

met(Node, #state{unmet = Unmet} = State) ->
    State#state{unmet = lists:delete(Node, Unmet)}.

meet_anybody(#state{up = Up, silent = Silent, unmet = [], rand = Rand0} = State) ->
    {Nodes, Rand} = atoll_random:sample(1, Up -- Silent, Rand0),
    State#state{unmet = Nodes, rand = Rand};
meet_anybody(State) ->
    State.

spread(_But, #state{news = false} = State) ->
    State;
spread(But, #state{up = Up, rand = Rand0} = State) ->
    {Nodes, Rand} = atoll_random:sample(?SPREAD, Up -- But, Rand0),
    lists:foldl(fun meet/2, State#state{news = false, rand = Rand}, Nodes).

go_on(#state{busy = none, soon = false, unmet = [_ | _], rand = Rand0} = State) ->
    {Ms, Rand} = rand:uniform_s(?PAUSE_MS, Rand0),
    {State#state{soon = true, rand = Rand}, [{timer, next, Ms}]};
go_on(State) ->
    {State, []}.

exchange_timer(#state{options = #{exchange_ms := Ms}, rand = Rand0} = State) ->
    {Extra, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    {State#state{rand = Rand}, [{timer, exchange, max(1, Ms - Ms div 4 + Extra - 1)}]}.

%% Comparing

compare(Node, #state{rand = Rand0, options = #{answer_ms := Ms}} = State0) ->
    {Salt, Rand} = rand:uniform_s(?HASHES, Rand0),
    State = count(compared, 1, met(Node, State0#state{busy = Node, rand = Rand})),
    {State, [{send, Node, {compare, Salt, hash(Salt, State)}}, {timer, answer, Ms}]}.

hash(Salt, #state{module = Module, handler = Handler}) ->
    erlang:phash2({Salt, Module:digest(Handler)}, ?HASHES).

%% Of two that ask each other at once the first by name is answered.
compared(From, _Salt, _Hash, #state{busy = From, self = Self} = State) when Self < From ->
    {State, []};
compared(From, Salt, Hash, #state{busy = Busy, up = Up} = State0) ->
    case Busy =/= none andalso Busy =/= From andalso lists:member(From, Up) of
        true ->
            {meet(From, State0), [{send, From, later}]};
        false ->
            State = met(From, State0),
            case hash(Salt, State) of
                Hash ->
                    {Done, Effects} = done(From, State),
                    {Done, [{send, From, same} | Effects]};
                _ ->
                    {Engaged, Timer} = goes_on(From, true, State),
                    {Told, Digest} = tell_digest(From, true, Engaged),
                    {Told, Digest ++ Timer}
            end
    end.

tell_digest(To, Answer, #state{module = Module, handler = Handler, nothing = Nothing, options = #{digest_bytes := Most}} = State) ->
    Digest = Module:digest(Handler),
    case erlang:external_size(Digest) =< Most of
        true -> {State, [{send, To, {digest, Digest, Answer}}]};
        false -> {count(large, 1, State), [{send, To, {digest, Nothing, Answer}}]}
    end.

done(Node, #state{busy = Node} = State0) ->
    {State, Effects} = go_on(State0#state{busy = none, silent = []}),
    {State, [{cancel, answer} | Effects]};
done(_Other, State) ->
    go_on(State).

%% Something is to come from it, of a comparison that began just now or before.
goes_on(Node, Begins, #state{busy = Busy, options = #{answer_ms := Ms}} = State) when
    Busy =:= Node; Busy =:= none, Begins
->
    {State#state{busy = Node}, [{timer, answer, Ms}]};
goes_on(_Other, _Begins, State) ->
    {State, []}.

%% Pieces

give(To, Lacks, Now, #state{giving = Giving, options = Options} = State) ->
    #{piece_max := Max, piece_bytes := Bytes, gives_max := Gives} = Options,
    case map_size(maps:remove(To, Giving)) < Gives of
        true ->
            {Piece, Left} = cut(Lacks, Max, Bytes, []),
            {Rest, Others} =
                case Left of
                    [] -> {last, maps:remove(To, Giving)};
                    _ -> {more, Giving#{To => {Now, Left}}}
                end,
            {count(given, length(Piece), State#state{giving = Others}), [{send, To, {piece, Piece, Rest}}]};
        false ->
            {count(refused, 1, State), []}
    end.

%% One at least, however large it is.
cut([Said | Left], Max, Bytes, Piece) when Max > 0 ->
    case Bytes - erlang:external_size(Said) of
        Less when Less < 0, Piece =/= [] -> {lists:reverse(Piece), [Said | Left]};
        Less -> cut(Left, Max - 1, Less, [Said | Piece])
    end;
cut(Left, _Max, _Bytes, Piece) ->
    {lists:reverse(Piece), Left}.

got(From, Piece, Rest, #state{news = News} = State0) ->
    {State1, Notices, IsNew} = lists:foldl(
        fun(Said, {S0, Acc, New}) ->
            {Outcome, S, Effects} = merge(Said, S0),
            {S, Effects ++ Acc, New orelse Outcome =:= new}
        end,
        {count(got, length(Piece), State0), [], News},
        Piece
    ),
    State2 = State1#state{news = IsNew},
    {State, Effects} =
        case Rest of
            more ->
                {State3, Timer} = goes_on(From, false, State2),
                {State3, [{send, From, more} | Timer]};
            last -> done(From, spread([From], State2))
        end,
    {State, lists:reverse(Notices) ++ Effects}.

%% Those who have asked for no more in time have given up.
forget(Now, #state{giving = Giving, options = #{answer_ms := Ms}} = State) ->
    State#state{giving = maps:filter(fun(_, {At, _}) -> Now - At =< Ms end, Giving)}.

count(Count, N, #state{counts = Counts} = State) ->
    #{Count := Before} = Counts,
    State#state{counts = Counts#{Count := Before + N}}.
