%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs one job in a VM of its own, and says what came of it.
%%
%% A job has an epmd, a run directory and a directory for temporary files that no other
%% job has, so it can run beside any other. All processes that it has started end with it, and
%% it ends when this VM does, in whatever way ({@link atoll_cluster_guardian}).
-module(atoll_test_job).

-export([run/2]).

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
    seed := non_neg_integer(),
    %% Milliseconds, if not what the tier gives.
    limit => pos_integer()
}.

-type ended() :: #{
    results := [atoll_test_result:result()],
    seconds := float(),
    %% Why it did not come to its end, in words, unless that is told of the cases that ran.
    broken := none | iolist(),
    log := file:filename()
}.

%% What hangs is ended.
-define(LIMIT_MS, #{fast => 400000, deep => 3000000}).

%% @doc Runs it, and removes its temporary files.
-spec run(atoll_test_jobs:job(), place()) -> ended().
run(#{kind := Kind, app := App, modules := Modules, 'case' := Case} = Job, Place) ->
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
    Erl = ["erl", "+Bd", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none", "-noinput", "-boot", "no_dot_erlang", "-pa"] ++ paths(Root, App) ++ ["-s", "atoll_test_vm", "main", "-extra"],
    Arguments = [atom_to_list(Kind), Dir, lists:flatten(lists:join(",", [atom_to_list(M) || M <- Modules])), Case],
    Begun = erlang:monotonic_time(millisecond),
    Guardian = atoll_cluster_guardian:start(Own, Log, Erl ++ Arguments, [{env, env(Own, Place)}, {cd, Root}]),
    Status = wait(Guardian, maps:get(limit, Place, maps:get(Tier, ?LIMIT_MS))),
    Seconds = (erlang:monotonic_time(millisecond) - Begun) / 1000,
    {Results, Broken} = results(Kind, Modules, Dir, Status),
    told(#{results => Results, seconds => Seconds, broken => Broken, log => Log}, atoll_test_running:left(Dir)).

env(Own, #{root := Root, epmd := Epmd, tier := Tier, seed := Seed}) ->
    [
        {"ATOLL_BUILT", Root},
        {"ERL_EPMD_PORT", integer_to_list(Epmd)},
        {"XDG_RUNTIME_DIR", Own},
        {"TMPDIR", Own},
        {"TIER", atom_to_list(Tier)},
        {"SEED", integer_to_list(Seed)}
    ].

%% A VM, and so a node that finds what this one does, looks for each module in one directory after the
%% other: first in the one that is given last, and as long as it boots, in the one that is given first.
paths(Root, App) ->
    Base = [filename:join(code:lib_dir(Otp), "ebin") || Otp <- [stdlib, kernel]],
    Own = [filename:join([Root, "_build", "default", "lib", Name, "ebin"]) || Name <- [App, atoll]],
    All = filelib:wildcard(filename:join([Root, "_build", "default", "lib", "*", "ebin"])),
    Base ++ (All -- Own) ++ [Dir || Dir <- Own, lists:member(Dir, All)] ++ filelib:wildcard(filename:join([Root, "_build", "test", "ebin"])) ++ Base.

%% Where its results are, under those of all jobs.
directory(#{name := Name}) -> lists:flatten(string:replace(Name, " ", "-", all)).

wait(Guardian, Limit) ->
    receive
        {Guardian, {exit_status, Status}} -> Status
    after Limit ->
        ok = atoll_cluster_guardian:finish(Guardian),
        {limit, Limit div 1000}
    end.

%% A case that ran when the job was cut short is what has failed.
told(#{results := Results, broken := Broken, log := Log} = Ended, [_ | _] = Running) when Broken =/= none ->
    Why = lists:flatten(io_lib:format("~ts; see ~ts", [Broken, Log])),
    Failed = [#{suite => Suite, name => Case, outcome => failed, seconds => 0.0, why => Why} || {Suite, Case} <- Running],
    Ended#{results := Results ++ Failed, broken := none};
told(Ended, _Running) ->
    Ended.

results(Kind, Modules, Dir, Status) ->
    case {atoll_test_result:read(Kind, Dir), Status} of
        {{error, File, Why}, _} ->
            {[], io_lib:format("its results in ~ts cannot be read: ~0p", [File, Why])};
        {{ok, Results}, {limit, Seconds}} ->
            {Results, io_lib:format("it had not ended after ~b s", [Seconds])};
        {{ok, Results}, Status} when Status =:= 0; Status =:= 1 ->
            Wrong = [Why || Ms <- counted(Kind, Modules), Why <- [missed(Ms, ended(Dir), Results)], Why =/= none],
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

%% EUnit counts the tests of each module, and Common Test those of all suites together.
counted(eunit, Modules) -> [[M] || M <- Modules];
counted(ct, Suites) -> [Suites].

%% What the runner has counted must be what stands in the results of the modules.
missed(Modules, Ended, Results) ->
    Of = fun(M) -> [Outcome || #{suite := Suite, outcome := Outcome} <- Results, Suite =:= atom_to_list(M)] end,
    Passed = length([passed || M <- Modules, passed <- Of(M)]),
    Names = lists:join(" and ", [atom_to_list(M) || M <- Modules]),
    case {lists:keyfind(Modules, 1, Ended), [M || M <- Modules, Of(M) =:= []]} of
        {false, _} -> [Names, " did not come to its end"];
        {{_, _, [Why | _]}, _} -> io_lib:format("tests of ~ts were cancelled: ~ts", [Names, Why]);
        {_, [None | _]} -> io_lib:format("no test of ~p has run", [None]);
        {{_, Passed, []}, _} -> none;
        {{_, Counted, []}, _} -> io_lib:format("~ts has passed ~b tests, and its results say ~b", [Names, Counted, Passed])
    end.
