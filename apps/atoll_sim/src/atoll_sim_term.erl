%% SPDX-License-Identifier: Apache-2.0
%% @doc Terms as text: the same term gives the same bytes on every VM, and an
%% Erlang shell reads them back.
%%
%% `io_lib' does not promise that: it prints a map in the map's own order, which
%% since OTP 26 hangs on when its atoms were made. Here keys are in the order of
%% their texts. What cannot be read back (a pid, a reference, a port, a function)
%% becomes a string, which no trace of a pure protocol should hold anyway.
-module(atoll_sim_term).

-export([text/1, natural/1]).

%% @doc The text of a term, without a line break.
-spec text(term()) -> iodata().
text(Atom) when is_atom(Atom) -> atom(Atom);
text(Integer) when is_integer(Integer) -> integer_to_binary(Integer);
text(Tuple) when is_tuple(Tuple) -> [${, elements(tuple_to_list(Tuple)), $}];
text([]) -> "[]";
text(List) when is_list(List) -> list(List);
text(Float) when is_float(Float) -> float_to_binary(Float, [short]);
text(Binary) when is_binary(Binary) -> binary(Binary);
text(Map) when is_map(Map) -> map(Map);
text(Bits) when is_bitstring(Bits) -> io_lib:write(Bits);
text(Opaque) -> io_lib:write_string(lists:flatten(io_lib:write(Opaque))).

%% @doc A key by which names sort as people count: n2 before n10. Texts and
%% numbers take turns in it.
-spec natural(atom()) -> [binary() | non_neg_integer()].
natural(Atom) ->
    parts(atom_to_binary(Atom), <<>>).

parts(<<Digit, _/binary>> = Name, Text) when Digit >= $0, Digit =< $9 ->
    {Number, Rest} = digits(Name, 0),
    [Text, Number | parts(Rest, <<>>)];
parts(<<Byte, Rest/binary>>, Text) ->
    parts(Rest, <<Text/binary, Byte>>);
parts(<<>>, Text) ->
    [Text].

digits(<<Digit, Rest/binary>>, Number) when Digit >= $0, Digit =< $9 ->
    digits(Rest, 10 * Number + Digit - $0);
digits(Rest, Number) ->
    {Number, Rest}.

elements([]) -> [];
elements([Last]) -> text(Last);
elements([Term | Terms]) -> [text(Term), $, | elements(Terms)].

list(List) ->
    case ascii(List) of
        true -> io_lib:write_string(List);
        false -> [$[, tail(List), $]]
    end.

ascii([Char | Rest]) when is_integer(Char), Char >= 32, Char < 127 -> ascii(Rest);
ascii(Rest) -> Rest =:= [].

tail([Last]) -> text(Last);
tail([Term | Terms]) when is_list(Terms) -> [text(Term), $, | tail(Terms)];
tail([Term | Improper]) -> [text(Term), $|, text(Improper)].

map(Map) ->
    Pairs = lists:sort([{iolist_to_binary(text(K)), V} || {K, V} <- maps:to_list(Map)]),
    ["#{", lists:join($,, [[Key, "=>", text(Value)] || {Key, Value} <- Pairs]), $}].

binary(Binary) ->
    case plain_string(Binary) of
        true -> ["<<\"", Binary, "\">>"];
        false -> ["<<", lists:join($,, [integer_to_binary(B) || <<B>> <= Binary]), ">>"]
    end.

plain_string(<<Byte, Rest/binary>>) when Byte >= 32, Byte < 127, Byte =/= $", Byte =/= $\\ ->
    plain_string(Rest);
plain_string(Rest) ->
    Rest =:= <<>>.

atom(Atom) ->
    case atom_to_binary(Atom) of
        <<First, Rest/binary>> = Name when First >= $a, First =< $z ->
            case plain_atom(Rest) andalso not erl_scan:reserved_word(Atom) of
                true -> Name;
                false -> quoted(Atom)
            end;
        _ ->
            quoted(Atom)
    end.

plain_atom(<<Byte, Rest/binary>>) when
    Byte >= $a, Byte =< $z; Byte >= $0, Byte =< $9; Byte >= $A, Byte =< $Z; Byte =:= $_; Byte =:= $@
->
    plain_atom(Rest);
plain_atom(Rest) ->
    Rest =:= <<>>.

quoted(Atom) ->
    <<_/binary>> = unicode:characters_to_binary(io_lib:write_atom(Atom)).
