%% SPDX-License-Identifier: Apache-2.0
%% @doc Does what a request for a key says ({@link ring_request}): a process for each, which outlives its answer as long as there is something to repair.
%%
%% It watches the masters of the nodes that it asks, so a node that is lost is no wait. As many requests run on a node as `requests' says; one more is refused at once.
-module(ring_coordinator).

-export([read/2, write/2, spread/3]).

-export_type([error/0]).

-type error() ::
    ring_request:error()
    | overloaded
    | no_ring
    | not_started
    %% Nobody well is left who has the keys of that partition.
    | {uncovered, ring_hash:partition()}.

%% @doc Reads a key: all that R copies have, for somebody who has seen that.
-spec read(Key :: term(), #{r := pos_integer(), seen := ring_dvv:context(), module := module()}) -> {ok, ring_dvv:clock(term())} | {error, error()}.
read(Key, #{r := R, seen := Seen} = How) ->
    run(Key, How, fun(Partition, Entries) -> ring_request:read({Partition, Key}, Entries, R, Seen) end).

%% @doc Writes a value: when it is ordered and W copies have it, that is what its writer has seen of itself.
-spec write(Key :: term(), #{w := pos_integer(), value := term(), context := ring_dvv:context(), module := module()}) ->
    {written, ring_dvv:context()} | {error, error()}.
write(Key, #{w := W, value := Value, context := Context} = How) ->
    run(Key, How, fun(Partition, Entries) -> ring_request:write({Partition, Key}, {Value, Context}, Entries, W) end).

run(Key, #{module := Module}, Begin) ->
    case ring_options:installed() of
        none -> {error, not_started};
        {#{requests := Most, copies := N, request_ms := Ms}, Running} ->
            case ring_view:preflist(Key, N) of
                none -> {error, no_ring};
                {ok, Partition, Entries} ->
                    case atomics:get(Running, 1) >= Most of
                        true -> {error, overloaded};
                        false ->
                            ok = atomics:add(Running, 1, 1),
                            asked(fun(Answer) -> begun(Begin(Partition, Entries), Module, Ms, Answer, Running) end)
                    end
            end
    end.

asked(Fun) ->
    Self = self(),
    Tag = make_ref(),
    {Pid, Ref} = spawn_monitor(fun() -> Fun(fun(Answer) -> Self ! {Tag, Answer}, ok end) end),
    receive
        {Tag, Answer} ->
            true = demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, Pid, Why} -> exit(Why)
    end.

begun({Request, Effects}, Module, Ms, Answer, Running) ->
    try
        Timer = erlang:start_timer(Ms, self(), over),
        loop(Effects, Request, #{alias => alias(), module => Module, timer => Timer, answer => Answer, watched => #{}})
    after
        ok = atomics:sub(Running, 1, 1)
    end.

loop([], Request, #{alias := Alias, timer := Timer, watched := Watched} = To) ->
    Event = receive
        {Alias, Partition, Reply} -> {reply, Partition, Reply};
        {timeout, Timer, over} -> timeout;
        {'DOWN', Ref, process, _, _} when is_map_key(Ref, Watched) -> {lost, map_get(Ref, Watched)}
    end,
    {Next, Effects} = ring_request:handle(Event, Request),
    loop(Effects, Next, To);
loop([over | _], _, _) ->
    ok;
loop([{answer, Said} | Effects], Request, #{answer := Answer} = To) ->
    ok = Answer(Said),
    loop(Effects, Request, To);
loop([{ask, {Partition, Node, Role}, Command} | Effects], Request, #{alias := Alias, module := Module} = To) ->
    Watching = watched(Node, To),
    ok = ring_send:command(Node, {Module, Partition, Role}, Command, {Alias, Partition}),
    loop(Effects, Request, Watching);
loop([{tell, {Partition, Node, Role}, Command} | Effects], Request, #{module := Module} = To) ->
    ok = ring_view:count(repaired),
    ok = ring_send:command(Node, {Module, Partition, Role}, Command, none),
    loop(Effects, Request, To).

watched(Node, To) when Node =:= node() -> To;
watched(Node, #{watched := Watched} = To) ->
    case lists:member(Node, maps:values(Watched)) of
        true -> To;
        false -> To#{watched := Watched#{monitor(process, {ring_master, Node}) => Node}}
    end.

%% @doc Asks for all keys ({@link ring_coverage}): what each of those that were asked says, in any order.
-spec spread(module(), Request :: term(), Ms :: pos_integer()) -> {ok, [Reply :: term()]} | {error, error()}.
spread(Module, Request, Ms) ->
    case {ring_options:installed(), ring_view:ring()} of
        {none, _} -> {error, not_started};
        {_, none} -> {error, not_started};
        {{#{copies := N}, _}, {ok, Ring}} ->
            case ring_state:epoch(Ring) of
                0 -> {error, no_ring};
                _ ->
                    case ring_coverage:plan(ring_state:partitions(Ring), N, fun ring_view:owner/1, fun ring_view:is_up/1) of
                        {ok, Parts} -> gathered(Module, Request, Parts, Ms);
                        {error, _} = Error -> Error
                    end
            end
    end.

gathered(Module, Request, Parts, Ms) ->
    Alias = alias(),
    _ = [ok = ring_send:command(Node, {Module, P, primary}, {coverage, Request, Of}, {Alias, P}) || {P, Node, Of} <- Parts],
    Answer = gather(Alias, [P || {P, _, _} <- Parts], length(Parts), erlang:monotonic_time(millisecond) + Ms, []),
    _ = unalias(Alias),
    flush(Alias),
    Answer.

gather(_, [], _, _, Replies) -> {ok, Replies};
gather(Alias, Waiting, All, Deadline, Replies) ->
    receive
        {Alias, P, {error, _}} -> {error, {too_few, All - length([P | Waiting]) + 1, All}};
        {Alias, P, Reply} -> gather(Alias, lists:delete(P, Waiting), All, Deadline, [Reply | Replies])
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> {error, {too_few, All - length(Waiting), All}}
    end.

flush(Alias) ->
    receive {Alias, _, _} -> flush(Alias) after 0 -> ok end.
