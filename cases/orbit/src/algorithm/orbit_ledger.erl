%% SPDX-License-Identifier: Apache-2.0
%% @doc What the master decides: when an epoch begins, and when the run is over.
%%
%% An epoch has three stages. In the first all nodes of the plan ({@link orbit_plan}) are made ready:
%% each says which processes have its parts. Then every part begins with an equal share of the credit
%% 1; what goes back is collected. When that is 1, the results are asked for, and when all of the
%% nodes have given theirs the run is over. Whenever something is lost, in whichever stage, the next
%% epoch begins: without a node if that is what was lost. {@link orbit_part} has the proof, of which
%% this is the other half:
%%
%% - In an epoch a share is given to each part once, and to the process that its node was ready with.
%% - A result counts if it is of this epoch, and a process that has taken the place of another is in
%%   none before its first share. So a result is given only if all that had a share are still there.
%% - What was said of an earlier epoch changes nothing.
%%
%% A node that was never ready is not replaced in silence: that ends the run. A node that was lost and
%% is back takes part again from the next epoch on, and no epoch begins for it.
-module(orbit_ledger).

-export([new/2, plan/1, epoch/1, credit/1, handle/2]).

-export_type([ledger/0, event/0, effect/0, ready/0, reason/0]).

%% The processes of a node: with its parts, and those that hand vertices on.
-type ready() :: #{submaster := pid(), workers := #{orbit_part:id() => pid()}, gateways := [pid()]}.

-type event() ::
    start
    | {ready, orbit_part:epoch(), node(), ready()}
    %% the next node on the way there could not have it made ready
    | {unreached, orbit_part:epoch(), node(), Why :: term()}
    %% a process, or a connection, is gone
    | {lost, orbit_part:epoch()}
    %% all live, and something does not come about
    | {vain, orbit_part:epoch(), reason() | term()}
    | {back, node()}
    | {credit, orbit_part:epoch(), orbit_credit:credit()}
    | {result, orbit_part:epoch(), node(), orbit_tally:tally()}
    | {deadline, orbit_part:epoch()}
    | {failed, term()}.

-type effect() ::
    {prepare, orbit_part:epoch(), orbit_plan:plan()}
    | {go, orbit_part:epoch(), #{node() => ready()}, orbit_credit:unit()}
    | {collect, orbit_part:epoch()}
    | {done, orbit_tally:tally()}
    | {fail, reason() | term()}.

-type reason() :: orbit_plan:reason() | {unreachable, node()}.

-record(ledger, {
    %% how many generators
    degree :: pos_integer(),
    plan :: orbit_plan:plan(),
    epoch = 0 :: orbit_part:epoch(),
    stage = preparing :: preparing | running | collecting | over,
    %% nodes that were ready at some time, and those that are in this epoch
    known = #{} :: #{node() => []},
    ready = #{} :: #{node() => ready()},
    %% nodes that are to take part again, the last first
    back = [] :: [node()],
    %% how many epochs in a row have ended in vain
    vain = 0 :: non_neg_integer(),
    credit = orbit_credit:none() :: orbit_credit:credit(),
    results = #{} :: #{node() => orbit_tally:tally()}
}).

-opaque ledger() :: #ledger{}.

%% So often it is tried again.
-define(VAIN, 20).

%% @doc Before the first epoch of a run with so many generators.
-spec new(orbit_plan:plan(), Degree :: pos_integer()) -> ledger().
new(Plan, Degree) -> #ledger{plan = Plan, degree = Degree}.

%% @doc Where everything is in this epoch.
-spec plan(ledger()) -> orbit_plan:plan().
plan(#ledger{plan = Plan}) -> Plan.

%% @doc Which epoch this is: 1 if nothing was lost.
-spec epoch(ledger()) -> orbit_part:epoch().
epoch(#ledger{epoch = Epoch}) -> Epoch.

%% @doc What has been collected in it.
-spec credit(ledger()) -> orbit_credit:credit().
credit(#ledger{credit = Credit}) -> Credit.

%% @doc What an event leads to.
-spec handle(event(), ledger()) -> {[effect()], ledger()}.
handle(_, #ledger{stage = over} = L) ->
    {[], L};
handle(start, L) ->
    next(L);
handle({failed, Reason}, L) ->
    fail(Reason, L);
handle({back, Node}, #ledger{back = Others} = L) ->
    {[], L#ledger{back = [Node | lists:delete(Node, Others)]}};
handle(Event, #ledger{epoch = Epoch} = L) when element(2, Event) =:= Epoch ->
    present(Event, L);
handle(_, L) ->
    {[], L}.

present({lost, _}, L) ->
    next(L#ledger{vain = 0});
present({unreached, _, Node, Why}, L) ->
    without([Node], Why, L);
present({vain, _, _}, #ledger{vain = Vain} = L) when Vain < ?VAIN ->
    next(L#ledger{vain = Vain + 1});
present({vain, _, Reason}, L) ->
    fail(Reason, L);
present({ready, Epoch, Node, Is}, #ledger{stage = preparing, ready = Ready, known = Known, plan = Plan} = L) ->
    All = Ready#{Node => Is},
    case orbit_plan:present(Plan) -- maps:keys(All) of
        [] ->
            {Unit, Rest} = orbit_credit:shares(orbit_plan:parts(Plan)),
            {[{go, Epoch, All, Unit}], L#ledger{stage = running, ready = All, known = Known#{Node => []}, credit = Rest}};
        _ ->
            {[], L#ledger{ready = All, known = Known#{Node => []}}}
    end;
present({deadline, _}, #ledger{stage = preparing, ready = Ready, plan = Plan} = L) ->
    [Node | _] = Silent = orbit_plan:present(Plan) -- maps:keys(Ready),
    without(Silent, {unreachable, Node}, L);
present({credit, Epoch, Credit}, #ledger{stage = running, credit = Before} = L) ->
    All = orbit_credit:all(),
    case orbit_credit:sum(Credit, Before) of
        All -> {[{collect, Epoch}], L#ledger{stage = collecting, credit = All}};
        Some -> {[], L#ledger{credit = Some}}
    end;
present({result, Epoch, Node, Tally}, #ledger{stage = collecting, results = Results, plan = Plan} = L) ->
    All = Results#{Node => Tally},
    case orbit_plan:present(Plan) -- maps:keys(All) of
        [] ->
            Sum = lists:foldl(fun orbit_tally:add/2, orbit_tally:none(), maps:values(All)),
            ok = is_whole(Epoch, Sum, L),
            {[{done, Sum}], L#ledger{stage = over}};
        _ ->
            {[], L#ledger{results = All}}
    end;
present(_, L) ->
    {[], L}.

%% Where nothing was lost, each vertex of the set came in by one message under each generator, but the
%% first one, which came in once more.
is_whole(1, #{size := Size, received := Received}, #ledger{degree = Degree}) ->
    Received = 1 + Size * Degree,
    ok;
is_whole(_, _, _) ->
    ok.

next(#ledger{epoch = Epoch, plan = Plan, back = Back} = L) ->
    Next = lists:foldr(fun orbit_plan:back/2, Plan, Back),
    {[{prepare, Epoch + 1, Next}],
     L#ledger{plan = Next, back = [], epoch = Epoch + 1, stage = preparing, ready = #{}, credit = orbit_credit:none(), results = #{}}}.

without(Nodes, Why, #ledger{plan = Plan, known = Known} = L) ->
    case [Node || Node <- Nodes, not is_map_key(Node, Known)] of
        [] ->
            case orbit_plan:without(Nodes, Plan) of
                {ok, Left} -> next(L#ledger{plan = Left, vain = 0});
                {error, Reason} -> fail(Reason, L)
            end;
        _ -> fail(Why, L)
    end.

fail(Reason, L) -> {[{fail, Reason}], L#ledger{stage = over}}.
