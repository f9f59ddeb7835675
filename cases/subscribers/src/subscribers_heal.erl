%% SPDX-License-Identifier: Apache-2.0
%% @doc What becomes of Mnesia's table when nodes meet again that have both gone on in a partition.
%%
%% Mnesia tells of it and does nothing: each goes on with its own data, apart from the other, until one of them starts again and loads
%% the other's. With `{master, Node}' that is done: a node that meets the master after a partition stops Mnesia, loads the master's table,
%% and goes on. What was written on this side meanwhile is lost then, but not in silence: rows which the master has not, or has otherwise, are
%% counted, and kept in a file `lost-TIME' of Mnesia's folder, a list in the form of `term_to_binary/1', 10,000 of them at most. The file is
%% there before the master's table is. Meanwhile callers are told that there is no table.
%%
%% Not promised: that a row which both sides have written is the later one; nor that deletions of this side are kept in the file; nor that a
%% write with async_dirty is counted that was on its way when the partition began. Nodes that meet each other and not the master wait for it.
-module(subscribers_heal).
-behaviour(gen_server).

-export([start_link/1, status/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {
    heal :: none | {master, node()},
    %% times that a node was met after a partition; times that the master's table was taken; rows that were given up
    met = 0 :: non_neg_integer(),
    healed = 0 :: non_neg_integer(),
    lost = 0 :: non_neg_integer(),
    %% rows by their keys that were written while the master could not be reached
    written = #{} :: #{term() => tuple()},
    %% the master's table is not loaded yet, and in this file is what may be lost by it
    healing = none :: file:filename() | none
}).

-define(LOAD_MS, 60_000).
-define(AGAIN_MS, 500).
-define(KEPT, 10_000).
-define(STATUS_MS, 1000).

%% @doc Starts it under its name.
-spec start_link(none | {master, node()}) -> gen_server:start_ret().
start_link(Heal) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Heal, []).

%% @doc What was met and done; all `none' while it loads the table.
-spec status() -> #{partitions | healed | lost := non_neg_integer() | none}.
status() ->
    try
        gen_server:call(?MODULE, status, ?STATUS_MS)
    catch
        exit:_ -> #{partitions => none, healed => none, lost => none}
    end.

%% @private
-spec init(none | {master, node()}) -> {ok, #state{}}.
init(Heal) ->
    {ok, _} = mnesia:subscribe(system),
    ok = case Heal of {master, Master} when Master =/= node() -> told_of(subscribers_mnesia:tables()); _ -> ok end,
    {ok, #state{heal = Heal}}.

told_of(Tables) -> lists:foreach(fun(Table) -> {ok, _} = mnesia:subscribe({table, Table, simple}) end, Tables).

%% @private
-spec handle_call(status, gen_server:from(), #state{}) -> {reply, map(), #state{}}.
handle_call(status, _From, #state{met = Met, healed = Healed, lost = Lost} = State) ->
    {reply, #{partitions => Met, healed => Healed, lost => Lost}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Request, _State) -> error({unknown, Request}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({mnesia_table_event, Event}, State) ->
    {noreply, noted(Event, State)};
handle_info({mnesia_system_event, {mnesia_up, Master}}, #state{heal = {master, Master}, healing = none} = State) ->
    %% It was down, and there was no partition.
    {noreply, State#state{written = #{}}};
handle_info({mnesia_system_event, {inconsistent_database, Context, Node}}, #state{heal = Heal, met = Met, healing = Healing} = State) ->
    logger:warning(#{what => subscribers_partition, met => Node, context => Context, heal => Heal}),
    case Heal of
        {master, Node} when Node =/= node(), Healing =:= none ->
            File = filename:join(mnesia:system_info(directory), "lost-" ++ integer_to_list(erlang:system_time(millisecond))),
            {noreply, heals(Node, File, State#state{met = Met + 1, healing = File})};
        _ ->
            {noreply, State#state{met = Met + 1}}
    end;
handle_info({mnesia_system_event, _}, State) ->
    {noreply, State};
handle_info({again, Master}, #state{healing = File} = State) ->
    {noreply, heals(Master, File, State)}.

%% Mnesia tells of a write before its caller has an answer.
noted(Event, #state{heal = {master, Master}, written = Written} = State) ->
    case {Event, lists:member(Master, mnesia:system_info(running_db_nodes))} of
        {_, true} -> State;
        {{write, Row, _}, false} -> State#state{written = Written#{element(2, Row) => Row}};
        {{delete, {_, Key}, _}, false} -> State#state{written = maps:remove(Key, Written)};
        {_, false} -> State
    end.

%% Those that were told before Mnesia was stopped here.
all_noted(State) ->
    receive {mnesia_table_event, Event} -> all_noted(noted(Event, State)) after 0 -> State end.

%% The subscriptions end with Mnesia.
heals(Master, File, State0) ->
    Tables = subscribers_mnesia:tables(),
    ok = subscribers_mnesia:stopped(),
    #state{healed = Healed, lost = Lost, written = Written} = State = all_noted(State0),
    case keep(maps:values(Written), File) of
        ok ->
            _ = [ok = mnesia:set_master_nodes(Table, [Master]) || Table <- Tables],
            Loaded = loaded(Tables),
            _ = [ok = mnesia:set_master_nodes(Table, []) || Table <- Tables],
            case Loaded of
                ok ->
                    GivenUp = [Row || Row <- maps:values(Written), not is_there(Row, Tables)],
                    ok = keep(GivenUp, File),
                    logger:warning(#{what => subscribers_healed, master => Master, lost => length(GivenUp)}),
                    State#state{healed = Healed + 1, lost = Lost + length(GivenUp), written = #{}, healing = none};
                {error, Sentence} ->
                    not_healed(Master, Sentence, State)
            end;
        {error, Reason} ->
            %% Each side goes on as it is.
            _ = loaded(Tables),
            not_healed(Master, [File, ": ", file:format_error(Reason)], State)
    end.

loaded(Tables) ->
    ok = mnesia:start(),
    {ok, _} = mnesia:subscribe(system),
    case subscribers_mnesia:ready(?LOAD_MS) of
        ok -> told_of(Tables);
        {error, _} = Error -> Error
    end.

not_healed(Master, Sentence, State) ->
    logger:error(#{what => subscribers_not_healed, master => Master, why => unicode:characters_to_binary(Sentence)}),
    _ = erlang:send_after(?AGAIN_MS, self(), {again, Master}),
    State.

is_there(Row, Tables) -> lists:any(fun(Table) -> ets:lookup(Table, element(2, Row)) =:= [Row] end, Tables).

keep([], File) ->
    case file:delete(File) of
        {error, enoent} -> ok;
        Deleted -> Deleted
    end;
keep(Rows, File) -> file:write_file(File, term_to_binary(lists:sublist(Rows, ?KEPT))).
