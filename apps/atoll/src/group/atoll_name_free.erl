%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Who shares the namespace of the free nodes with this node. Data only.
%%
%% A node that is in no group is free. Free nodes that are connected share the names of
%% the group `undefined', and connect all with all: a node is a co-member when this node is
%% free, and that one has said over the connection that is up now that it is free too.
%% Co-members tell each other whom they have for co-members when they meet, and again
%% from time to time, one at a time. Whoever is told of is sought, that is wanted for a while,
%% and so is a co-member that is lost; co-members are wanted for as long as they are
%% co-members. So two cliques of free nodes that meet at one connection get to be one:
%% each of the two who meet connects with all that the other knows, and tells them whom it
%% knows. Where two cannot reach each other, one that both know makes them try again
%% from time to time.
%%
%% A free node that makes a group gets connected with nodes that may be free too, before
%% any of them is in it. It meets nobody as a free node meanwhile: two namespaces would be made
%% one, and all nodes of both connected, for nothing. When the group is made, or not, who came up
%% is greeted as by then it is.
%%
%% A node whose namespace is its own (`alone': a hidden one, or one that is told so) has the
%% group `undefined' to itself while it is free, and says that it does not share it.
-module(atoll_name_free).

-export([new/2, stand/2, making/2, met/2, said/3, gone/2, told/3, give_up/2, remind/1]).
-export([id/0, kind/1, shares/1, shares_with/2, members/2, others/1]).

-export_type([kind/0, limits/0, free/0, effect/0]).

-type kind() :: mesh | alone.

-type limits() :: #{
    %% How long a node is sought; after how long the next co-member is reminded.
    seek_ms := pos_integer(),
    remind_ms := pos_integer(),
    %% How many nodes are sought at once.
    max_sought := pos_integer(),
    _ => _
}.

-type effect() ::
    {want | unwant, node()}
    | {timer, {seek, node()} | remind, pos_integer()}
    | {cancel, {seek, node()} | remind}
    %% Tell that node whom this one has for co-members; that this one is free.
    | {know, node(), [node()]}
    | {greet, node()}.

-record(free, {
    kind :: kind(),
    limits :: limits(),
    %% Whether this node is in no group; nobody has said so at first.
    is_free = false :: boolean(),
    %% Who has said that it is free.
    said = #{} :: #{node() => []},
    %% While this node makes a group: who came up meanwhile, and whether they have said that
    %% they are free.
    met_meanwhile = none :: none | #{node() => boolean()},
    %% Told of or lost, and not found yet.
    sought = #{} :: #{node() => []},
    %% Who was reminded last.
    reminded = none :: none | node()
}).

-opaque free() :: #free{}.

%% No node has that name: the group is not made, and the same everywhere.
-define(ID, {undefined, {1, free, 0}}).

%% @doc A node of which it is not known yet whether it is free.
-spec new(kind(), limits()) -> free().
new(Kind, Limits) -> #free{kind = Kind, limits = Limits}.

%% @doc The identity of the group `undefined'.
-spec id() -> atoll_group_view:id().
id() -> ?ID.

%% @doc Whether this node shares its namespace while it is free.
-spec kind(free()) -> kind().
kind(#free{kind = Kind}) -> Kind.

%% @doc Whether this node shares the namespace of the free nodes now.
-spec shares(free()) -> boolean().
shares(#free{kind = Kind, is_free = IsFree}) -> Kind =:= mesh andalso IsFree.

%% @doc Whether it does so with that node, as far as it goes by this one.
-spec shares_with(node(), free()) -> boolean().
shares_with(Node, #free{met_meanwhile = Met} = Free) ->
    shares(Free) andalso not (is_map(Met) andalso is_map_key(Node, Met)).

%% @doc The members of the group `undefined', if this node is one.
-spec members(node(), free()) -> none | [node(), ...].
members(_Self, #free{is_free = false}) -> none;
members(Self, Free) -> [Self | others(Free)].

%% @doc The co-members, sorted.
-spec others(free()) -> [node()].
others(#free{said = Said} = Free) ->
    case shares(Free) of
        true -> lists:sort(maps:keys(Said));
        false -> []
    end.

%% @doc This node is in a group, or in none.
-spec stand(boolean(), free()) -> {[effect()], free()}.
stand(IsFree, #free{is_free = IsFree} = Free) ->
    {[], Free};
stand(true, #free{} = Free0) ->
    Free = Free0#free{is_free = true},
    Others = others(Free),
    {[{want, Node} || Node <- Others] ++ know(Others, Free) ++ reminder(0, Free), Free};
stand(false, #free{sought = Sought} = Free) ->
    Others = others(Free),
    Lost = lists:sort(maps:keys(Sought)),
    Cancel = [{cancel, remind} || length(Others) > 1] ++ [{cancel, {seek, Node}} || Node <- Lost],
    {Cancel ++ [{unwant, Node} || Node <- lists:merge(Others, Lost)], Free#free{is_free = false, sought = #{}}}.

%% @doc This node makes a group, or does so no more.
-spec making(boolean(), free()) -> {[effect()], free()}.
making(true, #free{met_meanwhile = none} = Free) ->
    {[], Free#free{met_meanwhile = #{}}};
making(false, #free{met_meanwhile = #{} = Met} = Free) ->
    lists:foldl(
        fun({Node, Said}, {Effects, F0}) ->
            {More, F} = said(Node, Said, F0),
            {Effects ++ [{greet, Node} || shares(F)] ++ More, F}
        end,
        {[], Free#free{met_meanwhile = none}},
        lists:sort(maps:to_list(Met))
    );
making(_Same, Free) ->
    {[], Free}.

%% @doc A node is connected.
-spec met(node(), free()) -> free().
met(_Node, #free{met_meanwhile = none} = Free) -> Free;
met(Node, #free{met_meanwhile = Met} = Free) -> Free#free{met_meanwhile = Met#{Node => false}}.

%% @doc A node has said whether it shares its namespace.
-spec said(node(), boolean(), free()) -> {[effect()], free()}.
said(Node, Shares, #free{met_meanwhile = Met} = Free) when is_map_key(Node, Met) ->
    {[], Free#free{met_meanwhile = Met#{Node := Shares}}};
said(Node, true, #free{said = Said} = Free) when is_map_key(Node, Said) ->
    %% It began anew, and has forgotten whom it knew.
    {know([Node], Free), Free};
said(Node, true, #free{said = Said, sought = Sought} = Free0) ->
    Free = Free0#free{said = Said#{Node => []}, sought = maps:remove(Node, Sought)},
    case shares(Free) of
        true ->
            Wants =
                case Sought of
                    #{Node := []} -> [{cancel, {seek, Node}}];
                    #{} -> [{want, Node}]
                end,
            {Wants ++ know([Node], Free) ++ reminder(map_size(Said), Free), Free};
        false ->
            {[], Free}
    end;
said(Node, false, Free) ->
    {Effects, Left} = leaves(Node, Free),
    {Given, Without} = give_up(Node, Left),
    {Effects ++ [{unwant, Node} || is_other(Node, Free)] ++ Given, Without}.

%% @doc The connection with that node is lost: if it was a co-member it is sought.
-spec gone(node(), free()) -> {[effect()], free()}.
gone(Node, #free{met_meanwhile = Met} = Free) when is_map_key(Node, Met) ->
    {[], Free#free{met_meanwhile = maps:remove(Node, Met)}};
gone(Node, #free{limits = #{seek_ms := Ms}} = Free) ->
    {Effects, #free{sought = Sought} = Left} = leaves(Node, Free),
    case is_other(Node, Free) of
        false ->
            {Effects, Left};
        true ->
            case has_room(Left) of
                true -> {Effects ++ [{timer, {seek, Node}, Ms}], Left#free{sought = Sought#{Node => []}}};
                false -> {Effects ++ [{unwant, Node}], Left}
            end
    end.

leaves(Node, #free{said = Said} = Free) ->
    Left = Free#free{said = maps:remove(Node, Said)},
    Stop = length(others(Free)) > 1 andalso length(others(Left)) =< 1,
    {[{cancel, remind} || Stop], Left}.

is_other(Node, #free{said = Said} = Free) ->
    is_map_key(Node, Said) andalso shares(Free).

%% @doc A co-member has these for co-members.
-spec told(node(), [node()], free()) -> {[effect()], free()}.
told(Self, Nodes, #free{limits = #{seek_ms := Ms}} = Free) ->
    case shares(Free) of
        false ->
            {[], Free};
        true ->
            lists:foldl(
                fun(Node, {Effects, #free{said = Said, sought = Sought} = F}) ->
                    IsKnown = Node =:= Self orelse is_map_key(Node, Said) orelse is_map_key(Node, Sought),
                    case not IsKnown andalso has_room(F) of
                        true -> {Effects ++ [{want, Node}, {timer, {seek, Node}, Ms}], F#free{sought = Sought#{Node => []}}};
                        false -> {Effects, F}
                    end
                end,
                {[], Free},
                Nodes
            )
    end.

has_room(#free{sought = Sought, limits = #{max_sought := Max}}) -> map_size(Sought) < Max.

%% @doc That node was sought for long enough.
-spec give_up(node(), free()) -> {[effect()], free()}.
give_up(Node, #free{sought = Sought} = Free) ->
    case Sought of
        #{Node := []} ->
            {[{cancel, {seek, Node}}, {unwant, Node}], Free#free{sought = maps:remove(Node, Sought)}};
        #{} ->
            {[], Free}
    end.

%% @doc It is time to remind the next co-member.
-spec remind(free()) -> {[effect()], free()}.
remind(#free{reminded = Last, limits = #{remind_ms := Ms}} = Free) ->
    Others = others(Free),
    Next =
        case [Node || Node <- Others, Node > Last, Last =/= none] of
            [Node | _] -> Node;
            [] -> hd(Others)
        end,
    {know([Next], Free) ++ [{timer, remind, Ms}], Free#free{reminded = Next}}.

%% With one co-member there is nobody to tell it of.
know(Nodes, Free) ->
    Others = others(Free),
    [{know, Node, lists:delete(Node, Others)} || Node <- Nodes, length(Others) > 1, shares(Free)].

reminder(Before, #free{limits = #{remind_ms := Ms}} = Free) ->
    [{timer, remind, Ms} || Before =< 1, length(others(Free)) > 1].
