%% SPDX-License-Identifier: Apache-2.0
%% Machines by Apache Libcloud and its own dummy driver. Skipped without a Python that has it: ATOLL_DEPLOY_PYTHON says which.
-module(atoll_deploy_cloud_tests).

-include_lib("eunit/include/eunit.hrl").

%% A cloud on a file, since that of the dummy driver ends with the program; its third machine cannot be had while a file is there.
-define(CLOUD,
    "import json, os\n"
    "from libcloud.compute.drivers.dummy import DummyNodeDriver\n"
    "from libcloud.compute.base import Node\n"
    "from libcloud.compute.types import NodeState\n"
    "class Kept(DummyNodeDriver):\n"
    "    def __init__(self, file, secret):\n"
    "        super().__init__('0')\n"
    "        self.file, self.secret = file, secret\n"
    "        self.nl = [self.node(*n) for n in (json.load(open(file)) if os.path.exists(file) else [])]\n"
    "    def node(self, id, name):\n"
    "        return Node(id=id, name=name, state=NodeState.RUNNING, public_ips=['127.1.0.%s' % id], private_ips=[], driver=self)\n"
    "    def keep(self):\n"
    "        json.dump([[n.id, n.name] for n in self.nl], open(self.file, 'w'))\n"
    "    def create_node(self, name, size, image):\n"
    "        if len(self.nl) >= 2 and os.path.exists(self.file + '.full'):\n"
    "            raise RuntimeError('no quota for %s with %s' % (name, self.secret))\n"
    "        n = self.node(str(len(self.nl) + 1), name)\n"
    "        self.nl.append(n)\n"
    "        self.keep()\n"
    "        return n\n"
    "    def destroy_node(self, node):\n"
    "        self.nl = [n for n in self.nl if n.id != node.id]\n"
    "        self.keep()\n"
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

cloud_test_() ->
    case has() of
        true -> {timeout, 120, [fun dummy/0, {timeout, 60, fun kept/0}]};
        false -> {"skipped: no Python with Apache Libcloud (apache-libcloud of PyPI; ATOLL_DEPLOY_PYTHON says where)", []}
    end.

%% Libcloud's own: create, list, destroy.
dummy() ->
    {ok, Cloud} = atoll_deploy_cloud:open(provider(#{}), []),
    {ok, Before} = atoll_deploy_cloud:list(Cloud, "dummy-", []),
    {ok, [#{id := One}, #{id := Two}]} = atoll_deploy_cloud:create(Cloud, ["a", "b"], provider(#{})),
    {ok, [_, _]} = atoll_deploy_cloud:list(Cloud, "", [One, Two]),
    ok = atoll_deploy_cloud:destroy(Cloud, "", {these, [One, Two]}),
    ?assertEqual({ok, []}, atoll_deploy_cloud:list(Cloud, "", [One, Two])),
    ?assertEqual({ok, Before}, atoll_deploy_cloud:list(Cloud, "dummy-", [])),
    {error, Why} = atoll_deploy_cloud:create(Cloud, ["a"], provider(#{size => "Huge"})),
    ?assertEqual(<<"ValueError: there is no size Huge">>, Why),
    ok = atoll_deploy_cloud:close(Cloud).

%% Over a state: a family's domain gets its machines, once; what fails in the middle leaves nothing, and no secret is said.
kept() ->
    Dir = atoll_test_file:temporary("atoll_deploy_cloud"),
    ok = filelib:ensure_path(Dir),
    File = filename:join(Dir, "machines"),
    Secret = filename:join(Dir, "secret"),
    ok = file:write_file(Secret, "HUSHHUSH\n"),
    ok = file:write_file(filename:join(Dir, "kept.py"), ?CLOUD),
    true = os:putenv("PYTHONPATH", Dir),
    {ok, Store} = atoll_deploy:open(filename:join(Dir, "state")),
    try
        Given = #{driver => cloud, cloud => "kept.Kept", arguments => [File], secret_file => Secret, size => "Small", image => "Ubuntu 9.10", python => python()},
        ok = filelib:ensure_path(filename:join(Dir, "release")),
        ok = file:write_file(filename:join([Dir, "release", "x"]), ""),
        [
            ok = atoll_deploy:put(Store, Kind, Name, Of)
         || {Kind, Name, Of} <- [
                {provider, "c", Given}, {release, "r", #{path => filename:join(Dir, "release")}}, {domain, "d", #{provider => "c", machines => 3}},
                {family, "f", #{release => "r", domains => ["d"]}}
            ]
        ],
        {ok, Steps} = atoll_deploy:plan(Store, "f", 3),
        ?assertEqual(["f1@new-1.d", "f2@new-2.d", "f3@new-3.d"], [Node || {start, #{node := Node}} <- Steps]),
        ok = file:write_file(File ++ ".full", ""),
        {error, Sentence} = atoll_deploy_cloud:ensure(Store, "f"),
        ?assertMatch({match, _}, re:run(Sentence, "^No machine was created for the domain d: RuntimeError: no quota for atoll-[0-9a-f]*-d-3 with \\(secret\\)\\.$")),
        ?assertEqual({ok, <<"[]">>}, file:read_file(File)),
        ok = file:delete(File ++ ".full"),
        %% As if a master was killed before it had written anything down.
        {ok, Cloud} = atoll_deploy_cloud:open(hd(atoll_deploy_store:things(Store, provider)), []),
        {ok, [_]} = atoll_deploy_cloud:create(Cloud, ["atoll-" ++ atoll_deploy_store:id(Store) ++ "-d-1"], provider(#{})),
        ok = atoll_deploy_cloud:close(Cloud),
        ok = atoll_deploy_cloud:ensure(Store, "f"),
        ok = atoll_deploy_cloud:ensure(Store, "f"),
        ?assertMatch([#{address := "127.1.0.1"}, _, _], atoll_deploy_cloud:machines("d", atoll_deploy_store:all(Store))),
        {ok, Text} = file:read_file(File),
        ?assertEqual(3, length(binary:matches(Text, <<"atoll-">>))),
        ok = atoll_deploy_cloud:release(Store, "f"),
        ?assertEqual({ok, <<"[]">>}, file:read_file(File)),
        ?assertEqual([], atoll_deploy_cloud:machines("d", atoll_deploy_store:all(Store)))
    after
        ok = atoll_deploy:close(Store),
        os:unsetenv("PYTHONPATH"),
        file:del_dir_r(Dir)
    end.
