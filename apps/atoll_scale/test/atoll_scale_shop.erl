%% SPDX-License-Identifier: Apache-2.0
%% The shop of priv/example for suites, in a directory of the case's own.
-module(atoll_scale_shop).

-export([begin_case/1, end_case/1, dir/1, plan/2, found/2]).

begin_case(Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_case(Config) -> ok = atoll_cli_os:remove_dir(dir(Config)).

dir(Config) -> proplists:get_value(dir, Config).

%% The shop's own description, with another port and name, and some keys more.
plan(Keys, Config) ->
    Example = filename:join(code:priv_dir(atoll_scale), "example"),
    {ok, Terms} = file:consult(filename:join(Example, "shop.plan")),
    Port = atoll_test_port:free(),
    Name = lists:concat(["shop", Port, "@127.0.0.1"]),
    Shop = filename:join(Example, "shop"),
    Own = [
        {start, lists:concat(["ulimit -n {files}; exec ", Shop, " --port ", Port, " --backlog {backlog} --servers {servers} --node ", Name, " --cookie shop"])},
        {ready, {port, Port}}, {node, list_to_atom(Name)}, {cookie_file, filename:join(Example, "shop.cookie")}, {seconds, 1},
        {load, {driver, atoll_scale_http, #{url => lists:concat(["http://127.0.0.1:", Port, "/stock"]), timeout_ms => 2000}}}
    ],
    File = filename:join(dir(Config), "shop.plan"),
    All = lists:foldl(fun({Key, _} = Term, Acc) -> lists:keystore(Key, 1, Acc, Term) end, Terms, Own ++ Keys),
    ok = file:write_file(File, [io_lib:format("~0tp.~n", [Term]) || Term <- All]),
    {File, Port}.

%% What `atoll scale find' has found.
found(Args, Config) ->
    #{status := 0, stdout := Json, stderr := Said} = atoll_cli_line:run(dir(Config), ["scale", "find" | Args] ++ ["--json"], 900000),
    ct:log("~ts", [Said]),
    atoll_cli_os:decode(Json).
