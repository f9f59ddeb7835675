%% SPDX-License-Identifier: Apache-2.0
%% @doc How far a run of the ant colonies is, for who is not on its nodes: a process on one of them
%% that the run tells (the key `watcher' of its spec), and that can be asked.
-module(atoll_cases_aco_progress).

-export([start/0, latest/1]).

-export_type([latest/0]).

%% The last round that is over, and the best of all rounds so far.
-type latest() :: {Round :: pos_integer(), aco_schedule:cost()} | none.

-define(ANSWER_MS, 5000).

%% @doc Starts one on this node. It ends with the node.
-spec start() -> pid().
start() ->
    spawn(fun() -> listen(none) end).

%% @doc What it was told last.
-spec latest(pid()) -> latest().
latest(Pid) ->
    Ref = make_ref(),
    Pid ! {latest, self(), Ref},
    receive
        {Ref, Latest} -> Latest
    after ?ANSWER_MS -> none
    end.

listen(Latest) ->
    receive
        {aco, best, Round, Cost} -> listen({Round, Cost});
        {latest, From, Ref} ->
            From ! {Ref, Latest},
            listen(Latest)
    end.
