%% SPDX-License-Identifier: Apache-2.0
%% The programs that stand on a page of the documents.
-module(atoll_page_programs).

-export([modules/1, text/1]).

%% @doc Those modules, compiled without a warning.
-spec modules(Page :: string()) -> [{module(), binary()}].
modules(Page) ->
    {match, Blocks} = re:run(text(Page), "```erlang\n(-module.*?)```", [global, dotall, unicode, {capture, all_but_first, list}]),
    [compiled(Block) || [Block] <- Blocks].

compiled(Text) ->
    {ok, Module, Code} = compile:forms(forms(Text), [warnings_as_errors, report]),
    {Module, Code}.

forms(Text) ->
    %% The macros of the page are simple enough for the scanner of macros, which reads files.
    Unique = erlang:unique_integer([positive]),
    File = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["page-", os:getpid(), "-", Unique, ".erl"])),
    ok = file:write_file(File, Text),
    try
        {ok, Forms} = epp:parse_file(File, []),
        Forms
    after
        ok = file:delete(File)
    end.

%% @doc The page `docs/Page'.
-spec text(Page :: string()) -> string().
text(Page) ->
    {ok, Text} = file:read_file(filename:join([root(filename:absname(code:lib_dir(atoll)), Page), "docs", Page])),
    unicode:characters_to_list(Text).

%% The tests run in a build directory inside of the working tree.
root(Dir, Page) ->
    case filelib:is_file(filename:join([Dir, "docs", Page])) of
        true -> Dir;
        false when Dir =/= "/" -> root(filename:dirname(Dir), Page)
    end.
