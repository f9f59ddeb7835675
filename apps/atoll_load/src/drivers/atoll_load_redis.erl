%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver for Redis: Debian's, which it starts on a socket of its own in a folder that goes with it ({@link matchstream_redis}). Each write is on the disk before its answer.
-module(atoll_load_redis).
-behaviour(atoll_load_driver).

-export([operations/0, prepare/1, new/2, run/4, terminate/2]).

-define(AGAIN_MS, 100).
-define(ANSWER_MS, 5000).

-spec operations() -> [atom(), ...].
operations() -> [get, put, delete].

-spec prepare(#{atom() => term()}) -> {ok, atoll_load_driver:store()} | {error, unicode:chardata()}.
prepare(Settings) ->
    case matchstream_redis:find() of
        ok ->
            Dir = filename:join(filename:basedir(user_cache, "atoll"), lists:concat(["load-", os:getpid(), "-", erlang:unique_integer([positive])])),
            {ok, Redis} = matchstream_redis:start_link(Dir),
            Stop = fun() ->
                ok = matchstream_redis:stop(Redis),
                ok = file:del_dir_r(Dir)
            end,
            {ok, #{where => anywhere, settings => Settings#{socket => matchstream_redis:socket(Redis)}, stop => Stop}};
        {error, _} = Error -> Error
    end.

-spec new(pos_integer(), #{socket := file:filename(), _ => _}) -> {ok, pid()} | {error, term()}.
new(_, #{socket := Path}) ->
    Client = eredis,
    Client:start_link({local, Path}, 0, 0, "", ?AGAIN_MS, ?ANSWER_MS).

-spec run(get | put | delete, atoll_load_keys:generator(), atoll_load_keys:generator(), pid()) -> {ok, pid()} | {error, term(), pid()}.
run(get, Key, _, Connection) -> ask(["GET", text(Key())], Connection);
run(put, Key, Value, Connection) -> ask(["SET", text(Key()), text(Value())], Connection);
run(delete, Key, _, Connection) -> ask(["DEL", text(Key())], Connection).

text(Text) when is_binary(Text) -> Text;
text(Term) -> term_to_binary(Term).

ask(Command, Connection) ->
    Client = eredis,
    try Client:q(Connection, Command, ?ANSWER_MS) of
        {ok, _} -> {ok, Connection};
        {error, Why} -> {error, Why, Connection}
    catch
        exit:{Why, _} -> {error, Why, Connection}
    end.

-spec terminate(term(), pid()) -> ok.
terminate(_, Connection) ->
    true = unlink(Connection),
    true = exit(Connection, shutdown),
    ok.
