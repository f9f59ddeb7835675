%% SPDX-License-Identifier: Apache-2.0
%% That what the tree says of itself is so: its links, its map, its version, its interface.
-module(atoll_release_tree_tests).

-include_lib("eunit/include/eunit.hrl").

%% A link to a page of numbers.
-define(MEASURED, "\\[[^]]*\\]\\((docs/(?:evidence/[a-z]+\\.md#[a-z0-9-]+|debench\\.md#what-came-of-it|overlay\\.md#measured))\\)").

links_lead_somewhere_test_() ->
    {timeout, 60, fun() ->
        Root = root(),
        Pages = [{Page, read(Page)} || Page <- atoll_release_tree:pages(Root)],
        Anchors = maps:from_list([{Page, atoll_release_links:anchors(Text)} || {Page, Text} <- Pages]),
        [
            ?assertEqual({Page, Target, true}, {Page, Target, leads(File, Anchor, Root, Anchors)})
         || {Page, Text} <- Pages,
            Target <- atoll_release_links:all(Text),
            {File, Anchor} <- [atoll_release_links:resolve(Page, Target)]
        ]
    end}.

leads(File, "", Root, _Anchors) -> filelib:is_file(filename:join(Root, File));
leads(File, Anchor, _Root, Anchors) -> lists:member(Anchor, map_get(File, Anchors)).

%% CONTRIBUTING.md and the like stand beside the code that they are about.
the_map_has_all_pages_test_() ->
    {timeout, 60, fun() ->
        Named = [
            File
         || Target <- atoll_release_links:all(read("docs/README.md")), {File, _} <- [atoll_release_links:resolve("docs/README.md", Target)]
        ],
        ?assertEqual([], atoll_release_tree:pages(root()) -- ["docs/README.md" | Named])
    end}.

%% The one place that says which modules are the interface.
the_public_modules_are_those_of_the_page_test_() ->
    {timeout, 60, fun() ->
        {match, Rows} = re:run(read("docs/api.md"), "^\\| `([a-z0-9_]+)` \\|", [multiline, global, {capture, all_but_first, list}]),
        ?assertEqual(lists:sort([list_to_atom(Name) || [Name] <- Rows]), atoll_release_tree:public(root()))
    end}.

%% The cases are programs as a user would write them.
the_cases_call_public_modules_only_test_() ->
    {timeout, 60, fun cases_call_public_modules_only/0}.

cases_call_public_modules_only() ->
    Public = atoll_release_tree:public(root()),
    Library = [list_to_atom(filename:basename(File, ".erl")) || File <- filelib:wildcard("apps/atoll/src/**/*.erl", root())],
    Hidden = Library -- Public,
    Calls = [
        {filename:basename(Beam, ".beam"), Module}
     || Case <- filelib:wildcard("cases/*", root()),
        Beam <- filelib:wildcard(filename:join(code:lib_dir(list_to_atom(filename:basename(Case))), "ebin/*.beam")),
        {ok, {_, [{imports, Imports}]}} <- [beam_lib:chunks(Beam, [imports])],
        Module <- lists:usort([M || {M, _, _} <- Imports])
    ],
    ?assertMatch([_ | _], [Call || {_, Module} = Call <- Calls, lists:member(Module, Public)]),
    ?assertEqual([], [Call || {_, Module} = Call <- Calls, lists:member(Module, Hidden)]).

%% What is not handed out has none.
the_version_stands_in_one_place_test_() ->
    {timeout, 60, fun() ->
        Root = root(),
        Versions = [
            {filename:basename(File), proplists:get_value(vsn, Keys)}
         || File <- filelib:wildcard("{apps,cases}/*/src/*.app.src", Root),
            {ok, [{application, _, Keys}]} <- [file:consult(filename:join(Root, File))]
        ],
        ?assertMatch([_, _ | _], Versions),
        ?assertEqual([{"atoll.app.src", version()}], [V || {_, Vsn} = V <- Versions, Vsn =/= "0"])
    end}.

the_changelog_begins_with_the_version_test() ->
    {match, [Newest]} = re:run(read("CHANGELOG.md"), "^## \\[([0-9.]+)\\]", [multiline, {capture, all_but_first, list}]),
    ?assertEqual(version(), Newest).

%% No tag is published, so both forms name the branch, and the front page says which version that is.
what_is_to_be_added_to_a_project_is_said_once_test() ->
    Revisions = [
        captured(Text, Form)
     || Text <- [read("README.md"), read("apps/atoll/README.md")],
        Form <- ["\\{branch, \"([^\"]+)\"\\}", "branch: \"([^\"]+)\""]
    ],
    ?assertEqual(["main"], lists:usort(lists:append(Revisions))),
    ?assertEqual([version()], captured(read("README.md"), "^Version ([0-9.]*[0-9]),")).

captured(Text, Form) ->
    case re:run(Text, Form, [multiline, global, {capture, all_but_first, list}]) of
        {match, Found} -> lists:append(Found);
        nomatch -> []
    end.

%% What the front page says of a measurement stands where the link behind it leads, exact or rounded.
the_figures_of_the_front_page_are_those_of_the_pages_test() ->
    Claims = lists:append([claims(Line) || Line <- string:split(read("README.md"), "\n", all)]),
    ?assertMatch([_, _, _, _, _, _ | _], Claims),
    [?assertEqual({Said, []}, {Said, numbers(Said) -- said(numbers(Said), Target)}) || {Said, Target} <- Claims].

%% In a table what stands in the same cell; where the link is all of it, in the row.
claims(<<"|", _/binary>> = Row) ->
    lists:append([
        case claims(Cell) of
            [{" ", Target}] -> [{re:replace(Row, ?MEASURED, "", [global, {return, list}]), Target}];
            Claims -> Claims
        end
     || Cell <- string:lexemes(Row, "|")
    ]);
claims(Paragraph) ->
    case re:run(Paragraph, "(.*?)" ?MEASURED, [global, {capture, all_but_first, list}]) of
        {match, Found} -> [{Said, Target} || [Said, Target] <- Found];
        nomatch -> []
    end.

numbers(Text) ->
    case re:run(Text, "[0-9](?:[0-9,]*[0-9])?(?:\\.[0-9]+)?", [global, {capture, first, list}]) of
        {match, Found} -> [lists:flatten(string:replace(Number, ",", "", all)) || [Number] <- Found];
        nomatch -> []
    end.

%% Those of them that the section has, with as many decimals or more.
said(Numbers, Target) ->
    {File, Anchor} = atoll_release_links:resolve("README.md", Target),
    Section = [to_number(Number) || Number <- numbers(section(read(File), Anchor))],
    [Number || Number <- Numbers, lists:any(fun(N) -> to_number(rounded(N, Number)) == to_number(Number) end, Section)].

rounded(N, Like) ->
    Decimals = case string:split(Like, ".") of [_, Fraction] -> length(Fraction); [_] -> 0 end,
    float_to_list(float(N), [{decimals, Decimals}]).

to_number(Text) ->
    case string:to_float(Text) of
        {Float, ""} -> Float;
        {error, no_float} -> list_to_integer(Text)
    end.

%% From its heading to the next of its level.
section(Page, Anchor) ->
    {_, [Head | After]} = lists:splitwith(fun(Line) -> atoll_release_links:anchors(Line) =/= [Anchor] end, string:split(Page, "\n", all)),
    [Marks | _] = string:split(Head, " "),
    IsNext = fun(Line) -> re:run(Line, "^#{1," ++ integer_to_list(byte_size(Marks)) ++ "} ", [{capture, none}]) =:= match end,
    lists:join($\n, lists:takewhile(fun(Line) -> not IsNext(Line) end, After)).

version() -> atoll_release_tree:version(root()).

read(File) -> atoll_release_tree:read(root(), File).

root() -> atoll_release_tree:root().

every_source_names_the_licence_test_() ->
    {timeout, 60, fun() -> ?assertEqual("", os:cmd(filename:join([root(), "scripts", "spdx"]) ++ " --check")) end}.

%% Who takes the library's folder alone has it.
the_library_has_the_text_of_the_licence_test() ->
    ?assertEqual(read("LICENSE"), read("apps/atoll/LICENSE")).
