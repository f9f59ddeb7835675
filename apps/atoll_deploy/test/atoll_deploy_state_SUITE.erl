%% SPDX-License-Identifier: Apache-2.0
%% The state of deployments, without a node: who has it, what may be changed in it, and the server through which several ask.
-module(atoll_deploy_state_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_folder_is_one_state_by_whatever_name/1,
    what_nodes_need_stays_and_is_not_forgotten/1,
    a_fault_of_who_asks_ends_nothing/1,
    who_asks_again_and_again_keeps_nobody_out/1
]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [
        a_folder_is_one_state_by_whatever_name, what_nodes_need_stays_and_is_not_forgotten, a_fault_of_who_asks_ends_nothing,
        who_asks_again_and_again_keeps_nobody_out
    ].

init_per_testcase(_, Config) ->
    Dir = atoll_cli_os:new_dir(),
    [{dir, Dir}, {state, filename:join(Dir, "state")} | Config].

end_per_testcase(_, Config) -> atoll_cli_os:remove_dir(?config(dir, Config)).

a_folder_is_one_state_by_whatever_name(Config) ->
    Dir = ?config(dir, Config),
    State = ?config(state, Config),
    {ok, Deployment} = atoll_deploy:open(State),
    Link = filename:join(Dir, "link"),
    ok = file:make_symlink(State, Link),
    [
        ?assertEqual({Name, {error, "Another program works with the deployments in " ++ Name ++ "."}}, {Name, said(atoll_deploy:open(Name, 0))})
     || Name <- [Link, State ++ "/../state"]
    ],
    %% What is written there is for nobody else, also in a folder that others may enter.
    ok = file:change_mode(State, 8#755),
    {ok, Info} = file:read_file_info(filename:join(State, "state")),
    ?assertEqual(8#700, element(8, Info) band 8#777),
    ok = atoll_deploy:close(Deployment),
    {ok, Again} = atoll_deploy:open(Link),
    ok = atoll_deploy:close(Again).

said({error, Sentence}) -> {error, unicode:characters_to_list(Sentence)};
said(Other) -> Other.

%% Rows as nodes leave them, and no nodes.
what_nodes_need_stays_and_is_not_forgotten(Config) ->
    Cloud = #{driver => cloud, cloud => "dummy", size => "s", image => "i"},
    Cookie = filename:join(?config(dir, Config), "cookie"),
    ok = file:write_file(Cookie, "hush"),
    Deployment = atoll_deploy_probe:opened(?config(state, Config), [
        {provider, "here", #{driver => local}}, {provider, "k", #{driver => kubernetes}}, {provider, "c", Cloud},
        {release, "one", #{image => "x"}},
        {domain, "d", #{provider => "here", hosts => ["a:22", "b"]}}, {domain, "pods", #{provider => "k"}}, {domain, "m", #{provider => "c", machines => 2}},
        {family, "f", #{release => "one", domains => ["d"]}}, {family, "reef", #{release => "one", domains => ["pods"]}}
    ]),
    Row = #{node => "f1@a", family => "f", number => 1, domain => "d", host => "a", release => "one", needs => #{}, state => up},
    ok = atoll_deploy_store:write(Deployment, [
        {{row, "f1@a"}, {value, Row}}, {{count, "reef"}, {value, 2}}, {{machine, "m"}, {value, [#{id => "7", name => "m7", address => "10.0.0.7"}]}}
    ]),
    Put = fun(Kind, Name, Given) -> said(atoll_deploy:put(Deployment, Kind, Name, Given)) end,
    Refused = fun(Kind, Name, Given, Sentence) -> ?assertEqual({error, Sentence}, Put(Kind, Name, Given)) end,
    D = #{provider => "here", hosts => ["a", "b"]},
    Refused(domain, "d", D#{dir => "other"}, "The domain d has another dir now, and f1@a is there: terminate its family first."),
    Refused(domain, "d", D#{user => "erl"}, "The domain d has another user now, and f1@a is there: terminate its family first."),
    Refused(domain, "d", D#{provider => "k"}, "The domain d has another provider now, and f1@a is there: terminate its family first."),
    Refused(domain, "d", D#{hosts => ["b"]}, "The domain d lacks the host a, and f1@a is there."),
    Refused(domain, "d", D#{hosts => ["a:23", "b"]}, "The domain d has another port for the host a, and f1@a is there."),
    Refused(domain, "d", #{provider => "here", machines => 3}, "The domain d lacks the host a, and f1@a is there."),
    Refused(provider, "here", #{driver => ssh}, "The provider here has another driver now, and f1@a is there: terminate its family first."),
    Refused(provider, "k", #{driver => kubernetes, namespace => "other"}, "The provider k has another namespace now, and a pod of the family reef is there: terminate its family first."),
    Refused(provider, "c", Cloud#{cloud => "other"}, "The provider c has another cloud now, and the machine m7 is there: terminate its family first."),
    Refused(family, "f", #{release => "one", domains => ["d"], cookie_file => Cookie}, "The family f has another cookie_file now, and f1@a is there: terminate its family first."),
    Refused(domain, "e", #{provider => "here", machines => 3}, "The domain e has machines, which a cloud gives, and its provider here is none."),
    Refused(domain, "e", #{provider => "c"}, "The domain e lacks machines: its provider c is a cloud, and has no hosts."),
    %% More hosts, and other domains for new nodes.
    ok = Put(domain, "d", D#{hosts => ["a", "b", "c"]}),
    ok = Put(domain, "e", D),
    ok = Put(family, "f", #{release => "one", domains => ["e"]}),
    Forget = fun(Kind, Name) -> said(atoll_deploy:forget(Deployment, Kind, Name)) end,
    ?assertEqual({error, "The domain d is needed by f1@a."}, Forget(domain, "d")),
    ?assertEqual({error, "The family reef is needed by a pod of the family reef."}, Forget(family, "reef")),
    ok = atoll_deploy_store:write(Deployment, [{{row, "f1@a"}, delete}, {{sweep, "f"}, {value, [{"d", "a"}]}}]),
    ?assertEqual({error, "The domain d is needed by something of the family f."}, Forget(domain, "d")),
    ok = atoll_deploy_store:write(Deployment, [{{sweep, "f"}, delete}]),
    ok = Forget(domain, "d"),
    ok = atoll_deploy:close(Deployment).

%% An operation is under way.
a_fault_of_who_asks_ends_nothing(Config) ->
    {ok, Server} = atoll_deploy_server:start_link(?config(state, Config)),
    Self = self(),
    {ok, _} = atoll_deploy_server:begin_operation(run, "f", fun(Store, _) -> Self ! {works, self()}, receive go -> {error, atoll_deploy_store:id(Store)} end end),
    Worker = receive {works, Is} -> Is end,
    ?assertError(spoilt, atoll_deploy_server:ask(fun(_) -> error(spoilt) end)),
    {ok, {error, Sentence}} = atoll_deploy_server:ask(fun(Store) -> atoll_deploy:put(Store, family, [16#15d | "op"], #{}) end),
    ?assertMatch({match, _}, re:run(Sentence, "^The name of a family is a letter", [unicode])),
    ?assertMatch(#{what := run, result := none}, atoll_deploy_server:operation()),
    Worker ! go,
    ok = atoll_deploy_probe:await(ended, fun() -> maps:get(result, atoll_deploy_server:operation()) =/= none end),
    {ok, Id} = atoll_deploy_server:ask(fun atoll_deploy_store:id/1),
    ?assertMatch(#{result := {error, Id}}, atoll_deploy_server:operation()),
    ok = gen_server:stop(Server).

who_asks_again_and_again_keeps_nobody_out(Config) ->
    {ok, Server} = atoll_deploy_server:start_link(?config(state, Config)),
    {ok, Id} = atoll_deploy_server:ask(fun atoll_deploy_store:id/1),
    {Asking, Ref} = spawn_monitor(fun asking/0),
    {ok, Deployment} = atoll_deploy:open(?config(state, Config)),
    ?assertEqual(Id, atoll_deploy_store:id(Deployment)),
    ok = atoll_deploy:close(Deployment),
    Asking ! stop,
    receive {'DOWN', Ref, process, Asking, Reason} -> ?assertEqual(normal, Reason) end,
    ok = gen_server:stop(Server).

asking() ->
    receive stop -> ok
    after 20 ->
        _ = atoll_deploy_server:ask(fun atoll_deploy_store:id/1),
        asking()
    end.
