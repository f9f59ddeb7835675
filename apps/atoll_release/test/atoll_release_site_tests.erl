%% SPDX-License-Identifier: Apache-2.0
%% A page of the site.
-module(atoll_release_site_tests).

-include_lib("eunit/include/eunit.hrl").

-define(FRAME, #{
    version => "1.2.3",
    map => <<"# Map\n\n## Start\n\n- [First](one.md): the first\n- [Out](../CHANGELOG.md): more\n">>,
    applications => ["atoll"],
    public => [atoll_place]
}).

a_page_has_anchors_the_map_and_its_title_test() ->
    Html = <<"<h1>Two <code>x</code></h1>\n<h2>Part one</h2>\n<p>By <code>atoll_place</code>.</p>\n">>,
    Page = atoll_release_site:page("docs/sub/two.md", Html, <<"# Two `x`\n## Part one\nBy `atoll_place`.\n">>, ?FRAME),
    [
        ?assertEqual({Part, true}, {Part, binary:match(Page, Part) =/= nomatch})
     || Part <- [
            <<"<title>Two x · Atoll 1.2.3</title>"/utf8>>,
            <<"<h1 id=\"two-x\">Two">>,
            <<"<h2 id=\"part-one\">Part one</h2>">>,
            <<"<h4>Start</h4><a href=\"../one.html\">First</a><a href=\"../../CHANGELOG.html\">Out</a>">>,
            <<"<a href=\"../../index.html\">">>,
            <<"By <a href=\"../../modules/atoll/atoll_place.html\"><code>atoll_place</code></a>.">>,
            <<"<a href=\"../../modules/atoll/index.html\">atoll</a>">>
        ]
    ].

a_link_of_edoc_leads_to_the_module_of_another_application_or_is_none_test() ->
    Html = <<
        "<a docgen-rel=\"seeerl\" docgen-href=\"b\" href=\"b.html#t-1\">b</a>, <a href=\"hidden.html\"><code>h</code></a>, "
        "<a href=\"#x\">x</a>, <a href=\"https://a.example/c.html\">c</a>"
    >>,
    Joined = atoll_release_site:joined("modules/one/a.html", Html, #{"b.html" => "modules/two/b.html"}, "/nowhere"),
    ?assertEqual(
        <<"<a href=\"../two/b.html#t-1\">b</a>, <code>h</code>, <a href=\"#x\">x</a>, <a href=\"https://a.example/c.html\">c</a>">>,
        Joined
    ).
