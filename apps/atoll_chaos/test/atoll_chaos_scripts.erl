%% SPDX-License-Identifier: Apache-2.0
%% Fault scripts that are drawn: two rounds, in each of which something happens to nodes or
%% between them, then programs change groups and names, and then all is healed. Where real
%% nodes take a second or two for what simulated ones do at once, and a simulated connection
%% seven for what a real one is refused, the script leaves time for either.
-module(atoll_chaos_scripts).

-export([draw/1]).

-compile({no_auto_import, [node/1, round/1]}).

-define(NODES, 5).

%% The terms of the script of a seed. What is expected holds on any nodes that keep what is
%% promised of them.
draw(Seed) ->
    R0 = rand:seed_s(exsss, Seed),
    {Strategy, R1} = pick([hyparview, hyparview, mesh], R0),
    {Directory, R2} = pick([on, off], R1),
    {Last, R3} = pick([3, 4, 5], R2),
    {First, R4} = round(1, R3),
    {Second, _} = round(2, R4),
    [
        {cluster, #{nodes => ?NODES, strategy => Strategy, contacts => 2, directory => Directory, seed => Seed rem 1000000}},
        {at, {4, s}, {group, node(1), {new, g, {nodes, 1, Last}}}},
        {then, {3, s}, {name, node(2), {register, g, first}}}
    ] ++ First ++ Second ++ [{then, 0, {expect, reachable}} || Directory =:= on].

round(N, R0) ->
    {Fault, R1} = fault(R0),
    {Changes, R2} = lists:mapfoldl(fun(I, R) -> change(N, I, R) end, R1, [1, 2]),
    {
        Fault ++
            [{then, {7, s}, hd(Changes)}, {then, {4, s}, lists:last(Changes)}] ++
            [{then, {5, s}, heal}, {then, 0, {start, all}}] ++
            [{then, settling(Fault), {expect, groups}}, {then, 0, {expect, names}}] ++
            [{then, 0, {expect, members}}, {then, 0, {expect, {connected, 1.0}}}],
        R2
    }.

%% A side without a contact finds out after half a minute that it is an island, unless a group
%% has members on both.
settling([{then, _, {partition, _}} | _]) -> {40, s};
settling(_) -> {15, s}.

%% Whoever changes something, 1 or 2, is there.
fault(R0) ->
    {N, R1} = pick([3, 4, 5], R0),
    {M, R2} = pick([3, 4, 5], R1),
    pick(
        [
            [{then, {1, s}, {kill, node(N)}}],
            [{then, {1, s}, {kill, {nodes, min(N, M), max(N, M)}}}],
            [{then, {1, s}, {restart, {nodes, min(N, M), max(N, M)}, fresh}}],
            [{then, {1, s}, {restart, node(1), fresh}}],
            [{then, {1, s}, {leave, node(N)}}],
            [{then, {1, s}, {pause, node(N), {2, s}}}],
            [{then, {1, s}, {partition, [{nodes, N, 5}]}}],
            [{then, {1, s}, {partition, [node(N), node(1)]}}],
            [{then, {1, s}, {cut, node(N), node(2), {3, s}}}],
            [{then, {1, s}, {kill_process, node(N), {name, atoll_group}}}, {then, 0, {kill_process, node(M), {name, atoll_overlay}}}],
            [{then, {1, s}, {kill_process, all, {name, atoll_link}}}],
            [{then, {1, s}, {kill_process, node(2), {name, atoll_name}}}]
        ],
        R2
    ).

change(Round, I, R0) ->
    {By, R1} = pick([1, 2], R0),
    {N, R2} = pick([3, 4, 5], R1),
    Name = list_to_atom(lists:concat(["name", Round, I])),
    Group = list_to_atom(lists:concat(["group", Round, I])),
    Changes = [
        {group, node(By), {add, g, node(N)}},
        {group, node(By), {remove, g, node(N)}},
        {group, node(By), {new, Group, {nodes, By, N}}},
        {name, node(By), {register, g, Name}},
        {name, node(By), {register, g, Name}}
    ],
    %% Who gets a name that several want hangs on the names of nodes, and so would what becomes
    %% of it in a later round.
    Races = [{name, node(By), {re_register, g, first}}, {name, {nodes, 1, 5}, {register, g, Name}}],
    pick(Changes ++ [Race || Round =:= 2, Race <- Races], R2).

node(N) -> {nodes, N, N}.

pick(List, R0) ->
    {N, R} = rand:uniform_s(length(List), R0),
    {lists:nth(N, List), R}.
