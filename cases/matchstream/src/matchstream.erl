%% SPDX-License-Identifier: Apache-2.0
%% @doc MatchStream: who watches a match in the stadium registers its events, and very many clients get them over TCP.
%%
%% ```
%% register/4 - matchstream_live - store: kept, and only then taken
%%                |- outlets - connections - sockets          on this node
%%                '- atoll:broadcast - matchstream_gossip - matchstream_live ...   on the others
%% '''
%% Promised: an event is taken when it is kept, whatever ends afterwards. Each client gets a status first and then each event
%% after it, in order, once; one that reads too slowly is told and closed. On which node an event is
%% registered makes no difference: each node has a process for a match, and the store gives a number once.
-module(matchstream).

-export([ports/1, count_ports/1, place/1, new_match/1, cancel_match/1, register/3, register/4, matches/0, running/0, match/1, history/2, history/3, port/0, status/0, format_error/1]).

-export_type([settings/0, error/0]).

-type settings() :: #{
    %% all that run the application
    nodes := [node(), ...],
    store := matchstream_store:options(),
    switches := [matchstream_switches:name()],
    listen := inet:ip_address(),
    %% where the first port of the first node is; 0 takes free ones
    port := inet:port_number(),
    web := inet:port_number(),
    %% at most, on a node
    connections := pos_integer(),
    %% at most: that are kept, and that are played or followed on a node
    matches := pos_integer(),
    playing := pos_integer(),
    %% for a client to say what it wants
    request_ms := pos_integer(),
    %% events that may wait for a client
    waiting := pos_integer(),
    %% a client that takes nothing for so long is closed
    send_ms := pos_integer(),
    %% where it is written what is asked; without, it is not. Of several nodes each adds its number.
    record => file:filename()
}.

-type error() ::
    matchstream_match:error()
    | unknown_match
    %% nothing is known of what became of it: it may have been kept
    | unavailable
    %% another event has the number that was asked for
    | {conflict, pos_integer()}
    | exists
    %% so many are kept already, or are played on this node
    | full
    | busy.

-define(PORTS, 8).

%% @doc The ports of this node, numbered from 1.
-spec ports(settings()) -> [{pos_integer(), inet:port_number()}].
ports(#{port := First, nodes := Nodes}) ->
    Count = count_ports(matchstream_switches:all()),
    [{N, case First of 0 -> 0; _ -> First + place(Nodes) * Count + N - 1 end} || N <- lists:seq(1, Count)].

%% @doc How many ports a node with these switches has.
-spec count_ports([matchstream_switches:name()]) -> pos_integer().
count_ports(Switches) ->
    case lists:member(ports, Switches) of
        true -> ?PORTS;
        false -> 1
    end.

%% @doc How many nodes there are before this one.
-spec place([node(), ...]) -> non_neg_integer().
place(Nodes) -> length(lists:takewhile(fun(Node) -> Node =/= node() end, Nodes)).

%% @doc Keeps a new match.
-spec new_match(matchstream_match:about()) -> {ok, matchstream_match:id()} | {error, error()}.
new_match(About) ->
    case matchstream_store:create(About) of
        {ok, _} = Ok -> Ok;
        {error, _} = Error -> Error;
        Why -> {error, Why}
    end.

%% @doc Ends a match that is not played, or not played to its end. Who follows it gets that as its last event.
-spec cancel_match(matchstream_match:id()) -> {ok, matchstream_match:event()} | {error, error()}.
cancel_match(Id) -> register(Id, cancel, []).

%% @doc Registers an event that happens now.
-spec register(matchstream_match:id(), term(), [{term(), term()}]) -> {ok, matchstream_match:event()} | {error, error()}.
register(Id, Kind, Data) -> register(Id, Kind, Data, any).

%% @doc Registers an event under the number that it is to have. One that has it already is the answer, if it is the same: so who
%% was told `unavailable' asks again with the same number.
-spec register(matchstream_match:id(), term(), [{term(), term()}], pos_integer() | any) -> {ok, matchstream_match:event()} | {error, error()}.
register(Id, Kind, Data, Seq) ->
    matchstream_lives:with(Id, fun(Live) -> matchstream_live:register(Live, Kind, Data, Seq) end).

%% @doc All matches.
-spec matches() -> {ok, [matchstream_match:id()]} | {error, unavailable}.
matches() ->
    case matchstream_store:matches() of
        {ok, _} = Ok -> Ok;
        unavailable -> {error, unavailable}
    end.

%% @doc The first match that runs, in the order of their names.
-spec running() -> {ok, matchstream_match:id()} | {error, unknown_match | unavailable}.
running() ->
    case matchstream_store:running() of
        {ok, _} = Ok -> Ok;
        none -> {error, unknown_match};
        unavailable -> {error, unavailable}
    end.

%% @doc How a match stands. It is kept; no process of it is started for that.
-spec match(matchstream_match:id()) -> {ok, matchstream_match:match()} | {error, error()}.
match(Id) -> events(Id, 0, infinity, fun matchstream_match:restored/2).

%% @doc The events of a match after that number.
-spec history(matchstream_match:id(), After :: non_neg_integer()) -> {ok, [matchstream_match:event()]} | {error, error()}.
history(Id, After) -> history(Id, After, infinity).

%% @doc The events of a match after that number, up to another one.
-spec history(matchstream_match:id(), After :: non_neg_integer(), UpTo :: pos_integer() | infinity) -> {ok, [matchstream_match:event()]} | {error, error()}.
history(Id, After, UpTo) -> events(Id, After, UpTo, fun(_, Events) -> Events end).

events(Id, After, UpTo, Fun) ->
    case matchstream_store:read(Id, After, UpTo) of
        {ok, About, Events} -> {ok, Fun(About, Events)};
        none -> {error, unknown_match};
        unavailable -> {error, unavailable}
    end.

%% @doc A port of this node for one more client, any of them.
-spec port() -> inet:port_number().
port() ->
    Ports = listening(),
    lists:nth(rand:uniform(length(Ports)), Ports).

listening() -> lists:sort([matchstream_listener:port(Pid) || {_, Pid, _, _} <- supervisor:which_children(matchstream_listeners), is_pid(Pid)]).

%% @doc What this node has.
-spec status() -> #{atom() => term()}.
status() ->
    #{
        counts => matchstream_count:all(), ports => listening(), web => matchstream_web:port(), switches => matchstream_switches:all(),
        store => matchstream_store:is_ready(), processes => erlang:system_info(process_count), memory => erlang:memory(total)
    }.

%% @doc Why something was not done, in a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error(unknown_match) -> "There is no such match.";
format_error(exists) -> "There is such a match already.";
format_error({conflict, Seq}) -> io_lib:format("The event ~b is another one.", [Seq]);
format_error(unavailable) ->
    case matchstream_store:apart() of
        [] -> "The store does not answer: whether it was kept is not known. Ask again with the same seq.";
        [Other | _] -> io_lib:format("This node was cut off, and is apart from ~ts until it is started again: ask another one.", [Other])
    end;
format_error(full) -> io_lib:format("~b matches are kept, and no more: the setting matches says how many.", [matchstream_settings:get(matches)]);
format_error(busy) -> io_lib:format("~b matches are played on this node already: please try again later.", [matchstream_settings:get(playing)]);
format_error(Error) -> matchstream_match:format_error(Error).
