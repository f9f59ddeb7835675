%% SPDX-License-Identifier: Apache-2.0
-module(atoll_deploy_file_tests).

-include_lib("eunit/include/eunit.hrl").

terms() ->
    [
        {deploy, "shop", 6},
        {family, "shop", #{release => "one", domains => ["rack"]}},
        {domain, "rack", #{provider => "lab", hosts => ["a", "b"]}},
        {release, "one", #{path => "one.tar.gz"}},
        {provider, "lab", #{driver => ssh}}
    ].

things_stand_behind_those_that_they_need_test() ->
    {ok, #{things := Things, deploy := Deploy}} = atoll_deploy_file:check(terms(), [], "/there"),
    ?assertEqual([provider, release, domain, family], [Kind || {Kind, _} <- Things]),
    ?assertMatch({release, #{path := "/there/one.tar.gz"}}, lists:keyfind(release, 1, Things)),
    ?assertEqual([{"shop", 6}], Deploy).

each_mistake_has_its_sentence_test_() ->
    [
        {Sentence, fun() ->
            {error, Said} = atoll_deploy_file:check(Terms, Known, "/there"),
            ?assertEqual(Sentence, lists:flatten(Said))
        end}
     || {Terms, Known, Sentence} <- [
            {[x], [], "x is none of its terms, which are {provider | release | domain | family, Name, #{...}} and {deploy, Family, N}"},
            {[{node, "x", #{}}], [], "there is no node: there are provider, release, domain, family and deploy"},
            {[{deploy, "shop", -1}], [], "{deploy,\"shop\",-1} must be {deploy, Family, N}, with a whole number from 0 to 10000"},
            {[{deploy, "shop", 1}], [], "{deploy, \"shop\", 1} names a family that there is not"},
            {[{domain, "rack", #{provider => "lab"}}], [], "the domain rack names the provider lab, which there is not"},
            {[{provider, "lab", #{driver => ssh}}, {provider, "lab", #{driver => ssh}}], [], "the provider lab stands there twice"},
            {[{deploy, "shop", 1}, {deploy, "shop", 2}], [{family, "shop"}], "the deploy shop stands there twice"}
        ]
    ].

what_is_known_already_need_not_stand_there_test() ->
    ?assertMatch({ok, _}, atoll_deploy_file:check([{domain, "rack", #{provider => "lab"}}], [{provider, "lab"}], ".")),
    ?assertMatch({ok, _}, atoll_deploy_file:check([{deploy, "shop", 0}], [{family, "shop"}], ".")).

a_file_that_cannot_be_read_is_named_with_its_line_test() ->
    File = atoll_test_file:temporary("atoll_deploy_file_tests"),
    ok = file:write_file(File, "{provider, \"lab\", #{driver => ssh}}.\n{deploy, \"shop\" 1}.\n"),
    try
        {error, Sentence} = atoll_deploy_file:read(File),
        ?assertMatch({match, _}, re:run(lists:flatten(Sentence), "^" ++ File ++ ": line 2: "))
    after
        file:delete(File)
    end.
