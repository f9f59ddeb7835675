%% SPDX-License-Identifier: Apache-2.0
%% @doc The library as a package: what stands in apps/atoll, with the licence, the changelog and
%% the pages, which stand elsewhere in the tree. A page that leads to what is not in the package
%% keeps the words of that link.
-module(atoll_release_package).

-export([write/2, name/1, files/1, metadata/1]).

-define(APP, "apps/atoll").

%% @doc Writes the package into a folder, and answers with its path.
-spec write(Root :: file:filename(), Folder :: file:filename()) -> file:filename_all().
write(Root, Folder) ->
    File = filename:join(Folder, name(Root)),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, atoll_release_hex:tarball(metadata(Root), files(Root))),
    File.

%% @doc The name of its file.
-spec name(Root :: file:filename()) -> file:filename().
name(Root) ->
    "atoll-" ++ atoll_release_tree:version(Root) ++ ".tar".

%% @doc Its files, by their names in it.
-spec files(Root :: file:filename()) -> [{file:filename(), binary()}].
files(Root) ->
    From = places(Root),
    Named = maps:from_list([{In, Name} || {Name, In} <- From]),
    [{Name, text(In, Name, Named, Root)} || {Name, In} <- From].

%% Where what is in the package stands in the tree.
places(Root) ->
    [{string:prefix(In, ?APP ++ "/"), In} || Files <- ["README.md", "LICENSE", "rebar.config", "src/**/*.{erl,src}"], In <- files(?APP ++ "/" ++ Files, Root)] ++
        [{In, In} || Files <- ["CHANGELOG.md", "docs/**"], In <- files(Files, Root)].

files(Files, Root) ->
    [File || File <- filelib:wildcard(Files, Root), filelib:is_regular(filename:join(Root, File))].

text(In, Name, Named, Root) ->
    Text = atoll_release_tree:read(Root, In),
    case filename:extension(In) of
        ".md" -> atoll_release_links:map(fun(Target) -> target(Target, In, Name, Named) end, Text);
        _ -> Text
    end.

target(Target, In, Name, Named) ->
    case atoll_release_links:resolve(In, Target) of
        {In, _} -> {to, Target};
        {File, Anchor} when is_map_key(File, Named) ->
            {to, atoll_release_links:relative(Name, map_get(File, Named)) ++ lists:append(["#" ++ Anchor || Anchor =/= ""])};
        {_, _} -> drop;
        web -> {to, Target}
    end.

%% @doc What Hex is told of it.
-spec metadata(Root :: file:filename()) -> [{Key :: binary(), term()}].
metadata(Root) ->
    {ok, [{application, atoll, Keys}]} = file:consult(filename:join([Root, ?APP, "src/atoll.app.src"])),
    [
        {<<"name">>, <<"atoll">>},
        {<<"app">>, <<"atoll">>},
        {<<"version">>, list_to_binary(proplists:get_value(vsn, Keys))},
        {<<"description">>, list_to_binary(proplists:get_value(description, Keys))},
        {<<"licenses">>, [list_to_binary(Name) || Name <- proplists:get_value(licenses, Keys)]},
        {<<"links">>, [{list_to_binary(Name), list_to_binary(To)} || {Name, To} <- proplists:get_value(links, Keys, [])]},
        {<<"build_tools">>, [<<"rebar3">>]},
        {<<"requirements">>, []}
    ].
