%% @doc Clusters whose nodes use the carrier: how they are started, and how kinds of
%% connections are typed and shown.
%%
%% They let in nodes on Erlang's own distribution, such as a shell and this program.
-module(atoll_cli_carrier).

-export([options/0, faults/0, relay/0, read/1, cluster/2, with_args/2, kind/0, shown/1]).

-export_type([carrier/0]).

-type carrier() :: stock | {atoll, atoll_dist_kind:asked(), Faults :: boolean(), Relay :: no | relay | sealed}.
%% Whether nodes reach those that they have no link with over others, and whether what
%% these carry is sealed.

%% @doc The options that say which distribution, for nodes that are started.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => carrier, value => "CARRIER", read => atoll_cli_read:one_of([stock, atoll]),
          help => "what connects the nodes: stock, which is Erlang's own distribution (so unless told), or atoll"},
        #{name => kind, value => "KIND", read => kind(),
          help => "with --carrier atoll, how: auto (so unless told), direct, or lanesN, as in lanes4"}
    ].

%% @doc The switch that lets connections be harmed.
-spec faults() -> atoll_cli_options:option().
faults() ->
    #{name => faults, help => "with --carrier atoll, let \"atoll chaos\" do harm to connections"}.

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
        case read_kind(Text) of
            {ok, Kind} -> {ok, Kind};
            none -> {error, "must be auto, direct or lanesN, with N from 1 to 64"}
        end
    end.

read_kind("auto") -> {ok, auto};
read_kind("direct") -> {ok, direct};
read_kind("lanes" ++ Digits) ->
    case string:to_integer(Digits) of
        {N, []} when N >= 1, N =< 64 -> {ok, {lanes, N}};
        _ -> none
    end;
read_kind(_) ->
    none.

%% @doc The carrier that the options ask for, or what is wrong with them.
-spec read(atoll_cli_options:values()) -> {ok, carrier()} | {error, unicode:chardata()}.
read(#{carrier := atoll} = Values) ->
    Carrier = {atoll, maps:get(kind, Values, auto), maps:get(faults, Values, false)},
    case Values of
        #{relay := true, seal := true} -> {ok, erlang:append_element(Carrier, sealed)};
        #{relay := true} -> {ok, erlang:append_element(Carrier, relay)};
        #{seal := true} -> {error, "--seal is for --relay"};
        #{} -> {ok, erlang:append_element(Carrier, no)}
    end;
read(#{relay := true}) ->
    {error, "--relay is for --carrier atoll"};
read(#{seal := true}) ->
    {error, "--seal is for --relay"};
read(#{kind := _}) ->
    {error, "--kind is for --carrier atoll"};
read(#{faults := true}) ->
    {error, "--faults is for --carrier atoll"};
read(#{}) ->
    {ok, stock}.

%% @doc These options of atoll_cluster, for nodes with that carrier.
-spec cluster(carrier(), #{atom() => term()}) -> #{atom() => term()}.
cluster(stock, Options) ->
    Options;
cluster({atoll, Kind, Faults, Relay}, Options) ->
    Carrier = [{kind, Kind}, {stock, accept}, {faults, Faults}] ++ [{seal, required} || Relay =:= sealed],
    with_args(
        ["-proto_dist", "atoll", "-kernel", "atoll_dist", lists:flatten(io_lib:format("~0tp", [Carrier]))] ++
            lists:append([["-atoll", "directory", "on"] || Relay =/= no]),
        Options
    ).

%% @doc These options of atoll_cluster, and before the nodes' arguments these.
-spec with_args([string()], #{atom() => term()}) -> #{atom() => term()}.
with_args(Own, Options) ->
    Options#{args => case Options of
        #{args := Args} when is_function(Args) -> fun(Nodes) -> Own ++ Args(Nodes) end;
        #{args := Args} -> Own ++ Args;
        #{} -> Own
    end}.

%% @doc A kind as it is typed.
-spec shown(atoll_dist_kind:asked() | stock | relay) -> string().
shown({lanes, N}) -> "lanes" ++ integer_to_list(N);
shown(Kind) -> atom_to_list(Kind).
