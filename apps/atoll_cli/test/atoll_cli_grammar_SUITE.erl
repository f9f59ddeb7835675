%% SPDX-License-Identifier: Apache-2.0
%% What holds for every command, whatever it does: made of the table of commands, so that a new one
%% is held to it too.
-module(atoll_cli_grammar_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    help_is_done_and_a_wrong_option_is_wrong_usage/1,
    a_cluster_that_does_not_run_is_told_alike/1,
    a_cluster_is_named_in_one_way/1,
    a_file_that_is_not_there_is_told_alike/1,
    each_outcome_has_its_status_and_one_object/1,
    a_shell_completes_every_command/1
]).

all() ->
    [help_is_done_and_a_wrong_option_is_wrong_usage, a_cluster_that_does_not_run_is_told_alike, a_cluster_is_named_in_one_way,
     a_file_that_is_not_there_is_told_alike,
     each_outcome_has_its_status_and_one_object, a_shell_completes_every_command].

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> atoll_cli_os:remove_dir(dir(Config)).

dir(Config) -> proplists:get_value(dir, Config).

run(Config, Name, Args) -> atoll_cli_line:here(dir(Config), string:lexemes(Name, " ") ++ Args).

has(Key, Module) -> lists:any(fun(#{name := Name}) -> Name =:= Key end, Module:options()).

help_is_done_and_a_wrong_option_is_wrong_usage(Config) ->
    [
        begin
            #{status := Helped, stdout := Page, stderr := Quiet} = run(Config, Name, ["--help"]),
            ?assertMatch({Name, 0, <<"usage: atoll ", _/binary>>, <<>>}, {Name, Helped, Page, Quiet}),
            %% Options of some hang on what they are to do, which is wrong then, too.
            #{status := Status, stdout := Stdout, stderr := Stderr} = run(Config, Name, ["--no-such-option"]),
            ?assertEqual({Name, 2, <<>>}, {Name, Status, Stdout}),
            ?assertMatch([<<"atoll ", _/binary>>, <<>>], binary:split(Stderr, <<"\n">>, [global])),
            [
                begin
                    #{status := 2, stdout := Json} = run(Config, Name, ["--no-such-option", "--json"]),
                    #{<<"error">> := Sentence} = atoll_cli_os:decode(Json),
                    ?assertMatch({Name, {_, _}}, {Name, binary:match(Stderr, Sentence)})
                end
             || has(json, Module)
            ]
        end
     || {Name, Module} <- atoll_cli_commands:all()
    ].

%% By an example of its help, with another cluster in it.
a_cluster_that_does_not_run_is_told_alike(Config) ->
    Sentence = <<": No cluster named nobody is running.\n">>,
    Held =
        [
            begin
                [Example | _] = [E || E <- Module:examples(), string:find(E, " -c reef") =/= nomatch],
                Line = string:replace(Example, "-c reef", "-c nobody"),
                ["atoll" | Args] = atoll_cli_tests:words(lists:flatten(Line)),
                Json = ["--json" || has(json, Module), not lists:member("--json", Args)],
                #{status := Status, stdout := Stdout, stderr := Stderr} = atoll_cli_line:here(dir(Config), Args ++ Json),
                ?assertEqual({Name, 3}, {Name, Status}),
                ?assertEqual({Name, Sentence}, {Name, binary:part(Stderr, byte_size(Stderr), -byte_size(Sentence))}),
                case has(json, Module) of
                    true -> ?assertEqual({Name, #{<<"error">> => <<"No cluster named nobody is running.">>}}, {Name, atoll_cli_os:decode(Stdout)});
                    false -> ?assertEqual({Name, <<>>}, {Name, Stdout})
                end,
                Name
            end
         || {Name, Module} <- atoll_cli_commands:all(), has(cluster, Module), not lists:member(Name, ["up", "im up", "matchstream up", "ring up", "subscribers up"])
        ],
    ?assertEqual([], ["status", "links", "route", "place", "down", "chaos run", "group new"] -- Held).

a_cluster_is_named_in_one_way(Config) ->
    [
        begin
            ?assertMatch({Name, [$c]}, {Name, [Short || #{name := cluster, short := Short} <- Module:options()]}),
            #{status := 2, stderr := Stderr} = run(Config, Name, ["--name", "reef"]),
            ?assertMatch({Name, {_, _}}, {Name, binary:match(Stderr, <<"there is no option --name; a cluster is named with --cluster, or -c">>)})
        end
     || {Name, Module} <- atoll_cli_commands:all(), has(cluster, Module)
    ],
    [?assertNot(has(name, Module), Name) || {Name, Module} <- atoll_cli_commands:all()].

%% Of those that a command reads: nothing is wrong with the command line.
a_file_that_is_not_there_is_told_alike(Config) ->
    Read = [
        begin
            Required = [Operand || [C | _] = Operand <- Module:operands(), C =/= $[],
            Here = [case is_file(Operand) of true -> code:which(?MODULE); false -> "x" end || Operand <- Required],
            Lines =
                [Here ++ [atoll_cli_options:flag(Key), "no/such"] || #{name := Key, is_read := true} <- Module:options()] ++
                [[case is_file(Operand) of true -> "no/such"; false -> "x" end || Operand <- Required] || lists:any(fun is_file/1, Required)],
            [
                begin
                    #{status := Status, stdout := Stdout, stderr := Stderr} = run(Config, Name, Line ++ ["--json" || has(json, Module)]),
                    Sentence = iolist_to_binary(["atoll ", Name, ": no/such: no such file or directory\n"]),
                    ?assertEqual({Name, Line, 3, Sentence}, {Name, Line, Status, Stderr}),
                    ?assertEqual({Name, has(json, Module)}, {Name, Stdout =/= <<>>})
                end
             || Line <- Lines
            ],
            {Name, length(Lines)}
        end
     || {Name, Module} <- atoll_cli_commands:all()
    ],
    ?assertEqual(
        [{"aco", 2}, {"chaos run", 3}, {"context add", 2}, {"debench", 3}, {"place", 3}, {"sim run", 1}],
        [Count || {Name, _} = Count <- lists:sort(Read), lists:member(Name, ["aco", "chaos run", "context add", "debench", "place", "sim run"])]
    ),
    %% All others are written.
    ?assertEqual(
        [dot, html, journal, keep, out, svg, trace, write],
        lists:usort([Key || {_, Module} <- atoll_cli_commands:all(), #{name := Key, value := "FILE"} = Option <- Module:options(), not is_map_key(is_read, Option)])
    ).

is_file(Operand) -> lists:member(Operand, ["CONFIG", "FILE", "SCRIPT", "TRACE"]).

%% However it comes to that.
each_outcome_has_its_status_and_one_object(Config) ->
    Said = fun(Outcome) -> fun() -> {"atoll x", true, Outcome} end end,
    Printed = fun(Outcome) -> fun() -> ok = atoll_cli_io:print_json({[{n, 1}]}), {"atoll x", true, Outcome} end end,
    [
        begin
            #{status := Is, stdout := Stdout, stderr := Stderr} = atoll_cli_line:called(dir(Config), Fun),
            ?assertEqual({Status, Out, Talk}, {Is, Stdout, first_line(Stderr)})
        end
     || {Fun, Status, Out, Talk} <- [
            {Said(ok), 0, <<>>, <<>>},
            {Said({failed, "no"}), 1, <<"{\"error\":\"no\"}\n">>, <<"atoll x: no">>},
            {Printed({failed, "no"}), 1, <<"{\"n\":1}\n">>, <<"atoll x: no">>},
            {Said({usage, "no\n  here"}), 2, <<"{\"error\":\"no\"}\n">>, <<"atoll x: no">>},
            {Said({unable, "no"}), 3, <<"{\"error\":\"no\"}\n">>, <<"atoll x: no">>},
            {Said(interrupted), 130, <<>>, <<"atoll x: interrupted; all is healed">>},
            {fun() -> throw({not_printed, "no"}) end, 3, <<>>, <<"atoll: no">>},
            {fun() -> error(oops) end, 70, <<>>, <<"atoll: this is a fault of the program: exception error: oops">>},
            {fun() -> exit(oops) end, 70, <<>>, <<"atoll: this is a fault of the program: exception exit: oops">>}
        ]
    ],
    #{stdout := Help} = run(Config, "help", []),
    [?assertMatch({Status, {_, _}}, {Status, binary:match(Help, iolist_to_binary(io_lib:format("~b ~ts", [Status, Meaning])))})
     || {Status, _, Meaning} <- atoll_cli_exit:table()].

first_line(Text) -> hd(binary:split(Text, <<"\n">>)).

%% Bash is there wherever Debian is; the others where they are installed.
a_shell_completes_every_command(Config) ->
    Scripts = [
        begin
            #{status := 0, stdout := Script} = run(Config, "completion", [Shell]),
            File = filename:join(dir(Config), "complete." ++ Shell),
            ok = file:write_file(File, Script),
            [?assertMatch({Shell, Flag, {_, _}}, {Shell, Flag, binary:match(Script, list_to_binary(Flag -- "--"))})
             || {_, Module} <- atoll_cli_commands:all(), #{name := Key} <- Module:options(), Flag <- [atoll_cli_options:flag(Key)]],
            _ = [?assertEqual({Shell, "ok\n"}, {Shell, os:cmd(lists:concat([at_home(File), Shell, " -n ", File, " 2>&1 && echo ok"]))}) || os:find_executable(Shell) =/= false],
            {Shell, File}
        end
     || Shell <- ["bash", "zsh", "fish"]
    ],
    [
        [
            ?assertEqual({Shell, Line, lists:sort(Words)}, {Shell, Line, lists:sort(completed(Shell, File, Line))})
         || {Line, Words} <- [
                {"atoll gr", ["group"]},
                {"atoll group n", ["new", "names"]},
                {"atoll links --c", ["--cluster", "--cookie-file"]},
                {"atoll links --he", ["--help"]},
                {"bin/atoll group draw ring --s", ["--svg"]},
                {"atoll help c", ["chaos", "context", "completion"]}
            ]
        ]
     || {Shell, File} <- Scripts, Shell =/= "zsh", os:find_executable(Shell) =/= false
    ],
    {_, Zsh} = lists:keyfind("zsh", 1, Scripts),
    _ = [?assertEqual("completed\n", typed_in_zsh(Zsh, "atoll group na", "mes")) || os:find_executable("zsh") =/= false],
    {_, Bash} = lists:keyfind("bash", 1, Scripts),
    %% There come the files, which the shell knows.
    ?assertEqual([], completed("bash", Bash, "atoll links --cookie-file ") ++ completed("bash", Bash, "atoll links -c ")),
    [?assertEqual({Name, []}, {Name, [atoll_cli_options:flag(Key) || #{name := Key} <- Module:options()] -- completed("bash", Bash, "atoll " ++ Name ++ " --")})
     || {Name, Module} <- atoll_cli_commands:all()].

%% What a shell offers for the last word. It is asked as if somebody had typed that.
completed("bash", File, Line) ->
    Words = string:split(Line, " ", all),
    string:lexemes(
        os:cmd(lists:concat([
            "bash -c '. ", File, "; COMP_WORDS=(", lists:join(" ", [[$", W, $"] || W <- Words]), "); COMP_CWORD=", length(Words) - 1,
            "; _atoll; echo \"${COMPREPLY[@]}\"'"
        ])),
        " \n"
    );
completed("fish", File, Line) ->
    Offered = os:cmd(lists:concat([at_home(File), "fish -c 'source ", File, "; complete -C \"", Line, "\"' 2>&1"])),
    [hd(string:split(Word, "\t")) || Word <- string:lexemes(Offered, "\n")].

%% Zsh completes on a terminal only.
typed_in_zsh(File, Line, Rest) ->
    Script = lists:concat([
        "zmodload zsh/zpty; zpty z zsh -f -i; "
        "zpty -w z \"PS1=; autoload -U compinit; compinit -D -u; . ", File, "; print rea\"\"dy\"; zpty -r z seen \"*ready*\"; "
        "zpty -w -n z \"", Line, "\"$'\\t'; zpty -r z seen \"*", Rest, "*\" && print completed; zpty -d z"
    ]),
    Typed = File ++ ".typed",
    ok = file:write_file(Typed, Script),
    os:cmd(at_home(File) ++ "timeout 20 zsh -f " ++ Typed ++ " 2>&1").

%% Fish keeps files of its own where its user lives.
at_home(File) -> lists:concat(["env -u XDG_CONFIG_HOME -u XDG_DATA_HOME -u XDG_CACHE_HOME HOME=", filename:dirname(File), " "]).
