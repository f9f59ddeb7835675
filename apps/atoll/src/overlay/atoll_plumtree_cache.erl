%% @doc The last messages that a node has sent on, so that it can send them again.
%%
%% It is bounded in messages and in bytes, by the size of the payload in the
%% external format; the oldest go first, whoever sent them. The newest stays, however
%% large it is.
-module(atoll_plumtree_cache).

-export([new/2, add/5, find/4, lacking/5, size/1, bytes/1, dropped/1]).

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
    max :: pos_integer(),
    max_bytes :: pos_integer(),
    %% Of each life of each sender the messages by their number.
    lives = #{} :: #{{node(), atoll_plumtree_mark:incarnation()} => #{atoll_plumtree_mark:seq() => message()}},
    %% The same messages, each once, with their sizes, oldest first.
    order = queue:new() :: queue:queue({message(), non_neg_integer()}),
    size = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer()
}).

-opaque cache() :: #cache{}.

%% @doc An empty cache for `Max' messages of together `MaxBytes' bytes.
-spec new(pos_integer(), pos_integer()) -> cache().
new(Max, MaxBytes) ->
    #cache{max = Max, max_bytes = MaxBytes}.

%% @doc Adds a message. One that is in it already stays as it is: a sender that was
%% forgotten may be heard again with what it has sent before.
-spec add(node(), atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq(), message(), cache()) ->
    cache().
add(Root, Incarnation, Seq, Message, #cache{lives = Lives} = Cache) ->
    Life = {Root, Incarnation},
    case Lives of
        #{Life := #{Seq := _}} -> Cache;
        #{Life := Others} -> insert(Life, Others#{Seq => Message}, Message, Cache);
        #{} -> insert(Life, #{Seq => Message}, Message, Cache)
    end.

insert(Life, Messages, Message, #cache{lives = Lives, order = Order, size = Size, bytes = Bytes} = Cache) ->
    Weight = erlang:external_size(element(6, Message)),
    trim(Cache#cache{
        lives = Lives#{Life => Messages},
        order = queue:in({Message, Weight}, Order),
        size = Size + 1,
        bytes = Bytes + Weight
    }).

trim(#cache{size = Size, max = Max, bytes = Bytes, max_bytes = MaxBytes} = Cache) when
    Size > Max; Bytes > MaxBytes, Size > 1
->
    #cache{lives = Lives, order = Order0, dropped = Dropped} = Cache,
    {{value, {{gossip, Root, Incarnation, Seq, _, _}, Weight}}, Order} = queue:out(Order0),
    Life = {Root, Incarnation},
    Messages = maps:remove(Seq, maps:get(Life, Lives)),
    trim(Cache#cache{
        lives =
            case map_size(Messages) of
                0 -> maps:remove(Life, Lives);
                _ -> Lives#{Life := Messages}
            end,
        order = Order,
        size = Size - 1,
        bytes = Bytes - Weight,
        dropped = Dropped + 1
    });
trim(Cache) ->
    Cache.

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
