%% SPDX-License-Identifier: Apache-2.0
%% @doc A conversation of two clients: what its process decides. The process can be killed at any
%% moment; whoever is started in its place goes on from the row in the chat database.
%%
%% A client says its messages with the numbers 1, 2, 3, and so on. One is written to the database first,
%% then sent to the receiver, and the sender is told that it is accepted when the database says that
%% it has it. So if the receiver has a message, it is in the database, and what was accepted is
%% sent to the receiver until that says that it has it, whatever process dies in the meantime. The
%% receiver knows what it had by the number. A new client process says with `hello' up to which number it
%% has everything, and is sent the rest. A process in the place of another is answered when nothing of
%% the other is pending, and from when it has asked nothing more is taken from the other: a number has one text.
%%
%% A message can be lost only on the way to this process, when a connection or one of the two ends:
%% then both hear of it, or the client hears of the new process, and it says hello and then says again
%% what was not accepted. A gap in the numbers that is there again after a hello is a client's that was
%% told of more messages than the database has. Then the conversation ends with the reason `lost':
%% replication without acknowledgement allows that.
%%
%% A message that is refused (`full', where the receiver is away and as many are kept as may be, or
%% `too_long') keeps its number: what the client has said after it is dropped, until it has said that
%% one again, later or shorter.
%%
%% The conversation ends (`finish', `gone', or nobody said anything for long) when all that was accepted is
%% delivered, or its receiver will not come back. Until then it takes no message; a new `chat'
%% takes the end back, if the other has not left. First the rows of the clients lose it, then its own row
%% is removed, and then both are told: at each point a new process would do the rest.
%%
%% Whether the database has a message is told to the sender together with the receiver's
%% acknowledgement where that comes soon, which spares a message. Nothing is sent to a database twice
%% within the time that an answer takes, and there is one timer, which is set when there is something
%% to look after.
%%
%% It is long because each message, answer and loss may begin or end what is written, what is sent, and the end of the
%% conversation, and all of these look at both directions.
-module(im_chat_session_core).

-export([new/2, handle/3, is_current/2, info/1]).

-export_type([core/0, config/0, side/0, watched/0, event/0, effect/0, tag/0]).

-type client() :: binary().
-type ms() :: integer().
%% Monotonic time; only differences mean something.

-type side() :: 1 | 2.
%% The first or the second client of the session's name. A direction has the side of its sender.

-type config() :: #{
    session := {client(), client()},
    self := pid(),
    %% the incarnation that a new row gets; a later one is larger
    inc := pos_integer(),
    %% `again' goes on from the row, and ends if there is none
    mode := new | again,
    away_ms := pos_integer(),
    away_messages := pos_integer(),
    idle_ms := pos_integer(),
    max_body := pos_integer()
}.

-type event() ::
    %% a client process wants to have the conversation, or to have it again
    {ask, chat | open, client(), pid()}
    | {hello, client(), pid(), Received :: im_direction:seq()}
    | {say, client(), im_direction:seq(), Body :: binary(), Meta :: term(), pid()}
    | {received, client(), im_direction:seq()}
    | {finish, client()}
    %% the client has logged out, or was away for too long; told again until its row has no sessions
    | {gone, client(), finished | expired}
    %% a process that was watched is not there any more
    | {down, watched(), pid()}
    %% the answer to what was asked with this tag
    | {db, tag(), Reply :: term()}
    %% the main database of its shard is down
    | no_main
    | beat.

-type watched() :: side() | {asker, side()} | before.
%% Who is the client, or has asked in its place; and the process of the row.

-type tag() ::
    peek | open | {join, side()} | {leave, side()} | {finishing, boolean()} | delivered | remove
    | {side(), Life :: non_neg_integer(), im_direction:seq()}.

-type effect() ::
    {ask, chat | {client, client()}, tag(), Op :: tuple()}
    %% to a client that has said hello
    | {send, pid(), tuple()}
    %% to one that may not have a connection with this node yet
    | {tell, pid(), tuple()}
    %% who is the client from now on, in place of whoever was; one without a connection is watched when it
    %% has said hello
    | {watch, side(), pid() | none}
    %% who has asked in the place of the client, and may be one that was the client before and is not there any more
    | {watch, {asker, side()}, pid()}
    %% the process of the row is to end, if it is alive; `down' says that it has
    | {replace, pid()}
    | {kill, pid()}
    %% the event `beat' after so many milliseconds, and none before
    | {beat, ms()}
    %% the conversation is there, and both were told
    | up
    %% nothing is under way
    | rest
    | stop.

-record(side, {
    name :: client(),
    pid = away :: pid() | away | gone,
    %% it has said hello, and nobody has asked in its place
    ready = false :: boolean(),
    %% who has asked last, or is in the client's row: to be told of the conversation, or told
    asker = none :: none | {waits | told, pid()},
    %% who was the client or has asked, where another has said hello who has not asked
    instead = none :: none | away | gone | pid(),
    away_since = 0 :: ms(),
    %% why it goes, and until when it may still say that it has what was sent to it
    leaving = false :: false | {finished | expired, ms()},
    %% whether its row has the session: not yet, yes, not any more
    joined = no :: no | yes | left,
    %% something that it has said before another is missing: it was refused, or was lost before the last
    %% hello, or the one before
    gap = no :: no | refused | seen | again,
    %% of what it says
    direction :: im_direction:direction(),
    %% up to where it was told that its messages are accepted
    told = 0 :: im_direction:seq(),
    %% how often the database was given the pending ones, and when it is given them again
    life = 0 :: non_neg_integer(),
    due = 0 :: ms()
}).

-record(core, {
    session :: {client(), client()},
    config :: config(),
    inc :: pos_integer(),
    phase = looking :: looking | {replacing, pid()} | opening | joining | open | closing | removing | over,
    %% whether the row was made by this process
    fresh = false :: boolean(),
    %% a client wants it since this process has begun, whatever the row says
    wanted = false :: boolean(),
    finishing = false :: false | finished | idle | expired | lost | {failed, Reason :: term()},
    sides :: {#side{}, #side{}},
    %% what was asked and not answered: of whom, what, and when it is asked again
    asks = #{} :: #{tag() => {chat | {client, client()}, Op :: tuple(), ms()}},
    %% what the database was told of the deliveries in each direction
    trimmed = {0, 0} :: {im_direction:seq(), im_direction:seq()},
    %% when somebody has last said or received something
    last :: ms(),
    armed = infinity :: ms() | infinity,
    out = [] :: [effect()]
}).

-opaque core() :: #core{}.

%% A client may say so many without being told that one is accepted.
-define(UNACCEPTED, 64).
%% So many may be under way to a receiver.
-define(WINDOW, 128).
%% A sender whose receiver takes its time is told of so many at the latest.
-define(TELL, 16).
%% What was not answered for so long was lost.
-define(AGAIN_MS, 500).
%% Where the database said that it cannot just now.
-define(SOON_MS, 50).
-define(REPLACE_MS, 2000).
-define(LEAVE_MS, 2000).
%% The database hears of deliveries when nobody has said anything for so long.
-define(QUIET_MS, 1000).
%% A client's monitor says when it was away for too long. If that is lost, it is found out here.
-define(UNHEARD_MS, 60000).

%% @doc Begins with a look at the row.
-spec new(config(), ms()) -> {core(), [effect()]}.
new(#{session := {A, B} = Session, inc := Inc} = Config, Now) ->
    Side = fun(Name) -> #side{name = Name, away_since = Now, direction = im_direction:new(0, 0, [])} end,
    S = #core{session = Session, config = Config, inc = Inc, sides = {Side(A), Side(B)}, last = Now},
    flush(ask(chat, peek, {peek, Session}, Now, S)).

%% @doc What happens is answered by what is to be done, in this order.
-spec handle(event(), ms(), core()) -> {core(), [effect()]}.
handle(Event, Now, S) -> flush(event(Event, Now, S)).

flush(#core{out = Out} = S) -> {S#core{out = []}, lists:reverse(Out)}.

%% @doc Whether that is the incarnation of the conversation. What belongs to another is not for it.
-spec is_current(Inc :: integer(), core()) -> boolean().
is_current(Inc, #core{inc = Is}) -> Inc =:= Is.

%% @doc For people: in which phase it is, and of each side whether it is there and how far its messages are.
-spec info(core()) -> map().
info(#core{session = Session, inc = Inc, phase = Phase, finishing = Finishing, sides = {A, B}, asks = Asks}) ->
    #{session => Session, inc => Inc, phase => Phase, finishing => Finishing, sides => [about(A), about(B)], asks => maps:keys(Asks)}.

about(#side{name = Name, pid = Pid, direction = D}) ->
    #{client => Name, pid => Pid, taken => im_direction:taken(D), accepted => im_direction:accepted(D),
      delivered => im_direction:delivered(D)}.

%%% Messages

event({say, Client, Seq, Body, Meta, Pid}, Now, #core{phase = open, finishing = false, config = Config} = S) ->
    I = side_of(Client, S),
    case side(I, S) of
        #side{pid = Pid, ready = true} = Side when byte_size(Body) =< map_get(max_body, Config) ->
            said(I, Side, Seq, Body, Meta, Now, S);
        #side{pid = Pid, ready = true} = Side ->
            refuse(I, Side, Seq, too_long, S);
        #side{} ->
            S
    end;
event({received, Client, UpTo}, Now, #core{phase = open} = S) ->
    received(other(side_of(Client, S)), UpTo, Now, S);
event({db, _, {error, replaced}}, _, S) ->
    %% The one in its place does the rest.
    effect(stop, S#core{phase = over});
event({db, {I, Life, Seq}, Reply}, Now, #core{phase = open} = S) ->
    appended(I, Life, Seq, Reply, Now, S);
event({hello, Client, Pid, Received}, Now, #core{phase = open} = S) ->
    I = side_of(Client, S),
    case side(I, S) of
        #side{asker = {told, Pid}} -> hello(I, Pid, Received, Now, S);
        %% It may come late, from a process that has ended: the one in its place has said hello already, and goes on.
        #side{} = Side -> asked(I, Pid, effect({watch, {asker, I}, Pid}, put_side(I, Side#side{instead = instead(Pid, Side)}, S)))
    end;
%%% Who comes and goes
event({ask, _, _, _}, _, #core{phase = Phase} = S) when Phase =:= closing; Phase =:= removing; Phase =:= over ->
    %% It asks again, and is answered by the one after this.
    S;
event({ask, How, Client, Pid}, Now, S) ->
    I = side_of(Client, S),
    case {How, side(I, S)} of
        {chat, #side{pid = gone, joined = left} = Side} -> join_again(I, Side#side{asker = {waits, Pid}}, Now, S);
        %% It is answered when its row has lost the conversation, or by the one after this.
        {_, #side{pid = gone}} -> S;
        {chat, _} -> asked(I, Pid, reopen(I, Now, S#core{wanted = true}));
        {open, _} -> asked(I, Pid, S)
    end;
event({finish, _}, Now, #core{phase = open} = S) ->
    finish(finished, Now, S);
event({gone, Client, Why}, Now, #core{phase = open} = S) ->
    I = side_of(Client, S),
    case side(I, S) of
        #side{leaving = false} = Side ->
            finish(Why, Now, wake(Now + ?LEAVE_MS, Now, put_side(I, Side#side{leaving = {Why, Now + ?LEAVE_MS}}, S)));
        #side{} ->
            S
    end;
event({down, before, _}, Now, #core{phase = {replacing, _}} = S) ->
    open(Now, S);
event({down, before, _}, _, S) ->
    S;
event({down, {asker, I}, Pid}, _, S) ->
    case side(I, S) of
        #side{asker = {_, Pid}, instead = Is} when is_pid(Is) -> asked(I, Is, S);
        #side{} -> S
    end;
event({down, I, Pid}, Now, S) ->
    case side(I, S) of
        #side{pid = Pid} = Side -> away(I, Side, Now, S);
        #side{} -> S
    end;
%%% The databases
event({db, Tag, Reply}, Now, #core{asks = Asks} = S) ->
    case Asks of
        #{Tag := {Whom, Op, _}} when Reply =:= not_main ->
            wake(Now + ?SOON_MS, Now, S#core{asks = Asks#{Tag := {Whom, Op, Now + ?SOON_MS}}});
        #{Tag := {Whom, Op, _}} ->
            case not_now(Reply) of
                true -> S#core{asks = Asks#{Tag := {Whom, Op, Now + ?AGAIN_MS}}};
                false -> answered(Tag, Reply, Now, S#core{asks = maps:remove(Tag, Asks)})
            end;
        #{} ->
            S
    end;
%% What it had under way is lost, and the next one is there in a moment.
event(no_main, Now, #core{asks = Asks} = S) ->
    Soon = Now + ?SOON_MS,
    Sooner = maps:map(fun(_, {chat, Op, Due}) -> {chat, Op, min(Due, Soon)}; (_, Ask) -> Ask end, Asks),
    lists:foldl(fun(I, Acc) ->
        #side{due = Due} = Side = side(I, Acc),
        put_side(I, Side#side{due = min(Due, Soon)}, Acc)
    end, wake(Soon, Now, S#core{asks = Sooner}), [1, 2]);
event(beat, Now, S) ->
    beat(Now, S#core{armed = infinity});
%% What is said to a conversation that is not there yet, or is ending.
event({say, _, _, _, _, _}, _, S) -> S;
event({received, _, _}, _, S) -> S;
event({hello, _, _, _}, _, S) -> S;
event({finish, _}, _, S) -> S;
event({gone, _, _}, _, S) -> S.

not_now({error, overloaded}) -> true;
not_now({error, no_majority}) -> true;
not_now({error, unavailable}) -> true;
not_now({error, timeout}) -> true;
not_now(not_main) -> true;
not_now(_) -> false.

said(I, #side{direction = D} = Side, Seq, Body, Meta, Now, #core{config = #{away_messages := Most}} = S) ->
    case im_direction:take(Seq, Body, Meta, Most, D) of
        {ok, Taken} ->
            case im_direction:unaccepted(D) of
                Pending when Pending < ?UNACCEPTED -> taken(I, Pending, Side#side{direction = Taken, gap = no}, {Seq, Body, Meta}, Now, S);
                _ -> put_side(I, Side#side{gap = refused}, S)
            end;
        known ->
            Accepted = im_direction:accepted(D),
            case Seq =< Accepted of
                true -> put_side(I, Side#side{told = Accepted}, to(Side, accepted, Accepted, S));
                false -> S
            end;
        full ->
            refuse(I, Side, Seq, full, S);
        gap ->
            case Side#side.gap of
                no -> put_side(I, Side#side{gap = seen}, S);
                again -> lost(Now, S);
                _ -> S
            end
    end.

%% The time of what is pending counts from when the first of it was given to the database.
taken(I, 0, Side, Message, Now, S) -> append(I, Side#side{due = Now + ?AGAIN_MS}, Message, Now, S);
taken(I, _, Side, Message, Now, S) -> append(I, Side, Message, Now, S).

append(I, #side{name = Name, life = Life} = Side, {Seq, Body, Meta}, Now, #core{session = Session} = S0) ->
    #core{trimmed = Trimmed} = S = trim(put_side(I, Side, S0#core{last = Now})),
    wake(Now + ?AGAIN_MS, Now, effect({ask, chat, {I, Life, Seq}, {append, Session, owner(S), Name, Seq, Body, Meta, Trimmed}}, S)).

%% What is given up for who has left counts as delivered. The database hears so when it has the end, or the
%% next process would go on without it.
trim(#core{asks = #{{finishing, true} := _}} = S) -> S;
trim(#core{sides = {#side{direction = A}, #side{direction = B}}} = S) ->
    S#core{trimmed = {im_direction:delivered(A), im_direction:delivered(B)}}.

refuse(I, Side, Seq, Why, #core{session = Session, inc = Inc} = S) ->
    put_side(I, Side#side{gap = refused}, effect({send, Side#side.pid, {im, refused, Session, Inc, Seq, Why}}, S)).

appended(I, _, Seq, ok, Now, S) ->
    #side{direction = D} = Side = side(I, S),
    Accepted = Side#side{direction = im_direction:accept(Seq, D), due = Now + ?AGAIN_MS},
    sent_on(I, answer(I, tell_accepted(I, put_side(I, Accepted, S))));
appended(I, Life, _, {error, gap}, Now, S) ->
    case side(I, S) of
        #side{life = Life} = Side -> append_again(I, Side, Now, S);
        #side{} -> S
    end;
appended(_, _, _, {error, no_session}, Now, S) ->
    lost(Now, S);
appended(I, Life, _, _, Now, S) ->
    %% It is not the main one any more, or is full for now.
    case side(I, S) of
        #side{life = Life} = Side -> wake(Now + ?SOON_MS, Now, put_side(I, Side#side{due = Now + ?SOON_MS}, S));
        #side{} -> S
    end.

append_again(I, #side{direction = D, life = Life} = Side, Now, S) ->
    Again = Side#side{life = Life + 1, due = Now + ?AGAIN_MS},
    lists:foldl(fun(Message, Acc) -> append(I, side(I, Acc), Message, Now, Acc) end, put_side(I, Again, S), im_direction:pending(D)).

%% To the receiver, if it is there.
sent_on(I, S) ->
    #side{direction = D, name = From} = Side = side(I, S),
    case side(other(I), S) of
        #side{ready = true, pid = Pid} ->
            #core{session = Session, inc = Inc} = S,
            {Messages, Sent} = im_direction:send(?WINDOW, D),
            lists:foldl(fun({Seq, Body, Meta}, Acc) -> effect({send, Pid, {im, message, Session, Inc, From, Seq, Body, Meta}}, Acc) end,
                        put_side(I, Side#side{direction = Sent}, S), Messages);
        #side{} ->
            S
    end.

%% Now, if the receiver's word will not come soon.
tell_accepted(I, S) ->
    #side{direction = D, told = Told} = Side = side(I, S),
    case {im_direction:accepted(D), side(other(I), S)} of
        {Accepted, #side{ready = true}} when Accepted - Told < ?TELL -> S;
        {Accepted, _} -> told(I, Side, accepted, Accepted, S)
    end.

told(_, #side{told = Told}, accepted, UpTo, S) when UpTo =< Told -> S;
told(I, Side, What, UpTo, S) -> put_side(I, Side#side{told = UpTo}, to(Side, What, UpTo, S)).

received(I, UpTo, Now, S) ->
    #side{direction = D} = Side = side(I, S),
    case im_direction:deliver(UpTo, D) of
        D -> S;
        Delivered ->
            Next = told(I, Side#side{direction = Delivered}, delivered, UpTo, S#core{last = Now}),
            check(Now, sent_on(I, Next))
    end.

%%% The clients

%% Who asks in the place of another takes no word from it any more. It is told of the conversation when nothing
%% that the other has said is pending: the number of that would go to another text.
asked(I, Pid, S) ->
    case side(I, S) of
        #side{asker = {told, Pid}} -> tell_session(I, Pid, S);
        Side -> answer(I, put_side(I, Side#side{asker = {waits, Pid}, ready = false}, S))
    end.

instead(Pid, #side{asker = {_, Pid}, instead = Before}) -> Before;
instead(_, #side{asker = {_, Asker}}) -> Asker;
instead(_, #side{pid = Is}) -> Is.

answer(I, #core{phase = open} = S) ->
    case side(I, S) of
        #side{asker = {waits, Pid}, direction = D} = Side ->
            case im_direction:unaccepted(D) of
                0 -> tell_session(I, Pid, put_side(I, Side#side{asker = {told, Pid}}, S));
                _ -> S
            end;
        #side{} -> S
    end;
answer(_, S) -> S.

hello(I, Pid, Received, Now, S0) ->
    #side{pid = Before} = Side = side(I, S0),
    J = other(I),
    #side{direction = ToIt} = Other = side(J, S0),
    case im_direction:resume(Received, ToIt) of
        _ when Before =:= gone ->
            S0;
        unknown ->
            lost(Now, S0);
        {ok, Resumed} ->
            S1 = effect({watch, I, Pid}, S0),
            S2 = put_side(J, Other#side{direction = Resumed}, put_side(I, greeted(Side#side{pid = Pid, ready = true}), S1)),
            S3 = case Before of away -> presence(I, online, S2); _ -> S2 end,
            S4 = case im_direction:delivered(Resumed) > im_direction:delivered(ToIt) of
                     true -> told(J, side(J, S3), delivered, im_direction:delivered(Resumed), S3);
                     false -> S3
                 end,
            check(Now, sent_on(J, to(side(I, S4), delivered, im_direction:delivered(Side#side.direction), S4)))
    end.

%% On the way from it nothing that it has said before is missing.
greeted(#side{gap = seen} = Side) -> Side#side{gap = again};
greeted(#side{gap = refused} = Side) -> Side#side{gap = no};
greeted(Side) -> Side.

away(I, Side, Now, S) ->
    Left = put_side(I, Side#side{pid = away, ready = false, away_since = Now}, effect({watch, I, none}, S)),
    case S of
        #core{phase = open} -> check(Now, trimmed(Now, tell_accepted(other(I), presence(I, away, Left))));
        #core{} -> Left
    end.

presence(I, What, #core{session = Session} = S) ->
    case side(other(I), S) of
        #side{pid = Pid} when is_pid(Pid) -> effect({send, Pid, {im, presence, Session, (side(I, S))#side.name, What}}, S);
        #side{} -> S
    end.

to(_, _, 0, S) -> S;
to(#side{pid = Pid}, What, UpTo, #core{session = Session, inc = Inc} = S) when is_pid(Pid) ->
    effect({send, Pid, {im, What, Session, Inc, UpTo}}, S);
to(_, _, _, S) -> S.

tell_session(I, Pid, #core{session = Session, inc = Inc, config = #{self := Self}} = S) ->
    #side{direction = D} = side(I, S),
    Presence = case side(other(I), S) of #side{pid = Other} when is_pid(Other) -> online; #side{} -> away end,
    effect({tell, Pid, {im, session, Session, Inc, Self, im_direction:accepted(D), Presence}}, S).

%%% How it begins

answered(peek, {ok, #{pid := Pid}}, Now, #core{config = #{self := Self}} = S) when is_pid(Pid), Pid =/= Self ->
    wake(Now + ?REPLACE_MS, Now, effect({replace, Pid}, S#core{phase = {replacing, Pid}}));
answered(peek, none, _, #core{config = #{mode := again}} = S) ->
    over(S#core{finishing = expired});
answered(peek, _, Now, S) ->
    open(Now, S);
answered(open, none, _, S) ->
    %% The process before this one had it removed, and the database has just heard so.
    over(S#core{finishing = expired});
answered(open, {ok, #{inc := Inc, finishing := Finishing} = Row}, Now, #core{inc = New, sides = {A, B}} = S) ->
    {Of1, Of2} = directions(Row),
    Opened = S#core{phase = joining, inc = Inc, fresh = Inc =:= New, finishing = Finishing andalso finished,
                    trimmed = {im_direction:delivered(Of1), im_direction:delivered(Of2)},
                    sides = {A#side{direction = Of1}, B#side{direction = Of2}}},
    lists:foldl(fun(I, #core{session = Session} = Acc) ->
        #side{name = Name} = side(I, Acc),
        ask({client, Name}, {join, I}, {open_session, Name, Session}, Now, Acc)
    end, Opened, [1, 2]);
answered({join, I}, {ok, Pid}, Now, S) ->
    Joined = (side(I, S))#side{joined = yes, pid = Pid, away_since = Now},
    joined(Now, put_side(I, Joined, case is_pid(Pid) of true -> effect({watch, I, Pid}, S); false -> S end));
answered({join, I}, {error, Why}, Now, #core{fresh = true, finishing = false} = S) ->
    joined(Now, put_side(I, (side(I, S))#side{joined = left, pid = gone}, S#core{finishing = {failed, Why}}));
answered({join, I}, {error, _}, Now, S) ->
    %% It has logged out since.
    joined(Now, gone(I, (side(I, S))#side{joined = left}, S));
%%% How it ends
answered({leave, I}, _, Now, S) ->
    closing(Now, put_side(I, (side(I, S))#side{joined = left}, S));
answered(remove, _, _, S) ->
    over(S);
answered(_, _, _, S) ->
    S.

%% Who goes on from a row makes none: what it has asked may come when it is killed, and the next one has had the row removed.
open(Now, #core{session = Session, inc = Inc, config = #{self := Self, mode := Mode}} = S) ->
    New = case Mode of new -> Inc; again -> none end,
    ask(chat, open, {open, Session, Self, New}, Now, S#core{phase = opening}).

directions(#{ab := Of1, ba := Of2}) -> {direction(Of1), direction(Of2)}.

direction(#{accepted := Accepted, delivered := Delivered, kept := Kept}) -> im_direction:new(Accepted, Delivered, Kept).

joined(Now, #core{sides = {#side{joined = A}, #side{joined = B}}} = S) when A =/= no, B =/= no ->
    case S of
        #core{finishing = {failed, _}} ->
            effect(up, close(Now, S));
        #core{} ->
            Told = lists:foldl(fun(I, Acc) ->
                case side(I, Acc) of
                    #side{asker = none, pid = Pid} when is_pid(Pid) -> asked(I, Pid, Acc);
                    #side{} -> answer(I, Acc)
                end
            end, reopen(none, Now, S#core{phase = open, last = Now}), [1, 2]),
            check(Now, effect(up, arm_idle(Now, Told)))
    end;
joined(_, S) -> S.

%%% How it ends

finish(Why, Now, #core{finishing = false} = S) -> check(Now, mark(true, Now, S#core{finishing = Why, wanted = false}));
finish(_, Now, S) -> check(Now, S).

%% Who has a chat again while the end waits for somebody goes on with this one. Whoever is on the other side is
%% told, and may ask for the end again.
reopen(I, Now, #core{phase = open, wanted = true, finishing = finished, sides = {#side{leaving = false, pid = A}, #side{leaving = false, pid = B}}} = S)
  when A =/= gone, B =/= gone ->
    Open = mark(false, Now, S#core{finishing = false, last = Now}),
    lists:foldl(fun(J, Acc) ->
        case side(J, Acc) of
            #side{asker = {told, Pid}} when J =/= I -> tell_session(J, Pid, Acc);
            #side{} -> Acc
        end
    end, Open, [1, 2]);
reopen(_, _, S) -> S.

%% Who has left and chats again while the other has not got all of what it said. All are told again.
join_again(I, #side{name = Name} = Side, Now, #core{phase = open, session = Session} = S) ->
    case side(other(I), S) of
        #side{pid = gone} -> S;
        #side{asker = Asker} = Other ->
            Waits = Other#side{asker = case Asker of {_, Pid} -> {waits, Pid}; none -> none end},
            Joins = put_side(other(I), Waits, put_side(I, Side#side{pid = away, joined = no, leaving = false}, S)),
            ask({client, Name}, {join, I}, {open_session, Name, Session}, Now, Joins#core{phase = joining, wanted = true})
    end;
join_again(_, _, _, S) -> S.

%% Only the last word is said again if it was lost.
mark(Finishing, Now, #core{session = Session, asks = Asks} = S) ->
    ask(chat, {finishing, Finishing}, {finishing, Session, owner(S), Finishing}, Now, S#core{asks = maps:remove({finishing, not Finishing}, Asks)}).

%% Whether those who leave can go, and the conversation can end.
check(_, #core{phase = open, finishing = false} = S) -> S;
check(Now, #core{phase = open} = S) ->
    case lists:foldl(fun(I, Acc) -> leave(I, side(I, Acc), Now, Acc) end, S, [1, 2]) of
        #core{sides = {#side{direction = A}, #side{direction = B}}} = Left ->
            case im_direction:is_drained(A) andalso im_direction:is_drained(B) of
                true -> close(Now, Left);
                false -> Left
            end
    end;
check(_, S) -> S.

leave(I, #side{leaving = {Why, Deadline}, pid = Pid, name = Name} = Side, Now, S) when Pid =/= gone ->
    #side{direction = ToIt} = side(other(I), S),
    case not is_pid(Pid) orelse Now >= Deadline orelse im_direction:is_drained(ToIt) of
        true ->
            #core{session = Session} = Left = gone(I, Side, ended(Side, Why, S)),
            ask({client, Name}, {leave, I}, {close_session, Name, Session}, Now, Left);
        false -> S
    end;
leave(_, _, _, S) -> S.

gone(I, Side, S) ->
    #side{direction = ToIt} = Other = side(other(I), S),
    Finishing = case S of #core{finishing = false} -> finished; #core{finishing = Why} -> Why end,
    put_side(other(I), Other#side{direction = im_direction:forget(ToIt)},
             put_side(I, Side#side{pid = gone, ready = false}, effect({watch, I, none}, S#core{finishing = Finishing}))).

%% What the database does not have cannot be delivered.
lost(Now, S) -> close(Now, S#core{finishing = lost}).

close(Now, #core{session = Session} = S) ->
    closing(Now, lists:foldl(fun(I, Acc) ->
        case side(I, Acc) of
            #side{joined = yes, name = Name} -> ask({client, Name}, {leave, I}, {close_session, Name, Session}, Now, Acc);
            #side{} -> Acc
        end
    end, S#core{phase = closing}, [1, 2])).

closing(Now, #core{phase = closing, session = Session, sides = {#side{joined = left}, #side{joined = left}}} = S) ->
    ask(chat, remove, {remove, Session, owner(S)}, Now, S#core{phase = removing, asks = #{}});
closing(_, S) -> S.

over(#core{finishing = {failed, Why}} = S) ->
    Told = lists:foldl(fun(I, Acc) ->
        case {side(I, Acc), side(other(I), Acc)} of
            {#side{asker = {_, Pid}}, #side{name = To}} -> effect({tell, Pid, {im, chat_error, To, Why}}, Acc);
            _ -> Acc
        end
    end, S, [1, 2]),
    effect(stop, Told#core{phase = over});
over(#core{finishing = Why, sides = {A, B}} = S) ->
    effect(stop, ended(B, Why, ended(A, Why, S#core{phase = over}))).

ended(#side{pid = Is, asker = {_, Pid}}, Why, #core{session = Session, inc = Inc} = S) when Is =/= gone ->
    effect({tell, Pid, {im, ended, Session, Inc, Why}}, S);
ended(_, _, S) -> S.

%%% What is looked after by the time

beat(Now, #core{phase = {replacing, Pid}} = S) ->
    wake(Now + ?REPLACE_MS, Now, effect({kill, Pid}, S));
beat(Now, S) ->
    Asked = maps:fold(fun(Tag, {Whom, Op, Due}, Acc) when Due =< Now -> ask(Whom, Tag, Op, Now, Acc);
                         (_, {_, _, Due}, Acc) -> wake(Due, Now, Acc)
                      end, S, S#core.asks),
    case Asked of
        #core{phase = open} -> rest(Now, looked_after(Now, Asked));
        #core{} -> Asked
    end.

looked_after(Now, S) ->
    Said = lists:foldl(fun(I, Acc) -> again(I, unheard(I, Now, tell_all(I, Acc)), Now) end, S, [1, 2]),
    case check(Now, Said) of
        #core{phase = open, finishing = false, last = Last, config = #{idle_ms := Idle}} = Open when Now - Last >= Idle ->
            case Open of
                #core{sides = {#side{direction = A}, #side{direction = B}}} ->
                    case im_direction:is_drained(A) andalso im_direction:is_drained(B) of
                        true -> finish(idle, Now, Open);
                        false -> Open
                    end
            end;
        #core{phase = open, last = Last} = Open when Now - Last >= ?QUIET_MS ->
            trimmed(Now, Open);
        Checked ->
            Checked
    end.

tell_all(I, S) ->
    #side{direction = D} = Side = side(I, S),
    told(I, Side, accepted, im_direction:accepted(D), S).

%% The database is given again what it has not acknowledged.
again(I, S, Now) ->
    #side{direction = D, due = Due} = Side = side(I, S),
    case im_direction:unaccepted(D) of
        0 -> S;
        _ when Due > Now -> wake(Due, Now, S);
        _ -> append_again(I, Side, Now, S)
    end.

unheard(I, Now, #core{config = #{away_ms := Away}} = S) ->
    case side(I, S) of
        #side{pid = away, leaving = false, away_since = Since} = Side when Now - Since >= Away + ?UNHEARD_MS ->
            finish(expired, Now, put_side(I, Side#side{leaving = {expired, Now}}, S));
        #side{} ->
            S
    end.

trimmed(Now, #core{session = Session, trimmed = Before} = S) ->
    case trim(S) of
        #core{trimmed = Before} -> S;
        #core{trimmed = Trimmed} = Next -> ask(chat, delivered, {delivered, Session, owner(S), Trimmed}, Now, Next)
    end.

%% Until when nothing is to be looked after: if nothing is under way, until it has been idle for long.
rest(Now, #core{phase = open, asks = Asks, sides = {A, B}} = S) ->
    case map_size(Asks) =:= 0 andalso is_told(A) andalso is_told(B) andalso is_trimmed(S) andalso A#side.leaving =:= false
         andalso B#side.leaving =:= false of
        true -> effect(rest, arm_idle(Now, S));
        false -> wake(Now + ?AGAIN_MS, Now, S)
    end;
rest(_, S) -> S.

is_told(#side{direction = D, told = Told}) ->
    im_direction:unaccepted(D) =:= 0 andalso Told >= im_direction:accepted(D).

is_trimmed(#core{trimmed = Trimmed} = S) ->
    (trim(S))#core.trimmed =:= Trimmed.

%% It may be idle already, with messages for somebody who is away.
arm_idle(Now, #core{last = Last, config = #{idle_ms := Idle}} = S) ->
    wake(max(Last + Idle, Now + ?AGAIN_MS), Now, S).

wake(At, _, #core{armed = Armed} = S) when At >= Armed -> S;
wake(At, Now, S) -> effect({beat, max(0, At - Now)}, S#core{armed = At}).

%%% Common

%% The database takes nothing from a process that was replaced.
owner(#core{inc = Inc, config = #{self := Self}}) -> {Inc, Self}.

ask(Whom, Tag, Op, Now, #core{asks = Asks} = S) ->
    wake(Now + ?AGAIN_MS, Now, effect({ask, Whom, Tag, Op}, S#core{asks = Asks#{Tag => {Whom, Op, Now + ?AGAIN_MS}}})).

effect(Effect, #core{out = Out} = S) -> S#core{out = [Effect | Out]}.

side(I, #core{sides = Sides}) -> element(I, Sides).

put_side(I, Side, #core{sides = Sides} = S) -> S#core{sides = setelement(I, Sides, Side)}.

side_of(Client, #core{session = {Client, _}}) -> 1;
side_of(Client, #core{session = {_, Client}}) -> 2.

other(1) -> 2;
other(2) -> 1.
