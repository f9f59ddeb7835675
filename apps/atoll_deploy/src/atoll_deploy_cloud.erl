%% SPDX-License-Identifier: Apache-2.0
%% @doc Machines of a cloud, for the domains of providers that are one: by Apache Libcloud, in a Python program that ends
%% with who asks it. What it knows to create, list and destroy machines with, this does.
%%
%% Promised: a machine is known before nodes are put on it, and until it is destroyed; if one of several cannot be had, none
%% is left of those that were asked for with it. Machines have names that begin with the mark of this state: of a master that
%% was killed while it created some, these are found, and destroyed before others are created.
%%
%% Not promised: that a machine lets anybody in. Its image has the user's key, and known_hosts its key.
-module(atoll_deploy_cloud).

-export([ensure/2, release/2, machines/2, with_machines/2]).
-export([open/2, create/3, list/3, destroy/3, close/1]).

-export_type([machine/0, cloud/0]).

-type machine() :: #{id := string(), name := string(), address := string()}.

-type cloud() :: port().

-type known() :: [{term(), term()}].
%% All that a store has.

-define(MS, 900000).

%% @doc The machines that a domain has.
-spec machines(Domain :: string(), known()) -> [machine()].
machines(Domain, All) -> proplists:get_value({machine, Domain}, All, []).

%% @doc The domains, those of clouds with their machines as hosts. One that is still to be created has a name for an address.
-spec with_machines(#{string() => atoll_deploy_thing:thing()}, known()) -> #{string() => atoll_deploy_thing:thing()}.
with_machines(Domains, All) ->
    maps:map(
        fun
            (Name, #{machines := Count} = Domain) ->
                There = [Address || #{address := Address} <- machines(Name, All)],
                New = [lists:concat(["new-", N, ".", Name]) || N <- lists:seq(length(There) + 1, Count)],
                Domain#{hosts := [#{host => Host, port => 22, attributes => []} || Host <- There ++ New]};
            (_, Domain) -> Domain
        end,
        Domains
    ).

%% @doc Has the clouds of a family's domains have as many machines as they are to have.
-spec ensure(atoll_deploy_store:store(), Family :: string()) -> ok | {error, unicode:chardata()}.
ensure(Store, Family) ->
    each(Store, Family, fun(Cloud, Provider, #{name := Domain} = Thing, Machines) ->
        Count = maps:get(machines, Thing, 1),
        case Count - length(Machines) of
            Lacking when Lacking > 0 ->
                Prefix = prefix(Store, Domain),
                %% Of a master that was killed.
                ok = found(destroy(Cloud, Prefix, {but, [Id || #{id := Id} <- Machines]})),
                Names = [lists:concat([Prefix, N]) || N <- lists:seq(length(Machines) + 1, Count)],
                case create(Cloud, Names, Provider) of
                    {ok, New} -> atoll_deploy_store:write(Store, [{{machine, Domain}, {value, Machines ++ New}}]);
                    {error, Why} -> {error, ["No machine was created for the domain ", Domain, ": ", Why, $.]}
                end;
            _ ->
                ok
        end
    end).

found(ok) -> ok;
found({error, Why}) -> throw({cloud, Why}).

prefix(Store, Domain) -> lists:concat(["atoll-", atoll_deploy_store:id(Store), "-", Domain, "-"]).

%% @doc Destroys the machines of a family's domains on which no node is left.
-spec release(atoll_deploy_store:store(), Family :: string()) -> ok | {error, unicode:chardata()}.
release(Store, Family) ->
    Used = [Domain || #{domain := Domain} <- atoll_deploy_store:rows(Store)],
    each(Store, Family, fun(Cloud, _, #{name := Domain}, Machines) ->
        case lists:member(Domain, Used) of
            true -> ok;
            false ->
                case destroy(Cloud, prefix(Store, Domain), {these, [Id || #{id := Id} <- Machines]}) of
                    ok -> atoll_deploy_store:write(Store, [{{machine, Domain}, delete}]);
                    {error, Why} -> {error, ["The machines of the domain ", Domain, " were not all destroyed: ", Why, $.]}
                end
        end
    end).

%% The domains of the family that are of a cloud.
each(Store, Family, Do) ->
    All = atoll_deploy_store:all(Store),
    Domains = [
        {Provider, Domain}
     || {{family, Name}, #{domains := Of}} <- All, Name =:= Family, One <- Of, {{domain, Is}, #{provider := By} = Domain} <- All, Is =:= One,
        {{provider, P}, #{driver := cloud} = Provider} <- All, P =:= By
    ],
    each_of(Domains, All, Do).

each_of([], _, _) ->
    ok;
each_of([{#{name := Name} = Provider, #{name := Domain} = Thing} | More], All, Do) ->
    Done =
        case open(Provider, []) of
            {ok, Cloud} ->
                try
                    Do(Cloud, Provider, Thing, machines(Domain, All))
                catch
                    throw:{cloud, Why} -> {error, ["The cloud ", Name, ": ", Why, $.]}
                after
                    close(Cloud)
                end;
            {error, Why} ->
                {error, ["The cloud ", Name, " cannot be used: ", Why, $.]}
        end,
    case Done of
        ok -> each_of(More, All, Do);
        {error, _} = Error -> Error
    end.

%% The program

%% @doc Starts the program for a provider. It ends with the calling process.
-spec open(atoll_deploy_thing:thing(), Env :: [{string(), string()}]) -> {ok, cloud()} | {error, unicode:chardata()}.
open(#{cloud := Cloud, python := Python, arguments := Arguments} = Provider, Env) ->
    case {os:find_executable(Python), secret(Provider)} of
        {false, _} -> {error, ["there is no program ", Python]};
        {_, {error, _} = Error} -> Error;
        {Program, {ok, Secret}} ->
            Script = filename:join(code:priv_dir(atoll_deploy), "cloud.py"),
            Port = open_port({spawn_executable, Program}, [{args, ["-u", Script]}, {env, Env}, {line, 4096}, exit_status, binary, use_stdio, hide]),
            case asked(Port, [{do, open}, {cloud, text(Cloud)}, {arguments, [text(A) || A <- Arguments]}, {secret, Secret}]) of
                {ok, []} -> {ok, Port};
                {error, _} = Error -> close(Port), Error
            end
    end.

secret(#{secret_file := File}) ->
    case file:read_file(File) of
        {ok, Secret} -> {ok, string:trim(Secret)};
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end;
secret(_) ->
    {ok, <<>>}.

%% @doc Creates machines of these names, all or none.
-spec create(cloud(), Names :: [string()], atoll_deploy_thing:thing()) -> {ok, [machine()]} | {error, unicode:chardata()}.
create(Cloud, Names, #{size := Size, image := Image}) ->
    asked(Cloud, [{do, create}, {names, [text(Name) || Name <- Names]}, {size, text(Size)}, {image, text(Image)}]).

%% @doc The machines whose names begin so, and those of these numbers.
-spec list(cloud(), Prefix :: string(), Ids :: [string()]) -> {ok, [machine()]} | {error, unicode:chardata()}.
list(Cloud, Prefix, Ids) ->
    asked(Cloud, [{do, list}, {prefix, text(Prefix)}, {ids, [text(Id) || Id <- Ids]}]).

%% @doc Destroys these machines and those whose names begin so; or those whose names begin so, but for these.
-spec destroy(cloud(), Prefix :: string(), {these | but, Ids :: [string()]}) -> ok | {error, unicode:chardata()}.
destroy(Cloud, Prefix, {these, Ids}) ->
    case asked(Cloud, [{do, destroy}, {prefix, text(Prefix)}, {ids, [text(Id) || Id <- Ids]}]) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end;
destroy(Cloud, Prefix, {but, Ids}) ->
    case list(Cloud, Prefix, []) of
        {ok, Found} ->
            case [Id || #{id := Id} <- Found, not lists:member(Id, Ids)] of
                [] -> ok;
                Strays -> destroy(Cloud, "", {these, Strays})
            end;
        {error, _} = Error -> Error
    end.

%% @doc Ends the program. The machines are there.
-spec close(cloud()) -> ok.
close(Cloud) ->
    _ = erlang:port_info(Cloud) =/= undefined andalso port_close(Cloud),
    ok.

asked(Port, Request) ->
    true = port_command(Port, [atoll_cli_json:encode({Request}), $\n]),
    answer(Port, []).

answer(Port, Machines) ->
    receive
        {Port, {data, {eol, <<"done">>}}} -> {ok, lists:reverse(Machines)};
        {Port, {data, {eol, <<"error\t", Why/binary>>}}} -> {error, Why};
        {Port, {data, {eol, <<"machine\t", Line/binary>>}}} ->
            [Id, Name, Address] = [unicode:characters_to_list(Word) || Word <- binary:split(Line, <<"\t">>, [global])],
            answer(Port, [#{id => Id, name => Name, address => Address} | Machines]);
        %% What a library prints is for nobody.
        {Port, {data, _}} -> answer(Port, Machines);
        {Port, {exit_status, Status}} -> {error, io_lib:format("the program for clouds ended with ~b", [Status])}
    after ?MS ->
        {error, "the cloud did not answer in time"}
    end.

text(Text) -> unicode:characters_to_binary(Text).
