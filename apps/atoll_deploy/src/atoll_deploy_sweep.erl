%% SPDX-License-Identifier: Apache-2.0
%% @doc Leaves nothing of a family on hosts that have lost its last node: what a failed start has left, and folders.
%%
%% Promised: a host is written down before a node is stopped there, and until it has said that nothing is left; so one that could not
%% be asked, or whose master was killed, is asked again by the next run or terminate.
-module(atoll_deploy_sweep).

-export([begun/4, done/2]).

-type key() :: {Domain :: string(), Host :: string()}.

%% @doc Writes down, together with other changes, that nodes are stopped on hosts; gives the hosts of the family that are to be swept.
-spec begun(atoll_deploy_store:store(), Family :: string(), Stops :: [atoll_deploy_plan:row()], [atoll_deploy_store:change()]) -> [key()].
begun(Store, Name, Stops, Changes) ->
    Before = proplists:get_value({sweep, Name}, atoll_deploy_store:all(Store), []),
    Keys = lists:usort(Before ++ [{Domain, Host} || #{domain := Domain, host := Host} <- Stops]),
    ok = atoll_deploy_store:write(Store, [{{sweep, Name}, {value, Keys}} || Keys =/= Before] ++ Changes),
    Keys.

%% @doc Sweeps them, but for those that have nodes of the family, and says where it could not be done.
-spec done([key()], atoll_deploy_work:context()) -> [atoll_deploy_work:result()].
done([], _) ->
    [];
done(Keys, #{store := Store, family := #{name := Name}} = Context) ->
    Rows = atoll_deploy_store:rows(Store),
    Used = [{Domain, Host} || #{family := Of, domain := Domain, host := Host} <- Rows, Of =:= Name],
    Results = atoll_deploy_work:sweep([Key || Key <- Keys, not lists:member(Key, Used)], Rows, Context),
    Left = [Key || {_, Host} = Key <- Keys, not lists:member(Key, Used), lists:keymember(Host, 1, Results)],
    ok = atoll_deploy_store:write(Store, [{{sweep, Name}, case Left of [] -> delete; _ -> {value, Left} end}]),
    Results.
