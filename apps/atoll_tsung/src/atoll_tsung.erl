%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads a cluster with the users of Tsung, as Debian's package has it: their requests call
%% functions of nodes. docs/tsung.md says what a scenario looks like.
%%
%% ```
%% {ok, #{runs := [#{samples := #{<<"request">> := #{count := N}}}]}} =
%%     atoll_tsung:run(#{scenario => "tsung.xml", out => "first"}).
%% '''
%%
%% Promised: all that it starts is gone when the caller is, when it returns, or when the VM ends in any
%% way, kill -9 included, within five seconds; a client on another machine when its connection breaks. What
%% is wrong with a scenario is known before anything starts, with its line. The nodes that are called need
%% nothing of Atoll, see a hidden node, and `global' does not hear of Tsung there.
%%
%% Not promised: that a client that was stopped by a signal on another machine, or on this one without
%% root, ends by itself.
-module(atoll_tsung).

-export([run/1, check/1, report/4, version/0]).

-export_type([options/0, result/0]).

-type options() :: #{
    %% Its file, or what would stand there.
    scenario := file:filename() | {text, unicode:chardata()},
    %% A new folder, in which stand `scenario.xml' as it is run, a folder of Tsung's logs for each run
    %% (`run-1' and so on), and `result.jsonl', which the harness reads.
    out := file:filename(),
    %% How often; 1 unless told.
    runs => pos_integer(),
    %% What the scenario is called in the result; as its file, or `scenario', unless told.
    name => string(),
    %% The file of the cookie of the nodes; without, your own. The options of their TLS.
    cookie_file => file:filename(),
    tls_options_file => file:filename(),
    %% Whether the hosts of its clients are this machine: VMs of their own, and no ssh.
    here => boolean(),
    %% For clients elsewhere: the address of this machine there, and the program in ssh's place.
    address => inet:ip4_address(),
    connector => string(),
    %% How it is repeated, for the result.
    command => unicode:chardata(),
    progress => fun((Done :: non_neg_integer(), Runs :: pos_integer()) -> _)
}.

-type result() :: #{file := file:filename(), runs := [atoll_tsung_log:log(), ...]}.

-define(MAX_BYTES, 1 bsl 26).

%% @doc Runs a scenario.
-spec run(options()) -> {ok, result()} | {error, Sentence :: unicode:chardata()}.
run(#{scenario := Scenario} = Options) ->
    case {atoll_tsung_place:find(), text(Scenario)} of
        {{ok, Place}, {ok, Text}} -> checked(Place, Text, Options);
        {{error, _} = Error, _} -> Error;
        {_, {error, _} = Error} -> Error
    end.

%% @doc What can be known to be wrong with a scenario before anything starts: its elements, and that there is a Tsung to run it.
-spec check(file:filename() | {text, unicode:chardata()}) -> ok | {error, Sentence :: unicode:chardata()}.
check(Scenario) ->
    case {atoll_tsung_place:find(), text(Scenario)} of
        {{ok, Place}, {ok, Text}} ->
            case facts(Place, Text, Scenario) of
                {ok, _} -> ok;
                {error, _} = Error -> Error
            end;
        {{error, _} = Error, _} -> Error;
        {_, {error, _} = Error} -> Error
    end.

%% @doc Which Tsung is installed.
-spec version() -> {ok, string()} | {error, Sentence :: unicode:chardata()}.
version() ->
    case atoll_tsung_place:find() of
        {ok, #{version := Version}} -> {ok, Version};
        {error, _} = Error -> Error
    end.

text({text, Text}) ->
    {ok, unicode:characters_to_binary(Text)};
text(File) ->
    case {filelib:file_size(File) > ?MAX_BYTES, file:read_file(File)} of
        {true, _} -> {error, [File, io_lib:format(": it is larger than ~b bytes", [?MAX_BYTES])]};
        {false, {ok, Text}} -> {ok, Text};
        {false, {error, Reason}} -> {error, [File, ": ", file:format_error(Reason)]}
    end.

checked(Place, Text, #{out := Dir, scenario := Scenario} = Options) ->
    case facts(Place, Text, Scenario) of
        {ok, Facts} ->
            case file:make_dir(Dir) of
                ok -> made(Place, Text, Facts, Options);
                {error, Reason} -> {error, [Dir, ": ", file:format_error(Reason)]}
            end;
        {error, _} = Error ->
            Error
    end.

facts(Place, Text, Scenario) ->
    case atoll_tsung_place:dtd(Place) of
        {ok, Dtd} ->
            case atoll_tsung_scenario:read(Text, atoll_tsung_dtd:attributes(Dtd)) of
                {ok, _} = Ok -> Ok;
                {error, Error} -> wrong(Scenario, Error)
            end;
        {error, _} = Error ->
            Error
    end.

wrong({text, _}, Error) -> {error, ["the scenario, ", atoll_tsung_scenario:format_error(Error)]};
wrong(File, Error) -> {error, [File, ": ", atoll_tsung_scenario:format_error(Error)]}.

made(Place, Text, Facts, #{out := Dir, scenario := Given} = Options) ->
    case atoll_tsung_place:make(Place, Dir) of
        {ok, #{dtd := Dtd} = Made} ->
            case atoll_tsung_scenario:with_dtd(Text, filename:absname(Dtd)) of
                {ok, Ours} ->
                    Scenario = filename:join(Dir, "scenario.xml"),
                    ok = file:write_file(Scenario, Ours),
                    Task = maps:merge(
                        #{here => false},
                        (maps:with([here, address, connector], Options))#{
                            place => Place, made => Made, scenario => Scenario, facts => Facts, way => maps:with([cookie_file, tls_options_file], Options)
                        }
                    ),
                    kept(Task, Options);
                {error, Error} ->
                    wrong(Given, Error)
            end;
        {error, _} = Error ->
            Error
    end.

kept(Task, #{scenario := Scenario, out := Dir} = Options) ->
    Runs = maps:get(runs, Options, 1),
    Name = maps:get(name, Options, case Scenario of {text, _} -> "scenario"; _ -> filename:basename(Scenario, ".xml") end),
    File = filename:join(Dir, "result.jsonl"),
    Progress = maps:get(progress, Options, fun(_, _) -> ok end),
    case atoll_tsung_result:create(File, Name, Runs, maps:get(command, Options, "")) of
        {ok, Opened} ->
            _ = Progress(0, Runs),
            Done = times(1, Runs, erlang:monotonic_time(millisecond), Task, Opened, Progress, Dir, []),
            ok = atoll_bench_file:close(Opened, case Done of {ok, _} -> complete; {error, _} -> partial end),
            case Done of
                {ok, Logs} -> {ok, #{file => File, runs => Logs}};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

times(Run, Runs, _Begun, _Task, _File, _Progress, _Dir, Logs) when Run > Runs ->
    {ok, lists:reverse(Logs)};
times(Run, Runs, Begun, Task, File, Progress, Dir, Logs) ->
    Own = filename:join(Dir, lists:concat(["run-", Run])),
    ok = file:make_dir(Own),
    At = erlang:monotonic_time(millisecond),
    Before = atoll_bench_machine:look(),
    case atoll_tsung_run:once(Task, Own) of
        {ok, Log} ->
            WallMs = erlang:monotonic_time(millisecond) - At,
            Others = atoll_bench_machine:others(Before, atoll_bench_machine:look(), WallMs),
            ok = atoll_tsung_result:append(File, #{start => Run, at_ms => At - Begun, wall_ms => WallMs, others_cpu => Others}, Log),
            _ = Progress(Run, Runs),
            times(Run + 1, Runs, Begun, Task, File, Progress, Dir, [Log | Logs]);
        {error, Sentence} ->
            {error, Sentence}
    end.

%% @doc Makes a result file of logs that Tsung has written, in whatever way it was started: of those in
%% these folders and below, each a run.
-spec report(Dirs :: [file:filename()], Name :: string(), file:filename(), Command :: unicode:chardata()) ->
    {ok, result()} | {error, Sentence :: unicode:chardata()}.
report(Dirs, Name, File, Command) ->
    Read = [atoll_tsung_log:read(Dir) || Dir <- atoll_tsung_log:find(Dirs)],
    case {[Error || {error, Error} <- Read], [Log || {ok, Log} <- Read]} of
        {[Error | _], _} ->
            {error, atoll_tsung_log:format_error(Error)};
        {[], []} ->
            {error, ["there is no tsung.log below ", lists:join(", ", Dirs)]};
        {[], Logs} ->
            case atoll_tsung_result:create(File, Name, length(Logs), Command) of
                {ok, Opened} ->
                    _ = [
                        ok = atoll_tsung_result:append(Opened, #{start => N, at_ms => 0, wall_ms => 1000 * Seconds, others_cpu => null}, Log)
                     || {N, #{seconds := Seconds} = Log} <- lists:zip(lists:seq(1, length(Logs)), Logs)
                    ],
                    ok = atoll_bench_file:close(Opened, complete),
                    {ok, #{file => File, runs => Logs}};
                {error, _} = Error ->
                    Error
            end
    end.
