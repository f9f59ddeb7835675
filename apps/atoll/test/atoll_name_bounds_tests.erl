%% SPDX-License-Identifier: Apache-2.0
%% The protocol of names at its bounds, what its answers are called, and what it costs.
-module(atoll_name_bounds_tests).

-include_lib("eunit/include/eunit.hrl").

-define(W, atoll_name_world).
-define(NODES, [n1, n2, n3, n4]).

world() -> world(#{}).

world(Options) -> ?W:run(2000, ?W:members(g, ?NODES, ?W:new([x | ?NODES], 1, Options))).

ask(Node, Request, World0) ->
    {Id, World1} = ?W:call(Node, Request, World0),
    await(Id, World1).

await(Id, World) ->
    case ?W:replies(World) of
        #{Id := {Answer, _, _, _}} -> {Answer, World};
        #{} -> await(Id, ?W:step(World))
    end.

asks(Requests) -> asks(Requests, world()).

asks(Requests, World) ->
    {Answers, _} = lists:mapfoldl(fun({Node, Request}, W) -> ask(Node, Request, W) end, World, Requests),
    Answers.

reg(Name, Pid) -> {register, g, Name, Pid, none}.

answers_test_() ->
    P = fun ?W:pid/2,
    Is = fun(Title, Answers, Requests) -> {Title, ?_assertEqual(Answers, asks(Requests))} end,
    Taken = {no, name_or_pid_already_registered},
    [
        Is("a process of this node and of another", [yes, yes], [{n1, reg(a, P(n1, 1))}, {n1, reg(b, P(n2, 1))}]),
        Is("a name is taken, wherever it is asked for", [yes, Taken, Taken], [
            {n1, reg(a, P(n1, 1))}, {n2, reg(a, P(n2, 1))}, {n3, reg(a, P(n1, 2))}
        ]),
        Is("a process has one name in a group", [yes, Taken, Taken], [
            {n1, reg(a, P(n1, 1))}, {n1, reg(b, P(n1, 1))}, {n2, reg(b, P(n1, 1))}
        ]),
        Is("re_register, with and without a holder", [yes, yes, yes, {no, pid_is_already_registered}], [
            {n1, {re_register, g, a, P(n1, 1), none}},
            {n1, {re_register, g, a, P(n1, 2), none}},
            {n3, {re_register, g, a, P(n2, 2), none}},
            {n3, {re_register, g, b, P(n2, 2), none}}
        ]),
        Is("the replaced process may have another name", [yes, yes, yes], [
            {n1, reg(a, P(n1, 1))}, {n2, {re_register, g, a, P(n2, 1), none}}, {n1, reg(b, P(n1, 1))}
        ]),
        Is("unregister, wherever, and a name that nobody has", [yes, ok, yes, ok, ok], [
            {n1, reg(a, P(n1, 1))}, {n1, {unregister, g, a}}, {n1, reg(a, P(n1, 1))}, {n3, {unregister, g, a}}, {n3, {unregister, g, a}}
        ]),
        Is("a name is any term", [yes, {no, name_or_pid_already_registered}], [
            {n1, reg({"x", #{1.5 => []}}, P(n1, 1))}, {n2, reg({"x", #{1.5 => []}}, P(n2, 1))}
        ]),
        Is(
            "a group that this node is not in",
            [
                {no, cannot_register_in_remote_group},
                {no, cannot_re_register_in_remote_group},
                {no, cannot_unregister_from_remote_group}
            ],
            [{x, reg(a, P(x, 1))}, {x, {re_register, g, a, P(x, 1), none}}, {x, {unregister, g, a}}]
        ),
        Is("a process that is not on a member", [{no, pid_is_not_on_a_member}, {no, pid_is_not_on_a_member}], [
            {n1, reg(a, P(x, 1))}, {n1, reg(a, P(elsewhere, 1))}
        ]),
        {"a dead process", fun() ->
            World = ?W:die(?W:pid(n2, 1), ?W:die(?W:pid(n1, 1), world())),
            Requests = [{n1, reg(a, P(n1, 1))}, {n1, reg(a, P(n2, 1))}],
            ?assertEqual([{no, no_process}, {no, no_process}], asks(Requests, World))
        end}
    ].

bounds_test_() ->
    P = fun ?W:pid/2,
    [
        {"operations under way", fun() ->
            World0 = world(#{max_operations => 2}),
            World = lists:foldl(
                fun(N, W) -> element(2, ?W:call(n1, reg(N, P(n1, N)), W)) end, World0, lists:seq(1, 5)
            ),
            Answers = [A || {A, _, _, _} <- maps:values(?W:replies(?W:run(1000, World)))],
            ?assertEqual([yes, yes | lists:duplicate(3, {no, overloaded})], lists:sort(Answers)),
            ?assertMatch(#{n1 := #{refused_overloaded := 3}}, ?W:infos(?W:run(1000, World)))
        end},
        {"operations that others do", fun() ->
            World0 = world(#{max_operations => 2}),
            World = lists:foldl(
                fun(N, W) -> element(2, ?W:call(n1, reg(N, P(n2, N)), W)) end, World0, lists:seq(1, 5)
            ),
            Answers = [A || {A, _, _, _} <- maps:values(?W:replies(?W:run(1000, World)))],
            ?assertEqual([yes, yes | lists:duplicate(3, {no, overloaded})], lists:sort(Answers))
        end},
        {"names in a group", fun() ->
            Requests = [{n1, reg(N, P(n1, N))} || N <- [1, 2, 3]],
            ?assertEqual([yes, yes, {no, too_many_names}], asks(Requests, world(#{max_names => 2})))
        end},
        {"the size of a name", fun() ->
            Requests = [{n1, reg(binary:copy(<<"x">>, 1001), P(n1, 1))}, {n1, {register, g, a, P(n1, 1), binary:copy(<<"x">>, 1001)}}],
            ?assertEqual([{no, name_too_large}, {no, name_too_large}], asks(Requests))
        end},
        {"what waits for a peer", fun() ->
            World0 = ?W:pause(n4, world(#{max_backlog => 10, max_operations => 1000})),
            World1 = ?W:run(5000, fill(100, World0)),
            %% What waits is given up, and said anew; nothing is lost by it.
            #{n1 := #{said_anew := Anew}} = ?W:infos(World1),
            ?assert(Anew > 0),
            ?assertEqual(100, map_size(?W:replies(World1))),
            World = ?W:run(3000, ?W:resume(World1)),
            ?assertEqual(100, map_size(maps:get(n4, ?W:tables(World)))),
            ?assertEqual([], ?W:faults(World))
        end},
        {"a member that comes is told of more names than may wait", fun() ->
            World0 = fill(100, ?W:cut([[n4], [n1, n2, n3]], world(#{max_backlog => 10}))),
            World = ?W:run(3000, ?W:heal(World0)),
            ?assertEqual(100, map_size(maps:get(n4, ?W:tables(World)))),
            ?assertNot(is_map_key(said_anew, maps:get(n1, ?W:infos(World))))
        end}
    ].

%% Names one after the other.
fill(N, World) ->
    lists:foldl(
        fun(K, W) -> ?W:steps(20, element(2, ?W:call(n1, reg(K, ?W:pid(n1, K)), W))) end, World, lists:seq(1, N)
    ).

%% Two members that see each other only through the others: what is answered within
%% the bound, and one holder when they meet.
not_connected_test_() ->
    {timeout, 60, fun() ->
        [
            begin
                World0 = ?W:cut([[n1], [n2]], ?W:run(2000, ?W:members(g, ?NODES, ?W:new(?NODES, Seed)))),
                {A, World1} = ?W:call(n1, reg(a, ?W:pid(n1, 1)), World0),
                {B, World2} = ?W:call(n2, reg(a, ?W:pid(n2, 1)), ?W:steps(Seed rem 30, World1)),
                World3 = ?W:run(1000, World2),
                %% Who comes second is refused by those in the middle.
                #{A := {AnswerA, _, _, _}, B := {AnswerB, _, _, _}} = ?W:replies(World3),
                ?assertEqual([yes, {no, name_or_pid_already_registered}], lists:sort([AnswerA, AnswerB])),
                World = ?W:quiet(World3),
                ?assertEqual([], ?W:told(World)),
                ?assertEqual([], ?W:faults(World)),
                ?assertMatch([_], lists:usort(maps:values(?W:tables(World))))
            end
         || Seed <- atoll_tier:seeds({?MODULE, not_connected}, 200)
        ]
    end}.

%% A holder that cannot be reached, but that others can: it is tried until the time is over,
%% and nothing is left of it.
bounded_test() ->
    World0 = ?W:cut([[n1], [n2]], world()),
    {yes, World1} = ask(n2, reg(a, ?W:pid(n2, 1)), World0),
    {Id, World2} = ?W:call(n1, {re_register, g, a, ?W:pid(n1, 1), none}, World1),
    World3 = ?W:run(10100, World2),
    ?assertMatch(#{Id := {{no, timeout}, _, _, _}}, ?W:replies(World3)),
    World = ?W:quiet(World3),
    Pid = ?W:pid(n2, 1),
    [?assertMatch(#{{g, a} := {Pid, _}}, maps:get(N, ?W:tables(World))) || N <- ?NODES],
    ?assertMatch(#{n1 := #{operations := 0, names := 1, own := 0}}, ?W:infos(World)).

%% The process that runs the protocol is started anew; its node's processes keep their names.
restart_test() ->
    {yes, World0} = ask(n1, reg(a, ?W:pid(n1, 1)), world()),
    {yes, World1} = ask(n2, reg(b, ?W:pid(n2, 1)), World0),
    World = ?W:run(2000, ?W:reboot(n1, World1)),
    {A, B} = {?W:pid(n1, 1), ?W:pid(n2, 1)},
    [?assertMatch(#{{g, a} := {A, _}, {g, b} := {B, _}}, maps:get(N, ?W:tables(World))) || N <- ?NODES],
    %% And lose them with their death.
    Last = ?W:run(1000, ?W:die(A, World)),
    [?assertEqual([{g, b}], maps:keys(maps:get(N, ?W:tables(Last)))) || N <- ?NODES].

%% Who asked is gone before the answer: nothing is left of it.
caller_gone_test() ->
    World0 = ?W:pause(n4, world()),
    {_, World1} = ?W:call(n1, reg(a, ?W:pid(n2, 1)), World0),
    World2 = ?W:run(500, World1),
    ?assertMatch(#{n2 := #{operations := 1}}, ?W:infos(World2)),
    World = ?W:run(500, ?W:kill(n1, World2)),
    ?assertMatch(#{n2 := #{operations := 0, own := 0}, n3 := #{names := 0}}, ?W:infos(World)).

%% The others take n1 for no member for a while, of which n1 never hears, and give its
%% name to another: the clash is found, and resolved once, whoever of the two decides.
views_apart_test() ->
    lists:foreach(
        fun(Name) ->
            {yes, World0} = ask(n1, reg(Name, ?W:pid(n1, 1)), world()),
            Hear = fun(Members, W0) -> lists:foldl(fun(N, W) -> ?W:hears(N, g, Members, W) end, W0, [n2, n3, n4]) end,
            {yes, World1} = ask(n2, reg(Name, ?W:pid(n2, 1)), Hear([n2, n3, n4], World0)),
            World = ?W:run(2000, Hear(?NODES, World1)),
            ?assertMatch([#{{g, Name} := _}], lists:usort(maps:values(maps:without([x], ?W:tables(World))))),
            ?assertMatch([_], ?W:told(World))
        end,
        lists:seq(1, 20)
    ).

%% A member leaves and comes back while its answer is on its way: the answer is void.
come_and_go_test_() ->
    {timeout, 60, fun() ->
        [
            begin
                World0 = ?W:run(2000, ?W:members(g, ?NODES, ?W:new(?NODES, Seed))),
                {_, World1} = ?W:call(n1, reg(a, ?W:pid(n1, 1)), World0),
                World2 = ?W:members(g, [n1, n3, n4], ?W:steps(Steps, World1)),
                World3 = ?W:members(g, [n1, n2, n3, n4], ?W:steps(Seed rem 3, World2)),
                World = ?W:run(5000, World3),
                ?assertEqual([], ?W:faults(World)),
                ?assertMatch([#{{g, a} := _}], lists:usort(maps:values(?W:tables(World))))
            end
         || Seed <- atoll_tier:seeds({?MODULE, come_and_go}, 300), Steps <- lists:seq(0, 12)
        ]
    end}.

%% What a registration costs in a group of four: an entry and an answer for each other
%% member; acknowledgements of the answers come with what follows, or once for all.
cost_test() ->
    World0 = world(),
    {yes, World1} = ask(n1, reg(a, ?W:pid(n1, 1)), World0),
    ?assertEqual(2 * 3, ?W:sent(World1) - ?W:sent(World0)),
    World2 = ?W:run(1000, World1),
    ?assertEqual(3 * 3, ?W:sent(World2) - ?W:sent(World0)),
    %% A hundred at once.
    Big = world(#{batch => 200, max_operations => 1000}),
    World3 = lists:foldl(
        fun(N, W) -> element(2, ?W:call(n1, reg(N, ?W:pid(n1, N)), W)) end, Big, lists:seq(1, 100)
    ),
    World4 = ?W:run(1000, World3),
    ?assertEqual(100, map_size(?W:replies(World4))),
    ?assert(?W:sent(World4) - ?W:sent(Big) < 100).

%% Many want one name while a member is silent, which this node waits for, or while another
%% node's process is about to have it. Eight times as many are 64 times the work at most: each
%% may look at those who wait already, but not at each of them for each of them.
many_who_wait_for_one_name_test_() ->
    {timeout, 60, fun() ->
        [
            begin
                [Few, Many] = [wants(N, First) || N <- [200, 1600]],
                ?assert(Many < 100 * Few, {First, Few, Many})
            end
         || First <- [mine, theirs]
        ]
    end}.

%% The work that so many callers are, from their calls until their time is over.
wants(N, First) ->
    Options = maps:with(maps:keys(atoll_name:defaults()), ?W:options()),
    {New, []} = atoll_name_core:init(#{self => n1, incarnation => 1000, options => Options#{max_operations := 10000}}, 0),
    Id = {g, {1, n1, 1}},
    Put = {message, n2, {b, {5, 1}, none, 1, 0, [{hello, false}, {put, Id, a, 1, ?W:pid(n2, 1), none, 1}]}},
    {State, _} = events([{cast, {groups, [{g, Id, [n1, n2]}]}}, {up, n2}] ++ [Put || First =:= theirs], New),
    Calls = [{call, {self(), I}, reg(a, ?W:pid(n1, I))} || I <- lists:seq(1, N)],
    {reductions, Before} = process_info(self(), reductions),
    {Waiting, Effects} = each(Calls, State),
    Ops = [Op || {timer, {op, _} = Op, _} <- Effects],
    ?assertEqual(N, length(Ops)),
    {_, Answers} = each([{timeout, Op} || Op <- lists:reverse(Ops)], Waiting),
    {reductions, After} = process_info(self(), reductions),
    ?assertEqual(N, length([No || {reply, _, {no, timeout}} = No <- Answers])),
    After - Before.

each(Events, State) ->
    {Last, Said} = lists:foldl(
        fun(Event, {S0, Before}) ->
            {S, Effects} = atoll_name_core:handle(Event, 0, S0),
            {S, [Effects | Before]}
        end,
        {State, []},
        Events
    ),
    {Last, lists:append(lists:reverse(Said))}.

%% What a node says that is no member, as this one knows: it takes no name from anybody, and is
%% told of none, since it would not be told of the end of it.
no_member_has_a_say_test_() ->
    [{atom_to_list(element(1, Item)), ?_test(no_say(Item))} || Item <- [{drop}, {lose, none, self(), notify}, {taken}]].

no_say(What) ->
    Options = maps:with(maps:keys(atoll_name:defaults()), ?W:options()),
    {New, []} = atoll_name_core:init(#{self => n1, incarnation => 1000, options => Options}, 0),
    Id = {g, {1, n1, 1}},
    Pid = ?W:pid(n1, 1),
    {State, Effects} = events(
        [{cast, {groups, [{g, Id, [n1, n3]}]}}, {up, n2}, {call, {self(), 1}, reg(a, Pid)}, {timeout, flush}], New
    ),
    ?assert(lists:member({reply, {self(), 1}, yes}, Effects)),
    %% Its number is one of these.
    [Kind | Rest] = tuple_to_list(What),
    Items = [list_to_tuple([Kind, Id, a, Number] ++ [R || R <- Rest, Kind =:= lose]) || Number <- lists:seq(1001, 1010)],
    {_, Said} = events([{message, n2, {b, {5, 1}, none, 1, 0, [{hello, false} | Items]}}, {timeout, flush}], State),
    ?assertEqual([], [E || {act, _} = E <- Said]),
    ?assertEqual([], [I || {send, n2, {b, _, _, _, _, Sent}} <- Said, I <- Sent, element(1, I) =/= hello]).

events(Events, State0) ->
    lists:foldl(
        fun(Event, {State1, Before}) ->
            {State2, Effects} = atoll_name_core:handle(Event, 0, State1),
            {State2, Before ++ Effects}
        end,
        {State0, []},
        Events
    ).

%% Nobody waits for the answer any more: what was under way for it is taken back.
who_asked_and_began_anew_has_registered_nothing_test() ->
    World0 = ?W:pause(n4, world(#{answer_ms => 3000, operation_ms => 20000})),
    {_, World1} = ?W:call(n1, reg(a, ?W:pid(n2, 1)), World0),
    %% Its owner has put it, and waits for the silent one.
    World2 = ?W:run(500, World1),
    World = ?W:run(30000, ?W:resume(?W:run(1000, ?W:reboot(n1, World2)))),
    [?assertEqual(#{}, maps:get(N, ?W:tables(World))) || N <- ?NODES],
    ?assertMatch({yes, _}, ask(n3, reg(b, ?W:pid(n2, 1)), World)).

%% The room of n4 stops, and says so: its names go, and no `yes' waits for it. It is
%% greeted when it speaks again.
who_says_that_it_stops_is_waited_for_by_nobody_test() ->
    {yes, World0} = ask(n1, reg(there, ?W:pid(n4, 1)), world(#{answer_ms => 3000})),
    {ok, World1} = ask(n4, bye, World0),
    Paused = ?W:pause(n4, ?W:run(100, World1)),
    [?assertEqual(#{}, maps:get(N, ?W:tables(Paused))) || N <- [n1, n2, n3]],
    Begun = ?W:now(Paused),
    {yes, World3} = ask(n1, reg(a, ?W:pid(n2, 1)), Paused),
    ?assert(?W:now(World3) - Begun < 500),
    World = ?W:run(5000, ?W:reboot(n4, ?W:resume(World3))),
    [?assertMatch(#{{g, a} := _}, maps:get(N, ?W:tables(World))) || N <- ?NODES].
