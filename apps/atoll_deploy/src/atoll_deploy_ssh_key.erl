%% SPDX-License-Identifier: Apache-2.0
%% @doc The keys of hosts and of the user, for OTP's ssh client: as OTP has them, but the key of a host that is reached
%% through another is looked for by its own name, and who connects is told why one was refused.
-module(atoll_deploy_ssh_key).

-export([is_host_key/5, add_host_key/4, user_key/2, known/2]).

%% The behaviour ssh_client_key_api, which may not be there.
-define(FILE_MODULE, (list_to_atom("ssh_file"))).

%% @doc Whether it is the key of the host that is meant.
-spec is_host_key(Key :: term(), term(), inet:port_number(), Algorithm :: atom(), Options :: [term()]) -> boolean().
is_host_key(Key, _At, _Port, Algorithm, Options) ->
    Private = proplists:get_value(key_cb_private, Options),
    {Host, Port} = proplists:get_value(named, Private),
    case (?FILE_MODULE):is_host_key(Key, [Host], Port, Algorithm, Options) of
        true ->
            true;
        _ ->
            {Pid, Tag} = proplists:get_value(tell, Private),
            Pid ! {Tag, case known(proplists:get_value(user_dir, Options), {Host, Port}) of [] -> unknown; [_ | _] -> another end},
            false
    end.

%% @doc The algorithms of the keys that the user's file has of a host, where it stands there in plain text: a host that has
%% several keys is to show one of these.
-spec known(Folder :: file:filename(), {Host :: string(), inet:port_number()}) -> [atom()].
known(Folder, {Host, Port}) ->
    Names = [lists:concat(["[", Host, "]:", Port]) | [Host || Port =:= 22]],
    case file:read_file(filename:join(Folder, "known_hosts")) of
        {ok, Text} ->
            lists:append([
                algorithms(Type)
             || Line <- string:lexemes(unicode:characters_to_list(Text), "\n"), [Of, Type | _] <- [string:lexemes(Line, " \t")],
                lists:any(fun(Name) -> lists:member(Name, Names) end, string:lexemes(Of, ","))
            ]);
        {error, _} -> []
    end.

algorithms("ssh-rsa") -> ['rsa-sha2-256', 'rsa-sha2-512'];
algorithms("ssh-ed25519") -> ['ssh-ed25519'];
algorithms("ecdsa-sha2-nistp256") -> ['ecdsa-sha2-nistp256'];
algorithms("ecdsa-sha2-nistp384") -> ['ecdsa-sha2-nistp384'];
algorithms("ecdsa-sha2-nistp521") -> ['ecdsa-sha2-nistp521'];
algorithms(_) -> [].

%% @doc None is ever added.
-spec add_host_key(term(), inet:port_number(), Key :: term(), Options :: [term()]) -> {error, refused}.
add_host_key(_, _, _, _) -> {error, refused}.

%% @doc A key of the user.
-spec user_key(Algorithm :: atom(), Options :: [term()]) -> {ok, term()} | {error, term()}.
user_key(Algorithm, Options) -> (?FILE_MODULE):user_key(Algorithm, Options).
