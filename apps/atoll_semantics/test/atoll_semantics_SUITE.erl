%% SPDX-License-Identifier: Apache-2.0
%% The commands of s_group on real nodes (atoll_semantics_cluster), in lockstep with their
%% semantics: random commands through s_group, and after each of them its value and what every
%% node says of itself.
%%
%% Each run draws others. A failure prints the line that repeats the run, and the commands
%% since the last fresh start with the seed of those: with their number it may stand among
%% the regressions.
-module(atoll_semantics_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([what_once_differed_does_no_more/1, random_commands_do_what_they_mean/1]).
-export([cuts_and_kills_do_what_they_mean/1]).

-define(CALL_MS, 30000).
%% Commands from one fresh start to the next.
-define(LENGTH, 25).

%% What once differed stays: {Seed, Commands, with faults or none}.
-define(REGRESSIONS, [
    %% A node whose first group it is takes longer to show it to its readers, as it loads code,
    %% than the others take to answer: n6 at the 4th command, x1 at the 21st.
    {2, 21, none},
    %% A process of n3 was named while n3 was down: it was taken for one that never was, also after the start. And n5, which
    %% was down when a cut healed, was still cut off from x2.
    {108961650, 25, faults}
]).

suite() -> [{timetrap, {minutes, 30}}].

%% The first finds nodes that have done nothing yet.
all() -> [what_once_differed_does_no_more, random_commands_do_what_they_mean, cuts_and_kills_do_what_they_mean].

init_per_suite(Config) ->
    [{cluster, atoll_cluster_owned:start(atoll_semantics_cluster:options())} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

what_once_differed_does_no_more(Config) ->
    Cluster = ?config(cluster, Config),
    try
        lists:foreach(fun({Seed, Count, Faults}) -> compare(Seed, Count, Faults, Cluster) end, ?REGRESSIONS)
    after
        atoll_semantics_cluster:heal(atoll_semantics_cluster:new(Cluster))
    end.

random_commands_do_what_they_mean(Config) ->
    Count = atoll_tier:size(semantics_commands),
    Seed = atoll_tier:seed(?FUNCTION_NAME),
    Start = erlang:monotonic_time(millisecond),
    compare(Seed, Count, none, ?config(cluster, Config)),
    ct:pal("~b commands on eight nodes in ~b ms", [Count, erlang:monotonic_time(millisecond) - Start]).

%% Nodes are cut off from each other by cookies, killed, and started again.
cuts_and_kills_do_what_they_mean(Config) ->
    Count = atoll_tier:size(semantics_fault_commands),
    Seed = atoll_tier:seed(?FUNCTION_NAME),
    Cluster = ?config(cluster, Config),
    try
        compare(Seed, Count, faults, Cluster)
    after
        atoll_semantics_cluster:heal(atoll_semantics_cluster:new(Cluster))
    end.

compare(_Seed, Left, _Faults, _Cluster) when Left =< 0 ->
    ok;
compare(Seed, Left, Faults, Cluster) ->
    Length = min(Left, ?LENGTH),
    Sequence =
        case Faults of
            faults -> atoll_semantics_commands:sequence(Seed, Length, faults);
            none -> atoll_semantics_commands:sequence(Seed, Length)
        end,
    case atoll_semantics_lockstep:run(Sequence, atoll_semantics_cluster:backend(), fresh(Cluster)) of
        {ok, Compared, _} ->
            compare(Seed + 1, Left - Compared, Faults, Cluster);
        {differs, #{command := {Nth, _, _}} = Difference, _} ->
            Again = again(),
            ct:pal("~ts~nagain: ~ts", [atoll_semantics_lockstep:format(Seed, {lists:sublist(Sequence, Nth), Difference}), Again]),
            ct:fail({differs, {again, Again}, {seed, Seed}, Difference})
    end.

again() ->
    Target = maps:get(atoll_tier:tier(), #{fast => "test", deep => "soak"}),
    lists:concat(["make ", Target, " SUITE=", ?MODULE, " SEED=", atoll_tier:seed()]).

%% No group, no name, no connection, and nothing remembered.
fresh(C) ->
    World = atoll_semantics_cluster:new(C),
    ok = atoll_semantics_cluster:heal(World),
    All = atoll_cluster:nodes(C),
    [{_, ok} = {N, call(C, N, application, stop, [atoll])} || N <- All],
    ok = atoll_name_cluster:apart(C, All),
    [{_, ok} = {N, call(C, N, application, start, [atoll])} || N <- All],
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    Expected = atoll_semantics:views(atoll_semantics:new(Normal, Hidden)),
    #{views := Views} = atoll_semantics_cluster:backend(),
    {Seen, _} = Views(Expected, World),
    ?assertEqual(Expected, Seen),
    World.
