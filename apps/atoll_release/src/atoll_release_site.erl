%% SPDX-License-Identifier: Apache-2.0
%% @doc The documents as one site, which opens from its files, without a server: the pages of
%% the tree, each where it stands in the tree, with docs/README.md as the first one; beside each
%% the map of all; and of each application what EDoc says of its modules.
%%
%% A page is rendered by `cmark-gfm'. A link to a page leads to its HTML, one to another file or
%% folder of the tree to a copy of that.
-module(atoll_release_site).

-export([write/2, page/4, joined/4]).

-type frame() :: #{
    version := string(),
    map := binary(),
    %% Those of which there are modules, and the modules of the library that programs call.
    applications := [string()],
    public := [module()]
}.

-define(MAP, "docs/README.md").

%% @doc Makes the site in a folder that it empties before, and answers with its first page.
-spec write(Root :: file:filename(), Folder :: file:filename()) -> {ok, file:filename()} | {error, unicode:chardata()}.
write(Root, Folder) ->
    case os:find_executable("cmark-gfm") of
        false -> {error, "cmark-gfm is not installed, which renders the pages"};
        _ -> made(Root, Folder)
    end.

made(Root, Folder) ->
    _ = file:del_dir_r(Folder),
    Applications = [{filename:basename(Dir), filename:join(Root, Dir)} || Dir <- filelib:wildcard("{apps,cases}/*", Root)],
    case [Why || {Name, Dir} <- Applications, {error, Why} <- [modules(Name, Dir, Folder)]] of
        [] ->
            ok = joined(Folder),
            Frame = frame(Root, [Name || {Name, _} <- Applications]),
            ok = lists:foreach(fun(Page) -> render(Page, Frame, Root, Folder) end, atoll_release_tree:pages(Root)),
            {ok, filename:join(Folder, place(?MAP))};
        Whys ->
            {error, lists:join($\n, Whys)}
    end.

%% What EDoc says of an application. It tells of what is wrong on its own.
modules(Name, Dir, Folder) ->
    To = filename:join([Folder, "modules", Name]),
    ok = filelib:ensure_path(To),
    try edoc:application(list_to_atom(Name), Dir, [{dir, To}, {todo, false}]) of
        ok -> ok
    catch
        exit:_ -> {error, ["the documentation of the modules of ", Name, " is wrong, see above"]}
    end.

%% EDoc knows the modules of one application at a time. What is hidden is named, and has no page.
joined(Folder) ->
    Files = filelib:wildcard("modules/*/*.html", Folder),
    Where = maps:from_list([{filename:basename(File), File} || File <- Files]),
    lists:foreach(
        fun(File) ->
            Path = filename:join(Folder, File),
            {ok, Html} = file:read_file(Path),
            ok = file:write_file(Path, joined(File, Html, Where, Folder))
        end,
        Files
    ).

%% @doc A page of EDoc whose links lead to the modules of other applications too, or are none.
-spec joined(file:filename(), Html :: binary(), Where :: #{Page :: string() => file:filename()}, Folder :: file:filename()) -> binary().
joined(File, Html, Where, Folder) ->
    iolist_to_binary(parts(File, Html, Where, Folder)).

parts(File, Html, Where, Folder) ->
    case re:run(Html, "<a [^>]*?\\bhref=\"([^\"#:]+\\.html)(#[^\"]*)?\"[^>]*>(.*?)</a>", [dotall, {capture, all, index}]) of
        {match, [{At, Size}, Target, Anchor, Text]} ->
            <<Before:At/binary, Link:Size/binary, After/binary>> = Html,
            [Before, link(binary_to_list(binary:part(Html, Target)), {Link, part(Html, Anchor), part(Html, Text)}, File, Where, Folder) | parts(File, After, Where, Folder)];
        nomatch ->
            [Html]
    end.

part(_Html, {-1, 0}) -> <<>>;
part(Html, Part) -> binary:part(Html, Part).

link(Target, {Link, Anchor, Text}, File, Where, Folder) ->
    case {filelib:is_file(filename:join([Folder, filename:dirname(File), Target])), Where} of
        {true, _} -> Link;
        {false, #{Target := There}} -> ["<a href=\"", atoll_release_links:relative(File, There), Anchor, "\">", Text, "</a>"];
        {false, #{}} -> Text
    end.

%% What all pages have.
frame(Root, Applications) ->
    #{
        version => atoll_release_tree:version(Root),
        map => atoll_release_tree:read(Root, ?MAP),
        applications => Applications,
        public => atoll_release_tree:public(Root)
    }.

render(Page, Frame, Root, Folder) ->
    Source = atoll_release_tree:read(Root, Page),
    Copied = fun(File) ->
        To = filename:join(Folder, File),
        case filelib:is_file(To) of
            true -> ok;
            false -> copy(filename:join(Root, File), To)
        end
    end,
    Ready = atoll_release_links:map(
        fun(Target) ->
            case target(Page, Target, Root) of
                {copy, File, Link} -> ok = Copied(File), {to, Link};
                Other -> Other
            end
        end,
        Source
    ),
    File = filename:join(Folder, place(Page)),
    ok = filelib:ensure_dir(File),
    Markdown = File ++ ".md",
    ok = file:write_file(Markdown, Ready),
    "" = os:cmd("cmark-gfm --unsafe -e table -e autolink '" ++ Markdown ++ "' >'" ++ File ++ "'"),
    ok = file:delete(Markdown),
    {ok, Html} = file:read_file(File),
    ok = file:write_file(File, page(Page, Html, Source, Frame)).

%% Where a page stands in the site.
place(?MAP) -> "index.html";
place(Page) -> filename:rootname(Page) ++ ".html".

target(From, Target, Root) ->
    case atoll_release_links:resolve(From, Target) of
        web ->
            {to, Target};
        {From, Anchor} when Anchor =/= "" ->
            {to, "#" ++ Anchor};
        {File, Anchor} ->
            case filename:extension(File) of
                ".md" -> {to, atoll_release_links:relative(place(From), place(File)) ++ lists:append(["#" ++ Anchor || Anchor =/= ""])};
                _ ->
                    true = filelib:is_file(filename:join(Root, File)),
                    {copy, File, atoll_release_links:relative(place(From), File)}
            end
    end.

copy(From, To) ->
    case file:list_dir(From) of
        {ok, Names} ->
            ok = filelib:ensure_path(To),
            lists:foreach(fun(Name) -> copy(filename:join(From, Name), filename:join(To, Name)) end, Names);
        {error, enotdir} ->
            ok = filelib:ensure_dir(To),
            {ok, _} = file:copy(From, To),
            ok
    end.

%% @doc A whole page of what was rendered: its headings have the anchors that links name, and
%% the map stands beside it. The name of a public module leads to it.
-spec page(Page :: file:filename(), Html :: binary(), Source :: binary(), frame()) -> binary().
page(Page, Html, Source, #{version := Version, map := Map, applications := Applications, public := Public}) ->
    [Title | _] = headings(Html),
    iolist_to_binary([
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>",
        Title, <<" · Atoll "/utf8>>, Version, "</title><style>", style(), "</style></head><body>\n<nav>",
        "<p><a href=\"", atoll_release_links:relative(place(Page), "index.html"), "\"><b>Atoll</b> ", Version, "</a></p>",
        [entry(Line, Page) || Line <- binary:split(Map, <<"\n">>, [global])],
        "<h4>Modules</h4>",
        [["<a href=\"", to_modules(Page, Name, "index"), "\">", Name, "</a>"] || Name <- Applications],
        "</nav>\n<main>\n", anchored(lists:foldl(fun(Module, H) -> named(Module, Page, H) end, Html, Public), atoll_release_links:anchors(Source)),
        "</main></body></html>\n"
    ]).

to_modules(Page, Name, File) ->
    atoll_release_links:relative(place(Page), filename:join(["modules", Name, File ++ ".html"])).

named(Module, Page, Html) ->
    Name = atom_to_list(Module),
    Link = ["<a href=\"", to_modules(Page, "atoll", Name), "\"><code>", Name, "</code></a>"],
    binary:replace(Html, list_to_binary(["<code>", Name, "</code>"]), list_to_binary(Link), [global]).

headings(Html) ->
    {match, Found} = re:run(Html, "<h[1-6]>(.*?)</h[1-6]>", [global, dotall, {capture, [1], binary}]),
    [re:replace(Head, "<[^>]*>", "", [global, {return, binary}]) || [Head] <- Found].

%% Of the map the headings, and the first link of each line of a list or a table.
entry(<<"## ", Head/binary>>, _Page) ->
    ["<h4>", Head, "</h4>"];
entry(<<Sign, " ", _/binary>> = Line, Page) when Sign =:= $-; Sign =:= $| ->
    case re:run(Line, "^[-|] \\[([^]]+)\\]\\(([^)]+)\\)", [{capture, all_but_first, list}]) of
        {match, [Text, Target]} -> ["<a href=\"", from_map(Target, Page), "\">", string:replace(Text, "`", "", all), "</a>"];
        nomatch -> []
    end;
entry(_Line, _Page) ->
    [].

from_map(Target, Page) ->
    {File, Anchor} = atoll_release_links:resolve(?MAP, Target),
    [atoll_release_links:relative(place(Page), place(File)), ["#" ++ Anchor || Anchor =/= ""]].

anchored(Html, Anchors) ->
    anchored(Html, Anchors, []).

anchored(Html, [], Done) ->
    lists:reverse([Html | Done]);
anchored(Html, [Anchor | Anchors], Done) ->
    {match, [{At, 4}]} = re:run(Html, "<h[1-6]>"),
    <<Before:At/binary, "<h", Level, ">", After/binary>> = Html,
    anchored(After, Anchors, [[Before, "<h", Level, " id=\"", Anchor, "\">"] | Done]).

style() ->
    ":root{color-scheme:light dark}"
    "body{margin:0;display:flex;font:16px/1.55 system-ui,sans-serif}"
    "nav{flex:0 0 15rem;box-sizing:border-box;padding:1rem;height:100vh;overflow:auto;position:sticky;top:0;border-right:1px solid #8884;font-size:.9rem}"
    "nav a{display:block;text-decoration:none;padding:.1rem 0}nav h4{margin:1rem 0 .2rem}"
    "main{min-width:0;max-width:52rem;padding:1rem 2rem 4rem}"
    "code,pre{font:.9em ui-monospace,monospace;background:#8882}code{padding:.1em .25em;border-radius:3px}"
    "pre{padding:.8rem;overflow:auto;border-radius:4px}pre code{background:none;padding:0}"
    "table{border-collapse:collapse;display:block;overflow:auto}td,th{border:1px solid #8886;padding:.25rem .6rem;text-align:left;vertical-align:top}"
    "img{max-width:100%}"
    "@media(max-width:50rem){body{display:block}nav{height:auto;position:static;border:0}}".
