%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process of the overlay on this node.
%%
%% {@link atoll_overlay_core} decides; this module connects it with the link room,
%% and publishes what it says: the members and the neighbours in a table, from which
%% readers take them without asking the process, and as events
%% ({@link atoll_events}). The table belongs to the supervisor, so that a reader
%% always finds it.
%%
%% After a crash of the process this node begins a new life in the overlay. What the
%% table holds is taken back event by event, with the reason `restarted', and comes
%% again as the node hears of it.
-module(atoll_overlay).

-behaviour(atoll_interpreter).

-export([start_link/1, create_table/0]).
-export([join/1, leave/0, contacts/1, tell/1, cliques/1, broadcast/2, broadcast/4, set_meta/1]).
-export([members/0, metas/0, neighbours/0, is_on/0, has_left/0, strategy/0, status/0]).
-export([open/1, act/2, event/2, notice/2]).

-export_type([config/0, error/0]).

-type config() :: #{
    strategy := {module(), atoll_options:options()},
    %% How long a join waits for a neighbour.
    join_ms := pos_integer(),
    contacts := [node()],
    detector := atoll_detector:spec(),
    broadcast := atoll_plumtree:options() | off,
    roster := map() | off,
    discovery := atoll_discovery:options() | off,
    %% What this node says of itself, until it says something else.
    meta := map()
}.

-type error() ::
    %% This node was configured to have none; the application does not run; a room was
    %% lost, and is being started again.
    overlay_off
    | not_running
    | restarting
    %% No contact could be joined by in time; it is still tried.
    | timeout
    %% Too many callers wait to join; or this node broadcasts faster than the others can be
    %% sure to get it, and nothing was sent.
    | overloaded
    %% To broadcast: this node has left, or was configured without; to ask for acknowledgements,
    %% or to say something of itself, it has to know all members.
    | left
    | broadcast_off
    | roster_off
    %% There are fewer members than are to acknowledge, and nothing was sent.
    | {too_few_members, pos_integer(), pos_integer()}
    %% These have not acknowledged in time, or are no members any more; or so many of so many
    %% have. It may have come to them still.
    | {unanswered, [node(), ...]}
    | {acknowledged, non_neg_integer(), pos_integer()}
    | atoll_roster_meta:error().

-record(world, {
    %% What had been received of each that is listened for when it was looked at last, and
    %% until when that counts.
    looks = #{} :: #{node() => {UntilMs :: integer(), Bytes :: non_neg_integer()}},
    %% Rows of the table.
    counts = #{member => 0, neighbour => 0} :: #{member | neighbour => non_neg_integer()},
    %% Since when each suspect is silent.
    silent = #{} :: #{node() => SinceMs :: integer()},
    %% When this node's present life began.
    born :: integer()
}).

-type world() :: #world{}.

%% With so many messages before it a broadcast is refused.
-define(MAX_WAITING, 1000).

%% @doc Makes the table; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, ordered_set, {read_concurrency, true}]),
    true = ets:insert(?MODULE, {refused, counters:new(1, [])}),
    ok.

%% @doc Starts the overlay's process of this node, in a new life.
-spec start_link(config()) -> gen_server:start_ret().
start_link(Config) ->
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_overlay_core,
        process => ?MODULE,
        %% A beat that waits for its turn among many processes that want to run comes too late. What
        %% is done here for one event is little.
        priority => high,
        config => Config#{
            self => node(),
            incarnation => erlang:system_time(microsecond),
            seed => rand:uniform(1 bsl 32),
            %% A node that was taken out of service stays out.
            left => has_left(),
            meta => own_meta(Config)
        }
    }).

%% What it has said outlives the process.
own_meta(#{meta := Configured}) ->
    case look_up(own_meta) of
        {ok, Said} -> Said;
        none -> Configured
    end.

%% @doc Joins the overlay by these nodes, and waits for a neighbour, but not for longer
%% than was configured.
-spec join([node()]) -> ok | {error, error()}.
join(Contacts) ->
    case look_up(join_ms) of
        {ok, Ms} -> call({join, Contacts, Ms});
        none -> {error, missing()}
    end.

%% @doc Leaves the overlay: the others are told, and hold it for no failure. Returns
%% when they have heard or a while has passed.
-spec leave() -> ok | {error, error()}.
leave() ->
    call(leave).

%% @doc Here are nodes that one may join by.
-spec contacts([node()]) -> ok.
contacts(Nodes) ->
    atoll_interpreter:cast(?MODULE, {contacts, Nodes}).

%% @doc Tells the strategy what only it knows, see {@link atoll_strategy}.
-spec tell(term()) -> ok | {error, error()}.
tell(Term) ->
    case look_up(strategy) of
        {ok, _} -> atoll_interpreter:cast(?MODULE, {tell, Term});
        none -> {error, missing()}
    end.

%% @doc These are all the cliques that this node is in: for the strategy `cliques', any
%% other has no use for them. The next life of the process is told them too.
-spec cliques([atoll_cliques:clique()]) -> ok.
cliques(Cliques) ->
    true = ets:insert(?MODULE, {cliques, Cliques}),
    tell_cliques().

tell_cliques() ->
    case {look_up(strategy), look_up(cliques)} of
        {{ok, atoll_cliques}, {ok, Cliques}} -> atoll_interpreter:cast(?MODULE, {tell, {cliques, Cliques}});
        _ -> ok
    end.

%% @doc Sends a payload to all members, this one included.
-spec broadcast(Topic :: term(), Payload :: term()) -> ok | {error, error()}.
broadcast(Topic, Payload) ->
    send({broadcast, {Topic, Payload}}).

%% @doc The same, and waits until so many members, or all, have acknowledged it, so long at most.
-spec broadcast(Topic :: term(), Payload :: term(), atoll_plumtree_waits:need(), Ms :: pos_integer()) ->
    {ok, [node()]} | {error, error()}.
broadcast(Topic, Payload, Need, Ms) ->
    send({broadcast, {Topic, Payload}, Need, Ms}).

%% Whoever is asked more than it can do is not asked more.
send(Request) ->
    case is_busy() of
        true ->
            {ok, Refused} = look_up(refused),
            ok = counters:add(Refused, 1, 1),
            {error, overloaded};
        false ->
            call(Request)
    end.

is_busy() ->
    Pid = whereis(?MODULE),
    Pid =/= undefined andalso
        case erlang:process_info(Pid, message_queue_len) of
            {message_queue_len, Waiting} -> Waiting > ?MAX_WAITING;
            undefined -> false
        end.

%% @doc Says to all members what this node is like, in the place of what it said before.
-spec set_meta(map()) -> ok | {error, error()}.
set_meta(Meta) ->
    case atoll_roster_meta:check(Meta) of
        ok -> call({set_meta, Meta});
        {error, _} = Error -> Error
    end.

%% @doc The members, each with what it says of itself.
-spec metas() -> [{node(), map()}].
metas() ->
    [{Node, meta(Node)} || Node <- members()].

meta(Node) ->
    case look_up({meta, Node}) of
        {ok, Meta} -> Meta;
        none -> #{}
    end.

%% @doc The members that this node knows of, in the order of their names, itself
%% included; none where there is no overlay.
-spec members() -> [node()].
members() ->
    published(member).

%% @doc The nodes with which this one holds a standing link, in the order of their
%% names.
-spec neighbours() -> [node()].
neighbours() ->
    published(neighbour).

%% @doc Whether there is an overlay, though its process may be being started again; or why not.
-spec is_on() -> ok | {error, overlay_off | not_running}.
is_on() ->
    case look_up(strategy) of
        {ok, _} -> ok;
        none -> {error, missing()}
    end.

%% @doc Whether this node has left, and not joined again.
-spec has_left() -> boolean().
has_left() ->
    look_up(left) =:= {ok, true}.

published(What) ->
    case ets:whereis(?MODULE) of
        undefined -> [];
        Table -> ets:select(Table, [{{{What, '$1'}, '_'}, [], ['$1']}])
    end.

%% @doc What the strategy is called, in the configuration too; `off' where there is no overlay.
-spec strategy() -> off | atom().
strategy() ->
    case look_up(strategy) of
        {ok, Module} -> hd([Name || Name <- atoll_strategy:names(), atoll_strategy:module(Name) =:= {ok, Module}] ++ [Module]);
        none -> off
    end.

%% @doc For people: what each part holds, and what was sent, received and dropped;
%% `off' where there is no overlay, or what is the matter.
-spec status() -> off | not_running | restarting | #{atom() => term()}.
status() ->
    case call(status) of
        {error, overlay_off} -> off;
        {error, Why} -> Why;
        #{} = Summary -> Summary#{counters => atoll_interpreter:counters(?MODULE), broadcasts_refused => refused()}
    end.

%% For the length of the queue; those for the rate are counted by the part itself.
refused() ->
    {ok, Refused} = look_up(refused),
    counters:get(Refused, 1).

look_up(Key) ->
    case ets:whereis(?MODULE) =/= undefined andalso ets:lookup(?MODULE, Key) of
        [{Key, Value}] -> {ok, Value};
        _ -> none
    end.

%% Why there is nothing to look up.
missing() ->
    case ets:whereis(?MODULE) of
        undefined -> not_running;
        _ -> overlay_off
    end.

%% What the table says of the overlay outlives its process.
call(Request) ->
    case look_up(strategy) of
        {ok, _} ->
            case atoll_interpreter:ask(?MODULE, Request) of
                {ok, Answer} -> Answer;
                {error, _} = Error -> Error
            end;
        none ->
            {error, missing()}
    end.

%% @private
-spec open(map()) -> world().
open(#{strategy := {Module, _}, join_ms := JoinMs}) ->
    Rows = ets:tab2list(?MODULE),
    Counts = maps:from_list([{What, length([x || {{W, _}, _} <- Rows, W =:= What])} || What <- [member, neighbour]]),
    Forgotten = lists:foldl(fun forget/2, #world{born = now_ms(), counts = Counts}, Rows),
    true = ets:insert(?MODULE, [{strategy, Module}, {join_ms, JoinMs}]),
    ok = atoll_link:watch(),
    case has_left() of
        true ->
            Forgotten;
        false ->
            ok = tell_cliques(),
            put(member, node(), Forgotten)
    end.

forget({{member, Node}, _}, World) when Node =/= node() ->
    down(member_down, member, #{node => Node, reason => restarted}, World);
forget({{neighbour, Node}, _}, World) ->
    down(neighbour_down, neighbour, #{node => Node, reason => restarted}, World);
forget({{meta, _} = Key, _}, World) ->
    true = ets:delete(?MODULE, Key),
    World;
forget(_, World) ->
    World.

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({want, Node}, World) ->
    ok = atoll_link:want(Node),
    World;
act({unwant, Node}, World) ->
    ok = atoll_link:unwant(Node),
    World;
act({act, {disconnect, Node}}, World) ->
    ok = atoll_link:disconnect(Node),
    World;
act({act, {listen, Node, Ms}}, #world{looks = Looks0} = World) ->
    Now = now_ms(),
    Looks = maps:filter(fun(_, {Until, _}) -> Now =< Until end, Looks0),
    case atoll_connections:received(Node) of
        {ok, Bytes} ->
            case Looks of
                #{Node := {_, Before}} when Bytes > Before -> ok = atoll_interpreter:cast(?MODULE, {bytes, Node});
                #{} -> ok
            end,
            World#world{looks = Looks#{Node => {Now + Ms, Bytes}}};
        unknown ->
            World#world{looks = Looks}
    end.

%% @private
-spec event(term(), world()) -> {[atoll_hidden:outside()], world()}.
event(Message, World) ->
    {atoll_link:heard(Message), World}.

%% @private
-spec notice(atoll_overlay_core:notice(), world()) -> world().
notice({member_up, Node}, World) ->
    up(member_up, member, Node, World);
notice({member_meta, Node, Meta}, World) ->
    true = ets:insert(?MODULE, [{{meta, Node}, Meta} | [{own_meta, Meta} || Node =:= node()]]),
    Bytes = fun() -> #{bytes => erlang:external_size(Meta)} end,
    ok = atoll_events:emit(member_meta, #{node => Node, meta => Meta}, Bytes),
    World;
notice({member_down, Node, Reason}, World) ->
    true = ets:delete(?MODULE, {meta, Node}),
    down(member_down, member, #{node => Node, reason => Reason}, World);
notice({neighbour_up, Node}, World) ->
    up(neighbour_up, neighbour, Node, World);
notice({neighbour_down, Node, Reason}, World) ->
    down(neighbour_down, neighbour, #{node => Node, reason => Reason}, World);
notice({broadcast, From, {Topic, Payload}}, World) ->
    Bytes = fun() -> #{bytes => erlang:external_size(Payload)} end,
    ok = atoll_events:emit(broadcast, Topic, #{topic => Topic, from => From, payload => Payload}, Bytes),
    World;
notice({missed, From, Count}, World) ->
    ok = atoll_events:emit(missed, #{from => From, count => Count}, #{count => Count}),
    World;
notice({suspect, Node, SilenceMs}, #world{silent = Silent} = World) ->
    ok = atoll_events:emit(suspect, #{node => Node}, #{silence_ms => SilenceMs}),
    World#world{silent = Silent#{Node => now_ms() - SilenceMs}};
notice({cleared, Node}, #world{silent = Silent} = World) ->
    Now = now_ms(),
    ok = atoll_events:emit(cleared, #{node => Node}, #{silence_ms => Now - maps:get(Node, Silent, Now)}),
    World#world{silent = maps:remove(Node, Silent)};
notice(left, #world{born = Born} = World) ->
    true = ets:insert(?MODULE, {left, true}),
    {_, Gone} = take(member, node(), World),
    ok = atoll_events:emit(left, #{}, #{duration_ms => now_ms() - Born}),
    Gone;
notice({reborn, Incarnation}, World) ->
    true = ets:delete(?MODULE, left),
    Member = put(member, node(), World),
    ok = atoll_events:emit(reborn, #{incarnation => Incarnation}),
    Member#world{born = now_ms()};
notice({dead, Node, _Incarnation}, #world{silent = Silent} = World) ->
    %% Members hear of it as member_down.
    World#world{silent = maps:remove(Node, Silent)}.

%% Readers see it when they hear of it.
up(Kind, What, Node, World) ->
    #world{counts = #{What := Count}} = Up = put(What, Node, World),
    ok = atoll_events:emit(Kind, #{node => Node}, #{plural(What) => Count}),
    Up.

down(Kind, What, #{node := Node} = Details, World) ->
    {Ms, #world{counts = #{What := Count}} = Down} = take(What, Node, World),
    ok = atoll_events:emit(Kind, Details, #{plural(What) => Count, duration_ms => Ms}),
    Down.

plural(member) -> members;
plural(neighbour) -> neighbours.

put(What, Node, World) ->
    count(What, 1, ets:insert_new(?MODULE, {{What, Node}, now_ms()}), World).

take(What, Node, World) ->
    case ets:take(?MODULE, {What, Node}) of
        [{_, Since}] -> {now_ms() - Since, count(What, -1, true, World)};
        [] -> {0, World}
    end.

count(_What, _More, false, World) -> World;
count(What, More, true, #world{counts = Counts} = World) ->
    #{What := Count} = Counts,
    World#world{counts = Counts#{What := Count + More}}.

now_ms() -> erlang:monotonic_time(millisecond).
