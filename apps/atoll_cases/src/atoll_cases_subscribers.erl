%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of the subscriber service have in common: what kind of service is started, and how it is shown.
-module(atoll_cases_subscribers).

-export([options/0, check/1, shape/1, start/3, name/0, columns/0, row/2]).

-define(INSTALL_MS, 300_000).

%% @doc The options that say what is started.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => store, value => "STORE", default => "mnesia", read => atoll_cli_read:one_of([mysql, mnesia]),
          help => "where subscribers are kept: a MariaDB server that is started too, or Mnesia"},
        #{name => nodes, value => "N", default => "1", read => atoll_cli_read:whole(1, 16), help => "service nodes"},
        #{name => pool, value => "N", read => atoll_cli_read:whole(1, 150), help => "with mysql, connections of each node (50 unless told)"},
        #{name => flush, value => "N", read => atoll_cli_read:whole(1, 2),
          help => "with mysql, whether a commit waits for the disc (1, unless told), or is there within a second (2)"},
        #{name => access, value => "KIND", read => atoll_cli_read:one_of([transaction, sync_transaction, async_dirty, sync_dirty]),
          help => "with mnesia, how it is used (transaction unless told)"},
        #{name => fragments, value => "N", read => atoll_cli_read:whole(1, 1024), help => "with mnesia, of the table (1 unless told)"},
        #{name => majority, help => "with mnesia, nothing is written where fewer than half of the copies can be reached"},
        #{name => emulator, value => "KIND", default => "all", read => atoll_cli_read:one_of(atoll_bench_emulator:words()),
          help => ["how the nodes are started: ", lists:join(", ", [atom_to_list(Word) || Word <- atoll_bench_emulator:words()])]}
    ].

%% @doc What is wrong with them together.
-spec check(atoll_cli_options:values()) -> ok | {usage, unicode:chardata()}.
check(#{store := Store} = Values) ->
    Others = case Store of mysql -> [access, fragments, majority]; mnesia -> [pool, flush] end,
    Of = case Store of mysql -> "mnesia"; mnesia -> "mysql" end,
    case [Key || Key <- Others, maps:get(Key, Values, false) =/= false] of
        [] -> ok;
        [Key | _] -> {usage, [atoll_cli_options:flag(Key), " is for --store ", Of]}
    end.

%% @doc What is started.
-spec shape(atoll_cli_options:values()) -> atoll_bench_subscribers_run:shape().
shape(Values) ->
    (maps:with([store, nodes, emulator, flush], Values))#{rows => 0, settings => maps:with([pool, access, fragments, majority], Values)}.

%% @doc Starts it; whoever asked owns it. What a database takes is installed on Debian if it is missing. After an error nothing is left.
-spec start(atoll_bench_subscribers_run:shape(), Name :: string() | none, Further :: #{atom() => term()}) ->
    {ok, atoll_bench_subscribers_run:ready()} | {error, unicode:chardata()}.
start(#{store := Store} = Shape, Name, Further) ->
    _ = [installed(atoll_bench_mariadb:missing()) || Store =:= mysql],
    Named = maps:from_list([{name, Name} || Name =/= none]),
    Started = atoll_bench_subscribers_run:start(Shape, (maps:merge(Further, Named))#{progress => atoll_cli_progress:bar("Starting nodes")}),
    ok = atoll_cli_progress:done(),
    Started.

%% Of what cannot be installed the start says that it is missing.
installed([]) ->
    ok;
installed(Packages) ->
    ok = atoll_cli_io:say(["Installing ", lists:join(", ", Packages)]),
    Root = filename:dirname(filename:dirname(filename:dirname(filename:dirname(code:lib_dir(atoll_cases))))),
    _ = atoll_cluster_program:run(filename:join([Root, "scripts", "setup"]), Packages, ?INSTALL_MS),
    %% What was not there when this VM started is not in its path.
    ok = code:add_pathsz(filelib:wildcard(filename:join(code:lib_dir(), "{poolboy,p1_mysql}-*/ebin"))).

%% @doc What a service is called that is started without a name.
-spec name() -> string().
name() -> "subscribers".

%% @doc The table's head of what nodes say of themselves.
-spec columns() -> [{left | right, unicode:chardata()}].
columns() ->
    [{left, "node"}, {left, "store"}, {right, "callers"}, {right, "rows"}, {right, "connected"}, {right, "pool"}, {right, "refused"}, {right, "errors"}].

%% @doc A line of it, of what subscribers:status/0 says, if the node answers.
-spec row(node(), subscribers:status() | silent) -> [unicode:chardata()].
row(Node, silent) ->
    [atom_to_list(Node) | ["-" || _ <- tl(columns())]];
row(Node, #{store := Store, callers := Callers, counts := Counts} = Status) ->
    Shown = fun(Key) -> case Status of #{Key := N} when is_integer(N) -> atoll_cli_table:count(N); #{} -> "-" end end,
    Sum = fun(Keys) -> atoll_cli_table:count(lists:sum([map_get(Key, Counts) || Key <- Keys])) end,
    [
        atom_to_list(Node), atom_to_list(Store), atoll_cli_table:count(Callers), Shown(rows), Shown(connected), Shown(pool),
        Sum([overloaded, no_connection_free]), Sum([disconnected, timed_out, failed, no_majority])
    ].
