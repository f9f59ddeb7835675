%% @doc The machine that a benchmark ran on, and how much of it others took.
-module(atoll_bench_machine).

-export([describe/0, look/0, others/3, parse_stat/1, family/2]).
-export([cpu_ns/1, pss_kib/1]).

-export_type([look/0]).

-opaque look() :: {Busy :: non_neg_integer(), Ours :: non_neg_integer()}.
%% Ticks since the boot: of all processors, and of this VM with all that it has started.

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
        flags => [list_to_binary(Flag) || Flag <- flags()]
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

%% As they were given: the emulator's, which begin with +, and no paths.
flags() ->
    case os:getenv("ERL_FLAGS") of
        false -> [];
        Flags -> string:lexemes(Flags, " ")
    end.

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
    {busy(), ours()}.

%% @doc The share of what was used between two looks that other processes used,
%% of all that the machine had to give.
-spec others(look(), look(), WallMs :: non_neg_integer()) -> float().
others({Busy0, Ours0}, {Busy, Ours}, WallMs) ->
    %% A tick is a hundredth of a second on every Linux that Erlang runs on.
    Given = erlang:system_info(logical_processors_available) * max(1, WallMs) / 10,
    max(0.0, min(1.0, ((Busy - Busy0) - (Ours - Ours0)) / Given)).

busy() ->
    {ok, Text} = file:read_file("/proc/stat"),
    [Line | _] = binary:split(Text, <<"\n">>),
    [<<"cpu">> | Numbers] = string:lexemes(Line, " "),
    [User, Nice, System, _Idle, _Wait, Irq, SoftIrq | _] = [binary_to_integer(N) || N <- Numbers],
    User + Nice + System + Irq + SoftIrq.

ours() ->
    Stats = [Stat || Dir <- filelib:wildcard("[0-9]*", "/proc"), {ok, Stat} <- [stat(Dir)]],
    Family = family(list_to_integer(os:getpid()), [{Pid, Parent} || {Pid, Parent, _} <- Stats]),
    lists:sum([Ticks || {Pid, _, Ticks} <- Stats, is_map_key(Pid, Family)]).

stat(Dir) ->
    case file:read_file(filename:join(["/proc", Dir, "stat"])) of
        {ok, Text} -> parse_stat(Text);
        %% It has just ended.
        {error, _} -> error
    end.

%% @doc A process, its parent, and the ticks that it and its dead children used. The
%% name, which stands in parentheses, may hold anything.
-spec parse_stat(binary()) -> {ok, {pos_integer(), non_neg_integer(), non_neg_integer()}} | error.
parse_stat(Text) ->
    case {string:to_integer(Text), re:run(Text, ".*\\) (.*)", [dotall, {capture, [1], binary}])} of
        {{Pid, _}, {match, [Rest]}} when is_integer(Pid) ->
            [_State, Parent | Fields] = string:lexemes(Rest, " \n"),
            Ticks = [binary_to_integer(Field) || Field <- lists:sublist(Fields, 10, 4)],
            {ok, {Pid, binary_to_integer(Parent), lists:sum(Ticks)}};
        _ ->
            error
    end.

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
