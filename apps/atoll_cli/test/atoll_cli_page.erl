%% SPDX-License-Identifier: Apache-2.0
%% A page of the documentation that a reader can follow, as the steps that its
%% fenced blocks are. A block is told by its language and by the paragraph before it:
%%
%%   a paragraph that is a path and a colon     a file, and this is its text
%%   `sh', and a shell of Erlang or Elixir      a node in a terminal of its own, each line one
%%   `sh'                                       commands, in the reader's first terminal
%%   `text', with prompts of a shell            what is typed at which node, and the answers
%%   any other                                  shown only
-module(atoll_cli_page).

-export([steps/1, lines/1, read/1, commands/1, arguments/1, unexplained/2]).

-export_type([step/0]).

-type step() ::
    {file, Path :: string(), Text :: binary()}
    | {nodes, [{Name :: binary(), Command :: binary()}]}
    | {commands, [binary()]}
    | {typed, [{Name :: binary(), Line :: binary(), Answer :: [binary()]}]}
    | {shown, Language :: binary(), Text :: binary()}.

-define(NODE, "[a-z0-9_]+@127\\.0\\.0\\.1").

%% @doc The steps of a page, in its order.
-spec steps(Page :: binary()) -> [step()].
steps(Page) ->
    steps(lines(Page), <<>>).

steps([], _) ->
    [];
steps([<<"```", Language/binary>> | Lines], Before) ->
    {Block, [_ | Rest]} = lists:splitwith(fun(Line) -> Line =/= <<"```">> end, Lines),
    [step(Language, Block, path(Before)) | steps(Rest, <<>>)];
steps([<<>> | Lines], Before) ->
    steps(Lines, Before);
steps([Line | Lines], _) ->
    steps(Lines, Line).

path(Before) ->
    case re:run(Before, "^`([^` ]+)`:$", [{capture, all_but_first, list}]) of
        {match, [Path]} -> Path;
        nomatch -> none
    end.

step(_Language, Block, Path) when is_list(Path) ->
    {file, Path, text(Block)};
step(<<"sh">>, Block, none) ->
    case [{Name, Line} || Line <- Block, Name <- node_of(Line)] of
        Nodes when length(Nodes) =:= length(Block) -> {nodes, Nodes};
        [] -> {commands, Block}
    end;
step(<<"text">>, [First | _] = Block, none) ->
    case prompt(First) of
        {_, _} -> {typed, typed(Block)};
        none -> {shown, <<"text">>, text(Block)}
    end;
step(Language, Block, none) ->
    {shown, Language, text(Block)}.

%% A command that ends with a shell.
node_of(Line) ->
    case re:run(Line, " console$| start_iex$|^iex ", [{capture, none}]) of
        match ->
            {match, [Name]} = re:run(Line, ?NODE, [{capture, first, binary}]),
            [Name];
        nomatch ->
            []
    end.

typed([]) ->
    [];
typed([Line | Lines]) ->
    {Name, Typed} = prompt(Line),
    {Answer, Rest} = lists:splitwith(fun(L) -> prompt(L) =:= none end, Lines),
    [{Name, Typed, Answer} | typed(Rest)].

prompt(Line) ->
    case re:run(Line, "^(?:iex)?\\((" ?NODE ")\\)[0-9]+> (.+)$", [{capture, all_but_first, binary}]) of
        {match, [Name, Typed]} -> {Name, Typed};
        nomatch -> none
    end.

%% @doc The text of a page of the tree, such as "docs/chaos.md".
-spec read(file:filename()) -> binary().
read(Name) ->
    {ok, Text} = file:read_file(filename:join(atoll_cli_os:root(), Name)),
    Text.

%% @doc The lines of its `sh' blocks that run bin/atoll.
-spec commands(Page :: binary()) -> [binary()].
commands(Page) ->
    case re:run(Page, "```sh\n(.*?)```", [global, dotall, {capture, [1], binary}]) of
        {match, Blocks} -> [Line || [Block] <- Blocks, <<"bin/atoll ", _/binary>> = Line <- lines(Block)];
        nomatch -> []
    end.

%% @doc The arguments in such a line, as a shell divides them.
-spec arguments(Command :: binary()) -> [string()].
arguments(<<"bin/atoll ", Arguments/binary>>) ->
    Said = os:cmd(unicode:characters_to_list(["printf '%s\\n' ", Arguments])),
    string:lexemes(Said, "\n").

%% @doc The keys of what a command has printed with `--json' that a page does not explain.
-spec unexplained(Json :: binary(), Page :: binary()) -> [binary()].
unexplained(Json, Page) ->
    {match, Keys} = re:run(Json, "\"([a-z_0-9]+)\":", [global, {capture, all_but_first, binary}]),
    [Key || Key <- lists:usort(lists:append(Keys)), binary:match(Page, <<"`", Key/binary, "`">>) =:= nomatch].

%% @doc The lines of a text, less the end of the last.
-spec lines(binary()) -> [binary()].
lines(Text) ->
    binary:split(string:trim(Text, trailing, "\n"), <<"\n">>, [global]).

text(Lines) ->
    iolist_to_binary([[Line, $\n] || Line <- Lines]).
