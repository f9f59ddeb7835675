%% SPDX-License-Identifier: Apache-2.0
%% Experiments on real nodes, from the start of the nodes to the sentence on the page.
-module(atoll_experiments_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([a_planted_fifth_stands_on_the_page/1, two_equal_variants_differ_in_two_of_twenty_runs_at_most/1]).

suite() -> [{timetrap, {minutes, 30}}].

%% The fast tier has the same with made-up samples, and real nodes in the suites of the command line.
all() ->
    case atoll_tier:tier() of
        fast -> [];
        deep -> [a_planted_fifth_stands_on_the_page, two_equal_variants_differ_in_two_of_twenty_runs_at_most]
    end.

init_per_testcase(_, Config) ->
    Dir = atoll_test_file:temporary("atoll-experiments"),
    ok = file:make_dir(Dir),
    [{dir, Dir} | Config].

end_per_testcase(_, Config) ->
    ok = file:del_dir_r(?config(dir, Config)).

a_planted_fifth_stands_on_the_page(Config) ->
    Said = page(atoll_experiments_slowed_one, Config),
    ct:log("~ts", [Said]),
    ?assertMatch({match, _}, re:run(Said, "The second one is slower\\. \\| It takes as many times as long: 1\\.[12][0-9]* \\[.*\\*\\*holds\\*\\*", [unicode])).

two_equal_variants_differ_in_two_of_twenty_runs_at_most(Config) ->
    Claims = [N || N <- lists:seq(1, 20), re:run(page(atoll_experiments_equal_one, Config), "\\*\\*(holds|does not hold)\\*\\*", [{capture, none}]) =:= match],
    ?assert(length(Claims) =< 2).

%% Other tests run beside this one. They disturb every round, and what is measured is not theirs: what they
%% have used is struck out before the page is drawn.
page(Experiment, Config) ->
    Dir = ?config(dir, Config),
    {ok, #{failed := 0, runs := [File]}} = atoll_experiments:run([Experiment], #{dir => Dir, context => #{size => full, orlib => none}}),
    {ok, Measured} = file:read_file(File),
    ok = file:write_file(File, re:replace(Measured, "\"others_cpu\":[0-9.e-]+", "\"others_cpu\":0.0", [global])),
    {ok, #{page := Page}} = atoll_experiments:draw([Experiment], Dir),
    {ok, Text} = file:read_file(Page),
    Text.
