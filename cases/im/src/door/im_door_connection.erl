%% SPDX-License-Identifier: Apache-2.0
%% @doc A connection of the door: bytes from a socket become requests to an {@link im_client}, and what that tells becomes
%% events. The first byte says which way they go: lines of JSON, or HTTP, over which come the page and its WebSocket.
%%
%% Promised: who does not log in is closed after a while, with a sentence; so is one that begins a message and does not end it,
%% sends one that is too long or not UTF-8, or reads so slowly that many events wait. A request that is wrong is
%% answered with a sentence, and the connection stays. A client is acknowledged nothing that the other side does not say that it has. When the connection ends so does
%% its client; the messenger keeps what comes meanwhile.
-module(im_door_connection).

-behaviour(gen_server).

-export([start_link/1, take/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0]).

-type options() :: #{
    routers := [node(), ...],
    %% to log in, and to end a message that was begun
    login_ms := pos_integer(),
    frame_ms := pos_integer(),
    %% what a socket may not take of what is sent for so long that it is closed
    send_ms := pos_integer(),
    %% events that may wait for a slow reader
    events := pos_integer(),
    client := im_client:options()
}.

-record(state, {
    options :: options(),
    socket = none :: gen_tcp:socket() | none,
    %% how messages are cut; `begin' before the first byte, `http' in a head, and `ending' when what comes is read no more
    way = 'begin' :: 'begin' | http | {messages, im_door_frame:state()} | ending,
    bytes = <<>> :: binary(),
    %% till a message that was begun is to be there
    frame = none :: reference() | none,
    %% asks a WebSocket whether it is there; it has said something since
    pulse = false :: boolean(),
    is_frames = false :: boolean(),
    %% who has logged in, and until when that is tried again where an old connection may still have the name
    client = none :: {pid() | again, im_client_core:name(), im_client_core:resume() | none, Until :: integer()} | none
}).

-define(AGAIN_MS, 1000).
-define(AGAIN_FOR_MS, 45000).
-define(PULSE_MS, 15000).
%% So much is read, and thrown away, so that the last sentence is not lost.
-define(DRAIN_MS, 3000).

%% @doc Waits for its socket.
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link(?MODULE, Options, [{hibernate_after, 5000}]).

%% @doc The socket, which is its own already.
-spec take(pid(), gen_tcp:socket()) -> ok.
take(Connection, Socket) -> gen_server:cast(Connection, {take, Socket}).

%% @private
-spec init(options()) -> {ok, #state{}}.
init(Options) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{options = Options}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _, _) -> error({no_such_call, Request}).

%% @private
-spec handle_cast({take, gen_tcp:socket()}, #state{}) -> {noreply, #state{}}.
handle_cast({take, Socket}, #state{options = #{send_ms := SendMs, login_ms := LoginMs}} = S) ->
    _ = inet:setopts(Socket, [{send_timeout, SendMs}, {nodelay, true}, {keepalive, true} | keep_alive()]),
    _ = erlang:send_after(LoginMs, self(), login_due),
    {noreply, active(S#state{socket = Socket})}.

%% A host that is gone without a word is noticed after half a minute, where the system can do that (TCP_KEEPIDLE, _INTVL, _CNT).
keep_alive() ->
    case os:type() of
        {unix, linux} -> [{raw, 6, Option, <<Value:32/native>>} || {Option, Value} <- [{4, 15}, {5, 5}, {6, 3}]];
        _ -> []
    end.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_info({tcp, _, _}, #state{way = ending} = S) -> {noreply, active(S)};
handle_info({tcp, _, New}, #state{bytes = Bytes} = S) -> came(S#state{bytes = <<Bytes/binary, New/binary>>, pulse = true});
handle_info({tcp_closed, _}, S) -> over(closed, S);
handle_info({tcp_error, _, Why}, S) -> over(Why, S);
handle_info({im_client, Client, Told}, #state{client = {Client, Name, Resume, Until}} = S) -> told(Told, Name, Resume, Until, S);
handle_info({im_client, _, _}, S) -> {noreply, S};
handle_info({'EXIT', Client, _}, #state{client = {Client, _, _, _}} = S) -> ending("The client of this connection has failed: please connect again.", S);
handle_info({'EXIT', _, _}, S) -> {noreply, S};
handle_info(login_due, #state{client = none, way = Way} = S) when Way =/= ending -> ending("There was no login in time.", S);
handle_info(login_due, S) -> {noreply, S};
handle_info({frame_due, Ref}, #state{frame = Ref} = S) -> ending("A message was begun, and its end did not come in time.", S);
handle_info({frame_due, _}, S) -> {noreply, S};
handle_info(login_again, #state{client = {again, Name, Resume, Until}} = S) -> {noreply, login(Name, Resume, Until, S)};
handle_info(login_again, S) -> {noreply, S};
handle_info(pulse, #state{pulse = false} = S) -> over(silent, S);
handle_info(pulse, S) -> pulse(S);
handle_info(drained, S) -> over(ended, S).

%% Bytes

came(#state{way = 'begin', bytes = <<Letter, _/binary>>} = S) when Letter >= $A, Letter =< $Z -> came(S#state{way = http});
came(#state{way = 'begin'} = S) -> came(S#state{way = {messages, im_door_frame:new(lines)}});
came(#state{way = http, bytes = Bytes, socket = Socket} = S) ->
    case im_door_http:answer(Bytes, is_loopback(inet:sockname(Socket))) of
        more -> {noreply, active(begun(S))};
        {done, Answer} -> ended_with(Answer, S);
        {frames, Answer, Rest} ->
            Frames = S#state{way = {messages, im_door_frame:new(frames)}, bytes = Rest, is_frames = true},
            case gen_tcp:send(S#state.socket, Answer) of
                ok -> {noreply, Is} = pulse(Frames), came(unbegun(Is));
                {error, Why} -> over(Why, S)
            end
    end;
came(#state{bytes = <<>>} = S) -> {noreply, active(unbegun(S))};
came(#state{way = {messages, Way}, bytes = Bytes} = S) ->
    case im_door_frame:take(Bytes, Way) of
        more -> {noreply, active(begun(S))};
        closed -> over(closed, S);
        {ignore, Rest, Next} -> came(unbegun(S#state{bytes = Rest, way = {messages, Next}}));
        {pong_to, Data, Rest, Next} -> came_after(send(im_door_frame:pong(Data), S#state{bytes = Rest, way = {messages, Next}}));
        {text, Text, Rest, Next} -> came_after(requested(Text, S#state{bytes = Rest, way = {messages, Next}}));
        {error, Sentence} -> ending(Sentence, S)
    end.

is_loopback({ok, {{127, _, _, _}, _}}) -> true;
is_loopback({ok, {{0, 0, 0, 0, 0, 0, 0, 1}, _}}) -> true;
is_loopback({ok, {{0, 0, 0, 0, 0, 16#FFFF, High, _}, _}}) -> High bsr 8 =:= 127;
is_loopback(_) -> false.

came_after({noreply, #state{way = ending} = S}) -> {noreply, S};
came_after({noreply, S}) -> came(unbegun(S));
came_after(Stop) -> Stop.

active(#state{socket = Socket} = S) ->
    case inet:setopts(Socket, [{active, once}]) of
        ok -> S;
        %% It is closed already, and says nothing more.
        {error, _} -> self() ! {tcp_closed, Socket}, S
    end.

%% The time of a message counts from its first byte.
begun(#state{frame = none, options = #{frame_ms := Ms}} = S) ->
    Ref = make_ref(),
    _ = erlang:send_after(Ms, self(), {frame_due, Ref}),
    S#state{frame = Ref};
begun(S) -> S.

unbegun(S) -> S#state{frame = none}.

pulse(S) ->
    _ = erlang:send_after(?PULSE_MS, self(), pulse),
    send(im_door_frame:ping(), S#state{pulse = false}).

%% Requests

requested(<<>>, #state{is_frames = false} = S) -> {noreply, S};
requested(Text, #state{client = Client} = S) ->
    case {im_door_protocol:request(Text), Client} of
        {{error, Sentence}, _} -> say(im_door_protocol:error(Sentence), S);
        {{ok, ping}, _} -> say(im_door_protocol:event(pong), S);
        {{ok, {login, Name, Resume}}, none} -> {noreply, login(Name, Resume, erlang:monotonic_time(millisecond) + ?AGAIN_FOR_MS, S)};
        {{ok, {login, _, _}}, {_, Name, _, _}} -> say(im_door_protocol:error(["This connection is logged in already, as ", Name, "."]), S);
        {{ok, Action}, {Pid, _, _, _}} when is_pid(Pid) ->
            ok = gen_server:cast(Pid, Action),
            {noreply, S};
        {{ok, _}, _} -> say(im_door_protocol:error("Nobody is logged in on this connection."), S)
    end.

login(Name, Resume, Until, #state{options = #{routers := Routers, client := Options}} = S) ->
    {ok, Client} = im_client:start_link(Name, Routers, Options#{owner => self(), resume => case Resume of none -> #{}; _ -> Resume end}),
    S#state{client = {Client, Name, Resume, Until}}.

%% Events

%% The connection that was lost may have the name for a while, until that is noticed.
told({login_refused, _} = Told, Name, Resume, Until, S) ->
    case Resume =/= none andalso erlang:monotonic_time(millisecond) < Until of
        true ->
            _ = erlang:send_after(?AGAIN_MS, self(), login_again),
            {noreply, S#state{client = {again, Name, Resume, Until}}};
        false ->
            _ = erlang:send_after(maps:get(login_ms, S#state.options), self(), login_due),
            say(im_door_protocol:event(Told), S#state{client = none})
    end;
told(logged_out, _, _, _, S) -> ended_with(text(im_door_protocol:event(logged_out), S), S#state{client = none});
told(Told, _, _, _, S) -> say(im_door_protocol:event(Told), S).

text(Text, #state{way = {messages, Way}}) -> im_door_frame:text(Text, Way);
text(Text, #state{}) -> [Text, "\n"].

say(Text, #state{way = {messages, _}, options = #{events := Most}} = S) ->
    case process_info(self(), message_queue_len) of
        {message_queue_len, Waiting} when Waiting > Most -> ending("This connection reads too slowly.", S);
        _ -> send(text(Text, S), S)
    end;
say(_, S) -> {noreply, S}.

send(Data, #state{socket = Socket} = S) ->
    case gen_tcp:send(Socket, Data) of
        ok -> {noreply, S};
        {error, Why} -> over(Why, S)
    end.

%% The end

ending(Sentence, #state{is_frames = IsFrames} = S) ->
    ended_with([text(im_door_protocol:error(Sentence), S) | [im_door_frame:closing() || IsFrames]], S).

%% What still comes is read, or the answer would be lost with it.
ended_with(Last, #state{socket = Socket, client = Client} = S) ->
    case gen_tcp:send(Socket, Last) of
        ok ->
            _ = gen_tcp:shutdown(Socket, write),
            _ = [begin unlink(Pid), exit(Pid, shutdown) end || {Pid, _, _, _} <- [Client], is_pid(Pid)],
            _ = erlang:send_after(?DRAIN_MS, self(), drained),
            {noreply, active(S#state{way = ending, bytes = <<>>, frame = none, client = none})};
        {error, Why} ->
            over(Why, S)
    end.

%% What it did not read in time is thrown away: the socket would stay until it reads it.
over(timeout, #state{socket = Socket} = S) ->
    _ = inet:setopts(Socket, [{linger, {true, 0}}]),
    _ = gen_tcp:close(Socket),
    {stop, {shutdown, timeout}, S};
over(Why, S) -> {stop, {shutdown, Why}, S}.
