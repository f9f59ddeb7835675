%% @doc How a connection is in use: what `erlang:system_info(dist)' says of the
%% monitors and links across it, and its packets.
%%
%% The text has the format of a crash dump: a section for each node, opened by a
%% line with `=', with a line for each monitor or link across the connection.
%% Monitors of a node (`erlang:monitor_node/2') are not in it: they are told
%% `nodedown' when a connection is closed, which is then true.
-module(atoll_link_usage).

-export([read/1, uses/2]).

%% @doc Reads the use of the connection with `Node' now.
-spec read(node()) -> atoll_link_core:usage().
read(Node) ->
    case net_kernel:node_info(Node) of
        {ok, Info} ->
            case lists:keyfind(state, 1, Info) of
                {state, up} ->
                    #{
                        uses => uses(Node, erlang:system_info(dist)),
                        traffic => proplists:get_value(in, Info) + proplists:get_value(out, Info)
                    };
                _ ->
                    unknown
            end;
        {error, bad_node} ->
            unknown
    end.

%% @doc The number of monitors and links across the connection with `Node' in a
%% text of `erlang:system_info(dist)'.
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
section([<<"Remote", _/binary>> | Lines], Name, N) -> section(Lines, Name, N + 1);
section([_ | Lines], Name, N) -> section(Lines, Name, N);
section([], _Name, N) -> N.
