%% SPDX-License-Identifier: Apache-2.0
%% @doc What ends the run on this node when it is over elsewhere: it watches whoever has asked the
%% submasters and colonies here last, and when such a one is gone for good, ends all of the run here.
%% So those below lose whom they work for, and the run ends on all nodes, whatever was killed.
%%
%% One that was killed is started again somewhere, and asks. It may take a while to be asked to do so
%% itself, or for other nodes to be tried in vain. Who ended in order has ended the run. To end too
%% much costs time and no more: what is missed is started again.
-module(aco_leash).
-behaviour(gen_server).

-export([start_link/1, follow/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {run :: aco_host:run(), above = #{} :: #{aco_tree:id() => {pid(), reference()}}}).

-define(ORPHAN_MS, 120_000).
%% Of one that was gone before it could be watched: why, nobody knows.
-define(UNSEEN_MS, 10_000).

%% @doc Starts it, for a host.
-spec start_link(aco_host:run()) -> gen_server:start_ret().
start_link(Run) -> gen_server:start_link(?MODULE, Run, []).

%% @doc That submaster or colony of this node is asked by that process from now on.
-spec follow(aco_tree:run_id(), aco_tree:id(), pid()) -> ok.
follow(RunId, Id, Pid) ->
    case aco_keep:get(RunId, {above, Id}, none) of
        Pid -> ok;
        _ ->
            ok = aco_keep:put(RunId, {above, Id}, Pid),
            Leash = aco_keep:get(RunId, leash, none),
            %% If it is not there it reads what is kept when it is.
            _ = is_pid(Leash) andalso gen_server:cast(Leash, {follow, Id, Pid}),
            ok
    end.

%% @private
-spec init(aco_host:run()) -> {ok, #state{}}.
init(#{id := RunId} = Run) ->
    ok = aco_keep:put(RunId, leash, self()),
    {ok, lists:foldl(fun followed/2, #state{run = Run}, aco_keep:above(RunId))}.

followed({Id, Pid}, #state{above = Above} = S) ->
    _ = case Above of #{Id := {_, Ref}} -> demonitor(Ref, [flush]); #{} -> none end,
    S#state{above = Above#{Id => {Pid, monitor(process, Pid)}}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast({follow, aco_tree:id(), pid()}, #state{}) -> {noreply, #state{}}.
handle_cast({follow, Id, Pid}, S) -> {noreply, followed({Id, Pid}, S)}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Ref, process, Pid, Why}, #state{above = Above, run = #{nodes := [Master | _]} = Run} = S) ->
    case [Id || {Id, {_, Watched}} <- maps:to_list(Above), Watched =:= Ref] of
        %% It is the caller of the run, or on its node.
        [[]] -> over(S);
        [_] when Why =:= noconnection, node(Pid) =:= Master -> over(S);
        [_] when Why =:= shutdown; not map_get(reliable, Run) -> over(S);
        [Id] -> erlang:send_after(case Why of noproc -> ?UNSEEN_MS; _ -> ?ORPHAN_MS end, self(), {orphaned, Id, Ref}), ok;
        [] -> ok
    end,
    {noreply, S};
handle_info({orphaned, Id, Ref}, #state{above = Above} = S) ->
    _ = case Above of #{Id := {_, Ref}} -> over(S); #{} -> ok end,
    {noreply, S}.

%% Not by this process, which ends with it.
over(#state{run = #{id := RunId}}) ->
    _ = spawn(aco_host, stop, [RunId, none]),
    ok.
