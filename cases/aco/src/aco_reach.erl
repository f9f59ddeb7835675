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

%% How long a name may be on its way.
-define(NAMED_MS, 5_000).
-define(AGAIN_MS, 20).

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

find(Request, Run) ->
    case connected(Request, Run) of
        ok -> host(Request, Run, erlang:monotonic_time(millisecond) + ?NAMED_MS);
        Error -> Error
    end.

%% In a mesh who is not connected yet gets so; in groups it is in that one.
connected(#{node := Node}, #{mode := Mode}) when Mode =/= sr ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> {error, {unreachable, Node}}
    end;
connected(#{node := Node, group := Group, how := How}, Run) ->
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

%% A name that this node has not heard of yet may be on its way, as long as the other one is
%% connected: it was started again where it had been, or was never in a group with this one.
host(#{node := Node, how := How, group := Group} = Request, Run, Deadline) ->
    IsThere = lists:member(Node, nodes(connected)),
    IsTime = erlang:monotonic_time(millisecond) < Deadline,
    case aco_group:whereis(Node, Group, Run) of
        Host when is_pid(Host) -> {ok, Host};
        undefined when How =:= build, IsThere -> {ok, none};
        undefined when IsThere, IsTime ->
            case own_name(Request, Run) of
                Host when is_pid(Host) -> {ok, Host};
                undefined -> receive after ?AGAIN_MS -> host(Request, Run, Deadline) end
            end;
        undefined -> {error, {unreachable, Node}}
    end.

%% Where a submaster has a group below it, its node may have been in no other.
own_name(#{node := Node, how := moved, child := #{branch := #{group := #{} = Below}}}, Run) ->
    aco_group:whereis(ask, Node, Below, Run);
own_name(_, _) ->
    undefined.
