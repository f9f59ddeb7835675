%% SPDX-License-Identifier: Apache-2.0
%% From measurements to findings: what was at its limit is named with the numbers, causes come before what follows from
%% them, and what was far from a limit is not named.
-module(atoll_scale_advise_tests).

-include_lib("eunit/include/eunit.hrl").

%% A service that has failed for no reason that can be seen.
machine() ->
    #{
        ms => 3100, cores => 2, service_cpu => 0.3, load_cpu => 0.4,
        files => [#{name => <<"beam.smp">>, most => 120, limit => 1024}],
        load_files => #{most => 300, limit => 65536},
        listeners => [#{port => 9999, backlog => 128, most => 7}],
        overflows => 0, somaxconn => 4096, outgoing => #{most => 500, of_all => 28232},
        service_memory => 100000000, available => 12000000000, memory => 24000000000
    }.

node_of() ->
    #{
        name => <<"shop@127.0.0.1">>, looks => 50, schedulers => 2, utilisation => 0.2, run_queue => 3,
        mailboxes => [mailbox(<<"a">>, 5, 3), mailbox(<<"b">>, 4, 2)],
        limits => [#{what => processes, most => 900, limit => 262144}, #{what => ports, most => 130, limit => 65536}],
        memory => #{total => 50000000}, collections => 20.0, connections => [#{peer => <<"b@h">>, most => 100, limit => 1048576}], suspended => 0
    }.

mailbox(Name, Most, Had) -> #{name => Name, most => Most, had => Had, looks => 50, work => 0.43, current => <<"shop:serve/0">>}.

run(Machine, Node) -> run(Machine, Node, #{}).

run(Machine, Node, Reasons) ->
    #{level => 64, passed => false, why => [<<"2 % failed">>], load => #{requests => 100, failures => 2, reasons => Reasons}, machine => Machine, node => Node}.

causes(Runs) -> [Cause || #{cause := Cause} <- atoll_scale_advise:findings(Runs)].

said(Run) ->
    [#{says := Says} | _] = atoll_scale_advise:findings([Run]),
    unicode:characters_to_list(Says).

what_is_far_from_its_limits_is_not_named_test() ->
    ?assertEqual([], causes([run(machine(), node_of()), run(machine(), none)])),
    ?assertEqual([], causes([])).

a_full_backlog_that_overflowed_is_named_with_its_port_test() ->
    Machine = (machine())#{listeners := [#{port => 80, backlog => 128, most => 3}, #{port => 9999, backlog => 5, most => 6}], overflows := 812},
    ?assertEqual([backlog], causes([run(Machine, none)])),
    ?assertEqual("The listen queue of port 9999 has room for 5 connections, had 6, and overflowed 812 times in 3.10 s.", said(run(Machine, none))),
    [#{change := Change}] = atoll_scale_advise:findings([run(Machine, none)]),
    ?assertEqual(<<"Raise the backlog of that listen socket.">>, Change).

a_backlog_that_the_kernel_bounds_names_the_setting_test() ->
    Machine = (machine())#{listeners := [#{port => 9999, backlog => 128, most => 129}], overflows := 3, somaxconn := 128},
    [#{change := Change}] = atoll_scale_advise:findings([run(Machine, none)]),
    ?assertEqual(<<"Raise the backlog of that listen socket, and net.core.somaxconn, which is 128.">>, Change).

an_overflow_of_which_no_look_saw_the_queue_is_told_so_test() ->
    ?assertEqual("Listen queues of this machine overflowed 3 times in 3.10 s; no look saw which. That of port 9999 had up to 7 of 128 connections.", said(run((machine())#{overflows := 3}, none))).

%% The nearest to full, not the shortest: a node has a port of its own for others.
of_several_queues_the_one_that_was_nearest_to_full_is_named_test() ->
    Listeners = [#{port => 8081, backlog => 1024, most => 1000}, #{port => 43210, backlog => 128, most => 1}],
    ?assertMatch([#{cause := backlog, subject := <<"8081">>}], atoll_scale_advise:findings([run((machine())#{overflows := 3, listeners := Listeners}, none)])).

an_overflow_beside_empty_queues_is_somebody_elses_test() ->
    Empty = [#{port => 8081, backlog => 1024, most => 0}],
    ?assertEqual([], causes([run((machine())#{overflows := 1, listeners := Listeners}, none) || Listeners <- [Empty, []]])).

%% What breaks at twice the limit is told after what breaks at it.
what_breaks_far_beyond_the_limit_comes_last_with_its_level_test() ->
    Slow = run(machine(), (node_of())#{mailboxes := [mailbox(<<"stock">>, 500, 49), mailbox(<<"b">>, 3, 2)]}),
    Far = (run((machine())#{files := [#{name => <<"beam.smp">>, most => 1024, limit => 1024}]}, none))#{level := 1024},
    [#{cause := process}, #{cause := files, says := Says}] = atoll_scale_advise:findings([Slow, Slow], [Far, Slow#{level := 2048}]),
    ?assertEqual(<<"At 1,024, and not where it first failed: beam.smp had 1,024 of 1,024 files open.">>, Says).

files_at_their_limit_are_named_with_the_process_test() ->
    Machine = (machine())#{files := [#{name => <<"beam.smp">>, most => 1019, limit => 1024}, #{name => <<"sh">>, most => 4, limit => 1024}]},
    ?assertEqual("beam.smp had 1,019 of 1,024 files open.", said(run(Machine, none))),
    ?assertEqual([files], causes([run(Machine, node_of())])),
    ?assertEqual([], causes([run((machine())#{files := [#{name => <<"sh">>, most => 5000, limit => infinity}]}, none)])).

one_process_that_all_wait_for_is_named_test() ->
    Node = (node_of())#{mailboxes := [mailbox(<<"stock">>, 12000, 49), mailbox(<<"b">>, 3, 2)]},
    ?assertEqual([process], causes([run(machine(), Node)])),
    ?assertEqual("Process stock had up to 12,000 messages waiting, and some at 49 of 50 looks; the next longest mailbox had 3. It did 43 % of the work of the node.",
        said(run(machine(), Node))),
    [#{subject := Subject, change := Change}] = atoll_scale_advise:findings([run(machine(), Node)]),
    ?assertEqual(<<"stock">>, Subject),
    ?assertMatch({match, _}, re:run(Change, "mostly in shop:serve/0")).

a_long_mailbox_among_others_or_for_a_moment_is_no_single_limit_test() ->
    ?assertEqual([], causes([run(machine(), (node_of())#{mailboxes := [mailbox(<<"a">>, 100, 49), mailbox(<<"b">>, 90, 49)]})])),
    ?assertEqual([], causes([run(machine(), (node_of())#{mailboxes := [mailbox(<<"a">>, 100, 2)]})])),
    ?assertEqual([], causes([run(machine(), (node_of())#{mailboxes := []})])).

%% Without a file nobody is accepted, and the queue overflows.
a_cause_comes_before_what_follows_from_it_test() ->
    Machine = (machine())#{
        files := [#{name => <<"beam.smp">>, most => 64, limit => 64}],
        listeners := [#{port => 9999, backlog => 5, most => 6}], overflows := 100, service_cpu := 1.95
    },
    Node = (node_of())#{utilisation := 0.99, mailboxes := [mailbox(<<"stock">>, 200, 50)]},
    ?assertEqual([files, process, backlog, processors], causes([run(Machine, Node)])).

of_several_runs_each_cause_is_told_once_as_it_was_worst_test() ->
    Machine = fun(Overflows) -> (machine())#{listeners := [#{port => 9999, backlog => 5, most => 6}], overflows := Overflows} end,
    [#{cause := backlog, says := Says}] = atoll_scale_advise:findings([run(Machine(3), none), run(Machine(812), none), run(Machine(40), none)]),
    ?assertMatch({match, _}, re:run(Says, "overflowed 812 times")).

the_load_is_told_from_the_service_test() ->
    ?assertEqual([load], causes([run((machine())#{load_cpu := 1.5, service_cpu := 0.45}, none)])),
    ?assertEqual([load], causes([run((machine())#{load_files := #{most => 1024, limit => 1024}}, none)])),
    ?assertEqual([load], causes([run((machine())#{load_files := #{most => 100, limit => 1024}}, none, #{<<"emfile">> => 2})])),
    ?assertEqual("The load found no file left, 2 times; atoll itself had up to 100 of 1,024 open.", said(run((machine())#{load_files := #{most => 100, limit => 1024}}, none, #{<<"emfile">> => 2}))),
    ?assertEqual([outgoing], causes([run(machine(), none, #{<<"eaddrnotavail">> => 12})])),
    ?assertEqual("Up to 28,200 connections went to one place, and there are 28,232 ports for connections that go out.", said(run((machine())#{outgoing := #{most => 28200, of_all => 28232}}, none))).

limits_of_the_node_are_named_test() ->
    Limits = fun(What) -> (node_of())#{limits := [#{what => What, most => 1020, limit => 1024}]} end,
    [?assertEqual({What, [What]}, {What, causes([run(machine(), Limits(What))])}) || What <- [processes, ports, atoms]],
    ?assertEqual("The node had 1,020 of 1,024 processes.", said(run(machine(), Limits(processes)))).

processors_memory_and_distribution_are_named_test() ->
    ?assertEqual([processors], causes([run((machine())#{service_cpu := 1.9}, none)])),
    ?assertEqual([processors], causes([run(machine(), (node_of())#{utilisation := 0.95})])),
    [#{change := Change}] = atoll_scale_advise:findings([run(machine(), (node_of())#{utilisation := 0.95, schedulers := 1})]),
    ?assertMatch({match, _}, re:run(Change, "1 schedulers for 2 processors")),
    ?assertEqual([memory], causes([run((machine())#{available := 100000000}, none)])),
    ?assertEqual([], causes([run((machine())#{available := unknown, memory := none}, none)])),
    ?assertEqual([distribution], causes([run(machine(), (node_of())#{connections := [#{peer => <<"b@h">>, most => 1048576, limit => 1048576}]})])).

a_service_that_has_ended_is_named_with_its_last_words_test() ->
    Full = (machine())#{files := [#{name => <<"beam.smp">>, most => 64, limit => 64}], ended => <<"emfile (status 1)">>},
    ?assertEqual([files, ended], causes([run(Full, none)])),
    ?assertEqual("The service ended during the run: out of memory (status 137).", said(run((machine())#{ended => <<"out of memory (status 137)">>, overflows := 3}, none))).

%% Each of them can be named, and a switch can say that it helps with it.
all_causes_have_a_place_test() ->
    Causes = atoll_scale_advise:causes(),
    ?assertEqual(length(Causes), length(lists:usort(Causes))),
    ?assertEqual([atom_to_list(Cause) || Cause <- Causes], atoll_scale_plan:cause_words()).

garbage_collection_is_named_when_the_node_works_for_it_test() ->
    Node = (node_of())#{collecting => 0.4, utilisation := 0.6, collections := 1234.5},
    ?assertEqual([collections], causes([run(machine(), Node)])),
    ?assertEqual("Garbage collection was 40 % of the work of the node's schedulers, 1,234.5 collections a second.", said(run(machine(), Node))),
    ?assertEqual([], causes([run(machine(), Node#{utilisation := 0.2}), run(machine(), Node#{collecting := 0.1}), run(machine(), Node#{collecting := none})])).

locks_are_named_where_they_are_counted_and_else_it_is_said_that_they_are_not_test() ->
    Lock = #{name => <<"run_queue">>, share => 0.5, collisions => 30, tries => 1000},
    ?assertEqual([locks], causes([run(machine(), (node_of())#{locks => [Lock, Lock#{name := <<"other">>, share := 0.1}]})])),
    ?assertEqual("The emulator waited for its locks run_queue for 50 % of the time, at 30 of 1,000 times that they were taken.", said(run(machine(), (node_of())#{locks => [Lock]}))),
    Change = fun(Locks) -> [#{cause := processors, change := Is}] = atoll_scale_advise:findings([run((machine())#{service_cpu := 1.95}, (node_of())#{utilisation := 0.99, locks => Locks})]), Is end,
    ?assertMatch({_, _}, binary:match(Change(none), <<"erl -emu_type lcnt">>)),
    ?assertEqual(nomatch, binary:match(Change([]), <<"lcnt">>)).
