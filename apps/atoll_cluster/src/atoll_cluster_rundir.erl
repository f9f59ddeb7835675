%% SPDX-License-Identifier: Apache-2.0
%% @doc Run directories: where a cluster keeps what must outlive its VM.
%%
%% Every running cluster has one directory, `BASE/NAME', of this user alone:
%% ```
%% owner                  number and start time of the VM that owns the cluster
%% pids.TOKEN/P.S.NODE    one empty file for each process of the cluster, by
%%                        number, start time and node (see priv/launch)
%% log/NODE.log           what the node logged
%% log/NODE.out           what it wrote to standard output and standard error
%% control                the socket on which the owner answers
%% '''
%% BASE is `$XDG_RUNTIME_DIR/atoll', or `/tmp/atoll-UID' where that is not set.
%% TOKEN is the cluster's own, so that a late launcher of a cluster that is
%% gone cannot register with the next one of the same name.
%%
%% A directory appears whole, by a rename, and goes by one, which the watchdog
%% does when all processes are gone; so a name is claimed by at most one VM, and
%% until nothing is left of its cluster. A directory whose owner is gone is
%% stale: nothing is decided by it, and what it lists has to be taken down.
-module(atoll_cluster_rundir).

-include_lib("kernel/include/file.hrl").

-export([base/0, check/0, claim/2, list/0, stale/0]).
-export([log/2, out/2, certificates/1, control/1]).
-export([find/2, forget/2, parse_entry/1]).

-export_type([rundir/0, claimed/0]).

-type rundir() :: #{
    name := string(),
    %% the run directory
    dir := file:filename(),
    owner := atoll_cluster_os:process()
}.

-type claimed() :: #{
    name := string(),
    dir := file:filename(),
    owner := atoll_cluster_os:process(),
    %% where the processes of the cluster are registered
    pids := file:filename()
}.
%% The directory of a cluster of this VM.

%% A unix socket's address has room for 108 bytes, the last of them zero.
-define(MAX_SOCKET_PATH, 107).

%% @doc The directory of all run directories; made when missing. One that
%% others may write to is refused.
-spec base() -> {ok, file:filename()} | {error, term()}.
base() ->
    Base = base_path(),
    case check_ours(Base) of
        {error, {run_dir, Base, enoent}} -> made(Base);
        Checked -> Checked
    end.

%% Nobody sees it before it is this user's alone: another one may begin at the same moment.
made(Base) ->
    New = lists:concat([Base, ".new-", os:getpid(), "-", erlang:unique_integer([positive])]),
    case file:make_dir(New) of
        ok ->
            ok = file:change_mode(New, 8#700),
            _ = file:rename(New, Base) =:= ok orelse file:del_dir(New),
            check_ours(Base);
        {error, Reason} ->
            {error, {run_dir, Base, Reason}}
    end.

%% @doc Whether run directories can be kept and found; makes nothing. Where it
%% is an error, list/0 and stale/0 find none.
-spec check() -> ok | {error, term()}.
check() ->
    Base = base_path(),
    case {check_ours(Base), filelib:is_dir(filename:dirname(Base))} of
        {{ok, Base}, _} -> ok;
        %% It is made when it is first needed.
        {{error, {run_dir, Base, enoent}}, true} -> ok;
        {{error, _} = Error, _} -> Error
    end.

base_path() ->
    case os:getenv("XDG_RUNTIME_DIR") of
        Dir when Dir =:= false; Dir =:= "" ->
            "/tmp/atoll-" ++ integer_to_list(atoll_cluster_os:uid());
        Dir ->
            filename:join(Dir, "atoll")
    end.

%% @doc Takes a name for this VM.
-spec claim(string(), Token :: string()) -> {ok, claimed()} | {error, term()}.
claim(Name, Token) ->
    case base() of
        {ok, Base} ->
            Dir = filename:join(Base, Name),
            Socket = control(Dir),
            case byte_size(unicode:characters_to_binary(Socket)) > ?MAX_SOCKET_PATH of
                true -> {error, {path_too_long, Socket}};
                false -> claim(Base, Name, Token, Dir)
            end;
        {error, _} = Error ->
            Error
    end.

claim(Base, Name, Token, Dir) ->
    {Pid, Start} = Owner = atoll_cluster_os:self(),
    New = filename:join(Base, ".new-" ++ Token),
    Owned = io_lib:format("~b ~b~n", [Pid, Start]),
    Steps = [
        fun() -> file:make_dir(New) end,
        fun() -> file:write_file(filename:join(New, "owner"), Owned) end,
        fun() -> file:make_dir(filename:join(New, "pids." ++ Token)) end,
        fun() -> file:make_dir(filename:join(New, "log")) end,
        fun() -> file:rename(New, Dir) end
    ],
    case steps(Steps) of
        ok ->
            Pids = filename:join(Dir, "pids." ++ Token),
            {ok, #{name => Name, dir => Dir, owner => Owner, pids => Pids}};
        {error, Reason} ->
            _ = file:del_dir_r(New),
            case filelib:is_dir(Dir) of
                true -> {error, {name_in_use, Name}};
                false -> {error, {run_dir, Dir, Reason}}
            end
    end.

%% @doc The clusters of this user on this machine whose owner lives.
-spec list() -> [rundir()].
list() ->
    [Rundir || #{name := Name, owner := Owner} = Rundir <- entries(),
        hd(Name) =/= $., alive(Owner)].

%% @doc What owners that are gone have left behind.
-spec stale() -> [rundir()].
stale() ->
    [Rundir || #{owner := Owner} = Rundir <- entries(), not alive(Owner)].

%% @doc The file of a node's logger.
-spec log(file:filename(), node()) -> file:filename().
log(Dir, Node) ->
    Dir ++ "/log/" ++ atom_to_list(Node) ++ ".log".

%% @doc The file of a node's output.
-spec out(file:filename(), node()) -> file:filename().
out(Dir, Node) ->
    Dir ++ "/log/" ++ atom_to_list(Node) ++ ".out".

%% @doc The folder of its certificates, where it has TLS.
-spec certificates(file:filename()) -> file:filename().
certificates(Dir) ->
    Dir ++ "/certificates".

%% @doc The socket of a cluster.
-spec control(file:filename()) -> file:filename().
control(Dir) ->
    Dir ++ "/control".

%% @doc The living process that is registered for a node.
-spec find(Pids :: file:filename(), node()) -> {ok, atoll_cluster_os:process()} | gone.
find(Pids, Node) ->
    case [P || {P, _} <- registered(Pids, Node), atoll_cluster_os:state(P) =/= gone] of
        [Process | _] -> {ok, Process};
        [] -> gone
    end.

%% @doc Removes the entries of a node's earlier, dead processes.
-spec forget(Pids :: file:filename(), node()) -> ok.
forget(Pids, Node) ->
    _ = [file:delete(File) || {P, File} <- registered(Pids, Node),
            atoll_cluster_os:state(P) =:= gone],
    ok.

%% @doc What the name of a registered process's file says.
-spec parse_entry(string()) -> {ok, atoll_cluster_os:process(), Node :: string()} | error.
parse_entry(Entry) ->
    case re:run(Entry, "^(\\d+)\\.(\\d+)\\.(.+)$", [{capture, all_but_first, list}]) of
        {match, [Pid, Start, Node]} ->
            {ok, {list_to_integer(Pid), list_to_integer(Start)}, Node};
        nomatch ->
            error
    end.

registered(Pids, Node) ->
    Name = atom_to_list(Node),
    Files = list_dir(Pids),
    [{Process, filename:join(Pids, File)} ||
        File <- Files, {ok, Process, N} <- [parse_entry(File)], N =:= Name].

entries() ->
    case check_ours(base_path()) of
        {ok, Base} ->
            [#{name => Name, dir => Dir, owner => Owner} ||
                Name <- list_dir(Base),
                Dir <- [filename:join(Base, Name)],
                {ok, Owner} <- [owner(Dir)]];
        {error, _} ->
            []
    end.

%% A directory without a readable owner is none of ours, or is just going.
owner(Dir) ->
    case file:read_file(filename:join(Dir, "owner")) of
        {ok, Bin} ->
            case re:run(Bin, "^(\\d+) (\\d+)\n$", [{capture, all_but_first, list}]) of
                {match, [Pid, Start]} -> {ok, {list_to_integer(Pid), list_to_integer(Start)}};
                nomatch -> error
            end;
        {error, _} ->
            error
    end.

alive(Owner) ->
    atoll_cluster_os:state(Owner) =/= gone.

list_dir(Dir) ->
    case file:list_dir(Dir) of
        {ok, Names} -> Names;
        {error, _} -> []
    end.

check_ours(Base) ->
    Uid = atoll_cluster_os:uid(),
    case file:read_link_info(Base) of
        {ok, #file_info{type = directory, uid = Uid, mode = Mode}} when Mode band 8#077 =:= 0 ->
            {ok, Base};
        {ok, _} ->
            {error, {run_dir_unsafe, Base}};
        {error, Reason} ->
            {error, {run_dir, Base, Reason}}
    end.

steps([]) ->
    ok;
steps([Step | Steps]) ->
    case Step() of
        ok -> steps(Steps);
        {error, _} = Error -> Error
    end.
