%% SPDX-License-Identifier: Apache-2.0
%% The same script on simulated nodes and on real ones: the same outcome. That is which of its
%% expectations fail, who is in which group in the end, which names each member finds, and
%% what the overlay looks like.
%%
%% Ten scripts are those of docs/scripts that a small machine can play, with what each says of
%% itself. The others are drawn (atoll_chaos_scripts): faults of any kind on groups, names and
%% the overlay of the same nodes.
-module(atoll_chaos_same_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    who_had_no_contact_but_itself_is_back_by_its_group/1,
    names_change_hands_and_clash/1,
    who_has_a_name_is_killed_ever_faster/1,
    a_gateway_joins_two_groups/1,
    all_are_started_again_in_turn/1,
    a_minority_removes_nobody/1,
    two_sides_are_silent_for_each_other/1,
    a_group_changes_amid_faults/1,
    one_leaves_and_one_is_killed/1,
    full_connections_bury_nobody_and_hide_no_death/1,
    drawn_scripts/1
]).

-define(CALL_MS, 30000).

suite() -> [{timetrap, {minutes, 30}}].

%% In the fast tier atoll_chaos_SUITE plays a script of groups in both worlds, and
%% atoll_chaos_cli_SUITE one of an overlay.
all() ->
    case atoll_tier:tier() of
        fast -> [];
        deep -> cases()
    end.

cases() ->
    [
        who_had_no_contact_but_itself_is_back_by_its_group,
        names_change_hands_and_clash,
        who_has_a_name_is_killed_ever_faster,
        a_gateway_joins_two_groups,
        all_are_started_again_in_turn,
        a_minority_removes_nobody,
        two_sides_are_silent_for_each_other,
        a_group_changes_amid_faults,
        one_leaves_and_one_is_killed,
        full_connections_bury_nobody_and_hide_no_death,
        drawn_scripts
    ].

who_had_no_contact_but_itself_is_back_by_its_group(_Config) -> same("alone").

names_change_hands_and_clash(_Config) -> same("names").

who_has_a_name_is_killed_ever_faster(_Config) -> same("storm").

a_gateway_joins_two_groups(_Config) -> same("gateway").

all_are_started_again_in_turn(_Config) -> same("rolling").

a_minority_removes_nobody(_Config) -> same("minority").

two_sides_are_silent_for_each_other(_Config) -> same("silent").

a_group_changes_amid_faults(_Config) -> same("groups").

one_leaves_and_one_is_killed(_Config) -> same("leave").

full_connections_bury_nobody_and_hide_no_death(_Config) -> same("bulk").

drawn_scripts(_Config) ->
    _ = ct:timetrap({hours, 1}),
    Seeds = [atoll_tier:seed({?MODULE, N}) || N <- lists:seq(1, 12)],
    Differ = [
        {Seed, Terms, Simulated, Real}
     || Seed <- Seeds,
        Terms <- [atoll_chaos_scripts:draw(Seed)],
        {ok, Script} <- [atoll_sim_script:check(Terms)],
        {Simulated, Real} <- [outcomes(Script)],
        Simulated =/= Real orelse maps:get(failed, Real) =/= []
    ],
    ?assertEqual([], Differ).

%% What a script of the documents expects holds.
same(Name) ->
    {ok, Script} = atoll_sim_script:read(filename:join([root(), "docs", "scripts", Name ++ ".script"])),
    {Simulated, Real} = outcomes(Script),
    ?assertEqual(Simulated, Real),
    ?assertMatch(#{failed := []}, Real).

outcomes(#{cluster := Cluster} = Script) ->
    {ok, Simulated} = atoll_sim_play:run(Script, #{}),
    {ok, C} = atoll_cluster:start(options(Script)),
    try
        {ok, #{overlay := Facts} = Real} = atoll_chaos:run(#{cluster => C, script => Script}),
        #{events := Events, unseen := 0} = Real,
        ct:pal("~p~n~p~n~p", [Script, Simulated, Real]),
        ?assertEqual([], [E || #{outcome := failed} = E <- Events]),
        #{nodes := Count} = Cluster,
        Renamed = maps:from_list(lists:zip(atoll_cluster:nodes(C), atoll_sim_cluster:names_of(Count))),
        {outcome(Simulated, #{}), outcome(maps:merge(Real, Facts), Renamed)}
    after
        ok = atoll_cluster:stop(C)
    end.

%% Who keeps a name of two that clash is drawn by the names of the nodes, which differ.
outcome(#{failed := Failed} = Result, Renamed) ->
    Names = maps:get(names, Result, none),
    Groups = maps:get(groups, Result, none),
    (maps:with([alive, components, connected, symmetric, delivered], Result))#{
        failed => [{Place, Expectation} || #{place := Place, expectation := Expectation} <- Failed],
        groups => [{named(Node, Renamed), [{Group, [named(M, Renamed) || M <- Members]} || {Group, Members} <- Own]} || {Node, Own} <- listed(Groups)],
        names => [{named(Node, Renamed), [{Group, Name} || {Group, Name, _} <- Own]} || {Node, Own} <- listed(Names)]
    }.

listed(none) -> [];
listed(Map) -> lists:sort(maps:to_list(Map)).

named(Node, Renamed) -> maps:get(Node, Renamed, Node).

%% As `atoll chaos run' starts nodes for a script; over the carrier where it takes one.
options(#{cluster := #{nodes := Count} = Cluster, steps := Steps}) ->
    Carrier = lists:any(fun({_, Step, _}) -> is_tuple(Step) andalso lists:member(element(1, Step), [black_hole, delay, loss]) end, Steps),
    #{
        nodes => Count,
        connect_all => false,
        apps => [atoll],
        args => fun(Nodes) -> args(Cluster, Nodes) ++ carrier(Carrier) end
    }.

args(#{strategy := Strategy, contacts := Contacts, options := Options, directory := Directory}, Nodes) ->
    lists:append([
        ["-atoll", atom_to_list(Key), lists:flatten(io_lib:format("~0tp", [Value]))]
     || {Key, Value} <- [
            {overlay, Strategy}, {overlay_options, Options}, {contacts, lists:sublist(Nodes, Contacts)}, {directory, Directory}
        ]
    ]).

carrier(false) -> [];
carrier(true) -> ["-proto_dist", "atoll", "-kernel", "atoll_dist", "[{faults,true}]"].

%% The tests run in a build directory inside of the working tree.
root() ->
    up(filename:absname(code:lib_dir(atoll_sim))).

up(Dir) ->
    case filelib:is_dir(filename:join([Dir, "docs", "scripts"])) of
        true -> Dir;
        false when Dir =/= "/" -> up(filename:dirname(Dir))
    end.
