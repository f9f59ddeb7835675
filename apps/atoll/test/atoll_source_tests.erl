%% SPDX-License-Identifier: Apache-2.0
%% How discovery sources are written, and what the readers make of texts and records.
-module(atoll_source_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Syntax

what_is_right_is_accepted_test_() ->
    [
        ?_assertEqual(ok, atoll_source:check(Source))
     || Source <- [
            {nodes, []},
            {nodes, ['a@h', 'b@127.0.0.1', 'c@fe80::1']},
            {file, "/etc/contacts"},
            {file, <<"contacts">>},
            {dns, #{name => "app.svc.local"}},
            {dns, #{name => "_dist._tcp.app.svc.local.", type => srv, node => "app"}},
            {dns, #{name => "x", type => aaaa, nameservers => [{{127, 0, 0, 1}, 53}], timeout => 100}}
        ]
    ].

what_is_wrong_is_named_test_() ->
    [
        fun() ->
            {error, {bad_source, Source, {wrong, _, Said}} = Error} = atoll_source:check(Source),
            ?assertEqual(Why, Said),
            ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(atoll_source:format_error(Error)), Word))
        end
     || {Source, Why, Word} <- [
            {{nodes, a@h}, not_a_list, "must be a list"},
            {{nodes, ['a@h', ah]}, {not_a_node, ah}, "ah is not the name of a node"},
            {{nodes, ['a@h' | b]}, not_a_list, "must be a list"},
            {{nodes, ["a@h"]}, {not_a_node, "a@h"}, "\"a@h\" is not the name"},
            {{file, ""}, bad_path, "path"},
            {{file, [a]}, bad_path, "path"},
            {{file, <<"a", 0>>}, bad_path, "path"},
            {{dns, "app"}, not_a_map, "must be a map"},
            {{dns, #{}}, no_name, "key name is missing"},
            {{dns, #{name => "a", tpye => a}}, {unknown_key, tpye}, "no key tpye"},
            {{dns, #{name => "a..b"}}, {bad_value, name, "a..b"}, "name must be a domain name"},
            {{dns, #{name => "10.0.0.1"}}, {bad_value, name, "10.0.0.1"}, "name must be a domain name"},
            {{dns, #{name => lists:duplicate(64, $a)}}, {bad_value, name, lists:duplicate(64, $a)}, "name must"},
            {{dns, #{name => "a", type => mx}}, {bad_value, type, mx}, "a, aaaa or srv"},
            {{dns, #{name => "a", node => "a@b"}}, {bad_value, node, "a@b"}, "before the @"},
            {{dns, #{name => "a", nameservers => []}}, {bad_value, nameservers, []}, "list of {Address, Port}"},
            {{dns, #{name => "a", nameservers => [{1, 2}]}}, {bad_value, nameservers, [{1, 2}]}, "list of"},
            {{dns, #{name => "a", timeout => 99}}, {bad_value, timeout, 99}, "milliseconds"}
        ]
    ].

a_source_of_another_module_is_checked_and_said_in_a_sentence_test_() ->
    Probe = fun(Check) -> {atoll_source_probe, #{check => Check}} end,
    [
        ?_assertEqual(ok, atoll_source:check(Probe(fun() -> ok end)))
        | [
            fun() ->
                {error, {bad_source, Source, _} = Error} = atoll_source:check(Source),
                Said = unicode:characters_to_list(atoll_source:format_error(Error)),
                ?assertEqual({Said, nomatch}, {Said, string:find(Said, "\n")}),
                ?assertNotEqual({Said, nomatch}, {Said, string:find(Said, Words)})
            end
         || {Source, Words} <- [
                {dns, "must be {nodes, Nodes}, {file, Path}, {dns, Map} or {Module, Term}"},
                {{smoke_signals, hill}, "there is no source smoke_signals; there are dns, file, nodes, and any module"},
                {{"my", hill}, "there is no source \"my\""},
                {{lists, hill}, "the module lists is no source: it lacks check/1, format_error/1, label/1, read/1"},
                {{atoll_source_probe, hill}, "atoll_source_probe:check/1 ended with function_clause"},
                {Probe(fun() -> exit(oops) end), "atoll_source_probe:check/1 ended with oops"},
                {Probe(fun() -> true end), "must give ok or {error, Why}, and gave true"},
                {Probe(fun() -> {error, {said, "no hill"}} end), "is wrong: no hill"},
                %% It has no words for it.
                {Probe(fun() -> {error, fog} end), "is wrong: fog"}
            ]
        ]
    ].

what_another_module_reads_is_taken_or_is_a_trouble_test_() ->
    A = {<<"a@h">>, #{}},
    B = {<<"b@h">>, #{address => {1, 2, 3, 4}, port => 5}},
    [
        ?_assertEqual(Reading, atoll_source:read({atoll_source_probe, #{read => Read}}))
     || {Reading, Read} <- [
            {{ok, [A, B], []}, fun() -> {ok, [A, B], []} end},
            {{ok, [A], [{said, "half of it"}]}, fun() -> {ok, [A], [{said, "half of it"}]} end},
            {{error, fog}, fun() -> {error, fog} end},
            {{error, {crashed, oops}}, fun() -> error(oops) end},
            {{error, {crashed, {answer, x}}}, fun() -> exit({answer, x}) end},
            {{error, {no_reading, ok}}, fun() -> ok end},
            {{error, {no_reading, {ok, [A | A], []}}}, fun() -> {ok, [A | A], []} end},
            {{error, {no_reading, {ok, [A], none}}}, fun() -> {ok, [A], none} end},
            {{ok, [A], [{bad_contacts, 6}]}, fun() ->
                Bad = ['b@h', {<<"b">>, #{}}, {'b@h', #{}}, {<<"b@h">>, x}, {<<"b@h">>, #{port => 0}}, {<<"b@h">>, #{prt => 1}}],
                {ok, [A | Bad], []}
            end}
        ]
    ].

a_deadline_or_a_label_that_is_of_no_use_has_a_default_test_() ->
    Probe = fun(Term) -> {atoll_source_probe, Term} end,
    Label = fun(Term) -> unicode:characters_to_list(atoll_source:label(Probe(Term))) end,
    [
        ?_assertEqual({leave, 7}, atoll_source:deadline(Probe(#{deadline => {leave, 7}}))),
        ?_assertEqual("the hill", Label(#{label => "the hill"})),
        ?_assertEqual("the source {atoll_source_probe,#{}}", Label(#{})),
        ?_assertEqual("the source {atoll_source_probe,#{label => hill}}", Label(#{label => hill}))
        | [
            ?_assertEqual({kill, 6000}, atoll_source:deadline(Probe(Term)))
         || Term <- [#{}, #{deadline => soon}, #{deadline => {kill, 0}}, #{deadline => {kill, 1 bsl 32}}]
        ]
    ].

any_term_is_accepted_or_has_a_sentence_test_() -> atoll_prop:test(?FUNCTION_NAME, prop_any_term(), 500).

prop_any_term() ->
    Key = oneof([name, type, node, nameservers, timeout, any()]),
    Source = oneof([any(), {oneof([nodes, file]), any()}, {dns, ?LET(Pairs, list({Key, any()}), maps:from_list(Pairs))}, {dns, any()}]),
    ?FORALL(Term, Source, case atoll_source:check(Term) of
        ok -> true;
        {error, {bad_source, Term, _} = Error} -> is_list(unicode:characters_to_list(atoll_source:format_error(Error)))
    end).

%% Files

a_file_is_read_as_documented_test() ->
    Text =
        <<"# the first three\r\n\napp@one\r\n"
          " app@two.example = 10.0.0.2 # translated\n"
          "app@three = 10.0.0.3:9100\n\tapp@fe80::1=[fe80::2]\napp@five = [fe80::5]:1">>,
    Six = {16#fe80, 0, 0, 0, 0, 0, 0, 2},
    Five = {16#fe80, 0, 0, 0, 0, 0, 0, 5},
    ?assertEqual(
        {
            [
                {<<"app@one">>, #{}},
                {<<"app@two.example">>, #{address => {10, 0, 0, 2}}},
                {<<"app@three">>, #{address => {10, 0, 0, 3}, port => 9100}},
                {<<"app@fe80::1">>, #{address => Six}},
                {<<"app@five">>, #{address => Five, port => 1}}
            ],
            []
        },
        atoll_source_file:parse(Text)
    ).

a_wrong_line_is_told_by_its_number_test() ->
    Text =
        <<"a@h\napp\nb@h\na@b@c = 1.2.3.4\nc@h = host\nd@h = 1.2.3.4:0\ne@h = fe80::1\n"
          "f@h = [fe80::1\ng@h = 1.2.3.4:x\n = 1.2.3.4\nh@h = 1.2.3\n", 255, "@h">>,
    ?assertEqual(
        {
            [{<<"a@h">>, #{}}, {<<"b@h">>, #{}}],
            [
                {bad_line, 2, no_node_name},
                {bad_line, 4, no_node_name},
                {bad_line, 5, no_address},
                {bad_line, 6, no_port},
                {bad_line, 7, no_address},
                {bad_line, 8, no_address},
                {bad_line, 9, no_port},
                {bad_line, 10, no_node_name},
                {more_bad_lines, 2}
            ]
        },
        atoll_source_file:parse(Text)
    ).

what_is_printed_is_parsed_back_test_() -> atoll_prop:test(?FUNCTION_NAME, prop_printed_is_parsed(), 500).

prop_printed_is_parsed() ->
    ?FORALL(Lines, list(file_line()), begin
        Text = iolist_to_binary(lists:join("\n", [Printed || {Printed, _} <- Lines])),
        Expected = [Contact || {_, {contact, Contact}} <- Lines],
        Wrong = [N || {N, {_, wrong}} <- lists:zip(lists:seq(1, length(Lines)), Lines)],
        {Contacts, Complaints} = atoll_source_file:parse(Text),
        Contacts =:= Expected andalso
            [N || {bad_line, N, _} <- Complaints] =:= lists:sublist(Wrong, 8) andalso
            [N || {more_bad_lines, N} <- Complaints] =:= [length(Wrong) - 8 || length(Wrong) > 8]
    end).

file_line() ->
    frequency([
        {6, ?LET({Name, Way, Gaps, Rest}, {name(), way(), vector(4, gap()), rest()},
            {[print(Name, Way, Gaps), Rest], {contact, {Name, Way}}})},
        {1, ?LET({Gap, Rest}, {gap(), rest()}, {[Gap, Rest], nothing})},
        {1, {oneof(["app", "@h", "a@", "a b@h", "a@h =", "a@h = 1.2.3.4:70000", "a@h = h"]), wrong}}
    ]).

print(Name, Way, [A, B, C, D]) -> [A, Name, B, [["=", C, print(Way)] || map_size(Way) > 0], D].

print(#{address := Address, port := Port}) -> [bracket(Address), ":", integer_to_list(Port)];
print(#{address := Address}) -> bracket(Address).

bracket(Address) when tuple_size(Address) =:= 8 -> ["[", inet:ntoa(Address), "]"];
bracket(Address) -> inet:ntoa(Address).

gap() -> list(oneof([$\s, $\t])).

rest() -> oneof(["", "\r", "# a = b@c", "#"]).

name() ->
    Letter = oneof([$a, $Z, $0, $_, $-]),
    ?LET({Name, Host}, {non_empty(list(Letter)), non_empty(list(oneof([Letter, $., $:])))},
        iolist_to_binary([lists:sublist(Name, 100), $@, lists:sublist(Host, 100)])).

way() ->
    Address = oneof([
        vector(4, byte()), vector(8, range(0, 65535)), [16#fe80, 0, 0, 0, 0, 0, 0, 1]
    ]),
    oneof([
        #{},
        ?LET(A, Address, #{address => list_to_tuple(A)}),
        ?LET({A, P}, {Address, range(1, 65535)}, #{address => list_to_tuple(A), port => P})
    ]).

no_text_ends_the_reader_test_() -> atoll_prop:test(?FUNCTION_NAME, prop_any_text(), 500).

prop_any_text() ->
    Piece = oneof([binary(), "\n", "=", "@", "#", "[", "]", ":", "a@h", "1.2.3.4", "::1"]),
    ?FORALL(Pieces, list(Piece), begin
        {Contacts, Complaints} = atoll_source_file:parse(iolist_to_binary(Pieces)),
        lists:all(fun({Name, _}) -> atoll_source_names:is_name(Name) end, Contacts) andalso
            (Complaints =:= [] orelse said({incomplete, Complaints}) =/= "")
    end).

said(Trouble) -> said({file, "f"}, Trouble).

said(Source, Trouble) -> unicode:characters_to_list(atoll_source:format_trouble(Source, Trouble)).

what_is_no_file_is_not_opened_test() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    ?assertEqual({error, {file, not_regular}}, atoll_source:read({file, Dir})),
    ?assertEqual({error, {file, not_regular}}, atoll_source:read({file, "/dev/zero"})),
    Missing = filename:join(Dir, "missing"),
    ?assertEqual({error, {file, enoent}}, atoll_source:read({file, Missing})),
    Large = filename:join(Dir, "large"),
    ok = file:write_file(Large, binary:copy(<<"a@h\n">>, 300000)),
    ?assertMatch({error, {file, {larger_than, _}}}, atoll_source:read({file, Large})),
    ok = file:del_dir_r(Dir).

%% Records

records_are_contacts_test() ->
    ?assertEqual(
        [{<<"app@10.0.0.1">>, #{}}, {<<"app@10.0.0.2">>, #{}}],
        atoll_source_dns:contacts(a, "app", [{10, 0, 0, 2}, {10, 0, 0, 1}, {10, 0, 0, 2}])
    ),
    ?assertEqual(
        [{<<"app@fe80::1">>, #{}}],
        atoll_source_dns:contacts(aaaa, "app", [{16#fe80, 0, 0, 0, 0, 0, 0, 1}])
    ),
    ?assertEqual(
        [{<<"app@b.local">>, #{port => 9100}}, {<<"app@c.local">>, #{}}],
        atoll_source_dns:contacts(srv, "app", [{0, 0, 9100, "b.local"}, {1, 2, 0, "c.local"}])
    ).

no_record_ends_the_reader_test_() -> atoll_prop:test(?FUNCTION_NAME, prop_any_records(), 500).

prop_any_records() ->
    Target = list(oneof([byte(), $a, $.])),
    ?FORALL(Records, list({range(0, 65535), range(0, 65535), range(0, 65535), Target}), begin
        Contacts = atoll_source_dns:contacts(srv, "app", Records),
        {ok, Good, Complaints} = atoll_source:read(
            {atoll_source_probe, #{read => fun() -> {ok, Contacts, []} end}}
        ),
        [{bad_contacts, length(Contacts) - length(Good)} || Good =/= Contacts] =:= Complaints
    end).

every_reason_has_words_test_() ->
    [
        ?_assertNotEqual({Source, Reason, nomatch}, {Source, Reason, string:find(said(Source, {failing, Reason}), Words)})
     || {Source, Reason, Words} <- [
            {{file, "f"}, {late, 5}, "within 5 ms"},
            {{file, "f"}, {file, enoent}, "no such file"},
            {{file, "f"}, {file, not_regular}, "no ordinary file"},
            {{file, "f"}, {file, {larger_than, 1}}, "larger than 1 bytes"},
            {{dns, #{name => "a"}}, {dns, timeout}, "no name server answered"},
            {{dns, #{name => "a"}}, {dns, formerr}, "cannot be understood"},
            {{dns, #{name => "a"}}, {dns, servfail}, "servfail"},
            {{nodes, []}, {crashed, {badmatch, 1}}, "the reader ended with {badmatch,1}"},
            {{atoll_source_probe, #{}}, {no_reading, x}, "atoll_source_probe:read/1 gave x"},
            {{atoll_source_probe, #{}}, {said, "fog"}, "cannot be read: fog"},
            {{atoll_source_probe, #{}}, fog, "cannot be read: fog"}
        ]
    ].

%% The resolver

resolver_test_() ->
    {foreach, fun atoll_dns_server:start/0, fun atoll_dns_server:stop/1, [
        fun(Server) -> {Name, fun() -> Test(Server) end} end
     || {Name, Test} <- [
            {"each type of record is read", fun each_type_is_read/1},
            {"an answer that does not fit comes over TCP", fun long_answers_come/1},
            {"a name that is not there is an empty answer that is said", fun nothing_there/1},
            {"what is no answer is an error", fun no_answer/1}
        ]
    ]}.

dns(Server, Type, Timeout) ->
    {dns, #{
        name => "app.atoll.test",
        type => Type,
        node => "app",
        timeout => Timeout,
        nameservers => [{{127, 0, 0, 1}, atoll_dns_server:port(Server)}]
    }}.

ask(Server, Type) -> atoll_source:read(dns(Server, Type, 5000)).

each_type_is_read(Server) ->
    ok = atoll_dns_server:set(Server, a, [{records, [{10, 0, 0, 1}, {10, 0, 0, 2}]}]),
    ok = atoll_dns_server:set(Server, aaaa, [{records, [{16#fe80, 0, 0, 0, 0, 0, 0, 1}]}]),
    ok = atoll_dns_server:set(Server, srv, [{records, [{0, 5, 9100, "b.atoll.test"}]}]),
    ?assertEqual({ok, [{<<"app@10.0.0.1">>, #{}}, {<<"app@10.0.0.2">>, #{}}], []}, ask(Server, a)),
    ?assertEqual({ok, [{<<"app@fe80::1">>, #{}}], []}, ask(Server, aaaa)),
    ?assertEqual({ok, [{<<"app@b.atoll.test">>, #{port => 9100}}], []}, ask(Server, srv)).

long_answers_come(Server) ->
    Many = [{10, 0, 1, N} || N <- lists:seq(1, 200)],
    ok = atoll_dns_server:set(Server, a, [{truncated, Many}]),
    {ok, Contacts, []} = ask(Server, a),
    ?assertEqual(200, length(Contacts)),
    ?assertEqual([{udp, a}, {tcp, a}], atoll_dns_server:asked(Server, 2)).

nothing_there(Server) ->
    ?assertEqual({ok, [], [{no_records, a}]}, ask(Server, a)),
    ok = atoll_dns_server:set(Server, a, [{records, []}]),
    ?assertEqual({ok, [], [{no_records, a}]}, ask(Server, a)),
    %% Another type's records are none of this one.
    ok = atoll_dns_server:set(Server, srv, [{records, [{10, 0, 0, 1}]}]),
    ?assertEqual({ok, [], [{no_records, srv}]}, ask(Server, srv)).

no_answer(Server) ->
    ok = atoll_dns_server:set(Server, a, [silent]),
    ?assertEqual({error, {dns, timeout}}, atoll_source:read(dns(Server, a, 100))),
    ok = atoll_dns_server:set(Server, a, [garbage]),
    ?assertEqual({error, {dns, formerr}}, atoll_source:read(dns(Server, a, 1000))),
    ok = atoll_dns_server:set(Server, a, [servfail]),
    ?assertEqual({error, {dns, servfail}}, atoll_source:read(dns(Server, a, 1000))).
