%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A node's sessions with all its peers: who is there, what is to be sent and when, and who is
%% silent. Data only; {@link atoll_session} is one session.
%%
%% What is said in one event, and in those that wait in the mailbox by then, goes to each peer
%% in one message. A peer is ticked only while something is owed: where nothing is said
%% there is no timer.
-module(atoll_sessions).

-export([new/2, up/3, down/2, is_up/2, connected/1, push/3, allow/2, take/4]).
-export([flush/2, tick/2, timers/2, is_silent/2, begin_anew/3, leave_alone/2, clear_unresponsive/2, unresponsive/1]).
-export([absent/2, present/2, is_absent/2, absent_only/2, probe/4, mark/2]).

-export_type([sessions/0, limits/0, effect/0]).

-type limits() :: #{
    batch := pos_integer(),
    window := pos_integer(),
    resend_ms := pos_integer(),
    answer_ms := pos_integer(),
    %% How often what is owed is looked at.
    tick_ms := pos_integer(),
    %% Items that wait for one peer before they are given up, and all is said anew.
    max_backlog := pos_integer(),
    _ => _
}.

-type effect() ::
    {send, node(), atoll_session:wire()}
    | {timer, flush | tick | {unresponsive, node()}, non_neg_integer()}
    | {cancel, {unresponsive, node()}}.

-record(sessions, {
    limits :: limits(),
    %% Makes ids unique for ever; how many there were.
    incarnation :: non_neg_integer(),
    begun = 0 :: non_neg_integer(),
    sessions = #{} :: #{node() => atoll_session:session()},
    %% Peers that something is to be sent to, when the mailbox is empty; whether the
    %% timer for that runs.
    dirty = #{} :: #{node() => []},
    flushing = false :: boolean(),
    %% When the next look at what is owed is due.
    ticking = false :: false | atoll_protocol:now_ms(),
    %% Connected, but as if they were not.
    unresponsive = #{} :: #{node() => []},
    %% Where this does not run, as far as is known; connected or not.
    absent = #{} :: #{node() => []}
}).

-opaque sessions() :: #sessions{}.

%% After how many times `answer_ms' an unresponsive node is spoken to again.
-define(ASK_AGAIN, 20).

%% @doc Nobody is there.
-spec new(Incarnation :: non_neg_integer(), limits()) -> sessions().
new(Incarnation, Limits) -> #sessions{incarnation = Incarnation, limits = Limits}.

%% @doc A session with that peer begins, over a new connection or anew.
-spec up(node(), atoll_protocol:now_ms(), sessions()) -> sessions().
up(Peer, Now, #sessions{limits = Limits} = All0) ->
    {Id, #sessions{sessions = Sessions} = All} = new_id(All0),
    All#sessions{sessions = Sessions#{Peer => atoll_session:new(Id, Limits, Now)}}.

new_id(#sessions{incarnation = Incarnation, begun = N} = All) ->
    {{Incarnation, N + 1}, All#sessions{begun = N + 1}}.

%% @doc The connection is gone.
-spec down(node(), sessions()) -> sessions().
down(Peer, #sessions{sessions = Sessions, dirty = Dirty} = All) ->
    All#sessions{sessions = maps:remove(Peer, Sessions), dirty = maps:remove(Peer, Dirty)}.

%% @doc Whether there is a session with it.
-spec is_up(node(), sessions()) -> boolean().
is_up(Peer, #sessions{sessions = Sessions}) -> is_map_key(Peer, Sessions).

%% @doc With whom there is one, sorted.
-spec connected(sessions()) -> [node()].
connected(#sessions{sessions = Sessions}) -> lists:sort(maps:keys(Sessions)).

%% @doc Something to say to that peer, if it is there.
-spec push(node(), Item :: term(), sessions()) -> sessions().
push(Peer, Item, #sessions{sessions = Sessions, dirty = Dirty} = All) ->
    case Sessions of
        #{Peer := Session} ->
            Pushed = Sessions#{Peer := atoll_session:push(Item, Session)},
            All#sessions{sessions = Pushed, dirty = Dirty#{Peer => []}};
        #{} ->
            All
    end.

%% @doc What waits for it now is this node's doing.
-spec allow(node(), sessions()) -> sessions().
allow(Peer, #sessions{sessions = Sessions} = All) ->
    #{Peer := Session} = Sessions,
    All#sessions{sessions = Sessions#{Peer := atoll_session:allow(Session)}}.

%% @doc What came from a peer that is there: how its stream goes on, and what it says.
-spec take(atoll_session:wire(), node(), atoll_protocol:now_ms(), sessions()) ->
    {atoll_session:what(), Items :: [term()], sessions()}.
take(Wire, Peer, Now, All0) ->
    {Id, #sessions{sessions = Sessions, dirty = Dirty0} = All} = new_id(All0),
    #{Peer := Session0} = Sessions,
    {What, Items, Session} = atoll_session:take(Wire, {Id, Now}, Session0),
    Dirty =
        case atoll_session:is_due(Session) of
            true -> Dirty0#{Peer => []};
            false -> Dirty0
        end,
    {What, Items, All#sessions{sessions = Sessions#{Peer := Session}, dirty = Dirty}}.

%% @doc What can be sent now, and to whom more waits than may.
-spec flush(atoll_protocol:now_ms(), sessions()) -> {[effect()], Slow :: [node()], sessions()}.
flush(Now, #sessions{dirty = Dirty} = All) ->
    lists:foldl(
        fun(Peer, Sofar) -> flush(Peer, Now, Sofar) end,
        {[], [], All#sessions{dirty = #{}, flushing = false}},
        lists:reverse(lists:sort(maps:keys(Dirty)))
    ).

flush(Peer, Now, {Effects, Slow, #sessions{sessions = Sessions, limits = #{max_backlog := Max}} = All}) ->
    #{Peer := Session0} = Sessions,
    {Wires, Session} = atoll_session:flush(Now, Session0),
    {
        sends(Peer, Wires, Effects),
        [Peer || atoll_session:backlog(Session) > Max] ++ Slow,
        All#sessions{sessions = Sessions#{Peer := Session}}
    }.

sends(Peer, Wires, Effects) -> [{send, Peer, Wire} || Wire <- Wires] ++ Effects.

%% @doc What has to be said again or acknowledged by now, and who was silent for too
%% long, each with whether it has ever said anything. Where it is this node that did
%% nothing for a while, nobody was.
-spec tick(atoll_protocol:now_ms(), sessions()) -> {[effect()], Silent :: [{node(), boolean()}], sessions()}.
tick(Now, #sessions{ticking = Due, sessions = Sessions, limits = #{answer_ms := Ms}} = All) ->
    IsLate = Now - Due > Ms div 2,
    lists:foldr(
        fun({Peer, Session}, Sofar) -> tick(Peer, Session, IsLate, Now, Sofar) end,
        {[], [], All#sessions{ticking = false}},
        lists:sort(maps:to_list(Sessions))
    ).

tick(Peer, Session0, IsLate, Now, {Effects, Silent, #sessions{sessions = Sessions} = All}) ->
    Excused =
        case IsLate of
            true -> atoll_session:excuse(Now, Session0);
            false -> Session0
        end,
    {Verdict, Wires, Session} = atoll_session:tick(Now, Excused),
    {
        sends(Peer, Wires, Effects),
        [{Peer, atoll_session:has_spoken(Session)} || Verdict =:= silent] ++ Silent,
        All#sessions{sessions = Sessions#{Peer := Session}}
    }.

%% @doc The timers that have to be set after an event.
-spec timers(atoll_protocol:now_ms(), sessions()) -> {[effect()], sessions()}.
timers(_Now, #sessions{dirty = Dirty, flushing = Flushing, ticking = Ticking} = All) when
    (map_size(Dirty) =:= 0 orelse Flushing) andalso is_integer(Ticking)
->
    {[], All};
timers(Now, #sessions{dirty = Dirty, flushing = Flushing, ticking = Ticking, sessions = Sessions, limits = Limits} = All) ->
    #{tick_ms := Ms} = Limits,
    Flush = map_size(Dirty) > 0 andalso not Flushing,
    Tick = Ticking =:= false andalso not lists:all(fun atoll_session:is_quiet/1, maps:values(Sessions)),
    {
        [{timer, flush, 0} || Flush] ++ [{timer, tick, Ms} || Tick],
        All#sessions{
            flushing = Flushing orelse Flush,
            ticking =
                case Tick of
                    true -> Now + Ms;
                    false -> Ticking
                end
        }
    }.

%% @doc Whether there is a session with it, and it has acknowledged nothing for too long.
-spec is_silent(node(), sessions()) -> boolean().
is_silent(Peer, #sessions{sessions = Sessions}) ->
    case Sessions of
        #{Peer := Session} -> atoll_session:is_silent(Session);
        #{} -> false
    end.

%% @doc Changes with all that comes from that peer; `none' where there is no session with it.
-spec mark(node(), sessions()) -> none | atoll_session:mark().
mark(Peer, #sessions{sessions = Sessions}) ->
    case Sessions of
        #{Peer := Session} -> atoll_session:mark(Session);
        #{} -> none
    end.

%% @doc What waits for that peer is given up: this node's stream to it begins anew.
-spec begin_anew(node(), atoll_protocol:now_ms(), sessions()) -> sessions().
begin_anew(Peer, Now, All0) ->
    {Id, #sessions{sessions = Sessions} = All} = new_id(All0),
    #{Peer := Session} = Sessions,
    All#sessions{sessions = Sessions#{Peer := atoll_session:begin_anew(Id, Now, Session)}}.

%% @doc That node, with which there is no session, is left alone for a while.
-spec leave_alone(node(), sessions()) -> {[effect()], sessions()}.
leave_alone(Peer, #sessions{unresponsive = Unresponsive, limits = #{answer_ms := Ms}} = All) ->
    {[{timer, {unresponsive, Peer}, ?ASK_AGAIN * Ms}], All#sessions{unresponsive = Unresponsive#{Peer => []}}}.

%% @doc It is unresponsive no more.
-spec clear_unresponsive(node(), sessions()) -> {[effect()], sessions()}.
clear_unresponsive(Peer, #sessions{unresponsive = Unresponsive} = All) when is_map_key(Peer, Unresponsive) ->
    {[{cancel, {unresponsive, Peer}}], All#sessions{unresponsive = maps:remove(Peer, Unresponsive)}};
clear_unresponsive(_Peer, All) ->
    {[], All}.

%% @doc Who is unresponsive, sorted.
-spec unresponsive(sessions()) -> [node()].
unresponsive(#sessions{unresponsive = Unresponsive}) -> lists:sort(maps:keys(Unresponsive)).

%% @doc This does not run on that node.
-spec absent(node(), sessions()) -> sessions().
absent(Peer, #sessions{absent = Absent} = All) -> All#sessions{absent = Absent#{Peer => []}}.

%% @doc It runs there again.
-spec present(node(), sessions()) -> sessions().
present(Peer, #sessions{absent = Absent} = All) -> All#sessions{absent = maps:remove(Peer, Absent)}.

%% @doc Whether it is known not to run there.
-spec is_absent(node(), sessions()) -> boolean().
is_absent(Peer, #sessions{absent = Absent}) -> is_map_key(Peer, Absent).

%% @doc What is known of others than these is forgotten.
-spec absent_only(fun((node()) -> boolean()), sessions()) -> sessions().
absent_only(IsOne, #sessions{absent = Absent} = All) ->
    All#sessions{absent = maps:filter(fun(Peer, []) -> IsOne(Peer) end, Absent)}.

%% @doc Says one thing to a node with which there is no session, and does not wait for
%% an answer: should this run there, it speaks then.
-spec probe(node(), Item :: term(), atoll_protocol:now_ms(), sessions()) -> {[effect()], sessions()}.
probe(Peer, Item, Now, #sessions{limits = Limits} = All0) ->
    {Id, All} = new_id(All0),
    {Wires, _} = atoll_session:flush(Now, atoll_session:push(Item, atoll_session:new(Id, Limits, Now))),
    {sends(Peer, Wires, []), All}.
