%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll ring up': holds a ring until it is told to stop, or its terminal is gone.
-module(atoll_cases_ring_up).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "start a ring and hold it until Ctrl-C".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_ring:options() ++ [
        #{name => cluster, short => $c, value => "NAME", default => "ring", read => atoll_cli_read:name(), help => "the cluster's name, with which the nodes' names begin"}
        | atoll_deploy_cluster:options()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll ring up", "atoll ring up -n 5 --spare 1 -c reef", "atoll ring up --store dets --carrier lanes"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{store := dets, family := _}, []) ->
    {usage, "--store dets has a folder of this machine, and --family starts the nodes on others"};
run(Values, []) ->
    case atoll_cases_ring:check(Values) of
        ok -> started(Values, filename:join(filename:basedir(user_cache, "atoll"), "ring-" ++ os:getpid()));
        Wrong -> Wrong
    end.

started(#{cluster := Name, nodes := Count, store := Store} = Values, Dir) ->
    #{settings := Settings} = Shape = atoll_cases_ring:shape(Values),
    Options = (ring_cluster:options(Shape#{settings := Settings#{dir => Dir}}))#{name => Name, probe => {ring, status, []}, progress => atoll_cli_progress:bar("Starting nodes")},
    Ended = atoll_cluster:with_cluster(Options, fun(Cluster) ->
        ok = atoll_cli_progress:done(),
        Nodes = lists:sublist(atoll_cluster:nodes(Cluster), Count),
        case atoll_bench_ring:whole(Cluster, Nodes) of
            ok ->
                #{nodes := Infos} = atoll_cluster:status(Cluster),
                ok = atoll_cli_io:print([
                    atoll_cli_table:format(atoll_cases_ring:columns(), [atoll_cases_ring:row(Node, Status) || #{node := Node, probe := Status} <- Infos]),
                    "\nput:      atoll ring put KEY VALUE -c ", Name, "\nstop:     Ctrl-C here, or: atoll down -c ", Name, $\n
                ]),
                atoll_up_cli:hold(Cluster);
            late -> {unable, "The nodes do not come to see each other."}
        end
    end),
    _ = [file:del_dir_r(Dir) || Store =:= dets],
    case Ended of
        {error, Sentence} -> {unable, Sentence};
        Outcome -> Outcome
    end.
