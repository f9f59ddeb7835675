%% SPDX-License-Identifier: Apache-2.0
%% @doc What measures a node that is watched. It is put into the running node by
%% `code:load_binary', with its parts (`atoll_watch_agent_log', `_facts' and `_explore'), stands alone, and takes functions of OTP that every node has loaded: it
%% works in embedded mode, and no file is touched.
%%
%% Promised: it measures when it is asked and at no other time; meanwhile the node pays for the times of
%% its schedulers being counted, and for a filter of logger that counts, takes some texts and never
%% blocks. It is gone when the last process that asked for it has left or is lost, in whatever
%% way: with it go its process, its filter, its modules, and the counting, unless others count too.
%% The longest mailboxes are looked for among 5,000 processes at a time, the next
%% 5,000 the next time, and nowhere where there are more than a million. What other applications say, such as Mnesia, has half a second;
%% what comes later is left out of the answer.
%%
%% Not promised: that nothing stays if it is killed by force on its node. Its filter and modules do then, until
%% the next agent there ends.
%%
%% The answer is raw: counters count from some time on. What they mean says {@link atoll_watch_metric}.
-module(atoll_watch_agent).

-behaviour(gen_server).

-export([modules/0, version/0, start/1, cut/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([code/0, sample/0, said/0, reading/0, request/0, answer/0]).

%% Who asks another application ends with exit/1 by design.
-dialyzer({nowarn_function, others/0}).

-type reading() :: {Name :: atom(), number()} | {Name :: atom(), Label :: atom() | binary(), number()}.

-type sample() :: #{
    %% Monotonic time there, in microseconds.
    at := integer(),
    %% Unlike that of any other life of the node.
    life := term(),
    %% The nodes that it knows: connected visibly, members, and members of its groups.
    peers := [node()],
    readings := [reading()],
    %% How the node is set up, for comparing; its modules are `same' if they are those that the watcher knows.
    facts := atoll_watch_agent_facts:facts() | none,
    %% System time of the machine when the question came and when this was said, in microseconds.
    clock := {Came :: integer(), Said :: integer()},
    %% What was logged since this watcher asked last, oldest first; nothing of before it asked first.
    log := [said()]
}.

%% An event of logger: how many milliseconds ago, and one line of at most 1,000 characters.
-type said() :: {Ago :: non_neg_integer(), logger:level(), Text :: binary()}.

%% Of the modules that the watcher knows, as {@link atoll_watch_agent_facts:facts()} has it.
-type code() :: none | non_neg_integer().

-type request() :: {sample, Watcher :: pid(), Version :: term(), Has :: code()} | {leave, Watcher :: pid()}.
%% It comes as `{atoll_watch_agent, From, Request}', and `{From, Answer}' goes to the alias From.
-type answer() :: {ok, sample()} | {error, other_version} | ok.

-record(state, {
    %% Each with the number of the last text that it was sent.
    watchers :: #{pid() => {reference(), non_neg_integer()}},
    leaves :: [[term()], ...],
    logger :: atoll_watch_agent_log:places(),
    %% The last texts, newest first; times are system times, in microseconds.
    said = [] :: [{Number :: pos_integer(), Time :: integer(), logger:level(), Text :: binary()}],
    supervisors = #{} :: atoll_watch_agent_log:supervisors(),
    %% Those that this round has still to look at, and what it has found.
    unseen = [] :: [pid()],
    found = {[], 0, 0} :: mailboxes(),
    %% Of the last whole round; none where there are too many processes.
    mailboxes = {[], 0, 0} :: mailboxes() | none
}).

%% The longest, longest first; the messages in all; how many processes are suspended.
-type mailboxes() :: {[{Messages :: pos_integer(), pid()}], non_neg_integer(), non_neg_integer()}.

-define(LOG, atoll_watch_agent_log).
-define(EXPLORE, atoll_watch_agent_explore).
-define(FACTS, atoll_watch_agent_facts).
%% Texts that are kept, for watchers that ask less often than others.
-define(SAID, 50).
-define(LONGEST, 5).
-define(LOOKED_AT, 5000).
-define(MAX_PROCESSES, 1000000).
-define(OTHERS_MS, 500).
-define(MAX_LABEL, 60).

%% @doc What is put into a node; the order is that in which it is.
-spec modules() -> [module()].
modules() -> [?LOG, ?FACTS, ?EXPLORE, ?MODULE].

%% @doc Two of the same version are the same code.
-spec version() -> term().
version() -> [Module:module_info(md5) || Module <- modules()].

%% @doc Starts it, for whoever asks first.
-spec start(atoll_view_put:guest()) -> ok.
start(Guest) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, Guest, []) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        ignore -> ok
    end.

%% @private
-spec init(atoll_view_put:guest()) -> {ok, #state{}} | ignore.
init(Guest) ->
    %% The agent before this one may have taken it away just now.
    case lists:all(fun(Module) -> erlang:function_exported(Module, module_info, 0) end, modules()) of
        true -> {ok, measuring(Guest)};
        false -> ignore
    end.

measuring(#{watcher := Watcher, leaves := Leaves}) ->
    %% Not that of whoever asked for it: it may be on another node.
    true = group_leader(whereis(init), self()),
    _ = process_flag(trap_exit, true),
    _ = erlang:system_flag(scheduler_wall_time, true),
    Places = ?LOG:new(),
    %% One that was killed has left its own.
    _ = logger:remove_primary_filter(?MODULE),
    ok = logger:add_primary_filter(?MODULE, {fun ?LOG:log/2, Places}),
    #state{watchers = #{Watcher => {monitor(process, Watcher), 0}}, leaves = Leaves, logger = Places}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private A question is no call of gen_server's: an answer to one would make the node connect with a
%% watcher that it has just lost.
-spec handle_info({?MODULE, reference(), request()} | {'DOWN', reference(), process, pid(), term()} | atoll_watch_agent_log:taken() | term(), #state{}) ->
    {noreply, #state{}} | {stop, normal, #state{}}.
handle_info({?MODULE, From, Request}, State0) ->
    {Answer, State} = answer(Request, State0),
    _ = erlang:send(From, {From, Answer}, [noconnect, nosuspend]),
    unless_alone(State);
handle_info({'DOWN', _, process, Watcher, _}, State) ->
    unless_alone(left(Watcher, State));
handle_info({?LOG, said, Level, Time, Text}, #state{said = Said} = State) ->
    Number = 1 + last(Said),
    {noreply, State#state{said = lists:sublist([{Number, Time, Level, Text} | Said], ?SAID)}};
handle_info({?LOG, supervisor, What, Name}, #state{supervisors = Known} = State) ->
    {noreply, State#state{supervisors = ?LOG:seen(What, Name, erlang:monotonic_time(second), Known)}};
%% What others have sent it, whom it never asked.
handle_info(_, State) ->
    unless_alone(State).

unless_alone(#state{watchers = Watchers} = State) when map_size(Watchers) =:= 0 -> {stop, normal, State};
unless_alone(State) -> {noreply, State}.

answer({sample, Watcher, Version, Has}, State0) ->
    case version() of
        Version ->
            Came = os:system_time(microsecond),
            {#{facts := Facts} = Sample, State} = sample(State0),
            {Log, Watched} = heard(Watcher, State),
            {{ok, Sample#{log => Log, facts => news(Facts, Has), clock => {Came, os:system_time(microsecond)}}}, Watched};
        _ ->
            {{error, other_version}, State0}
    end;
answer({leave, Watcher}, State) ->
    {ok, left(Watcher, State)}.

%% The modules are many, and hardly ever others.
news(#{code := Code} = Facts, Code) -> Facts#{modules := same};
news(Facts, _) -> Facts.

%% The texts that this watcher was not sent yet.
heard(Watcher, #state{watchers = Watchers, said = Said} = State) ->
    {Ref, Last} = case Watchers of #{Watcher := Is} -> Is; #{} -> {monitor(process, Watcher), last(Said)} end,
    Now = erlang:system_time(microsecond),
    New = lists:takewhile(fun({Number, _, _, _}) -> Number > Last end, Said),
    {[{max(0, (Now - Time) div 1000), Level, Text} || {_, Time, Level, Text} <- lists:reverse(New)],
     State#state{watchers = Watchers#{Watcher => {Ref, last(Said)}}}}.

last([{Number, _, _, _} | _]) -> Number;
last([]) -> 0.

left(Watcher, #state{watchers = Watchers} = State) ->
    case maps:take(Watcher, Watchers) of
        {{Ref, _}, Others} ->
            _ = demonitor(Ref, [flush]),
            State#state{watchers = Others};
        error ->
            State
    end.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{leaves = Leaves}) ->
    _ = logger:remove_primary_filter(?MODULE),
    _ = erlang:system_flag(scheduler_wall_time, false),
    true = unregister(?MODULE),
    Last = spawn(lists, zipwith3, [fun erlang:apply/3 | Leaves]),
    try register(?MODULE, Last) of
        true -> ok
    catch
        %% It is done already.
        error:badarg -> ok
    end.

sample(#state{logger = Places} = State0) ->
    #state{supervisors = Known} = State = looked(State0),
    {Supervisors, Standing} = ?LOG:standing(erlang:monotonic_time(second), Known),
    {Others, Peers, Facts} = others(),
    ok = ?LOG:opened(Places),
    {
        #{
            at => erlang:monotonic_time(microsecond),
            life => {os:getpid(), erlang:system_info(creation), erlang:system_info(start_time)},
            peers => lists:usort(nodes() ++ Peers),
            facts => Facts,
            readings => lists:append([
                plain(), memory(), allocators(), schedulers(), work(), connections(), mailboxes(State),
                ?LOG:counts(Places), Supervisors, Others
            ])
        },
        State#state{supervisors = Standing}
    }.

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

%% The machine

plain() ->
    #{count := Count, memory := Memory} = persistent_term:info(),
    [{Name, erlang:system_info(Key)} || {Name, Key} <- [
        {processes, process_count}, {processes_limit, process_limit}, {ports, port_count}, {ports_limit, port_limit},
        {atoms, atom_count}, {atoms_limit, atom_limit}, {ets_tables, ets_count}, {ets_tables_limit, ets_limit},
        {schedulers_online, schedulers_online}, {dirty_cpu_schedulers_online, dirty_cpu_schedulers_online},
        {dirty_io_schedulers, dirty_io_schedulers}, {dist_buffer_limit, dist_buf_busy_limit}
    ]] ++ [{modules, length(erlang:loaded())}, {persistent_terms, Count}, {persistent_terms_memory, Memory}].

memory() ->
    [{Name, Bytes} || {Kind, Bytes} <- erlang:memory(), {Name, Is} <- memories(), Is =:= Kind].

memories() ->
    [
        {memory_total, total}, {memory_processes, processes}, {memory_processes_used, processes_used}, {memory_system, system},
        {memory_atoms, atom}, {memory_atoms_used, atom_used}, {memory_binaries, binary}, {memory_code, code}, {memory_ets, ets}
    ].

%% Some are switched off, and have nothing to say.
allocators() ->
    lists:append([
        [{allocator_carriers, Allocator, sum(Said, fun carriers/1)}, {allocator_blocks, Allocator, sum(Said, fun blocks/1)}]
     || Allocator <- erlang:system_info(alloc_util_allocators), Said <- [erlang:system_info({allocator_sizes, Allocator})], is_list(Said)
    ]).

sum(Instances, Of) ->
    lists:sum([Of(Sizes) || {instance, _, Kinds} <- Instances, {Kind, Sizes} <- Kinds, lists:member(Kind, [mbcs, mbcs_pool, sbcs])]).

carriers(Sizes) -> element(2, lists:keyfind(carriers_size, 1, Sizes)).

%% Blocks of several kinds may lie in one carrier.
blocks(Sizes) ->
    lists:sum([element(2, lists:keyfind(size, 1, Of)) || {blocks, Blocks} <- Sizes, {_, Of} <- Blocks]).

schedulers() ->
    Normal = erlang:system_info(schedulers),
    Cpu = Normal + erlang:system_info(dirty_cpu_schedulers),
    Queues = erlang:statistics(run_queue_lengths_all),
    Tasks = erlang:statistics(active_tasks_all),
    [{run_queue, queue(N, Normal), Length} || {N, Length} <- numbered(Queues)] ++
    [{active_tasks, queue(N, Normal), Count} || {N, Count} <- numbered(Tasks)] ++
    [{run_queue_total, lists:sum(Queues)}, {active_tasks_total, lists:sum(Tasks)}] ++
    lists:append([
        [{scheduler_active, Label, Active}, {scheduler_time, Label, Total}]
     || {N, Active, Total} <- times(erlang:statistics(scheduler_wall_time_all)), Label <- [scheduler(N, Normal, Cpu)]
    ]).

%% Somebody has switched it off.
times(undefined) -> [];
times(Times) -> Times.

queue(N, Normal) when N =< Normal -> label("normal_", N);
queue(N, Normal) when N =:= Normal + 1 -> dirty_cpu;
queue(_, _) -> dirty_io.

scheduler(N, Normal, _) when N =< Normal -> label("normal_", N);
scheduler(N, Normal, Cpu) when N =< Cpu -> label("dirty_cpu_", N - Normal);
scheduler(N, _, Cpu) -> label("dirty_io_", N - Cpu).

label(Text, N) -> list_to_binary([Text, integer_to_list(N)]).

work() ->
    {Reductions, _} = erlang:statistics(reductions),
    {Switches, _} = erlang:statistics(context_switches),
    {Collections, Words, _} = erlang:statistics(garbage_collection),
    {{input, In}, {output, Out}} = erlang:statistics(io),
    {Runtime, _} = erlang:statistics(runtime),
    {Uptime, _} = erlang:statistics(wall_clock),
    [
        {reductions, Reductions}, {context_switches, Switches}, {garbage_collections, Collections},
        {garbage_collected, Words * erlang:system_info(wordsize)}, {io_in, In}, {io_out, Out}, {cpu_time, Runtime}, {uptime, Uptime}
    ].

%% Connections. Of one that a process drives OTP's functions know nothing here.

connections() ->
    [{nodes_visible, length(nodes())}, {nodes_hidden, length(nodes(hidden))}] ++
    lists:append([connection(Peer, inet:getstat(Port)) || {Peer, Port} <- erlang:system_info(dist_ctrl), is_port(Port)]).

connection(Peer, {ok, Stat}) ->
    [{Name, Peer, Value} || {Key, Name} <- [
        {recv_oct, dist_in}, {send_oct, dist_out}, {recv_cnt, dist_packets_in}, {send_cnt, dist_packets_out}, {send_pend, dist_queue}
    ], {Is, Value} <- Stat, Is =:= Key];
connection(_, {error, _}) ->
    [].

%% Mailboxes

%% Looks at some more processes.
looked(#state{unseen = []} = State) ->
    case erlang:system_info(process_count) =< ?MAX_PROCESSES of
        true -> looked(processes(), State);
        false -> State#state{mailboxes = none}
    end;
looked(#state{unseen = Unseen} = State) ->
    looked(Unseen, State).

looked(Pids, #state{found = Found} = State) ->
    {Now, Later} = split(?LOOKED_AT, Pids),
    case {lists:foldl(fun look/2, Found, Now), Later} of
        {Whole, []} -> State#state{unseen = [], found = {[], 0, 0}, mailboxes = Whole};
        {Part, _} -> State#state{unseen = Later, found = Part}
    end.

split(N, List) when length(List) > N -> lists:split(N, List);
split(_, List) -> {List, []}.

look(Pid, {Longest, Messages, Suspended} = Found) ->
    case erlang:process_info(Pid, [message_queue_len, status]) of
        [{_, 0}, {_, Status}] -> {Longest, Messages, Suspended + is_suspended(Status)};
        [{_, N}, {_, Status}] -> {longest({N, Pid}, Longest), Messages + N, Suspended + is_suspended(Status)};
        undefined -> Found
    end.

is_suspended(suspended) -> 1;
is_suspended(_) -> 0.

longest(One, Longest) -> lists:sublist(lists:reverse(lists:sort([One | Longest])), ?LONGEST).

mailboxes(#state{mailboxes = none}) ->
    [];
mailboxes(#state{mailboxes = {Longest, Messages, Suspended}}) ->
    [{mailbox_longest, lists:max([0 | [N || {N, _} <- Longest]])}, {mailbox_messages, Messages}, {processes_suspended, Suspended}] ++
    [{mailbox, process(Pid), N} || {N, Pid} <- Longest].

process(Pid) ->
    case erlang:process_info(Pid, registered_name) of
        {_, Name} -> cut(atom_to_list(Name));
        _ -> cut([pid_to_list(Pid) | begun(proc_lib:translate_initial_call(Pid))])
    end.

begun({M, F, A}) -> [$\s, atom_to_list(M), $:, atom_to_list(F), $/, integer_to_list(A)].

%% @private A label of a bounded length.
-spec cut(unicode:chardata()) -> binary().
cut(Text) -> <<_/binary>> = unicode:characters_to_binary(lists:sublist(unicode:characters_to_list(Text), ?MAX_LABEL)).

%% Other applications

%% Each is asked by a process that can be given up: one that hangs costs its own readings.
others() ->
    Asked = [spawn_monitor(fun() -> exit(try {told, Ask()} catch _:_ -> failed end) end) || {Name, Ask} <- [
        {init, fun ?FACTS:facts/0}, {init, fun ?FACTS:dump/0}, {atoll_sup, fun atoll/0}, {atoll_sup, fun metrics/0}, {mnesia_sup, fun mnesia/0}, {memsup, fun memsup/0}, {disksup, fun disksup/0}, {cpu_sup, fun cpu_sup/0}
    ], whereis(Name) =/= undefined],
    Deadline = erlang:monotonic_time(millisecond) + ?OTHERS_MS,
    {Readings, Peers, Facts} = lists:unzip3([told(One, max(0, Deadline - erlang:monotonic_time(millisecond))) || One <- Asked]),
    {lists:append(Readings), lists:append(Peers), hd([Is || #{} = Is <- Facts] ++ [none])}.

%% What is wrong with another application, or with another version of it, is for others to find: none
%% of it is logged.
told({Pid, Ref}, Ms) ->
    receive
        {'DOWN', Ref, process, Pid, {told, {Readings, Peers}}} -> {Readings, Peers, none};
        {'DOWN', Ref, process, Pid, {told, #{} = Facts}} -> {[], [], Facts};
        {'DOWN', Ref, process, Pid, {told, Readings}} -> {Readings, [], none};
        {'DOWN', Ref, process, Pid, _} -> {[], [], none}
    after Ms ->
        true = demonitor(Ref, [flush]),
        true = exit(Pid, kill),
        {[], [], none}
    end.

%% They may not be installed where this is compiled.
other(M, F, A) -> apply(M, F, A).

mnesia() ->
    [{Name, other(mnesia, system_info, [Key])} || {Name, Key} <- [
        {mnesia_commits, transaction_commits}, {mnesia_failures, transaction_failures}, {mnesia_restarts, transaction_restarts},
        {mnesia_log_writes, transaction_log_writes}
    ]] ++
    [{Name, length(other(mnesia, system_info, [Key]))} || {Name, Key} <- [
        {mnesia_tables, tables}, {mnesia_nodes, db_nodes}, {mnesia_nodes_running, running_db_nodes}
    ]].

memsup() ->
    Data = other(memsup, get_system_memory_data, []),
    [{Name, Bytes} || {Name, Keys} <- [
        {os_memory, [system_total_memory, total_memory]}, {os_memory_available, [available_memory, free_memory]}
    ], [Bytes | _] <- [[B || Key <- Keys, {K, B} <- Data, K =:= Key]]].

disksup() ->
    lists:append([
        [{os_disk, Label, Kb * 1024}, {os_disk_used, Label, Percent / 100}]
     || {Id, Kb, Percent} <- other(disksup, get_disk_data, []), Label <- [cut(Id)]
    ]).

%% In 256ths.
cpu_sup() ->
    [{Name, other(cpu_sup, F, []) / 256} || {Name, F} <- [{os_load_1, avg1}, {os_load_5, avg5}, {os_load_15, avg15}]].

%% With the nodes that it knows.
atoll() ->
    Members = other(atoll, members, []),
    Groups = other(s_group, own_s_groups, []),
    Links = other(atoll, links, []),
    Kinds = [kind(Kind) || #{kind := Kind} <- Links],
    Relay = other(atoll_dist, relay, []),
    Readings =
        [{atoll_members, length(Members)}, {atoll_neighbours, length(other(atoll, neighbours, []))}, {atoll_groups, length(Groups)}] ++
        [{atoll_connections, Kind, length([K || K <- Kinds, K =:= Kind])} || Kind <- lists:usort(Kinds)] ++
        [{atoll_round_trip, Peer, Us} || #{node := Peer, rtt_us := Us} <- Links, is_integer(Us)] ++
        [{Name, Peer, Bytes} || #{node := Peer, kind := Kind} = Link <- Links, Kind =/= stock,
                                {Name, Key} <- [{dist_in, bytes_in}, {dist_out, bytes_out}], Bytes <- [maps:get(Key, Link)], is_integer(Bytes)] ++
        [{atoll_names, Count} || #{names := Count} <- [other(atoll_name, info, [])]] ++
        [{Name, total(Value)} || {Name, Key} <- relays(), {ok, Value} <- [maps:find(Key, Relay)]],
    {Readings, lists:append([Members | [Nodes || {_, Nodes} <- Groups]]) -- [node()]}.

%% Those of programs there.
metrics() -> other(atoll_metric, readings, []).

kind({Kind, _}) -> Kind;
kind(Kind) -> Kind.

relays() ->
    [{atoll_relay_circuits, circuits}, {atoll_relay_opened, opened}, {atoll_relay_queue, queue}, {atoll_relay_held, held},
     {atoll_relay_budget, budget}, {atoll_relay_forwarded, bytes}, {atoll_relay_refused, refused}, {atoll_relay_lost, lost},
     {atoll_relay_dropped, dropped}].

%% Some are counted by reason.
total(#{} = ByReason) -> lists:sum(maps:values(ByReason));
total(Count) -> Count.
