%% SPDX-License-Identifier: Apache-2.0
%% Real packets of this VM, of every kind of signal, without a second node: the VM is
%% given a connection to a node that does not exist, whose controller is a process here
%% that takes the packets and writes down who it was that sent each. What the VM says
%% by itself is provoked by signals as the absent node would send them.
%%
%% live/0 does it in a fresh VM. record/1 writes what it gave to a file, for the tests
%% of packets of other OTP releases than the one that runs them; so, for OTP 29:
%%
%%     scripts/in-otp 29 sh -c 'cd apps/atoll/test && erlc atoll_dist_capture.erl &&
%%         erl -noshell -s atoll_dist_capture record /dev/stdout -s init stop'
%%
%% What goes there is kept in the folder atoll_dist_packets beside this file.
-module(atoll_dist_capture).

-export([record/1, live/0, load/1]).
%% Called in the other VM.
-export([all/0, child/0]).

-export_type([captured/0]).

%% What was done, what has to be read, the packet.
-type captured() :: {Mode :: atom(), Label :: atom(), Expected :: term(), Size :: pos_integer(), erlang:iovec()}.

-define(DEADLINE, 10000).

%% Elements of a packet are kept up to so many bytes; the rest is filled with zeros.
-define(KEPT, 200).

%% What nodes tell each other by themselves.
-define(TALK, [rex, global_name_server, net_kernel]).

%% Flags of the distribution protocol, as the erts User's Guide numbers them.
-define(BASE,
    (16#4 bor 16#8 bor 16#10 bor 16#20 bor 16#80 bor 16#100 bor 16#200 bor 16#400 bor 16#800 bor 16#1000 bor
        16#4000 bor 16#10000 bor 16#20000 bor 16#40000 bor 16#1000000 bor 16#2000000 bor (16#2D bsl 32))
).
-define(ATOM_CACHE, 16#2000).
-define(SEND_SENDER, 16#80000).
-define(EXIT_PAYLOAD, 16#400000).
-define(FRAGMENTS, 16#800000).

%% What the peer offers: what ours does, no fragments, nothing of what ours asks for, and
%% the atom cache, which ours must not.
modes() ->
    #{
        fragments => ?BASE bor ?SEND_SENDER bor ?EXIT_PAYLOAD bor ?FRAGMENTS,
        whole => ?BASE bor ?SEND_SENDER bor ?EXIT_PAYLOAD,
        bare => ?BASE,
        cached => ?BASE bor ?SEND_SENDER bor ?EXIT_PAYLOAD bor ?FRAGMENTS bor ?ATOM_CACHE
    }.

%% A fresh VM's packets, as {OTP release, its node, packets}.
-spec live() -> {string(), node(), [captured()]}.
live() ->
    {Otp, Node, Packets} = other_vm(),
    {Otp, Node, [filled(Packet) || Packet <- Packets]}.

other_vm() ->
    {ok, Peer, _} = peer:start(#{
        name => peer:random_name(),
        host => "127.0.0.1",
        longnames => true,
        connection => standard_io,
        wait_boot => 60000,
        args =>
            ["-dist_listen", "false", "-connect_all", "false", "-kernel", "dist_auto_connect", "never"] ++
                ["+zdbbl", "1", "-pa", filename:dirname(code:which(?MODULE))]
    }),
    try
        peer:call(Peer, ?MODULE, all, [], 60000)
    after
        peer:stop(Peer)
    end.

%% Writes a fresh VM's packets down.
-spec record([atom()] | file:name_all()) -> ok.
record([File]) when is_atom(File) ->
    record(atom_to_list(File));
record(File) ->
    {Otp, Node, Packets} = other_vm(),
    Terms = [
        io_lib:format("~p.~n", [{Otp, Node}])
        | [io_lib:format("~0p.~n", [shortened(Packet)]) || Packet <- Packets]
    ],
    ok = file:write_file(File, [head(), Terms]).

head() ->
    "%% Packets of a real VM, recorded by atoll_dist_capture: the release and its node;\n"
    "%% then mode, label, what has to be read, size, and the packet's pieces, each as\n"
    "%% {size, base64 of its first bytes}; the rest is zeros.\n".

shortened({Mode, Label, Expected, Size, Iovec}) ->
    {Mode, Label, Expected, Size, [{All, base64:encode(Kept)} || {All, Kept} <- Iovec]}.

%% What was written down.
-spec load(file:name_all()) -> {string(), node(), [captured()]}.
load(File) ->
    {ok, [{Otp, Node} | Terms]} = file:consult(File),
    {Otp, Node, [
        filled({Mode, Label, Expected, Size, [{All, base64:decode(Kept)} || {All, Kept} <- Pieces]})
     || {Mode, Label, Expected, Size, Pieces} <- Terms
    ]}.

filled({Mode, Label, Expected, Size, Pieces}) ->
    {Mode, Label, Expected, Size, [
        <<Kept/binary, 0:((All - byte_size(Kept)) * 8)>>
     || {All, Kept} <- Pieces
    ]}.

%% Of a control message all is kept, and of what follows the beginning.
cut({Mode, Label, Expected, Size, [First, Second | Rest]}) ->
    Kept =
        case First of
            <<131, 70, _/binary>> -> 0;
            _ -> ?KEPT
        end,
    {Mode, Label, Expected, Size, [
        {byte_size(First), First},
        {byte_size(Second), first(Kept, Second)}
        | [{byte_size(Piece), first(?KEPT div 10, Piece)} || Piece <- Rest]
    ]}.

first(N, Piece) -> binary:copy(binary:part(Piece, 0, min(N, byte_size(Piece)))).

%% All packets of this VM, their pieces as their size and what is kept of them.
-spec all() -> {string(), node(), [tuple()]}.
all() ->
    Packets = [cut(P) || {Mode, Flags} <- lists:sort(maps:to_list(modes())), P <- mode(Mode, Flags)],
    {erlang:system_info(otp_release), node(), Packets}.

mode(Mode, Flags) ->
    Me = self(),
    {_, Monitor} = spawn_monitor(fun() ->
        Me ! {Mode, captured(Mode, Flags)}
    end),
    receive
        {Mode, Packets} -> Packets;
        {'DOWN', Monitor, process, _, Reason} -> error(Reason)
    after ?DEADLINE -> error({Mode, timeout})
    end.

-record(c, {mode, node, handle, far}).

captured(Mode, Flags) ->
    %% A connection is up when it has a controller; net_kernel is not asked.
    Node = list_to_atom(atom_to_list(Mode) ++ "@127.0.0.2"),
    {_, _} = erts_internal:new_connection(Node),
    Handle = erlang:setnode(Node, self(), {Flags, 7}),
    ok = erlang:dist_ctrl_input_handler(Handle, self()),
    _ = erlang:dist_ctrl_set_opt(Handle, get_size, true),
    C = #c{mode = Mode, node = Node, handle = Handle, far = pid(Node, 5)},
    lists:append([step(Label, Do, C) || {Label, Do} <- steps(Mode), is_step(Label, Mode)]).

is_step(Label, cached) -> lists:member(Label, [link, send_sender, reg_send, large_send]);
is_step(priority_send, _) -> is_priority();
is_step(priority_exit, _) -> is_priority();
is_step(_, _) -> true.

is_priority() -> list_to_integer(erlang:system_info(otp_release)) >= 28.

step(Label, Do, #c{mode = Mode} = C) ->
    Expected = Do(C),
    Taken = take(length(Expected), C),
    [] = [Rest || Rest <- take_now(C)],
    [
        {Mode, Label, expected(Whose, Iovec), Size, Iovec}
     || {Whose, {Size, Iovec}} <- lists:zip(Expected, Taken)
    ].

expected(_, [<<131, 68, Refs, _/binary>> | _]) when Refs > 0 -> atom_cache;
expected(_, [<<131, 69, _:128, Refs, _/binary>> | _]) when Refs > 0 -> atom_cache;
expected({fragments, second}, [_, Control | _] = Iovec) -> expected({fragments, {second, Control}}, Iovec);
expected({fragments, Whose}, [<<131, 69, Seq:64, Frag:64, _/binary>> | _]) -> {first, Seq, Frag, whose(Whose)};
expected({fragments, _}, [<<131, 70, Seq:64, Frag:64, _/binary>> | _]) -> {next, Seq, Frag};
expected({fragments, Whose}, _) -> whose(Whose);
expected(Whose, _) -> whose(Whose).

%% Without a cache of atoms a control message begins as any term does.
whose({second, <<131, _/binary>> = Control}) ->
    whose(element(2, binary_to_term(Control)));
whose({second, Control}) ->
    whose(element(2, binary_to_term(<<131, Control/binary>>)));
whose(Pid) when is_pid(Pid) ->
    <<131, 88, Tail/binary>> = term_to_binary(Pid),
    <<Id:32, _:64>> = binary:part(Tail, byte_size(Tail), -12),
    {sender, Id};
whose(Whose) ->
    Whose.

%% Takes packets till there are so many, talk aside.
take(0, _C) ->
    [];
take(N, #c{handle = Handle} = C) ->
    case erlang:dist_ctrl_get_data(Handle) of
        none ->
            erlang:dist_ctrl_get_data_notification(Handle),
            receive
                dist_data -> take(N, C)
            after ?DEADLINE -> error({missing, N})
            end;
        {_, Iovec} = Packet ->
            case is_talk(Iovec) of
                true -> take(N, C);
                false -> [Packet | take(N - 1, C)]
            end
    end.

take_now(#c{handle = Handle} = C) ->
    case erlang:dist_ctrl_get_data(Handle) of
        none -> [];
        {_, Iovec} = Packet -> [Packet || not is_talk(Iovec)] ++ take_now(C)
    end.

is_talk(Iovec) ->
    Bytes = iolist_to_binary(Iovec),
    lists:any(fun(Name) -> binary:match(Bytes, atom_to_binary(Name)) =/= nomatch end, ?TALK).

%% What is done, and what the packets that it makes are expected to be: the pid of the
%% sender, none or late; {fragments, Whose} for each of a large message's.
steps(Mode) ->
    [
        {link, fun(#c{far = Far}) -> [by(fun() -> link(Far) end)] end},
        {unlink, fun(#c{far = Far}) ->
            S = by(fun() -> link(Far), unlink(Far) end),
            [S, S]
        end},
        {unlink_ack, fun(#c{far = Far} = C) ->
            S = by(fun() -> ok end),
            say(C, {1, Far, S}),
            say(C, {35, 1 bsl 40, Far, S}),
            [S]
        end},
        {exit, fun(#c{far = Far}) ->
            S = by(fun() -> link(Far), exit(gone) end),
            [S, S]
        end},
        {exit_of_nobody, fun(#c{far = Far} = C) ->
            S = dead(),
            say(C, {1, Far, S}),
            [S]
        end},
        {exit2, fun(#c{far = Far}) -> [by(fun() -> exit(Far, stop) end)] end},
        {reg_send, fun(#c{node = Node}) -> [by(fun() -> {name, Node} ! hello end)] end},
        {send_sender, fun(#c{far = Far}) -> [sender(Mode, by(fun() -> Far ! hello end))] end},
        {monitor_pid, fun(#c{far = Far}) -> [by(fun() -> monitor(process, Far) end)] end},
        {monitor_name, fun(#c{node = Node}) -> [by(fun() -> monitor(process, {name, Node}) end)] end},
        {demonitor_pid, fun(#c{far = Far}) ->
            S = by(fun() -> demonitor(monitor(process, Far)) end),
            [S, S]
        end},
        {demonitor_name, fun(#c{node = Node}) ->
            S = by(fun() -> demonitor(monitor(process, {name, Node})) end),
            [S, S]
        end},
        {down_pid, fun(#c{far = Far} = C) ->
            S = by(fun() -> ok end),
            say(C, {19, Far, S, ref(C, 3)}),
            S ! {do, fun() -> exit(gone) end},
            [S]
        end},
        {down_name, fun(#c{far = Far} = C) ->
            S = named(a_name),
            say(C, {19, Far, a_name, ref(C, 3)}),
            S ! {do, fun() -> exit(gone) end},
            [late]
        end},
        {down_no_pid, fun(#c{far = Far} = C) ->
            S = dead(),
            say(C, {19, Far, S, ref(C, 3)}),
            [S]
        end},
        {down_no_name, fun(#c{far = Far} = C) ->
            say(C, {19, Far, no_such_name, ref(C, 3)}),
            [late]
        end},
        {group_leader, fun(#c{far = Far}) ->
            _ = by(fun() -> group_leader(self(), Far) end),
            [none]
        end},
        {spawn_request, fun(#c{node = Node}) ->
            [by(fun() -> spawn_request(Node, m, f, [a], [monitor, {reply_tag, tag}]) end)]
        end},
        {spawn_reply, fun(#c{far = Far} = C) ->
            register(?MODULE, self()),
            say(C, {29, ref(C, 5), Far, Far, {?MODULE, child, 0}, []}, []),
            Child = receive {child, Pid} -> Pid after ?DEADLINE -> error(no_child) end,
            unregister(?MODULE),
            [Child]
        end},
        {spawn_failed, fun(#c{far = Far} = C) ->
            say(C, {29, ref(C, 5), Far, Far, {?MODULE, child, 0}, [no_option]}, []),
            [late]
        end},
        {alias_send, fun(C) ->
            Alias = ref(C, 3),
            [by(fun() -> Alias ! hello end)]
        end},
        {large_send, fun(#c{far = Far}) ->
            Large = large(),
            pieces(Mode, sender(Mode, by(fun() -> Far ! Large end)))
        end},
        {large_reg_send, fun(#c{node = Node}) ->
            Large = large(),
            pieces(Mode, by(fun() -> {name, Node} ! Large end))
        end},
        {large_exit2, fun(#c{far = Far}) ->
            Large = large(),
            in_pieces(Mode, by(fun() -> exit(Far, Large) end))
        end},
        {large_exit, fun(#c{far = Far}) ->
            Large = large(),
            S = by(fun() -> link(Far), exit(Large) end),
            [S | in_pieces(Mode, S)]
        end},
        {large_down_pid, fun(#c{far = Far} = C) ->
            Large = large(),
            S = by(fun() -> ok end),
            say(C, {19, Far, S, ref(C, 3)}),
            S ! {do, fun() -> exit(Large) end},
            in_pieces(Mode, S)
        end},
        {large_down_name, fun(#c{far = Far} = C) ->
            Large = large(),
            S = named(b_name),
            say(C, {19, Far, b_name, ref(C, 3)}),
            S ! {do, fun() -> exit(Large) end},
            in_pieces(Mode, late)
        end},
        {large_spawn_request, fun(#c{node = Node}) ->
            Large = large(),
            pieces(Mode, by(fun() -> spawn_request(Node, m, f, [Large], []) end))
        end},
        {large_alias_send, fun(C) ->
            Large = large(),
            Alias = ref(C, 3),
            pieces(Mode, by(fun() -> Alias ! Large end))
        end},
        {interleaved, fun(#c{node = Node}) ->
            %% Larger than what a sender may put out at once.
            Large = binary:copy(large(), 20),
            _ = [by(fun() -> {name, Node} ! Large end) || _ <- [1, 2, 3]],
            Each = case is_fragmented(Mode) of true -> 41; false -> 1 end,
            %% Whoever comes first.
            [{fragments, second} || _ <- lists:seq(1, 3 * Each)]
        end},
        {traced_send, traced(Mode, fun(Far, _) -> Far ! hello end)},
        {traced_reg_send, fun(#c{node = Node}) -> [by(token(fun() -> {name, Node} ! hello end))] end},
        {traced_exit2, fun(#c{far = Far}) -> [by(token(fun() -> exit(Far, stop) end))] end},
        {traced_exit, fun(#c{far = Far}) ->
            S = by(token(fun() -> link(Far), exit(gone) end)),
            [S, S]
        end},
        {traced_alias_send, fun(C) ->
            Alias = ref(C, 3),
            [by(token(fun() -> Alias ! hello end))]
        end},
        {traced_spawn_request, fun(#c{node = Node}) ->
            [by(token(fun() -> spawn_request(Node, m, f, [a], []) end))]
        end},
        {traced_spawn_reply, fun(#c{far = Far} = C) ->
            register(?MODULE, self()),
            say(C, {30, ref(C, 5), Far, Far, {?MODULE, child, 0}, [], {1, 17, 0, Far, 0}}, []),
            Child = receive {child, Pid} -> Pid after ?DEADLINE -> error(no_child) end,
            unregister(?MODULE),
            [Child]
        end},
        {priority_send, fun(#c{far = Far}) -> [by(fun() -> erlang:send(Far, hello, [priority]) end)] end},
        {priority_exit, fun(#c{far = Far}) -> [by(fun() -> apply(erlang, exit, [Far, stop, [priority]]) end)] end}
    ].

traced(Mode, Do) ->
    fun(#c{far = Far, node = Node}) -> [sender(Mode, by(token(fun() -> Do(Far, Node) end)))] end.

%% Without SEND_SENDER a send names nobody.
sender(bare, _) -> none;
sender(_, S) -> S.

is_fragmented(Mode) -> Mode =:= fragments orelse Mode =:= cached.

pieces(Mode, Whose) ->
    case is_fragmented(Mode) of
        true -> [{fragments, Whose}, {fragments, Whose}, {fragments, Whose}];
        false -> [Whose]
    end.

%% Without EXIT_PAYLOAD reasons are in the control message, which is not cut.
in_pieces(Mode, Whose) -> pieces(Mode, Whose).

large() -> binary:copy(<<0>>, 2 * 65536 + 100).

token(Do) ->
    fun() ->
        _ = seq_trace:set_token(label, 17),
        Do()
    end.

%% A process that does this, and then what it is told.
by(Do) -> spawn(fun() -> Do(), idle() end).

idle() ->
    receive
        {do, Do} -> Do()
    end.

named(Name) ->
    S = by(fun() -> ok end),
    register(Name, S),
    S.

dead() ->
    {S, Monitor} = spawn_monitor(fun() -> ok end),
    receive
        {'DOWN', Monitor, process, S, _} -> S
    end.

%% The child of a spawn asked for from afar.
-spec child() -> term().
child() ->
    %% A trace token would go with the message, to all that is spawned later.
    _ = seq_trace:set_token([]),
    ?MODULE ! {child, self()},
    idle().

%% A signal from the absent node.
say(C, Control) -> put_data(C, [term(Control)]).
say(C, Control, Payload) -> put_data(C, [term(Control), term(Payload)]).

put_data(#c{mode = Mode, handle = Handle}, Terms) ->
    Data =
        case is_fragmented(Mode) of
            true -> [<<131, 68, 0>> | Terms];
            false -> [112 | [[131, Term] || Term <- Terms]]
        end,
    erlang:dist_ctrl_put_data(Handle, iolist_to_binary(Data)).

term(Term) ->
    <<131, Bytes/binary>> = term_to_binary(Term),
    Bytes.

pid(Node, Id) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, Id:32, 0:32, 7:32>>).

ref(#c{node = Node}, N) ->
    Name = atom_to_binary(Node),
    Numbers = <<1:18, 0:14, 2:32, 3:32, 0:((N - 3) * 32)>>,
    binary_to_term(<<131, 90, N:16, 119, (byte_size(Name)), Name/binary, 7:32, Numbers/binary>>).
