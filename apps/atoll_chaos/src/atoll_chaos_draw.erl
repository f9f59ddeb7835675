%% SPDX-License-Identifier: Apache-2.0
%% @doc Faults at a rate, drawn by seed: a script that is written while it runs.
%% Pure; the same seed gives the same steps.
%%
%% They come at a pace, the first after one interval. The kind of each is drawn, each kind
%% equally likely, and the nodes it happens to: `process', a process of one node, or of all
%% nodes where it is to be one with a name; `node', one is killed and started again; `pause',
%% one is stopped; `slow', one is stopped for 50 of each 60 ms; `cut', two cannot talk to each
%% other. The last three last from 0.2 to 2 s.
-module(atoll_chaos_draw).

-export([new/1, due/1, next/1, kinds/0]).

-export_type([source/0, options/0, kind/0]).

-type kind() :: process | node | pause | cut | slow.

-type options() :: #{
    nodes := pos_integer(),
    %% Faults per second; of two the rate goes evenly from the one to the other.
    rate := number() | {From :: number(), To :: number()},
    %% By which share each interval is longer or shorter, and how long nothing happens before.
    jitter := number(),
    after_ms := atoll_sim_step:ms(),
    kinds := [kind(), ...],
    %% Which processes are killed.
    what := atoll_sim_step:what() | [{number(), atoll_sim_step:what()}],
    %% For how long from then on; never infinity where the rate goes from one to another.
    ms := pos_integer() | infinity,
    seed := integer()
}.

-record(source, {
    options :: options(),
    pace :: atoll_sim_pace:pace(number()),
    %% When the next one comes.
    intervals :: atoll_sim_pace:intervals(),
    rand :: rand:state()
}).

-opaque source() :: #source{}.

-define(MIN_MS, 200).
-define(MAX_MS, 2000).
-define(STOPPED_MS, 50).

%% @doc All kinds.
-spec kinds() -> [kind(), ...].
kinds() -> [process, node, pause, cut, slow].

%% @doc A source of faults.
-spec new(options()) -> source().
new(#{seed := Seed, nodes := Nodes, kinds := Kinds, rate := Rate, jitter := Jitter} = Options) ->
    [_ | _] = Possible = [Kind || Kind <- Kinds, Kind =/= cut orelse Nodes > 1],
    Pace = jittered(Jitter, even(Rate)),
    {First, Rand} = atoll_sim_pace:next(atoll_sim_pace:first(), Pace, rand:seed_s(exsss, erlang:phash2({chaos, Seed}))),
    #source{options = Options#{kinds := Possible}, pace = Pace, intervals = First, rand = Rand}.

even({From, To}) -> {ramp, 1000 / From, 1000 / To};
even(Rate) -> 1000 / Rate.

%% Without, nothing is drawn for it.
jittered(Jitter, Even) when Jitter == 0 -> Even;
jittered(Jitter, Even) -> {jitter, Even, Jitter}.

%% @doc When the next fault comes; `none' if its time would be over.
-spec due(source()) -> {ok, atoll_sim_step:ms()} | none.
due(#source{options = #{after_ms := After, ms := Lasts}, pace = Pace, intervals = Intervals}) ->
    case atoll_sim_pace:due(Intervals, Pace, Lasts) of
        Ms when is_integer(Ms), Ms =< Lasts -> {ok, After + Ms};
        _ -> none
    end.

%% @doc Draws the fault that is due: its steps, the first at that time.
-spec next(source()) -> {[{atoll_sim_step:ms(), atoll_sim_step:step()}, ...], source()}.
next(#source{options = #{nodes := Nodes, kinds := Kinds, what := What}, pace = Pace, intervals = Intervals, rand = Rand0} = Source) ->
    {ok, Ms} = due(Source),
    {Kind, Rand1} = one_of(Kinds, Rand0),
    {I, Rand2} = rand:uniform_s(Nodes, Rand1),
    %% Another one, if there is.
    {J, Rand3} = one_of(others(I, Nodes), Rand2),
    {More, Rand4} = rand:uniform_s(?MAX_MS - ?MIN_MS + 1, Rand3),
    {One, Rand5} = atoll_sim_who:weighed(What, Rand4),
    {Next, Rand} = atoll_sim_pace:next(Intervals, Pace, Rand5),
    Steps = steps(Kind, number(I), number(J), One, ?MIN_MS + More - 1),
    {[{Ms + Later, Step} || {Later, Step} <- Steps], Source#source{intervals = Next, rand = Rand}}.

others(I, 1) -> [I];
others(I, Nodes) -> lists:delete(I, lists:seq(1, Nodes)).

steps(process, _, _, {any_name, _} = What, _) -> [{0, {kill_process, alive, What}}];
steps(process, Node, _, What, _) -> [{0, {kill_process, Node, What}}];
steps(node, Node, _, _, _) -> [{0, {restart, Node, fresh}}];
steps(pause, Node, _, _, Ms) -> [{0, {pause, Node, Ms}}];
steps(slow, Node, _, _, Ms) -> [{0, {slow, Node, ?STOPPED_MS}}, {Ms, {slow, Node, 0}}];
steps(cut, Node, Other, _, Ms) -> [{0, {cut, Node, Other, Ms}}, {0, {cut, Other, Node, Ms}}].

number(I) -> {nodes, I, I}.

one_of(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(N, List), Rand}.
