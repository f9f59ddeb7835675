%% @doc The process that writes to one lane: it waits where the socket is full, so that
%% nobody else has to.
%%
%% Batches are written in the order in which they come, and of each the controller is
%% told when the socket has taken it. How many wait here is bounded by the controller's
%% budget. A lane that fails is told to the input handler, which knows what it means; then
%% nothing more is written.
-module(atoll_dist_writer).

-export([start/3, write/4]).
-export([init/4]).

%% @doc Starts the writer of a lane for the calling controller.
-spec start(atoll_dist_lanes:lane(), gen_tcp:socket(), Input :: pid()) -> pid().
start(Lane, Socket, Input) ->
    case spawn_opt(?MODULE, init, [self(), Lane, Socket, Input], [link, {priority, max}]) of
        Pid when is_pid(Pid) -> Pid
    end.

%% @doc Has a batch written. The controller will get `{written, Lane, Bytes, Count}'.
-spec write(pid(), iodata(), non_neg_integer(), non_neg_integer()) -> ok.
write(Writer, Data, Bytes, Count) ->
    Writer ! {write, Data, Bytes, Count},
    ok.

%% @private
-spec init(pid(), atoll_dist_lanes:lane(), gen_tcp:socket(), pid()) -> no_return().
init(Controller, Lane, Socket, Input) ->
    receive
        {write, Data, Bytes, Count} ->
            case inet_tcp:send(Socket, Data, []) of
                ok ->
                    Controller ! {written, Lane, Bytes, Count},
                    init(Controller, Lane, Socket, Input);
                {error, Reason} ->
                    Input ! {lane_failed, Lane, Reason},
                    receive after infinity -> ok end
            end
    end.
