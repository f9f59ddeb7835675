%% SPDX-License-Identifier: Apache-2.0
%% @doc Kills one of all that have a name in an s_group, or in `global', on some nodes: the
%% choice is among the sorted names, and the process is the one that has the name when it is
%% killed, on whichever of these nodes it is.
%%
%% Each node tells the names of its own processes, so nobody has to see them all: names of
%% `global' in a cluster that is no mesh are names too, and one that two parts have given away is
%% there twice.
-module(atoll_chaos_named).

-export([kill/4]).

-export_type([order/0, outcome/0]).

-type order() :: #{
    %% Of the names that there are: how far from the first, 0, to the last, 1.
    which := float(),
    deadline_ms := pos_integer(),
    claim := atoll_chaos_agent:claim()
}.

-type outcome() :: {killed, node(), Path :: [term()], atoll_chaos_kill:recovered()} | {passed_over, Why :: atom()}.

%% Beside what is waited for.
-define(CALL_MS, 5000).

%% @doc Kills one, and returns when its name is another process's, or at the deadline. Of one that
%% may not be killed, or has just ended, the name after it is the next.
-spec kill(atoll_chaos_backend:backend(), [node()], atoll_chaos_victims:scope(), order()) ->
    {ok, outcome() | {error, term()}} | {error, term()}.
kill(Backend, Nodes, Scope, #{which := Which} = Order) ->
    Told = atoll_chaos_backend:ask(Backend, Nodes, {atoll_chaos_victims, names, [Scope]}, ?CALL_MS),
    %% Of one name, the nodes in their order.
    Named = lists:keysort(1, [{Name, Node} || {Node, {ok, Names}} <- Told, Name <- Names]),
    first(atoll_sim_who:from(Which, Named), nobody, Backend, Scope, maps:remove(which, Order)).

first([], Why, _Backend, _Scope, _Order) ->
    {ok, {passed_over, Why}};
first([{Name, Node} | Named], _Why, {Module, B} = Backend, Scope, #{deadline_ms := Deadline} = Order) ->
    One = Order#{what => {held, Scope, Name}, which => 0.0},
    case Module:call(B, Node, {atoll_chaos_kill, run, [One]}, Deadline + ?CALL_MS) of
        {ok, {killed, Path, Recovered}} -> {ok, {killed, Node, Path, Recovered}};
        {ok, {passed_over, Reason}} -> first(Named, Reason, Backend, Scope, Order);
        Failed -> Failed
    end.
