%% @doc The s_groups of a run.
%%
%% A run has an s_group for each of its groups and for each gateway group, with
%% the run's own id in the name, so that two runs on one cluster never share
%% one. That is one atom for each group and run.
-module(orbit_group).

-export([name/3, make/2, delete/1]).

-export_type([name/0]).

-type name() :: atom().

%% @doc The name of an s_group of a run.
-spec name(orbit_run:run(), group | gateway, pos_integer()) -> name().
name(#{id := Id}, Kind, N) ->
    list_to_atom(lists:concat(["orbit_", Id, "_", Kind, "_", N])).

%% @doc Makes a group, of which this node must be a member, with all of these
%% nodes in it. The library leaves a node out that it cannot reach; to a run
%% that is a failure.
-spec make(name(), [node(), ...]) -> ok | {error, orbit_failure:reason()}.
make(Name, Nodes) ->
    try s_group:new_s_group(Name, Nodes) of
        {ok, Name, Members} ->
            case Nodes -- Members of
                [] -> ok;
                [Missing | _] -> {error, {left_out, Missing}}
            end;
        {error, Reason} ->
            {error, {group_failed, node(), Reason}}
    catch
        exit:{noproc, _} ->
            {error, {group_failed, node(), s_group_not_runnig}}
    end.

%% @doc Deletes a group. That another member has deleted it before is no error.
-spec delete(name()) -> ok | {error, s_group:error()}.
delete(Name) ->
    case s_group:delete_s_group(Name) of
        {error, {"remote_s_group", Name}} -> ok;
        Answer -> Answer
    end.
