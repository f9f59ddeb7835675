%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Where a node is: its name taken apart, and the questions to the module that
%% finds nodes (`-epmd_module'; OTP's `erl_epmd' does what such a module leaves out).
-module(atoll_dist_address).

-export([is_known/2, find/3, connect/2, connect/5, format_error/1, listens/1, listen_port/2, family/0, driver/0]).

%% Why there is no connection with a node.
-type error() :: unknown | {bad_name, Why :: string()} | atoll_dist_tls:reason() | inet:posix() | timeout.

-type place() :: #{
    ip := inet:ip_address(),
    port := inet:port_number(),
    %% Of the distribution protocol.
    version := non_neg_integer(),
    host := string()
}.

%% @doc Whether the host of a node has an address of this family.
-spec is_known(inet | inet6, node()) -> boolean().
is_known(Family, Node) ->
    case dist_util:split_node(Node) of
        {node, Name, Host} ->
            case ask(address_please, [Name, Host, Family]) of
                {ok, _Ip} -> true;
                {ok, _Ip, _Port, _Version} -> true;
                _ -> false
            end;
        _ ->
            false
    end.

%% @doc Where a node listens. Short and long names are not mixed.
-spec find(atoll_dist_socket:driver(), node(), longnames | shortnames) ->
    {ok, place()} | {error, {bad_name, Why :: string()} | unknown}.
find(Driver, Node, Domain) ->
    case dist_util:split_node(Node) of
        {node, Name, Host} ->
            case is_of_domain(Driver, Host, Domain) of
                true -> ask_place(Name, Host, Driver:family());
                false -> {error, {bad_name, wrong_domain(Domain)}}
            end;
        _ ->
            {error, {bad_name, "it is not Name@Host"}}
    end.

%% A host without a dot is a short name, or an address, as those of IPv6.
is_of_domain(Driver, Host, longnames) ->
    lists:member($., Host) orelse element(1, Driver:parse_address(Host)) =:= ok;
is_of_domain(_Driver, Host, shortnames) ->
    not lists:member($., Host).

wrong_domain(longnames) -> "this node has a long name, and that is a short one";
wrong_domain(shortnames) -> "this node has a short name, and that is a long one".

ask_place(Name, Host, Family) ->
    case ask(address_please, [Name, Host, Family]) of
        {ok, Ip, Port, Version} ->
            {ok, #{ip => Ip, port => Port, version => Version, host => Host}};
        {ok, Ip} ->
            case (net_kernel:epmd_module()):port_please(Name, Ip) of
                {port, Port, Version} -> {ok, #{ip => Ip, port => Port, version => Version, host => Host}};
                _ -> {error, unknown}
            end;
        _ ->
            {error, unknown}
    end.

%% @doc A connection with where a node listens, with nothing said on it yet, as the carrier's
%% connections begin.
-spec connect(node(), timeout()) -> {ok, atoll_dist_transport:socket()} | {error, error()}.
connect(Node, Ms) ->
    Driver = driver(),
    case where(Driver, Node) of
        {ok, #{ip := Ip, port := Port}} -> connect(Driver, Ip, Port, atom_to_binary(Node), Ms);
        {error, _} = Error -> Error
    end.

where(Driver, Node) ->
    Domain =
        case net_kernel:longnames() of
            true -> longnames;
            _ -> shortnames
        end,
    find(Driver, Node, Domain).

%% @doc The same at an address that is known, of a node that is called so.
-spec connect(atoll_dist_socket:driver(), inet:ip_address(), inet:port_number(), Peer :: binary(), timeout()) ->
    {ok, atoll_dist_transport:socket()} | {error, error()}.
connect(Driver, Ip, Port, Peer, Ms) ->
    case Driver:connect(Ip, Port, atoll_dist_socket:connect_options(), Ms) of
        {ok, Socket} -> atoll_dist_tls:connected(Socket, Peer, Ms);
        {error, _} = Error -> Error
    end.

%% @doc Why there is no connection, as the end of a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error(unknown) -> "it is not known where it listens";
format_error({bad_name, Why}) -> Why;
format_error({tls, Why}) -> atoll_dist_tls:why(Why);
format_error(Reason) -> io_lib:format("it cannot be reached (~0p)", [Reason]).

%% @doc The driver of the sockets of the distribution that this node uses first.
-spec driver() -> atoll_dist_socket:driver().
driver() ->
    case family() of
        inet -> inet_tcp;
        inet6 -> inet6_tcp
    end.

%% @doc Whether something listens where the node should.
-spec listens(node()) -> boolean().
listens(Node) ->
    Driver = driver(),
    maybe_listens(Driver, where(Driver, Node)).

maybe_listens(Driver, {ok, #{ip := Ip, port := Port}}) ->
    case Driver:connect(Ip, Port, atoll_dist_socket:connect_options(), net_kernel:connecttime()) of
        {ok, Socket} ->
            ok = inet_tcp:close(Socket),
            true;
        {error, _} ->
            false
    end;
maybe_listens(_Driver, {error, _}) ->
    false.

%% @doc At which port this node is to listen: the one it is told, or a range.
-spec listen_port(atom() | string(), string()) -> {inet:port_number(), inet:port_number()}.
listen_port(Name, Host) ->
    case ask(listen_port_please, [Name, Host]) of
        {ok, 0} -> atoll_dist_socket:port_range();
        {ok, Port} -> {Port, Port}
    end.

ask(Function, Args) ->
    Module = net_kernel:epmd_module(),
    %% With -no_epmd nobody has loaded it before.
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, Function, length(Args)) of
        true -> apply(Module, Function, Args);
        false -> apply(erl_epmd, Function, Args)
    end.

%% @doc The family of addresses of the distribution that this node uses first.
-spec family() -> inet | inet6.
family() ->
    case init:get_argument(proto_dist) of
        {ok, [["atoll6" | _] | _]} -> inet6;
        {ok, [["inet6_" ++ _ | _] | _]} -> inet6;
        _ -> inet
    end.
