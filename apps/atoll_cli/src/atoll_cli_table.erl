%% SPDX-License-Identifier: Apache-2.0
%% @doc Aligned plain text, and numbers as people read them.
-module(atoll_cli_table).

-export([format/2, lines/2, value/1, count/1, decimal/1, percent/1, seconds/1, bytes/1]).

-export_type([align/0]).

-type align() :: left | right.

-define(GAP, 2).
%% A float has no more.
-define(MAX_DECIMALS, 15).

%% @doc A table under a head. Each column has its alignment, its head's too.
-spec format([{align(), unicode:chardata()}], [[unicode:chardata()]]) -> iolist().
format(Columns, Rows) ->
    {Aligns, Heads} = lists:unzip(Columns),
    lines(Aligns, [Heads | Rows]).

%% @doc Rows of cells as lines, the columns aligned.
-spec lines([align()], [[unicode:chardata()]]) -> iolist().
lines(Aligns, Rows) ->
    Widths = lists:foldl(fun widest/2, [0 || _ <- Aligns], Rows),
    [line(Aligns, Widths, Row) || Row <- Rows].

%% @doc The value of a benchmark's parameter.
-spec value(number() | binary()) -> unicode:chardata().
value(Value) when is_integer(Value) -> count(Value);
value(Value) when is_float(Value) -> float_to_list(Value, [short]);
value(Value) -> Value.

%% @doc A whole number, by thousands.
-spec count(integer()) -> string().
count(N) when N < 0 -> [$- | count(-N)];
count(N) when N < 1000 -> integer_to_list(N);
count(N) -> count(N div 1000) ++ [$, | padded(N rem 1000, 3)].

%% @doc A number with one decimal, or none if it is whole.
-spec decimal(number()) -> string().
decimal(N) ->
    Tenths = round(N * 10),
    case Tenths rem 10 of
        0 -> count(Tenths div 10);
        Tenth -> count(Tenths div 10) ++ [$., $0 + abs(Tenth)]
    end.

%% @doc A share in percent, with at most two decimals, or as many as it takes to
%% tell it from nothing and from all.
-spec percent(number()) -> string().
percent(Share) ->
    percent(Share * 100, 2) ++ " %".

percent(Percent, Decimals) ->
    Text = whole(float_to_list(float(Percent), [{decimals, Decimals}, compact])),
    IsHidden = (Text =:= "100" andalso Percent < 100) orelse (Text =:= "0" andalso Percent > 0),
    case IsHidden andalso Decimals < ?MAX_DECIMALS of
        true -> percent(Percent, Decimals + 1);
        false -> Text
    end.

%% A whole number keeps a decimal, however compact.
whole(Text) ->
    case lists:suffix(".0", Text) of
        true -> lists:sublist(Text, length(Text) - 2);
        false -> Text
    end.

%% @doc Milliseconds as seconds, with two decimals.
-spec seconds(non_neg_integer()) -> string().
seconds(Ms) ->
    count(Ms div 1000) ++ [$. | padded(Ms rem 1000 div 10, 2)] ++ " s".

%% @doc Bytes as megabytes.
-spec bytes(non_neg_integer()) -> string().
bytes(Bytes) ->
    count(round(Bytes / 1.0e6)) ++ " MB".

padded(N, Digits) ->
    lists:flatten(string:pad(integer_to_list(N), Digits, leading, $0)).

widest(Row, Widths) ->
    lists:zipwith(fun(Cell, Width) -> max(string:length(Cell), Width) end, Row, Widths).

%% What would be blank at the end of a line is left out.
line(Aligns, Widths, Row) ->
    Cells = lists:zipwith3(fun pad/3, Aligns, Widths, Row),
    [string:trim(lists:join(lists:duplicate(?GAP, $\s), Cells), trailing), $\n].

pad(left, Width, Cell) -> string:pad(Cell, Width, trailing);
pad(right, Width, Cell) -> string:pad(Cell, Width, leading).
