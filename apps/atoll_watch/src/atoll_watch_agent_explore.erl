%% SPDX-License-Identifier: Apache-2.0
%% @doc The part of the agent that says what runs on a node, when somebody looks: processes, tables, supervision trees. It is put into a node with
%% {@link atoll_watch_agent}, and takes functions of OTP alone, as that one does.
-module(atoll_watch_agent_explore).

-export([explore/1]).

-export_type([question/0]).

%% A process is named by its text or the name that it is registered by.
-type question() ::
    {processes, memory | reductions | message_queue_len, Most :: pos_integer()}
    | {process, string()}
    | {tables, Most :: pos_integer()}
    | {supervision, top | string()}.

%% What it may look at, and the memory that it may take, in words.
-define(EXPLORED, 100000).
-define(EXPLORE_MS, 1000).
-define(EXPLORE_WORDS, 20000000).
-define(RELATED, 100).
-define(TREE, {500, 5}).
-define(TREE_MS, 3000).
-define(CHILDREN, 200).
-define(SUPERVISOR_MS, 500).

%% @doc Answers a question about what runs here, in the calling process: by functions that change nothing, within bounds
%% of time, of what is looked at, and of memory. Neither messages nor states of processes are read.
-spec explore(question()) -> map() | not_found.
explore(Question) ->
    _ = process_flag(max_heap_size, #{size => ?EXPLORE_WORDS, kill => true, error_logger => false}),
    _ = process_flag(priority, low),
    explored(Question).

explored({processes, Item, Most}) ->
    Pids = processes(),
    {Values, Seen} = explored(Pids, fun(Pid) -> erlang:process_info(Pid, Item) end, ?EXPLORED, late(?EXPLORE_MS), [], 0),
    #{total => length(Pids), looked_at => Seen, items => [Is || {_, Pid} <- lists:sublist(lists:reverse(lists:sort(Values)), Most), Is <- [process_row(Pid)], Is =/= not_found]};
explored({process, Text}) ->
    case pid_of(Text) of
        Pid when is_pid(Pid), node(Pid) =:= node() -> whole_process(Pid, process_row(Pid));
        _ -> not_found
    end;
explored({tables, Most}) ->
    Tables = ets:all(),
    {Values, Seen} = explored(Tables, fun(Table) -> case ets:info(Table, memory) of undefined -> undefined; Words -> {memory, Words} end end, ?EXPLORED, late(?EXPLORE_MS), [], 0),
    #{total => length(Tables), looked_at => Seen, items => [table_row(Info) || {_, Table} <- lists:sublist(lists:reverse(lists:sort(Values)), Most), Info <- [ets:info(Table)], Info =/= undefined]};
explored({supervision, top}) ->
    Tops = [{App, Pid, Module} || {App, _, _} <- lists:sort(application:which_applications(?SUPERVISOR_MS)), {Pid, Module} <- [top(application_controller:get_master(App))], is_pid(Pid)],
    {Items, {_, _, Omitted}} = lists:mapfoldl(fun({App, Pid, Module}, Left0) ->
        {#{children := [Child]}, Left} = one_more(Left0, fun(Left1) ->
            {Child, Left2} = supervised({App, Pid, supervisor, [Module]}, element(2, ?TREE) - 1, Left1),
            {#{children => [Child]}, Left2}
        end, #{children => [entry({App, Pid, supervisor, [Module]})]}),
        {Child#{id => text(App), type => application}, Left}
    end, {element(1, ?TREE), late(?TREE_MS), 0}, Tops),
    #{items => Items, omitted => Omitted};
explored({supervision, Text}) ->
    case pid_of(Text) of
        Pid when is_pid(Pid), node(Pid) =:= node() ->
            {Item, {_, _, Omitted}} = supervised({Text, Pid, supervisor, []}, element(2, ?TREE), {element(1, ?TREE), late(?TREE_MS), 0}),
            #{items => [Item], omitted => Omitted};
        _ ->
            not_found
    end.

late(Ms) -> erlang:monotonic_time(millisecond) + Ms.

explored([One | More], Value, Left, Late, Found, Seen) when Left > 0 ->
    case Seen rem 1000 =:= 999 andalso erlang:monotonic_time(millisecond) > Late of
        true -> {Found, Seen};
        false ->
            case Value(One) of
                {_, N} -> explored(More, Value, Left - 1, Late, [{N, One} | Found], Seen + 1);
                undefined -> explored(More, Value, Left - 1, Late, Found, Seen + 1)
            end
    end;
explored(_, _, _, _, Found, Seen) ->
    {Found, Seen}.

pid_of(Text) ->
    try list_to_pid(Text) catch error:badarg -> try whereis(list_to_existing_atom(Text)) catch error:badarg -> undefined end end.

process_row(Pid) ->
    case erlang:process_info(Pid, [memory, reductions, message_queue_len, status, current_function]) of
        [{_, Memory}, {_, Reductions}, {_, Queue}, {_, Status}, {_, Current}] ->
            #{pid => text(Pid), name => name(Pid), initial_call => mfa(proc_lib:translate_initial_call(Pid)), current => mfa(Current), memory => Memory,
              reductions => Reductions, message_queue => Queue, status => text(Status)};
        undefined ->
            not_found
    end.

whole_process(_, not_found) ->
    not_found;
whole_process(Pid, Row) ->
    case erlang:process_info(Pid, [heap_size, stack_size, total_heap_size, priority, trap_exit, group_leader, current_stacktrace]) of
        [{_, Heap}, {_, Stack}, {_, Total}, {_, Priority}, {_, Traps}, {_, Leader}, {_, Trace}] ->
            {Links, Monitors, By} = {related(Pid, links), related(Pid, monitors), related(Pid, monitored_by)},
            Row#{
                heap => Heap, stack => Stack, total_heap => Total, priority => text(Priority), trap_exit => Traps, group_leader => text(Leader),
                links => first(Links), monitors => first(Monitors), monitored_by => first(By),
                omitted => lists:sum([max(0, length(List) - ?RELATED) || List <- [Links, Monitors, By]]),
                stacktrace => [#{function => mfa({M, F, case A of _ when is_list(A) -> length(A); _ -> A end}),
                                 file => case lists:keyfind(file, 1, At) of {_, File} -> cut(File); false -> null end,
                                 line => case lists:keyfind(line, 1, At) of {_, Line} -> Line; false -> null end} || {M, F, A, At} <- Trace]
            };
        undefined ->
            not_found
    end.

related(Pid, Item) ->
    case erlang:process_info(Pid, Item) of
        {_, Related} -> Related;
        undefined -> []
    end.

first(Related) -> [related(Is) || Is <- lists:sublist(Related, ?RELATED)].

related({_, {Name, Node}}) -> cut([atom_to_list(Name), $@, atom_to_list(Node)]);
related({_, Is}) -> text(Is);
related(Is) -> text(Is).

name(Pid) ->
    case erlang:process_info(Pid, registered_name) of
        {_, Name} -> text(Name);
        _ -> null
    end.

mfa({M, F, A}) -> cut([atom_to_list(M), $:, atom_to_list(F), $/, integer_to_list(A)]);
mfa(_) -> <<"-">>.

text(Atom) when is_atom(Atom) -> cut(atom_to_list(Atom));
text(Pid) when is_pid(Pid) -> list_to_binary(pid_to_list(Pid));
text(Port) when is_port(Port) -> list_to_binary(erlang:port_to_list(Port));
text(Ref) when is_reference(Ref) -> list_to_binary(erlang:ref_to_list(Ref));
text(Text) when is_list(Text) -> try cut(Text) catch error:_ -> cut(io_lib:format("~0tP", [Text, 20])) end;
text(Term) -> cut(io_lib:format("~0tP", [Term, 20])).

table_row(Info) ->
    Get = fun(Key) -> element(2, lists:keyfind(Key, 1, Info)) end,
    #{name => text(Get(name)), id => text(Get(id)), type => text(Get(type)), size => Get(size), memory => Get(memory) * erlang:system_info(wordsize),
      owner => text(Get(owner)), owner_name => name(Get(owner)), protection => text(Get(protection)), compressed => Get(compressed)}.

%% The tree: of those that are left out it is counted how many.

top(Master) when is_pid(Master) -> application_master:get_child(Master);
top(_) -> none.

entry({Id, Pid, Type, Modules}) ->
    #{id => text(Id), pid => case Pid of _ when is_pid(Pid) -> text(Pid); _ -> null end, name => case Pid of _ when is_pid(Pid) -> name(Pid); _ -> null end,
      type => Type, module => case Modules of [Module | _] when is_atom(Module) -> text(Module); _ -> null end, count => null, omitted => 0, children => []}.

one_more({0, Late, Omitted}, _, Else) -> {Else, {0, Late, Omitted + 1}};
one_more({Left, Late, Omitted}, Fun, _) -> Fun({Left - 1, Late, Omitted}).

supervised({Id, Pid, supervisor, Modules} = Child, Depth, {_, Late, _} = Left0) when is_pid(Pid) ->
    IsSupervisor = is_supervisor(Pid),
    case IsSupervisor andalso erlang:monotonic_time(millisecond) < Late andalso answered(Pid, count_children) of
        Counts when is_list(Counts) ->
            Count = proplists:get_value(active, Counts, 0),
            Children = case Depth > 0 andalso Count =< ?CHILDREN andalso answered(Pid, which_children) of All when is_list(All) -> All; _ -> [] end,
            {Shown, Left} = lists:mapfoldl(fun(Is, Acc) -> one_more(Acc, fun(In) -> supervised(Is, Depth - 1, In) end, none) end, Left0, lists:reverse(Children)),
            Entries = [Is || Is <- Shown, Is =/= none],
            {Allowed, Time, Omitted} = Left,
            Hidden = case Children of [] -> Count; _ -> length(Children) - length(Entries) end,
            {(entry(Child))#{count => Count, omitted => Hidden, children => Entries}, {Allowed, Time, Omitted + case Children of [] -> Count; _ -> 0 end}};
        _ when IsSupervisor ->
            {entry(Child), Left0};
        _ ->
            {entry({Id, Pid, worker, Modules}), Left0}
    end;
supervised(Child, _, Left) ->
    {entry(Child), Left}.

%% Another process would end at a question that it does not know. Supervisors of Elixir's say so too.
is_supervisor(Pid) ->
    try proc_lib:translate_initial_call(Pid) of
        {Module, _, _} -> Module =:= supervisor orelse Module =:= supervisor_bridge
    catch
        %% It has ended.
        error:_ -> false
    end.

answered(Pid, Request) ->
    try gen_server:call(Pid, Request, ?SUPERVISOR_MS) catch exit:_ -> none end.

cut(Text) -> atoll_watch_agent:cut(Text).
