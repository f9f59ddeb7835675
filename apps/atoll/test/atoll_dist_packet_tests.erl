%% SPDX-License-Identifier: Apache-2.0
%% Whose packet it is, with packets of real VMs: recorded ones of each OTP release (see
%% atoll_dist_capture), and this VM's own.
-module(atoll_dist_packet_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(RELEASES, ["25", "27", "29"]).

%% Every kind of signal

recorded_test_() ->
    [
        {"every packet of OTP " ++ Release ++ " is read right", fun() ->
            {Release, Node, Packets} = recorded(Release),
            ?assert(length(Packets) > 200),
            all_right(Node, Packets)
        end}
     || Release <- ?RELEASES
    ].

live_test_() ->
    {timeout, 60, {"every packet of this VM is read right", fun() ->
        {_, Node, Packets} = atoll_dist_capture:live(),
        all_right(Node, Packets)
    end}}.

all_right(Node, Packets) ->
    Own = atoll_dist_packet:own(Node),
    ?assertEqual([], [
        {Mode, Label, Expected, Read}
     || {Mode, Label, Expected, Size, Iovec} <- Packets,
        Read <- [atoll_dist_packet:read(Iovec, Own)],
        not is_right(Expected, Read) orelse Size =/= iolist_size(Iovec)
    ]),
    %% All that has to be told apart is there.
    Kinds = [sender, none, late, first, next, atom_cache],
    ?assertEqual([], Kinds -- [kind(Expected) || {_, _, Expected, _, _} <- Packets]).

is_right(atom_cache, {error, {atom_cache, _}}) -> true;
is_right(Expected, Read) -> Expected =:= Read.

kind(Expected) when is_tuple(Expected) -> element(1, Expected);
kind(Expected) -> Expected.

names_of_any_length_and_script_test() ->
    [
        begin
            Name = unicode:characters_to_binary(Text ++ "@host"),
            Own = atoll_dist_packet:own(binary_to_atom(Name)),
            Atom =
                case byte_size(Name) of
                    Size when Size > 255 -> <<118, Size:16, Name/binary>>;
                    Size -> <<119, Size, Name/binary>>
                end,
            %% As this VM writes a pid of such a node.
            Pid = binary_to_term(<<131, 88, Atom/binary, 77:32, 1:32, 9:32>>),
            <<131, Bytes/binary>> = term_to_binary({22, Pid, Pid}, [{minor_version, 2}]),
            ?assertEqual({sender, (1 bsl 32) bor 77}, atoll_dist_packet:read([<<131, 68, 0>>, Bytes], Own)),
            <<131, Id/binary>> = term_to_binary({35, 1 bsl 63, Pid, Pid}, [{minor_version, 2}]),
            ?assertEqual({sender, (1 bsl 32) bor 77}, atoll_dist_packet:read([<<131, 68, 0>>, Id], Own)),
            Ref = binary_to_term(<<131, 90, 5:16, Atom/binary, 9:32, 1:160>>),
            <<131, Reply/binary>> = term_to_binary({31, Ref, Pid, 1, Pid}, [{minor_version, 2}]),
            ?assertEqual({sender, (1 bsl 32) bor 77}, atoll_dist_packet:read([<<131, 68, 0>>, Reply], Own))
        end
     || Text <- ["a", "ünï", lists:duplicate(250, $a), lists:duplicate(250, $ж)]
    ].

a_process_is_known_by_its_key_test() ->
    Key = atoll_dist_packet:key(self()),
    ?assertEqual(self(), atoll_dist_packet:pid(Key)),
    <<131, Control/binary>> = term_to_binary({22, self(), self()}, [{minor_version, 2}]),
    ?assertEqual({sender, Key}, atoll_dist_packet:read([<<131, 68, 0>>, Control], atoll_dist_packet:own(node()))),
    Late = (5 bsl 32) bor Key,
    ?assertEqual(Late, atoll_dist_packet:key(atoll_dist_packet:pid(Late))).

what_nobody_waits_for_may_be_dropped_and_nothing_else_test_() ->
    Me = self(),
    Ref = make_ref(),
    From = {Me, [alias | Ref]},
    Plain = [a, 1, "text", <<1>>, #{a => Ref}, {}, {a}, {state, 7, Me}, {'$gen_cast', x}, {a, {Me, b}}, {Me, hello}, {a, b, c, Ref}, [Ref]],
    Kept = [
        {'$gen_call', From, x}, {'$gen_call', {Me, Ref}, x}, {Ref, reply}, {[alias | Ref], reply}, {Me, From, x}, {system, From, x},
        {io_request, Me, Ref, x}, {io_reply, Ref, x}, {'DOWN', Ref, process, Me, x}
    ],
    [
        {lists:flatten(io_lib:format("~0p ~0p", [Control, Message])), fun() ->
            [?assertEqual(Expected, kind_of(atoll_dist_packet:plain(Iovec))) || Iovec <- made(Control, Message)]
        end}
     || {Control, May} <- [{{22, Me, Me}, plain}, {{6, Me, '', name}, plain}, {{33, Me, Ref}, kept}, {{23, Me, Me, tok}, kept}, {{1, Me, Me}, kept}],
        {Message, Does} <- [{M, plain} || M <- Plain] ++ [{M, kept} || M <- Kept],
        Expected <- [case {May, Does} of {plain, plain} -> plain; _ -> kept end]
    ].

kind_of({plain, _}) -> plain;
kind_of(kept) -> kept.

%% As the VM makes them with fragments and without; in one piece and cut.
made(Control0, Message0) ->
    [<<131, Control/binary>>, <<131, Message/binary>>] = [term_to_binary(T, [{minor_version, 2}]) || T <- [Control0, Message0]],
    Whole = <<131, 68, 0, Control/binary, Message/binary>>,
    [
        [<<131, 68, 0>>, Control, Message],
        [Whole],
        [<<Byte>> || <<Byte>> <= Whole],
        [<<112, 131>>, Control, <<131, Message/binary>>],
        [<<112>>, <<131, Control/binary>>, <<131>>, Message]
    ].

the_receiver_is_as_it_stands_there_test() ->
    {plain, Pid} = atoll_dist_packet:plain(hd(made({22, self(), self()}, x))),
    ?assertEqual(self(), binary_to_term(<<131, Pid/binary>>)),
    {plain, Name} = atoll_dist_packet:plain(hd(made({6, self(), '', name}, x))),
    ?assertEqual(name, binary_to_term(<<131, Name/binary>>)).

%% Of what the VMs of three releases made, all that is dropped is a message.
only_messages_may_be_dropped_test_() ->
    {timeout, 60, fun() ->
        {_, _, Packets} = some(),
        Plain = [Iovec || Iovec <- Packets, {plain, _} <- [atoll_dist_packet:plain(Iovec)]],
        ?assert(length(Plain) > 3),
        ?assert(lists:all(fun atoll_dist_packet:is_message/1, Plain))
    end}.

another_nodes_pid_is_no_known_sender_test_() ->
    {timeout, 60, fun another_nodes_pid_is_no_known_sender/0}.

another_nodes_pid_is_no_known_sender() ->
    {_, Node, Packets} = some(),
    Own = atoll_dist_packet:own(Node),
    Sent = [Iovec || Iovec <- Packets, {sender, _} <- [atoll_dist_packet:read(Iovec, Own)]],
    ?assert(length(Sent) > 30),
    Other = atoll_dist_packet:own('other@host'),
    ?assertEqual([none], lists:usort([atoll_dist_packet:read(Iovec, Other) || Iovec <- Sent])).

a_signal_of_a_kind_to_come_has_no_known_sender_test() ->
    <<131, Control/binary>> = term_to_binary({38, self(), self()}),
    ?assertEqual(none, atoll_dist_packet:read([<<131, 68, 0>>, Control], atoll_dist_packet:own(node()))).

what_only_begins_like_news_of_a_death_is_refused_test() ->
    <<131, Control/binary>> = term_to_binary({28, name, name, name}, [{minor_version, 2}]),
    ?assertMatch(
        {error, {bad_control, _}},
        atoll_dist_packet:read([<<131, 68, 0>>, Control], atoll_dist_packet:own(node()))
    ).

%% Packets that are cut, altered, made up

however_a_packet_is_cut_into_pieces_test_() ->
    atoll_prop:test(?FUNCTION_NAME, pieces(), 2000).

pieces() ->
    {_, Node, Packets} = some(),
    Own = atoll_dist_packet:own(Node),
    ?FORALL({Iovec, Cuts}, {oneof(Packets), list(range(1, 60))}, begin
        Read = atoll_dist_packet:read(Iovec, Own),
        equals(Read, atoll_dist_packet:read(cut(Cuts, iolist_to_binary(Iovec)), Own))
    end).

cut([At | Cuts], Bytes) when byte_size(Bytes) > At ->
    <<Piece:At/binary, Rest/binary>> = Bytes,
    [Piece | cut(Cuts, Rest)];
cut(_, Bytes) ->
    [Bytes].

the_beginning_of_a_packet_is_read_right_or_refused_test() ->
    {_, Node, Packets} = some(),
    Own = atoll_dist_packet:own(Node),
    [
        begin
            Read = atoll_dist_packet:read([binary:part(Bytes, 0, Size)], Own),
            ?assert(Read =:= atoll_dist_packet:read(Iovec, Own) orelse element(1, Read) =:= error)
        end
     || Iovec <- Packets,
        Bytes <- [beginning(Iovec)],
        Size <- lists:seq(0, byte_size(Bytes) - 1)
    ].

%% Every byte of the beginning of every packet, with every value that has a meaning
%% somewhere. Where the altered byte is the number of the sender's pid, the kind of the
%% signal, or the fragment's number, the packet is another that the VM could have made.
no_altered_byte_leads_astray_test_() ->
    {timeout, 120, fun() ->
        {_, Node, Packets} = some(),
        Own = atoll_dist_packet:own(Node),
        _ = astray(lists:sublist(Packets, 3), Own),
        Atoms = erlang:system_info(atom_count),
        Astray = astray(Packets, Own),
        ?assertEqual(Atoms, erlang:system_info(atom_count)),
        ?assertEqual([], [
            {Read, Other, At, Bytes}
         || {Read, Other, At, Bytes} <- Astray, not is_another(Other, [Bytes], Own)
        ])
    end}.

astray(Packets, Own) ->
    [
        {Read, Other, At, iolist_to_binary(Altered)}
     || Iovec <- Packets,
        Bytes <- [beginning(Iovec)],
        Read <- [atoll_dist_packet:read([Bytes], Own)],
        At <- lists:seq(0, byte_size(Bytes) - 1),
        <<Head:At/binary, _, Tail/binary>> <- [Bytes],
        Value <- values(),
        Altered <- [[<<Head/binary, Value, Tail/binary>>]],
        Other <- [atoll_dist_packet:read(Altered, Own)],
        not is_safe(Read, Other)
    ].

values() -> lists:seq(0, 40) ++ [68, 69, 70] ++ lists:seq(82, 120) ++ [128, 131, 255].

is_safe(Read, Read) -> true;
is_safe(_, none) -> true;
is_safe(_, {error, _}) -> true;
is_safe({first, Seq, Frag, _}, {first, Seq, Frag, none}) -> true;
is_safe(_, _) -> false.

%% Whether the packet says what was read, as the VM itself decodes it.
is_another({first, Seq, Frag, Whose}, [<<131, 69, Seq:64, Frag:64, 0, Control/binary>>], Own) ->
    Frag > 1 andalso is_another(Whose, [<<131, 68, 0, Control/binary>>], Own);
is_another(Whose, [<<131, 69, _:64, 1:64, 0, Control/binary>>], Own) ->
    is_another(Whose, [<<131, 68, 0, Control/binary>>], Own);
is_another({next, Seq, Frag}, [<<131, 70, Seq:64, Frag:64, _/binary>>], _Own) ->
    Frag > 0;
is_another(Whose, [<<131, 68, 0, Control/binary>>], Own) ->
    is_said(Whose, decoded(Control), Own);
is_another(Whose, [<<112, 131, Control/binary>>], Own) ->
    is_said(Whose, decoded(Control), Own);
is_another(_, _, _) ->
    false.

decoded(Control) ->
    try binary_to_term(<<131, Control/binary>>) catch error:badarg -> unreadable end.

is_said({sender, Key}, Control, Own) when is_tuple(Control) ->
    lists:any(
        fun
            (Pid) when is_pid(Pid) ->
                <<131, Bytes/binary>> = term_to_binary(Pid, [{minor_version, 2}]),
                {Prefix, _, _} = Own,
                Size = byte_size(Prefix),
                case Bytes of
                    <<Prefix:Size/binary, Id:32, Serial:32, _/binary>> -> Key =:= (Serial bsl 32) bor Id;
                    _ -> false
                end;
            (_) ->
                false
        end,
        [element(sender_at(element(1, Control)), Control)]
    );
is_said(late, {Op, Name, _, _}, _Own) when Op =:= 28 -> is_atom(Name);
is_said(late, {Op, Name, _, _, _}, _Own) when Op =:= 21 -> is_atom(Name);
is_said(late, {31, _, _, _, Name}, _Own) -> is_atom(Name);
is_said(late, {32, _, _, _, Name, _}, _Own) -> is_atom(Name);
is_said(_, _, _Own) -> false.

sender_at(Op) when Op =:= 31; Op =:= 32 -> 5;
sender_at(Op) when Op =:= 29; Op =:= 30; Op =:= 35; Op =:= 36; Op =:= 37 -> 3;
sender_at(_) -> 2.

anything_is_read_or_refused_test_() ->
    Own = atoll_dist_packet:own('a@b'),
    atoll_prop:tests([
        {bytes, ?FORALL(Iovec, list(binary()), is_verdict(atoll_dist_packet:read(Iovec, Own))), 2000},
        {messages,
            ?FORALL(
                {Op, Rest},
                {range(0, 45), binary()},
                is_verdict(atoll_dist_packet:read([<<131, 68, 0, 104, (Op rem 8), 97, Op, Rest/binary>>], Own))
            ),
            5000}
    ]).

is_verdict({sender, Id}) -> is_integer(Id);
is_verdict(none) -> true;
is_verdict(late) -> true;
is_verdict({first, _, Frag, _}) -> Frag > 1;
is_verdict({next, _, Frag}) -> Frag > 0;
is_verdict({error, {_, Head}}) -> byte_size(Head) =< 32.

%% One packet of each kind and shape.
some() ->
    Each = [
        {Release, Node, Mode, Label, Expected, Iovec}
     || Release <- ?RELEASES,
        {_, Node, Packets} <- [recorded(Release)],
        {Mode, Label, Expected, _Size, Iovec} <- Packets
    ],
    {Release, Node, _, _, _, _} = lists:last(Each),
    {Release, Node, [
        Iovec
     || {_, Iovec} <- maps:to_list(
            maps:from_list([
                {{Mode, Label, kind(Expected)}, Iovec}
             || {R, _, Mode, Label, Expected, Iovec} <- Each, R =:= Release, Mode =/= cached, not is_cut(Mode, Label)
            ])
        )
    ]}.

%% Whether the control message itself is large.
is_cut(bare, Label) -> lists:prefix("large", atom_to_list(Label));
is_cut(_, _) -> false.

%% All of the control message.
beginning([First]) -> First;
beginning([First, Control | _]) -> <<First/binary, (binary:part(Control, 0, min(200, byte_size(Control))))/binary>>.

recorded(Release) ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    Folder = filename:join(filename:dirname(Source), "atoll_dist_packets"),
    atoll_dist_capture:load(filename:join(Folder, "otp-" ++ Release ++ ".packets")).
