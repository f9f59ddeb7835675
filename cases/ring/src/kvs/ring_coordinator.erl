%% SPDX-License-Identifier: Apache-2.0
%% @doc Does what a request for a key says ({@link ring_request}): a process for each, which outlives its answer as long as there is something to repair.
%%
%% It watches the masters of the nodes that it asks, so a node that is lost is no wait. As many requests run on a node as `requests' says; one more is refused at once. A request that is answered
%% is none any longer: what waits for answers of further copies, to repair these, is counted apart, and given up where there are too many.
-module(ring_coordinator).

-export([read/2, write/2, spread/3]).

-export_type([error/0]).

%% Of the counts of {@link ring_options:installed/0}.
-define(ASKING, 1).
-define(REPAIRING, 2).
-define(REPAIR_MS, 1000).

-type error() ::
    ring_request:error()
    | overloaded
    | no_ring
    | not_started
    %% The node has just begun, and does not know the others yet.
    | starting
    %% Nobody well is left who has the keys of that partition.
    | {uncovered, ring_hash:partition()}.

%% @doc Reads a key: all that R copies have, for somebody who has seen that.
-spec read(Key :: term(), #{r := pos_integer(), seen := ring_dvv:context(), module := module()}) -> {ok, ring_dvv:clock(term())} | {error, error()}.
read(Key, #{r := R, seen := Seen} = How) ->
    run(Key, R, How, fun(Partition, Entries, Need) -> ring_request:read({Partition, Key}, Entries, Need, Seen) end).

%% @doc Writes a value: when it is ordered and W copies have it, that is what its writer has seen of itself.
-spec write(Key :: term(), #{w := pos_integer(), value := term(), context := ring_dvv:context(), module := module()}) ->
    {written, ring_dvv:context()} | {error, error()}.
write(Key, #{w := W, value := Value, context := Context} = How) ->
    run(Key, W, How, fun(Partition, Entries, Need) -> ring_request:write({Partition, Key}, {Value, Context}, Entries, Need) end).

run(Key, Copies, #{module := Module}, Begin) ->
    case ring_options:installed() of
        none -> {error, not_started};
        {#{copies := N} = Options, Running} ->
            case ring_view:is_begun() andalso ring_view:preflist(Key, N) of
                false -> {error, starting};
                none -> {error, no_ring};
                {ok, Partition, Entries} ->
                    case counted(?ASKING, Options, Running) of
                        false -> {error, overloaded};
                        true ->
                            Need = {Copies, min(Copies, ring_view:owners(Partition, N))},
                            asked(fun(Answer) -> begun(Begin(Partition, Entries, Need), Module, Options, Answer, Running) end)
                    end
            end
    end.

%% One more, if there may be.
counted(What, #{requests := Most}, Running) ->
    case atomics:add_get(Running, What, 1) > Most of
        false -> true;
        true ->
            ok = atomics:sub(Running, What, 1),
            false
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

%% Until it is answered it is one of the requests, and then of those that wait for what there is to repair: of these there may be as many, and each may wait for a second.
begun({Request, Effects}, Module, #{request_ms := Ms} = Options, Answer, Running) ->
    To = #{alias => alias(), module => Module, timer => erlang:start_timer(Ms, self(), over), answer => Answer, watched => #{}},
    Then = try loop(Effects, Request, To) after ok = atomics:sub(Running, ?ASKING, 1) end,
    case Then of
        {answered, Left, Answered, #{timer := Timer} = Asking} ->
            _ = erlang:cancel_timer(Timer),
            receive {timeout, Timer, over} -> ok after 0 -> ok end,
            case counted(?REPAIRING, Options, Running) of
                false -> ok;
                true ->
                    Until = erlang:start_timer(?REPAIR_MS, self(), over),
                    try loop(Left, Answered, Asking#{timer := Until}) after ok = atomics:sub(Running, ?REPAIRING, 1) end
            end
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
    {answered, Effects, Request, To};
loop([{ask, {Partition, Node, Role}, Command} | Effects], Request, #{alias := Alias, module := Module} = To) ->
    Watching = watched(Node, To),
    ok = ring_send:command(Node, {Module, Partition, Role}, Command, {Alias, Partition}),
    loop(Effects, Request, Watching);
loop([{tell, {Partition, Node, Role}, Command} | Effects], Request, #{module := Module} = To) ->
    ok = ring_view:count(repaired),
    ok = ring_send:command(Node, {Module, Partition, Role}, Command, none),
    loop(Effects, Request, To).

watched(Node, #{watched := Watched} = To) ->
    case lists:member(Node, maps:values(Watched)) of
        true -> To;
        false -> To#{watched := Watched#{monitor(process, {ring_master, Node}) => Node}}
    end.

%% @doc Asks for all keys ({@link ring_coverage}): what each of those that were asked says, in any order.
-spec spread(module(), Request :: term(), Ms :: pos_integer()) -> {ok, [Reply :: term()]} | {error, error()}.
spread(Module, Request, Ms) ->
    case {ring_options:installed(), ring_view:is_begun() andalso ring_view:ring()} of
        {none, _} -> {error, not_started};
        {_, none} -> {error, not_started};
        {_, false} -> {error, starting};
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
    Watched = maps:from_list([{monitor(process, {ring_master, Node}), Node} || Node <- lists:usort([Node || {_, Node, _} <- Parts])]),
    _ = [ok = ring_send:command(Node, {Module, P, primary}, {coverage, Request, Of}, {Alias, P}) || {P, Node, Of} <- Parts],
    Answer = gather(Alias, maps:from_list([{P, Node} || {P, Node, _} <- Parts]), Watched, erlang:monotonic_time(millisecond) + Ms, []),
    _ = unalias(Alias),
    _ = [demonitor(Ref, [flush]) || Ref <- maps:keys(Watched)],
    flush(Alias),
    Answer.

gather(_, Waiting, _, _, Replies) when map_size(Waiting) =:= 0 -> {ok, Replies};
gather(Alias, Waiting, Watched, Deadline, Replies) ->
    receive
        {Alias, _, {error, _}} -> few(Waiting, Replies);
        {Alias, P, Reply} -> gather(Alias, maps:remove(P, Waiting), Watched, Deadline, [Reply | Replies]);
        {'DOWN', Ref, process, _, _} when is_map_key(Ref, Watched) ->
            case lists:member(map_get(Ref, Watched), maps:values(Waiting)) of
                true -> few(Waiting, Replies);
                false -> gather(Alias, Waiting, Watched, Deadline, Replies)
            end
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> few(Waiting, Replies)
    end.

few(Waiting, Replies) -> {error, {too_few, length(Replies), length(Replies) + map_size(Waiting)}}.

flush(Alias) ->
    receive {Alias, _, _} -> flush(Alias) after 0 -> ok end.
