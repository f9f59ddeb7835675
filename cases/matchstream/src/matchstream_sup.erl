%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor at the top. Below it, in this order:
%% ```
%% matchstream_record    what is asked, if that is wanted
%% matchstream_pg        groups of clients, of this node
%% matchstream_store     what is kept
%% matchstream_lives     the matches that run here
%% matchstream_gossip    what other nodes have taken
%% connections           one supervisor of connections, or sixteen
%% listeners             a port each
%% matchstream_simulator plays a match for the page
%% matchstream_web       HTTP
%% '''
-module(matchstream_sup).
-behaviour(supervisor).

-export([start_link/1, start_connections/2, start_listeners/1, connection/1, init/1]).

-define(SUPERVISORS, 16).

%% @doc Starts it under its name.
-spec start_link(matchstream:settings()) -> supervisor:startlink_ret().
start_link(Settings) -> supervisor:start_link({local, ?MODULE}, ?MODULE, {top, Settings}).

%% @private
-spec start_connections(pos_integer(), matchstream:settings()) -> supervisor:startlink_ret().
start_connections(N, Settings) -> supervisor:start_link({local, name(N)}, ?MODULE, {connections, Settings}).

%% @private
-spec start_listeners(matchstream:settings()) -> supervisor:startlink_ret().
start_listeners(Settings) -> supervisor:start_link({local, matchstream_listeners}, ?MODULE, {listeners, Settings}).

%% @doc Starts the process of a connection, below any of the supervisors.
-spec connection(gen_tcp:socket()) -> supervisor:startchild_ret().
connection(Socket) -> supervisor:start_child(name(rand:uniform(count())), [Socket]).

count() -> matchstream_switches:when_on(supervisors, ?SUPERVISORS, 1).

name(N) -> list_to_atom("matchstream_connections_" ++ integer_to_list(N)).

%% @private
-spec init({top | connections | listeners, matchstream:settings()}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({top, #{store := Store} = Settings}) ->
    {ok, {#{strategy => rest_for_one, intensity => 10, period => 10}, [
        #{id => record, start => {matchstream_record, start_link, [File]}} || File <- record(Settings)
    ] ++ [
        #{id => pg, start => {pg, start_link, [matchstream_pg]}},
        #{id => store, start => {matchstream_store, start_link, [Store]}},
        #{id => lives, start => {matchstream_lives, start_link, []}},
        #{id => gossip, start => {matchstream_gossip, start_link, []}}
    ] ++ [
        #{id => {connections, N}, start => {?MODULE, start_connections, [N, Settings]}, type => supervisor} || N <- lists:seq(1, count())
    ] ++ [
        #{id => listeners, start => {?MODULE, start_listeners, [Settings]}, type => supervisor},
        #{id => simulator, start => {matchstream_simulator, start_link, []}},
        #{id => web, start => {matchstream_web, start_link, [Settings]}}
    ]}};
init({connections, Settings}) ->
    {ok, {#{strategy => simple_one_for_one}, [#{id => connection, start => {matchstream_connection, start_link, [Settings]}, restart => temporary}]}};
init({listeners, Settings}) ->
    {ok, {#{intensity => 10, period => 10}, [
        #{id => N, start => {matchstream_listener, start_link, [Settings, Port]}} || {N, Port} <- matchstream:ports(Settings)
    ]}}.

record(#{record := File, nodes := [_]}) -> [File];
record(#{record := File, nodes := Nodes}) -> [lists:concat([File, ".", 1 + matchstream:place(Nodes)])];
record(#{}) -> [].
