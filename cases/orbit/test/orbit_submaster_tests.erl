%% SPDX-License-Identifier: Apache-2.0
%% What a submaster answers whoever has it prepare an epoch.
-module(orbit_submaster_tests).

-include_lib("eunit/include/eunit.hrl").

%% The submaster above may have been killed after it was told, and the one in its place asks again.
an_epoch_that_is_prepared_is_ready_for_whoever_asks_again_test_() ->
    {timeout, 60, {spawn, fun() ->
        {ok, App} = orbit_app:start(normal, []),
        true = unlink(App),
        {ok, Plan} = orbit_plan:new(mesh, [node()], 1, #{workers => 2, separate_submasters => false, prefix => x}),
        Prepare = fun(Epoch) -> orbit_host:prepare_here(run(Plan), Epoch, Plan) end,
        try
            {ready, #{workers := Workers}} = Ready = Prepare(1),
            ?assertEqual(2, map_size(Workers)),
            ?assertEqual(Ready, Prepare(1)),
            ?assertEqual(Ready, Prepare(2)),
            ?assertEqual(old, Prepare(1))
        after
            Ref = monitor(process, App),
            true = exit(App, shutdown),
            receive {'DOWN', Ref, process, App, _} -> ok end
        end
    end}}.

run(Plan) ->
    #{id => "test", plan => Plan, caller => self(), master => alias(), generators => g12, space => 100}.
