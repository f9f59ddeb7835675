%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: keeps processes that have
%% names, and waits for what is to be in the table.
-module(atoll_name_holder).

-behaviour(gen_server).

-export([holder/0, told/1, end_holder/1, table/1, await_table/3, rate/3, server/1, ask_server/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(DEADLINE_MS, 15000).

%% A process that keeps what it is sent.
holder() ->
    spawn(fun() -> hold([]) end).

hold(Got) ->
    receive
        {From, told} ->
            From ! {self(), lists:reverse(Got)},
            hold(Got);
        Message ->
            hold([Message | Got])
    end.

told(Pid) ->
    Pid ! {self(), told},
    receive
        {Pid, Got} -> Got
    after ?DEADLINE_MS -> timeout
    end.

end_holder(Pid) ->
    Ref = monitor(process, Pid),
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

%% What readers of this node find.
table(Group) ->
    [{Name, atoll_name:whereis(Group, Name)} || Name <- atoll_name:names(Group)].

%% Looks again until the table is that, or the deadline is over.
await_table(Group, Expected, Ms) ->
    await_table(Group, Expected, Ms, erlang:monotonic_time(millisecond) + Ms).

await_table(Group, Expected, Ms, Deadline) ->
    case table(Group) of
        Expected ->
            ok;
        Seen ->
            case erlang:monotonic_time(millisecond) >= Deadline of
                true -> {still, Seen, instead_of, Expected};
                false ->
                    %% The room itself is the clock: its answer comes after what it had to do.
                    _ = atoll_name:info(),
                    receive after 5 -> await_table(Group, Expected, Ms, Deadline) end
            end
    end.

%% Registers N names for processes here, by so many callers at once: names per second.
rate(Group, N, Callers) ->
    Holders = [[{{node(), C, K}, holder()} || K <- lists:seq(1, N div Callers)] || C <- lists:seq(1, Callers)],
    Start = erlang:monotonic_time(microsecond),
    Refs = [
        element(2, spawn_monitor(fun() -> [yes = atoll_name:register(Group, Name, Pid) || {Name, Pid} <- Mine] end))
     || Mine <- Holders
    ],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || Ref <- Refs],
    Us = erlang:monotonic_time(microsecond) - Start,
    [exit(Pid, kill) || Mine <- Holders, {_, Pid} <- Mine],
    N * 1000000 div Us.

%% A gen_server by its name in a group.
server(Via) ->
    {ok, Pid} = gen_server:start({via, atoll_name, Via}, ?MODULE, [], []),
    Pid.

ask_server(Via) ->
    gen_server:call({via, atoll_name, Via}, who).

init([]) -> {ok, none}.
handle_call(who, _From, State) -> {reply, self(), State}.
handle_cast(_, State) -> {noreply, State}.
