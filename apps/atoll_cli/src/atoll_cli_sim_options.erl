%% @doc What the experiments of the simulator have in common on the command
%% line: which cluster is simulated, and the line that repeats a run.
-module(atoll_cli_sim_options).

-export([shared/0, closing/0, seed/0, trace/0, cluster/1, again/3, quoted/1]).

-define(MAX_NODES, 100000).
%% Unless told, or unless there are fewer nodes.
-define(CONTACTS, 5).
-define(MAX_MS, 3600000).
-define(MAX_SEED, 1000000000).

%% @doc The options of a cluster, but for how many nodes it has unless told.
-spec shared() -> [atoll_cli_options:option()].
shared() ->
    [
        #{name => strategy, value => "NAME", default => "hyparview",
          help => [lists:join(", ", [atom_to_list(Name) || Name <- atoll_strategy:names()]),
                   ", or a module of your own"]},
        atoll_cli_strategy:code(),
        atoll_cli_strategy:option(),
        #{name => nodes, value => "N", default => "1000", read => atoll_cli_read:whole(2, ?MAX_NODES),
          help => "nodes of the cluster"},
        #{name => contacts, value => "N", read => atoll_cli_read:whole(1, ?MAX_NODES),
          help => "nodes that all others know from the start (5 unless told, or all if fewer)"},
        #{name => latency, value => "L", default => "uniform:1:20", read => atoll_cli_read:latency(),
          help => "constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA, regions"},
        #{name => roster, value => "on|off", default => "on", read => atoll_cli_read:one_of([on, off]),
          help => "whether every node knows all members, which takes a table of all on each"},
        #{name => settle, value => "MS", default => "60000", read => atoll_cli_read:whole(0, ?MAX_MS),
          help => "how long the cluster has to settle when all nodes have started"}
    ].

%% @doc The seed, without what it is unless told.
-spec seed() -> atoll_cli_options:option().
seed() ->
    #{name => seed, value => "N", read => atoll_cli_read:whole(0, ?MAX_SEED), help => "what all chance is drawn from"}.

%% @doc The options that stand last.
-spec closing() -> [atoll_cli_options:option()].
closing() ->
    [
        (seed())#{default => "1"},
        trace(),
        atoll_cli_json:switch()
    ].

%% @doc The option that says where a trace goes.
-spec trace() -> atoll_cli_options:option().
trace() ->
    #{name => trace, value => "FILE", help => "write what happens into this file, for \"atoll sim show\""}.

%% @doc The cluster that the options ask for; or what is wrong with them in
%% combination.
-spec cluster(atoll_cli_options:values()) ->
    {ok, atoll_sim_cluster:options()} | {error, unicode:chardata()}.
cluster(#{nodes := Nodes, contacts := Contacts}) when Contacts > Nodes ->
    {error, io_lib:format("--contacts must be at most --nodes, which is ~b, not \"~b\"", [Nodes, Contacts])};
cluster(#{strategy := Typed, option := Settings, nodes := Nodes, settle := SettleMs, roster := Roster} = Values) ->
    case atoll_cli_strategy:read("--strategy", Typed, Settings, Values) of
        {ok, {Strategy, _Module, Options}} ->
            Off = maps:from_list([{roster, off} || Roster =:= off]),
            Cluster = maps:merge(maps:with([nodes, latency, seed], Values), Off),
            {ok, Cluster#{
                strategy => Strategy,
                options => Options,
                contacts => maps:get(contacts, Values, min(?CONTACTS, Nodes)),
                settle_ms => SettleMs
            }};
        {error, _} = Error ->
            Error
    end.

%% @doc The command line that repeats a run. What is as it is unless told is left
%% out of the cluster's finer points.
-spec again(Name :: iodata(), [atoll_cli_options:option()], atoll_cli_options:values()) -> string().
again(Name, Options, Values) ->
    Said = [
        [$\s, atoll_cli_options:flag(Key), $\s, quoted(spelt(Value))]
     || #{name := Key, value := _} = Option <- Options,
        Key =/= trace,
        Value <- typed(Option, Values),
        not (lists:member(Key, [latency, settle, roster]) andalso is_default(Value, Option))
    ],
    lists:flatten(["atoll ", Name, Said]).

typed(#{name := Key, repeat := true}, Values) -> map_get(Key, Values);
typed(#{name := Key}, Values) -> [map_get(Key, Values) || is_map_key(Key, Values)].

is_default(Value, #{default := Text, read := Read}) -> Read(Text) =:= {ok, Value}.

spelt(Text) when is_list(Text) -> Text;
spelt(Word) when is_atom(Word) -> atom_to_list(Word);
spelt(N) when is_integer(N) -> integer_to_list(N);
spelt(N) when is_float(N) -> float_to_list(N, [{decimals, 15}, compact]);
spelt({lanes, _} = Kind) -> atoll_cli_carrier:shown(Kind);
spelt(Tuple) -> lists:flatten(lists:join($:, [spelt(Part) || Part <- tuple_to_list(Tuple)])).

%% @doc A word as a shell reads it.
-spec quoted(string()) -> unicode:chardata().
quoted(Text) ->
    case re:run(Text, "^[-A-Za-z0-9_./:=,@+]+$", [dollar_endonly, unicode, {capture, none}]) of
        match -> Text;
        nomatch -> [$', string:replace(Text, "'", "'\\''", all), $']
    end.
