%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The options of TLS as OTP's own distribution takes them, from `-ssl_dist_opt' and
%% the file of `-ssl_dist_optfile', with what the files of certificates and keys that they
%% name hold at this moment in place of their names.
%%
%% What is wrong with them is thrown: `{tls_options, Why}', which `format_error/1' says as
%% the end of a sentence.
-module(atoll_dist_tls_options).

-export([check/1, now/1, arguments/2, as_now/1, format_error/1]).

-type role() :: client | server.

%% A key as ssl takes it, by how PEM calls it.
-define(KEYS, ['RSAPrivateKey', 'DSAPrivateKey', 'ECPrivateKey', 'PrivateKeyInfo']).

%% Those of `-ssl_dist_opt' whose value is text; others' are terms.
-define(TEXTS, ["certfile", "keyfile", "cacertfile", "dhfile", "password"]).

%% @doc Whether there is what such a configuration takes; what is missing is one sentence.
-spec check(atoll_dist_config:config()) -> ok | {error, string()}.
check(#{tls := off}) ->
    ok;
check(#{tls := on}) ->
    try
        _ = now(client),
        case has_certificate(now(server)) of
            true -> ok;
            false -> missing("there is no certificate: start with -ssl_dist_optfile FILE, as OTP's own distribution over TLS")
        end
    catch
        throw:{tls_options, {bad_password, _} = Why} ->
            %% In embedded mode nothing can be decrypted yet.
            case code:ensure_loaded(crypto) of
                {module, crypto} -> missing(format_error(Why));
                {error, _} -> ok
            end;
        throw:{tls_options, Why} -> missing(format_error(Why));
        error:undef -> missing("OTP's application ssl is not there")
    end.

missing(What) -> {error, "The carrier's option tls is on, and " ++ What ++ "."}.

%% @doc The options of a connection that begins now, as ssl takes them.
-spec now(role()) -> [ssl:tls_option()].
now(Role) ->
    Given =
        case init:get_argument(ssl_dist_opt) of
            {ok, Arguments} -> arguments(Role, lists:append(Arguments));
            error -> []
        end,
    as_now(Given ++ proplists:get_value(Role, in_file(), [])).

has_certificate(Options) ->
    lists:any(fun(Key) -> lists:keymember(Key, 1, Options) end, [cert, certs_keys]).

-spec wrong(term()) -> no_return().
wrong(Why) -> throw({tls_options, Why}).

in_file() ->
    case init:get_argument(ssl_dist_optfile) of
        {ok, [[File]]} ->
            try ssl_dist_sup:consult(File) of
                Options when is_list(Options) -> Options;
                _ -> wrong({optfile, File, no_list})
            catch
                error:{bad_ssl_dist_optfile, Why} when Why =:= File -> wrong({file, File, enoent});
                error:Why -> wrong({optfile, File, Why})
            end;
        {ok, _} ->
            wrong(optfiles);
        error ->
            []
    end.

%% @doc Those of one role in what follows `-ssl_dist_opt'.
-spec arguments(role(), [string()]) -> [{atom(), term()}].
arguments(Role, [Name, Value | Rest]) ->
    case string:prefix(Name, atom_to_list(Role) ++ "_") of
        nomatch -> arguments(Role, Rest);
        Key -> [{list_to_atom(Key), value(Key, Value)} | arguments(Role, Rest)]
    end;
arguments(_Role, []) ->
    [];
arguments(_Role, [Name]) ->
    wrong({no_value, Name}).

%% OTP takes one of these.
value("ciphers", Text) -> [Text];
value("versions", Text) -> [list_to_atom(Text)];
value(Key, Text) ->
    case lists:member(Key, ?TEXTS) of
        true -> Text;
        false -> term(Key, Text)
    end.

term(Key, Text) ->
    case erl_scan:string(Text ++ ".") of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, Term} -> Term;
                {error, _} -> wrong({no_term, Key, Text})
            end;
        {error, _, _} ->
            wrong({no_term, Key, Text})
    end.

%% @doc With what the files hold in place of their names.
-spec as_now([{atom(), term()}]) -> [ssl:tls_option()].
as_now(Options) ->
    Password = proplists:get_value(password, Options, ""),
    HasKey = lists:keymember(key, 1, Options) orelse lists:keymember(keyfile, 1, Options),
    lists:append([now(Option, Password, HasKey) || Option <- Options]).

now({certfile, File}, Password, HasKey) ->
    Pem = pem(File),
    [{cert, certificates(File, Pem)} | [{key, key(File, Pem, Password)} || not HasKey]];
now({keyfile, File}, Password, _HasKey) ->
    [{key, key(File, pem(File), Password)}];
now({cacertfile, File}, _Password, _HasKey) ->
    [{cacerts, certificates(File, pem(File))}];
now({password, _}, _Password, _HasKey) ->
    [];
now({certs_keys, All}, _Password, _HasKey) ->
    [{certs_keys, [maps:from_list(as_now(maps:to_list(One))) || One <- All]}];
now({verify_fun, {Module, Function, Initial}}, _Password, _HasKey) ->
    [{verify_fun, {fun Module:Function/3, Initial}}];
now({ktls, false}, _Password, _HasKey) ->
    [];
now({ktls, _}, _Password, _HasKey) ->
    wrong(ktls);
now(Option, _Password, _HasKey) ->
    [Option].

pem(File) ->
    %% The carrier runs before kernel's process for files does.
    case prim_file:read_file(File) of
        {ok, Text} -> public_key:pem_decode(Text);
        {error, Why} -> wrong({file, File, Why})
    end.

certificates(File, Pem) ->
    case [Der || {'Certificate', Der, not_encrypted} <- Pem] of
        [] -> wrong({no_certificate_in, File});
        Ders -> Ders
    end.

key(File, Pem, Password) ->
    case [Entry || {Type, _, _} = Entry <- Pem, lists:member(Type, ?KEYS)] of
        [{Type, Der, not_encrypted} | _] -> {Type, Der};
        [Entry | _] -> decrypted(File, Entry, Password);
        [] -> wrong({no_key_in, File})
    end.

decrypted(File, Entry, Password) when is_function(Password) ->
    decrypted(File, Entry, Password());
decrypted(File, Entry, Password) ->
    try public_key:pem_entry_decode(Entry, unicode:characters_to_list(Password)) of
        Key -> {element(1, Key), public_key:der_encode(element(1, Key), Key)}
    catch
        error:_ -> wrong({bad_password, File})
    end.

%% @doc What is wrong, as the end of a sentence.
-spec format_error(term()) -> string().
format_error(optfiles) ->
    "-ssl_dist_optfile is given more than once, or without a file";
format_error({optfile, File, Why}) ->
    lists:flatten(io_lib:format("~ts is no list of the options of client and server (~0tp)", [File, Why]));
format_error(ktls) ->
    "ktls is among the options, which the carrier does not have";
format_error({no_value, Name}) ->
    lists:flatten(io_lib:format("~ts of -ssl_dist_opt has no value", [Name]));
format_error({no_term, Key, Text}) ->
    lists:flatten(io_lib:format("the value of ~ts of -ssl_dist_opt is ~ts", [Key, Text]));
format_error({file, File, Why}) ->
    lists:flatten(io_lib:format("~ts cannot be read (~ts)", [File, file:format_error(Why)]));
format_error({no_certificate_in, File}) ->
    lists:flatten(io_lib:format("~ts holds no certificate", [File]));
format_error({no_key_in, File}) ->
    lists:flatten(io_lib:format("~ts holds no key", [File]));
format_error({bad_password, File}) ->
    lists:flatten(io_lib:format("the key in ~ts cannot be read with the password that is given", [File])).
