%% SPDX-License-Identifier: Apache-2.0
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

%% @doc The programs of the page, compiled.
modules() -> atoll_page_programs:modules("singletons.md").

page() -> atoll_page_programs:text("singletons.md").
