%% @doc This node's part of the trees: of each sender's tree, which neighbours are
%% *lazy*, that is, get announcements in place of messages.
%%
%% All other neighbours are eager. So a tree of which nothing is known, because it is
%% new or was forgotten, floods; the duplicates then prune it again.
-module(atoll_plumtree_trees).

-export([new/1, sent/3, is_lazy/3, delivered/5, parent/2, make_lazy/4, make_eager/4, shorten/7, lost/2]).
-export([size/1, forgotten/1]).

-export_type([trees/0]).

-record(tree, {
    lazy = [] :: [node()],
    %% Who sent the last message first, and how many links it had crossed then.
    parent = none :: none | node(),
    hops = 0 :: non_neg_integer()
}).

-opaque trees() :: atoll_plumtree_recent:table(#tree{}).

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

%% @doc A message came, for the first time, from this neighbour: it is the parent, and
%% eager. Gives the lazy ones that remain.
-spec delivered(node(), node(), Hops :: non_neg_integer(), atoll_protocol:now_ms(), trees()) ->
    {Lazy :: [node()], trees()}.
delivered(Root, From, Hops, Now, Trees) ->
    case find(Root, Trees) of
        #tree{lazy = Lazy, parent = From, hops = Hops} = Tree ->
            {Lazy, atoll_plumtree_recent:touch(Root, Tree, Now, Trees)};
        #tree{lazy = Lazy0} = Tree ->
            Lazy = lists:delete(From, Lazy0),
            Changed = Tree#tree{lazy = Lazy, parent = From, hops = Hops},
            {Lazy, atoll_plumtree_recent:store(Root, Changed, Now, Trees)}
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

%% @doc A lazy neighbour announces a message that would have come from it over `Hops'
%% links. If that is less than over the parent by the threshold, it becomes the parent
%% and the old one, if it still is a neighbour, lazy.
-spec shorten(node(), node(), pos_integer(), pos_integer(), [node()], atoll_protocol:now_ms(), trees()) ->
    no | {Old :: none | node(), trees()}.
shorten(Root, From, Hops, Threshold, Neighbours, Now, Trees) ->
    case find(Root, Trees) of
        #tree{hops = Long, lazy = Lazy, parent = Parent} = Tree when Hops + Threshold =< Long ->
            case lists:member(From, Lazy) of
                true ->
                    Eager = lists:delete(From, Lazy),
                    {Old, Changed} =
                        case lists:member(Parent, Neighbours) of
                            true -> {Parent, add(Parent, Eager)};
                            false -> {none, Eager}
                        end,
                    Short = Tree#tree{lazy = Changed, parent = From, hops = Hops},
                    {Old, atoll_plumtree_recent:store(Root, Short, Now, Trees)};
                false ->
                    no
            end;
        #tree{} ->
            no
    end.

%% @doc It is no neighbour any more; should it come back, it is eager in all trees.
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
