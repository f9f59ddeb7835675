%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll top': the nodes of a running cluster side by side, or the processes of one of them, again and again. On a
%% terminal keys say by what they are sorted: `bin/atoll' has the terminal send each at once, and has it as before at the end.
-module(atoll_watch_cli_top).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, more/0, run/2, screen/4, pressed/2]).

-export_type([look/0]).

-type look() :: #{of_node := all | node(), key := atom(), paused := boolean()}.

-define(PERIOD_MS, 5000).
-define(KEYS, [name, utilisation, run_queue, memory, processes, reductions, mailbox]).
%% What is not nodes: the line above, the head, the line of those that have no place, and that of the keys.
-define(OTHER_LINES, 5).
-define(PRESSED, [{$n, name}, {$u, utilisation}, {$w, run_queue}, {$m, memory}, {$c, processes}, {$r, reductions}, {$l, mailbox}]).
-define(PROCESSES, 20).

-spec summary() -> string().
summary() -> "show the nodes of a running cluster side by side, again and again".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(looks) ++
    [
        #{name => once, help => "print it once and end"},
        atoll_watch_cli:period("5, or 1 with --once"),
        #{name => sort, value => "KEY", read => atoll_cli_read:one_of(?KEYS),
          help => [lists:join(", ", [atom_to_list(Key) || Key <- ?KEYS]), ": the most first (name unless told); of processes memory, reductions or mailbox (memory)"]},
        (atoll_cli_json:switch())#{help => "print one JSON object and end"}
    ].

-spec operands() -> [string()].
operands() -> ["[NODE]"].

-spec examples() -> [string()].
examples() -> ["atoll top", "atoll top --once --sort memory", "atoll top reef1 --sort reductions", "atoll top -c reef --json"].

-spec more() -> unicode:chardata().
more() -> "With NODE it shows the processes of that node. On a terminal keys sort and pause it, and q or Ctrl-C ends it; elsewhere each look is a table of its own".

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{once := Once, json := Json} = Values, []) when Once; Json ->
    atoll_watch_cli:looked(2, Values, fun(Name, Watch) ->
        Seen = sorted(maps:get(sort, Values, name), atoll_watch:nodes(Watch)),
        Alarms = atoll_watch:alarms(Watch),
        ok = once(Json, Name, Seen, Alarms),
        atoll_watch_cli:judged(Seen, ok)
    end);
run(Values, []) ->
    Ms = maps:get(period, Values, ?PERIOD_MS),
    atoll_watch_cli:looked(1, Values#{period => Ms}, fun(Name, Watch) ->
        again(#{name => Name, watch => Watch, ms => Ms, before => none}, #{of_node => all, key => maps:get(sort, Values, name), paused => false})
    end);
run(Values, [Typed]) ->
    Key = maps:get(sort, Values, memory),
    case lists:member(Key, atoll_watch_cli_top_node:keys()) of
        true -> of_node(Key, Values, Typed);
        false -> {usage, ["processes are not sorted by ", atom_to_list(Key), ", but by memory, reductions or mailbox"]}
    end;
run(_, [_, Second | _]) ->
    {usage, ["the argument \"", Second, "\" is one too many"]}.

of_node(Key, #{once := Once, json := Json} = Values, Typed) ->
    Ms = maps:get(period, Values, ?PERIOD_MS),
    atoll_watch_cli:looked(1, Values#{period => Ms}, fun(Name, Watch) ->
        case called(Typed, atoll_watch:nodes(Watch)) of
            {error, Sentence} -> {usage, Sentence};
            {ok, Node} when Json ->
                case atoll_watch_cli_top_node:json(Node, atoll_watch_cli_top_node:ask(Watch, Node, Key, ?PROCESSES)) of
                    {ok, Object} -> atoll_cli_io:print_json(Object);
                    {error, Sentence} -> {failed, Sentence}
                end;
            {ok, Node} when Once ->
                case atoll_watch_cli_top_node:ask(Watch, Node, Key, ?PROCESSES) of
                    {error, Sentence} -> {failed, Sentence};
                    Asked -> atoll_cli_io:print(atoll_watch_cli_top_node:screen(Node, Key, none, Asked))
                end;
            {ok, Node} ->
                again(#{name => Name, watch => Watch, ms => Ms, before => none}, #{of_node => Node, key => Key, paused => false})
        end
    end).

%% Whole, or without what follows the `@'.
called(Typed, Seen) ->
    Names = [{atom_to_list(Node), Node} || #{node := Node} <- Seen],
    case [Node || {Name, Node} <- Names, Typed =:= Name orelse Typed =:= hd(string:split(Name, "@"))] of
        [Node] -> {ok, Node};
        [_, _ | _] -> {error, [Typed, " may be any of several nodes: say all of the name"]};
        [] ->
            Near = case atoll_cli_nearest:of_words(Typed, [hd(string:split(Name, "@")) || {Name, _} <- Names]) of
                {ok, Word} -> ["; did you mean ", Word, "?"];
                none -> ""
            end,
            {error, ["the cluster has no node ", Typed, Near]}
    end.

once(true, Name, Seen, Alarms) ->
    atoll_cli_io:print_json({[{cluster, unicode:characters_to_binary(Name)}, {nodes, [json(Is, Alarms) || Is <- Seen]}]});
once(false, Name, Seen, Alarms) ->
    atoll_cli_io:print(screen(Name, Seen, Alarms, infinity)).

again(Run, Look) ->
    _ = [spawn_link(fun() -> listen(Self) end) || os:getenv("ATOLL_KEYS") =:= "yes", Self <- [self()]],
    shown(Run, Look).

%% What is typed, as the terminal sends it. It is read where nothing else waits.
listen(To) ->
    {ok, Stdin} = prim_file:file_desc_to_ref(0, [read]),
    listen(Stdin, To).

listen(Stdin, To) ->
    case prim_file:read(Stdin, 1) of
        {ok, <<Key>>} -> To ! {key, Key}, listen(Stdin, To);
        _ -> ok
    end.

shown(#{name := Name, watch := Watch, before := Before} = Run, #{of_node := Of, key := Key} = Look) ->
    {Rows, Columns} = case atoll_cli_io:screen() of none -> {infinity, infinity}; {R, C} -> {max(1, R - ?OTHER_LINES), C} end,
    {Text, Now} = case Of of
        all -> {screen(Name, sorted(Key, atoll_watch:nodes(Watch)), atoll_watch:alarms(Watch), Rows), none};
        Node ->
            Asked = atoll_watch_cli_top_node:ask(Watch, Node, Key, case Rows of infinity -> ?PROCESSES; _ -> min(100, Rows) end),
            {atoll_watch_cli_top_node:screen(Node, Key, Before, Asked), Asked}
    end,
    ok = atoll_cli_io:print(case Columns of
        infinity -> [Text, $\n];
        _ -> ["\e[H\e[J", cut(Text, Columns), cut(help(Look), Columns)]
    end),
    waited(Run#{before := Now}, Look).

waited(#{watch := Watch, ms := Ms} = Run, #{paused := Paused} = Look) ->
    receive
        {'EXIT', Watch, Reason} -> exit(Reason);
        {key, Key} ->
            case pressed(Key, Look) of
                quit -> ok;
                Look -> waited(Run, Look);
                Other -> shown(Run, Other)
            end
    after case Paused of true -> infinity; false -> Ms end -> shown(Run, Look)
    end.

%% @doc What a key does.
-spec pressed(char(), look()) -> look() | quit.
pressed($q, _) -> quit;
pressed($\s, #{paused := Paused} = Look) -> Look#{paused := not Paused};
pressed(Char, Look) ->
    case lists:keyfind(Char, 1, keys(Look)) of
        {_, Key} -> Look#{key := Key};
        false -> Look
    end.

keys(#{of_node := all}) -> ?PRESSED;
keys(_) -> [Pressed || {_, Key} = Pressed <- ?PRESSED, lists:member(Key, atoll_watch_cli_top_node:keys())].

help(#{paused := Paused} = Look) ->
    case os:getenv("ATOLL_KEYS") of
        "yes" -> ["q ends, space ", case Paused of true -> "goes on"; false -> "pauses" end, "; sort by ", lists:join(", ", [[Char, $\s, atom_to_list(Key)] || {Char, Key} <- keys(Look)]), $\n];
        _ -> ""
    end.

%% A line that a terminal breaks would take the place of another one.
cut(Text, Columns) ->
    [[string:slice(Line, 0, Columns), $\n] || Line <- string:lexemes(unicode:characters_to_list(Text), "\n")].

sorted(name, Seen) -> Seen;
sorted(Key, Seen) ->
    Value = fun(#{state := State} = Is) -> {State =:= up, value(Key, Is)} end,
    [Is || {_, Is} <- lists:reverse(lists:keysort(1, lists:reverse([{Value(Is), Is} || Is <- Seen])))].

%% Nothing is less than any number.
value(Key, Is) ->
    case figure(Key, Is) of
        unknown -> -1;
        Number -> Number
    end.

figure(reductions, #{rates := #{reductions := Rate}}) -> Rate;
figure(utilisation, #{readings := #{utilisation := Share}}) -> Share;
figure(run_queue, #{readings := #{run_queue_total := Length}}) -> Length;
figure(memory, #{readings := #{memory_total := Bytes}}) -> Bytes;
figure(processes, #{readings := #{processes := Count}}) -> Count;
figure(mailbox, #{readings := #{mailbox_longest := Count}}) -> Count;
figure(dist_in, #{rates := Rates}) -> sum(dist_in, Rates);
figure(dist_out, #{rates := Rates}) -> sum(dist_out, Rates);
figure(uptime, #{readings := #{uptime := Ms}}) -> Ms;
figure(_, #{}) -> unknown.

sum(Name, Rates) ->
    case [Rate || {{Is, _}, Rate} <- maps:to_list(Rates), Is =:= Name] of
        [] -> unknown;
        Each -> lists:sum(Each)
    end.

%% @doc What is shown of a cluster where there is room for so many nodes.
-spec screen(string(), [atoll_watch_core:seen()], [atoll_watch_alarm:alarm()], pos_integer() | infinity) -> iolist().
screen(Name, Seen, Alarms, Rows) ->
    Columns = [{left, "node"}, {left, "state"}, {right, "utilisation"}, {right, "run queue"}, {right, "memory"}, {right, "processes"},
               {right, "reductions/s"}, {right, "mailbox"}, {left, "of"}, {right, "in/s"}, {right, "out/s"}, {right, "up for"}, {right, "alarms"}],
    {Shown, More} =
        case Rows of
            infinity -> {Seen, []};
            _ -> lists:split(min(Rows, length(Seen)), Seen)
        end,
    [
        summed(Name, Seen, Alarms),
        atoll_cli_table:format(Columns, [row(Is, Alarms) || Is <- Shown]),
        [["and ", atoll_cli_table:count(length(More)), " more\n"] || More =/= []]
    ].

summed(Name, Seen, Alarms) ->
    Up = length([up || #{state := up} <- Seen]),
    [Name, ": ", atoll_cli_table:count(Up), " of ", atoll_cli_table:count(length(Seen)), " nodes up, ",
     case length(Alarms) of 0 -> "no alarm"; 1 -> "1 alarm"; N -> [atoll_cli_table:count(N), " alarms"] end, $\n].

row(#{node := Node, state := State} = Is, Alarms) ->
    Said = fun(Key, Write) ->
        case State =:= up andalso figure(Key, Is) of
            Number when is_number(Number) -> Write(Number);
            _ -> "-"
        end
    end,
    [atom_to_list(Node), atom_to_list(State),
     Said(utilisation, fun percent/1),
     Said(run_queue, fun atoll_cli_table:count/1),
     Said(memory, fun atoll_cli_table:bytes/1),
     Said(processes, fun atoll_cli_table:count/1),
     Said(reductions, fun(Rate) -> atoll_cli_table:count(round(Rate)) end),
     Said(mailbox, fun atoll_cli_table:count/1),
     Said(mailbox, fun(_) -> whose(Is) end),
     Said(dist_in, fun kilobytes/1), Said(dist_out, fun kilobytes/1),
     Said(uptime, fun(Ms) -> duration(Ms div 1000) end),
     case length([A || #{node := N} = A <- Alarms, N =:= Node]) of 0 -> ""; Count -> atoll_cli_table:count(Count) end].

percent(Share) -> [float_to_list(float(Share * 100), [{decimals, 2}]), " %"].

kilobytes(Rate) -> [atoll_cli_table:decimal(Rate / 1000), " kB"].

duration(S) when S < 3600 -> io_lib:format("~b:~2..0b", [S div 60, S rem 60]);
duration(S) when S < 86400 -> io_lib:format("~b h ~2..0b", [S div 3600, S rem 3600 div 60]);
duration(S) -> [atoll_cli_table:count(S div 86400), " d"].

%% Whose mailbox the longest is.
whose(#{readings := #{mailbox_longest := Longest} = Readings}) when Longest > 0 ->
    case lists:sort([Label || {{mailbox, Label}, N} <- maps:to_list(Readings), N =:= Longest]) of
        [Label | _] -> Label;
        [] -> ""
    end;
whose(_) ->
    "".

json(#{node := Node, state := State} = Is, Alarms) ->
    {[{node, Node}, {state, State}] ++
     [{Name, case State =:= up andalso figure(Key, Is) of Number when is_number(Number) -> Number; _ -> null end}
      || {Name, Key} <- [{utilisation, utilisation}, {run_queue, run_queue}, {memory, memory}, {processes, processes}, {reductions_per_s, reductions},
                         {mailbox_longest, mailbox}, {dist_in_per_s, dist_in}, {dist_out_per_s, dist_out}, {uptime_ms, uptime}]] ++
     [{alarms, [Rule || #{node := N, rule := Rule} <- Alarms, N =:= Node]}]}.
