%% SPDX-License-Identifier: Apache-2.0
%% A command line, for suites that test what a command does and says, and not that it is a
%% process: by bin/atoll in the deep tier, and in the fast one in this VM, which saves the
%% start of one. It gives what {@link atoll_cli_os:run/2} gives.
%%
%% In this VM a command sees a run directory of its own, the tree's root as the current
%% directory, and a standard error that is read here. All this belongs to the VM, so
%% commands are run one at a time.
-module(atoll_cli_line).

-include_lib("eunit/include/eunit.hrl").

-export([run/2, run/3, here/2, called/2, refused/1, outcome/1, as_node/1]).

-define(RUN_MS, 300000).
-define(FORGOTTEN_MS, 10000).
%% The first one loads what it needs, on a busy machine.
-define(REFUSED_S, 60).

%% @doc Runs a command until it ends. Dir is as for {@link atoll_cli_os}.
-spec run(file:filename(), [string()]) -> atoll_cli_os:ended().
run(Dir, Args) ->
    run(Dir, Args, ?RUN_MS).

-spec run(file:filename(), [string()], timeout()) -> atoll_cli_os:ended().
run(Dir, Args, Ms) ->
    case atoll_tier:tier() of
        fast -> called(Dir, Args, fun() -> atoll_cli:execute(Args) end, Ms);
        deep -> atoll_cli_os:run(Dir, Args, Ms)
    end.

%% @doc Runs a command in this VM, in either tier.
-spec here(file:filename(), [string()]) -> atoll_cli_os:ended().
here(Dir, Args) ->
    called(Dir, Args, fun() -> atoll_cli:execute(Args) end, ?RUN_MS).

%% @doc Calls a function in the place of what runs a command line.
-spec called(file:filename(), fun(() -> {string(), boolean(), atoll_cli_command:outcome()})) -> atoll_cli_os:ended().
called(Dir, Fun) ->
    called(Dir, [], Fun, ?RUN_MS).

called(Dir, Args, Fun, Ms) ->
    Stdout = filename:join(Dir, io_lib:format("stdout.~b", [erlang:unique_integer([positive])])),
    {ok, Cwd} = file:get_cwd(),
    Before = [{Variable, os:getenv(Variable)} || Variable <- ["XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"]],
    %% What the VM itself starts for looking up hosts is not the command's.
    {ok, _} = inet:gethostbyname("localhost"),
    ok = file:set_cwd(atoll_cli_os:root()),
    _ = [true = os:putenv(Variable, Value) || {Variable, Value} <- atoll_cli_os:folders(Dir)],
    {Usual, Talk} = hear(),
    try
        {Pid, Ref} = spawn_monitor(fun() -> exit({status, as_node(fun() -> command(Stdout, Fun) end)}) end),
        receive
            {'DOWN', Ref, process, Pid, {status, Status}} ->
                {ok, Data} = file:read_file(Stdout),
                #{status => Status, stdout => Data, stderr => heard(Talk), dir => Dir};
            {'DOWN', Ref, process, Pid, Reason} ->
                error({crashed, Args, Reason})
        after Ms ->
            true = exit(Pid, kill),
            error({still_running, Args, heard(Talk)})
        end
    after
        ok = unhear(Usual, Talk),
        _ = [
            case Value of
                false -> true = os:unsetenv(Variable);
                _ -> true = os:putenv(Variable, Value)
            end
         || {Variable, Value} <- Before
        ],
        _ = file:delete(Stdout),
        ok = file:set_cwd(Cwd)
    end.

%% @doc A test for each command line that is wrong, with the sentence that says so before anything is
%% started.
-spec refused([{Args :: [string()], Sentence :: string()}]) -> [term()].
refused(Wrong) ->
    [{string:join(["atoll" | Args], " "), {timeout, ?REFUSED_S, ?_assertEqual({usage, Sentence}, outcome(Args))}} || {Args, Sentence} <- Wrong].

%% @doc What came of a command line in this VM, and the sentence that says it.
-spec outcome([string()]) -> {failed | usage | unable, string()}.
outcome(Args) ->
    {_, _, {Kind, Sentence}} = atoll_cli:execute(Args),
    {Kind, lists:flatten(Sentence)}.

%% @doc Calls a function that may make this VM a node, as commands do that ask nodes; it is
%% none afterwards. net_kernel:stop/0 waits a second at most for what it ends, and a port mapper
%% forgets a name a moment after its node is gone.
-spec as_node(fun(() -> Result)) -> Result.
as_node(Fun) ->
    try
        Fun()
    after
        case is_alive() of
            true ->
                [Name, _] = string:lexemes(atom_to_list(node()), "@"),
                ok = net_kernel:stop(),
                ok = atoll_cli_os:await(fun() -> not is_alive() andalso not is_known(Name) end, ?FORGOTTEN_MS);
            false ->
                ok
        end
    end.

is_known(Name) ->
    case erl_epmd:names({127, 0, 0, 1}) of
        {ok, Names} -> lists:keymember(Name, 1, Names);
        {error, _} -> false
    end.

%% Where a process prints to is kept in its dictionary.
command(Stdout, Fun) ->
    {ok, File} = prim_file:open(Stdout, [write]),
    undefined = put(atoll_cli_io, File),
    ok = atoll_cli_io:init(),
    try
        atoll_cli_exit:run(Fun)
    after
        ok = prim_file:close(File)
    end.

%% Standard error

hear() ->
    Usual = whereis(standard_error),
    Talk = spawn_link(fun() -> listen([]) end),
    true = unregister(standard_error),
    true = register(standard_error, Talk),
    {Usual, Talk}.

unhear(Usual, Talk) ->
    true = unregister(standard_error),
    true = register(standard_error, Usual),
    true = unlink(Talk),
    true = exit(Talk, kill),
    ok.

heard(Talk) ->
    Talk ! {heard, self()},
    receive
        {Talk, Text} -> Text
    end.

listen(Said) ->
    receive
        {io_request, From, As, {put_chars, Encoding, Text}} ->
            From ! {io_reply, As, ok},
            listen([unicode:characters_to_binary(Text, Encoding) | Said]);
        {io_request, From, As, {put_chars, Encoding, Module, Function, Arguments}} ->
            self() ! {io_request, From, As, {put_chars, Encoding, apply(Module, Function, Arguments)}},
            listen(Said);
        {io_request, From, As, {setopts, _}} ->
            From ! {io_reply, As, ok},
            listen(Said);
        {heard, From} ->
            From ! {self(), iolist_to_binary(lists:reverse(Said))},
            listen(Said)
    end.
