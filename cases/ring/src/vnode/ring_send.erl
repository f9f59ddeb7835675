%% SPDX-License-Identifier: Apache-2.0
%% @doc How messages of partitions get to other nodes: by Erlang's own `!', or in a channel of Atoll's carrier ({@link ring_lanes}).
-module(ring_send).

-export([command/4, reply/3, call/4]).

-export_type([from/0, role/0]).

-type from() :: {Alias :: reference(), ring_hash:partition()} | none.
%% Who wants the reply, if anybody: it gets `{Alias, Partition, Reply}'.

-type role() :: primary | fallback | here.
%% What the sender takes the node for, of that partition; `here' is for that node and no other, whoever owns the partition.

%% @doc Sends a partition on a node a command.
-spec command(node(), {module(), ring_hash:partition(), role()}, Command :: term(), from()) -> ok.
command(Node, {Module, Partition, Role}, Command, From) ->
    to({ring_inbox:name(Partition), Node}, {command, Module, Partition, Role, Command, From}, Node, Partition).

%% @doc Sends whoever asked a partition its reply.
-spec reply(from(), node(), Reply :: term()) -> ok.
reply(none, _, _) -> ok;
reply({Alias, Partition}, Node, Reply) -> to(Alias, {Alias, Partition, Reply}, Node, Partition).

to(To, Message, Node, _) when Node =:= node() ->
    _ = To ! Message,
    ok;
to(To, Message, Node, Partition) ->
    case ring_options:installed() of
        {#{channel := Channel}, _} when Channel =/= none -> ring_lanes:send(Node, Partition, To, Message);
        _ ->
            _ = To ! Message,
            ok
    end.

%% @doc Asks a partition on a node, and waits so long.
-spec call(node(), {module(), ring_hash:partition(), role()}, Command :: term(), Ms :: timeout()) -> {ok, Reply :: term()} | {error, lost | late}.
call(Node, Place, Command, Ms) ->
    Alias = erlang:monitor(process, {ring_master, Node}, [{alias, explicit_unalias}]),
    ok = command(Node, Place, Command, {Alias, element(2, Place)}),
    Answer = receive
        {Alias, _, Reply} -> {ok, Reply};
        {'DOWN', Alias, process, _, _} -> {error, lost}
    after Ms -> {error, late}
    end,
    _ = erlang:unalias(Alias),
    _ = erlang:demonitor(Alias, [flush]),
    receive {Alias, _, _} -> Answer after 0 -> Answer end.
