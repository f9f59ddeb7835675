%% SPDX-License-Identifier: Apache-2.0
%% Recordings in files: what comes back of one that is whole, cut, damaged, full,
%% or none.
-module(atoll_recording_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(HEAD, #{protocol => some_protocol, state => {its, state}, node => 'n@h', otp => "25"}).
-define(BIG, 1000000).

all_test_() ->
    {foreach, fun folder/0, fun(Dir) -> ok = file:del_dir_r(Dir) end, [
        fun(Dir) -> {Title, {timeout, 60, fun() -> Test(filename:join(Dir, "recording")) end}} end
     || {Title, Test} <- [
            {"what is written comes back", fun comes_back/1},
            {"cut anywhere, what is whole comes back", fun cut_anywhere/1},
            {"a damaged entry ends it", fun damaged/1},
            {"the bound holds, and what is beyond is counted", fun bounded/1},
            {"a bound without room for the head is refused", fun too_small/1},
            {"a file without its end is cut", fun without_end/1},
            {"what cannot be read is named in a sentence", fun unreadable/1},
            {"what cannot be written is named in a sentence", fun unwritable/1}
        ]
    ]}.

folder() ->
    Dir = filename:join([
        filename:basedir(user_cache, "atoll_test"),
        io_lib:format("recording-~s-~b", [os:getpid(), erlang:unique_integer([positive])])
    ]),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Dir.

event(N) ->
    {{cast, {number, N, lists:seq(1, N rem 50)}}, 1000 + N, [{send, 'm@h', N}, {notify, N}]}.

write(Path, Max, Count) ->
    {ok, New} = atoll_recording:open(Path, Max, ?HEAD),
    lists:foldl(
        fun(N, Writer) ->
            {ok, Next} = atoll_recording:add(event(N), Writer),
            Next
        end,
        New,
        lists:seq(1, Count)
    ).

comes_back(Path) ->
    Writer = write(Path, ?BIG, 100),
    ?assertMatch(#{events := 100, lost := 0}, atoll_recording:held(Writer)),
    {ok, #{events := 100, lost := 0, bytes := Bytes}} = atoll_recording:close(Writer),
    ?assertEqual(Bytes, filelib:file_size(Path)),
    Expected = maps:merge(?HEAD, #{events => [event(N) || N <- lists:seq(1, 100)], lost => 0}),
    ?assertEqual({ok, Expected, complete}, atoll_recording:read(Path)).

cut_anywhere(Path) ->
    {ok, _} = atoll_recording:close(write(Path, ?BIG, 10)),
    {ok, Whole} = file:read_file(Path),
    Counts = [
        begin
            ok = file:write_file(Path, binary:part(Whole, 0, Size)),
            case atoll_recording:read(Path) of
                {ok, #{events := Events}, cut} ->
                    ?assertEqual([event(N) || N <- lists:seq(1, length(Events))], Events),
                    length(Events);
                {error, {Path, no_head}} ->
                    -1;
                {error, {Path, no_recording}} when Size =:= 0 ->
                    -2
            end
        end
     || Size <- lists:seq(0, byte_size(Whole) - 1)
    ],
    %% Longer ones have no fewer events, and all numbers of events occur.
    ?assertEqual(Counts, lists:sort(Counts)),
    ?assertEqual(lists:seq(-2, 10), lists:usort(Counts)).

damaged(Path) ->
    {ok, _} = atoll_recording:close(write(Path, ?BIG, 10)),
    {ok, Whole} = file:read_file(Path),
    At = byte_size(Whole) div 2,
    <<Before:At/binary, Byte, After/binary>> = Whole,
    ok = file:write_file(Path, [Before, Byte bxor 1, After]),
    {ok, #{events := Events}, cut} = atoll_recording:read(Path),
    ?assert(length(Events) < 10),
    ?assertEqual([event(N) || N <- lists:seq(1, length(Events))], Events).

bounded(Path) ->
    Writer = write(Path, 2000, 100),
    #{events := Events, lost := Lost} = atoll_recording:held(Writer),
    ?assertEqual(100, Events + Lost),
    ?assert(Events > 5 andalso Lost > 5),
    {ok, #{bytes := Bytes}} = atoll_recording:close(Writer),
    %% But for the end.
    ?assert(Bytes < 2000 + 100),
    {ok, #{events := Read, lost := Lost}, complete} = atoll_recording:read(Path),
    %% The first ones, though some later one would have found room.
    ?assertEqual([event(N) || N <- lists:seq(1, Events)], Read).

too_small(Path) ->
    {error, Error} = atoll_recording:open(Path, 10, ?HEAD),
    ?assertMatch({_, {too_small, Size}} when Size > 10, Error),
    ?assertNotEqual(nomatch, string:find(atoll_recording:format_error(Error), "leaves no room")),
    ?assertNot(filelib:is_file(Path)).

%% The process that writes ends: what it had said is in the file, without its end.
without_end(Path) ->
    {_, Ref} = spawn_monitor(fun() -> write(Path, ?BIG, 10) end),
    receive
        {'DOWN', Ref, process, _, normal} -> ok
    end,
    ok = await(fun() -> {cut, 10} =:= seen(Path) end, 500).

seen(Path) ->
    case atoll_recording:read(Path) of
        {ok, #{events := Events}, How} -> {How, length(Events)};
        {error, _} -> none
    end.

%% The runtime writes the buffer of a process that ended in its own time, and tells
%% nobody.
await(Condition, Times) when Times > 0 ->
    case Condition() of
        true ->
            ok;
        false ->
            receive
            after 10 -> await(Condition, Times - 1)
            end
    end.

unreadable(Path) ->
    Says = fun() ->
        {error, Error} = atoll_recording:read(Path),
        unicode:characters_to_list(atoll_recording:format_error(Error)) -- (Path ++ ": ")
    end,
    ?assertEqual("it cannot be read: no such file or directory", Says()),
    ok = file:write_file(Path, "{atoll_trace,1,#{}}.\n"),
    ?assertEqual("this is no recording of Atoll", Says()),
    ok = file:write_file(Path, ["ATOLLREC", <<2:16>>, "whatever"]),
    ?assertEqual("this recording is of version 2, and only version 1 can be read", Says()),
    ok = file:write_file(Path, "ATOLL"),
    ?assertEqual("this recording was cut before its first event", Says()).

unwritable(Path) ->
    Nowhere = filename:join(Path, "no/such/folder"),
    {error, Error} = atoll_recording:open(Nowhere, ?BIG, ?HEAD),
    ?assertEqual({Nowhere, {unwritable, enoent}}, Error),
    ?assertNotEqual(nomatch, string:find(atoll_recording:format_error(Error), "it cannot be written")),
    %% A disk that is full: the buffer takes some, and then it is told.
    {ok, Full} = atoll_recording:open("/dev/full", ?BIG * 10, ?HEAD),
    ?assertEqual({error, {"/dev/full", {unwritable, enospc}}}, fill(Full)),
    {ok, Short} = atoll_recording:open("/dev/full", ?BIG, ?HEAD),
    ?assertEqual({error, {"/dev/full", {unwritable, enospc}}}, atoll_recording:close(Short)).

fill(Writer) ->
    case atoll_recording:add({{cast, binary:copy(<<0>>, 10000)}, 1, []}, Writer) of
        {ok, Next} -> fill(Next);
        {error, _} = Error -> Error
    end.

any_term_comes_back_test_() ->
    {timeout, 60, fun() ->
        Dir = folder(),
        Path = filename:join(Dir, "recording"),
        try
            ok = atoll_prop:holds(?FUNCTION_NAME, prop_comes_back(Path), 50)
        after
            ok = file:del_dir_r(Dir)
        end
    end}.

prop_comes_back(Path) ->
    ?FORALL(
        {State, Entries},
        {any(), list({{cast, any()}, integer(), list({notify, any()})})},
        begin
            {ok, New} = atoll_recording:open(Path, ?BIG, maps:put(state, State, ?HEAD)),
            Add = fun(Entry, Writer) -> element(2, {ok, _} = atoll_recording:add(Entry, Writer)) end,
            {ok, _} = atoll_recording:close(lists:foldl(Add, New, Entries)),
            {ok, #{state := Read, events := Events}, complete} = atoll_recording:read(Path),
            {Read, Events} =:= {State, Entries}
        end
    ).
