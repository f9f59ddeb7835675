%% SPDX-License-Identifier: Apache-2.0
%% @doc The operations of DE-Bench. What another node is asked comes back with the bytes that
%% were sent along, and these are compared; no answer is waited for longer than 60 seconds, and
%% one that comes later is dropped. What is done to names takes as long as `global' or `s_group'
%% takes: there is no limit here.
-module(debench_op).
-behaviour(gen_server).

-export([do/3, operations/0, family/1, reasons/0]).
-export([start_server/0, start_fsm/0, echo/2, echo_to/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([operation/0, place/0, reason/0]).

-type operation() ::
    spawning | remote_call | gen_server_call | fsm_server_call
    | global_register | global_whereis | global_unregister
    | local_register | local_whereis | local_unregister.

-type place() :: #{
    here := debench_system:here(),
    %% The worker's own names.
    global_name := term(),
    local_name := atom(),
    payload := binary(),
    delay_us := non_neg_integer()
}.

-type reason() :: timeout | down | no | wrong | raised.
%% Not answered in time; the other end is not there; refused, or a name that is not there;
%% another answer than what was sent; anything else.

-define(SERVER, debench_server).
-define(FSM, debench_fsm).
-define(MS, 60000).

%% @doc All operations.
-spec operations() -> [operation(), ...].
operations() ->
    [
        spawning, remote_call, gen_server_call, fsm_server_call, global_register, global_whereis, global_unregister,
        local_register, local_whereis, local_unregister
    ].

%% @doc What kind of operation it is: one of two nodes, one on the names that all nodes
%% of a mesh or a group see, or one of a node alone.
-spec family(operation()) -> p2p | global | local.
family(global_register) -> global;
family(global_whereis) -> global;
family(global_unregister) -> global;
family(local_register) -> local;
family(local_whereis) -> local;
family(local_unregister) -> local;
family(_Operation) -> p2p.

%% @doc All reasons.
-spec reasons() -> [reason(), ...].
reasons() -> [timeout, down, no, wrong, raised].

%% @doc Does an operation; on which node, if it is one of two.
-spec do(operation(), node() | none, place()) -> ok | {error, reason()}.
do(Operation, Node, Place) ->
    try
        done(Operation, Node, Place)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{noproc, _} -> {error, down};
        exit:{{nodedown, _}, _} -> {error, down};
        exit:{_Reason, {Server, call, _}} when Server =:= gen_server; Server =:= gen_statem -> {error, down};
        _:_ -> {error, raised}
    end.

done(spawning, Node, #{payload := Payload, delay_us := Us}) ->
    %% An answer that is late finds that the alias has gone.
    Alias = alias([reply]),
    {Pid, Ref} = spawn_monitor(Node, ?MODULE, echo_to, [Alias, Payload, Us]),
    receive
        {Alias, Answer} ->
            true = demonitor(Ref, [flush]),
            same(Answer, Payload);
        {'DOWN', Ref, process, Pid, _} ->
            forgotten(Alias, down)
    after ?MS ->
        true = demonitor(Ref, [flush]),
        forgotten(Alias, timeout)
    end;
done(remote_call, Node, #{payload := Payload, delay_us := Us}) ->
    case rpc:call(Node, ?MODULE, echo, [Payload, Us], ?MS) of
        {badrpc, timeout} -> {error, timeout};
        {badrpc, {'EXIT', _}} -> {error, raised};
        {badrpc, _} -> {error, down};
        Answer -> same(Answer, Payload)
    end;
done(gen_server_call, Node, #{payload := Payload, delay_us := Us}) ->
    same(gen_server:call({?SERVER, Node}, {echo, Payload, Us}, ?MS), Payload);
done(fsm_server_call, Node, #{payload := Payload, delay_us := Us}) ->
    same(gen_statem:call({?FSM, Node}, {echo, Payload, Us}, ?MS), Payload);
done(global_register, none, #{here := Here, global_name := Name}) ->
    debench_system:give(Here, Name, self());
done(global_whereis, none, #{here := Here, global_name := Name}) ->
    debench_system:is(Here, Name, self());
done(global_unregister, none, #{here := Here, global_name := Name}) ->
    debench_system:take(Here, Name);
done(local_register, none, #{local_name := Name}) ->
    true = erlang:register(Name, self()),
    ok;
done(local_whereis, none, #{local_name := Name}) ->
    case whereis(Name) of
        Self when Self =:= self() -> ok;
        _ -> {error, no}
    end;
done(local_unregister, none, #{local_name := Name}) ->
    true = erlang:unregister(Name),
    ok.

%% It may have come in the meantime.
forgotten(Alias, Why) ->
    _ = unalias(Alias),
    receive
        {Alias, _} -> {error, Why}
    after 0 -> {error, Why}
    end.

same(Payload, Payload) -> ok;
same(_Answer, _Payload) -> {error, wrong}.

%% @doc What a remote call calls: keeps its processor busy for that long, and returns what
%% it was given.
-spec echo(binary(), Us :: non_neg_integer()) -> binary().
echo(Payload, 0) ->
    Payload;
echo(Payload, Us) ->
    busy(erlang:monotonic_time(microsecond) + Us),
    Payload.

busy(Until) ->
    case erlang:monotonic_time(microsecond) < Until of
        true -> busy(Until);
        false -> ok
    end.

%% @doc What is spawned on another node.
-spec echo_to(Alias :: reference(), binary(), Us :: non_neg_integer()) -> ok.
echo_to(Alias, Payload, Us) ->
    Alias ! {Alias, echo(Payload, Us)},
    ok.

%% @doc The server that other nodes call.
-spec start_server() -> {ok, pid()}.
start_server() ->
    {ok, _} = gen_server:start_link({local, ?SERVER}, ?MODULE, [], []).

%% @doc The state machine that other nodes call.
-spec start_fsm() -> {ok, pid()}.
start_fsm() ->
    {ok, _} = debench_fsm:start_link(?FSM).

%% @private
-spec init([]) -> {ok, none}.
init([]) -> {ok, none}.

%% @private
-spec handle_call({echo, binary(), non_neg_integer()}, gen_server:from(), none) -> {reply, binary(), none}.
handle_call({echo, Payload, Us}, _From, none) -> {reply, echo(Payload, Us), none}.

%% @private
-spec handle_cast(term(), none) -> no_return().
handle_cast(Message, none) -> error({unknown_cast, Message}).

%% @private
-spec handle_info(term(), none) -> {noreply, none}.
handle_info(_Late, none) -> {noreply, none}.
