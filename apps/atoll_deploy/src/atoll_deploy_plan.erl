%% SPDX-License-Identifier: Apache-2.0
%% @doc What is to be done so that a family has as many nodes as it shall have: the difference between what is wanted
%% and what is known to be there, as a list of steps. Pure.
%%
%% Promised, of what is wanted and whatever is there: once all steps are done the family has exactly so many nodes,
%% each with a number of its own, none is on a host that lacks what it needs, and nothing more is to be done; also
%% if only some of the steps were done, or were begun, and a plan is made again. A node that is there stays where it
%% is. Nodes go by number: the highest ones first. New ones go to the host that has the fewest of the family.
%%
%% A node is known from before its start is begun until its stop is done. So one whose start or stop was begun is
%% started or stopped again, which does no harm.
-module(atoll_deploy_plan).

-export([plan/3, batches/2, format_step/1]).

-export_type([row/0, state/0, wanted/0, place/0, step/0]).

-type state() ::
    %% Its start has been begun.
    starting
    | up
    %% It could not be started or stopped: why is in `why'.
    | failed
    | stopping.

-type row() :: #{
    %% FAMILY, its number, @ and the host
    node := string(),
    family := string(),
    number := pos_integer(),
    domain := string(),
    host := string(),
    release := string(),
    needs := atoll_deploy_thing:needs(),
    state := state(),
    why => unicode:chardata(),
    %% The release that it had, until the roll that has given it another one is over.
    before => string(),
    %% The release that a roll has given it which was broken off: it has not the one that is to be there.
    rolled => string()
}.

-type place() :: {Domain :: string(), atoll_deploy_thing:host()}.

-type wanted() :: #{
    family := string(),
    count := non_neg_integer(),
    release := string(),
    needs := atoll_deploy_thing:needs(),
    %% Where they may be, in the order of the file.
    places := [place()]
}.

-type step() :: {start | stop, row()}.

%% @doc The steps, those that stop nodes first: they make room. An error says how many nodes there is room for.
-spec plan(wanted(), Family :: [row()], Others :: [row()]) -> {ok, [step()]} | {error, unicode:chardata()}.
plan(#{family := Family, count := Count} = Wanted, Rows, Others) ->
    Sorted = lists:sort(fun(#{number := A}, #{number := B}) -> A =< B end, Rows),
    {Going, Staying} = lists:partition(fun(#{state := State}) -> State =:= stopping end, Sorted),
    {Kept, Surplus} = lists:split(min(Count, length(Staying)), Staying),
    Again = [{start, Row} || #{state := State} = Row <- Kept, State =/= up],
    %% One whose stop fails is there still, so its number and its place are not given away.
    Taken = Sorted ++ Others,
    case added(Count - length(Kept), Wanted, Taken, [N || #{number := N} <- Sorted], []) of
        {ok, New} ->
            {ok, [{stop, Row} || Row <- lists:reverse(Surplus) ++ Going] ++ Again ++ New};
        {full, Fit} ->
            {error, io_lib:format("the hosts of the family ~ts have room for ~b of its ~b nodes", [Family, length(Kept) + Fit, Count])}
    end.

added(0, _, _, _, New) ->
    {ok, lists:reverse(New)};
added(Count, Wanted, Taken, Numbers, New) ->
    case place(Wanted, Taken) of
        {Domain, #{host := Host}} ->
            #{family := Family, release := Release, needs := Needs} = Wanted,
            Number = free(1, lists:sort(Numbers)),
            Row = #{
                node => lists:concat([Family, Number, "@", Host]), family => Family, number => Number, domain => Domain, host => Host,
                release => Release, needs => Needs, state => starting
            },
            added(Count - 1, Wanted, [Row | Taken], [Number | Numbers], [{start, Row} | New]);
        none ->
            {full, length(New)}
    end.

free(N, [N | Numbers]) -> free(N + 1, Numbers);
free(N, _) -> N.

place(#{places := Places, family := Family, needs := Needs}, Taken) ->
    Rated = [
        {length([own || #{family := Of} <- On, Of =:= Family]), length(On), N, Place}
     || {N, {Domain, #{host := Name} = Host} = Place} <- lists:zip(lists:seq(1, length(Places)), Places),
        On <- [[Row || #{domain := In, host := At} = Row <- Taken, In =:= Domain, At =:= Name]],
        fits(Needs, Host, On)
    ],
    case lists:sort(Rated) of
        [{_, _, _, Place} | _] -> Place;
        [] -> none
    end.

fits(Needs, #{attributes := Has} = Host, On) ->
    maps:get(attributes, Needs, []) -- Has =:= [] andalso
        lists:all(
            fun(Key) ->
                case {Host, Needs} of
                    {#{Key := There}, #{Key := Need}} -> lists:sum([Need | [Of || #{needs := #{Key := Of}} <- On]]) =< There;
                    _ -> true
                end
            end,
            [cores, memory_mb]
        ).

%% @doc The nodes that do not have this release yet, so many at a time, the lowest numbers first.
-spec batches([row()], {Release :: string(), Size :: pos_integer()}) -> [[row(), ...]].
batches(Rows, {Release, Size}) ->
    Old = [{Number, Row} || #{number := Number, release := Is, state := State} = Row <- Rows, State =/= stopping, Is =/= Release orelse State =/= up],
    cut([Row || {_, Row} <- lists:sort(Old)], Size).

cut([], _) -> [];
cut(Rows, Size) when length(Rows) =< Size -> [Rows];
cut(Rows, Size) ->
    {Batch, Rest} = lists:split(Size, Rows),
    [Batch | cut(Rest, Size)].

%% @doc A step in words.
-spec format_step(step()) -> unicode:chardata().
format_step({start, #{node := Node, release := Release}}) -> ["start ", Node, " with the release ", Release];
format_step({stop, #{node := Node}}) -> ["stop ", Node].
