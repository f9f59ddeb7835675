%% @doc A process on another node that stands between a supervisor here and a child there.
%%
%% A process that was started in the manner of OTP takes the one that called its start function
%% for its parent: only an exit signal of that one ends it in order if it traps exits. So there
%% is a process on the child's node that calls the function and stays, the bridge. It is
%% linked with both, and the child to the supervisor:
%% <ul>
%% <li>When the child ends, the bridge ends with the child's reason.</li>
%% <li>An exit signal of the supervisor, or the loss of its node, is handed on to the child. The
%%   bridge waits for the child's end, however long it takes, as a supervisor's child would.</li>
%% <li>When the supervisor kills the bridge, the child is killed: by a third process, the guard,
%%   since one that is killed does nothing any more.</li>
%% </ul>
%%
%% Nothing is started on a node that does not answer: the bridge calls the function only when the
%% caller, which has heard of the bridge by then, says so. A function that does not return in
%% its time is ended, with the processes that it has spawned and linked.
%%
%% Not promised: that no second child runs while a supervisor and a child that cannot reach each
%% other find out. The child hears of it when its node does, and ends then.
-module(atoll_place_bridge).

-export([start/4, stop/2, child/2]).
-export([bridge/4, cross/2, guard/3, keep/2]).

-export_type([mfargs/0, outcome/0]).

-type mfargs() :: {module(), Function :: atom(), Args :: [term()]}.

-type outcome() ::
    %% What the function returned; the bridge is linked with the caller.
    {done, {ok, Bridge :: pid(), Info :: pid() | {pid(), term()}} | ignore | {error, term()}}
    %% Nothing runs there: it did not answer in time, or the connection was lost.
    | {passed, silent | lost}
    %% The function did not return in its time.
    | late
    | {no_code, mfa()}
    | {failed, Reason :: term()}.

%% How long a child that is to be placed anew has for its end.
-define(STOP_MS, 5000).
%% What the way of a message may take beyond the time of what it tells of.
-define(GRACE_MS, 1000).

%% @doc Has a start function called on a node, for the calling process.
-spec start(node(), mfargs(), AnswerMs :: pos_integer(), StartMs :: pos_integer()) -> outcome().
start(Node, MFArgs, AnswerMs, StartMs) ->
    %% What comes when this is over is dropped by the runtime.
    Alias = alias(),
    Request = spawn_request(Node, ?MODULE, bridge, [self(), Alias, MFArgs, AnswerMs + ?GRACE_MS], [monitor]),
    Outcome =
        receive
            {spawn_reply, Request, Result, What} -> begun(Result, What, Request, Alias, StartMs)
        after AnswerMs ->
            case spawn_request_abandon(Request) of
                true ->
                    {passed, silent};
                false ->
                    receive
                        {spawn_reply, Request, Result, What} -> begun(Result, What, Request, Alias, StartMs)
                    end
            end
        end,
    _ = unalias(Alias),
    receive
        {Alias, _} -> Outcome
    after 0 -> Outcome
    end.

begun(error, noconnection, _Request, _Alias, _StartMs) ->
    {passed, lost};
begun(error, Reason, _Request, _Alias, _StartMs) ->
    {failed, Reason};
begun(ok, Bridge, Request, Alias, StartMs) ->
    _ = Bridge ! {?MODULE, go, StartMs},
    receive
        {Alias, Answer} ->
            true = erlang:demonitor(Request, [flush]),
            answered(Answer, Bridge);
        {'DOWN', Request, process, Bridge, Reason} ->
            ended(Reason)
    after StartMs + ?GRACE_MS ->
        true = exit(Bridge, kill),
        true = erlang:demonitor(Request, [flush]),
        late
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

%% @doc Ends the child behind a bridge with `{shutdown, Why}', as its parent would; the caller
%% does not wait.
-spec stop(Bridge :: pid(), Why :: atom()) -> ok.
stop(Bridge, Why) ->
    _ = erlang:send(Bridge, {?MODULE, stop, Why}, [noconnect, nosuspend]),
    ok.

%% @doc The process behind a bridge.
-spec child(Bridge :: pid(), Ms :: pos_integer()) -> {ok, pid()} | none.
child(Bridge, Ms) ->
    Ref = erlang:monitor(process, Bridge, [{alias, reply_demonitor}]),
    _ = Bridge ! {?MODULE, child, Ref},
    receive
        {Ref, Child} -> {ok, Child};
        {'DOWN', Ref, process, Bridge, _} -> none
    after Ms ->
        true = erlang:demonitor(Ref, [flush]),
        receive
            {Ref, Child} -> {ok, Child}
        after 0 -> none
        end
    end.

%% The bridge

%% @private
-spec bridge(pid(), reference(), mfargs(), Ms :: pos_integer()) -> no_return().
bridge(Parent, Alias, MFArgs, Ms) ->
    _ = process_flag(trap_exit, true),
    Ref = erlang:monitor(process, Parent),
    receive
        {?MODULE, go, StartMs} -> run(Parent, Ref, Alias, MFArgs, StartMs);
        {'DOWN', Ref, process, Parent, _} -> exit(normal)
    after Ms -> exit(normal)
    end.

run(Parent, Ref, Alias, {M, F, Args}, Ms) ->
    Guard = spawn(?MODULE, guard, [self(), Parent, Ms]),
    %% For those who read of a process whose child it is.
    _ = put('$ancestors', [Parent]),
    Answer = call(M, F, Args),
    case Answer of
        {ok, Child} -> stand(Parent, Child, Guard);
        {ok, Child, _} -> stand(Parent, Child, Guard);
        _ -> ok
    end,
    _ = Alias ! {Alias, Answer},
    true = erlang:demonitor(Ref, [flush]),
    case Answer of
        {no_code, _} -> exit(normal);
        {other, _} -> exit(normal);
        _ -> cross(Parent, element(2, Answer))
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
-spec cross(pid(), pid()) -> no_return().
cross(Parent, Child) ->
    receive
        {'EXIT', Child, Reason} ->
            exit(Reason);
        {'EXIT', Parent, Reason} ->
            true = exit(Child, handed_on(Reason)),
            cross_later(Parent, Child);
        {?MODULE, stop, Why} ->
            true = exit(Child, {shutdown, Why}),
            _ = erlang:send_after(?STOP_MS, self(), {?MODULE, kill}),
            cross_later(Parent, Child);
        {?MODULE, kill} ->
            true = exit(Child, kill),
            cross_later(Parent, Child);
        {?MODULE, child, Asker} when is_reference(Asker) ->
            _ = Asker ! {Asker, Child},
            cross_later(Parent, Child);
        _Stray ->
            %% A supervisor's child is known to many; the true one must not die of it.
            cross_later(Parent, Child)
    after 0 -> cross_later(Parent, Child)
    end.

cross_later(Parent, Child) ->
    erlang:hibernate(?MODULE, cross, [Parent, Child]).

%% As a link would have it: nobody is killed by one.
handed_on(kill) -> killed;
handed_on(Reason) -> Reason.

%% The guard

%% @private
-spec guard(pid(), pid(), Ms :: pos_integer()) -> ok.
guard(Bridge, Parent, Ms) ->
    Ref = erlang:monitor(process, Bridge),
    receive
        {?MODULE, child, Child} -> keep(Ref, Child);
        {'DOWN', Ref, process, Bridge, _} -> ok
    after Ms ->
        Begun = [Pid || Pid <- linked(Bridge), Pid =/= Parent, process_info(Pid, parent) =:= {parent, Bridge}],
        true = exit(Bridge, kill),
        lists:foreach(fun(Pid) -> exit(Pid, kill) end, Begun)
    end.

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
