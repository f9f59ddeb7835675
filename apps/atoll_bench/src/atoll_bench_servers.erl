%% SPDX-License-Identifier: Apache-2.0
%% @doc Which server process of a store does not scale: what each process with a name does on a node while a load runs.
%%
%% Each is looked at again and again: whether it works or could (`running', `runnable'), and how many messages wait for it. A server that is at work in nearly all looks, or for which messages wait on the average, is one
%% behind which callers stand in a row: the load grows, and it does not. So Ghaffari and others found Riak's `rpc' server and its supervisors, by the times of their calls.
%%
%% Promised: nothing is asked of these processes, and no message is sent to them. Not promised: to tell processes without a name apart. Of those that began with the same function the
%% busiest one is shown.
-module(atoll_bench_servers).

-export([start/1, stop/0, merged/1, suspects/1, says/1, format/1]).

-export_type([server/0]).

-type server() :: #{
    name := term(),
    %% Of the looks, in per cent.
    busy := float(),
    %% Messages that wait for it, on the average, and at most.
    waiting := float(),
    waiting_max := non_neg_integer()
}.

-define(EACH_MS, 20).
-define(STOP_MS, 10_000).
%% From which part of the looks on a server has no room for much more, and messages that wait.
-define(BUSY, 80.0).
-define(WAITING, 2.0).

%% @doc Begins to look, on this node, for that long at most.
-spec start(Ms :: pos_integer()) -> ok.
start(Ms) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        true = register(?MODULE, self()),
        _ = process_flag(priority, high),
        _ = erlang:send_after(Ms, self(), over),
        _ = Self ! {self(), begun},
        looking(#{}, 0)
    end),
    receive
        {Pid, begun} ->
            true = demonitor(Ref, [flush]),
            ok;
        {'DOWN', Ref, process, Pid, Why} -> error(Why)
    end.

looking(Seen, N) ->
    receive
        {stop, From, Ref} ->
            _ = From ! {Ref, [server(Name, Sums, N) || {Name, Sums} <- maps:to_list(Seen)]},
            ok;
        over -> ok
    after ?EACH_MS ->
        Now = lists:foldl(fun busiest/2, #{}, processes()),
        looking(maps:fold(fun summed/3, Seen, Now), N + 1)
    end.

server(Name, {Busy, Waiting, Most}, N) ->
    #{name => Name, busy => 100 * Busy / max(1, N), waiting => Waiting / max(1, N), waiting_max => Most}.

summed(Name, {Busy, Waiting}, Seen) ->
    maps:update_with(Name, fun({B, W, Most}) -> {B + Busy, W + Waiting, max(Most, Waiting)} end, {Busy, Waiting, Waiting}, Seen).

%% This process is always at work when it looks.
busiest(Pid, All) when Pid =:= self() -> All;
busiest(Pid, All) ->
    case process_info(Pid, [registered_name, status, message_queue_len]) of
        [{registered_name, Name}, {status, Status}, {message_queue_len, Waiting}] ->
            Busy = case Status of waiting -> 0; suspended -> 0; exiting -> 0; _ -> 1 end,
            case {Name, Busy + Waiting} of
                %% Most have nothing to do, and their kind need not be known.
                {[], 0} -> All;
                {[], _} -> most(kind(Pid), {Busy, Waiting}, All);
                {_, _} -> most(Name, {Busy, Waiting}, All)
            end;
        undefined -> All
    end.

most(Name, {Busy, Waiting}, All) -> maps:update_with(Name, fun({B, W}) -> {max(B, Busy), max(W, Waiting)} end, {Busy, Waiting}, All).

kind(Pid) -> {of_kind, proc_lib:translate_initial_call(Pid)}.

%% @doc Ends it: what was seen.
-spec stop() -> [server()].
stop() ->
    case whereis(?MODULE) of
        undefined -> [];
        Pid ->
            Ref = monitor(process, Pid),
            _ = Pid ! {stop, self(), Ref},
            receive
                {Ref, Servers} ->
                    true = demonitor(Ref, [flush]),
                    Servers;
                {'DOWN', Ref, process, Pid, _} -> []
            after ?STOP_MS -> []
            end
    end.

%% @doc What was seen on several nodes as one: of each server what it was where it had most to do; the busiest first.
-spec merged([[server()]]) -> [server()].
merged(Nodes) ->
    All = lists:foldl(
        fun(#{name := Name, busy := Busy, waiting := Waiting, waiting_max := Most} = Server, Known) ->
            maps:update_with(
                Name,
                fun(#{busy := B, waiting := W, waiting_max := M} = Is) -> Is#{busy := max(B, Busy), waiting := max(W, Waiting), waiting_max := max(M, Most)} end,
                Server,
                Known
            )
        end,
        #{},
        lists:append(Nodes)
    ),
    [Server || {_, Server} <- lists:reverse(lists:sort([{{Waiting, Busy, Name}, Server} || #{name := Name, busy := Busy, waiting := Waiting} = Server <- maps:values(All)]))].

%% @doc Those with a name of their own behind which callers stand in a row.
-spec suspects([server()]) -> [server()].
suspects(Servers) ->
    [Server || #{name := Name, busy := Busy, waiting := Waiting} = Server <- Servers, is_atom(Name), Busy >= ?BUSY andalso Waiting > 0 orelse Waiting >= ?WAITING].

%% @doc Who they are, in a sentence.
-spec says([server()]) -> unicode:chardata().
says(Servers) ->
    case suspects(Servers) of
        [] -> "No server has callers standing in a row.";
        [#{name := Name, waiting := Waiting, busy := Busy} | _] ->
            io_lib:format("Callers stand in a row behind ~ts, which does not scale: ~.1f wait on the average, and it is at work in ~b % of all looks.", [format(Name), Waiting, round(Busy)])
    end.

%% @doc What a server is called.
-spec format(term()) -> unicode:chardata().
format({of_kind, {Module, Function, Arity}}) -> io_lib:format("one of ~ts:~ts/~b", [Module, Function, Arity]);
format(Name) -> io_lib:format("~0tp", [Name]).
