%% SPDX-License-Identifier: Apache-2.0
%% @doc The links and headings of a page in Markdown, as our pages have them: `[text](target)',
%% and `# Heading' alone on its line. What stands in a fenced block is neither.
-module(atoll_release_links).

-export([all/1, map/2, resolve/2, relative/2, anchors/1]).

-define(LINK, "\\[((?:[^][]|\\[[^][]*\\])*)\\]\\(([^()\\s]+)\\)").

%% @doc The targets of the links, in their order.
-spec all(Page :: binary()) -> [Target :: string()].
all(Page) ->
    [
        Target
     || {text, Line} <- lines(Page),
        {match, Found} <- [re:run(Line, ?LINK, [global, {capture, [2], list}])],
        [Target] <- Found
    ].

%% @doc The page with other targets: `drop' leaves the text of a link alone.
-spec map(fun((Target :: string()) -> {to, string()} | drop), Page :: binary()) -> binary().
map(To, Page) ->
    iolist_to_binary(lists:join($\n, [mapped(To, Line) || Line <- lines(Page)])).

mapped(_To, {code, Line}) ->
    [Line];
mapped(To, {text, Line}) ->
    case re:run(Line, ?LINK, [{capture, all, index}]) of
        {match, [{At, Size}, Text, Target]} ->
            <<Before:At/binary, _:Size/binary, After/binary>> = Line,
            Said = binary:part(Line, Text),
            Link =
                case To(binary_to_list(binary:part(Line, Target))) of
                    {to, New} -> [$[, Said, "](", New, $)];
                    drop -> Said
                end,
            [Before, Link | mapped(To, {text, After})];
        nomatch ->
            [Line]
    end.

%% @doc The file that a link leads to, from the root of the tree, and the anchor in it. A link of
%% the web is no file.
-spec resolve(From :: file:filename(), Target :: string()) -> {file:filename(), Anchor :: string()} | web.
resolve(From, Target) ->
    case {re:run(Target, "^[a-z]+:", [{capture, none}]), string:split(Target, "#")} of
        {match, _} -> web;
        {nomatch, ["", Anchor]} -> {From, Anchor};
        {nomatch, [Path]} -> {flat(filename:join(filename:dirname(From), Path)), ""};
        {nomatch, [Path, Anchor]} -> {flat(filename:join(filename:dirname(From), Path)), Anchor}
    end.

%% Without the steps back.
flat(Path) ->
    Steps = lists:foldl(
        fun
            (".", Done) -> Done;
            ("..", [Last | Done]) when Last =/= ".." -> Done;
            (Step, Done) -> [Step | Done]
        end,
        [],
        filename:split(Path)
    ),
    filename:join(lists:reverse(Steps)).

%% @doc How a file is named in a link of another file.
-spec relative(From :: file:filename(), To :: file:filename()) -> file:filename_all().
relative(From, To) ->
    {Back, Down} = apart(filename:split(From), filename:split(To)),
    filename:join([".." || _ <- tl(Back)] ++ Down).

apart([Step | From], [Step | [_ | _] = To]) when From =/= [] -> apart(From, To);
apart(From, To) -> {From, To}.

%% @doc The anchors of the headings, in their order, as GitHub and others make them.
-spec anchors(Page :: binary()) -> [string()].
anchors(Page) ->
    Heads = [anchor(Head) || {text, Line} <- lines(Page), {match, [Head]} <- [re:run(Line, "^#{1,6} (.*)$", [{capture, all_but_first, list}])]],
    numbered(Heads, #{}).

anchor(Head) ->
    Text = re:replace(Head, ?LINK, "\\1", [global, {return, list}]),
    re:replace(re:replace(string:lowercase(Text), "[^a-z0-9 _-]", "", [global, {return, list}]), " ", "-", [global, {return, list}]).

numbered([], _Seen) ->
    [];
numbered([Head | Heads], Seen) ->
    case Seen of
        #{Head := N} -> [Head ++ "-" ++ integer_to_list(N) | numbered(Heads, Seen#{Head := N + 1})];
        #{} -> [Head | numbered(Heads, Seen#{Head => 1})]
    end.

lines(Page) ->
    fenced(binary:split(Page, <<"\n">>, [global]), text).

fenced([], _) ->
    [];
fenced([<<"```", _/binary>> = Line | Lines], text) ->
    [{code, Line} | fenced(Lines, code)];
fenced([<<"```">> = Line | Lines], code) ->
    [{code, Line} | fenced(Lines, text)];
fenced([Line | Lines], In) ->
    [{In, Line} | fenced(Lines, In)].
