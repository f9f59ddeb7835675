%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run has done to the nodes, and what becomes of it: it does the deeds of
%% a plan, has looked after what was harmed, and writes the log.
%%
%% It works in the process of the run ({@link atoll_chaos_runner}), which says when a
%% deed is due. What touches nodes the keeper does; what takes time is done by
%% processes of their own, each with a deadline, whose ends come to that of the run as
%% `DOWN' messages and are told here by {@link ended/3}.
%%
%% When the keeper is gone, whatever would need it throws `{keeper_lost, Damage}': how
%% far it had come with that damage nobody knows, and {@link heal_alone/2} need not.
%%
%% The module is long because each kind of deed is written once, with what it does, what it
%% leaves open and what closes that, over one state. A new kind is a clause of `do/3', and
%% of {@link atoll_chaos_damage} if it must be healed.
-module(atoll_chaos_deeds).

-export([new/1, do/3, must_wait/2, sent/4, ended/3, is_watching/1, stop_sending/1]).
-export([now_ms/1, events/1, facts/1, over/3, heal_alone/1, heal_alone/2]).

-export_type([deeds/0, job/0, facts/0, result/0]).

%% What looks after something ends with exit/1 by design.
-dialyzer({nowarn_function, look/4}).

-type job() :: #{
    backend := atoll_chaos_backend:backend(),
    run := atoll_chaos_agent:run(),
    keeper := pid(),
    %% What was done before time 0.
    damage := atoll_chaos_damage:damage(),
    overlay := atoll_chaos_overlay:overlay(),
    told := #{node() => [{module(), Function :: atom(), Args :: [term()]}]},
    %% How long is waited for what was harmed.
    deadline_ms := pos_integer(),
    on_event := fun((atoll_chaos_log:event()) -> _)
}.

-type facts() :: #{
    %% Who of the nodes that answer sees which groups, or names, if a step was about them.
    groups := atoll_sim_expect:groups() | none,
    names := atoll_sim_expect:names() | none,
    %% If the nodes run an overlay: what it looks like in the end. And which of so many
    %% expectations did not hold.
    overlay := atoll_sim_expect:facts() | none,
    expectations := non_neg_integer(),
    failed := [atoll_chaos_overlay:failure()],
    %% What the witnesses saw and had no room for.
    unseen := non_neg_integer()
}.

-type result() :: #{
    events := [atoll_chaos_log:event()],
    %% How many there were before these.
    left_out := non_neg_integer(),
    %% Those of facts().
    groups := atoll_sim_expect:groups() | none,
    names := atoll_sim_expect:names() | none,
    overlay := atoll_sim_expect:facts() | none,
    expectations := non_neg_integer(),
    failed := [atoll_chaos_overlay:failure()],
    unseen := non_neg_integer(),
    ms := non_neg_integer()
}.

-record(deeds, {
    job :: job(),
    begun :: integer(),
    damage :: atoll_chaos_damage:damage(),
    log = atoll_chaos_log:new() :: atoll_chaos_log:log(),
    %% What each process that looks after something looks after.
    watches = #{} :: #{reference() => watch()},
    has_groups = false :: boolean(),
    has_names = false :: boolean(),
    overlay :: atoll_chaos_overlay:overlay(),
    expectations = 0 :: non_neg_integer(),
    %% Who has left by which step.
    left = #{} :: #{node() => term()}
}).

-opaque deeds() :: #deeds{}.

-type watch() ::
    {start, node(), BegunUs :: integer()}
    | {leave, node(), atoll_chaos_log:id()}
    | {broadcast, atoll_chaos_log:id(), pid()}
    | {answer | process | group | name, atoll_chaos_log:id()}.

-type place() :: atoll_sim_script:place() | none.

-type healed() :: [{atoll_chaos_damage:act(), atoll_chaos_keeper:outcome()}].

-define(SETTLE_MS, 15000).
%% What a call may take beside what it waits for.
-define(CALL_MS, 5000).
%% Leaving takes a node two seconds at most.
-define(LEAVE_MS, 10000).
%% A group operation answers within its operation and settle times.
-define(GROUP_MS, 30000).

%% @doc Nothing was done yet, and time 0 is now.
-spec new(job()) -> deeds().
new(#{damage := Damage, overlay := Overlay} = Job) ->
    #deeds{job = Job, begun = erlang:monotonic_time(millisecond), damage = Damage, overlay = Overlay}.

%% @doc The time of the run.
-spec now_ms(deeds()) -> non_neg_integer().
now_ms(#deeds{begun = Begun}) ->
    erlang:monotonic_time(millisecond) - Begun.

%% @doc What has happened so far.
-spec events(deeds()) -> [atoll_chaos_log:event()].
events(#deeds{log = Log}) ->
    atoll_chaos_log:events(Log).

%% @doc Whether something is being looked after.
-spec is_watching(deeds()) -> boolean().
is_watching(#deeds{watches = Watches}) ->
    map_size(Watches) > 0.

%% @doc Who broadcasts stops.
-spec stop_sending(deeds()) -> ok.
stop_sending(#deeds{watches = Watches}) ->
    _ = [exit(Pid, kill) || {broadcast, _, Pid} <- maps:values(Watches)],
    ok.

%% @doc Undoes it without the keeper.
-spec heal_alone(deeds()) -> healed().
heal_alone(#deeds{damage = Damage} = Deeds) ->
    heal_alone(Damage, Deeds).

%% @doc The same, of another damage.
-spec heal_alone(atoll_chaos_damage:damage(), deeds()) -> healed().
heal_alone(Damage, #deeds{job = #{backend := Backend}} = Deeds) ->
    [{Act, atoll_chaos_keeper:act(Act, claim(Deeds), Backend)} || Act <- atoll_chaos_damage:healing(Damage)].

%% Doing

%% @doc Whether a deed touches a node that is just starting, or leaving.
-spec must_wait(atoll_sim_plan:deed(), deeds()) -> boolean().
must_wait(Deed, Deeds) ->
    is_busy(nodes_of(Deed), Deeds).

nodes_of({partition, _}) -> [];
nodes_of({cut, _, _}) -> [];
nodes_of({mend, _, _}) -> [];
nodes_of({What, _, _}) when What =:= black_hole; What =:= fill -> [];
nodes_of({What, _, _, _}) when What =:= loss; What =:= delay; What =:= bulk -> [];
nodes_of({lane, One, Other, _, _}) -> One ++ Other;
nodes_of({other, _}) -> [];
nodes_of({passed_over, _, _, _}) -> [];
nodes_of(heal) -> [];
nodes_of(Deed) -> element(2, Deed).

is_busy(Nodes, #deeds{watches = Watches}) ->
    lists:any(
        fun
            ({Doing, Node, _}) when Doing =:= start; Doing =:= leave -> lists:member(Node, Nodes);
            (_) -> false
        end,
        maps:values(Watches)
    ).

%% @doc Does a deed of a plan, which the script says there.
-spec do(atoll_sim_plan:deed(), place(), deeds()) -> deeds().
do({kill_process, Nodes, {any_name, Scope} = What, Which}, Place, #deeds{job = Job} = Deeds0) ->
    #{backend := Backend, deadline_ms := Deadline} = Job,
    Order = #{which => Which, deadline_ms => Deadline, claim => claim(Deeds0)},
    %% Whose process it is will be seen.
    {Id, Deeds} = add(event(kill_process, Nodes, What, Place, Deeds0), Deeds0),
    look({process, Id}, fun() -> atoll_chaos_named:kill(Backend, Nodes, Scope, Order) end, Deeds);
do({kill_process, Nodes, What, Which}, Place, #deeds{job = #{deadline_ms := Deadline}} = Deeds) ->
    Order = #{what => What, which => Which, deadline_ms => Deadline, claim => claim(Deeds)},
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(kill_process, [Node], What, Place, S0), S0),
            look({process, Id}, fun() -> call(Node, {atoll_chaos_kill, run, [Order]}, Deadline + ?CALL_MS, S) end, S)
        end,
        Deeds,
        Nodes
    );
do({group, Nodes, Operation}, Place, Deeds) ->
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(group, [Node], Operation, Place, S0), S0),
            look({group, Id}, fun() -> call(Node, request(Operation), ?GROUP_MS, S) end, S)
        end,
        Deeds#deeds{has_groups = true},
        Nodes
    );
do({name, Nodes, Operation}, Place, Deeds) ->
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(name, [Node], Operation, Place, S0), S0),
            look({name, Id}, fun() -> call(Node, {atoll_chaos_names, ask, [owner(S), Operation]}, ?GROUP_MS, S) end, S)
        end,
        Deeds#deeds{has_names = true},
        Nodes
    );
do({kill, Nodes} = Deed, Place, #deeds{left = Left} = Deeds0) ->
    {Outcomes, Deeds1} = acts(Deed, Deeds0),
    %% Before what ends with the nodes is closed: nothing of theirs ends before they do.
    Since = now_ms(Deeds1),
    Deeds = closed(is_of(Nodes), Deeds1),
    lists:foldl(
        fun(Node, S0) ->
            Event = judged({kill, Node}, Outcomes, event(kill, [Node], none, Place, S0)),
            {Id, S} = add(Event#{at_ms := Since}, S0),
            opened({down, Node}, Id, Since, S)
        end,
        Deeds,
        %% Who has left stops after a while, and that is the end of leaving.
        [Node || Node <- Nodes, maps:get(Node, Left, stayed) =/= Place]
    );
do({leave, Nodes}, Place, Deeds) ->
    lists:foldl(
        fun(Node, #deeds{left = Left} = S0) ->
            {Id, S} = add(event(leave, [Node], none, Place, S0), S0#deeds{left = Left#{Node => Place}}),
            look({leave, Node, Id}, fun() -> call(Node, {atoll, leave, []}, ?LEAVE_MS, S) end, S)
        end,
        Deeds,
        Nodes
    );
do({broadcast, Nodes, Count, Every}, Place, #deeds{job = #{backend := Backend}} = Deeds) ->
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(broadcast, [Node], {Count, Every}, Place, S0), S0),
            {Pid, Ref} = atoll_chaos_sender:start(Backend, Node, Count, Every),
            S#deeds{watches = (S#deeds.watches)#{Ref => {broadcast, Id, Pid}}}
        end,
        Deeds,
        Nodes
    );
do({other, {expect, Expectation}}, Place, #deeds{overlay = Overlay0, damage = Damage, expectations = Count} = Deeds) ->
    Awake = atoll_chaos_damage:awake(Damage),
    {_, Overlay} = atoll_chaos_overlay:expect(Expectation, Place, now_ms(Deeds), Awake, Overlay0),
    Deeds#deeds{overlay = Overlay, expectations = Count + 1};
do({restart, Nodes, _} = Deed, Place, Deeds0) ->
    Since = now_ms(Deeds0),
    {Outcomes, Deeds1} = acts(Deed, Deeds0),
    Deeds = closed(is_of(Nodes), Deeds1),
    lists:foldl(
        fun(Node, S0) ->
            Event = judged({kill, Node}, Outcomes, event(restart, [Node], none, Place, S0)),
            {Id, S} = add(Event#{at_ms := Since}, S0),
            start_node(Node, opened({down, Node}, Id, Since, S))
        end,
        Deeds,
        Nodes
    );
do({start, Nodes, _} = Deed, Place, Deeds0) ->
    {_, Deeds} = acts(Deed, Deeds0),
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(start, [Node], none, Place, S0), S0),
            start_node(Node, opened({down, Node}, Id, S))
        end,
        Deeds,
        Nodes
    );
do({pause, Nodes} = Deed, Place, Deeds0) ->
    {Outcomes, Deeds} = acts(Deed, Deeds0),
    lists:foldl(
        fun(Node, S0) ->
            Event = event(pause, [Node], none, Place, S0),
            case lists:keymember({pause, Node}, 1, Outcomes) of
                true ->
                    {Id, S} = add(judged({pause, Node}, Outcomes, Event), S0),
                    opened({paused, Node}, Id, S);
                false ->
                    passed_over(paused, Event, S0)
            end
        end,
        Deeds,
        Nodes
    );
do({passed_over, Fault, Nodes, Why}, Place, Deeds) ->
    lists:foldl(fun(Node, S) -> passed_over(Why, event(Fault, [Node], none, Place, S), S) end, Deeds, Nodes);
do({resume, _} = Deed, _Place, Deeds0) ->
    {_, Deeds} = resumed(Deed, Deeds0),
    Deeds;
do({slow, Nodes, 0} = Deed, _Place, Deeds0) ->
    {_, Deeds} = acts(Deed, Deeds0),
    lists:foldl(fun(Node, S) -> closed(fun(Key) -> Key =:= {slow, Node} end, S) end, Deeds, Nodes);
do({slow, Nodes, Ms} = Deed, Place, Deeds0) ->
    {Outcomes, Deeds} = acts(Deed, Deeds0),
    lists:foldl(
        fun(Node, S0) ->
            Event = event(slow, [Node], Ms, Place, S0),
            case lists:keymember({slow, Node, Ms}, 1, Outcomes) of
                true ->
                    {Id, S} = add(judged({slow, Node, Ms}, Outcomes, Event), S0),
                    opened({slow, Node}, Id, S);
                %% What is stopped for good cannot be slow.
                false ->
                    passed_over(paused, Event, S0)
            end
        end,
        Deeds,
        Nodes
    );
do({partition, Parts} = Deed, Place, Deeds0) ->
    {Outcomes, Deeds1} = acts(Deed, Deeds0),
    Deeds2 = closed(fun(Key) -> Key =:= partition end, Deeds1),
    {Id, Deeds} = add(all_judged(Outcomes, event(partition, lists:append(Parts), Parts, Place, Deeds2)), Deeds2),
    opened(partition, Id, Deeds);
do({cut, From, To} = Deed, Place, Deeds0) ->
    {Outcomes, Deeds1} = acts(Deed, Deeds0),
    {Id, Deeds} = add(all_judged(Outcomes, event(cut, From, To, Place, Deeds1)), Deeds1),
    opened({cut, From, To}, Id, Deeds);
do({mend, From, To} = Deed, _Place, Deeds0) ->
    {_, Deeds} = acts(Deed, Deeds0),
    first_closed({cut, From, To}, Deeds);
do({black_hole, One, Other} = Deed, Place, Deeds0) ->
    {Outcomes, Deeds1} = acts(Deed, Deeds0),
    {Id, Deeds} = add(all_judged(Outcomes, event(black_hole, One, Other, Place, Deeds1)), Deeds1),
    opened(Deed, Id, Deeds);
do({fill, One, Other} = Deed, _Place, Deeds0) ->
    {_, Deeds} = acts(Deed, Deeds0),
    first_closed({black_hole, One, Other}, Deeds);
do({other, {loss, Share}} = Deed, Place, Deeds) ->
    lasting(Deed, {loss, all}, Share > 0, event(loss, [], Share, Place, Deeds), Deeds);
do({loss, From, To, Share} = Deed, Place, Deeds) ->
    lasting(Deed, {loss, From, To}, Share > 0, event(loss, From, {To, Share}, Place, Deeds), Deeds);
do({delay, From, To, Ms} = Deed, Place, Deeds) ->
    lasting(Deed, {delay, From, To}, Ms > 0, event(delay, From, {To, Ms}, Place, Deeds), Deeds);
do({bulk, From, To, Rate} = Deed, Place, Deeds) ->
    lasting(Deed, {bulk, From, To}, Rate =/= 0, event(bulk, From, {To, Rate}, Place, Deeds), Deeds);
do({lane, _, _, Number, Fault} = Deed, Place, Deeds0) ->
    {Outcomes, Deeds1} = acts(Deed, Deeds0),
    lists:foldl(
        fun({{lane, Node, Peer, _, _}, Outcome}, S0) ->
            Event = event(lane, [Node], {Peer, Number, Fault}, Place, S0),
            case Outcome of
                ok when Fault =:= cut ->
                    {_, S} = add(Event, S0),
                    S;
                ok ->
                    {Id, S} = add(Event, S0),
                    opened({lane, Node, Peer, Number}, Id, S);
                %% There is no such lane at the moment.
                {error, {no_lane, _} = Why} ->
                    passed_over(Why, Event, S0);
                {error, Why} ->
                    {_, S} = add(Event#{outcome := failed, why => Why}, S0),
                    S
            end
        end,
        Deeds1,
        Outcomes
    );
do(heal, Place, Deeds0) ->
    {Outcomes, Deeds1} = resumed(heal, Deeds0),
    {_, Deeds} = add(all_judged(Outcomes, event(heal, [], none, Place, Deeds1)), Deeds1),
    closed(fun is_healed/1, Deeds);
do(_Other, _Place, Deeds) ->
    Deeds.

%% What lasts until it is said anew.
lasting(Deed, Key, Lasts, Event, Deeds0) ->
    {Outcomes, Deeds1} = acts(Deed, Deeds0),
    Deeds2 = closed(fun(Open) -> Open =:= Key end, Deeds1),
    {Id, Deeds} = add(all_judged(Outcomes, Event), Deeds2),
    case Lasts of
        true -> opened(Key, Id, Deeds);
        false -> Deeds
    end.

%% What a node that ends has no more of.
is_of(Nodes) ->
    fun
        ({What, Node}) when What =:= paused; What =:= slow -> lists:member(Node, Nodes);
        (_) -> false
    end.

is_healed(partition) -> true;
is_healed({cut, _, _}) -> true;
is_healed({slow, _}) -> true;
is_healed(Key) when element(1, Key) =:= black_hole; element(1, Key) =:= loss -> true;
is_healed(Key) when element(1, Key) =:= delay; element(1, Key) =:= lane; element(1, Key) =:= bulk -> true;
is_healed(_) -> false.

request({new, Name, Nodes}) -> {s_group, new_s_group, [Name, Nodes]};
request({add, Name, Nodes}) -> {s_group, add_nodes, [Name, Nodes]};
request({remove, Name, Nodes}) -> {s_group, remove_nodes, [Name, Nodes]};
request({delete, Name}) -> {s_group, delete_s_group, [Name]}.

claim(#deeds{job = #{run := Run, keeper := Keeper, backend := Backend}}) ->
    atoll_chaos_keeper:claim(Run, Keeper, Backend).

owner(Deeds) ->
    {_, Owner} = claim(Deeds),
    Owner.

call(Node, MFA, Ms, #deeds{job = #{backend := {Module, B}}}) -> Module:call(B, Node, MFA, Ms).

acts(Deed, #deeds{damage = Damage0} = Deeds) ->
    did(atoll_chaos_damage:take(Deed, Damage0), Deeds).

did({Acts, Damage}, #deeds{job = #{keeper := Keeper}, overlay = Overlay} = Deeds) ->
    Us = os:system_time(microsecond),
    try atoll_chaos_keeper:do(Keeper, Acts, Damage) of
        Outcomes ->
            Noted = atoll_chaos_overlay:did(Us, [Act || {Act, ok} <- Outcomes], Overlay),
            {Outcomes, Deeds#deeds{damage = Damage, overlay = Noted}}
    catch
        exit:{_, {gen_server, call, _}} -> throw({keeper_lost, Damage})
    end.

%% Acts of which some let nodes go on: each of these is asked at once whether it is
%% there, before the next act, for its time counts from its own.
resumed(Deed, #deeds{damage = Damage0} = Deeds0) ->
    {Acts, Damage} = atoll_chaos_damage:take(Deed, Damage0),
    lists:foldl(
        fun(Act, {Outcomes, S0}) ->
            Since = erlang:monotonic_time(microsecond),
            {Outcome, S} = did({[Act], Damage}, S0),
            {Outcomes ++ Outcome, gone_on(Act, Since, S)}
        end,
        {[], Deeds0#deeds{damage = Damage}},
        Acts
    ).

noted(Us, Nodes, Did, #deeds{overlay = Overlay} = Deeds) ->
    Deeds#deeds{overlay = atoll_chaos_overlay:note(Us, Nodes, Did, Overlay)}.

%% A process of its own does what takes time; its end tells.
look(Watch, Fun, Deeds) ->
    look(Watch, Fun, erlang:monotonic_time(microsecond), Deeds).

look(Watch, Fun, Since, #deeds{watches = Watches} = Deeds) ->
    {_, Ref} = spawn_monitor(fun() -> exit({?MODULE, timed(Fun, Since)}) end),
    Deeds#deeds{watches = Watches#{Ref => Watch}}.

timed(Fun, Since) ->
    Result = Fun(),
    {(erlang:monotonic_time(microsecond) - Since) / 1000, Result}.

start_node(Node, #deeds{job = #{backend := {Module, B}}, left = Left} = Deeds) ->
    Us = os:system_time(microsecond),
    Begin = fun() ->
        case Module:start(B, Node) of
            ok -> begun(Node, Deeds);
            {error, _} = Error -> Error
        end
    end,
    look({start, Node, Us}, Begin, Deeds#deeds{left = maps:remove(Node, Left)}).

begun(Node, #deeds{overlay = Overlay, job = #{told := Told}} = Deeds) ->
    atoll_chaos_overlay:attach(Node, owner(Deeds), maps:get(Node, Told, []), Overlay).

%% A node that goes on is there again when it answers.
gone_on({resume, Node}, Since, #deeds{log = Log0, job = #{deadline_ms := Deadline}} = Deeds0) ->
    case atoll_chaos_log:youngest({paused, Node}, Log0) of
        {ok, Id} ->
            Deeds = closed(fun(Key) -> Key =:= {paused, Node} end, Deeds0),
            look({answer, Id}, fun() -> call(Node, {erlang, node, []}, Deadline, Deeds) end, Since, Deeds);
        none ->
            Deeds0
    end;
gone_on(_Act, _Since, Deeds) ->
    Deeds.

%% What became of it

%% @doc A node has broadcast that number.
-spec sent(Us :: integer(), node(), Id :: non_neg_integer(), deeds()) -> deeds().
sent(Us, Node, Id, Deeds) ->
    noted(Us, [Node], {sends, Id}, Deeds).

%% @doc The process of that monitor has ended; `unknown' if it looked after nothing.
-spec ended(reference(), Reason :: term(), deeds()) -> {ok, deeds()} | unknown.
ended(Ref, Reason, #deeds{watches = Watches} = Deeds) ->
    case maps:take(Ref, Watches) of
        {Watch, Left} -> {ok, watched(Watch, result(Reason), Deeds#deeds{watches = Left})};
        error -> unknown
    end.

result({?MODULE, Result}) -> Result;
result({atoll_chaos_sender, Result}) -> {0, Result};
result(Crash) -> {error, Crash}.

watched({process, Id}, {_, {ok, {killed, Node, Path, Recovered}}}, Deeds) ->
    amend(Id, #{nodes => [Node], target => Path, recovered_ms => Recovered}, Deeds);
watched({process, Id}, {_, {ok, {killed, Path, Recovered}}}, Deeds) ->
    amend(Id, #{target => Path, recovered_ms => Recovered}, Deeds);
watched({process, Id}, {_, {ok, {passed_over, Why}}}, Deeds) ->
    amend(Id, #{outcome => passed_over, why => Why}, Deeds);
watched({About, Id}, {Ms, {ok, Answer}}, Deeds) when About =:= group; About =:= name ->
    amend(Id, #{answer => Answer, took_ms => round(Ms)}, Deeds);
watched({answer, Id}, {Ms, {ok, _}}, Deeds) ->
    amend(Id, #{recovered_ms => Ms}, Deeds);
watched({answer, Id}, _, Deeds) ->
    amend(Id, #{recovered_ms => never}, Deeds);
watched({start, Node, Us}, {_, ok}, #deeds{damage = Damage} = Deeds0) ->
    {_, Deeds} = did(atoll_chaos_damage:started(Node, Damage), noted(Us, [Node], started, Deeds0)),
    Now = now_ms(Deeds),
    {Mine, Log} = atoll_chaos_log:take_open(fun(Key) -> Key =:= {down, Node} end, Deeds#deeds.log),
    lists:foldl(
        fun({Id, Since}, S) -> amend(Id, #{recovered_ms => Now - Since}, S) end,
        Deeds#deeds{log = Log},
        Mine
    );
watched({start, Node, _}, Failed, #deeds{log = Log} = Deeds) ->
    %% Who started it is the youngest.
    case atoll_chaos_log:youngest({down, Node}, Log) of
        {ok, Id} -> amend(Id, #{outcome => failed, why => why(Failed)}, Deeds);
        none -> Deeds
    end;
watched({leave, _, _}, {_, {ok, Left}}, Deeds) when Left =:= ok; element(1, Left) =:= still_in ->
    Deeds;
watched({leave, _, Id}, Failed, Deeds) ->
    amend(Id, #{outcome => failed, why => why(Failed)}, Deeds);
watched({broadcast, _, _}, {_, ok}, Deeds) ->
    Deeds;
watched({broadcast, Id, _}, Failed, Deeds) ->
    amend(Id, #{outcome => failed, why => why(Failed)}, Deeds);
watched({_, Id}, Failed, Deeds) ->
    amend(Id, #{outcome => failed, why => why(Failed)}, Deeds).

why({_, {ok, {error, Reason}}}) -> Reason;
why({_, {error, Reason}}) -> Reason;
why({error, Reason}) -> Reason;
why(Other) -> Other.

%% The end

%% @doc The result of the run, with what came of healing.
-spec over(healed(), facts(), deeds()) -> result().
over(Healed, Facts, Deeds0) ->
    Deeds1 = lists:foldl(fun not_healed/2, Deeds0, Healed),
    %% What is down still never came back.
    {Down, Log0} = atoll_chaos_log:take_open(fun is_down/1, Deeds1#deeds.log),
    Log = lists:foldl(fun({Id, _}, L) -> atoll_chaos_log:amend(Id, #{recovered_ms => never}, L) end, Log0, Down),
    Facts#{
        events => atoll_chaos_log:events(Log),
        left_out => atoll_chaos_log:left_out(Log),
        ms => now_ms(Deeds1)
    }.

is_down({down, _}) -> true;
is_down(_) -> false.

%% What was to start did not; or something stays on a node that could be reached.
not_healed({{start, Node}, {error, Why}}, Deeds) when Why =/= {unreachable, Node, {node_up, Node}} ->
    failed_to_heal(start, Node, Why, Deeds);
not_healed({{rest, Node}, {error, Why}}, #deeds{damage = Damage} = Deeds) ->
    case atoll_chaos_damage:is_down(Node, Damage) of
        true -> Deeds;
        false -> failed_to_heal(rest, Node, Why, Deeds)
    end;
not_healed(_, Deeds) ->
    Deeds.

failed_to_heal(Act, Node, Why, Deeds0) ->
    Event = event(heal, [Node], Act, none, Deeds0),
    {_, Deeds} = add(Event#{outcome := failed, why => Why}, Deeds0),
    Deeds.

%% @doc What is said of the nodes when all is healed and looked after, and before what the run
%% has brought to them is taken away.
-spec facts(deeds()) -> {facts(), deeds()}.
facts(#deeds{overlay = Overlay0, damage = Damage, expectations = Expectations} = Deeds) ->
    #deeds{has_groups = HasGroups, has_names = HasNames} = Deeds,
    Awake = atoll_chaos_damage:awake(Damage),
    Settled = atoll_chaos_overlay:settle(Awake, Overlay0),
    {Groups, Names, Overlay} =
        case HasGroups orelse HasNames of
            true -> atoll_chaos_overlay:agree(Awake, ?SETTLE_MS, Settled);
            false -> {none, none, Settled}
        end,
    Facts = #{
        groups => if_so(HasGroups, Groups),
        names => if_so(HasNames, Names),
        overlay => atoll_chaos_overlay:facts(Awake, Overlay),
        expectations => Expectations,
        failed => atoll_chaos_overlay:failed(Overlay),
        unseen => atoll_chaos_overlay:dropped(Overlay)
    },
    {Facts, Deeds#deeds{overlay = Overlay}}.

if_so(true, What) -> What;
if_so(false, _What) -> none.

%% The log

event(Fault, Nodes, Target, Place, Deeds) ->
    Event = #{
        at_ms => now_ms(Deeds),
        fault => Fault,
        nodes => Nodes,
        target => Target,
        outcome => done,
        recovered_ms => none
    },
    case Place of
        none -> Event;
        _ -> Event#{place => Place}
    end.

passed_over(Why, Event, Deeds0) ->
    {_, Deeds} = add(Event#{outcome := passed_over, why => Why}, Deeds0),
    Deeds.

judged(Act, Outcomes, Event) ->
    case lists:keyfind(Act, 1, Outcomes) of
        {Act, {error, Why}} -> Event#{outcome := failed, why => Why};
        _ -> Event
    end.

all_judged(Outcomes, Event) ->
    case [Why || {_, {error, Why}} <- Outcomes] of
        [] -> Event;
        [Why | _] -> Event#{outcome := failed, why => Why}
    end.

add(Event, #deeds{log = Log0, job = #{on_event := OnEvent}} = Deeds) ->
    _ = OnEvent(Event),
    {Id, Log} = atoll_chaos_log:add(Event, Log0),
    {Id, Deeds#deeds{log = Log}}.

amend(Id, More, #deeds{log = Log} = Deeds) ->
    Deeds#deeds{log = atoll_chaos_log:amend(Id, More, Log)}.

opened(Key, Id, Deeds) ->
    opened(Key, Id, now_ms(Deeds), Deeds).

opened(Key, Id, Since, #deeds{log = Log} = Deeds) ->
    Deeds#deeds{log = atoll_chaos_log:open(Key, Id, Since, Log)}.

closed(Is, #deeds{log = Log} = Deeds) ->
    Deeds#deeds{log = atoll_chaos_log:close(Is, now_ms(Deeds), Log)}.

first_closed(Key, #deeds{log = Log} = Deeds) ->
    Deeds#deeds{log = atoll_chaos_log:close_first(Key, now_ms(Deeds), Log)}.
