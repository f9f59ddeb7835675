%% SPDX-License-Identifier: Apache-2.0
%% @doc A process that has a node broadcast: so many numbers, one each so long. It is
%% a node's own broadcast that its witness makes, {@link atoll_chaos_witness}.
%%
%% Of each that the node has sent its starter gets `{sent, Node, Us, Number}'; no
%% number is used twice. It ends with the starter, or with the reason `{atoll_chaos_sender,
%% Result}'. A node that is dead at the time of one does not send that one, and that is
%% no failure unless none was sent.
-module(atoll_chaos_sender).

-export([start/4]).

%% It ends with exit/1 by design.
-dialyzer({nowarn_function, start/4}).

-define(CALL_MS, 5000).

%% @doc Starts one, and monitors it.
-spec start(atoll_chaos_backend:backend(), node(), Count :: pos_integer(), Every :: non_neg_integer()) ->
    {pid(), reference()}.
start(Backend, Node, Count, Every) ->
    Starter = self(),
    Begun = erlang:monotonic_time(millisecond),
    spawn_monitor(fun() ->
        Ref = monitor(process, Starter),
        Sent = [send(Backend, Node, Starter) || N <- lists:seq(0, Count - 1), wait(Begun + N * Every, Ref)],
        exit({?MODULE, result(Sent)})
    end).

send({Module, B}, Node, Starter) ->
    Number = erlang:unique_integer([positive]),
    case Module:call(B, Node, {atoll_chaos_witness, broadcast, [Number]}, ?CALL_MS) of
        {ok, {ok, Us}} ->
            Starter ! {sent, Node, Us, Number},
            ok;
        {ok, {error, _} = Error} ->
            Error;
        {error, _} = Error ->
            Error
    end.

wait(Until, Ref) ->
    receive
        {'DOWN', Ref, process, _, _} -> exit(normal)
    after max(0, Until - erlang:monotonic_time(millisecond)) -> true
    end.

result(Sent) ->
    case lists:member(ok, Sent) of
        true -> ok;
        false -> lists:last(Sent)
    end.
