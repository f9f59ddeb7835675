%% SPDX-License-Identifier: Apache-2.0
%% @doc How the nodes of a cluster are connected: groups, gateways, links and circuits where Atoll runs, and plain connections
%% elsewhere, as {@link atoll_view} asks for them. A process that answers with what it found at most ten seconds ago, and
%% asks the nodes when somebody asks it, for all who ask meanwhile once. It is connected with them for as long as that takes: their
%% managers are in other VMs.
-module(atoll_watch_topology).

-behaviour(gen_server).

-export([start_link/1, ask/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([topology/0]).

-type topology() :: #{
    at := integer(),
    %% Whether Atoll runs on some node.
    atoll := boolean(),
    groups := [{Name :: term(), [node()]}],
    free := [node()],
    links := [atoll_view_links:link()],
    silent := [node()]
}.

%% Who asks ends with exit/1 by design.
-dialyzer({nowarn_function, handle_call/3}).

-record(state, {
    target :: atoll_view:target(),
    known = none :: none | topology(),
    asking = none :: none | {pid(), reference()},
    waiting = [] :: [gen_server:from()]
}).

-define(OLD_MS, 10000).
%% A node that does not answer takes several times OTP's seven seconds.
-define(ASK_MS, 30000).

%% @doc Of that cluster.
-spec start_link(atoll_view:target()) -> {ok, pid()}.
start_link(Target) -> {ok, _} = gen_server:start_link({local, ?MODULE}, ?MODULE, Target, []).

%% @doc How they are connected.
-spec ask() -> {ok, topology()} | {error, unicode:chardata()}.
ask() ->
    try gen_server:call(?MODULE, ask, ?ASK_MS)
    catch exit:{timeout, _} -> {error, "The nodes did not say in time how they are connected."}
    end.

%% @private
-spec init(atoll_view:target()) -> {ok, #state{}}.
init(Target) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{target = Target}}.

%% @private
-spec handle_call(ask, gen_server:from(), #state{}) -> {reply, {ok, topology()}, #state{}} | {noreply, #state{}}.
handle_call(ask, From, #state{known = Known, asking = Asking, target = Target, waiting = Waiting} = State) ->
    case {Known, Asking} of
        {#{at := At}, _} ->
            case erlang:system_time(millisecond) - At of
                Age when Age >= 0, Age < ?OLD_MS -> {reply, {ok, Known}, State};
                _ -> handle_call(ask, From, State#state{known = none})
            end;
        {none, none} ->
            {noreply, State#state{asking = spawn_monitor(fun() -> exit({asked, found(Target)}) end), waiting = [From]}};
        {none, _} ->
            {noreply, State#state{waiting = [From | Waiting]}}
    end.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info({'DOWN', reference(), process, pid(), term()}, #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Ref, process, Pid, Reason}, #state{asking = {Pid, Ref}, waiting = Waiting} = State) ->
    Answer = case Reason of
        {asked, Is} -> Is;
        _ -> {error, "What the nodes said of how they are connected could not be read."}
    end,
    lists:foreach(fun(From) -> gen_server:reply(From, Answer) end, Waiting),
    {noreply, State#state{asking = none, waiting = [], known = case Answer of {ok, Known} -> Known; _ -> none end}}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{asking = none}) -> ok;
terminate(_, #state{asking = {Pid, _}}) ->
    true = exit(Pid, kill),
    ok.

found(Target) ->
    case atoll_view:open(Target) of
        {ok, View} ->
            #{links := Links, silent := Silent} = atoll_view:links(View),
            Known0 = #{at => erlang:system_time(millisecond), links => Links, silent => Silent, atoll => atoll_view:running(View) =/= [], groups => [], free => []},
            Known = case Known0 of
                #{atoll := true} -> #{groups := Groups, free := Free} = atoll_view:groups(View), Known0#{groups := Groups, free := Free};
                #{atoll := false} -> Known0
            end,
            ok = atoll_view:close(View),
            {ok, Known};
        {error, _} = Error ->
            Error
    end.
