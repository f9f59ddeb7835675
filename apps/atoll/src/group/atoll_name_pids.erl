%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What each process of this node has in each group: a name, or an operation
%% under way that reserves it. It has one of the two at most, and is monitored while
%% it has any. Data only.
-module(atoll_name_pids).

-export([new/0, has/4, has_not/3, is_free/3, all/2]).

-export_type([pids/0, what/0]).

-type id() :: atoll_group_view:id().
-type what() :: {name, Name :: term()} | {op, Ref :: pos_integer()}.
-opaque pids() :: #{pid() => #{id() => what()}}.

-type effect() :: {act, {monitor | demonitor, pid()}}.

%% @doc Nobody has anything.
-spec new() -> pids().
new() -> #{}.

%% @doc It has that in the group, whatever it had there before.
-spec has(pid(), id(), what(), pids()) -> {[effect()], pids()}.
has(Pid, Id, What, Pids) ->
    case Pids of
        #{Pid := Has} -> {[], Pids#{Pid := Has#{Id => What}}};
        #{} -> {[{act, {monitor, Pid}}], Pids#{Pid => #{Id => What}}}
    end.

%% @doc It has nothing there any more.
-spec has_not(pid(), id(), pids()) -> {[effect()], pids()}.
has_not(Pid, Id, Pids) ->
    case Pids of
        #{Pid := Has0} ->
            case maps:remove(Id, Has0) of
                Has when map_size(Has) =:= 0 -> {[{act, {demonitor, Pid}}], maps:remove(Pid, Pids)};
                Has -> {[], Pids#{Pid := Has}}
            end;
        #{} ->
            {[], Pids}
    end.

%% @doc Whether it has nothing in the group.
-spec is_free(pid(), id(), pids()) -> boolean().
is_free(Pid, Id, Pids) ->
    case Pids of
        #{Pid := #{Id := _}} -> false;
        #{} -> true
    end.

%% @doc All that it has, in the order of the groups.
-spec all(pid(), pids()) -> [{id(), what()}].
all(Pid, Pids) -> lists:sort(maps:to_list(maps:get(Pid, Pids, #{}))).
