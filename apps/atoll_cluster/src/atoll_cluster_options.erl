%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of a cluster, checked key by key before anything starts.
-module(atoll_cluster_options).

-export([check/1, elsewhere/1]).

-export_type([options/0, config/0, kind/0]).

-type options() :: #{
    %% Prefix of the node names: a letter, then at most 39 of letters, digits,
    %% `_' and `-'. Default: made up, and unique on this machine.
    name => string(),
    %% how many nodes, or so many of several kinds
    nodes := pos_integer() | [kind(), ...],
    %% `false' starts the nodes with `-connect_all false'. Default `true'.
    connect_all => boolean(),
    %% Applications to start on every node, in this order. Default none.
    apps => [atom()],
    %% Further arguments of erl, or a function that makes them of the nodes' names.
    %% Default none.
    args => [string()] | fun(([node(), ...]) -> [string()]),
    %% Whether all nodes get the arguments of TLS (`-ssl_dist_optfile'), with certificates for
    %% this cluster that are made in its run directory and go with it. Which distribution
    %% takes them is in `args'. Default `false'.
    tls => boolean(),
    %% Where the nodes run, by turns: the addresses by which they are named and on which
    %% they listen, and command lines that each node's is put behind, such as that of
    %% nsenter. Within them a port mapper must run. Default this machine's loopback.
    hosts => [atoll_cluster_driver:host(), ...],
    %% What is asked of each node for its status beside what Erlang says of itself: a
    %% function that is called there. Default nothing.
    probe => {module(), Function :: atom(), Args :: [term()]} | none,
    %% How many nodes start at a time. Default: two for each core.
    parallel => pos_integer(),
    %% How many milliseconds a node, and then each application on it, may take
    %% to start. Default 30,000.
    boot_timeout => pos_integer(),
    %% Called in the starting process, first with 0 and then whenever one more
    %% node has started.
    progress => fun((Started :: non_neg_integer(), Total :: pos_integer()) -> any()),
    %% An atoll_cluster_driver. Default atoll_cluster_local.
    driver => module()
}.

-type kind() :: #{
    %% Between the cluster's name and the number in the nodes' names: at most 39 of letters,
    %% digits, `_' and `-', the last one no digit.
    kind := string(),
    count := pos_integer(),
    %% What these nodes have in place of what the options say of all.
    connect_all => boolean(),
    apps => [atom()],
    args => [string()] | fun(([node(), ...]) -> [string()])
}.
%% Nodes that are started alike, and others differently. They are numbered from 1 in each kind.

-type config() :: #{
    name := string(),
    nodes := pos_integer(),
    %% All of them, with everything told.
    kinds := [kind(), ...],
    tls := boolean(),
    hosts := [atoll_cluster_driver:host(), ...],
    probe := {module(), atom(), [term()]} | none,
    parallel := pos_integer(),
    boot_timeout := pos_integer(),
    progress := fun((non_neg_integer(), pos_integer()) -> any()),
    driver := module()
}.

%% @doc All options, with their defaults where none is given.
-spec check(options()) -> {ok, config()} | {error, {bad_option, Key :: term(), Why :: string()}}.
check(Options) when is_map(Options) ->
    %% Hosts are a driver's: who tells one of the two means what is here.
    Where = case Options of
        #{hosts := _} -> #{};
        #{driver := _} -> #{};
        #{} -> persistent_term:get(?MODULE, #{})
    end,
    Rules = rules(Where),
    case maps:keys(Options) -- [Key || {Key, _, _, _} <- Rules] of
        [] -> check(Rules, Options, #{});
        [Key | _] -> {error, {bad_option, Key, "is not known"}}
    end;
check(Options) ->
    {error, {bad_option, Options, "is not a map of options"}}.

check([], _Options, Config) ->
    {ok, kinds(Config)};
check([{Key, Default, Test, Why} | Rules], Options, Config) ->
    case {Options, Default} of
        {#{Key := Value}, _} ->
            case Test(Value) of
                true -> check(Rules, Options, Config#{Key => Value});
                false -> {error, {bad_option, Key, Why}}
            end;
        {_, {default, Make}} ->
            check(Rules, Options, Config#{Key => Make()});
        {_, required} ->
            {error, {bad_option, Key, "is missing"}}
    end.

%% Whoever starts them knows kinds alone.
kinds(#{nodes := Nodes} = Config) ->
    {OfAll, Rest} = {maps:with(of_kind(), Config), maps:without(of_kind(), Config)},
    Kinds =
        case Nodes of
            [_ | _] -> [maps:merge(OfAll, Kind) || Kind <- Nodes];
            Count -> [OfAll#{kind => "", count => Count}]
        end,
    Rest#{nodes := lists:sum([Count || #{count := Count} <- Kinds]), kinds => Kinds}.

of_kind() -> [connect_all, apps, args].

rules(Where) ->
    Positive = fun(N) -> is_integer(N) andalso N > 0 end,
    [
        {name, {default, fun unique_name/0}, fun is_name/1,
            "must be a letter followed by at most 39 letters, digits, '_' or '-'"},
        {nodes, required, fun(N) -> Positive(N) orelse are_kinds(N) end,
            "must be a whole number above 0, or a list of kinds, each a map with a kind, which no other has, and a count"},
        {connect_all, {default, fun() -> true end}, fun is_boolean/1, "must be true or false"},
        {apps, {default, fun() -> [] end}, fun(L) -> all(fun is_atom/1, L) end,
            "must be a list of application names"},
        {args, {default, fun() -> [] end}, fun(A) -> is_function(A, 1) orelse all(fun is_argument/1, A) end,
            "must be a list of strings, or a function that makes one of the nodes' names"},
        {tls, {default, fun() -> false end}, fun is_boolean/1, "must be true or false"},
        {hosts, {default, fun() -> maps:get(hosts, Where, [#{address => {127, 0, 0, 1}, wrap => []}]) end},
            fun(L) -> L =/= [] andalso all(fun is_host/1, L) end,
            "must be a list of #{address => {A, B, C, D}, wrap => Command}, with one at least"},
        {probe, {default, fun() -> none end}, fun is_probe/1, "must be {Module, Function, Arguments} or none"},
        {parallel, {default, fun parallel/0}, Positive, "must be a whole number above 0"},
        {boot_timeout, {default, fun() -> 30000 end}, Positive,
            "must be a number of milliseconds above 0"},
        {progress, {default, fun() -> fun(_, _) -> ok end end},
            fun(F) -> is_function(F, 2) end, "must be a function of two arguments"},
        {driver, {default, fun() -> maps:get(driver, Where, atoll_cluster_local) end}, fun is_driver/1,
            "must be a module that starts nodes"}
    ].

%% @doc What stands for `hosts' and `driver' where neither is told: from now on, and for all of this VM.
-spec elsewhere(#{hosts => [atoll_cluster_driver:host(), ...], driver => module()}) -> ok.
elsewhere(Where) -> persistent_term:put(?MODULE, Where).

unique_name() ->
    lists:concat(["n", os:getpid(), "-", erlang:unique_integer([positive]), "-"]).

parallel() ->
    case erlang:system_info(logical_processors_available) of
        unknown -> 2;
        Cores -> 2 * Cores
    end.

is_name(Name) ->
    all(fun is_integer/1, Name) andalso
        re:run(Name, "^[a-zA-Z][a-zA-Z0-9_-]{0,39}$", [dollar_endonly, {capture, none}]) =:= match.

are_kinds([_ | _] = Kinds) ->
    all(fun is_kind/1, Kinds) andalso length(Kinds) =:= length(lists:usort([Name || #{kind := Name} <- Kinds]));
are_kinds(_) ->
    false.

%% No digit before the number: two kinds would meet in one name.
is_kind(#{kind := Name, count := Count} = Kind) ->
    all(fun is_integer/1, Name) andalso
        re:run(Name, "^[a-zA-Z0-9_-]{0,38}[a-zA-Z_-]$", [dollar_endonly, {capture, none}]) =:= match andalso
        is_integer(Count) andalso Count > 0 andalso
        lists:all(
            fun({Key, Value}) -> lists:any(fun({K, _, Test, _}) -> K =:= Key andalso Test(Value) end, rules(#{})) end,
            maps:to_list(maps:without([kind, count], Kind))
        ) andalso maps:keys(maps:without([kind, count | of_kind()], Kind)) =:= [];
is_kind(_) ->
    false.

is_probe(none) -> true;
is_probe({M, F, A}) -> is_atom(M) andalso is_atom(F) andalso all(fun(_) -> true end, A);
is_probe(_) -> false.

is_host(#{address := Address, wrap := Wrap} = Host) ->
    maps:keys(maps:without([address, wrap, name], Host)) =:= [] andalso inet:is_ipv4_address(Address) andalso
        all(fun is_argument/1, Wrap) andalso is_host_name(maps:get(name, Host, "a"));
is_host(_) ->
    false.

is_host_name(Name) ->
    all(fun is_integer/1, Name) andalso re:run(Name, "^[a-zA-Z0-9][a-zA-Z0-9.-]*$", [dollar_endonly, {capture, none}]) =:= match.

%% What the operating system takes as an argument: text without a zero.
is_argument(Arg) ->
    all(fun(C) -> is_integer(C) andalso C > 0 end, Arg) andalso
        is_list(unicode:characters_to_list(Arg)).

is_driver(Module) ->
    is_atom(Module) andalso code:ensure_loaded(Module) =:= {module, Module} andalso
        erlang:function_exported(Module, start_node, 2).

all(Test, List) when is_list(List), length(List) >= 0 ->
    lists:all(Test, List);
all(_Test, _) ->
    false.
