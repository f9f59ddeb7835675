%% SPDX-License-Identifier: Apache-2.0
%% An application to be killed at: it may restart its processes as often as need
%% be. It has processes with names, with ids only, and with neither, and a
%% supervisor that gives up soon.
-module(atoll_chaos_subject).

-behaviour(application).

-export([start_here/0, finish/0, start_orphan/1, start_proud/0, start_twins/1, start_friend/2, start_late/1, start_named/2, restarts/0, start_kept/1, kept/0, names/0]).
-export([start/2, stop/1, init/1, start_worker/1, handle_call/3, handle_cast/2]).

%% Permanent: if it ended, the node would.
start_here() ->
    ok = application:load(
        {application, ?MODULE, [
            {description, "to be killed at"},
            {vsn, "1"},
            {modules, [?MODULE]},
            {registered, []},
            {applications, [kernel, stdlib]},
            {mod, {?MODULE, []}}
        ]}
    ),
    application:start(?MODULE, permanent).

%% All that was started here is gone, and Atoll with it.
finish() ->
    %% By their names, whose order has a keeper end before whom it keeps.
    lists:foreach(fun finish/1, [N || N <- lists:sort(registered()), is_alone(atom_to_list(N))]),
    _ = application:stop(?MODULE),
    _ = application:unload(?MODULE),
    _ = [persistent_term:erase(Key) || Key <- [subject_slow, subject_late]],
    _ = [application:unset_env(atoll_chaos_test, Key) || {Key, _} <- application:get_all_env(atoll_chaos_test)],
    application:stop(atoll).

%% Not of the application, so it does not end with it.
is_alone(Name) ->
    lists:prefix("friend_of_", Name) orelse lists:member(Name, ["subject_observer", "subject_keeper", "subject_kept"]).

finish(Name) ->
    case whereis(Name) of
        undefined ->
            ok;
        Pid ->
            Ref = monitor(process, Pid),
            true = exit(Pid, kill),
            receive
                {'DOWN', Ref, process, Pid, _} -> ok
            end
    end.

%% A process with a name, of this application, that no supervisor looks after.
start_orphan(Name) ->
    Self = self(),
    {group_leader, Leader} = process_info(whereis(subject_top), group_leader),
    _ = spawn(fun() ->
        true = group_leader(Leader, self()),
        true = register(Name, self()),
        Self ! {started, Name},
        timer:sleep(infinity)
    end),
    receive
        {started, Name} -> ok
    end.

%% A supervisor that shuts down when one of its children ends.
start_proud() ->
    {ok, _} = supervisor:start_child(subject_top, #{
        id => proud, start => {supervisor, start_link, [{local, subject_proud}, ?MODULE, proud]}, type => supervisor,
        restart => transient
    }),
    ok.

%% Two that are linked to each other, under a supervisor of that intensity.
start_twins(Intensity) ->
    {ok, _} = supervisor:start_child(subject_top, #{
        id => twins, start => {supervisor, start_link, [{local, subject_twins}, ?MODULE, {twins, Intensity}]},
        type => supervisor
    }),
    ok.

%% A process with a name that nobody supervises, linked to another one.
start_friend(Name, Of) ->
    Self = self(),
    _ = spawn(fun() ->
        true = register(Name, self()),
        true = link(whereis(Of)),
        Self ! {started, Name},
        timer:sleep(infinity)
    end),
    receive
        {started, Name} -> ok
    end.

%% One that takes so long to be back, and an observer that writes down when it was
%% gone and when another one was there.
start_late(Ms) ->
    {ok, _} = supervisor:start_child(subject_named, #{id => late, start => {?MODULE, start_worker, [{late, Ms}]}}),
    Self = self(),
    _ = spawn(fun() ->
        true = register(subject_observer, self()),
        Self ! {started, late},
        observe(whereis(subject_late), [])
    end),
    receive
        {started, late} -> ok
    end.

%% One with a name in a group, or in `global'.
start_named(Scope, Name) ->
    {ok, Pid} = supervisor:start_child(subject_named, #{id => Name, start => {?MODULE, start_worker, [{named, Scope, Name}]}}),
    {ok, Pid}.

%% How long each took to be back, in microseconds, as the observer saw it.
restarts() ->
    subject_observer ! {restarts, self()},
    receive
        {restarts, Restarts} -> Restarts
    end.

observe(Pid, Restarts) ->
    Ref = monitor(process, Pid),
    receive
        {'DOWN', Ref, process, Pid, _} ->
            Gone = erlang:monotonic_time(microsecond),
            {Next, Back} = next(),
            observe(Next, [Back - Gone | Restarts]);
        {restarts, From} ->
            true = demonitor(Ref, [flush]),
            From ! {restarts, lists:reverse(Restarts)},
            observe(Pid, Restarts)
    end.

%% One that no supervisor looks after: somebody starts it again so long after its end,
%% and writes down when it was gone and when another one was there.
start_kept(Ms) ->
    Self = self(),
    _ = spawn(fun() ->
        true = register(subject_keeper, self()),
        First = keep(),
        Self ! {started, kept},
        kept(First, Ms, [])
    end),
    receive
        {started, kept} -> ok
    end.

kept() ->
    subject_keeper ! {kept, self()},
    receive
        {kept, Restarts} -> Restarts
    end.

keep() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        true = register(subject_kept, self()),
        Self ! {registered, self(), erlang:monotonic_time(microsecond)},
        timer:sleep(infinity)
    end),
    receive
        {registered, Pid, Us} -> {Ref, Us}
    end.

kept({Ref, _}, Ms, Restarts) ->
    receive
        {'DOWN', Ref, process, _, _} ->
            Gone = erlang:monotonic_time(microsecond),
            receive after Ms -> ok end,
            {_, Back} = Next = keep(),
            kept(Next, Ms, [Back - Gone | Restarts]);
        {kept, From} ->
            From ! {kept, lists:reverse(Restarts)},
            kept({Ref, none}, Ms, Restarts)
    end.

next() ->
    receive
        {late, Pid, Us} -> {Pid, Us}
    end.

names() -> [subject_a, subject_b, subject_c].

start(_, _) -> supervisor:start_link({local, subject_top}, ?MODULE, top).

stop(_) -> ok.

init(top) ->
    {ok, {#{strategy => one_for_one, intensity => 1000000, period => 1}, [
        #{id => named, start => {supervisor, start_link, [{local, subject_named}, ?MODULE, named]}, type => supervisor},
        #{id => dynamic, start => {supervisor, start_link, [{local, subject_dynamic}, ?MODULE, dynamic]}, type => supervisor},
        #{id => frail, start => {supervisor, start_link, [{local, subject_frail}, ?MODULE, frail]}, type => supervisor},
        #{id => starter, start => {?MODULE, start_worker, [starter]}}
        | [#{id => {numbered, I}, start => {?MODULE, start_worker, [none]}} || I <- lists:seq(1, 3)]
    ]}};
init(named) ->
    {ok, {#{intensity => 1000000, period => 1}, [
        #{id => Name, start => {?MODULE, start_worker, [Name]}} || Name <- names()
    ]}};
init(dynamic) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 1000000, period => 1}, [
        #{id => one, start => {?MODULE, start_worker, [none]}}
    ]}};
init(frail) ->
    {ok, {#{intensity => 2, period => 3600}, [
        #{id => frail, start => {?MODULE, start_worker, [frail]}},
        #{id => passing, restart => temporary, start => {?MODULE, start_worker, [passing]}}
    ]}};
init({twins, Intensity}) ->
    {ok, {#{intensity => Intensity, period => 3600}, [
        #{id => Name, start => {?MODULE, start_worker, [Name]}} || Name <- [twin_a, twin_b]
    ]}};
%% The one of its children that may end without it is a second late.
init(proud) ->
    {ok, {#{intensity => 1000000, period => 1, auto_shutdown => any_significant}, [
        #{id => slow, start => {?MODULE, start_worker, [subject_slow]}},
        #{id => proud, restart => temporary, significant => true, start => {?MODULE, start_worker, [proud]}}
    ]}};
init({worker, subject_slow}) ->
    _ = [receive after 1000 -> ok end || persistent_term:get(subject_slow, false)],
    ok = persistent_term:put(subject_slow, true),
    {ok, subject_slow};
init({worker, starter}) ->
    _ = [{ok, _} = supervisor:start_child(subject_dynamic, []) || [] =:= supervisor:which_children(subject_dynamic), _ <- lists:seq(1, 4)],
    {ok, starter};
init({worker, {late, Ms}}) ->
    _ = [receive after Ms -> ok end || persistent_term:get(subject_late, false)],
    ok = persistent_term:put(subject_late, true),
    _ = [subject_observer ! {late, self(), erlang:monotonic_time(microsecond)} || is_pid(whereis(subject_observer))],
    {ok, late};
%% It waits until it has the name, whoever had it.
init({worker, {named, global, Name}}) ->
    yes = global:register_name(Name, self()),
    {ok, named};
init({worker, {named, {group, Group}, Name}}) ->
    yes = s_group:re_register_name(Group, Name, self()),
    {ok, named};
init({worker, Name}) when Name =:= twin_a; Name =:= twin_b ->
    _ = [link(Pid) || Twin <- [twin_a, twin_b], Twin =/= Name, Pid <- [whereis(Twin)], is_pid(Pid)],
    {ok, Name};
init({worker, Name}) ->
    {ok, Name}.

start_worker({named, _, _} = Name) -> gen_server:start_link(?MODULE, {worker, Name}, []);
start_worker(Name) when Name =:= none; Name =:= starter -> gen_server:start_link(?MODULE, {worker, Name}, []);
start_worker({late, _} = Late) -> gen_server:start_link({local, subject_late}, ?MODULE, {worker, Late}, []);
start_worker(Name) -> gen_server:start_link({local, Name}, ?MODULE, {worker, Name}, []).

handle_call(_, _, State) -> {reply, State, State}.

handle_cast(_, State) -> {noreply, State}.
