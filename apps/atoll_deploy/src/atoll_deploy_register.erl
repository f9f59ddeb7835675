%% SPDX-License-Identifier: Apache-2.0
%% @doc Registers what deployments are made of, and forgets it. Nodes that run do not lose what they were made of.
-module(atoll_deploy_register).

-export([put/4, put_checked/3, forget/3, known/1, sentence/1]).

%% @doc Checks a thing, and registers it or changes the one of that name. A release is read now, and kept as it is.
-spec put(atoll_deploy_store:store(), atoll_deploy_thing:kind(), Name :: string(), map()) -> ok | {error, unicode:chardata()}.
put(Store, Kind, Name, Given) ->
    {ok, Dir} = file:get_cwd(),
    case atoll_deploy_file:check([{Kind, Name, Given}], known(Store), Dir) of
        {ok, #{things := [{Kind, Thing}]}} -> put_checked(Store, Kind, Thing);
        {error, Sentence} -> {error, sentence(Sentence)}
    end.

%% @doc The things that there are.
-spec known(atoll_deploy_store:store()) -> atoll_deploy_file:known().
known(Store) -> [{Kind, Name} || {{Kind, Name}, _} <- atoll_deploy_store:all(Store), lists:member(Kind, atoll_deploy_thing:kinds())].

%% @doc As put/4, of one that was checked.
-spec put_checked(atoll_deploy_store:store(), atoll_deploy_thing:kind(), atoll_deploy_thing:thing()) -> ok | {error, unicode:chardata()}.
put_checked(#{dir := Dir} = Store, release, #{path := _} = Release) ->
    case atoll_deploy_release:keep(Release, filename:join(Dir, "releases")) of
        {ok, Sum} -> put_whole(Store, release, Release#{sum => Sum});
        {error, Sentence} -> {error, sentence(Sentence)}
    end;
put_checked(Store, Kind, Thing) ->
    put_whole(Store, Kind, Thing).

put_whole(Store, Kind, #{name := Name} = Thing) ->
    All = atoll_deploy_store:all(Store),
    case hindered(Kind, Thing, atoll_deploy_store:rows(Store), All) of
        ok -> atoll_deploy_store:write(Store, [{{Kind, Name}, {value, Thing}}]);
        {error, Sentence} -> {error, sentence(Sentence)}
    end.

hindered(release, #{name := Name} = Release, Rows, All) ->
    case {lists:keyfind({release, Name}, 1, All), [Node || #{release := Is, node := Node} <- Rows, Is =:= Name]} of
        {{_, #{sum := Sum}}, [Node | _]} when not is_map_key(sum, Release); map_get(sum, Release) =/= Sum ->
            {error, ["the release ", Name, " is another one now, and ", Node, " runs it: give this one another name, and roll it"]};
        _ -> ok
    end;
hindered(domain, #{name := Name, hosts := Hosts} = Domain, Rows, _) when not is_map_key(machines, Domain) ->
    case [{Node, Host} || #{domain := Of, node := Node, host := Host} <- Rows, Of =:= Name, not lists:any(fun(#{host := Is}) -> Is =:= Host end, Hosts)] of
        [{Node, Host} | _] -> {error, ["the domain ", Name, " lacks the host ", Host, ", and ", Node, " is there"]};
        [] -> ok
    end;
hindered(_, _, _, _) ->
    ok.

%% @doc Forgets a thing that nothing needs any more.
-spec forget(atoll_deploy_store:store(), atoll_deploy_thing:kind(), Name :: string()) -> ok | {error, unicode:chardata()}.
forget(Store, Kind, Name) ->
    All = atoll_deploy_store:all(Store),
    Needing =
        [[atom_to_list(Other), " ", Of]
         || {{Other, Of}, Thing} <- All, lists:member(Other, atoll_deploy_thing:kinds()), lists:member({Kind, Name}, atoll_deploy_thing:references(Other, Thing))] ++
        [["node ", Node] || #{family := Family, release := Release, node := Node} <- atoll_deploy_store:rows(Store), {Kind, Name} =:= {family, Family} orelse {Kind, Name} =:= {release, Release}] ++
        [["machine ", Machine] || Kind =:= domain, #{name := Machine} <- atoll_deploy_cloud:machines(Name, All)],
    case {atoll_deploy_store:thing(Store, Kind, Name), Needing} of
        {{error, _} = Error, _} -> Error;
        {{ok, _}, []} -> atoll_deploy_store:write(Store, [{{Kind, Name}, delete}]);
        {{ok, _}, [First | _]} -> {error, sentence(["the ", atom_to_list(Kind), " ", Name, " is needed by the ", First])}
    end.

%% @doc As it is said to people: with a capital, and a full stop.
-spec sentence(unicode:chardata()) -> unicode:chardata().
sentence(Text) ->
    case unicode:characters_to_list(Text) of
        [First | Rest] -> [string:uppercase([First]), Rest, $.];
        [] -> []
    end.
