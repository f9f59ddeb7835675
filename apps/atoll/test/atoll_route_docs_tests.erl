%% docs/reach.md says what is so.
-module(atoll_route_docs_tests).

-include_lib("eunit/include/eunit.hrl").

the_keys_of_the_application_stand_there_test() ->
    {ok, Config} = atoll_config:new([], false),
    ?assertEqual(maps:with([directory, relays], Config), defaults("key", "directory")).

every_option_stands_there_with_its_default_test() ->
    ?assertEqual(
        maps:map(fun(_Key, {_Kind, Default}) -> Default end, atoll_directory:options()),
        defaults("option of `directory`", "gather_ms")
    ).

the_keys_of_the_carrier_stand_there_test() ->
    {ok, Config} = atoll_dist_config:new([]),
    Said = defaults("key", "relay"),
    ?assertEqual(maps:with([relay, seal, unrouted, relay_budget, relay_circuits, circuit_window], Config), Said).

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

%% Of the table with that head that begins with that row.
defaults(Head, First) ->
    {match, [Rows]} = re:run(
        page(),
        "^\\| " ++ Head ++ " \\| default \\| meaning \\|\n\\|[-|]+\\|\n((?:\\| `" ++ First ++ "` .*\n)(?:\\|.*\n)+)",
        [multiline, {capture, all_but_first, binary}]
    ),
    {match, Cells} = re:run(Rows, "^\\| `([a-z_]+)` \\| `([^`]+)` \\|", [multiline, global, {capture, all_but_first, list}]),
    maps:from_list([{list_to_atom(Key), term(Default)} || [Key, Default] <- Cells]).

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

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
