%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on the nodes of the benchmark {@link atoll_bench_overlay}: a listener
%% on each, which keeps when it heard of what, the readings, and the sender of
%% broadcasts.
%%
%% Times are of the machine's monotonic clock, nanoseconds, so those of different nodes
%% can be compared: all nodes are on one machine.
-module(atoll_bench_overlay_load).

-export([listen/1, heard/2, view/1, traffic/0, rates/2, allocated/0, broadcast/4, join/2, now_ns/0]).

-export_type([system/0, key/0, view/0, traffic/0]).

%% `bare' is no cluster at all, `stock' the mesh of stock distribution, `carrier' that of the
%% carrier, `groups' are groups of Atoll; any other is a strategy of Atoll.
-type system() :: bare | stock | carrier | groups | atom().

-type key() :: {up | down, node()} | {got, Batch :: integer(), Number :: pos_integer()}.

%% Who is in the cluster (this node included), whom a standing connection is held
%% with, and who is connected at all.
-type view() :: {Members :: [node()], Neighbours :: [node()], Connected :: [node()]}.

%% What went over each connection that is there so far, both ways, and when that was.
-type traffic() :: {AtNs :: integer(), #{port() => {Bytes :: non_neg_integer(), Messages :: non_neg_integer()}}}.

-define(TOPIC, ?MODULE).
-define(PAYLOAD_BYTES, 100).

%% @doc Starts the listener. When this returns it misses nothing.
-spec listen(system()) -> ok.
listen(System) ->
    Self = self(),
    Tag = make_ref(),
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        ok = subscribe(System),
        Self ! Tag,
        listening(#{}, [])
    end),
    receive
        Tag -> ok
    end.

subscribe(System) when System =:= bare; System =:= stock ->
    net_kernel:monitor_nodes(true);
subscribe(_Strategy) ->
    atoll:subscribe([member_up, member_down, {broadcast, ?TOPIC}]).

%% What was heard is kept until it is asked for.
listening(Heard, Waiting) ->
    receive
        {nodeup, Node} -> note({up, Node}, Heard, Waiting);
        {nodedown, Node} -> note({down, Node}, Heard, Waiting);
        {atoll, member_up, #{node := Node}} -> note({up, Node}, Heard, Waiting);
        {atoll, member_down, #{node := Node}} -> note({down, Node}, Heard, Waiting);
        {atoll, broadcast, #{payload := {Key, _Payload}}} -> note(Key, Heard, Waiting);
        {broadcast, {Key, _Payload}} -> note(Key, Heard, Waiting);
        {ask, From, Keys} -> answer(Heard, [{From, Keys} | Waiting]);
        {missing, {_, Tag} = From, Keys} ->
            reply(From, {missing, Keys -- maps:keys(Heard)}),
            listening(Heard, [W || {{_, T}, _} = W <- Waiting, T =/= Tag])
    end.

note(Key, Heard, Waiting) ->
    Now = now_ns(),
    answer(maps:merge(#{Key => Now}, Heard), Waiting).

answer(Heard, Waiting) ->
    {Ready, Rest} = lists:partition(
        fun({_From, Keys}) -> lists:all(fun(Key) -> is_map_key(Key, Heard) end, Keys) end, Waiting
    ),
    lists:foreach(fun({From, Keys}) -> reply(From, {ok, [map_get(Key, Heard) || Key <- Keys]}) end, Ready),
    listening(maps:without(lists:append([Keys || {_, Keys} <- Ready]), Heard), Rest).

reply({Pid, Tag}, Answer) ->
    Pid ! {Tag, Answer},
    ok.

%% @doc When this node first heard of each of these, which it then forgets. Waits for
%% what it has not heard of yet; what is still missing then is named.
-spec heard([key()], Ms :: pos_integer()) -> {ok, [integer()]} | {missing, [key(), ...]}.
heard(Keys, Ms) ->
    Tag = make_ref(),
    ?MODULE ! {ask, {self(), Tag}, Keys},
    receive
        {Tag, Answer} -> Answer
    after Ms ->
        ?MODULE ! {missing, {self(), Tag}, Keys},
        %% The listener may have answered meanwhile, and that comes first.
        receive
            {Tag, Answer} -> Answer
        end
    end.

%% @doc The cluster as this node sees it.
-spec view(system()) -> view().
view(System) when System =:= bare; System =:= stock ->
    Connected = lists:sort(nodes(connected)),
    {lists:sort([node() | Connected]), Connected, Connected};
view(carrier) ->
    view(stock);
view(groups) ->
    {ok, Reachable} = atoll:reachable(),
    Links = [Node || #{node := Node, kind := Kind} <- atoll_dist:links(), Kind =/= relay],
    {lists:usort([node() | Reachable]), lists:sort(Links), lists:sort(nodes(connected))};
view(_Strategy) ->
    {atoll:members(), atoll:neighbours(), lists:sort(nodes(connected))}.

%% @doc What this node has sent and received over distribution.
-spec traffic() -> traffic().
traffic() ->
    {now_ns(),
        maps:from_list([
            {Port, {Sent + Received, Out + In}}
         || {_Node, Port} <- erlang:system_info(dist_ctrl),
            %% What goes over a circuit goes over somebody's socket.
            is_port(Port),
            %% A connection that has just ended has no counters.
            {ok, Stat} <- [inet:getstat(Port, [send_oct, recv_oct, send_cnt, recv_cnt])],
            [{send_oct, Sent}, {recv_oct, Received}, {send_cnt, Out}, {recv_cnt, In}] <- [Stat]
        ])}.

%% @doc Bytes and messages a second between two readings. A connection that came between
%% them counts from its beginning; what went over one that has ended is not known.
-spec rates(traffic(), traffic()) -> {BytesPerS :: float(), MessagesPerS :: float()}.
rates({At0, Traffic0}, {At, Traffic}) ->
    Seconds = (At - At0) / 1.0e9,
    {Bytes, Messages} = lists:unzip([
        {Bytes - Bytes0, Messages - Messages0}
     || {Port, {Bytes, Messages}} <- maps:to_list(Traffic),
        {Bytes0, Messages0} <- [maps:get(Port, Traffic0, {0, 0})]
    ]),
    {lists:sum(Bytes) / Seconds, lists:sum(Messages) / Seconds}.

%% @doc The bytes that this VM has allocated.
-spec allocated() -> non_neg_integer().
allocated() ->
    erlang:memory(total).

%% @doc Sends so many broadcasts to the nodes, one after each pause, and says when each
%% was sent. In stock distribution that is a message to every node.
-spec broadcast(system(), Batch :: integer(), Count :: pos_integer(), PauseMs :: pos_integer()) -> [integer()].
broadcast(System, Batch, Count, PauseMs) ->
    Payload = rand:bytes(?PAYLOAD_BYTES),
    [
        begin
            receive
            after PauseMs -> ok
            end,
            Sent = now_ns(),
            ok = send(System, {{got, Batch, Number}, Payload}),
            Sent
        end
     || Number <- lists:seq(1, Count)
    ].

send(stock, Message) ->
    lists:foreach(fun(Node) -> {?MODULE, Node} ! {broadcast, Message} end, [node() | nodes()]);
send(_Strategy, Message) ->
    atoll:broadcast(?TOPIC, Message).

%% @doc Joins a cluster by one of its nodes: when it began, and when this node had a
%% neighbour.
-spec join(system(), node()) -> {ok, {integer(), integer()}} | {error, unicode:chardata()}.
join(System, Contact) ->
    Begin = now_ns(),
    case joined(System, Contact) of
        ok -> {ok, {Begin, now_ns()}};
        {error, _} = Error -> Error
    end.

joined(stock, Contact) ->
    case net_kernel:connect_node(Contact) of
        true -> ok;
        _ -> {error, io_lib:format("~ts cannot be connected with", [Contact])}
    end;
joined(_Strategy, Contact) ->
    case atoll:join(Contact) of
        ok -> ok;
        {error, Error} -> {error, atoll:format_error(Error)}
    end.

%% @doc The time by the clock that all nodes have in common.
-spec now_ns() -> integer().
now_ns() ->
    os:perf_counter(nanosecond).
