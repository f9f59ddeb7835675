%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Where a node stands, as far as it matters for reaching it: the cliques that it is
%% in, for whom it relays, and standing links of its own that no clique explains. Pure
%% data, and what may come of it from a stranger.
%%
%% A node in two cliques or more is a gateway; one that has links of its own may be passed
%% through as well. Each is asked for whom it relays: `all', `none', or only where one of
%% the two ends is in one of some cliques.
%%
%% A place is three sorted lists or words without names, since it travels much:
%% `{Cliques, Relays, Links}'.
-module(atoll_directory_place).

-export([new/0, new/3, is_place/1, is_relays/1, allows/2, bounded/2]).

-export_type([place/0, clique/0, relays/0]).

-type clique() :: term().
%% The name of one; a short term.

-type relays() :: all | none | [clique()].

-type place() :: {Cliques :: [clique()], relays(), Links :: [node()]}.

%% In how many cliques a node is at most, how many it relays for, how many links it tells
%% of, and the length of a clique's name, in bytes as it travels.
-define(MAX_CLIQUES, 64).
-define(MAX_LINKS, 4).
-define(MAX_NAME, 300).

%% @doc In no clique, with no links.
-spec new() -> place().
new() ->
    {[], all, []}.

%% @doc The place that these make. What is beyond the bounds is left out, the last ones
%% in order, see {@link bounded/2}.
-spec new([clique()], relays(), [node()]) -> place().
new(Cliques, Relays, Links) ->
    {some(?MAX_CLIQUES, Cliques), relays(Relays), some(?MAX_LINKS, Links)}.

relays(Cliques) when is_list(Cliques) -> some(?MAX_CLIQUES, Cliques);
relays(Word) -> Word.

some(Max, List) -> lists:sublist(lists:usort(List), Max).

%% @doc How many cliques and links of these have no room.
-spec bounded([clique()], [node()]) -> non_neg_integer().
bounded(Cliques, Links) ->
    max(0, length(lists:usort(Cliques)) - ?MAX_CLIQUES) + max(0, length(lists:usort(Links)) - ?MAX_LINKS).

%% @doc Whether a term is a place, whoever made it.
-spec is_place(term()) -> boolean().
is_place({Cliques, Relays, Links}) ->
    is_set(?MAX_CLIQUES, fun is_name/1, Cliques) andalso is_relays(Relays) andalso
        is_set(?MAX_LINKS, fun is_atom/1, Links);
is_place(_) ->
    false.

%% @doc Whether a term says for whom a node relays.
-spec is_relays(term()) -> boolean().
is_relays(all) -> true;
is_relays(none) -> true;
is_relays(Cliques) -> is_set(?MAX_CLIQUES, fun is_name/1, Cliques).

is_name(Name) when is_atom(Name) -> true;
is_name(Name) -> erlang:external_size(Name) =< ?MAX_NAME.

%% Its guard fails for a list that is none to the end.
is_set(Max, Is, List) when length(List) =< Max ->
    List =:= lists:usort(List) andalso lists:all(Is, List);
is_set(_Max, _Is, _Other) ->
    false.

%% @doc Whether somebody who relays so does it where the two ends are in these cliques.
-spec allows(relays(), Ends :: #{clique() => _}) -> boolean().
allows(all, _Ends) -> true;
allows(none, _Ends) -> false;
allows(Cliques, Ends) -> lists:any(fun(Clique) -> is_map_key(Clique, Ends) end, Cliques).
