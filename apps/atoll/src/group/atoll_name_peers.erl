%% @doc A node's conversations with all its peers: who is there, what is to be sent
%% and when, and who is silent. Data only; {@link atoll_name_channel} is one
%% conversation.
%%
%% What is said in one event, and in those that wait in the mailbox by then, goes to each peer
%% in one message. A peer is ticked only while something is owed: where nothing is said
%% there is no timer.
-module(atoll_name_peers).

-export([new/2, up/3, down/2, is_up/2, connected/1, push/3, allow/2, take/4]).
-export([flush/2, tick/2, timers/2, is_silent/2, begin_anew/3, leave_alone/2, clear_unresponsive/2, unresponsive/1]).
-export([absent/2, present/2, is_absent/2, absent_only/2, probe/4]).

-export_type([peers/0, limits/0, effect/0]).

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
    {send, node(), atoll_name_channel:wire()}
    | {timer, flush | tick | {unresponsive, node()}, non_neg_integer()}
    | {cancel, {unresponsive, node()}}.

-record(peers, {
    limits :: limits(),
    %% Makes sessions unique for ever; how many there were.
    incarnation :: non_neg_integer(),
    sessions = 0 :: non_neg_integer(),
    channels = #{} :: #{node() => atoll_name_channel:channel()},
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

-opaque peers() :: #peers{}.

%% After how many times `answer_ms' an unresponsive node is spoken to again.
-define(ASK_AGAIN, 20).

%% @doc Nobody is there.
-spec new(Incarnation :: non_neg_integer(), limits()) -> peers().
new(Incarnation, Limits) -> #peers{incarnation = Incarnation, limits = Limits}.

%% @doc A conversation with that peer begins, over a new connection or anew.
-spec up(node(), atoll_protocol:now_ms(), peers()) -> peers().
up(Peer, Now, #peers{limits = Limits} = Peers0) ->
    {Session, #peers{channels = Channels} = Peers} = session(Peers0),
    Peers#peers{channels = Channels#{Peer => atoll_name_channel:new(Session, Limits, Now)}}.

session(#peers{incarnation = Incarnation, sessions = N} = Peers) ->
    {{Incarnation, N + 1}, Peers#peers{sessions = N + 1}}.

%% @doc The connection is gone.
-spec down(node(), peers()) -> peers().
down(Peer, #peers{channels = Channels, dirty = Dirty} = Peers) ->
    Peers#peers{channels = maps:remove(Peer, Channels), dirty = maps:remove(Peer, Dirty)}.

%% @doc Whether there is a conversation with it.
-spec is_up(node(), peers()) -> boolean().
is_up(Peer, #peers{channels = Channels}) -> is_map_key(Peer, Channels).

%% @doc With whom there is one, sorted.
-spec connected(peers()) -> [node()].
connected(#peers{channels = Channels}) -> lists:sort(maps:keys(Channels)).

%% @doc Something to say to that peer, if it is there.
-spec push(node(), Item :: term(), peers()) -> peers().
push(Peer, Item, #peers{channels = Channels, dirty = Dirty} = Peers) ->
    case Channels of
        #{Peer := Channel} ->
            Pushed = Channels#{Peer := atoll_name_channel:push(Item, Channel)},
            Peers#peers{channels = Pushed, dirty = Dirty#{Peer => []}};
        #{} ->
            Peers
    end.

%% @doc What waits for it now is this node's doing.
-spec allow(node(), peers()) -> peers().
allow(Peer, #peers{channels = Channels} = Peers) ->
    #{Peer := Channel} = Channels,
    Peers#peers{channels = Channels#{Peer := atoll_name_channel:allow(Channel)}}.

%% @doc What came from a peer that is there: how its stream goes on, and what it says.
-spec take(atoll_name_channel:wire(), node(), atoll_protocol:now_ms(), peers()) ->
    {atoll_name_channel:what(), Items :: [term()], peers()}.
take(Wire, Peer, Now, Peers0) ->
    {Session, #peers{channels = Channels, dirty = Dirty0} = Peers} = session(Peers0),
    #{Peer := Channel0} = Channels,
    {What, Items, Channel} = atoll_name_channel:take(Wire, {Session, Now}, Channel0),
    Dirty =
        case atoll_name_channel:is_due(Channel) of
            true -> Dirty0#{Peer => []};
            false -> Dirty0
        end,
    {What, Items, Peers#peers{channels = Channels#{Peer := Channel}, dirty = Dirty}}.

%% @doc What can be sent now, and to whom more waits than may.
-spec flush(atoll_protocol:now_ms(), peers()) -> {[effect()], Slow :: [node()], peers()}.
flush(Now, #peers{dirty = Dirty} = Peers) ->
    lists:foldl(
        fun(Peer, Sofar) -> flush(Peer, Now, Sofar) end,
        {[], [], Peers#peers{dirty = #{}, flushing = false}},
        lists:reverse(lists:sort(maps:keys(Dirty)))
    ).

flush(Peer, Now, {Effects, Slow, #peers{channels = Channels, limits = #{max_backlog := Max}} = Peers}) ->
    #{Peer := Channel0} = Channels,
    {Wires, Channel} = atoll_name_channel:flush(Now, Channel0),
    {
        sends(Peer, Wires, Effects),
        [Peer || atoll_name_channel:backlog(Channel) > Max] ++ Slow,
        Peers#peers{channels = Channels#{Peer := Channel}}
    }.

sends(Peer, Wires, Effects) -> [{send, Peer, Wire} || Wire <- Wires] ++ Effects.

%% @doc What has to be said again or acknowledged by now, and who was silent for too
%% long, each with whether it has ever said anything. Where it is this node that did
%% nothing for a while, nobody was.
-spec tick(atoll_protocol:now_ms(), peers()) -> {[effect()], Silent :: [{node(), boolean()}], peers()}.
tick(Now, #peers{ticking = Due, channels = Channels, limits = #{answer_ms := Ms}} = Peers) ->
    IsLate = Now - Due > Ms div 2,
    lists:foldr(
        fun({Peer, Channel}, Sofar) -> tick(Peer, Channel, IsLate, Now, Sofar) end,
        {[], [], Peers#peers{ticking = false}},
        lists:sort(maps:to_list(Channels))
    ).

tick(Peer, Channel0, IsLate, Now, {Effects, Silent, #peers{channels = Channels} = Peers}) ->
    Excused =
        case IsLate of
            true -> atoll_name_channel:excuse(Now, Channel0);
            false -> Channel0
        end,
    {Verdict, Wires, Channel} = atoll_name_channel:tick(Now, Excused),
    {
        sends(Peer, Wires, Effects),
        [{Peer, atoll_name_channel:has_spoken(Channel)} || Verdict =:= silent] ++ Silent,
        Peers#peers{channels = Channels#{Peer := Channel}}
    }.

%% @doc The timers that have to be set after an event.
-spec timers(atoll_protocol:now_ms(), peers()) -> {[effect()], peers()}.
timers(_Now, #peers{dirty = Dirty, flushing = Flushing, ticking = Ticking} = Peers) when
    (map_size(Dirty) =:= 0 orelse Flushing) andalso is_integer(Ticking)
->
    {[], Peers};
timers(Now, #peers{dirty = Dirty, flushing = Flushing, ticking = Ticking, channels = Channels, limits = Limits} = Peers) ->
    #{tick_ms := Ms} = Limits,
    Flush = map_size(Dirty) > 0 andalso not Flushing,
    Tick = Ticking =:= false andalso not lists:all(fun atoll_name_channel:is_quiet/1, maps:values(Channels)),
    {
        [{timer, flush, 0} || Flush] ++ [{timer, tick, Ms} || Tick],
        Peers#peers{
            flushing = Flushing orelse Flush,
            ticking =
                case Tick of
                    true -> Now + Ms;
                    false -> Ticking
                end
        }
    }.

%% @doc Whether there is a conversation with it, and it has acknowledged nothing for too long.
-spec is_silent(node(), peers()) -> boolean().
is_silent(Peer, #peers{channels = Channels}) ->
    case Channels of
        #{Peer := Channel} -> atoll_name_channel:is_silent(Channel);
        #{} -> false
    end.

%% @doc What waits for that peer is given up: this node's stream to it begins anew.
-spec begin_anew(node(), atoll_protocol:now_ms(), peers()) -> peers().
begin_anew(Peer, Now, Peers0) ->
    {Session, #peers{channels = Channels} = Peers} = session(Peers0),
    #{Peer := Channel} = Channels,
    Peers#peers{channels = Channels#{Peer := atoll_name_channel:begin_anew(Session, Now, Channel)}}.

%% @doc That node, with which there is no conversation, is left alone for a while.
-spec leave_alone(node(), peers()) -> {[effect()], peers()}.
leave_alone(Peer, #peers{unresponsive = Unresponsive, limits = #{answer_ms := Ms}} = Peers) ->
    {[{timer, {unresponsive, Peer}, ?ASK_AGAIN * Ms}], Peers#peers{unresponsive = Unresponsive#{Peer => []}}}.

%% @doc It is unresponsive no more.
-spec clear_unresponsive(node(), peers()) -> {[effect()], peers()}.
clear_unresponsive(Peer, #peers{unresponsive = Unresponsive} = Peers) when is_map_key(Peer, Unresponsive) ->
    {[{cancel, {unresponsive, Peer}}], Peers#peers{unresponsive = maps:remove(Peer, Unresponsive)}};
clear_unresponsive(_Peer, Peers) ->
    {[], Peers}.

%% @doc Who is unresponsive, sorted.
-spec unresponsive(peers()) -> [node()].
unresponsive(#peers{unresponsive = Unresponsive}) -> lists:sort(maps:keys(Unresponsive)).

%% @doc This does not run on that node.
-spec absent(node(), peers()) -> peers().
absent(Peer, #peers{absent = Absent} = Peers) -> Peers#peers{absent = Absent#{Peer => []}}.

%% @doc It runs there again.
-spec present(node(), peers()) -> peers().
present(Peer, #peers{absent = Absent} = Peers) -> Peers#peers{absent = maps:remove(Peer, Absent)}.

%% @doc Whether it is known not to run there.
-spec is_absent(node(), peers()) -> boolean().
is_absent(Peer, #peers{absent = Absent}) -> is_map_key(Peer, Absent).

%% @doc What is known of others than these is forgotten.
-spec absent_only(fun((node()) -> boolean()), peers()) -> peers().
absent_only(IsOne, #peers{absent = Absent} = Peers) ->
    Peers#peers{absent = maps:filter(fun(Peer, []) -> IsOne(Peer) end, Absent)}.

%% @doc Says one thing to a node with which there is no conversation, and does not wait for
%% an answer: should this run there, it speaks then.
-spec probe(node(), Item :: term(), atoll_protocol:now_ms(), peers()) -> {[effect()], peers()}.
probe(Peer, Item, Now, #peers{limits = Limits} = Peers0) ->
    {Session, Peers} = session(Peers0),
    {Wires, _} = atoll_name_channel:flush(Now, atoll_name_channel:push(Item, atoll_name_channel:new(Session, Limits, Now))),
    {sends(Peer, Wires, []), Peers}.
