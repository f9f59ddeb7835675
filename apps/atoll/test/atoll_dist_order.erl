%% SPDX-License-Identifier: Apache-2.0
%% Senders on one node, receivers on another: each signal of a sender to a receiver has
%% the next number, whatever way it is sent and however large it is, and the news that the
%% sender is dead comes after all of them. Receivers answer, and their answers are in order
%% as well.
-module(atoll_dist_order).

-export([receivers/2, run/4, answers/4, server/1, named/1, watch/3, die/1]).
-export([receiver/2, sender/5]).

%% The suite has its own limit for each case.
-define(MS, 600000).

%% On the receivers' node: so many, of which each knows how many senders there will be.
receivers(Count, Senders) ->
    Self = self(),
    Pids = [spawn(fun() -> ?MODULE:receiver(I, Senders) end) || I <- lists:seq(1, Count)],
    [begin Pid ! {introduce, Self}, receive {Pid, Ways} -> Ways end end || Pid <- Pids].

receiver(I, Senders) ->
    process_flag(trap_exit, true),
    Name = list_to_atom("receiver_" ++ integer_to_list(I)),
    register(Name, self()),
    Alias = alias(),
    receive {introduce, From} -> From ! {self(), {self(), Name, Alias}} end,
    received(#{}, Senders, []).

%% Next: the number that each sender's next message must have.
received(_Next, 0, Wrong) ->
    receive {report, To} -> To ! {self(), Wrong} end;
received(Next, Left, Wrong) ->
    receive
        {start, Sender, How} ->
            _ = watch(How, Sender),
            Sender ! {watched, self()},
            received(Next#{Sender => 1, {watched, How} => Sender}, Left, Wrong);
        {number, Sender, N, Data} ->
            numbered(Sender, N, Data, Next, Left, Wrong);
        {'EXIT', Sender, {number, Sender, N, Data}} ->
            numbered(Sender, N, Data, Next, Left, Wrong);
        {'DOWN', _, process, Of, {done, N}} ->
            received(Next, Left - 1, ended(maps:get({watched, Of}, Next, Of), N, Next) ++ Wrong);
        {'EXIT', Sender, {done, N}} ->
            received(Next, Left - 1, ended(Sender, N, Next) ++ Wrong)
    end.

numbered(Sender, N, Data, Next, Left, Wrong) ->
    %% Small ones, and a few that are as large as what came.
    Sender ! {answer, self(), N, case N rem 10 of 0 -> Data; _ -> <<>> end},
    case Next of
        #{Sender := N} -> received(Next#{Sender := N + 1}, Left, Wrong);
        #{Sender := Other} -> received(Next#{Sender := N + 1}, Left, [{Sender, Other, N} | Wrong])
    end.

watch({_, _} = Name, _Sender) -> monitor(process, Name);
watch(monitor, Sender) -> monitor(process, Sender);
watch(link, Sender) -> link(Sender).

ended(Sender, N, Next) ->
    case Next of
        #{Sender := Is} when Is =:= N + 1 -> [];
        #{Sender := Is} -> [{ended_before, Sender, Is}]
    end.

%% On the senders' node: what was out of order, as the receivers say, and as the senders
%% say of the answers.
run(Receivers, Senders, Times, Seed) ->
    Self = self(),
    Pids = [spawn(fun() -> ?MODULE:sender(I, Receivers, Times, Seed, Self) end) || I <- lists:seq(1, Senders)],
    Answers = lists:append([receive {Pid, Wrong} -> Wrong after ?MS -> [timeout] end || Pid <- Pids]),
    [Answers | [
        begin
            Pid ! {report, self()},
            receive {Pid, Wrong} -> Wrong after ?MS -> timeout end
        end
     || {Pid, _, _} <- Receivers
    ]].

sender(I, Receivers, Times, Seed, Report) ->
    _ = rand:seed(exsss, {Seed, I, Seed}),
    Name = list_to_atom("sender_" ++ integer_to_list(I)),
    register(Name, self()),
    How = lists:nth(1 + I rem 3, [monitor, link, {Name, node()}]),
    _ = [Pid ! {start, self(), How} || {Pid, _, _} <- Receivers],
    lists:foreach(fun({Pid, _, _}) -> receive {watched, Pid} -> ok end end, Receivers),
    Next = maps:from_list([{Pid, 1} || {Pid, _, _} <- Receivers]),
    {_, Wrong} = lists:foldl(
        fun(N, Answers) ->
            _ = [send(Ways, N, How) || Ways <- Receivers],
            answers(Answers)
        end,
        {Next, []},
        lists:seq(1, Times)
    ),
    Report ! {self(), Wrong},
    exit({done, Times}).

%% Those that are there; its death must be close behind what it sent.
answers({Next, Wrong}) ->
    receive
        {answer, Pid, N, _} ->
            case Next of
                #{Pid := N} -> answers({Next#{Pid := N + 1}, Wrong});
                #{Pid := Other} -> answers({Next#{Pid := N + 1}, [{Pid, Other, N} | Wrong]})
            end
    after 0 -> {Next, Wrong}
    end.

send({Pid, Name, Alias}, N, How) ->
    Message = {number, self(), N, data(rand:uniform(100))},
    _ =
        case rand:uniform(10) of
            Way when Way =< 3 -> Pid ! Message;
            Way when Way =< 6 -> {Name, node(Pid)} ! Message;
            Way when Way =< 9 -> Alias ! Message;
            _ -> exit(Pid, Message)
        end,
    %% Links and monitors between.
    case rand:uniform(6) of
        1 -> demonitor(monitor(process, Pid));
        2 -> demonitor(monitor(process, {Name, node(Pid)}));
        3 when How =/= link -> link(Pid), unlink(Pid);
        _ -> true
    end.

data(Percent) when Percent > 99 -> binary:copy(<<1>>, 1000000 + rand:uniform(2000000));
data(Percent) when Percent > 92 -> binary:copy(<<2>>, 10000 + rand:uniform(190000));
data(_) -> binary:copy(<<3>>, 100 + rand:uniform(2000)).

%% Callers of servers over there that give one answer and stop: how many were answered.
answers(Node, Callers, Times, Bytes) ->
    Self = self(),
    Pids = [
        spawn(fun() ->
            Name = list_to_atom("server_" ++ integer_to_list(I)),
            Self ! {self(), length([x || T <- lists:seq(1, Times), answered(Node, Name, T, Bytes)])}
        end)
     || I <- lists:seq(1, Callers)
    ],
    lists:sum([receive {Pid, N} -> N after ?MS -> 0 end || Pid <- Pids]).

answered(Node, Name, T, Bytes) ->
    Pid = spawn(Node, fun() -> ?MODULE:server(Name) end),
    Ref = monitor(process, Pid),
    started(Pid, Ref),
    Answer = try gen_server:call({Name, Node}, {T, Bytes}, 30000) of {T, Data} -> byte_size(Data) =:= Bytes catch exit:_ -> false end,
    receive {'DOWN', Ref, process, Pid, _} -> Answer end.

started(Pid, Ref) ->
    Pid ! {are_you_there, self(), Ref},
    receive {Ref, yes} -> ok end.

server(Name) ->
    register(Name, self()),
    receive {are_you_there, From, Ref} -> From ! {Ref, yes} end,
    receive {'$gen_call', Who, {T, Bytes}} -> gen_server:reply(Who, {T, binary:copy(<<0>>, Bytes)}) end.

%% So many named processes that die when they are told.
named(Count) ->
    Self = self(),
    [
        begin
            Pid = spawn(fun() -> register(name(I), self()), Self ! {ready, I}, receive die -> ok end end),
            receive {ready, I} -> Pid end
        end
     || I <- lists:seq(1, Count)
    ].

name(I) -> list_to_atom("named_" ++ integer_to_list(I)).

%% Monitors all of them by name, has them die, and counts the news; in how many
%% milliseconds they came.
watch(Node, Count, Pids) ->
    Refs = [monitor(process, {name(I), Node}) || I <- lists:seq(1, Count)],
    Started = erlang:monotonic_time(millisecond),
    ok = erpc:call(Node, ?MODULE, die, [Pids]),
    Downs = length([x || Ref <- Refs, receive {'DOWN', Ref, process, _, normal} -> true after ?MS -> false end]),
    {Downs, erlang:monotonic_time(millisecond) - Started}.

die(Pids) ->
    [Pid ! die || Pid <- Pids],
    ok.
