%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: programs that use connections, and owners that
%% want them. Waits for events, with a deadline.
-module(atoll_link_probe).

-export([echo/0, say/2, rounds/3, link_to/1, watch_for_cut/1, cut/1, want/1, stop/1, monitors/0]).
-export([settled/2, more_packets/1]).
-export([refused/2, count_errors/0, errors/0, log/2]).

-define(DEADLINE_MS, 10000).

%% A registered process that answers.
echo() ->
    case whereis(echo) of
        undefined ->
            Pid = spawn(fun answer/0),
            true = register(echo, Pid),
            ok;
        _ ->
            ok
    end.

answer() ->
    receive
        {From, Word} ->
            From ! {echo, Word},
            answer()
    end.

%% A plain send, and its answer.
say(Node, Word) ->
    {echo, Node} ! {self(), Word},
    receive
        {echo, Word} -> heard
    after ?DEADLINE_MS -> lost
    end.

%% So many times: a process of Node is monitored and sent to over a connection that
%% this makes, the monitor stays for up to LongestMs, and then the connection has to
%% go by itself. Gives what went wrong.
rounds(Node, Times, LongestMs) ->
    ok = atoll_link:subscribe(),
    try
        lists:append([round(N, Node, rand:uniform(LongestMs)) || N <- lists:seq(1, Times)])
    after
        ok = atoll_interpreter:unsubscribe(atoll_link)
    end.

round(N, Node, Ms) ->
    Ref = monitor(process, {echo, Node}),
    Said = say(Node, N),
    Held =
        receive
            {'DOWN', Ref, process, _, Reason} -> {down, Reason}
        after Ms -> quiet
        end,
    true = demonitor(Ref, [flush]),
    [{N, Wrong} || Wrong <- [Said, Held, await_down(Node)], not lists:member(Wrong, [heard, quiet, gone])].

await_down(Node) ->
    receive
        {atoll, atoll_link, {down, Node, _}} -> gone
    after ?DEADLINE_MS -> stayed
    end.

%% A process of this node is linked with one of Node.
link_to(Node) ->
    spawn(fun() ->
        true = link(erpc:call(Node, erlang, whereis, [echo])),
        receive
            {From, stop} -> From ! {self(), stopped}
        end
    end).

%% A process of this node monitors one of Node, and waits for cut/1.
watch_for_cut(Node) ->
    Caller = self(),
    Pid = spawn(fun() ->
        Ref = monitor(process, erpc:call(Node, erlang, whereis, [echo])),
        Caller ! {self(), monitoring},
        receive
            {From, cut} ->
                Start = erlang:monotonic_time(millisecond),
                ok = atoll_link:disconnect(Node),
                receive
                    {'DOWN', Ref, process, _, Reason} ->
                        From ! {self(), {Reason, erlang:monotonic_time(millisecond) - Start}}
                end
        end
    end),
    receive
        {Pid, monitoring} -> Pid
    after ?DEADLINE_MS -> error(no_monitor)
    end.

%% Why the monitor fired, and how many milliseconds after the cut.
cut(Pid) ->
    Pid ! {self(), cut},
    receive
        {Pid, Fired} -> Fired
    after ?DEADLINE_MS -> not_fired
    end.

%% A process of this node wants a connection with Node.
want(Node) ->
    Caller = self(),
    Pid = spawn(fun() ->
        ok = atoll_link:want(Node),
        Caller ! {self(), wants},
        receive
            {From, stop} -> From ! {self(), stopped}
        end
    end),
    receive
        {Pid, wants} -> Pid
    end.

stop(Pid) ->
    Pid ! {self(), stop},
    receive
        {Pid, stopped} -> ok
    after ?DEADLINE_MS -> error(no_answer)
    end.

%% How many processes the link room monitors: rooms that hear of it, owners, and helpers
%% at work. What was cast before has been done when this returns.
monitors() ->
    _ = atoll_link:links(),
    {monitors, Monitors} = process_info(whereis(atoll_link), monitors),
    length(Monitors).

%% What the rooms say to each other over a new connection has been said: so many reads in a
%% row, with packets between them, have the same payload.
settled(Node, Reads) -> settled(Node, Reads, Reads, none).

settled(_Node, _Reads, 0, Usage) ->
    Usage;
settled(Node, Reads, Left, Last) ->
    case {more_packets(Node), Last} of
        {#{payload := Same} = Usage, #{payload := Same}} -> settled(Node, Reads, Left - 1, Usage);
        {Usage, _} -> settled(Node, Reads, Reads, Usage)
    end.

%% The use of the connection with Node, once more has come over it.
more_packets(Node) -> more_packets(Node, packets_in(Node)).

more_packets(Node, Before) ->
    case packets_in(Node) > Before of
        true -> atoll_link_usage:read(traffic, Node);
        false -> receive after 1 -> more_packets(Node, Before) end
    end.

packets_in(Node) ->
    {ok, Info} = net_kernel:node_info(Node),
    proplists:get_value(in, Info).

%% Wants what refuses, again and again, until the link room has said so; then as often again, and
%% says how often it did, and who wants it from then on.
refused(Node, Times) ->
    ok = atoll_link:subscribe(),
    try
        ok = insist(Node, Times),
        ok = atoll_link:want(Node),
        receive
            {atoll, atoll_link, {refused, Node}} -> ok
        after ?DEADLINE_MS -> error(not_said)
        end,
        ok = atoll_link:unwant(Node),
        ok = insist(Node, Times),
        Owner = want(Node),
        [#{node := Node, phase := Phase}] = atoll_link:links(),
        {Phase, 1 + said_again(Node), Owner}
    after
        ok = atoll_interpreter:unsubscribe(atoll_link)
    end.

insist(_Node, 0) ->
    ok;
insist(Node, Times) ->
    ok = atoll_link:want(Node),
    receive
        {atoll, atoll_link, {unreachable, Node}} -> ok
    after ?DEADLINE_MS -> error(not_tried)
    end,
    ok = atoll_link:unwant(Node),
    insist(Node, Times - 1).

said_again(Node) ->
    receive
        {atoll, atoll_link, {refused, Node}} -> 1 + said_again(Node)
    after 0 -> 0
    end.

%% From now on this node counts the errors that are logged.
count_errors() ->
    persistent_term:put(?MODULE, counters:new(1, [])),
    logger:add_handler(?MODULE, ?MODULE, #{level => error}).

errors() ->
    ok = logger:remove_handler(?MODULE),
    counters:get(persistent_term:get(?MODULE), 1).

%% @private
log(_Event, _Config) ->
    counters:add(persistent_term:get(?MODULE), 1, 1).
