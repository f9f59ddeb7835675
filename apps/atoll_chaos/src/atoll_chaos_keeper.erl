%% @doc The one process that does something to nodes, and that always undoes it.
%%
%% It is told what will be broken before it breaks anything. When it is asked to
%% heal, or when the process for which it works is gone, it makes all whole and
%% ends. Only so can a fault outlive neither of them: what is held by pipes
%% ({@link atoll_chaos_os}) goes on even when this process is killed, and whoever
%% works with it heals then.
-module(atoll_chaos_keeper).

-behaviour(gen_server).

-export([start/2, do/3, heal/1, act/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type outcome() :: ok | {error, atoll_chaos_backend:error() | atoll_chaos_agent:trouble()}.

-record(state, {
    backend :: atoll_chaos_backend:backend(),
    damage :: atoll_chaos_damage:damage(),
    master :: reference(),
    %% What holds a paused or slow node.
    holders = #{} :: #{{pause | slow, node()} => atoll_chaos_os:holder()}
}).

-define(CALL_MS, 5000).

%% @doc Starts the keeper of the calling process.
-spec start(atoll_chaos_backend:backend(), atoll_chaos_damage:damage()) -> {ok, pid()}.
start(Backend, Damage) ->
    {ok, _} = gen_server:start(?MODULE, {Backend, Damage, self()}, []).

%% @doc Does these acts; then the damage is this.
-spec do(pid(), [atoll_chaos_damage:act()], atoll_chaos_damage:damage()) ->
    [{atoll_chaos_damage:act(), outcome()}].
do(Keeper, Acts, Damage) ->
    gen_server:call(Keeper, {do, Acts, Damage}, infinity).

%% @doc Makes all whole; the keeper ends.
-spec heal(pid()) -> ok.
heal(Keeper) ->
    gen_server:call(Keeper, heal, infinity).

%% @private
-spec init({atoll_chaos_backend:backend(), atoll_chaos_damage:damage(), pid()}) -> {ok, #state{}}.
init({Backend, Damage, Master}) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{backend = Backend, damage = Damage, master = monitor(process, Master)}}.

%% @private
-spec handle_call(Request, gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {stop, normal, ok, #state{}}
when
    Request :: {do, [atoll_chaos_damage:act()], atoll_chaos_damage:damage()} | heal.
handle_call({do, Acts, Damage}, _From, State0) ->
    {Outcomes, State} = lists:mapfoldl(fun perform/2, State0#state{damage = Damage}, Acts),
    {reply, lists:zip(Acts, Outcomes), State};
handle_call(heal, _From, State) ->
    {stop, normal, ok, heal_all(State)}.

%% @private
-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, normal, #state{}} when
    Message :: {'DOWN', reference(), process, pid(), term()} | {'EXIT', port() | pid(), term()} | {port(), term()}.
handle_info({'DOWN', Master, process, _, _}, #state{master = Master} = State) ->
    {stop, normal, heal_all(State)};
handle_info({'EXIT', _, _}, State) ->
    {noreply, State};
handle_info({Port, _}, State) when is_port(Port) ->
    %% A holder has ended: its process has.
    {noreply, State}.

heal_all(#state{damage = Damage} = State0) ->
    {_, State} = lists:mapfoldl(fun perform/2, State0, atoll_chaos_damage:healing(Damage)),
    lists:foreach(fun atoll_chaos_os:release/1, maps:values(State#state.holders)),
    State#state{holders = #{}}.

perform({pause, Node} = Act, #state{backend = Backend} = State0) ->
    case held(Node, pause, fun atoll_chaos_os:guard/1, State0) of
        {ok, State} -> {act(Act, self(), Backend), State};
        {Error, State} -> {Error, State}
    end;
perform({resume, Node} = Act, #state{backend = Backend} = State) ->
    Outcome = act(Act, self(), Backend),
    {Outcome, release({pause, Node}, State)};
perform({slow, Node, 0}, State) ->
    {ok, release({slow, Node}, State)};
perform({slow, Node, Ms}, State) ->
    held(Node, slow, fun(OsPid) -> atoll_chaos_os:slow(OsPid, Ms) end, release({slow, Node}, State));
perform({kill, Node} = Act, #state{backend = Backend} = State) ->
    Outcome = act(Act, self(), Backend),
    {Outcome, release({pause, Node}, State)};
perform(Act, #state{backend = Backend} = State) ->
    {act(Act, self(), Backend), State}.

held(Node, How, Hold, #state{backend = {Module, B}, holders = Holders} = State) ->
    case Module:os_pid(B, Node) of
        {ok, OsPid} -> {ok, State#state{holders = Holders#{{How, Node} => Hold(OsPid)}}};
        {error, _} = Error -> {Error, State}
    end.

release(Key, #state{holders = Holders} = State) ->
    case Holders of
        #{Key := Holder} ->
            ok = atoll_chaos_os:release(Holder),
            State#state{holders = maps:remove(Key, Holders)};
        #{} ->
            State
    end.

%% @doc Does what needs no holder. With the keeper gone, its master heals by this.
-spec act(atoll_chaos_damage:act(), Owner :: pid(), atoll_chaos_backend:backend()) -> outcome().
act({slow, _, _}, _, _) ->
    %% Its pipe has closed with the keeper.
    ok;
act({keep_from, Node, Closed, Unheard}, Keeper, {Module, B}) ->
    Owner = Module:owner(B, Keeper),
    answer(Module:call(B, Node, {atoll_chaos_agent, keep_from, [Closed, Unheard, Owner]}, ?CALL_MS));
act({rest, Node}, _, {Module, B}) ->
    Rested = answer(Module:call(B, Node, {atoll_chaos_agent, stop, []}, ?CALL_MS)),
    _ = [Module:call(B, Node, {atoll_chaos_witness, stop, []}, ?CALL_MS) || Rested =:= ok],
    Rested;
act({Act, Node}, _, {Module, B}) ->
    Module:Act(B, Node).

answer({ok, ok}) -> ok;
answer({ok, {error, _} = Error}) -> Error;
answer({error, _} = Error) -> Error.
