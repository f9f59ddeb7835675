%% SPDX-License-Identifier: Apache-2.0
%% @doc The settings, the environment of the application, checked key by key when it starts. Nobody reads the environment
%% later: the store is handed what was found.
-module(subscribers_options).

-export([check/1, format_error/1, install/1, uninstall/0, installed/0, store/1]).

-export_type([options/0, error/0]).

-type options() :: #{
    store := mysql | mnesia,
    %% Callers at once, all together; one more is refused. 1000 unless told.
    callers := pos_integer(),
    %% Of which numbers write/1 and read/1 of {@link subscribers} draw, from 1; 1,000,000.
    range := pos_integer(),
    %% MySQL: where it is, and as whom; `database' is its name there.
    host := string(),
    port := inet:port_number(),
    user := string(),
    password := string(),
    database := string(),
    %% connections, 50
    pool := pos_integer(),
    %% How long a caller may wait for a connection, and then for the answer: 2000 and 5000.
    wait_ms := pos_integer(),
    query_ms := pos_integer(),
    %% Mnesia: its folder; all nodes with a copy, or the s_group of which all members have one. This node
    %% alone unless told.
    dir := file:filename(),
    copies := [node(), ...] | {s_group, atom()},
    access := transaction | sync_transaction | async_dirty | sync_dirty,
    %% of the table, 1
    fragments := pos_integer(),
    %% That nothing is written where not more than half of the copies can be reached. `false'.
    majority := boolean(),
    %% What is done when two nodes meet again that have both gone on in a partition: nothing, or the one
    %% that is not on the side of that node takes the other's data ({@link subscribers_heal}). `none'.
    heal := none | {master, node()},
    %% Of Mnesia's log, how many writes may be in it before it is dumped. 50000; Mnesia's own is 1000.
    dump_writes := pos_integer()
}.

-type error() :: {bad_option, Key :: term(), Must :: string()}.

%% @doc All settings, with the defaults of those that are not told.
-spec check(#{atom() => term()}) -> {ok, options()} | {error, error()}.
check(Told) ->
    case maps:keys(Told) -- [Key || {Key, _, _, _} <- rules()] of
        [] -> checked(rules(), Told, #{});
        [Key | _] -> {error, {bad_option, Key, "is not known"}}
    end.

checked([], _, Options) ->
    {ok, Options};
checked([{Key, Default, Test, Must} | Rules], Told, Options) ->
    Value = maps:get(Key, Told, Default),
    case Test(Value) of
        true -> checked(Rules, Told, Options#{Key => Value});
        false -> {error, {bad_option, Key, Must}}
    end.

rules() ->
    Positive = fun(N) -> is_integer(N) andalso N > 0 end,
    Text = fun(T) -> is_list(T) andalso T =/= [] andalso io_lib:printable_unicode_list(T) end,
    One = fun(Words) -> fun(Word) -> lists:member(Word, Words) end end,
    [
        {store, none, One([mysql, mnesia]), "must be mysql or mnesia"},
        {callers, 1000, Positive, "must be a whole number above 0"},
        {range, 1_000_000, fun(N) -> subscribers_record:is_msisdn(N) end, "must be a whole number of 15 digits at most, above 0"},
        {host, "127.0.0.1", Text, "must be a string"},
        {port, 3306, fun(N) -> Positive(N) andalso N < 65536 end, "must be 1 to 65535"},
        {user, "subscribers", Text, "must be a string"},
        {password, "", fun(T) -> T =:= "" orelse Text(T) end, "must be a string"},
        {database, "subscribers", fun is_name/1, "must be a string of letters, digits and _"},
        {pool, 50, fun(N) -> Positive(N) andalso N =< 10_000 end, "must be 1 to 10000"},
        {wait_ms, 2000, Positive, "must be a whole number of milliseconds above 0"},
        {query_ms, 5000, Positive, "must be a whole number of milliseconds above 0"},
        {dir, "subscribers.mnesia", Text, "must be the name of a folder"},
        {copies, [node()], fun is_copies/1, "must be a list of nodes, or {s_group, Name}"},
        {access, transaction, One([transaction, sync_transaction, async_dirty, sync_dirty]),
            "must be transaction, sync_transaction, async_dirty or sync_dirty"},
        {fragments, 1, fun(N) -> Positive(N) andalso N =< 1024 end, "must be 1 to 1024"},
        {majority, false, fun is_boolean/1, "must be true or false"},
        {heal, none, fun is_heal/1, "must be none or {master, Node}"},
        {dump_writes, 50_000, Positive, "must be a whole number above 0"}
    ].

is_name(Text) -> is_list(Text) andalso re:run(Text, "^[A-Za-z0-9_]{1,64}$", [dollar_endonly, {capture, none}]) =:= match.

is_copies({s_group, Name}) -> is_atom(Name);
is_copies([_ | _] = Nodes) -> lists:all(fun is_atom/1, Nodes) andalso length(lists:usort(Nodes)) =:= length(Nodes);
is_copies(_) -> false.

is_heal(none) -> true;
is_heal({master, Node}) -> is_atom(Node);
is_heal(_) -> false.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, Must}) -> io_lib:format("The setting ~0tp of subscribers ~ts.", [Key, Must]).

%% @doc The module that keeps subscribers so.
-spec store(options()) -> module().
store(#{store := mysql}) -> subscribers_mysql;
store(#{store := mnesia}) -> subscribers_mnesia.

%% @doc Makes them those of this node's service.
-spec install(options()) -> ok.
install(Options) -> persistent_term:put(?MODULE, {store(Options), Options}).

%% @doc There is no service any longer.
-spec uninstall() -> ok.
uninstall() ->
    _ = persistent_term:erase(?MODULE),
    ok.

%% @doc Those of this node's service.
-spec installed() -> {module(), options()} | none.
installed() -> persistent_term:get(?MODULE, none).
