%% SPDX-License-Identifier: Apache-2.0
%% Publishers that know which of their messages were confirmed, and consumers that say which
%% they have got and in which order. The client is RabbitMQ's own, which stands among its
%% plugins, so its records are written here as the tuples that they are.
%%
%% A broker is said by the port that it listens on, on the loopback of a network (`netns').
-module(atoll_cli_amqp).

-export([declared/3, is_known/2, publisher/4, more/2, finished/1, taken/3]).

-export_type([broker/0, publisher/0, options/0, came/0]).

-type broker() :: #{netns := file:filename(), amqp := inet:port_number(), _ => _}.

-type options() :: #{
    count := pos_integer() | infinity,
    %% How many are on their way at a time at most.
    window := pos_integer(),
    %% One in so many milliseconds, and not one after the other.
    every_ms => pos_integer()
}.

%% The numbers of the messages, from 1 on. One that was given back, as nobody took it, is
%% confirmed by the broker all the same, and counts as returned here.
-type came() :: #{sent := non_neg_integer(), confirmed := [pos_integer()], refused := [pos_integer()], returned := [pos_integer()]}.

-opaque publisher() :: pid().

-record(publisher, {
    publish :: fun((pos_integer()) -> ok),
    last :: pos_integer() | infinity,
    window :: pos_integer(),
    every_ms :: non_neg_integer(),
    %% When the next one may go, and its number.
    at :: integer(),
    next = 1 :: pos_integer(),
    out = #{} :: #{pos_integer() => []},
    confirmed = #{} :: #{pos_integer() => []},
    refused = #{} :: #{pos_integer() => []},
    returned = #{} :: #{pos_integer() => []},
    %% Who waits until so many are confirmed, and who until it has finished.
    waiting = [] :: [{non_neg_integer(), pid()}]
}).

-define(MS, 180000).
-define(AHEAD, 100).

%% @doc A queue that outlives its broker's restart, led by that one.
-spec declared(Queue :: binary(), Type :: binary(), broker()) -> ok.
declared(Queue, Type, Broker) ->
    {Connection, Channel} = channel(Broker),
    Arguments = [{<<"x-queue-type">>, longstr, Type}],
    Declare = {'queue.declare', 0, Queue, false, true, false, false, false, Arguments},
    {'queue.declare_ok', Queue, 0, _} = amqp_channel:call(Channel, Declare),
    amqp_connection:close(Connection).

%% @doc Whether that broker knows the queue.
-spec is_known(Queue :: binary(), broker()) -> boolean().
is_known(Queue, Broker) ->
    {Connection, Channel} = channel(Broker),
    Passive = {'queue.declare', 0, Queue, true, false, false, false, false, []},
    try amqp_channel:call(Channel, Passive) of
        {'queue.declare_ok', Queue, _, _} -> true
    catch
        %% A channel that asks for what is not there is closed.
        exit:{{shutdown, {server_initiated_close, 404, _}}, _} -> false
    after
        ok = amqp_connection:close(Connection)
    end.

channel(#{netns := Netns, amqp := Port}) ->
    {ok, Params} = amqp_uri:parse("amqp://guest:guest@127.0.0.1:" ++ integer_to_list(Port)),
    %% The last of its fields are options of the socket.
    {ok, Connection} = amqp_connection:start(setelement(tuple_size(Params), Params, [{netns, Netns}])),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    {Connection, Channel}.

%% @doc Publishes numbered messages of that size, over that broker.
-spec publisher(Queue :: binary(), Bytes :: pos_integer(), options(), broker()) -> publisher().
publisher(Queue, Bytes, Options, Broker) ->
    spawn_link(fun() -> publish(Queue, Bytes, Options, Broker) end).

%% @doc Waits until so many more of its messages are confirmed than now.
-spec more(publisher(), non_neg_integer()) -> ok.
more(Publisher, Count) ->
    Publisher ! {more, Count, self()},
    receive
        {Publisher, reached} -> ok
    after ?MS -> error(not_confirmed)
    end.

%% @doc Ends one that would go on for ever, waits for its last confirmation, and says what came of all.
-spec finished(publisher()) -> came().
finished(Publisher) ->
    Publisher ! {finish, self()},
    receive
        {Publisher, Came} -> Came
    after ?MS -> error(not_finished)
    end.

publish(Queue, Bytes, #{count := Count, window := Window} = Options, Broker) ->
    {Connection, Channel} = channel(Broker),
    {'confirm.select_ok'} = amqp_channel:call(Channel, {'confirm.select', false}),
    ok = amqp_channel:register_confirm_handler(Channel, self()),
    ok = amqp_channel:register_return_handler(Channel, self()),
    Persistent = setelement(5, erlang:make_tuple(15, undefined, [{1, 'P_basic'}]), 2),
    Publish = fun(I) ->
        Payload = <<I:64, 0:((Bytes - 8) * 8)>>,
        %% Whoever is wanted there and is not is told of.
        amqp_channel:cast(Channel, {'basic.publish', 0, <<>>, Queue, true, false}, {amqp_msg, Persistent, Payload})
    end,
    #publisher{next = Next, confirmed = Confirmed, refused = Refused, returned = Returned, waiting = Waiting} = publishing(#publisher{
        publish = Publish, last = Count, window = Window, every_ms = maps:get(every_ms, Options, 0), at = now_ms()
    }),
    ok = amqp_connection:close(Connection),
    Came = #{sent => Next - 1, confirmed => numbers(Confirmed), refused => numbers(Refused), returned => numbers(Returned)},
    [From ! {self(), reached} || {_, From} <- Waiting],
    receive
        {finish, From} -> From ! {self(), Came}
    end.

numbers(Map) -> lists:sort(maps:keys(Map)).

publishing(#publisher{next = Next, last = Last, out = Out} = Publisher) when Next > Last, map_size(Out) =:= 0 ->
    Publisher;
publishing(#publisher{next = Next, last = Last, out = Out, window = Window, at = At} = Publisher) ->
    MayGo = Next =< Last andalso map_size(Out) < Window,
    receive
        {'basic.ack', Tag, Multiple} -> publishing(reached(confirmed(tags(Tag, Multiple, Out), Publisher)));
        {'basic.nack', Tag, Multiple, _Requeue} -> publishing(refused(tags(Tag, Multiple, Out), Publisher));
        {{'basic.return', _, _, _, _}, {amqp_msg, _, <<I:64, _/binary>>}} -> publishing(returned(I, Publisher));
        {more, Count, From} -> publishing(awaited(Count, From, Publisher));
        {finish, _} = Finish when Last =:= infinity ->
            self() ! Finish,
            publishing(Publisher#publisher{last = Next - 1})
    after case MayGo of true -> max(0, At - now_ms()); false -> ?MS end ->
        MayGo orelse error({never_confirmed, maps:keys(Out)}),
        publishing(sent(Publisher))
    end.

%% A channel numbers what it confirms as it was sent.
tags(Tag, false, _Out) -> [Tag];
tags(Tag, true, Out) -> [T || T <- maps:keys(Out), T =< Tag].

sent(#publisher{publish = Publish, next = Next, out = Out, every_ms = EveryMs, at = At} = Publisher) ->
    ok = Publish(Next),
    Publisher#publisher{next = Next + 1, out = Out#{Next => []}, at = max(At + EveryMs, now_ms() - EveryMs)}.

confirmed(Tags, #publisher{out = Out, confirmed = Confirmed, returned = Returned} = Publisher) ->
    Publisher#publisher{
        out = maps:without(Tags, Out), confirmed = maps:merge(Confirmed, maps:without(maps:keys(Returned), maps:from_keys(Tags, [])))
    }.

refused(Tags, #publisher{out = Out, refused = Refused} = Publisher) ->
    Publisher#publisher{out = maps:without(Tags, Out), refused = maps:merge(Refused, maps:from_keys(Tags, []))}.

%% Before it is confirmed.
returned(I, #publisher{returned = Returned} = Publisher) -> Publisher#publisher{returned = Returned#{I => []}}.

awaited(Count, From, #publisher{confirmed = Confirmed, waiting = Waiting} = Publisher) ->
    reached(Publisher#publisher{waiting = [{map_size(Confirmed) + Count, From} | Waiting]}).

reached(#publisher{waiting = []} = Publisher) ->
    Publisher;
reached(#publisher{confirmed = Confirmed, waiting = Waiting} = Publisher) ->
    {Reached, Left} = lists:partition(fun({At, _}) -> map_size(Confirmed) >= At end, Waiting),
    [From ! {self(), reached} || {_, From} <- Reached],
    Publisher#publisher{waiting = Left}.

now_ms() -> erlang:monotonic_time(millisecond).

%% @doc The numbers of the messages of a queue as they come to a consumer at that broker, each
%% where it came first, until all of these have come.
-spec taken(Queue :: binary(), [pos_integer()], broker()) -> [pos_integer()].
taken(Queue, Awaited, Broker) ->
    {Connection, Channel} = channel(Broker),
    {'basic.qos_ok'} = amqp_channel:call(Channel, {'basic.qos', 0, ?AHEAD, false}),
    Consume = {'basic.consume', 0, Queue, <<>>, false, false, false, false, []},
    {'basic.consume_ok', _} = amqp_channel:subscribe(Channel, Consume, self()),
    Taken = take(Channel, maps:from_keys(Awaited, []), #{}, []),
    ok = amqp_connection:close(Connection),
    lists:reverse(Taken).

take(_Channel, Awaited, _Seen, Taken) when map_size(Awaited) =:= 0 ->
    Taken;
take(Channel, Awaited, Seen, Taken) ->
    receive
        {{'basic.deliver', _, Tag, _, _, _}, {amqp_msg, _, <<I:64, _/binary>>}} ->
            ok = amqp_channel:cast(Channel, {'basic.ack', Tag, false}),
            case Seen of
                #{I := _} -> take(Channel, Awaited, Seen, Taken);
                #{} -> take(Channel, maps:remove(I, Awaited), Seen#{I => []}, [I | Taken])
            end;
        {'basic.consume_ok', _} ->
            take(Channel, Awaited, Seen, Taken)
    after ?MS -> error({not_there, lists:sort(maps:keys(Awaited))})
    end.
