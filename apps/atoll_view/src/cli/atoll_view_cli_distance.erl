%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of `atoll distance' have in common: nodes are measured, a network is read
%% from its file, and drawn.
-module(atoll_view_cli_distance).

-export([effort/0, drawings/0, measured/2, absent/1, network/1, started/0, args/2, draw/4, round_trip/1]).

-export_type([absent/0]).

-type means() :: atoll_dendrogram:measured().

-type absent() :: #{
    %% Did not answer, and had not measured all when the time was up.
    silent := [node()],
    late := [node()]
}.

%% @doc How much is measured.
-spec effort() -> [atoll_cli_options:option()].
effort() ->
    [
        #{name => batches, value => "N", default => "100", read => atoll_cli_read:whole(1, 100000),
          help => "the mean of so many batches counts"},
        #{name => messages, value => "N", default => "100", read => atoll_cli_read:whole(1, 100000),
          help => "so many messages go there and back in each"},
        #{name => deadline, value => "SECONDS", default => "300", read => atoll_cli_read:whole(1, 86400),
          help => "who has not measured all by then is left out"}
    ].

%% @doc Files to draw into.
-spec drawings() -> [atoll_cli_options:option()].
drawings() ->
    [
        #{name => svg, value => "FILE", help => "draw it into this file"},
        #{name => dot, value => "FILE", help => "write it for Graphviz into this file"}
    ].

%% @doc Measures between the nodes of a running cluster: all that did it, the mean round trips in
%% microseconds, and who is not among them. If there is no pair, it has failed.
-spec measured(atoll_cli_options:values(), fun(([node()], means(), absent()) -> atoll_cli_command:outcome())) ->
    atoll_cli_command:outcome().
measured(#{batches := Batches, messages := Messages, deadline := Seconds} = Values, Fun) ->
    atoll_view_cli_where:on(changes, atoll, Values, fun(View) ->
        ok = atoll_cli_io:say("While they measure, the nodes are connected all with all."),
        All = [Node || {Node, _} <- atoll_view:nodes(View)] -- atoll_view:without(View),
        #{pairs := Pairs, silent := Silent, late := Late} =
            atoll_view:round_trips(#{batches => Batches, messages => Messages, deadline_ms => Seconds * 1000}, View),
        ok = say_without(atoll_view:without(View)),
        Absent = #{silent => Silent, late => Late},
        case {lists:sort(All -- (Silent ++ Late)), All} of
            {[], _} -> {unable, ["nothing was measured: ", absent(Absent)]};
            {[Node], [_, _ | _]} -> {unable, ["nothing was measured, for there is only ", atom_to_list(Node), ": ", absent(Absent)]};
            {Nodes, _} -> Fun(Nodes, maps:map(fun(_, #{mean := Us}) -> Us end, Pairs), Absent)
        end
    end).

say_without([]) -> ok;
say_without(Nodes) -> atoll_cli_io:say(["Left out, for atoll does not run there: ", lists:join(", ", [atom_to_list(Node) || Node <- Nodes]), $.]).

%% @doc Who is not among those that measured, and why; nothing where nobody is absent.
-spec absent(absent()) -> unicode:chardata().
absent(#{silent := Silent, late := Late}) ->
    lists:join("; ", [
        [lists:join(", ", [atom_to_list(Node) || Node <- Nodes]), Why]
     || {Nodes, Why} <- [{Silent, " did not answer"}, {Late, " had not measured all when the time was up (--deadline)"}], Nodes =/= []
    ]).

%% @doc The network of a file; what is wrong with it is a wrong command line.
-spec network(string()) -> {ok, atoll_network:network()} | {error, atoll_cli_command:outcome()}.
network(File) ->
    case atoll_network_file:read(File) of
        {ok, Network} -> {ok, Network};
        {error, Error} -> {error, {usage, [File, ": ", atoll_network_file:format_error(Error)]}}
    end.

%% @doc The options by which nodes that are started know distances.
-spec started() -> [atoll_cli_options:option()].
started() ->
    [
        #{name => network, value => "FILE", is_read => true, help => "declare the network of this file, which has at least one of them, on the nodes"},
        #{name => distances, help => "the nodes measure round trips, and estimate all distances by them"}
    ].

%% @doc The arguments of such nodes. A network that has none of them is a mistake: it would tell
%% them nothing.
-spec args(atoll_cli_options:values(), [node()]) -> {ok, [string()]} | {error, atoll_cli_command:outcome()}.
args(#{distances := Distances} = Values, Nodes) ->
    Measuring = lists:append([["-atoll", "distances", "#{}"] || Distances]),
    case Values of
        #{network := File} ->
            case network(File) of
                {ok, Network} ->
                    case [Node || Node <- Nodes, atoll_network:is_node(Node, Network)] of
                        [] -> {error, {usage, ["--network: ", File, " has none of the nodes that are to be started, such as ", atom_to_list(hd(Nodes))]}};
                        _ -> {ok, ["-atoll", "network", lists:flatten(io_lib:format("~0tp", [{file, filename:absname(File)}])) | Measuring]}
                    end;
                {error, _} = Error ->
                    Error
            end;
        #{} ->
            {ok, Measuring}
    end.

%% @doc Draws into the files that were named, if any.
-spec draw(Title :: unicode:chardata(), atoll_tree_drawing:drawing(), atoll_tree_drawing:scale(), atoll_cli_options:values()) ->
    none | atoll_cli_command:outcome().
draw(Title, Drawing, Scale, Values) ->
    Texts = [
        {svg, fun() -> atoll_tree_drawing:svg(Title, {Drawing, Scale}) end},
        {dot, fun() -> atoll_tree_drawing:dot(Drawing) end}
    ],
    case [{File, Make()} || {Key, Make} <- Texts, #{Key := File} <- [Values]] of
        [] -> none;
        Files -> write(Files)
    end.

write([]) ->
    ok;
write([{File, Text} | Files]) ->
    case file:write_file(File, unicode:characters_to_binary(Text)) of
        ok ->
            ok = atoll_cli_io:say(["It is drawn in ", File, $.]),
            write(Files);
        {error, Reason} ->
            {unable, ["the drawing ", File, " could not be written: ", file:format_error(Reason)]}
    end.

%% @doc Microseconds as people read them.
-spec round_trip(number()) -> unicode:chardata().
round_trip(Us) when Us < 1000 -> [atoll_cli_table:decimal(Us), " \x{b5}s"];
round_trip(Us) -> [atoll_cli_table:decimal(Us / 1000), " ms"].
