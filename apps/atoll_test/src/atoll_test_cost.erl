%% SPDX-License-Identifier: Apache-2.0
%% @doc What something costs, by reductions, which do not know how busy the machine is.
%%
%% A collection of the heap counts as reductions too, as many as what lives there is large. So this is
%% counted where nothing is collected meanwhile: in a process of its own, with a heap that is large enough.
-module(atoll_test_cost).

-export([reductions/2]).

%% Of the first heap, and of the largest one.
-define(WORDS, 1000000).
-define(MAX_WORDS, 16000000).

%% @doc Of the second function, called with what the first one has made. That is made in the process in which it
%% is used, as a term whose parts are the same ones would be far larger after it was sent.
-spec reductions(fun(() -> Made), fun((Made) -> term())) -> non_neg_integer().
reductions(Make, Fun) ->
    reductions(Make, Fun, ?WORDS).

reductions(Make, Fun, Words) ->
    Self = self(),
    {Pid, Ref} = spawn_opt(fun() -> Self ! {self(), counted(Make(), Fun)} end, [monitor, {min_heap_size, Words}]),
    receive
        {Pid, Counted} ->
            true = demonitor(Ref, [flush]),
            case Counted of
                {Reductions, uncollected} -> Reductions;
                {_, collected} when Words < ?MAX_WORDS -> reductions(Make, Fun, 4 * Words);
                {_, collected} -> error({needs_more_words, Words})
            end;
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    end.

counted(Made, Fun) ->
    {reductions, Before} = process_info(self(), reductions),
    _ = Fun(Made),
    {reductions, After} = process_info(self(), reductions),
    %% What is left of the last collection.
    {_, Info} = process_info(self(), garbage_collection_info),
    case {proplists:get_value(recent_size, Info), proplists:get_value(old_heap_size, Info)} of
        {0, 0} -> {After - Before, uncollected};
        _ -> {After - Before, collected}
    end.
