%% @doc Counts the messages of a run that leave their node, and sends them.
%%
%% A process of a run that may write to another node does it here. A message is
%% counted by its sender, once, and only if the receiver is on another node:
%%
%%   vertex   an image, delivered to the worker that owns it
%%   gateway  an image, handed to a gateway on its way there
%%   credit   credit, one step on its way back to the master
%%   control  all else: start, results, failures
%%
%% Nothing is ever sent to a node that is not connected, because the attempt
%% would connect it. What is lost by that was lost anyhow: the host of the run
%% on either node sees a connection go, and ends the run (see `orbit_host').
-module(orbit_meter).

-export([new/0, send/4, count/3, deliver/2, read/1, no_messages/0]).

-export_type([meter/0, kind/0, messages/0]).

%% Belongs to a node; it cannot be used from another one.
-opaque meter() :: counters:counters_ref().

-type kind() :: vertex | gateway | credit | control.

-type messages() :: #{kind() => non_neg_integer()}.

%% @doc A meter at zero.
-spec new() -> meter().
new() ->
    counters:new(4, [write_concurrency]).

%% @doc Counts the message and sends it.
-spec send(meter(), kind(), pid(), term()) -> ok.
send(Meter, Kind, To, Message) ->
    ok = count(Meter, Kind, To),
    deliver(To, Message).

%% @doc Counts a message that the caller is about to deliver: for the one that
%% carries the reading of the meter itself.
-spec count(meter(), kind(), pid()) -> ok.
count(_, _, To) when node(To) =:= node() -> ok;
count(Meter, Kind, _) -> counters:add(Meter, index(Kind), 1).

%% @doc Sends without counting, and without connecting.
-spec deliver(pid(), term()) -> ok.
deliver(To, Message) ->
    case erlang:send(To, Message, [noconnect]) of
        ok -> ok;
        noconnect -> ok
    end.

%% @doc What was counted so far.
-spec read(meter()) -> messages().
read(Meter) ->
    maps:map(fun(Kind, _) -> counters:get(Meter, index(Kind)) end, no_messages()).

%% @doc The reading of a new meter.
-spec no_messages() -> messages().
no_messages() ->
    #{vertex => 0, gateway => 0, credit => 0, control => 0}.

index(vertex) -> 1;
index(gateway) -> 2;
index(credit) -> 3;
index(control) -> 4.
