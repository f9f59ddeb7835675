%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Whose packet this is: reads, of one packet that the VM hands to the controller
%% of a connection, no more than is needed to keep the order of its signals.
%%
%% Erlang promises order for each pair of a sender and a receiver. Where packets take
%% several ways, all packets of one sender take the same; so the sender's pid is looked
%% for in the control message, where the distribution protocol puts it. Shapes of a
%% packet (a list of binaries, cut anywhere): `112, 131, Control' without fragments,
%% and with them `131, 68, 0, Control', the first fragment `131, 69, Seq:64, Frag:64, 0,
%% Control', the later ones `131, 70, Seq:64, Frag:64', where Frag counts down to 1. The
%% atom cache is not read: a connection with lanes must not offer it.
%%
%% What is promised for bytes that were altered: no crash, no new atom, no more than
%% the first 4 KB looked at, and the answer is the right sender, or one that is safe for any
%% packet (`none', with which nothing overtakes it), or an error, unless the altered
%% packet is again one that the VM could have made: another number in the sender's pid,
%% another kind of signal, another sequence. Nothing could tell those.
-module(atoll_dist_packet).

-export([own/1, key/1, pid/1, read/2, plain/1, is_message/1]).

-export_type([own/0, key/0, sequence/0, fragment/0, whose/0, verdict/0, reason/0]).

%% What a pid of this node begins with, the name in it alone, and how long that is, if it
%% is of the short kind.
-opaque own() :: {Pid :: binary(), Name :: binary(), 0..255 | long}.

%% The number in the sender's pid: its serial number, and then its identity, 32 bits of each.
%% No two processes in the life of a node have the same.
-type key() :: 0..16#FFFFFFFFFFFFFFFF.

-type sequence() :: 0..16#FFFFFFFFFFFFFFFF.

%% How many fragments are yet to come, this one counted.
-type fragment() :: 1..16#FFFFFFFFFFFFFFFF.

-type whose() ::
    {sender, key()}
    %% It names no sender: whatever was before it comes before it, whatever is after
    %% it after it.
    | none
    %% It names no sender, and nothing has to wait for it: it must not overtake, and
    %% may be overtaken. So is a monitor's news that a name's process is dead, the last
    %% that the process says under that name, and a spawn that failed.
    | late.

-type verdict() ::
    whose()
    | {first, sequence(), fragment(), whose()}
    | {next, sequence(), fragment()}
    | {error, reason()}.

-type reason() ::
    {bad_packet, Head :: binary()}
    | {bad_control, Head :: binary()}
    | {atom_cache, Head :: binary()}.

%% Enough for two node names of 255 characters and a reference of the longest kind.
-define(HEAD, 4096).

-define(KEY(Serial, Id), ((Serial bsl 32) bor Id)).

%% How much of a bad packet is shown.
-define(SHOWN, 32).

%% @doc What a pid of the node looks like.
-spec own(node()) -> own().
own(Node) ->
    Bytes = atom_to_binary(Node, utf8),
    case byte_size(Bytes) of
        Size when Size < 256 ->
            {<<88, 119, Size, Bytes/binary>>, <<119, Size, Bytes/binary>>, Size};
        Size ->
            {<<88, 118, Size:16, Bytes/binary>>, <<118, Size:16, Bytes/binary>>, long}
    end.

%% @doc The key of a process of this node.
-spec key(pid()) -> key().
key(Pid) when node(Pid) =:= node() ->
    Bytes = term_to_binary(Pid),
    <<Id:32, Serial:32, _Creation:32>> = binary:part(Bytes, byte_size(Bytes), -12),
    ?KEY(Serial, Id).

%% @doc The process with that key.
-spec pid(key()) -> pid().
pid(Key) ->
    Bytes = term_to_binary(self()),
    Size = byte_size(Bytes) - 12,
    <<Before:Size/binary, _:64, Creation:4/binary>> = Bytes,
    binary_to_term(<<Before/binary, Key:32, (Key bsr 32):32, Creation/binary>>).

%% @doc Whose packet it is, or which fragment.
-spec read(erlang:iovec(), own()) -> verdict().
read(Iovec, Own) ->
    case quick(Iovec, Own) of
        {error, _} -> whole(iolist_to_binary(head(Iovec, ?HEAD)), Own);
        Verdict -> Verdict
    end.

%% @doc The receiver of a message that nobody waits for, as it stands there: one to a pid or a name, in one
%% piece and without a trace token, that is no request and no answer. That is one which has a
%% reference, as OTP's calls and their answers have it: as one of the first three elements of a tuple, or with
%% the word `alias' before it, or in a pair of the first of these that is one. Everything else is to be kept.
-spec plain(erlang:iovec()) -> {plain, Receiver :: binary()} | kept.
plain(Iovec) ->
    case iolist_to_binary(head(Iovec, ?HEAD)) of
        <<131, 68, 0, 104, 3, 97, 22, Rest/binary>> -> plain(skip(Rest), fun(Term) -> Term end);
        <<131, 68, 0, 104, 4, 97, 6, Rest/binary>> -> plain(skip_all(2, Rest), fun(Term) -> Term end);
        <<112, 131, 104, 3, 97, 22, Rest/binary>> -> plain(skip(Rest), fun versioned/1);
        <<112, 131, 104, 4, 97, 6, Rest/binary>> -> plain(skip_all(2, Rest), fun versioned/1);
        _ -> kept
    end.

versioned(<<131, Term/binary>>) -> Term;
versioned(_) -> error.

plain(error, _Payload) ->
    kept;
plain(Bytes, Payload) ->
    case skip(Bytes) of
        error ->
            kept;
        Rest ->
            case Payload(Rest) of
                Term when Term =:= error; Term =:= <<>> -> kept;
                Term -> plain_to(binary:part(Bytes, 0, byte_size(Bytes) - byte_size(Rest)), is_awaited(Term))
            end
    end.

plain_to(_Receiver, true) -> kept;
plain_to(Receiver, false) -> {plain, binary:copy(Receiver)}.

is_awaited(<<104, Arity, Elements/binary>>) -> has_reference(min(Arity, 3), Elements);
is_awaited(_) -> false.

has_reference(0, _) -> false;
has_reference(_, <<90, _/binary>>) -> true;
has_reference(_, <<108, 1:32, 119, 5, "alias", 90, _/binary>>) -> true;
has_reference(_, <<104, 2, Pair/binary>>) -> has_reference(2, Pair);
has_reference(N, Elements) ->
    case skip(Elements) of
        error -> false;
        Rest -> has_reference(N - 1, Rest)
    end.

skip_all(0, Bytes) -> Bytes;
skip_all(_, error) -> error;
skip_all(N, Bytes) -> skip_all(N - 1, skip(Bytes)).

%% @doc Whether it is a message, or the first fragment of one.
-spec is_message(erlang:iovec()) -> boolean().
is_message(Iovec) ->
    case iolist_to_binary(head(Iovec, 32)) of
        <<131, 68, 0, 104, _, 97, Op, _/binary>> -> is_send(Op);
        <<131, 69, _:64, _:64, 0, 104, _, 97, Op, _/binary>> -> is_send(Op);
        <<112, 131, 104, _, 97, Op, _/binary>> -> is_send(Op);
        _ -> false
    end.

%% SEND, REG_SEND, SEND_SENDER and ALIAS_SEND, each without and with a trace token, and
%% ALTACT_SIG_SEND.
is_send(Op) -> lists:member(Op, [2, 12, 6, 16, 22, 23, 33, 34, 37]).

%% As the VMs cut their packets today. The answer hangs on the packet's first bytes
%% only, so it is the same however a packet is cut.
quick([<<131, 68, 0>>, Control | _], Own) -> control(Control, Own);
quick([<<131, 70, Seq:64, Frag:64>> | _], _Own) when Frag > 0 -> {next, Seq, Frag};
quick([<<131, 69, Seq:64, Frag:64, 0>>, Control | _], Own) when Frag > 0 ->
    first(Seq, Frag, control(Control, Own));
quick([<<112, 131>>, Control | _], Own) -> control(Control, Own);
quick([<<112>>, <<131, Control/binary>> | _], Own) -> control(Control, Own);
quick(_, _Own) -> {error, otherwise}.

whole(<<131, 68, 0, Control/binary>>, Own) -> control(Control, Own);
whole(<<131, 69, Seq:64, Frag:64, 0, Control/binary>>, Own) when Frag > 0 ->
    first(Seq, Frag, control(Control, Own));
whole(<<131, 70, Seq:64, Frag:64, _/binary>>, _Own) when Frag > 0 -> {next, Seq, Frag};
whole(<<112, 131, Control/binary>>, Own) -> control(Control, Own);
whole(<<131, 68, _, _/binary>> = Head, _Own) -> {error, {atom_cache, shown(Head)}};
whole(<<131, 69, _:64, _:64, Refs, _/binary>> = Head, _Own) when Refs > 0 ->
    {error, {atom_cache, shown(Head)}};
whole(Head, _Own) -> {error, {bad_packet, shown(Head)}}.

%% A message of one fragment is whole.
first(_Seq, _Frag, {error, _} = Error) -> Error;
first(_Seq, 1, Whose) -> Whose;
first(Seq, Frag, Whose) -> {first, Seq, Frag, Whose}.

%% Almost all signals have the sender's pid in the second place. There the length of its
%% node's name says enough: no signal is sent in another node's name.
-spec control(binary(), own()) -> whose() | {error, reason()}.
control(<<104, Arity, 97, Op, 88, 119, Size, _:Size/binary, Id:32, Serial:32, _:32, _/binary>> = Control, {_, _, Size} = Own) ->
    case place(Op, Arity) of
        second -> {sender, ?KEY(Serial, Id)};
        down -> {sender, ?KEY(Serial, Id)};
        none -> none;
        _ -> other(Control, Own)
    end;
control(Control, Own) ->
    other(Control, Own).

other(<<104, Arity, 97, Op, Rest/binary>> = Control, Own) ->
    case place(Op, Arity) of
        second -> sender(Rest, Own, Control);
        number -> numbered(Rest, Own, Control);
        request -> request(Rest, Own, Control);
        reply -> reply(Op, Rest, Own, Control);
        down -> down(Rest, Own, Control);
        none -> none;
        bad -> bad(Control)
    end;
other(Control, _Own) ->
    bad(Control).

%% Where the sender's pid stands, by operation and arity, which counts the operation: in
%% the second place, or after a number, or after a reference of this node.
place(22, 3) -> second;     % SEND_SENDER
place(6, 4) -> second;      % REG_SEND
place(33, 3) -> second;     % ALIAS_SEND
place(19, 4) -> second;     % MONITOR_P
place(20, 4) -> second;     % DEMONITOR_P
place(28, 4) -> down;       % PAYLOAD_MONITOR_P_EXIT
place(1, 3) -> second;      % LINK
place(35, 4) -> number;     % UNLINK_ID
place(36, 4) -> number;     % UNLINK_ID_ACK
place(24, 3) -> second;     % PAYLOAD_EXIT
place(26, 3) -> second;     % PAYLOAD_EXIT2
place(29, 6) -> request;    % SPAWN_REQUEST
place(31, 5) -> reply;      % SPAWN_REPLY
place(37, 4) -> number;     % ALTACT_SIG_SEND, from OTP 28 on
place(37, 5) -> number;     % and with a trace token
place(7, 3) -> none;        % GROUP_LEADER: the leader's pid is not the sender's
place(2, 3) -> none;        % SEND
place(21, 5) -> down;       % MONITOR_P_EXIT
place(3, 4) -> second;      % EXIT
place(8, 4) -> second;      % EXIT2
place(12, 4) -> none;       % SEND_TT; TT: with a trace token
place(13, 5) -> second;     % EXIT_TT
place(16, 5) -> second;     % REG_SEND_TT
place(18, 5) -> second;     % EXIT2_TT
place(23, 4) -> second;     % SEND_SENDER_TT
place(25, 4) -> second;     % PAYLOAD_EXIT_TT
place(27, 4) -> second;     % PAYLOAD_EXIT2_TT
place(30, 7) -> request;    % SPAWN_REQUEST_TT
place(32, 6) -> reply;      % SPAWN_REPLY_TT
place(34, 4) -> second;     % ALIAS_SEND_TT
%% No sender can be known of what is not known.
place(Op, _) when Op > 37; Op =:= 0; Op =:= 4; Op =:= 5 -> none;
place(Op, _) when Op >= 9, Op =< 11; Op =:= 14; Op =:= 15; Op =:= 17 -> none;
place(_, _) -> bad.

%% A pid of this node. Behind something else it is looked at closely, lest another pid is
%% taken for it; another node's is no known sender.
sender(Bytes, {Pid, _, _}, Control) ->
    Size = byte_size(Pid),
    case Bytes of
        <<Pid:Size/binary, Id:32, Serial:32, _Creation:32, _/binary>> -> {sender, ?KEY(Serial, Id)};
        <<88, _/binary>> -> foreign(Bytes, Control);
        _ -> bad(Control)
    end.

foreign(Bytes, Control) ->
    case skip(Bytes) of
        error -> bad(Control);
        _ -> none
    end.

%% The kind of what is passed over is looked at, lest another pid is taken for the sender.
numbered(<<Tag, _/binary>> = Bytes, Own, Control) when Tag =:= 97; Tag =:= 98; Tag =:= 110 ->
    sender(skip(Bytes), Own, Control);
numbered(_, _Own, Control) ->
    bad(Control).

request(Bytes, {_, Name, _} = Own, Control) ->
    Size = byte_size(Name),
    case Bytes of
        <<90, Words:16, Name:Size/binary, _:32, _:Words/binary-unit:32, Rest/binary>> when Words =< 5 ->
            sender(Rest, Own, Control);
        <<90, _/binary>> ->
            foreign(Bytes, Control);
        _ ->
            bad(Control)
    end.

%% The child speaks, and its own signals must not overtake the reply; without a child
%% there stands an atom, and no more but a trace token.
reply(Op, Bytes, Own, Control) ->
    case after_all([90, 88, 97], Bytes) of
        <<88, _/binary>> = Child -> sender(Child, Own, Control);
        <<Tag, _/binary>> = Why when Tag =:= 119; Tag =:= 118 -> failed(Op, skip(Why), Control);
        _ -> bad(Control)
    end.

failed(31, <<>>, _Control) -> late;
failed(32, <<104, 5, _/binary>>, _Control) -> late;
failed(_, _, Control) -> bad(Control).

%% A pid, or a name, and then the pid of the one who hears it and a reference.
down(<<88, _/binary>> = Pid, Own, Control) ->
    sender(Pid, Own, Control);
down(<<Tag, _/binary>> = Name, _Own, Control) when Tag =:= 119; Tag =:= 118 ->
    case after_all([Tag, 88, 90], Name) of
        error -> bad(Control);
        _ -> late
    end;
down(_, _Own, Control) ->
    bad(Control).

bad(Control) -> {error, {bad_control, shown(Control)}}.

%% What follows after terms of these kinds.
after_all([], Rest) -> Rest;
after_all([Tag | Tags], <<Tag, _/binary>> = Terms) -> after_all(Tags, skip(Terms));
after_all(_, _) -> error.

%% What follows after a term: a small number, a pid, a reference, a short atom, a large
%% number, a long atom, and those with a long atom in them.
-spec skip(binary()) -> binary() | error.
skip(<<97, _, Rest/binary>>) -> Rest;
skip(<<88, 119, Size, _:Size/binary, _:96, Rest/binary>>) -> Rest;
skip(<<90, Words:16, 119, Size, _:Size/binary, _:32, _:Words/binary-unit:32, Rest/binary>>) when Words =< 5 -> Rest;
skip(<<119, Size, _:Size/binary, Rest/binary>>) -> Rest;
skip(<<98, _:32, Rest/binary>>) -> Rest;
skip(<<110, Size, _, _:Size/binary, Rest/binary>>) -> Rest;
skip(<<118, Size:16, _:Size/binary, Rest/binary>>) -> Rest;
skip(<<88, 118, Size:16, _:Size/binary, _:96, Rest/binary>>) -> Rest;
skip(<<90, Words:16, 118, Size:16, _:Size/binary, _:32, _:Words/binary-unit:32, Rest/binary>>) when Words =< 5 -> Rest;
skip(_) -> error.

%% The packet's first bytes.
head([Piece | Pieces], Left) when byte_size(Piece) < Left ->
    [Piece | head(Pieces, Left - byte_size(Piece))];
head([Piece | _], Left) ->
    [binary:part(Piece, 0, Left)];
head([], _Left) ->
    [].

%% A copy, so that an error report does not hold a large message.
shown(Bytes) -> binary:copy(binary:part(Bytes, 0, min(byte_size(Bytes), ?SHOWN))).
