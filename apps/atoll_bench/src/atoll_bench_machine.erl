%% SPDX-License-Identifier: Apache-2.0
%% @doc The machine that a benchmark ran on, and how much of it others took.
-module(atoll_bench_machine).

-export([describe/0, look/0, others/3, flags/1, busy/2, parse_stat/1, family/2]).
-export([cpu_ns/1, own_cpu_us/0, sent/0, pss_kib/1]).

-export_type([look/0]).

-opaque look() :: {Busy :: number(), Ours :: number()} | none.
%% Ticks since the boot: of all processors that this VM may run on, and of this VM with
%% all that it has started. `none' where the system does not tell.

-define(LEAST_MS, 500).

%% @doc For the head of a result file. Nothing that names the machine or its user.
-spec describe() -> #{atom() => term()}.
describe() ->
    #{
        cpu => cpu(),
        cores => erlang:system_info(logical_processors_available),
        memory_bytes => memory(),
        kernel => kernel(),
        otp => list_to_binary(erlang:system_info(otp_release)),
        erts => list_to_binary(erlang:system_info(version)),
        emulator => erlang:system_info(emu_flavor),
        schedulers => erlang:system_info(schedulers_online),
        flags => lists:append([flags(Text) || Name <- ["ERL_AFLAGS", "ERL_FLAGS", "ERL_ZFLAGS"], Text <- [os:getenv(Name, "")]])
    }.

cpu() ->
    case field("model name", "/proc/cpuinfo") of
        {ok, Name} -> Name;
        none -> list_to_binary(erlang:system_info(system_architecture))
    end.

memory() ->
    case field("MemTotal", "/proc/meminfo") of
        {ok, Text} -> binary_to_integer(hd(binary:split(Text, <<" ">>))) * 1024;
        none -> null
    end.

kernel() ->
    {_, Name} = os:type(),
    Version =
        case os:version() of
            {A, B, C} -> io_lib:format("~b.~b.~b", [A, B, C]);
            Text -> Text
        end,
    iolist_to_binary([atom_to_list(Name), $\s, Version]).

%% @doc Of flags as they are given to erl, the emulator's: those that begin with `+',
%% and the word after each if it can be its value. The others are left out: among
%% them are cookies, names and paths.
-spec flags(string()) -> [binary()].
flags(Text) ->
    [Flag || Word <- emulator(string:lexemes(Text, " \t\n")), Flag <- [unicode:characters_to_binary(Word)], is_binary(Flag)].

emulator([[$+ | _] = Flag, [C | _] = Value | Words]) when C =/= $+, C =/= $- ->
    [Word || Word <- [Flag, Value], not lists:member($/, Word)] ++ emulator(Words);
emulator([[$+ | _] = Flag | Words]) ->
    [Flag || not lists:member($/, Flag)] ++ emulator(Words);
emulator([_ | Words]) ->
    emulator(Words);
emulator([]) ->
    [].

field(Name, File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case re:run(Text, ["^", Name, "\\s*:\\s*(.*?)\\s*$"], [multiline, {capture, [1], binary}]) of
                {match, [Value]} -> {ok, Value};
                nomatch -> none
            end;
        {error, _} ->
            none
    end.

%% @doc What was used so far.
-spec look() -> look().
look() ->
    case {file:read_file("/proc/stat"), field("Cpus_allowed_list", "/proc/self/status")} of
        {{ok, Stat}, {ok, Allowed}} -> {busy(Stat, Allowed), ours()};
        _ -> none
    end.

%% @doc The share of what was used between two looks that other processes used, or the host of
%% this machine gave to others, of all that the processors of this VM had to give. It is `null'
%% where that is not known, and in a time so short that the rounding to whole ticks, of each process
%% that this VM has started, may be more than what would disturb a round.
-spec others(look(), look(), WallMs :: non_neg_integer()) -> float() | null.
others({Busy0, Ours0}, {Busy, Ours}, WallMs) when WallMs >= ?LEAST_MS ->
    %% A tick is a hundredth of a second on every Linux that Erlang runs on.
    Given = erlang:system_info(logical_processors_available) * WallMs / 10,
    max(0.0, min(1.0, ((Busy - Busy0) - (Ours - Ours0)) / Given));
others(_, _, _) ->
    null.

%% @doc From the text of `/proc/stat', what the processors of a list such as `0-3,8'
%% were used for: others are no business of a VM that may not run on them.
-spec busy(binary(), binary()) -> number().
busy(Stat, Allowed) ->
    Ranges = [[binary_to_integer(N) || N <- binary:split(Range, <<"-">>)] || Range <- binary:split(Allowed, <<",">>, [global])],
    lists:sum([
        ticks(Numbers)
        %% The first line, of all together, has no number.
     || <<"cpu", C, Rest/binary>> <- binary:split(Stat, <<"\n">>, [global]),
        C =/= $\s,
        [Number | Numbers] <- [string:lexemes(<<C, Rest/binary>>, " ")],
        is_in(binary_to_integer(Number), Ranges)
    ]).

is_in(N, Ranges) ->
    lists:any(fun(Range) -> N >= hd(Range) andalso N =< lists:last(Range) end, Ranges).

%% After these stands what a host took for others, unless the kernel is older than that; a guest's
%% time is in the user's.
ticks(Numbers) ->
    [User, Nice, System, _Idle, _Wait, Irq, SoftIrq | More] = [binary_to_integer(N) || N <- Numbers],
    User + Nice + System + Irq + SoftIrq + lists:sum(lists:sublist(More, 1)).

ours() ->
    Stats = [Stat || Dir <- filelib:wildcard("[0-9]*", "/proc"), {ok, Stat} <- [stat(Dir)]],
    Family = family(list_to_integer(os:getpid()), [{Pid, Parent} || {Pid, Parent, _} <- Stats]),
    lists:sum([Ticks || {Pid, _, Ticks} <- Stats, is_map_key(Pid, Family)]).

stat(Dir) ->
    case file:read_file(filename:join(["/proc", Dir, "stat"])) of
        {ok, <<_, _/binary>> = Text} -> {ok, parse_stat(Text)};
        %% It has just ended.
        _ -> error
    end.

%% @doc A process, its parent, and the ticks that it and its dead children used.
-spec parse_stat(binary()) -> {pos_integer(), non_neg_integer(), number()}.
parse_stat(Text) ->
    {Pid, _} = string:to_integer(Text),
    [_State, Parent | Fields] = atoll_cluster_os:stat_fields(Text),
    Ticks = [binary_to_integer(Field) || Field <- lists:sublist(Fields, 10, 4)],
    {Pid, binary_to_integer(Parent), lists:sum(Ticks)}.

%% @doc A process and all that it has started, directly or not.
-spec family(pos_integer(), [{Pid :: pos_integer(), Parent :: non_neg_integer()}]) -> #{pos_integer() => []}.
family(Root, Parents) ->
    Children = lists:foldl(
        fun({Pid, Parent}, Acc) -> Acc#{Parent => [Pid | maps:get(Parent, Acc, [])]} end, #{}, Parents
    ),
    grow([Root], Children, #{}).

grow([], _Children, Family) ->
    Family;
grow([Pid | Pids], Children, Family) ->
    grow(maps:get(Pid, Children, []) ++ Pids, maps:remove(Pid, Children), Family#{Pid => []}).

%% @doc The processor time that a process has used so far, all its threads that live. By
%% Linux's scheduler, to the nanosecond; where that does not tell, to the hundredth of a
%% second.
-spec cpu_ns(OsPid :: pos_integer()) -> {ok, non_neg_integer()} | error.
cpu_ns(Pid) ->
    Dir = lists:concat(["/proc/", Pid, "/task/"]),
    case file:list_dir(Dir) of
        {ok, Threads} ->
            Texts = [file:read_file(lists:append([Dir, Thread, "/schedstat"])) || Thread <- Threads],
            case [binary_to_integer(hd(binary:split(Text, <<" ">>))) || {ok, Text} <- Texts] of
                [] -> ticks_ns(stat(integer_to_list(Pid)));
                Times -> {ok, lists:sum(Times)}
            end;
        {error, _} ->
            error
    end.

ticks_ns({ok, {_Pid, _Parent, Ticks}}) -> {ok, Ticks * 10000000};
ticks_ns(error) -> error.

%% @doc The processor time in microseconds that this VM has used so far, in the kernel too
%% where that can be known: it is most of what a connection costs.
-spec own_cpu_us() -> non_neg_integer().
own_cpu_us() ->
    case cpu_ns(list_to_integer(os:getpid())) of
        {ok, Ns} ->
            Ns div 1000;
        error ->
            {Ms, _} = erlang:statistics(runtime),
            1000 * Ms
    end.

%% @doc The memory of a process: its own pages, and its share of those that it shares.
-spec pss_kib(OsPid :: pos_integer()) -> {ok, non_neg_integer()} | error.
pss_kib(Pid) ->
    case file:read_file(lists:concat(["/proc/", Pid, "/smaps_rollup"])) of
        {ok, Text} ->
            case re:run(Text, "^Pss:\\s+(\\d+) kB", [multiline, {capture, [1], list}]) of
                {match, [KiB]} -> {ok, list_to_integer(KiB)};
                nomatch -> error
            end;
        {error, _} ->
            error
    end.

%% @doc The messages that this node has sent to others so far, as its sockets count them.
-spec sent() -> number().
sent() ->
    lists:sum([
        Count
     || {_Node, Port} <- erlang:system_info(dist_ctrl),
        {ok, [{send_cnt, Count}]} <- [inet:getstat(Port, [send_cnt])]
    ]).
