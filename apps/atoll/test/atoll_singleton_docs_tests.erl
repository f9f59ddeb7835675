%% docs/singletons.md says what is so; its programs are compiled here, and run on nodes by
%% atoll_singleton_SUITE.
-module(atoll_singleton_docs_tests).

-include_lib("eunit/include/eunit.hrl").

-export([modules/0]).

the_programs_compile_without_a_warning_test() ->
    ?assertEqual([tickets, tickets_copy, tickets_sup], [Module || {Module, _} <- modules()]).

every_function_stands_there_test() ->
    {match, Cells} = re:run(page(), "^\\| (`[a-z_]+\\([^|]+) \\|", [global, multiline, {capture, all_but_first, list}]),
    Named = lists:usort([hd(string:lexemes(Call, "(")) || [Cell] <- Cells, Call <- string:lexemes(Cell, "`"), Call =/= ", "]),
    Exported = lists:usort([atom_to_list(F) || {F, _} <- atoll_singleton:module_info(exports)]),
    ?assertEqual(Exported -- ["behaviour_info", "init", "leave", "module_info", "start_keeper", "start_link"], Named).

%% The programs of the page, compiled.
modules() ->
    {match, Blocks} = re:run(page(), "```erlang\n(-module.*?)```", [global, dotall, {capture, all_but_first, list}]),
    [compiled(Block) || [Block] <- Blocks].

compiled(Text) ->
    {ok, Module, Code} = compile:forms(forms(Text, 1), [warnings_as_errors, report]),
    {Module, Code}.

forms(Text, Line) ->
    %% The macros of the page are simple enough for the scanner of macros, which reads files.
    File = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["howto-", os:getpid(), "-", Line, ".erl"])),
    ok = file:write_file(File, Text),
    try
        {ok, Forms} = epp:parse_file(File, []),
        Forms
    after
        ok = file:delete(File)
    end.

page() ->
    {ok, Text} = file:read_file(filename:join([root(), "docs", "singletons.md"])),
    unicode:characters_to_list(Text).

%% The tests run in a build directory inside of the working tree.
root() -> up(filename:absname(code:lib_dir(atoll))).

up(Dir) ->
    case filelib:is_file(filename:join([Dir, "docs", "singletons.md"])) of
        true -> Dir;
        false when Dir =/= "/" -> up(filename:dirname(Dir))
    end.
