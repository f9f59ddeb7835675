%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc In which order fitting nodes are preferred, and which of them are equally good. Pure.
%%
%% <dl>
%% <dt>`none'</dt><dd>All are equal.</dd>
%% <dt>`{least, Name}', `{most, Name}'</dt><dd>By an attribute that is a number; a node where
%%   it is none comes last.</dd>
%% <dt>`{nearest, Distance}'</dt><dd>By a function or a map from nodes to numbers. A node of
%%   which it says something else, or nothing, comes last.</dd>
%% </dl>
%%
%% Nodes are equally good if they differ from the best of them by no more than the slack, a
%% share of what the best has: with 0.1, all that are at most a tenth farther than the
%% nearest. Where no slack is left, everybody who chooses at the same moment chooses the same
%% node.
%%
%% A number beyond 1.0e150 either way counts as none: what a node says of itself must not
%% overflow a calculation somewhere else.
-module(atoll_attr_rank).

-export([tiers/4, is_rank/1, name/1, is_countable/1]).

-export_type([rank/0, distance/0]).

-type distance() :: fun((node()) -> term()) | #{node() => term()}.
%% The product of two is a float, and so are sums of some of those.
-define(LARGEST, 1.0e150).

-type rank() :: none | {least | most, atoll_predicate:name()} | {nearest, distance()}.

%% @doc The nodes in groups of equally good ones, the best first; each sorted by rank and name.
%% Those beyond `Within' are left out, and with them those without a number.
-spec tiers([{node(), atoll_predicate:values()}], rank(), Slack :: number(), Within :: number() | infinity) -> [[node()]].
tiers([], _Rank, _Slack, _Within) ->
    [];
tiers(Nodes, none, _Slack, _Within) ->
    [lists:sort([Node || {Node, _} <- Nodes])];
tiers(Nodes, Rank, Slack, Within) ->
    Keyed = [{key(Node, Values, Rank), Node} || {Node, Values} <- Nodes],
    Inside = [One || {Key, _} = One <- Keyed, Within =:= infinity orelse Key =/= none andalso is_within(Key, Rank, Within)],
    {Unknown, Known} = lists:partition(fun({Key, _}) -> Key =:= none end, Inside),
    split(lists:sort(Known), min(Slack, ?LARGEST)) ++ [lists:sort([Node || {_, Node} <- Unknown]) || Unknown =/= []].

key(_Node, Values, {least, Name}) -> number(maps:get(Name, Values, undefined), 1);
key(_Node, Values, {most, Name}) -> number(maps:get(Name, Values, undefined), -1);
key(Node, _Values, {nearest, Distance}) when is_map(Distance) -> number(maps:get(Node, Distance, undefined), 1);
key(Node, _Values, {nearest, Distance}) -> number(Distance(Node), 1).

number(Value, Sign) ->
    case is_countable(Value) of
        true -> Sign * Value;
        false -> none
    end.

is_within(Key, {most, _}, Within) -> -Key >= Within;
is_within(Key, _, Within) -> Key =< Within.

split([], _Slack) ->
    [];
split([{Best, _} | _] = Sorted, Slack) ->
    Limit = Best + Slack * abs(Best),
    {Tier, Rest} = lists:splitwith(fun({Key, _}) -> Key =< Limit end, Sorted),
    [[Node || {_, Node} <- Tier] | split(Rest, Slack)].

%% @doc Whether a term is a number that can be calculated with.
-spec is_countable(term()) -> boolean().
is_countable(Value) -> is_number(Value) andalso abs(Value) =< ?LARGEST.

%% @doc Whether a term is a rank.
-spec is_rank(term()) -> boolean().
is_rank(none) -> true;
is_rank({least, Name}) -> is_atom(Name);
is_rank({most, Name}) -> is_atom(Name);
is_rank({nearest, Distance}) -> is_map(Distance) orelse is_function(Distance, 1);
is_rank(_) -> false.

%% @doc The attribute that it needs.
-spec name(rank()) -> [atoll_predicate:name()].
name({Order, Name}) when Order =:= least; Order =:= most -> [Name];
name(_) -> [].
