%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll matchstream alike': how alike the loads of two records are. Of one record: how alike it is to what simulated users do, who are
%% fitted to it, and play against a service of their own that records them.
-module(atoll_cases_matchstream_alike).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% The sample match lasts fifty seconds at its own speed, and is to last for all sessions.
-define(MATCH_S, 50).
%% Until it has started.
-define(SOON, 100).
-define(RECORDED_MS, 30000).
-define(LOOK_MS, 50).

-spec summary() -> string().
summary() -> "fit simulated users to a record of people, and say how alike the two loads are".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_matchstream:options() ++ [
        #{name => users, value => "N", read => atoll_cli_read:whole(2, 5000), help => "simulated users, in place of as many as the record has"},
        #{name => speed, value => "X", default => "1", read => atoll_cli_read:number(0.01, 1000), help => "how many times as fast they are"},
        #{name => seed, value => "SEED", default => "1", read => atoll_cli_read:whole(0, 1000000000), help => "what is drawn is drawn by it"},
        #{name => write, value => "FILE", help => "where the record of the simulated users is left"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["FILE", "[FILE]"].

-spec examples() -> [string()].
examples() -> ["atoll matchstream alike people.log --speed 10", "atoll matchstream alike people.log simulated.log --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, Files) ->
    Read = [sessions(File) || File <- Files],
    case {[Sentence || {error, Sentence} <- Read], Read} of
        {[Sentence | _], _} -> {unable, Sentence};
        {[], [{ok, A}, {ok, B}]} -> said(A, B, Values);
        {[], [{ok, People}]} ->
            %% Before anybody plays.
            case writable(Values) of
                ok -> simulated(People, Values);
                {error, Sentence} -> {unable, Sentence}
            end
    end.

writable(#{write := File}) ->
    case file:open(File, [append]) of
        {ok, Device} -> file:close(Device);
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end;
writable(#{}) -> ok.

sessions(File) ->
    case matchstream_record:read(File) of
        {ok, Entries} ->
            case matchstream_people:sessions(Entries) of
                [_, _ | _] = Sessions -> {ok, Sessions};
                _ -> {error, [File, ": a record is to be of two users at least."]}
            end;
        {error, _} = Error -> Error
    end.

simulated(People, #{speed := Speed, seed := Seed} = Values) ->
    {ok, _} = application:ensure_all_started(inets),
    Drawn = matchstream_people:draw(maps:get(users, Values, length(People)), matchstream_people:fit(People), Seed),
    case atoll_cluster_daemon:open("matchstream-record") of
        {ok, Daemon} ->
            File = filename:join(atoll_cluster_daemon:dir(Daemon), "record"),
            try
                atoll_cases_matchstream:with_service(Values#{nodes => 1}, #{settings => #{record => File}}, fun(Cluster) -> played(Cluster, Drawn, Speed) end)
            of
                ok ->
                    {ok, Entries} = matchstream_record:read(File),
                    ok = written(Values, Entries),
                    said(People, matchstream_people:sessions([{round(At * Speed), User, Kind} || {At, User, Kind} <- Entries]), Values);
                Outcome -> Outcome
            after
                ok = atoll_cluster_daemon:stop(Daemon)
            end;
        {error, Sentence} -> {unable, Sentence}
    end.

played(Cluster, Drawn, Speed) ->
    [{Node, Ports, Base}] = atoll_bench_matchstream_run:webs(Cluster),
    Longest = lists:max([Start + lists:sum([Gap || {Gap, _} <- Requests]) || {Start, Requests} <- Drawn]),
    ok = atoll_cluster:call(Cluster, Node, matchstream_simulator, start, ["sample", ?SOON]),
    {ok, [Id]} = atoll_cluster:call(Cluster, Node, matchstream, matches, []),
    ok = running(Cluster, Node, Id),
    ok = atoll_cluster:call(Cluster, Node, matchstream_simulator, set_speed, [min(1, ?MATCH_S / (60 + Longest / Speed / 1000))]),
    ok = atoll_cli_progress:now_doing("Simulated users"),
    {ok, Failed} = matchstream_replay:play(#{base => Base, host => {127, 0, 0, 1}, ports => Ports, match => Id}, Drawn, Speed),
    ok = atoll_cli_progress:done(),
    case Failed of
        0 ->
            %% All of it is in the file when the application has ended.
            atoll_cluster:call(Cluster, Node, application, stop, [matchstream], ?RECORDED_MS);
        _ -> {failed, io_lib:format("~b requests of simulated users were not answered.", [Failed])}
    end.

%% Who follows a match that has not started is sent away.
running(Cluster, Node, Id) ->
    {ok, Match} = atoll_cluster:call(Cluster, Node, matchstream, match, [Id]),
    case matchstream_match:is_running(Match) of
        true -> ok;
        false ->
            receive after ?LOOK_MS -> ok end,
            running(Cluster, Node, Id)
    end.

written(#{write := File}, Entries) -> file:write_file(File, [[integer_to_list(At), $\s, User, $\s, atom_to_list(Kind), $\n] || {At, User, Kind} <- Entries]);
written(#{}, _) -> ok.

said(A, B, #{seed := Seed} = Values) ->
    Is = maps:to_list(matchstream_people:compare(A, B, Seed)),
    ok = case Values of
        #{json := true} ->
            Object = fun(#{distance := Distance, interval := {Low, High}, by_chance := ByChance, alike := Alike}) ->
                {[{distance, Distance}, {interval, [Low, High]}, {by_chance, ByChance}, {alike, Alike}]}
            end,
            atoll_cli_io:print([atoll_cli_json:encode({[{sessions, [length(A), length(B)]} | [{Measure, Object(Likeness)} || {Measure, Likeness} <- Is]]}), $\n]);
        #{} ->
            Rows = [
                [
                    name(Measure), io_lib:format("~.3f", [Distance]), io_lib:format("~.3f to ~.3f", [Low, High]), io_lib:format("~.3f", [ByChance]),
                    case Alike of true -> "alike"; false -> "differ" end
                ]
             || {Measure, #{distance := Distance, interval := {Low, High}, by_chance := ByChance, alike := Alike}} <- Is
            ],
            atoll_cli_io:print([
                io_lib:format("~b and ~b sessions\n", [length(A), length(B)]),
                atoll_cli_table:format([{left, ""}, {right, "distance"}, {right, "95 % interval"}, {right, "by chance, below"}, {left, ""}], Rows)
            ])
    end,
    case [name(Measure) || {Measure, #{alike := false}} <- Is] of
        [] -> ok;
        Differ -> {failed, ["The two loads differ: ", lists:join(", ", Differ), "."]}
    end.

name(gaps) -> "times between requests";
name(kinds) -> "shares of kinds";
name(lengths) -> "requests of a session".
