%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Co-members of a node's cliques that it has no link with, and since when: whoever
%% stays away for too long is taken for gone. Pure data.
%%
%% Who was taken for gone, by whomever, and says the contrary gets twice as long from then
%% on, up to an hour, until there is a link with it. Bounded by the number of co-members; of those that were doubted a
%% thousand are remembered.
-module(atoll_directory_watch).

-export([new/0, co_members/5, co_member/5, up/2, down/4, gone/2, parted/2, due/2, missing/1]).

-export_type([watch/0]).

-record(watch, {
    co_members = #{} :: #{node() => []},
    %% When it has been away for too long.
    missing = #{} :: #{node() => atoll_protocol:now_ms()},
    %% How often it was doubted.
    doubted = #{} :: #{node() => pos_integer()}
}).

-opaque watch() :: #watch{}.

-define(MAX_MS, 3600000).
-define(MAX_DOUBTED, 1000).

%% @doc Nobody.
-spec new() -> watch().
new() ->
    #watch{}.

%% @doc These are the co-members now, and these nodes are linked.
-spec co_members([node()], Linked :: [node()], atoll_protocol:now_ms(), pos_integer(), watch()) -> watch().
co_members(CoMembers, Linked, Now, Ms, #watch{missing = Missing} = Watch0) ->
    Watch = Watch0#watch{co_members = maps:from_keys(CoMembers, []), missing = maps:with(CoMembers, Missing)},
    lists:foldl(fun(Node, W) -> away(Node, Now, Ms, W) end, Watch, CoMembers -- Linked).

%% @doc This one is a co-member.
-spec co_member(node(), IsLinked :: boolean(), atoll_protocol:now_ms(), pos_integer(), watch()) -> watch().
co_member(Node, IsLinked, Now, Ms, #watch{co_members = CoMembers} = Watch0) ->
    Watch = Watch0#watch{co_members = CoMembers#{Node => []}},
    case IsLinked of
        true -> Watch;
        false -> away(Node, Now, Ms, Watch)
    end.

%% @doc There is a link with it.
-spec up(node(), watch()) -> watch().
up(Node, #watch{missing = Missing, doubted = Doubted} = Watch) ->
    Watch#watch{missing = maps:remove(Node, Missing), doubted = maps:remove(Node, Doubted)}.

%% @doc There is none any more.
-spec down(node(), atoll_protocol:now_ms(), pos_integer(), watch()) -> watch().
down(Node, Now, Ms, #watch{co_members = CoMembers} = Watch) ->
    case CoMembers of
        #{Node := _} -> away(Node, Now, Ms, Watch);
        #{} -> Watch
    end.

%% Since then or before.
away(Node, Now, Ms, #watch{missing = Missing, doubted = Doubted} = Watch) ->
    case Missing of
        #{Node := _} ->
            Watch;
        #{} ->
            Times = maps:get(Node, Doubted, 0),
            Wait = min(max(Ms, ?MAX_MS), Ms bsl min(Times, 20)),
            Watch#watch{missing = Missing#{Node => Now + Wait}}
    end.

%% @doc It is no co-member any more.
-spec parted(node(), watch()) -> watch().
parted(Node, #watch{co_members = CoMembers, missing = Missing} = Watch) ->
    Watch#watch{co_members = maps:remove(Node, CoMembers), missing = maps:remove(Node, Missing)}.

%% @doc Somebody says that it is gone. Whoever misses it too has doubted it with that one: else its
%% co-members would do so in turn.
-spec gone(node(), watch()) -> watch().
gone(Node, #watch{missing = Missing} = Watch) when is_map_key(Node, Missing) ->
    doubt(Node, parted(Node, Watch));
gone(Node, Watch) ->
    parted(Node, Watch).

%% @doc Those that have been away for too long, in the order of their names; they are
%% doubted now.
-spec due(atoll_protocol:now_ms(), watch()) -> {[node()], watch()}.
due(Now, #watch{missing = Missing} = Watch) ->
    Due = lists:sort([Node || {Node, At} <- maps:to_list(Missing), At =< Now]),
    {Due, lists:foldl(fun doubt/2, Watch#watch{missing = maps:without(Due, Missing)}, Due)}.

doubt(Node, #watch{doubted = Doubted0} = Watch) ->
    Times = maps:get(Node, Doubted0, 0) + 1,
    Doubted = Doubted0#{Node => Times},
    case map_size(Doubted) > ?MAX_DOUBTED of
        true -> Watch#watch{doubted = maps:remove(lists:min(maps:keys(maps:remove(Node, Doubted))), Doubted)};
        false -> Watch#watch{doubted = Doubted}
    end.

%% @doc How many are away.
-spec missing(watch()) -> non_neg_integer().
missing(#watch{missing = Missing}) ->
    map_size(Missing).
