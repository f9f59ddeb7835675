%% SPDX-License-Identifier: Apache-2.0
%% The interpreter, with a protocol made for it: it does what it is told.
-module(atoll_interpreter_tests).

-behaviour(atoll_protocol).
-behaviour(atoll_interpreter).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, handle/3, wire/0, encode/2, decode/2]).
-export([log/2]).
-export([open/1, act/2, event/2]).

%% The protocol: performs the effects it is asked for, and tells what it saw.

init(Effects, _Now) -> {0, Effects}.

handle({call, From, {do, Effects}}, _Now, N) ->
    {N + 1, Effects ++ [{reply, From, N + 1}]};
handle({cast, {do, Effects}}, _Now, N) ->
    {N + 1, Effects};
handle({message, Peer, Message}, _Now, N) ->
    {N + 1, [{notify, {got, Peer, Message}}]};
handle({timeout, Key}, Now, N) ->
    {N + 1, [{notify, {timeout, Key, Now}}]};
handle({up, Node}, _Now, N) ->
    {N + 1, [{notify, {up, Node}}]};
handle({down, Node, Reason}, _Now, N) ->
    {N + 1, [{notify, {down, Node, Reason}}]}.

wire() -> {1, 3}.

encode(Message, 3) -> Message;
encode(Message, Version) -> {in, Version, Message}.

decode(Message, 3) -> Message;
decode({in, Version, Message}, Version) -> Message.

%% The process.

open(_Effects) -> [].

act(Effect, Deeds) ->
    [Effect | Deeds].

event({outside, Event}, Deeds) ->
    {[Event], Deeds};
event({deeds, Pid}, Deeds) ->
    Pid ! {deeds, lists:reverse(Deeds)},
    {[], Deeds}.

all_test_() ->
    {foreach, fun start/0, fun stop/1, [
        fun(_) -> {Title, Test} end
     || {Title, Test} <- [
            {"a call is answered by the protocol", fun answers/0},
            {"a message to oneself arrives as a peer's", fun sends/0},
            {"a send without a connection is dropped and counted", fun drops/0},
            {"a timer fires once", fun fires/0},
            {"a timer that is set again fires later and once", fun fires_again/0},
            {"a cancelled timer does not fire", fun cancels/0},
            {"a timer of no time comes after what is there already, and at once if nothing is", fun fires_at_once/0},
            {"a timer of no time fires once, and not if it is taken back", fun at_once_once/0},
            {"other effects go to the process module in order", fun acts/0},
            {"a message is an event if the process module says so", fun events/0},
            {"an unknown message ends the process", fun crashes/0},
            {"a subscriber hears each notice once, until it leaves", fun subscribes/0},
            {"what a subscriber's end leaves is cleaned", fun subscriber_ends/0},
            {"a recording replays with the same effects", fun replays/0},
            {"a recording is bounded and says what it lost", fun bounded/0},
            {"a recording in a file replays with the same effects", fun file_replays/0},
            {"a recording in a file is ended by the next one", fun file_replaced/0},
            {"a process that crashes ends its file", fun file_of_the_dead/0},
            {"a file that cannot be written ends the recording and nothing else", fun file_fails/0},
            {"a file that cannot be made is told", fun file_refused/0},
            {"of a peer that is too new it is said once, and counted what is dropped", fun newer/0},
            {"messages of an older version are written and read by the protocol's functions", fun older/0}
        ]
    ]}.

start() ->
    {ok, Pid} = atoll_interpreter:start_link(#{
        name => server, protocol => ?MODULE, process => ?MODULE, config => []
    }),
    true = unlink(Pid),
    Pid.

stop(Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.


%% The test's process is the subscriber: eunit runs each in a process of its own.
here(Fun) ->
    ok = atoll_interpreter:subscribe(server),
    Fun().

do(Effects) ->
    atoll_interpreter:call(server, {do, Effects}).

notice() ->
    receive
        {atoll, server, Notice} -> Notice
    after 5000 -> error(no_notice)
    end.

%% Everything the server did until now has been heard.
barrier() ->
    _ = do([{notify, barrier}]),
    barrier([]).

barrier(Seen) ->
    case notice() of
        barrier -> lists:reverse(Seen);
        Notice -> barrier([Notice | Seen])
    end.

answers() ->
    ?assertEqual(1, do([])),
    ?assertEqual(2, do([])).

sends() ->
    here(fun() ->
        _ = do([{send, node(), hello}]),
        ?assertEqual({got, node(), hello}, notice()),
        ?assertMatch(#{sent := 1, received := 1}, atoll_interpreter:counters(server))
    end).

drops() ->
    _ = do([{send, 'nobody@nowhere', hello}]),
    ?assertMatch(#{sent := 0, dropped_noconnection := 1}, atoll_interpreter:counters(server)).

fires() ->
    here(fun() ->
        _ = do([{timer, k, 1}]),
        ?assertMatch({timeout, k, _}, notice()),
        ?assertEqual([], barrier())
    end).

fires_again() ->
    here(fun() ->
        _ = do([{timer, k, 1000000}, {timer, k, 1}]),
        ?assertMatch({timeout, k, _}, notice()),
        ?assertEqual([], barrier())
    end).

cancels() ->
    here(fun() ->
        %% The second timer is set after the first, with the same time.
        _ = do([{timer, a, 1}, {timer, b, 1}, {cancel, a}]),
        ?assertMatch({timeout, b, _}, notice()),
        ?assertEqual([], barrier())
    end).

fires_at_once() ->
    here(fun() ->
        ok = sys:suspend(server),
        ok = atoll_interpreter:cast(server, {do, [{timer, k, 0}, {notify, first}]}),
        ok = atoll_interpreter:cast(server, {do, [{notify, second}]}),
        ok = sys:resume(server),
        ?assertMatch([first, second, {timeout, k, _}], [notice() || _ <- [1, 2, 3]]),
        _ = do([{timer, a, 0}, {timer, b, 0}]),
        ?assertMatch([{timeout, a, _}, {timeout, b, _}], barrier())
    end).

at_once_once() ->
    here(fun() ->
        _ = do([{timer, k, 0}, {timer, k, 0}]),
        ?assertMatch([{timeout, k, _}], barrier()),
        _ = do([{timer, k, 0}, {cancel, k}]),
        _ = do([{timer, k, 0}, {timer, k, 100000}]),
        ?assertEqual([], barrier())
    end).

acts() ->
    _ = do([{want, n1}, {act, {dance, 2}}, {unwant, n1}]),
    server ! {deeds, self()},
    receive
        {deeds, Deeds} -> ?assertEqual([{want, n1}, {act, {dance, 2}}, {unwant, n1}], Deeds)
    after 5000 -> error(no_answer)
    end.

events() ->
    here(fun() ->
        server ! {outside, {up, n7}},
        ?assertEqual({up, n7}, notice())
    end).

crashes() ->
    Ref = monitor(process, server),
    ok = atoll_quiet:run(fun() ->
        server ! nonsense,
        receive
            {'DOWN', Ref, process, _, {function_clause, _}} -> ok
        after 5000 -> alive
        end
    end).

subscribes() ->
    here(fun() ->
        ok = atoll_interpreter:subscribe(server),
        _ = do([{notify, once}]),
        ?assertEqual([once], barrier()),
        ok = atoll_interpreter:unsubscribe(server),
        _ = do([{notify, twice}]),
        receive
            {atoll, server, twice} -> error(still_subscribed)
        after 0 -> ok
        end
    end).

subscriber_ends() ->
    Parent = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        ok = atoll_interpreter:subscribe(server),
        Parent ! ready
    end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> ok
    end,
    %% The server still answers after it was told of the end.
    ?assertEqual(1, do([])).

replays() ->
    ok = atoll_interpreter:record(server, 100),
    _ = do([{timer, k, 100000}, {notify, x}]),
    _ = do([{send, node(), hello}]),
    _ = do([]),
    {ok, Recording} = atoll_interpreter:recording(server),
    ?assertMatch(#{lost := 0, events := [_, _ | _]}, Recording),
    ?assertEqual(ok, atoll_protocol:replay(?MODULE, Recording)),
    %% And it would notice a difference.
    #{events := [{Event, Now, _} | Rest]} = Recording,
    Forged = Recording#{events := [{Event, Now, [{notify, forged}]} | Rest]},
    ?assertMatch({differs, 1, [{notify, forged}], _}, atoll_protocol:replay(?MODULE, Forged)).

bounded() ->
    ?assertEqual({error, not_recording}, atoll_interpreter:recording(server)),
    ok = atoll_interpreter:record(server, 2),
    _ = [do([]) || _ <- lists:seq(1, 5)],
    {ok, Recording} = atoll_interpreter:recording(server),
    ?assertMatch(#{lost := 3, events := [_, _]}, Recording),
    ok = atoll_interpreter:record(server, off),
    ?assertEqual({error, not_recording}, atoll_interpreter:recording(server)).

in_folder(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, "atoll_test"), "interpreter-" ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    try
        Fun(filename:join(Dir, "recording"))
    after
        ok = file:del_dir_r(Dir)
    end.

file_replays() ->
    in_folder(fun(Path) ->
        _ = do([]),
        ok = atoll_interpreter:record(server, {file, Path, 1000000}),
        _ = [do([{timer, k, 100000}, {notify, N}, {send, node(), hello}]) || N <- lists:seq(1, 20)],
        ?assertMatch({file, #{lost := 0}}, atoll_interpreter:recording(server)),
        {ok, #{events := Events, lost := 0, bytes := Bytes}} = atoll_interpreter:record(server, off),
        %% The calls, and the messages that they sent.
        ?assert(Events >= 20),
        ?assertEqual(Bytes, filelib:file_size(Path)),
        {ok, #{node := Node, otp := Otp, state := 1} = Read, complete} = atoll_recording:read(Path),
        ?assertEqual({node(), erlang:system_info(otp_release)}, {Node, Otp}),
        Recording = maps:with([protocol, state, events, lost], Read),
        ?assertMatch(#{protocol := ?MODULE, lost := 0}, Recording),
        ?assertEqual(Events, length(maps:get(events, Recording))),
        ?assertEqual(ok, atoll_protocol:replay(?MODULE, Recording)),
        ?assertEqual(ok, atoll_interpreter:record(server, off)),
        ?assertEqual({error, not_recording}, atoll_interpreter:recording(server))
    end).

file_replaced() ->
    in_folder(fun(Path) ->
        ok = atoll_interpreter:record(server, {file, Path, 1000000}),
        _ = do([]),
        ok = atoll_interpreter:record(server, {file, Path ++ "2", 1000000}),
        ?assertMatch({ok, #{events := [_]}, complete}, atoll_recording:read(Path)),
        ok = atoll_interpreter:record(server, 10),
        ?assertMatch({ok, #{events := []}, complete}, atoll_recording:read(Path ++ "2"))
    end).

file_of_the_dead() ->
    in_folder(fun(Path) ->
        ok = atoll_interpreter:record(server, {file, Path, 1000000}),
        _ = do([]),
        crashes(),
        ?assertMatch({ok, #{events := [_]}, complete}, atoll_recording:read(Path))
    end).

file_fails() ->
    ok = atoll_interpreter:record(server, {file, "/dev/full", 100000000}),
    ok = atoll_quiet:run(fun() ->
        Large = binary:copy(<<0>>, 100000),
        _ = [do([{notify, Large}]) || _ <- lists:seq(1, 5)],
        ok
    end),
    Error = {"/dev/full", {unwritable, enospc}},
    ?assertEqual({error, Error}, atoll_interpreter:recording(server)),
    ?assertEqual({error, Error}, atoll_interpreter:record(server, off)),
    ?assertEqual({error, not_recording}, atoll_interpreter:recording(server)),
    %% The same process.
    ?assertEqual(6, do([])).

file_refused() ->
    ?assertEqual(
        {error, {"/no/such/folder/x", {unwritable, enoent}}},
        atoll_interpreter:record(server, {file, "/no/such/folder/x", 1000})
    ),
    ?assertEqual({error, not_recording}, atoll_interpreter:recording(server)).

newer() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    {ok, #{level := Level}} = logger:get_handler_config(default),
    ok = logger:set_handler_config(default, level, none),
    try
        here(fun() ->
            server ! {outside, {up, 'n@new'}},
            _ = [server ! {atoll, 16#050404, 'n@new', anything} || _ <- [1, 2, 3]],
            _ = do([{send, 'n@new', hello}]),
            ?assertEqual([{up, 'n@new'}, {down, 'n@new', no_common_version}], barrier()),
            ?assertMatch(#{dropped_version := 4, received := 0, sent := 0}, atoll_interpreter:counters(server)),
            ?assertEqual(#{'n@new' => {none, {4, 5}}, node() => 3}, atoll_interpreter:versions(server)),
            ?assertMatch([#{what := no_common_version, protocol := server, peer := 'n@new', theirs := {4, 5}, ours := {1, 3}}], logged()),
            server ! {outside, {down, 'n@new', gone}},
            ?assertEqual([], barrier()),
            ?assertEqual(#{node() => 3}, atoll_interpreter:versions(server))
        end)
    after
        ok = logger:set_handler_config(default, level, Level),
        ok = logger:remove_handler(?MODULE)
    end.

log(#{msg := {report, Report}}, #{config := Pid}) -> Pid ! {logged, Report};
log(_, _) -> ok.

logged() ->
    receive
        {logged, Report} -> [Report | logged()]
    after 0 -> []
    end.

older() ->
    here(fun() ->
        server ! {atoll, 1, 'n@old', {in, 1, hello}},
        ?assertEqual({got, 'n@old', hello}, notice()),
        server ! {atoll, 16#020102, 'n@later', {in, 2, hello}},
        ?assertEqual({got, 'n@later', hello}, notice()),
        %% Of the newest version it is itself.
        _ = do([{send, node(), {in, 3}}]),
        ?assertEqual({got, node(), {in, 3}}, notice()),
        ?assertEqual(#{'n@old' => 1, 'n@later' => 2, node() => 3}, atoll_interpreter:versions(server))
    end).
