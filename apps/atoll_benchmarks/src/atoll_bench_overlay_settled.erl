%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a cluster has settled: what its nodes say of it, put together.
%%
%% Settled means that every node knows all others and nobody else, that two nodes hold
%% each other for neighbours or neither does, and that all hang together: in a mesh,
%% each with each. It does not mean that a strategy has stopped to look for better
%% neighbours.
-module(atoll_bench_overlay_settled).

-export([check/3]).

-export_type([shape/0, views/0]).

%% `alone': no node is connected with any. `mesh': each with each. `some': whatever
%% neighbours they choose. `groups': the members of each with each other, and with nobody else.
-type shape() :: alone | mesh | some | {groups, [[node()]]}.

-type views() :: #{node() => atoll_bench_overlay_load:view()}.

%% @doc The first thing that is not as it will be.
-spec check(shape(), [node(), ...], views()) -> ok | {not_yet, unicode:chardata()}.
check(Shape, Nodes, Views) ->
    All = lists:sort(Nodes),
    Silent = fun() -> none(All -- maps:keys(Views), "says nothing") end,
    first([Silent | checks(Shape, All, Views)]).

checks(alone, _All, Views) ->
    [fun() -> everywhere(fun(_Node, {_, _, Connected}) -> Connected =:= [] end, Views, "is connected with some node") end];
checks(mesh, All, Views) ->
    IsFull = fun(Node, {_, Neighbours, _}) -> Neighbours =:= All -- [Node] end,
    checks(some, All, Views) ++ [fun() -> everywhere(IsFull, Views, "is no neighbour of all") end];
checks({groups, Groups}, All, Views) ->
    IsFull = fun(Node, {_, Neighbours, _}) ->
        Neighbours =:= lists:usort(lists:append([Group || Group <- Groups, lists:member(Node, Group)])) -- [Node]
    end,
    checks(some, All, Views) ++ [fun() -> everywhere(IsFull, Views, "is not linked with just its groups") end];
checks(some, All, Views) ->
    [
        fun() -> everywhere(fun(_Node, {Members, _, _}) -> Members =:= All end, Views, "does not know just the members") end,
        fun() ->
            everywhere(
                fun(Node, {_, Neighbours, _}) -> lists:all(fun(N) -> is_mutual(Node, N, Views) end, Neighbours) end,
                Views,
                "has a neighbour that holds it for none"
            )
        end,
        fun() -> none(All -- reached([hd(All)], Views, []), "cannot be reached over neighbours") end
    ].

first([]) -> ok;
first([Check | Checks]) ->
    case Check() of
        ok -> first(Checks);
        {not_yet, _} = NotYet -> NotYet
    end.

everywhere(Holds, Views, Says) ->
    none([Node || {Node, View} <- lists:sort(maps:to_list(Views)), not Holds(Node, View)], Says).

none([], _Says) -> ok;
none([Node | _] = Nodes, Says) -> {not_yet, io_lib:format("~ts ~ts (~b in all)", [Node, Says, length(Nodes)])}.

is_mutual(Node, Neighbour, Views) ->
    case Views of
        #{Neighbour := {_, Theirs, _}} -> lists:member(Node, Theirs);
        #{} -> false
    end.

reached([], _Views, Seen) ->
    Seen;
reached([Node | Nodes], Views, Seen) ->
    case lists:member(Node, Seen) of
        true ->
            reached(Nodes, Views, Seen);
        false ->
            {_, Neighbours, _} = map_get(Node, Views),
            reached(Neighbours ++ Nodes, Views, [Node | Seen])
    end.
