%% SPDX-License-Identifier: Apache-2.0
%% @doc Matches in Mnesia, with a copy of all on each node, in memory or with a folder on disk too.
%%
%% Promised: an event that was taken is on every node that is up. With a folder it is on the disk of the node that took it
%% before it is answered. While half of the nodes or fewer are there nothing is taken, so no side of a partition gives a number that
%% the other side gives, too.
%%
%% A node that was cut off with half of the nodes or fewer stays apart when it meets the others again, until it is started again: Mnesia does
%% not bring their tables together. It says so.
%%
%% Each node has a folder of its name in the folder. Not promised: to begin anew with it when the nodes have other names. Of several nodes the first one makes the
%% tables, and the others wait for it.
-module(matchstream_store_mnesia).
-behaviour(matchstream_store).

-export([open/1, create/4, append/3, read/4, matches/1, running/1, apart/1]).

-define(MATCHES, matchstream_match).
-define(EVENTS, matchstream_event).
-define(TABLES_MS, 5000).
-define(ASK_MS, 2000).

%% @private
-spec open(matchstream_store:options()) -> {ok, [mnesia, ...]} | {error, term()}.
open(#{nodes := [First | _] = Nodes} = Options) ->
    {Schema, Kind} = case Options of #{dir := _} -> {opt_disc, disc_copies}; #{} -> {ram, ram_copies} end,
    %% A schema that is on disk already stays there.
    _ = application:set_env(mnesia, schema_location, Schema),
    case started(Options) of
        ok ->
            %% Nodes that have no tables yet and find each other could not be made one afterwards.
            With = [Node || Node <- Nodes, Node =/= node(), has_tables(Node)],
            {ok, _} = mnesia:change_config(extra_db_nodes, With -- mnesia:system_info(running_db_nodes)),
            case {lists:member(?EVENTS, mnesia:system_info(tables)), node()} of
                {true, _} -> tables(Kind);
                {false, First} when With =:= [] -> made(Kind);
                {false, _} -> {error, no_tables}
            end;
        {error, _} = Error -> Error
    end.

started(#{dir := Dir}) ->
    Own = filename:join(Dir, atom_to_list(node())),
    case filelib:ensure_path(Own) of
        ok ->
            ok = application:set_env(mnesia, dir, Own),
            mnesia:start();
        {error, _} = Error -> Error
    end;
started(#{}) -> mnesia:start().

%% One that cannot be asked has none now, and is found later.
has_tables(Node) ->
    try lists:member(?EVENTS, erpc:call(Node, mnesia, system_info, [tables], ?ASK_MS))
    catch
        error:{erpc, _} -> false;
        error:{exception, _, _} -> false;
        exit:{exception, _} -> false
    end.

made(Kind) ->
    case on_disk(Kind) of
        ok ->
            Of = fun(Table, Type, Fields) -> {Table, [{type, Type}, {attributes, Fields}, {Kind, [node()]}, {majority, true}]} end,
            Made = [mnesia:create_table(Table, Options) || {Table, Options} <- [Of(?MATCHES, set, [id, about]), Of(?EVENTS, ordered_set, [number, event])]],
            case [Why || {aborted, Why} <- Made] of
                [] -> tables(Kind);
                [Why | _] -> {error, Why}
            end;
        {error, _} = Error -> Error
    end.

tables(Kind) ->
    case on_disk(Kind) of
        ok ->
            Copied = [mnesia:add_table_copy(Table, node(), Kind) || Table <- [?MATCHES, ?EVENTS], mnesia:table_info(Table, storage_type) =:= unknown],
            case {[Why || {aborted, Why} <- Copied], mnesia:wait_for_tables([?MATCHES, ?EVENTS], ?TABLES_MS)} of
                {[], ok} -> {ok, [mnesia]};
                {[], Late} -> {error, Late};
                {[Why | _], _} -> {error, Why}
            end;
        {error, _} = Error -> Error
    end.

on_disk(ram_copies) -> ok;
on_disk(disc_copies) ->
    case mnesia:table_info(schema, storage_type) of
        disc_copies -> ok;
        ram_copies ->
            case mnesia:change_table_copy_type(schema, node(), disc_copies) of
                {atomic, ok} -> ok;
                {aborted, Why} -> {error, Why}
            end
    end.

%% @private
-spec create(matchstream_match:id(), matchstream_match:about(), pos_integer(), mnesia) -> ok | exists | full | unavailable.
create(Id, About, Most, mnesia) ->
    case once({?MATCHES, Id, About}, Most) of
        there -> exists;
        Other -> Other
    end.

%% @private
-spec append(matchstream_match:id(), matchstream_match:event(), mnesia) -> ok | taken | unavailable.
append(Id, #{seq := Seq} = Event, mnesia) ->
    case once({?EVENTS, {Id, Seq}, Event}, infinity) of
        ok -> ok;
        there -> taken;
        _ -> unavailable
    end.

%% Those that are written at the same moment do not see each other: there may be some more than the most.
-spec once(tuple(), Most :: pos_integer() | infinity) -> ok | there | full | unavailable.
once(Row, Most) ->
    Table = element(1, Row),
    Fun = fun() ->
        case mnesia:read(Table, element(2, Row), write) of
            [] -> case mnesia:table_info(Table, size) < Most of true -> mnesia:write(Row); false -> full end;
            [_] -> there
        end
    end,
    case mnesia:sync_transaction(Fun) of
        {atomic, ok} ->
            %% A transaction writes to a file; this has the system bring it to the disk.
            _ = [mnesia:sync_log() || mnesia:system_info(use_dir)],
            ok;
        {atomic, Kept} -> Kept;
        {aborted, _} -> unavailable
    end.

%% @private
-spec read(matchstream_match:id(), non_neg_integer(), matchstream_store:up_to(), mnesia) -> {ok, matchstream_match:about(), [matchstream_match:event()]} | none | unavailable.
read(Id, After, UpTo, mnesia) ->
    try mnesia:dirty_read(?MATCHES, Id) of
        [{_, _, About}] -> {ok, About, events(Id, After, UpTo)};
        [] -> none
    catch
        exit:{aborted, _} -> unavailable
    end.

%% Of a part each is looked up: others are not gone through.
events(Id, After, infinity) -> mnesia:dirty_select(?EVENTS, [{{?EVENTS, {Id, '$1'}, '$2'}, [{'>', '$1', After}], ['$2']}]);
events(Id, After, UpTo) -> [Event || Seq <- lists:seq(After + 1, UpTo), {_, _, Event} <- mnesia:dirty_read(?EVENTS, {Id, Seq})].

%% @private
-spec matches(mnesia) -> {ok, [matchstream_match:id()]} | unavailable.
matches(mnesia) ->
    try {ok, mnesia:dirty_all_keys(?MATCHES)}
    catch exit:{aborted, _} -> unavailable
    end.

%% @private
-spec running(mnesia) -> {ok, matchstream_match:id()} | none | unavailable.
running(mnesia) ->
    try lists:search(fun is_running/1, lists:sort(mnesia:dirty_all_keys(?MATCHES))) of
        {value, Id} -> {ok, Id};
        false -> none
    catch exit:{aborted, _} -> unavailable
    end.

%% Its last event stands before all that are greater than numbers, and the first one is a start, or the end.
is_running(Id) ->
    case mnesia:dirty_prev(?EVENTS, {Id, none}) of
        {Id, _} = Last -> lists:all(fun({_, _, #{kind := Kind}}) -> not matchstream_match:is_end(Kind) end, mnesia:dirty_read(?EVENTS, Last));
        _ -> false
    end.

%% @private
-spec apart(mnesia) -> [node()].
apart(mnesia) ->
    Known = mnesia:system_info(db_nodes),
    Running = mnesia:system_info(running_db_nodes),
    case 2 * length(Running) > length(Known) of
        true -> [];
        false -> [Node || Node <- Known -- Running, lists:member(Node, nodes()), has_tables(Node)]
    end.
