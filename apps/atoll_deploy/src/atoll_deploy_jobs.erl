%% SPDX-License-Identifier: Apache-2.0
%% @doc What is done with the nodes of a family, and what came of it.
-module(atoll_deploy_jobs).

-export([do/4, rows/2, outcome/5]).

%% @doc Does it on the hosts, with the family's cookie and the names of all its nodes.
-spec do([atoll_deploy_work:job()], atoll_deploy_work:context(), atoll_deploy:tell(), atoll_deploy_work:phases()) ->
    {[atoll_deploy_work:result()], atoll_deploy_work:phases()}.
do([], _, _, Phases) ->
    {[], Phases};
do(Jobs, #{store := Store, family := #{name := Name} = Family} = Context, Tell, Phases) ->
    case atoll_deploy_family:cookie(Store, Family) of
        {ok, Cookie} ->
            Contacts = lists:usort([Node || #{node := Node} <- rows(Store, Name)] ++ [Node || {What, #{node := Node}} <- Jobs, What =/= stop]),
            atoll_deploy_work:do(Jobs, Context#{cookie := Cookie, contacts := Contacts, tell := Tell}, Phases);
        {error, Why} ->
            {[{Node, {error, Why}} || {_, #{node := Node}} <- Jobs], Phases}
    end.

%% @doc The nodes of a family.
-spec rows(atoll_deploy_store:store(), Family :: string()) -> [atoll_deploy_plan:row()].
rows(Store, Name) -> [Row || #{family := Of} = Row <- atoll_deploy_store:rows(Store), Of =:= Name].

%% @doc What came of it, by what was said of nodes and what is written down of them; from this millisecond on.
-spec outcome(atoll_deploy_store:store(), Family :: string(), [atoll_deploy_work:result()], atoll_deploy_work:phases(), Begun :: integer()) -> atoll_deploy:outcome().
outcome(Store, Name, Results, Phases, Begun) ->
    Rows = rows(Store, Name),
    Said = maps:from_list([{Node, Why} || {Node, {error, Why}} <- Results]),
    #{
        family => Name,
        up => [Node || #{node := Node, state := up} <- Rows, not is_map_key(Node, Said)],
        failed => lists:sort(maps:to_list(maps:merge(maps:from_list([{Node, maps:get(why, Row, "")} || #{node := Node, state := State} = Row <- Rows, State =/= up]), Said))),
        said => [{Node, Text} || {Node, {said, Text}} <- Results],
        done => length([Node || {Node, Result} <- Results, not is_tuple(Result) orelse element(1, Result) =:= said]),
        phases => Phases,
        ms => erlang:monotonic_time(millisecond) - Begun
    }.
