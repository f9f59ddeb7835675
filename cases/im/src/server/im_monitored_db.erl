%% SPDX-License-Identifier: Apache-2.0
%% @doc The owner of the table `monitored_processes': a row `{Pid, Type, Name}' for each client monitor and
%% chat session of this node. The supervisor writes it, and has the same itself: so whichever of the
%% two is killed has it again from the other.
-module(im_monitored_db).
-behaviour(gen_server).

-export([start_link/0, put/2, remove/1, all/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(TABLE, monitored_processes).

%% @doc Starts it under its own name, with an empty table, which the supervisor fills.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Writes one. If the table is just not there, it is written whole when it is.
-spec put(im_server_supervisor_core:key(), pid()) -> ok.
put({client, Client}, Pid) -> written({Pid, client_monitor, Client});
put({session, Session}, Pid) -> written({Pid, chat_session, Session}).

written(Row) ->
    try ets:insert(?TABLE, Row) of true -> ok
    catch error:badarg -> ok
    end.

%% @doc Removes one.
-spec remove(pid()) -> ok.
remove(Pid) ->
    try ets:delete(?TABLE, Pid) of true -> ok
    catch error:badarg -> ok
    end.

%% @doc All of them, none if the table is just not there.
-spec all() -> [{im_server_supervisor_core:key(), pid()}].
all() ->
    try ets:tab2list(?TABLE) of
        Rows -> [{case Type of client_monitor -> {client, Name}; chat_session -> {session, Name} end, Pid} || {Pid, Type, Name} <- Rows]
    catch error:badarg -> []
    end.

%% @private
-spec init([]) -> {ok, none}.
init([]) ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
    ok = im_server_supervisor:fill(),
    {ok, none}.

%% @private
-spec handle_call(term(), gen_server:from(), none) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast(term(), none) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).
