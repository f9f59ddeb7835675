%% SPDX-License-Identifier: Apache-2.0
%% @doc The overlay at a moment as a picture (SVG): nodes, and the links between
%% neighbours.
%%
%% The largest part of the living nodes has one colour and every island another.
%% Dead nodes are hollow; those that nobody names any more stand in rows below.
%% Paused nodes have an orange ring. A link that only one end knows is dashed and
%% red. Up to 400 nodes are laid out by forces (Fruchterman and Reingold, 1991),
%% more stand on a circle, part by part. Up to 60 have their names beside them, and
%% a viewer shows the name of any under the pointer.
%%
%% The same picture gives the same bytes: the layout begins with a seed of its
%% own, uses only operations whose results IEEE 754 fixes, and is bounded in time.
-module(atoll_sim_svg).

-export([svg/3, svg/2]).

-define(SIDE, 900).
-define(MARGIN, 40).
-define(TOP, 96).
-define(MAX_FORCES, 400).
-define(MAX_LABELS, 60).
%% Pairs of nodes looked at in a layout, all rounds together.
-define(MAX_PAIRS, 12000000).
-define(ISLANDS, 6).
%% How far nodes push, in lengths of a link: parts stay near each other.
-define(REACH, 4.0).

%% @doc The picture of a moment, see {@link atoll_sim_trace:state_at/2}.
-spec svg(atoll_sim_trace:header(), Ms :: non_neg_integer(), atoll_sim_trace:picture()) -> iolist().
svg(Header, Ms, Known) ->
    Title = [
        [[atoll_sim_term:text(Strategy), " "] || #{strategy := Strategy} <- [Header]],
        io_lib:format("at ~b.~3..0b s", [Ms div 1000, Ms rem 1000]),
        [[", seed ", integer_to_list(Seed)] || #{seed := Seed} <- [Header], is_integer(Seed)]
    ],
    svg(Title, Known).

%% @doc The picture of nodes and links that are not a simulation's, under this title.
-spec svg(Title :: iodata(), atoll_sim_trace:picture()) -> iolist().
svg(Title, Known) ->
    %% Who is named and was never heard of counts as dead.
    Strange = [{Peer, {dead, []}} || {_, Peers} <- maps:values(Known), Peer <- Peers],
    Picture = maps:merge(maps:from_list(Strange), Known),
    Nodes = [
        {Node, Status, Peers}
     || {_, Node, {Status, Peers}} <- lists:sort([
            {atoll_sim_term:natural(N), N, S}
         || {N, S} <- maps:to_list(Picture)
        ])
    ],
    Graph = [{Node, Peers} || {Node, Status, Peers} <- Nodes, Status =/= dead],
    Parts = atoll_sim_graph:components(Graph),
    Links = links(Graph),
    Named = maps:from_keys([Node || {A, B, _} <- Links, Node <- [A, B]], []),
    Dead = [Node || {Node, dead, _} <- Nodes],
    Ghosts = [Node || Node <- Dead, is_map_key(Node, Named)],
    Gone = [Node || Node <- Dead, not is_map_key(Node, Named)],
    Drawn = lists:append(Parts) ++ Ghosts,
    {Places, Radius} = layout(Drawn, Links),
    Rows = rows(length(Gone)),
    Height = ?TOP + ?SIDE + Rows * 18 + 30 * min(1, Rows),
    Colours = maps:from_list([
        {Node, colour(I)}
     || {I, Part} <- lists:zip(lists:seq(0, length(Parts) - 1), Parts), Node <- Part
    ]),
    [
        io_lib:format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ~b ~b\" width=\"~b\" height=\"~b\" "
            "role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\">~n",
            [?SIDE, Height, ?SIDE, Height]
        ),
        style(length(Drawn), length(Links)),
        "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
        title(Title, Graph, Parts, Dead, Nodes, Links),
        drawn_links(Links, Places, length(Drawn)),
        [node_at(N, S, Places, Radius, Colours) || {N, S, _} <- Nodes, is_map_key(N, Places)],
        [name_at(N, Places, Radius) || length(Drawn) =< ?MAX_LABELS, {N, _, _} <- Nodes, is_map_key(N, Places)],
        gone(Gone),
        "</svg>\n"
    ].

%% Links, each once: both ends know it, or only the first one does.
links(Graph) ->
    One = maps:from_keys(atoll_sim_graph:one_sided(Graph), []),
    Numbers = maps:from_list(lists:zip([Node || {Node, _} <- Graph], lists:seq(1, length(Graph)))),
    [
        {Node, Peer, Kind}
     || {Node, Peers} <- Graph,
        Peer <- Peers,
        Kind <- [
            case is_map_key({Node, Peer}, One) of
                true -> one;
                false -> both
            end
        ],
        Kind =:= one orelse map_get(Node, Numbers) < map_get(Peer, Numbers)
    ].

colour(0) -> "main";
colour(N) -> ["isle", integer_to_list((N - 1) rem ?ISLANDS)].

%% Layout

layout([], _Links) ->
    {#{}, 0};
layout(Nodes, _Links) when length(Nodes) > ?MAX_FORCES ->
    Radius = max(1.2, min(4.0, 90 / math:sqrt(length(Nodes)))),
    {circle(Nodes, 2.4 * Radius), Radius};
layout(Nodes, Links) ->
    Count = length(Nodes),
    {fit(Nodes, forces(Nodes, Links)), max(4.5, min(9.0, 85 / math:sqrt(Count)))}.

%% On as many rings as it takes to keep nodes this far apart.
circle(Nodes, Apart) ->
    Centre = ?SIDE / 2,
    Outer = Centre - ?MARGIN,
    Count = length(Nodes),
    Rings = ceil(Count * Apart / (1.7 * math:pi() * Outer)),
    maps:from_list([
        {Node, {Centre + Radius * math:sin(A), ?TOP + Centre - Radius * math:cos(A)}}
     || {I, Node} <- lists:zip(lists:seq(0, Count - 1), Nodes),
        A <- [2 * math:pi() * I / Count],
        Radius <- [Outer - (I rem Rings) * Apart]
    ]).

%% Nodes push each other away, links pull together, and all are drawn to the middle
%% a little, so that islands stay in sight. Coordinates are in lengths of a link.
forces(Nodes, Links) ->
    Count = length(Nodes),
    Numbers = maps:from_list(lists:zip(Nodes, lists:seq(1, Count))),
    Side = math:sqrt(Count),
    {Start, _} = lists:mapfoldl(
        fun(I, R0) ->
            {X, R1} = rand:uniform_s(R0),
            {Y, R2} = rand:uniform_s(R1),
            {{I, X * Side, Y * Side}, R2}
        end,
        rand:seed_s(exsss, 1),
        lists:seq(1, Count)
    ),
    Peers = lists:foldl(
        fun({A, B, _}, Map) ->
            {I, J} = {map_get(A, Numbers), map_get(B, Numbers)},
            add_peer(J, I, add_peer(I, J, Map))
        end,
        #{},
        Links
    ),
    Rounds = max(20, min(300, ?MAX_PAIRS div (Count * Count))),
    settle(Rounds, Rounds, Side, Peers, Start).

add_peer(I, J, Map) ->
    maps:update_with(I, fun(Js) -> [J | Js] end, [J], Map).

settle(0, _Rounds, _Side, _Peers, Points) ->
    Points;
settle(Left, Rounds, Side, Peers, Points) ->
    Table = list_to_tuple(Points),
    %% The longest step gets shorter, so that all come to rest.
    Step = 0.15 * Side * Left / Rounds + 0.01,
    Middle = Side / 2,
    Next = [
        begin
            {Px, Py} = push(Points, I, X, Y, 0.0, 0.0),
            {Lx, Ly} = pull(maps:get(I, Peers, []), Table, X, Y, 0.0, 0.0),
            Gravity = 0.06,
            Dx = Px + Lx + (Middle - X) * Gravity,
            Dy = Py + Ly + (Middle - Y) * Gravity,
            Length = math:sqrt(Dx * Dx + Dy * Dy) + 1.0e-9,
            Scale = min(Length, Step) / Length,
            {I, X + Dx * Scale, Y + Dy * Scale}
        end
     || {I, X, Y} <- Points
    ],
    settle(Left - 1, Rounds, Side, Peers, Next).

push([], _I, _X, _Y, Fx, Fy) ->
    {Fx, Fy};
push([{I, _, _} | Points], I, X, Y, Fx, Fy) ->
    push(Points, I, X, Y, Fx, Fy);
push([{_, Px, Py} | Points], I, X, Y, Fx, Fy) ->
    Dx = X - Px,
    Dy = Y - Py,
    case Dx * Dx + Dy * Dy of
        Square when Square < ?REACH * ?REACH ->
            Force = 1.0 / (Square + 0.01) - 1.0 / (?REACH * ?REACH),
            push(Points, I, X, Y, Fx + Dx * Force, Fy + Dy * Force);
        _ ->
            push(Points, I, X, Y, Fx, Fy)
    end.

pull([], _Table, _X, _Y, Fx, Fy) ->
    {Fx, Fy};
pull([J | Js], Table, X, Y, Fx, Fy) ->
    {_, Px, Py} = element(J, Table),
    Dx = Px - X,
    Dy = Py - Y,
    Length = math:sqrt(Dx * Dx + Dy * Dy),
    pull(Js, Table, X, Y, Fx + Dx * Length, Fy + Dy * Length).

%% Into the frame.
fit(Nodes, Points) ->
    Xs = [X || {_, X, _} <- Points],
    Ys = [Y || {_, _, Y} <- Points],
    {MinX, MaxX, MinY, MaxY} = {lists:min(Xs), lists:max(Xs), lists:min(Ys), lists:max(Ys)},
    Room = ?SIDE - 2 * ?MARGIN,
    Scale = Room / max(1.0e-9, max(MaxX - MinX, MaxY - MinY)),
    Place = fun(V, Min, Max) -> ?SIDE / 2 + (V - (Min + Max) / 2) * min(Scale, 160.0) end,
    maps:from_list([
        {Node, {Place(X, MinX, MaxX), ?TOP + Place(Y, MinY, MaxY)}}
     || {Node, {_, X, Y}} <- lists:zip(Nodes, Points)
    ]).

%% Drawing

drawn_links(Links, Places, Count) ->
    [
        ["<g class=\"", Class, "\">\n", [path(A, B, Places, Count) || {A, B, K} <- Links, K =:= Kind], "</g>\n"]
     || {Kind, Class} <- [{both, "link"}, {one, "half"}]
    ].

path(A, B, Places, Count) when Count > ?MAX_FORCES ->
    %% Bent to the middle, so that the shape of the whole shows.
    {X1, Y1} = map_get(A, Places),
    {X2, Y2} = map_get(B, Places),
    {Cx, Cy} = {?SIDE / 2, ?TOP + ?SIDE / 2},
    {Mx, My} = {Cx + ((X1 + X2) / 2 - Cx) * 0.5, Cy + ((Y1 + Y2) / 2 - Cy) * 0.5},
    ["<path d=\"M", point(X1, Y1), "Q", point(Mx, My), $\s, point(X2, Y2), "\"/>\n"];
path(A, B, Places, _Count) ->
    {X1, Y1} = map_get(A, Places),
    {X2, Y2} = map_get(B, Places),
    ["<path d=\"M", point(X1, Y1), "L", point(X2, Y2), "\"/>\n"].

node_at(Node, Status, Places, Radius, Colours) ->
    {X, Y} = map_get(Node, Places),
    Class =
        case Status of
            dead -> "dead";
            paused -> [map_get(Node, Colours), " paused"];
            alive -> map_get(Node, Colours)
        end,
    circle(Class, X, Y, number(Radius), Node).

circle(Class, X, Y, Radius, Node) ->
    [
        "<circle class=\"", Class, "\" cx=\"", number(X), "\" cy=\"", number(Y), "\" r=\"", Radius,
        "\"><title>", escaped(Node), "</title></circle>\n"
    ].

%% Above all nodes, so that none hides it.
name_at(Node, Places, Radius) ->
    {X, Y} = map_get(Node, Places),
    [
        "<text class=\"name\" x=\"", number(X + Radius + 3), "\" y=\"", number(Y + 4), "\">", escaped(Node),
        "</text>\n"
    ].

%% Rows of those that are dead and forgotten.
-define(PER_ROW, 80).
-define(MAX_GONE, 1600).

rows(Gone) -> (min(Gone, ?MAX_GONE) + ?PER_ROW - 1) div ?PER_ROW.

gone([]) ->
    [];
gone(Gone) ->
    Shown = lists:sublist(Gone, ?MAX_GONE),
    Step = (?SIDE - 2 * ?MARGIN) / ?PER_ROW,
    [
        io_lib:format("<text class=\"small\" x=\"~b\" y=\"~b\">dead and named by nobody: ~b</text>~n", [
            ?MARGIN, ?TOP + ?SIDE + 8, length(Gone)
        ])
        | [
            circle(
                "dead",
                ?MARGIN + 4 + Step * (I rem ?PER_ROW),
                ?TOP + ?SIDE + 24 + 18 * (I div ?PER_ROW),
                "3.5",
                Node
            )
         || {I, Node} <- lists:zip(lists:seq(0, length(Shown) - 1), Shown)
        ]
    ].

%% Title and legend

title(Text, Graph, Parts, Dead, Nodes, Links) ->
    Paused = length([paused || {_, paused, _} <- Nodes]),
    Half = length([one || {_, _, one} <- Links]),
    Islands = max(0, length(Parts) - 1),
    Largest = length(hd(Parts ++ [[]])),
    Counts = io_lib:format("~s alive, ~b links, ~s connected", [
        integer_to_list(length(Graph)), length(Links), percent(Largest, length(Graph))
    ]),
    Legend = [{"main", plural(Largest, "node in the largest part", "nodes in the largest part")}] ++
        [{"isle0", plural(Islands, "island", "islands")} || Islands > 0] ++
        [{"main paused", [integer_to_list(Paused), " paused"]} || Paused > 0] ++
        [{"dead", [integer_to_list(length(Dead)), " dead"]} || Dead =/= []] ++
        [{half, plural(Half, "link known at one end", "links known at one end")} || Half > 0],
    [
        "<title>", escape(Text), "</title>\n",
        io_lib:format("<text class=\"title\" x=\"~b\" y=\"36\">", [?MARGIN]), escape(Text),
        "<tspan class=\"small\" dx=\"14\">", Counts, "</tspan></text>\n",
        legend(Legend, ?MARGIN)
    ].

legend([], _X) ->
    [];
legend([{Class, Words} | Entries], X) ->
    Text = iolist_to_binary(Words),
    [
        case Class of
            half -> io_lib:format("<path class=\"half\" d=\"M~b,62h18\"/>", [X]);
            _ -> io_lib:format("<circle class=\"~s\" cx=\"~b\" cy=\"62\" r=\"6\"/>", [Class, X + 6])
        end,
        io_lib:format("<text class=\"small\" x=\"~b\" y=\"66\">~s</text>~n", [X + 24, Text])
        %% Letters have some seven units.
        | legend(Entries, X + 44 + 7 * byte_size(Text))
    ].

plural(1, One, _Many) -> ["1 ", One];
plural(N, _One, Many) -> [integer_to_list(N), " ", Many].

%% Whole is said only of the whole.
percent(Part, Whole) when Part =:= Whole -> "100 %";
percent(Part, Whole) -> io_lib:format("~.1f %", [min(99.9, 100 * Part / Whole)]).

style(Count, Links) ->
    %% Many links must not become a blot.
    Faint =
        case Count > ?MAX_FORCES of
            true -> max(0.06, min(0.45, 550 / (Links + 1)));
            false -> 0.75
        end,
    [
        "<style>\n",
        ".paper{fill:#ffffff}.title{fill:#1b1f24;font-size:20px;font-weight:600}\n",
        ".small,.name{fill:#4a525b;font-size:13px;font-weight:400}.name{font-size:12px;stroke:#ffffff;stroke-width:3;paint-order:stroke;stroke-opacity:0.8}\n",
        ".link path{stroke:#9aa5b1;stroke-width:1.2;fill:none;opacity:", float_to_binary(float(Faint), [{decimals, 2}]), "}\n",
        ".half path,path.half{stroke:#d1242f;stroke-width:1.4;stroke-dasharray:5 3;fill:none}\n",
        "circle{stroke:#ffffff;stroke-width:", case Count > ?MAX_FORCES of true -> "0"; false -> "1" end, "}\n",
        ".main{fill:#2f6fbf}.isle0{fill:#0f9d83}.isle1{fill:#8a4fd0}.isle2{fill:#b5651d}.isle3{fill:#c2388e}"
        ".isle4{fill:#6b8e23}.isle5{fill:#00839b}\n",
        ".dead{fill:#ffffff;stroke:#8b949e;stroke-width:1.4}.paused{stroke:#f28c18;stroke-width:3.5}\n",
        "@media (prefers-color-scheme:dark){\n",
        ".paper{fill:#0f1419}.title{fill:#e6edf3}.small,.name{fill:#aab4be}\n",
        ".link path{stroke:#5b6672}.half path,path.half{stroke:#ff6b6b}circle{stroke:#0f1419}\n",
        ".main{fill:#5c9df0}.isle0{fill:#35c9a9}.isle1{fill:#b48af5}.isle2{fill:#dd9350}.isle3{fill:#ee74bf}"
        ".isle4{fill:#a5c84f}.isle5{fill:#41c0d8}\n",
        ".dead{fill:#0f1419;stroke:#6e7781}.name{stroke:#0f1419}.paused{stroke:#ffab40}\n}\n",
        "</style>\n"
    ].

%% Text

escaped(Node) -> escape(atom_to_binary(Node)).

escape(Text) ->
    [
        case Char of
            $< -> "&lt;";
            $> -> "&gt;";
            $& -> "&amp;";
            $" -> "&quot;";
            _ when Char < 32 -> "?";
            _ -> <<Char/utf8>>
        end
     || Char <- unicode:characters_to_list(iolist_to_binary(Text))
    ].

point(X, Y) -> [number(X), $,, number(Y)].

number(N) -> float_to_binary(float(N), [{decimals, 1}]).
