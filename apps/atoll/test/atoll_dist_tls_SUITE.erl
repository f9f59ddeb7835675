%% SPDX-License-Identifier: Apache-2.0
%% The carrier with TLS on real nodes: who is let in, and who is not and why. That what
%% is promised without TLS holds with it, the suites of the carrier show in the deep tier:
%% each runs a second time with TLS.
-module(atoll_dist_tls_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, carrier/1, name/1, call/4, connect/2, works/2, apart/2, listed/2, said/2, logged/2, until/1]).

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    nodes_meet_over_tls_and_a_wrong_certificate_is_refused/1,
    a_node_on_stock_tls_is_met_where_that_is_configured/1,
    a_node_with_tls_and_one_without_refuse_each_other/1,
    tls_1_3_refuses_too/1
]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    case atoll_tier:tier() of
        fast -> lists:sublist(cases(), 2);
        deep -> cases() ++ [{group, ipv6}]
    end.

cases() ->
    [
        nodes_meet_over_tls_and_a_wrong_certificate_is_refused, a_node_on_stock_tls_is_met_where_that_is_configured,
        a_node_with_tls_and_one_without_refuse_each_other, tls_1_3_refuses_too
    ].

groups() -> [{ipv6, [], cases()}].

init_per_group(Group, Config) -> atoll_dist_nodes:over(Group, Config).

end_per_group(_Group, _Config) -> ok.

init_per_suite(Config) ->
    atoll_dist_nodes:begin_suite(Config).

end_per_suite(Config) ->
    atoll_dist_nodes:end_suite(Config).

init_per_testcase(Case, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), Case),
    [{dir, Dir}, {identity, atoll_certificates:identity(#{})} | atoll_dist_nodes:begin_case(Config)].

end_per_testcase(_Case, Config) ->
    atoll_dist_nodes:end_case(Config).

%% The files of a node, anew if it has some: that of the case, or another one.
files(Config, Name) ->
    Identity = proplists:get_value(identity, Config),
    files(Config, Name, Identity, [Identity]).

files(Config, Name, Identity, Believed) ->
    Dir = filename:join(proplists:get_value(dir, Config), Name),
    ok = atoll_certificates:files(Dir, Identity, Believed),
    atoll_certificates:arguments(Dir).

tls(Config, Name, Options) ->
    node(Config, Name, carrier([{tls, on} | Options]) ++ files(Config, Name)).

parted(A, B) ->
    ok = apart(A, B),
    [ok = listed(Node, []) || Node <- [A, B]],
    ok.

%% Neither is connected, and each says once why.
refused(A, B, AtA, AtB) ->
    [Were1, Were2] = [logged(Node, What) || {Node, What} <- [{A, AtA}, {B, AtB}]],
    ?assertEqual([false, false, false], [connect(A, B) || _ <- [1, 2, 3]]),
    until(fun() -> {logged(A, AtA), logged(B, AtB)} >= {Were1 + 1, Were2 + 1} end),
    ?assertEqual({Were1 + 1, Were2 + 1}, {logged(A, AtA), logged(B, AtB)}).

nodes_meet_over_tls_and_a_wrong_certificate_is_refused(Config) ->
    A = tls(Config, "a", [{kind, direct}]),
    B = tls(Config, "b", [{kind, direct}]),
    works(A, B),
    ok = listed(A, [{name(B), direct}]),
    ok = echoed(A, B),
    %% Several records of TLS are read at once.
    _ = [
        begin
            {ok, [{buffer, Bytes}]} = call(Node, net_kernel, getopts, [name(Peer), [buffer]]),
            ?assert(Bytes >= 65536)
        end
     || {Node, Peer} <- [{A, B}, {B, A}]
    ],
    ok = parted(A, B),
    %% The same over lanes.
    _ = [ok = call(Node, atoll_dist, prefer, [#{name(Peer) => {lanes, 3}}]) || {Node, Peer} <- [{A, B}]],
    works(A, B),
    ok = listed(A, [{name(B), {lanes, 3}}]),
    ok = echoed(A, B),
    ok = parted(A, B),
    [Old, New] = [proplists:get_value(identity, Config), atoll_certificates:identity(#{})],
    %% Files are read for each connection. Here only what is trusted is another, which a session that
    %% was taken up again would not ask for.
    _ = files(Config, "a", Old, [New]),
    ok = refused(A, B, "its certificate is signed by nobody who is trusted", "it does not take the certificate of this node, which is signed by nobody"),
    _ = files(Config, "a", Old, [Old]),
    works(A, B),
    ok = parted(A, B),
    %% These are renewed, and what was trusted is not.
    _ = files(Config, "b", New, [Old]),
    ok = refused(A, B, "its certificate is signed by nobody who is trusted", "it does not take the certificate of this node, which is signed by nobody"),
    ok = refused(B, A, "it does not take the certificate of this node, which is signed by nobody", "its certificate is signed by nobody who is trusted"),
    _ = [files(Config, Name, New, [New]) || Name <- ["a", "b"]],
    works(A, B),
    ok = parted(A, B),
    Expired = atoll_certificates:identity(#{expired => true}),
    Elsewhere = atoll_certificates:identity(#{hosts => ["elsewhere"]}),
    _ = files(Config, "a", New, [New, Expired, Elsewhere]),
    _ = files(Config, "b", Expired, [New]),
    ok = refused(A, B, "its certificate has expired", "the certificate of this node, which has expired"),
    %% What was said is said again after they have been connected.
    _ = files(Config, "b", New, [New]),
    works(A, B),
    ok = parted(A, B),
    _ = files(Config, "b", Elsewhere, [New]),
    ok = refused(A, B, "its certificate is for other hosts", "there is no TLS with it").

echoed(A, B) ->
    Big = binary:copy(<<"tls">>, 500000),
    Hash = erlang:md5(Big),
    ?assertEqual(Hash, call(A, rpc, call, [name(B), erlang, md5, [Big]])),
    ?assertEqual(Big, call(A, rpc, call, [name(B), binary, copy, [<<"tls">>, 500000]])),
    ok.

a_node_on_stock_tls_is_met_where_that_is_configured(Config) ->
    A = tls(Config, "a", [{stock, accept}]),
    S = node(Config, "s", ["-proto_dist", "inet_tls" | files(Config, "s")]),
    works(A, S),
    ok = listed(A, [{name(S), stock}]),
    ok = echoed(A, S),
    ok = apart(A, S),
    ok = listed(A, []),
    works(S, A),
    ok = echoed(S, A),
    ok = listed(A, [{name(S), stock}]).

a_node_with_tls_and_one_without_refuse_each_other(Config) ->
    A = tls(Config, "a", [{stock, accept}]),
    B = node(Config, "b", carrier([{stock, accept}])),
    ?assertEqual(false, connect(A, B)),
    ok = said(A, "there is no TLS with it, since it closed"),
    ok = said(B, "it says something else than a node does"),
    ?assertEqual(false, connect(B, A)),
    ok = said(A, "there is no TLS with it, since they do not agree on it").

tls_1_3_refuses_too(Config) ->
    Versions = ["-ssl_dist_opt", "server_versions", "tlsv1.3", "client_versions", "tlsv1.3"],
    [A, B] = [node(Config, Name, carrier([{tls, on}]) ++ files(Config, Name) ++ Versions) || Name <- ["a", "b"]],
    works(A, B),
    ok = parted(A, B),
    _ = files(Config, "a", atoll_certificates:identity(#{}), [proplists:get_value(identity, Config)]),
    ?assertEqual(false, connect(A, B)),
    %% The end that connects may only see that the other one closes.
    ok = said(A, "Cannot connect with"),
    ok = said(B, "its certificate is signed by nobody who is trusted").
