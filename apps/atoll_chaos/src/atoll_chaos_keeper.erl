%% SPDX-License-Identifier: Apache-2.0
%% @doc The one process that does something to nodes, and that always undoes it.
%%
%% It is told what will be broken before it breaks anything. When it is asked to
%% heal, or when the process for which it works is gone, it makes all whole and
%% ends. Only so can a fault outlive neither of them: what is held by pipes
%% ({@link atoll_chaos_os}) goes on even when this process is killed, and whoever
%% works with it heals then.
-module(atoll_chaos_keeper).

-behaviour(gen_server).

-export([start/3, do/3, heal/1, claim/3, act/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([outcome/0]).

-type outcome() :: ok | {error, atoll_chaos_backend:error() | atoll_chaos_agent:trouble()}.

-record(state, {
    run :: atoll_chaos_agent:run(),
    backend :: atoll_chaos_backend:backend(),
    damage :: atoll_chaos_damage:damage(),
    master :: reference(),
    %% What holds a paused or slow node.
    holders = #{} :: #{{pause | slow, node()} => atoll_chaos_os:holder()}
}).

-define(CALL_MS, 5000).

%% @doc Starts the keeper of the calling process.
-spec start(atoll_chaos_backend:backend(), atoll_chaos_damage:damage(), atoll_chaos_agent:run()) -> {ok, pid()}.
start(Backend, Damage, Run) ->
    {ok, _} = gen_server:start(?MODULE, {Backend, Damage, Run, self()}, []).

%% @doc Does these acts; then the damage is this.
-spec do(pid(), [atoll_chaos_damage:act()], atoll_chaos_damage:damage()) ->
    [{atoll_chaos_damage:act(), outcome()}].
do(Keeper, Acts, Damage) ->
    gen_server:call(Keeper, {do, Acts, Damage}, infinity).

%% @doc Makes all whole, and says what came of each act; the keeper ends. An act may
%% have been done before, and fail because of that.
-spec heal(pid()) -> [{atoll_chaos_damage:act(), outcome()}].
heal(Keeper) ->
    gen_server:call(Keeper, heal, infinity).

%% @private
-spec init({atoll_chaos_backend:backend(), atoll_chaos_damage:damage(), atoll_chaos_agent:run(), pid()}) -> {ok, #state{}}.
init({Backend, Damage, Run, Master}) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{run = Run, backend = Backend, damage = Damage, master = monitor(process, Master)}}.

%% @private
-spec handle_call(Request, gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {stop, normal, [{atoll_chaos_damage:act(), outcome()}], #state{}}
when
    Request :: {do, [atoll_chaos_damage:act()], atoll_chaos_damage:damage()} | heal.
handle_call({do, Acts, Damage}, _From, State0) ->
    {Outcomes, State} = lists:mapfoldl(fun perform/2, State0#state{damage = Damage}, Acts),
    {reply, lists:zip(Acts, Outcomes), State};
handle_call(heal, _From, State) ->
    {Outcomes, Healed} = heal_all(State),
    {stop, normal, Outcomes, Healed}.

%% @private
-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, normal, #state{}} when
    Message :: {'DOWN', reference(), process, pid(), term()} | {'EXIT', port() | pid(), term()} | {port(), term()}.
handle_info({'DOWN', Master, process, _, _}, #state{master = Master} = State) ->
    {_, Healed} = heal_all(State),
    {stop, normal, Healed};
handle_info({'EXIT', _, _}, State) ->
    {noreply, State};
handle_info({Port, _}, State) when is_port(Port) ->
    %% A holder has ended: its process has.
    {noreply, State}.

heal_all(#state{damage = Damage} = State0) ->
    Acts = atoll_chaos_damage:healing(Damage),
    {Outcomes, State} = lists:mapfoldl(fun perform/2, State0, Acts),
    lists:foreach(fun atoll_chaos_os:release/1, maps:values(State#state.holders)),
    {lists:zip(Acts, Outcomes), State#state{holders = #{}}}.

perform({pause, Node}, State) ->
    held(Node, pause, fun atoll_chaos_os:stop/1, State);
perform({resume, Node} = Act, State) ->
    %% The node must go on even if its holder was killed.
    Outcome = own_act(Act, State),
    {Outcome, release({pause, Node}, State)};
perform({slow, Node, 0}, State) ->
    {ok, release({slow, Node}, State)};
perform({slow, Node, Ms}, State) ->
    held(Node, slow, fun(OsPid) -> {ok, atoll_chaos_os:slow(OsPid, Ms)} end, release({slow, Node}, State));
perform({kill, Node} = Act, State) ->
    Outcome = own_act(Act, State),
    {Outcome, release({pause, Node}, State)};
perform(Act, State) ->
    {own_act(Act, State), State}.

held(Node, How, Hold, #state{backend = {Module, B}, holders = Holders} = State) ->
    case Module:os_pid(B, Node) of
        {ok, OsPid} ->
            case Hold(OsPid) of
                {ok, Holder} -> {ok, State#state{holders = Holders#{{How, Node} => Holder}}};
                gone -> {{error, {unreachable, Node, gone}}, State}
            end;
        {error, _} = Error ->
            {Error, State}
    end.

release(Key, #state{holders = Holders} = State) ->
    case Holders of
        #{Key := Holder} ->
            ok = atoll_chaos_os:release(Holder),
            State#state{holders = maps:remove(Key, Holders)};
        #{} ->
            State
    end.

own_act(Act, #state{run = Run, backend = Backend}) ->
    act(Act, claim(Run, self(), Backend), Backend).

%% @doc What the agents are told of who they work for.
-spec claim(atoll_chaos_agent:run(), Keeper :: pid(), atoll_chaos_backend:backend()) -> atoll_chaos_agent:claim().
claim(Run, Keeper, {Module, B}) ->
    {Run, Module:owner(B, Keeper)}.

%% @doc Does what needs no holder. With the keeper gone, its master heals by this.
-spec act(atoll_chaos_damage:act(), atoll_chaos_agent:claim(), atoll_chaos_backend:backend()) -> outcome().
act({slow, _, _}, _, _) ->
    %% Its pipe has closed with the keeper.
    ok;
act({keep_from, Node, Closed, Unheard}, Claim, {Module, B}) ->
    answer(Module:call(B, Node, {atoll_chaos_agent, keep_from, [Closed, Unheard, Claim]}, ?CALL_MS));
act({harm, Node, Harms}, Claim, {Module, B}) ->
    answer(Module:call(B, Node, {atoll_chaos_agent, harm, [Harms, Claim]}, ?CALL_MS));
act({bulk, Node, Bulk}, Claim, {Module, B}) ->
    answer(Module:call(B, Node, {atoll_chaos_agent, bulk, [Bulk, Claim]}, ?CALL_MS));
act({lane, Node, Peer, Number, Fault}, Claim, {Module, B}) ->
    answer(Module:call(B, Node, {atoll_chaos_agent, lane, [Peer, Number, Fault, Claim]}, ?CALL_MS));
act({mend_lanes, Node}, Claim, {Module, B}) ->
    answer(Module:call(B, Node, {atoll_chaos_agent, mend_lanes, [Claim]}, ?CALL_MS));
act({rest, Node}, {Run, _}, {Module, B} = Backend) ->
    case ended(atoll_chaos_agent, [Run], Node, Backend) of
        ok ->
            _ = [ended(Name, [], Node, Backend) || Name <- [atoll_chaos_witness, atoll_chaos_names]],
            Module:leave(B, Node);
        {error, _} = Error ->
            Error
    end;
act({Act, Node}, _, {Module, B}) ->
    Module:Act(B, Node).

%% Where there is none its code is not brought there to stop it.
ended(Name, Args, Node, {Module, B}) ->
    case Module:call(B, Node, {erlang, whereis, [Name]}, ?CALL_MS) of
        {ok, undefined} -> ok;
        {ok, _} -> answer(Module:call(B, Node, {Name, stop, Args}, ?CALL_MS));
        {error, _} = Error -> Error
    end.

answer({ok, ok}) -> ok;
answer({ok, {error, _} = Error}) -> Error;
answer({error, _} = Error) -> Error.
