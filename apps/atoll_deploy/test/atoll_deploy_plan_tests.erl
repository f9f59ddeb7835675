%% SPDX-License-Identifier: Apache-2.0
%% The planner, on made-up hosts and with any history of deployments that went well, failed or were broken off.
-module(atoll_deploy_plan_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([
        {"whatever was done, failed or broken off, a plan that is carried out gives exactly N nodes, and nothing more is to be done", exact(), 2000},
        {"no host has more nodes than it has room for, or any that need what it has not", fits(), 1000},
        {"nodes are spread evenly over hosts that are alike", even(), 500},
        {"a node that is up and wanted is neither stopped nor started", stays(), 1000},
        {"batches have each node that lacks the release, once, the lowest numbers first", batched(), 500}
    ]).

%% Histories

history() -> list({range(0, 12), list(oneof([done, failed, begun]))}).

places() -> ?LET(Hosts, non_empty(list({oneof([none, range(1, 4)]), oneof([[], ["ssd"]])})), [
    {"d", maps:merge(#{host => "h" ++ integer_to_list(N), port => 22, attributes => Attributes}, case Cores of none -> #{}; _ -> #{cores => Cores} end)}
 || {N, {Cores, Attributes}} <- lists:zip(lists:seq(1, length(Hosts)), Hosts)
]).

needs() -> oneof([#{}, #{cores => 1}, #{cores => 2, attributes => ["ssd"]}]).

wanted(Count, Places, Needs) -> #{family => "f", count => Count, release => "r", needs => Needs, places => Places}.

%% What a master writes down, where each step went so; what is told no end is done.
lived(Steps, Ends, Rows) ->
    Begun = lists:foldl(fun({What, #{node := Node} = Row}, All) -> All#{Node => Row#{state => case What of start -> starting; stop -> stopping end}} end, Rows, Steps),
    {Zipped, _} = lists:mapfoldl(fun(Step, []) -> {{Step, done}, []}; (Step, [End | More]) -> {{Step, End}, More} end, Ends, Steps),
    lists:foldl(
        fun
            ({{start, #{node := Node}}, done}, All) -> maps:update_with(Node, fun(Row) -> Row#{state := up} end, All);
            ({{stop, #{node := Node}}, done}, All) -> maps:remove(Node, All);
            ({{start, #{node := Node}}, failed}, All) -> maps:update_with(Node, fun(Row) -> Row#{state := failed} end, All);
            ({_, _}, All) -> All
        end,
        Begun,
        Zipped
    ).

after_history(History, Places, Needs) ->
    lists:foldl(
        fun({Count, Ends}, Rows) ->
            case atoll_deploy_plan:plan(wanted(Count, Places, Needs), maps:values(Rows), []) of
                {ok, Steps} -> lived(Steps, Ends, Rows);
                {error, _} -> Rows
            end
        end,
        #{},
        History
    ).

exact() ->
    ?FORALL({History, Places, Needs, Count}, {history(), places(), needs(), range(0, 15)}, begin
        Rows = after_history(History, Places, Needs),
        case atoll_deploy_plan:plan(wanted(Count, Places, Needs), maps:values(Rows), []) of
            {ok, Steps} ->
                After = maps:values(lived(Steps, [], Rows)),
                length(After) =:= Count andalso lists:all(fun(#{state := State}) -> State =:= up end, After) andalso
                    length(lists:usort([N || #{number := N} <- After])) =:= Count andalso
                    atoll_deploy_plan:plan(wanted(Count, Places, Needs), After, []) =:= {ok, []};
            {error, _} ->
                %% Where nothing is counted there is always room.
                Needs =/= #{}
        end
    end).

fits() ->
    ?FORALL({History, Places, Needs}, {history(), places(), needs()}, begin
        Rows = maps:values(after_history(History, Places, Needs)),
        lists:all(
            fun({_, #{host := Host, attributes := Has} = Of}) ->
                Here = [Row || #{host := At} = Row <- Rows, At =:= Host],
                Here =:= [] orelse
                    (maps:get(attributes, Needs, []) -- Has =:= [] andalso
                        length(Here) * maps:get(cores, Needs, 0) =< maps:get(cores, Of, infinity))
            end,
            Places
        )
    end).

even() ->
    ?FORALL({Hosts, Count}, {range(1, 8), range(0, 40)}, begin
        Places = [{"d", #{host => "h" ++ integer_to_list(N), port => 22, attributes => []}} || N <- lists:seq(1, Hosts)],
        {ok, Steps} = atoll_deploy_plan:plan(wanted(Count, Places, #{}), [], []),
        Counts = [length([x || {start, #{host := At}} <- Steps, At =:= Host]) || {_, #{host := Host}} <- Places],
        lists:max(Counts) - lists:min(Counts) =< 1
    end).

stays() ->
    ?FORALL({History, Places, Count}, {history(), places(), range(0, 15)}, begin
        Rows = after_history(History, Places, #{}),
        {ok, Steps} = atoll_deploy_plan:plan(wanted(Count, Places, #{}), maps:values(Rows), []),
        Up = [{N, Node} || #{state := State, number := N, node := Node} <- maps:values(Rows), State =/= stopping],
        Kept = [Node || {_, Node} <- lists:sublist(lists:sort(Up), Count)],
        Stopped = [Node || {stop, #{node := Node}} <- Steps],
        Started = [Node || {start, #{node := Node, state := up}} <- Steps],
        Kept -- Stopped =:= Kept andalso Started =:= []
    end).

batched() ->
    ?FORALL({History, Places, Size, New}, {history(), places(), range(1, 4), oneof(["r", "s"])}, begin
        Rows = maps:values(after_history(History, Places, #{})),
        Batches = atoll_deploy_plan:batches(Rows, {New, Size}),
        Numbers = [N || Batch <- Batches, #{number := N} <- Batch],
        Numbers =:= lists:sort([N || #{number := N, state := State, release := Is} <- Rows, State =/= stopping, State =/= up orelse Is =/= New]) andalso
            lists:all(fun(Batch) -> length(Batch) =< Size end, Batches)
    end).

%% Examples

host(Name) -> #{host => Name, port => 22, attributes => []}.

new_nodes_go_to_the_host_that_has_the_fewest_test() ->
    Places = [{"d", host("a")}, {"d", host("b")}],
    {ok, Steps} = atoll_deploy_plan:plan(wanted(3, Places, #{}), [], []),
    ?assertEqual(["f1@a", "f2@b", "f3@a"], [Node || {start, #{node := Node}} <- Steps]).

what_is_stopped_has_the_highest_numbers_test() ->
    Places = [{"d", host("a")}],
    {ok, Steps} = atoll_deploy_plan:plan(wanted(5, Places, #{}), [], []),
    Rows = lived(Steps, [], #{}),
    {ok, Fewer} = atoll_deploy_plan:plan(wanted(2, Places, #{}), maps:values(Rows), []),
    ?assertEqual(["f5@a", "f4@a", "f3@a"], [Node || {stop, #{node := Node}} <- Fewer]).

too_many_are_refused_with_how_many_there_is_room_for_test() ->
    Places = [{"d", (host("a"))#{cores => 2}}, {"d", (host("b"))#{memory_mb => 100}}],
    {error, Sentence} = atoll_deploy_plan:plan(wanted(6, Places, #{cores => 1, memory_mb => 60}), [], []),
    ?assertEqual("the hosts of the family f have room for 3 of its 6 nodes", lists:flatten(Sentence)).

others_take_room_too_test() ->
    Places = [{"d", (host("a"))#{cores => 3}}],
    Other = #{node => "g1@a", family => "g", number => 1, domain => "d", host => "a", release => "r", needs => #{cores => 2}, state => up},
    ?assertMatch({ok, [_]}, atoll_deploy_plan:plan(wanted(1, Places, #{cores => 1}), [], [Other])),
    ?assertMatch({error, _}, atoll_deploy_plan:plan(wanted(2, Places, #{cores => 1}), [], [Other])).
