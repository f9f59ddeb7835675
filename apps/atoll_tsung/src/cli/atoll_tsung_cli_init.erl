%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll tsung init': writes a scenario of Tsung for the nodes of a cluster that runs.
-module(atoll_tsung_cli_init).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(MAX_MS, 86400000).

-spec summary() -> string().
summary() -> "write a scenario of Tsung for a cluster".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(looks) ++
    [
        #{name => call, value => "M:F", default => "erlang:node", read => fun function/1, help => "the function that is called"},
        #{name => arguments, value => "TERMS", default => "", read => fun arguments/1, help => "its arguments, as in Erlang, with commas between"},
        #{name => cast, help => "have it called without waiting for it"},
        #{name => timeout, value => "MS", read => atoll_cli_read:whole(1, ?MAX_MS), help => "how long a call is waited for"},
        #{name => rate, value => "N", default => "10", read => atoll_cli_read:number(100000), help => "users that come in a second"},
        #{name => seconds, value => "S", default => "10", read => atoll_cli_read:whole(1, 86400), help => "for how long users come"},
        #{name => users, value => "N", read => atoll_cli_read:whole(1, 1000000), help => "how many users come at most"},
        #{name => requests, value => "N", default => "1", read => atoll_cli_read:whole(1, 1000000), help => "requests of each user"},
        #{name => think, value => "S", default => "0", read => atoll_cli_read:number(0, 86400), help => "seconds between two of them"},
        #{name => clients, value => "N", default => "0", read => atoll_cli_read:whole(0, 100),
          help => "VMs that the users run on, for \"atoll tsung run --here\"; 0: that of Tsung's controller"},
        #{name => out, value => "FILE", default => "tsung.xml", help => "the file that it is written to, which must not be there yet"}
    ].

function(Text) ->
    case string:split(Text, ":", trailing) of
        [[_ | _] = Module, [_ | _] = Function] when length(Module) =< 255, length(Function) =< 255 -> {ok, {Module, Function}};
        _ -> {error, "must be a module and a function, as in lists:seq"}
    end.

%% As the scenario has it read.
arguments(Text) ->
    case atoll_tsung_rpc:read([{"type", "call"}, {"module", "m"}, {"function", "f"}, {"node", "a@b"}, {"arguments", Text}], true, false) of
        {ok, _} -> {ok, Text};
        {error, _} -> {error, "must be Erlang terms with commas between, such as: 1, \"a\", [b]"}
    end.

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll tsung init -c reef",
        "atoll tsung init --call lists:seq --arguments '1, 100' --rate 50 --seconds 60 -c reef",
        "atoll tsung init --node shop@10.0.0.7 --cookie-file prod.cookie --requests 10 --think 1"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_view_cli_where:on(looks, otp, Values, fun(View) ->
        case atoll_view:up(View) of
            [] -> {unable, ["No node of ", atoll_view:name(View), " is up."]};
            Nodes -> checked(Nodes, Values)
        end
    end).

checked(Nodes, Values) ->
    case atoll_tsung_run:name_domain(Nodes) of
        {ok, Domain} -> write(atoll_tsung_scenario:new(plan(Nodes, Domain, Values)), Values);
        {error, Sentence} -> {unable, Sentence}
    end.

plan(Nodes, Domain, #{call := {Module, Function}, cast := Cast, clients := Clients} = Values) ->
    (maps:with([arguments, timeout, rate, seconds, users, requests, think], Values))#{
        nodes => Nodes, module => Module, function => Function, type => case Cast of true -> cast; false -> call end,
        clients => [lists:concat(["client", N, case Domain of longnames -> ".tsung"; shortnames -> "" end]) || N <- lists:seq(1, Clients)]
    }.

write(Text, #{out := File, clients := Clients} = Values) ->
    case file:write_file(File, unicode:characters_to_binary(Text), [exclusive]) of
        ok ->
            Given = [Option || #{name := Name} = Option <- options(), lists:member(Name, [cluster, node, cookie_file, tls_options_file])],
            Run = atoll_cli_again:line(["tsung run ", atoll_cli_again:quoted(File), [" --here" || Clients > 0]], Given, Values),
            atoll_cli_io:say([File, " is written; to run it: ", Run]);
        {error, Reason} ->
            {unable, [File, ": ", file:format_error(Reason)]}
    end.
