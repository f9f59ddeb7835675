%% SPDX-License-Identifier: Apache-2.0
%% @doc A subscriber as a value: what it must be, and made-up ones. Pure, but for the random ones.
-module(subscribers_record).

-export([keys/0, check/1, is_msisdn/1, must/1, random/1]).

-define(MAX, 999_999_999_999_999).

%% @doc The keys, in the order of the table's columns.
-spec keys() -> [atom(), ...].
keys() -> [msisdn, imsi, imei, device, settings, updated].

%% @doc Whether it is one.
-spec check(term()) -> ok | {error, {bad_subscriber, Key :: term(), Must :: string()}}.
check(Map) when is_map(Map) ->
    case {maps:keys(Map) -- keys(), [Key || Key <- keys(), not is_right(Key, maps:get(Key, Map, missing))]} of
        {[], []} -> ok;
        {[Unknown | _], _} -> {error, {bad_subscriber, Unknown, "is no key of one"}};
        {[], [Key | _]} -> {error, {bad_subscriber, Key, must(Key)}}
    end;
check(Other) ->
    {error, {bad_subscriber, Other, "is no map, as it must be"}}.

%% @doc Whether a number may be a subscriber's.
-spec is_msisdn(term()) -> boolean().
is_msisdn(N) -> is_integer(N) andalso N > 0 andalso N =< ?MAX.

is_right(msisdn, N) -> is_msisdn(N);
is_right(updated, N) -> is_integer(N) andalso N >= 0 andalso N < 1 bsl 32;
is_right(device, Text) -> is_binary(Text) andalso byte_size(Text) =< 64;
is_right(settings, Text) -> is_binary(Text) andalso byte_size(Text) =< 1024;
is_right(_, Digits) -> is_binary(Digits) andalso byte_size(Digits) =< 15 andalso lists:all(fun(C) -> C >= $0 andalso C =< $9 end, binary_to_list(Digits)).

%% @doc What the value of a key must be.
-spec must(atom()) -> string().
must(msisdn) -> "must be a whole number of 15 digits at most, above 0";
must(updated) -> "must be seconds since 1970, of 32 bits";
must(device) -> "must be a binary of 64 bytes at most";
must(settings) -> "must be a binary of 1024 bytes at most";
must(_) -> "must be a binary of 15 digits at most".

%% @doc One of a random number, 1 to the given one; what else it has hangs on the number and the time.
-spec random(pos_integer()) -> subscribers:subscriber().
random(Range) ->
    Msisdn = rand:uniform(Range),
    Digits = integer_to_binary(Msisdn),
    %% The last of them, so that no number is too long.
    Last = fun(Count) -> binary:part(Digits, {byte_size(Digits), -min(Count, byte_size(Digits))}) end,
    #{
        msisdn => Msisdn,
        imsi => <<"24001", (Last(10))/binary>>,
        imei => <<"35", (Last(13))/binary>>,
        device => <<"device-", (integer_to_binary(Msisdn rem 500))/binary>>,
        settings => <<"mms=1;wap=1;apn=internet;for=", Digits/binary>>,
        updated => erlang:system_time(second)
    }.
