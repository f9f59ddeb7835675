%% SPDX-License-Identifier: Apache-2.0
%% @doc The open loop of a client node: tells clients to say something at a rate, whatever has become
%% of what they have said before. Which conversation it is, is drawn.
%%
%% Evenly there is the same time between all; by Poisson it is drawn from an exponential
%% distribution. Intended times are whole milliseconds at or after that, as the runtime's timers are.
%% Where the node is busy a client hears of one later, and counts from the intended time all the same.
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
    Ms = ceil(At / 1000),
    ok = wait(Ms),
    {I, Rand} = rand:uniform_s(tuple_size(Slots), Rand1),
    {Pid, Peer, Id} = element(I, Slots),
    Pid ! {im_doped, {speak, Peer, Id, 1000 * Ms}},
    pace(At, Options, Slots, Rand).

%% @doc When the next one is to be said, after the one of that time. Pure.
-spec next(number(), options(), rand:state()) -> {number(), rand:state()}.
next(At, #{rate := Rate, arrivals := even}, Rand) ->
    {At + 1000000 / Rate, Rand};
next(At, #{rate := Rate, arrivals := poisson}, Rand0) ->
    {X, Rand} = rand:uniform_real_s(Rand0),
    {At - math:log(X) * 1000000 / Rate, Rand}.

wait(Ms) ->
    case 1000 * Ms > im_traffic_count:now_us() of
        true ->
            Timer = erlang:start_timer(Ms, self(), over, [{abs, true}]),
            receive
                {timeout, Timer, over} -> ok
            end;
        false ->
            ok
    end.
