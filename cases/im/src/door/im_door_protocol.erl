%% SPDX-License-Identifier: Apache-2.0
%% @doc What goes over a connection of the door: one JSON object for each request and each event. PROTOCOL.md
%% describes them. Pure.
-module(im_door_protocol).

-export([request/1, event/1, error/1]).

-export_type([request/0]).

-type request() ::
    {login, im_client_core:name(), im_client_core:resume() | none}
    | ping
    | im_client:action().

-define(NAME_BYTES, 64).
%% Peers, and numbers, that a page may go on with.
-define(RESUMED, 1000).
-define(PENDING, 2000).

%% @doc A request, or a sentence that says what is wrong with it.
-spec request(binary()) -> {ok, request()} | {error, unicode:chardata()}.
request(Text) ->
    case im_door_json:decode(Text) of
        {ok, #{} = Object} ->
            case [Verb || Verb <- [<<"login">>, <<"chat">>, <<"say">>, <<"received">>, <<"finish">>, <<"logout">>, <<"ping">>], is_map_key(Verb, Object)] of
                [Verb] -> caught(fun() -> request(Verb, maps:get(Verb, Object), Object) end);
                [] -> {error, "The request has none of login, chat, say, received, finish, logout and ping."};
                [One, Two | _] -> {error, ["The request has both ", One, " and ", Two, "."]}
            end;
        {ok, _} -> {error, "A request is an object."};
        error -> {error, "The request is no JSON."}
    end.

caught(Fun) ->
    try {ok, Fun()} catch throw:{wrong, Sentence} -> {error, Sentence} end.

request(<<"login">>, Name, Object) -> {login, name("login", Name), resume(maps:get(<<"resume">>, Object, none))};
request(<<"chat">>, Peer, _) -> {chat, name("chat", Peer)};
request(<<"finish">>, Peer, _) -> {finish, name("finish", Peer)};
request(<<"received">>, Peer, Object) -> {received, name("received", Peer), number("seq", Object)};
request(<<"say">>, Peer, Object) ->
    Seq = case Object of
        #{<<"seq">> := _} -> number("seq", Object);
        #{} -> next
    end,
    case Object of
        #{<<"text">> := Body} when is_binary(Body), Seq =/= 0 -> {say, name("say", Peer), Seq, Body, none};
        #{<<"text">> := Body} when is_binary(Body) -> wrong("seq is to be 1 or more.");
        #{} -> wrong("say needs a text.")
    end;
request(<<"logout">>, _, _) -> logout;
request(<<"ping">>, _, _) -> ping.

name(_, Name) when is_binary(Name), Name =/= <<>>, byte_size(Name) =< ?NAME_BYTES ->
    case re:run(Name, "\\p{Cc}|^\\s|\\s$", [unicode, ucp, {capture, none}]) of
        nomatch -> Name;
        match -> wrong("A name has no control characters, and no spaces at its ends.")
    end;
name(Verb, Name) when is_binary(Name) -> wrong(io_lib:format("~s needs a name of 1 to ~b bytes.", [Verb, ?NAME_BYTES]));
name(Verb, _) -> wrong([Verb, " needs a name, which is a text."]).

number(Key, Object) ->
    case maps:get(list_to_binary(Key), Object, none) of
        N when is_integer(N), N >= 0, N < 1 bsl 53 -> N;
        none -> wrong([Key, " is missing."]);
        _ -> wrong([Key, " is to be a whole number, 0 or more."])
    end.

resume(none) -> none;
resume(null) -> none;
resume(#{} = Peers) when map_size(Peers) =< ?RESUMED ->
    maps:from_list([{name("resume", Peer), resumed(Kept)} || {Peer, Kept} <- maps:to_list(Peers)]);
resume(#{}) -> wrong(io_lib:format("resume has more than ~b peers.", [?RESUMED]));
resume(_) -> wrong("resume is to be an object.").

resumed(#{} = Kept) ->
    {Said, Accepted, Received} = {number("said", Kept), number("accepted", Kept), number("received", Kept)},
    _ = [wrong(io_lib:format("said is to be accepted, or up to ~b more.", [?PENDING])) || Said < Accepted orelse Said - Accepted > ?PENDING],
    #{mark => mark(maps:get(<<"mark">>, Kept, null)), said => Said, accepted => Accepted, received => Received};
resumed(_) -> wrong("resume has an object for each peer.").

mark(null) -> none;
mark([Inc, OutBase, null]) when is_integer(Inc), is_integer(OutBase) -> {Inc, OutBase, none};
mark([Inc, OutBase, InBase]) when is_integer(Inc), is_integer(OutBase), is_integer(InBase) -> {Inc, OutBase, InBase};
mark(_) -> wrong("mark is to be what a mark event gave, or null.").

-spec wrong(unicode:chardata()) -> no_return().
wrong(Sentence) -> throw({wrong, Sentence}).

%% @doc What happened, as a text.
-spec event(im_client_core:told() | pong) -> iodata().
event(pong) -> encode(#{event => pong});
event({logged_in, Peers}) -> encode(#{event => logged_in, peers => Peers});
event({login_refused, already_logged_in}) -> encode(#{event => login_refused, reason => already_logged_in, sentence => <<"Somebody else is logged in with this name.">>});
event(logged_out) -> encode(#{event => logged_out});
event({mark, Peer, {Inc, OutBase, InBase}}) -> encode(#{event => mark, peer => Peer, mark => [Inc, OutBase, case InBase of none -> null; _ -> InBase end]});
event({session, Peer, Presence}) -> encode(#{event => session, peer => Peer, presence => Presence});
event({message, Peer, Seq, Body, _}) -> encode(#{event => message, peer => Peer, seq => Seq, text => utf8(Body)});
event({How, Peer, UpTo}) when How =:= accepted; How =:= delivered -> encode(#{event => How, peer => Peer, seq => UpTo});
event({refused, Peer, Seq, Reason}) ->
    {Word, Sentence} = reason(Reason),
    encode(#{event => refused, peer => Peer, seq => case Seq of none -> null; _ -> Seq end, reason => Word, sentence => unicode:characters_to_binary(Sentence)});
event({presence, Peer, Presence}) -> encode(#{event => presence, peer => Peer, presence => Presence});
event({ended, Peer, Why}) -> encode(#{event => ended, peer => Peer, reason => Why});
event({connection, Is}) -> encode(#{event => connection, state => Is}).

reason(full) -> {full, "Much is kept already for this peer: the message waits."};
reason(too_long) -> {too_long, "The message is too long."};
reason(too_many_waiting) -> {too_many_waiting, "Too many messages to this peer wait to be accepted."};
reason(unsure) -> {unsure, "The session ended: whether this message arrived is not known."};
reason(yourself) -> {yourself, "A chat with oneself is not possible."};
reason(too_many_sessions) -> {too_many_sessions, "There are too many chats."};
reason(logged_out) -> {logged_out, "The client is logging out."};
reason({gap, Next}) -> {gap, io_lib:format("The next message to this peer has the number ~b.", [Next])}.

%% @doc Something that was wrong.
-spec error(unicode:chardata()) -> iodata().
error(Sentence) -> encode(#{event => error, sentence => unicode:characters_to_binary(Sentence)}).

encode(Object) -> im_door_json:encode(Object).

%% Clients in Erlang may say any bytes.
utf8(Body) ->
    case unicode:characters_to_binary(Body) of
        Body -> Body;
        _ -> unicode:characters_to_binary(Body, latin1)
    end.
