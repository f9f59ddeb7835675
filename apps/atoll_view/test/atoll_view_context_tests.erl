%% SPDX-License-Identifier: Apache-2.0
%% The contexts of a user, in a folder of the test's own.
-module(atoll_view_context_tests).

-include_lib("eunit/include/eunit.hrl").

contexts_test_() ->
    [{atom_to_list(Name), fun() -> in_a_folder(Case) end}
     || {Name, Case} <- [
            {the_first_one_is_in_use, fun the_first_one_is_in_use/0},
            {a_name_is_given_once, fun a_name_is_given_once/0},
            {one_that_is_removed_is_in_use_no_more, fun one_that_is_removed_is_in_use_no_more/0},
            {a_name_stands_for_its_nodes, fun a_name_stands_for_its_nodes/0},
            {of_many_at_once_none_is_lost, fun of_many_at_once_none_is_lost/0},
            {without_a_folder_of_the_user_there_is_none, fun without_a_folder_of_the_user_there_is_none/0},
            {a_file_that_is_none_of_a_context_is_told_and_kept, fun a_file_that_is_none_of_a_context_is_told_and_kept/0}]].

in_a_folder(Case) ->
    Dir = atoll_test_file:temporary("atoll_view_context"),
    with("XDG_CONFIG_HOME", Dir, fun() ->
        try
            Case()
        after
            file:del_dir_r(Dir)
        end
    end).

%% With another value of a variable of the environment, or without it.
with(Variable, Value, Fun) ->
    Before = os:getenv(Variable),
    Set = fun
        (false) -> true = os:unsetenv(Variable);
        (Text) -> true = os:putenv(Variable, Text)
    end,
    Set(Value),
    try
        Fun()
    after
        Set(Before)
    end.

the_first_one_is_in_use() ->
    ?assertEqual({ok, #{in_use => none, contexts => []}}, atoll_view_context:all()),
    ?assertEqual({ok, true}, atoll_view_context:add("prod", #{node => "a@h", cookie_file => "/c"})),
    ?assertEqual({ok, false}, atoll_view_context:add("beta", #{node => "b@h"})),
    ?assertEqual(
        {ok, #{in_use => "prod", contexts => [{"beta", #{node => "b@h"}}, {"prod", #{node => "a@h", cookie_file => "/c"}}]}},
        atoll_view_context:all()
    ),
    ok = atoll_view_context:use("beta"),
    ?assertMatch({ok, #{in_use := "beta"}}, atoll_view_context:all()),
    ok = atoll_view_context:use(none),
    ?assertMatch({ok, #{in_use := none, contexts := [_, _]}}, atoll_view_context:all()).

a_name_is_given_once() ->
    {ok, true} = atoll_view_context:add("prod", #{node => "a@h"}),
    ?assertEqual("There is a context named prod already.", said(atoll_view_context:add("prod", #{node => "b@h"}))),
    ?assertEqual("There is no context named beta, only prod.", said(atoll_view_context:use("beta"))),
    ?assertEqual("There is no context named beta, only prod.", said(atoll_view_context:remove("beta"))),
    ?assertMatch({ok, #{contexts := [{"prod", #{node := "a@h"}}]}}, atoll_view_context:all()).

one_that_is_removed_is_in_use_no_more() ->
    {ok, true} = atoll_view_context:add("prod", #{node => "a@h"}),
    ok = atoll_view_context:remove("prod"),
    ?assertEqual({ok, #{in_use => none, contexts => []}}, atoll_view_context:all()),
    ?assertEqual("There is no context named prod, nor any other.", said(atoll_view_context:use("prod"))).

a_name_stands_for_its_nodes() ->
    {ok, true} = atoll_view_context:add("prod", #{node => "b@h, a@h", tls_options_file => "/t"}),
    ?assertEqual({ok, {joined, "prod", #{nodes => [a@h, b@h], tls_options_file => "/t"}}}, atoll_view_context:find("prod")),
    ?assertEqual({ok, {held, "reef"}}, atoll_view_context:find("reef")),
    ?assertMatch("No cluster named reef is running" ++ _, said({error, atoll_view_context:not_running("reef")})),
    ?assertMatch({match, _}, re:run(atoll_view_context:not_running("reef"), "contexts: prod\\.$")).

%% Each of its own name, and all of one name.
of_many_at_once_none_is_lost() ->
    Names = [lists:concat(["c", N]) || N <- lists:seq(1, 30)],
    Added = at_once([{Name, #{node => "a@h"}} || Name <- Names]),
    ?assertEqual([], [Error || {error, Error} <- Added]),
    ?assertEqual([{ok, true}], [A || A <- Added, A =/= {ok, false}]),
    {ok, #{in_use := InUse, contexts := Contexts}} = atoll_view_context:all(),
    ?assertEqual({lists:sort(Names), true}, {[Name || {Name, _} <- Contexts], lists:member(InUse, Names)}),
    Same = at_once([{"same", #{node => Node ++ "@h"}} || Node <- Names]),
    ?assertMatch([_], [A || {ok, false} = A <- Same]),
    ?assertEqual(["There is a context named same already."], lists:usort([said(A) || {error, _} = A <- Same])),
    %% Nothing else is left behind.
    {ok, File} = atoll_view_context:file("same"),
    ?assertMatch({ok, Left} when length(Left) =:= 31, file:list_dir(filename:dirname(File))).

at_once(Contexts) ->
    Refs = [element(2, spawn_monitor(fun() -> exit({added, atoll_view_context:add(Name, Context)}) end)) || {Name, Context} <- Contexts],
    [receive {'DOWN', Ref, process, _, {added, Answer}} -> Answer end || Ref <- Refs].

without_a_folder_of_the_user_there_is_none() ->
    with("XDG_CONFIG_HOME", false, fun() ->
        with("HOME", false, fun() ->
            ?assertEqual({ok, #{in_use => none, contexts => []}}, atoll_view_context:all()),
            ?assertEqual("There is no folder to keep contexts in: neither HOME nor XDG_CONFIG_HOME is set.",
                         said(atoll_view_context:add("prod", #{node => "a@h"}))),
            ?assertEqual(ok, atoll_view_context:use(none)),
            ?assertEqual("There is no context named prod, nor any other.", said(atoll_view_context:remove("prod")))
        end)
    end).

%% Whatever wrote it, it is not written over.
a_file_that_is_none_of_a_context_is_told_and_kept() ->
    {ok, File} = atoll_view_context:file("prod"),
    ok = filelib:ensure_dir(File),
    [
        begin
            ok = file:write_file(File, Text),
            {error, Sentence} = atoll_view_context:all(),
            ?assertNotEqual(nomatch, string:find(Sentence, File)),
            {error, _} = atoll_view_context:add("prod", #{node => "a@h"}),
            ?assertEqual({ok, Text}, file:read_file(File))
        end
     || Text <- [
            <<"nonsense">>,
            <<200, $\n>>,
            <<"#{node => \"no node\"}.\n">>,
            <<"#{node => 5}.\n">>,
            <<"#{node => \"a@h\", cookie_file => [x]}.\n">>,
            <<"#{}.\n">>,
            <<"#{node => \"a@h\"}.\n#{node => \"b@h\"}.\n">>
        ]
    ].

names_of_nodes_are_read_test_() ->
    [?_assertEqual(Read, atoll_view_join:node_names(Text))
     || {Text, Read} <- [
            {"a@h", {ok, [a@h]}}, {"b@h, a@h", {ok, [a@h, b@h]}}, {"a@10.0.0.1", {ok, ['a@10.0.0.1']}},
            {"", error}, {"a", error}, {"a@", error}, {"@h", error}, {"a@b@c", error}, {"a@h,", error}, {"a b@h", error}]].

nodes_of_one_cluster_have_names_of_one_kind_test() ->
    ?assertEqual("Nodes with long names and nodes with short ones are not of one cluster.",
                 said(atoll_view_join:start(#{nodes => [a@h, 'b@h.org']}))).

a_cookie_that_is_not_there_is_told_test() ->
    File = atoll_test_file:temporary("atoll_view_cookie"),
    ?assertEqual("The cookie file " ++ File ++ " cannot be read: no such file or directory.",
                 said(atoll_view_join:start(#{nodes => [a@h], cookie_file => File}))),
    ok = file:write_file(File, " \n"),
    try
        ?assertEqual("The cookie file " ++ File ++ " has no cookie in it.",
                     said(atoll_view_join:start(#{nodes => [a@h], cookie_file => File})))
    after
        ok = file:delete(File)
    end.

%% This VM speaks none.
a_cluster_that_takes_tls_is_told_so_test() ->
    ?assertMatch("This program was not started with TLS" ++ _,
                 said(atoll_view_join:start(#{nodes => [a@h], tls_options_file => "/dev/null"}))).

said({error, Sentence}) -> lists:flatten(Sentence).
