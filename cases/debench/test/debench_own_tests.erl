%% SPDX-License-Identifier: Apache-2.0
%% What DE-Bench takes along to nodes of somebody else.
-module(debench_own_tests).

-include_lib("eunit/include/eunit.hrl").

%% Where there are groups, the application atoll runs there.
-define(OF_GROUPS, [s_group, atoll_name]).

what_is_taken_along_calls_nothing_that_is_not_there_test_() ->
    {timeout, 60, fun() ->
        {ok, Xref} = xref:start([{xref_mode, modules}]),
        try
            ok = xref:set_default(Xref, [{warnings, false}]),
            [{ok, _} = xref:add_module(Xref, code:which(Module)) || Module <- debench_own:modules()],
            {ok, Edges} = xref:q(Xref, "ME"),
            ?assertEqual([], [Edge || {_, To} = Edge <- Edges, not lists:member(To, debench_own:modules() ++ ?OF_GROUPS), not of_otp(To)]),
            ?assert(length(Edges) > 20)
        after
            xref:stop(Xref)
        end
    end}.

of_otp(Module) ->
    code:which(Module) =:= preloaded orelse lists:prefix(code:lib_dir(), code:which(Module)).

%% They take a load away by their names.
the_guest_is_the_last_of_them_test() ->
    ?assertEqual(debench_guest, lists:last(debench_own:modules())).
