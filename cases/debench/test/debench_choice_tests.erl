%% SPDX-License-Identifier: Apache-2.0
-module(debench_choice_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, [a, b, c, d]).
-define(MANY, [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, 24)]).
-define(COUNT, 20000).

%% What is drawn and done of so many operations; Succeeds says what becomes of each.
run(Weighted, Nodes, Seed, Count, Succeeds) ->
    steps(Count, debench_choice:new(Weighted, {hd(Nodes), Nodes}, Seed), Succeeds, []).

steps(Left, State0, Succeeds, Done) ->
    case Left =< 0 andalso debench_choice:forced(State0) =:= 0 of
        true ->
            lists:reverse(Done);
        false ->
            {{Label, Operation, Node}, How, State} = debench_choice:next(State0),
            Outcome = Succeeds(Operation, Left),
            Next = debench_choice:done(Operation, Outcome, State),
            steps(Left - 1, Next, Succeeds, [{Label, Operation, Node, How, Outcome} | Done])
    end.

always(_Operation, _Left) -> ok.

count(Is, Done) -> length(lists:filter(Is, Done)).

%% Fixed seeds: three standard deviations are exceeded once in 370 times by chance. Of two
%% nodes or of many the weights are the same.
weights_are_honoured_within_three_sigma_test_() ->
    Weighted = [
        {spawning, spawning, 10}, {far, remote_call, 5}, {gen_server_call, gen_server_call, 2.5},
        {fsm_server_call, fsm_server_call, 0.5}, {local_register, local_register, 3},
        {global_register, global_register, 1}, {global_whereis, global_whereis, 0}
    ],
    {timeout, 60, fun() ->
        [honoured(Weighted, lists:sublist(?MANY, Size), Seed) || Size <- [2, 4, 24], Seed <- [1, 2, 3]]
    end}.

honoured(Weighted, Nodes, Seed) ->
    Drawn = [L || {L, _, _, drawn, _} <- run(Weighted, Nodes, Seed, ?COUNT, fun always/2)],
    Total = lists:sum([W || {_, _, W} <- Weighted]),
    N = length(Drawn),
    [
        begin
            P = W / Total,
            Seen = length([L || L <- Drawn, L =:= Label]),
            ?assert(abs(Seen - N * P) =< 3 * math:sqrt(N * P * (1 - P)), {length(Nodes), Seed, Label, Seen, N * P})
        end
     || {Label, _, W} <- Weighted
    ].

the_benchmark_s_share_of_global_operations_is_the_same_on_any_number_of_nodes_test_() ->
    {timeout, 60, fun() ->
        [
            begin
                Done = run(debench:weights(10), lists:sublist(?MANY, N), 1, ?COUNT, fun always/2),
                Share = fun(Family) ->
                    count(fun({_, O, _, _, _}) -> debench_op:family(O) =:= Family end, Done) / length(Done)
                end,
                %% A draw is three operations at most, so this is above three deviations.
                Sigma = fun(P) -> 3 * math:sqrt(3 * P * (1 - P) / ?COUNT) end,
                [
                    ?assert(abs(Share(Family) - P) =< Sigma(P), {N, Family, Share(Family)})
                 || {Family, P} <- [{global, 0.1}, {p2p, 0.45}, {local, 0.45}]
                ]
            end
         || N <- [2, 4, 24]
        ]
    end}.

every_other_node_is_as_likely_test() ->
    Done = run([{spawning, spawning, 1}], ?NODES, 1, ?COUNT, fun always/2),
    Of = fun(Node) -> count(fun({_, _, Other, _, _}) -> Other =:= Node end, Done) end,
    [
        ?assert(abs(Of(Node) - ?COUNT / 3) =< 3 * math:sqrt(?COUNT * 2 / 9), Node)
     || Node <- [b, c, d]
    ].

what_is_forced_goes_under_its_label_test() ->
    Weighted = [{global_register, global_register, 1}, {seen, global_whereis, 0}],
    ?assertEqual(
        [{global_register, drawn}, {seen, forced}, {global_unregister, forced}],
        [{L, How} || {L, _, _, How, _} <- run(Weighted, ?NODES, 1, 3, fun always/2)]
    ),
    ?assertEqual(
        [{global_register, global_register}, {global_unregister, global_unregister}, {seen, global_whereis}],
        debench_choice:labels(Weighted)
    ).

alone_there_are_no_operations_of_two_nodes_test() ->
    Done = run([{spawning, spawning, 100}, {local_register, local_register, 1}], [a], 1, 300, fun always/2),
    ?assertEqual([local_register, local_unregister, local_whereis], lists:usort([O || {_, O, _, _, _} <- Done])).

properties_test_() ->
    [
        atoll_prop:test(Name, Property, 200)
     || {Name, Property} <- [
            {"after a registration that went well come a look-up and a removal, and nowhere else", followed()},
            {"there are as many look-ups and removals as registrations that went well", as_many()},
            {"nobody calls itself", elsewhere()},
            {"what has no weight is not drawn", weightless()},
            {"all that is done has a label that was told before", labelled()}
        ]
    ].

weighted() ->
    ?SUCHTHAT(
        Weighted,
        [{O, O, oneof([0, float(0.01, 10.0), integer(1, 10)])} || O <- debench_op:operations()],
        [O || {O, _, W} <- Weighted, W > 0, lists:member(O, begin_with())] =/= []
    ).

begin_with() ->
    [spawning, remote_call, gen_server_call, fsm_server_call, global_register, local_register].

%% Some registrations are refused: which, the seed says.
succeeds(Seed) ->
    fun(Operation, Left) ->
        case erlang:phash2({Seed, Operation, Left}, 4) of
            0 when Operation =:= global_register; Operation =:= local_register -> error;
            _ -> ok
        end
    end.

followed() ->
    ?FORALL({Weighted, Seed}, {weighted(), integer()}, follow(run(Weighted, ?NODES, Seed, 200, succeeds(Seed)))).

follow([{_, Register, _, drawn, ok}, {_, First, _, forced, _}, {_, Second, _, forced, _} | Done]) when
    Register =:= global_register; Register =:= local_register
->
    {First, Second} =:=
        case Register of
            global_register -> {global_whereis, global_unregister};
            local_register -> {local_whereis, local_unregister}
        end andalso follow(Done);
follow([{_, Operation, _, drawn, Outcome} | Done]) ->
    Registers = lists:member(Operation, [global_register, local_register]),
    (debench_op:family(Operation) =:= p2p orelse (Registers andalso Outcome =:= error)) andalso follow(Done);
follow([_ | _]) -> false;
follow([]) -> true.

as_many() ->
    ?FORALL({Weighted, Seed}, {weighted(), integer()}, begin
        Done = run(Weighted, ?NODES, Seed, 200, succeeds(Seed)),
        Of = fun(O) -> count(fun({_, Operation, _, _, Outcome}) -> Operation =:= O andalso Outcome =:= ok end, Done) end,
        Of(global_register) =:= Of(global_whereis) andalso Of(global_register) =:= Of(global_unregister) andalso
            Of(local_register) =:= Of(local_whereis) andalso Of(local_register) =:= Of(local_unregister)
    end).

elsewhere() ->
    ?FORALL({Weighted, Seed}, {weighted(), integer()},
        lists:all(
            fun({_, Operation, Node, _, _}) ->
                (debench_op:family(Operation) =:= p2p) =:= lists:member(Node, tl(?NODES))
            end,
            run(Weighted, ?NODES, Seed, 200, fun always/2)
        )
    ).

weightless() ->
    ?FORALL({Weighted, Seed}, {weighted(), integer()}, begin
        Drawn = [O || {_, O, _, drawn, _} <- run(Weighted, ?NODES, Seed, 200, fun always/2)],
        [O || O <- Drawn, lists:keyfind(O, 1, Weighted) =:= {O, O, 0}] =:= []
    end).

labelled() ->
    ?FORALL({Weighted, Seed}, {weighted(), integer()}, begin
        Labels = debench_choice:labels(Weighted),
        lists:usort([{L, O} || {L, O, _, _, _} <- run(Weighted, ?NODES, Seed, 200, fun always/2)]) -- Labels =:= []
    end).
