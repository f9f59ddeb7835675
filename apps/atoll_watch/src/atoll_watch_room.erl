%% SPDX-License-Identifier: Apache-2.0
%% @doc The whole of a watch that keeps what it sees and answers over HTTP, as a supervisor: the store, who watches
%% and its managers, and Yaws.
%% Who watches goes on from what the store has, also when it was started again.
-module(atoll_watch_room).

-behaviour(supervisor).

-export([start_link/1, token/1]).
-export([init/1, watch/2, told_otherwise/2]).

-export_type([options/0]).

-type options() :: #{
    target := atoll_view:target(),
    %% How many have a VM of their own.
    managers := auto | pos_integer(),
    store := atoll_watch_store:options(),
    web := atoll_watch_yaws:options(),
    %% Where the state of deployments is.
    deployments := file:filename(),
    graphite => {inet:ip_address() | string(), inet:port_number()}
}.

%% It waits for its managers.
-define(STOP_MS, 10000).

%% @doc Starts it all; if something cannot be started, says why in a sentence.
-spec start_link(options()) -> {ok, pid()} | {error, {unable, unicode:chardata()}}.
start_link(Options) ->
    %% Why it cannot be started is told in a sentence.
    _ = logger:add_primary_filter(?MODULE, {fun ?MODULE:told_otherwise/2, []}),
    Started = supervisor:start_link(?MODULE, Options),
    _ = logger:remove_primary_filter(?MODULE),
    case Started of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, {failed_to_start_child, _, {unable, Sentence}}}} -> {error, {unable, Sentence}};
        {error, {shutdown, {failed_to_start_child, web, _}}} -> {error, {unable, "Yaws could not be started: its log above says why."}}
    end.

%% @private
-spec told_otherwise(logger:log_event(), []) -> stop | ignore.
told_otherwise(#{msg := {report, #{label := {supervisor, start_error}}}}, []) -> stop;
told_otherwise(_, []) -> ignore.

%% @private
-spec init(options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{target := Target, managers := Managers, store := #{period := Period} = Store, web := Web, deployments := Deployments} = Options) ->
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 60}, [
        #{id => store, start => {atoll_watch_store, start_link, [Store]}},
        #{id => watch, start => {?MODULE, watch, [Target, #{managers => Managers, period => Period}]}, shutdown => ?STOP_MS},
        #{id => topology, start => {atoll_watch_topology, start_link, [Target]}},
        #{id => deploy, start => {atoll_deploy_server, start_link, [Deployments]}},
        #{id => traffic, start => {atoll_watch_traffic, start_link, [Target]}, shutdown => ?STOP_MS},
        #{id => web, start => {atoll_watch_yaws, start_link, [Web]}, type => supervisor}
        | [#{id => graphite, start => {atoll_watch_graphite_link, start_link, [#{to => To, period => Period}]}} || #{graphite := To} <- [Options]]
    ]}}.

%% @private
-spec watch(atoll_view:target(), atoll_watch:options()) -> {ok, pid()} | {error, {unable, unicode:chardata()}}.
watch(Target, Options) ->
    case atoll_watch:start_link(Target, maps:merge(atoll_watch_store:restored(), Options)) of
        {ok, Watch} ->
            ok = atoll_watch_store:watching(Watch),
            {ok, Watch};
        {error, _} = Error ->
            Error
    end.

%% @doc The token that is kept in a directory, and whether it was made just now. Nobody else may read it.
-spec token(Dir :: file:filename()) -> {ok, new | kept, Token :: binary()} | {error, {unable, unicode:chardata()}}.
token(Dir) ->
    File = filename:join(Dir, "token"),
    case file:read_file(File) of
        {ok, Text} when byte_size(Text) >= 32 -> {ok, kept, string:trim(Text)};
        {ok, _} -> {error, {unable, [File, " has no token: remove it, and one is made."]}};
        {error, enoent} ->
            Token = << <<(case C of $+ -> $-; $/ -> $_; _ -> C end)>> || <<C>> <= base64:encode(crypto:strong_rand_bytes(30)) >>,
            case made(Dir, File, Token) of
                ok -> {ok, new, Token};
                %% Another watch has made one meanwhile.
                {error, eexist} -> token(Dir);
                {error, Reason} -> {error, {unable, [File, " cannot be written: ", file:format_error(Reason), $.]}}
            end;
        {error, Reason} ->
            {error, {unable, [File, " cannot be read: ", file:format_error(Reason), $.]}}
    end.

%% It has its mode before it has the token.
made(Dir, File, Token) ->
    New = File ++ "." ++ os:getpid(),
    _ = file:delete(New),
    Made = first_error([
        fun() -> filelib:ensure_path(Dir) end, fun() -> file:change_mode(Dir, 8#700) end, fun() -> file:write_file(New, <<>>, [exclusive]) end,
        fun() -> file:change_mode(New, 8#600) end, fun() -> file:write_file(New, [Token, $\n]) end, fun() -> file:make_link(New, File) end
    ]),
    _ = file:delete(New),
    Made.

first_error([]) -> ok;
first_error([Do | More]) ->
    case Do() of
        ok -> first_error(More);
        {error, _} = Error -> Error
    end.
