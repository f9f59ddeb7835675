%% SPDX-License-Identifier: Apache-2.0
%% @doc SD Erlang's `s_group' on a stock kernel: nodes in groups, connected with
%% the members of their own groups and with nobody else on the groups' account.
%%
%% The functions and their return values are those of SD Erlang (its mixture of
%% atoms and strings in errors included). {@link format_error/1} says an error
%% in a sentence. A node that is in no s_group is a free node; the group of the free
%% nodes is called `undefined'.
%%
%% A name stands for a process in one group. Reading one of this node's own groups asks nobody
%% ({@link atoll_name}), of another group a member is asked (`atoll_name_remote'); what is promised of
%% registering stands in `atoll_name_core'.
%%
%% Where the application does not run, what can say so answers `{error, s_group_not_runnig}' or
%% `{no, s_group_not_runnig}', and `restarting' in place of that while a process that is needed
%% is being started anew. The other reads answer as on a free node that nobody knows: `undefined',
%% `[]', itself.
%%
%% Every node runs the application `atoll', with `-connect_all false'. An
%% operation answers when the members that can be reached have the change and
%% are connected with each other. What is promised under failures stands in
%% `atoll_group_core'.
-module(s_group).

-export([start/0, start_link/0, stop/0]).
-export([new_s_group/1, new_s_group/2, delete_s_group/1, add_nodes/2, remove_nodes/2]).
-export([s_groups/0, own_s_groups/0, own_nodes/0, own_nodes/1, info/0]).
-export([sync/0, monitor_nodes/1, config_scan/1, config_scan/2]).
-export([choose_nodes/1, add_attributes/1, add_attributes/2, remove_attributes/1, remove_attributes/2]).
-export([registered_attributes/0]).
-export([register_name/3, register_name_external/3, re_register_name/3]).
-export([unregister_name/2, unregister_name_external/2]).
-export([whereis_name/2, whereis_name/3, send/3, send/4, registered_names/1]).
-export([format_error/1]).

-export_type([name/0, error/0]).

-type name() :: atom().

-type error() ::
    atoll_group:error()
    | has_its_own_supervisor
    | {already_started, pid()}
    | {not_started, term()}
    | {bad_name, term()}
    | {bad_nodes, term()}
    | {bad_configuration, atoll_group_config:error()}
    | not_boolean
    | parameter_should_be_a_list
    | both_parameters_should_be_lists.

-type choice() :: {s_group, name()} | {attribute, Attribute :: term()}.

%% How long a silent node can hold up the giving of attributes.
-define(ASK_MS, 3000).

%% @doc Starts the application `atoll', and answers with its supervisor.
-spec start() -> {ok, pid()} | {error, error()}.
start() ->
    case whereis(atoll_sup) of
        undefined ->
            case application:ensure_all_started(atoll) of
                {ok, _} -> {ok, whereis(atoll_sup)};
                {error, {_, {Reason, {atoll_app, start, _}}}} -> {error, {not_started, Reason}};
                {error, Reason} -> {error, {not_started, Reason}}
            end;
        Supervisor ->
            {error, {already_started, Supervisor}}
    end.

%% @doc Starts nothing: the original's server was a child of kernel's supervisor, and what is there
%% in its place has a supervisor of its own, which cannot be linked with another one's child.
%% An application that needs it names `atoll' under `applications'.
-spec start_link() -> {error, has_its_own_supervisor}.
start_link() ->
    {error, has_its_own_supervisor}.

%% @doc Stops the application `atoll': this node leaves in order, its names are gone. Its groups
%% have it still, and it is back in them as {@link sync/0} says when it is started again.
-spec stop() -> stopped | {error, s_group_not_runnig}.
stop() ->
    case application:stop(atoll) of
        ok -> stopped;
        {error, {not_started, atoll}} -> {error, s_group_not_runnig}
    end.

%% @doc Makes a group with a name of its own making.
-spec new_s_group([node()]) -> {ok, name(), [node()]} | {error, error()}.
new_s_group(Nodes) ->
    case new_s_group(random_name(), Nodes) of
        {error, s_group_name_is_in_use} -> new_s_group(Nodes);
        Answer -> Answer
    end.

%% @doc Makes a group. The caller's node must be one of the nodes. Returns the
%% members that the group really has, sorted: a node that cannot be reached, is
%% silent, or is in another group of that name is left out. So is one that has refused
%% a connection, most often for its cookie, until it is tried again: within half a minute,
%% or as soon as there is a connection. Without nodes nothing is made.
-spec new_s_group(name(), [node()]) -> {ok, name(), [node()]} | {error, error()}.
new_s_group(Name, Nodes) ->
    case check(Name, Nodes) of
        ok -> atoll_group:new(Name, Nodes);
        Error -> Error
    end.

%% @doc Deletes a group that this node is in.
-spec delete_s_group(name()) -> ok | {error, error()}.
delete_s_group(Name) ->
    case check(Name, []) of
        ok -> atoll_group:delete(Name);
        Error -> Error
    end.

%% @doc Adds nodes to a group that this node is in. Returns those that really
%% were added; if all are members already, those that were asked for.
-spec add_nodes(name(), [node()]) -> {ok, name(), [node()]} | {error, error()}.
add_nodes(Name, Nodes) ->
    case check(Name, Nodes) of
        ok -> atoll_group:add(Name, Nodes);
        Error -> Error
    end.

%% @doc Removes other nodes from a group that this node is in; also `ok' if they
%% are not in it.
-spec remove_nodes(name(), [node()]) -> ok | {error, error()}.
remove_nodes(Name, Nodes) ->
    case check(Name, Nodes) of
        ok -> atoll_group:remove(Name, Nodes);
        Error -> Error
    end.

%% @doc The names of this node's groups, and of others it knows; `undefined' on a
%% free node. Groups get known to nodes outside by configuration only.
-spec s_groups() -> {Own :: [name()], Others :: [name()]} | undefined.
s_groups() ->
    case own_s_groups() of
        [] -> undefined;
        Groups -> {[Name || {Name, _} <- Groups], [Name || {Name, _} <- others(Groups)]}
    end.

%% Of a free node there are none: it has nothing to do with groups.
others([]) ->
    [];
others(Own) ->
    [Group || {Name, _} = Group <- atoll_group:configured(), not lists:keymember(Name, 1, Own)].

%% @doc This node's groups with their nodes, sorted; `[]' on a free node.
-spec own_s_groups() -> [{name(), [node()]}].
own_s_groups() ->
    [{Name, Nodes} || {Name, _Id, Nodes} <- atoll_group:own()].

%% @doc All nodes of this node's groups, itself included, sorted; on a free node
%% itself and those with which it shares the names of the free nodes.
-spec own_nodes() -> [node()].
own_nodes() ->
    case own_s_groups() of
        [] -> atoll_name:free_nodes();
        Groups -> lists:umerge([Nodes || {_, Nodes} <- Groups])
    end.

%% @doc The nodes of that group of this node; `[]' if it is not in it. The free
%% nodes' group is called `undefined'.
-spec own_nodes(name()) -> [node()].
own_nodes(Name) ->
    case {atoll_group:own(Name), Name} of
        {{ok, {_, _, Nodes}}, _} -> Nodes;
        {none, undefined} -> free_nodes(own_s_groups());
        {none, _} -> []
    end.

free_nodes([]) -> own_nodes();
free_nodes(_) -> [].

%% @doc What this node knows of its groups, as a list of properties.
-spec info() -> [{atom(), term()}] | {error, error()}.
info() ->
    case atoll_group:info() of
        {error, _} = Error ->
            Error;
        Info ->
            Own = proplists:get_value(own_s_groups, Info),
            Known = #{
                other_groups => others(Own),
                monitoring => atoll_group_watch:watchers(),
                attributes => atoll_group_attributes:own()
            },
            [{Key, maps:get(Key, Known, Value)} || {Key, Value} <- Info]
    end.

%% @doc Reads the groups of the configuration again (the key `s_groups' of the
%% application), joins those that this node is in, compares notes with all members of
%% its groups, and returns when it is connected with those that can be reached. A
%% configuration only adds: who is no more in it is taken out by {@link remove_nodes/2}.
-spec sync() -> ok | {error, error()}.
sync() ->
    case atoll_group_config:new(application:get_env(atoll, s_groups, [])) of
        {ok, Groups} -> atoll_group:sync(Groups);
        {error, Error} -> {error, {bad_configuration, Error}}
    end.

%% @doc From now on the caller gets `{nodeup, Node}' and `{nodedown, Node}' of the nodes
%% of this node's groups, on a free node of all visible ones, once for each call with
%% `true'; `false' takes all of them back. What the events mean is said in
%% `atoll_group_watch'. The caller is not linked with anything.
-spec monitor_nodes(boolean()) -> ok | {error, error()}.
monitor_nodes(true) -> watching(fun atoll_group_watch:watch/0);
monitor_nodes(false) -> watching(fun atoll_group_watch:unwatch/0);
monitor_nodes(_) -> {error, not_boolean}.

watching(Fun) ->
    case atoll_interpreter:asking(atoll_group_watch, Fun) of
        {ok, Answer} -> Answer;
        {error, not_running} -> {error, s_group_not_runnig};
        {error, restarting} = Error -> Error
    end.

%% @doc What a configuration would mean on this node: its own groups, and the others.
-spec config_scan(term()) ->
    {ok, [{name(), normal, [node()]}], [{name(), [node()]}]} | {error, error()}.
config_scan(Configuration) ->
    case atoll_group_config:new(Configuration) of
        {ok, Groups} ->
            Own = atoll_group_config:of_node(node(), Groups),
            {ok, [{Name, normal, Nodes} || {Name, Nodes} <- Own], Groups -- Own};
        {error, Error} ->
            {error, {bad_configuration, Error}}
    end.

%% @doc The same: groups are of no other type than `normal'.
-spec config_scan(term(), publish_type) ->
    {ok, [{name(), normal, [node()]}], [{name(), [node()]}]} | {error, error()}.
config_scan(Configuration, publish_type) ->
    config_scan(Configuration).

%% @doc The other nodes that all of these are true of: to be in that group of this
%% node, to be connected and have that attribute. Sorted; none without a condition, and
%% none with a condition that nobody knows.
-spec choose_nodes([choice()]) -> [node()] | {error, parameter_should_be_a_list}.
choose_nodes([]) ->
    [];
choose_nodes(Choices) when length(Choices) > 0 ->
    case [Attribute || {attribute, Attribute} <- Choices] of
        [] -> common([chosen(Choice) || Choice <- Choices]);
        All -> common([atoll_group_attributes:with_all(All) | [chosen(C) || C <- Choices, not is_attribute(C)]])
    end;
choose_nodes(_) ->
    {error, parameter_should_be_a_list}.

is_attribute({attribute, _}) -> true;
is_attribute(_) -> false.

chosen({s_group, Name}) -> lists:delete(node(), group_nodes(Name));
chosen(_) -> [].

group_nodes(Name) ->
    case atoll_group:own(Name) of
        {ok, {_, _, Nodes}} -> Nodes;
        none -> []
    end.

common([First | Others]) ->
    lists:foldl(fun(Nodes, Left) -> [Node || Node <- Left, lists:member(Node, Nodes)] end, First, Others).

%% @doc This node has these attributes too.
-spec add_attributes([term()]) -> ok | {error, parameter_should_be_a_list | s_group_not_runnig}.
add_attributes(Attributes) when length(Attributes) >= 0 ->
    with_attributes(fun() -> atoll_group_attributes:add(Attributes) end);
add_attributes(_) ->
    {error, parameter_should_be_a_list}.

%% @doc These nodes have these attributes too. Returns those that took them, sorted.
-spec add_attributes([node()], [term()]) -> [node()] | {error, both_parameters_should_be_lists}.
add_attributes(Nodes, Attributes) when length(Nodes) >= 0, length(Attributes) >= 0 ->
    on_all(Nodes, add_attributes, Attributes);
add_attributes(_, _) ->
    {error, both_parameters_should_be_lists}.

%% @doc This node has these attributes no more.
-spec remove_attributes([term()]) -> ok | {error, parameter_should_be_a_list | s_group_not_runnig}.
remove_attributes(Attributes) when length(Attributes) >= 0 ->
    with_attributes(fun() -> atoll_group_attributes:remove(Attributes) end);
remove_attributes(_) ->
    {error, parameter_should_be_a_list}.

%% @doc These nodes have these attributes no more. Returns those that said so, sorted.
-spec remove_attributes([node()], [term()]) -> [node()] | {error, both_parameters_should_be_lists}.
remove_attributes(Nodes, Attributes) when length(Nodes) >= 0, length(Attributes) >= 0 ->
    on_all(Nodes, remove_attributes, Attributes);
remove_attributes(_, _) ->
    {error, both_parameters_should_be_lists}.

with_attributes(Fun) ->
    case ets:whereis(atoll_group_attributes) of
        undefined -> {error, s_group_not_runnig};
        _ -> Fun()
    end.

on_all(Given, Function, Attributes) ->
    Nodes = lists:usort(Given),
    Answers = erpc:multicall(Nodes, ?MODULE, Function, [Attributes], ?ASK_MS),
    [Node || {Node, {ok, ok}} <- lists:zip(Nodes, Answers)].

%% @doc The attributes of this node, sorted.
-spec registered_attributes() -> [term()].
registered_attributes() ->
    atoll_group_attributes:own().

%% @doc Gives the process that name in a group of this node. After `yes' every live
%% member has it. The process is alive, on a member, and has no other name in the group.
%% No node is in a group whose name is no atom, and what is no pid makes the caller exit, as in `global'.
-spec register_name(name(), Name :: term(), pid()) -> yes | {no, atoll_name:reason()}.
register_name(Group, _Name, Pid) when not is_atom(Group), is_pid(Pid) ->
    {no, cannot_register_in_remote_group};
register_name(Group, Name, Pid) when is_pid(Pid) ->
    atoll_name:register(Group, Name, Pid).

%% @doc The same for a process outside of Erlang, in a C node for example: the name goes
%% when this node loses the connection with its node. What has an owner of its own, a
%% process on a member, is registered as by {@link register_name/3}.
-spec register_name_external(name(), Name :: term(), pid()) -> yes | {no, atoll_name:reason() | the_name_is_already_used}.
register_name_external(Group, _Name, Pid) when not is_atom(Group), is_pid(Pid) ->
    {no, cannot_register_in_remote_group};
register_name_external(Group, Name, Pid) when is_pid(Pid) ->
    case atoll_name:register_external(Group, Name, Pid) of
        {no, name_or_pid_already_registered} -> {no, the_name_is_already_used};
        Answer -> Answer
    end.

%% @doc As {@link register_name/3}, whoever has the name now, without a moment at which
%% nobody has it.
-spec re_register_name(name(), Name :: term(), pid()) -> yes | {no, atoll_name:reason()}.
re_register_name(Group, _Name, Pid) when not is_atom(Group), is_pid(Pid) ->
    {no, cannot_re_register_in_remote_group};
re_register_name(Group, Name, Pid) when is_pid(Pid) ->
    atoll_name:re_register(Group, Name, Pid).

%% @doc Nobody has the name any more, on any live member; also `ok' if nobody had.
-spec unregister_name(name(), Name :: term()) -> ok | {no, atoll_name:reason()}.
unregister_name(Group, _Name) when not is_atom(Group) ->
    {no, cannot_unregister_from_remote_group};
unregister_name(Group, Name) ->
    atoll_name:unregister(Group, Name).

%% @doc The same.
-spec unregister_name_external(name(), Name :: term()) -> ok | {no, atoll_name:reason()}.
unregister_name_external(Group, Name) ->
    unregister_name(Group, Name).

%% @doc The process of that name: in a group of this node, or in any other, of which a member
%% is asked, for 3 seconds at most. `undefined' also if nobody can be asked;
%% {@link atoll_name:find/2} says which it is.
-spec whereis_name(name(), Name :: term()) -> pid() | undefined.
whereis_name(Group, Name) ->
    atoll_name:whereis_name({Group, Name}).

%% @doc The process of that name as that node has it, with which this one gets connected;
%% `undefined' also if it is silent or down.
-spec whereis_name(node(), name(), Name :: term()) -> pid() | undefined.
whereis_name(Node, Group, Name) ->
    ask(Node, whereis, [Group, Name], undefined).

%% @doc Sends a message to the process of that name, found as by {@link whereis_name/2}.
-spec send(name(), Name :: term(), Message) -> pid() | {badarg, {name(), Name :: term(), Message}}.
send(Group, Name, Message) ->
    case atoll_name:find(Group, Name) of
        {ok, Pid} ->
            Pid ! Message,
            Pid;
        {error, _} ->
            {badarg, {Group, Name, Message}}
    end.

%% @doc Has that node send a message to the process of that name. Where it does not
%% answer, the message may have been sent.
-spec send(node(), name(), Name :: term(), Message) -> pid() | {badarg, {name(), Name :: term(), Message}}.
send(Node, Group, Name, Message) ->
    case ask(Node, deliver, [Group, Name, Message], undefined) of
        undefined -> {badarg, {Group, Name, Message}};
        Pid -> Pid
    end.

%% @doc The names of a group, or those that a node has of all its groups. On a free node
%% those of the group `undefined' come bare. Of a group that this node is not in a member is
%% asked as by {@link whereis_name/2}; where there are members and none answers the list is
%% empty, as is that of a node that does not answer.
-spec registered_names({s_group, name()} | {node, node()}) ->
    [{name(), Name :: term()}]
    | [Name :: term()]
    | {error, no_information_about_remote_group | restarting | s_group_not_runnig}.
registered_names({s_group, Group}) ->
    case atoll_name:names_of(Group) of
        {ok, Names} when Group =:= undefined -> Names;
        {ok, Names} -> [{Group, Name} || Name <- Names];
        {error, no_answer} -> [];
        {error, _} = Error -> Error
    end;
registered_names({node, Node}) ->
    ask(Node, names, [], []).

ask(Node, Function, Args, None) ->
    case atoll_name_remote:call(Node, Function, Args) of
        {ok, Answer} -> Answer;
        none -> None
    end.

%% @doc One sentence for the reason in an `{error, Reason}' or `{no, Reason}' of this module.
-spec format_error(error() | atoll_name:reason() | atoll_name:error() | the_name_is_already_used) -> unicode:chardata().
format_error(reserved_s_group_name) ->
    "the name undefined stands for the free nodes and cannot be given to a group";
format_error(remote_s_group) ->
    "a group can only be made by one of its own nodes";
format_error(s_group_name_is_in_use) ->
    "this node is already in a group of that name";
format_error(node_does_not_belong_to_the_s_group) ->
    "this node is not in the group";
format_error({"node_does_not_belong_to_s_group", Name}) ->
    io_lib:format("this node is not in the group ~tw", [Name]);
format_error({"remote_s_group", Name}) ->
    io_lib:format("this node is not in a group called ~tw", [Name]);
format_error("cannot_remove_itself") ->
    "a node cannot remove itself from a group";
format_error(timeout) ->
    "other operations on the group or the name did not end in time; nothing was changed";
format_error({no_majority, Nodes}) ->
    io_lib:format("too few members answer to remove ~tp, which do not", [Nodes]);
format_error(overloaded) ->
    "too many operations on groups or names run on this node at once";
format_error(s_group_not_runnig) ->
    "the application atoll is not started on this node";
format_error(restarting) ->
    "a part of atoll on this node is being started again; whether the call had an effect is not known";
format_error({already_started, _}) ->
    "the application atoll is started already";
format_error({not_started, Reason}) ->
    io_lib:format("the application atoll could not be started; the log says why: ~0tp", [Reason]);
format_error(has_its_own_supervisor) ->
    "groups run in the application atoll, under its supervisor: start the application, or call s_group:start()";
format_error(no_information_about_remote_group) ->
    "this node is not in the group, and knows of no other node that is";
format_error(no_answer) ->
    io_lib:format("this node is not in the group, and of those that are none has answered for ~b ms", [
        atoll_name_remote:deadline_ms()
    ]);
format_error(no_such_name) ->
    "nobody has that name in the group";
format_error({bad_configuration, Error}) ->
    ["the option s_groups: ", atoll_group_config:format_error(Error)];
format_error(not_boolean) ->
    "nodes are monitored with true or false";
format_error(parameter_should_be_a_list) ->
    "the argument must be a list";
format_error(both_parameters_should_be_lists) ->
    "both arguments must be lists";
format_error(Reason) when
    Reason =:= cannot_register_in_remote_group;
    Reason =:= cannot_re_register_in_remote_group;
    Reason =:= cannot_unregister_from_remote_group
->
    "this node is not in the group";
format_error(name_or_pid_already_registered) ->
    "another process of the group has the name, or the process has a name in the group";
format_error(the_name_is_already_used) ->
    format_error(name_or_pid_already_registered);
format_error(pid_is_already_registered) ->
    "the process has a name in the group";
format_error(pid_is_not_on_a_member) ->
    "the process is not on a member of the group that is connected";
format_error(no_process) ->
    "the process is dead";
format_error(connection_lost) ->
    "the connection with the process's node was lost; whether it has the name is not known";
format_error(too_many_names) ->
    "the group has as many names as max_names allows";
format_error(name_too_large) ->
    "the name with its metadata is larger than max_name_size allows";
format_error({bad_name, Name}) ->
    io_lib:format("a group's name is an atom, not ~tp", [Name]);
format_error({bad_nodes, Nodes}) ->
    io_lib:format("nodes are given as a list of atoms, not ~tp", [Nodes]).

check(Name, _Nodes) when not is_atom(Name) ->
    {error, {bad_name, Name}};
check(_Name, Nodes) ->
    case are_nodes(Nodes) of
        true -> ok;
        false -> {error, {bad_nodes, Nodes}}
    end.

are_nodes([]) -> true;
are_nodes([Node | Nodes]) when is_atom(Node) -> are_nodes(Nodes);
are_nodes(_) -> false.

%% Atoms are never freed: a name for each group, and groups are few.
random_name() ->
    binary_to_atom(binary:encode_hex(crypto:strong_rand_bytes(15)), utf8).
