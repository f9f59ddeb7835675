%% SPDX-License-Identifier: Apache-2.0
%% @doc Certificates for clusters to try things on and to test with, made when they are
%% wanted by OTP's own functions for that, and the files of them that `-ssl_dist_optfile'
%% takes. Both ends verify each other.
%%
%% They last for a week, and their keys lie in plain files that only their owner can read:
%% they are not for production.
-module(atoll_certificates).

-include_lib("public_key/include/public_key.hrl").

-export([identity/1, files/3, arguments/1]).

-export_type([identity/0, options/0]).

-opaque identity() :: #{cert := binary(), key := {atom(), binary()}, authorities := [binary()]}.
%% A certificate with its key, and those who vouch for it and for nobody else.

-type options() :: #{
    %% For which hosts; those of a cluster on this machine unless told otherwise.
    hosts => [string()],
    %% One that has expired.
    expired => true
}.

%% OTP signs them with SHA-1 unless told otherwise, and from 26 on does not take that.
-define(KEY, [{key, {namedCurve, ?secp256r1}}, {digest, sha256}]).

%% @doc A new one, with an authority of its own.
-spec identity(options()) -> identity().
identity(Options) ->
    Hosts = maps:get(hosts, Options, ["127.0.0.1", "::1", "localhost"]),
    Names = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false, extnValue = lists:flatmap(fun names/1, Hosts)},
    Validity = [{validity, {{2020, 1, 1}, {2020, 2, 1}}} || maps:is_key(expired, Options)],
    Made = public_key:pkix_test_data(#{root => ?KEY, intermediates => [], peer => ?KEY ++ [{extensions, [Names]} | Validity]}),
    #{cert => proplists:get_value(cert, Made), key => proplists:get_value(key, Made), authorities => proplists:get_value(cacerts, Made)}.

%% OTP 25 looks for an address among the names of hosts, and 27 among the addresses.
names(Host) ->
    case inet:parse_address(Host) of
        {ok, {A, B, C, D}} -> [{dNSName, Host}, {iPAddress, <<A, B, C, D>>}];
        {ok, Ip} -> [{dNSName, Host}, {iPAddress, << <<Part:16>> || Part <- tuple_to_list(Ip) >>}];
        {error, einval} -> [{dNSName, Host}]
    end.

%% @doc Writes the files of a node that has that identity and believes those into a folder,
%% anew if they are there.
-spec files(file:filename(), identity(), Believed :: [identity()]) -> ok.
files(Dir, #{cert := Cert, key := {Type, Key}}, Believed) ->
    ok = filelib:ensure_dir(filename:join(Dir, "any")),
    ok = write(Dir, "certificate.pem", pem([{'Certificate', Cert, not_encrypted}])),
    ok = write(Dir, "key.pem", pem([{Type, Key, not_encrypted}])),
    ok = file:change_mode(filename:join(Dir, "key.pem"), 8#600),
    ok = write(Dir, "authorities.pem", pem([{'Certificate', Root, not_encrypted} || #{authorities := Roots} <- Believed, Root <- Roots])),
    ok = write(Dir, "ssl_dist.conf", io_lib:format("~0tp.~n", [options(Dir)])).

pem(Entries) -> public_key:pem_encode(Entries).

write(Dir, Name, Data) -> file:write_file(filename:join(Dir, Name), Data).

options(Dir) ->
    Both = [
        {certfile, filename:join(Dir, "certificate.pem")},
        {keyfile, filename:join(Dir, "key.pem")},
        {cacertfile, filename:join(Dir, "authorities.pem")},
        {verify, verify_peer}
    ],
    [{server, [{fail_if_no_peer_cert, true} | Both]}, {client, Both}].

%% @doc The arguments for a node that has the files in that folder.
-spec arguments(file:filename()) -> [string()].
arguments(Dir) ->
    ["-ssl_dist_optfile", Dir ++ "/ssl_dist.conf"].
