%% SPDX-License-Identifier: Apache-2.0
%% @doc The five windows of a node's series: a quarter of an hour, an hour, a day, a week and a month. Pure.
%%
%% Each window is a ring of so many points of the same width; a wider one's are made of those of the one before it.
%% A point has how many measurements went into it, their average, the lowest and the highest one. Where
%% nothing was measured there is no point. Points of all series of a node that begin at one time are a row.
%%
%% A row as it is kept has a fixed size, the number of its point, and a checksum: one that was written in part, or is of
%% the round before, is none. A node has so many series at most, {@link columns/0}. Numbers have 24 bits there.
-module(atoll_watch_window).

-export([all/0, find/1, step/1, points/1, columns/0, base/0, slot/2, parts/2, ended/2]).
-export([measured/3, joined/1, together/1, file_size/0, place/2, region/1, encode/2, decode/2, slot_of/1]).

-export_type([id/0, slot/0, cell/0, row/0]).

-type id() :: 'quarter' | hour | day | week | month.
%% Of a window: a time by the width of its points.
-type slot() :: integer().
-type cell() :: {Measurements :: pos_integer(), Average :: float(), Min :: float(), Max :: float()}.
-type row() :: #{Column :: non_neg_integer() => cell()}.

-define(COLUMNS, 240).
-define(CELL, 14).
-define(HEAD, 16).
-define(ROW, (?HEAD + ?COLUMNS * ?CELL)).
-define(MOST, 16#ffff).
%% Of 32 bits.
-define(HIGHEST, 3.4028234e38).

%% Window, milliseconds of a point, points.
-define(WINDOWS, [{quarter, 5000, 180}, {hour, 20000, 180}, {day, 300000, 288}, {week, 1800000, 336}, {month, 7200000, 372}]).

%% @doc All windows, the narrowest first.
-spec all() -> [id()].
all() -> [Window || {Window, _, _} <- ?WINDOWS].

%% @doc A window by the name that people write.
-spec find(binary()) -> {ok, id()} | error.
find(<<"15min">>) -> {ok, quarter};
find(Name) ->
    case [Window || Window <- tl(all()), atom_to_binary(Window) =:= Name] of
        [Window] -> {ok, Window};
        [] -> error
    end.

%% @doc How wide a point is, in milliseconds.
-spec step(id()) -> pos_integer().
step(Window) -> element(2, lists:keyfind(Window, 1, ?WINDOWS)).

%% @doc How many points there are.
-spec points(id()) -> pos_integer().
points(Window) -> element(3, lists:keyfind(Window, 1, ?WINDOWS)).

%% @doc How many series a node has at most.
-spec columns() -> pos_integer().
columns() -> ?COLUMNS.

%% @doc The narrowest window: what is measured goes there.
-spec base() -> id().
base() -> hd(all()).

%% @doc Which point a time belongs to.
-spec slot(id(), TimeMs :: integer()) -> slot().
slot(Window, Ms) -> floor_div(Ms, step(Window)).

floor_div(A, B) when A >= 0 -> A div B;
floor_div(A, B) -> -((B - 1 - A) div B).

%% @doc The points of the window before it of which a point is made.
-spec parts(id(), slot()) -> none | {id(), First :: slot(), Last :: slot()}.
parts(Window, Slot) ->
    case lists:takewhile(fun(Is) -> Is =/= Window end, all()) of
        [] -> none;
        Narrower ->
            Of = lists:last(Narrower),
            Each = step(Window) div step(Of),
            {Of, Slot * Each, Slot * Each + Each - 1}
    end.

%% @doc Which points of the wider windows are over when a point of the narrowest one follows another, those of
%% narrow windows first.
-spec ended(slot(), slot()) -> [{id(), slot()}].
ended(Before, Now) ->
    [{Window, Was} || Window <- tl(all()), Was <- [slot(Window, Before * step(base()))], Was =/= slot(Window, Now * step(base()))].

%% @doc A row with one more measurement of a series.
-spec measured(Column :: non_neg_integer(), number(), row()) -> row().
measured(Column, Value, Row) when Column < ?COLUMNS ->
    Float = max(-?HIGHEST, min(?HIGHEST, float(Value))),
    Row#{Column => joined([{1, Float, Float, Float} | [Cell || #{Column := Cell} <- [Row]]])}.

%% @doc Of all these points one.
-spec joined([cell(), ...]) -> cell().
joined([Cell]) ->
    Cell;
joined(Cells) ->
    {Counts, _, Mins, Maxs} = lists:foldl(fun({N, A, Min, Max}, {Ns, As, Is, Xs}) -> {[N | Ns], [A | As], [Min | Is], [Max | Xs]} end, {[], [], [], []}, Cells),
    N = lists:sum(Counts),
    {min(N, ?MOST), lists:sum([A * (C / N) || {C, A, _, _} <- Cells]), lists:min(Mins), lists:max(Maxs)}.

%% @doc Of all these rows one.
-spec together([row()]) -> row().
together(Rows) ->
    Cells = lists:foldl(fun(Row, Acc) -> maps:fold(fun(Column, Cell, In) -> In#{Column => [Cell | maps:get(Column, In, [])]} end, Acc, Row) end, #{}, Rows),
    maps:map(fun(_, Several) -> joined(Several) end, Cells).

%% The file of a node

%% @doc How long it is when all rows are there.
-spec file_size() -> pos_integer().
file_size() ->
    {Begin, Size} = region(lists:last(all())),
    Begin + Size.

%% @doc Where the row of a point is, and its size at most.
-spec place(id(), slot()) -> {Position :: non_neg_integer(), Size :: pos_integer()}.
place(Window, Slot) ->
    {Begin, _} = region(Window),
    Points = points(Window),
    {Begin + ((Slot rem Points + Points) rem Points) * ?ROW, ?ROW}.

%% @doc Where the rows of a window are.
-spec region(id()) -> {Position :: non_neg_integer(), Size :: pos_integer()}.
region(Window) ->
    Before = lists:takewhile(fun({Is, _, _}) -> Is =/= Window end, ?WINDOWS),
    {lists:sum([Points || {_, _, Points} <- Before]) * ?ROW, points(Window) * ?ROW}.

%% @doc A row as it is kept; what is behind it in its place is of an earlier one, and not read.
-spec encode(slot(), row()) -> binary().
encode(Slot, Row) ->
    Columns = lists:max([0 | [Column + 1 || Column <- maps:keys(Row)]]),
    Cells = << <<(cell(maps:get(Column, Row, none)))/binary>> || Column <- lists:seq(0, Columns - 1) >>,
    Rest = <<Slot:64/signed, Columns:32, Cells/binary>>,
    <<(erlang:crc32(Rest)):32, Rest/binary>>.

cell(none) -> <<0:(8 * ?CELL)>>;
cell({N, Average, Min, Max}) -> <<N:16, Average:32/float, Min:32/float, Max:32/float>>.

%% @doc What is in the place of a row: all of it, or these columns.
-spec decode(binary(), all | [Column :: non_neg_integer()]) -> {ok, slot(), row()} | none.
decode(<<Crc:32, Slot:64/signed, Columns:32, Cells:(Columns * ?CELL)/binary, _/binary>> = Binary, Wanted) when Columns =< ?COLUMNS ->
    case erlang:crc32(binary:part(Binary, 4, ?HEAD - 4 + Columns * ?CELL)) of
        Crc when Wanted =:= all -> {ok, Slot, cells(lists:seq(0, Columns - 1), Cells)};
        Crc -> {ok, Slot, cells([Column || Column <- Wanted, Column < Columns], Cells)};
        _ -> none
    end;
decode(_, _) ->
    none.

cells(Columns, Cells) ->
    maps:from_list([
        {Column, {N, Average, Min, Max}}
     || Column <- Columns, <<N:16, Average:32/float, Min:32/float, Max:32/float>> <= binary:part(Cells, Column * ?CELL, ?CELL), N > 0
    ]).

%% @doc Of what point a row says to be, which may be wrong.
-spec slot_of(binary()) -> {ok, slot()} | none.
slot_of(<<_:32, Slot:64/signed, Columns:32, _/binary>>) when Columns > 0, Columns =< ?COLUMNS -> {ok, Slot};
slot_of(_) -> none.
