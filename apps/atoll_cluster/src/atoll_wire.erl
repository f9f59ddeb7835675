%% SPDX-License-Identifier: Apache-2.0
%% @doc A long network path on one machine: two ends, and between them a round trip,
%% loss and a rate of their own.
%%
%% ```
%% {ok, Wire} = atoll_wire:start(#{rtt_ms => 20}),
%% {ok, Cluster} = atoll_cluster:start(#{nodes => 2, hosts => atoll_wire:ends(Wire)}),
%% '''
%%
%% Each end is a network namespace of the kernel, with a port mapper of its own. What
%% runs in one reaches its own loopback and the other end, and nothing else. The nodes of
%% a cluster are put into them by turns; any other command is with the `wrap' of an end
%% before it. Between the ends a program of ours carries the packets
%% (`c_src/wire.c'); it is compiled when it is first needed. It takes Linux and root.
%%
%% Promised: packets of one direction arrive in the order in which they were sent, none
%% earlier than half of the round trip after it. Each is lost with the given probability,
%% whatever became of others. Together they are no faster than the rate; up to `buffer'
%% bytes wait for it, and what comes beyond is dropped. Every packet that did not arrive
%% is counted, with the reason. When the caller of start ends, when the wire is stopped, or
%% when the VM ends in any way, kill -9 included, the carrying process is gone, and with
%% it the interfaces; a namespace goes with the last process in it, and had no name.
%%
%% Not promised: that they are never later. What carries them needs processor time, about
%% half a core for 1 GB/s, and shares it with what it carries for: on a busy machine
%% `late_us' says how much later. Nor are processes in an end taken down with the wire;
%% they stay, and reach nobody. A cluster takes its own down.
-module(atoll_wire).

-export([start/1, ends/1, set/2, counters/1, os_pid/1, stop/1, allowed/0, available/0, format_error/1]).

-export_type([wire/0, options/0, counters/0, error/0]).

-type wire() :: pid().

-type options() :: #{
    %% How long a packet takes there and back; half of it each way. Default 0: as fast as
    %% it goes, some tens of microseconds.
    rtt_ms => number(),
    %% Up to so much longer, drawn for each packet; half of it each way. Default 0.
    jitter_ms => number(),
    %% The share of packets that get lost each way, 0 to 1. Default 0.
    loss => number(),
    %% How many million bits may leave each end in a second; 0, the default: as many as come.
    rate_mbit => number(),
    %% How many bytes may wait for the rate at each end. Default 1 MiB.
    buffer => non_neg_integer()
}.

-type counters() :: #{
    %% packets, and bytes with their IP headers, that came from this end
    taken := non_neg_integer(),
    taken_bytes := non_neg_integer(),
    %% and that reached the other
    given := non_neg_integer(),
    given_bytes := non_neg_integer(),
    %% lost by chance; because the buffer was full; because too many were on their way
    lost := non_neg_integer(),
    full := non_neg_integer(),
    crowded := non_neg_integer(),
    %% not for the other end, or not taken by its kernel
    strange := non_neg_integer(),
    refused := non_neg_integer(),
    %% dropped by the kernel, since the wire did not get to read them
    unread := non_neg_integer(),
    %% how much later than they should they arrived: the sum over packets, and the most
    late_us := non_neg_integer(),
    late_max_us := non_neg_integer(),
    %% the most bytes that were on their way
    held_max_bytes := non_neg_integer()
}.

-type error() ::
    {bad_option, Key :: term(), Why :: string()}
    | not_linux
    | not_root
    | {lacks, Program :: string()}
    | {not_built, Said :: binary()}
    | {no_program, file:filename_all()}
    %% What the program said, a sentence: this system can have no wire, or something
    %% went wrong.
    | {unable, binary()}
    | {failed, binary()}
    | late.

%% @doc Starts a wire whose owner is the calling process, and returns when packets can
%% go through. After an error nothing is left.
-spec start(options()) -> {ok, wire()} | {error, error()}.
start(Options) ->
    Steps = [
        fun() -> settings(Options) end,
        fun machine/0,
        fun() -> found("nsenter") end,
        fun() -> atoll_wire_program:find(wire) end
    ],
    case steps(Steps, []) of
        {ok, [Settings, machine, Nsenter, Program]} ->
            atoll_wire_server:start(self(), Program, Nsenter, Settings);
        {error, _} = Error ->
            Error
    end.

steps([], Done) ->
    {ok, lists:reverse(Done)};
steps([Step | Steps], Done) ->
    case Step() of
        {ok, Result} -> steps(Steps, [Result | Done]);
        {error, _} = Error -> Error
    end.

machine() ->
    case os:type() of
        {unix, linux} ->
            case atoll_cluster_os:uid() of
                0 -> {ok, machine};
                _ -> {error, not_root}
            end;
        _ ->
            {error, not_linux}
    end.

found(Program) ->
    case os:find_executable(Program) of
        false -> {error, {lacks, Program}};
        File -> {ok, File}
    end.

%% @doc Its two ends, as `hosts' of a cluster.
-spec ends(wire()) -> [atoll_cluster_driver:host(), ...].
ends(Wire) ->
    gen_server:call(Wire, ends, infinity).

%% @doc Changes what it does with the packets that come from now on.
-spec set(wire(), options()) -> ok | {error, error()}.
set(Wire, Options) ->
    case settings(Options) of
        {ok, Settings} -> gen_server:call(Wire, {set, Settings}, infinity);
        {error, _} = Error -> Error
    end.

%% @doc What has become of the packets so far: those of the first end, and those of the
%% second.
-spec counters(wire()) -> [counters(), ...].
counters(Wire) ->
    gen_server:call(Wire, counters, infinity).

%% @doc The process that carries the packets.
-spec os_pid(wire()) -> pos_integer().
os_pid(Wire) ->
    gen_server:call(Wire, os_pid, infinity).

%% @doc Stops it, and returns when it is gone, or if it was.
-spec stop(wire()) -> ok.
stop(Wire) ->
    try
        gen_server:call(Wire, stop, infinity)
    catch
        exit:{Reason, _} when Reason =:= noproc; Reason =:= normal -> ok
    end.

%% @doc Whether this system and this user are such as may have wires; nothing is started.
-spec allowed() -> ok | {error, error()}.
allowed() ->
    case machine() of
        {ok, machine} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc Whether there can be wires here: one is started, and stopped.
-spec available() -> ok | {error, error()}.
available() ->
    case start(#{}) of
        {ok, Wire} -> stop(Wire);
        {error, _} = Error -> Error
    end.

%% What the program is told, key by key.
settings(Options) when is_map(Options) ->
    settings(lists:sort(maps:to_list(Options)), []);
settings(Options) ->
    {error, {bad_option, Options, "is not a map of options"}}.

settings([], Settings) ->
    {ok, lists:reverse(Settings)};
settings([{Key, Value} | Options], Settings) ->
    case setting(Key, Value) of
        {bad, Why} -> {error, {bad_option, Key, Why}};
        Setting -> settings(Options, [lists:flatten(Setting) | Settings])
    end.

setting(rtt_ms, Ms) when is_number(Ms), Ms >= 0, Ms =< 60000 -> ["delay_us=", integer_to_list(round(Ms * 500))];
setting(rtt_ms, _) -> {bad, "must be a number of milliseconds from 0 to 60000"};
setting(jitter_ms, Ms) when is_number(Ms), Ms >= 0, Ms =< 60000 -> ["jitter_us=", integer_to_list(round(Ms * 500))];
setting(jitter_ms, _) -> {bad, "must be a number of milliseconds from 0 to 60000"};
setting(loss, Share) when is_number(Share), Share >= 0, Share =< 1 -> ["loss=", io_lib:format("~.9f", [float(Share)])];
setting(loss, _) -> {bad, "must be a share of the packets, a number from 0 to 1"};
setting(rate_mbit, Rate) when is_number(Rate), Rate >= 0, Rate =< 1000000 -> ["rate=", integer_to_list(round(Rate * 125000))];
setting(rate_mbit, _) -> {bad, "must be a number of million bits a second from 0 to 1000000"};
setting(buffer, Bytes) when is_integer(Bytes), Bytes >= 0, Bytes =< 134217728 -> ["buffer=", integer_to_list(Bytes)];
setting(buffer, _) -> {bad, "must be a whole number of bytes from 0 to 134217728"};
setting(_, _) -> {bad, "is not known"}.

%% @doc One plain sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, Why}) -> io_lib:format("Option ~0tp ~ts.", [Key, Why]);
format_error(not_linux) -> "A wire needs Linux: it is made of network namespaces.";
format_error(not_root) -> "A wire needs root: it makes network namespaces.";
format_error({lacks, Program}) -> ["A wire needs the program ", Program, ", and it is not on the PATH."];
format_error({not_built, Said}) -> ["The wire could not be compiled: ", said(Said)];
format_error({no_program, File}) -> io_lib:format("There is no wire at ~ts, and no scripts/build-wire that compiles it.", [File]);
format_error({unable, Said}) -> said(Said);
format_error({failed, Said}) -> said(Said);
format_error(late) -> "The wire was not ready in time.".

%% On one line.
said(Said) ->
    lists:join(" ", string:lexemes(unicode:characters_to_list(Said), [$\s, $\n, $\r, $\t, "\r\n"])).
