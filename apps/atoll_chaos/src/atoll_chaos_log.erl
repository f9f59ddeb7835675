%% SPDX-License-Identifier: Apache-2.0
%% @doc The log of a run: what happened to whom, what recovered, and how long it
%% took. Pure. It keeps the last 20,000 events, and counts those before them.
%%
%% An event may be open, under a key: a node that is down, a fault that lasts. Of keys
%% that are equal, such as those of cuts that overlap, each is one of its own.
-module(atoll_chaos_log).

-export([new/0, new/1, add/2, left_out/1, amend/3, find/2, events/1, summary/1]).
-export([open/4, close/3, close_first/3, youngest/2, take_open/2]).

-export_type([log/0, event/0, id/0, recovered/0, summary/0]).

-type id() :: pos_integer().

-type recovered() :: Ms :: number() | never | none.
%% `none' where nothing is waited for.

-type event() :: #{
    %% Since the beginning.
    at_ms := non_neg_integer(),
    fault := atom(),
    nodes := [node()],
    %% The process that was killed; the operation on a group; the other nodes.
    target := term(),
    outcome := done | passed_over | failed,
    recovered_ms := recovered(),
    %% Why it was passed over, or failed.
    why => term(),
    %% When a fault that lasts was ended.
    ended_ms => non_neg_integer(),
    %% Of an operation on a group.
    answer => term(),
    took_ms => non_neg_integer(),
    place => atoll_sim_script:place()
}.

-type summary() :: #{
    count := non_neg_integer(),
    done := non_neg_integer(),
    passed_over := non_neg_integer(),
    failed := non_neg_integer(),
    recovered := non_neg_integer(),
    never := non_neg_integer(),
    median_ms := number() | none,
    p99_ms := number() | none,
    max_ms := number() | none
}.

-record(log, {
    max :: pos_integer(),
    last = 0 :: non_neg_integer(),
    events = #{} :: #{id() => event()},
    %% Newest first.
    open = [] :: [{key(), id(), SinceMs :: non_neg_integer()}]
}).

-type key() :: term().

-opaque log() :: #log{}.

%% A run may go on for as long as somebody lets it.
-define(MAX, 20000).

%% @doc Nothing has happened yet.
-spec new() -> log().
new() -> new(?MAX).

%% @doc The same, with room for so many events.
-spec new(pos_integer()) -> log().
new(Max) -> #log{max = Max}.

%% @doc Adds an event.
-spec add(event(), log()) -> {id(), log()}.
add(Event, #log{max = Max, last = Last, events = Events} = Log) ->
    Id = Last + 1,
    {Id, Log#log{last = Id, events = maps:remove(Id - Max, Events#{Id => Event})}}.

%% @doc Says more of an event, if it is still there.
-spec amend(id(), map(), log()) -> log().
amend(Id, More, #log{events = Events} = Log) ->
    case Events of
        #{Id := Event} -> Log#log{events = Events#{Id := maps:merge(Event, More)}};
        #{} -> Log
    end.

%% @doc From that time on the event is not over.
-spec open(key(), id(), SinceMs :: non_neg_integer(), log()) -> log().
open(Key, Id, Since, #log{open = Open} = Log) ->
    Log#log{open = [{Key, Id, Since} | Open]}.

%% @doc Those under such keys ended at that time.
-spec close(fun((key()) -> boolean()), Ms :: non_neg_integer(), log()) -> log().
close(Is, Ms, Log0) ->
    {Closed, Log} = take_open(Is, Log0),
    lists:foldl(fun({Id, _}, L) -> amend(Id, #{ended_ms => Ms}, L) end, Log, Closed).

%% @doc Of those under that key, the one that has been open for longest ended.
-spec close_first(key(), Ms :: non_neg_integer(), log()) -> log().
close_first(Key, Ms, #log{open = Open} = Log) ->
    case lists:keytake(Key, 1, lists:reverse(Open)) of
        {value, {_, Id, _}, Left} -> amend(Id, #{ended_ms => Ms}, Log#log{open = lists:reverse(Left)});
        false -> Log
    end.

%% @doc Of those under that key, the one that was opened last.
-spec youngest(key(), log()) -> {ok, id()} | none.
youngest(Key, #log{open = Open}) ->
    case lists:keyfind(Key, 1, Open) of
        {_, Id, _} -> {ok, Id};
        false -> none
    end.

%% @doc Those under such keys, which are open no more.
-spec take_open(fun((key()) -> boolean()), log()) -> {[{id(), SinceMs :: non_neg_integer()}], log()}.
take_open(Is, #log{open = Open} = Log) ->
    {Taken, Left} = lists:partition(fun({Key, _, _}) -> Is(Key) end, Open),
    {[{Id, Since} || {_, Id, Since} <- Taken], Log#log{open = Left}}.

%% @doc How many events there were before those that are kept.
-spec left_out(log()) -> non_neg_integer().
left_out(#log{last = Last, events = Events}) -> Last - map_size(Events).

%% @doc An event that is kept.
-spec find(id(), log()) -> event().
find(Id, #log{events = Events}) ->
    map_get(Id, Events).

%% @doc The events that are kept, in the order in which they happened.
-spec events(log()) -> [event()].
events(#log{events = Events}) ->
    [Event || {_, Event} <- lists:keysort(1, maps:to_list(Events))].

%% @doc The events of each kind in numbers: of the times, the median, the 99th
%% percentile (nearest rank) and the longest.
-spec summary([event()]) -> [{Fault :: atom(), summary()}].
summary(Events) ->
    Faults = lists:usort([Fault || #{fault := Fault} <- Events]),
    [{Fault, numbers([E || #{fault := F} = E <- Events, F =:= Fault])} || Fault <- Faults].

numbers(Events) ->
    Count = fun(Outcome) -> length([x || #{outcome := O} <- Events, O =:= Outcome]) end,
    Times = lists:sort([Ms || #{recovered_ms := Ms} <- Events, is_number(Ms)]),
    #{
        count => length(Events),
        done => Count(done),
        passed_over => Count(passed_over),
        failed => Count(failed),
        recovered => length(Times),
        never => length([x || #{recovered_ms := never} <- Events]),
        median_ms => median(Times),
        p99_ms => rank(0.99, Times),
        max_ms => rank(1, Times)
    }.

median([]) -> none;
median(Times) ->
    Half = length(Times) div 2,
    case length(Times) rem 2 of
        1 -> lists:nth(Half + 1, Times);
        0 -> (lists:nth(Half, Times) + lists:nth(Half + 1, Times)) / 2
    end.

rank(_Share, []) -> none;
rank(Share, Times) -> lists:nth(max(1, ceil(Share * length(Times))), Times).
