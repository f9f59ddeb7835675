%% SPDX-License-Identifier: Apache-2.0
%% What the suite of the named channels has done on a node.
-module(atoll_dist_named_probe).
-behaviour(gen_server).

-export([asks/3, asks_registered/3, asks_behaviour/2, asks_application/3, wanders/4, collects/0, collected/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(MS, 10000).

%% How many of so many processes in a channel are answered in half a second.
asks(Node, Channel, Count) ->
    Askers = [
        spawn_monitor(fun() ->
            ok = atoll:channel(Channel),
            exit(asked(Node))
        end)
     || _ <- lists:seq(1, Count)
    ],
    length([yes || {_, Ref} <- Askers, yes <- [receive {'DOWN', Ref, process, _, Answer} -> Answer after ?MS -> no end]]).

asked(Node) ->
    try gen_server:call({echo, Node}, x, 500) of
        x -> yes
    catch
        exit:{timeout, _} -> no
    end.

%% A registered process asks so many times.
asks_registered(Node, Name, Times) ->
    runs(fun() ->
        true = register(Name, self()),
        [yes = asked(Node) || _ <- lists:seq(1, Times)]
    end).

%% So does a server of this module.
asks_behaviour(Node, Times) ->
    {ok, Pid} = gen_server:start(?MODULE, [], []),
    gen_server:call(Pid, {ask, Node, Times}, ?MS).

%% And a process of an application.
asks_application(Node, Application, Times) ->
    Leader = hd([Pid || Pid <- processes(), application:get_application(Pid) =:= {ok, Application}]),
    {group_leader, Master} = process_info(Leader, group_leader),
    runs(fun() ->
        true = group_leader(Master, self()),
        [yes = asked(Node) || _ <- lists:seq(1, Times)]
    end).

runs(Do) ->
    {_, Ref} = spawn_monitor(fun() -> _ = Do(), exit(done) end),
    receive
        {'DOWN', Ref, process, _, done} -> ok
    end.

init([]) -> {ok, []}.
handle_call({ask, Node, Times}, _From, State) -> {reply, [yes = asked(Node) || _ <- lists:seq(1, Times)], State}.
handle_cast(_, State) -> {noreply, State}.

%% A process sends numbers, from 1 on, some of them large, and goes from channel to channel.
wanders(To, Count, Every, Channels) ->
    runs(fun() -> wander(1, To, Count, Every, Channels) end).

wander(I, _To, Count, _Every, _Channels) when I > Count ->
    ok;
wander(I, To, Count, Every, [Channel | Channels]) when I rem Every =:= 0 ->
    ok = atoll:channel(Channel),
    send(I, To),
    wander(I + 1, To, Count, Every, Channels ++ [Channel]);
wander(I, To, Count, Every, Channels) ->
    send(I, To),
    wander(I + 1, To, Count, Every, Channels).

send(I, To) when I rem 7 =:= 0 -> To ! {number, I, <<0:(150000 * 8)>>};
send(I, To) -> To ! {number, I, <<>>}.

%% A process that remembers what numbers it got; all of them, the first one first.
collects() -> spawn(fun() -> collect([]) end).

collect(Got) ->
    receive
        {number, I, _} -> collect([I | Got]);
        {get, From, Ref} -> From ! {Ref, lists:reverse(Got)}, collect(Got)
    end.

collected(Pid) ->
    Ref = make_ref(),
    Pid ! {get, self(), Ref},
    receive {Ref, Got} -> Got after ?MS -> none end.
