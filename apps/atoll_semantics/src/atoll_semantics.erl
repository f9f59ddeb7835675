%% SPDX-License-Identifier: Apache-2.0
%% @doc What the functions of s_group mean, as a program: the small-step semantics of SD Erlang
%% (Chechina et al., "Evaluating Scalable Distributed Erlang for Scalability and
%% Reliability", IEEE TPDS 2017, sections V.i to V.iii), with lists in place of sets, as
%% the authors did. A transition is step(State, Command, Ni) -> {State', Value}: the
%% paper's (state, command, ni) -> (state', value).
%%
%% | the paper | here |
%% |---|---|
%% | Figure 14: state, s_group, free_group, free_hidden_group, node, gr_names, namespace | the types of that name |
%% | Figure 14: s in {NoGroup, s_group_name} | s(): the name of a group, or `undefined' |
%% | Figure 15: the rule of registered_names | step/3, {registered_names, S} |
%% | Figure 15: IsSGroupNode(ni, s, grs) | scope/3: the group and its namespace, or `none' |
%% | Figure 15: OutputNms(s, ns) | output_names/2 |
%% | Table 1, each function | a clause of step/3, in the order of the table |
%% | the other rules (technical report [21]; as its authors' QuickCheck model ran them): | |
%% |   becoming free | part/3, become_free/2 |
%% |   leaving the free groups | leave_free/2 |
%% |   a connection that a look-up at another node makes | meet/3 |
%% | Section V.iii: the generic constraint after each operation | views/1, agrees/2 |
%%
%% Where Atoll means something else than the paper or the original, the place says
%% "Differs" and why; all such places are:
%%
%%  D1  a group's name is that of a group of ni: two groups without a common node may
%%      have one name (the original's oddity 12, kept)
%%  D2  a node in another group of that name is left out, and ni is connected with it
%%  D3  wrong calls have values of their own, and some that could be errors are none
%%  D4  names of processes on a node go with the node's membership (oddity 11)
%%  D5  the process must be alive, and on a member (oddity 1)
%%  D6  several reasons for a `no': any of them may be told
%%  D7  two free groups that meet and have a name in common keep one holder
%%  D8  a look-up at another node is one there, in the groups of that node
%%  D9  a meeting of free groups is no part of the look-up that causes it
%%  D10 processes end
%%
%% Connections are never removed, as in the paper. Atoll closes those that nobody needs;
%% so whoever compares the two lets unneeded ones linger.
-module(atoll_semantics).

-export([new/2, step/3, views/1, agrees/2, invariant/1]).
-export([scope/3, groups_of/2]).

-export_type([state/0, command/0, node_id/0, name/0, p/0, s/0, value/0, views/0]).

%% Figure 14

-type state() :: {[s_group()], [free_group()], [free_hidden_group()], [nd()]}.
-type s_group() :: {s_group_name(), [node_id(), ...], namespace()}.
-type free_group() :: {[node_id(), ...], namespace()}.
-type free_hidden_group() :: {node_id(), namespace()}.
-type nd() :: {node_id(), node_type(), Connections :: [node_id()], gr_names()}.
-type gr_names() :: no_group | [s_group_name(), ...].
-type namespace() :: [{name(), p()}].
-type node_type() :: normal | hidden.
-type s() :: undefined | s_group_name().

-type s_group_name() :: atom().
-type node_id() :: atom().
-type name() :: term().
%% A process knows its node, as a pid does.
-type p() :: {node_id(), pos_integer()}.
%% Whether a process lives is no part of the paper's state: the command says it.
-type process() :: {alive | dead, p()}.

-type command() ::
    {new_s_group, s(), [node_id()]}
    | {delete_s_group, s()}
    | {add_nodes, s(), [node_id()]}
    | {remove_nodes, s(), [node_id()]}
    | s_groups
    | own_s_groups
    | own_nodes
    | {own_nodes, s()}
    | info
    | {register_name, s(), name(), process()}
    | {re_register_name, s(), name(), process()}
    | {unregister_name, s(), name()}
    | {registered_names, s()}
    | {registered_names_at, node_id()}
    | {whereis_name, s(), name()}
    | {whereis_name, node_id(), s(), name()}
    | {send, s(), name(), Message :: term()}
    | {send, node_id(), s(), name(), Message :: term()}
    %% Not a function of s_group: the process ends.
    | {exit, p()}.

-type value() ::
    term()
    %% One of these is told.
    | {no, [Reason :: atom(), ...]}
    | {one_of, [term()]}.

%% What can be seen on each node.
-type views() :: #{
    node_id() => #{
        type := node_type(),
        groups := [{s_group_name(), [node_id()]}],
        names := [{s(), name(), p()}],
        %% With whom it shares the names of the free nodes; itself included.
        free := [node_id()],
        connections := [node_id()]
    }
}.

%% Each normal node is the only one of a free group, each hidden node is its own.
-spec new([node_id()], [node_id()]) -> state().
new(Normal, Hidden) ->
    {
        [],
        lists:sort([{[N], []} || N <- Normal]),
        lists:sort([{N, []} || N <- Hidden]),
        lists:sort([{N, normal, [], no_group} || N <- Normal] ++ [{N, hidden, [], no_group} || N <- Hidden])
    }.

%% Transitions

-spec step(state(), command(), node_id()) -> {state(), value()}.
%% D3 Differs from the paper, where these are errors without a name; the values are the
%% original's.
step(State, {new_s_group, undefined, _Nis}, _Ni) ->
    {State, {error, reserved_s_group_name}};
step(State, {new_s_group, S, []}, _Ni) ->
    {State, {ok, S, []}};
step(State, {new_s_group, S, Nis}, Ni) ->
    case {lists:member(Ni, Nis), scope(Ni, S, State)} of
        {false, _} ->
            {State, {error, remote_s_group}};
        {true, none} ->
            %% D2 Differs: the paper does not ask whether they are in another of that name,
            %% its authors took unused names only.
            {Members, LeftOut} = lists:partition(fun(N) -> scope(N, S, State) =:= none end, lists:usort(Nis)),
            {join(S, Members, [], connect(Ni, LeftOut, State)), {ok, S, Members}};
        {true, _} ->
            {State, {error, s_group_name_is_in_use}}
    end;
step({Grs, Fgs, Fhs, Nds} = State, {delete_s_group, S}, Ni) ->
    case s_group(Ni, S, State) of
        {S, Nis, _Ns} = Gr -> {part(S, Nis, {Grs -- [Gr], Fgs, Fhs, Nds}), ok};
        none -> {State, {error, {"remote_s_group", S}}}
    end;
step({Grs, Fgs, Fhs, Nds} = State, {add_nodes, S, Nis}, Ni) ->
    Others = lists:delete(Ni, lists:usort(Nis)),
    case {Others, s_group(Ni, S, State)} of
        {[], _} ->
            {State, {ok, S, []}};
        {_, none} ->
            {State, {error, node_does_not_belong_to_the_s_group}};
        {_, {S, Members, Ns} = Gr} ->
            case Others -- Members of
                [] ->
                    {State, {ok, S, Others}};
                New ->
                    %% D2 Differs, as above.
                    {Added, LeftOut} = lists:partition(fun(N) -> scope(N, S, State) =:= none end, New),
                    Without = connect(Ni, LeftOut, {Grs -- [Gr], Fgs, Fhs, Nds}),
                    {join(S, lists:umerge(Members, Added), Ns, Without), {ok, S, Added}}
            end
    end;
step({Grs, Fgs, Fhs, Nds} = State, {remove_nodes, S, Nis}, Ni) ->
    case {lists:member(Ni, Nis), s_group(Ni, S, State)} of
        {true, _} ->
            {State, {error, "cannot_remove_itself"}};
        {false, none} ->
            {State, {error, {"node_does_not_belong_to_s_group", S}}};
        {false, {S, Members, Ns} = Gr} ->
            Left = Members -- Nis,
            %% D4 Differs: in the paper the names stay in S, and nobody would ever take
            %% them out when their processes end.
            Stayed = {S, Left, without_nodes(Nis, Ns)},
            {part(S, Members -- Left, {lists:sort([Stayed | Grs -- [Gr]]), Fgs, Fhs, Nds}), ok}
    end;
%% Nobody is configured to know other groups here.
step(State, s_groups, Ni) ->
    case groups_of(Ni, State) of
        [] -> {State, undefined};
        Own -> {State, {[S || {S, _, _} <- Own], []}}
    end;
step(State, own_s_groups, Ni) ->
    {State, [{S, Nis} || {S, Nis, _} <- groups_of(Ni, State)]};
step(State, own_nodes, Ni) ->
    {State, own_nodes(Ni, State)};
step(State, {own_nodes, S}, Ni) ->
    case {s_group(Ni, S, State), S, groups_of(Ni, State)} of
        {{S, Nis, _}, _, _} -> {State, Nis};
        {none, undefined, []} -> {State, own_nodes(Ni, State)};
        {none, _, _} -> {State, []}
    end;
step(State, info, Ni) ->
    Own = groups_of(Ni, State),
    Nodes = lists:umerge([Nis || {_, Nis, _} <- Own]),
    Info = [
        {state, case Own of [] -> no_conf; _ -> synced end},
        {own_group_names, [S || {S, _, _} <- Own]},
        {own_group_nodes, Nodes},
        {synced_nodes, lists:delete(Ni, Nodes)},
        {sync_error, []},
        {no_contact, []},
        {own_s_groups, [{S, Nis} || {S, Nis, _} <- Own]},
        {other_groups, []}
    ],
    {State, Info};
step(State, {register_name, S, Name, {Life, P}}, Ni) ->
    case scope(Ni, S, State) of
        none ->
            {State, no([{cannot_register_in_remote_group, true}, {no_process, Life =:= dead}])};
        {Nis, Ns} ->
            IsTaken = lists:keymember(Name, 1, Ns) orelse lists:keymember(P, 2, Ns),
            case no([{name_or_pid_already_registered, IsTaken} | unfit(Life, P, Nis)]) of
                none -> {set_names(Ni, S, [{Name, P} | Ns], State), yes};
                No -> {State, No}
            end
    end;
step(State, {re_register_name, S, Name, {Life, P}}, Ni) ->
    case scope(Ni, S, State) of
        none ->
            {State, no([{cannot_re_register_in_remote_group, true}, {no_process, Life =:= dead}])};
        {Nis, Ns} ->
            %% Also where it has that very name.
            IsTaken = lists:keymember(P, 2, Ns),
            case no([{pid_is_already_registered, IsTaken} | unfit(Life, P, Nis)]) of
                none -> {set_names(Ni, S, lists:keystore(Name, 1, Ns, {Name, P}), State), yes};
                No -> {State, No}
            end
    end;
step(State, {unregister_name, S, Name}, Ni) ->
    case scope(Ni, S, State) of
        none -> {State, {no, [cannot_unregister_from_remote_group]}};
        {_, Ns} -> {set_names(Ni, S, lists:keydelete(Name, 1, Ns), State), ok}
    end;
%% Figure 15. D3 Differs: the paper's value is the empty set where ni is no node of S, the
%% original's an error.
step(State, {registered_names, S}, Ni) ->
    case scope(Ni, S, State) of
        {_, Ns} -> {State, output_names(S, Ns)};
        none -> {State, {error, no_information_about_remote_group}}
    end;
step(State, {registered_names_at, Node}, Ni) ->
    See = fun(St) -> lists:sort([{S, Name} || {S, Name, _} <- names_at(Node, St)]) end,
    look_at(Node, See, Ni, State);
step(State, {whereis_name, S, Name}, Ni) ->
    {State, whereis(Ni, S, Name, State)};
step(State, {whereis_name, Node, S, Name}, Ni) ->
    look_at(Node, fun(St) -> whereis(Node, S, Name, St) end, Ni, State);
step(State, {send, S, Name, Message}, Ni) ->
    {State, sent(whereis(Ni, S, Name, State), S, Name, Message)};
step(State, {send, Node, S, Name, Message}, Ni) ->
    look_at(Node, fun(St) -> sent(whereis(Node, S, Name, St), S, Name, Message) end, Ni, State);
%% D10 Differs: the paper's processes do not end. Their names go everywhere.
step({Grs, Fgs, Fhs, Nds}, {exit, P}, _Ni) ->
    Without = fun(Ns) -> lists:keydelete(P, 2, Ns) end,
    State = {
        [{S, Nis, Without(Ns)} || {S, Nis, Ns} <- Grs],
        [{Nis, Without(Ns)} || {Nis, Ns} <- Fgs],
        [{N, Without(Ns)} || {N, Ns} <- Fhs],
        Nds
    },
    {State, ok}.

%% D5 Differs: the paper says so (section V.i), its implementation looked at the caller's
%% node alone.
unfit(Life, {Node, _}, Nis) ->
    [{no_process, Life =:= dead}, {pid_is_not_on_a_member, not lists:member(Node, Nis)}].

%% D6 Differs: the paper's `no' has no reason, the original's looks in one order. Who asks
%% may be told by another node, which looks at other things first.
no(Reasons) ->
    case [Reason || {Reason, true} <- Reasons] of
        [] -> none;
        Told -> {no, Told}
    end.

sent(undefined, S, Name, Message) -> {badarg, {S, Name, Message}};
sent(P, _S, _Name, _Message) -> P.

%% What node Node says to Ni, with which it gets connected, if it was not. D9 Differs: in
%% the paper the look and the meeting of two groups of free nodes are one step.
look_at(Node, See, Ni, State0) ->
    State = meet(Ni, Node, State0),
    case {See(State0), See(State)} of
        {Value, Value} -> {State, Value};
        %% They become one while Node looks.
        {Before, After} -> {State, {one_of, [Before, After]}}
    end.

%% Who is where

%% IsSGroupNode, and more: the nodes and the namespace of what is called S on node Ni.
%% D1 Differs: the paper has one group of a name.
-spec scope(node_id(), s(), state()) -> {[node_id()], namespace()} | none.
scope(Ni, undefined, {_, Fgs, Fhs, _}) ->
    case {[Fg || {Nis, _} = Fg <- Fgs, lists:member(Ni, Nis)], lists:keyfind(Ni, 1, Fhs)} of
        {[Fg], false} -> Fg;
        {[], {Ni, Ns}} -> {[Ni], Ns};
        {[], false} -> none
    end;
scope(Ni, S, State) ->
    case s_group(Ni, S, State) of
        {S, Nis, Ns} -> {Nis, Ns};
        none -> none
    end.

s_group(Ni, S, {Grs, _, _, _}) ->
    case [Gr || {Name, Nis, _} = Gr <- Grs, Name =:= S, lists:member(Ni, Nis)] of
        [Gr] -> Gr;
        [] -> none
    end.

%% The s_groups of a node, sorted.
-spec groups_of(node_id(), state()) -> [s_group()].
groups_of(Ni, {Grs, _, _, _}) ->
    [Gr || {_, Nis, _} = Gr <- Grs, lists:member(Ni, Nis)].

own_nodes(Ni, State) ->
    case groups_of(Ni, State) of
        [] ->
            {Nis, _Ns} = scope(Ni, undefined, State),
            Nis;
        Own ->
            lists:umerge([Nis || {_, Nis, _} <- Own])
    end.

-spec type(node_id(), state()) -> node_type().
type(Ni, State) -> element(2, nd(Ni, State)).

nd(Ni, {_, _, _, Nds}) -> lists:keyfind(Ni, 1, Nds).

%% OutputNms. D3 Differs: those of the free nodes come bare, as in the original.
output_names(undefined, Ns) -> lists:sort([Name || {Name, _P} <- Ns]);
output_names(S, Ns) -> lists:sort([{S, Name} || {Name, _P} <- Ns]).

%% D8 Differs: in the paper the names of a free node are found whatever S is, and those
%% of S also at a node that is not in it.
whereis(Ni, S, Name, State) ->
    case scope(Ni, S, State) of
        {_, Ns} -> proplists:get_value(Name, Ns);
        none -> undefined
    end.

names_at(Ni, State) ->
    Scopes = [undefined | [S || {S, _, _} <- groups_of(Ni, State)]],
    [{S, Name, P} || S <- Scopes, {_, Ns} <- [scope(Ni, S, State)], {Name, P} <- Ns].

set_names(Ni, S, Ns0, {Grs, Fgs, Fhs, Nds} = State) ->
    Ns = lists:sort(Ns0),
    case S of
        undefined ->
            {
                Grs,
                [{Nis, case lists:member(Ni, Nis) of true -> Ns; false -> Old end} || {Nis, Old} <- Fgs],
                [{N, case N of Ni -> Ns; _ -> Old end} || {N, Old} <- Fhs],
                Nds
            };
        _ ->
            {S, Nis, _} = Gr = s_group(Ni, S, State),
            {lists:sort([{S, Nis, Ns} | Grs -- [Gr]]), Fgs, Fhs, Nds}
    end.

without_nodes(Nis, Ns) ->
    [{Name, P} || {Name, {Node, _} = P} <- Ns, not lists:member(Node, Nis)].

%% Coming and going

%% These are all the nodes of S now, and connected with each other.
join(S, Nis, Ns, State) ->
    {Grs, Fgs, Fhs, Nds} = mesh(Nis, leave_free(Nis, State)),
    Join = fun
        (no_group) -> [S];
        (Names) -> lists:usort([S | Names])
    end,
    {lists:sort([{S, Nis, Ns} | Grs]), Fgs, Fhs, change_names(Join, Nis, Nds)}.

%% These are not in S any more.
part(S, Nis, {Grs, Fgs, Fhs, Nds0}) ->
    Part = fun
        ([Name]) when Name =:= S -> no_group;
        (Names) -> Names -- [S]
    end,
    Nds = change_names(Part, Nis, Nds0),
    become_free([N || {N, _, _, no_group} <- Nds, lists:member(N, Nis)], {Grs, Fgs, Fhs, Nds}).

change_names(Change, Nis, Nds) ->
    [
        case lists:member(N, Nis) of
            true -> {N, Type, Cs, Change(Names)};
            false -> Nd
        end
     || {N, Type, Cs, Names} = Nd <- Nds
    ].

%% D4 Differs: in the paper names of processes that were on these nodes stay with the rest.
leave_free(Nis, {Grs, Fgs, Fhs, Nds}) ->
    Left = [{Stay, without_nodes(Nis, Ns)} || {All, Ns} <- Fgs, Stay <- [All -- Nis], Stay =/= []],
    {Grs, lists:sort(Left), [Fh || {N, _} = Fh <- Fhs, not lists:member(N, Nis)], Nds}.

%% Hidden nodes each for itself; the others together, and with every free group that one
%% of them is connected with. They bring no names.
become_free(Nis, {Grs, Fgs, Fhs0, Nds} = State) ->
    {Normal, Hidden} = lists:partition(fun(N) -> type(N, State) =:= normal end, Nis),
    Fhs = lists:sort([{N, []} || N <- Hidden] ++ Fhs0),
    case Normal of
        [] ->
            {Grs, Fgs, Fhs, Nds};
        _ ->
            Meets = fun({Others, _}) -> [x || A <- Normal, B <- Others, are_connected(A, B, State)] =/= [] end,
            {Met, Apart} = lists:partition(Meets, Fgs),
            unite([{lists:sort(Normal), []} | Met], {Grs, Apart, Fhs, Nds})
    end.

%% Two free nodes that are connected are in one free group.
meet(A, B, State0) ->
    {Grs, Fgs, Fhs, Nds} = State = connect(A, [B], State0),
    case lists:partition(fun({Nis, _}) -> lists:member(A, Nis) orelse lists:member(B, Nis) end, Fgs) of
        {[_, _] = Met, Apart} -> unite(Met, {Grs, Apart, Fhs, Nds});
        {_, _} -> State
    end.

%% D7 Differs: the paper takes all names of both, and one name may then have two
%% processes. Here a rule keeps one; for this comparison the one on the smaller node, as
%% in the original.
unite(Met, {Grs, Apart, Fhs, Nds}) ->
    Nis = lists:umerge([Ns || {Ns, _} <- Met]),
    All = lists:usort(lists:append([Ns || {_, Ns} <- Met])),
    %% Of each name the first: processes are in the order of their nodes.
    Ns = lists:ukeysort(1, All),
    mesh(Nis, {Grs, lists:sort([{Nis, Ns} | Apart]), Fhs, Nds}).

%% Connections

mesh(Nis, State) ->
    lists:foldl(fun(N, St) -> connect(N, Nis, St) end, State, Nis).

connect(Ni, Others0, {Grs, Fgs, Fhs, Nds}) ->
    Others = Others0 -- [Ni],
    Connected = [
        if
            N =:= Ni -> {N, Type, lists:usort(Others ++ Cs), Names};
            true ->
                case lists:member(N, Others) of
                    true -> {N, Type, lists:usort([Ni | Cs]), Names};
                    false -> Nd
                end
        end
     || {N, Type, Cs, Names} = Nd <- Nds
    ],
    {Grs, Fgs, Fhs, Connected}.

are_connected(A, B, State) ->
    {A, _, Cs, _} = nd(A, State),
    lists:member(B, Cs).

%% Comparing

%% What each node says of itself when all has settled.
-spec views(state()) -> views().
views({_, _, _, Nds} = State) ->
    maps:from_list([
        {Ni, #{
            type => Type,
            groups => [{S, Nis} || {S, Nis, _} <- groups_of(Ni, State)],
            names => lists:sort(names_at(Ni, State)),
            free =>
                case scope(Ni, undefined, State) of
                    {Nis, _Ns} -> Nis;
                    none -> []
                end,
            connections => Cs
        }}
     || {Ni, Type, Cs, _} <- Nds
    ]).

%% Whether that is a value that the semantics allows.
-spec agrees(value(), term()) -> boolean().
agrees({no, Reasons}, {no, Reason}) -> lists:member(Reason, Reasons);
agrees({one_of, Values}, Value) -> lists:member(Value, Values);
agrees(Value, Value) -> true;
agrees(_, _) -> false.

%% What is true of every state; `ok', or what is not. The first is the paper's.
-spec invariant(state()) -> ok | {broken, [atom(), ...]}.
invariant({Grs, Fgs, Fhs, Nds} = State) ->
    InGroups = lists:usort(lists:append([Nis || {_, Nis, _} <- Grs])),
    InFree = lists:append([Nis || {Nis, _} <- Fgs]),
    InHidden = [N || {N, _} <- Fhs],
    All = [N || {N, _, _, _} <- Nds],
    Pairs = [{A, B} || {A, _, Cs, _} <- Nds, B <- Cs],
    Spaces = [{Nis, Ns} || {_, Nis, Ns} <- Grs] ++ Fgs ++ [{[N], Ns} || {N, Ns} <- Fhs],
    IsClique = fun(Nis) -> [x || A <- Nis, B <- Nis, A =/= B, not lists:member({A, B}, Pairs)] =:= [] end,
    Truths = [
        {each_node_is_in_groups_or_free, lists:sort(InGroups ++ InFree ++ InHidden) =:= lists:sort(All)},
        {free_groups_are_of_normal_nodes, lists:all(fun(N) -> type(N, State) =:= normal end, InFree)},
        {free_hidden_groups_are_of_hidden_nodes, lists:all(fun(N) -> type(N, State) =:= hidden end, InHidden)},
        {no_group_is_empty, not lists:any(fun({Nis, _}) -> Nis =:= [] end, Spaces)},
        {nodes_know_their_groups, lists:all(
            fun({N, _, _, Names}) ->
                Own = [S || {S, Nis, _} <- Grs, lists:member(N, Nis)],
                Names =:= case Own of [] -> no_group; _ -> Own end andalso Own =:= lists:usort(Own)
            end,
            Nds
        )},
        {a_name_stands_for_one_process, lists:all(fun({_, Ns}) -> Ns =:= lists:ukeysort(1, Ns) end, Spaces)},
        {a_process_has_one_name_in_a_group, lists:all(
            fun({_, Ns}) -> length(Ns) =:= length(lists:ukeysort(2, Ns)) end, Spaces
        )},
        {names_are_of_processes_on_members, lists:all(
            fun({Nis, Ns}) -> lists:all(fun({_, {N, _}}) -> lists:member(N, Nis) end, Ns) end, Spaces
        )},
        {connections_have_two_ends, lists:all(fun({A, B}) -> A =/= B andalso lists:member({B, A}, Pairs) end, Pairs)},
        {groups_are_connected, lists:all(fun({Nis, _}) -> IsClique(Nis) end, Spaces)},
        {free_groups_are_apart, not lists:any(
            fun({A, B}) -> lists:any(fun({Nis, _}) -> lists:member(A, Nis) end, Fgs)
                andalso lists:member(B, InFree)
                andalso scope(A, undefined, State) =/= scope(B, undefined, State)
            end,
            Pairs
        )}
    ],
    case [What || {What, false} <- Truths] of
        [] -> ok;
        Broken -> {broken, Broken}
    end.
