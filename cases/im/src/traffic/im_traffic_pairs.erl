%% SPDX-License-Identifier: Apache-2.0
%% @doc Which doped clients there are on which client node, and who talks with whom. Pure; chance is
%% drawn from the state that is passed.
%%
%% The clients have the paper's names: `tc3_2' is the third one of the second client node; the nodes
%% have as many each, or one more. A node begins the conversations of its own clients. Of each two
%% clients it is always the same one that begins, with half of all others the one and with half of
%% them the other: so no two nodes begin a conversation of the same two, and all pairs are about equally likely.
-module(im_traffic_pairs).

-export([share/3, name/2, count/1, draw/4]).

-export_type([index/0]).

-type index() :: pos_integer().
%% Of all clients: the first ones of each node, then the second ones, and so on.

%% Where the clients are few, nearly all pairs may be taken.
-define(TRIES, 50).

%% @doc How many of all are the Kth one's of N.
-spec share(All :: non_neg_integer(), K :: pos_integer(), N :: pos_integer()) -> non_neg_integer().
share(All, K, N) when K =< All rem N -> All div N + 1;
share(All, _K, N) -> All div N.

%% @doc What a client is called on N nodes.
-spec name(index(), N :: pos_integer()) -> im_history_side:client().
name(Index, N) ->
    {I, K} = {(Index - 1) div N + 1, (Index - 1) rem N + 1},
    <<"tc", (integer_to_binary(I))/binary, $_, (integer_to_binary(K))/binary>>.

%% @doc How many pairs there are of so many clients.
-spec count(Clients :: non_neg_integer()) -> non_neg_integer().
count(Clients) -> Clients * (Clients - 1) div 2.

%% @doc A client of the Kth of N nodes that begins, and another one of all; who are not taken, as the
%% caller says. None if many tries find no such pair.
-spec draw(Clients :: pos_integer(), {K :: pos_integer(), N :: pos_integer()}, IsFree, rand:state()) -> {{index(), index()} | none, rand:state()} when
    IsFree :: fun((index(), index()) -> boolean()).
draw(Clients, Place, IsFree, Rand) -> draw(?TRIES, Clients, Place, IsFree, Rand).

draw(0, _Clients, _Place, _IsFree, Rand) ->
    {none, Rand};
draw(Tries, Clients, {K, N} = Place, IsFree, Rand0) ->
    case share(Clients, K, N) of
        0 ->
            {none, Rand0};
        Mine ->
            {I, Rand1} = rand:uniform_s(Mine, Rand0),
            {Other, Rand} = rand:uniform_s(Clients, Rand1),
            One = (I - 1) * N + K,
            case Other =/= One andalso begins(One, Other) =:= One andalso IsFree(One, Other) of
                true -> {{One, Other}, Rand};
                false -> draw(Tries - 1, Clients, Place, IsFree, Rand)
            end
    end.

begins(One, Other) when (One + Other) rem 2 =:= 0 -> min(One, Other);
begins(One, Other) -> max(One, Other).
