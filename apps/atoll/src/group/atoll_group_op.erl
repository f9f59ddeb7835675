%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc One operation on a group, as the node that runs it sees it: what was
%% asked for, which nodes it concerns, and what each of them has answered.
%%
%% Data only; {@link atoll_group_core} sends the messages. An operation is
%% `taking' locks at the nodes it concerns, `backing_off' after it had to give way,
%% or `settling': it has changed the group and waits until the nodes that agreed
%% have the change.
-module(atoll_group_op).

-export([new/3, stamp/1, from/1, operation/1, phase/1, attempt/1]).
-export([id/1, set_id/2, concern/2, concerned/1, answer/3, status/2, in_status/2, asked/1]).
-export([expect/2, expected/1, is_decided/1, hold/4, held_before/2, back_off/1, again/1]).
-export([settle/4, settled/2, unsettled/1, view/1, result/1]).

-export_type([op/0, status/0]).

-type status() ::
    %% Not asked: there is no connection yet.
    connecting
    %% Asked; it has not answered, or said that another holds the lock.
    | asked
    | waiting
    %% Granted; it is in another group of that name / it cannot be
    %% reached or is silent.
    | granted
    | refused
    | gone.

-record(op, {
    %% Its age, and its identity everywhere.
    stamp :: atoll_group_view:stamp(),
    from :: atoll_protocol:from(),
    operation :: atoll_group_rules:operation(),
    %% The group; unknown until an attempt begins.
    id = undefined :: undefined | atoll_group_view:id(),
    phase = taking :: taking | backing_off | settling,
    %% Grows with each attempt, so that an answer to an earlier attempt is known.
    attempt = 1 :: pos_integer(),
    answers = #{} :: #{node() => status()},
    %% When the answers are due.
    expected = 0 :: atoll_protocol:now_ms(),
    %% For those that granted or refused: when what they answered was sent. Their
    %% lock lasts for some time from then.
    held = #{} :: #{node() => atoll_protocol:now_ms()},
    %% While settling: the change, who has not said that it is ready, and the
    %% answer then.
    view = undefined :: undefined | atoll_group_view:view(),
    unsettled = [] :: [node()],
    result = undefined :: term()
}).

-opaque op() :: #op{}.

%% @doc An operation that concerns nobody yet.
-spec new(atoll_group_rules:operation(), atoll_group_view:stamp(), atoll_protocol:from()) -> op().
new(Operation, Stamp, From) ->
    #op{operation = Operation, stamp = Stamp, from = From}.

%% @doc Its age and identity.
-spec stamp(op()) -> atoll_group_view:stamp().
stamp(#op{stamp = Stamp}) -> Stamp.

%% @doc Who waits for it.
-spec from(op()) -> atoll_protocol:from().
from(#op{from = From}) -> From.

%% @doc What is to be done.
-spec operation(op()) -> atoll_group_rules:operation().
operation(#op{operation = Operation}) -> Operation.

%% @doc Where it stands.
-spec phase(op()) -> taking | backing_off | settling.
phase(#op{phase = Phase}) -> Phase.

%% @doc Which attempt this is.
-spec attempt(op()) -> pos_integer().
attempt(#op{attempt = Attempt}) -> Attempt.

%% @doc The group it takes locks for.
-spec id(op()) -> undefined | atoll_group_view:id().
id(#op{id = Id}) -> Id.

%% @doc It takes locks for that group.
-spec set_id(atoll_group_view:id(), op()) -> op().
set_id(Id, Op) -> Op#op{id = Id}.

%% @doc These nodes are concerned. Gives those that were not until now.
-spec concern([node()], op()) -> {[node()], op()}.
concern(Nodes, #op{answers = Answers} = Op) ->
    New = [Node || Node <- Nodes, not maps:is_key(Node, Answers)],
    {New, lists:foldl(fun(Node, Acc) -> answer(Node, connecting, Acc) end, Op, New)}.

%% @doc Every node concerned in this attempt.
-spec concerned(op()) -> [node()].
concerned(#op{answers = Answers}) -> lists:sort(maps:keys(Answers)).

%% @doc What is known of one node's answer now.
-spec answer(node(), status(), op()) -> op().
answer(Node, Status, #op{answers = Answers} = Op) ->
    Op#op{answers = Answers#{Node => Status}}.

%% @doc What that node has answered; `none' if it is not concerned.
-spec status(node(), op()) -> none | status().
status(Node, #op{answers = Answers}) -> maps:get(Node, Answers, none).

%% @doc The nodes in any of these states.
-spec in_status([status()], op()) -> [node()].
in_status(Wanted, #op{answers = Answers}) ->
    lists:sort([Node || {Node, Status} <- maps:to_list(Answers), lists:member(Status, Wanted)]).

%% @doc Every node that may hold a lock for it.
-spec asked(op()) -> [node()].
asked(Op) -> in_status([asked, waiting, granted, refused], Op).

%% @doc The answers are due at that time.
-spec expect(atoll_protocol:now_ms(), op()) -> op().
expect(Time, Op) -> Op#op{expected = Time}.

%% @doc When the answers are due.
-spec expected(op()) -> atoll_protocol:now_ms().
expected(#op{expected = Time}) -> Time.

%% @doc Whether every node concerned has decided.
-spec is_decided(op()) -> boolean().
is_decided(Op) -> in_status([connecting, asked, waiting], Op) =:= [].

%% @doc That node answered, with its lock, what was sent to it at that time.
-spec hold(node(), granted | refused, atoll_protocol:now_ms(), op()) -> op().
hold(Node, Status, Sent, #op{held = Held} = Op) ->
    answer(Node, Status, Op#op{held = Held#{Node => Sent}}).

%% @doc The nodes whose lock is known to last only from before that time.
-spec held_before(atoll_protocol:now_ms(), op()) -> [node()].
held_before(Time, #op{held = Held} = Op) ->
    [Node || Node <- in_status([granted, refused], Op), maps:get(Node, Held) < Time].

%% @doc It gave way: all answers are void.
-spec back_off(op()) -> op().
back_off(#op{attempt = Attempt} = Op) ->
    Op#op{phase = backing_off, attempt = Attempt + 1, answers = #{}, held = #{}, id = undefined}.

%% @doc It tries again.
-spec again(op()) -> op().
again(Op) -> Op#op{phase = taking}.

%% @doc It has changed the group; these nodes will say when they are ready.
-spec settle([node()], atoll_group_view:view(), Result :: term(), op()) -> op().
settle(Nodes, View, Result, Op) ->
    Op#op{phase = settling, unsettled = Nodes, view = View, result = Result}.

%% @doc Who has not said yet that it is ready.
-spec unsettled(op()) -> [node()].
unsettled(#op{unsettled = Unsettled}) -> Unsettled.

%% @doc The group after the change.
-spec view(op()) -> undefined | atoll_group_view:view().
view(#op{view = View}) -> View.

%% @doc That node is ready, or is no longer waited for. Says whether that was the last.
-spec settled(node(), op()) -> {boolean(), op()}.
settled(Node, #op{unsettled = Unsettled} = Op) ->
    Left = lists:delete(Node, Unsettled),
    {Left =:= [], Op#op{unsettled = Left}}.

%% @doc The answer to give when all have settled.
-spec result(op()) -> term().
result(#op{result = Result}) -> Result.
