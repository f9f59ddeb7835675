%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A process on another node that stands between a supervisor here and a child there.
%%
%% A process that was started in the manner of OTP takes the one that called its start function
%% for its parent: only an exit signal of that one ends it in order if it traps exits. So there
%% is a process on the child's node that calls the function and stays, the bridge. It is
%% linked with both, and the child to the supervisor:
%% <ul>
%% <li>When the child ends, the bridge ends with the child's reason.</li>
%% <li>An exit signal of the supervisor, or the loss of its node, is handed on to the child. The
%%   bridge waits for the child's end, however long it takes, as a supervisor's child would; but
%%   a child whose supervisor is lost has the time of its `shutdown', and is killed then.</li>
%% <li>When the supervisor kills the bridge, the child is killed: by a third process, the guard,
%%   since one that is killed does nothing any more.</li>
%% <li>Calls in the manner of `gen', and what {@link sys} asks, go on to the child, which answers
%%   itself: the child may be a supervisor, and a release upgrade finds it.</li>
%% </ul>
%%
%% The caller is a supervisor, and must not be held up by a connection that is full. So a process
%% beside it, the starter, does what may take long, and its end is the outcome: it ends with
%% what has come of it, or is killed by the caller when the time is over. The bridge watches
%% the starter, and keeps its child only if that has ended with `done'. A bridge that the caller
%% has given up, or that was cut off from the starter for a moment only, ends its child at once.
%% The monitor stays for that: whoever removes it may remove the news as well.
%%
%% Nothing is started on a node that does not answer: the bridge calls the function only when the
%% starter, which has heard of the bridge by then, says so. A function that does not return in
%% its time is ended, with the processes that it has spawned and linked.
%%
%% The child's group leader is of its own node, as that of a process that belongs to no
%% application.
%%
%% Not promised: that no second child runs while a supervisor and a child that cannot reach each
%% other find out. The child hears of it when its node does, and ends then. That a function is
%% not called, for a moment, whose caller gives up while the word to go is on its way. That what a
%% function has begun ends as well if somebody kills the bridge before it has a child.
-module(atoll_place_bridge).

-export([start/3, stop/2, child/2]).
-export([bridge/5, cross/4, guard/4, keep/2]).

%% The processes beside a caller end with exit/1 by design.
-dialyzer({nowarn_function, [start/3, child/2]}).

-export_type([mfargs/0, limits/0, shutdown/0, outcome/0]).

-type mfargs() :: {module(), Function :: atom(), Args :: [term()]}.

-type shutdown() :: brutal_kill | infinity | pos_integer().

-type limits() :: #{
    %% In how many milliseconds the node answers.
    answer := pos_integer(),
    %% In how many the function has returned as well.
    all := pos_integer(),
    %% How long the child has for its end where no supervisor waits for it.
    shutdown := shutdown()
}.

-type outcome() ::
    %% What the function returned; the bridge is linked with the caller.
    {done, {ok, Bridge :: pid(), Info :: pid() | {pid(), term()}} | ignore | {error, term()}}
    %% Nothing runs there: it did not answer in time, or the connection was lost.
    | {passed, silent | lost}
    %% The function did not return in its time.
    | late
    | {no_code, mfa()}
    | {failed, Reason :: term()}.

%% What the way of a message may take beyond the time of what it tells of.
-define(GRACE_MS, 1000).
%% A process of this node that is killed is gone long before.
-define(KILLED_MS, 100).

%% @doc Has a start function called on a node, for the calling process.
-spec start(node(), mfargs(), limits()) -> outcome().
start(Node, MFArgs, #{answer := AnswerMs, all := Ms, shutdown := Shutdown}) ->
    Until = now_ms() + Ms,
    Self = self(),
    %% What comes when this is over is dropped by the runtime.
    Alias = alias(),
    {Starter, Ref} = spawn_monitor(fun() -> starter(Self, Alias, Node, MFArgs, Shutdown, {AnswerMs, Until}) end),
    Outcome =
        receive
            {Alias, begun} -> outcome(Starter, Ref, max(0, Until - now_ms()), late);
            {'DOWN', Ref, process, Starter, Why} -> told(Why, {passed, silent})
        after min(AnswerMs, Ms) -> outcome(Starter, Ref, 0, {passed, silent})
        end,
    _ = unalias(Alias),
    receive
        %% It was about to have the function called; that is undone, but not known to be by now.
        {Alias, begun} when Outcome =:= {passed, silent} -> late;
        {Alias, begun} -> Outcome
    after 0 -> Outcome
    end.

%% What the starter ends with; it is killed when the time is over.
outcome(Starter, Ref, Ms, Else) ->
    receive
        {'DOWN', Ref, process, Starter, Why} -> told(Why, Else)
    after Ms ->
        true = exit(Starter, kill),
        receive
            {'DOWN', Ref, process, Starter, Why} -> told(Why, Else)
        after ?KILLED_MS ->
            true = erlang:demonitor(Ref, [flush]),
            Else
        end
    end.

told({?MODULE, Outcome}, _Else) -> Outcome;
told(killed, Else) -> Else;
told(Crash, _Else) -> {failed, Crash}.

now_ms() -> erlang:monotonic_time(millisecond).

%% The starter. A full connection may suspend it wherever it sends.

-spec starter(pid(), reference(), node(), mfargs(), shutdown(), {AnswerMs :: pos_integer(), Until :: integer()}) -> no_return().
starter(Caller, Alias, Node, MFArgs, Shutdown, {AnswerMs, Until}) ->
    Ref = erlang:monitor(process, Caller),
    Args = [Caller, self(), MFArgs, Shutdown, AnswerMs + ?GRACE_MS],
    Request = spawn_request(Node, ?MODULE, bridge, Args, [monitor]),
    Outcome =
        receive
            {spawn_reply, Request, error, noconnection} -> {passed, lost};
            {spawn_reply, Request, error, Reason} -> {failed, Reason};
            {spawn_reply, Request, ok, Bridge} -> begun(Bridge, Request, Alias, Ref, Until);
            {'DOWN', Ref, process, Caller, _} -> caller_gone
        end,
    exit({?MODULE, Outcome}).

begun(Bridge, Request, Alias, Ref, Until) ->
    _ = Alias ! {Alias, begun},
    _ = Bridge ! {?MODULE, go, max(1, Until - now_ms())},
    receive
        {?MODULE, Bridge, Answer} -> answered(Answer, Bridge);
        {'DOWN', Request, process, Bridge, Reason} -> ended(Reason);
        {'DOWN', Ref, process, _Caller, _} -> caller_gone
    end.

answered({ok, Pid}, Bridge) -> {done, {ok, Bridge, Pid}};
answered({ok, Pid, Extra}, Bridge) -> {done, {ok, Bridge, {Pid, Extra}}};
answered({no_code, _} = NoCode, _Bridge) -> NoCode;
answered({other, ignore}, _Bridge) -> {done, ignore};
answered({other, {error, Reason}}, _Bridge) -> {done, {error, Reason}};
%% As a supervisor has it.
answered({other, What}, _Bridge) -> {done, {error, What}}.

ended(noconnection) -> {passed, lost};
%% It has heard from here too late.
ended(normal) -> {passed, silent};
%% By the guard.
ended(killed) -> late;
ended({undef, [{?MODULE, bridge, Args, _} | _]}) when is_list(Args) -> {no_code, {?MODULE, bridge, length(Args)}};
ended(Reason) -> {failed, Reason}.

%% @doc Ends the child behind a bridge with `{shutdown, Why}', as its parent would, and kills it
%% when the time of its `shutdown' is over; the caller waits for neither. `not_told' if the
%% connection takes nothing now, or is gone.
-spec stop(Bridge :: pid(), Why :: atom()) -> ok | not_told.
stop(Bridge, Why) ->
    case erlang:send(Bridge, {?MODULE, stop, Why}, [noconnect, nosuspend]) of
        ok -> ok;
        _ -> not_told
    end.

%% @doc The process behind a bridge.
-spec child(Bridge :: pid(), Ms :: pos_integer()) -> {ok, pid()} | none.
child(Bridge, Ms) ->
    {Asker, Ref} = spawn_monitor(fun() -> exit({?MODULE, ask(Bridge, Ms)}) end),
    case outcome(Asker, Ref, Ms, none) of
        {ok, Child} -> {ok, Child};
        _ -> none
    end.

ask(Bridge, Ms) ->
    Ref = erlang:monitor(process, Bridge),
    _ = Bridge ! {?MODULE, child, self(), Ref},
    receive
        {Ref, Child} -> {ok, Child};
        {'DOWN', Ref, process, Bridge, _} -> none
    after Ms -> none
    end.

%% The bridge

%% @private
-spec bridge(pid(), pid(), mfargs(), shutdown(), Ms :: pos_integer()) -> no_return().
bridge(Parent, Starter, MFArgs, Shutdown, Ms) ->
    _ = process_flag(trap_exit, true),
    %% That of the caller is of another node, and what is written here would be written there.
    true = group_leader(local_leader(), self()),
    Ref = erlang:monitor(process, Starter),
    receive
        {?MODULE, go, StartMs} -> run(Parent, Starter, Ref, MFArgs, Shutdown, StartMs);
        {'DOWN', Ref, process, Starter, _} -> exit(normal)
    after Ms -> exit(normal)
    end.

local_leader() ->
    Leader = group_leader(),
    case node(Leader) =:= node() of
        true ->
            Leader;
        false ->
            case whereis(user) of
                undefined -> whereis(init);
                User -> User
            end
    end.

run(Parent, Starter, Ref, {M, F, Args}, Shutdown, Ms) ->
    Guard = spawn(?MODULE, guard, [self(), Starter, Parent, Ms]),
    %% For those who read of a process whose child it is.
    _ = put('$ancestors', [Parent]),
    Answer = call(M, F, Args),
    case Answer of
        {ok, Child} -> stand(Parent, Child, Guard);
        {ok, Child, _} -> stand(Parent, Child, Guard);
        _ -> ok
    end,
    _ = Starter ! {?MODULE, self(), Answer},
    case Answer of
        {no_code, _} -> exit(normal);
        {other, _} -> exit(normal);
        _ -> cross(Parent, element(2, Answer), Ref, Shutdown)
    end.

call(M, F, Args) ->
    try apply(M, F, Args) of
        {ok, Child} when is_pid(Child) -> {ok, Child};
        {ok, Child, Extra} when is_pid(Child) -> {ok, Child, Extra};
        Other -> {other, Other}
    catch
        error:undef:Stack -> undefined_function(Stack, M, F, Args);
        error:Reason:Stack -> {other, {error, {Reason, Stack}}};
        exit:Reason -> {other, {error, Reason}};
        throw:Thrown -> {other, Thrown}
    end.

undefined_function([{M, F, Args, _} | _], M, F, Args) -> {no_code, {M, F, length(Args)}};
undefined_function(Stack, _M, _F, _Args) -> {other, {error, {undef, Stack}}}.

%% The links are there before the caller hears of it. Who is gone by then is heard of as of one
%% who goes later.
stand(Parent, Child, Guard) ->
    true = link(Child),
    _ = Guard ! {?MODULE, child, Child},
    link(Parent).

%% @private Waits in hibernation, which needs little memory, and no code of its own that a newer
%% version could take away.
-spec cross(pid(), pid(), reference(), shutdown()) -> no_return().
cross(Parent, Child, Starter, Shutdown) ->
    receive
        {'EXIT', Child, Reason} ->
            exit(Reason);
        {'EXIT', Parent, Reason} ->
            true = exit(Child, handed_on(Reason)),
            case Reason of
                noconnection -> kill_after(Shutdown);
                %% A supervisor that is there kills the bridge when it has waited enough.
                _ -> ok
            end;
        {'DOWN', Starter, process, _, {?MODULE, {done, _}}} ->
            ok;
        {'DOWN', Starter, process, _, _} ->
            %% The caller does not have this child, and perhaps another by now.
            true = exit(Child, kill),
            ok;
        {?MODULE, stop, Why} ->
            true = exit(Child, {shutdown, Why}),
            kill_after(Shutdown);
        {?MODULE, kill} ->
            true = exit(Child, kill),
            ok;
        {?MODULE, child, Asker, Ref} when is_pid(Asker) ->
            _ = Asker ! {Ref, Child},
            ok;
        {system, _From, _Request} = Message ->
            _ = Child ! Message,
            ok;
        {'$gen_call', _From, _Request} = Message ->
            _ = Child ! Message,
            ok;
        _Stray ->
            %% A supervisor's child is known to many; the true one must not die of it.
            ok
    after 0 -> ok
    end,
    erlang:hibernate(?MODULE, cross, [Parent, Child, Starter, Shutdown]).

kill_after(infinity) ->
    ok;
kill_after(brutal_kill) ->
    _ = self() ! {?MODULE, kill},
    ok;
kill_after(Ms) ->
    _ = erlang:send_after(Ms, self(), {?MODULE, kill}),
    ok.

%% As a link would have it: nobody is killed by one.
handed_on(kill) -> killed;
handed_on(Reason) -> Reason.

%% The guard

%% @private
-spec guard(pid(), pid(), pid(), Ms :: pos_integer()) -> ok.
guard(Bridge, Starter, Parent, Ms) ->
    Ref = erlang:monitor(process, Bridge),
    Given = erlang:monitor(process, Starter),
    receive
        {?MODULE, child, Child} ->
            true = erlang:demonitor(Given, [flush]),
            keep(Ref, Child);
        {'DOWN', Ref, process, Bridge, _} ->
            ok;
        {'DOWN', Given, process, Starter, {?MODULE, {done, _}}} ->
            %% The function has refused, and the bridge ends by itself.
            ok;
        {'DOWN', Given, process, Starter, _} ->
            end_begun(Bridge, Parent)
    after Ms -> end_begun(Bridge, Parent)
    end.

end_begun(Bridge, Parent) ->
    Begun = [Pid || Pid <- linked(Bridge), Pid =/= Parent, process_info(Pid, parent) =:= {parent, Bridge}],
    true = exit(Bridge, kill),
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, Begun).

linked(Bridge) ->
    case process_info(Bridge, links) of
        {links, Links} -> [Pid || Pid <- Links, is_pid(Pid), node(Pid) =:= node()];
        undefined -> []
    end.

%% @private
-spec keep(reference(), pid()) -> ok.
keep(Ref, Child) ->
    receive
        {'DOWN', Ref, process, _Bridge, killed} ->
            true = exit(Child, kill),
            ok;
        {'DOWN', Ref, process, _Bridge, _} ->
            ok;
        _Stray ->
            keep(Ref, Child)
    after 0 -> erlang:hibernate(?MODULE, keep, [Ref, Child])
    end.
