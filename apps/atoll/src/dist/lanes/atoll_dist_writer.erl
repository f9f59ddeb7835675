%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process that writes to one lane: it waits where the socket is full, so that
%% nobody else has to.
%%
%% A lane of a channel that is compressed is so here, since that takes time.
%%
%% Batches are written in the order in which they come, and of each the controller is
%% told when the socket has taken it. How many wait here is bounded by the controller's
%% budget. A lane that fails is told to the input handler, which knows what it means; then
%% nothing more is written. Where faults can be injected another loop runs, so that they
%% cost nothing where they cannot.
-module(atoll_dist_writer).

-export([start/4, write/5, smaller/2, say/2, black_hole/1, heal/1]).
-export([init/4, faulty/4]).

%% @doc Starts the writer of a lane for the calling controller, with faults or without.
-spec start(atoll_dist_lanes:lane(), atoll_dist_transport:socket(), Input :: pid(), Faults :: boolean()) -> pid().
start(Lane, Socket, Input, Faults) ->
    Function = case Faults of true -> faulty; false -> init end,
    case atoll_dist_process:start(?MODULE, Function, [self(), Lane, Socket, Input], [link]) of
        Pid when is_pid(Pid) -> Pid
    end.

%% @doc Has a batch written, with faults not before so many milliseconds. The controller
%% will get `{written, Lane, Bytes, Count}'.
-spec write(pid(), iodata(), non_neg_integer(), non_neg_integer(), DelayMs :: non_neg_integer()) -> ok.
write(Writer, Data, Bytes, Count, 0) ->
    Writer ! {write, Data, Bytes, Count},
    ok;
write(Writer, Data, Bytes, Count, DelayMs) ->
    Writer ! {write, Data, Bytes, Count, erlang:monotonic_time(millisecond) + DelayMs},
    ok.

%% @doc From now on what is written is compressed so much where it pays.
-spec smaller(pid(), 1..9) -> ok.
smaller(Writer, Level) ->
    Writer ! {smaller, Level},
    ok.

%% @doc Has a frame of the lane itself written, such as a sign of life; nobody is told.
-spec say(pid(), binary()) -> ok.
say(Writer, Frame) ->
    Writer ! {say, Frame},
    ok.

%% @doc From now on nothing is written, until {@link heal/1}.
-spec black_hole(pid()) -> ok.
black_hole(Writer) ->
    Writer ! black_hole,
    ok.

%% @doc What was held back is written.
-spec heal(pid()) -> ok.
heal(Writer) ->
    Writer ! heal,
    ok.

%% The key in the process dictionary under which the compression of this lane is.
-define(DEFLATE, atoll_dist_deflate).

%% @private
-spec init(pid(), atoll_dist_lanes:lane(), atoll_dist_transport:socket(), pid()) -> no_return().
init(Controller, Lane, Socket, Input) ->
    receive
        {write, Data, Bytes, Count} ->
            ok = send(Data, Bytes, Count, Controller, Lane, Socket, Input),
            ?MODULE:init(Controller, Lane, Socket, Input);
        {smaller, Level} ->
            _ = put(?DEFLATE, atoll_dist_deflate:new(Level)),
            ?MODULE:init(Controller, Lane, Socket, Input);
        {say, Frame} ->
            %% If that fails the socket has ended and says so.
            _ = atoll_dist_transport:send(Socket, Frame),
            ?MODULE:init(Controller, Lane, Socket, Input)
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, init, [Controller, Lane, Socket, Input])
    end.

send(Data, Bytes, Count, Controller, Lane, Socket, Input) ->
    case atoll_dist_transport:send(Socket, frame(Data, get(?DEFLATE))) of
        ok ->
            Controller ! {written, Lane, Bytes, Count},
            ok;
        {error, Reason} ->
            Input ! {lane_failed, Lane, Reason},
            receive after infinity -> ok end
    end.

frame(Data, undefined) ->
    Data;
frame(Data, Deflate0) ->
    {Made, Deflate} = atoll_dist_deflate:batch(Data, Deflate0),
    _ = put(?DEFLATE, Deflate),
    case Made of
        {Size, Small} -> atoll_dist_frame:deflated(Size, Small);
        as_it_is -> Data
    end.

%% @private
-spec faulty(pid(), atoll_dist_lanes:lane(), atoll_dist_transport:socket(), pid()) -> no_return().
faulty(Controller, Lane, Socket, Input) ->
    ok = held(),
    receive
        {write, Data, Bytes, Count} ->
            ok = send(Data, Bytes, Count, Controller, Lane, Socket, Input);
        {write, Data, Bytes, Count, At} ->
            Left = max(0, At - erlang:monotonic_time(millisecond)),
            receive after Left -> ok end,
            ok = held(),
            ok = send(Data, Bytes, Count, Controller, Lane, Socket, Input);
        {smaller, Level} ->
            _ = put(?DEFLATE, atoll_dist_deflate:new(Level)),
            ok;
        {say, Frame} ->
            _ = atoll_dist_transport:send(Socket, Frame),
            ok;
        black_hole ->
            self() ! black_hole,
            ok;
        heal ->
            ok
    end,
    ?MODULE:faulty(Controller, Lane, Socket, Input).

%% Whatever waits to be written. What was said last counts.
held() ->
    receive
        heal -> held();
        black_hole -> hold()
    after 0 -> ok
    end.

hold() ->
    receive
        heal -> held();
        black_hole -> hold()
    end.
