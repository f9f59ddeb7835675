%% SPDX-License-Identifier: Apache-2.0
%% The configuration is checked key by key.
-module(atoll_config_tests).

-include_lib("eunit/include/eunit.hrl").

an_option_reaches_its_room_test() ->
    {ok, Config} = atoll_config:new([{linger, 77}, {group_answer_timeout, 88}], false),
    ?assertMatch(#{linger_ms := 77}, atoll_config:link(Config)),
    ?assertMatch(#{answer_ms := 88}, atoll_config:group(Config)).

a_connection_is_closed_only_where_there_is_no_mesh_test() ->
    [
        begin
            {ok, Config} = atoll_config:new(Options, ConnectAll),
            ?assertMatch({_, #{linger_ms := LingerMs, on_demand_ms := OnDemandMs}}, {Options, atoll_config:link(Config)})
        end
     || {Options, ConnectAll, LingerMs, OnDemandMs} <- [
            {[], false, 1000, 60000},
            {[], true, infinity, infinity},
            {[{linger, 7}, {on_demand_linger, 77}], false, 7, 77},
            {[{linger, 7}, {on_demand_linger, 77}], true, infinity, infinity},
            {[{on_demand_linger, infinity}], false, 1000, infinity}
        ]
    ],
    {_, Text} = refused([{on_demand_linger, 0}], false),
    ?assertEqual("the option on_demand_linger must be a whole number from 1 to 2147483647, or infinity, not 0", Text).

an_unknown_option_is_named_test() ->
    ?assertEqual(
        {{bad_option, lingre, unknown}, "atoll has no option lingre"},
        refused([{lingre, 77}], false)
    ).

a_bad_value_is_named_test_() ->
    [
        fun() ->
            {Error, Text} = refused([{linger, Bad}], false),
            ?assertEqual({bad_option, linger, {not_a, pos_integer, Bad}}, Error),
            ?assertNotEqual(nomatch, string:find(Text, "linger must be a whole number from 1 to 2147483647"))
        end
     || Bad <- [0, -1, 1.5, "7", infinity, 16#80000000]
    ].

no_overlay_is_the_default_test() ->
    {ok, Config} = atoll_config:new([], true),
    ?assertEqual(off, atoll_config:overlay(Config)).

the_overlay_gets_its_options_with_the_defaults_test() ->
    Options = [
        {overlay, hyparview},
        {overlay_options, #{active_max => 7}},
        {detector, #{dead_ms => 6000}},
        {broadcast, off},
        {contacts, ['a@h', 'b@h']},
        {join_timeout, 99}
    ],
    {ok, Config} = atoll_config:new(Options, false),
    {ok, Overlay} = atoll_config:overlay(Config),
    ?assertMatch(
        #{
            strategy := {atoll_hyparview, #{active_max := 7, passive_max := 30}},
            detector := #{dead_ms := 6000},
            broadcast := off,
            contacts := ['a@h', 'b@h'],
            join_ms := 99
        },
        Overlay
    ).

a_detector_is_a_module_with_options_or_options_of_ours_test_() ->
    [
        ?_assertMatch({ok, _}, atoll_config:new([{detector, Detector}], false))
     || Detector <- [
            off, watchers, {watchers, #{dead_ms => 9}}, #{dead_ms => 9}, atoll_detector_plain,
            {atoll_detector_plain, #{dead_ms => 9}}
        ]
    ].

a_partly_connected_overlay_does_not_start_where_all_are_connected_test_() ->
    [
        fun() ->
            {Error, Text} = refused([{overlay, Name}], true),
            ?assertEqual({bad_option, overlay, {connect_all, Name}}, Error),
            ?assertNotEqual(nomatch, string:find(Text, "start it with -connect_all false")),
            ?assertMatch({ok, _}, atoll_config:new([{overlay, Name}], false))
        end
     || Name <- atoll_strategy:names(), Name =/= mesh, Name =/= star
    ].

a_mesh_starts_either_way_test_() ->
    [?_assertMatch({ok, _}, atoll_config:new([{overlay, mesh}], All)) || All <- [true, false]].

a_bad_overlay_is_told_in_a_sentence_test_() ->
    [
        {Begins, fun() ->
            {_, Text} = refused(Options, false),
            ?assertEqual(Begins, lists:sublist(Text, length(Begins)))
        end}
     || {Options, Begins} <- [
            {[{overlay, hiparview}], "the option overlay: there is no strategy hiparview; there are "},
            {[{overlay, "mesh"}], "the option overlay must be an atom, not \"mesh\""},
            {[{overlay, mesh}, {overlay_options, []}], "the option overlay_options must be a map, not []"},
            {[{overlay, mesh}, {overlay_options, #{size => 1}}], "the option overlay_options knows no size"},
            {[{detector, #{dead_ms => 0}}],
                "the option detector: the option dead_ms must be a whole number from 1 to 2147483647, not 0"},
            {[{overlay, star}], "the overlay star needs to know its servers"},
            {[{detector, on}], "the option detector: there is no detector on; there are watchers, and any module"},
            {[{detector, {lists, #{}}}], "the option detector: the module lists is no detector: it lacks handle/3, init/2"},
            {[{detector, {atoll_detector_plain, #{dead_ms => soon}}}],
                "the option detector: the option dead_ms must be a whole number from 1 to 2147483647, not soon"},
            {[{detector, "quick"}], "the option detector: a detector is a map of options, off, Module or {Module, Options}"},
            {[{meta, rack_7}], "the option meta must be a map, not rack_7"},
            {[{meta, #{note => binary:copy(<<"x">>, 1024)}}], "the option meta: the metadata of a node must be 1024 bytes"},
            {[{contacts, 'a@h'}], "the option contacts must be a list of nodes, not a@h"},
            {[{meta, #{rack => 7}}, {roster, off}], "the option meta takes a roster"},
            {[{contacts, [a]}], "the option contacts must be a list of nodes, not [a]"},
            {[{contacts, ['a@h' | b]}], "the option contacts must be a list of nodes, not [a@h|b]"},
            {[{discovery, [a | b]}], "the option discovery must be a list, not [a|b]"},
            {[{overlay, star}, {overlay_options, #{servers => ['a@h' | b]}}],
                "the option overlay_options: the option servers must be a list of nodes, not [a@h|b]"},
            {[{detector, #{"dead_ms" => 1}}], "the option detector knows no \"dead_ms\""},
            {[{detector, #{dead_ms => 1 bsl 70}}],
                "the option detector: the option dead_ms must be a whole number from 1 to 2147483647, not"},
            {[{broadcast, #{order => "fifo"}}], "the option broadcast: the option order must be one of fifo, none, not \"fifo\""},
            {[{overlay, lists}],
                "the option overlay: the module lists is no strategy: it lacks handle/3, init/2, known/1, neighbours/1, "
                "options/0, summary/1"},
            {[{discovery, [{smoke_signals, "hill"}]}],
                "the option discovery: the discovery source {smoke_signals,\"hill\"} is wrong: there is no source"}
        ]
    ].

contacts_whose_names_are_of_the_other_kind_are_found_test_() ->
    Contacts = ['a@host', 'b@host.example', 'c@127.0.0.1', 'd@::1'],
    {ok, Config} = atoll_config:new([{overlay, mesh}, {contacts, Contacts}], true),
    [
        ?_assertEqual(Strangers, atoll_config:strangers(Config, Domain))
     || {Domain, Strangers} <- [{shortnames, ['b@host.example', 'c@127.0.0.1']}, {longnames, ['a@host']}, {none, []}]
    ] ++ [
        ?_assertEqual(
            "the option contacts: OTP does not connect this node with a@host, since one of the two has a long name (-name) "
            "and the other a short one (-sname)",
            lists:flatten(atoll_config:format_error({bad_option, contacts, {other_name, 'a@host'}}))
        )
    ].

the_application_does_not_start_with_it_test() ->
    %% Another test may have had its version read.
    _ = application:unload(atoll),
    ok = application:load(atoll),
    {ok, _} = application:ensure_all_started(crypto),
    ok = application:set_env(atoll, linger, nonsense),
    try
        {error, {atoll, {Reason, _}}} = atoll_quiet:run(fun() -> application:ensure_all_started(atoll, temporary) end),
        ?assertMatch({bad_option, linger, _}, Reason)
    after
        ok = application:unload(atoll)
    end.

refused(Options, ConnectAll) ->
    {error, Error} = atoll_config:new(Options, ConnectAll),
    {Error, lists:flatten(io_lib:format("~ts", [atoll_config:format_error(Error)]))}.

the_kinds_of_groups_are_checked_test() ->
    {ok, None} = atoll_config:new([], true),
    ?assertEqual(#{}, atoll_config:kinds(None)),
    Kinds = #{near => direct, far => {lanes, 4}, other => auto},
    {ok, Config} = atoll_config:new([{carrier_kinds, Kinds}], true),
    ?assertEqual(Kinds, atoll_config:kinds(Config)),
    [
        ?assertEqual(
            {{bad_option, carrier_kinds, {not_a, carrier_kinds, Bad}},
                lists:flatten(io_lib:format(
                    "the option carrier_kinds must be a map of groups, each with auto, direct or {lanes,N} "
                    "with N from 1 to 64, not ~0tp", [Bad]))},
            refused([{carrier_kinds, Bad}], true)
        )
     || Bad <- [[{near, direct}], #{near => stock}, #{near => {lanes, 65}}, #{"near" => direct}, off]
    ].

no_directory_is_the_default_and_on_is_one_with_the_defaults_test() ->
    {ok, None} = atoll_config:new([], false),
    ?assertEqual(off, atoll_config:route(None)),
    [
        ?assertEqual(
            {ok, #{directory => Given, relays => Relays, tells => Tells}},
            begin
                {ok, Config} = atoll_config:new(Options, ConnectAll),
                atoll_config:route(Config)
            end
        )
     || {Options, ConnectAll, Given, Relays, Tells} <- [
            {[{directory, on}], false, #{}, all, lone},
            {[{directory, #{gather_ms => 7}}, {relays, none}], true, #{gather_ms => 7}, none, none},
            {[{directory, on}, {relays, [b, a, b]}, {overlay, hyparview}], false, #{}, [a, b], neighbours},
            {[{directory, on}, {overlay, mesh}], false, #{}, all, none}
        ]
    ].

a_bad_directory_is_told_in_a_sentence_test_() ->
    [
        ?_assertMatch({_, Text}, refused(Options, false))
     || {Options, Text} <- [
            {[{directory, true}], "the option directory must be on, off, or a map of options, not true"},
            {[{directory, #{size => 1}}], "the option directory knows no size"},
            {[{directory, #{vouch_ms => 0}}],
                "the option directory: the option vouch_ms must be a whole number from 1 to 2147483647, not 0"},
            {[{relays, some}], "the option relays must be all, none, or a list of 64 groups at most, not some"},
            {[{relays, ["a"]}], "the option relays must be all, none, or a list of 64 groups at most, not [\"a\"]"},
            {[{relays, [a | b]}], "the option relays must be all, none, or a list of 64 groups at most, not [a|b]"}
        ]
    ].

attributes_are_checked_and_reach_their_room_test() ->
    {ok, Config} = atoll_config:new([{attributes, [{gpu, 2}]}, {builtin_attributes, false}], false),
    ?assertMatch(#{definitions := [{gpu, 2}], builtins := false}, atoll_config:attributes(Config)),
    [
        ?assertMatch({_, {match, _}}, {Said, re:run(Said, Words)})
     || {Options, Words} <- [
            {[{attributes, [{gpu, 2}, gpu]}], "option attributes: gpu defines no attribute"},
            {[{attributes_file, 7}], "attributes_file must be the name of a file, or none"},
            {[{attributes_file, "/nowhere"}], "option attributes_file: /nowhere cannot be read"},
            {[{attributes, [{gpu, lists:seq(1, 5000)}]}], "option attributes: the attribute gpu has .* bytes, and 4096 are the most"},
            {[{attributes, [{gpu, 2}]}, {attribute_options, #{max_attributes => 5}}], "there are .* attributes, and 5 are the most"},
            {[{builtin_attributes, maybe_so}], "builtin_attributes must be true or false"},
            {[{attribute_options, #{hold_ms => 0}}], "attribute_options: the option hold_ms|attribute_options: .*hold_ms must be"},
            {[{attribute_options, #{hold => 1}}], "attribute_options knows no hold"}
        ],
        {_, Said} <- [refused(Options, false)]
    ].
