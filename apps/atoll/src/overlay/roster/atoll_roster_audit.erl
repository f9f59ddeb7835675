%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The roster's audit: members that nobody watches any more are found dead too.
%%
%% The failure detector's watchers of a node are a few of its neighbours. If they die
%% with it nobody misses it, and neither if a table from long ago brings it back. So
%% each node looks after one member, the next one on a ring of all of them, unless
%% that is its neighbour. Every `audit_ms' it tries to reach that one, over a
%% connection of the moment. If it gets no answer, some of its neighbours try; only
%% if none of them does and one says so, and the same again a while later, the life is
%% over. A node that alone is cut off, or has no neighbours, therefore blames nobody.
%%
%% Those who died together stand next to each other on the ring: where all of a round are found
%% dead, the next round takes twice as many, sixteen at most.
%%
%% This module keeps whom this node tries to reach, for itself and for others, and what
%% has come of it. Pure data: what is to be done next is its answer, see
%% {@link outcome()}.
-module(atoll_roster_audit).

-export([new/0, width/1, begin_with/2, try_for/3, answered/2, failed/2, helpers/3, said/4, silent/2, tries/1]).

-export_type([audit/0, outcome/0, asker/0]).

-type asker() :: self | node().

-type outcome() ::
    %% Have others try.
    {help, node()}
    | {dead, node(), atoll_roster_table:life()}
    %% The round is over. `again': with the same ones, soon. `found': all were dead, go on. `over':
    %% nothing is to be done for a while.
    | {round, again | found | over}.

-record(subject, {
    life :: atoll_roster_table:life(),
    %% How often in a row nobody reached it.
    failures = 0 :: non_neg_integer(),
    %% Who tries too and has not said anything yet; whether somebody has not reached it.
    helpers = [] :: [node()],
    unreached = false :: boolean(),
    %% What has come of it in this round.
    result = open :: open | over | again | dead
}).

-record(audit, {
    %% The lives that this node looks after in this round.
    subjects = #{} :: #{node() => #subject{}},
    %% How many it takes.
    width = 1 :: pos_integer(),
    %% Whom this node is trying to reach, and for whom.
    tries = #{} :: #{node() => [asker()]}
}).

-opaque audit() :: #audit{}.

%% How often in a row nobody must reach it, and how many others this node tries to
%% reach at one time.
-define(FAILURES, 2).
-define(MAX_TRIES, 64).
-define(MOST, 16).

%% @doc Nobody is looked after.
-spec new() -> audit().
new() ->
    #audit{}.

%% @doc How many this node is to look after in the next round.
-spec width(audit()) -> pos_integer().
width(#audit{width = Width}) -> Width.

%% @doc A round: these lives are looked after; failures of the same ones count on.
-spec begin_with([{node(), atoll_roster_table:life()}, ...], audit()) -> audit().
begin_with(Lives, #audit{subjects = Before} = Audit) ->
    Subject = fun(Node, Life) ->
        case Before of
            #{Node := #subject{life = Life, failures = Failures}} -> #subject{life = Life, failures = Failures};
            #{} -> #subject{life = Life}
        end
    end,
    Audit#audit{subjects = maps:from_list([{Node, Subject(Node, Life)} || {Node, Life} <- Lives])}.

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
-spec answered(node(), audit()) -> {untried | [node()], [outcome()], audit()}.
answered(Node, Audit) ->
    tried(Node, Audit, fun(A) -> settle(Node, over, 0, A) end).

%% @doc It was not, in the time that there was.
-spec failed(node(), audit()) -> {untried | [node()], [outcome()], audit()}.
failed(Node, Audit) ->
    tried(Node, Audit, fun(A) -> {[{help, Node}], A} end).

tried(Node, #audit{tries = Tries0} = Audit0, Fun) ->
    case maps:take(Node, Tries0) of
        {Askers, Tries} ->
            Audit1 = Audit0#audit{tries = Tries},
            {Outcomes, Audit} =
                case lists:member(self, Askers) andalso is_open(Node, Audit1) of
                    true -> Fun(Audit1);
                    false -> {[], Audit1}
                end,
            {lists:delete(self, Askers), Outcomes, Audit};
        error ->
            {untried, [], Audit0}
    end.

is_open(Node, #audit{subjects = Subjects}) ->
    case Subjects of
        #{Node := #subject{result = open}} -> true;
        #{} -> false
    end.

%% @doc These are asked to try; nobody, if this node can ask nobody, or cannot try itself.
-spec helpers(node(), [node()], audit()) -> {[outcome()], audit()}.
helpers(Node, [], Audit) ->
    unproved(Node, Audit);
helpers(Node, Helpers, #audit{subjects = Subjects} = Audit) ->
    #{Node := Subject} = Subjects,
    {[], Audit#audit{subjects = Subjects#{Node := Subject#subject{helpers = Helpers}}}}.

%% @doc A helper says whether it has reached Node.
-spec said(node(), node(), reached | unreached, audit()) -> {[outcome()], audit()}.
said(Helper, Node, Said, #audit{subjects = Subjects} = Audit) ->
    case Subjects of
        #{Node := #subject{result = open, helpers = Helpers} = Subject} ->
            Heard = fun(Left) -> Audit#audit{subjects = Subjects#{Node := Subject#subject{helpers = Left, unreached = true}}} end,
            case {lists:member(Helper, Helpers), Said, lists:delete(Helper, Helpers)} of
                {false, _, _} -> {[], Audit};
                {true, reached, _} -> settle(Node, over, 0, Audit);
                {true, unreached, []} -> judge(Node, Heard([]));
                {true, unreached, Left} -> {[], Heard(Left)}
            end;
        #{} ->
            {[], Audit}
    end.

%% @doc The helpers had the time that they need.
-spec silent(node(), audit()) -> {[outcome()], audit()}.
silent(Node, Audit) ->
    case is_open(Node, Audit) of
        true -> judge(Node, Audit);
        false -> {[], Audit}
    end.

judge(Node, #audit{subjects = Subjects} = Audit) ->
    case Subjects of
        %% Nobody has said anything: it may be this node that is cut off.
        #{Node := #subject{unreached = false}} -> unproved(Node, Audit);
        #{Node := #subject{failures = Failures}} when Failures + 1 >= ?FAILURES -> settle(Node, dead, 0, Audit);
        #{Node := #subject{failures = Failures}} -> settle(Node, again, Failures + 1, Audit)
    end.

%% Neither reached nor missed: what was counted before stays.
unproved(Node, #audit{subjects = Subjects} = Audit) ->
    #{Node := #subject{failures = Failures}} = Subjects,
    settle(Node, over, Failures, Audit).

settle(Node, Result, Failures, #audit{subjects = Subjects0} = Audit) ->
    #{Node := #subject{life = Life} = Subject} = Subjects0,
    Subjects = Subjects0#{Node := Subject#subject{result = Result, failures = Failures, helpers = []}},
    {Ends, Width} = round_over(lists:usort([R || #subject{result = R} <- maps:values(Subjects)]), Audit#audit.width),
    {[{dead, Node, Life} || Result =:= dead] ++ Ends, Audit#audit{subjects = Subjects, width = Width}}.

round_over([dead], Width) ->
    {[{round, found}], min(?MOST, 2 * Width)};
round_over(Results, Width) ->
    case {lists:member(open, Results), lists:member(again, Results)} of
        {true, _} -> {[], Width};
        {false, true} -> {[{round, again}], Width};
        {false, false} -> {[{round, over}], 1}
    end.

%% @doc How many nodes this one is trying to reach.
-spec tries(audit()) -> non_neg_integer().
tries(#audit{tries = Tries}) ->
    map_size(Tries).
