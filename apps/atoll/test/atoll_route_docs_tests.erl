%% SPDX-License-Identifier: Apache-2.0
%% docs/reach.md says what is so.
-module(atoll_route_docs_tests).

-include_lib("eunit/include/eunit.hrl").

every_call_exists_test() ->
    {match, Named} = re:run(page(), "^\\| `([a-z_]+)\\(([A-Za-z]*)\\)` \\|", [multiline, global, {capture, all_but_first, list}]),
    Calls = [{list_to_atom(Name), length(string:lexemes(Args, ","))} || [Name, Args] <- Named],
    ?assertMatch([_, _, _ | _], Calls),
    ?assertEqual([], Calls -- atoll:module_info(exports)).

a_refusal_reads_as_it_stands_there_test() ->
    Said = unicode:characters_to_binary(
        atoll:format_error({route, {refused, 'a@host1', 'd@host2', [{'g@host1', none}]}})
    ),
    ?assertNotEqual(nomatch, binary:match(page(), <<"\n", Said/binary, "\n">>)).

page() ->
    {ok, Text} = file:read_file(filename:join([root(), "docs", "reach.md"])),
    Text.

%% The tests run in a build directory inside of the working tree.
root() ->
    up(filename:absname(code:lib_dir(atoll))).

up(Dir) ->
    case filelib:is_file(filename:join([Dir, "docs", "reach.md"])) of
        true -> Dir;
        false when Dir =/= "/" -> up(filename:dirname(Dir))
    end.
