%% SPDX-License-Identifier: Apache-2.0
%% @doc From the process of a match to the connections of its node. There is one outlet of a match, or with the switch `repeaters' sixteen, each
%% with its part of the connections. With the switch `groups' it sends to a group of pg; without, it is a manager of gen_event
%% with a handler for each connection, which is supervised, or with the switch `monitors' watches the connection.
%%
%% A connection joins first and looks then how the match stands: what comes in between has a number that the status has.
-module(matchstream_outlet).
-behaviour(gen_event).

-export([start_link/1, publish/3, join/2, is_empty/1]).
-export([init/1, handle_event/2, handle_call/2, handle_info/2]).

-export_type([outlets/0, told/0]).

-type outlets() :: {groups | handlers, tuple()}.
%% The processes.

-type told() :: {matchstream, Seq :: pos_integer(), matchstream_match:event() | binary(), IsLast :: boolean()}.
%% What a connection gets.

-define(REPEATERS, 16).

%% @doc Starts the outlets of a match, which end with the caller, unless that ends with `normal'.
-spec start_link(matchstream_match:id()) -> outlets().
start_link(Id) ->
    Numbers = lists:seq(1, matchstream_switches:when_on(repeaters, ?REPEATERS, 1)),
    case matchstream_switches:is_on(groups) of
        true -> {groups, list_to_tuple([{Id, N, proc_lib:spawn_link(fun() -> repeat({Id, N}) end)} || N <- Numbers])};
        false ->
            {handlers, list_to_tuple([begin {ok, Manager} = gen_event:start_link(), Manager end || _ <- Numbers])}
    end.

repeat(Group) ->
    receive
        {publish, Told} ->
            _ = [Pid ! Told || Pid <- pg:get_local_members(matchstream_pg, Group)],
            repeat(Group)
    end.

%% @doc Passes an event on.
-spec publish(matchstream_match:event(), IsLast :: boolean(), outlets()) -> ok.
publish(#{seq := Seq} = Event, IsLast, {Kind, Outlets}) ->
    Told = {matchstream, Seq, matchstream_switches:when_on(encode, matchstream_protocol:event(Event), Event), IsLast},
    _ = [case Kind of groups -> element(3, Outlet) ! {publish, Told}; handlers -> ok = gen_event:notify(Outlet, Told) end || Outlet <- tuple_to_list(Outlets)],
    ok.

%% @doc From now on the connection gets the events; it hears if its outlet ends.
-spec join(pid(), outlets()) -> reference().
join(Connection, {Kind, Outlets}) ->
    case {Kind, element(1 + erlang:phash2(Connection, tuple_size(Outlets)), Outlets)} of
        {groups, {Id, N, Outlet}} ->
            ok = pg:join(matchstream_pg, {Id, N}, Connection),
            monitor(process, Outlet);
        {handlers, Manager} ->
            ok = case matchstream_switches:is_on(monitors) of
                true -> gen_event:add_handler(Manager, {?MODULE, Connection}, {monitor, Connection});
                false -> gen_event:add_sup_handler(Manager, {?MODULE, Connection}, {supervised, Connection})
            end,
            monitor(process, Manager)
    end.

%% @doc Whether no connection of this node has joined.
-spec is_empty(outlets()) -> boolean().
is_empty({groups, Outlets}) -> lists:all(fun({Id, N, _}) -> pg:get_local_members(matchstream_pg, {Id, N}) =:= [] end, tuple_to_list(Outlets));
is_empty({handlers, Outlets}) -> lists:all(fun(Manager) -> gen_event:which_handlers(Manager) =:= [] end, tuple_to_list(Outlets)).

%% @private
-spec init({monitor | supervised, pid()}) -> {ok, {pid(), reference() | none}}.
init({monitor, Connection}) -> {ok, {Connection, monitor(process, Connection)}};
init({supervised, Connection}) -> {ok, {Connection, none}}.

%% @private
-spec handle_event(told(), {pid(), reference() | none}) -> {ok, {pid(), reference() | none}}.
handle_event(Told, {Connection, _} = S) ->
    Connection ! Told,
    {ok, S}.

%% @private
-spec handle_call(term(), {pid(), reference() | none}) -> no_return().
handle_call(Request, _) -> error({no_such_call, Request}).

%% @private
-spec handle_info(term(), {pid(), reference() | none}) -> {ok, {pid(), reference() | none}} | remove_handler.
handle_info({'DOWN', Ref, process, _, _}, {_, Ref}) -> remove_handler;
handle_info(_, S) -> {ok, S}.
