%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The route room of one node, as one pure protocol: {@link atoll_directory}, what it
%% is fed with, and what is asked of it.
%%
%% The cliques of this node are its groups, by their names. For whom this node relays is configured, by the names of groups too.
%% The directory hears both, and the carrier is told between whom to relay: where that is
%% said by groups these are the nodes that stand in one, as the directory knows them, told
%% anew a moment after that changes.
%%
%% Until the groups of this node are known the directory has no links, so nobody hears of it:
%% a place without groups would lead nowhere, and whoever had heard of it would route
%% past this node while others route over it.
%%
%% Links of this node that no clique explains are told to the directory where it depends
%% on them: in an overlay that leaves nodes unconnected those with its neighbours, without
%% an overlay those of a node in no group. A link counts once the directory knows the node at
%% its other end, since it is of no use before.
%%
%% Answers. A route begins at this node, with a node that it has a link with, and has as
%% many hops as a relay lets pass ({@link atoll_dist_relay}).
%%
%% Promised and not promised is what {@link atoll_directory} and {@link atoll_routes}
%% promise. Two groups that have one name, in parts of the cluster that do not know of each other, are
%% one clique here: their members miss each other, and routes may lead through nobody.
-module(atoll_route_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3, reachable/1, summary/1, format_error/1]).

-export_type([config/0, tells/0, answer/0, explanation/0, error/0, state/0]).

-type config() :: #{
    self := node(),
    incarnation := atoll_directory_table:version(),
    seed := integer(),
    directory := atoll_directory:options(),
    relays := atoll_directory_place:relays(),
    tells := tells(),
    %% Whether this node stays outside until it begins a new life.
    left := boolean()
}.

-type tells() ::
    %% Of which links it tells where no clique explains them: those with the neighbours in the
    %% overlay, all of a node in no group, or of none.
    neighbours
    | lone
    | none.

-type answer() ::
    %% This node first, the other end last.
    {ok, atoll_routes:route()}
    | {error, {unknown | no_route | refused, unicode:chardata()}}.

-type explanation() :: atoll_routes:explanation().

-type error() :: {route, atoll_routes:error()}.

%% A change seldom comes alone.
-define(SETTLE_MS, 200).
%% Five seconds, for an answer over a long path.
-define(PATIENCE, 25).

-record(state, {
    self :: node(),
    directory :: atoll_directory:state(),
    relays :: atoll_directory_place:relays(),
    tells :: tells(),
    groups = unknown :: unknown | [Name :: atom()],
    %% The links that have come before these were known.
    waiting = [] :: ordsets:ordset(node()),
    neighbours = #{} :: #{node() => []},
    %% What the directory and the carrier were told last, and by which revision of the
    %% directory, if that is all there is.
    links = [] :: [node()],
    %% Nothing was told yet where groups say it and none is known: the carrier keeps to what it
    %% was told before this process was started anew, and refuses if that was nothing.
    policy = untold :: untold | atoll_dist_relay:policy(),
    %% How often that is put off while nobody else is known.
    patience = ?PATIENCE :: non_neg_integer(),
    settled = none :: none | non_neg_integer(),
    settling = false :: boolean()
}).

-opaque state() :: #state{}.

%% @doc A node in no group.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, relays := Relays, tells := Tells, directory := Options, left := Left} = Config, Now) ->
    {Directory, Effects} = atoll_directory:init(
        #{
            self => Self,
            incarnation => map_get(incarnation, Config),
            seed => map_get(seed, Config),
            options => Options,
            place => atoll_directory_place:new([], Relays, [])
        },
        Now
    ),
    {State, Told} = at_first(#state{self = Self, directory = Directory, relays = Relays, tells = Tells}),
    case Left of
        true -> add(Told ++ Effects, direct({cast, leave}, Now, State));
        false -> {State, Told ++ Effects}
    end.

%% Of an empty directory it would follow that nobody is relayed for, and the circuits of a
%% node whose process is started anew would end.
at_first(#state{relays = Names} = State) when is_list(Names) ->
    {State#state{settling = true}, [{timer, settle, ?SETTLE_MS}]};
at_first(#state{relays = Word} = State) ->
    {State#state{policy = Word}, [{act, {relay_policy, Word}}]}.

%% @doc Takes one event. `up' and `down' are of links. Casts are `{groups, Groups}' of the
%% group room, with all of them, and `groups_known' when it has begun: if it has named none by
%% then there is none; `relay_policy' of a carrier that wants to hear it again; of the
%% overlay `{neighbour_up, Node}',
%% `{neighbour_down, Node}', `{member_down, Node, Why}', `{incarnation, Life}', and `leave'. Calls are
%% `{route, To, Options}' with the answer `answer()', `{explain, To, Count, Options}',
%% `{members, Group, Salt}' with a list of nodes, `reachable', `status', and `leave', which is answered when the neighbours were told.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({call, From, {route, To, Options}}, _Now, State) ->
    {State, [{reply, From, route(To, Options, State)}]};
handle({call, From, {explain, To, Count, Options}}, _Now, State) ->
    {State, [{reply, From, explain(To, Count, Options, State)}]};
handle({call, From, {members, Group, Salt}}, _Now, State) ->
    {State, [{reply, From, members(Group, Salt, State)}]};
handle({call, From, reachable}, _Now, State) ->
    {State, [{reply, From, reachable(State)}]};
handle({call, From, status}, _Now, State) ->
    {State, [{reply, From, summary(State)}]};
handle({call, From, leave}, Now, State0) ->
    {State, Effects} = direct({cast, leave}, Now, State0),
    {State, Effects ++ [{reply, From, ok}]};
handle({timeout, settle}, Now, State) ->
    settle(Now, State#state{settling = false});
handle({cast, relay_policy}, _Now, #state{policy = Policy} = State) ->
    {State, [{act, {relay_policy, Policy}} || Policy =/= untold]};
handle({cast, {groups, Groups}}, Now, #state{waiting = Waiting} = State0) ->
    Told = direct({cast, {cliques, Groups}}, Now, State0#state{groups = Groups, waiting = [], settled = none}),
    lists:foldl(fun(Node, {State, Effects}) -> add(Effects, direct({up, Node}, Now, State)) end, Told, Waiting);
handle({cast, groups_known}, Now, #state{groups = unknown} = State) ->
    handle({cast, {groups, []}}, Now, State);
handle({cast, groups_known}, _Now, State) ->
    {State, []};
handle({up, Node}, _Now, #state{groups = unknown, waiting = Waiting} = State) ->
    {State#state{waiting = ordsets:add_element(Node, Waiting)}, []};
handle({down, Node, _Why}, _Now, #state{groups = unknown, waiting = Waiting} = State) ->
    {State#state{waiting = ordsets:del_element(Node, Waiting)}, []};
handle({message, _From, _Message}, _Now, #state{groups = unknown} = State) ->
    %% It compares with all links that wait.
    {State, []};
handle({cast, {neighbour_up, Node}}, _Now, #state{neighbours = Neighbours} = State) ->
    later({State#state{neighbours = Neighbours#{Node => []}, settled = none}, []});
handle({cast, {neighbour_down, Node}}, _Now, #state{neighbours = Neighbours} = State) ->
    later({State#state{neighbours = maps:remove(Node, Neighbours), settled = none}, []});
handle(Event, Now, State) ->
    direct(Event, Now, State).

%% The directory

direct(Event, Now, #state{directory = Directory0} = State0) ->
    {Directory, Effects} = atoll_directory:handle(Event, Now, Directory0),
    later({State0#state{directory = Directory}, Effects}).

add(Effects, {State, More}) ->
    {State, Effects ++ More}.

later({#state{settling = false, settled = Settled, directory = Directory} = State, Effects}) ->
    case atoll_directory:revision(Directory) of
        Settled -> {State, Effects};
        _ -> {State#state{settling = true}, Effects ++ [{timer, settle, ?SETTLE_MS}]}
    end;
later(Done) ->
    Done.

%% What follows from what the directory holds now. Of a directory that nobody has answered yet
%% it would follow that nobody is relayed for.
settle(Now, #state{policy = untold, patience = N, directory = Directory} = State) when N > 0 ->
    case atoll_directory_table:counts(atoll_directory:table(Directory)) of
        #{places := Places} when Places =< 1 ->
            {State#state{patience = N - 1, settling = true}, [{timer, settle, ?SETTLE_MS}]};
        #{} ->
            settled(Now, State)
    end;
settle(Now, State) ->
    settled(Now, State).

settled(Now, #state{links = Before, policy = Policy0} = State0) ->
    {State1, Told} =
        case links(State0) of
            Before -> {State0, []};
            Links -> direct({cast, {links, Links}}, Now, State0#state{links = Links, settling = true})
        end,
    #state{directory = Directory} = State1,
    State = State1#state{settled = atoll_directory:revision(Directory), settling = false},
    case policy(State) of
        Policy0 -> {State, Told};
        Policy -> {State#state{policy = Policy}, Told ++ [{act, {relay_policy, Policy}}]}
    end.

%% Those that no clique explains.
links(#state{tells = none}) ->
    [];
links(#state{tells = lone, groups = [_ | _]}) ->
    [];
links(#state{tells = lone, directory = Directory} = State) ->
    unexplained(atoll_directory:linked(Directory), State);
links(#state{tells = neighbours, directory = Directory, neighbours = Neighbours} = State) ->
    unexplained([Node || Node <- atoll_directory:linked(Directory), is_map_key(Node, Neighbours)], State).

unexplained(Nodes, #state{self = Self, directory = Directory}) ->
    Table = atoll_directory:table(Directory),
    Own =
        case atoll_directory_table:standing(Self, Table) of
            {Cliques, _, _} -> Cliques;
            unknown -> []
        end,
    [
        Node
     || Node <- Nodes,
        {Cliques, _, _} <- [atoll_directory_table:standing(Node, Table)],
        not lists:any(fun(Clique) -> lists:member(Clique, Own) end, Cliques)
    ].

%% In the carrier's words: one of the two ends stands in one of the groups.
policy(#state{relays = Names, directory = Directory}) when is_list(Names) ->
    Table = atoll_directory:table(Directory),
    Nodes = maps:from_keys([atom_to_binary(Node) || Node <- atoll_directory_table:members(Names, Table)], []),
    [{any, Nodes}];
policy(#state{relays = Word}) ->
    Word.

%% Answers

-spec route(node(), #{avoid => [node()], salt => term(), atom() => term()}, state()) -> answer().
route(To, Options, #state{self = Self, directory = Directory} = State) ->
    case atoll_routes:find(Self, To, options(Options, State), atoll_directory:table(Directory)) of
        {ok, Route} -> {ok, Route};
        {error, Error} -> {error, {word(element(1, Error)), atoll_routes:format_error(Error)}}
    end.

word(unknown) -> unknown;
word(refused) -> refused;
word(_) -> no_route.

explain(To, Count, Options, #state{self = Self, directory = Directory} = State) ->
    case atoll_routes:explain(Self, To, Count, options(Options, State), atoll_directory:table(Directory)) of
        {ok, Explanation} -> {ok, Explanation};
        {error, Error} -> {error, {route, Error}}
    end.

options(Options, #state{directory = Directory}) ->
    maps:merge(
        #{max_hops => atoll_dist_relay:max_hops(), linked => atoll_directory:linked(Directory)},
        maps:with([avoid, salt, max_hops], Options)
    ).

%% Those that this node has a link with come first. If there is none, those of them that stand on
%% the way to another one do: the group's gateways on this side. The others are as near as
%% each other, and who of them comes first is drawn, so that no one member is asked for all.
-spec members(atoll_directory_place:clique(), Salt :: term(), state()) -> [node()].
members(Group, Salt, #state{self = Self, directory = Directory} = State) ->
    Members = [Node || Node <- atoll_directory_table:members([Group], atoll_directory:table(Directory)), Node =/= Self],
    Drawn = [Node || {_, Node} <- lists:sort([{erlang:phash2({Salt, Node}), Node} || Node <- Members])],
    case lists:partition(fun(Node) -> lists:member(Node, atoll_directory:linked(Directory)) end, Drawn) of
        {[], [First | _] = Others} ->
            Gateways = [Node || Node <- on_the_way(First, Salt, State), lists:member(Node, Others)],
            Gateways ++ (Others -- Gateways);
        {Linked, Others} ->
            Linked ++ Others
    end.

on_the_way(Node, Salt, State) ->
    case route(Node, #{salt => Salt}, State) of
        {ok, Route} -> Route;
        {error, _} -> []
    end.

%% @doc To whom this node knows a way, in the order of the names, whatever is told of who relays for
%% whom: what the call `reachable' answers.
-spec reachable(state()) -> [node()].
reachable(#state{self = Self, directory = Directory}) ->
    Table = atoll_directory:table(Directory),
    Reach = atoll_reach:new([Self | atoll_directory:linked(Directory)], Table),
    lists:sort(
        atoll_directory_table:fold(
            fun(Node, _Version, Standing, Nodes) ->
                [Node || Node =/= Self, atoll_reach:is_reached(Node, Standing, Reach)] ++ Nodes
            end,
            [],
            Table
        )
    ).

%% @doc For people: what the directory says of itself, and what this room adds.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{directory = Directory, relays = Relays, links = Links, policy = Policy}) ->
    {Cliques, _, _} = atoll_directory:place(Directory),
    (atoll_directory:summary(Directory))#{
        groups => Cliques,
        relays => Relays,
        %% Between how many nodes and any others, where that is said by groups.
        relays_for =>
            case Policy of
                [{any, Nodes}] -> map_size(Nodes);
                Word -> Word
            end,
        tells_links => Links
    }.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({route, Error}) ->
    atoll_routes:format_error(Error).
