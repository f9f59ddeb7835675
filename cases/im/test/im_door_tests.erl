%% SPDX-License-Identifier: Apache-2.0
%% The door on real sockets, before a made-up server.
-module(im_door_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WITHIN, 30000).

door_test_() ->
    [{atom_to_list(Name), {setup, fun() -> set_up(Options) end, fun tear_down/1, fun({Port, Door, _}) -> {timeout, 300, fun() -> ?MODULE:Name(Port, Door) end} end}}
     || {Name, Options} <- [
         {two_talk, #{}},
         {what_comes_while_the_connection_is_lost_is_told_once, #{}},
         {a_name_is_free_again_after_its_connection, #{}},
         {a_wrong_request_is_answered_and_the_connection_stays, #{}},
         {a_line_of_a_megabyte_ends_its_connection_with_a_sentence, #{}},
         {broken_utf8_ends_its_connection_with_a_sentence, #{}},
         {a_message_that_is_begun_is_to_end, #{frame_ms => 200}},
         {who_does_not_log_in_is_closed, #{login_ms => 200}},
         {one_connection_too_many_is_told_so, #{connections => 2}},
         {many_idle_sockets_disturb_nobody, #{login_ms => 3600000}},
         {who_reads_nothing_is_closed_and_others_go_on, #{send_ms => 300}},
         {the_page_and_its_socket, #{}},
         {a_page_of_another_site_may_not_connect, #{}},
         {half_a_frame_is_to_end, #{frame_ms => 200}},
         {a_port_that_is_taken_is_said, #{}}
     ]].

-compile(export_all).
-compile(nowarn_export_all).

set_up(Options) ->
    Server = im_made_up_server:start(),
    {ok, Door} = im_door:start_link(Options#{routers => [node()], client => #{routers_per_node => 1}}),
    unlink(Door),
    {im_door:port(Door), Door, Server}.

tear_down({_, Door, Server}) ->
    Ref = monitor(process, Door),
    exit(Door, shutdown),
    receive {'DOWN', Ref, _, _, _} -> ok after ?WITHIN -> error(still_there) end,
    im_made_up_server:stop(Server).

%% By a process that traps no exits, as a call on a node is.
a_port_that_is_taken_is_said(Port, _) ->
    {_, Ref} = spawn_monitor(fun() -> exit({said, im_door_sup:start(#{routers => [node()], port => Port})}) end),
    receive {'DOWN', Ref, _, _, Is} -> ?assertEqual({said, {error, eaddrinuse}}, Is) after ?WITHIN -> error(no_answer) end,
    ?assertEqual(undefined, whereis(im_door_sup)).

two_talk(Port, _) ->
    {A, B} = {login(Port, <<"ann">>), login(Port, <<"bob">>)},
    send(A, #{say => <<"bob">>, text => <<"Grüße"/utf8>>}),
    ?assertMatch(#{<<"peer">> := <<"ann">>, <<"seq">> := 1, <<"text">> := <<"Grüße"/utf8>>}, event(B, <<"message">>)),
    ?assertMatch(#{<<"peer">> := <<"bob">>, <<"seq">> := 1}, event(A, <<"accepted">>)),
    send(B, #{received => <<"ann">>, seq => 1}),
    ?assertMatch(#{<<"seq">> := 1}, event(A, <<"delivered">>)),
    send(A, #{finish => <<"bob">>}),
    ?assertMatch(#{<<"reason">> := <<"finished">>}, event(B, <<"ended">>)),
    send(A, #{logout => true}),
    _ = event(A, <<"logged_out">>),
    ?assertEqual({error, closed}, gen_tcp:recv(A, 0, ?WITHIN)).

what_comes_while_the_connection_is_lost_is_told_once(Port, _) ->
    {A, B} = {login(Port, <<"ann">>), login(Port, <<"bob">>)},
    [send(A, #{say => <<"bob">>, seq => I, text => integer_to_binary(I)}) || I <- [1, 2]],
    #{<<"mark">> := Mark0} = event(B, <<"mark">>),
    ?assertMatch([_, _, null], Mark0),
    #{<<"mark">> := Mark} = event(B, <<"mark">>),
    [?assertMatch(#{<<"seq">> := I}, event(B, <<"message">>)) || I <- [1, 2]],
    %% It says that it has the first, and has the second too.
    send(B, #{received => <<"ann">>, seq => 1}),
    _ = event(A, <<"delivered">>),
    send(B, #{say => <<"ann">>, seq => 1, text => <<"heard">>}),
    _ = event(A, <<"message">>),
    ok = gen_tcp:close(B),
    ?assertMatch(#{<<"presence">> := <<"away">>}, event(A, <<"presence">>)),
    send(A, #{say => <<"bob">>, seq => 3, text => <<"3">>}),
    Again = connected(Port),
    %% Nobody has told it that its own was accepted.
    send(Again, #{login => <<"bob">>, resume => #{ann => #{mark => Mark, said => 1, accepted => 0, received => 2}}}),
    _ = event(Again, <<"logged_in">>),
    send(Again, #{say => <<"ann">>, seq => 1, text => <<"heard">>}),
    send(Again, #{say => <<"ann">>, seq => 2, text => <<"back">>}),
    ?assertMatch(#{<<"seq">> := 1}, event(Again, <<"accepted">>)),
    ?assertMatch(#{<<"seq">> := 3, <<"text">> := <<"3">>}, event(Again, <<"message">>)),
    ?assertMatch(#{<<"seq">> := 2, <<"text">> := <<"back">>}, event(A, <<"message">>)).

a_name_is_free_again_after_its_connection(Port, _) ->
    A = login(Port, <<"ann">>),
    Second = connected(Port),
    send(Second, #{login => <<"ann">>}),
    ?assertMatch(#{<<"reason">> := <<"already_logged_in">>}, event(Second, <<"login_refused">>)),
    %% One that goes on with something waits until the old connection is noticed to be gone.
    send(Second, #{login => <<"ann">>, resume => #{}}),
    ok = refused_meanwhile(Second, erlang:monotonic_time(millisecond) + ?WITHIN),
    ok = gen_tcp:close(A),
    _ = event(Second, <<"logged_in">>).

%% What is asked before the first refusal goes to the client that asks for its login, so it is asked again until that has come.
refused_meanwhile(Socket, Deadline) ->
    [send(Socket, Request) || Request <- [#{chat => <<"bob">>}, #{ping => true}]],
    {ok, Line} = gen_tcp:recv(Socket, 0, ?WITHIN),
    case jiffy:decode(Line, [return_maps]) of
        #{<<"event">> := <<"error">>, <<"sentence">> := Said} -> ?assertEqual(<<"Nobody is logged in on this connection.">>, Said);
        #{<<"event">> := <<"pong">>} ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            refused_meanwhile(Socket, Deadline)
    end.

a_wrong_request_is_answered_and_the_connection_stays(Port, _) ->
    A = connected(Port),
    [begin
         ok = gen_tcp:send(A, [Line, "\n"]),
         #{<<"sentence">> := Said} = event(A, <<"error">>),
         ?assertEqual(Sentence, Said)
     end || {Line, Sentence} <- [
         {"what", <<"The request is no JSON.">>},
         {"[1]", <<"A request is an object.">>},
         {"{}", <<"The request has none of login, chat, say, received, finish, logout and ping.">>},
         {"{\"login\": 1}", <<"login needs a name, which is a text.">>},
         {"{\"login\": \"\"}", <<"login needs a name of 1 to 64 bytes.">>},
         {"{\"login\": \"a\\u0007\"}", <<"A name has no control characters, and no spaces at its ends.">>},
         {"{\"login\": \"ann\", \"resume\": 7}", <<"resume is to be an object.">>},
         {"{\"login\": \"ann\", \"resume\": {\"bob\": {\"said\": 1, \"accepted\": 2, \"received\": 0}}}", <<"said is to be accepted, or up to 2000 more.">>},
         {"{\"say\": \"bob\"}", <<"say needs a text.">>},
         {"{\"say\": \"bob\", \"text\": \"x\", \"seq\": \"1\"}", <<"seq is to be a whole number, 0 or more.">>},
         {"{\"received\": \"bob\"}", <<"seq is missing.">>},
         {"{\"chat\": \"bob\", \"finish\": \"bob\"}", <<"The request has both chat and finish.">>},
         {"{\"chat\": \"bob\"}", <<"Nobody is logged in on this connection.">>}
     ]],
    send(A, #{login => <<"ann">>}),
    _ = event(A, <<"logged_in">>),
    send(A, #{chat => <<"ann">>}),
    ?assertMatch(#{<<"reason">> := <<"yourself">>}, event(A, <<"refused">>)),
    send(A, #{say => <<"bob">>, text => binary:copy(<<"x">>, 5000)}),
    ?assertMatch(#{<<"reason">> := <<"too_long">>}, event(A, <<"refused">>)),
    _ = login(Port, <<"bob">>),
    send(A, #{say => <<"bob">>, seq => 1, text => <<"x">>}),
    send(A, #{say => <<"bob">>, seq => 3, text => <<"x">>}),
    ?assertMatch(#{<<"reason">> := <<"gap">>}, event(A, <<"refused">>)),
    send(A, #{chat => <<"nobody">>}),
    ?assertMatch(#{<<"reason">> := <<"receiver_not_found">>}, event(A, <<"ended">>)),
    send(A, #{login => <<"ann">>}),
    ?assertMatch(#{<<"sentence">> := <<"This connection is logged in already, as ann.">>}, event(A, <<"error">>)),
    send(A, #{ping => 1}),
    _ = event(A, <<"pong">>).

a_line_of_a_megabyte_ends_its_connection_with_a_sentence(Port, _) ->
    {A, B} = {login(Port, <<"ann">>), login(Port, <<"bob">>)},
    _ = gen_tcp:send(A, binary:copy(<<"x">>, 1 bsl 20)),
    ended(A, <<"A line has at most 65536 bytes.">>),
    well(B, Port).

broken_utf8_ends_its_connection_with_a_sentence(Port, _) ->
    {A, B} = {login(Port, <<"ann">>), login(Port, <<"bob">>)},
    ok = gen_tcp:send(A, [<<"{\"chat\": \"", 255, 254, "\"}\n">>]),
    ended(A, <<"The message is not UTF-8.">>),
    well(B, Port).

a_message_that_is_begun_is_to_end(Port, _) ->
    A = login(Port, <<"ann">>),
    ok = gen_tcp:send(A, "{\"chat\": "),
    ended(A, <<"A message was begun, and its end did not come in time.">>).

who_does_not_log_in_is_closed(Port, _) ->
    ended(connected(Port), <<"There was no login in time.">>).

one_connection_too_many_is_told_so(Port, Door) ->
    {A, B} = {connected(Port), connected(Port)},
    [begin send(Is, #{ping => 1}), _ = event(Is, <<"pong">>) end || Is <- [A, B]],
    ended(connected(Port), <<"Too many connections are open here: please try again later.">>),
    ?assertEqual({2, 1}, im_door:count(Door)).

%% In the deep tier 10,000, or what the files of a process allow, as both ends are in this one.
many_idle_sockets_disturb_nobody(Port, Door) ->
    Many = case atoll_tier:tier() of fast -> 300; deep -> min(10000, (files() - 500) div 2) end,
    {A, B} = {login(Port, <<"ann">>), login(Port, <<"bob">>)},
    Idle = [connected(Port) || _ <- lists:seq(1, Many)],
    send(A, #{say => <<"bob">>, text => <<"still here">>}),
    _ = event(B, <<"message">>),
    well(B, Port),
    {Count, 0} = im_door:count(Door),
    ?assert(Count >= Many),
    [gen_tcp:close(Is) || Is <- Idle].

who_reads_nothing_is_closed_and_others_go_on(Port, Door) ->
    {A, B} = {login(Port, <<"ann">>), login(Port, <<"bob">>)},
    %% It asks for answers and reads none of them.
    flooded(A, iolist_to_binary(lists:duplicate(1000, "{\"ping\": 1}\n")), erlang:monotonic_time(millisecond) + ?WITHIN),
    well(B, Port),
    count(Door, 1, erlang:monotonic_time(millisecond) + ?WITHIN).

files() ->
    case string:trim(os:cmd("ulimit -n")) of
        "unlimited" -> 1 bsl 20;
        N -> list_to_integer(N)
    end.

flooded(Socket, Bytes, Deadline) ->
    case gen_tcp:send(Socket, Bytes) of
        ok -> ?assert(erlang:monotonic_time(millisecond) < Deadline), flooded(Socket, Bytes, Deadline);
        {error, _} -> ok
    end.

count(Door, N, Deadline) ->
    case im_door:count(Door) of
        {N, _} -> ok;
        Other -> ?assert(erlang:monotonic_time(millisecond) < Deadline, Other), receive after 20 -> count(Door, N, Deadline) end
    end.

the_page_and_its_socket(Port, _) ->
    [?assertMatch({match, _}, re:run(get(Port, Path), ["^HTTP/1.1 ", Status, " .*", Type], [dotall])) || {Path, Status, Type} <- [
        {"/", "200", "text/html.*<html"}, {"/im.js", "200", "javascript"}, {"/im.css", "200", "text/css"}, {"/../../etc/passwd", "404", "no such page"}, {"/socket", "426", "WebSockets"}]],
    Web = socket(Port, []),
    A = login(Port, <<"ann">>),
    frame(Web, 1, 1, jiffy:encode(#{login => <<"bob">>})),
    ?assertMatch(#{<<"event">> := <<"logged_in">>}, web_event(Web, <<"logged_in">>)),
    %% A message in two frames, with a ping between.
    <<First:10/binary, Second/binary>> = iolist_to_binary(jiffy:encode(#{say => <<"ann">>, text => binary:copy(<<"long ">>, 100)})),
    frame(Web, 0, 1, First),
    frame(Web, 1, 9, <<"here?">>),
    frame(Web, 1, 0, Second),
    ?assertMatch(#{<<"peer">> := <<"bob">>}, event(A, <<"message">>)),
    frame(Web, 1, 1, <<"{\"ping\": \"", 255, "\"}">>),
    ?assertMatch(#{<<"sentence">> := <<"The message is not UTF-8.">>}, web_event(Web, <<"error">>)).

a_page_of_another_site_may_not_connect(Port, _) ->
    Status = fun(Host, Origin) ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, http_bin}]),
        ok = gen_tcp:send(Socket, ["GET /socket HTTP/1.1\r\nHost: ", Host, "\r\nOrigin: http://", Origin, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"]),
        {ok, {http_response, _, Code, _}} = gen_tcp:recv(Socket, 0, ?WITHIN),
        ok = gen_tcp:close(Socket),
        Code
    end,
    ?assertEqual(403, Status("localhost", "there")),
    %% Its name leads to this machine.
    ?assertEqual(403, Status("there:5280", "there:5280")),
    ?assertEqual([101, 101, 101], [Status(Host, Host) || Host <- ["localhost:5280", "127.0.0.1", "[::1]:5280"]]).

half_a_frame_is_to_end(Port, _) ->
    Web = socket(Port, ["Origin: http://localhost\r\n"]),
    ok = gen_tcp:send(Web, <<16#81, 16#FE, 100:16, 1, 2, 3, 4, "half">>),
    ?assertMatch(#{<<"sentence">> := <<"A message was begun, and its end did not come in time.">>}, web_event(Web, <<"error">>)),
    Long = socket(Port, []),
    ok = gen_tcp:send(Long, <<16#81, 16#FF, 1048576:64, 1, 2, 3, 4>>),
    ?assertMatch(#{<<"sentence">> := <<"A message has at most 65536 bytes.">>}, web_event(Long, <<"error">>)).

%% Help

connected(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {packet, line}, {active, false}, {recbuf, 8192}, {buffer, 65536}]),
    Socket.

login(Port, Name) ->
    Socket = connected(Port),
    send(Socket, #{login => Name}),
    _ = event(Socket, <<"logged_in">>),
    Socket.

send(Socket, Request) -> ok = gen_tcp:send(Socket, [jiffy:encode(Request), "\n"]).

%% The next event of this kind.
event(Socket, Kind) ->
    {ok, Line} = gen_tcp:recv(Socket, 0, ?WITHIN),
    case jiffy:decode(Line, [return_maps]) of
        #{<<"event">> := Kind} = Event -> Event;
        #{<<"event">> := Other} = Event -> ?assertNot(Other =:= <<"error">>, Event), event(Socket, Kind)
    end.

ended(Socket, Sentence) ->
    #{<<"sentence">> := Said} = event(Socket, <<"error">>),
    ?assertEqual(Sentence, Said),
    ?assertEqual({error, closed}, gen_tcp:recv(Socket, 0, ?WITHIN)).

%% It is served as before, and so is a new one.
well(Socket, Port) ->
    send(Socket, #{ping => 1}),
    _ = event(Socket, <<"pong">>),
    ok = gen_tcp:close(login(Port, <<"new">>)).

get(Port, Path) -> asked(Port, ["GET ", Path, " HTTP/1.1\r\nHost: here\r\n\r\n"]).

asked(Port, Request) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    ok = gen_tcp:send(Socket, Request),
    all(Socket, []).

all(Socket, Got) ->
    case gen_tcp:recv(Socket, 0, ?WITHIN) of
        {ok, Bytes} -> all(Socket, [Got, Bytes]);
        {error, closed} -> iolist_to_binary(Got)
    end.

%% The key and its answer are those of RFC 6455, section 1.3.
socket(Port, Headers) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    ok = gen_tcp:send(Socket, ["GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n", Headers, "\r\n"]),
    head(Socket, <<>>),
    Socket.

head(Socket, Got) ->
    case binary:match(Got, <<"\r\n\r\n">>) of
        nomatch -> {ok, Byte} = gen_tcp:recv(Socket, 1, ?WITHIN), head(Socket, <<Got/binary, Byte/binary>>);
        _ -> ?assertMatch({match, _}, re:run(Got, "^HTTP/1.1 101 .*s3pPLMBiTxaQ9kYGzzhZRbK\\+xOo=", [dotall]))
    end.

frame(Socket, Fin, Op, Data0) ->
    Data = iolist_to_binary(Data0),
    Mask = <<7, 77, 177, 17>>,
    Length = case byte_size(Data) of N when N < 126 -> <<N:7>>; N -> <<126:7, N:16>> end,
    Masked = crypto:exor(Data, binary:part(binary:copy(Mask, byte_size(Data) div 4 + 1), 0, byte_size(Data))),
    ok = gen_tcp:send(Socket, <<Fin:1, 0:3, Op:4, 1:1, Length/bitstring, Mask/binary, Masked/binary>>).

web_event(Socket, Kind) ->
    {ok, <<1:1, 0:3, Op:4, 0:1, N0:7>>} = gen_tcp:recv(Socket, 2, ?WITHIN),
    N = case N0 of 126 -> {ok, <<Is:16>>} = gen_tcp:recv(Socket, 2, ?WITHIN), Is; _ -> N0 end,
    Data = case N of 0 -> <<>>; _ -> {ok, Got} = gen_tcp:recv(Socket, N, ?WITHIN), Got end,
    case Op of
        1 ->
            case jiffy:decode(Data, [return_maps]) of
                #{<<"event">> := Kind} = Event -> Event;
                _ -> web_event(Socket, Kind)
            end;
        _ -> web_event(Socket, Kind)
    end.
