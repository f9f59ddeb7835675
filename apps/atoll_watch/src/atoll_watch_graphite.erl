%% SPDX-License-Identifier: Apache-2.0
%% @doc What is known of a cluster as lines of Graphite's plaintext protocol, and those that wait to be sent. Pure.
%%
%% A line is `atoll.NODE.METRIC VALUE SECONDS', and `atoll.NODE.METRIC.LABEL' of a metric with a label; what is no letter, digit, `-' or
%% `@' in a part is a `_'. Counters are sent as they are. `atoll.NODE.up' is 1 or 0, and of a node that is not up it is all that there is.
%%
%% What waits has so many bytes at most: the oldest lines are dropped for new ones, and counted.
-module(atoll_watch_graphite).

-export([lines/3, new/1, add/2, next/1, sent/1, wait/1]).

-export_type([lines/0, waiting/0]).

-type lines() :: {Count :: pos_integer(), binary()}.

-record(waiting, {most :: pos_integer(), queue = queue:new() :: queue:queue(lines()), bytes = 0 :: non_neg_integer()}).

-opaque waiting() :: #waiting{}.

-define(FIRST_MS, 1000).
-define(MOST_MS, 60000).

%% @doc The lines of each node that is known to be up or not, with those metrics.
-spec lines([atoll_watch_metric:metric()], [atoll_watch_core:seen()], Seconds :: integer()) -> [lines()].
lines(Metrics, Seen, Seconds) ->
    Names = maps:from_list([{Name, []} || #{name := Name} <- Metrics]),
    At = [$\s, integer_to_binary(Seconds), $\n],
    [
        begin
            Values = [{[atom_to_list(Name)], Value} || State =:= up, {Name, Value} <- maps:to_list(Readings), is_map_key(Name, Names)] ++
                [{[atom_to_list(Name), $., part(Label)], Value} || State =:= up, {{Name, Label}, Value} <- maps:to_list(Readings), is_map_key(Name, Names)],
            Of = ["atoll.", part(Node), $.],
            {1 + length(Values), iolist_to_binary([[Of, Path, $\s, number(Value), At] || {Path, Value} <- [{"up", case State of up -> 1; _ -> 0 end} | lists:sort(Values)]])}
        end
     || #{node := Node, state := State, readings := Readings} <- Seen, State =/= unknown
    ].

part(Atom) when is_atom(Atom) -> part(atom_to_binary(Atom));
part(Text) -> [if C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9; C =:= $-; C =:= $@ -> C; true -> $_ end || C <- chars(Text)].

%% A label that is no text has bytes.
chars(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) -> Chars;
        _ -> binary_to_list(Text)
    end.

number(N) when is_integer(N) -> integer_to_binary(N);
number(N) -> float_to_binary(N, [short]).

%% @doc Nothing waits yet.
-spec new(MostBytes :: pos_integer()) -> waiting().
new(Most) -> #waiting{most = Most}.

%% @doc These wait too; so many lines were dropped for them.
-spec add([lines()], waiting()) -> {Dropped :: non_neg_integer(), waiting()}.
add(Lines, Waiting) ->
    bounded(lists:foldl(fun({_, Text} = Of, #waiting{queue = Queue, bytes = Bytes} = Acc) ->
        Acc#waiting{queue = queue:in(Of, Queue), bytes = Bytes + byte_size(Text)}
    end, Waiting, Lines), 0).

bounded(#waiting{bytes = Bytes, most = Most} = Waiting, Dropped) when Bytes > Most ->
    {ok, {Count, _}} = next(Waiting),
    bounded(sent(Waiting), Dropped + Count);
bounded(Waiting, Dropped) ->
    {Dropped, Waiting}.

%% @doc What is to be sent next.
-spec next(waiting()) -> {ok, lines()} | none.
next(#waiting{queue = Queue}) ->
    case queue:peek(Queue) of
        {value, Lines} -> {ok, Lines};
        empty -> none
    end.

%% @doc That waits no more.
-spec sent(waiting()) -> waiting().
sent(#waiting{queue = Queue, bytes = Bytes} = Waiting) ->
    {{value, {_, Text}}, Left} = queue:out(Queue),
    Waiting#waiting{queue = Left, bytes = Bytes - byte_size(Text)}.

%% @doc How many milliseconds to wait before the next try, by how many that was before the last.
-spec wait(none | pos_integer()) -> pos_integer().
wait(none) -> ?FIRST_MS;
wait(Ms) when is_integer(Ms) -> min(?MOST_MS, 2 * Ms).
