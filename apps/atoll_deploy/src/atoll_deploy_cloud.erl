%% SPDX-License-Identifier: Apache-2.0
%% @doc Machines of a cloud, for the domains of providers that are one: by Apache Libcloud, in a Python program that ends
%% with who asks it. What it knows to create, list and destroy machines with, this does.
%%
%% Promised: a machine is known before nodes are put on it, and until it is destroyed; if one of several cannot be had, or the
%% master ends, those that were asked for with it are destroyed, and one that could not be is named. Machines have names that say
%% of which state and domain they are: what a master has left that was killed is found by that, and destroyed before others are
%% created. None is created before a node is to be started on it.
%%
%% Not promised: that a machine lets anybody in. Its image has the user's key, and known_hosts its key.
-module(atoll_deploy_cloud).

-export([ensure/3, release/2, machines/2, with_machines/2]).
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
                New = [lists:concat(["new-", N, ".", Name]) || N <- lists:seq(length(There) + 1, max(Count, length(There)))],
                Domain#{hosts := [#{host => Host, port => 22, attributes => []} || Host <- There ++ New]};
            (_, Domain) -> Domain
        end,
        Domains
    ).

%% @doc Has those domains of a family have all of their machines which lack some that nodes are to be started on, as the plan says. It
%% is made if any domain lacks some.
-spec ensure(atoll_deploy_store:store(), Family :: string(), Plan :: fun(() -> {ok, [atoll_deploy_plan:step()]} | {error, unicode:chardata()})) ->
    ok | {error, unicode:chardata()}.
ensure(Store, Family, Plan) ->
    All = atoll_deploy_store:all(Store),
    case [Of || {_, #{name := Name} = Domain} = Of <- domains(Family, All), lacking(Domain, machines(Name, All)) > 0] of
        [] -> ok;
        Lacking ->
            case Plan() of
                {ok, Steps} ->
                    Wanted = [Domain || {start, #{domain := Domain, host := Host}} <- Steps, not lists:member(Host, addresses(Domain, All))],
                    each([Of || {_, #{name := Name}} = Of <- Lacking, lists:member(Name, Wanted)], Store, fun created/5);
                {error, _} = Error -> Error
            end
    end.

lacking(#{machines := Count}, Machines) -> Count - length(Machines).

addresses(Domain, All) -> [Address || #{address := Address} <- machines(Domain, All)].

created(Cloud, Provider, #{name := Domain, machines := Count}, Machines, Store) ->
    Prefix = prefix(Store, Domain),
    %% Of a master that was killed.
    Strays = destroy(Cloud, Prefix, {but, [Id || #{id := Id} <- Machines]}),
    Names = [lists:concat([Prefix, N]) || N <- lists:seq(length(Machines) + 1, Count)],
    case Strays =:= ok andalso create(Cloud, Names, Provider) of
        {ok, New} -> atoll_deploy_store:write(Store, [{{machine, Domain}, {value, Machines ++ New}}]);
        false -> {error, _} = Strays, refused(Domain, Strays);
        {error, _} = Error -> refused(Domain, Error)
    end.

refused(Domain, {error, Why}) -> {error, ["The machines of the domain ", Domain, " could not be had: ", Why, $.]}.

prefix(Store, Domain) -> lists:concat(["atoll-", atoll_deploy_store:id(Store), "-", Domain, "-"]).

%% @doc Destroys the machines of a family's domains on which no node is left.
-spec release(atoll_deploy_store:store(), Family :: string()) -> ok | {error, unicode:chardata()}.
release(Store, Family) ->
    Used = [Domain || #{domain := Domain} <- atoll_deploy_store:rows(Store)],
    Unused = [Of || {_, #{name := Domain}} = Of <- domains(Family, atoll_deploy_store:all(Store)), not lists:member(Domain, Used)],
    each(Unused, Store, fun destroyed/5).

destroyed(Cloud, _, #{name := Domain}, Machines, Store) ->
    case destroy(Cloud, prefix(Store, Domain), {these, [Id || #{id := Id} <- Machines]}) of
        ok -> atoll_deploy_store:write(Store, [{{machine, Domain}, delete}]);
        {error, Why} -> {error, ["The machines of the domain ", Domain, " were not all destroyed: ", Why, $.]}
    end.

%% The domains of the family that are of a cloud, each with its provider.
domains(Family, All) ->
    [
        {Provider, Domain}
     || {{family, Name}, #{domains := Of}} <- All, Name =:= Family, One <- Of, {{domain, Is}, #{provider := By} = Domain} <- All, Is =:= One,
        {{provider, P}, #{driver := cloud} = Provider} <- All, P =:= By
    ].

each([], _, _) ->
    ok;
each([{#{name := Name} = Provider, #{name := Domain} = Thing} | More], #{dir := Dir} = Store, Do) ->
    Done =
        case open(Provider, filename:join(Dir, "cloud.lock")) of
            {ok, Cloud} ->
                try
                    Do(Cloud, Provider, Thing, machines(Domain, atoll_deploy_store:all(Store)), Store)
                after
                    close(Cloud)
                end;
            {error, Why} ->
                {error, ["The cloud ", Name, " cannot be used: ", Why, $.]}
        end,
    case Done of
        ok -> each(More, Store, Do);
        {error, _} = Error -> Error
    end.

%% The program

%% @doc Starts the program for a provider, when no other one has the file that says so. It ends with the calling process.
-spec open(atoll_deploy_thing:thing(), Lock :: file:filename() | none) -> {ok, cloud()} | {error, unicode:chardata()}.
open(#{cloud := Cloud, python := Python, arguments := Arguments} = Provider, Lock) ->
    case {os:find_executable(Python), secret(Provider)} of
        {false, _} -> {error, ["there is no program ", Python]};
        {_, {error, _} = Error} -> Error;
        {Program, {ok, Secret}} ->
            Script = filename:join(code:priv_dir(atoll_deploy), "cloud.py"),
            Port = open_port({spawn_executable, Program}, [{args, ["-u", Script]}, {line, 4096}, exit_status, binary, use_stdio, hide]),
            case asked(Port, [{do, open}, {cloud, text(Cloud)}, {arguments, [text(A) || A <- Arguments]}, {secret, Secret}, {lock, case Lock of none -> <<>>; _ -> text(Lock) end}]) of
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

%% @doc The machines whose names are this and a number, and those with these ids.
-spec list(cloud(), Prefix :: string(), Ids :: [string()]) -> {ok, [machine()]} | {error, unicode:chardata()}.
list(Cloud, Prefix, Ids) ->
    asked(Cloud, [{do, list}, {prefix, text(Prefix)}, {ids, [text(Id) || Id <- Ids]}]).

%% @doc Destroys these machines and those whose names are this and a number; or those with such names, but for these.
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
        {Port, {exit_status, Status}} -> {error, io_lib:format("the program for clouds ended with ~b", [Status])}
    after ?MS ->
        {error, "the cloud did not answer in time"}
    end.

text(Text) -> unicode:characters_to_binary(Text).
