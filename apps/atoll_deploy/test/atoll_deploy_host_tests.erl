%% SPDX-License-Identifier: Apache-2.0
-module(atoll_deploy_host_tests).

-include_lib("eunit/include/eunit.hrl").

%% What `-eval' is given is checked first, as erl_eval does it, and that is a part of the time in which a node gets up.
the_check_of_what_a_node_does_loads_no_large_module_test_() ->
    {timeout, 60, fun() ->
        {ok, Script} = file:read_file(filename:join(code:priv_dir(atoll_deploy), "host")),
        {match, [Boot]} = re:run(Script, "^boot='([^']*)'$", [multiline, {capture, [1], list}]),
        {ok, Peer, _} = peer:start_link(#{connection => standard_io}),
        {ok, Tokens, _} = peer:call(Peer, erl_scan, string, [Boot]),
        {ok, Exprs} = peer:call(Peer, erl_parse, parse_exprs, [Tokens]),
        {ok, _} = peer:call(Peer, erl_lint, exprs, [Exprs, []]),
        Loaded = [Module || Module <- [string, unicode_util], {file, _} <- [peer:call(Peer, code, is_loaded, [Module])]],
        ok = peer:stop(Peer),
        ?assertEqual([], Loaded)
    end}.
