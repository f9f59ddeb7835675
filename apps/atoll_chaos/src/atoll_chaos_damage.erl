%% @doc What is broken at the moment, and what has to be done to the nodes to come
%% from one moment to the next. Pure.
%%
%% Connections are told to each node as a whole: the peers from which it keeps,
%% in both directions or in one ({@link atoll_chaos_agent}). A node that is down
%% or paused cannot be told; it is when it is there again. For a cut in both
%% directions one end suffices.
%%
%% It also keeps what ever was done, so that healing need not know how far the
%% last change had come: each act of {@link healing/1} may be done once too often.
-module(atoll_chaos_damage).

-export([new/1, take/2, started/2, paused/1, awake/1, is_down/2, healing/1]).

-export_type([damage/0, act/0]).

-type act() ::
    {kill | pause | resume, node()}
    %% Stopped for so long, again and again; with 0 not any more.
    | {slow, node(), Ms :: non_neg_integer()}
    | {keep_from, node(), Closed :: [node()], Unheard :: [node()]}
    %% Nothing of the tool stays there.
    | {rest, node()}
    | {start, node()}.

-record(damage, {
    nodes :: [node()],
    %% Node => its part; all in one if there are none.
    parts = #{} :: #{node() => pos_integer()},
    cuts = [] :: [{From :: [node()], To :: [node()]}],
    paused = #{} :: #{node() => []},
    slow = #{} :: #{node() => []},
    down = #{} :: #{node() => []},
    %% What each node was told of its peers.
    told = #{} :: #{node() => {[node()], [node()]}},
    %% Ever done; and those that are to run in the end.
    ever = #{} :: #{{pause | slow, node()} => []},
    owed = #{} :: #{node() => []}
}).

-opaque damage() :: #damage{}.

%% @doc No damage, all nodes running.
-spec new([node()]) -> damage().
new(Nodes) -> #damage{nodes = Nodes}.

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
take(heal, #damage{slow = Slow, paused = Paused} = Damage0) ->
    {Quick, Damage1} = quick(lists:sort(maps:keys(Slow)), Damage0),
    {Acts, Damage} = take({resume, lists:sort(maps:keys(Paused))}, Damage1#damage{parts = #{}, cuts = []}),
    {Quick ++ Acts, Damage};
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

down(Nodes, #damage{down = Down, paused = Paused, told = Told} = Damage0) ->
    {Quick, Damage} = quick(Nodes, Damage0),
    {
        Quick ++ [{kill, Node} || Node <- Nodes, not is_map_key(Node, Down)],
        Damage#damage{
            down = with(Nodes, Down),
            paused = maps:without(Nodes, Paused),
            told = maps:without(Nodes, Told)
        }
    }.

quick(Nodes, #damage{slow = Slow} = Damage) ->
    {[{slow, Node, 0} || Node <- Nodes, is_map_key(Node, Slow)], Damage#damage{slow = maps:without(Nodes, Slow)}}.

%% Those who can hear it are told what is new to them.
tell(Acts, #damage{nodes = Nodes, told = Told0, paused = Paused, down = Down} = Damage) ->
    News = [
        {Node, Wanted}
     || Node <- Nodes,
        not is_map_key(Node, Paused),
        not is_map_key(Node, Down),
        Wanted <- [wanted(Node, Damage)],
        Wanted =/= maps:get(Node, Told0, {[], []})
    ],
    Told = maps:merge(Told0, maps:from_list(News)),
    {Acts ++ [{keep_from, Node, Closed, Unheard} || {Node, {Closed, Unheard}} <- News], Damage#damage{told = Told}}.

%% The peers with which a node has no contact, and those it does not hear.
wanted(Node, #damage{nodes = Nodes} = Damage) ->
    Peers = [{Peer, passes(Node, Peer, Damage), passes(Peer, Node, Damage)} || Peer <- Nodes, Peer =/= Node],
    {[Peer || {Peer, false, false} <- Peers], [Peer || {Peer, true, false} <- Peers]}.

passes(From, To, #damage{parts = Parts, cuts = Cuts}) ->
    SamePart = maps:get(From, Parts, 0) =:= maps:get(To, Parts, 0),
    SamePart andalso
        not lists:any(fun({A, B}) -> lists:member(From, A) andalso lists:member(To, B) end, Cuts).

with(Keys, Map) -> maps:merge(Map, maps:from_keys(Keys, [])).
