%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process of the group room on this node.
%%
%% {@link atoll_group_core} decides; this module connects it with the link room
%% and keeps the table from which readers take what they want to know without
%% asking the process. The table belongs to the supervisor, so that a reader
%% always finds it. All that the protocol knows of groups is in it too: after a crash the
%% process goes on with that, and to everybody else its groups were there all the time.
-module(atoll_group).

-behaviour(atoll_interpreter).

-export([start_link/2, create_table/0, new/2, add/2, remove/2, delete/1, sync/1, info/0, own/0, own/1, configured/0]).
-export_type([error/0, boot/0]).
-export([open/1, act/2, event/2, notice/2]).

-type world() :: HasFile :: boolean().

-type boot() :: #{
    %% The groups of the configuration.
    configured := atoll_group_config:groups(),
    %% Where what is known of groups is kept; {@link atoll_group_keeper} writes there.
    file := none | file:filename_all()
}.

%% A group's row has its name as the key, which is an atom.
-define(CONFIGURED, {configured}).
-define(VIEWS, {views}).

-type error() ::
    reserved_s_group_name
    | remote_s_group
    | s_group_name_is_in_use
    | node_does_not_belong_to_the_s_group
    | {Why :: string(), Name :: atom()}
    | (Why :: string())
    %% Its locks at the nodes concerned could not be had in time.
    | timeout
    %% This node runs too many operations at once.
    | overloaded
    %% These do not answer, and too few members do to remove them.
    | {no_majority, [node()]}
    %% The application does not run here (SD Erlang's word); or the process of the groups is
    %% being started anew.
    | s_group_not_runnig
    | restarting.

%% @doc Makes the table; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}, {keypos, 1}]),
    ok.

%% @doc Starts the group process of this node.
-spec start_link(atoll_group_core:options(), boot()) -> gen_server:start_ret().
start_link(Options, #{configured := Configured, file := File}) ->
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_group_core,
        process => ?MODULE,
        config => #{
            self => node(),
            incarnation => erlang:system_time(microsecond),
            seed => rand:uniform(1 bsl 32),
            options => Options,
            configured => Configured,
            kept => kept(File),
            published => own(),
            has_file => File =/= none
        }
    }).

%% An earlier life of the process knew more than the file.
kept(File) ->
    case {ets:lookup(?MODULE, ?VIEWS), File} of
        {[{_, Views}], _} -> Views;
        {[], none} -> [];
        {[], _} -> atoll_group_keeper:load(File)
    end.

%% @doc Makes a group and waits until it stands. This and the other operations
%% answer within the operation and settle times of the configuration.
-spec new(atom(), [node()]) -> {ok, atom(), [node()]} | {error, error()}.
new(Name, Nodes) ->
    atoll_group_kinds:during(Name, Nodes, fun() -> ask({new, Name, Nodes}) end).

%% @doc Adds nodes to a group of this node.
-spec add(atom(), [node()]) -> {ok, atom(), [node()]} | {error, error()}.
add(Name, Nodes) ->
    atoll_group_kinds:during(Name, Nodes, fun() -> ask({add, Name, Nodes}) end).

%% @doc Removes other nodes from a group of this node.
-spec remove(atom(), [node()]) -> ok | {error, error()}.
remove(Name, Nodes) ->
    ask({remove, Name, Nodes}).

%% @doc Deletes a group of this node.
-spec delete(atom()) -> ok | {error, error()}.
delete(Name) ->
    ask({delete, Name, []}).

%% @doc Takes in the groups of a configuration, compares notes with all co-members, and
%% waits until this node is connected with all that can be reached, at most for the
%% settle time.
-spec sync(atoll_group_config:groups()) -> ok | {error, error()}.
sync(Configured) ->
    ask({sync, Configured}).

%% @doc What the process knows, for people and for `s_group:info/0'.
-spec info() -> [{atom(), term()}] | {error, error()}.
info() ->
    ask(info).

ask(Request) ->
    case atoll_interpreter:ask(?MODULE, Request) of
        {ok, Answer} -> Answer;
        {error, restarting} -> {error, restarting};
        {error, not_running} -> {error, s_group_not_runnig}
    end.

%% @doc This node's groups, sorted by name; none where the application does not run.
-spec own() -> [atoll_group_rules:published()].
own() ->
    case ets:whereis(?MODULE) of
        undefined -> [];
        Table -> lists:sort([Group || {_, _, _} = Group <- ets:tab2list(Table)])
    end.

%% @doc This node's group of that name.
-spec own(atom()) -> {ok, atoll_group_rules:published()} | none.
own(Name) ->
    case ets:whereis(?MODULE) of
        undefined ->
            none;
        Table ->
            case ets:lookup(Table, Name) of
                [{_, _, _} = Group] -> {ok, Group};
                _ -> none
            end
    end.

%% @doc The groups of the configuration that was read last, those without this node too.
-spec configured() -> atoll_group_config:groups().
configured() ->
    case ets:whereis(?MODULE) of
        undefined ->
            [];
        Table ->
            case ets:lookup(Table, ?CONFIGURED) of
                [{_, Groups}] -> Groups;
                [] -> []
            end
    end.

%% @private
-spec open(atoll_group_core:config()) -> world().
open(#{configured := Configured, has_file := HasFile}) ->
    %% What was read later stands.
    _ = ets:insert_new(?MODULE, {?CONFIGURED, Configured}),
    ok = atoll_link:watch(),
    ok = tell_below(own()),
    %% Comes after what the protocol begins with.
    self() ! begun,
    HasFile.

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({want, Node}, World) ->
    ok = atoll_link:want(Node),
    World;
act({unwant, Node}, World) ->
    ok = atoll_link:unwant(Node),
    World;
act({act, {keep, Views}}, HasFile) ->
    true = ets:insert(?MODULE, {?VIEWS, Views}),
    _ = [ok = atoll_group_keeper:keep(Views) || HasFile],
    HasFile;
act({act, {configured, Groups}}, World) ->
    true = ets:insert(?MODULE, {?CONFIGURED, Groups}),
    World;
act({act, {publish, Groups}}, World) ->
    Gone = [Name || {Name, _, _} <- own(), not lists:keymember(Name, 1, Groups)],
    %% Before these are wanted, so that the connections are of the kind that is.
    ok = atoll_group_kinds:groups([{Name, Nodes} || {Name, _, Nodes} <- Groups]),
    true = ets:insert(?MODULE, Groups),
    lists:foreach(fun(Name) -> true = ets:delete(?MODULE, Name) end, Gone),
    ok = tell_below(Groups),
    World.

%% All of it at once: who is told need not remember, and may have been started anew. The overlay
%% knows cliques and not what they are for.
tell_below(Groups) ->
    ok = atoll_overlay:cliques([{Id, Nodes} || {_, Id, Nodes} <- Groups]),
    atoll_route:groups([Name || {Name, _, _} <- Groups]).

%% @private
-spec notice(atoll_group_rules:notice() | {making, boolean()}, world()) -> world().
notice({making, _}, World) ->
    World;
notice({s_group, created, Name, Nodes}, World) ->
    ok = atoll_events:emit(s_group_created, #{group => Name, nodes => Nodes}, #{nodes => length(Nodes)}),
    World;
notice({s_group, deleted, Name, Nodes}, World) ->
    ok = atoll_events:emit(s_group_deleted, #{group => Name, nodes => Nodes}, #{nodes => length(Nodes)}),
    World;
notice({s_group, nodes_added, Name, Nodes}, World) ->
    _ = [atoll_events:emit(s_group_node_added, #{group => Name, node => Node}) || Node <- Nodes],
    World;
notice({s_group, nodes_removed, Name, Nodes}, World) ->
    _ = [atoll_events:emit(s_group_node_removed, #{group => Name, node => Node}) || Node <- Nodes],
    World.

%% @private
-spec event(term(), world()) -> {[atoll_hidden:outside()], world()}.
event(begun, World) ->
    ok = atoll_route:groups_known(),
    {[], World};
event(Message, World) ->
    {atoll_link:heard(Message), World}.
