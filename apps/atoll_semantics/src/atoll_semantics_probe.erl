%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs on the nodes under test: processes that have names, and what the node says of
%% itself, in the terms of atoll_semantics:views/1.
-module(atoll_semantics_probe).

-export([process/0, conflicts/1, kill/1, await_hello/1, await_view/1, view/0, smaller_node/3]).

-define(DEADLINE_MS, 15000).

%% @doc A process that may get names.
-spec process() -> pid().
process() -> spawn(fun hold/0).

hold() ->
    receive
        {From, take_hello} ->
            receive
                hello -> From ! {self(), hello}
            end,
            hold()
    end.

%% @doc It ends, and has ended when this returns.
-spec kill(pid()) -> ok.
kill(Pid) ->
    Ref = monitor(process, Pid),
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

%% @doc How often the process was told that it has lost a name.
-spec conflicts(pid()) -> non_neg_integer().
conflicts(Pid) ->
    %% One that has ended, perhaps on an earlier start of this node, is in no list of it.
    case lists:member(Pid, processes()) andalso process_info(Pid, messages) of
        {messages, Messages} -> length([told || {name_conflict, _, _, _} <- Messages]);
        _ -> 0
    end.

%% @doc The process was sent one more `hello' than were awaited before.
-spec await_hello(pid()) -> ok | no_hello.
await_hello(Pid) ->
    Pid ! {self(), take_hello},
    receive
        {Pid, hello} -> ok
    after ?DEADLINE_MS -> no_hello
    end.

%% @doc Looks again until the view is that, or the deadline is over; gives what it saw last.
-spec await_view(View) -> View when View :: #{atom() => term()}.
await_view(Expected) ->
    await_view(Expected, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

await_view(Expected, Deadline) ->
    case view() of
        Expected ->
            Expected;
        Seen ->
            case erlang:monotonic_time(millisecond) > Deadline of
                true ->
                    Seen;
                false ->
                    %% The rooms themselves are the clock: an answer comes after what they had to do.
                    _ = atoll_name:info(),
                    _ = s_group:info(),
                    await_view(Expected, Deadline)
            end
    end.

%% @doc The view at this moment, with pids and the names of nodes.
-spec view() -> #{atom() => term()}.
view() ->
    #{
        type =>
            case init:get_argument(hidden) of
                {ok, _} -> hidden;
                error -> normal
            end,
        groups => s_group:own_s_groups(),
        names => lists:sort([{Group, Name, atoll_name:whereis(Group, Name)} || {Group, Name} <- atoll_name:names()]),
        free => s_group:own_nodes(undefined),
        connections => lists:sort(nodes(connected))
    }.

%% @doc Decides a clash of two parts: the process on the smaller node keeps the name, as in
%% SD Erlang.
-spec smaller_node(term(), {pid(), term()}, {pid(), term()}) -> pid().
smaller_node(_Name, {Pid1, _}, {Pid2, _}) ->
    case node(Pid1) < node(Pid2) of
        true -> Pid1;
        false -> Pid2
    end.
