%% SPDX-License-Identifier: Apache-2.0
%% @doc Kills a process of this node and waits until it is back.
%%
%% It is back when its registered name is that of another process; or when the name in a group
%% or in `global' by which it was found is that of another one, on whichever node; or, without a
%% name, when its supervisor has another child of the same id, or as many children
%% as before if they have no ids; or, without a supervisor, when the application
%% has as many processes as before. A temporary child, and a process that nobody
%% looks after, is not waited for.
%%
%% <b>The node stays up.</b> A process is not killed again before it is back. It is
%% spared if a supervisor could not restart it, and what ends with it, without giving up
%% (its intensity would be used up), or shuts itself down when one of them ends (a
%% temporary child that is significant); see {@link atoll_chaos_fall}, which also says
%% what it cannot see. So the tool takes down no supervisor, and no application with it.
%%
%% The module stands alone, see {@link atoll_chaos_agent}.
-module(atoll_chaos_kill).

-export([run/1]).

-export_type([order/0, outcome/0, recovered/0]).

-type order() :: #{
    what := atoll_chaos_victims:what(),
    %% Of those that there are: how far from the first, 0, to the last, 1.
    which := float(),
    deadline_ms := pos_integer(),
    %% On the agent, which is started if it does not run.
    claim := atoll_chaos_agent:claim()
}.

-type outcome() ::
    {killed, [term()], recovered()}
    | {passed_over, Why :: nobody | spared | in_recovery | intensity | significant}.

-type recovered() :: Ms :: float() | never | none.
%% `none' where nobody restarts it.

-define(PAUSE_MAX_MS, 20).

%% @doc Kills one, and returns when it is back, or at the deadline.
-spec run(order()) -> outcome() | {error, atoll_chaos_agent:trouble()}.
run(#{what := What, which := Which, deadline_ms := Deadline, claim := Claim}) ->
    case atoll_chaos_agent:ensure(Claim) of
        ok -> one(What, Which, Deadline);
        {error, _} = Error -> Error
    end.

one(What, Which, Deadline) ->
    case atoll_chaos_victims:find(What) of
        [] ->
            case atoll_chaos_victims:are_spared(What) of
                true -> {passed_over, spared};
                false -> {passed_over, nobody}
            end;
        Victims ->
            {Before, After} = lists:split(min(trunc(Which * length(Victims)), length(Victims) - 1), Victims),
            first(After ++ Before, Deadline, in_recovery)
    end.

%% The one that was drawn, or else the next one that may be killed.
first([], _Deadline, Why) ->
    {passed_over, Why};
first([Victim | Victims], Deadline, Why) ->
    #{keys := Keys} = Fall = atoll_chaos_fall:with(Victim),
    case take(Keys, []) of
        true ->
            Outcome =
                try atoll_chaos_fall:spared(Fall) of
                    none -> {killed, kill(Victim, Deadline)};
                    Spared -> {spared, Spared}
                after
                    %% Before the next one is tried: that one may wait for long.
                    free(Keys)
                end,
            case Outcome of
                {killed, Recovered} -> {killed, maps:get(path, Victim) ++ named(Victim), Recovered};
                {spared, Reason} -> first(Victims, Deadline, Reason)
            end;
        false ->
            first(Victims, Deadline, Why)
    end.

%% All of them or none.
take([], _Taken) ->
    true;
take([{Supervisor, Child} = Key | Keys], Taken) ->
    case atoll_chaos_agent:take(Supervisor, Child) of
        true ->
            take(Keys, [Key | Taken]);
        false ->
            ok = free(Taken),
            false
    end.

free(Keys) ->
    lists:foreach(fun atoll_chaos_agent:free/1, Keys).

child(#{id := undefined, pid := Pid}) -> Pid;
child(#{id := Id}) -> Id.

named(#{held := {_, Name}}) ->
    [Name];
named(#{name := Name, path := Path}) ->
    case Name =:= none orelse Name =:= lists:last(Path) of
        true -> [];
        false -> [Name]
    end.

kill(#{pid := Pid} = Victim, Deadline) ->
    IsBack = expectation(Victim),
    Ref = monitor(process, Pid),
    Begun = erlang:monotonic_time(microsecond),
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end,
    await(IsBack, Begun, Begun + 1000 * Deadline, 1).

await(none, _Begun, _Until, _Pause) ->
    none;
await(IsBack, Begun, Until, Pause) ->
    Back = IsBack(),
    Now = erlang:monotonic_time(microsecond),
    case Back of
        true ->
            (Now - Begun) / 1000;
        false when Now >= Until ->
            never;
        false ->
            %% No event tells of a process that somebody else starts.
            receive
            after Pause -> await(IsBack, Begun, Until, min(2 * Pause, ?PAUSE_MAX_MS))
            end
    end.

%% What to ask again and again, made before the kill.
expectation(#{held := {Scope, Name}, pid := Pid}) ->
    case atoll_chaos_victims:is_program(Pid) of
        true -> none;
        false -> fun() -> is_another(atoll_chaos_victims:holder(Scope, Name), Pid) end
    end;
expectation(#{supervisor := none, name := none, pid := Pid, application := App}) when App =/= undefined ->
    case process_info(Pid, group_leader) of
        {group_leader, Leader} ->
            Before = size_of(Leader),
            fun() -> size_of(Leader) >= Before end;
        %% It has ended by itself since it was found.
        undefined ->
            none
    end;
expectation(#{supervisor := none, name := none}) ->
    none;
expectation(#{supervisor := none, name := Name, pid := Pid}) ->
    fun() -> is_another(whereis(Name), Pid) end;
expectation(#{supervisor := Supervisor, name := Name, id := Id, pid := Pid} = Victim) ->
    case atoll_chaos_fall:childspec(Supervisor, child(Victim)) of
        #{restart := temporary} -> none;
        _ -> child_is_back(Supervisor, name_of(Supervisor), Name, Id, Pid)
    end.

%% The supervisor answers when it has done its restarts.
child_is_back(Supervisor, SupervisorName, Name, Id, Pid) when Name =/= none; Id =/= undefined ->
    fun() ->
        Children = children(Supervisor, SupervisorName),
        case Name of
            none -> is_another(element(2, keyfind(Id, Children)), Pid);
            _ -> is_another(whereis(Name), Pid)
        end
    end;
child_is_back(Supervisor, SupervisorName, none, undefined, _Pid) ->
    Before = living(children(Supervisor, SupervisorName)),
    fun() -> living(children(Supervisor, SupervisorName)) >= Before end.

keyfind(Id, Children) ->
    case lists:keyfind(Id, 1, Children) of
        false -> {Id, undefined};
        Child -> Child
    end.

living(Children) -> length([Pid || {_, Pid, _, _} <- Children, is_pid(Pid)]).

%% A supervisor that was restarted itself is found by its name, if it has one.
children(Supervisor, Name) ->
    case {is_process_alive(Supervisor), Name =/= none andalso whereis(Name)} of
        {true, _} -> atoll_chaos_victims:children(Supervisor);
        {false, Pid} when is_pid(Pid) -> atoll_chaos_victims:children(Pid);
        {false, _} -> []
    end.

name_of(Supervisor) ->
    case process_info(Supervisor, registered_name) of
        {registered_name, Name} -> Name;
        _ -> none
    end.

is_another(Found, Pid) -> is_pid(Found) andalso Found =/= Pid.

size_of(Leader) ->
    length([P || P <- processes(), process_info(P, group_leader) =:= {group_leader, Leader}]).
