%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver for a table of Mnesia in memory, on this node. `{mnesia_access, Access}' says how: `transaction' unless told.
-module(atoll_load_mnesia).
-behaviour(atoll_load_driver).

-export([operations/0, rules/0, prepare/1, new/2, run/4]).
-export([of_its_end/2]).

-define(READY_MS, 10_000).

-spec operations() -> [atom(), ...].
operations() -> [get, put, delete].

-spec rules() -> [atoll_bench_config:rule()].
rules() ->
    Words = [transaction, sync_transaction, async_dirty, sync_dirty],
    [{mnesia_access, transaction, atoll_bench_config:kept(fun(Word) -> lists:member(Word, Words) end), "transaction, sync_transaction, async_dirty or sync_dirty"}].

-spec prepare(#{atom() => term()}) -> {ok, atoll_load_driver:store()} | {error, unicode:chardata()}.
prepare(Settings) ->
    case application:ensure_all_started(mnesia) of
        {ok, _} ->
            case mnesia:create_table(?MODULE, [{ram_copies, [node()]}, {attributes, [key, value]}]) of
                {atomic, ok} ->
                    ok = mnesia:wait_for_tables([?MODULE], ?READY_MS),
                    {ok, #{where => here, settings => Settings, stop => fun stop/0}};
                {aborted, Why} -> {error, io_lib:format("Mnesia makes no table: ~0tP", [Why, 9])}
            end;
        {error, Why} -> {error, io_lib:format("Mnesia does not start: ~0tP", [Why, 9])}
    end.

%% That it has ended is no news: it was to, and somebody's progress may stand where OTP tells of it.
stop() ->
    {atomic, ok} = mnesia:delete_table(?MODULE),
    ok = logger:add_primary_filter(?MODULE, {fun ?MODULE:of_its_end/2, []}),
    try
        application:stop(mnesia)
    after
        logger:remove_primary_filter(?MODULE)
    end.

%% @private
-spec of_its_end(logger:log_event(), []) -> stop | ignore.
of_its_end(#{msg := {report, #{label := {application_controller, exit}, report := [{application, mnesia}, {exited, stopped} | _]}}}, []) -> stop;
of_its_end(_, []) -> ignore.

-spec new(pos_integer(), #{mnesia_access := atom(), _ => _}) -> {ok, atom()}.
new(_, #{mnesia_access := Access}) -> {ok, Access}.

-spec run(get | put | delete, atoll_load_keys:generator(), atoll_load_keys:generator(), atom()) -> {ok, atom()} | {error, term(), atom()}.
run(get, Key, _, Access) -> done(fun() -> mnesia:read(?MODULE, Key()) end, Access);
run(put, Key, Value, Access) -> done(fun() -> mnesia:write({?MODULE, Key(), Value()}) end, Access);
run(delete, Key, _, Access) -> done(fun() -> mnesia:delete({?MODULE, Key()}) end, Access).

done(Fun, Access) ->
    try
        _ = mnesia:activity(Access, Fun),
        {ok, Access}
    catch
        exit:{aborted, Why} -> {error, Why, Access}
    end.
