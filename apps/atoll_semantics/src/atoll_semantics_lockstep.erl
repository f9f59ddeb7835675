%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs commands in lockstep on the semantics and on something real, and compares, after
%% each of them, the value, what each node says of itself when all has settled, and what an
%% answer promises for the moment at which it is given: whoever asks after a change of a
%% group or of a name was answered sees it.
-module(atoll_semantics_lockstep).

-export([run/3, new/0, step/4, random/3, views/1, format/2]).

-export_type([backend/1, result/1, lockstep/0, outcome/0]).

%% What is real: does a command on a node and gives its value, `not_here' if it has no
%% such command; gives the views of this moment, and those when all has settled, which
%% may look for those given.
-type backend(World) :: #{
    do := fun((atoll_semantics:node_id(), atoll_semantics_commands:written(), World) -> {Value :: term(), World}),
    now := fun((World) -> atoll_semantics:views()),
    views := fun((Expected :: atoll_semantics:views(), World) -> {atoll_semantics:views(), World}),
    %% The views when all has settled after something happened to nodes, which may look for some
    %% that fit; and who was told until now that it has lost a name, each as often as it was.
    settle => fun((Fits :: fun((atoll_semantics:views()) -> boolean()), World) -> {atoll_semantics:views(), World}),
    told => fun((World) -> [atoll_semantics:p()]),
    %% After nodes have met, connections that no group needs may come a while later.
    connects_late => true
}.

-type result(World) :: {ok, Compared :: non_neg_integer(), World} | {differs, map(), World}.

%% What a command means, what it did, and all that is not as meant. Of what happens to nodes the
%% value is `ok', or `nothing' where it is so already: a dead node is killed, one part is healed.
-type outcome() :: #{meant := atoll_semantics:value(), was := term(), differences := [term()]}.

-record(lockstep, {
    sides :: atoll_semantics_sides:sides(),
    dead = #{} :: atoll_semantics_commands:dead()
}).

-opaque lockstep() :: #lockstep{}.

%% @doc All commands, to the first that differs.
-spec run(atoll_semantics_commands:sequence(), backend(World), World) -> result(World).
run(Sequence, Backend, World) ->
    run(Sequence, 1, new(), Backend, World).

run([], Nth, _Lockstep, _Backend, World) ->
    {ok, Nth - 1, World};
run([{Ni, Written} = Command | Sequence], Nth, Lockstep0, Backend, World0) ->
    case step(Command, Lockstep0, Backend, World0) of
        {#{differences := []}, Lockstep, World} -> run(Sequence, Nth + 1, Lockstep, Backend, World);
        {#{differences := All}, _, World} -> {differs, #{command => {Nth, Ni, Written}, differences => All}, World}
    end.

%% @doc Nothing has happened yet.
-spec new() -> lockstep().
new() ->
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    #lockstep{sides = atoll_semantics_sides:new(Normal, Hidden)}.

%% @doc One command.
-spec step({atoll_semantics:node_id(), atoll_semantics_commands:written()}, lockstep(), backend(World), World) ->
    {outcome(), lockstep(), World}.
step({Ni, Written} = Command, #lockstep{sides = Sides0, dead = Dead}, Backend, World0) ->
    {Sides1, Meant} = atoll_semantics_sides:step(Sides0, atoll_semantics_commands:with_life(Written, Dead), Ni),
    {Sides, Value, Differences, World} =
        case atoll_semantics_commands:is_fault(Written) of
            true when Sides1 =:= Sides0 -> {Sides0, nothing, [], World0};
            true -> fault(Command, Sides1, Backend, World0);
            false -> call(Command, Sides1, Meant, Backend, World0)
        end,
    Broken = [{invariant, What} || {broken, What} <- [atoll_semantics_sides:invariant(Sides)]],
    {
        #{meant => Meant, was => Value, differences => Differences ++ Broken},
        #lockstep{sides = Sides, dead = dead(Value, Command, Dead)},
        World
    }.

dead(nothing, _Command, Dead) -> Dead;
dead(_Value, Command, Dead) -> atoll_semantics_commands:dead([Command], Dead).

%% @doc A command that may come next, with those that happen to nodes among them or without.
-spec random(faults | none, rand:state(), lockstep()) ->
    {{atoll_semantics:node_id(), atoll_semantics_commands:written()}, rand:state()}.
random(Faults, Rand, #lockstep{sides = Sides, dead = Dead}) ->
    atoll_semantics_commands:next(Faults, Rand, Sides, Dead).

%% @doc What is meant to be seen on each node now.
-spec views(lockstep()) -> atoll_semantics:views().
views(#lockstep{sides = Sides}) -> atoll_semantics_sides:views(Sides).

%% Something happens to nodes: what the semantics leaves open is taken from what is seen.
fault({Ni, Written}, State1, #{do := Do, settle := Settle, told := Told}, World0) ->
    Before = Told(World0),
    {ok, World1} = Do(Ni, Written, World0),
    Fits = fun(Seen) ->
        {State, _, _} = Settled = atoll_semantics_sides:settled(State1, Seen),
        differences(Settled, Seen) =:= [] andalso atoll_semantics_sides:invariant(State) =:= ok
    end,
    {Now, World} = Settle(Fits, World1),
    {State2, Losers, _} = Settled2 = atoll_semantics_sides:settled(State1, Now),
    %% Whose node is killed is told nothing.
    News = [P || {N, _} = P <- Told(World) -- Before, is_map_key(N, Now)],
    Heard = [{told, [{meant, Losers}, {was, lists:sort(News)}]} || not were_told(Losers, lists:sort(News))],
    {State2, ok, differences(Settled2, Now) ++ Heard, World}.

%% Each once for each name that it loses; a process may have one in each of several groups.
were_told(open, _News) -> true;
were_told({Losers, Rivals}, News) -> Losers -- News =:= [] andalso News -- (Rivals ++ (Losers -- Rivals)) =:= [].

differences({State, _Losers, Wrong}, Seen) ->
    Wrong ++ compared(atoll_semantics_sides:views(State), Seen).

compared(Expected, Seen) ->
    [
        {N, [{meant, View}, {was, Was}]}
     || N <- lists:usort(maps:keys(Expected) ++ maps:keys(Seen)),
        View <- [maps:get(N, Expected, down)],
        Was <- [maps:get(N, Seen, down)],
        View =/= Was
    ].

call({Ni, Written}, State, Meant, #{do := Do, now := Now, views := Views} = Backend, World0) ->
    Expected = atoll_semantics_sides:views(State),
    {Value, World1} = Do(Ni, Written, World0),
    AtOnce =
        case is_done(Value) of
            true -> at_once(Ni, Written, State, Expected, fun() -> Now(World1) end);
            false -> []
        end,
    %% Nodes that have met may have found more of each other meanwhile.
    IsOpen =
        atoll_semantics_sides:is_haunted(State) orelse
            (is_map_key(connects_late, Backend) andalso atoll_semantics_sides:has_met(State)),
    {Seen, World} =
        case {IsOpen, Backend} of
            {true, #{connects_late := true, settle := Settle}} ->
                Settle(
                    fun(Now1) ->
                        {Other1, _, _} = Again = atoll_semantics_sides:settled_again(State, Now1),
                        compared(Expected, Now1) =:= [] orelse
                            (differences(Again, Now1) =:= [] andalso atoll_semantics_sides:invariant(Other1) =:= ok)
                    end,
                    World1
                );
            {_, _} ->
                Views(Expected, World1)
        end,
    Differences = [{value, [{meant, Meant}, {was, Value}]} || Value =/= not_here, not atoll_semantics:agrees(Meant, Value)],
    case compared(Expected, Seen) of
        [_ | _] = More ->
            case IsOpen of
                true ->
                    {Other, _, _} = Settled = atoll_semantics_sides:settled_again(State, Seen),
                    {Other, Value, Differences ++ differences(Settled, Seen), World};
                false ->
                    {State, Value, Differences ++ More ++ AtOnce, World}
            end;
        [] ->
            {State, Value, Differences ++ AtOnce, World}
    end.

is_done(yes) -> true;
is_done(ok) -> true;
is_done({ok, _, _}) -> true;
is_done(_) -> false.

%% What should be so already and is not. Of a refusal nothing is promised: what was put
%% for it may still be on its way out.
at_once(Ni, {Function, S, _, _}, State, Expected, Now) when Function =:= register_name; Function =:= re_register_name ->
    names_at_once(Ni, S, State, Expected, Now);
at_once(Ni, {unregister_name, S, _}, State, Expected, Now) ->
    names_at_once(Ni, S, State, Expected, Now);
at_once(_Ni, {Function, _, _}, _State, Expected, Now) when
    Function =:= new_s_group; Function =:= add_nodes; Function =:= remove_nodes
->
    groups_at_once(Expected, Now);
at_once(_Ni, {delete_s_group, _}, _State, Expected, Now) ->
    groups_at_once(Expected, Now);
at_once(_Ni, _Read, _State, _Expected, _Now) ->
    [].

groups_at_once(Expected, Now) ->
    missed(fun(#{groups := Groups}) -> Groups end, maps:keys(Expected), Expected, Now()).

names_at_once(Ni, S, State, Expected, Now) ->
    case atoll_semantics_sides:scope(Ni, S, State) of
        none -> [];
        {Nis, _} -> missed(fun(#{names := Names}) -> [Name || {G, _, _} = Name <- Names, G =:= S] end, Nis, Expected, Now())
    end.

missed(Part, Nis, Expected, Seen) ->
    [
        {at_once, N, [{meant, Meant}, {was, Was}]}
     || N <- lists:sort(Nis),
        Meant <- [Part(maps:get(N, Expected))],
        Was <- [Part(maps:get(N, Seen))],
        Was =/= Meant
    ].

%% @doc For people, with what makes it happen again: in virtual time atoll_semantics_tests
%% takes the same sequence.
-spec format(Seed :: term(), {atoll_semantics_commands:sequence(), map()}) -> unicode:chardata().
format(Seed, {Sequence, Difference}) ->
    io_lib:format("seed ~0p~n~p~nThe commands, for atoll_semantics_tests:replay/2:~n~p.~n", [Seed, Difference, Sequence]).
