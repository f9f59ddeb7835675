%% SPDX-License-Identifier: Apache-2.0
%% @doc A frame: what has happened within 200 ms, as an object that a page draws and that a recording has on a line. Pure.
%%
%% Nodes are numbers there: a frame that names some for the first time has their names (`n'), and what does not change is said once. So each
%% reader has a writer of its own, and the lines of a recording only make sense from its beginning.
%%
%% The keys: `v' of the first frame, the version, 1; `t', milliseconds since the first one, and `at', the time of day then; `n', names of nodes, the first of them has the number after
%% the last one before; `g', all groups, `[[Name, [Node...]]...]', if they are others; `d', the nodes that are lost, if they are others; `e',
%% `[[From, To, Count, Bytes]...]'; `m', what is counted, `messages' or `packets'; `s', which part of the time was traced, by
%% node, where that is not all; `l', by node: `q' run queues, `x' migrations `[[From, To, Times]...]', `b' mailboxes, and once
%% `c', where its schedulers are.
-module(atoll_flow_frame).

-export([new/0, object/2, joined/2]).

-export_type([frame/0, writer/0]).

-type frame() :: #{
    %% System time in milliseconds.
    at := integer(),
    groups := [{Group :: term(), [node()]}],
    %% All that are observed.
    nodes := [node()],
    down := [node()],
    edges := [{From :: node(), To :: node(), Count :: number(), Bytes :: number()}],
    counts := messages | packets,
    shares := [{node(), float()}],
    loads := [{node(), atoll_flow_probe:load()}]
}.

-record(writer, {
    begun = none :: none | integer(),
    numbers = #{} :: #{node() => non_neg_integer()},
    groups = none :: none | [{term(), [node()]}],
    down = none :: none | [node()],
    counts = none :: none | messages | packets,
    shown = #{} :: #{node() => []}
}).

-opaque writer() :: #writer{}.

%% @doc Nothing was written.
-spec new() -> writer().
new() -> #writer{}.

%% @doc Two that follow each other, as one.
-spec joined(frame(), frame()) -> frame().
joined(#{edges := Before, loads := LoadsBefore}, #{edges := Edges, loads := Loads} = Frame) ->
    Sums = lists:foldl(fun({From, To, Count, Bytes}, Acc) -> maps:update_with({From, To}, fun({C, B}) -> {C + Count, B + Bytes} end, {Count, Bytes}, Acc) end, #{}, Before ++ Edges),
    Migrations = fun(Node, Now) ->
        Had = [Is || {Its, #{migrations := Some}} <- LoadsBefore, Its =:= Node, Is <- Some],
        All = lists:foldl(fun({From, To, N}, Acc) -> maps:update_with({From, To}, fun(Is) -> Is + N end, N, Acc) end, #{}, Had ++ Now),
        [{From, To, N} || {{From, To}, N} <- lists:sort(maps:to_list(All))]
    end,
    Frame#{
        edges := [{From, To, Count, Bytes} || {{From, To}, {Count, Bytes}} <- lists:sort(maps:to_list(Sums))],
        loads := [{Node, Load#{migrations := Migrations(Node, Now)}} || {Node, #{migrations := Now} = Load} <- Loads]
    }.

%% @doc The object of a frame.
-spec object(frame(), writer()) -> {atoll_cli_json:object(), writer()}.
object(#{at := At, groups := Groups, nodes := Nodes, down := Down, edges := Edges, counts := Counts, shares := Shares, loads := Loads}, #writer{begun = Begun0, numbers = Known} = Writer) ->
    Begun = case Begun0 of none -> At; _ -> Begun0 end,
    Named = lists:append([Nodes, [N || {_, Its} <- Groups, N <- Its], Down, [N || {From, To, _, _} <- Edges, N <- [From, To]], [N || {N, _} <- Shares], [N || {N, _} <- Loads]]),
    New = [Node || Node <- lists:usort(Named), not is_map_key(Node, Known)],
    Numbers = maps:merge(Known, maps:from_list(lists:zip(New, lists:seq(map_size(Known), map_size(Known) + length(New) - 1)))),
    N = fun(Node) -> maps:get(Node, Numbers) end,
    {
        {lists:append([
            [{v, 1} || Begun0 =:= none], [{t, max(0, At - Begun)}], [{at, At} || Begun0 =:= none],
            [{n, [atom_to_binary(Node) || Node <- New]} || New =/= []],
            [{g, [[text(Group), [N(Node) || Node <- Its]] || {Group, Its} <- Groups]} || Groups =/= Writer#writer.groups],
            [{d, [N(Node) || Node <- Down]} || Down =/= Writer#writer.down],
            [{m, Counts} || Counts =/= Writer#writer.counts],
            [{e, [[N(From), N(To), rounded(Count), rounded(Bytes)] || {From, To, Count, Bytes} <- Edges]} || Edges =/= []],
            [{s, [[N(Node), rounded(Share * 1000) / 1000] || {Node, Share} <- Shares]} || Shares =/= []],
            [{l, [load(N(Node), Load, is_map_key(Node, Writer#writer.shown)) || {Node, Load} <- Loads]} || Loads =/= []]
        ])},
        Writer#writer{begun = Begun, numbers = Numbers, groups = Groups, down = Down, counts = Counts, shown = maps:merge(Writer#writer.shown, maps:from_keys([Node || {Node, _} <- Loads], []))}
    }.

text(Group) when is_atom(Group) -> atom_to_binary(Group);
text(Group) -> unicode:characters_to_binary(io_lib:format("~0tp", [Group])).

rounded(Number) -> round(Number).

load(Node, #{queues := Queues, migrations := Migrations, mailboxes := Mailboxes, topology := Topology}, IsShown) ->
    {lists:append([
        [{n, Node}, {q, Queues}, {x, [[From, To, Times] || {From, To, Times} <- Migrations]}, {b, [[Name, Length] || {Name, Length} <- Mailboxes]}],
        [{c, [[Chip, Core, Thread] || {Chip, Core, Thread} <- atoll_flow_chips:places(length(Queues), Topology)]} || not IsShown]
    ])}.
