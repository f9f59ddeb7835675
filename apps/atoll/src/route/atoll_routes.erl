%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The routes that a directory gives: from one node to another, over cliques that
%% are joined by gateways, and over known links. Pure.
%%
%% A route is the whole list of nodes from the one end to the other. It is a shortest one, and
%% no node stands in it twice: so whoever follows it cannot go in a circle, whatever has
%% changed meanwhile. Between two nodes that follow each other stands a clique that both are
%% in, a link that one of them tells of, or, at the start, a link of the caller's own.
%%
%% Of several shortest ones one is drawn by the hash of the two ends, a salt, and who would be next:
%% each pair of ends has its own, gateways share the pairs about equally, and when a
%% gateway is gone only its pairs move. Other routes ({@link routes/5}) have no node between
%% the ends in common with those before them, as long as there are such.
%%
%% Who relays for whom is respected ({@link atoll_directory_place}). Where that is what
%% stands in the way the reason says whose rule it is.
%%
%% The search goes in layers from the start, and touches each clique and each bridge at
%% most once, and no node that nobody can pass through.
%%
%% Not promised: that a route works. The directory may be behind, and a link may be gone: who
%% finds so asks again with that node among those to avoid.
-module(atoll_routes).

-export([find/4, routes/5, explain/5, format_error/1]).

-export_type([route/0, options/0, error/0, explanation/0, via/0]).

-type route() :: [node(), ...].
%% Both ends are in it.

-type options() :: #{
    %% Nodes that are not to be passed through.
    avoid => [node()],
    %% Another one draws others of the shortest routes.
    salt => term(),
    %% How many hops it may have.
    max_hops => pos_integer(),
    %% The nodes that the start has a link with: its first hop is one of these. Unless
    %% told, it is linked as the directory says.
    linked => [node()]
}.

-type via() :: {clique, atoll_directory_place:clique()} | link.
%% Why two nodes can talk.

-type error() ::
    {same, node()}
    | {unknown, node()}
    | {no_route, From :: node(), To :: node()}
    | {too_far, From :: node(), To :: node(), MaxHops :: pos_integer()}
    %% Only over these, which were to be avoided.
    | {avoided, From :: node(), To :: node(), [node()]}
    %% Only over these, who do not relay for either end.
    | {refused, From :: node(), To :: node(), [{node(), atoll_directory_place:relays()}]}.

-type explanation() :: #{
    route := route(),
    %% For each two nodes of it that follow each other, with how many nodes, this one
    %% among them, would have done as well in the first one's place.
    hops := [#{from := node(), to := node(), via := via(), choices := pos_integer()}],
    %% Others, the best first.
    alternatives := [route()]
}.

-record(search, {
    from :: node(),
    to :: node(),
    %% With the defaults; the hops have no limit only where it is asked whether that is the reason.
    options :: #{salt := term(), max_hops := pos_integer() | infinity, _ => _},
    table :: atoll_directory_table:table(),
    %% Cliques of the end, by number, and its own links.
    ends :: #{atoll_directory_table:clique_number() => []},
    end_links :: #{node() => []},
    %% Of cliques the members that the end says it is linked with: they may not say so.
    doors :: #{atoll_directory_table:clique_number() => [node()]},
    %% Names of the cliques of both ends.
    names :: #{atoll_directory_place:clique() => []},
    linked :: any | #{node() => []},
    avoid :: #{node() => []},
    %% Whether rules of gateways count; whether the two ends may talk directly.
    rules = true :: boolean(),
    direct = true :: boolean(),
    %% What is known by the layers so far: of a clique those who entered it first, of a
    %% node how it was found first.
    entered = #{} :: #{atoll_directory_table:clique_number() => [node()]},
    found = #{} :: #{node() => [how()]}
}).

-type how() ::
    %% Over a clique, from whoever entered that; or over a link from this node.
    atoll_directory_table:clique_number() | {link, node()}
    %% Over a clique from this node, whoever else has entered it.
    | {over, node(), atoll_directory_table:clique_number() | {link, node()}}.

-define(MAX_HOPS, 16).

%% @doc The route from one node to another.
-spec find(From :: node(), To :: node(), options(), atoll_directory_table:table()) ->
    {ok, route()} | {error, error()}.
find(From, To, Options, Table) ->
    case look(From, To, Options, Table) of
        {ok, Steps, _Search} -> {ok, route(Steps, To)};
        {error, _} = Error -> Error
    end.

%% @doc Up to so many different routes. Each next one is as short as one can be that passes
%% through nobody whom those before it pass through; when there is none any more, shortest ones that
%% share some.
-spec routes(From :: node(), To :: node(), pos_integer(), options(), atoll_directory_table:table()) ->
    {ok, [route(), ...]} | {error, error()}.
routes(From, To, Count, Options, Table) ->
    case look(From, To, Options, Table) of
        {ok, Steps, Search} ->
            First = route(Steps, To),
            {ok, lists:sublist([First | others(Count, First, Search)], Count)};
        {error, _} = Error ->
            Error
    end.

%% @doc The route, why each of its hops is one, and up to so many other routes.
-spec explain(From :: node(), To :: node(), pos_integer(), options(), atoll_directory_table:table()) ->
    {ok, explanation()} | {error, error()}.
explain(From, To, Count, Options, Table) ->
    case look(From, To, Options, Table) of
        {ok, Steps, Search} ->
            Route = route(Steps, To),
            {ok, #{
                route => Route,
                hops => [
                    #{from => Node, to => Next, via => via(How, Table), choices => Choices}
                 || {{Node, How, Choices}, Next} <- lists:zip(Steps, tl(Route))
                ],
                alternatives => others(Count + 1, Route, Search)
            }};
        {error, _} = Error ->
            Error
    end.

via({link, _}, _Table) -> link;
via(Clique, Table) -> {clique, atoll_directory_table:name(Clique, Table)}.

route(Steps, To) ->
    [Node || {Node, _, _} <- Steps] ++ [To].

%% The first one is there already.
others(1, _First, _Search) ->
    [];
others(Count, First, Search) ->
    case apart(Count - 1, First, Search) of
        Apart when length(Apart) < Count - 1 ->
            Apart ++ lists:sublist(salted(Count, [First | Apart], Search), Count - 1 - length(Apart));
        Apart ->
            Apart
    end.

apart(0, _Last, _Search) ->
    [];
apart(Count, Last, #search{to = To, avoid = Avoid} = Search0) ->
    Between = lists:droplast(tl(Last)),
    Search = Search0#search{avoid = maps:merge(Avoid, maps:from_keys(Between, [])), direct = false},
    case layers(Search) of
        {ok, Steps, _} ->
            Route = route(Steps, To),
            [Route | apart(Count - 1, Route, Search)];
        _ ->
            []
    end.

%% Others among the shortest, by other draws.
salted(Count, Known, #search{to = To} = Search) ->
    case layers(Search) of
        {ok, _, Found} ->
            Routes = [route(steps(To, {more, I}, [], Found), To) || I <- lists:seq(1, 4 * Count)],
            lists:usort(Routes) -- Known;
        _ ->
            []
    end.

%% Looking

look(Node, Node, _Options, _Table) ->
    {error, {same, Node}};
look(From, To, Options, Table) ->
    Linked =
        case Options of
            #{linked := Nodes} -> maps:from_keys(Nodes, []);
            #{} -> any
        end,
    case {standing(From, Linked, Table), atoll_directory_table:standing(To, Table)} of
        {unknown, _} ->
            {error, {unknown, From}};
        {Start, unknown} when is_map_key(To, Linked) ->
            look(From, Start, To, {[], all, []}, Linked, Options, Table);
        {_, unknown} ->
            {error, {unknown, To}};
        {Start, End} ->
            look(From, Start, To, End, Linked, Options, Table)
    end.

%% A start that says what it is linked with need not be known.
standing(Node, Linked, Table) ->
    case {atoll_directory_table:standing(Node, Table), Linked} of
        {unknown, #{}} -> {[], all, []};
        {Standing, _} -> Standing
    end.

look(From, {StartCliques, _, _}, To, {EndCliques, _, EndLinks}, Linked, Options, Table) ->
    Search = #search{
        from = From,
        to = To,
        options = maps:merge(#{salt => none, max_hops => ?MAX_HOPS}, Options),
        table = Table,
        ends = maps:from_keys(EndCliques, []),
        end_links = maps:from_keys(EndLinks, []),
        doors = doors(EndLinks, Table),
        names = maps:from_keys([atoll_directory_table:name(C, Table) || C <- StartCliques ++ EndCliques], []),
        linked = Linked,
        avoid = maps:from_keys(maps:get(avoid, Options, []), [])
    },
    case layers(Search) of
        {ok, _, _} = Found -> Found;
        _ -> {error, why(Search)}
    end.

doors(Links, Table) ->
    maps:groups_from_list(fun({Clique, _}) -> Clique end, fun({_, Node}) -> Node end, [
        {Clique, Node}
     || Node <- Links,
        {Cliques, _, _} <- [atoll_directory_table:standing(Node, Table)],
        Clique <- Cliques
    ]).

%% What would have to be otherwise.
why(#search{from = From, to = To, options = #{max_hops := Max} = Options, avoid = Avoid, table = Table} = Search) ->
    case {layers(Search#search{rules = false}), layers(Search#search{avoid = #{}})} of
        {{ok, Steps, Free}, _} ->
            Refusing = [Node || {Node, _, _} <- tl(Steps), not relays(Node, Free#search{rules = true})],
            {refused, From, To, [{Node, element(2, atoll_directory_table:standing(Node, Table))} || Node <- Refusing]};
        {_, {ok, Steps, _}} ->
            {avoided, From, To, [Node || {Node, _, _} <- tl(Steps), is_map_key(Node, Avoid)]};
        {_, _} ->
            %% No number is above an atom.
            case layers(Search#search{options = Options#{max_hops := infinity}}) of
                {ok, _, _} -> {too_far, From, To, Max};
                _ -> {no_route, From, To}
            end
    end.

%% One layer after the other, until one has somebody who can talk to the end.
-spec layers(#search{}) -> {ok, [{node(), how(), Choices :: pos_integer()}, ...], #search{}} | too_far | none.
layers(#search{from = From} = Search) ->
    layer([From], 1, Search#search{entered = #{}, found = #{From => []}}).

layer([], _Hops, _Search) ->
    none;
layer(_Nodes, Hops, #search{options = #{max_hops := Max}}) when Hops > Max ->
    too_far;
layer(Nodes, Hops, #search{to = To, found = Found} = Search0) ->
    Standings = [{Node, standing(Node, Search0)} || Node <- Nodes],
    case lists:append([last(Node, Standing, Search0) || {Node, Standing} <- Standings]) of
        [] ->
            {Next, Search} = spread(Standings, Search0),
            layer(Next, Hops + 1, Search);
        Last ->
            %% A clique of the end may have been entered before, by somebody who was not to talk to it.
            Search = Search0#search{found = Found#{To => [{over, Node, How} || {Node, How} <- Last]}},
            #{salt := Salt} = Search#search.options,
            {ok, steps(To, Salt, [], Search), Search}
    end.

standing(Node, #search{table = Table}) ->
    case atoll_directory_table:standing(Node, Table) of
        unknown -> {[], all, []};
        Standing -> Standing
    end.

%% How a node can talk to the end, if it can.
last(From, _Standing, #search{from = From, direct = false}) ->
    [];
last(From, {Cliques, _, _}, #search{from = From, to = To, linked = #{} = Linked, ends = Ends}) ->
    case {is_map_key(To, Linked), [C || C <- Cliques, is_map_key(C, Ends)]} of
        {false, _} -> [];
        {true, []} -> [{From, {link, From}}];
        {true, Common} -> [{From, C} || C <- Common]
    end;
last(Node, {Cliques, _, Links}, #search{to = To, ends = Ends, end_links = EndLinks}) ->
    case [{Node, C} || C <- Cliques, is_map_key(C, Ends)] of
        [] -> [{Node, {link, Node}} || is_map_key(Node, EndLinks) orelse lists:member(To, Links)];
        Common -> Common
    end.

%% The nodes of the next layer, in no order that means something. Of the start's cliques those
%% that it has no link with are no nearer to it than others are.
spread([{From, {Cliques, _, _}}], #search{from = From, linked = #{} = Linked, found = Found} = Search) ->
    Layer = lists:foldl(
        fun(Node, Acc) ->
            {Theirs, _, _} = standing(Node, Search),
            case [C || C <- Theirs, lists:member(C, Cliques)] of
                [] -> add(Node, {link, From}, Acc, Search);
                [C | _] -> add(Node, {over, From, C}, Acc, Search)
            end
        end,
        #{},
        maps:keys(Linked)
    ),
    {maps:keys(Layer), Search#search{found = maps:merge(Found, Layer)}};
spread(Standings, #search{entered = Entered0, found = Found0, doors = Doors} = Search) ->
    Fresh = lists:foldl(
        fun({Node, {Cliques, _, _}}, Acc) ->
            lists:foldl(
                fun
                    (C, A) when is_map_key(C, Entered0) -> A;
                    (C, A) -> A#{C => [Node | maps:get(C, A, [])]}
                end,
                Acc,
                Cliques
            )
        end,
        #{},
        Standings
    ),
    Over = lists:foldl(
        fun({Node, {_, _, Links}}, Acc) ->
            lists:foldl(fun(Link, A) -> add(Link, {link, Node}, A, Search) end, Acc, Links)
        end,
        #{},
        Standings
    ),
    Layer = maps:fold(
        fun(C, _, Acc) ->
            Members = maps:get(C, Doors, []) ++ atoll_directory_table:bridges(C, Search#search.table),
            lists:foldl(fun(Node, A) -> add(Node, C, A, Search) end, Acc, Members)
        end,
        Over,
        Fresh
    ),
    {maps:keys(Layer), Search#search{
        entered = maps:merge(Entered0, Fresh), found = maps:merge(Found0, Layer)
    }}.

add(Node, How, Layer, #search{found = Found} = Search) ->
    case Layer of
        #{Node := Hows} ->
            Layer#{Node := [How | Hows]};
        #{} when is_map_key(Node, Found) ->
            Layer;
        #{} ->
            case is_passed(Node, Search) of
                true -> Layer#{Node => [How]};
                false -> Layer
            end
    end.

is_passed(Node, #search{to = To, avoid = Avoid} = Search) ->
    Node =/= To andalso not is_map_key(Node, Avoid) andalso relays(Node, Search).

relays(_Node, #search{rules = false}) ->
    true;
relays(Node, #search{table = Table, names = Names}) ->
    case atoll_directory_table:standing(Node, Table) of
        unknown -> true;
        {_, Relays, _} -> atoll_directory_place:allows(Relays, Names)
    end.

%% Back from the end: who comes before a node, drawn from all that would do.
steps(From, _Salt, Steps, #search{from = From}) ->
    Steps;
steps(Node, Salt, Steps, #search{from = From, to = To, entered = Entered, found = Found} = Search) ->
    Choices = lists:append([
        case How of
            {link, Before} -> [{Before, How}];
            {over, Before, Last} -> [{Before, Last}];
            Clique -> [{Before, Clique} || Before <- map_get(Clique, Entered)]
        end
     || How <- map_get(Node, Found)
    ]),
    {_, Before, How} = lists:max([{erlang:phash2({From, To, Salt, B}, 1 bsl 32), B, H} || {B, H} <- best(Choices)]),
    steps(Before, Salt, [{Before, How, length(lists:ukeysort(1, Choices))} | Steps], Search).

%% A clique says more than a link.
best(Choices) ->
    case [Choice || {_, How} = Choice <- Choices, is_integer(How)] of
        [] -> Choices;
        Cliques ->
            Known = maps:from_keys([Node || {Node, _} <- Cliques], []),
            Cliques ++ [Choice || {Node, {link, _}} = Choice <- Choices, not is_map_key(Node, Known)]
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({same, Node}) ->
    io_lib:format("~ts is both ends", [Node]);
format_error({unknown, Node}) ->
    io_lib:format("nobody has told where ~ts is", [Node]);
format_error({no_route, From, To}) ->
    io_lib:format("no chain of groups and links leads from ~ts to ~ts", [From, To]);
format_error({too_far, From, To, Max}) ->
    io_lib:format("~ts is more than ~b hops from ~ts", [To, Max, From]);
format_error({avoided, From, To, Nodes}) ->
    io_lib:format("from ~ts to ~ts the only way is over ~ts, which is to be avoided", [From, To, names(Nodes)]);
format_error({refused, From, To, Refusing}) ->
    io_lib:format("from ~ts to ~ts the only way is over ~ts", [
        From, To, lists:join(", and ", [refusal(Node, Relays) || {Node, Relays} <- Refusing])
    ]).

refusal(Node, none) ->
    io_lib:format("~ts, which relays for nobody", [Node]);
refusal(Node, Cliques) ->
    io_lib:format("~ts, which relays for members of ~ts alone", [Node, lists:join(", ", [io_lib:format("~tp", [C]) || C <- Cliques])]).

names(Nodes) ->
    lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).
