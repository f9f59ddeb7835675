%% @doc The roster's audit: members that nobody watches any more are found dead too.
%%
%% The failure detector's watchers of a node are a few of its neighbours. If they die
%% with it nobody misses it, and neither if a table from long ago brings it back. So
%% each node looks after one member, the next one on a ring of all of them, unless
%% that is its neighbour. Every `audit_ms' it tries to reach that one, over a
%% connection of the moment. Does it get no answer, it has some neighbours try; only
%% if none of them does and one says so, and the same again a while later, the life is
%% over. A node that alone is cut off, or has no neighbours, therefore blames nobody.
%%
%% This module keeps whom this node tries to reach, for itself and for others, and what
%% has come of it. Pure data: what is to be done next is its answer, see
%% {@link outcome()}.
-module(atoll_roster_audit).

-export([new/0, begin_with/3, try_for/3, answered/2, failed/2, helpers/2, said/4, silent/1, tries/1]).

-export_type([audit/0, outcome/0, asker/0]).

-type asker() :: self | node().

-type outcome() ::
    %% Nothing more for now.
    nothing
    %% Have others try.
    | {help, node()}
    %% The audit is done with, and proves nothing against the subject.
    | over
    %% Once more, soon.
    | again
    | {dead, node(), atoll_roster_table:life()}.

-record(audit, {
    %% The life that this node looks after now, and how often nobody reached it.
    subject = none :: none | {node(), atoll_roster_table:life()},
    failures = 0 :: non_neg_integer(),
    %% Who tries too and has not said anything yet; whether somebody has not reached it.
    helpers = [] :: [node()],
    unreached = false :: boolean(),
    %% Whom this node is trying to reach, and for whom.
    tries = #{} :: #{node() => [asker()]}
}).

-opaque audit() :: #audit{}.

%% How often in a row nobody must reach it, and how many others this node tries to
%% reach at one time.
-define(FAILURES, 2).
-define(MAX_TRIES, 32).

%% @doc Nobody is looked after.
-spec new() -> audit().
new() ->
    #audit{}.

%% @doc This life is looked after now; failures of the same one count on.
-spec begin_with(node(), atoll_roster_table:life(), audit()) -> audit().
begin_with(Node, Life, #audit{subject = {Node, Life}} = Audit) ->
    Audit#audit{helpers = [], unreached = false};
begin_with(Node, Life, Audit) ->
    Audit#audit{subject = {Node, Life}, failures = 0, helpers = [], unreached = false}.

%% @doc Somebody wants to know whether Node can be reached: `try' it, if it is not
%% being `tried' already. There may be too many of them.
-spec try_for(asker(), node(), audit()) -> {'try' | tried | refused, audit()}.
try_for(Asker, Node, #audit{tries = Tries} = Audit) ->
    case Tries of
        #{Node := Askers} -> {tried, Audit#audit{tries = Tries#{Node := lists:usort([Asker | Askers])}}};
        #{} when map_size(Tries) >= ?MAX_TRIES -> {refused, Audit};
        #{} -> {'try', Audit#audit{tries = Tries#{Node => [Asker]}}}
    end.

%% @doc It was reached: who is to hear that, and what comes of it here.
-spec answered(node(), audit()) -> {untried | [node()], outcome(), audit()}.
answered(Node, #audit{tries = Tries0} = Audit) ->
    case maps:take(Node, Tries0) of
        {Askers, Tries} ->
            Others = lists:delete(self, Askers),
            case Others of
                Askers -> {Others, nothing, Audit#audit{tries = Tries}};
                _ -> {Others, over, clear(Audit#audit{tries = Tries})}
            end;
        error ->
            {untried, nothing, Audit}
    end.

%% @doc It was not, in the time that there was.
-spec failed(node(), audit()) -> {untried | [node()], outcome(), audit()}.
failed(Node, #audit{tries = Tries0, subject = Subject} = Audit) ->
    case maps:take(Node, Tries0) of
        {Askers, Tries} ->
            Others = lists:delete(self, Askers),
            Outcome =
                case Subject of
                    {Node, _} when Others =/= Askers -> {help, Node};
                    _ -> nothing
                end,
            {Others, Outcome, Audit#audit{tries = Tries}};
        error ->
            {untried, nothing, Audit}
    end.

%% @doc These are asked to try.
-spec helpers([node()], audit()) -> {outcome(), audit()}.
helpers([], Audit) ->
    {over, Audit};
helpers(Helpers, Audit) ->
    {nothing, Audit#audit{helpers = Helpers}}.

%% @doc A helper says whether it has reached Node.
-spec said(node(), node(), reached | unreached, audit()) -> {outcome(), audit()}.
said(Helper, Node, Said, #audit{subject = {Node, _}, helpers = Helpers} = Audit) ->
    case {lists:member(Helper, Helpers), Said, Helpers} of
        {false, _, _} -> {nothing, Audit};
        {true, reached, _} -> {over, clear(Audit)};
        {true, unreached, [Helper]} -> judge(Audit#audit{unreached = true});
        {true, unreached, _} -> {nothing, Audit#audit{unreached = true, helpers = lists:delete(Helper, Helpers)}}
    end;
said(_Helper, _Node, _Said, Audit) ->
    {nothing, Audit}.

%% @doc The helpers had the time that they need.
-spec silent(audit()) -> {outcome(), audit()}.
silent(#audit{helpers = []} = Audit) -> {nothing, Audit};
silent(Audit) -> judge(Audit).

judge(#audit{unreached = false} = Audit) ->
    %% Nobody has said anything: it may be this node that is cut off.
    {over, Audit#audit{helpers = []}};
judge(#audit{subject = {Node, Life}, failures = Failures} = Audit) when Failures + 1 >= ?FAILURES ->
    {{dead, Node, Life}, clear(Audit)};
judge(#audit{failures = Failures} = Audit) ->
    {again, Audit#audit{failures = Failures + 1, helpers = [], unreached = false}}.

clear(Audit) ->
    Audit#audit{subject = none, failures = 0, helpers = [], unreached = false}.

%% @doc How many nodes this one is trying to reach.
-spec tries(audit()) -> non_neg_integer().
tries(#audit{tries = Tries}) ->
    map_size(Tries).
