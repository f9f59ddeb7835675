%% SPDX-License-Identifier: Apache-2.0
%% @doc Compiles the test modules, beside what `make build' compiles: what is tested is
%% what users run.
-module(atoll_test_build).

-export([build/2]).

%% To optimize code that runs once takes longer than all else.
-define(OPTIONS, [
    debug_info,
    no_ssa_opt,
    return_errors,
    return_warnings,
    warnings_as_errors,
    warn_export_vars,
    warn_unused_import
]).

%% @doc Compiles what is newer than its beam file, on all processors, and removes beam
%% files of modules that are gone.
-spec build([file:filename()], Ebin :: file:filename()) -> ok | {error, iolist()}.
build(Files, Ebin) ->
    ok = filelib:ensure_dir(filename:join(Ebin, "x")),
    Beams = maps:from_list([{filename:join(Ebin, filename:basename(File, ".erl") ++ ".beam"), File} || File <- Files]),
    _ = [file:delete(Beam) || Beam <- filelib:wildcard(filename:join(Ebin, "*.beam")), not is_map_key(Beam, Beams)],
    true = code:add_patha(Ebin),
    Old = [File || {Beam, File} <- maps:to_list(Beams), filelib:last_modified(Beam) =< filelib:last_modified(File)],
    %% What others may be a behaviour for is few: a second pass finds it compiled.
    case compile(Old, Ebin) of
        [] -> ok;
        Again -> told(compile([File || {File, _} <- Again], Ebin))
    end.

compile(Files, Ebin) ->
    Many = erlang:system_info(schedulers_online),
    Done = atoll_test_queue:run(Files, Many, fun(File, _) -> one(File, Ebin) end, fun(_, _, _) -> ok end),
    [{File, Errors} || {File, {error, Errors}} <- Done].

one(File, Ebin) ->
    case compile:file(File, [{outdir, Ebin}, {i, filename:join(filename:dirname(filename:dirname(File)), "include")} | ?OPTIONS]) of
        {ok, _, _} -> ok;
        {error, Errors, Warnings} -> {error, Errors ++ Warnings}
    end.

told([]) ->
    ok;
told(Failed) ->
    {error, [
        io_lib:format("~ts:~ts: ~ts~n", [File, place(Place), Module:format_error(Why)])
     || {_, Errors} <- Failed,
        {File, Infos} <- Errors,
        {Place, Module, Why} <- [placed(I) || I <- Infos]
    ]}.

placed({Place, Module, Why}) -> {Place, Module, Why};
placed({Module, Why}) -> {none, Module, Why}.

place({Line, Column}) -> io_lib:format("~b:~b", [Line, Column]);
place(Line) -> io_lib:format("~p", [Line]).
