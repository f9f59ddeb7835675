%% SPDX-License-Identifier: Apache-2.0
%% A conversation in a world without processes: its core, both databases with a second copy that lags
%% behind, and two clients. What is under way waits in channels, and comes when a step says so. Steps
%% kill the session, a client, the main database, and cut connections; `healed/1' lets all come back,
%% and everything arrive.
-module(im_chat_session_world).

-export([new/1, step/2, arrived/1, healed/1, verdict/1, sent/1]).

-type step() ::
    {say | finish | chat | die | back | cut | gone | forget, client()}
    | {arrive, non_neg_integer()}
    %% what is on the way to the chat database comes after all that is under way now
    | delay
    | kill | sync | failover | {later, pos_integer()}.

-export_type([step/0]).

-type client() :: binary().

-record(client, {
    name :: client(),
    pid :: pid() | none,
    %% what it is told of the session, and whether it can send to it
    inc = none,
    link = none :: none | pid(),
    %% texts, which are the numbers 1, 2, 3, ... ; and the last number on the wire
    texts = 0,
    said = 0,
    flight = [],
    accepted = 0,
    %% the texts of which it was told so
    owed = [],
    delivered = 0,
    received = [],
    %% the last number on the wire; `none' for one that knows of nothing before the first
    heard = 0,
    %% it has left: what was said to it before does not come any more, and the next that comes need not follow on
    has_left = false,
    %% what its processes before this one have received
    before = [],
    presence = none,
    refused = 0,
    ended = [],
    faults = []
}).

-record(world, {
    session = {<<"a">>, <<"b">>},
    options,
    now = 1_000_000,
    inc = 0,
    pids = 1000,
    %% the core and its process
    core = none,
    self = none,
    beat = infinity,
    chat, safe_chat,
    %% who is logged in as which process, and has the conversation in its row
    rows, safe_rows,
    %% answers of what the second copy does not have yet
    held = [],
    channels = #{},
    late = #{},
    clients,
    %% who has asked in the place of whom, and is watched
    askers = #{},
    %% messages that the session has sent: what, and how many
    sent = #{},
    up = 0,
    over = false
}).

%% A conversation that the first client asks for.
new(Options) ->
    Table = im_chat_table:new(#{max_sessions => 10, away_messages => maps:get(away_messages, Options, 1000)}),
    W0 = #world{options = maps:merge(#{away_ms => 300_000, away_messages => 1000, idle_ms => 300_000, max_body => 10}, Options),
                chat = Table, safe_chat = Table, rows = #{}, safe_rows = #{}, clients = #{}},
    W = lists:foldl(fun(Name, #world{clients = Clients} = Acc) ->
        {Pid, Next} = pid(Acc),
        login(Name, Pid, Next#world{clients = Clients#{Name => #client{name = Name, pid = Pid}}})
    end, W0, maps:get(logged_in, Options, [<<"a">>, <<"b">>])),
    #world{clients = #{<<"a">> := #client{pid = A}}} = W,
    started(new, [{<<"a">>, A}], W).

login(Name, Pid, #world{rows = Rows, safe_rows = Safe} = W) ->
    Sessions = case Rows of #{Name := {_, Had}} -> Had; #{} -> [] end,
    W#world{rows = Rows#{Name => {Pid, Sessions}}, safe_rows = Safe#{Name => {Pid, Sessions}}}.

pid(#world{pids = Last} = W) -> {c:pid(0, Last + 1, 0), W#world{pids = Last + 1}}.

started(Mode, Askers, #world{session = Session, options = Options, inc = Inc, now = Now} = W0) ->
    {Self, W} = pid(W0),
    Config = (maps:with([away_ms, away_messages, idle_ms, max_body], Options))#{session => Session, self => Self, inc => Inc + 1, mode => Mode},
    New = {Core, _} = im_chat_session_core:new(Config, Now),
    lists:foldl(fun({Name, Pid}, Acc) -> event({ask, open, Name, Pid}, Acc) end,
                effects(element(2, New), W#world{core = Core, self = Self, inc = Inc + 1, beat = infinity, askers = #{}, over = false}), Askers).

event(_, #world{core = none} = W) -> W;
event(Event, #world{core = Core, now = Now} = W) ->
    {Next, Effects} = im_chat_session_core:handle(Event, Now, Core),
    effects(Effects, W#world{core = Next}).

effects(Effects, W) -> lists:foldl(fun effect/2, W, Effects).

effect({ask, Whom, Tag, Op}, #world{self = Self} = W) -> queued({Self, base(Whom)}, {Whom, Tag, Op}, W);
effect({send, Pid, Message}, #world{self = Self, sent = Sent} = W) ->
    queued({Self, Pid}, Message, W#world{sent = maps:update_with(element(2, Message), fun(N) -> N + 1 end, 1, Sent)});
effect({tell, Pid, Message}, W) -> effect({send, Pid, Message}, W);
effect({beat, Ms}, #world{now = Now} = W) -> W#world{beat = Now + Ms};
effect({replace, Pid}, W) -> event({down, before, Pid}, W);
effect({watch, Who, Pid}, #world{clients = Clients, askers = Askers} = W) when is_pid(Pid) ->
    %% A process that is not there is down at once.
    case {[ok || #client{pid = Is} <- maps:values(Clients), Is =:= Pid], Who} of
        {[], _} -> event({down, Who, Pid}, W);
        {[ok], {asker, I}} -> W#world{askers = Askers#{I => Pid}};
        {[ok], _} -> W
    end;
effect({watch, _, none}, W) -> W;
effect(up, #world{up = Up} = W) -> W#world{up = Up + 1};
effect(rest, W) -> W;
effect(stop, W) -> (ended(W))#world{over = true}.

base(chat) -> chat;
base({client, Name}) -> {client, Name}.

queued(Channel, Message, #world{channels = Channels} = W) ->
    W#world{channels = maps:update_with(Channel, fun(Q) -> Q ++ [Message] end, [Message], Channels)}.

%%% Steps

step({say, Name}, W) -> with_client(Name, fun say/2, W);
step({finish, Name}, W) ->
    with_client(Name, fun(#client{link = Link, inc = Inc, pid = Pid} = C, Acc) when is_pid(Link), is_pid(Pid) -> {C, queued({Pid, Link}, {finish, Inc, Name}, Acc)};
                         (C, Acc) -> {C, Acc} end, W);
step({chat, Name}, W) ->
    with_client(Name, fun(#client{pid = Pid} = C, Acc) -> {C, event({ask, chat, Name, Pid}, Acc)} end, W);
step({gone, Name}, W) -> event({gone, Name, finished}, put_client((client(Name, W))#client{has_left = true}, W));
step({die, Name}, W) ->
    case client(Name, W) of
        #client{pid = none} -> W;
        #client{pid = Pid} = C ->
            #world{rows = Rows} = Left = unplugged(Pid, put_client(C#client{pid = none, link = none}, W)),
            {_, Sessions} = map_get(Name, Rows),
            down(Name, Pid, Left#world{rows = Rows#{Name := {away, Sessions}}})
    end;
%% It dies, and whoever comes back knows nothing. The session hears of its death after all that it has said.
step({forget, Name}, W) ->
    case client(Name, W) of
        #client{pid = none} -> W;
        #client{pid = Pid, received = Received, before = Before} = C ->
            New = C#client{pid = none, link = none, inc = none, flight = [], received = [], heard = none, before = [Received | Before], presence = none},
            #world{rows = Rows, self = Self, session = {A, _}} = Left = unplugged(Pid, put_client(New, W)),
            {_, Sessions} = map_get(Name, Rows),
            queued({Pid, Self}, {down, case Name of A -> 1; _ -> 2 end, Pid}, Left#world{rows = Rows#{Name := {away, Sessions}}})
    end;
step({back, Name}, W) ->
    case client(Name, W) of
        #client{pid = none} = C ->
            {Pid, Next} = pid(W),
            asked(Name, login(Name, Pid, put_client(C#client{pid = Pid}, Next)));
        #client{link = none} ->
            asked(Name, W);
        #client{} ->
            W
    end;
step({cut, Name}, #world{self = Self} = W) ->
    case client(Name, W) of
        #client{pid = Pid} = C when is_pid(Pid) ->
            Cut = put_client(C#client{link = none}, W#world{channels = maps:without([{Self, Pid}, {Pid, Self}], W#world.channels)}),
            down(Name, Pid, Cut);
        #client{} -> W
    end;
step({arrive, I}, #world{channels = Channels} = W) ->
    case maps:keys(Channels) of
        [] -> W#world{channels = W#world.late, late = #{}};
        Keys -> arrived(lists:nth(1 + I rem length(Keys), Keys), W)
    end;
step(delay, #world{self = Self, channels = Channels, late = Late} = W) ->
    {Delayed, Others} = lists:partition(fun({Channel, _}) -> Channel =:= {Self, chat} andalso not is_map_key(Channel, Late) end, maps:to_list(Channels)),
    W#world{channels = maps:from_list(Others), late = maps:merge(Late, maps:from_list(Delayed))};
step(kill, #world{core = none} = W) -> W;
step(kill, W) ->
    Told = ended(W),
    case im_chat_table:apply({peek, W#world.session}, Told#world.chat) of
        {{ok, _}, _} -> started(again, [], Told);
        {none, _} -> Told
    end;
step(sync, #world{chat = Chat, rows = Rows, held = Held} = W) ->
    lists:foldl(fun({Channel, Answer}, Acc) -> queued(Channel, Answer, Acc) end,
                W#world{safe_chat = Chat, safe_rows = Rows, held = []}, lists:reverse(Held));
step(failover, #world{safe_chat = Chat, safe_rows = Rows, channels = Channels} = W) ->
    Lost = maps:filter(fun({_, To}, _) -> is_pid(To) end, Channels),
    event(no_main, W#world{chat = Chat, rows = Rows, held = [], channels = Lost});
step({later, Ms}, #world{now = Now, beat = Beat} = W) when Now + Ms >= Beat ->
    event(beat, W#world{now = max(Now, Beat), beat = infinity});
step({later, Ms}, #world{now = Now} = W) ->
    W#world{now = Now + Ms}.

%% Whoever is connected with it hears so after all that it has sent.
ended(#world{self = Self, clients = Clients} = W) ->
    lists:foldl(fun(Pid, Acc) -> queued({Self, Pid}, {down, Self}, Acc) end,
                unplugged(Self, W#world{core = none, beat = infinity}), [Pid || #client{pid = Pid} <- maps:values(Clients), is_pid(Pid)]).

%% What was to come to that process does not.
unplugged(Pid, #world{channels = Channels} = W) ->
    W#world{channels = maps:filter(fun({_, To}, _) -> To =/= Pid end, Channels)}.

down(Name, Pid, #world{session = {A, _}, askers = Askers} = W) ->
    I = case Name of A -> 1; _ -> 2 end,
    Down = event({down, I, Pid}, W),
    case Askers of
        #{I := Pid} -> event({down, {asker, I}, Pid}, Down);
        #{} -> Down
    end.

%% As a router and a supervisor do it.
asked(Name, #world{core = none} = W) ->
    #client{pid = Pid} = client(Name, W),
    started(again, [{Name, Pid}], W);
asked(Name, W) ->
    #client{pid = Pid} = client(Name, W),
    event({ask, open, Name, Pid}, W).

say(#client{inc = none} = C, W) -> {C, W};
say(#client{texts = Texts, said = Said, flight = Flight} = C, W) when length(Flight) < 64 ->
    {Seq, Body} = {Said + 1, integer_to_binary(Texts + 1)},
    {C#client{texts = Texts + 1, said = Seq, flight = Flight ++ [{Seq, Body}]}, spoken([{Seq, Body}], C, W)};
say(C, W) -> {C, W}.

spoken(Messages, #client{name = Name, pid = Pid, link = Link, inc = Inc}, W) when is_pid(Pid), is_pid(Link) ->
    lists:foldl(fun({Seq, Body}, Acc) -> queued({Pid, Link}, {say, Inc, Name, Seq, Body, meta, Pid}, Acc) end, W, Messages);
spoken(_, _, W) -> W.

%%% What arrives

arrived({From, To} = Channel, #world{channels = Channels} = W) ->
    [Message | Rest] = map_get(Channel, Channels),
    Left = W#world{channels = case Rest of [] -> maps:remove(Channel, Channels); _ -> Channels#{Channel := Rest} end},
    received(From, To, Message, Left).

received(From, chat, {_, Tag, Op}, #world{chat = Chat, held = Held} = W) ->
    {Reply, Next} = im_chat_table:apply(Op, Chat),
    W#world{chat = case Next of unchanged -> Chat; _ -> Next end, held = [{{chat, From}, {Tag, Reply}} | Held]};
received(From, {client, Name}, {_, Tag, Op}, #world{rows = Rows, held = Held} = W) ->
    {Reply, Next} = client_op(Op, Name, Rows),
    W#world{rows = Next, held = [{{{client, Name}, From}, {Tag, Reply}} | Held]};
received(_, Self, {down, _, _} = Down, #world{self = Self} = W) ->
    event(Down, W);
received(_, Self, {Tag, Reply}, #world{self = Self} = W) ->
    event({db, Tag, Reply}, W);
received(_, Self, Message, #world{self = Self, core = Core} = W) when Core =/= none ->
    case im_chat_session_core:is_current(element(2, Message), Core) of
        true -> event(list_to_tuple([element(1, Message) | lists:nthtail(2, tuple_to_list(Message))]), W);
        false -> W
    end;
received(_, Pid, Message, #world{clients = Clients} = W) ->
    case [C || #client{pid = Is} = C <- maps:values(Clients), Is =:= Pid] of
        [C] -> {Told, Next} = told(Message, C, W), put_client(Told, Next);
        [] -> W
    end.

client_op({open_session, _, Session}, Name, Rows) ->
    case Rows of
        #{Name := {Pid, Sessions}} -> {{ok, Pid}, Rows#{Name := {Pid, lists:usort([Session | Sessions])}}};
        #{} -> {{error, receiver_not_found}, Rows}
    end;
client_op({close_session, _, Session}, Name, Rows) ->
    case Rows of
        #{Name := {Pid, Sessions}} -> {ok, Rows#{Name := {Pid, lists:delete(Session, Sessions)}}};
        #{} -> {ok, Rows}
    end.

told({im, session, Of, Inc, Session, Accepted, Presence}, #client{inc = none} = C, W) ->
    told({im, session, Of, Inc, Session, Accepted, Presence}, C#client{inc = Inc, said = Accepted, accepted = Accepted}, W);
told({im, session, _, Inc, Session, Accepted, Presence}, #client{name = Name, pid = Pid, inc = Inc} = C, W) ->
    #client{flight = Left} = Linked = acknowledged(Accepted, C#client{link = Session, presence = Presence}),
    Greeted = queued({Pid, Session}, {hello, Inc, Name, Pid, heard(Linked)}, W),
    {Linked, spoken(Left, Linked, Greeted)};
told({im, session, _, _, _, _, _}, C, W) -> {fault(another_incarnation, C), W};
told({down, Session}, #client{link = Session} = C, W) -> {C#client{link = none}, W};
told({down, _}, C, W) -> {C, W};
told({im, accepted, _, _, UpTo}, C, W) -> {acknowledged(UpTo, C), W};
told({im, delivered, _, _, UpTo}, C, W) -> {(acknowledged(UpTo, C))#client{delivered = UpTo}, W};
told({im, message, _, Inc, _, Seq, Body, meta}, #client{name = Name, pid = Pid, link = Link, received = Received, heard = Has, has_left = HasLeft} = C, W) ->
    Took = if
        Has =:= none; Seq =:= Has + 1 -> C#client{received = Received ++ [Body], heard = Seq};
        Seq =< Has -> C;
        HasLeft -> C#client{received = Received ++ [Body], heard = Seq, has_left = false};
        true -> fault({gap, Has, Seq}, C)
    end,
    {Took, case Link of none -> W; _ -> queued({Pid, Link}, {received, Inc, Name, heard(Took)}, W) end};
told({im, presence, _, _, Presence}, C, W) -> {C#client{presence = Presence}, W};
told({im, refused, _, _, _, _}, #client{refused = N} = C, W) -> {C#client{refused = N + 1}, W};
told({im, ended, _, _, Why}, #client{ended = Ended} = C, W) -> {C#client{ended = [Why | Ended], link = none}, W};
told({im, chat_error, _, Why}, C, W) -> {fault(Why, C), W}.

heard(#client{heard = none}) -> 0;
heard(#client{heard = Heard}) -> Heard.

acknowledged(UpTo, #client{flight = Flight, accepted = Accepted, owed = Owed, said = Said} = C) ->
    Is = case UpTo > Said of true -> fault({never_said, UpTo}, C); false -> C end,
    {Has, Left} = lists:partition(fun({Seq, _}) -> Seq =< UpTo end, Flight),
    Is#client{flight = Left, owed = Owed ++ [Body || {_, Body} <- Has], accepted = max(UpTo, Accepted)}.

fault(Fault, #client{faults = Faults} = C) -> C#client{faults = [Fault | Faults]}.

client(Name, #world{clients = Clients}) -> maps:get(Name, Clients, #client{name = Name, pid = none}).

put_client(#client{name = Name} = C, #world{clients = Clients} = W) -> W#world{clients = Clients#{Name => C}}.

with_client(Name, Fun, W) ->
    case client(Name, W) of
        #client{pid = none} -> W;
        C -> {Next, Told} = Fun(C, W), put_client(Next, Told)
    end.

%% All that is under way.
arrived(#world{channels = Channels, held = [], late = Late} = W) when map_size(Channels) =:= 0, map_size(Late) =:= 0 -> W;
arrived(#world{channels = Channels, held = [_ | _]} = W) when map_size(Channels) =:= 0 -> arrived(step(sync, W));
arrived(W) -> arrived(step({arrive, 0}, W)).

%%% The end

%% All are back, and all that is under way arrives. Refused messages are said again.
healed(#world{clients = Clients} = W) ->
    settled(lists:foldl(fun(Name, Acc) -> step({back, Name}, Acc) end, W, maps:keys(Clients)), 400).

settled(#world{over = true} = W, 0) -> W;
settled(W, 0) -> W;
settled(#world{channels = Channels} = W, N) when map_size(Channels) > 0 ->
    settled(step(sync, step({arrive, 0}, W)), case map_size(Channels) of 0 -> N - 1; _ -> N end);
settled(#world{held = [_ | _]} = W, N) -> settled(step(sync, W), N);
settled(#world{late = Late} = W, N) when map_size(Late) > 0 -> settled(step({arrive, 0}, W), N);
settled(W, N) ->
    Again = maps:fold(fun(_, #client{flight = [_ | _] = Flight, link = Link} = C, Acc) when is_pid(Link) -> spoken(Flight, C, Acc);
                         (_, #client{inc = Inc, link = none, name = Name, ended = []}, Acc) when Inc =/= none -> asked(Name, Acc);
                         (_, _, Acc) -> Acc end, W, W#world.clients),
    settled(step({later, 200}, Again), N - 1).

%% What became of it.
verdict(#world{clients = Clients, chat = Chat, session = Session, rows = Rows, over = Over, core = Core} = W) ->
    {Row, _} = im_chat_table:apply({peek, Session}, Chat),
    #{over => Over, process => W#world.self, row => Row, rows => Rows, info => case Core of none -> none; _ -> im_chat_session_core:info(Core) end,
      beat_in => case W#world.beat of infinity -> infinity; Beat -> Beat - W#world.now end,
      clients => maps:map(fun(_, C) -> #{said => C#client.said, accepted => C#client.accepted, delivered => C#client.delivered, owed => C#client.owed, before => C#client.before, flight => length(C#client.flight),
                                         received => C#client.received, presence => C#client.presence, refused => C#client.refused,
                                         ended => C#client.ended, faults => C#client.faults, pid => C#client.pid}
                          end, Clients)}.

sent(#world{sent = Sent}) -> Sent.
