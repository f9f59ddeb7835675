%% SPDX-License-Identifier: Apache-2.0
%% Links and headings of pages.
-module(atoll_release_links_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_release_links, [all/1, map/2, resolve/2, relative/2, anchors/1]).

-define(PAGE, <<
    "# A page\n\nSee [one](one.md#a-b), [`two`](../two) and [the [third]](#a-page).\n\n"
    "```erlang\n# no heading\n[no](link)\n```\n\n## The `attr` of [old](x.md), again\n## A page\n[a](https://b.example/c)\n"
>>).

links_are_found_outside_of_code_test() ->
    ?assertEqual(["one.md#a-b", "../two", "#a-page", "x.md", "https://b.example/c"], all(?PAGE)).

headings_have_the_anchors_that_links_name_test() ->
    ?assertEqual(["a-page", "the-attr-of-old-again", "a-page-1"], anchors(?PAGE)).

a_link_is_put_in_place_or_left_as_text_test() ->
    To = fun
        ("one.md#a-b") -> {to, "1.html"};
        ("../two") -> drop;
        (Other) -> {to, Other}
    end,
    ?assertEqual(
        binary:replace(binary:replace(?PAGE, <<"one.md#a-b">>, <<"1.html">>), <<"[`two`](../two)">>, <<"`two`">>),
        map(To, ?PAGE)
    ).

a_link_leads_from_its_page_test() ->
    ?assertEqual({"docs/a.md", ""}, resolve("docs/b.md", "a.md")),
    ?assertEqual({"a.md", "x"}, resolve("docs/b.md", "../a.md#x")),
    ?assertEqual({"docs/b.md", "x"}, resolve("docs/b.md", "#x")),
    ?assertEqual(web, resolve("docs/b.md", "https://a.example/")).

a_file_is_named_from_another_one_test() ->
    [
        ?assertEqual(To, relative(From, File))
     || {From, File, To} <- [
            {"a.html", "b.html", "b.html"},
            {"a.html", "docs/b.html", "docs/b.html"},
            {"docs/a.html", "b.html", "../b.html"},
            {"docs/a.html", "docs/b.html", "b.html"},
            {"docs/e/a.html", "docs/b.html", "../b.html"},
            {"docs/a.html", "docs/examples", "examples"}
        ]
    ].
