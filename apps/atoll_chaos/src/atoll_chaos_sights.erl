%% SPDX-License-Identifier: Apache-2.0
%% @doc Puts what was seen of real nodes into the words in which a simulated world is
%% watched, so that one judge ({@link atoll_sim_expect}) serves both. Pure.
%%
%% Records are of whoever does the harm (a node starts, is killed, is paused, goes on,
%% broadcasts) and of the witnesses on the nodes ({@link atoll_chaos_witness}). They
%% are put in the order of their times; between machines that is as good as their
%% clocks.
%%
%% Lives. Nodes number the lives of others by clocks that the judge does not see. Here
%% each start of a node, and each of its rebirths, is a life, from 1 on. Who holds a
%% node for dead means the life that it last saw come up: a late verdict on a life
%% that is over is no verdict on the next one.
-module(atoll_chaos_sights).

-export([seen/1]).

-export_type([note/0, did/0]).

-type note() :: {Us :: integer(), node(), did() | atoll_chaos_witness:said()}.

-type did() :: started | killed | paused | resumed | {sends, Id :: non_neg_integer()}.

-record(lives, {
    %% The life of each node, and of each node that one saw come up.
    now = #{} :: #{node() => pos_integer()},
    known = #{} :: #{{By :: node(), node()} => pos_integer()},
    seen = atoll_sim_expect:new() :: atoll_sim_expect:seen()
}).

%% @doc What a judge has seen after these records, in whatever order they are.
-spec seen([note()]) -> atoll_sim_expect:seen().
seen(Records) ->
    #lives{seen = Seen} = lists:foldl(fun record/2, #lives{}, lists:keysort(1, Records)),
    Seen.

record({Us, Node, started}, Lives) ->
    see(Us, Node, {started, life(Node, Lives) + 1}, begun(Node, Lives));
record({Us, Node, reborn}, Lives) ->
    see(Us, Node, {notice, {reborn, life(Node, Lives) + 1}}, begun(Node, Lives));
record({Us, Node, {sends, _} = Sends}, Lives) ->
    see(Us, Node, {note, Sends}, Lives);
record({_Us, Node, {member_up, Of}}, #lives{known = Known} = Lives) ->
    Lives#lives{known = Known#{{Node, Of} => life(Of, Lives)}};
record({Us, Node, {dead, Of}}, #lives{known = Known} = Lives) ->
    %% One that it never saw come up was there before all.
    see(Us, Node, {notice, {dead, Of, maps:get({Node, Of}, Known, 1)}}, Lives);
record({Us, Node, {broadcast, _, _} = Broadcast}, Lives) ->
    see(Us, Node, {notice, Broadcast}, Lives);
record({Us, Node, {neighbour_up, _} = Up}, Lives) ->
    see(Us, Node, {notice, Up}, Lives);
record({Us, Node, Did}, Lives) when Did =:= killed; Did =:= paused; Did =:= resumed ->
    see(Us, Node, Did, Lives).

life(Node, #lives{now = Now}) -> maps:get(Node, Now, 0).

begun(Node, #lives{now = Now} = Lives) ->
    Lives#lives{now = Now#{Node => life(Node, Lives) + 1}}.

see(Us, Node, Sight, #lives{seen = Seen} = Lives) ->
    Lives#lives{seen = atoll_sim_expect:see(Us, Node, Sight, Seen)}.
