%% SPDX-License-Identifier: Apache-2.0
%% @doc Where the schedulers of a VM are: on which chip, core and hyperthread, by the topology that the VM says, and how far two of
%% them are from each other. Pure. Where it says none, each scheduler is on a core of its own, of one chip. A scheduler that is not
%% bound may run elsewhere at times.
-module(atoll_flow_chips).

-export([places/2, distance/2]).

-export_type([place/0]).

-type place() :: {Chip :: non_neg_integer(), Core :: non_neg_integer(), Thread :: non_neg_integer()}.

%% @doc The places of so many schedulers, in their order: they are dealt to the places of the topology, again from the first where there are more.
%% `erlang:system_info(cpu_topology)' says it.
-spec places(non_neg_integer(), term()) -> [place()].
places(Count, Topology) ->
    case is_list(Topology) andalso lists:append([chip(Node) || Node <- Topology]) of
        [_ | _] = Cores ->
            Places = numbered(Cores),
            [lists:nth((N rem length(Places)) + 1, Places) || N <- lists:seq(0, Count - 1)];
        _ ->
            [{0, N, 0} || N <- lists:seq(0, Count - 1)]
    end.

%% Chips with their cores; a core has so many threads.
chip({node, Chips}) -> lists:append([chip(Chip) || Chip <- Chips]);
chip({node, _, Chips}) -> chip({node, Chips});
chip({processor, {logical, _}}) -> [[1]];
chip({processor, Cores}) -> [[core(Core) || Core <- Cores]];
chip({processor, _, Cores}) -> chip({processor, Cores});
chip(_) -> [].

core({core, {logical, _}}) -> 1;
core({core, _, Threads}) -> core({core, Threads});
core({core, Threads}) when is_list(Threads) -> length(Threads);
core(_) -> 1.

%% The numbers of cores go on from chip to chip.
numbered(Chips) ->
    {Places, _} = lists:mapfoldl(fun({Chip, Cores}, First) ->
        {[{Chip, First + N, Thread} || {N, Threads} <- counted(Cores), Thread <- lists:seq(0, Threads - 1)], First + length(Cores)}
    end, 0, counted(Chips)),
    lists:append(Places).

counted(List) -> lists:zip(lists:seq(0, length(List) - 1), List).

%% @doc What a migration between two of them crosses.
-spec distance(place(), place()) -> thread | core | chip.
distance({Chip, Core, _}, {Chip, Core, _}) -> thread;
distance({Chip, _, _}, {Chip, _, _}) -> core;
distance(_, _) -> chip.
