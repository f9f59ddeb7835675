%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The file of a declared network: one term, see {@link atoll_network}, with comments
%% and line breaks as in any Erlang text, and a full stop behind it.
%%
%% What is wrong with it is said in one sentence that begins with the line. Two terms are two
%% roots, which no network has. A file of more than 16 MB is none.
-module(atoll_network_file).

-export([read/1, parse/1, text/1, write/2, format_error/1]).

-export_type([error/0, line/0]).

-type line() :: pos_integer().

-type error() ::
    {file, file:posix() | badarg | terminated | system_limit}
    | {too_large, Bytes :: non_neg_integer()}
    | empty
    | {line(), not_unicode}
    | {line(), {not_a_term, unicode:chardata()}}
    | {line(), {second_root, First :: line()}}
    | {line(), no_full_stop}
    | {network, atoll_network:error(line())}.

-define(MAX_BYTES, 1 bsl 24).

%% @doc The network in this file.
-spec read(file:name_all()) -> {ok, atoll_network:network()} | {error, error()}.
read(Path) ->
    case filelib:file_size(Path) of
        Bytes when Bytes > ?MAX_BYTES ->
            {error, {too_large, Bytes}};
        _ ->
            case file:read_file(Path) of
                {ok, Text} -> parse(Text);
                {error, Reason} -> {error, {file, Reason}}
            end
    end.

%% @doc The network in this text.
-spec parse(binary()) -> {ok, atoll_network:network()} | {error, error()}.
parse(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) ->
            case erl_scan:string(Chars, 1) of
                {ok, Tokens, _} -> parse_tokens(Tokens);
                {error, {Line, Module, Why}, _} -> {error, {Line, {not_a_term, Module:format_error(Why)}}}
            end;
        {_, Before, _} ->
            {error, {1 + length([$\n || $\n <- Before]), not_unicode}}
    end.

parse_tokens([]) ->
    {error, empty};
parse_tokens(Tokens) ->
    {Term, More} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    case More of
        [] -> {error, {line_of(lists:last(Tokens)), no_full_stop}};
        [_Dot] -> parse_form(Term ++ More);
        [_Dot, Next | _] -> {error, {line_of(Next), {second_root, line_of(hd(Tokens))}}}
    end.

%% Of a token or a form.
line_of(Syntax) -> erl_anno:line(element(2, Syntax)).

parse_form(Tokens) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, [Form]} ->
            build(Form);
        {ok, [_, Form | _]} ->
            {error, {line_of(Form), {not_a_term, "a network is one term, without commas behind it"}}};
        {error, {Line, Module, Why}} ->
            {error, {Line, {not_a_term, Module:format_error(Why)}}}
    end.

%% The form knows the lines, and the network the way to what is wrong.
build(Form) ->
    try erl_parse:normalise(Form) of
        Term ->
            case atoll_network:new(Term) of
                {ok, Network} -> {ok, Network};
                {error, {Where, {twice, Node, First}}} -> {error, {network, {at(Where, Form), {twice, Node, at(First, Form)}}}};
                {error, {Where, Why}} -> {error, {network, {at(Where, Form), Why}}}
            end
    catch
        %% A variable, a call, and so on.
        error:_ -> {error, {line_of(Form), {not_a_term, "it is no plain term of atoms, tuples, lists and texts"}}}
    end.

at([], Form) -> line_of(Form);
at([N | Where], {tuple, _, Parts}) -> at(Where, nth(N, lists:last(Parts))).

nth(1, {cons, _, Sub, _}) -> Sub;
nth(N, {cons, _, _, Subs}) -> nth(N - 1, Subs);
%% Numbers in place of networks may stand as a text.
nth(_, Form) -> Form.

%% @doc The text of such a file.
-spec text(atoll_network:network()) -> iolist().
text(Network) ->
    ["%% coding: utf-8\n", tree(atoll_network:term(Network), ""), ".\n"].

tree({node, Node}, Indent) ->
    [Indent, io_lib:format("{node, ~tw}", [Node])];
tree({network, Name, Subs}, Indent) ->
    [
        Indent,
        io_lib:format("{network, ~ts, [", [name(Name)]),
        lists:join(",", [["\n", tree(Sub, ["    " | Indent])] || Sub <- Subs]),
        "]}"
    ].

name(Name) when is_list(Name) -> io_lib:write_string(Name);
name(Name) -> io_lib:format("~tp", [Name]).

%% @doc Writes it beside its place and renames it there, so that nobody reads half of it.
-spec write(file:name_all(), atoll_network:network()) -> ok | {error, error()}.
write(Path, Network) ->
    Part = unicode:characters_to_list([Path, ".part"]),
    Written =
        case file:write_file(Part, unicode:characters_to_binary(text(Network))) of
            ok -> file:rename(Part, Path);
            {error, _} = Error -> Error
        end,
    case Written of
        ok -> ok;
        {error, Reason} -> {error, {file, Reason}}
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({file, Reason}) ->
    file:format_error(Reason);
format_error({too_large, Bytes}) ->
    io_lib:format("it has ~b bytes, and ~b are the most", [Bytes, ?MAX_BYTES]);
format_error(empty) ->
    "there is no network in it";
format_error({network, {Line, {twice, Node, First}}}) ->
    io_lib:format("line ~b: the node ~tw stands in the network twice, first in line ~b", [Line, Node, First]);
format_error({network, {Line, Why}}) ->
    io_lib:format("line ~b: ~ts", [Line, atoll_network:format_why(Why)]);
format_error({Line, not_unicode}) ->
    io_lib:format("line ~b: what follows is not UTF-8", [Line]);
format_error({Line, {not_a_term, Why}}) ->
    io_lib:format("line ~b: ~ts", [Line, Why]);
format_error({Line, {second_root, First}}) ->
    io_lib:format("line ~b: a second root begins here, and the network that begins in line ~b is to be all", [Line, First]);
format_error({Line, no_full_stop}) ->
    io_lib:format("line ~b: the network ends without a full stop", [Line]).
