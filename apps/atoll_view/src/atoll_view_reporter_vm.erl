%% SPDX-License-Identifier: Apache-2.0
%% @doc A reporter ({@link atoll_view_reporter}) in a VM of its own, by OTP's `peer' over its standard input and output: on this machine,
%% or on another one near the nodes, by a program such as ssh. Nobody needs a connection of Erlang's with it, and it goes when this
%% VM is lost, in whatever way.
%%
%% This process is the reporter for who uses it: it takes the same messages and passes them on. It ends when the VM does,
%% and ends the VM if that says nothing for ten seconds; whoever uses it starts another one. If it cannot begin, why is logged, and is
%% why it ends: `{shutdown, {unable, Sentence}}'.
%%
%% The VM has one scheduler, which does not spin: several of them use several processors. It has no cookie on its command
%% line, and speaks TLS if this one does. On another machine its code comes over the line: it needs OTP there and nothing else.
-module(atoll_view_reporter_vm).

-behaviour(gen_server).

-export([start_link/1, call/6]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0]).

-type options() :: #{
    %% As {@link atoll_view_reporter:start/2} has them.
    reporter := module(),
    options := atoll_view_reporter:options(),
    %% What it is called in the sentence that it cannot begin.
    called := unicode:chardata(),
    %% The host that it is to be on, and the program that gets there: it is called with the host and a command line. And the modules that
    %% the reporter calls, which that host does not have.
    there => {Program :: file:filename(), Host :: string(), Modules :: [module()]}
}.

-record(state, {
    peer = none :: none | pid(),
    %% Of this machine.
    process = none :: none | atoll_cluster_os:process()
}).

-define(BOOT_MS, 60000).
-define(SILENT_MS, 10000).
%% It is asked for a second longer than the node is.
-define(MORE_MS, 1000).
-define(MODULES, [atoll_view_join, atoll_view_put, atoll_view_reporter]).

%% @doc Starts to start it.
-spec start_link(options()) -> {ok, pid()}.
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
-spec init(options()) -> {ok, #state{}, {continue, options()}}.
init(Options) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{}, {continue, Options}}.

%% @private
-spec handle_continue(options(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_continue(#{reporter := Reporter, options := Its} = Options, State) ->
    case started(maps:merge(#{connection => standard_io, wait_boot => ?BOOT_MS, shutdown => close}, way_there(Options))) of
        {ok, Peer} ->
            Started = State#state{peer = Peer, process = begun(Peer, Options)},
            case peer:call(Peer, atoll_view_reporter, start, [Reporter, Its]) of
                ok -> {noreply, Started};
                {error, {unable, Why}} -> unable(Options, Why, Started)
            end;
        {error, Reason} ->
            unable(Options, io_lib:format("~0tP.", [Reason, 10]), State)
    end.

%% A program that is not there, or ends before the VM says something, makes its process end.
started(Options) ->
    try peer:start_link(Options) of
        {ok, Peer, _} -> {ok, Peer};
        {error, Reason} -> {error, Reason}
    catch
        _:Reason -> {error, Reason}
    end.

unable(#{called := Called} = Options, Why, State) ->
    Sentence = unicode:characters_to_list([Called, " cannot be started in a VM of its own", [[" on ", Host, " by ", Program] || #{there := {Program, Host, _}} <- [Options]], ": ", Why]),
    logger:warning("~ts", [Sentence]),
    {stop, {shutdown, {unable, Sentence}}, State}.

begun(Peer, #{reporter := Reporter, there := {_, _, Modules}}) ->
    Load = fun({Module, File, Code}) -> {module, Module} = peer:call(Peer, code, load_binary, [Module, File, Code]) end,
    ok = lists:foreach(Load, atoll_view_put:code(?MODULES ++ Modules ++ [Reporter])),
    none;
%% Where `/proc' does not say more, the end of its standard input has to do.
begun(Peer, #{}) ->
    Pid = list_to_integer(peer:call(Peer, os, getpid, [])),
    case atoll_cluster_os:start_time(Pid) of
        {ok, Start} -> {Pid, Start};
        gone -> none
    end.

%% Ctrl-C is for this VM, which ends it. On the other machine a shell reads the arguments.
way_there(#{there := {Program, Host, _}}) ->
    #{exec => {Program, [Host, "erl"]}, args => args()};
way_there(#{reporter := Reporter}) ->
    #{args => args() ++ [
        "-kernel", "logger", "[{handler,default,logger_std_h,#{config=>#{type=>standard_error}}}]",
        "-pa" | lists:usort([filename:dirname(code:which(Module)) || Module <- [?MODULE, Reporter]])
    ]}.

%% An attempt to connect is given up before TCP waits four seconds to try again: whoever is back is soon found.
args() ->
    ["-kernel", "net_setuptime", "4", "+Bi", "+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none",
     "-boot", "no_dot_erlang", "-setcookie", "nocookie"] ++
    lists:append([["-" ++ atom_to_list(Flag) | Values] || Flag <- [proto_dist, ssl_dist_optfile], {ok, [Values | _]} <- [init:get_argument(Flag)]]).

%% @private
-spec handle_call(peer, gen_server:from(), #state{}) -> {reply, pid(), #state{}}.
handle_call(peer, _From, #state{peer = Peer} = State) -> {reply, Peer, State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info({next, pid()} | {'EXIT', pid(), term()} | (Order :: term()), #state{}) -> {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_info({next, To}, #state{peer = Peer} = State) ->
    Self = self(),
    _ = spawn_link(fun() -> To ! {report, Self, peer:call(Peer, atoll_view_reporter, next, [?SILENT_MS], ?SILENT_MS)} end),
    {noreply, State};
%% That of peer says nothing of why.
handle_info({'EXIT', Peer, _}, #state{peer = Peer} = State) ->
    {stop, {shutdown, lost}, State};
handle_info({'EXIT', _, normal}, State) ->
    {noreply, State};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, {shutdown, Reason}, State};
handle_info(Order, #state{peer = Peer} = State) ->
    ok = peer:send(Peer, atoll_view_reporter, Order),
    {noreply, State}.

%% @private What it has is in its memory alone: nothing is lost that has to be ended in order.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{process = none}) ->
    ok;
terminate(_Reason, #state{process = Process}) ->
    _ = atoll_cluster_os:signal(Process, kill),
    ok.
