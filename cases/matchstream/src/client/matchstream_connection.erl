%% SPDX-License-Identifier: Apache-2.0
%% @doc A connection of a client, from its greeting to its end.
%%
%% Promised: who says nothing in time, too much, or what is not understood, is told so with an ERROR and closed. A client that
%% follows a match gets a status first and then each event after it once, in order, and after the last one the end. If
%% more events than a bound wait for it, it is told that it reads too slowly; one that takes nothing for a while is closed. No other client waits for it:
%% what goes to a connection waits in its own process.
%%
%% It is one module, though long, since each of its steps may be the last one of the same socket.
-module(matchstream_connection).
-behaviour(gen_server).

-export([start_link/2, take/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {
    socket :: gen_tcp:socket(),
    waiting :: pos_integer(),
    request_ms :: pos_integer(),
    %% what came of the line, and how much came in all
    line = <<>> :: binary(),
    came = 0 :: non_neg_integer(),
    timer = none :: reference() | {timer, term()} | none,
    user = none :: binary() | none,
    %% the match, the number of the last event that was sent, and its outlet
    follows = none :: {matchstream_match:id(), non_neg_integer(), reference() | none} | none,
    is_ending = false :: boolean()
}).

-define(HIBERNATE_MS, 1000).
%% What a client says after its request is thrown away, up to so much.
-define(CAME, 2048).
%% So much is read at the end, so that the last sentence is not lost.
-define(DRAIN_MS, 1000).
-define(AGAIN_MS, 100).
%% So many events are read of the store at a time: a client may ask for ten thousand, and take none.
-define(PART, 64).

%% @doc The process of a socket, which is not its own yet.
-spec start_link(matchstream:settings(), gen_tcp:socket()) -> gen_server:start_ret().
start_link(Settings, Socket) ->
    gen_server:start_link(?MODULE, {Settings, Socket}, [{hibernate_after, ?HIBERNATE_MS} || matchstream_switches:is_on(hibernate)]).

%% @doc The socket is its own now.
-spec take(pid()) -> ok.
take(Connection) -> gen_server:cast(Connection, take).

%% @private
-spec init({matchstream:settings(), gen_tcp:socket()}) -> {ok, #state{}}.
init({#{waiting := Waiting, request_ms := RequestMs}, Socket}) ->
    %% Else it would not count itself off.
    _ = process_flag(trap_exit, true),
    ok = matchstream_count:add(connections, 1),
    S = #state{socket = Socket, waiting = Waiting, request_ms = RequestMs},
    case matchstream_switches:is_on(init) of
        true -> {ok, S};
        false -> {ok, begun(S)}
    end.

begun(#state{socket = Socket, request_ms = Ms} = S) ->
    log("a client has connected", Socket),
    _ = gen_tcp:send(Socket, matchstream_protocol:greeting()),
    S#state{timer = timer(Ms)}.

timer(Ms) ->
    case matchstream_switches:is_on(timers) of
        true -> erlang:send_after(Ms, self(), late);
        false -> {ok, Timer} = timer:send_after(Ms, late), {timer, Timer}
    end.

cancelled(none) -> ok;
cancelled({timer, Timer}) -> {ok, cancel} = timer:cancel(Timer), ok;
cancelled(Timer) -> _ = erlang:cancel_timer(Timer), ok.

log(What, About) -> _ = [logger:notice("~s: ~0tP", [What, About, 20]) || not matchstream_switches:is_on(logging)], ok.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _, _) -> error({no_such_call, Request}).

%% @private
-spec handle_cast(take, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_cast(take, S) ->
    active(case matchstream_switches:is_on(init) of true -> begun(S); false -> S end).

active(#state{socket = Socket} = S) ->
    case inet:setopts(Socket, [{active, once}]) of
        ok -> {noreply, S};
        {error, _} -> {stop, {shutdown, closed}, S}
    end.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({matchstream, _, _, _} = Told, S) -> told(Told, S);
handle_info({tcp, _, _}, #state{is_ending = true} = S) -> active(S);
handle_info({tcp, _, Bytes}, #state{follows = none, line = Line} = S) -> line(S#state{line = <<Line/binary, Bytes/binary>>});
handle_info({tcp, _, Bytes}, #state{came = Came} = S) when Came + byte_size(Bytes) > ?CAME -> ending("Nothing more is expected of a client than its request.", S);
handle_info({tcp, _, Bytes}, #state{came = Came} = S) -> active(S#state{came = Came + byte_size(Bytes)});
handle_info({tcp_closed, _}, S) -> {stop, {shutdown, closed}, S};
handle_info({tcp_error, _, _}, S) -> {stop, {shutdown, closed}, S};
handle_info(late, #state{follows = none, is_ending = false} = S) -> ending("Nothing was asked for in time.", S);
handle_info(late, S) -> {noreply, S};
handle_info({'DOWN', Ref, process, _, _}, #state{follows = {Id, Seq, Ref}} = S) ->
    _ = erlang:send_after(?AGAIN_MS, self(), join),
    {noreply, S#state{follows = {Id, Seq, none}}};
handle_info(join, #state{follows = {_, _, none}, is_ending = false} = S) -> joined_again(S);
handle_info(drained, S) -> {stop, {shutdown, ended}, S};
handle_info({'EXIT', Parent, Why}, S) when is_pid(Parent) -> {stop, Why, S};
%% The socket's, which says so itself; an outlet that it has left; what was meant for it before its end began.
handle_info({'EXIT', Port, _}, S) when is_port(Port) -> {noreply, S};
handle_info({gen_event_EXIT, _, _}, S) -> {noreply, S};
handle_info({'DOWN', _, process, _, _}, S) -> {noreply, S};
handle_info(join, S) -> {noreply, S}.

line(#state{line = Line} = S) ->
    Most = matchstream_protocol:line_bytes(),
    case binary:split(Line, <<"\n">>) of
        [One | _] when byte_size(One) >= Most -> ending(io_lib:format("A line has at most ~b bytes.", [Most]), S);
        [_] -> active(S);
        [One, _] -> requested(matchstream_protocol:request(string:trim(One, trailing, "\r")), S#state{line = <<>>})
    end.

requested({error, Sentence}, S) -> ending(Sentence, S);
requested({ok, {first, User}}, S) ->
    case matchstream:running() of
        {ok, Id} -> follow(Id, S#state{user = User});
        {error, unknown_match} -> ending("There is no match to watch.", S);
        {error, unavailable} -> unjoined(unavailable, S)
    end;
requested({ok, {match, User, Id}}, S) -> follow(Id, S#state{user = User});
requested({ok, {rest, User, Id, After}}, S) -> rest(Id, After, S#state{user = User}).

follow(Id, S) ->
    case join(Id, 0) of
        {ok, Ref, {Seq, Status, IsRunning}} ->
            Following = following({Id, Seq, Ref}, S),
            case {gen_tcp:send(S#state.socket, Status), IsRunning} of
                {ok, true} -> active(Following);
                {ok, false} -> ended(Following);
                {{error, _}, _} -> {stop, {shutdown, closed}, Following}
            end;
        {error, Why} -> unjoined(Why, S)
    end.

%% Who says what it has gets no status: that would have what it knows.
rest(Id, After, S) ->
    case join(Id, After) of
        {ok, _, {Seq, _, _}} when Seq < After -> ending(io_lib:format("The match has no event ~b.", [After]), S);
        {ok, Ref, {Seq, _, IsRunning}} ->
            case missed(Seq + 1, following({Id, After, Ref}, S)) of
                {noreply, #state{is_ending = false} = Following} when IsRunning -> active(Following);
                {noreply, #state{is_ending = false} = Following} -> ended(Following);
                Ended -> Ended
            end;
        {error, Why} -> unjoined(Why, S)
    end.

following(Follows, #state{timer = Timer, user = User} = S) ->
    ok = cancelled(Timer),
    ok = matchstream_record:note(User, watch),
    ok = matchstream_count:add(clients, 1),
    S#state{follows = Follows, timer = none}.

unjoined(unavailable, S) -> ending("The matches cannot be read now: please try again later.", S);
unjoined(Why, S) -> ending(matchstream:format_error(Why), S).

%% The match as it stands, which has so many events at least if there are so many.
join(Id, Least) ->
    Joined = matchstream_lives:with(Id, fun(Live) ->
        Ref = matchstream_outlet:join(self(), matchstream_live:outlets(Live)),
        Stand = case matchstream_switches:is_on(lookups) andalso matchstream_lives:stand(Id) of
            {_, _, _} = Known -> Known;
            _ -> matchstream_live:stand(Live)
        end,
        {ok, {Ref, if element(1, Stand) < Least -> matchstream_live:look(Live); true -> Stand end}}
    end),
    case Joined of
        {ok, {Ref, Stand}} -> {ok, Ref, Stand};
        {error, _} = Error -> Error
    end.

%% The process of the match was started again: what was missed is read.
joined_again(#state{follows = {Id, Seq, none}} = S) ->
    case join(Id, Seq) of
        {ok, Ref, {Now, _, _}} -> missed(Now + 1, S#state{follows = {Id, Seq, Ref}});
        {error, _} ->
            _ = erlang:send_after(?AGAIN_MS, self(), join),
            {noreply, S}
    end.

told(_, #state{is_ending = true} = S) -> {noreply, S};
told({matchstream, Seq, _, _}, #state{follows = {_, Before, _}} = S) when Seq =< Before -> {noreply, S};
told({matchstream, Seq, Is, IsLast} = Told, #state{follows = {Id, Before, Ref}} = S) ->
    case is_slow(S) of
        true -> slow(S);
        false when Seq =:= Before + 1 -> sent(Is, IsLast, S#state{follows = {Id, Seq, Ref}});
        false ->
            case missed(Seq, S) of
                {noreply, Next} -> told(Told, Next);
                Stop -> Stop
            end
    end;
told(_, S) -> {noreply, S}.

is_slow(#state{waiting = Most}) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    Waiting > Most.

slow(S) ->
    ok = matchstream_count:add(slow, 1),
    ending("This client reads too slowly.", S).

sent(Is, IsLast, #state{socket = Socket} = S) ->
    log("an event is sent", Is),
    case gen_tcp:send(Socket, case Is of #{} -> matchstream_protocol:event(Is); _ -> Is end) of
        ok ->
            ok = matchstream_count:add(delivered, 1),
            case IsLast of
                true -> ended(S);
                false -> {noreply, S}
            end;
        {error, timeout} ->
            ok = matchstream_count:add(slow, 1),
            {stop, {shutdown, slow}, S};
        {error, _} -> {stop, {shutdown, closed}, S}
    end.

%% Events up to that one, without it.
missed(Seq, #state{follows = {_, Before, _}} = S) when Seq =< Before + 1 -> {noreply, S};
missed(Seq, #state{follows = {Id, Before, _}} = S) ->
    UpTo = min(Seq - 1, Before + ?PART),
    case matchstream:history(Id, Before, UpTo) of
        {ok, Events} when length(Events) =:= UpTo - Before ->
            case all_sent(Events, S) of
                {noreply, #state{is_ending = false} = Next} -> missed(Seq, Next);
                Ended -> Ended
            end;
        _ -> ending("Some events cannot be read now: please connect again.", S)
    end.

%% Nothing else is done meanwhile, so it is looked between whether too many wait.
all_sent([], S) -> {noreply, S};
all_sent([#{seq := Seq, kind := Kind} = Event | Events], #state{follows = {Id, _, Ref}} = S) ->
    case is_slow(S) orelse sent(Event, matchstream_match:is_end(Kind), S#state{follows = {Id, Seq, Ref}}) of
        true -> slow(S);
        {noreply, #state{is_ending = false} = Next} -> all_sent(Events, Next);
        Ended -> Ended
    end.

%% The end

ending(Sentence, #state{socket = Socket} = S) ->
    ok = matchstream_count:add(refused, 1),
    _ = inet:setopts(Socket, [{send_timeout, ?DRAIN_MS}]),
    case gen_tcp:send(Socket, matchstream_protocol:error(Sentence)) of
        ok -> ended(S);
        {error, _} -> {stop, {shutdown, closed}, S}
    end.

ended(#state{socket = Socket} = S) ->
    _ = gen_tcp:shutdown(Socket, write),
    _ = erlang:send_after(?DRAIN_MS, self(), drained),
    active(S#state{is_ending = true, line = <<>>}).

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(Why, #state{socket = Socket, user = User, follows = Follows}) ->
    ok = matchstream_count:add(connections, -1),
    _ = [begin ok = matchstream_count:add(clients, -1), matchstream_record:note(User, leave) end || Follows =/= none],
    %% Else it would be waited for, and what it did not read would be kept until it does.
    _ = [inet:setopts(Socket, [{linger, {true, 0}}]) || Why =/= {shutdown, ended}],
    gen_tcp:close(Socket).
