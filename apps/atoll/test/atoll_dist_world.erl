%% SPDX-License-Identifier: Apache-2.0
%% Packets of made-up senders go through a sorter, over lanes that are as slow as chance
%% will have it, and through the reading end's fence; what is delivered is compared with
%% what went in.
-module(atoll_dist_world).

-export([run/4, wrong/2, wrongly_dropped/2, pipe/3]).

-export_type([op/0, sent/0]).

-type op() ::
    %% A sender's next packet: of the message it is in the middle of, or of a new one,
    %% of so many fragments.
    {step, Sender :: 1..8, Fragments :: 1..4}
    %% A sender is killed, maybe in the middle of a message; its number in the sequences
    %% comes once more, for the news of its death by name, of so many fragments.
    | {kill, Sender :: 1..8, Fragments :: 1..4}
    %% A sender is in that channel from now on, maybe in the middle of a message.
    | {move, Sender :: 1..8, atoll_dist_named:name()}
    | none
    | late
    | take
    %% Batches are taken, and not written before `written'.
    | slow
    | written.

%% A packet that went in: its number; whose; its sequence; and what has to keep its place
%% (fence: both ways, late: it must not overtake).
-type sent() :: {
    Number :: pos_integer(),
    Sender :: pos_integer() | none,
    Sequence :: pos_integer() | none,
    Place :: any | fence | late
}.

-define(NODE, 'made@up').

%% What went in, what came out (numbers), and the sorter.
-spec run([op()], atoll_dist_lanes:count(), atoll_dist_sorter:options(), [non_neg_integer()]) ->
    {[sent()], [pos_integer()], [{atoll_dist_lanes:lane(), binary()}], atoll_dist_sorter:sorter()}.
run(Ops, N, Options0, Choices) ->
    Channels = ets:new(channels, []),
    Options = Options0#{member => fun(Key) -> case ets:lookup(Channels, Key) of [{_, Name}] -> Name; [] -> default end end},
    Start = #{number => 1, sent => [], frames => [], pids => #{}, next => 10, busy => #{}, channels => Channels, slow => []},
    {State, Sorter0} = lists:foldl(fun op/2, {Start, atoll_dist_sorter:new(?NODE, N, Options)}, Ops),
    {#{sent := Sent, frames := Frames}, Sorter} = all_taken(op(take, op(written, {State, Sorter0}))),
    true = ets:delete(Channels),
    Written = lists:reverse(Frames),
    Out = pipe(Written, N, Choices),
    {lists:reverse(Sent), [number(P) || P <- Out], Written, Sorter}.

all_taken({_, Sorter} = World) ->
    case atoll_dist_sorter:is_ready(Sorter) of
        true -> all_taken(op(take, World));
        false -> World
    end.

op(take, World) ->
    op(written, op(slow, World));
op(slow, {#{frames := Frames, slow := Slow} = State, Sorter0}) ->
    {Batches, Sorter} = atoll_dist_sorter:take(Sorter0),
    New = [{Lane, iolist_to_binary(Data)} || {Lane, Data, _, _} <- Batches],
    {State#{frames := lists:reverse(New) ++ Frames, slow := Slow ++ Batches}, Sorter};
op(written, {#{slow := Slow} = State, Sorter}) ->
    Written = fun({Lane, _, Bytes, Count}, S) -> atoll_dist_sorter:written(Lane, Bytes, Count, S) end,
    {State#{slow := []}, lists:foldl(Written, Sorter, Slow)};
op(none, World) ->
    push([<<131, 68, 0>>, <<104, 3, 97, 7, (pid(1))/binary, (pid(2))/binary>>], none, none, fence, World);
op(late, World) ->
    push([<<131, 68, 0>>, down()], none, none, late, World);
op({move, Who, Name}, {#{pids := Pids, channels := Channels}, _} = World) ->
    _ = [ets:insert(Channels, {Id, Name}) || #{Who := Id} <- [Pids]],
    World;
op({kill, Who, Fragments}, {#{pids := Pids, busy := Busy} = State, Sorter}) ->
    case Pids of
        #{Who := Id} ->
            Dead = {State#{pids := maps:remove(Who, Pids), busy := maps:remove(Who, Busy)}, Sorter},
            death(Id, Fragments, Dead);
        #{} ->
            {State, Sorter}
    end;
op({step, Who, Fragments}, {#{pids := Pids, next := Next} = State, Sorter}) when not is_map_key(Who, Pids) ->
    op({step, Who, Fragments}, {State#{pids := Pids#{Who => Next}, next := Next + 1}, Sorter});
op({step, Who, Fragments}, {#{pids := Pids, busy := Busy} = State, Sorter}) ->
    #{Who := Id} = Pids,
    Control = <<104, 3, 97, 22, (pid(Id))/binary, (pid(2))/binary>>,
    case Busy of
        #{Who := Frag} ->
            Left =
                case Frag of
                    1 -> maps:remove(Who, Busy);
                    _ -> Busy#{Who := Frag - 1}
                end,
            push([<<131, 70, Id:64, Frag:64>>], Id, Id, any, {State#{busy := Left}, Sorter});
        #{} when Fragments =:= 1 ->
            push([<<131, 68, 0>>, Control], Id, none, any, {State, Sorter});
        #{} ->
            World = {State#{busy := Busy#{Who => Fragments - 1}}, Sorter},
            push([<<131, 69, Id:64, Fragments:64, 0>>, Control], Id, Id, any, World)
    end.

death(_Id, 1, World) ->
    op(late, World);
death(Id, Fragments, World0) ->
    World = push([<<131, 69, Id:64, Fragments:64, 0>>, down()], none, Id, any, World0),
    lists:foldl(
        fun
            (1, W) -> push([<<131, 70, Id:64, 1:64>>], none, Id, fence, W);
            (Frag, W) -> push([<<131, 70, Id:64, Frag:64>>], none, Id, any, W)
        end,
        World,
        lists:seq(Fragments - 1, 1, -1)
    ).

push(Iovec0, Sender, Sequence, Place, {#{number := Number, sent := Sent} = State, Sorter0}) ->
    Iovec = Iovec0 ++ [<<Number:32>>],
    {ok, Sorter} = atoll_dist_sorter:push(iolist_size(Iovec), Iovec, Sorter0),
    {State#{number := Number + 1, sent := [{Number, Sender, Sequence, Place} | Sent]}, Sorter}.

number(Packet) ->
    <<Number:32>> = binary:part(Packet, byte_size(Packet), -4),
    Number.

down() ->
    <<104, 4, 97, 28, 119, 1, "n", (pid(2))/binary, 90, 1:16, 119, 1, "x", 1:32, 1:32>>.

pid(Id) -> <<88, 119, 7, "made@up", Id:32, 0:32, 1:32>>.

%% Frames in the order in which they are written, over lanes: chance says which lane is
%% next to be read, of those that the reader does read.
-spec pipe([{atoll_dist_lanes:lane(), binary()}], atoll_dist_lanes:count(), [non_neg_integer()]) -> [binary()].
pipe(Frames, N, Choices) ->
    Lanes = lists:foldr(
        fun({Lane, Frame}, Map) -> maps:update_with(Lane, fun(Fs) -> [Frame | Fs] end, [Frame], Map) end,
        #{},
        Frames
    ),
    Largest = lists:max([0 | [byte_size(Frame) || {_, Frame} <- Frames]]),
    arrive(Lanes, atoll_dist_fence:reader(N), Choices, N * Largest, []).

arrive(Lanes, Reader, _Choices, _Max, Out) when map_size(Lanes) =:= 0 ->
    0 = atoll_dist_fence:held(Reader),
    lists:append(lists:append(lists:reverse(Out)));
arrive(Lanes, Reader0, Choices0, Max, Out) ->
    {Choice, Choices} = choice(Choices0),
    [_ | _] = Ready = [Lane || Lane <- lists:sort(maps:keys(Lanes)), not atoll_dist_fence:is_held(Lane, Reader0)],
    Lane = lists:nth(Choice rem length(Ready) + 1, Ready),
    #{Lane := [Frame | Frames]} = Lanes,
    {ok, Segments} = atoll_dist_frame:parse(Frame),
    {ok, Packets, Reader} = atoll_dist_fence:arrive(Lane, Segments, Reader0),
    true = atoll_dist_fence:held(Reader) =< Max,
    Left =
        case Frames of
            [] -> maps:remove(Lane, Lanes);
            _ -> Lanes#{Lane := Frames}
        end,
    arrive(Left, Reader, Choices, Max, [Packets | Out]).

choice([Choice | Choices]) -> {Choice, Choices ++ [Choice]};
choice([]) -> {0, []}.

%% What of what was dropped is wrong: it must be a message in one piece, and a newer one of
%% its sender must have come out.
-spec wrongly_dropped([sent()], [pos_integer()]) -> [term()].
wrongly_dropped(Sent, Out) ->
    [
        Packet
     || {Number, Sender, Sequence, _} = Packet <- Sent,
        not lists:member(Number, Out),
        Sequence =/= none orelse Sender =:= none orelse
            [] =:= [N || {N, Of, none, _} <- Sent, Of =:= Sender, N > Number, lists:member(N, Out)]
    ].

%% What of the promised order is broken.
-spec wrong([sent()], [pos_integer()]) -> [term()].
wrong(Sent, Out) ->
    Places = maps:from_list(lists:zip(Out, lists:seq(1, length(Out)))),
    [not_once || lists:sort(Out) =/= [Number || {Number, _, _, _} <- Sent]] ++
        [
            {Kind, First, Second}
         || {First, _, _, _} = A <- Sent,
            {Second, _, _, _} = B <- Sent,
            First < Second,
            maps:get(First, Places) > maps:get(Second, Places),
            Kind <- pair(A, B)
        ].

pair({_, Sender, _, _}, {_, Sender, _, _}) when Sender =/= none -> [sender];
pair({_, _, Sequence, _}, {_, _, Sequence, _}) when Sequence =/= none -> [sequence];
pair({_, _, _, fence}, _) -> [overtook_a_fence];
pair(_, {_, _, _, fence}) -> [fence_overtook];
pair(_, {_, _, _, late}) -> [late_overtook];
pair(_, _) -> [].
