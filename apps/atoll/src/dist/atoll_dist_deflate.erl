%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Compression of what a channel writes, a batch at a time, with zlib.
%%
%% Each batch is compressed by itself, so that what is read needs nothing that was read before. A
%% batch that is too small, or so large that a peer would have to trust its size, goes as
%% it is; and so does one that would not become an eighth smaller. After such a one the next
%% ones are not tried: one, then two, at last 64, till one pays again. So what is compressed
%% already costs a try in 64.
%%
%% What is read is inflated no further than it says that it is large, and not at all if it says more than
%% {@link max/0}: who sends a kilobyte cannot have more memory than that taken for it.
-module(atoll_dist_deflate).

-export([new/1, batch/2, inflate/2, pays/1, max/0]).

-export_type([deflate/0]).

-record(deflate, {
    stream :: zlib:zstream(),
    %% How many batches more are not tried, and after the next one that does not pay.
    skip = 0 :: non_neg_integer(),
    rest = 1 :: pos_integer()
}).

%% Belongs to the process that has made it.
-opaque deflate() :: #deflate{}.

-define(MIN, 512).
-define(MAX, 1048576).
-define(MAX_REST, 64).
%% Raw deflate: TCP has a checksum, and a frame its length.
-define(WINDOW, -15).

%% @doc Compression of that level.
-spec new(1..9) -> deflate().
new(Level) ->
    Stream = zlib:open(),
    ok = zlib:deflateInit(Stream, Level, deflated, ?WINDOW, 8, default),
    #deflate{stream = Stream}.

%% @doc Whether a batch of so many bytes may become smaller.
-spec pays(non_neg_integer()) -> boolean().
pays(Bytes) -> Bytes >= ?MIN andalso Bytes =< ?MAX.

%% @doc How many bytes may be inflated out of a frame.
-spec max() -> pos_integer().
max() -> ?MAX.

%% @doc A batch made smaller, with how large it was; `as_it_is' where that does not pay.
-spec batch(iodata(), deflate()) -> {{Size :: pos_integer(), iodata()} | as_it_is, deflate()}.
batch(_Data, #deflate{skip = Skip} = Deflate) when Skip > 0 ->
    {as_it_is, Deflate#deflate{skip = Skip - 1}};
batch(Data, #deflate{stream = Stream, rest = Rest} = Deflate) ->
    case iolist_size(Data) of
        Size when Size < ?MIN; Size > ?MAX ->
            {as_it_is, Deflate};
        Size ->
            Small = zlib:deflate(Stream, Data, finish),
            ok = zlib:deflateReset(Stream),
            case 8 * iolist_size(Small) =< 7 * Size of
                true -> {{Size, Small}, Deflate#deflate{rest = 1}};
                false -> {as_it_is, Deflate#deflate{skip = Rest, rest = min(?MAX_REST, 2 * Rest)}}
            end
    end.

%% @doc What was made smaller, if it is exactly so large as it says.
-spec inflate(Size :: non_neg_integer(), binary()) -> {ok, binary()} | error.
inflate(Size, _Small) when Size > ?MAX ->
    error;
inflate(Size, Small) ->
    Stream = zlib:open(),
    ok = zlib:inflateInit(Stream, ?WINDOW),
    try
        whole(zlib:safeInflate(Stream, Small), Stream, Size, [])
    catch
        error:data_error -> error
    after
        %% What is left of it is collected with it.
        ok = zlib:close(Stream)
    end.

whole({Goes, Out}, Stream, Left, Before) ->
    case {Goes, Left - iolist_size(Out)} of
        {finished, 0} -> {ok, iolist_to_binary([Before | Out])};
        {continue, More} when More >= 0 -> whole(zlib:safeInflate(Stream, []), Stream, More, [Before | Out]);
        _ -> error
    end.
