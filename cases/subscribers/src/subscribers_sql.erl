%% SPDX-License-Identifier: Apache-2.0
%% @doc Subscribers as SQL. Pure.
%%
%% The driver has no prepared statements, so values stand in the text: numbers in digits, and all else in hexadecimal, of which no byte
%% can end a literal.
-module(subscribers_sql).

-export([table/0, put/1, get/1, delete/1, count/0, row/1]).

-define(COLUMNS, "msisdn, imsi, imei, device, settings, updated").

%% @doc Makes the table, unless it is there.
-spec table() -> string().
table() ->
    "CREATE TABLE IF NOT EXISTS subscriber ("
    "msisdn BIGINT UNSIGNED NOT NULL PRIMARY KEY, "
    "imsi VARBINARY(15) NOT NULL, "
    "imei VARBINARY(15) NOT NULL, "
    "device VARBINARY(64) NOT NULL, "
    "settings VARBINARY(1024) NOT NULL, "
    "updated INT UNSIGNED NOT NULL) ENGINE=InnoDB".

%% @doc Writes one, over the one that is there.
-spec put(subscribers:subscriber()) -> iolist().
put(Subscriber) ->
    [
        "INSERT INTO subscriber (" ?COLUMNS ") VALUES (",
        lists:join(", ", [literal(map_get(Key, Subscriber)) || Key <- subscribers_record:keys()]),
        ") ON DUPLICATE KEY UPDATE imsi=VALUES(imsi), imei=VALUES(imei), device=VALUES(device), settings=VALUES(settings), updated=VALUES(updated)"
    ].

%% @doc Asks for one.
-spec get(subscribers:msisdn()) -> iolist().
get(Msisdn) -> ["SELECT " ?COLUMNS " FROM subscriber WHERE msisdn=", literal(Msisdn)].

%% @doc Forgets one.
-spec delete(subscribers:msisdn()) -> iolist().
delete(Msisdn) -> ["DELETE FROM subscriber WHERE msisdn=", literal(Msisdn)].

%% @doc Asks how many there are.
-spec count() -> string().
count() -> "SELECT COUNT(*) FROM subscriber".

literal(N) when is_integer(N) -> integer_to_binary(N);
literal(Text) -> ["x'", binary:encode_hex(Text), "'"].

%% @doc The subscriber of a row, as {@link get/1} asks for it.
-spec row([binary()]) -> subscribers:subscriber().
row(Columns) ->
    maps:from_list([{Key, value(Key, Text)} || {Key, Text} <- lists:zip(subscribers_record:keys(), Columns)]).

value(Key, Text) when Key =:= msisdn; Key =:= updated -> binary_to_integer(Text);
value(_, Text) -> Text.
