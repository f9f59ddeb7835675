%% SPDX-License-Identifier: Apache-2.0
-module(atoll_tsung_rpc_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([many_names/0]).

-define(NODE, "a@127.0.0.1").

given(More) ->
    maps:to_list(maps:merge(#{"type" => "call", "module" => "lists", "function" => "seq", "arguments" => "1, 3", "node" => ?NODE}, More)).

read(More) -> atoll_tsung_rpc:read(given(More), false, false).

a_request_says_what_is_called_test() ->
    ?assertMatch({ok, #{type := call, timeout := infinity, what := {'a@127.0.0.1', lists, seq, [1, 3]}}}, read(#{})),
    ?assertMatch({ok, #{type := cast, what := {_, lists, seq, []}}}, read(#{"type" => "cast", "arguments" => ""})),
    ?assertMatch({ok, #{timeout := 50}}, read(#{"timeout" => "50"})),
    ?assertMatch({ok, #{what := {_, _, _, [<<"a,b">>, "x", {y, [z]}, #{k := 1}]}}}, read(#{"arguments" => "<<\"a,b\">>, \"x\", {y, [z]}, #{k => 1}"})).

what_is_wrong_is_told_with_its_attribute_test_() ->
    [
        {Sentence, ?_assertEqual({error, {Attribute, Sentence}}, flat(atoll_tsung_rpc:read(Given, Subst, false)))}
     || {Given, Subst, Attribute, Sentence} <- [
            {given(#{"colour" => "red"}), false, "colour", "rpc has no attribute colour; it has type, module, function, arguments, node, timeout"},
            {given(#{}) -- [{"node", ?NODE}], false, none, "rpc needs the attribute node"},
            {given(#{}) -- [{"type", "call"}], false, none, "rpc needs the attribute type"},
            {given(#{"module" => ""}), false, none, "rpc needs the attribute module"},
            {given(#{"type" => "shout"}), false, "type", "type must be call or cast, not \"shout\""},
            {given(#{"timeout" => "0"}), false, "timeout", "timeout must be a whole number of milliseconds above 0, not \"0\""},
            {given(#{"timeout" => "1s"}), false, "timeout", "timeout must be a whole number of milliseconds above 0, not \"1s\""},
            {given(#{"node" => "a"}), false, "node", "node must be the name of a node, as in a@host, not \"a\""},
            {given(#{"node" => lists:duplicate(250, $a) ++ "@b.org"}), false, "node", "node must have 255 characters at most, not 256"},
            {given(#{"module" => lists:duplicate(256, $a)}), true, "module", "module must have 255 characters at most, not 256"},
            {given(#{"function" => lists:duplicate(300, $a)}), false, "function", "function must have 255 characters at most, not 300"},
            {given(#{"arguments" => "1 2"}), false, "arguments", "arguments must be Erlang terms with commas between, not \"1 2\""},
            {given(#{"arguments" => "1], [2"}), true, "arguments", "arguments must be Erlang terms with commas between, not \"1], [2\""},
            {given(#{"arguments" => "self()"}), true, "arguments", "arguments must be Erlang terms with commas between, not \"self()\""},
            {given(#{"arguments" => "%%_id%%"}), false, "arguments", "there is a variable in arguments, and the request does not say subst=\"true\""}
        ]
    ].

flat({error, {Attribute, Sentence}}) -> {error, {Attribute, lists:flatten(Sentence)}}.

variables_are_put_in_before_the_terms_are_read_test() ->
    {ok, Request} = atoll_tsung_rpc:read(given(#{"arguments" => "%%_id%%, \"user%%_id%%\"", "node" => "%%_node%%"}), true, false),
    ?assertMatch(#{what := dynamic}, Request),
    Put = fun(Text) -> string:replace(string:replace(Text, "%%_id%%", "7", all), "%%_node%%", atom_to_list(node())) end,
    {_, run, [Ready], _} = atoll_tsung_rpc:message(atoll_tsung_rpc:subst(Request, Put)),
    ?assertEqual({arguments, 0}, setelement(2, run(Ready#{arguments := "7 7"}), 0)),
    ?assertMatch({undef, _}, run(Ready#{function := "none", node := atom_to_list(node())})).

run(Request) -> atoll_tsung_rpc:run(Request).

%% On this VM itself, which is no node.
call(More) -> run(element(2, read(maps:merge(#{"node" => atom_to_list(node())}, More)))).

a_failure_is_counted_by_why_test() ->
    ?assertEqual([], counted(call(#{}))),
    ?assertEqual([error_answer], counted(call(#{"module" => "file", "function" => "consult", "arguments" => "\"/no/such\""}))),
    ?assertEqual([error_rpc, error_rpc_undef], counted(call(#{"function" => "none"}))),
    ?assertEqual([error_rpc, error_rpc_exit], counted(call(#{"function" => "nth", "arguments" => "0, []"}))),
    ?assertEqual([error_rpc, error_rpc_timeout], counted(call(#{"module" => "timer", "function" => "sleep", "arguments" => "1000", "timeout" => "10"}))),
    ?assertEqual([error_rpc, error_rpc_nodedown], counted(call(#{"node" => "nobody@127.0.0.1"}))),
    ?assertEqual([error_rpc, error_rpc_nodedown], counted(call(#{"node" => "nobody@127.0.0.1", "type" => "cast"}))).

counted(Answer) -> element(2, atoll_tsung_rpc:outcome(Answer)).

a_name_has_as_many_characters_as_an_atom_test() ->
    Longest = lists:duplicate(255, $a),
    ?assertMatch({ok, _}, read(#{"module" => Longest, "function" => Longest, "node" => lists:duplicate(249, $a) ++ "@b.org", "arguments" => Longest})),
    ?assertMatch({error, {"arguments", _}}, read(#{"arguments" => [$a | Longest]})),
    TooLong = [$a | Longest],
    ?assertEqual([[error_rpc, error_rpc_names] || _ <- [1, 2, 3]], [with_variable(#{Name => "%%_v%%"}, TooLong) || Name <- ["module", "function", "node"]]),
    ?assertEqual([error_rpc, error_rpc_names], with_variable(#{"node" => "%%_v%%"}, "a")),
    ?assertEqual([error_rpc, error_rpc_arguments], with_variable(#{"arguments" => "%%_v%%"}, TooLong)).

%% What is counted of a request whose variable has this value.
with_variable(More, Value) ->
    {ok, Request} = atoll_tsung_rpc:read(given(maps:merge(#{"node" => atom_to_list(node())}, More)), true, false),
    counted(run(atoll_tsung_rpc:subst(Request, fun(Text) -> string:replace(Text, "%%_v%%", Value, all) end))).

%% An atom is never freed, and a VM whose table of them is full ends.
names_that_variables_make_do_not_fill_a_vm_test_() ->
    {timeout, 60, fun() ->
        Paths = [filename:absname(filename:dirname(code:which(Module))) || Module <- [?MODULE, atoll_tsung_rpc]],
        {ok, Peer, _} = peer:start(#{connection => standard_io, wait_boot => 60000, args => ["-pa" | Paths]}),
        try
            {New, Refused, Known, Made} = peer:call(Peer, ?MODULE, many_names, [], 60000),
            ?assertEqual([error_rpc, error_rpc_undef], New),
            ?assertEqual([[error_rpc, error_rpc_names] || _ <- Refused], Refused),
            ?assertEqual({[], []}, {Known, Made})
        after
            peer:stop(Peer)
        end
    end}.

many_names() ->
    New = with_variable(#{"function" => "%%_v%%"}, "new1"),
    _ = [list_to_atom("filler" ++ integer_to_list(N)) || N <- lists:seq(erlang:system_info(atom_count), 100000)],
    Refused =
        [with_variable(#{Name => "%%_v%%"}, "new2") || Name <- ["module", "function"]] ++
        [with_variable(#{"node" => "%%_v%%@127.0.0.1"}, "new2")] ++
        [with_variable(#{"arguments" => Text}, "new2") || Text <- ["1, %%_v%%", "\"a\", '%%_v%%'", "[{x, $\", %%_v%%}]", "#{7 => %%_v%%}", "1_1%%_v%%"]],
    Text = "1, {\"%%_v%%\", \"a\\\"new3\", $n, 16#ff, 1.5e-7, <<\"new4\">>, lists, 'duplicate'}",
    Known = with_variable(#{"function" => "duplicate", "arguments" => Text}, "new2"),
    {New, Refused, Known, [Name || Name <- ["new2", "new2@127.0.0.1", "new3", "new4", "new5"], is_known(Name)]}.

is_known(Name) ->
    try is_atom(list_to_existing_atom(Name))
    catch error:badarg -> false
    end.

a_cast_does_not_wait_test() ->
    Begun = erlang:monotonic_time(millisecond),
    ?assertMatch({ok, _}, call(#{"type" => "cast", "module" => "timer", "function" => "sleep", "arguments" => "60000"})),
    ?assert(erlang:monotonic_time(millisecond) - Begun < 5000).

%% Tsung makes a binary of a list.
the_text_of_a_result_is_there_where_it_is_looked_at_test() ->
    {ok, Request} = atoll_tsung_rpc:read(given(#{"node" => atom_to_list(node())}), false, true),
    Answer = run(Request),
    ?assertEqual({<<"[1,2,3]">>, {7, []}}, {atoll_tsung_rpc:text(list_to_binary(Answer)), atoll_tsung_rpc:outcome(Answer)}),
    {ok, Wrong} = atoll_tsung_rpc:read(given(#{"node" => atom_to_list(node()), "module" => "file", "function" => "consult", "arguments" => "\"/no/such\""}), false, true),
    Error = run(Wrong),
    ?assertEqual({<<"{error,enoent}">>, {14, [error_answer]}}, {atoll_tsung_rpc:text(iolist_to_binary(Error)), atoll_tsung_rpc:outcome(Error)}),
    {ok, Broken} = atoll_tsung_rpc:read(given(#{"node" => atom_to_list(node()), "function" => "none"}), false, true),
    ?assertMatch({0, [error_rpc, error_rpc_undef]}, atoll_tsung_rpc:outcome(run(Broken))).

properties_test_() ->
    [atoll_prop:test("arguments come back as they were written", arguments_come_back(), 1000, [{max_size, 8}])].

arguments_come_back() ->
    ?FORALL(
        Args,
        list(plain()),
        begin
            Text = lists:flatten(lists:join(", ", [io_lib:format("~0tp", [Arg]) || Arg <- Args])),
            {ok, #{what := {_, _, _, Read}}} = read(#{"arguments" => Text}),
            Read =:= Args
        end
    ).

plain() ->
    ?SIZED(Size, plain(Size)).

plain(0) -> oneof([integer(), float(), binary(), oneof([a, 'B c', []])]);
plain(Size) -> oneof([plain(0), list(plain(Size div 3)), {plain(Size div 3), plain(Size div 3)}, ?LET({Key, Value}, {plain(0), plain(Size div 3)}, #{Key => Value})]).
