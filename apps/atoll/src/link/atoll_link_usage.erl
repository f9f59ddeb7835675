%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc How a connection is in use: its packets, and what `erlang:system_info(dist)' says of the
%% monitors and links across it. The packets are at hand; for that text the runtime stops all
%% schedulers, and it is as long as there are monitors over all connections.
%%
%% The text has the format of a crash dump: a section for each node, opened by a
%% line with `=', with a line for each monitor or link across the connection.
%% Monitors of a node (`erlang:monitor_node/2') are not in it: they are told
%% `nodedown' when a connection is closed, which is then true.
%%
%% Every process of `pg' monitors its like on each connected node, for as long as they are
%% connected. It knows the processes of connected nodes and no others, so its monitors are no
%% use of a connection: with them each that was ever made would stay.
%%
%% Packets alone do not tell a quiet connection from one in use, since the two ends
%% tick. A tick is a packet's head with nothing in it: so the bytes beside the heads
%% are what the connection has carried. They can be read of a connection that the
%% runtime drives over TCP itself; not under TLS or another carrier. The two ends of a
%% connection over other nodes talk all the time, to know that their path is alive: of it the
%% carrier tells how many packets of signals it has carried, and these alone count.
-module(atoll_link_usage).

-export([read/2, uses/2]).

%% The bytes of a packet's head on a connection that is up.
-define(HEAD, 4).

%% @doc Reads the use of the connection with `Node' now, as far as that purpose wants it. That of
%% a hidden node is unknown: whoever made it, a shell or a tool, is to end it.
-spec read(atoll_link_core:purpose(), node()) -> atoll_link_core:usage().
read(Purpose, Node) ->
    case net_kernel:node_info(Node) of
        {ok, Info} ->
            case {lists:keyfind(state, 1, Info), lists:keyfind(type, 1, Info)} of
                {{state, up}, {type, normal}} ->
                    Packets = proplists:get_value(in, Info) + proplists:get_value(out, Info),
                    {Traffic, Payload} = carried(lists:keyfind(Node, 1, erlang:system_info(dist_ctrl)), Packets),
                    Usage = #{traffic => Traffic, payload => Payload},
                    case Purpose of
                        traffic -> Usage;
                        _ -> Usage#{uses => uses(Node, erlang:system_info(dist))}
                    end;
                _ ->
                    unknown
            end;
        {error, bad_node} ->
            unknown
    end.

carried({_Node, Port}, Packets) when is_port(Port) ->
    {Packets, payload(Port)};
carried({_Node, Controller}, Packets) when is_pid(Controller) ->
    case atoll_dist:carried(Controller) of
        {ok, {In, Out}} -> {In + Out, In + Out};
        unknown -> {Packets, ticks()}
    end;
carried(false, Packets) ->
    {Packets, ticks()}.

payload(Port) ->
    case inet:getstat(Port, [recv_cnt, recv_oct, send_cnt, send_oct]) of
        {ok, Stat} ->
            #{recv_cnt := In, recv_oct := BytesIn, send_cnt := Out, send_oct := BytesOut} =
                maps:from_list(Stat),
            BytesIn + BytesOut - ?HEAD * (In + Out);
        {error, _} ->
            %% No socket of inet, or just closed.
            ticks()
    end.

%% A node ticks four times in its net_ticktime, unless it is told otherwise; the
%% peer's may differ.
ticks() ->
    Seconds =
        case net_kernel:get_net_ticktime() of
            Time when is_integer(Time) -> Time;
            {ongoing_change_to, Time} -> Time;
            ignored -> 60
        end,
    {ticks, max(1, Seconds * 1000 div 4)}.

%% @doc The number of monitors and links across the connection with `Node' in a
%% text of `erlang:system_info(dist)', less those of `pg'.
-spec uses(node(), unicode:chardata()) -> non_neg_integer().
uses(Node, Text) ->
    Lines = string:split(unicode:characters_to_binary(Text), "\n", all),
    %% The runtime quotes every name of a node, io_lib only those that need it.
    Name = <<"Name: '", (atom_to_binary(Node))/binary, "'">>,
    uses(Lines, Name, 0).

uses([], _Name, N) -> N;
uses([Name | Lines], Name, N) -> section(Lines, Name, N);
uses([_ | Lines], Name, N) -> uses(Lines, Name, N).

%% The node's own lines, up to the next section. A node has a section for each
%% incarnation that is still known.
section([<<"=", _/binary>> | Lines], Name, N) -> uses(Lines, Name, N);
section([<<"Remote", Line/binary>> | Lines], Name, N) ->
    case is_of_pg(Line) of
        true -> section(Lines, Name, N);
        false -> section(Lines, Name, N + 1)
    end;
section([_ | Lines], Name, N) -> section(Lines, Name, N);
section([], _Name, N) -> N.

%% A monitor's own end stands first in its line. A process of `pg' has its scope's name; only of
%% one that has a name the dictionary is read, which may be large.
is_of_pg(Line) ->
    case re:run(Line, "^(?: monitoring|ly monitored by): (<0\\.[0-9]+\\.[0-9]+>)", [{capture, all_but_first, list}]) of
        {match, [Text]} ->
            Pid = list_to_pid(Text),
            case process_info(Pid, registered_name) of
                {registered_name, _} -> proc_lib:translate_initial_call(Pid) =:= {pg, init, 1};
                _ -> false
            end;
        nomatch ->
            false
    end.
