%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: starts the application with the protocols of a folder, keeps what
%% it logs, and gives and looks up names all the time.
-module(atoll_upgrade_probe).

-export([boot/1, spoken/0, dropped/0, logged/0, log/2]).
-export([work/1, watch/2, rest/1, report/1, agreed/2]).

-define(DEADLINE_MS, 15000).
%% Names of the worker that stand at a time.
-define(STAND, 10).

%% @doc Starts the application, with the modules in this folder before all others.
boot(Dir) ->
    Dir =:= none orelse code:add_patha(Dir),
    Caller = self(),
    Pid = spawn(fun() ->
        ?MODULE = ets:new(?MODULE, [named_table, public, bag]),
        Caller ! {self(), kept},
        receive
            stop -> ok
        end
    end),
    receive
        {Pid, kept} -> ok
    after ?DEADLINE_MS -> error(timeout)
    end,
    ok = logger:add_handler(?MODULE, ?MODULE, #{}),
    {ok, _} = application:ensure_all_started(atoll),
    atoll_name_witness:start().

log(#{msg := {report, #{what := What} = Report}}, _Config) ->
    true = ets:insert(?MODULE, {What, Report}),
    ok;
log(_Event, _Config) ->
    ok.

%% @doc What was said of versions.
logged() ->
    [Report || What <- [no_common_version, common_version], {_, Report} <- ets:lookup(?MODULE, What)].

%% @doc In which versions each protocol speaks with whom.
spoken() ->
    [{Room, maps:remove(node(), atoll_interpreter:versions(Room))} || {Room, _} <- atoll_raised:protocols()].

%% @doc How many messages of each protocol were not read, or not sent, for their version.
dropped() ->
    [{Room, N} || {Room, _} <- atoll_raised:protocols(), #{dropped_version := N} <- [atoll_interpreter:counters(Room)]].

%% @doc Waits until all protocols speak these versions with these nodes, where they speak with them;
%% those in a group with them do.
agreed(Versions, Rooms) ->
    agreed(Versions, Rooms, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

agreed(Versions, Rooms, Deadline) ->
    Spoken = spoken(),
    Wrong = [
        {Room, Node, Is, instead_of, Should}
     || {Room, Known} <- Spoken,
        {Node, Should} <- maps:to_list(Versions),
        Is <- [maps:get(Node, Known, unknown)],
        Is =/= Should,
        Is =/= unknown orelse (Should =/= 1 andalso lists:member(Room, Rooms))
    ],
    case Wrong of
        [] -> ok;
        _ ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true -> receive after 5 -> agreed(Versions, Rooms, Deadline) end;
                false -> {still, Wrong}
            end
    end.

%% @doc A process that gives names in a group, looks up all that stand, and takes them back.
work(Group) ->
    spawn(fun() -> work(Group, 1, [], [], #{given => 0, read => 0, refused => [], lost => []}) end).

%% @doc From now on these names are looked up too.
watch(Pid, Names) -> ask(Pid, {watch, Names}).

%% @doc What came of it so far: how many were given and read, what was refused and lost.
report(Pid) -> ask(Pid, report).

%% @doc Ends it, and its names.
rest(Pid) -> ask(Pid, rest).

ask(Pid, What) ->
    Ref = monitor(process, Pid),
    Pid ! {self(), Ref, What},
    receive
        {Ref, Answer} ->
            true = demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, _, Why} ->
            error(Why)
    after ?DEADLINE_MS -> error(timeout)
    end.

work(Group, N, Own, Others, Report) ->
    receive
        {From, Ref, {watch, Names}} ->
            From ! {Ref, ok},
            work(Group, N, Own, Names, Report);
        {From, Ref, report} ->
            From ! {Ref, Report},
            work(Group, N, Own, Others, Report);
        {From, Ref, rest} ->
            _ = [exit(Pid, kill) || {_, Pid} <- Own],
            From ! {Ref, Report}
    after 0 ->
        Name = {work, node(), N},
        Pid = atoll_name_holder:holder(),
        Answer = atoll_name:register(Group, Name, Pid),
        {Kept, Old} = lists:split(min(?STAND, length(Own) + 1), [{Name, Pid} | Own]),
        _ = [{atoll_name:unregister(Group, OldName), exit(OldPid, kill)} || {OldName, OldPid} <- Old],
        Standing = [Row || Row <- Kept, Answer =:= yes orelse Row =/= {Name, Pid}],
        Missing = [{Row, Seen} || {Look, Is} = Row <- Standing ++ Others, (Seen = atoll_name:whereis(Group, Look)) =/= Is],
        #{given := Given, read := Read, refused := Refused, lost := Lost} = Report,
        work(Group, N + 1, Standing, Others, Report#{
            given := Given + length([x || Answer =:= yes]),
            read := Read + length(Standing) + length(Others),
            refused := [{Name, Answer} || Answer =/= yes] ++ Refused,
            lost := lists:sublist(Missing ++ Lost, 20)
        })
    end.
