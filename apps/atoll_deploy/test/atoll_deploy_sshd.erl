%% SPDX-License-Identifier: Apache-2.0
%% OpenSSH's server for the suites: with keys of its own, and nobody's files. What is started through it is known as the
%% test's, since its sessions have the test's mark in their environment.
-module(atoll_deploy_sshd).

-export([available/0, keys/1, config/2, known/2, start/2, stop/1, user/0]).

-define(SSHD, "/usr/sbin/sshd").
-define(LATE_MS, 30000).

%% @doc Whether it is installed, and a client.
-spec available() -> ok | {skip, string()}.
available() ->
    case {filelib:is_regular(?SSHD), os:find_executable("ssh-keygen"), atoll_deploy_ssh:available()} of
        {true, [_ | _], ok} -> ok;
        {_, _, {error, _}} -> {skip, "Not installed: scripts/setup erlang-ssh"};
        _ -> {skip, "Not installed: scripts/setup openssh-server"}
    end.

%% @doc A folder with a key of the user, and one of a host.
-spec keys(Dir :: file:filename()) -> ok.
keys(Dir) ->
    ok = filelib:ensure_path(filename:join(Dir, "ssh")),
    "" = os:cmd(["ssh-keygen -q -t ed25519 -N '' -f ", Dir, "/ssh/id_ed25519 && ssh-keygen -q -t ed25519 -N '' -f ", Dir, "/host_key && ssh-keygen -q -t ed25519 -N '' -f ", Dir, "/other_key"]),
    ok.

%% @doc What a server of that address reads; the keys are in the folder.
-spec config(Dir :: file:filename(), #{address := string(), port := inet:port_number(), key := string()}) -> file:filename().
config(Dir, #{address := Address, port := Port, key := Key}) ->
    File = filename:join(Dir, lists:concat(["sshd-", Address, ".conf"])),
    Env = [lists:concat([Name, "=\"", Value, "\""]) || Name <- ["ATOLL_JOB", "ERL_EPMD_PORT"], Value <- [os:getenv(Name)], Value =/= false],
    ok = file:write_file(File, [
        "Port ", integer_to_list(Port), "\nListenAddress ", Address, "\nHostKey ", Dir, $/, Key, "\nAuthorizedKeysFile ", Dir, "/ssh/id_ed25519.pub\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        "Subsystem sftp internal-sftp\nMaxSessions 20\nMaxStartups 100\nUseDNS no\n",
        ["SetEnv " ++ lists:join(" ", Env) || Env =/= []], $\n
    ]),
    File.

%% @doc Has the user know a host by a key.
-spec known(Dir :: file:filename(), [{Host :: string(), inet:port_number(), Key :: string()}]) -> ok.
known(Dir, Hosts) ->
    file:write_file(filename:join([Dir, "ssh", "known_hosts"]), [
        [case Port of 22 -> Host; _ -> [$[, Host, "]:", integer_to_list(Port)] end, $\s, Public]
     || {Host, Port, Key} <- Hosts, {ok, Public} <- [file:read_file(filename:join(Dir, Key ++ ".pub"))]
    ]).

%% @doc Starts one on this machine, and returns when it answers. It ends with the caller.
-spec start(Dir :: file:filename(), #{address := string(), port := inet:port_number(), key := string()}) -> atoll_cluster_daemon:daemon().
start(Dir, #{address := Address, port := Port} = Of) ->
    _ = file:make_dir("/run/sshd"),
    {ok, Daemon} = atoll_cluster_daemon:open("sshd"),
    ok = atoll_cluster_daemon:run(Daemon, ?SSHD, ["-D", "-e", "-f", config(Dir, Of)]),
    Answers = fun() ->
        case gen_tcp:connect(Address, Port, []) of
            {ok, Socket} -> ok = gen_tcp:close(Socket), true;
            {error, _} -> false
        end
    end,
    case atoll_cli_os:await(Answers, ?LATE_MS) of
        ok -> Daemon;
        late -> error({no_sshd, file:read_file(filename:join(atoll_cluster_daemon:dir(Daemon), "out"))})
    end.

%% @doc Ends it.
-spec stop(atoll_cluster_daemon:daemon()) -> ok.
stop(Daemon) -> atoll_cluster_daemon:stop(Daemon).

%% @doc Who runs this.
-spec user() -> string().
user() -> string:trim(os:cmd("id -un")).
