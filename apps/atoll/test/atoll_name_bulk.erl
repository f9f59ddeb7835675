%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: keeps connections busy with large messages, and the processors
%% with processes that never wait, for a while.
-module(atoll_name_bulk).

-export([sink/0, send/5]).

%% A message that has not arrived by then never will.
-define(ARRIVED_MS, 60000).

%% @doc A process that says of each message that it has come, until it is killed.
-spec sink() -> pid().
sink() -> spawn(fun take/0).

take() ->
    receive
        {From, Ref, Bulk} ->
            From ! {Ref, byte_size(Bulk)},
            take()
    end.

%% @doc So many processes for each sink send it a message of that size as soon as the last one has
%% arrived. Gives how many bytes arrived in that time.
-spec send([pid()], pos_integer(), pos_integer(), Spinning :: non_neg_integer(), Ms :: pos_integer()) -> non_neg_integer().
send(Sinks, Count, Size, Spinning, Ms) ->
    Spinners = [spawn(fun spin/0) || _ <- lists:seq(1, Spinning)],
    Until = erlang:monotonic_time(millisecond) + Ms,
    Bulk = binary:copy(<<7>>, Size),
    Senders = [spawn_monitor(fun() -> exit({sent, send(Sink, Bulk, Until, 0)}) end) || Sink <- Sinks, _ <- lists:seq(1, Count)],
    Bytes = lists:sum([receive {'DOWN', Ref, process, Pid, {sent, Sent}} -> Sent end || {Pid, Ref} <- Senders]),
    _ = [exit(Pid, kill) || Pid <- Spinners],
    Bytes.

send(Sink, Bulk, Until, Sent) ->
    case erlang:monotonic_time(millisecond) < Until of
        true ->
            Ref = monitor(process, Sink),
            Sink ! {self(), Ref, Bulk},
            receive
                {Ref, Size} ->
                    true = demonitor(Ref, [flush]),
                    send(Sink, Bulk, Until, Sent + Size);
                {'DOWN', Ref, process, _, _} ->
                    %% The connection was lost; it is made again.
                    send(Sink, Bulk, Until, Sent)
            after ?ARRIVED_MS -> error(lost)
            end;
        false ->
            Sent
    end.

spin() -> spin().
