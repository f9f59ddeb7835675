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

%% @doc As put/5, of several that were checked: all of them, or none if something is wrong with one.
-spec put_all(atoll_deploy_store:store(), [{atoll_deploy_thing:kind(), atoll_deploy_thing:thing()}], mode()) ->
    {ok, [{atoll_deploy_thing:thing(), change()}]} | {error, unicode:chardata()}.
put_all(Store, Things, Mode) ->
    All = atoll_deploy_store:all(Store),
    Rows = atoll_deploy_store:rows(Store),
    Checked = [
        case whole(Store, Kind, Thing, Mode) of
            {ok, Whole} -> {Kind, Whole, hindered(Kind, Whole, Rows, All)};
            {error, _} = Error -> {Kind, Thing, Error}
        end
     || {Kind, Thing} <- Things
    ],
    case [Sentence || {_, _, {error, Sentence}} <- Checked] of
        [] ->
            _ = [ok = atoll_deploy_store:write(Store, [{{Kind, Name}, {value, Whole}} || {Kind, #{name := Name} = Whole, ok} <- Checked]) || Mode =:= run],
            {ok, [
                {Whole, case lists:keyfind({Kind, Name}, 1, All) of {_, Whole} -> same; {_, _} -> changed; false -> new end}
             || {Kind, #{name := Name} = Whole, ok} <- Checked
            ]};
        [Sentence | _] ->
            {error, sentence(Sentence)}
    end.

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

%% @doc Forgets a thing that nothing needs any more, and of a release its archive.
-spec forget(atoll_deploy_store:store(), atoll_deploy_thing:kind(), Name :: string(), mode()) -> ok | {error, unicode:chardata()}.
forget(Store, Kind, Name, Mode) ->
    All = atoll_deploy_store:all(Store),
    Needing =
        [[atom_to_list(Other), " ", Of]
         || {{Other, Of}, Thing} <- All, lists:member(Other, atoll_deploy_thing:kinds()), lists:member({Kind, Name}, atoll_deploy_thing:references(Other, Thing))] ++
        [["node ", Node] || #{family := Family, release := Release, node := Node} <- atoll_deploy_store:rows(Store), {Kind, Name} =:= {family, Family} orelse {Kind, Name} =:= {release, Release}] ++
        [["machine ", Machine] || Kind =:= domain, #{name := Machine} <- atoll_deploy_cloud:machines(Name, All)],
    case {atoll_deploy_store:thing(Store, Kind, Name), Needing} of
        {{error, _} = Error, _} -> Error;
        {{ok, _}, []} when Mode =:= plan -> ok;
        {{ok, Thing}, []} ->
            ok = atoll_deploy_store:write(Store, [{{Kind, Name}, delete}]),
            forgotten(Store, Thing, [Sum || {{release, Is}, #{sum := Sum}} <- All, {release, Is} =/= {Kind, Name}]);
        {{ok, _}, [First | _]} -> {error, sentence(["the ", atom_to_list(Kind), " ", Name, " is needed by the ", First])}
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
