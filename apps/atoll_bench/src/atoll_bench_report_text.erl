%% SPDX-License-Identifier: Apache-2.0
%% @doc How a report writes what it shows. Everything that comes from a file goes
%% through {@link html/1} on its way to the page.
-module(atoll_bench_report_text).

-export([html/1, number/1, time/1, percent/1, bytes/1, value/1, slug/1]).

%% @doc A text as it may stand between tags and in a quoted attribute.
-spec html(unicode:chardata()) -> iolist().
html(Text) ->
    [escape(C) || C <- unicode:characters_to_list(Text)].

escape($<) -> <<"&lt;">>;
escape($>) -> <<"&gt;">>;
escape($&) -> <<"&amp;">>;
escape($") -> <<"&quot;">>;
escape($') -> <<"&#39;">>;
%% No character that HTML forbids.
escape(C) when C < 32, C =/= $\n, C =/= $\t -> <<"\x{fffd}"/utf8>>;
escape(C) -> <<C/utf8>>.

%% @doc A number with four digits that matter, and its thousands apart.
-spec number(number()) -> binary().
number(N) when N < 0 -> <<"\x{2212}"/utf8, (number(-N))/binary>>;
number(N) when is_integer(N) -> thousands(integer_to_list(N));
number(N) when N == 0 -> <<"0">>;
number(N) when N >= 1.0e15; N < 1.0e-4 -> iolist_to_binary(io_lib:format("~.4e", [N]));
number(N) when N >= 999.95 -> thousands(integer_to_list(round(N)));
number(N) ->
    Decimals = max(0, 3 - floor(math:log10(N))),
    float_to_binary(float(N), [{decimals, Decimals}]).

thousands(Digits) ->
    {Head, Tail} = lists:split(length(Digits) rem 3, Digits),
    Groups = [G || G <- [Head | threes(Tail)], G =/= []],
    iolist_to_binary(lists:join($,, Groups)).

threes([A, B, C | Rest]) -> [[A, B, C] | threes(Rest)];
threes([]) -> [].

%% @doc A time of so many nanoseconds, in the unit that suits it.
-spec time(number()) -> binary().
time(Ns) when Ns < 1000 -> unit(Ns, <<"ns">>);
time(Ns) when Ns < 1000000 -> unit(Ns / 1.0e3, <<"\x{b5}s"/utf8>>);
time(Ns) when Ns < 1000000000 -> unit(Ns / 1.0e6, <<"ms">>);
time(Ns) -> unit(Ns / 1.0e9, <<"s">>).

unit(N, Unit) ->
    <<(number(N))/binary, "\x{a0}"/utf8, Unit/binary>>.

%% @doc A share of one.
-spec percent(number()) -> binary().
percent(Share) ->
    <<(float_to_binary(Share * 100.0, [{decimals, 1}]))/binary, "\x{a0}%"/utf8>>.

%% @doc So many bytes.
-spec bytes(non_neg_integer()) -> binary().
bytes(N) when N < 1024 -> unit(N, <<"B">>);
bytes(N) when N < 1048576 -> unit(N / 1024, <<"KiB">>);
bytes(N) when N < 1073741824 -> unit(N / 1048576, <<"MiB">>);
bytes(N) -> unit(N / 1073741824, <<"GiB">>).

%% @doc The value of a parameter, or of anything else that JSON can hold.
-spec value(atoll_bench_json:value()) -> binary().
value(Text) when is_binary(Text) -> Text;
value(N) when is_number(N) -> number(N);
value(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
value(Other) -> iolist_to_binary(atoll_bench_json:encode(Other)).

%% @doc What of a text may stand in the name of a file or of an anchor.
-spec slug(binary()) -> binary().
slug(Text) ->
    Kept = << <<(lower(C))>> || <<C>> <= Text, is_plain(C)>>,
    case binary:part(Kept, 0, min(40, byte_size(Kept))) of
        <<>> -> <<"x">>;
        Slug -> Slug
    end.

lower(C) when C >= $A, C =< $Z -> C + 32;
lower(C) -> C.

is_plain(C) ->
    (C >= $a andalso C =< $z) orelse (C >= $A andalso C =< $Z) orelse
        (C >= $0 andalso C =< $9) orelse C =:= $_ orelse C =:= $-.
