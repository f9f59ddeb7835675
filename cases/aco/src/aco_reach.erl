%% @doc Finds, for the host of a node, the hosts of other nodes, and makes the groups that are
%% needed for it. Both may take long, and so have processes of their own: one that makes the
%% groups, one after another, and one for each node that is to be found, so that a node which is
%% silent or dead holds up nobody who asks for another.
%%
%% A host that has been there is found by its name: in the group that the two nodes
%% share, or in `global'. Where a submaster goes on on a node that was never in a group
%% with its parent's, that node is added to it, and asked what name it has in
%% its own group.
-module(aco_reach).

-export([start_link/2, stop/1]).
-export([init/2, find_all/2]).

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
    loop({Host, Run}, #{}).

loop({Host, Run} = For, Finders) ->
    receive
        {reach, #{node := Node} = Request} ->
            case grouped(Request, Run) of
                ok ->
                    #{Node := Finder} = Known = with_finder(Node, For, Finders),
                    Finder ! {find, Request},
                    loop(For, Known);
                {error, Why} ->
                    Host ! {not_reached, Request, Why},
                    loop(For, Finders)
            end;
        stop ->
            Ends = [{monitor(process, Finder), Finder ! stop} || Finder <- maps:values(Finders)],
            lists:foreach(fun({Ref, _}) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Ends)
    end.

with_finder(Node, _, Finders) when is_map_key(Node, Finders) -> Finders;
with_finder(Node, {Host, Run}, Finders) -> Finders#{Node => spawn_link(?MODULE, find_all, [Host, Run])}.

%% @private
-spec find_all(pid(), aco_group:run()) -> ok.
find_all(Host, Run) ->
    receive
        {find, #{asker := Asker} = Request} ->
            %% One that was lost meanwhile needs no answer; whoever is there in its place asks too.
            _ = is_process_alive(Asker) andalso (Host ! find(Request, Run)),
            find_all(Host, Run);
        stop ->
            ok
    end.

grouped(#{group := Group}, #{mode := sr} = Run) -> aco_group:ensure(Group, Run);
grouped(_, _) -> ok.

find(Request, Run) ->
    Found = case connected(Request, Run) of
                ok -> host(Request, Run, erlang:monotonic_time(millisecond) + ?NAMED_MS);
                Error -> Error
            end,
    case Found of
        {ok, Host} -> {reached, Request, Host};
        {error, Why} -> {not_reached, Request, Why}
    end.

%% In a mesh who is not connected yet gets so; in groups it is in that one.
connected(#{node := Node}, #{mode := Mode}) when Mode =/= sr ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> {error, {unreachable, Node}}
    end;
connected(#{node := Node, group := Group, how := How}, Run) ->
    case aco_group:has(Node, {Group, Run}) of
        true -> ok;
        false when How =:= build -> {error, {left_out, Node}};
        false -> aco_group:add(Node, Group, Run)
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
