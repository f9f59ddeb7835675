%% SPDX-License-Identifier: Apache-2.0
%% @doc The description of a service and of its load: Erlang terms `{Key, Value}.' in a file.
%% `template/0' is one with every key explained. What is wrong with one is said in a sentence
%% that names the key, before anything is started.
%%
%% Not promised: that the commands in it are right. They are run as they stand, by `/bin/sh', in
%% the folder of the file.
%%
%% It is one module, though long, since a key is its type, its check and its sentence.
-module(atoll_scale_plan).

-export([read/1, check/2, template/0, settings/1, filled/2, json/1, cause_words/0]).

-export_type([plan/0, load/0, switch/0, settings/0, value/0]).

-type plan() :: #{
    name := string(),
    %% The folder of the file: commands are run there, and names of files count from there.
    dir := file:filename(),
    %% The command that starts the service and stays until it ends; without one it runs already.
    start => string(),
    %% When it is ready for the next run, and for how long that may be waited for.
    ready => {port, inet:port_number()} | {command, string()},
    ready_seconds := pos_integer(),
    %% An Erlang node of the service, which is asked too.
    node => node(),
    cookie_file => file:filename(),
    %% Where a service that runs already has the number of its process.
    pid_file => file:filename(),
    load := load(),
    %% A folder of compiled modules, for a driver.
    code => file:filename(),
    %% What a level counts, for people.
    level := string(),
    from := pos_integer(),
    to := pos_integer(),
    %% How near the limit is looked for, as a share of it.
    precision := float(),
    seconds := pos_integer(),
    %% The share of requests that may fail; the largest 99th percentile; how many connections may be refused.
    failures := number(),
    p99_ms => number(),
    refused => non_neg_integer(),
    switches := [switch()]
}.

-type load() :: {command, string()} | {driver, module(), map()} | {tsung, file:filename()}.

-type switch() :: #{
    name := atom(),
    %% The first one is how it is now.
    values := [value(), ...],
    what := string(),
    %% Where it stands: `{name}' in the commands, a variable of the service's environment, a setting of the kernel,
    %% which the value `now' leaves as it is, or the user is asked to change it.
    in := command | {env, string()} | {kernel, string()} | ask,
    %% The causes that it may help with.
    helps := [atoll_scale_advise:cause()]
}.

-type value() :: number() | atom() | string().

%% A value of each switch.
-type settings() :: #{atom() => value()}.

-define(SWITCH_KEYS, [values, what, in, helps]).

%% Key, what it is without one (or `required', `none'), what it must be.
-define(KEYS, [
    {name, required, "a text, such as \"shop\""},
    {start, none, "a command, as a text"},
    {ready, none, "{port, N} or {command, Text}"},
    {ready_seconds, 30, "a whole number from 1 to 3600"},
    {node, none, "the name of a node, such as 'shop@127.0.0.1'"},
    {cookie_file, none, "the name of a file, as a text"},
    {pid_file, none, "the name of a file, as a text"},
    {load, required, "{command, Text}, {driver, Module, Options} or {tsung, File}"},
    {code, none, "the name of a folder, as a text"},
    {level, "clients at once", "a text that says what a level counts"},
    {from, 4, "a whole number from 1 to 1000000000"},
    {to, 65536, "a whole number from 1 to 1000000000"},
    {precision, 0.1, "a number from 0.01 to 1"},
    {seconds, 3, "a whole number from 1 to 3600"},
    {failures, 0.01, "a share from 0 to 1"},
    {p99_ms, none, "a number above 0"},
    {refused, none, "a whole number of 0 or more"},
    {switches, [], "a list of {Name, #{values => [Value, ...], ...}}"}
]).

%% @doc Reads and checks a description.
-spec read(file:filename()) -> {ok, plan()} | {error, unicode:chardata()}.
read(File) ->
    case file:consult(File) of
        {ok, Terms} ->
            case check(Terms, filename:absname(filename:dirname(File))) of
                {ok, Plan} -> {ok, Plan};
                {error, Sentence} -> {error, [File, ": ", Sentence]}
            end;
        {error, {_, _, _} = Where} ->
            {error, [File, ": line ", file:format_error(Where)]};
        {error, Reason} ->
            {error, [File, ": ", file:format_error(Reason)]}
    end.

%% @doc Checks the terms of a description; the first thing that is wrong, in a sentence.
-spec check([term()], Dir :: file:filename()) -> {ok, plan()} | {error, unicode:chardata()}.
check(Terms, Dir) ->
    try
        lists:foreach(fun is_pair/1, Terms),
        Keys = [Key || {Key, _} <- Terms],
        lists:foreach(fun is_key/1, Keys),
        _ = [wrong("the key ~tp stands there twice", [Twice]) || Twice <- lists:sublist(Keys -- lists:usort(Keys), 1)],
        Plan = maps:from_list([{dir, Dir} | lists:append([value(Is, Terms) || Is <- ?KEYS])]),
        ok = together(Plan),
        {ok, Plan}
    catch
        throw:{wrong, Sentence} -> {error, Sentence}
    end.

-spec wrong(io:format(), [term()]) -> no_return().
wrong(Format, Args) -> throw({wrong, io_lib:format(Format, Args)}).

is_pair({Key, _}) when is_atom(Key) -> ok;
is_pair(Term) -> wrong("~0tP is none of its terms, which are {Key, Value}", [Term, 8]).

is_key(Key) ->
    case lists:keymember(Key, 1, ?KEYS) of
        true -> ok;
        false -> wrong("there is no key ~tp~ts", [Key, meant(Key, [Known || {Known, _, _} <- ?KEYS])])
    end.

meant(Word, Known) ->
    case atoll_cli_nearest:of_words(lists:flatten(io_lib:format("~tp", [Word])), [atom_to_list(Is) || Is <- Known]) of
        {ok, Near} -> ["; did you mean ", Near, "?"];
        none -> ["; there are ", lists:join(", ", [atom_to_list(Is) || Is <- Known])]
    end.

value({Key, Without, Must}, Terms) ->
    case {lists:keyfind(Key, 1, Terms), Without} of
        {{Key, Value}, _} ->
            case is_right(Key, Value) of
                true -> [{Key, read(Key, Value)}];
                false -> wrong("the key ~tp must be ~ts, not ~0tP", [Key, Must, Value, 12])
            end;
        {false, required} -> wrong("the key ~tp is missing; it is ~ts", [Key, Must]);
        {false, none} -> [];
        {false, _} -> [{Key, Without}]
    end.

is_right(Key, Value) when Key =:= name; Key =:= start; Key =:= level; Key =:= cookie_file; Key =:= pid_file; Key =:= code ->
    is_text(Value);
is_right(ready, {port, Port}) -> is_whole(Port, 1, 65535);
is_right(ready, {command, Command}) -> is_text(Command);
is_right(node, Node) -> is_atom(Node) andalso atoll_view_join:node_names(atom_to_list(Node)) =:= {ok, [Node]};
is_right(load, {command, Command}) -> is_text(Command);
is_right(load, {driver, Module, Options}) -> is_atom(Module) andalso is_map(Options);
is_right(load, {tsung, File}) -> is_text(File);
is_right(Key, N) when Key =:= from; Key =:= to -> is_whole(N, 1, 1000000000);
is_right(Key, N) when Key =:= seconds; Key =:= ready_seconds -> is_whole(N, 1, 3600);
is_right(precision, N) -> is_number(N) andalso N >= 0.01 andalso N =< 1;
is_right(failures, N) -> is_number(N) andalso N >= 0 andalso N =< 1;
is_right(p99_ms, N) -> is_number(N) andalso N > 0;
is_right(refused, N) -> is_integer(N) andalso N >= 0;
is_right(switches, Switches) -> is_list(Switches) andalso length_of(Switches) =/= improper;
is_right(_, _) -> false.

length_of(List) -> try length(List) catch error:badarg -> improper end.

is_text([_ | _] = Text) -> io_lib:char_list(Text);
is_text(_) -> false.

is_whole(N, Min, Max) -> is_integer(N) andalso N >= Min andalso N =< Max.

read(precision, N) -> float(N);
read(switches, Switches) ->
    Read = [switch(Switch) || Switch <- Switches],
    Names = [Name || #{name := Name} <- Read],
    _ = [wrong("the switch ~tp stands there twice", [Twice]) || Twice <- lists:sublist(Names -- lists:usort(Names), 1)],
    Read;
read(_, Value) -> Value.

switch({Name, _}) when Name =:= level; Name =:= seconds ->
    wrong("a switch cannot be called ~tp, which stands for a number of the load", [Name]);
switch({Name, #{} = Of}) when is_atom(Name) ->
    _ = [wrong("the switch ~tp has no key ~tp~ts", [Name, Key, meant(Key, ?SWITCH_KEYS)]) || Key <- lists:sublist(maps:keys(maps:without(?SWITCH_KEYS, Of)), 1)],
    Switch = maps:merge(#{name => Name, values => none, what => "", in => command, helps => []}, Of),
    _ = [wrong("of the switch ~tp, ~tp must be ~ts, not ~0tP", [Name, Key, Must, map_get(Key, Switch), 12]) || {Key, Must} <- lists:sublist([
        {Key, Must} || {Key, Must} <- [
            {values, "a list of numbers, words or texts, two or more, each once; the first is how it is now"},
            {what, "a text"},
            {in, "command, {env, Text}, {kernel, Text} or ask"},
            {helps, ["a list of some of " | lists:join(", ", cause_words())]}
        ], not is_right_of(Key, map_get(Key, Switch))], 1)],
    Switch;
switch(Other) ->
    wrong("a switch is {Name, #{values => [Value, ...]}}, not ~0tP", [Other, 12]).

is_right_of(values, [_, _ | _] = Values) -> length_of(Values) =/= improper andalso lists:usort(Values) =:= lists:sort(Values) andalso lists:all(fun is_value/1, Values);
is_right_of(what, What) -> What =:= "" orelse is_text(What);
is_right_of(in, command) -> true;
is_right_of(in, ask) -> true;
is_right_of(in, {env, Name}) -> is_text(Name) andalso not lists:member($=, Name);
is_right_of(in, {kernel, Name}) -> is_text(Name) andalso re:run(Name, "^[a-z0-9_]+([./][a-z0-9_]+)+$", [dollar_endonly, {capture, none}]) =:= match;
is_right_of(helps, Helps) -> is_list(Helps) andalso length_of(Helps) =/= improper andalso Helps -- atoll_scale_advise:causes() =:= [];
is_right_of(_, _) -> false.

is_value(Value) -> is_number(Value) orelse is_atom(Value) orelse is_text(Value).

%% @doc The words that a switch may help with.
-spec cause_words() -> [string()].
cause_words() -> [atom_to_list(Cause) || Cause <- atoll_scale_advise:causes()].

%% What is wrong with several keys together.
together(#{from := From, to := To}) when From > To ->
    wrong("the key from must be at most that of to, which is ~b, not ~b", [To, From]);
together(#{start := _, pid_file := _}) ->
    wrong("the key pid_file is for a service that runs already, and start starts one", []);
together(Plan) when not is_map_key(start, Plan), not is_map_key(node, Plan), not is_map_key(pid_file, Plan) ->
    wrong("one of the keys start, node and pid_file must say what the service is", []);
together(Plan) when is_map_key(cookie_file, Plan), not is_map_key(node, Plan) ->
    wrong("the key cookie_file is for a node, and node is missing", []);
together(#{load := {command, Command}, switches := Switches} = Plan) ->
    _ = has(level, Command) orelse wrong("the command of the key load has no {level}, which is what it is run with", []),
    used(Switches, [Command | commands(Plan)], Plan);
together(#{switches := Switches} = Plan) ->
    used(Switches, commands(Plan), Plan).

commands(Plan) -> [Command || #{start := Command} <- [Plan]].

used(Switches, Commands, Plan) ->
    _ = [wrong("the switch ~tp stands in no command, as {~ts}", [Name, Name]) || #{name := Name, in := command} <- Switches, not lists:any(fun(Command) -> has(Name, Command) end, Commands)],
    _ = [wrong("the switch ~tp is of the environment of a service that is started, and start is missing", [Name]) || #{name := Name, in := {env, _}} <- Switches, not is_map_key(start, Plan)],
    ok.

has(Name, Command) -> string:find(Command, placeholder(Name)) =/= nomatch.

placeholder(Name) -> lists:concat(["{", Name, "}"]).

%% @doc How the switches are now.
-spec settings(plan()) -> settings().
settings(#{switches := Switches}) -> maps:from_list([{Name, Now} || #{name := Name, values := [Now | _]} <- Switches]).

%% @doc A command with what stands for its words in braces; other braces stay.
-spec filled(string(), #{atom() => value()}) -> string().
filled(Command, Values) ->
    maps:fold(fun(Name, Value, Text) -> lists:flatten(string:replace(Text, placeholder(Name), spelt(Value), all)) end, Command, Values).

spelt(Value) when is_float(Value) -> float_to_list(Value, [short]);
spelt(Value) when is_integer(Value) -> integer_to_list(Value);
spelt(Value) when is_atom(Value) -> atom_to_list(Value);
spelt(Text) -> Text.

%% @doc A value, or a value of each switch, for a journal.
-spec json(value() | settings()) -> atoll_bench_json:value().
json(Settings) when is_map(Settings) -> maps:map(fun(_, Value) -> json(Value) end, Settings);
json(Value) when is_list(Value) -> <<_/binary>> = unicode:characters_to_binary(Value);
json(Value) -> Value.

%% @doc A description to begin with.
-spec template() -> unicode:chardata().
template() ->
    {ok, Text} = file:read_file(filename:join(code:priv_dir(atoll_scale), "template.plan")),
    Text.
