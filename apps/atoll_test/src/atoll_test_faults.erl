%% SPDX-License-Identifier: Apache-2.0
%% @doc Tests of the tests: faults that are planted on purpose, one at a time, each of
%% which must turn a suite of its own application red.
%%
%% They are data, in `priv/faults/*.config', a map each. A fault is planted in a copy of
%% the tree: one text of one source file is replaced, the module compiled, and the suites
%% that the fault names are run in the fast tier, then, if all are green, in the deep one.
-module(atoll_test_faults).

-export([read/0, chosen/3, module/1, wrong/2, run/4]).

-export_type([fault/0, found/0]).

-type fault() :: #{
    %% From the root of the tree.
    file := file:filename(),
    %% Stands in the file exactly once.
    replace := string(),
    by := string(),
    %% The promise that it breaks, in words.
    breaks := string(),
    %% Those that find it, in the order in which they are run.
    suites := [module()]
}.

%% Which tier found it; or why it could not be planted.
-type found() :: fast | deep | missed | {not_planted, iolist()}.

%% @doc All faults.
-spec read() -> [fault()].
read() ->
    Files = lists:sort(filelib:wildcard(filename:join([code:priv_dir(atoll_test), "faults", "*.config"]))),
    lists:append([element(2, {ok, _} = file:consult(File)) || File <- Files]).

%% @doc What is wrong with a fault as it is written, in a tree: a sentence, or none.
-spec wrong(file:filename(), fault()) -> none | string().
wrong(Root, #{file := File, replace := Replace, by := By, breaks := [_ | _], suites := [_ | _] = Suites}) ->
    App = app(File),
    Tests = [filename:join([Root, Top, App, "test", atom_to_list(S) ++ ".erl"]) || S <- Suites, Top <- [hd(filename:split(File))]],
    case {file:read_file(filename:join(Root, File)), [T || T <- Tests, not filelib:is_regular(T)]} of
        {{error, Why}, _} ->
            lists:flatten(io_lib:format("~ts: ~ts", [File, file:format_error(Why)]));
        {_, [Test | _]} ->
            lists:flatten(io_lib:format("~ts: there is no ~ts", [File, Test]));
        {{ok, Text}, []} ->
            case length(string:split(Text, Replace, all)) - 1 of
                1 when Replace =/= By -> none;
                Times -> lists:flatten(io_lib:format("~ts: \"~ts\" stands there ~b times, not once", [File, Replace, Times]))
            end
    end;
wrong(_Root, Fault) ->
    lists:flatten(io_lib:format("not a fault: ~0p", [Fault])).

%% @doc The faults of some applications or modules, or of all with none: all of them, or so many that a seed draws.
-spec chosen([string()], pos_integer() | all, Seed :: non_neg_integer()) -> {ok, [fault(), ...]} | {error, iodata()}.
chosen(Names, Many, Seed) ->
    Faults = read(),
    In = fun(#{file := File}) -> [app(File), module(File)] end,
    case Names -- lists:flatmap(In, Faults) of
        [] -> {ok, drawn(Many, Seed, [F || F <- Faults, Names =:= [] orelse lists:any(fun(Name) -> lists:member(Name, Names) end, In(F))])};
        [Name | _] -> {error, ["no fault is planted in ", Name]}
    end.

drawn(all, _Seed, Faults) -> Faults;
drawn(Many, Seed, Faults) -> lists:sublist([F || {_, F} <- lists:sort([{erlang:phash2({Seed, F}), F} || F <- Faults])], Many).

%% @doc Plants them, in a copy of the tree for each place, after a run of their suites without
%% any fault; the function hears of each as it is done.
-spec run([fault()], file:filename(), [atoll_test_job:place()], fun((fault(), found()) -> term())) -> [{fault(), found()}].
run(Faults, Root, Places, Told) ->
    Copies = [copy(Root, Place) || Place <- Places],
    On = fun(What, Fun, Then) -> atoll_test_queue:run(What, length(Copies), fun(One, Number) -> Fun(One, lists:nth(Number, Copies)) end, Then) end,
    %% A suite that is red by itself finds nothing.
    Suites = lists:usort([{Suite, app(File)} || #{file := File, suites := Of} <- Faults, Suite <- Of]),
    Red = [Suite || {{Suite, _}, true} <- On(Suites, fun({Suite, App}, Copy) -> is_red(Suite, App, Copy) end, fun(_, _, _) -> ok end)],
    Plant = fun(#{suites := Of} = Fault, Copy) ->
        case [Suite || Suite <- Of, lists:member(Suite, Red)] of
            [] -> plant(Fault, Copy);
            [Suite | _] -> {not_planted, io_lib:format("~p is red without it", [Suite])}
        end
    end,
    On(Faults, Plant, fun(Fault, Found, _Left) -> Told(Fault, Found) end).

copy(Root, #{temporary := Temporary} = Place) ->
    Copy = filename:join(Temporary, "tree"),
    ok = file:make_dir(Copy),
    Script = "cd \"$1\" && tar cf - --exclude=./.git --exclude=./_build/test/results . | tar xf - -C \"$2\"",
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Script, "sh", Root, Copy]}, exit_status]),
    receive
        {Port, {exit_status, 0}} -> ok
    end,
    Place#{root := Copy, results := filename:join(Copy, "results")}.

plant(#{file := File, replace := Replace, by := By, suites := Suites}, #{root := Copy} = Place) ->
    Path = filename:join(Copy, File),
    Ebin = filename:join([Copy, "_build", "default", "lib", app(File), "ebin"]),
    {ok, Before} = file:read_file(Path),
    ok = file:write_file(Path, string:replace(Before, Replace, unicode:characters_to_binary(By))),
    try compile(Path, Ebin) of
        ok -> found(Suites, app(File), Place, [fast, deep]);
        {error, Why} -> {not_planted, Why}
    after
        ok = file:write_file(Path, Before),
        ok = compile(Path, Ebin)
    end.

%% A script is run where it stands.
compile(Path, Ebin) ->
    case filename:extension(Path) =:= ".erl" andalso compile:file(Path, [{outdir, Ebin}, debug_info, return_errors]) of
        false -> ok;
        {ok, _} -> ok;
        {error, Errors, _} -> {error, io_lib:format("it does not compile: ~0p", [Errors])}
    end.

found(_Suites, _App, _Place, []) ->
    missed;
found(Suites, App, Place, [Tier | Tiers]) ->
    case lists:any(fun(Suite) -> is_red(Suite, App, Place#{tier := Tier}) end, Suites) of
        true -> Tier;
        false -> found(Suites, App, Place, Tiers)
    end.

is_red(Suite, App, Place) ->
    Job = atoll_test_jobs:alone(list_to_atom(App), Suite, #{}),
    #{results := Results, broken := Broken} = atoll_test_job:run(Job, Place),
    Broken =/= none orelse lists:any(fun(#{outcome := Outcome}) -> Outcome =:= failed end, Results).

app(File) -> lists:nth(2, filename:split(File)).

%% @doc The module, or the script, of a file.
-spec module(file:filename()) -> file:filename_all().
module(File) -> filename:basename(File, ".erl").
