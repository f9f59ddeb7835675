%% SPDX-License-Identifier: Apache-2.0
%% @doc What an Erlang node of a service says during a run: how busy its schedulers are, whose mailboxes are long, what
%% of its limits is used, what waits for connections with other nodes. It is asked through the agent of
%% atoll_watch, which is there for the run and leaves nothing; the node needs nothing of Atoll.
%%
%% A node that does not answer, or stops answering, has said what it has said so far, or nothing.
-module(atoll_scale_node).

-export([join/1, os_pid/1, start/1, stop/1]).
-export([new/0, look/3, seen/2]).

-export_type([seen/0, looks/0]).

-type seen() :: #{
    name := binary(),
    looks := non_neg_integer(),
    schedulers := pos_integer(),
    %% The share of their time that the normal schedulers were at work; the most that waited to run.
    utilisation := float(),
    run_queue := non_neg_integer(),
    %% The longest first: how many messages at most, at how many looks there were some, the share of the node's reductions, and
    %% the function in which it was seen most.
    mailboxes := [#{name := binary(), most := non_neg_integer(), had := non_neg_integer(), looks := pos_integer(), work := float(), current := binary()}],
    limits := [#{what := processes | ports | atoms, most := non_neg_integer(), limit := pos_integer()}],
    %% Bytes at most, by kind.
    memory := #{atom() => non_neg_integer()},
    %% A second.
    collections := float(),
    %% What the emulator counts ({@link atoll_scale_emulator}).
    collecting => float() | none,
    locks => [atoll_scale_emulator:lock()] | none,
    %% Bytes that waited for a node at most, and from how many on senders are suspended; how many were.
    connections := [#{peer := binary(), most := non_neg_integer(), limit := pos_integer()}],
    suspended := non_neg_integer()
}.

-record(mailbox, {
    name :: binary(),
    most = 0 :: non_neg_integer(),
    had = 0 :: non_neg_integer(),
    %% Its reductions and those of the node, when it was seen first and last.
    first :: {number(), number()},
    last :: {number(), number()},
    current = #{} :: #{binary() => pos_integer()}
}).

%% What was seen so far, and of the first look what counts up.
-record(looks, {
    count = 0 :: non_neg_integer(),
    first = none :: none | {AtUs :: integer(), #{term() => number()}},
    last = none :: none | {AtUs :: integer(), #{term() => number()}},
    most = #{} :: #{term() => number()},
    mailboxes = #{} :: #{Pid :: binary() => #mailbox{}}
}).
-opaque looks() :: #looks{}.

-define(LOOK_MS, 200).
-define(ASK_MS, 3000).
-define(STOP_MS, 15000).
-define(LONGEST, 8).
%% Mailboxes that are remembered.
-define(MOST, 200).
-define(AGENT, atoll_watch_agent_explore).

%% @doc Makes this VM able to ask the node of a description, if it has one.
-spec join(atoll_scale_plan:plan()) -> ok | {error, unicode:chardata()}.
join(#{node := Node, dir := Dir} = Plan) ->
    Way = #{nodes => [Node]},
    case atoll_view_join:start(case Plan of #{cookie_file := File} -> Way#{cookie_file => filename:join(Dir, File)}; #{} -> Way end) of
        {ok, Cookie} -> atoll_view_join:let_in([Node], Cookie);
        {error, _} = Error -> Error
    end;
join(_) ->
    ok.

%% @doc The number of its process, if it is one of this machine.
-spec os_pid(node()) -> {ok, pos_integer()} | none.
os_pid(Node) ->
    {ok, Here} = inet:gethostname(),
    try {erpc:call(Node, inet, gethostname, [], ?ASK_MS), erpc:call(Node, os, getpid, [], ?ASK_MS)} of
        {{ok, Here}, Pid} -> {ok, list_to_integer(Pid)};
        _ -> none
    catch
        error:{erpc, _} -> none
    end.

%% @doc Starts asking; it ends with the caller.
-spec start(node()) -> pid().
start(Node) ->
    Caller = self(),
    spawn_link(fun() -> loop(Node, none, new(), {Caller, atoll_scale_emulator:start(Node)}) end).

%% @doc What was seen; nothing if it never answered.
-spec stop(pid()) -> seen() | none.
stop(Asking) ->
    Ref = monitor(process, Asking),
    Asking ! {stop, self(), Ref},
    receive
        {Ref, Seen} -> true = demonitor(Ref, [flush]), Seen;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    after ?STOP_MS -> exit({late, ?MODULE})
    end.

loop(Node, Has0, Looks0, {Caller, Counting} = For) ->
    {Has, Looks} = asked(Node, Has0, Looks0),
    receive
        {stop, Caller, Ref} ->
            {_, Last} = asked(Node, Has, Looks),
            Counted = atoll_scale_emulator:stop(Counting),
            ok = atoll_watch_node:leave(Node, self(), ?ASK_MS),
            Caller ! {Ref, case seen(atom_to_binary(Node), Last) of none -> none; Seen -> maps:merge(Seen, Counted) end}
    after ?LOOK_MS ->
        loop(Node, Has, Looks, For)
    end.

asked(Node, Has, Looks) ->
    case atoll_watch_node:sample(Node, self(), Has, ?ASK_MS) of
        {ok, #{at := At, readings := Readings, facts := Facts}, _} ->
            {case Facts of #{code := Code} -> Code; none -> Has end, look({At, Readings}, mailboxes(Node), Looks)};
        {error, _} ->
            {Has, Looks}
    end.

mailboxes(Node) ->
    try erpc:call(Node, ?AGENT, explore, [{processes, message_queue_len, ?LONGEST}], ?ASK_MS) of
        #{items := Items} -> Items
    catch
        error:{erpc, _} -> [];
        %% It was given up there, or goes just now.
        error:{exception, _, _} -> [];
        exit:_ -> []
    end.

%% @doc Nothing was seen yet.
-spec new() -> looks().
new() -> #looks{}.

%% @doc One look: what the agent reads, and the processes with the longest mailboxes.
-spec look({AtUs :: integer(), [atoll_watch_agent:reading()]}, [map()], looks()) -> looks().
look({At, Readings}, Rows, #looks{count = Count, first = First, most = Most, mailboxes = Mailboxes} = Looks) ->
    Now = maps:from_list([case Reading of {Name, Value} -> {Name, Value}; {Name, Label, Value} -> {{Name, Label}, Value} end || Reading <- Readings]),
    All = maps:get(reductions, Now, 0),
    Looks#looks{
        count = Count + 1,
        first = case First of none -> {At, Now}; _ -> First end,
        last = {At, Now},
        most = maps:merge_with(fun(_, A, B) -> max(A, B) end, Most, Now),
        mailboxes = lists:foldl(fun(Row, Acc) -> mailbox(Row, All, Acc) end, Mailboxes, Rows)
    }.

mailbox(#{pid := Pid, name := Name, initial_call := Begun, current := Current, reductions := Reductions, message_queue := N}, All, Mailboxes) ->
    case Mailboxes of
        #{Pid := #mailbox{most = Most, had = Had, current = Seen} = Is} ->
            Mailboxes#{Pid := Is#mailbox{
                most = max(N, Most), had = Had + has(N), last = {Reductions, All},
                current = case N of 0 -> Seen; _ -> maps:update_with(Current, fun(Times) -> Times + 1 end, 1, Seen) end
            }};
        #{} when N > 0, map_size(Mailboxes) < ?MOST ->
            Called = case Name of null -> <<Pid/binary, " (", Begun/binary, ")">>; _ -> Name end,
            Mailboxes#{Pid => #mailbox{name = Called, most = N, had = 1, first = {Reductions, All}, last = {Reductions, All}, current = #{Current => 1}}};
        #{} ->
            Mailboxes
    end.

has(0) -> 0;
has(_) -> 1.

%% @doc What a node was seen to do.
-spec seen(Name :: binary(), looks()) -> seen() | none.
seen(_, #looks{first = none}) ->
    none;
seen(Name, #looks{count = Count, first = {Begun, First}, last = {Ended, Last}, most = Most, mailboxes = Mailboxes}) ->
    Grown = fun(Key) -> maps:get(Key, Last, 0) - maps:get(Key, First, 0) end,
    #{
        name => Name,
        looks => Count,
        schedulers => maps:get(schedulers_online, Last, 1),
        utilisation => utilisation(First, Grown),
        run_queue => maps:get(run_queue_total, Most, 0),
        mailboxes => lists:sublist([told(Is, Count) || Is <- lists:reverse(lists:keysort(#mailbox.most, maps:values(Mailboxes)))], ?LONGEST),
        limits => [
            #{what => What, most => N, limit => Limit}
         || {What, Of} <- [{processes, processes_limit}, {ports, ports_limit}, {atoms, atoms_limit}],
            #{What := N, Of := Limit} <- [Most]
        ],
        memory => maps:from_list([{Kind, Bytes} || {Kind, Key} <- [
            {total, memory_total}, {processes, memory_processes}, {binaries, memory_binaries}, {ets, memory_ets}, {code, memory_code}
        ], #{Key := Bytes} <- [Most]]),
        collections => Grown(garbage_collections) * 1.0e6 / max(1, Ended - Begun),
        connections => [#{peer => to_binary(Peer), most => Bytes, limit => Limit} || {{dist_queue, Peer}, Bytes} <- lists:sort(maps:to_list(Most)), #{dist_buffer_limit := Limit} <- [Last]],
        suspended => maps:get(processes_suspended, Most, 0)
    }.

to_binary(Peer) when is_atom(Peer) -> atom_to_binary(Peer);
to_binary(Peer) -> Peer.

utilisation(First, Grown) ->
    Normal = [Label || {scheduler_time, <<"normal_", _/binary>> = Label} <- maps:keys(First)],
    case lists:sum([Grown({scheduler_time, Label}) || Label <- Normal]) of
        Time when Time > 0 -> lists:sum([Grown({scheduler_active, Label}) || Label <- Normal]) / Time;
        _ -> 0.0
    end.

told(#mailbox{name = Name, most = Most, had = Had, first = {Reductions0, All0}, last = {Reductions, All}, current = Current}, Looks) ->
    {_, Where} = lists:max([{Times, Function} || {Function, Times} <- maps:to_list(Current)]),
    #{name => Name, most => Most, had => Had, looks => Looks, work => min(1.0, max(0, Reductions - Reductions0) / max(1, All - All0)), current => Where}.
