%% SPDX-License-Identifier: Apache-2.0
%% @doc The report of one or more runs: a page that opens without a network, and
%% beside it a file for each of its charts (SVG) and tables (CSV).
%%
%% The charts are drawn by the bundle of scripts that `make report-bundle' makes from
%% `apps/atoll_bench/report'; for the files that takes Node.js. The same runs give the
%% same files. Files of the same names are written over; those to which a report that
%% was there before linked are taken away, others are left alone.
-module(atoll_bench_report).

-export([write/2, write/3, format_error/1]).

-export_type([run/0, options/0, error/0]).

%% As a result file is read.
-type run() :: #{
    file := file:filename_all(),
    %% The first line, keys as binaries.
    header := map(),
    rounds := [map()],
    errors := [map()],
    status := atoll_bench_file:status()
}.

-type options() :: #{
    %% Where the bundle is, if it is not where it is built.
    bundle => file:filename_all()
}.

-type error() ::
    no_runs
    | {file, file:filename_all(), file:posix() | badarg | terminated | system_limit}
    | atoll_bench_report_bundle:error().

%% @doc Writes the report of the runs and says which files it is, `index.html' first.
-spec write(file:filename_all(), [run()]) -> {ok, [file:filename_all(), ...]} | {error, error()}.
write(Dir, Runs) ->
    write(Dir, Runs, #{}).

%% @doc The same with a bundle from elsewhere.
-spec write(file:filename_all(), [run()], options()) -> {ok, [file:filename_all(), ...]} | {error, error()}.
write(_Dir, [], _Options) ->
    {error, no_runs};
write(Dir, Runs, Options) ->
    case atoll_bench_report_bundle:load(Options) of
        {ok, Bundle} -> write_all(Dir, [parts(N, Run) || {N, Run} <- numbered(Runs)], Bundle);
        {error, _} = Error -> Error
    end.

numbered(Runs) ->
    lists:zip(lists:seq(1, length(Runs)), Runs).

parts(Number, Run) ->
    atoll_bench_report_parts:all(atoll_bench_report_data:read(Number, Run)).

write_all(Dir, Parts, Bundle) ->
    Charts = lists:append([atoll_bench_report_parts:charts(P) || P <- Parts]),
    Tables = lists:append([atoll_bench_report_parts:tables(P) || P <- Parts]),
    Files = [{"index.html", atoll_bench_report_page:html(Parts, Bundle)} | [
        {binary_to_list(<<Name/binary, ".csv">>), atoll_bench_report_table:csv(Table)}
     || #{name := Name} = Table <- Tables
    ]],
    Old = linked(Dir),
    case write_files(Dir, Files) of
        ok ->
            case atoll_bench_report_bundle:draw(Dir, Bundle) of
                ok ->
                    Names = [Name || {Name, _} <- Files] ++ [binary_to_list(<<Id/binary, ".svg">>) || #{id := Id} <- Charts],
                    _ = [file:delete(filename:join(Dir, Name)) || Name <- Old, not lists:member(Name, Names)],
                    {ok, [filename:join(Dir, Name) || Name <- Names]};
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

%% The files beside a report that is there.
linked(Dir) ->
    case file:read_file(filename:join(Dir, "index.html")) of
        {ok, Page} ->
            Links = "<a href=\"([A-Za-z0-9_-]+\\.(?:svg|csv))\" download ",
            case {binary:match(Page, atoll_bench_report_page:mark()), re:run(Page, Links, [global, {capture, [1], list}])} of
                {{_, _}, {match, Found}} -> lists:append(Found);
                _ -> []
            end;
        {error, _} ->
            []
    end.

write_files(_Dir, []) ->
    ok;
write_files(Dir, [{Name, Content} | Files]) ->
    File = filename:join(Dir, Name),
    case filelib:ensure_dir(File) of
        ok ->
            case file:write_file(File, Content) of
                ok -> write_files(Dir, Files);
                {error, Reason} -> {error, {file, File, Reason}}
            end;
        {error, Reason} ->
            {error, {file, Dir, Reason}}
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(no_runs) ->
    "There is no run to report.";
format_error({file, File, Reason}) ->
    io_lib:format("~ts: ~ts", [File, file:format_error(Reason)]);
format_error(Error) ->
    atoll_bench_report_bundle:format_error(Error).
