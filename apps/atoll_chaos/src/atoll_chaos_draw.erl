%% @doc Faults at a rate, drawn by seed: a script that is written while it runs.
%% Pure; the same seed gives the same steps.
%%
%% One fault comes each so many milliseconds. Its kind is drawn, each kind equally
%% likely, and the nodes it happens to: `process', a process of one node; `node',
%% one is killed and started again; `pause', one is stopped; `slow', one is
%% stopped for 50 of each 60 ms; `cut', two cannot talk to each other. The last
%% three last from 0.2 to 2 s.
-module(atoll_chaos_draw).

-export([new/1, due/1, next/1, kinds/0]).

-export_type([source/0, options/0, kind/0]).

-type kind() :: process | node | pause | cut | slow.

-type options() :: #{
    nodes := pos_integer(),
    %% Faults per second.
    rate := number(),
    kinds := [kind(), ...],
    %% Which processes are killed.
    what := atoll_sim_step:what() | [{number(), atoll_sim_step:what()}],
    ms := pos_integer() | infinity,
    seed := integer()
}.

-record(source, {options :: options(), count = 0 :: non_neg_integer(), rand :: rand:state()}).

-opaque source() :: #source{}.

-define(MIN_MS, 200).
-define(MAX_MS, 2000).
-define(STOPPED_MS, 50).

%% @doc All kinds.
-spec kinds() -> [kind(), ...].
kinds() -> [process, node, pause, cut, slow].

%% @doc A source of faults, the first of them after one interval.
-spec new(options()) -> source().
new(#{seed := Seed, nodes := Nodes, kinds := Kinds} = Options) ->
    [_ | _] = Possible = [Kind || Kind <- Kinds, Kind =/= cut orelse Nodes > 1],
    #source{options = Options#{kinds := Possible}, rand = rand:seed_s(exsss, erlang:phash2({chaos, Seed}))}.

%% @doc When the next fault comes; `none' if its time would be over.
-spec due(source()) -> {ok, atoll_sim_step:ms()} | none.
due(#source{options = #{rate := Rate, ms := Until}, count = Count}) ->
    case round((Count + 1) * 1000 / Rate) of
        Ms when Ms =< Until -> {ok, Ms};
        _ -> none
    end.

%% @doc Draws the fault that is due: its steps, the first at that time.
-spec next(source()) -> {[{atoll_sim_step:ms(), atoll_sim_step:step()}, ...], source()}.
next(#source{options = #{nodes := Nodes, kinds := Kinds, what := What}, count = Count, rand = Rand0} = Source) ->
    {ok, Ms} = due(Source),
    {Kind, Rand1} = one_of(Kinds, Rand0),
    {I, Rand2} = rand:uniform_s(Nodes, Rand1),
    %% Another one, if there is.
    {J, Rand3} = one_of(others(I, Nodes), Rand2),
    {More, Rand} = rand:uniform_s(?MAX_MS - ?MIN_MS + 1, Rand3),
    Steps = steps(Kind, number(I), number(J), What, ?MIN_MS + More - 1),
    {[{Ms + Later, Step} || {Later, Step} <- Steps], Source#source{count = Count + 1, rand = Rand}}.

others(I, 1) -> [I];
others(I, Nodes) -> lists:delete(I, lists:seq(1, Nodes)).

steps(process, Node, _, What, _) -> [{0, {kill_process, Node, What}}];
steps(node, Node, _, _, _) -> [{0, {restart, Node, fresh}}];
steps(pause, Node, _, _, Ms) -> [{0, {pause, Node, Ms}}];
steps(slow, Node, _, _, Ms) -> [{0, {slow, Node, ?STOPPED_MS}}, {Ms, {slow, Node, 0}}];
steps(cut, Node, Other, _, Ms) -> [{0, {cut, Node, Other, Ms}}, {0, {cut, Other, Node, Ms}}].

number(I) -> {nodes, I, I}.

one_of(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(N, List), Rand}.
