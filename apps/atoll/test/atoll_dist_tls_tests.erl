%% SPDX-License-Identifier: Apache-2.0
%% The options of TLS, and what is said of a connection that has none.
-module(atoll_dist_tls_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_dist_tls_options, [arguments/2, as_now/1, format_error/1]).

with_files(Test) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), "atoll_dist_tls_tests" ++ integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    try
        ok = new_files(Dir),
        Test(fun(Name) -> filename:join(Dir, Name) end)
    after
        file:del_dir_r(Dir)
    end.

new_files(Dir) ->
    Identity = atoll_certificates:identity(#{}),
    atoll_certificates:files(Dir, Identity, [Identity]).

the_arguments_of_a_role_are_read_as_otp_reads_them_test() ->
    Given = ["server_certfile", "a.pem", "client_verify", "verify_peer", "server_fail_if_no_peer_cert", "true", "server_depth", "2",
        "client_ciphers", "ECDHE-RSA-AES256-GCM-SHA384", "client_versions", "tlsv1.2"],
    ?assertEqual([{certfile, "a.pem"}, {fail_if_no_peer_cert, true}, {depth, 2}], arguments(server, Given)),
    ?assertEqual([{verify, verify_peer}, {ciphers, ["ECDHE-RSA-AES256-GCM-SHA384"]}, {versions, ['tlsv1.2']}], arguments(client, Given)).

what_is_wrong_with_an_argument_is_said_test() ->
    ?assertThrow({tls_options, {no_value, "server_certfile"}}, arguments(server, ["server_certfile"])),
    ?assertThrow({tls_options, {no_term, "verify", "}"}}, arguments(server, ["server_verify", "}"])).

names_of_files_become_what_they_hold_test_() ->
    {timeout, 60, fun names_of_files_become_what_they_hold/0}.

names_of_files_become_what_they_hold() ->
    with_files(fun(In) ->
        Options = [{certfile, In("certificate.pem")}, {keyfile, In("key.pem")}, {cacertfile, In("authorities.pem")}, {verify, verify_peer}],
        [{cert, [Cert]}, {key, {'ECPrivateKey', Key}}, {cacerts, Roots}, {verify, verify_peer}] = as_now(Options),
        ?assert(lists:any(fun(Root) -> public_key:pkix_is_issuer(Cert, Root) end, Roots)),
        ?assertMatch(#{}, #{key => public_key:der_decode('ECPrivateKey', Key)}),
        %% The next connection has what is there then.
        ok = new_files(filename:dirname(In("any"))),
        [{cert, [Renewed]} | _] = as_now(Options),
        ?assertNotEqual(Cert, Renewed)
    end).

a_key_may_stand_beside_its_certificate_test() ->
    with_files(fun(In) ->
        {ok, Cert} = file:read_file(In("certificate.pem")),
        {ok, Key} = file:read_file(In("key.pem")),
        ok = file:write_file(In("both.pem"), [Cert, Key]),
        ?assertMatch([{cert, [_]}, {key, {'ECPrivateKey', _}}], as_now([{certfile, In("both.pem")}])),
        ?assertMatch([{certs_keys, [#{cert := [_], key := {'ECPrivateKey', _}}]}], as_now([{certs_keys, [#{certfile => In("both.pem")}]}]))
    end).

an_encrypted_key_takes_its_password_test() ->
    with_files(fun(In) ->
        {ok, Text} = file:read_file(In("key.pem")),
        [{Type, Der, not_encrypted}] = public_key:pem_decode(Text),
        Cipher = {"DES-EDE3-CBC", crypto:strong_rand_bytes(8)},
        Entry = public_key:pem_entry_encode(Type, public_key:der_decode(Type, Der), {Cipher, "secret"}),
        ok = file:write_file(In("secret.pem"), public_key:pem_encode([Entry])),
        ?assertMatch([{key, {Type, Der}}], as_now([{password, "secret"}, {keyfile, In("secret.pem")}])),
        ?assertMatch([{key, {Type, Der}}], as_now([{password, fun() -> <<"secret">> end}, {keyfile, In("secret.pem")}])),
        ?assertThrow({tls_options, {bad_password, _}}, as_now([{password, "other"}, {keyfile, In("secret.pem")}]))
    end).

what_is_wrong_with_a_file_is_said_test() ->
    with_files(fun(In) ->
        lists:foreach(
            fun({Option, About}) ->
                try as_now([Option]) of
                    Taken -> error({taken, Taken})
                catch
                    throw:{tls_options, Why} -> ?assertNotEqual(nomatch, string:find(format_error(Why), About))
                end
            end,
            [
                {{certfile, In("none.pem")}, "none.pem cannot be read (no such file"},
                {{certfile, In("key.pem")}, "key.pem holds no certificate"},
                {{certfile, In("certificate.pem")}, "certificate.pem holds no key"},
                {{keyfile, In("certificate.pem")}, "certificate.pem holds no key"},
                {{cacertfile, In("key.pem")}, "key.pem holds no certificate"},
                {{ktls, true}, "ktls"}
            ]
        )
    end).

an_alert_is_told_as_whose_certificate_it_is_about_test() ->
    ?assertEqual(
        "its certificate has expired, or is not valid yet (certificate_expired)",
        atoll_dist_tls:why({tls_alert, {certificate_expired, "TLS client: ... generated CLIENT ALERT: Fatal - Certificate Expired\n"}})
    ),
    ?assertEqual(
        "it does not take the certificate of this node, which is signed by nobody who is trusted (unknown_ca)",
        atoll_dist_tls:why({tls_alert, {unknown_ca, "TLS client: ... received SERVER ALERT: Fatal - Unknown CA"}})
    ),
    ?assertEqual(
        "its certificate is for other hosts (handshake_failure)",
        atoll_dist_tls:why({tls_alert, {handshake_failure, "... generated CLIENT ALERT: Fatal\n {bad_cert,hostname_check_failed}"}})
    ),
    %% So says OTP 27, whose text has that word in another place.
    ?assertEqual(
        "its certificate is for other hosts (bad_certificate)",
        atoll_dist_tls:why({tls_alert, {bad_certificate, "... generated CLIENT ALERT: Fatal\n {bad_cert,{hostname_check_failed,{requested,\"a\"},{received,[]}}}"}})
    ),
    ?assertEqual("they do not agree on it (protocol_version)", atoll_dist_tls:why({tls_alert, {protocol_version, "received"}})).

without_a_certificate_tls_cannot_be_on_test() ->
    ?assertEqual(ok, atoll_dist_tls_options:check(#{tls => off})),
    {error, Sentence} = atoll_dist_tls_options:check(#{tls => on}),
    ?assertNotEqual(nomatch, string:find(Sentence, "there is no certificate: start with -ssl_dist_optfile FILE")).
