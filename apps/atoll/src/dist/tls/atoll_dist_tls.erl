%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc TLS around the carrier's connections, where `tls' is on: OTP's ssl, as OTP's own
%% distribution over TLS uses it, under OTP's own supervisor for that (`ssl_dist_sup').
%%
%% The options are those of `-ssl_dist_optfile' and `-ssl_dist_opt'. Where they name files
%% of certificates and keys, these are read for each connection: who replaces them has the
%% new ones from the next connection on, and those that are up keep what they have. So
%% that each connection sees the certificates as they are, no session is taken up again
%% unless `reuse_sessions' says so.
%%
%% Promised: with `tls' on nothing is sent or read without TLS. Whom it takes is what
%% the options say: a peer is verified only where they have `{verify, verify_peer}', and
%% one without a certificate is refused only where the server's have `fail_if_no_peer_cert'.
-module(atoll_dist_tls).

-export([childspecs/0, connected/3, accepted/2, is_stock/1, sender/1, up/3, why/1]).

-export_type([reason/0]).

-type reason() :: {tls, term()}.

%% By ALPN.
-define(PROTOCOL, <<"atoll">>).

%% How much is read at once. The driver's own is 1,460 bytes, and so many wake-ups for a record
%% of 16 KB that large messages are ten times as slow.
-define(BUFFER, 65536).

%% @doc What the kernel supervises for it: nothing where it is off.
-spec childspecs() -> [supervisor:child_spec()].
childspecs() ->
    case atoll_dist_config:new(application:get_env(kernel, atoll_dist, [])) of
        {ok, #{tls := on} = Config} ->
            %% What is wrong is said by who listens, and not by a supervisor's crash.
            case atoll_dist_tls_options:check(Config) of
                ok ->
                    {ok, Specs} = inet_tls_dist:childspecs(),
                    Specs;
                {error, _} ->
                    []
            end;
        _ ->
            []
    end.

%% @doc A plain connection to a node, with TLS around it where that is on. Called by the
%% socket's owner.
-spec connected(gen_tcp:socket(), Peer :: binary(), timeout()) -> {ok, atoll_dist_transport:socket()} | {error, reason()}.
connected(Socket, Peer, Ms) ->
    wrapped(client, Socket, fun(Options) ->
        ssl:connect(Socket, [{server_name_indication, host(Peer)} | Options], Ms)
    end).

%% @doc The same for one that was accepted.
-spec accepted(gen_tcp:socket(), timeout()) -> {ok, atoll_dist_transport:socket()} | {error, reason()}.
accepted(Socket, Ms) ->
    wrapped(server, Socket, fun(Options) -> ssl:handshake(Socket, known(Options, Socket), Ms) end).

wrapped(Role, Socket, Shake) ->
    case atoll_dist_keeper:config() of
        {ok, #{tls := on}} -> shaken(Role, Socket, Shake);
        _ -> {ok, Socket}
    end.

shaken(Role, Socket, Shake) ->
    %% If it is not, that is said where Erlang's own handshake needs it.
    _ = atoll_dist_crypto:ready(),
    %% Whatever stands there else is taken over by ssl, before its options.
    _ = inet:setopts(Socket, [binary, {active, false}, {packet, 4}, {packet_size, atoll_dist_socket:max_frame()} | larger(Socket)]),
    try Shake(options(Role)) of
        {ok, Ssl} ->
            {ok, {tls, Ssl, Socket}};
        {error, Why} ->
            ok = inet_tcp:close(Socket),
            {error, {tls, Why}}
    catch
        throw:{tls_options, _} = Why -> {error, {tls, Why}}
    end.

larger(Socket) ->
    case inet:getopts(Socket, [buffer]) of
        {ok, [{buffer, Bytes}]} when Bytes < ?BUFFER -> [{buffer, ?BUFFER}];
        _ -> []
    end.

host(Peer) ->
    [_Name, Host] = string:split(unicode:characters_to_list(Peer), "@"),
    Host.

%% The carrier's own first, then what is given, then defaults that anything given replaces:
%% the version that OTP has for distribution, and no session without a certificate, which
%% TLS 1.3 has only where it is asked for.
options(Role) ->
    Given = atoll_dist_tls_options:now(Role),
    Versions = proplists:get_value(versions, Given, ['tlsv1.2']),
    Defaults = [{log_level, none}, {versions, Versions} | [{reuse_sessions, false} || Versions =/= ['tlsv1.3']]],
    [{erl_dist, true}, speaks(Role)] ++ Given ++ [Default || {Key, _} = Default <- Defaults, not lists:keymember(Key, 1, Given)].

%% What tells a node on the carrier from one on OTP's own distribution over TLS, which takes
%% five seconds to close on what it does not know.
speaks(client) -> {alpn_advertised_protocols, [?PROTOCOL]};
speaks(server) -> {alpn_preferred_protocols, [?PROTOCOL]}.

%% OTP's own check of the client's host, which knows who is allowed and where the peer is.
known(Options, Socket) ->
    [with_hosts(Option, Socket) || Option <- Options].

with_hosts({verify_fun, {Fun, _}} = Option, Socket) ->
    case Fun =:= fun inet_tls_dist:verify_client/3 andalso inet:peername(Socket) of
        {ok, {Ip, _}} ->
            {ok, Allowed} = net_kernel:allowed(),
            Hosts = [lists:last(string:split(atom_to_list(Name), "@")) || Name <- Allowed],
            {verify_fun, {Fun, {lists:usort(Hosts), Ip}}};
        %% It is another one; or the peer is gone, which shows next.
        _ ->
            Option
    end;
with_hosts(Option, _Socket) ->
    Option.

%% @doc Whether the peer of a connection that was made to it is known not to be on the
%% carrier; without TLS that shows when it is spoken to.
-spec is_stock(atoll_dist_transport:socket()) -> boolean().
is_stock({tls, Ssl, _}) -> ssl:negotiated_protocol(Ssl) =/= {ok, ?PROTOCOL};
is_stock(_) -> false.

%% @doc The process of ssl that is the distribution controller of a direct connection, as
%% in OTP's own distribution over TLS. Where it stands in a socket of ssl differs by
%% release, so it is told by what it runs.
-spec sender(atoll_dist_transport:socket()) -> {ok, pid()} | gone.
sender({tls, Ssl, _}) ->
    Pids = [Pid || Pid <- lists:flatten(tuple_to_list(Ssl)), is_pid(Pid)],
    case [Pid || Pid <- Pids, proc_lib:translate_initial_call(Pid) =:= {tls_sender, init, 1}] of
        [Sender] -> {ok, Sender};
        [] -> gone
    end.

%% @doc Gives it the connection of the VM: from now on it carries its signals.
-spec up(pid(), node(), erlang:dist_handle()) -> ok.
up(Sender, Node, Handle) ->
    tls_sender:dist_handshake_complete(Sender, Node, Handle).

%% @doc Why there is no TLS with a peer, as the end of a sentence.
-spec why(term()) -> string().
why({tls_alert, {Alert, Text}}) ->
    Said = lists:flatten(io_lib:format("~ts", [Text])),
    IsTheirs = re:run(Said, "received (CLIENT|SERVER) ALERT", [{capture, none}]) =:= match,
    text("~ts (~s)", [alert(of_alert(Alert, Said), IsTheirs), Alert]);
why(Options) when element(1, Options) =:= options ->
    text("ssl does not take the options that are given here (~0tp)", [Options]);
why(closed) ->
    "it closed, as one without TLS does";
why(timeout) ->
    "it said nothing in the time for it";
why({tls_options, Why}) ->
    atoll_dist_tls_options:format_error(Why);
why(Why) ->
    text("it failed (~0tp)", [Why]).

text(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

alert(none, _IsTheirs) -> "they do not agree on it";
alert(What, true) -> "it does not take the certificate of this node, which " ++ What;
alert(What, false) -> "its certificate " ++ What.

%% Which alert it is when the hosts are others differs by release.
of_alert(Alert, Said) ->
    case string:find(Said, "hostname_check_failed") of
        nomatch -> of_alert(Alert);
        _ -> "is for other hosts"
    end.

of_alert(certificate_expired) -> "has expired, or is not valid yet";
of_alert(unknown_ca) -> "is signed by nobody who is trusted";
of_alert(bad_certificate) -> "is damaged or wrongly signed";
of_alert(certificate_revoked) -> "has been revoked";
of_alert(certificate_required) -> "is missing";
of_alert(_) -> none.
