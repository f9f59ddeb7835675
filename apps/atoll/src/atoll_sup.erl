%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The supervisors of this node's rooms.
%%
%% Whatever a room must not lose is in tables of the top supervisor, which outlive the rooms: what
%% readers and subscribers rely on, the groups and names of this node, and what an upper room
%% has told a lower one. So a room that is started anew goes on with what it was told, and takes
%% no other with it but those that need its very process:
%% <dl>
%% <dt>`atoll_sup'</dt><dd>the events, and all the rest;</dd>
%% <dt>`atoll_link_sup'</dt><dd>the links, whose process knows which processes want what; with it all rooms
%%   above begin anew, and want it again;</dd>
%% <dt>`atoll_rooms_sup'</dt><dd>the rooms above, each by itself;</dd>
%% <dt>`atoll_group_sup'</dt><dd>the groups, and who hears of them: the names, and watchers.</dd>
%% </dl>
%% A supervisor whose children end too often ends, and is started anew with them by the one above.
-module(atoll_sup).

-behaviour(supervisor).

-export([start_link/1, start_link/2, init/1]).

%% How many names of nodes the sources may bring.
-define(MAX_FOUND, 1000).
%% How long a child of a supervisor that was killed may take to end after it.
-define(ORPHANED_MS, 5000).

-type name() :: ?MODULE | atoll_link_sup | atoll_rooms_sup | atoll_group_sup.

%% @doc Starts the rooms with this configuration.
-spec start_link(atoll_config:config()) -> supervisor:startlink_ret().
start_link(Config) ->
    start_link(?MODULE, Config).

%% @private
-spec start_link(name(), atoll_config:config()) -> supervisor:startlink_ret().
start_link(Name, Config) ->
    supervisor:start_link({local, Name}, ?MODULE, {Name, Config}).

%% @private
-spec init({name(), atoll_config:config()}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Name, Config}) ->
    _ = [ok = create_tables(Config) || Name =:= ?MODULE],
    {Strategy, Children} = children(Name, Config),
    lists:foreach(fun orphaned/1, Children),
    {ok, {#{strategy => Strategy, intensity => 5, period => 10}, Children}}.

create_tables(Config) ->
    ok = atoll_events:create_table(),
    ok = atoll_metric:create_table(),
    ok = atoll_overlay:create_table(),
    ok = atoll_route:create_table(),
    ok = atoll_group:create_table(),
    ok = atoll_group_watch:create_table(),
    ok = atoll_group_attributes:create_table(),
    ok = atoll_name:create_table(),
    ok = atoll_attr:create_table(),
    ok = atoll_distance:create_table(),
    ok = atoll_place_watch:create_table(),
    ok = atoll_distance:declare(atoll_config:network(Config)),
    atoll_global:use(atoll_config:global_group(Config)).

children(?MODULE, Config) ->
    {one_for_one, [
        #{id => events, start => {atoll_events, start_link, []}},
        #{id => channels, start => {atoll_channel_figures, start_link, []}},
        supervisor(atoll_link_sup, Config)
    ]};
children(atoll_link_sup, Config) ->
    {rest_for_one, [
        #{id => link, start => {atoll_link, start_link, [atoll_config:link(Config)]}},
        supervisor(atoll_rooms_sup, Config)
    ]};
children(atoll_rooms_sup, Config) ->
    {one_for_one,
        overlay(atoll_config:overlay(Config), Config) ++
            route(atoll_config:route(Config)) ++
            [
                supervisor(atoll_group_sup, Config),
                #{id => attr, start => {atoll_attr, start_link, [atoll_config:attributes(Config)]}}
            ] ++
            distances(atoll_config:distances(Config)) ++
            [#{id => place, start => {atoll_place_watch, start_link, [atoll_config:place(Config)]}}]};
children(atoll_group_sup, Config) ->
    {rest_for_one, kinds(atoll_config:kinds(Config)) ++ groups(atoll_config:boot(Config), Config)}.

supervisor(Name, Config) ->
    #{id => Name, start => {?MODULE, start_link, [Name, Config]}, type => supervisor}.

%% What a supervisor that was killed has left behind is ending, and has its name still.
orphaned(#{start := {Module, _, Args}}) ->
    Name =
        case Args of
            [Supervisor, _] when Module =:= ?MODULE -> Supervisor;
            _ -> Module
        end,
    case whereis(Name) of
        undefined ->
            ok;
        Pid ->
            Ref = erlang:monitor(process, Pid),
            receive
                {'DOWN', Ref, process, Pid, _} -> ok
            after ?ORPHANED_MS -> true = exit(Pid, kill)
            end
    end.

overlay(off, _Config) ->
    [];
overlay({ok, Overlay}, Config) ->
    {Sources, Ms} = atoll_config:sources(Config),
    [
        #{id => overlay, start => {atoll_overlay, start_link, [Overlay]}},
        #{id => sources, start => {atoll_sources, start_link, [sources(Sources, Ms)]}}
    ].

route(off) ->
    [];
route({ok, Options}) ->
    [#{id => route, start => {atoll_route, start_link, [Options]}}].

kinds(Kinds) ->
    [#{id => group_kinds, start => {atoll_group_kinds, start_link, [Kinds]}} || Kinds =/= #{}].

groups(#{file := File} = Boot, Config) ->
    [#{id => group_keeper, start => {atoll_group_keeper, start_link, [File]}} || File =/= none] ++
        [
            #{id => group, start => {atoll_group, start_link, [atoll_config:group(Config), Boot]}},
            #{id => group_watch, start => {atoll_group_watch, start_link, []}},
            #{id => names, start => {atoll_name, start_link, [atoll_config:names(Config)]}}
        ].

distances(off) ->
    [];
distances({ok, Options}) ->
    [#{id => distance, start => {atoll_distance, start_link, [Options]}}].

sources(Sources, Ms) ->
    #{
        sources => Sources,
        interval_ms => Ms,
        max => ?MAX_FOUND,
        deliver => fun atoll_overlay:contacts/1,
        fault => fun(Source, Reason) ->
            atoll_events:emit(discovery_failed, #{source => Source, reason => Reason})
        end
    }.
