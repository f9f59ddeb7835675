%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll experiments': the papers' experiments, run again, and a page that says what
%% came of them.
-module(atoll_experiments_cli).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "run the papers' experiments again, and write what is the same and what differs".

-spec options() -> [atoll_cli_options:option()].
options() ->
    Names = atoll_experiments:names(),
    [
        #{name => only, value => "NAME,...", read => atoll_cli_read:some_of(Names),
          help => ["some of ", lists:join(", ", [atom_to_list(Name) || Name <- Names])]},
        #{name => out, value => "DIR", default => "experiments",
          help => "the folder of the page, experiments.md, and of what was measured"},
        #{name => size, value => "SIZE", default => "full", read => atoll_cli_read:one_of([full, whole, small]),
          help => "small only shows that everything runs, in a few minutes; whole has all settings, and takes hours"},
        #{name => draw, help => "run nothing; write the page again from what is in the folder"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll experiments",
        "atoll experiments --only orbit,place --out again",
        "atoll experiments --draw"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{out := Dir, size := Size, draw := Draw, json := Json} = Values, []) ->
    Context = #{size => Size, orlib => orlib()},
    Chosen = atoll_experiments:select(maps:get(only, Values, atoll_experiments:names())),
    case checked(Context, atoll_experiments:check(Dir, case Draw of true -> draw; false -> Size end)) of
        ok when Draw ->
            show(Json, atoll_experiments:draw(Dir));
        ok ->
            ok = atoll_cli_io:say(io_lib:format("At most ~b min; Ctrl-C ends it, and the nodes with it.", [atoll_experiments:minutes(Chosen, Size)])),
            show(Json, atoll_experiments:run(Chosen, #{dir => Dir, context => Context, say => fun atoll_cli_io:say/1}));
        {error, Why} ->
            {unable, Why}
    end.

%% The problems of OR-Library come with nobody's program.
orlib() ->
    case os:getenv("ATOLL_ORLIB", "") of
        "" -> none;
        Dir -> Dir
    end.

checked(_Context, {error, Error}) ->
    {error, atoll_experiments:format_error(Error)};
checked(#{orlib := none}, ok) ->
    ok;
checked(#{orlib := Dir}, ok) ->
    case [File || File <- ["wt40.txt", "wtopt40.txt"], not filelib:is_regular(filename:join(Dir, File))] of
        [] -> ok;
        [Missing | _] -> {error, ["ATOLL_ORLIB is ", Dir, ", and there is no ", Missing]}
    end.

%% The curves of the runs, where what draws them has been built.
curves(_Dir, []) ->
    ok;
curves(Dir, Files) ->
    Drawn = case atoll_bench_report_bundle:load(#{}) of
        {ok, _} -> atoll_bench_report:write(Dir, [Run || File <- Files, {ok, Run} <- [atoll_bench_file:read(File)]]);
        {error, _} = Error -> Error
    end,
    case Drawn of
        {ok, [Index | _]} -> atoll_cli_io:say(["The curves of the runs: ", Index]);
        {error, _} -> atoll_cli_io:say(["The curves of the runs: atoll bench report ", lists:join($\s, Files), " --out ", Dir])
    end.

show(Json, {ok, #{page := Page, runs := Runs, failed := Failed} = Done}) ->
    ok = curves(filename:join(filename:dirname(Page), "report"), Runs),
    ok = case Json of
        true -> atoll_cli_io:print_json({[{page, unicode:characters_to_binary(Page)} | lists:sort(maps:to_list(maps:without([page, runs], Done)))]});
        false -> atoll_cli_io:print([Page, $\n])
    end,
    case Failed of
        0 -> ok;
        _ -> {failed, io_lib:format("~b steps failed or were cut short; the page says which", [Failed])}
    end;
show(_Json, {error, Error}) ->
    {unable, atoll_experiments:format_error(Error)}.
