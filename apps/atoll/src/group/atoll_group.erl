%% @doc The process of the group room on this node.
%%
%% {@link atoll_group_core} decides; this module connects it with the link room
%% and keeps the table from which readers take what they want to know without
%% asking the process. The table belongs to the supervisor, so that a reader
%% always finds it.
-module(atoll_group).

-behaviour(atoll_interpreter).

-export([start_link/2, create_table/0, new/2, add/2, remove/2, delete/1, sync/1, info/0, own/0, own/1, configured/0]).
-export_type([error/0, boot/0]).
-export([open/1, act/2, event/2, notice/2]).

-type world() :: Known :: [atoll_group_rules:published()].
%% What the table holds.

-type boot() :: #{
    %% The groups of the configuration.
    configured := atoll_group_config:groups(),
    %% Where what is known of groups is kept; {@link atoll_group_keeper} writes there.
    file := none | file:filename_all()
}.

%% A group's row has its name as the key, which is an atom.
-define(CONFIGURED, {configured}).

-type error() ::
    reserved_s_group_name
    | remote_s_group
    | s_group_name_is_in_use
    | node_does_not_belong_to_the_s_group
    | {Why :: string(), Name :: atom()}
    | (Why :: string())
    %% Its turns at the nodes concerned could not be had in time.
    | timeout
    %% This node runs too many operations at once.
    | overloaded.

%% @doc Makes the table; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}, {keypos, 1}]),
    ok.

%% @doc Starts the group process of this node.
-spec start_link(atoll_group_core:options(), boot()) -> gen_server:start_ret().
start_link(Options, #{configured := Configured, file := File}) ->
    Kept =
        case File of
            none -> [];
            _ -> atoll_group_keeper:load(File)
        end,
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
            kept => Kept,
            keeps => File =/= none
        }
    }).

%% @doc Makes a group and waits until it stands. This and the other operations
%% answer within the operation and settle times of the configuration.
-spec new(atom(), [node()]) -> {ok, atom(), [node()]} | {error, error()}.
new(Name, Nodes) ->
    atoll_group_kinds:during(Name, Nodes, fun() -> atoll_interpreter:call(?MODULE, {new, Name, Nodes}) end).

%% @doc Adds nodes to a group of this node.
-spec add(atom(), [node()]) -> {ok, atom(), [node()]} | {error, error()}.
add(Name, Nodes) ->
    atoll_group_kinds:during(Name, Nodes, fun() -> atoll_interpreter:call(?MODULE, {add, Name, Nodes}) end).

%% @doc Removes other nodes from a group of this node.
-spec remove(atom(), [node()]) -> ok | {error, error()}.
remove(Name, Nodes) ->
    atoll_interpreter:call(?MODULE, {remove, Name, Nodes}).

%% @doc Deletes a group of this node.
-spec delete(atom()) -> ok | {error, error()}.
delete(Name) ->
    atoll_interpreter:call(?MODULE, {delete, Name, []}).

%% @doc Takes in the groups of a configuration, compares notes with all fellows, and
%% waits until this node is connected with all that can be reached, at most for the
%% settle time.
-spec sync(atoll_group_config:groups()) -> ok | {error, overloaded}.
sync(Configured) ->
    atoll_interpreter:call(?MODULE, {sync, Configured}).

%% @doc What the process knows, for people and for `s_group:info/0'.
-spec info() -> [{atom(), term()}].
info() ->
    atoll_interpreter:call(?MODULE, info).

%% @doc This node's groups, sorted by name; none where the application does not run.
-spec own() -> [atoll_group_rules:published()].
own() ->
    case ets:whereis(?MODULE) of
        undefined -> [];
        Table -> lists:sort([Group || {_, _, _, _} = Group <- ets:tab2list(Table)])
    end.

%% @doc This node's group of that name.
-spec own(atom()) -> {ok, atoll_group_rules:published()} | none.
own(Name) ->
    case ets:whereis(?MODULE) of
        undefined ->
            none;
        Table ->
            case ets:lookup(Table, Name) of
                [{_, _, _, _} = Group] -> {ok, Group};
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
open(#{configured := Configured}) ->
    true = ets:delete_all_objects(?MODULE),
    true = ets:insert(?MODULE, {?CONFIGURED, Configured}),
    ok = atoll_link:watch(),
    %% Comes after what the protocol begins with.
    self() ! begun,
    [].

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({want, Node}, Known) ->
    ok = atoll_link:want(Node),
    Known;
act({unwant, Node}, Known) ->
    ok = atoll_link:unwant(Node),
    Known;
act({act, {keep, Views}}, Known) ->
    ok = atoll_group_keeper:keep(Views),
    Known;
act({act, {configured, Groups}}, Known) ->
    true = ets:insert(?MODULE, {?CONFIGURED, Groups}),
    Known;
act({act, {publish, Groups}}, Known) ->
    %% Before these are wanted, so that the connections are of the kind that is.
    ok = atoll_group_kinds:groups([{Name, Nodes} || {Name, _, _, Nodes} <- Groups]),
    true = ets:insert(?MODULE, Groups),
    Gone = [Group || {Name, _, _, _} = Group <- Known, not lists:keymember(Name, 1, Groups)],
    lists:foreach(fun({Name, _, _, _}) -> true = ets:delete(?MODULE, Name) end, Gone),
    ok = atoll_overlay:cliques(cliques(Known, Groups)),
    ok = atoll_route:groups([Name || {Name, _, _, _} <- Groups]),
    Groups.

%% The overlay knows cliques and not what they are for. One that is gone is empty in
%% the epoch after its last.
cliques(Before, Now) ->
    Ids = [Id || {_, Id, _, _} <- Now],
    [{Id, Epoch + 1, []} || {_, Id, Epoch, _} <- Before, not lists:member(Id, Ids)] ++
        [{Id, Epoch, Nodes} || {_, Id, Epoch, Nodes} <- Now].

%% @private
-spec notice(atoll_group_rules:notice() | {making, boolean()}, world()) -> world().
notice({making, _}, Known) ->
    Known;
notice({s_group, created, Name, Nodes}, Known) ->
    ok = atoll_events:emit(s_group_created, #{group => Name, nodes => Nodes}),
    Known;
notice({s_group, deleted, Name, Nodes}, Known) ->
    ok = atoll_events:emit(s_group_deleted, #{group => Name, nodes => Nodes}),
    Known;
notice({s_group, nodes_added, Name, Nodes}, Known) ->
    _ = [atoll_events:emit(s_group_node_added, #{group => Name, node => Node}) || Node <- Nodes],
    Known;
notice({s_group, nodes_removed, Name, Nodes}, Known) ->
    _ = [atoll_events:emit(s_group_node_removed, #{group => Name, node => Node}) || Node <- Nodes],
    Known.

%% @private
-spec event(term(), world()) -> {[atoll_hidden:outside()], world()}.
event(begun, Known) ->
    ok = atoll_route:groups_known(),
    {[], Known};
event(Message, Known) ->
    {atoll_link:heard(Message), Known}.
