%% @doc SD Erlang's `s_group' on a stock kernel: nodes in groups, connected with
%% the members of their own groups and with nobody else on the groups' account.
%%
%% The functions and their return values are those of SD Erlang (its mixture of
%% atoms and strings in errors included). {@link format_error/1} says an error
%% in a sentence. Names are not here yet. A node that is in no s_group is a free
%% node.
%%
%% Every node runs the application `atoll', with `-connect_all false'. An
%% operation answers when the members that can be reached have the change and
%% are connected with each other. What is promised under failures stands in
%% {@link atoll_group_core}.
-module(s_group).

-export([new_s_group/1, new_s_group/2, delete_s_group/1, add_nodes/2, remove_nodes/2]).
-export([s_groups/0, own_s_groups/0, own_nodes/0, own_nodes/1, info/0]).
-export([sync/0, monitor_nodes/1, config_scan/1, config_scan/2]).
-export([choose_nodes/1, add_attributes/1, add_attributes/2, remove_attributes/1, remove_attributes/2]).
-export([registered_attributes/0]).
-export([format_error/1]).

-export_type([name/0, error/0]).

-type name() :: atom().

-type error() ::
    atoll_group:error()
    | {bad_name, term()}
    | {bad_nodes, term()}
    | {bad_configuration, atoll_group_config:error()}
    | not_boolean
    | parameter_should_be_a_list
    | both_parameters_should_be_lists.

-type choice() :: {s_group, name()} | {attribute, Attribute :: term()}.

%% How long a silent node can hold up the giving of attributes.
-define(ASK_MS, 3000).

%% @doc Makes a group with a name of its own making.
-spec new_s_group([node()]) -> {ok, name(), [node()]} | {error, error()}.
new_s_group(Nodes) ->
    case new_s_group(random_name(), Nodes) of
        {error, s_group_name_is_in_use} -> new_s_group(Nodes);
        Answer -> Answer
    end.

%% @doc Makes a group. The caller's node must be one of the nodes. Returns the
%% members that the group really has, sorted: a node that cannot be reached, is
%% silent, or is in another group of that name is left out. Without nodes
%% nothing is made.
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
    [{Name, Nodes} || {Name, _Id, _Epoch, Nodes} <- atoll_group:own()].

%% @doc All nodes of this node's groups, itself included, sorted; on a free node
%% itself and the nodes it is connected with.
-spec own_nodes() -> [node()].
own_nodes() ->
    case own_s_groups() of
        [] -> lists:usort([node() | nodes()]);
        Groups -> lists:umerge([Nodes || {_, Nodes} <- Groups])
    end.

%% @doc The nodes of that group of this node; `[]' if it is not in it. The free
%% nodes' group is called `undefined'.
-spec own_nodes(name()) -> [node()].
own_nodes(Name) ->
    case {atoll_group:own(Name), Name} of
        {{ok, {_, _, _, Nodes}}, _} -> Nodes;
        {none, undefined} -> free_nodes(own_s_groups());
        {none, _} -> []
    end.

free_nodes([]) -> own_nodes();
free_nodes(_) -> [].

%% @doc What this node knows of its groups, as a list of properties.
-spec info() -> [{atom(), term()}] | {error, s_group_not_runnig}.
info() ->
    case whereis(atoll_group) of
        undefined ->
            {error, s_group_not_runnig};
        _ ->
            Info = atoll_group:info(),
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
-spec sync() -> ok | {error, error() | s_group_not_runnig}.
sync() ->
    case {whereis(atoll_group), atoll_group_config:new(application:get_env(atoll, s_groups, []))} of
        {undefined, _} -> {error, s_group_not_runnig};
        {_, {ok, Groups}} -> atoll_group:sync(Groups);
        {_, {error, Error}} -> {error, {bad_configuration, Error}}
    end.

%% @doc From now on the caller gets `{nodeup, Node}' and `{nodedown, Node}' of the nodes
%% of this node's groups, on a free node of all visible ones, once for each call with
%% `true'; `false' takes all of them back. What the events mean is said in
%% {@link atoll_group_watch}. The caller is not linked with anything.
-spec monitor_nodes(boolean()) -> ok | {error, error() | s_group_not_runnig}.
monitor_nodes(Flag) ->
    case {is_boolean(Flag), whereis(atoll_group_watch)} of
        {false, _} -> {error, not_boolean};
        {true, undefined} -> {error, s_group_not_runnig};
        {true, _} when Flag -> atoll_group_watch:watch();
        {true, _} -> atoll_group_watch:unwatch()
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
        {ok, {_, _, _, Nodes}} -> Nodes;
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

%% @doc One sentence for the reason in an `{error, Reason}' of this module.
-spec format_error(error() | s_group_not_runnig) -> unicode:chardata().
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
    "other operations on the group did not end in time; nothing was changed";
format_error(overloaded) ->
    "too many group operations run on this node at once";
format_error(s_group_not_runnig) ->
    "the application atoll is not started on this node";
format_error({bad_configuration, Error}) ->
    ["the option s_groups: ", atoll_group_config:format_error(Error)];
format_error(not_boolean) ->
    "nodes are monitored with true or false";
format_error(parameter_should_be_a_list) ->
    "the argument must be a list";
format_error(both_parameters_should_be_lists) ->
    "both arguments must be lists";
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
