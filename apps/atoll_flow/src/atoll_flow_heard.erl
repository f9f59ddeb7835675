%% SPDX-License-Identifier: Apache-2.0
%% @doc What the observed nodes have said until now: which there are and how each is, their groups, what they have sent, which part of the
%% time was traced, their load. Pure. Whose word about a node is taken, {@link atoll_flow} decides.
%%
%% A node that is lost is observed on until it is lost for an hour and nobody has named it for an hour, neither as a peer nor in a group.
-module(atoll_flow_heard).

-export([new/2, up/2, down/3, failed/3, looked/6, picture/1, is_same_picture/2, is_anybody/1, looked_after/2, sums/1, frame/3, unframed/1, status/2]).

-export_type([heard/0, state/0, groups/0]).

-type state() :: up | down | unknown | busy | timeout | refused | other_version | unreached.

-type groups() :: [{Group :: term(), [node()]}].

-record(heard, {
    known :: [node()],
    %% How many were found beyond the most.
    beyond = 0 :: non_neg_integer(),
    states = #{} :: #{node() => state()},
    %% Since when each is down and nobody has named it, in monotonic milliseconds.
    downs = #{} :: #{node() => integer()},
    said :: #{node() => groups() | none},
    %% The groups in which each was last, if it is in none any more: what it was sent until then was sent there.
    were = #{} :: #{node() => [term()]},
    sums = atoll_flow_sums:new() :: atoll_flow_sums:sums(),
    tracing = #{} :: #{node() => atoll_flow_probe:tracing()},
    shares = #{} :: #{node() => atoll_flow_share:share()},
    loads = #{} :: #{node() => atoll_flow_probe:load()},
    migrated = #{} :: #{node() => #{{From :: pos_integer(), To :: pos_integer()} => pos_integer()}},
    %% After which turn of what is wanted each was looked at.
    turns = #{} :: #{node() => non_neg_integer()}
}).

-opaque heard() :: #heard{}.

-define(MOST_NODES, 2000).
-define(FORGET_MS, 3600000).

%% @doc These nodes are known, and what groups they are said to be in.
-spec new([node()], groups()) -> heard().
new(Known, Groups) ->
    Said = maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, Group}) -> Group end, [{Node, Group} || {_, Nodes} = Group <- Groups, Node <- Nodes]),
    #heard{known = lists:usort(Known), said = Said}.

%% @doc A node is there. Its probe counts anew.
-spec up(node(), heard()) -> heard().
up(Node, #heard{states = States, downs = Downs, tracing = Tracing} = Heard) ->
    Heard#heard{states = States#{Node => up}, downs = maps:remove(Node, Downs), tracing = maps:remove(Node, Tracing)}.

%% @doc A node is lost.
-spec down(node(), Ms :: integer(), heard()) -> heard().
down(Node, Now, #heard{states = States, downs = Downs, tracing = Tracing, loads = Loads} = Heard) ->
    Heard#heard{states = States#{Node => down}, downs = Downs#{Node => Now}, tracing = maps:remove(Node, Tracing), loads = maps:remove(Node, Loads)}.

%% @doc Looks at these fail, and why.
-spec failed([node()], timeout | refused | other_version | unreached, heard()) -> heard().
failed(Nodes, Why, #heard{states = States} = Heard) -> Heard#heard{states = maps:merge(States, maps:from_keys(Nodes, Why))}.

%% @doc What a look at a node has said; `Groups' are those of the cluster, as they are observed.
-spec looked(node(), Turn :: non_neg_integer(), atoll_flow_probe:look(), groups(), Ms :: integer(), heard()) -> heard().
looked(Node, Turn, #{groups := Its, peers := Peers, tracing := Tracing, load := Load} = Look, Groups, Now, #heard{} = Heard0) ->
    Heard1 = forgotten(Now, named(Peers ++ case Its of none -> []; _ -> lists:append([Nodes || {_, Nodes} <- Its]) end, Now, Heard0)),
    #heard{sums = Sums, said = Said, were = Were, turns = Turns} = Heard = found(Peers, loaded(Node, Load, traced(Node, Tracing, Heard1))),
    Heard#heard{
        sums = atoll_flow_sums:looked(Node, Look, fun(Peer) -> groups_of(Peer, Groups, Were) end, Sums),
        were = case Its of [_ | _] -> Were#{Node => [Group || {Group, _} <- Its]}; _ -> Were end,
        said = Said#{Node => Its},
        turns = Turns#{Node => Turn}
    }.

traced(Node, #{} = Is, #heard{states = States, tracing = Tracing, shares = Shares} = Heard) ->
    Heard#heard{states = States#{Node => up}, tracing = Tracing#{Node => Is}, shares = Shares#{Node => atoll_flow_share:looked(Is, maps:get(Node, Shares, none))}};
traced(Node, Is, #heard{states = States, tracing = Tracing} = Heard) ->
    Heard#heard{states = States#{Node => case Is of busy -> busy; off -> up end}, tracing = maps:remove(Node, Tracing)}.

%% What has moved since the last frame is in the next one.
loaded(Node, none, #heard{loads = Loads} = Heard) ->
    Heard#heard{loads = maps:remove(Node, Loads)};
loaded(Node, #{migrations := Now} = Load, #heard{loads = Loads, migrated = Migrated} = Heard) ->
    Before = case Loads of #{Node := #{migrations := Is}} -> maps:from_list([{{F, T}, N} || {F, T, N} <- Is]); #{} -> #{} end,
    Gain = maps:from_list([{{From, To}, case maps:get({From, To}, Before, 0) of Had when Had =< N -> N - Had; _ -> N end} || {From, To, N} <- Now]),
    Heard#heard{loads = Loads#{Node => Load}, migrated = Migrated#{Node => maps:merge_with(fun(_, A, B) -> A + B end, Gain, maps:get(Node, Migrated, #{}))}}.

named(Nodes, Now, #heard{downs = Downs} = Heard) ->
    Heard#heard{downs = maps:merge(Downs, maps:map(fun(_, _) -> Now end, maps:with(Nodes, Downs)))}.

%% What was counted of it stays. Who hangs may still have it in a group.
forgotten(Now, #heard{known = Known, states = States, downs = Downs, said = Said, were = Were, turns = Turns} = Heard) ->
    case [Node || {Node, Since} <- maps:to_list(Downs), Now - Since > ?FORGET_MS] of
        [] ->
            Heard;
        Gone ->
            Left = fun(_, none) -> none; (_, Groups) -> [{Group, lists:subtract(Nodes, Gone)} || {Group, Nodes} <- Groups] end,
            Heard#heard{
                known = lists:subtract(Known, Gone), states = maps:without(Gone, States), downs = maps:without(Gone, Downs),
                said = maps:map(Left, maps:without(Gone, Said)), were = maps:without(Gone, Were), turns = maps:without(Gone, Turns)
            }
    end.

%% Whoever came first is observed.
found(Peers, #heard{known = Known, beyond = Beyond} = Heard) ->
    New = lists:subtract(lists:usort(Peers), Known),
    {In, Out} = lists:split(min(length(New), max(0, ?MOST_NODES - length(Known))), New),
    Heard#heard{known = lists:umerge(Known, In), beyond = max(Beyond, length(Out))}.

groups_of(Node, Groups, Were) ->
    case [Group || {Group, Nodes} <- Groups, lists:member(Node, Nodes)] of
        [] -> maps:get(Node, Were, []);
        Its -> Its
    end.

%% @doc The groups of the cluster and the nodes in none, as all of this says together.
-spec picture(heard()) -> {groups(), Free :: [node()]}.
picture(#heard{known = Known, states = States, said = Said}) -> atoll_flow_picture:of_looks(Known, [Node || {Node, down} <- maps:to_list(States)], Said).

%% @doc Whether nothing is new from which that follows.
-spec is_same_picture(heard(), heard()) -> boolean().
is_same_picture(#heard{known = Known, states = States, said = Said}, #heard{known = Known, states = States, said = Said}) -> true;
is_same_picture(_, _) -> false.

%% @doc Whether any node was looked at.
-spec is_anybody(heard()) -> boolean().
is_anybody(#heard{turns = Turns}) -> map_size(Turns) > 0.

%% @doc The turn after which all of these were looked at that are there; -1 if one was not yet, and an atom, which is above all turns, if none is there.
-spec looked_after([node()], heard()) -> integer() | infinity.
looked_after(Nodes, #heard{states = States, turns = Turns}) ->
    lists:min([infinity | [maps:get(Node, Turns, -1) || Node <- Nodes, maps:get(Node, States, up) =:= up]]).

%% @doc What was counted.
-spec sums(heard()) -> atoll_flow_sums:sums().
sums(#heard{sums = Sums}) -> Sums.

%% @doc What has come since the last frame, of these nodes and groups.
-spec frame(#{at := integer(), nodes := [node()], groups := groups()}, Trace :: boolean(), heard()) -> {atoll_flow_frame:frame(), heard()}.
frame(#{nodes := Nodes} = Of, Trace, #heard{sums = Sums, states = States, loads = Loads, migrated = Migrated} = Heard) ->
    {Fresh, Told} = atoll_flow_sums:fresh(Sums),
    Frame = Of#{
        down => [Node || Node <- Nodes, maps:get(Node, States, unknown) =:= down],
        counts => case Trace of true -> messages; false -> packets end,
        edges => edges(Trace, Fresh),
        shares => [{Node, Part} || {Node, Share} <- traced_now(Heard), Part <- [atoll_flow_share:fresh(Share)], Part < 1],
        loads => [
            {Node, Load#{migrations := [{From, To, N} || {{From, To}, N} <- lists:sort(maps:to_list(maps:get(Node, Migrated, #{}))), N > 0]}}
         || {Node, Load} <- lists:sort(maps:to_list(Loads))
        ]
    },
    {Frame, Heard#heard{sums = Told, migrated = #{}}}.

edges(Trace, Fresh) ->
    Edges = lists:foldl(fun({{From, To, _, Kind, _}, {Count, Bytes}}, Acc) when (Kind =/= wire) =:= Trace ->
            maps:update_with({From, To}, fun({C, B}) -> {C + Count, B + Bytes} end, {Count, Bytes}, Acc);
        (_, Acc) -> Acc
    end, #{}, Fresh),
    [{From, To, Count, Bytes} || {{From, To}, {Count, Bytes}} <- lists:sort(maps:to_list(Edges)), Count > 0 orelse Bytes > 0].

%% @doc What has come until now is in none of the frames that follow.
-spec unframed(heard()) -> heard().
unframed(#heard{sums = Sums} = Heard) ->
    {_, Told} = atoll_flow_sums:fresh(Sums),
    Heard#heard{sums = Told, migrated = #{}}.

traced_now(#heard{tracing = Tracing, shares = Shares}) -> lists:sort(maps:to_list(maps:with(maps:keys(Tracing), Shares))).

%% @doc How it goes with these nodes, as far as they have said.
-spec status([node()], heard()) -> #{
    nodes := [{node(), state()}], shares := [{node(), float(), Estimated :: non_neg_integer()}], sampled := [node()],
    seen := non_neg_integer(), longest := non_neg_integer(), beyond := non_neg_integer()
}.
status(Nodes, #heard{states = States, tracing = Tracing, shares = Shares, beyond = Beyond} = Heard) ->
    #{
        nodes => [{Node, maps:get(Node, States, unknown)} || Node <- Nodes],
        shares => [{Node, atoll_flow_share:all(Share), atoll_flow_share:estimated(Share)} || {Node, Share} <- lists:sort(maps:to_list(Shares))],
        sampled => [Node || {Node, Share} <- traced_now(Heard), atoll_flow_share:is_sampled(Share)],
        seen => lists:sum([Seen || #{seen := Seen} <- maps:values(Tracing)]),
        longest => lists:max([0 | [Longest || #{longest := Longest} <- maps:values(Tracing)]]),
        beyond => Beyond
    }.
