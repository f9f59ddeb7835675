%% SPDX-License-Identifier: Apache-2.0
%% @doc The series of nodes on disk: for each node a file of its windows ({@link atoll_watch_window}), of a fixed size,
%% and a file that says which series each column is.
%%
%% Promised: a row is written by one write, and each has a checksum, so whenever the writer is killed,
%% everything before is readable and nothing else is read. No file is read at the start: of a node
%% that is measured again, or read, the heads of 180 rows, and the rows of points that were not over when the writer ended.
%% One process writes; any may read meanwhile. Nothing is open between two writes.
%%
%% Not promised: that the last seconds survive a loss of power.
-module(atoll_watch_series).

-export([new/2, write/4, omitted/1, forget/2, read/5, names/2, last/2, expire/2]).

-export_type([writer/0, series/0, point/0]).

-include_lib("kernel/include/file.hrl").

%% What a node has of a metric, and of which of several.
-type series() :: {Metric :: binary(), Label :: binary() | none}.
-type point() :: {TimeMs :: integer(), Average :: float(), Min :: float(), Max :: float()}.

-record(node, {
    columns :: #{series() => non_neg_integer()},
    %% The last point, and what was measured in it.
    slot :: atoll_watch_window:slot() | none,
    row = #{} :: atoll_watch_window:row(),
    %% Columns of metrics with a label.
    labelled :: non_neg_integer()
}).

-record(writer, {
    dir :: file:filename_all(),
    %% Metrics with a label have so many columns at most, so that there is room for those without.
    labelled :: pos_integer(),
    nodes = #{} :: #{node() => #node{}},
    %% Series that had no column at the last write.
    omitted = #{} :: #{node() => non_neg_integer()}
}).

-opaque writer() :: #writer{}.

%% @doc Nothing is read yet. So many series of a node may be of metrics with a label.
-spec new(file:filename_all(), Labelled :: pos_integer()) -> writer().
new(Dir, Labelled) -> #writer{dir = Dir, labelled = Labelled}.

%% @doc How many series had no column at the last write of each node.
-spec omitted(writer()) -> non_neg_integer().
omitted(#writer{omitted = Omitted}) -> maps:fold(fun(_, N, Sum) -> N + Sum end, 0, Omitted).

%% @doc A node is measured no more; what there is of it stays.
-spec forget(node(), writer()) -> writer().
forget(Node, #writer{nodes = Nodes, omitted = Omitted} = Writer) ->
    Writer#writer{nodes = maps:remove(Node, Nodes), omitted = maps:remove(Node, Omitted)}.

%% @doc Measurements of a node at a time.
-spec write(node(), Ms :: integer(), atoll_watch_metric:readings(), writer()) -> {ok, writer()} | {error, file:posix(), writer()}.
write(_Node, _Ms, Readings, Writer) when map_size(Readings) =:= 0 ->
    {ok, Writer};
write(Node, Ms, Readings, #writer{dir = Dir, nodes = Nodes, omitted = Omitted, labelled = Most} = Writer) ->
    Files = files(Dir, Node),
    Measured = [{series(Key), Value} || {Key, Value} <- maps:to_list(Readings)],
    try
        Known = case Nodes of #{Node := Is} -> Is; #{} -> opened(Files) end,
        {Named, Left} = named([Series || {Series, _} <- Measured], Most, Known, Files),
        Now = written(atoll_watch_window:slot(atoll_watch_window:base(), Ms), Measured, Named, Files),
        {ok, Writer#writer{nodes = Nodes#{Node => Now}, omitted = Omitted#{Node => Left}}}
    catch
        throw:{posix, Reason} -> {error, Reason, Writer#writer{nodes = maps:remove(Node, Nodes)}}
    end.

series({Metric, Label}) when is_atom(Label) -> {atom_to_binary(Metric), atom_to_binary(Label)};
series({Metric, Label}) -> {atom_to_binary(Metric), Label};
series(Metric) -> {atom_to_binary(Metric), none}.

written(Slot, Measured, #node{columns = Columns, slot = Before, row = Row0} = Node, Files) ->
    Same = case Slot of Before -> Row0; _ -> #{} end,
    Row = lists:foldl(fun({Series, Value}, Acc) ->
        case Columns of
            #{Series := Column} -> atoll_watch_window:measured(Column, Value, Acc);
            #{} -> Acc
        end
    end, Same, Measured),
    ok = on_file(Files, [read, write], fun(Fd) ->
        %% The one before is whole now, and so are those that it ends.
        _ = [put_row(Fd, Window, Ended, Whole) || Before =/= none, Before =/= Slot, {Window, Ended} <- atoll_watch_window:ended(Before, Slot),
                                                  Whole <- [made(Fd, Window, Ended, all, Before)], map_size(Whole) > 0],
        put_row(Fd, atoll_watch_window:base(), Slot, Row)
    end),
    Node#node{slot = Slot, row = Row}.

put_row(Fd, Window, Slot, Row) ->
    {Position, _} = atoll_watch_window:place(Window, Slot),
    done(file:pwrite(Fd, Position, atoll_watch_window:encode(Slot, Row))).

%% A row by those of the window before; the last of them, which the last measurement is in, by those
%% before that.
made(Fd, Window, Slot, Columns, Last) ->
    case atoll_watch_window:parts(Window, Slot) of
        none -> there(Fd, Window, Slot, Columns);
        {Of, First, End} ->
            Open = open(Of, Last),
            atoll_watch_window:together([
                case there(Fd, Of, Part, Columns) of
                    Row when map_size(Row) =:= 0, Part =:= Open -> made(Fd, Of, Part, Columns, Last);
                    Row -> Row
                end
             || Part <- lists:seq(First, End)
            ])
    end.

open(Window, Last) -> atoll_watch_window:slot(Window, Last * atoll_watch_window:step(atoll_watch_window:base())).

there(Fd, Window, Slot, Columns) ->
    {Position, Size} = atoll_watch_window:place(Window, Slot),
    case file:pread(Fd, Position, Size) of
        {ok, Binary} -> case atoll_watch_window:decode(Binary, Columns) of {ok, Slot, Row} -> Row; _ -> #{} end;
        eof -> #{};
        {error, Reason} -> throw({posix, Reason})
    end.

%% The columns of a node. A column has its name before anything is written into it.

opened({_, Names, Rows} = Files) ->
    case known(Names) of
        {ok, Series} ->
            {Slot, Row} = on_file(Files, [read, write], fun(Fd) ->
                case last(Fd) of
                    none -> {none, #{}};
                    Last -> {Last, there(Fd, atoll_watch_window:base(), Last, all)}
                end
            end),
            #node{columns = maps:from_list([{Is, Column} || {Column, Is} <- numbered(Series)]), slot = Slot, row = Row,
                  labelled = length([L || {_, L} <- Series, L =/= none])};
        none ->
            %% Without names it says nothing.
            _ = file:delete(Rows),
            #node{columns = #{}, slot = none, labelled = 0}
    end.

numbered(Series) -> lists:zip(lists:seq(0, length(Series) - 1), Series).

named(Measured, Most, #node{columns = Columns0, labelled = Labelled0} = Node, {_, Names, _}) ->
    New = lists:sort([{Label =/= none, Series} || {_, Label} = Series <- Measured, not is_map_key(Series, Columns0)]),
    {Columns, Labelled, Left} = lists:foldl(fun({IsLabelled, Series}, {Cs, N, Out}) ->
        case map_size(Cs) < atoll_watch_window:columns() andalso not (IsLabelled andalso N >= Most) of
            true when IsLabelled -> {Cs#{Series => map_size(Cs)}, N + 1, Out};
            true -> {Cs#{Series => map_size(Cs)}, N, Out};
            false -> {Cs, N, Out + 1}
        end
    end, {Columns0, Labelled0, 0}, New),
    if
        map_size(Columns) > map_size(Columns0) ->
            done(filelib:ensure_dir(Names)),
            done(replaced(Names, term_to_binary([Series || {_, Series} <- lists:sort([{Column, Series} || {Series, Column} <- maps:to_list(Columns)])])));
        true ->
            ok
    end,
    {Node#node{columns = Columns, labelled = Labelled}, Left}.

%% By a name of its own first: it is there as a whole or not at all.
replaced(File, Binary) ->
    New = <<File/binary, ".new">>,
    case file:write_file(New, Binary) of
        ok -> file:rename(New, File);
        {error, _} = Error -> Error
    end.

known(Names) ->
    case file:read_file(Names) of
        {ok, Binary} ->
            try binary_to_term(Binary, [safe]) of
                [_ | _] = Series -> {ok, Series};
                _ -> none
            catch error:badarg -> none
            end;
        {error, _} ->
            none
    end.

%% @doc The points of series of a node in a window, oldest first. Where nothing was measured there is none.
-spec read(file:filename_all(), node(), atoll_watch_window:id(), Now :: integer(), fun((series()) -> boolean())) -> [{series(), [point()]}].
read(Dir, Node, Window, Now, Wanted) ->
    {_, Names, _} = Files = files(Dir, Node),
    Series = case known(Names) of {ok, Known} -> Known; none -> [] end,
    case [{Column, Is} || {Column, Is} <- numbered(Series), Wanted(Is)] of
        [] -> [];
        Columns ->
            try on_file(Files, [read], fun(Fd) -> rows(Fd, Window, Now, [Column || {Column, _} <- Columns]) end) of
                Rows -> [{Is, points(Column, atoll_watch_window:step(Window), Rows)} || {Column, Is} <- Columns]
            catch
                throw:{posix, _} -> []
            end
    end.

points(Column, Step, Rows) ->
    [{Slot * Step, Average, Min, Max} || {Slot, #{Column := {_, Average, Min, Max}}} <- Rows].

rows(Fd, Window, Now, Columns) ->
    End = atoll_watch_window:slot(Window, Now),
    First = End - atoll_watch_window:points(Window) + 1,
    %% Read before the closed rows: one that is closed in between is then among these. In the other order it would be nowhere.
    Last = last(Fd),
    Closed = [Row || {Slot, _} = Row <- all_rows(Fd, Window, Columns), Slot >= First, Slot =< End],
    Open = [{Slot, made(Fd, Window, Slot, Columns, Last)} || Last =/= none, Slot <- [open(Window, Last)],
                                                             Slot >= First, Slot =< End, not lists:keymember(Slot, 1, Closed)],
    lists:keysort(1, Closed ++ Open).

all_rows(Fd, Window, Columns) ->
    {Position, Size} = atoll_watch_window:region(Window),
    {_, Each} = atoll_watch_window:place(Window, 0),
    case file:pread(Fd, Position, Size) of
        {ok, Binary} ->
            [{Slot, Row} || At <- lists:seq(0, byte_size(Binary) - 1, Each),
                            {ok, Slot, Row} <- [atoll_watch_window:decode(binary:part(Binary, At, min(Each, byte_size(Binary) - At)), Columns)]];
        eof ->
            [];
        {error, Reason} ->
            throw({posix, Reason})
    end.

%% The last point of the narrowest window.
last(Fd) ->
    Base = atoll_watch_window:base(),
    Heads = [{element(1, atoll_watch_window:place(Base, N)), 16} || N <- lists:seq(0, atoll_watch_window:points(Base) - 1)],
    case file:pread(Fd, Heads) of
        {ok, Binaries} ->
            case [Slot || Binary <- Binaries, is_binary(Binary), {ok, Slot} <- [atoll_watch_window:slot_of(Binary)]] of
                [] -> none;
                Slots -> lists:max(Slots)
            end;
        {error, Reason} -> throw({posix, Reason})
    end.

%% @doc Which series of a node are kept.
-spec names(file:filename_all(), node()) -> [series()].
names(Dir, Node) ->
    {_, Names, _} = files(Dir, Node),
    case known(Names) of {ok, Series} -> lists:sort(Series); none -> [] end.

%% @doc When the last measurement of a node was, to the width of a point.
-spec last(file:filename_all(), node()) -> none | integer().
last(Dir, Node) ->
    try on_file(files(Dir, Node), [read], fun last/1) of
        none -> none;
        Slot -> Slot * atoll_watch_window:step(atoll_watch_window:base())
    catch
        throw:{posix, _} -> none
    end.

%% @doc Removes what there is of nodes for which nothing was written since a time, in seconds since 1970.
-spec expire(file:filename(), Since :: integer()) -> Nodes :: non_neg_integer().
expire(Dir, Since) ->
    Old = [Sub || Sub <- filelib:wildcard("*", Dir), Path <- [filename:join([Dir, Sub, "windows"])],
                  {ok, #file_info{mtime = Last}} <- [file:read_file_info(Path, [{time, posix}])], Last < Since],
    lists:foreach(fun(Sub) -> file:del_dir_r(filename:join(Dir, Sub)) end, Old),
    length(Old).

files(Dir, Node) ->
    Own = filename:join(unicode:characters_to_binary(Dir), called(atom_to_binary(Node))),
    {Own, filename:join(Own, "series"), filename:join(Own, "windows")}.

%% A name may have any character, and be as long as a name of a file must not be.
called(Name) ->
    case uri_string:quote(Name) of
        Quoted when byte_size(Quoted) =< 200 -> Quoted;
        _ -> binary:encode_hex(crypto:hash(sha256, Name))
    end.

on_file({_, _, File}, Modes, Fun) ->
    case file:open(File, [raw, binary | Modes]) of
        {ok, Fd} ->
            try Fun(Fd) after file:close(Fd) end;
        {error, Reason} ->
            throw({posix, Reason})
    end.

done(ok) -> ok;
done({error, Reason}) -> throw({posix, Reason}).
