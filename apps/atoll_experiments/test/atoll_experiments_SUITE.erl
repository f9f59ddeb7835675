%% Experiments on real nodes, from the start of the nodes to the sentence on the page.
-module(atoll_experiments_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([a_planted_fifth_stands_on_the_page/1, two_equal_variants_differ_in_two_of_twenty_runs_at_most/1]).

suite() -> [{timetrap, {minutes, 30}}].

%% Times are compared, on whatever else the machine does: the fast tier has the same with made-up
%% samples, and real nodes in the suites of the command line.
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

%% Rounds that other tests disturb are left out: then there may be too few, and another run is made.
a_planted_fifth_stands_on_the_page(Config) ->
    Said = said(atoll_experiments_slowed_one, Config, 10),
    ct:log("~ts", [Said]),
    ?assertMatch({match, _}, re:run(Said, "The second one is slower\\. \\| It takes as many times as long: 1\\.[12][0-9]* \\[.*\\*\\*holds\\*\\*", [unicode])).

said(_Experiment, _Config, 0) ->
    error(always_disturbed);
said(Experiment, Config, Tries) ->
    Text = page(Experiment, Config),
    case re:run(Text, "not told: [0-4] starts|were disturbed by other|not told apart", [{capture, none}]) of
        match -> said(Experiment, Config, Tries - 1);
        nomatch -> Text
    end.

two_equal_variants_differ_in_two_of_twenty_runs_at_most(Config) ->
    Claims = [N || N <- lists:seq(1, 20), re:run(page(atoll_experiments_equal_one, Config), "\\*\\*(holds|does not hold)\\*\\*", [{capture, none}]) =:= match],
    ?assert(length(Claims) =< 2).

page(Experiment, Config) ->
    {ok, #{page := Page, failed := 0}} =
        atoll_experiments:run([Experiment], #{dir => ?config(dir, Config), context => #{size => full, orlib => none}}),
    {ok, Text} = file:read_file(Page),
    Text.
