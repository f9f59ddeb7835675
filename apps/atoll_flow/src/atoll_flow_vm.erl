%% SPDX-License-Identifier: Apache-2.0
%% @doc A place ({@link atoll_flow_place}) in a VM of its own, by OTP's `peer' over its standard input and output: on this machine, or on
%% another one near the nodes, by a program such as ssh. It goes when this VM is lost, in whatever way.
%%
%% This process is the place for who observes: it takes the same messages and passes them on. It ends when the VM does, and ends the VM if
%% that says nothing for ten seconds. Its code comes over the line, so the other machine needs OTP and nothing else.
-module(atoll_flow_vm).

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0]).

-type options() :: #{
    place := atoll_flow_place:options(),
    %% The host that it is to be on, and the program that gets there: it is called with the host and a command line.
    there => {Program :: file:filename(), Host :: string()}
}.

-record(state, {
    peer = none :: none | pid()
}).

-define(BOOT_MS, 60000).
-define(SILENT_MS, 10000).
-define(MODULES, [atoll_view_join, atoll_view_put, atoll_flow_agent, atoll_flow_place]).

%% @doc Starts to start it.
-spec start_link(options()) -> {ok, pid()}.
start_link(Options) -> {ok, _} = gen_server:start_link(?MODULE, Options, []).

%% @private
-spec init(options()) -> {ok, #state{}, {continue, options()}}.
init(Options) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{}, {continue, Options}}.

%% @private
-spec handle_continue(options(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_continue(#{place := Place} = Options, State) ->
    case peer:start_link(maps:merge(#{connection => standard_io, wait_boot => ?BOOT_MS, shutdown => close, args => args()}, there(Options))) of
        {ok, Peer, _} ->
            lists:foreach(fun({Module, File, Code}) -> {module, Module} = peer:call(Peer, code, load_binary, [Module, File, Code]) end, atoll_view_put:code(?MODULES)),
            case peer:call(Peer, atoll_flow_place, start, [Place]) of
                ok -> {noreply, State#state{peer = Peer}};
                {error, {unable, Sentence}} -> unable(Sentence, State#state{peer = Peer})
            end;
        {error, Reason} ->
            unable(io_lib:format("~0tP", [Reason, 10]), State)
    end.

unable(Why, State) ->
    logger:warning("atoll watch: what observes traffic cannot be started in a VM of its own: ~ts", [Why]),
    {stop, {shutdown, unable}, State}.

there(#{there := {Program, Host}}) -> #{exec => {Program, [Host, "erl"]}};
there(#{}) -> #{}.

%% As a manager of the watch room has them.
args() ->
    Given = lists:append([["-" ++ atom_to_list(Flag) | Values] || Flag <- [proto_dist, ssl_dist_optfile], {ok, [Values | _]} <- [init:get_argument(Flag)]]),
    ["-kernel", "net_setuptime", "4", "+Bi", "+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none",
     "-boot", "no_dot_erlang", "-setcookie", "nocookie"] ++ Given.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info({flow, atoll_flow_place:order()} | {next, pid()} | {'EXIT', pid(), term()}, #state{}) ->
    {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_info({next, To}, #state{peer = Peer} = State) ->
    Self = self(),
    _ = spawn_link(fun() -> To ! {report, Self, peer:call(Peer, atoll_flow_place, next, [?SILENT_MS], ?SILENT_MS)} end),
    {noreply, State};
handle_info({flow, Order}, #state{peer = Peer} = State) ->
    ok = peer:send(Peer, atoll_flow_place, {flow, Order}),
    {noreply, State};
%% That of peer says nothing of why.
handle_info({'EXIT', Peer, _}, #state{peer = Peer} = State) ->
    {stop, {shutdown, lost}, State};
handle_info({'EXIT', _, normal}, State) ->
    {noreply, State};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, {shutdown, Reason}, State}.
