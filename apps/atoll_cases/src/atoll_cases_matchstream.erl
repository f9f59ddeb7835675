%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of MatchStream have in common: which service is started, and how.
-module(atoll_cases_matchstream).

-export([options/0, shape/1, with_service/3, script/1]).

%% @doc The options that say what is started.
-spec options() -> [atoll_cli_options:option()].
options() ->
    Names = [Name || {Name, _, _} <- matchstream_switches:names()],
    [
        #{name => stage, value => "N", default => "4", read => atoll_cli_read:whole(1, 5), help => "what the service has of what was changed from stage to stage: 1, as it began, to 4, or 5 for three nodes"},
        #{name => with, value => "SWITCH", repeat => true, read => switch(Names), help => "one switch more than the stage has; SWITCH=off is none more"},
        #{name => without, value => "SWITCH", repeat => true, read => switch(Names), help => "one switch less; SWITCH=off is none less"},
        #{name => nodes, value => "N", read => atoll_cli_read:whole(1, 64), help => "so many nodes, in place of what the stage has"},
        #{name => store, value => "STORE", default => "mnesia", read => atoll_cli_read:one_of([mnesia, redis]), help => "where matches are kept: in Mnesia in memory, or in a Redis that is started too, in a folder that goes with it"}
    ].

%% A description for `atoll scale' says of each whether it is on.
switch(Names) ->
    Word = atoll_cli_read:one_of(Names),
    fun(Text) ->
        case string:split(Text, "=") of
            [Name, "off"] -> case Word(Name) of {ok, _} -> {ok, none}; Wrong -> Wrong end;
            [Name, "on"] -> Word(Name);
            _ -> Word(Text)
        end
    end.

%% @doc The switches of a service, and how many nodes it has.
-spec shape(atoll_cli_options:values()) -> {[matchstream_switches:name()], pos_integer()}.
shape(#{stage := Stage, with := With, without := Without} = Values) ->
    Switches = matchstream_switches:chosen(Stage, With, Without),
    {Switches, maps:get(nodes, Values, case lists:member(nodes, Switches) of true -> 3; false -> 1 end)}.

%% @doc What a function returns of a service that is there as long as it runs: it is given the cluster.
-spec with_service(atoll_cli_options:values(), Further :: #{atom() => term()}, fun((atoll_cluster:cluster()) -> atoll_cli_command:outcome())) -> atoll_cli_command:outcome().
with_service(Values, Further, Fun) ->
    {Switches, Count} = shape(Values),
    with_store(Values, fun(Keeper) ->
        Shape = #{nodes => Count, store => Keeper, switches => Switches, settings => maps:get(settings, Further, #{})},
        Options = maps:merge(matchstream_cluster:options(Shape), maps:remove(settings, Further)),
        Ended = atoll_cluster:with_cluster(Options#{progress => atoll_cli_progress:bar("Starting nodes")}, fun(Cluster) ->
            case atoll_bench_matchstream_run:ready(Cluster) of
                ok -> Fun(Cluster);
                {error, Sentence} -> {unable, Sentence}
            end
        end),
        case Ended of
            {error, Why} -> {unable, Why};
            Outcome -> Outcome
        end
    end).

with_store(#{store := mnesia, dir := Dir}, Fun) -> Fun(#{module => matchstream_store_mnesia, dir => filename:absname(Dir)});
with_store(#{store := mnesia}, Fun) -> Fun(#{module => matchstream_store_mnesia});
with_store(#{store := redis, dir := Dir}, Fun) -> with_redis(Dir, Fun);
with_store(#{store := redis}, Fun) ->
    %% Nothing runs in it but Redis, which ends with this VM; the folder goes then too.
    case atoll_cluster_daemon:open("matchstream") of
        {ok, Daemon} ->
            try with_redis(filename:join(atoll_cluster_daemon:dir(Daemon), "redis"), Fun)
            after ok = atoll_cluster_daemon:stop(Daemon)
            end;
        {error, Sentence} -> {unable, Sentence}
    end.

with_redis(Dir, Fun) ->
    case matchstream_redis:start_link(Dir) of
        {ok, Redis} ->
            try Fun(#{module => matchstream_store_redis, socket => matchstream_redis:socket(Redis)})
            after ok = matchstream_redis:stop(Redis)
            end;
        {error, Sentence} -> {unable, Sentence}
    end.

%% @doc A script by its name or its file.
-spec script(string()) -> {ok, matchstream_script:script()} | {error, unicode:chardata()}.
script(Given) ->
    matchstream_script:read(case matchstream_script:find(Given) of {ok, File} -> File; none -> Given end).
