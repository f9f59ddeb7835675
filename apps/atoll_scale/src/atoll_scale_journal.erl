%% SPDX-License-Identifier: Apache-2.0
%% @doc The journal of a service: what was run, found and changed, a JSON object a line, only ever added to, by as many
%% calls of `atoll scale' as there are. It can be read with any tool.
%%
%% The kinds of lines, by their key `what':
%% ```
%% begun   a call: which command, the switches, the machine
%% run     a run: level, passed, why, load, machine, node
%% limit   what a find has found: limit, low, high, limits, findings
%% change  what a comparison has said: switch, from, to, before, after, verdict, kept
%% settled what a tune has come to: the switches, and why no further
%% ended   a call has come to its end
%% '''
%% Promised: what was added is in the file when `add/2' returns, whoever is killed then, by SIGKILL too. Of a line that was cut by that
%% nothing is read; the next line begins anew.
-module(atoll_scale_journal).

-export([open/1, add/2, close/1, read/1]).

-export_type([journal/0, entry/0]).

-opaque journal() :: file:io_device().

%% With binaries for keys and texts.
-type entry() :: #{binary() => atoll_bench_json:value()}.

-define(MAX_BYTES, (1 bsl 28)).

%% @doc Opens it to add to; makes it when it is not there.
-spec open(file:filename()) -> {ok, journal()} | {error, unicode:chardata()}.
open(Name) ->
    case file:open(Name, [read, append, raw, binary]) of
        {ok, File} ->
            ok = whole_lines(File),
            {ok, File};
        {error, Reason} ->
            {error, [Name, ": ", file:format_error(Reason)]}
    end.

%% A line that was cut has no end.
whole_lines(File) ->
    case file:position(File, eof) of
        {ok, 0} -> ok;
        {ok, Size} ->
            case file:pread(File, Size - 1, 1) of
                {ok, <<"\n">>} -> ok;
                {ok, _} -> file:write(File, "\n")
            end
    end.

%% @doc Adds a line, with the time. Texts in it are binaries.
-spec add(map(), journal()) -> ok | {error, file:posix() | badarg | terminated}.
add(Entry, File) ->
    At = list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(second), [{offset, "Z"}])),
    file:write(File, [atoll_bench_json:encode(plain(Entry#{at => At})), $\n]).

%% JSON has no infinity, and null in place of none.
plain(Map) when is_map(Map) -> maps:map(fun(_, Value) -> plain(Value) end, maps:from_list([{key(Key), Value} || {Key, Value} <- maps:to_list(Map)]));
plain(List) when is_list(List) -> [plain(Is) || Is <- List];
plain(Is) when Is =:= none; Is =:= infinity; Is =:= unknown -> null;
plain(Value) -> Value.

key(Key) when is_integer(Key) -> integer_to_binary(Key);
key(Key) -> Key.

%% @doc Closes it.
-spec close(journal()) -> ok | {error, file:posix() | badarg | terminated}.
close(File) -> file:close(File).

%% @doc What stands in it, in its order, and how many lines are none.
-spec read(file:filename()) -> {ok, [entry()], Broken :: non_neg_integer()} | {error, unicode:chardata()}.
read(Name) ->
    case filelib:file_size(Name) =< ?MAX_BYTES andalso file:read_file(Name) of
        {ok, Text} ->
            Lines = [atoll_bench_json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global]), Line =/= <<>>],
            Entries = [Entry || {ok, #{<<"what">> := _} = Entry} <- Lines],
            case {Entries, Lines} of
                {[], [_ | _]} -> {error, [Name, " is no journal of atoll scale"]};
                _ -> {ok, Entries, length(Lines) - length(Entries)}
            end;
        false ->
            {error, io_lib:format("~ts is larger than ~b bytes", [Name, ?MAX_BYTES])};
        {error, Reason} ->
            {error, [Name, ": ", file:format_error(Reason)]}
    end.
