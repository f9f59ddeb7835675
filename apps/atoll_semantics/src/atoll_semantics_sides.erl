%% SPDX-License-Identifier: Apache-2.0
%% @doc The semantics of s_group where nodes cannot reach each other: a copy of atoll_semantics
%% for each side of a partition, in which the nodes of the other sides, and those that are
%% dead, are members that do not answer; and what all agree on when the sides meet.
%%
%% | what happens | what it means |
%% |---|---|
%% | a cut | each side keeps its nodes' groups, with all members, and the names of its own processes |
%% | a call in a side | as in atoll_semantics, but who cannot be reached is not added, gets no name, answers no look-up, and is removed by a majority alone |
%% | a node is killed | its names go; it stays a member. A group whose last living member it was is gone |
%% | it is started | it is in the groups of which a living member knows it, without names |
%% | the sides meet | of a group: a deletion on any side wins, else each side's additions and removals count; of its names: all whose node is still a member, of two processes the one on the smaller node |
%%
%% Two things are left open here, and taken from what is seen: who is connected with whom
%% beyond what groups demand, after nodes meet; and the members of a group where the order of
%% what was done on two sides decides, or where the last that knew of it may have died
%% (`loose', `ghosts'). Of these it is checked that all agree, that
%% nobody is a member who was none on any side, and that no name comes from nowhere.
-module(atoll_semantics_sides).

-export([new/2, step/3, settled/2, settled_again/2, is_haunted/1, has_met/1, views/1, state/2, scope/3, parts/1, dead/1, invariant/1]).

-export_type([sides/0, fault/0]).

-type node_id() :: atoll_semantics:node_id().
-type fault() :: {cut, [[node_id()]]} | heal | kill | start.
-type id() :: pos_integer().
-type told() :: {[atoll_semantics:p()], [atoll_semantics:p()]} | open.

-record(side, {
    nodes :: [node_id(), ...],
    state :: atoll_semantics:state(),
    %% A group keeps its number whatever its members become.
    ids = [] :: [{id(), atoll_semantics:s(), [node_id()]}],
    %% What became of groups since the cut.
    changes = #{} :: #{id() => deleted | #{node_id() => in | out}}
}).

-record(sides, {
    sides :: [#side{}, ...],
    dead = [] :: [node_id()],
    next = 1 :: id(),
    %% Groups when the cut was made.
    base = [] :: [{id(), atoll_semantics:s(), [node_id()]}],
    %% Names of groups whose members the order of things on two sides decides, and who may be one.
    loose = #{} :: #{atoll_semantics:s() => [node_id()]},
    %% Names of groups that had members removed, and of those that nobody on some side knows any
    %% more but, it may be, a former member: it tells a member that it meets, which is back then.
    former = [] :: [atoll_semantics:s()],
    ghosts = #{} :: #{atoll_semantics:s() => [node_id()]},
    %% Whether nodes meet that may find more of each other than is known here.
    is_open = false :: boolean(),
    has_met = false :: boolean(),
    %% Who loses a name as the sides meet.
    losers = [] :: [atoll_semantics:p()] | open,
    %% Who may lose one before the group or the node's membership goes.
    rivals = [] :: [atoll_semantics:p()]
}).

-opaque sides() :: #sides{}.

%% One side, all alive.
-spec new([node_id()], [node_id()]) -> sides().
new(Normal, Hidden) ->
    #sides{sides = [#side{nodes = lists:sort(Normal ++ Hidden), state = atoll_semantics:new(Normal, Hidden)}]}.

%% What a node knows.
-spec state(node_id(), sides()) -> atoll_semantics:state().
state(Ni, M) -> (side(Ni, M))#side.state.

%% As atoll_semantics:scope/3, of the nodes that answer.
-spec scope(node_id(), atoll_semantics:s(), sides()) -> {[node_id()], [tuple()]} | none.
scope(Ni, S, #sides{} = M) ->
    #side{state = State} = Side = side(Ni, M),
    case atoll_semantics:scope(Ni, S, State) of
        {Nis, Ns} -> {common(Nis, up(Side, M)), Ns};
        none -> none
    end.

-spec parts(sides()) -> [[node_id()]].
parts(#sides{sides = Sides}) -> [Nodes || #side{nodes = Nodes} <- Sides].

-spec dead(sides()) -> [node_id()].
dead(#sides{dead = Dead}) -> Dead.

side(Ni, #sides{sides = Sides}) -> hd([Side || #side{nodes = Nodes} = Side <- Sides, lists:member(Ni, Nodes)]).

up(#side{nodes = Nodes}, #sides{dead = Dead}) -> Nodes -- Dead.

put_side(#side{nodes = [N | _]} = Side, #sides{sides = Sides} = M) ->
    M#sides{sides = [case lists:member(N, S#side.nodes) of true -> Side; false -> S end || S <- Sides]}.

common(As, Bs) -> [A || A <- As, lists:member(A, Bs)].

%% What the living say of themselves.
-spec views(sides()) -> atoll_semantics:views().
views(#sides{sides = Sides} = M) ->
    lists:foldl(
        fun(#side{state = {Grs, Fgs, Fhs, Nds}} = Side, Views) ->
            Living = [Nd || {N, _, _, _} = Nd <- Nds, lists:member(N, up(Side, M))],
            maps:merge(Views, atoll_semantics:views({Grs, Fgs, Fhs, Living}))
        end,
        #{},
        Sides
    ).

-spec invariant(sides()) -> ok | {broken, [atom(), ...]}.
invariant(#sides{sides = Sides} = M) ->
    case lists:usort(lists:append([What || Side <- Sides, {broken, What} <- [of_living(Side, M)]])) of
        [] -> ok;
        Broken -> {broken, Broken}
    end.

of_living(#side{state = {Grs, Fgs, Fhs, Nds}} = Side, M) ->
    Up = up(Side, M),
    Living = [{S, common(Nis, Up), Ns} || {S, Nis, Ns} <- Grs],
    atoll_semantics:invariant({
        [Gr || {_, [_ | _], _} = Gr <- Living],
        Fgs,
        Fhs,
        [Nd || {N, _, _, _} = Nd <- Nds, lists:member(N, Up)]
    }).

%% Steps

%% After what happens to nodes, the state is what settled/2 makes of it.
-spec step(sides(), atoll_semantics:command() | fault(), node_id()) -> {sides(), atoll_semantics:value()}.
step(#sides{sides = [Whole]} = M, {cut, Parts0}, _Ni) ->
    case parts(Whole#side.nodes, Parts0) of
        [_] -> {M, ok};
        Parts ->
            Sides = [cut(Part, Whole, M) || Part <- Parts],
            {haunted(Whole, Sides, M#sides{sides = Sides, base = Whole#side.ids}), ok}
    end;
step(M, {cut, _}, _Ni) ->
    {M, ok};
step(#sides{sides = [_]} = M, heal, _Ni) ->
    {M, ok};
step(M, heal, _Ni) ->
    {heal(M), ok};
step(#sides{dead = Dead} = M, kill, Ni) ->
    case lists:member(Ni, Dead) of
        true -> {M, ok};
        false -> {killed(Ni, M#sides{dead = lists:sort([Ni | Dead])}), ok}
    end;
step(#sides{dead = Dead} = M, start, Ni) ->
    case lists:member(Ni, Dead) of
        true -> {M#sides{dead = Dead -- [Ni], is_open = true, has_met = true}, ok};
        false -> {M, ok}
    end;
step(M, {exit, {Node, _}} = Exit, _Ni) ->
    case lists:member(Node, M#sides.dead) of
        true -> {M, ok};
        false -> in_side(Exit, Node, M)
    end;
step(M, Command, Ni) ->
    case lists:member(Ni, M#sides.dead) of
        true -> {M, down};
        false -> in_side(Command, Ni, M)
    end.

in_side(Command, Ni, M) ->
    #side{state = State0} = Side0 = side(Ni, M),
    Up = up(Side0, M),
    {State, Value} = call(Command, Ni, Up, State0),
    {Side, Next} = follow(Side0#side{state = only(Up, State)}, M#sides.next),
    Former = [S || {Id, S, Before} <- Side0#side.ids, {I, _, Now} <- Side#side.ids, I =:= Id, Before -- Now =/= []],
    {put_side(Side, M#sides{next = Next, former = lists:usort(Former ++ M#sides.former)}), Value}.

%% Those that are not mentioned are with the last.
parts(Nodes, Parts0) ->
    Parts1 = disjoint([lists:usort(common(Part, Nodes)) || Part <- Parts0]),
    Rest = Nodes -- lists:append(Parts1),
    Parts =
        case lists:reverse(Parts1) of
            [Last | Others] -> lists:reverse([lists:sort(Last ++ Rest) | Others]);
            [] -> [Rest]
        end,
    [Part || [_ | _] = Part <- Parts].

disjoint([]) -> [];
disjoint([Part | Parts]) -> [Part | disjoint([P -- Part || P <- Parts])].

%% Who is gone is connected with nobody and in no free group.
only(Up, {Grs, Fgs, Fhs, Nds}) ->
    OnUp = fun(Ns) -> [Named || {_, {N, _}} = Named <- Ns, lists:member(N, Up)] end,
    {
        [{S, Nis, OnUp(Ns)} || {S, Nis, Ns} <- Grs],
        lists:sort([{Nis, OnUp(Ns)} || {All, Ns} <- Fgs, [_ | _] = Nis <- [common(All, Up)]]),
        [Fh || {N, _} = Fh <- Fhs, lists:member(N, Up)],
        [
            {N, Type, case lists:member(N, Up) of true -> common(Cs, Up); false -> [] end, Names}
         || {N, Type, Cs, Names} <- Nds
        ]
    }.

%% Groups of which nobody who is up knows are gone.
known(Up, {Grs, Fgs, Fhs, Nds}) ->
    {[Gr || {_, Nis, _} = Gr <- Grs, common(Nis, Up) =/= []], Fgs, Fhs, Nds}.

%% Which group has become what.
follow(#side{state = {Grs, _, _, _}, ids = Ids0, changes = Changes0} = Side, Next0) ->
    {Ids, Next} = lists:mapfoldl(
        fun({S, Nis, _}, N) ->
            Same = [Id || {Id, Name, Before} <- Ids0, Name =:= S, Before =:= Nis],
            case Same ++ [Id || {Id, Name, Before} <- Ids0, Name =:= S, common(Nis, Before) =/= []] of
                [Id | _] -> {{Id, S, Nis}, N};
                [] -> {{N, S, Nis}, N + 1}
            end
        end,
        Next0,
        Grs
    ),
    Changes = lists:foldl(
        fun({Id, _, Before}, Cs) ->
            case lists:keyfind(Id, 1, Ids) of
                false -> Cs#{Id => deleted};
                {_, _, Before} -> Cs;
                {_, _, Now} ->
                    Changed = maps:merge(maps:from_keys(Before -- Now, out), maps:from_keys(Now -- Before, in)),
                    Cs#{Id => maps:merge(maps:get(Id, Cs, #{}), Changed)}
            end
        end,
        Changes0,
        Ids0
    ),
    {Side#side{ids = Ids, changes = Changes}, Next}.

%% Whether nodes that were apart have met.
-spec has_met(sides()) -> boolean().
has_met(#sides{has_met = HasMet}) -> HasMet.

%% Calls

call({new_s_group, _, Nis} = New, Ni, Up, State) ->
    case lists:member(Ni, Nis) of
        true -> atoll_semantics:step(State, setelement(3, New, common(Nis, Up)), Ni);
        false -> atoll_semantics:step(State, New, Ni)
    end;
call({add_nodes, S, Nis} = Add, Ni, Up, State) ->
    case {scope_of(Ni, S, State), common(lists:usort(Nis), Up)} of
        {{Members, _}, Reached} when Members =/= none ->
            case {lists:usort(Nis) -- Members, Reached -- Members} of
                {[_ | _], []} -> {State, {ok, S, []}};
                {[], _} -> atoll_semantics:step(State, Add, Ni);
                {_, _} -> atoll_semantics:step(State, {add_nodes, S, Reached}, Ni)
            end;
        {_, _} ->
            atoll_semantics:step(State, Add, Ni)
    end;
call({remove_nodes, S, Nis} = Remove, Ni, Up, State) ->
    {Members, _} = scope_of(Ni, S, State),
    case Members =/= none andalso not lists:member(Ni, Nis) of
        true ->
            Agree = common(Members, Up),
            Half = 2 * length(Agree) - length(Members),
            case common(lists:usort(Nis), Members) -- Up of
                [_ | _] = Silent when Half < 0; Half =:= 0, hd(Agree) =/= hd(Members) ->
                    {State, {error, {no_majority, Silent}}};
                _ ->
                    atoll_semantics:step(State, Remove, Ni)
            end;
        false ->
            atoll_semantics:step(State, Remove, Ni)
    end;
call(info, Ni, Up, State0) ->
    {State, Info} = atoll_semantics:step(State0, info, Ni),
    {synced_nodes, Nodes} = lists:keyfind(synced_nodes, 1, Info),
    Told = lists:keyreplace(synced_nodes, 1, Info, {synced_nodes, common(Nodes, Up)}),
    {State, lists:keyreplace(no_contact, 1, Told, {no_contact, Nodes -- Up})};
call({Register, _S, _Name, {_Life, {Node, _}}} = Command, Ni, Up, State0) when
    Register =:= register_name; Register =:= re_register_name
->
    {State, Value} = atoll_semantics:step(State0, Command, Ni),
    case {lists:member(Node, Up), Value} of
        {true, _} -> {State, Value};
        {false, yes} -> {State0, {no, [pid_is_not_on_a_member]}};
        {false, {no, Reasons}} -> {State, {no, lists:usort([pid_is_not_on_a_member | Reasons])}}
    end;
call({registered_names_at, Node} = Command, Ni, Up, State) ->
    at(Node, [], Command, Ni, Up, State);
call({whereis_name, Node, _, _} = Command, Ni, Up, State) ->
    at(Node, undefined, Command, Ni, Up, State);
call({send, Node, S, Name, Message} = Command, Ni, Up, State) ->
    at(Node, {badarg, {S, Name, Message}}, Command, Ni, Up, State);
call(Command, Ni, _Up, State) ->
    atoll_semantics:step(State, Command, Ni).

at(Node, Nobody, Command, Ni, Up, State) ->
    case lists:member(Node, Up) of
        true -> atoll_semantics:step(State, Command, Ni);
        false -> {State, Nobody}
    end.

scope_of(_Ni, undefined, _State) -> {none, []};
scope_of(Ni, S, State) ->
    case atoll_semantics:scope(Ni, S, State) of
        none -> {none, []};
        Scope -> Scope
    end.

%% What happens to nodes

cut(Part, #side{state = State, ids = Ids}, #sides{dead = Dead}) ->
    Up = Part -- Dead,
    #side{
        nodes = Part,
        state = known(Up, only(Up, State)),
        ids = [Id || {_, _, Nis} = Id <- Ids, common(Nis, Up) =/= []]
    }.

%% Who has seen a change may have been the last that knows of it.
killed(Ni, #sides{loose = Loose0, base = Base} = M) ->
    #side{state = State, ids = Ids, changes = Changes} = Side = side(Ni, M),
    Up = up(Side, M),
    Known = [Id || {_, _, Nis} = Id <- Ids, common(Nis, Up) =/= []],
    Loose =
        case M#sides.sides of
            [_] -> Loose0;
            _ ->
                lists:foldl(
                    fun({Id, S, Nis}, L) ->
                        case is_map_key(Id, Changes) of
                            true -> loosen(S, Nis, L);
                            false -> L
                        end
                    end,
                    Loose0,
                    Base ++ Ids
                )
        end,
    Left = Side#side{state = known(Up, only(Up, State)), ids = Known},
    haunted(Side, [Left], put_side(Left, M#sides{loose = Loose})).

haunted(#side{ids = Before}, Sides, #sides{former = Former} = M) ->
    Gone = lists:append([Before -- Ids || #side{ids = Ids} <- Sides]),
    Ghosts = [{S, Nis} || {_, S, Nis} <- Gone, lists:member(S, Former)],
    M#sides{ghosts = lists:foldl(fun({S, Nis}, Gs) -> loosen(S, Nis, Gs) end, M#sides.ghosts, Ghosts)}.

%% Whether a group may come back, by a former member that somebody meets.
-spec is_haunted(sides()) -> boolean().
is_haunted(#sides{ghosts = Ghosts}) -> map_size(Ghosts) > 0.

loosen(S, Nis, Loose) -> Loose#{S => lists:umerge(lists:sort(Nis), maps:get(S, Loose, []))}.

heal(#sides{sides = Sides, base = Base, loose = Loose0} = M) ->
    AllIds = lists:append([Ids || #side{ids = Ids} <- Sides]),
    Groups = [
        {Id, S, met(Id, Base, Sides)}
     || {Id, S} <- lists:usort([{Id, S} || {Id, S, _} <- AllIds]),
        is_map_key(S, Loose0) orelse
            not lists:any(fun(#side{changes = Cs}) -> maps:get(Id, Cs, none) =:= deleted end, Sides)
    ],
    Twice = [S || {Id1, S, {_, As}} <- Groups, {Id2, S2, {_, Bs}} <- Groups, Id1 < Id2, S2 =:= S, common(As, Bs) =/= []],
    Open = lists:usort([S || {_, S, {open, _}} <- Groups] ++ Twice),
    Loose1 = maps:merge(Loose0, maps:from_keys(Open -- maps:keys(Loose0), [])),
    %% Anybody who was in one of that name on some side.
    Loose = maps:map(
        fun(S, Nis) -> lists:usort(Nis ++ lists:append([Ns || {_, Name, Ns} <- Base ++ AllIds, Name =:= S])) end, Loose1
    ),
    Spaces = [{Id, names(Id, Sides)} || {Id, _, _} <- Groups],
    Met = [
        {Id, S, Nis, Kept, Lost}
     || {Id, S, {_, Nis}} <- Groups,
        {Kept, Lost} <- [
            case proplists:get_value(Id, Spaces) of
                All when is_map_key(S, Loose) -> {All, []};
                All -> one_holder([Named || {_, {N, _}} = Named <- All, lists:member(N, Nis)])
            end
        ]
    ],
    Free = lists:append([Fgs || #side{state = {_, Fgs, _, _}} <- Sides]),
    Hidden = lists:append([Fhs || #side{state = {_, _, Fhs, _}} <- Sides]),
    Nds = lists:sort([Nd || #side{nodes = Nodes, state = {_, _, _, All}} <- Sides, {N, _, _, _} = Nd <- All, lists:member(N, Nodes)]),
    Whole = #side{
        nodes = lists:sort(lists:append(parts(M))),
        state = {lists:sort([{S, Nis, Ns} || {_, S, Nis, Ns, _} <- Met]), lists:sort(Free), lists:sort(Hidden), Nds},
        ids = [{Id, S, Nis} || {Id, S, Nis, _, _} <- Met]
    },
    M#sides{
        sides = [Whole],
        base = [],
        loose = Loose,
        is_open = true,
        has_met = true,
        losers = lists:append([Lost || {_, _, _, _, Lost} <- Met]),
        rivals = lists:append([rivals(lists:usort(names(Id, Sides))) || Id <- lists:usort([Id || {Id, _, _} <- AllIds])])
    }.

%% The members of a group when the sides meet.
met(Id, Base, Sides) ->
    Before =
        case lists:keyfind(Id, 1, Base) of
            {_, _, Nis} -> Nis;
            false -> []
        end,
    All = [maps:get(Id, Cs, #{}) || #side{changes = Cs} <- Sides],
    Changes = lists:usort(lists:append([maps:to_list(Of) || Of <- All, Of =/= deleted])),
    %% A new one has no changes that made it.
    New = lists:append([Nis || false <- [lists:keyfind(Id, 1, Base)], #side{ids = Ids} <- Sides, {I, _, Nis} <- Ids, I =:= Id]),
    Members = lists:usort((Before ++ New ++ [N || {N, in} <- Changes]) -- [N || {N, out} <- Changes, not lists:member({N, in}, Changes)]),
    case length(lists:ukeysort(1, Changes)) =:= length(Changes) of
        true -> {exact, Members};
        false -> {open, Members}
    end.

names(Id, Sides) ->
    lists:append([
        Ns
     || #side{ids = Ids, state = {Grs, _, _, _}} <- Sides,
        {I, S, Nis} <- Ids,
        I =:= Id,
        {Name, Members, Ns} <- Grs,
        Name =:= S,
        Members =:= Nis
    ]).

rivals(Ns) -> [P || {Name, P} <- Ns, lists:keymember(Name, 1, lists:delete({Name, P}, Ns))].

%% Of each name the process on the smaller node; and those that lose theirs.
one_holder(Ns) ->
    All = lists:usort(Ns),
    Kept = lists:ukeysort(1, All),
    {Kept, [P || {_, P} <- All -- Kept]}.

%% Settled: what the nodes say of themselves, where that is open

%% The state, who was told that it has lost a name and who else may have been, and what cannot be.
-spec settled(sides(), atoll_semantics:views() | unseen) -> {sides(), told(), [term()]}.
settled(M0, Seen) ->
    {M1, Wrong} = adopt(M0, Seen),
    {Sides, {Losers, Next}} = lists:mapfoldl(
        fun(Side, {Ls, N0}) ->
            {State, More} = rebuilt(Side, M1, Seen),
            {New, N} = follow(Side#side{state = State}, N0),
            {New#side{changes = Side#side.changes}, {Ls ++ More, N}}
        end,
        {case M1#sides.losers of open -> []; Lost -> Lost end, M1#sides.next},
        M1#sides.sides
    ),
    Loose =
        case Sides of
            [_] -> #{};
            _ -> M1#sides.loose
        end,
    Told =
        case M1#sides.losers of
            open -> open;
            _ -> {lists:sort(Losers), M1#sides.rivals}
        end,
    Ghosts = lists:foldl(fun({S, Nis}, Gs) -> loosen(S, Nis, Gs) end, M1#sides.ghosts, lists:append([in_two(Side) || Side <- Sides])),
    {M1#sides{sides = Sides, next = Next, ghosts = Ghosts, loose = Loose, is_open = false, losers = [], rivals = []}, Told, Wrong}.

adopt(#sides{sides = Sides} = M, unseen) ->
    {M#sides{sides = [Side#side{state = {apart(up(Side, M), Grs), Fgs, Fhs, Nds}} || #side{state = {Grs, Fgs, Fhs, Nds}} = Side <- Sides]}, []};
adopt(#sides{loose = Loose0, ghosts = Ghosts, sides = Sides0} = M, Seen) ->
    Late =
        case Sides0 of
            [_] -> Loose0;
            %% On the sides nothing is open yet.
            _ -> #{}
        end,
    Loose = maps:merge_with(fun(_, As, Bs) -> lists:umerge(As, Bs) end, Late, Ghosts),
    case map_size(Loose) of
        0 ->
            {M, []};
        _ ->
            {Sides, Wrong} = lists:unzip([adopt(Side, up(Side, M), Seen, Loose) || Side <- Sides0]),
            {M#sides{sides = Sides, losers = open}, lists:append(Wrong)}
    end.

%% That all agree is seen when the views are compared.
adopt(#side{state = {Grs, Fgs, Fhs, Nds}} = Side, Up, All, Loose) ->
    Seen = maps:with(Up, All),
    Found = lists:usort([{S, Nis} || #{groups := Groups} <- maps:values(Seen), {S, Nis} <- Groups, is_map_key(S, Loose)]),
    Before = [{S, Named} || {S, _, Ns} <- Grs, is_map_key(S, Loose), Named <- Ns],
    Adopted = [
        {S, Nis, lists:usort([{Name, P} || N <- Nis, #{N := #{names := Names}} <- [Seen], {G, Name, P} <- Names, G =:= S])}
     || {S, Nis} <- Found
    ],
    Members = fun(S) -> lists:append([maps:get(S, Loose) | [Nis || {G, Nis, _} <- Grs, G =:= S]]) end,
    Wrong =
        [{member_from_nowhere, S, Nis -- Members(S)} || {S, Nis} <- Found, Nis -- Members(S) =/= []] ++
            [{name_from_nowhere, S, Named} || {S, _, Ns} <- Adopted, Named <- Ns, not lists:member({S, Named}, Before)],
    Others = [Gr || {S, _, _} = Gr <- Grs, not is_map_key(S, Loose)],
    {Side#side{state = {apart(Up, lists:sort(Others ++ Adopted)), Fgs, Fhs, Nds}}, Wrong}.

%% Where two groups of one name have a living node in common, one of them: nodes do not agree
%% yet, or nobody has looked.
apart(_Up, []) ->
    [];
apart(Up, [{S, Nis, _} = Gr | Grs]) ->
    [Gr | apart(Up, [G || {Name, Ns, _} = G <- Grs, Name =/= S orelse common(common(Nis, Ns), Up) =:= []])].

%% A dead node is a member of two groups of one name, and will leave one when it is started.
in_two(#side{state = {Grs, _, _, _}}) ->
    [{S, Nis ++ Ns} || {S, Nis, _} = Gr <- Grs, {Name, Ns, _} = G <- Grs, Name =:= S, G =/= Gr, common(Nis, Ns) =/= []].

%% The same after a call, which may have had somebody meet a former member.
-spec settled_again(sides(), atoll_semantics:views()) -> {sides(), told(), [term()]}.
settled_again(M, Seen) -> settled(M#sides{is_open = true}, Seen).

%% The four parts fit each other, with the connections that are seen, or that are needed.
rebuilt(#side{state = {Grs, Fgs, Fhs, Nds}} = Side, #sides{is_open = IsOpen} = M, Seen) ->
    Up = up(Side, M),
    Groups = fun(N) -> [S || {S, Nis, _} <- Grs, lists:member(N, Nis)] end,
    Needed = fun(N) -> lists:usort(lists:append([common(Nis, Up) || {_, Nis, _} <- Grs, lists:member(N, Nis)])) -- [N] end,
    Of = fun(N, Cs) ->
        case {lists:member(N, Up), IsOpen, Seen} of
            {false, _, _} -> [];
            {true, true, #{N := #{connections := Now}}} -> common(Now, Up);
            {true, _, _} -> lists:umerge(common(Cs, Up), Needed(N))
        end
    end,
    NewNds = [
        {N, Type, Of(N, Cs), case Groups(N) of [] -> no_group; Names -> lists:usort(Names) end}
     || {N, Type, Cs, _} <- Nds
    ],
    Alone = [N || {N, normal, _, no_group} <- NewNds, lists:member(N, Up)],
    Names = lists:append([Ns || {_, Ns} <- Fgs]),
    Parts = components(Alone, maps:from_list([{N, Cs} || {N, _, Cs, _} <- NewNds])),
    Free = [
        {Nis, one_holder([Named || {_, {N, _}} = Named <- Names, lists:member(N, Nis)])}
     || Nis <- Parts
    ],
    NewFhs = [
        {N, proplists:get_value(N, Fhs, [])}
     || {N, hidden, _, no_group} <- NewNds, lists:member(N, Up)
    ],
    {
        {Grs, lists:sort([{Nis, Kept} || {Nis, {Kept, _}} <- Free]), NewFhs, NewNds},
        lists:append([Lost || {_, {_, Lost}} <- Free])
    }.

components([], _Cs) -> [];
components([N | Others], Cs) ->
    Part = reach([N], [N], Others, Cs),
    [lists:sort(Part) | components(Others -- Part, Cs)].

reach([], Part, _Others, _Cs) -> Part;
reach([N | Ns], Part, Others, Cs) ->
    New = [O || O <- Others, not lists:member(O, Part), lists:member(O, maps:get(N, Cs))],
    reach(Ns ++ New, Part ++ New, Others, Cs).
