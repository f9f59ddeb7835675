%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What somebody wants of the node of a process, checked, and the nodes that are so: a
%% condition on attributes ({@link atoll_predicate}) and distances ({@link atoll_distance}) in
%% one choice ({@link atoll_attr}).
%%
%% Distances are looked up where the choice is made, of the nodes that fit. A node of which the
%% distance is not known comes last, and where there is a farthest, `within', it does not fit.
-module(atoll_place_choice).

-export([new/1, nodes/1, one/1, only/2, within_ms/2, fresh/1, what/1, condition/1, format_error/1]).

-compile({no_auto_import, [nodes/1]}).

-export_type([params/0, wish/0, choice/0, error/0]).

-type params() ::
    atoll_predicate:source()
    | #{
        %% What the node must be like; any node, unless it is said.
        where => atoll_predicate:source(),
        %% From which nodes; the members, unless it is said.
        among => atoll_attr:where(),
        %% The nearer to this node the better, by which of the three distances, and how far it
        %% may be at most.
        near => node(),
        how => atoll_distance:how(),
        within => number(),
        %% What is better, in place of near; within is then its bound.
        rank => atoll_attr_rank:rank(),
        %% As atoll_attr has them.
        deadline => pos_integer(),
        max_age => non_neg_integer(),
        slack => number(),
        claim => boolean(),
        %% When the node of a process does not fit any more: tell it, tell it and end the
        %% process, or do not look.
        on_misfit => event | stop | off,
        %% In how many milliseconds a process is placed and started.
        start_timeout => pos_integer(),
        %% How long a supervised process has for its end where the supervisor does not wait for it.
        shutdown => atoll_place_bridge:shutdown()
    }.

-type wish() :: #{
    predicate := atoll_predicate:predicate(),
    source := atoll_predicate:source(),
    among := atoll_attr:where(),
    near := none | {node(), usual | atoll_distance:how()},
    options := atoll_attr:options(),
    deadline := pos_integer(),
    on_misfit := event | stop | off,
    start_timeout := pos_integer(),
    shutdown := atoll_place_bridge:shutdown()
}.

-type choice() :: #{
    %% The best first.
    nodes := [node()],
    values := #{node() => atoll_predicate:values()},
    age_ms := non_neg_integer(),
    silent := [node()],
    unreachable := [node()],
    place => pos_integer(),
    %% With near: how far each is, where that is known.
    distances => #{node() => atoll_distance:distance()}
}.

-type error() ::
    {attributes, atoll_attr:error()}
    | {distance, atoll_distance:error()}
    %% What another node has measured is not known here.
    | {measured_elsewhere, node()}
    | {bad_param, Key :: term(), Value :: term()}
    | {params, near_and_rank | within_alone | how_alone}.

-define(DEADLINE_MS, 500).
-define(START_MS, 5000).
-define(SHUTDOWN_MS, 5000).
-define(MAX_MS, 16#7FFFFFFF).
-define(FOR_ATTR, [rank, within, max_age, slack, claim]).

%% @doc Checks what is wanted. What only a choice can find wrong, an s_group of another node or a
%% distance that is not known, is found there.
-spec new(params()) -> {ok, wish()} | {error, error()}.
new(Params) when is_map(Params) ->
    case [{Key, Value} || {Key, Value} <- lists:sort(maps:to_list(Params)), not is_param(Key, Value)] of
        [{Key, Value} | _] -> {error, {bad_param, Key, Value}};
        [] -> whole(Params)
    end;
new(Source) ->
    new(#{where => Source}).

is_param(where, _) -> true;
is_param(among, Where) -> Where =:= members orelse is_tuple(Where) orelse is_list(Where);
is_param(near, Node) -> is_atom(Node);
is_param(how, How) -> lists:member(How, [declared, measured, estimated]);
is_param(within, Limit) -> is_number(Limit);
is_param(rank, Rank) -> atoll_attr_rank:is_rank(Rank);
is_param(deadline, Ms) -> is_ms(Ms);
is_param(max_age, Ms) -> is_integer(Ms) andalso Ms >= 0;
is_param(slack, Slack) -> is_number(Slack) andalso Slack >= 0;
is_param(claim, Claim) -> is_boolean(Claim);
is_param(on_misfit, What) -> lists:member(What, [event, stop, off]);
is_param(start_timeout, Ms) -> is_ms(Ms);
is_param(shutdown, How) -> How =:= brutal_kill orelse How =:= infinity orelse is_ms(How);
is_param(_, _) -> false.

is_ms(Ms) -> is_integer(Ms) andalso Ms > 0 andalso Ms =< ?MAX_MS.

whole(#{near := _, rank := _}) ->
    {error, {params, near_and_rank}};
whole(#{within := _} = Params) when not is_map_key(near, Params), not is_map_key(rank, Params) ->
    {error, {params, within_alone}};
whole(#{how := _} = Params) when not is_map_key(near, Params) ->
    {error, {params, how_alone}};
whole(Params) ->
    Source = maps:get(where, Params, {}),
    case atoll_predicate:new(Source) of
        {ok, Predicate} ->
            {ok, #{
                predicate => Predicate,
                source => Source,
                among => maps:get(among, Params, members),
                near =>
                    case Params of
                        #{near := Node} -> {Node, maps:get(how, Params, usual)};
                        #{} -> none
                    end,
                options => maps:with(?FOR_ATTR, Params),
                deadline => maps:get(deadline, Params, ?DEADLINE_MS),
                on_misfit => maps:get(on_misfit, Params, event),
                start_timeout => maps:get(start_timeout, Params, ?START_MS),
                shutdown => maps:get(shutdown, Params, ?SHUTDOWN_MS)
            }};
        {error, Error} ->
            {error, {attributes, {predicate, Error}}}
    end.

%% @doc The same wish, of these nodes only.
-spec only([node()], wish()) -> wish().
only(Nodes, Wish) ->
    Wish#{among := Nodes}.

%% @doc The same wish, with at most so much time for a choice.
-spec within_ms(pos_integer(), wish()) -> wish().
within_ms(Ms, #{deadline := Deadline} = Wish) ->
    Wish#{deadline := min(Ms, Deadline)}.

%% @doc The same wish, of what the nodes are like now.
-spec fresh(wish()) -> wish().
fresh(#{options := Options} = Wish) ->
    Wish#{options := maps:remove(max_age, Options)}.

%% @doc The condition on the node's attributes, and the attributes that it speaks of.
-spec condition(wish()) -> {atoll_predicate:predicate(), [atoll_predicate:name()]}.
condition(#{predicate := Predicate}) ->
    {Predicate, atoll_predicate:names(Predicate)}.

%% @doc The condition as text.
-spec what(wish()) -> unicode:chardata().
what(#{predicate := Predicate}) ->
    atoll_predicate:to_text(Predicate).

%% @doc All nodes that fit, the best first.
-spec nodes(wish()) -> {ok, choice()} | {error, error()}.
nodes(#{among := Among, source := Source} = Wish) ->
    case options(Wish) of
        {ok, Options, Distance} ->
            case atoll_attr:choose_nodes(Among, Source, Options) of
                {ok, Choice} -> {ok, with_distances(Distance, Choice)};
                {error, Error} -> {error, {attributes, Error}}
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc One of the best nodes; those who choose at the same moment are spread over them.
-spec one(wish()) -> {ok, node(), choice()} | {none, choice()} | {error, error()}.
one(#{among := Among, source := Source} = Wish) ->
    case options(Wish) of
        {ok, Options, Distance} ->
            case atoll_attr:choose_node(Among, Source, Options) of
                {ok, Node, Choice} -> {ok, Node, with_distances(Distance, Choice)};
                {none, Choice} -> {none, with_distances(Distance, Choice)};
                {error, Error} -> {error, {attributes, Error}}
            end;
        {error, _} = Error ->
            Error
    end.

with_distances(none, Choice) ->
    Choice;
with_distances(Distance, #{nodes := Nodes} = Choice) ->
    Choice#{distances => maps:from_list([{Node, Far} || Node <- Nodes, Far <- [Distance(Node)], is_number(Far)])}.

options(#{near := none, options := Options, deadline := Ms}) ->
    {ok, Options#{deadline => Ms}, none};
options(#{near := {Near, usual}} = Wish) ->
    case atoll_distance:declared() of
        {ok, _} -> options(Wish#{near := {Near, declared}});
        {error, no_network} -> options(Wish#{near := {Near, estimated}})
    end;
options(#{near := {Near, How}, options := Options, deadline := Ms}) ->
    case is_known(How, Near) of
        ok ->
            Distance = fun(Node) -> distance(How, Near, Node) end,
            {ok, Options#{deadline => Ms, rank => {nearest, Distance}}, Distance};
        {error, _} = Error ->
            Error
    end.

distance(How, Near, Node) ->
    case atoll_distance:distance(How, Near, Node) of
        {ok, Far} -> Far;
        {error, _} -> unknown
    end.

%% Whether any distance from there can be told here.
is_known(measured, Near) when Near =/= node() ->
    {error, {measured_elsewhere, Near}};
is_known(How, Near) ->
    case {atoll_distance:distance(How, Near, Near), How} of
        {{error, Error}, _} -> {error, {distance, Error}};
        {{ok, _}, estimated} -> has_coordinate(atoll_distance:age(estimated, Near), Near);
        {{ok, _}, _} -> ok
    end.

has_coordinate(unknown, Near) -> {error, {distance, {no_coordinate, Near}}};
has_coordinate({ok, _}, _Near) -> ok.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({attributes, Error}) ->
    atoll_attr:format_error(Error);
format_error({distance, Error}) ->
    atoll_distance:format_error(Error);
format_error({measured_elsewhere, Node}) ->
    io_lib:format("what ~ts has measured is not known here; near a node other than this one is declared or estimated", [Node]);
format_error({bad_param, Key, Value}) ->
    io_lib:format("a process is not placed with ~0tP that is ~0tP", [Key, 8, Value, 12]);
format_error({params, near_and_rank}) ->
    "nodes are ranked by near or by rank, not by both";
format_error({params, within_alone}) ->
    "within says how far from near a node may be, or how good by rank, and neither is there";
format_error({params, how_alone}) ->
    "how says how the distance from near is known, and there is no near".
