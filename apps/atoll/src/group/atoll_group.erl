%% @doc The process of the group room on this node.
%%
%% {@link atoll_group_core} decides; this module connects it with the link room
%% and keeps the table from which readers take what they want to know without
%% asking the process. The table belongs to the supervisor, so that a reader
%% always finds it.
-module(atoll_group).

-behaviour(atoll_interpreter).

-export([start_link/1, create_table/0, new/2, add/2, remove/2, delete/1, info/0, own/0, own/1]).
-export_type([error/0]).
-export([open/1, act/2, event/2]).

-type world() :: Known :: [atoll_group_rules:published()].
%% What the table holds.

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
-spec start_link(atoll_group_core:options()) -> gen_server:start_ret().
start_link(Options) ->
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_group_core,
        process => ?MODULE,
        config => #{
            self => node(),
            incarnation => erlang:system_time(microsecond),
            seed => rand:uniform(1 bsl 32),
            options => Options
        }
    }).

%% @doc Makes a group and waits until it stands. This and the other operations
%% answer within the operation and settle times of the configuration.
-spec new(atom(), [node()]) -> {ok, atom(), [node()]} | {error, error()}.
new(Name, Nodes) ->
    atoll_interpreter:call(?MODULE, {new, Name, Nodes}).

%% @doc Adds nodes to a group of this node.
-spec add(atom(), [node()]) -> {ok, atom(), [node()]} | {error, error()}.
add(Name, Nodes) ->
    atoll_interpreter:call(?MODULE, {add, Name, Nodes}).

%% @doc Removes other nodes from a group of this node.
-spec remove(atom(), [node()]) -> ok | {error, error()}.
remove(Name, Nodes) ->
    atoll_interpreter:call(?MODULE, {remove, Name, Nodes}).

%% @doc Deletes a group of this node.
-spec delete(atom()) -> ok | {error, error()}.
delete(Name) ->
    atoll_interpreter:call(?MODULE, {delete, Name, []}).

%% @doc What the process knows, for people and for `s_group:info/0'.
-spec info() -> [{atom(), term()}].
info() ->
    atoll_interpreter:call(?MODULE, info).

%% @doc This node's groups, sorted by name; none where the application does not run.
-spec own() -> [atoll_group_rules:published()].
own() ->
    case ets:whereis(?MODULE) of
        undefined -> [];
        Table -> lists:sort(ets:tab2list(Table))
    end.

%% @doc This node's group of that name.
-spec own(atom()) -> {ok, atoll_group_rules:published()} | none.
own(Name) ->
    case ets:whereis(?MODULE) of
        undefined ->
            none;
        Table ->
            case ets:lookup(Table, Name) of
                [Group] -> {ok, Group};
                [] -> none
            end
    end.

%% @private
-spec open(atoll_group_core:config()) -> world().
open(_Config) ->
    true = ets:delete_all_objects(?MODULE),
    ok = atoll_link:subscribe(),
    %% Connections are heard of from the runtime itself: only so does the loss of
    %% one come after all that arrived over it, and before what the next brings.
    ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
    %% A node that comes up between the two lines is heard of twice, which does
    %% no harm.
    _ = [self() ! {nodeup, Node, []} || Node <- nodes(connected)],
    [].

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({want, Node}, Known) ->
    ok = atoll_link:want(Node),
    Known;
act({unwant, Node}, Known) ->
    ok = atoll_link:unwant(Node),
    Known;
act({act, {publish, Groups}}, Known) ->
    true = ets:insert(?MODULE, Groups),
    Gone = [Group || {Name, _, _, _} = Group <- Known, not lists:keymember(Name, 1, Groups)],
    lists:foreach(fun({Name, _, _, _}) -> true = ets:delete(?MODULE, Name) end, Gone),
    ok = atoll_overlay:cliques(cliques(Known, Groups)),
    Groups.

%% The overlay knows cliques and not what they are for. One that is gone is empty in
%% the epoch after its last.
cliques(Before, Now) ->
    Ids = [Id || {_, Id, _, _} <- Now],
    [{Id, Epoch + 1, []} || {_, Id, Epoch, _} <- Before, not lists:member(Id, Ids)] ++
        [{Id, Epoch, Nodes} || {_, Id, Epoch, Nodes} <- Now].

%% @private
-spec event(term(), world()) -> {[atoll_protocol:event()], world()}.
event({nodeup, Node, _Info}, Known) ->
    {[{up, Node}], Known};
event({nodedown, Node, Info}, Known) ->
    {[{down, Node, proplists:get_value(nodedown_reason, Info, unknown)}], Known};
event({atoll, atoll_link, {unreachable, Node}}, Known) ->
    {[{cast, {unreachable, Node}}], Known};
event({atoll, atoll_link, _Other}, Known) ->
    {[], Known}.
