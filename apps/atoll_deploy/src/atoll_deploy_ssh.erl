%% SPDX-License-Identifier: Apache-2.0
%% @doc The driver of machines behind ssh, with OTP's client: keys and known hosts as they stand in the user's folder, no
%% passwords, no questions. A host whose key is not the known one is not spoken to. With a jump the connection goes
%% through that host, which is known by its own key, and sees nothing of it.
%%
%% OTP's application `ssh' is asked for when it is first needed: Debian has it in a package of its own.
-module(atoll_deploy_ssh).
-behaviour(atoll_deploy_host).

-export([available/0, command/2, open/1, run/4, put/3, close/1]).

-export_type([connection/0]).

-type connection() :: #{to := string(), connection := pid(), jump := pid() | none}.

-define(CONNECT_MS, 15000).
-define(SFTP_MS, 60000).
%% A server of OpenSSH ends when a packet has 256 KiB or more; so many pieces are on their way.
-define(PIECE, 32768).
-define(WINDOW, 32).
%% A module that may not be there, so that nothing asks for it before it is needed.
-define(SSH, (list_to_atom("ssh"))).
-define(CHANNEL, (list_to_atom("ssh_connection"))).
-define(SFTP, (list_to_atom("ssh_sftp"))).

%% @doc Whether there is a client.
-spec available() -> ok | {error, unicode:chardata()}.
available() ->
    case code:which(?SSH) of
        non_existing -> {error, "this needs OTP's application ssh (erlang-ssh of Debian), which is not installed"};
        _ ->
            {ok, _} = application:ensure_all_started(?SSH),
            %% Which of several safe ways it has taken is for nobody.
            ok = logger:set_application_level(?SSH, warning)
    end.

%% @doc The command of OpenSSH's client that takes a line of a shell to a host, by the same keys and known hosts; none for a
%% host of another driver, which is this machine.
-spec command(atoll_deploy_host:address(), Driver :: module()) -> [string()].
command(_, Driver) when Driver =/= ?MODULE ->
    [];
command(#{host := Host, port := Port, user := User, provider := Provider}, ?MODULE) ->
    Folder = folder(Provider),
    Keys = [Key || Public <- filelib:wildcard(filename:join(Folder, "id_*.pub")), Key <- [filename:rootname(Public)]],
    %% A file's name may have blanks.
    Options = ["-F", "none", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", lists:concat(["UserKnownHostsFile=\"", filename:join(Folder, "known_hosts"), "\""])] ++
        lists:append([["-i", Key] || Key <- Keys]),
    Jump = case Provider of
        #{jump := {JumpUser, JumpHost, JumpPort}} ->
            %% A line of a shell, in which ssh puts something in the place of what follows a %.
            Words = ["ssh"] ++ Options ++ ["-p", integer_to_list(JumpPort), "-l", JumpUser, JumpHost],
            Line = string:replace(lists:join(" ", [atoll_deploy_host:quoted(Word) || Word <- Words]), "%", "%%", all),
            ["-o", unicode:characters_to_list(["ProxyCommand=", Line, " -W '%h:%p'"])];
        _ -> []
    end,
    ["ssh"] ++ Options ++ Jump ++ ["-p", integer_to_list(Port)] ++ case User of none -> []; _ -> ["-l", User] end ++ [Host].

-spec open(atoll_deploy_host:address()) -> {ok, connection()} | {error, unicode:chardata()}.
open(#{host := Host, port := Port, user := User, provider := Provider}) ->
    case {ready(folder(Provider)), Provider} of
        {{error, _} = Error, _} ->
            Error;
        {ok, #{jump := {JumpUser, JumpHost, JumpPort}}} ->
            case connected({JumpHost, JumpPort}, {JumpHost, JumpPort}, JumpUser, Provider) of
                {ok, Jump} ->
                    case through(Jump, {Host, Port}, User, Provider) of
                        {ok, Connection} -> {ok, #{to => Host, connection => Connection, jump => Jump}};
                        {error, _} = Error -> ok = (?SSH):close(Jump), Error
                    end;
                {error, Why} ->
                    {error, ["the jump host ", JumpHost, ": ", Why]}
            end;
        {ok, _} ->
            case connected({Host, Port}, {Host, Port}, User, Provider) of
                {ok, Connection} -> {ok, #{to => Host, connection => Connection, jump => none}};
                {error, _} = Error -> Error
            end
    end.

through(Jump, To, User, Provider) ->
    case atoll_deploy_ssh_jump:open(Jump, To, ?CONNECT_MS) of
        {ok, Socket} -> connected({socket, Socket}, To, User, Provider);
        {error, Reason} -> {error, why(Reason)}
    end.

ready(Folder) ->
    case {available(), filelib:is_dir(Folder)} of
        {ok, false} -> {error, ["there is no folder ", Folder, ", where keys and known hosts are"]};
        {Available, _} -> Available
    end.

%% Where the socket leads, and whose key it is to be.
connected(At, Named, User, Provider) ->
    Tag = make_ref(),
    Folder = folder(Provider),
    Known = atoll_deploy_ssh_key:known(Folder, Named),
    Options = [{user, user(User)}] ++ [{modify_algorithms, [{prepend, [{public_key, lists:usort(Known)}]}]} || Known =/= []] ++ [
        {user_dir, Folder}, {key_cb, {atoll_deploy_ssh_key, [{named, Named}, {tell, {self(), Tag}}]}},
        {user_interaction, false}, {silently_accept_hosts, false}, {save_accepted_host, false},
        {auth_methods, "publickey"}, {connect_timeout, ?CONNECT_MS}, {disconnectfun, fun(_) -> ok end}
    ],
    case dialled(At, Options) of
        {ok, Connection} ->
            _ = refused(Tag),
            {ok, Connection};
        {error, Reason} ->
            case refused(Tag) of
                no -> {error, why(Reason)};
                unknown -> {error, ["its key is not in ", filename:join(Folder, "known_hosts"), ", so it was not spoken to"]};
                another -> {error, ["its key is another than in ", filename:join(Folder, "known_hosts"), ", so it was not spoken to"]}
            end
    end.

%% Where the environment says nothing OTP would not know it.
user(none) -> string:trim(os:cmd("id -un"));
user(User) -> User.

dialled({socket, Socket}, Options) -> (?SSH):connect(Socket, Options, ?CONNECT_MS);
dialled({Host, Port}, Options) -> (?SSH):connect(Host, Port, Options, ?CONNECT_MS).

refused(Tag) ->
    receive {Tag, Why} -> Why
    after 0 -> no
    end.

folder(#{ssh_dir := Dir}) -> Dir;
folder(_) -> filename:join(os:getenv("HOME", "/"), ".ssh").

why(econnrefused) -> "nothing listens for ssh there";
why(timeout) -> "it does not answer";
why(nxdomain) -> "there is no host of that name";
why(Reason) when is_atom(Reason) -> inet:format_error(Reason);
why("Unable to connect using the available authentication methods" ++ _) -> "it does not take the user's keys";
why(Reason) -> case io_lib:printable_unicode_list(Reason) of true -> Reason; false -> io_lib:format("~0tP", [Reason, 10]) end.

-spec run(connection(), [string()], iodata(), pos_integer()) -> {ok, non_neg_integer(), binary()} | {error, unicode:chardata()}.
run(#{connection := Connection}, Args, Input, Ms) ->
    Command = unicode:characters_to_list(["exec sh" | [[$\s, atoll_deploy_host:quoted(Arg)] || Arg <- Args]]),
    Until = erlang:monotonic_time(millisecond) + Ms,
    case (?CHANNEL):session_channel(Connection, Ms) of
        {ok, Channel} ->
            Ran =
                case (?CHANNEL):exec(Connection, Channel, Command, Ms) of
                    success ->
                        %% The script ends by itself. One that has ended before all of it was read says why.
                        _ = (?CHANNEL):send(Connection, Channel, iolist_to_binary(Input), Ms),
                        _ = (?CHANNEL):send_eof(Connection, Channel),
                        ran(Connection, Channel, Until, #{said => [], status => none});
                    _ ->
                        {error, "it runs no commands for this user"}
                end,
            ok = (?CHANNEL):close(Connection, Channel),
            Ran;
        {error, _} ->
            {error, "the connection was lost"}
    end.

ran(Connection, Channel, Until, #{said := Said, status := Status} = Ran) ->
    receive
        {ssh_cm, Connection, {data, Channel, _, Data}} ->
            ok = (?CHANNEL):adjust_window(Connection, Channel, byte_size(Data)),
            ran(Connection, Channel, Until, Ran#{said := [Said, Data]});
        {ssh_cm, Connection, {exit_status, Channel, Is}} -> ran(Connection, Channel, Until, Ran#{status := Is});
        {ssh_cm, Connection, {eof, Channel}} -> ran(Connection, Channel, Until, Ran);
        {ssh_cm, Connection, {exit_signal, Channel, Signal, _, _}} -> {error, ["it was ended by the signal ", Signal]};
        {ssh_cm, Connection, {closed, Channel}} when is_integer(Status) -> {ok, Status, iolist_to_binary(Said)};
        {ssh_cm, Connection, {closed, Channel}} -> {error, "the connection was lost"}
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        {error, "it did not answer in time"}
    end.

-spec put(connection(), file:filename(), string()) -> ok | {error, unicode:chardata()}.
put(#{connection := Connection}, From, To) ->
    case (?SFTP):start_channel(Connection, [{timeout, ?SFTP_MS}]) of
        {ok, Sftp} ->
            Put = put_file(Sftp, From, To),
            ok = (?SFTP):stop_channel(Sftp),
            Put;
        {error, Reason} ->
            {error, ["sftp: ", why(Reason)]}
    end.

put_file(Sftp, From, To) ->
    {ok, File} = file:open(From, [read, raw, binary]),
    Put =
        case (?SFTP):open(Sftp, To, [write, creat, trunc, binary], ?SFTP_MS) of
            {ok, Handle} ->
                Written = pieces(File, Sftp, Handle, []),
                case {Written, (?SFTP):close(Sftp, Handle, ?SFTP_MS)} of
                    {ok, ok} -> ok;
                    {ok, {error, _} = Error} -> Error;
                    {{error, _} = Error, _} -> Error
                end;
            {error, _} = Error ->
                Error
        end,
    ok = file:close(File),
    case Put of
        ok -> ok;
        {error, Reason} -> {error, ["sftp: ", why(Reason)]}
    end.

pieces(File, Sftp, Handle, Waiting) when length(Waiting) < ?WINDOW ->
    case file:read(File, ?PIECE) of
        {ok, Piece} ->
            case (?SFTP):awrite(Sftp, Handle, Piece) of
                {async, N} -> pieces(File, Sftp, Handle, Waiting ++ [N]);
                {error, _} = Error -> Error
            end;
        eof -> written(Waiting);
        {error, _} = Error -> Error
    end;
pieces(File, Sftp, Handle, [N | Waiting]) ->
    case written([N]) of
        ok -> pieces(File, Sftp, Handle, Waiting);
        {error, _} = Error -> Error
    end.

%% What is on its way after an error is for nobody: the process that sends it ends soon.
written([]) ->
    ok;
written([N | Waiting]) ->
    receive
        {async_reply, N, ok} -> written(Waiting);
        {async_reply, N, {error, _} = Error} -> Error
    after ?SFTP_MS -> {error, timeout}
    end.

-spec close(connection()) -> ok.
close(#{connection := Connection, jump := Jump}) ->
    ok = (?SSH):close(Connection),
    _ = [ok = (?SSH):close(Jump) || Jump =/= none],
    ok.
