%% SPDX-License-Identifier: Apache-2.0
%% @doc Where in the tree stands what is handed out: the pages, the version, the modules that
%% programs call. Paths are relative to the root of the tree.
-module(atoll_release_tree).

-export([root/0, pages/1, version/1, public/1, read/2]).

%% @doc The root of the tree in which this was built.
-spec root() -> file:filename_all().
root() ->
    up(filename:absname(code:lib_dir(atoll_release))).

up(Dir) ->
    case filelib:is_file(filename:join(Dir, "CONTRIBUTING.md")) of
        true -> Dir;
        false when Dir =/= "/" -> up(filename:dirname(Dir))
    end.

%% @doc All pages, in the order of their names.
-spec pages(Root :: file:filename()) -> [file:filename()].
pages(Root) ->
    lists:append([filelib:wildcard(Files, Root) || Files <- ["*.md", "apps/*/*.md", "cases/*/*.md", "docs/**/*.md"]]).

%% @doc The version of the library. It stands nowhere else: the tools and the cases are not handed
%% out, and have none.
-spec version(Root :: file:filename()) -> string().
version(Root) ->
    {ok, [{application, atoll, Keys}]} = file:consult(filename:join(Root, "apps/atoll/src/atoll.app.src")),
    proplists:get_value(vsn, Keys).

%% @doc The modules of the library that are not `@hidden'.
-spec public(Root :: file:filename()) -> [module()].
public(Root) ->
    Sources = filelib:wildcard("apps/atoll/src/**/*.erl", Root),
    lists:sort([list_to_atom(filename:basename(File, ".erl")) || File <- Sources, not is_hidden(read(Root, File))]).

is_hidden(Source) ->
    [Head | _] = binary:split(Source, <<"\n-module(">>),
    re:run(Head, "^%% @hidden$", [multiline, {capture, none}]) =:= match.

%% @doc The text of a file.
-spec read(Root :: file:filename(), file:filename()) -> binary().
read(Root, File) ->
    {ok, Text} = file:read_file(filename:join(Root, File)),
    Text.
