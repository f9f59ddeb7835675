%% SPDX-License-Identifier: Apache-2.0
%% @doc What people do with the service, as a model that is fitted to a record, sessions that are drawn from it, and how alike two records are. Pure.
%%
%% A session is all that one user asks for. The model is a chain: after each kind of request comes another, or the end, as often as in
%% the record, after a time that is drawn from those of the record between these two kinds, with straight lines between neighbours. It
%% remembers no more than the last request, and how many of that kind there were, up to twenty.
%%
%% Two records are compared by the times between the requests of a user and by the requests of a session (the largest difference of the
%% two distributions, after Kolmogorov and Smirnov), and by the shares of kinds (half the sum of the differences). A session is drawn or
%% moved as a whole, since its requests hang together: the interval is the bootstrap's, and `by_chance' is what 95 of 100 divisions of all sessions into
%% two such parts stay below. So `alike' says no more than that these records do not show a difference; with few sessions they hardly can.
-module(matchstream_people).

-export([sessions/1, fit/1, draw/3, compare/3]).

-export_type([session/0, model/0, measure/0, likeness/0]).

-type session() :: {StartMs :: integer(), [{GapMs :: non_neg_integer(), matchstream_record:kind()}, ...]}.
%% When it begins, and each request with the time since the one before it, which the first has not.

-type model() :: #{
    %% between the beginnings of sessions
    starts := [non_neg_integer()],
    %% which comes after which, as often as it stands here; `none' is before the first and after the last
    next := #{known() => [matchstream_record:kind() | none, ...]},
    gaps := #{{matchstream_record:kind(), matchstream_record:kind()} => [non_neg_integer(), ...]}
}.

-type known() :: {matchstream_record:kind() | none, Which :: 0..20}.
%% What the chain remembers.

-type measure() :: gaps | kinds | lengths.

-type likeness() :: #{distance := float(), interval := {float(), float()}, by_chance := float(), alike := boolean()}.

-define(ROUNDS, 200).
-define(MOST, 20).
%% A chain may not come to an end.
-define(REQUESTS, 10000).

%% @doc What each user has done, by the beginning.
-spec sessions([matchstream_record:entry()]) -> [session()].
sessions(Entries) ->
    ByUser = maps:groups_from_list(fun({_, User, _}) -> User end, fun({At, _, Kind}) -> {At, Kind} end, lists:sort(Entries)),
    lists:sort([session(Requests) || Requests <- maps:values(ByUser)]).

session([{Start, _} | _] = Requests) ->
    {Session, _} = lists:mapfoldl(fun({At, Kind}, Before) -> {{At - Before, Kind}, At} end, Start, Requests),
    {Start, Session}.

%% @doc A model of them.
-spec fit([session(), ...]) -> model().
fit(Sessions) ->
    Starts = [Start || {Start, _} <- Sessions],
    Steps = lists:append([steps({none, 0}, #{}, Requests) || {_, Requests} <- Sessions]),
    #{
        starts => lists:sort([B - A || {A, B} <- lists:zip(lists:droplast(Starts), tl(Starts))]),
        next => maps:groups_from_list(fun({From, _, _}) -> From end, fun({_, To, _}) -> To end, Steps),
        gaps => maps:map(fun(_, Gaps) -> lists:sort(Gaps) end,
                         maps:groups_from_list(fun({{From, _}, To, _}) -> {From, To} end, fun({_, _, Gap}) -> Gap end, [Step || {{From, _}, To, _} = Step <- Steps, From =/= none, To =/= none]))
    }.

steps(Known, _, []) -> [{Known, none, 0}];
steps(Known, Counts, [{Gap, Kind} | Requests]) ->
    {Next, More} = known(Kind, Counts),
    [{Known, Kind, Gap} | steps(Next, More, Requests)].

known(Kind, Counts) ->
    Which = min(?MOST, maps:get(Kind, Counts, 0) + 1),
    {{Kind, Which}, Counts#{Kind => Which}}.

%% @doc So many sessions, of which the first begins at 0.
-spec draw(pos_integer(), model(), Seed :: integer()) -> [session()].
draw(Count, #{starts := Starts} = Model, Seed) ->
    {Sessions, _} = lists:mapfoldl(fun(N, {Before, R0}) ->
        {Gap, R1} = case Starts of _ when N =:= 1 -> {0, R0}; [] -> {0, R0}; _ -> between(list_to_tuple(Starts), R0) end,
        {Requests, R2} = walk({none, 0}, #{}, Model, ?REQUESTS, R1),
        {{Before + Gap, Requests}, {Before + Gap, R2}}
    end, {0, rand:seed_s(exsss, Seed)}, lists:seq(1, Count)),
    Sessions.

walk(_, _, _, 0, R) -> {[], R};
walk({From, _} = Known, Counts, #{next := Next, gaps := Gaps} = Model, Left, R0) ->
    Follows = follows(Known, Next),
    {N, R1} = rand:uniform_s(length(Follows), R0),
    case lists:nth(N, Follows) of
        none -> {[], R1};
        To ->
            {Gap, R2} = case Gaps of #{{From, To} := Measured} -> between(list_to_tuple(Measured), R1); #{} -> {0, R1} end,
            {Then, More} = known(To, Counts),
            {Requests, R3} = walk(Then, More, Model, Left - 1, R2),
            {[{Gap, To} | Requests], R3}
    end.

%% Of a kind that nobody has asked for as often, what came after it the time before.
follows({Kind, Which} = Known, Next) ->
    case Next of
        #{Known := Follows} -> Follows;
        #{} -> follows({Kind, Which - 1}, Next)
    end.

%% By a straight line between two neighbours of what was measured.
between(Sorted, R0) ->
    {U, R1} = rand:uniform_s(R0),
    At = U * (tuple_size(Sorted) - 1),
    Low = element(1 + trunc(At), Sorted),
    High = element(min(tuple_size(Sorted), 2 + trunc(At)), Sorted),
    {round(Low + (At - trunc(At)) * (High - Low)), R1}.

%% @doc How alike they are.
-spec compare([session(), ...], [session(), ...], Seed :: integer()) -> #{measure() => likeness()}.
compare(A, B, Seed) ->
    {SA, SB} = {[summary(Session) || Session <- A], [summary(Session) || Session <- B]},
    {TA, TB, All} = {list_to_tuple(SA), list_to_tuple(SB), list_to_tuple(SA ++ SB)},
    Is = distances(SA, SB),
    {Drawn, R} = rounds(fun(R0) -> {As, R1} = drawn(TA, tuple_size(TA), R0), {Bs, R2} = drawn(TB, tuple_size(TB), R1), {distances(As, Bs), R2} end, rand:seed_s(exsss, Seed)),
    {Mixed, _} = rounds(fun(R0) -> {Shuffled, R1} = shuffled(All, R0), {As, Bs} = lists:split(length(A), Shuffled), {distances(As, Bs), R1} end, R),
    maps:map(fun(Measure, Distance) ->
        Sorted = lists:sort([maps:get(Measure, One) || One <- Drawn]),
        ByChance = percentile(95, lists:sort([maps:get(Measure, One) || One <- Mixed])),
        #{distance => Distance, interval => {percentile(2.5, Sorted), percentile(97.5, Sorted)}, by_chance => ByChance, alike => Distance =< ByChance}
    end, Is).

rounds(Fun, R) -> lists:mapfoldl(fun(_, R0) -> Fun(R0) end, R, lists:seq(1, ?ROUNDS)).

drawn(From, Count, R) -> lists:mapfoldl(fun(_, R0) -> {N, R1} = rand:uniform_s(tuple_size(From), R0), {element(N, From), R1} end, R, lists:seq(1, Count)).

shuffled(From, R) ->
    {Keyed, Next} = lists:mapfoldl(fun(Is, R0) -> {Key, R1} = rand:uniform_s(R0), {{Key, Is}, R1} end, R, tuple_to_list(From)),
    {[Is || {_, Is} <- lists:keysort(1, Keyed)], Next}.

percentile(P, Sorted) -> lists:nth(max(1, ceil(length(Sorted) * P / 100)), Sorted).

%% What is compared of a session, made once: it is drawn many times.
summary({_, Requests}) ->
    {[Gap || {Gap, _} <- tl(Requests)], length(Requests), [length([Is || {_, Is} <- Requests, Is =:= Kind]) || Kind <- matchstream_record:kinds()]}.

distances(A, B) ->
    #{
        gaps => apart(lists:append([Gaps || {Gaps, _, _} <- A]), lists:append([Gaps || {Gaps, _, _} <- B])),
        lengths => apart([Length || {_, Length, _} <- A], [Length || {_, Length, _} <- B]),
        kinds => lists:sum([abs(One - Other) || {One, Other} <- lists:zip(shares(A), shares(B))]) / 2
    }.

shares(Sessions) ->
    All = lists:sum([Length || {_, Length, _} <- Sessions]),
    Counts = lists:foldl(fun({_, _, Kinds}, Sums) -> lists:zipwith(fun erlang:'+'/2, Kinds, Sums) end, [0 || _ <- matchstream_record:kinds()], Sessions),
    [Count / All || Count <- Counts].

%% The largest difference of the shares that are no greater than a value.
apart([], []) -> 0.0;
apart(A, B) when A =:= []; B =:= [] -> 1.0;
apart(A, B) -> apart(lists:sort(A), lists:sort(B), 0, 0, length(A), length(B), 0.0).

apart([], _, _, _, _, _, Most) -> Most;
apart(_, [], _, _, _, _, Most) -> Most;
apart([X | _] = A, [Y | _] = B, I, J, N, M, Most) ->
    Value = min(X, Y),
    {EqualA, RestA} = lists:splitwith(fun(Is) -> Is =:= Value end, A),
    {EqualB, RestB} = lists:splitwith(fun(Is) -> Is =:= Value end, B),
    {I1, J1} = {I + length(EqualA), J + length(EqualB)},
    apart(RestA, RestB, I1, J1, N, M, max(Most, abs(I1 / N - J1 / M))).
