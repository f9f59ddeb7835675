%% SPDX-License-Identifier: Apache-2.0
%% @doc Messages of partitions in a channel of Atoll's carrier: for each other node some processes that do nothing but send to it, each for a part of all partitions.
%%
%% A process's messages keep to one lane, so those of a partition do, whoever sends them, and those of others go beside them: as the paper's connections
%% take them by a partition key. The processes stay, since each one that is new to a channel costs its connection a fence, at which all lanes wait for each other.
%% A caller never waits for a connection that is busy; what waits for one is bounded by the requests that are under way, of which each has few messages.
%%
%% Promised: messages of one partition to one node come in the order in which they were sent. What waits for a node is forgotten when its connection is lost.
-module(ring_lanes).
-behaviour(gen_server).

-export([start_link/1, new/0, send/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% As many as a connection can have lanes.
-define(PARTS, 64).

-type place() :: {node(), Part :: 0..63}.

%% @doc Starts what starts them, under its name.
-spec start_link(ring_options:options()) -> gen_server:start_ret().
start_link(#{channel := Channel}) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Channel, []).

%% @doc Makes the table of them; the caller owns it.
-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc Sends a message of a partition to a process of another node.
-spec send(node(), ring_hash:partition(), To :: reference() | {atom(), node()}, Message :: term()) -> ok.
send(Node, Partition, To, Message) ->
    Place = {Node, Partition rem ?PARTS},
    Sender = case ets:lookup(?MODULE, Place) of
        [{_, Pid}] -> Pid;
        [] -> gen_server:call(?MODULE, {sender, Place}, infinity)
    end,
    _ = Sender ! {send, To, Message},
    ok.

%% @private A channel that there is not is found here, and not with the first message.
-spec init(atom()) -> {ok, atom()} | {stop, term()}.
init(none) -> {ok, none};
init(Channel) ->
    _ = process_flag(trap_exit, true),
    true = ets:delete_all_objects(?MODULE),
    ok = net_kernel:monitor_nodes(true),
    case atoll:channel(Channel) of
        ok -> {ok, Channel};
        {error, Error} -> {stop, {bad_channel, lists:flatten(atoll:format_error(Error))}}
    end.

%% @private
-spec handle_call({sender, place()}, gen_server:from(), atom()) -> {reply, pid(), atom()}.
handle_call({sender, Place}, _, Channel) ->
    case ets:lookup(?MODULE, Place) of
        [{_, Pid}] -> {reply, Pid, Channel};
        [] ->
            Pid = spawn_link(fun() -> ok = atoll:channel(Channel), sending() end),
            true = ets:insert(?MODULE, {Place, Pid}),
            {reply, Pid, Channel}
    end.

sending() ->
    receive
        {send, To, Message} ->
            _ = To ! Message,
            sending()
    end.

%% @private
-spec handle_cast(term(), atom()) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info({nodeup | nodedown, node()} | {'EXIT', pid(), term()}, atom()) -> {noreply, atom()}.
handle_info({nodeup, _}, Channel) -> {noreply, Channel};
handle_info({nodedown, Node}, Channel) ->
    _ = [exit(Pid, kill) || {{Of, _}, Pid} <- ets:tab2list(?MODULE), Of =:= Node],
    true = ets:match_delete(?MODULE, {{Node, '_'}, '_'}),
    {noreply, Channel};
handle_info({'EXIT', Pid, _}, Channel) ->
    true = ets:match_delete(?MODULE, {'_', Pid}),
    {noreply, Channel}.
