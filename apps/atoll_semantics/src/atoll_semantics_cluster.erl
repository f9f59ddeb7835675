%% SPDX-License-Identifier: Apache-2.0
%% @doc Real nodes as the other side of the lockstep ({@link atoll_semantics_lockstep}): six normal
%% and two hidden nodes on a stock kernel. Nodes are cut off from each other by cookies.
%%
%% Connections are not removed in the semantics: here unneeded ones linger for longer than
%% anybody watches.
-module(atoll_semantics_cluster).

-export([options/0, new/1, backend/0, heal/1]).

-export_type([world/0]).

-define(CALL_MS, 30000).
-define(PROBE, atoll_semantics_probe).
%% Only ends what hangs.
-define(SETTLE_MS, 40000).

-record(world, {
    cluster :: atoll_cluster:cluster(),
    %% Both ways.
    nodes :: #{atoll_semantics:node_id() => node()},
    ids :: #{node() => atoll_semantics:node_id()},
    pids = #{} :: #{atoll_semantics:p() => pid()},
    %% Who cannot reach each other, and who is not there.
    parts = [] :: [[node()]],
    down = [] :: [atoll_semantics:node_id()],
    dead = #{} :: atoll_semantics_commands:dead()
}).

-opaque world() :: #world{}.

%% @doc The cluster that it takes.
-spec options() -> atoll_cluster:options().
options() ->
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    #{
        nodes => length(Normal ++ Hidden),
        connect_all => false,
        apps => [atoll],
        driver => atoll_semantics_driver,
        args => [
            "-atoll", "linger", "2000000000", "on_demand_linger", "infinity",
            "name_rule", lists:flatten(io_lib:format("~0p", [{fn, ?PROBE, smaller_node}]))
        ]
    }.

%% @doc That cluster, whose nodes have done nothing yet or are as if they had not.
-spec new(atoll_cluster:cluster()) -> world().
new(Cluster) ->
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    Pairs = lists:zip(Normal ++ Hidden, atoll_cluster:nodes(Cluster)),
    #world{
        cluster = Cluster,
        nodes = maps:from_list(Pairs),
        ids = maps:from_list([{Node, Id} || {Id, Node} <- Pairs])
    }.

%% @doc What the lockstep needs.
-spec backend() -> atoll_semantics_lockstep:backend(world()).
backend() ->
    #{
        do => fun run/3,
        now => fun now_/1,
        views => fun views/2,
        settle => fun(Fits, World) -> settle(Fits, erlang:monotonic_time(millisecond) + ?SETTLE_MS, World) end,
        told => fun told/1,
        connects_late => true
    }.

%% @doc All nodes are there and can reach each other; also where what was known of that is lost.
-spec heal(world()) -> ok.
heal(#world{cluster = C, nodes = Nodes} = World) ->
    #{nodes := Infos} = atoll_cluster:info(C),
    [ok = atoll_cluster:restart(C, N) || #{node := N, state := down} <- Infos],
    join(maps:values(Nodes), World).

%% Those that are down may start later, and are to be let in.
join(Up, #world{cluster = C, nodes = Nodes}) ->
    Cookie = call(C, hd(Up), erlang, get_cookie, []),
    _ = [true = call(C, N, erlang, set_cookie, [Other, Cookie]) || N <- Up, Other <- maps:values(Nodes), Other =/= N],
    ok.

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

%% What happens to nodes

run(_Ni, {cut, Parts}, #world{parts = [], nodes = Nodes} = World) ->
    %% As atoll_semantics_sides has it: who is not mentioned is with the last.
    [_ | Rest] = lists:reverse(Parts),
    Sides = [[node_of(N, World) || N <- Side] || [_ | _] = Side <- [maps:keys(Nodes) -- lists:append(Rest) | Rest]],
    Cut = World#world{parts = [Side || [_ | Others] <- [Sides], Others =/= [], Side <- Sides]},
    Up = [node_of(N, World) || N <- up(World)],
    lists:foreach(fun(N) -> cut_off(N, Cut) end, Up),
    _ = [call(World#world.cluster, N, erlang, disconnect_node, [Other]) || N <- Up, Other <- others(N, Cut)],
    {ok, Cut};
run(_Ni, {cut, _}, World) ->
    {ok, World};
run(_Ni, heal, World) ->
    ok = join([node_of(N, World) || N <- up(World)], World),
    {ok, World#world{parts = []}};
run(Ni, kill, #world{cluster = C, down = Down, dead = Dead} = World) ->
    case lists:member(Ni, Down) of
        true ->
            {ok, World};
        false ->
            ok = atoll_cluster:kill(C, node_of(Ni, World)),
            {ok, World#world{down = [Ni | Down], dead = atoll_semantics_commands:dead([{Ni, kill}], Dead)}}
    end;
run(Ni, start, #world{cluster = C, down = Down, dead = Dead, pids = Pids} = World) ->
    case lists:member(Ni, Down) of
        true ->
            ok = atoll_cluster:restart(C, node_of(Ni, World)),
            cut_off(node_of(Ni, World), World),
            %% Processes that somebody named while it was down are there from now on.
            First = atoll_semantics_commands:first_living(Ni, Dead),
            {ok, World#world{down = Down -- [Ni], pids = maps:filter(fun({Of, N}, _) -> Of =/= Ni orelse N < First end, Pids)}};
        false ->
            {ok, World}
    end;
run(Ni, {exit, {Node, N} = P} = Command, #world{dead = Dead} = World) ->
    case is_up(Node, World) of
        true ->
            case N < atoll_semantics_commands:first_living(Node, Dead) of
                true -> {ok, World};
                false -> do(Ni, Command, World)
            end;
        false ->
            {ok, World#world{dead = atoll_semantics_commands:dead([{Node, {exit, P}}], Dead)}}
    end;
run(Ni, Command, World) ->
    case is_up(Ni, World) of
        true -> do(Ni, Command, World);
        false -> {down, World}
    end.

up(#world{nodes = Nodes, down = Down}) -> lists:sort(maps:keys(Nodes)) -- Down.
is_up(Ni, World) -> lists:member(Ni, up(World)).

%% Those on other sides.
others(_Node, #world{parts = []}) -> [];
others(Node, #world{parts = Parts}) -> lists:append([Part || Part <- Parts, not lists:member(Node, Part)]).

%% Each has a cookie for the others that these do not have for it.
cut_off(Node, #world{cluster = C} = World) ->
    Cookie = list_to_atom("cut_" ++ atom_to_list(Node)),
    lists:foreach(fun(Other) -> true = call(C, Node, erlang, set_cookie, [Other, Cookie]) end, others(Node, World)).

settle(Fits, Deadline, World) ->
    Seen = now_(World),
    case Fits(Seen) orelse erlang:monotonic_time(millisecond) > Deadline of
        true ->
            {Seen, World};
        false ->
            %% The rooms themselves are the clock, as in atoll_semantics_probe.
            lists:foreach(
                fun({N, M}) -> call(World#world.cluster, node_of(N, World), M, info, []) end,
                [{N, M} || N <- up(World), M <- [atoll_name, s_group]]
            ),
            settle(Fits, Deadline, World)
    end.

told(#world{cluster = C, pids = Pids} = World) ->
    lists:sort([
        P
     || {{Ni, _} = P, Pid} <- maps:to_list(Pids),
        is_up(Ni, World),
        _ <- lists:seq(1, call(C, node_of(Ni, World), ?PROBE, conflicts, [Pid]))
    ]).

%% A command, as a program would call it.

do(_Ni, {exit, P}, World0) ->
    {Pid, #world{cluster = C} = World} = pid(P, World0),
    {call(C, node(Pid), ?PROBE, kill, [Pid]), World};
do(Ni, {Register, S, Name, P}, World0) when Register =:= register_name; Register =:= re_register_name ->
    {Pid, World} = pid(P, World0),
    {ask(Ni, Register, [S, Name, Pid], World), World};
do(Ni, {Function, S, Nis}, World) when Function =:= new_s_group; Function =:= add_nodes; Function =:= remove_nodes ->
    {ask(Ni, Function, [S, [node_of(N, World) || N <- Nis]], World), World};
do(Ni, info, World) ->
    Info = ask(Ni, info, [], World),
    {[{Key, Value} || {Key, Value} <- Info, not lists:member(Key, [monitoring, attributes, forgotten])], World};
do(Ni, {registered_names, S}, World) ->
    {ask(Ni, registered_names, [{s_group, S}], World), World};
do(Ni, {registered_names_at, Node}, World) ->
    {ask(Ni, registered_names, [{node, node_of(Node, World)}], World), World};
do(Ni, {whereis_name, Node, S, Name}, World) ->
    {ask(Ni, whereis_name, [node_of(Node, World), S, Name], World), World};
do(Ni, {send, Node, S, Name, Message}, World) ->
    {sent(ask(Ni, send, [node_of(Node, World), S, Name, Message], World), World), World};
do(Ni, {send, S, Name, Message}, World) ->
    {sent(ask(Ni, send, [S, Name, Message], World), World), World};
do(Ni, Command, World) when is_tuple(Command) ->
    [Function | Args] = tuple_to_list(Command),
    {ask(Ni, Function, Args, World), World};
do(Ni, Function, World) ->
    {ask(Ni, Function, [], World), World}.

ask(Ni, Function, Args, #world{cluster = C} = World) ->
    translate(call(C, node_of(Ni, World), s_group, Function, Args), World).

%% Who is said to have been sent the message has it.
sent({badarg, _} = Nobody, _World) ->
    Nobody;
sent(P, #world{cluster = C, pids = Pids}) ->
    #{P := Pid} = Pids,
    case call(C, node(Pid), ?PROBE, await_hello, [Pid]) of
        ok -> P;
        No -> {P, No}
    end.

pid({Node, N} = P, #world{cluster = C, pids = Pids, dead = Dead} = World) ->
    IsThere = is_up(Node, World) andalso N >= atoll_semantics_commands:first_living(Node, Dead),
    case Pids of
        #{P := Pid} ->
            {Pid, World};
        #{} when not IsThere ->
            %% Nobody asked for it while its node was there.
            Pid = absent_pid(node_of(Node, World), N),
            {Pid, World#world{pids = Pids#{P => Pid}}};
        #{} ->
            Pid = call(C, node_of(Node, World), ?PROBE, process, []),
            {Pid, World#world{pids = Pids#{P => Pid}}}
    end.

%% A process that never was: a pid for which node/1 is that node, in the external term format
%% (NEW_PID_EXT of a SMALL_ATOM_UTF8_EXT).
absent_pid(Node, Number) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, Number:32, 0:32, 1:32>>).

node_of(Ni, #world{nodes = Nodes}) -> maps:get(Ni, Nodes).

%% Each node waits only for what is not so yet.
views(Expected, #world{pids = Pids} = World) ->
    {of_all(fun(Ni) -> {await_view, [real(maps:get(Ni, Expected), Pids, World)]} end, World), World}.

now_(World) ->
    of_all(fun(_Ni) -> {view, []} end, World).

%% Asks all nodes at the same time.
of_all(Question, #world{cluster = C, nodes = Nodes} = World) ->
    Self = self(),
    Askers = [
        begin
            {Function, Args} = Question(Ni),
            {Ni, spawn_monitor(fun() -> Self ! {self(), call(C, Node, ?PROBE, Function, Args)} end)}
        end
     || {Ni, Node} <- maps:to_list(maps:with(up(World), Nodes))
    ],
    maps:from_list([
        receive
            {Asker, View} ->
                true = demonitor(Ref, [flush]),
                {Ni, ideal(View, World)};
            {'DOWN', Ref, process, Asker, {Reason, _Stack}} ->
                error(Reason)
        end
     || {Ni, {Asker, Ref}} <- Askers
    ]).

real(#{groups := Groups, names := Names, free := Free, connections := Connections} = View, Pids, World) ->
    View#{
        free := lists:sort([node_of(N, World) || N <- Free]),
        groups := [{S, [node_of(N, World) || N <- Nis]} || {S, Nis} <- Groups],
        names := lists:sort([{S, Name, maps:get(P, Pids)} || {S, Name, P} <- Names]),
        connections := lists:sort([node_of(N, World) || N <- Connections])
    }.

ideal(#{groups := Groups, names := Names, free := Free, connections := Connections} = View, World) ->
    View#{
        free := lists:sort(translate(Free, World)),
        groups := [{S, lists:sort(translate(Nodes, World))} || {S, Nodes} <- Groups],
        names := lists:sort(translate(Names, World)),
        connections := lists:sort(translate(Connections, World))
    }.

%% Nodes and processes in a term, by their names in the semantics.
translate(Node, #world{ids = Ids}) when is_map_key(Node, Ids) ->
    maps:get(Node, Ids);
translate(Pid, #world{pids = Pids}) when is_pid(Pid) ->
    case [P || {P, Known} <- maps:to_list(Pids), Known =:= Pid] of
        [P] -> P;
        [] -> Pid
    end;
translate([Head | Tail], World) ->
    [translate(Head, World) | translate(Tail, World)];
translate(Tuple, World) when is_tuple(Tuple) ->
    list_to_tuple(translate(tuple_to_list(Tuple), World));
translate(Term, _World) ->
    Term.
