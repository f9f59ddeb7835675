%% SPDX-License-Identifier: Apache-2.0
%% @doc What can be done on a host: the plug point of those that reach one, and what a master asks there. All of it is done
%% by one shell script, `priv/host', which comes with each question; so nothing has to be installed on a host but what
%% its nodes need, and a host behind ssh and this machine are the same but for the way.
%%
%% A secret is in the script's standard input only: no list of processes has it, and no file but the node's own cookie.
-module(atoll_deploy_host).

-export([facts/2, upload/3, start/2, stop/2, sweep/2, running/2, signal/3, log/3, quoted/1]).

-export_type([way/0, address/0, connection/0, node_start/0, node_stop/0, running/0]).

-type way() :: {Driver :: module(), connection()}.

-type connection() :: term().

-type address() :: #{
    host := string(),
    port := inet:port_number(),
    user := string() | none,
    provider := atoll_deploy_thing:thing()
}.

-type answer() :: {ok, [binary()]} | {error, unicode:chardata()}.

-type node_start() :: #{
    dir := string(), node := string(), mark := string(), sum := string(), seconds := pos_integer(), start := string(), health := string(), apps := [string()],
    %% And the address on which what nodes of the host share is to listen, if not on all.
    host := string(), address := string(), flags := [string()], cookie := atoll_deploy_family:secret(), contacts := [string()]
}.

-type node_stop() :: #{dir := string(), node := string(), mark := string(), sum := string(), seconds := pos_integer(), stop := string(), flags := [string()]}.

-type running() :: [{Node :: string(), up | left}].
%% Of one that is left no VM runs, but something that it has started.

%% Connects, and says in a sentence why it cannot. Several processes may use a connection.
-callback open(address()) -> {ok, connection()} | {error, unicode:chardata()}.

%% Runs `sh' with these arguments and this standard input, and gives what it has written.
-callback run(connection(), Args :: [string()], Input :: iodata(), Ms :: pos_integer()) ->
    {ok, Status :: non_neg_integer(), Output :: binary()} | {error, unicode:chardata()}.

%% Copies a file of this machine to one of the host, which is made.
-callback put(connection(), From :: file:filename(), To :: string()) -> ok | {error, unicode:chardata()}.

-callback close(connection()) -> ok.

-define(MS, 30000).
-define(UPLOAD_MS, 600000).

%% @doc What the host has. The folder is made.
-spec facts(way(), Dir :: string()) -> {ok, #{cores := integer(), memory_mb := integer(), free_kb := integer()}} | {error, unicode:chardata()}.
facts(Way, Dir) ->
    case asked(Way, ["facts", Dir], <<>>, ?MS) of
        {ok, Lines} ->
            Facts = maps:from_list([{Key, binary_to_integer(Value)} || Line <- Lines, [Key, Value] <- [binary:split(Line, <<" ">>)]]),
            case Facts of
                #{<<"cores">> := Cores, <<"memory_mb">> := Memory, <<"free_kb">> := Free} -> {ok, #{cores => Cores, memory_mb => Memory, free_kb => Free}};
                #{} -> {error, "it does not say what it has"}
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc Has the host have a release, if it has not.
-spec upload(way(), Dir :: string(), {Sum :: string(), Archive :: file:filename()}) -> {ok, uploaded | there} | {error, unicode:chardata()}.
upload({Driver, Connection} = Way, Dir, {Sum, Archive}) ->
    case asked(Way, ["has", Dir, Sum], <<>>, ?MS) of
        {ok, [<<"yes">>]} ->
            {ok, there};
        {ok, _} ->
            To = lists:concat([Dir, "/upload.", Sum, ".", os:getpid()]),
            case Driver:put(Connection, Archive, To) of
                ok ->
                    case asked(Way, ["unpack", Dir, To, Sum], <<>>, ?UPLOAD_MS) of
                        {ok, _} -> {ok, uploaded};
                        {error, _} = Error -> Error
                    end;
                {error, Why} ->
                    %% What has come of it is in the way of others.
                    Free = facts(Way, Dir),
                    _ = asked(Way, ["unpack", Dir, To, "none"], <<>>, ?MS),
                    {error, ["the release could not be uploaded: ", full(Free, filelib:file_size(Archive), Why)]}
            end;
        {error, _} = Error ->
            Error
    end.

%% sftp has no word for it.
full({ok, #{free_kb := Free}}, Size, _) when Free * 1024 < Size -> io_lib:format("the disk is full: ~b KB are free, and it has ~b KB", [Free, Size div 1024]);
full(_, _, Why) -> Why.

%% @doc Starts a node, and returns when it is well. If it does not get well nothing of it is left.
-spec start(way(), node_start()) -> ok | {error, unicode:chardata()}.
start(Way, #{dir := Dir, node := Node, mark := Mark, sum := Sum, seconds := Seconds, start := Start, health := Health, apps := Apps} = Asked) ->
    #{host := Host, address := Address, flags := Flags, cookie := Cookie, contacts := Contacts} = Asked,
    Args = ["start", Dir, Node, Mark, Sum, integer_to_list(Seconds), Start, Health, lists:append(lists:join(" ", Apps)), Host, Address | Flags],
    Secret = ["cookie=", quoted(Cookie()), "\ncontacts=", quoted(lists:join("\n", Contacts)), "\n"],
    done(asked(Way, Args, Secret, Seconds * 2000 + ?MS)).

%% @doc Stops a node, by its stop command where there is one; what does not end is killed. One that is said something of has been
%% stopped, too.
-spec stop(way(), node_stop()) -> ok | {said, unicode:chardata()} | {error, unicode:chardata()}.
stop(Way, #{dir := Dir, node := Node, mark := Mark, sum := Sum, seconds := Seconds, stop := Stop, flags := Flags}) ->
    case asked(Way, ["stop", Dir, Node, Mark, Sum, integer_to_list(Seconds), Stop | Flags], <<>>, Seconds * 3000 + ?MS) of
        {ok, Lines} ->
            case [Said || <<"said: ", Said/binary>> <- Lines] of
                [] -> ok;
                [Said | _] -> {said, Said}
            end;
        {error, _} = Error -> Error
    end.

%% @doc Kills all whose mark begins so. With the last nodes of a host goes what they stood on.
-spec sweep(way(), #{dir := string(), mark := string(), host := string(), last := boolean()}) -> ok | {error, unicode:chardata()}.
sweep(Way, #{dir := Dir, mark := Mark, host := Host, last := Last}) ->
    done(asked(Way, ["sweep", Dir, Mark, Host, case Last of true -> "yes"; false -> "no" end], <<>>, ?MS)).

%% @doc The nodes whose mark begins so, of which something runs.
-spec running(way(), Mark :: string()) -> {ok, running()} | {error, unicode:chardata()}.
running(Way, Mark) ->
    case asked(Way, ["running", Mark], <<>>, ?MS) of
        {ok, Lines} ->
            Up = [unicode:characters_to_list(Node) || <<"up ", Node/binary>> <- Lines],
            {ok, [{Node, up} || Node <- Up] ++ [{Node, left} || <<"left ", Text/binary>> <- Lines, Node <- [unicode:characters_to_list(Text)], not lists:member(Node, Up)]};
        {error, _} = Error -> Error
    end.

%% @doc Sends a signal to all processes of a node.
-spec signal(way(), Mark :: string(), kill | stop | cont) -> ok | {error, unicode:chardata()}.
signal(Way, Mark, Signal) ->
    done(asked(Way, ["signal", Mark, string:uppercase(atom_to_list(Signal))], <<>>, ?MS)).

%% @doc The last lines of what a node has said.
-spec log(way(), {Dir :: string(), Node :: string()}, Lines :: pos_integer()) -> answer().
log(Way, {Dir, Node}, Lines) ->
    asked(Way, ["log", Dir, Node, integer_to_list(Lines)], <<>>, ?MS).

done({ok, _}) -> ok;
done({error, _} = Error) -> Error.

asked({Driver, Connection}, Args, Secret, Ms) ->
    {ok, Script} = file:read_file(filename:join(code:priv_dir(atoll_deploy), "host")),
    case Driver:run(Connection, ["-s", "--" | Args], [Secret, Script], Ms) of
        {ok, 0, Output} -> {ok, lines(Output)};
        {ok, Status, Output} ->
            case [Why || <<"error: ", Why/binary>> <- lines(Output)] of
                [Why | _] -> {error, Why};
                [] -> {error, io_lib:format("~ts ended with ~b: ~ts", [hd(Args), Status, string:slice(Output, 0, 200)])}
            end;
        {error, _} = Error -> Error
    end.

lines(Output) -> binary:split(Output, <<"\n">>, [global, trim_all]).

%% @doc A word of a shell, in which nothing means anything to it.
-spec quoted(unicode:chardata()) -> unicode:chardata().
quoted(Text) -> [$', string:replace(unicode:characters_to_binary(Text), "'", "'\\''", all), $'].
