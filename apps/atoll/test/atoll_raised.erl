%% Protocols of a release to come, or of an earlier one, made of those that there are: modules with
%% the same code, and other versions on the wire. Every version that the protocol does not have yet
%% wraps each message, and the wrapping names the version: what is read as another fails.
-module(atoll_raised).

-export([protocols/0, versions/1, make/2]).

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

%% @doc The versions that a protocol has by itself.
-spec versions(module()) -> atoll_versions:range().
versions(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    case erlang:function_exported(Module, wire, 0) of
        true -> Module:wire();
        false -> {1, 1}
    end.

%% @doc Writes these protocols into a folder, with these versions.
-spec make(file:filename(), [{module(), {Oldest :: pos_integer(), Newest :: pos_integer()}}]) -> ok.
make(Dir, Protocols) ->
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    lists:foreach(fun({Module, Range}) -> ok = file:write_file(filename:join(Dir, atom_to_list(Module) ++ ".beam"), raised(Module, Range)) end, Protocols).

raised(Module, {Oldest, Newest}) ->
    {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} = beam_lib:chunks(code:which(Module), [abstract_code]),
    {Own, Rest} = own(Forms, versions(Module)),
    {Head, [{attribute, _, module, Module} = Named | Tail]} = lists:splitwith(fun(F) -> element(3, F) =/= module end, Rest),
    {Code, End} = lists:splitwith(fun(F) -> element(1, F) =/= eof end, Tail),
    {_, Has} = versions(Module),
    Added = [
        form(Text)
     || Text <- [
            "-export([wire/0, encode/2, decode/2]).",
            io_lib:format("wire() -> {~b, ~b}.", [Oldest, Newest]),
            io_lib:format("encode(M, V) when V =< ~b -> encode_own(M, V); encode(M, V) -> {raised, V, M}.", [Has]),
            io_lib:format("decode(M, V) when V =< ~b -> decode_own(M, V); decode({raised, V, M}, V) -> M.", [Has])
        ]
    ] ++ Own,
    [Export | Functions] = Added,
    {ok, Module, Beam} = compile:forms(Head ++ [Named, Export | Code] ++ Functions ++ End, [debug_info, deterministic]),
    Beam.

%% How it writes its own versions, under other names, and the rest of it.
own(Forms, {1, 1}) ->
    {[form("encode_own(M, 1) -> M."), form("decode_own(M, 1) -> M.")], Forms};
own(Forms, _Versions) ->
    Functions = [{wire, 0}, {encode, 2}, {decode, 2}],
    {Own, Rest} = lists:partition(
        fun
            ({function, _, F, A, _}) -> lists:member({F, A}, Functions);
            ({attribute, _, spec, {FA, _}}) -> lists:member(FA, Functions);
            (_) -> false
        end,
        Forms
    ),
    Renamed = [
        {function, L, list_to_atom(atom_to_list(F) ++ "_own"), A, Clauses}
     || {function, L, F, A, Clauses} <- Own, F =/= wire
    ],
    {Renamed, [without_exports(Form, Functions) || Form <- Rest]}.

without_exports({attribute, L, export, Exported}, Functions) -> {attribute, L, export, Exported -- Functions};
without_exports(Form, _Functions) -> Form.

form(Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.
