%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs on the node of Tsung's controller: sets it up as its own program `tsung' would on its
%% command line, and starts it.
%%
%% Tsung's cookie is made up: it stands on the command lines of its clients. Those of the clients that
%% are on other machines get the plugin over their connection when they come up.
-module(atoll_tsung_controller).

-export([start/1]).

-export_type([settings/0]).

-type settings() :: #{
    scenario := file:filename(),
    %% The folder in which Tsung makes one for its logs.
    logs := file:filename(),
    %% How the nodes that are called are reached.
    way := atoll_view_join:way(),
    %% Hosts of clients that are this machine under another name, and the program that stands in ssh's
    %% place for them.
    here := [string()],
    %% What the emulators of clients are started with beside what Tsung says.
    flags := [string()],
    %% A file that the resolver of the clients reads.
    hosts_file := file:filename() | none
}.

%% An interval of its statistics. Tsung's own is ten seconds, in which a short run has but one.
-define(INTERVAL_MS, 1000).
-define(PUSHED, [ts_rpc, atoll_tsung_rpc]).

%% @doc Starts Tsung, and returns when its users begin to come. When all is over it ends this VM.
-spec start(settings()) -> ok | {error, Sentence :: unicode:chardata()}.
start(#{scenario := Scenario, logs := Logs, way := Way} = Settings) ->
    case atoll_view_join:start(Way) of
        {ok, Cookie} ->
            ok = atoll_tsung_rpc:let_in(case Cookie of own -> erlang:get_cookie(); {ok, Theirs} -> Theirs end),
            true = erlang:set_cookie(list_to_atom(binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(16))))),
            ok = hosts(Settings),
            _ = spawn(fun() ->
                ok = net_kernel:monitor_nodes(true),
                push()
            end),
            ok = application:load(tsung_controller),
            _ = [
                ok = application:set_env(tsung_controller, Key, Value)
             || {Key, Value} <- [
                    {config_file, Scenario}, {log_dir, Logs ++ "/"}, {mon_file, "tsung.log"}, {dumpstats_interval, ?INTERVAL_MS},
                    {web_gui, false}, {keep_web_gui, false}, {smp_disable, false}, {debug_level, 5}, {warm_time, 1}, {exclude_tag, ""}
                ]
            ],
            %% As a permanent application, so that it takes the VM with it.
            case application:ensure_all_started(tsung_controller, permanent) of
                {ok, _} -> ok;
                {error, Reason} -> {error, io_lib:format("Tsung does not start: ~0tP.", [Reason, 12])}
            end;
        {error, _} = Error ->
            Error
    end.

%% They are known here and by the clients that are started.
hosts(#{here := Here, flags := Flags, hosts_file := File}) ->
    _ = [ok = inet_db:add_host({127, 0, 0, 1}, Here) || Here =/= []],
    ok = inet_db:set_lookup([file, native]),
    _ = [true = os:putenv("ERL_INETRC", File) || File =/= none],
    true = os:putenv("ERL_AFLAGS", lists:flatten(lists:join($\s, Flags))),
    ok.

push() ->
    receive
        {nodeup, Node} ->
            _ = [rpc:call(Node, code, load_binary, [Module, File, Code]) || {Module, Code, File} <- lists:map(fun code:get_object_code/1, ?PUSHED)],
            push();
        {nodedown, _} ->
            push()
    end.
