%% SPDX-License-Identifier: Apache-2.0
%% @doc Has a cluster of Kubernetes do what a family's manifests say, through kubectl. Kubernetes itself starts the nodes,
%% puts them on machines, starts them again, and rolls new releases; this waits until it says so.
-module(atoll_deploy_kubectl).

-export([taken/2, pod/3, terminate/1, status/1, log/3, objects/2]).

-export_type([family/0]).

-type family() :: #{
    store := atoll_deploy_store:store(),
    family := atoll_deploy_thing:thing(),
    releases := #{string() => atoll_deploy_thing:thing()},
    domains := #{string() => atoll_deploy_thing:thing()},
    providers := #{string() => atoll_deploy_thing:thing()},
    count => non_neg_integer(),
    atom() => term()
}.

-define(MS, 60000).

%% @doc The manifests of a family.
-spec objects(family(), Cookie :: atoll_deploy_family:secret()) -> {ok, [atoll_cli_json:object()]} | {error, unicode:chardata()}.
objects(#{family := #{release := Name} = Family, releases := Releases, count := Count} = Context, Cookie) ->
    #{namespace := Namespace} = provider(Context),
    case Releases of
        #{Name := Release} ->
            atoll_deploy_kubernetes:manifest(#{family => Family, release => Release, namespace => Namespace, count => Count, cookie => Cookie});
        #{} ->
            {error, ["There is no release ", Name, $.]}
    end.

provider(#{family := #{domains := [Domain]}, domains := Domains, providers := Providers}) ->
    #{Domain := #{provider := Provider}} = Domains,
    maps:get(Provider, Providers).

%% @doc Has the cluster have so many nodes of the family's release, and waits until they are well. Changes of the state are written down when the cluster has taken what it was told.
-spec taken(family(), [atoll_deploy_store:change()]) -> {ok, atoll_deploy:outcome()} | {error, unicode:chardata()}.
taken(#{store := Store, family := Family} = Context, Changes) ->
    case atoll_deploy_family:cookie(Store, Family) of
        {ok, Cookie} ->
            Ran = run(Context, Cookie),
            _ = [ok = atoll_deploy_store:write(Store, Changes) || {ok, _} <- [Ran]],
            Ran;
        {error, Why} -> {error, atoll_deploy_register:sentence(Why)}
    end.

%% @doc A pod, as a plan has it.
-spec pod(Family :: string(), N :: non_neg_integer(), Release :: string()) -> atoll_deploy_plan:row().
pod(Name, N, Release) ->
    #{node => lists:concat([Name, "-", N]), family => Name, number => N + 1, domain => "", host => "", release => Release, needs => #{}, state => starting}.

%% Has the cluster have so many nodes of the family's release, and waits until they are well.
-spec run(family(), Cookie :: atoll_deploy_family:secret()) -> {ok, atoll_deploy:outcome()} | {error, unicode:chardata()}.
run(#{store := #{dir := Dir}, family := #{name := Name, seconds := Seconds}} = Context, Cookie) ->
    Begun = erlang:monotonic_time(millisecond),
    case objects(Context, Cookie) of
        {ok, Objects} ->
            %% Of a master that was killed.
            _ = [file:delete(Old) || Old <- filelib:wildcard(filename:join(Dir, "manifest.*"))],
            File = filename:join(Dir, lists:concat(["manifest.", os:getpid(), ".json"])),
            ok = written(File, atoll_deploy_kubernetes:text(Objects)),
            Applied = kubectl(["apply", "-f", File], ?MS, Context),
            ok = file:delete(File),
            case Applied of
                {ok, _} ->
                    At = erlang:monotonic_time(millisecond),
                    %% Nodes that do not get well are named below.
                    Waited = kubectl(["rollout", "status", "statefulset/" ++ Name, lists:concat(["--timeout=", Seconds, "s"])], Seconds * 1000 + ?MS, Context),
                    outcome(Waited, Context, #{connect => At - Begun, nodes => erlang:monotonic_time(millisecond) - At}, Begun);
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

%% It has its mode before it has the secret.
written(File, Text) ->
    _ = file:delete(File),
    ok = file:write_file(File, <<>>, [exclusive]),
    ok = file:change_mode(File, 8#600),
    file:write_file(File, Text).

outcome(Waited, #{family := #{name := Name}} = Context, Phases, Begun) ->
    case status(Context) of
        {ok, #{nodes := Nodes, wanted := Wanted}} ->
            Up = [Node || #{node := Node, state := up} <- Nodes],
            Failed = [{Node, Why} || #{node := Node, state := State, why := Why} <- Nodes, State =/= up],
            Said = case {Waited, Failed, length(Up)} of
                {{error, Why}, [], _} -> [{Name, Why}];
                {_, [], Less} when Less < Wanted -> [{Name, io_lib:format("~b of ~b pods are there", [Less, Wanted])}];
                _ -> Failed
            end,
            {ok, #{family => Name, up => Up, failed => Said, said => [], done => Wanted, phases => #{"kubernetes" => Phases}, ms => erlang:monotonic_time(millisecond) - Begun}};
        {error, _} = Error ->
            Error
    end.

%% @doc Takes all of the family away, and waits until it is gone.
-spec terminate(family()) -> {ok, atoll_deploy:outcome()} | {error, unicode:chardata()}.
terminate(#{family := #{name := Name, seconds := Seconds}} = Context) ->
    Begun = erlang:monotonic_time(millisecond),
    Deleted = kubectl(["delete", "statefulset,service,secret", Name, "--ignore-not-found", "--wait"], Seconds * 1000 + ?MS, Context),
    case Deleted of
        {ok, _} ->
            case kubectl(["wait", "--for=delete", "pod", "-l", atoll_deploy_kubernetes:label(Name), lists:concat(["--timeout=", Seconds, "s"])], Seconds * 1000 + ?MS, Context) of
                {ok, _} -> {ok, #{family => Name, up => [], failed => [], said => [], done => 0, phases => #{}, ms => erlang:monotonic_time(millisecond) - Begun}};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc The pods, as the cluster says.
-spec status(family()) -> {ok, atoll_deploy:told()} | {error, unicode:chardata()}.
status(#{family := #{name := Name}, count := Count} = Context) ->
    Columns = "custom-columns=N:.metadata.name,P:.status.phase,R:.status.containerStatuses[0].ready,H:.spec.nodeName,L:.metadata.labels.release,W:.status.containerStatuses[0].state.waiting.reason",
    case kubectl(["get", "pods", "-l", atoll_deploy_kubernetes:label(Name), "--no-headers", "-o", Columns], ?MS, Context) of
        {ok, Output} ->
            Nodes = [told(Words) || Line <- binary:split(Output, <<"\n">>, [global, trim_all]), [_, _, _, _, _, _] = Words <- [string:lexemes(unicode:characters_to_list(Line), " ")]],
            {ok, #{family => Name, wanted => Count, nodes => Nodes}};
        {error, _} = Error ->
            Error
    end.

told([Pod, "Running", "true", Host, Release, _]) -> #{node => Pod, host => Host, release => Release, state => up, why => ""};
told([Pod, Phase, _, Host, Release, Why]) ->
    #{node => Pod, host => Host, release => Release, state => case Phase of "Running" -> starting; "Pending" -> starting; _ -> failed end, why => case Why of "<none>" -> Phase; _ -> Why end}.

%% @doc The last lines of a pod's log.
-spec log(family(), Pod :: string(), Lines :: pos_integer()) -> {ok, [binary()]} | {error, unicode:chardata()}.
log(Context, Pod, Lines) ->
    case kubectl(["logs", Pod, lists:concat(["--tail=", Lines])], ?MS, Context) of
        {ok, Output} -> {ok, binary:split(Output, <<"\n">>, [global, trim])};
        {error, _} = Error -> Error
    end.

kubectl(Args, Ms, Context) ->
    #{namespace := Namespace, kubectl := Kubectl} = Provider = provider(Context),
    case os:find_executable(Kubectl) of
        false -> {error, ["There is no program ", Kubectl, " here, which Kubernetes is spoken to with."]};
        Program ->
            Where = ["--namespace", Namespace] ++ lists:append([["--context", At] || #{context := At} <- [Provider]]),
            Port = open_port({spawn_executable, Program}, [{args, Where ++ Args}, exit_status, binary, use_stdio, stderr_to_stdout, hide]),
            case ran(Port, erlang:monotonic_time(millisecond) + Ms, []) of
                {ok, 0, Output} -> {ok, Output};
                {ok, _, Output} -> {error, ["kubectl says: ", string:slice(lists:join(" ", string:lexemes(string:trim(Output), "\n")), 0, 300)]};
                late -> {error, ["kubectl ", hd(Args), " took too long."]}
            end
    end.

ran(Port, Until, Said) ->
    receive
        {Port, {data, Data}} -> ran(Port, Until, [Said, Data]);
        {Port, {exit_status, Status}} -> {ok, Status, iolist_to_binary(Said)}
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        true = port_close(Port),
        late
    end.
