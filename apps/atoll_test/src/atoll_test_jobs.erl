%% SPDX-License-Identifier: Apache-2.0
%% @doc What there is to run. Short suites of Common Test of one application are a job together,
%% and so are its EUnit modules; what takes longer is a job of its own.
-module(atoll_test_jobs).

-export([all/2, only/4, alone/3, with_cases/1, quiet/1, places/1, sources/1]).

-export_type([job/0, times/0]).

-type job() :: #{
    %% The suite, or the application, what they are, and a number.
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

%% They share a VM up to so many seconds. To start one takes a third of one, and Common Test in it half
%% of another one.
-define(TOGETHER_S, #{eunit => 15.0, ct => 30.0}).

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
    Apps = lists:usort([App || {App, _} <- Tests]),
    order([Job || App <- Apps, Kind <- [ct, eunit], Job <- together(Kind, App, [M || {A, M} <- Tests, A =:= App, kind(M) =:= Kind], Times)]).

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

%% @doc Without the suites that have cases in the other tier only, and the jobs of which nothing is left.
-spec with_cases([job()]) -> [job()].
with_cases(Jobs) -> [Job#{modules := Some} || #{modules := All} = Job <- Jobs, [_ | _] = Some <- [[M || M <- All, has_cases(M)]]].

%% @doc Those that run beside others, and those that want the machine for themselves: a suite of Common Test that
%% compares times, or takes all of it, says so by `{userdata, quiet}'.
-spec quiet([job()]) -> {Beside :: [job()], Alone :: [job()]}.
quiet(Jobs) -> lists:partition(fun(#{modules := Modules}) -> not lists:any(fun is_quiet/1, Modules) end, Jobs).

is_quiet(M) -> kind(M) =:= ct andalso lists:member({suite, 0}, M:module_info(exports)) andalso lists:member({userdata, quiet}, M:suite()).

%% @doc The places of so many processors: which jobs each takes before all others. A suite of Common Test
%% waits for its nodes two thirds of its time, and EUnit modules compute: beside two places for each processor
%% there is one for each two processors that has these modules first, so that the others hardly come to them.
-spec places(Processors :: pos_integer()) -> [fun((job()) -> boolean()), ...].
places(Processors) ->
    lists:duplicate(2 * Processors, fun(_) -> true end) ++
        lists:duplicate(Processors div 2, fun(#{kind := Kind}) -> Kind =:= eunit end).

has_cases(M) -> kind(M) =:= eunit orelse M:all() =/= [].

kind(Module) ->
    Name = atom_to_list(Module),
    case {lists:suffix("_tests", Name), lists:suffix("_SUITE", Name)} of
        {true, _} -> eunit;
        {_, true} -> ct;
        _ -> helper
    end.

%% @doc The job of one module alone.
-spec alone(atom(), module(), times()) -> job().
alone(App, M, Times) -> job(kind(M), App, atom_to_list(M), [M], expected(M, Times)).

job(Kind, App, Name, Modules, Expected) ->
    #{name => Name, kind => Kind, app => App, modules => Modules, 'case' => "", expected => Expected}.

expected(M, Times) ->
    maps:get(M, Times, maps:get(kind(M), ?UNKNOWN)).

%% The longest are alone; the others fill one VM after the other.
together(Kind, App, Modules, Times) ->
    Sorted = lists:reverse(lists:sort([{expected(M, Times), M} || M <- Modules])),
    Filled = fill(Sorted, map_get(Kind, ?TOGETHER_S), 0.0, [], []),
    [job(Kind, App, name(Kind, App, N, Ms), Ms, Sum) || {N, {Sum, Ms}} <- lists:zip(lists:seq(1, length(Filled)), Filled)].

name(ct, _App, _N, [M]) -> atom_to_list(M);
name(ct, App, N, _Ms) -> lists:concat([App, " suites ", N]);
name(eunit, App, N, _Ms) -> lists:concat([App, " ", N]).

fill([], _, _, [], Full) -> lists:reverse(Full);
fill([], Most, Sum, Ms, Full) -> fill([], Most, 0.0, [], [{Sum, lists:reverse(Ms)} | Full]);
fill([{T, M} | Rest], Most, Sum, Ms, Full) when Ms =:= []; Sum + T =< Most -> fill(Rest, Most, Sum + T, [M | Ms], Full);
fill(Rest, Most, Sum, Ms, Full) -> fill(Rest, Most, 0.0, [], [{Sum, lists:reverse(Ms)} | Full]).
