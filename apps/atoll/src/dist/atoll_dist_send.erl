%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Sending a single message in a channel, and with a partition key, whatever channel the
%% sender is in itself.
%%
%% Which lane a signal takes is known by the process that sends it. So such a message is handed to a
%% process that does nothing but send what one caller hands to it, in one channel, of one
%% part of all keys. There are as many parts as the channel has lanes.
%%
%% Promised: messages of one caller with the same channel and key, or without a key, come to a
%% receiver in the order in which they were sent; all of them are sent, also when the caller
%% ends before. A caller has no more than a number of messages waiting for each such process:
%% then it waits, as for a connection that is busy. The process ends with its caller.
%%
%% Not promised: any order with messages of other keys, or with what the caller sends itself.
-module(atoll_dist_send).

-export([send/3, format_error/1]).
-export([init/3, loop/2]).

-export_type([options/0, error/0]).

-type options() :: #{channel => atoll_dist_named:name(), key => term()}.

-type error() ::
    {bad_send, term()}
    | {key_in_monotonic, atoll_dist_named:name()}
    | atoll_dist_member:error().

-type destination() :: pid() | reference() | atom() | {atom(), node()}.

%% How many messages may wait in such a process.
-define(MAX_WAITING, 1000).
%% Of what is in no channel.
-define(PARTS, 16).
-define(QUIET_MS, 5000).

%% @doc Sends a message. To a process of this node, and on a node without the carrier, it is sent as
%% any other.
-spec send(destination(), term(), options()) -> ok | {error, error()}.
send(To, Message, Options) when is_map(Options) ->
    case {maps:keys(maps:without([channel, key], Options)), atoll_dist_member:channels()} of
        {[_ | _], _} ->
            {error, {bad_send, Options}};
        {[], none} ->
            plain(To, Message);
        {[], {ok, Channels}} ->
            Name = maps:get(channel, Options, default),
            case part(Name, Options, Channels) of
                {error, _} = Error -> Error;
                _ when To =:= self(); is_atom(To) -> plain(To, Message);
                Part -> send(To, Message, Name, Part)
            end
    end;
send(_To, _Message, Options) ->
    {error, {bad_send, Options}}.

plain(To, Message) ->
    _ = To ! Message,
    ok.

part(default, Options, _Channels) ->
    hashed(Options, ?PARTS);
part(Name, Options, Channels) ->
    case Channels of
        #{Name := #{monotonic := true}} when is_map_key(key, Options) -> {error, {key_in_monotonic, Name}};
        #{Name := Channel} -> hashed(Options, maps:get(lanes, Channel, 1));
        #{} -> {error, {no_channel, Name, lists:sort(maps:keys(Channels))}}
    end.

hashed(#{key := Key}, Parts) -> erlang:phash2(Key, Parts);
hashed(#{}, _Parts) -> none.

send(To, Message, Name, Part) ->
    case is_near(To) of
        true ->
            plain(To, Message);
        false ->
            {Pid, Waiting} = sender(Name, Part),
            ok = atomics:add(Waiting, 1, 1),
            Pid ! {send, To, Message},
            case atomics:get(Waiting, 1) > ?MAX_WAITING of
                true -> await(Pid);
                false -> ok
            end
    end.

is_near({_, Node}) -> Node =:= node();
is_near(To) -> node(To) =:= node().

%% It ends with the caller and not before, so that the dictionary may say who it is.
sender(Name, Part) ->
    case get({?MODULE, Name, Part}) of
        undefined ->
            Waiting = atomics:new(1, []),
            Sender = {proc_lib:spawn(?MODULE, init, [self(), Name, Waiting]), Waiting},
            _ = put({?MODULE, Name, Part}, Sender),
            Sender;
        Sender ->
            Sender
    end.

await(Pid) ->
    Ref = monitor(process, Pid),
    Pid ! {await, self(), Ref},
    receive
        {Ref, sent} ->
            true = demonitor(Ref, [flush]),
            ok;
        {'DOWN', Ref, process, Pid, Reason} ->
            exit({?MODULE, Reason})
    end.

%% @private
-spec init(pid(), atoll_dist_named:name(), atomics:atomics_ref()) -> ok.
init(Caller, Name, Waiting) ->
    _ = monitor(process, Caller),
    ok = atoll_dist_member:join(Name),
    loop(Waiting, Caller).

%% @private
-spec loop(atomics:atomics_ref(), pid()) -> ok.
loop(Waiting, Caller) ->
    receive
        {send, To, Message} ->
            _ = To ! Message,
            ok = atomics:sub(Waiting, 1, 1),
            ?MODULE:loop(Waiting, Caller);
        {await, From, Ref} ->
            From ! {Ref, sent},
            ?MODULE:loop(Waiting, Caller);
        {'DOWN', _, process, Caller, _} ->
            %% All that it had sent is before this.
            ok
    after ?QUIET_MS ->
        %% So it holds on to no version of this module.
        proc_lib:hibernate(?MODULE, loop, [Waiting, Caller])
    end.

%% @doc A part of a sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_send, Options}) ->
    io_lib:format("the options of a message are channel => Name and key => Term, not ~0tp", [Options]);
format_error({key_in_monotonic, Name}) ->
    io_lib:format("the channel ~tp is monotonic, where the newest message to a receiver counts: it has no keys", [Name]);
format_error({no_channel, Name, []}) ->
    io_lib:format("there is no channel ~0tp: the carrier of this node is configured without channels", [Name]);
format_error({no_channel, Name, Names}) ->
    io_lib:format("there is no channel ~0tp; there are ~ts", [Name, lists:join(", ", [atom_to_list(N) || N <- Names])]).
