%% SPDX-License-Identifier: Apache-2.0
%% @doc A new release rolled through a family: some nodes at a time, each of which must be well before the next ones
%% follow; at the first that is not, all that were touched get back what they had. Pure: it is told how a batch went,
%% and says what comes next.
%%
%% Promised: no more nodes are down at once than a batch has. A node that is not well after the way back either is
%% named, and the way back goes on with the others.
-module(atoll_deploy_roll).

-export([new/2, next/1, went/2, format_back/2]).

-export_type([roll/0, effect/0]).

-opaque roll() :: #{
    release := string(),
    left := [[atoll_deploy_plan:row(), ...]],
    %% Those that were touched, as they were before, the last ones first.
    touched := [atoll_deploy_plan:row()],
    now := [atoll_deploy_plan:row()],
    phase := on | {back, Why :: unicode:chardata()},
    failures := [{Node :: string(), Why :: unicode:chardata()}]
}.

-type effect() ::
    %% Have these nodes run the release that stands in each.
    {replace, [atoll_deploy_plan:row(), ...]}
    | done
    %% All that were touched have what they had, but for these.
    | {went_back, Why :: unicode:chardata(), [{Node :: string(), Why :: unicode:chardata()}]}.

%% @doc The batches are those of {@link atoll_deploy_plan:batches/2}.
-spec new(Release :: string(), [[atoll_deploy_plan:row(), ...]]) -> roll().
new(Release, Batches) ->
    #{release => Release, left => Batches, touched => [], now => [], phase => on, failures => []}.

%% @doc What comes next.
-spec next(roll()) -> {effect(), roll()}.
next(#{phase := on, left := []} = Roll) ->
    {done, Roll};
next(#{phase := on, left := [Batch | Left], release := Release, touched := Touched} = Roll) ->
    {{replace, [Row#{release := Release, before => Before} || #{release := Before} = Row <- Batch]}, Roll#{left := Left, now := Batch, touched := lists:reverse(Batch) ++ Touched}};
next(#{phase := {back, Why}, touched := [], failures := Failures} = Roll) ->
    {{went_back, Why, lists:reverse(Failures)}, Roll};
next(#{phase := {back, _}, touched := [Row | Touched]} = Roll) ->
    {{replace, [Row]}, Roll#{touched := Touched, now := [Row]}}.

%% @doc How it went with the nodes of the last batch.
-spec went([{Node :: string(), ok | {error, unicode:chardata()}}], roll()) -> roll().
went(Results, #{phase := Phase, failures := Failures} = Roll) ->
    case {[{Node, Why} || {Node, {error, Why}} <- Results], Phase} of
        {[], _} -> Roll;
        {[{Node, Why} | _], on} -> Roll#{phase := {back, [Node, ": ", Why]}, left := []};
        {Failed, {back, _}} -> Roll#{failures := lists:reverse(Failed) ++ Failures}
    end.

%% @doc Half a sentence: why it went back, and whether all nodes are well again.
-spec format_back(Why :: unicode:chardata(), Failures :: [{Node :: string(), Why :: unicode:chardata()}]) -> unicode:chardata().
format_back(Why, []) -> ["all nodes have the release back that they had, since ", Why];
format_back(Why, [{Node, Other} | More]) ->
    [integer_to_list(length(More) + 1), " of the nodes that were to have back what they had are not well; the first is ", Node, ": ", Other, "; all of it since ", Why].
