%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Messages that were announced and have not come, and who announced them.
%%
%% After a while ({@link due/3}) one of the announcers is to be asked, the one with the
%% shortest way first, as it will be the parent; after another while the next, until the message comes or nobody is left to ask.
%%
%% Bounded: an announcement too many is dropped and counted. The exchange of digests
%% finds the message later.
-module(atoll_plumtree_missing).

-export([new/2, announced/5, came/2, due/3, lost/2, size/1, dropped/1, unanswered/1]).

-export_type([missing/0, id/0]).

-type id() :: {node(), atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq()}.

-record(missing, {
    max :: pos_integer(),
    wait_ms :: pos_integer(),
    %% Who can still be asked, those over whom it comes in the fewest hops first.
    announcers = #{} :: #{id() => [{Hops :: pos_integer(), node()}]},
    %% When each is looked at next, the earliest first, as all wait equally long. One
    %% that came meanwhile stays here until then, so this is the longer of the two.
    queue = queue:new() :: queue:queue({atoll_protocol:now_ms(), id()}),
    length = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer(),
    unanswered = 0 :: non_neg_integer()
}).

-opaque missing() :: #missing{}.

%% @doc Nothing is missing; at most `Max' messages may be.
-spec new(Max :: pos_integer(), WaitMs :: pos_integer()) -> missing().
new(Max, WaitMs) ->
    #missing{max = Max, wait_ms = WaitMs}.

%% @doc A message that was not seen is announced. Says after how many milliseconds to
%% look, if a look is not under way.
-spec announced(id(), node(), Hops :: pos_integer(), atoll_protocol:now_ms(), missing()) ->
    {waiting | {look_in, pos_integer()}, missing()}.
announced(Id, From, Hops, Now, #missing{announcers = Announcers, length = Length} = Missing) ->
    case Announcers of
        #{Id := Known} ->
            Others = lists:keydelete(From, 2, Known),
            {waiting, Missing#missing{announcers = Announcers#{Id := lists:merge(Others, [{Hops, From}])}}};
        #{} when Length >= Missing#missing.max ->
            {waiting, Missing#missing{dropped = Missing#missing.dropped + 1}};
        #{} ->
            Queued = wait(Now, Id, Missing#missing{announcers = Announcers#{Id => [{Hops, From}]}}),
            case Length of
                0 -> {{look_in, Missing#missing.wait_ms}, Queued};
                _ -> {waiting, Queued}
            end
    end.

wait(Now, Id, #missing{wait_ms = Ms, queue = Queue, length = Length} = Missing) ->
    Missing#missing{queue = queue:in({Now + Ms, Id}, Queue), length = Length + 1}.

%% @doc A message came.
-spec came(id(), missing()) -> missing().
came(_Id, #missing{announcers = Announcers} = Missing) when map_size(Announcers) =:= 0 ->
    Missing;
came(Id, #missing{announcers = Announcers} = Missing) ->
    Missing#missing{announcers = maps:remove(Id, Announcers)}.

%% @doc Whom to ask now, for which messages, and after how many milliseconds to look
%% again. For all messages of one sender that one neighbour has announced, the same is
%% asked, so that no more links than needed become eager.
-spec due(fun((Root :: node(), [node()]) -> node()), atoll_protocol:now_ms(), missing()) ->
    {[{{node(), Root :: node()}, [id()]}], nothing | {look_in, pos_integer()}, missing()}.
due(Choose, Now, Missing) ->
    due(Choose, Now, [], Missing).

due(Choose, Now, Asked, #missing{queue = Queue, announcers = Announcers, length = Length} = Missing) ->
    case queue:peek(Queue) of
        empty ->
            {in_order(Asked), nothing, Missing};
        {value, {At, {Root, _, _} = Id}} ->
            Rest = Missing#missing{queue = queue:drop(Queue), length = Length - 1},
            case Announcers of
                #{} when not is_map_key(Id, Announcers) ->
                    due(Choose, Now, Asked, Rest);
                #{} when At > Now ->
                    {in_order(Asked), {look_in, At - Now}, Missing};
                #{Id := []} ->
                    Unanswered = Missing#missing.unanswered + 1,
                    Less = Rest#missing{announcers = maps:remove(Id, Announcers), unanswered = Unanswered},
                    due(Choose, Now, Asked, Less);
                #{Id := Known} ->
                    Node = choose(Choose, Root, [N || {_, N} <- Known], Asked),
                    Left = lists:keydelete(Node, 2, Known),
                    Again = wait(Now, Id, Rest#missing{announcers = Announcers#{Id := Left}}),
                    due(Choose, Now, ask({Node, Root}, Id, Asked), Again)
            end
    end.

choose(Choose, Root, Nodes, Asked) ->
    case [Node || {{Node, R}, _} <- Asked, R =:= Root, lists:member(Node, Nodes)] of
        [Node | _] -> Node;
        [] -> Choose(Root, Nodes)
    end.

ask(Key, Id, Asked) ->
    case lists:keyfind(Key, 1, Asked) of
        {Key, Ids} -> lists:keyreplace(Key, 1, Asked, {Key, [Id | Ids]});
        false -> Asked ++ [{Key, [Id]}]
    end.

in_order(Asked) ->
    [{Key, lists:reverse(Ids)} || {Key, Ids} <- Asked].

%% @doc A neighbour is gone: it cannot be asked.
-spec lost(node(), missing()) -> missing().
lost(_Node, #missing{announcers = Announcers} = Missing) when map_size(Announcers) =:= 0 ->
    Missing;
lost(Node, #missing{announcers = Announcers} = Missing) ->
    Missing#missing{announcers = maps:map(fun(_Id, Known) -> lists:keydelete(Node, 2, Known) end, Announcers)}.

%% @doc How many messages are missing.
-spec size(missing()) -> non_neg_integer().
size(#missing{announcers = Announcers}) ->
    map_size(Announcers).

%% @doc How many announcements were dropped because the table was full.
-spec dropped(missing()) -> non_neg_integer().
dropped(#missing{dropped = Dropped}) ->
    Dropped.

%% @doc How many messages none of their announcers has sent.
-spec unanswered(missing()) -> non_neg_integer().
unanswered(#missing{unanswered = Unanswered}) ->
    Unanswered.
