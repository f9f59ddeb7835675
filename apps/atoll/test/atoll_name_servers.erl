%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: a supervisor with one process of each behaviour of OTP
%% below it, all known by names only. The module is the callbacks of all of them.
-module(atoll_name_servers).


-export([start_tree/3, ask/2, child/2, kill_child/2, start_second/1, stop_tree/1]).
-export([init/1, callback_mode/0, handle_event/4]).
-export([start_server/2, start_statem/2, start_event/1, start_supervisor/2]).
%% A gen_server and a handler of gen_event.
-export([handle_call/3, handle_call/2, handle_cast/2, handle_event/2]).

-define(DEADLINE_MS, 15000).

%% @doc A tree of which the processes are called by these via tuples; it stands as many
%% failures as it is said, which takes in every start that fails.
start_tree(Top, Children, Failures) ->
    Caller = self(),
    Pid = spawn(fun() ->
        _ = process_flag(trap_exit, true),
        {ok, Supervisor} = start_supervisor(Top, {Children, Failures}),
        Caller ! {self(), ok},
        receive
            {'EXIT', Supervisor, _} -> ok;
            {From, stop} ->
                true = exit(Supervisor, shutdown),
                receive
                    {'EXIT', Supervisor, _} -> From ! {self(), ok}
                end
        end
    end),
    answer(Pid),
    Pid.

answer(Pid) ->
    receive
        {Pid, ok} -> ok
    after ?DEADLINE_MS -> error(timeout)
    end.

%% @doc Ends it.
stop_tree(Pid) ->
    Pid ! {self(), stop},
    answer(Pid).

start_supervisor(Via, Argument) -> supervisor:start_link(Via, ?MODULE, {supervisor, Argument}).
start_server(Via, Id) -> gen_server:start_link(Via, ?MODULE, {server, Id}, []).
start_statem(Via, Id) -> gen_statem:start_link(Via, ?MODULE, {statem, Id}, []).

start_event(Via) ->
    case gen_event:start_link(Via) of
        {ok, Pid} ->
            ok = gen_event:add_handler(Pid, ?MODULE, event),
            {ok, Pid};
        Error ->
            Error
    end.

init({supervisor, {Children, Failures}}) ->
    {ok, {#{strategy => one_for_one, intensity => Failures, period => 3600}, [spec(Child) || Child <- Children]}};
init({server, Id}) ->
    {ok, Id};
init({statem, Id}) ->
    {ok, idle, Id};
init(event) ->
    {ok, none}.

spec({server, Via}) -> #{id => server, start => {?MODULE, start_server, [Via, server]}};
spec({statem, Via}) -> #{id => statem, start => {?MODULE, start_statem, [Via, statem]}};
spec({event, Via}) -> #{id => event, start => {?MODULE, start_event, [Via]}};
spec({supervisor, Via}) -> #{id => supervisor, type => supervisor, start => {?MODULE, start_supervisor, [Via, {[], 0}]}}.

handle_call(who, _From, Id) -> {reply, {Id, self()}, Id}.
handle_cast(_, Id) -> {noreply, Id}.

callback_mode() -> handle_event_function.

handle_event({call, From}, who, idle, Id) -> {keep_state_and_data, [{reply, From, {Id, self()}}]}.

handle_call(who, State) -> {ok, {event, self()}, State}.
handle_event(_, State) -> {ok, State}.

%% @doc Asks by the name.
ask(server, {via, _, _} = Via) -> gen_server:call(Via, who);
ask(statem, Via) -> gen_statem:call(Via, who);
ask(event, Via) -> gen_event:call(Via, ?MODULE, who);
ask(supervisor, {via, Module, Name} = Via) -> [] = supervisor:which_children(Via), {supervisor, Module:whereis_name(Name)}.

%% @doc The process of that child now, as the supervisor of that name says.
child(Top, Id) ->
    {Id, Pid, _, _} = lists:keyfind(Id, 1, supervisor:which_children(Top)),
    Pid.

%% @doc Kills it; gives the next one as soon as its supervisor has it.
kill_child(Top, Id) ->
    Old = child(Top, Id),
    Ref = monitor(process, Old),
    true = exit(Old, kill),
    receive
        {'DOWN', Ref, process, Old, killed} -> next_child(Top, Id, Old)
    end.

next_child(Top, Id, Old) ->
    case child(Top, Id) of
        Pid when is_pid(Pid), Pid =/= Old -> Pid;
        _ -> next_child(Top, Id, Old)
    end.

%% @doc What who starts a second one is told.
start_second({server, Via}) -> gen_server:start(Via, ?MODULE, {server, second}, []);
start_second({statem, Via}) -> gen_statem:start(Via, ?MODULE, {statem, second}, []);
start_second({event, Via}) -> gen_event:start(Via);
start_second({supervisor, Via}) ->
    %% It would be linked with what called.
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> Self ! {self(), start_supervisor(Via, {[], 0})} end),
    receive
        {Pid, Answer} -> true = demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, process, Pid, Why} -> Why
    end.
