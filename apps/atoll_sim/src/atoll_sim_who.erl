%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes that a step of a fault script means.
%%
%% Who: a node's name, a list of names, `all', `alive', `dead', `contacts',
%% `{random, N}' or `{share, S}' of those that live, `{nodes, From, To}' by number,
%% the first node being 1. A step passes over nodes to which it cannot happen.
%%
%% The answer hangs on the arguments alone: the order is that of the nodes, and
%% what is drawn at random is drawn from the state that is passed.
-module(atoll_sim_who).

-export([resolve/4, targets/4, unable/3, parts/4, from/2, weighed/2]).

-export_type([who/0, liveness/0]).

-type who() ::
    node()
    | [node()]
    | all
    | alive
    | dead
    | contacts
    | {random, pos_integer()}
    | {share, number()}
    | {nodes, From :: pos_integer(), To :: pos_integer()}.

-type liveness() :: alive | dead.

%% @doc The nodes that `Who' means, in the order of `Nodes', which is that of
%% their numbers. Choices are among the living. Names that are not there mean
%% nobody.
-spec resolve(who(), [{node(), liveness()}], [node()], rand:state()) -> {[node()], rand:state()}.
resolve(Who, Nodes, Contacts, Rand) ->
    resolve(Who, alive, Nodes, Contacts, Rand).

%% @doc The nodes that a step happens to: of `Who', those to which it can. For
%% steps with one `Who'.
-spec targets(tuple(), [{node(), liveness()}], [node()], rand:state()) -> {[node()], rand:state()}.
targets(Step, Nodes, Contacts, Rand0) ->
    {Pool, Able} = able(element(1, Step)),
    {Chosen, Rand} = resolve(element(2, Step), Pool, Nodes, Contacts, Rand0),
    Liveness = maps:from_list(Nodes),
    {[Node || Node <- Chosen, lists:member(map_get(Node, Liveness), Able)], Rand}.

%% @doc Those whom a step names, by name, number or as contacts, and to whom it cannot
%% happen. `all' and the like mean those to whom it can.
-spec unable(tuple(), [{node(), liveness()}], [node()]) -> [{node(), liveness()}].
unable(Step, Nodes, Contacts) ->
    Who = element(2, Step),
    case lists:member(Who, [all, alive, dead]) orelse (is_tuple(Who) andalso element(1, Who) =/= nodes) of
        true ->
            [];
        false ->
            {_, Able} = able(element(1, Step)),
            %% Nothing is drawn.
            {Chosen, _} = resolve(Who, Nodes, Contacts, rand:seed_s(exsss, 0)),
            [Named || {Node, Liveness} = Named <- Nodes, lists:member(Node, Chosen), not lists:member(Liveness, Able)]
    end.

able(start) -> {dead, [dead]};
able(restart) -> {alive, [alive, dead]};
able(_) -> {alive, [alive]}.

%% @doc The parts of a partition; the last one may be that of all other nodes.
-spec parts([who()], [{node(), liveness()}], [node()], rand:state()) -> {[[node()]], rand:state()}.
parts(Whos, Nodes, Contacts, Rand0) ->
    {Parts, {Rest, Rand}} = lists:mapfoldl(
        fun(Who, {Free, Rand1}) ->
            {Chosen, Rand2} = resolve(Who, alive, Nodes, Free, Contacts, Rand1),
            Taken = maps:from_keys(Chosen, []),
            {Chosen, {[N || {Name, _} = N <- Free, not is_map_key(Name, Taken)], Rand2}}
        end,
        {Nodes, Rand0},
        Whos
    ),
    {[Part || Part <- Parts ++ [[Node || {Node, _} <- Rest]], Part =/= []], Rand}.

resolve(Who, Pool, Nodes, Contacts, Rand) ->
    resolve(Who, Pool, Nodes, Nodes, Contacts, Rand).

%% Of those that are free; numbers count among all.
resolve({random, N}, Pool, _Nodes, Free, _Contacts, Rand) ->
    Able = of_liveness(Pool, Free),
    choose(min(N, length(Able)), length(Able), Able, Rand);
resolve({share, Share}, Pool, _Nodes, Free, _Contacts, Rand) ->
    Able = of_liveness(Pool, Free),
    choose(round(Share * length(Able)), length(Able), Able, Rand);
resolve({nodes, From, To}, _Pool, Nodes, Free, _Contacts, Rand) ->
    {among([Node || {Node, _} <- lists:sublist(Nodes, From, To - From + 1)], Free), Rand};
resolve(all, _Pool, _Nodes, Free, _Contacts, Rand) ->
    {[Node || {Node, _} <- Free], Rand};
resolve(contacts, _Pool, _Nodes, Free, Contacts, Rand) ->
    {among(Contacts, Free), Rand};
resolve(Liveness, _Pool, _Nodes, Free, _Contacts, Rand) when Liveness =:= alive; Liveness =:= dead ->
    {of_liveness(Liveness, Free), Rand};
resolve(Names, _Pool, _Nodes, Free, _Contacts, Rand) when is_list(Names) ->
    {among(Names, Free), Rand};
resolve(Name, _Pool, _Nodes, Free, _Contacts, Rand) ->
    {among([Name], Free), Rand}.

of_liveness(Wanted, Nodes) ->
    [Node || {Node, Liveness} <- Nodes, Liveness =:= Wanted].

among(Names, Nodes) ->
    Wanted = maps:from_keys(Names, []),
    [Node || {Node, _} <- Nodes, is_map_key(Node, Wanted)].

%% Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2 S): keeps
%% the order, and every choice of so many is equally likely.
choose(0, _Left, _Nodes, Rand) ->
    {[], Rand};
choose(N, Left, [Node | Nodes], Rand0) ->
    {Drawn, Rand1} = rand:uniform_s(Left, Rand0),
    case Drawn =< N of
        true ->
            {Chosen, Rand} = choose(N - 1, Left - 1, Nodes, Rand1),
            {[Node | Chosen], Rand};
        false ->
            choose(N, Left - 1, Nodes, Rand1)
    end.

%% @doc A list that begins that far from its first, 0, to its last, 1, and goes on with its
%% first: the one that was drawn, and those that come into question after it.
-spec from(Which :: float(), [Element]) -> [Element].
from(_Which, []) ->
    [];
from(Which, List) ->
    Count = length(List),
    {Before, After} = lists:split(min(trunc(Which * Count), Count - 1), List),
    After ++ Before.

%% @doc One of a list with weights; anything else is what it is, and nothing is drawn.
-spec weighed([{Weight :: number(), What}, ...] | What, rand:state()) -> {What, rand:state()}.
weighed([_ | _] = Weighted, Rand0) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {pick(X * lists:sum([Weight || {Weight, _} <- Weighted]), Weighted), Rand};
weighed(What, Rand) ->
    {What, Rand}.

pick(_Left, [{_, What}]) -> What;
pick(Left, [{Weight, What} | _]) when Left < Weight -> What;
pick(Left, [{Weight, _} | Others]) -> pick(Left - Weight, Others).
