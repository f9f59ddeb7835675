%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What the processes of links and circuits tell the hub ({@link atoll_dist_hub}), and
%% what of it others read without asking it: which nodes are neighbours, of which a link is
%% wanted, and what is shown of each circuit.
-module(atoll_dist_circuits).

-export([tables/0, linked/3, counts/3, is_linked/1, via/1, note_link/2, own/2, is_own/1, disown/0]).
-export([attach/2, path/3, up/2, detach/1, counters/0, count/3, carry/3, stat/1, carried/1, show/2, forget/1, shown/1]).

-export_type([circuit/0, via/0, lane/0, shown/0]).

%% What the process of a connection knows of its circuit: the end, and what that counts.
-type circuit() :: {circuit, pid(), counters:counters_ref()}.

%% How frames go to a neighbour: as messages of Erlang's over the connection with it, with
%% spokes where it has lanes, or over the lanes of a circuit's own connection.
-type via() :: messages | {spokes, tuple()} | {own, Lanes :: tuple()}.

%% Of such a connection, to which a process writes for those who must not wait, and for all if
%% it has TLS, where there is no socket to write to.
-type lane() :: {Writer :: pid(), gen_tcp:socket() | none}.

-type shown() :: #{
    rtt_us := non_neg_integer(),
    bytes_in := non_neg_integer(),
    bytes_out := non_neg_integer(),
    %% A node whose name is no atom here stands as text.
    path := [node() | atoll_dist_circuit_frame:name()],
    sealed := boolean(),
    %% How often it took another path.
    moves := non_neg_integer()
}.

-define(HUB, atoll_dist_hub).
-define(NODES, atoll_dist_neighbours).
-define(ENDS, atoll_dist_ends).

%% What is counted of frames and bytes; and of the packets of the VM that are in them.
-define(FRAMES_IN, 1).
-define(FRAMES_OUT, 2).
-define(BYTES_IN, 3).
-define(BYTES_OUT, 4).
-define(PACKETS_IN, 5).
-define(PACKETS_OUT, 6).

%% @doc Makes the tables; called by the hub, which owns them.
-spec tables() -> ok.
tables() ->
    ?NODES = ets:new(?NODES, [named_table, {read_concurrency, true}]),
    %% Each end writes its own row.
    ?ENDS = ets:new(?ENDS, [named_table, public]),
    ok.

%% Neighbours

%% @doc The process is that of a link with the node: it is a neighbour from now on, until
%% the process ends. Frames go to it so, or over so many lanes. A circuit's own connection
%% does not take the place of one that is between the two nodes already.
-spec linked(node(), pid(), via() | {lanes, atoll_dist_lanes:count()}) -> ok | taken.
linked(Node, Pid, {lanes, 1}) ->
    linked(Node, Pid, messages);
linked(Node, Pid, {lanes, N}) ->
    linked(Node, Pid, {spokes, atoll_dist_spoke:start(Node, N, Pid)});
linked(Node, Pid, Via) ->
    gen_server:call(?HUB, {linked, Node, Pid, Via}, infinity).

%% @doc Whether that link counts as one: no new circuit is to go over one that is about to
%% be closed.
-spec counts(node(), pid(), boolean()) -> ok.
counts(Node, Pid, Counts) ->
    gen_server:call(?HUB, {counts, Node, Pid, Counts}, infinity).

%% @doc Whether the node is a neighbour, and to stay one.
-spec is_linked(node()) -> boolean().
is_linked(Node) ->
    case ets:lookup(?NODES, {link, Node}) of
        [{_, _Via, Counts}] -> Counts;
        [] -> false
    end.

%% @doc How frames go to it; nothing if it is no neighbour.
-spec via(node()) -> via() | none.
via(Node) ->
    case ets:lookup(?NODES, {link, Node}) of
        [{_, Via, _Counts}] -> Via;
        [] -> none
    end.

%% @doc Notes it; called by the hub.
-spec note_link(node(), {via(), Counts :: boolean()} | none) -> ok.
note_link(Node, {Via, Counts}) ->
    true = ets:insert(?NODES, {{link, Node}, Via, Counts}),
    ok;
note_link(Node, none) ->
    true = ets:delete(?NODES, {link, Node}),
    ok.

%% @doc Notes whether a room above wants a link with that node; called by the hub.
-spec own(node(), boolean()) -> ok.
own(Node, true) ->
    true = ets:insert(?NODES, {{own, Node}}),
    ok;
own(Node, false) ->
    true = ets:delete(?NODES, {own, Node}),
    ok.

%% @doc Whether such a link is wanted.
-spec is_own(node()) -> boolean().
is_own(Node) ->
    ets:member(?NODES, {own, Node}).

%% @doc None is wanted any more; called by the hub. Those that were.
-spec disown() -> [node()].
disown() ->
    Owned = lists:append(ets:match(?NODES, {{own, '$1'}})),
    true = ets:match_delete(?NODES, {{own, '_'}}),
    Owned.

%% Ends

%% @doc The end of a circuit that is about to be opened.
-spec attach(atoll_dist_circuit_frame:id(), pid()) -> ok | taken.
attach(Id, Pid) ->
    gen_server:call(?HUB, {attach, Id, Pid}, infinity).

%% @doc The calling end's circuit goes over that neighbour, by that key.
-spec path(atoll_dist_circuit_frame:id(), node(), atoll_dist_circuit_frame:key()) -> ok.
path(Id, Leg, Key) ->
    gen_server:cast(?HUB, {path, Id, self(), Leg, Key}).

%% @doc The calling end's connection, with that node, is up: from now on it is told by
%% `{own, boolean()}' whether a link with it is wanted.
-spec up(atoll_dist_circuit_frame:id(), node()) -> ok.
up(Id, Node) ->
    gen_server:cast(?HUB, {up, Id, self(), Node}).

%% @doc The calling end is about to go, and has told the other end.
-spec detach(atoll_dist_circuit_frame:id()) -> ok.
detach(Id) ->
    gen_server:cast(?HUB, {detach, Id, self()}).

%% @doc Counters of one circuit.
-spec counters() -> counters:counters_ref().
counters() ->
    counters:new(6, [write_concurrency]).

%% @doc So many frames, of so many bytes, have come or gone.
-spec count(in | out, {Frames :: pos_integer(), Bytes :: pos_integer()}, counters:counters_ref()) -> ok.
count(in, {Frames, Bytes}, Counters) ->
    ok = counters:add(Counters, ?FRAMES_IN, Frames),
    counters:add(Counters, ?BYTES_IN, Bytes);
count(out, {Frames, Bytes}, Counters) ->
    ok = counters:add(Counters, ?FRAMES_OUT, Frames),
    counters:add(Counters, ?BYTES_OUT, Bytes).

%% @doc So many packets of the VM were given to it, or taken from it.
-spec carry(in | out, non_neg_integer(), counters:counters_ref()) -> ok.
carry(in, Packets, Counters) -> counters:add(Counters, ?PACKETS_IN, Packets);
carry(out, Packets, Counters) -> counters:add(Counters, ?PACKETS_OUT, Packets).

%% @doc How many frames have come and gone, as the VM's distribution asks it.
-spec stat(circuit()) -> {ok, Received :: integer(), Sent :: integer(), Waiting :: 0}.
stat({circuit, _, Counters}) ->
    {ok, counters:get(Counters, ?FRAMES_IN), counters:get(Counters, ?FRAMES_OUT), 0}.

%% @doc How many packets of the VM the circuit of that end has carried, each way: what its
%% ends ask each other for is not among them.
-spec carried(End :: pid()) -> {ok, {In :: non_neg_integer(), Out :: non_neg_integer()}} | unknown.
carried(End) ->
    try ets:lookup(?ENDS, End) of
        [{_, _Shown, Counters}] -> {ok, {counters:get(Counters, ?PACKETS_IN), counters:get(Counters, ?PACKETS_OUT)}};
        [] -> unknown
    catch
        %% A node without the carrier.
        error:badarg -> unknown
    end.

%% @doc Shows something of the calling end, with these counters, from now on.
-spec show(map(), counters:counters_ref()) -> ok.
show(What, Counters) ->
    Before =
        case ets:lookup(?ENDS, self()) of
            [{_, Shown, _}] -> Shown;
            [] -> #{}
        end,
    true = ets:insert(?ENDS, {self(), maps:merge(Before, What), Counters}),
    ok.

%% @doc Nothing more is shown of an end that has gone.
-spec forget(pid()) -> ok.
forget(End) ->
    true = ets:delete(?ENDS, End),
    ok.

%% @doc What is shown of a circuit, if it has not ended.
-spec shown(circuit()) -> {ok, shown()} | ended.
shown({circuit, End, Counters}) ->
    try ets:lookup(?ENDS, End) of
        [{_, Shown, _}] ->
            {ok, Shown#{bytes_in => counters:get(Counters, ?BYTES_IN), bytes_out => counters:get(Counters, ?BYTES_OUT)}};
        [] ->
            ended
    catch
        error:badarg -> ended
    end.
