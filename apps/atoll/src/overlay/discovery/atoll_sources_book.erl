%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What the discovery sources have given so far, and what is to be done about a
%% new reading. Pure data, but for the atoms of {@link atoll_source_names}.
%%
%% It only adds. A node that a source no longer names, or a source that fails, is empty
%% or garbage, takes nothing away from what was found. The way to a node ({@link
%% atoll_epmd}) is another matter: a source that names a node with another way than
%% before, or with none, has the last word on what it said itself. Where sources
%% disagree, the one that stands first in the configuration is right, and in one
%% reading the first of a node counts; so the ways do not go to and fro.
-module(atoll_sources_book).

-export([new/3, result/3, summary/1]).

-export_type([book/0, index/0, effect/0, summary/0]).

-type index() :: pos_integer().
%% The place of a source in the configuration: two may be equal.

-type effect() ::
    %% Contacts, new ones or all that this reading gave.
    {deliver, [node(), ...]}
    %% What changed in how nodes are reached.
    | {learn, atoll_epmd:ways()}
    %% From now on there is something wrong with it; from now on no longer.
    | {begins, atoll_source:source(), atoll_source:trouble()}
    | {works, atoll_source:source()}
    %% It says how nodes are reached, which is of no use here. Said once.
    | {unused_ways, atoll_source:source()}.

-type summary() :: #{
    source := atoll_source:source(),
    %% What came of the last read.
    last := none | works | atoll_source:trouble(),
    %% Readings so far, and how many of them gave nothing at all.
    reads := non_neg_integer(),
    failures := non_neg_integer(),
    %% Names that this source was the first to give.
    found := non_neg_integer(),
    %% How many times a name was refused, once for each read that had it.
    refused := non_neg_integer()
}.

-record(book, {
    max :: pos_integer(),
    summaries :: #{index() => summary()},
    names :: atoll_source_names:names(),
    %% Whether the ways are of use, and who has been told that they are not.
    uses_ways :: boolean(),
    told = #{} :: #{index() => []},
    %% The way to a node and whose it is.
    ways = #{} :: #{binary() => {index(), atoll_epmd:way()}}
}).

-opaque book() :: #book{}.

%% Each reading of that number gives all its contacts again, in case that whoever gets
%% them has begun anew.
-define(ALL_AGAIN, 32).

%% @doc Nothing found yet.
-spec new([atoll_source:source()], Max :: pos_integer(), UsesWays :: boolean()) -> book().
new(Sources, Max, UsesWays) ->
    Empty = #{last => none, reads => 0, failures => 0, found => 0, refused => 0},
    Indexed = lists:zip(lists:seq(1, length(Sources)), Sources),
    #book{
        max = Max,
        summaries = maps:from_list([{Index, Empty#{source => Source}} || {Index, Source} <- Indexed]),
        names = atoll_source_names:new(Max),
        uses_ways = UsesWays
    }.

%% @doc A source was read, or could not be.
-spec result(index(), atoll_source:reading(), book()) -> {book(), [effect()]}.
result(Index, {error, Reason}, Book) ->
    ended(Index, {failing, Reason}, #{reads => 1, failures => 1}, Book);
result(Index, {ok, Contacts, Complaints}, #book{names = Names0, max = Max, summaries = Summaries} = Book0) ->
    {All, New, Refused, Names} = take([Name || {Name, _Way} <- Contacts], Names0),
    {Book1, Ways} = ways(Index, Contacts, Book0#book{names = Names}),
    Last =
        case Complaints ++ [{names_beyond, Max} || Refused > 0] of
            [] -> works;
            Wrong -> {incomplete, Wrong}
        end,
    #{Index := #{reads := Reads}} = Summaries,
    Counts = #{reads => 1, found => length(New), refused => Refused},
    {Book, Said} = ended(Index, Last, Counts, Book1),
    {Book, Ways ++ deliver(Reads, All, New) ++ Said}.

deliver(Reads, [_ | _] = All, _New) when Reads rem ?ALL_AGAIN =:= 0 -> [{deliver, All}];
deliver(_Reads, _All, [_ | _] = New) -> [{deliver, New}];
deliver(_Reads, _All, []) -> [].

take(Given, Names0) ->
    lists:foldl(
        fun(Name, {All, New, Refused, Names}) ->
            case atoll_source_names:take(Name, Names) of
                {known, Node, Same} -> {[Node | All], New, Refused, Same};
                {new, Node, More} -> {[Node | All], [Node | New], Refused, More};
                refused -> {All, New, Refused + 1, Names}
            end
        end,
        {[], [], 0, Names0},
        lists:usort(Given)
    ).

%% What is said, and what is not: something is said when it begins, when it is about
%% another part of the source than before, and when it ends.
ended(Index, Last, Counts, #book{summaries = Summaries} = Book) ->
    #{Index := #{source := Source, last := Before} = Summary} = Summaries,
    Counted = maps:map(
        fun(Key, Value) ->
            case Counts of
                #{Key := More} -> Value + More;
                #{} -> Value
            end
        end,
        Summary
    ),
    {Book#book{summaries = Summaries#{Index := Counted#{last := Last}}}, said(Source, Before, Last)}.

said(_Source, Same, Same) -> [];
said(_Source, none, works) -> [];
said(Source, _Before, works) -> [{works, Source}];
said(_Source, {failing, _}, {failing, _}) -> [];
said(Source, _Before, Trouble) -> [{begins, Source, Trouble}].

%% Ways

ways(Index, Contacts, #book{uses_ways = false, told = Told} = Book) when not is_map_key(Index, Told) ->
    case lists:all(fun({_Name, Way}) -> map_size(Way) =:= 0 end, Contacts) of
        true ->
            {Book, []};
        false ->
            #{Index := #{source := Source}} = Book#book.summaries,
            {Book#book{told = Told#{Index => []}}, [{unused_ways, Source}]}
    end;
ways(_Index, _Contacts, #book{uses_ways = false} = Book) ->
    {Book, []};
ways(Index, Contacts, #book{names = Names, ways = Ways0} = Book) ->
    %% From the last, so that the first of a name is the one that stays.
    First = maps:from_list(lists:reverse(Contacts)),
    {Ways, Changed} = maps:fold(
        fun(Name, Way, {Ways1, Changed1} = Acc) ->
            %% Those that were refused get no way either.
            case is_change(Index, Way, Ways1, Name) andalso atoll_source_names:is_known(Name, Names) of
                false -> Acc;
                true when map_size(Way) =:= 0 -> {maps:remove(Name, Ways1), Changed1#{Name => Way}};
                true -> {Ways1#{Name => {Index, Way}}, Changed1#{Name => Way}}
            end
        end,
        {Ways0, #{}},
        First
    ),
    {Book#book{ways = Ways}, [{learn, Changed} || map_size(Changed) > 0]}.

is_change(Index, Way, Ways, Name) ->
    case Ways of
        #{Name := {Index, Way}} -> false;
        #{Name := {Index, _}} -> true;
        #{Name := {Other, _}} -> map_size(Way) > 0 andalso Index < Other;
        #{} -> map_size(Way) > 0
    end.

%% @doc For people: each source in the order of the configuration.
-spec summary(book()) -> [summary()].
summary(#book{summaries = Summaries}) ->
    [Summary || {_Index, Summary} <- lists:sort(maps:to_list(Summaries))].
