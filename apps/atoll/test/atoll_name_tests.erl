%% SPDX-License-Identifier: Apache-2.0
%% Reading names, without the process that keeps them.
-module(atoll_name_tests).

-include_lib("eunit/include/eunit.hrl").

%% These mean something in a pattern of a table.
names_are_those_of_one_group_whatever_it_is_called_test() ->
    Groups = ['_', '$1', '$2', g],
    {_, Ref} = spawn_monitor(fun() ->
        ok = atoll_name:create_table(),
        true = ets:insert(atoll_name, [{{Group, {in, Group}}, self(), undefined, other} || Group <- Groups]),
        exit({names, [{Group, atoll_name:names(Group)} || Group <- [none | Groups]]})
    end),
    receive
        {'DOWN', Ref, process, _, Names} ->
            ?assertEqual({names, [{none, []} | [{Group, [{in, Group}]} || Group <- Groups]]}, Names)
    end.
