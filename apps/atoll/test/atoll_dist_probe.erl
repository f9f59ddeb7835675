%% SPDX-License-Identifier: Apache-2.0
%% What the suites of the carrier have done on a node.
-module(atoll_dist_probe).
-behaviour(gen_server).

-export([echo/1, ask/3, asks_last/2, learn_all/1, ends/1, ends_with/2, big/2, floods/2, reconnects/3, at_once/2]).
-export([late/0, slowest/3, kills_end/0, says_nonsense/2, watches/1]).
-export([hears/1, heard/0, held_up/2, trickles/3, sockets_with/1, most_memory/1, asked_by_many/3, monitored/2, knocks/2]).
-export([stays/2, owner/1, owner_info/2, global_name/1, hold_lock/2, send/3, box/1, taken/1, pings/2, sent/3, sink/1]).
-export([unread/1, sends_amid/4, held_by_unread/0, reads_unread/0]).
-export([connects_for/2, counts/0, sends_numbers/2, sent_numbers/0, counted_numbers/1]).
-export([loads_carrier/0, in_old_code/0, waiting_in_code/0, drips/1, loads_amid_drops/2]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(MS, 10000).

%% A registered gen_server that gives back what it is asked.
echo(Name) ->
    {ok, Pid} = gen_server:start({local, Name}, ?MODULE, [], []),
    Pid.

ask(Node, Name, What) ->
    gen_server:call({Name, Node}, What, ?MS).

%% How large the answer is with which it stops.
asks_last(Node, Name) ->
    byte_size(ask(Node, Name, stop_with_answer)).

init([]) -> {ok, []}.
handle_call(stop_with_answer, _From, State) -> {stop, normal, binary:copy(<<1>>, 3000000), State};
handle_call(What, _From, State) -> {reply, What, State}.
handle_cast(_, State) -> {noreply, State}.

learn_all(Ways) ->
    atoll_epmd:learn(maps:from_list(Ways), 100).

%% Links, monitors and exit signals to a process over there: what each of them brought.
ends(Node) ->
    Pid = spawn(Node, fun wait/0),
    Ref = monitor(process, Pid),
    Before = process_flag(trap_exit, true),
    true = link(Pid),
    exit(Pid, over),
    Down = receive {'DOWN', Ref, process, Pid, Reason1} -> Reason1 after ?MS -> none end,
    Exit = receive {'EXIT', Pid, Reason2} -> Reason2 after ?MS -> none end,
    Ref2 = monitor(process, {nobody, Node}),
    NoProc = receive {'DOWN', Ref2, process, _, Reason3} -> Reason3 after ?MS -> none end,
    {Child, Ref4} = erlang:spawn_monitor(Node, erlang, exit, [spawned]),
    Spawned = receive {'DOWN', Ref4, process, Child, Reason4} -> Reason4 after ?MS -> none end,
    process_flag(trap_exit, Before),
    [Down, Exit, NoProc, Spawned].

wait() -> receive stop -> ok end.

%% What a link, a monitor of a process and one of the node bring when the node goes; and
%% that each comes once.
ends_with(Node, Ref) ->
    _ = spawn(fun() ->
        process_flag(trap_exit, true),
        Pid = spawn_link(Node, fun wait/0),
        Mon = monitor(process, Pid),
        true = monitor_node(Node, true),
        register(ending, self()),
        persistent_term:put(Ref, ready),
        Got = [receive {'EXIT', Pid, R1} -> {exit, R1} after ?MS -> none end,
            receive {'DOWN', Mon, process, Pid, R2} -> {down, R2} after ?MS -> none end,
            receive {nodedown, Node} -> nodedown after ?MS -> none end],
        %% Behind what net_kernel has to do about it.
        _ = net_kernel:get_net_ticktime(),
        More = receive Any -> Any after 0 -> nothing end,
        persistent_term:put(Ref, {Got, More})
    end),
    ok.

%% Binaries and terms of some size go there and come back whole.
big(Node, Sizes) ->
    [
        begin
            Term = {binary:copy(<<N>>, Size), lists:seq(1, Size div 100), [list_to_atom("atom_" ++ integer_to_list(I)) || I <- lists:seq(1, 500)]},
            Term =:= ask(Node, echo, Term)
        end
     || {N, Size} <- lists:enumerate(Sizes)
    ].

floods(Node, Bytes) ->
    Data = binary:copy(<<0>>, Bytes),
    spawn(fun() -> flood({echo_sink, Node}, Data) end).

%% Each message has bytes of its own, so that what waits costs what it says.
flood(To, Data) ->
    To ! binary:copy(Data),
    flood(To, Data).

%% One at a time, so that each is a batch of its own.
trickles(_Node, _Bytes, 0) ->
    ok;
trickles(Node, Bytes, Times) ->
    _ = erlang:send({echo_sink, Node}, binary:copy(<<0>>, Bytes), [noconnect, nosuspend]),
    receive after 1 -> trickles(Node, Bytes, Times - 1) end.

sink(Name) ->
    Pid = spawn(fun Sink() ->
        receive
            {here, From} -> From ! here, Sink();
            _ -> Sink()
        end
    end),
    true = register(Name, Pid),
    ok.

%% Under traffic: disconnect, and connect again at once.
reconnects(Node, Times, Bytes) ->
    Flooders = [floods(Node, Bytes) || _ <- [1, 2]],
    Done = [
        begin
            _ = erlang:disconnect_node(Node),
            Connected = net_kernel:connect_node(Node),
            %% Behind what was sent before it, both ways, on a machine that may be busy.
            {Connected, gen_server:call({echo, Node}, I, 60000)}
        end
     || I <- lists:seq(1, Times)
    ],
    [exit(Flooder, kill) || Flooder <- Flooders],
    Done.

%% Disconnects, and connects when the other end does.
at_once(Node, AtMs) ->
    _ = erlang:disconnect_node(Node),
    Wait = max(0, AtMs - erlang:system_time(millisecond)),
    receive after Wait -> ok end,
    net_kernel:connect_node(Node).

%% Whether the node stays connected for so long.
stays(Node, Ms) ->
    ok = net_kernel:monitor_nodes(true),
    Stays =
        receive
            {nodedown, Node} -> false
        after Ms -> true
        end,
    ok = net_kernel:monitor_nodes(false),
    Stays.

%% From now on how the node goes is remembered, and is told.
hears(Node) ->
    Self = self(),
    Pid = spawn(fun() ->
        register(hearing, self()),
        ok = net_kernel:monitor_nodes(true, [nodedown_reason]),
        Self ! {self(), hearing},
        hears(Node, [])
    end),
    receive
        {Pid, hearing} -> ok
    end.

hears(Node, Reasons) ->
    receive
        {nodedown, Node, [{nodedown_reason, Reason}]} ->
            hears(Node, [Reason | Reasons]);
        {nodeup, _, _} ->
            hears(Node, Reasons);
        {heard, From, Ref} ->
            From ! {Ref, lists:reverse(Reasons)},
            hears(Node, Reasons)
    end.

heard() ->
    Ref = make_ref(),
    hearing ! {heard, self(), Ref},
    receive
        {Ref, Reasons} -> Reasons
    after ?MS -> timeout
    end.

%% The process that reads the lanes of the connection with Node does nothing for so long.
held_up(Node, Ms) ->
    {ok, Pid} = atoll_dist_keeper:channel(Node),
    Self = self(),
    Holder = spawn(fun() ->
        true = erlang:suspend_process(Pid),
        Self ! {self(), held},
        receive after Ms -> erlang:resume_process(Pid) end
    end),
    receive
        {Holder, held} -> ok
    end.

%% How many connected sockets have these options.
sockets_with(Options) ->
    Keys = [Key || {Key, _} <- Options],
    length([
        Port
     || Port <- erlang:ports(),
        erlang:port_info(Port, name) =:= {name, "tcp_inet"},
        element(1, inet:peername(Port)) =:= ok,
        %% Not the one to the port mapper.
        Keys =:= [] orelse inet:getopts(Port, Keys) =:= {ok, Options}
    ]).

%% The most memory that the node has in that time, looked at often.
most_memory(Ms) ->
    most_memory(erlang:monotonic_time(millisecond) + Ms, 0).

most_memory(Until, Most) ->
    case erlang:monotonic_time(millisecond) < Until of
        true ->
            receive after 5 -> ok end,
            most_memory(Until, max(Most, erlang:memory(total)));
        false ->
            Most
    end.

%% How many of so many processes are answered in that time.
asked_by_many(Node, Many, Ms) ->
    Pids = [
        spawn_monitor(fun() -> exit(gen_server:call({echo, Node}, answered, Ms)) end)
     || _ <- lists:seq(1, Many)
    ],
    length([x || {Pid, Ref} <- Pids, receive {'DOWN', Ref, process, Pid, Why} -> Why =:= answered end]).

monitored(Name, Node) ->
    Ref = monitor(process, {Name, Node}),
    receive
        {'DOWN', Ref, process, _, Reason} -> Reason
    after ?MS -> timeout
    end.

%% Whether this node answers to who comes from these addresses of its own.
knocks(Ips, Port) ->
    Offer = atoll_dist_hello:make(
        {offer, #{name => <<"x@127.0.0.1">>, wish => direct, rtt_us => 50, ticktime_ms => 60000, id => <<0:128>>, channels => none}}
    ),
    [
        begin
            {ok, Socket} = gen_tcp:connect(Ip, Port, [{ip, Ip}, binary, {packet, 2}, {active, false}]),
            ok = gen_tcp:send(Socket, Offer),
            element(1, gen_tcp:recv(Socket, 0, ?MS))
        end
     || Ip <- Ips
    ].

%% The process that stands for a connection.
owner(Node) ->
    {ok, Info} = net_kernel:node_info(Node),
    proplists:get_value(owner, Info).

owner_info(Node, What) ->
    process_info(owner(Node), What).

%% Takes a lock of global for a process that stays; whether it got it.
hold_lock(Id, Owner) ->
    Self = self(),
    Pid = spawn(fun() ->
        Self ! {self(), global:set_lock({Id, Owner})},
        wait()
    end),
    receive
        {Pid, Got} -> Got
    end.

global_name(Name) ->
    Pid = spawn(fun wait/0),
    global:register_name(Name, Pid).

send(Name, Node, What) ->
    {Name, Node} ! What,
    ok.

%% A registered process that keeps what comes.
box(Name) ->
    Pid = spawn(fun() -> boxed([]) end),
    true = register(Name, Pid),
    ok.

boxed(Got) ->
    receive
        {taken, From, Ref} ->
            From ! {Ref, lists:reverse(Got)},
            boxed(Got);
        {runs, Fun} ->
            Fun(),
            boxed(Got);
        Any ->
            boxed([Any | Got])
    end.

taken(Name) ->
    Ref = make_ref(),
    Name ! {taken, self(), Ref},
    receive
        {Ref, Got} -> Got
    after ?MS -> timeout
    end.

%% Round trips, in microseconds, sorted.
pings(Node, Times) ->
    lists:sort([element(1, timer:tc(gen_server, call, [{echo, Node}, ping])) || _ <- lists:seq(1, Times)]).

%% Asks one question after the other for so long: how many, and how many microseconds the
%% slowest answer and the one in the middle took.
slowest(Node, Name, Ms) ->
    Took = asked_until(Node, Name, erlang:monotonic_time(millisecond) + Ms, []),
    {length(Took), lists:max(Took), lists:nth(1 + length(Took) div 2, lists:sort(Took))}.

asked_until(Node, Name, Until, Took) ->
    case erlang:monotonic_time(millisecond) < Until of
        true ->
            %% Behind what others send there, on a machine that may have ten times as much to do as it can.
            {Us, ping} = timer:tc(fun() -> gen_server:call({Name, Node}, ping, 6 * ?MS) end),
            asked_until(Node, Name, Until, [Us | Took]);
        false ->
            Took
    end.

%% By how many milliseconds a timer of this node was late at most since this was asked before. It begins with the first question.
late() ->
    case whereis(late) of
        undefined ->
            Pid = spawn_opt(fun() -> looks_late(erlang:monotonic_time(millisecond), 0) end, [{priority, max}]),
            true = register(late, Pid),
            0;
        Pid ->
            Ref = make_ref(),
            Pid ! {late, self(), Ref},
            receive
                {Ref, Ms} -> Ms
            after ?MS -> ?MS
            end
    end.

looks_late(Last, Most) ->
    Asked = receive {late, From, Ref} -> {From, Ref} after 10 -> nobody end,
    Now = erlang:monotonic_time(millisecond),
    Late = max(Most, Now - Last - 10),
    case Asked of
        nobody -> looks_late(Now, Late);
        {To, Tag} -> To ! {Tag, Late}, looks_late(Now, 0)
    end.

%% Kills the end of the one circuit that there is here.
kills_end() ->
    [End] = [Pid || {Pid, _, _} <- ets:tab2list(atoll_dist_ends)],
    exit(End, kill).

%% To the hub of a neighbour, in the name of this node and of others.
says_nonsense(Node, Here) ->
    Key = crypto:strong_rand_bytes(20),
    Said = {<<"x">>, 200, binary:copy(<<255>>, 255)},
    Path = [atom_to_binary(N) || N <- [Here, Node]],
    Frames = [
        atoll_dist_circuit_frame:make(Frame)
     || Frame <- [
            {data, Key, 0, <<"x">>},
            {ack, Key, #{received => 1 bsl 63, consumed => 0, asks => true, narrow => false}},
            {opened, Key, #{window => 0, can => 1, received => 0, consumed => 0, answer => <<>>}},
            {confirm, Key, #{received => 0, consumed => 0, proof => <<>>}},
            {refused, Key, Said},
            {path_lost, Key, Said},
            {close, Key, Said}
        ] ++ [
            {open, <<Id:160>>, #{window => Window, can => 1, fresh => Fresh, hello => Hello, path => Names}}
         || {Id, Hello} <- [{1, <<>>}, {2, <<1, 7:256>>}, {3, <<"no key">>}],
            Window <- [0, 1 bsl 20, 16#FFFFFFFF],
            Fresh <- [true, false],
            Names <- [Path, lists:reverse(Path), [<<"x">> | Path], lists:duplicate(255, <<255>>), Path ++ [<<"nobody">>]]
        ]
    ],
    Broken = [crypto:strong_rand_bytes(N) || N <- lists:seq(1, 100)] ++ [<<>>, <<1:3>>, binary:copy(<<1>>, 300000)] ++
        [binary:part(Frame, 0, byte_size(Frame) - 1) || Frame <- Frames],
    Messages = [{circuit, From, Frame} || From <- [Here, Node, nobody@nowhere, 5, []], Frame <- Frames ++ Broken] ++
        [circuit, {circuit, Here, not_a_frame}, {'DOWN', make_ref(), process, self(), gone}, {timeout, make_ref(), sweep},
            {'$gen_cast', x}, {'$gen_cast', {up, Key, self()}}, {'$gen_cast', {path, Key, self(), Here, Key}},
            {'$gen_cast', {detach, Key, self()}}, {'$gen_call', {self(), make_ref()}, x}, [], ready,
            {got_so_far, self(), x}, {got_so_far, x, x}],
    _ = [{atoll_dist_hub, Node} ! Message || Message <- Messages],
    %% Behind all of it.
    #{} = gen_server:call({atoll_dist_hub, Node}, figures),
    ok.

watches(Name) ->
    Self = self(),
    Name ! {runs, fun() -> Self ! {watched, atoll_dist:watch_links()} end},
    receive
        {watched, Links} -> Links
    after ?MS -> timeout
    end.

%% How long it takes to send so many messages to a process and hear that the last came.
sent(Node, Times, Bytes) ->
    Data = binary:copy(<<0>>, Bytes),
    Pid = spawn(Node, fun() -> counted(Times) end),
    Ref = monitor(process, Pid),
    Start = erlang:monotonic_time(microsecond),
    _ = [Pid ! Data || _ <- lists:seq(1, Times)],
    receive
        {'DOWN', Ref, process, Pid, normal} -> erlang:monotonic_time(microsecond) - Start
    after 60000 -> timeout
    end.

counted(0) -> ok;
counted(N) -> receive _ -> counted(N - 1) end.

%% A process that reads nothing before it is told to, and one that reads what others get.
%% How much memory binaries have.
unread(Many) ->
    ok = sink(others),
    Pid = spawn(fun() -> reads_late(Many) end),
    true = register(unread, Pid),
    Self = self(),
    %% It is suspended for as long as this one lives.
    Holder = spawn(fun() ->
        true = erlang:suspend_process(Pid),
        Self ! {self(), suspended},
        receive read -> ok end
    end),
    true = register(unread_holder, Holder),
    receive {Holder, suspended} -> binaries() end.

reads_late(Many) ->
    Read = [receive {small, _} -> read end || _ <- lists:seq(1, Many)],
    receive {how_many, From} -> From ! {self(), length(Read)} end.

%% Between every two small ones a large one for another process there: how much that was.
sends_amid(Node, Many, Small, Large) ->
    _ = [
        begin
            {unread, Node} ! {small, binary:copy(<<1>>, Small)},
            {others, Node} ! binary:copy(<<2>>, Large)
        end
     || _ <- lists:seq(1, Many)
    ],
    %% Behind all of it, since it is of this process too.
    {others, Node} ! {here, self()},
    receive
        here -> Many * Large
    end.

held_by_unread() -> binaries().

binaries() ->
    _ = [erlang:garbage_collect(Pid) || Pid <- processes()],
    erlang:memory(binary).

reads_unread() ->
    Pid = whereis(unread),
    unread_holder ! read,
    Pid ! {how_many, self()},
    receive
        {Pid, Many} -> Many
    after ?MS -> timeout
    end.

%% Disconnects and connects for so long: how often, how often in vain, and the longest that
%% it took, in milliseconds.
connects_for(Node, Ms) ->
    connects_until(Node, erlang:monotonic_time(millisecond) + Ms, 0, 0, 0).

connects_until(Node, Until, Times, Failed, Most) ->
    case erlang:monotonic_time(millisecond) < Until of
        true ->
            ok = disconnected(Node, lists:member(Node, nodes())),
            {Us, Connected} = timer:tc(net_kernel, connect_node, [Node]),
            connects_until(Node, Until, Times + 1, Failed + case Connected of true -> 0; _ -> 1 end, max(Most, Us div 1000));
        false ->
            {Times, Failed, Most}
    end.

disconnected(Node, true) ->
    true = monitor_node(Node, true),
    true = erlang:disconnect_node(Node),
    receive {nodedown, Node} -> ok end;
disconnected(_Node, false) ->
    ok.

%% All modules of the carrier that are loaded, again.
loads_carrier() ->
    load_again(carrier_modules()).

load_again(Modules) ->
    _ = [
        begin
            _ = code:purge(Module),
            {module, Module} = code:load_file(Module)
        end
     || Module <- Modules
    ],
    ok.

carrier_modules() ->
    Ebin = filename:dirname(code:which(atoll_dist)),
    [Module || {Module, File} <- code:all_loaded(), is_list(File), filename:dirname(File) =:= Ebin].

%% Who still runs code that was loaded before.
in_old_code() ->
    [
        {Pid, Module}
     || Module <- carrier_modules(), erlang:check_old_code(Module), Pid <- processes(), Pid =/= self(),
        erlang:check_process_code(Pid, Module) =:= true
    ].

%% Who waits in the carrier's code, and would be killed where it is loaded twice meanwhile.
waiting_in_code() ->
    Modules = carrier_modules(),
    [
        {Pid, Function}
     || Pid <- processes(), Pid =/= self(), {_, {Module, _, _} = Function} <- [process_info(Pid, current_function)],
        lists:member(Module, Modules)
    ].

%% Who reads the sockets is loaded again after each few messages, which come one by one, and when they are asked
%% for: where they come by themselves a busy machine reads many at once, and loads twice before it reads again.
loads_amid_drops(Node, Times) ->
    Drips = spawn(Node, ?MODULE, drips, [self()]),
    _ = [
        begin
            _ = [begin Drips ! more, receive drop -> ok after ?MS -> exit(no_drop_came) end end || _ <- [1, 2, 3, 4]],
            ok = load_again([atoll_dist_input, atoll_dist_end])
        end
     || _ <- lists:seq(1, Times)
    ],
    Drips ! stop,
    ok.

drips(To) ->
    receive
        stop -> ok;
        more ->
            receive after 40 -> ok end,
            To ! drop,
            drips(To)
    end.

%% A process that counts what each sender has sent it, and sees that nothing is missing.
counts() ->
    Pid = spawn(fun() -> counts(#{}) end),
    true = register(counting, Pid),
    ok.

counts(Next) ->
    receive
        {number, From, I} ->
            I = maps:get(From, Next, 0),
            _ = [From ! {came, I} || is_answered(I)],
            counts(Next#{From => I + 1});
        {last, From} ->
            #{From := Sent} = Next,
            counts(Next#{From => {all, Sent}});
        {counted, Many, From} ->
            case [Sent || {_, {all, Sent}} <- maps:to_list(Next)] of
                All when length(All) =:= Many -> From ! {self(), lists:sort(All)};
                _ -> From ! {self(), not_yet}
            end,
            counts(Next)
    end.

counted_numbers(Many) ->
    Pid = whereis(counting),
    Pid ! {counted, Many, self()},
    receive
        {Pid, not_yet} -> receive after 10 -> counted_numbers(Many) end;
        {Pid, All} -> All
    after ?MS -> timeout
    end.

%% Processes each of which sends numbers to the one that counts over there, of some size,
%% until they are told to end; how many each has sent.
sends_numbers(Node, Many) ->
    Pid = spawn(fun() ->
        Senders = [spawn_monitor(fun() -> exit(sends_numbers(Node, binary:copy(<<0>>, 1 bsl (4 * I)), 0)) end) || I <- lists:seq(1, Many)],
        receive
            {sent, From} ->
                _ = [Sender ! last || {Sender, _} <- Senders],
                From ! {self(), lists:sort([receive {'DOWN', Ref, process, _, Sent} -> Sent end || {_, Ref} <- Senders])}
        end
    end),
    true = register(sending, Pid),
    ok.

sends_numbers(Node, Data, I) ->
    {counting, Node} ! {number, self(), I},
    {echo_nobody, Node} ! Data,
    %% Code is loaded at a normal priority, so a node must have some time left.
    _ = [receive {came, I} -> ok end || is_answered(I)],
    receive
        last ->
            {counting, Node} ! {last, self()},
            I + 1
    after 0 -> sends_numbers(Node, Data, I + 1)
    end.

is_answered(I) -> I rem 20 =:= 0.

sent_numbers() ->
    Pid = whereis(sending),
    Pid ! {sent, self()},
    receive
        {Pid, Sent} -> Sent
    after ?MS -> timeout
    end.
