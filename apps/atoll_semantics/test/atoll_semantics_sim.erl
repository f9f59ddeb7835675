%% SPDX-License-Identifier: Apache-2.0
%% The commands of s_group in virtual time: atoll_semantics_sim_node on the nodes of a simulated
%% world. What s_group itself adds to the protocols is played here in a few lines; reads
%% that are only its own are left to real nodes.
-module(atoll_semantics_sim).

-export([new/1, backend/0]).

-define(W, atoll_sim_world).
%% How far the time goes on while an answer is owed, and how long it may be; and how long
%% nodes have to settle, which is much longer than they need.
-define(STEP_MS, 1).
-define(ANSWER_MS, 60000).
-define(SETTLE_MS, 1000).
%% After something happened to nodes: an attempt at a connection takes some seconds to fail.
-define(FAULT_MS, 20000).
%% How often at most.
-define(LOOKS, 6).

-record(sim, {
    world,
    %% Who cannot reach each other.
    parts = [] :: [[node()]],
    dead = #{} :: atoll_semantics_commands:dead()
}).

new(Seed) ->
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    World = ?W:new(#{
        protocol => atoll_semantics_sim_node,
        config => fun(Name, Incarnation, S) ->
            #{self => Name, incarnation => Incarnation, seed => S, is_hidden => lists:member(Name, Hidden)}
        end,
        seed => Seed,
        latency => {uniform, 1, 9},
        watch => {fun see/4, #{}}
    }),
    #sim{world = ?W:run(?SETTLE_MS, lists:foldl(fun ?W:start/2, World, Normal ++ Hidden))}.

see(_Now, _Node, {reply, Id, Answer}, Replies) -> Replies#{Id => Answer};
see(_Now, _Where, _Sight, Replies) -> Replies.

backend() ->
    #{
        do => fun run/3,
        now => fun(#sim{world = World}) -> now_(World) end,
        views => fun views/2,
        settle => fun(Fits, Sim) -> settle(?LOOKS, Fits, Sim) end,
        told => fun told/1
    }.

run(_Ni, {cut, Parts}, #sim{parts = [], world = World0} = Sim) ->
    %% As atoll_semantics_sides has it: who is not mentioned is with the last.
    [_ | Rest] = lists:reverse(Parts),
    All = [N || {N, _} <- ?W:nodes(World0)],
    Sides = [Side || [_ | _] = Side <- [All -- lists:append(Rest) | Rest]],
    World = lists:foldl(
        fun(Side, W0) ->
            lists:foldl(fun(N, W) -> element(2, ask(N, {cut, All -- Side}, W)) end, W0, alive(Side, W0))
        end,
        ?W:set({partition, Sides}, World0),
        Sides
    ),
    {ok, Sim#sim{world = World, parts = [Side || [_ | Others] <- [Sides], Others =/= [], Side <- Sides]}};
run(_Ni, {cut, _}, Sim) ->
    {ok, Sim};
run(_Ni, heal, #sim{world = World} = Sim) ->
    {ok, Sim#sim{world = ?W:set({partition, [[N || {N, _} <- ?W:nodes(World)]]}, World), parts = []}};
run(Ni, kill, #sim{world = World, dead = Dead} = Sim) ->
    case alive([Ni], World) of
        [] -> {ok, Sim};
        [Ni] -> {ok, Sim#sim{world = ?W:kill(Ni, World), dead = atoll_semantics_commands:dead([{Ni, kill}], Dead)}}
    end;
run(Ni, start, #sim{world = World, dead = Dead} = Sim) ->
    UsedUp = atoll_semantics_commands:first_living(Ni, Dead) - 1,
    case alive([Ni], World) of
        [] -> {ok, Sim#sim{world = ?W:start(Ni, fun(Config) -> Config#{used_up => UsedUp} end, World)}};
        [Ni] -> {ok, Sim}
    end;
run(Ni, {exit, {Node, _}} = Exit, Sim) ->
    reached([Node], ok, Ni, Exit, Sim);
run(Ni, {registered_names_at, Node} = Command, Sim) ->
    reached(lists:usort([Ni, Node]), [], Ni, Command, Sim);
run(Ni, {whereis_name, Node, _, _} = Command, Sim) ->
    reached(lists:usort([Ni, Node]), undefined, Ni, Command, Sim);
run(Ni, {send, Node, S, Name, Message} = Command, Sim) ->
    reached(lists:usort([Ni, Node]), {badarg, {S, Name, Message}}, Ni, Command, Sim);
run(Ni, Command, Sim) ->
    reached([Ni], down, Ni, Command, Sim).

%% What s_group itself answers where a node does not, and the protocols are not asked.
reached(Nodes, Answer, Ni, Command, #sim{world = World0, parts = Parts} = Sim) ->
    AreTogether = Parts =:= [] orelse lists:any(fun(Part) -> Nodes -- Part =:= [] end, Parts),
    case {alive(Nodes, World0), alive([Ni], World0)} of
        {Nodes, _} when AreTogether ->
            {Value, World} = do(Ni, Command, World0),
            {Value, Sim#sim{world = World}};
        {_, []} when element(1, Command) =/= exit ->
            {down, Sim};
        {_, _} ->
            {Answer, Sim}
    end.

alive(Nodes, World) -> [N || N <- Nodes, ?W:status(N, World) =:= alive].

settle(Looks, Fits, #sim{world = World0} = Sim) ->
    World = ?W:run(?W:now(World0) + ?FAULT_MS, World0),
    Seen = now_(World),
    case Fits(Seen) of
        false when Looks > 1 -> settle(Looks - 1, Fits, Sim#sim{world = World});
        _ -> {Seen, Sim#sim{world = World}}
    end.

told(#sim{world = World}) ->
    lists:sort([p(Pid) || Ni <- ?W:alive(World), Pid <- maps:get(told, view(Ni, World))]).

do(Ni, {new_s_group, S, Nis}, World) -> ask(Ni, {group, {new, S, Nis}}, World);
do(Ni, {delete_s_group, S}, World) -> ask(Ni, {group, {delete, S, []}}, World);
do(Ni, {add_nodes, S, Nis}, World) -> ask(Ni, {group, {add, S, Nis}}, World);
do(Ni, {remove_nodes, S, Nis}, World) -> ask(Ni, {group, {remove, S, Nis}}, World);
do(Ni, own_s_groups, World) -> {maps:get(groups, view(Ni, World)), World};
do(Ni, info, World0) ->
    {Info, World} = ask(Ni, {group, info}, World0),
    {[{Key, Value} || {Key, Value} <- Info, not lists:member(Key, [monitoring, attributes, forgotten])], World};
do(Ni, {register_name, S, Name, P}, World) -> ask(Ni, {name, {register, S, Name, pid(P), undefined}}, World);
do(Ni, {re_register_name, S, Name, P}, World) -> ask(Ni, {name, {re_register, S, Name, pid(P), undefined}}, World);
do(Ni, {unregister_name, S, Name}, World) -> ask(Ni, {name, {unregister, S, Name}}, World);
do(Ni, {registered_names_at, Node}, World0) ->
    World = connect(Ni, Node, World0),
    {lists:sort([{S, Name} || {S, Name} <- maps:keys(maps:get(table, view(Node, World)))]), World};
do(Ni, {whereis_name, S, Name}, World) -> {whereis(Ni, S, Name, World), World};
do(Ni, {whereis_name, Node, S, Name}, World0) ->
    World = connect(Ni, Node, World0),
    {whereis(Node, S, Name, World), World};
do(Ni, {send, S, Name, Message}, World) -> {sent(whereis(Ni, S, Name, World), S, Name, Message), World};
do(Ni, {send, Node, S, Name, Message}, World0) ->
    World = connect(Ni, Node, World0),
    {sent(whereis(Node, S, Name, World), S, Name, Message), World};
do(_Ni, {exit, {Node, _} = P}, World) -> ask(Node, {exit, pid(P)}, World);
do(_Ni, _Read, World) -> {not_here, World}.

sent(undefined, S, Name, Message) -> {badarg, {S, Name, Message}};
sent(P, _S, _Name, _Message) -> P.

whereis(Ni, S, Name, World) ->
    case view(Ni, World) of
        #{table := #{{S, Name} := Pid}} -> p(Pid);
        #{} -> undefined
    end.

view(Ni, World) -> atoll_semantics_sim_node:view(?W:state(Ni, World)).

pid({Node, N}) -> atoll_semantics_sim_node:pid(Node, N).

p(Pid) ->
    %% Its number, its serial and its node's creation come last.
    Bytes = term_to_binary(Pid),
    <<N:32, 0:32, 1:32>> = binary:part(Bytes, byte_size(Bytes), -12),
    {node(Pid), N}.

connect(Ni, Ni, World) -> World;
connect(Ni, Node, World0) ->
    case lists:member(Node, ?W:links(Ni, World0)) of
        true ->
            World0;
        false ->
            {ok, World} = ask(Ni, {connect, Node}, World0),
            World
    end.

ask(Ni, Request, World0) ->
    {Id, World} = ?W:call(Ni, Request, World0),
    await(Id, ?W:now(World) + ?ANSWER_MS, World).

await(Id, Deadline, World) ->
    case {?W:watched(World), ?W:now(World)} of
        {#{Id := Answer}, _} -> {Answer, World};
        {#{}, Now} when Now < Deadline -> await(Id, Deadline, ?W:run(Now + ?STEP_MS, World));
        {#{}, _} -> {no_answer, World}
    end.

views(_Expected, #sim{world = World0} = Sim) ->
    World = ?W:run(?W:now(World0) + ?SETTLE_MS, World0),
    {now_(World), Sim#sim{world = World}}.

now_(World) ->
    {_, Hidden} = atoll_semantics_commands:nodes(),
    maps:from_list([
        begin
            #{groups := Groups, table := Table, free := Free} = view(Ni, World),
            {Ni, #{
                type => case lists:member(Ni, Hidden) of true -> hidden; false -> normal end,
                groups => Groups,
                names => lists:sort([{S, Name, p(Pid)} || {{S, Name}, Pid} <- maps:to_list(Table)]),
                free => Free,
                connections => ?W:links(Ni, World)
            }}
        end
     || Ni <- ?W:alive(World)
    ]).
