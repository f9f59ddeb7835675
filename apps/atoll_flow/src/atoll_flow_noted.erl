%% SPDX-License-Identifier: Apache-2.0
%% @doc What a probe makes of what is traced: messages are counted by where they go, by the groups of both ends, by kind and by whom, and
%% processes by the schedulers that they move between. It is put into nodes with the probe, and asks the VM who a process is.
-module(atoll_flow_noted).

-export([new/3, noted/2, by_whom/2, in_groups/2, counted/2, rested/1, counts/1, migrations/1]).

-export_type([noted/0, by/0]).

-type by() :: any | name | module.

-record(noted, {
    counts :: atoll_flow_counts:counts(),
    by :: by(),
    names = #{} :: #{pid() => atom()},
    %% The groups of this node, and the first of them that it shares with each other node.
    own = [] :: [term()],
    shared = #{} :: #{node() => Group :: term()},
    %% Where each process ran last, and how often from where to where.
    ran = #{} :: #{pid() => pos_integer()},
    migrations = #{} :: #{{pos_integer(), pos_integer()} => pos_integer()}
}).

-opaque noted() :: #noted{}.

%% Processes that are remembered.
-define(MOST_KNOWN, 20000).

%% @doc Nothing was traced.
-spec new(by(), Groups :: none | [{term(), [node()]}], atoll_flow_counts:meters()) -> noted().
new(By, Groups, Meters) -> in_groups(Groups, #noted{counts = atoll_flow_counts:new(Meters), by = By}).

%% @doc By whom they are counted from now on.
-spec by_whom(by(), noted()) -> noted().
by_whom(By, #noted{by = By} = Noted) -> Noted;
by_whom(By, Noted) -> Noted#noted{by = By, names = #{}}.

%% @doc The groups of this node from now on.
-spec in_groups(none | [{Group :: term(), [node()]}], noted()) -> noted().
in_groups(none, Noted) -> in_groups([], Noted);
in_groups(Groups, Noted) ->
    %% The first stands last.
    Noted#noted{own = [Group || {Group, _} <- Groups], shared = maps:from_list([{Node, Group} || {Group, Nodes} <- lists:reverse(Groups), Node <- Nodes])}.

%% @doc Something has become of the counts, such as a window that has opened.
-spec counted(fun((atoll_flow_counts:counts()) -> atoll_flow_counts:counts()), noted()) -> noted().
counted(Change, #noted{counts = Counts} = Noted) -> Noted#noted{counts = Change(Counts)}.

%% @doc It was not traced for a while: nobody knows where processes ran meanwhile.
-spec rested(noted()) -> noted().
rested(Noted) -> Noted#noted{ran = #{}}.

%% @doc What was counted.
-spec counts(noted()) -> atoll_flow_counts:counts().
counts(#noted{counts = Counts}) -> Counts.

%% @doc How often a process was seen on another scheduler than before.
-spec migrations(noted()) -> [{From :: pos_integer(), To :: pos_integer(), pos_integer()}].
migrations(#noted{migrations = Migrations}) -> [{From, To, N} || {{From, To}, N} <- maps:to_list(Migrations)].

%% @doc Something was traced.
-spec noted(tuple(), noted()) -> noted().
noted({trace_ts, From, send, Message, To, _}, Noted) ->
    Kind = case Message of {'$gen_call', {_, _}, _} -> call; _ -> message end,
    sent(From, Kind, peer(To), erlang:external_size(Message), Noted);
noted({trace_ts, From, call, {erlang, Function, Args}, _}, Noted) ->
    {Kind, Of} = case {Function, Args} of
        {monitor, [_, Is | _]} -> {monitor, Is};
        {link, [Is]} -> {link, Is};
        {exit, [Is, _]} -> {exit, Is}
    end,
    sent(From, Kind, peer(Of), 0, Noted);
%% The number of the scheduler stands beside the function, on one side of it or on the other.
noted({trace_ts, Pid, in, One, Other, _}, #noted{ran = Ran, migrations = Migrations} = Noted) ->
    Scheduler = case is_integer(One) of true -> One; false -> Other end,
    case Ran of
        %% None of those that have a run queue of their own.
        _ when Scheduler =:= 0 -> Noted;
        #{Pid := Scheduler} -> Noted;
        #{Pid := Before} ->
            Noted#noted{ran = Ran#{Pid := Scheduler}, migrations = maps:update_with({Before, Scheduler}, fun(N) -> N + 1 end, 1, Migrations)};
        #{} when map_size(Ran) < ?MOST_KNOWN -> Noted#noted{ran = Ran#{Pid => Scheduler}};
        #{} -> Noted#noted{ran = #{Pid => Scheduler}}
    end;
%% Where schedulers are looked at too, each has the number of its own.
noted({trace_ts, From, send, Message, To, _, Time}, Noted) ->
    noted({trace_ts, From, send, Message, To, Time}, Noted);
noted({trace_ts, From, call, Call, _, Time}, Noted) ->
    noted({trace_ts, From, call, Call, Time}, Noted);
noted(_, Noted) ->
    Noted.

peer({_, Node}) -> Node;
peer(Of) -> node(Of).

sent(From, Kind, Peer, Size, #noted{counts = Counts, by = Asked, own = Own, shared = Shared} = Noted0) ->
    {By, Noted} = case Asked of any -> {any, Noted0}; _ -> by(From, Asked, Noted0) end,
    Way = {Own, case Shared of #{Peer := Group} -> {ok, Group}; #{} -> none end},
    Noted#noted{counts = atoll_flow_counts:add(Peer, Way, Kind, By, Size, Counts)}.

by(Pid, Asked, #noted{names = Names} = Noted) ->
    case Names of
        #{Pid := Name} -> {Name, Noted};
        #{} ->
            Name = case Asked of name -> atoll_flow_facts:name(Pid); module -> atoll_flow_facts:module(Pid) end,
            Kept = case map_size(Names) < ?MOST_KNOWN of true -> Names; false -> #{} end,
            {Name, Noted#noted{names = Kept#{Pid => Name}}}
    end.
