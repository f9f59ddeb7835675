%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of one part of the table ({@link orbit_part}).
%%
%% After a moment without a message all credit goes back: the shorter the moment, the sooner the end is
%% known and the more credit messages there are. The images of a vertex are computed here, or each by a
%% process of its own. One of these that fails takes the worker with it.
-module(orbit_worker).
-behaviour(gen_server).

-export([start_link/2, 'begin'/4, collect/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {
    part :: orbit_part:part(),
    id :: orbit_part:id(),
    run :: orbit_host:run(),
    generators :: [orbit_generators:generator(), ...],
    routes = #{} :: orbit_gateway:routes(),
    %% since when it has nothing to do; how long that was before the first vertex, and at the longest
    since :: integer(),
    first = none :: integer() | none,
    longest = 0 :: integer()
}).

-define(IDLE_MS, 5).

%% @doc Starts it, for a host.
-spec start_link(orbit_part:id(), orbit_host:run()) -> gen_server:start_ret().
start_link(Id, Run) -> gen_server:start_link(?MODULE, {Id, Run}, []).

%% @doc An epoch begins, with that much credit.
-spec 'begin'(pid(), orbit_part:epoch(), orbit_credit:unit(), orbit_gateway:routes()) -> ok.
'begin'(Worker, Epoch, Unit, Routes) -> gen_server:cast(Worker, {'begin', Epoch, Unit, Routes}).

%% @doc Asks for its result of an epoch, which its submaster gets.
-spec collect(pid(), orbit_part:epoch()) -> ok.
collect(Worker, Epoch) -> gen_server:cast(Worker, {collect, Epoch}).

%% @private
-spec init({orbit_part:id(), orbit_host:run()}) -> {ok, #state{}}.
init({Id, #{generators := Name, space := Space, plan := Plan} = Run}) ->
    Generators = orbit_generators:functions(Name, Space),
    Part = orbit_part:new(Id, orbit_plan:parts(Plan), length(Generators)),
    {ok, #state{part = Part, id = Id, run = Run, generators = Generators, since = erlang:monotonic_time()}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast({'begin', orbit_part:epoch(), orbit_credit:unit(), orbit_gateway:routes()} | {collect, orbit_part:epoch()}, #state{}) ->
    {noreply, #state{}, timeout()}.
handle_cast({'begin', Epoch, Unit, Routes}, S) ->
    {noreply, event({'begin', Epoch, Unit}, S#state{routes = Routes}), ?IDLE_MS};
handle_cast({collect, Epoch}, #state{id = Id, part = Part, run = #{id := RunId, vertices := Keep, space := Space, plan := Plan}} = S) ->
    Idle = {case S#state.first of none -> now_since(S); First -> First end, S#state.longest, now_since(S)},
    Slots = 2 * Space div orbit_plan:parts(Plan) + 1,
    #{vertices := Vertices} = Tally = orbit_tally:of_worker(Id, Slots, Idle, orbit_part:tally(Part, true)),
    ok = orbit_submaster:tell(RunId, {result, Epoch, Id, Tally#{vertices := [X || Keep, X <- Vertices]}}),
    {noreply, S, infinity}.

%% @private
-spec handle_info(orbit_part:event() | timeout, #state{}) -> {noreply, #state{}, timeout()}.
handle_info(timeout, S) ->
    {noreply, event(idle, S), infinity};
handle_info({images, _, _} = Images, S) ->
    {noreply, event(Images, S), ?IDLE_MS};
handle_info({vertices, _, _, _} = Vertices, #state{first = First, longest = Longest} = S) ->
    Idle = now_since(S),
    Waited = case First of none -> S#state{first = Idle}; _ -> S#state{longest = max(Idle, Longest)} end,
    {noreply, (event(Vertices, Waited))#state{since = erlang:monotonic_time()}, ?IDLE_MS}.

now_since(#state{since = Since}) -> erlang:monotonic_time() - Since.

event(Event, #state{part = Part} = S) ->
    {Effects, Next} = orbit_part:handle(Event, Part),
    act(Effects, S#state{part = Next}).

act([{send, Part, Epoch, Xs, Unit} | Effects], #state{routes = Routes} = S) ->
    ok = orbit_gateway:send(Part, Routes, {vertices, Epoch, Xs, Unit}),
    act(Effects, S);
act([{compute, X} | Effects], #state{generators = Generators, run = #{image_processes := Apart}} = S) ->
    case Apart of
        true ->
            Worker = self(),
            _ = [spawn_link(fun() -> Worker ! {images, X, [Generator(X)]} end) || Generator <- Generators],
            act(Effects, S);
        false ->
            act(Effects, event({images, X, [Generator(X) || Generator <- Generators]}, S))
    end;
act([{credit, _, _} = Credit | Effects], #state{run = #{id := RunId}} = S) ->
    ok = orbit_submaster:tell(RunId, {up, Credit}),
    act(Effects, S);
act([], S) ->
    S.
