%% SPDX-License-Identifier: Apache-2.0
%% MatchStream's switches on the command line, and its descriptions for `atoll scale'.
-module(atoll_cases_matchstream_tests).

-include_lib("eunit/include/eunit.hrl").

read(Args) -> atoll_cli_options:parse(atoll_cases_matchstream:options(), [], Args).

several_switches_are_added_and_taken_away_test() ->
    ?assertMatch({ok, #{with := [], without := []}, []}, read([])),
    ?assertMatch({ok, #{with := [backlog, none, ports], without := [encode]}, []}, read(["--with", "backlog", "--with", "files=off", "--with=ports=on", "--without", "encode"])),
    {error, Sentence} = read(["--with", "backlogs=off"]),
    ?assertMatch({match, _}, re:run(Sentence, "--with must be one of files, .*, not \"backlogs=off\"$")).

plans() -> [{Name, filename:join([atoll_cli_os:root(), "cases", "matchstream", "scale", Name ++ ".plan"])} || Name <- ["clients", "connect", "web"]].

each_description_is_right_and_its_switches_are_those_of_the_service_test_() ->
    Names = [Name || {Name, _, _} <- matchstream_switches:names()],
    [
        {Name, fun() ->
            {ok, #{switches := [#{name := stage, values := Stages} | Switches], start := Start} = Plan} = atoll_scale_plan:read(File),
            ?assertEqual(matchstream_switches:stages(), Stages),
            Own = [Is || #{in := command} = Is <- Switches],
            ?assertEqual([], [Switch || #{name := Switch} <- Own] -- Names),
            ?assert(lists:all(fun(#{values := Values}) -> Values =:= [off, on] end, Own)),
            %% Without being asked for they leave the system as it is.
            ?assertEqual([], [Switch || #{name := Switch, values := [First | _]} <- Switches -- Own, First =/= now]),
            ?assertEqual(ok, atoll_scale_run:check(Plan)),
            %% As it is started: the command takes it.
            [_, Line] = string:split(atoll_scale_plan:filled(Start, atoll_scale_plan:settings(Plan)), "bin/atoll matchstream up "),
            ?assertMatch({ok, #{stage := 1}, []}, atoll_cli_options:parse(atoll_cases_matchstream_up:options(), [], string:lexemes(Line, " ")))
        end}
     || {Name, File} <- plans()
    ].

%% Those with a Redis are the only ones that are not in it.
the_description_of_clients_has_every_switch_test() ->
    {_, File} = lists:keyfind("clients", 1, plans()),
    {ok, #{switches := Switches}} = atoll_scale_plan:read(File),
    ?assertEqual([connections], [Name || {Name, _, _} <- matchstream_switches:names()] -- [Switch || #{name := Switch} <- Switches]).

what_is_wrong_with_the_options_of_the_load_is_said_test_() ->
    Webs = ["http://127.0.0.1:8888"],
    [?_assertEqual(Said, case atoll_cases_matchstream_load:check(Options) of ok -> ok; {error, Sentence} -> lists:flatten(Sentence) end) || {Options, Said} <- [
        {#{webs => Webs}, ok},
        {#{webs => Webs, clients => connect}, ok},
        {#{}, "the option webs of MatchStream's load must be a list of addresses, such as [\"http://127.0.0.1:8888\"]"},
        {#{webs => "http://127.0.0.1:8888"}, "the option webs of MatchStream's load must be a list of addresses, such as [\"http://127.0.0.1:8888\"]"},
        {#{webs => Webs, client => follow}, "the load of MatchStream has no option client; there are webs, clients, at_once and rate"},
        {#{webs => Webs, clients => both}, "the option clients of MatchStream's load must be follow or connect"},
        {#{webs => Webs, rate => 0}, "the option rate of MatchStream's load must be a number above 0"}
    ]].

%% Nobody is there: all of them have failed, and why is said.
a_service_that_does_not_answer_has_failed_all_clients_test() ->
    {ok, _} = application:ensure_all_started(inets),
    {ok, #{requests := 7, failures := 7, reasons := Reasons}} = atoll_cases_matchstream_load:run(7, 1, #{webs => ["http://127.0.0.1:1"]}),
    ?assertMatch([<<"The service cannot be reached", _/binary>>], maps:keys(Reasons)).
