%% SPDX-License-Identifier: Apache-2.0
%% @doc Subscribers in Mnesia: copies on disc and in memory, on this node or on several.
%%
%% The first of all nodes with a copy, by name, makes the table; the others wait for it and take a copy. A node
%% that starts again loads its copy.
%%
%% Promised: what {@link put/2} has answered with `ok' is in the table of all nodes that are connected with this one, with
%% `access' transaction, sync_transaction or sync_dirty; with async_dirty it is on its way to them. It is on the disc of each
%% within `dump_log_time_threshold', 3 minutes, at the latest: Mnesia does not wait for the disc.
%%
%% Not promised: anything about a partition. Both sides go on, unless there is a `majority'; when they meet, Mnesia merges nothing.
%% See {@link subscribers_heal}.
-module(subscribers_mnesia).
-behaviour(subscribers_store).

-export([start/1, children/1, put/2, get/2, delete/2, count/1, status/1, stop/1]).
-export([nodes/1, tables/0, ready/1, stopped/0]).

-compile({no_auto_import, [nodes/1, put/2, get/2]}).

-record(subscriber, {msisdn, imsi, imei, device, settings, updated}).

-define(TABLE, subscriber).
-define(FOUNDER_MS, 30_000).
-define(LOAD_MS, 60_000).
-define(LOOK_MS, 50).

-spec start(subscribers_options:options()) -> ok | {error, unicode:chardata()}.
start(#{dir := Dir, dump_writes := Writes} = Options) ->
    case nodes(Options) of
        {ok, [Founder | _] = Nodes} ->
            case lists:member(node(), Nodes) of
                true ->
                    ok = settings(Dir, Writes),
                    founded(Founder, Nodes, Options);
                false ->
                    {error, io_lib:format("~ts is none of the nodes with a copy: ~0tp.", [node(), Nodes])}
            end;
        {error, _} = Error ->
            Error
    end.

settings(Dir, Writes) ->
    _ = application:load(mnesia),
    ok = filelib:ensure_path(Dir),
    _ = [ok = application:set_env(mnesia, Key, Value) || {Key, Value} <- [{dir, Dir}, {dump_log_write_threshold, Writes}]],
    ok.

%% @doc All nodes with a copy, in order.
-spec nodes(subscribers_options:options()) -> {ok, [node(), ...]} | {error, unicode:chardata()}.
nodes(#{copies := {s_group, Group}}) ->
    case lists:sort(s_group:own_nodes(Group)) of
        [] -> {error, io_lib:format("~ts is in no s_group ~ts.", [node(), Group])};
        Nodes -> {ok, Nodes}
    end;
nodes(#{copies := Nodes}) ->
    {ok, lists:sort(Nodes)}.

founded(Founder, Nodes, Options) ->
    case mnesia:system_info(use_dir) of
        %% There is a schema: a node that was here before.
        true -> started(Options);
        false when Founder =:= node() -> founds(Options);
        false -> joins(Founder, Nodes, erlang:monotonic_time(millisecond) + ?FOUNDER_MS, Options)
    end.

founds(Options) ->
    case mnesia:create_schema([node()]) of
        ok -> started(Options);
        {error, Reason} -> {error, io_lib:format("Mnesia's schema cannot be made: ~0tp.", [Reason])}
    end.

started(Options) ->
    case mnesia:start() of
        ok -> made(Options);
        {error, Reason} -> {error, io_lib:format("Mnesia does not start: ~0tp.", [Reason])}
    end.

made(Options) ->
    case lists:member(?TABLE, mnesia:system_info(tables)) orelse mnesia:create_table(?TABLE, definition(Options)) of
        true -> ready(?LOAD_MS);
        {atomic, ok} -> ready(?LOAD_MS);
        {aborted, {already_exists, ?TABLE}} -> ready(?LOAD_MS);
        {aborted, Reason} -> {error, io_lib:format("The table cannot be made: ~0tp.", [Reason])}
    end.

definition(#{majority := Majority, fragments := Fragments}) ->
    [{attributes, record_info(fields, ?TABLE)}, {majority, Majority}] ++
        case Fragments of
            1 -> [{disc_copies, [node()]}];
            N -> [{frag_properties, [{n_fragments, N}, {n_disc_copies, 1}, {node_pool, [node()]}]}]
        end.

%% Nobody tells when the first node has its table.
joins(Founder, Nodes, Deadline, Options) ->
    ok = case mnesia:system_info(is_running) of yes -> ok; _ -> mnesia:start() end,
    case mnesia:change_config(extra_db_nodes, [Founder]) of
        {ok, [_ | _]} ->
            case lists:member(?TABLE, mnesia:system_info(tables)) of
                true -> takes_copies(Options);
                false -> waits(Founder, Nodes, Deadline, Options)
            end;
        _ ->
            waits(Founder, Nodes, Deadline, Options)
    end.

waits(Founder, Nodes, Deadline, Options) ->
    case erlang:monotonic_time(millisecond) >= Deadline of
        true ->
            {error, io_lib:format("~ts has not made its table within ~b s.", [Founder, ?FOUNDER_MS div 1000])};
        false ->
            receive after ?LOOK_MS -> ok end,
            joins(Founder, Nodes, Deadline, Options)
    end.

takes_copies(_Options) ->
    Steps = [
        fun() -> mnesia:change_table_copy_type(schema, node(), disc_copies) end
        | [fun() -> mnesia:add_table_copy(Table, node(), disc_copies) end || Table <- tables()]
    ],
    case [Reason || Step <- Steps, {aborted, Reason} <- [Step()], not is_there(Reason)] of
        [] -> ready(?LOAD_MS);
        [Reason | _] -> {error, io_lib:format("This node cannot have a copy: ~0tp.", [Reason])}
    end.

is_there({already_exists, _, _}) -> true;
is_there({already_exists, _, _, _}) -> true;
is_there(_) -> false.

%% @doc The table, or its fragments.
-spec tables() -> [atom()].
tables() -> mnesia:activity(sync_dirty, fun() -> mnesia:table_info(?TABLE, frag_names) end, [], mnesia_frag).

%% @doc Waits until the table is loaded.
-spec ready(Ms :: pos_integer()) -> ok | {error, unicode:chardata()}.
ready(Ms) ->
    case mnesia:wait_for_tables([?TABLE], Ms) of
        ok ->
            case mnesia:wait_for_tables(tables(), Ms) of
                ok -> ok;
                Other -> not_loaded(Other)
            end;
        Other ->
            not_loaded(Other)
    end.

not_loaded(Why) -> {error, io_lib:format("The table is not loaded: ~0tp.", [Why])}.

-spec children(subscribers_options:options()) -> [supervisor:child_spec()].
children(#{heal := Heal}) -> [#{id => subscribers_heal, start => {subscribers_heal, start_link, [Heal]}}].

-spec put(subscribers:subscriber(), subscribers_options:options()) -> ok | {error, subscribers:error()}.
put(Subscriber, Options) ->
    Row = list_to_tuple([?TABLE | [map_get(Key, Subscriber) || Key <- subscribers_record:keys()]]),
    done(does(fun() -> mnesia:write(?TABLE, Row, write) end, Options)).

-spec get(subscribers:msisdn(), subscribers_options:options()) -> {ok, subscribers:subscriber()} | not_found | {error, subscribers:error()}.
get(Msisdn, Options) ->
    case does(fun() -> mnesia:read(?TABLE, Msisdn, read) end, Options) of
        {done, [Row]} -> {ok, maps:from_list(lists:zip(subscribers_record:keys(), tl(tuple_to_list(Row))))};
        {done, []} -> not_found;
        {error, _} = Error -> Error
    end.

-spec delete(subscribers:msisdn(), subscribers_options:options()) -> ok | {error, subscribers:error()}.
delete(Msisdn, Options) -> done(does(fun() -> mnesia:delete(?TABLE, Msisdn, write) end, Options)).

%% Nothing is locked for it.
-spec count(subscribers_options:options()) -> {ok, non_neg_integer()} | {error, subscribers:error()}.
count(#{fragments := Fragments}) ->
    case does(fun() -> mnesia:table_info(?TABLE, size) end, #{access => async_dirty, fragments => Fragments}) of
        {done, N} -> {ok, N};
        {error, _} = Error -> Error
    end.

done({done, ok}) -> ok;
done({error, _} = Error) -> Error.

does(Fun, #{access := Access, fragments := Fragments}) ->
    Module = case Fragments of 1 -> mnesia; _ -> mnesia_frag end,
    try
        {done, mnesia:activity(Access, Fun, [], Module)}
    catch
        exit:{aborted, Reason} -> {error, meant(Reason)};
        exit:Reason -> {error, meant(Reason)}
    end.

meant({no_majority, _}) -> no_majority;
meant({no_exists, _}) -> no_table;
meant({no_exists, _, _}) -> no_table;
meant({node_not_running, _}) -> no_table;
meant(Reason) -> {database, unicode:characters_to_binary(io_lib:format("~0tp", [Reason]))}.

-spec status(subscribers_options:options()) -> #{atom() => term()}.
status(#{access := Access, fragments := Fragments} = Options) ->
    maps:merge(
        #{
            access => Access,
            fragments => Fragments,
            rows => case count(Options) of {ok, N} -> N; {error, _} -> none end,
            running => case mnesia:system_info(is_running) of yes -> lists:sort(mnesia:system_info(running_db_nodes)); _ -> [] end
        },
        subscribers_heal:status()
    ).

%% It was started for this service.
-spec stop(subscribers_options:options()) -> ok.
stop(_) -> stopped().

%% @doc Stops Mnesia here.
-spec stopped() -> ok.
stopped() ->
    stopped = mnesia:stop(),
    ok.
