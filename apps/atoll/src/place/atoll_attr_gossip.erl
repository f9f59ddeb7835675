%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What the nodes tell each other of attributes that are asked for often, so that a
%% choice does not have to ask every node each time. Pure.
%%
%% It works like this:
%% <ol>
%% <li>Who asks for an attribute often, and takes values that are some time old, declares an
%%   interest in it, for a minute. Interests spread over the connections; who goes on
%%   asking renews its own. When nobody does, they run out everywhere and there is silence.</li>
%% <li>A node that hears of an interest evaluates the attributes concerned every
%%   `refresh_ms', and tells its row, all of them with a version: if a value has changed
%%   (a number by more than `tolerance'), and every `still_ms' anyway.</li>
%% <li>A row that is news is told on once, to `fanout' random connected nodes, `gather_ms'
%%   after it came, together with what else has come by then. Some nodes miss a row in that
%%   way, with a fanout of four one in fifty; they have the one before it, and get the next.
%%   Nothing is compared or repeated.</li>
%% </ol>
%% So a row costs each node `fanout' times its bytes, however many ask. Each table holds at
%% most `max_rows' rows, and a row that is older than three times `still_ms' is forgotten.
%%
%% The age of a row is counted by the clocks of those who hold it, each for as long as it
%% does, so clocks need not agree. The time on the way is not in it. Between two rows of a
%% node its values may have changed within the tolerance.
%%
%% Of what comes from others, a row has at most `max_interests' values and 64 KiB; one that has
%% more is no row. A node whose own is larger does not tell it, and is asked.
%%
%% Not promised: that every node has a row of every other one; that a node which lies about
%% itself or others is not believed. A node whose clock was set back while it was down begins
%% with versions that are older than those of its earlier life. Its rows are refused, and it is
%% asked, until that life's are forgotten, which takes three times `still_ms' at most: nobody
%% tells a node what its own rows were.
-module(atoll_attr_gossip).

-export([new/2, options/0, asked/3, enters/4, rows/4, interests/2, own/3, heard/3, tell/3, is_quiet/1, counts/1]).

-export_type([gossip/0, options/0, message/0, version/0]).

-type options() :: #{
    %% So many questions within so long make an interest, which lasts for so long.
    often => pos_integer(),
    often_ms => pos_integer(),
    interest_ms => pos_integer(),
    gather_ms => pos_integer(),
    refresh_ms => pos_integer(),
    still_ms => pos_integer(),
    %% In percent.
    tolerance => non_neg_integer(),
    fanout => pos_integer(),
    %% Bounds: rows, rows in a message, names of interest.
    max_rows => pos_integer(),
    max_told => pos_integer(),
    max_interests => pos_integer()
}.

-type version() :: non_neg_integer().

-type message() :: {gossip, [{atoll_predicate:name(), LeftMs :: pos_integer()}], [told()]}.

-type told() :: {node(), version(), AgeMs :: non_neg_integer(), atoll_predicate:values()}.

-record(row, {
    %% 0 for one that this node has asked for itself.
    version :: version(),
    %% When it was evaluated, by the clock of this node.
    at :: integer(),
    values :: atoll_predicate:values()
}).

-record(gossip, {
    self :: node(),
    options :: options(),
    %% How often each name was asked for since when.
    asked = #{} :: #{atoll_predicate:name() => {pos_integer(), Since :: integer()}},
    interests = #{} :: #{atoll_predicate:name() => Until :: integer()},
    rows = #{} :: #{node() => #row{}},
    %% Of the own row.
    version :: version(),
    published = none :: none | {At :: integer(), atoll_predicate:values()},
    %% Whose rows are to be told, and who told them; and whether there are new interests.
    news = #{} :: #{node() => [node()]},
    new_interests = false :: boolean(),
    counts = #{rows_told => 0, rows_heard => 0, rows_known => 0, odd => 0, refused => 0} :: #{atom() => non_neg_integer()}
}).

-opaque gossip() :: #gossip{}.

%% Microseconds since 1970, for some thousand years.
-define(MAX_VERSION, (1 bsl 58)).
%% Bytes of a row.
-define(MAX_ROW, 65536).

%% @doc The options with their defaults, as {@link atoll_options:complete/2} reads them.
-spec options() -> atoll_options:known().
options() ->
    #{
        often => {pos_integer, 3},
        often_ms => {pos_integer, 20000},
        interest_ms => {pos_integer, 60000},
        gather_ms => {pos_integer, 500},
        refresh_ms => {pos_integer, 10000},
        still_ms => {pos_integer, 30000},
        tolerance => {non_neg_integer, 5},
        fanout => {pos_integer, 4},
        max_rows => {pos_integer, 20000},
        max_told => {pos_integer, 200},
        max_interests => {pos_integer, 64}
    }.

%% @doc A node that knows of no interest. Versions of a later life must be higher.
-spec new(#{self := node(), incarnation := version()}, options()) -> gossip().
new(#{self := Self, incarnation := Incarnation}, Options) ->
    #gossip{self = Self, version = Incarnation, options = Options}.

%% @doc Somebody here asks for these, and takes values that are some time old.
-spec asked([atoll_predicate:name()], atoll_protocol:now_ms(), gossip()) -> gossip().
asked(Names, Now, Gossip) ->
    lists:foldl(fun(Name, G) -> asked_for(Name, Now, G) end, Gossip, Names).

asked_for(Name, Now, #gossip{asked = Asked, options = #{often_ms := Ms, often := Often, max_interests := Max}} = G) ->
    {N, Since} =
        case Asked of
            #{Name := {Before, When}} when Now - When < Ms -> {Before + 1, When};
            #{} -> {1, Now}
        end,
    Counted =
        case is_map_key(Name, Asked) orelse map_size(Asked) < 4 * Max of
            true -> G#gossip{asked = Asked#{Name => {N, Since}}};
            false -> G#gossip{asked = #{Name => {N, Since}}}
        end,
    case N >= Often of
        true -> interested(Name, Now, Counted);
        false -> Counted
    end.

interested(Name, Now, #gossip{interests = Interests, options = #{interest_ms := Ms}} = G) ->
    case Interests of
        #{Name := Until} when Until - Now > Ms div 2 -> G;
        #{} -> interest(Name, Now + Ms, G)
    end.

interest(Name, Until, #gossip{interests = Interests, options = #{max_interests := Max}} = G) ->
    case is_map_key(Name, Interests) orelse map_size(Interests) < Max of
        true -> G#gossip{interests = Interests#{Name => Until}, new_interests = true};
        false -> count(refused, 1, G)
    end.

%% @doc What there is interest in now, sorted; without what has run out.
-spec interests(atoll_protocol:now_ms(), gossip()) -> {[atoll_predicate:name()], gossip()}.
interests(Now, #gossip{interests = Interests} = G) ->
    Live = maps:filter(fun(_, Until) -> Until > Now end, Interests),
    {lists:sort(maps:keys(Live)), forget(Now, G#gossip{interests = Live})}.

forget(Now, #gossip{rows = Rows, options = #{still_ms := Ms}} = G) ->
    G#gossip{rows = maps:filter(fun(_, #row{at = At}) -> Now - At =< 3 * Ms end, Rows)}.

%% @doc Of these nodes, those with a row that has all the names and is not too old, and the
%% others.
-spec rows([node()], [atoll_predicate:name()], MaxAge :: {atoll_protocol:now_ms(), Ms :: non_neg_integer()}, gossip()) ->
    {[{node(), atoll_predicate:values(), AgeMs :: non_neg_integer()}], Others :: [node()]}.
rows(Nodes, Names, {Now, MaxMs}, #gossip{rows = Rows}) ->
    lists:foldr(
        fun(Node, {Known, Others}) ->
            case Rows of
                #{Node := #row{at = At, values = Values}} when Now - At =< MaxMs ->
                    case lists:all(fun(Name) -> is_map_key(Name, Values) end, Names) of
                        true -> {[{Node, maps:with(Names, Values), Now - At} | Known], Others};
                        false -> {Known, [Node | Others]}
                    end;
                #{} ->
                    {Known, [Node | Others]}
            end
        end,
        {[], []},
        Nodes
    ).

%% @doc This node has asked another one itself. What it knows it need not ask again.
-spec enters(node(), atoll_predicate:values(), atoll_protocol:now_ms(), gossip()) -> gossip().
enters(Node, Values, Now, #gossip{rows = Rows} = G) ->
    case Rows of
        #{Node := #row{values = Old, version = Version}} ->
            case maps:without(maps:keys(Values), Old) of
                Others when map_size(Others) =:= 0 -> put_row(Node, #row{version = Version, at = Now, values = Values}, G);
                _ -> G
            end;
        #{} ->
            put_row(Node, #row{version = 0, at = Now, values = Values}, G)
    end.

put_row(Node, Row, #gossip{self = Self, rows = Rows, options = #{max_rows := Max}} = G) ->
    case Node =:= Self orelse is_map_key(Node, Rows) orelse map_size(Rows) < Max of
        true -> G#gossip{rows = Rows#{Node => Row}};
        false -> count(refused, 1, G)
    end.

%% @doc This node has evaluated what there is interest in.
-spec own(atoll_predicate:values(), atoll_protocol:now_ms(), gossip()) -> gossip().
own(Values, Now, #gossip{published = Published, options = #{still_ms := StillMs, tolerance := Percent}} = G) ->
    case Published of
        {At, Old} when Now - At < StillMs ->
            case maps:keys(Old) =:= maps:keys(Values) andalso is_like(Values, Old, Percent) of
                true -> G;
                false -> publish(Values, Now, G)
            end;
        _ ->
            publish(Values, Now, G)
    end.

publish(Values, Now, #gossip{self = Self, version = Version, news = News} = G) ->
    Published = G#gossip{published = {Now, Values}},
    case is_row(Values, G) of
        true ->
            Row = #row{version = Version + 1, at = Now, values = Values},
            put_row(Self, Row, Published#gossip{version = Version + 1, news = News#{Self => []}});
        false ->
            count(refused, 1, Published)
    end.

is_row(Values, #gossip{options = #{max_interests := Max}}) ->
    map_size(Values) =< Max andalso lists:all(fun is_atom/1, maps:keys(Values)) andalso erlang:external_size(Values) =< ?MAX_ROW.

is_like(Values, Old, Percent) ->
    lists:all(
        fun({Name, Value}) ->
            case Old of
                #{Name := Before} ->
                    Value =:= Before orelse
                        atoll_attr_rank:is_countable(Value) andalso atoll_attr_rank:is_countable(Before) andalso
                            100 * abs(Value - Before) =< Percent * abs(Before)
            end
        end,
        maps:to_list(Values)
    ).

%% @doc What another node tells.
-spec heard({node(), message()}, atoll_protocol:now_ms(), gossip()) -> gossip().
heard({From, {gossip, Interests, Rows}}, Now, #gossip{options = #{max_told := Max, max_interests := MaxI}} = G0) when
    length(Interests) =< MaxI, length(Rows) =< Max
->
    G = lists:foldl(fun(I, G1) -> hear_interest(I, Now, G1) end, G0, Interests),
    lists:foldl(fun(Row, G1) -> hear_row(From, Row, Now, G1) end, G, Rows);
heard(_Odd, _Now, G) ->
    count(odd, 1, G).

hear_interest({Name, Left}, Now, #gossip{interests = Interests, options = #{interest_ms := Ms}} = G) when
    is_atom(Name), is_integer(Left), Left > 0
->
    Until = Now + min(Left, Ms),
    case Interests of
        %% What lasts hardly longer is no news.
        #{Name := Known} when Until - Known =< Ms div 4 -> G;
        #{} -> interest(Name, Until, G)
    end;
hear_interest(_Odd, _Now, G) ->
    count(odd, 1, G).

hear_row(_From, {Self, _, _, _}, _Now, #gossip{self = Self} = G) ->
    G;
hear_row(From, {Node, Version, Age, Values} = Row, Now, G) when
    is_atom(Node), is_integer(Version), Version > 0, Version < ?MAX_VERSION, is_integer(Age), Age >= 0, is_map(Values)
->
    case is_row(Values, G) of
        true -> hear_good(From, Row, Now, G);
        false -> count(odd, 1, G)
    end;
hear_row(_From, _Odd, _Now, G) ->
    count(odd, 1, G).

hear_good(From, {Node, Version, Age, Values}, Now, #gossip{rows = Rows, news = News, options = #{still_ms := Ms}} = G) ->
    case Rows of
        #{Node := #row{version = Known}} when Known > Version ->
            count(rows_known, 1, G);
        #{Node := #row{version = Version}} ->
            %% Who tells it need not be told.
            Tellers = case News of #{Node := Others} -> News#{Node := [From | Others]}; #{} -> News end,
            count(rows_known, 1, G#gossip{news = Tellers});
        #{} when Age > 3 * Ms ->
            count(rows_known, 1, G);
        #{} ->
            case put_row(Node, #row{version = Version, at = Now - Age, values = Values}, G) of
                #gossip{rows = #{Node := _}} = Put -> count(rows_heard, 1, Put#gossip{news = News#{Node => [From]}});
                %% There is no room for it: it cannot be told, and must not wait to be.
                Full -> Full
            end
    end.

%% @doc What is to be told now, to random ones of these nodes, and the randomness after it. What
%% is more than fits in one message each stays for the next time, drawn anew, so that none waits
%% because of its name.
-spec tell({[node()], rand:state()}, atoll_protocol:now_ms(), gossip()) ->
    {[{node(), message()}], rand:state(), gossip()}.
tell({Peers, Rand0}, Now, #gossip{news = News, options = #{fanout := Fanout, max_told := Max}} = G0) ->
    {Drawn, Rand1} = atoll_random:sample(Fanout, Peers, Rand0),
    {Now1, Later, Rand} = atoll_random:split(min(Max, map_size(News)), lists:sort(maps:to_list(News)), Rand1),
    Interests = [
        {Name, Until - Now}
     || {Name, Until} <- lists:sort(maps:to_list(G0#gossip.interests)), Until > Now
    ],
    Messages = [
        {Peer, {gossip, Interests, Rows}}
     || Peer <- Drawn,
        Rows <- [told(Peer, Now1, Now, G0)],
        Rows =/= [] orelse G0#gossip.new_interests
    ],
    Told = lists:sum([length(Rows) || {_, {gossip, _, Rows}} <- Messages]),
    {Messages, Rand, count(rows_told, Told, G0#gossip{news = maps:from_list(Later), new_interests = false})}.

told(Peer, News, Now, #gossip{rows = Rows}) ->
    [
        {Node, Version, max(0, Now - At), Values}
     || {Node, Tellers} <- News,
        Node =/= Peer,
        not lists:member(Peer, Tellers),
        #{Node := #row{version = Version, at = At, values = Values}} <- [Rows]
    ].

%% @doc Whether there is nothing to tell.
-spec is_quiet(gossip()) -> boolean().
is_quiet(#gossip{news = News, new_interests = New}) ->
    map_size(News) =:= 0 andalso not New.

%% @doc How many rows and interests there are, and what was told and heard.
-spec counts(gossip()) -> #{atom() => non_neg_integer()}.
counts(#gossip{counts = Counts, rows = Rows, interests = Interests}) ->
    Counts#{rows => map_size(Rows), interests => map_size(Interests)}.

count(What, N, #gossip{counts = Counts} = G) ->
    #{What := Before} = Counts,
    G#gossip{counts = Counts#{What := Before + N}}.
