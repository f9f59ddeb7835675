%% SPDX-License-Identifier: Apache-2.0
%% docs/overlay.md says what is so.
-module(atoll_overlay_docs_tests).
-include_lib("eunit/include/eunit.hrl").

every_call_exists_test() ->
    [Calls] = tables("Calls"),
    Exported = [atom_to_list(Name) || {Name, _Arity} <- atoll:module_info(exports)],
    {match, Named} = re:run([hd(Row) || Row <- Calls], "`([a-z]+)\\(", [global, {capture, all_but_first, list}]),
    ?assertMatch([_, _, _ | _], Named),
    ?assertEqual([], lists:usort(lists:append(Named)) -- Exported).

every_event_stands_there_test() ->
    [Events] = tables("Events"),
    Said = lists:flatten(atoll:format_error({no_such_event, tea})),
    [_, Kinds] = string:split(Said, "there are ", trailing),
    ?assertEqual(lists:sort(string:split(Kinds, ", ", all)), lists:sort([quoted(Kind) || [Kind | _] <- Events])).

the_bounds_are_those_of_the_detector_test() ->
    [Bounds] = tables("Failure detection"),
    Said = defaults(Bounds),
    Known = maps:map(fun(_Key, {_Kind, Default}) -> Default end, atoll_detector_watchers:options()),
    ?assertEqual(Said, maps:with(maps:keys(Said), Known)).

%% What users copy is what the suites run.
the_handler_is_that_of_the_tests_test() ->
    {ok, Source} = file:read_file(filename:join([root(), "apps", "atoll", "test", "atoll_handler_registers.erl"])),
    [_, Code] = binary:split(Source, <<"-module">>),
    ?assertMatch([_, _], binary:split(section("State on all members"), binary:replace(Code, <<"atoll_handler_registers">>, <<"settings">>))).

the_options_of_a_handler_stand_there_test() ->
    [_Callbacks, _Calls, Options] = tables("State on all members"),
    ?assertEqual(maps:map(fun(_Key, {_Kind, Default}) -> Default end, atoll_handler_core:options()), defaults(Options)).

defaults(Rows) ->
    maps:from_list([{list_to_atom(quoted(Key)), term(quoted(Default))} || [Key, Default | _] <- Rows]).

quoted(Cell) ->
    {match, [Text]} = re:run(Cell, "^`([^`]+)`$", [{capture, all_but_first, list}]),
    Text.

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% The rows of each table, below its head.
tables(Title) ->
    tables(binary:split(section(Title), <<"\n">>, [global]), []).

tables([<<"| ", _/binary>>, <<"|---", _/binary>> | Lines], Tables) ->
    {Rows, Rest} = lists:splitwith(fun(Line) -> binary:match(Line, <<"| ">>) =:= {0, 2} end, Lines),
    Cells = [re:split(string:slice(Row, 2), " \\| ", [{return, list}]) || Row <- Rows],
    tables(Rest, [Cells | Tables]);
tables([_ | Lines], Tables) ->
    tables(Lines, Tables);
tables([], Tables) ->
    lists:reverse(Tables).

section(Title) ->
    [_, Section] = binary:split(page("overlay.md"), <<"\n## ", (list_to_binary(Title))/binary, "\n">>),
    hd(binary:split(Section, <<"\n## ">>)).

page(File) ->
    {ok, Text} = file:read_file(filename:join([root(), "docs", File])),
    Text.

%% The tests run in a build directory inside of the working tree.
root() ->
    up(filename:absname(code:lib_dir(atoll))).

up(Dir) ->
    case filelib:is_file(filename:join([Dir, "docs", "overlay.md"])) of
        true -> Dir;
        false when Dir =/= "/" -> up(filename:dirname(Dir))
    end.
