%% SPDX-License-Identifier: Apache-2.0
%% @doc What the nodes of the benchmark {@link atoll_bench_place} do.
-module(atoll_bench_place_load).

-export([told/2, line/0, run/4, work/1, herd/4]).

-export_type([rule/0]).

-type rule() :: random | round_robin | attributes | attributes_aged | first | claims.

%% A herd is to be answered in full, however busy the machine is.
-define(HERD_MS, 20000).
-define(ALL_MS, 600000).
-define(AGE_MS, 60000).
-define(ASK_MS, 20000).
-define(AGAIN_MS, 100).

%% @doc What nodes say of one of their attributes. A node that was only just bounded can take longer
%% than its functions may, which makes it `undefined': for some seconds such ones are asked again.
-spec told([node()], atom()) -> [{node(), term()}].
told(Nodes, Name) ->
    told(Nodes, Name, now_ms() + ?ASK_MS).

told(Nodes, Name, Until) ->
    {ok, #{values := Values}} = atoll_attr:request_attrs(Nodes, Name, #{deadline => max(1, Until - now_ms())}),
    Told = [{Node, maps:get(Name, maps:get(Node, Values, #{}), silent)} || Node <- Nodes],
    case lists:keymember(undefined, 2, Told) andalso now_ms() + ?AGAIN_MS < Until of
        true ->
            receive
            after ?AGAIN_MS -> told(Nodes, Name, Until)
            end;
        false ->
            Told
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% @doc How many stand in line at this node.
-spec line() -> non_neg_integer().
line() ->
    #{claims := Count} = atoll_attr:info(),
    true = is_integer(Count),
    Count.

%% @doc Places so many items of so many steps, all at once, and returns when the last has ended:
%% how long that took, where they were, and how long the choices took.
-spec run(rule(), [node(), ...], Items :: pos_integer(), Steps :: pos_integer()) ->
    {Us :: pos_integer(), [node(), ...], atoll_histogram:export()}.
run(Rule, Nodes, Items, Steps) ->
    Hist = atoll_histogram:new(),
    Begin = erlang:monotonic_time(),
    Chosen = atoll_bench_node:together(
        Items,
        fun(Number) ->
            Node = place(Rule, Number, Nodes),
            ok = atoll_histogram:record(ns(erlang:monotonic_time() - Begin), Hist),
            {_, Ref} = spawn_monitor(Node, ?MODULE, work, [Steps]),
            receive
                {'DOWN', Ref, process, _, normal} -> Node;
                {'DOWN', Ref, process, _, Reason} -> exit({Node, Reason})
            end
        end,
        ?ALL_MS
    ),
    {max(1, ns(erlang:monotonic_time() - Begin) div 1000), Chosen, atoll_histogram:export(Hist)}.

place(random, _Number, Nodes) ->
    lists:nth(rand:uniform(length(Nodes)), Nodes);
place(round_robin, Number, Nodes) ->
    lists:nth(1 + (Number - 1) rem length(Nodes), Nodes);
place(attributes, _Number, Nodes) ->
    chosen(atoll_attr:choose_node(Nodes, {}, #{rank => {most, cgroup_cpus}}));
place(attributes_aged, _Number, Nodes) ->
    chosen(atoll_attr:choose_node(Nodes, {}, #{rank => {most, cgroup_cpus}, max_age => ?AGE_MS})).

chosen({ok, Node, _}) -> Node;
chosen(Other) -> exit({nothing_chosen, Other}).

%% @doc Work that takes processor time alone, and always the same.
-spec work(Steps :: non_neg_integer()) -> ok.
work(Steps) ->
    _ = steps(Steps, 1),
    ok.

%% Small numbers throughout.
steps(0, X) -> X;
steps(Left, X) -> steps(Left - 1, (X * 69069 + 12345) band 16#FFFFFF).

%% @doc So many callers on this node choose one of the nodes, all at the same moment, in
%% milliseconds of the machine's clock; where they would go, and how long that took.
-spec herd(rule(), [node(), ...], pos_integer(), AtMs :: integer()) -> {[node()], atoll_histogram:export()}.
herd(Rule, Nodes, Count, At) ->
    Hist = atoll_histogram:new(),
    Chosen = atoll_bench_node:together(
        Count,
        fun(_Number) ->
            receive
            after max(0, At - erlang:system_time(millisecond)) -> ok
            end,
            Node = member(Rule, Nodes),
            ok = atoll_histogram:record(max(0, erlang:system_time(nanosecond) - At * 1000000), Hist),
            Node
        end,
        ?ALL_MS
    ),
    {Chosen, atoll_histogram:export(Hist)}.

member(first, Nodes) ->
    case atoll_attr:choose_nodes(Nodes, "free", #{deadline => ?HERD_MS}) of
        {ok, #{nodes := [Node | _]}} -> Node;
        Other -> exit({nothing_chosen, Other})
    end;
member(random, Nodes) ->
    chosen(atoll_attr:choose_node(Nodes, "free", #{deadline => ?HERD_MS, claim => false}));
member(claims, Nodes) ->
    chosen(atoll_attr:choose_node(Nodes, "free", #{deadline => ?HERD_MS})).

ns(Native) ->
    erlang:convert_time_unit(Native, native, nanosecond).
