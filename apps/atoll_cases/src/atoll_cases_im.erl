%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of the instant messenger have in common: what kind of messenger is started, and how.
-module(atoll_cases_im).

-export([options/0, check/1, shape/2, start/3, name/0, columns/0, row/2, databases/2]).

%% @doc The options that say what is started.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => routers, value => "N", default => "2", read => atoll_cli_read:whole(1, 100), help => "router nodes"},
        #{name => servers, value => "N", default => "6", read => atoll_cli_read:whole(1, 100), help => "server nodes"},
        #{name => mode, value => "MODE", default => "rsd", read => atoll_cli_read:one_of([rd, rsd]),
          help => "rd: a mesh, and names in global; rsd: a group for each router with its servers, and one of the routers"},
        #{name => reach, value => "WAY", read => atoll_cli_read:one_of([atoll, relays]),
          help => "in rsd, how another group is reached: over the carrier, or by relay processes as in the paper (atoll unless told)"},
        #{name => replication, value => "KIND", default => "acknowledged", read => atoll_cli_read:one_of([acknowledged, paper]),
          help => "whether the second copy has a change before it is answered; or some time later, as in the paper"},
        #{name => mapping, value => "KIND", default => "even", read => atoll_cli_read:one_of([even, compat]),
          help => "of clients to servers: evenly, or as the paper's program did it"}
        | atoll_deploy_cluster:options()
    ].

%% @doc What is wrong with them together.
-spec check(atoll_cli_options:values()) -> ok | {usage, unicode:chardata()}.
check(#{mode := rd, reach := _}) ->
    {usage, "--reach is for --mode rsd"};
check(#{mode := rsd, routers := Routers, servers := Servers}) when Servers < Routers ->
    {usage, io_lib:format("--servers must be at least --routers, which is ~b, in --mode rsd, not \"~b\"", [Routers, Servers])};
check(_) ->
    ok.

%% @doc What is started, with so many client nodes.
-spec shape(atoll_cli_options:values(), Clients :: non_neg_integer()) -> im_cluster:shape().
shape(#{replication := Replication, mapping := Mapping} = Values, Clients) ->
    (maps:with([mode, reach, routers, servers], Values))#{clients => Clients, settings => #{replication => Replication, mapping => Mapping}}.

%% @doc Starts it; whoever asked owns it. After an error nothing is left.
-spec start(im_cluster:shape(), Name :: string() | none, Further :: #{atom() => term()}) ->
    {ok, atoll_bench_im_run:ready()} | {error, unicode:chardata()}.
start(Shape, Name, Further) ->
    Named = maps:from_list([{name, Name} || Name =/= none]),
    Options = maps:merge(maps:merge(im_cluster:options(Shape), Further), Named#{progress => atoll_cli_progress:bar("Starting nodes")}),
    atoll_bench_nodes:start(Options, fun(Cluster) ->
        ok = atoll_cli_progress:now_doing("Waiting until all nodes and databases are there"),
        Ready = atoll_bench_im_run:ready(Cluster, Shape),
        ok = atoll_cli_progress:done(),
        Ready
    end).

%% @doc What a messenger is called that is started without a name.
-spec name() -> string().
name() -> "im".

%% @doc The table's head of what nodes say of themselves.
-spec columns() -> [{left | right, unicode:chardata()}].
columns() ->
    [{left, "node"}, {right, "connections"}, {right, "clients"}, {right, "sessions"}, {right, "main"}, {right, "replica"}].

%% @doc A line of it, of what im:status/0 says, if the node answers.
-spec row(node(), {ok, im:status()} | undefined) -> [unicode:chardata()].
row(Node, {ok, #{links := Links} = Status}) ->
    Own = case Status of
        #{clients := Clients, sessions := Sessions} -> [Clients, Sessions | [length(databases(Role, Status)) || Role <- [main, replica]]];
        #{} -> [none, none, none, none]
    end,
    [atom_to_list(Node) | [case N of none -> "-"; _ -> atoll_cli_table:count(N) end || N <- [length(Links) | Own]]];
row(Node, undefined) ->
    [atom_to_list(Node) | ["-" || _ <- tl(columns())]].

%% @doc Those of a node that have this role.
-spec databases(im_replica:role(), im:status()) -> [map()].
databases(Role, #{databases := All}) -> [Database || #{role := Is} = Database <- All, Is =:= Role].
