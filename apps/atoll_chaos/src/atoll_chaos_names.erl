%% SPDX-License-Identifier: Apache-2.0
%% @doc The programs with names on a node under test: processes that do nothing, which a script
%% gives names in groups ({@link atoll_sim_step}).
%%
%% They last as long as this process does, which ends with its owner; one whose name was
%% refused ends at once. Who loses a name in a clash is killed, as by the default rule. The node
%% must run the application `atoll'; else the module stands alone, as {@link atoll_chaos_agent}
%% does.
-module(atoll_chaos_names).

-behaviour(gen_server).

-export([ask/2, stop/0]).
%% What a program does.
-export([idle/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([answer/0]).

-type answer() :: yes | ok | {no, term()}.

%% @doc Does it here, with a process of this node's, and waits for the answer.
-spec ask(Owner :: pid() | none, atoll_sim_node:name_operation()) -> answer().
ask(_Owner, {unregister, Group, Name}) ->
    s_group:unregister_name(Group, Name);
ask(Owner, {Verb, Group, Name}) ->
    ok = ensure(Owner),
    {ok, Pid} = gen_server:call(?MODULE, begin_one),
    Answer =
        case Verb of
            register -> s_group:register_name(Group, Name, Pid);
            re_register -> s_group:re_register_name(Group, Name, Pid)
        end,
    _ = [exit(Pid, kill) || Answer =/= yes],
    Answer.

ensure(Owner) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, Owner, []) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok
    end.

%% @doc Ends them all, if there are any.
-spec stop() -> ok.
stop() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid)
    end.

%% @private
-spec init(pid() | none) -> {ok, [pid()]}.
init(Owner) ->
    %% Not that of whoever asked for it: it may be on another node.
    true = group_leader(whereis(init), self()),
    _ = process_flag(trap_exit, true),
    _ = [monitor(process, Owner) || is_pid(Owner)],
    {ok, []}.

%% @private
-spec handle_call(begin_one, gen_server:from(), [pid()]) -> {reply, {ok, pid()}, [pid()]}.
handle_call(begin_one, _From, Pids) ->
    %% By its function it is told from all others, see atoll_chaos_victims.
    Pid = spawn_link(?MODULE, idle, []),
    {reply, {ok, Pid}, [Pid | Pids]}.

%% @private
-spec idle() -> no_return().
idle() ->
    receive
        _Anything -> idle()
    end.

%% @private
-spec handle_cast(term(), [pid()]) -> {stop, term(), [pid()]}.
handle_cast(Request, Pids) ->
    {stop, {unknown_cast, Request}, Pids}.

%% @private
-spec handle_info({'EXIT', pid(), term()} | {'DOWN', reference(), process, pid(), term()}, [pid()]) ->
    {noreply, [pid()]} | {stop, normal, [pid()]}.
handle_info({'EXIT', Pid, _}, Pids) ->
    {noreply, lists:delete(Pid, Pids)};
handle_info({'DOWN', _, process, _, _}, Pids) ->
    {stop, normal, Pids}.

%% @private
-spec terminate(term(), [pid()]) -> ok.
terminate(_Reason, Pids) ->
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, Pids).
