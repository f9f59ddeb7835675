%% SPDX-License-Identifier: Apache-2.0
%% @doc Where control groups can be made that bound processor time.
%%
%% With version 1 that is in the group of this VM, so that what holds for it holds for them.
%% With version 2 a group that has processes can have no groups with bounds in it: there it
%% is the nearest one around it that may, that is the ones whose `cgroup.subtree_control' has
%% `cpu'. Nothing is switched on there: it would be switched on for others too.
-module(atoll_quota_place).

-export([find/0, find/2, file/1, value/2, lifted/1]).

-export_type([place/0, version/0]).

-type version() :: v1 | v2.
-type place() :: {version(), Folder :: file:filename()}.

%% How often a quota begins anew, microseconds: the kernel's default.
-define(PERIOD_US, 100000).

%% @doc The places, the best first; whether this user may make groups there is not looked at.
-spec find() -> [place()].
find() ->
    case file:read_file("/proc/self/cgroup") of
        {ok, Text} -> find(Text, "/sys/fs/cgroup");
        {error, _} -> []
    end.

%% @private From the text of `/proc/self/cgroup', and where the trees begin.
-spec find(binary(), file:filename()) -> [place()].
find(Text, Root) ->
    lists:append([
        case binary:split(Line, <<":">>, [global]) of
            [_, <<>>, Path] -> second(Path, Root);
            [_, Controllers, Path] -> first(Controllers, Path, Root);
            _ -> []
        end
     || Line <- binary:split(Text, <<"\n">>, [global, trim_all])
    ]).

first(Controllers, Path, Root) ->
    Top = filename:join(Root, binary_to_list(Controllers)),
    case lists:member(<<"cpu">>, binary:split(Controllers, <<",">>, [global])) andalso groups(Top, Path) of
        [Own | _] -> [{v1, Own}];
        _ -> []
    end.

second(Path, Root) ->
    [
        {v2, Group}
     || Top <- [Root, filename:join(Root, "unified")],
        filelib:is_regular(filename:join(Top, "cgroup.controllers")),
        Group <- groups(Top, Path),
        {ok, Text} <- [file:read_file(filename:join(Group, "cgroup.subtree_control"))],
        lists:member("cpu", string:lexemes(binary_to_list(Text), " \n"))
    ].

%% The group and those around it that are there, the innermost first. Inside a container
%% paths may be those outside of it.
groups(Top, Path) ->
    Parts = [binary_to_list(Part) || Part <- binary:split(Path, <<"/">>, [global, trim_all]), Part =/= <<"..">>],
    Folders = [filename:join([Top | lists:sublist(Parts, N)]) || N <- lists:seq(length(Parts), 0, -1)],
    [Folder || Folder <- Folders, filelib:is_dir(Folder)].

%% @doc The file of a group that holds its quota.
-spec file(version()) -> string().
file(v1) -> "cpu.cfs_quota_us";
file(v2) -> "cpu.max".

%% @doc What is in it for so many processors' worth of time.
-spec value(version(), Cpus :: number()) -> string().
value(v1, Cpus) -> integer_to_list(quota_us(Cpus));
value(v2, Cpus) -> lists:concat([quota_us(Cpus), " ", ?PERIOD_US]).

quota_us(Cpus) -> round(Cpus * ?PERIOD_US).

%% @doc And for as much as there is.
-spec lifted(version()) -> string().
lifted(v1) -> "-1";
lifted(v2) -> lists:concat(["max ", ?PERIOD_US]).
