%% SPDX-License-Identifier: Apache-2.0
%% Releases for the suites, made of an application that says of which version it is, and one that looks at nodes: a hidden node
%% that is driven over its standard input.
-module(atoll_deploy_probe).

-export([release/3, eye/1, eye/2, see/5, await/2, marked/1, marked/2, marks/1, things/3]).
-export([ask/2, asked/1, asking/2]).
-export([opened/2, ended/2, echo/1]).

-define(LATE_MS, 30000).

%% @doc A folder with the application `probe' of that version; one that is `bad' does not start.
-spec release(Dir :: file:filename(), Version :: string(), good | bad) -> file:filename().
release(Dir, Version, How) ->
    Path = filename:join(Dir, "release-" ++ Version),
    ok = filelib:ensure_path(Path),
    Start = case How of good -> "{ok, spawn(fun() -> receive stop -> ok end end)}"; bad -> "error(spoilt)" end,
    Forms = [
        begin {ok, Tokens, _} = erl_scan:string(Text), {ok, Form} = erl_parse:parse_form(Tokens), Form end
     || Text <- ["-module(probe).", "-export([start/2, stop/1, version/0]).", "start(_, _) -> " ++ Start ++ ".", "stop(_) -> ok.", "version() -> \"" ++ Version ++ "\"."]
    ],
    {ok, probe, Beam} = compile:forms(Forms, [deterministic]),
    ok = file:write_file(filename:join(Path, "probe.beam"), Beam),
    App = {application, probe, [{description, "Says its version"}, {vsn, Version}, {modules, [probe]}, {registered, []}, {applications, [kernel, stdlib]}, {mod, {probe, []}}]},
    ok = file:write_file(filename:join(Path, "probe.app"), io_lib:format("~p.~n", [App])),
    Path.

%% @doc What a family of nodes of this machine is made of: things to put, in order.
-spec things(Dir :: file:filename(), Provider :: map(), Domain :: map()) -> [{atoll_deploy_thing:kind(), Name :: string(), map()}].
things(Dir, Provider, Domain) ->
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, "hush-hush-cookie\n"),
    ok = file:change_mode(Cookie, 8#600),
    [
        {provider, "p", Provider},
        {release, "one", #{path => release(Dir, "1", good), apps => ["probe"]}},
        {release, "two", #{path => release(Dir, "2", good), apps => ["probe"]}},
        {release, "spoilt", #{path => release(Dir, "3", bad), apps => ["probe"]}},
        {domain, "d", Domain#{provider => "p"}},
        {family, "f", #{release => "one", domains => ["d"], cookie_file => Cookie, flags => ["+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none"], seconds => 60}}
    ].

%% @doc A node that looks at others.
-spec eye(Cookie :: string()) -> pid().
eye(Cookie) -> eye(Cookie, #{host => "127.0.0.1", wrap => []}).

%% @doc And elsewhere.
-spec eye(Cookie :: string(), #{host := string(), wrap := [string()]}) -> pid().
eye(Cookie, #{host := Host, wrap := Wrap}) ->
    [Program | Args] = Wrap ++ [filename:join([code:root_dir(), "bin", "erl"])],
    {ok, Peer, _} = peer:start_link(#{
        name => peer:random_name(), host => Host, longnames => true, connection => standard_io, exec => {Program, Args},
        args => ["-hidden", "-setcookie", Cookie, "+S", "1:1", "-pa", filename:dirname(code:which(?MODULE))]
    }),
    Peer.

%% @doc Applies a function on a node, by the one that looks.
-spec see(pid(), Node :: string(), module(), atom(), [term()]) -> term().
see(Eye, Node, M, F, A) -> peer:call(Eye, rpc, call, [list_to_atom(Node), M, F, A, ?LATE_MS], 2 * ?LATE_MS).

%% @doc Waits until something holds.
-spec await(term(), fun(() -> boolean())) -> ok.
await(What, Test) ->
    case atoll_cli_os:await(Test, ?LATE_MS) of
        ok -> ok;
        late -> error({late, What})
    end.

%% @doc The processes of this machine that have a mark with this text, with the command of each.
-spec marked(Text :: string()) -> [{Pid :: string(), Command :: binary()}].
marked(Text) -> marked("", Text).

%% @doc Those of one deployment: others on this machine have nodes of the same names.
-spec marked(Id :: string(), Text :: string()) -> [{Pid :: string(), Command :: binary()}].
marked(Id, Text) ->
    [{Pid, Line} || {Pid, Mark} <- with_mark(Text), lists:prefix(Id, Mark), {ok, Line} <- [file:read_file("/proc/" ++ Pid ++ "/cmdline")]].

%% @doc The marks with this text that some process of this machine has.
-spec marks(Text :: string()) -> [Mark :: string()].
marks(Text) -> lists:usort([Mark || {_, Mark} <- with_mark(Text)]).

with_mark(Text) ->
    [
        {Pid, binary_to_list(Mark)}
     || Pid <- filelib:wildcard("[0-9]*", "/proc"),
        {ok, Environment} <- [file:read_file("/proc/" ++ Pid ++ "/environ")],
        <<"ATOLL_DEPLOY=", Mark/binary>> <- binary:split(Environment, <<0>>, [global]),
        binary:match(Mark, unicode:characters_to_binary(Text)) =/= nomatch
    ].

%% @doc Has the one that looks ask these nodes in turn, again and again, as a client does; who asks.
-spec ask(pid(), Nodes :: [string()]) -> pid().
ask(Eye, Nodes) ->
    peer:call(Eye, erlang, spawn, [?MODULE, asking, [[list_to_atom(Node) || Node <- Nodes], []]]).

%% @private A round is what each node has answered.
-spec asking([node()], [[{node(), string() | failed}]]) -> ok.
asking(Nodes, Rounds) ->
    receive
        {stop, For} -> For ! {self(), lists:reverse(Rounds)}, ok
    after 20 ->
        Round = [{Node, try erpc:call(Node, probe, version, [], 2000) catch _:_ -> failed end} || Node <- Nodes],
        asking(Nodes, [Round | Rounds])
    end.

%% @doc All that was answered, in rounds.
-spec asked({Eye :: pid(), Client :: pid()}) -> [[{node(), string() | failed}]].
asked({Eye, Client}) ->
    peer:call(Eye, erlang, apply, [fun answers/1, [Client]], ?LATE_MS).

answers(Client) ->
    Client ! {stop, self()},
    receive {Client, Rounds} -> Rounds end.

%% @doc Opens a state, and puts these things into it. A case that fails has it open still when it is cleaned up.
-spec opened(State :: file:filename(), [{atoll_deploy_thing:kind(), Name :: string(), map()}]) -> atoll_deploy:deployment().
opened(State, Things) ->
    {ok, Deployment} = atoll_deploy:open(State, ?LATE_MS),
    _ = put(?MODULE, Deployment),
    _ = [ok = atoll_deploy:put(Deployment, Kind, Name, Given) || {Kind, Name, Given} <- Things],
    Deployment.

%% @doc Terminates all families of a state, whatever a case has left, and removes its directory.
-spec ended(State :: file:filename(), Dir :: file:filename()) -> ok.
ended(State, Dir) ->
    _ = [try atoll_deploy:close(Deployment) catch exit:_ -> ok end || #{} = Deployment <- [erase(?MODULE)]],
    {ok, Deployment} = atoll_deploy:open(State, ?LATE_MS),
    _ = [{ok, _} = atoll_deploy:terminate(Deployment, Family, fun(_, _) -> ok end) || Family <- atoll_deploy:families(Deployment)],
    ok = atoll_deploy:close(Deployment),
    atoll_cli_os:remove_dir(Dir).

%% @doc What it was given, by this module's code.
-spec echo(Term) -> Term.
echo(Term) -> Term.
