%% SPDX-License-Identifier: Apache-2.0
%% @doc Writes the paper's files of a client node: a row of throughput for each window, and, if
%% wanted, a file of latencies for each, with its first 10,000 messages ({@link im_csv}).
%%
%% What is logged is bounded: a message that comes when the window has its rows is not sent to the
%% logger at all. It ends when the last window is over, and tells its parent the windows.
-module(im_logger).

-behaviour(gen_server).

-export([start_link/2, quota/1, latency/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([quota/0, options/0]).

-opaque quota() :: {pid(), atomics:atomics_ref()}.

-type options() :: #{
    dir := file:filename(),
    run := im_csv:run(),
    %% Whether latencies are written down.
    latency := boolean(),
    node := pos_integer()
}.

-record(state, {
    options :: options(),
    parent :: pid(),
    count :: im_traffic_count:count(),
    rows_left :: atomics:atomics_ref(),
    left :: non_neg_integer(),
    %% When the window is over: milliseconds of the monotonic clock.
    over_ms :: integer(),
    before :: im_traffic_count:look(),
    %% The latest first.
    windows = [] :: [im_csv:window()],
    throughput :: file:io_device(),
    latencies :: file:io_device() | none
}).

-define(ROWS, 10000).
%% What the files buffer, and for how long.
-define(DELAYED, {delayed_write, 65536, 1000}).

%% @doc Begins the first window. The parent gets `{im_logger, Pid, Windows}' after the last one.
-spec start_link(options(), im_traffic_count:count()) -> {ok, pid()} | {error, {file:filename(), file:posix() | badarg | system_limit}}.
start_link(Options, Count) -> gen_server:start_link(?MODULE, {Options, Count, self()}, []).

%% @doc What clients need to have a latency written down.
-spec quota(pid()) -> quota().
quota(Logger) -> gen_server:call(Logger, quota).

%% @doc A message was delivered; costs little when the window has its rows.
-spec latency({im_history_side:conversation(), pos_integer()}, {im_history_side:client(), im_history_side:client()}, Us :: non_neg_integer(), quota()) -> ok.
latency(Message, Clients, Us, {Logger, RowsLeft}) ->
    case atomics:get(RowsLeft, 1) > 0 andalso atomics:sub_get(RowsLeft, 1, 1) >= 0 of
        true -> gen_server:cast(Logger, {latency, Message, Clients, Us});
        false -> ok
    end.

%% @private
-spec init({options(), im_traffic_count:count(), pid()}) -> {ok, #state{}} | {stop, term()}.
init({#{dir := Dir, node := Node, run := #{trials := Trials} = Run} = Options, Count, Parent}) ->
    Name = filename:join(Dir, im_csv:name({throughput, Node}, Run)),
    case {filelib:ensure_dir(Name), file:open(Name, [write, raw, ?DELAYED])} of
        {ok, {ok, Throughput}} ->
            State = #state{
                options = Options, parent = Parent, count = Count, rows_left = atomics:new(1, [{signed, true}]),
                left = Trials, over_ms = erlang:monotonic_time(millisecond), before = im_traffic_count:look(Count), throughput = Throughput, latencies = none
            },
            window(State);
        {Made, Opened} ->
            [{error, Reason} | _] = [Error || {error, _} = Error <- [Made, Opened]],
            {stop, {Name, Reason}}
    end.

window(#state{options = #{run := #{seconds := Seconds}}, over_ms = Before} = State0) ->
    Over = Before + 1000 * Seconds,
    _ = erlang:send_after(Over, self(), over, [{abs, true}]),
    latencies(State0#state{over_ms = Over}).

latencies(#state{options = #{latency := false}} = State) ->
    {ok, State};
latencies(#state{options = #{dir := Dir, node := Node, run := #{trials := Trials} = Run}, left = Left, rows_left = RowsLeft} = State) ->
    Name = filename:join(Dir, im_csv:name({latency, Node, Trials - Left + 1}, Run)),
    case file:open(Name, [write, raw, ?DELAYED]) of
        {ok, File} ->
            ok = atomics:put(RowsLeft, 1, ?ROWS),
            {ok, State#state{latencies = File}};
        {error, Reason} ->
            {stop, {Name, Reason}}
    end.

%% @private
-spec handle_call(quota, gen_server:from(), #state{}) -> {reply, quota(), #state{}}.
handle_call(quota, _From, #state{rows_left = RowsLeft} = State) -> {reply, {self(), RowsLeft}, State}.

%% @private
-spec handle_cast({latency, term(), term(), non_neg_integer()}, #state{}) -> {noreply, #state{}}.
handle_cast({latency, _, _, _}, #state{latencies = none} = State) ->
    {noreply, State};
handle_cast({latency, Message, Clients, Us}, #state{latencies = File} = State) ->
    ok = file:write(File, im_csv:latency(Message, Clients, {calendar:local_time(), Us})),
    {noreply, State}.

%% @private
-spec handle_info(over, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info(over, #state{count = Count, before = Before, left = Left, windows = Windows, options = #{run := Run}, throughput = File, latencies = Latencies, rows_left = RowsLeft} = State0) ->
    ok = atomics:put(RowsLeft, 1, 0),
    Now = im_traffic_count:look(Count),
    Window = maps:from_list([{Key, maps:get(Key, Now) - maps:get(Key, Before)} || Key <- [sent, received, delivered, below]]),
    ok = file:write(File, im_csv:throughput(Left, Window, {calendar:local_time(), Run})),
    _ = [ok = file:close(Latencies) || Latencies =/= none],
    State = State0#state{before = Now, left = Left - 1, windows = [Window | Windows], latencies = none},
    case Left of
        1 -> last(State);
        _ ->
            case window(State) of
                {ok, Next} -> {noreply, Next};
                {stop, Reason} -> {stop, Reason, State}
            end
    end.

last(#state{parent = Parent, windows = Windows, throughput = File} = State) ->
    ok = file:close(File),
    Parent ! {?MODULE, self(), lists:reverse(Windows)},
    {stop, normal, State}.
