%% The configuration is checked key by key.
-module(atoll_config_tests).

-include_lib("eunit/include/eunit.hrl").

an_option_reaches_its_room_test() ->
    {ok, Config} = atoll_config:new([{linger, 77}, {group_answer_timeout, 88}]),
    ?assertMatch(#{linger_ms := 77}, atoll_config:link(Config)),
    ?assertMatch(#{answer_ms := 88}, atoll_config:group(Config)).

a_connection_on_demand_is_closed_only_where_there_is_no_mesh_test() ->
    {ok, Default} = atoll_config:new([]),
    ?assertMatch(#{on_demand_ms := 60000}, atoll_config:link_options(Default, false)),
    ?assertMatch(#{on_demand_ms := infinity}, atoll_config:link_options(Default, true)),
    {ok, Config} = atoll_config:new([{on_demand_linger, 77}]),
    ?assertMatch(#{on_demand_ms := 77, linger_ms := 1000}, atoll_config:link_options(Config, false)),
    {ok, Never} = atoll_config:new([{on_demand_linger, infinity}]),
    ?assertMatch(#{on_demand_ms := infinity}, atoll_config:link_options(Never, false)),
    %% The VM that runs this test connects with all.
    {ok, true} = application:get_env(kernel, connect_all),
    ?assertMatch(#{on_demand_ms := infinity}, atoll_config:link(Config)),
    {error, Error} = atoll_config:new([{on_demand_linger, 0}]),
    ?assertEqual(
        "the option on_demand_linger must be a whole number above 0, or infinity, not 0",
        lists:flatten(atoll_config:format_error(Error))
    ).

an_unknown_option_is_named_test() ->
    {error, Error} = atoll_config:new([{lingre, 77}]),
    ?assertEqual({bad_option, lingre, unknown}, Error),
    ?assertEqual("atoll has no option lingre", lists:flatten(atoll_config:format_error(Error))).

a_bad_value_is_named_test_() ->
    [
        fun() ->
            {error, Error} = atoll_config:new([{linger, Bad}]),
            ?assertEqual({bad_option, linger, {not_positive_integer, Bad}}, Error),
            Text = lists:flatten(atoll_config:format_error(Error)),
            ?assertNotEqual(nomatch, string:find(Text, "linger must be a whole number above 0"))
        end
     || Bad <- [0, -1, 1.5, "7", infinity]
    ].

the_application_does_not_start_with_it_test() ->
    %% Another test may have had its version read.
    _ = application:unload(atoll),
    ok = application:load(atoll),
    ok = application:set_env(atoll, linger, nonsense),
    try
        {error, {Reason, _}} = atoll_quiet:run(fun() -> application:start(atoll, temporary) end),
        ?assertMatch({bad_option, linger, _}, Reason)
    after
        ok = application:unload(atoll)
    end.
