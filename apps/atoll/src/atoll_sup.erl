%% @doc The top supervisor: one process per room, a lower one before the upper.
%%
%% When a room's process ends, the rooms above start anew too (rest_for_one):
%% they have told it what they want, and must tell it again. What readers and
%% subscribers rely on is in tables of this process, which outlive the rooms.
-module(atoll_sup).

-behaviour(supervisor).

-export([start_link/1, init/1]).

%% How many names of nodes the sources may bring.
-define(MAX_FOUND, 1000).

%% @doc Starts the rooms with this configuration.
-spec start_link(atoll_config:config()) -> supervisor:startlink_ret().
start_link(Config) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(atoll_config:config()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    ok = atoll_events:create_table(),
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
    ok = atoll_global:use(atoll_config:global_group(Config)),
    Rooms =
        [
            #{id => events, start => {atoll_events, start_link, []}},
            #{id => link, start => {atoll_link, start_link, [atoll_config:link(Config)]}}
        ] ++
            overlay(atoll_config:overlay(Config), Config) ++
            route(atoll_config:route(Config)) ++
            kinds(atoll_config:kinds(Config)) ++ groups(atoll_config:boot(Config), Config) ++
            [#{id => attr, start => {atoll_attr, start_link, [atoll_config:attributes(Config)]}}] ++
            distances(atoll_config:distances(Config)) ++
            [#{id => place, start => {atoll_place_watch, start_link, [atoll_config:place(Config)]}}],
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 10}, Rooms}}.

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
