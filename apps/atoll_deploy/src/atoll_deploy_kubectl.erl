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
-define(OBJECTS, "statefulset,service,secret").
%% What kubectl is told over its standard input ends where it ends: a port's own has no end.
-define(PIPE, "n=$1; shift; head -c \"$n\" | exec \"$@\"").

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
run(#{family := #{name := Name, release := Release, seconds := Seconds}} = Context, Cookie) ->
    Begun = erlang:monotonic_time(millisecond),
    case {objects(Context, Cookie), others(Context)} of
        {{ok, Objects}, {ok, Pods}} ->
            case kubectl(["apply", "-f", "-"], atoll_deploy_kubernetes:text(Objects), ?MS, Context) of
                {ok, _} ->
                    At = erlang:monotonic_time(millisecond),
                    Old = [Pod || #{release := Is} = Pod <- Pods, Is =/= Release],
                    %% Kubernetes would wait for ever for one that does not get well.
                    Broken = [Node || #{node := Node, state := State} <- Old, State =/= up],
                    _ = [kubectl(["delete", "pod", "--ignore-not-found", "--wait=false" | Broken], ?MS, Context) || Broken =/= []],
                    %% Of those with another release one ends and one starts at a time. Nodes that do not get well are named below.
                    For = Seconds * max(1, 2 * length(Old)),
                    Waited = kubectl(["rollout", "status", "statefulset/" ++ Name, lists:concat(["--timeout=", For, "s"])], For * 1000 + ?MS, Context),
                    outcome(Waited, Context, #{connect => At - Begun, nodes => erlang:monotonic_time(millisecond) - At}, Begun);
                {error, _} = Error ->
                    Error
            end;
        {{error, _} = Error, _} -> Error;
        {_, {error, _} = Error} -> Error
    end.

%% The pods that there are, if nothing of the family's name is somebody else's.
others(#{family := #{name := Name}} = Context) ->
    #{namespace := Namespace} = provider(Context),
    {Column, Ours} = atoll_deploy_kubernetes:managed(),
    case kubectl(["get", ?OBJECTS, Name, "--ignore-not-found", "--no-headers", "-o", "custom-columns=K:.kind,M:" ++ Column], ?MS, Context) of
        {ok, Output} ->
            case [Kind || [Kind, By] <- words(Output), By =/= Ours] of
                [] ->
                    case status(Context) of
                        {ok, #{nodes := Pods}} -> {ok, Pods};
                        {error, _} = Error -> Error
                    end;
                [Kind | _] -> {error, ["The namespace ", Namespace, " has a ", Kind, " ", Name, " already, which this program has not made."]}
            end;
        {error, _} = Error -> Error
    end.

words(Output) -> [string:lexemes(unicode:characters_to_list(Line), " ") || Line <- binary:split(Output, <<"\n">>, [global, trim_all])].

%% The cluster has taken what it was told, also where it does not say what came of it.
outcome(Waited, #{family := #{name := Name}} = Context, Phases, Begun) ->
    {Up, Failed} =
        case status(Context) of
            {error, Unsaid} -> {[], [{Name, Unsaid}]};
            {ok, #{nodes := Nodes, wanted := Wanted}} ->
                Well = [Node || #{node := Node, state := up} <- Nodes],
                case {[{Node, Why} || #{node := Node, state := State, why := Why} <- Nodes, State =/= up], Waited} of
                    {[], {error, Why}} -> {Well, [{Name, Why}]};
                    {[], _} when length(Well) < Wanted -> {Well, [{Name, io_lib:format("~b of ~b pods are there", [length(Well), Wanted])}]};
                    {Others, _} -> {Well, Others}
                end
        end,
    {ok, #{family => Name, up => Up, failed => Failed, said => [], done => length(Up), phases => #{"kubernetes" => Phases}, ms => erlang:monotonic_time(millisecond) - Begun}}.

%% @doc Takes all of the family away, and waits until it is gone.
-spec terminate(family()) -> {ok, atoll_deploy:outcome()} | {error, unicode:chardata()}.
terminate(#{family := #{name := Name, seconds := Seconds}} = Context) ->
    Begun = erlang:monotonic_time(millisecond),
    Deleted = kubectl(["delete", ?OBJECTS, "-l", atoll_deploy_kubernetes:label(Name), "--ignore-not-found", "--wait"], Seconds * 1000 + ?MS, Context),
    case Deleted of
        {ok, _} ->
            %% It is an error if there was none any more.
            _ = kubectl(["wait", "--for=delete", "pod", "-l", atoll_deploy_kubernetes:label(Name), lists:concat(["--timeout=", Seconds, "s"])], Seconds * 1000 + ?MS, Context),
            case status(Context) of
                {ok, #{nodes := []}} -> {ok, #{family => Name, up => [], failed => [], said => [], done => 0, phases => #{}, ms => erlang:monotonic_time(millisecond) - Begun}};
                {ok, #{nodes := [#{node := Pod} | _]}} -> {error, ["The pod ", Pod, " is there still."]};
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
            Nodes = [told(Words) || [Pod, _, _, _, _, _] = Words <- words(Output), lists:prefix(Name ++ "-", Pod)],
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

kubectl(Args, Ms, Context) -> kubectl(Args, <<>>, Ms, Context).

kubectl(Args, Input, Ms, Context) ->
    #{namespace := Namespace, kubectl := Kubectl} = Provider = provider(Context),
    case os:find_executable(Kubectl) of
        false -> {error, ["There is no program ", Kubectl, " here, which Kubernetes is spoken to with."]};
        Program ->
            Where = ["--namespace", Namespace] ++ lists:append([["--context", At] || #{context := At} <- [Provider]]),
            Piped = ["-c", ?PIPE, "sh", integer_to_list(iolist_size(Input)), Program | Where ++ Args],
            Port = open_port({spawn_executable, "/bin/sh"}, [{args, Piped}, exit_status, binary, use_stdio, stderr_to_stdout, hide]),
            true = port_command(Port, Input),
            case ran(Port, erlang:monotonic_time(millisecond) + Ms, []) of
                {ok, 0, Output} -> {ok, Output};
                {ok, _, Output} -> {error, ["kubectl says: ", said(Output)]};
                late -> {error, ["kubectl ", hd(Args), " took too long."]}
            end
    end.

%% Without what its libraries log.
said(Output) ->
    Lines = binary:split(Output, <<"\n">>, [global, trim_all]),
    case [Line || Line <- Lines, re:run(Line, "^[IWEF][0-9]{4} ") =:= nomatch] of
        [] -> lists:join(" ", Lines);
        Said -> lists:join(" ", Said)
    end.

ran(Port, Until, Said) ->
    receive
        {Port, {data, Data}} -> ran(Port, Until, [Said, Data]);
        {Port, {exit_status, Status}} -> {ok, Status, iolist_to_binary(Said)}
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        true = port_close(Port),
        late
    end.
