%% SPDX-License-Identifier: Apache-2.0
%% @doc What there is to run: each suite of Common Test is a job, and so are some EUnit
%% modules of one application together, as many as take a few seconds.
-module(atoll_test_jobs).

-export([all/2, only/4, alone/3, has_cases/1, sources/1]).

-export_type([job/0, times/0]).

-type job() :: #{
    %% The suite, or the application and a number.
    name := string(),
    kind := eunit | ct,
    app := atom(),
    modules := [atom()],
    %% One case of the only module, or "".
    'case' := string(),
    %% As long as it took when times were recorded.
    expected := float()
}.

%% Seconds of each module.
-type times() :: #{atom() => float()}.

%% What has no recorded time.
-define(UNKNOWN, #{eunit => 1.0, ct => 30.0}).

%% EUnit modules share a VM up to so many seconds: starting one takes a third of one.
-define(TOGETHER_S, 8.0).

%% @doc The test sources under a root, by application: `{App, File}'.
-spec sources(file:filename()) -> [{atom(), file:filename()}].
sources(Root) ->
    [
        {app(File), File}
     || Top <- ["apps", "cases"],
        File <- lists:sort(filelib:wildcard(filename:join([Root, Top, "*", "test", "*.erl"])))
    ].

app(File) ->
    list_to_atom(filename:basename(filename:dirname(filename:dirname(File)))).

%% @doc All jobs of these sources, the longest first.
-spec all([{atom(), file:filename()}], times()) -> [job()].
all(Sources, Times) ->
    Tests = [{App, list_to_atom(filename:basename(File, ".erl"))} || {App, File} <- Sources],
    Suites = [suite(App, M, Times) || {App, M} <- Tests, kind(M) =:= ct],
    Apps = lists:usort([App || {App, _} <- Tests]),
    Units = [Job || App <- Apps, Job <- units(App, [M || {A, M} <- Tests, A =:= App, kind(M) =:= eunit], Times)],
    order(Suites ++ Units).

%% What is begun last should be short.
order(Jobs) ->
    lists:sort(fun(#{expected := A, name := NameA}, #{expected := B, name := NameB}) -> {-A, NameA} =< {-B, NameB} end, Jobs).

%% @doc The jobs for some modules or applications alone, each module a job of its own; or
%% what is not known. A case goes with one module.
-spec only([string()], string(), [{atom(), file:filename()}], times()) -> {ok, [job()]} | {error, iolist()}.
only(Names, Case, Sources, Times) ->
    Tests = [{App, list_to_atom(filename:basename(File, ".erl"))} || {App, File} <- Sources],
    Runs = [{App, M} || {App, M} <- Tests, kind(M) =/= helper],
    Found = [{Name, [{App, M} || {App, M} <- Runs, lists:member(Name, [atom_to_list(App), atom_to_list(M)])]} || Name <- Names],
    case [Name || {Name, []} <- Found] of
        [] ->
            Chosen = lists:usort(lists:append([Of || {_, Of} <- Found])),
            case Case =/= "" andalso length(Chosen) > 1 of
                true -> {error, "--case is one case of one suite, and there are several"};
                false -> {ok, order([(alone(App, M, Times))#{'case' := Case} || {App, M} <- Chosen])}
            end;
        [Name | _] ->
            Known = [atom_to_list(X) || {App, M} <- Runs, X <- [App, M]],
            {error, ["there is no suite, EUnit module or application ", Name, nearest(Name, lists:usort(Known))]}
    end.

nearest(Name, Known) ->
    case atoll_cli_nearest:of_words(Name, Known) of
        {ok, Near} -> ["; did you mean ", Near, "?"];
        none -> ""
    end.

%% @doc A suite may have cases in the deep tier only.
-spec has_cases(job()) -> boolean().
has_cases(#{kind := ct, modules := [Suite]}) -> Suite:all() =/= [];
has_cases(#{kind := eunit}) -> true.

kind(Module) ->
    Name = atom_to_list(Module),
    case {lists:suffix("_tests", Name), lists:suffix("_SUITE", Name)} of
        {true, _} -> eunit;
        {_, true} -> ct;
        _ -> helper
    end.

%% @doc The job of one module alone.
-spec alone(atom(), module(), times()) -> job().
alone(App, M, Times) ->
    case kind(M) of
        ct -> suite(App, M, Times);
        eunit -> unit(App, atom_to_list(M), [M], expected(M, Times))
    end.

suite(App, M, Times) ->
    #{name => atom_to_list(M), kind => ct, app => App, modules => [M], 'case' => "", expected => expected(M, Times)}.

unit(App, Name, Modules, Expected) ->
    #{name => Name, kind => eunit, app => App, modules => Modules, 'case' => "", expected => Expected}.

expected(M, Times) ->
    maps:get(M, Times, maps:get(kind(M), ?UNKNOWN)).

%% The longest are alone; the others fill one VM after the other.
units(App, Modules, Times) ->
    Sorted = lists:reverse(lists:sort([{expected(M, Times), M} || M <- Modules])),
    Filled = fill(Sorted, 0.0, [], []),
    [
        unit(App, lists:flatten(io_lib:format("~s ~b", [App, N])), Ms, Sum)
     || {N, {Sum, Ms}} <- lists:zip(lists:seq(1, length(Filled)), Filled)
    ].

fill([], _, [], Full) -> lists:reverse(Full);
fill([], Sum, Ms, Full) -> fill([], 0.0, [], [{Sum, lists:reverse(Ms)} | Full]);
fill([{T, M} | Rest], Sum, Ms, Full) when Ms =:= []; Sum + T =< ?TOGETHER_S -> fill(Rest, Sum + T, [M | Ms], Full);
fill(Rest, Sum, Ms, Full) -> fill(Rest, 0.0, [], [{Sum, lists:reverse(Ms)} | Full]).
