%% @doc How a host takes down what it has: its own processes, the hosts below with all
%% that is theirs, and the groups, in this order.
-module(aco_end).

-export([all/3]).

-export_type([what/0]).

%% What there is to be taken down.
-type what() :: #{
    run := aco_group:run(),
    keep := aco_keep:keep(),
    reach := pid(),
    monkey := pid() | none,
    %% the host above, or the master, and the group that it shares with this one
    parent := pid(),
    group := aco_tree:group() | none,
    %% those below, which this process monitors
    hosts := [{node(), pid(), reference()}]
}.

%% How much earlier a host gives those below up than it is given up itself.
-define(EARLIER_MS, 2_000).

%% @doc Takes it down within so many milliseconds, after which who is silent is given up.
%% Answers the report of this node with those of the nodes below.
%%
%% The groups go when nobody below needs them any more, and not at all if those below
%% have another parent: then somebody else uses them.
-spec all(Own :: aco_report:report(), Ms :: non_neg_integer(), what()) -> aco_report:report().
all(Own, Ms, #{run := Run, parent := Parent, group := Group, hosts := Hosts} = What) ->
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    ok = end_own(Deadline, What),
    [aco_gather:send(Pid, {stop, self(), max(0, Ms - ?EARLIER_MS)}) || {_, Pid, _} <- Hosts],
    Reports = [stopped(Host, Deadline) || Host <- Hosts],
    _ = lists:member(not_yours, Reports) orelse aco_group:leave(Run, kept(Parent, Group)),
    lists:foldl(fun aco_report:sum/2, Own, [Report || Report <- Reports, Report =/= not_yours]).

%% The parent deletes the group that it shares with this node, if there is one.
kept(Parent, Group) ->
    case lists:member(node(Parent), [node() | nodes(connected)]) of
        true -> Group;
        false -> none
    end.

%% What finds hosts may be making a group, which must not be there when all else is gone.
end_own(Deadline, #{reach := Reach, monkey := Monkey, keep := Keep}) ->
    ok = aco_reach:stop(Reach),
    ok = ended(Reach, Deadline),
    Others = [Pid || {_, Pid} <- aco_keep:roles(Keep)] ++ [Monkey || Monkey =/= none],
    [exit(Pid, kill) || Pid <- [Reach | Others]],
    lists:foreach(fun(Pid) -> ended(Pid, Deadline) end, Others).

ended(Pid, Deadline) ->
    Ref = monitor(process, Pid),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    after left(Deadline) ->
        true = demonitor(Ref, [flush]),
        ok
    end.

stopped({Node, Pid, Ref}, Deadline) ->
    receive
        {stopped, Pid, Report} -> Report;
        {'DOWN', Ref, process, Pid, _} -> aco_report:lost(Node)
    after left(Deadline) ->
        aco_report:lost(Node)
    end.

left(Deadline) ->
    max(0, Deadline - erlang:monotonic_time(millisecond)).
