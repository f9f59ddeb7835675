%% SPDX-License-Identifier: Apache-2.0
%% @doc From a release to N running nodes, on this machine, on machines behind ssh, on Kubernetes, on machines of a cloud:
%% providers, releases, domains and families are told, and then how many nodes a family shall have.
%%
%% Promised: a family has exactly so many nodes when run/4 says so, however often it is asked and wherever a master
%% was killed before. A host that cannot be reached, or says no, is named, and the others go on. When terminate/3 names
%% no failure nothing that was started for the family runs on any host, what a failed start has left too. No key, cookie or token
%% is in a list of processes, in a sentence or in a file that others may read.
%%
%% Not promised: that nodes end when this VM does. They are there until they are terminated.
-module(atoll_deploy).

-export([open/1, open/2, close/1, default_dir/0]).
-export([put/4, forget/3, forget/4, apply/4, plan/3, run/4, batches/3, roll/4, terminate/3, status/2, families/1, log/3, manifest/3]).

-export_type([deployment/0, outcome/0, tell/0, told/0]).

-type deployment() :: atoll_deploy_store:store().

-type tell() :: fun((Done :: non_neg_integer(), Total :: non_neg_integer()) -> term()).

-type outcome() :: #{
    family := string(),
    %% The nodes that are up, and those that are not as they should be, with why.
    up := [Node :: string()],
    failed := [{Node :: string(), Why :: unicode:chardata()}],
    %% What there is to say of some for which it was done.
    said := [{Node :: string(), unicode:chardata()}],
    %% How many nodes were started, stopped or replaced.
    done := non_neg_integer(),
    phases := atoll_deploy_work:phases(),
    ms := non_neg_integer()
}.

-type told() :: #{
    family := string(),
    wanted := non_neg_integer(),
    nodes := [#{node := string(), host := string(), release := string(), state := up | down | unknown | atoll_deploy_plan:state(), why := unicode:chardata()}]
}.

-define(WAIT_MS, 5000).

%% @doc Where the state of deployments is kept unless told otherwise.
-spec default_dir() -> file:filename().
default_dir() ->
    case {os:getenv("XDG_DATA_HOME", ""), os:getenv("HOME", "/")} of
        {"", Home} -> Home ++ "/.local/share/atoll/deploy";
        {Dir, _} -> Dir ++ "/atoll/deploy"
    end.

%% @doc Opens the state in a folder. It ends with the calling process.
-spec open(Dir :: file:filename()) -> {ok, deployment()} | {error, unicode:chardata()}.
open(Dir) -> open(Dir, ?WAIT_MS).

%% @doc As open/1, and waits so long for another program that works with it.
-spec open(Dir :: file:filename(), WaitMs :: non_neg_integer()) -> {ok, deployment()} | {error, unicode:chardata()}.
open(Dir, WaitMs) -> atoll_deploy_store:open(filename:absname(Dir), WaitMs).

%% @doc Closes it. The nodes run on.
-spec close(deployment()) -> ok.
close(Store) -> atoll_deploy_store:close(Store).

%% @doc Registers a thing, or changes one. A release is read now, and kept as it is.
-spec put(deployment(), atoll_deploy_thing:kind(), Name :: string(), map()) -> ok | {error, unicode:chardata()}.
put(Store, Kind, Name, Given) ->
    case atoll_deploy_register:put(Store, Kind, Name, Given, run) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc Forgets a thing that nothing needs any more.
-spec forget(deployment(), atoll_deploy_thing:kind(), Name :: string()) -> ok | {error, unicode:chardata()}.
forget(Store, Kind, Name) -> forget(Store, Kind, Name, run).

%% @doc The same, or only whether it could be done.
-spec forget(deployment(), atoll_deploy_thing:kind(), Name :: string(), plan | run) -> ok | {error, unicode:chardata()}.
forget(Store, Kind, Name, Mode) ->
    case {Kind, proplists:get_value({sweep, Name}, atoll_deploy_store:all(Store), [])} of
        {family, [{_, Host} | _]} -> {error, ["Something of the family ", Name, " may be left on the host ", Host, ": terminate it first."]};
        _ -> atoll_deploy_register:forget(Store, Kind, Name, Mode)
    end.

%% @doc Does what stands in a file, or says what would be done. Nothing is done if something is wrong with it.
-spec apply(deployment(), file:filename(), tell(), plan | run) ->
    {ok, [{Family :: string(), [atoll_deploy_plan:step()]} | outcome()]} | {error, unicode:chardata()}.
apply(Store, File, Tell, What) ->
    case atoll_deploy_file:read(File) of
        {ok, Terms} ->
            case atoll_deploy_file:check(Terms, atoll_deploy_register:known(Store), filename:absname(filename:dirname(File))) of
                {ok, #{things := Things, deploy := Deploys}} -> applied(Store, Things, Deploys, Tell, What);
                {error, Sentence} -> {error, [File, ": ", Sentence, $.]}
            end;
        {error, Sentence} ->
            {error, Sentence}
    end.

applied(Store, Things, Deploys, Tell, Mode) ->
    case {atoll_deploy_register:put_all(Store, Things, Mode), Mode} of
        {{error, _} = Error, _} ->
            Error;
        {{ok, _}, run} ->
            each(Deploys, fun({Family, Count}) -> run(Store, Family, Count, Tell) end);
        {{ok, Would}, plan} ->
            %% As if all of it was registered.
            New = [{{Kind, Name}, Thing} || {{Kind, _}, {#{name := Name} = Thing, _}} <- lists:zip(Things, Would)],
            All = New ++ [Other || {Key, _} = Other <- atoll_deploy_store:all(Store), not lists:keymember(Key, 1, New)],
            each(Deploys, fun({Family, Count}) ->
                case planned(Store, All, Family, Count) of
                    {ok, Steps} -> {ok, {Family, Steps}};
                    {error, _} = Error -> Error
                end
            end)
    end.

each(List, Do) -> each(List, Do, []).

each([], _, Done) -> {ok, lists:reverse(Done)};
each([One | More], Do, Done) ->
    case Do(One) of
        {ok, Result} -> each(More, Do, [Result | Done]);
        {error, _} = Error -> Error
    end.

%% @doc What would be done for a family to have so many nodes, or as many as it was to have.
-spec plan(deployment(), Family :: string(), Count :: non_neg_integer() | kept) -> {ok, [atoll_deploy_plan:step()]} | {error, unicode:chardata()}.
plan(Store, Family, Count) -> planned(Store, atoll_deploy_store:all(Store), Family, Count).

planned(Store, All, Name, Count) ->
    case atoll_deploy_family:known(Store, All, Name) of
        {ok, {hosts, _} = Family} ->
            case atoll_deploy_family:prepared(Family, All, Count) of
                {ok, #{steps := Steps}} -> {ok, Steps};
                {error, _} = Error -> Error
            end;
        {ok, {kubernetes, #{count := Kept, family := #{release := Release}}}} ->
            Wanted = case Count of kept -> Kept; _ -> Count end,
            {ok, [{stop, atoll_deploy_kubectl:pod(Name, N, Release)} || Kept > Wanted, N <- lists:seq(Kept - 1, Wanted, -1)] ++ [{start, atoll_deploy_kubectl:pod(Name, N, Release)} || Wanted > Kept, N <- lists:seq(Kept, Wanted - 1)]};
        {error, _} = Error ->
            Error
    end.

%% @doc Has a family have so many nodes, or as many as it was to have: starts some, stops some, or does nothing.
-spec run(deployment(), Family :: string(), Count :: non_neg_integer() | kept, tell()) -> {ok, outcome()} | {error, unicode:chardata()}.
run(Store, Name, Count, Tell) ->
    Begun = erlang:monotonic_time(millisecond),
    case atoll_deploy_cloud:ensure(Store, Name, fun() -> plan(Store, Name, Count) end) of
        ok ->
            All = atoll_deploy_store:all(Store),
            case atoll_deploy_family:known(Store, All, Name) of
                {ok, {hosts, _} = Family} ->
                    case atoll_deploy_family:prepared(Family, All, Count) of
                        {ok, Prepared} -> {ok, ran(Prepared, Name, Tell, Begun)};
                        {error, _} = Error ->
                            Error
                    end;
                {ok, {kubernetes, #{count := Kept} = Context}} ->
                    N = case Count of kept -> Kept; _ -> Count end,
                    atoll_deploy_kubectl:taken(Context#{count := N}, [{{count, Name}, {value, N}}]);
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

ran(#{steps := Steps, count := N, context := #{store := Store} = Context, rows := Rows, unreached := Unreached}, Name, Tell, Begun) ->
    Jobs = [job(Step) || Step <- Steps],
    Stops = [Row || {stop, Row} <- Jobs],
    Keys = atoll_deploy_sweep:begun(Store, Name, Stops, [{{count, Name}, {value, N}}]),
    %% There is room for new nodes when the others are stopped.
    {Stopped, Phases} = atoll_deploy_jobs:do([Job || {stop, _} = Job <- Jobs], Context, Tell, #{}),
    Swept = atoll_deploy_sweep:done(Keys, Context),
    {Started, AllPhases} = atoll_deploy_jobs:do([Job || {What, _} = Job <- Jobs, What =/= stop], Context, Tell, Phases),
    Restored = [
        {Node, case {Result, Job} of {ok, {{replace, _}, #{release := Release}}} -> {said, ["it has the release ", Release, " back: a roll was broken off"]}; _ -> Result end}
     || {Node, Result} <- Started, {_, #{node := Is}} = Job <- Jobs, Is =:= Node
    ],
    Results = Stopped ++ Swept ++ Restored,
    Unseen = [
        {Node, {error, ["the host ", Host, ": ", map_get({Domain, Host}, Unreached)]}}
     || #{node := Node, domain := Domain, host := Host} <- Rows, is_map_key({Domain, Host}, Unreached), not lists:keymember(Node, 1, Results)
    ],
    atoll_deploy_jobs:outcome(Store, Name, Results ++ Unseen, AllPhases, Begun).

%% One that a broken roll has given another release is stopped by that.
job({start, #{rolled := Given} = Row}) -> {{replace, Given}, maps:remove(rolled, Row)};
job({stop, #{rolled := Given} = Row}) -> {stop, (maps:remove(rolled, Row))#{release := Given}};
job(Step) -> Step.

%% @doc The nodes that would be given another release, so many at a time; one that has it and is well is not among them.
-spec batches(deployment(), Family :: string(), {Release :: string(), Batch :: pos_integer()}) -> {ok, [[atoll_deploy_plan:row(), ...]]} | {error, unicode:chardata()}.
batches(Store, Name, What) -> atoll_deploy_rolling:batches(Store, Name, What).

%% @doc Has the nodes of a family run another release, so many at a time; each is to be well before the next ones follow. At the
%% first that is not, all have the release back that they had.
-spec roll(deployment(), Family :: string(), {Release :: string(), Batch :: pos_integer()}, tell()) ->
    {ok, outcome()} | {back, Why :: unicode:chardata(), outcome()} | {error, unicode:chardata()}.
roll(Store, Name, What, Tell) -> atoll_deploy_rolling:roll(Store, Name, What, Tell).

%% @doc Stops all nodes of a family, and looks on each host that nothing is left. A host that cannot be reached is named, and what is
%% there stays known.
-spec terminate(deployment(), Family :: string(), tell()) -> {ok, outcome()} | {error, unicode:chardata()}.
terminate(Store, Name, Tell) ->
    Begun = erlang:monotonic_time(millisecond),
    case atoll_deploy_family:known(Store, atoll_deploy_store:all(Store), Name) of
        {ok, {hosts, Context}} ->
            Rows = atoll_deploy_jobs:rows(Store, Name),
            Keys = atoll_deploy_sweep:begun(Store, Name, Rows, [{{count, Name}, {value, 0}}]),
            {Results, Phases} = atoll_deploy_jobs:do([{stop, Row} || Row <- Rows], Context, Tell, #{}),
            Swept = atoll_deploy_sweep:done(Keys, Context),
            Outcome = atoll_deploy_jobs:outcome(Store, Name, Results ++ Swept, Phases, Begun),
            case {atoll_deploy_cloud:release(Store, Name), Outcome} of
                {ok, #{failed := []}} ->
                    ok = atoll_deploy_family:forget_cookie(Store, Name),
                    ok = atoll_deploy_store:write(Store, [{{count, Name}, delete}]),
                    {ok, Outcome};
                {ok, _} -> {ok, Outcome};
                {{error, _} = Error, _} -> Error
            end;
        {ok, {kubernetes, Context}} ->
            case atoll_deploy_kubectl:terminate(Context) of
                {ok, _} = Gone ->
                    ok = atoll_deploy_family:forget_cookie(Store, Name),
                    ok = atoll_deploy_store:write(Store, [{{count, Name}, delete}]),
                    Gone;
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc The families that there are.
-spec families(deployment()) -> [string()].
families(Store) -> [Name || #{name := Name} <- atoll_deploy_store:things(Store, family)].

%% @doc What is known of the nodes of a family, and what their hosts say.
-spec status(deployment(), Family :: string()) -> {ok, told()} | {error, unicode:chardata()}.
status(Store, Name) ->
    All = atoll_deploy_store:all(Store),
    case atoll_deploy_family:known(Store, All, Name) of
        {ok, {hosts, Context}} ->
            Rows = atoll_deploy_jobs:rows(Store, Name),
            {Seen, _, Unreached} = atoll_deploy_family:seen(Rows, atoll_deploy_work:look(Rows, Context)),
            {ok, #{family => Name, wanted => proplists:get_value({count, Name}, All, 0), nodes => [told(Row, Unreached) || Row <- Seen]}};
        {ok, {kubernetes, Context}} ->
            atoll_deploy_kubectl:status(Context);
        {error, _} = Error ->
            Error
    end.

told(#{node := Node, domain := Domain, host := Host, release := Release, state := State} = Row, Unreached) ->
    One = #{node => Node, host => Host, release => Release, state => State, why => maps:get(why, Row, "")},
    case {State, Unreached} of
        {up, #{{Domain, Host} := Why}} -> One#{state := unknown, why := Why};
        {failed, _} when map_get(why, One) =:= <<"it does not run">> -> One#{state := down};
        {up, _} when is_map_key(before, Row) -> One#{why := ["a roll was broken off: it had the release ", map_get(before, Row)]};
        _ -> One
    end.

%% @doc The last lines that a node has said.
-spec log(deployment(), {Family :: string(), Node :: string()}, Lines :: pos_integer()) -> {ok, [binary()]} | {error, unicode:chardata()}.
log(Store, {Name, Node}, Lines) ->
    case {atoll_deploy_family:known(Store, atoll_deploy_store:all(Store), Name), [Row || #{node := Is} = Row <- atoll_deploy_jobs:rows(Store, Name), Is =:= Node]} of
        {{ok, {hosts, Context}}, [#{host := Host} = Row]} ->
            case atoll_deploy_work:log(Row, Lines, Context) of
                {ok, _} = Said -> Said;
                {error, Why} -> {error, atoll_deploy_register:sentence(["the host ", Host, ": ", Why])}
            end;
        {{ok, {kubernetes, Context}}, _} -> atoll_deploy_kubectl:log(Context, Node, Lines);
        {{ok, _}, []} -> {error, ["The family ", Name, " has no node ", Node, $.]};
        {{error, _} = Error, _} -> Error
    end.

%% @doc The manifests of a family on Kubernetes, without the secret; no cluster is asked.
-spec manifest(deployment(), Family :: string(), Count :: non_neg_integer() | kept) -> {ok, [atoll_cli_json:object()]} | {error, unicode:chardata()}.
manifest(Store, Name, Count) ->
    case atoll_deploy_family:known(Store, atoll_deploy_store:all(Store), Name) of
        {ok, {kubernetes, #{count := Kept} = Context}} ->
            case atoll_deploy_kubectl:objects(Context#{count := case Count of kept -> Kept; _ -> Count end}, fun() -> <<>> end) of
                {ok, Objects} -> {ok, atoll_deploy_kubernetes:shown(Objects)};
                {error, _} = Error -> Error
            end;
        {ok, _} -> {error, ["The family ", Name, " is not on Kubernetes."]};
        {error, _} = Error -> Error
    end.
