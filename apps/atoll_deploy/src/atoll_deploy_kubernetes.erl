%% SPDX-License-Identifier: Apache-2.0
%% @doc A family on Kubernetes, as manifests: a StatefulSet, so that nodes have names that stay; a headless service, by
%% whose DNS records they find each other; a secret with the cookie. Pure. JSON, which kubectl reads as it does YAML.
%%
%% A pod is named FAMILY-N, and its node FAMILY@FAMILY-N.FAMILY.NAMESPACE.svc.cluster.local. It listens on one port, and needs
%% no epmd. The environment of a container has ATOLL_NODE, ATOLL_FLAGS and ATOLL_COOKIE; a release of Elixir takes the same
%% as RELEASE_NODE and RELEASE_COOKIE, which are there too.
%%
%% Every VM of a container is told where Atoll finds contacts, by ERL_ZFLAGS: the service's records, which are there before a pod is
%% ready. What has no application `atoll' does not look at that.
-module(atoll_deploy_kubernetes).

-export([manifest/1, text/1, label/1, managed/0, shown/1]).

-export_type([wanted/0]).

-type wanted() :: #{
    family := atoll_deploy_thing:thing(),
    release := atoll_deploy_thing:thing(),
    namespace := string(),
    count := non_neg_integer(),
    cookie := atoll_deploy_family:secret()
}.

-define(PORT, 9100).
-define(MANAGED, 'app.kubernetes.io/managed-by').
%% As long as on a host: a release's own command may start a VM for it.
-define(HEALTH_S, 10).

%% @doc The objects, in the order in which they are applied.
-spec manifest(wanted()) -> {ok, [atoll_cli_json:object()]} | {error, unicode:chardata()}.
manifest(#{family := #{name := Name, seconds := Seconds}, release := #{name := ReleaseName} = Release, namespace := Namespace} = Wanted) ->
    case {string:lowercase(Name) =:= Name andalso not lists:member($_, Name), Release} of
        {false, _} -> {error, ["On Kubernetes the name of a family has small letters, digits and - only, and ", Name, " has others."]};
        {_, #{image := Image}} ->
            {ok, [
                {[{apiVersion, <<"v1">>}, {kind, <<"Secret">>}, {metadata, metadata(Name, Namespace)}, {type, <<"Opaque">>},
                  {data, {[{cookie, base64:encode((maps:get(cookie, Wanted))())}]}}]},
                {[{apiVersion, <<"v1">>}, {kind, <<"Service">>}, {metadata, metadata(Name, Namespace)},
                  {spec, {[
                      {clusterIP, <<"None">>}, {publishNotReadyAddresses, true}, {selector, {labels(Name)}},
                      {ports, [{[{name, <<"dist">>}, {port, ?PORT}]}]}
                  ]}}]},
                {[{apiVersion, <<"apps/v1">>}, {kind, <<"StatefulSet">>}, {metadata, metadata(Name, Namespace)},
                  {spec, {[
                      {serviceName, bin(Name)}, {replicas, maps:get(count, Wanted)}, {podManagementPolicy, <<"Parallel">>},
                      {minReadySeconds, 1}, {updateStrategy, {[{type, <<"RollingUpdate">>}]}},
                      {selector, {[{matchLabels, {labels(Name)}}]}},
                      {template, {[
                          {metadata, {[{labels, {labels(Name) ++ [{release, bin(ReleaseName)}]}}]}},
                          {spec, {[{terminationGracePeriodSeconds, Seconds}, {containers, [container(bin(Image), Wanted)]}]}}
                      ]}}
                  ]}}]}
            ]};
        {_, _} -> {error, ["The release ", ReleaseName, " has no image, which Kubernetes needs."]}
    end.

metadata(Name, Namespace) ->
    {[{name, bin(Name)}, {namespace, bin(Namespace)}, {labels, {labels(Name)}}]}.

%% Pods of others may have the family's name, and others may have its name for something else.
labels(Name) -> [{app, bin(Name)}, {?MANAGED, <<"atoll">>}].

container(Image, #{family := #{name := Name, flags := Flags, needs := Needs, seconds := Seconds}, release := Release, namespace := Namespace}) ->
    Node = lists:concat([Name, "@$(POD_NAME).", Name, ".", Namespace, ".svc.cluster.local"]),
    Records = lists:concat(["_dist._tcp.", Name, ".", Namespace, ".svc.cluster.local"]),
    Cookie = {[{secretKeyRef, {[{name, bin(Name)}, {key, <<"cookie">>}]}}]},
    Requests = [{cpu, integer_to_binary(N)} || #{cores := N} <- [Needs]] ++ [{memory, <<(integer_to_binary(N))/binary, "Mi">>} || #{memory_mb := N} <- [Needs]],
    {[
        {name, bin(Name)}, {image, Image},
        {env, [
            {[{name, <<"POD_NAME">>}, {valueFrom, {[{fieldRef, {[{fieldPath, <<"metadata.name">>}]}}]}}]},
            {[{name, <<"ATOLL_NODE">>}, {value, bin(Node)}]},
            {[{name, <<"RELEASE_NODE">>}, {value, bin(Node)}]},
            {[{name, <<"RELEASE_DISTRIBUTION">>}, {value, <<"name">>}]},
            {[{name, <<"ATOLL_FLAGS">>}, {value, bin(lists:append(lists:join(" ", ["-start_epmd", "false", "-erl_epmd_port", integer_to_list(?PORT) | Flags])))}]},
            {[{name, <<"ATOLL_CONTACTS_DNS">>}, {value, bin(Records)}]},
            {[{name, <<"ERL_ZFLAGS">>}, {value, bin(io_lib:format("-atoll discovery '~0p'", [[{dns, #{name => Records, type => srv, node => Name}}]]))}]},
            {[{name, <<"ATOLL_COOKIE">>}, {valueFrom, Cookie}]},
            {[{name, <<"RELEASE_COOKIE">>}, {valueFrom, Cookie}]}
        ]},
        {ports, [{[{name, <<"dist">>}, {containerPort, ?PORT}]}]}
    ] ++
        [{command, shell(string:replace(Start, "$", "$$", all))} || #{start := Start} <- [Release]] ++
        [{lifecycle, {[{preStop, {[{exec, {[{command, shell(Stop)}]}}]}}]}} || #{stop := Stop} <- [Release]] ++
        lists:append([
            [{startupProbe, {[{exec, {[{command, shell(Health)}]}}, {periodSeconds, 1}, {timeoutSeconds, ?HEALTH_S}, {failureThreshold, Seconds}]}},
             {readinessProbe, {[{exec, {[{command, shell(Health)}]}}, {periodSeconds, 5}, {timeoutSeconds, ?HEALTH_S}]}}]
         || #{health := Health} <- [Release]
        ]) ++
        [{resources, {[{requests, {Requests}}]}} || Requests =/= []]}.

%% Kubernetes puts variables of the container in the place of $(NAME), but not of $$(NAME): they are for the shell.
shell(Command) -> [<<"/bin/sh">>, <<"-c">>, bin(Command)].

%% @doc The text that kubectl is given, with the secret in it.
-spec text([atoll_cli_json:object()]) -> iodata().
text(Objects) -> atoll_cli_json:encode({[{apiVersion, <<"v1">>}, {kind, <<"List">>}, {items, Objects}]}).

%% @doc The objects as they may be shown to people: without the secret.
-spec shown([atoll_cli_json:object()]) -> [atoll_cli_json:object()].
shown(Objects) ->
    [
        case lists:keyfind(kind, 1, Pairs) of
            {kind, <<"Secret">>} -> {lists:keyreplace(data, 1, Pairs, {data, {[{cookie, <<"">>}]}})};
            _ -> {Pairs}
        end
     || {Pairs} <- Objects
    ].

%% @doc What a family's pods and objects are told by.
-spec label(Family :: string()) -> string().
label(Family) ->
    %% They are names and words of ours.
    Text = unicode:characters_to_list(lists:join(",", [[atom_to_list(Key), $=, Value] || {Key, Value} <- labels(Family)])),
    true = is_list(Text),
    Text.

%% @doc The column in which kubectl says by whom an object is managed, and what it says of ours.
-spec managed() -> {Column :: string(), By :: string()}.
managed() -> {".metadata.labels." ++ unicode:characters_to_list(string:replace(atom_to_list(?MANAGED), ".", "\\.", all)), "atoll"}.

bin(Text) -> unicode:characters_to_binary(Text).
