%% SPDX-License-Identifier: Apache-2.0
%% @doc Sessions that read and write keys of a ring from outside, over whichever of its nodes is there, and keep what they were told: for {@link ring_history}.
%%
%% It runs on a node that nobody kills, and asks the ring's nodes by `erpc'. Each session draws a key and a node, reads, and writes a
%% new value over what it has read, each with what it has seen before. What fails is tried no more: a write is then one that may have been done.
-module(ring_sessions).

-export([run/3, final/3]).

%% A session ends by exit, with what it was told.
-dialyzer({nowarn_function, run/3}).

-type options() :: #{sessions := pos_integer(), keys := pos_integer(), ms := pos_integer(), seed := integer(), bytes => non_neg_integer(), turns => non_neg_integer()}.

-type told() :: #{events := [ring_history:event()], failed := non_neg_integer(), longest_us := non_neg_integer()}.

-define(CALL_MS, 12_000).

%% @doc Runs sessions for a time, and until each has tried so many `turns', if that is said: where all is slow, a time alone may
%% see next to nothing. The values are `{Session, Number, Bytes}'.
-spec run([node(), ...], options(), Tag :: term()) -> told().
run(Nodes, #{sessions := Count, ms := Ms} = Options, Tag) ->
    Until = erlang:monotonic_time(millisecond) + Ms,
    Running = [spawn_monitor(fun() -> exit({told, session({Tag, N}, Nodes, Until, Options)}) end) || N <- lists:seq(1, Count)],
    lists:foldl(fun joined/2, #{events => [], failed => 0, longest_us => 0}, [receive {'DOWN', Ref, process, Pid, {told, Told}} -> Told end || {Pid, Ref} <- Running]).

joined(#{events := E1, failed := F1, longest_us := L1}, #{events := E2, failed := F2, longest_us := L2}) ->
    #{events => E1 ++ E2, failed => F1 + F2, longest_us => max(L1, L2)}.

session(Session, Nodes, Until, #{seed := Seed} = Options) ->
    _ = rand:seed(exsss, {Seed, erlang:phash2(Session), 1}),
    Told = turns(Session, list_to_tuple(Nodes), Until, Options, #{}, 1, #{events => [], failed => 0, longest_us => 0}),
    maps:update_with(events, fun lists:reverse/1, Told).

turns(Session, Nodes, Until, #{keys := Keys} = Options, Seen, N, Told) ->
    case N > maps:get(turns, Options, 0) andalso erlang:monotonic_time(millisecond) >= Until of
        true -> Told;
        false ->
            Key = {key, rand:uniform(Keys)},
            Before = erlang:monotonic_time(microsecond),
            {Now, Next} = turn(Session, Key, pick(Nodes), pick(Nodes), Options, maps:get(Key, Seen, #{}), N, Told),
            Us = erlang:monotonic_time(microsecond) - Before,
            turns(Session, Nodes, Until, Options, Seen#{Key => Now}, N + 1, maps:update_with(longest_us, fun(L) -> max(L, Us) end, Next))
    end.

pick(Nodes) -> element(rand:uniform(tuple_size(Nodes)), Nodes).

turn(Session, Key, Node, Other, Options, Seen, N, Told) ->
    case ask(Node, get, [Key, #{seen => Seen}]) of
        {ok, Values, Context} -> wrote(Session, Key, Values, Context, Other, Options, Seen, N, noted({read, Session, Key, ids(Values)}, Told));
        {not_found, Context} -> wrote(Session, Key, [], Context, Other, Options, Seen, N, noted({read, Session, Key, []}, Told));
        {error, _} -> {Seen, failed(Told)}
    end.

wrote(Session, Key, Values, Context, Node, Options, Seen, N, Told) ->
    Id = {Session, N},
    Write = fun(Is) -> {write, Session, Key, Id, ids(Values), Is} end,
    case ask(Node, put, [Key, {Id, rand:bytes(maps:get(bytes, Options, 10))}, #{context => Context}]) of
        {ok, Own} -> {ring_kvs:join(ring_kvs:join(Seen, Context), Own), noted(Write(ok), Told)};
        {error, _} -> {ring_kvs:join(Seen, Context), failed(noted(Write(unknown), Told))}
    end.

ids(Values) -> [Id || {Id, _} <- Values].

noted(Event, #{events := Events} = Told) -> Told#{events := [Event | Events]}.

failed(#{failed := N} = Told) -> Told#{failed := N + 1}.

ask(Node, Function, Args) ->
    try
        erpc:call(Node, ring_kvs, Function, Args, ?CALL_MS)
    catch
        Class:Why when Class =:= error; Class =:= exit -> {error, Why}
    end.

%% @doc What is read of all keys at last, of all copies, by these nodes; tried again until each is answered, or the time is over.
-spec final([node(), ...], Keys :: pos_integer(), #{copies := pos_integer(), ms := pos_integer()}) -> {ok, #{term() => [term()]}} | {error, {unanswered, Key :: term(), term()}}.
final(Nodes, Keys, #{copies := Copies, ms := Ms}) ->
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    each([{key, N} || N <- lists:seq(1, Keys)], list_to_tuple(Nodes), Copies, Deadline, #{}).

each([], _, _, _, Read) -> {ok, Read};
each([Key | Keys] = All, Nodes, Copies, Deadline, Read) ->
    case ask(pick(Nodes), get, [Key, #{r => Copies}]) of
        {ok, Values, _} -> each(Keys, Nodes, Copies, Deadline, Read#{Key => ids(Values)});
        {not_found, _} -> each(Keys, Nodes, Copies, Deadline, Read#{Key => []});
        {error, Why} ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true -> each(All, Nodes, Copies, Deadline, Read);
                false -> {error, {unanswered, Key, Why}}
            end
    end.
