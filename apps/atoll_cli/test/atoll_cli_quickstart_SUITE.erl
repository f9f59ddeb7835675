%% What the quickstarts say is so: each is followed from an empty directory, on real
%% nodes, and what it shows is what comes. docs/examples has the same files.
-module(atoll_cli_quickstart_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([the_examples_are_the_files_of_the_pages/1, what_is_shown_is_a_configuration/1, the_erlang_of_the_pages_compiles/1]).
-export([erlang_from_an_empty_directory/1, elixir_from_an_empty_directory/1]).

suite() ->
    [{timetrap, {minutes, 15}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [the_examples_are_the_files_of_the_pages, the_erlang_of_the_pages_compiles, what_is_shown_is_a_configuration];
%% A reader has builds to wait for.
cases(deep) ->
    cases(fast) ++ [erlang_from_an_empty_directory, elixir_from_an_empty_directory].

init_per_testcase(elixir_from_an_empty_directory, Config) ->
    case elixir() of
        ok -> with_dir(Config);
        {skip, _} = Skip -> Skip
    end;
init_per_testcase(erlang_from_an_empty_directory, Config) ->
    with_dir(Config);
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
    atoll_cli_reader:follow(page("erlang"), proplists:get_value(dir, Config)).

elixir_from_an_empty_directory(Config) ->
    atoll_cli_reader:follow(page("elixir"), proplists:get_value(dir, Config)).

page(Language) ->
    atoll_cli_page:steps(read(filename:join([atoll_cli_os:root(), "docs", "quickstart-" ++ Language ++ ".md"]))).

read(File) ->
    {ok, Text} = file:read_file(File),
    Text.
