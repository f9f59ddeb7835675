%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on the nodes of a benchmark, beside the load itself.
-module(atoll_bench_node).

-export([mesh/2, together/3]).

%% @doc Connects with all of these nodes, and waits until it sees them.
-spec mesh([node()], timeout()) -> ok | {missing, [node()]}.
mesh(Nodes, Ms) ->
    Others = Nodes -- [node()],
    ok = net_kernel:monitor_nodes(true),
    _ = [net_kernel:connect_node(Node) || Node <- Others],
    Timer = erlang:start_timer(Ms, self(), mesh),
    Answer = see(Others, Timer),
    _ = erlang:cancel_timer(Timer),
    ok = net_kernel:monitor_nodes(false),
    Answer.

see(Others, Timer) ->
    case Others -- nodes() of
        [] ->
            ok;
        Missing ->
            receive
                {nodeup, _} -> see(Others, Timer);
                {timeout, Timer, mesh} -> {missing, Missing}
            end
    end.

%% @doc Runs so many processes at once, each with its number, until all are done;
%% what they return, in order. They die with the caller, and it with them.
-spec together(pos_integer(), fun((pos_integer()) -> Result), timeout()) -> [Result].
together(Count, Fun, Ms) ->
    Self = self(),
    Tag = make_ref(),
    Pids = [spawn_link(fun() -> Self ! {Tag, self(), Fun(N)} end) || N <- lists:seq(1, Count)],
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    [collect(Tag, Pid, Deadline) || Pid <- Pids].

collect(Tag, Pid, Deadline) ->
    receive
        {Tag, Pid, Result} -> Result
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> error({late, Pid})
    end.
