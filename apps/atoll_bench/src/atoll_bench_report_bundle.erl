%% SPDX-License-Identifier: Apache-2.0
%% @doc The bundle of scripts that draws a report's charts: on the page, and, with
%% Node.js, into files.
-module(atoll_bench_report_bundle).

-export([build/0, load/1, draw/2, format_error/1]).

-export_type([bundle/0, error/0]).

-type bundle() :: #{
    dir := file:filename_all(),
    %% What the page has in it.
    script := binary(),
    style := binary()
}.

-type error() :: {no_bundle, file:filename_all()} | no_node | {not_built | not_drawn, binary()}.

%% A few seconds are usual; what is fetched from a registry may take a while.
-define(DRAW_MS, 120000).
-define(BUILD_MS, 600000).

%% @doc Builds the bundle if its sources are here and newer.
-spec build() -> ok | {error, error()}.
build() ->
    Script = filename:join([filename:dirname(filename:dirname(built())), "scripts", "build-report"]),
    case filelib:is_regular(Script) andalso atoll_cluster_program:run(Script, [], ?BUILD_MS) of
        {error, Said} -> {error, {not_built, Said}};
        _ -> ok
    end.

%% @doc The bundle, from where it is built or from where the options say.
-spec load(atoll_bench_report:options()) -> {ok, bundle()} | {error, error()}.
load(Options) ->
    Dir = maps:get(bundle, Options, built()),
    case [file:read_file(filename:join(Dir, Name)) || Name <- ["report.js", "style.css", "svg.mjs"]] of
        [{ok, Script}, {ok, Style}, {ok, _}] -> {ok, #{dir => Dir, script => Script, style => Style}};
        _ -> {error, {no_bundle, Dir}}
    end.

%% _build/default/lib/atoll_bench/ebin/THIS.beam
built() ->
    Beam = code:which(?MODULE),
    filename:join(lists:foldl(fun(_, Path) -> filename:dirname(Path) end, Beam, lists:seq(1, 5)), "report").

%% @doc Draws the charts of the page in a directory into files beside it.
-spec draw(file:filename_all(), bundle()) -> ok | {error, error()}.
draw(Dir, #{dir := Bundle}) ->
    case os:find_executable("node") of
        false -> {error, no_node};
        Node ->
            case atoll_cluster_program:run(Node, [filename:absname(filename:join(Bundle, "svg.mjs")), filename:absname(Dir)], ?DRAW_MS) of
                ok -> ok;
                {error, Said} -> {error, {not_drawn, Said}}
            end
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({no_bundle, Dir}) ->
    io_lib:format("The scripts of the report are not in ~ts: \"make report-bundle\" builds them.", [Dir]);
format_error(no_node) ->
    "The charts are drawn by Node.js, and there is no \"node\" on the PATH.";
format_error({not_built, Said}) ->
    io_lib:format("The scripts of the report could not be bundled: ~ts", [string:trim(Said)]);
format_error({not_drawn, Said}) ->
    io_lib:format("The charts could not be drawn: ~ts", [string:trim(Said)]).
