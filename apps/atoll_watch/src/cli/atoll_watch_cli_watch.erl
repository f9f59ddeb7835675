%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll watch': watches a running cluster until it is interrupted, keeps what it sees, and answers over HTTP.
-module(atoll_watch_cli_watch).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, more/0, run/2]).

-define(PERIOD_MS, 5000).
-define(INSTALL_MS, 600000).

-spec summary() -> string().
summary() -> "watch a running cluster, keep what is seen, and show it on a page".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(looks) ++
    [
        #{name => port, value => "PORT", default => "8080", read => atoll_cli_read:whole(1, 65535), help => "the port to listen at"},
        #{name => listen, value => "ADDRESS", default => "127.0.0.1", read => fun address/1, help => "the address to listen at; 0.0.0.0 is all of this machine"},
        #{name => data, value => "DIR", help => "the directory for what is kept; without, one for each cluster where your programs keep their data"},
        #{name => deployments, value => "DIR", help => "the directory of the state of deployments, as \"atoll deploy\" has it"},
        #{name => open, help => "open the page in a browser, where there is one"},
        atoll_watch_cli:period("5"),
        atoll_watch_cli:rules(rules),
        #{name => graphite, value => "HOST:PORT", read => fun atoll_watch_graphite_link:address/1, help => "send all metrics to a Graphite server, once in a period"},
        #{name => managers, value => "N", read => atoll_cli_read:whole(1, 100), help => "how many programs ask the nodes, each its share (one for each 100 nodes unless told)"},
        #{name => certfile, value => "FILE", is_read => true, help => "a certificate: the watch is spoken with over TLS"},
        #{name => keyfile, value => "FILE", is_read => true, help => "with --certfile, the file that its key is in, if it is another one"}
    ].

address(Text) ->
    case inet:parse_address(Text) of
        {ok, Address} -> {ok, Address};
        {error, _} -> {error, "must be an address, as 127.0.0.1 or ::1"}
    end.

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    ["atoll watch", "atoll watch -c reef --port 9090 --managers 2", "atoll watch --node shop@10.0.0.7 --cookie-file prod.cookie --data watched", "atoll watch --rules shop.rules"].

-spec more() -> unicode:chardata().
more() -> "The first time it prints a link with a token, which the data directory keeps; Ctrl-C ends it. docs/watch.md says what it answers; \"atoll watch traffic\" and \"atoll watch record\" are commands of their own".

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{keyfile := _} = Values, []) when not is_map_key(certfile, Values) ->
    {usage, "--keyfile is for --certfile, which is missing"};
run(#{port := Port, listen := Listen} = Values, []) ->
    case atoll_view_cli_where:target(looks, Values) of
        {ok, Target} ->
            case {yaws(), atoll_watch_yaws:is_free(Listen, Port)} of
                {{error, Sentence}, _} -> {unable, Sentence};
                {_, {error, Reason}} -> {unable, ["At ", inet:ntoa(Listen), " port ", integer_to_list(Port), " one cannot listen: ", inet:format_error(Reason), "; --port takes another one."]};
                {ok, ok} ->
                    case atoll_watch_cli:rules(rules, Values) of
                        {ok, Rules} -> atoll_cli_interrupt:catching(fun() -> watching(Target, Values, Rules) end);
                        Unable -> Unable
                    end
            end;
        Wrong ->
            Wrong
    end.

%% Debian has it, and nothing else here needs it.
yaws() ->
    case atoll_watch_yaws:find() of
        ok -> ok;
        none ->
            ok = atoll_cli_io:say("installing Yaws, once"),
            case {atoll_cluster_program:run(filename:join([root(), "scripts", "setup"]), ["erlang-yaws"], ?INSTALL_MS), atoll_watch_yaws:find()} of
                {ok, ok} -> ok;
                {ok, none} -> {error, "Yaws is not where Debian has it: ERL_LIBS may say where it is."};
                {{error, Said}, _} -> {error, ["Yaws could not be installed: ", string:trim(Said)]}
            end
    end.

%% ROOT/_build/default/lib/atoll_watch/ebin/THIS.beam
root() -> lists:foldl(fun(_, Path) -> filename:dirname(Path) end, code:which(?MODULE), lists:seq(1, 6)).

watching(Target, #{port := Port, listen := Listen} = Values, Rules) ->
    Name = element(2, Target),
    Dir = maps:get(data, Values, filename:join([filename:basedir(user_data, "atoll"), "watch", uri_string:quote(Name)])),
    case atoll_watch_room:token(Dir) of
        {ok, Made, Token} ->
            Tls = is_map_key(certfile, Values),
            Http = #{token => Token, port => Port, loopback => is_loopback(Listen), tls => Tls, page => filename:join([root(), "_build", "watch-page"]), openapi => openapi()},
            %% For good: of one that cannot be started the end comes after its answer.
            _ = process_flag(trap_exit, true),
            Started = atoll_watch_room:start_link((maps:with([graphite], Values))#{
                target => Target,
                managers => maps:get(managers, Values, auto),
                deployments => maps:get(deployments, Values, atoll_deploy:default_dir()),
                store => #{dir => Dir, name => Name, period => maps:get(period, Values, ?PERIOD_MS), rules => Rules},
                web => (maps:with([certfile, keyfile], Values))#{listen => Listen, port => Port, dir => Dir, http => Http}
            }),
            case Started of
                {ok, Room} ->
                    Link = link_to(Http, Listen),
                    ok = told(Name, Made, Token, Dir, Http, Link),
                    _ = [ok = opened([Link, "#token=", Token], Dir) || maps:get(open, Values)],
                    until_the_end(Room);
                {error, {unable, Sentence}} ->
                    {unable, Sentence}
            end;
        {error, Unable} ->
            Unable
    end.

is_loopback({127, _, _, _}) -> true;
is_loopback({0, 0, 0, 0, 0, 0, 0, 1}) -> true;
is_loopback(_) -> false.

openapi() ->
    {ok, Text} = file:read_file(filename:join([filename:dirname(filename:dirname(code:which(?MODULE))), "priv", "openapi.json"])),
    Text.

link_to(#{port := Port, tls := Tls}, Listen) ->
    Host = case Listen of {_, _, _, _} -> inet:ntoa(Listen); _ -> [$[, inet:ntoa(Listen), $]] end,
    [case Tls of true -> "https"; false -> "http" end, "://", Host, $:, integer_to_list(Port), $/].

told(Name, Made, Token, Dir, #{tls := Tls, loopback := Loopback}, Link) ->
    _ = [atoll_cli_io:say("without TLS whoever is on the network can read the token: --certfile is for that") || not Loopback, not Tls],
    atoll_cli_io:print(["Watching ", Name, ": ", Link, case Made of
        new -> ["#token=", Token, "\nThe token is kept in ", filename:join(Dir, "token"), ", and not shown again."];
        kept -> [" (the token is in ", filename:join(Dir, "token"), $)]
    end, "\nCtrl-C ends it.\n"]).

%% Whoever is on this machine can read the arguments of a program: the link with the token stands in a file of this user
%% alone, which leads to it. The browser is the user's, and goes on when this ends.
opened(Link, Dir) ->
    case opener() of
        none ->
            atoll_cli_io:say("no browser is opened: there is no display here");
        Opener ->
            File = filename:join(Dir, "open.html"),
            ok = file:write_file(File, <<>>),
            ok = file:change_mode(File, 8#600),
            ok = file:write_file(File, ["<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0; url=", Link, "\">\n"]),
            _ = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "exec \"$0\" \"$1\" <&- >/dev/null 2>&1", Opener, File]}, nouse_stdio, hide]),
            ok
    end.

opener() ->
    Displays = [Display || Variable <- ["DISPLAY", "WAYLAND_DISPLAY"], Display <- [os:getenv(Variable, "")], Display =/= ""],
    case {os:type(), Displays, os:find_executable("xdg-open")} of
        {{unix, darwin}, _, _} -> "open";
        {_, [_ | _], [_ | _] = Opener} -> Opener;
        _ -> none
    end.

until_the_end(Room) ->
    receive
        interrupted ->
            true = exit(Room, shutdown),
            receive {'EXIT', Room, _} -> ok end;
        {'EXIT', Room, Reason} ->
            exit(Reason)
    end.
