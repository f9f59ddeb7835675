%% SPDX-License-Identifier: Apache-2.0
%% Long paths on one machine, between real nodes. Where a machine can have none, every
%% case is skipped, and the reason says why.
%%
%% The machine may be busy: nothing is asserted to be as fast as it might. A packet is
%% never early, one of however many it takes is close to its time, and throughputs are
%% compared with each other.
%%
%% Cases that count packets have a path of their own, on which there has never been a
%% connection: TCP acknowledges, repeats and closes when it sees fit, also after the case
%% that opened it.
-module(atoll_wire_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([
    the_round_trip_is_what_was_asked/1,
    it_changes_while_it_runs/1,
    packets_arrive_in_order_however_they_are_delayed/1,
    a_long_jitter_is_drawn_from_the_whole_of_it/1,
    each_packet_is_lost_with_the_same_probability/1,
    a_stream_is_whole_whatever_was_lost/1,
    packets_are_no_faster_than_the_rate/1,
    what_does_not_fit_the_buffer_is_dropped_and_counted/1,
    the_window_bounds_one_stream_and_not_sixteen/1,
    stock_distribution_takes_the_round_trip/1,
    two_wires_know_nothing_of_each_other/1,
    stop_leaves_nothing/1,
    the_end_of_the_owner_leaves_nothing/1,
    kill_9_of_the_vm_leaves_nothing/1,
    kill_9_of_the_vm_ends_a_wire_that_was_stopped/1,
    a_wire_that_is_killed_takes_its_interfaces_along/1
]).

%% For so long one stream is compared with sixteen, where the machine has other work.
-define(WINDOWS_MS, 120000).
-define(GONE_MS, 5000).
-define(CALL_MS, 60000).
%% How much later than it should the quickest packet of many may be, and how long it is
%% waited for one on a busy machine.
-define(LATE_US, 1500).
-define(QUICK_MS, 15000).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [{group, datagrams}, {group, streams}, {group, going}].

groups() ->
    [{Group, [], cases(Group, atoll_tier:tier())} || Group <- [datagrams, streams, going]].

cases(datagrams, fast) ->
    [
        the_round_trip_is_what_was_asked,
        it_changes_while_it_runs,
        packets_arrive_in_order_however_they_are_delayed,
        each_packet_is_lost_with_the_same_probability,
        what_does_not_fit_the_buffer_is_dropped_and_counted
    ];
cases(datagrams, deep) ->
    cases(datagrams, fast) ++ [a_long_jitter_is_drawn_from_the_whole_of_it];
cases(streams, fast) ->
    [
        a_stream_is_whole_whatever_was_lost,
        packets_are_no_faster_than_the_rate,
        stock_distribution_takes_the_round_trip
    ];
cases(streams, deep) ->
    cases(streams, fast) ++ [the_window_bounds_one_stream_and_not_sixteen];
cases(going, _) ->
    [
        two_wires_know_nothing_of_each_other,
        stop_leaves_nothing,
        the_end_of_the_owner_leaves_nothing,
        kill_9_of_the_vm_leaves_nothing,
        kill_9_of_the_vm_ends_a_wire_that_was_stopped,
        a_wire_that_is_killed_takes_its_interfaces_along
    ].

init_per_suite(Config) ->
    case atoll_wire:available() of
        ok -> Config;
        {error, {unable, _} = Error} -> {skip, sentence(Error)};
        {error, Error} when Error =:= not_root; Error =:= not_linux -> {skip, sentence(Error)};
        {error, Error} -> {fail, sentence(Error)}
    end.

sentence(Error) ->
    lists:flatten(unicode:characters_to_list(atoll_wire:format_error(Error))).

end_per_suite(_Config) ->
    ok.

%% The cases on a path share it, and the nodes at its ends.
init_per_group(going, Config) ->
    Config;
init_per_group(_Path, Config) ->
    Self = self(),
    Cluster = atoll_cluster_owned:start(fun() ->
        {ok, Wire} = atoll_wire:start(#{}),
        Self ! {wire, Wire},
        #{nodes => 2, connect_all => false, hosts => atoll_wire:ends(Wire)}
    end),
    Wire = receive {wire, W} -> W end,
    [#{address := _}, #{address := Address}] = atoll_wire:ends(Wire),
    [{wire, Wire}, {cluster, Cluster}, {there, Address} | Config].

end_per_group(going, _Config) ->
    ok;
end_per_group(_Path, Config) ->
    atoll_cluster_owned:stop(?config(cluster, Config)).

init_per_testcase(_Case, Config) ->
    case ?config(wire, Config) of
        undefined -> ok;
        Wire -> ok = atoll_wire:set(Wire, #{rtt_ms => 0, jitter_ms => 0, loss => 0, rate_mbit => 0, buffer => 1048576})
    end,
    Config.

end_per_testcase(_Case, _Config) ->
    ok.

%% What a path is like

the_round_trip_is_what_was_asked(Config) ->
    Port = there(Config, echo, []),
    Told = [
        begin
            ok = atoll_wire:set(?config(wire, Config), #{rtt_ms => Ms}),
            {Ms, quickest(Ms, fun() -> here(Config, round_trips, [?config(there, Config), Port, Count]) end)}
        end
     || {Ms, Count} <- [{1, 100}, {20, 10}, {0.5, 100}]
    ],
    {comment, io_lib:format("~w", [Told])}.

%% The quickest of the times that are measured, until it is close to what was asked for;
%% none is below.
quickest(Ms, Measure) ->
    quickest(Ms, Measure, deadline(?QUICK_MS)).

quickest(Ms, Measure, Deadline) ->
    Quickest = lists:min(Measure()),
    ?assert(Quickest >= Ms * 1000, {Ms, Quickest}),
    case Quickest =< Ms * 1000 + ?LATE_US of
        true -> Quickest;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, {Ms, Quickest}),
            quickest(Ms, Measure, Deadline)
    end.

it_changes_while_it_runs(Config) ->
    Wire = ?config(wire, Config),
    Port = there(Config, echo, []),
    About = fun(Ms) -> quickest(Ms, fun() -> here(Config, round_trips, [?config(there, Config), Port, 10]) end) end,
    ok = atoll_wire:set(Wire, #{rtt_ms => 40}),
    _ = About(40),
    ok = atoll_wire:set(Wire, #{rtt_ms => 10}),
    _ = About(10),
    ok = atoll_wire:set(Wire, #{loss => 1}),
    Before = counters(Wire),
    {_, Collecting} = there(Config, collect, []),
    ok = here(Config, burst, [?config(there, Config), Collecting, 10, 100]),
    ?assertEqual(#{taken => 10, lost => 10, given => 0}, maps:with([taken, lost, given], await_since(Before, Wire, 10))),
    ok = atoll_wire:set(Wire, #{loss => 0}),
    _ = About(10),
    ?assertMatch({error, {bad_option, loss, _}}, atoll_wire:set(Wire, #{loss => 2})).

packets_arrive_in_order_however_they_are_delayed(Config) ->
    Wire = ?config(wire, Config),
    ok = atoll_wire:set(Wire, #{rtt_ms => 2, jitter_ms => 10}),
    Port = there(Config, echo, []),
    Times = here(Config, round_trips, [?config(there, Config), Port, 100]),
    ?assert(lists:min(Times) >= 2000),
    %% Two draws of up to 5 ms.
    ?assert(lists:max(Times) - lists:min(Times) > 3000, Times),
    Before = counters(Wire),
    {Pid, Collecting} = there(Config, collect, []),
    ok = here(Config, burst, [?config(there, Config), Collecting, 500, 100]),
    #{given := 500} = await_since(Before, Wire, 500),
    %% A path that gets shorter lets nobody overtake.
    ok = here(Config, burst, [?config(there, Config), Collecting, 1, 100]),
    ok = atoll_wire:set(Wire, #{rtt_ms => 0, jitter_ms => 0}),
    ok = here(Config, burst, [?config(there, Config), Collecting, 2, 100]),
    #{given := 503} = await_since(Before, Wire, 503),
    ?assertEqual(lists:seq(1, 500) ++ [1, 1, 2], there(Config, collected, [Pid, 503])).

%% Of 200 draws of up to 5 s one is above what 32 bits hold in nanoseconds.
a_long_jitter_is_drawn_from_the_whole_of_it(Config) ->
    Wire = ?config(wire, Config),
    ok = atoll_wire:set(Wire, #{jitter_ms => 10000}),
    {Pid, Port} = there(Config, collect, []),
    Before = counters(Wire),
    Started = erlang:monotonic_time(millisecond),
    ok = here(Config, burst, [?config(there, Config), Port, 200, 100]),
    #{given := 200} = await_since(Before, Wire, 200),
    Took = erlang:monotonic_time(millisecond) - Started,
    ?assert(Took > 4400, Took),
    ?assertEqual(lists:seq(1, 200), there(Config, collected, [Pid, 200])).

each_packet_is_lost_with_the_same_probability(Config) ->
    Wire = ?config(wire, Config),
    {_, Port} = there(Config, collect, []),
    Shares = [
        begin
            ok = atoll_wire:set(Wire, #{loss => Loss}),
            Before = counters(Wire),
            ok = here(Config, burst, [?config(there, Config), Port, 4000, 50]),
            #{taken := 4000, lost := Lost, given := Given} = await_since(Before, Wire, 4000),
            ?assertEqual(4000, Lost + Given),
            %% Five standard deviations.
            ?assert(abs(Lost - 4000 * Loss) =< 5 * math:sqrt(4000 * Loss * (1 - Loss)), {Loss, Lost}),
            {Loss, Lost / 4000}
        end
     || Loss <- [0.01, 0.2]
    ],
    {comment, io_lib:format("~w", [Shares])}.

%% Large segments that lose packets are cut into what is left of them.
a_stream_is_whole_whatever_was_lost(Config) ->
    Wire = ?config(wire, Config),
    ok = atoll_wire:set(Wire, #{rtt_ms => 1, loss => 0.01}),
    Port = there(Config, digest, []),
    Before = counters(Wire),
    {true, _} = here(Config, send, [?config(there, Config), Port, 8000000]),
    #{taken := Taken, lost := Lost, taken_bytes := Bytes, refused := 0, crowded := 0} = since(Before, Wire),
    %% As many packets as would have crossed a wire of copper: 1,448 bytes each, or less.
    ?assert(Taken >= 8000000 / 1448, Taken),
    ?assert(Bytes >= 8000000 + Taken * 40),
    ?assert(Lost > 20 andalso abs(Lost - Taken * 0.01) =< 5 * math:sqrt(Taken * 0.01), {Lost, Taken}).

packets_are_no_faster_than_the_rate(Config) ->
    Wire = ?config(wire, Config),
    ok = atoll_wire:set(Wire, #{rtt_ms => 2, rate_mbit => 80, buffer => 200000}),
    Port = there(Config, digest, []),
    %% 10 MB/s, less 52 of each 1,500 bytes. The quickest of some, as the machine may have other work.
    Rates = [
        begin
            {true, Us} = here(Config, send, [?config(there, Config), Port, 10000000]),
            10000000 / Us
        end
     || _ <- [1, 2, 3]
    ],
    Rate = lists:max(Rates),
    ?assert(Rate =< 10 * 1448 / 1500, Rates),
    ?assert(Rate >= 5, Rates),
    {comment, io_lib:format("~.2f MB/s of 10", [Rate])}.

what_does_not_fit_the_buffer_is_dropped_and_counted(Config) ->
    Wire = ?config(wire, Config),
    %% A packet of 1,028 bytes takes 82 ms, ten may wait.
    ok = atoll_wire:set(Wire, #{rate_mbit => 0.1, buffer => 10280}),
    {Pid, Port} = there(Config, collect, []),
    Before = counters(Wire),
    Began = erlang:monotonic_time(millisecond),
    ok = here(Config, burst, [?config(there, Config), Port, 200, 1000]),
    _ = await(fun(#{taken := Taken}) -> Taken =:= 200 end, Before, Wire),
    Took = erlang:monotonic_time(millisecond) - Began,
    #{given := Given, full := Full} = await_since(Before, Wire, 200),
    ?assertEqual(200, Given + Full),
    %% Were the sender slow, some would have left before the last one came.
    ?assert(Given >= 10 andalso Given =< 10 + (Took + 1) div 82, {Given, Took}),
    %% The first ones found room.
    ?assertEqual(lists:seq(1, 10), lists:sublist(there(Config, collected, [Pid, Given]), 10)).

%% The kernel lets one connection have so many bytes under way, and no more: 4 MiB of its
%% memory, which hold less of data. At 20 ms those are up to 180 MB/s; a busy machine
%% carries no multiple of that, so the two are compared at 100 ms, at their best.
the_window_bounds_one_stream_and_not_sixteen(Config) ->
    Port = there(Config, sink, []),
    Near = poured(Config, Port, 20, 1),
    {One, Sixteen} = windows(Config, Port, {0, 0}, erlang:monotonic_time(millisecond) + ?WINDOWS_MS),
    ct:pal("MB/s of one stream at 20 ms ~.1f, at 100 ms ~.1f, of sixteen there ~.1f", [Near, One, Sixteen]),
    ?assert(Near =< 215, Near),
    ?assert(One =< 43, One),
    ?assert(Sixteen >= 2 * One, {One, Sixteen}),
    {comment, io_lib:format("~.1f MB/s at 20 ms, ~.1f at 100 ms, sixteen streams ~.1f", [Near, One, Sixteen])}.

windows(Config, Port, {One0, Sixteen0}, Deadline) ->
    One = max(One0, poured(Config, Port, 100, 1)),
    Sixteen = max(Sixteen0, poured(Config, Port, 100, 16)),
    case One > 20 andalso Sixteen > 3 * One orelse erlang:monotonic_time(millisecond) > Deadline of
        true -> {One, Sixteen};
        false -> windows(Config, Port, {One, Sixteen}, Deadline)
    end.

%% The most of some windows of time, which are several round trips each.
poured(Config, Port, Ms, Streams) ->
    ok = atoll_wire:set(?config(wire, Config), #{rtt_ms => Ms}),
    Pid = here(Config, pour, [?config(there, Config), Port, Streams]),
    Rates = [there(Config, rate, [500]) || _ <- lists:seq(1, 6)],
    true = atoll_cluster:call(?config(cluster, Config), node_of(1, Config), erlang, exit, [Pid, kill]),
    lists:max(Rates) / 1000000.

stock_distribution_takes_the_round_trip(Config) ->
    Cluster = ?config(cluster, Config),
    [Here, There] = atoll_cluster:nodes(Cluster),
    ?assertMatch([_, _], string:split(atom_to_list(There), "@10.0.0.2")),
    [
        begin
            ok = atoll_wire:set(?config(wire, Config), #{rtt_ms => Ms}),
            pong = atoll_cluster:call(Cluster, Here, net_adm, ping, [There]),
            quickest(Ms, fun() ->
                [element(1, atoll_cluster:call(Cluster, Here, timer, tc, [net_adm, ping, [There]])) || _ <- lists:seq(1, Count)]
            end)
        end
     || {Ms, Count} <- [{1, 50}, {20, 10}]
    ].

%% What becomes of it

two_wires_know_nothing_of_each_other(_Config) ->
    {ok, One} = atoll_wire:start(#{rtt_ms => 1}),
    {ok, Other} = atoll_wire:start(#{rtt_ms => 1}),
    [Host | _] = atoll_wire:ends(One),
    %% Both port mappers listen on the same port of the same address.
    {0, _} = run(Host, ["epmd", "-names"]),
    ok = atoll_wire:stop(Other),
    {0, _} = run(Host, ["epmd", "-names"]),
    ok = atoll_wire:stop(One),
    {1, _} = run(Host, ["epmd", "-names"]).

stop_leaves_nothing(_Config) ->
    {ok, Wire} = atoll_wire:start(#{}),
    OsPid = atoll_wire:os_pid(Wire),
    Spaces = spaces(OsPid),
    ?assertEqual(lists:sort([OsPid | children(OsPid)]), within(Spaces)),
    ?assertMatch([_, _], children(OsPid)),
    ok = atoll_wire:stop(Wire),
    ?assertEqual([], within(Spaces)),
    ok = atoll_wire:stop(Wire).

the_end_of_the_owner_leaves_nothing(_Config) ->
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        {ok, Wire} = atoll_wire:start(#{}),
        Self ! {self(), Wire, atoll_wire:os_pid(Wire)},
        receive stop -> ok end
    end),
    {Wire, OsPid} = receive {Owner, W, P} -> {W, P} after ?CALL_MS -> error(no_wire) end,
    Spaces = spaces(OsPid),
    Down = monitor(process, Wire),
    Owner ! stop,
    receive {'DOWN', Ref, process, Owner, normal} -> ok end,
    receive {'DOWN', Down, process, Wire, normal} -> ok end,
    ?assertEqual([], within(Spaces)).

kill_9_of_the_vm_leaves_nothing(_Config) ->
    {Vm, _Wire, Spaces} = hold(),
    %% The wire, its port mappers and the nodes.
    ?assert(length(within(Spaces)) >= 5),
    ok = kill_9(atoll_cluster_holder:os_pid(Vm)),
    ?assertEqual([], await_none(Spaces)),
    atoll_cluster_holder:close(Vm).

%% It cannot see that its standard input has ended.
kill_9_of_the_vm_ends_a_wire_that_was_stopped(_Config) ->
    {Vm, Wire, Spaces} = hold(),
    [] = os:cmd("kill -STOP " ++ integer_to_list(Wire)),
    ok = kill_9(atoll_cluster_holder:os_pid(Vm)),
    ?assertEqual([], await_none(Spaces)),
    atoll_cluster_holder:close(Vm).

a_wire_that_is_killed_takes_its_interfaces_along(_Config) ->
    {ok, Wire} = atoll_wire:start(#{}),
    OsPid = atoll_wire:os_pid(Wire),
    Spaces = spaces(OsPid),
    {ok, Cluster} = atoll_cluster:start(#{nodes => 2, connect_all => false, hosts => atoll_wire:ends(Wire)}),
    [Node, Other] = atoll_cluster:nodes(Cluster),
    Interfaces = fun() ->
        {ok, Named} = atoll_cluster:call(Cluster, Node, inet, getiflist, []),
        lists:sort(Named)
    end,
    ?assertEqual(["lo", "wire"], Interfaces()),
    Down = monitor(process, Wire),
    ok = kill_9(OsPid),
    receive {'DOWN', Down, process, Wire, {wire_ended, _}} -> ok after ?GONE_MS -> error(still_there) end,
    ?assertEqual(["lo"], Interfaces()),
    ?assertEqual(pang, atoll_cluster:call(Cluster, Node, net_adm, ping, [Other])),
    ok = atoll_cluster:stop(Cluster),
    ?assertEqual([], await_none(Spaces)).

%% Helpers

node_of(N, Config) ->
    lists:nth(N, atoll_cluster:nodes(?config(cluster, Config))).

here(Config, Function, Args) -> on(1, Config, Function, Args).
there(Config, Function, Args) -> on(2, Config, Function, Args).

on(N, Config, Function, Args) ->
    atoll_cluster:call(?config(cluster, Config), node_of(N, Config), atoll_wire_probe, Function, Args, ?CALL_MS).

%% Those from the first end to the second.
counters(Wire) ->
    hd(atoll_wire:counters(Wire)).

since(Before, Wire) ->
    maps:map(fun(Key, Count) -> Count - map_get(Key, Before) end, counters(Wire)).

%% Returns when so many packets have been taken, and each has met its fate. Beside those
%% of the test there are none.
await_since(Before, Wire, Packets) ->
    await(fun(#{taken := Taken, given := Given, lost := Lost, full := Full}) ->
        {Taken, Given + Lost + Full} =:= {Packets, Packets}
    end, Before, Wire).

await(Is, Before, Wire) ->
    await(Is, Before, Wire, deadline(?CALL_MS)).

await(Is, Before, Wire, Deadline) ->
    Since = since(Before, Wire),
    case Is(Since) of
        true -> Since;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, Since),
            receive after 5 -> ok end,
            await(Is, Before, Wire, Deadline)
    end.

hold() ->
    Vm = atoll_cluster_holder:start(#{cluster => #{nodes => 2, wire => #{rtt_ms => 1}}}),
    Wire = atoll_cluster_holder:wait_for(Vm, wire),
    #{nodes := [_, _]} = atoll_cluster_holder:wait_for(Vm, started),
    {Vm, Wire, spaces(Wire)}.

kill_9(OsPid) ->
    {ok, Start} = atoll_cluster_os:start_time(OsPid),
    atoll_cluster_os:signal({OsPid, Start}, kill).

%% The two namespaces of a wire, as the kernel names them. The calling process holds them as long as
%% it lives: the name of one that is gone is given to the next, which may be anybody's.
spaces(OsPid) ->
    Own = space(integer_to_list(OsPid)),
    Dir = "/proc/" ++ integer_to_list(OsPid) ++ "/fd",
    {ok, Fds} = file:list_dir(Dir),
    Held = [File || Fd <- Fds, File <- [filename:join(Dir, Fd)], {ok, "net:" ++ _} <- [file:read_link(File)]],
    _ = [{ok, _} = file:open(File, [read, raw]) || File <- Held],
    Spaces = lists:usort([Link || File <- Held, {ok, Link} <- [file:read_link(File)]]),
    ?assertMatch([_, _], Spaces),
    %% Not those of this machine.
    ?assertNot(lists:member(space("self"), Spaces)),
    ?assert(lists:member(Own, Spaces)),
    Spaces.

space(Pid) ->
    case file:read_link("/proc/" ++ Pid ++ "/ns/net") of
        {ok, Link} -> Link;
        {error, _} -> none
    end.

%% The processes in them.
within(Spaces) ->
    {ok, Names} = file:list_dir("/proc"),
    lists:sort([list_to_integer(Name) || [C | _] = Name <- Names, C >= $0, C =< $9, lists:member(space(Name), Spaces)]).

await_none(Spaces) ->
    await_none(Spaces, deadline(?GONE_MS)).

await_none(Spaces, Deadline) ->
    Within = within(Spaces),
    case Within =:= [] orelse erlang:monotonic_time(millisecond) > Deadline of
        true -> Within;
        false ->
            receive after 10 -> ok end,
            await_none(Spaces, Deadline)
    end.

children(OsPid) ->
    Text = integer_to_list(OsPid),
    {ok, Children} = file:read_file(filename:join(["/proc", Text, "task", Text, "children"])),
    [binary_to_integer(Pid) || Pid <- binary:split(Children, <<" ">>, [global, trim_all])].

deadline(Ms) ->
    erlang:monotonic_time(millisecond) + Ms.

%% A command in an end: its exit status, and what it said.
run(#{wrap := [Program | Args]}, Command) ->
    Port = open_port({spawn_executable, Program}, [{args, Args ++ Command}, exit_status, stderr_to_stdout, binary]),
    ran(Port, <<>>).

ran(Port, Said) ->
    receive
        {Port, {data, Data}} -> ran(Port, <<Said/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Said}
    after ?CALL_MS -> error({silent, Said})
    end.
