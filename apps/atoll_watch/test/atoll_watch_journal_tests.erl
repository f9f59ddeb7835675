%% SPDX-License-Identifier: Apache-2.0
%% Terms that were added are there whatever becomes of their writer.
-module(atoll_watch_journal_tests).

-include_lib("eunit/include/eunit.hrl").

-export([writes/2]).

in_dir(Fun) ->
    Dir = atoll_cli_os:new_dir(),
    try Fun(filename:join(Dir, "journal")) after atoll_cli_os:remove_dir(Dir) end.

open(File) ->
    {ok, Journal, Terms, Whole} = atoll_watch_journal:open(File, whole),
    ok = atoll_watch_journal:close(Journal),
    {Terms, Whole}.

terms_are_there_again_and_others_come_in_their_place_test() ->
    in_dir(fun(File) ->
        {ok, Journal0, [], whole} = atoll_watch_journal:open(File, whole),
        {ok, Journal1} = atoll_watch_journal:add([one, {two, <<"2">>}], Journal0),
        ?assertEqual(2, atoll_watch_journal:size(Journal1)),
        ok = atoll_watch_journal:close(Journal1),
        {ok, Journal2, [one, {two, <<"2">>}], whole} = atoll_watch_journal:open(File, whole),
        {ok, Journal3} = atoll_watch_journal:replace([three], Journal2),
        {ok, Journal4} = atoll_watch_journal:add([four], Journal3),
        ok = atoll_watch_journal:close(Journal4),
        ?assertEqual({[three, four], whole}, open(File)),
        ?assertEqual(["journal"], filelib:wildcard("*", filename:dirname(File)))
    end).

a_term_that_was_written_in_part_is_not_read_test() ->
    in_dir(fun(File) ->
        {ok, Journal0, [], whole} = atoll_watch_journal:open(File, whole),
        {ok, Journal1} = atoll_watch_journal:add([first, second], Journal0),
        ok = atoll_watch_journal:sync(Journal1),
        {ok, Whole} = file:read_file(File),
        ok = atoll_watch_journal:close(Journal1),
        [begin
             %% As it is when its writer is killed: not closed.
             ok = file:write_file(File, binary:part(Whole, 0, byte_size(Whole) - Cut)),
             {Terms, How} = open(File),
             ?assertEqual({Cut, Terms, whole}, {Cut, case Terms of [] -> []; _ -> [first | tl(Terms)] end, How}),
             ?assertNot(lists:member(second, Terms))
         end || Cut <- lists:seq(1, 20)],
        %% What is no journal is put aside.
        ok = file:write_file(File, <<"nonsense, and more of it">>),
        ?assertEqual({[], put_aside}, open(File)),
        ?assertEqual({ok, <<"nonsense, and more of it">>}, file:read_file(File ++ ".unreadable"))
    end).

a_ring_loses_the_oldest_test_() ->
    {timeout, 60, fun() -> in_dir(fun(File) ->
        {ok, Journal0, [], whole} = atoll_watch_journal:open(File, ring),
        Big = binary:copy(<<"x">>, 10000),
        Last = lists:foldl(fun(N, Acc0) -> {ok, Acc} = atoll_watch_journal:add([{N, Big}], Acc0), Acc end, Journal0, lists:seq(1, 400)),
        ok = atoll_watch_journal:close(Last),
        {ok, Journal, Terms, whole} = atoll_watch_journal:open(File, ring),
        ok = atoll_watch_journal:close(Journal),
        Numbers = [N || {N, _} <- Terms],
        ?assertEqual(lists:seq(hd(Numbers), 400), Numbers),
        ?assert(length(Numbers) > 150 andalso length(Numbers) < 250)
    end) end}.

%% Another VM adds and replaces, and is killed meanwhile, again and again.
a_writer_that_is_killed_loses_nothing_that_it_knew_to_be_there_test_() ->
    {timeout, 60, fun() -> in_dir(fun(File) ->
        Paths = lists:append([["-pa", filename:dirname(code:which(M))] || M <- [?MODULE, atoll_watch_journal]]),
        lists:foreach(fun(Times) ->
            {ok, Peer, _} = peer:start(#{connection => standard_io, args => Paths}),
            ok = peer:cast(Peer, ?MODULE, writes, [File, Times]),
            Known = atoll_watch_peers:await(fun() -> known(File) end, fun(N) -> N > Times * 120 end),
            Pid = peer:call(Peer, os, getpid, []),
            Ref = monitor(process, Peer),
            [] = os:cmd("kill -9 " ++ Pid),
            receive {'DOWN', Ref, process, Peer, _} -> ok end,
            {Terms, whole} = open(File),
            Numbers = lists:usort(Terms),
            ?assert(lists:max(Numbers) >= Known),
            ?assertEqual(lists:seq(1, lists:max(Numbers)), Numbers)
        end, [1, 2])
    end) end}.

%% What the writer says that it knows.
known(File) ->
    case file:read_file(File ++ "-known") of
        {ok, <<N:64, _/binary>>} -> N;
        _ -> 0
    end.

%% @private
-spec writes(file:filename(), pos_integer()) -> no_return().
writes(File, _) ->
    {ok, Journal, Terms, _} = atoll_watch_journal:open(File, whole),
    {ok, Fd} = file:open(File ++ "-known", [raw, write]),
    writes(Journal, Fd, lists:max([0 | Terms]) + 1).

writes(Journal0, Fd, N) ->
    {ok, Journal1} = atoll_watch_journal:add([N], Journal0),
    {ok, Journal} = case N rem 50 of
        0 -> atoll_watch_journal:replace(lists:seq(1, N), Journal1);
        _ -> {ok, Journal1}
    end,
    ok = atoll_watch_journal:sync(Journal),
    ok = file:pwrite(Fd, 0, <<N:64>>),
    writes(Journal, Fd, N + 1).
