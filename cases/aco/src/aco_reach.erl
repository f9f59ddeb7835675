%% @doc Finds, for the host of a node, the hosts of other nodes, one after another: makes the
%% groups that are needed for it, which may take long, and so does it in a process of its own.
%%
%% A host that has been there is found by its name: in the group that the two nodes
%% share, or in `global'. Where a submaster goes on on a node that was never in a group
%% with its parent's, that node is added to it, and asked what name it has in
%% its own group.
-module(aco_reach).

-export([start_link/2, stop/1]).
-export([init/2]).

-export_type([request/0]).

-type request() :: #{
    %% the process that has asked
    asker := pid(),
    child := aco_tree:child(),
    node := node(),
    how := aco_branch:how(),
    %% that the nodes of the two share
    group := aco_tree:group() | none
}.

%% @doc Starts it, linked to the calling host, which is sent `{reached, Request, Host}', with
%% `none' where one is to be started, or `{not_reached, Request, Why}'. It gets requests as
%% `{reach, Request}'.
-spec start_link(pid(), aco_group:run()) -> pid().
start_link(Host, Run) ->
    spawn_link(?MODULE, init, [Host, Run]).

%% @doc Has it end after what it is doing.
-spec stop(pid()) -> ok.
stop(Reach) ->
    Reach ! stop,
    ok.

%% @private
-spec init(pid(), aco_group:run()) -> ok.
init(Host, Run) ->
    receive
        {reach, Request} ->
            Host ! case find(Request, Run) of
                       {ok, Found} -> {reached, Request, Found};
                       {error, Why} -> {not_reached, Request, Why}
                   end,
            init(Host, Run);
        stop ->
            ok
    end.

%% A mesh: who is not connected yet gets so.
find(#{node := Node} = Request, #{mode := Mode} = Run) when Mode =/= sr ->
    case net_kernel:connect_node(Node) of
        true -> found(Request, aco_group:whereis(Node, none, Run), Run);
        _ -> {error, {unreachable, Node}}
    end;
find(#{node := Node, group := Group, how := How} = Request, Run) ->
    case shared(Node, Group, How, Run) of
        ok -> found(Request, aco_group:whereis(Node, Group, Run), Run);
        Error -> Error
    end.

%% The group, with that node in it.
shared(Node, Group, How, Run) ->
    case aco_group:ensure(Group, Run) of
        ok ->
            case aco_group:has(Node, {Group, Run}) of
                true -> ok;
                false when How =:= build -> {error, {left_out, Node}};
                false -> aco_group:add(Node, Group, Run)
            end;
        Error ->
            Error
    end.

found(_, Host, _) when is_pid(Host) ->
    {ok, Host};
found(#{how := build, node := Node}, undefined, _) ->
    %% Members of a group are connected.
    case lists:member(Node, nodes(connected)) of
        true -> {ok, none};
        false -> {error, {unreachable, Node}}
    end;
found(#{how := moved, node := Node, child := #{branch := #{group := #{} = Home}}}, undefined, Run) ->
    case aco_group:whereis(ask, Node, Home, Run) of
        undefined -> {error, {unreachable, Node}};
        Host -> {ok, Host}
    end;
%% Whoever has that node's name now is not of this run.
found(#{node := Node}, undefined, _) ->
    {error, {unreachable, Node}}.
