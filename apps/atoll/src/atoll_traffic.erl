%% SPDX-License-Identifier: Apache-2.0
%% @doc The connections that this node really has, and what they have carried.
%%
%% A node that is reached over others, as a channel of Atoll's carrier may do, is in
%% `nodes()' like any other, but costs no connection: what counts here is a connection of
%% its own. The application `atoll' need not be started.
-module(atoll_traffic).

-export([connections/0, packets/0]).

%% @doc How many nodes this one has a connection of its own with, hidden ones too.
-spec connections() -> non_neg_integer().
connections() ->
    length(own()).

%% @doc How many packets have left this node over its connections since these are there: the
%% program's messages, those of others that are passed on, and what else the runtime sends.
%% `unknown' if there is a connection that the runtime does not drive itself, as with lanes.
-spec packets() -> non_neg_integer() | unknown.
packets() ->
    Own = own(),
    sum([Controller || {Node, Controller} <- erlang:system_info(dist_ctrl), lists:member(Node, Own)], 0).

own() ->
    [Node || #{node := Node} = Connection <- atoll:links(), is_own(Connection)].

%% A channel over others may have got a path of its own meanwhile.
is_own(#{kind := relay, path := Path}) -> length(Path) =:= 2;
is_own(#{}) -> true.

sum([Port | Controllers], Sum) when is_port(Port) ->
    case inet:getstat(Port, [send_cnt]) of
        {ok, [{send_cnt, Count}]} -> sum(Controllers, Sum + Count);
        %% It has just closed.
        {error, _} -> sum(Controllers, Sum)
    end;
sum([_Process | _], _Sum) ->
    unknown;
sum([], Sum) ->
    Sum.
