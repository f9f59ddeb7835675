%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs in the VM that keeps the state of deployments: Mnesia, on one table on disk. Another VM than the
%% master's, since a node of Mnesia has one name for ever, and a master has now this one and now that.
%%
%% One such VM at a time has a folder, by whatever name that is called and in whatever namespace: it holds a lock on a file beside it,
%% which the kernel takes away with what holds it. What was written is on the disk when write/1 returns.
-module(atoll_deploy_store_vm).

-export([start/2, all/0, write/1]).

-define(TABLE, atoll_deploy).

-record(?TABLE, {key :: term(), value :: term()}).

%% A program that has the lock for as long as its standard input is open, and says so.
-define(LOCK, "exec 9>>\"$1\" && flock -E 75 -w \"$2\" 9 && echo && exec cat").
-define(BUSY, 75).

%% @doc Opens the folder. One that another VM has is waited for so long.
-spec start(Dir :: file:filename(), Ms :: non_neg_integer()) -> ok | {error, busy | term()}.
start(Dir, Ms) ->
    Self = self(),
    Seconds = lists:flatten(io_lib:format("~.3f", [Ms / 1000])),
    %% Whoever calls from outside is there for the call only.
    Holder = spawn(fun() ->
        Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", ?LOCK, "sh", Dir ++ ".lock", Seconds]}, exit_status, use_stdio, binary]),
        receive
            {Port, {data, _}} ->
                Self ! {self(), ok},
                %% Nothing is written without it.
                receive {Port, {exit_status, _}} -> halt(1) end;
            {Port, {exit_status, ?BUSY}} -> Self ! {self(), {error, busy}};
            {Port, {exit_status, Status}} -> Self ! {self(), {error, {flock, Status}}}
        end
    end),
    receive
        {Holder, ok} -> opened(Dir);
        {Holder, {error, _} = Error} -> Error
    end.

opened(Dir) ->
    ok = filelib:ensure_path(Dir),
    %% What flags and commands have is for nobody else.
    ok = file:change_mode(Dir, 8#700),
    ok = application:load(mnesia),
    ok = application:set_env(mnesia, dir, Dir),
    Made = case mnesia:create_schema([node()]) of
        {error, {_, {already_exists, _}}} -> ok;
        Schema -> Schema
    end,
    case Made of
        ok ->
            ok = mnesia:start(),
            _ = mnesia:create_table(?TABLE, [{disc_copies, [node()]}, {attributes, record_info(fields, ?TABLE)}]),
            case mnesia:wait_for_tables([?TABLE], infinity) of
                ok -> ok;
                Error -> {error, Error}
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc All that is kept.
-spec all() -> [{Key :: term(), Value :: term()}].
all() ->
    {atomic, All} = mnesia:transaction(fun() -> mnesia:foldl(fun(#?TABLE{key = Key, value = Value}, Found) -> [{Key, Value} | Found] end, [], ?TABLE) end),
    All.

%% @doc Writes these together, and deletes those.
-spec write([{Key :: term(), {value, term()} | delete}]) -> ok.
write(Changes) ->
    {atomic, ok} = mnesia:transaction(fun() ->
        lists:foreach(
            fun
                ({Key, {value, Value}}) -> mnesia:write(#?TABLE{key = Key, value = Value});
                ({Key, delete}) -> mnesia:delete({?TABLE, Key})
            end,
            Changes
        )
    end),
    ok = mnesia:sync_log().
