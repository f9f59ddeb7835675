%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The configuration of the library: one typed map, made from the
%% application environment when the application starts, validated key by key, and
%% passed down as an argument. Nothing reads the environment later. docs/configuration.md says
%% what each key means.
-module(atoll_config).

-export([keys/0, new/2, link/1, group/1, boot/1, kinds/1, names/1, global_group/1, overlay/1, sources/1, route/1, attributes/1]).
-export([network/1, distances/1, place/1, strangers/2, format_error/1]).

-export_type([config/0, kind/0, error/0]).

-opaque config() :: #{atom() => term()}.

-type error() :: {bad_option, Key :: term(), why()}.

-type why() ::
    unknown
    | {not_a, kind(), term()}
    | {source, term()}
    | {groups, atoll_group_config:error()}
    | {attributes, atoll_attr_book:error()}
    | {attributes_file, atoll_attr_file:error()}
    | {network, atoll_network:error()}
    | {network_file, file:name_all(), atoll_network_file:error()}
    | atoll_options:error()
    | atoll_detector:error()
    | atoll_roster_meta:error()
    %% The strategy leaves nodes unconnected, and Erlang would connect them all.
    | {connect_all, Strategy :: atom()}
    %% An overlay on a node that has no name.
    | no_name
    %% A contact with a long name, of a node with a short one; or the other way round.
    | {other_name, node()}
    %% The strategy star without servers.
    | no_servers.

-type kind() ::
    pos_integer
    | pos_integer_or_infinity
    | nodes
    | map
    | map_or_off
    | list
    %% It is checked with the whole.
    | any
    | folder_or_off
    | path_or_none
    | boolean
    | atom
    | name_rule
    | name_rules
    | carrier_kinds
    | free_group
    | group_removal
    | directory
    | relays.

%% Who checks the options of the overlay's parts.
-define(PARTS, [
    {broadcast, atoll_plumtree},
    {roster, atoll_roster},
    {beacons, atoll_discovery},
    {attribute_options, atoll_attr_core},
    {distances, atoll_distance_core}
]).

%% What a timer takes, and no bound is larger.
-define(MAX, 16#7FFFFFFF).

%% @doc The keys that there are, with what they must be and their defaults. Times are in
%% milliseconds.
-spec keys() -> #{Key :: atom() => {kind(), Default :: term()}}.
keys() ->
    #{
        connect_retry_min => {pos_integer, 100},
        connect_retry_max => {pos_integer, 2000},
        linger => {pos_integer, 1000},
        linger_max => {pos_integer, 30000},
        on_demand_linger => {pos_integer_or_infinity, 60000},
        group_answer_timeout => {pos_integer, 3000},
        group_operation_timeout => {pos_integer, 10000},
        group_settle_timeout => {pos_integer, 5000},
        group_gossip_interval => {pos_integer, 2000},
        max_group_operations => {pos_integer, 1000},
        max_group_locks => {pos_integer, 4096},
        max_group_tombstones => {pos_integer, 256},
        group_removal => {group_removal, majority},
        s_groups => {list, []},
        record_groups => {folder_or_off, off},
        carrier_kinds => {carrier_kinds, #{}},
        name_answer_timeout => {pos_integer, 3000},
        name_operation_timeout => {pos_integer, 10000},
        max_name_operations => {pos_integer, 10000},
        max_names => {pos_integer, 1000000},
        max_name_size => {pos_integer, 4096},
        name_rule => {name_rule, random_exit},
        name_rules => {name_rules, #{}},
        free_group => {free_group, auto},
        global_group => {atom, undefined},
        overlay => {atom, off},
        overlay_options => {map, #{}},
        detector => {any, #{}},
        broadcast => {map_or_off, #{}},
        roster => {map_or_off, #{}},
        meta => {map, #{}},
        beacons => {map_or_off, #{}},
        contacts => {nodes, []},
        discovery => {list, []},
        discovery_interval => {pos_integer, 10000},
        join_timeout => {pos_integer, 5000},
        directory => {directory, off},
        relays => {relays, all},
        attributes => {list, []},
        attributes_file => {path_or_none, none},
        builtin_attributes => {boolean, true},
        attribute_options => {map, #{}},
        network => {any, none},
        distances => {map_or_off, off},
        place_check_ms => {pos_integer, 10000},
        max_placed => {pos_integer, 10000}
    }.

%% @doc The configuration with these options, the others at their defaults, for a
%% node on which Erlang connects all nodes with all, or does not.
-spec new([{atom(), term()}], ConnectAll :: boolean()) -> {ok, config()} | {error, error()}.
new(Options, ConnectAll) ->
    Keys = keys(),
    case check_keys(Options, Keys, maps:map(fun(_Key, {_Kind, Default}) -> Default end, Keys)) of
        {ok, Config} -> check_whole(Config, ConnectAll);
        {error, _} = Error -> Error
    end.

check_keys([], _Keys, Config) ->
    {ok, Config};
check_keys([{Key, Value} | Options], Keys, Config) ->
    case Keys of
        #{Key := {Kind, _}} ->
            case is_a(Kind, Value) of
                true -> check_keys(Options, Keys, Config#{Key := Value});
                false -> {error, {bad_option, Key, {not_a, Kind, Value}}}
            end;
        #{} ->
            {error, {bad_option, Key, unknown}}
    end.

is_a(pos_integer, Value) -> is_integer(Value) andalso Value > 0 andalso Value =< ?MAX;
is_a(pos_integer_or_infinity, Value) -> Value =:= infinity orelse is_a(pos_integer, Value);
is_a(any, _Value) -> true;
is_a(atom, Value) -> is_atom(Value);
is_a(nodes, Value) -> is_a(list, Value) andalso lists:all(fun atoll_strategy:is_node_name/1, Value);
is_a(folder_or_off, off) -> true;
is_a(folder_or_off, Value) -> atoll_source:is_path(Value);
is_a(path_or_none, Value) -> Value =:= none orelse atoll_source:is_path(Value);
is_a(boolean, Value) -> is_boolean(Value);
%% The guard fails for a list that is none to the end.
is_a(list, Value) when length(Value) >= 0 -> true;
is_a(list, _Value) -> false;
is_a(name_rule, Value) -> atoll_name_rules:is_rule(Value);
is_a(name_rules, Value) ->
    is_map(Value) andalso
        lists:all(fun({Group, Rule}) -> is_atom(Group) andalso atoll_name_rules:is_rule(Rule) end, maps:to_list(Value));
is_a(carrier_kinds, Value) ->
    is_map(Value) andalso
        lists:all(fun({Group, Kind}) -> is_atom(Group) andalso atoll_dist_kind:is_asked(Kind) end, maps:to_list(Value));
is_a(group_removal, Value) -> Value =:= majority orelse Value =:= always;
is_a(free_group, Value) -> Value =:= auto orelse Value =:= mesh orelse Value =:= off;
is_a(directory, Value) -> Value =:= on orelse is_a(map_or_off, Value);
is_a(relays, Value) -> is_relays(Value);
is_a(map, Value) -> is_map(Value);
is_a(map_or_off, Value) -> is_map(Value) orelse Value =:= off.

%% Its guard fails for a list that is none to the end.
is_relays(Groups) when length(Groups) =< 64 -> lists:all(fun erlang:is_atom/1, Groups);
is_relays(Value) -> Value =:= all orelse Value =:= none.

%% What hangs on other keys, one check after the other.
check_whole(Config, ConnectAll) ->
    Checks = [
        fun(C) -> check_strategy(C, ConnectAll) end,
        fun check_detector/1,
        fun check_meta/1,
        fun check_sources/1,
        fun check_groups/1,
        fun check_directory/1,
        fun check_attributes/1,
        fun check_network/1
        | [fun(C) -> check_part(Key, Module, C) end || {Key, Module} <- ?PARTS] ++ [fun check_bounds/1]
    ],
    lists:foldl(
        fun
            (Check, {ok, C}) -> Check(C);
            (_, {error, _} = Error) -> Error
        end,
        {ok, Config#{connect_all => ConnectAll}},
        Checks
    ).

check_strategy(#{overlay := off} = Config, _ConnectAll) ->
    {ok, Config};
check_strategy(#{overlay := Name, overlay_options := Given} = Config, ConnectAll) ->
    case atoll_strategy:module(Name) of
        {ok, Module} ->
            case ConnectAll andalso atoll_strategy:is_partial(Module) of
                true -> {error, {bad_option, overlay, {connect_all, Name}}};
                false -> check_servers(check_options(Module, Given, overlay_options, Config, fun(All) -> {Module, All} end))
            end;
        {error, Why} ->
            {error, {bad_option, overlay, Why}}
    end.

check_servers({ok, #{overlay_options := {atoll_star, #{servers := []}}}}) ->
    {error, {bad_option, overlay_options, no_servers}};
check_servers(Checked) ->
    Checked.

check_part(Key, Module, Config) ->
    case Config of
        #{Key := off} -> {ok, Config};
        #{Key := Given} -> check_options(Module, Given, Key, Config, fun(_All) -> Given end)
    end.

check_options(Module, Given, Key, Config, Keep) ->
    case atoll_options:complete(Module, Given) of
        {ok, All} -> {ok, Config#{Key := Keep(All)}};
        {error, Why} -> {error, {bad_option, Key, Why}}
    end.

check_detector(#{detector := Detector} = Config) ->
    case atoll_detector:new(Detector) of
        {ok, _} -> {ok, Config};
        {error, Why} -> {error, {bad_option, detector, Why}}
    end.

check_meta(#{roster := off, meta := Meta}) when Meta =/= #{} ->
    {error, {bad_option, meta, no_roster}};
check_meta(#{meta := Meta} = Config) ->
    case atoll_roster_meta:check(Meta) of
        ok -> {ok, Config};
        {error, Why} -> {error, {bad_option, meta, Why}}
    end.

check_sources(#{discovery := Sources} = Config) ->
    case [Error || Source <- Sources, {error, Error} <- [atoll_source:check(Source)]] of
        [] -> {ok, Config};
        [Error | _] -> {error, {bad_option, discovery, {source, Error}}}
    end.

check_groups(#{s_groups := Term} = Config) ->
    case atoll_group_config:new(Term) of
        {ok, Groups} -> {ok, Config#{s_groups := Groups}};
        {error, Error} -> {error, {bad_option, s_groups, {groups, Error}}}
    end.

check_directory(#{directory := off} = Config) ->
    {ok, Config};
check_directory(#{directory := on} = Config) ->
    check_directory(Config#{directory := #{}});
check_directory(Config) ->
    check_part(directory, atoll_directory, Config).

%% With those of the file, which override the others. It is read here alone: a room that is
%% started anew has what it was started with, whatever has become of the file.
check_attributes(#{attributes := Definitions, attributes_file := File} = Config) ->
    case {atoll_attr_book:check(Definitions), from_file(File)} of
        {ok, {ok, More}} -> {ok, Config#{attributes := Definitions ++ More}};
        {ok, {error, Error}} -> {error, {bad_option, attributes_file, {attributes_file, Error}}};
        {{error, Error}, _} -> {error, {bad_option, attributes, {attributes, Error}}}
    end.

from_file(none) -> {ok, []};
from_file(Path) -> atoll_attr_file:read(Path).

%% When the options are known to be good.
check_bounds(Config) ->
    case atoll_attr:check(attributes(Config)) of
        ok -> {ok, Config};
        {error, Error} -> {error, {bad_option, attributes, {attributes, Error}}}
    end.

check_network(#{network := none} = Config) ->
    {ok, Config};
check_network(#{network := {file, Path}} = Config) ->
    case atoll_source:is_path(Path) of
        false ->
            {error, {bad_option, network, {network_file, Path, {file, badarg}}}};
        true ->
            case atoll_network_file:read(Path) of
                {ok, Network} -> {ok, Config#{network := Network}};
                {error, Error} -> {error, {bad_option, network, {network_file, Path, Error}}}
            end
    end;
check_network(#{network := Term} = Config) ->
    case atoll_network:new(Term) of
        {ok, Network} -> {ok, Config#{network := Network}};
        {error, Error} -> {error, {bad_option, network, {network, Error}}}
    end.

%% @doc What the link room is started with.
-spec link(config()) -> atoll_link_core:options().
link(#{connect_all := ConnectAll, linger := LingerMs, on_demand_linger := OnDemandMs} = Config) ->
    %% A mesh is whole or none: `global' would give up a node that lost one connection.
    InMesh = fun
        (_Ms) when ConnectAll -> infinity;
        (Ms) -> Ms
    end,
    #{
        retry_min_ms => maps:get(connect_retry_min, Config),
        retry_max_ms => maps:get(connect_retry_max, Config),
        linger_ms => InMesh(LingerMs),
        linger_max_ms => maps:get(linger_max, Config),
        on_demand_ms => InMesh(OnDemandMs)
    }.

%% @doc What the overlay room is started with, if there is to be one.
-spec overlay(config()) -> {ok, atoll_overlay:config()} | off.
overlay(#{overlay := off}) ->
    off;
overlay(#{overlay_options := Strategy, join_timeout := JoinMs, beacons := Discovery} = Config) ->
    Same = maps:with([contacts, detector, broadcast, roster, meta], Config),
    {ok, Same#{strategy => Strategy, discovery => Discovery, join_ms => JoinMs}}.

%% @doc The contacts with which a node does not get connected that has names of this kind, as OTP tells
%% short ones from long ones.
-spec strangers(config(), shortnames | longnames | none) -> [node()].
strangers(#{contacts := Contacts}, Domain) ->
    [Contact || Domain =/= none, Contact <- Contacts, not is_named(Domain, host(Contact))].

is_named(shortnames, Host) -> not lists:member($., Host);
is_named(longnames, Host) -> lists:member($., Host) orelse element(1, inet:parse_strict_address(Host)) =:= ok.

host(Node) ->
    [_, Host] = string:split(atom_to_list(Node), "@"),
    Host.

%% @doc Where contacts are found, and how often it is read again.
-spec sources(config()) -> {[atoll_source:source()], Ms :: pos_integer()}.
sources(#{discovery := Sources, discovery_interval := Ms}) ->
    {Sources, Ms}.

%% @doc What the route room is started with, if there is to be one.
-spec route(config()) -> {ok, atoll_route:options()} | off.
route(#{directory := off}) ->
    off;
route(#{directory := Directory, relays := Relays} = Config) ->
    {ok, #{
        directory => Directory,
        relays =>
            case Relays of
                Groups when is_list(Groups) -> lists:usort(Groups);
                Word -> Word
            end,
        tells => tells(Config)
    }}.

%% Where all are linked with all no link tells more.
tells(#{connect_all := true}) ->
    none;
tells(#{overlay := off}) ->
    lone;
tells(#{overlay_options := {Strategy, _}}) ->
    case atoll_strategy:is_partial(Strategy) of
        true -> neighbours;
        false -> none
    end.

%% @doc What the group room is started with.
-spec group(config()) -> atoll_group_core:options().
group(Config) ->
    #{
        answer_ms => maps:get(group_answer_timeout, Config),
        operation_ms => maps:get(group_operation_timeout, Config),
        settle_ms => maps:get(group_settle_timeout, Config),
        gossip_ms => maps:get(group_gossip_interval, Config),
        max_operations => maps:get(max_group_operations, Config),
        max_asks => maps:get(max_group_locks, Config),
        max_tombstones => maps:get(max_group_tombstones, Config),
        removal => maps:get(group_removal, Config)
    }.

%% @doc The groups that this node starts with, and where it keeps them.
-spec boot(config()) -> atoll_group:boot().
boot(#{s_groups := Groups, record_groups := off}) ->
    #{configured => Groups, file => none};
boot(#{s_groups := Groups, record_groups := Folder}) ->
    #{configured => Groups, file => atoll_group_file:path(Folder, node())}.

%% @doc Which kind of connection is wanted with the nodes of which group.
-spec kinds(config()) -> atoll_group_kinds:kinds().
kinds(#{carrier_kinds := Kinds}) ->
    Kinds.

%% @doc What the process of the names is started with.
-spec names(config()) -> atoll_name:options().
names(Config) ->
    #{
        answer_ms => maps:get(name_answer_timeout, Config),
        operation_ms => maps:get(name_operation_timeout, Config),
        max_operations => maps:get(max_name_operations, Config),
        max_names => maps:get(max_names, Config),
        max_bytes => maps:get(max_name_size, Config),
        rule => maps:get(name_rule, Config),
        rules => maps:get(name_rules, Config),
        free => free(Config)
    }.

free(#{free_group := mesh}) -> mesh;
free(#{free_group := off}) -> alone;
free(#{free_group := auto, overlay := off}) -> mesh;
free(#{free_group := auto, overlay_options := {Strategy, _}}) ->
    case atoll_strategy:is_partial(Strategy) of
        true -> alone;
        false -> mesh
    end.

%% @doc What the process of the attributes is started with.
-spec attributes(config()) -> atoll_attr:config().
attributes(#{attributes := Definitions, builtin_attributes := Builtins} = Config) ->
    #{
        definitions => Definitions,
        builtins => Builtins,
        options => maps:get(attribute_options, Config)
    }.

%% @doc The group that atoll_global is about.
-spec global_group(config()) -> atom().
global_group(#{global_group := Group}) ->
    Group.

%% @doc The declared network, if there is one.
-spec network(config()) -> atoll_network:network() | none.
network(#{network := Network}) ->
    Network.

%% @doc What measuring distances is started with, if it is to be.
-spec distances(config()) -> {ok, atoll_distance_core:options()} | off.
distances(#{distances := off}) -> off;
distances(#{distances := Options}) -> {ok, Options}.

%% @doc What the process that watches placed processes is started with.
-spec place(config()) -> atoll_place_core:options().
place(#{place_check_ms := Ms, max_placed := Max}) ->
    #{check_ms => Ms, max_placed => Max}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, unknown}) ->
    io_lib:format("atoll has no option ~0tp", [Key]);
format_error({bad_option, Key, {not_a, Kind, Value}}) ->
    io_lib:format("the option ~tw must be ~ts, not ~0tp", [Key, kind(Kind), Value]);
format_error({bad_option, overlay, {connect_all, Name}}) ->
    io_lib:format(
        "the overlay ~tw leaves nodes unconnected, but this node connects with all: "
        "start it with -connect_all false, or take the overlay mesh",
        [Name]
    );
format_error({bad_option, overlay, no_name}) ->
    "an overlay needs a node with a name: start it with -name or -sname";
format_error({bad_option, contacts, {other_name, Contact}}) ->
    io_lib:format(
        "the option contacts: OTP does not connect this node with ~tw, since one of the two has a long name (-name) and "
        "the other a short one (-sname)",
        [Contact]
    );
format_error({bad_option, directory, no_name}) ->
    "a directory needs a node with a name: start it with -name or -sname";
format_error({bad_option, overlay_options, no_servers}) ->
    "the overlay star needs to know its servers: set overlay_options to #{servers => [...]}";
format_error({bad_option, Key, {groups, Error}}) ->
    io_lib:format("the option ~tw: ~ts", [Key, atoll_group_config:format_error(Error)]);
format_error({bad_option, Key, {attributes, Error}}) ->
    io_lib:format("the option ~tw: ~ts", [Key, atoll_attr_book:format_error(Error)]);
format_error({bad_option, Key, {attributes_file, Error}}) ->
    io_lib:format("the option ~tw: ~ts", [Key, atoll_attr_file:format_error(Error)]);
format_error({bad_option, Key, {network, Error}}) ->
    io_lib:format("the option ~tw: ~ts", [Key, atoll_network:format_error(Error)]);
format_error({bad_option, Key, {network_file, Path, Error}}) ->
    io_lib:format("the option ~tw: the file ~tp: ~ts", [Key, Path, atoll_network_file:format_error(Error)]);
format_error({bad_option, Key, {source, Error}}) ->
    io_lib:format("the option ~tw: ~ts", [Key, atoll_source:format_error(Error)]);
format_error({bad_option, meta, no_roster}) ->
    "the option meta takes a roster, which tells it to the others: the option roster is off";
format_error({bad_option, meta, {bad_meta, _} = Error}) ->
    ["the option meta: ", atoll_roster_meta:format_error(Error)];
format_error({bad_option, Key, {bad_option, Sub, unknown}}) ->
    io_lib:format("the option ~tw knows no ~0tp", [Key, Sub]);
format_error({bad_option, Key, Why}) ->
    io_lib:format("the option ~tw: ~ts", [Key, atoll_detector:format_error(Why)]).

kind(pos_integer) -> io_lib:format("a whole number from 1 to ~b", [?MAX]);
kind(pos_integer_or_infinity) -> [kind(pos_integer), ", or infinity"];
kind(atom) -> "an atom";
kind(nodes) -> "a list of nodes";
kind(list) -> "a list";
kind(any) -> "any term";
kind(folder_or_off) -> "the name of a folder, or off";
kind(path_or_none) -> "the name of a file, or none";
kind(boolean) -> "true or false";
kind(name_rule) ->
    "random_exit, random_notify, notify_all, {keep, min}, {keep, max} or {fn, Module, Function}";
kind(free_group) -> "auto, mesh or off";
kind(group_removal) -> "majority or always";
kind(name_rules) -> ["a map of groups, each with ", kind(name_rule)];
kind(carrier_kinds) -> "a map of groups, each with auto, direct or {lanes,N} with N from 1 to 64";
kind(directory) -> "on, off, or a map of options";
kind(relays) -> "all, none, or a list of 64 groups at most";
kind(map) -> "a map";
kind(map_or_off) -> "a map of options, or off".
