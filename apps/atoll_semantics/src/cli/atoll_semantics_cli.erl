%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll semantics': steps what the functions of `s_group' mean and a real cluster side by
%% side, a command at a time, and says after each what is not as meant.
-module(atoll_semantics_cli).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, more/0, run/2]).
-export([outcome/1]).

-define(L, atoll_semantics_lockstep).

-record(session, {
    lockstep :: ?L:lockstep(),
    world :: atoll_semantics_cluster:world(),
    rand :: rand:state(),
    faults :: faults | none,
    done = 0 :: non_neg_integer(),
    differed = 0 :: non_neg_integer(),
    %% Lines that were read, and of them those that were not understood.
    line = 0 :: non_neg_integer(),
    wrong = 0 :: non_neg_integer()
}).

-spec summary() -> string().
summary() -> "step what s_group means and a real cluster side by side".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => random, value => "N", read => atoll_cli_read:whole(1, 1000000),
          help => "do N commands drawn at random, in place of those of standard input"},
        #{name => faults, help => "cuts, heals, kills and starts of nodes among those that are drawn"},
        (atoll_cli_again:seed())#{help => "draw the commands of that seed again (another one each time unless told)"}
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll semantics", "atoll semantics --random 50 --faults --seed 7"].

-spec more() -> unicode:chardata().
more() -> "The line \"help\" says what the commands are".

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    Seed = maps:get(seed, Values, erlang:system_time(microsecond) rem 1000000),
    Options = atoll_semantics_cluster:options(),
    case atoll_cluster:start(Options#{progress => atoll_cli_progress:bar("Starting nodes")}) of
        {ok, Cluster} ->
            ok = atoll_cli_progress:done(),
            try
                session(Values, Seed, #session{
                    lockstep = ?L:new(),
                    world = atoll_semantics_cluster:new(Cluster),
                    rand = rand:seed_s(exsss, Seed),
                    faults =
                        case Values of
                            #{faults := true} -> faults;
                            #{faults := false} -> none
                        end
                })
            catch
                error:{Why, Node} when Why =:= node_down; Why =:= timeout; Why =:= busy ->
                    {unable, atoll_cluster:format_error({Why, Node})}
            after
                ok = atoll_cluster:stop(Cluster)
            end;
        {error, Reason} ->
            {unable, atoll_cluster:format_error(Reason)}
    end.

session(#{random := Count}, Seed, Session) ->
    ok = atoll_cli_io:say(["The commands of seed ", integer_to_list(Seed), "."]),
    over(draw(Count, Session));
session(_Values, _Seed, Session) ->
    ok = atoll_cli_io:say("Six nodes, n1 to n6, and two hidden ones, x1 and x2, without groups. \"help\" says what the commands are."),
    over(read(Session)).

over(#session{done = Done, differed = Differed}) when Differed > 0 ->
    {failed, io_lib:format("~b of ~ts did something else than is meant", [Differed, commands(Done)])};
over(#session{done = Done, wrong = Wrong}) ->
    ok = atoll_cli_io:print([commands(Done), ", all as meant.\n"]),
    %% A person on a terminal has seen it.
    case {Wrong, is_terminal()} of
        {0, _} -> ok;
        {_, true} -> ok;
        {1, false} -> {failed, "1 line was no command"};
        {_, false} -> {failed, io_lib:format("~b lines were no commands", [Wrong])}
    end.

is_terminal() -> atoll_cli_io:columns() =/= none.

commands(1) -> "1 command";
commands(N) -> io_lib:format("~b commands", [N]).

%% Lines

read(#session{line = Nth} = Session) ->
    case may_go_on(Session) andalso io:get_line(prompt()) of
        Line when is_list(Line); is_binary(Line) -> read_line(string:trim(Line), Session#session{line = Nth + 1});
        {error, _} -> unread(Session#session{line = Nth + 1});
        eof -> Session;
        false -> Session
    end.

prompt() ->
    case is_terminal() of
        true -> "> ";
        false -> ""
    end.

%% After a difference all that follows differs too: a person may look around, a file ends there.
may_go_on(#session{differed = Differed}) -> Differed =:= 0 orelse is_terminal().

read_line("", Session) -> read(Session);
read_line("%" ++ _, Session) -> read(Session);
read_line("quit", Session) -> Session;
read_line("help", Session) ->
    ok = atoll_cli_io:print(help()),
    read(Session);
read_line("show", #session{lockstep = Lockstep, world = World} = Session) ->
    #{now := Now} = atoll_semantics_cluster:backend(),
    ok = atoll_cli_io:print(views(?L:views(Lockstep), Now(World))),
    read(Session);
read_line("random", Session) ->
    read(draw(1, Session));
read_line("random " ++ Count, Session) ->
    case string:to_integer(Count) of
        {N, ""} when N > 0 ->
            read(draw(N, Session));
        _ ->
            wrong("after random comes how many commands are to be drawn", Session)
    end;
read_line(Line, Session) ->
    case atoll_semantics_line:parse(Line) of
        {ok, Command} ->
            %% On a terminal it stands there already.
            ok = echo(is_terminal(), Command),
            read(step(Command, Session));
        {error, Sentence} ->
            wrong(Sentence, Session)
    end.

wrong(Sentence, Session) ->
    ok = complain(Sentence, Session),
    read(count_wrong(Session)).

%% What comes after it cannot be read either.
unread(Session) ->
    ok = complain("it cannot be read", Session),
    count_wrong(Session).

count_wrong(#session{wrong = Wrong} = Session) -> Session#session{wrong = Wrong + 1}.

complain(Sentence, #session{line = Nth}) ->
    atoll_cli_io:say([[["line ", integer_to_list(Nth), ": "] || not is_terminal()], Sentence]).

help() ->
    "A line is a node and a call of s_group:\n"
    "  n1 new_s_group(g, [n1, n2])         also delete_s_group, add_nodes, remove_nodes\n"
    "  n1 register_name(g, a, {n2, 1})     also re_register_name, unregister_name\n"
    "  n1 whereis_name(g, a)               also whereis_name(n2, g, a), registered_names({s_group, g})\n"
    "  n1 send(g, a, hello)                also send(n2, g, a, hello)\n"
    "  n1 s_groups                         also own_s_groups, own_nodes, own_nodes(g), info\n"
    "or what happens to nodes and processes:\n"
    "  n1 kill                             also n1 start\n"
    "  cut([n1, n2], [n3])                 who is not named is on the last side; heal ends it\n"
    "  n1 exit({n2, 1})                    ends that process\n"
    "A process is {Node, Number}, and started when it is first named; those of a node that was\n"
    "killed begin with {Node, 101} when it is started again, and so on.\n"
    "  random [N]                          draws commands\n"
    "  show                                what each node says of itself, and what is meant\n"
    "  quit\n".

%% Commands

draw(0, Session) ->
    Session;
draw(N, #session{lockstep = Lockstep, rand = Rand0, faults = Faults} = Session0) ->
    {Command, Rand} = ?L:random(Faults, Rand0, Lockstep),
    ok = echo(false, Command),
    Session = step(Command, Session0#session{rand = Rand}),
    case may_go_on(Session) of
        true -> draw(N - 1, Session);
        false -> Session
    end.

echo(true, _Command) -> ok;
echo(false, Command) -> atoll_cli_io:print([atoll_semantics_line:format(Command), $\n]).

step(Command, #session{lockstep = Lockstep0, world = World0, done = Done, differed = Differed} = Session) ->
    {#{differences := Differences} = Outcome, Lockstep, World} =
        ?L:step(Command, Lockstep0, atoll_semantics_cluster:backend(), World0),
    ok = atoll_cli_io:print(outcome(Outcome)),
    Session#session{
        lockstep = Lockstep,
        world = World,
        done = Done + 1,
        differed = Differed + length([x || Differences =/= []])
    }.

%% @private
-spec outcome(?L:outcome()) -> unicode:chardata().
outcome(#{was := nothing, differences := []}) ->
    "  nothing happens\n";
outcome(#{was := Value, differences := []}) ->
    io_lib:format("  ~0tp~n", [Value]);
outcome(#{meant := Meant, was := Value, differences := Differences}) ->
    [
        io_lib:format("  ~0tp, not as meant~n", [Value]),
        [io_lib:format("    meant: ~0tp~n", [Meant]) || lists:keymember(value, 1, Differences)],
        [difference(D) || D <- Differences, element(1, D) =/= value]
    ].

%% Of what a node says only what is other than meant.
difference({Node, [{meant, #{} = Meant}, {was, #{} = Was}]}) ->
    [
        io_lib:format("    ~ts: ~ts ~0tp, meant: ~0tp~n", [Node, Key, maps:get(Key, Was), maps:get(Key, Meant)])
     || Key <- lists:sort(maps:keys(Meant)), maps:get(Key, Was) =/= maps:get(Key, Meant)
    ];
difference({at_once, Node, [{meant, Meant}, {was, Was}]}) ->
    io_lib:format("    ~ts, when the call was answered: ~0tp, meant: ~0tp~n", [Node, Was, Meant]);
difference({What, [{meant, Meant}, {was, Was}]}) ->
    io_lib:format("    ~ts: ~0tp, meant: ~0tp~n", [What, Was, Meant]);
difference(Other) ->
    io_lib:format("    ~0tp~n", [Other]).

views(Meant, Seen) ->
    Columns = [{left, "node"}, {left, "groups"}, {left, "names"}, {left, "free with"}, {left, "connected with"}],
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    Nodes = Normal ++ Hidden,
    Rows = [row(atom_to_list(N), maps:get(N, Seen, down)) || N <- Nodes],
    Other = [
        difference({N, [{meant, M}, {was, S}]})
     || N <- Nodes, M <- [maps:get(N, Meant, down)], S <- [maps:get(N, Seen, down)], M =/= S
    ],
    [atoll_cli_table:format(Columns, Rows), [["not as meant:\n", Other] || Other =/= []]].

row(Node, #{groups := Groups, names := Names, free := Free, connections := Connections}) ->
    [Node | [text(Of) || Of <- [Groups, Names, Free, Connections]]];
row(Node, down) ->
    [Node, "down", "", "", ""].

text([]) -> "";
text(List) -> lists:join(" ", [io_lib:format("~0tp", [Item]) || Item <- List]).
