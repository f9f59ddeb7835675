%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What the files under `/proc' and `/sys/fs/cgroup' say of the machine and of the
%% control group that the VM runs in.
%%
%% Each function gives a number, or `undefined' where the file is not there or says
%% something else: on another system than Linux, or in another version of it. A file is
%% read as often as it is asked for, which takes some tens of microseconds.
%%
%% Of a control group its own limits and those of all groups around it hold, as far as
%% they can be seen: the lowest is given. In a container the groups around it cannot be
%% seen, and need not be. Both versions of cgroup are read, and the mixture of the two.
-module(atoll_attr_linux).

-export([meminfo/1, load/1, entities/0, cpu_mhz/0, cpu_model/0]).
-export([cgroup_mem_limit/0, cgroup_mem_used/0, cgroup_cpus/0]).
-export([meminfo/2, load/2, entities/1, cpu/2, places/2]).
-export([cgroup_mem_limit/1, cgroup_mem_used/1, cgroup_cpus/1]).

-export_type([place/0]).

-type place() :: {v1 | v2, Top :: file:filename(), Group :: file:filename()}.
%% The version of cgroup, where its tree begins, and the folder of the VM's group in it.

-define(CGROUP, "/sys/fs/cgroup").
%% The first processor of many is enough.
-define(MAX_BYTES, 65536).

%% @doc A line of `/proc/meminfo', in kB.
-spec meminfo(Key :: binary()) -> non_neg_integer() | undefined.
meminfo(Key) ->
    meminfo(Key, read("/proc/meminfo")).

%% @private
-spec meminfo(binary(), binary()) -> non_neg_integer() | undefined.
meminfo(Key, Text) ->
    case re:run(Text, ["^", Key, ":\\s+([0-9]+) kB"], [multiline, {capture, all_but_first, binary}]) of
        {match, [Kilobytes]} -> binary_to_integer(Kilobytes);
        nomatch -> undefined
    end.

%% @doc The load average of 1, 5 or 15 minutes.
-spec load(1 | 5 | 15) -> float() | undefined.
load(Minutes) ->
    load(Minutes, read("/proc/loadavg")).

%% @private
-spec load(1 | 5 | 15, binary()) -> float() | undefined.
load(Minutes, Text) ->
    case {Minutes, binary:split(Text, <<" ">>, [global])} of
        {1, [One, _, _ | _]} -> to_float(One);
        {5, [_, Five, _ | _]} -> to_float(Five);
        {15, [_, _, Fifteen | _]} -> to_float(Fifteen);
        _ -> undefined
    end.

%% @doc How many threads of the machine are runnable, and how many there are.
-spec entities() -> {non_neg_integer(), non_neg_integer()} | undefined.
entities() ->
    entities(read("/proc/loadavg")).

%% @private
-spec entities(binary()) -> {non_neg_integer(), non_neg_integer()} | undefined.
entities(Text) ->
    case re:run(Text, "^\\S+ \\S+ \\S+ ([0-9]+)/([0-9]+)", [{capture, all_but_first, binary}]) of
        {match, [Runnable, All]} -> {binary_to_integer(Runnable), binary_to_integer(All)};
        nomatch -> undefined
    end.

%% @doc What the first processor says of its clock, in MHz.
-spec cpu_mhz() -> float() | undefined.
cpu_mhz() ->
    case cpu(<<"cpu MHz">>, read("/proc/cpuinfo")) of
        undefined -> undefined;
        Text -> to_float(Text)
    end.

%% @doc The name of the first processor's model.
-spec cpu_model() -> string() | undefined.
cpu_model() ->
    case cpu(<<"model name">>, read("/proc/cpuinfo")) of
        undefined -> undefined;
        Text -> binary_to_list(Text)
    end.

%% @private
-spec cpu(binary(), binary()) -> binary() | undefined.
cpu(Key, Text) ->
    case re:run(Text, ["^", Key, "\\s*:[ \\t]*(.*?)\\s*$"], [multiline, {capture, all_but_first, binary}]) of
        {match, [Value]} when is_binary(Value), Value =/= <<>> -> Value;
        _ -> undefined
    end.

%% Control groups

%% @doc How many kB the VM's control group may have.
-spec cgroup_mem_limit() -> non_neg_integer() | undefined.
cgroup_mem_limit() ->
    cgroup_mem_limit(own_places(<<"memory">>)).

%% @private
-spec cgroup_mem_limit([place()]) -> non_neg_integer() | undefined.
cgroup_mem_limit(Places) ->
    Limits = [
        Bytes div 1024
     || {Version, Folder} <- folders(Places),
        Bytes <- number(Folder, case Version of v1 -> "memory.limit_in_bytes"; v2 -> "memory.max" end),
        %% Version 1 writes the largest number of pages where there is no limit.
        Bytes < 1 bsl 60
    ],
    case Limits of
        [] -> undefined;
        _ -> lists:min(Limits)
    end.

%% @doc How many kB it has.
-spec cgroup_mem_used() -> non_neg_integer() | undefined.
cgroup_mem_used() ->
    cgroup_mem_used(own_places(<<"memory">>)).

%% @private
-spec cgroup_mem_used([place()]) -> non_neg_integer() | undefined.
cgroup_mem_used(Places) ->
    case
        [
            Bytes div 1024
         || {Version, _Top, Folder} <- Places,
            Bytes <- number(Folder, case Version of v1 -> "memory.usage_in_bytes"; v2 -> "memory.current" end)
        ]
    of
        [Kilobytes | _] -> Kilobytes;
        [] -> undefined
    end.

%% @doc How many processors' time it may use: a quota of half a processor is 0.5.
-spec cgroup_cpus() -> float() | undefined.
cgroup_cpus() ->
    cgroup_cpus(own_places(<<"cpu">>)).

%% @private
-spec cgroup_cpus([place()]) -> float() | undefined.
cgroup_cpus(Places) ->
    case [Quota / Period || {Version, Folder} <- folders(Places), {Quota, Period} <- quota(Version, Folder)] of
        [] -> undefined;
        Shares -> lists:min(Shares)
    end.

quota(v1, Folder) ->
    [
        {Quota, Period}
     || Quota <- number(Folder, "cpu.cfs_quota_us"), Quota > 0, Period <- number(Folder, "cpu.cfs_period_us"), Period > 0
    ];
quota(v2, Folder) ->
    case binary:split(trimmed(read(filename:join(Folder, "cpu.max"))), <<" ">>) of
        [Quota, Period] -> [{Q, P} || Q <- to_integer(Quota), P <- to_integer(Period), P > 0];
        _ -> []
    end.

%% The group's folder and those around it.
folders(Places) ->
    lists:append([[{Version, Folder} || Folder <- up(Top, Group)] || {Version, Top, Group} <- Places]).

up(Top, Top) ->
    [Top];
up(Top, Folder) ->
    [Folder | up(Top, filename:dirname(Folder))].

own_places(Controller) ->
    places(Controller, read("/proc/self/cgroup")).

%% @private Where a controller's files are. Inside a container the group has its path as seen
%% from outside, and its files are at the top: what is not there is looked for above.
-spec places(Controller :: binary(), binary()) -> [place()].
places(Controller, Text) ->
    lists:append([
        case binary:split(Line, <<":">>, [global]) of
            [_, <<>>, Path] ->
                [place(v2, Top, Path) || Top <- [?CGROUP, filename:join(?CGROUP, "unified")], is_tree(Top)];
            [_, Controllers, Path] ->
                [
                    place(v1, Top, Path)
                 || lists:member(Controller, binary:split(Controllers, <<",">>, [global])),
                    Name <- lists:usort([Controllers, Controller]),
                    Top <- [filename:join(?CGROUP, binary_to_list(Name))],
                    filelib:is_dir(Top)
                ];
            _ ->
                []
        end
     || Line <- binary:split(Text, <<"\n">>, [global, trim_all])
    ]).

is_tree(Top) ->
    filelib:is_regular(filename:join(Top, "cgroup.controllers")).

place(Version, Top, Path) ->
    Parts = [Part || Part <- binary:split(Path, <<"/">>, [global, trim_all]), Part =/= <<"..">>],
    {Version, Top, existing(Top, lists:reverse([binary_to_list(Part) || Part <- Parts]))}.

existing(Top, []) ->
    Top;
existing(Top, [_ | Above] = Parts) ->
    Folder = filename:join([Top | lists:reverse(Parts)]),
    case filelib:is_dir(Folder) of
        true -> Folder;
        false -> existing(Top, Above)
    end.

%% Files

number(Folder, File) ->
    to_integer(trimmed(read(filename:join(Folder, File)))).

%% Past the file server, which others may keep busy.
read(Path) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, File} ->
            Read = file:read(File, ?MAX_BYTES),
            _ = file:close(File),
            case Read of
                {ok, Text} -> Text;
                _ -> <<>>
            end;
        {error, _} ->
            <<>>
    end.

trimmed(Text) ->
    string:trim(Text).

to_integer(Text) ->
    case string:to_integer(Text) of
        {Number, <<>>} -> [Number];
        _ -> []
    end.

to_float(Text) ->
    case string:to_float(Text) of
        {Number, _} when is_float(Number) -> Number;
        _ -> undefined
    end.
