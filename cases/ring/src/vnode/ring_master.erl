%% SPDX-License-Identifier: Apache-2.0
%% @doc The master of a node's partitions. Commands for those that run are passed on where they come in ({@link ring_inbox}), and all others come to it: it starts a partition when the first command for it comes.
%%
%% A command for a primary whose partition another node has by now, and which does not run here any longer, goes on to its owner, once.
%%
%% Of each partition at most `queue' commands wait; one more is answered with `{error, overloaded}' at once, and counted.
-module(ring_master).
-behaviour(gen_server).

-export([start_link/0, new/0, vnodes/0, find/2, pass/1, drop/2, restore/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([command/0]).

-type id() :: {module(), ring_hash:partition()}.

-type command() :: {command, module(), ring_hash:partition(), ring_send:role(), Command :: term(), ring_send:from()}.

-type ending() :: #{id() => {pid(), [command()]}}.
%% Partitions whose process is about to end, with the commands that have come meanwhile, the last one first: two processes would have one file.

-define(TABLE, ring_vnodes).

%% @doc Starts it under its name.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Makes the table of what runs here; the caller owns it.
-spec new() -> ok.
new() ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc What runs here.
-spec vnodes() -> [{id(), pid()}].
vnodes() -> [{Id, Pid} || {Id, Pid, _} <- ets:tab2list(?TABLE)].

%% @doc The process of a partition.
-spec find(module(), ring_hash:partition()) -> {ok, pid()} | none.
find(Module, Partition) ->
    case ets:lookup(?TABLE, {Module, Partition}) of
        [{_, Pid, _}] -> {ok, Pid};
        [] -> none
    end.

%% @doc Gives a command to its partition, if that runs.
-spec pass(command()) -> passed | none.
pass({command, Module, Partition, Role, Command, From}) ->
    case ets:lookup(?TABLE, {Module, Partition}) of
        [{_, Pid, Queue}] ->
            ok = passed(Pid, Queue, Role, Command, From),
            passed;
        [] -> none
    end.

%% @doc A partition is another node's from now on, and is forgotten here. Its process ends some time later.
-spec drop(module(), ring_hash:partition()) -> ok.
drop(Module, Partition) -> gen_server:call(?MODULE, {drop, {Module, Partition}}, infinity).

%% @doc Starts the partitions of which there is something on the disk of this node.
-spec restore([id()]) -> ok.
restore(Ids) -> gen_server:call(?MODULE, {restore, Ids}, infinity).

%% @private
-spec init([]) -> {ok, ending()}.
init([]) ->
    _ = [monitor(process, Pid) || {_, Pid} <- vnodes()],
    {ok, #{}}.

%% @private
-spec handle_call({drop, id()} | {restore, [id()]}, gen_server:from(), ending()) -> {reply, ok, ending()}.
handle_call({drop, Id}, _, Ending) ->
    case ets:take(?TABLE, Id) of
        [{_, Pid, _}] ->
            ok = ring_vnode:drop(Pid),
            {reply, ok, Ending#{Id => {Pid, []}}};
        [] -> {reply, ok, Ending}
    end;
handle_call({restore, Ids}, _, Ending) ->
    _ = [started(Id) || Id <- Ids, ets:lookup(?TABLE, Id) =:= []],
    {reply, ok, Ending}.

%% @private
-spec handle_cast(term(), ending()) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(command() | {'DOWN', reference(), process, pid(), term()}, ending()) -> {noreply, ending()}.
handle_info({command, Module, Partition, _, _, From} = Command, Ending) when is_map_key({Module, Partition}, Ending) ->
    #{{Module, Partition} := {Pid, Waiting}} = Ending,
    {#{queue := Most}, _} = ring_options:installed(),
    case length(Waiting) >= Most of
        true ->
            overloaded(From),
            {noreply, Ending};
        false -> {noreply, Ending#{{Module, Partition} := {Pid, [Command | Waiting]}}}
    end;
handle_info({command, Module, Partition, Role, Command, From}, Ending) ->
    Id = {Module, Partition},
    case {ets:lookup(?TABLE, Id), Role} of
        {[{_, Pid, Queue}], _} -> passed(Pid, Queue, Role, Command, From);
        {[], primary} ->
            case ring_view:owner(Partition) of
                Owner when Owner =/= node() ->
                    case ring_view:is_up(Owner) of
                        true ->
                            ok = ring_view:count(misrouted),
                            ok = ring_send:command(Owner, {Module, Partition, fallback}, Command, From);
                        false -> begun(Id, Role, Command, From)
                    end;
                _ -> begun(Id, Role, Command, From)
            end;
        {[], _} -> begun(Id, Role, Command, From)
    end,
    {noreply, Ending};
handle_info({'DOWN', _, process, Pid, Why}, Ending) ->
    case ets:select_delete(?TABLE, [{{'_', Pid, '_'}, [], [true]}]) of
        1 when Why =/= shutdown -> ok = ring_view:count(lost_vnodes);
        _ -> ok
    end,
    case [{Id, Waiting} || {Id, {Of, Waiting}} <- maps:to_list(Ending), Of =:= Pid] of
        [{Id, Waiting}] ->
            lists:foldl(fun(Command, {noreply, Now}) -> handle_info(Command, Now) end, {noreply, maps:remove(Id, Ending)}, lists:reverse(Waiting));
        [] -> {noreply, Ending}
    end.

begun(Id, Role, Command, From) ->
    case started(Id) of
        {Pid, Queue} -> passed(Pid, Queue, Role, Command, From);
        %% The disk refuses, say.
        none -> refused(From, no_store)
    end.

started(Id) ->
    Queue = counters:new(1, [atomics]),
    case ring_vnode_sup:start_vnode(Id, Queue) of
        {ok, Pid} ->
            _ = monitor(process, Pid),
            true = ets:insert(?TABLE, {Id, Pid, Queue}),
            {Pid, Queue};
        {error, _} -> none
    end.

overloaded(From) ->
    ok = ring_view:count(overloaded),
    refused(From, overloaded).

refused(none, _) -> ok;
refused({Alias, _} = From, Why) -> ring_send:reply(From, node(Alias), {error, Why}).

passed(Pid, Queue, Role, Command, From) ->
    {#{queue := Most}, _} = ring_options:installed(),
    case counters:get(Queue, 1) >= Most of
        true -> overloaded(From);
        false ->
            ok = counters:add(Queue, 1, 1),
            ring_vnode:command(Pid, Role, Command, From)
    end.
