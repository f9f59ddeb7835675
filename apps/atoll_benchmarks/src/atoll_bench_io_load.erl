%% SPDX-License-Identifier: Apache-2.0
%% @doc What the benchmark `io' does on a node, again and again from several processes: a kind of input or output, prepared, done and
%% cleaned up.
%% <dl>
%% <dt>`file'</dt><dd>a write at the end of a file of the caller's, opened without `raw': over a process of that file</dd>
%% <dt>`file_raw'</dt><dd>the same with `raw', over {@link file}</dd>
%% <dt>`prim_file'</dt><dd>the same without {@link file} between</dd>
%% <dt>`file_info'</dt><dd>asks what a file is, over the node's file server</dd>
%% <dt>`prim_file_info'</dt><dd>the same without it</dd>
%% <dt>`ets'</dt><dd>writes a row of one table with `write_concurrency'</dd>
%% <dt>`accept'</dt><dd>a TCP connection to one listening socket of this node, which accepts it and closes it again</dd>
%% <dt>`send'</dt><dd>so many bytes over a TCP connection of the caller's, and a byte back</dd>
%% <dt>`send_one'</dt><dd>the same of all callers over one connection, by turns</dd>
%% <dt>`logger'</dt><dd>a line of the log, with {@link logger_std_h} and a file</dd>
%% <dt>`disk_log'</dt><dd>a term in one log, `log/2'; `disk_log_a' waits after each hundred alone</dd>
%% <dt>`dets'</dt><dd>a row of one table</dd>
%% <dt>`mnesia_transaction', `mnesia_sync_dirty', `mnesia_dirty', `mnesia_ets'</dt><dd>writes a row of one table with disc copies; of one in memory
%%   alone with `mnesia_ets'</dd>
%% <dt>`mnesia_dump'</dt><dd>writes a row and has Mnesia's log dumped, which is done one at a time</dd>
%% <dt>`mnesia_read', `mnesia_dirty_read'</dt><dd>reads one in a transaction, and without</dd>
%% </dl>
-module(atoll_bench_io_load).

-export([kinds/0, run/1]).

-export_type([load/0]).

-type load() :: #{
    kind := atom(),
    callers := pos_integer(),
    %% bytes
    size := pos_integer(),
    ms := pos_integer(),
    %% a folder that may be written to
    dir := file:filename()
}.

-define(KEYS, 10_000).
-define(GRACE_MS, 10_000).
%% So many are sent before an answer is waited for.
-define(PART, 100).
%% A queue of the logger never has so many, and so nothing is dropped.
-define(NEVER, 1_000_000_000).

%% @doc The kinds.
-spec kinds() -> [atom(), ...].
kinds() ->
    [file, file_raw, prim_file, file_info, prim_file_info, ets, accept, send, send_one, logger, disk_log, disk_log_a, dets]
        ++ [mnesia_transaction, mnesia_sync_dirty, mnesia_dirty, mnesia_dump, mnesia_ets, mnesia_read, mnesia_dirty_read].

%% @doc Does it for a time, in a closed loop.
-spec run(load()) -> #{finished := non_neg_integer(), took_ns := pos_integer(), latency := atoll_histogram:export(), cpu_us := non_neg_integer()}.
run(#{kind := Kind, callers := Callers, ms := Ms, dir := Dir} = Load) ->
    ok = filelib:ensure_path(Dir),
    {Each, End} = prepared(Kind, Load),
    try
        %% Each caller makes what is its own at its first time.
        Once = fun() -> case get(?MODULE) of undefined -> _ = put(?MODULE, Own = Each()), Own; Own -> Own end end,
        Before = atoll_bench_machine:own_cpu_us(),
        #{finished := Finished, took_ns := Ns, latency := Latency} =
            atoll_bench_load:closed(fun() -> (Once())() end, #{workers => Callers, ms => Ms, grace => ?GRACE_MS}),
        Us = atoll_bench_machine:own_cpu_us() - Before,
        #{finished => Finished, took_ns => Ns, latency => atoll_histogram:export(Latency), cpu_us => Us}
    after
        End()
    end.

%% For each caller a function that makes what it does; and what is done in the end.
prepared(Kind, #{size := Size, dir := Dir}) when Kind =:= file; Kind =:= file_raw; Kind =:= prim_file ->
    Data = data(Size),
    {fun() ->
        Name = own_file(Dir),
        case Kind of
            prim_file -> {ok, File} = prim_file:open(Name, [append]), fun() -> ok = prim_file:write(File, Data) end;
            _ -> {ok, File} = file:open(Name, [append, binary | [raw || Kind =:= file_raw]]), fun() -> ok = file:write(File, Data) end
        end
    end, fun() -> emptied(Dir) end};
prepared(file_info, #{dir := Dir}) ->
    {fun() -> fun() -> {ok, _} = file:read_file_info(Dir) end end, fun() -> ok end};
prepared(prim_file_info, #{dir := Dir}) ->
    {fun() -> fun() -> {ok, _} = prim_file:read_file_info(Dir) end end, fun() -> ok end};
prepared(ets, #{size := Size}) ->
    Table = ets:new(?MODULE, [public, {write_concurrency, true}]),
    Data = data(Size),
    {fun() -> fun() -> true = ets:insert(Table, {key(), Data}) end end, fun() -> true = ets:delete(Table), ok end};
prepared(accept, _) ->
    {Port, End} = listening(fun(Socket) -> gen_tcp:close(Socket) end),
    {fun() ->
        fun() ->
            {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
            %% It is closed when it was accepted. Nothing is left of it then: ports of the client would be used up.
            {error, _} = gen_tcp:recv(Socket, 0),
            ok = inet:setopts(Socket, [{linger, {true, 0}}]),
            ok = gen_tcp:close(Socket)
        end
    end, End};
prepared(Kind, #{size := Size}) when Kind =:= send; Kind =:= send_one ->
    Data = data(Size),
    {Port, End} = listening(fun(Socket) -> echo(Socket, Size) end),
    Connect = fun() ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {nodelay, true}]),
        Socket
    end,
    Say = fun(Socket) -> ok = gen_tcp:send(Socket, Data), {ok, <<_>>} = gen_tcp:recv(Socket, 1), ok end,
    case Kind of
        send ->
            {fun() -> Socket = Connect(), fun() -> Say(Socket) end end, End};
        send_one ->
            Parent = self(),
            One = spawn_link(fun() -> Socket = Connect(), Parent ! connected, turns(fun() -> Say(Socket) end) end),
            receive connected -> ok end,
            {fun() -> fun() -> ok = asked(One) end end, fun() -> gone(One), End() end}
    end;
prepared(logger, #{size := Size, dir := Dir}) ->
    Text = binary_to_list(data(Size)),
    File = filename:join(Dir, "log"),
    %% By itself it drops what comes too fast; so each caller waits for its line.
    Config = #{file => File, burst_limit_enable => false, sync_mode_qlen => 0, drop_mode_qlen => ?NEVER, flush_qlen => ?NEVER},
    ok = logger:add_handler(?MODULE, logger_std_h, #{level => notice, config => Config, filters => [], filter_default => log}),
    %% The others would write it too.
    Others = [{Id, maps:get(level, Handler)} || #{id := Id} = Handler <- logger:get_handler_config(), Id =/= ?MODULE],
    _ = [ok = logger:set_handler_config(Id, level, none) || {Id, _} <- Others],
    {fun() -> fun() -> ok = logger:log(notice, Text) end end, fun() ->
        _ = [ok = logger:set_handler_config(Id, level, Level) || {Id, Level} <- Others],
        ok = logger:remove_handler(?MODULE),
        emptied(Dir)
    end};
prepared(Kind, #{size := Size, dir := Dir}) when Kind =:= disk_log; Kind =:= disk_log_a ->
    Data = data(Size),
    {ok, Log} = disk_log:open([{name, ?MODULE}, {file, filename:join(Dir, "disk_log")}]),
    {fun() ->
        Sent = counters:new(1, []),
        case Kind of
            disk_log -> fun() -> ok = disk_log:log(Log, Data) end;
            disk_log_a -> fun() ->
                ok = disk_log:alog(Log, Data),
                ok = counters:add(Sent, 1, 1),
                %% It answers when it has done all before. Else they would wait in it without a bound.
                _ = [disk_log:info(Log) || counters:get(Sent, 1) rem ?PART =:= 0],
                ok
            end
        end
    end, fun() -> ok = disk_log:close(Log), emptied(Dir) end};
prepared(dets, #{size := Size, dir := Dir}) ->
    Data = data(Size),
    {ok, Table} = dets:open_file(?MODULE, [{file, filename:join(Dir, "dets")}]),
    {fun() -> fun() -> ok = dets:insert(Table, {key(), Data}) end end, fun() -> ok = dets:close(Table), emptied(Dir) end};
prepared(Mnesia, #{size := Size, dir := Dir}) ->
    Data = data(Size),
    Copies = case Mnesia of mnesia_ets -> ram_copies; _ -> disc_copies end,
    _ = application:load(mnesia),
    ok = application:set_env(mnesia, dir, Dir),
    ok = mnesia:create_schema([node()]),
    ok = mnesia:start(),
    {atomic, ok} = mnesia:create_table(?MODULE, [{Copies, [node()]}]),
    Write = fun() -> ok = mnesia:write({?MODULE, key(), Data}) end,
    Read = fun() -> [_] = mnesia:read(?MODULE, key()), ok end,
    _ = [ok = mnesia:dirty_write({?MODULE, Key, Data}) || Key <- lists:seq(1, ?KEYS)],
    Does = case Mnesia of
        mnesia_transaction -> fun() -> ok = mnesia:activity(transaction, Write) end;
        mnesia_sync_dirty -> fun() -> ok = mnesia:activity(sync_dirty, Write) end;
        mnesia_dirty -> fun() -> ok = mnesia:dirty_write({?MODULE, key(), Data}) end;
        mnesia_dump -> fun() -> ok = mnesia:dirty_write({?MODULE, key(), Data}), dumped = mnesia:dump_log(), ok end;
        mnesia_ets -> fun() -> ok = mnesia:activity(ets, Write) end;
        mnesia_read -> fun() -> ok = mnesia:activity(transaction, Read) end;
        mnesia_dirty_read -> fun() -> [_] = mnesia:dirty_read(?MODULE, key()), ok end
    end,
    {fun() -> Does end, fun() -> stopped = mnesia:stop(), emptied(Dir) end}.

data(Size) -> binary:copy(<<"x">>, Size).

key() -> rand:uniform(?KEYS).

own_file(Dir) -> filename:join(Dir, integer_to_list(erlang:unique_integer([positive]))).

emptied(Dir) ->
    ok = file:del_dir_r(Dir),
    ok.

%% One socket, whose connections each have a process.
listening(Does) ->
    Parent = self(),
    Acceptor = spawn_link(fun() ->
        {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {backlog, 1024}, {nodelay, true}]),
        {ok, Port} = inet:port(Listen),
        Parent ! {self(), Port},
        accepts(Listen, Does)
    end),
    receive {Acceptor, Port} -> {Port, fun() -> gone(Acceptor) end} end.

%% A connection's process goes with the acceptor.
accepts(Listen, Does) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    Pid = spawn_link(fun() -> receive go -> Does(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accepts(Listen, Does).

echo(Socket, Size) ->
    case gen_tcp:recv(Socket, Size) of
        {ok, _} -> ok = gen_tcp:send(Socket, <<1>>), echo(Socket, Size);
        {error, _} -> gen_tcp:close(Socket)
    end.

turns(Say) ->
    receive
        {From, Ref} -> ok = Say(), From ! Ref, turns(Say)
    end.

asked(One) ->
    Ref = monitor(process, One),
    One ! {self(), Ref},
    receive
        Ref -> true = demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, One, Why} -> exit(Why)
    end.

gone(Pid) ->
    Ref = monitor(process, Pid),
    true = unlink(Pid),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.
