%% SPDX-License-Identifier: Apache-2.0
%% @doc A meter on a node: the packets that it has sent since the meter was started, and the most
%% connections that it has had at once, counted at every nodeup and when it is read.
-module(atoll_bench_meter).

-export([start/0, read/0, sum/1]).

-export_type([reading/0]).

-type reading() :: #{packets := non_neg_integer() | unknown, connections := non_neg_integer()}.

-define(ANSWER_MS, 5000).

%% @doc Starts it on this node, in place of one that runs. It ends with the node.
-spec start() -> ok.
start() ->
    {Pid, Ref} = spawn_monitor(fun init/0),
    Pid ! {started, self()},
    receive
        {Pid, started} -> true = demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Pid, Why} -> exit(Why)
    end.

init() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Before ->
            Ref = monitor(process, Before),
            true = exit(Before, kill),
            receive {'DOWN', Ref, process, Before, _} -> ok end
    end,
    true = register(?MODULE, self()),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    loop(atoll_traffic:packets(), atoll_traffic:connections()).

loop(Before, Peak) ->
    receive
        {started, From} ->
            From ! {self(), started},
            loop(Before, Peak);
        {read, From, Ref} ->
            Now = max(Peak, atoll_traffic:connections()),
            From ! {Ref, #{packets => since(Before, atoll_traffic:packets()), connections => Now}},
            loop(Before, Now);
        {nodeup, _, _} -> loop(Before, max(Peak, atoll_traffic:connections()));
        {nodedown, _, _} -> loop(Before, Peak)
    end.

%% A connection that was closed since has taken along what it had carried before, too.
since(Before, Now) when is_integer(Before), is_integer(Now) -> max(0, Now - Before);
since(_, _) -> unknown.

%% @doc What this node's meter shows; of nothing where none runs.
-spec read() -> reading().
read() ->
    Ref = make_ref(),
    try
        ?MODULE ! {read, self(), Ref},
        receive {Ref, Reading} -> Reading after ?ANSWER_MS -> error(badarg) end
    catch
        error:badarg -> #{packets => unknown, connections => 0}
    end.

%% @doc Of all nodes that were read.
-spec sum(#{node() => reading()}) ->
    #{packets_sent := non_neg_integer() | unknown, connections := #{node() => non_neg_integer()},
      connections_max := non_neg_integer(), connections_mean := float()}.
sum(Readings) ->
    Packets = [P || #{packets := P} <- maps:values(Readings)],
    Connections = maps:map(fun(_, #{connections := Count}) -> Count end, Readings),
    Counts = maps:values(Connections),
    #{
        packets_sent => case lists:all(fun is_integer/1, Packets) of true -> lists:sum(Packets); false -> unknown end,
        connections => Connections,
        connections_max => lists:max([0 | Counts]),
        connections_mean => lists:sum(Counts) / max(1, length(Counts))
    }.
