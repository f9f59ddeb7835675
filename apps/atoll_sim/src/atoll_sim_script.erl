%% @doc The fault script: what happens to a cluster, and when, as data.
%%
%% A script is a file of Erlang terms. They are read, never evaluated:
%% ```
%% {cluster, #{nodes => 200, strategy => hyparview, contacts => 5}}.
%% {at, {30, s}, {kill, {share, 0.5}}}.
%% {then, {20, s}, {expect, {connected, 1.0}}}.
%% '''
%% `{cluster, Map}' says what the script begins with; it comes first, at most
%% once, and may be missing. `{at, Time, Step}' does a step at a time since the
%% beginning, `{then, Time, Step}' so long after the term before it. A time is
%% whole milliseconds or `{N, ms | s | min}'. Times do not go backwards; steps of
%% one time happen in the order of the file.
%%
%% Steps:
%% <dl>
%% <dt>`{start, Who}'</dt><dd>nodes that do not run start for the first time, or as
%%   if it were. A choice is among those that do not run.</dd>
%% <dt>`{kill, Who}'</dt><dd>they crash; the operating system closes their sockets.</dd>
%% <dt>`{restart, Who, fresh | remembered}'</dt><dd>they start again, without or with
%%   what they knew of others; those that run crash first.</dd>
%% <dt>`{leave, Who}'</dt><dd>they part from the cluster and stop.</dd>
%% <dt>`{pause, Who}', `{pause, Who, Time}', `{resume, Who}'</dt><dd>they do nothing
%%   for that time, or until they are resumed; their sockets stay open.</dd>
%% <dt>`{partition, [Who]}'</dt><dd>nothing passes between the parts. Nodes that are
%%   in none of them are one further part. A node that is named in several belongs
%%   to the first, and a choice is among those not yet in a part. It replaces an
%%   earlier partition.</dd>
%% <dt>`{cut, From, To}'</dt><dd>nothing passes from these to those; the other way it
%%   does.</dd>
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
%% <dt>`{broadcast, Who, Count, Time}'</dt><dd>each of them broadcasts so many
%%   messages, one each so long.</dd>
%% <dt>`heal'</dt><dd>takes back what steps did to the network and to the pace of
%%   nodes: partitions, cuts, loss, duplicates, reordering and latencies are as in
%%   the beginning, the slow are quick, the paused resume, churn ends. The dead
%%   stay dead.</dd>
%% <dt>`{expect, Expectation}'</dt><dd>the run fails unless this holds now:
%%   `{connected, Share}' of the living nodes are in one part; `{delivered, Share}'
%%   of the broadcasts so far reached the nodes that had a neighbour before they
%%   were sent and live still; `symmetric', no living node names a living neighbour that does
%%   not name it; `{no, false_death}', no living node was declared dead.</dd>
%% </dl>
%%
%% Who: a node's name, a list of names, `all', `alive', `dead', `contacts',
%% `{random, N}' or `{share, S}' of those that live, `{nodes, From, To}' by number,
%% the first node being 1. A step passes over nodes to which it cannot happen.
%%
%% A script always heals: whoever runs one does `heal' after its last step and
%% lets the cluster settle, so that nothing is left broken and what is said of
%% the end is said of a healthy network.
-module(atoll_sim_script).

-export([
    read/1, parse/1, check/1, check_names/2, check_latency/1, format_error/1,
    to_text/1, resolve/4, targets/4, parts/4
]).

-export_type([
    script/0, cluster/0, timed/0, step/0, who/0, latency/0, expectation/0, ms/0, share/0,
    liveness/0, error/0, place/0, reason/0
]).

-type ms() :: non_neg_integer().
-type share() :: number().
%% From 0 to 1.

-type script() :: #{cluster := cluster(), steps := [timed()]}.

-type timed() :: {ms(), step(), place()}.
%% When, since the beginning; what; and where the script says so.

-type place() :: {line, pos_integer()} | {term, pos_integer()}.

%% What the script begins with. All keys are there when it was checked.
-type cluster() :: #{
    nodes := pos_integer(),
    strategy := atom(),
    %% How many nodes, the first ones, every node knows from its configuration.
    contacts := pos_integer(),
    %% Which of them start at time 0, or as soon after it as so many can.
    start := who(),
    latency := latency(),
    loss := share(),
    duplicate := share(),
    seed := integer(),
    %% Options of the strategy and of the other parts of the overlay.
    options := map(),
    detector := map() | off,
    broadcast := map() | off,
    discovery := map() | off
}.

-type step() ::
    {start, who()}
    | {kill, who()}
    | {restart, who(), fresh | remembered}
    | {leave, who()}
    | {pause, who()}
    | {pause, who(), ms()}
    | {resume, who()}
    | {partition, [who(), ...]}
    | {cut, From :: who(), To :: who()}
    | heal
    | {loss, share()}
    | {loss, From :: who(), To :: who(), share()}
    | {duplicate, share()}
    | {reorder, share(), ms()}
    | {latency, latency()}
    | {slow, who(), PerEvent :: ms()}
    | {churn, PerSecond :: share(), For :: ms()}
    | {broadcast, who(), Count :: pos_integer(), Every :: ms()}
    | {expect, expectation()}.

-type expectation() ::
    {connected, share()} | {delivered, share()} | symmetric | {no, false_death}.

-type who() ::
    node()
    | [node()]
    | all
    | alive
    | dead
    | contacts
    | {random, pos_integer()}
    | {share, share()}
    | {nodes, From :: pos_integer(), To :: pos_integer()}.

-type liveness() :: alive | dead.

-type latency() ::
    {constant, ms()}
    | {uniform, Min :: ms(), Max :: ms()}
    | {exponential, Mean :: number()}
    %% Sigma is that of the logarithm.
    | {lognormal, Median :: number(), Sigma :: number()}
    %% Round trips between and within regions, halved on the way, times a factor
    %% from 1 to 1 + Jitter. The hash of a node's name says in which region it is.
    | {regions, [[number(), ...], ...], Jitter :: number()}
    %% The same with four regions that are built in.
    | regions.

-type error() :: {file:filename_all() | none, place() | none, reason()}.

-type reason() ::
    {unreadable, file:posix() | badarg | terminated | system_limit}
    | too_large
    | not_utf8
    | {syntax, iolist()}
    | unfinished
    | too_many_terms
    | not_a_term_of_a_script
    | second_cluster
    | late_cluster
    | {backwards, ms(), ms()}
    | {no_time, term()}
    | {unknown_key, term()}
    | {bad_value, atom(), Must :: string(), term()}
    | {strategy, atoll_strategy:error()}
    | {unknown_step, term()}
    | {in_step, term(), part()}
    | {no_node, node()}.

-type part() ::
    {arguments, [string()]}
    | {who, term()}
    | {number, pos_integer(), Nodes :: pos_integer()}
    | {must, Must :: string(), term()}.

%% A file that is larger, or longer, is no script that somebody wrote.
-define(MAX_BYTES, 1000000).
-define(MAX_TERMS, 100000).

%% Reading

%% @doc Reads and checks a file.
-spec read(file:filename_all()) -> {ok, script()} | {error, error()}.
read(File) ->
    case read_file(File) of
        {ok, Bytes} ->
            case parse(Bytes) of
                {ok, Script} -> {ok, Script};
                {error, {none, Place, Reason}} -> {error, {File, Place, Reason}}
            end;
        {error, Reason} ->
            {error, {File, none, Reason}}
    end.

read_file(File) ->
    %% Never more than the bound, whatever the file is.
    case file:open(File, [read, raw, binary]) of
        {ok, Device} ->
            Read = file:read(Device, ?MAX_BYTES + 1),
            _ = file:close(Device),
            case Read of
                {ok, Bytes} when byte_size(Bytes) =< ?MAX_BYTES -> {ok, Bytes};
                {ok, _} -> {error, too_large};
                eof -> {ok, <<>>};
                {error, Reason} -> {error, {unreadable, Reason}}
            end;
        {error, Reason} ->
            {error, {unreadable, Reason}}
    end.

%% @doc Checks the text of a script, in UTF-8.
-spec parse(binary()) -> {ok, script()} | {error, error()}.
parse(Bytes) ->
    case unicode:characters_to_list(Bytes) of
        Text when is_list(Text) -> scanned(erl_scan:string(Text, 1));
        _ -> {error, {none, none, not_utf8}}
    end.

scanned({ok, Tokens, _End}) ->
    terms(Tokens, [], []);
scanned({error, {Line, Module, Description}, _End}) ->
    {error, {none, {line, Line}, {syntax, Module:format_error(Description)}}}.

%% The tokens of a term, in reverse, and the terms so far.
terms([], [], Placed) ->
    check_placed(lists:reverse(Placed));
terms([], Open, _Placed) ->
    {error, {none, {line, erl_scan:line(lists:last(Open))}, unfinished}};
terms([{dot, _} = Dot | Tokens], Open, Placed) ->
    Term = lists:reverse(Open, [Dot]),
    Line = erl_scan:line(hd(Term)),
    case erl_parse:parse_term(Term) of
        {ok, Parsed} -> terms(Tokens, [], [{{line, Line}, Parsed} | Placed]);
        {error, {At, Module, What}} -> {error, {none, {line, At}, {syntax, Module:format_error(What)}}}
    end;
terms([Token | Tokens], Open, Placed) ->
    terms(Tokens, [Token | Open], Placed).

%% @doc Checks terms that somebody has already read.
-spec check([term()]) -> {ok, script()} | {error, error()}.
check(Terms) ->
    check_placed([{{term, N}, Term} || {N, Term} <- lists:zip(lists:seq(1, length(Terms)), Terms)]).

check_placed(Placed) when length(Placed) > ?MAX_TERMS ->
    {error, {none, none, too_many_terms}};
check_placed([{Place, {cluster, Given}} | Placed]) ->
    at(Place, fun() -> cluster(Given) end, fun(Cluster) -> steps(Placed, Cluster, 0, []) end);
check_placed(Placed) ->
    steps(Placed, defaults(), 0, []).

steps([], Cluster, _Last, Steps) ->
    {ok, #{cluster => Cluster, steps => lists:reverse(Steps)}};
steps([{Place, Term} | Placed], Cluster, Last, Steps) ->
    at(
        Place,
        fun() -> timed(Term, Last, length(Steps), maps:get(nodes, Cluster)) end,
        fun({Ms, Step}) -> steps(Placed, Cluster, Ms, [{Ms, Step, Place} | Steps]) end
    ).

%% A check throws the reason; it is caught here, where the place is known.
at(Place, Check, Then) ->
    try Check() of
        Checked -> Then(Checked)
    catch
        throw:{bad, Reason} -> {error, {none, Place, Reason}}
    end.

-spec bad(reason()) -> no_return().
bad(Reason) ->
    throw({bad, Reason}).

timed({at, Time, Step}, Last, _Before, Nodes) ->
    case time(Time) of
        {ok, Ms} when Ms >= Last -> {Ms, step(Step, Nodes)};
        {ok, Ms} -> bad({backwards, Last, Ms});
        error -> bad({no_time, Time})
    end;
timed({then, Time, Step}, Last, _Before, Nodes) ->
    case time(Time) of
        {ok, Ms} -> {Last + Ms, step(Step, Nodes)};
        error -> bad({no_time, Time})
    end;
timed({cluster, _}, _Last, 0, _Nodes) ->
    bad(second_cluster);
timed({cluster, _}, _Last, _Before, _Nodes) ->
    bad(late_cluster);
timed(_Term, _Last, _Before, _Nodes) ->
    bad(not_a_term_of_a_script).

time(Ms) when is_integer(Ms), Ms >= 0 -> {ok, Ms};
time({N, Unit}) when is_number(N), N >= 0 -> time(N, Unit);
time(_) -> error.

time(N, ms) -> {ok, round(N)};
time(N, s) -> {ok, round(1000 * N)};
time(N, min) -> {ok, round(60000 * N)};
time(_, _) -> error.

%% The cluster

defaults() ->
    #{
        nodes => 100,
        strategy => hyparview,
        contacts => 5,
        start => all,
        latency => {uniform, 1, 20},
        loss => 0.0,
        duplicate => 0.0,
        seed => 1,
        options => #{},
        detector => #{},
        broadcast => #{},
        discovery => #{}
    }.

cluster(Given) when is_map(Given) ->
    Keys = cluster_keys(),
    case lists:sort([Key || Key <- maps:keys(Given), not lists:keymember(Key, 1, Keys)]) of
        [] -> ok;
        [Unknown | _] -> bad({unknown_key, Unknown})
    end,
    lists:foreach(
        fun({Key, Must, Holds}) ->
            case Given of
                #{Key := Value} -> Holds(Value) orelse bad({bad_value, Key, Must, Value});
                #{} -> true
            end
        end,
        Keys
    ),
    #{start := Who, nodes := Nodes} = Cluster = maps:merge(defaults(), Given),
    _ = who(Who, {start, Who}, Nodes),
    strategy(Cluster);
cluster(Given) ->
    bad({bad_value, cluster, "a map", Given}).

cluster_keys() ->
    [
        {nodes, "a whole number above 0", fun is_count/1},
        {strategy, "the name of a strategy", fun is_atom/1},
        {contacts, "a whole number above 0", fun is_count/1},
        {start, "those who start at time 0", fun(_) -> true end},
        {latency, must(latency), fun is_latency/1},
        {loss, must(share), fun is_share/1},
        {duplicate, must(share), fun is_share/1},
        {seed, "a whole number", fun is_integer/1},
        {options, "a map", fun is_map/1},
        {detector, "a map or off", fun is_map_or_off/1},
        {broadcast, "a map or off", fun is_map_or_off/1},
        {discovery, "a map or off", fun is_map_or_off/1}
    ].

strategy(#{strategy := Name, options := Options} = Cluster) ->
    case atoll_strategy:module(Name) of
        {ok, Module} when map_size(Options) > 0 ->
            case atoll_strategy:options(Module, Options) of
                {ok, _} -> Cluster;
                {error, Error} -> bad({strategy, Error})
            end;
        {ok, _} ->
            Cluster;
        {error, Error} ->
            bad({strategy, Error})
    end.

%% Steps. What they are made of, by name; the checked step has its times in
%% milliseconds.

shapes() ->
    [
        {start, [[who]]},
        {kill, [[who]]},
        {restart, [[who, memory]]},
        {leave, [[who]]},
        {pause, [[who], [who, time]]},
        {resume, [[who]]},
        {partition, [[parts]]},
        {cut, [[who, who]]},
        {heal, [[]]},
        {loss, [[share], [who, who, share]]},
        {duplicate, [[share]]},
        {reorder, [[share, time]]},
        {latency, [[latency]]},
        {slow, [[who, time]]},
        {churn, [[share, time]]},
        {broadcast, [[who, count, time]]},
        {expect, [[expectation]]}
    ].

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
word(memory) -> "fresh | remembered";
word(time) -> "Time";
word(share) -> "Share";
word(latency) -> "Distribution";
word(count) -> "Count";
word(expectation) -> "Expectation".

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

is_a(memory, Memory) -> Memory =:= fresh orelse Memory =:= remembered;
is_a(share, Share) -> is_share(Share);
is_a(latency, Latency) -> is_latency(Latency);
is_a(count, Count) -> is_count(Count);
is_a(expectation, Expectation) -> is_expectation(Expectation).

must(memory) -> "fresh or remembered";
must(share) -> "a share from 0 to 1";
must(latency) ->
    "{constant, Ms}, {uniform, Min, Max}, {exponential, Mean}, {lognormal, Median, Sigma}, "
    "{regions, [[RoundTripMs]], Jitter} or regions";
must(count) -> "a whole number above 0";
must(time) -> "whole milliseconds or {N, ms | s | min}";
must(parts) -> "a list of parts";
must(expectation) -> "{connected, Share}, {delivered, Share}, symmetric or {no, false_death}".

is_share(Share) -> is_number(Share) andalso Share >= 0 andalso Share =< 1.

%% At least one, and no improper list.
is_list_of(Is, [Element | Rest]) -> Is(Element) andalso (Rest =:= [] orelse is_list_of(Is, Rest));
is_list_of(_Is, _) -> false.

is_count(N) -> is_integer(N) andalso N > 0.

is_map_or_off(Options) -> is_map(Options) orelse Options =:= off.

is_latency(Latency) -> check_latency(Latency) =:= ok.

is_expectation({connected, Share}) -> is_share(Share);
is_expectation({delivered, Share}) -> is_share(Share);
is_expectation(Expectation) -> Expectation =:= symmetric orelse Expectation =:= {no, false_death}.

%% @doc Whether a term is a distribution of latencies.
-spec check_latency(term()) -> ok | error.
check_latency(regions) -> ok;
check_latency({constant, Ms}) when is_integer(Ms), Ms >= 0 -> ok;
check_latency({uniform, Min, Max}) when is_integer(Min), is_integer(Max), 0 =< Min, Min =< Max -> ok;
check_latency({exponential, Mean}) when is_number(Mean), Mean > 0 -> ok;
check_latency({lognormal, Median, Sigma}) when is_number(Median), Median > 0, is_number(Sigma), Sigma >= 0, Sigma =< 10 -> ok;
check_latency({regions, Rows, Jitter}) when is_number(Jitter), Jitter >= 0 ->
    IsRoundTrip = fun(Ms) -> is_number(Ms) andalso Ms >= 0 end,
    IsRow = fun(Row) -> is_list_of(IsRoundTrip, Row) end,
    case is_list_of(IsRow, Rows) andalso [length(Row) || Row <- Rows] =:= [length(Rows) || _ <- Rows] of
        true -> ok;
        false -> error
    end;
check_latency(_) ->
    error.

%% @doc Whether all nodes that a script names are among these; their names are
%% known only where it runs.
-spec check_names(script(), [node()]) -> ok | {error, error()}.
check_names(#{steps := Steps}, Nodes) ->
    Known = maps:from_keys(Nodes, []),
    Strange = [
        {Place, Name}
     || {_Ms, Step, Place} <- Steps, Who <- whos(Step), Name <- names(Who), not is_map_key(Name, Known)
    ],
    case Strange of
        [] -> ok;
        [{Place, Name} | _] -> {error, {none, Place, {no_node, Name}}}
    end.

whos(Step) ->
    {Name, Arguments} = parts_of(Step),
    {Name, Shapes} = lists:keyfind(Name, 1, shapes()),
    [Shape] = [Shape || Shape <- Shapes, length(Shape) =:= length(Arguments)],
    lists:append([
        case Kind of
            who -> [Argument];
            parts -> Argument;
            _ -> []
        end
     || {Kind, Argument} <- lists:zip(Shape, Arguments)
    ]).

names(Who) when is_list(Who) -> Who;
names(Who) when is_atom(Who) -> [Who || not lists:member(Who, [all, alive, dead, contacts])];
names(_Who) -> [].

%% Who

%% @doc The nodes that `Who' means, in the order of `Nodes', which is that of
%% their numbers. Choices are among the living. Names that are not there mean
%% nobody.
-spec resolve(who(), [{node(), liveness()}], [node()], rand:state()) -> {[node()], rand:state()}.
resolve(Who, Nodes, Contacts, Rand) ->
    resolve(Who, alive, Nodes, Contacts, Rand).

%% @doc The nodes that a step happens to: of `Who', those to which it can. For
%% steps with one `Who'.
-spec targets(step(), [{node(), liveness()}], [node()], rand:state()) -> {[node()], rand:state()}.
targets(Step, Nodes, Contacts, Rand0) ->
    {Pool, Able} = able(element(1, Step)),
    {Chosen, Rand} = resolve(element(2, Step), Pool, Nodes, Contacts, Rand0),
    Liveness = maps:from_list(Nodes),
    {[Node || Node <- Chosen, lists:member(map_get(Node, Liveness), Able)], Rand}.

able(start) -> {dead, [dead]};
able(restart) -> {alive, [alive, dead]};
able(_) -> {alive, [alive]}.

%% @doc The parts of a partition; the last one may be that of all other nodes.
-spec parts([who()], [{node(), liveness()}], [node()], rand:state()) -> {[[node()]], rand:state()}.
parts(Whos, Nodes, Contacts, Rand0) ->
    {Parts, {Rest, Rand}} = lists:mapfoldl(
        fun(Who, {Free, Rand1}) ->
            {Chosen, Rand2} = resolve(Who, alive, Nodes, Free, Contacts, Rand1),
            Taken = maps:from_keys(Chosen, []),
            {Chosen, {[N || {Name, _} = N <- Free, not is_map_key(Name, Taken)], Rand2}}
        end,
        {Nodes, Rand0},
        Whos
    ),
    {[Part || Part <- Parts ++ [[Node || {Node, _} <- Rest]], Part =/= []], Rand}.

resolve(Who, Pool, Nodes, Contacts, Rand) ->
    resolve(Who, Pool, Nodes, Nodes, Contacts, Rand).

%% Of those that are free; numbers count among all.
resolve({random, N}, Pool, _Nodes, Free, _Contacts, Rand) ->
    Able = of_liveness(Pool, Free),
    choose(min(N, length(Able)), length(Able), Able, Rand);
resolve({share, Share}, Pool, _Nodes, Free, _Contacts, Rand) ->
    Able = of_liveness(Pool, Free),
    choose(round(Share * length(Able)), length(Able), Able, Rand);
resolve({nodes, From, To}, _Pool, Nodes, Free, _Contacts, Rand) ->
    {among([Node || {Node, _} <- lists:sublist(Nodes, From, To - From + 1)], Free), Rand};
resolve(all, _Pool, _Nodes, Free, _Contacts, Rand) ->
    {[Node || {Node, _} <- Free], Rand};
resolve(contacts, _Pool, _Nodes, Free, Contacts, Rand) ->
    {among(Contacts, Free), Rand};
resolve(Liveness, _Pool, _Nodes, Free, _Contacts, Rand) when Liveness =:= alive; Liveness =:= dead ->
    {of_liveness(Liveness, Free), Rand};
resolve(Names, _Pool, _Nodes, Free, _Contacts, Rand) when is_list(Names) ->
    {among(Names, Free), Rand};
resolve(Name, _Pool, _Nodes, Free, _Contacts, Rand) ->
    {among([Name], Free), Rand}.

of_liveness(Wanted, Nodes) ->
    [Node || {Node, Liveness} <- Nodes, Liveness =:= Wanted].

among(Names, Nodes) ->
    Wanted = maps:from_keys(Names, []),
    [Node || {Node, _} <- Nodes, is_map_key(Node, Wanted)].

%% Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2 S): keeps
%% the order, and every choice of so many is equally likely.
choose(0, _Left, _Nodes, Rand) ->
    {[], Rand};
choose(N, Left, [Node | Nodes], Rand0) ->
    {Drawn, Rand1} = rand:uniform_s(Left, Rand0),
    case Drawn =< N of
        true ->
            {Chosen, Rand} = choose(N - 1, Left - 1, Nodes, Rand1),
            {[Node | Chosen], Rand};
        false ->
            choose(N, Left - 1, Nodes, Rand1)
    end.

%% Text

%% @doc The text of a script; reading it gives the same script, on other lines.
-spec to_text(script()) -> iodata().
to_text(#{cluster := Cluster, steps := Steps}) ->
    Keys = [{Key, map_get(Key, Cluster)} || {Key, _, _} <- cluster_keys()],
    [
        "{cluster, #{\n    ",
        lists:join(",\n    ", [[atom_to_list(Key), " => ", atoll_sim_term:text(Value)] || {Key, Value} <- Keys]),
        "\n}}.\n"
        | [["{at, ", clock(Ms), ", ", atoll_sim_term:text(Step), "}.\n"] || {Ms, Step, _} <- Steps]
    ].

clock(Ms) when Ms > 0, Ms rem 60000 =:= 0 -> ["{", integer_to_list(Ms div 60000), ", min}"];
clock(Ms) when Ms > 0, Ms rem 1000 =:= 0 -> ["{", integer_to_list(Ms div 1000), ", s}"];
clock(Ms) -> integer_to_list(Ms).

%% @doc One sentence for an error, which begins with where it is.
-spec format_error(error()) -> unicode:chardata().
format_error({none, none, Reason}) ->
    reason(Reason);
format_error({File, none, Reason}) ->
    [file(File), ": ", reason(Reason)];
format_error({none, Place, Reason}) ->
    [place(Place), ": ", reason(Reason)];
format_error({File, {line, Line}, Reason}) ->
    [file(File), ":", integer_to_list(Line), ": ", reason(Reason)];
format_error({File, Place, Reason}) ->
    [file(File), ": ", place(Place), ": ", reason(Reason)].

file(File) -> io_lib:format("~ts", [File]).

place({Unit, N}) -> io_lib:format("~s ~b", [Unit, N]).

reason({unreadable, Reason}) ->
    io_lib:format("it cannot be read: ~ts", [file:format_error(Reason)]);
reason(too_large) ->
    io_lib:format("a script has at most ~b bytes", [?MAX_BYTES]);
reason(not_utf8) ->
    "a script is text in UTF-8";
reason({syntax, What}) ->
    io_lib:format("this is no Erlang term: ~ts", [What]);
reason(unfinished) ->
    "the term that begins here does not end with a full stop";
reason(too_many_terms) ->
    io_lib:format("a script has at most ~b terms", [?MAX_TERMS]);
reason(not_a_term_of_a_script) ->
    "a script is made of {cluster, Map}, {at, Time, Step} and {then, Time, Step}";
reason(second_cluster) ->
    "there is a cluster already";
reason(late_cluster) ->
    "the cluster must come before all steps";
reason({backwards, Last, Ms}) ->
    io_lib:format("times do not go backwards, and ~b ms comes after ~b ms", [Ms, Last]);
reason({no_time, Time}) ->
    ["a time is ", must(time), ", not ", short(Time)];
reason({unknown_key, Key}) ->
    ["a cluster has no ", short(Key), "; it has ", words([Name || {Name, _, _} <- cluster_keys()])];
reason({bad_value, Key, Must, Value}) ->
    [atom_to_list(Key), " must be ", Must, ", not ", short(Value)];
reason({strategy, Error}) ->
    atoll_strategy:format_error(Error);
reason({unknown_step, Step}) ->
    ["there is no step ", short(Step), "; there are ", words([Name || {Name, _} <- shapes()])];
reason({in_step, Step, Part}) ->
    ["in ", short(Step), ": ", part(Part)];
reason({no_node, Name}) ->
    io_lib:format("there is no node ~tw", [Name]).

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

words(Names) ->
    lists:join(", ", [atom_to_list(Name) || Name <- Names]).

%% On one line, and no longer than can be read.
short(Term) ->
    Text = unicode:characters_to_list(iolist_to_binary(atoll_sim_term:text(Term))),
    case length(Text) > 80 of
        true -> [lists:sublist(Text, 77), "..."];
        false -> Text
    end.
