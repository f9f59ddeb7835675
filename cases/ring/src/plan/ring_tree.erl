%% SPDX-License-Identifier: Apache-2.0
%% @doc A tree of hashes over keys, by which two copies of the same keys find where they differ: without telling each other all of them. Pure.
%%
%% A key is in one of 256 leaves, by its hash. The hash of a leaf is the exclusive or of what its keys come to, so a change costs the same however many keys there are, and the
%% order in which they came does not matter. Sixteen leaves make a branch, and sixteen branches the root. Source: Merkle (1987); DeCandia and
%% others, Dynamo (2007), section 4.7.
-module(ring_tree).

-export([new/0, change/4, leaf/1, root/1, branches/1, leaves/2, differing/2]).

-export_type([tree/0, leaf/0, hash/0]).

-type hash() :: non_neg_integer().
%% Of 60 bits; 0 for a key that is not there.

-type leaf() :: 0..255.

-opaque tree() :: #{leaf() => hash()}.
%% Of leaves that have anything.

%% @doc One without a key.
-spec new() -> tree().
new() -> #{}.

%% @doc The value of a key has had one hash, 0 for none, and has another now.
-spec change(Key :: term(), Before :: hash(), After :: hash(), tree()) -> tree().
change(_, Same, Same, Tree) -> Tree;
change(Key, Before, After, Tree) ->
    Leaf = leaf(Key),
    case maps:get(Leaf, Tree, 0) bxor one(Key, Before) bxor one(Key, After) of
        0 -> maps:remove(Leaf, Tree);
        Hash -> Tree#{Leaf => Hash}
    end.

one(_, 0) -> 0;
one(Key, Hash) ->
    <<One:60, _/bitstring>> = erlang:md5(term_to_binary({Key, Hash}, [{minor_version, 2}])),
    One.

%% @doc The leaf of a key.
-spec leaf(Key :: term()) -> leaf().
leaf(Key) -> erlang:phash2(Key, 256).

%% @doc Equal for trees of the same keys with the same hashes.
-spec root(tree()) -> hash().
root(Tree) -> erlang:phash2(lists:sort(maps:to_list(Tree)), 1 bsl 32).

%% @doc The sixteen branches with their hashes.
-spec branches(tree()) -> [{0..15, hash()}].
branches(Tree) -> [{Branch, erlang:phash2(leaves([Branch], Tree), 1 bsl 32)} || Branch <- lists:seq(0, 15)].

%% @doc The leaves of these branches with their hashes.
-spec leaves([0..15], tree()) -> [{leaf(), hash()}].
leaves(Branches, Tree) -> [{Leaf, maps:get(Leaf, Tree, 0)} || Branch <- Branches, Leaf <- lists:seq(16 * Branch, 16 * Branch + 15)].

%% @doc What has another hash on the other side, or is not there.
-spec differing([{Name, hash()}], [{Name, hash()}]) -> [Name].
differing(A, B) -> lists:usort([Name || {Name, _} <- (A -- B) ++ (B -- A)]).
