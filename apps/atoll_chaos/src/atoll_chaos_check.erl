%% SPDX-License-Identifier: Apache-2.0
%% @doc What of a fault script cannot be done on real nodes, and why: said before
%% anything starts.
-module(atoll_chaos_check).

-export([script/3]).

-export_type([able/0]).

-type able() :: [start | kill | pause | slow | overlay | carrier].
%% What can be done to nodes where the script is to run, whether they run an overlay, and
%% whether they have the carrier, with faults; processes, connections and groups can be reached everywhere.

%% @doc Checks a script for that number of nodes, which may be another than its own.
-spec script(atoll_sim_script:script(), Nodes :: pos_integer(), able()) ->
    ok | {error, atoll_sim_script:error()}.
script(#{cluster := Cluster, steps := Steps}, Nodes, Able) ->
    {ok, #{cluster := Default}} = atoll_sim_script:check([]),
    Switch = "stock distribution has no such switch; in the simulator there is",
    Always = "nodes run groups whatever a script says; in the simulator they can do without",
    Contacts = "nodes are started with their contacts; those of the simulator alone are formed in another way",
    Keys = [
        {{cluster, #{Key => Value}}, Why}
     || {Key, Why} <- [{latency, Switch}, {rate, Switch}, {queue, Switch}, {loss, Switch}, {duplicate, Switch}, {formed, Contacts}, {groups, Always}],
        #{Key := Value} <- [Cluster],
        Value =/= map_get(Key, Default)
    ],
    Start = [
        {{start, Who}, "all nodes run at the beginning, and none can be started here"}
     || #{start := Who} <- [Cluster], Who =/= all, not lists:member(start, Able)
    ],
    case Keys ++ Start of
        [{Term, Why} | _] -> {error, {none, none, {refused, Term, Why}}};
        [] -> steps([{0, {start, map_get(start, Cluster)}, none} | Steps], Nodes, Able)
    end.

steps([{_Ms, Step, Place} | Steps], Nodes, Able) ->
    case atoll_sim_step:check(Step, Nodes) of
        {ok, _} ->
            case [Why || One <- atoll_sim_step:each(Step), Why <- [why_not(One, Able)], Why =/= none] of
                [Why | _] when Place =/= none -> {error, {none, Place, {refused, Step, Why}}};
                _ -> steps(Steps, Nodes, Able)
            end;
        {error, Reason} ->
            {error, {none, Place, {step, Reason}}}
    end;
steps([], _Nodes, _Able) ->
    ok.

why_not(heal, _) ->
    none;
why_not({restart, _, alone}, _) ->
    "a node starts again with the contacts that it had; this is for the simulator";
why_not({expect, Expectation}, Able) ->
    %% What is about groups needs no overlay.
    case atoll_sim_step:about(Expectation) of
        overlay -> needed(expect, Able);
        _ -> none
    end;
why_not(Step, Able) ->
    needed(element(1, Step), Able).

needed(Name, Able) ->
    case lists:keyfind(Name, 1, reasons()) of
        {Name, always, Why} -> Why;
        {Name, Needed, Why} ->
            case lists:member(Needed, Able) of
                true -> none;
                false -> Why
            end;
        false -> none
    end.

reasons() ->
    Switch = "stock distribution has no such switch, nor has the carrier; this is for the simulator",
    Carrier = "stock distribution has no such switch; it takes the carrier on all nodes, with {faults,true}",
    Overlay = "it is about the overlay, and these nodes run none",
    Start = "nobody here can start a node again",
    Signal = "the node must run on this machine, where it can be sent a signal",
    [
        {latency, always, Switch},
        {loss, carrier, Carrier},
        {delay, carrier, Carrier},
        {black_hole, carrier, Carrier},
        {lane, carrier, Carrier},
        {duplicate, always, Switch},
        {reorder, always, Switch},
        {stall, always, "no process of a node is held back alone; pause stops the whole node, and this is for the simulator"},
        {leave, overlay, Overlay},
        {broadcast, overlay, Overlay},
        {expect, overlay, Overlay},
        {start, start, Start},
        {restart, start, Start},
        {churn, start, Start},
        {kill, kill, Signal},
        {pause, pause, Signal},
        {slow, slow, Signal}
    ].
