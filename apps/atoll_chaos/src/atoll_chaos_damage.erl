%% SPDX-License-Identifier: Apache-2.0
%% @doc What is broken at the moment, and what has to be done to the nodes to come
%% from one moment to the next. Pure.
%%
%% Connections are told to each node as a whole: the peers from which it keeps,
%% in both directions or in one ({@link atoll_chaos_agent}). A node that is down
%% or paused cannot be told; it is when it is there again. For a cut in both
%% directions one end suffices.
%%
%% Where all nodes have the carrier, with faults, connections can be harmed more finely:
%% what one node sends to another is lost or late, or a connection is a black hole. That
%% is told to the end that sends, as a whole too. A cut in one direction is there a loss
%% of everything at the end that sends, and nobody is unheard.
%%
%% It also keeps what ever was done, so that healing need not know how far the
%% last change had come: each act of {@link healing/1} may be done once too often.
-module(atoll_chaos_damage).

-export([new/1, new/2, take/2, started/2, paused/1, awake/1, is_down/2, healing/1]).

-export_type([damage/0, act/0, carrier/0, harms/0, bulk/0]).

-type act() ::
    {kill | pause | resume, node()}
    %% Stopped for so long, again and again; with 0 not any more.
    | {slow, node(), Ms :: non_neg_integer()}
    | {keep_from, node(), Closed :: [node()], Unheard :: [node()]}
    %% Its connections with these peers, and no others any more.
    | {harm, node(), harms()}
    %% It sends so much to these peers, and to no others any more.
    | {bulk, node(), bulk()}
    | {lane, node(), Peer :: node(), Number :: 0..63, cut | black_hole}
    %% No lane of its connections is a black hole any more.
    | {mend_lanes, node()}
    %% Nothing of the tool stays there.
    | {rest, node()}
    | {start, node()}.

-type carrier() :: stock | faults.
%% Whether all nodes have the carrier, with faults.

-type harms() :: #{node() => #{drop => number(), delay => pos_integer(), black_hole => true}}.

-type bulk() :: #{node() => atoll_sim_bulk:rate()}.

-record(damage, {
    nodes :: [node()],
    carrier :: carrier(),
    %% Node => its part; all in one if there are none.
    parts = #{} :: #{node() => pos_integer()},
    cuts = [] :: [{From :: [node()], To :: [node()]}],
    loss = 0 :: number(),
    %% Of losses and delays one for each From and To; and newest first.
    losses = [] :: [{From :: [node()], To :: [node()], number()}],
    delays = [] :: [{From :: [node()], To :: [node()], non_neg_integer()}],
    bulks = [] :: [{From :: [node()], To :: [node()], 0 | atoll_sim_bulk:rate()}],
    holes = [] :: [{[node()], [node()]}],
    %% Nodes with a lane that is a black hole.
    laned = #{} :: #{node() => []},
    paused = #{} :: #{node() => []},
    slow = #{} :: #{node() => []},
    down = #{} :: #{node() => []},
    %% What each node was told of its peers.
    told = #{} :: #{node() => {[node()], [node()]}},
    harmed = #{} :: #{node() => harms()},
    sending = #{} :: #{node() => bulk()},
    %% Ever done; and those that are to run in the end.
    ever = #{} :: #{{pause | slow, node()} => []},
    owed = #{} :: #{node() => []}
}).

-opaque damage() :: #damage{}.

%% @doc No damage, all nodes running.
-spec new([node()]) -> damage().
new(Nodes) -> new(Nodes, stock).

%% @doc The same, where connections can be harmed if all nodes have the carrier.
-spec new([node()], carrier()) -> damage().
new(Nodes, Carrier) -> #damage{nodes = Nodes, carrier = Carrier}.

%% @doc What a deed takes at once. Nodes that are to start are started by whoever
%% does it, and told by {@link started/2}.
-spec take(atoll_sim_plan:deed(), damage()) -> {[act()], damage()}.
take({kill, Nodes}, Damage) ->
    down(Nodes, Damage#damage{owed = maps:without(Nodes, Damage#damage.owed)});
take({restart, Nodes, _}, Damage) ->
    down(Nodes, Damage#damage{owed = with(Nodes, Damage#damage.owed)});
take({start, Nodes, _}, Damage) ->
    {[], Damage#damage{owed = with(Nodes, Damage#damage.owed), down = with(Nodes, Damage#damage.down)}};
take({pause, Nodes}, #damage{paused = Paused, ever = Ever} = Damage0) ->
    New = [Node || Node <- Nodes, not is_map_key(Node, Paused)],
    {Quick, Damage} = quick(New, Damage0),
    {
        Quick ++ [{pause, Node} || Node <- New],
        Damage#damage{paused = with(New, Paused), ever = with([{pause, N} || N <- New], Ever)}
    };
take({resume, Nodes}, #damage{paused = Paused} = Damage) ->
    Stopped = [Node || Node <- Nodes, is_map_key(Node, Paused)],
    tell([{resume, Node} || Node <- Stopped], Damage#damage{paused = maps:without(Stopped, Paused)});
take({slow, Nodes, 0}, Damage) ->
    quick(Nodes, Damage);
take({slow, Nodes, Ms}, #damage{slow = Slow, ever = Ever, paused = Paused} = Damage) ->
    New = [Node || Node <- Nodes, not is_map_key(Node, Paused)],
    {
        [{slow, Node, Ms} || Node <- New],
        Damage#damage{slow = with(New, Slow), ever = with([{slow, N} || N <- New], Ever)}
    };
take({partition, Parts}, Damage) ->
    Numbered = lists:zip(lists:seq(1, length(Parts)), Parts),
    tell([], Damage#damage{parts = maps:from_list([{Node, N} || {N, Part} <- Numbered, Node <- Part])});
take({cut, From, To}, #damage{cuts = Cuts} = Damage) ->
    tell([], Damage#damage{cuts = [{From, To} | Cuts]});
take({mend, From, To}, #damage{cuts = Cuts} = Damage) ->
    tell([], Damage#damage{cuts = lists:delete({From, To}, Cuts)});
take({loss, From, To, Share}, #damage{losses = Losses} = Damage) ->
    tell([], Damage#damage{losses = anew(From, To, Share, Losses)});
take({other, {loss, Share}}, Damage) ->
    tell([], Damage#damage{loss = Share});
take({delay, From, To, Ms}, #damage{delays = Delays} = Damage) ->
    tell([], Damage#damage{delays = anew(From, To, Ms, Delays)});
take({bulk, From, To, Rate}, #damage{bulks = Bulks} = Damage) ->
    tell([], Damage#damage{bulks = anew(From, To, Rate, Bulks)});
take({black_hole, One, Other}, #damage{holes = Holes} = Damage) ->
    tell([], Damage#damage{holes = [{One, Other} | Holes]});
take({fill, One, Other}, #damage{holes = Holes} = Damage) ->
    tell([], Damage#damage{holes = lists:delete({One, Other}, Holes)});
take({lane, One, Other, Number, Fault}, #damage{laned = Laned} = Damage) ->
    Awake = awake(Damage),
    Ends = [{Node, Peer} || Node <- One, Peer <- Other, Node =/= Peer, lists:member(Node, Awake)],
    {
        [{lane, Node, Peer, Number, Fault} || {Node, Peer} <- Ends],
        Damage#damage{laned = with([Node || {Node, _} <- Ends, Fault =:= black_hole], Laned)}
    };
take(heal, #damage{slow = Slow, paused = Paused, laned = Laned} = Damage0) ->
    {Quick, Damage1} = quick(lists:sort(maps:keys(Slow)), Damage0),
    Whole = Damage1#damage{parts = #{}, cuts = [], loss = 0, losses = [], delays = [], bulks = [], holes = [], laned = #{}},
    Lanes = [{mend_lanes, Node} || Node <- lists:sort(maps:keys(Laned))],
    {Acts, Damage} = take({resume, lists:sort(maps:keys(Paused))}, Whole),
    {Quick ++ Acts ++ Lanes, Damage};
take(_, Damage) ->
    %% Processes and groups are no damage.
    {[], Damage}.

%% @doc A node runs again, and knows nothing of what it was told.
-spec started(node(), damage()) -> {[act()], damage()}.
started(Node, #damage{down = Down} = Damage) ->
    tell([], Damage#damage{down = maps:remove(Node, Down)}).

%% @doc The nodes that are paused.
-spec paused(damage()) -> [node()].
paused(#damage{paused = Paused}) -> lists:sort(maps:keys(Paused)).

%% @doc Whether a node was killed and has not started since.
-spec is_down(node(), damage()) -> boolean().
is_down(Node, #damage{down = Down}) -> is_map_key(Node, Down).

%% @doc The nodes that run and are not paused, in order.
-spec awake(damage()) -> [node()].
awake(#damage{nodes = Nodes, paused = Paused, down = Down}) ->
    [Node || Node <- Nodes, not is_map_key(Node, Paused), not is_map_key(Node, Down)].

%% @doc What makes everything whole again, whatever of it was really done.
-spec healing(damage()) -> [act()].
healing(#damage{nodes = Nodes, ever = Ever, owed = Owed}) ->
    Done = lists:sort(maps:keys(Ever)),
    [{slow, Node, 0} || {slow, Node} <- Done] ++
        [{resume, Node} || {pause, Node} <- Done] ++
        [{start, Node} || Node <- lists:sort(maps:keys(Owed))] ++
        [{rest, Node} || Node <- Nodes].

down(Nodes, #damage{down = Down, paused = Paused, told = Told, harmed = Harmed, laned = Laned} = Damage0) ->
    {Quick, Damage} = quick(Nodes, Damage0),
    {
        Quick ++ [{kill, Node} || Node <- Nodes, not is_map_key(Node, Down)],
        Damage#damage{
            down = with(Nodes, Down),
            paused = maps:without(Nodes, Paused),
            told = maps:without(Nodes, Told),
            harmed = maps:without(Nodes, Harmed),
            sending = maps:without(Nodes, Damage#damage.sending),
            laned = maps:without(Nodes, Laned)
        }
    }.

quick(Nodes, #damage{slow = Slow} = Damage) ->
    {[{slow, Node, 0} || Node <- Nodes, is_map_key(Node, Slow)], Damage#damage{slow = maps:without(Nodes, Slow)}}.

%% Those who can hear it are told what is new to them.
tell(Acts, #damage{told = Told0, harmed = Harmed0, sending = Sending0} = Damage) ->
    Awake = awake(Damage),
    Told = news(Awake, fun(Node) -> wanted(Node, Damage) end, {[], []}, Told0),
    Harmed = news(Awake, fun(Node) -> harms(Node, Damage) end, #{}, Harmed0),
    Sending = news(Awake, fun(Node) -> bulk(Node, Damage) end, #{}, Sending0),
    {
        Acts ++
            [{keep_from, Node, Closed, Unheard} || {Node, {Closed, Unheard}} <- Told] ++
            [{harm, Node, Harms} || {Node, Harms} <- Harmed] ++
            [{bulk, Node, Bulk} || {Node, Bulk} <- Sending],
        Damage#damage{
            told = maps:merge(Told0, maps:from_list(Told)),
            harmed = maps:merge(Harmed0, maps:from_list(Harmed)),
            sending = maps:merge(Sending0, maps:from_list(Sending))
        }
    }.

news(Nodes, Wanted, Nothing, Told) ->
    [{Node, New} || Node <- Nodes, New <- [Wanted(Node)], New =/= maps:get(Node, Told, Nothing)].

%% The peers with which a node has no contact, and those it does not hear.
wanted(Node, #damage{nodes = Nodes, carrier = Carrier} = Damage) ->
    Peers = [{Peer, passes(Node, Peer, Damage), passes(Peer, Node, Damage)} || Peer <- Nodes, Peer =/= Node],
    {[Peer || {Peer, false, false} <- Peers], [Peer || {Peer, true, false} <- Peers, Carrier =:= stock]}.

%% What becomes of what a node sends.
harms(_Node, #damage{carrier = stock}) ->
    #{};
harms(Node, #damage{nodes = Nodes} = Damage) ->
    maps:from_list([{Peer, Harm} || Peer <- Nodes, Peer =/= Node, Harm <- [harm(Node, Peer, Damage)], Harm =/= #{}]).

harm(Node, Peer, #damage{loss = Loss, losses = Losses, delays = Delays, holes = Holes} = Damage) ->
    Drop =
        case {passes(Node, Peer, Damage), passes(Peer, Node, Damage)} of
            {false, true} -> 1;
            _ -> lists:max([Loss | [Share || {From, To, Share} <- Losses, is_way(Node, Peer, From, To)]])
        end,
    Delay =
        case [Ms || {From, To, Ms} <- Delays, is_way(Node, Peer, From, To)] of
            [Ms | _] -> Ms;
            [] -> 0
        end,
    IsHole = lists:any(fun({A, B}) -> is_way(Node, Peer, A, B) orelse is_way(Node, Peer, B, A) end, Holes),
    maps:from_list([{drop, Drop} || Drop > 0] ++ [{delay, Delay} || Delay > 0] ++ [{black_hole, true} || IsHole]).

%% What a program on a node sends to whom.
bulk(Node, #damage{nodes = Nodes, bulks = Bulks}) ->
    maps:from_list([
        {Peer, Rate}
     || Peer <- Nodes,
        Peer =/= Node,
        [Rate | _] <- [[Rate || {From, To, Rate} <- Bulks, is_way(Node, Peer, From, To)]],
        Rate =/= 0
    ]).

%% What is said again of these takes the place of what was said before.
anew(From, To, New, Said) ->
    [{From, To, New} | [Other || {A, B, _} = Other <- Said, {A, B} =/= {From, To}]].

is_way(Node, Peer, From, To) ->
    lists:member(Node, From) andalso lists:member(Peer, To).

passes(From, To, #damage{parts = Parts, cuts = Cuts}) ->
    SamePart = maps:get(From, Parts, 0) =:= maps:get(To, Parts, 0),
    SamePart andalso
        not lists:any(fun({A, B}) -> is_way(From, To, A, B) end, Cuts).

with(Keys, Map) -> maps:merge(Map, maps:from_keys(Keys, [])).
