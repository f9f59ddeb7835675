%% SPDX-License-Identifier: Apache-2.0
%% @doc A doped client: what a client of the instant messenger does that talks by itself, as in the
%% paper's traffic. Pure: events and the time come in, effects come out; chance is drawn from a seed.
%%
%% A conversation belongs to two clients. The first one is told to begin it. In a *dialogue* each
%% message that comes is answered after some time to think, by one message, which says how many are
%% left; so does the first message come after some time to think. With a window of W, W such
%% chains go on at once. Whoever gets the last of the last chain finishes the conversation. In a
%% *monologue* the first client says what it is told to say, when it is told, and nobody answers.
%%
%% A body is text: the generator, the number of the conversation, that of the message, how many are
%% left (`-' in a monologue), and 1 to 75 letters, as in `3.12.7.30 hsoekq'.
%%
%% What it sends of a monologue has times: when it was to be said, and not when there was room for
%% it. What waits for room is bounded.
-module(im_doped_core).

-export([new/3, event/3, body/4, read/1]).

-export_type([doped/0, settings/0, event/0, effect/0, report/0, left/0]).

-type settings() :: #{
    %% From the one to the other, in milliseconds, all equally likely; of the paper 1,000 to 20,000.
    think_ms := {non_neg_integer(), non_neg_integer()},
    %% Chains of a dialogue; messages of a monologue that the peer may not have got yet.
    window := pos_integer()
}.

-type client() :: im_history_side:client().
-type conversation() :: im_history_side:conversation().

-type left() :: non_neg_integer() | monologue.

-type event() ::
    %% So many messages in each chain; or none before it is told.
    {converse, conversation(), Peer :: client(), pos_integer() | monologue}
    %% Of a monologue, one that was to be said at that time.
    | {speak, Peer :: client(), conversation(), IntendedUs :: integer()}
    | {next, Peer :: client(), conversation(), Left :: non_neg_integer()}
    %% Nothing more is said; and then all that it began is finished.
    | stop
    | finish
    %% What is still open is told as it is.
    | drained
    %% Those of `im_client'.
    | tuple().

-type effect() ::
    {chat, Peer :: client()}
    | {say, Peer :: client(), Number :: pos_integer(), Body :: binary()}
    | {finish, Peer :: client()}
    | {later, Ms :: non_neg_integer(), event()}
    %% For the counters.
    | sent
    | received
    | {delivered, conversation(), Peer :: client(), Number :: pos_integer(), Us :: non_neg_integer()}
    %% Never said, since too much was waiting.
    | shed
    | {report, report()}.

-type report() ::
    logged_in
    | login_refused
    %% It can be spoken in.
    | {open, conversation(), Peer :: client()}
    %% `mine': it began it.
    | {ended, conversation(), mine | other, im_history_side:side(), Reason :: atom()}
    | {not_begun, conversation(), Reason :: term()}
    | {connection, lost | back}.

-record(talk, {
    id :: conversation(),
    is_mine :: boolean(),
    %% Until the session is there: what was told to begin.
    opening = none :: none | pos_integer() | monologue,
    chains = 0 :: non_neg_integer(),
    side :: im_history_side:side(),
    %% Since when each that was said and not delivered counts, the oldest first.
    since = queue:new() :: queue:queue({Number :: pos_integer(), Us :: integer()}),
    %% Intended times of what waits for room.
    waiting = queue:new() :: queue:queue(integer())
}).

-record(doped, {
    name :: client(),
    settings :: settings(),
    rand :: rand:state(),
    talks = #{} :: #{client() => #talk{}},
    is_stopped = false :: boolean()
}).

-opaque doped() :: #doped{}.

-define(WAITING_MAX, 10000).
-define(TEXT_MAX, 75).
%% 26 to the power of 12: less than the 58 bits of a random number.
-define(DOZEN, 95428956661682176).

%% @doc A client that is in no conversation.
-spec new(client(), settings(), Seed :: term()) -> doped().
new(Name, Settings, Seed) ->
    #doped{name = Name, settings = Settings, rand = rand:seed_s(exsss, erlang:phash2({Seed, Name}))}.

%% @doc Something happens at that time, in microseconds.
-spec event(event(), NowUs :: integer(), doped()) -> {[effect()], doped()}.
event({message, Peer, _, Body, _}, Now, Doped) ->
    case read(Body) of
        {Id, N, Left} -> told(Id, N, Left, Body, Peer, Now, Doped);
        %% Someone else talks with it.
        error -> {[], Doped}
    end;
event({accepted, Peer, UpTo}, _Now, Doped) ->
    with(Peer, Doped, fun(#talk{side = Side} = Talk) ->
        {[], Talk#talk{side = im_history_side:accepted(UpTo, Side)}}
    end);
event({delivered, Peer, UpTo}, Now, Doped) ->
    with(Peer, Doped, fun(Talk) -> delivered(UpTo, Peer, Now, Talk) end);
event({next, Peer, Id, Left}, Now, #doped{is_stopped = false} = Doped) ->
    say(Peer, Id, Left, Now, Doped);
event({next, _, _, _}, _Now, Doped) ->
    {[], Doped};
event({speak, Peer, Id, Intended}, _Now, #doped{settings = #{window := Window}} = Doped) ->
    case Doped of
        #doped{is_stopped = false, talks = #{Peer := #talk{id = Id, side = Side, waiting = Waiting} = Talk}} ->
            case im_history_side:waiting(Side) < Window of
                true -> say(Peer, Id, monologue, Intended, Doped);
                false ->
                    case queue:len(Waiting) < ?WAITING_MAX of
                        true -> {[], put_talk(Peer, Talk#talk{waiting = queue:in(Intended, Waiting)}, Doped)};
                        false -> {[shed], Doped}
                    end
            end;
        #doped{} ->
            {[shed], Doped}
    end;
event({converse, Id, Peer, Length}, _Now, #doped{talks = Talks, is_stopped = Stopped} = Doped) ->
    case is_map_key(Peer, Talks) orelse Stopped of
        true -> {[{report, {not_begun, Id, busy}}], Doped};
        false -> {[{chat, Peer}], put_talk(Peer, talk(Id, true, Length, Peer, Doped), Doped)}
    end;
event({session, Peer, _Presence}, _Now, Doped) ->
    opened(Peer, Doped);
event({ended, Peer, Reason}, _Now, #doped{talks = Talks} = Doped) ->
    case maps:take(Peer, Talks) of
        {Talk, Others} -> {[{report, ended(Reason, Talk)}], Doped#doped{talks = Others}};
        error -> {[], Doped}
    end;
event({refused, Peer, none, Reason}, _Now, #doped{talks = Talks} = Doped) ->
    case maps:take(Peer, Talks) of
        {#talk{id = Id}, Others} -> {[{report, {not_begun, Id, Reason}}], Doped#doped{talks = Others}};
        error -> {[], Doped}
    end;
%% It is sent again.
event({refused, _Peer, _N, full}, _Now, Doped) ->
    {[], Doped};
event({refused, Peer, N, _Reason}, _Now, Doped) ->
    refused(Peer, N, Doped);
event(stop, _Now, #doped{talks = Talks} = Doped) ->
    Shed = lists:sum([queue:len(Waiting) || #talk{waiting = Waiting} <- maps:values(Talks)]),
    Silent = maps:map(fun(_, Talk) -> Talk#talk{waiting = queue:new()} end, Talks),
    {lists:duplicate(Shed, shed), Doped#doped{is_stopped = true, talks = Silent}};
event(finish, _Now, #doped{talks = Talks} = Doped) ->
    {[{finish, Peer} || {Peer, #talk{is_mine = true}} <- maps:to_list(Talks)], Doped};
event(drained, _Now, #doped{talks = Talks} = Doped) ->
    {[{report, ended(drained, Talk)} || Talk <- maps:values(Talks)], Doped#doped{talks = #{}}};
event({logged_in, _}, _Now, Doped) ->
    {[{report, logged_in}], Doped};
event({login_refused, _}, _Now, Doped) ->
    {[{report, login_refused}], Doped};
event({connection, _} = Report, _Now, Doped) ->
    {[{report, Report}], Doped};
event({presence, _, _}, _Now, Doped) ->
    {[], Doped};
event(logged_out, _Now, Doped) ->
    {[], Doped}.

talk(Id, IsMine, Opening, Peer, #doped{name = Name}) ->
    #talk{id = Id, is_mine = IsMine, opening = Opening, side = im_history_side:new(Id, Name, Peer)}.

put_talk(Peer, Talk, #doped{talks = Talks} = Doped) -> Doped#doped{talks = Talks#{Peer => Talk}}.

with(Peer, #doped{talks = Talks} = Doped, Fun) ->
    case Talks of
        #{Peer := Talk0} ->
            case Fun(Talk0) of
                {Effects, Talk} -> {Effects, Doped#doped{talks = Talks#{Peer := Talk}}};
                {Effects, Talk, room} -> room(Effects, Peer, Doped#doped{talks = Talks#{Peer := Talk}})
            end;
        #{} ->
            {[], Doped}
    end.

ended(Reason, #talk{id = Id, is_mine = IsMine, side = Side}) ->
    {ended, Id, case IsMine of true -> mine; false -> other end, Side, Reason}.

%% The session is there.
opened(Peer, #doped{talks = Talks, settings = #{window := Window}} = Doped) ->
    case Talks of
        #{Peer := #talk{id = Id, opening = monologue} = Talk} ->
            {[{report, {open, Id, Peer}}], put_talk(Peer, Talk#talk{opening = none}, Doped)};
        #{Peer := #talk{id = Id, opening = Length} = Talk} when is_integer(Length) ->
            lists:mapfoldl(
                fun(_, D) -> thought({next, Peer, Id, Length - 1}, D) end,
                put_talk(Peer, Talk#talk{opening = none}, Doped),
                lists:seq(1, Window)
            );
        #{} ->
            {[], Doped}
    end.

%% What is done when there was some time to think.
thought(Event, #doped{settings = #{think_ms := {Min, Max}}, rand = Rand0} = Doped) ->
    {X, Rand} = rand:uniform_s(Max - Min + 1, Rand0),
    {{later, Min + X - 1, Event}, Doped#doped{rand = Rand}}.

%% What the peer has said.
told(Id, N, Left, Body, Peer, Now, #doped{talks = Talks} = Doped) ->
    case Talks of
        #{Peer := #talk{id = Id, side = Side} = Talk} ->
            answer(Id, Left, Peer, Now, put_talk(Peer, Talk#talk{side = im_history_side:told(N, Body, Side)}, Doped));
        #{Peer := Before} ->
            %% The messenger has gone on to another conversation, and has not said that this one has ended.
            {Effects, Next} = told(Id, N, Left, Body, Peer, Now, Doped#doped{talks = maps:remove(Peer, Talks)}),
            {[{report, ended(replaced, Before)} | Effects], Next};
        #{} ->
            told(Id, N, Left, Body, Peer, Now, put_talk(Peer, talk(Id, false, none, Peer, Doped), Doped))
    end.

answer(_Id, Left, _Peer, _Now, #doped{is_stopped = Stopped} = Doped) when Stopped; Left =:= monologue ->
    {[received], Doped};
answer(_Id, 0, Peer, _Now, Doped) ->
    {Effects, Next} = chain_ended(Peer, Doped),
    {[received | Effects], Next};
answer(Id, Left, Peer, Now, #doped{settings = #{think_ms := {0, 0}}} = Doped) ->
    {Effects, Next} = say(Peer, Id, Left - 1, Now, Doped),
    {[received | Effects], Next};
answer(Id, Left, Peer, _Now, Doped) ->
    {Later, Next} = thought({next, Peer, Id, Left - 1}, Doped),
    {[received, Later], Next}.

%% All have the same length, so the last of each comes to the same client.
chain_ended(Peer, #doped{settings = #{window := Window}, talks = Talks} = Doped) ->
    #{Peer := #talk{chains = Chains} = Talk} = Talks,
    {[{finish, Peer} || Chains + 1 =:= Window], put_talk(Peer, Talk#talk{chains = Chains + 1}, Doped)}.

say(Peer, Id, Left, Since, #doped{talks = Talks, rand = Rand0} = Doped) ->
    case Talks of
        #{Peer := #talk{id = Id, side = #{said := Said} = Side, since = Queue} = Talk} ->
            N = Said + 1,
            {Text, Rand} = text(Rand0),
            Body = body(Id, N, Left, Text),
            Next = Talk#talk{side = im_history_side:said(Body, Side), since = queue:in({N, Since}, Queue)},
            {[{say, Peer, N, Body}, sent], Doped#doped{talks = Talks#{Peer := Next}, rand = Rand}};
        #{} ->
            %% It has ended while the client was thinking.
            {[], Doped}
    end.

delivered(UpTo, Peer, Now, #talk{id = Id, side = Side, since = Since0, waiting = Waiting} = Talk) ->
    {Effects, Since} = taken(UpTo, Now, Id, Peer, Since0, []),
    Next = Talk#talk{side = im_history_side:delivered(UpTo, Side), since = Since},
    case queue:is_empty(Waiting) of
        true -> {Effects, Next};
        false -> {Effects, Next, room}
    end.

taken(UpTo, Now, Id, Peer, Since, Effects) ->
    case queue:peek(Since) of
        {value, {N, Us}} when N =< UpTo ->
            taken(UpTo, Now, Id, Peer, queue:drop(Since), [{delivered, Id, Peer, N, max(0, Now - Us)} | Effects]);
        _ ->
            {lists:reverse(Effects), Since}
    end.

%% Says what waits, as far as there is room.
room(Effects, Peer, #doped{talks = Talks, settings = #{window := Window}} = Doped) ->
    #{Peer := #talk{id = Id, side = Side, waiting = Waiting} = Talk} = Talks,
    case im_history_side:waiting(Side) < Window andalso queue:out(Waiting) of
        {{value, Intended}, Rest} ->
            {More, Next} = say(Peer, Id, monologue, Intended, put_talk(Peer, Talk#talk{waiting = Rest}, Doped)),
            room(Effects ++ More, Peer, Next);
        _ ->
            {Effects, Doped}
    end.

%% Its chain has ended there.
refused(Peer, N, #doped{talks = Talks} = Doped) ->
    case Talks of
        #{Peer := #talk{side = Side, since = Since} = Talk} ->
            Without = queue:filter(fun({M, _}) -> M =/= N end, Since),
            chain_ended(Peer, put_talk(Peer, Talk#talk{side = im_history_side:refused(N, Side), since = Without}, Doped));
        #{} ->
            {[], Doped}
    end.

%% @doc What is said.
-spec body(conversation(), pos_integer(), left(), Text :: binary()) -> binary().
body({Generator, Number}, N, Left, Text) ->
    <<
        (integer_to_binary(Generator))/binary, $., (integer_to_binary(Number))/binary, $.,
        (integer_to_binary(N))/binary, $., (left(Left))/binary, $\s, Text/binary
    >>.

left(monologue) -> <<"-">>;
left(Left) -> integer_to_binary(Left).

%% @doc The numbers in a body.
-spec read(binary()) -> {conversation(), pos_integer(), left()} | error.
read(Body) ->
    case number(Body) of
        {Generator, <<$., Rest1/binary>>} ->
            case number(Rest1) of
                {Number, <<$., Rest2/binary>>} ->
                    case number(Rest2) of
                        {N, <<$., Rest3/binary>>} when N > 0 -> read_left({Generator, Number}, N, Rest3);
                        _ -> error
                    end;
                _ -> error
            end;
        _ -> error
    end.

read_left(Id, N, <<"- ", _/binary>>) -> {Id, N, monologue};
read_left(Id, N, Rest) ->
    case number(Rest) of
        {Left, <<$\s, _/binary>>} -> {Id, N, Left};
        _ -> error
    end.

number(<<D, Rest/binary>>) when D >= $0, D =< $9 -> digits(Rest, D - $0);
number(_) -> error.

digits(<<D, Rest/binary>>, N) when D >= $0, D =< $9 -> digits(Rest, 10 * N + D - $0);
digits(Rest, N) -> {N, Rest}.

%% Lower-case letters, each length and each letter equally likely. One number has a dozen of them.
text(Rand0) ->
    {Length, Rand} = rand:uniform_s(?TEXT_MAX, Rand0),
    text(Length, <<>>, Rand).

text(0, Text, Rand) ->
    {Text, Rand};
text(Length, Text, Rand0) ->
    {X, Rand} = rand:uniform_s(?DOZEN, Rand0),
    Letters = min(12, Length),
    text(Length - Letters, letters(Letters, X - 1, Text), Rand).

letters(0, _X, Text) -> Text;
letters(N, X, Text) -> letters(N - 1, X div 26, <<Text/binary, ($a + X rem 26)>>).
