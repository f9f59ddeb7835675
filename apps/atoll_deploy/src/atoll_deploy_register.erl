%% SPDX-License-Identifier: Apache-2.0
%% @doc Registers what deployments are made of, and forgets it, or says what that would do. Nodes that run do not lose what they were
%% made of.
-module(atoll_deploy_register).

-export([put/5, put_all/3, forget/4, known/1, sentence/1]).

-export_type([mode/0, change/0]).

-type mode() :: plan | run.
%% With a plan nothing is done.

-type change() :: new | changed | same.

%% @doc Checks a thing, and registers it or changes the one of that name; says which it is. A release is read now, and kept as it is.
-spec put(atoll_deploy_store:store(), atoll_deploy_thing:kind(), Name :: string(), map(), mode()) -> {ok, change()} | {error, unicode:chardata()}.
put(Store, Kind, Name, Given, Mode) ->
    {ok, Dir} = file:get_cwd(),
    case atoll_deploy_file:check([{Kind, Name, Given}], known(Store), Dir) of
        {ok, #{things := Things}} ->
            case put_all(Store, Things, Mode) of
                {ok, [{_, Change}]} -> {ok, Change};
                {error, _} = Error -> Error
            end;
        {error, Sentence} -> {error, sentence(Sentence)}
    end.

%% @doc The things that there are.
-spec known(atoll_deploy_store:store()) -> atoll_deploy_file:known().
known(Store) -> [{Kind, Name} || {{Kind, Name}, _} <- atoll_deploy_store:all(Store), lists:member(Kind, atoll_deploy_thing:kinds())].

%% Of several nodes the first one is named.
all(Store) -> lists:sort(atoll_deploy_store:all(Store)).

%% @doc As put/5, of several that were checked: all of them, or none if something is wrong with one.
-spec put_all(atoll_deploy_store:store(), [{atoll_deploy_thing:kind(), atoll_deploy_thing:thing()}], mode()) ->
    {ok, [{atoll_deploy_thing:thing(), change()}]} | {error, unicode:chardata()}.
put_all(Store, Things, Mode) ->
    All = all(Store),
    Checked = [
        case whole(Store, Kind, Thing, Mode) of
            {ok, Whole} -> {{Kind, Name}, Whole, hindered(Kind, Whole, All)};
            {error, _} = Error -> {{Kind, Name}, Thing, Error}
        end
     || {Kind, #{name := Name} = Thing} <- Things
    ],
    Changes = [{Key, Whole} || {Key, Whole, _} <- Checked],
    case [Sentence || {_, _, {error, Sentence}} <- Checked] ++ unfit(Changes, All) of
        [] ->
            _ = [ok = atoll_deploy_store:write(Store, [{Key, {value, Whole}} || {Key, Whole} <- Changes]) || Mode =:= run],
            {ok, [{Whole, case lists:keyfind(Key, 1, All) of {_, Whole} -> same; {_, _} -> changed; false -> new end} || {Key, Whole} <- Changes]};
        [Sentence | _] ->
            {error, sentence(Sentence)}
    end.

%% Domains whose machines do not go with their providers.
unfit(Changes, All) ->
    Would = fun(Kind) -> maps:from_list([{Name, Thing} || {{Is, Name}, Thing} <- All ++ Changes, Is =:= Kind]) end,
    [
        case Cloud of
            true -> ["the domain ", Name, " lacks machines: its provider ", Provider, " is a cloud, and has no hosts"];
            false -> ["the domain ", Name, " has machines, which a cloud gives, and its provider ", Provider, " is none"]
        end
     || {Name, #{provider := Provider} = Domain} <- maps:to_list(Would(domain)), #{driver := Driver} <- [maps:get(Provider, Would(provider), none)],
        lists:keymember({domain, Name}, 1, Changes) orelse lists:keymember({provider, Provider}, 1, Changes),
        Cloud <- [Driver =:= cloud], Cloud =/= is_map_key(machines, Domain)
    ].

%% A release has the checksum of its archive.
whole(#{dir := Dir}, release, #{path := _} = Release, Mode) ->
    Kept = filename:join(Dir, case Mode of run -> "releases"; plan -> "planned" end),
    Sum = atoll_deploy_release:keep(Release, Kept),
    _ = [file:del_dir_r(Kept) || Mode =:= plan],
    case Sum of
        {ok, Is} -> {ok, Release#{sum => Is}};
        {error, _} = Error -> Error
    end;
whole(#{dir := Dir}, release, #{sha256 := Sum, name := Name} = Release, _) ->
    case atoll_deploy_release:has(filename:join(Dir, "releases"), Sum) of
        true -> {ok, Release#{sum => Sum}};
        false -> {error, ["the release ", Name, " has no path, and no archive with its checksum was sent"]}
    end;
whole(_, _, Thing, _) ->
    {ok, Thing}.

%% What is there stays what it is, and is reached as before.
hindered(release, #{name := Name} = Release, All) ->
    case {lists:keyfind({release, Name}, 1, All), there(release, Name, All)} of
        {{_, #{sum := Sum}}, [There | _]} when not is_map_key(sum, Release); map_get(sum, Release) =/= Sum ->
            {error, ["the release ", Name, " is another one now, and ", There, " runs it: give this one another name, and roll it"]};
        _ -> ok
    end;
hindered(Kind, #{name := Name} = Thing, All) ->
    case {lists:keyfind({Kind, Name}, 1, All), there(Kind, Name, All)} of
        {{_, Old}, [There | _]} ->
            case [atom_to_list(Key) || Key <- stays(Kind), maps:find(Key, Old) =/= maps:find(Key, Thing)] of
                [Key | _] -> {error, ["the ", atom_to_list(Kind), " ", Name, " has another ", Key, " now, and ", There, " is there: terminate its family first"]};
                [] when Kind =:= domain -> hosts_stay(Old, Thing, All);
                [] -> ok
            end;
        _ -> ok
    end.

stays(provider) -> [driver, namespace, context, cloud, arguments];
stays(domain) -> [provider, user, dir];
stays(family) -> [cookie_file].

hosts_stay(#{name := Name, machines := _}, #{machines := Count}, All) ->
    case length(atoll_deploy_cloud:machines(Name, All)) of
        There when There > Count -> {error, io_lib:format("the domain ~ts has ~b machines: terminate its families before it has fewer", [Name, There])};
        _ -> ok
    end;
hosts_stay(#{name := Name, hosts := Old}, #{hosts := New}, All) ->
    Ports = fun(Host, Hosts) -> [Port || #{host := Is, port := Port} <- Hosts, Is =:= Host] end,
    case [{Node, Host} || {{row, Node}, #{domain := Of, host := Host}} <- All, Of =:= Name, Ports(Host, Old) =/= Ports(Host, New)] of
        [{Node, Host} | _] ->
            {error, ["the domain ", Name, case Ports(Host, New) of [] -> " lacks the host "; _ -> " has another port for the host " end, Host, ", and ", Node, " is there"]};
        [] -> ok
    end.

%% What of a thing is there, or may be.
there(release, Name, All) -> [Node || {{row, Node}, #{release := Is} = Row} <- All, Is =:= Name orelse maps:get(before, Row, Is) =:= Name];
there(provider, Name, All) -> lists:append([there(domain, Domain, All) || {{domain, Domain}, #{provider := Of}} <- All, Of =:= Name]);
there(domain, Name, All) ->
    [Node || {{row, Node}, #{domain := Of}} <- All, Of =:= Name] ++
    [["something of the family ", Family] || {{sweep, Family}, Keys} <- All, {Of, _} <- Keys, Of =:= Name] ++
    [["the machine ", Machine] || #{name := Machine} <- atoll_deploy_cloud:machines(Name, All)] ++
    lists:append([pods(Family, All) || {{family, Family}, #{domains := [Of]}} <- All, Of =:= Name]);
there(family, Name, All) ->
    [Node || {{row, Node}, #{family := Of}} <- All, Of =:= Name] ++ pods(Name, All).

%% A cluster of Kubernetes has them until the family is terminated.
pods(Family, All) ->
    [
        ["a pod of the family ", Family]
     || {{family, Is}, #{domains := [Domain]}} <- All, Is =:= Family, {{domain, D}, #{provider := Provider}} <- All, D =:= Domain,
        {{provider, P}, #{driver := kubernetes}} <- All, P =:= Provider, proplists:get_value({count, Family}, All, 0) > 0
    ].

%% @doc Forgets a thing that nothing needs any more, and of a release its archive.
-spec forget(atoll_deploy_store:store(), atoll_deploy_thing:kind(), Name :: string(), mode()) -> ok | {error, unicode:chardata()}.
forget(Store, Kind, Name, Mode) ->
    All = all(Store),
    Needing =
        [["the ", atom_to_list(Other), " ", Of]
         || {{Other, Of}, Thing} <- All, lists:member(Other, atoll_deploy_thing:kinds()), lists:member({Kind, Name}, atoll_deploy_thing:references(Other, Thing))] ++
        there(Kind, Name, All),
    case {atoll_deploy_store:thing(Store, Kind, Name), Needing} of
        {{error, _} = Error, _} -> Error;
        {{ok, _}, []} when Mode =:= plan -> ok;
        {{ok, Thing}, []} ->
            ok = atoll_deploy_store:write(Store, [{{Kind, Name}, delete}]),
            forgotten(Store, Thing, [Sum || {{release, Is}, #{sum := Sum}} <- All, {release, Is} =/= {Kind, Name}]);
        {{ok, _}, [First | _]} -> {error, sentence(["the ", atom_to_list(Kind), " ", Name, " is needed by ", First])}
    end.

forgotten(#{dir := Dir}, #{sum := Sum}, Others) ->
    _ = [file:delete(atoll_deploy_release:archive(filename:join(Dir, "releases"), Sum)) || not lists:member(Sum, Others)],
    ok;
forgotten(_, _, _) ->
    ok.

%% @doc As it is said to people: with a capital, and a full stop.
-spec sentence(unicode:chardata()) -> unicode:chardata().
sentence(Text) ->
    case unicode:characters_to_list(Text) of
        [First | Rest] -> [string:uppercase([First]), Rest, $.];
        [] -> []
    end.
