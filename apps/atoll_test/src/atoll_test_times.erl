%% SPDX-License-Identifier: Apache-2.0
%% @doc What each module took when that was recorded: the order of the queue comes from it.
%% The file is kept in the tree, `priv/times.config'.
-module(atoll_test_times).

-export([read/0, write/1]).

%% @doc Seconds of each module; none if nothing is recorded.
-spec read() -> atoll_test_jobs:times().
read() ->
    case file:consult(file()) of
        {ok, Terms} -> maps:from_list(Terms);
        {error, enoent} -> #{}
    end.

%% @doc Records what ran beside what is there already.
-spec write([{atoll_test_jobs:job(), atoll_test_job:ended()}]) -> ok.
write(Done) ->
    New = maps:from_list(lists:append([of_job(Job, Ended) || {Job, Ended} <- Done])),
    All = lists:sort(maps:to_list(maps:merge(read(), New))),
    ok = file:write_file(file(), ["%% Seconds that each test module took: `make test RECORD=1' writes this.\n" | [io_lib:format("{~p, ~.1f}.~n", [M, S]) || {M, S} <- All]]).

of_job(#{kind := ct, modules := [M]}, #{seconds := Seconds}) ->
    [{M, Seconds}];
of_job(#{modules := Modules}, #{results := Results}) ->
    [{M, lists:sum([S || #{suite := Suite, seconds := S} <- Results, Suite =:= atom_to_list(M)])} || M <- Modules].

file() -> filename:join(code:priv_dir(atoll_test), "times.config").
