%% SPDX-License-Identifier: Apache-2.0
%% @doc What becomes of Mnesia's table when nodes meet again that have both gone on in a partition.
%%
%% Mnesia tells of it and does nothing: each goes on with its own data, apart from the other, until one of them starts again and loads
%% the other's. With `{master, Node}' that is done: a node that meets the master after a partition stops Mnesia, loads the master's table,
%% and goes on. What was written here meanwhile is lost then, but not in silence: rows that the master has not, or has otherwise, are
%% counted, and kept in a file `lost-TIME' of Mnesia's folder, a list in the form of `term_to_binary/1', 10,000 of them at most. Meanwhile
%% callers are told that there is no table.
%%
%% Not promised: that a row which both sides have written is the later one; nor that deletions of this side are kept in the file. Nodes that meet each
%% other and not the master wait for it.
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
    %% what was here before, while the master's table is not loaded yet
    own = none :: [tuple()] | none
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
    {ok, #state{heal = Heal}}.

%% @private
-spec handle_call(status, gen_server:from(), #state{}) -> {reply, map(), #state{}}.
handle_call(status, _From, #state{met = Met, healed = Healed, lost = Lost} = State) ->
    {reply, #{partitions => Met, healed => Healed, lost => Lost}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Request, _State) -> error({unknown, Request}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({mnesia_system_event, {inconsistent_database, Context, Node}}, #state{heal = Heal, met = Met, own = Own} = State) ->
    logger:warning(#{what => subscribers_partition, met => Node, context => Context, heal => Heal}),
    case Heal of
        {master, Node} when Node =/= node(), Own =:= none ->
            {noreply, heals(Node, State#state{met = Met + 1, own = rows(subscribers_mnesia:tables())})};
        _ ->
            {noreply, State#state{met = Met + 1}}
    end;
handle_info({mnesia_system_event, _}, State) ->
    {noreply, State};
handle_info({again, Master}, State) ->
    {noreply, heals(Master, State)}.

%% The subscription ends with Mnesia.
heals(Master, #state{healed = Healed, lost = Lost, own = Own} = State) ->
    Tables = subscribers_mnesia:tables(),
    ok = subscribers_mnesia:stopped(),
    _ = [ok = mnesia:set_master_nodes(Table, [Master]) || Table <- Tables],
    ok = mnesia:start(),
    Loaded = subscribers_mnesia:ready(?LOAD_MS),
    _ = [ok = mnesia:set_master_nodes(Table, []) || Table <- Tables],
    {ok, _} = mnesia:subscribe(system),
    case Loaded of
        ok ->
            GivenUp = others(Own),
            ok = keep(GivenUp),
            logger:warning(#{what => subscribers_healed, master => Master, lost => length(GivenUp)}),
            State#state{healed = Healed + 1, lost = Lost + length(GivenUp), own = none};
        {error, Sentence} ->
            logger:error(#{what => subscribers_not_healed, master => Master, why => Sentence}),
            _ = erlang:send_after(?AGAIN_MS, self(), {again, Master}),
            State
    end.

rows(Tables) -> lists:append([ets:tab2list(Table) || Table <- Tables]).

others(Rows) ->
    New = maps:from_list([{element(2, Row), Row} || Row <- rows(subscribers_mnesia:tables())]),
    [Row || Row <- Rows, maps:get(element(2, Row), New, none) =/= Row].

keep([]) -> ok;
keep(Rows) ->
    Name = filename:join(mnesia:system_info(directory), "lost-" ++ integer_to_list(erlang:system_time(millisecond))),
    file:write_file(Name, term_to_binary(lists:sublist(Rows, ?KEPT))).
