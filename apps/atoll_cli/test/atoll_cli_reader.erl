%% SPDX-License-Identifier: Apache-2.0
%% Somebody who follows a page: has the commands run in one terminal, nodes in
%% others, types at their prompts, and compares what comes.
%%
%% All of it lies in one directory, its home too. On this machine the reader has a port
%% mapper of its own, so that it depends on nothing and meets no other node; in a clean
%% room (atoll_cli_room) it has what it would have there. What is started is found by that
%% directory and taken down with it (see atoll_cli_os).
-module(atoll_cli_reader).
-include_lib("stdlib/include/assert.hrl").

-export([package/1, checkout/1, follow/2, follow/3, take_down/1]).

-record(reader, {
    dir :: file:filename(),
    %% The same as its terminals see it.
    seen :: file:filename(),
    room :: here | atoll_cli_room:room(),
    %% Where there is none a node starts one.
    epmd = none :: inet:port_number() | none,
    %% The node's name => its terminal.
    nodes = #{} :: #{binary() => port()}
}).

-define(COMMANDS_MS, 240000).
%% Nothing is promised of it: six shells of Elixir start one after the other on a machine that may be busy.
-define(PROMPT_MS, 180000).
%% How long a question is asked again until the answer is as it should be: a connection that
%% nobody wants stays for two minutes.
-define(ANSWER_MS, 180000).
-define(PAUSE_MS, 200).

%% @doc Puts Atoll's package there, which a page begins with.
-spec package(Dir :: file:filename()) -> ok.
package(Dir) ->
    _ = atoll_release_package:write(atoll_cli_os:root(), Dir),
    ok.

%% @doc Puts a checkout there, `atoll': its sources only, as a fresh one has them.
-spec checkout(Dir :: file:filename()) -> ok.
checkout(Dir) ->
    ok = check_out(["rebar.config", "src/**/*.{erl,src}"], filename:join("apps", "atoll"), Dir),
    check_out(["mix.exs", "lib/**/*.ex"], filename:join("elixir", "atoll_pubsub"), Dir).

%% @doc Follows the steps on this machine, in an empty directory `reef' beside what is there.
-spec follow([atoll_cli_page:step()], Dir :: file:filename()) -> ok.
follow(Steps, Dir) ->
    follow(Steps, Dir, here).

%% @doc The same here or in a room.
-spec follow([atoll_cli_page:step()], Dir :: file:filename(), here | atoll_cli_room:room()) -> ok.
follow(Steps, Dir, Room) ->
    [ok = file:make_dir(filename:join(Dir, Name)) || Name <- ["home", "reef"]],
    Seen = case Room of here -> Dir; _ -> atoll_cli_room:dir() end,
    ok = file:write_file(filename:join(Dir, "terminal"), ["cd ", Seen, "/reef\n"]),
    Reader = with_epmd(#reader{dir = Dir, seen = Seen, room = Room}),
    _ = lists:foldl(fun step/2, Reader, Steps),
    ok.

%% @doc Ends what was started there, however the reader ended, and removes the directory.
-spec take_down(Dir :: file:filename()) -> ok.
take_down(Dir) ->
    [ok = atoll_cli_os:signal(Pid, "KILL") || {Pid, _} <- atoll_cli_os:left(Dir)],
    atoll_cli_os:remove_dir(Dir).

check_out(Wildcards, Package, Dir) ->
    From = filename:join(atoll_cli_os:root(), Package),
    To = filename:join([Dir, "atoll", Package]),
    Files = lists:append([filelib:wildcard(Wildcard, From) || Wildcard <- Wildcards]),
    ?assertMatch([_ | _], Files),
    lists:foreach(
        fun(File) ->
            Copy = filename:join(To, File),
            ok = filelib:ensure_dir(Copy),
            {ok, _} = file:copy(filename:join(From, File), Copy)
        end,
        Files
    ).

step({file, Path, Text}, #reader{dir = Dir} = Reader) ->
    File = filename:join([Dir, "reef", Path]),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text),
    Reader;
step({commands, Commands}, Reader) ->
    ok = run(Commands, Reader),
    Reader;
step({nodes, Nodes}, Reader) ->
    lists:foldl(fun start/2, Reader, Nodes);
step({typed, Typed}, Reader) ->
    lists:foldl(fun type/2, Reader, Typed);
step({shown, _Language, _Text}, Reader) ->
    Reader.

%% What a terminal was told (cd, export) holds for its next command, and for the
%% terminals that are opened later.
run(Commands, #reader{seen = Seen} = Reader) ->
    Keep = ["{ printf 'cd %s\\n' \"$PWD\"; export -p; } >", Seen, "/terminal\n"],
    Port = open(["set -eu; exec </dev/null\n", lists:join($\n, Commands), $\n, Keep], Reader),
    case await_exit(Port, deadline(?COMMANDS_MS), <<>>) of
        {0, _} -> ok;
        {Status, Said} -> error({failed, Commands, Status, Said})
    end.

start({Name, Command}, #reader{nodes = Nodes} = Reader) ->
    Port = open([Command, $\n], Reader),
    _ = await_prompt(Port, Name, deadline(?PROMPT_MS), <<>>),
    Reader#reader{nodes = Nodes#{Name => Port}}.

%% Nothing is answered by a node that ends.
type({Name, Line, []}, #reader{nodes = Nodes} = Reader) ->
    {Port, Rest} = maps:take(Name, Nodes),
    true = port_command(Port, [Line, $\n]),
    _ = await_exit(Port, deadline(?PROMPT_MS), <<>>),
    Reader#reader{nodes = Rest};
type({Name, Line, Expected}, #reader{nodes = Nodes} = Reader) ->
    #{Name := Port} = Nodes,
    ok = ask(Name, Line, essence(Expected), [], Port, deadline(?ANSWER_MS)),
    Reader.

%% News takes a while: what only asks is asked again. What was flushed before
%% belongs to what is flushed now.
ask(Name, Line, Expected, Before, Port, Deadline) ->
    true = port_command(Port, [Line, $\n]),
    Said = await_prompt(Port, Name, deadline(?PROMPT_MS), <<>>),
    Answer = Before ++ atoll_cli_page:lines(Said),
    case {essence(Answer), question(Line), Deadline > now_ms()} of
        {Expected, _, _} ->
            ok;
        {_, Question, true} when Question =/= none ->
            pause(),
            Kept = case Question of flush -> lists:droplast(Answer); value -> [] end,
            ask(Name, Line, Expected, Kept, Port, Deadline);
        {Other, _, _} ->
            error({answered, Name, Line, [{expected, Expected}, {got, Other}, {said, Answer}]})
    end.

question(Line) ->
    case re:run(Line, "flush\\(\\)|members\\(\\)|value\\(\\)|Node\\.list\\(\\)", [{capture, first, list}]) of
        {match, ["flush()"]} -> flush;
        {match, [_]} -> value;
        nomatch -> none
    end.

%% Releases differ in the order of a map's keys, and in where a long line is broken.
essence(Lines) ->
    Text = iolist_to_binary(re:replace(Lines, "\\s+", "", [global])),
    sorted(re:split(Text, "([#%]\\{[^{}]*\\})", [{return, list}])).

sorted(Parts) ->
    lists:append([sort(Part) || Part <- Parts]).

sort([Sign, ${ | Pairs]) when Sign =:= $#; Sign =:= $% ->
    Sorted = lists:sort(string:split(lists:droplast(Pairs), ",", all)),
    [Sign, ${ | lists:append(lists:join(",", Sorted))] ++ "}";
sort(Text) ->
    Text.

%% Terminals

open(Script, #reader{dir = Dir, seen = Seen, room = Room} = Reader) ->
    Program = iolist_to_binary(["exec 2>&1\n. ", Seen, "/terminal\n", Script]),
    [Command | Args] = command(Room, ["/bin/sh", "-c", Program], Reader),
    open_port({spawn_executable, Command}, [
        {args, Args}, {env, [{"XDG_RUNTIME_DIR", Dir} | environment(Reader)]}, exit_status, binary, use_stdio, hide
    ]).

command(here, Command, _) ->
    Command;
command(Room, Command, #reader{seen = Seen}) ->
    atoll_cli_room:command(Room, ["HOME=" ++ filename:join(Seen, "home")], Command).

environment(#reader{room = here, dir = Dir, epmd = Epmd}) ->
    Unset = ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ERL_LIBS", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS",
             "REBAR_BASE_DIR", "REBAR_PROFILE", "MIX_ENV", "BINDIR", "ROOTDIR", "EMU", "PROGNAME"],
    [{"HOME", filename:join(Dir, "home")}, {"TERM", "dumb"}, {"LANG", "C.UTF-8"}, {"ERL_EPMD_PORT", integer_to_list(Epmd)}
     | [{Name, false} || Name <- Unset]];
environment(#reader{}) ->
    [].

with_epmd(#reader{room = here} = Reader) ->
    start_epmd(Reader#reader{epmd = atoll_test_port:free()});
with_epmd(Reader) ->
    Reader.

start_epmd(#reader{epmd = Port} = Reader) ->
    _ = open("exec epmd\n", Reader),
    Registered = fun() ->
        case gen_tcp:connect({127, 0, 0, 1}, Port, []) of
            {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
            {error, econnrefused} -> false
        end
    end,
    ?assertEqual(ok, atoll_cli_os:await(Registered, ?PROMPT_MS)),
    Reader.

await_prompt(Port, Name, Deadline, Seen) ->
    case re:run(Seen, ["(?:iex)?\\(", Name, "\\)[0-9]+> $"], [{capture, first, index}]) of
        {match, [{At, _}]} -> binary:part(Seen, 0, At);
        nomatch ->
            receive
                {Port, {data, Data}} -> await_prompt(Port, Name, Deadline, <<Seen/binary, Data/binary>>);
                {Port, {exit_status, Status}} -> error({ended, Name, Status, Seen})
            after left_of(Deadline) -> error({no_prompt, Name, Seen})
            end
    end.

await_exit(Port, Deadline, Seen) ->
    receive
        {Port, {data, Data}} -> await_exit(Port, Deadline, <<Seen/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Seen}
    after left_of(Deadline) -> error({still_running, Seen})
    end.

%% A shell tells of nothing by itself.
pause() ->
    receive
    after ?PAUSE_MS -> ok
    end.

now_ms() -> erlang:monotonic_time(millisecond).

deadline(Ms) -> now_ms() + Ms.

left_of(Deadline) -> max(0, Deadline - now_ms()).
