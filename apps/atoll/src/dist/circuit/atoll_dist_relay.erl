%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A node that forwards the frames of others' circuits: what comes from one neighbour
%% goes to another, as the circuit's path says.
%%
%% The end that opens a circuit writes its whole path. This node goes along with it if
%% {@link atoll_dist_admission} lets it, and the budget; else it refuses, and says why.
%%
%% It promises:
%% <ul>
%% <li>What it holds is at most the budget, whatever its clients do. A circuit gets a
%%   window when it opens, and the budget is less by that in both directions until the
%%   circuit has gone; so it is for each neighbour by what may be handed to its trunk.
%%   A node that sends more than the window leaves room for has its circuit closed.
%%   Frames other than data are never queued twice: a later `ack' takes the place of
%%   an earlier.</li>
%% <li>The frames of a circuit stay in order. The circuits that go to one neighbour share
%%   the trunk ({@link atoll_dist_egress}). One whose receiver is slow stops at its
%%   window, and costs the others nothing.</li>
%% <li>When a neighbour goes, the other side of each circuit over it hears `path_lost',
%%   behind what was to go there. So it does of a path that it does not know, of one that
%%   was silent for long, and of one that the policy does not allow any more.</li>
%% </ul>
%% It does not promise to tell when a neighbour is only silent: the ends find that out.
%% What it forwards it neither reads nor checks, but a node on a path can do both and
%% alter it ({@link atoll_dist_seal} is against that).
%%
%% Whoever runs it hands frames to one trunk for each neighbour, in order, says when what
%% was handed is out of this node's hands, and tells `down' of a neighbour before anything
%% of its next connection. All that comes from a neighbour comes in here first, since
%% somebody may open a circuit that ends here under the id of one that is relayed.
-module(atoll_dist_relay).

-behaviour(atoll_protocol).

-export([init/2, handle/3, straight/4, figures/1, max_hops/0]).

-export_type([config/0, policy/0, place/0, event/0, act/0, state/0]).

-type name() :: atoll_dist_circuit_frame:name().

-type policy() :: atoll_dist_admission:policy().

-type config() :: #{
    name := name(),
    policy => policy(),
    %% Bytes that it may hold.
    budget => pos_integer(),
    max_circuits => pos_integer(),
    %% Of the budget, what circuits that one neighbour opens may have, in percent.
    share => 1..100,
    %% A circuit gets a window between these.
    min_window => atoll_dist_circuit_frame:window(),
    max_window => atoll_dist_circuit_frame:window(),
    %% How many connections a path may have.
    max_hops => 2..16,
    %% How many bytes a trunk has at once.
    handed => pos_integer(),
    %% A path over which nothing comes for so long is forgotten, and so is one that
    %% nobody confirms.
    idle_ms => pos_integer(),
    open_ms => pos_integer()
}.

-type event() ::
    {cast,
        {up, name()}
        | {down, name()}
        | {frame, From :: name(), binary()}
        %% The end of that path stands there, at that neighbour.
        | {at, From :: name(), atoll_dist_circuit_frame:key(), place()}
        %% What was given to the ends here is for none of them.
        | {nobody, From :: name(), binary()}
        %% A neighbour is told something of a circuit that ends here by somebody else than
        %% that end: it is refused before there is one, or closed since there is none more.
        | {say, name(), atoll_dist_circuit_frame:frame()}
        %% So many bytes of what was handed to the neighbour's trunk are gone.
        | {sent, name(), pos_integer()}
        %% And so many, which {@link straight/4} gave for it, are not.
        | {waits, name(), pos_integer()}
        | {policy, policy()}}
    | {timeout, sweep}.

-type act() ::
    {act,
        {send, name(), [binary(), ...], Bytes :: pos_integer()}
        %% It opens a circuit that ends here, or is for the end of that id, if there is
        %% one. If not, `nobody' has to be said, but of an `open'.
        | {here, From :: name(), binary()}}
    | {timer, sweep, pos_integer()}.

%% Where free data of a path can be sent at the neighbour instead of to the one who hands
%% on what comes there: only who runs this knows what it is.
-type place() :: term().

%% To the end that opened, or to the other one.
-type side() :: back | forth.

-record(circuit, {
    %% Tells it from any other that had the same key.
    number :: pos_integer(),
    back :: name(),
    forth :: name(),
    from :: name(),
    to :: name(),
    at_back = none :: none | place(),
    at_forth = none :: none | place(),
    window :: atoll_dist_circuit_frame:window(),
    phase = opening :: opening | opened | open,
    %% What waits here of data for either side.
    held_back = 0 :: non_neg_integer(),
    held_forth = 0 :: non_neg_integer(),
    %% The sides for which the last frame waits; once there is one nothing more comes in.
    ending = [] :: [side()],
    heard_at :: atoll_protocol:now_ms()
}).

-record(state, {
    config :: config(),
    %% The neighbours.
    trunks = #{} :: #{name() => atoll_dist_egress:egress()},
    circuits = #{} :: #{atoll_dist_circuit_frame:key() => #circuit{}},
    next = 1 :: pos_integer(),
    %% Of the budget.
    reserved = 0 :: non_neg_integer(),
    sweeps = false :: boolean(),
    %% Effects of this event, the latest first.
    acts = [] :: [act()],
    forwarded = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    opened = 0 :: non_neg_integer(),
    %% Why, and how often.
    refused = #{} :: #{atom() => pos_integer()},
    lost = #{} :: #{atom() => pos_integer()},
    dropped = #{} :: #{atom() => pos_integer()}
}).

-opaque state() :: #state{}.

-define(DEFAULTS, #{
    policy => all,
    budget => 268435456,
    max_circuits => 256,
    share => 50,
    min_window => 131072,
    max_window => 33554432,
    max_hops => 6,
    handed => 131072,
    idle_ms => 60000,
    open_ms => 10000
}).

%% When something came over a path is noted so often at most.
-define(OFTEN_MS, 200).

%% Of frames.
-define(VERSION, 2).

%% @doc As many connections as a path may have, of relays that are not told another number.
-spec max_hops() -> pos_integer().
max_hops() ->
    map_get(max_hops, ?DEFAULTS).

%% @private
-spec init(config(), atoll_protocol:now_ms()) -> {state(), []}.
init(Config, _Now) ->
    {#state{config = maps:merge(?DEFAULTS, Config)}, []}.

%% @private
-spec handle(event(), atoll_protocol:now_ms(), state()) -> {state(), [act()]}.
handle(Event, Now, State0) ->
    #state{acts = Acts} = State = event(Event, Now, State0),
    {State#state{acts = []}, lists:reverse(Acts)}.

event({cast, {frame, From, Frame}}, Now, #state{trunks = Trunks} = State) ->
    case is_map_key(From, Trunks) andalso atoll_dist_circuit_frame:head(Frame) of
        %% A copy, since it is kept and a part of a frame keeps all of it.
        {ok, Type, Key} -> frame(Type, binary:copy(Key), From, Frame, Now, State);
        {error, {version, _}} -> dropped(version, State);
        {error, malformed} -> dropped(malformed, State);
        false -> dropped(stranger, State)
    end;
event({cast, {at, From, Key, Place}}, _Now, #state{circuits = Circuits} = State) ->
    case Circuits of
        #{Key := #circuit{back = From} = Circuit} -> State#state{circuits = Circuits#{Key := Circuit#circuit{at_back = Place}}};
        #{Key := #circuit{forth = From} = Circuit} -> State#state{circuits = Circuits#{Key := Circuit#circuit{at_forth = Place}}};
        #{} -> State
    end;
event({cast, {nobody, From, Frame}}, _Now, State) ->
    {ok, Type, Key} = atoll_dist_circuit_frame:head(Frame),
    unknown(Type, Key, From, State);
event({cast, {say, Name, Frame}}, _Now, #state{trunks = Trunks, refused = Refused} = State) ->
    case Frame of
        _ when not is_map_key(Name, Trunks) -> State;
        {refused, _, {_, Why, _}} -> stray(Name, Frame, State#state{refused = count(Why, Refused)});
        _ -> stray(Name, Frame, State)
    end;
event({cast, {sent, Name, Bytes}}, _Now, #state{trunks = Trunks} = State) ->
    case Trunks of
        #{Name := Trunk} -> pump(Name, State#state{trunks = Trunks#{Name := atoll_dist_egress:sent(Bytes, Trunk)}});
        #{} -> State
    end;
event({cast, {waits, Name, Bytes}}, _Now, #state{trunks = Trunks} = State) ->
    case Trunks of
        #{Name := Trunk} -> State#state{trunks = Trunks#{Name := atoll_dist_egress:waits(Bytes, Trunk)}};
        #{} -> State
    end;
event({cast, {up, Name}}, _Now, #state{trunks = Trunks, reserved = Reserved, config = Config} = State) ->
    case Trunks of
        #{Name := _} -> State;
        #{} -> State#state{trunks = Trunks#{Name => atoll_dist_egress:new()}, reserved = Reserved + trunk_cost(Config)}
    end;
event({cast, {down, Name}}, _Now, #state{trunks = Trunks, circuits = Circuits, reserved = Reserved, config = Config} = State) ->
    case Trunks of
        #{Name := _} ->
            Left = State#state{trunks = maps:remove(Name, Trunks), reserved = Reserved - trunk_cost(Config)},
            Over = [
                {Key, Circuit}
             || {Key, #circuit{back = Back, forth = Forth} = Circuit} <- lists:sort(maps:to_list(Circuits)),
                Back =:= Name orelse Forth =:= Name
            ],
            lists:foldl(fun({Key, Circuit}, S) -> cut(Key, Circuit, Name, S) end, Left, Over);
        #{} ->
            State
    end;
event({cast, {policy, Policy}}, _Now, #state{circuits = Circuits, config = Config} = State0) ->
    State = State0#state{config = Config#{policy := Policy}},
    lists:foldl(
        fun({Key, #circuit{from = From, to = To} = Circuit}, S) ->
            case atoll_dist_admission:allows(Policy, From, To) of
                true -> S;
                false -> lose(Key, Circuit, policy, From, S)
            end
        end,
        State,
        lists:sort(maps:to_list(Circuits))
    );
event({timeout, sweep}, Now, #state{circuits = Circuits, config = #{idle_ms := IdleMs, open_ms := OpenMs}} = State0) ->
    Late = [
        {Key, Circuit}
     || {Key, #circuit{phase = Phase, heard_at = At} = Circuit} <- lists:sort(maps:to_list(Circuits)),
        Now - At >= (case Phase of open -> IdleMs; _ -> OpenMs end)
    ],
    State = lists:foldl(fun({Key, Circuit}, S) -> lose(Key, Circuit, idle, <<>>, S) end, State0, Late),
    case map_size(State#state.circuits) of
        0 -> State#state{sweeps = false};
        _ -> sweep(State)
    end.

sweep(#state{config = #{idle_ms := IdleMs, open_ms := OpenMs}} = State) ->
    act({timer, sweep, min(IdleMs, OpenMs)}, State#state{sweeps = true}).

trunk_cost(#{handed := Handed}) -> atoll_dist_egress:cost(Handed).

%% Frames

frame(open, Key, From, Frame, Now, State) ->
    case atoll_dist_circuit_frame:parse(Frame) of
        {ok, {open, _, Open}} -> open(Key, From, Frame, Open, Now, State);
        {error, _} -> dropped(malformed, State)
    end;
frame(Type, Key, From, Frame, Now, #state{circuits = Circuits} = State) ->
    case Circuits of
        #{Key := #circuit{ending = [_ | _]}} -> dropped(ending, State);
        #{Key := #circuit{back = From} = Circuit} -> known(Type, forth, Key, Frame, Circuit#circuit{heard_at = Now}, State);
        #{Key := #circuit{forth = From} = Circuit} -> known(Type, back, Key, Frame, Circuit#circuit{heard_at = Now}, State);
        #{} -> act({act, {here, From, Frame}}, State)
    end.

%% The peer may not have heard yet that the path is gone.
unknown(Type, _Key, _From, State) when Type =:= refused; Type =:= path_lost; Type =:= close ->
    dropped(unknown_path, State);
unknown(_Type, Key, From, State) ->
    stray(From, {path_lost, Key, said(unknown_path, <<>>, State)}, dropped(unknown_path, State)).

known(data, Side, Key, Frame, #circuit{phase = open, window = Window} = Circuit, State) ->
    case held(Side, Circuit) + cost(Frame) of
        Held when Held =< Window -> put_on(Side, Key, Frame, hold(Side, Held, Circuit), State);
        _ -> close(Key, Circuit, window_exceeded, State)
    end;
known(data, _Side, Key, _Frame, Circuit, State) ->
    close(Key, Circuit, bad_frame, State);
known(_Type, Side, Key, Frame, Circuit, State) ->
    case atoll_dist_circuit_frame:parse(Frame) of
        {ok, Parsed} -> control(Parsed, Side, Key, Frame, Circuit, State);
        {error, _} -> close(Key, Circuit, bad_frame, State)
    end.

control({ack, _, _}, Side, Key, Frame, #circuit{phase = open} = Circuit, State) ->
    put_on(Side, Key, Frame, Circuit, State);
%% Nothing overtakes but an `ack', here or at the node before: it was sent behind the
%% `confirm', which says the same.
control({ack, _, _}, forth, _Key, _Frame, #circuit{phase = opened}, State) ->
    dropped(early, State);
control({opened, _, #{window := Agreed}}, back, Key, Frame, #circuit{phase = opening, window = Window} = Circuit, State) when
    Agreed =< Window
->
    #state{reserved = Reserved} = State,
    Less = State#state{reserved = Reserved - 2 * (Window - Agreed)},
    put_on(back, Key, Frame, Circuit#circuit{phase = opened, window = Agreed}, Less);
control({confirm, _, _}, forth, Key, Frame, #circuit{phase = opened} = Circuit, State) ->
    put_on(forth, Key, Frame, Circuit#circuit{phase = open}, State);
control({refused, _, _}, back, Key, Frame, #circuit{phase = opening} = Circuit, State) ->
    last(Key, Circuit, back, Frame, State);
control({Type, _, _}, Side, Key, Frame, Circuit, State) when Type =:= path_lost; Type =:= close ->
    last(Key, Circuit, Side, Frame, State);
control(_Parsed, _Side, Key, _Frame, Circuit, State) ->
    close(Key, Circuit, bad_frame, State).

cost(Frame) -> atoll_dist_circuit_frame:cost(byte_size(Frame) - 30).

held(back, #circuit{held_back = Held}) -> Held;
held(forth, #circuit{held_forth = Held}) -> Held.

hold(back, Held, Circuit) -> Circuit#circuit{held_back = Held};
hold(forth, Held, Circuit) -> Circuit#circuit{held_forth = Held}.

%% Opening

open(Key, From, Frame, #{path := Path, window := Want} = Open, Now, #state{config = Config, circuits = Circuits} = State) ->
    case atoll_dist_admission:place(From, Path, Config) of
        here ->
            act({act, {here, From, Frame}}, State);
        {next, Next} when not is_map_key(Key, Circuits) ->
            case may_open(Next, Open, State) of
                true ->
                    case window(Want, From, State) of
                        {refuse, Why} ->
                            refuse(From, Key, Why, <<>>, State);
                        Window ->
                            Circuit = #circuit{
                                number = State#state.next, back = From, forth = Next, from = hd(Path), to = lists:last(Path),
                                window = Window, heard_at = Now
                            },
                            admit(Key, Circuit, atoll_dist_circuit_frame:narrowed(Window, Frame), State)
                    end;
                {refuse, Why, About} ->
                    refuse(From, Key, Why, About, State)
            end;
        {next, _} ->
            refuse(From, Key, exists, <<>>, State);
        {refuse, Why} ->
            refuse(From, Key, Why, <<>>, State)
    end.

may_open(Next, #{path := Path}, #state{config = #{policy := Policy, max_circuits := Max}, circuits = Circuits, trunks = Trunks}) ->
    case atoll_dist_admission:allows(Policy, hd(Path), lists:last(Path)) of
        _ when not is_map_key(Next, Trunks) -> {refuse, no_link, Next};
        false -> {refuse, policy, hd(Path)};
        true when map_size(Circuits) >= Max -> {refuse, circuits, <<>>};
        true -> true
    end.

window(Want, From, #state{config = Config, circuits = Circuits, reserved = Reserved}) ->
    Theirs = [atoll_dist_admission:cost(W, Config) || #circuit{back = Back, window = W} <- maps:values(Circuits), Back =:= From],
    Used = #{circuits => map_size(Circuits), reserved => Reserved, theirs => lists:sum(Theirs)},
    atoll_dist_admission:window(Want, Used, Config).

admit(Key, #circuit{window = Window} = Circuit, Frame, #state{config = Config, reserved = Reserved, next = Next, opened = Opened} = State0) ->
    State = State0#state{reserved = Reserved + atoll_dist_admission:cost(Window, Config), next = Next + 1, opened = Opened + 1},
    put_on(forth, Key, Frame, Circuit, case State of #state{sweeps = true} -> State; _ -> sweep(State) end).

refuse(From, Key, Why, About, #state{refused = Refused} = State) ->
    stray(From, {refused, Key, said(Why, About, State)}, State#state{refused = count(Why, Refused)}).

said(Why, About, #state{config = #{name := Name}}) -> {Name, Why, About}.

%% Endings

%% A neighbour of the circuit has gone.
cut(Key, #circuit{back = Name} = Circuit, Name, State) ->
    cut(Key, Circuit, forth, Name, State);
cut(Key, #circuit{forth = Name} = Circuit, Name, State) ->
    cut(Key, Circuit, back, Name, State).

cut(Key, #circuit{ending = Ending} = Circuit, Side, Name, State) ->
    case Ending of
        [] -> last(Key, Circuit, Side, path_lost(Key, link_down, Name, State), State#state{lost = count(link_down, State#state.lost)});
        [_ | _] -> ended(Key, hold(other(Side), 0, Circuit), [S || S <- Ending, S =:= Side], State)
    end.

path_lost(Key, Why, About, State) -> atoll_dist_circuit_frame:make({path_lost, Key, said(Why, About, State)}).

%% The path is no more, and both sides hear it.
lose(Key, Circuit, Why, About, #state{lost = Lost} = State) ->
    both(Key, Circuit, path_lost(Key, Why, About, State), State#state{lost = count(Why, Lost)}).

%% The circuit is no more.
close(Key, Circuit, Why, #state{lost = Lost} = State) ->
    Frame = atoll_dist_circuit_frame:make({close, Key, said(Why, <<>>, State)}),
    both(Key, Circuit, Frame, State#state{lost = count(Why, Lost)}).

both(_Key, #circuit{ending = [_ | _]}, _Frame, State) ->
    State;
both(Key, Circuit, Frame, State0) ->
    State = put_on(forth, Key, Frame, Circuit#circuit{ending = [back, forth]}, State0),
    #state{circuits = #{Key := Left}} = State,
    put_on(back, Key, Frame, Left, State).

%% One side hears the last of it; what was for the other does not matter any more.
last(Key, #circuit{number = Number} = Circuit0, Side, Frame, #state{trunks = Trunks} = State) ->
    Other = other(Side),
    Neighbour = neighbour(Other, Circuit0),
    Circuit = hold(Other, 0, Circuit0#circuit{ending = [Side]}),
    case Trunks of
        #{Neighbour := Trunk} ->
            Without = Trunks#{Neighbour := atoll_dist_egress:drop({Key, Number, Other}, Trunk)},
            put_on(Side, Key, Frame, Circuit, State#state{trunks = Without});
        #{} ->
            put_on(Side, Key, Frame, Circuit, State)
    end.

other(back) -> forth;
other(forth) -> back.

neighbour(back, #circuit{back = Name}) -> Name;
neighbour(forth, #circuit{forth = Name}) -> Name.

ended(Key, #circuit{window = Window}, [], #state{circuits = Circuits, reserved = Reserved, config = Config} = State) ->
    State#state{circuits = maps:remove(Key, Circuits), reserved = Reserved - atoll_dist_admission:cost(Window, Config)};
ended(Key, Circuit, Ending, #state{circuits = Circuits} = State) ->
    State#state{circuits = Circuits#{Key => Circuit#circuit{ending = Ending}}}.

%% Trunks

put_on(Side, Key, Frame, #circuit{number = Number, ending = Ending} = Circuit, #state{trunks = Trunks, circuits = Circuits} = State) ->
    Name = neighbour(Side, Circuit),
    case Trunks of
        #{Name := Trunk} ->
            With = Trunks#{Name := atoll_dist_egress:push({Key, Number, Side}, Frame, Trunk)},
            pump(Name, State#state{circuits = Circuits#{Key => Circuit}, trunks = With});
        #{} ->
            %% Only a last frame can be for a neighbour that has gone.
            ended(Key, Circuit, lists:delete(Side, Ending), State)
    end.

stray(Name, Frame, #state{trunks = Trunks} = State) ->
    case atoll_dist_egress:stray(atoll_dist_circuit_frame:make(Frame), map_get(Name, Trunks)) of
        {ok, Trunk} -> pump(Name, State#state{trunks = Trunks#{Name := Trunk}});
        full -> dropped(strays, State)
    end.

%% Hands the trunk as much as it may have.
pump(Name, #state{trunks = Trunks} = State) ->
    pump(Name, map_get(Name, Trunks), [], 0, State).

pump(Name, Trunk0, Frames, Bytes, #state{config = #{handed := Max}} = State) ->
    case atoll_dist_egress:next(Max, Trunk0) of
        {stray, Frame, Trunk} -> pump(Name, Trunk, [Frame | Frames], Bytes + byte_size(Frame), State);
        {{flow, {Key, _, Side}}, Frame, Trunk} -> pump(Name, Trunk, [Frame | Frames], Bytes + byte_size(Frame), taken(Frame, Key, Side, State));
        none -> pumped(Name, Trunk0, Frames, Bytes, State)
    end.

pumped(Name, Trunk, [], 0, #state{trunks = Trunks} = State) ->
    State#state{trunks = Trunks#{Name := Trunk}};
pumped(Name, Trunk, Frames, Bytes, #state{trunks = Trunks, forwarded = Count, bytes = Sum} = State) ->
    Send = {act, {send, Name, lists:reverse(Frames), Bytes}},
    act(Send, State#state{trunks = Trunks#{Name := Trunk}, forwarded = Count + length(Frames), bytes = Sum + Bytes}).

taken(<<_, Letter, _/binary>> = Frame, Key, Side, #state{circuits = Circuits} = State) when Letter =:= $D; Letter =:= $E ->
    #{Key := Circuit} = Circuits,
    State#state{circuits = Circuits#{Key := hold(Side, held(Side, Circuit) - cost(Frame), Circuit)}};
taken(<<_, Letter, _/binary>>, Key, Side, #state{circuits = Circuits} = State) when Letter =:= $R; Letter =:= $P; Letter =:= $C ->
    #{Key := #circuit{ending = Ending} = Circuit} = Circuits,
    ended(Key, Circuit, lists:delete(Side, Ending), State);
taken(_Frame, _Key, _Side, State) ->
    State.

act(Act, #state{acts = Acts} = State) -> State#state{acts = [Act | Acts]}.

dropped(Why, #state{dropped = Dropped} = State) -> State#state{dropped = count(Why, Dropped)}.

count(Why, Counts) -> maps:update_with(Why, fun(N) -> N + 1 end, 1, Counts).

%% @doc The short way for most frames, which does the same as `{frame, From, Frame}': data
%% of an open circuit where nothing waits for the neighbour that it goes to. It is to be
%% handed to that one's trunk at once, and for that place there if one is known and it may
%% overtake others; `waits' has to be said if it stays there.
-spec straight(From :: name(), binary(), atoll_protocol:now_ms(), state()) -> {To :: name(), none | place(), state()} | no.
straight(From, <<?VERSION, Letter, Key:20/binary, _:64, Rest/binary>> = Frame, Now, #state{circuits = Circuits} = State) when
    Letter =:= $D orelse Letter =:= $E, Rest =/= <<>>
->
    case Circuits of
        #{Key := #circuit{phase = open, ending = [], back = From, forth = To, at_forth = At} = Circuit} ->
            straight(To, place(Letter, At), Key, Circuit, Frame, Now, State);
        #{Key := #circuit{phase = open, ending = [], forth = From, back = To, at_back = At} = Circuit} ->
            straight(To, place(Letter, At), Key, Circuit, Frame, Now, State);
        #{} -> no
    end;
straight(_From, _Frame, _Now, _State) ->
    no.

place($E, Place) -> Place;
place($D, _Place) -> none.

straight(To, Place, Key, #circuit{heard_at = At, window = Window} = Circuit, Frame, Now, State) ->
    #state{trunks = Trunks, circuits = Circuits, forwarded = Count, bytes = Sum} = State,
    Size = byte_size(Frame),
    case Trunks of
        #{To := Trunk} ->
            case atoll_dist_egress:is_idle(Trunk) andalso Size =< atoll_dist_circuit_frame:max_frame() andalso cost(Frame) =< Window of
                true when Now - At < ?OFTEN_MS ->
                    {To, Place, State#state{forwarded = Count + 1, bytes = Sum + Size}};
                true ->
                    %% A copy, since it is kept and a part of a frame keeps all of it.
                    Heard = Circuits#{binary:copy(Key) := Circuit#circuit{heard_at = Now}},
                    {To, Place, State#state{circuits = Heard, forwarded = Count + 1, bytes = Sum + Size}};
                false ->
                    no
            end;
        #{} ->
            no
    end.

%% @doc What it carries: `reserved' of the budget, `held' now; refusals, lost paths and
%% dropped frames by reason.
-spec figures(state()) -> #{
    circuits := non_neg_integer(),
    neighbours := non_neg_integer(),
    budget := pos_integer(),
    reserved := non_neg_integer(),
    held := non_neg_integer(),
    forwarded := non_neg_integer(),
    bytes := non_neg_integer(),
    opened := non_neg_integer(),
    refused := #{atom() => pos_integer()},
    lost := #{atom() => pos_integer()},
    dropped := #{atom() => pos_integer()}
}.
figures(#state{circuits = Circuits, trunks = Trunks, config = #{budget := Budget}} = State) ->
    #{
        circuits => map_size(Circuits),
        neighbours => map_size(Trunks),
        budget => Budget,
        reserved => State#state.reserved,
        held => lists:sum([Back + Forth || #circuit{held_back = Back, held_forth = Forth} <- maps:values(Circuits)]) +
            lists:sum([atoll_dist_egress:handed(Trunk) || Trunk <- maps:values(Trunks)]),
        forwarded => State#state.forwarded,
        bytes => State#state.bytes,
        opened => State#state.opened,
        refused => State#state.refused,
        lost => State#state.lost,
        dropped => State#state.dropped
    }.
