%% @doc The configuration of the carrier: the key `atoll_dist' of kernel's environment,
%% since the carrier starts inside kernel, as in
%%
%% ```
%% erl -proto_dist atoll -kernel atoll_dist "[{kind,{lanes,4}},{stock,accept}]"
%% '''
%%
%% It is checked key by key before the node listens. With a wrong one the node does not
%% start its distribution, and says what is wrong in one sentence.
-module(atoll_dist_config).

-export([new/1, format_error/1]).

-export_type([option/0, config/0, error/0]).

-type option() ::
    %% How this node wants to be connected. Default `auto': lanes where a round trip takes
    %% long, else direct.
    {kind, atoll_dist_kind:asked()}
    %% What is wanted of single peers instead. Default none.
    | {peers, [{node(), atoll_dist_kind:asked()}]}
    %% From how many milliseconds of round trip on `auto' takes lanes, and how many.
    %% Defaults 5 and 16.
    | {lane_rtt, non_neg_integer()}
    | {lanes, atoll_dist_kind:lanes()}
    %% What becomes of peers that speak Erlang's own distribution. Default `refuse'.
    | {stock, refuse | accept}
    %% `throughput' sets nothing; `latency' lets at most 128 KB wait unsent in each socket,
    %% on Linux only. Default `throughput'.
    | {profile, throughput | latency}
    %% How many bytes of a connection with lanes may be handed to its lanes and not yet
    %% written. Default 16 MiB.
    | {budget, pos_integer()}
    %% Socket options (of inet) that override those of the profile. Default none.
    | {direct_options, [gen_tcp:option()]}
    | {lane_options, [gen_tcp:option()]}
    %% Whether faults can be injected. Default `false'.
    | {faults, boolean()}
    %% Whether this node relays for others, and has circuits over others itself, once a
    %% room above knows ways. Default `on'.
    | {relay, on | off}
    %% Whether what circuits carry must be encrypted and authenticated from end to end;
    %% `off' does so where the other end wants it. Default `off'.
    | {seal, off | required}
    %% What becomes of a node to which there is no way: a connection of its own, or none.
    %% Default `direct'.
    | {unrouted, direct | refuse}
    %% How many bytes this node may hold of what it relays, and how many circuits it relays.
    %% Defaults 128 MiB and 384, all of which get the least window; with more circuits than
    %% the budget has room for, none gets a larger one.
    | {relay_budget, pos_integer()}
    | {relay_circuits, pos_integer()}
    %% How many bytes of a circuit that ends here may be under way each way. Default 1 MiB.
    | {circuit_window, pos_integer()}.

-type config() :: #{
    kind := atoll_dist_kind:asked(),
    peers := #{Node :: binary() => atoll_dist_kind:asked()},
    lane_rtt := non_neg_integer(),
    lanes := atoll_dist_kind:lanes(),
    stock := refuse | accept,
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

-type error() :: {not_options, term()} | {unknown, term()} | {bad_value, Key :: atom(), term()}.

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

%% @doc The checked configuration, with its defaults where nothing is said.
-spec new(term()) -> {ok, config()} | {error, error()}.
new(Options) ->
    try lists:foldl(fun set/2, defaults(), as_list(Options)) of
        Config -> {ok, Config}
    catch
        throw:Error -> {error, Error}
    end.

defaults() ->
    #{
        kind => auto,
        peers => #{},
        lane_rtt => 5,
        lanes => 16,
        stock => refuse,
        profile => throughput,
        budget => 16 * 1024 * 1024,
        direct_options => [],
        lane_options => [],
        faults => false,
        relay => on,
        seal => off,
        unrouted => direct,
        relay_budget => 128 * 1024 * 1024,
        relay_circuits => 384,
        circuit_window => 1024 * 1024
    }.

as_list(Options) ->
    %% length/1 is what tells a proper list.
    try length(Options) of
        _ -> Options
    catch
        error:badarg -> throw({not_options, Options})
    end.

set({Key, Value}, Config) when is_map_key(Key, Config) ->
    case is_good(Key, Value) of
        true -> Config#{Key := kept(Key, Value)};
        false -> throw({bad_value, Key, Value})
    end;
set({Key, _Value}, _Config) ->
    throw({unknown, Key});
set(Other, _Config) ->
    throw({not_options, Other}).

%% Peers are looked up by what they call themselves before they are known: no atom is
%% made of that.
kept(peers, Peers) -> maps:from_list([{atom_to_binary(Node), Kind} || {Node, Kind} <- Peers]);
kept(_Key, Value) -> Value.

is_good(kind, Kind) -> atoll_dist_kind:is_asked(Kind);
is_good(peers, Peers) -> all(fun is_peer/1, Peers);
is_good(lane_rtt, Ms) -> is_integer(Ms) andalso Ms >= 0 andalso Ms =< ?MAX_RTT_MS;
is_good(lanes, Lanes) -> atoll_dist_kind:is_asked({lanes, Lanes});
is_good(stock, What) -> lists:member(What, [refuse, accept]);
is_good(profile, Profile) -> lists:member(Profile, [throughput, latency]);
is_good(budget, Bytes) -> is_integer(Bytes) andalso Bytes > 0;
is_good(direct_options, Options) -> all(fun is_socket_option/1, Options);
is_good(lane_options, Options) -> all(fun is_socket_option/1, Options);
is_good(faults, Faults) -> is_boolean(Faults);
is_good(relay, What) -> lists:member(What, [on, off]);
is_good(seal, What) -> lists:member(What, [off, required]);
is_good(unrouted, What) -> lists:member(What, [direct, refuse]);
is_good(relay_budget, Bytes) -> is_integer(Bytes) andalso Bytes >= ?MIN_BUDGET;
is_good(relay_circuits, Count) -> is_integer(Count) andalso Count > 0 andalso Count =< ?MAX_CIRCUITS;
is_good(circuit_window, Bytes) -> is_integer(Bytes) andalso Bytes >= ?MIN_WINDOW andalso Bytes =< ?MAX_WINDOW.

is_peer({Node, Kind}) -> is_atom(Node) andalso atoll_dist_kind:is_asked(Kind);
is_peer(_) -> false.

is_socket_option({Key, _}) -> is_atom(Key) andalso not lists:member(Key, ?OURS);
is_socket_option({raw, Protocol, Option, Value}) -> is_integer(Protocol) andalso is_integer(Option) andalso is_binary(Value);
is_socket_option(_) -> false.

all(Test, List) when is_list(List), length(List) >= 0 -> lists:all(Test, List);
all(_Test, _) -> false.

%% @doc One plain sentence on what is wrong.
-spec format_error(error()) -> string().
format_error({not_options, Term}) ->
    sentence("The key atoll_dist of kernel's environment must be a list of {Key, Value}, and has ~0tp.", [Term]);
format_error({unknown, Key}) ->
    sentence("The carrier knows no option ~0tp; it knows ~ts.", [
        Key, lists:join(", ", [atom_to_list(K) || K <- lists:sort(maps:keys(defaults()))])
    ]);
format_error({bad_value, Key, Value}) ->
    sentence("The carrier's option ~ts must be ~ts, and is ~0tp.", [Key, must(Key), Value]).

sentence(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

must(kind) -> "auto, direct or {lanes,N} with N from 1 to 64";
must(peers) -> "a list of {Node,Kind}, each kind being auto, direct or {lanes,N} with N from 1 to 64";
must(lane_rtt) -> "a number of milliseconds";
must(lanes) -> "a number from 1 to 64";
must(stock) -> "refuse or accept";
must(profile) -> "throughput or latency";
must(budget) -> "a number of bytes above 0";
must(direct_options) -> socket_options();
must(lane_options) -> socket_options();
must(faults) -> "true or false";
must(relay) -> "on or off";
must(seal) -> "off or required";
must(unrouted) -> "direct or refuse";
must(relay_budget) -> io_lib:format("a number of bytes from ~b on", [?MIN_BUDGET]);
must(relay_circuits) -> io_lib:format("a number from 1 to ~b", [?MAX_CIRCUITS]);
must(circuit_window) -> io_lib:format("a number of bytes from ~b to ~b", [?MIN_WINDOW, ?MAX_WINDOW]).

socket_options() -> "a list of socket options that the carrier does not set itself".
