%% @doc The log of a run: what happened to whom, what recovered, and how long it
%% took. Pure. It keeps the last 20,000 events, and counts those before them.
-module(atoll_chaos_log).

-export([new/0, new/1, add/2, left_out/1, amend/3, find/2, events/1, summary/1]).

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

-record(log, {max :: pos_integer(), last = 0 :: non_neg_integer(), events = #{} :: #{id() => event()}}).

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
