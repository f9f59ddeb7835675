%% SPDX-License-Identifier: Apache-2.0
%% @doc What a manager says of its nodes. Data, and how it is made short: of what a node says only what is
%% not as it was when its manager spoke of it last.
-module(atoll_watch_report).

-export([change/2, changed/2]).

-export_type([report/0, look/0, change/0]).

-type report() :: #{
    looks := [look()],
    %% Since the report before: turns that were missed, and looks of which another one came before they were told.
    missed := non_neg_integer(),
    overtaken := non_neg_integer(),
    %% Of the VM that it runs in.
    os_pid := string(),
    memory := pos_integer()
}.

%% A question has ended, with or without an answer. With one there are the last three too.
-type look() :: #{
    node := node(),
    lease := atoll_watch_shares:lease(),
    state := up | silent | down | refused,
    why := none | unicode:chardata(),
    %% What was logged there and not told yet, oldest first.
    log := [atoll_watch_agent:said()],
    %% All that the agent said but its readings and that.
    sample => map(),
    readings => change(),
    rates => change()
}.

-type change() :: {whole, atoll_watch_metric:readings()} | {New :: atoll_watch_metric:readings(), Gone :: [atoll_watch_metric:key()]}.

%% @doc What makes the second of the first.
-spec change(none | atoll_watch_metric:readings(), atoll_watch_metric:readings()) -> change().
change(none, Is) ->
    {whole, Is};
change(Was, Is) ->
    {
        maps:filter(fun(Key, Value) -> case Was of #{Key := Value} -> false; #{} -> true end end, Is),
        [Key || Key <- maps:keys(Was), not is_map_key(Key, Is)]
    }.

%% @doc What it makes of the first.
-spec changed(change(), atoll_watch_metric:readings()) -> atoll_watch_metric:readings().
changed({whole, Is}, _) -> Is;
changed({New, Gone}, Was) -> maps:merge(maps:without(Gone, Was), New).
