%% SPDX-License-Identifier: Apache-2.0
%% @doc What a watcher of a world keeps of verdicts: which lives were declared dead,
%% and whether they lived when the first node said so.
-module(atoll_sim_verdicts).

-export([new/0, see/4, false_deaths/1]).

-export_type([verdicts/0]).

-record(verdicts, {
    %% Nodes that run, and do not pause, in which life.
    lives = #{} :: #{node() => {pos_integer(), awake | paused}},
    %% Lives that were declared dead: whether they were awake then.
    said = #{} :: #{{node(), pos_integer()} => boolean()}
}).

-opaque verdicts() :: #verdicts{}.

%% @doc Nobody was declared dead.
-spec new() -> verdicts().
new() ->
    #verdicts{}.

%% @doc Takes what a watcher sees.
-spec see(integer(), node() | world, atoll_sim_world:sight(), verdicts()) -> verdicts().
see(_Now, Node, {started, Life}, V) -> live(Node, {Life, awake}, V);
see(_Now, Node, killed, #verdicts{lives = Lives} = V) -> V#verdicts{lives = maps:remove(Node, Lives)};
see(_Now, Node, Still, V) when Still =:= paused; Still =:= stalled -> change(Node, fun({Life, _}) -> {Life, paused} end, V);
see(_Now, Node, resumed, V) -> change(Node, fun({Life, _}) -> {Life, awake} end, V);
see(_Now, Node, {notice, {reborn, Life}}, V) -> change(Node, fun({_, State}) -> {Life, State} end, V);
see(_Now, _Node, {notice, {dead, Of, Life}}, #verdicts{lives = Lives, said = Said} = V) ->
    Was = maps:get(Of, Lives, dead) =:= {Life, awake},
    V#verdicts{said = maps:merge(#{{Of, Life} => Was}, Said)};
see(_Now, _Node, _Sight, V) ->
    V.

live(Node, Life, #verdicts{lives = Lives} = V) ->
    V#verdicts{lives = Lives#{Node => Life}}.

change(Node, Change, #verdicts{lives = Lives} = V) ->
    case Lives of
        #{Node := Life} -> live(Node, Change(Life), V);
        #{} -> V
    end.

%% @doc The lives that were declared dead while they were awake, in order.
-spec false_deaths(verdicts()) -> [{node(), Life :: pos_integer()}].
false_deaths(#verdicts{said = Said}) ->
    lists:sort([Of || {Of, true} <- maps:to_list(Said)]).
