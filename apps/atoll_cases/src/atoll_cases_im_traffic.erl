%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll im traffic': clients that talk with each other over an instant messenger, on a cluster of its own
%% or on one that `atoll im up' holds, and whether the messenger has kept its promise.
-module(atoll_cases_im_traffic).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(MAX_CLIENTS, 200000).

-spec summary() -> string().
summary() -> "have clients talk, with or without chaos, and judge what became of it".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => load, value => "LOAD", default => "paper", read => atoll_cli_read:one_of([paper, closed, open]),
          help => "paper: 13 to 60 messages a conversation with 1 to 20 s to think; closed: without a time to think; open: --rate messages a second"},
        #{name => rate, value => "N", read => atoll_cli_read:number(1, 1000000), help => "with --load open, messages in a second"},
        #{name => clients, value => "N", default => "1000", read => atoll_cli_read:whole(2, ?MAX_CLIENTS), help => "clients that log in"},
        #{name => conversations, value => "N", read => atoll_cli_read:whole(1, ?MAX_CLIENTS), help => "conversations at a time (half of the clients unless told)"},
        #{name => window, value => "N", read => atoll_cli_read:whole(1, 64), help => "messages under way in a conversation (1 unless told, and 64 with --load open)"},
        #{name => client_nodes, value => "N", default => "2", read => atoll_cli_read:whole(1, 100), help => "hidden nodes that the clients run on"},
        #{name => seconds, value => "S", default => "60", read => atoll_cli_read:whole(1, 86400), help => "how long is measured"},
        #{name => csv, value => "DIR", help => "a new directory for the paper's files, a line a minute, or for all of a shorter run"},
        #{name => rhesus, value => "MS", read => atoll_cli_read:whole(1, 3600000), help => "kill a process of the servers or routers each so many milliseconds"},
        #{name => baboon, value => "MS", read => atoll_cli_read:whole(1, 3600000), help => "kill a process that has a name each so many milliseconds"},
        #{name => kill_node_every, value => "S", read => atoll_cli_read:whole(2, 3600),
          help => "kill a server node each so many seconds, and start it again a second later"},
        (atoll_cli_again:seed())#{default => "1"},
        #{name => cluster, short => $c, value => "NAME", read => atoll_cli_read:name(),
          help => "over the messenger that \"atoll im up\" holds under this name; without, one is started"},
        atoll_cli_json:switch()
    ] ++ [maps:remove(default, Option) || Option <- atoll_cases_im:options()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll im traffic",
        "atoll im traffic --load closed --clients 400 --csv im-traffic",
        "atoll im traffic --load open --rate 2000 --rhesus 1000 --kill-node-every 30",
        "atoll im traffic -c reef --seconds 900"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case faults(Values) of
        [Sentence | _] -> {usage, Sentence};
        [] -> checked_csv(Values)
    end.

faults(#{load := Load, clients := Clients} = Values) ->
    ["--load open needs --rate" || Load =:= open, not is_map_key(rate, Values)] ++
        ["--rate is for --load open" || Load =/= open, is_map_key(rate, Values)] ++
        [io_lib:format("--conversations must be at most ~b, the pairs of --clients, not \"~b\"", [im_traffic_pairs:count(Clients), N])
         || #{conversations := N} <- [Values], N > im_traffic_pairs:count(Clients)] ++
        [[atoll_cli_options:flag(Key), " is for a messenger that is started here, and --cluster for one that runs: not both"]
         || is_map_key(cluster, Values), Key <- maps:keys(maps:with(own(), Values))] ++
        [Sentence || {usage, Sentence} <- [atoll_cases_im:check(completed(Values))], not is_map_key(cluster, Values)].

%% What is chosen for a cluster that is started, or takes one.
own() -> [family, routers, servers, mode, reach, replication, mapping, rhesus, baboon, kill_node_every].

completed(Values) ->
    maps:merge(
        maps:from_list([{Name, Value} || #{name := Name, default := Text, read := Read} <- atoll_cases_im:options(), {ok, Value} <- [Read(Text)]]),
        Values
    ).

%% Whether the directory can be made is seen by making it.
checked_csv(#{csv := Dir} = Values) ->
    case file:make_dir(Dir) of
        ok ->
            Outcome = start(Values),
            %% One with nothing in it would refuse the next try.
            _ = file:del_dir(Dir),
            Outcome;
        {error, Reason} ->
            {unable, io_lib:format("--csv: ~ts: ~ts", [Dir, file:format_error(Reason)])}
    end;
checked_csv(Values) ->
    start(Values).

start(#{cluster := _} = Values) ->
    atoll_view_cli_where:on_up(maps:with([cluster], Values), fun(Up) ->
        {Said, _} = atoll_view:ask_all(Up, im, status, []),
        case [Settings || {_, {ok, #{settings := Settings}}} <- Said] of
            [] -> {unable, "No node of that cluster has a part in a messenger."};
            [Settings | _] -> on_held(Settings, Values)
        end
    end);
start(#{client_nodes := Count} = Values) ->
    case atoll_cases_im:start(atoll_cases_im:shape(completed(Values), Count), none, #{}) of
        {ok, #{cluster := Cluster} = Ready} ->
            try
                driven(Cluster, Ready, Values)
            after
                ok = atoll_cluster:stop(Cluster)
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

%% The client nodes alone are ours.
on_held(Settings, #{client_nodes := Count} = Values) ->
    {ok, Plan} = im_plan:new(Settings),
    Options = #{nodes => [im_cluster:client_options(Count)], progress => atoll_cli_progress:bar("Starting nodes")},
    Ended = atoll_cluster:with_cluster(Options, fun(Cluster) ->
        driven(Cluster, #{cluster => Cluster, plan => Plan, routers => im_plan:routers(Plan), servers => [], clients => atoll_cluster:nodes(Cluster)}, Values)
    end),
    case Ended of
        {error, Sentence} -> {unable, Sentence};
        Outcome -> Outcome
    end.

driven(Cluster, Ready, #{seed := Seed, seconds := Seconds} = Values) ->
    Harm = maps:from_list([{To, Value} || {From, To} <- [{rhesus, rhesus}, {baboon, baboon}, {kill_node_every, node_every}], #{From := Value} <- [Values]]),
    Doing = io_lib:format("Talking for ~ts", [atoll_cli_table:seconds(1000 * Seconds)]),
    Options = traffic(Ready, Values),
    case atoll_cases_program:watched(Cluster, Doing, fun() -> atoll_bench_im_run:traffic(Ready, Options, Harm, Seed) end, none) of
        {ok, Result, _Killed} -> judged(Result, Values);
        {error, Sentence} -> {unable, Sentence}
    end.

traffic(#{plan := Plan}, #{load := Load, seconds := Seconds} = Values) ->
    Log = case Values of
        #{csv := Dir} ->
            Window = min(60, Seconds),
            #{log => #{
                dir => filename:absname(Dir), technology => technology(Plan), servers => length(im_plan:servers(Plan)),
                seconds => Window, trials => Seconds div Window, latency => true
            }};
        #{} ->
            #{}
    end,
    maps:merge(Log, (maps:with([rate, clients, conversations, window], Values))#{mode => Load, ms => 1000 * Seconds}).

technology(Plan) -> string:uppercase(atom_to_list(im_plan:setting(mode, Plan))) ++ "_IM".

judged(Result, #{json := Json}) ->
    ok = case Json of
        true -> atoll_cli_io:print_json(atoll_cases_im_result:json(Result));
        false -> atoll_cli_io:print(atoll_cases_im_result:table(Result))
    end,
    case wrong(Result) of
        [] -> ok;
        [Sentence | _] -> {failed, Sentence}
    end.

wrong(#{traffic := #{history := #{messages := Messages} = History, is_drained := IsDrained}, lost := Lost} = Result) ->
    [[["the promise is broken: " || Lost =:= []] | atoll_cases_im_result:broken(Result)] || not im_history:is_clean(History)] ++
        ["not all that was said was delivered in time after the end" || not IsDrained] ++
        ["nothing was said, so nothing is shown" || Messages =:= 0] ++
        ["the servers still have what was made in the run" || not atoll_cases_im_result:is_clean(Result)].
