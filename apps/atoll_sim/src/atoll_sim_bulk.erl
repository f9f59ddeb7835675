%% SPDX-License-Identifier: Apache-2.0
%% @doc One way of a link over which a program sends bulk: when its queue has room for a small
%% message, and how long that waits behind what is in the queue. Pure data.
%%
%% As in the runtime a queue has a bound, and whoever finds so many bytes in it or more has to
%% wait; a message larger than that is taken whole when there are fewer. So does the program,
%% which sends message after message, each as large as those with which the carrier was
%% measured or, where it sends little, a tenth of a second's worth. When the queue has room
%% again it goes on within some milliseconds, and in these others come in.
-module(atoll_sim_bulk).

-export([new/5, offer/3, sent/4]).

-export_type([bulk/0, rate/0]).

-type rate() :: pos_integer() | full.
%% Bytes a second, or as many as the link takes.

-record(bulk, {
    %% Bytes in a millisecond that the link carries, and that its queue takes.
    rate :: float(),
    queue :: pos_integer(),
    %% A message of the program, and how long after one it has the next.
    bytes :: pos_integer(),
    every :: number(),
    %% How many bytes there were then, in milliseconds, and when the next message is put in.
    at :: number(),
    backlog = 0 :: number(),
    next :: number()
}).

-opaque bulk() :: #bulk{}.

-define(BYTES, 8000000).
-define(PER_S, 10).
%% Until a program that waits goes on, at most.
-define(RESUME_MS, 10).
%% What was not looked at for longer is forgotten.
-define(LOOKED_MS, 10000).

%% @doc A link of so many bytes a second and a queue of so many, over which a program begins to
%% send.
-spec new(rate(), Rate :: pos_integer(), Queue :: pos_integer(), Now :: integer(), rand:state()) ->
    {bulk(), rand:state()}.
new(Offered, Rate, Queue, Now, Rand0) ->
    {Bytes, Every} =
        case Offered of
            full ->
                {?BYTES, 0};
            _ ->
                Size = max(1, min(?BYTES, Offered div ?PER_S)),
                {Size, Size * 1000 / Offered}
        end,
    %% Programs that begin together do not go on together.
    {X, Rand} = rand:uniform_s(Rand0),
    First = Now + X * max(Every, Bytes * 1000 / Rate),
    {#bulk{rate = Rate / 1000, queue = Queue, bytes = Bytes, every = Every, at = Now, next = First}, Rand}.

%% @doc Whether a small message is taken now, and how long it then waits.
-spec offer(Now :: integer(), bulk(), rand:state()) ->
    {full | {wait, Ms :: non_neg_integer()}, bulk(), rand:state()}.
offer(Now, Bulk0, Rand0) ->
    {#bulk{rate = Rate, queue = Queue} = Bulk, Rand} = advance(Now, Bulk0, Rand0),
    case backlog(Now, Bulk) of
        Bytes when Bytes >= Queue -> {full, Bulk, Rand};
        Bytes -> {{wait, round(Bytes / Rate)}, Bulk, Rand}
    end.

%% @doc Whether some of its bytes were sent between these times.
-spec sent(Since :: integer(), Now :: integer(), bulk(), rand:state()) -> {boolean(), bulk(), rand:state()}.
sent(Since, Now, Bulk0, Rand0) ->
    {#bulk{rate = Rate, at = At, backlog = Backlog} = Bulk, Rand} = advance(Now, Bulk0, Rand0),
    {Backlog > 0 andalso At + Backlog / Rate > Since, Bulk, Rand}.

backlog(Now, #bulk{rate = Rate, at = At, backlog = Backlog}) ->
    max(0, Backlog - Rate * (Now - At)).

advance(Now, #bulk{next = Next} = Bulk, Rand) when Next < Now - ?LOOKED_MS ->
    advance(Now, Bulk#bulk{at = Now - ?LOOKED_MS, backlog = 0, next = Now - ?LOOKED_MS}, Rand);
advance(Now, #bulk{next = Next} = Bulk, Rand) when Next > Now ->
    {Bulk, Rand};
advance(Now, #bulk{next = Next, rate = Rate, queue = Queue, bytes = Bytes, every = Every} = Bulk, Rand0) ->
    Backlog = backlog(Next, Bulk) + Bytes,
    Free = Next + max(0, Backlog - Queue) / Rate,
    {Then, Rand} =
        case Next + Every of
            Own when Own > Free ->
                {Own, Rand0};
            _ ->
                {X, R} = rand:uniform_s(Rand0),
                {Free + X * ?RESUME_MS, R}
        end,
    advance(Now, Bulk#bulk{at = Next, backlog = Backlog, next = Then}, Rand).
