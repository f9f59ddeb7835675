%% SPDX-License-Identifier: Apache-2.0
%% @doc A partition on a node: the behaviour of what it does, and the process that runs it.
%%
%% A module of this behaviour answers commands, and knows its *items*, each a key with something that can be merged with what stands
%% elsewhere under the same key, in any order and more than once. With that the process hands the partition to another node while commands
%% go on ({@link ring_handoff}): it gives items, keeps in mind which have changed meanwhile, and gives those again. For the last few, commands wait, some milliseconds; from then on all are
%% passed on to the new node.
%%
%% Promised: an item that a command had changed, and had said so, before the partition was handed over, is there when commands get there. If the other node is
%% lost meanwhile all goes on here as before.
-module(ring_vnode).
-behaviour(gen_server).

-export([start_link/2, command/4, drop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([item/0]).

-type item() :: {Key :: term(), Item :: term()}.

%% The partition as it was left here, or empty.
-callback init(ring_hash:partition(), ring_options:options()) -> {ok, State :: term()}.

%% Answers a command, and says of which keys the items have changed.
-callback handle_command(Command :: term(), State) -> {reply, Reply :: term(), Changed :: [Key :: term()], State}.

%% What is asked of all keys, for those that belong to these partitions.
-callback handle_coverage(Request :: term(), [ring_hash:partition()], State :: term()) -> Reply :: term().

%% Items in some order of their keys that does not change: so many at most, and not many more bytes than that; after this place, and the place of the last of them.
-callback items(After :: term() | first, {Count :: pos_integer(), Bytes :: pos_integer()}, State :: term()) -> {[item()], Place :: term()}.

%% Those of these keys that there are.
-callback items([Key :: term()], State :: term()) -> [item()].

%% Merges items of another node.
-callback take([item()], State) -> {Changed :: [Key :: term()], State}.

-callback is_empty(State :: term()) -> boolean().

%% What it comes to, for people.
-callback size(State :: term()) -> #{atom() => non_neg_integer()}.

%% Forgets everything, for good; or ends as it is.
-callback drop(State :: term()) -> ok.
-callback close(State :: term()) -> ok.

%% Of one message of a handoff: a command waits for no more than that.
-define(PIECE, {20, 262144}).
%% Commands that wait for the end of a handoff; one more is refused.
-define(WAITING, 10_000).

-record(state, {
    module :: module(),
    partition :: ring_hash:partition(),
    %% Of the commands that have come and are not done: the master adds, this process takes away.
    queue :: counters:counters_ref(),
    inner :: term(),
    %% Who hands it over now, if anybody, and the keys that have changed since.
    worker = none :: {pid(), reference()} | none,
    changed = #{} :: #{Key :: term() => true},
    %% The last items are on their way: what comes waits, the last one first.
    waiting = none :: [term()] | none,
    waits = 0 :: non_neg_integer(),
    %% Where all commands go from now on.
    passed_to = none :: node() | none
}).

%% @doc Starts it; the supervisor does.
-spec start_link({module(), ring_hash:partition()}, counters:counters_ref()) -> gen_server:start_ret().
start_link(Id, Queue) -> gen_server:start_link(?MODULE, {Id, Queue}, []).

%% @doc Gives it a command; its master does.
-spec command(pid(), ring_send:role(), Command :: term(), ring_send:from()) -> ok.
command(Vnode, Role, Command, From) ->
    _ = Vnode ! {command, Role, Command, From},
    ok.

%% @doc It is of no use here any longer, and ends when it has passed on what has come.
-spec drop(pid()) -> ok.
drop(Vnode) ->
    _ = Vnode ! drop,
    ok.

%% @private
-spec init({{module(), ring_hash:partition()}, counters:counters_ref()}) -> {ok, #state{}}.
init({{Module, Partition}, Queue}) ->
    _ = process_flag(trap_exit, true),
    {Options, _} = ring_options:installed(),
    {ok, Inner} = Module:init(Partition, Options),
    {ok, #state{module = Module, partition = Partition, queue = Queue, inner = Inner}}.

%% @private What whoever hands it over asks, and people.
-spec handle_call(Request, gen_server:from(), #state{}) -> {reply, term(), #state{}} when
    Request :: handoff | {items, After :: term()} | changed | {handed, node()} | look.
handle_call(handoff, {Worker, _}, #state{worker = none, passed_to = none} = S) ->
    {reply, ok, S#state{worker = {Worker, monitor(process, Worker)}, changed = #{}}};
%% Whoever has begun that may have ended before it was known.
handle_call(handoff, _, #state{passed_to = To} = S) when To =/= none ->
    {reply, {passing, To}, S};
handle_call(handoff, _, S) ->
    {reply, busy, S};
handle_call({items, After}, _, #state{module = Module, inner = Inner} = S) ->
    {reply, Module:items(After, ?PIECE, Inner), S};
%% The last of them, if there are no more than one piece takes: then commands begin to wait.
handle_call(changed, _, #state{module = Module, inner = Inner, changed = Changed} = S) ->
    {Items, Later} = piece(maps:next(maps:iterator(Changed)), Changed, ?PIECE, fun(Key) -> Module:items([Key], Inner) end),
    case map_size(Later) of
        0 -> {reply, {last, Items}, S#state{changed = Later, waiting = [], waits = 0}};
        _ -> {reply, {more, Items}, S#state{changed = Later}}
    end;
handle_call({handed, Node}, _, #state{worker = {_, Ref}} = S) ->
    true = demonitor(Ref, [flush]),
    {reply, ok, again(S#state{worker = none, passed_to = Node})};
handle_call(look, _, #state{module = Module, inner = Inner, worker = Worker, passed_to = To} = S) ->
    {reply, (Module:size(Inner))#{is_empty => Module:is_empty(Inner), is_handed => Worker =/= none orelse To =/= none}, S}.

%% So many of these keys at most, and not many more bytes than that; and those that are left.
piece(none, Left, _, _) -> {[], Left};
piece(_, Left, {Count, Bytes}, _) when Count =:= 0; Bytes =< 0 -> {[], Left};
piece({Key, _, Keys}, Left, {Count, Bytes}, Item) ->
    Items = Item(Key),
    {More, Later} = piece(maps:next(Keys), maps:remove(Key, Left), {Count - 1, Bytes - erlang:external_size(Items)}, Item),
    {Items ++ More, Later}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, dropped}, #state{}}.
handle_info({command, _, _, _} = Command, S) ->
    {noreply, came(Command, S)};
%% Whoever handed it over is lost, and what has waited is done here.
handle_info({'DOWN', Ref, process, _, _}, #state{worker = {_, Ref}} = S) ->
    {noreply, again(S#state{worker = none, changed = #{}})};
handle_info(drop, #state{module = Module, inner = Inner} = S) ->
    ok = Module:drop(Inner),
    ok = given_back(S),
    {stop, {shutdown, dropped}, S#state{inner = dropped}};
handle_info({'EXIT', _, Why}, S) ->
    {stop, Why, S}.

%% What was on its way here when the master was told.
given_back(#state{module = Module, partition = Partition} = S) ->
    receive
        {command, Role, Command, From} ->
            ok = ring_send:command(node(), {Module, Partition, Role}, Command, From),
            given_back(S)
    after 0 -> ok
    end.

again(#state{waiting = none} = S) -> S;
again(#state{waiting = Waiting} = S) -> lists:foldl(fun came/2, S#state{waiting = none, waits = 0}, lists:reverse(Waiting)).

%% What this node has handed to that one comes back to it, or goes on, by another plan, and not by these two.
came({command, here, {take, _}, From}, #state{passed_to = To} = S) when To =/= none ->
    ok = answer(From, {error, passing}),
    counted(S);
came({command, Role, Command, From}, #state{passed_to = To, module = Module, partition = P} = S) when To =/= none ->
    ok = ring_send:command(To, {Module, P, case Role of here -> here; _ -> fallback end}, Command, From),
    counted(S);
came({command, _, _, From}, #state{waiting = Waiting, waits = N} = S) when Waiting =/= none, N >= ?WAITING ->
    ok = answer(From, {error, overloaded}),
    counted(S);
came(Command, #state{waiting = Waiting, waits = N} = S) when Waiting =/= none ->
    S#state{waiting = [Command | Waiting], waits = N + 1};
came({command, _, {coverage, Request, Partitions}, From}, #state{module = Module, inner = Inner} = S) ->
    ok = answer(From, Module:handle_coverage(Request, Partitions, Inner)),
    counted(S);
came({command, _, {take, Items}, From}, #state{module = Module, partition = P, inner = Inner} = S) ->
    case is_kept(P) of
        true ->
            {Keys, Now} = Module:take(Items, Inner),
            ok = answer(From, taken),
            counted(changed(Keys, S#state{inner = Now}));
        false ->
            ok = answer(From, {error, elsewhere}),
            counted(S)
    end;
came({command, _, Command, From}, #state{module = Module, inner = Inner} = S) ->
    {reply, Reply, Keys, Now} = Module:handle_command(Command, Inner),
    ok = answer(From, Reply),
    counted(changed(Keys, S#state{inner = Now})).

%% A node that has not heard of the plan yet by which it is to have a partition would take it for a hint, and hand it back while it comes.
is_kept(P) ->
    case ring_view:ring() of
        {ok, Ring} -> P < ring_state:partitions(Ring) andalso case ring_state:target(P, node(), Ring) of {owner, _} -> false; _ -> true end;
        none -> true
    end.

%% Only a handoff asks for it.
changed(_, #state{worker = none} = S) -> S;
changed(Keys, #state{changed = Changed} = S) -> S#state{changed = lists:foldl(fun(Key, All) -> All#{Key => true} end, Changed, Keys)}.

counted(#state{queue = Queue} = S) ->
    ok = counters:sub(Queue, 1, 1),
    S.

answer(none, _) -> ok;
answer({Alias, _} = From, Reply) -> ring_send:reply(From, node(Alias), Reply).

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{inner = dropped}) -> ok;
terminate(_, #state{module = Module, inner = Inner}) -> Module:close(Inner).
