%% SPDX-License-Identifier: Apache-2.0
%% A shard in virtual time: the peers, a router that counts for the majority, messages that are late, kills of
%% processes and of nodes, and cuts. Callers say one operation at a time to whoever is main for all
%% they know, and again if it is not answered.
%%
%% The table is a set of numbers: an operation adds one, or reads all.
%%
%% A kill that the promise is not about is left out: of the last two whole copies one stays until there are
%% two again. Who stands still for longer than a main waits counts as lost so long.
-module(im_replica_world).

-export([run/1, new/1, apply/2, rows/1, pid/1]).

-type fault() ::
    %% by its part, or by number
    {kill_process | kill_node, main | replica | {peer, pos_integer()}}
    %% the node stands still for so long, connected; what comes waits for it
    | {stop, main | replica | {peer, pos_integer()}, Ms :: pos_integer()}
    %% two sides, for so long
    | {cut, [pos_integer()], Ms :: pos_integer()}.

-type options() :: #{
    peers := pos_integer(),
    seed := integer(),
    replication := acknowledged | paper,
    faults := [{At :: non_neg_integer(), fault()}],
    ms := pos_integer()
}.

-type result() :: #{
    acknowledged := [integer()],
    %% what the last main has, what some read saw, whether there was one
    final := [integer()] | none,
    read := [integer()],
    %% breaches that were seen on the way
    wrong := [term()],
    settled := boolean(),
    kills := non_neg_integer()
}.

-define(ROUTER, router).
-define(CALLERS, 3).
%% A stop that nobody counts as a loss.
-define(SHORT_MS, 4000).

%%% The table

new(_) -> #{}.

apply({add, N}, T) -> {ok, T#{N => []}};
apply(read, T) -> {maps:keys(T), unchanged}.

rows(T) -> maps:to_list(T).

pid(_) -> none.

%%% The world

-record(w, {
    options :: options(),
    now = 1 :: pos_integer(),
    events = gb_sets:new(),
    count = 0 :: non_neg_integer(),
    %% {Incarnation, State} of those whose process lives
    peers = #{} :: #{node() => {pos_integer(), im_replica:state()}},
    inc = 0 :: non_neg_integer(),
    up = [] :: [node()],
    %% who monitors whom
    monitors = #{} :: #{{node(), pos_integer()} => [{node(), pos_integer()}]},
    %% when the last message from one node to another one arrives
    last = #{} :: #{{node(), node()} => pos_integer()},
    side = [] :: [node()],
    %% who stands still, for how long, and what waits for it, the last one first
    stopped = #{} :: #{node() => {Ms :: pos_integer(), [term()]}},
    %% the last two whole copies; those that are left of them
    pair = [] :: [{node(), pos_integer()}],
    callers = #{} :: #{pos_integer() => {Op :: term(), Tag :: reference() | integer()}},
    next = 1 :: pos_integer(),
    acknowledged = [] :: [integer()],
    read = [] :: [integer()],
    answered = 0 :: non_neg_integer(),
    mains = #{} :: #{non_neg_integer() => {node(), pos_integer()}},
    wrong = [] :: [term()],
    kills = 0 :: non_neg_integer(),
    calm = false :: boolean()
}).

-spec run(options()) -> result().
run(#{peers := Count, seed := Seed, faults := Faults, ms := Ms} = Options) ->
    _ = rand:seed(exsss, Seed),
    Peers = peers(Count),
    W0 = #w{options = Options, up = [?ROUTER | Peers]},
    W1 = lists:foldl(fun(Node, W) -> later(rand:uniform(20), {start, Node}, W) end, W0, Peers),
    W2 = lists:foldl(fun({At, Fault}, W) -> later(At, {fault, Fault}, W) end, W1, Faults),
    W3 = lists:foldl(fun(Caller, W) -> later(Caller, {ask, Caller}, W) end, W2, lists:seq(1, ?CALLERS)),
    calm(loop(later(Ms, calm, W3)), 0).

peers(Count) -> [list_to_atom("s" ++ integer_to_list(I)) || I <- lists:seq(1, Count)].

all(#w{options = #{peers := Count}}) -> peers(Count).

later(Ms, Event, #w{now = Now, events = Events, count = Count} = W) ->
    W#w{events = gb_sets:add({Now + Ms, Count, Event}, Events), count = Count + 1}.

%% To the end of the faults, and then until nobody is asked any more and everything has settled.
loop(#w{events = Events} = W) ->
    {{At, _, Event}, Left} = gb_sets:take_smallest(Events),
    case Event of
        calm -> W#w{now = max(At, W#w.now), events = Left, calm = true};
        _ -> loop(observed(comes(Event, W#w{now = max(At, W#w.now), events = Left})))
    end.

calm(#w{events = Events} = W, Steps) ->
    case {gb_sets:is_empty(Events), Steps < 20000} of
        {false, true} ->
            {{At, _, Event}, Left} = gb_sets:take_smallest(Events),
            calm(observed(comes(Event, W#w{now = max(At, W#w.now), events = Left})), Steps + 1);
        _ ->
            result(W)
    end.

result(#w{acknowledged = Acknowledged, read = Read, wrong = Wrong, kills = Kills, peers = Peers} = W) ->
    Info = maps:map(fun(_, {_, S}) -> im_replica:info(S) end, Peers),
    [First | Others] = all(W),
    Settled = case {Info, Others} of
                  {#{First := #{role := main, waiting := 0}}, []} -> true;
                  {#{First := #{role := main, replica := Second, table := T, waiting := 0}}, [Second | Standby]} ->
                      #{Second := #{role := Role, table := Copy}} = Info,
                      Role =:= replica andalso T =:= Copy
                          andalso lists:all(fun(Node) -> #{Node := #{role := R, rank := Rank}} = Info, {R, Rank} =:= {standby, none} end, Standby);
                  _ -> false
              end,
    Final = case [T || #{role := main, table := T} <- maps:values(Info)] of
                [Table] -> maps:keys(Table);
                _ -> none
            end,
    #{acknowledged => lists:sort(Acknowledged), final => Final, read => Read, wrong => Wrong, settled => Settled, kills => Kills}.

comes(Event, #w{stopped = Stopped} = W) ->
    Node = case Event of {start, At} -> At; {event, At, _, _} -> At; {to, _, _, At, _, _} -> At; _ -> none end,
    case Stopped of
        #{Node := {Ms, Waiting}} -> W#w{stopped = Stopped#{Node := {Ms, [Event | Waiting]}}};
        #{} -> does(Event, W)
    end.

does({start, Node}, #w{up = Up, peers = Peers, inc = Inc, options = #{replication := Replication}} = W) ->
    case lists:member(Node, Up) andalso not is_map_key(Node, Peers) of
        true ->
            Config = #{self => Node, peers => all(W), members => [?ROUTER | all(W)], up => [N || N <- Up, connected(N, Node, W)],
                       table => ?MODULE, limits => #{max_sessions => 1, away_messages => 1}, replication => Replication, max_waiting => 100},
            effects(Node, Inc + 1, im_replica:new(Config, W#w.now), W#w{inc = Inc + 1});
        false ->
            W
    end;
does({event, Node, Inc, Event}, #w{peers = Peers} = W) ->
    case Peers of
        #{Node := {Inc, S}} -> effects(Node, Inc, im_replica:handle(Event, W#w.now, S), W);
        #{} -> W
    end;
does({to, From, Inc, Node, To, Message}, #w{peers = Peers} = W) ->
    case Peers of
        #{Node := {Own, _}} when To =:= any; To =:= Own -> does({event, Node, Own, {from, From, {From, Inc}, Message}}, W);
        #{} -> W
    end;
does({fault, Fault}, W) ->
    fault(Fault, W);
does({back, Node}, #w{up = Up} = W) ->
    Back = W#w{up = lists:usort([Node | Up])},
    later(rand:uniform(20), {start, Node}, link(Node, nodeup, Back));
does({go_on, Node}, #w{stopped = Stopped} = W) ->
    case maps:take(Node, Stopped) of
        {{_, Waiting}, Left} -> lists:foldr(fun comes/2, W#w{stopped = Left}, Waiting);
        error -> W
    end;
does(heal, #w{side = Side} = W) ->
    Whole = W#w{side = []},
    lists:foldl(fun({A, B}, Acc) -> tell(A, {nodeup, B}, tell(B, {nodeup, A}, Acc)) end, Whole, cut_pairs(Side, Whole));
does({ask, Caller}, #w{calm = true, callers = Callers} = W) when not is_map_key(Caller, Callers) ->
    W;
does({ask, Caller}, #w{callers = Callers, next = Next, count = Count} = W) ->
    {Op, After} = case Callers of
                      #{Caller := {Same, _}} -> {Same, Next};
                      #{} -> case rand:uniform(4) of 1 -> {read, Next}; _ -> {{add, Next}, Next + 1} end
                  end,
    Asking = later(150, {again, Caller, Count}, W#w{next = After, callers = Callers#{Caller => {Op, Count}}}),
    case chosen(Asking) of
        {Node, Inc} -> later(delay(), {event, Node, Inc, {op, {Caller, Count}, Op}}, Asking);
        none -> Asking
    end;
does({again, Caller, Tag}, #w{callers = Callers} = W) ->
    case Callers of
        #{Caller := {_, Tag}} -> does({ask, Caller}, W);
        #{} -> W
    end;
does({answer, {Caller, Tag}, Reply}, #w{callers = Callers, acknowledged = Acknowledged, read = Read} = W) ->
    case Callers of
        #{Caller := {Op, Tag}} when Reply =:= ok; is_list(Reply) ->
            Done = later(rand:uniform(10), {ask, Caller}, W#w{callers = maps:remove(Caller, Callers)}),
            case Op of
                {add, N} -> Done#w{acknowledged = [N | Acknowledged]};
                read -> Done#w{read = lists:umerge(lists:sort(Reply), Read)}
            end;
        #{} ->
            W
    end.

%% Mostly the one that has the highest epoch, as the name says.
chosen(#w{peers = Peers}) ->
    Mains = lists:sort([{Epoch, Node, Inc} || {Node, {Inc, S}} <- maps:to_list(Peers), #{role := main, epoch := Epoch} <- [im_replica:info(S)]]),
    case {Mains, maps:to_list(Peers), rand:uniform(5)} of
        {_, [_ | _] = All, 1} -> {Node, {Inc, _}} = lists:nth(rand:uniform(length(All)), All), {Node, Inc};
        {[_ | _], _, _} -> {_, Node, Inc} = lists:last(Mains), {Node, Inc};
        _ -> none
    end.

delay() -> case rand:uniform(10) of 1 -> rand:uniform(60); _ -> rand:uniform(4) end.

effects(Node, Inc, {S, Effects}, #w{peers = Peers} = W) ->
    lists:foldl(fun(Effect, Acc) -> effect(Effect, Node, Inc, Acc) end, W#w{peers = Peers#{Node => {Inc, S}}}, Effects).

effect({hello, To, Message}, Node, Inc, W) -> send(Node, Inc, To, any, Message, W);
effect({send, {To, Of}, Message}, Node, Inc, W) -> send(Node, Inc, To, Of, Message, W);
effect({monitor, {To, Of}}, Node, Inc, #w{monitors = Monitors, peers = Peers} = W) ->
    case Peers of
        #{To := {Of, _}} -> W#w{monitors = maps:update_with({To, Of}, fun(L) -> [{Node, Inc} | L] end, [{Node, Inc}], Monitors)};
        #{} -> later(delay(), {event, Node, Inc, {down, {To, Of}}}, W)
    end;
effect({demonitor, Pid}, Node, Inc, #w{monitors = Monitors} = W) ->
    W#w{monitors = maps:update_with(Pid, fun(L) -> lists:delete({Node, Inc}, L) end, [], Monitors)};
effect({answer, From, Reply}, Node, Inc, W) ->
    Seen = case Reply =:= ok orelse is_list(Reply) of
               true -> answers(Node, Inc, W);
               false -> W
           end,
    later(1, {answer, From, Reply}, Seen);
effect({role, main, Epoch}, Node, Inc, #w{mains = Mains, wrong = Wrong} = W) ->
    case Mains of
        #{Epoch := _} -> W#w{wrong = [{two_mains, Epoch} | Wrong]};
        #{} -> W#w{mains = Mains#{Epoch => {Node, Inc}}}
    end;
effect({wake, Ms}, Node, Inc, W) -> later(Ms, {event, Node, Inc, wake}, W);
effect(_, _, _, W) -> W.

%% Who answers has the highest epoch of all that have answered.
answers(Node, _, #w{peers = Peers, answered = Answered, wrong = Wrong} = W) ->
    #{Node := {_, S}} = Peers,
    case im_replica:info(S) of
        #{epoch := Epoch} when Epoch >= Answered -> W#w{answered = Epoch};
        #{epoch := Epoch} -> W#w{wrong = [{old_main_answers, Node, Epoch, Answered} | Wrong]}
    end.

connected(A, B, #w{up = Up, side = Side}) ->
    lists:member(A, Up) andalso lists:member(B, Up) andalso (lists:member(A, Side) =:= lists:member(B, Side)).

%% In order between two nodes.
send(From, Inc, To, Of, Message, W) ->
    case connected(From, To, W) of
        true -> arrives(From, To, {to, From, Inc, To, Of, Message}, W);
        false -> W
    end.

arrives(From, To, Event, #w{now = Now, last = Last} = W) ->
    At = max(Now + delay(), maps:get({From, To}, Last, 0)),
    later(At - Now, Event, W#w{last = Last#{{From, To} => At}}).

tell(Node, What, #w{peers = Peers} = W) ->
    {_, From} = case What of {down, {Of, _}} -> {down, Of}; {_, Of} -> {node, Of} end,
    case Peers of
        #{Node := {Inc, _}} -> arrives(From, Node, {event, Node, Inc, What}, W);
        #{} -> W
    end.

link(Node, What, #w{up = Up} = W) ->
    lists:foldl(fun(Other, Acc) -> tell(Node, {What, Other}, tell(Other, {What, Node}, Acc)) end, W,
                [Other || Other <- Up -- [Node], connected(Other, Node, W)]).

cut_pairs(Side, #w{up = Up}) -> [{A, B} || A <- Up, B <- Up, lists:member(A, Side), not lists:member(B, Side)].

fault({stop, Part, Ms}, W) ->
    lists:foldl(fun(Node, Acc) -> stop(Node, Ms, Acc) end, W, lists:sublist(having(Part, W), 1));
fault({cut, Of, Ms}, #w{side = []} = W) ->
    Side = lists:usort([lists:nth((I - 1) rem length(all(W)) + 1, all(W)) || I <- Of]),
    Pairs = cut_pairs(Side, W),
    Gone = fun(A, B, Acc) -> broken(B, [{A, nodedown}], Acc) end,
    Cut = lists:foldl(fun({A, B}, Acc) -> Gone(A, B, Gone(B, A, Acc)) end, W, Pairs),
    later(Ms, heal, Cut#w{side = Side});
fault({cut, _, _}, W) ->
    W;
fault({What, Part}, W) ->
    lists:foldl(fun(Node, Acc) -> strike(What, Node, Acc) end, W, lists:sublist(having(Part, W), 1)).

having({peer, I}, W) -> [lists:nth((I - 1) rem length(all(W)) + 1, all(W))];
having(Part, #w{peers = Peers}) -> [Node || {Node, {_, S}} <- maps:to_list(Peers), map_get(role, im_replica:info(S)) =:= Part].

%% Longer than a main waits is as if it were lost.
stop(Node, Ms, #w{up = Up, stopped = Stopped, peers = Peers, pair = Pair} = W) ->
    IsLast = case Peers of #{Node := {Inc, _}} -> Pair =:= [{Node, Inc}]; #{} -> false end,
    case lists:member(Node, Up) andalso not is_map_key(Node, Stopped) andalso not (IsLast andalso Ms > ?SHORT_MS) of
        true -> later(Ms, {go_on, Node}, W#w{stopped = Stopped#{Node => {Ms, []}}});
        false -> W
    end.

%% Not the last whole copy.
strike(kill_process, Node, #w{stopped = Stopped} = W) when is_map_key(Node, Stopped) ->
    W;
strike(What, Node, #w{peers = Peers, up = Up, pair = Pair, kills = Kills, stopped = Stopped} = W0) ->
    Inc = case Peers of #{Node := {I, _}} -> I; #{} -> none end,
    case lists:member(Node, Up) andalso Pair =/= [{Node, Inc}] of
        true ->
            W = W0#w{kills = Kills + 1, pair = lists:delete({Node, Inc}, Pair), peers = maps:remove(Node, Peers), stopped = maps:remove(Node, Stopped)},
            case What of
                kill_process -> later(rand:uniform(15), {start, Node}, died(Node, Inc, W));
                kill_node ->
                    Others = [{Other, nodedown} || Other <- Up -- [Node], connected(Other, Node, W)],
                    later(100 + rand:uniform(1500), {back, Node}, broken(Node, Others, W#w{up = Up -- [Node]}))
            end;
        false -> W0
    end.

died(_, none, W) -> W;
died(Node, Inc, #w{monitors = Monitors} = W) ->
    Of = maps:get({Node, Inc}, Monitors, []),
    lists:foldl(fun({Other, OtherInc}, Acc) -> down(Other, OtherInc, {Node, Inc}, Acc) end, W#w{monitors = maps:remove({Node, Inc}, Monitors)}, Of).

down(Other, OtherInc, {Node, Inc}, W) -> arrives(Node, Other, {event, Other, OtherInc, {down, {Node, Inc}}}, W).

%% What the node had sent arrives up to some point, and then that it is gone, of its process too.
broken(Node, Others, #w{events = Events, monitors = Monitors} = W) ->
    lists:foldl(fun({Other, What}, #w{now = Now} = Acc0) ->
        Until = Now + rand:uniform(20) - 1,
        Kept = gb_sets:filter(fun({At, _, {to, From, _, To, _, _}}) -> not (From =:= Node andalso To =:= Other andalso At > Until); (_) -> true end, Acc0#w.events),
        Acc = Acc0#w{events = Kept, last = (Acc0#w.last)#{{Node, Other} => Until}},
        Watching = [{By, Of} || {{N, _} = Of, List} <- maps:to_list(Acc#w.monitors), N =:= Node, {O, _} = By <- List, O =:= Other],
        Gone = lists:foldl(fun({{O, OInc} = By, Of}, A) ->
            #w{monitors = M} = A,
            #{Of := L} = M,
            down(O, OInc, Of, A#w{monitors = M#{Of := lists:delete(By, L)}})
        end, Acc, Watching),
        tell(Other, {What, Node}, Gone)
    end, W#w{events = Events, monitors = Monitors}, Others).

observed(#w{stopped = Stopped} = W0) ->
    #w{pair = Pair} = W = copies(W0),
    W#w{pair = [Of || {Node, _} = Of <- Pair, not is_as_lost(Node, Stopped)]}.

is_as_lost(Node, Stopped) -> is_map_key(Node, Stopped) andalso element(1, map_get(Node, Stopped)) > ?SHORT_MS.

%% The main of the highest epoch with a replica, or without a main those that have the same: two copies are whole. Who was
%% copied to and counts as lost may have more, which was not answered: the copy that is left is another one.
copies(#w{peers = Peers, pair = Pair, stopped = Stopped} = W) ->
    case lists:sort([{Epoch, {Node, Inc}, Replica} || {Node, {Inc, S}} <- maps:to_list(Peers), #{role := main, epoch := Epoch, replica := Replica} <- [im_replica:info(S)], Replica =/= none]) of
        [] when Pair =:= [] -> W#w{pair = lists:sublist([Of || {_, Of} <- lists:reverse(lists:sort(maps:to_list(W#w.mains)))], 1)};
        [] ->
            Ranks = lists:reverse(lists:sort([{Rank, {Node, Inc}} || {Node, {Inc, S}} <- maps:to_list(Peers), not is_as_lost(Node, Stopped), #{rank := Rank} <- [im_replica:info(S)]])),
            case {[Epoch || Epoch <- maps:keys(W#w.mains), {_, Inc} <- [map_get(Epoch, W#w.mains)], is_main(Inc, Peers)], Ranks} of
                {[], [{{_, _} = Best, _} | _]} -> W#w{pair = [Of || {Rank, Of} <- Ranks, Rank =:= Best]};
                _ -> W
            end;
        Mains ->
            {Epoch, Main, Replica} = lists:last(Mains),
            case Peers of
                #{Replica := {Inc, S}} ->
                    case im_replica:info(S) of
                        #{role := replica, epoch := Epoch} -> W#w{pair = [Main, {Replica, Inc}]};
                        _ -> W#w{pair = [Main]}
                    end;
                #{} -> W#w{pair = [Main]}
            end
    end.

is_main(Inc, Peers) -> lists:any(fun({Of, S}) -> Of =:= Inc andalso map_get(role, im_replica:info(S)) =:= main end, maps:values(Peers)).
