%% SPDX-License-Identifier: Apache-2.0
%% What is in the package, and that Hex would take it.
-module(atoll_release_package_tests).

-include_lib("eunit/include/eunit.hrl").

all_sources_are_in_it_and_no_tests_test_() ->
    {timeout, 60, fun all_sources_are_in_it_and_no_tests/0}.

all_sources_are_in_it_and_no_tests() ->
    Names = [Name || {Name, _} <- files()],
    Sources = filelib:wildcard("src/**/*.{erl,app.src}", filename:join(root(), "apps/atoll")),
    ?assertMatch([_ | _], Sources),
    ?assertEqual([], Sources -- Names),
    ?assertEqual([], ["README.md", "LICENSE", "CHANGELOG.md", "rebar.config", "docs/README.md"] -- Names),
    ?assertEqual([], [Name || Name <- Names, string:find(Name, "test") =/= nomatch]).

what_pages_in_it_lead_to_is_in_it_test_() ->
    {timeout, 60, fun what_pages_in_it_lead_to_is_in_it/0}.

what_pages_in_it_lead_to_is_in_it() ->
    Files = maps:from_list(files()),
    Pages = [{Name, Text} || {Name, Text} <- files(), filename:extension(Name) =:= ".md"],
    Led = [
        ?assertEqual({Page, Target, true}, {Page, Target, is_map_key(File, Files) andalso has_anchor(File, Anchor, Files)})
     || {Page, Text} <- Pages, Target <- atoll_release_links:all(Text), {File, Anchor} <- [atoll_release_links:resolve(Page, Target)]
    ],
    ?assertMatch([_, _, _ | _], Led).

has_anchor(_File, "", _Files) -> true;
has_anchor(File, Anchor, Files) -> lists:member(Anchor, atoll_release_links:anchors(map_get(File, Files))).

%% By Hex's own code, which rebar3 brings.
hex_takes_it_test_() ->
    {timeout, 120, fun() ->
        Tarball = atoll_release_hex:tarball(atoll_release_package:metadata(root()), files()),
        ok = load_hex(),
        {ok, #{metadata := Metadata, contents := Contents}} = r3_hex_tarball:unpack(Tarball, memory),
        ?assertEqual(lists:sort(files()), lists:sort(Contents)),
        ?assertMatch(
            #{<<"name">> := <<"atoll">>, <<"app">> := <<"atoll">>, <<"build_tools">> := [<<"rebar3">>], <<"licenses">> := [<<"Apache-2.0">>]},
            Metadata
        ),
        ?assertEqual(list_to_binary(atoll_release_tree:version(root())), map_get(<<"version">>, Metadata)),
        %% One byte of it changed is found.
        ?assertMatch({error, _}, r3_hex_tarball:unpack(spoiled(Tarball), memory)),
        ?assertEqual(Tarball, atoll_release_hex:tarball(atoll_release_package:metadata(root()), files()))
    end}.

spoiled(Tarball) ->
    {At, _} = binary:match(Tarball, <<"Erlang clusters">>),
    <<Before:At/binary, $E, After/binary>> = Tarball,
    <<Before/binary, $e, After/binary>>.

load_hex() ->
    {ok, Sections} = escript:extract(os:find_executable("rebar3"), []),
    {ok, Beams} = zip:foldl(
        fun(Name, _Info, Read, Found) ->
            case re:run(Name, "/(r3_(?:hex|safe)_\\w+)\\.beam$", [{capture, all_but_first, list}]) of
                {match, [Module]} -> [{list_to_atom(Module), Name, Read()} | Found];
                nomatch -> Found
            end
        end,
        [],
        {"rebar3.zip", proplists:get_value(archive, Sections)}
    ),
    ?assertMatch([_ | _], Beams),
    lists:foreach(fun({Module, Name, Beam}) -> {module, Module} = code:load_binary(Module, Name, Beam) end, Beams).

%% In an empty project, offline. That it compiles there and runs is for the quickstarts to show.
rebar3_knows_it_test_() ->
    {timeout, 300, fun() ->
        Dir = atoll_test_file:temporary("atoll-package"),
        ok = filelib:ensure_path(filename:join(Dir, "_checkouts/atoll")),
        ok = file:write_file(filename:join(Dir, "rebar.config"), "{deps, [atoll]}.\n"),
        ok = filelib:ensure_path(filename:join(Dir, "src")),
        ok = file:write_file(filename:join(Dir, "src/shop.app.src"), "{application, shop, [{vsn, \"1\"}, {applications, [kernel, stdlib, atoll]}]}.\n"),
        Package = atoll_release_package:write(root(), Dir),
        Said = os:cmd(
            "cd " ++ Dir ++ " && tar -xOf " ++ Package ++ " contents.tar.gz | tar -xz -C _checkouts/atoll"
            " && env -i PATH=\"$PATH\" HOME=" ++ Dir ++ " rebar3 tree 2>&1"
        ),
        ok = file:del_dir_r(Dir),
        ?assertMatch({match, _}, re:run(Said, "atoll.*" ++ atoll_release_tree:version(root()), [unicode]), Said)
    end}.

files() -> atoll_release_package:files(root()).

root() -> atoll_release_tree:root().
