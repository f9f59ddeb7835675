%% SPDX-License-Identifier: Apache-2.0
%% What the experiments do to a cluster, in the clusters of all strategies.
-module(atoll_sim_experiments_tests).

-include_lib("eunit/include/eunit.hrl").

%% Also where nobody but whoever drives the cluster says with whom.
who_starts_again_gets_neighbours_again_test_() ->
    [
        {lists:concat([Experiment, " ", Strategy]), {timeout, 60, fun() ->
            {#{virtual_ms := End}, Trace} = run(Experiment, Strategy),
            %% The last one has no time for it.
            Again = [Start || {Ms, _} = Start <- starts(Trace), Ms > 60000, Ms < End - 10000],
            ?assert(length(Again) > 3),
            ?assertEqual([], [Start || Start <- Again, not has_neighbours(Start, Trace)])
        end}}
     || Experiment <- [atoll_sim_detect, atoll_sim_broadcast], Strategy <- [hyparview, cliques, static]
    ].

starts(Trace) -> [{Ms, Node} || {Ms, Node, {started, _}} <- Trace].

has_neighbours({Ms, Node}, Trace) ->
    lists:any(
        fun
            ({At, Where, {notice, {neighbour_up, _}}}) -> Where =:= Node andalso At > Ms;
            (_) -> false
        end,
        Trace
    ).

%% One comes back each 20 s after the first minute; two are killed each second.
run(Experiment, Strategy) ->
    Tag = make_ref(),
    Own =
        case Experiment of
            atoll_sim_detect -> #{loss => 0.0, pause => 0, paused => 0.0, minutes => 3};
            atoll_sim_broadcast -> #{messages => 30, senders => 1, churn => 0.1}
        end,
    {ok, Result} = Experiment:run(Own#{
        nodes => 20,
        strategy => Strategy,
        trace => fun(Now, Where, Sight) -> self() ! {Tag, {Now, Where, Sight}} end
    }),
    {Result, flush(Tag)}.

flush(Tag) ->
    receive
        {Tag, {_, _, {What, _, _}}} when What =:= sent; What =:= got; What =:= lost -> flush(Tag);
        {Tag, Seen} -> [Seen | flush(Tag)]
    after 0 -> []
    end.

%% With a roster the survivors know each other.
contacts_are_killed_too_where_nobody_is_spared_test_() ->
    {timeout, 60, fun() ->
        Options = #{nodes => 40, contacts => 10, kill => 0.9, seed => 7},
        {ok, #{killed := 30}} = atoll_sim_overlay:run(Options),
        {ok, #{killed := 36, rejoined_ms := Ms}} = atoll_sim_overlay:run(Options#{spare => nobody}),
        ?assert(Ms =< 60000)
    end}.

several_shares_of_one_cluster_die_as_each_alone_test_() ->
    {timeout, 60, fun() ->
        {ok, New} = atoll_sim_cluster:new(#{nodes => 40, seed => 7}),
        Grown = atoll_sim_cluster:grow(New),
        Shares = [0.5, 0.9],
        ?assertEqual(
            [atoll_sim_overlay:strike(Share, nobody, Grown) || Share <- Shares],
            atoll_sim_overlay:strikes(Shares, nobody, Grown)
        )
    end}.
