%% SPDX-License-Identifier: Apache-2.0
%% @doc The name functions of OTP's `global' over one group: a program moves by
%% changing that word, and `{global, Name}' to `{via, atoll_global, Name}'.
%%
%% The group is the option `global_group', the same on every node: by default
%% `undefined', that of the free nodes. What is promised is what `atoll_name_core'
%% promises, and is more than `global' does: no lock is taken, a process on a node outside
%% of the group or a dead one gets no name, and a process has one name.
%%
%% A function that resolves a clash is given with the name, as there; it is an exported
%% one (`fun Module:Function/3'), since the processes' nodes call it. Without one the
%% group's rule decides. Who loses a name that was registered here is told what `global'
%% tells: `{global_name_conflict, Name}'; with the other process, `{global_name_conflict,
%% Name, Pid}', when nobody keeps it; and nothing where a function of the program decided.
%%
%% Locks (`set_lock', `trans') are not here: `global' has them still.
-module(atoll_global).

-export([use/1]).
-export([register_name/2, register_name/3, re_register_name/2, re_register_name/3]).
-export([register_name_external/2, register_name_external/3, unregister_name_external/1]).
-export([unregister_name/1, whereis_name/1, send/2, registered_names/0, sync/0]).
-export([random_exit_name/3, random_notify_name/3, notify_all_name/3]).
-export_type([resolve/0]).

-type resolve() :: fun((Name :: term(), pid(), pid()) -> pid() | none).

%% @doc From now on this module is about that group. The application says so when it
%% starts.
-spec use(atoll_name:group()) -> ok.
use(Group) ->
    persistent_term:put(?MODULE, Group).

group() -> persistent_term:get(?MODULE, undefined).

%% @doc Gives the process that name. After `yes' every live member has it.
-spec register_name(Name :: term(), pid()) -> yes | no.
register_name(Name, Pid) ->
    register_as(register, Name, Pid, group_rule()).

%% @doc The same; the function says who keeps the name when two parts of the group meet.
-spec register_name(Name :: term(), pid(), resolve()) -> yes | no.
register_name(Name, Pid, Resolve) ->
    register_as(register, Name, Pid, rule(Resolve)).

%% @doc Gives the process that name, whoever has it now.
-spec re_register_name(Name :: term(), pid()) -> yes | no.
re_register_name(Name, Pid) ->
    register_as(re_register, Name, Pid, group_rule()).

%% @doc The same, with a function for clashes.
-spec re_register_name(Name :: term(), pid(), resolve()) -> yes | no.
re_register_name(Name, Pid, Resolve) ->
    register_as(re_register, Name, Pid, rule(Resolve)).

%% @doc Gives a process outside of Erlang the name, on this node's account.
-spec register_name_external(Name :: term(), pid()) -> yes | no.
register_name_external(Name, Pid) ->
    register_as(register_external, Name, Pid, group_rule()).

%% @doc The same, with a function for clashes.
-spec register_name_external(Name :: term(), pid(), resolve()) -> yes | no.
register_name_external(Name, Pid, Resolve) ->
    register_as(register_external, Name, Pid, rule(Resolve)).

register_as(How, Name, Pid, Meta) ->
    case atoll_name:How(group(), Name, Pid, Meta) of
        yes -> yes;
        {no, _} -> no
    end.

%% The metadata of these names says what becomes of a clash.
group_rule() -> atoll_name_rules:as_global(none).

rule(Resolve) when is_function(Resolve, 3) ->
    Info = [erlang:fun_info(Resolve, Key) || Key <- [type, module, name]],
    case Info of
        [{type, external}, {module, Module}, {name, Name}] when Module =:= global; Module =:= ?MODULE ->
            atoll_name_rules:as_global(known(Module, Name));
        [{type, external}, {module, Module}, {name, Name}] ->
            atoll_name_rules:as_global({call, Module, Name});
        _ ->
            error(badarg, [Resolve])
    end.

known(_, random_exit_name) -> random_exit;
known(_, random_notify_name) -> random_notify;
known(_, notify_all_name) -> notify_all;
known(Module, Name) -> {call, Module, Name}.

%% @doc Nobody has the name any more, on any live member.
-spec unregister_name(Name :: term()) -> ok | {no, atoll_name:reason()}.
unregister_name(Name) ->
    atoll_name:unregister(group(), Name).

%% @doc The same.
-spec unregister_name_external(Name :: term()) -> ok | {no, atoll_name:reason()}.
unregister_name_external(Name) ->
    unregister_name(Name).

%% @doc The process of that name. A node outside of the group asks a member.
-spec whereis_name(Name :: term()) -> pid() | undefined.
whereis_name(Name) ->
    atoll_name:whereis_name({group(), Name}).

%% @doc Sends a message to the process of that name; exits with `badarg' if there is
%% none.
-spec send(Name :: term(), Message :: term()) -> pid().
send(Name, Message) ->
    case atoll_name:find(group(), Name) of
        {ok, Pid} ->
            Pid ! Message,
            Pid;
        {error, _} ->
            exit({badarg, {Name, Message}})
    end.

%% @doc All names, sorted.
-spec registered_names() -> [Name :: term()].
registered_names() ->
    atoll_name:names(group()).

%% @doc Waits until this node is connected with the members that can be reached.
-spec sync() -> ok | {error, Reason :: term()}.
sync() ->
    s_group:sync().

%% @doc For {@link register_name/3}: chance decides who keeps the name, the other is
%% killed.
-spec random_exit_name(Name :: term(), pid(), pid()) -> pid().
random_exit_name(_Name, Pid1, Pid2) ->
    true = exit(max(Pid1, Pid2), kill),
    min(Pid1, Pid2).

%% @doc The same, but the other is told.
-spec random_notify_name(Name :: term(), pid(), pid()) -> pid().
random_notify_name(Name, Pid1, Pid2) ->
    _ = max(Pid1, Pid2) ! {global_name_conflict, Name},
    min(Pid1, Pid2).

%% @doc For {@link register_name/3}: nobody keeps the name, both are told.
-spec notify_all_name(Name :: term(), pid(), pid()) -> none.
notify_all_name(Name, Pid1, Pid2) ->
    _ = Pid1 ! {global_name_conflict, Name, Pid2},
    _ = Pid2 ! {global_name_conflict, Name, Pid1},
    none.
