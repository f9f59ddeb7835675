%% SPDX-License-Identifier: Apache-2.0
%% @doc The process that holds a quota: the owner of the port to `priv/quota', which keeps the
%% groups and takes them down when its standard input ends.
%%
%% It ends with the owner of the quota, and then waits until the groups are gone, for ten
%% seconds. If the keeper ends by itself, which takes a SIGKILL, another one is opened on the
%% same groups.
%%
%% A group is called `atoll-quota.PID.START.NUMBER.N', by number and start time of the VM.
-module(atoll_quota_server).
-behaviour(gen_server).

-export([start/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-include_lib("kernel/include/file.hrl").

-record(state, {
    owner :: reference(),
    args :: [string()],
    groups :: [file:filename(), ...],
    keeper :: keeper()
}).

-type keeper() :: {port(), Monitor :: reference(), OsPid :: pos_integer()}.

-define(PREFIX, "atoll-quota").
%% How long a shell may take to start on a busy machine, and what is in groups to end.
-define(READY_MS, 10000).
-define(GONE_MS, 10000).
%% A group that is younger may be that of another container, where its VM is about to use it.
-define(OLD_S, 60).

%% @doc Makes groups in a place, and returns when they are there.
-spec start(pid(), atoll_quota_place:place(), [number(), ...]) -> {ok, pid()} | {error, atoll_quota:error()}.
start(Owner, Place, Cpus) ->
    case gen_server:start(?MODULE, {Owner, Place, Cpus}, []) of
        {ok, Quota} -> {ok, Quota};
        {error, {shutdown, Error}} -> {error, Error}
    end.

%% @private
-spec init({pid(), atoll_quota_place:place(), [number(), ...]}) ->
    {ok, #state{}} | {stop, {shutdown, atoll_quota:error()}}.
init({Owner, {Version, Folder}, Cpus}) ->
    %% A line to a keeper that was just killed would end this process, by the link to the
    %% port. The monitor on it tells.
    _ = process_flag(trap_exit, true),
    ok = sweep(Folder),
    {Pid, Start} = atoll_cluster_os:self(),
    Name = lists:concat([?PREFIX, ".", Pid, ".", Start, ".", erlang:unique_integer([positive]), "."]),
    Groups = [filename:join(Folder, Name ++ integer_to_list(N)) || N <- lists:seq(1, length(Cpus))],
    Values = [atoll_quota_place:value(Version, One) || One <- Cpus],
    Args =
        [atoll_quota_place:file(Version), atoll_quota_place:lifted(Version)] ++
            lists:append([[Group, Value] || {Group, Value} <- lists:zip(Groups, Values)]),
    case open(Args) of
        {ok, Keeper} ->
            {ok, #state{owner = monitor(process, Owner), args = Args, groups = Groups, keeper = Keeper}};
        {error, Said} ->
            %% If the keeper was killed before it was ready, they are empty.
            _ = [file:del_dir(Group) || Group <- Groups],
            {stop, {shutdown, {refused, Folder, Said}}}
    end.

%% What is left where a VM and its keeper were killed at once. Processes of another container
%% cannot be seen from this one: a group that has a process is not removed by this, and one
%% that is new is not tried.
sweep(Folder) ->
    lists:foreach(
        fun(Name) ->
            case [string:to_integer(Part) || Part <- lists:sublist(string:split(Name, ".", all), 2, 2)] of
                [{Pid, ""}, {Start, ""}] when is_integer(Pid), is_integer(Start) ->
                    Group = filename:join(Folder, Name),
                    atoll_cluster_os:state({Pid, Start}) =:= gone andalso is_old(Group) andalso file:del_dir(Group);
                _ ->
                    false
            end
        end,
        filelib:wildcard(?PREFIX ".*", Folder)
    ).

is_old(Group) ->
    case file:read_file_info(Group, [{time, posix}]) of
        {ok, #file_info{mtime = Made}} when is_integer(Made) -> os:system_time(second) - Made >= ?OLD_S;
        _ -> false
    end.

open(Args) ->
    Script = ["/bin/sh", filename:join(code:priv_dir(atoll_cluster), "quota") | Args],
    %% Its own session keeps a terminal's signals away.
    {Program, ProgramArgs} =
        case os:find_executable("setsid") of
            false -> {hd(Script), tl(Script)};
            Setsid -> {Setsid, Script}
        end,
    Port = open_port({spawn_executable, Program}, [{args, ProgramArgs}, {line, 1000}, binary, hide]),
    Ref = erlang:monitor(port, Port),
    receive
        {Port, {data, {eol, <<"ready ", Pid/binary>>}}} ->
            {ok, {Port, Ref, binary_to_integer(Pid)}};
        {Port, {data, {_, <<"failed ", Said/binary>>}}} ->
            ok = gone(Port, Ref, now_ms() + ?GONE_MS),
            {error, Said};
        {'DOWN', Ref, port, Port, Reason} ->
            {error, io_lib:format("~0tp", [Reason])}
    after ?READY_MS ->
        ok = ended(Port, Ref, now_ms() + ?GONE_MS),
        {error, "the shell was not ready in time"}
    end.

%% Has it take everything down, and waits for its end.
ended(Port, Ref, Deadline) ->
    try
        true = port_command(Port, "end\n")
    catch
        error:badarg -> true
    end,
    gone(Port, Ref, Deadline).

%% The end of its input ends it too, later.
gone(Port, Ref, Deadline) ->
    receive
        {'DOWN', Ref, port, Port, _} -> ok
    after max(0, Deadline - now_ms()) ->
        true = erlang:demonitor(Ref, [flush]),
        try
            true = port_close(Port),
            ok
        catch
            error:badarg -> ok
        end
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% @private
-spec handle_call(groups | os_pid | stop, gen_server:from(), #state{}) ->
    {reply, [file:filename()] | pos_integer(), #state{}} | {stop, normal, ok | {error, atoll_quota:error()}, #state{}}.
handle_call(groups, _From, #state{groups = Groups} = State) ->
    {reply, Groups, State};
handle_call(os_pid, _From, #state{keeper = {_, _, OsPid}} = State) ->
    {reply, OsPid, State};
handle_call(stop, _From, State) ->
    {stop, normal, finish(State, now_ms() + ?GONE_MS), State}.

%% @private
-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}} when
    Message ::
        {'DOWN', reference(), process | port, pid() | port(), term()} | {'EXIT', pid() | port(), term()}.
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) ->
    case finish(State, now_ms() + ?GONE_MS) of
        ok -> {stop, normal, State};
        {error, Error} -> {stop, {quota_lost, Error}, State}
    end;
handle_info({'DOWN', Ref, port, _, _}, #state{keeper = {_, Ref, _}, args = Args, groups = Groups} = State) ->
    case open(Args) of
        {ok, Keeper} -> {noreply, State#state{keeper = Keeper}};
        {error, _} -> {stop, {quota_lost, {not_gone, there(Groups)}}, State}
    end;
handle_info({'EXIT', Port, _}, State) when is_port(Port) ->
    {noreply, State};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, Reason, State}.

finish(#state{keeper = {Port, Ref, _}, args = Args, groups = Groups} = State, Deadline) ->
    ok = ended(Port, Ref, Deadline),
    case {there(Groups), now_ms() < Deadline} of
        {[], _} ->
            ok;
        {Left, false} ->
            {error, {not_gone, Left}};
        {Left, true} ->
            %% It was killed before it was done.
            case open(Args) of
                {ok, Keeper} -> finish(State#state{keeper = Keeper}, Deadline);
                {error, _} -> {error, {not_gone, Left}}
            end
    end.

there(Groups) ->
    [Group || Group <- Groups, filelib:is_dir(Group)].
