%% SPDX-License-Identifier: Apache-2.0
%% What is to be done for a family, by what was written down and what its hosts say.
-module(atoll_deploy_family_tests).

-include_lib("eunit/include/eunit.hrl").

row(N, More) ->
    maps:merge(#{node => lists:concat(["f", N, "@h"]), family => "f", number => N, domain => "d", host => "h", release => "one", needs => #{}, state => up}, More).

seen(Rows, Nodes) ->
    {Seen, Strays, Unreached} = atoll_deploy_family:seen(Rows, [{{"d", "h"}, Nodes}]),
    {[State || #{state := State} <- Seen], [{Node, State} || #{node := Node, state := State} <- Strays], Unreached}.

what_a_host_says_counts_more_than_what_was_written_down_test() ->
    Rows = [row(1, #{}), row(2, #{}), row(3, #{state => starting})],
    ?assertEqual({[up, up, starting], [], #{}}, seen(Rows, {ok, [{"f1@h", up}, {"f2@h", up}]})),
    %% A program that a VM has started is not the node.
    ?assertEqual({[up, failed, starting], [], #{}}, seen(Rows, {ok, [{"f1@h", up}, {"f2@h", left}]})),
    ?assertEqual({[up, up, starting], [], #{{"d", "h"} => "it is away"}}, seen(Rows, {error, "it is away"})).

what_nobody_knows_is_stopped_test() ->
    ?assertEqual({[up], [{"f7@h", stopping}, {"f8@h", stopping}], #{}}, seen([row(1, #{})], {ok, [{"f1@h", up}, {"f7@h", up}, {"f8@h", left}]})).

%% A roll from one to two was broken off: of the first node all was done, of the second one something, of the third one nothing.
a_roll_that_was_broken_off_is_to_be_undone_test() ->
    Rows = [row(1, #{release => "two", before => "one"}), row(2, #{release => "two", before => "one", state => starting}), row(3, #{}), row(4, #{before => "one"})],
    Restored = [atoll_deploy_family:restored(Row) || Row <- Rows],
    ?assertEqual([row(1, #{state => starting, rolled => "two"}), row(2, #{state => starting, rolled => "two"}), row(3, #{}), row(4, #{})], Restored),
    Wanted = #{family => "f", count => 4, release => "one", needs => #{}, places => [{"d", #{host => "h", port => 22, attributes => []}}]},
    {ok, Steps} = atoll_deploy_plan:plan(Wanted, Restored, []),
    ?assertEqual([{start, "f1@h", "one"}, {start, "f2@h", "one"}], [{What, Node, Release} || {What, #{node := Node, release := Release}} <- Steps]).

no_secret_is_in_what_a_fault_is_told_with_test() ->
    Dir = atoll_test_file:temporary("atoll_deploy_family"),
    ok = filelib:ensure_path(Dir),
    File = filename:join(Dir, "cookie"),
    ok = file:write_file(File, "HUSHHUSH\n"),
    {ok, Cookie} = atoll_deploy_family:cookie(#{peer => self(), dir => Dir}, #{name => "f", cookie_file => File}),
    ?assertEqual(<<"HUSHHUSH">>, Cookie()),
    ?assertEqual(nomatch, string:find(io_lib:format("~p", [#{cookie => Cookie}]), "HUSHHUSH")),
    file:del_dir_r(Dir).
