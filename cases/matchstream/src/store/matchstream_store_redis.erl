%% SPDX-License-Identifier: Apache-2.0
%% @doc Matches in Redis, by the client library eredis, which Debian has as erlang-redis-client.
%%
%% A match is the key `matchstream:match:ID', its events are the list `matchstream:events:ID', and the set
%% `matchstream:matches' has all names, `matchstream:running' those of matches that have begun and not ended. An event goes to the end of the list if that has one less than its number; both is one
%% step in Redis, so it is one for all nodes. What is kept is as safe as Redis is set up to be: {@link matchstream_redis} has
%% it write to disk before it answers.
-module(matchstream_store_redis).
-behaviour(matchstream_store).

-export([open/1, create/4, append/3, read/4, matches/1, running/1, apart/1]).

-define(ANSWER_MS, 5000).
-define(AGAIN_MS, 100).
-define(CONNECTIONS, 8).

-define(CREATE,
    "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end "
    "if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[3]) then return 2 end "
    "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SADD', KEYS[2], ARGV[2]) return 1"
).
-define(APPEND,
    "if redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[1]) - 1 then return 0 end "
    "redis.call('RPUSH', KEYS[1], ARGV[2]) redis.call(ARGV[3], KEYS[2], ARGV[4]) return 1"
).

%% @private
-spec open(matchstream_store:options()) -> {ok, [pid(), ...]} | {error, term()}.
open(#{socket := Path}) ->
    opened(matchstream_switches:when_on(connections, ?CONNECTIONS, 1), Path, []).

opened(0, _, Connections) -> {ok, Connections};
opened(N, Path, Connections) ->
    Client = eredis,
    case code:ensure_loaded(Client) of
        {module, Client} ->
            try Client:start_link({local, Path}, 0, 0, "", ?AGAIN_MS, ?ANSWER_MS) of
                {ok, Pid} -> opened(N - 1, Path, [Pid | Connections]);
                {error, Why} -> gave_up(Connections, Why)
            catch
                exit:Why -> gave_up(Connections, Why)
            end;
        {error, Why} -> gave_up(Connections, {eredis, Why})
    end.

gave_up(Connections, Why) ->
    _ = [begin unlink(Pid), exit(Pid, shutdown) end || Pid <- Connections],
    {error, Why}.

%% @private
-spec create(matchstream_match:id(), matchstream_match:about(), pos_integer(), pid()) -> ok | exists | full | unavailable.
create(Id, About, Most, Connection) ->
    case ask(["EVAL", ?CREATE, "2", key(match, Id), "matchstream:matches", term_to_binary(About), Id, integer_to_list(Most)], Connection) of
        {ok, <<"1">>} -> ok;
        {ok, <<"0">>} -> exists;
        {ok, <<"2">>} -> full;
        unavailable -> unavailable
    end.

%% @private
-spec append(matchstream_match:id(), matchstream_match:event(), pid()) -> ok | taken | unavailable.
append(Id, #{seq := Seq, kind := Kind} = Event, Connection) ->
    Running = case matchstream_match:is_end(Kind) of true -> "SREM"; false -> "SADD" end,
    case ask(["EVAL", ?APPEND, "2", key(events, Id), "matchstream:running", integer_to_list(Seq), term_to_binary(Event), Running, Id], Connection) of
        {ok, <<"1">>} -> ok;
        {ok, <<"0">>} -> taken;
        unavailable -> unavailable
    end.

%% @private
-spec read(matchstream_match:id(), non_neg_integer(), matchstream_store:up_to(), pid()) -> {ok, matchstream_match:about(), [matchstream_match:event()]} | none | unavailable.
read(Id, After, UpTo, Connection) ->
    case ask(["GET", key(match, Id)], Connection) of
        {ok, undefined} -> none;
        {ok, About} ->
            Last = case UpTo of infinity -> -1; _ -> UpTo - 1 end,
            case ask(["LRANGE", key(events, Id), integer_to_list(After), integer_to_list(Last)], Connection) of
                {ok, Events} -> {ok, binary_to_term(About), [binary_to_term(Event) || Event <- Events]};
                unavailable -> unavailable
            end;
        unavailable -> unavailable
    end.

%% @private
-spec matches(pid()) -> {ok, [matchstream_match:id()]} | unavailable.
matches(Connection) -> ask(["SMEMBERS", "matchstream:matches"], Connection).

%% @private
-spec running(pid()) -> {ok, matchstream_match:id()} | none | unavailable.
running(Connection) ->
    case ask(["SORT", "matchstream:running", "ALPHA", "LIMIT", "0", "1"], Connection) of
        {ok, [Id]} -> {ok, Id};
        {ok, []} -> none;
        unavailable -> unavailable
    end.

%% @private All nodes have the one Redis.
-spec apart(pid()) -> [].
apart(_) -> [].

key(What, Id) -> ["matchstream:", atom_to_list(What), $:, Id].

%% Redis refuses while it loads its data, and the client while there is no connection.
ask(Command, Connection) ->
    Client = eredis,
    try Client:q(Connection, Command, ?ANSWER_MS) of
        {ok, _} = Answer -> Answer;
        {error, _} -> unavailable
    catch
        exit:_ -> unavailable
    end.
