%% SPDX-License-Identifier: Apache-2.0
%% @doc A program of somebody else's, such as a database, that runs beside nodes for as long as its owner.
%%
%% It has a folder of its own, which this user alone may enter. Promised: the program and the folder are gone
%% when the owner ends, when `stop/1' is called, and when the VM ends in any way, kill -9 included: the
%% program is registered with a watchdog as the nodes of a cluster are ({@link atoll_cluster_watchdog}). One
%% program runs at a time, and may be started again in the same folder.
%%
%% Not promised: processes that the program starts and leaves behind. Linux only, as clusters are.
%%
%% The owner is sent `{atoll_cluster_daemon, Daemon, {ended, Status}}' when the program has ended, whoever ended
%% it.
-module(atoll_cluster_daemon).
-behaviour(gen_server).

-export([open/1, dir/1, run/3, kill/1, os_pid/1, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([daemon/0]).

-type daemon() :: pid().

-record(state, {
    name :: string(),
    owner :: pid(),
    owner_ref :: reference(),
    dir :: file:filename(),
    %% where the watchdog finds the program
    pids :: file:filename(),
    %% none is left when it has taken all down
    watchdog :: atoll_cluster_watchdog:watchdog() | undefined,
    %% that of the program, while it runs
    port = none :: port() | none,
    %% whoever is answered when nothing is left
    stopping = no :: no | [gen_server:from()],
    %% whoever waits for the end of the program
    killing = [] :: [gen_server:from()]
}).

-define(CALL_MS, 15_000).

%% @doc Makes the folder, whose name begins with the one that is given. Nothing runs yet.
-spec open(Name :: string()) -> {ok, daemon()} | {error, Sentence :: unicode:chardata()}.
open(Name) ->
    case gen_server:start(?MODULE, {self(), Name}, []) of
        {ok, Daemon} -> {ok, Daemon};
        {error, {shutdown, Why}} -> {error, Why}
    end.

%% @doc The folder. The program may write what it likes into it; the folder goes with it.
-spec dir(daemon()) -> file:filename().
dir(Daemon) -> gen_server:call(Daemon, dir, ?CALL_MS).

%% @doc Starts the program, none of which may run. Its standard error goes into the file `out' of the folder. That it runs does
%% not say that it is ready.
-spec run(daemon(), Program :: file:filename(), Args :: [string()]) -> ok | {error, running}.
run(Daemon, Program, Args) -> gen_server:call(Daemon, {run, Program, Args}, ?CALL_MS).

%% @doc Kills the program, and returns when it is gone. The folder stays.
-spec kill(daemon()) -> ok.
kill(Daemon) -> gen_server:call(Daemon, kill, ?CALL_MS).

%% @doc The operating system's number of the program.
-spec os_pid(daemon()) -> {ok, pos_integer()} | none.
os_pid(Daemon) -> gen_server:call(Daemon, os_pid, ?CALL_MS).

%% @doc Takes all of it down, and returns when nothing is left.
-spec stop(daemon()) -> ok.
stop(Daemon) ->
    try
        gen_server:call(Daemon, stop, ?CALL_MS)
    catch
        exit:{Reason, _} when Reason =:= noproc; Reason =:= normal -> ok
    end.

%% @private The watchdog's port is linked: if this process crashes it closes, and all is taken down.
-spec init({pid(), string()}) -> {ok, #state{}} | {stop, {shutdown, unicode:chardata()}}.
init({Owner, Name}) ->
    Token = lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]),
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["atoll-", Name, "-", Token])),
    Pids = filename:join(Dir, "pids." ++ Token),
    case made(Dir, Pids) of
        ok ->
            {ok, Watchdog} = atoll_cluster_watchdog:open(Dir),
            {ok, #state{name = Name, owner = Owner, owner_ref = monitor(process, Owner), dir = Dir, pids = Pids, watchdog = Watchdog}};
        {error, Reason} ->
            {stop, {shutdown, io_lib:format("The folder ~ts cannot be made: ~ts.", [Dir, file:format_error(Reason)])}}
    end.

made(Dir, Pids) ->
    case file:make_dir(Dir) of
        ok ->
            ok = file:change_mode(Dir, 8#700),
            file:make_dir(Pids);
        {error, _} = Error ->
            Error
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}}.
handle_call(dir, _From, #state{dir = Dir} = State) ->
    {reply, Dir, State};
handle_call({run, _, _}, _From, #state{port = Port} = State) when Port =/= none ->
    {reply, {error, running}, State};
handle_call({run, Program, Args}, _From, #state{name = Name, dir = Dir, pids = Pids} = State) ->
    ok = atoll_cluster_rundir:forget(Pids, list_to_atom(Name)),
    Launch = filename:join(code:priv_dir(atoll_cluster), "launch"),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, [Launch, Pids, Name, filename:join(Dir, "out"), Program | Args]}, {cd, Dir}, exit_status, binary, hide
    ]),
    {reply, ok, State#state{port = Port}};
handle_call(kill, _From, #state{port = none} = State) ->
    {reply, ok, State};
handle_call(kill, From, #state{port = Port, killing = Killing} = State) ->
    ok = kill_program(Port),
    {noreply, State#state{killing = [From | Killing]}};
handle_call(os_pid, _From, #state{port = none} = State) ->
    {reply, none, State};
handle_call(os_pid, _From, #state{port = Port} = State) ->
    {reply, case erlang:port_info(Port, os_pid) of {os_pid, OsPid} -> {ok, OsPid}; undefined -> none end, State};
handle_call(stop, From, #state{stopping = no} = State) ->
    {noreply, go_down([From], State)};
handle_call(stop, From, #state{stopping = Others} = State) ->
    {noreply, State#state{stopping = [From | Others]}}.

%% The watchdog does not know of a program that has only begun to start.
go_down(Waiting, #state{watchdog = Watchdog, port = Port} = State) ->
    _ = [ok = kill_program(Port) || Port =/= none],
    ok = atoll_cluster_watchdog:finish(Watchdog),
    State#state{stopping = Waiting}.

kill_program(Port) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, OsPid} -> _ = os:cmd("kill -KILL " ++ integer_to_list(OsPid)), ok;
        %% Its end is under way.
        undefined -> ok
    end.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Request, _State) -> error({unknown, Request}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, normal, #state{}}.
%% What it writes to standard output is for nobody.
handle_info({Port, {data, _}}, #state{port = Port} = State) ->
    {noreply, State};
handle_info({Port, {exit_status, Status}}, #state{port = Port, owner = Owner, killing = Killing} = State) ->
    Owner ! {?MODULE, self(), {ended, Status}},
    _ = [gen_server:reply(From, ok) || From <- Killing],
    gone(State#state{port = none, killing = []});
handle_info({'DOWN', Ref, process, _, _}, #state{owner_ref = Ref, stopping = no} = State) ->
    {noreply, go_down([], State)};
handle_info({'DOWN', Ref, process, _, _}, #state{owner_ref = Ref} = State) ->
    {noreply, State};
handle_info({Port, {data, {eol, <<"done">>}}}, #state{watchdog = #{port := Port}} = State) ->
    {noreply, State};
handle_info({'DOWN', Ref, port, _, _}, #state{watchdog = #{ref := Ref} = Watchdog, stopping = Stopping} = State) ->
    ok = atoll_cluster_watchdog:ended(Watchdog),
    watchdog_ended(Stopping, State).

%% Somebody has killed the watchdog: another one goes on in its place.
watchdog_ended(no, #state{dir = Dir} = State) ->
    {ok, Watchdog} = atoll_cluster_watchdog:open(Dir),
    {noreply, State#state{watchdog = Watchdog}};
watchdog_ended(Waiting, #state{dir = Dir} = State) ->
    case filelib:is_dir(Dir) of
        true ->
            {ok, Watchdog} = atoll_cluster_watchdog:open(Dir),
            {noreply, go_down(Waiting, State#state{watchdog = Watchdog})};
        false ->
            gone(State#state{watchdog = undefined})
    end.

%% Whether nothing is left.
gone(#state{watchdog = undefined, port = none, stopping = Waiting} = State) ->
    _ = [gen_server:reply(From, ok) || From <- Waiting],
    {stop, normal, State};
gone(State) ->
    {noreply, State}.
