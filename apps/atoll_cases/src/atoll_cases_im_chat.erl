%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll im chat': a client to type into, over the messenger's door (cases/im/PROTOCOL.md). What others say goes to standard
%% output, all else to standard error.
%%
%% A lost connection is made again: what was not accepted is said again under its number, and nothing is shown twice. At the end of the
%% input it waits a while until all is accepted, and fails if something was not.
-module(atoll_cases_im_chat).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% Of a peer: what im_client_core:resume() says, and what was said and is not accepted.
-type talk() :: #{mark := term(), next := pos_integer(), accepted := non_neg_integer(), received := non_neg_integer(), pending := [{pos_integer(), binary()}]}.

-record(state, {
    name :: binary(),
    host :: string(),
    port :: inet:port_number(),
    reader :: pid(),
    socket = none :: gen_tcp:socket() | none,
    %% it is logged in now, and was before
    is_in = false :: boolean(),
    was_in = false :: boolean(),
    with = none :: binary() | none,
    talks = #{} :: #{binary() => talk()},
    %% lines that nobody gets
    unsaid = 0 :: non_neg_integer(),
    %% the input has ended, and how long the rest may take
    deadline = infinity :: integer() | infinity
}).

-define(AGAIN_MS, 1000).
-define(REST_MS, 10000).
-define(EVENT_BYTES, 65536).

-spec summary() -> string().
summary() -> "talk with somebody over an instant messenger".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => as, value => "NAME", read => fun name/1, help => "your name"},
        #{name => connect, value => "HOST:PORT", default => "127.0.0.1:5280", read => fun address/1, help => "where the messenger's door is"}
    ].

-spec operands() -> [string()].
operands() -> ["[PEER]"].

-spec examples() -> [string()].
examples() -> ["atoll im chat --as ann", "atoll im chat bob --as ann --connect 127.0.0.1:5280"].

name(Text) ->
    case unicode:characters_to_binary(Text) of
        Name when is_binary(Name), Name =/= <<>>, byte_size(Name) =< 64 -> {ok, Name};
        _ -> {error, "must have 1 to 64 bytes"}
    end.

address(Text) ->
    case string:split(Text, ":", trailing) of
        [[_ | _] = Host, Port] ->
            case string:to_integer(Port) of
                {N, ""} when N > 0, N < 65536 -> {ok, {Host, N}};
                _ -> {error, "must end with a port, 1 to 65535"}
            end;
        _ -> {error, "must be HOST:PORT"}
    end.

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, Operands) when not is_map_key(as, Values); length(Operands) > 1 ->
    {usage, case Operands of [_, _ | _] -> "one peer at most"; _ -> "--as NAME says who you are" end};
run(#{as := Name, connect := {Host, Port}}, Operands) ->
    Owner = self(),
    S = #state{name = Name, host = Host, port = Port, reader = spawn_link(fun() -> read(Owner) end)},
    case connected(S) of
        {ok, Connected} ->
            ok = atoll_cli_io:say("A line is said to the peer. /with NAME changes the peer, /end ends the chat, /quit logs out."),
            loop(case Operands of [] -> Connected; [Peer | _] -> Connected#state{with = unicode:characters_to_binary(Peer)} end);
        {error, Why} ->
            {unable, io_lib:format("No door answers at ~ts:~b: ~ts.", [Host, Port, inet:format_error(Why)])}
    end.

%% One line at a time, when it is wanted.
read(Owner) ->
    receive next -> ok end,
    Owner ! {line, io:get_line("")},
    read(Owner).

connected(#state{host = Host, port = Port} = S) ->
    case gen_tcp:connect(Host, Port, [binary, {packet, line}, {buffer, ?EVENT_BYTES}, {active, once}, {send_timeout, 10000}, {send_timeout_close, true}], 5000) of
        {ok, Socket} -> {ok, send(#{login => S#state.name, resume => resume(S)}, S#state{socket = Socket})};
        {error, _} = Error -> Error
    end.

resume(#state{talks = Talks}) ->
    maps:map(
        fun(_, #{mark := Mark, next := Next, accepted := Accepted, received := Received}) -> #{mark => Mark, said => Next - 1, accepted => Accepted, received => Received} end,
        maps:filter(fun(_, #{mark := Mark, pending := Pending}) -> Mark =/= null orelse Pending =/= [] end, Talks)).

send(_, #state{socket = none} = S) -> S;
send(Request, #state{socket = Socket} = S) ->
    %% One that is closed says so.
    _ = gen_tcp:send(Socket, [im_door_json:encode(Request), $\n]),
    S.

loop(S) ->
    case is_over(S) of
        true ->
            _ = send(#{logout => true}, S),
            over(S#state.unsaid + waiting(S));
        false ->
            receive
                {line, Line} -> line(Line, S);
                {tcp, Socket, Text} ->
                    _ = inet:setopts(Socket, [{active, once}]),
                    {ok, Event} = im_door_json:decode(Text),
                    event(Event, S);
                {tcp_closed, _} -> lost(S);
                {tcp_error, _, _} -> loop(S);
                again ->
                    case connected(S) of
                        {ok, Is} -> loop(Is);
                        {error, _} -> lost(S)
                    end
            after left(S) -> loop(S)
            end
    end.

is_over(#state{deadline = infinity}) -> false;
is_over(#state{deadline = Deadline} = S) ->
    erlang:monotonic_time(millisecond) >= Deadline orelse waiting(S) =:= 0.

waiting(#state{talks = Talks}) -> lists:sum([length(Pending) || #{pending := Pending} <- maps:values(Talks)]).

over(0) -> ok;
over(1) -> {failed, "One line was not accepted."};
over(N) -> {failed, io_lib:format("~b lines were not accepted.", [N])}.

left(#state{deadline = infinity}) -> infinity;
left(#state{deadline = Deadline}) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

lost(#state{is_in = IsIn} = S) ->
    _ = [atoll_cli_io:say("The connection is lost: connecting again.") || IsIn],
    _ = erlang:send_after(?AGAIN_MS, self(), again),
    loop(S#state{socket = none, is_in = false}).

%% What is typed

line(Line, S) when not is_list(Line), not is_binary(Line) -> loop(S#state{deadline = erlang:monotonic_time(millisecond) + ?REST_MS});
line(Line, #state{reader = Reader} = S) ->
    Next = typed(unicode:characters_to_binary(string:trim(Line, both, "\r\n")), S),
    case Next of
        #state{deadline = infinity} -> Reader ! next;
        #state{} -> ok
    end,
    loop(Next).

typed(<<>>, S) -> S;
typed(<<"/quit">>, S) -> S#state{deadline = erlang:monotonic_time(millisecond) + ?REST_MS};
typed(<<"/with ", Peer/binary>>, S) -> S#state{with = Peer};
typed(_, #state{with = none} = S) -> ok = atoll_cli_io:say("To whom? /with NAME says it."), unsaid(1, S);
typed(<<"/end">>, #state{with = Peer} = S) -> send(#{finish => Peer}, S);
typed(<<"/", _/binary>> = Word, S) -> ok = atoll_cli_io:say(["There is no ", Word, ": only /with, /end and /quit."]), S;
typed(Text, #state{with = Peer} = S) ->
    #{next := Next, pending := Pending} = Talk = talk(Peer, S),
    %% It is said after the login if there is none now.
    Said = put_talk(Peer, Talk#{next := Next + 1, pending := Pending ++ [{Next, Text}]}, S),
    case S of
        #state{is_in = true} -> send(#{say => Peer, seq => Next, text => Text}, Said);
        #state{} -> Said
    end.

unsaid(N, #state{unsaid = Before} = S) -> S#state{unsaid = Before + N}.

talk(Peer, #state{talks = Talks}) -> maps:get(Peer, Talks, #{mark => null, next => 1, accepted => 0, received => 0, pending => []}).

put_talk(Peer, Talk, #state{talks = Talks} = S) -> S#state{talks = Talks#{Peer => Talk}}.

%% What the door tells

event(#{<<"event">> := <<"logged_in">>}, #state{reader = Reader, was_in = WasIn, talks = Talks, name = Name} = S) ->
    _ = [begin Reader ! next, atoll_cli_io:say(["Logged in as ", Name, "."]) end || not WasIn],
    Again = [{Peer, Seq, Text} || {Peer, #{pending := Pending}} <- maps:to_list(Talks), {Seq, Text} <- Pending],
    loop(lists:foldl(fun({Peer, Seq, Text}, Is) -> send(#{say => Peer, seq => Seq, text => Text}, Is) end, S#state{is_in = true, was_in = true}, Again));
event(#{<<"event">> := <<"login_refused">>, <<"sentence">> := Sentence}, _) -> {unable, Sentence};
event(#{<<"event">> := <<"error">>, <<"sentence">> := Sentence}, #state{was_in = false}) -> {unable, Sentence};
event(#{<<"event">> := <<"error">>, <<"sentence">> := Sentence}, S) -> said(Sentence, S);
event(#{<<"event">> := <<"connection">>, <<"state">> := <<"lost">>}, S) -> said("The server is lost: another one is looked for.", S);
event(#{<<"event">> := <<"connection">>}, S) -> said("A server is there again.", S);
event(#{<<"event">> := Kind, <<"peer">> := Peer} = Event, S) -> peer(Kind, Event, Peer, talk(Peer, S), S);
event(_, S) -> loop(S).

said(Text, S) -> ok = atoll_cli_io:say(Text), loop(S).

peer(<<"mark">>, #{<<"mark">> := Mark}, Peer, Talk, S) -> loop(put_talk(Peer, Talk#{mark := Mark}, S));
peer(<<"message">>, #{<<"seq">> := Seq, <<"text">> := Text}, Peer, #{received := Received} = Talk, S) when Seq =:= Received + 1 ->
    ok = atoll_cli_io:print([Peer, ": ", printable(Text), $\n]),
    With = case S#state.with of none -> Peer; Is -> Is end,
    loop(send(#{received => Peer, seq => Seq}, put_talk(Peer, Talk#{received := Seq}, S#state{with = With})));
peer(How, #{<<"seq">> := Seq}, Peer, #{pending := Pending, accepted := Accepted} = Talk, S) when How =:= <<"accepted">>; How =:= <<"delivered">> ->
    loop(put_talk(Peer, Talk#{pending := [Is || {At, _} = Is <- Pending, At > Seq], accepted := max(Seq, Accepted)}, S));
peer(<<"refused">>, #{<<"reason">> := <<"full">>, <<"sentence">> := Sentence}, Peer, _, S) -> said([Peer, ": ", Sentence], S);
peer(<<"refused">>, #{<<"seq">> := Seq, <<"reason">> := Reason, <<"sentence">> := Sentence}, Peer, #{pending := Pending, next := Next, accepted := Accepted} = Talk, S) ->
    {Refused, Left} = lists:partition(fun({At, _}) -> At =:= Seq end, Pending),
    Is = case {Reason, Seq} of
        {<<"unsure">>, _} -> Talk#{pending := Left, accepted := max(Seq, Accepted)};
        {_, null} -> Talk;
        %% It was not taken: the next message has its number.
        _ -> Talk#{pending := Left, next := min(Seq, Next)}
    end,
    said([Peer, ": ", Sentence], unsaid(length(Refused), put_talk(Peer, Is, S)));
peer(<<"session">>, #{<<"presence">> := Presence}, Peer, _, S) -> said([Peer, " is ", Presence, "."], S);
peer(<<"presence">>, #{<<"presence">> := Presence}, Peer, _, S) -> said([Peer, " is ", Presence, "."], S);
peer(<<"ended">>, #{<<"reason">> := Reason}, Peer, #{next := Next, pending := Pending} = Talk, S) when Reason =:= <<"receiver_not_found">>; Reason =:= <<"too_many_sessions">> ->
    said([Peer, ": not said, ", string:replace(Reason, "_", " ", all), "."], put_talk(Peer, Talk#{mark := null, received := 0, pending := [], accepted := Next - 1}, unsaid(length(Pending), S)));
peer(<<"ended">>, #{<<"reason">> := Reason}, Peer, Talk, S) ->
    said([Peer, ": the chat has ended (", Reason, ")."], put_talk(Peer, Talk#{mark := null, received := 0}, S));
peer(_, _, _, _, S) -> loop(S).

%% What others say moves no cursor.
printable(Text) -> re:replace(Text, "\\p{Cc}", "?", [global, unicode, ucp, {return, binary}]).
