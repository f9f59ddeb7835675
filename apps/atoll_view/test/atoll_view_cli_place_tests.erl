%% SPDX-License-Identifier: Apache-2.0
%% What `atoll place' is asked, and what it prints, without nodes.
-module(atoll_view_cli_place_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Nothing of this gets as far as a cluster.
a_wrong_command_line_has_its_sentence_test_() ->
    [
        {string:join(Args, " "), ?_assertEqual({usage, Sentence}, outcome(Args))}
     || {Args, Sentence} <- [
            {["--where", "mem_free > and loadavg1 < 2"],
                "--where: at character 12 there is \"and\" where a constant should be\n"
                "  mem_free > and loadavg1 < 2\n"
                "             ^"},
            {["--where", "loadavg1 < 2 and"],
                "--where: at character 17 there is the end where the name of an attribute, \"not\" or \"(\" should be\n"
                "  loadavg1 < 2 and\n"
                "                  ^"},
            {["--where", ""], "--where needs a value"},
            {["--rank", "lest loadavg1"],
                "--rank must be least or most, and the name of an attribute, such as 'least loadavg1', not \"lest loadavg1\""},
            {["--rank", "least"],
                "--rank must be least or most, and the name of an attribute, such as 'least loadavg1', not \"least\""},
            {["--near", "reef1", "--rank", "least loadavg1"], "--near and --rank both say which nodes are better: not both"},
            {["--near", "reef1", "--how", "guessed"], "--how must be one of declared, measured, estimated, not \"guessed\""},
            {["--near", "reef1", "--how", "measured", "--network", code:which(?MODULE)],
                "--network declares the distances, and --how asks for others: not both"},
            {["--how", "measured"], "--how is for --near"},
            {["--network", code:which(?MODULE)], "--network is for --near"},
            {["--within", "0.5"], "--within is for --near or --rank"},
            {["--attributes", "a,,b"], "--attributes must be names with commas between, not \"a,,b\""},
            {["--deadline", "0"], "--deadline must be a whole number from 1 to 3,600,000, not \"0\""},
            {["--nearr", "reef1"], "there is no option --nearr; did you mean --near?"},
            {["reef1"], "the argument \"reef1\" is one too many; a cluster is named with --cluster, or -c"}
        ]
    ].

a_network_with_two_roots_is_no_network_test() ->
    File = atoll_test_file:temporary("atoll_view_cli_place_tests"),
    ok = file:write_file(File, "{network, [{node, a@h}]}.\n\n{node, b@h}.\n"),
    try
        ?assertEqual(
            {usage, File ++ ": line 3: a second root begins here, and the network that begins in line 1 is to be all"},
            outcome(["--near", "a", "--network", File])
        )
    after
        ok = file:delete(File)
    end.

%% The node speaks of keys of the application; who typed a command has options.
what_nodes_do_not_know_is_had_by_an_option_test_() ->
    [
        {atom_to_list(How), fun() ->
            {error, Error} = atoll_place:nodes(#{near => node(), how => How}),
            ?assertEqual(Told, unicode:characters_to_list(atoll_view_cli_place:why_not(Error)))
        end}
     || {How, Told} <- [
            {declared, "no network is declared on this node; set the option network of atoll; "
                "\"atoll up N --network FILE\" does, and so does --network FILE here"},
            {estimated, "this node measures no distances; set the option distances of atoll; \"atoll up N --distances\" does"}
        ]
    ].

outcome(Args) ->
    {"atoll place", _Json, {Kind, Sentence}} = atoll_cli:execute(["place" | Args]),
    {Kind, unicode:characters_to_list(Sentence)}.

a_name_stands_where_its_comparison_begins_test_() ->
    [
        {Text, ?_assertEqual(At, atoll_predicate_text:position(Name, Text))}
     || {Name, Text, At} <- [
            {gpu, "gpu > 1", {ok, 1}},
            {gpu, "state == gpu and not (gpu > 1)", {ok, 23}},
            {gpu, "state in or gpu", {ok, 13}},
            {gpu, "tags == {a, gpu} or 'gpu' == 1", {ok, 21}},
            {gpu, "state == gpu", none},
            {'and', "a == \"and\" and 'and' > 1", {ok, 16}},
            {'a b', "x and 'a b'", {ok, 7}}
        ]
    ].

attributes_to_show_change_nothing_of_a_condition_test() ->
    Values = #{a => 1, b => true, c => 3},
    ?assertEqual(
        [],
        [
            {Text, Known}
         || Text <- ["a > 0", "a > 1", "d > 1", "not d > 1", "a > 1 or c == 3", "{}", "b", "b and not (a < 1 or d == 2)"],
            Known <- [Values, maps:remove(a, Values), #{}],
            {ok, Source} <- [atoll_predicate_text:parse(Text)],
            {ok, Plain} <- [atoll_predicate:new(Source)],
            {ok, Also} <- [atoll_predicate:new(atoll_view_cli_place:also([b, d, e], Source))],
            atoll_predicate:value(Plain, Known) =/= atoll_predicate:value(Also, Known) orelse
                [b, d, e] -- atoll_predicate:names(Also) =/= []
        ]
    ).

all_attributes_that_nobody_has_are_told_of_test_() ->
    Plan = #{used => [], shown => [foo, mem_free, bar, mem_fre]},
    Known = [mem_free, loadavg1],
    [
        {Sentence, ?_assertEqual(Sentence, unicode:characters_to_list(atoll_view_cli_place:unknown(Unknown, Known, P)))}
     || {Unknown, P, Sentence} <- [
            {[bar, foo], Plan, "--attributes: no node that answers has an attribute foo, nor bar"},
            {[mem_fre], Plan, "--attributes: no node that answers has an attribute mem_fre; did you mean mem_free?"},
            {[bar, foo, qux], Plan#{rank => {least, qux}}, "--rank: no node that answers has an attribute qux"},
            {[bar, foo], Plan#{used := [bar, foo], where => "foo and bar"},
                "--where: at character 1 there is foo, and no node that answers has such an attribute\n  foo and bar\n  ^"}
        ]
    ].

found() ->
    #{
        from => 'r1@h',
        node => none,
        how => declared,
        choice => #{
            nodes => ['r2@h', 'r1@h'],
            values => #{'r1@h' => #{load => 0.123456, os => {unix, linux}, cpu => "EPYC"}, 'r2@h' => #{load => 2, os => undefined}},
            distances => #{'r2@h' => 0.5},
            age_ms => 1200,
            silent => ['r3@h'],
            unreachable => []
        }
    }.

people_see_the_best_first_and_who_is_missing_test() ->
    ?assertEqual(
        "node  distance    load  os            cpu\n"
        "r2@h       0.5       2  -             -\n"
        "r1@h         -  0.1235  {unix,linux}  \"EPYC\"\n"
        "\n"
        "silent  r3@h\n"
        "values  up to 1,200 ms old\n",
        unicode:characters_to_list(atoll_view_cli_place_result:table(found(), [load, os, cpu]))
    ).

of_a_round_trip_the_unit_is_told_test() ->
    #{choice := Choice} = Found = found(),
    ?assertEqual(
        "node  round trip\nr2@h      500 \x{b5}s\nr1@h        2 ms\n",
        unicode:characters_to_list(
            atoll_view_cli_place_result:table(
                Found#{how := measured, choice := Choice#{distances := #{'r1@h' => 2, 'r2@h' => 0.5}, age_ms := 0, silent := []}}, []
            )
        )
    ).

programs_get_all_of_it_test() ->
    Object = atoll_view_cli_place_result:json(found(), [load, os, cpu]),
    ?assertEqual(
        {[
            {asked, 'r1@h'},
            {node, null},
            {distance, declared},
            {nodes, [
                {[{node, 'r2@h'}, {distance, 0.5}, {attributes, {[{<<"load">>, 2}, {<<"os">>, null}, {<<"cpu">>, null}]}}]},
                {[{node, 'r1@h'}, {distance, null},
                  {attributes, {[{<<"load">>, 0.123456}, {<<"os">>, <<"{unix,linux}">>}, {<<"cpu">>, <<"EPYC">>}]}}]}
            ]},
            {age_ms, 1200},
            {silent, ['r3@h']},
            {unreachable, []}
        ]},
        Object
    ),
    ?assert(is_binary(iolist_to_binary(atoll_cli_json:encode(Object)))).

%% An attribute may be any term, and the object has to be JSON all the same.
any_value_can_be_written_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(Value, any(), begin
            #{choice := Choice} = Found = found(),
            Object = atoll_view_cli_place_result:json(Found#{choice := Choice#{values := #{'r1@h' => #{x => Value}}}}, [x]),
            Table = atoll_view_cli_place_result:table(Found#{choice := Choice#{values := #{'r1@h' => #{x => Value}}}}, [x]),
            is_binary(iolist_to_binary(atoll_cli_json:encode(Object))) andalso is_binary(unicode:characters_to_binary(Table))
        end),
        300
    ).
