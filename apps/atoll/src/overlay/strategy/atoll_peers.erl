%% SPDX-License-Identifier: Apache-2.0
%% @doc What a strategy holds of the other nodes: which links are up, which it
%% wants, and who agrees to be a neighbour. Pure data, with the effects that its
%% changes have; a strategy says what it offers to whom, and this module does the
%% talking and the telling.
%%
%% Each end of a link has an offer for the other: `false', or any other term. It
%% says it in a hello when the link comes up (unless it is `false') and whenever it
%% changes; a hello that comes before ours was said is answered. Under the rule
%% `both' two nodes are neighbours while the link is up and neither offer is
%% `false'; under `either', while one of them is not.
%%
%% Promised: of each node neighbour_up and neighbour_down alternate, and when the
%% links are quiet and no hello was lost both ends say the same. A lost hello is
%% found in two ways: who offers and has heard no offer asks again every few
%% seconds, and who is told that it is a stranger to its neighbour asks at once
%% ({@link ask/2}). Not promised: that without failure detection an end which did
%% not hear of the withdrawal of an offer finds out before the link is down.
%%
%% A hello may come before the news of its link, and is kept then: of the last hundred
%% nodes, those before them are forgotten and counted.
-module(atoll_peers).

-export([new/2, take/1, emit/2]).
-export([up/2, down/2, heard/4, ask/2, remind/1]).
-export([want/2, unwant/2, offer/3]).
-export([neighbours/1, is_neighbour/2, count/1, is_up/2, offered/2, heard/1, wanted/1, summary/1]).

-export_type([peers/0, rule/0, hello/0, offer/0]).

-type rule() :: both | either.

-type offer() :: false | term().

-type hello() :: {hello, Answer :: boolean(), offer()}.
%% Whether an answer is due, and what the sender offers.

-record(peer, {
    up = false :: boolean(),
    wanted = false :: boolean(),
    mine = false :: offer(),
    %% The last offer heard since the link was down.
    theirs = unknown :: unknown | offer(),
    %% Whether our offer was said since then.
    told = false :: boolean()
}).

-record(peers, {
    rule :: rule(),
    remind_ms :: pos_integer(),
    table = #{} :: #{node() => #peer{}},
    neighbours = 0 :: non_neg_integer(),
    %% Without a link, and yet heard, the last one first; at most ?EARLY_MAX.
    early = [] :: [node()],
    %% Those whose hello was forgotten for others.
    dropped = 0 :: non_neg_integer(),
    %% Whether the timer `hello' runs.
    reminding = false :: boolean(),
    %% Newest first, until they are taken.
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque peers() :: #peers{}.

-define(EARLY_MAX, 100).

%% @doc Nobody, and how soon a hello that was not answered is said again.
-spec new(rule(), RemindMs :: pos_integer()) -> peers().
new(Rule, RemindMs) ->
    #peers{rule = Rule, remind_ms = RemindMs}.

%% @doc The effects since they were last taken, in their order.
-spec take(peers()) -> {peers(), [atoll_protocol:effect()]}.
take(#peers{effects = Effects} = Peers) ->
    {Peers#peers{effects = []}, lists:reverse(Effects)}.

%% @doc One more effect, after those there are.
-spec emit(atoll_protocol:effect(), peers()) -> peers().
emit(Effect, #peers{effects = Effects} = Peers) ->
    Peers#peers{effects = [Effect | Effects]}.

%% What happens

%% @doc The link is up.
-spec up(node(), peers()) -> peers().
up(Node, Peers0) ->
    Peers = in_time(Node, Peers0),
    case get(Node, Peers) of
        #peer{up = true} -> Peers;
        #peer{mine = false} = Peer -> put(Node, Peer#peer{up = true}, lost, Peers);
        Peer -> put(Node, Peer#peer{up = true, told = true}, lost, say(Node, false, Peer, Peers))
    end.

%% @doc The link is down, or of no use; what was heard over it is forgotten.
-spec down(node(), peers()) -> peers().
down(Node, Peers0) ->
    Peers = in_time(Node, Peers0),
    Peer = get(Node, Peers),
    put(Node, Peer#peer{up = false, theirs = unknown, told = false}, lost, Peers).

%% @doc The peer said hello. What the strategy has had said to it in the same event is
%% an answer.
-spec heard(node(), Answer :: boolean(), offer(), peers()) -> peers().
heard(Node, Answer, Theirs, Peers) ->
    case get(Node, Peers) of
        #peer{up = true} = Peer -> heard(Node, Answer, Theirs, Peer, Peers);
        #peer{up = false} = Peer -> early(Node, heard(Node, Answer, Theirs, Peer, Peers))
    end.

heard(Node, Answer, Theirs, #peer{told = Told} = Peer, Peers0) ->
    case (Answer andalso not is_said(Node, Peer, Peers0)) orelse (not Told andalso Theirs =/= false) of
        true ->
            Peers = put(Node, Peer#peer{theirs = Theirs, told = true}, dropped, Peers0),
            say(Node, false, Peer, Peers);
        false ->
            put(Node, Peer#peer{theirs = Theirs}, dropped, Peers0)
    end.

is_said(Node, #peer{mine = Mine}, #peers{effects = Effects}) ->
    lists:member({send, Node, {hello, false, Mine}}, Effects).

early(Node, #peers{early = Early0, dropped = Dropped} = Peers) ->
    Others = lists:delete(Node, Early0),
    case lists:split(min(length(Others), ?EARLY_MAX - 1), Others) of
        {Early, []} ->
            Peers#peers{early = [Node | Early]};
        {Early, [Oldest]} ->
            Peer = get(Oldest, Peers),
            Bounded = Peers#peers{early = [Node | Early], dropped = Dropped + 1},
            put(Oldest, Peer#peer{theirs = unknown, told = false}, dropped, Bounded)
    end.

in_time(_Node, #peers{early = []} = Peers) ->
    Peers;
in_time(Node, #peers{early = Early} = Peers) ->
    Peers#peers{early = lists:delete(Node, Early)}.

%% @doc Says hello and asks for the peer's: one of the two may have missed
%% something. Without a link there is nothing to ask.
-spec ask(node(), peers()) -> peers().
ask(Node, Peers) ->
    case get(Node, Peers) of
        #peer{up = true} = Peer -> put(Node, Peer#peer{told = true}, dropped, say(Node, true, Peer, Peers));
        #peer{} -> Peers
    end.

%% @doc The timer `hello': asks all from whom an offer is awaited.
-spec remind(peers()) -> peers().
remind(#peers{rule = Rule, table = Table} = Peers) ->
    Awaited = lists:sort([Node || {Node, Peer} <- maps:to_list(Table), is_awaited(Rule, Peer)]),
    lists:foldl(fun ask/2, Peers#peers{reminding = false}, Awaited).

%% What the strategy decides

%% @doc This link is to be.
-spec want(node(), peers()) -> peers().
want(Node, Peers) ->
    case get(Node, Peers) of
        #peer{wanted = true} -> Peers;
        Peer -> put(Node, Peer#peer{wanted = true}, dropped, emit({want, Node}, Peers))
    end.

%% @doc This link need not be.
-spec unwant(node(), peers()) -> peers().
unwant(Node, Peers) ->
    case get(Node, Peers) of
        #peer{wanted = false} -> Peers;
        Peer -> put(Node, Peer#peer{wanted = false}, dropped, emit({unwant, Node}, Peers))
    end.

%% @doc What this node offers to that one from now on.
-spec offer(node(), offer(), peers()) -> peers().
offer(Node, Mine, Peers) ->
    case get(Node, Peers) of
        #peer{mine = Mine} ->
            Peers;
        #peer{up = true} = Peer0 ->
            Peer = Peer0#peer{mine = Mine, told = true},
            put(Node, Peer, dropped, say(Node, false, Peer, Peers));
        Peer ->
            put(Node, Peer#peer{mine = Mine, told = false}, dropped, Peers)
    end.

%% What is known

%% @doc In the order of their names.
-spec neighbours(peers()) -> [node()].
neighbours(#peers{rule = Rule, table = Table}) ->
    lists:sort([Node || {Node, Peer} <- maps:to_list(Table), is_agreed(Rule, Peer)]).

%% @doc Whether it is one.
-spec is_neighbour(node(), peers()) -> boolean().
is_neighbour(Node, #peers{rule = Rule} = Peers) ->
    is_agreed(Rule, get(Node, Peers)).

%% @doc How many neighbours there are.
-spec count(peers()) -> non_neg_integer().
count(#peers{neighbours = Count}) ->
    Count.

%% @doc Whether the link is up.
-spec is_up(node(), peers()) -> boolean().
is_up(Node, Peers) ->
    (get(Node, Peers))#peer.up.

%% @doc What this node offers to that one.
-spec offered(node(), peers()) -> offer().
offered(Node, Peers) ->
    (get(Node, Peers))#peer.mine.

%% @doc Those that offer, in the order of their names.
-spec heard(peers()) -> [node()].
heard(#peers{table = Table}) ->
    lists:sort([Node || {Node, #peer{theirs = Theirs}} <- maps:to_list(Table), is_offer(Theirs)]).

%% @doc The nodes with which a link is to be, in the order of their names.
-spec wanted(peers()) -> [node()].
wanted(#peers{table = Table}) ->
    lists:sort([Node || {Node, #peer{wanted = true}} <- maps:to_list(Table)]).

%% @doc For people: from how many nodes there is a hello without a link, and of how many
%% it was forgotten for others.
-spec summary(peers()) -> #{early | dropped => non_neg_integer()}.
summary(#peers{early = Early, dropped = Dropped}) ->
    #{early => length(Early), dropped => Dropped}.

%% The table

get(Node, #peers{table = Table}) ->
    maps:get(Node, Table, #peer{}).

%% Why is said of a neighbour that is none any more.
put(Node, Peer, Why, #peers{rule = Rule, table = Table} = Peers) ->
    Stored =
        case Peer of
            #peer{up = false, wanted = false, mine = false, theirs = unknown} -> maps:remove(Node, Table);
            #peer{} -> Table#{Node => Peer}
        end,
    Changed = change(Node, is_agreed(Rule, get(Node, Peers)), is_agreed(Rule, Peer), Why, Peers),
    await(is_awaited(Rule, Peer), Changed#peers{table = Stored}).

change(_Node, Same, Same, _Why, Peers) ->
    Peers;
change(Node, false, true, _Why, #peers{neighbours = Count} = Peers) ->
    emit({notify, {neighbour_up, Node}}, Peers#peers{neighbours = Count + 1});
change(Node, true, false, Why, #peers{neighbours = Count} = Peers) ->
    emit({notify, {neighbour_down, Node, Why}}, Peers#peers{neighbours = Count - 1}).

await(true, #peers{reminding = false, remind_ms = Ms} = Peers) ->
    emit({timer, hello, Ms}, Peers#peers{reminding = true});
await(_, Peers) ->
    Peers.

say(Node, Answer, #peer{mine = Mine}, Peers) ->
    emit({send, Node, {hello, Answer, Mine}}, Peers).

is_agreed(both, #peer{up = Up, mine = Mine, theirs = Theirs}) ->
    Up andalso Mine =/= false andalso is_offer(Theirs);
is_agreed(either, #peer{up = Up, mine = Mine, theirs = Theirs}) ->
    Up andalso (Mine =/= false orelse is_offer(Theirs)).

%% Who refuses may have missed our offer, or we its own.
is_awaited(both, #peer{up = Up, mine = Mine, theirs = Theirs}) ->
    Up andalso Mine =/= false andalso not is_offer(Theirs);
is_awaited(either, #peer{up = Up, mine = Mine, theirs = Theirs}) ->
    Up andalso Mine =/= false andalso Theirs =:= unknown.

is_offer(Theirs) ->
    Theirs =/= unknown andalso Theirs =/= false.
