%% SPDX-License-Identifier: Apache-2.0
%% What README.md says is so, and what docs/simulator.md, docs/chaos.md and docs/debench.md do: the commands of
%% their `sh' blocks are run as they stand, and a `text' block of the README that
%% follows is what they print. Of its `erlang' blocks the first is a dependency, the same as in the library's
%% own README, with which atoll_cli_release_SUITE builds; the second
%% is run on nodes of a cluster, whose names take the place of those in it.
%%
%% The fast tier runs the first cluster of the README; of all other commands of all pages
%% it checks that they can be read. Whether a page explains all keys is checked there where
%% the commands are tested, such as in atoll_chaos_cli_SUITE.
%%
%% `make test' is what runs this, so it is not run again. What holds the
%% terminal (`up') is ended by a later command of its block, or by Ctrl-C.
-module(atoll_cli_readme_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([its_erlang_makes_a_group/1, its_dependency_is_the_library_s/1, its_first_cluster_is_what_it_says/1, what_the_pages_say_can_be_read/1]).
-export([its_commands_print_what_it_says/1, it_is_short/1]).
-export([the_simulator_s_page_explains_every_key/1, the_simulator_s_script_is_one/1]).
-export([the_page_of_de_bench_explains_every_key/1]).
-export([the_page_on_faults_explains_every_key/1, a_shell_does_what_the_page_on_faults_says/1]).

%% The demo takes a minute where nothing else runs.
-define(COMMAND_MS, 300_000).

suite() ->
    [{timetrap, {minutes, 10}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [it_is_short, what_the_pages_say_can_be_read, the_simulator_s_script_is_one,
     its_dependency_is_the_library_s, its_erlang_makes_a_group, its_first_cluster_is_what_it_says];
cases(deep) ->
    cases(fast) ++
        [its_commands_print_what_it_says, the_page_on_faults_explains_every_key, the_page_of_de_bench_explains_every_key,
         the_simulator_s_page_explains_every_key, a_shell_does_what_the_page_on_faults_says].

it_is_short(_) ->
    ?assert(length(lines(readme())) =< 200).

its_erlang_makes_a_group(_) ->
    [_, Block] = erlang_of(readme()),
    {ok, Cluster} = atoll_cluster:start(#{nodes => 3, connect_all => false}),
    try
        [First, B, C] = Nodes = atoll_cluster:nodes(Cluster),
        [OnEach, Make, Register, Find] = sentences(Block, #{'b@host' => B, 'c@host' => C}),
        [?assertMatch({value, {ok, _}, _}, atoll_cluster:call(Cluster, N, erl_eval, exprs, [OnEach, []]))
         || N <- Nodes],
        {value, Answer, _} = atoll_cluster:call(Cluster, First, erl_eval, exprs, [Make, []]),
        ?assertEqual({ok, fish, lists:sort(Nodes)}, Answer),
        Server = [{'Pid', atoll_cluster:call(Cluster, First, erlang, whereis, [init])}],
        ?assertMatch({value, yes, _}, atoll_cluster:call(Cluster, First, erl_eval, exprs, [Register, Server])),
        [?assertMatch({value, _, _}, atoll_cluster:call(Cluster, N, erl_eval, exprs, [Find, Server])) || N <- [B, C]]
    after
        ok = atoll_cluster:stop(Cluster)
    end.

its_dependency_is_the_library_s(_) ->
    ?assertEqual(hd(erlang_of(page("apps/atoll/README.md"))), hd(erlang_of(readme()))).

erlang_of(Page) ->
    [Block || {erlang, Block} <- blocks(lines(Page), [])].

%% What is written, parsed; each ends with a full stop.
sentences(Lines, Names) ->
    Text = unicode:characters_to_list(lists:join($\n, Lines)),
    {ok, Tokens, _} = erl_scan:string(Text),
    parse([case T of {atom, At, A} -> {atom, At, maps:get(A, Names, A)}; _ -> T end || T <- Tokens]).

parse([]) ->
    [];
parse(Tokens) ->
    {Own, [Dot | Rest]} = lists:splitwith(fun(T) -> element(1, T) =/= dot end, Tokens),
    {ok, Exprs} = erl_parse:parse_exprs(Own ++ [Dot]),
    [Exprs | parse(Rest)].

%% Also the Erlang on the page on faults: what it calls is there.
what_the_pages_say_can_be_read(_) ->
    Pages = ["README.md" | filelib:wildcard("docs/**/*.md", atoll_cli_os:root())],
    Commands = [{Name, Command} || Name <- Pages, Command <- atoll_cli_page:commands(page(Name))],
    ?assertMatch([_, _, _, _, _, _, _, _, _, _ | _], Commands),
    [?assertEqual({Name, Command, ok}, {Name, Command, readable(atoll_cli_page:arguments(Command))}) || {Name, Command} <- Commands],
    [?assert(filelib:is_regular(filename:join(atoll_cli_os:root(), File)), {Name, File})
     || {Name, Command} <- Commands, "docs/" ++ _ = File <- atoll_cli_page:arguments(Command)],
    [Block] = erlang_of(page("docs/chaos.md")),
    Calls = [{M, F, length(A)} || Expressions <- sentences(Block, #{}), {call, _, {remote, _, {atom, _, M}, {atom, _, F}}, A} <- calls(Expressions)],
    ?assertMatch([_ | _], [F || {atoll_chaos, F, _} <- Calls]),
    [?assertEqual({Call, true}, {Call, erlang:function_exported(M, F, A)}) || {M, F, A} = Call <- Calls, {module, M} =:= code:ensure_loaded(M)].

readable([Word | _] = Args) when Word =/= "--version" ->
    {ok, _, Module, Rest} = atoll_cli_commands:find(Args),
    {ok, Options} = atoll_cli:options(Module, Rest),
    case atoll_cli_options:parse(Options, Module:operands(), Rest) of
        {ok, _, _} -> ok;
        {error, _} = Error -> Error
    end.

calls({call, _, _, A} = Call) -> [Call | calls(A)];
calls(Tuple) when is_tuple(Tuple) -> calls(tuple_to_list(Tuple));
calls([Head | Tail]) -> calls(Head) ++ calls(Tail);
calls(_) -> [].

%% As it stands there.
its_first_cluster_is_what_it_says(_) ->
    [{sh, [<<"bin/atoll up ", _/binary>>, <<"bin/atoll down -c reef">>]} = Up, {text, _} = Said | _] =
        lists:dropwhile(fun is_no_cluster/1, blocks(lines(readme()), [])),
    Dir = atoll_cli_os:new_dir(),
    try
        check([Up, Said], Dir),
        ?assertEqual(ok, atoll_cli_os:await_none_left(Dir))
    after
        ok = atoll_cli_os:remove_dir(Dir)
    end.

is_no_cluster({sh, [<<"bin/atoll up ", _/binary>> | _]}) -> false;
is_no_cluster(_) -> true.

its_commands_print_what_it_says(_) ->
    Blocks = [Block || {Kind, _} = Block <- blocks(lines(readme()), []), Kind =/= erlang],
    ?assertMatch([_ | _], [C || {sh, Commands} <- Blocks, C <- Commands]),
    Dir = atoll_cli_os:new_dir(),
    try
        check(Blocks, Dir),
        ?assertEqual(ok, atoll_cli_os:await_none_left(Dir))
    after
        ok = atoll_cli_os:remove_dir(Dir)
    end.

check([{sh, Commands}, {text, Expected} | Blocks], Dir) ->
    ?assertEqual(essence(Expected), essence(lines(run(Commands, Dir)))),
    check(Blocks, Dir);
check([{sh, Commands} | Blocks], Dir) ->
    _ = run(Commands, Dir),
    check(Blocks, Dir);
check([{text, _} = Block | _], _) ->
    error({printed_by_no_command, Block});
check([], _) ->
    ok.

%% The commands print a table, whose facts are keys with `--json'.
the_simulator_s_page_explains_every_key(_) ->
    explains_every_key(page("docs/simulator.md")).

the_page_on_faults_explains_every_key(_) ->
    explains_every_key(page("docs/chaos.md")).

%% The nodes that it has started by hand are started as it says.
the_page_of_de_bench_explains_every_key(_) ->
    Page = page("docs/debench.md"),
    [_, _, _] = Lines = [Line || {text, Block} <- blocks(lines(Page), []), <<"erl ", _/binary>> = Line <- Block],
    Dir = atoll_cli_os:new_dir(),
    Nodes = [atoll_cli_os:start(Dir, {sh, binary_to_list(<<"exec ", Line/binary, " -noinput">>)}) || Line <- Lines],
    try
        Up = fun() -> {ok, Names} = erl_epmd:names({127, 0, 0, 1}), ["a", "b", "c"] -- [Name || {Name, _} <- Names] =:= [] end,
        ok = atoll_cli_os:await(Up, 60000),
        explains_every_key(Page)
    after
        [ok = atoll_cli_os:signal(Node, "KILL") || Node <- Nodes],
        ok = atoll_cli_os:remove_dir(Dir)
    end.

%% The shell is started with the line that stands there, and given the lines of the block.
a_shell_does_what_the_page_on_faults_says(_) ->
    Blocks = blocks(lines(page("docs/chaos.md")), []),
    [Line] = [Line || {text, [<<"erl ", _/binary>> = Line]} <- Blocks],
    [Block] = [Block || {erlang, Block} <- Blocks],
    {ok, Cluster} = atoll_cluster:start(#{nodes => 3, connect_all => true, apps => [atoll]}),
    Dir = atoll_cli_os:new_dir(),
    try
        [First, B, C] = atoll_cluster:nodes(Cluster),
        true = lists:all(fun(N) -> atoll_cluster:call(Cluster, First, net_kernel, connect_node, [N]) end, [B, C]),
        Cookie = atom_to_binary(atoll_cluster:call(Cluster, First, erlang, get_cookie, [])),
        Name = list_to_binary(["chaos", os:getpid(), "@"]),
        Shell = replaced([{<<"COOKIE">>, Cookie}, {<<"chaos@">>, Name}], Line),
        Sentences = replaced([{<<"shop1@127.0.0.1">>, atom_to_binary(First)}, {<<"application, shop">>, <<"application, atoll">>}],
            iolist_to_binary(lists:join("\n", Block))),
        [Connect, Nodes, Start, Stop] = [string:trim(S, trailing, ".") || S <- binary:split(Sentences, <<".\n">>, [global])],
        Wait = "Wait = fun Again() -> case atoll_chaos:events(Run) of [] -> Again(); _ -> ok end end, Wait()",
        Say = "io:format(\"~w ~w~n\", [length(Nodes), [F || {F, _} <- Summary]]), halt()",
        File = filename:join(Dir, "typed"),
        ok = file:write_file(File, [lists:join(",\n", [Connect, Nodes, Start, Wait, Stop, Say]), "."]),
        #{status := 0, stdout := Said} = run_one(<<Shell/binary, " -noinput -eval \"$(cat ", (list_to_binary(File))/binary, ")\"">>, Dir),
        ?assertEqual(<<"3 [heal,kill_process]\n">>, Said)
    after
        ok = atoll_cluster:stop(Cluster),
        ok = atoll_cli_os:remove_dir(Dir)
    end.

replaced(Pairs, Text) ->
    lists:foldl(fun({From, To}, T) -> binary:replace(T, From, To, [global]) end, Text, Pairs).

explains_every_key(Page) ->
    Commands = [C || {sh, Block} <- blocks(lines(Page), []), C <- Block],
    Dir = atoll_cli_os:new_dir(),
    try
        Own = fun(Command) -> binary:replace(Command, <<"/tmp/">>, list_to_binary(Dir ++ "/"), [global]) end,
        Keys = [Key || Command <- Commands, Key <- keys(Own(Command), Dir)],
        ?assertMatch([_, _, _ | _], Keys),
        ?assertEqual([], [Key || Key <- lists:usort(Keys), binary:match(Page, <<"`", Key/binary, "`">>) =:= nomatch])
    after
        ok = atoll_cli_os:remove_dir(Dir)
    end.

keys(<<"bin/atoll sim show", _/binary>> = Show, Dir) ->
    #{status := 0} = run_one(Show, Dir),
    [];
keys(Experiment, Dir) ->
    #{status := 0, stdout := Json} = run_one(<<Experiment/binary, " --json">>, Dir),
    {match, Keys} = re:run(Json, "\"([a-z_0-9]+)\":", [global, {capture, all_but_first, binary}]),
    lists:append(Keys).

the_simulator_s_script_is_one(_) ->
    [Script] = erlang_of(page("docs/simulator.md")),
    ?assertEqual(Script, lines(page("docs/scripts/partition.script"))).

%% Runs a block; returns what the first of its commands prints.
run([<<"make test">>], _) ->
    <<>>;
run([<<"bin/atoll up ", _/binary>> = Up | Others], Dir) ->
    Program = start(Up, Dir),
    Said = atoll_cli_os:await_line(Program, stdout, <<"Ctrl-C here, or: atoll down -c reef\n">>),
    [?assertMatch({Other, #{status := 0}}, {Other, run_one(Other, Dir)}) || Other <- Others],
    case [down || <<"bin/atoll down", _/binary>> <- Others] of
        [] -> ok = atoll_cli_os:signal_group(Program, "INT");
        [down] -> ok
    end,
    _ = atoll_cli_os:await_exit(Program, ?COMMAND_MS),
    Said;
run([First | Others], Dir) ->
    #{status := 0, stdout := Stdout} = run_one(First, Dir),
    [?assertMatch({Other, #{status := 0}}, {Other, run_one(Other, Dir)}) || Other <- Others],
    Stdout.

run_one(Command, Dir) ->
    atoll_cli_os:await_exit(start(Command, Dir), ?COMMAND_MS).

start(Command, Dir) ->
    atoll_cli_os:start(Dir, {sh, binary_to_list(<<"exec ", Command/binary>>)}).

%% Times, and messages that depend on them, differ from run to run; the columns
%% that they make wider or narrower do too.
essence(Lines) ->
    [case re:run(Line, "^(names registered|processor time|messages between nodes|packets between nodes|time|processes killed|processes started again) ",
                 [{capture, all_but_first, binary}]) of
         {match, [Name]} -> Name;
         nomatch -> re:replace(Line, " +", " ", [global, {return, binary}])
     end
     || Line <- Lines].

blocks([<<"```sh">> | Lines], Blocks) -> block(sh, Lines, Blocks);
blocks([<<"```text">> | Lines], Blocks) -> block(text, Lines, Blocks);
blocks([<<"```erlang">> | Lines], Blocks) -> block(erlang, Lines, Blocks);
blocks([_ | Lines], Blocks) -> blocks(Lines, Blocks);
blocks([], Blocks) -> lists:reverse(Blocks).

block(Kind, Lines, Blocks) ->
    {Block, [_ | Rest]} = lists:splitwith(fun(Line) -> Line =/= <<"```">> end, Lines),
    blocks(Rest, [{Kind, Block} | Blocks]).

readme() ->
    page("README.md").

page(File) ->
    atoll_cli_page:read(File).

lines(Text) ->
    binary:split(string:trim(Text, trailing, "\n"), <<"\n">>, [global]).
