%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Who measures round trips with whom, and what every node knows of the coordinates
%% ({@link atoll_vivaldi}) of all.
%%
%% Probing. Every `60000 / probes_per_minute' milliseconds or a little later, a node has the round trip to one of the nodes
%% that it is connected with measured, in turn one of the nearest and any one, first
%% those that it has not measured. No connection is made for it. A connection that nobody wants would be kept
%% open by being used: it is measured once, when it has come up (whoever performs `measure' knows).
%% With what came out the node asks the other for its coordinate, and moves its own; a few round trips that
%% it measured before are used again, with what is known of those nodes now, which costs no message and
%% brings the node to its place several times as fast.
%%
%% Telling. A question and its answer bring the sender's coordinate and some others, drawn at
%% random. So a node comes to know the coordinates of nodes that it never talked to,
%% each with a version that grows with its changes and starts of the node, and its age. What is older than `forget_ms' is
%% forgotten: coordinates move.
%%
%% Promised: at most `probes_per_minute' probes in each minute, and a question after a probe; nothing
%% is made of a message that is odd, but that it is counted; sizes are bounded.
%%
%% Not promised: that a node which lies about others is not believed; that what is known is new. A clock that
%% was set back makes a node that starts again be believed only when it has met itself in others' words; and
%% if it was by more than a day, only when they have forgotten it. What is farther ahead is a lie, and would use
%% up its versions.
-module(atoll_distance_core).

-behaviour(atoll_protocol).

-export([options/0, init/2, handle/3]).
-export([coordinate/1, known/1, summary/1]).

-export_type([config/0, options/0, message/0, notice/0, deed/0, state/0]).

-type config() :: #{
    self := node(),
    %% When it was started, in microseconds.
    incarnation := pos_integer(),
    seed := integer(),
    %% Those that differ from the defaults.
    options := options(),
    %% Where it was before.
    coordinate => atoll_vivaldi:coordinate()
}.

-type options() :: #{
    probes_per_minute => pos_integer(),
    %% How many others' coordinates a message brings.
    told => pos_integer(),
    %% How many it knows at most.
    max_known => pos_integer(),
    forget_ms => pos_integer()
}.

-type entry() :: {Version :: pos_integer(), atoll_vivaldi:coordinate()}.

-type message() ::
    %% The version of what follows.
    {1,
        %% To be answered at once to whoever measures, by whoever performs `echo'.
        {echo, To :: term(), Key :: term()}
        %% The sender's coordinate and others, of which the age in milliseconds is told.
        | {ask | tell, entry(), [{node(), Age :: non_neg_integer(), entry()}]}}.

-type deed() ::
    %% The round trip to the first of these that may be measured; one that is not `fresh' may
    %% only if the connection is wanted. Owed is one cast, `{measured, Node, Microseconds}',
    %% `{silent, Node}' or `nobody'.
    {measure, [{node(), IsFresh :: boolean()}, ...]}
    | {echo, To :: term(), Key :: term()}.

-type notice() ::
    {coordinate, node(), atoll_vivaldi:coordinate(), At :: atoll_protocol:now_ms()}
    | {measured, node(), atoll_vivaldi:ms(), At :: atoll_protocol:now_ms()}
    | {forgotten, coordinate | measured, node()}.

-record(state, {
    self :: node(),
    version :: pos_integer(),
    %% The highest version that can be of an earlier life of its own.
    highest :: pos_integer(),
    place :: atoll_vivaldi:place(),
    rand :: rand:state(),
    options :: #{atom() => pos_integer()},
    %% Whether somebody was measured since it came up.
    up = #{} :: #{node() => fresh | tried},
    %% The last round trips with each, newest first, and when the newest was measured.
    measured = #{} :: #{node() => {[atoll_vivaldi:ms(), ...], atoll_protocol:now_ms()}},
    %% When others were where.
    known = #{} :: #{node() => {entry(), atoll_protocol:now_ms()}},
    %% Who was asked for its coordinate, after what round trip.
    asked = #{} :: #{node() => atoll_vivaldi:ms()},
    %% Whether a measurement is under way, and whether the next is with a near one.
    measuring = false :: boolean(),
    near = false :: boolean(),
    counts = #{probes => 0, silent => 0, nobody => 0, moves => 0, odd => 0, newer => 0, refused => 0} ::
        #{atom() => non_neg_integer()}
}).

-opaque state() :: #state{}.

-define(VERSION, 1).
-define(SWEEP_MS, 60000).
-define(MAX_VERSION, (1 bsl 58)).
-define(DAY_US, 86400000000).
%% Of so many near ones any is as good, and so many are named for a probe.
-define(NEAR, 8).
-define(CANDIDATES, 4).
-define(KEPT, 5).
%% So many older round trips count again with each new one.
-define(AGAIN, 8).

%% @doc The options with their defaults, as {@link atoll_options:complete/2} reads them.
-spec options() -> atoll_options:known().
options() ->
    #{
        probes_per_minute => {pos_integer, 20},
        told => {pos_integer, 8},
        max_known => {pos_integer, 5000},
        forget_ms => {pos_integer, 600000}
    }.

%% @doc A node that knows nobody.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, options := Given} = Config, Now) ->
    Defaults = maps:map(fun(_Key, {_Kind, Default}) -> Default end, options()),
    Place =
        case Config of
            #{coordinate := Coordinate} -> atoll_vivaldi:at(Coordinate);
            #{} -> atoll_vivaldi:new()
        end,
    State0 = #state{
        self = Self,
        version = Incarnation,
        highest = Incarnation + ?DAY_US,
        place = Place,
        rand = rand:seed_s(exsss, Seed),
        options = maps:merge(Defaults, Given)
    },
    {Timer, State} = probe_later(State0),
    {State, [Timer, {timer, sweep, ?SWEEP_MS}, {notify, {coordinate, Self, atoll_vivaldi:coordinate(Place), Now}}]}.

%% @doc Takes one event. Casts are what `measure' is answered with; a call is for `summary'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({up, Node}, _Now, #state{up = Up} = State) ->
    {State#state{up = Up#{Node => fresh}}, []};
handle({down, Node, _Reason}, _Now, #state{up = Up, asked = Asked} = State) ->
    {State#state{up = maps:remove(Node, Up), asked = maps:remove(Node, Asked)}, []};
handle({timeout, probe}, _Now, State0) ->
    {Timer, State1} = probe_later(State0),
    {Deeds, State} = probe(State1),
    {State, [Timer | Deeds]};
handle({timeout, sweep}, Now, State) ->
    {Effects, Swept} = sweep(Now, State),
    {Swept, [{timer, sweep, ?SWEEP_MS} | Effects]};
handle({cast, {measured, Node, Us}}, Now, State) ->
    measured(Node, Us / 1000, Now, tried(Node, State#state{measuring = false}));
handle({cast, {silent, Node}}, _Now, State) ->
    {count(silent, tried(Node, State#state{measuring = false})), []};
handle({cast, nobody}, _Now, State) ->
    {count(nobody, State#state{measuring = false}), []};
handle({message, From, {?VERSION, Message}}, Now, State) ->
    message(Message, From, Now, State);
handle({message, _From, {Version, _}}, _Now, State) when is_integer(Version), Version > ?VERSION ->
    {count(newer, State), []};
handle({message, _From, _Odd}, _Now, State) ->
    {count(odd, State), []};
handle({call, From, summary}, _Now, State) ->
    {State, [{reply, From, summary(State)}]}.

%% @doc Where this node is.
-spec coordinate(state()) -> atoll_vivaldi:coordinate().
coordinate(#state{place = Place}) -> atoll_vivaldi:coordinate(Place).

%% @doc Where the others are.
-spec known(state()) -> #{node() => atoll_vivaldi:coordinate()}.
known(#state{known = Known}) -> maps:map(fun(_Node, {{_, Coordinate}, _}) -> Coordinate end, Known).

%% @doc For people: sizes, and what was done and left out.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{place = Place, up = Up, measured = Measured, known = Known, counts = Counts}) ->
    Counts#{
        error => atoll_vivaldi:error(Place),
        rejected => atoll_vivaldi:rejected(Place),
        connected => map_size(Up),
        measured => map_size(Measured),
        known => map_size(Known)
    }.

%% Probing

%% Never sooner, so that there are never more in a minute; and not in step with others.
probe_later(#state{options = #{probes_per_minute := PerMinute}, rand = Rand0} = State) ->
    Ms = -(-60000 div PerMinute),
    {More, Rand} = rand:uniform_s(1 + Ms div 10, Rand0),
    {{timer, probe, Ms + More - 1}, State#state{rand = Rand}}.

probe(#state{measuring = true} = State) ->
    {[], State};
probe(#state{up = Up} = State) when map_size(Up) =:= 0 ->
    {[], State};
probe(#state{up = Up, near = IsNear, rand = Rand0} = State) ->
    {Candidates, Rand} = candidates(IsNear, State, Rand0),
    Named = [{Node, map_get(Node, Up) =:= fresh} || Node <- Candidates],
    {[{act, {measure, Named}}], count(probes, State#state{measuring = true, near = not IsNear, rand = Rand})}.

candidates(true, #state{up = Up, known = Known, measured = Measured} = State, Rand) ->
    Own = coordinate(State),
    Near = lists:sort([
        {Ms, Node}
     || Node <- maps:keys(Up),
        Ms <-
            case {Measured, Known} of
                {#{Node := {RoundTrips, _}}, _} -> [atoll_vivaldi:smoothed(RoundTrips)];
                {_, #{Node := {{_, Coordinate}, _}}} -> [atoll_vivaldi:estimate(Own, Coordinate)];
                {_, _} -> []
            end
    ]),
    case lists:sublist(Near, ?NEAR) of
        [] -> candidates(false, State, Rand);
        Nearest -> some([Node || {_, Node} <- Nearest], Rand)
    end;
candidates(false, #state{up = Up}, Rand0) ->
    Nodes = lists:sort(maps:to_list(Up)),
    {Fresh, Rand} = some([Node || {Node, fresh} <- Nodes], Rand0),
    {Any, Next} = some([Node || {Node, tried} <- Nodes], Rand),
    {lists:sublist(Fresh ++ Any, ?CANDIDATES), Next}.

%% In any order.
some(Nodes, Rand0) ->
    {Sample, Rand} = atoll_random:sample(?CANDIDATES, Nodes, Rand0),
    atoll_random:shuffle(Sample, Rand).

tried(Node, #state{up = Up} = State) ->
    case Up of
        #{Node := _} -> State#state{up = Up#{Node := tried}};
        #{} -> State
    end.

measured(Node, Ms, Now, #state{up = Up, measured = Measured0, asked = Asked, options = #{max_known := Max}} = State0) ->
    Before =
        case Measured0 of
            #{Node := {RoundTrips, _}} -> RoundTrips;
            #{} -> []
        end,
    Kept = lists:sublist([Ms | Before], ?KEPT),
    Smoothed = atoll_vivaldi:smoothed(Kept),
    State =
        case Before =/= [] orelse map_size(Measured0) < Max of
            true -> State0#state{measured = Measured0#{Node => {Kept, Now}}};
            false -> count(refused, State0)
        end,
    Notify = [{notify, {measured, Node, Smoothed, Now}} || is_map_key(Node, State#state.measured)],
    case Up of
        #{Node := _} ->
            {Ask, Next} = say(ask, Node, Now, State#state{asked = Asked#{Node => Smoothed}}),
            {Next, Notify ++ [Ask]};
        #{} ->
            {State, Notify}
    end.

%% Messages

message({echo, To, Key}, _From, _Now, State) ->
    {State, [{act, {echo, To, Key}}]};
message({Kind, {Version, Coordinate}, Others}, From, Now, State0) when Kind =:= ask; Kind =:= tell ->
    case is_entry(Version, Coordinate) andalso is_list(Others) of
        true ->
            {Learnt, State1} = learn([{From, 0, {Version, Coordinate}} | good(Others, State0)], Now, State0),
            {Effects, State} = hear(Kind, Coordinate, From, Now, State1),
            {State, Learnt ++ Effects};
        false ->
            {count(odd, State0), []}
    end;
message(_Odd, _From, _Now, State) ->
    {count(odd, State), []}.

is_entry(Version, Coordinate) ->
    is_integer(Version) andalso Version > 0 andalso Version < ?MAX_VERSION andalso atoll_vivaldi:is_coordinate(Coordinate).

%% No more than this node would tell itself.
good(Others, #state{options = #{told := Told, forget_ms := Forget}}) when length(Others) =< 4 * Told ->
    [
        Other
     || {Node, Age, {Version, Coordinate}} = Other <- Others,
        is_atom(Node),
        is_integer(Age),
        Age >= 0,
        Age < Forget,
        is_entry(Version, Coordinate)
    ];
good(_TooMany, _State) ->
    [].

hear(ask, _Coordinate, From, Now, State) ->
    {Tell, Next} = say(tell, From, Now, State),
    {[Tell], Next};
hear(tell, Coordinate, From, Now, #state{asked = Asked} = State) ->
    case maps:take(From, Asked) of
        {Ms, Rest} -> move(Ms, Coordinate, Now, State#state{asked = Rest});
        error -> {[], State}
    end.

move(Ms, Coordinate, Now, #state{self = Self, version = Version, place = Place0, rand = Rand0} = State) ->
    {Again, Rand1} = again(State, Rand0),
    {Place, Rand} = lists:foldl(
        fun({M, C}, {P, R}) -> atoll_vivaldi:update(M, C, P, R) end, {Place0, Rand1}, [{Ms, Coordinate} | Again]
    ),
    {
        [{notify, {coordinate, Self, atoll_vivaldi:coordinate(Place), Now}}],
        count(moves, State#state{version = Version + 1, place = Place, rand = Rand})
    }.

%% What was measured before counts again: those nodes may be known to be somewhere else since.
again(#state{measured = Measured, known = Known}, Rand0) ->
    Both = lists:sort([Node || Node <- maps:keys(Measured), is_map_key(Node, Known)]),
    {Nodes, Rand} = atoll_random:sample(?AGAIN, Both, Rand0),
    {
        [
            {atoll_vivaldi:smoothed(RoundTrips), Coordinate}
         || Node <- Nodes, #{Node := {RoundTrips, _}} <- [Measured], #{Node := {{_, Coordinate}, _}} <- [Known]
        ],
        Rand
    }.

say(Kind, To, Now, #state{version = Version, known = Known, options = #{told := Told}, rand = Rand0} = State) ->
    %% A map's own order is no order: the keys are sorted.
    {Some, Rand} = atoll_random:sample(Told, lists:delete(To, lists:sort(maps:keys(Known))), Rand0),
    Others = [{Node, Now - At, Entry} || Node <- Some, {Entry, At} <- [map_get(Node, Known)]],
    {{send, To, {?VERSION, {Kind, {Version, coordinate(State)}, Others}}}, State#state{rand = Rand}}.

learn(Entries, Now, State) ->
    {Effects, Last} = lists:foldl(
        fun({Node, Age, Entry}, {Effects, S0}) ->
            {More, S} = learn(Node, Entry, Now - Age, S0),
            {[More | Effects], S}
        end,
        {[], State},
        Entries
    ),
    {lists:append(lists:reverse(Effects)), Last}.

%% A word of its own earlier life, which would win.
learn(Self, {Version, _}, _At, #state{self = Self, version = Own, highest = Highest} = State) when Version =< Highest ->
    {[], State#state{version = max(Own, Version + 1)}};
learn(Self, _Lie, _At, #state{self = Self} = State) ->
    {[], count(odd, State)};
learn(Node, {Version, Coordinate} = Entry, At, #state{known = Known, options = #{max_known := Max}} = State) ->
    case Known of
        #{Node := {{Before, _}, Then}} when Before > Version; Before =:= Version, Then >= At ->
            {[], State};
        #{} when map_size(Known) >= Max, not is_map_key(Node, Known) ->
            {[], count(refused, State)};
        #{} ->
            {[{notify, {coordinate, Node, Coordinate, At}}], State#state{known = Known#{Node => {Entry, At}}}}
    end.

%% Forgetting

sweep(Now, #state{known = Known, measured = Measured, up = Up, options = #{forget_ms := Forget}} = State) ->
    OldKnown = lists:sort([Node || {Node, {_, At}} <- maps:to_list(Known), Now - At >= Forget]),
    OldMeasured = lists:sort([
        Node
     || {Node, {_, At}} <- maps:to_list(Measured), Now - At >= Forget, not is_map_key(Node, Up)
    ]),
    {
        [{notify, {forgotten, coordinate, Node}} || Node <- OldKnown] ++
            [{notify, {forgotten, measured, Node}} || Node <- OldMeasured],
        State#state{known = maps:without(OldKnown, Known), measured = maps:without(OldMeasured, Measured)}
    }.

count(What, #state{counts = Counts} = State) ->
    #{What := N} = Counts,
    State#state{counts = Counts#{What := N + 1}}.
