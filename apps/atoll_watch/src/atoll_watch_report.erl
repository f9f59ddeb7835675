%% SPDX-License-Identifier: Apache-2.0
%% @doc What a manager says of its nodes. Data, and how it is made short: of what a node says only what is
%% not as it was when its manager spoke of it last.
-module(atoll_watch_report).

-export([change/2, changed/2, known/2, news/2]).

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
    %% All that the agent said but its readings and that; of its facts the modules are `same' as those told before.
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

%% @doc How a node is set up, by what is said of it now and what was known: its modules come when they are others, and it may not have
%% said in time.
-spec known(none | atoll_watch_agent_facts:facts(), none | atoll_watch_agent_facts:facts()) -> none | atoll_watch_agent_facts:facts().
known(#{modules := same} = Facts, #{modules := Modules}) -> Facts#{modules := Modules};
known(#{modules := same} = Facts, none) -> Facts#{modules := []};
known(#{} = Facts, _) -> Facts;
known(none, Facts) -> Facts.

%% @doc What is to be told of it to who was told that before.
-spec news(none | atoll_watch_agent_facts:facts(), none | atoll_watch_agent_facts:facts()) -> none | atoll_watch_agent_facts:facts().
news(#{code := Code} = Facts, #{code := Code}) -> Facts#{modules := same};
news(Facts, _) -> Facts.
