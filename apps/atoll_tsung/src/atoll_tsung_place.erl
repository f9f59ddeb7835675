%% SPDX-License-Identifier: Apache-2.0
%% @doc The Tsung that is installed, as Debian's package has it, and what a run of ours takes beside it: the
%% plugin, compiled with its include files, and the document type, derived from its own. Nothing of
%% Tsung is changed, nor kept: both are made for each run, in the run's folder.
-module(atoll_tsung_place).

-export([find/0, dtd/1, make/2]).

-export_type([place/0, made/0]).

-type place() :: #{
    version := string(),
    %% the folders of its programs
    ebin := [file:filename(), ...],
    include := file:filename(),
    dtd := file:filename()
}.

-type made() :: #{
    %% the folder with the plugin
    ebin := file:filename(),
    dtd := file:filename()
}.

-define(MISSING, "Tsung is not installed here; its package in Debian is tsung.").
-define(DTD, "tsung-1.0.dtd").
%% Tsung's XML parser takes a file of this name that stands beside its own first, whatever the folder.
-define(OURS, "tsung-rpc.dtd").

%% @doc The newest that is installed: below `ATOLL_TSUNG' if that is set, or else `/usr'.
-spec find() -> {ok, place()} | {error, Sentence :: unicode:chardata()}.
find() ->
    Root = os:getenv("ATOLL_TSUNG", "/usr"),
    Libs = [filename:join(Root, "lib/*/tsung"), filename:join(Root, "lib/tsung")],
    Found = lists:append([filelib:wildcard(filename:join(Lib, "tsung-*/include")) || Lib <- Libs]),
    Dtd = filename:join([Root, "share", "tsung", ?DTD]),
    case {lists:reverse(lists:sort(Found)), filelib:is_regular(Dtd)} of
        {[Include | _], true} ->
            Dir = filename:dirname(Include),
            "tsung-" ++ Version = filename:basename(Dir),
            Controller = filename:join(filename:dirname(Dir), "tsung_controller-" ++ Version),
            {ok, #{version => Version, ebin => [filename:join(D, "ebin") || D <- [Dir, Controller]], include => Include, dtd => Dtd}};
        _ ->
            {error, ?MISSING}
    end.

%% @doc The document type with `ts_rpc'.
-spec dtd(place()) -> {ok, binary()} | {error, Sentence :: unicode:chardata()}.
dtd(#{dtd := File}) ->
    case file:read_file(File) of
        {ok, Text} -> atoll_tsung_dtd:with_rpc(Text);
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end.

%% @doc Makes both in a folder that is there.
-spec make(place(), file:filename()) -> {ok, made()} | {error, Sentence :: unicode:chardata()}.
make(#{ebin := Ebins} = Place, Dir) ->
    Ebin = filename:join(Dir, "ebin"),
    Dtd = filename:join(Dir, ?OURS),
    case dtd(Place) of
        {ok, Text} ->
            case {file:write_file(Dtd, Text), filelib:ensure_path(Ebin)} of
                {ok, ok} ->
                    %% The behaviour of its plugins is there.
                    ok = code:add_pathsz(Ebins),
                    try
                        compiled(Place, Ebin, #{ebin => Ebin, dtd => Dtd})
                    after
                        lists:foreach(fun code:del_path/1, Ebins)
                    end;
                {{error, Reason}, _} ->
                    {error, [Dtd, ": ", file:format_error(Reason)]};
                {ok, {error, Reason}} ->
                    {error, [Ebin, ": ", file:format_error(Reason)]}
            end;
        {error, _} = Error ->
            Error
    end.

compiled(#{include := Include, version := Version}, Ebin, Made) ->
    Source = filename:join(code:priv_dir(atoll_tsung), "ts_rpc.erl"),
    case compile:file(Source, [return, debug_info, {outdir, Ebin}, {i, Include}]) of
        {ok, ts_rpc, _Warnings} ->
            {ok, Made};
        {error, [{_, [{_, Module, Error} | _]} | _], _} ->
            {error, ["The plugin cannot be compiled with Tsung ", Version, ": ", Module:format_error(Error), $.]}
    end.
