%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run of faults has done, for people and for programs.
-module(atoll_chaos_cli_result).

-export([json/3, table/2, line/1]).

-type result() :: atoll_chaos:result().

%% What the overlay looks like in the end.
-define(FACTS, [
    alive, connected, components, active_min, active_max, active_mean, symmetric, delivered, false_deaths
]).

%% @doc The object that `--json' prints.
-spec json(result(), Nodes :: [node()], Again :: string()) -> atoll_cli_json:object().
json(#{events := Events, left_out := LeftOut, summary := Summary, seed := Seed, ms := Ms, groups := Groups} = Result, Nodes, Again) ->
    {
        [
            {nodes, Nodes},
            {seed, Seed},
            {ms, Ms},
            {summary, [{[{fault, Fault} | numbers(Numbers)]} || {Fault, Numbers} <- Summary]},
            {events, [event(Event) || Event <- Events]},
            {left_out, LeftOut}
        ] ++
            [{groups, atoll_sim_cli_result:groups(Groups)} || Groups =/= none] ++
            [{names, atoll_sim_cli_result:names(Names)} || #{names := #{} = Names} <- [Result]] ++
            overlay_json(Result) ++
            [{again, unicode:characters_to_binary(Again)}]
    }.

%% With the keys of a simulated run.
overlay_json(#{overlay := none, expectations := 0}) ->
    [];
overlay_json(#{overlay := none, expectations := Count, failed := Failed}) ->
    [{expectations, Count}, {failed, atoll_sim_cli_expect:json(Failed)}];
overlay_json(#{failed := Failed, unseen := Unseen} = Result) ->
    Facts = facts(Result),
    [{expectations, map_get(expectations, Facts)}, {failed, atoll_sim_cli_expect:json(Failed)}] ++
        [{Key, map_get(Key, Facts)} || Key <- ?FACTS] ++
        [{unseen, Unseen}].

facts(#{overlay := Facts, expectations := Expectations, failed := Failed}) ->
    Facts#{expectations => Expectations, failed => length(Failed)}.

numbers(Numbers) ->
    [
        {Key, number(map_get(Key, Numbers))}
     || Key <- [count, done, passed_over, failed, recovered, never, median_ms, p99_ms, max_ms]
    ].

number(none) -> null;
number(N) -> N.

event(#{at_ms := At, fault := Fault, nodes := Nodes, target := Target} = Event) ->
    #{outcome := Outcome, recovered_ms := Recovered} = Event,
    {
        [
            {at_ms, At},
            {fault, Fault},
            {nodes, Nodes},
            {target, text_or_null(Target)},
            {outcome, Outcome},
            {recovered_ms, number(Recovered)}
        ] ++
            [{Key, Ms} || Key <- [ended_ms, took_ms], #{Key := Ms} <- [Event]] ++
            [{answer, text(Answer)} || #{answer := Answer} <- [Event]] ++
            [{why, why(Why)} || #{why := Why} <- [Event]] ++
            [{line, Line} || #{place := {line, Line}} <- [Event]]
    }.

text_or_null(none) -> null;
text_or_null(Term) -> text(Term).

%% @doc Each fault, then each kind of fault in numbers, then the groups, then the
%% expectations and the facts of the overlay, as they are told of a simulated run.
-spec table(result(), [node()]) -> iolist().
table(#{events := Events, left_out := LeftOut, summary := Summary, groups := Groups} = Result, Nodes) ->
    [
        [io_lib:format("after ~s other faults, which are left out:\n", [atoll_cli_table:count(LeftOut)]) || LeftOut > 0],
        atoll_cli_table:format(
            [{right, "at"}, {left, "fault"}, {left, "node"}, {left, "target"}, {right, "recovered"}],
            [row(Event, Nodes) || Event <- Events]
        ),
        $\n,
        atoll_cli_table:format(
            [
                {left, "fault"}, {right, "count"}, {right, "passed over"}, {right, "failed"}, {right, "recovered"},
                {right, "never"}, {right, "median"}, {right, "p99"}, {right, "longest"}
            ],
            [
                [
                    atom_to_list(Fault)
                    | [atoll_cli_table:count(map_get(Key, Numbers)) || Key <- [count, passed_over, failed, recovered, never]] ++
                        [ms(map_get(Key, Numbers)) || Key <- [median_ms, p99_ms, max_ms]]
                ]
             || {Fault, Numbers} <- Summary
            ]
        )
        | [group_lines(Groups, Nodes), overlay_lines(Result)]
    ].

overlay_lines(#{overlay := none, expectations := 0}) -> [];
overlay_lines(#{overlay := none} = Result) -> [$\n, atoll_sim_cli_result:table(facts(Result#{overlay := #{}}))];
overlay_lines(Result) -> [$\n, atoll_sim_cli_result:table(facts(Result))].

group_lines(none, _) ->
    [];
group_lines(Groups, Nodes) ->
    Rows = [
        [short([Node], Nodes), lists:join("; ", [[atom_to_list(Name), ": ", short(Members, Nodes)] || {Name, Members} <- Own])]
     || {Node, Own} <- lists:keysort(1, maps:to_list(Groups))
    ],
    [$\n, atoll_cli_table:format([{left, "node"}, {left, "groups in the end"}], Rows)].

%% @doc One fault as it happens.
-spec line(atoll_chaos_log:event()) -> unicode:chardata().
line(#{at_ms := At, fault := Fault, nodes := Nodes}) ->
    [atoll_cli_table:seconds(At), $\s, atom_to_list(Fault), $\s, lists:join(" ", [atom_to_list(N) || N <- Nodes])].

row(#{at_ms := At, fault := Fault, nodes := Involved, target := Target} = Event, Nodes) ->
    [atoll_cli_table:seconds(At), atom_to_list(Fault), short(Involved, Nodes), target(Fault, Target, Nodes), recovered(Event)].

target(_, none, _) -> "";
target(cut, To, Nodes) -> ["to ", short(To, Nodes)];
target(black_hole, Other, Nodes) -> ["and ", short(Other, Nodes)];
target(loss, {To, Share}, Nodes) -> ["to ", short(To, Nodes), ", ", atoll_cli_table:percent(Share)];
target(loss, Share, _) -> ["of all, ", atoll_cli_table:percent(Share)];
target(delay, {To, Ms}, Nodes) -> io_lib:format("to ~ts, ~b ms", [short(To, Nodes), Ms]);
target(bulk, {To, full}, Nodes) -> ["to ", short(To, Nodes), ", as much as it takes"];
target(bulk, {To, Rate}, Nodes) -> io_lib:format("to ~ts, ~b bytes a second", [short(To, Nodes), Rate]);
target(lane, {Peer, Number, Fault}, Nodes) -> io_lib:format("~b to ~ts, ~ts", [Number, short([Peer], Nodes), Fault]);
target(partition, Parts, Nodes) -> lists:join(" | ", [short(Part, Nodes) || Part <- Parts]);
target(group, {delete, Name}, _) -> ["delete ", atom_to_list(Name)];
target(group, {Verb, Name, Members}, Nodes) -> [atom_to_list(Verb), $\s, atom_to_list(Name), ": ", short(Members, Nodes)];
target(broadcast, {Count, Every}, _) -> io_lib:format("~b, one each ~b ms", [Count, Every]);
target(slow, Ms, _) -> io_lib:format("stopped for ~b of each ~b ms", [Ms, Ms + 10]);
target(kill_process, Path, _) when is_list(Path) -> lists:join($/, [text(Part) || Part <- Path]);
target(_, Term, _) -> text(Term).

recovered(#{outcome := failed, why := Why}) -> ["failed: ", why(Why)];
recovered(#{outcome := passed_over, why := Why}) -> ["passed over: ", why(Why)];
recovered(#{answer := {Refused, Reason}}) when Refused =:= error; Refused =:= no -> ["answer: ", s_group:format_error(Reason)];
recovered(#{took_ms := Took}) -> ["answered in ", ms(Took)];
recovered(#{recovered_ms := Ms}) -> ms(Ms).

ms(none) -> "-";
ms(never) -> "never";
ms(Ms) when is_integer(Ms) -> [atoll_cli_table:count(Ms), " ms"];
ms(Ms) -> [float_to_list(float(Ms), [{decimals, 2}]), " ms"].

why(nobody) -> <<"there is no such process">>;
why(in_recovery) -> <<"it is not back yet">>;
why(intensity) -> <<"its supervisor would give up">>;
why(significant) -> <<"its supervisor would shut down">>;
why(spared) -> <<"it is spared">>;
why(paused) -> <<"it was paused">>;
why(dead) -> <<"it was dead">>;
why(alive) -> <<"it was running">>;
why({no_lane, _}) -> <<"there is no such lane">>;
why({no_faults, Node}) -> text({no_faults, Node});
why({not_a_socket, Node}) -> text({not_a_socket, Node});
why(Reason) when element(1, Reason) =:= unreachable; element(1, Reason) =:= raised;
                 element(1, Reason) =:= not_here; element(1, Reason) =:= not_possible ->
    unicode:characters_to_binary(atoll_chaos:format_error(Reason));
why(Reason) -> text(Reason).

%% By their numbers, as a script names them.
short(Some, Nodes) ->
    case length(Some) =:= length(Nodes) andalso length(Nodes) > 1 of
        true -> "all";
        false -> lists:join($\s, [place(Node, Nodes, 1) || Node <- Some])
    end.

place(Node, [Node | _], I) -> integer_to_list(I);
place(Node, [_ | Nodes], I) -> place(Node, Nodes, I + 1);
place(Node, [], _) -> atom_to_list(Node).

text(Term) -> unicode:characters_to_binary(atoll_sim_term:text(Term)).
