%% SPDX-License-Identifier: Apache-2.0
%% @doc What each module took in a tier when that was recorded: the order of the queue comes from it.
%% The files are kept in the tree, `priv/times-TIER.config'.
-module(atoll_test_times).

-export([read/1, read/2, write/2]).

-define(DIR, code:priv_dir(atoll_test)).

%% @doc Seconds of each module; none if nothing is recorded. What was not recorded in the deep tier takes as long there
%% as in the fast one, or longer.
-spec read(atoll_tier:tier()) -> atoll_test_jobs:times().
read(Tier) -> read(Tier, ?DIR).

%% @doc The same of the files in another folder.
-spec read(atoll_tier:tier(), file:filename()) -> atoll_test_jobs:times().
read(fast, Dir) -> recorded(fast, Dir);
read(deep, Dir) -> maps:merge(recorded(fast, Dir), recorded(deep, Dir)).

recorded(Tier, Dir) ->
    case file:consult(file(Tier, Dir)) of
        {ok, Terms} -> maps:from_list(Terms);
        {error, enoent} -> #{}
    end.

%% @doc Records what ran beside what is there already.
-spec write(atoll_tier:tier(), [{atoll_test_jobs:job(), atoll_test_job:ended()}]) -> ok.
write(Tier, Done) ->
    New = maps:from_list(lists:append([of_job(Job, Ended) || {Job, Ended} <- Done])),
    All = lists:sort(maps:to_list(maps:merge(recorded(Tier, ?DIR), New))),
    Head = ["%% Seconds that each test module took in the ", atom_to_list(Tier), " tier: RECORD=1 writes this.\n"],
    ok = file:write_file(file(Tier, ?DIR), [Head | [io_lib:format("{~p, ~.1f}.~n", [M, S]) || {M, S} <- All]]).

of_job(#{kind := ct, modules := [M]}, #{seconds := Seconds}) ->
    [{M, Seconds}];
of_job(#{modules := Modules}, #{results := Results}) ->
    [{M, lists:sum([S || #{suite := Suite, seconds := S} <- Results, Suite =:= atom_to_list(M)])} || M <- Modules].

file(Tier, Dir) -> filename:join(Dir, lists:concat(["times-", Tier, ".config"])).
