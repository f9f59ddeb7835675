%% SPDX-License-Identifier: Apache-2.0
%% @doc What each module took in a tier when that was recorded: the order of the queue comes from it.
%% The files are kept in the tree, `priv/times-TIER.config'.
-module(atoll_test_times).

-export([read/1, write/2]).

%% @doc Seconds of each module; none if nothing is recorded. What was not recorded in the deep tier takes as long there
%% as in the fast one, or longer.
-spec read(atoll_tier:tier()) -> atoll_test_jobs:times().
read(fast) -> recorded(fast);
read(deep) -> maps:merge(recorded(fast), recorded(deep)).

recorded(Tier) ->
    case file:consult(file(Tier)) of
        {ok, Terms} -> maps:from_list(Terms);
        {error, enoent} -> #{}
    end.

%% @doc Records what ran beside what is there already.
-spec write(atoll_tier:tier(), [{atoll_test_jobs:job(), atoll_test_job:ended()}]) -> ok.
write(Tier, Done) ->
    New = maps:from_list(lists:append([of_job(Job, Ended) || {Job, Ended} <- Done])),
    All = lists:sort(maps:to_list(maps:merge(recorded(Tier), New))),
    Head = ["%% Seconds that each test module took in the ", atom_to_list(Tier), " tier: RECORD=1 writes this.\n"],
    ok = file:write_file(file(Tier), [Head | [io_lib:format("{~p, ~.1f}.~n", [M, S]) || {M, S} <- All]]).

of_job(#{kind := ct, modules := [M]}, #{seconds := Seconds}) ->
    [{M, Seconds}];
of_job(#{modules := Modules}, #{results := Results}) ->
    [{M, lists:sum([S || #{suite := Suite, seconds := S} <- Results, Suite =:= atom_to_list(M)])} || M <- Modules].

file(Tier) -> filename:join(code:priv_dir(atoll_test), lists:concat(["times-", Tier, ".config"])).
