%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc One node's end of a session with one peer: what is said arrives once and in order, over a
%% connection that keeps the order but may drop messages. For protocols whose peers hold what they
%% were told, as that of the names. Those that say what may be said twice, as the groups' locks,
%% which are asked for again while they are wanted, need none.
%%
%% What is said is gathered into numbered batches; a batch is said again until it is
%% acknowledged, and an acknowledgement rides on whatever goes the other way. So is
%% known whether the peer is silent: nothing acknowledged for too long. Silence ends nothing:
%% the first batch is said again until the peer acknowledges it, and then the stream goes on.
%%
%% A session belongs to one connection and to one life of each end's process.
%% Each end gives its stream an id, unique for ever, and says whose stream it
%% answers: an acknowledgement of another stream means nothing. When the peer's stream is a
%% new one, what it said before is void ({@link take/3} says `reset'); when what the
%% peer lacks of this end's stream cannot be said again, that begins anew too (`restart').
%% It does so only then, so that two ends that begin anew at once do not chase each other.
-module(atoll_session).

-export([new/3, push/2, flush/2, take/3, tick/2, excuse/2, begin_anew/3, allow/1, backlog/1]).
-export([is_quiet/1, is_due/1, is_silent/1, has_spoken/1, mark/1]).

-export_type([session/0, id/0, wire/0, limits/0, what/0, mark/0]).

-type id() :: {Incarnation :: integer(), Number :: pos_integer()}.

-type wire() ::
    {b, From :: id(), To :: id() | none, Seq :: non_neg_integer(), Ack :: non_neg_integer(), [
        Item :: term()
    ]}.
%% Seq 0: an acknowledgement alone.

-type limits() :: #{
    %% Items in one batch, batches that are not acknowledged yet.
    batch := pos_integer(),
    window := pos_integer(),
    %% After how long a batch is said again; after how long a peer is silent.
    resend_ms := pos_integer(),
    answer_ms := pos_integer(),
    _ => _
}.

-opaque mark() :: {Mine :: id(), Theirs :: none | id(), Taken :: pos_integer(), Acked :: non_neg_integer()}.

-type what() ::
    %% The peer's stream goes on / is a new one / and this one is too.
    same
    | reset
    | restart.

-record(session, {
    mine :: id(),
    theirs = none :: none | id(),
    %% Whether something that the peer said before this stream began is still held for true.
    holds = false :: boolean(),
    limits :: limits(),
    %% The number of the next batch, and of the last that was acknowledged.
    next = 1 :: pos_integer(),
    acked = 0 :: non_neg_integer(),
    %% Not acknowledged, oldest first; and not in a batch yet.
    sent = [] :: [{pos_integer(), [term()]}],
    waiting = queue:new() :: queue:queue(term()),
    count = 0 :: non_neg_integer(),
    %% How many may wait without being held against the peer.
    allowed = 0 :: non_neg_integer(),
    %% When the peer last acknowledged something new (or was last asked to, after
    %% it had acknowledged all); when batches were last said.
    progress :: atoll_protocol:now_ms(),
    said :: atoll_protocol:now_ms(),
    silent = false :: boolean(),
    %% The batch that has to come next; batches taken since the last acknowledgement.
    expected = 1 :: pos_integer(),
    owed = 0 :: non_neg_integer()
}).

-opaque session() :: #session{}.

%% @doc The session over a new connection.
-spec new(id(), limits(), atoll_protocol:now_ms()) -> session().
new(Id, Limits, Now) ->
    #session{mine = Id, limits = Limits, progress = Now, said = Now}.

%% @doc One more thing to say.
-spec push(term(), session()) -> session().
push(Item, #session{waiting = Waiting, count = Count} = Session) ->
    Session#session{waiting = queue:in(Item, Waiting), count = Count + 1}.

%% @doc What waits now is this end's doing: all it has to say to a new member.
-spec allow(session()) -> session().
allow(#session{count = Count, allowed = Allowed} = Session) ->
    Session#session{allowed = max(Count, Allowed)}.

%% @doc How much more waits to be said because the peer is slow.
-spec backlog(session()) -> non_neg_integer().
backlog(#session{count = Count, allowed = Allowed}) -> max(0, Count - Allowed).

%% @doc What can be sent now.
-spec flush(atoll_protocol:now_ms(), session()) -> {[wire()], session()}.
flush(Now, #session{limits = #{window := Window}, owed = Owed} = Session) ->
    case batches(Now, [], Session) of
        {[], Same} when 2 * Owed >= Window -> acknowledge(Same);
        Sent -> Sent
    end.

batches(_Now, Wires, #session{count = 0} = Session) ->
    {lists:reverse(Wires), Session};
batches(_Now, Wires, #session{sent = Sent, limits = #{window := Window}} = Session) when
    length(Sent) >= Window
->
    {lists:reverse(Wires), Session};
batches(Now, Wires, #session{sent = Sent, next = Seq, progress = Progress} = Session0) ->
    #session{limits = #{batch := Max}, count = Count, waiting = Waiting} = Session0,
    N = min(Max, Count),
    {Now1, Later} = queue:split(N, Waiting),
    Items = queue:to_list(Now1),
    Since =
        case Sent of
            [] -> Now;
            _ -> Progress
        end,
    Session = Session0#session{
        sent = Sent ++ [{Seq, Items}],
        next = Seq + 1,
        waiting = Later,
        count = Count - N,
        progress = Since,
        said = Now,
        owed = 0
    },
    batches(Now, [wire(Seq, Items, Session) | Wires], Session).

acknowledge(Session) ->
    {[wire(0, [], Session)], Session#session{owed = 0}}.

wire(Seq, Items, #session{mine = Mine, theirs = Theirs, expected = Expected}) ->
    {b, Mine, Theirs, Seq, Expected - 1, Items}.

%% @doc Takes what came from the peer: what it says, in order, each thing once. The
%% id is for this end's stream, should it have to begin anew.
-spec take(wire(), {id(), atoll_protocol:now_ms()}, session()) ->
    {what(), [term()], session()}.
take({b, From, To, Seq, Ack, Items}, {_, Now}, #session{theirs = From} = Session) ->
    next(Seq, Items, acked(To, Ack, Now, Session), same);
take({b, From, _To, _Seq, _Ack, _Items}, _Fresh, #session{theirs = Theirs} = Session) when Theirs =/= none, From < Theirs ->
    %% An earlier life of the peer's process: over several lanes it may be overtaken. On one
    %% connection, so in one runtime, a later life has a larger id.
    {same, [], Session};
take({b, From, To, 1, Ack, Items}, {Id, Now}, #session{theirs = Before} = Session) ->
    #session{mine = Mine, acked = Acked, limits = Limits, holds = Holds} = Session,
    %% What an earlier life of the peer has acknowledged cannot be said again.
    IsLost =
        case To of
            Mine -> Ack < Acked;
            _ -> Acked > 0
        end,
    case {Before, IsLost} of
        {none, _} ->
            What =
                case Holds of
                    true -> reset;
                    false -> same
                end,
            next(1, Items, acked(To, Ack, Now, Session#session{theirs = From, holds = false}), What);
        {_, false} ->
            New = Session#session{theirs = From, expected = 1},
            next(1, Items, acked(To, Ack, Now, New), reset);
        {_, true} ->
            next(1, Items, (new(Id, Limits, Now))#session{theirs = From}, restart)
    end;
take({b, _From, _To, _Seq, _Ack, _Items}, _Fresh, Session) ->
    %% The beginning of that stream was lost, and will be said again.
    {same, [], Session}.

next(Seq, Items, #session{expected = Seq, owed = Owed} = Session, What) ->
    {What, Items, Session#session{expected = Seq + 1, owed = Owed + 1}};
next(0, [], Session, What) ->
    {What, [], Session};
next(_Other, _Items, #session{owed = Owed} = Session, What) ->
    {What, [], Session#session{owed = Owed + 1}}.

acked(Mine, Ack, Now, #session{mine = Mine, acked = Acked, sent = Sent} = Session) when Ack > Acked ->
    Left = lists:dropwhile(fun({Seq, _}) -> Seq =< Ack end, Sent),
    Session#session{acked = Ack, sent = Left, progress = Now, silent = false};
acked(_NothingNew, _Ack, _Now, Session) ->
    Session.

%% @doc Some time has passed: what has to be said again or acknowledged, and whether
%% the peer was silent for too long, which is said once in each `answer_ms'.
-spec tick(atoll_protocol:now_ms(), session()) -> {ok | silent, [wire()], session()}.
tick(Now, #session{sent = Sent, progress = Progress, limits = #{answer_ms := AnswerMs}} = Session) ->
    case Sent =/= [] andalso Now - Progress >= AnswerMs of
        true -> say_again(silent, Now, Session#session{progress = Now, silent = true});
        false -> say_again(ok, Now, Session)
    end.

say_again(Verdict, Now, #session{sent = [_ | _] = Sent, said = Said, limits = #{resend_ms := Ms}} = Session) when
    Now - Said >= Ms
->
    Wires = [wire(Seq, Items, Session) || {Seq, Items} <- again(Sent, Session)],
    {Verdict, Wires, Session#session{said = Now, owed = 0}};
say_again(Verdict, _Now, #session{owed = 0} = Session) ->
    {Verdict, [], Session};
say_again(Verdict, _Now, Session) ->
    {Wires, Acknowledged} = acknowledge(Session),
    {Verdict, Wires, Acknowledged}.

%% One that stands still for long must not find everything many times when it goes on.
again([First | _], #session{silent = true}) -> [First];
again(Sent, _Session) -> Sent.

%% @doc It was this node that did nothing for a while: the peer is not to blame.
-spec excuse(atoll_protocol:now_ms(), session()) -> session().
excuse(Now, Session) -> Session#session{progress = Now}.

%% @doc Whether nothing has to be said, again or at all.
-spec is_quiet(session()) -> boolean().
is_quiet(#session{sent = Sent, owed = Owed, count = Count}) ->
    Sent =:= [] andalso Owed =:= 0 andalso Count =:= 0.

%% @doc This end's stream begins anew: what has not arrived is given up. So does the peer's when it
%% hears of that; what it said before is held for true until then.
-spec begin_anew(id(), atoll_protocol:now_ms(), session()) -> session().
begin_anew(Id, Now, #session{limits = Limits, silent = Silent}) ->
    (new(Id, Limits, Now))#session{holds = true, silent = Silent}.

%% @doc Whether the peer has acknowledged nothing since it was found silent.
-spec is_silent(session()) -> boolean().
is_silent(#session{silent = Silent}) -> Silent.

%% @doc Changes with all that comes from the peer and is new.
-spec mark(session()) -> mark().
mark(#session{mine = Mine, theirs = Theirs, expected = Expected, acked = Acked}) -> {Mine, Theirs, Expected, Acked}.

%% @doc Whether the peer has said anything.
-spec has_spoken(session()) -> boolean().
has_spoken(#session{theirs = Theirs, holds = Holds}) -> Theirs =/= none orelse Holds.

%% @doc Whether something can be sent, or has to be acknowledged without delay.
-spec is_due(session()) -> boolean().
is_due(#session{count = Count, owed = Owed, limits = #{window := Window}}) ->
    Count > 0 orelse 2 * Owed >= Window.
