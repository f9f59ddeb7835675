%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc In which version of a protocol this node speaks with each of its peers. Data only.
%%
%% A protocol says which versions of its messages it reads and writes, from the oldest to the
%% newest ({@link atoll_protocol}). Two ends speak the newest that both have. Each message travels
%% with a number, its envelope: the version that it is in, and the versions of its sender. So
%% nothing is agreed in turns, and nobody waits:
%% <ul>
%% <li>Who knows nothing of a peer speaks its own oldest version. A node that has more than one
%%   says so before its first words, in a hello of its own, which asks for the same. As the order
%%   of a connection is kept, whose words come without a hello has nothing but version 1.</li>
%% <li>A hello that asks is answered with one that does not. Each end says hello once for a
%%   connection, after its own start: where one was lost because the other end was being started,
%%   that one's own follows. Who goes on in a version that is not read is told again, ever
%%   more seldom: it may have forgotten, or be one of the first releases.</li>
%% <li>What was said before the first word of the peer, in a version that it turns out not to
%%   read, is said again in one that it does, in its order: ?HELD messages at most.</li>
%% <li>With a peer that has no version in common nothing is said; it is `apart' until the
%%   connection ends, or the peer says that it has other versions.</li>
%% </ul>
%% A message of version 1 to who has nothing else, or may have, is in the envelope 1: that is how
%% the first releases wrote, which drop what has a larger number. A protocol that has version 1
%% alone never says hello by itself, and nothing is kept of those who say none.
%%
%% Not promised: what was said to a peer whose process was being started is lost, as ever; and a
%% hello that was lost so may have a peer that reads no version 1 held to be apart, until it has
%% answered.
-module(atoll_versions).

-export([new/2, out/3, in/3, untold/2, down/2, peers/1, own/1]).
-export([format/2]).

-export_type([version/0, range/0, theirs/0, envelope/0, effect/0, versions/0]).

-type version() :: 1..255.

-type range() :: {Oldest :: version(), Newest :: version()}.

-type theirs() ::
    range()
    %% Its envelopes cannot be read: they are of a release to come.
    | newer.

-type envelope() :: pos_integer().
%% 1, or from the lowest byte on: the version of the message, 0 for a hello; the sender's oldest
%% and newest version; 1 if the sender asks for a hello.

-type effect() ::
    %% Send the message to the peer, written in that version.
    {put, node(), envelope(), version(), Message :: term()}
    %% Send the envelope, with nothing in it. What follows makes sense after it alone.
    | {hello, node(), envelope()}
    %% It has no version in common with this node, from now on.
    | {apart, node(), theirs()}
    %% It has one, other than was said.
    | {together, node()}.

-record(peer, {
    theirs = unknown :: unknown | theirs(),
    %% Whether it was told what this node has.
    told :: boolean(),
    %% What it was sent since nothing was known of it, newest first.
    held = [] :: [Message :: term()],
    %% Messages that could not be read since its last hello.
    unread = 0 :: non_neg_integer()
}).

-record(versions, {
    own :: range(),
    %% Those of whom something is known, or who were told something.
    peers = #{} :: #{node() => #peer{}}
}).

-opaque versions() :: #versions{}.

-define(HELD, 16).
-define(ASKS, (1 bsl 24)).

%% @doc Of a protocol on the node Self, which has these versions.
-spec new(node(), range()) -> versions().
new(Self, {Oldest, Newest} = Own) when
    is_integer(Oldest), is_integer(Newest), 1 =< Oldest, Oldest =< Newest, Newest =< 255
->
    Versions = #versions{own = Own},
    keep(Self, (peer(Self, Versions))#peer{theirs = Own, told = true}, Versions).

%% @doc The versions of this node.
-spec own(versions()) -> range().
own(#versions{own = Own}) -> Own.

%% @doc What there is to send for a message to a peer: nothing if it could not be read.
-spec out(node(), Message :: term(), versions()) -> {[effect()], versions()}.
out(Peer, Message, #versions{own = Own} = Versions) ->
    case peer(Peer, Versions) of
        #peer{theirs = Theirs, told = true} when Theirs =/= unknown ->
            {put(Peer, Message, speaks(Theirs, Own)), Versions};
        #peer{theirs = Theirs} = State ->
            {Hello, Told} = tell(Peer, ?ASKS, State, Versions),
            {Hello ++ put(Peer, Message, speaks(Theirs, Own)), keep(Peer, hold(Message, Told, Own), Versions)}
    end.

put(Peer, Message, {Envelope, Version}) -> [{put, Peer, Envelope, Version, Message}];
put(_Peer, _Message, none) -> [].

%% @doc What an envelope from a peer says: in which version to read what is in it, that it is a
%% hello, or that it is in none that this node has; and what is to be done before that is read.
-spec in(node(), envelope(), versions()) -> {{read, version()} | hello | unread, [effect()], versions()}.
in(Peer, Envelope, #versions{own = {Oldest, Newest}} = Versions) ->
    State = peer(Peer, Versions),
    {Version, Theirs, Asks} = open(Envelope, State),
    {Learned, Known} = learn(Peer, Theirs, State, Versions),
    Reading =
        if
            Version =:= hello -> hello;
            Oldest =< Version, Version =< Newest -> {read, Version};
            true -> unread
        end,
    {Hello, Told} =
        case {Asks, Reading} of
            %% It may be another life of the process that was told before.
            {true, _} -> tell(Peer, 0, Known#peer{told = false, unread = 0}, Versions);
            {false, hello} -> tell(Peer, 0, Known#peer{unread = 0}, Versions);
            {false, unread} -> tell(Peer, 0, again(Known), Versions);
            {false, _} -> tell(Peer, 0, Known, Versions);
            {unknown, unread} -> tell(Peer, ?ASKS, again(Known), Versions);
            {unknown, _} -> tell(Peer, ?ASKS, Known, Versions)
        end,
    {Reading, Hello ++ Learned, keep(Peer, Told, Versions)}.

%% It does not know what this node has: it may have forgotten, or hold it for what it was before,
%% or be unable to read a hello. It is told after the first message, the second, the fourth, and so on.
again(#peer{unread = N} = State) when N band (N + 1) =:= 0 -> State#peer{told = false, unread = N + 1};
again(#peer{unread = N} = State) -> State#peer{unread = N + 1}.

%% @doc It did not get the hello that it was sent.
-spec untold(node(), versions()) -> versions().
untold(Peer, Versions) ->
    keep(Peer, (peer(Peer, Versions))#peer{told = false, held = []}, Versions).

%% @doc The connection is gone: who is there next may be of another release.
-spec down(node(), versions()) -> versions().
down(Peer, #versions{peers = Peers} = Versions) ->
    Versions#versions{peers = maps:remove(Peer, Peers)}.

%% @doc In which version this node speaks with whom; of whom nothing is known is not in it.
-spec peers(versions()) -> #{node() => version() | {none, theirs()}}.
peers(#versions{own = Own, peers = Peers}) ->
    maps:filtermap(
        fun
            (_, #peer{theirs = unknown}) ->
                false;
            (_, #peer{theirs = Theirs}) ->
                case speaks(Theirs, Own) of
                    none -> {true, {none, Theirs}};
                    {_, Version} -> {true, Version}
                end
        end,
        Peers
    ).

%% @doc One sentence on two that have no version in common.
-spec format(theirs(), Ours :: range()) -> unicode:chardata().
format(newer, Ours) ->
    ["the peer is too new: this node has ", text(Ours), " of this protocol, and cannot read which ones the peer has"];
format({_, Newest} = Theirs, {Oldest, _} = Ours) ->
    Is = case Newest < Oldest of true -> "old"; false -> "new" end,
    ["the peer is too ", Is, ": this node has ", text(Ours), " of this protocol, and the peer ", text(Theirs)].

text({Only, Only}) -> io_lib:format("version ~b", [Only]);
text({Oldest, Newest}) -> io_lib:format("versions ~b to ~b", [Oldest, Newest]).

learn(_Peer, Theirs, #peer{theirs = Theirs} = State, _Versions) ->
    {[], State};
learn(Peer, Theirs, #peer{theirs = Before, held = Held} = State, #versions{own = Own}) ->
    Effects =
        case {speaks(Before, Own), speaks(Theirs, Own)} of
            {none, none} -> [];
            {_, none} -> [{apart, Peer, Theirs}];
            {none, _} -> [{together, Peer}];
            {_, Speaks} -> [Put || not reads_oldest(Theirs, Own), M <- lists:reverse(Held), Put <- put(Peer, M, Speaks)]
        end,
    {Effects, State#peer{theirs = Theirs, held = []}}.

reads_oldest({Theirs, _}, {Own, _}) -> Theirs =< Own.

%% The envelope for the peer and the version that goes in it.
speaks(newer, _Own) -> none;
speaks(unknown, {Oldest, _} = Own) -> {envelope(Oldest, Own), Oldest};
speaks({TheirOldest, TheirNewest}, {Oldest, Newest} = Own) ->
    case min(TheirNewest, Newest) of
        Version when Version >= Oldest, Version >= TheirOldest -> {envelope(Version, Own), Version};
        _ -> none
    end.

%% Where two agree on 1, one of them has nothing else, or is not known yet.
envelope(1, _Own) -> 1;
envelope(Version, {Oldest, Newest}) -> (Newest bsl 16) bor (Oldest bsl 8) bor Version.

%% The version of what is in it, the versions of its sender, and whether that asks for those of
%% this node, as far as it says so.
open(1, #peer{theirs = unknown}) ->
    {1, {1, 1}, unknown};
open(1, #peer{theirs = Theirs}) ->
    %% It has said more of itself, and this was on its way.
    {1, Theirs, unknown};
open(Envelope, _State) when Envelope < 2 * ?ASKS ->
    <<Asks:8, Newest, Oldest, Version>> = <<Envelope:32>>,
    case 1 =< Oldest andalso Oldest =< Newest of
        true when Version =:= 0 -> {hello, {Oldest, Newest}, Asks =:= 1};
        true when Oldest =< Version, Version =< Newest -> {Version, {Oldest, Newest}, Asks =:= 1};
        _ -> {newer, newer, unknown}
    end;
open(_Envelope, _State) ->
    {newer, newer, unknown}.

tell(_Peer, _Asks, #peer{told = true} = State, _Versions) ->
    {[], State};
tell(Peer, Asks, State, #versions{own = Own}) ->
    {[{hello, Peer, Asks bor envelope(0, Own)}], State#peer{told = true}}.

hold(Message, #peer{theirs = unknown, held = Held} = State, {Oldest, Newest}) when Oldest < Newest, length(Held) < ?HELD ->
    State#peer{held = [Message | Held]};
hold(_Message, State, _Own) ->
    State.

peer(Peer, #versions{peers = Peers} = Versions) ->
    case Peers of
        #{Peer := State} -> State;
        #{} -> unheard(Versions)
    end.

%% Who has version 1 alone need not say so.
unheard(#versions{own = Own}) -> #peer{told = Own =:= {1, 1}}.

keep(Peer, State, #versions{own = Own, peers = Peers} = Versions) ->
    case State =:= unheard(Versions) orelse {Own, State} =:= {{1, 1}, #peer{theirs = {1, 1}, told = true}} of
        true when is_map_key(Peer, Peers) -> Versions#versions{peers = maps:remove(Peer, Peers)};
        true -> Versions;
        false -> Versions#versions{peers = Peers#{Peer => State}}
    end.
