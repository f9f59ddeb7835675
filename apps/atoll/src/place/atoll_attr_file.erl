%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A file that defines attributes: one list of Erlang, of definitions as
%% {@link atoll_attr_book:definition()} says, with a full stop. A file of another version or
%% with a fault in one definition defines nothing; one of more than 1 MB is not read to its end.
-module(atoll_attr_file).

-export([read/1, format_error/1]).

-export_type([error/0]).

-type error() ::
    {file:filename_all(), file:posix() | badarg | terminated | system_limit | not_text}
    | {file:filename_all(), too_large}
    | {file:filename_all(), {line, erl_anno:location(), module(), term()}}
    | {file:filename_all(), no_term}
    | {file:filename_all(), {second_term, Line :: pos_integer()}}
    | {file:filename_all(), {definition, atoll_attr_book:error()}}.

-define(MAX_BYTES, 1 bsl 20).

%% @doc The definitions of a file.
-spec read(file:filename_all()) -> {ok, [atoll_attr_book:definition()]} | {error, error()}.
read(Path) ->
    case definitions(Path) of
        {ok, Definitions} -> {ok, Definitions};
        {error, Why} -> {error, {Path, Why}}
    end.

definitions(Path) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, File} ->
            try
                read_bounded(File)
            after
                file:close(File)
            end;
        {error, _} = Error ->
            Error
    end.

%% No more than shows that it is too large, whatever its size is said to be.
read_bounded(File) ->
    case file:read(File, ?MAX_BYTES + 1) of
        {ok, Text} when byte_size(Text) > ?MAX_BYTES -> {error, too_large};
        {ok, Text} -> text(unicode:characters_to_list(Text));
        eof -> text([]);
        {error, _} = Error -> Error
    end.

text(Chars) when is_list(Chars) ->
    case term(Chars, 1) of
        {ok, Definitions, Rest, Line} -> alone(Definitions, term(Rest, Line));
        {error, _} = Error -> Error
    end;
text(_) ->
    {error, not_text}.

alone(Definitions, {error, no_term}) ->
    case atoll_attr_book:check(Definitions) of
        ok -> {ok, Definitions};
        {error, Error} -> {error, {definition, Error}}
    end;
alone(_, {ok, _, _, Line}) ->
    {error, {second_term, Line}};
alone(_, {error, _} = Error) ->
    Error.

%% The first term of a text that begins in that line, with what follows.
term(Chars, Line) ->
    case erl_scan:tokens([], Chars, Line) of
        {done, {ok, Tokens, End}, Rest} -> parsed(erl_parse:parse_term(Tokens), Rest, End);
        {done, {eof, _}, _} -> {error, no_term};
        {done, {error, {At, Module, What}, _}, _} -> {error, {line, At, Module, What}};
        {more, More} -> unfinished(erl_scan:tokens(More, eof, Line), Line)
    end.

unfinished({done, {eof, _}, _}, _Line) ->
    {error, no_term};
unfinished({done, {ok, Tokens, End}, Rest}, _Line) ->
    case Rest of
        eof -> parsed(erl_parse:parse_term(Tokens), [], End);
        _ -> parsed(erl_parse:parse_term(Tokens), Rest, End)
    end;
unfinished({done, {error, {At, Module, What}, _}, _}, _Line) ->
    {error, {line, At, Module, What}}.

parsed({ok, Term}, Rest, Line) -> {ok, Term, Rest, Line};
parsed({error, {At, Module, What}}, _Rest, _Line) -> {error, {line, At, Module, What}}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({Path, {line, At, Module, What}}) ->
    io_lib:format("~ts, line ~b: ~ts", [Path, erl_anno:line(erl_anno:new(At)), Module:format_error(What)]);
format_error({Path, no_term}) ->
    io_lib:format("~ts holds no list of attributes that ends with a full stop", [Path]);
format_error({Path, {second_term, Line}}) ->
    io_lib:format("~ts holds more than one list of attributes, up to line ~b", [Path, Line]);
format_error({Path, {definition, Error}}) ->
    io_lib:format("~ts: ~ts", [Path, atoll_attr_book:format_error(Error)]);
format_error({Path, too_large}) ->
    io_lib:format("~ts is larger than ~b bytes", [Path, ?MAX_BYTES]);
format_error({Path, not_text}) ->
    io_lib:format("~ts is no text", [Path]);
format_error({Path, Posix}) ->
    io_lib:format("~ts cannot be read: ~ts", [Path, file:format_error(Posix)]).
