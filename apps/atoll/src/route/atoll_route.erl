%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process of the route room on this node.
%%
%% {@link atoll_route_core} decides; this module feeds it with the links, with what the
%% overlay says, and with the groups, which the group room tells; it tells the carrier by
%% whom to ask for routes, and between whom to relay.
%%
%% Links are the carrier's where this node uses it: a connection that goes over other nodes
%% is none, nor is one with a node on Erlang's own distribution. Without it they are all
%% connections of this node, of hidden ones those that {@link atoll_hidden} tells of.
%%
%% Whoever asks for a route asks the process: a search took 11 microseconds with 40 nodes, 80
%% with 1,000 and 4 milliseconds in a deep hierarchy of 10,000, and is needed when a connection
%% is made or its path is lost, not for each message.
-module(atoll_route).

-behaviour(atoll_interpreter).

-export([create_table/0, start_link/1, groups/1, groups_known/0, explain/3, members/2, reachable/0, leave/0, status/0, stopped/0]).
-export([open/1, act/2, event/2, notice/2]).

-export_type([options/0, error/0]).

-type options() :: #{
    directory := atoll_directory:options(),
    relays := atoll_directory_place:relays(),
    tells := atoll_route_core:tells()
}.

-type error() ::
    %% This node was configured to have none, or its process is being started again.
    directory_off
    | not_running
    | restarting
    | atoll_route_core:error().

%% What it is told of the overlay.
-define(EVENTS, [member_down, neighbour_up, neighbour_down, reborn, left]).
-type world() :: [].

%% @doc Makes the table; the caller owns it. It holds whether there is to be a directory, and
%% what the group room has said.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc Starts the process.
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) ->
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_route_core,
        process => ?MODULE,
        %% A circuit that has lost its path asks here, and on a node with more to do than it can
        %% is not to lose it for that.
        priority => high,
        config => Options#{
            self => node(),
            incarnation => erlang:system_time(microsecond),
            seed => rand:uniform(1 bsl 32),
            left => atoll_overlay:has_left()
        }
    }).

%% @doc These are the groups that this node is in.
-spec groups([Name :: atom()]) -> ok.
groups(Groups) ->
    tell({groups, Groups}).

%% @doc The group room has begun: if it has named no groups by now there are none.
-spec groups_known() -> ok.
groups_known() ->
    tell(groups_known).

%% The next life of the process hears it too.
tell(What) ->
    Row =
        case What of
            {groups, _} -> What;
            groups_known -> {groups_known, true}
        end,
    true = ets:insert(?MODULE, Row),
    atoll_interpreter:cast(?MODULE, What).

told_before() ->
    _ = [atoll_interpreter:cast(self(), {groups, Groups}) || {groups, Groups} <- ets:lookup(?MODULE, groups)],
    _ = [atoll_interpreter:cast(self(), groups_known) || _ <- ets:lookup(?MODULE, groups_known)],
    ok.

%% @doc How this node reaches another one, why so, and so many other ways.
-spec explain(node(), Count :: pos_integer(), #{avoid => [node()], salt => term()}) ->
    {ok, atoll_route_core:explanation()} | {error, error()}.
explain(To, Count, Options) ->
    call({explain, To, Count, Options}).

%% @doc The other nodes that stand in a group, as far as the directory knows, those first that
%% are nearest by links and gateways; the salt draws among equally near ones. None of a
%% group that nobody has told of. It goes through the whole directory, which takes some 50 microseconds
%% with 1,000 nodes, and 1 to 4 milliseconds with 20,000.
-spec members(Group :: atom(), Salt :: term()) -> {ok, [node()]} | {error, error()}.
members(Group, Salt) ->
    case call({members, Group, Salt}) of
        {error, _} = Error -> Error;
        Nodes -> {ok, Nodes}
    end.

%% @doc The nodes to which a chain of groups and links leads from here, in the order of
%% their names, whoever may refuse to relay.
-spec reachable() -> {ok, [node()]} | {error, error()}.
reachable() ->
    case call(reachable) of
        {error, _} = Error -> Error;
        Nodes -> {ok, Nodes}
    end.

%% @doc This node is in the directory no more; returns when those that it has links with
%% were told.
-spec leave() -> ok | {error, error()}.
leave() ->
    call(leave).

%% @doc For people: what the directory holds, what was counted, for whom this node
%% relays; `off' without one.
-spec status() -> off | not_running | restarting | #{atom() => term()}.
status() ->
    case call(status) of
        {error, directory_off} -> off;
        {error, Why} -> Why;
        #{} = Summary ->
            try
                Summary#{counters => atoll_interpreter:counters(?MODULE)}
            catch
                exit:{_, {gen_server, call, _}} -> restarting
            end
    end.

%% @doc The application has stopped: the carrier is to ask nobody, and to relay for nobody. The
%% others know that this node has left, so they need not be let through either.
-spec stopped() -> ok.
stopped() ->
    ok = atoll_dist:router(none),
    atoll_dist:relay_policy(none).

%% What the table says of the room outlives its process.
call(Request) ->
    case is_on() of
        true ->
            case atoll_interpreter:ask(?MODULE, Request) of
                {ok, Answer} -> Answer;
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

is_on() ->
    case ets:whereis(?MODULE) of
        undefined ->
            {error, not_running};
        Table ->
            case ets:member(Table, on) of
                true -> true;
                false -> {error, directory_off}
            end
    end.

%% @private
-spec open(atoll_route_core:config()) -> world().
open(_Config) ->
    true = ets:insert(?MODULE, {on}),
    ok = follow_overlay(),
    ok = follow_links(is_carried()),
    ok = atoll_dist:router(?MODULE),
    ok = told_before(),
    [].

%% A neighbour that comes between the two lines is heard of twice, which does no harm.
follow_overlay() ->
    ok = atoll_events:subscribe(?EVENTS),
    _ = [self() ! {atoll, neighbour_up, #{node => Node}} || Node <- atoll_overlay:neighbours()],
    ok.

follow_links(true) ->
    _ = [self() ! {atoll_dist, linked, Node} || Node <- atoll_dist:watch_links()],
    ok;
follow_links(false) ->
    atoll_link:watch().

is_carried() ->
    whereis(atoll_dist_keeper) =/= undefined.

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({act, {relay_policy, Policy}}, World) ->
    ok = atoll_dist:relay_policy(Policy),
    World.

%% @private
-spec event(term(), world()) -> {[atoll_hidden:outside()], world()}.
event({atoll_dist, linked, Node}, World) ->
    {[{up, Node}], World};
event({atoll_dist, unlinked, Node}, World) ->
    {[{down, Node, unlinked}], World};
event({atoll_dist, relay_policy}, World) ->
    {[{cast, relay_policy}], World};
event({atoll, atoll_link, {unreachable, _Node}}, World) ->
    %% Nobody is sought here.
    {[], World};
event({atoll, Kind, #{} = Details}, World) ->
    {of_overlay(Kind, Details), World};
event(Message, World) ->
    {atoll_link:heard(Message), World}.

of_overlay(member_down, #{reason := restarted}) -> [];
of_overlay(member_down, #{node := Node, reason := Why}) -> [{cast, {member_down, Node, Why}}];
of_overlay(reborn, #{incarnation := Life}) -> [{cast, {incarnation, Life}}];
of_overlay(left, #{}) -> [{cast, leave}];
of_overlay(Kind, #{node := Node}) -> [{cast, {Kind, Node}}].

%% @private
-spec notice(atoll_directory:notice(), world()) -> world().
notice(_Notice, World) ->
    World.
