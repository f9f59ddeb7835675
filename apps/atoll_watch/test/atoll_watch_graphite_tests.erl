%% SPDX-License-Identifier: Apache-2.0
%% Lines for Graphite, and a server that comes and goes.
-module(atoll_watch_graphite_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(G, atoll_watch_graphite).
-define(LATE_MS, 20000).

properties_test_() ->
    atoll_prop:tests([{what_waits_is_bounded_and_the_rest_counted, what_waits_is_bounded(), 500}]).

seen(Node, State, Readings) -> #{node => Node, state => State, since => 0, why => none, readings => Readings, rates => #{}}.

each_metric_is_a_line_test() ->
    Metrics = [Metric || Name <- [processes, run_queue, user_gauge, utilisation], {ok, Metric} <- [atoll_watch_metric:find(Name)]],
    Readings = #{processes => 50, utilisation => 0.25, {run_queue, dirty_io} => 3, {user_gauge, <<"größe.of x\n"/utf8>>} => -1.5, {user_gauge, <<"no", 255>>} => 0, {mailbox, <<"p">>} => 9, reductions => 7},
    ?assertEqual([{6, <<"atoll.a@10_0_0_7.up 1 1700000000\natoll.a@10_0_0_7.processes 50 1700000000\natoll.a@10_0_0_7.run_queue.dirty_io 3 1700000000\n"
                        "atoll.a@10_0_0_7.user_gauge.gr__e_of_x_ -1.5 1700000000\natoll.a@10_0_0_7.user_gauge.no_ 0 1700000000\natoll.a@10_0_0_7.utilisation 0.25 1700000000\n">>},
                  {1, <<"atoll.b@h.up 0 1700000000\n">>}],
                 ?G:lines(Metrics, [seen('a@10.0.0.7', up, Readings), seen(b@h, silent, Readings)], 1700000000)).

%% Beside a list of all that was added.
what_waits_is_bounded() ->
    ?FORALL({Most, Steps}, {integer(1, 40), list(oneof([sent, {add, list(integer(1, 15))}]))}, begin
        {Waiting, All, Dropped} = lists:foldl(fun
            (sent, {W, Lines, D}) ->
                case ?G:next(W) of
                    none -> {W, [], D};
                    {ok, First} -> First = hd(Lines), {?G:sent(W), tl(Lines), D}
                end;
            ({add, Sizes}, {W0, Lines, D}) ->
                New = [{Size, binary:copy(<<"x">>, Size)} || Size <- Sizes],
                {Now, W} = ?G:add(New, W0),
                {W, kept(Lines ++ New, Most), D + Now}
        end, {?G:new(Most), [], 0}, Steps),
        Added = lists:sum([lists:sum(Sizes) || {add, Sizes} <- Steps]),
        drained(Waiting) =:= All andalso lists:sum([N || {N, _} <- All]) =< Most andalso Dropped >= 0 andalso Dropped =< Added
    end).

kept(Lines, Most) ->
    case lists:sum([N || {N, _} <- Lines]) > Most of
        true -> kept(tl(Lines), Most);
        false -> Lines
    end.

drained(Waiting) ->
    case ?G:next(Waiting) of
        {ok, Lines} -> [Lines | drained(?G:sent(Waiting))];
        none -> []
    end.

it_is_tried_again_less_and_less_often_test() ->
    {Waits, _} = lists:mapfoldl(fun(_, Before) -> Next = ?G:wait(Before), {Next, Next} end, none, lists:seq(1, 9)),
    ?assertEqual([1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000], Waits).

an_address_is_read_test() ->
    Read = fun atoll_watch_graphite_link:address/1,
    ?assertEqual([{ok, {{10, 0, 0, 7}, 2003}}, {ok, {{0, 0, 0, 0, 0, 0, 0, 1}, 1}}, {ok, {"graphite.example", 65535}}], [Read(Text) || Text <- ["10.0.0.7:2003", "[::1]:1", "graphite.example:65535"]]),
    [?assertMatch({Text, {error, "must be a host and a port" ++ _}}, {Text, Read(Text)}) || Text <- ["", "x", "x:", ":1", "x:0", "x:65536", "x:y", "::1:2003", "[::1:2003", "[x]:1", "a b:1", "http://x:80"]].

%% A server

options(Port, Most) ->
    Self = self(),
    Counts = counters:new(2, []),
    {Counts, #{
        to => {{127, 0, 0, 1}, Port}, period => 20, most => Most,
        look => fun() -> N = atomics_next(Self), [seen(a@h, up, #{processes => N})] end,
        count => fun(graphite_sent, N) -> counters:add(Counts, 1, N); (graphite_dropped, N) -> counters:add(Counts, 2, N) end,
        tell => fun(Severity, Text) -> Self ! {told, Severity, unicode:characters_to_binary(Text)} end
    }}.

%% Each look says another value.
atomics_next(Pid) ->
    N = case get(looks) of undefined -> 1; Was -> Was + 1 end,
    put(looks, N),
    Pid ! {looked, N},
    N.

looked(N) ->
    receive {looked, Is} when Is >= N -> Is after ?LATE_MS -> error(late) end.

%% The last look until now; there was one.
looked() -> last(looked(1)).

last(N) ->
    receive {looked, Is} -> last(Is) after 0 -> N end.

listen(Port) ->
    {ok, Socket} = gen_tcp:listen(Port, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {reuseaddr, true}, {packet, line}]),
    {ok, Is} = inet:port(Socket),
    {Socket, Is}.

value(Line) ->
    case re:run(Line, "^atoll.a@h.processes ([0-9]+) ([0-9]+)\n$", [{capture, all_but_first, list}]) of
        {match, [N, _]} -> list_to_integer(N);
        nomatch -> none
    end.

values(Socket, Until) ->
    {ok, Line} = gen_tcp:recv(Socket, 0, ?LATE_MS),
    case value(Line) of
        none -> values(Socket, Until);
        N when N >= Until -> [N];
        N -> [N | values(Socket, Until)]
    end.

ended(Pid) ->
    true = unlink(Pid),
    Ref = monitor(process, Pid),
    true = exit(Pid, shutdown),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

lines_wait_while_the_server_is_away_test_() ->
    {timeout, 60, fun() ->
        {Listener, Port} = listen(atoll_test_port:free()),
        {Counts, Options} = options(Port, 1000000),
        {ok, Pid} = atoll_watch_graphite_link:start_link(Options),
        {ok, First} = gen_tcp:accept(Listener, ?LATE_MS),
        ?assertEqual(lists:seq(1, 5), values(First, 5)),
        %% It goes, and looks go on.
        ok = gen_tcp:close(Listener),
        ok = gen_tcp:close(First),
        receive {told, minor, Away} -> ?assertMatch({match, _}, re:run(Away, "^Graphite at 127.0.0.1:[0-9]+ is not reached: ")) after ?LATE_MS -> error(not_told) end,
        %% Looks have come while it was there, and nobody knows how many.
        Now = looked(looked() + 20),
        {Again, Port} = listen(Port),
        {ok, Second} = gen_tcp:accept(Again, ?LATE_MS),
        [Oldest | _] = Later = values(Second, Now + 5),
        %% All that waited, in order; those that were under way may be lost.
        ?assertEqual(lists:seq(Oldest, Now + 5), Later),
        ?assert(Oldest < Now - 10, {Oldest, Now}),
        receive {told, info, Back} -> ?assertMatch({match, _}, re:run(Back, " is reached again$")) after ?LATE_MS -> error(not_told) end,
        ?assertEqual(0, counters:get(Counts, 2)),
        %% They are counted when they have been sent.
        _ = atoll_watch_peers:await(fun() -> counters:get(Counts, 1) end, fun(Sent) -> Sent >= 2 * length(Later) end),
        ok = ended(Pid),
        [ok = gen_tcp:close(Socket) || Socket <- [Second, Again]]
    end}.

what_has_no_room_is_dropped_and_counted_test_() ->
    {timeout, 60, fun() ->
        Port = atoll_test_port:free(),
        %% Room for some looks.
        {Counts, Options} = options(Port, 300),
        {ok, Pid} = atoll_watch_graphite_link:start_link(Options),
        _ = looked(30),
        {Again, Port} = listen(Port),
        {ok, Socket} = gen_tcp:accept(Again, ?LATE_MS),
        [Oldest | _] = Values = values(Socket, 31),
        ?assert(Oldest > 20, Values),
        %% Two lines of each look.
        ?assert(counters:get(Counts, 2) >= 2 * 20, counters:get(Counts, 2)),
        ok = ended(Pid),
        [ok = gen_tcp:close(Is) || Is <- [Socket, Again]]
    end}.
