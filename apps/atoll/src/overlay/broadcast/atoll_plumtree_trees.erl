%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc This node's part of the trees: of each sender's tree, which neighbours are
%% *lazy*, that is, get announcements in place of messages.
%%
%% All other neighbours are eager. So a tree of which nothing is known, because it is
%% new or was forgotten, floods; the duplicates then prune it again. A new neighbour is
%% lazy in each tree that has a parent: a link that is faster, though longer, would take
%% the parent's place.
-module(atoll_plumtree_trees).

-export([new/1, sent/3, is_lazy/3, delivered/5, parent/2, make_lazy/4, make_eager/4, gained/3, orphaned/3, is_shorter/4, follow/6, lost/2]).
-export([size/1, forgotten/1]).

-export_type([trees/0]).

-record(tree, {
    lazy = [] :: [node()],
    %% Who sent the last message first, and how many links it had crossed then.
    parent = none :: none | node(),
    hops = 0 :: non_neg_integer()
}).

-type trees() :: atoll_plumtree_recent:table(#tree{}).

%% @doc No trees yet, and never more than `Max'.
-spec new(pos_integer()) -> trees().
new(Max) ->
    atoll_plumtree_recent:new(Max).

%% @doc This node sends in its own tree; gives the lazy neighbours.
-spec sent(node(), atoll_protocol:now_ms(), trees()) -> {Lazy :: [node()], trees()}.
sent(Root, Now, Trees) ->
    #tree{lazy = Lazy} = Tree = find(Root, Trees),
    {Lazy, atoll_plumtree_recent:touch(Root, Tree, Now, Trees)}.

%% @doc Is this neighbour lazy in the tree of this sender?
-spec is_lazy(node(), node(), trees()) -> boolean().
is_lazy(Root, Node, Trees) ->
    #tree{lazy = Lazy} = find(Root, Trees),
    lists:member(Node, Lazy).

%% @doc Who is the parent in this tree?
-spec parent(node(), trees()) -> none | node().
parent(Root, Trees) ->
    #tree{parent = Parent} = find(Root, Trees),
    Parent.

%% @doc A message came, for the first time, from this neighbour. If that is an eager
%% one it is the parent from now on. A lazy one was told to be, but has not heard it
%% yet; to follow it would undo a change that has just been made. Gives the lazy ones.
-spec delivered(node(), node(), Hops :: pos_integer(), atoll_protocol:now_ms(), trees()) ->
    {eager | lazy, Lazy :: [node()], trees()}.
delivered(Root, From, Hops, Now, Trees) ->
    case find(Root, Trees) of
        #tree{lazy = Lazy, parent = From, hops = Hops} = Tree ->
            {eager, Lazy, atoll_plumtree_recent:touch(Root, Tree, Now, Trees)};
        #tree{lazy = Lazy} = Tree ->
            case lists:member(From, Lazy) of
                true ->
                    {lazy, Lazy, atoll_plumtree_recent:touch(Root, Tree, Now, Trees)};
                false ->
                    Followed = Tree#tree{parent = From, hops = Hops},
                    {eager, Lazy, atoll_plumtree_recent:store(Root, Followed, Now, Trees)}
            end
    end.

%% @doc This neighbour is lazy from now on.
-spec make_lazy(node(), node(), atoll_protocol:now_ms(), trees()) -> trees().
make_lazy(Root, Node, Now, Trees) ->
    #tree{lazy = Lazy} = Tree = find(Root, Trees),
    atoll_plumtree_recent:store(Root, Tree#tree{lazy = add(Node, Lazy)}, Now, Trees).

%% @doc This neighbour is eager from now on.
-spec make_eager(node(), node(), atoll_protocol:now_ms(), trees()) -> trees().
make_eager(Root, Node, Now, Trees) ->
    #tree{lazy = Lazy} = Tree = find(Root, Trees),
    case lists:member(Node, Lazy) of
        true -> atoll_plumtree_recent:store(Root, Tree#tree{lazy = lists:delete(Node, Lazy)}, Now, Trees);
        false -> Trees
    end.

%% @doc Would a message over so many links, and as many less as the threshold says, be
%% shorter than over the parent?
-spec is_shorter(node(), pos_integer(), pos_integer(), trees()) -> boolean().
is_shorter(Root, Hops, Threshold, Trees) ->
    #tree{hops = Long} = find(Root, Trees),
    Hops + Threshold =< Long.

%% @doc This neighbour becomes the parent, and the old parent, if it is another one and
%% still a neighbour, lazy.
-spec follow(node(), node(), pos_integer(), [node()], atoll_protocol:now_ms(), trees()) ->
    {Old :: none | node(), trees()}.
follow(Root, From, Hops, Neighbours, Now, Trees) ->
    #tree{lazy = Lazy, parent = Parent} = Tree = find(Root, Trees),
    Eager = lists:delete(From, Lazy),
    {Old, Changed} =
        case Parent =/= From andalso lists:member(Parent, Neighbours) of
            true -> {Parent, add(Parent, Eager)};
            false -> {none, Eager}
        end,
    Short = Tree#tree{lazy = Changed, parent = From, hops = Hops},
    {Old, atoll_plumtree_recent:store(Root, Short, Now, Trees)}.

%% @doc A new neighbour: lazy wherever one of the old ones is the parent.
-spec gained(node(), Old :: [node()], trees()) -> trees().
gained(Node, Old, Trees) ->
    atoll_plumtree_recent:map(
        fun(_Root, #tree{lazy = Lazy, parent = Parent} = Tree) ->
            case lists:member(Parent, Old) of
                true -> Tree#tree{lazy = add(Node, Lazy)};
                false -> Tree
            end
        end,
        Trees
    ).

%% @doc This parent is lost: in each of its trees a lazy neighbour takes its place, which
%% is to be told so. Gives these.
-spec orphaned(node(), atoll_protocol:now_ms(), trees()) -> {[{Root :: node(), node()}], trees()}.
orphaned(Node, Now, Trees0) ->
    lists:foldl(
        fun
            ({Root, #tree{parent = Parent, lazy = [New | Lazy]} = Tree}, {Adopted, Trees}) when Parent =:= Node ->
                {[{Root, New} | Adopted], atoll_plumtree_recent:store(Root, Tree#tree{parent = New, lazy = Lazy}, Now, Trees)};
            (_, Acc) ->
                Acc
        end,
        {[], Trees0},
        atoll_plumtree_recent:to_list(Trees0)
    ).

%% @doc It is in no tree: no neighbour any more, or one that knows nothing yet and is
%% eager in all.
-spec lost(node(), trees()) -> trees().
lost(Node, Trees) ->
    atoll_plumtree_recent:map(
        fun(_Root, #tree{lazy = Lazy} = Tree) -> Tree#tree{lazy = lists:delete(Node, Lazy)} end,
        Trees
    ).

%% @doc How many trees are known.
-spec size(trees()) -> non_neg_integer().
size(Trees) ->
    atoll_plumtree_recent:size(Trees).

%% @doc How many trees were forgotten.
-spec forgotten(trees()) -> non_neg_integer().
forgotten(Trees) ->
    atoll_plumtree_recent:forgotten(Trees).

find(Root, Trees) ->
    case atoll_plumtree_recent:find(Root, Trees) of
        {ok, Tree} -> Tree;
        error -> #tree{}
    end.

add(Node, Nodes) ->
    case lists:member(Node, Nodes) of
        true -> Nodes;
        false -> [Node | Nodes]
    end.
