%% SPDX-License-Identifier: Apache-2.0
%% @doc The sockets that listen, with the connections that wait to be accepted and how many may: what `ss -ltn'
%% shows, asked of Linux over netlink (sock_diag(7)), in the network namespace of this program. Where that cannot be asked
%% there are none.
-module(atoll_scale_listen).

-export([all/0, holders/1, inodes/1, parse/1]).

-export_type([listener/0]).

-type listener() :: #{
    port := inet:port_number(),
    waiting := non_neg_integer(),
    backlog := non_neg_integer(),
    %% Which socket it is, for {@link inodes/1}.
    inode := non_neg_integer()
}.

-define(AF_NETLINK, 16).
-define(NETLINK_SOCK_DIAG, 4).
-define(SOCK_DIAG_BY_FAMILY, 20).
%% NLM_F_REQUEST bor NLM_F_DUMP.
-define(FLAGS, 16#301).
-define(NLMSG_DONE, 3).
-define(AF_INET, 2).
-define(AF_INET6, 10).
-define(IPPROTO_TCP, 6).
-define(LISTEN, 10).
-define(MS, 1000).

%% @doc All of them.
-spec all() -> [listener()].
all() ->
    case socket:open(?AF_NETLINK, raw, ?NETLINK_SOCK_DIAG) of
        {ok, Socket} ->
            try
                lists:append([asked(Socket, Family) || Family <- [?AF_INET, ?AF_INET6]])
            after
                _ = socket:close(Socket)
            end;
        {error, _} ->
            []
    end.

asked(Socket, Family) ->
    %% struct inet_diag_req_v2: family, protocol, extensions, a byte unused, the states as bits, the socket (all of them).
    Body = <<Family, ?IPPROTO_TCP, 0, 0, (1 bsl ?LISTEN):32/native, 0:(48 * 8)>>,
    Request = <<(16 + byte_size(Body)):32/native, ?SOCK_DIAG_BY_FAMILY:16/native, ?FLAGS:16/native, 1:32/native, 0:32, Body/binary>>,
    case socket:send(Socket, Request) of
        ok -> received(Socket, []);
        {error, _} -> []
    end.

received(Socket, Found) ->
    case socket:recv(Socket, 0, [], ?MS) of
        {ok, Data} ->
            case parse(Data) of
                {more, Some} -> received(Socket, Found ++ Some);
                {done, Some} -> Found ++ Some
            end;
        {error, _} ->
            Found
    end.

%% @doc Those in a part of the answer, and whether more parts come.
-spec parse(binary()) -> {more | done, [listener()]}.
parse(Data) -> parse(Data, []).

parse(<<Length:32/native, Type:16/native, _:(10 * 8), _/binary>> = Data, Found) when Length >= 16, byte_size(Data) >= Length ->
    <<_:16/binary, Body:(Length - 16)/binary, Rest0/binary>> = Data,
    %% Each message begins at a multiple of four.
    Padding = min(byte_size(Rest0), -Length band 3),
    <<_:Padding/binary, Rest/binary>> = Rest0,
    case {Type, Body} of
        {?SOCK_DIAG_BY_FAMILY, <<_Family, ?LISTEN, _Timer, _Retrans, Port:16/big, _:(46 * 8), _Expires:32, Waiting:32/native, Backlog:32/native, _Uid:32, Inode:32/native, _/binary>>} ->
            parse(Rest, [#{port => Port, waiting => Waiting, backlog => Backlog, inode => Inode} | Found]);
        {?SOCK_DIAG_BY_FAMILY, _} ->
            parse(Rest, Found);
        %% The end, or an error.
        _ ->
            {done, lists:reverse(Found)}
    end;
parse(_, Found) ->
    {more, lists:reverse(Found)}.

%% @doc The processes that listen at a port, as far as this one may look into them.
-spec holders(inet:port_number()) -> [pos_integer()].
holders(Port) ->
    Listening = [Inode || #{port := Is, inode := Inode} <- all(), Is =:= Port],
    Pids = [list_to_integer(Name) || Name <- filelib:wildcard("[0-9]*", "/proc")],
    [Pid || Pid <- Pids, Inode <- inodes(Pid), lists:member(Inode, Listening)].

%% @doc The sockets that a process has open.
-spec inodes(pos_integer()) -> [non_neg_integer()].
inodes(Pid) ->
    Dir = lists:concat(["/proc/", Pid, "/fd"]),
    case file:list_dir(Dir) of
        {ok, Names} ->
            [
                binary_to_integer(Inode)
             || Name <- Names,
                {ok, Link} <- [file:read_link_all(filename:join(Dir, Name))],
                {match, [Inode]} <- [re:run(Link, "^socket:\\[(\\d+)\\]$", [{capture, [1], binary}])]
            ];
        {error, _} ->
            []
    end.
