%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: Phoenix.PubSub with Atoll's adapter and with its own beside it, and subscribers
%% that write down what they get.
-module(atoll_cli_phoenix_probe).

-export([start/1, stop/0, subscriber/3, got/1, await/2, publish/3, publish_until_refused/2, publish_again/2, stream/2, follow_stream/2, await_status/2]).

-define(PUBSUB, 'Elixir.Phoenix.PubSub').
-define(ATOLL, 'Elixir.Atoll.PubSub').
-define(DEADLINE_MS, 30000).

%% The names of the two systems.
-define(NAMES, [{far, [{adapter, ?ATOLL}]}, {near, []}]).

%% @doc Starts both, the first with these options; they last until they are stopped.
-spec start([{atom(), term()}]) -> ok | {error, term()}.
start(Options) ->
    %% Elixir's own application asks for a terminal, and nothing here needs it.
    _ = pg:start(?PUBSUB),
    Caller = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        process_flag(trap_exit, true),
        true = register(?MODULE, self()),
        Started = [{Name, ?PUBSUB:start_link([{name, Name} | own(Name, Options) ++ More])} || {Name, More} <- ?NAMES],
        case [Reason || {_, {error, Reason}} <- Started] of
            [] -> Caller ! {self(), ok};
            [Reason | _] -> exit(Reason)
        end,
        receive
            stop -> [exit(Sup, shutdown) || {_, {ok, Sup}} <- Started], [receive {'EXIT', Sup, _} -> ok end || {_, {ok, Sup}} <- Started]
        end
    end),
    receive
        {Pid, ok} -> true = erlang:demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Pid, Reason} -> {error, Reason}
    end.

own(far, Options) -> Options;
own(near, _) -> [].

%% @doc Stops them; the subscribers too.
-spec stop() -> ok.
stop() ->
    _ = [end_of(Pid, fun() -> exit(Pid, kill) end) || {subscriber, Pid} <- [{kind(P), P} || P <- processes()]],
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> end_of(Pid, fun() -> Pid ! stop end)
    end.

kind(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> proplists:get_value(?MODULE, Dictionary);
        undefined -> undefined
    end.

end_of(Pid, End) ->
    Ref = monitor(process, Pid),
    _ = End(),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

%% @doc A process of that name that has subscribed to topics, by the module that is to do it.
-spec subscriber(atom(), module(), [{System :: atom(), Topic :: binary()}]) -> ok.
subscriber(Name, By, Topics) ->
    Caller = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        put(?MODULE, subscriber),
        true = register(Name, self()),
        [ok = subscribe(By, System, Topic) || {System, Topic} <- Topics],
        Caller ! {self(), ok},
        keep([])
    end),
    receive
        {Pid, ok} -> true = erlang:demonitor(Ref, [flush]), ok
    end.

subscribe(?ATOLL, far, Topic) -> ?ATOLL:subscribe(far, Topic);
subscribe(_, System, Topic) -> ?PUBSUB:subscribe(System, Topic).

keep(Got) ->
    receive
        {got, From} -> From ! {self(), lists:reverse(Got)}, keep(Got);
        {await, From, Message} -> await_in(Got, Message, From);
        {atoll_cli, Message} -> keep([short(Message) | Got])
    end.

await_in(Got, Message, From) ->
    case lists:member(Message, Got) of
        true -> From ! {self(), ok}, keep(Got);
        false -> receive {atoll_cli, New} -> await_in([short(New) | Got], Message, From) end
    end.

short(Bytes) when is_binary(Bytes) -> {bytes, byte_size(Bytes)};
short(Message) -> Message.

%% @doc What it has got, in order.
-spec got(atom()) -> [term()].
got(Name) -> ask(Name, {got, self()}).

%% @doc Waits until it has got that.
-spec await(atom(), term()) -> ok.
await(Name, Message) -> ask(Name, {await, self(), Message}).

ask(Name, Question) ->
    Pid = whereis(Name),
    Pid ! Question,
    receive {Pid, Answer} -> Answer after ?DEADLINE_MS -> error({late, Name, Question}) end.

%% @doc Publishes from this node.
-spec publish(System :: atom(), Topic :: binary(), term()) -> ok | {error, term()}.
publish(System, Topic, Message) ->
    ?PUBSUB:broadcast(System, Topic, {atoll_cli, Message}).

%% @doc Publishes so many bytes again and again, until that is refused because it is too fast; how often it was not.
%% Subscribers keep how many bytes there were.
-spec publish_until_refused(Topic :: binary(), pos_integer()) -> pos_integer().
publish_until_refused(Topic, Bytes) ->
    publish_until_refused(Topic, binary:copy(<<0>>, Bytes), 0).

publish_until_refused(Topic, Payload, Sent) ->
    case publish(far, Topic, Payload) of
        ok -> publish_until_refused(Topic, Payload, Sent + 1);
        {error, overloaded} -> Sent
    end.

%% @doc Publishes, some tenths of a second later where it is refused.
-spec publish_again(Topic :: binary(), term()) -> ok.
publish_again(Topic, Message) ->
    case publish(far, Topic, Message) of
        ok -> ok;
        {error, overloaded} -> receive after 100 -> publish_again(Topic, Message) end
    end.

%% @doc Publishes numbers, until it is stopped; who asks it is told the last one.
-spec stream(atom(), Topic :: binary()) -> ok.
stream(Name, Topic) ->
    _ = spawn(fun() -> put(?MODULE, subscriber), true = register(Name, self()), stream_on(Topic, 1) end),
    ok.

%% A thousand a second at most: the pause is the rate.
stream_on(Topic, N) ->
    ok = publish(far, Topic, N),
    receive {last, From} -> From ! {last, N} after 1 -> ok end,
    stream_on(Topic, N + 1).

%% @doc Subscribes here to what that node streams, asks the publisher for its last number when the subscription has
%% returned, and says how long that took, the number, and which of the next hundred have not come.
-spec follow_stream({atom(), node()}, Topic :: binary()) -> {Ms :: integer(), Last :: pos_integer(), [pos_integer()]}.
follow_stream(Publisher, Topic) ->
    Began = erlang:monotonic_time(millisecond),
    ok = ?ATOLL:subscribe(far, Topic),
    Ms = erlang:monotonic_time(millisecond) - Began,
    Publisher ! {last, self()},
    Last = receive {last, N} -> N after ?DEADLINE_MS -> error(late) end,
    Numbers = numbers(Last + 100, []),
    ok = ?ATOLL:unsubscribe(far, Topic),
    {Ms, Last, lists:seq(Last + 1, Last + 100) -- Numbers}.

numbers(Upto, Got) ->
    receive
        {atoll_cli, N} when N >= Upto -> [N | Got];
        {atoll_cli, N} -> numbers(Upto, [N | Got])
    after ?DEADLINE_MS -> Got
    end.

%% @doc Waits until the status of the system with Atoll has this value.
-spec await_status(atom(), term()) -> ok.
await_status(Key, Value) ->
    await_status(Key, Value, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

await_status(Key, Value, Deadline) ->
    case {?ATOLL:status(far), erlang:monotonic_time(millisecond) > Deadline} of
        {#{Key := Value}, _} -> ok;
        {#{Key := Other}, true} -> error({Key, Other});
        _ -> receive after 20 -> await_status(Key, Value, Deadline) end
    end.
