%% SPDX-License-Identifier: Apache-2.0
-module(atoll_tsung_scenario_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@127.0.0.1', 'b@127.0.0.1', 'c@127.0.0.1']).

%% What the elements of the scenarios here may have, as Tsung says it.
known() ->
    Any = fun(Names) -> [{Name, any, false} || Name <- Names] end,
    #{
        "tsung" => Any(["loglevel", "backend"]), "clients" => [], "client" => Any(["host", "maxusers", "use_controller_vm"]), "servers" => [],
        "server" => [{"host", any, true}, {"port", any, true}, {"type", ["ssl", "tcp", "udp", "erlang"], true}], "load" => [],
        "arrivalphase" => Any(["phase", "duration", "unit"]), "users" => Any(["arrivalrate", "unit", "maxnumber"]), "sessions" => [],
        "session" => Any(["name", "probability", "type"]), "for" => Any(["var", "from", "to"]), "thinktime" => Any(["value"]),
        "request" => Any(["subst"]), "rpc" => Any(atoll_tsung_rpc:attributes())
    }.

plan(More) ->
    maps:merge(
        #{nodes => ?NODES, module => "erlang", function => "node", arguments => "", type => call, rate => 10, seconds => 4, requests => 1, think => 0, clients => []},
        More
    ).

text(Plan) -> unicode:characters_to_binary(atoll_tsung_scenario:new(Plan)).

read(Text) -> atoll_tsung_scenario:read(Text, known()).

a_new_scenario_says_what_it_was_made_of_test() ->
    ?assertEqual({ok, #{nodes => ?NODES, clients => []}}, read(text(plan(#{})))),
    ?assertEqual({ok, #{nodes => ?NODES, clients => ["client1.tsung"]}}, read(text(plan(#{clients => ["client1.tsung"]})))),
    Text = text(plan(#{arguments => "\"<&>\", %%_i%%", rate => 0.5, users => 7, requests => 3, think => 1.5, timeout => 100})),
    ?assertEqual({ok, #{nodes => ?NODES, clients => []}}, read(Text)),
    [?assertMatch({_, _}, binary:match(Text, Part), Part) || Part <- [
        <<"arrivalrate=\"0.5\"">>, <<"maxnumber=\"7\"">>, <<"from=\"1\" to=\"3\"">>, <<"<thinktime value=\"1.5\"/>">>, <<"timeout=\"100\"">>,
        <<"<request subst=\"true\">">>, <<"arguments=\"&quot;&lt;&amp;&gt;&quot;, %%_i%%\"">>
    ]].

the_shares_of_the_nodes_are_all_together_test_() ->
    atoll_prop:tests([{"the shares of the nodes are 100 together", shares(), 300}]).

shares() ->
    ?FORALL(
        Count,
        range(1, 200),
        begin
            Text = text(plan(#{nodes => [list_to_atom(lists:concat(["n", N, "@h"])) || N <- lists:seq(1, Count)]})),
            {match, Shares} = re:run(Text, "probability=\"([0-9.]+)\"", [global, {capture, all_but_first, list}]),
            abs(100 - lists:sum([list_to_float(Share) || [Share] <- Shares])) < 0.001
        end
    ).

%% Around the part that a case is about, which begins in line 8.
scenario(Part) ->
    iolist_to_binary([
        "<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"tsung-1.0.dtd\">\n<tsung>\n<clients><client host=\"localhost\" use_controller_vm=\"true\"/></clients>\n"
        "<servers><server host=\"localhost\" port=\"1\" type=\"erlang\"/></servers>\n<sessions>\n<session name=\"s\" probability=\"100\" type=\"ts_rpc\">\n",
        Part, "\n</session>\n</sessions>\n</tsung>\n"
    ]).

rpc(Attributes) -> ["<request>\n<rpc type=\"call\" module=\"m\" function=\"f\"\n     node=\"a@b\"", Attributes, "/>\n</request>"].

what_is_wrong_is_told_with_its_line_test_() ->
    [
        {Sentence, ?_assertEqual({error, Line, Sentence}, flat(read(Text)))}
     || {Line, Sentence, Text} <- [
            {11, "rpc has no attribute colour; it has type, module, function, arguments, node, timeout", scenario(rpc(["\n     colour=\"red\"\n"]))},
            {10, "rpc has no attribute nodes; it has type, module, function, arguments, node, timeout", scenario(rpc([" nodes=\"3\"\n\n"]))},
            {10, "arguments must be Erlang terms with commas between, not \"1 2\"", scenario(rpc([" arguments=\"1 2\""]))},
            {10, "there is a variable in arguments, and the request does not say subst=\"true\"", scenario(rpc([" arguments=\"%%_x%%\""]))},
            {9, "rpc needs the attribute node", scenario("<request>\n<rpc type=\"call\" module=\"m\" function=\"f\"/>\n</request>")},
            {8, "thinktime has no attribute vaule; it has value", scenario("<thinktime vaule=\"1\"/>")},
            {8, "there is no element thinktyme in a scenario", scenario("<thinktyme value=\"1\"/>")},
            {8, "clients has no attribute host, nor any other", scenario("<clients host=\"x\"/>")},
            {8, "type of server must be one of ssl, tcp, udp, erlang, not \"erl\"", scenario("<server host=\"h\" port=\"1\" type=\"erl\"/>")},
            {8, "server needs the attribute port", scenario("<server host=\"h\" type=\"erlang\"/>")}
        ]
    ].

flat({error, {Line, Sentence}}) -> {error, Line, lists:flatten(Sentence)}.

the_first_that_is_wrong_is_told_test() ->
    ?assertMatch({error, {8, _}}, read(scenario(["<thinktime a=\"1\"/>\n<thinktime b=\"1\"/>"]))).

one_that_asks_for_nothing_is_wrong_test() ->
    ?assertEqual({error, {none, "it has no request"}}, read(scenario("<thinktime value=\"1\"/>"))),
    ?assertEqual({error, {none, "it has no request"}}, read(<<"<tsung/>">>)).

what_is_no_xml_is_told_with_its_line_test() ->
    ?assertMatch({error, {Line, ["it is no XML: " | _]}} when is_integer(Line), read(scenario("<request>"))),
    ?assertMatch({error, {1, _}}, read(<<"hello">>)),
    ?assertMatch({error, {1, ["it is no XML: " | _]}}, read(<<>>)).

a_scenario_gets_our_document_type_and_keeps_its_lines_test_() ->
    Rest = <<"<tsung loglevel=\"notice\"/>\n">>,
    [
        ?_assertEqual({ok, iolist_to_binary([Begin, Type, Middle, Rest])}, atoll_tsung_scenario:with_dtd(iolist_to_binary([Before, Rest]), "/x/a&b.dtd"))
     || {Before, Begin, Type, Middle} <- [
            {<<"<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"tsung-1.0.dtd\" [ <!ENTITY e \"1\"> ]>\n">>,
                <<"<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM ">>, <<"\"/x/a&amp;b.dtd\"">>, <<" [ <!ENTITY e \"1\"> ]>\n">>},
            {<<"<!DOCTYPE tsung SYSTEM '/usr/share/tsung/tsung-1.0.dtd'>\n">>, <<"<!DOCTYPE tsung SYSTEM ">>, <<"\"/x/a&amp;b.dtd\"">>, <<">\n">>},
            {<<"<?xml version=\"1.0\"?>\n">>, <<"<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM ">>, <<"\"/x/a&amp;b.dtd\"">>, <<"> ">>}
        ]
    ] ++ [?_assertMatch({error, {none, _}}, atoll_tsung_scenario:with_dtd(<<"<other/>">>, "/x"))].
