%% @doc What the processes of links and circuits tell the hub ({@link atoll_dist_hub}), and
%% what of it others read without asking it: which nodes are neighbours, of which a link is
%% wanted, and what is shown of each circuit.
-module(atoll_dist_circuits).

-export([tables/0, linked/2, is_linked/1, is_linked/2, own/2, is_own/1]).
-export([attach/2, path/3, up/1, detach/1, counters/0, count/3, stat/1, show/1, forget/1, shown/1]).

-export_type([circuit/0, shown/0]).

%% What the process of a connection knows of its circuit: the end, and what that counts.
-type circuit() :: {circuit, pid(), counters:counters_ref()}.

-type shown() :: #{
    rtt_us := non_neg_integer(),
    bytes_in := non_neg_integer(),
    bytes_out := non_neg_integer(),
    %% A node whose name is no atom here stands as text.
    path := [node() | atoll_dist_circuit_frame:name()],
    sealed := boolean()
}.

-define(HUB, atoll_dist_hub).
-define(NODES, atoll_dist_neighbours).
-define(ENDS, atoll_dist_ends).

%% What is counted of frames and bytes.
-define(FRAMES_IN, 1).
-define(FRAMES_OUT, 2).
-define(BYTES_IN, 3).
-define(BYTES_OUT, 4).

%% @doc Makes the tables; called by the hub, which owns them.
-spec tables() -> ok.
tables() ->
    ?NODES = ets:new(?NODES, [named_table, {read_concurrency, true}]),
    %% Each end writes its own row.
    ?ENDS = ets:new(?ENDS, [named_table, public]),
    ok.

%% Neighbours

%% @doc The process is that of a link with the node: it is a neighbour from now on, until
%% the process ends.
-spec linked(node(), pid()) -> ok.
linked(Node, Pid) ->
    gen_server:call(?HUB, {linked, Node, Pid}, infinity).

%% @doc Whether the node is a neighbour.
-spec is_linked(node()) -> boolean().
is_linked(Node) ->
    ets:member(?NODES, {link, Node}).

%% @doc Notes it; called by the hub.
-spec is_linked(node(), boolean()) -> ok.
is_linked(Node, Is) ->
    note({link, Node}, Is).

%% @doc Notes whether a room above wants a link with that node; called by the hub.
-spec own(node(), boolean()) -> ok.
own(Node, Wants) ->
    note({own, Node}, Wants).

%% @doc Whether such a link is wanted.
-spec is_own(node()) -> boolean().
is_own(Node) ->
    ets:member(?NODES, {own, Node}).

note(Key, Is) ->
    true =
        case Is of
            true -> ets:insert(?NODES, {Key});
            false -> ets:delete(?NODES, Key)
        end,
    ok.

%% Ends

%% @doc The end of a circuit that is about to be opened.
-spec attach(atoll_dist_circuit_frame:id(), pid()) -> ok | taken.
attach(Id, Pid) ->
    gen_server:call(?HUB, {attach, Id, Pid}, infinity).

%% @doc The calling end's circuit goes over that neighbour, by that key.
-spec path(atoll_dist_circuit_frame:id(), node(), atoll_dist_circuit_frame:key()) -> ok.
path(Id, Leg, Key) ->
    gen_server:cast(?HUB, {path, Id, self(), Leg, Key}).

%% @doc The calling end's connection is up.
-spec up(atoll_dist_circuit_frame:id()) -> ok.
up(Id) ->
    gen_server:cast(?HUB, {up, Id, self()}).

%% @doc The calling end is about to go, and has told the other end.
-spec detach(atoll_dist_circuit_frame:id()) -> ok.
detach(Id) ->
    gen_server:cast(?HUB, {detach, Id, self()}).

%% @doc Counters of one circuit.
-spec counters() -> counters:counters_ref().
counters() ->
    counters:new(4, [write_concurrency]).

%% @doc So many frames, of so many bytes, have come or gone.
-spec count(in | out, {Frames :: pos_integer(), Bytes :: pos_integer()}, counters:counters_ref()) -> ok.
count(in, {Frames, Bytes}, Counters) ->
    ok = counters:add(Counters, ?FRAMES_IN, Frames),
    counters:add(Counters, ?BYTES_IN, Bytes);
count(out, {Frames, Bytes}, Counters) ->
    ok = counters:add(Counters, ?FRAMES_OUT, Frames),
    counters:add(Counters, ?BYTES_OUT, Bytes).

%% @doc How many frames have come and gone, as the VM's distribution asks it.
-spec stat(circuit()) -> {ok, Received :: integer(), Sent :: integer(), Waiting :: 0}.
stat({circuit, _, Counters}) ->
    {ok, counters:get(Counters, ?FRAMES_IN), counters:get(Counters, ?FRAMES_OUT), 0}.

%% @doc Shows something of the calling end from now on.
-spec show(map()) -> ok.
show(What) ->
    Before =
        case ets:lookup(?ENDS, self()) of
            [{_, Shown}] -> Shown;
            [] -> #{}
        end,
    true = ets:insert(?ENDS, {self(), maps:merge(Before, What)}),
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
        [{_, Shown}] ->
            {ok, Shown#{bytes_in => counters:get(Counters, ?BYTES_IN), bytes_out => counters:get(Counters, ?BYTES_OUT)}};
        [] ->
            ended
    catch
        error:badarg -> ended
    end.
