%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor at the top. It owns the tables that everybody reads, so they last as long as the ring does here.
-module(ring_sup).
-behaviour(supervisor).

-export([start_link/1, init/1]).

%% @doc Starts it under its name.
-spec start_link(ring_options:options()) -> supervisor:startlink_ret().
start_link(Options) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Options).

%% @private
-spec init(ring_options:options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{nodes := Nodes, partitions := Partitions, copies := Copies} = Options) ->
    ok = ring_view:new(),
    ok = ring_master:new(),
    ok = ring_lanes:new(),
    Ring = case lists:member(node(), Nodes) of
        true -> ring_state:new(Partitions, Copies, Nodes);
        false -> ring_state:empty(Partitions, Copies)
    end,
    Child = fun(Module, Args) -> #{id => Module, start => {Module, start_link, Args}} end,
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, [
        Child(ring_lanes, [Options]),
        ring_gossip:child_spec(Ring),
        (Child(ring_vnode_sup, []))#{type => supervisor, shutdown => infinity}
    ] ++ ring_inbox:child_specs() ++ [
        %% Others take its being there for a sign that commands are taken.
        Child(ring_master, []),
        Child(ring_manager, [Options]),
        Child(ring_entropy, [Options])
    ]}}.
