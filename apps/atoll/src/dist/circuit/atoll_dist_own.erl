%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc When a circuit gets a connection of its own, and when it goes back over other
%% nodes: what one end decides. Pure; {@link atoll_dist_end} does the deeds, {@link
%% atoll_dist_own_link} is the connection.
%%
%% A connection is made when the room above wants one at this end, and tried again, with
%% growing pauses, for as long as it does. While either end wants it, it stays, and the end
%% that opened the circuit has the circuit go over it. When neither does, it first counts
%% no more as a link, then the circuit goes over other nodes, if there is a way, and only
%% then the connection is closed; so nothing is lost, and where there is no way it stays.
%%
%% Both ends may connect at once. An end that does, lets the other in only if its own name
%% is the larger, and then gives its attempt up. So with both there is one connection in the
%% end, that of the smaller name; and where that one cannot connect, the other end's next
%% attempt finds it between two of its own.
%%
%% Promised: at most one connection at a time, and one attempt or caller that is let in.
%% The same connection is not left and taken without a pause. Not promised: that a
%% connection that was lost was of no use to others; they find another way or hear of it.
-module(atoll_dist_own).

-export([new/1, handle/2, is_up/1, is_used/1]).

-export_type([config/0, event/0, act/0, own/0]).

-type config() :: #{
    %% This node and the other end.
    here := atoll_dist_circuit_frame:name(),
    there := atoll_dist_circuit_frame:name(),
    role := opener | acceptor
}.

-type event() ::
    %% Whether one is wanted here; over that connection, there.
    {wants, boolean()}
    | {theirs, boolean()}
    %% The other end has connected, and waits to be let in.
    | knock
    %% The attempt, or who was let in, came to that; the connection was lost.
    | up
    | failed
    | lost
    %% The circuit goes over it now; or over other nodes.
    | {moved, own | others}
    %% It does not.
    | not_moved
    | timeout.

-type act() ::
    connect
    %% The attempt is given up.
    | stop
    | {answer, come_in | refused}
    %% The other end is to know.
    | {tell, boolean()}
    %% Whether it counts as a link; at first it does.
    | {counts, boolean()}
    %% The circuit is to go over it; over others.
    | better
    | back
    | close
    | {timer, Ms :: pos_integer()}
    | cancel.

-record(own, {
    config :: config(),
    phase = none :: none | connecting | letting_in | up,
    wants = false :: boolean(),
    theirs = false :: boolean(),
    %% It is up, and the circuit goes over it; it counts as a link.
    used = false :: boolean(),
    counts = true :: boolean(),
    pause = 0 :: non_neg_integer()
}).

-opaque own() :: #own{}.

-define(PAUSE_MIN_MS, 250).
-define(PAUSE_MAX_MS, 30000).
%% How long a move may take, and what is between two attempts at one.
-define(MOVE_MS, 2000).
%% One that was in use for so long is no reason to wait longer than for the first.
-define(STEADY_MS, 10000).

%% @doc Of a circuit that stands, over other nodes.
-spec new(config()) -> own().
new(Config) -> #own{config = Config}.

%% @doc Whether there is such a connection, and the circuit may go over it.
-spec is_up(own()) -> boolean().
is_up(#own{phase = Phase, counts = Counts}) -> Phase =:= up andalso Counts.

%% @doc Whether the circuit goes over it.
-spec is_used(own()) -> boolean().
is_used(#own{used = Used}) -> Used.

%% @doc Takes one event.
-spec handle(event(), own()) -> {[act()], own()}.
handle({wants, Wants}, #own{wants = Wants} = Own) ->
    {[], Own};
handle({wants, true}, #own{phase = none} = Own) ->
    %% Who says it anew may know that it can be had now.
    {[cancel, connect], Own#own{wants = true, phase = connecting, pause = 0}};
handle({wants, false}, #own{phase = none} = Own) ->
    {[cancel], Own#own{wants = false}};
handle({wants, false}, #own{phase = connecting} = Own) ->
    {[stop], Own#own{wants = false, phase = none}};
handle({wants, Wants}, #own{phase = letting_in} = Own) ->
    {[], Own#own{wants = Wants}};
handle({wants, Wants}, #own{phase = up} = Own) ->
    {Acts, Settled} = settle(Own#own{wants = Wants}),
    {[{tell, Wants} | Acts], Settled};
handle({theirs, Wants}, #own{phase = up} = Own) ->
    settle(Own#own{theirs = Wants});
handle({theirs, _Wants}, Own) ->
    {[], Own};
handle(knock, #own{phase = none} = Own) ->
    {[cancel, {answer, come_in}], Own#own{phase = letting_in}};
handle(knock, #own{phase = connecting, config = #{here := Here, there := There}} = Own) when Here > There ->
    {[stop, {answer, come_in}], Own#own{phase = letting_in}};
handle(knock, Own) ->
    {[{answer, refused}], Own};
handle(up, #own{phase = Phase, wants = Wants} = Own) when Phase =:= connecting; Phase =:= letting_in ->
    %% Who connects wants it; until it says otherwise, which is the next that it says.
    {Acts, Settled} = settle(Own#own{phase = up, theirs = Phase =:= letting_in, counts = true}),
    {[{tell, Wants} | Acts], Settled};
handle(up, Own) ->
    %% An attempt that was given up a moment too late.
    {[], Own};
handle(failed, #own{phase = connecting} = Own) ->
    pause(Own);
handle(failed, #own{phase = letting_in, pause = Last} = Own) ->
    %% That was no attempt of this end's.
    pause(Own#own{pause = Last div 2});
handle(failed, Own) ->
    {[], Own};
handle(lost, #own{phase = up} = Own) ->
    pause(Own#own{used = false, counts = true});
handle(lost, Own) ->
    {[], Own};
handle({moved, own}, #own{phase = up} = Own) ->
    {Acts, Settled} = settle(Own#own{used = true}),
    {[{timer, ?STEADY_MS} | Acts], Settled};
handle({moved, others}, #own{phase = up, used = true} = Own) ->
    %% Nobody wanted it; or it was found to be silent.
    {[cancel, close], Own#own{used = false}};
handle({moved, _}, Own) ->
    {[], Own};
handle(not_moved, #own{phase = up, used = false, wants = Wants, theirs = Theirs} = Own) when Wants; Theirs ->
    %% It is of no use.
    {[cancel, close], Own};
handle(not_moved, Own) ->
    {[], Own};
handle(timeout, #own{phase = none, wants = true} = Own) ->
    {[connect], Own#own{phase = connecting}};
handle(timeout, #own{phase = up, used = true, counts = true} = Own) ->
    {[], Own#own{pause = 0}};
handle(timeout, #own{phase = up} = Own) ->
    move(Own);
handle(timeout, Own) ->
    {[], Own}.

pause(#own{wants = false} = Own) ->
    {[cancel], Own#own{phase = none}};
pause(#own{wants = true, pause = Last} = Own) ->
    Ms = max(?PAUSE_MIN_MS, min(?PAUSE_MAX_MS, 2 * Last)),
    {[{timer, Ms}], Own#own{phase = none, pause = Ms}}.

%% It is up: does anybody want it?
settle(#own{wants = Wants, theirs = Theirs, counts = Counts} = Own) when (Wants orelse Theirs) =:= Counts ->
    move(Own);
settle(#own{counts = Counts} = Own) ->
    {Acts, Moving} = move(Own#own{counts = not Counts}),
    {[{counts, not Counts} | Acts], Moving}.

%% The opener has the circuit where it belongs, and looks again later.
move(#own{config = #{role := opener}, counts = true, used = false} = Own) -> {[better, {timer, ?MOVE_MS}], Own};
move(#own{config = #{role := opener}, counts = false, used = true} = Own) -> {[back, {timer, ?MOVE_MS}], Own};
move(#own{counts = false, used = false} = Own) -> {[close], Own};
move(Own) -> {[], Own}.
