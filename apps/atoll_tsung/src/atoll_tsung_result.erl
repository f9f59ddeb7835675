%% SPDX-License-Identifier: Apache-2.0
%% @doc What Tsung measured as a result file of the harness ({@link atoll_bench_file}), which
%% `bench report' and `bench compare' read. The variant is the scenario; a round is a run of Tsung, and as
%% many runs are as many starts, since each begins with new programs.
-module(atoll_tsung_result).

-export([summary/0, parameters/0, variant/0, metrics/0]).
-export([create/4, append/3, measures/1]).

-export_type([took/0]).

-type took() :: #{start := pos_integer(), at_ms := non_neg_integer(), wall_ms := non_neg_integer(), others_cpu := float() | null}.
%% When a run was, from the first's begin, and what others used of the machine meanwhile.

%% @doc What it measures.
-spec summary() -> string().
summary() -> "requests of Tsung's users".

%% @doc Its one parameter.
-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() -> [#{name => scenario, type => atom, values => [scenario], help => "which scenario was run"}].

%% @doc What is compared.
-spec variant() -> atom().
variant() -> scenario.

%% @doc What is measured. Without single times a run has no `request'.
-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        #{name => requests, label => "requests", unit => "", better => more, kind => value},
        #{name => rate, label => "requests", unit => "1/s", better => more, kind => value, derived => true},
        #{name => failed, label => "failed", unit => "", better => less, kind => value},
        #{name => request_mean, label => "request mean", unit => "ms", better => less, kind => value},
        #{name => request_sd, label => "request deviation", unit => "ms", better => less, kind => value},
        #{name => request_max, label => "request longest", unit => "ms", better => less, kind => value},
        #{name => request, label => "request", unit => "ns", better => less, kind => latency},
        #{name => sessions, label => "sessions", unit => "", better => more, kind => value},
        #{name => session_mean, label => "session mean", unit => "ms", better => less, kind => value},
        #{name => session_sd, label => "session deviation", unit => "ms", better => less, kind => value},
        #{name => users_max, label => "users at a time", unit => "", better => less, kind => value}
    ].

%% @doc The file of so many runs of a scenario.
-spec create(file:filename(), Scenario :: string(), Runs :: pos_integer(), Command :: unicode:chardata()) ->
    {ok, atoll_bench_file:file()} | {error, Sentence :: unicode:chardata()}.
create(File, Scenario, Runs, Command) ->
    Name = list_to_atom(Scenario),
    Header = atoll_bench_run:header(?MODULE, [#{scenario => Name}], #{rounds => Runs, starts => Runs, file => File, command => Command}),
    case atoll_bench_file:create(File, Header#{benchmark := <<"tsung">>}) of
        {ok, Opened} -> {ok, Opened};
        {error, Error} -> {error, atoll_bench_file:format_error(Error)}
    end.

%% @doc One run more.
-spec append(atoll_bench_file:file(), took(), atoll_tsung_log:log()) -> ok | {error, file:posix() | badarg | terminated}.
append(File, #{start := Start} = Took, Log) ->
    atoll_bench_file:append(File, atoll_bench_run:line(0, Start, measures(Log), ?MODULE, Took)).

%% @doc What a run has of the metrics. All that Tsung counts as an error is a failure, and what
%% `ts_rpc' counts by why only once.
-spec measures(atoll_tsung_log:log()) -> #{atom() => atoll_bench:measure()}.
measures(#{samples := Samples, counts := Counts, users_max := Users, seconds := Seconds} = Log) ->
    #{count := Requests} = Request = maps:get(<<"request">>, Samples, #{count => 0}),
    Session = maps:get(<<"session">>, Samples, #{count => 0}),
    maps:merge(
        #{
            requests => Requests,
            rate => Requests / max(1, Seconds),
            failed => lists:sum([N || {<<"error_", Kind/binary>>, N} <- maps:to_list(Counts), string:prefix(Kind, "rpc_") =:= nomatch]),
            sessions => maps:get(count, Session),
            users_max => Users
        },
        maps:from_list(
            [{Key, map_get(Of, Request)} || {Key, Of} <- [{request_mean, mean}, {request_sd, sd}, {request_max, max}], is_map_key(Of, Request)] ++
                [{Key, map_get(Of, Session)} || {Key, Of} <- [{session_mean, mean}, {session_sd, sd}], is_map_key(Of, Session)] ++
                [{request, Times} || #{times := Times} <- [Log]]
        )
    ).
