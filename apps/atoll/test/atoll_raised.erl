%% SPDX-License-Identifier: Apache-2.0
%% Protocols of a release to come, made of those that there are: modules with the same code, and
%% other versions on the wire. Every version but the first wraps each message, and the wrapping
%% names the version: what is read as another fails.
-module(atoll_raised).

-export([protocols/0, make/2]).

%% @doc The protocols whose messages go between nodes, each with the process that runs it.
-spec protocols() -> [{Process :: atom(), Protocol :: module()}].
protocols() ->
    [
        {atoll_overlay, atoll_overlay_core},
        {atoll_route, atoll_route_core},
        {atoll_group, atoll_group_core},
        {atoll_name, atoll_name_core},
        {atoll_attr, atoll_attr_core},
        {atoll_distance, atoll_distance_core}
    ].

%% @doc Writes these protocols into a folder, with these versions.
-spec make(file:filename(), [{module(), {Oldest :: pos_integer(), Newest :: pos_integer()}}]) -> ok.
make(Dir, Protocols) ->
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    lists:foreach(fun({Module, Range}) -> ok = file:write_file(filename:join(Dir, atom_to_list(Module) ++ ".beam"), raised(Module, Range)) end, Protocols).

raised(Module, {Oldest, Newest}) ->
    {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} = beam_lib:chunks(code:which(Module), [abstract_code]),
    %% Of a protocol that has versions by itself the next ones have to be made otherwise.
    false = lists:keyfind(wire, 3, Forms),
    {Head, [{attribute, _, module, Module} = Named | Tail]} = lists:splitwith(fun(F) -> element(3, F) =/= module end, Forms),
    {Code, End} = lists:splitwith(fun(F) -> element(1, F) =/= eof end, Tail),
    Added = [
        form(Text)
     || Text <- [
            "-export([wire/0, encode/2, decode/2]).",
            io_lib:format("wire() -> {~b, ~b}.", [Oldest, Newest]),
            "encode(Message, 1) -> Message; encode(Message, Version) -> {raised, Version, Message}.",
            "decode(Message, 1) -> Message; decode({raised, Version, Message}, Version) -> Message."
        ]
    ],
    [Export | Functions] = Added,
    {ok, Module, Beam} = compile:forms(Head ++ [Named, Export | Code] ++ Functions ++ End, [debug_info, deterministic, no_ssa_opt]),
    Beam.

form(Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.
