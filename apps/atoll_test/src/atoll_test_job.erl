%% @doc Runs one job in a VM of its own, and says what came of it.
%%
%% A job has an epmd, a run directory and a directory for temporary files that no other
%% job has, so it can run beside any other. Its VM is tied to this one: it ends when this
%% one does, in whatever way, and the nodes that it has started end with it. What else it has
%% started may outlive a kill.
-module(atoll_test_job).

-export([run/2, tied/1]).

-export_type([place/0, ended/0]).

-type place() :: #{
    %% The tree that is tested, with what is built in it.
    root := file:filename(),
    %% Where the results of all jobs go, a directory each.
    results := file:filename(),
    %% Where the job may put what it does not keep.
    temporary := file:filename(),
    %% The port of its epmd.
    epmd := inet:port_number(),
    tier := atoll_tier:tier(),
    seed := non_neg_integer()
}.

-type ended() :: #{
    results := [atoll_test_result:result()],
    seconds := float(),
    %% Why it did not come to its end, in words.
    broken := none | iolist(),
    log := file:filename()
}.

%% What hangs is ended.
-define(LIMIT_MS, #{fast => 400000, deep => 3000000}).

%% @doc Runs it, and removes its temporary files.
-spec run(atoll_test_jobs:job(), place()) -> ended().
run(#{kind := Kind, modules := Modules, 'case' := Case} = Job, Place) ->
    #{root := Root, results := All, temporary := Temporary, tier := Tier} = Place,
    Dir = filename:join(All, directory(Job)),
    Log = filename:join(Dir, "console.log"),
    _ = file:del_dir_r(Dir),
    ok = filelib:ensure_dir(Log),
    %% Its own, whatever another one may have left behind.
    Own = filename:join(Temporary, "run" ++ integer_to_list(erlang:unique_integer([positive]))),
    ok = file:make_dir(Own),
    ok = file:change_mode(Own, 8#700),
    %% A scheduler that waits busily takes what the nodes of other jobs need.
    Erl = ["erl", "+Bd", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none", "-noinput", "-boot", "no_dot_erlang", "-pa"] ++ paths(Root) ++ ["-s", "atoll_test_vm", "main", "-extra"],
    Arguments = [atom_to_list(Kind), Dir, lists:join(",", [atom_to_list(M) || M <- Modules]), Case],
    Begun = erlang:monotonic_time(millisecond),
    Status = wait(start(Erl ++ Arguments, Log, env(Own, Place), Root), maps:get(Tier, ?LIMIT_MS)),
    Seconds = (erlang:monotonic_time(millisecond) - Begun) / 1000,
    _ = file:del_dir_r(Own),
    {Results, Broken} = results(Kind, Modules, Dir, Status),
    #{results => Results, seconds => Seconds, broken => Broken, log => Log}.

env(Own, #{epmd := Epmd, tier := Tier, seed := Seed}) ->
    [
        {"ERL_EPMD_PORT", integer_to_list(Epmd)},
        {"XDG_RUNTIME_DIR", Own},
        {"TMPDIR", Own},
        {"TIER", atom_to_list(Tier)},
        {"SEED", integer_to_list(Seed)}
    ].

paths(Root) ->
    filelib:wildcard(filename:join([Root, "_build", "test", "ebin"])) ++
        filelib:wildcard(filename:join([Root, "_build", "default", "lib", "*", "ebin"])).

%% Where its results are, under those of all jobs.
directory(#{name := Name}) -> lists:flatten(string:replace(Name, " ", "-", all)).

%% The shell only sends the VM's output to a file. A VM in the background would hand down
%% to its nodes that SIGINT is ignored.
start(Arguments, Log, Env, Root) ->
    Command = "log=$1; shift; if env --default-signal=INT true 2>/dev/null; then set -- env --default-signal=INT \"$@\"; fi; exec \"$@\" >\"$log\" 2>&1 </dev/null",
    Sh = ["sh", "-c", Command, "sh", Log | [unicode:characters_to_list(A) || A <- Arguments]],
    [Program | Rest] = tied(Sh),
    open_port({spawn_executable, os:find_executable(Program)}, [{args, Rest}, {env, Env}, {cd, Root}, exit_status, hide]).

%% @doc A command that dies with this VM, even when that is killed.
-spec tied([string()]) -> [string()].
tied(Command) ->
    case os:find_executable("setpriv") of
        false -> Command;
        _ -> ["setpriv", "--pdeathsig", "KILL" | Command]
    end.

wait(Port, Limit) ->
    receive
        {Port, {exit_status, Status}} -> Status
    after Limit ->
        {os_pid, Pid} = erlang:port_info(Port, os_pid),
        _ = os:cmd("kill -KILL " ++ integer_to_list(Pid)),
        {limit, Limit div 1000}
    end.

results(Kind, Modules, Dir, Status) ->
    case {atoll_test_result:read(Kind, Dir), Status} of
        {{error, File, Why}, _} ->
            {[], io_lib:format("its results in ~ts cannot be read: ~0p", [File, Why])};
        {{ok, Results}, {limit, Seconds}} ->
            {Results, io_lib:format("it had not ended after ~b s", [Seconds])};
        {{ok, Results}, Status} when Status =:= 0; Status =:= 1 ->
            Wrong = [Why || M <- Modules, Why <- [missed(M, ended(Dir), Results)], Why =/= none],
            case {Wrong, Status, [R || #{outcome := failed} = R <- Results]} of
                {[Why | _], _, _} -> {Results, Why};
                {[], 1, []} -> {Results, "it failed, though no test did"};
                _ -> {Results, none}
            end;
        {{ok, Results}, Status} ->
            {Results, io_lib:format("it ended with status ~p before its end", [Status])}
    end.

ended(Dir) ->
    case file:consult(filename:join(Dir, "ended")) of
        {ok, Lines} -> Lines;
        {error, enoent} -> []
    end.

%% What the runner has counted must be what stands in the results of the module.
missed(Module, Ended, Results) ->
    Of = [Outcome || #{suite := Suite, outcome := Outcome} <- Results, Suite =:= atom_to_list(Module)],
    Passed = length([passed || passed <- Of]),
    case {lists:keyfind(Module, 1, Ended), Of} of
        {false, _} -> io_lib:format("~p did not come to its end", [Module]);
        {{_, _, [Why | _]}, _} -> io_lib:format("tests of ~p were cancelled: ~0tp", [Module, Why]);
        {_, []} -> io_lib:format("no test of ~p has run", [Module]);
        {{_, Passed, []}, _} -> none;
        {{_, Counted, []}, _} -> io_lib:format("~p has passed ~b tests, and its results say ~b", [Module, Counted, Passed])
    end.

