%% SPDX-License-Identifier: Apache-2.0
%% @doc A table in two copies, on two of several peers: who has them, and what is answered when.
%% Pure: an event and the time come in, a new state and effects come out. {@link im_db} does them.
%%
%% One peer is main. It applies an operation at once, and answers it when the replica has
%% acknowledged the batch in which it was. One batch is under way, and what comes meanwhile is the next
%% one. Reads take the same way, so what they saw is on both copies. What a new replica gets first is a copy
%% of the table, behind which operations wait. Where no other peer is there, and a majority of the group's
%% nodes is, the main answers alone. With `paper' operations are answered at once, and may be lost.
%%
%% Data have a rank, the epoch of the main that they are from and the number of the last batch:
%% of two ranks the higher one has all that the other has of what was answered. A main is lost
%% when its process or the connection to it is. Then one that has data asks all peers that are there whether it
%% may be main in a new epoch. It may if none of them knows a main, has data of a higher rank, or
%% knows a higher epoch; who has agreed ignores all lower epochs from then on. It needs a
%% majority of the group's nodes too, with half of them the first. An epoch belongs to one peer, whose place
%% is part of the number.
%%
%% A peer without data begins with an empty table only if it comes first among those that are there, none of
%% these has data, and the others have been missing for five seconds.
%%
%% The replica is the first of the peers that are there. If that comes even before the main, the main
%% steps down when the replica has everything, and that one becomes main; the old one, with
%% the same rank, is its replica without another copy. An old replica keeps its data until
%% the new one is whole.
%%
%% A replica that acknowledges nothing for five seconds counts as lost, if there is a majority without its node;
%% when it is heard again it is copied to like any other peer. Until two others have copies it keeps its data.
%% Time goes on only by small steps: a process that stood still itself does not hold that against others.
%%
%% Promised: no answered operation is lost while of the two copies at most one is lost before the
%% next one is whole; at most one main in an epoch; without partitions, of all mains only the last
%% one answers.
%%
%% Not promised: what one side of a partition has answered. When the sides meet, the main of the lower
%% epoch steps down, and its data are thrown away. A main that is connected and says nothing is waited for.
%%
%% A copy is one message with the whole table: with 10,000 rows 1.7 MB for logins with a session each, and 1.8 MB
%% for sessions that keep a message of 40 bytes each. Between two nodes of a busy machine with two cores it took 8 to 20
%% ms and 13 to 32 ms; from the kill of the replica's process until there was another one, 12 to 53 ms and 31 to 129 ms.
-module(im_replica).

-export([new/2, handle/3, info/1]).

-export_type([config/0, state/0, event/0, effect/0, message/0, role/0, epoch/0, process/0, from/0]).

-type config() :: #{
    self := node(),
    %% all that may have a copy, in order of preference
    peers := [node(), ...],
    %% all nodes of the group, of which there must be a majority
    members := [node(), ...],
    %% of those, the ones that this one is connected with
    up := [node()],
    table := module(),
    limits := im_table:limits(),
    replication := acknowledged | paper,
    max_waiting := pos_integer()
}.

-type role() :: main | replica | standby.
-type epoch() :: non_neg_integer().
-type rank() :: none | {epoch(), non_neg_integer()}.
%% A pid, for whoever does the effects.
-type process() :: term().
-type from() :: term().
-type info() :: {role(), epoch(), rank()}.

-type message() ::
    %% what the sender is; the first is answered with the second, and the second to whoever is not known yet
    {hello | state, info()}
    | {claim, epoch(), rank()}
    | {grant, epoch(), rank()}
    %% of a claim, or of a copy of a main that nobody told of a higher epoch
    | {refuse, epoch(), Seen :: epoch()}
    | {copy, epoch(), non_neg_integer(), {table, Born :: epoch(), im_table:table()} | {same, rank()}}
    | {batch, epoch(), non_neg_integer(), [im_table:op()]}
    | {ack, epoch(), non_neg_integer()}
    %% data of that epoch or an earlier one are needed no more
    | {dismiss, epoch()}.

-type event() ::
    {op, from(), im_table:op()}
    | {from, node(), process(), message()}
    %% a process that was to be monitored
    | {down, process()}
    | {nodeup | nodedown, node()}
    | wake.

-type effect() ::
    %% to whichever process of that node is a peer
    {hello, node(), message()}
    | {send, process(), message()}
    | {monitor | demonitor, process()}
    | {answer, from(), im_table:reply() | {error, overloaded | no_majority} | not_main}
    %% which name this one has now
    | {role, role(), epoch()}
    %% it is main, and these nodes were lost while it was, or before; or another main has stepped down
    | {main, [node()] | handed_over, im_table:table()}
    | {wake, Ms :: pos_integer()}
    %% another main, of a higher epoch
    | {clash, node(), epoch()}.

-record(peer, {pid :: process(), role :: role(), epoch :: epoch(), rank :: rank()}).

%% A batch or a copy that is under way, and who is answered when it is acknowledged, the last one first.
-record(flight, {
    number :: pos_integer(),
    kind :: batch | copy,
    node :: node(),
    pid :: process(),
    answers :: [{from(), im_table:reply()}],
    count :: non_neg_integer(),
    %% how long it is waited for
    until :: integer()
}).

-record(state, {
    config :: config(),
    role = standby :: role(),
    %% of this main, or of this replica's
    epoch = 0 :: epoch(),
    %% the highest one that was heard of; lower ones are ignored
    seen = 0 :: epoch(),
    %% of the table, if there is one; of a main what it has sent
    rank = none :: rank(),
    table :: im_table:table() | undefined,
    %% the epoch in which these data began, empty
    born = 0 :: epoch(),
    peers = #{} :: #{node() => #peer{}},
    %% those it is connected with, and that are not silent
    up :: #{node() => []},
    %% peers that are not there, since when
    missing :: #{node() => integer()},
    %% of these the ones that it is connected with and that have said nothing yet, since when: they may have data
    strange :: #{node() => integer()},
    %% peers whose nodes were lost since somebody was told
    lost = [] :: [node()],
    %% since when no main is known
    lone = none :: none | integer(),
    %% whether the last main stepped down
    handed = false :: boolean(),
    claim = none :: none | {epoch(), Until :: integer(), Asked :: [process()]},
    %% no claim before that, as long as the one lives that has this vote
    not_before = 0 :: integer(),
    granted = none :: none | node(),
    %% The time as this one knows it, and how much it has missed of it: it goes on to the next wake and no further. Who
    %% stood still has not heard yet what was said meanwhile, and does not count others as missing for that.
    now :: integer(),
    missed = 0 :: integer(),
    wake = none :: none | integer(),
    %% Of a main: the peer that acknowledges batches, and what is under way.
    replica = none :: none | node(),
    flight = none :: none | #flight{},
    %% What was changed and not sent, and who waits for it; the last one first.
    ops = [] :: [im_table:op()],
    answers = [] :: [{from(), im_table:reply()}],
    %% how many wait, those of the flight too
    waiting = 0 :: non_neg_integer(),
    %% the rank of the data with which it became main, while they are unchanged
    inherited = none :: rank(),
    stepping = false :: boolean(),
    counters = #{ops => 0, batches => 0, copies => 0, overloaded => 0, clashes => 0, silent => 0} :: #{atom() => non_neg_integer()},
    %% effects, the last one first
    out = [] :: [effect()]
}).

-opaque state() :: #state{}.

%% How long somebody waits for peers that are not there, do not vote, or do not acknowledge.
-define(MISSING_MS, 5000).
%% How long one leaves a claim to a peer that comes first.
-define(DEFER_MS, 1000).
-define(AGAIN_MS, 50).
%% Ways to number a peer in an epoch.
-define(PLACES, 4096).

%% @doc A peer that has nothing, and asks the others what they are.
-spec new(config(), Now :: integer()) -> {state(), [effect()]}.
new(#{self := Self, peers := Peers, up := Up} = Config, Now) ->
    Others = Peers -- [Self],
    S = #state{config = Config, now = Now, up = maps:from_keys(Up -- [Self], []), missing = maps:from_keys(Others, Now),
               strange = maps:from_keys([Node || Node <- Others, lists:member(Node, Up)], Now)},
    done(settle(Now, lists:foldl(fun hello/2, S, Others))).

%% @doc What comes of an event.
-spec handle(event(), Now :: integer(), state()) -> {state(), [effect()]}.
handle(Event, Time, #state{missed = Missed, wake = Wake} = S) ->
    %% An integer comes before `none'.
    Now = min(Time - Missed, Wake),
    happens(Event, Now, S#state{now = Now, missed = Time - Now}).

happens({op, From, Op}, Now, #state{role = main, stepping = false} = S) ->
    done(op(From, Op, Now, S));
happens({op, From, _}, _, S) ->
    done(out({answer, From, not_main}, S));
%% What a main and its replica say most.
happens({from, _, Pid, {ack, Epoch, Number}}, Now, #state{epoch = Epoch, flight = #flight{pid = Pid, number = Number}} = S) ->
    done(acknowledged(Now, S));
happens({from, Node, Pid, {batch, Epoch, Number, Ops}}, _, #state{role = replica, epoch = Epoch, rank = {Epoch, Last}} = S) when Number =:= Last + 1 ->
    case S of
        #state{peers = #{Node := #peer{pid = Pid}}, table = Table, config = #{table := Module}} ->
            Next = lists:foldl(fun(Op, T) -> changed(Module:apply(Op, T), T) end, Table, Ops),
            done(out({send, Pid, {ack, Epoch, Number}}, S#state{table = Next, rank = {Epoch, Number}}));
        #state{} ->
            done(S)
    end;
happens({from, Node, Pid, {state, Info}}, Now, #state{peers = Peers} = S) when (map_get(Node, Peers))#peer.pid =:= Pid ->
    done(settle(Now, met(Node, Pid, Info, Now, S)));
happens({from, Node, Pid, {What, Info}}, Now, S) when What =:= hello; What =:= state ->
    %% Who is new too, as this one may have become something else since it said hello. First, as that one listens
    %% to nobody whom it does not know.
    done(settle(Now, met(Node, Pid, Info, Now, out({send, Pid, {state, info_of(S)}}, S))));
%% Who has not said hello is one that was, or will do so.
happens({from, Node, Pid, Message}, Now, #state{peers = Peers} = S) ->
    case Peers of
        #{Node := #peer{pid = Pid} = Peer} -> done(settle(Now, heard(Message, Node, Peer, Now, S)));
        #{} -> done(S)
    end;
happens({down, Pid}, Now, #state{peers = Peers, up = Up} = S) ->
    case [Node || {Node, #peer{pid = Of}} <- maps:to_list(Peers), Of =:= Pid] of
        [Node] when is_map_key(Node, Up) -> done(settle(Now, hello(Node, gone(Node, Now, S))));
        [Node] -> done(settle(Now, gone(Node, Now, S)));
        [] -> done(S)
    end;
happens({nodeup, Node}, Now, #state{config = #{self := Self, peers := Peers}, up = Up} = S) ->
    #state{peers = Met, strange = Strange} = Known = S#state{up = Up#{Node => []}},
    case lists:member(Node, Peers) andalso Node =/= Self of
        true when is_map_key(Node, Met) -> done(settle(Now, hello(Node, Known)));
        true -> done(settle(Now, hello(Node, Known#state{strange = Strange#{Node => Now}})));
        false -> done(settle(Now, Known))
    end;
happens({nodedown, Node}, Now, #state{config = #{peers := Peers}, up = Up, lost = Lost, strange = Strange} = S) ->
    Known = S#state{up = maps:remove(Node, Up), strange = maps:remove(Node, Strange)},
    case {lists:member(Node, Peers), S} of
        {true, #state{role = main, table = Table}} -> done(settle(Now, out({main, [Node], Table}, Known)));
        {true, #state{}} -> done(settle(Now, Known#state{lost = lists:usort([Node | Lost])}));
        {false, #state{}} -> done(settle(Now, Known))
    end;
happens(wake, Now, S) ->
    done(settle(Now, S#state{wake = none})).

done(#state{strange = Strange, wake = none} = S) when map_size(Strange) > 0 -> done(wake(S));
done(#state{out = Out} = S) -> {S#state{out = []}, lists:reverse(Out)}.

out(Effect, #state{out = Out} = S) -> S#state{out = [Effect | Out]}.

count(What, #state{counters = Counters} = S) ->
    #{What := Before} = Counters,
    S#state{counters = Counters#{What := Before + 1}}.

%% @doc What it is, and what was counted. Data that were born in another epoch than before are others: both copies of those
%% were lost.
-spec info(state()) -> #{role := role(), epoch := epoch(), born := epoch(), replica := none | node(), waiting := non_neg_integer(),
                         rank := rank(), table := im_table:table() | undefined, counters := #{atom() => non_neg_integer()}}.
info(#state{role = Role, epoch = Epoch, born = Born, replica = Replica, waiting = Waiting, rank = Rank, table = Table, counters = Counters}) ->
    #{role => Role, epoch => Epoch, born => Born, replica => Replica, waiting => Waiting, rank => Rank, table => Table, counters => Counters}.

%%% Operations

op(From, _, _, #state{waiting = Waiting, config = #{max_waiting := Max}} = S) when Waiting >= Max ->
    out({answer, From, {error, overloaded}}, count(overloaded, S));
op(From, Op, Now, #state{replica = Replica, flight = Flight} = S) ->
    %% If there were a peer to copy to, the copy were under way.
    case Replica =:= none andalso Flight =:= none andalso not may_be_alone(Now, S) of
        true -> out({answer, From, {error, no_majority}}, S);
        false -> flush(Now, applied(From, Op, S))
    end.

applied(From, Op, #state{table = Table, config = #{table := Module, replication := Replication}, ops = Ops, counters = Counters} = S) ->
    {Reply, After} = Module:apply(Op, Table),
    #{ops := Count} = Counters,
    Next = S#state{counters = Counters#{ops := Count + 1}},
    Changed = case After of
                  unchanged -> Next;
                  _ -> Next#state{table = After, ops = [Op | Ops], inherited = none}
              end,
    case Replication of
        acknowledged -> #state{answers = Answers, waiting = Waiting} = Changed,
                        Changed#state{answers = [{From, Reply} | Answers], waiting = Waiting + 1};
        paper -> #state{waiting = Waiting} = Changed,
                 out({answer, From, Reply}, Changed#state{waiting = Waiting + 1})
    end.

changed({_, unchanged}, Table) -> Table;
changed({_, Table}, _) -> Table.

%% Sends what has gathered, if nothing is under way.
flush(_, #state{waiting = 0} = S) ->
    S;
flush(Now, #state{flight = none, replica = none} = S) ->
    case may_be_alone(Now, S) of
        true -> answered(numbered(S));
        false -> wake(S)
    end;
flush(Now, #state{flight = none, replica = Node, peers = Peers, rank = {Epoch, Last}, ops = Ops, answers = Answers, waiting = Waiting} = S) ->
    #{Node := #peer{pid = Pid}} = Peers,
    Number = Last + 1,
    Flight = #flight{number = Number, kind = batch, node = Node, pid = Pid, answers = Answers, count = Waiting, until = Now + ?MISSING_MS},
    wake(count(batches, out({send, Pid, {batch, Epoch, Number, lists:reverse(Ops)}},
                            S#state{flight = Flight, rank = {Epoch, Number}, ops = [], answers = []})));
flush(_, S) ->
    S.

%% Changes that nobody was sent: no data of this rank have them.
numbered(#state{ops = []} = S) -> S;
numbered(#state{rank = {Epoch, Last}} = S) -> S#state{ops = [], rank = {Epoch, Last + 1}}.

answered(#state{answers = Answers} = S) ->
    answer(Answers, S#state{answers = [], waiting = 0}).

answer(Answers, S) ->
    lists:foldr(fun({From, Reply}, Acc) -> out({answer, From, Reply}, Acc) end, S, Answers).

acknowledged(Now, #state{flight = #flight{kind = batch, answers = Answers, count = Count}, waiting = Waiting} = S) ->
    settle(Now, answer(Answers, S#state{flight = none, waiting = Waiting - Count}));
acknowledged(Now, #state{flight = #flight{kind = copy, node = Node, answers = Answers, count = Count}, waiting = Waiting, rank = Rank, peers = Peers} = S) ->
    #{Node := Peer} = Peers,
    settle(Now, answer(Answers, S#state{
        flight = none, replica = Node, waiting = Waiting - Count, inherited = none, peers = Peers#{Node := Peer#peer{rank = Rank}}})).

%%% Peers

info_of(#state{role = main, epoch = Epoch, rank = Rank}) -> {main, Epoch, Rank};
info_of(#state{role = Role, seen = Seen, rank = Rank}) -> {Role, Seen, Rank}.

hello(Node, S) -> out({hello, Node, {hello, info_of(S)}}, S).

announce(#state{peers = Peers} = S) ->
    lists:foldl(fun(#peer{pid = Pid}, Acc) -> out({send, Pid, {state, info_of(S)}}, Acc) end, S, maps:values(Peers)).

met(Node, Pid, {Role, Epoch, Rank}, Now, #state{peers = Peers, seen = Seen, up = Up, missing = Missing, strange = Strange, config = #{peers := All, self := Self}} = S0) ->
    Peer = #peer{pid = Pid, role = Role, epoch = Epoch, rank = Rank},
    S = S0#state{seen = max(Seen, Epoch), up = Up#{Node => []}},
    case Peers of
        #{Node := #peer{pid = Pid, role = main}} when Role =/= main ->
            S#state{peers = Peers#{Node := Peer}, handed = true};
        #{Node := #peer{pid = Pid}} when Node =:= S0#state.replica, Role =/= replica ->
            without_copy(Node, S#state{peers = Peers#{Node := Peer}});
        #{Node := #peer{pid = Pid}} ->
            S#state{peers = Peers#{Node := Peer}};
        #{Node := #peer{}} ->
            met(Node, Pid, {Role, Epoch, Rank}, Now, gone(Node, Now, S));
        #{} ->
            true = Node =/= Self andalso lists:member(Node, All),
            asked_too(Pid, out({monitor, Pid}, S#state{peers = Peers#{Node => Peer}, missing = maps:remove(Node, Missing), strange = maps:remove(Node, Strange)}))
    end.

%% Who comes while votes are counted has one too.
asked_too(Pid, #state{claim = {Epoch, Until, Asked}, rank = Rank} = S) ->
    out({send, Pid, {claim, Epoch, Rank}}, S#state{claim = {Epoch, Until, [Pid | Asked]}});
asked_too(_, S) ->
    S.

gone(Node, Now, #state{peers = Peers, missing = Missing, claim = Claim, handed = Handed, granted = Granted, not_before = NotBefore} = S) ->
    {#peer{pid = Pid, role = Role}, Left} = maps:take(Node, Peers),
    Next = out({demonitor, Pid}, S#state{
        peers = Left,
        missing = Missing#{Node => Now},
        handed = Role =/= main andalso Handed,
        not_before = case Granted of Node -> Now; _ -> NotBefore end,
        claim = case Claim of {Epoch, Until, Asked} -> {Epoch, Until, lists:delete(Pid, Asked)}; none -> none end}),
    without_copy(Node, Next).

%% What it was to acknowledge has to be copied to somebody, also to a replica that is to be replaced.
without_copy(Node, #state{flight = #flight{node = Node}} = S) -> unsent(S#state{replica = none});
without_copy(Node, #state{replica = Node} = S) -> S#state{replica = none};
without_copy(_, S) -> S.

unsent(#state{flight = #flight{answers = Sent}, answers = Answers} = S) -> S#state{flight = none, answers = Answers ++ Sent};
unsent(S) -> S.

is_preferred(Node, #state{config = #{self := Self, peers := Peers}}) -> place(Node, Peers) < place(Self, Peers).

place(Node, [Node | _]) -> 0;
place(Node, [_ | Nodes]) -> 1 + place(Node, Nodes).

has_majority(#state{config = #{peers := [_]}}) ->
    true;
has_majority(#state{config = #{self := Self, members := [First | _] = Members}, up = Up}) ->
    There = [Node || Node <- Members, Node =:= Self orelse is_map_key(Node, Up)],
    case 2 * length(There) - length(Members) of
        0 -> lists:member(First, There);
        More -> More > 0
    end.

may_be_alone(Now, #state{peers = Peers} = S) -> map_size(Peers) =:= 0 andalso is_acquainted(Now, S) andalso has_majority(S).

is_acquainted(Now, #state{strange = Strange}) -> lists:all(fun(Since) -> Now - Since >= ?MISSING_MS end, maps:values(Strange)).

%%% What peers say

heard({claim, Epoch, Rank}, Node, #peer{pid = Pid} = Peer, Now, #state{role = Role, seen = Seen, rank = Own, peers = Peers} = S) ->
    Knows = Role =:= main orelse lists:any(fun(#peer{role = Of}) -> Of =:= main end, maps:values(maps:remove(Node, Peers))),
    case Knows orelse Seen >= Epoch orelse Own > Rank of
        true ->
            out({send, Pid, {refuse, Epoch, Seen}}, S);
        false ->
            Heard = S#state{seen = Epoch, claim = none, not_before = Now + ?DEFER_MS, granted = Node, peers = Peers#{Node := Peer#peer{epoch = Epoch, rank = Rank}}},
            out({send, Pid, {grant, Epoch, Own}}, Heard)
    end;
heard({grant, Epoch, Rank}, Node, #peer{pid = Pid} = Peer, _, #state{claim = {Epoch, Until, Asked}, peers = Peers} = S) ->
    S#state{claim = {Epoch, Until, lists:delete(Pid, Asked)}, peers = Peers#{Node := Peer#peer{rank = Rank}}};
heard({refuse, Epoch, Other}, _, _, Now, #state{claim = {Epoch, _, _}, seen = Seen} = S) ->
    S#state{claim = none, seen = max(Seen, Other), not_before = Now + ?AGAIN_MS};
heard({refuse, Epoch, Other}, _, #peer{pid = Pid}, Now, #state{role = main, epoch = Epoch, seen = Seen, flight = #flight{kind = copy, pid = Pid}} = S) ->
    %% It has promised a higher epoch to one that did not become main; or not the same data.
    Next = unsent(S#state{seen = max(Seen, Other), replica = none, inherited = none}),
    case Other > Epoch of
        true -> reign(next_epoch(Now, Next), Next);
        false -> Next
    end;
heard({copy, Epoch, Number, What}, Node, #peer{pid = Pid} = Peer, _, #state{role = Role, seen = Seen, rank = Rank, peers = Peers} = S) ->
    Known = S#state{peers = Peers#{Node := Peer#peer{role = main, epoch = Epoch}}},
    case What of
        _ when Epoch < Seen; Role =:= main -> out({send, Pid, {refuse, Epoch, Seen}}, S);
        {table, Born, Table} -> copied(Epoch, Number, Pid, Known#state{table = Table, born = Born});
        {same, Rank} when Rank =/= none -> copied(Epoch, Number, Pid, Known);
        {same, _} -> out({send, Pid, {refuse, Epoch, Epoch}}, S)
    end;
heard({dismiss, Epoch}, _, _, _, #state{role = Role, seen = Seen, rank = {Of, _}} = S) when Role =/= main, Of =< Epoch ->
    announce(out({role, standby, Seen}, S#state{role = standby, rank = none, table = undefined, claim = none}));
%% An answer or a batch of another epoch.
heard(_, _, _, _, S) ->
    S.

copied(Epoch, Number, Pid, #state{seen = Seen} = S) ->
    Next = S#state{role = replica, epoch = Epoch, seen = max(Epoch, Seen), rank = {Epoch, Number}, claim = none, lost = []},
    announce(out({send, Pid, {ack, Epoch, Number}}, out({role, replica, Epoch}, Next))).

%%% What is to be done now

settle(Now, #state{role = main, epoch = Epoch, peers = Peers} = S) ->
    case [{Other, Node} || {Node, #peer{role = main, epoch = Other}} <- maps:to_list(Peers), Other > Epoch] of
        [{Other, Node} | _] -> settle(Now, count(clashes, out({clash, Node, Other}, step_down(Now, S))));
        [] -> rule(Now, S)
    end;
settle(Now, #state{peers = Peers, role = Role, epoch = Epoch, lone = Lone} = S) ->
    case lists:sort([Of || #peer{role = main, epoch = Of} <- maps:values(Peers)]) of
        [_ | _] = Epochs ->
            %% What was voted for is over: a main that steps down at once leaves nobody waiting.
            Known = S#state{lone = none, claim = none, granted = none, not_before = 0},
            case Role =:= replica andalso not lists:member(Epoch, Epochs) of
                true -> detached(Known);
                false -> Known
            end;
        [] when Role =:= replica -> settle(Now, detached(S));
        [] when Lone =:= none -> candidate(Now, S#state{lone = Now});
        [] -> candidate(Now, S)
    end.

detached(#state{seen = Seen} = S) -> announce(out({role, standby, Seen}, S#state{role = standby})).

%% A main: a replica, the best one; or whether another one is to be main.
rule(Now, #state{flight = none, replica = Replica, config = #{self := Self, peers := All}, peers = Peers} = S) ->
    case [Node || Node <- All, Node =/= Self, is_map_key(Node, Peers)] of
        [] -> flush(Now, S#state{stepping = false});
        [Best | _] when Best =/= Replica -> copy(Best, S);
        [Best | Others] ->
            case {is_preferred(Best, S), lists:foldl(fun dismiss/2, S, Others)} of
                {false, Whole} -> flush(Now, Whole);
                {true, #state{waiting = 0} = Whole} -> settle(Now, step_down(Now, Whole));
                {true, Whole} -> flush(Now, Whole#state{stepping = true})
            end
    end;
rule(Now, #state{flight = #flight{node = Node, until = Until}, up = Up} = S) when Now >= Until ->
    %% It is heard again when it answers. It keeps its data until there are two other copies.
    Without = S#state{up = maps:remove(Node, Up)},
    case has_majority(Without) of
        true -> settle(Now, hello(Node, count(silent, gone(Node, Now, Without))));
        false -> wake(S)
    end;
rule(_, S) ->
    wake(S).

%% Now that there are two copies.
dismiss(Node, #state{epoch = Epoch, peers = Peers} = S) ->
    case Peers of
        #{Node := #peer{rank = none}} -> S;
        #{Node := #peer{pid = Pid} = Peer} -> out({send, Pid, {dismiss, Epoch}}, S#state{peers = Peers#{Node := Peer#peer{rank = none}}})
    end.

copy(Node, #state{now = Now, peers = Peers, epoch = Epoch, rank = {Epoch, Last}, table = Table, born = Born, inherited = Inherited, answers = Answers, waiting = Waiting} = S) ->
    #{Node := #peer{pid = Pid, rank = Rank}} = Peers,
    What = case Inherited of
               Rank when Rank =/= none -> {same, Rank};
               _ -> {table, Born, Table}
           end,
    Flight = #flight{number = Last + 1, kind = copy, node = Node, pid = Pid, answers = Answers, count = Waiting, until = Now + ?MISSING_MS},
    wake(count(copies, out({send, Pid, {copy, Epoch, Last + 1, What}},
                           S#state{flight = Flight, rank = {Epoch, Last + 1}, ops = [], answers = [], stepping = false}))).

%% The data stay until a main says that they are needed no more.
step_down(Now, #state{seen = Seen, replica = Replica, peers = Peers} = S) ->
    #state{answers = Answers, rank = Rank} = Free = unsent(numbered(S)),
    Refused = answer([{From, not_main} || {From, _} <- Answers], Free),
    announce(out({role, standby, Seen}, Refused#state{
        role = standby, replica = none, answers = [], waiting = 0, stepping = false, inherited = none, lone = Now, handed = false,
        %% It has the same, and comes first.
        peers = case Peers of #{Replica := Peer} -> Peers#{Replica := Peer#peer{rank = Rank}}; #{} -> Peers end})).

candidate(Now, #state{claim = {Epoch, Until, Asked}} = S) ->
    case has_majority(S) andalso (Asked =:= [] orelse Now >= Until) of
        true -> won(Epoch, Now, S);
        false -> wake(S)
    end;
candidate(Now, #state{not_before = NotBefore, peers = Peers, rank = Rank} = S) ->
    case Now >= NotBefore andalso has_majority(S) andalso is_acquainted(Now, S) andalso is_entitled(Now, S) of
        true ->
            Epoch = next_epoch(Now, S),
            Asked = [Pid || #peer{pid = Pid} <- maps:values(Peers)],
            Claiming = S#state{claim = {Epoch, Now + ?MISSING_MS, Asked}, seen = Epoch},
            Sent = lists:foldl(fun(Pid, Acc) -> out({send, Pid, {claim, Epoch, Rank}}, Acc) end, Claiming, Asked),
            candidate(Now, Sent);
        false ->
            wake(S)
    end.

wake(#state{wake = none, now = Now} = S) -> out({wake, ?AGAIN_MS}, S#state{wake = Now + ?AGAIN_MS});
wake(S) -> S.

is_entitled(Now, #state{rank = none, peers = Peers, missing = Missing, lone = Lone} = S) ->
    lists:all(fun({Node, #peer{rank = Rank}}) -> Rank =:= none andalso not is_preferred(Node, S) end, maps:to_list(Peers))
        andalso lists:all(fun(Since) -> Now - max(Since, Lone) >= ?MISSING_MS end, maps:values(Missing));
is_entitled(Now, #state{rank = Own, peers = Peers, lone = Since} = S) ->
    Now - Since >= ?DEFER_MS
        orelse not lists:any(fun({Node, #peer{rank = Rank}}) -> Rank > Own orelse Rank =:= Own andalso is_preferred(Node, S) end,
                             maps:to_list(Peers)).

%% It belongs to this peer, and is new also after a start with nothing, as time passes.
next_epoch(Now, #state{seen = Seen, config = #{self := Self, peers := Peers}}) ->
    max(Seen div ?PLACES + 1, Now) * ?PLACES + place(Self, Peers).

won(Epoch, Now, #state{rank = Rank, table = Last, born = Before, handed = Handed, lost = Lost, config = #{table := Module, limits := Limits}} = S) ->
    {Table, Born} = case Rank of
                        none -> {Module:new(Limits), Epoch};
                        _ -> {Last, Before}
                    end,
    Why = case Handed of
              true -> handed_over;
              false -> Lost
          end,
    Main = S#state{table = Table, born = Born, inherited = Rank, claim = none, lone = none, lost = [], handed = false},
    settle(Now, out({main, Why, Table}, reign(Epoch, Main))).

reign(Epoch, #state{seen = Seen} = S) ->
    announce(out({role, main, Epoch}, S#state{role = main, epoch = Epoch, seen = max(Seen, Epoch), rank = {Epoch, 0}})).
