%% SPDX-License-Identifier: Apache-2.0
%% A name server on loopback that answers as it is told, over UDP and TCP at the same
%% port. Its answers are put together here byte by byte, so that what the resolver
%% makes of them is no echo of OTP's own encoder.
%%
%% Each type of record has a list of steps; a query over UDP takes one, and the last one
%% stays. A query over TCP is answered with the records of the step that was taken last.
%% The server is linked to who starts it.
-module(atoll_dns_server).

-export([start/0, stop/1, port/1, set/3, asked/2]).
-export([serve/1, accept/2, answer/2]).

%% Step:
%%   {records, [Data]}     an address, or {Priority, Weight, Port, Target}
%%   {truncated, [Data]}   over UDP nothing but the hint to ask over TCP
%%   nxdomain | servfail   a refusal
%%   garbage               bytes that are no message
%%   silent                no answer at all

start() ->
    {ok, Server} = proc_lib:start_link(?MODULE, serve, [self()]),
    Server.

stop(Server) ->
    Ref = monitor(process, Server),
    unlink(Server),
    exit(Server, shutdown),
    receive
        {'DOWN', Ref, process, Server, _} -> ok
    end.

port(Server) -> call(Server, port).

set(Server, Type, Steps) -> call(Server, {set, Type, Steps}).

%% Waits until it was asked so many times since the start, and gives how each time.
asked(Server, Times) -> call(Server, {asked, Times}).

call(Server, Request) ->
    Ref = monitor(process, Server),
    Server ! {call, self(), Ref, Request},
    receive
        {Ref, Answer} ->
            demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, Server, Reason} ->
            error(Reason)
    after 15000 ->
        error({no_answer, Request})
    end.

serve(Owner) ->
    {Udp, Tcp, Port} = open(),
    Self = self(),
    Acceptor = spawn_link(fun() -> accept(Self, Tcp) end),
    ok = gen_tcp:controlling_process(Tcp, Acceptor),
    ok = proc_lib:init_ack(Owner, {ok, self()}),
    loop(#{udp => Udp, port => Port, steps => #{}, taken => #{}, asked => [], waiting => []}).

%% The port that UDP got may be taken for TCP.
open() ->
    {ok, Udp} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {active, true}]),
    {ok, Port} = inet:port(Udp),
    case gen_tcp:listen(Port, [binary, {ip, {127, 0, 0, 1}}, {packet, 2}, {active, false}]) of
        {ok, Tcp} ->
            {Udp, Tcp, Port};
        {error, eaddrinuse} ->
            ok = gen_udp:close(Udp),
            open()
    end.

loop(#{udp := Udp} = State) ->
    receive
        {udp, Udp, Ip, Port, Query} ->
            {Type, Step, Next} = take(Query, State),
            case answer(Query, Step) of
                none -> ok;
                Bytes -> ok = gen_udp:send(Udp, Ip, Port, Bytes)
            end,
            loop(note({udp, Type}, Next));
        {tcp, Acceptor, Query} ->
            Type = type(Query),
            #{Type := Step} = maps:get(taken, State),
            Acceptor ! {answer, answer(Query, whole(Step))},
            loop(note({tcp, Type}, State));
        {call, From, Ref, port} ->
            From ! {Ref, maps:get(port, State)},
            loop(State);
        {call, From, Ref, {set, Type, Steps}} ->
            From ! {Ref, ok},
            loop(State#{steps := (maps:get(steps, State))#{Type => Steps}});
        {call, From, Ref, {asked, Times}} ->
            loop(tell(State#{waiting := [{From, Ref, Times} | maps:get(waiting, State)]}))
    end.

note(Question, #{asked := Asked} = State) ->
    tell(State#{asked := Asked ++ [Question]}).

tell(#{asked := Asked, waiting := Waiting} = State) ->
    {Ready, Others} = lists:partition(fun({_, _, Times}) -> length(Asked) >= Times end, Waiting),
    _ = [From ! {Ref, Asked} || {From, Ref, _} <- Ready],
    State#{waiting := Others}.

accept(Server, Listen) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    {ok, Query} = gen_tcp:recv(Socket, 0),
    Server ! {tcp, self(), Query},
    receive
        {answer, Bytes} -> ok = gen_tcp:send(Socket, Bytes)
    end,
    ok = gen_tcp:close(Socket),
    accept(Server, Listen).

take(Query, #{steps := Steps, taken := Taken} = State) ->
    Type = type(Query),
    case maps:get(Type, Steps, [nxdomain]) of
        [Step] -> {Type, Step, State#{taken := Taken#{Type => Step}}};
        [Step | Rest] -> {Type, Step, State#{steps := Steps#{Type => Rest}, taken := Taken#{Type => Step}}}
    end.

whole({truncated, Records}) -> {records, Records};
whole(Step) -> Step.

type(Query) ->
    {_Question, Code} = question(Query),
    maps:get(Code, #{1 => a, 28 => aaaa, 33 => srv}).

question(<<_:12/binary, Rest/binary>>) ->
    Length = name_length(Rest, 0),
    <<Question:(Length + 4)/binary, _/binary>> = Rest,
    <<_:Length/binary, Code:16, 1:16>> = Question,
    {Question, Code}.

name_length(<<0, _/binary>>, N) -> N + 1;
name_length(<<L, Rest/binary>>, N) ->
    <<_:L/binary, Left/binary>> = Rest,
    name_length(Left, N + 1 + L).

%% The bytes of an answer to a query.
answer(_Query, silent) -> none;
answer(<<Id:16, _/binary>>, garbage) -> <<Id:16, 16#8180:16, 1:16, 200:16, 7, 9, 255, 255, 255>>;
answer(Query, nxdomain) -> message(Query, 0, 3, []);
answer(Query, servfail) -> message(Query, 0, 2, []);
answer(Query, {truncated, _}) -> message(Query, 1, 0, []);
answer(Query, {records, Records}) -> message(Query, 0, 0, Records).

message(<<Id:16, _:7, Recurse:1, _/binary>> = Query, Truncated, Code, Records) ->
    {Question, _} = question(Query),
    Answers = [record(Record) || Record <- Records],
    iolist_to_binary([
        <<Id:16, 1:1, 0:4, 0:1, Truncated:1, Recurse:1, 1:1, 0:3, Code:4>>,
        <<1:16, (length(Answers)):16, 0:32>>,
        Question
        | Answers
    ]).

%% The name is that of the question, which stands at byte 12.
record(Data) ->
    {Code, Bytes} = data(Data),
    <<3:2, 12:14, Code:16, 1:16, 5:32, (byte_size(Bytes)):16, Bytes/binary>>.

data({A, B, C, D}) when is_integer(D) -> {1, <<A, B, C, D>>};
data({Priority, Weight, Port, Target}) -> {33, <<Priority:16, Weight:16, Port:16, (name(Target))/binary>>};
data(Address) when tuple_size(Address) =:= 8 -> {28, <<<<Part:16>> || Part <- tuple_to_list(Address)>>}.

name("") -> <<0>>;
name(Name) -> iolist_to_binary([[<<(length(L))>>, L] || L <- string:split(Name, ".", all)] ++ [0]).
