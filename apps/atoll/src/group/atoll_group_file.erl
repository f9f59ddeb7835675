%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The file in which a node keeps what it knows of groups, so that it is back in
%% them after a crash although no other node is there to tell.
%%
%% There is one for each node, in a folder. It is text with one term,
%% `{atoll_groups, Version, Node, Views}', and written beside its place, brought to
%% the disk, and renamed: whenever the node or the machine dies, the old one or the
%% new one is whole. What is read is checked to the last stamp, and at most 16 MB; a
%% file that is wrong is no reason not to start, since the other nodes know too.
-module(atoll_group_file).

-export([path/2, read/2, write/3, format_error/1]).
-export([encode/2, decode/2]).

-export_type([error/0]).

-type view() :: atoll_group_view:view().

-type error() ::
    file:posix()
    | badarg
    | terminated
    | system_limit
    | {too_large, Bytes :: non_neg_integer()}
    | not_a_term
    | {version, term()}
    | {of_node, term()}
    | {not_a_view, term()}.

%% The one that is written; those of version 1 had views without a floor.
-define(VERSION, 2).
-define(MAX_BYTES, 1 bsl 24).

%% @doc The file of a node.
-spec path(file:filename_all(), node()) -> file:filename_all().
path(Folder, Node) ->
    filename:join(Folder, [safe(C) || C <- atom_to_list(Node)] ++ ".groups").

safe($/) -> $_;
safe(C) -> C.

%% @doc What the node kept; nothing where there is no file.
-spec read(file:filename_all(), node()) -> {ok, [view()]} | {error, error()}.
read(Path, Node) ->
    case filelib:file_size(Path) of
        Bytes when Bytes > ?MAX_BYTES ->
            {error, {too_large, Bytes}};
        _ ->
            case file:read_file(Path) of
                {ok, Text} -> decode(Text, Node);
                {error, enoent} -> {ok, []};
                {error, _} = Error -> Error
            end
    end.

%% @doc Keeps this in place of what was kept.
-spec write(file:filename_all(), node(), [view()]) -> ok | {error, error()}.
write(Path, Node, Views) ->
    Text = unicode:characters_to_binary(encode(Node, Views)),
    case byte_size(Text) of
        Bytes when Bytes > ?MAX_BYTES -> {error, {too_large, Bytes}};
        _ -> replace(Path, Text)
    end.

replace(Path, Text) ->
    Part = unicode:characters_to_list([Path, ".part"]),
    Steps = [
        fun() -> filelib:ensure_dir(Path) end,
        fun() -> write_through(Part, Text) end,
        fun() -> file:rename(Part, Path) end
    ],
    lists:foldl(
        fun
            (Step, ok) -> Step();
            (_, {error, _} = Error) -> Error
        end,
        ok,
        Steps
    ).

write_through(Part, Text) ->
    case file:open(Part, [write, raw, binary]) of
        {ok, File} ->
            Written =
                case file:write(File, Text) of
                    ok -> file:sync(File);
                    {error, _} = Error -> Error
                end,
            case {Written, file:close(File)} of
                {ok, Closed} -> Closed;
                {Failed, _} -> Failed
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc The text of a file.
-spec encode(node(), [view()]) -> iolist().
encode(Node, Views) ->
    Plain = [atoll_group_view:to_plain(View) || View <- Views],
    io_lib:format("%% coding: utf-8~n%% The s_groups of ~tw, for its next start.~n~tp.~n", [
        Node, {atoll_groups, ?VERSION, Node, Plain}
    ]).

%% @doc What a text says, of that node.
-spec decode(binary(), node()) -> {ok, [view()]} | {error, error()}.
decode(Text, Node) ->
    case scan(Text) of
        {ok, {atoll_groups, Version, Node, Plain}} when is_list(Plain), (Version =:= 1 orelse Version =:= ?VERSION) ->
            views(Plain, []);
        {ok, {atoll_groups, Version, Other, _}} when Version =:= 1; Version =:= ?VERSION ->
            {error, {of_node, Other}};
        {ok, {atoll_groups, Version, _, _}} -> {error, {version, Version}};
        _ -> {error, not_a_term}
    end.

scan(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) ->
            case erl_scan:string(Chars) of
                {ok, Tokens, _} -> erl_parse:parse_term(Tokens);
                Error -> Error
            end;
        Error ->
            Error
    end.

views([], Views) ->
    {ok, lists:reverse(Views)};
views([Plain | Rest], Views) ->
    case atoll_group_view:from_plain(Plain) of
        {ok, View} -> views(Rest, [View | Views]);
        error -> {error, {not_a_view, Plain}}
    end;
views(Rest, _Views) ->
    {error, {not_a_view, Rest}}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({too_large, Bytes}) ->
    io_lib:format("it has ~b bytes, and ~b are the most", [Bytes, ?MAX_BYTES]);
format_error(not_a_term) ->
    "it does not hold what a node writes there";
format_error({version, Version}) ->
    io_lib:format("its version is ~tp, and this release knows ~b", [Version, ?VERSION]);
format_error({of_node, Node}) ->
    io_lib:format("it was written by ~tp", [Node]);
format_error({not_a_view, Term}) ->
    io_lib:format("~0tP is nothing that is known of a group", [Term, 12]);
format_error(Posix) ->
    file:format_error(Posix).
