%% SPDX-License-Identifier: Apache-2.0
%% @doc The options that say what connects the nodes that are started.
-module(atoll_up_cli_carrier).

-export([options/0, faults/0, relay/0, tls/0, read/1, kind/0]).

%% @doc The options that say which distribution, for nodes that are started.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => carrier, value => "CARRIER", read => atoll_cli_read:one_of([stock, atoll]),
          help => "what connects the nodes: stock, which is Erlang's own distribution (so unless told), or atoll"},
        #{name => kind, value => "KIND", read => kind(), spell => fun atoll_view_kind:shown/1,
          help => "with --carrier atoll, how: auto (so unless told), direct, or lanesN, as in lanes4"}
    ].

%% @doc The switch that lets connections be harmed.
-spec faults() -> atoll_cli_options:option().
faults() ->
    #{name => faults, help => "with --carrier atoll, let \"atoll chaos\" do harm to connections"}.

%% @doc The switch for TLS.
-spec tls() -> atoll_cli_options:option().
tls() ->
    #{name => tls, help => "with --carrier atoll, TLS for all connections, with certificates made for this cluster"}.

%% @doc The switches by which nodes reach each other over others.
-spec relay() -> [atoll_cli_options:option()].
relay() ->
    [
        #{name => relay, help => "with --carrier atoll, nodes without a link reach each other over gateways"},
        #{name => seal, help => "with --relay, gateways can neither read nor alter what they carry"}
    ].

%% @doc Reads a kind of connection.
-spec kind() -> atoll_cli_options:reader().
kind() ->
    fun(Text) ->
        case atoll_view_kind:read(Text) of
            {ok, Kind} -> {ok, Kind};
            none -> {error, "must be auto, direct or lanesN, with N from 1 to 64"}
        end
    end.

%% @doc The carrier that the options ask for, or what is wrong with them.
-spec read(atoll_cli_options:values()) -> {ok, atoll_up_carrier:carrier()} | {error, unicode:chardata()}.
read(#{carrier := atoll} = Values) ->
    Carrier = fun(Relay) -> {ok, {atoll, maps:get(kind, Values, auto), maps:get(faults, Values, false), Relay, maps:get(tls, Values, false)}} end,
    case Values of
        #{relay := true, seal := true} -> Carrier(sealed);
        #{relay := true} -> Carrier(relay);
        #{seal := true} -> {error, "--seal is for --relay"};
        #{} -> Carrier(no)
    end;
read(#{relay := true}) ->
    {error, "--relay is for --carrier atoll"};
read(#{seal := true}) ->
    {error, "--seal is for --relay"};
read(#{kind := _}) ->
    {error, "--kind is for --carrier atoll"};
read(#{tls := true}) ->
    {error, "--tls is for --carrier atoll"};
read(#{faults := true}) ->
    {error, "--faults is for --carrier atoll"};
read(#{}) ->
    {ok, stock}.
