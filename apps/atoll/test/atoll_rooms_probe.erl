%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: names that come and go, and when the others are all found.
-module(atoll_rooms_probe).

-export([churn/1, end_churn/1, found/2, told/0]).

-define(DEADLINE_MS, 15000).

%% @doc A process that registers names of processes here, and ends those, one after the other,
%% whatever it is answered.
-spec churn(atom()) -> pid().
churn(Group) ->
    spawn(fun() -> churn(Group, 1, 0) end).

churn(Group, N, Given) ->
    receive
        {From, stop} -> From ! {self(), Given}
    after 0 ->
        Pid = atoll_name_holder:holder(),
        Answer = atoll_name:register(Group, {churn, node(), N rem 50}, Pid),
        N rem 2 =:= 0 andalso atoll_name:unregister(Group, {churn, node(), N rem 50}),
        ok = atoll_name_holder:end_holder(Pid),
        churn(Group, N + 1, Given + length([x || Answer =:= yes]))
    end.

%% @doc Ends it; how many names it had.
-spec end_churn(pid()) -> non_neg_integer().
end_churn(Pid) ->
    Pid ! {self(), stop},
    receive
        {Pid, Given} -> Given
    after ?DEADLINE_MS -> error(timeout)
    end.

%% @doc When a reader of this node finds all of these, in milliseconds of the machine's clock.
-spec found(atom(), [{Name :: term(), pid()}]) -> integer().
found(Group, Names) -> found(Group, Names, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

found(Group, Names, Deadline) ->
    case [Row || {Name, Pid} = Row <- Names, atoll_name:whereis(Group, Name) =/= Pid] of
        [] ->
            os:system_time(millisecond);
        Missing ->
            erlang:monotonic_time(millisecond) < Deadline orelse error({not_found, Missing}),
            _ = atoll_interpreter:ask(atoll_name, info),
            receive after 1 -> found(Group, Names, Deadline) end
    end.

%% @doc What the rooms say of themselves, once the overlay has handled what it was told.
-spec told() -> map().
told() -> atoll:status().
