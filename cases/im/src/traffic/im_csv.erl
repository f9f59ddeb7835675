%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of the paper's loggers: throughput with quality of service by windows, a summary,
%% and latencies. Pure: names and text.
%%
%% Without a header, as in the original. A row of throughput has: the number of the window, which
%% counts down; time and date; the threshold in microseconds; how many messages were sent, received,
%% delivered, and delivered below the threshold; and the last of these in per cent of those sent, or
%% `N/A'. A row of latencies has: what identifies the message, time and date, the session, its two
%% clients, and microseconds. Latency is half of the time until the sender knows of the delivery, as in the
%% original.
-module(im_csv).

-export([name/2, throughput/3, latency/3, summary/2]).

-export_type([run/0, window/0]).

-type run() :: #{
    %% Such as RD_IM.
    technology := string(),
    routers := pos_integer(),
    servers := pos_integer(),
    clients := pos_integer(),
    %% Windows, the seconds of each, and microseconds.
    trials := pos_integer(),
    seconds := pos_integer(),
    threshold_us := pos_integer()
}.

-type window() :: #{
    sent := non_neg_integer(),
    received := non_neg_integer(),
    delivered := non_neg_integer(),
    %% Of these, below the threshold.
    below := non_neg_integer()
}.

%% @doc The name of a file: of the throughput at a client node, of its latencies in a window, or of the summary.
-spec name({throughput, Node :: pos_integer()} | {latency, Node :: pos_integer(), Window :: pos_integer()} | summary, run()) -> string().
name(Which, #{technology := Technology, routers := Routers, servers := Servers, clients := Clients}) ->
    {What, Suffix} =
        case Which of
            {throughput, Node} -> {"Throughput", io_lib:format("Node_~b.csv", [Node])};
            {latency, Node, Window} -> {"Latency", io_lib:format("Node_~b_~b.csv", [Node, Window])};
            summary -> {"Throughput", "Summary.txt"}
        end,
    lists:flatten(io_lib:format("~ts_~s_~b_~b_~b_~s", [Technology, What, Routers, Servers, Clients, Suffix])).

%% @doc A window's row; `Left' windows are to come, this one counted.
-spec throughput(Left :: pos_integer(), window(), {calendar:datetime(), run()}) -> iolist().
throughput(Left, #{sent := Sent, received := Received, delivered := Delivered, below := Below}, {{Date, Time}, #{threshold_us := Threshold}}) ->
    row([integer_to_list(Left), time(Time), date(Date) | [integer_to_list(N) || N <- [Threshold, Sent, Received, Delivered, Below]]] ++ [quality(Below, Sent)]).

%% @doc A message's row.
-spec latency({im_history_side:conversation(), Number :: pos_integer()}, {im_history_side:client(), im_history_side:client()}, {calendar:datetime(), Us :: non_neg_integer()}) -> iolist().
latency({{Generator, Conversation}, N}, {One, Other}, {{Date, Time}, Us}) ->
    {A, B} = Session = im_plan:session(One, Other),
    row([
        io_lib:format("~b.~b.~b", [Generator, Conversation, N]),
        [time(Time), $\s, date(Date)],
        im_plan:session_name(Session),
        A,
        B,
        integer_to_list(Us)
    ]).

%% @doc All windows of all client nodes.
-spec summary([{Node :: pos_integer(), [window()]}], run()) -> unicode:chardata().
summary(Nodes, #{technology := Technology, routers := Routers, servers := Servers, clients := Clients, seconds := Seconds, threshold_us := Threshold}) ->
    Windows = lists:append([W || {_, W} <- Nodes]),
    Most = lists:max([0 | [length(W) || {_, W} <- Nodes]]),
    All = sum(Windows),
    [
        io_lib:format("Technology: ~ts~nRouters: ~b~nServers: ~b~nClients: ~b~n", [Technology, Routers, Servers, Clients]),
        io_lib:format("Windows: ~b of ~b s~nThreshold: ~b us~n~n", [Most, Seconds, Threshold]),
        [[io_lib:format("Client node ~b: ", [Node]), totals(sum(W)), $\n] || {Node, W} <- Nodes],
        ["All client nodes: ", totals(All), $\n],
        io_lib:format("Delivered per minute: ~s~n", [per_minute(All, Most * Seconds)])
    ].

totals(#{sent := Sent, received := Received, delivered := Delivered, below := Below}) ->
    io_lib:format("sent ~b, received ~b, delivered ~b, below the threshold ~b, QoS ~s %", [Sent, Received, Delivered, Below, quality(Below, Sent)]).

sum(Windows) ->
    maps:from_list([{Key, lists:sum([N || #{Key := N} <- Windows])} || Key <- [sent, received, delivered, below]]).

per_minute(_All, 0) -> "N/A";
per_minute(#{delivered := Delivered}, Seconds) -> integer_to_list(round(Delivered * 60 / Seconds)).

quality(_Below, 0) -> "N/A";
quality(Below, Sent) -> float_to_list(Below * 100 / Sent, [{decimals, 2}]).

time({H, M, S}) -> io_lib:format("~b:~b:~b", [H, M, S]).

date({Y, M, D}) -> io_lib:format("~b/~b/~b", [D, M, Y]).

row(Cells) -> [lists:join($,, Cells), $\n].
