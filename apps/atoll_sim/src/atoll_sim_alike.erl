%% SPDX-License-Identifier: Apache-2.0
%% @doc Terms in less memory: what is equal in two of them can be one.
%%
%% The nodes of a world that is at rest know the same: each has a table of all members, and the tables
%% are equal, in whole or in part. As each node has built its own they lie in memory once for each.
-module(atoll_sim_alike).

-export([like/2]).

%% @doc The same term, in which what equals the model at the same place is the model's. Tuples are
%% gone through, such as records and tables of buckets; a list or a map is taken as a whole or not.
-spec like(Model :: term(), Term) -> Term.
like(Model, Term) when Model =:= Term ->
    Model;
like(Model, Term) when is_tuple(Model), tuple_size(Model) =:= tuple_size(Term) ->
    list_to_tuple(elements(tuple_to_list(Model), tuple_to_list(Term)));
like(_Model, Term) ->
    Term.

elements([Model | Models], [Term | Terms]) -> [like(Model, Term) | elements(Models, Terms)];
elements([], []) -> [].
