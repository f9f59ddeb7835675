%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The last deltas of a replica, numbered, for neighbours that have not acknowledged them yet.
%%
%% Bounded by number and by bytes: the oldest are forgotten, and counted. A neighbour that lacks one of those is told so
%% (`gone'), and gets the state in place of it.
-module(atoll_crdt_buffer).

-export([new/2, add/4, newest/1, since/3, acknowledged/2, figures/1]).

-export_type([buffer/0, number_of/0]).

-type number_of() :: non_neg_integer().
%% Deltas are numbered from 1.

-record(buffer, {
    max :: pos_integer(),
    max_bytes :: pos_integer(),
    newest = 0 :: number_of(),
    %% The newest of those that are here no more.
    before = 0 :: number_of(),
    entries = queue:new() :: queue:queue({number_of(), Name :: term(), atoll_crdt:crdt(), From :: node(), Bytes :: pos_integer()}),
    bytes = 0 :: non_neg_integer(),
    forgotten = 0 :: non_neg_integer()
}).

-opaque buffer() :: #buffer{}.

%% @doc Without deltas, for so many and so many bytes at most.
-spec new(Max :: pos_integer(), MaxBytes :: pos_integer()) -> buffer().
new(Max, MaxBytes) -> #buffer{max = Max, max_bytes = MaxBytes}.

%% @doc Keeps a delta of an object, with the node from which it came.
-spec add(Name :: term(), atoll_crdt:crdt(), From :: node(), buffer()) -> buffer().
add(Name, Delta, From, #buffer{newest = Newest, entries = Entries, bytes = Bytes} = Buffer) ->
    Size = atoll_crdt:bytes(Delta),
    Entry = {Newest + 1, Name, Delta, From, Size},
    bound(Buffer#buffer{newest = Newest + 1, entries = queue:in(Entry, Entries), bytes = Bytes + Size}).

bound(#buffer{newest = Newest, before = Before, max = Max, bytes = Bytes, max_bytes = MaxBytes, forgotten = Forgotten} = Buffer) ->
    case Newest - Before > Max orelse Bytes > MaxBytes of
        true -> bound(drop(Buffer#buffer{forgotten = Forgotten + 1}));
        false -> Buffer
    end.

drop(#buffer{entries = Entries0, bytes = Bytes} = Buffer) ->
    {{value, {Number, _, _, _, Size}}, Entries} = queue:out(Entries0),
    Buffer#buffer{before = Number, entries = Entries, bytes = Bytes - Size}.

%% @doc The number of the newest one; 0 where there never was one.
-spec newest(buffer()) -> number_of().
newest(#buffer{newest = Newest}) -> Newest.

%% @doc What has come after that number, but for what came from that node: of each object one delta.
-spec since(number_of(), But :: node(), buffer()) -> {ok, [{Name :: term(), atoll_crdt:crdt()}]} | gone.
since(Number, _, #buffer{before = Before}) when Number < Before ->
    gone;
since(Number, But, #buffer{entries = Entries}) ->
    Joined = queue:fold(
        fun
            ({N, Name, Delta, From, _}, Acc) when N > Number, From =/= But ->
                case Acc of
                    #{Name := Earlier} -> Acc#{Name := atoll_crdt:join(Earlier, Delta)};
                    #{} -> Acc#{Name => Delta}
                end;
            (_, Acc) ->
                Acc
        end,
        #{},
        Entries
    ),
    {ok, lists:sort(maps:to_list(Joined))}.

%% @doc Nobody needs those up to that number any more.
-spec acknowledged(number_of(), buffer()) -> buffer().
acknowledged(Number, #buffer{before = Before, newest = Newest} = Buffer) when Before < Number, Before < Newest ->
    acknowledged(Number, drop(Buffer));
acknowledged(_, Buffer) ->
    Buffer.

%% @doc How many there are, their bytes, and how many were forgotten.
-spec figures(buffer()) -> #{buffered | buffered_bytes | forgotten := non_neg_integer()}.
figures(#buffer{newest = Newest, before = Before, bytes = Bytes, forgotten = Forgotten}) ->
    #{buffered => Newest - Before, buffered_bytes => Bytes, forgotten => Forgotten}.
