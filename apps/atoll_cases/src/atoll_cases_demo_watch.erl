%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll demo --watch': ant colonies in groups, of which processes are killed all the time, until Ctrl-C; and the
%% page of `atoll watch' beside them, a program of its own that ends with this one, whichever way that ends.
-module(atoll_cases_demo_watch).

-export([run/1]).

-define(NAME, "demo").
-define(PORT, 8080).
%% Rounds of a second each: nobody waits for the last.
-define(ROUNDS, 1000000).

%% @doc Runs the colonies until the end of this program; an error is a sentence.
-spec run(atoll_cases_aco_run:task()) -> ok | {error, unicode:chardata()}.
run(#{options := Options} = Task) ->
    Endless = Task#{options := Options#{global_iterations := ?ROUNDS}},
    case atoll_cases_aco_run:run(Endless, #{name => ?NAME}, fun watch/0) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% What it says is said here; a process waits for its end, since nobody else is to hear of that.
watch() ->
    Dir = data(),
    Args = ["watch", "--cluster", ?NAME, "--port", integer_to_list(port()), "--data", Dir, "--open"],
    _ = spawn_link(fun() ->
        Port = open_port({spawn_executable, filename:join([root(), "bin", "atoll"])},
                         [{args, Args}, {env, [{"ATOLL_TIED_TO", os:getpid()}]}, nouse_stdio, exit_status, hide]),
        receive {Port, {exit_status, _}} -> atoll_cli_io:say("The watch has ended; Ctrl-C ends the colonies too.") end
    end),
    ok.

%% Its own each time, so the link with the token is printed each time. Those of programs that are gone are removed.
data() ->
    Base = filename:join(filename:basedir(user_cache, "atoll"), "demo"),
    _ = [file:del_dir_r(Old) || Old <- filelib:wildcard(filename:join(Base, "*")), not filelib:is_dir(filename:join("/proc", filename:basename(Old)))],
    filename:join(Base, os:getpid()).

%% The usual one, or one that is free.
port() ->
    case gen_tcp:listen(?PORT, [{ip, {127, 0, 0, 1}}, {reuseaddr, true}]) of
        {ok, Usual} -> ok = gen_tcp:close(Usual), ?PORT;
        {error, _} ->
            {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
            {ok, Free} = inet:port(Socket),
            ok = gen_tcp:close(Socket),
            Free
    end.

%% ROOT/_build/default/lib/atoll_cases/ebin/THIS.beam
root() -> lists:foldl(fun(_, Path) -> filename:dirname(Path) end, code:which(?MODULE), lists:seq(1, 6)).
