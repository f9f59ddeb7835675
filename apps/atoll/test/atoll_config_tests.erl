%% The configuration is checked key by key.
-module(atoll_config_tests).

-include_lib("eunit/include/eunit.hrl").

an_option_reaches_its_room_test() ->
    {ok, Config} = atoll_config:new([{linger, 77}, {group_answer_timeout, 88}]),
    ?assertMatch(#{linger_ms := 77}, atoll_config:link(Config)),
    ?assertMatch(#{answer_ms := 88}, atoll_config:group(Config)).

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
