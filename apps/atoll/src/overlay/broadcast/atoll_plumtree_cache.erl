%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The last messages that a node has sent on, so that it can send them again.
%%
%% It is bounded in messages and in bytes, by the size of the payload in the
%% external format; the oldest go first, whoever sent them. But a message of this node's own stays
%% for `keep_ms', whatever others send: until somebody who did not get it can have asked
%% for it. So that there is room for others too, the own ones of that age take half of the
%% cache at most, and not more than `own_max': where one more would be beyond that the cache is full
%% for this node's own ({@link is_full/3}), which is not to send then. One is sent however large it
%% is, where no other own one is young, and the newest own one stays; so does the newest of another node, unless own young ones need the room.
-module(atoll_plumtree_cache).

-export([new/1, add/6, is_full/3, find/4, lacking/5, size/1, bytes/1, dropped/1]).

-export_type([cache/0, message/0]).

-type message() :: {
    gossip,
    Root :: node(),
    atoll_plumtree_mark:incarnation(),
    atoll_plumtree_mark:seq(),
    Hops :: pos_integer(),
    Payload :: term()
}.
%% As it is sent on; Hops are the links that it has crossed when it arrives.

-record(cache, {
    self :: node(),
    max :: pos_integer(),
    max_bytes :: pos_integer(),
    own_max :: pos_integer(),
    keep_ms :: non_neg_integer(),
    %% Of each life of each sender the messages by their number.
    lives = #{} :: #{{node(), atoll_plumtree_mark:incarnation()} => #{atoll_plumtree_mark:seq() => message()}},
    %% The same messages, each once, oldest first: those of others, and the own ones.
    others = queue:new() :: queue:queue(entry()),
    own = queue:new() :: queue:queue(entry()),
    %% The own ones of less than keep_ms.
    young = queue:new() :: queue:queue({atoll_protocol:now_ms(), non_neg_integer()}),
    young_size = 0 :: non_neg_integer(),
    young_bytes = 0 :: non_neg_integer(),
    size = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer()
}).

-type entry() :: {message(), Bytes :: non_neg_integer(), Since :: atoll_protocol:now_ms()}.

-opaque cache() :: #cache{}.

%% @doc An empty cache of the node `self'.
-spec new(#{
    self := node(), max := pos_integer(), max_bytes := pos_integer(), own_max := pos_integer(), keep_ms := non_neg_integer()
}) -> cache().
new(#{self := Self, max := Max, max_bytes := MaxBytes, own_max := OwnMax, keep_ms := KeepMs}) ->
    #cache{self = Self, max = Max, max_bytes = MaxBytes, own_max = max(1, min(OwnMax, Max div 2)), keep_ms = KeepMs}.

%% @doc Adds a message. One that is in it already stays as it is: a sender that was
%% forgotten may be heard again with what it has sent before.
-spec add(
    node(), atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq(), message(), atoll_protocol:now_ms(), cache()
) -> cache().
add(Root, Incarnation, Seq, Message, Now, #cache{lives = Lives} = Cache) ->
    Life = {Root, Incarnation},
    case Lives of
        #{Life := #{Seq := _}} -> Cache;
        #{Life := Others} -> insert(Life, Others#{Seq => Message}, Message, Now, Cache);
        #{} -> insert(Life, #{Seq => Message}, Message, Now, Cache)
    end.

insert({Root, _} = Life, Messages, Message, Now, #cache{lives = Lives, size = Size, bytes = Bytes} = Cache) ->
    Weight = erlang:external_size(element(6, Message)),
    Added = Cache#cache{lives = Lives#{Life => Messages}, size = Size + 1, bytes = Bytes + Weight},
    trim(Now, enter(Root, {Message, Weight, Now}, Added)).

enter(Self, {_, Weight, Now} = Entry, #cache{self = Self, own = Own} = Cache) ->
    #cache{young = Young, young_size = Size, young_bytes = Bytes} = Younger = grown_old(Now, Cache),
    Younger#cache{
        own = queue:in(Entry, Own),
        young = queue:in({Now, Weight}, Young),
        young_size = Size + 1,
        young_bytes = Bytes + Weight
    };
enter(_Root, Entry, #cache{others = Others} = Cache) ->
    Cache#cache{others = queue:in(Entry, Others)}.

grown_old(Now, #cache{young = Young, young_size = Size, young_bytes = Bytes, keep_ms = Ms} = Cache) ->
    case queue:peek(Young) of
        {value, {Since, Weight}} when Since + Ms =< Now ->
            grown_old(Now, Cache#cache{
                young = queue:drop(Young), young_size = Size - 1, young_bytes = Bytes - Weight
            });
        _ ->
            Cache
    end.

%% @doc Has this node no room for another message of its own, whose payload takes so many bytes?
-spec is_full(atoll_protocol:now_ms(), Bytes :: pos_integer(), cache()) -> {boolean(), cache()}.
is_full(Now, Weight, Cache) ->
    #cache{young_size = Size, own_max = Max, young_bytes = Bytes, max_bytes = MaxBytes} = Younger = grown_old(Now, Cache),
    {Size >= Max orelse Size > 0 andalso Bytes + Weight > MaxBytes div 2, Younger}.

trim(Now, #cache{size = Size, max = Max, bytes = Bytes, max_bytes = MaxBytes} = Cache) when
    Size > Max; Bytes > MaxBytes, Size > 1
->
    {{{gossip, Root, Incarnation, Seq, _, _}, Weight, _}, Less} = oldest(Now, Cache),
    #cache{lives = Lives, dropped = Dropped} = Less,
    Life = {Root, Incarnation},
    Messages = maps:remove(Seq, maps:get(Life, Lives)),
    trim(Now, Less#cache{
        lives =
            case map_size(Messages) of
                0 -> maps:remove(Life, Lives);
                _ -> Lives#{Life := Messages}
            end,
        size = Size - 1,
        bytes = Bytes - Weight,
        dropped = Dropped + 1
    });
trim(_Now, Cache) ->
    Cache.

oldest(Now, #cache{others = Others, own = Own, keep_ms = Ms} = Cache) ->
    case {queue:out(Others), queue:out(Own)} of
        {{{value, {_, _, Since}}, _}, {{value, {_, _, OwnSince} = Oldest}, Rest}} when
            OwnSince + Ms =< Now, OwnSince < Since
        ->
            {Oldest, Cache#cache{own = Rest}};
        {{{value, Oldest}, Rest}, _} ->
            {Oldest, Cache#cache{others = Rest}};
        {{empty, _}, {{value, Oldest}, Rest}} ->
            {Oldest, Cache#cache{own = Rest}}
    end.

%% @doc One message.
-spec find(node(), atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq(), cache()) ->
    {ok, message()} | error.
find(Root, Incarnation, Seq, #cache{lives = Lives}) ->
    case maps:get({Root, Incarnation}, Lives, #{}) of
        #{Seq := Message} -> {ok, Message};
        #{} -> error
    end.

%% @doc What somebody with the mark `Theirs' lacks of a sender, who is at `Ours' here:
%% at most `Max' messages, in order, and the number up to which nothing that they lack
%% is to be had here, though we are past it.
-spec lacking(node(), atoll_plumtree_mark:mark(), atoll_plumtree_mark:mark(), Max :: non_neg_integer(), cache()) ->
    {[message()], Gone :: non_neg_integer()}.
lacking(Root, {TheirLife, _, _} = Theirs0, {OurLife, OurLow, _}, Max, #cache{lives = Lives}) ->
    Theirs =
        case TheirLife of
            OurLife -> Theirs0;
            _ -> atoll_plumtree_mark:new(OurLife)
        end,
    Messages = maps:get({Root, OurLife}, Lives, #{}),
    Seqs = lists:sort([Seq || Seq <- maps:keys(Messages), not atoll_plumtree_mark:has(Seq, Theirs)]),
    Gone =
        case Seqs of
            [] -> OurLow;
            [First | _] -> min(First - 1, OurLow)
        end,
    {[maps:get(Seq, Messages) || Seq <- lists:sublist(Seqs, Max)], Gone}.

%% @doc How many messages are in it.
-spec size(cache()) -> non_neg_integer().
size(#cache{size = Size}) ->
    Size.

%% @doc How many bytes their payloads take.
-spec bytes(cache()) -> non_neg_integer().
bytes(#cache{bytes = Bytes}) ->
    Bytes.

%% @doc How many were dropped for newer ones.
-spec dropped(cache()) -> non_neg_integer().
dropped(#cache{dropped = Dropped}) ->
    Dropped.
