%% SPDX-License-Identifier: Apache-2.0
%% Waits for what has no event of its own, with a deadline.
-module(orbit_wait).

-export([until/1]).

%% It ends what hangs, on a busy machine too.
-define(DEADLINE_MS, 40_000).

%% Asks until the answer is `{value, V}' or `true', and returns V or true.
-spec until(fun(() -> {value, V} | boolean())) -> V | true.
until(Ask) ->
    Deadline = erlang:monotonic_time(millisecond) + ?DEADLINE_MS,
    until(Ask, Deadline).

until(Ask, Deadline) ->
    case Ask() of
        {value, Value} ->
            Value;
        true ->
            true;
        false ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true -> receive after 10 -> until(Ask, Deadline) end;
                false -> error(deadline)
            end
    end.
