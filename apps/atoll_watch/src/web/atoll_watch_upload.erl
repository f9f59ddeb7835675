%% SPDX-License-Identifier: Apache-2.0
%% @doc The archive of a release that is sent to a watch: one at a time, to a file and never to memory, with a bound. It is kept
%% under its checksum, which a release is then registered by; what has another one, or leads out of its folder, is not kept.
-module(atoll_watch_upload).

-export([taken/3, ended/1, keep/2]).

-type recv() :: fun((Bytes :: pos_integer()) -> {ok, binary()} | {error, term()}).

-define(PIECE, 65536).

%% @doc Takes so many bytes to a file, once Begin has been called. The calling process is the one that has the upload, until ended/1.
-spec taken(Bytes :: pos_integer(), Begin :: fun(() -> ok), recv()) -> {ok, {file, file:filename()}} | {refused, 400..599, unicode:chardata()} | closed.
taken(Bytes, Begin, Recv) ->
    try register(?MODULE, self()) of
        true ->
            ok = Begin(),
            case taken_to(atoll_deploy_release:new(dir()), Bytes, Recv) of
                {ok, _} = Taken -> Taken;
                Refused -> true = unregister(?MODULE), Refused
            end
    catch
        error:badarg -> {refused, 409, "Another archive is being sent: send this one when that has come."}
    end.

dir() -> filename:join(atoll_deploy_server:dir(), "releases").

taken_to({error, Sentence}, _, _) ->
    {refused, 507, Sentence};
taken_to({ok, File}, Bytes, Recv) ->
    {ok, Opened} = file:open(File, [write, raw, binary]),
    Written = written(Opened, Bytes, Recv),
    ok = file:close(Opened),
    case Written of
        ok -> {ok, {file, File}};
        _ -> _ = file:delete(File), Written
    end.

written(_, 0, _) ->
    ok;
written(Opened, Left, Recv) ->
    case Recv(min(?PIECE, Left)) of
        {ok, Piece} ->
            case file:write(Opened, Piece) of
                ok -> written(Opened, Left - byte_size(Piece), Recv);
                {error, Reason} -> {refused, 507, ["The archive cannot be written: ", file:format_error(Reason), $.]}
            end;
        {error, timeout} -> {refused, 408, "The body did not come in time."};
        {error, _} -> closed
    end.

%% @doc Nothing is left of a body that was taken.
-spec ended(binary() | {file, file:filename()}) -> ok.
ended({file, File}) ->
    _ = file:delete(File),
    true = unregister(?MODULE),
    ok;
ended(_) ->
    ok.

%% @doc Keeps what was taken, if it has this checksum.
-spec keep(Sum :: binary(), file:filename()) -> {ok, Bytes :: non_neg_integer()} | {error, unicode:chardata()}.
keep(Sum, File) ->
    case atoll_deploy_release:keep(#{name => "that was sent", path => File, sha256 => unicode:characters_to_list(Sum)}, dir()) of
        {ok, _} -> {ok, filelib:file_size(File)};
        {error, Sentence} -> {error, atoll_deploy_register:sentence(string:replace(Sentence, File, "it", all))}
    end.
