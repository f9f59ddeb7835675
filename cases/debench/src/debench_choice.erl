%% SPDX-License-Identifier: Apache-2.0
%% @doc Which operation a worker of DE-Bench does next. Pure: the worker does it, and says
%% what became of it.
%%
%% An operation is drawn by weight, and one of two nodes gets another node, each as likely;
%% never the worker's own, so that the weights hold whatever the number of nodes (the original
%% draws among all, and skips the operation if it has drawn its own).
%%
%% After a registration that went well the next two operations are forced: a look-up of
%% that name, then its removal; so there are as many of both as of such registrations. By
%% weight they are never drawn: without a registration there is no name. What is forced is
%% measured under the first label that its operation has, or else under its own name.
-module(debench_choice).

-export([new/3, next/1, done/3, forced/1, labels/1]).

-import(debench_op, [family/1]).

-export_type([state/0, choice/0]).

-type choice() :: {Label :: atom(), debench_op:operation(), node() | none}.
%% On which node, if it is one of two nodes.

-record(choice, {
    %% As configured, and what can be drawn.
    all :: [debench_config:weighted(), ...],
    weighted :: [debench_config:weighted()],
    total :: number(),
    %% Among which a node is drawn.
    others :: tuple(),
    forced = [] :: [debench_op:operation()],
    rand :: rand:state()
}).

-opaque state() :: #choice{}.

%% @doc A worker's beginning, on one of these nodes. Nobody else's seed should be its own.
-spec new([debench_config:weighted(), ...], {Own :: node(), [node(), ...]}, Seed :: term()) -> state().
new(Weighted, {Own, Nodes}, Seed) ->
    Others = lists:delete(Own, Nodes),
    Possible = [W || {_, Operation, Weight} = W <- Weighted, Weight > 0, can_begin(Operation, Others)],
    #choice{
        all = Weighted,
        weighted = Possible,
        total = lists:sum([Weight || {_, _, Weight} <- Possible]),
        others = list_to_tuple(Others),
        rand = rand:seed_s(exsss, erlang:phash2(Seed, 1 bsl 32))
    }.

can_begin(Operation, Others) ->
    case family(Operation) of
        p2p -> Others =/= [];
        _ -> not follows(Operation)
    end.

%% @doc The next operation, and whether it was drawn or forced.
-spec next(state()) -> {choice(), drawn | forced, state()}.
next(#choice{forced = [Operation | Forced], all = All} = State) ->
    {{label(Operation, All), Operation, none}, forced, State#choice{forced = Forced}};
next(#choice{weighted = Weighted, total = Total, rand = Rand0} = State) ->
    {X, Rand1} = rand:uniform_s(Rand0),
    {Label, Operation, _Weight} = at(X * Total, Weighted),
    {Node, Rand} = node_of(family(Operation), State#choice.others, Rand1),
    {{Label, Operation, Node}, drawn, State#choice{rand = Rand}}.

node_of(p2p, Others, Rand0) ->
    {N, Rand} = rand:uniform_s(tuple_size(Others), Rand0),
    {element(N, Others), Rand};
node_of(_Family, _Others, Rand) ->
    {none, Rand}.

%% The last one also takes what rounding leaves over.
at(_X, [Weighted]) -> Weighted;
at(X, [{_, _, Weight} = Weighted | _]) when X < Weight -> Weighted;
at(X, [{_, _, Weight} | More]) -> at(X - Weight, More).

label(Operation, Weighted) ->
    case lists:keyfind(Operation, 2, Weighted) of
        {Label, _, _} -> Label;
        false -> Operation
    end.

%% @doc What became of an operation: a registration that went well has two after it.
-spec done(debench_op:operation(), ok | error, state()) -> state().
done(Operation, ok, #choice{forced = Forced} = State) -> State#choice{forced = following(Operation) ++ Forced};
done(_Operation, error, State) -> State.

%% @doc How many operations are forced next.
-spec forced(state()) -> 0..2.
forced(#choice{forced = Forced}) -> length(Forced).

%% @doc All labels under which there can be something to measure, with their operations: those
%% that are drawn, then those that are forced.
-spec labels([debench_config:weighted(), ...]) -> [{Label :: atom(), debench_op:operation()}, ...].
labels(Weighted) ->
    Drawn = [{Label, Operation} || {Label, Operation, Weight} <- Weighted, Weight > 0, not follows(Operation)],
    Forced = [{label(Operation, Weighted), Operation} || {_, Drawn1} <- Drawn, Operation <- following(Drawn1)],
    Drawn ++ lists:usort(Forced).

follows(Operation) ->
    lists:member(Operation, following(global_register) ++ following(local_register)).

following(global_register) -> [global_whereis, global_unregister];
following(local_register) -> [local_whereis, local_unregister];
following(_Operation) -> [].
