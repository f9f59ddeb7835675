%% SPDX-License-Identifier: Apache-2.0
-module(atoll_tsung_cli_tests).

-include_lib("eunit/include/eunit.hrl").

what_is_wrong_is_told_before_anything_starts_test_() ->
    Long = lists:duplicate(256, $a),
    atoll_cli_line:refused([
        {["tsung", "init", "--call", "lists"], "--call must be a module and a function, as in lists:seq, not \"lists\""},
        {["tsung", "init", "--call", "lists:" ++ Long], "--call must be a module and a function, as in lists:seq, not \"lists:" ++ Long ++ "\""},
        {["tsung", "init", "--arguments", "1 2"], "--arguments must be Erlang terms with commas between, such as: 1, \"a\", [b], not \"1 2\""},
        {["tsung", "init", "--rate", "0"], "--rate must be a number above 0, at most 100,000, not \"0\""},
        {["tsung", "run", ?FILE, "--here", "--ssh", "rsh"], "--ssh is for clients on other machines, and --here says that there are none: not both"},
        {["tsung", "run", ?FILE, "--address", "here"], "--address must be an IPv4 address, not \"here\""}
    ]).

no_logs_are_a_sentence_test() ->
    ?assertEqual({unable, "there is no tsung.log below no/such"}, atoll_cli_line:outcome(["tsung", "report", "no/such"])).

%% What is installed is found by its root.
without_tsung_its_package_is_named_test() ->
    Before = os:getenv("ATOLL_TSUNG"),
    true = os:putenv("ATOLL_TSUNG", "/no/such"),
    try
        ?assertEqual({error, "Tsung is not installed here; its package in Debian is tsung."}, atoll_tsung:version()),
        ?assertMatch({unable, "Tsung is not installed here; its package in Debian is tsung."}, atoll_cli_line:outcome(["tsung", "run", ?FILE, "--out", "x"]))
    after
        case Before of
            false -> os:unsetenv("ATOLL_TSUNG");
            _ -> os:putenv("ATOLL_TSUNG", Before)
        end
    end.

nodes_of_two_kinds_of_names_are_refused_test() ->
    ?assertEqual({ok, longnames}, atoll_tsung_run:name_domain(['a@127.0.0.1', 'b@h.example'])),
    ?assertEqual({ok, shortnames}, atoll_tsung_run:name_domain(['a@h'])),
    ?assertMatch({error, _}, atoll_tsung_run:name_domain(['a@h', 'b@127.0.0.1'])).
