%% SPDX-License-Identifier: Apache-2.0
%% What the quickstarts say is so: each is followed from an empty directory, on real
%% nodes, and what it shows is what comes. docs/examples has the same files.
%%
%% On a clean Debian it is followed with the packages that the page names and no others, from
%% Atoll's package alone, without a network.
-module(atoll_cli_quickstart_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([the_examples_are_the_files_of_the_pages/1, what_is_shown_is_a_configuration/1, the_erlang_of_the_pages_compiles/1]).
-export([erlang_from_an_empty_directory/1, elixir_from_an_empty_directory/1]).
-export([erlang_on_a_clean_debian_in_five_minutes/1, elixir_on_a_clean_debian_in_five_minutes/1]).
-export([nothing_is_left_of_a_clean_debian/1]).

-define(FIVE_MINUTES_MS, 300000).

suite() ->
    [{timetrap, {minutes, 30}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [the_examples_are_the_files_of_the_pages, the_erlang_of_the_pages_compiles, what_is_shown_is_a_configuration];
%% A reader has builds to wait for.
cases(deep) ->
    cases(fast) ++ [
        erlang_from_an_empty_directory, elixir_from_an_empty_directory,
        erlang_on_a_clean_debian_in_five_minutes, elixir_on_a_clean_debian_in_five_minutes, nothing_is_left_of_a_clean_debian
    ].

init_per_testcase(elixir_from_an_empty_directory, Config) ->
    case elixir() of
        ok -> with_dir(Config);
        {skip, _} = Skip -> Skip
    end;
init_per_testcase(erlang_from_an_empty_directory, Config) ->
    with_dir(Config);
init_per_testcase(Case, Config) when
    Case =:= erlang_on_a_clean_debian_in_five_minutes;
    Case =:= elixir_on_a_clean_debian_in_five_minutes;
    Case =:= nothing_is_left_of_a_clean_debian
->
    case atoll_cli_room:can() of
        ok -> with_dir(Config);
        {skip, _} = Skip -> Skip
    end;
init_per_testcase(_, Config) ->
    Config.

with_dir(Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    case proplists:lookup(dir, Config) of
        {dir, Dir} -> atoll_cli_reader:take_down(Dir);
        none -> ok
    end.

%% One of another release's packages may not run on this one's Erlang.
elixir() ->
    case os:find_executable("mix") of
        false ->
            {skip, "Elixir is not installed"};
        _ ->
            Dir = atoll_cli_os:new_dir(),
            Ended = atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh, "exec mix --version"}, Dir), 30000),
            ok = atoll_cli_os:remove_dir(Dir),
            case Ended of
                #{status := 0} -> ok;
                #{stdout := Out, stderr := Err} ->
                    {skip, lists:flatten(io_lib:format("the Elixir that is installed does not run on OTP ~s: ~s",
                                                       [erlang:system_info(otp_release), string:slice([Out, Err], 0, 300)]))}
            end
    end.

the_examples_are_the_files_of_the_pages(_) ->
    [begin
         Root = filename:join([atoll_cli_os:root(), "docs", "examples", Language]),
         Example = [{File, read(filename:join(Root, File))}
                    || File <- filelib:wildcard("**", Root), filelib:is_regular(filename:join(Root, File))],
         ?assertEqual(lists:sort(Example), lists:sort([{File, Text} || {file, File, Text} <- page(Language)]))
     end
     || Language <- ["erlang", "elixir"]].

%% Without a warning, and all that it calls of Atoll is there.
the_erlang_of_the_pages_compiles(_) ->
    Root = filename:join(atoll_cli_os:root(), "docs/examples/erlang"),
    Files = [filename:join(Root, File) || File <- filelib:wildcard("**/*.erl", Root)],
    ?assertMatch([_ | _], Files),
    [begin
         {ok, Module, Beam} = compile:file(File, [binary, warnings_as_errors, return_errors]),
         {ok, {Module, [{imports, Imports}]}} = beam_lib:chunks(Beam, [imports]),
         [?assertEqual({Call, true}, {Call, erlang:function_exported(M, F, A)})
          || {M, F, A} = Call <- Imports, {module, M} =:= code:ensure_loaded(M)]
     end
     || File <- Files].

%% What is shown and not run: what it sets is accepted.
what_is_shown_is_a_configuration(_) ->
    Shown = [Text || {shown, <<"erlang">>, Text} <- page("erlang")],
    ?assertMatch([_ | _], Shown),
    [?assertMatch({ok, _}, atoll_config:new(options(Text), false)) || Text <- Shown].

options(Text) ->
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    {ok, [{atoll, Options}]} = erl_parse:parse_term(Tokens),
    Options.

erlang_from_an_empty_directory(Config) ->
    here("erlang", Config).

elixir_from_an_empty_directory(Config) ->
    here("elixir", Config).

here(Language, Config) ->
    Dir = proplists:get_value(dir, Config),
    ok = atoll_cli_reader:package(Dir),
    atoll_cli_reader:follow(page(Language), Dir).

erlang_on_a_clean_debian_in_five_minutes(Config) ->
    on_a_clean_debian("erlang", Config).

elixir_on_a_clean_debian_in_five_minutes(Config) ->
    on_a_clean_debian("elixir", Config).

%% What installs the packages is not timed.
on_a_clean_debian(Language, Config) ->
    Dir = proplists:get_value(dir, Config),
    ok = atoll_cli_reader:package(Dir),
    Room = atoll_cli_room:open(Dir, packages(Language)),
    {Us, ok} = timer:tc(atoll_cli_reader, follow, [[{commands, [no_network()]} | page(Language)], Dir, Room]),
    ct:pal("the quickstart in ~ts on a clean Debian: ~.1f s", [Language, Us / 1.0e6]),
    ?assert(Us div 1000 < ?FIVE_MINUTES_MS, Us).

packages(Language) ->
    {match, [Names]} = re:run(text(Language), "`apt-get install --no-install-recommends ([a-z0-9 -]+)`", [{capture, all_but_first, list}]),
    string:lexemes(Names, " ").

%% The loopback is all that it has.
no_network() ->
    <<"test \"$(tail -n +3 /proc/net/dev | tr -d ' ' | cut -d: -f1)\" = lo">>.

%% Who has opened it is killed, and so takes nothing down.
nothing_is_left_of_a_clean_debian(Config) ->
    Dir = proplists:get_value(dir, Config),
    Self = self(),
    {Owner, Opener} = spawn_monitor(fun() ->
        Self ! {room, atoll_cli_room:open(Dir, packages("erlang"))},
        receive never -> ok end
    end),
    Room = receive {room, Opened} -> Opened; {'DOWN', Opener, process, Owner, Why} -> error(Why) end,
    [Enter | Args] = atoll_cli_room:command(Room, [], ["/bin/sh", "-c", "echo started; exec sleep infinity"]),
    Inside = open_port({spawn_executable, Enter}, [{args, Args}, exit_status, binary, {line, 100}]),
    receive {Inside, {data, {eol, <<"started">>}}} -> ok end,
    ?assertMatch([_ | _], atoll_cli_os:left(Dir)),
    exit(Owner, kill),
    receive {Inside, {exit_status, Status}} -> ?assertNotEqual(0, Status) end,
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)),
    {ok, Mounts} = file:read_file("/proc/self/mounts"),
    ?assertEqual(nomatch, binary:match(Mounts, <<"/atoll/clean-">>)).

page(Language) ->
    atoll_cli_page:steps(text(Language)).

text(Language) ->
    read(filename:join([atoll_cli_os:root(), "docs", "quickstart-" ++ Language ++ ".md"])).

read(File) ->
    {ok, Text} = file:read_file(File),
    Text.
