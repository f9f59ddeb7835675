%% SPDX-License-Identifier: Apache-2.0
%% What Linux says of processes and of sockets that listen: recorded texts, and what is here.
-module(atoll_scale_proc_tests).

-include_lib("eunit/include/eunit.hrl").

own() -> list_to_integer(os:getpid()).

the_limit_of_open_files_is_the_soft_one_test() ->
    Text = fun(Soft) ->
        iolist_to_binary(["Limit                     Soft Limit           Hard Limit           Units     \n",
                          "Max processes             96188                96188                processes \n",
                          "Max open files            ", Soft, "                 1048576              files     \n"])
    end,
    ?assertEqual({ok, 1024}, atoll_scale_proc:parse_limit(Text("1024"))),
    ?assertEqual({ok, infinity}, atoll_scale_proc:parse_limit(Text("unlimited"))),
    ?assertEqual(none, atoll_scale_proc:parse_limit(<<"Max processes 1 2 processes\n">>)).

counters_are_read_by_their_names_test() ->
    Text = <<"TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 3 812 815\nIpExt: InNoRoutes\nIpExt: 4\n">>,
    ?assertEqual(#{<<"SyncookiesSent">> => 3, <<"ListenOverflows">> => 812, <<"ListenDrops">> => 815}, atoll_scale_proc:parse_counters(Text)),
    ?assertEqual(#{}, atoll_scale_proc:parse_counters(<<"IpExt: InNoRoutes\nIpExt: 4\n">>)).

sockets_in_use_and_those_that_wait_are_counted_test() ->
    Text = <<"sockets: used 278\nTCP: inuse 7 orphan 0 tw 5 alloc 9 mem 1\nUDP: inuse 0 mem 0\n">>,
    ?assertEqual(#{in_use => 7, waiting => 5}, atoll_scale_proc:parse_sockets(Text)),
    ?assertEqual(#{}, atoll_scale_proc:parse_sockets(<<>>)).

%% Two from one address to port 8081, one from another, their other ends, and what listens there.
connections_to_one_place_share_its_ports_test() ->
    Lines = [
        ["   ", integer_to_list(N), ": ", Local, " ", Remote, " ", State, " 00000000:00000000 03:00001770 00000000     0        0 0 3 0000000000000000\n"]
     || {N, {Local, Remote, State}} <- lists:zip(lists:seq(0, 5), [
            {"0100007F:1F91", "00000000:0000", "0A"}, {"0100007F:8001", "0100007F:1F91", "06"}, {"0100007F:8002", "0100007F:1F91", "01"},
            {"0200007F:8001", "0100007F:1F91", "01"}, {"0100007F:1F91", "0100007F:8002", "01"}, {"0100007F:8001", "0100007F:1F92", "06"}
        ])
    ],
    Text = iolist_to_binary(["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" | Lines]),
    ?assertEqual(2, atoll_scale_proc:parse_most_to_one([Text])),
    ?assertEqual(0, atoll_scale_proc:parse_most_to_one([])).

this_program_has_open_files_memory_and_a_name_test() ->
    {ok, Open, _} = atoll_scale_proc:files(own()),
    {ok, File} = file:open("/dev/null", [read, raw]),
    {ok, More, _} = atoll_scale_proc:files(own()),
    ok = file:close(File),
    ?assert(Open > 3),
    ?assert(More > Open - 3),
    ?assert(atoll_scale_proc:memory(own()) > 1000000),
    ?assertEqual([{own(), <<"beam.smp">>}], atoll_scale_proc:processes([own(), 4194305])),
    ?assertEqual(none, atoll_scale_proc:files(4194305)),
    ?assert(lists:member(own(), atoll_scale_proc:children(own()))).

%% Two connections that nobody accepts wait, of five that may.
a_socket_that_listens_is_found_with_its_queue_test() ->
    {ok, Socket} = gen_tcp:listen(0, [{backlog, 5}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    Clients = [Client || _ <- [1, 2], {ok, Client} <- [gen_tcp:connect({127, 0, 0, 1}, Port, [])]],
    Mine = atoll_scale_listen:inodes(own()),
    try
        [#{backlog := Backlog, waiting := Waiting, inode := Inode}] = [Is || #{port := P} = Is <- atoll_scale_listen:all(), P =:= Port],
        ?assertEqual({5, 2}, {Backlog, Waiting}),
        ?assert(lists:member(Inode, Mine))
    after
        [gen_tcp:close(Is) || Is <- [Socket | Clients]]
    end.

%% Of two messages of an answer: port 9999, of which 6 wait and 5 may; and the end.
an_answer_of_the_kernel_is_read_test() ->
    Body = <<2, 10, 0, 0, 9999:16/big, 0:(46 * 8), 0:32, 6:32/native, 5:32/native, 0:32, 4711:32/native>>,
    Message = <<(16 + byte_size(Body)):32/native, 20:16/native, 2:16/native, 1:32/native, 0:32/native, Body/binary>>,
    End = <<20:32/native, 3:16/native, 2:16/native, 1:32/native, 0:32/native, 0:32>>,
    Found = [#{port => 9999, waiting => 6, backlog => 5, inode => 4711}],
    ?assertEqual({done, Found}, atoll_scale_listen:parse(<<Message/binary, End/binary>>)),
    ?assertEqual({more, Found}, atoll_scale_listen:parse(Message)),
    ?assertEqual({more, []}, atoll_scale_listen:parse(<<>>)).
