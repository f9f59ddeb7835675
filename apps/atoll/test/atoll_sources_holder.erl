%% SPDX-License-Identifier: Apache-2.0
%% Runs on the node under test: owns its discovery sources, and keeps what they
%% delivered and what was logged of them. The application does not run there.
-module(atoll_sources_holder).

-export([start/1, connect/1, said/1]).
-export([log/2]).

-define(DEADLINE_MS, 15000).

start(Sources) ->
    Caller = self(),
    Pid = spawn(fun() ->
        Self = self(),
        true = register(?MODULE, Self),
        ok = logger:add_handler(?MODULE, ?MODULE, #{config => none}),
        {ok, _} = atoll_sources:start_link(#{
            sources => Sources,
            interval_ms => 100,
            max => 100,
            deliver => fun(Nodes) -> Self ! {is, [{found, Node} || Node <- Nodes]}, ok end,
            fault => fun(Source, Trouble) -> Self ! {is, [{fault, Source, Trouble}]}, ok end
        }),
        Caller ! {Self, started},
        hold([], [])
    end),
    receive
        {Pid, started} -> ok
    after ?DEADLINE_MS -> error(not_started)
    end.

%% Waits until a source has given the node, and tries to connect with it.
connect(Node) ->
    ok = await({found, Node}),
    net_kernel:connect_node(Node).

%% Waits until that was logged.
said(What) -> await({said, What}).

await(Fact) ->
    Ref = monitor(process, ?MODULE),
    ?MODULE ! {await, self(), Ref, Fact},
    receive
        {Ref, ok} -> ok;
        {'DOWN', Ref, process, _, Reason} -> error(Reason)
    after ?DEADLINE_MS -> error({never, Fact})
    end.

hold(Facts, Waiting) ->
    _ = [From ! {Ref, ok} || {From, Ref, Fact} <- Waiting, lists:member(Fact, Facts)],
    Left = [W || {_, _, Fact} = W <- Waiting, not lists:member(Fact, Facts)],
    receive
        {is, New} -> hold(New ++ Facts, Left);
        {await, From, Ref, Fact} -> hold(Facts, [{From, Ref, Fact} | Left])
    end.

log(#{msg := {report, #{what := What}}}, _Config) ->
    ?MODULE ! {is, [{said, What}]},
    ok;
log(_Event, _Config) ->
    ok.
