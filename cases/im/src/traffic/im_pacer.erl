%% SPDX-License-Identifier: Apache-2.0
%% @doc The open loop of a client node: tells clients to say something at a rate, whatever has become
%% of what they have said before. Which conversation it is, is drawn.
%%
%% The intended times are exact; a client hears of one in the millisecond in which it is, or later
%% where the node is busy, and counts from the intended time all the same. Evenly there is the same
%% time between all; by Poisson it is drawn from an exponential distribution.
-module(im_pacer).

-export([start_link/2, next/3]).

-export_type([options/0, slot/0]).

-type options() :: #{
    %% Messages in a second.
    rate := number(),
    arrivals := even | poisson,
    seed := term()
}.

-type slot() :: {pid(), im_history_side:client(), im_history_side:conversation()}.
%% Who says something to whom.

%% @doc A process that goes on until it is killed, or its parent is.
-spec start_link(options(), [slot(), ...]) -> pid().
start_link(#{seed := Seed} = Options, Slots) ->
    spawn_link(fun() ->
        Now = im_traffic_count:now_us(),
        Rand = rand:seed_s(exsss, erlang:phash2({pacer, Seed})),
        pace(Now, Options, list_to_tuple(Slots), Rand)
    end).

pace(At0, Options, Slots, Rand0) ->
    {At, Rand1} = next(At0, Options, Rand0),
    ok = wait(At),
    {I, Rand} = rand:uniform_s(tuple_size(Slots), Rand1),
    {Pid, Peer, Id} = element(I, Slots),
    Pid ! {im_doped, {speak, Peer, Id, round(At)}},
    pace(At, Options, Slots, Rand).

%% @doc When the next one is to be said, after the one of that time. Pure.
-spec next(number(), options(), rand:state()) -> {number(), rand:state()}.
next(At, #{rate := Rate, arrivals := even}, Rand) ->
    {At + 1000000 / Rate, Rand};
next(At, #{rate := Rate, arrivals := poisson}, Rand0) ->
    {X, Rand} = rand:uniform_real_s(Rand0),
    {At - math:log(X) * 1000000 / Rate, Rand}.

wait(At) ->
    case At - im_traffic_count:now_us() of
        Us when Us >= 1000 ->
            receive after trunc(Us) div 1000 -> wait(At) end;
        Us when Us > 0 ->
            %% The runtime's timers are for whole milliseconds.
            receive after 1 -> ok end;
        _ ->
            ok
    end.
