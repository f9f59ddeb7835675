%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node remembers of a run for those that may be killed there: a table, whose owner is
%% not killed ({@link aco_app}). The keys of a run are
%%
%%   {started, Id}  how often that submaster or colony was started on this node
%%   {vain, Id}     how often since it last got something done
%%   {colony, Id}   where that colony is, after each generation
%%   {above, Id}    who has asked that one last; `leash' who watches those
-module(aco_keep).

-export([new/0, put/3, get/3, count/2, started/1, above/1, forget/1]).

-export_type([key/0]).

-type key() :: {started | vain | colony | above, aco_tree:id()} | leash.

%% @doc An empty one, which goes with the calling process.
-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc Remembers it.
-spec put(aco_tree:run_id(), key(), term()) -> ok.
put(Run, Key, Value) ->
    true = ets:insert(?MODULE, {{Run, Key}, Value}),
    ok.

%% @doc What was put last, or else that default.
-spec get(aco_tree:run_id(), key(), Default) -> term() | Default.
get(Run, Key, Default) ->
    try ets:lookup_element(?MODULE, {Run, Key}, 2)
    catch error:badarg -> Default
    end.

%% @doc Counts one more, and says how many it is now.
-spec count(aco_tree:run_id(), key()) -> pos_integer().
count(Run, Key) ->
    ets:update_counter(?MODULE, {Run, Key}, 1, {{Run, Key}, 0}).

%% @doc Who was started on this node, and how often.
-spec started(aco_tree:run_id()) -> [{aco_tree:id(), Times :: pos_integer()}].
started(Run) ->
    [{Id, Times} || [Id, Times] <- ets:match(?MODULE, {{Run, {started, '$1'}}, '$2'})].

%% @doc By whom each was asked last.
-spec above(aco_tree:run_id()) -> [{aco_tree:id(), pid()}].
above(Run) ->
    [{Id, Pid} || [Id, Pid] <- ets:match(?MODULE, {{Run, {above, '$1'}}, '$2'})].

%% @doc The run is over.
-spec forget(aco_tree:run_id()) -> ok.
forget(Run) ->
    true = ets:match_delete(?MODULE, {{Run, '_'}, '_'}),
    ok.
