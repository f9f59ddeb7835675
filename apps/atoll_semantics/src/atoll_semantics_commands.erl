%% SPDX-License-Identifier: Apache-2.0
%% @doc Random commands for s_group, in the style of the original's QuickCheck model: changes
%% of groups, names, look-ups and sends in its frequencies, the caller mostly a member;
%% and, beyond it, processes that end, free and hidden nodes' names, and group names that
%% are in use already. One seed gives one sequence.
%%
%% A sequence is a list of {Ni, Command}. It can be shortened: each command means
%% something in each state.
-module(atoll_semantics_commands).

-export([sequence/2, sequence/3, next/4, nodes/0, is_fault/1, first_living/2, dead/1, dead/2, with_life/2, shrink/2]).

-export_type([sequence/0, written/0, dead/0]).

%% As atoll_semantics:command(), but processes without their life, which hangs on what
%% came before.
-type written() :: tuple() | atom().
-type sequence() :: [{atoll_semantics:node_id(), written()}].
%% Processes that have ended, and how many numbers of each node's are used up.
-type dead() :: #{atoll_semantics:p() => [], atoll_semantics:node_id() => pos_integer()}.

-define(NORMAL, [n1, n2, n3, n4, n5, n6]).
%% Real nodes in this order have names in this order.
-define(HIDDEN, [x1, x2]).
-define(GROUPS, [g1, g2, g3, g4]).
-define(NAMES, [a, <<"b">>, {c, 1}, "d"]).
%% So many processes of a node are alive.
-define(LIVES, 3).
%% A killed node has had processes of fewer numbers than these, those of its next start come after.
-define(OF_A_START, 100).

%% The nodes of the sequences: normal ones, and hidden ones.
-spec nodes() -> {[atom(), ...], [atom(), ...]}.
nodes() -> {?NORMAL, ?HIDDEN}.

%% So many commands.
-spec sequence(Seed :: integer(), Length :: non_neg_integer()) -> sequence().
sequence(Seed, Length) -> sequence(Seed, Length, kinds()).

%% With these kinds, or among the others cuts, heals, kills and starts.
-spec sequence(Seed :: integer(), Length :: non_neg_integer(), faults | [{pos_integer(), atom()}]) -> sequence().
sequence(Seed, Length, faults) ->
    sequence(Seed, Length, faults() ++ kinds());
sequence(Seed, Length, Kinds) ->
    sequence(Length, atoll_semantics_sides:new(?NORMAL, ?HIDDEN), #{}, Kinds, rand:seed_s(exsss, Seed)).

sequence(0, _Sides, _Dead, _Kinds, _Rand) ->
    [];
sequence(N, Sides0, Dead0, Kinds, Rand0) ->
    {{Ni, Command} = Next, Rand} = command(Sides0, Dead0, Kinds, Rand0),
    {Sides1, _} = atoll_semantics_sides:step(Sides0, with_life(Command, Dead0), Ni),
    Sides =
        case is_fault(Command) of
            true -> element(1, atoll_semantics_sides:settled(Sides1, unseen));
            false -> Sides1
        end,
    [Next | sequence(N - 1, Sides, add_dead(Next, Dead0), Kinds, Rand)].

%% One more, after what has happened.
-spec next(faults | none, rand:state(), atoll_semantics_sides:sides(), dead()) ->
    {{atoll_semantics:node_id(), written()}, rand:state()}.
next(Faults, Rand, Sides, Dead) ->
    Kinds =
        case Faults of
            faults -> faults() ++ kinds();
            none -> kinds()
        end,
    command(Sides, Dead, Kinds, Rand).

%% Whether it happens to nodes, and is no call.
-spec is_fault(written()) -> boolean().
is_fault({cut, _}) -> true;
is_fault(Command) -> lists:member(Command, [heal, kill, start]).

%% The processes that have ended.
-spec dead(sequence()) -> dead().
dead(Sequence) -> dead(Sequence, #{}).

-spec dead(sequence(), dead()) -> dead().
dead(Sequence, Dead) -> lists:foldl(fun add_dead/2, Dead, Sequence).

add_dead({_, {exit, P}}, Dead) -> Dead#{P => []};
add_dead({Ni, kill}, Dead) -> Dead#{Ni => first_living(Ni, Dead) - 1 + ?OF_A_START};
add_dead(_, Dead) -> Dead.

%% Those before it were on an earlier start of their node.
-spec first_living(atoll_semantics:node_id(), dead()) -> pos_integer().
first_living(Ni, Dead) ->
    case Dead of
        #{Ni := Used} when is_integer(Used) -> Used + 1;
        #{} -> 1
    end.

is_dead({Ni, N} = P, Dead) -> is_map_key(P, Dead) orelse N < first_living(Ni, Dead).

%% The command as the semantics takes it.
-spec with_life(written(), dead()) -> atoll_semantics:command() | atoll_semantics_sides:fault().
with_life({Register, S, Name, P}, Dead) when Register =:= register_name; Register =:= re_register_name ->
    {Register, S, Name, {case is_dead(P, Dead) of true -> dead; false -> alive end, P}};
with_life(Command, _Dead) ->
    Command.

%% A shorter sequence that fails too: commands are left out, many at a time and then
%% one by one, as long as it does.
-spec shrink(sequence(), fun((sequence()) -> boolean())) -> sequence().
shrink(Sequence, Fails) ->
    shrink(max(1, length(Sequence) div 2), Sequence, Fails).

shrink(0, Sequence, _Fails) ->
    Sequence;
shrink(Size, Sequence, Fails) ->
    Starts = lists:seq(1, length(Sequence), Size),
    Without = [
        lists:sublist(Sequence, At - 1) ++ lists:nthtail(min(length(Sequence), At - 1 + Size), Sequence)
     || At <- Starts
    ],
    case first(Fails, Without) of
        {ok, Shorter} -> shrink(min(Size, max(1, length(Shorter) div 2)), Shorter, Fails);
        none -> shrink(Size div 2, Sequence, Fails)
    end.

first(_Fails, []) -> none;
first(Fails, [Sequence | Others]) ->
    case Sequence =/= [] andalso Fails(Sequence) of
        true -> {ok, Sequence};
        false -> first(Fails, Others)
    end.

%% One command

%% Of the original: 5 for each change of a group, 10 for each other.
kinds() ->
    [
        {5, new}, {5, add}, {5, remove}, {5, delete},
        {10, register_name}, {10, re_register_name}, {10, unregister_name},
        {7, whereis}, {3, whereis_at}, {7, send}, {3, send_at},
        {5, exit}, {4, registered_names}, {2, registered_names_at},
        {1, s_groups}, {1, own_s_groups}, {2, own_nodes}, {1, own_nodes_of}, {2, info}
    ].

%% Cuts are healed soon, and dead nodes started. There are more groups, and names in them that
%% another side may have given too.
faults() -> [{8, cut}, {6, heal}, {6, kill}, {8, start}, {8, new}, {20, rival}].

command(Sides, Dead, Kinds, Rand0) ->
    {Kind, Rand1} = weighted(Kinds, Rand0),
    Living = all() -- atoll_semantics_sides:dead(Sides),
    case Kind of
        cut ->
            {Count, Rand2} = one_of([2, 2, 2, 3], Rand1),
            {Sorted, Rand} = lists:mapfoldl(fun(N, R0) -> {Nth, R} = chance(Count, R0), {{Nth, N}, R} end, Rand2, all()),
            {{hd(all()), {cut, [[N || {I, N} <- Sorted, I =:= Nth] || Nth <- lists:seq(1, Count)]}}, Rand};
        heal ->
            {{hd(all()), heal}, Rand1};
        start ->
            {Cur, Rand} = one_of(case atoll_semantics_sides:dead(Sides) of [] -> all(); Gone -> Gone end, Rand1),
            {{Cur, start}, Rand};
        _ ->
            {Cur, Rand2} = one_of(case Living of [] -> all(); _ -> Living end, Rand1),
            case Kind of
                kill -> {{Cur, kill}, Rand2};
                rival -> rival(Cur, Living, Sides, Dead, Rand2);
                _ -> command(Kind, Cur, atoll_semantics_sides:state(Cur, Sides), Dead, Rand2)
            end
    end.

%% A process of a node whose group has members on another side gets one of few names; or any one.
rival(Cur, Living, Sides, Dead, Rand0) ->
    Torn = [
        {N, S}
     || N <- Living,
        {S, Nis, _} <- atoll_semantics:groups_of(N, atoll_semantics_sides:state(N, Sides)),
        not lists:any(fun(Part) -> Nis -- Part =:= [] end, atoll_semantics_sides:parts(Sides))
    ],
    case Torn of
        [] ->
            command(register_name, Cur, atoll_semantics_sides:state(Cur, Sides), Dead, Rand0);
        _ ->
            {{N, S}, Rand1} = one_of(Torn, Rand0),
            {Name, Rand2} = one_of(lists:sublist(?NAMES, 2), Rand1),
            {K, Rand} = chance(?LIVES, Rand2),
            {{N, {register_name, S, Name, alive(N, K, Dead)}}, Rand}
    end.

command(new, Cur, State, _Dead, Rand0) ->
    Unused = ?GROUPS -- [S || {S, _, _} <- element(1, State)],
    {S, Rand1} =
        case Unused of
            [] -> one_of(?GROUPS, Rand0);
            _ -> one_of([{6, Unused}, {3, ?GROUPS}, {1, [undefined]}], weights, Rand0)
        end,
    {Others, Rand2} = some(Rand1),
    {IsIn, Rand} = chance(10, Rand2),
    {{Cur, {new_s_group, S, case IsIn of 1 -> Others; _ -> [Cur | Others] end}}, Rand};
command(add, Cur0, State, _Dead, Rand0) ->
    {{Cur, S}, Rand1} = member(Cur0, State, Rand0),
    {Nis, Rand} = some(Rand1),
    {{Cur, {add_nodes, S, Nis}}, Rand};
command(remove, Cur0, State, _Dead, Rand0) ->
    {{Cur, S}, Rand1} = member(Cur0, State, Rand0),
    {Nis, Rand2} = some(Rand1),
    {IsWith, Rand} = chance(10, Rand2),
    {{Cur, {remove_nodes, S, case IsWith of 1 -> Nis; _ -> Nis -- [Cur] end}}, Rand};
command(delete, Cur0, State, _Dead, Rand0) ->
    {{Cur, S}, Rand} = member(Cur0, State, Rand0),
    {{Cur, {delete_s_group, S}}, Rand};
command(Register, Cur, State, Dead, Rand0) when Register =:= register_name; Register =:= re_register_name ->
    {S, Rand1} = scope_of(Cur, State, Rand0),
    {Name, Rand2} = one_of(?NAMES, Rand1),
    {P, Rand} = process(Cur, S, State, Dead, Rand2),
    {{Cur, {Register, S, Name, P}}, Rand};
command(unregister_name, Cur, State, _Dead, Rand0) ->
    {S, Rand1} = scope_of(Cur, State, Rand0),
    {Name, Rand} = name_in(Cur, S, State, Rand1),
    {{Cur, {unregister_name, S, Name}}, Rand};
command(whereis, Cur, State, _Dead, Rand0) ->
    {S, Rand1} = scope_of(Cur, State, Rand0),
    {Name, Rand} = name_in(Cur, S, State, Rand1),
    {{Cur, {whereis_name, S, Name}}, Rand};
command(whereis_at, Cur, State, _Dead, Rand0) ->
    {Node, Rand1} = one_of(all(), Rand0),
    {S, Rand2} = scope_of(Node, State, Rand1),
    {Name, Rand} = name_in(Node, S, State, Rand2),
    {{Cur, {whereis_name, Node, S, Name}}, Rand};
command(send, Cur, State, _Dead, Rand0) ->
    {S, Rand1} = scope_of(Cur, State, Rand0),
    {Name, Rand} = name_in(Cur, S, State, Rand1),
    {{Cur, {send, S, Name, hello}}, Rand};
command(send_at, Cur, State, _Dead, Rand0) ->
    {Node, Rand1} = one_of(all(), Rand0),
    {S, Rand2} = scope_of(Node, State, Rand1),
    {Name, Rand} = name_in(Node, S, State, Rand2),
    {{Cur, {send, Node, S, Name, hello}}, Rand};
command(exit, Cur, {Grs, Fgs, Fhs, _}, Dead, Rand0) ->
    %% Mostly one that has a name.
    Named = lists:usort([P || Ns <- [Of || {_, _, Of} <- Grs] ++ [Of || {_, Of} <- Fgs ++ Fhs], {_, P} <- Ns]),
    {Chance, Rand1} = chance(5, Rand0),
    case Named of
        [_ | _] when Chance > 1 ->
            {P, Rand} = one_of(Named, Rand1),
            {{Cur, {exit, P}}, Rand};
        _ ->
            {K, Rand} = chance(?LIVES, Rand1),
            {{Cur, {exit, alive(Cur, K, Dead)}}, Rand}
    end;
command(registered_names, Cur, State, _Dead, Rand0) ->
    {S, Rand} = scope_of(Cur, State, Rand0),
    {{Cur, {registered_names, S}}, Rand};
command(registered_names_at, Cur, _State, _Dead, Rand0) ->
    {Node, Rand} = one_of(all(), Rand0),
    {{Cur, {registered_names_at, Node}}, Rand};
command(own_nodes_of, Cur, State, _Dead, Rand0) ->
    {S, Rand} = scope_of(Cur, State, Rand0),
    {{Cur, {own_nodes, S}}, Rand};
command(Read, Cur, _State, _Dead, Rand) ->
    {{Cur, Read}, Rand}.

all() -> ?NORMAL ++ ?HIDDEN.

%% A node and a group that it is mostly in.
member(Cur, {Grs, _, _, _}, Rand0) ->
    {Chance, Rand1} = chance(10, Rand0),
    case Grs of
        [_ | _] when Chance > 1 ->
            {{S, Nis, _}, Rand2} = one_of(Grs, Rand1),
            {Member, Rand} = one_of(Nis, Rand2),
            {{Member, S}, Rand};
        _ ->
            {S, Rand} = one_of(?GROUPS, Rand1),
            {{Cur, S}, Rand}
    end.

%% Mostly a group that the node is in.
scope_of(Ni, State, Rand0) ->
    Own =
        case atoll_semantics:groups_of(Ni, State) of
            [] -> [undefined];
            Groups -> [S || {S, _, _} <- Groups]
        end,
    one_of([{8, Own}, {1, ?GROUPS}, {1, [undefined]}], weights, Rand0).

%% Mostly a name that somebody has.
name_in(Ni, S, State, Rand) ->
    case scope(Ni, S, State) of
        {_, [_ | _] = Ns} -> one_of([{7, [Name || {Name, _} <- Ns]}, {3, ?NAMES}], weights, Rand);
        _ -> one_of(?NAMES, Rand)
    end.

%% A dead node may be in two groups of one name: it leaves one when it is started.
scope(Ni, S, {Grs, _, _, _} = State) ->
    case [{Nis, Ns} || {Name, Nis, Ns} <- Grs, Name =:= S, lists:member(Ni, Nis)] of
        [Either | _] -> Either;
        [] -> atoll_semantics:scope(Ni, S, State)
    end.

%% Mostly one that lives, on a member.
process(Ni, S, State, Dead, Rand0) ->
    Members =
        case scope(Ni, S, State) of
            {Nis, _} -> Nis;
            none -> [Ni]
        end,
    {Node, Rand1} = one_of([{8, Members}, {2, all()}], weights, Rand0),
    {K, Rand2} = chance(?LIVES, Rand1),
    {Chance, Rand} = chance(10, Rand2),
    {Node, Living} = alive(Node, K, Dead),
    case Chance of
        1 when Living > ?LIVES -> {{Node, Living - ?LIVES}, Rand};
        _ -> {{Node, Living}, Rand}
    end.

%% After a process has ended, another one takes its turn.
alive(Node, K, Dead) ->
    case is_dead({Node, K}, Dead) of
        true -> alive(Node, K + ?LIVES, Dead);
        false -> {Node, K}
    end.

some(Rand0) ->
    {Count, Rand1} = chance(4, Rand0),
    some(Count, Rand1).

some(0, Rand) ->
    {[], Rand};
some(N, Rand0) ->
    {Node, Rand1} = one_of(all(), Rand0),
    {Nodes, Rand} = some(N - 1, Rand1),
    {[Node | Nodes], Rand}.

chance(N, Rand) -> rand:uniform_s(N, Rand).

one_of(List, Rand0) ->
    {Nth, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(Nth, List), Rand}.

one_of(Weighted, weights, Rand0) ->
    {List, Rand} = weighted(Weighted, Rand0),
    one_of(List, Rand).

weighted(Weighted, Rand0) ->
    {N, Rand} = rand:uniform_s(lists:sum([Weight || {Weight, _} <- Weighted]), Rand0),
    {weigh(N, Weighted), Rand}.

weigh(N, [{Weight, What} | _]) when N =< Weight -> What;
weigh(N, [{Weight, _} | Others]) -> weigh(N - Weight, Others).
