%% SPDX-License-Identifier: Apache-2.0
%% @doc Carries out what {@link atoll_deploy_roll} says: has the nodes of a family run another release. What each had is written down
%% until the roll is over, so that one whose master was killed is undone by the next run.
-module(atoll_deploy_rolling).

-export([batches/3, roll/4]).

%% @doc The nodes that would be given another release, so many at a time; one that has it and is well is not among them.
-spec batches(atoll_deploy_store:store(), Family :: string(), {Release :: string(), Batch :: pos_integer()}) -> {ok, [[atoll_deploy_plan:row(), ...]]} | {error, unicode:chardata()}.
batches(Store, Name, {Release, Batch}) ->
    All = atoll_deploy_store:all(Store),
    case {atoll_deploy_store:thing(Store, release, Release), atoll_deploy_family:known(Store, All, Name)} of
        {{error, _} = Error, _} -> Error;
        {_, {error, _} = Error} -> Error;
        {_, {ok, {kubernetes, #{family := #{release := Release}}}}} -> {ok, []};
        %% Kubernetes itself says how many at a time.
        {_, {ok, {kubernetes, #{count := Count}}}} -> {ok, [[atoll_deploy_kubectl:pod(Name, N, Release)] || N <- lists:seq(Count - 1, 0, -1)]};
        {_, {ok, Family}} ->
            case atoll_deploy_family:prepared(Family, All, kept) of
                {ok, #{rows := Rows}} -> {ok, atoll_deploy_plan:batches(Rows, {Release, Batch})};
                {error, _} = Error -> Error
            end
    end.

%% @doc Has the nodes of a family run another release, so many at a time; each is to be well before the next ones follow. At the
%% first that is not, all have the release back that they had.
-spec roll(atoll_deploy_store:store(), Family :: string(), {Release :: string(), Batch :: pos_integer()}, atoll_deploy:tell()) ->
    {ok, atoll_deploy:outcome()} | {back, Why :: unicode:chardata(), atoll_deploy:outcome()} | {error, unicode:chardata()}.
roll(Store, Name, {Release, Batch}, Tell) ->
    Begun = erlang:monotonic_time(millisecond),
    All = atoll_deploy_store:all(Store),
    case {atoll_deploy_store:thing(Store, release, Release), atoll_deploy_family:known(Store, All, Name)} of
        {{error, _} = Error, _} -> Error;
        {_, {error, _} = Error} -> Error;
        {_, {ok, {kubernetes, #{family := Thing} = Context}}} ->
            Rolled = Thing#{release := Release},
            case atoll_deploy_kubectl:taken(Context#{family := Rolled}, [{{family, Name}, {value, Rolled}}]) of
                {ok, #{failed := [{Node, Why} | _]}} ->
                    case atoll_deploy_kubectl:taken(Context, [{{family, Name}, {value, Thing}}]) of
                        {ok, Back} -> {back, [Node, ": ", Why], Back};
                        {error, _} = Error -> Error
                    end;
                Ran -> Ran
            end;
        {{ok, Thing}, _} when not is_map_key(sum, Thing) ->
            {error, ["The release ", Release, " has no path, and is for Kubernetes alone."]};
        {_, {ok, Family}} ->
            case atoll_deploy_family:prepared(Family, All, kept) of
                {ok, #{rows := Rows, unreached := Unreached, context := Context}} when map_size(Unreached) =:= 0 ->
                    Batches = atoll_deploy_plan:batches([maps:remove(rolled, Row) || Row <- Rows], {Release, Batch}),
                    Before = maps:from_list([{Node, maps:get(rolled, Row, Is)} || #{node := Node, release := Is} = Row <- Rows]),
                    rolled(atoll_deploy_roll:next(atoll_deploy_roll:new(Release, Batches)), #{
                        store => Store, family => Name, context => Context, release => Release, has => Before, tell => Tell, begun => Begun,
                        total => lists:sum([length(B) || B <- Batches]), results => [], phases => #{}
                    });
                {ok, #{unreached := Unreached}} ->
                    [{{_, Host}, Why} | _] = maps:to_list(Unreached),
                    {error, atoll_deploy_register:sentence(["nothing is rolled while a host cannot be reached: ", Host, ": ", Why])};
                {error, _} = Error ->
                    Error
            end
    end.

rolled({{replace, Rows}, Roll}, #{context := Context, has := Has, tell := Tell, total := Total, results := Results, phases := Phases} = State) ->
    Done = length(Results),
    {Now, After} = atoll_deploy_jobs:do([{{replace, maps:get(Node, Has)}, Row} || #{node := Node} = Row <- Rows], Context, fun(N, _) -> Tell(min(Total, Done + N), Total) end, Phases),
    Have = maps:from_list([{Node, Is} || #{node := Node, release := Is} <- Rows]),
    rolled(atoll_deploy_roll:next(atoll_deploy_roll:went(Now, Roll)), State#{results := Results ++ Now, phases := After, has := maps:merge(Has, Have)});
rolled({done, _}, #{store := Store, family := Name, release := Release, results := Results, phases := Phases, begun := Begun}) ->
    {ok, Thing} = atoll_deploy_store:thing(Store, family, Name),
    Over = [{{row, Node}, {value, maps:remove(before, Row)}} || #{node := Node, before := _} = Row <- atoll_deploy_jobs:rows(Store, Name)],
    ok = atoll_deploy_store:write(Store, [{{family, Name}, {value, Thing#{release := Release}}} | Over]),
    {ok, atoll_deploy_jobs:outcome(Store, Name, Results, Phases, Begun)};
rolled({{went_back, Why, Failures}, _}, #{store := Store, family := Name, phases := Phases, begun := Begun}) ->
    {back, Why, atoll_deploy_jobs:outcome(Store, Name, [{Node, {error, Reason}} || {Node, Reason} <- Failures], Phases, Begun)}.
