%% SPDX-License-Identifier: Apache-2.0
%% @doc A whole deployment in one file of Erlang terms:
%%
%% ```
%% {provider, "lab", #{driver => ssh}}.
%% {release, "shop-1", #{path => "shop-1.tar.gz", start => "bin/shop daemon", stop => "bin/shop stop"}}.
%% {domain, "rack", #{provider => "lab", hosts => ["10.0.0.1", "10.0.0.2"], user => "erl"}}.
%% {family, "shop", #{release => "shop-1", domains => ["rack"]}}.
%% {deploy, "shop", 6}.
%% '''
%%
%% Promised: what is wrong with it is one sentence that names what and where, before anything is done. A thing may
%% refer to one that is known already and not in the file.
-module(atoll_deploy_file).

-export([read/1, check/3]).

-export_type([file/0, known/0]).

-type file() :: #{
    things := [{atoll_deploy_thing:kind(), atoll_deploy_thing:thing()}],
    deploy := [{Family :: string(), Count :: non_neg_integer()}]
}.
%% A thing stands behind those that it refers to.

-type known() :: [{atoll_deploy_thing:kind(), Name :: string()}].

-define(MOST, 10000).

%% @doc Reads a file's terms.
-spec read(file:filename()) -> {ok, [term()]} | {error, unicode:chardata()}.
read(File) ->
    case file:consult(File) of
        {ok, Terms} -> {ok, Terms};
        {error, {_, _, _} = Where} -> {error, [File, ": line ", file:format_error(Where)]};
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end.

%% @doc Checks the terms. Names of files in it count from the folder.
-spec check([term()], known(), Dir :: file:filename()) -> {ok, file()} | {error, unicode:chardata()}.
check(Terms, Known, Dir) ->
    try
        Things = [thing(Term, Dir) || Term <- Terms, element_of(Term) =/= deploy],
        Deploys = [deploys(Term) || Term <- Terms, element_of(Term) =:= deploy],
        Named = [{Kind, Name} || {Kind, #{name := Name}} <- Things],
        once(Named),
        once([{deploy, Family} || {Family, _} <- Deploys]),
        There = Named ++ Known,
        _ = [
            lists:member(To, There) orelse atoll_deploy_thing:wrong("the ~ts ~ts names the ~ts ~ts, which there is not", [Kind, Name, element(1, To), element(2, To)])
         || {Kind, #{name := Name} = Thing} <- Things, To <- atoll_deploy_thing:references(Kind, Thing)
        ],
        _ = [lists:member({family, Family}, There) orelse atoll_deploy_thing:wrong("{deploy, ~0tp, ~b} names a family that there is not", [Family, Count])
             || {Family, Count} <- Deploys],
        {ok, #{things => [Thing || Kind <- atoll_deploy_thing:kinds(), {Is, _} = Thing <- Things, Is =:= Kind], deploy => Deploys}}
    catch
        throw:{wrong, Sentence} -> {error, Sentence}
    end.

element_of(Term) when is_tuple(Term), tuple_size(Term) > 0 -> element(1, Term);
element_of(_) -> none.

thing({Kind, Name, Given}, Dir) when is_atom(Kind) ->
    case lists:member(Kind, atoll_deploy_thing:kinds()) of
        true ->
            case atoll_deploy_thing:check(Kind, Name, Given) of
                {ok, Thing} -> {Kind, placed(Thing, Dir)};
                {error, Sentence} -> throw({wrong, Sentence})
            end;
        false ->
            atoll_deploy_thing:wrong("there is no ~0tp: there are provider, release, domain, family and deploy", [Kind])
    end;
thing(Term, _) ->
    atoll_deploy_thing:wrong("~0tP is none of its terms, which are {provider | release | domain | family, Name, #{...}} and {deploy, Family, N}", [Term, 8]).

%% Where it is read again, another folder may be the current one.
placed(Thing, Dir) ->
    maps:map(
        fun
            (Key, File) when Key =:= path; Key =:= cookie_file; Key =:= secret_file; Key =:= ssh_dir -> filename:absname(File, Dir);
            (_, Value) -> Value
        end,
        Thing
    ).

deploys({deploy, Family, Count}) when is_integer(Count), Count >= 0, Count =< ?MOST ->
    atoll_deploy_thing:is_name(Family) orelse atoll_deploy_thing:wrong("~0tP is no name of a family", [Family, 8]),
    {Family, Count};
deploys(Term) ->
    atoll_deploy_thing:wrong("~0tP must be {deploy, Family, N}, with a whole number from 0 to ~b", [Term, 8, ?MOST]).

once(Named) ->
    _ = [atoll_deploy_thing:wrong("the ~ts ~ts stands there twice", [Kind, Name]) || {Kind, Name} <- lists:sublist(Named -- lists:usort(Named), 1)],
    ok.
