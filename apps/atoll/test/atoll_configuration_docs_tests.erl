%% SPDX-License-Identifier: Apache-2.0
%% docs/configuration.md has each key that the code knows, with its default, and no other.
-module(atoll_configuration_docs_tests).

-include_lib("eunit/include/eunit.hrl").

%% The section of the options of a part, and who checks them.
-define(PARTS, [
    {"detector", atoll_detector_watchers},
    {"broadcast", atoll_plumtree},
    {"beacons", atoll_discovery},
    {"roster", atoll_roster},
    {"directory", atoll_directory},
    {"attribute_options", atoll_attr_core},
    {"distances", atoll_distance_core}
]).

the_keys_of_the_application_stand_there_test() ->
    ?assertEqual(defaults(atoll_config:keys()), said("\n## The application atoll\n", "\n## ")).

the_keys_of_the_carrier_stand_there_test() ->
    ?assertEqual(defaults(atoll_dist_config:keys()), said("\n## The carrier\n", "\n## ")).

the_options_of_the_parts_stand_there_test_() ->
    [
        %% The contacts of discovery come from the key of the application.
        {Part, ?_assertEqual(defaults(maps:remove(contacts, Module:options())), said("\n### " ++ Part ++ "\n", "\n##"))}
     || {Part, Module} <- ?PARTS
    ].

the_options_of_the_strategies_stand_there_test_() ->
    [
        {atom_to_list(Name), fun() ->
            {ok, Module} = atoll_strategy:module(Name),
            ?assertEqual(defaults(Module:options()), said("\n### " ++ atom_to_list(Name) ++ "\n", "\n##"))
        end}
     || Name <- [hyparview, mesh, star, cliques, static, scamp]
    ].

%% What is shown is a configuration.
the_example_is_taken_test() ->
    [_, Rest] = binary:split(page(), <<"```erlang\n">>),
    [Text, _] = binary:split(Rest, <<"```">>),
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    {ok, [{atoll, Keys}, {kernel, [{atoll_dist, Carrier}]}]} = erl_parse:parse_term(Tokens),
    ?assertMatch({ok, _}, atoll_config:new(Keys, false)),
    ?assertMatch({ok, _}, atoll_dist_config:new(Carrier)).

defaults(Known) ->
    lists:sort([{Key, Default} || {Key, {_Kind, Default}} <- maps:to_list(Known)]).

%% The first two cells of the rows of a section, of which there is one.
said(From, To) ->
    [_, Rest] = binary:split(page(), list_to_binary(From), [global]),
    [Section | _] = binary:split(Rest, list_to_binary(To)),
    {match, Rows} = re:run(Section, "^\\| `([a-z_]+)` \\| `([^`]+)` \\| .+ \\|$", [multiline, global, {capture, all_but_first, list}]),
    lists:sort([{list_to_atom(Key), term(Default)} || [Key, Default] <- Rows]).

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

page() ->
    {ok, Text} = file:read_file(filename:join([root(filename:absname(code:lib_dir(atoll))), "docs", "configuration.md"])),
    Text.

%% The tests run in a build directory inside of the working tree.
root(Dir) ->
    case filelib:is_file(filename:join([Dir, "docs", "configuration.md"])) of
        true -> Dir;
        false when Dir =/= "/" -> root(filename:dirname(Dir))
    end.
