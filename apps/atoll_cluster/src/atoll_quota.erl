%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that may use so much processor time, and no more: a machine that is made
%% slower for some.
%%
%% ```
%% {ok, Quota} = atoll_quota:start(#{cpus => [0.05, 0.25]}),
%% ok = atoll_quota:enter(Quota, 1, OsPid),
%% '''
%%
%% Each of the numbers is a control group of its own, with that many processors' worth of
%% time in every tenth of a second (version 1 or 2 of cgroup, whichever bounds processor time
%% here). It takes Linux, and a user who may make groups.
%%
%% Promised: what is in a group uses no more, all of it together. When the caller of start
%% ends, when the quota is stopped, or when the VM ends in any way, kill -9 included, all that
%% is in the groups is killed and the groups are gone. When only the process that keeps them
%% is killed another one takes its place. If it and the VM are killed at once, groups with
%% nothing in them can stay; the next quota of this user that is started a minute after they
%% were made removes them.
%%
%% Not promised: that a process gets that much on a machine that has less to give; that what
%% the kernel does not let end, or put groups of its own into one of these, is gone by then.
%% Stop says so after ten seconds, and for a minute it is tried on.
-module(atoll_quota).

-export([start/1, enter/3, groups/1, os_pid/1, stop/1, available/0, format_error/1]).

-export_type([quota/0, options/0, error/0]).

-type quota() :: pid().

-type options() :: #{
    %% Of each group, in processors: a twentieth of one is 0.05. A hundredth is the least.
    cpus := [number(), ...]
}.

-type error() ::
    {bad_option, Key :: term(), Why :: string()}
    | not_linux
    %% There is no tree of control groups that bounds processor time.
    | no_place
    %% None can be made here, and what the system said.
    | {refused, file:filename(), Said :: unicode:chardata()}
    %% These groups are still there.
    | {not_gone, [file:filename()]}
    | {not_entered, OsPid :: pos_integer(), file:posix() | badarg | terminated}.

%% @doc Makes the groups; the calling process owns them. After an error nothing is left; a
%% shell that was not ready in time takes down what it makes.
-spec start(options()) -> {ok, quota()} | {error, error()}.
start(#{cpus := [_ | _] = Cpus} = Options) when map_size(Options) =:= 1, length(Cpus) > 0 ->
    case {lists:all(fun(N) -> is_number(N) andalso N >= 0.01 andalso N =< 1000 end, Cpus), os:type()} of
        {false, _} -> {error, {bad_option, cpus, "must be numbers of processors from 0.01 to 1000"}};
        {true, {unix, linux}} -> made(atoll_quota_place:find(), Cpus, no_place);
        {true, _} -> {error, not_linux}
    end;
start(Options) ->
    {error, {bad_option, Options, "must be a map with cpus and nothing else"}}.

made([], _Cpus, Why) ->
    {error, Why};
made([Place | Places], Cpus, _Why) ->
    case atoll_quota_server:start(self(), Place, Cpus) of
        {ok, Quota} -> {ok, Quota};
        {error, Why} -> made(Places, Cpus, Why)
    end.

%% @doc Puts a process, all its threads and what it starts from now on into a group, counted
%% from 1.
-spec enter(quota(), pos_integer(), OsPid :: pos_integer()) -> ok | {error, error()}.
enter(Quota, Number, OsPid) ->
    Procs = filename:join(lists:nth(Number, groups(Quota)), "cgroup.procs"),
    case file:write_file(Procs, integer_to_list(OsPid)) of
        ok -> ok;
        {error, Reason} -> {error, {not_entered, OsPid, Reason}}
    end.

%% @doc The folders of the groups.
-spec groups(quota()) -> [file:filename(), ...].
groups(Quota) ->
    gen_server:call(Quota, groups, infinity).

%% @doc The process that keeps them.
-spec os_pid(quota()) -> pos_integer().
os_pid(Quota) ->
    gen_server:call(Quota, os_pid, infinity).

%% @doc Kills what is in the groups, removes them, and returns when they are gone; or after
%% ten seconds, or a little more, with those that are not.
-spec stop(quota()) -> ok | {error, error()}.
stop(Quota) ->
    try
        gen_server:call(Quota, stop, infinity)
    catch
        exit:{Reason, _} when Reason =:= noproc; Reason =:= normal -> ok;
        exit:{{quota_lost, Error}, _} -> {error, Error}
    end.

%% @doc Whether groups can be made here: one is, and is removed.
-spec available() -> ok | {error, error()}.
available() ->
    case start(#{cpus => [1]}) of
        {ok, Quota} -> stop(Quota);
        {error, _} = Error -> Error
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, Why}) ->
    io_lib:format("the option ~0tP ~ts", [Key, 12, Why]);
format_error(not_linux) ->
    "a quota of processor time needs Linux: it is a control group";
format_error(no_place) ->
    "a quota of processor time cannot be set here: there are no control groups that bound it";
format_error({refused, Folder, Said}) ->
    ["a quota of processor time cannot be set here: no control group can be made in ", Folder, " (", Said, ")"];
format_error({not_gone, Groups}) ->
    ["what is in these control groups could not be ended, or they not be removed: ", lists:join(", ", Groups)];
format_error({not_entered, OsPid, Reason}) ->
    ["process ", integer_to_list(OsPid), " cannot be put into a control group: ", file:format_error(Reason)].
