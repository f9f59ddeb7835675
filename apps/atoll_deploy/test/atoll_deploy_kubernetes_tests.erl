%% SPDX-License-Identifier: Apache-2.0
-module(atoll_deploy_kubernetes_tests).

-include_lib("eunit/include/eunit.hrl").

-export([wanted/0]).

wanted() ->
    {ok, Family} = atoll_deploy_thing:check(family, "reef", #{release => "one", domains => ["k"], flags => ["+S", "1:1"], needs => #{cores => 1, memory_mb => 256}}),
    {ok, Release} = atoll_deploy_thing:check(release, "one", #{image => "registry.example.com/reef:1", start => "bin/reef start", stop => "bin/reef stop", health => "bin/reef ping"}),
    #{family => Family, release => Release, namespace => "sea", count => 3, cookie => fun() -> <<"HUSHHUSH">> end}.

named(Kind, Objects) -> hd([Pairs || {Pairs} <- Objects, lists:keyfind(kind, 1, Pairs) =:= {kind, Kind}]).

in(Path, Pairs) -> lists:foldl(fun(Key, {Of}) -> {Key, Value} = lists:keyfind(Key, 1, Of), Value end, {Pairs}, Path).

a_family_is_a_stateful_set_with_a_headless_service_test() ->
    {ok, Objects} = atoll_deploy_kubernetes:manifest(wanted()),
    Set = named(<<"StatefulSet">>, Objects),
    ?assertEqual({3, <<"reef">>}, {in([spec, replicas], Set), in([spec, serviceName], Set)}),
    ?assertEqual(<<"None">>, in([spec, clusterIP], named(<<"Service">>, Objects))),
    [{Container}] = in([spec, template, spec, containers], Set),
    {env, Env} = lists:keyfind(env, 1, Container),
    ?assertEqual([<<"reef@$(POD_NAME).reef.sea.svc.cluster.local">>], [Value || {[{name, <<"ATOLL_NODE">>}, {value, Value}]} <- Env]),
    ?assertEqual({[{cpu, <<"1">>}, {memory, <<"256Mi">>}]}, in([resources, requests], Container)),
    ?assertEqual([<<"/bin/sh">>, <<"-c">>, <<"bin/reef stop">>], in([lifecycle, preStop, exec, command], Container)).

%% Where every VM of a pod finds contacts, as OTP reads it.
nodes_are_told_where_they_find_each_other_test() ->
    {ok, Objects} = atoll_deploy_kubernetes:manifest(wanted()),
    [{Container}] = in([spec, template, spec, containers], named(<<"StatefulSet">>, Objects)),
    [Flags] = [unicode:characters_to_list(Value) || {[{name, <<"ERL_ZFLAGS">>}, {value, Value}]} <- proplists:get_value(env, Container)],
    {match, [Text]} = re:run(Flags, "^-atoll discovery '(.*)'$", [{capture, [1], list}]),
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, [Source]} = erl_parse:parse_term(Tokens),
    ?assertEqual(ok, atoll_source:check(Source)),
    %% The name of the port and of the service, which DNS has records of.
    Service = named(<<"Service">>, Objects),
    [{[{name, Port}, {port, 9100}]}] = in([spec, ports], Service),
    Name = <<"_", Port/binary, "._tcp.", (in([metadata, name], Service))/binary, ".", (in([metadata, namespace], Service))/binary, ".svc.cluster.local">>,
    ?assertEqual({dns, #{name => binary_to_list(Name), type => srv, node => "reef"}}, Source).

the_secret_is_in_one_object_and_not_in_what_is_shown_test() ->
    {ok, Objects} = atoll_deploy_kubernetes:manifest(wanted()),
    Secret = base64:encode(<<"HUSHHUSH">>),
    Has = fun(What) -> [Text || Text <- [iolist_to_binary(atoll_deploy_kubernetes:text([O])) || O <- What], binary:match(Text, [Secret, <<"HUSHHUSH">>]) =/= nomatch] end,
    ?assertMatch([_], Has(Objects)),
    ?assertEqual([], Has(atoll_deploy_kubernetes:shown(Objects))).

what_kubernetes_would_not_take_is_a_sentence_test() ->
    #{family := Family, release := Release} = Wanted = wanted(),
    ?assertMatch({error, _}, atoll_deploy_kubernetes:manifest(Wanted#{family := Family#{name := "Reef"}})),
    {error, Sentence} = atoll_deploy_kubernetes:manifest(Wanted#{release := maps:remove(image, Release)}),
    ?assertEqual("The release one has no image, which Kubernetes needs.", lists:flatten(Sentence)).
