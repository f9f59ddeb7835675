%% SPDX-License-Identifier: Apache-2.0
%% @doc What was changed from stage to stage so that more clients could be served, each a switch. A stage has its own switches and those
%% of the stages before it. Pure, but for what a node is told once.
%%
%% The first two stages change nothing: they are to see that it works, and to find its limits. Some switches are of the
%% nodes and not of what runs on them (`files', `vm', `nodes'): whoever starts nodes asks for these.
-module(matchstream_switches).

-export([names/0, stages/0, of_stage/1, chosen/3, install/1, all/0, is_on/1, when_on/3]).

-export_type([name/0, stage/0]).

-type stage() :: 1..5.

-type name() ::
    files | vm
    | timers | backlog | monitors | logging | noreply | lookups | connections | hibernate | supervisors | init | repeaters | ports | encode
    | groups | nodes.

-define(SWITCHES, [
    {files, 3, "as many open files as the system allows, and not 1,024"},
    {vm, 3, "a million processes and ports in a VM, and not what Erlang has by itself"},
    {timers, 4, "timers of the VM, and not of the module timer"},
    {backlog, 4, "as many connections that wait to be accepted as the system allows, and not 5"},
    {monitors, 4, "handlers of gen_event that monitor their clients, and not supervised handlers"},
    {logging, 4, "no log of each connection and each event"},
    {noreply, 4, "a process for each request to the store, and not one for all"},
    {lookups, 4, "matches and their status in tables, and not asked of processes"},
    {connections, 4, "eight connections with Redis, and not one"},
    {hibernate, 4, "connections that have nothing to do hibernate"},
    {supervisors, 4, "sixteen supervisors of connections, and not one"},
    {init, 4, "processes of connections that begin their work after their start, and not in it"},
    {repeaters, 4, "sixteen processes that pass the events of a match on, and not one"},
    {ports, 4, "eight ports, and not one"},
    {encode, 4, "an event that is made text once, and not by each connection"},
    {groups, 5, "clients in groups of pg, and not in handlers of gen_event"},
    {nodes, 5, "three nodes, and not one"}
]).

%% @doc All of them, with the stage that each came with, and what it does.
-spec names() -> [{name(), stage(), Help :: string()}].
names() -> ?SWITCHES.

%% @doc All stages.
-spec stages() -> [stage()].
stages() -> [1, 2, 3, 4, 5].

%% @doc Those that a stage has.
-spec of_stage(stage()) -> [name()].
of_stage(Stage) -> [Name || {Name, Is, _} <- ?SWITCHES, Is =< Stage].

%% @doc Those of a stage, with some more and without some others, in order.
-spec chosen(stage(), With :: [name()], Without :: [name()]) -> [name()].
chosen(Stage, With, Without) ->
    Wanted = of_stage(Stage) ++ With,
    [Name || {Name, _, _} <- ?SWITCHES, lists:member(Name, Wanted), not lists:member(Name, Without)].

%% @doc From now on these are on, on this node.
-spec install([name()]) -> ok.
install(Names) -> persistent_term:put(?MODULE, maps:from_keys(Names, on)).

%% @doc Those that are on.
-spec all() -> [name()].
all() ->
    On = persistent_term:get(?MODULE),
    [Name || {Name, _, _} <- ?SWITCHES, is_map_key(Name, On)].

%% @doc Whether one is on.
-spec is_on(name()) -> boolean().
is_on(Name) -> is_map_key(Name, persistent_term:get(?MODULE)).

%% @doc The one or the other.
-spec when_on(name(), On, Off) -> On | Off.
when_on(Name, On, Off) ->
    case is_on(Name) of
        true -> On;
        false -> Off
    end.
