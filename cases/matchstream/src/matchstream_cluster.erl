%% SPDX-License-Identifier: Apache-2.0
%% @doc How the nodes of a service are started. With the store Mnesia they are a full mesh, as that wants; with Redis they have an overlay of few
%% connections.
-module(matchstream_cluster).

-export([options/1, hosts/1]).

-export_type([shape/0]).

-type shape() :: #{
    nodes := pos_integer(),
    store := matchstream_store:options(),
    switches := [matchstream_switches:name()],
    %% further settings of {@link matchstream_settings}
    settings => #{atom() => term()}
}.

%% What a shell has by itself on most systems.
-define(FEW_FILES, "1024").

%% @doc For {@link atoll_cluster:start/1}.
-spec options(shape()) -> #{nodes := pos_integer(), connect_all := boolean(), apps := [atom()], args := fun(([node(), ...]) -> [string()]), hosts := [map()]}.
options(#{nodes := Count, store := #{module := Module} = Store, switches := Switches} = Shape) ->
    IsMesh = Module =:= matchstream_store_mnesia,
    #{
        nodes => Count, connect_all => IsMesh, apps => [atoll, matchstream], hosts => hosts(Switches),
        args => fun(Nodes) ->
            vm(Switches) ++
                environment(matchstream, [{nodes, Nodes}, {store, Store}, {switches, Switches} | maps:to_list(maps:get(settings, Shape, #{}))]) ++
                environment(atoll, [{overlay, case IsMesh of true -> mesh; false -> hyparview end}, {contacts, lists:sublist(Nodes, 3)}])
        end
    }.

%% @doc Where nodes run with these switches.
-spec hosts([matchstream_switches:name()]) -> [map(), ...].
hosts(Switches) -> [#{address => {127, 0, 0, 1}, wrap => files(Switches)}].

%% The system's own bound stays; a program may raise what it has up to that.
files(Switches) ->
    case {os:find_executable("prlimit"), lists:member(files, Switches)} of
        {false, _} -> [];
        {Prlimit, false} -> [Prlimit, "--nofile=" ++ ?FEW_FILES ++ ":"];
        {Prlimit, true} -> [Prlimit, "--nofile=" ++ hard() ++ ":"]
    end.

hard() -> string:trim(os:cmd("ulimit -H -n")).

vm(Switches) ->
    case lists:member(vm, Switches) of
        true -> ["+P", "1000000", "+Q", "1000000"];
        false -> []
    end.

environment(App, Values) ->
    lists:append([[[$- | atom_to_list(App)], atom_to_list(Key), lists:flatten(io_lib:format("~0tp", [Value]))] || {Key, Value} <- Values]).
