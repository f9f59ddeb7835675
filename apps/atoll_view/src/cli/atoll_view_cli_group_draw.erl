%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll group draw': the groups of a running cluster, or of a topology that nobody has made, as text or as a drawing.
-module(atoll_view_cli_group_draw).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "draw the groups of a running cluster, or of a topology".

-spec options() -> [atoll_cli_options:option()].
options() -> shape_options() ++ atoll_view_cli_where:options(looks) ++ files().

-spec operands() -> [string()].
operands() -> ["[SHAPE]"].

-spec examples() -> [string()].
examples() -> ["atoll group draw -c reef", "atoll group draw -c reef --svg reef.svg --dot reef.dot", "atoll group draw ring --nodes 12 --group-size 4 --gateways 2", "atoll group draw hierarchy --nodes 60 --group-size 5 --fanout 4 --dot plan.dot"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case [Key || #{name := Key} <- shape_options(), is_map_key(Key, Values)] of
        [] -> atoll_view_cli_where:on(looks, atoll, Values, fun(View) -> draw_running(atoll_view:groups(View), Values) end);
        [Key | _] -> {usage, [atoll_cli_options:flag(Key), " is for a SHAPE, and none is given"]}
    end;
run(Values, [Typed]) ->
    case lists:keyfind(Typed, 1, shapes()) of
        {_, Shape} -> draw_shape(Shape, Values);
        false -> {usage, ["SHAPE must be one of ", lists:join(", ", [Name || {Name, _} <- shapes()]), ", not \"", Typed, $"]}
    end.

shapes() ->
    [
        {"star", fun atoll_topology:star/2},
        {"ring", fun atoll_topology:ring/2},
        {"tree", fun atoll_topology:tree/2},
        {"hierarchy", fun atoll_topology:hierarchy/2}
    ].

-define(MAX_NODES, 1000).

shape_options() ->
    Whole = atoll_cli_read:whole(1, ?MAX_NODES),
    [
        #{name => nodes, value => "N", read => Whole, help => "the topology of so many nodes, n1 to nN"},
        #{name => group_size, value => "N", read => Whole, help => "in groups of so many nodes at least"},
        #{name => gateways, value => "N", read => Whole, help => "so many nodes join a group with others (1 unless told)"},
        #{name => fanout, value => "N", read => Whole,
          help => "so many groups are below one in a tree or a hierarchy (2 unless told)"}
    ].

files() ->
    [
        #{name => svg, value => "FILE", help => "draw who is connected with whom into this file"},
        #{name => dot, value => "FILE", help => "write groups and nodes for Graphviz into this file"}
    ].

draw_shape(_Shape, Values) when not is_map_key(nodes, Values); not is_map_key(group_size, Values) ->
    {usage, "a SHAPE needs --nodes and --group-size"};
draw_shape(Shape, #{nodes := Count} = Values) ->
    Nodes = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)],
    case Shape(Nodes, maps:with([group_size, gateways, fanout], Values)) of
        {ok, Topology} -> draw(Topology, [], [], Values);
        {error, Error} -> {usage, atoll_topology:format_error(Error)}
    end.

draw_running(#{groups := Groups, free := Free, silent := Silent}, Values) ->
    draw(atoll_topology:of_groups(Groups), Free, Silent, Values).

draw(Topology, Free, Silent, Values) ->
    Texts = [
        {svg, fun() -> atoll_sim_svg:svg("groups", picture(Topology, Free, Silent)) end},
        {dot, fun() -> atoll_topology:dot(Topology) end}
    ],
    case [{File, Make()} || {Key, Make} <- Texts, #{Key := File} <- [Values]] of
        [] ->
            atoll_cli_io:print([
                atoll_topology:text(Topology),
                [["free: ", listed(Free), $\n] || Free =/= []],
                [["silent: ", listed(Silent), $\n] || Silent =/= []]
            ]);
        Files ->
            write(Files)
    end.

%% As the simulator's drawings take it.
picture(Topology, Free, Silent) ->
    Groups = atoll_topology:groups(Topology),
    maps:from_list(
        [{Node, {alive, []}} || Node <- Free] ++
            [
                {Node, {alive, lists:usort([Peer || {_, Nodes} <- Groups, lists:member(Node, Nodes), Peer <- Nodes]) -- [Node]}}
             || Node <- atoll_topology:members(Topology)
            ] ++
            [{Node, {dead, []}} || Node <- Silent]
    ).

write([]) ->
    ok;
write([{File, Text} | Files]) ->
    case file:write_file(File, unicode:characters_to_binary(Text)) of
        ok ->
            ok = atoll_cli_io:say(["The groups are drawn in ", File, $.]),
            write(Files);
        {error, Reason} ->
            {unable, ["the drawing ", File, " could not be written: ", file:format_error(Reason)]}
    end.

listed(Nodes) -> lists:join($\s, [atom_to_list(Node) || Node <- Nodes]).
