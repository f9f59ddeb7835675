%% SPDX-License-Identifier: Apache-2.0
%% @doc Where a node's output goes: an io server that writes to a file and
%% stops writing when the file is full. It serves as the group leader of the
%% node's control process.
%%
%% It answers every request to write with `ok', also one whose text it cannot
%% convert: what a node writes to its standard output is bytes in any encoding,
%% and the control connection must not break over it. It reads nothing.
-module(atoll_cluster_output).

-export([start_link/1]).
-export([run/2]).

-define(MAX_BYTES, 1000000).

%% @doc Starts an io server that appends to a file.
-spec start_link(file:filename()) -> {ok, pid()}.
start_link(File) ->
    proc_lib:start_link(?MODULE, run, [self(), File]).

%% @private
-spec run(pid(), file:filename()) -> no_return().
run(Parent, File) ->
    {ok, Device} = file:open(File, [append, raw]),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop(Device, ?MAX_BYTES).

loop(Device, Left) ->
    receive
        {io_request, From, As, Request} ->
            {Reply, Text} = request(Request),
            Written = write(Device, iolist_to_binary(Text), Left),
            From ! {io_reply, As, Reply},
            loop(Device, Left - Written)
    end.

request({put_chars, Encoding, Chars}) ->
    {ok, bytes(Chars, Encoding)};
request({put_chars, Encoding, M, F, A}) ->
    try
        {ok, bytes(apply(M, F, A), Encoding)}
    catch
        %% As any io server answers a format that does not fit its arguments.
        _:_ -> {{error, {M, F, A}}, []}
    end;
request({put_chars, Chars}) ->
    request({put_chars, latin1, Chars});
request({requests, Requests}) ->
    {Replies, Texts} = lists:unzip([request(R) || R <- Requests]),
    {lists:foldl(fun worst/2, ok, Replies), Texts};
request(_Other) ->
    {{error, enotsup}, []}.

worst(Reply, ok) -> Reply;
worst(_Reply, Error) -> Error.

bytes(Chars, Encoding) ->
    case unicode:characters_to_binary(Chars, Encoding, utf8) of
        Text when is_binary(Text) -> Text;
        _ when is_binary(Chars) -> Chars;
        {_, Text, _Rest} -> Text
    end.

%% The one that fills the file is the last, and says so.
write(_Device, Text, Left) when Text =:= <<>>; Left =:= 0 ->
    0;
write(Device, Text, Left) when byte_size(Text) < Left ->
    ok = file:write(Device, Text),
    byte_size(Text);
write(Device, Text, Left) ->
    ok = file:write(Device, [binary:part(Text, 0, Left), "\n(the rest is left out)\n"]),
    Left.
