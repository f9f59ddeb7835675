%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Which kind of connection two nodes have: what both ends make of what each of
%% them wishes and of the measured round trip.
%%
%% Promised: both ends come to the same answer, whoever asks whom; what is asked for
%% outright beats what is left open; lanes beat direct; of two numbers of lanes the
%% larger is taken; and nobody gets lanes who did not ask for them or leave it open.
-module(atoll_dist_kind).

-export([wish/3, agree/3, with_channels/3, of_two/2, is_asked/1]).

-export_type([kind/0, asked/0, wish/0, lanes/0]).

-type lanes() :: 1..64.

-type kind() :: direct | {lanes, lanes()}.

-type asked() :: auto | kind().
%% As a person writes it.

-type wish() :: kind() | {auto, LaneRttUs :: non_neg_integer(), lanes()}.
%% What one end wants of one connection. Left open: so many lanes if the round trip
%% takes at least so many microseconds, else direct.

%% @doc What this node wants of its connection with a peer: what is configured for
%% that peer, else what an upper room prefers for it, else what is configured for all.
-spec wish(Peer :: binary(), atoll_dist_config:config(), Preferred :: #{binary() => asked()}) -> wish().
wish(Peer, #{kind := Kind, peers := Peers, lane_rtt := Ms, lanes := Lanes}, Preferred) ->
    case maps:get(Peer, Peers, maps:get(Peer, Preferred, Kind)) of
        auto -> {auto, Ms * 1000, Lanes};
        Asked -> Asked
    end.

%% @doc The kind that two wishes and a round trip of so many microseconds make.
-spec agree(wish(), wish(), RttUs :: non_neg_integer()) -> kind().
agree({auto, _, _} = One, {auto, _, _} = Other, RttUs) ->
    larger(measured(One, RttUs), measured(Other, RttUs));
agree({auto, _, _}, Asked, _RttUs) ->
    Asked;
agree(Asked, {auto, _, _}, _RttUs) ->
    Asked;
agree(One, Other, _RttUs) ->
    larger(One, Other).

%% @doc The kind with the lanes of these channels, and the channels that it has. Channels
%% take lanes: what both ends left open has them, however short the path, and a `direct' that
%% one of them asked for has none.
-spec with_channels(kind(), [wish()], atoll_dist_named:agreed()) -> {kind(), atoll_dist_named:agreed()}.
with_channels(Kind, _Wishes, Agreed) when Agreed =:= none; Agreed =:= [] ->
    {Kind, Agreed};
with_channels({lanes, Lanes}, _Wishes, Agreed) ->
    {{lanes, atoll_dist_named:total(Lanes, Agreed)}, Agreed};
with_channels(direct, Wishes, Agreed) ->
    case lists:member(direct, Wishes) of
        true -> {direct, []};
        false -> with_channels({lanes, 1}, Wishes, Agreed)
    end.

%% @doc What is asked for of a peer, of two different things that are: as two ends agree.
-spec of_two(asked(), asked()) -> asked().
of_two(auto, Asked) -> Asked;
of_two(Asked, auto) -> Asked;
of_two(One, Other) -> larger(One, Other).

%% @doc Whether that is something that can be asked for.
-spec is_asked(term()) -> boolean().
is_asked(auto) -> true;
is_asked(direct) -> true;
is_asked({lanes, Lanes}) -> is_integer(Lanes) andalso Lanes >= 1 andalso Lanes =< 64;
is_asked(_) -> false.

measured({auto, LaneRttUs, Lanes}, RttUs) when RttUs >= LaneRttUs -> {lanes, Lanes};
measured({auto, _, _}, _RttUs) -> direct.

larger(direct, Kind) -> Kind;
larger(Kind, direct) -> Kind;
larger({lanes, One}, {lanes, Other}) -> {lanes, max(One, Other)}.
