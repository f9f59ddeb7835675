%% SPDX-License-Identifier: Apache-2.0
%% @doc Text of Erlang terms, each with the line on which it begins. They are read, never
%% evaluated. A file of more than 1 MB is not read to its end.
-module(atoll_bench_terms).

-export([read/1, parse/1, format_error/1]).

-export_type([placed/0, error/0]).

-type placed() :: {Line :: pos_integer(), term()}.

-type error() ::
    {file, file:posix() | badarg | terminated | system_limit}
    | too_large
    | not_utf8
    | {line, pos_integer(), What :: iolist()}.

-define(MAX_BYTES, 1 bsl 20).

%% @doc The terms of a file.
-spec read(file:filename_all()) -> {ok, [placed()]} | {error, error()}.
read(Name) ->
    %% Never more than the bound, whatever the file is.
    case file:open(Name, [read, raw, binary]) of
        {ok, File} ->
            Read = file:read(File, ?MAX_BYTES + 1),
            _ = file:close(File),
            case Read of
                {ok, Bytes} when byte_size(Bytes) > ?MAX_BYTES -> {error, too_large};
                {ok, Bytes} -> parse(Bytes);
                eof -> {ok, []};
                {error, Reason} -> {error, {file, Reason}}
            end;
        {error, Reason} ->
            {error, {file, Reason}}
    end.

%% @doc The terms of a text in UTF-8.
-spec parse(binary()) -> {ok, [placed()]} | {error, error()}.
parse(Bytes) ->
    case unicode:characters_to_list(Bytes) of
        Text when is_list(Text) ->
            case erl_scan:string(Text, 1) of
                {ok, Tokens, _End} -> terms(Tokens, []);
                {error, Info, _End} -> {error, line(Info)}
            end;
        _ ->
            {error, not_utf8}
    end.

terms([], Terms) ->
    {ok, lists:reverse(Terms)};
terms([First | _] = Tokens, Terms) ->
    Line = erl_scan:line(First),
    case lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens) of
        {_Unfinished, []} ->
            {error, {line, Line, "no full stop ends the term that begins here"}};
        {Own, [Dot | Rest]} ->
            case erl_parse:parse_term(Own ++ [Dot]) of
                {ok, Term} -> terms(Rest, [{Line, Term} | Terms]);
                {error, Info} -> {error, line(Info)}
            end
    end.

line({At, Module, What}) ->
    {line, erl_anno:line(erl_anno:new(At)), Module:format_error(What)}.

%% @doc What is wrong, to be said after the name of the file.
-spec format_error(error()) -> unicode:chardata().
format_error({file, Reason}) -> file:format_error(Reason);
format_error(too_large) -> io_lib:format("it is larger than ~b bytes", [?MAX_BYTES]);
format_error(not_utf8) -> "it is not in UTF-8";
format_error({line, Line, What}) -> io_lib:format("line ~b: ~ts", [Line, What]).
