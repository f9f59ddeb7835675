%% SPDX-License-Identifier: Apache-2.0
%% @doc What `atoll place' prints.
-module(atoll_view_cli_place_result).

-export([show/3, table/2, json/2]).

-type found() :: #{
    %% Who was asked, and what it has answered, see atoll_view:place/4.
    from := node(),
    choice := atoll_place:choice(),
    node := node() | none,
    how := atoll_distance:how() | none
}.

-define(DEPTH, 30).

%% @doc Prints what was found; if nothing was, that is said.
-spec show(found(), Shown :: [atoll_predicate:name()], atoll_cli_options:values()) -> atoll_cli_command:outcome().
show(#{choice := Choice, node := Node} = Found, Shown, #{json := Json, one := One}) ->
    #{nodes := Nodes} = Choice,
    ok =
        if
            Json -> atoll_cli_io:print_json(json(Found, Shown));
            Nodes =:= [] -> ok;
            One, Node =:= none -> ok;
            One -> atoll_cli_io:print([atom_to_list(Node), $\n]);
            true -> atoll_cli_io:print(table(Found, Shown))
        end,
    Absent = absent(Choice),
    case {Nodes, One andalso Node} of
        {[], _} -> {failed, ["no node fits", [["; ", Sentence] || Sentence <- Absent]]};
        {_, none} -> {failed, ["none of the nodes that fit could be taken", [["; ", Sentence] || Sentence <- Absent]]};
        {_, false} -> ok;
        {_, _} when Json -> ok;
        {_, _} -> lists:foreach(fun(Sentence) -> ok = atoll_cli_io:say([Sentence, $.]) end, Absent)
    end.

absent(#{silent := Silent, unreachable := Unreachable}) ->
    [[Words, listed(Nodes)] || {Words, [_ | _] = Nodes} <- [{"silent: ", Silent}, {"unreachable: ", Unreachable}]].

listed(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

%% @doc A table for people: the nodes, the best first, and who is missing.
-spec table(found(), [atoll_predicate:name()]) -> unicode:chardata().
table(#{choice := #{nodes := Nodes, values := Values, age_ms := Age} = Choice, how := How}, Shown) ->
    Distances = maps:get(distances, Choice, #{}),
    Columns = [{left, "node"} | [{right, head(How)} || How =/= none]] ++
        [{align(Name, Values), atoll_predicate_text:name(Name)} || Name <- Shown],
    Rows = [
        [atom_to_list(Node) | [distance(How, maps:get(Node, Distances, unknown)) || How =/= none]] ++
            [text(value(Node, Name, Values)) || Name <- Shown]
     || Node <- Nodes
    ],
    Also = [["silent", listed(Silent)] || #{silent := [_ | _] = Silent} <- [Choice]] ++
        [["unreachable", listed(Unreachable)] || #{unreachable := [_ | _] = Unreachable} <- [Choice]] ++
        [["values", ["up to ", atoll_cli_table:count(Age), " ms old"]] || Age > 0],
    [atoll_cli_table:format(Columns, Rows), [[$\n, atoll_cli_table:lines([left, left], Also)] || Also =/= []]].

head(declared) -> "distance";
head(_) -> "round trip".

distance(_How, unknown) -> "-";
distance(declared, Distance) -> io_lib:format("~p", [Distance]);
distance(_How, Ms) -> atoll_view_cli_distance:round_trip(Ms * 1000).

align(Name, Values) ->
    case [V || #{Name := V} <- maps:values(Values), V =/= undefined, not is_number(V)] of
        [] -> right;
        _ -> left
    end.

value(Node, Name, Values) ->
    maps:get(Name, maps:get(Node, Values, #{}), undefined).

%% As it would stand in a condition, but for digits that say nothing.
text(undefined) -> "-";
text(Value) when is_float(Value) -> float_to_list(Value, [{decimals, 4}, compact]);
text(Value) -> io_lib:format("~0tP", [Value, ?DEPTH]).

%% @doc The same for programs.
-spec json(found(), [atoll_predicate:name()]) -> atoll_cli_json:object().
json(#{from := From, choice := Choice, node := Chosen, how := How}, Shown) ->
    Distances = maps:get(distances, Choice, #{}),
    #{nodes := Nodes, values := Values, age_ms := Age, silent := Silent, unreachable := Unreachable} = Choice,
    {[
        {asked, From},
        {node, null(Chosen)},
        {distance, null(How)},
        {nodes, [
            {[
                {node, Node},
                {distance, maps:get(Node, Distances, null)},
                {attributes, {[{atom_to_binary(Name), plain(value(Node, Name, Values))} || Name <- Shown]}}
            ]}
         || Node <- Nodes
        ]},
        {age_ms, Age},
        {silent, Silent},
        {unreachable, Unreachable}
    ]}.

null(none) -> null;
null(Word) -> Word.

%% Numbers, truth and texts are themselves; everything else is as people read it.
plain(undefined) -> null;
plain(Value) when is_number(Value); is_boolean(Value) -> Value;
plain(Value) when is_atom(Value) -> atom_to_binary(Value);
plain([_ | _] = Value) ->
    case io_lib:printable_unicode_list(Value) of
        true -> unicode:characters_to_binary(Value);
        false -> unicode:characters_to_binary(text(Value))
    end;
plain(Value) -> unicode:characters_to_binary(text(Value)).
