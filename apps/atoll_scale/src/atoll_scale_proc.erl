%% SPDX-License-Identifier: Apache-2.0
%% @doc What Linux says of processes and of their network, from the texts of `/proc': open files and their
%% limit, memory, what the kernel has dropped, sockets, ports for connections that go out. Any program, in any
%% language. A text that is not there gives nothing.
%%
%% The counters of TCP are those of the network namespace: other programs in it count too.
-module(atoll_scale_proc).

-export([processes/1, files/1, memory/1, counters/1, sockets/1, outgoing/0, most_to_one/0, number/1, ticks/1, children/1, marked/1]).
-export([parse_limit/1, parse_counters/1, parse_sockets/1, parse_most_to_one/1]).

-type os_pid() :: pos_integer() | self.

%% @doc The names of those that live.
-spec processes([os_pid()]) -> [{os_pid(), Name :: binary()}].
processes(Pids) ->
    [{Pid, string:trim(Name)} || Pid <- Pids, {ok, Name} <- [read(Pid, "comm")], Name =/= <<>>].

read(Pid, Name) -> file:read_file(lists:concat(["/proc/", Pid, "/", Name])).

%% @doc How many files it has open, and how many it may have.
-spec files(os_pid()) -> {ok, Open :: non_neg_integer(), Limit :: pos_integer() | infinity} | none.
files(Pid) ->
    case {file:list_dir(lists:concat(["/proc/", Pid, "/fd"])), read(Pid, "limits")} of
        {{ok, Open}, {ok, Limits}} ->
            case parse_limit(Limits) of
                {ok, Limit} -> {ok, length(Open), Limit};
                none -> none
            end;
        _ ->
            none
    end.

%% @doc The soft limit of open files, of the text of `limits'.
-spec parse_limit(binary()) -> {ok, pos_integer() | infinity} | none.
parse_limit(Text) ->
    case re:run(Text, "^Max open files\\s+(\\d+|unlimited)", [multiline, {capture, [1], binary}]) of
        {match, [<<"unlimited">>]} -> {ok, infinity};
        {match, [Limit]} -> {ok, binary_to_integer(Limit)};
        nomatch -> none
    end.

%% @doc The memory that it has in use.
-spec memory(os_pid()) -> non_neg_integer().
memory(Pid) ->
    case read(Pid, "status") of
        {ok, Text} ->
            case re:run(Text, "^VmRSS:\\s+(\\d+) kB", [multiline, {capture, [1], binary}]) of
                {match, [KiB]} -> binary_to_integer(KiB) * 1024;
                nomatch -> 0
            end;
        {error, _} ->
            0
    end.

%% @doc The counters of TCP in the namespace of a process.
-spec counters(os_pid()) -> #{binary() => integer()}.
counters(Pid) ->
    case read(Pid, "net/netstat") of
        {ok, Text} -> parse_counters(Text);
        {error, _} -> #{}
    end.

%% @doc Those of the text of `net/netstat', of the lines of `TcpExt': one with the names, one with the numbers.
-spec parse_counters(binary()) -> #{binary() => integer()}.
parse_counters(Text) ->
    case [string:lexemes(Rest, " ") || <<"TcpExt:", Rest/binary>> <- binary:split(Text, <<"\n">>, [global])] of
        [Names, Numbers] when length(Names) =:= length(Numbers) ->
            maps:from_list(lists:zip(Names, [binary_to_integer(N) || N <- Numbers]));
        _ ->
            #{}
    end.

%% @doc How many sockets of TCP there are in the namespace of a process: those in use, and those that wait for their end.
-spec sockets(os_pid()) -> #{in_use => non_neg_integer(), waiting => non_neg_integer()}.
sockets(Pid) ->
    case read(Pid, "net/sockstat") of
        {ok, Text} -> parse_sockets(Text);
        {error, _} -> #{}
    end.

%% @doc Those of the text of `net/sockstat'.
-spec parse_sockets(binary()) -> #{in_use => non_neg_integer(), waiting => non_neg_integer()}.
parse_sockets(Text) ->
    case re:run(Text, "^TCP: inuse (\\d+) orphan \\d+ tw (\\d+)", [multiline, {capture, [1, 2], binary}]) of
        {match, [InUse, Waiting]} -> #{in_use => binary_to_integer(InUse), waiting => binary_to_integer(Waiting)};
        nomatch -> #{}
    end.

%% @doc How many ports there are for connections that go out, to one port of one address.
-spec outgoing() -> pos_integer() | none.
outgoing() ->
    case file:read_file("/proc/sys/net/ipv4/ip_local_port_range") of
        {ok, Text} ->
            [First, Last] = [binary_to_integer(N) || N <- string:lexemes(string:trim(Text), "\t ")],
            Last - First + 1;
        {error, _} ->
            none
    end.

%% @doc How many sockets there are from one address to one port of another, of those of which there are most: so many ports
%% they have. It reads a line for each socket of the machine.
-spec most_to_one() -> non_neg_integer().
most_to_one() ->
    parse_most_to_one([Text || File <- ["net/tcp", "net/tcp6"], {ok, Text} <- [read(self, File)]]).

%% @doc That of the texts of `net/tcp' and `net/tcp6'.
-spec parse_most_to_one([binary()]) -> non_neg_integer().
parse_most_to_one(Texts) ->
    Pairs = [
        {hd(binary:split(Local, <<":">>)), Remote}
     || Text <- Texts, Line <- tl(binary:split(Text, <<"\n">>, [global])), [_, Local, Remote, State | _] <- [string:lexemes(binary:part(Line, 0, min(110, byte_size(Line))), " ")], State =/= <<"0A">>
    ],
    lists:max([0 | maps:values(lists:foldl(fun(Pair, Counts) -> maps:update_with(Pair, fun(N) -> N + 1 end, 1, Counts) end, #{}, Pairs))]).

%% @doc The number that a file holds.
-spec number(file:filename()) -> integer() | none.
number(File) ->
    case file:read_file(File) of
        {ok, Text} -> binary_to_integer(string:trim(Text));
        {error, _} -> none
    end.

%% @doc The processor time of processes and of the children that they have waited for, in hundredths of a second.
-spec ticks([os_pid()]) -> number().
ticks(Pids) ->
    lists:sum([
        Ticks
     || Pid <- Pids,
        {ok, <<_, _/binary>> = Text} <- [read(Pid, "stat")],
        {_, _, Ticks} <- [atoll_bench_machine:parse_stat(Text)]
    ]).

%% @doc A process and all that it has started.
-spec children(os_pid()) -> [os_pid()].
children(Root) ->
    Parents = [
        {list_to_integer(Dir), binary_to_integer(Parent)}
     || Dir <- filelib:wildcard("[0-9]*", "/proc"),
        {ok, <<_, _/binary>> = Text} <- [file:read_file("/proc/" ++ Dir ++ "/stat")],
        [_State, Parent | _] <- [atoll_cluster_os:stat_fields(Text)]
    ],
    maps:keys(atoll_bench_machine:family(Root, Parents)).

%% @doc The processes with this text in their environment.
-spec marked(iodata()) -> [os_pid()].
marked(Mark) ->
    Pattern = binary:compile_pattern(iolist_to_binary(Mark)),
    [
        list_to_integer(Dir)
     || Dir <- filelib:wildcard("[0-9]*", "/proc"),
        {ok, Environment} <- [file:read_file("/proc/" ++ Dir ++ "/environ")],
        binary:match(Environment, Pattern) =/= nomatch
    ].
