%% SPDX-License-Identifier: Apache-2.0
%% @doc Sends what is known of a cluster to a Graphite server over TCP, once in a period ({@link atoll_watch_graphite}).
%%
%% Promised: while the server is away lines wait, up to a bound, and the rest is counted as dropped; it is tried again after one second,
%% then two, up to a minute. A server that takes nothing for five seconds is as one that is away. Nobody waits for this process.
%%
%% Not promised: that what was sent has arrived. The protocol has no answer: lines that were under way when the connection was lost are lost,
%% or, where the loss is seen at once, come twice, which changes nothing in Graphite.
-module(atoll_watch_graphite_link).

-behaviour(gen_server).

-export([start_link/1, address/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0]).

-type options() :: #{
    to := {inet:ip_address() | string(), inet:port_number()},
    period := pos_integer(),
    look => fun(() -> [atoll_watch_core:seen()]),
    count => fun((graphite_sent | graphite_dropped, non_neg_integer()) -> term()),
    tell => fun((info | minor, unicode:chardata()) -> term()),
    most => pos_integer()
}.

-record(state, {
    options :: options(),
    socket = none :: gen_tcp:socket() | none,
    waiting :: atoll_watch_graphite:waiting(),
    %% Before the next try; none while it is reached.
    wait = none :: pos_integer() | none,
    %% Whether people were told that it is away.
    is_away = false :: boolean()
}).

-define(MOST, 16777216).
-define(PATIENCE_MS, 5000).

%% @doc Begins. Whether the server is there is seen later.
-spec start_link(options()) -> {ok, pid()}.
start_link(Options) ->
    {ok, _} = gen_server:start_link(?MODULE, maps:merge(#{
        look => fun() -> atoll_watch:nodes(atoll_watch_store:watch()) end,
        count => fun atoll_watch_store:added/2,
        tell => fun atoll_watch_store:told/2,
        most => ?MOST
    }, Options), []).

%% @doc Reads HOST:PORT, as a user types it; an address of IPv6 stands in brackets.
-spec address(string()) -> {ok, {inet:ip_address() | string(), inet:port_number()}} | {error, string()}.
address(Text) ->
    Wrong = {error, "must be a host and a port, as in 10.0.0.7:2003 or [::1]:2003"},
    case string:split(Text, ":", trailing) of
        [[_ | _] = Host, Digits] ->
            try list_to_integer(Digits) of
                Port when Port >= 1, Port =< 65535 -> host(Host, Port, Wrong);
                _ -> Wrong
            catch
                error:badarg -> Wrong
            end;
        _ ->
            Wrong
    end.

host([$[ | _] = Host, Port, Wrong) ->
    case {lists:last(Host), inet:parse_ipv6strict_address(string:trim(Host, both, "[]"))} of
        {$], {ok, Address}} -> {ok, {Address, Port}};
        _ -> Wrong
    end;
host(Host, Port, Wrong) ->
    case {inet:parse_ipv4strict_address(Host), lists:any(fun(C) -> C =< $\s orelse C =:= $: orelse C =:= $/ end, Host)} of
        {{ok, Address}, _} -> {ok, {Address, Port}};
        {_, false} -> {ok, {Host, Port}};
        {_, true} -> Wrong
    end.

%% @private
-spec init(options()) -> {ok, #state{}}.
init(#{most := Most} = Options) ->
    self() ! tick,
    {ok, #state{options = Options, waiting = atoll_watch_graphite:new(Most)}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info(tick | again | {tcp | tcp_error, gen_tcp:socket(), term()} | {tcp_closed, gen_tcp:socket()}, #state{}) -> {noreply, #state{}}.
handle_info(tick, #state{options = #{period := Period, look := Look, count := Count}, waiting = Waiting0} = State) ->
    _ = erlang:send_after(Period, self(), tick),
    Metrics = [Metric || Metric <- atoll_watch_metric:all(), atoll_watch_metric:is_stored(Metric)],
    {Dropped, Waiting} = atoll_watch_graphite:add(atoll_watch_graphite:lines(Metrics, Look(), erlang:system_time(second)), Waiting0),
    _ = Count(graphite_dropped, Dropped),
    {noreply, unless_away(State#state{waiting = Waiting})};
handle_info(again, State) ->
    {noreply, flushed(State)};
handle_info({tcp_closed, Socket}, #state{socket = Socket} = State) ->
    {noreply, away(closed, State)};
handle_info({tcp_error, Socket, Reason}, #state{socket = Socket} = State) ->
    {noreply, away(Reason, State)};
%% It has nothing to say.
handle_info({tcp, Socket, _}, #state{socket = Socket} = State) ->
    ok = next(Socket),
    {noreply, State};
%% Of a connection that is given up.
handle_info({Tcp, _}, State) when Tcp =:= tcp_closed ->
    {noreply, State};
handle_info({Tcp, _, _}, State) when Tcp =:= tcp; Tcp =:= tcp_error ->
    {noreply, State}.

%% It is closed meanwhile, and tells that.
next(Socket) ->
    _ = inet:setopts(Socket, [{active, once}]),
    ok.

unless_away(#state{wait = none} = State) -> flushed(State);
unless_away(State) -> State.

flushed(#state{socket = none, options = #{to := {Host, Port}}} = State) ->
    case gen_tcp:connect(Host, Port, [binary, {active, once}, {send_timeout, ?PATIENCE_MS}, {send_timeout_close, true} | family(Host)], ?PATIENCE_MS) of
        {ok, Socket} -> flushed(State#state{socket = Socket});
        {error, Reason} -> away(Reason, State)
    end;
flushed(#state{socket = Socket, waiting = Waiting, options = #{count := Count}} = State) ->
    case atoll_watch_graphite:next(Waiting) of
        {ok, {Lines, Text}} ->
            case gen_tcp:send(Socket, Text) of
                ok ->
                    _ = Count(graphite_sent, Lines),
                    flushed(there(State#state{waiting = atoll_watch_graphite:sent(Waiting)}));
                {error, Reason} ->
                    away(Reason, State)
            end;
        none ->
            State
    end.

family(Host) when tuple_size(Host) =:= 8 -> [inet6];
family(_) -> [].

there(#state{is_away = true, options = #{tell := Tell}} = State) ->
    _ = Tell(info, [to(State), " is reached again"]),
    there(State#state{is_away = false});
there(State) ->
    State#state{wait = none}.

away(Reason, #state{socket = Socket, wait = Before, is_away = IsAway, options = #{tell := Tell}} = State) ->
    _ = [gen_tcp:close(Socket) || Socket =/= none],
    Wait = atoll_watch_graphite:wait(Before),
    _ = erlang:send_after(Wait, self(), again),
    _ = [Tell(minor, [to(State), " is not reached: ", reason(Reason), "; what is for it waits"]) || not IsAway],
    State#state{socket = none, wait = Wait, is_away = true}.

to(#state{options = #{to := {Host, Port}}}) ->
    ["Graphite at ", case Host of _ when tuple_size(Host) =:= 8 -> [$[, inet:ntoa(Host), $]]; _ when is_tuple(Host) -> inet:ntoa(Host); _ -> Host end, $:, integer_to_list(Port)].

reason(closed) -> "it has closed the connection";
reason(timeout) -> "it takes nothing";
reason(Reason) -> inet:format_error(Reason).
