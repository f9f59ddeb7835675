%% SPDX-License-Identifier: Apache-2.0
%% Machines by Apache Libcloud and its own dummy driver, skipped without a Python that has it: ATOLL_DEPLOY_PYTHON says which. And by a
%% driver that stands here.
-module(atoll_deploy_cloud_tests).

-include_lib("eunit/include/eunit.hrl").

%% A cloud on a file, which needs no Libcloud, and does not end with the program as the dummy driver does. Beside that file others say what is wrong with it: `full',
%% there is no third machine; `slow', one is created when that is gone; `stuck', the first one cannot be destroyed; `long', its errors are.
-define(CLOUD,
    "import json, os, time\n"
    "class Named:\n"
    "    def __init__(self, id, name):\n"
    "        self.id, self.name, self.public_ips, self.private_ips = id, name, ['127.1.0.%s' % id], []\n"
    "class Kept:\n"
    "    def __init__(self, file, secret):\n"
    "        self.file, self.secret = file, secret\n"
    "        print('hello', end='')\n"
    "    def list_sizes(self):\n"
    "        return [Named('1', 'Small')]\n"
    "    def list_images(self):\n"
    "        return [Named('1', 'Ubuntu')]\n"
    "    def has(self, what):\n"
    "        return os.path.exists(self.file + '.' + what)\n"
    "    def kept(self):\n"
    "        return json.load(open(self.file)) if os.path.exists(self.file) else []\n"
    "    def keep(self, nodes):\n"
    "        with open(self.file + '.new', 'w') as new:\n"
    "            json.dump(nodes, new)\n"
    "        os.replace(self.file + '.new', self.file)\n"
    "    def list_nodes(self):\n"
    "        return [Named(*n) for n in self.kept()]\n"
    "    def create_node(self, name, size, image):\n"
    "        if self.has('long'):\n"
    "            raise RuntimeError(5000 * 'x')\n"
    "        if len(self.kept()) >= 2 and self.has('full'):\n"
    "            raise RuntimeError('no quota for %s with %s' % (name, self.secret))\n"
    "        id = str(max([0] + [int(n[0]) for n in self.kept()]) + 1)\n"
    "        self.keep(self.kept() + [[id, name]])\n"
    "        while self.has('slow'):\n"
    "            time.sleep(0.01)\n"
    "        return Named(id, name)\n"
    "    def destroy_node(self, node):\n"
    "        if self.has('stuck') and node.id == '1':\n"
    "            raise RuntimeError('it is locked by %s' % self.secret)\n"
    "        self.keep([n for n in self.kept() if n[0] != node.id])\n"
    "        return True\n"
).

python() -> os:getenv("ATOLL_DEPLOY_PYTHON", "python3").

has() ->
    case os:find_executable(python()) of
        false -> false;
        Python -> os:cmd(Python ++ " -c 'import libcloud' 2>&1") =:= ""
    end.

provider(More) ->
    {ok, Provider} = atoll_deploy_thing:check(provider, "c", maps:merge(#{driver => cloud, cloud => "dummy", arguments => ["0"], size => "Small", image => "Ubuntu 9.10", python => python()}, More)),
    Provider.

the_machines_of_a_domain_are_its_hosts_test() ->
    Domains = #{"d" => #{name => "d", hosts => [], machines => 2}, "e" => #{name => "e", hosts => [x]}},
    #{"d" := #{hosts := Hosts}, "e" := #{hosts := [x]}} = atoll_deploy_cloud:with_machines(Domains, [{{machine, "d"}, [#{id => "1", name => "m", address => "10.0.0.1"}]}]),
    ?assertEqual(["10.0.0.1", "new-2.d"], [Host || #{host := Host} <- Hosts]).

libcloud_test_() ->
    case has() of
        true -> [{timeout, 60, fun dummy/0}, {timeout, 60, fun names/0}];
        false -> {"skipped: no Python with Apache Libcloud (apache-libcloud of PyPI; ATOLL_DEPLOY_PYTHON says where)", []}
    end.

cloud_test_() ->
    case os:find_executable("python3") of
        false -> {"skipped: no python3", []};
        _ ->
            {setup, fun state/0, fun ended/1, fun(State) ->
                [
                    {Title, {timeout, 60, fun() -> Test(State) end}}
                 || {Title, Test} <- [
                        {"machines are created for nodes that are to be started", fun wanted/1}, {"a domain gets its machines, once", fun kept/1},
                        {"machines of one domain are not those of another", fun beside/1}, {"what cannot be destroyed is named", fun stuck/1},
                        {"a long error is cut", fun long/1}, {"what is created goes with the master", fun killed/1}
                    ]
                ]
            end}
    end.

%% Libcloud's own: create, list, destroy.
dummy() ->
    {ok, Cloud} = atoll_deploy_cloud:open(provider(#{}), none),
    {ok, Before} = atoll_deploy_cloud:list(Cloud, "dummy-", []),
    {ok, [#{id := One}, #{id := Two}]} = atoll_deploy_cloud:create(Cloud, ["a", "b"], provider(#{})),
    {ok, [_, _]} = atoll_deploy_cloud:list(Cloud, "", [One, Two]),
    ok = atoll_deploy_cloud:destroy(Cloud, "", {these, [One, Two]}),
    ?assertEqual({ok, []}, atoll_deploy_cloud:list(Cloud, "", [One, Two])),
    ?assertEqual({ok, Before}, atoll_deploy_cloud:list(Cloud, "dummy-", [])),
    {error, Why} = atoll_deploy_cloud:create(Cloud, ["a"], provider(#{size => "Huge"})),
    ?assertEqual(<<"ValueError: there is no size Huge">>, Why),
    ok = atoll_deploy_cloud:close(Cloud).

%% A state that has families on machines of such a cloud.
state() ->
    Dir = atoll_test_file:temporary("atoll_deploy_cloud"),
    ok = filelib:ensure_path(filename:join(Dir, "release")),
    File = filename:join(Dir, "machines"),
    Secret = filename:join(Dir, "secret"),
    ok = file:write_file(Secret, "HUSHHUSH\n"),
    ok = file:write_file(filename:join(Dir, "kept.py"), ?CLOUD),
    ok = file:write_file(filename:join([Dir, "release", "x"]), ""),
    true = os:putenv("PYTHONPATH", Dir),
    {ok, Store} = atoll_deploy:open(filename:join(Dir, "state")),
    Given = #{driver => cloud, cloud => "kept.Kept", arguments => [File], secret_file => Secret, size => "Small", image => "Ubuntu"},
    [
        ok = atoll_deploy:put(Store, Kind, Name, Of)
     || {Kind, Name, Of} <- [
            {provider, "c", Given}, {release, "r", #{path => filename:join(Dir, "release")}},
            {domain, "d", #{provider => "c", machines => 3}}, {domain, "d-1", #{provider => "c", machines => 1}},
            {family, "f", #{release => "r", domains => ["d"]}}, {family, "g", #{release => "r", domains => ["d-1"]}}
        ]
    ],
    #{dir => Dir, store => Store, file => File, lock => filename:join([Dir, "state", "cloud.lock"])}.

ended(#{dir := Dir, store := Store}) ->
    ok = atoll_deploy:close(Store),
    os:unsetenv("PYTHONPATH"),
    ok = file:del_dir_r(Dir).

%% As before a node is started.
ensure(Store, Family) -> atoll_deploy_cloud:ensure(Store, Family, fun() -> atoll_deploy:plan(Store, Family, 1) end).

machines(File) ->
    case file:read_file(File) of
        {ok, Text} -> [Name || [_, Name] <- atoll_cli_os:decode(Text)];
        {error, enoent} -> []
    end.

names_of(Domain, Store, Numbers) -> [unicode:characters_to_binary(lists:concat(["atoll-", atoll_deploy_store:id(Store), "-", Domain, "-", N])) || N <- Numbers].

opened(Store, Lock) -> atoll_deploy_cloud:open(hd(atoll_deploy_store:things(Store, provider)), Lock).

%% What fails in the middle leaves nothing, and no secret is said.
kept(#{store := Store, file := File}) ->
    {ok, Steps} = atoll_deploy:plan(Store, "f", 3),
    ?assertEqual(["f1@new-1.d", "f2@new-2.d", "f3@new-3.d"], [Node || {start, #{node := Node}} <- Steps]),
    ok = file:write_file(File ++ ".full", ""),
    {error, Sentence} = ensure(Store, "f"),
    ?assertMatch({match, _}, re:run(Sentence, "^The machines of the domain d could not be had: RuntimeError: no quota for atoll-[0-9a-f]*-d-3 with \\(secret\\)\\.$")),
    ?assertEqual([], machines(File)),
    ok = file:delete(File ++ ".full"),
    %% As if a master was killed before it had written anything down.
    {ok, Cloud} = opened(Store, none),
    {ok, [_]} = atoll_deploy_cloud:create(Cloud, ["atoll-" ++ atoll_deploy_store:id(Store) ++ "-d-1"], hd(atoll_deploy_store:things(Store, provider))),
    ok = atoll_deploy_cloud:close(Cloud),
    ok = ensure(Store, "f"),
    ok = ensure(Store, "f"),
    ?assertMatch([#{address := "127.1.0.1"}, _, _], atoll_deploy_cloud:machines("d", atoll_deploy_store:all(Store))),
    ?assertEqual(names_of("d", Store, [1, 2, 3]), machines(File)),
    ok = atoll_deploy_cloud:release(Store, "f"),
    ?assertEqual([], machines(File)),
    ?assertEqual([], atoll_deploy_cloud:machines("d", atoll_deploy_store:all(Store))).

%% Not for a command that says no, nor for no node.
wanted(#{store := Store, file := File}) ->
    Tell = fun(_, _) -> ok end,
    {error, Sentence} = atoll_deploy:run(Store, "f", kept, Tell),
    ?assertEqual("It was never said how many nodes the family f shall have.", lists:flatten(Sentence)),
    ?assertMatch({ok, #{up := [], failed := []}}, atoll_deploy:run(Store, "f", 0, Tell)),
    ok = atoll_deploy:put(Store, family, "f", #{release => "r", domains => ["d"], needs => #{attributes => ["gold"]}}),
    ?assertMatch({error, _}, atoll_deploy:run(Store, "f", 1, Tell)),
    ok = atoll_deploy:put(Store, family, "f", #{release => "r", domains => ["d"]}),
    ?assertEqual([], machines(File)).

%% The name of one domain begins with that of the other.
beside(#{store := Store, file := File}) ->
    ok = ensure(Store, "g"),
    ok = ensure(Store, "f"),
    ?assertEqual(names_of("d-1", Store, [1]) ++ names_of("d", Store, [1, 2, 3]), machines(File)),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Store, "f", fun(_, _) -> ok end)),
    ?assertEqual(names_of("d-1", Store, [1]), machines(File)),
    ok = atoll_deploy_cloud:release(Store, "g").

%% And the others are destroyed.
stuck(#{store := Store, file := File}) ->
    [ok = file:write_file(File ++ What, "") || What <- [".full", ".stuck"]],
    {error, Sentence} = ensure(Store, "f"),
    ?assertMatch(
        {match, _},
        re:run(Sentence, "^The machines of the domain d could not be had: RuntimeError: no quota .*; the machine 1 was not destroyed: RuntimeError: it is locked by \\(secret\\)\\.$")
    ),
    ?assertEqual(names_of("d", Store, [1]), machines(File)),
    ?assertMatch({error, _}, atoll_deploy_cloud:release(Store, "f")),
    [ok = file:delete(File ++ What) || What <- [".full", ".stuck"]],
    ok = atoll_deploy_cloud:release(Store, "f"),
    ?assertEqual([], machines(File)).

long(#{store := Store, file := File}) ->
    ok = file:write_file(File ++ ".long", ""),
    {error, Sentence} = ensure(Store, "f"),
    ?assertMatch({match, _}, re:run(Sentence, "RuntimeError: x{100,1000}\\.$")),
    ok = file:delete(File ++ ".long").

%% It ends in the middle of the first one. Another program begins when that one has come to its end.
killed(#{store := Store, file := File, lock := Lock}) ->
    ok = file:write_file(File ++ ".slow", ""),
    {Master, Ref} = spawn_monitor(fun() -> ensure(Store, "f") end),
    ok = atoll_cli_os:await(fun() -> machines(File) =/= [] end, 30000),
    true = exit(Master, kill),
    receive {'DOWN', Ref, process, Master, _} -> ok end,
    ok = file:delete(File ++ ".slow"),
    {ok, Cloud} = opened(Store, Lock),
    ?assertEqual([], machines(File)),
    ok = atoll_deploy_cloud:close(Cloud).

%% A name of a domain may begin with that of another one, and the mark of one state with that of no other.
names() ->
    {ok, Cloud} = atoll_deploy_cloud:open(provider(#{cloud => "libcloud.compute.drivers.dummy.DummyNodeDriver"}), none),
    Ids = fun(Prefix) -> {ok, Found} = atoll_deploy_cloud:list(Cloud, Prefix, []), [Name || #{name := Name} <- Found] end,
    %% Its machines are named dummy-1 and dummy-2.
    ?assertEqual(["dummy-1", "dummy-2"], Ids("dummy-")),
    ?assertEqual([], Ids("dummy")),
    ?assertEqual([], Ids("dum")),
    ok = atoll_deploy_cloud:destroy(Cloud, "du", {but, []}),
    ?assertEqual(["dummy-1", "dummy-2"], Ids("dummy-")),
    ok = atoll_deploy_cloud:close(Cloud).
