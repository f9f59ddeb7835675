%% SPDX-License-Identifier: Apache-2.0
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
%% What the steps are, and what each means, stands in {@link atoll_sim_step}; whom
%% they happen to, in {@link atoll_sim_who}.
%%
%% A script always heals: whoever runs one does `heal' after its last step and
%% lets the cluster settle, so that nothing is left broken and what is said of
%% the end is said of a healthy network.
-module(atoll_sim_script).

-export([read/1, parse/1, check/1, check_names/2, ms/1, format_error/1]).

-export_type([script/0, cluster/0, timed/0, error/0, place/0, reason/0]).

-type script() :: #{
    cluster := cluster(),
    %% The keys of the cluster that the script itself gives.
    given := [atom()],
    steps := [timed()]
}.

-type timed() :: {atoll_sim_step:ms(), atoll_sim_step:step(), place()}.
%% When, since the beginning; what; and where the script says so.

-type place() :: {line, pos_integer()} | {term, pos_integer()}.

%% What the script begins with. All keys are there when it was checked.
-type cluster() :: #{
    nodes := pos_integer(),
    strategy := atom(),
    %% How many nodes, the first ones, others join by.
    contacts := pos_integer(),
    %% How it hears of them: see atoll_sim_cluster.
    formed := atoll_sim_cluster:formed(),
    %% Which of them start at time 0, or as soon after it as so many can.
    start := atoll_sim_who:who(),
    latency := atoll_sim_net:latency(),
    %% Bytes that a link carries in a second, and that its queue holds.
    rate := pos_integer(),
    queue := pos_integer(),
    loss := atoll_sim_step:share(),
    duplicate := atoll_sim_step:share(),
    seed := integer(),
    %% Options of the strategy and of the other parts of the overlay.
    options := map(),
    detector := atoll_detector:spec(),
    broadcast := map() | off,
    discovery := map() | off,
    roster := map() | off,
    %% Whether groups and names run beside it, and with them the directory.
    groups := on | off,
    directory := off | on | atoll_directory:options()
}.

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
    | {backwards, atoll_sim_step:ms(), atoll_sim_step:ms()}
    | {no_time, term()}
    | {unknown_key, term()}
    | {bad_value, atom(), Must :: string(), term()}
    | {strategy, atoll_options:error()}
    | {unknown_option, Of :: atom(), module(), Key :: term()}
    | {bad_option, Of :: atom(), atoll_options:error()}
    | {endless_option, Of :: atom(), {Key :: term(), term()}}
    | {step, atoll_sim_step:reason()}
    | own_contacts
    | directory_without_groups
    %% What it is about does not run.
    | {off, groups | directory | roster, atoll_sim_step:step()}
    | {no_source, atoll_sim_step:step()}
    | {no_node, node()}
    %% It is right, but cannot be done where it is to run.
    | {refused, Step :: term(), Why :: string()}.

%% A file that is larger, or longer, is no script that somebody wrote.
-define(MAX_BYTES, 1000000).
-define(MAX_TERMS, 100000).
%% As on the command line.
-define(MAX_NODES, 100000).
-define(MAX_SEED, 1000000000).
-define(PARTS, [
    {broadcast, atoll_plumtree}, {discovery, atoll_discovery}, {roster, atoll_roster}
]).

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
    at(Place, fun() -> cluster(Given) end, fun(Cluster) -> steps(Placed, Cluster, lists:sort(maps:keys(Given))) end);
check_placed(Placed) ->
    steps(Placed, defaults(), []).

steps(Placed, Cluster, Given) ->
    case steps(Placed, Cluster, 0, []) of
        {ok, Steps} -> {ok, #{cluster => Cluster, given => Given, steps => Steps}};
        {error, _} = Error -> Error
    end.

steps([], _Cluster, _Last, Steps) ->
    {ok, lists:reverse(Steps)};
steps([{Place, Term} | Placed], Cluster, Last, Steps) ->
    at(
        Place,
        fun() -> timed(Term, Last, Steps, Cluster) end,
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

timed({at, Time, Step}, Last, _Before, Cluster) ->
    case atoll_sim_step:time(Time) of
        {ok, Ms} when Ms >= Last -> {Ms, step(Step, Cluster)};
        {ok, Ms} -> bad({backwards, Last, Ms});
        error -> bad({no_time, Time})
    end;
timed({then, Time, Step}, Last, _Before, Cluster) ->
    case atoll_sim_step:time(Time) of
        {ok, Ms} -> {Last + Ms, step(Step, Cluster)};
        error -> bad({no_time, Time})
    end;
timed({cluster, _}, _Last, [], _Cluster) ->
    bad(second_cluster);
timed({cluster, _}, _Last, _Before, _Cluster) ->
    bad(late_cluster);
timed(_Term, _Last, _Before, _Cluster) ->
    bad(not_a_term_of_a_script).

step(Step, #{nodes := Nodes, formed := Formed} = Cluster) ->
    case atoll_sim_step:check(Step, Nodes) of
        {ok, Checked} ->
            lists:foreach(
                fun
                    ({source, _} = Source) when Formed =/= source -> bad({no_source, Source});
                    (One) -> ok = runs(One, Cluster)
                end,
                atoll_sim_step:each(Checked)
            ),
            Checked;
        {error, Reason} ->
            bad({step, Reason})
    end.

%% Whether what it is about runs on the nodes.
runs(Step, #{groups := Groups, directory := Directory, roster := Roster}) ->
    About =
        case Step of
            {group, _, _} -> groups;
            {name, _, _} -> groups;
            {kill_process, _, What} -> about_what(What);
            %% Without a list of members a node would name its neighbours.
            {expect, members} -> roster;
            {expect, Expectation} -> atoll_sim_step:about(Expectation);
            _ -> overlay
        end,
    case About of
        groups when Groups =:= off -> bad({off, groups, Step});
        directory when Directory =:= off -> bad({off, directory, Step});
        roster when Roster =:= off -> bad({off, roster, Step});
        _ -> ok
    end.

about_what({any_name, {group, _}}) -> groups;
about_what([{_, {any_name, {group, _}}} | _]) -> groups;
about_what([_ | Weighted]) -> about_what(Weighted);
about_what(_) -> overlay.

%% The cluster

defaults() ->
    Cluster = maps:without([starts_per_s, settle_ms, progress, told, full_rosters], atoll_sim_cluster:defaults()),
    Cluster#{nodes => 100, groups => on, start => all, loss => 0.0, duplicate => 0.0}.

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
    #{start := Who} = Cluster = maps:merge(defaults(), Given),
    _ = step({start, Who}, Cluster),
    ok = strategy(Cluster),
    ok = detector(map_get(detector, Cluster)),
    lists:foreach(fun({Part, Module}) -> part(Part, Module, map_get(Part, Cluster)) end, ?PARTS),
    ok = directory(Cluster),
    Cluster;
cluster(Given) ->
    bad({bad_value, cluster, "a map", Given}).

cluster_keys() ->
    [
        {nodes, "a whole number from 1 to 100,000", fun(N) -> is_count(N) andalso N =< ?MAX_NODES end},
        {strategy, "the name of a strategy", fun is_atom/1},
        {contacts, "a whole number above 0", fun is_count/1},
        {formed, "listed, join or source", fun(F) -> lists:member(F, [listed, join, source]) end},
        {start, "those who start at time 0", fun(_) -> true end},
        {latency, atoll_sim_step:must(latency), fun(L) -> atoll_sim_step:check_latency(L) =:= ok end},
        {rate, "a whole number of bytes a second above 0", fun is_count/1},
        {queue, "a whole number of bytes above 0", fun is_count/1},
        {loss, atoll_sim_step:must(share), fun atoll_sim_step:is_share/1},
        {duplicate, atoll_sim_step:must(share), fun atoll_sim_step:is_share/1},
        {seed, "a whole number from 0 to 1,000,000,000", fun is_seed/1},
        {options, "a map", fun is_map/1},
        {detector, "a map, off, Module or {Module, Map}", fun is_detector/1},
        {broadcast, "a map or off", fun is_map_or_off/1},
        {discovery, "a map or off", fun is_map_or_off/1},
        {roster, "a map or off", fun is_map_or_off/1},
        {groups, "on or off", fun(G) -> G =:= on orelse G =:= off end},
        {directory, "a map, on or off", fun(D) -> D =:= on orelse is_map_or_off(D) end}
    ].

is_count(N) -> is_integer(N) andalso N > 0.

is_seed(N) -> is_integer(N) andalso N >= 0 andalso N =< ?MAX_SEED.

is_detector({Name, Options}) -> is_atom(Name) andalso is_map(Options);
is_detector(Detector) -> is_map(Detector) orelse is_atom(Detector).

is_map_or_off(Options) -> is_map(Options) orelse Options =:= off.

strategy(#{strategy := Name, options := Given}) ->
    case atoll_strategy:module(Name) of
        {ok, Module} -> options(Name, Module, Given);
        {error, Error} -> bad({strategy, Error})
    end.

detector(off) -> ok;
detector(#{} = Given) -> detector({watchers, Given});
detector({Name, Given}) ->
    case atoll_detector:module(Name) of
        {ok, Module} -> options(detector, Module, Given);
        {error, Error} -> bad({bad_option, detector, Error})
    end;
detector(Name) -> detector({Name, #{}}).

directory(#{directory := off}) -> ok;
directory(#{groups := off}) -> bad(directory_without_groups);
directory(#{directory := on}) -> ok;
directory(#{directory := Given}) -> part(directory, atoll_directory, Given).

part(_Part, _Module, off) -> ok;
part(discovery, _Module, #{contacts := _}) -> bad(own_contacts);
part(Part, Module, Given) -> options(Part, Module, Given).

options(Of, Module, Given) ->
    Endless = [{Key, Value} || {Key, [_ | _] = Value} <- maps:to_list(Given), not is_proper(Value)],
    case Endless =:= [] andalso atoll_options:complete(Module, Given) of
        {ok, _} -> ok;
        {error, {bad_option, Key, unknown}} -> bad({unknown_option, Of, Module, Key});
        {error, Error} -> bad({bad_option, Of, Error});
        false -> bad({endless_option, Of, hd(lists:sort(Endless))})
    end.

is_proper([_ | Rest]) -> is_proper(Rest);
is_proper(End) -> End =:= [].

%% @doc Whether all nodes that a script names are among these; their names are
%% known only where it runs.
-spec check_names(script(), [node()]) -> ok | {error, error()}.
check_names(#{cluster := #{start := Who}, steps := Steps}, Nodes) ->
    Known = maps:from_keys(Nodes, []),
    Strange = [
        {Place, Name}
     || {_Ms, Step, Place} <- [{0, {start, Who}, none} | Steps],
        Name <- atoll_sim_step:names(Step),
        not is_map_key(Name, Known)
    ],
    case Strange of
        [] -> ok;
        [{Place, Name} | _] -> {error, {none, Place, {no_node, Name}}}
    end.

%% Times of a script that was checked are whole.
-dialyzer({nowarn_function, ms/1}).

%% @doc How long it takes, from its beginning until nothing more of it comes.
-spec ms(script()) -> atoll_sim_step:ms().
ms(#{steps := Steps}) ->
    lists:max([0 | [Ms + atoll_sim_step:lasts(Step) || {Ms, Step, _} <- Steps]]).

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
    ["a time is ", atoll_sim_step:must(time), ", not ", atoll_sim_step:short(Time)];
reason({unknown_key, Key}) ->
    Keys = [atom_to_list(Name) || {Name, _, _} <- cluster_keys()],
    ["a cluster has no ", atoll_sim_step:short(Key), "; it has ", lists:join(", ", Keys)];
reason({bad_value, Key, Must, Value}) ->
    [atom_to_list(Key), " must be ", Must, ", not ", atoll_sim_step:short(Value)];
reason({strategy, Error}) ->
    atoll_options:format_error(Error);
reason({unknown_option, Of, Module, Key}) ->
    Known = [atom_to_list(Name) || Name <- lists:sort(maps:keys(Module:options()))],
    [atom_to_list(Of), " has no option ", atoll_sim_step:short(Key) | it_has(Known)];
reason({bad_option, Of, Error}) ->
    [atom_to_list(Of), ": ", atoll_options:format_error(Error)];
reason({endless_option, Of, {Key, Value}}) ->
    [
        atom_to_list(Of), ": the option ", atoll_sim_step:short(Key), " must be a list with an end, not ",
        atoll_sim_step:short(Value)
    ];
reason(own_contacts) ->
    "discovery has the contacts of the cluster; contacts stands beside it";
reason(directory_without_groups) ->
    "the directory tells of groups, and takes groups => on";
reason({off, Part, Step}) ->
    ["in ", atoll_sim_step:short(Step), ": it is about the ", atom_to_list(Part), ", and the cluster has ", atom_to_list(Part), " => off"];
reason({no_source, Step}) ->
    ["in ", atoll_sim_step:short(Step), ": nodes read no source of contacts; they do with formed => source in the cluster"];
reason({step, Reason}) ->
    atoll_sim_step:format_error(Reason);
reason({refused, Step, Why}) ->
    ["in ", atoll_sim_step:short(Step), ": ", Why];
reason({no_node, Name}) ->
    io_lib:format("there is no node ~tw", [Name]).

it_has([]) -> ", nor any other";
it_has(Known) -> ["; it has ", lists:join(", ", Known)].
