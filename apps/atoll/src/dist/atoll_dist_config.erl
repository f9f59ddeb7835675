%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The configuration of the carrier: the key `atoll_dist' of kernel's environment,
%% since the carrier starts inside kernel, as in
%%
%% ```
%% erl -proto_dist atoll -kernel atoll_dist "[{kind,{lanes,4}},{stock,accept}]"
%% '''
%%
%% It is checked key by key before the node listens. With a wrong one the node does not
%% start its distribution, and says what is wrong in one sentence. docs/configuration.md says
%% what each key means.
-module(atoll_dist_config).

-export([keys/0, new/1, format_error/1]).

-export_type([config/0, kind/0, error/0]).

-type config() :: #{
    kind := atoll_dist_kind:asked(),
    peers := #{Node :: binary() => atoll_dist_kind:asked()},
    lane_rtt := non_neg_integer(),
    lanes := atoll_dist_kind:lanes(),
    channels := atoll_dist_named:channels(),
    stock := refuse | accept,
    tls := off | on,
    profile := throughput | latency,
    budget := pos_integer(),
    direct_options := [gen_tcp:option()],
    lane_options := [gen_tcp:option()],
    faults := boolean(),
    relay := on | off,
    seal := off | required,
    unrouted := direct | refuse,
    relay_budget := pos_integer(),
    relay_circuits := pos_integer(),
    circuit_window := pos_integer()
}.

-type kind() ::
    {number, Min :: non_neg_integer(), Max :: pos_integer() | infinity, What :: string()}
    | {one_of, [atom(), ...]}
    %% Of connections, of those with single peers, and how many lanes.
    | connection
    | peers
    | lanes
    | channels
    | socket_options.

-type error() :: {not_options, term()} | {unknown, term()} | {bad_value, Key :: atom(), term()} | {bad_channels, atoll_dist_named:fault()}.

%% An hour is no round trip; and microseconds of it fit the wire.
-define(MAX_RTT_MS, 3600000).

%% Room for a few circuits and neighbours; and what the relay's books are made for.
-define(MIN_BUDGET, 4194304).
-define(MAX_CIRCUITS, 65536).

%% Some of the largest frames; and what a node may well have to keep for each circuit.
-define(MIN_WINDOW, 131072).
-define(MAX_WINDOW, 1073741824).

%% What the carrier itself sets on its sockets.
-define(OURS, [active, deliver, packet, packet_size, header, mode, exit_on_close, fd, ifaddr, ip, port]).

%% @doc The keys that there are, with what they must be and their defaults.
-spec keys() -> #{Key :: atom() => {kind(), Default :: term()}}.
keys() ->
    #{
        kind => {connection, auto},
        peers => {peers, []},
        lane_rtt => {{number, 0, ?MAX_RTT_MS, "milliseconds"}, 5},
        lanes => {lanes, 16},
        channels => {channels, #{}},
        stock => {{one_of, [refuse, accept]}, refuse},
        tls => {{one_of, [off, on]}, off},
        profile => {{one_of, [throughput, latency]}, throughput},
        budget => {{number, 1, infinity, "bytes"}, 16 * 1024 * 1024},
        direct_options => {socket_options, []},
        lane_options => {socket_options, []},
        faults => {{one_of, [true, false]}, false},
        relay => {{one_of, [on, off]}, on},
        seal => {{one_of, [off, required]}, off},
        unrouted => {{one_of, [direct, refuse]}, direct},
        relay_budget => {{number, ?MIN_BUDGET, infinity, "bytes"}, 256 * 1024 * 1024},
        relay_circuits => {{number, 1, ?MAX_CIRCUITS, "circuits"}, 384},
        circuit_window => {{number, ?MIN_WINDOW, ?MAX_WINDOW, "bytes"}, 1024 * 1024}
    }.

%% @doc The checked configuration, with its defaults where nothing is said.
-spec new(term()) -> {ok, config()} | {error, error()}.
new(Options) ->
    Defaults = maps:map(fun(Key, {_Kind, Default}) -> kept(Key, Default) end, keys()),
    try lists:foldl(fun set/2, Defaults, as_list(Options)) of
        Config -> {ok, Config}
    catch
        throw:Error -> {error, Error}
    end.

as_list(Options) ->
    %% length/1 is what tells a proper list.
    try length(Options) of
        _ -> Options
    catch
        error:badarg -> throw({not_options, Options})
    end.

set({Key, Value}, Config) ->
    case keys() of
        #{Key := {channels, _}} ->
            case atoll_dist_named:check(Value) of
                ok -> Config#{Key := Value};
                {error, Fault} -> throw({bad_channels, Fault})
            end;
        #{Key := {Kind, _}} ->
            case is_a(Kind, Value) of
                true -> Config#{Key := kept(Key, Value)};
                false -> throw({bad_value, Key, Value})
            end;
        #{} ->
            throw({unknown, Key})
    end;
set(Other, _Config) ->
    throw({not_options, Other}).

%% Peers are looked up by what they call themselves before they are known: no atom is
%% made of that.
kept(peers, Peers) -> maps:from_list([{atom_to_binary(Node), Kind} || {Node, Kind} <- Peers]);
kept(_Key, Value) -> Value.

is_a({number, Min, Max, _}, Value) -> is_integer(Value) andalso Value >= Min andalso Value =< Max;
is_a({one_of, Atoms}, Value) -> lists:member(Value, Atoms);
is_a(connection, Value) -> atoll_dist_kind:is_asked(Value);
is_a(peers, Value) -> all(fun is_peer/1, Value);
is_a(lanes, Value) -> atoll_dist_kind:is_asked({lanes, Value});
is_a(socket_options, Value) -> all(fun is_socket_option/1, Value).

is_peer({Node, Kind}) -> is_atom(Node) andalso atoll_dist_kind:is_asked(Kind);
is_peer(_) -> false.

is_socket_option({Key, _}) -> is_atom(Key) andalso not lists:member(Key, ?OURS);
is_socket_option({raw, Protocol, Option, Value}) -> is_integer(Protocol) andalso is_integer(Option) andalso is_binary(Value);
is_socket_option(_) -> false.

all(Test, List) when is_list(List), length(List) >= 0 -> lists:all(Test, List);
all(_Test, _) -> false.

%% @doc One plain sentence on what is wrong.
-spec format_error(error()) -> string().
format_error({bad_channels, Fault}) ->
    sentence("The carrier's option channels ~ts.", [atoll_dist_named:format_error(Fault)]);
format_error({not_options, Term}) ->
    sentence("The key atoll_dist of kernel's environment must be a list of {Key, Value}, and has ~0tp.", [Term]);
format_error({unknown, Key}) ->
    sentence("The carrier knows no option ~0tp; it knows ~ts.", [
        Key, lists:join(", ", [atom_to_list(K) || K <- lists:sort(maps:keys(keys()))])
    ]);
format_error({bad_value, Key, Value}) ->
    #{Key := {Kind, _}} = keys(),
    sentence("The carrier's option ~ts must be ~ts, and is ~0tp.", [Key, must(Kind), Value]).

sentence(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

must({number, Min, infinity, What}) -> io_lib:format("a number of ~ts from ~b on", [What, Min]);
must({number, Min, Max, What}) -> io_lib:format("a number of ~ts from ~b to ~b", [What, Min, Max]);
must({one_of, Atoms}) -> lists:join(" or ", [atom_to_list(Atom) || Atom <- Atoms]);
must(connection) -> "auto, direct or {lanes,N} with N from 1 to 64";
must(peers) -> ["a list of {Node,Kind}, each kind being ", must(connection)];
must(lanes) -> "a number from 1 to 64";
must(socket_options) -> "a list of socket options that the carrier does not set itself".
