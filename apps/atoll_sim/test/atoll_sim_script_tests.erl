%% SPDX-License-Identifier: Apache-2.0
%% The fault script: what is read is what was written, and what cannot be is
%% said in one sentence that shows where.
-module(atoll_sim_script_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(REST,
    "{neighbours, Min, Max}, {no, false_death}, members, reachable, groups, names, {group, Group, Who}, "
    "{name, Group, Name, Who}, {no, {group, Group}} or {no, {name, Group, Name}}, not "
).

a_script_is_read_test() ->
    Text =
        "% half of it\n{cluster, #{nodes => 200, contacts => 3}}.\n\n"
        "{at, {1.5, s}, {kill, {share, 0.5}}}.\n{then, {1, min}, {pause, {random, 3}, {2, s}}}.\n"
        "{at, 61500, heal}.\n",
    {ok, #{cluster := Cluster, steps := Steps}} = parse(Text),
    ?assertMatch(#{nodes := 200, contacts := 3, strategy := hyparview, seed := 1}, Cluster),
    ?assertEqual(
        [
            {1500, {kill, {share, 0.5}}, {line, 4}},
            {61500, {pause, {random, 3}, 2000}, {line, 5}},
            {61500, heal, {line, 6}}
        ],
        Steps
    ).

every_sentence_shows_where_test_() ->
    [
        {Text, ?_assertEqual(Sentence, sentence(parse(Text)))}
     || {Text, Sentence} <- [
            {"{at, 1, heal}.\n{at, 2,\n {explode, all}}.",
                "line 2: there is no step {explode,all}; there are start, kill, restart, source, leave, pause, "
                "stall, resume, partition, cut, black_hole, delay, bulk, lane, heal, loss, duplicate, reorder, latency, slow, churn, kill_process, group, "
                "name, broadcast, expect, every, one_of"},
            {"{at, 1, {kill_process, all, {proc, x}}}.",
                "line 1: in {kill_process,all,{proc,x}}: this must be {name, Name}, {supervisor, Name}, "
                "{module, Module}, {application, Name}, {any_name, {group, Group}}, {any_name, global}, any, "
                "or a list of {Weight, What}, each weight above 0, "
                "not {proc,x}"},
            {"{at, 1, {kill_process, all, [{0, any}]}}.",
                "line 1: in {kill_process,all,[{0,any}]}: this must be {name, Name}, {supervisor, Name}, "
                "{module, Module}, {application, Name}, {any_name, {group, Group}}, {any_name, global}, any, "
                "or a list of {Weight, What}, each weight above 0, "
                "not [{0,any}]"},
            {"{at, 1, {every, {1, s}, {kill, all}}}.", "line 1: in {every,{1,s},{kill,all}}: it is written {every, Pace, Time, Step}"},
            {"{at, 1, {every, 0, {1, s}, {kill, all}}}.",
                "line 1: in {every,0,{1,s},{kill,all}}: this must be a time of a millisecond or more, {ramp, Time, Time} or "
                "{jitter, Pace, Share}, not 0"},
            {"{at, 1, {every, {jitter, {ramp, 5, 1}, 2}, {1, s}, {kill, all}}}.",
                "line 1: in {every,{jitter,{ramp,5,1},2},{1,s},{kill,all}}: this must be a time of a millisecond or more, "
                "{ramp, Time, Time} or {jitter, Pace, Share}, not {jitter,{ramp,5,1},2}"},
            {"{at, 1, {every, 5, 0, {kill, all}}}.",
                "line 1: in {every,5,0,{kill,all}}: this must be a time of a millisecond or more, not 0"},
            {"{at, 1, {every, 5, 9, heal}}.", "line 1: in {every,5,9,heal}: this must be a step other than heal and every, not heal"},
            {"{at, 1, {every, 5, 9, {every, 1, 2, {kill, all}}}}.",
                "line 1: in {every,5,9,{every,1,2,{kill,all}}}: this must be a step other than heal and every, not "
                "{every,1,2,{kill,all}}"},
            {"{at, 1, {one_of, [{0, {kill, all}}]}}.",
                "line 1: in {one_of,[{0,{kill,all}}]}: this must be a list of {Weight, Step}, each weight above 0, not [{0,{kill,all}}]"},
            {"{at, 1, {one_of, [{1, {kill, all}}, {2, heal}]}}.",
                "line 1: in {one_of,[{1,{kill,all}},{2,heal}]}: this must be a step other than heal and every, not heal"},
            {"{at, 1, {every, 5, 9, {one_of, [{1, {kill, all}}, {2, {source, all}}]}}}.",
                "line 1: in {source,all}: nodes read no source of contacts; they do with formed => source in the cluster"},
            {"{cluster, #{nodes => 3}}.\n{at, 1, {every, 5, 9, {kill, {nodes, 1, 4}}}}.",
                "line 2: in {kill,{nodes,1,4}}: there is no node number 4, there are 3"},
            {"{at, 1, {every, 5, 9, {source, all}}}.",
                "line 1: in {source,all}: nodes read no source of contacts; they do with formed => source in the cluster"},
            {"{cluster, #{groups => off}}.\n{at, 1, {kill_process, all, [{1, any}, {2, {any_name, {group, g}}}]}}.",
                "line 2: in {kill_process,all,[{1,any},{2,{any_name,{group,g}}}]}: it is about the groups, and the cluster has "
                "groups => off"},
            {"{at, 1, {group, all, {join, g}}}.",
                "line 1: in {group,all,{join,g}}: this must be {new, Name, Nodes}, {add, Name, Nodes}, "
                "{remove, Name, Nodes} or {delete, Name}, not {join,g}"},
            {"{cluster, #{nodes => 9}}.\n{at, 1, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 10}}}}.",
                "line 2: in {group,{nodes,1,1},{new,g,{nodes,1,10}}}: there is no node number 10, there are 9"},
            {"{at, 1, {kill, {share, 1.5}}}.",
                "line 1: in {kill,{share,1.5}}: this must be a share from 0 to 1, not 1.5"},
            {"{at, 1, {loss, -1}}.", "line 1: in {loss,-1}: this must be a share from 0 to 1, not -1"},
            {"{at, 5, heal}.\n{at, 4, heal}.", "line 2: times do not go backwards, and 4 ms comes after 5 ms"},
            {"{at, {1, h}, heal}.", "line 1: a time is whole milliseconds or {N, ms | s | min}, not {1,h}"},
            {"{cluster, #{nodes => 9}}.\n{at, 1, {kill, {nodes, 3, 10}}}.",
                "line 2: in {kill,{nodes,3,10}}: there is no node number 10, there are 9"},
            {"{at, 1, {kill, {2, 3}}}.",
                "line 1: in {kill,{2,3}}: {2,3} says not which nodes; that is a name, a list of names, all, "
                "alive, dead, contacts, {random, N}, {share, S} or {nodes, From, To}"},
            {"{at, 1, {pause}}.", "line 1: in {pause}: it is written {pause, Who} or {pause, Who, Time}"},
            {"{at, 1, {restart, all, old}}.",
                "line 1: in {restart,all,old}: this must be fresh, remembered or alone, not old"},
            {"{at, 1, {expect, joy}}.",
                "line 1: in {expect,joy}: this must be {connected, Share}, {delivered, Share}, symmetric, "
                ++ ?REST ++ "joy"},
            {"{at, 1, {expect, {neighbours, 5, 2}}}.",
                "line 1: in {expect,{neighbours,5,2}}: this must be {connected, Share}, {delivered, Share}, symmetric, "
                ++ ?REST ++ "{neighbours,5,2}"},
            {"{at, 1, heal}.\n{at, 1,, heal}.", "line 2: this is no Erlang term: syntax error before: ','"},
            {"{at, 1, heal}.\n\n{at, 1,\nheal}", "line 3: the term that begins here does not end with a full stop"},
            {"{at, 1, os:cmd(\"true\")}.", "line 1: this is no Erlang term: bad term"},
            {"{at, 1, ?HEAL}.", "line 1: this is no Erlang term: syntax error before: '?'"},
            {"{cluster, #{noodles => 9}}.",
                "line 1: a cluster has no noodles; it has nodes, strategy, contacts, formed, start, latency, rate, queue, loss, duplicate, "
                "seed, options, detector, broadcast, discovery, roster, groups, directory"},
            {"{at, 1, {bulk, all, all, {1, mb}}}.",
                "line 1: in {bulk,all,all,{1,mb}}: this must be a whole number of bytes a second, or full, not {1,mb}"},
            {"{at, 1, {name, n1, {give, g, x}}}.",
                "line 1: in {name,n1,{give,g,x}}: this must be {register, Group, Name}, {re_register, Group, Name} or "
                "{unregister, Group, Name}, not {give,g,x}"},
            {"{cluster, #{nodes => 3}}.\n{at, 1, {expect, {name, g, x, {nodes, 1, 4}}}}.",
                "line 2: in {expect,{name,g,x,{nodes,1,4}}}: there is no node number 4, there are 3"},
            {"{cluster, #{groups => off}}.\n{at, 1, {name, n1, {register, g, x}}}.",
                "line 2: in {name,n1,{register,g,x}}: it is about the groups, and the cluster has groups => off"},
            {"{cluster, #{groups => off}}.\n{at, 1, {expect, names}}.",
                "line 2: in {expect,names}: it is about the groups, and the cluster has groups => off"},
            {"{at, 1, {expect, reachable}}.",
                "line 1: in {expect,reachable}: it is about the directory, and the cluster has directory => off"},
            {"{cluster, #{roster => off}}. {at, 0, {expect, members}}.",
                "line 1: in {expect,members}: it is about the roster, and the cluster has roster => off"},
            {"{cluster, #{groups => off, directory => on}}.",
                "line 1: the directory tells of groups, and takes groups => on"},
            {"{cluster, #{directory => #{a => 1}}}.", "line 1: directory has no option a; it has " ++ known(atoll_directory)},
            {"{cluster, #{rate => 0}}.", "line 1: rate must be a whole number of bytes a second above 0, not 0"},
            {"{cluster, #{formed => dns}}.", "line 1: formed must be listed, join or source, not dns"},
            {"{cluster, #{formed => join}}.\n{at, 1, {source, all}}.",
                "line 2: in {source,all}: nodes read no source of contacts; they do with formed => source in the cluster"},
            {"{cluster, #{nodes => 0}}.", "line 1: nodes must be a whole number from 1 to 100,000, not 0"},
            %% An atom each would be more than the VM holds.
            {"\n{cluster, #{nodes => 2000000}}.",
                "line 2: nodes must be a whole number from 1 to 100,000, not 2000000"},
            {"{cluster, #{seed => -1}}.", "line 1: seed must be a whole number from 0 to 1,000,000,000, not -1"},
            {"{at, 1, {reorder, 0.5, 0}}.",
                "line 1: in {reorder,0.5,0}: this must be a time of a millisecond or more, not 0"},
            {"\n{cluster, #{detector => #{period_ms => foo}}}.",
                "line 2: detector: the option period_ms must be a whole number from 1 to 2147483647, not foo"},
            {"{cluster, #{discovery => #{beacon_ms => 0}}}.",
                "line 1: discovery: the option beacon_ms must be a whole number from 1 to 2147483647, not 0"},
            {"{cluster, #{broadcast => #{a => 1}}}.",
                "line 1: broadcast has no option a; it has " ++ known(atoll_plumtree)},
            {"{cluster, #{detector => #{a => 1}}}.",
                "line 1: detector has no option a; it has " ++ known(atoll_detector_watchers)},
            {"{cluster, #{detector => 7}}.",
                "line 1: detector must be a map, off, Module or {Module, Map}, not 7"},
            {"{cluster, #{detector => {hearsay, #{}}}}.",
                "line 1: detector: there is no detector hearsay; there are watchers, and any module that is one"},
            {"{cluster, #{discovery => #{1 => 1}}}.",
                "line 1: discovery has no option 1; it has " ++ known(atoll_discovery)},
            {"{cluster, #{discovery => #{contacts => 7}}}.",
                "line 1: discovery has the contacts of the cluster; contacts stands beside it"},
            {"{cluster, #{options => #{xbotty => true}}}.",
                "line 1: hyparview has no option xbotty; it has " ++ known(atoll_hyparview)},
            {"{cluster, #{strategy => star, options => #{servers => [n1 | n2]}}}.",
                "line 1: star: the option servers must be a list with an end, not [n1|n2]"},
            {"{cluster, #{nodes => 9, start => {nodes, 1, 10}}}.",
                "line 1: in {start,{nodes,1,10}}: there is no node number 10, there are 9"},
            {"{cluster, #{strategy => mash}}.",
                "line 1: there is no strategy mash; there are cliques, hyparview, mesh, scamp, star, static, "
                "and any module that is one"},
            {"{cluster, #{options => #{active_max => 0}}}.",
                "line 1: hyparview: the option active_max must be a whole number from 1 to 2147483647, not 0"},
            {"{cluster, #{}}.\n{cluster, #{}}.", "line 2: there is a cluster already"},
            {"{at, 1, heal}.\n{cluster, #{}}.", "line 2: the cluster must come before all steps"},
            {"heal.", "line 1: a script is made of {cluster, Map}, {at, Time, Step} and {then, Time, Step}"},
            {<<"{at, 1, ", 255, "}.">>, "a script is text in UTF-8"}
        ]
    ].

known(Module) ->
    lists:flatten(lists:join(", ", [atom_to_list(Key) || Key <- lists:sort(maps:keys(Module:options()))])).

%% How the scanner says it differs between releases.
what_cannot_be_scanned_test() ->
    ?assertMatch("line 1: this is no Erlang term: " ++ _, sentence(parse("{at, 1, \"heal}.\n"))).

the_file_is_named_test() ->
    ?assertEqual(
        "/no/such/file: it cannot be read: no such file or directory",
        sentence(atoll_sim_script:read("/no/such/file"))
    ),
    Name = atoll_test_file:temporary("atoll_sim_script_tests"),
    ok = file:write_file(Name, "\n{at, 1, {boom}}."),
    Read = atoll_sim_script:read(Name),
    ok = file:delete(Name),
    ?assertMatch({error, {Name, {line, 2}, {step, {unknown_step, {boom}}}}}, Read),
    ?assertEqual(0, string:str(sentence(Read), Name ++ ":2: there is no step {boom}") - 1).

a_directory_is_no_script_test() ->
    ?assertMatch({error, {"/", none, {unreadable, _}}}, atoll_sim_script:read("/")).

an_endless_file_is_no_script_test() ->
    ?assertMatch({error, {"/dev/zero", none, too_large}}, atoll_sim_script:read("/dev/zero")).

terms_are_counted_where_there_are_no_lines_test() ->
    ?assertEqual(
        "term 2: times do not go backwards, and 1 ms comes after 2 ms",
        sentence(atoll_sim_script:check([{at, 2, heal}, {at, 1, heal}]))
    ).

an_improper_list_is_no_part_test() ->
    ?assertMatch({error, {none, {line, 1}, _}}, parse("{at, 1, {kill, [a|b]}}.")),
    ?assertMatch({error, {none, {line, 1}, _}}, parse("{at, 1, {partition, [a|b]}}.")).

latencies_test() ->
    Good = [
        {constant, 0}, {uniform, 1, 5}, {exponential, 0.5}, {lognormal, 20, 0.5}, regions,
        {regions, [[1, 80], [80, 1]], 4}, {regions, [[1.5, 80], [80, 1.5]], 0.1}
    ],
    Bad = [
        {constant, -1}, {uniform, 5, 1}, {exponential, 0}, {lognormal, 20}, region, {regions, [[1, 2]], 0},
        {regions, [[1 | 2]], 0}, {regions, [a], 0}, {regions, [[-1]], 0}, {regions, [[1]], -0.5},
        {regions, [[1]], x}
    ],
    ?assertEqual([ok || _ <- Good], [atoll_sim_step:check_latency(L) || L <- Good]),
    ?assertEqual([error || _ <- Bad], [atoll_sim_step:check_latency(L) || L <- Bad]).

names_are_checked_where_they_are_known_test() ->
    {ok, Script} = parse("{at, 1, {kill, alive}}.\n{at, 1, {partition, [[a, b], dead, x]}}."),
    ?assertEqual(ok, atoll_sim_script:check_names(Script, [a, b, x])),
    ?assertEqual("line 2: there is no node x", sentence(atoll_sim_script:check_names(Script, [a, b]))),
    {ok, Every} = parse("{at, 1, {every, 5, 9, {kill, [a, z]}}}."),
    ?assertEqual("line 1: there is no node z", sentence(atoll_sim_script:check_names(Every, [a, b]))),
    {ok, OneOf} = parse("{at, 1, {every, 5, 9, {one_of, [{1, {kill, a}}, {1, {kill, y}}]}}}."),
    ?assertEqual("line 1: there is no node y", sentence(atoll_sim_script:check_names(OneOf, [a, b]))),
    {ok, Group} = parse("{at, 1, {group, a, {add, g, [b, z]}}}."),
    ?assertEqual("line 1: there is no node z", sentence(atoll_sim_script:check_names(Group, [a, b]))),
    {ok, Start} = parse("{cluster, #{start => [a, y]}}."),
    ?assertEqual("there is no node y", sentence(atoll_sim_script:check_names(Start, [a, b, x]))).

properties_test_() ->
    atoll_prop:tests([{round_trip, prop_round_trip(), 300}, {no_crash, prop_no_crash(), 500}]).

%% A script's text is the script.
prop_round_trip() ->
    ?FORALL(Script, script(), begin
        {ok, Read} = atoll_sim_script:parse(iolist_to_binary(text(Script))),
        maps:get(cluster, Read) =:= maps:get(cluster, Script) andalso
            [{Ms, Step} || {Ms, Step, _} <- maps:get(steps, Read)] =:=
                [{Ms, Step} || {Ms, Step, _} <- maps:get(steps, Script)]
    end).

text(#{cluster := Cluster, steps := Steps}) ->
    Terms = [{cluster, Cluster} | [{at, Ms, Step} || {Ms, Step, _} <- Steps]],
    [[atoll_sim_term:text(Term), ".\n"] || Term <- Terms].

%% Whatever is in place of a script's part, the answer is a script or a sentence.
prop_no_crash() ->
    ?FORALL(Term, broken(), begin
        case atoll_sim_script:check([Term]) of
            {ok, _} -> true;
            Error -> is_binary(unicode:characters_to_binary(sentence(Error)))
        end
    end).

script() ->
    ?LET({Nodes, Latency, Loss, Steps}, {choose(10, 500), latency(), share(), list({a_time(), step()})}, begin
        Cluster = #{nodes => Nodes, latency => Latency, loss => Loss, detector => off},
        {ok, Script} = atoll_sim_script:check([{cluster, Cluster} | [{then, T, S} || {T, S} <- Steps]]),
        Script
    end).

step() ->
    frequency([{5, plain_step()}, {1, heal}, {1, {every, pace(), a_span(), plain_step()}}, {1, {one_of, [{1, plain_step()}, {3, plain_step()}]}}]).

pace() ->
    ?LET({Pace, Share}, {oneof([a_span(), {ramp, a_span(), a_span()}]), share()}, oneof([Pace, {jitter, Pace, Share}])).

a_span() -> ?SUCHTHAT(Time, a_time(), atoll_sim_step:time(Time) =/= {ok, 0}).

plain_step() ->
    oneof([
        {oneof([start, kill, leave, pause, resume]), who()},
        {restart, who(), oneof([fresh, remembered])},
        {pause, who(), a_time()},
        {partition, non_empty(list(who()))},
        {cut, who(), who()},
        {cut, who(), who(), a_time()},
        {kill_process, who(), oneof([what(), non_empty(list({choose(1, 5), what()}))])},
        {group, who(), oneof([{delete, g}, {oneof([new, add, remove]), 'a group', who()}])},
        {oneof([loss, duplicate]), share()},
        {loss, who(), who(), share()},
        {reorder, share(), a_span()},
        {latency, latency()},
        {slow, who(), a_time()},
        {churn, share(), a_time()},
        {broadcast, who(), choose(1, 9), a_time()},
        {expect, oneof([symmetric, {neighbours, 0, 5}, {no, false_death}, {connected, share()}, {delivered, share()}])}
    ]).

who() ->
    oneof([
        n1, 'N 2@host', [n1, n2], all, alive, dead, contacts, {random, choose(1, 9)}, {share, share()},
        ?LET({A, B}, {choose(1, 10), choose(1, 10)}, {nodes, min(A, B), max(A, B)})
    ]).

what() ->
    oneof([any, {any_name, oneof([global, {group, 'A b'}])}, {oneof([name, supervisor, module, application]), oneof([kernel, 'A b'])}]).

share() -> oneof([0, 1, 0.5, real(0.0, 1.0)]).

real(Min, Max) -> float(Min, Max).

a_time() -> oneof([choose(0, 5000), {choose(0, 90), oneof([ms, s, min])}, {1.5, s}]).

latency() ->
    oneof([regions, {constant, 3}, {uniform, 1, 9}, {exponential, 7.5}, {lognormal, 20, 0.5}, {regions, [[1]], 0}]).

%% A good term of a script with one part of it replaced.
broken() ->
    Junk = oneof([1.5, -1, foo, "a", <<"a">>, {}, [], [a | b], #{a => b}, self()]),
    oneof([
        Junk,
        {cluster, Junk},
        ?LET({K, J}, {oneof([nodes, strategy, latency, loss, seed, start, options, detector, broadcast, discovery, foo]), Junk}, {cluster, #{K => J}}),
        {at, Junk, heal},
        {at, 1, Junk},
        ?LET({Step, J, At}, {step(), Junk, choose(1, 4)}, case is_tuple(Step) of
            true -> {at, 1, setelement(min(At, tuple_size(Step)), Step, J)};
            false -> {at, 1, J}
        end)
    ]).

parse(Text) ->
    atoll_sim_script:parse(iolist_to_binary(Text)).

sentence({error, Error}) ->
    Sentence = unicode:characters_to_list(atoll_sim_script:format_error(Error)),
    false = lists:member($\n, Sentence),
    Sentence.
