%% SPDX-License-Identifier: Apache-2.0
%% @doc A file of terms that are added one after the other, by OTP's disk_log, and read when it is opened.
%%
%% Promised: what was added before sync/1 returned is there when it is opened again, however its writer
%% ended; of a last term that was written in part nothing is read. A `ring' has so many bytes at most, and
%% loses the oldest terms. A `whole' one is as long as what was added since it was replaced. A file that is no journal is put
%% aside, by the name `FILE.unreadable', and told.
%%
%% Why no Mnesia: its schema belongs to a node of one name, and a watch takes another name each time
%% that it is started; and it would connect with the watched nodes where these run it.
-module(atoll_watch_journal).

-export([open/2, add/2, sync/1, replace/2, size/1, close/1]).

-export_type([journal/0]).

-record(journal, {log :: term(), file :: file:filename(), terms :: non_neg_integer()}).
-opaque journal() :: #journal{}.

%% Bytes of each of so many files.
-define(RING, {262144, 8}).

%% @doc Opens it, with all terms that are there, the oldest first.
-spec open(file:filename(), whole | ring) -> {ok, journal(), [term()], whole | put_aside} | {error, term()}.
open(File, Kind) ->
    case opened(File, Kind) of
        {ok, Log} ->
            Terms = terms(Log, start, []),
            {ok, #journal{log = Log, file = File, terms = length(Terms)}, Terms, whole};
        {error, _} ->
            lists:foreach(fun(Is) -> _ = file:rename(Is, Is ++ ".unreadable") end, [Is || Is <- filelib:wildcard(File ++ "*"), filename:extension(Is) =/= ".unreadable"]),
            case opened(File, Kind) of
                {ok, Log} -> {ok, #journal{log = Log, file = File, terms = 0}, [], put_aside};
                {error, Reason} -> {error, Reason}
            end
    end.

opened(File, Kind) ->
    %% What was under way when the writer was killed.
    _ = file:delete(File ++ ".new"),
    Name = {?MODULE, filename:absname(File)},
    Type = case Kind of whole -> [{type, halt}]; ring -> [{type, wrap}, {size, ?RING}] end,
    case disk_log:open([{name, Name}, {file, File}, {repair, true}, {quiet, true} | Type]) of
        {ok, Log} -> {ok, Log};
        {repaired, Log, _, _} -> {ok, Log};
        {error, Reason} -> {error, Reason}
    end.

terms(Log, From, Chunks) ->
    case disk_log:chunk(Log, From) of
        eof -> lists:append(lists:reverse(Chunks));
        {error, _} -> lists:append(lists:reverse(Chunks));
        {Next, Terms} -> terms(Log, Next, [Terms | Chunks]);
        {Next, Terms, _Bad} -> terms(Log, Next, [Terms | Chunks])
    end.

%% @doc Adds terms.
-spec add([term()], journal()) -> {ok, journal()} | {error, term()}.
add(Terms, #journal{log = Log, terms = N} = Journal) ->
    case disk_log:log_terms(Log, Terms) of
        ok -> {ok, Journal#journal{terms = N + length(Terms)}};
        {error, Reason} -> {error, Reason}
    end.

%% @doc What was added is on disk.
-spec sync(journal()) -> ok | {error, term()}.
sync(#journal{log = Log}) -> disk_log:sync(Log).

%% @doc In place of all that was added come these, at once or not at all.
-spec replace([term()], journal()) -> {ok, journal()} | {error, term()}.
replace(Terms, #journal{log = Log, file = File} = Journal) ->
    case opened(File ++ ".new", whole) of
        {ok, New} ->
            ok = disk_log:log_terms(New, Terms),
            ok = disk_log:close(New),
            ok = disk_log:close(Log),
            ok = file:rename(File ++ ".new", File),
            {ok, Again} = opened(File, whole),
            {ok, Journal#journal{log = Again, terms = length(Terms)}};
        {error, Reason} ->
            {error, Reason}
    end.

%% @doc How many terms there are, of a ring also those that it has lost.
-spec size(journal()) -> non_neg_integer().
size(#journal{terms = N}) -> N.

%% @doc Closes it.
-spec close(journal()) -> ok.
close(#journal{log = Log}) ->
    _ = disk_log:close(Log),
    ok.
