%% SPDX-License-Identifier: Apache-2.0
%% @doc The state of all deployments of a user, in a folder that nobody else may enter, if it is made here: things, nodes, how many nodes a
%% family shall have. It is kept by a VM of its own ({@link atoll_deploy_store_vm}), which ends with the process that opened
%% the store, and outlives a master that is killed by nothing but the write that it was told.
-module(atoll_deploy_store).

-export([open/2, close/1, all/1, write/2, id/1]).
-export([things/2, thing/3, rows/1, count/2]).

-export_type([store/0, change/0]).

-type store() :: #{peer := pid(), dir := file:filename()}.

-type change() :: {key(), {value, term()} | delete}.

-type key() :: id | {atoll_deploy_thing:kind() | row | count | sweep | machine, Name :: string()}.
%% `sweep' has the hosts of a family on which nodes were stopped, until nothing is left there.

-define(CALL_MS, 30000).

%% @doc Opens the state in a folder, which is made if there is none. One that another program works with is waited for so
%% long. The calling process is linked with what keeps it.
-spec open(Dir :: file:filename(), WaitMs :: non_neg_integer()) -> {ok, store()} | {error, unicode:chardata()}.
open(Dir, WaitMs) ->
    case made(Dir) of
        ok -> started(Dir, WaitMs);
        {error, Reason} -> {error, ["The folder ", Dir, " cannot be used: ", file:format_error(Reason), $.]}
    end.

%% One that is there already is somebody's, who has said who may enter it.
made(Dir) ->
    case filelib:is_dir(Dir) of
        true -> ok;
        false ->
            case filelib:ensure_path(Dir) of
                ok -> file:change_mode(Dir, 8#700);
                {error, _} = Error -> Error
            end
    end.

started(Dir, WaitMs) ->
    Paths = [filename:dirname(code:which(?MODULE))],
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["+S", "1:1", "-pa" | Paths]}),
    case peer:call(Peer, atoll_deploy_store_vm, start, [filename:join(Dir, "state"), WaitMs], WaitMs + ?CALL_MS) of
        ok ->
            Store = #{peer => Peer, dir => Dir},
            _ = [write(Store, [{id, {value, string:lowercase(binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(8))))}}]) || not lists:keymember(id, 1, all(Store))],
            {ok, Store};
        {error, busy} ->
            ok = peer:stop(Peer),
            {error, ["Another program works with the deployments in ", Dir, "."]};
        {error, Reason} ->
            ok = peer:stop(Peer),
            {error, io_lib:format("The state in ~ts cannot be opened: ~0tP.", [Dir, Reason, 12])}
    end.

%% @doc Closes it.
-spec close(store()) -> ok.
close(#{peer := Peer}) -> peer:stop(Peer).

%% @doc All that is kept.
-spec all(store()) -> [{key(), term()}].
all(#{peer := Peer}) -> peer:call(Peer, atoll_deploy_store_vm, all, [], ?CALL_MS).

%% @doc Writes some together; they are on the disk when it returns.
-spec write(store(), [change()]) -> ok.
write(_, []) -> ok;
write(#{peer := Peer}, Changes) -> peer:call(Peer, atoll_deploy_store_vm, write, [Changes], ?CALL_MS).

%% @doc What tells the nodes of this state from those of others.
-spec id(store()) -> string().
id(Store) ->
    {id, Id} = lists:keyfind(id, 1, all(Store)),
    Id.

%% @doc All things of a kind, by name.
-spec things(store(), atoll_deploy_thing:kind()) -> [atoll_deploy_thing:thing()].
things(Store, Kind) -> [Thing || {_, Thing} <- lists:sort([{Name, Thing} || {{Is, Name}, Thing} <- all(Store), Is =:= Kind])].

%% @doc A thing.
-spec thing(store(), atoll_deploy_thing:kind(), Name :: string()) -> {ok, atoll_deploy_thing:thing()} | {error, unicode:chardata()}.
thing(Store, Kind, Name) ->
    case [Thing || #{name := Is} = Thing <- things(Store, Kind), Is =:= Name] of
        [Thing] -> {ok, Thing};
        [] -> {error, io_lib:format("There is no ~ts ~ts.", [Kind, Name])}
    end.

%% @doc All nodes, by family and number.
-spec rows(store()) -> [atoll_deploy_plan:row()].
rows(Store) -> [Row || {_, Row} <- lists:sort([{{Family, Number}, Row} || {{row, _}, #{family := Family, number := Number} = Row} <- all(Store)])].

%% @doc How many nodes a family shall have.
-spec count(store(), Family :: string()) -> {ok, non_neg_integer()} | none.
count(Store, Family) ->
    case lists:keyfind({count, Family}, 1, all(Store)) of
        {_, Count} -> {ok, Count};
        false -> none
    end.
