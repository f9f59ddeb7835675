%% SPDX-License-Identifier: Apache-2.0
%% @doc Churn: each second a share of the nodes crashes, and as many of those that
%% crashed start again. It comes in small steps; this module says of each how many
%% nodes are due, and remembers who is to come back. Whoever plays it kills and
%% starts them, on simulated nodes or on real ones.
-module(atoll_sim_churn).

-export([new/0, next_ms/2, step/5]).

-export_type([churn/0]).

-record(churn, {
    %% Those that churn has killed, the first of them first.
    dead = [] :: [node()],
    %% Kills that are due but would not fill a node yet.
    owed = 0.0 :: float()
}).

-opaque churn() :: #churn{}.

-define(STEP_MS, 100).

%% @doc Nobody was killed.
-spec new() -> churn().
new() ->
    #churn{}.

%% @doc When the step after this one comes, in a churn that lasts until then.
-spec next_ms(Ms :: integer(), Until :: integer()) -> integer().
next_ms(Ms, Until) ->
    min(Until, Ms + ?STEP_MS).

%% @doc One step of a churn of that share, with so many nodes awake: who is killed,
%% and who starts then; they are as many, once there are some that were killed
%% before. Draw chooses so many of those that live.
-spec step(
    Share :: number(),
    Awake :: non_neg_integer(),
    IsAlive :: fun((node()) -> boolean()),
    Draw :: fun((pos_integer()) -> {[node()], Drawn}),
    churn()
) -> {Kill :: [node()], Start :: [node()], Drawn, churn()}.
step(Share, Awake, IsAlive, Draw, #churn{dead = Dead, owed = Owed}) ->
    Due = Owed + Share * Awake * ?STEP_MS / 1000,
    Count = trunc(Due),
    Back = [Node || Node <- lists:sublist(Dead, Count), not IsAlive(Node)],
    %% Drawn at each step, so that what is drawn later does not hang on how many
    %% nodes there were.
    {Victims, Drawn} = Draw(max(1, Count)),
    Killed = lists:sublist(Victims, Count),
    Left = lists:nthtail(min(length(Dead), Count), Dead),
    {Killed, Back, Drawn, #churn{dead = Left ++ Killed, owed = Due - Count}}.
