%% SPDX-License-Identifier: Apache-2.0
%% The windows against a naive fold over all that was measured, and their files.
-module(atoll_watch_window_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([writes/1]).

-define(NODE, 'shop@10.0.0.7').

properties_test_() ->
    atoll_prop:tests([{as_a_naive_fold, as_a_naive_fold(), 300}, {a_row_that_is_cut_is_none, a_row_that_is_cut_is_none(), 500}]).

in_dir(Fun) ->
    Dir = atoll_cli_os:new_dir(),
    try Fun(Dir) after atoll_cli_os:remove_dir(Dir) end.

%% Times go on by steps from a second to days; at any of them the writer may be killed: it then
%% knows nothing but what is on disk.
steps() ->
    list({frequency([{8, range(1, 20000)}, {3, range(20000, 900000)}, {1, range(900000, 200000000)}]), list({oneof([processes, ports, {run_queue, <<"a">>}]), oneof([range(0, 1000), float(-10.0, 10.0)])}),
          frequency([{6, goes_on}, {1, killed}])}).

as_a_naive_fold() ->
    ?FORALL(Steps, steps(), in_dir(fun(Dir) ->
        Begin = 1700000000000,
        {Now, Measured, _} = lists:foldl(fun({Ms, Values, How}, {Now0, All, Writer0}) ->
            Now1 = Now0 + Ms,
            {ok, Writer} = atoll_watch_series:write(?NODE, Now1, maps:from_list(Values), Writer0),
            {Now1, [{Now1, Key, Value} || {Key, Value} <- maps:to_list(maps:from_list(Values))] ++ All, case How of goes_on -> Writer; killed -> new(Dir) end}
        end, {Begin, [], new(Dir)}, Steps),
        lists:all(fun(Window) -> same(naive(Window, Now, Measured), kept(Dir, Window, Now)) end, atoll_watch_window:all())
    end)).

new(Dir) -> atoll_watch_series:new(Dir, 100).

kept(Dir, Window, Now) ->
    maps:from_list([{{Series, Time}, {A, Min, Max}} || {Series, Points} <- atoll_watch_series:read(Dir, ?NODE, Window, Now, fun(_) -> true end), {Time, A, Min, Max} <- Points]).

naive(Window, Now, Measured) ->
    Step = atoll_watch_window:step(Window),
    From = (Now div Step - atoll_watch_window:points(Window) + 1) * Step,
    Groups = maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Value}) -> Value end,
        [{{series(Key), Time div Step * Step}, Value} || {Time, Key, Value} <- Measured, Time >= From]),
    maps:map(fun(_, Values) -> {lists:sum(Values) / length(Values), lists:min(Values), lists:max(Values)} end, Groups).

series({Name, Label}) -> {atom_to_binary(Name), Label};
series(Name) -> {atom_to_binary(Name), none}.

%% Numbers have 24 bits on disk.
same(Expected, Is) ->
    lists:sort(maps:keys(Expected)) =:= lists:sort(maps:keys(Is)) andalso
        lists:all(fun({Key, Values}) -> lists:all(fun near/1, lists:zip(tuple_to_list(Values), tuple_to_list(maps:get(Key, Is)))) end, maps:to_list(Expected)).

near({A, B}) -> abs(A - B) =< 1.0e-4 + abs(A) * 1.0e-5.

a_row_that_is_cut_is_none() ->
    Row = ?LET(Cells, list({range(0, 199), {range(1, 60000), range(-100, 100), range(-200, -100), range(100, 200)}}),
               maps:from_list([{Column, {N, float(A), float(Min), float(Max)}} || {Column, {N, A, Min, Max}} <- Cells])),
    ?FORALL({Slot, Is, Cut, Before}, {range(0, 1 bsl 40), Row, range(1, 3000), Row}, begin
        Binary = atoll_watch_window:encode(Slot, Is),
        {_, Size} = atoll_watch_window:place(quarter, Slot),
        %% It lies over the beginning of one that was there.
        Old = atoll_watch_window:encode(Slot - 180, Before),
        Part = binary:part(Binary, 0, min(Cut, byte_size(Binary) - 1)),
        Torn = <<Part/binary, (binary:part(Old, min(byte_size(Part), byte_size(Old)), max(0, byte_size(Old) - byte_size(Part))))/binary>>,
        byte_size(Binary) =< Size andalso {ok, Slot, Is} =:= atoll_watch_window:decode(<<Binary/binary, "behind it">>, all) andalso
            case atoll_watch_window:decode(Torn, all) of
                none -> true;
                %% What was cut off was the same.
                {ok, Slot, Is} -> true;
                {ok, S, Row0} -> {S, Row0} =:= {Slot - 180, Before}
            end
    end).

places_do_not_overlap_test() ->
    Places = lists:sort([atoll_watch_window:place(Window, N) || Window <- atoll_watch_window:all(), N <- lists:seq(0, atoll_watch_window:points(Window) - 1)]),
    End = lists:foldl(fun({Position, Size}, Before) -> ?assertEqual(Before, Position), Position + Size end, 0, Places),
    ?assertEqual(atoll_watch_window:file_size(), End),
    ?assertEqual([900, 3600, 86400, 604800, 2678400], [atoll_watch_window:step(W) * atoll_watch_window:points(W) div 1000 || W <- atoll_watch_window:all()]),
    %% Each is made of whole ones of the window before.
    [?assertEqual(0, atoll_watch_window:step(W) rem atoll_watch_window:step(Of)) || W <- tl(atoll_watch_window:all()), {Of, _, _} <- [atoll_watch_window:parts(W, 0)]].

what_has_no_column_is_counted_test() ->
    in_dir(fun(Dir) ->
        Readings = maps:from_list([{{run_queue, integer_to_binary(N)}, N} || N <- lists:seq(1, 300)]),
        {ok, Full} = atoll_watch_series:write(?NODE, 1000, Readings, atoll_watch_series:new(Dir, 50)),
        ?assertEqual(250, atoll_watch_series:omitted(Full)),
        %% There is room for those without a label.
        {ok, Writer} = atoll_watch_series:write(?NODE, 6000, #{processes => 7}, Full),
        ?assertEqual(0, atoll_watch_series:omitted(Writer)),
        ?assertEqual(51, length(atoll_watch_series:names(Dir, ?NODE))),
        ?assertEqual([{{<<"processes">>, none}, [{5000, 7.0, 7.0, 7.0}]}], atoll_watch_series:read(Dir, ?NODE, quarter, 6000, fun({M, _}) -> M =:= <<"processes">> end)),
        ?assert(filelib:file_size(filename:join([Dir, "shop%4010.0.0.7", "windows"])) =< atoll_watch_window:file_size())
    end).

what_lies_there_and_is_nothing_of_ours_is_begun_anew_test() ->
    in_dir(fun(Dir) ->
        {ok, _} = atoll_watch_series:write(?NODE, 1000, #{processes => 7}, new(Dir)),
        ok = file:write_file(filename:join([Dir, "shop%4010.0.0.7", "series"]), <<"x">>),
        ?assertEqual([], atoll_watch_series:read(Dir, ?NODE, quarter, 1000, fun(_) -> true end)),
        {ok, _} = atoll_watch_series:write(?NODE, 6000, #{ports => 3}, new(Dir)),
        ?assertEqual([{{<<"ports">>, none}, [{5000, 3.0, 3.0, 3.0}]}], atoll_watch_series:read(Dir, ?NODE, quarter, 6000, fun(_) -> true end)),
        ?assertEqual(1, atoll_watch_series:expire(Dir, erlang:system_time(second) + 60)),
        ?assertEqual([], atoll_watch_series:names(Dir, ?NODE))
    end).

a_directory_that_cannot_be_written_is_an_error_test() ->
    in_dir(fun(Dir) ->
        File = filename:join(Dir, "file"),
        ok = file:write_file(File, <<>>),
        ?assertMatch({error, enotdir, _}, atoll_watch_series:write(?NODE, 1000, #{processes => 7}, new(File)))
    end).

%% Another VM writes, and is killed in the middle of it.
a_writer_that_is_killed_leaves_what_can_be_read_test_() ->
    {timeout, 60, fun() -> in_dir(fun(Dir) ->
        Paths = lists:append([["-pa", filename:dirname(code:which(M))] || M <- [?MODULE, atoll_watch_series]]),
        {ok, Peer, _} = peer:start(#{connection => standard_io, args => Paths}),
        ok = peer:cast(Peer, ?MODULE, writes, [Dir]),
        Times = 1700000000000,
        Pid = peer:call(Peer, os, getpid, []),
        %% It writes a point a turn, the turn's number; hours of them.
        _ = atoll_watch_peers:await(fun() -> atoll_watch_series:last(Dir, ?NODE) end, fun(Last) -> Last =/= none andalso Last - Times > 5 * 3600 * 1000 end),
        Ref = monitor(process, Peer),
        [] = os:cmd("kill -9 " ++ Pid),
        receive {'DOWN', Ref, process, Peer, _} -> ok end,
        Last = atoll_watch_series:last(Dir, ?NODE),
        [begin
            Step = atoll_watch_window:step(Window),
            [{_, Points}] = atoll_watch_series:read(Dir, ?NODE, Window, Last, fun(_) -> true end),
            %% No hole, up to the last one, and each as it is to be.
            From = max(Times, (Last div Step - atoll_watch_window:points(Window) + 1) * Step),
            ?assertEqual(lists:seq(From div Step * Step, Last, Step), [Time || {Time, _, _, _} <- Points]),
            [?assert(near({float(max(Times, Time) - Times) / 5000, Min})) || {Time, _, Min, _} <- Points]
        end || Window <- atoll_watch_window:all()],
        {ok, _} = atoll_watch_series:write(?NODE, Last + 5000, #{processes => 1}, new(Dir))
    end) end}.

%% @private Until it is killed.
-spec writes(file:filename_all()) -> no_return().
writes(Dir) -> writes(new(Dir), 0).

writes(Writer0, N) ->
    {ok, Writer} = atoll_watch_series:write(?NODE, 1700000000000 + N * 5000, #{processes => N}, Writer0),
    writes(Writer, N + 1).
