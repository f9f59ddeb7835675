%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs in the VM that keeps the state of deployments: Mnesia, on one table on disk. Another VM than the
%% master's, since a node of Mnesia has one name for ever, and a master has now this one and now that.
%%
%% One such VM at a time has a folder: it listens on a socket whose name says which, and the kernel takes that away with
%% the VM, in whatever way it ends. What was written is on the disk when write/1 returns.
-module(atoll_deploy_store_vm).

-export([start/2, all/0, write/1]).

-define(TABLE, atoll_deploy).

-record(?TABLE, {key :: term(), value :: term()}).

%% @doc Opens the folder. One that another VM has is waited for so long.
-spec start(Dir :: file:filename(), Ms :: non_neg_integer()) -> ok | {error, busy | term()}.
start(Dir, Ms) ->
    Self = self(),
    %% Whoever calls from outside is there for the call only.
    Holder = spawn(fun() ->
        Taken = taken(Dir, erlang:monotonic_time(millisecond) + Ms),
        Self ! {self(), Taken},
        hold(Taken)
    end),
    receive
        {Holder, {ok, _}} -> opened(Dir);
        {Holder, {error, _} = Error} -> Error
    end.

hold({ok, Socket}) ->
    receive {'EXIT', Socket, _} -> ok end;
hold(_) ->
    ok.

taken(Dir, Until) ->
    <<Name:16/binary, _/binary>> = binary:encode_hex(crypto:hash(sha256, unicode:characters_to_binary(filename:absname(Dir)))),
    Address = {local, <<0, "atoll-deploy-", Name/binary>>},
    case gen_tcp:listen(0, [{ifaddr, Address}]) of
        {ok, Socket} -> {ok, Socket};
        {error, eaddrinuse} -> after_other(Address, Dir, Until);
        {error, _} = Error -> Error
    end.

after_other(Address, Dir, Until) ->
    case max(0, Until - erlang:monotonic_time(millisecond)) of
        0 -> {error, busy};
        Left ->
            %% It says nothing: the connection ends with it.
            _ = case gen_tcp:connect(Address, 0, [{active, false}], Left) of
                {ok, Socket} -> gen_tcp:recv(Socket, 0, Left);
                {error, _} -> ok
            end,
            taken(Dir, Until)
    end.

opened(Dir) ->
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
