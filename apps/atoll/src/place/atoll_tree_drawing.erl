%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Drawings of trees whose inner vertices stand at a value: a declared network by the
%% distance of the nodes that part there, a dendrogram by the round trip at which clusters
%% are joined. As text, for Graphviz (dot), and as a picture (SVG). Pure; the same tree gives the
%% same bytes.
%%
%% The root is at the left, leaves stand in lines at the right, in the order of the tree. In
%% the picture an inner vertex is as far left as its value says, on the scale that is given; its
%% label is left out where there is no room for it.
-module(atoll_tree_drawing).

-export([network/1, text/1, dot/1, svg/2]).

-export_type([drawing/0, scale/0]).

-type drawing() ::
    {leaf, Label :: unicode:chardata()}
    %% Value is drawn, Label written.
    | {inner, Label :: unicode:chardata(), Value :: number(), [drawing()]}.

-type scale() ::
    %% Equal steps for equal differences; for equal ratios.
    linear | logarithmic.

-define(ROW, 18).
-define(TOP, 60).
-define(MARGIN, 20).
-define(WIDTH, 620).
%% The width of a letter, more or less.
-define(LETTER, 7).
%% Room for the names of the leaves.
-define(NAMES, 280).

%% @doc A declared network, its inner vertices at the distances of the nodes that part there.
-spec network(atoll_network:network()) -> drawing().
network(Network) -> network(atoll_network:term(Network), 1.0).

network({node, Node}, _Distance) -> {leaf, atom_to_list(Node)};
network({network, Name, Subs}, Distance) -> {inner, name(Name), Distance, [network(Sub, Distance / 2) || Sub <- Subs]}.

name(Name) when is_atom(Name) -> atom_to_list(Name);
name(Name) -> Name.

%% @doc As lines of text.
-spec text(drawing()) -> unicode:chardata().
text({leaf, Label}) -> [Label, $\n];
text({inner, Label, _, Subs}) -> [Label, $\n, below(Subs, "")].

below([], _Indent) ->
    [];
below([Last], Indent) ->
    [Indent, "\x{2514}\x{2500} ", line(Last, [Indent, "   "])];
below([Sub | Subs], Indent) ->
    [Indent, "\x{251c}\x{2500} ", line(Sub, [Indent, "\x{2502}  "]) | below(Subs, Indent)].

line({leaf, Label}, _Indent) -> [Label, $\n];
line({inner, Label, _, Subs}, Indent) -> [Label, $\n, below(Subs, Indent)].

%% @doc For Graphviz.
-spec dot(drawing()) -> unicode:chardata().
dot(Drawing) ->
    {Lines, _} = dot(Drawing, 1),
    ["graph network {\n    rankdir=LR;\n", Lines, "}\n"].

dot({leaf, Label}, N) ->
    {[vertex(N, Label, ", shape=box")], N + 1};
dot({inner, Label, _, Subs}, N) ->
    {Lines, Next} = lists:foldl(
        fun(Sub, {Before, M}) ->
            {Lines, After} = dot(Sub, M),
            {[Before, Lines, io_lib:format("    v~b -- v~b;\n", [N, M])], After}
        end,
        {[], N + 1},
        Subs
    ),
    {[vertex(N, Label, ""), Lines], Next}.

vertex(N, Label, More) ->
    ["    v", integer_to_list(N), " [label=\"", [quoted(C) || C <- unicode:characters_to_list(Label)], $", More, "];\n"].

quoted($") -> "\\\"";
quoted($\\) -> "\\\\";
quoted(C) -> C.

%% @doc As a picture under this title.
-spec svg(Title :: unicode:chardata(), {drawing(), scale()}) -> unicode:chardata().
svg(Title, {Drawing, Scale}) ->
    Values = values(Drawing, []),
    X = across(Scale, Values),
    {_, Parts, Rows} = place(Drawing, none, X, 0),
    Height = ?TOP + max(1, Rows) * ?ROW + ?MARGIN,
    Left = -before(Drawing),
    Width = ?MARGIN + ?WIDTH + ?NAMES - Left,
    [
        io_lib:format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"~b 0 ~b ~b\" width=\"~b\" height=\"~b\" "
            "role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\">~n",
            [Left, Width, Height, Width, Height]
        ),
        ["<title>", escaped(Title), "</title>\n"],
        io_lib:format("<rect x=\"~b\" width=\"~b\" height=\"~b\" fill=\"#ffffff\"/>~n", [Left, Width, Height]),
        [io_lib:format("<text x=\"~b\" y=\"28\" font-size=\"16\" fill=\"#1b1b1b\">", [?MARGIN + Left]), escaped(Title), "</text>\n"],
        "<g fill=\"none\" stroke=\"#8a94a0\" stroke-width=\"1.2\">\n",
        [Line || {line, Line} <- Parts],
        "</g>\n<g font-size=\"12\" fill=\"#1b1b1b\">\n",
        [Text || {text, Text} <- Parts],
        "</g>\n</svg>\n"
    ].

%% Room for the label of the root, which stands left of all lines.
before({inner, Label, _, [_ | _]}) -> ?LETTER * string:length(Label) + 6;
before(_) -> 0.

values({leaf, _}, Values) -> Values;
values({inner, _, Value, Subs}, Values) -> lists:foldl(fun values/2, [Value | Values], Subs).

%% The largest value is at the left; leaves are at the right, where 0 would be.
across(linear, Values) ->
    Max = lists:max([0 | Values]),
    fun
        (_) when Max == 0 -> ?MARGIN;
        (Value) -> ?MARGIN + ?WIDTH * (1 - Value / Max)
    end;
across(logarithmic, Values) ->
    case [math:log(Value) || Value <- Values, Value > 0] of
        [] ->
            fun(_) -> ?MARGIN end;
        Logs ->
            Max = lists:max(Logs),
            %% A step to the right of the smallest, so that no vertex stands among the leaves.
            Span = 1.1 * (Max - lists:min(Logs)) + 0.5,
            fun
                (Value) when Value > 0 -> ?MARGIN + ?WIDTH * (Max - math:log(Value)) / Span;
                (_) -> ?MARGIN + ?WIDTH * 0.97
            end
    end.

%% Where it is joined to what is left of it, what is drawn, and the number of the next line. From
%% is where the vertex above stands.
place({leaf, Label}, _From, _X, Row) ->
    Y = ?TOP + Row * ?ROW,
    {{?MARGIN + ?WIDTH, Y}, [text(?MARGIN + ?WIDTH + 6, Y + 4, "start", Label)], Row + 1};
place({inner, Label, Value, []}, _From, X, Row) ->
    Y = ?TOP + Row * ?ROW,
    {{X(Value), Y}, [text(X(Value) + 6, Y + 4, "start", Label)], Row + 1};
place({inner, Label, Value, Subs}, From, X, Row) ->
    Left = X(Value),
    {Ends, Parts, Next} = lists:foldl(
        fun(Sub, {Es, Ps, R0}) ->
            {End, P, R} = place(Sub, Left, X, R0),
            {[End | Es], [P | Ps], R}
        end,
        {[], [], Row},
        Subs
    ),
    Ys = [Y || {_, Y} <- Ends],
    {Top, Bottom} = {lists:min(Ys), lists:max(Ys)},
    Middle = (Top + Bottom) / 2,
    {
        {Left, Middle},
        [{line, io_lib:format("<path d=\"M~ts ~ts H~ts\"/>~n", [n(Left), n(Y), n(Right)])} || {Right, Y} <- Ends] ++
            [{line, io_lib:format("<path d=\"M~ts ~tsV~ts\"/>~n", [n(Left), n(Top), n(Bottom)])}] ++
            label(Label, From, {Left, Middle}) ++ lists:append(lists:reverse(Parts)),
        Next
    }.

%% On the line that leads to it, if there is room: what is written over other lines nobody can read.
label(Label, none, {Left, Middle}) ->
    [text(Left - 6, Middle + 4, "end", Label)];
label(Label, From, {Left, Middle}) ->
    [text(Left - 4, Middle - 4, "end", Label) || Left - From > 8 + ?LETTER * string:length(Label)].

text(X, Y, Anchor, Label) ->
    {text, [
        io_lib:format("<text x=\"~ts\" y=\"~ts\" text-anchor=\"~ts\">", [n(X), n(Y), Anchor]), escaped(Label), "</text>\n"
    ]}.

n(Number) -> float_to_list(float(Number), [{decimals, 1}]).

escaped(Text) -> [escape(C) || C <- unicode:characters_to_list(Text)].

escape($<) -> "&lt;";
escape($>) -> "&gt;";
escape($&) -> "&amp;";
escape($") -> "&quot;";
%% No control character may stand in such a file.
escape(C) when C < 32 -> $\s;
escape(C) -> C.
