%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Random choices from lists, for pure protocols: the state of the generator goes
%% in and comes out.
-module(atoll_random).

-export([seed/1, pick/2, sample/3, split/3, shuffle/2]).

%% The range of one random number, and how much larger it has to be than a choice
%% that is made with it: no choice is then likelier than another by more than that.
-define(DRAW, 16#200000000000000).
-define(FAIR, 16#10000).

%% @doc What `rand:seed_s(exsss, Seed)' gives, but for the functions of the generator, which
%% all states of this VM have in common: in a simulation with thousands of nodes each would
%% have four copies of them, larger than what they are for.
-spec seed(integer()) -> rand:state().
seed(Seed) ->
    {Functions, State} = rand:seed_s(exsss, Seed),
    case persistent_term:get(?MODULE, none) of
        Functions ->
            {persistent_term:get(?MODULE), State};
        _ ->
            persistent_term:put(?MODULE, Functions),
            {persistent_term:get(?MODULE), State}
    end.

%% @doc One of a list that is not empty, each as likely.
-spec pick([T, ...], rand:state()) -> {T, rand:state()}.
pick([Only], Rand) ->
    {Only, Rand};
pick(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(N, List), Rand}.

%% @doc As many of the list, or all of it if it has no more; each choice as likely.
-spec sample(non_neg_integer(), [T], rand:state()) -> {[T], rand:state()}.
sample(Wanted, List, Rand) ->
    case length(List) of
        Length when Length =< Wanted ->
            {List, Rand};
        Length ->
            {Sample, _Rest, Next} = split(Wanted, Length, List, Rand),
            {Sample, Next}
    end.

%% @doc The list in an order of which each is as likely.
-spec shuffle([T], rand:state()) -> {[T], rand:state()}.
shuffle(List, Rand0) ->
    {Shuffled, [], Rand} = split(length(List), List, Rand0),
    {Shuffled, Rand}.

%% @doc So many of the list, which has as many, drawn one after the other, and the
%% others in its order.
-spec split(non_neg_integer(), [T], rand:state()) -> {Drawn :: [T], Others :: [T], rand:state()}.
split(Wanted, List, Rand) ->
    split(Wanted, length(List), List, Rand).

split(Wanted, Length, List, Rand) ->
    split(Wanted, Length, List, [], 0, 1, Rand).

split(0, _Length, List, Sample, _Chance, _Range, Rand) ->
    {Sample, List, Rand};
split(Wanted, Length, List, Sample, _Chance, Range, Rand0) when Range < Length * ?FAIR ->
    %% A draw is worth several choices: each takes from it what it needs.
    {Drawn, Rand} = rand:uniform_s(?DRAW, Rand0),
    split(Wanted, Length, List, Sample, Drawn - 1, ?DRAW, Rand);
split(Wanted, Length, List0, Sample, Chance, Range, Rand) ->
    {Element, List} = take(1 + Chance rem Length, List0),
    split(Wanted - 1, Length - 1, List, [Element | Sample], Chance div Length, Range div Length, Rand).

take(1, [Head | Tail]) ->
    {Head, Tail};
take(N, [Head | Tail]) ->
    {Element, Rest} = take(N - 1, Tail),
    {Element, [Head | Rest]}.
