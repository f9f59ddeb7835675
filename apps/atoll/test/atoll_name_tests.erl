%% SPDX-License-Identifier: Apache-2.0
%% Reading names, without the process that keeps them.
-module(atoll_name_tests).

-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

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

%% What starts a server under a name is told no reason.
why_a_server_gets_no_name_is_in_the_log_test() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    {ok, #{level := Level}} = logger:get_handler_config(default),
    ok = logger:set_handler_config(default, level, none),
    try
        ?assertEqual({error, {already_started, undefined}}, gen_event:start({via, atoll_name, {fsh, tally}})),
        receive
            {logged, Report} ->
                ?assertEqual(#{what => name_not_given, group => fsh, name => tally, reason => s_group_not_runnig}, Report)
        after 5000 -> error(nothing_logged)
        end
    after
        ok = logger:set_handler_config(default, level, Level),
        ok = logger:remove_handler(?MODULE)
    end.

log(#{level := warning, msg := {report, #{what := name_not_given} = Report}}, #{config := Test}) -> Test ! {logged, Report};
log(_, _) -> ok.
