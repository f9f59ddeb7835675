%% SPDX-License-Identifier: Apache-2.0
%% @doc Clients that follow a match, so many at once, as load: they know the protocol and nothing else of the service, and understand no event. Each checks at
%% its end that what it got is a status, and then what the history says that came after it, without a gap and in order.
%%
%% Hundreds of connections share a process. They come from several addresses of this machine, since one address has some
%% twenty-eight thousand ports for one port of the service.
-module(matchstream_viewers).

-export([start/1, connected/2, ended/2, judge/2, parse_addresses/1]).

-export_type([options/0, viewers/0, seen/0, verdict/0]).

-type options() :: #{
    host := inet:ip_address(),
    ports := [inet:port_number(), ...],
    match := matchstream_match:id() | first,
    count := pos_integer(),
    %% so many connect at a time
    at_once := pos_integer(),
    %% from which addresses, by turns
    from => [inet:ip_address(), ...]
}.

-type viewers() :: #{pids := [pid()], count := pos_integer()}.

-type seen() :: #{
    status := binary() | none,
    %% their hash, and when each came, microseconds of the system's clock, the last first
    hash := non_neg_integer(), at := [integer()],
    last := binary() | none,
    failed := none | {connect | read, term()} | {told, binary()} | bad
}.

-type verdict() :: #{
    clients := non_neg_integer(), connected := non_neg_integer(), complete := non_neg_integer(),
    %% clients that got another sequence than the history has
    wrong := non_neg_integer(),
    %% ended before the last event, or never began
    cut := non_neg_integer(), refused := non_neg_integer(), unconnected := non_neg_integer(),
    received := non_neg_integer(),
    %% from when a watcher sent an event to when a client had it, microseconds, sorted
    latencies := [integer()]
}.

-define(GROUP, 200).
-define(CONNECT_MS, 20000).

%% @doc Begins to connect them; the caller hears {@link connected/2} and {@link ended/2}.
-spec start(options()) -> viewers().
start(#{count := Count, at_once := AtOnce} = Options) ->
    Owner = self(),
    Parallel = max(1, min(AtOnce, 200)),
    %% Each process connects its own, as many processes at a time as connections are to be at once.
    Gate = spawn_link(fun() -> gate(Parallel) end),
    Pids = [
        spawn_link(fun() -> group(Owner, Gate, lists:seq(First, min(First + ?GROUP - 1, Count)), Options) end)
     || First <- lists:seq(1, Count, ?GROUP)
    ],
    #{pids => Pids, count => Count}.

%% So many may connect at a time.
gate(0) -> receive done -> gate(1) end;
gate(Free) ->
    receive
        {may, Pid} -> Pid ! {self(), go}, gate(Free - 1);
        done -> gate(Free + 1)
    end.

group(Owner, Gate, Numbers, #{match := Match, ports := Ports, host := Host} = Options) ->
    From = maps:get(from, Options, [{127, 0, 0, 1}]),
    Connected = [
        {N, connect(Gate, fun() ->
            Local = [{ip, lists:nth(1 + N rem length(From), From)}],
            gen_tcp:connect(Host, lists:nth(1 + N rem length(Ports), Ports), [binary, {active, false}, {recbuf, 8192}, {buffer, 2048} | Local], ?CONNECT_MS)
        end, N, Match)}
     || N <- Numbers
    ],
    Sockets = maps:from_list([{Socket, begun()} || {_, {ok, Socket}} <- Connected]),
    Failed = [(nothing())#{failed := {connect, Why}} || {_, {error, Why}} <- Connected],
    Owner ! {?MODULE, self(), connected, map_size(Sockets), length(Failed)},
    _ = [inet:setopts(Socket, [{active, true}]) || Socket <- maps:keys(Sockets)],
    Seen = follow(Sockets, []),
    Owner ! {?MODULE, self(), ended, Failed ++ Seen},
    ok.

%% It asks at once: the service does not wait for the others of the group.
connect(Gate, Fun, N, Match) ->
    Gate ! {may, self()},
    receive {Gate, go} -> ok end,
    Answer = Fun(),
    Gate ! done,
    User = iolist_to_binary(["viewer.", integer_to_list(N)]),
    _ = [gen_tcp:send(Socket, matchstream_protocol:encode_request(case Match of first -> {first, User}; _ -> {match, User, Match} end)) || {ok, Socket} <- [Answer]],
    Answer.

nothing() -> #{status => none, hash => 0, at => [], last => none, failed => none}.

begun() -> {matchstream_protocol:new(), nothing()}.

follow(Sockets, Done) when map_size(Sockets) =:= 0 -> Done;
follow(Sockets, Done) ->
    receive
        {tcp, Socket, Bytes} ->
            #{Socket := {Decoder, Seen}} = Sockets,
            Now = erlang:system_time(microsecond),
            case matchstream_protocol:decode(Bytes, Decoder) of
                {Frames, bad} ->
                    ok = gen_tcp:close(Socket),
                    follow(maps:remove(Socket, Sockets), [(lists:foldl(fun(F, S) -> got(F, Now, S) end, Seen, Frames))#{failed := bad} | Done]);
                {Frames, Next} ->
                    follow(Sockets#{Socket := {Next, lists:foldl(fun(F, S) -> got(F, Now, S) end, Seen, Frames)}}, Done)
            end;
        {tcp_closed, Socket} ->
            {{_, Seen}, Others} = maps:take(Socket, Sockets),
            follow(Others, [Seen | Done]);
        {tcp_error, Socket, Why} ->
            #{Socket := {Decoder, Seen}} = Sockets,
            follow(Sockets#{Socket := {Decoder, Seen#{failed := {read, Why}}}}, Done)
    end.

got({error, Sentence}, _, Seen) -> Seen#{failed := {told, Sentence}};
got({event, #{kind := <<"status">>}, Bytes}, _, #{status := none} = Seen) -> Seen#{status := Bytes};
got({event, #{kind := Kind}, Bytes}, Now, #{hash := Hash, at := At} = Seen) -> Seen#{hash := hashed(Bytes, Hash), at := [Now | At], last := Kind}.

hashed(Bytes, Hash) -> erlang:phash2({Hash, Bytes}, 1 bsl 32).

%% @doc Waits until each has connected, or could not; how many have.
-spec connected(viewers(), timeout()) -> {ok, {Connected :: non_neg_integer(), Failed :: non_neg_integer()}} | timeout.
connected(#{pids := Pids}, Ms) ->
    gathered(Pids, Ms, fun(Pid, Left) -> receive {?MODULE, Pid, connected, N, Failed} -> {ok, {N, Failed}} after Left -> timeout end end,
             fun(All) -> {lists:sum([N || {N, _} <- All]), lists:sum([F || {_, F} <- All])} end).

%% @doc Waits until the service has closed each; what they have seen.
-spec ended(viewers(), timeout()) -> {ok, [seen()]} | timeout.
ended(#{pids := Pids}, Ms) ->
    gathered(Pids, Ms, fun(Pid, Left) -> receive {?MODULE, Pid, ended, Seen} -> {ok, Seen} after Left -> timeout end end, fun lists:append/1).

gathered(Pids, Ms, Get, Join) ->
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    All = [Get(Pid, max(0, Deadline - erlang:monotonic_time(millisecond))) || Pid <- Pids],
    case lists:member(timeout, All) of
        true -> timeout;
        false -> {ok, Join([Is || {ok, Is} <- All])}
    end.

%% @doc What came of it, beside the whole history of the match; `sent' says when the watcher has sent which event.
-spec judge([seen()], #{about := matchstream_match:about(), history := [matchstream_match:event()], sent := #{pos_integer() => integer()}}) -> verdict().
judge(Seens, #{about := About, history := History, sent := Sent}) ->
    {ok, New} = matchstream_match:new(About),
    Total = length(History),
    %% By the number that the status has.
    {Statuses, _} = lists:mapfoldl(fun(Event, Match) -> Next = matchstream_match:replay(Event, Match), {{matchstream_match:seq(Next), status(Next)}, Next} end, New, History),
    ByStatus = maps:from_list([{Status, Seq} || {Seq, Status} <- [{0, status(New)} | Statuses]]),
    Texts = [matchstream_protocol:event(Event) || Event <- History],
    Hashes = maps:from_list([{After, lists:foldl(fun hashed/2, 0, lists:nthtail(After, Texts))} || After <- lists:seq(0, Total)]),
    Words = [{word(Seen, ByStatus, Hashes, Total), Seen} || Seen <- Seens],
    Count = fun(Word) -> length([1 || {Is, _} <- Words, Is =:= Word]) end,
    #{
        clients => length(Seens), connected => length(Seens) - Count(unconnected), complete => Count(complete), wrong => Count(wrong), cut => Count(cut),
        refused => Count(refused), unconnected => Count(unconnected), received => lists:sum([length(At) || #{at := At} <- Seens]),
        latencies => lists:sort([
            Came - At
         || {complete, #{at := Times}} <- Words, {Back, Came} <- lists:zip(lists:seq(0, length(Times) - 1), Times), {ok, At} <- [maps:find(Total - Back, Sent)]
        ])
    }.

status(Match) -> matchstream_protocol:event(matchstream_match:status(Match)).

word(#{failed := {connect, _}}, _, _, _) -> unconnected;
word(#{failed := {told, _}}, _, _, _) -> refused;
word(#{status := Status, hash := Hash, at := At, last := Last, failed := none}, ByStatus, Hashes, Total) ->
    case ByStatus of
        #{Status := Seq} when length(At) =:= Total - Seq -> case Hashes of #{Seq := Hash} -> complete; #{} -> wrong end;
        #{Status := _} when Last =/= <<"stop">> -> cut;
        #{} when Status =:= none -> cut;
        #{} -> wrong
    end;
word(_, _, _, _) -> cut.

%% @doc So many addresses of the loopback network, from 127.0.0.2 on.
-spec parse_addresses(pos_integer()) -> [inet:ip_address(), ...].
parse_addresses(Count) -> [{127, 0, N div 250, 2 + N rem 250} || N <- lists:seq(0, Count - 1)].
