%% SPDX-License-Identifier: Apache-2.0
%% @doc Terms that may be handed to a VM that knows nothing of where they come from:
%% made of maps, lists, tuples, numbers, binaries and booleans. Such a VM reads them
%% with `binary_to_term/2' and the option `safe', and makes no atom.
-module(atoll_cluster_plain).

-export([term/1]).

-export_type([plain/0]).

-type plain() ::
    #{plain() => plain()} | [plain()] | tuple() | number() | bitstring() | boolean().

%% @doc The term with its atoms but for booleans as binaries, the names of nodes
%% among them, and with what means nothing elsewhere (processes, ports, references,
%% functions) and lists without an end as text.
-spec term(term()) -> plain().
term(Bool) when is_boolean(Bool) -> Bool;
term(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
term(Map) when is_map(Map) -> maps:from_list([{term(Key), term(Value)} || {Key, Value} <- maps:to_list(Map)]);
term(Tuple) when is_tuple(Tuple) -> list_to_tuple([term(Part) || Part <- tuple_to_list(Tuple)]);
term([]) -> [];
term([_ | _] = List) when length(List) > 0 -> [term(Element) || Element <- List];
term(Plain) when is_number(Plain); is_bitstring(Plain) -> Plain;
term(Other) -> unicode:characters_to_binary(io_lib:format("~0tp", [Other])).
