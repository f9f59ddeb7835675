%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Discovery: how a node finds its cluster, and how an island of nodes finds
%% out that it is one.
%%
%% Contacts are names of nodes to join by, from whatever source; they are only ever
%% added. Discovery is not membership: that a contact is dead or gone takes nothing
%% away from anybody.
%%
%% Beacons. A node that is among its own contacts raises a number every
%% `beacon_ms', unless it hears enough beacons of smaller name. The numbers
%% ({@link atoll_beacons}) travel in the detector's beats, one link in each period,
%% so they cost no message, and everybody connected with a beacon sees it grow.
%%
%% Joining. A node that starts joins through a contact at once, one that loses its last
%% neighbour within `join_min_ms', and while it has none again with growing pauses;
%% each time by another contact, until all had their turn. Each time it says that it is `alone', so that
%% others that are known may be tried too: the contacts may be gone. Whoever it joins through is told by a
%% probe, and is its own contact, and a beacon, from then on. A
%% node that has neighbours but has seen no beacon grow for `island_ms' is on an island
%% without contacts, and joins too, each at a random moment within `join_max_ms': the
%% first that succeeds brings the beacon to all.
%%
%% The circle. Each time through a random contact, contacts that start together would
%% often make two islands. So a contact that starts or is left alone begins with the
%% next of the other contacts in the order of names, after the last the first; asks it
%% again until it is a neighbour, since it may be there before its overlay is; and goes
%% on with the one after it if that cannot be reached, up to 16: all this though it may
%% have neighbours meanwhile. As far as no more than that are missing in a row, the contacts
%% then make one island: on one that lacks some, a contact would have passed over
%% one of those, who could be reached.
%%
%% Probing. Islands that have contacts of their own hear their own beacons. So each
%% beacon asks from time to time a contact that it does not hear which beacons that
%% one hears. If they share none, they are two islands, and it joins there.
%%
%% Promised: as long as some contact can be reached, nodes that can reach each other end
%% up in one overlay, if joining through a contact connects. Not promised: how soon. Where the circle does not do it
%% at once, that takes `island_ms', and a probe must hit the other island. Where no
%% contact lives there are no beacons, and every node tries one again every
%% `join_max_ms' or so.
-module(atoll_discovery).

-behaviour(atoll_protocol).

-export([options/0, init/2, handle/3, summary/1]).

-export_type([config/0, options/0, notice/0, message/0, state/0]).

-type config() :: #{
    self := node(),
    incarnation := pos_integer(),
    seed := integer(),
    %% Those that differ from the defaults.
    options := options()
}.

-type options() :: #{
    contacts => [node()],
    max_contacts => pos_integer(),
    %% How often a beacon raises its number, how many there need to be, and how many
    %% nodes' numbers are remembered.
    beacon_ms => pos_integer(),
    max_beacons => pos_integer(),
    max_known => pos_integer(),
    %% How long a number may stay the same. Longer than beacon_ms and a beat for
    %% each link on the longest way.
    island_ms => pos_integer(),
    %% The first and the longest pause between attempts to join.
    join_min_ms => pos_integer(),
    join_max_ms => pos_integer(),
    probe_ms => pos_integer()
}.

-type message() ::
    %% The beacons that the sender sees grow; the receiver is a contact of it.
    {probe, [node()]}
    %% Whether the two hear the same; unknown, if the sender is too new to say.
    | {probed, same | apart | unknown}.

-type notice() ::
    %% To the strategy.
    {join, [node()]}
    %% To whoever knows other nodes that one might join by: this one has no neighbour.
    %% With a number at random, to choose among them by.
    | {alone, pos_integer()}
    %% To the detector: carry this.
    | {cargo, atoll_beacons:table()}.

-record(state, {
    self :: node(),
    incarnation :: pos_integer(),
    options :: options(),
    rand :: rand:state(),
    contacts = [] :: ordsets:ordset(node()),
    neighbours = #{} :: #{node() => []},
    %% Since when it has neighbours.
    joined :: undefined | atoll_protocol:now_ms(),
    beacons :: atoll_beacons:beacons(),
    %% The pause before the next attempt to join, if the timer runs.
    pause = none :: none | pos_integer(),
    %% When that is, if it does.
    join_at :: atoll_protocol:now_ms(),
    %% Of a contact: the one of the circle that it joined by last, and those that it
    %% turns to if that cannot be reached.
    asked = none :: none | node(),
    circle = [] :: [node()],
    %% Those that it joined by at random since it has been apart, or since all had their turn.
    tried = [] :: ordsets:ordset(node()),
    probe_at :: atoll_protocol:now_ms(),
    %% The contact that was told so as it was joined by: it is not asked anything.
    through = none :: none | node(),
    joins = 0 :: non_neg_integer(),
    probes = 0 :: non_neg_integer(),
    refused = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

%% Of what is drawn for others.
-define(DRAWS, 1000000).
%% How many are told at once that one joins by them.
-define(TOLD, 5).
%% How many of the circle a contact tries, one after the other.
-define(CIRCLE, 16).

%% @doc The options with their defaults, as {@link atoll_options:complete/2} reads
%% them.
-spec options() -> atoll_options:known().
options() ->
    #{
        contacts => {nodes, []},
        max_contacts => {pos_integer, 1000},
        beacon_ms => {pos_integer, 5000},
        max_beacons => {pos_integer, 8},
        max_known => {pos_integer, 1000},
        island_ms => {pos_integer, 30000},
        join_min_ms => {pos_integer, 1000},
        join_max_ms => {pos_integer, 30000},
        probe_ms => {pos_integer, 10000}
    }.

%% @doc A node without neighbours; it joins through a contact, if it has one.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, options := Given}, Now) ->
    Defaults = maps:map(fun(_Key, {_Kind, Default}) -> Default end, options()),
    Options = maps:merge(Defaults, Given),
    #{beacon_ms := BeaconMs, max_beacons := Carried, max_known := Known, island_ms := IslandMs} = Options,
    #{probe_ms := ProbeMs, contacts := Contacts} = Options,
    %% Beacons that start together do not go on together.
    {First, Rand} = rand:uniform_s(BeaconMs, atoll_random:seed(Seed)),
    State0 = #state{
        self = Self,
        incarnation = Incarnation,
        options = Options,
        rand = Rand,
        beacons = atoll_beacons:new(Carried, Known, IslandMs),
        join_at = Now,
        probe_at = Now + ProbeMs
    },
    {State1, Effects} = add(Contacts, Now, State0),
    {State, Timer} = wait_alone(Now, State1),
    {State, [{timer, tick, First} | Effects ++ Timer]}.

%% @doc Takes one event. `up' and `down' are of neighbours, not of links. Casts are
%% `{contacts, [Node]}', `{join, [Node]}', that the strategy joins by these, `{cargo, Node, Table}', what came with a neighbour's beat,
%% `{linked, Node}' and `{unreachable, Node}'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({cast, {cargo, _From, none}}, _Now, State) ->
    {State, []};
handle({cast, {cargo, _From, Table}}, Now, #state{beacons = Beacons} = State) ->
    carry(atoll_beacons:merge(Table, Now, Beacons), State);
handle({timeout, tick}, Now, State) ->
    tick(Now, State);
handle({timeout, join}, Now, State) ->
    case is_apart(Now, State) of
        true -> join_and_wait(Now, State);
        false when State#state.asked =/= none -> ask_again(Now, State);
        false -> {State#state{pause = none}, []}
    end;
handle({up, Node}, Now, #state{neighbours = Neighbours} = State0) ->
    Joined =
        case map_size(Neighbours) of
            0 -> Now;
            _ -> State0#state.joined
        end,
    State =
        case State0 of
            #state{asked = Node} -> leave_circle(State0);
            #state{} -> State0
        end,
    {State#state{neighbours = Neighbours#{Node => []}, joined = Joined, tried = []}, []};
handle({down, Node, _Why}, Now, #state{neighbours = Neighbours} = State0) ->
    State = State0#state{neighbours = maps:remove(Node, Neighbours)},
    case is_alone(State) of
        true -> join_soon(Now, enter_circle(State));
        false -> {State, []}
    end;
handle({message, Node, {probe, Theirs}}, Now, #state{self = Self, beacons = Beacons} = State0) ->
    State = State0#state{contacts = ordsets:add_element(Self, State0#state.contacts)},
    Same = not ordsets:is_disjoint(Theirs, atoll_beacons:fresh(Beacons)),
    %% Alone it is certainly another island; and one that came a moment ago has not
    %% heard its own beacons yet.
    Answer =
        case map_size(State#state.neighbours) =:= 0 orelse is_settled(Now, State) of
            _ when Same -> same;
            true -> apart;
            false -> unknown
        end,
    {State, [{send, Node, {probed, Answer}}]};
handle({message, Node, {probed, _}}, _Now, #state{through = Node} = State) ->
    {State#state{through = none}, []};
handle({message, Node, {probed, apart}}, Now, #state{options = #{island_ms := IslandMs}} = State) ->
    Heard = lists:member(Node, atoll_beacons:fresh(State#state.beacons)),
    case is_settled(Now, State) andalso not Heard of
        true ->
            %% The beacons need time to cross.
            {joins(State#state{probe_at = Now + IslandMs}), [{notify, {join, [Node]}}]};
        false ->
            {State, []}
    end;
handle({message, _Node, {probed, _}}, _Now, State) ->
    {State, []};
handle({cast, {contacts, Contacts}}, Now, State) ->
    add(Contacts, Now, State);
handle({cast, {join, Contacts}}, Now, #state{self = Self, beacons = Beacons} = State0) ->
    %% Whoever asks for it tells the strategy.
    {State, Effects} = add(Contacts, Now, State0),
    Told = lists:sublist(lists:usort(Contacts) -- [Self], ?TOLD),
    Probe = {probe, atoll_beacons:fresh(Beacons)},
    {State, Effects ++ [Tell || Node <- Told, Tell <- [{send, Node, Probe}], not lists:member(Tell, Effects)]};
handle({cast, {linked, _Node}}, Now, State) ->
    %% There is no contact whose answer may still come.
    case is_alone(State) andalso others(State) =:= [] of
        true -> join_soon(Now, State);
        false -> {State, []}
    end;
handle({cast, {unreachable, Node}}, _Now, #state{asked = Node, circle = [Next | Circle]} = State) ->
    join(Next, State#state{asked = Next, circle = Circle});
handle({cast, {unreachable, _Node}}, _Now, State) ->
    %% The next attempt is for another contact, or for the same a while later.
    {State, []}.

%% @doc For people: sizes, and what was dropped, by reason.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{beacons = Beacons} = State) ->
    #{forgotten := Forgotten} = Counts = atoll_beacons:counts(Beacons),
    #{
        contacts => length(State#state.contacts),
        beacons => maps:without([forgotten], Counts),
        joining => State#state.pause =/= none,
        circle => length(State#state.circle),
        joins => State#state.joins,
        probes => State#state.probes,
        dropped => #{contacts_refused => State#state.refused, beacons_forgotten => Forgotten}
    }.

%% Contacts

add(More, Now, #state{contacts = Contacts0, options = #{max_contacts := Max}} = State0) ->
    New = ordsets:subtract(ordsets:from_list(More), Contacts0),
    Added = lists:sublist(New, max(0, Max - length(Contacts0))),
    State = State0#state{
        contacts = ordsets:union(Contacts0, Added),
        refused = State0#state.refused + length(New) - length(Added)
    },
    case is_alone(State) andalso others(State0) =:= [] andalso others(State) =/= [] of
        true -> join_and_wait(Now, enter_circle(State#state{pause = none}));
        false -> {State, []}
    end.

others(#state{contacts = Contacts, self = Self}) ->
    ordsets:del_element(Self, Contacts).

draw(Nodes, #state{rand = Rand0} = State) ->
    {Node, Rand} = atoll_random:pick(Nodes, Rand0),
    {Node, State#state{rand = Rand}}.

%% Joining

is_alone(#state{neighbours = Neighbours}) ->
    map_size(Neighbours) =:= 0.

wait_alone(Now, #state{pause = none, options = #{join_min_ms := Min}} = State) ->
    wait(Min, Now, State);
wait_alone(_Now, State) ->
    {State, []}.

%% Neighbours for long enough to have heard a beacon grow, if there was one.
is_settled(Now, #state{neighbours = Neighbours, joined = Joined, options = #{island_ms := IslandMs}}) ->
    map_size(Neighbours) > 0 andalso Now - Joined >= IslandMs.

is_island(Now, #state{beacons = Beacons} = State) ->
    atoll_beacons:fresh(Beacons) =:= [] andalso is_settled(Now, State) andalso others(State) =/= [].

is_apart(Now, State) ->
    is_alone(State) orelse is_island(Now, State).

join_and_wait(Now, State0) ->
    {Contacts, State} = choose(State0),
    join_and_wait(Contacts, Now, State).

%% The one of the circle that was reached and is no neighbour.
ask_again(Now, #state{asked = Asked} = State) ->
    join_and_wait([Asked], Now, State).

join_and_wait(Contacts, Now, #state{pause = Pause, options = #{join_min_ms := Min, join_max_ms := Max}} = State0) ->
    Next =
        case Pause of
            none -> Min;
            _ -> min(Max, 2 * Pause)
        end,
    {State1, Joins} = lists:foldl(fun(Contact, {S, _}) -> join(Contact, S) end, {State0, []}, Contacts),
    {State2, Alone} = say_alone(State1),
    {State, Timer} = wait(Next, Now, State2),
    {State, Joins ++ Alone ++ Timer}.

say_alone(#state{rand = Rand0} = State) ->
    case is_alone(State) of
        true ->
            {Draw, Rand} = rand:uniform_s(?DRAWS, Rand0),
            {State#state{rand = Rand}, [{notify, {alone, Draw}}]};
        false ->
            {State, []}
    end.

%% One, if there is one.
choose(#state{circle = [Next | Circle]} = State) ->
    {[Next], State#state{asked = Next, circle = Circle}};
choose(State) ->
    case others(State) of
        [] ->
            {[], State};
        Others ->
            {Untried, Tried} = untried(Others, State#state.tried),
            {Contact, Drawn} = draw(Untried, State#state{asked = none}),
            {[Contact], Drawn#state{tried = ordsets:add_element(Contact, Tried)}}
    end.

%% Nobody twice before each had its turn: with few contacts one that is dead would be drawn again
%% and again, and the pauses grow.
untried(Others, Tried) ->
    case ordsets:subtract(Others, Tried) of
        [] -> {Others, []};
        Untried -> {Untried, Tried}
    end.

join(Contact, #state{beacons = Beacons} = State) ->
    {(joins(State))#state{through = Contact}, [
        {notify, {join, [Contact]}}, {send, Contact, {probe, atoll_beacons:fresh(Beacons)}}
    ]}.

joins(#state{joins = Joins} = State) ->
    State#state{joins = Joins + 1}.

enter_circle(#state{contacts = Contacts, self = Self} = State) ->
    case lists:splitwith(fun(Node) -> Node < Self end, Contacts) of
        {Smaller, [Self | Larger]} ->
            State#state{asked = none, circle = lists:sublist(Larger ++ Smaller, ?CIRCLE)};
        _ ->
            State
    end.

leave_circle(State) ->
    State#state{asked = none, circle = []}.

%% The last neighbour is gone, and the pauses begin anew. An attempt that is due
%% sooner stays: else a neighbour that comes and goes would put it off for ever.
join_soon(Now, #state{pause = Pause, join_at = At, options = #{join_min_ms := Min}} = State) ->
    case wait(Min, Now, State) of
        {#state{join_at = Later, rand = Rand}, _} when Pause =/= none, Later >= At ->
            {State#state{pause = Min, rand = Rand}, []};
        Sooner ->
            Sooner
    end.

%% Up to a half less, so that those that were lost together do not return in step.
wait(Ms, Now, #state{rand = Rand0} = State) ->
    {Less, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    wake(max(1, Ms - Less + 1), Now, State#state{pause = Ms, rand = Rand}).

wake(Ms, Now, State) ->
    {State#state{join_at = Now + Ms}, [{timer, join, Ms}]}.

%% All nodes of an island find out at about the same time: they spread over the
%% longest pause.
island(Now, #state{pause = none, rand = Rand0, options = #{join_max_ms := Max}} = State) ->
    case is_island(Now, State) of
        true ->
            {Ms, Rand} = rand:uniform_s(Max, Rand0),
            wake(Ms, Now, State#state{pause = Max, rand = Rand});
        false ->
            {State, []}
    end;
island(_Now, State) ->
    {State, []}.

%% Beacons

tick(Now, #state{beacons = Beacons0, options = #{beacon_ms := BeaconMs}} = State0) ->
    Beacons1 = atoll_beacons:expire(Now, Beacons0),
    IsBeacon = is_beacon(Beacons1, State0),
    Beacons =
        case IsBeacon of
            true -> atoll_beacons:raise(State0#state.self, State0#state.incarnation, Now, Beacons1);
            false -> Beacons1
        end,
    {State1, Cargo} = carry(Beacons, State0),
    {State2, Join} = island(Now, out_of_circle(Now, State1)),
    {State, Probe} =
        case IsBeacon of
            true -> probe(Now, State2);
            false -> {State2, []}
        end,
    {State, Cargo ++ Join ++ Probe ++ [{timer, tick, BeaconMs}]}.

%% From now on it is the probes that find other islands.
out_of_circle(Now, State) ->
    case is_settled(Now, State) of
        true -> leave_circle(State);
        false -> State
    end.

is_beacon(Beacons, #state{self = Self, contacts = Contacts, options = #{max_beacons := Max}}) ->
    Smaller = lists:takewhile(fun(Node) -> Node < Self end, atoll_beacons:fresh(Beacons)),
    length(Smaller) < Max andalso lists:member(Self, Contacts).

carry(Beacons, #state{beacons = Before} = State) ->
    Table = atoll_beacons:table(Beacons),
    case atoll_beacons:table(Before) of
        Table -> {State#state{beacons = Beacons}, []};
        _ -> {State#state{beacons = Beacons}, [{notify, {cargo, Table}}]}
    end.

%% Asks a contact that is not heard, if it is time.
probe(Now, #state{probe_at = At} = State) when Now < At ->
    {State, []};
probe(Now, #state{beacons = Beacons, neighbours = Neighbours, options = #{probe_ms := ProbeMs}} = State0) ->
    Fresh = atoll_beacons:fresh(Beacons),
    Unheard = [Node || Node <- ordsets:subtract(others(State0), Fresh), not is_map_key(Node, Neighbours)],
    case Unheard =/= [] andalso is_settled(Now, State0) of
        true ->
            {Contact, #state{rand = Rand0} = State} = draw(Unheard, State0),
            {Ms, Rand} = rand:uniform_s(ProbeMs, Rand0),
            {
                State#state{
                    rand = Rand, probe_at = Now + ProbeMs div 2 + Ms, probes = State#state.probes + 1, through = none
                },
                [{send, Contact, {probe, Fresh}}]
            };
        false ->
            {State0, []}
    end.
