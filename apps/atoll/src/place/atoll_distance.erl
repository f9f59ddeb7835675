%% SPDX-License-Identifier: Apache-2.0
%% @doc How far nodes are from each other, and which ones are near. There are three answers:
%% <dl>
%% <dt>`declared'</dt><dd>by the network that the option `network' declares, or
%%   {@link declare/1}: a number from 0.0 to 1.0, see {@link atoll_network}.</dd>
%% <dt>`measured'</dt><dd>the round trip in milliseconds that this node has measured to another,
%%   smoothed. Of two other nodes it knows none.</dd>
%% <dt>`estimated'</dt><dd>the round trip in milliseconds between any two nodes, by their network
%%   coordinates, see `atoll_vivaldi'.</dd>
%% </dl>
%% Where none is asked for, it is `declared' if there is a declared network, else `estimated'.
%%
%% Measuring and coordinates are there where the option `distances' is not `off'. Then this node
%% measures over the connections that are there, wanted by somebody or left alone, and one that came
%% up by itself once; it makes none. See `atoll_distance_core'.
%%
%% Readers ask no process: the declared network is a persistent term, which is copied by nobody and is to
%% be replaced seldom; the rest is in a table of the supervisor. A node of which the distance is not known is in no
%% ball, no sphere and no choice, not even in one by `ne'.
-module(atoll_distance).

-behaviour(atoll_interpreter).

-export([start_link/1, create_table/0, declare/1, declared/0]).
-export([distance/2, distance/3, nearest/2, nearest/3, ball/2, ball/3, sphere/2, sphere/3]).
-export([choose_nodes/2, choose_nodes/3, choose_nodes/4, choose_node/2, choose_node/3, choose_node/4]).
-export([nodes/1, age/2, status/0, format_error/1]).
-export([open/1, act/2, event/2, notice/2]).

-compile({no_auto_import, [nodes/1]}).

-export_type([how/0, options/0, distance/0, error/0]).

-type how() :: declared | measured | estimated.

-type distance() :: float().

-type options() :: #{
    by => how(),
    %% All that are known, unless told.
    among => [node()]
}.

-type error() ::
    %% Nothing is declared; nothing is measured on this node, or not at the moment.
    no_network
    | distances_off
    | restarting
    | {not_in_network, node()}
    | {not_measured, node(), node()}
    | {no_coordinate, node()}
    | {no_predicate, term()}
    %% It is no network that could be declared.
    | {network, atoll_network:error()}
    | {no_count, term()}
    %% It is none of the three.
    | {no_distance, term()}.

-type world() :: #{reference() => []}.
%% The helpers that measure, by the monitor on each: one at a time.

%% A helper ends with exit/1 by design.
-dialyzer({nowarn_function, act/2}).

-define(SILENT_MS, 2000).
%% As atoll_interpreter has it.
-define(WIRE, 1).

%% @doc Makes the table; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc Starts to measure.
-spec start_link(atoll_distance_core:options()) -> gen_server:start_ret().
start_link(Options) ->
    Config = #{
        self => node(),
        incarnation => erlang:system_time(microsecond),
        seed => rand:uniform(1 bsl 32),
        options => Options
    },
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_distance_core,
        process => ?MODULE,
        config =>
            case look_up({coordinate, node()}) of
                %% It has not moved while the process was away.
                {ok, Coordinate, _} -> Config#{coordinate => Coordinate};
                none -> Config
            end
    }).

%% @doc From now on this is the declared network: one that {@link atoll_network:new/1} has made, or
%% the term of one.
-spec declare(atoll_network:network() | atoll_network:tree() | none) -> ok | {error, error()}.
declare(none) ->
    persistent_term:put(?MODULE, none);
declare(Given) ->
    case atoll_network:new(Given) of
        {ok, Network} -> persistent_term:put(?MODULE, Network);
        {error, Error} -> {error, {network, Error}}
    end.

%% @doc The declared network.
-spec declared() -> {ok, atoll_network:network()} | {error, no_network}.
declared() ->
    case persistent_term:get(?MODULE, none) of
        none -> {error, no_network};
        Network -> {ok, Network}
    end.

%% @doc How far two nodes are from each other.
-spec distance(node(), node()) -> {ok, distance()} | {error, error()}.
distance(A, B) ->
    distance(usual(), A, B).

%% @doc The same, by one of the three.
-spec distance(how(), node(), node()) -> {ok, distance()} | {error, error()}.
distance(declared, A, B) ->
    case declared() of
        {ok, Network} -> atoll_network:distance(A, B, Network);
        {error, _} = Error -> Error
    end;
distance(How, A, B) when How =:= measured; How =:= estimated ->
    case is_on() of
        ok -> known(How, A, B);
        {error, _} = Error -> Error
    end;
distance(Other, _A, _B) ->
    {error, {no_distance, Other}}.

known(_How, Node, Node) -> {ok, 0.0};
known(measured, A, B) when A =:= node() -> measured(A, B, B);
known(measured, A, B) when B =:= node() -> measured(A, B, A);
known(measured, A, B) -> {error, {not_measured, A, B}};
known(estimated, A, B) ->
    case {look_up({coordinate, A}), look_up({coordinate, B})} of
        {{ok, OfA, _}, {ok, OfB, _}} -> {ok, atoll_vivaldi:estimate(OfA, OfB)};
        {none, _} -> {error, {no_coordinate, A}};
        {_, none} -> {error, {no_coordinate, B}}
    end.

measured(A, B, Other) ->
    case look_up({measured, Other}) of
        {ok, Ms, _} -> {ok, Ms};
        none -> {error, {not_measured, A, B}}
    end.

%% What the table says outlives the process.
is_on() ->
    case {look_up(on), whereis(?MODULE)} of
        {none, _} -> {error, distances_off};
        {_, undefined} -> {error, restarting};
        _ -> ok
    end.

usual() ->
    case declared() of
        {ok, _} -> declared;
        {error, no_network} -> estimated
    end.

look_up(Key) ->
    case ets:whereis(?MODULE) =/= undefined andalso ets:lookup(?MODULE, Key) of
        [{_, Value, At}] -> {ok, Value, At};
        _ -> none
    end.

%% @doc The nodes of which there is a distance, this one among them where it is one, in the order
%% of their names.
-spec nodes(how()) -> {ok, [node()]} | {error, error()}.
nodes(declared) ->
    case declared() of
        {ok, Network} -> {ok, atoll_network:nodes(Network)};
        {error, _} = Error -> Error
    end;
nodes(measured) ->
    known(measured);
nodes(estimated) ->
    known(coordinate);
nodes(Other) ->
    {error, {no_distance, Other}}.

known(Kind) ->
    case is_on() of
        ok -> {ok, lists:usort([node() | ets:select(?MODULE, [{{{Kind, '$1'}, '_', '_'}, [], ['$1']}])])};
        {error, _} = Error -> Error
    end.

%% @doc For how many milliseconds a node has been known to be so far, by a measurement or by its
%% coordinate.
-spec age(measured | estimated, node()) -> {ok, Ms :: non_neg_integer()} | unknown.
age(How, Node) ->
    Key =
        case How of
            measured -> {measured, Node};
            estimated -> {coordinate, Node}
        end,
    case look_up(Key) of
        {ok, _, At} -> {ok, max(0, erlang:monotonic_time(millisecond) - At)};
        none -> unknown
    end.

%% @doc So many nodes that are nearest to this one, the nearest first; it is none of them itself.
-spec nearest(non_neg_integer(), From :: node()) -> {ok, [node()]} | {error, error()}.
nearest(Count, From) ->
    nearest(Count, From, #{}).

%% @doc The same, as told.
-spec nearest(non_neg_integer(), From :: node(), options()) -> {ok, [node()]} | {error, error()}.
nearest(Count, From, Options) when is_integer(Count), Count >= 0 ->
    case distances(From, Options) of
        {ok, Distances} ->
            Others = [Known || {_, Node} = Known <- Distances, Node =/= From],
            {ok, [Node || {_, Node} <- lists:sublist(lists:keysort(1, Others), Count)]};
        {error, _} = Error ->
            Error
    end;
nearest(Other, _From, _Options) ->
    {error, {no_count, Other}}.

%% @doc The nodes that are not farther than the radius, the node itself among them.
-spec ball(From :: node(), Radius :: number()) -> {ok, [node()]} | {error, error()}.
ball(From, Radius) ->
    ball(From, Radius, #{}).

%% @doc The same, as told.
-spec ball(From :: node(), Radius :: number(), options()) -> {ok, [node()]} | {error, error()}.
ball(From, Radius, Options) ->
    choose(From, [{dist, le, Radius}], Options).

%% @doc The nodes that are just so far. Of use with a declared network.
-spec sphere(From :: node(), Radius :: number()) -> {ok, [node()]} | {error, error()}.
sphere(From, Radius) ->
    sphere(From, Radius, #{}).

%% @doc The same, as told.
-spec sphere(From :: node(), Radius :: number(), options()) -> {ok, [node()]} | {error, error()}.
sphere(From, Radius, Options) ->
    choose(From, [{dist, eq, Radius}], Options).

%% @doc All nodes of which the predicates hold.
-spec choose_nodes(From :: node(), atoll_network:predicate() | [atoll_network:predicate()]) ->
    {ok, [node()]} | {error, error()}.
choose_nodes(From, Predicates) ->
    choose(From, Predicates, #{}).

%% @doc Those of the nodes of which all predicates hold, in their order.
-spec choose_nodes(From :: node(), [node()], atoll_network:predicate() | [atoll_network:predicate()]) ->
    {ok, [node()]} | {error, error()}.
choose_nodes(From, Nodes, Predicates) ->
    choose(From, Predicates, #{among => Nodes}).

%% @doc The same, by one of the three.
-spec choose_nodes(From :: node(), [node()], atoll_network:predicate() | [atoll_network:predicate()], how()) ->
    {ok, [node()]} | {error, error()}.
choose_nodes(From, Nodes, Predicates, How) ->
    choose(From, Predicates, #{among => Nodes, by => How}).

%% @doc One of {@link choose_nodes/2}, each as likely.
-spec choose_node(From :: node(), atoll_network:predicate() | [atoll_network:predicate()]) ->
    {ok, node()} | none | {error, error()}.
choose_node(From, Predicates) ->
    one(choose_nodes(From, Predicates)).

%% @doc One of {@link choose_nodes/3}, each as likely.
-spec choose_node(From :: node(), [node()], atoll_network:predicate() | [atoll_network:predicate()]) ->
    {ok, node()} | none | {error, error()}.
choose_node(From, Nodes, Predicates) ->
    one(choose_nodes(From, Nodes, Predicates)).

%% @doc One of {@link choose_nodes/4}, each as likely.
-spec choose_node(From :: node(), [node()], atoll_network:predicate() | [atoll_network:predicate()], how()) ->
    {ok, node()} | none | {error, error()}.
choose_node(From, Nodes, Predicates, How) ->
    one(choose_nodes(From, Nodes, Predicates, How)).

one({ok, []}) -> none;
one({ok, Nodes}) -> {ok, lists:nth(rand:uniform(length(Nodes)), Nodes)};
one({error, _} = Error) -> Error.

choose(From, Predicate, Options) when is_tuple(Predicate) ->
    choose(From, [Predicate], Options);
choose(From, Predicates, Options) ->
    case {[P || P <- Predicates, not atoll_network:is_predicate(P)], distances(From, Options)} of
        {[Bad | _], _} -> {error, {no_predicate, Bad}};
        {[], {ok, Distances}} -> {ok, [Node || {D, Node} <- Distances, atoll_network:holds(Predicates, D)]};
        {[], {error, _} = Error} -> Error
    end.

%% Of those that are known, in the order in which they are given.
distances(From, Options) ->
    How =
        case Options of
            #{by := By} -> By;
            #{} -> usual()
        end,
    case {nodes(How), Options} of
        {{error, _} = Error, _} -> Error;
        {{ok, _}, #{among := Nodes}} -> {ok, distances(How, From, Nodes)};
        {{ok, Nodes}, #{}} -> {ok, distances(How, From, Nodes)}
    end.

distances(How, From, Nodes) ->
    [{D, Node} || Node <- Nodes, {ok, D} <- [distance(How, From, Node)]].

%% @doc For people: what is declared, and what the process does.
-spec status() -> #{atom() => term()}.
status() ->
    Declared =
        case declared() of
            {ok, Network} -> length(atoll_network:nodes(Network));
            {error, no_network} -> none
        end,
    #{declared => Declared, distances => summary(is_on())}.

summary(ok) ->
    try
        (atoll_interpreter:call(?MODULE, summary))#{counters => atoll_interpreter:counters(?MODULE)}
    catch
        exit:{_, {gen_server, call, _}} -> restarting
    end;
summary({error, distances_off}) ->
    off;
summary({error, restarting}) ->
    restarting.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(no_network) ->
    "no network is declared on this node; set the option network of atoll";
format_error(distances_off) ->
    "this node measures no distances; set the option distances of atoll";
format_error(restarting) ->
    "what measures distances was lost on this node and is being started again";
format_error({not_in_network, Node}) ->
    io_lib:format("~ts is not in the declared network", [Node]);
format_error({not_measured, A, B}) ->
    io_lib:format("this node has not measured the round trip between ~ts and ~ts", [A, B]);
format_error({no_coordinate, Node}) ->
    io_lib:format("the coordinate of ~ts is not known here", [Node]);
format_error({no_distance, Term}) ->
    io_lib:format("a distance is declared, measured or estimated, not ~0tP", [Term, 12]);
format_error({network, Error}) ->
    ["this is no network; ", atoll_network:format_error(Error)];
format_error({no_count, Term}) ->
    io_lib:format("how many nodes is a whole number, 0 or more, not ~0tP", [Term, 12]);
format_error({no_predicate, Term}) ->
    io_lib:format("a predicate is {dist,Op,Number}, where Op is eq, ne, lt, le, gt or ge, not ~0tp", [Term]).

%% @private
-spec open(atoll_distance_core:config()) -> world().
open(_Config) ->
    true = ets:delete_all_objects(?MODULE),
    true = ets:insert(?MODULE, {on, true, 0}),
    %% Hidden nodes are shells and tools.
    ok = net_kernel:monitor_nodes(true, [{node_type, visible}, nodedown_reason]),
    _ = [self() ! {?MODULE, connected, Node} || Node <- erlang:nodes(visible)],
    #{}.

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({act, {measure, Candidates}}, World) ->
    {_Pid, Ref} = spawn_monitor(fun() -> exit({answer, measure(Candidates)}) end),
    World#{Ref => []};
act({act, {echo, To, Key}}, World) when is_pid(To) ->
    _ = erlang:send(To, {echoed, Key}, [noconnect, nosuspend]),
    World;
act({act, {echo, _Odd, _Key}}, World) ->
    World.

%% In a process of its own, so that nothing stands before the answer in its mailbox.
measure(Candidates) ->
    Wanted = maps:from_list([
        {Node, []}
     || #{node := Node, connected := true, wanted_by := By, phase := Phase} <- atoll_link:links(), By > 0 orelse Phase =:= foreign
    ]),
    case [Node || {Node, IsFresh} <- Candidates, IsFresh orelse is_map_key(Node, Wanted)] of
        [Node | _] -> measure_one(Node);
        [] -> nobody
    end.

measure_one(Node) ->
    Ref = make_ref(),
    Echo = {atoll, ?WIRE, node(), {1, {echo, self(), Ref}}},
    Since = erlang:monotonic_time(),
    case erlang:send({?MODULE, Node}, Echo, [noconnect, nosuspend]) of
        ok ->
            receive
                {echoed, Ref} ->
                    Us = erlang:convert_time_unit(erlang:monotonic_time() - Since, native, microsecond),
                    {measured, Node, max(1, Us)}
            after ?SILENT_MS -> {silent, Node}
            end;
        _ ->
            {silent, Node}
    end.

%% @private
-spec event(term(), world()) -> {[atoll_protocol:event()], world()}.
event({nodeup, Node, _Info}, World) ->
    {[{up, Node}], World};
%% The `nodedown' of one that was connected then may stand before this, and no other one
%% would follow.
event({?MODULE, connected, Node}, World) ->
    {[{up, Node} || lists:member(Node, erlang:nodes(visible))], World};
event({nodedown, Node, Info}, World) ->
    {[{down, Node, proplists:get_value(nodedown_reason, Info, unknown)}], World};
event({'DOWN', Ref, process, _Pid, Reason}, World) when is_map_key(Ref, World) ->
    Answer =
        case Reason of
            {answer, What} -> What;
            %% The link room was lost.
            _ -> nobody
        end,
    {[{cast, Answer}], maps:remove(Ref, World)}.

%% @private
-spec notice(atoll_distance_core:notice(), world()) -> world().
notice({forgotten, Kind, Node}, World) ->
    true = ets:delete(?MODULE, {Kind, Node}),
    World;
notice({Kind, Node, Value, At}, World) ->
    true = ets:insert(?MODULE, {{Kind, Node}, Value, At}),
    World.
