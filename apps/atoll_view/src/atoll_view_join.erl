%% SPDX-License-Identifier: Apache-2.0
%% @doc How this VM comes to talk with the nodes of a cluster that it did not start: as a
%% hidden node, which connects nobody with anybody, listens to nobody and is registered
%% nowhere. Each cluster may have a cookie of its own.
%%
%% A VM that is started with `-setcookie nocookie' needs no HOME for it. The user's cookie, which is
%% taken where none is given, is read then.
%%
%% What a VM has one of, all clusters share that it looks at: long or short names, and the
%% protocol. For a cluster that speaks TLS the VM is started with
%% `-proto_dist inet_tls -ssl_dist_optfile FILE', as the nodes of the cluster are; for one whose hosts
%% have IPv6 addresses alone with `-proto_dist inet6_tcp inet_tcp', by which those with others are
%% reached too. In that order, of a host with both, the IPv4 address is taken: OTP asks the
%% protocols of a node that does not listen from the last to the first.
-module(atoll_view_join).

-export([start/1, is_view/1, let_in/2, why_not/2, node_names/1, protocol/0]).

-export_type([way/0, cookie/0]).

-type way() :: #{
    %% By which the others are found.
    nodes := [node(), ...],
    %% Without, the cookie is that of the user.
    cookie_file => file:filename(),
    %% The options of TLS, as `-ssl_dist_optfile' takes them; without, there is no TLS.
    tls_options_file => file:filename()
}.

-type cookie() :: {ok, atom()} | own.

-define(MAX_NAME, 255).
-define(NAMED, "atoll_view_").
-define(EPMD_MS, 3000).

%% @doc The names of nodes with commas between.
-spec node_names(string()) -> {ok, [node(), ...]} | error.
node_names(Text) ->
    Names = [string:trim(Name) || Name <- string:split(Text, ",", all)],
    IsName = fun(Name) ->
        length(Name) =< ?MAX_NAME andalso re:run(Name, "^[^@\\s]+@[^@\\s]+$", [dollar_endonly, {capture, none}]) =:= match
    end,
    case lists:all(IsName, Names) of
        true -> {ok, lists:usort([list_to_atom(Name) || Name <- Names])};
        false -> error
    end.

%% @doc Makes this VM a node that can talk with those, and gives the cookie for them. A VM that is a
%% node already is to be a hidden one, or it is seen.
-spec start(way()) -> {ok, cookie()} | {error, unicode:chardata()}.
start(#{nodes := [First | _] = Nodes} = Way) ->
    Domains = lists:usort([domain(Node) || Node <- Nodes]),
    case {Domains, both(cookie(Way), tls_options(Way)), protocol(), maps:is_key(tls_options_file, Way)} of
        {[_, _], _, _, _} ->
            {error, "Nodes with long names and nodes with short ones are not of one cluster."};
        {_, {error, _} = Error, _, _} ->
            Error;
        {_, _, tcp, true} ->
            {error, ["This program was not started with TLS, which the cluster of ", atom_to_list(First),
                     " takes: -proto_dist inet_tls -ssl_dist_optfile FILE."]};
        {_, _, tls, false} ->
            {error, ["This program was started with TLS, and no file with its options is given for the cluster of ",
                     atom_to_list(First), $.]};
        {[Domain], Cookie, _, _} ->
            case become(Domain, is_alive()) of
                ok when Cookie =:= own -> own_cookie(erlang:get_cookie());
                ok -> {ok, Cookie};
                {error, _} = Error -> Error
            end
    end.

%% Where OTP looks for it.
own_cookie(nocookie) ->
    Dirs = [Dir || Home <- [os:getenv("HOME", "")], Home =/= "", Dir <- [Home, filename:basedir(user_config, "erlang")]],
    case [File || Dir <- Dirs, File <- [filename:join(Dir, ".erlang.cookie")], filelib:is_regular(File)] of
        [File | _] ->
            case cookie(#{cookie_file => File}) of
                {ok, _} = Cookie -> {ok, Cookie};
                {error, _} = Error -> Error
            end;
        [] -> {error, "There is no .erlang.cookie in HOME, and no other cookie file is named: --cookie-file FILE."}
    end;
own_cookie(_) ->
    {ok, own}.

%% @doc What this VM speaks with other nodes.
-spec protocol() -> tcp | tls.
protocol() ->
    case [Name || {ok, Given} <- [init:get_argument(proto_dist)], Names <- Given, Name <- Names, lists:suffix("_tls", Name)] of
        [_ | _] -> tls;
        [] -> tcp
    end.

%% As OTP tells them apart; the host may be an address.
domain(Node) ->
    case [C || C <- host(Node), C =:= $. orelse C =:= $:] of
        [_ | _] -> longnames;
        [] -> shortnames
    end.

host(Node) ->
    [_, Host] = string:split(atom_to_list(Node), "@"),
    Host.

become(Domain, true) ->
    case net_kernel:get_state() of
        #{name_domain := Domain} -> ok;
        #{name_domain := longnames} -> {error, "This program has a long name already, and nodes with short ones do not talk with it."};
        #{name_domain := shortnames} -> {error, "This program has a short name already, and nodes with long ones do not talk with it."}
    end;
become(Domain, false) ->
    {ok, Here} = inet:gethostname(),
    %% Whoever looks at nodes(hidden) there sees from where. The number is used again: names
    %% are atoms, which a node that is looked at keeps.
    Name = list_to_atom(lists:concat([?NAMED, os:getpid(), "@", full(Domain, Here)])),
    %% OTP's reports of what fails there are not sentences.
    _ = logger:add_primary_filter(?MODULE, {fun of_net_sup/2, []}),
    Started = net_kernel:start(Name, #{name_domain => Domain, hidden => true, dist_listen => false}),
    _ = logger:remove_primary_filter(?MODULE),
    case Started of
        {ok, _} -> ok;
        {error, Reason} -> {error, ["This program could not become a node", not_started(Reason), $.]}
    end.

%% @doc Whether a node is a program that looks, as this one is: it is there for a moment, and no part of what it looks at.
-spec is_view(node()) -> boolean().
is_view(Node) -> lists:prefix(?NAMED, atom_to_list(Node)).

%% A filter is called by the process that logs.
of_net_sup(_Event, _) ->
    case get('$ancestors') of
        [net_sup | _] -> stop;
        _ -> case whereis(net_sup) =:= self() of true -> stop; false -> ignore end
    end.

%% Every node has a cookie of its own, for whomever it has no other one.
not_started({{shutdown, {failed_to_start_child, auth, {Why, _}}}, _}) ->
    [", since it has no cookie of its own in HOME", [[": ", Why] || io_lib:char_list(Why)]];
not_started({{shutdown, {failed_to_start_child, ssl_dist_sup, _}}, _}) ->
    ", since OTP cannot use the file of TLS options that it was started with";
not_started(Reason) ->
    io_lib:format(": ~0tP", [Reason, 8]).

%% Nobody connects to it by that name.
full(longnames, Host) ->
    case lists:member($., Host) of
        true -> Host;
        false -> Host ++ ".local"
    end;
full(shortnames, Host) ->
    hd(string:split(Host, ".")).

cookie(#{cookie_file := File}) ->
    case file:read_file(File) of
        {ok, Text} ->
            case string:trim(binary_to_list(Text)) of
                Cookie when Cookie =/= [], length(Cookie) =< ?MAX_NAME -> {ok, list_to_atom(Cookie)};
                _ -> {error, ["The cookie file ", File, " has no cookie in it."]}
            end;
        {error, Reason} ->
            {error, ["The cookie file ", File, " cannot be read: ", file:format_error(Reason), $.]}
    end;
cookie(#{}) ->
    own.

both({error, _} = Error, _) -> Error;
both(_, {error, _} = Error) -> Error;
both(Cookie, ok) -> Cookie.

%% OTP reads it, and would not say what is wrong with it.
tls_options(#{tls_options_file := File}) ->
    case file:consult(File) of
        {ok, _} -> ok;
        {error, Reason} -> {error, ["The file of TLS options ", File, " cannot be read: ", file:format_error(Reason), $.]}
    end;
tls_options(#{}) ->
    ok.

%% @doc Has these nodes talked to with that cookie.
-spec let_in([node()], cookie()) -> ok.
let_in(_Nodes, own) -> ok;
let_in(Nodes, {ok, Cookie}) -> lists:foreach(fun(Node) -> true = erlang:set_cookie(Node, Cookie) end, Nodes).

%% @doc Why a node has not answered, as far as it can be told from here without trying again:
%% each attempt with a wrong cookie is logged there.
-spec why_not(node(), way()) -> unicode:chardata().
why_not(Node, Way) ->
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    case {lists:member(Node, nodes(connected)), address(Host)} of
        {true, _} ->
            [atom_to_list(Node), " does not answer."];
        {false, {error, Reason}} ->
            ["The host of ", atom_to_list(Node), " is not known here: ", inet:format_error(Reason), $.];
        {false, {ok, Address}} ->
            case {erl_epmd:port_please(Name, Address, ?EPMD_MS), Way} of
                {{port, _, _}, #{tls_options_file := _}} ->
                    [atom_to_list(Node), " is there, and does not let this program in: the cookie, or the options of TLS, are not those of it, "
                     "its full name is another one, or it is stopped."];
                {{port, _, _}, #{}} ->
                    [atom_to_list(Node), " is there, and does not let this program in: the cookie is not its cookie, "
                     "its full name is another one, it takes TLS, it runs the carrier without {stock,accept}, or it is stopped."];
                _ ->
                    ["No node called ", Name, " is registered on ", Host, ", or its port mapper (epmd) cannot be reached."]
            end
    end.

address(Host) ->
    case inet:getaddr(Host, inet) of
        {ok, Address} -> {ok, Address};
        {error, _} -> inet:getaddr(Host, inet6)
    end.
