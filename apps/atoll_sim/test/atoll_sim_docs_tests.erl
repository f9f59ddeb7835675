%% SPDX-License-Identifier: Apache-2.0
%% The worked example of docs/strategies.md is what it says it is.
-module(atoll_sim_docs_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, 40).

example_test_() ->
    {setup, fun load/0, fun unload/1, [
        {"it has less than a hundred lines", fun is_short/0},
        {"it connects all, both ways, and a broadcast reaches everybody", {timeout, 60, fun connects_all/0}},
        {"it closes the gaps that the dead leave", {timeout, 60, fun closes_gaps/0}},
        {"who leaves is left alone", {timeout, 60, fun lets_go/0}}
    ]}.

load() ->
    File = atoll_test_file:temporary("atoll-docs") ++ ".erl",
    ok = file:write_file(File, lists:join("\n", block())),
    %% It is loaded under a name of its own, whatever file it stands in.
    Compiled = compile:file(File, [binary, return_errors, nowarn_missing_spec]),
    ok = file:delete(File),
    {ok, Module, Binary} = Compiled,
    {module, Module} = code:load_binary(Module, File, Binary),
    my_ring = Module.

unload(Module) ->
    true = code:delete(Module),
    code:purge(Module).

%% The one block of Erlang that is a module.
block() ->
    {ok, Text} = file:read_file(filename:join([root(), "docs", "strategies.md"])),
    [Block] = [
        Code
     || [Code] <- all(re:run(Text, "^```erlang\n(.*?)^```", [multiline, dotall, global, {capture, [1], binary}])),
        binary:match(Code, <<"-module(">>) =/= nomatch
    ],
    binary:split(string:trim(Block), <<"\n">>, [global]).

all({match, Matches}) -> Matches.

%% The tests run in a build directory inside of the working tree.
root() ->
    up(filename:absname(code:lib_dir(atoll_sim))).

up(Dir) ->
    case filelib:is_file(filename:join([Dir, "docs", "strategies.md"])) of
        true -> Dir;
        false when Dir =/= "/" -> up(filename:dirname(Dir))
    end.

is_short() ->
    ?assert(length(block()) < 100).

grown() ->
    {ok, Cluster} = atoll_sim_cluster:new(#{
        nodes => ?NODES, strategy => my_ring, discovery => off, settle_ms => 0, watch => {fun delivered/4, []}
    }),
    Started = atoll_sim_cluster:grow(Cluster),
    [First | Others] = atoll_sim_cluster:names(Started),
    Joined = lists:foldl(
        fun(Name, C) -> cast(Name, {join, [First]}, C) end, Started, Others
    ),
    run(30000, Joined).

delivered(_Now, Node, {notice, {broadcast, From, Payload}}, Kept) -> [{Node, From, Payload} | Kept];
delivered(_Now, _Node, _Sight, Kept) -> Kept.

cast(Name, Notice, Cluster) ->
    atoll_sim_cluster:update(fun(W) -> atoll_sim_world:cast(Name, Notice, W) end, Cluster).

run(Ms, Cluster) ->
    atoll_sim_cluster:update(fun(W) -> atoll_sim_world:run(atoll_sim_world:now(W) + Ms, W) end, Cluster).

connects_all() ->
    Cluster = grown(),
    assert_ring(Cluster),
    [First | _] = Names = atoll_sim_cluster:names(Cluster),
    Sent = run(5000, cast(First, {broadcast, hello}, Cluster)),
    ?assertEqual(
        [{Name, First, hello} || Name <- Names], lists:sort(atoll_sim_world:watched(atoll_sim_cluster:world(Sent)))
    ).

closes_gaps() ->
    Cluster = grown(),
    Dead = lists:sublist(atoll_sim_cluster:names(Cluster), 10),
    Killed = atoll_sim_cluster:update(fun(W) -> lists:foldl(fun atoll_sim_world:kill/2, W, Dead) end, Cluster),
    assert_ring(run(30000, Killed)).

lets_go() ->
    Cluster = grown(),
    [Leaver | _] = atoll_sim_cluster:names(Cluster),
    Left = run(30000, cast(Leaver, leave, Cluster)),
    ?assertEqual({Leaver, []}, lists:keyfind(Leaver, 1, atoll_sim_cluster:neighbours(Left))),
    assert_ring(atoll_sim_cluster:update(fun(W) -> atoll_sim_world:kill(Leaver, W) end, Left)).

%% Each has the two before it and the two behind it: so all are connected.
assert_ring(Cluster) ->
    Neighbours = atoll_sim_cluster:neighbours(Cluster),
    Ring = [Node || {_, Node} <- lists:sort([{erlang:phash2(Node), Node} || {Node, _} <- Neighbours])],
    Count = length(Ring),
    Twice = list_to_tuple(Ring ++ Ring ++ Ring),
    ?assertEqual(
        [
            {Node, lists:sort([element(Count + N + I, Twice) || I <- [-2, -1, 1, 2]])}
         || {Node, N} <- lists:keysort(1, lists:zip(Ring, lists:seq(1, Count)))
        ],
        Neighbours
    ).
