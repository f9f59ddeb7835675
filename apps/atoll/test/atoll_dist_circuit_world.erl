%% SPDX-License-Identifier: Apache-2.0
%% A little world of nodes for circuits: relays and ends in virtual time, with links that
%% take their time, are cut and lose what is on them, trunks that block, nodes that are
%% killed or stand still, and receivers that are slow. Time is in microseconds.
%%
%% Every packet has a number and a size that tell whether it is the right one. What went
%% wrong is collected in `wrong'; a relay's memory is weighed by adding up all binaries in
%% its state, and what its trunks have not sent.
-module(atoll_dist_circuit_world).

-export([new/1, link/4, cut/3, mend/3, kill/2, start/2, freeze/2, thaw/2, block/3, unblock/3]).
-export([circuit/4, circuit/5, push/4, push/3, close/3, better/3, inject/4, spoil/2, run/2, run_for/2]).
-export([now_us/1, wrong/1, got/2, ended/2, notices/2, figures/2, relay/2, ends/1, state/2, peak/2, pauses/2, stamps/2]).

-define(RATE, 500).

%% Names of nodes are binaries. An end is {Node, Id}.

new(Options) ->
    #{
        now => 0, seq => 0, queue => gb_trees:empty(), links => #{}, nodes => #{}, ends => #{}, timers => #{},
        relay => maps:get(relay, Options, #{}), circuit => maps:get(circuit, Options, #{}),
        %% How long an end's user takes for a packet.
        consume => maps:get(consume, Options, #{}),
        %% Changes what goes over a link.
        spoil => none,
        max_hops => maps:get(max_hops, Options, 5),
        %% Whether a path that is asked for is one of the shortest.
        shortest => maps:get(shortest, Options, true),
        %% Whether it may be one that is no more, as of a directory that has not heard of that.
        behind => maps:get(behind, Options, false),
        %% How much later than others a frame may be that may be overtaken.
        spread => maps:get(spread, Options, 0),
        %% What a link takes.
        delay => maps:get(delay, Options, 50),
        wrong => [], steps => 0, peaks => #{}
    }.

now_us(#{now := Now}) -> Now.
wrong(#{wrong := Wrong}) -> lists:usort(Wrong).
ends(#{ends := Ends}) -> maps:keys(Ends).

%% Nodes and links

start(Name, #{nodes := Nodes, relay := Config, links := Links, now := Now} = W) ->
    {Relay, []} = atoll_dist_relay:init(Config#{name => Name}, Now div 1000),
    W1 = W#{nodes := Nodes#{Name => #{relay => Relay, frozen => false, deferred => []}}},
    lists:foldl(fun({A, B}, Acc) -> up(A, B, Acc) end, W1, [{A, B} || {A, B, via} <- lists:sort(maps:keys(Links)), A =:= Name orelse B =:= Name]).

%% A connection of both, with a delay; `via' is that of the nodes, `own' one of a circuit.
link(A, B, Kind, #{links := Links, delay := Delay} = W) ->
    New = #{up => false, gen => 0, delay => Delay, busy => 0, blocked => false, waiting => []},
    up(A, B, Kind, up(B, A, Kind, W#{links := Links#{{A, B, Kind} => New, {B, A, Kind} => New}})).

up(A, B, W) -> up(A, B, via, W).

up(A, B, Kind, #{links := Links, nodes := Nodes} = W) ->
    case Links of
        #{{A, B, Kind} := #{up := false} = L} when is_map_key(A, Nodes), is_map_key(B, Nodes) ->
            Up = W#{links := Links#{{A, B, Kind} := L#{up := true, busy := 0, blocked := false, waiting := []}}},
            case Kind of
                via -> node_event(A, {relay, {cast, {up, B}}}, Up);
                own -> Up
            end;
        _ -> W
    end.

mend(A, B, W0) ->
    %% Not before both have heard that the last one went.
    after_us(10000, {mend, A, B}, W0).

cut(A, B, #{links := Links} = W) ->
    lists:foldl(
        fun(Key, Acc) ->
            case Links of
                #{Key := #{up := true}} -> down(Key, Acc);
                _ -> Acc
            end
        end,
        W,
        [{X, Y, Kind} || {X, Y} <- [{A, B}, {B, A}], Kind <- [via, own]]
    ).

down({A, B, Kind} = Key, #{links := Links} = W) ->
    #{Key := #{gen := Gen} = L} = Links,
    after_us(1000, {node, A, {down, Kind, B}}, W#{links := Links#{Key := L#{up := false, gen := Gen + 1, waiting := []}}}).

kill(Name, #{links := Links, nodes := Nodes} = W) ->
    case Nodes of
        #{Name := _} ->
            Cut = lists:foldl(fun({A, B}, Acc) -> cut(A, B, Acc) end, W, [{A, B} || {A, B, via} <- maps:keys(Links), A =:= Name]),
            #{timers := Timers} = Cut,
            Cut#{nodes := maps:remove(Name, Nodes), timers := maps:filter(fun({N, Who, _}, _) -> N =/= Name orelse Who =/= relay end, Timers)};
        _ -> W
    end.

freeze(Name, #{nodes := Nodes} = W) ->
    case Nodes of
        #{Name := Node} -> W#{nodes := Nodes#{Name := Node#{frozen := true}}};
        _ -> W
    end.

thaw(Name, #{nodes := Nodes} = W) ->
    case Nodes of
        #{Name := #{deferred := Deferred} = Node} ->
            lists:foldl(
                fun(Event, Acc) -> after_us(0, Event, Acc) end,
                W#{nodes := Nodes#{Name := Node#{frozen := false, deferred := []}}},
                lists:reverse(Deferred)
            );
        _ -> W
    end.

block(A, B, #{links := Links} = W) ->
    case Links of
        #{{A, B, via} := L} -> W#{links := Links#{{A, B, via} := L#{blocked := true}}};
        _ -> W
    end.

unblock(A, B, #{links := Links} = W) ->
    case Links of
        #{{A, B, via} := #{waiting := Waiting} = L} ->
            lists:foldl(
                fun({Who, Frames, Bytes}, Acc) -> transmit({A, B, via}, Who, Frames, Bytes, Acc) end,
                W#{links := Links#{{A, B, via} := L#{blocked := false, waiting := []}}},
                lists:reverse(Waiting)
            );
        _ -> W
    end.

%% A fun of the frame, as it arrives at its next node: what it is instead, or `lost'.
spoil(Fun, W) -> W#{spoil := Fun}.

%% Circuits

circuit(From, To, Id, W) -> circuit(From, To, Id, #{}, W).

circuit(From, To, Id, Config, #{circuit := Circuit, now := Now} = W) ->
    Whole = maps:merge(maps:merge(Circuit, Config), #{id => Id, here => From, there => To, role => opener}),
    {State, Acts} = atoll_dist_circuit:init(Whole, Now div 1000),
    acts(From, {'end', Id}, Acts, add({From, Id}, State, W)).

add(End, State, #{ends := Ends} = W) ->
    New = #{state => State, pushed => 0, sizes => #{}, got => 0, expected => #{}, notices => [], last => 0, pauses => [], stamps => [], free_at => 0},
    W#{ends := Ends#{End => New}}.

push(End, Sizes, W) -> push(End, Sizes, 0, W).

%% Tag goes with the packets.
push({Node, Id} = End, Sizes, Tag, #{ends := Ends, now := Now} = W) ->
    case Ends of
        #{End := #{pushed := N, sizes := Known} = E} ->
            Numbered = lists:zip(lists:seq(N, N + length(Sizes) - 1), Sizes),
            Packets = [{Size + 20, [<<I:32, Size:32, Now:64, Tag:32>>, binary:copy(<<(I rem 251)>>, Size)]} || {I, Size} <- Numbered],
            _ = Known,
            W1 = W#{ends := Ends#{End := E#{pushed := N + length(Sizes)}}},
            node_event(Node, {'end', Id, {cast, {packets, Packets}}}, W1);
        #{} -> W
    end.

close({Node, Id}, Why, W) -> node_event(Node, {'end', Id, {cast, {close, Why}}}, W).

better({Node, Id}, [_, Next | _] = Path, W) ->
    node_event(Node, {'end', Id, {cast, {better, {via, Next}, Path}}}, W);
better({Node, Id}, {own, There}, W) ->
    node_event(Node, {'end', Id, {cast, {better, {own, There}, [Node, There]}}}, W).

%% A frame that nobody made comes from a neighbour.
inject(From, To, Frame, W) -> after_us(1, {arrive, {From, To, via}, [Frame], any}, W).

%% Time

after_us(Us, Event, #{now := Now, seq := Seq, queue := Queue} = W) ->
    W#{seq := Seq + 1, queue := gb_trees:insert({Now + Us, Seq}, Event, Queue)}.

run_for(Us, #{now := Now} = W) -> run(Now + Us, W).

run(Until, #{queue := Queue0} = W) ->
    case gb_trees:is_empty(Queue0) orelse gb_trees:smallest(Queue0) of
        {{At, _}, _} when At =< Until ->
            {{At, _}, Event, Queue} = gb_trees:take_smallest(Queue0),
            run(Until, weigh(happen(Event, W#{now := At, queue := Queue})));
        _ -> W#{now := Until}
    end.

happen({mend, A, B}, W) -> lists:foldl(fun(Kind, Acc) -> up(B, A, Kind, up(A, B, Kind, Acc)) end, W, [via, own]);
happen({node, Name, Event}, W) -> node_event(Name, Event, W);
happen({timer, Name, Who, Key, Ref} = Timer, #{timers := Timers, nodes := Nodes} = W) ->
    case {Timers, Nodes} of
        %% It may be cancelled by what comes before it.
        {_, #{Name := #{frozen := true}}} ->
            deferred(Name, Timer, W);
        {#{{Name, Who, Key} := Ref}, _} ->
            node_event(Name, timer(Who, {timeout, Key}), W#{timers := maps:remove({Name, Who, Key}, Timers)});
        _ -> W
    end;
happen({sent, Link, Who, Bytes, Gen}, #{links := Links} = W) ->
    {A, B, Kind} = Link,
    case Links of
        #{Link := #{gen := Gen}} ->
            case Who of
                relay -> node_event(A, {relay, {cast, {sent, B, Bytes}}}, W);
                {'end', Id} -> node_event(A, {'end', Id, {cast, {sent, {Kind, B}, Bytes}}}, W)
            end;
        #{} -> W
    end;
happen({arrive, Link, Frames, Gen}, #{links := Links} = W) ->
    {A, B, Kind} = Link,
    case Links of
        #{Link := #{gen := Now, up := true}} when Gen =:= Now; Gen =:= any ->
            lists:foldl(
                fun(Frame, Acc) ->
                    case spoiled(Link, Frame, Acc) of
                        lost -> Acc;
                        Arrived -> node_event(B, {frame, A, Kind, Arrived}, Acc)
                    end
                end,
                W,
                Frames
            );
        _ -> W
    end;
happen({consumed, Node, Id, N}, W) ->
    node_event(Node, {'end', Id, {cast, {consumed, N}}}, W).

spoiled(_Link, Frame, #{spoil := none}) -> Frame;
spoiled(Link, Frame, #{spoil := Fun}) -> Fun(Link, Frame).

timer(relay, Event) -> {relay, Event};
timer({'end', Id}, Event) -> {'end', Id, Event}.

node_event(Name, Event, #{nodes := Nodes} = W) ->
    case Nodes of
        #{Name := #{frozen := true}} -> deferred(Name, {node, Name, Event}, W);
        #{Name := _} -> here(Name, Event, W);
        #{} -> W
    end.

deferred(Name, Event, #{nodes := Nodes} = W) ->
    #{Name := #{deferred := Deferred} = Node} = Nodes,
    W#{nodes := Nodes#{Name := Node#{deferred := [Event | Deferred]}}}.

here(Name, {relay, Event}, #{nodes := Nodes, now := Now} = W) ->
    #{Name := #{relay := Relay0} = Node} = Nodes,
    {Relay, Acts} = atoll_dist_relay:handle(Event, Now div 1000, Relay0),
    acts(Name, relay, Acts, W#{nodes := Nodes#{Name := Node#{relay := Relay}}});
here(Name, {'end', Id, Event}, #{ends := Ends, now := Now} = W) ->
    case Ends of
        #{{Name, Id} := #{state := State0} = End} ->
            {State, Acts} = atoll_dist_circuit:handle(Event, Now div 1000, State0),
            acts(Name, {'end', Id}, Acts, W#{ends := Ends#{{Name, Id} := End#{state := State}}});
        #{} -> W
    end;
here(Name, {down, Kind, Peer}, #{ends := Ends} = W0) ->
    W = case Kind of via -> here(Name, {relay, {cast, {down, Peer}}}, W0); own -> W0 end,
    lists:foldl(fun(Id, Acc) -> here(Name, {'end', Id, {cast, {down, {Kind, Peer}}}}, Acc) end, W,
        lists:sort([Id || {N, Id} <- maps:keys(Ends), N =:= Name]));
here(Name, {frame, From, via, Frame}, W) ->
    here(Name, {relay, {cast, {frame, From, Frame}}}, W);
here(Name, {frame, From, own, Frame}, W) ->
    at_end(Name, {own, From}, Frame, W).

at_end(Name, {Kind, From} = Leg, Frame, #{ends := Ends} = W) ->
    case atoll_dist_circuit_frame:head(Frame) of
        {ok, Type, Key} ->
            case {binary:copy(atoll_dist_circuit_frame:id(Key)), Type} of
                {Id, open} when is_map_key({Name, Id}, Ends) ->
                    %% One that refused has gone; whoever comes again gets another.
                    case ended({Name, Id}, W) of
                        [{seal, missing}] -> opened(Name, Leg, Frame, W);
                        _ -> here(Name, {'end', Id, {cast, {frame, Leg, Frame}}}, W)
                    end;
                {Id, _} when is_map_key({Name, Id}, Ends) -> here(Name, {'end', Id, {cast, {frame, Leg, Frame}}}, W);
                {_, open} -> opened(Name, Leg, Frame, W);
                _ when Kind =:= via -> here(Name, {relay, {cast, {nobody, From, Frame}}}, W);
                _ -> W
            end;
        {error, _} -> W
    end.

opened(Name, Leg, Frame, #{circuit := Circuit, now := Now} = W) ->
    {ok, {open, Key, #{path := [There | _], fresh := Fresh}}} = atoll_dist_circuit_frame:parse(Frame),
    Id = binary:copy(atoll_dist_circuit_frame:id(Key)),
    case Fresh of
        true ->
            Consume = case W of #{consume := #{Name := _}} -> told; _ -> at_once end,
            Config = Circuit#{id => Id, here => Name, there => There, role => {acceptor, Leg, Frame}, consumption => Consume},
            {State, Acts} = atoll_dist_circuit:init(Config, Now div 1000),
            acts(Name, {'end', Id}, Acts, add({Name, Id}, State, W));
        false ->
            Refused = atoll_dist_circuit_frame:make({refused, Key, {Name, unknown_circuit, <<>>}}),
            {Kind, Next} = Leg,
            send({Name, Next, Kind}, relay, [Refused], 0, W)
    end.

acts(Name, Who, Acts, W) -> lists:foldl(fun(Act, Acc) -> act(Name, Who, Act, Acc) end, W, Acts).

act(Name, relay, {act, {send, To, Frames, Bytes}}, W) ->
    send({Name, To, via}, relay, Frames, Bytes, wrong_if(Bytes =/= iolist_size(Frames), {bytes, Name}, W));
act(Name, relay, {act, {here, From, Frame}}, W) ->
    at_end(Name, {via, From}, Frame, W);
act(Name, Who, {act, {send, {Kind, To}, Frame}}, W) ->
    send({Name, To, Kind}, Who, [Frame], byte_size(Frame), W);
act(Name, {'end', Id}, {act, {route, Avoid}}, #{now := Now, shortest := IsShort} = W) ->
    #{ends := #{{Name, Id} := #{there := There}}} = there(Name, Id, W),
    Answer =
        case [Route || {_, Path} = Route <- routes(Name, There, W), not lists:keymember(Path, 1, Avoid)] of
            [] -> no_route;
            [{Least, _} | _] = All ->
                Paths = [Path || {N, Path} <- All, not IsShort orelse N =:= Least],
                Path = lists:nth(1 + erlang:phash2({Now, Id}, length(Paths)), Paths),
                {route, {case Path of [_, _] -> kind(Name, There, W); _ -> via end, lists:nth(2, Path)}, Path}
        end,
    after_us(300, {node, Name, {'end', Id, {cast, Answer}}}, W);
act(Name, {'end', Id}, {act, {deliver, Packets}}, W) ->
    consume(Name, Id, length(Packets), lists:foldl(fun(P, Acc) -> delivered({Name, Id}, iolist_to_binary(P), Acc) end, W, Packets));
act(Name, {'end', Id}, {notify, Notice}, #{ends := Ends} = W0) ->
    #{{Name, Id} := #{notices := Notices} = End} = Ends,
    HasEnded = [true || {ended, _} <- Notices] =/= [],
    W = wrong_if(HasEnded, {notice_after_end, Notice}, W0),
    W#{ends := Ends#{{Name, Id} := End#{notices := [Notice | Notices]}}};
act(Name, Who, {timer, Key, Ms}, #{timers := Timers, seq := Seq} = W) ->
    after_us(Ms * 1000, {timer, Name, Who, Key, Seq}, W#{timers := Timers#{{Name, Who, Key} => Seq}});
act(Name, Who, {cancel, Key}, #{timers := Timers} = W) ->
    W#{timers := maps:remove({Name, Who, Key}, Timers)}.

there(Name, Id, #{ends := Ends} = W) ->
    #{{Name, Id} := #{state := State} = E} = Ends,
    #{there := There} = element(2, State),
    W#{ends := Ends#{{Name, Id} := E#{there => There}}}.

kind(A, B, #{links := Links}) ->
    case Links of
        #{{A, B, own} := #{up := true}} -> own;
        _ -> via
    end.

%% All paths, the shortest first.
routes(From, To, #{links := Links, max_hops := Max, nodes := Nodes, behind := IsBehind}) ->
    Up = [
        {A, B}
     || {{A, B, _}, #{up := IsUp}} <- maps:to_list(Links),
        IsUp orelse (IsBehind andalso A =/= From),
        IsBehind orelse (is_map_key(A, Nodes) andalso is_map_key(B, Nodes))
    ],
    lists:usort([{length(P), P} || P <- paths(From, To, Max, lists:usort(Up), [From])]).

paths(To, To, _Max, _Up, Seen) -> [lists:reverse(Seen)];
paths(_From, _To, 0, _Up, _Seen) -> [];
paths(From, To, Max, Up, Seen) ->
    lists:append([paths(Next, To, Max - 1, Up, [Next | Seen]) || {A, Next} <- Up, A =:= From, not lists:member(Next, Seen)]).

send({A, B, Kind} = Link, Who, Frames, Bytes, #{links := Links} = W) ->
    case Links of
        #{{A, B, Kind} := #{up := true, blocked := true, waiting := Waiting} = L} ->
            W#{links := Links#{Link := L#{waiting := [{Who, Frames, Bytes} | Waiting]}}};
        #{{A, B, Kind} := #{up := true}} -> transmit(Link, Who, Frames, Bytes, W);
        #{} -> W
    end.

transmit(Link, Who, Frames, Bytes, #{links := Links, now := Now, spread := Spread} = W) ->
    #{Link := #{busy := Busy, delay := Delay, gen := Gen} = L} = Links,
    Done = max(Now, Busy) + 2 + Bytes div ?RATE,
    W1 = W#{links := Links#{Link := L#{busy := Done}}},
    lists:foldl(
        fun(Frame, Acc) -> after_us(Done - Now + Delay + later(Frame, Spread, Acc), {arrive, Link, [Frame], Gen}, Acc) end,
        after_us(Done - Now, {sent, Link, Who, Bytes, Gen}, W1),
        Frames
    ).

later(Frame, Spread, #{seq := Seq}) ->
    case Spread > 0 andalso atoll_dist_circuit_frame:is_free(Frame) of
        true -> erlang:phash2({Seq, Spread}, Spread);
        false -> 0
    end.

delivered(End, Packet, #{ends := Ends, now := Now} = W) ->
    #{End := #{got := Got, last := Last, pauses := Pauses, stamps := Stamps} = E} = Ends,
    W1 = W#{ends := Ends#{End := E#{
        got := Got + 1, last := Now,
        pauses := case Last > 0 andalso Now - Last > 100000 of true -> [{Last, Now} | Pauses]; false -> Pauses end,
        stamps := case Packet of <<_:64, Then:64, 1:32, _/binary>> -> [Now - Then | Stamps]; _ -> Stamps end
    }}},
    case Packet of
        <<Got:32, Size:32, _:96, Fill:Size/binary>> ->
            wrong_if(Fill =/= binary:copy(<<(Got rem 251)>>, Size), {content, End, Got}, W1);
        <<Other:32, _/binary>> -> wrong_if(true, {order, End, Got, Other}, W1)
    end.

consume(Name, Id, N, #{consume := Consume, ends := Ends, now := Now} = W) ->
    case Consume of
        #{Name := Us} ->
            #{{Name, Id} := #{free_at := FreeAt} = E} = Ends,
            Free = max(FreeAt, Now) + N * Us,
            after_us(Free - Now, {consumed, Name, Id, N}, W#{ends := Ends#{{Name, Id} := E#{free_at := Free}}});
        #{} -> W
    end.

wrong_if(false, _What, W) -> W;
wrong_if(true, What, #{wrong := Wrong} = W) -> W#{wrong := [What | Wrong]}.

%% What its relays hold, now and then.
weigh(#{steps := Steps} = W) when Steps rem 64 =/= 0 -> W#{steps := Steps + 1};
weigh(#{steps := Steps, nodes := Nodes} = W) ->
    maps:fold(
        fun(Name, #{relay := Relay}, #{peaks := Peaks} = Acc) ->
            #{budget := Budget, held := Held, neighbours := Neighbours, reserved := Reserved} = atoll_dist_relay:figures(Relay),
            Bytes = bytes(Relay) + unsent(Name, Acc),
            wrong_if(
                Neighbours > 0 andalso (Bytes > Reserved + 4096 orelse Reserved > Budget orelse Held > Reserved),
                {budget, Name, Bytes, Held, Reserved, Budget},
                Acc#{peaks := Peaks#{Name => max(Bytes, maps:get(Name, Peaks, 0))}}
            )
        end,
        W#{steps := Steps + 1},
        Nodes
    ).

unsent(Name, #{links := Links}) ->
    lists:sum([Bytes || {{A, _, via}, #{waiting := Waiting}} <- maps:to_list(Links), A =:= Name, {relay, _, Bytes} <- Waiting]).

%% Of all binaries in a term.
bytes(Term) when is_binary(Term) -> byte_size(Term);
bytes([H | T]) -> bytes(H) + bytes(T);
bytes(Term) when is_tuple(Term) -> bytes(tuple_to_list(Term));
bytes(Term) when is_map(Term) -> maps:fold(fun(K, V, Acc) -> Acc + bytes(K) + bytes(V) end, 0, Term);
bytes(_) -> 0.

peak(Name, #{peaks := Peaks}) -> maps:get(Name, Peaks, 0).
got(End, #{ends := Ends}) -> #{End := #{got := Got}} = Ends, Got.
notices(End, #{ends := Ends}) -> #{End := #{notices := Notices}} = Ends, lists:reverse(Notices).
ended(End, W) -> [Why || {ended, Why} <- notices(End, W)].
figures(End, #{ends := Ends}) -> #{End := #{state := State}} = Ends, atoll_dist_circuit:figures(State).
state(End, #{ends := Ends}) -> #{End := #{state := State}} = Ends, State.
relay(Name, #{nodes := Nodes}) -> #{Name := #{relay := Relay}} = Nodes, atoll_dist_relay:figures(Relay).
pauses(End, #{ends := Ends}) -> #{End := #{pauses := Pauses}} = Ends, Pauses.
stamps(End, #{ends := Ends}) -> #{End := #{stamps := Stamps}} = Ends, lists:sort(Stamps).
