%% SPDX-License-Identifier: Apache-2.0
%% What the suite of attributes has its nodes do.
-module(atoll_attr_probe).

-export([timed/3, choose/2, hang/0, counted/0]).

%% @doc What a function returns, and in how many milliseconds.
timed(M, F, Args) ->
    Start = erlang:monotonic_time(millisecond),
    Result = apply(M, F, Args),
    {erlang:monotonic_time(millisecond) - Start, Result}.

%% @doc So many callers choose among these nodes at the same moment; what they chose.
choose(Count, Nodes) ->
    Callers = [
        spawn_monitor(fun() ->
            exit({chosen, atoll_attr:choose_node(Nodes, "colour == blue", #{deadline => 20000})})
        end)
     || _ <- lists:seq(1, Count)
    ],
    [
        receive
            {'DOWN', Ref, process, Pid, {chosen, {ok, Node, _}}} -> Node;
            {'DOWN', Ref, process, Pid, Other} -> Other
        end
     || {Pid, Ref} <- Callers
    ].

hang() ->
    receive
        never -> ok
    end.

counted() ->
    case ets:whereis(?MODULE) of
        undefined -> undefined;
        _ -> ets:update_counter(?MODULE, n, 1, {n, 0})
    end.
