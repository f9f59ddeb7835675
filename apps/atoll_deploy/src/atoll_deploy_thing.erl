%% SPDX-License-Identifier: Apache-2.0
%% @doc What a deployment is described by: providers, releases, domains and families, each a map with a name. What is
%% wrong with one is a sentence that names it and its key. Pure.
%%
%% A provider says how hosts are reached, a domain which hosts those are, a release what runs there, and a family is
%% the nodes that are alike: a release, the domains that it may use, flags, a cookie, what a node needs.
%%
%% No secret stands in one: a key, a cookie or a token is the name of a file.
-module(atoll_deploy_thing).

-export([check/3, kinds/0, keys/1, references/2, is_name/1, wrong/2]).

-export_type([kind/0, thing/0, host/0, needs/0]).

-type kind() :: provider | release | domain | family.

-type thing() :: #{name := string(), atom() => term()}.
%% With every key of its kind that has a value.

-type host() :: #{
    %% An address or a name, by which its nodes are named too.
    host := string(),
    port := inet:port_number(),
    %% What it has for nodes; without, it is not counted.
    cores => pos_integer(),
    memory_mb => pos_integer(),
    attributes := [string()]
}.

-type needs() :: #{cores => pos_integer(), memory_mb => pos_integer(), attributes => [string()]}.
%% Of one node.

-type check() :: fun((term()) -> {ok, term()} | error).

-define(SSH_PORT, 22).
%% Nothing in them means anything to a shell.
-define(USER, "[a-zA-Z0-9_][a-zA-Z0-9_.-]*").
-define(HERE, [#{host => "127.0.0.1", port => ?SSH_PORT, attributes => []}]).
-define(HOST, "[a-zA-Z0-9][a-zA-Z0-9.-]*").

%% @doc The kinds of things, each behind those that it refers to.
-spec kinds() -> [kind(), ...].
kinds() -> [provider, release, domain, family].

%% @doc The keys of a kind: what each is without one (`required', or `none' for nothing), and what it must be.
-spec keys(kind()) -> [{Key :: atom(), Without :: term(), Must :: string(), check()}, ...].
keys(provider) ->
    [
        {driver, required, "local, ssh, kubernetes or cloud", one_of([local, ssh, kubernetes, cloud])},
        {ssh_dir, none, "the folder of keys and known_hosts, as a text", fun text/1},
        {jump, none, "a host between, as \"USER@HOST:PORT\"", fun jump/1},
        {namespace, "default", "the name of a namespace, as a text", fun dns_label/1},
        {context, none, "a context of kubectl, as a text", fun text/1},
        {kubectl, "kubectl", "a program, as a text", fun text/1},
        {cloud, none, "the name of a driver of Libcloud, as a text", fun text/1},
        {secret_file, none, "a file with the secret of the cloud, as a text", fun text/1},
        {arguments, [], "a list of texts, the arguments of the cloud's driver without its secret", fun texts/1},
        {size, none, "the name of a size of the cloud, as a text", fun text/1},
        {image, none, "the name of an image of the cloud, as a text", fun text/1},
        {python, "python3", "a program, as a text", fun text/1}
    ];
keys(release) ->
    [
        {path, none, "a .tar.gz, or a folder of modules, as a text", fun text/1},
        {sha256, none, "a checksum of 64 digits, as a text", fun sum/1},
        {start, none, "a command, as a text", fun text/1},
        {stop, none, "a command, as a text", fun text/1},
        {health, none, "a command, as a text", fun text/1},
        {apps, [], "a list of texts, the applications to start", fun texts/1},
        {image, none, "an image for Kubernetes, as a text", fun text/1}
    ];
keys(domain) ->
    [
        {provider, required, "the name of a provider, as a text", fun text/1},
        {hosts, ["127.0.0.1"], "a list of hosts, each \"HOST\", \"HOST:PORT\" or {\"HOST\", #{cores => N, memory_mb => N, attributes => [Text]}}", fun hosts/1},
        {machines, none, "a whole number from 1 to 1000, the machines that a cloud is to give", whole(1, 1000)},
        {user, none, "a user's name, as a text", fun user/1},
        {dir, ".atoll-deploy", "a folder on the hosts, as a text", fun text/1}
    ];
keys(family) ->
    [
        {release, required, "the name of a release, as a text", fun text/1},
        {domains, required, "a list of names of domains, with one at least", fun some_texts/1},
        {flags, [], "a list of texts, the arguments of erl", fun texts/1},
        {cookie_file, none, "a file with the cookie, as a text", fun text/1},
        {needs, #{}, "#{cores => N, memory_mb => N, attributes => [Text]}", fun needs/1},
        {seconds, 30, "a whole number from 1 to 3600, in which a node is to be well", whole(1, 3600)}
    ].

%% @doc A thing with all its keys; or the first thing that is wrong with it, in a sentence.
-spec check(kind(), Name :: term(), Given :: term()) -> {ok, thing()} | {error, unicode:chardata()}.
check(Kind, Name, Given) ->
    try
        is_name(Name) orelse wrong("the name of a ~ts is a letter and at most 29 letters, digits, _ or -, not ~ts", [Kind, shown(Name)]),
        is_map(Given) orelse wrong("the ~ts ~ts is to be a map", [Kind, Name]),
        Known = [Key || {Key, _, _, _} <- keys(Kind)],
        _ = [wrong("the ~ts ~ts has no key ~0tp~ts", [Kind, Name, Key, meant(Key, Known)]) || Key <- lists:sort(maps:keys(Given)) -- Known],
        Thing = maps:from_list([{name, Name} | lists:append([value(Kind, Name, Key, Given) || Key <- keys(Kind)])]),
        ok = together(Kind, Thing),
        {ok, Thing}
    catch
        throw:{wrong, Sentence} -> {error, Sentence}
    end.

shown(Name) -> case is_text(Name) of true -> [$", Name, $"]; false -> io_lib:format("~0tP", [Name, 8]) end.

%% @doc Ends a check with this sentence.
-spec wrong(io:format(), [term()]) -> no_return().
wrong(Format, Args) -> throw({wrong, io_lib:format(Format, Args)}).

%% @doc Whether it may be a name.
-spec is_name(term()) -> boolean().
is_name(Name) ->
    is_text(Name) andalso re:run(Name, "^[a-zA-Z][a-zA-Z0-9_-]{0,29}$", [unicode, dollar_endonly, {capture, none}]) =:= match.

meant(Key, Known) ->
    case atoll_cli_nearest:of_words(lists:flatten(io_lib:format("~tp", [Key])), [atom_to_list(Is) || Is <- Known]) of
        {ok, Near} -> ["; did you mean ", Near, "?"];
        none -> ["; there are ", lists:join(", ", [atom_to_list(Is) || Is <- Known])]
    end.

value(Kind, Name, {Key, Without, Must, Check}, Given) ->
    case {Given, Without} of
        {#{Key := Value}, _} ->
            case Check(Value) of
                {ok, Is} -> [{Key, Is}];
                %% It may be a secret that was put here by mistake, so it is not repeated.
                error -> wrong("~ts of the ~ts ~ts must be ~ts", [Key, Kind, Name, Must])
            end;
        {_, required} -> wrong("the ~ts ~ts lacks ~ts, which is ~ts", [Kind, Name, Key, Must]);
        {_, none} -> [];
        {_, _} -> {ok, Is} = Check(Without), [{Key, Is}]
    end.

together(provider, #{driver := Driver, name := Name} = Thing) ->
    _ = [wrong("the provider ~ts is a cloud, and lacks ~ts", [Name, Key]) || Driver =:= cloud, Key <- [cloud, size, image], not is_map_key(Key, Thing)],
    For = [{jump, [ssh]}, {ssh_dir, [ssh, cloud]}, {context, [kubernetes]}] ++ [{Key, [cloud]} || Key <- [cloud, secret_file, size, image]],
    _ = [
        wrong("the provider ~ts has the key ~ts, which is for ~ts", [Name, Key, lists:join(" and ", [atom_to_list(Is) || Is <- Drivers])])
     || {Key, Drivers} <- For, is_map_key(Key, Thing), not lists:member(Driver, Drivers)
    ],
    ok;
together(release, #{name := Name} = Thing) when not is_map_key(path, Thing), not is_map_key(sha256, Thing), not is_map_key(image, Thing) ->
    wrong("the release ~ts has neither a path nor an image", [Name]);
together(family, #{name := Name, flags := Flags}) ->
    _ = [wrong("the flags of the family ~ts have -setcookie, which every list of processes would show: put it in a cookie_file", [Name]) || lists:any(fun(Flag) -> lists:prefix("-setcookie", Flag) end, Flags)],
    %% Or two of two families could have one name: a number stands behind it.
    case lists:member(lists:last(Name), "0123456789") of
        true -> wrong("the name of the family ~ts ends with a digit, and its nodes' names are it and a number", [Name]);
        false -> ok
    end;
together(domain, #{machines := _, hosts := Hosts, name := Name}) when Hosts =/= ?HERE ->
    wrong("the domain ~ts has hosts, and machines of a cloud in their place", [Name]);
together(domain, #{hosts := Hosts, name := Name}) ->
    Names = [Host || #{host := Host} <- Hosts],
    _ = [wrong("the domain ~ts has the host ~ts twice", [Name, Twice]) || Twice <- Names -- lists:usort(Names)],
    ok;
together(_, _) ->
    ok.

%% @doc The names that a thing refers to, each with the kind of what is to be there.
-spec references(kind(), thing()) -> [{kind(), Name :: string()}].
references(domain, #{provider := Provider}) -> [{provider, Provider}];
references(family, #{release := Release, domains := Domains}) -> [{release, Release} | [{domain, Domain} || Domain <- Domains]];
references(_, _) -> [].

%% What values must be

is_text([_ | _] = Text) -> io_lib:printable_unicode_list(Text) andalso not lists:any(fun(C) -> C < $\s end, Text);
is_text(_) -> false.

text(Text) -> case is_text(Text) of true -> {ok, Text}; false -> error end.

texts(Texts) when is_list(Texts), length(Texts) >= 0 ->
    case lists:all(fun is_text/1, Texts) of true -> {ok, Texts}; false -> error end;
texts(_) -> error.

some_texts([_ | _] = Texts) -> texts(Texts);
some_texts(_) -> error.

one_of(Words) -> fun(Word) -> case lists:member(Word, Words) of true -> {ok, Word}; false -> error end end.

whole(Min, Max) ->
    fun(N) when is_integer(N), N >= Min, N =< Max -> {ok, N};
       (_) -> error
    end.

user(Name) -> matching(Name, "^" ++ ?USER ++ "$").

sum(Sum) -> matching(Sum, "^[0-9a-f]{64}$").

dns_label(Text) -> matching(Text, "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$").

matching(Text, Pattern) ->
    case is_text(Text) andalso re:run(Text, Pattern, [unicode, dollar_endonly, {capture, none}]) of
        match -> {ok, Text};
        _ -> error
    end.

jump(Text) ->
    case is_text(Text) andalso re:run(Text, "^(" ++ ?USER ++ ")@(" ++ ?HOST ++ ")(:([0-9]{1,5}))?$", [unicode, dollar_endonly, {capture, [1, 2, 4], list}]) of
        {match, [User, Host, Port]} ->
            case port(Port) of
                {ok, Is} -> {ok, {User, Host, Is}};
                error -> error
            end;
        _ -> error
    end.

port("") -> {ok, ?SSH_PORT};
port(Text) ->
    case list_to_integer(Text) of
        Port when Port > 0, Port < 65536 -> {ok, Port};
        _ -> error
    end.

hosts(Hosts) when is_list(Hosts), length(Hosts) > 0 ->
    Read = [host(Host) || Host <- Hosts],
    case lists:member(error, Read) of true -> error; false -> {ok, Read} end;
hosts(_) -> error.

host({Text, #{} = Has}) ->
    case {host(Text), needs(Has)} of
        {#{} = Host, {ok, _}} -> maps:merge(Host, Has);
        _ -> error
    end;
host(Text) ->
    case is_text(Text) andalso re:run(Text, "^(" ++ ?HOST ++ ")(:([0-9]{1,5}))?$", [unicode, dollar_endonly, {capture, [1, 3], list}]) of
        {match, [Host, Port]} ->
            case port(Port) of
                {ok, Is} -> #{host => Host, port => Is, attributes => []};
                error -> error
            end;
        _ -> error
    end.

needs(#{} = Needs) ->
    Right = [
        case Key of
            cores -> is_integer(Value) andalso Value > 0;
            memory_mb -> is_integer(Value) andalso Value > 0;
            attributes -> texts(Value) =/= error;
            _ -> false
        end
     || {Key, Value} <- maps:to_list(Needs)
    ],
    case lists:all(fun(Is) -> Is end, Right) of true -> {ok, Needs}; false -> error end;
needs(_) -> error.
