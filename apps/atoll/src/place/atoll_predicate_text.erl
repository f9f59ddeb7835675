%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Conditions on attributes as people write them, on a command line for instance:
%% `mem_free > 1000000 and loadavg1 < 2'.
%%
%% ```
%% condition   = conjunction {"or" conjunction}
%% conjunction = negation {"and" negation}
%% negation    = "not" negation | "(" condition ")" | "{}" | comparison
%% comparison  = name                      the attribute is exactly true
%%             | name "is" word            ... is exactly true, false, yes or no
%%             | name operator constant
%% operator    = "=="  "="  "!="  "/="  "<"  "<="  "=<"  ">"  ">="
%%             | "eq"  "ne"  "lt"  "le"  "gt"  "ge"
%% constant    = number | word | 'atom' | "string" | "{" constants "}" | "[" constants "]"
%% '''
%% Names and words are letters, digits, `_' and `@', and begin with a letter; what is called
%% otherwise, or as a word of the language, stands in single quotes. A number may have a
%% sign, a fraction, an exponent, and underscores between its digits.
%%
%% The text gives the term that {@link atoll_predicate:new/1} takes. Names become atoms, so
%% this is for text of people who may run programs here, not for that of strangers. A
%% text has at most 10,000 characters.
-module(atoll_predicate_text).

-export([parse/1, name/1, position/2, pointer/2, format_error/1]).

-export_type([error/0]).

-type error() ::
    %% Where it is wrong, from 1 on, what should be there, and what is.
    {Position :: pos_integer(), Expected :: string(), Found :: string()}
    | {Position :: pos_integer(), why()}.

-type why() ::
    {strange, Char :: char()}
    | open_quote
    | bad_escape
    | {bad_number, string()}
    | long_name
    | long_text
    | not_text.

-type token() :: {kind(), pos_integer(), term()}.
-type kind() :: word | quoted | const | sign | mark | 'end'.

-define(MAX_CHARS, 10000).
-define(MAX_NAME, 255).
-define(WORDS, ["and", "or", "not", "is", "eq", "ne", "lt", "le", "gt", "ge"]).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_LETTER(C), (C >= $a andalso C =< $z orelse C >= $A andalso C =< $Z)).
-define(IS_WORD(C), (?IS_DIGIT(C) orelse ?IS_LETTER(C) orelse C =:= $_ orelse C =:= $@)).

%% @doc Reads a text.
-spec parse(unicode:chardata()) -> {ok, atoll_predicate:source()} | {error, error()}.
parse(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars), length(Chars) =< ?MAX_CHARS -> parse_chars(Chars);
        Chars when is_list(Chars) -> {error, {?MAX_CHARS + 1, long_text}};
        {_, Good, _} -> {error, {length(Good) + 1, not_text}}
    end.

parse_chars(Chars) ->
    try
        case condition(scan(Chars, 1, [])) of
            {Term, [{'end', _, _}]} -> {ok, Term};
            {_, [Token | _]} -> expected("\"and\", \"or\" or the end", Token)
        end
    catch
        throw:{?MODULE, Error} -> {error, Error}
    end.

%% From text to tokens

-spec scan(string(), pos_integer(), [token()]) -> [token()].
scan([], At, Tokens) ->
    lists:reverse([{'end', At, "the end"} | Tokens]);
scan([C | Rest], At, Tokens) when C =:= $\s; C =:= $\t; C =:= $\n; C =:= $\r ->
    scan(Rest, At + 1, Tokens);
scan([A, B | Rest], At, Tokens) when
    [A, B] =:= "=="; [A, B] =:= "!="; [A, B] =:= "/="; [A, B] =:= "<="; [A, B] =:= "=<"; [A, B] =:= ">="
->
    scan(Rest, At + 2, [{sign, At, [A, B]} | Tokens]);
scan([C | Rest], At, Tokens) when C =:= $=; C =:= $<; C =:= $> ->
    scan(Rest, At + 1, [{sign, At, [C]} | Tokens]);
scan([C | Rest], At, Tokens) when C =:= $(; C =:= $); C =:= ${; C =:= $}; C =:= $[; C =:= $]; C =:= $, ->
    scan(Rest, At + 1, [{mark, At, [C]} | Tokens]);
scan([$' | Rest], At, Tokens) ->
    {Chars, Length, After} = quoted($', Rest, At, 1, []),
    scan(After, At + Length, [{quoted, At, to_atom(Chars, At)} | Tokens]);
scan([$" | Rest], At, Tokens) ->
    {Chars, Length, After} = quoted($", Rest, At, 1, []),
    scan(After, At + Length, [{const, At, Chars} | Tokens]);
scan([C | _] = Chars, At, Tokens) when ?IS_DIGIT(C); C =:= $-; C =:= $+ ->
    {Text, Rest} = lists:splitwith(fun is_of_number/1, Chars),
    scan(Rest, At + length(Text), [{const, At, number(Text, At)} | Tokens]);
scan([C | _] = Chars, At, Tokens) when ?IS_LETTER(C) ->
    {Word, Rest} = lists:splitwith(fun(X) -> ?IS_WORD(X) end, Chars),
    scan(Rest, At + length(Word), [{word, At, Word} | Tokens]);
scan([C | _], At, _Tokens) ->
    throw({?MODULE, {At, {strange, C}}}).

quoted(_Quote, [], At, _Length, _Chars) ->
    throw({?MODULE, {At, open_quote}});
quoted(Quote, [Quote | Rest], _At, Length, Chars) ->
    {lists:reverse(Chars), Length + 1, Rest};
quoted(Quote, [$\\, C | Rest], At, Length, Chars) ->
    quoted(Quote, Rest, At, Length + 2, [escaped(C, At + Length) | Chars]);
quoted(Quote, [C | Rest], At, Length, Chars) ->
    quoted(Quote, Rest, At, Length + 1, [C | Chars]).

escaped(C, _At) when C =:= $\\; C =:= $'; C =:= $" -> C;
escaped($n, _At) -> $\n;
escaped($t, _At) -> $\t;
escaped(_, At) -> throw({?MODULE, {At, bad_escape}}).

to_atom(Chars, _At) when length(Chars) =< ?MAX_NAME -> list_to_atom(Chars);
to_atom(_Chars, At) -> throw({?MODULE, {At, long_name}}).

is_of_number(C) -> ?IS_WORD(C) orelse C =:= $. orelse C =:= $- orelse C =:= $+.

number(Text, At) ->
    case re:run(Text, "^([+-]?)([0-9](?:_?[0-9])*)(\\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?$", [{capture, all_but_first, list}]) of
        {match, [Sign, Whole]} ->
            signed(Sign, list_to_integer(plain(Whole)));
        {match, [Sign, Whole, Fraction]} ->
            to_float(Sign, Whole, Fraction, "0", Text, At);
        {match, [Sign, Whole, Fraction, Exponent]} ->
            to_float(Sign, Whole, Fraction, Exponent, Text, At);
        nomatch ->
            throw({?MODULE, {At, {bad_number, Text}}})
    end.

to_float(Sign, Whole, Fraction, Exponent, Text, At) ->
    Digits =
        case Fraction of
            "" -> ".0";
            _ -> Fraction
        end,
    try
        signed(Sign, list_to_float(plain(Whole) ++ Digits ++ "e" ++ Exponent))
    catch
        %% Too large for a float.
        error:badarg -> throw({?MODULE, {At, {bad_number, Text}}})
    end.

plain(Digits) -> [C || C <- Digits, C =/= $_].

signed("-", Number) -> -Number;
signed(_, Number) -> Number.

%% From tokens to the term

condition(Tokens) ->
    joined("or", 'or', fun conjunction/1, Tokens).

conjunction(Tokens) ->
    joined("and", 'and', fun negation/1, Tokens).

joined(Word, Tag, Part, Tokens) ->
    case joined_parts(Word, Part, Tokens) of
        {[One], Rest} -> {One, Rest};
        {Terms, Rest} -> {{Tag, Terms}, Rest}
    end.

joined_parts(Word, Part, Tokens) ->
    case Part(Tokens) of
        {Term, [{word, _, Word} | Rest]} ->
            {Terms, After} = joined_parts(Word, Part, Rest),
            {[Term | Terms], After};
        {Term, Rest} ->
            {[Term], Rest}
    end.

negation([{word, _, "not"} | Rest]) ->
    {Term, After} = negation(Rest),
    {{'not', Term}, After};
negation([{mark, _, "("} | Rest]) ->
    case condition(Rest) of
        {Term, [{mark, _, ")"} | After]} -> {Term, After};
        {_, [Token | _]} -> expected("\"and\", \"or\" or \")\"", Token)
    end;
negation([{mark, _, "{"}, {mark, _, "}"} | Rest]) ->
    {{}, Rest};
negation([{quoted, _, Name} | Rest]) ->
    comparison(Name, Rest);
negation([{word, At, Word} = Token | Rest]) ->
    case lists:member(Word, ?WORDS) of
        true -> expected_name(Token);
        false -> comparison(to_atom(Word, At), Rest)
    end;
negation([Token | _]) ->
    expected_name(Token).

-spec expected_name(token()) -> no_return().
expected_name(Token) ->
    expected("the name of an attribute, \"not\" or \"(\"", Token).

comparison(Name, [{word, _, "is"}, {word, _, Word} | Rest]) when
    Word =:= "true"; Word =:= "false"; Word =:= "yes"; Word =:= "no"
->
    {{Name, list_to_atom(Word)}, Rest};
comparison(_Name, [{word, _, "is"}, Token | _]) ->
    expected("true, false, yes or no", Token);
comparison(Name, [{_, _, Said} = Token | Rest] = Tokens) ->
    case op(Token) of
        none when Said =:= "and"; Said =:= "or"; Said =:= ")"; element(1, Token) =:= 'end' ->
            {{Name, true}, Tokens};
        none ->
            expected("an operator such as \"<\"", Token);
        Op ->
            {Const, After} = constant(Rest),
            {{Name, Op, Const}, After}
    end.

op({sign, _, "=="}) -> eq;
op({sign, _, "="}) -> eq;
op({sign, _, "!="}) -> ne;
op({sign, _, "/="}) -> ne;
op({sign, _, "<"}) -> lt;
op({sign, _, "<="}) -> le;
op({sign, _, "=<"}) -> le;
op({sign, _, ">"}) -> gt;
op({sign, _, ">="}) -> ge;
op({word, _, "eq"}) -> eq;
op({word, _, "ne"}) -> ne;
op({word, _, "lt"}) -> lt;
op({word, _, "le"}) -> le;
op({word, _, "gt"}) -> gt;
op({word, _, "ge"}) -> ge;
op(_) -> none.

constant([{const, _, Const} | Rest]) ->
    {Const, Rest};
constant([{quoted, _, Atom} | Rest]) ->
    {Atom, Rest};
constant([{word, At, Word} = Token | Rest]) ->
    case lists:member(Word, ?WORDS) of
        true -> expected("a constant", Token);
        false -> {to_atom(Word, At), Rest}
    end;
constant([{mark, _, "{"} | Rest]) ->
    {Consts, After} = constants("}", Rest),
    {list_to_tuple(Consts), After};
constant([{mark, _, "["} | Rest]) ->
    constants("]", Rest);
constant([Token | _]) ->
    expected("a constant", Token).

constants(Close, [{mark, _, Close} | Rest]) ->
    {[], Rest};
constants(Close, Tokens) ->
    case constant(Tokens) of
        {Const, [{mark, _, Close} | Rest]} ->
            {[Const], Rest};
        {Const, [{mark, _, ","} | Rest]} ->
            {Consts, After} = more_constants(Close, Rest),
            {[Const | Consts], After};
        {_, [Token | _]} ->
            expected(["\",\" or \"", Close, "\""], Token)
    end.

%% After a comma there is one.
more_constants(Close, [{mark, _, Close} = Token | _]) -> expected("a constant", Token);
more_constants(Close, Tokens) -> constants(Close, Tokens).

-spec expected(iolist(), token()) -> no_return().
expected(What, {Kind, At, Said}) ->
    throw({?MODULE, {At, lists:flatten(What), found(Kind, Said)}}).

found('end', Said) -> Said;
found(quoted, Said) -> lists:flatten(io_lib:format("~0tP", [Said, 8]));
found(const, Said) -> lists:flatten(io_lib:format("~0tP", [Said, 8]));
found(_, Said) -> lists:flatten([$", Said, $"]).

%% @doc How a name is written in a text.
-spec name(atoll_predicate:name()) -> string().
name(Name) ->
    case atom_to_list(Name) of
        [C | Rest] = Word when ?IS_LETTER(C) ->
            case lists:all(fun(X) -> ?IS_WORD(X) end, Rest) andalso not lists:member(Word, ?WORDS) of
                true -> Word;
                false -> in_quotes(Word)
            end;
        Chars ->
            in_quotes(Chars)
    end.

in_quotes(Chars) ->
    [$'] ++ lists:append([escape(C) || C <- Chars]) ++ [$'].

escape(C) when C =:= $\\; C =:= $' -> [$\\, C];
escape(C) -> [C].

%% @doc Where a text that can be read first speaks of this attribute.
-spec position(atoll_predicate:name(), unicode:chardata()) -> {ok, pos_integer()} | none.
position(Name, Text) ->
    position(Name, "and", scan(chars(Text), 1, [])).

%% Where a comparison begins there is a name; elsewhere the same word is a constant.
position(Name, Before, [{Kind, At, Said} | Tokens]) ->
    IsName = Kind =:= quoted andalso Said =:= Name orelse Kind =:= word andalso Said =:= name(Name),
    case IsName andalso lists:member(Before, ["and", "or", "not", "("]) of
        true -> {ok, At};
        false -> position(Name, Said, Tokens)
    end;
position(_Name, _Before, []) ->
    none.

%% @doc The line of the text in which the error is, or this position, and under it a line with
%% a caret there.
-spec pointer(unicode:chardata(), error() | pos_integer()) -> unicode:chardata().
pointer(Text, Error) when is_tuple(Error) ->
    pointer(Text, element(1, Error));
pointer(Text, At) ->
    Before = lists:sublist(chars(Text), At - 1),
    Start = length(Before) - length(lists:takewhile(fun(C) -> C =/= $\n end, lists:reverse(Before))),
    Line = lists:takewhile(fun(C) -> C =/= $\n end, lists:nthtail(Start, chars(Text))),
    [
        [in_width(C) || C <- Line],
        $\n,
        lists:duplicate(length(Before) - Start, $\s),
        $^
    ].

chars(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) -> Chars;
        {_, Good, _} -> Good
    end.

%% As wide as what stands under it.
in_width($\t) -> $\s;
in_width(C) -> C.

%% @doc One sentence for an error, that says where.
-spec format_error(error()) -> unicode:chardata().
format_error({At, Expected, Found}) ->
    io_lib:format("at character ~b there is ~ts where ~ts should be", [At, Found, Expected]);
format_error({At, {strange, Char}}) ->
    io_lib:format("at character ~b there is ~ts, which means nothing here", [At, [Char]]);
format_error({At, open_quote}) ->
    io_lib:format("the quote at character ~b is never closed", [At]);
format_error({At, bad_escape}) ->
    io_lib:format("at character ~b a backslash stands before what needs none", [At]);
format_error({At, {bad_number, Text}}) ->
    io_lib:format("at character ~b there is ~ts, which is no number that can be read", [At, Text]);
format_error({At, long_name}) ->
    io_lib:format("the name at character ~b is longer than ~b characters", [At, ?MAX_NAME]);
format_error({_At, long_text}) ->
    io_lib:format("the condition is longer than ~b characters", [?MAX_CHARS]);
format_error({At, not_text}) ->
    io_lib:format("at character ~b there is no text any more", [At]).
