%% SPDX-License-Identifier: Apache-2.0
%% Discovery sources over time: they only add, they say what is wrong, and none is in
%% the way of another. With a name server of our own, files, and readers put in.
-module(atoll_sources_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([log/2, prop_nothing_is_taken_back/0]).

-define(DEADLINE_MS, 10000).

sources_test_() ->
    {foreach, fun set_up/0, fun clean_up/1, [
        {timeout, 30, {Name, Test}}
     || {Name, Test} <- [
            {"a static list is delivered", fun a_static_list/0},
            {"a dropped record prunes nobody, and new ones are added", fun a_dropped_record/0},
            {"a silent name server prunes nobody, and it says so once", fun a_silent_server/0},
            {"garbage prunes nobody, and it says so once", fun garbage/0},
            {"a name that goes prunes nobody, and it says so once", fun a_name_that_goes/0},
            {"each failure is said anew, and each return", fun failures_come_and_go/0},
            {"a file that is read again has a new line", fun a_new_line/0},
            {"a file that vanishes is said and harmless", fun a_vanished_file/0},
            {"a bad line is told of, and the others count", fun a_bad_line/0},
            {"one that hangs is read once, and delays nobody", fun one_that_hangs/0},
            {"a late reader is killed, and its source read again", fun a_late_reader/0},
            {"a reader that is left has no second beside it", fun a_reader_that_is_left/0},
            {"a reader that crashes is a failing source", fun a_crash/0},
            {"names are bounded, and so are the atoms", fun names_are_bounded/0},
            {"names of nodes that are known anyway are bounded too", fun known_names_are_bounded/0},
            {"another reason to fail is not another failure", fun another_reason/0},
            {"addresses that are of no use are told of once", fun unused_addresses/0},
            {"no reader outlives the server", fun no_reader_is_left/0}
        ]
    ]}.

%% The log goes to the test.

set_up() ->
    _ = persistent_term:erase(atoll_source_names),
    _ = logger:set_handler_config(default, level, none),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => none}),
    ok.

clean_up(_) ->
    ok = logger:remove_handler(?MODULE),
    _ = logger:set_handler_config(default, level, all),
    ok.

%% Called in the server's process, whose parent is the test.
log(#{level := Level, msg := {report, #{what := What, source := Source, why := [_ | _]}}}, _Config) ->
    case get('$ancestors') of
        [Test | _] when is_pid(Test) -> Test ! {said, Level, What, Source};
        _ -> ok
    end,
    ok;
log(_Event, _Config) ->
    ok.

with(Options, Test) ->
    Self = self(),
    {ok, Pid} = atoll_sources:start_link(maps:merge(
        #{
            interval_ms => 10,
            max => 100,
            deliver => fun(Nodes) -> Self ! {found, lists:sort(Nodes)}, ok end,
            fault => fun(Source, Trouble) -> Self ! {fault, Source, Trouble}, ok end
        },
        Options
    )),
    try
        Test()
    after
        unlink(Pid),
        Ref = monitor(process, Pid),
        exit(Pid, shutdown),
        receive
            {'DOWN', Ref, process, Pid, _} -> ok
        end,
        flush()
    end.

flush() ->
    receive
        _ -> flush()
    after 0 -> ok
    end.

-define(await(Pattern), fun() ->
    receive
        Pattern -> ok
    after ?DEADLINE_MS -> error({no_message_like, ??Pattern, process_info(self(), messages)})
    end
end()).

%% Nothing of that kind has come.
-define(none(Pattern), fun() ->
    receive
        Pattern -> error({came, ??Pattern})
    after 0 -> ok
    end
end()).

dns(Server, Timeout) ->
    {dns, #{
        name => "app.atoll.test",
        type => a,
        node => "app",
        timeout => Timeout,
        nameservers => [{{127, 0, 0, 1}, atoll_dns_server:port(Server)}]
    }}.

%% The reads that begin from now on have the server's new answers; this waits for the
%% end of two of them.
asked_again(Server) ->
    Asked = length(atoll_dns_server:asked(Server, 0)),
    _ = atoll_dns_server:asked(Server, Asked + 3),
    ok.

with_dns(Steps, Timeout, Test) ->
    Server = atoll_dns_server:start(),
    ok = atoll_dns_server:set(Server, a, Steps),
    try
        Source = dns(Server, Timeout),
        with(#{sources => [Source]}, fun() -> Test(Server, Source) end)
    after
        atoll_dns_server:stop(Server)
    end.

found() ->
    receive
        {found, Nodes} -> Nodes
    after ?DEADLINE_MS -> error(nothing_found)
    end.

summary() ->
    [Summary] = atoll_sources:summary(),
    Summary.

a_static_list() ->
    Source = {nodes, ['a@h', 'b@h', 'a@h']},
    with(#{sources => [Source]}, fun() ->
        ?assertEqual(['a@h', 'b@h'], found()),
        ?assertMatch(#{source := Source, last := works, found := 2, refused := 0, failures := 0}, summary())
    end).

a_dropped_record() ->
    Steps = [
        {records, [{10, 0, 0, 1}, {10, 0, 0, 2}]},
        {records, [{10, 0, 0, 1}]},
        {records, [{10, 0, 0, 1}, {10, 0, 0, 3}]}
    ],
    with_dns(Steps, 2000, fun(_Server, Source) ->
        ?assertEqual(['app@10.0.0.1', 'app@10.0.0.2'], found()),
        %% The next that is heard is the new one, and nothing is taken back.
        ?assertEqual(['app@10.0.0.3'], found()),
        ?assertMatch(#{found := 3, failures := 0, last := works}, summary()),
        ?none({fault, Source, _})
    end).

a_silent_server() -> prunes_nobody_and_says_so(silent, 1000, {failing, {dns, timeout}}).

garbage() -> prunes_nobody_and_says_so(garbage, 2000, {failing, {dns, formerr}}).

a_name_that_goes() -> prunes_nobody_and_says_so(nxdomain, 2000, {incomplete, [{no_records, a}]}).

prunes_nobody_and_says_so(Bad, Timeout, Trouble) ->
    Good = {records, [{10, 0, 0, 1}, {10, 0, 0, 2}]},
    with_dns([Good], Timeout, fun(Server, Source) ->
        ?assertEqual(['app@10.0.0.1', 'app@10.0.0.2'], found()),
        ok = atoll_dns_server:set(Server, a, [Bad]),
        ?await({fault, Source, Trouble}),
        ?await({said, warning, discovery_failed, Source}),
        ok = asked_again(Server),
        ?assertMatch(#{last := Trouble, found := 2}, summary()),
        %% Said once, however often it fails.
        ?none({fault, Source, _}),
        ?none({said, _, _, Source}),
        ok = atoll_dns_server:set(Server, a, [{records, [{10, 0, 0, 3}]}]),
        ?await({said, notice, discovery_works, Source}),
        ?await({found, ['app@10.0.0.3']}),
        ?assertMatch(#{last := works, found := 3}, summary())
    end).

failures_come_and_go() ->
    with_dns([servfail], 2000, fun(Server, Source) ->
        lists:foreach(
            fun(_) ->
                ok = atoll_dns_server:set(Server, a, [servfail]),
                ?await({fault, Source, {failing, {dns, servfail}}}),
                ?await({said, warning, discovery_failed, Source}),
                ok = atoll_dns_server:set(Server, a, [{records, [{10, 0, 0, 1}]}]),
                ?await({said, notice, discovery_works, Source})
            end,
            [1, 2, 3]
        ),
        #{failures := Failures, reads := Reads} = summary(),
        ?assert(Failures >= 3 andalso Reads >= 6 andalso Failures < Reads)
    end).

%% Files

with_file(Text, Test) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    Path = filename:join(Dir, "contacts"),
    ok = file:write_file(Path, Text),
    try
        Source = {file, Path},
        with(#{sources => [Source]}, fun() -> Test(Path, Source) end)
    after
        file:del_dir_r(Dir)
    end.

replace(Path, Text) ->
    ok = file:write_file(Path ++ ".new", Text),
    ok = file:rename(Path ++ ".new", Path).

a_new_line() ->
    with_file("a@h\n", fun(Path, Source) ->
        ?assertEqual(['a@h'], found()),
        ok = replace(Path, "b@h # and a@h is gone\n"),
        %% Each 32 reads all are said again.
        ?await({found, ['b@h']}),
        ?none({fault, Source, _})
    end).

a_vanished_file() ->
    with_file("a@h\n", fun(Path, Source) ->
        ?assertEqual(['a@h'], found()),
        ok = file:delete(Path),
        ?await({fault, Source, {failing, {file, enoent}}}),
        ?await({said, warning, discovery_failed, Source}),
        ok = replace(Path, "a@h\nb@h\n"),
        ?await({said, notice, discovery_works, Source}),
        ?await({found, ['b@h']})
    end).

a_bad_line() ->
    with_file("a@h\nb\nc@h\n", fun(Path, Source) ->
        ?assertEqual(['a@h', 'c@h'], found()),
        ?await({fault, Source, {incomplete, [{bad_line, 2, no_node_name}]}}),
        ?await({said, warning, discovery_failed, Source}),
        %% Another line is another trouble.
        ok = replace(Path, "a@h\nc@h\nd\n"),
        ?await({fault, Source, {incomplete, [{bad_line, 3, no_node_name}]}}),
        ok = replace(Path, "a@h\n"),
        ?await({said, notice, discovery_works, Source})
    end).

%% Readers

%% A source that tells the test of each read, and does then what the test said.
probe(Kind, Do) -> probe(Kind, {kill, 60000}, Do).

probe(Kind, Deadline, Do) ->
    Self = self(),
    {atoll_source_probe, #{
        label => "the probe",
        deadline => Deadline,
        read => fun() ->
            Self ! {reads, Kind, self()},
            Do()
        end
    }}.

gives(Name) -> fun() -> {ok, [{Name, #{}}], []} end.

hang() ->
    receive
        {go, Answer} -> Answer
    end.

rounds(Kind, Times) ->
    _ = [?await({reads, Kind, _}) || _ <- lists:seq(1, Times)],
    ok.

one_that_hangs() ->
    Sources = [probe(hangs, fun hang/0), probe(goes, gives(<<"goes@h">>))],
    with(#{sources => Sources}, fun() ->
        ?await({reads, hangs, _}),
        ?await({found, ['goes@h']}),
        ok = rounds(goes, 20),
        ?none({reads, hangs, _}),
        ?assertMatch([#{last := none, reads := 0}, #{last := works}], atoll_sources:summary())
    end).

a_late_reader() ->
    Source = probe(hangs, {kill, 20}, fun hang/0),
    with(#{sources => [Source]}, fun() ->
        First = receive {reads, hangs, Pid} -> Pid end,
        Ref = monitor(process, First),
        ?await({fault, Source, {failing, {late, 20}}}),
        ?await({'DOWN', Ref, process, First, _}),
        ?await({reads, hangs, _}),
        ?await({said, warning, discovery_failed, _})
    end).

a_reader_that_is_left() ->
    Source = probe(hangs, {leave, 20}, fun hang/0),
    with(#{sources => [Source, probe(goes, gives(<<"goes@h">>))]}, fun() ->
        First = receive {reads, hangs, Pid} -> Pid end,
        ?await({fault, Source, {failing, {late, 20}}}),
        ok = rounds(goes, 20),
        ?assert(is_process_alive(First)),
        ?none({reads, hangs, _}),
        %% What it brings in the end counts, and it is read again.
        First ! {go, {ok, [{<<"hangs@h">>, #{}}], []}},
        ?await({said, notice, discovery_works, _}),
        ?await({found, ['hangs@h']}),
        ?await({reads, hangs, _})
    end).

a_crash() ->
    [
        begin
            Source = probe(ends, Do),
            with(#{sources => [Source]}, fun() ->
                ?await({fault, Source, {failing, Reason}}),
                ?await({said, warning, discovery_failed, Source}),
                ok = rounds(ends, 3)
            end)
        end
     || {Do, Reason} <- [
            {fun() -> exit(oops) end, {crashed, oops}},
            %% What it is linked with ends it as it likes.
            {fun() -> spawn_link(fun() -> exit({answer, garbage}) end), hang() end, {crashed, {answer, garbage}}},
            {fun() -> exit(self(), kill), hang() end, {crashed, killed}},
            {fun() -> smoke end, {no_reading, smoke}}
        ]
    ].

names_are_bounded() ->
    Source = probe(invents, fun() ->
        Name = fun() -> iolist_to_binary(["atoll_sources_tests_", integer_to_list(erlang:unique_integer([positive])), "@h"]) end,
        [Last | _] = Names = [Name() || _ <- [1, 2, 3]],
        persistent_term:put(?MODULE, Last),
        {ok, [{N, #{}} || N <- Names], []}
    end),
    Options = #{sources => [Source], max => 9},
    Full = fun() ->
        ?await({fault, Source, {incomplete, [{names_beyond, 9}]}}),
        ?assertMatch(#{found := F, refused := R} when F =< 9 andalso R > 0, summary()),
        ?assertError(badarg, binary_to_existing_atom(persistent_term:get(?MODULE)))
    end,
    with(Options, Full),
    %% It began anew, and its names did not.
    with(Options, fun() ->
        Full(),
        ?assertMatch(#{found := 0}, summary())
    end),
    _ = persistent_term:erase(?MODULE).

known_names_are_bounded() ->
    Source = {nodes, ['a@h', 'b@h', 'c@h']},
    with(#{sources => [Source], max => 2}, fun() ->
        ?assertEqual(['a@h', 'b@h'], found()),
        ?await({fault, Source, {incomplete, [{names_beyond, 2}]}}),
        ?assertMatch(#{found := 2, refused := R} when R > 0, summary())
    end).

another_reason() ->
    with_dns([servfail], 2000, fun(Server, Source) ->
        ?await({fault, Source, {failing, {dns, servfail}}}),
        ?await({said, warning, discovery_failed, Source}),
        ok = atoll_dns_server:set(Server, a, [garbage]),
        ok = asked_again(Server),
        ?assertMatch(#{last := {failing, {dns, formerr}}}, summary()),
        ?none({fault, Source, _}),
        ?none({said, _, _, Source})
    end).

unused_addresses() ->
    with_file("a@h = 10.0.0.1\n", fun(Path, Source) ->
        ?await({said, warning, discovery_addresses_unused, Source}),
        ?assertEqual(['a@h'], found()),
        ok = replace(Path, "a@h = 10.0.0.1\nb@h = 10.0.0.2\n"),
        ?await({found, ['b@h']}),
        ?none({said, _, discovery_addresses_unused, Source}),
        ?assertEqual(#{known => 0, refused => 0}, atoll_epmd:summary())
    end).

no_reader_is_left() ->
    %% Of a kind of its own: a reader of a test before this one may have spoken when that was over.
    with(#{sources => [probe(stays, fun hang/0)]}, fun() ->
        Reader = receive {reads, stays, Pid} -> Pid end,
        Ref = monitor(process, Reader),
        %% One that is not there yet when the reader ends says noproc. That the reader is alive was once not enough to know.
        {monitored_by, By} = process_info(Reader, monitored_by),
        ?assert(lists:member(self(), By)),
        unlink(whereis(atoll_sources)),
        exit(whereis(atoll_sources), kill),
        ?await({'DOWN', Ref, process, Reader, killed})
    end).

%% The book

%% What is delivered, all together, is what was ever read, as far as there was room; and
%% whoever asks for the ways has those that the first source of each node said last.
nothing_is_taken_back_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_nothing_is_taken_back(), 500).

prop_nothing_is_taken_back() ->
    ?FORALL(Readings, list({range(1, 3), reading()}), begin
        _ = persistent_term:erase(atoll_source_names),
        Book0 = atoll_sources_book:new([{nodes, []}, {file, "f"}, {dns, #{name => "d"}}], 100, true),
        {_, Effects} = lists:foldl(
            fun({Index, Reading}, {Book, Said}) ->
                {Next, More} = atoll_sources_book:result(Index, Reading, Book),
                {Next, Said ++ More}
            end,
            {Book0, []},
            Readings
        ),
        Delivered = lists:usort(lists:append([Nodes || {deliver, Nodes} <- Effects])),
        Read = [{Index, Contacts} || {Index, {ok, Contacts, _}} <- Readings],
        Given = lists:usort([binary_to_atom(Name) || {_, Contacts} <- Read, {Name, _} <- Contacts]),
        Learned = lists:foldl(fun(Ways, Acc) -> maps:merge(Acc, Ways) end, #{}, [Ways || {learn, Ways} <- Effects]),
        Delivered =:= Given andalso
            maps:filter(fun(_, Way) -> map_size(Way) > 0 end, Learned) =:= model(Read)
    end).

reading() ->
    Name = oneof([<<"a@h">>, <<"b@h">>, <<"c@h">>, <<"d@h">>]),
    Way = oneof([#{}, ?LET(Port, range(1, 2), #{port => Port})]),
    frequency([{4, {ok, list({Name, Way}), []}}, {1, {error, {dns, timeout}}}]).

%% For each name the first source that has a way for it; a source gives up its own.
model(Read) ->
    Owned = lists:foldl(
        fun({Index, Contacts}, Ways) ->
            lists:foldl(
                fun({Name, Way}, Acc) ->
                    {Owner, _} = maps:get(Name, Acc, {infinity, #{}}),
                    case map_size(Way) of
                        0 when Owner =:= Index -> maps:remove(Name, Acc);
                        0 -> Acc;
                        _ when Index =< Owner -> Acc#{Name => {Index, Way}};
                        _ -> Acc
                    end
                end,
                Ways,
                lists:ukeysort(1, Contacts)
            )
        end,
        #{},
        Read
    ),
    maps:map(fun(_, {_, Way}) -> Way end, Owned).

sources_that_disagree_do_not_make_it_go_to_and_fro_test() ->
    _ = persistent_term:erase(atoll_source_names),
    Book0 = atoll_sources_book:new([{file, "1"}, {file, "2"}, {file, "3"}], 10, true),
    Read = fun(Index, Way, Book) ->
        {Next, Effects} = atoll_sources_book:result(Index, {ok, [{<<"a@h">>, Way}], []}, Book),
        {[Ways || {learn, Ways} <- Effects], Next}
    end,
    {[#{<<"a@h">> := #{port := 2}}], Book1} = Read(2, #{port => 2}, Book0),
    {[], Book2} = Read(1, #{}, Book1),
    {[], Book3} = Read(3, #{port => 3}, Book2),
    {[#{<<"a@h">> := #{port := 1}}], Book4} = Read(1, #{port => 1}, Book3),
    {[], Book5} = Read(2, #{port => 2}, Book4),
    {[#{<<"a@h">> := #{port := 7}}], Book6} = Read(1, #{port => 7}, Book5),
    {[#{<<"a@h">> := Empty}], _} = Read(1, #{}, Book6),
    ?assertEqual(0, map_size(Empty)).

all_contacts_are_given_again_now_and_then_test() ->
    _ = persistent_term:erase(atoll_source_names),
    Book0 = atoll_sources_book:new([{nodes, ['a@h']}], 10, false),
    {_, Delivered} = lists:foldl(
        fun(_, {Book, N}) ->
            {Next, Effects} = atoll_sources_book:result(1, {ok, [{<<"a@h">>, #{}}], []}, Book),
            {Next, N + length([x || {deliver, ['a@h']} <- Effects])}
        end,
        {Book0, 0},
        lists:seq(1, 65)
    ),
    ?assertEqual(3, Delivered).
