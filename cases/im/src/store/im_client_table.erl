%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is logged in: the rows of a client database. Pure ({@link im_table}).
%%
%% A client is online, with its process, or away: then it has its login and its sessions until it is
%% logged out. A name has one row, and so one login at most.
-module(im_client_table).
-behaviour(im_table).

-export([new/1, apply/2, rows/1, pid/1]).

-export_type([row/0, op/0, reply/0]).

-type row() :: #{
    pid := pid() | away,
    monitor := pid(),
    sessions := [im_plan:session()],
    %% since when it is away, as its monitor said; none while it is online
    since := integer() | none
}.

-type op() ::
    %% -> {ok, Sessions} | {error, already_logged_in}. The same process again is no fault, and who is
    %% away may come with another one.
    {login, im_plan:client(), pid(), Monitor :: pid()}
    %% a new monitor -> ok | {error, not_logged_in}
    | {monitor, im_plan:client(), pid() | away, Monitor :: pid()}
    %% -> ok | {error, not_logged_in}, also if another process has come meanwhile
    | {away, im_plan:client(), pid(), Now :: integer()}
    %% -> {ok, Sessions}; none if it had been logged out, or has come with another process
    | {logout, im_plan:client(), pid() | away}
    %% -> {ok, Pid | away} | {error, receiver_not_found | too_many_sessions}
    | {open_session, im_plan:client(), im_plan:session()}
    %% -> ok
    | {close_session, im_plan:client(), im_plan:session()}
    %% -> {ok, Row} | none
    | {peek, im_plan:client()}
    %% -> the number of rows
    | count.

-type reply() :: term().

-type table() :: {#{im_plan:client() => row()}, MaxSessions :: pos_integer()}.

%% @private
-spec new(im_table:limits()) -> table().
new(#{max_sessions := Max}) -> {#{}, Max}.

%% @private
-spec apply(op(), table()) -> {reply(), table()} | {reply(), unchanged}.
apply(count, {Rows, _}) ->
    {map_size(Rows), unchanged};
apply(Op, {Rows, Max}) ->
    Client = element(2, Op),
    case on(Op, maps:get(Client, Rows, none), Max) of
        {Reply, unchanged} -> {Reply, unchanged};
        {Reply, none} -> {Reply, {maps:remove(Client, Rows), Max}};
        {Reply, Row} -> {Reply, {Rows#{Client => Row}, Max}}
    end.

%% The operations on a row, which may be none before and after.
on({peek, _}, none, _) ->
    {none, unchanged};
on({peek, _}, Row, _) ->
    {{ok, Row}, unchanged};
on({login, _, Pid, Monitor}, none, _) ->
    {{ok, []}, #{pid => Pid, monitor => Monitor, sessions => [], since => none}};
on({login, _, Pid, Monitor}, #{pid := Pid, monitor := Monitor, sessions := Sessions}, _) ->
    {{ok, Sessions}, unchanged};
on({login, _, Pid, Monitor}, #{pid := Old, sessions := Sessions} = Row, _) when Old =:= Pid; Old =:= away ->
    {{ok, Sessions}, Row#{pid := Pid, monitor := Monitor, since := none}};
on({login, _, _, _}, _, _) ->
    {{error, already_logged_in}, unchanged};
on({monitor, _, Pid, Monitor}, #{pid := Pid} = Row, _) ->
    {ok, Row#{monitor := Monitor}};
on({away, _, Pid, Now}, #{pid := Pid} = Row, _) ->
    {ok, Row#{pid := away, since := Now}};
on({away, _, _, _}, #{pid := away}, _) ->
    {ok, unchanged};
on({logout, _, Pid}, #{pid := Pid, sessions := Sessions}, _) ->
    {{ok, Sessions}, none};
on({logout, _, _}, _, _) ->
    {{ok, []}, unchanged};
on({open_session, _, Session}, #{pid := Pid, sessions := Sessions} = Row, Max) ->
    case {lists:member(Session, Sessions), length(Sessions) < Max} of
        {true, _} -> {{ok, Pid}, unchanged};
        {false, true} -> {{ok, Pid}, Row#{sessions := [Session | Sessions]}};
        {false, false} -> {{error, too_many_sessions}, unchanged}
    end;
on({open_session, _, _}, none, _) ->
    {{error, receiver_not_found}, unchanged};
on({close_session, _, Session}, #{sessions := Sessions} = Row, _) ->
    {ok, Row#{sessions := lists:delete(Session, Sessions)}};
on({close_session, _, _}, none, _) ->
    {ok, unchanged};
on({Name, _, _, _}, _, _) when Name =:= monitor; Name =:= away ->
    {{error, not_logged_in}, unchanged}.

%% @private
-spec rows(table()) -> [{im_plan:client(), row()}].
rows({Rows, _}) -> maps:to_list(Rows).

%% @private
-spec pid(row()) -> pid().
pid(#{monitor := Monitor}) -> Monitor.
