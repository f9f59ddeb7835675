%% SPDX-License-Identifier: Apache-2.0
%% @doc The steps of a fault script: their vocabulary, and what is wrong with one.
%%
%% <dl>
%% <dt>`{start, Who}'</dt><dd>nodes that do not run start for the first time, or as
%%   if it were. A choice is among those that do not run.</dd>
%% <dt>`{kill, Who}'</dt><dd>they crash; the operating system closes their sockets.</dd>
%% <dt>`{restart, Who, fresh | remembered | alone}'</dt><dd>they start again, without or
%%   with what they knew of others, or without and with no contact but themselves; those
%%   that run crash first.</dd>
%% <dt>`{source, Who}'</dt><dd>the source of contacts that the nodes read, such as a list
%%   in DNS, names these from now on, dead ones too; each node hears of it when it reads
%%   the list next. It takes `formed => source' in the cluster.</dd>
%% <dt>`{leave, Who}'</dt><dd>they part from the cluster and stop.</dd>
%% <dt>`{pause, Who}', `{pause, Who, Time}', `{resume, Who}'</dt><dd>they do nothing
%%   for that time, or until they are resumed; their sockets stay open.</dd>
%% <dt>`{stall, Who}', `{stall, Who, Time}'</dt><dd>the process of their overlay alone stands
%%   still for that time, or until they are resumed: what comes waits for it, and is handled
%%   late. Connections with them come up, and are closed, as ever.</dd>
%% <dt>`{partition, [Who]}'</dt><dd>nothing passes between the parts. Nodes that are
%%   in none of them are one further part. A node that is named in several belongs
%%   to the first, and a choice is among those not yet in a part. It replaces an
%%   earlier partition.</dd>
%% <dt>`{cut, From, To}', `{cut, From, To, Time}'</dt><dd>nothing passes from these to
%%   those, for that time or until it heals; the other way it does.</dd>
%% <dt>`{black_hole, Who, Who}', `{black_hole, Who, Who, Time}'</dt><dd>nothing passes
%%   between these and those, neither way, for that time or until it heals; no
%%   connection ends by it before somebody finds the other one silent.</dd>
%% <dt>`{delay, From, To, Time}'</dt><dd>what these send to those comes that much
%%   later, in its order; the last such step counts, and 0 ends it.</dd>
%% <dt>`{bulk, From, To, Rate}'</dt><dd>a program on each of these sends to each of those:
%%   so many bytes a second, or `full', as many as the link takes. What the overlay sends
%%   over that link waits behind it or, where the queue is full, is dropped. The last such
%%   step counts, and 0 ends it. In the simulator it goes over the links that there are.</dd>
%% <dt>`{lane, From, To, Number, cut | black_hole}'</dt><dd>that lane of each
%%   connection between these and those is cut, or a black hole. It is for real nodes
%%   with the carrier; in the simulator a connection has no lanes.</dd>
%% <dt>`{loss, Share}', `{loss, From, To, Share}'</dt><dd>of what is sent, this share
%%   does not come; of all, or one way between some.</dd>
%% <dt>`{duplicate, Share}'</dt><dd>this share comes twice.</dd>
%% <dt>`{reorder, Share, Time}'</dt><dd>this share comes up to that much later, and
%%   what was sent after it may come before it.</dd>
%% <dt>`{latency, Distribution}'</dt><dd>how long things travel, see
%%   {@link check_latency/1}.</dd>
%% <dt>`{slow, Who, Time}'</dt><dd>each event takes them so long.</dd>
%% <dt>`{churn, Share, Time}'</dt><dd>for that time, this share of the nodes crashes
%%   each second, and as many of those that crashed start again, fresh.</dd>
%% <dt>`{kill_process, Who, What}'</dt><dd>one process of each of these nodes that run
%%   and are not paused is killed. `What': `{name, Registered}', `{supervisor,
%%   Registered}', a worker somewhere below it, `{module, Module}', one that began in
%%   that module or has it for its callbacks, `{application, Name}', a worker of its
%%   tree, or `any', a worker of any application but kernel and stdlib; `{any_name, {group,
%%   Group}}' or `{any_name, global}', one that has a name there, one in all: a name is drawn
%%   of all those of these nodes' processes, and the process that has it now is killed; or a list
%%   `[{Weight, What}]' of which one is drawn. In the simulator nodes have no
%%   processes but those that have names in groups: any other such step is passed over, and
%%   counted.</dd>
%% <dt>`{group, Who, Operation}'</dt><dd>each of these nodes that run and are not
%%   paused asks its s_group process for it: `{new, Name, Nodes}', `{add, Name, Nodes}',
%%   `{remove, Name, Nodes}', where `Nodes' is a `Who', or `{delete, Name}'. Nobody
%%   waits for the answer; the next step comes at its time.</dd>
%% <dt>`{name, Who, Operation}'</dt><dd>a program on each of these that run and are not
%%   paused asks for it: `{register, Group, Name}' and `{re_register, Group, Name}', for a process
%%   of its own that does nothing, and `{unregister, Group, Name}'. Nobody waits for the
%%   answer.</dd>
%% <dt>`{broadcast, Who, Count, Time}'</dt><dd>each of them broadcasts so many
%%   messages, one each so long.</dd>
%% <dt>`{every, Pace, Time, Step}'</dt><dd>the step is done at once, and again and again for that
%%   time; each time nodes are chosen anew. `Pace' is the time from one to the next; or `{ramp,
%%   First, Last}', two times: the rate goes evenly from one each `First' to one each `Last'; or
%%   `{jitter, Pace, Share}': each time between two is up to that share longer or shorter, at
%%   random. The step is neither `heal' nor `every'.</dd>
%% <dt>`{one_of, [{Weight, Step}]}'</dt><dd>one of these is drawn by their weights and done; each time
%%   anew where it is in `every'. The steps are neither `heal' nor `every'.</dd>
%% <dt>`heal'</dt><dd>takes back what steps did to the network and to the pace of
%%   nodes: partitions, cuts, bulk, loss, duplicates, reordering and latencies are as in
%%   the beginning, the slow are quick, the paused resume, churn ends and so does `every'. The dead
%%   stay dead.</dd>
%% <dt>`{expect, Expectation}'</dt><dd>the run fails unless this holds now:
%%   `{connected, Share}' of the living nodes are in one part; `{delivered, Share}'
%%   of the broadcasts so far reached the nodes that had a neighbour before they
%%   were sent and live still; `symmetric', no living node names a living
%%   neighbour that does not name it; `{neighbours, Min, Max}', each living node has
%%   so many living neighbours; `{no, false_death}', no living node was declared
%%   dead; `members', each living node knows the living for members and nobody else;
%%   `{group, Group, Who}', the group has these members for each of them that lives, and
%%   nobody else is in it; `{no, {group, Group}}', nobody is; `groups', all living members of any
%%   group see the same; `{name, Group, Name, Who}', all living members of the group find the
%%   name, on one node, which is one of these; `{no, {name, Group, Name}}', nobody does; `names',
%%   all living members of any group have the same names there; `reachable', each living node's
%%   directory knows a way to all others that live.</dd>
%% </dl>
%%
%% `Who' is told by {@link atoll_sim_who}.
-module(atoll_sim_step).

-export([check/2, each/1, is_about/2, lasts/1, about/1, time/1, check_latency/1, is_share/1, must/1, names/1, short/1, format_error/1]).

-export_type([step/0, expectation/0, ms/0, share/0, kind/0, what/0, scope/0, operation/1, reason/0]).

-type ms() :: non_neg_integer().
-type share() :: number().
%% From 0 to 1.

-type step() ::
    {start, atoll_sim_who:who()}
    | {kill, atoll_sim_who:who()}
    | {restart, atoll_sim_who:who(), fresh | remembered | alone}
    | {source, atoll_sim_who:who()}
    | {leave, atoll_sim_who:who()}
    | {pause, atoll_sim_who:who()}
    | {pause, atoll_sim_who:who(), ms()}
    | {stall, atoll_sim_who:who()}
    | {stall, atoll_sim_who:who(), ms()}
    | {resume, atoll_sim_who:who()}
    | {partition, [atoll_sim_who:who(), ...]}
    | {cut, From :: atoll_sim_who:who(), To :: atoll_sim_who:who()}
    | {cut, From :: atoll_sim_who:who(), To :: atoll_sim_who:who(), ms()}
    | {black_hole, atoll_sim_who:who(), atoll_sim_who:who()}
    | {black_hole, atoll_sim_who:who(), atoll_sim_who:who(), ms()}
    | {delay, From :: atoll_sim_who:who(), To :: atoll_sim_who:who(), ms()}
    | {bulk, From :: atoll_sim_who:who(), To :: atoll_sim_who:who(), 0 | atoll_sim_bulk:rate()}
    | {lane, atoll_sim_who:who(), atoll_sim_who:who(), Number :: 0..63, cut | black_hole}
    | heal
    | {loss, share()}
    | {loss, From :: atoll_sim_who:who(), To :: atoll_sim_who:who(), share()}
    | {duplicate, share()}
    | {reorder, share(), ms()}
    | {latency, atoll_sim_net:latency()}
    | {slow, atoll_sim_who:who(), PerEvent :: ms()}
    | {churn, PerSecond :: share(), For :: ms()}
    | {kill_process, atoll_sim_who:who(), what() | [{Weight :: number(), what()}, ...]}
    | {group, atoll_sim_who:who(), operation(atoll_sim_who:who())}
    | {name, atoll_sim_who:who(), atoll_sim_node:name_operation()}
    | {broadcast, atoll_sim_who:who(), Count :: pos_integer(), Every :: ms()}
    | {expect, expectation()}
    | {every, atoll_sim_pace:pace(ms()), For :: ms(), step()}
    | {one_of, [{Weight :: number(), step()}, ...]}.

-type expectation() ::
    {connected, share()}
    | {delivered, share()}
    | symmetric
    | {neighbours, Min :: non_neg_integer(), Max :: non_neg_integer()}
    | {no, false_death}
    | members
    | reachable
    | groups
    | names
    | {group, Group :: atom(), atoll_sim_who:who()}
    | {name, Group :: atom(), Name :: term(), atoll_sim_who:who()}
    | {no, {group, Group :: atom()} | {name, Group :: atom(), Name :: term()}}.

-type what() ::
    {name, atom()}
    | {supervisor, atom()}
    | {module, module()}
    | {application, atom()}
    | {any_name, scope()}
    | any.

-type scope() :: {group, Group :: atom()} | global.
%% Where names are.

-type operation(Nodes) ::
    {new | add | remove, Group :: atom(), Nodes} | {delete, Group :: atom()}.

-type kind() ::
    who | parts | memory | time | span | share | latency | count | expectation | what | operation | name_operation | lane | lane_fault | rate
    | pace | step | steps.

-type reason() :: {unknown_step, term()} | {in_step, term(), part()}.

-type part() ::
    {arguments, [string()]}
    | {who, term()}
    | {number, pos_integer(), Nodes :: pos_integer()}
    | {must, Must :: string(), term()}.

%% Steps. What they are made of, by name; the checked step has its times in
%% milliseconds.

shapes() ->
    [
        {start, [[who]]},
        {kill, [[who]]},
        {restart, [[who, memory]]},
        {source, [[who]]},
        {leave, [[who]]},
        {pause, [[who], [who, time]]},
        {stall, [[who], [who, time]]},
        {resume, [[who]]},
        {partition, [[parts]]},
        {cut, [[who, who], [who, who, time]]},
        {black_hole, [[who, who], [who, who, time]]},
        {delay, [[who, who, time]]},
        {bulk, [[who, who, rate]]},
        {lane, [[who, who, lane, lane_fault]]},
        {heal, [[]]},
        {loss, [[share], [who, who, share]]},
        {duplicate, [[share]]},
        {reorder, [[share, span]]},
        {latency, [[latency]]},
        {slow, [[who, time]]},
        {churn, [[share, time]]},
        {kill_process, [[who, what]]},
        {group, [[who, operation]]},
        {name, [[who, name_operation]]},
        {broadcast, [[who, count, time]]},
        {expect, [[expectation]]},
        {every, [[pace, span, step]]},
        {one_of, [[steps]]}
    ].

%% @doc Checks a step in a cluster of so many nodes; its times become milliseconds.
-spec check(term(), Nodes :: pos_integer()) -> {ok, step()} | {error, reason()}.
check(Step, Nodes) ->
    caught(fun() -> step(Step, Nodes) end).

%% A check throws what is wrong.
caught(Check) ->
    try
        {ok, Check()}
    catch
        throw:{bad, Reason} -> {error, Reason}
    end.

-spec bad(reason()) -> no_return().
bad(Reason) ->
    throw({bad, Reason}).

step(Step, Nodes) ->
    {Name, Arguments} = parts_of(Step),
    case lists:keyfind(Name, 1, shapes()) of
        {Name, Shapes} ->
            case [Shape || Shape <- Shapes, length(Shape) =:= length(Arguments)] of
                [Shape] ->
                    Checked = [
                        argument(Kind, A, Step, Nodes)
                     || {Kind, A} <- lists:zip(Shape, Arguments)
                    ],
                    whole(Name, Checked);
                [] ->
                    bad({in_step, Step, {arguments, [shape(Name, Shape) || Shape <- Shapes]}})
            end;
        false ->
            bad({unknown_step, Step})
    end.

parts_of(Step) when is_tuple(Step), tuple_size(Step) > 0 ->
    [Name | Arguments] = tuple_to_list(Step),
    {Name, Arguments};
parts_of(Step) ->
    {Step, []}.

whole(Name, []) -> Name;
whole(Name, Arguments) -> list_to_tuple([Name | Arguments]).

shape(Name, []) ->
    atom_to_list(Name);
shape(Name, Kinds) ->
    lists:flatten(["{", lists:join(", ", [atom_to_list(Name) | [word(Kind) || Kind <- Kinds]]), "}"]).

word(who) -> "Who";
word(parts) -> "[Who]";
word(memory) -> "fresh | remembered | alone";
word(time) -> "Time";
word(span) -> "Time";
word(share) -> "Share";
word(latency) -> "Distribution";
word(count) -> "Count";
word(expectation) -> "Expectation";
word(what) -> "What";
word(operation) -> "Operation";
word(name_operation) -> "Operation";
word(rate) -> "Rate";
word(lane) -> "Number";
word(lane_fault) -> "cut | black_hole";
word(pace) -> "Pace";
word(step) -> "Step";
word(steps) -> "[{Weight, Step}]".

argument(who, Who, Step, Nodes) ->
    who(Who, Step, Nodes);
argument(parts, Parts, Step, Nodes) ->
    is_list_of(fun(_) -> true end, Parts) orelse bad({in_step, Step, {must, must(parts), Parts}}),
    [who(Who, Step, Nodes) || Who <- Parts];
argument(time, Time, Step, _Nodes) ->
    case time(Time) of
        {ok, Ms} -> Ms;
        error -> bad({in_step, Step, {must, must(time), Time}})
    end;
argument(span, Time, Step, _Nodes) ->
    case span(Time) of
        {ok, Ms} -> Ms;
        error -> bad({in_step, Step, {must, must(span), Time}})
    end;
argument(pace, Term, Step, _Nodes) ->
    case atoll_sim_pace:read(Term, fun span/1) of
        {ok, Pace} -> Pace;
        error -> bad({in_step, Step, {must, must(pace), Term}})
    end;
argument(step, Inner, Step, Nodes) ->
    {Name, _} = parts_of(Inner),
    lists:member(Name, [heal, every]) andalso bad({in_step, Step, {must, must(step), Inner}}),
    step(Inner, Nodes);
argument(steps, Weighted, Step, Nodes) ->
    is_list_of(fun({Weight, _}) -> is_weight(Weight); (_) -> false end, Weighted) orelse bad({in_step, Step, {must, must(steps), Weighted}}),
    [{Weight, argument(step, Inner, Step, Nodes)} || {Weight, Inner} <- Weighted];
argument(operation, {Verb, Group, Who}, Step, Nodes) when
    is_atom(Group), Verb =:= new orelse Verb =:= add orelse Verb =:= remove
->
    {Verb, Group, who(Who, Step, Nodes)};
argument(expectation, {group, Group, Who}, Step, Nodes) when is_atom(Group) ->
    {group, Group, who(Who, Step, Nodes)};
argument(expectation, {name, Group, Name, Who}, Step, Nodes) when is_atom(Group) ->
    {name, Group, Name, who(Who, Step, Nodes)};
argument(Kind, Argument, Step, _Nodes) ->
    case is_a(Kind, Argument) of
        true -> Argument;
        false -> bad({in_step, Step, {must, must(Kind), Argument}})
    end.

who({nodes, From, To} = Who, Step, Nodes) when is_integer(From), is_integer(To), From > 0, To >= From ->
    case To =< Nodes of
        true -> Who;
        false -> bad({in_step, Step, {number, To, Nodes}})
    end;
who({random, N} = Who, _Step, _Nodes) when is_integer(N), N > 0 ->
    Who;
who({share, Share} = Who, Step, _Nodes) ->
    is_share(Share) orelse bad({in_step, Step, {must, must(share), Share}}),
    Who;
who(Who, _Step, _Nodes) when is_atom(Who) ->
    Who;
who(Who, Step, _Nodes) ->
    is_list_of(fun is_atom/1, Who) orelse bad({in_step, Step, {who, Who}}),
    Who.

is_a(memory, Memory) -> lists:member(Memory, [fresh, remembered, alone]);
is_a(share, Share) -> is_share(Share);
is_a(latency, Latency) -> is_latency(Latency);
is_a(count, Count) -> is_count(Count);
is_a(expectation, Expectation) -> is_expectation(Expectation);
is_a(what, What) -> is_what(What) orelse is_list_of(fun is_weighted/1, What);
is_a(operation, Operation) -> is_deletion(Operation);
is_a(name_operation, Operation) -> is_name_operation(Operation);
is_a(rate, Rate) -> Rate =:= full orelse (is_integer(Rate) andalso Rate >= 0);
is_a(lane, Number) -> is_integer(Number) andalso Number >= 0 andalso Number =< 63;
is_a(lane_fault, Fault) -> Fault =:= cut orelse Fault =:= black_hole.

%% @doc What may be done by a step, each time one of these.
-spec each(step()) -> [step(), ...].
each({every, _, _, Step}) -> each(Step);
each({one_of, Weighted}) -> lists:append([each(Step) || {_, Step} <- Weighted]);
each(Step) -> [Step].

%% @doc Whether something with that word, the first of its tuple, may be done by it.
-spec is_about(Word :: atom(), step()) -> boolean().
is_about(Word, Step) -> lists:any(fun(One) -> element(1, parts_of(One)) =:= Word end, each(Step)).

%% @doc For how long it goes on by itself.
-spec lasts(step()) -> ms().
lasts({every, _, Ms, Step}) -> Ms + lasts(Step);
lasts({one_of, Weighted}) -> lists:max([lasts(Step) || {_, Step} <- Weighted]);
lasts({churn, _, Ms}) -> Ms;
lasts({pause, _, Ms}) -> Ms;
lasts({broadcast, _, Count, Every}) -> Count * Every;
lasts(_) -> 0.

%% @doc What an expectation is about: what has to run on the nodes.
-spec about(expectation()) -> overlay | groups | directory.
about(reachable) -> directory;
about({no, false_death}) -> overlay;
about({Name, _, _}) when Name =:= neighbours -> overlay;
about({Name, _}) when Name =:= connected; Name =:= delivered -> overlay;
about(Word) when Word =:= symmetric; Word =:= members -> overlay;
about(_GroupsOrNames) -> groups.

%% @doc What something of this kind must be.
-spec must(kind()) -> string().
must(memory) -> "fresh, remembered or alone";
must(share) -> "a share from 0 to 1";
must(latency) ->
    "{constant, Ms}, {uniform, Min, Max}, {exponential, Mean}, {lognormal, Median, Sigma}, "
    "{regions, [[Ms]], Jitter} or regions";
must(count) -> "a whole number above 0";
must(time) -> "whole milliseconds or {N, ms | s | min}";
must(span) -> "a time of a millisecond or more";
must(parts) -> "a list of parts";
must(what) ->
    "{name, Name}, {supervisor, Name}, {module, Module}, {application, Name}, {any_name, {group, Group}}, "
    "{any_name, global}, any, or a list of {Weight, What}, each weight above 0";
must(pace) -> "a time of a millisecond or more, {ramp, Time, Time} or {jitter, Pace, Share}";
must(step) -> "a step other than heal and every";
must(steps) -> "a list of {Weight, Step}, each weight above 0";
must(rate) -> "a whole number of bytes a second, or full";
must(lane) -> "the number of a lane, from 0 to 63";
must(lane_fault) -> "cut or black_hole";
must(operation) ->
    "{new, Name, Nodes}, {add, Name, Nodes}, {remove, Name, Nodes} or {delete, Name}";
must(name_operation) ->
    "{register, Group, Name}, {re_register, Group, Name} or {unregister, Group, Name}";
must(expectation) ->
    "{connected, Share}, {delivered, Share}, symmetric, {neighbours, Min, Max}, {no, false_death}, members, reachable, "
    "groups, names, {group, Group, Who}, {name, Group, Name, Who}, {no, {group, Group}} or {no, {name, Group, Name}}".

%% @doc Whether a term is a share.
-spec is_share(term()) -> boolean().
is_share(Share) -> is_number(Share) andalso Share >= 0 andalso Share =< 1.

%% At least one, and no improper list.
is_list_of(Is, [Element | Rest]) -> Is(Element) andalso (Rest =:= [] orelse is_list_of(Is, Rest));
is_list_of(_Is, _) -> false.

is_count(N) -> is_integer(N) andalso N > 0.

is_latency(Latency) -> check_latency(Latency) =:= ok.

is_expectation({connected, Share}) -> is_share(Share);
is_expectation({delivered, Share}) -> is_share(Share);
is_expectation({neighbours, Min, Max}) -> is_integer(Min) andalso Min >= 0 andalso is_integer(Max) andalso Max >= Min;
is_expectation({no, false_death}) -> true;
is_expectation({no, {group, Group}}) -> is_atom(Group);
is_expectation({no, {name, Group, _Name}}) -> is_atom(Group);
is_expectation(Expectation) -> lists:member(Expectation, [symmetric, members, reachable, groups, names]).

is_what(any) -> true;
is_what({any_name, global}) -> true;
is_what({any_name, {group, Group}}) -> is_atom(Group);
is_what({Kind, Name}) -> lists:member(Kind, [name, supervisor, module, application]) andalso is_atom(Name);
is_what(_) -> false.

is_weighted({Weight, What}) -> is_weight(Weight) andalso is_what(What);
is_weighted(_) -> false.

is_weight(Weight) -> is_number(Weight) andalso Weight > 0.

is_deletion({delete, Name}) -> is_atom(Name);
is_deletion(_) -> false.

is_name_operation({Verb, Group, _Name}) -> lists:member(Verb, [register, re_register, unregister]) andalso is_atom(Group);
is_name_operation(_) -> false.

%% @doc Whether a term is a distribution of latencies, one way: `{constant, Ms}',
%% `{uniform, Min, Max}', `{exponential, Mean}', `{lognormal, Median, Sigma}', `{regions,
%% Rows, Jitter}' with a square of milliseconds, or `regions', four that are built in.
-spec check_latency(term()) -> ok | error.
check_latency(regions) -> ok;
check_latency({constant, Ms}) when is_integer(Ms), Ms >= 0 -> ok;
check_latency({uniform, Min, Max}) when is_integer(Min), is_integer(Max), 0 =< Min, Min =< Max -> ok;
check_latency({exponential, Mean}) when is_number(Mean), Mean > 0 -> ok;
check_latency({lognormal, Median, Sigma}) when
    is_number(Median), Median > 0, is_number(Sigma), Sigma >= 0, Sigma =< 10
->
    ok;
check_latency({regions, Rows, Jitter}) when is_number(Jitter), Jitter >= 0 ->
    IsMs = fun(Ms) -> is_number(Ms) andalso Ms >= 0 end,
    IsRow = fun(Row) -> is_list_of(IsMs, Row) end,
    case is_list_of(IsRow, Rows) andalso [length(Row) || Row <- Rows] =:= [length(Rows) || _ <- Rows] of
        true -> ok;
        false -> error
    end;
check_latency(_) ->
    error.

%% @doc A time in milliseconds.
-spec time(term()) -> {ok, ms()} | error.
time(Ms) when is_integer(Ms), Ms >= 0 -> {ok, Ms};
time({N, Unit}) when is_number(N), N >= 0 -> time(N, Unit);
time(_) -> error.

time(N, ms) -> {ok, round(N)};
time(N, s) -> {ok, round(1000 * N)};
time(N, min) -> {ok, round(60000 * N)};
time(_, _) -> error.

span(Time) ->
    case time(Time) of
        {ok, 0} -> error;
        Read -> Read
    end.

%% @doc The nodes that a step names.
-spec names(step()) -> [node()].
names(Step) ->
    [Name || One <- each(Step), Who <- whos(One), Name <- named(Who)].

whos(Step) ->
    {Name, Arguments} = parts_of(Step),
    {Name, Shapes} = lists:keyfind(Name, 1, shapes()),
    [Shape] = [Shape || Shape <- Shapes, length(Shape) =:= length(Arguments)],
    lists:append([
        case Kind of
            who -> [Argument];
            parts -> Argument;
            operation when tuple_size(Argument) =:= 3 -> [element(3, Argument)];
            expectation when is_tuple(Argument) -> who_of(Argument);
            _ -> []
        end
     || {Kind, Argument} <- lists:zip(Shape, Arguments)
    ]).

who_of({group, _, Who}) -> [Who];
who_of({name, _, _, Who}) -> [Who];
who_of(_) -> [].

named(Who) when is_list(Who) -> Who;
named(Who) when is_atom(Who) -> [Who || not lists:member(Who, [all, alive, dead, contacts])];
named(_Who) -> [].

%% @doc One sentence for what is wrong.
-spec format_error(reason()) -> unicode:chardata().
format_error({unknown_step, Step}) ->
    Names = [atom_to_list(Name) || {Name, _} <- shapes()],
    ["there is no step ", short(Step), "; there are ", lists:join(", ", Names)];
format_error({in_step, Step, Part}) ->
    ["in ", short(Step), ": ", part(Part)].

part({arguments, Shapes}) ->
    ["it is written ", lists:join(" or ", Shapes)];
part({who, Who}) ->
    [
        short(Who),
        " says not which nodes; that is a name, a list of names, all, alive, dead, contacts, "
        "{random, N}, {share, S} or {nodes, From, To}"
    ];
part({number, Number, Nodes}) ->
    io_lib:format("there is no node number ~b, there are ~b", [Number, Nodes]);
part({must, Must, Value}) ->
    ["this must be ", Must, ", not ", short(Value)].

%% @doc A term on one line, no longer than can be read.
-spec short(term()) -> string().
short(Term) ->
    Text = unicode:characters_to_list(iolist_to_binary(atoll_sim_term:text(Term))),
    case length(Text) > 80 of
        true -> lists:sublist(Text, 77) ++ "...";
        false -> Text
    end.
