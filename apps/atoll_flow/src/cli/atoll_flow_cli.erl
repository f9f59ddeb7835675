%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands share that observe the traffic of a cluster.
-module(atoll_flow_cli).

-export([options/0, seconds/3, observing/3, text/2, json/3, csv/2, said/1]).

%% Who waits ends with exit/1 by design.
-dialyzer({nowarn_function, first/1}).

-define(FIRST_MS, 30000).

%% @doc Options of all of them, beside which cluster.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => trace, help => "count messages one by one, by tracing the nodes; without, what their connections have carried"},
        #{name => by, value => "WHOM", read => atoll_cli_read:one_of([name, module]), help => "with --trace, count by whom they are sent, too: name (registered) or module"},
        #{name => limit, value => "N", read => atoll_cli_read:whole(100, 1000000),
          help => "with --trace, above N messages a second of a node only a part of the time is traced (100,000 unless told)"},
        #{name => keep, value => "FILE", help => "keep in FILE who observes whom, and begin as it says if it is there"},
        #{name => remote, value => "PROGRAM", help => "observe from the hosts of the nodes, where PROGRAM starts a VM, as ssh does"}
    ].

%% @doc The option of how many seconds, as in 60 or 60s or 5m.
-spec seconds(Name :: atom(), Unless :: string(), unicode:chardata()) -> atoll_cli_options:option().
seconds(Name, Unless, Help) ->
    #{name => Name, value => "S", default => Unless, read => fun ms/1, help => Help}.

ms(Text) ->
    {Digits, Unit} = case lists:reverse(Text) of
        [$s | More] -> {lists:reverse(More), 1000};
        [$m | More] -> {lists:reverse(More), 60000};
        _ -> {Text, 1000}
    end,
    case atoll_cli_read:to_number(Digits) of
        {ok, N} when N * Unit >= 200, N * Unit =< 86400000 -> {ok, round(N * Unit)};
        _ -> {error, "must be a time from 0.2 seconds to a day, as in 5, 5s or 5m"}
    end.

%% @doc Observes the cluster while Fun runs; it begins when each node has been looked at, or has failed to answer.
-spec observing(atoll_cli_options:values(), atoll_flow:options(), fun((Name :: string(), Flow :: pid()) -> atoll_cli_command:outcome())) -> atoll_cli_command:outcome().
observing(#{trace := Trace} = Values, More, Fun) ->
    case {Trace, maps:keys(maps:with([by, limit], Values))} of
        {false, [Key | _]} -> {usage, [atoll_cli_options:flag(Key), " is for --trace, which is missing"]};
        _ ->
            case atoll_view_cli_where:target(looks, Values) of
                {ok, Target} ->
                    %% For good: of one that cannot begin the end comes after its answer.
                    _ = process_flag(trap_exit, true),
                    case atoll_flow:start_link(Target, maps:merge(maps:with([trace, by, limit, keep, remote], Values), More)) of
                        {ok, Flow} ->
                            try
                                ok = first(Flow),
                                counted(Fun(element(2, Target), Flow), atoll_flow:status(Flow))
                            catch
                                exit:Reason -> unable(Flow, Reason)
                            after
                                stopped(Flow)
                            end;
                        {error, {unable, Sentence}} -> {unable, Sentence}
                    end;
                Wrong -> Wrong
            end
    end.

%% It has ended by itself, and has said why; who calls it then may hear less.
unable(_, {shutdown, {unable, Sentence}}) -> {unable, Sentence};
unable(_, {{shutdown, {unable, Sentence}}, _}) -> {unable, Sentence};
unable(Flow, Reason) -> receive {'EXIT', Flow, {shutdown, {unable, Sentence}}} -> {unable, Sentence} after 0 -> exit(Reason) end.

%% Ctrl-C is for whoever comes next.
first(Flow) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({settled, atoll_flow:settle(Flow, ?FIRST_MS)}) end),
    receive
        {'DOWN', Ref, process, Pid, {settled, _}} -> ok;
        {'DOWN', Ref, process, Pid, Reason} -> exit(Reason);
        interrupted ->
            true = demonitor(Ref, [flush]),
            true = exit(Pid, kill),
            self() ! interrupted,
            ok
    end.

%% Nothing is no figure.
counted(ok, #{nodes := Nodes}) ->
    case [Node || {Node, up} <- Nodes] of
        [] -> {failed, "No node was counted."};
        [_ | _] -> ok
    end;
counted(Outcome, _) ->
    Outcome.

%% It may have ended by itself.
stopped(Flow) ->
    try gen_server:stop(Flow)
    catch exit:_ -> ok
    end.

%% @doc The tables, for people.
-spec text(atoll_flow_table:tables(), [atoll_flow_table:name()]) -> iolist().
text(Tables, Names) ->
    lists:join($\n, [[title(Name), $\n, atoll_cli_table:format([{align(Column), head(Column)} || Column <- atoll_flow_table:columns(Name)],
        [[cell(Column, Cell) || {Column, Cell} <- lists:zip(atoll_flow_table:columns(Name), Row)] || Row <- Rows])]
     || Name <- Names, Rows <- [atoll_flow_table:rows(Name, Tables)], Rows =/= []]).

title(node) -> "From node to node:";
title(sent) -> "Sent, and what of it between groups:";
title(flow) -> "At each node:";
title(bridge) -> "At nodes in several groups:";
title(group) -> "From group to group:";
title(kind) -> "By kind:";
title(by) -> "By whom:".

head(Column) -> string:replace(atom_to_list(Column), "_", " ").

align(Column) when Column =:= from; Column =:= to; Column =:= node; Column =:= kind; Column =:= by -> left;
align(_) -> right.

cell(share, Share) -> atoll_cli_table:percent(Share);
cell(_, Number) when is_integer(Number) -> atoll_cli_table:count(Number);
cell(_, Atom) when is_atom(Atom) -> atom_to_list(Atom);
cell(_, Text) -> Text.

%% @doc The tables as an object, with how they were counted.
-spec json(Name :: string(), atoll_flow_table:tables(), {atoll_flow_table:measure(), Ms :: non_neg_integer(), atoll_flow:status()}) -> atoll_cli_json:object().
json(Cluster, Tables, {Measure, Ms, #{nodes := Nodes, shares := Shares, omitted := Omitted, beyond := Beyond}}) ->
    {All, Between} = atoll_flow_table:between(Tables),
    {[
        {cluster, unicode:characters_to_binary(Cluster)}, {counted, case Measure of messages -> messages; wire -> packets end}, {ms, Ms},
        {total, round(All)}, {between_groups, round(Between)},
        {nodes, {[{Node, State} || {Node, State} <- Nodes]}},
        {sampled, {[{Node, Share} || {Node, Share, _} <- Shares, Share < 1]}},
        {omitted, Omitted}, {beyond, Beyond},
        {estimated, {[{Node, Estimated} || {Node, Share, Estimated} <- Shares, Share < 1]}}
    ] ++ [{Name, [{lists:zip(atoll_flow_table:columns(Name), Row)} || Row <- atoll_flow_table:rows(Name, Tables)]} || Name <- atoll_flow_table:names()]}.

%% @doc A table for other programs, by RFC 4180.
-spec csv(atoll_flow_table:tables(), atoll_flow_table:name()) -> iolist().
csv(Tables, Name) ->
    [[lists:join($,, Cells), "\r\n"] || Cells <- [[atom_to_list(Column) || Column <- atoll_flow_table:columns(Name)] | [[plain(Cell) || Cell <- Row] || Row <- atoll_flow_table:rows(Name, Tables)]]].

plain(Number) when is_integer(Number) -> integer_to_list(Number);
plain(Number) when is_float(Number) -> io_lib:format("~.4f", [Number]);
plain(Cell) ->
    Text = case is_atom(Cell) of true -> atom_to_list(Cell); false -> unicode:characters_to_list(Cell) end,
    case [C || C <- Text, lists:member(C, ",\"\r\n")] of
        [] -> Text;
        _ -> [$", lists:join("\"\"", string:split(Text, "\"", all)), $"]
    end.

%% @doc What is to be said of the numbers: which are estimates, and which nodes are missing.
-spec said(atoll_flow:status()) -> [unicode:chardata()].
said(#{nodes := Nodes, shares := Shares, not_kept := NotKept} = Status) ->
    [[atom_to_list(Node), " sends more than the limit: ", atoll_cli_table:percent(Share), " of the time was traced, and ", atoll_cli_table:count(Estimated), " of its messages are taken from that"]
     || {Node, Share, Estimated} <- Shares, Share < 1] ++
    [[atom_to_list(Node), why(State)] || {Node, State} <- Nodes, State =/= up] ++
    [[atoll_cli_table:count(N), " ", What] || {Key, What} <- [{omitted, "changes of nodes came too fast, and were left out"}, {beyond, "nodes or more are not observed, since 2,000 are the most"}], #{Key := N} <- [Status], N > 0] ++
    [NotKept || NotKept =/= none].

why(busy) -> " is traced by another program already, so its messages are not counted";
why(unreached) -> " is not observed: nothing could be started that looks at it";
why(down) -> " is down";
why(unknown) -> " has not answered yet";
why(timeout) -> " does not answer";
why(refused) -> " does not take what counts there";
why(other_version) -> " is observed by another version of this program".
