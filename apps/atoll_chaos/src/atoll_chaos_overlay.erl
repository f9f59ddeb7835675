%% SPDX-License-Identifier: Apache-2.0
%% @doc Real nodes as a run of faults sees them: it has witnesses on those that run an
%% overlay, asks all for what readers find there, and says whether what a script expects holds.
%%
%% Nodes are asked all at once, but they answer at slightly different moments, and a
%% link has two ends: what does not hold is looked at again for a second before it is
%% said to have failed. A node that is paused, or does not answer, cannot be asked and
%% is left out.
-module(atoll_chaos_overlay).

-export([is_on/1, open/4, attach/4, did/3, note/4, expect/5, settle/2, agree/3, facts/2, failed/1, dropped/1]).

-export_type([overlay/0, failure/0]).

-type failure() :: atoll_sim_play:failure().

-record(overlay, {
    backend :: atoll_chaos_backend:backend(),
    %% Whether the nodes run an overlay.
    is_on :: boolean(),
    records = [] :: [atoll_chaos_sights:note()],
    %% What the witnesses have not kept.
    dropped = 0 :: non_neg_integer(),
    %% Newest first.
    failed = [] :: [failure()]
}).

-opaque overlay() :: #overlay{}.

-define(CALL_MS, 5000).
-define(AGAIN_MS, 1000).
%% An island without contacts finds out in half a minute that it is one, and joins
%% within another.
-define(SETTLE_MS, 90000).
-define(STABLE_MS, 3000).
%% How long a broadcast that not all have is waited for, in a graph that is well.
-define(MISSING_MS, 10000).
-define(LOOK_MS, 200).

%% @doc Whether these nodes run an overlay, as far as they answer.
-spec is_on(atoll_chaos_backend:backend()) -> boolean().
is_on({Module, B} = Backend) ->
    Answers = [Answer || {_, Answer} <- ask(Backend, Module:nodes(B), {atoll, status, []}), is_answer(Answer)],
    Answers =/= [] andalso lists:all(fun is_overlay/1, Answers).

is_answer({error, {unreachable, _, _}}) -> false;
is_answer(_) -> true.

is_overlay({ok, #{overlay := #{}}}) -> true;
is_overlay(_) -> false.

%% @doc Begins to watch these nodes, which run, and have an overlay or none. The witnesses end
%% with the owner.
-spec open(IsOn :: boolean(), atoll_chaos_backend:backend(), [node()], Owner :: pid() | none) -> overlay().
open(IsOn, Backend, Nodes, Owner) ->
    Us = now_us(),
    _ = [ask(Backend, Nodes, {atoll_chaos_witness, ensure, [Owner]}) || IsOn],
    #overlay{is_on = IsOn, backend = Backend, records = [{Us, Node, started} || Node <- Nodes]}.

%% @doc Has a node that has just started told what it has to know, and watched.
-spec attach(node(), Owner :: pid() | none, [{module(), atom(), [term()]}], overlay()) -> ok.
attach(_Node, _Owner, _Calls, #overlay{is_on = false}) ->
    ok;
attach(Node, Owner, Calls, #overlay{backend = {Module, B}}) ->
    %% Of a node that is gone again somebody else hears.
    _ = [Module:call(B, Node, Call, ?CALL_MS) || Call <- [{atoll_chaos_witness, ensure, [Owner]} | Calls]],
    ok.

%% @doc This was done to nodes, at a time or just now.
-spec note(Us :: integer() | now, [node()], atoll_chaos_sights:did(), overlay()) -> overlay().
note(now, Nodes, Did, Overlay) ->
    note(now_us(), Nodes, Did, Overlay);
note(Us, Nodes, Did, #overlay{records = Records} = Overlay) ->
    Overlay#overlay{records = [{Us, Node, Did} || Node <- Nodes] ++ Records}.

%% @doc These acts were done, begun at that time. What a killed node has said since it
%% was last asked is lost.
-spec did(Begun :: integer(), [atoll_chaos_damage:act()], overlay()) -> overlay().
did(Us, Acts, Overlay) ->
    lists:foldl(
        fun
            ({kill, Node}, O) -> note(Us, [Node], killed, O);
            ({pause, Node}, O) -> note(Us, [Node], paused, O);
            ({resume, Node}, O) -> note(now, [Node], resumed, O);
            (_, O) -> O
        end,
        Overlay,
        Acts
    ).

%% @doc Whether it holds among these nodes, now or within a second; a failure is kept.
-spec expect(atoll_sim_step:expectation(), atoll_sim_script:place(), Ms :: non_neg_integer(), [node()], overlay()) ->
    {true | {false, atoll_sim_expect:was()}, overlay()}.
expect(Expectation, Place, Ms, Nodes, Overlay0) ->
    case holds_until(Expectation, erlang:monotonic_time(millisecond) + ?AGAIN_MS, Nodes, Overlay0) of
        {true, Overlay} ->
            {true, Overlay};
        {{false, Was}, #overlay{failed = Failed} = Overlay} ->
            Failure = #{place => Place, ms => Ms, expectation => Expectation, was => Was},
            {{false, Was}, Overlay#overlay{failed = [Failure | Failed]}}
    end.

%% @doc Waits until these nodes agree on their groups and their names, at most for so long.
-spec agree([node()], Ms :: non_neg_integer(), overlay()) ->
    {atoll_sim_expect:groups(), atoll_sim_expect:names(), overlay()}.
agree(Nodes, Ms, Overlay) ->
    agree_until(erlang:monotonic_time(millisecond) + Ms, Nodes, Overlay).

agree_until(Deadline, Nodes, Overlay0) ->
    {Views, #overlay{records = Records} = Overlay} = asked(Nodes, Overlay0),
    Seen = atoll_chaos_sights:seen(Records),
    Agree = lists:all(fun(Expectation) -> atoll_sim_expect:holds(Expectation, Views, Seen) =:= true end, [groups, names]),
    case Agree orelse erlang:monotonic_time(millisecond) >= Deadline of
        true ->
            {atoll_sim_expect:groups(Views), atoll_sim_expect:names(Views), Overlay};
        false ->
            %% Members tell each other in their own time, and nobody else.
            receive
            after ?LOOK_MS -> agree_until(Deadline, Nodes, Overlay)
            end
    end.

%% @doc Waits until these nodes are one part and agree about their links, for three
%% seconds the same, and the broadcasts have arrived, or for ten if one has not; at most
%% a minute and a half: that long a simulated cluster has, too.
-spec settle([node()], overlay()) -> overlay().
settle(_Nodes, #overlay{is_on = false} = Overlay) ->
    Overlay;
settle(Nodes, Overlay) ->
    Now = erlang:monotonic_time(millisecond),
    settle_until(Now + ?SETTLE_MS, {none, Now}, Nodes, Overlay).

settle_until(Deadline, {Before, Since0}, Nodes, Overlay0) ->
    {Views, #overlay{records = Records} = Overlay} = asked(Nodes, Overlay0),
    Graph = [{Node, Peers} || {Node, #{neighbours := Peers}} <- Views],
    Now = erlang:monotonic_time(millisecond),
    Since =
        case Graph of
            Before -> Since0;
            _ -> Now
        end,
    IsWell = fun(Expectation) ->
        atoll_sim_expect:holds(Expectation, Views, atoll_chaos_sights:seen(Records)) =:= true
    end,
    IsSettled =
        lists:all(IsWell, [{connected, 1}, symmetric]) andalso
            (Now - Since >= ?MISSING_MS orelse (Now - Since >= ?STABLE_MS andalso IsWell({delivered, 1}))),
    case IsSettled orelse Now >= Deadline of
        true ->
            Overlay;
        false ->
            receive
            after ?LOOK_MS -> settle_until(Deadline, {Graph, Since}, Nodes, Overlay)
            end
    end.

%% @doc What the overlay looks like in the end, in few numbers, if there is one.
-spec facts([node()], overlay()) -> atoll_sim_expect:facts() | none.
facts(_Nodes, #overlay{is_on = false}) ->
    none;
facts(Nodes, Overlay) ->
    {Views, #overlay{records = Records}} = asked(Nodes, Overlay),
    atoll_sim_expect:facts(Views, atoll_chaos_sights:seen(Records)).

%% @doc The expectations that did not hold, in order.
-spec failed(overlay()) -> [failure()].
failed(#overlay{failed = Failed}) ->
    lists:reverse(Failed).

%% @doc How many records the witnesses have not kept.
-spec dropped(overlay()) -> non_neg_integer().
dropped(#overlay{dropped = Dropped}) ->
    Dropped.

%% Nothing tells of another node's neighbours at the moment at which they change.
holds_until(Expectation, Deadline, Nodes, Overlay0) ->
    {Views, #overlay{records = Records} = Overlay} = asked(Nodes, Overlay0),
    Held = atoll_sim_expect:holds(Expectation, Views, atoll_chaos_sights:seen(Records)),
    case Held =:= true orelse erlang:monotonic_time(millisecond) >= Deadline of
        true ->
            {Held, Overlay};
        false ->
            receive
            after ?LOOK_MS -> holds_until(Expectation, Deadline, Nodes, Overlay)
            end
    end.

%% What readers find, and what the witnesses have written down since.
asked(Nodes, #overlay{is_on = IsOn, backend = Backend, records = Records, dropped = Dropped} = Overlay) ->
    Views = [{Node, View} || {Node, {ok, View}} <- ask(Backend, Nodes, {atoll_chaos_witness, view, []})],
    Said = [{Node, Taken} || IsOn, {Node, {ok, Taken}} <- ask(Backend, Nodes, {atoll_chaos_witness, take, []})],
    {Views, Overlay#overlay{
        records = [{Us, Node, What} || {Node, {New, _}} <- Said, {Us, What} <- New] ++ Records,
        dropped = Dropped + lists:sum([Count || {_, {_, Count}} <- Said])
    }}.

ask(Backend, Nodes, MFA) -> atoll_chaos_backend:ask(Backend, Nodes, MFA, ?CALL_MS).

now_us() -> os:system_time(microsecond).
