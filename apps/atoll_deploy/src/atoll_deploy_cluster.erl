%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters of {@link atoll_cluster} on the hosts of a family, in place of this machine: benchmarks, faults and cases run there
%% unchanged. The nodes are such clusters' own, and not those of the family; they are controlled over the standard input and
%% output of OpenSSH's client, and end when that does, in whatever way.
%%
%% The code of this VM is put on each host, in a folder that goes with the cluster. What a host has of a cluster whose VM was
%% killed is that folder; its processes are gone.
-module(atoll_deploy_cluster).
-behaviour(atoll_cluster_driver).

-export([options/0, use/2]).
-export([nodes/2, prepare/1, start_node/2, call/4, signal/2, state/1, release/1]).

-type place() :: #{
    context := atoll_deploy_work:context(),
    %% By the name that nodes have of their host.
    keys := #{string() => {Domain :: string(), Host :: string()}},
    pids := file:filename(), dir := file:filename(), sum := string()
}.

-type handle() :: #{control := pid(), os_pid := pos_integer(), process := atoll_cluster_os:process(), mark := string(), key := {string(), string()}, context := atoll_deploy_work:context()}.

%% @doc The options of commands that start clusters. A command has them among its own, and does nothing else for them.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => family, value => "FAMILY", help => "start the nodes on the hosts of this family, which \"atoll deploy family\" has registered",
          first => fun(#{family := Family} = Values) -> use(maps:get(state, Values, atoll_deploy:default_dir()), Family) end},
        atoll_deploy_cli:state()
    ].

%% @doc From now on this VM starts clusters on the hosts of a family, where nothing else is told.
-spec use(State :: file:filename(), Family :: string()) -> ok | {error, unicode:chardata()}.
use(State, Family) ->
    case atoll_deploy:open(State) of
        {ok, Store} ->
            Known = atoll_deploy_family:known(Store, atoll_deploy_store:all(Store), Family),
            Cookie = case Known of
                {ok, {hosts, #{family := Of}}} -> atoll_deploy_family:cookie(Store, Of);
                _ -> {ok, <<>>}
            end,
            ok = atoll_deploy:close(Store),
            case {Known, Cookie} of
                {{ok, {hosts, Context}}, {ok, Is}} -> used(Context#{cookie := Is});
                {{ok, {kubernetes, _}}, _} -> {error, ["The family ", Family, " is on Kubernetes, which takes no clusters of this program."]};
                {{ok, _}, {error, Why}} -> {error, atoll_deploy_register:sentence(Why)};
                {{error, _} = Error, _} -> Error
            end;
        {error, _} = Error ->
            Error
    end.

used(#{family := #{domains := Domains}, domains := Known} = Context) ->
    Keys = [{Host, {Domain, Host}} || Domain <- Domains, #{Domain := #{hosts := Hosts}} <- [Known], #{host := Host} <- Hosts],
    Found = [{Host, inet:getaddr(Host, inet)} || {Host, _} <- Keys],
    case [Host || {Host, {error, _}} <- Found] of
        [] ->
            ok = persistent_term:put(?MODULE, {Context, maps:from_list(Keys)}),
            atoll_cluster:elsewhere(#{driver => ?MODULE, hosts => [#{address => Address, name => Host, wrap => []} || {Host, {ok, Address}} <- Found]});
        [Host | _] -> {error, ["The host ", Host, " has no address."]}
    end.

%% @private
-spec nodes(string(), [atoll_cluster_driver:host(), ...]) -> [node(), ...].
nodes(Name, Hosts) -> atoll_cluster_local:nodes(Name, Hosts).

%% @private The code of this VM is put on the hosts.
-spec prepare(atoll_cluster_driver:context()) -> {ok, place()} | {error, term()}.
prepare(#{name := Name, pids := Pids, dir := Dir}) ->
    {#{id := Id} = Context, Keys} = persistent_term:get(?MODULE),
    Code = filename:join(Dir, "code"),
    ok = filelib:ensure_path(Code),
    ok = lists:foreach(fun({N, Path}) -> linked(Path, filename:join(Code, integer_to_list(N))) end, code_path()),
    case atoll_deploy_release:keep(#{name => "code", path => Code}, filename:join(Dir, "releases")) of
        {ok, Sum} ->
            Archive = atoll_deploy_release:archive(filename:join(Dir, "releases"), Sum),
            Place = #{context => Context#{id := lists:concat([Id, "-", Name])}, keys => Keys, pids => Pids, dir => Dir, sum => Sum},
            Told = atoll_deploy_work:asked(maps:values(Keys), fun(Key, Way) -> atoll_deploy_host:upload(Way, remote(Key, Place), {Sum, Archive}) end, Context),
            case [{Host, Why} || {{_, Host}, {error, Why}} <- Told] of
                [] -> {ok, Place};
                [{Host, Why} | _] ->
                    %% What the others have got.
                    ok = release(Place),
                    {error, {elsewhere, unicode:characters_to_binary(["the host ", Host, ": ", Why])}}
            end;
        {error, Why} ->
            {error, {elsewhere, unicode:characters_to_binary(Why)}}
    end.

code_path() ->
    Otp = filename:split(code:root_dir()),
    Dirs = [filename:absname(Dir) || Dir <- code:get_path(), Dir =/= ".", not lists:prefix(Otp, filename:split(Dir)), filelib:is_dir(Dir)],
    lists:zip(lists:seq(101, 100 + length(Dirs)), Dirs).

%% An application is found by the name of its folder, and what it has beside its modules by that.
linked(Path, At) ->
    Application = filename:dirname(Path),
    To = filename:join(At, filename:basename(Application)),
    ok = filelib:ensure_path(To),
    ok = file:make_symlink(Path, filename:join(To, "ebin")),
    Priv = filename:join(Application, "priv"),
    _ = [ok = file:make_symlink(Priv, filename:join(To, "priv")) || filelib:is_dir(Priv)],
    ok.

remote(Key, #{context := Context}) -> atoll_deploy_work:dir(Key, Context).

%% @private
-spec start_node(atoll_cluster_driver:spec(), place()) -> {ok, handle()} | {error, term()}.
start_node(#{node := Node, host := #{name := Host} = At, connect_all := All, args := Args, boot_timeout := Timeout}, Place) ->
    #{context := Context, keys := #{Host := Key}, pids := Pids, dir := Dir, sum := Sum} = Place,
    ok = atoll_cluster_rundir:forget(Pids, Node),
    Mark = atoll_deploy_work:mark(#{node => atom_to_list(Node), host => Host}, Context),
    Quoted = fun(Text) -> unicode:characters_to_list(atoll_deploy_host:quoted(Text)) end,
    Before = ["cd; epmd -names >/dev/null 2>&1 || { own=yes; epmd -daemon </dev/null >/dev/null 2>&1; }; ATOLL_DEPLOY=", Quoted(Mark), " ERL_CRASH_DUMP_BYTES=0 erl"],
    Behind = ["-pa ", Quoted(remote(Key, Place)), "/releases/", Sum, "/*/*/ebin; status=$?; [ -z \"$own\" ] || epmd -kill >/dev/null 2>&1; exit $status"],
    {Driver, Address} = atoll_deploy_work:where(Key, Context),
    Words = atoll_deploy_ssh:command(Address, Driver),
    Over = filename:join(code:priv_dir(atoll_deploy), "over"),
    Launch = filename:join(code:priv_dir(atoll_cluster), "launch"),
    Exec = [Launch, Pids, atom_to_list(Node), atoll_cluster_rundir:out(Dir, Node), "/bin/sh", Over, lists:flatten(Before), lists:flatten(Behind), integer_to_list(length(Words)) | Words],
    Options = #{
        name => atom_to_list(Node), longnames => lists:member($., Host), connection => standard_io, exec => {"/bin/sh", Exec},
        args => node_args(At, All) ++ Args, wait_boot => Timeout
    },
    try peer:start(Options) of
        {ok, Peer, Node} ->
            case atoll_cluster_rundir:find(Pids, Node) of
                {ok, {OsPid, _} = Process} ->
                    %% No argument and no variable has it.
                    true = peer:call(Peer, erlang, set_cookie, [binary_to_atom((maps:get(cookie, Context))())], Timeout),
                    {ok, #{control => Peer, os_pid => OsPid, process => Process, mark => Mark, key => Key, context => Context}};
                gone -> true = exit(Peer, kill), {error, gone}
            end
    catch
        exit:{boot_failed, {exit_status, Status}} -> {error, {exit_status, Status}};
        exit:timeout -> {error, boot_timeout};
        exit:Reason -> {error, Reason}
    end.

%% As those of this machine; nothing is logged where their control stands.
node_args(#{address := Address}, All) ->
    ["+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none", "-start_epmd", "false",
     "-kernel", "inet_dist_use_interface", lists:flatten(io_lib:format("~0p", [Address])), "-kernel", "prevent_overlapping_partitions", "false",
     "-kernel", "logger", "[{handler,default,undefined}]"] ++ case All of true -> []; false -> ["-connect_all", "false"] end.

%% @private
-spec call(handle(), module(), atom(), [term()]) -> atoll_cluster_driver:reply().
call(Handle, M, F, A) -> atoll_cluster_local:call(maps:with([control, os_pid, process], Handle), M, F, A).

%% @private The node there, and what speaks with it here.
-spec signal(handle(), kill | pause | resume) -> ok | {error, down}.
signal(#{key := Key, mark := Mark, context := Context} = Handle, Signal) ->
    There = case Signal of kill -> kill; pause -> stop; resume -> cont end,
    _ = atoll_deploy_work:asked([Key], fun(_, Way) -> atoll_deploy_host:signal(Way, Mark, There) end, Context),
    atoll_cluster_local:signal(maps:with([control, os_pid, process], Handle), Signal).

%% @private
-spec state(handle()) -> up | paused | down.
state(Handle) -> atoll_cluster_local:state(maps:with([control, os_pid, process], Handle)).

%% @private Nothing of the cluster is left on the hosts.
-spec release(place()) -> ok.
release(#{keys := Keys, context := #{id := Id} = Context} = Place) ->
    _ = atoll_deploy_work:asked(maps:values(Keys), fun({_, Host} = Key, Way) ->
        atoll_deploy_host:sweep(Way, #{dir => remote(Key, Place), mark => lists:concat([Id, "/", Host]), host => Host, last => true})
    end, Context),
    ok.
