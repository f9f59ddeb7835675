%% SPDX-License-Identifier: Apache-2.0
%% @doc One client of the messenger: its login, its chats, what it has said and what it has received.
%% Pure: an event and the time come in, effects come out.
%%
%% Promised, with the sessions' own promise ({@link im_chat_session_core}):
%% <ul>
%% <li>What the owner says to a peer has numbers 1, 2, 3, ... (or those that the owner gives). It is sent
%%     in order, again after each loss, until the session has accepted it. What is accepted is told in
%%     order; `delivered' implies accepted.</li>
%% <li>What a peer says is told once and in order, with the numbers 1, 2, 3, ..., which begin anew after
%%     `ended'.</li>
%% <li>What may have been accepted, but cannot be known to be, is told as `{refused, Peer, Seq, unsure}': the
%%     session ended while nobody told us.</li>
%% <li>There are so many messages at most that wait to be accepted, and so many chats.</li>
%% </ul>
%% Not promised: that what waits here outlives this client. With `resume' the owner keeps it instead: it
%% gets a mark for each chat, says when it has received messages (nothing is acknowledged before), and gives marks and numbers to
%% a client that is started later, anywhere.
%%
%% On the wire a message has its number in one direction of one incarnation of the session. The numbers of the owner
%% go on over incarnations, so each chat has an offset for each direction, which changes with the incarnation only.
%% What a session refuses because it is full keeps its number and is sent again later.
%%
%% It is long because a login, a session and a router may each be lost at any step of a chat, and what is said again then
%% depends on all three.
-module(im_client_core).

-export([new/2, handle/3]).

-export_type([core/0, name/0, session/0, inc/0, options/0, resume/0, mark/0, event/0, effect/0, told/0, reason/0]).

%% UTF-8, 1 to 64 bytes.
-type name() :: binary().

%% The two clients, sorted.
-type session() :: {name(), name()}.

%% Says which of the sessions that two clients have had.
-type inc() :: integer().

-type options() :: #{
    %% the client process, as servers see it
    self := pid(),
    %% where to ask, in the order in which they are asked
    routers := [{atom(), node()}, ...],
    %% bytes of a message
    max_body => pos_integer(),
    %% messages to one peer that wait behind the window
    max_waiting => pos_integer(),
    max_chats => pos_integer(),
    %% the owner keeps what is not done; without it the client acknowledges at once
    resume => resume() | none
}.

%% What the owner knows of its chats from a client before this one.
-type resume() :: #{name() => #{
    mark := mark() | none,
    %% the last numbers: said to a client, accepted, and received
    said := non_neg_integer(),
    accepted := non_neg_integer(),
    received := non_neg_integer()
}}.

%% The incarnation, and the owner's number before the first one of it, of what is said and what is received. What is received
%% has no offset before the first message.
-type mark() :: {inc(), integer(), integer() | none}.

-type reason() ::
    %% the message is kept
    full
    %% nobody knows
    | unsure
    %% the message is not taken, and its number is free
    | too_long | too_many_waiting | yourself | logged_out | too_many_sessions | {gap, Next :: pos_integer()}.

-type event() ::
    start
    | im_message()
    | {down, pid()}
    | tick
    %% nothing else is waiting: what was received is acknowledged
    | flush
    | {chat, name()}
    | {say, name(), Seq :: pos_integer() | next, Body :: binary(), Meta :: term()}
    | {received, name(), UpTo :: non_neg_integer()}
    | {finish, name()}
    | logout.

%% What servers send.
-type im_message() ::
    {im, login_success, Monitor :: pid(), [session()]}
    | {im, login_error, already_logged_in}
    | {im, new_monitor, pid()}
    | {im, logged_out}
    | {im, session, session(), inc(), pid(), Accepted :: non_neg_integer(), online | away}
    | {im, chat_error, session() | name(), receiver_not_found | too_many_sessions | overloaded}
    | {im, accepted | delivered, session(), inc(), UpTo :: non_neg_integer()}
    | {im, refused, session(), inc(), Seq :: pos_integer(), full | too_long}
    | {im, message, session(), inc(), From :: name(), Seq :: pos_integer(), Body :: binary(), Meta :: term()}
    | {im, presence, session(), name(), online | away}
    | {im, ended, session(), inc(), finished | idle | expired | lost}.

%% What the owner is told.
-type told() ::
    {logged_in, [name()]}
    | {login_refused, already_logged_in}
    | logged_out
    | {mark, name(), mark()}
    | {session, name(), online | away}
    | {message, name(), Seq :: pos_integer(), Body :: binary(), Meta :: term()}
    | {accepted, name(), UpTo :: non_neg_integer()}
    | {delivered, name(), UpTo :: non_neg_integer()}
    %% `full': the peer is away and much is kept for it. The message is kept here, and sent again.
    | {refused, name(), Seq :: pos_integer() | none, reason()}
    | {presence, name(), online | away}
    %% `lost': the servers have lost accepted messages. With the last two there was no session, and what was said has gone nowhere.
    | {ended, name(), finished | idle | expired | lost | receiver_not_found | too_many_sessions}
    | {connection, lost | back}.

-type effect() ::
    {send, pid() | {atom(), node()}, term()}
    | {monitor, pid()}
    %% a `tick' at this time, in milliseconds; an earlier one is enough
    | {wake, integer()}
    | {tell, told()}
    %% the answer to {say, ...}
    | {said, name(), Seq :: pos_integer() | none, ok | reason()}.

-record(chat, {
    session :: session(),
    %% `ask': to be asked for at this time, for so many times. `lost': the session died, and says itself where it goes on, till then.
    link :: {ask, chat | open, integer() | infinity, pos_integer()} | {lost, integer()} | {up, pid()},
    inc = none :: inc() | none,
    %% owner's number = number on the wire + this
    out_base = 0 :: integer(),
    %% none: the first message says it
    in_base = none :: integer() | none,
    %% what is sent and not accepted, and what waits behind it: {owner's number, body, meta}
    flight = queue:new() :: queue:queue(),
    flying = 0 :: non_neg_integer(),
    waiting = queue:new() :: queue:queue(),
    %% of the owner: the next one; none if the owner has yet to say the first one
    next = none :: pos_integer() | none,
    accepted = 0 :: non_neg_integer(),
    delivered = 0 :: non_neg_integer(),
    %% said to an earlier client, in the incarnation of the mark; 0 if there was none
    unsure = 0 :: non_neg_integer(),
    %% told to the owner; and what of it is done, which is what the session is told
    received = 0 :: non_neg_integer(),
    done = 0 :: non_neg_integer(),
    dirty = false :: boolean(),
    %% the session was asked to send again what is missing
    gap = false :: boolean(),
    presence = away :: online | away,
    %% the owner knows of the session
    told = false :: boolean(),
    finishing = no :: no | wanted | told,
    %% when it is looked whether the session is still there, as it accepts nothing; and the pause
    stalled = infinity :: integer() | infinity,
    patience :: pos_integer(),
    %% nothing is sent before that, as the session is full; and the last number that the owner was told so of
    held = infinity :: integer() | infinity,
    told_full = 0 :: non_neg_integer()
}).

-record(core, {
    client :: name(),
    self :: pid(),
    routers :: tuple(),
    turn = 0 :: non_neg_integer(),
    max_body :: pos_integer(),
    max_waiting :: pos_integer(),
    max_chats :: pos_integer(),
    resumable :: boolean(),
    %% `watch': the monitor died, a new one is to come till then
    login = out :: out | {asking, integer(), pos_integer()} | in | {watch, integer()} | refused | {leaving, integer()},
    monitor = none :: pid() | none,
    %% the owner was told that it is logged in; and that the connection is lost
    was_in = false :: boolean(),
    is_lost = false :: boolean(),
    chats = #{} :: #{name() => #chat{}},
    %% chats with something to acknowledge
    dirty = [] :: [name()],
    wake = infinity :: integer() | infinity,
    %% effects of the event under way, the last one first
    out = [] :: [effect()]
}).

-opaque core() :: #core{}.

-define(WINDOW, 64).
-define(MAX_BODY, 4096).
-define(MAX_WAITING, 1000).
-define(MAX_CHATS, 1000).
-define(ASK_MS, 1000).
-define(ASK_MOST_MS, 5000).
-define(WATCH_MS, 2000).
-define(LOST_MS, 1000).
-define(HELD_MS, 2000).
-define(STALLED_MS, 5000).
-define(STALLED_MOST_MS, 60000).
-define(LEAVING_MS, 5000).

%% @doc A client that is not logged in yet.
-spec new(name(), options()) -> core().
new(Client, #{self := Self, routers := Routers} = Options) ->
    Resume = maps:get(resume, Options, none),
    Core = #core{
        client = Client, self = Self, routers = list_to_tuple(Routers),
        max_body = maps:get(max_body, Options, ?MAX_BODY), max_waiting = maps:get(max_waiting, Options, ?MAX_WAITING),
        max_chats = maps:get(max_chats, Options, ?MAX_CHATS), resumable = Resume =/= none
    },
    case Resume of
        none -> Core;
        #{} -> Core#core{chats = maps:map(fun(Peer, Kept) -> resumed(Kept, Peer, Core) end, Resume)}
    end.

resumed(#{mark := Mark, said := Said, accepted := Accepted, received := Received}, Peer, Core) ->
    Chat = (new_chat(Peer, open, Core))#chat{next = Accepted + 1, accepted = Accepted, unsure = Said, received = Received, done = Received},
    case Mark of
        none -> Chat;
        {Inc, OutBase, InBase} -> Chat#chat{inc = Inc, out_base = OutBase, in_base = InBase}
    end.

new_chat(Peer, How, #core{client = Client}) ->
    #chat{session = {min(Client, Peer), max(Client, Peer)}, link = {ask, How, infinity, 1}, patience = ?STALLED_MS}.

%% @doc What happens, and what is to be done about it, in this order.
-spec handle(event(), Now :: integer(), core()) -> {[effect()], core()}.
handle(Event, Now, Core) ->
    #core{out = Out} = Next = event(Event, Now, Core),
    {lists:reverse(Out), Next#core{out = []}}.

%% The messages of a conversation come first.
event({im, message, Session, Inc, From, Seq, Body, Meta}, _, #core{chats = Chats} = C) ->
    case Chats of
        #{From := #chat{session = Session, inc = Inc, link = {up, Pid}} = Chat} -> message(Seq, Body, Meta, From, Pid, Chat, C);
        #{} -> C
    end;
event({im, accepted, Session, Inc, UpTo}, Now, C) ->
    of_session(Session, Inc, C, fun(Peer, Chat) -> accepted(UpTo, accepted, Now, Peer, Chat, C) end);
event({im, delivered, Session, Inc, UpTo}, Now, C) ->
    of_session(Session, Inc, C, fun(Peer, Chat) -> accepted(UpTo, delivered, Now, Peer, Chat, C) end);
event({say, Peer, Seq, Body, Meta}, Now, C) ->
    say(Peer, Seq, Body, Meta, Now, C);
event(flush, _, #core{dirty = Dirty} = C) ->
    lists:foldl(fun acknowledge/2, C#core{dirty = []}, Dirty);
event({received, Peer, UpTo}, _, #core{chats = Chats} = C) ->
    case Chats of
        #{Peer := #chat{received = Received, done = Done} = Chat} when UpTo > Done, UpTo =< Received ->
            dirty(Peer, Chat#chat{done = UpTo}, C);
        #{} -> C
    end;
event({im, session, Session, Inc, Pid, Accepted, Presence}, Now, C) ->
    session(Session, Inc, Pid, Accepted, Presence, Now, C);
event({im, presence, Session, Client, Presence}, _, #core{chats = Chats} = C) ->
    case Chats of
        #{Client := #chat{session = Session, presence = Before} = Chat} when Before =/= Presence ->
            tell({presence, Client, Presence}, put_chat(Client, Chat#chat{presence = Presence}, C));
        #{} -> C
    end;
event({im, refused, Session, Inc, Seq, Why}, Now, C) ->
    of_session(Session, Inc, C, fun(Peer, Chat) -> refused(Seq, Why, Now, Peer, Chat, C) end);
event({im, ended, Session, Inc, Why}, Now, #core{client = Client, chats = Chats} = C) ->
    Peer = peer(Session, Client),
    case Chats of
        #{Peer := #chat{link = {up, _}, inc = Inc} = Chat} -> ended(Why, Now, Peer, {[], Chat}, C);
        %% The end of one before it.
        #{Peer := #chat{link = {up, _}, inc = Later}} when Later > Inc -> C;
        #{Peer := #chat{link = {ask, chat, _, _}}} -> C;
        #{Peer := Chat} -> ended(Why, Now, Peer, unsure(Peer, Chat), C);
        #{} -> C
    end;
event({im, chat_error, Of, Why}, Now, C) ->
    chat_error(Of, Why, Now, C);
event({im, login_success, Monitor, Sessions}, Now, C) ->
    logged_in(Monitor, Sessions, Now, C);
event({im, login_error, already_logged_in}, _, #core{login = {asking, _, _}} = C) ->
    tell({login_refused, already_logged_in}, C#core{login = refused});
event({im, login_error, already_logged_in}, _, C) ->
    C;
event({im, new_monitor, Monitor}, _, #core{login = Login, was_in = true} = C) when Login =:= in; element(1, Login) =:= watch; element(1, Login) =:= asking ->
    adopted(Monitor, C);
event({im, new_monitor, _}, _, C) ->
    C;
event({im, logged_out}, _, #core{login = {leaving, _}} = C) ->
    tell(logged_out, C#core{login = out, monitor = none, chats = #{}, dirty = []});
event({im, logged_out}, _, C) ->
    C;
event({down, Monitor}, Now, #core{login = in, monitor = Monitor} = C) ->
    wake(Now + ?WATCH_MS, C#core{login = {watch, Now + ?WATCH_MS}, monitor = none});
event({down, Pid}, Now, #core{chats = Chats} = C) ->
    case [{Peer, Chat} || {Peer, #chat{link = {up, Is}} = Chat} <- maps:to_list(Chats), Is =:= Pid] of
        [{Peer, Chat}] -> wake(Now + ?LOST_MS, put_chat(Peer, Chat#chat{link = {lost, Now + ?LOST_MS}, stalled = infinity}, C));
        [] -> C
    end;
event(tick, Now, C) ->
    tick(Now, C#core{wake = infinity});
event({chat, Peer}, Now, C) ->
    case chat_with(Peer, C) of
        {ok, #chat{link = {up, _}} = Chat} -> go_on(Peer, Chat, C);
        {ok, #chat{link = {ask, open, At, _}} = Chat} when is_integer(At) -> go_on(Peer, Chat, C);
        {ok, Chat} -> put_chat(Peer, Chat, C, Now);
        {error, Why} -> tell({refused, Peer, none, Why}, C)
    end;
event({finish, Peer}, Now, #core{chats = Chats} = C) ->
    case Chats of
        #{Peer := #chat{finishing = no} = Chat} -> fill(Peer, Chat#chat{finishing = wanted}, Now, C);
        #{} -> C
    end;
event(start, Now, #core{login = Login} = C) when Login =:= out; Login =:= refused ->
    ask_login(1, Now, C);
event(start, _, C) ->
    C;
event(logout, Now, #core{client = Client, self = Self, monitor = Monitor} = C) ->
    Told = case Monitor of
        none -> C;
        _ -> send(Monitor, {im, logout, Client, Self}, C)
    end,
    wake(Now + ?LEAVING_MS, Told#core{login = {leaving, Now + ?LEAVING_MS}}).

%% Login

ask_login(Try, Now, #core{client = Client, self = Self} = C) ->
    At = Now + pause(Try, C),
    wake(At, ask({im, login, Client, Self}, C#core{login = {asking, At, Try}})).

%% Each asks another router. Clients that have all lost the same node do not come back at the same moment.
ask(Request, #core{routers = Routers, turn = Turn} = C) ->
    send(element(Turn rem tuple_size(Routers) + 1, Routers), Request, C#core{turn = Turn + 1}).

pause(Try, #core{client = Client}) ->
    min(?ASK_MOST_MS, ?ASK_MS * max(1, Try - 1)) + erlang:phash2(Client, ?ASK_MS div 4).

logged_in(Monitor, _, _, #core{login = {leaving, _}, client = Client, self = Self} = C) ->
    send(Monitor, {im, logout, Client, Self}, C#core{monitor = Monitor});
logged_in(Monitor, Sessions, Now, #core{login = {asking, _, _}, client = Client, chats = Chats} = C) ->
    Peers = [peer(Session, Client) || Session <- Sessions],
    Gone = [{Peer, Chat} || {Peer, #chat{inc = Inc, link = Link} = Chat} <- maps:to_list(Chats), Inc =/= none, element(1, Link) =/= up, not lists:member(Peer, Peers)],
    In = adopted(Monitor, C),
    Told = case In of
        #core{was_in = false} -> tell({logged_in, Peers}, In#core{was_in = true});
        #core{} -> In
    end,
    Ended = lists:foldl(fun({Peer, Chat}, Is) -> ended(expired, Now, Peer, unsure(Peer, Chat), Is) end, Told, Gone),
    lists:foldl(
        fun(Peer, #core{chats = Are} = Is) ->
            case Are of
                #{Peer := #chat{link = {up, _}}} -> Is;
                #{Peer := Chat} -> look(Peer, Chat, Now, Is);
                #{} -> look(Peer, new_chat(Peer, open, Is), Now, Is)
            end
        end,
        Ended, lists:usort(Peers ++ maps:keys(Ended#core.chats)));
%% The answer to a question that was asked twice.
logged_in(_, _, _, #core{login = in} = C) -> C;
logged_in(_, _, _, #core{login = refused} = C) -> C;
logged_in(Monitor, _, _, #core{login = {watch, _}} = C) -> adopted(Monitor, C);
logged_in(_, _, _, #core{login = out} = C) -> C.

adopted(Monitor, #core{is_lost = IsLost} = C) ->
    In = push({monitor, Monitor}, C#core{login = in, monitor = Monitor, is_lost = false}),
    case IsLost of
        true -> tell({connection, back}, In);
        false -> In
    end.

%% Chats

chat_with(Client, #core{client = Client}) -> {error, yourself};
chat_with(_, #core{login = {leaving, _}}) -> {error, logged_out};
chat_with(Peer, #core{chats = Chats, max_chats = Most} = C) ->
    case Chats of
        #{Peer := Chat} -> {ok, Chat};
        #{} when map_size(Chats) >= Most -> {error, too_many_sessions};
        #{} -> {ok, new_chat(Peer, chat, C)}
    end.

%% The session may be about to end, as somebody has finished it, perhaps this one: it goes on.
go_on(Peer, Chat, C) ->
    Is = Chat#chat{finishing = no},
    ask(request(chat, Peer, Is, C), put_chat(Peer, Is, C)).

%% One that was never asked for is asked for, as soon as we are logged in.
put_chat(Peer, #chat{link = {ask, _, infinity, _}} = Chat, #core{login = in} = C, Now) -> look(Peer, Chat, Now, C);
put_chat(Peer, Chat, C, _) -> put_chat(Peer, Chat, C).

put_chat(Peer, Chat, #core{chats = Chats} = C) -> C#core{chats = Chats#{Peer => Chat}}.

%% Asks for the session: for the first time, or as nobody has answered.
look(Peer, #chat{link = {ask, How, infinity, _}} = Chat, Now, C) -> look(Peer, Chat, How, 1, Now, C);
look(Peer, #chat{link = {ask, How, _, Try}} = Chat, Now, C) -> look(Peer, Chat, How, Try + 1, Now, C);
look(Peer, #chat{link = {lost, _}} = Chat, Now, C) -> look(Peer, Chat, open, 1, Now, C).

look(Peer, Chat, How, Try, Now, C) ->
    At = Now + pause(Try, C),
    wake(At, ask(request(How, Peer, Chat, C), put_chat(Peer, Chat#chat{link = {ask, How, At, Try}}, C))).

request(chat, Peer, _, #core{client = Client, self = Self}) -> {im, chat, Client, Peer, Self};
request(open, _, #chat{session = Session}, #core{client = Client, self = Self}) -> {im, open, Session, Client, Self}.

session(Session, Inc, Pid, Accepted, Presence, Now, #core{client = Client, chats = Chats} = C) ->
    Peer = peer(Session, Client),
    case Chats of
        #{Peer := #chat{inc = Inc} = Chat} -> up(Pid, Accepted, Presence, Now, Peer, Chat, C);
        #{Peer := Chat} -> begun(Inc, Pid, Accepted, Presence, Now, Peer, unsure(Peer, Chat), C);
        #{} -> begun(Inc, Pid, Accepted, Presence, Now, Peer, {[], new_chat(Peer, open, C)}, C)
    end.

%% A new incarnation: the numbers of the owner go on. What comes may begin anywhere: what an earlier client has received
%% is not sent again.
begun(Inc, Pid, Accepted, Presence, Now, Peer, {Told, #chat{flight = Flight, waiting = Waiting, next = Next, received = Received} = Chat}, C) ->
    Before = case {queue:peek(Flight), queue:peek(Waiting), Next} of
        {{value, {First, _, _}}, _, _} -> First - 1;
        {empty, {value, {First, _, _}}, _} -> First - 1;
        {empty, empty, none} -> 0;
        {empty, empty, _} -> Next - 1
    end,
    Is = Chat#chat{inc = Inc, out_base = Before - Accepted, in_base = none, accepted = Before, delivered = Before, done = Received, unsure = 0},
    up(Pid, Accepted, Presence, Now, Peer, Is, tell_all(Told, C)).

%% The session is there, perhaps another process: it is told what is done, and what it has not accepted is sent again.
up(Pid, Accepted, Presence, Now, Peer, #chat{link = Link, session = Session, finishing = Finishing} = Chat, C) ->
    Watched = case Link of {up, Pid} -> C; _ -> push({monitor, Pid}, C) end,
    Is = Chat#chat{link = {up, Pid}, gap = false, held = infinity, told = true, finishing = case Finishing of told -> wanted; _ -> Finishing end},
    Greeted = hello(Pid, Is, Watched),
    case Chat of
        #chat{told = true} ->
            Told = event({im, presence, Session, Peer, Presence}, Now, put_chat(Peer, Is, Greeted)),
            accepted(Accepted, again, Now, Peer, maps:get(Peer, Told#core.chats), Told);
        #chat{told = false} ->
            accepted(Accepted, again, Now, Peer, Is#chat{presence = Presence}, tell({session, Peer, Presence}, marked(Peer, Is, Greeted)))
    end.

hello(Pid, Chat, #core{client = Client, self = Self} = C) ->
    send(Pid, {im, hello, Chat#chat.inc, Client, Self, done(Chat)}, C).

%% As it is on the wire.
done(#chat{in_base = none}) -> 0;
done(#chat{in_base = InBase, done = Done}) -> Done - InBase.

marked(_, _, #core{resumable = false} = C) -> C;
marked(Peer, #chat{inc = Inc, out_base = OutBase, in_base = InBase}, C) -> tell({mark, Peer, {Inc, OutBase, InBase}}, C).

%% What a peer says

message(Seq, Body, Meta, Peer, Pid, #chat{in_base = none, received = Received} = Chat, C) ->
    Is = Chat#chat{in_base = Received - Seq + 1},
    message(Seq, Body, Meta, Peer, Pid, Is, marked(Peer, Is, C));
message(Seq, Body, Meta, Peer, Pid, #chat{in_base = InBase, received = Received, done = Done, gap = Gap} = Chat, #core{resumable = Resumable} = C) ->
    case Seq + InBase - Received of
        1 ->
            Told = tell({message, Peer, Received + 1, Body, Meta}, C),
            Is = Chat#chat{received = Received + 1, gap = false},
            case Resumable of
                true -> put_chat(Peer, Is, Told);
                false -> dirty(Peer, Is#chat{done = Received + 1}, Told)
            end;
        Ahead when Ahead > 1, Gap -> C;
        Ahead when Ahead > 1 -> put_chat(Peer, Chat#chat{gap = true}, hello(Pid, Chat, C));
        %% It was sent again, as nobody had told that it is done.
        _ when Seq + InBase =< Done -> dirty(Peer, Chat, C);
        _ -> C
    end.

dirty(Peer, #chat{dirty = true} = Chat, C) -> put_chat(Peer, Chat, C);
dirty(Peer, Chat, #core{dirty = Dirty} = C) -> put_chat(Peer, Chat#chat{dirty = true}, C#core{dirty = [Peer | Dirty]}).

acknowledge(Peer, #core{client = Client, chats = Chats} = C) ->
    case Chats of
        #{Peer := #chat{link = {up, Pid}, inc = Inc} = Chat} -> send(Pid, {im, received, Inc, Client, done(Chat)}, put_chat(Peer, Chat#chat{dirty = false}, C));
        #{Peer := Chat} -> put_chat(Peer, Chat#chat{dirty = false}, C);
        #{} -> C
    end.

%% What the owner says

say(Peer, Asked, Body, Meta, Now, #core{max_body = MaxBody, max_waiting = MaxWaiting} = C) ->
    case chat_with(Peer, C) of
        {ok, Known} ->
            #chat{next = Next, waiting = Behind} = Chat = numbered(Asked, Known),
            Seq = case Asked of next -> Next; _ -> Asked end,
            Waits = queue:len(Behind),
            if
                Seq > Next -> said(Peer, Seq, {gap, Next}, C);
                %% It has been said before the owner lost its connection.
                Seq < Next -> said(Peer, Seq, ok, C);
                byte_size(Body) > MaxBody -> said(Peer, Seq, too_long, C);
                Waits >= MaxWaiting -> said(Peer, Seq, too_many_waiting, C);
                true ->
                    Said = said(Peer, Seq, ok, C),
                    %% The offset is kept by the owner, so it is told before anything is accepted that needs it.
                    Marked = case Chat#chat.inc =/= none andalso Chat#chat.out_base =/= Known#chat.out_base of
                        true -> marked(Peer, Chat, Said);
                        false -> Said
                    end,
                    fill(Peer, Chat#chat{next = Seq + 1, waiting = queue:in({Seq, Body, Meta}, Behind)}, Now, Marked)
            end;
        {error, Why} ->
            said(Peer, none, Why, C)
    end.

%% The first message of an owner may have any number. A session that the peer has opened has an offset already, for
%% one that begins with 1.
numbered(next, #chat{next = none} = Chat) -> Chat#chat{next = 1};
numbered(First, #chat{next = none, out_base = OutBase} = Chat) ->
    Chat#chat{next = First, out_base = OutBase + First - 1, accepted = First - 1, delivered = First - 1};
numbered(_, Chat) -> Chat.

said(Peer, Seq, Is, C) -> push({said, Peer, Seq, Is}, C).

%% Sends what the window lets through.
fill(Peer, #chat{link = {up, Pid}, flying = Flying, held = infinity, finishing = Finishing} = Chat, Now, C) when Flying < ?WINDOW, Finishing =/= told ->
    case queue:out(Chat#chat.waiting) of
        {{value, Entry}, Waiting} ->
            Is = Chat#chat{waiting = Waiting, flight = queue:in(Entry, Chat#chat.flight), flying = Flying + 1},
            fill(Peer, Is, Now, say(Pid, Entry, Is, C));
        {empty, _} when Flying =:= 0, Finishing =:= wanted ->
            put_chat(Peer, Chat#chat{finishing = told}, send(Pid, {im, finish, Chat#chat.inc, C#core.client}, C));
        {empty, _} ->
            patient(Peer, Chat, Now, C)
    end;
fill(Peer, #chat{link = {up, _}} = Chat, Now, C) -> patient(Peer, Chat, Now, C);
fill(Peer, Chat, Now, C) -> put_chat(Peer, Chat, C, Now).

%% A session that accepts nothing is asked for after a while.
patient(Peer, #chat{flying = Flying, stalled = infinity, patience = Patience} = Chat, Now, C) when Flying > 0 ->
    wake(Now + Patience, put_chat(Peer, Chat#chat{stalled = Now + Patience}, C));
patient(Peer, Chat, _, C) ->
    put_chat(Peer, Chat, C).

say(Pid, {Seq, Body, Meta}, #chat{inc = Inc, out_base = OutBase}, #core{client = Client, self = Self} = C) ->
    send(Pid, {im, say, Inc, Client, Seq - OutBase, Body, Meta, Self}, C).

resend(#chat{link = {up, Pid}, flight = Flight} = Chat, C) ->
    lists:foldl(fun(Entry, Is) -> say(Pid, Entry, Chat, Is) end, C, queue:to_list(Flight)).

%% Up to this number on the wire it is accepted, or delivered.
accepted(UpTo, How, Now, Peer, #chat{out_base = OutBase, flight = Flight0, flying = Flying0, next = Next, accepted = Accepted, delivered = Delivered} = Chat, C) ->
    Seq = UpTo + OutBase,
    {Flight, Flying} = dropped(Seq, Flight0, Flying0),
    %% An earlier client may have said more than we know of.
    Later = case Next of
        none when Seq > 0 -> Seq + 1;
        _ when is_integer(Next), Next =< Seq -> Seq + 1;
        _ -> Next
    end,
    Is0 = Chat#chat{flight = Flight, flying = Flying, next = Later, accepted = max(Seq, Accepted)},
    Is = case Flying of
        Flying0 when How =/= again -> Is0;
        _ -> Is0#chat{stalled = infinity, patience = ?STALLED_MS}
    end,
    case How of
        delivered when Seq > Delivered -> fill(Peer, Is#chat{delivered = Seq}, Now, tell({delivered, Peer, Seq}, C));
        accepted when Seq > Accepted -> fill(Peer, Is, Now, tell({accepted, Peer, Seq}, C));
        again when Seq > Accepted -> fill(Peer, Is, Now, resend(Is, tell({accepted, Peer, Seq}, C)));
        again -> fill(Peer, Is, Now, resend(Is, C));
        _ -> C
    end.

dropped(Seq, Flight, Flying) ->
    case queue:peek(Flight) of
        {value, {First, _, _}} when First =< Seq -> dropped(Seq, queue:drop(Flight), Flying - 1);
        _ -> {Flight, Flying}
    end.

%% The session takes nothing of what follows, and sends nothing, before it is greeted; then all of it is sent again.
refused(UpTo, full, Now, Peer, #chat{link = {up, Pid}, out_base = OutBase, told_full = Told} = Chat, C) ->
    Seq = UpTo + OutBase,
    Held = Chat#chat{held = Now + ?HELD_MS, stalled = infinity, told_full = max(Seq, Told)},
    Is = case Seq > Told of
        true -> tell({refused, Peer, Seq, full}, C);
        false -> C
    end,
    wake(Now + ?HELD_MS, put_chat(Peer, Held, hello(Pid, Held, Is)));
%% The servers take shorter ones than we were told. The number cannot be given to another message: an empty one takes it.
refused(UpTo, too_long, Now, Peer, #chat{link = {up, Pid}, out_base = OutBase, flight = Flight} = Chat, C) ->
    Seq = UpTo + OutBase,
    Is = Chat#chat{flight = queue:filtermap(fun({At, _, Meta}) when At =:= Seq -> {true, {At, <<>>, Meta}}; (_) -> true end, Flight)},
    patient(Peer, Is, Now, resend(Is, hello(Pid, Is, tell({refused, Peer, Seq, too_long}, C))));
refused(_, _, _, _, _, C) ->
    C.

%% The end of a session

%% What was sent in its last incarnation, of which nobody knows whether it was accepted.
unsure(Peer, #chat{inc = Inc, flight = Flight, waiting = Waiting, unsure = Said, accepted = Accepted, next = Next} = Chat) ->
    Last = case queue:peek_r(Flight) of
        {value, {Seq, _, _}} when Inc =/= none -> Seq;
        _ -> Accepted
    end,
    Most = max(Said, Last),
    Is = Chat#chat{waiting = queue:filter(fun({Seq, _, _}) -> Seq > Most end, Waiting), unsure = 0, next = case Next of none -> none; _ -> max(Next, Most + 1) end},
    case Most > Accepted of
        true -> {[{refused, Peer, Seq, unsure} || Seq <- lists:seq(Accepted + 1, Most)], Is#chat{flight = queue:new(), flying = 0}};
        false -> {[], Is}
    end.

%% What waits goes into a new session.
ended(Why, Now, Peer, {Told, #chat{flying = Flying, waiting = Waiting} = Chat}, #core{chats = Chats} = C) ->
    Ended = tell({ended, Peer, Why}, tell_all(Told, C)),
    case Flying =:= 0 andalso queue:is_empty(Waiting) of
        true -> Ended#core{chats = maps:remove(Peer, Chats)};
        false ->
            Again = Chat#chat{link = {ask, chat, infinity, 1}, inc = none, unsure = 0, received = 0, done = 0, told = false, finishing = no, stalled = infinity, held = infinity},
            put_chat(Peer, Again, Ended, Now)
    end.

chat_error(Of, Why, Now, #core{client = Client, chats = Chats} = C) ->
    Peer = case Of of {_, _} -> peer(Of, Client); _ -> Of end,
    case Chats of
        #{Peer := #chat{link = {ask, _, _, _}}} when Why =:= overloaded -> C;
        #{Peer := #chat{link = {ask, _, _, _}} = Chat} ->
            {Told, Is} = unsure(Peer, Chat),
            ended(Why, Now, Peer, {Told, Is#chat{flight = queue:new(), flying = 0, waiting = queue:new()}}, C);
        #{} -> C
    end.

%% Time

tick(Now, #core{login = {asking, At, Try}} = C) when At =< Now -> chats_tick(Now, ask_login(Try + 1, Now, C));
tick(Now, #core{login = {watch, At}} = C) when At =< Now -> chats_tick(Now, ask_login(1, Now, tell({connection, lost}, C#core{is_lost = true})));
tick(Now, #core{login = {leaving, At}} = C) when At =< Now -> event({im, logged_out}, Now, C);
tick(Now, #core{login = Login} = C) ->
    chats_tick(Now, case Login of {_, At} -> wake(At, C); {asking, At, _} -> wake(At, C); _ -> C end).

chats_tick(Now, #core{chats = Chats} = C) ->
    maps:fold(fun(Peer, Chat, Is) -> chat_tick(Peer, Chat, Now, Is) end, C, Chats).

chat_tick(Peer, #chat{link = {ask, How, At, _}} = Chat, Now, #core{login = Login} = C) when At =< Now ->
    case Login of
        in -> look(Peer, Chat, Now, C);
        %% It is looked for when we are logged in again.
        _ -> put_chat(Peer, Chat#chat{link = {ask, How, infinity, 1}}, C)
    end;
chat_tick(_, #chat{link = {ask, _, At, _}}, _, C) -> wake(At, C);
chat_tick(Peer, #chat{link = {lost, At}} = Chat, Now, C) when At =< Now -> look(Peer, Chat, Now, C);
chat_tick(_, #chat{link = {lost, At}}, _, C) -> wake(At, C);
chat_tick(Peer, #chat{held = At} = Chat, Now, C) when At =< Now ->
    Is = Chat#chat{held = infinity},
    fill(Peer, Is, Now, resend(Is, C));
chat_tick(Peer, #chat{stalled = At, patience = Patience} = Chat, Now, C) when At =< Now ->
    Later = min(?STALLED_MOST_MS, 2 * Patience),
    wake(Now + Later, ask(request(open, Peer, Chat, C), put_chat(Peer, Chat#chat{stalled = Now + Later, patience = Later}, C)));
chat_tick(_, #chat{held = Held, stalled = Stalled}, _, C) -> wake(min(Held, Stalled), C).

%% Effects

send(To, Message, C) -> push({send, To, Message}, C).

tell(Told, C) -> push({tell, Told}, C).

tell_all(Several, C) -> lists:foldl(fun tell/2, C, Several).

push(Effect, #core{out = Out} = C) -> C#core{out = [Effect | Out]}.

wake(At, #core{wake = Wake} = C) when At < Wake -> push({wake, At}, C#core{wake = At});
wake(_, C) -> C.

%% The one of a session who is not this client.
peer({Client, Peer}, Client) -> Peer;
peer({Peer, Client}, Client) -> Peer.

of_session(Session, Inc, #core{client = Client, chats = Chats} = C, Fun) ->
    Peer = peer(Session, Client),
    case Chats of
        #{Peer := #chat{inc = Inc} = Chat} -> Fun(Peer, Chat);
        #{} -> C
    end.
