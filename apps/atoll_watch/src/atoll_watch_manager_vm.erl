%% SPDX-License-Identifier: Apache-2.0
%% @doc A manager ({@link atoll_watch_manager}) in a VM of its own, by OTP's `peer' over its standard input and output: the
%% watch needs no connection of Erlang's with it, and it goes when the watch is lost, in whatever way.
%%
%% This process is the manager for who watches: it takes the same messages and passes them on. It ends when the VM
%% does, and ends the VM if that says nothing for ten seconds. What is wrong with it is logged, and whoever watches starts another one.
%%
%% The VM has one scheduler, which does not spin: several managers use several processors. It has no cookie on its command
%% line, and speaks TLS if this one does.
-module(atoll_watch_manager_vm).

-behaviour(gen_server).

-export([start_link/1, call/6]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {
    peer = none :: none | pid(),
    process = none :: none | atoll_cluster_os:process()
}).

-define(BOOT_MS, 60000).
-define(SILENT_MS, 10000).
%% It is asked for a second longer than the node is.
-define(MORE_MS, 1000).

%% @doc Starts to start it.
-spec start_link(atoll_watch_manager:options()) -> {ok, pid()}.
start_link(Options) -> {ok, _} = gen_server:start_link(?MODULE, Options, []).

%% @doc Has it call a function on a node, as erpc:call/5 does.
-spec call(pid(), node(), module(), Function :: atom(), Args :: [term()], Ms :: pos_integer()) -> term().
call(Vm, Node, M, F, Args, Ms) ->
    try
        peer:call(gen_server:call(Vm, peer, Ms), erpc, call, [Node, M, F, Args, Ms], Ms + ?MORE_MS)
    catch
        exit:{timeout, {gen_server, call, _}} -> error({erpc, timeout});
        exit:{_, {gen_server, call, _}} -> error({erpc, noconnection})
    end.

%% @private
-spec init(atoll_watch_manager:options()) -> {ok, #state{}, {continue, atoll_watch_manager:options()}}.
init(Options) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{}, {continue, Options}}.

%% @private
-spec handle_continue(atoll_watch_manager:options(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_continue(Options, State) ->
    case peer:start_link(#{connection => standard_io, wait_boot => ?BOOT_MS, shutdown => close, args => args()}) of
        {ok, Peer, _} ->
            Started = State#state{peer = Peer, process = process(peer:call(Peer, os, getpid, []))},
            case peer:call(Peer, atoll_watch_manager, start, [Options]) of
                ok -> {noreply, Started};
                {error, {unable, Sentence}} ->
                    logger:warning("atoll watch: a manager cannot begin: ~ts", [Sentence]),
                    {stop, {shutdown, unable}, Started}
            end;
        {error, Reason} ->
            logger:warning("atoll watch: a manager cannot be started: ~0tP", [Reason, 10]),
            {stop, {shutdown, unable}, State}
    end.

%% Where `/proc' does not say more, the end of its standard input has to do.
process(Text) ->
    Pid = list_to_integer(Text),
    case atoll_cluster_os:start_time(Pid) of
        {ok, Start} -> {Pid, Start};
        gone -> none
    end.

args() ->
    Given = lists:append([["-" ++ atom_to_list(Flag) | Values] || Flag <- [proto_dist, ssl_dist_optfile], {ok, [Values | _]} <- [init:get_argument(Flag)]]),
    Paths = lists:usort([filename:dirname(code:which(Module)) || Module <- [?MODULE, atoll_view_join]]),
    %% Ctrl-C is for the watch, which ends it.
    %% An attempt to connect is given up before TCP waits four seconds to try again: whoever is back is soon found.
    ["-kernel", "net_setuptime", "4", "+Bi", "+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none",
     "-boot", "no_dot_erlang", "-setcookie", "nocookie",
     "-kernel", "logger", "[{handler,default,logger_std_h,#{config=>#{type=>standard_error}}}]", "-pa" | Paths] ++ Given.

%% @private
-spec handle_call(peer, gen_server:from(), #state{}) -> {reply, pid(), #state{}}.
handle_call(peer, _From, #state{peer = Peer} = State) -> {reply, Peer, State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info({give, [atoll_watch_manager:given()]} | {take, node()} | {next, pid()} | {'EXIT', pid(), term()}, #state{}) ->
    {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_info({next, To}, #state{peer = Peer} = State) ->
    Self = self(),
    _ = spawn_link(fun() -> To ! {report, Self, peer:call(Peer, atoll_watch_manager, next, [?SILENT_MS], ?SILENT_MS)} end),
    {noreply, State};
%% That of peer says nothing of why.
handle_info({'EXIT', Peer, _}, #state{peer = Peer} = State) ->
    {stop, {shutdown, lost}, State};
handle_info({'EXIT', _, normal}, State) ->
    {noreply, State};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, {shutdown, Reason}, State};
handle_info(Order, #state{peer = Peer} = State) ->
    ok = peer:send(Peer, atoll_watch_manager, Order),
    {noreply, State}.

%% @private What it has is in its memory alone: nothing is lost that has to be ended in order.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{process = none}) ->
    ok;
terminate(_Reason, #state{process = Process}) ->
    _ = atoll_cluster_os:signal(Process, kill),
    ok.
