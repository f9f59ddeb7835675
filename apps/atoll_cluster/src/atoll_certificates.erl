%% SPDX-License-Identifier: Apache-2.0
%% @doc Certificates for clusters to try things on and to test with, made when they are
%% wanted by OTP's own functions for that: an authority, and for nodes the files that
%% `-ssl_dist_optfile' takes. Both ends verify each other.
%%
%% They last for a week and their keys lie in plain files that only their owner can read:
%% they are not for production.
-module(atoll_certificates).

-include_lib("public_key/include/public_key.hrl").

-export([authority/0, files/2, files/3, arguments/1]).

-export_type([authority/0, options/0]).

-opaque authority() :: #{cert := binary(), key := public_key:private_key()}.

-type options() :: #{
    %% For which hosts; those of a cluster on this machine unless told otherwise.
    hosts => [string()],
    %% One that has expired.
    expired => true,
    %% The authority that the node believes, if it is not the one that signs.
    trusts => authority()
}.

-define(KEY, {key, {namedCurve, secp256r1}}).

%% @doc A new authority.
-spec authority() -> authority().
authority() ->
    public_key:pkix_test_root_cert("authority", [?KEY]).

%% @doc As `files/3', for the hosts of a cluster on this machine.
-spec files(file:filename(), authority()) -> ok.
files(Dir, Authority) ->
    files(Dir, Authority, #{}).

%% @doc Writes the files of a node into that folder, anew if they are there.
-spec files(file:filename(), authority(), options()) -> ok.
files(Dir, #{cert := Own} = Authority, Options) ->
    ok = filelib:ensure_dir(filename:join(Dir, "any")),
    Hosts = maps:get(hosts, Options, ["127.0.0.1", "::1", "localhost"]),
    Names = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false, extnValue = [{dNSName, Host} || Host <- Hosts]},
    Validity = [{validity, {{2020, 1, 1}, {2020, 2, 1}}} || maps:is_key(expired, Options)],
    Made = public_key:pkix_test_data(#{root => Authority, peer => [?KEY, {extensions, [Names]} | Validity]}),
    {Type, Key} = proplists:get_value(key, Made),
    #{cert := Trusted} = maps:get(trusts, Options, #{cert => Own}),
    ok = write(Dir, "certificate.pem", pem([{'Certificate', proplists:get_value(cert, Made), not_encrypted}])),
    ok = write(Dir, "key.pem", pem([{Type, Key, not_encrypted}])),
    ok = file:change_mode(filename:join(Dir, "key.pem"), 8#600),
    ok = write(Dir, "authority.pem", pem([{'Certificate', Trusted, not_encrypted}])),
    write(Dir, "ssl_dist.conf", io_lib:format("~0tp.~n", [options(Dir)])).

pem(Entries) -> public_key:pem_encode(Entries).

write(Dir, Name, Data) -> file:write_file(filename:join(Dir, Name), Data).

options(Dir) ->
    Both = [
        {certfile, filename:join(Dir, "certificate.pem")},
        {keyfile, filename:join(Dir, "key.pem")},
        {cacertfile, filename:join(Dir, "authority.pem")},
        {verify, verify_peer}
    ],
    [{server, [{fail_if_no_peer_cert, true} | Both]}, {client, Both}].

%% @doc The arguments for a node that has the files in that folder.
-spec arguments(file:filename()) -> [string()].
arguments(Dir) ->
    ["-ssl_dist_optfile", filename:join(Dir, "ssl_dist.conf")].
