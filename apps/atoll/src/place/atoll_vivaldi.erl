%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Network coordinates: a node's place in a space in which the distance of two places is
%% an estimate of the round trip between the nodes. Pure.
%%
%% Vivaldi (Dabek, Cox, Kaashoek, Morris, SIGCOMM 2004, with the height vector of section 5.4):
%% each measured round trip is a spring between this node and the other, which moves this
%% node a little. How far depends on which of the two is surer of its place. A place is a point of a few
%% dimensions and a height, the way from the node to the core of the network, which is part of
%% every distance.
%%
%% What has been mended since, and is in here:
%% <ul>
%% <li>A round trip is taken for the second smallest of the last five with this peer
%%   (Ledlie, Gardner, Seltzer, Network coordinates in the wild, NSDI 2007): one slow answer
%%   moves nobody. {@link smoothed/1}.</li>
%% <li>A weak pull to the origin (the same): else all coordinates drift together, and an old one
%%   is worth nothing.</li>
%% <li>What is much farther from the expected than what was seen of late is left out (Seibert,
%%   Becker, Nita-Rotaru, Newton, CCS 2014: the median and eight times the median deviation),
%%   but by a node that is not sure of its own place. What is left out is remembered as seen:
%%   if everything has changed, that is soon the expected.</li>
%% <li>Numbers have bounds, whoever sends them.</li>
%% </ul>
%%
%% Not promised: that an estimate is right. Routes of the Internet are no space, and many nodes that
%% lie in concert move the others.
-module(atoll_vivaldi).

-export([new/0, at/1, coordinate/1, error/1, rejected/1, estimate/2, update/4, smoothed/1, is_coordinate/1]).

-export_type([coordinate/0, place/0, ms/0]).

-type ms() :: float().

-type coordinate() :: {
    Point :: [ms(), ...],
    Height :: ms(),
    %% How far an estimate with this coordinate is expected to be off, as a share of it.
    Error :: float()
}.

-record(place, {
    coordinate :: coordinate(),
    %% By how much the last round trips differed from the estimates, in milliseconds, newest first.
    residuals = [] :: [ms()],
    rejected = 0 :: non_neg_integer()
}).

-opaque place() :: #place{}.

-define(DIMENSIONS, 4).
%% A height of 0 would stay 0.
-define(MIN_HEIGHT, 0.01).
-define(MIN_ERROR, 0.005).
-define(MAX_ERROR, 1.5).
%% No round trip is longer, nor a coordinate larger.
-define(MAX_MS, 60000.0).
%% How much of the error of a sample is moved, and believed, at most.
-define(MOVES, 0.35).
-define(BELIEVES, 0.25).
%% So far from the origin the pull is a millisecond for each sample.
-define(GRAVITY_MS, 2048.0).
%% An estimate that is much too large pulls no harder than one that is too large by the round
%% trip itself, or by so much.
-define(FREE_MS, 20.0).
%% What is farther counts less, the more the surer the node is of its place: what shakes the round trip to
%% a far node is more than all the way to a near one.
-define(NEAR_MS, 10.0).
-define(RESIDUALS, 40).
-define(FEW, 8).
-define(DEVIATIONS, 5).
%% So little is no lie.
-define(SLACK_MS, 2.0).

%% @doc A node that knows nothing.
-spec new() -> place().
new() ->
    at({lists:duplicate(?DIMENSIONS, 0.0), ?MIN_HEIGHT, ?MAX_ERROR}).

%% @doc A node that was here.
-spec at(coordinate()) -> place().
at(Coordinate) ->
    #place{coordinate = Coordinate}.

%% @doc Where it is.
-spec coordinate(place()) -> coordinate().
coordinate(#place{coordinate = Coordinate}) -> Coordinate.

%% @doc How far an estimate is expected to be off, as a share of it.
-spec error(place()) -> float().
error(#place{coordinate = {_, _, Error}}) -> Error.

%% @doc How many round trips were left out.
-spec rejected(place()) -> non_neg_integer().
rejected(#place{rejected = Rejected}) -> Rejected.

%% @doc The round trip between two nodes that are there, in milliseconds.
-spec estimate(coordinate(), coordinate()) -> ms().
estimate({A, HeightA, _}, {B, HeightB, _}) ->
    norm(minus(A, B)) + HeightA + HeightB.

%% @doc The node measured this round trip with one that is there.
-spec update(Ms :: number(), coordinate(), place(), rand:state()) -> {place(), rand:state()}.
update(Ms, _Other, Place, Rand) when Ms =< 0; Ms > ?MAX_MS ->
    {Place, Rand};
update(Ms, Other, #place{coordinate = Own, residuals = Residuals, rejected = Rejected} = Place, Rand0) ->
    Residual = abs(Ms - estimate(Own, Other)),
    Seen = Place#place{residuals = lists:sublist([Residual | Residuals], ?RESIDUALS)},
    case is_odd(Residual, Residuals) of
        true ->
            {Seen#place{rejected = Rejected + 1}, Rand0};
        false ->
            {Moved, Rand} = move(Ms, Other, Own, Rand0),
            {Seen#place{coordinate = Moved}, Rand}
    end.

is_odd(_Residual, Residuals) when length(Residuals) < ?FEW ->
    false;
is_odd(Residual, Residuals) ->
    Median = median(Residuals),
    Residual > Median + ?DEVIATIONS * median([abs(R - Median) || R <- Residuals]) + ?SLACK_MS.

median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).

move(Ms, {Point, Height, Error} = Other, {OwnPoint, OwnHeight, OwnError} = Own, Rand0) ->
    Weight = OwnError / (OwnError + max(Error, ?MIN_ERROR)),
    Estimate = estimate(Own, Other),
    Off = min(1.0, abs(Estimate - Ms) / Ms),
    NewError = Off * ?BELIEVES * Weight + OwnError * (1 - ?BELIEVES * Weight),
    Most = max(Ms, ?FREE_MS),
    Sure = 1 - min(1.0, OwnError),
    Step = 1 - Sure + Sure * min(1.0, ?NEAR_MS / Ms),
    Force = ?MOVES * Weight * Step * bounded(-Most, Ms - Estimate, Most),
    {Direction, Share, Rand} = direction(minus(OwnPoint, Point), OwnHeight + Height, Rand0),
    Moved = plus(OwnPoint, scaled(Force * Share, Direction)),
    %% The heights share the force as they share the distance.
    Raised = OwnHeight + Force * (1 - Share),
    {{pulled(Moved), bounded(?MIN_HEIGHT, Raised, ?MAX_MS), bounded(?MIN_ERROR, NewError, ?MAX_ERROR)}, Rand}.

%% A vector of length 1 away from the other, and the share of the points in the distance.
direction(Vector, Heights, Rand0) ->
    case norm(Vector) of
        Length when Length > 1.0e-6 ->
            {scaled(1 / Length, Vector), Length / (Length + Heights), Rand0};
        _ ->
            %% They are in one place: any direction will do.
            {Random, Rand} = lists:mapfoldl(fun(_, R) -> rand:normal_s(R) end, Rand0, Vector),
            {scaled(1 / max(1.0e-6, norm(Random)), Random), 1.0, Rand}
    end.

pulled(Point) ->
    case norm(Point) of
        Length when Length > ?MAX_MS -> scaled(?MAX_MS / Length, Point);
        Length when Length > 0 ->
            Pull = min(Length, (Length / ?GRAVITY_MS) * (Length / ?GRAVITY_MS)),
            scaled((Length - Pull) / Length, Point);
        _ -> Point
    end.

bounded(Min, X, Max) -> max(Min, min(X, Max)).

minus(A, B) -> lists:zipwith(fun(X, Y) -> X - Y end, A, B).

plus(A, B) -> lists:zipwith(fun(X, Y) -> X + Y end, A, B).

scaled(Factor, Vector) -> [Factor * X || X <- Vector].

norm(Vector) -> math:sqrt(lists:sum([X * X || X <- Vector])).

%% @doc What the last round trips with one peer are taken for.
-spec smoothed([ms(), ...]) -> ms().
smoothed(RoundTrips) ->
    case lists:sort(lists:sublist(RoundTrips, 5)) of
        [_, Second, _ | _] -> Second;
        [Smallest | _] -> Smallest
    end.

%% @doc Whether a term, whoever sent it, is a coordinate that this node can use.
-spec is_coordinate(term()) -> boolean().
is_coordinate({Point, Height, Error}) when length(Point) =:= ?DIMENSIONS, is_float(Height), is_float(Error) ->
    lists:all(fun(X) -> is_float(X) andalso abs(X) =< ?MAX_MS end, Point) andalso
        Height >= 0 andalso Height =< ?MAX_MS andalso Error >= 0 andalso Error =< ?MAX_ERROR;
is_coordinate(_) ->
    false.
