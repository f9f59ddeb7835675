%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: writes down when connections come and go, and whom the names
%% find silent, so that a suite can tell who was a live member when, and does what has to be
%% timed there.
%%
%% Times are those of the machine's clock in microseconds: all nodes are on one machine.
-module(atoll_name_witness).

-export([start/0, watch_decisions/0, decided/3, steady/3, log/0, register/4, read/2]).
-export([give/1, holders/1, end_all/1, told/1, table/0, own_groups_are/2]).
-export([watch_table/0, table_changed/0, decide/3, first_node/3]).

-define(DEADLINE_MS, 15000).
%% Callers at once.
-define(CALLERS, 20).

%% @doc Begins to write down.
start() ->
    Caller = self(),
    Pid = spawn(fun() ->
        %% It writes down before others act on what they hear.
        _ = process_flag(priority, max),
        true = erlang:register(?MODULE, self()),
        ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
        ok = atoll:subscribe([names_silent, names_heard]),
        Caller ! {self(), started},
        write(now_us(), [{now_us(), nodeup, Node} || Node <- nodes(connected)])
    end),
    receive
        {Pid, started} -> ok
    after ?DEADLINE_MS -> timeout
    end.

%% @doc From now on it writes down each decision of this node for a `yes' too, of which the caller
%% hears later. The process of the names has one tracer: not together with watch_table/0.
watch_decisions() ->
    Registered = [{[{registered, '_', '$1', '$2'}, '_'], [], [{message, {{'$1', '$2'}}}]}],
    _ = erlang:trace_pattern({atoll_name, notice, 2}, Registered, [global]),
    1 = erlang:trace(whereis(atoll_name), true, [call, arity, {tracer, whereis(?MODULE)}]),
    ?MODULE ! watches_decisions,
    ok.

write(Began, Log) ->
    receive
        {What, Node, _} when What =:= nodeup; What =:= nodedown ->
            write(Began, [{now_us(), What, Node} | Log]);
        {atoll, What, #{node := Node}} ->
            write(Began, [{now_us(), What, Node} | Log]);
        watches_decisions ->
            write(Began, [{now_us(), watches, decisions} | Log]);
        {trace, _, call, _, NameAndPid} ->
            write(Began, [{now_us(), registered, NameAndPid} | Log]);
        {From, Ref, log, Until} ->
            %% What has happened by then has to be here first.
            _ = erlang:send_after(max(0, Until - now_us()) div 1000 + 1, self(), {log, From, Ref}),
            write(Began, Log);
        {log, From, Ref} ->
            From ! {Ref, {Began, Log}},
            write(Began, Log)
    end.

%% @doc What it has written down by now, newest first, and when it began; `none' on a node that
%% has just been started.
log() -> log(now_us()).

log(Until) ->
    case whereis(?MODULE) of
        undefined ->
            none;
        Pid ->
            Ref = monitor(process, Pid),
            Pid ! {self(), Ref, log, Until},
            receive
                {Ref, Log} ->
                    true = demonitor(Ref, [flush]),
                    Log;
                {'DOWN', Ref, process, _, Why} ->
                    error(Why)
            after ?DEADLINE_MS -> error(timeout)
            end
    end.

%% @doc When this node, the owner of the process, decided that it has the name; `unknown' where its
%% decisions were not watched since then, as on a node that has ended meanwhile.
decided(Name, Pid, Since) ->
    case log() of
        none ->
            unknown;
        {_, Log} ->
            case [x || {At, watches, decisions} <- Log, At =< Since] of
                [] -> unknown;
                [_] -> hd([At || {At, registered, What} <- Log, What =:= {Name, Pid}, At >= Since] ++ [never])
            end
    end.

%% @doc Whether this node and that one were connected from then until then and never silent, as
%% far as this one has written down; answers when it is over.
steady(Node, Since, Until) ->
    case log(Until) of
        none ->
            false;
        {Began, _} when Node =:= node() ->
            Began =< Since;
        {Began, Log} ->
            Mine = [{At, What} || {At, What, N} <- Log, N =:= Node],
            Between = [x || {At, _} <- Mine, At >= Since, At =< Until],
            Before = [What || {At, What} <- Mine, At < Since],
            Began =< Since andalso Between =:= [] andalso lists:member(lists:sublist(Before, 1), [[nodeup], [names_heard]])
    end.

%% @doc Registers or re-registers; with when it was called and when it answered.
register(How, Group, Name, Pid) ->
    Since = now_us(),
    Answer = s_group:How(Group, Name, Pid),
    {Answer, Since, now_us()}.

%% @doc What a reader of this node finds, and when.
read(Group, Name) ->
    {s_group:whereis_name(Group, Name), now_us()}.

%% @doc Gives each of these names to a process of its own here.
give(Names) ->
    Given = [{Group, Name, Meta, atoll_name_holder:holder()} || {Group, Name, Meta} <- Names],
    Refs = [
        element(2, spawn_monitor(fun() -> [yes = atoll_name:register(G, N, Pid, Meta) || {G, N, Meta, Pid} <- Share] end))
     || Share <- shares(Given)
    ],
    [receive {'DOWN', Ref, process, _, Why} -> normal = Why end || Ref <- Refs],
    [{Group, Name, Pid} || {Group, Name, _, Pid} <- Given].

shares(All) ->
    Numbered = lists:zip(lists:seq(1, length(All)), All),
    [[X || {I, X} <- Numbered, I rem ?CALLERS =:= K] || K <- lists:seq(0, ?CALLERS - 1)].

%% @doc A rule: the smaller metadata keeps a name; of some names nobody, or it fails.
decide(Name, _, _) when Name rem 10 =:= 0 -> nobody;
decide(Name, {Pid1, Meta1}, {Pid2, Meta2}) when Name rem 10 =/= 5 ->
    case Meta1 < Meta2 of
        true -> Pid1;
        false -> Pid2
    end.

%% @doc As a function for global: whoever is on the first node keeps the name.
first_node(_Name, Pid1, Pid2) ->
    case node(Pid1) < node(Pid2) of
        true -> Pid1;
        false -> Pid2
    end.

%% @doc Processes that keep what they are sent.
holders(Count) ->
    [atoll_name_holder:holder() || _ <- lists:seq(1, Count)].

%% @doc Ends processes of this node, and gives what they were sent.
end_all(Pids) ->
    Told = told(Pids),
    _ = [exit(Pid, kill) || Pid <- Pids],
    Told.

%% @doc What these were sent that are alive.
told(Pids) ->
    [{Pid, atoll_name_holder:told(Pid)} || Pid <- Pids, is_process_alive(Pid)].

%% @doc Waits until this node is in these groups, each with these members, and its tables
%% of their names are as given; says when.
own_groups_are(Groups, Tables) ->
    own_groups_are(Groups, Tables, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

own_groups_are(Groups, Tables, Deadline) ->
    Seen = {s_group:own_s_groups(), [{G, atoll_name_holder:table(G)} || {G, _} <- Tables]},
    case {Seen =:= {Groups, Tables}, erlang:monotonic_time(millisecond) > Deadline} of
        {true, _} -> {ok, now_us()};
        {false, true} -> {still, Seen};
        {false, false} ->
            %% The room itself is the clock: its answer comes after what it had to do.
            _ = atoll_name:info(),
            receive after 1 -> own_groups_are(Groups, Tables, Deadline) end
    end.

%% @doc All names of this node, with their processes.
table() ->
    lists:sort([{Key, Pid} || {Key, Pid, _, _} <- ets:tab2list(atoll_name)]).

%% @doc From now on it is written down when this node's table of names changes.
watch_table() ->
    Caller = self(),
    Pid = spawn(fun() ->
        _ = process_flag(priority, max),
        true = erlang:register(atoll_name_watch, self()),
        _ = erlang:trace_pattern({atoll_name, act, 2}, [{[{act, {insert, '_', '_', '_', '_', '_'}}, '_'], [], []}] ++ [{[{act, {delete, '_', '_'}}, '_'], [], []}], [global]),
        1 = erlang:trace(whereis(atoll_name), true, [call]),
        Caller ! {self(), watching},
        watching(now_us())
    end),
    receive
        {Pid, watching} -> ok
    after ?DEADLINE_MS -> timeout
    end.

watching(Last) ->
    receive
        {trace, _, call, _} -> watching(now_us());
        {From, last} -> From ! {self(), Last}
    end.

%% @doc When it changed last; it is watched no more.
table_changed() ->
    Pid = whereis(atoll_name_watch),
    Ref = monitor(process, Pid),
    Pid ! {self(), last},
    Last =
        receive
            {Pid, At} -> At
        after ?DEADLINE_MS -> error(timeout)
        end,
    receive
        {'DOWN', Ref, process, Pid, _} -> Last
    end.

now_us() -> os:system_time(microsecond).
